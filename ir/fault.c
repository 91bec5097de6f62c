/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c: from the fault record of a launch to one line for people: kernel, view, argument,
 * dimension, indices, extents, iteration. Formats only here, after the launch, never while a kernel
 * runs.
 */
#include "ir/function.h"
#include "ir/location.h"

#include <inttypes.h>

/* How deep the operand tree of a `while` limit is followed; deeper limits are left out of the
 * message. */
enum { LIMIT_DEPTH = 6 };

static void add_list(qn_text *t, int n, const int64_t *values)
{
    for (int i = 0; i < n; i++)
        qn__text_add(t, "%s%" PRId64, i ? "," : "", values[i]);
}

void qn__text_iteration(qn_text *t, const qn_kernel *k, uint64_t iteration, const qn_domain *domain,
                        const char *before)
{
    int64_t index[QN_MAX_RANK];
    int n = 0;
    for (int d = k->n_dims - 1; d >= 0; d--) {
        if (qn__is_reduction(k, d))
            continue;
        uint64_t extent = (uint64_t)domain->end[d] - (uint64_t)domain->begin[d];
        if (extent == 0)
            return;
        index[n++] = (int64_t)((uint64_t)domain->begin[d] + iteration % extent);
        iteration /= extent;
    }
    if (n == 0)
        return;
    for (int i = 0; i < n / 2; i++) {
        int64_t swapped = index[i];
        index[i] = index[n - 1 - i];
        index[n - 1 - i] = swapped;
    }
    qn__text_add(t, "%siteration (", before);
    add_list(t, n, index);
    qn__text_add(t, ")");
}

/** The first dimension whose index is out of range, or -1. */
static int failing_dim(const qn_layout *l, const int64_t *index)
{
    for (int d = 0; d < l->rank; d++) {
        bool is_projected = (l->projected >> d & 1) != 0;
        uint64_t distance = (uint64_t)index[d] - (uint64_t)l->dim[d].lower;
        if (!is_projected && distance >= (uint64_t)l->dim[d].extent)
            return d;
    }
    return -1;
}

/** An access as the caller of the launch wrote it, whose lists were still dimensions. */
typedef struct access {
    int param, rank, dim; /* dim: the failing dimension, or -1 */
    int64_t index[QN_MAX_RANK], lower[QN_MAX_RANK], extent[QN_MAX_RANK];
    const qn_view *list; /* that gave a bad value, or NULL */
    int64_t value, value_lower, value_extent;
} access;

/** The table of dimension d of parameter p: the number of the parameter that it became. */
static int list_of(const qn_kernel *k, int p, int d)
{
    int i = qn__n_given(k);
    while (k->expansion->param[i] != p || k->expansion->dim[i] != d)
        i++;
    return i;
}

/** The view parameter of the access that failed. */
static int param_of(const qn_kernel *k, const qn_fault *f)
{
    return f->site < 0 ? (int)(-1 - f->site) : (int)k->inst[k->access[f->site].inst].imm;
}

/** What it was: "load", "store" or "atomic". */
static const char *kind_of(const qn_kernel *k, const qn_fault *f, int param)
{
    if (f->site < 0)
        return "load"; /* a function has no others */
    const qn_access *at = &k->access[f->site];
    while ((int)k->inst[at->inst].imm != param) /* a list is loaded just before the access */
        at++;
    int op = k->inst[at->inst].op;
    return op == QN_I_LOAD ? "load" : op == QN_I_STORE ? "store" : "atomic";
}

