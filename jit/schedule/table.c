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

int qn__table_registers(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    const qn_kernel_parameter *view = &k->param[x->imm];
    const qn_dim_fact *dim = &f->param[x->imm].dim[0];
    if (x->op != QN_I_LOAD || qn__n_indices(k, i) != 1 || !qn__is_plain_access(k, f, i) ||
        view->has_atomics || (view->traits & QN_ATOMIC) || f->is_ordered)
        return 0;
    if (dim->n_digits != 1 || dim->lower.kind != QN_FACT_EXACT ||
        dim->extent.kind != QN_FACT_EXACT || dim->extent.value < 1)
        return 0;
    const qn_fact *stride = &f->digit[dim->first_digit].stride;
    if (stride->kind != QN_FACT_EXACT || stride->value != 1)
        return 0;
    int registers = qn__permuted_registers(f->target, qn__access_bytes(k, i), dim->extent.value);
    return registers && !qn__is_written_too(k, f, a, x->imm) ? registers : 0;
}
