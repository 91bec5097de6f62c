/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: what plan*.c show one another and the lowering asks of a plan.
 */
#ifndef QN_JIT_PLAN_H
#define QN_JIT_PLAN_H

#include "jit/analyse.h"

/** The plan for NVPTX: order, axis, threads and tile of *out, which holds scalar code without loops. */
void qn__plan_gpu(const qn_kernel *k, const qn_facts *f, qn_plan *out);

/** Sets p->streams if non-temporal stores pay; the rest of the plan is made (jit/plan_streams.c). */
void qn__plan_streams(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, qn_plan *p);
/** Whether access `site` is a store that may be non-temporal under the plan: whole vectors to consecutive elements. */
bool qn__is_stream(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, const qn_plan *p, uint32_t site);

#endif
