/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h: the schedule as a value: a tree of loops over axes around the regions of a kernel's body,
 * with its buffers, reductions and access records (docs/schedule-text.md).
 *
 * A schedule is plain data of bounded size that owns nothing, and refers to the kernel by the
 * numbers of instructions. A schedule is a request: only qn__schedule_verify says whether a kernel
 * may be run so.
 */
#ifndef QN_JIT_TREE_H
#define QN_JIT_TREE_H

#include "jit/analysis/analyse.h"

/* ---------------------------------------------------------------- lists, each kept once */

/** Name in enums, text. */
#define QN_ROLE_LIST(X)                                                                            \
    X(SEQUENTIAL, "sequential") /* one iteration after the other, in the order of the index */     \
    X(THREADS, "threads")       /* divided among threads of the host */                            \
    X(GRID, "grid")             /* divided among the blocks of a GPU's grid */                     \
    X(BLOCK, "block")           /* among the warps of a block where a `thread` loop is inside, */  \
                                /* else among its threads */                                       \
    X(THREAD, "thread")         /* among the lanes of a warp */                                    \
    X(VECTOR, "vector")         /* the lanes of vectors */                                         \
    X(UNROLLED, "unrolled")     /* emitted one beside the other */
/** What runs where the iterations of an axis are no multiple of the parts it is cut into. */
#define QN_TAIL_LIST(X)                                                                            \
    X(NONE, "none")         /* they are a multiple in every launch */                              \
    X(MASK, "mask")         /* a whole step whose iterations beyond the end are masked */          \
    X(SCALAR, "scalar")     /* one iteration after the other */                                    \
    X(NARROWER, "narrower") /* smaller steps */                                                    \
    X(OVERLAP, "overlap")   /* a whole step that ends with the axis, and repeats iterations */
#define QN_STORAGE_LIST(X)                                                                         \
    X(REGISTERS, "registers")                                                                      \
    X(FRAME, "frame")     /* of the function */                                                    \
    X(SCRATCH, "scratch") /* memory of the launch, a piece for each chunk */
#define QN_CONTENT_LIST(X)                                                                         \
    X(COPY, "copy") /* elements that a load reads, filled before they are used */                  \
    X(SUMS, "sums") /* accumulators of a reduce */                                                 \
    X(ENDS, "ends") /* what a store leaves of cache lines, until the next step of its lanes */
#define QN_METHOD_LIST(X)                                                                          \
    X(UNIFORM, "uniform")       /* one element for all lanes; any access outside vectors */        \
    X(CONTIGUOUS, "contiguous") /* lanes side by side */                                           \
    X(STRIDED, "strided")       /* lanes a known number of elements apart */                       \
    X(GROUP, "group")           /* strided, moved together with the neighbours of its group */     \
    X(GATHER, "gather")         /* every lane has an address */                                    \
    X(TABLE, "table")           /* a permutation of registers that hold the view */                \
    X(THROUGH, "through")       /* from or to a buffer */
#define QN_CHECK_LIST(X)                                                                           \
    X(PROVED, "proved")       /* in range for the whole domain, which the facts say */             \
    X(UNCHECKED, "unchecked") /* the bounds policy of the view is to check nothing */              \
    X(PER_LANE, "per_lane")   /* each access is tested */
#define QN_POINTS_LIST(X)                                                                          \
    X(ANY, "any")         /* every order gives one result: integers */                             \
    X(INDEXED, "indexed") /* the numbers are those of qn_order */                                  \
    X(STRIPED, "striped")                                                                          \
    X(ORDERED, "ordered")

