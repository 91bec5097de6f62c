/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c: functions under construction, calls of functions, and the body of a kernel built inside
 * another. A call is one instruction; what it returns follows as result instructions. Calls are
 * numbered like ops and loads, as equal arguments give equal results.
 */
#include "ir/function.h"
#include "ir/replay.h"

#include <string.h>

/* ---------------------------------------------------------------- functions */

qn_builder *qn_function_new(const char *name, uint32_t flags)
{
    qn_builder *b = qn__builder_make("qn_function_new", name, flags);
    if (!b)
        return NULL;
    b->is_function = true;
    if (name && flags & ~(uint32_t)QN_CONTRACT)
        qn__builder_fail(b, QN_ERR_ARGUMENT,
                         "qn_function_new: flags 0x%x: a function takes QN_CONTRACT only",
                         (unsigned)flags);
    return b;
}

/** The results as the last instruction of the body. */
static bool append_return(qn_builder *b, const char *who, int n, const qn_val *results,
                          qn_flat *flat)
{
    uint32_t number[QN_MAX_CARRIED];
    if (!qn__flatten(b, who, "result", n, results, flat))
        return false;
    if (n == 0) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: no result: a function returns a value", who);
        return false;
    }
    for (int i = 0; i < n; i++)
        if ((flat->shape[i] & 0xff) == QN_RECORD) {
            qn__builder_fail(b, QN_ERR_UNSUPPORTED, "%s: result %d is a record: return its fields",
                             who, i);
            return false;
        }
    for (int i = 0; i < flat->n; i++)
        number[i] = qn__number(flat->value[i]);
    return qn__append(b, who, (qn_inst){.op = QN_I_RETURN}, (uint32_t)flat->n, number) != 0;
}

/** Calls inside each other in a body. */
static int call_depth(const qn_kernel *body)
{
    int depth = 0;
    for (int i = 0; i < body->n_functions; i++)
        depth = body->function[i]->depth > depth ? body->function[i]->depth : depth;
    return depth;
}

/** What callers ask of a body. */
static void describe(qn_function *f, const qn_flat *results)
{
    for (int p = 0; p < f->body.n_params; p++) {
        const qn_kernel_parameter *param = &f->body.param[p];
        f->n_views += param->rank >= 0;
        f->n_values += param->rank >= 0 ? 0 : qn__n_parts(param->dtype, NULL);
    }
    f->n_results = results->n_values;
    f->n_flat = results->n;
    memcpy(f->shape, results->shape, sizeof f->shape);
    qn__measure_calls(&f->body, &f->n_inlined, &f->n_regions, &f->height);
    qn__measure_frames(&f->body, &f->frame_values, &f->frame_places);
    f->stack_bytes = qn__interpret_stack(&f->body);
    f->depth = 1 + call_depth(&f->body);
    f->frame_values += f->body.n_insts;
    f->frame_places += (uint32_t)f->body.n_params;
}

qn_status qn_function_finish(qn_builder *b, int n, const qn_val *results, qn_function **out,
                             qn_error *err)
{
    const char *who = "qn_function_finish";
    if (!b || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, b ? "out" : "builder");
    qn_flat flat;
    if (qn__builder_ready(b, who) && !b->is_function)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: this is a kernel: qn_finish ends it", who);
    if (!qn__builder_closed(b, who) || !append_return(b, who, n, results, &flat))
        return qn_builder_status(b, err);
    b->is_finished = true;
    qn_function *f = qn__zalloc(1, sizeof *f);
    if (!f) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
        return qn_builder_status(b, err);
    }
    if (qn__finish_body(b, &f->body, &b->error)) {
        qn__kernel_free(&f->body);
        return qn_builder_status(b, err);
    }
    describe(f, &flat);
    if (f->n_values <= QN_MAX_CARRIED) {
        *out = f;
        return QN_OK;
    }
    qn__builder_fail(b, QN_ERR_LIMIT, "%s: %d values as parameters, limit %d", who, f->n_values,
                     QN_MAX_CARRIED);
    qn_function_release(f);
    return qn_builder_status(b, err);
}

