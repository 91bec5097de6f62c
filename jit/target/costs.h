/* SPDX-License-Identifier: Apache-2.0 */
/* costs.h: the tables of costs (jit/schedule/cost.h) of the families of targets; know no LLVM. */
#ifndef QN_JIT_TARGET_COSTS_H
#define QN_JIT_TARGET_COSTS_H

#include "jit/schedule/cost.h"

/** Rows by kind of work. */
extern const qn_cost qn__x86_costs_v3[QN_N_WORKS], qn__x86_costs_v4[QN_N_WORKS],
    qn__x86_costs_v4_bytes[QN_N_WORKS];
extern const qn_cost qn__nvptx_costs[QN_N_WORKS];

#endif
