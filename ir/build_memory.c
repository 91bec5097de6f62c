/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_memory.c: loads, stores and atomics. Every store and atomic, to any view, starts a new
 * version of the memory; loads are numbered per version, loads of atomic views never.
 */
#include "ir/builder.h"

#include <stdio.h>

bool qn__use_indices(qn_builder *b, const char *who, const qn_kernel_parameter *view, int n,
                     const qn_val *index, uint32_t *out)
{
    const uint8_t *kinds = b->kind[view - b->param];
    if (n != view->rank) {
        qn__builder_fail(b, QN_ERR_RANK, "%s: view \"%.100s\": %d indices for rank %d", who,
                         view->name, n, view->rank);
        return false;
    }
    if (n > 0 && !index) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: view \"%.100s\": indices are NULL", who,
                         view->name);
        return false;
    }
    for (int i = 0; i < n; i++) {
        char label[160];
        snprintf(label, sizeof label, "view \"%.100s\": index %d", view->name, i);
        if (!qn__use_index(b, who, label, index[i], &out[i]) ||
            !qn__has_kind(b, who, label, index[i], kinds[i]))
            return false;
    }
    return true;
}

bool qn__can_write(qn_builder *b, const char *who, const qn_kernel_parameter *view)
{
    if (b->is_function) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: function \"%.60s\" stores nothing: view \"%.60s\"", who, b->name,
                         view->name);
        return false;
    }
    if (view->traits & (QN_READ_ONLY | QN_RANDOM_ACCESS)) {
        qn__builder_fail(b, QN_ERR_READ_ONLY, "%s: view \"%.100s\" is %s", who, view->name,
                         view->traits & QN_READ_ONLY ? "read-only" : "random-access: read-only");
        return false;
    }
    for (int d = 0; d < b->depth; d++)
        if (b->frame[d].op == QN_I_REDUCE) {
            qn__builder_fail(b, QN_ERR_BUILD, "%s: view \"%.100s\": inside a reduce", who,
                             view->name);
            return false;
        }
    return true;
}

/** The value of an access, usable and of the view's dtype: its number in *out. */
static bool use_value(qn_builder *b, const char *who, const qn_kernel_parameter *view,
                      const char *what, qn_val v, uint32_t *out)
{
    char label[160];
    snprintf(label, sizeof label, "view \"%.100s\": %s", view->name, what);
    if (!qn__use(b, who, label, v, out))
        return false;
    if (qn__is_element_of(b, view, *out))
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: %s is %s, the view's elements are %s", who, label,
                     qn_dtype_name(b->inst[*out].type), qn_dtype_name(view->dtype));
    return false;
}

qn_val qn_load(qn_builder *b, qn_param p, int n, const qn_val *index)
{
    const char *who = "qn_load";
    uint32_t args[QN_MAX_RANK];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !qn__use_indices(b, who, view, n, index, args))
        return (qn_val){0};
    return qn__load_element_of(b, who, p, args);
}

uint32_t qn__append_load(qn_builder *b, const char *who, qn_param p, int part, const uint32_t *index)
{
    const qn_kernel_parameter *view = &b->param[p.id - 1];
    qn_inst x = {.op = QN_I_LOAD,
                 .type = (uint8_t)qn__part_dtype(view->dtype, view->record, part),
                 .sub = (uint8_t)part,
                 .imm = p.id - 1};
    if (view->traits & QN_ATOMIC)
        return qn__append(b, who, x, (uint32_t)view->rank, index);
    return qn__append_numbered(b, who, x, (uint32_t)view->rank, index);
}

void qn__append_store(qn_builder *b, const char *who, qn_param p, int part, const uint32_t *index,
                      uint32_t value)
{
    uint32_t args[QN_MAX_RANK + 1];
    int n = b->param[p.id - 1].rank;
    for (int d = 0; d < n; d++)
        args[d] = index[d];
    args[n] = value;
    qn_inst x = {.op = QN_I_STORE, .sub = (uint8_t)part, .imm = p.id - 1};
    qn__append(b, who, x, (uint32_t)n + 1, args);
}

