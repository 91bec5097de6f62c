/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: small tables. A load at an index that differs from lane to lane is a gather; from a view
 * of a few elements that nothing writes, also not through another view, it is a permutation of
 * registers, which hold the whole view (jit/lower/lookup.c).
 */
#include "jit/analysis/straighten.h"
#include "jit/schedule/plan.h"

int qn__table_lanes(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    return f->target->vector_bytes / (int)qn__access_bytes(k, i);
}

int qn__permuted_registers(const qn_target *target, int64_t bytes, int64_t n)
{
    if (bytes > 8)
        return 0;
    int64_t lanes = target->vector_bytes / bytes, registers = (n + lanes - 1) / lanes;
    return registers <= target->permuted[__builtin_ctzll((uint64_t)bytes)] ? (int)registers : 0;
}

int qn__table_registers(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    const qn_inst *x = &k->inst[i];
    const qn_kernel_parameter *view = &k->param[x->imm];
    const qn_dim_fact *dim = &f->param[x->imm].dim[0];
    if (x->op != QN_I_LOAD || qn__n_indices(k, i) != 1 || !qn__is_plain_access(k, f, i) ||
        view->has_atomics || (view->traits & QN_ATOMIC))
        return 0;
    if (dim->n_digits != 1 || dim->lower.kind != QN_FACT_EXACT ||
        dim->extent.kind != QN_FACT_EXACT || dim->extent.value < 1)
        return 0;
    const qn_fact *stride = &f->digit[dim->first_digit].stride;
    if (stride->kind != QN_FACT_EXACT || stride->value != 1)
        return 0;
    int registers = qn__permuted_registers(f->target, qn__access_bytes(k, i), dim->extent.value);
    return registers && !qn__is_written_too(a, x->imm) ? registers : 0;
}

/** What is limited: a value, or what it is the least or the greatest of with values that all lanes
 * have. */
static uint32_t inside_limits(const qn_analysis *a, int lane_dim, uint32_t value)
{
    const qn_inst *x = &a->k->inst[value];
    while (x->op >= QN_I_PURE && (qn__pure(x) == QN_OP_min || qn__pure(x) == QN_OP_max)) {
        const uint32_t *arg = qn__args(a->k, value);
        bool is_second = !(a->value[arg[0]].deps >> lane_dim & 1);
        if (a->value[arg[!is_second]].deps >> lane_dim & 1)
            return value;
        value = arg[is_second];
        x = &a->k->inst[value];
    }
    return value;
}

/** A value without what is added to it in all lanes. */
static uint32_t without_shared(const qn_analysis *a, int lane_dim, uint32_t value)
{
    while (qn__pure(&a->k->inst[value]) == QN_OP_add) {
        const uint32_t *arg = qn__args(a->k, value);
        const bool is_second = !(a->value[arg[0]].deps >> lane_dim & 1);
        if (a->value[arg[!is_second]].deps >> lane_dim & 1)
            break;
        value = arg[is_second];
    }
    return value;
}

/** Whether all of an affine form but a part that all lanes share is known. */
static bool is_sum(const qn_analysis *a, int lane_dim, const qn_affine *x)
{
    for (int n = 0; n < 2; n++)
        if (x->sym[n] && (a->value[x->sym[n]].deps >> lane_dim & 1))
            return false;
    return true;
}

/** Whether a value is (affine form) / number, and moves by at most one from lane to lane, but where
 * a limit stops it. */
static bool is_quotient(const qn_analysis *a, int lane_dim, uint32_t index)
{
    const qn_kernel *k = a->k;
    enum { MOST = 1 << 16 }; /* a quotient of what wraps lies beyond all memory */
    const uint32_t limited = inside_limits(a, lane_dim, index),
                   value = limited == index ? without_shared(a, lane_dim, index) : limited;
    qn_quotient q;
    if (!qn__quotient(k->inst, k->operand, value, &q) || q.is_rest ||
        !qn__is_made_of_indices(k, q.of))
        return false;
    const qn_affine *from = &a->affine[q.of];
    int64_t step = from->coef[lane_dim];
    return q.by >= 2 && q.by <= MOST && step >= 1 && step <= q.by && is_sum(a, lane_dim, from) &&
           (limited == index || qn__affine_is_small(a, from)); /* a limit would hide what wraps */
}

/** Whether a value grows by one from lane to lane, but where a limit stops it. */
static bool is_limited(const qn_analysis *a, int lane_dim, uint32_t index)
{
    const uint32_t value = inside_limits(a, lane_dim, index);
    const qn_affine *from = &a->affine[value];
    return a->k->inst[value].type == QN_I64 && from->coef[lane_dim] == 1 &&
           is_sum(a, lane_dim, from);
}

/** Whether the lanes of load i lie along one dimension of the view, whose elements are neighbours,
 * as is_near says of the index. */
static bool has_near(const qn_analysis *a, int lane_dim, uint32_t i,
                     bool (*is_near)(const qn_analysis *, int, uint32_t))
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    const qn_inst *x = &k->inst[i];
    bool is_found = false;
    if (x->op != QN_I_LOAD || lane_dim < 0 || f->is_ordered || !qn__is_plain_access(k, f, i) ||
        k->param[x->imm].has_atomics || (k->param[x->imm].traits & QN_ATOMIC))
        return false;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        uint32_t index = qn__args(k, i)[r];
        const qn_dim_fact *dim = &f->param[x->imm].dim[r];
        if (!(a->value[index].deps >> lane_dim & 1) || dim->n_digits == 0)
            continue;
        const qn_fact *stride = &f->digit[dim->first_digit].stride;
        if (is_found || dim->n_digits != 1 || stride->kind != QN_FACT_EXACT || stride->value != 1 ||
            !is_near(a, lane_dim, index))
            return false;
        is_found = true;
    }
    return is_found;
}

static bool is_of_indices(const qn_analysis *a, int lane_dim, uint32_t index)
{
    (void)lane_dim;
    return qn__is_made_of_indices(a->k, index);
}

int qn__nearness(const qn_analysis *a, int lane_dim, uint32_t i)
{
    int64_t bytes = qn__access_bytes(a->k, i);
    if (a->f->target->has_grid)
        return QN_NEAR_NONE;
    if (has_near(a, lane_dim, i, is_limited))
        return QN_NEAR_LIMITED;
    if (!a->f->target->permutes_pairs || !qn__permuted_registers(a->f->target, bytes, 1) ||
        !has_near(a, lane_dim, i, is_of_indices))
        return QN_NEAR_NONE;
    return has_near(a, lane_dim, i, is_quotient) ? QN_NEAR_CERTAIN : QN_NEAR_LIKELY;
}