#define QN_TREE_ENUM(prefix, LIST, N) enum { LIST(prefix) N }
#define QN_ROLE_NAME(id, text) QN_ROLE_##id,
#define QN_TAIL_NAME(id, text) QN_TAIL_##id,
#define QN_STORAGE_NAME(id, text) QN_STORAGE_##id,
#define QN_CONTENT_NAME(id, text) QN_CONTENT_##id,
#define QN_METHOD_NAME(id, text) QN_METHOD_##id,
#define QN_CHECK_NAME(id, text) QN_CHECK_##id,
#define QN_POINTS_NAME(id, text) QN_POINTS_##id,
QN_TREE_ENUM(QN_ROLE_NAME, QN_ROLE_LIST, QN_N_ROLES);
QN_TREE_ENUM(QN_TAIL_NAME, QN_TAIL_LIST, QN_N_TAILS);
QN_TREE_ENUM(QN_STORAGE_NAME, QN_STORAGE_LIST, QN_N_STORAGES);
QN_TREE_ENUM(QN_CONTENT_NAME, QN_CONTENT_LIST, QN_N_CONTENTS);
QN_TREE_ENUM(QN_METHOD_NAME, QN_METHOD_LIST, QN_N_METHODS);
QN_TREE_ENUM(QN_CHECK_NAME, QN_CHECK_LIST, QN_N_CHECKS);
QN_TREE_ENUM(QN_POINTS_NAME, QN_POINTS_LIST, QN_N_POINTS);
extern const char *const qn__role_names[], *const qn__tail_names[],
                                               *const qn__storage_names[],
                                                   *const qn__content_names[],
                                                       *const qn__method_names[],
                                                           *const qn__check_names[],
                                                               *const qn__points_names[];

/* ---------------------------------------------------------------- handles and limits */

/** Numbers from 1; 0 is none. */
typedef struct qn_axis {
    uint16_t id;
} qn_axis;
typedef struct qn_node {
    uint16_t id;
} qn_node;

enum {
    QN_MOST_AXES = 160,
    QN_MOST_CUTS = 64,
    QN_MOST_PARTS = 20, /* of a cut */
    QN_MOST_NODES = 512,
    QN_MOST_DEPTH = 64, /* of the tree */
    QN_MOST_BUFFERS = 32,
    QN_MOST_BUFFER_AXES = 8,
    QN_MOST_REDUCTIONS = 64,
    QN_MOST_TUPLE = 8,
    QN_MOST_RECORDS = 2048,
    QN_MOST_STEPS = 512,
    QN_MOST_STEP_AXES = 40, /* of a transformation */
    QN_MOST_LANES = 64,     /* of a vector loop */
    QN_MOST_UNROLLED = 128, /* iterations of an unrolled loop */
    QN_MOST_STRAIGHT = 256, /* additions without a loop */
    QN_MOST_COPIES = 40000  /* of instructions of the body in the code */
};

/* ---------------------------------------------------------------- axes */

enum { QN_AXIS_NONE, QN_AXIS_DIM, QN_AXIS_POINT, QN_AXIS_TRIP, QN_AXIS_PART };
/** How often an axis is walked. EXACT: `most` times. MOST: at most so often, as it is the part of
 * an axis that need not be whole. SYMBOLIC: a number that one launch knows. DATA: a number that
 * differs between iterations. */
enum { QN_COUNT_EXACT, QN_COUNT_MOST, QN_COUNT_SYMBOLIC, QN_COUNT_DATA };
typedef struct qn_count {
    int32_t kind;
    int64_t most; /* EXACT and MOST, else INT64_MAX */
} qn_count;

typedef struct qn_axis_info {
    uint8_t kind;
    uint8_t number; /* DIM: dimension; POINT: which dimension of the reduce; PART: which part */
    uint8_t cut;    /* PART: index in qn_schedule.cut */
    uint8_t reserved;
    uint32_t inst;  /* POINT: the reduce; TRIP: the for */
    qn_axis of;     /* PART: the axis that was cut */
    qn_count count; /* DIM, POINT, TRIP: a claim */
} qn_axis_info;

/** A place on an axis where a section ends: an offset from its begin, its end, or the index of an
 * axis around it. */
enum { QN_FROM_BEGIN, QN_FROM_END, QN_FROM_AXIS };
typedef struct qn_bound {
    uint8_t from;
    qn_axis axis;
    int64_t offset;
} qn_bound;

/**
 * An axis cut into parts, which are consecutive axes. DIGITS: every iteration is a tuple of parts,
 * slowest first; each part but the slowest has an extent, and the slowest has what is left.
 * SECTIONS: every iteration is in one part; section n ends at bound[n], or where the section before
 * it ends if that is later, and the last one with the axis.
 */
enum { QN_CUT_DIGITS, QN_CUT_SECTIONS };
typedef struct qn_cut {
    uint8_t kind, n, tail, letter; /* letter: which cut of this axis, from 0 */
    qn_axis of, first;
    union {
        int64_t extent[QN_MOST_PARTS]; /* DIGITS: [0] unused */
        qn_bound bound[QN_MOST_PARTS]; /* SECTIONS: the last unused */
    };
} qn_cut;

