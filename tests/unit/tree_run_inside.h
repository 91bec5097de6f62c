/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_run_inside.h: the state of a run of a schedule, as its files share it: tree_run_axes.c says
 * which iteration the loops stand at, tree_run.c runs nodes.
 */
#ifndef QN_TESTS_TREE_RUN_INSIDE_H
#define QN_TESTS_TREE_RUN_INSIDE_H

#include "ir/interp.h"
#include "tests/unit/tree_run.h"

/** The partial results of one reduce in one iteration. */
typedef struct sums {
    int64_t n;         /* points added */
    uint64_t *partial; /* [blocks][64] */
    uint64_t *carried; /* of a `for`: [QN_MAX_CARRIED] */
} sums;

typedef struct cell {
    uint64_t bits;
    int64_t filled; /* number of the fill; 0: never */
} cell;

typedef struct runner {
    const qn_analysis *x;
    const qn_schedule *s;
    const qn_domain *domain;
    qn_kernel kernel; /* with instructions of its own: a load that has a copy is a constant */
    qn_interp interp;
    int64_t n_iterations;
    uint64_t *value; /* [n_iterations][n_insts] */
    uint8_t
        *times; /* [n_iterations][n_insts] how often the statement that begins with it was run */
    sums *sums; /* [n_iterations][n_reductions] */
    int64_t n_blocks;               /* of a reduce, at most */
    bool is_live[QN_MOST_AXES + 1]; /* a loop over it is running */
    int64_t position[QN_MOST_AXES + 1];
    int64_t trips[QN_MOST_REDUCTIONS],
        trip_begin[QN_MOST_REDUCTIONS];     /* of each `for` that is placed and running */
    int32_t place[QN_MOST_DEPTH], n_places; /* reductions that are running */
    cell *buffer[QN_MOST_BUFFERS];
    int64_t n_cells[QN_MOST_BUFFERS], fill_number;
    int64_t n_steps; /* of loops, so far: parts of an axis may have many more than it */
    bool overlaps;
    tree_run_report *report;
} runner;

/** How often an axis is walked in this launch, by the loops that run. */
int64_t tree_count(runner *r, qn_axis a);
/** Whether loops that run now say where axis `a` stands. */
bool tree_is_known(const runner *r, qn_axis a);
/** The position of an axis that is known; false: beyond its end, in the last step of a cut. */
bool tree_resolve(runner *r, qn_axis a, int64_t *position);
/** The axis of a dimension, of the points of a reduce, or of trips. */
qn_axis tree_root(const runner *r, int kind, uint32_t inst, int number);
/** Selects the iteration of the loops that run; dimensions whose loops do not all run stand at
 * their begin. False: it is beyond the end of an axis. */
bool tree_select_iteration(runner *r);
/** The point of the reduce that is placed at level p, or the trip of a `for`. Sets the indices of
 *  its dimensions. */
bool tree_select_point(runner *r, int p, int64_t *point);
/** Calls for all iterations that agree with the loops that run. */
void tree_for_iterations(runner *r, void (*call)(runner *r, int64_t iteration, int reduction),
                         int reduction);

#endif
