/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h: what the code generator asks of a schedule that was verified: the block of iterations
 * that is emitted at once, and which loops are emitted as loops.
 */
#ifndef QN_JIT_SHAPE_H
#define QN_JIT_SHAPE_H

#include "jit/schedule/grid.h"
#include "jit/schedule/tree.h"

enum { QN_MOST_BLOCK_AXES = 8 };

/** Reduces whose sums are in memory for a strip of the lanes (lower/strip.c). */
typedef struct qn_strip {
    int64_t length; /* iterations of the lanes; 0: there is none */
    int64_t step;   /* of these, so many at once */
    int dim;        /* of the points */
    int together;   /* points that are added at once, jammed iterations of the block */
} qn_strip;

/** Steps of lanes. */
typedef struct qn_steps {
    int dim;    /* along it the lanes lie */
    int width;  /* lanes of a vector */
    int unroll; /* vectors beside one another */
    int tail;   /* QN_TAIL_...: what follows whole steps */
} qn_steps;

/** What the code generator reads of a schedule beside its loops and access records: the iterations
 * that each statement is emitted for at once, how they end, and what threads divide. */
typedef struct qn_block {
    int lane_dim; /* the dimension of the lanes, which may be one of reduces, or that of trips; -1:
                     scalar code */
    qn_trip_lanes trips; /* loops whose trips are lanes; scalar code is around them, whose reduces
                            may have lanes over points */
    qn_steps trip_steps; /* of those loops */
    int width;    /* lanes of a vector */
    int unroll;   /* vectors beside one another along lane_dim */
    int tail;     /* QN_TAIL_...: what follows whole steps of the lanes */
    int n;        /* other unrolled loops, outermost first */
    qn_axis axis[QN_MOST_BLOCK_AXES];
    int dim[QN_MOST_BLOCK_AXES];
    int64_t extent[QN_MOST_BLOCK_AXES], weight[QN_MOST_BLOCK_AXES];
    uint32_t ends; /* bit b: buffer b holds line ends */
    qn_strip strip;
    bool streams;         /* some stores are non-temporal */
    int atomics;          /* QN_ATOMICS_OF_... */
    int straight;         /* see qn_schedule */
    int n_loops;          /* sequential and parallel dimensions, */
    int order[QN_MAX_RANK]; /* in the order of their outermost loops */
    int split_dim;        /* the dimension that threads divide, -1: none */
    int64_t granule;      /* its chunks begin at multiples of this, counted from its begin */
    int second_dim;       /* another one that they divide as well, */
    int64_t second_granule; /* at such multiples; 0: there is none */
    int n_shared;         /* split_dim is that of so many reduces, whose points threads divide */
    int64_t scratch_bytes; /* memory of the launch for each chunk */
    int team;             /* QN_TEAM_...: who runs one iteration, of a GPU */
    bool is_product;      /* of a GPU: register tiles */
    int skew;             /* of a GPU: iterations of the lanes by which each row that is emitted at
                             once begins before the one before it */
} qn_block;

/** The dimension of the innermost unrolled loop around the lanes, if its iterations are next to one
 * another; else -1. */
int qn__across(const qn_block *b);
/** Whether a buffer holds line ends (lower/line_ends.c): of rows along the innermost unrolled loop.
 */
bool qn__are_line_ends(const qn_analysis *x, const qn_schedule *s, const qn_block *b, int buffer);
/** Whether places of reduces stand right inside a loop whose accumulators are in memory. */
bool qn__has_sums(const qn_schedule *s, qn_node loop);
/** The strip that a loop walks whose places have accumulators in memory. False: lower/strip.c has
 * no code for that. */
bool qn__strip_of(const qn_analysis *x, const qn_schedule *s, qn_node loop, qn_strip *out);
/** The buffers of line ends that are flushed right behind a loop, as bits. */
uint32_t qn__ends_behind(const qn_schedule *s, qn_node loop);
/** The rows that a buffer of line ends is over. */
int64_t qn__rows_of_ends(const qn_analysis *x, const qn_schedule *s, int buffer);

