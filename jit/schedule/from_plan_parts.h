/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan_parts.h: private to the files that make a schedule of a plan or of a grid: from_plan.c
 * and from_grid.c have loops, from_plan_access.c accesses.
 */
#ifndef QN_JIT_FROM_PLAN_PARTS_H
#define QN_JIT_FROM_PLAN_PARTS_H

#include "jit/schedule/plan.h"
#include "jit/schedule/transform.h"

/** The loops of a dimension: the tile, if there is one, then its digits, slowest first. */
typedef struct pieces {
    qn_axis tile, digit[QN_MOST_PARTS];
    int n;       /* digits; 1: it is not cut */
    int n_inner; /* of these, the last ones stand inside all other loops */
} pieces;

typedef struct maker {
    const qn_analysis *x;
    const qn_plan *p; /* NULL: a grid is said */
    qn_schedule *s;
    qn_error *err;
    qn_status status;
    pieces of[QN_MAX_RANK];
    qn_axis inner[8]; /* loops that are emitted one beside the other, outermost first */
    int n_inner;
} maker;

/** A step that must be possible. The result is verified at the end, as what is between need not be
 * a schedule that may be run. */
void qn__step(maker *m, const qn_step *how);
/** A step QN_DO_... of one loop. */
void qn__step_on(maker *m, int which, qn_axis a);
/** Appends a loop to those of a step, if there is one. */
void qn__add_axis(qn_step *how, qn_axis a);
/** Every dimension whole. */
void qn__pieces_begin(maker *m);
/** Cuts an axis into digits of n extents; part: room for n + 1 of them, slowest first. */
void qn__split(maker *m, qn_axis a, int n, const int64_t *extent, int tail, qn_axis *part);
/** Cuts a dimension by these extents, at most four, of which those of one iteration are left out;
 * the last n_inner of them stand inside. */
void qn__cut(maker *m, int d, int n, const int64_t *extent, int n_inner, int tail);
/** Completes a reorder by the inner digits of dimensions, -1: none, which become m->inner. */
void qn__order_loops(maker *m, qn_step *order, const int *inside, int n_inside);
/** Moves a loop that is emitted together inside of the reduces: each has an accumulator for every
 * one of its iterations. */
void qn__move_inside(maker *m, qn_axis a);
/** A mark of an access, which is left out where it cannot be made. */
void qn__mark(maker *m, const qn_step *how);
/** Marks accesses as the plan says. */
void qn__mark_accesses(maker *m);

#endif
