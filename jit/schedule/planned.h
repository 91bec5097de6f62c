/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planned.h: how a kernel is walked, as the code generator reads it: the schedule that the caller
 * gave, or that of a plan, and its block. A GPU has a grid instead of a schedule.
 */
#ifndef QN_JIT_PLANNED_H
#define QN_JIT_PLANNED_H

#include "jit/schedule/shape.h"

typedef struct qn_planned {
    qn_plan plan;    /* of a processor; of a given schedule there is none */
    qn_grid grid;    /* of a GPU */
    bool is_request; /* the caller gave the schedule */
    qn_schedule *schedule;  /* NULL: none was made yet */
    double cycles;          /* of the search: of the least estimate; 0: there is none */
    bool is_draft;          /* the schedule is that of the search, and was not verified yet */
    qn_analysis analysis;   /* of scalar code: what the plan is of; that of a GPU is not kept */
    qn_block block;
} qn_planned;

/** Makes the plan of a processor with its analysis (jit/schedule/search.c), or the grid.
 * Pure: one kernel with one set of facts has one plan. Never fails: the fallback is scalar code as
 * declared. Kernel and facts must live as long as *out. */
void qn__planned_make(const qn_kernel *k, const qn_facts *f, qn_planned *out);
/** Makes the schedule of the plan or of the grid, verified, where there is none yet: from the draft
 * of the search if there is one. Errors: the verifier's, and QN_ERR_MEMORY; *p has no schedule
 * then. */
qn_status qn__planned_schedule(qn_planned *p, qn_error *err);
/** Makes the schedule of a plan and the block; of a grid the block alone. Where a kernel has too
 * many parts for a schedule, the plan becomes one of plain loops. QN_ERR_MEMORY. */
qn_status qn__planned_say(qn_planned *p, qn_error *err);
/** Reads the block of a schedule that was given and verified, and the grid of a GPU. Errors as
 * qn__block_of. */
qn_status qn__planned_read(const qn_analysis *x, const qn_schedule *s, qn_grid *grid,
                           qn_block *block, qn_error *err);
/** The plan, or the grid, as text. */
void qn__planned_print(const qn_planned *p, qn_text *out);
/** Forgets the schedule, as the plan has changed. */
void qn__planned_forget(qn_planned *p);
void qn__planned_release(qn_planned *p);

#endif