static access find_access(const qn_kernel *k, const qn_fault *f, const qn_arg *args)
{
    int p = param_of(k, f), list_dim = -1;
    bool is_list = p >= qn__n_given(k);
    const qn_layout *seen = &args[p].view->layout;
    access a = {.param = p, .dim = failing_dim(seen, f->index)};
    if (is_list) {
        list_dim = k->expansion->dim[p];
        a.param = k->expansion->param[p];
    }
    const qn_layout *l = &args[a.param].view->layout;
    uint32_t tables = k->expansion ? k->expansion->tables[a.param] : 0;
    a.rank = l->rank - __builtin_popcount(tables);
    for (int d = 0, at = a.rank; d < a.rank; d++) {
        bool has_table = (tables >> d & 1) != 0;
        int from = has_table ? at++ : d;
        a.index[d] = is_list ? f->index[d] : f->index[from];
        a.lower[d] = l->dim[from].lower;
        a.extent[d] = l->dim[from].extent;
        if (a.dim == from)
            a.dim = d;
        else if (!is_list && a.dim == d && has_table)
            a.list = args[list_of(k, a.param, d)].view;
    }
    if (is_list)
        a.dim = list_dim;
    if (a.list) {
        a.value = f->index[a.dim];
        a.value_lower = l->dim[a.dim].lower;
        a.value_extent = l->dim[a.dim].extent;
    }
    return a;
}

/** Appends 'view "x", argument 0'. */
static void add_view(qn_text *t, const qn_kernel *k, int param, const qn_arg *args)
{
    const qn_view *v = args[param].view;
    const char *label = v->label && v->label[0] ? v->label : k->param[param].name;
    qn__text_add(t, "view \"%s\", argument %d", label, param);
}

void qn__text_element(qn_text *t, const qn_kernel *k, const qn_fault *f, const qn_arg *args)
{
    access a = find_access(k, f, args);
    qn__text_add(t, "[");
    add_list(t, a.rank, a.index);
    qn__text_add(t, "] of ");
    add_view(t, k, a.param, args);
}

static void add_bounds(qn_text *t, const qn_kernel *k, const qn_fault *f, const qn_arg *args)
{
    access a = find_access(k, f, args);
    qn__text_add(t, "out-of-bounds %s: ", kind_of(k, f, a.param));
    add_view(t, k, a.param, args);
    int d = a.dim;
    if (a.list)
        qn__text_add(t, ", dimension %d: list \"%.80s\" holds %" PRId64 " at position %" PRId64
                     ", not in [%" PRId64 ",%" PRId64 ")",
                     d, qn__label(a.list->label), a.value, a.index[d],
                     a.value_lower, (int64_t)((uint64_t)a.value_lower + (uint64_t)a.value_extent));
    else if (d >= 0)
        qn__text_add(t, ", dimension %d: index %" PRId64 " not in [%" PRId64 ",%" PRId64 ")", d,
                     a.index[d], a.lower[d],
                     (int64_t)((uint64_t)a.lower[d] + (uint64_t)a.extent[d]));
    qn__text_add(t, "; indices [");
    add_list(t, a.rank, a.index);
    qn__text_add(t, "], extents [");
    add_list(t, a.rank, a.extent);
    qn__text_add(t, "]");
}

/** Value of a uniform instruction that depends on arguments only; clears *known where it does not.
 */
static uint64_t value_of(const qn_kernel *k, uint32_t i, const qn_arg *args, int depth, bool *known)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *operand = qn__args(k, i);
    switch (x->op) {
    case QN_I_CONST:
        return x->imm;
    case QN_I_PARAM:
        return qn__arg_part(x->type, args[x->imm].bits, args[x->imm].high, x->sub);
    case QN_I_EXTENT:
        return (uint64_t)args[x->imm].view->layout.dim[x->sub].extent;
    case QN_I_LOWER:
        return (uint64_t)args[x->imm].view->layout.dim[x->sub].lower;
    }
    if (!qn__is_pure(x) || depth == 0) {
        *known = false;
        return 0;
    }
    uint64_t v[3] = {0, 0, 0};
    for (int j = 0; j < x->n_args; j++)
        v[j] = value_of(k, operand[j], args, depth - 1, known);
    int type = k->inst[operand[x->n_args - 1]].type;
    if (x->op == QN_I_LOOKUP)
        return qn__lookup(qn__array_of(k, i), (int64_t)v[0]);
    if (x->op == QN_I_CAST)
        return qn__eval_cast(x->type, type, v[0]);
    if (x->op == QN_I_BITCAST)
        return qn__eval_bitcast(x->type, type, v[0]);
    return qn__eval_op(qn__pure(x), type, v[0], v[1], v[2]);
}

