/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: index lists and MultiViews as arguments on a GPU. A list in memory that the GPU
 * reaches is read there. One of the host's may have changed since the last launch: each launch
 * copies it, in the order of its stream. Members never change: their offsets are copied once for
 * each GPU, and kept with the table. That positions and values are in range is checked on the GPU,
 * access by access, as on the host.
 */
#include "runtime/cuda/table.h"

#include "runtime/cuda/memory.h"
#include "runtime/table.h"

/** The offsets of all members on a GPU. */
typedef struct qn_table_copy {
    struct qn_table_copy *next;
    qn_gpu *gpu; /* kept by the view */
    qn_view view;
} qn_table_copy;

/** A table that became argument i: whose it is, and the table itself. */
static const qn_table *table_of(const qn_kernel *k, int i, const qn_view *given)
{
    return given->layout.digits->table[k->expansion->dim[i]];
}

bool qn__cuda_is_copied(const qn_table *t)
{
    return !t->is_members && !qn_exec_can_access(QN_EXEC_CUDA, t->space);
}

/* ---------------------------------------------------------------- lists */

/** The values of a list in a block, to be freed: the driver may read them later than the host
 * changes the list. */
static int64_t *pack(const char *who, const qn_table *t, qn_error *err)
{
    int64_t *packed = qn__alloc((size_t)t->n * sizeof *packed);
    if (!packed)
        qn__fail(err, QN_ERR_MEMORY, "%s: list \"%.80s\": no memory for %lld indices", who,
                 qn__label(t->label), (long long)t->n);
    for (int64_t p = 0; packed && p < t->n; p++)
        packed[p] = qn__table_value(t, p);
    return packed;
}

/** The view of a list becomes one of a copy, with a reference. */
static qn_status copy_list(const char *who, qn_stream *s, const qn_table *t, qn_view *list,
                           qn_error *err)
{
    list->space = QN_SPACE_CUDA;
    list->owner = NULL;
    if (t->n == 0)
        return QN_OK;
    int64_t *packed = pack(who, t, err);
    qn_view copy;
    qn_status status =
        packed ? qn__cuda_upload(who, s, t->label, t->n, packed, &copy, err) : QN_ERR_MEMORY;
    qn__free(packed);
    if (status)
        return status;
    list->data = copy.data;
    list->owner = copy.owner;
    for (int d = 0; d < list->layout.rank; d++)
        list->layout.dim[d].stride = list->layout.projected >> d & 1 ? 0 : 1;
    return QN_OK;
}

/** Copies a list again to where it was copied. */
static qn_status renew_list(const char *who, qn_stream *s, const qn_table *t, const qn_view *list,
                            qn_error *err)
{
    if (t->n == 0)
        return QN_OK;
    int64_t *packed = pack(who, t, err);
    qn_status status = packed
                           ? QN_CU(s->gpu, who, copy,
                                   ((qn_cu_ptr)(uintptr_t)list->data, (qn_cu_ptr)(uintptr_t)packed,
                                    (size_t)t->n * sizeof *packed, s->handle),
                                   err)
                           : QN_ERR_MEMORY;
    qn__free(packed);
    return status;
}

/* ---------------------------------------------------------------- members */

/** The offsets of all members on the GPU of a stream, copied now if need be. Borrowed from the
 * table. */
static qn_status offsets_on(const char *who, qn_stream *s, const qn_table *whole,
                            const qn_view **out, qn_error *err)
{
    qn_holder *h = whole->holder;
    for (qn_table_copy *at = atomic_load(&h->copies); at; at = at->next)
        if (at->gpu == s->gpu) {
            *out = &at->view;
            return QN_OK;
        }
    qn_table_copy *made = qn__alloc(sizeof *made);
    if (!made)
        return qn__fail(err, QN_ERR_MEMORY, "%s: MultiView \"%.80s\": no memory", who,
                        qn__label(whole->label));
    made->gpu = s->gpu;
    qn_status status =
        qn__cuda_upload(who, s->gpu->own, whole->label, whole->n, whole->value, &made->view, err);
    if (status) {
        qn__free(made);
        return status;
    }
    made->next =
        atomic_load(&h->copies); /* another thread may have made one, too: the first is found */
    while (!atomic_compare_exchange_weak(&h->copies, &made->next, made))
        ;
    *out = &made->view;
    return QN_OK;
}

void qn__cuda_copies_release(qn_table_copy *list)
{
    while (list) {
        qn_table_copy *next = list->next;
        qn_view_release(&list->view);
        qn__free(list);
        list = next;
    }
}