/* ---------------------------------------------------------------- calls */

/** The number of a function in this builder, or -1 after an error. */
static int enter_function(qn_builder *b, const char *who, const qn_function *f)
{
    if (!b->function)
        b->function = qn__zalloc(QN_MAX_FUNCTIONS, sizeof(qn_function *));
    if (!b->function) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
        return -1;
    }
    qn_error e = {0};
    int i = qn__list_function(b->function, &b->n_functions, f, who, &e);
    if (i < 0)
        qn__builder_fail(b, (qn_status)e.status, "%s", e.message);
    return i;
}

/** The scalars of the arguments, of the dtypes of the parameters, at args[0..n_values). */
static bool use_arguments(qn_builder *b, const char *who, const qn_function *f, int n,
                          const qn_val *values, uint32_t *args)
{
    qn_flat flat;
    int at = 0, given = 0;
    const qn_kernel *body = &f->body;
    if (!qn__flatten(b, who, "argument", n, values, &flat))
        return false;
    for (int p = 0; p < body->n_params; p++) {
        const qn_kernel_parameter *param = &body->param[p];
        if (param->rank >= 0)
            continue;
        if (given == n) {
            given++;
            break;
        }
        int type = (int)qn_type_of(b, values[given]);
        if (type != param->dtype) {
            qn__builder_fail(
                b, QN_ERR_TYPE,
                "%s: call of \"%.60s\": argument %d%s is %s, parameter \"%.60s\" is %s", who,
                body->name, given,
                qn__origin(b, qn__number(values[given]), (char[ORIGIN_BYTES]){0}),
                qn_dtype_name(type), param->name, qn_dtype_name(param->dtype));
            return false;
        }
        for (int i = 0; i < qn__n_parts(param->dtype, NULL); i++, at++)
            args[at] = qn__number(flat.value[at]);
        given++;
    }
    if (given == n)
        return true;
    qn__builder_fail(b, QN_ERR_ARGUMENT,
                     "%s: call of \"%.100s\": the function takes %d values, not %d", who,
                     body->name, body->n_params - f->n_views, n);
    return false;
}

/** The views, as instructions at args[0..n_views). */
static bool use_views(qn_builder *b, const char *who, const qn_function *f, int n,
                      const qn_param *views, uint32_t *args)
{
    const qn_kernel *body = &f->body;
    if (n != f->n_views || (n && !views)) {
        qn__builder_fail(b, QN_ERR_ARGUMENT,
                         "%s: call of \"%.100s\": the function takes %d views, not %d", who,
                         body->name, f->n_views, views ? n : 0);
        return false;
    }
    for (int p = 0, at = 0; p < body->n_params; p++) {
        const qn_kernel_parameter *param = &body->param[p];
        if (param->rank < 0)
            continue;
        const qn_kernel_parameter *view = qn__view_of(b, who, views[at]);
        if (!view)
            return false;
        bool is_same = view->dtype == param->dtype && view->rank == param->rank &&
                       (!param->record || qn_record_equal(view->record, param->record));
        if (!is_same) {
            qn__builder_fail(
                b, QN_ERR_TYPE,
                "%s: call of \"%.60s\": view \"%.60s\" is %s[%d], parameter \"%.60s\" is %s[%d]",
                who, body->name, view->name, qn_dtype_name(view->dtype), view->rank, param->name,
                qn_dtype_name(param->dtype), param->rank);
            return false;
        }
        qn_inst x = {.op = QN_I_VIEW, .imm = views[at].id - 1};
        args[at++] = qn__append_numbered(b, who, x, 0, NULL);
    }
    return true;
}

