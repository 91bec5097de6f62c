/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.c: arguments whose layouts have tables, as arguments without: the view underneath with the
 * positions in dimensions of their own, and each table as a view argument. The kernel for them is
 * made by ir/expand_tables.c once for each combination of tables, and kept in a list of the
 * context, the latest first.
 */
#include "runtime/cuda/stream.h"
#include "runtime/cuda/table.h"
#include "runtime/table.h"

#include <string.h>

enum { MOST_EXPANSIONS = 64 };

typedef struct qn_expansion_entry {
    struct qn_expansion_entry *next;
    qn_kernel *expanded; /* with a reference; it has one to the kernel it was made from */
} qn_expansion_entry;

bool qn__has_tables(const qn_kernel *k, int n, const qn_arg *args)
{
    bool has_tables = false;
    if (!k || n != k->n_params || !args)
        return false;
    for (int i = 0; i < n; i++) {
        const qn_view *v = args[i].view;
        if (!v != (k->param[i].rank < 0) || (v && v->layout.rank != k->param[i].rank))
            return false;
        has_tables = has_tables || (v && qn__layout_tables(&v->layout));
    }
    return has_tables;
}

/* ---------------------------------------------------------------- kernels */

/** The kernel for these tables, moved to the front, with a reference; or NULL. The lock is held. */
static qn_kernel *find(qn_context *c, const qn_kernel *k, const uint32_t *tables)
{
    for (qn_expansion_entry **link = &c->expansions; *link; link = &(*link)->next) {
        qn_expansion_entry *e = *link;
        const qn_expansion *x = e->expanded->expansion;
        if (x->given != k ||
            memcmp(x->tables, tables, (size_t)k->n_params * sizeof *tables) != 0)
            continue;
        *link = e->next;
        e->next = c->expansions;
        c->expansions = e;
        return qn_kernel_retain(e->expanded);
    }
    return NULL;
}

/** Drops all but the latest `most`, and returns what was dropped. The lock is held. */
static qn_expansion_entry *cut(qn_context *c, int most)
{
    qn_expansion_entry **link = &c->expansions;
    for (int i = 0; i < most && *link; i++)
        link = &(*link)->next;
    qn_expansion_entry *dropped = *link;
    *link = NULL;
    return dropped;
}

static void free_entries(qn_expansion_entry *e)
{
    while (e) {
        qn_expansion_entry *next = e->next;
        qn_kernel_release(e->expanded);
        qn__free(e);
        e = next;
    }
}

void qn__expansions_release(qn_context *c)
{
    free_entries(cut(c, 0));
}

static qn_status find_kernel(qn_context *c, const char *who, const qn_kernel *k,
                             const uint32_t *tables, qn_kernel **out, qn_error *err)
{
    qn__lock(c);
    *out = find(c, k, tables);
    qn__unlock(c);
    if (*out)
        return QN_OK;
    qn_error inner = {0};
    qn_expansion_entry *made = qn__alloc(sizeof *made);
    qn_status status = made ? qn__kernel_expand(k, tables, &made->expanded, &inner) : QN_ERR_MEMORY;
    if (status) {
        qn__free(made);
        return qn__fail(err, status, "%s: kernel \"%.60s\" with index lists: %s", who, k->name,
                        status == QN_ERR_MEMORY ? "no memory" : inner.message);
    }
    qn__lock(c);
    *out = find(c, k, tables); /* another thread may have been faster */
    bool is_new = !*out && !atomic_load(&c->is_released);
    if (!*out)
        *out = qn_kernel_retain(made->expanded);
    made->next = NULL;
    qn_expansion_entry *dropped = made;
    if (is_new) {
        made->next = c->expansions;
        c->expansions = made;
        dropped = cut(c, MOST_EXPANSIONS);
    }
    qn__unlock(c);
    free_entries(dropped);
    return QN_OK;
}

/* ---------------------------------------------------------------- arguments */

/** The view of a table: of the rank of the view it belongs to, and projected but in its dimension.
 */
static void table_view(const qn_view *v, int d, qn_view *out)
{
    const qn_table *t = v->layout.digits->table[d];
    *out = (qn_view){.data = (void *)(uintptr_t)t->value,
                     .label = t->label,
                     .dtype = QN_I64,
                     .space = t->space};
    if (!t->is_members)
        out->owner = qn__table_whole(t)->holder->list.owner;
    out->layout.rank = v->layout.rank;
    out->layout.projected = ((UINT32_C(1) << v->layout.rank) - 1) & ~(UINT32_C(1) << d);
    out->layout.dim[d] = (qn_dim){v->layout.dim[d].lower, t->n, t->stride};
}

/** Whether members that share elements are stored to. */
static bool may_collide(const qn_expansion *x, int i, const qn_view *v)
{
    int m = qn__layout_members(&v->layout);
    return (x->stored >> i & 1) && m >= 0 && v->layout.dim[m].extent > 1 &&
           !v->layout.digits->table[m]->is_disjoint;
}

