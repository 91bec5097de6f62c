/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h: what the code generator asks of a schedule that was verified: the block of iterations
 * that is emitted at once, and which loops are emitted as loops.
 */
#ifndef QN_JIT_SHAPE_H
#define QN_JIT_SHAPE_H

#include "jit/schedule/tree.h"

enum { QN_MOST_BLOCK_AXES = 8 };

/** Reduces whose sums are in memory for a strip of the lanes (lower/strip.c). */
typedef struct qn_strip {
    int64_t length; /* iterations of the lanes; 0: there is none */
    int64_t step;   /* of these, so many at once */
    int dim;        /* of the points */
    int together;   /* points that are added at once, jammed iterations of the block */
} qn_strip;

/** The iterations that each statement of a schedule is emitted for at once: its loops over lanes
 * and its unrolled loops. */
typedef struct qn_block {
    int lane_dim;  /* the dimension of the lanes; -1: scalar code */
    int width;     /* lanes of a vector */
    int unroll;    /* vectors beside one another along lane_dim */
    int n;         /* other unrolled loops, outermost first */
    qn_axis axis[QN_MOST_BLOCK_AXES];
    int dim[QN_MOST_BLOCK_AXES];
    int64_t extent[QN_MOST_BLOCK_AXES], weight[QN_MOST_BLOCK_AXES];
    int points_dim; /* the dimension of reduces whose points are lanes; -1: none */
    int points_width, points_unroll, points_tail;
    uint32_t rows; /* bit b: buffer b is a copy of rows along the innermost unrolled loop, */
    int64_t row;   /* each of so many elements */
    uint32_t ends; /* bit b: buffer b holds line ends */
    qn_strip strip;
    int n_shared, shared_dim; /* reduces whose points along a dimension threads divide; 0: none */
} qn_block;

/** The dimension of the innermost unrolled loop around the lanes, if its iterations are next to one
 * another; else -1. */
int qn__across(const qn_block *b);
/** Whether a buffer holds line ends (lower/line_ends.c): of rows along the innermost unrolled loop.
 */
bool qn__are_line_ends(const qn_scheduled *x, const qn_schedule *s, const qn_block *b, int buffer);
/** Whether places of reduces stand right inside a loop whose accumulators are in memory. */
bool qn__has_sums(const qn_schedule *s, qn_node loop);
/** The strip that a loop walks whose places have accumulators in memory. False: lower/strip.c has
 * no code for that. */
bool qn__strip_of(const qn_scheduled *x, const qn_schedule *s, qn_node loop, qn_strip *out);
/** The buffers of line ends that are flushed right behind a loop, as bits. */
uint32_t qn__ends_behind(const qn_schedule *s, qn_node loop);
/** The rows that a buffer of line ends is over. */
int64_t qn__rows_of_ends(const qn_scheduled *x, const qn_schedule *s, int buffer);
/** Elements of the rows of a buffer that is a copy of rows (lower/transpose.c): of each lane one,
 * along the innermost unrolled loop. 0: it is none. */
int64_t qn__row_of_copy(const qn_scheduled *x, const qn_schedule *s, const qn_block *b, int buffer);

/** The dimension of a loop over iterations, -1: it is over points of a reduce, or trips. */
int qn__iteration_dim(const qn_scheduled *x, const qn_schedule *s, qn_axis a);
/** The dimension of the iterations that a node's loop walks; -1: there is no such loop. */
int qn__node_dim(const qn_scheduled *x, const qn_schedule *s, const qn_node_info *n);

/** A schedule that is read: the first form in it that the code generator has no code for. */
typedef struct qn_reading {
    const qn_scheduled *x;
    const qn_schedule *s;
    qn_error *err;
    qn_status status;
} qn_reading;
/** Refuses with QN_ERR_UNSUPPORTED, the name of a form without code, and the axis where the form
 * stands, if any. Returns false. */
bool qn__no_code(qn_reading *r, const char *what, qn_axis a);
/** Whether a loop is a part of the block: lanes, or an unrolled loop over a parallel dimension.
 * Where iterations come in order no unrolled loop is. */
bool qn__is_of_block(const qn_scheduled *x, const qn_schedule *s, qn_node loop);
/** The block of all statements. QN_ERR_UNSUPPORTED: they have different ones, or one that the code
 * generator has no code for. */
qn_status qn__block_of(const qn_scheduled *x, const qn_schedule *s, qn_block *out, qn_error *err);
/** The first loop over dimension d in the tree from node n on, its siblings included; 0: none. */
qn_node qn__loop_below(const qn_scheduled *x, const qn_schedule *s, qn_node n, int d);
/** How iterations end that are left of whole steps of a loop, of which the loops of the block
 * inside take all. */
int qn__tail_of_steps(const qn_scheduled *x, const qn_schedule *s, qn_node loop);
/** Whether node n is, or has inside, a loop over iterations that is no part of the block. */
bool qn__has_loops(const qn_scheduled *x, const qn_schedule *s, qn_node n);
/** Widens [*first, *end) to the instructions of the statements of node n. */
void qn__statements_of(const qn_schedule *s, const qn_kernel *k, qn_node n, uint32_t *first,
                       uint32_t *end);
/** The plan of a GPU that a schedule describes, which is complete: *out has the defaults. Errors as
 * qn__plan_of_schedule (jit/schedule/shape_grid.c). */
qn_status qn__plan_of_grid(const qn_scheduled *x, const qn_schedule *s, qn_plan *out,
                           qn_error *err);
/** The plan that says of statements what the schedule says: lanes, threads, what is non-temporal.
 * The loops are those of the schedule. QN_ERR_UNSUPPORTED: the code generator cannot lower it yet.
 */
qn_status qn__plan_of_schedule(const qn_scheduled *x, const qn_schedule *s, qn_plan *out,
                               qn_error *err);

#endif