/** Whether the body of a function has a use for a part of a parameter. */
static bool takes(const qn_function *f, int parameter, int part)
{
    const qn_inst *inst = f->body.inst;
    for (uint32_t i = 1; i < f->body.n_insts && inst[i].op == QN_I_PARAM; i++)
        if (inst[i].imm == (uint64_t)parameter && inst[i].sub == part)
            return true;
    return false;
}

/** Gives zeros for what the function ignores, so that nothing is computed or loaded for it. */
static void drop_ignored(qn_builder *b, const char *who, const qn_function *f, uint32_t *args)
{
    for (int p = 0, at = 0; p < f->body.n_params; p++) {
        int n = f->body.param[p].rank < 0 ? qn__n_parts(f->body.param[p].dtype, NULL) : 0;
        for (int part = 0; part < n; part++, at++)
            if (!takes(f, p, part))
                args[at] = qn__append_const(b, who, b->inst[args[at]].type, 0);
    }
}

/** The result instructions of call i, which follow it or are appended. */
static void take_results(qn_builder *b, const char *who, const qn_function *f, uint32_t i,
                         qn_val *results)
{
    const qn_inst *end = &f->body.inst[qn__return_of(f)];
    const uint32_t *returned = qn__args(&f->body, qn__return_of(f));
    qn_val flat[QN_MAX_CARRIED];
    for (int r = 0; r < end->n_args; r++) {
        uint32_t at = i + 1 + (uint32_t)r;
        qn_inst x = {.op = QN_I_RESULT, .type = f->body.inst[returned[r]].type, .imm = (uint64_t)r};
        if (at == b->n_insts && !qn__append(b, who, x, 1, &i))
            return;
        flat[r] = qn__value(b, at, 0);
    }
    qn__unflatten(b, who, f->n_results, f->shape, flat, results);
}

static void clear(const qn_function *f, qn_val *results)
{
    for (int i = 0; f && results && i < f->n_results; i++)
        results[i] = (qn_val){0};
}

void qn__invoke(qn_builder *b, const char *who, const qn_function *f, int n_values,
                const qn_val *values, int n_views, const qn_param *views, qn_val *results)
{
    uint32_t args[QN_MAX_CARRIED + QN_MAX_PARAMS];
    clear(f, results);
    if (!qn__builder_ready(b, who))
        return;
    if (!f || !results) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s is NULL", who, f ? "results" : "function");
        return;
    }
    if (b->depth + f->height > QN_MAX_NESTING) {
        qn__builder_fail(b, QN_ERR_LIMIT,
                         "%s: call of \"%.100s\": the function has %d regions inside each other "
                         "and is called inside %d, "
                         "limit %d",
                         who, f->body.name, f->height, b->depth, QN_MAX_NESTING);
        return;
    }
    if (f->depth + b->is_function > QN_MAX_CALL_DEPTH) {
        qn__builder_fail(b, QN_ERR_LIMIT,
                         "%s: call of \"%.100s\": the function is the first of %d calls inside "
                         "each other, limit %d",
                         who, f->body.name, f->depth + b->is_function, QN_MAX_CALL_DEPTH);
        return;
    }
    int number = enter_function(b, who, f);
    if (number < 0 || !use_arguments(b, who, f, n_values, values, args) ||
        !use_views(b, who, f, n_views, views, args + f->n_values))
        return;
    drop_ignored(b, who, f, args);
    uint32_t n = (uint32_t)(f->n_values + f->n_views);
    qn_inst x = {.op = QN_I_CALL, .imm = (uint64_t)number};
    uint32_t i = (f->body.has_prints ? qn__append : qn__append_numbered)(b, who, x, n, args);
    if (i)
        take_results(b, who, f, i, results);
    if (b->error.status)
        clear(f, results);
}

void qn_invoke(qn_builder *b, const qn_function *f, int n_values, const qn_val *values, int n_views,
               const qn_param *views, qn_val *results)
{
    qn__invoke(b, "qn_invoke", f, n_values, values, n_views, views, results);
}

