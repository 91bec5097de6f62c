/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: small tables. A load at an index that differs from lane to lane is a gather; from a view
 * of a few elements that nothing writes, also not through another view, it is a permutation of
 * registers, which hold the whole view (jit/lower/table.c).
 */
#include "jit/schedule/plan.h"

int qn__table_lanes(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    return f->target->vector_bytes / (int)qn__access_bytes(k, i);
}

int qn__permuted_registers(const qn_target *target, int64_t bytes, int64_t n)
{
    if (bytes != 4 && bytes != 8)
        return 0;
    int64_t lanes = target->vector_bytes / bytes, registers = (n + lanes - 1) / lanes;
    return registers <= target->permuted[bytes == 8] ? (int)registers : 0;
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

/** Whether a value is (affine form) / number, and moves by at most one from lane to lane. */
static bool is_quotient(const qn_analysis *a, int lane_dim, uint32_t value)
{
    const qn_kernel *k = a->k;
    enum { MOST = 1 << 16 }; /* a quotient of what wraps lies beyond all memory */
    const qn_inst *x = &k->inst[value];
    const uint32_t *arg = qn__args(k, value);
    if (x->type != QN_I64 || x->op < QN_I_PURE || qn__pure(x) != QN_OP_div ||
        k->inst[arg[1]].op != QN_I_CONST || !qn__is_made_of_indices(k, arg[0]))
        return false;
    const qn_affine *from = &a->affine[arg[0]];
    for (int n = 0; n < 2; n++)
        if (from->sym[n] && (a->value[from->sym[n]].deps >> lane_dim & 1))
            return false;
    int64_t by = (int64_t)k->inst[arg[1]].imm, step = from->coef[lane_dim];
    return by >= 2 && by <= MOST && step >= 1 && step <= by;
}

/** Whether a value is the index of the lanes and a number, which do not wrap. */
static bool is_shifted_index(const qn_analysis *a, int lane_dim, uint32_t value)
{
    enum { MOST = 1 << 30 };
    const qn_affine *x = &a->affine[value];
    qn_interval begin = qn__fact_interval(&a->f->begin[lane_dim]),
                end = qn__fact_interval(&a->f->end[lane_dim]);
    bool is = x->coef[lane_dim] == 1 && !x->sym[0] && x->constant >= -MOST && x->constant <= MOST &&
              begin.low >= INT32_MIN && end.high <= INT32_MAX;
    for (int d = 0; d < a->k->n_dims; d++)
        is &= d == lane_dim || !x->coef[d];
    return is;
}

/** Whether a value grows by at most one from lane to lane, and never falls: quotients, and indices
 * that end at a bound. */
static bool is_creeping(const qn_analysis *a, int lane_dim, uint32_t value, int depth)
{
    const qn_inst *x = &a->k->inst[value];
    const uint32_t *arg = qn__args(a->k, value);
    bool is_bound = x->type == QN_I64 && x->op >= QN_I_PURE && depth > 0 &&
                    (qn__pure(x) == QN_OP_min || qn__pure(x) == QN_OP_max);
    for (int n = 0; is_bound && n < 2; n++)
        is_bound = !(a->value[arg[n]].deps >> lane_dim & 1) ||
                   is_shifted_index(a, lane_dim, arg[n]) ||
                   is_creeping(a, lane_dim, arg[n], depth - 1);
    return is_bound || is_quotient(a, lane_dim, value);
}

bool qn__is_near(const qn_analysis *a, int lane_dim, uint32_t i)
{
    enum { MOST_BOUNDS = 2 }; /* above and below */
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    const qn_inst *x = &k->inst[i];
    int64_t bytes = qn__access_bytes(k, i);
    bool is_found = false;
    if (x->op != QN_I_LOAD || lane_dim < 0 || f->is_ordered || (bytes != 4 && bytes != 8) ||
        !f->target->permutes_pairs || !qn__is_plain_access(k, f, i) ||
        k->param[x->imm].has_atomics || (k->param[x->imm].traits & QN_ATOMIC))
        return false;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        uint32_t index = qn__args(k, i)[r];
        const qn_dim_fact *dim = &f->param[x->imm].dim[r];
        if (!(a->value[index].deps >> lane_dim & 1) || dim->n_digits == 0)
            continue;
        const qn_fact *stride = &f->digit[dim->first_digit].stride;
        if (is_found || dim->n_digits != 1 || stride->kind != QN_FACT_EXACT || stride->value != 1 ||
            !is_creeping(a, lane_dim, index, MOST_BOUNDS))
            return false;
        is_found = true;
    }
    return is_found;
}