/* ---------------------------------------------------------------- nodes */

/** LOOP: over an axis. DO: runs instructions [first, end). PLACE: where accumulators of a reduction
 * begin, or the trips of a `for`; its children run the region. FILL, FLUSH: of a buffer. */
enum {
    QN_NODE_FREE,
    QN_NODE_LOOP,
    QN_NODE_DO,
    QN_NODE_PLACE,
    QN_NODE_FILL,
    QN_NODE_FLUSH
};
typedef struct qn_node_info {
    uint8_t kind, role;
    uint8_t index; /* of the buffer or the reduction */
    qn_axis axis;  /* of a LOOP */
    qn_node parent, child, next;
    uint32_t first, end;
    int32_t line; /* of the text that it was read from, for messages; 0: none */
} qn_node_info;

typedef struct qn_buffer_info {
    uint8_t content, storage, n_axes;
    uint32_t inst; /* the load, store or reduce */
    qn_axis axis[QN_MOST_BUFFER_AXES]; /* slowest first */
    int64_t bytes;
} qn_buffer_info;

/** A reduction is a tuple of reduces over the same dimensions, or one `for`. Statements between the
 * reduces of a tuple come after all of them. */
typedef struct qn_reduced {
    uint8_t n, order;
    uint8_t buffer; /* 1 + index of that of the accumulators, 0: they are in registers, and need no
                       name */
    uint32_t inst[QN_MOST_TUPLE];
} qn_reduced;

/** How the access of one statement is made; the tail of a cut has records of its own. */
typedef struct qn_record_info {
    qn_node at; /* the DO */
    uint32_t inst;
    uint8_t is_tail, method, check;
    uint8_t index;    /* THROUGH: 1 + that of the buffer; GROUP: its number; TABLE: registers */
    uint8_t streams;  /* a non-temporal store */
    uint8_t is_plain; /* an atomic by plain instructions */
    uint8_t is_single; /* STRIDED, GROUP, THROUGH: the lanes have accesses of their own where they
                          move neither together nor through the buffer */
    uint8_t is_flat;   /* GROUP: with other members of a flat group (jit/analysis/flat.h) */
    qn_axis along;    /* of the prefetch distance */
    int32_t ahead;    /* iterations of `along` ahead at which memory is asked for; 0: it is not */
    int64_t stride;   /* STRIDED, GROUP: elements from lane to lane */
} qn_record_info;

/** A transformation that was applied (jit/schedule/transform.h). */
typedef struct qn_step {
    uint8_t which, n_axes, n_numbers, option;
    qn_axis axis[QN_MOST_STEP_AXES];
    uint32_t inst;
    int64_t number[4];
    qn_bound bound[3];
} qn_step;

typedef struct qn_schedule {
    int32_t n_axes, n_cuts, n_nodes, n_buffers, n_reductions, n_records, n_steps;
    int32_t straight; /* points of a reduce are emitted one behind the other where these are at most
                         so many additions; -1: as the rules say (qn__straight_of) */
    qn_node root; /* the first of the outermost nodes */
    qn_axis_info axis[QN_MOST_AXES + 1];
    qn_cut cut[QN_MOST_CUTS];
    qn_node_info node[QN_MOST_NODES + 1];
    qn_buffer_info buffer[QN_MOST_BUFFERS];
    qn_reduced reduction[QN_MOST_REDUCTIONS];
    qn_record_info record[QN_MOST_RECORDS];
    qn_step step[QN_MOST_STEPS];
} qn_schedule;

/* ---------------------------------------------------------------- making and reading (tree.c,
 * axis.c) */

/**
 * The schedule of the kernel as declared: a sequential loop for each sequential and parallel
 * dimension, outermost first; inside them the statements of the body and the reduces at its top,
 * each with loops over its dimensions. Errors: QN_ERR_LIMIT if the kernel has too many reduces or
 * accesses.
 */