/** What qn__cuda_use does, for each member of a MultiView. */
static qn_status use_members(const char *who, qn_stream *s, const qn_view *v, const qn_table *t,
                             qn_error *err)
{
    const qn_table *whole = qn__table_whole(t);
    qn_status status = QN_OK;
    bool keep; /* the table is kept */
    if (qn_layout_size(&v->layout) == 0)
        return QN_OK;
    for (int64_t p = 0; p < t->n && status == QN_OK; p++) {
        int64_t at = &t->value[p * t->stride] - whole->value;
        const qn_view member = {.data = (char *)v->data + qn__table_value(t, p) * qn__unit_bytes(v),
                                .owner = whole->holder->member[at].owner,
                                .label = whole->holder->member[at].label,
                                .dtype = v->dtype,
                                .record = v->record,
                                .space = v->space};
        status = qn__cuda_use(s, who, &member, &keep, err);
    }
    return status;
}

/** The view of a MultiView's table becomes one of the offsets on the GPU. */
static qn_status place_members(const char *who, qn_stream *s, const qn_view *given,
                               const qn_table *t, qn_view *table, qn_error *err)
{
    const qn_table *whole = qn__table_whole(t);
    const qn_view *offsets = NULL;
    qn_status status = offsets_on(who, s, whole, &offsets, err);
    if (status)
        return status;
    table->data = (int64_t *)offsets->data + (t->value - whole->value);
    table->space = QN_SPACE_CUDA;
    table->owner = offsets->owner;
    qn__buffer_retain(table->owner);
    return qn_exec_can_access(QN_EXEC_CUDA, given->space) ? use_members(who, s, given, t, err)
                                                          : QN_OK;
}

/* ---------------------------------------------------------------- all of them */

qn_status qn__cuda_tables_place(const char *who, qn_stream *s, const qn_arg *given, qn_expanded *e,
                                qn_error *err)
{
    bool is_pushed = false;
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    for (int i = qn__n_given(e->kernel); i < e->n && status == QN_OK; i++) {
        const qn_view *v = given[e->kernel->expansion->param[i]].view;
        const qn_table *t = table_of(e->kernel, i, v);
        qn_view *table = &e->view[e->arg[i].view - e->view];
        if (t->is_members)
            status = place_members(who, s, v, t, table, err);
        else if (qn__cuda_is_copied(t))
            status = copy_list(who, s, t, table, err);
        else
            continue;
        e->owned |= table->owner ? UINT64_C(1) << i : 0;
    }
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}

static void drop_table(void *what)
{
    qn__table_release(what);
}

/** Keeps a table until the work of a stream so far is done. */
static void keep_table(const char *who, qn_stream *s, qn_table *t)
{
    bool is_pushed = false;
    if (qn__gpu_enter(s->gpu, who, &is_pushed, NULL) != QN_OK)
        return; /* nothing runs there any more */
    if (qn__stream_begin(s, who, 1, NULL, NULL, NULL) == QN_OK) {
        qn__table_retain(t);
        qn__stream_keep(s, drop_table, t);
        qn__stream_end(s);
    } else {
        qn__stream_wait(s, who, NULL);
    }
    qn__gpu_leave(s->gpu, is_pushed);
}

void qn__cuda_tables_keep(const char *who, qn_stream *s, const qn_arg *given, const qn_expanded *e)
{
    for (int i = qn__n_given(e->kernel); i < e->n; i++) {
        const qn_view *v = given[e->kernel->expansion->param[i]].view;
        const qn_table *t = table_of(e->kernel, i, v);
        if (t->is_members)
            keep_table(who, s, v->layout.digits->table[e->kernel->expansion->dim[i]]);
    }
}

qn_status qn__cuda_tables_renew(const char *who, qn_stream *s, const qn_kernel *k,
                                const qn_view *given, const qn_arg *args, qn_error *err)
{
    bool is_pushed = false;
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    bool has_begun =
        status == QN_OK && (status = qn__stream_begin(s, who, 0, NULL, NULL, err)) == QN_OK;
    for (int i = qn__n_given(k); i < k->n_params && status == QN_OK; i++) {
        const qn_view *v = &given[k->expansion->param[i]];
        const qn_table *t = table_of(k, i, v);
        if (t->is_members)
            status = use_members(who, s, v, t, err);
        else if (qn__cuda_is_copied(t))
            status = renew_list(who, s, t, args[i].view, err);
    }
    if (has_begun)
        qn__stream_end(s);
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}
