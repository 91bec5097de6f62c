/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c: what one launch of a kernel moves and computes, as its text says. Bytes are those of the
 * distinct elements of the views that it reads, plus of those that it writes; what caches save or
 * lines waste is not in them. Floating-point operations are counted for bodies in which every point
 * of the domain does the same.
 */
#include "ir/ir.h"

#include <string.h>

/** Floating-point operations of one evaluation. */
static int64_t weight(const qn_inst *x)
{
    if (qn__dtype_class(x->type) != QN_CLASS_F)
        return 0;
    switch (qn__pure(x)) {
    case QN_OP_fma:
        return 2;
    case QN_OP_add:
    case QN_OP_sub:
    case QN_OP_mul:
    case QN_OP_div:
    case QN_OP_neg:
    case QN_OP_abs:
    case QN_OP_min:
    case QN_OP_max:
    case QN_OP_sqrt:
    case QN_OP_floor:
    case QN_OP_ceil:
    case QN_OP_round:
    case QN_OP_trunc:
        return 1;
    default:
        return x->op == QN_I_REDUCE;
    }
}

/** Whether how often instructions run is not known from the domain. */
static bool varies(const qn_inst *x)
{
    return x->op == QN_I_IF || x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_CALL;
}

static int64_t extent_of(const qn_domain *domain, int d)
{
    return domain->end[d] - domain->begin[d];
}

/** Points of all reduces that instruction i stands in, itself included. */
static bool multiply_reduces(const qn_kernel *k, uint32_t i, const qn_domain *domain, int64_t *n)
{
    for (; i; i = k->inst[i].parent)
        for (int d = 0; k->inst[i].op == QN_I_REDUCE && d < k->inst[i].n_args; d++)
            if (__builtin_mul_overflow(*n, extent_of(domain, qn__dim_of(k, i, d)), n))
                return false;
    return true;
}

static int64_t count_flops(const qn_kernel *k, const qn_domain *domain)
{
    int64_t points = domain->is_empty ? 0 : 1, sum = 0;
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d) &&
            __builtin_mul_overflow(points, extent_of(domain, d), &points))
            return -1;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        int64_t n = weight(&k->inst[i]);
        if (varies(&k->inst[i]))
            return -1;
        if (n && (__builtin_mul_overflow(n, points, &n) || !multiply_reduces(k, i, domain, &n) ||
                  __builtin_add_overflow(sum, n, &sum)))
            return -1;
    }
    return sum;
}

/** Bytes of the distinct elements of a view. */
static int64_t bytes_of(const qn_view *v)
{
    int64_t n = qn_layout_size(&v->layout), span = v->unit ? -1 : qn_layout_span(&v->layout), bytes;
    n = span >= 0 && span < n ? span : n;
    return __builtin_mul_overflow(n, qn__element_bytes(v), &bytes) ? INT64_MAX : bytes;
}

qn_status qn__arg_domain(const qn_kernel *k, const qn_arg *args, bool is_strict, qn_domain *out,
                         qn_error *err)
{
    qn_arg_value value[QN_MAX_PARAMS];
    for (int i = 0; i < k->n_params; i++) {
        bool is_view = k->param[i].rank >= 0;
        value[i] = (qn_arg_value){.layout = is_view ? &args[i].view->layout : NULL,
                                  .bits = is_view ? 0 : args[i].bits,
                                  .high = is_view ? 0 : args[i].high};
    }
    return qn__domain(k, value, is_strict, out, err);
}

qn_status qn__work_of(const qn_kernel *k, const qn_arg *args, qn_work *out, qn_error *err)
{
    qn_domain domain;
    qn_status status = qn__arg_domain(k, args, false, &domain, err);
    *out = (qn_work){.flops = status ? 0 : count_flops(k, &domain)};
    if (status)
        return status;
    for (int i = 0; i < k->n_params; i++) {
        const qn_kernel_parameter *p = &k->param[i];
        int64_t bytes;
        if (p->rank < 0 ||
            __builtin_mul_overflow(bytes_of(args[i].view), p->is_read + p->is_written, &bytes) ||
            __builtin_add_overflow(out->bytes, bytes, &bytes))
            continue; /* no memory has so many */
        out->bytes = bytes;
    }
    return QN_OK;
}

qn_status qn_kernel_work(const qn_kernel *k, int n, const qn_arg *args, qn_work *out,
                         size_t out_bytes, qn_error *err)
{
    const char *who = "qn_kernel_work";
    if (!k || !args || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !k      ? "kernel"
                        : !args ? "args"
                                : "out");
    if (n != k->n_params)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": %d arguments for %d parameters", who, k->name, n,
                        k->n_params);
    for (int i = 0; i < n; i++) {
        const qn_view *v = args[i].view;
        bool is_view = k->param[i].rank >= 0;
        if (is_view != (v != NULL) || (is_view && v->layout.rank != k->param[i].rank))
            return qn__fail(err, QN_ERR_ARGUMENT,
                            "%s: kernel \"%.60s\": argument %d (%.60s) is no %s", who, k->name, i,
                            k->param[i].name, is_view ? "view of its rank" : "scalar");
        qn_status status = is_view ? qn__view_check(v, who, err) : QN_OK;
        if (status)
            return status;
    }
    qn_work work;
    qn_status status = qn__work_of(qn__kernel_to_run(k), args, &work, err);
    if (status)
        return status;
    qn__struct_give(&work, sizeof work, out, out_bytes);
    return QN_OK;
}