/* ---------------------------------------------------------------- kernels inside kernels */

/** Gives the parameters and dimensions of r->k their values here. */
static bool bind(qn_replay *r, const char *who, int n_index, const qn_val *index, int n_values,
                 const qn_val *values, int n_views, const qn_param *views)
{
    const qn_kernel *k = r->k;
    qn_val scalar[QN_MAX_PARAMS] = {{0}};
    int n_scalars = 0, n_seen = 0;
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0 && n_scalars++ < n_values)
            scalar[p] = values[n_scalars - 1];
        else if (k->param[p].rank >= 0 && n_seen++ < n_views)
            r->param[p] = views[n_seen - 1];
    }
    if (n_index != k->n_dims || n_scalars != n_values || n_seen != n_views) {
        qn__builder_fail(r->b, QN_ERR_ARGUMENT,
                         "%s: call of \"%.100s\": the kernel takes %d indices, %d values and %d "
                         "views, not %d, %d, %d",
                         who, k->name, k->n_dims, n_scalars, n_seen, n_index, n_values, n_views);
        return false;
    }
    for (int p = 0; p < k->n_params; p++) {
        const qn_kernel_parameter *param = &k->param[p];
        const qn_kernel_parameter *view =
            param->rank < 0 ? NULL : qn__view_of(r->b, who, r->param[p]);
        int type = param->rank < 0 ? (int)qn_type_of(r->b, scalar[p])
                   : view          ? view->dtype
                                   : QN_VOID;
        int rank = view ? view->rank : -1;
        if (r->b->error.status)
            return false;
        if (type == param->dtype && rank == param->rank &&
            (!param->record || qn_record_equal(view->record, param->record)))
            continue;
        qn__builder_fail(r->b, QN_ERR_TYPE,
                         "%s: call of \"%.60s\": parameter \"%.60s\" is %s, rank %d; the argument "
                         "is %s, rank %d",
                         who, k->name, param->name, qn_dtype_name(param->dtype), param->rank,
                         qn_dtype_name(type), rank);
        return false;
    }
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_PARAM) {
            qn_val whole = scalar[k->inst[i].imm];
            bool has_parts = qn__has_parts(k->param[k->inst[i].imm].dtype);
            r->value[i] = has_parts ? qn__value_part(r->b, whole, k->inst[i].sub) : whole;
        }
    for (int d = 0; d < n_index; d++) {
        uint32_t number;
        bool is_reduction = qn__is_reduction(k, d);
        if (is_reduction)
            r->value[k->dim[d]] = index[d]; /* checked where a reduce names it */
        else if (qn__use_index(r->b, who, "index", index[d], &number))
            r->value[k->dim[d]] = qn__value(r->b, number, 0);
    }
    return r->b->error.status == QN_OK;
}

static bool is_bound(qn_replay *r, uint32_t i)
{
    return r->k->inst[i].op == QN_I_DIM;
}

void qn_apply(qn_builder *b, const qn_kernel *k, int n_index, const qn_val *index, int n_values,
              const qn_val *values, int n_views, const qn_param *views)
{
    const char *who = "qn_apply";
    if (!qn__builder_ready(b, who))
        return;
    if (!k || (n_index > 0 && !index) || (n_values > 0 && !values) || (n_views > 0 && !views)) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s", who,
                         k ? "a list is NULL" : "kernel is NULL");
        return;
    }
    qn_replay r = {
        .k = k, .b = b, .special = is_bound, .value = qn__zalloc(k->n_insts, sizeof *r.value)};
    bool keeps_products = b->keeps_products;
    if (!r.value) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
        return;
    }
    b->keeps_products = true;
    if (bind(&r, who, n_index, index, n_values, values, n_views, views))
        qn__replay_region(&r, 1, k->n_insts);
    b->keeps_products = keeps_products;
    qn__free(r.value);
}