static uint32_t append_atomic(qn_builder *b, const char *who, int combine, qn_param p, int n_args,
                              const uint32_t *args)
{
    qn_inst x = {.op = QN_I_ATOMIC,
                 .type = (uint8_t)b->param[p.id - 1].dtype,
                 .sub = (uint8_t)combine,
                 .imm = p.id - 1};
    uint32_t i = qn__append(b, who, x, (uint32_t)n_args, args);
    qn__new_version(b);
    return i;
}

/* ---------------------------------------------------------------- atomic views */

/** Whether i loads the element args[0..n) of the view in the present memory version. */
static bool is_load_of(const qn_builder *b, uint32_t i, qn_param p, int n, const uint32_t *args)
{
    const qn_inst *x = &b->inst[i];
    if (x->op != QN_I_LOAD || x->imm != p.id - 1 || b->note[i].version != b->version)
        return false;
    for (int a = 0; a < n; a++)
        if (qn__builder_args(b, i)[a] != args[a])
            return false;
    return true;
}

/** Whether atomics do a combination. */
static const bool is_atomic[QN_N_COMBINES] = {
#define QN_X(name, number, text, is_reduction, is_atomic_op) [number] = is_atomic_op,
    QN_COMBINE_LIST(QN_X)
#undef QN_X
};

/** The combination that an op does when it updates an element, or -1. */
static int combine_of_op(int op)
{
    for (int c = 0; c < QN_N_COMBINES; c++)
        if (op && op == qn__combine_op(c))
            return is_atomic[c] ? c : -1;
    return -1;
}

/** fma(x, y, load of the element) of a contracting kernel: x * y, which is added. 0: not such a value. */
static uint32_t contracted_update(qn_builder *b, const char *who, qn_param p, int n,
                                  const uint32_t *args)
{
    const uint32_t *operand = qn__builder_args(b, args[n]);
    if (!(b->flags & QN_CONTRACT) || qn__pure(&b->inst[args[n]]) != QN_OP_fma ||
        !is_load_of(b, operand[2], p, n, args))
        return 0;
    uint32_t factor[2] = {operand[0], operand[1]};
    return qn__append_op(b, who, QN_OP_mul, factor);
}

/** An f16 or bf16 that an f32 was cast from, or a constant that is one; 0: it may have more bits. */
static uint32_t half_of(qn_builder *b, const char *who, int dtype, uint32_t x)
{
    if (b->inst[x].op == QN_I_CAST && b->inst[qn__builder_args(b, x)[0]].type == dtype)
        return qn__builder_args(b, x)[0];
    if (b->inst[x].op != QN_I_CONST)
        return 0;
    uint32_t half = qn__append_cast(b, who, dtype, x);
    return half && qn__append_cast(b, who, QN_F32, half) == x ? half : 0; /* equal values have one number */
}

/** update_of of f16 and bf16, whose ops were expanded to those of f32 (build_half.c). */
static uint32_t half_update_of(qn_builder *b, const char *who, qn_param p, int n, const uint32_t *args, int *combine)
{
    int dtype = b->param[p.id - 1].dtype;
    if (b->inst[args[n]].op != QN_I_CAST)
        return 0;
    uint32_t wide = qn__builder_args(b, args[n])[0];
    int op = qn__pure(&b->inst[wide]);
    *combine = op == QN_OP_sub ? QN_COMBINE_SUM : combine_of_op(op);
    if (b->inst[wide].type != QN_F32 || *combine < 0)
        return 0;
    uint32_t first = half_of(b, who, dtype, qn__builder_args(b, wide)[0]);
    if (!first || !is_load_of(b, first, p, n, args))
        return 0;
    uint32_t second = half_of(b, who, dtype, qn__builder_args(b, wide)[1]);
    return op == QN_OP_sub && second ? qn__append_half_op(b, who, QN_OP_neg, dtype, &second) : second;
}

/**
 * What the value args[n] combines with the element args[0..n) that it was loaded from, and how; 0
 * if it does not. The load is the first operand, or the second of an integer op. load - v is a sum
 * with -v, which is exact. Products that were contracted before the parameter became atomic
 * (variant.c) are taken apart again.
 */