qn_status qn__schedule_begin(const qn_analysis *x, qn_schedule *out, qn_error *err);
/** That schedule without access records, for whoever makes its loops first. */
qn_status qn__schedule_declared(const qn_analysis *x, qn_schedule *out, qn_error *err);
/** Loops over its dimensions alone, around the whole body as one statement without records. */
qn_status qn__schedule_loops(const qn_analysis *x, qn_schedule *out, qn_error *err);
/** Additions of a reduce that have no loop. */
int qn__straight_of(const qn_analysis *x, const qn_schedule *s);
/** A copy of what is used. */
void qn__schedule_copy(const qn_schedule *from, qn_schedule *to);
/** An axis or a node; of a number out of range one of kind 0. */
const qn_axis_info *qn__axis(const qn_schedule *s, qn_axis a);
const qn_node_info *qn__node(const qn_schedule *s, qn_node n);
/** New ones; 0 without room. */
qn_axis qn__axis_new(qn_schedule *s, const qn_axis_info *info);
qn_node qn__node_new(qn_schedule *s, const qn_node_info *info);
/** Puts node n behind the last child of `parent`, or of the root. */
void qn__node_append(qn_schedule *s, qn_node parent, qn_node n);
/** Takes n out of its place and puts `instead`, which may be 0, there. */
void qn__node_replace(qn_schedule *s, qn_node n, qn_node instead);
/** Cuts an axis: `digits` has kind, n, tail and extents or bounds. False without room. */
bool qn__axis_cut(qn_schedule *s, qn_axis of, const qn_cut *how, qn_axis *first);
qn_axis qn__axis_part(const qn_cut *c, int n);
/** Where an axis stands: `name` has room for QN_AXIS_NAME_BYTES. */
enum { QN_AXIS_NAME_BYTES = 64 };
void qn__axis_name(const qn_schedule *s, qn_axis a, char *name);
/** What the name of an axis begins with: that of a dimension, points or trips. Returns what is
 * behind, NULL: it begins with none. */
const char *qn__axis_root(const char *name, qn_axis_info *out);
/** The axis of a name; 0: none. */
qn_axis qn__axis_find(const qn_schedule *s, const char *name);
/** The axis of the points of a reduce along dimension d; of instruction 0 that of the iterations,
 * with d = -1 that of the trips of a `for`. 0: there is none. */
qn_axis qn__axis_over(const qn_schedule *s, uint32_t inst, int d);
/** How often an axis is walked, from facts. */
qn_count qn__axis_count(const qn_analysis *x, const qn_schedule *s, qn_axis a);
/** Steps of its root by which an axis moves; 0 if that is not known, or it has several roots.
 * *root: the root, if that is wanted. */
int64_t qn__axis_weight(const qn_analysis *x, const qn_schedule *s, qn_axis a, qn_axis *root);
/** The domain dimension of an axis that is made of one, else -1. */
int qn__axis_dim(const qn_analysis *x, const qn_schedule *s, qn_axis a);
/** Bit d: index d of the domain depends on the axis; the bit of qn__trips_dim is that of trips. */
uint32_t qn__axis_dims(const qn_analysis *x, const qn_schedule *s, qn_axis a);
/** Whether `a` is `of`, or made of a part of it. */
bool qn__axis_is_of(const qn_schedule *s, qn_axis a, qn_axis of);
/** The place of an axis among those of a buffer, -1: it is none of them. */
int qn__buffer_place(const qn_buffer_info *b, qn_axis a);
/** Whether a node is, or stands inside of, another one; of 0 that is all of the schedule. */
bool qn__is_within(const qn_schedule *s, qn_node n, qn_node outer);
/** The vector loop around a node, or 0. */
qn_node qn__vector_around(const qn_schedule *s, qn_node n);
/** The `for` whose trips an axis is made of; 0: there is none. */
uint32_t qn__axis_loop(const qn_analysis *x, const qn_schedule *s, qn_axis a);
/** The loops of the body whose trips are lanes. */
qn_trip_lanes qn__trip_lanes_of(const qn_analysis *x, const qn_schedule *s);
/** The next node of a schedule behind l that is a loop; NULL: none. */
const qn_node_info *qn__loop_behind(const qn_schedule *s, const qn_node_info *l);
/** All loops: l is one of s->node. */
#define FOR_LOOPS(s, l)                                                                            \
    for (const qn_node_info *l = (s)->node; (l = qn__loop_behind(s, l)) != NULL;)