static qn_status expand_view(const char *who, const qn_kernel *k, int i, const qn_view *v,
                             qn_expanded *out, qn_error *err)
{
    qn_view *under = &out->view[out->n_views++];
    uint32_t tables = qn__layout_tables(&v->layout);
    *under = *v;
    if (!qn__layout_expand(&v->layout, &under->layout))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: kernel \"%.60s\": argument %d (%.60s): rank %d and %d lists are more "
                        "than %d dimensions together, or have more than %d digits",
                        who, k->name, i, k->param[i].name, v->layout.rank,
                        __builtin_popcount(tables), QN_MAX_RANK, QN_MAX_DIGITS);
    if (may_collide(out->kernel->expansion, i, v))
        return qn__fail(err, QN_ERR_NOT_INJECTIVE,
                        "%s: kernel \"%.60s\": argument %d (%.60s): the kernel stores to it, and "
                        "members of the MultiView \"%.60s\" share elements",
                        who, k->name, i, k->param[i].name, qn__label(v->label));
    out->arg[i].view = under;
    for (int d = 0; d < v->layout.rank; d++) {
        if (!(tables >> d & 1))
            continue;
        qn_view *table = &out->view[out->n_views++];
        table_view(v, d, table);
        out->arg[out->n++] = (qn_arg){.view = table};
    }
    return QN_OK;
}

/** The stream of a launch; NULL on the host, and where the options are wrong: the checks of the
 * launch say so. */
static qn_stream *stream_of(qn_context *c, const qn_options *o)
{
    qn_stream *s = NULL;
    if (!o || o->executor != QN_CUDA || qn__stream_of(c, "", o->stream, &s, NULL))
        return NULL;
    return s;
}

/** Room for what arguments with these tables expand to, without a kernel. */
static qn_expanded *new_expanded(int n, const qn_arg *args, const uint32_t *tables)
{
    size_t n_views = 0;
    for (int i = 0; i < n; i++)
        n_views += tables[i] ? 1 + (size_t)__builtin_popcount(tables[i]) : 0;
    qn_expanded *e = qn__alloc(sizeof *e + n_views * sizeof *e->view);
    if (!e)
        return NULL;
    memcpy(e->arg, args, (size_t)n * sizeof *args);
    e->kernel = NULL;
    e->n = n;
    e->n_views = 0;
    e->owned = 0;
    e->stream = NULL;
    return e;
}

qn_status qn__expand(qn_context *c, const char *who, const qn_kernel *k, int n, const qn_arg *args,
                     const qn_options *o, qn_expanded **out, qn_error *err)
{
    uint32_t tables[QN_MAX_PARAMS];
    for (int i = 0; i < n; i++)
        tables[i] = args[i].view ? qn__layout_tables(&args[i].view->layout) : 0;
    qn_expanded *e = new_expanded(n, args, tables);
    if (!e)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\" with index lists: no memory", who,
                        k->name);
    qn_status status = find_kernel(c, who, k, tables, &e->kernel, err);
    for (int i = 0; i < n && status == QN_OK; i++)
        if (tables[i])
            status = expand_view(who, k, i, args[i].view, e, err);
    qn_stream *s = status ? NULL : stream_of(c, o);
    if (s)
        status = qn__cuda_tables_place(who, s, args, e, err);
    if (status) {
        qn__expanded_release(who, args, e);
    } else {
        e->stream = s;
        *out = e;
    }
    return status;
}

void qn__expanded_release(const char *who, const qn_arg *args, qn_expanded *e)
{
    if (e->stream)
        qn__cuda_tables_keep(who, e->stream, args, e);
    for (int i = 0; i < e->n; i++)
        if (e->owned >> i & 1)
            qn__buffer_release(e->arg[i].view->owner);
    qn_kernel_release(e->kernel);
    qn__free(e);
}

qn_status qn__state_open(qn_launch_state *l, const qn_kernel *k, const qn_options *o,
                         qn_expanded **e, qn_error *err)
{
    bool keeps_calls = ((o && o->debug) || l->printed) && !qn__has_tables(k, l->n, l->args);
    qn_status status =
        qn__late_atomics(keeps_calls ? k : qn__kernel_to_run(k), l->n, l->args, &l->kernel, err);
    if (status || !l->context || !qn__has_tables(l->kernel, l->n, l->args))
        return status;
    status = qn__expand(l->context, l->who, l->kernel, l->n, l->args, o, e, err);
    if (status)
        return status;
    l->given = l->args;
    l->kernel = (*e)->kernel;
    l->n = (*e)->n;
    l->args = (*e)->arg;
    return QN_OK;
}

void qn__state_close(const qn_launch_state *l, qn_expanded *e)
{
    if (l->given)
        qn__expanded_release(l->who, l->given, e);
}