static uint32_t update_of(qn_builder *b, const char *who, qn_param p, int n, const uint32_t *args,
                          int *combine)
{
    const qn_inst *x = &b->inst[args[n]];
    const uint32_t *operand = qn__builder_args(b, args[n]);
    int op = qn__pure(x);
    *combine = op == QN_OP_sub || op == QN_OP_fma ? QN_COMBINE_SUM : combine_of_op(op);
    if (op == QN_OP_fma)
        return contracted_update(b, who, p, n, args);
    if (*combine < 0)
        return 0;
    uint32_t first = operand[0], second = operand[1];
    if (is_load_of(b, first, p, n, args))
        return op == QN_OP_sub ? qn__append_op(b, who, QN_OP_neg, &second) : second;
    bool is_integer = qn__dtype_class(b->param[p.id - 1].dtype) != QN_CLASS_F;
    return op != QN_OP_sub && is_integer && is_load_of(b, second, p, n, args) ? first : 0;
}

/** A store of combine(load of the same element, v) through an atomic view is one atomic. */
static bool store_as_atomic(qn_builder *b, const char *who, qn_param p, int n, const uint32_t *args)
{
    const qn_kernel_parameter *view = &b->param[p.id - 1];
    const qn_inst *x = &b->inst[args[n]];
    bool is_half = qn__is_half(view->dtype);
    if (!(view->traits & QN_ATOMIC) || !(is_half || qn__pure(x)))
        return false;
    for (int a = 0; a < x->n_args; a++)
        if (!qn__is_open(b, qn__builder_args(b, args[n])[a]))
            return false;
    int combine;
    uint32_t all[QN_MAX_RANK + 1] = {0};
    for (int i = 0; i < n; i++)
        all[i] = args[i];
    all[n] = (is_half ? half_update_of : update_of)(b, who, p, n, args, &combine);
    if (all[n] == 0)
        return b->error.status != 0;
    append_atomic(b, who, combine, p, n + 1, all);
    return true;
}

void qn_store(qn_builder *b, qn_param p, int n, const qn_val *index, qn_val value)
{
    const char *who = "qn_store";
    uint32_t args[QN_MAX_RANK + 1];
    if (!qn__builder_ready(b, who))
        return;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !qn__can_write(b, who, view) || !qn__use_indices(b, who, view, n, index, args) ||
        !use_value(b, who, view, "value", value, &args[n]))
        return;
    if (!store_as_atomic(b, who, p, n, args))
        qn__store_element_of(b, who, p, args, args[n]);
}

/* ---------------------------------------------------------------- atomics */

/** Whether an atomic combination exists and takes the dtype. */
static bool check_combine(qn_builder *b, const char *who, int combine,
                          const qn_kernel_parameter *view)
{
    if (combine < 0 || combine >= QN_N_COMBINES || !is_atomic[combine]) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %d is no atomic combination", who, combine);
        return false;
    }
    if (!qn__has_parts(view->dtype) && qn__atomic_takes(combine, qn__dtype_class(view->dtype)))
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: view \"%.100s\": this combination does not take %s", who,
                     view->name, qn_dtype_name(view->dtype));
    return false;
}

qn_val qn_atomic(qn_builder *b, int combine, qn_param p, int n, const qn_val *index, qn_val value,
                 qn_val compare)
{
    const char *who = "qn_atomic";
    uint32_t args[QN_MAX_RANK + 2];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !check_combine(b, who, combine, view) || !qn__can_write(b, who, view) ||
        !qn__use_indices(b, who, view, n, index, args) ||
        !use_value(b, who, view, "value", value, &args[n]))
        return (qn_val){0};
    bool compares = combine == QN_COMBINE_COMPARE_EXCHANGE;
    if (compares && !use_value(b, who, view, "compare", compare, &args[n + 1]))
        return (qn_val){0};
    if (!compares && compare.id)
        return qn__builder_fail(b, QN_ERR_ARGUMENT,
                                "%s: view \"%.100s\": compare is for compare_exchange only", who,
                                view->name);
    return (qn_val){append_atomic(b, who, combine, p, n + 1 + compares, args)};
}
