/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c: which table of costs a target has. AArch64 has none of its own: it is
 * counted as x86-64-v3, whose vectors have no registers of masks.
 */
#include "jit/target/costs.h"

static const qn_cost *const tables[QN_N_TARGETS][3] = {
    [QN_TARGET_X86] = {qn__x86_costs_v3, qn__x86_costs_v4, qn__x86_costs_v4_bytes},
    [QN_TARGET_AARCH64] = {qn__x86_costs_v3, qn__x86_costs_v3},
    [QN_TARGET_NVPTX] = {qn__nvptx_costs, qn__nvptx_costs},
};

const qn_cost *qn__cost_of(int work, const qn_target *target)
{
    return &tables[target->family][target->costs][work];
}
