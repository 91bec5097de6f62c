/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: small tables. A load at an index that differs from lane to lane is a gather; from a view of a few elements
 * that nothing writes, also not through another view, it is a permutation of registers, which hold the whole view
 * (jit/lower/table.c).
 */
#include "jit/schedule/plan.h"

/* Registers: as many permutations, and as many selects, are faster than a gather (docs/plan.md). */
enum { MOST_REGISTERS_4 = 16, MOST_REGISTERS_8 = 4, MOST_REGISTERS_V3 = 4 };

int qn__table_lanes(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    return (f->isa >= QN_ISA_V4 ? 64 : 32) / (int)qn__access_bytes(k, i);
}

int qn__permuted_registers(int isa, int64_t bytes, int64_t n)
{
    bool is_v4 = isa >= QN_ISA_V4;
    if (bytes != 4 && (bytes != 8 || !is_v4))
        return 0;
    int64_t lanes = (is_v4 ? 64 : 32) / bytes, registers = (n + lanes - 1) / lanes;
    int64_t most = !is_v4 ? MOST_REGISTERS_V3 : bytes == 4 ? MOST_REGISTERS_4 : MOST_REGISTERS_8;
    return registers <= most ? (int)registers : 0;
}

int qn__table_registers(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    const qn_kernel_parameter *view = &k->param[x->imm];
    const qn_dim_fact *dim = &f->param[x->imm].dim[0];
    if (x->op != QN_I_LOAD || qn__target_of(f->isa) != QN_TARGET_X86 || qn__n_indices(k, i) != 1 || !qn__is_plain_access(k, f, i) ||
        view->has_atomics || (view->traits & QN_ATOMIC) || f->is_ordered)
        return 0;
    if (dim->n_digits != 1 || dim->lower.kind != QN_FACT_EXACT || dim->extent.kind != QN_FACT_EXACT || dim->extent.value < 1)
        return 0;
    const qn_fact *stride = &f->digit[dim->first_digit].stride;
    if (stride->kind != QN_FACT_EXACT || stride->value != 1)
        return 0;
    int registers = qn__permuted_registers(f->isa, qn__access_bytes(k, i), dim->extent.value);
    return registers && !qn__is_written_too(k, f, a, x->imm) ? registers : 0;
}
