/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan.h: a plan, or a grid, as a schedule.
 */
#ifndef QN_JIT_FROM_PLAN_H
#define QN_JIT_FROM_PLAN_H

#include "jit/schedule/grid.h"
#include "jit/schedule/tree.h"

/** Translates a plan, or a grid, that was made for the kernel and the facts of x: nothing is
 * verified, and nothing may be lowered from the schedule before it is. What of a grid goes through
 * shared memory is not said. */
qn_status qn__schedule_of_grid(const qn_analysis *x, const qn_grid *p, qn_schedule *out,
                               qn_error *err);
qn_status qn__schedule_draft(const qn_analysis *x, const qn_plan *p, qn_schedule *out,
                             qn_error *err);

/** Loops of a plan of plain loops: no record, no place of a reduce, and nothing is verified. */
qn_status qn__schedule_plain(const qn_analysis *x, const qn_plan *p, qn_schedule *out,
                             qn_error *err);

#endif
