/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: private to plan*.c.
 */
#ifndef QN_JIT_PLAN_H
#define QN_JIT_PLAN_H

#include "jit/analyse.h"

/** The plan for NVPTX: order, axis, threads and tile of *out, which holds scalar code without loops. */
void qn__plan_gpu(const qn_kernel *k, const qn_facts *f, qn_plan *out);

#endif
