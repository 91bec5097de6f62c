/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_grid.h: what the files of the estimate of grids show one another. */
#ifndef QN_JIT_ESTIMATE_GRID_H
#define QN_JIT_ESTIMATE_GRID_H

#include "jit/schedule/estimate_parts.h"

/* Lanes of a warp, and bytes of a sector of a line. */
#define QN_LANES 32.0
#define QN_SECTOR_BYTES 32.0
/* Points that a thread takes in one turn of a loop, whose loads are under way together. */
#define QN_LOOP_POINTS 4.0

/** How the lanes of a warp lie: the first of these indices moves fastest. */
typedef struct qn_grid_lanes {
    int n, dim[3];
    int64_t count[3], step[3];
} qn_grid_lanes;

typedef struct qn_grid_model {
    const qn_analysis *x;
    const qn_grid *p;
    const qn_machine *m;
    qn_grid_estimate *out;
    double blocks, threads; /* of the launch; of a block */
    double turns;           /* iterations that a thread takes one after the other */
    double rest;            /* of the dimensions of the rest, for each of these */
    double share;           /* threads that divide the points of a reduce */
    double others;          /* the part of a block's warps that work outside of reduces */
    qn_grid_lanes outside, inside;  /* of reduces */
    double issue, near;     /* cycles of one warp */
    double torn;            /* sectors of which a store of it writes a part */
    double sectors;         /* that it asks for */
    double *loads;          /* [n_insts] that a value waits for, one after the other */
} qn_grid_model;

/** Iterations of a dimension. Where they are not known, those of the first such dimension make a
 * launch large. */
int64_t qn__grid_trips(const qn_grid_model *m, int d);
/** What instruction i and its operands depend on, as bits. */
uint32_t qn__grid_deps(const qn_grid_model *m, uint32_t i);
/** Iterations that a thread computes at once in which a value differs. */
double qn__grid_values(const qn_grid_model *m, uint32_t deps);
/** How often a thread does what stands at instruction i, for one of its iterations. What does not
 * depend on the points of a reduce is done before its loop, unless that is around another one. */
double qn__grid_times(const qn_grid_model *m, uint32_t i);
/** Adds up the work of one warp: issue, near, torn and sectors. */
void qn__grid_add_work(qn_grid_model *m);
/** Bytes that a block asks the second-level cache for, if its part of the first level has so much
 * room. */
double qn__grid_far_bytes(const qn_grid_model *m, double room);
/** Bytes that all of the launch moves if nothing moves again. */
double qn__grid_bytes(const qn_grid_model *m);

/** The least multiple of `by` that is not below n. */
static inline double qn__above(double n, double by)
{
    double whole = qn__whole(n / by) * by;
    return whole < n ? whole + by : whole;
}

#endif