/** The dimension of the lanes of the statements; -1: they have none, or those of trips. */
int qn__lanes_of(const qn_analysis *x, const qn_schedule *s);
/** Whether threads of the host or of a GPU divide any loop. */
bool qn__has_threads(const qn_schedule *s);
/** The reduction that reduce i is one of; NULL: there is none. */
const qn_reduced *qn__reduction_of(const qn_schedule *s, uint32_t i);
/** Makes the access records of all statements anew, each by the method that the facts allow; what
 * was asked of a record (streams, ahead, through a buffer) is kept. QN_ERR_LIMIT if they are too
 * many. */
qn_status qn__schedule_derive(const qn_analysis *x, qn_schedule *s, qn_error *err);
/** The record of an access in a statement; NULL: it has none. */
const qn_record_info *qn__record_at(const qn_schedule *s, qn_node at, uint32_t inst, int is_tail);
/** Sets is_flat[i] of each access of a statement that is flat where its record and those of the
 * stores of its group are of groups; of_flat: and say that they are flat. */
void qn__find_flat(const qn_analysis *x, const qn_schedule *s, qn_node at, bool of_flat,
                   uint8_t *is_flat);
/** The method and the check that an access at its node has by the facts. */
void qn__record_derive(const qn_analysis *x, const qn_schedule *s, qn_record_info *r);

/* ---------------------------------------------------------------- text (tree_text.c) */

/** Appends the text. */
void qn__schedule_print(const qn_schedule *s, qn_text *out);
/** The inverse, for a kernel. Errors: QN_ERR_PARSE with the line, QN_ERR_LIMIT. *out is no schedule
 * then. */
qn_status qn__schedule_parse(const char *text, size_t n, qn_schedule *out, qn_error *err);

/* ---------------------------------------------------------------- what is right (verify*.c) */

/** Adds the access records that a text leaves out: by the method and the check that the facts give.
 * Errors: those of qn__schedule_verify for axes and cuts; QN_ERR_LIMIT. */
qn_status qn__schedule_complete(const qn_analysis *x, qn_schedule *s, qn_error *err);

/** Recomputes every claim of a schedule from kernel and facts. The message names the first that
 * does not hold. QN_ERR_ARGUMENT: a claim does not hold; QN_ERR_LIMIT: the code would be too large;
 * QN_ERR_MEMORY. */
qn_status qn__schedule_verify(const qn_analysis *x, const qn_schedule *s, qn_error *err);

/* ---------------------------------------------------------------- summary and footprint */

/** Whether value i of the body can be made again by what stands before instruction `until`: of
 * indices, and of loads in range of what nobody writes meanwhile. An iteration reads what it alone
 * writes, so only stores before `until` count. */
bool qn__may_be_made_again(const qn_analysis *x, uint32_t i, uint32_t until);
/**
 * Whether n reduces, in their order in one region, may be folded point by point together, where the
 * first of them stands: none may fail, and later ones need nothing that is made, or written, by
 * what stands before them from the first on.
 */
bool qn__may_be_tuple(const qn_analysis *x, int n, const uint32_t *reduce);
/** Loops, outermost first: axes and roles. */
typedef struct qn_walk {
    int n;
    qn_axis loop[QN_MOST_DEPTH];
    uint8_t role[QN_MOST_DEPTH];
} qn_walk;
/** Whether the points of a reduce may be walked by these loops: axes of its dimensions. `why` says
 * what forbids it, a text for messages. */
bool qn__may_walk_points(const qn_analysis *x, const qn_schedule *s, uint32_t reduce,
                         const qn_walk *w, const char **why);

/** What the accesses of a view touch in some iterations. */
typedef struct qn_box {
    int32_t rank;
    int64_t low[QN_MAX_RANK];    /* the smallest constant of the index, relative to the others */
    int64_t extent[QN_MAX_RANK]; /* indices from the first to the last; -1: not known */
} qn_box;
/** Of one access whose dimensions have spans[d] iterations, -1 where that is not known. */
void qn__box_of_spans(const qn_analysis *x, uint32_t inst, const int64_t *spans, qn_box *out);
/** Widens a box by another one of accesses whose indices differ from those of the first by
 * constants. */
void qn__box_widen(qn_box *b, const qn_box *other);

#endif