static void add_limit(qn_text *t, const qn_kernel *k, const qn_fault *f, const qn_arg *args)
{
    uint32_t inst = f->site == QN_SITE_UNKNOWN ? 0 : (uint32_t)(-1 - f->site);
    bool known = inst > 0;
    uint64_t limit = known ? value_of(k, qn__args(k, inst)[0], args, LIMIT_DEPTH, &known) : 0;
    qn__text_add(t, "while reached its limit");
    if (known)
        qn__text_add(t, " of %" PRId64 " trips", (int64_t)limit);
}

void qn__domain_of_args(const qn_kernel *k, int n, const qn_arg *args, qn_domain *out)
{
    qn_arg_value values[QN_MAX_PARAMS];
    for (int p = 0; p < n; p++)
        values[p] = (qn_arg_value){.layout = args[p].view ? &args[p].view->layout : NULL,
                                   .bits = args[p].bits,
                                   .high = args[p].high};
    if (qn__domain(k, values, false, out, NULL))
        *out = (qn_domain){.is_empty = true};
}

uint32_t qn__inst_of_site(const qn_kernel *k, int64_t site, const qn_kernel **in)
{
    uint64_t at = (uint64_t)(-1 - site);
    *in = at >> 32 ? &k->function[(at >> 32) - 1]->body : k;
    return (uint32_t)at;
}

/** Appends 'assertion "text" failed: 1, 2.5'. */
static void add_assert(qn_text *t, const qn_kernel *k, const qn_fault *f)
{
    const qn_kernel *in;
    uint32_t inst = qn__inst_of_site(k, f->site, &in);
    const uint32_t *args = qn__args(in, inst);
    qn__text_add(t, "assertion \"%s\" failed", in->message[in->inst[inst].imm]);
    for (int n = 1; n < in->inst[inst].n_args; n++) {
        qn__text_add(t, n == 1 ? ": " : ", ");
        qn__text_value(t, in->inst[args[n]].type, (uint64_t)f->index[n - 1]);
    }
}

/** Appends the place of the instruction that failed, and returns its line. */
static int add_place(qn_text *t, const qn_kernel *k, const qn_fault *f)
{
    const qn_kernel *in;
    if (f->status == QN_ERR_ASSERT) {
        uint32_t inst = qn__inst_of_site(k, f->site, &in);
        return qn__text_location(t, in, inst);
    }
    if (f->status == QN_ERR_LIMIT)
        return f->site == QN_SITE_UNKNOWN ? 0 : qn__text_location(t, k, (uint32_t)(-1 - f->site));
    return f->site < 0 ? 0 : qn__text_location(t, k, k->access[f->site].inst);
}

qn_status qn__fault_report(const qn_kernel *k, const qn_fault *f, int n, const qn_arg *args,
                           qn_error *err)
{
    qn_text t = {0};
    if (f->status == QN_ERR_LIMIT)
        add_limit(&t, k, f, args);
    else if (f->status == QN_ERR_ASSERT)
        add_assert(&t, k, f);
    else
        add_bounds(&t, k, f, args);
    qn_domain domain;
    qn__domain_of_args(k, n, args, &domain);
    qn__text_iteration(&t, k, f->iteration, &domain, "; ");
    int line = add_place(&t, k, f);
    qn__fail_line(
        err, (qn_status)f->status, line, "qn_launch: kernel \"%s\": %s", k->name,
        t.data && !t.failed ? t.data : "out of bounds, limit or assertion (no memory for details)");
    qn__text_release(&t);
    return (qn_status)f->status;
}