/** The dimension of a loop over iterations, -1: it is over points of a reduce, or trips. */
int qn__iteration_dim(const qn_analysis *x, const qn_schedule *s, qn_axis a);
/** The dimension of the iterations that a node's loop walks; -1: there is no such loop. */
int qn__node_dim(const qn_analysis *x, const qn_schedule *s, const qn_node_info *n);

/** A schedule that is read: the first form in it that the code generator has no code for. */
typedef struct qn_reading {
    const qn_analysis *x;
    const qn_schedule *s;
    qn_error *err;
    qn_status status;
} qn_reading;
/** Refuses with QN_ERR_UNSUPPORTED, the name of a form without code, and the axis where the form
 * stands, if any. Returns false. */
bool qn__no_code(qn_reading *r, const char *what, qn_axis a);
/** Whether a loop is a part of the block: lanes, or an unrolled loop over a parallel dimension.
 * Where iterations come in order no unrolled loop is. */
bool qn__is_of_block(const qn_analysis *x, const qn_schedule *s, qn_node loop);
/** A block of one iteration, of a function that no threads divide. */
qn_block qn__block_of_one(void);
/** What is emitted at once of trips that are lanes, in code of a block. */
void qn__block_of_trips(const qn_block *around, qn_block *out);
/** The block of a schedule that was verified. QN_ERR_UNSUPPORTED: its statements have different
 * ones, or it has a form that the code generator has no code for. */
qn_status qn__block_of(const qn_analysis *x, const qn_schedule *s, qn_block *out, qn_error *err);
/** That of a grid of a GPU. */
qn_block qn__block_of_grid(const qn_grid *p);
/** What follows the block itself: how steps end, what threads divide, the launch's memory
 * (jit/schedule/shape_launch.c). */
qn_status qn__read_launch(qn_reading *r, qn_block *b);
/** The caller of a function gives the ranges of these dimensions, -1: none, whatever the schedule
 * says that threads divide. */
void qn__give_ranges(qn_block *b, int split_dim, int second_dim);
/** Chunks that a thread should have where there are enough iterations. s: NULL of a GPU
 * (jit/schedule/threads.c). */
int32_t qn__chunks_per_thread(const qn_schedule *s, const qn_block *b);
/** Whether the schedule has a record of a non-temporal store by instruction i, other than through a
 * buffer of line ends. */
bool qn__is_streamed(const qn_schedule *s, uint32_t i);
/** What a record asks for ahead of time. */
enum {
    QN_AHEAD_POINTS, /* points of a reduce, of jammed iterations that lie side by side */
    QN_AHEAD_STEPS,  /* steps of the lanes */
    QN_AHEAD_LANES,  /* iterations of the lanes, once a line */
    QN_AHEAD_NONE    /* nothing, or in a way that has no code */
};
int qn__ahead_of(const qn_analysis *x, const qn_schedule *s, const qn_block *b,
                 const qn_record_info *r);
/** The first loop over dimension d in the tree from node n on, its siblings included; 0: none. */
qn_node qn__loop_below(const qn_analysis *x, const qn_schedule *s, qn_node n, int d);
/** Whether a loop of threads is none in the code: a chunk is a part of the dimension, which the
 * loop right inside walks, or, inside of pieces of rows, the loop over steps that leave line ends.
 */
bool qn__is_only_chunks(const qn_analysis *x, const qn_schedule *s, qn_node loop);
/** How iterations end that are left of whole steps of a loop, of which the loops of the block
 * inside take all. */
int qn__tail_of_steps(const qn_analysis *x, const qn_schedule *s, qn_node loop);
/** Whether node n is, or has inside, a loop over iterations that is no part of the block. */
bool qn__has_loops(const qn_analysis *x, const qn_schedule *s, qn_node n);
/** Widens [*first, *end) to the instructions of the statements of node n. */
void qn__statements_of(const qn_schedule *s, const qn_kernel *k, qn_node n, uint32_t *first,
                       uint32_t *end);
/** The grid that a schedule of a GPU describes, which is complete. Errors as qn__block_of
 * (jit/schedule/shape_grid.c). */
qn_status qn__grid_of_schedule(const qn_analysis *x, const qn_schedule *s, qn_grid *out,
                               qn_error *err);

#endif
