/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.h: private to the lowering, which is in the files named below. The body of a kernel is
 * emitted for a block of iterations at once: `width` lanes of one vector, times `unroll` vectors of
 * the lane dimension, times `jam` iterations of a second dimension. One such vector is a part.
 *
 * Parts. p = u * jam_max + j names vector u of jammed iteration j, one point of the product of all
 * unrolled loops but that over the vectors (lower/block.c). A value that does not differ between
 * some parts is kept once, at its canonical part.
 *
 * Levels. Level 0 is the function's entry; every loop, and every real branch, opens one more. A
 * value is placed at the lowest level at which its operands exist (that is: hoisted out of loops),
 * but never out of a branch. When a level is closed, everything placed in it is forgotten, so a
 * value is emitted again where it is needed again.
 *
 * Pure instructions are emitted on demand; loads, stores, atomics and regions in program order.
 * (Loads of a plain reduce are emitted on demand too: fewer of them wait in registers.)
 */
#ifndef QN_JIT_LLVM_LOWER_H
#define QN_JIT_LLVM_LOWER_H

#include "jit/analysis/analyse.h"
#include "jit/lower/parts.h"
#include "jit/schedule/buffer.h"
#include "jit/schedule/forms.h"

#include <llvm-c/Core.h>

/** Bits of g->edges: parts that are outside in the threads where the domain begins, or ends, along
 * the lanes and along the jammed dimension. */
enum { N_EDGES = 4 };
/* Instructions of a body, or of a loop, of which there are versions side by side: each is compiled
 * as often as it is emitted. */
enum { MOST_TWICE = 64 };
enum { MOST_PARTS = 40, MOST_LEVELS = 200, MOST_SCRATCH = 160 };

/** An emitted value: one LLVM value per canonical part. */
typedef struct emitted {
    LLVMValueRef *part; /* [MOST_PARTS], from the arena; NULL before the first use */
    int level;
    bool is_set;
    uint16_t record[2]; /* 1 + number of the record of the access in the schedule, in whole steps of
                           the lanes and in the rest; 0: none */
    uint8_t through[2]; /* 1 + the buffer that the load goes through, in whole steps of the lanes
                           and in the rest; 0: none */
} emitted;

typedef struct level {
    LLVMBasicBlockRef anchor; /* the block from which the level was entered; values of the level
                                 below go to its end */
    bool is_branch;           /* nothing is hoisted out */
    bool is_sequential;       /* loads are not hoisted out */
    bool may_be_empty; /* the guard of a loop that may run no trip: loads are not hoisted out */
    LLVMValueRef index; /* of the loop, NULL: there is none */
    int64_t multiple;   /* what divides that index */
    int n_loaded;       /* vectors that are loaded in it for levels further in */
} level;

/** The part of a dimension that is run, or a piece of it. */
typedef struct span {
    LLVMValueRef low, high;
} span;

/** A buffer of the schedule that holds a copy (lower/buffer.c). */
typedef struct filled {
    qn_buffer_layout layout;
    LLVMValueRef memory;            /* NULL: it was not filled yet, or it is in registers */
    LLVMValueRef base[QN_MAX_RANK]; /* index of each dimension where the buffer begins */
    int base_level[QN_MAX_RANK];
    bool has_rest; /* it holds what steps of the lanes that are not whole read, too */
} filled;

/** Where the builder stands: before an instruction, or at the end of a block. */
typedef struct place {
    LLVMBasicBlockRef block;
    LLVMValueRef before;
} place;

/** What a derived value that is shared is of: splats, products, partial addresses. */
typedef struct memo_key {
    int kind; /* MEMO_... */
    LLVMValueRef a, b;
    int64_t n;
} memo_key;
typedef struct memo {
    memo_key key;
    int level;
    LLVMValueRef result;
    int32_t next;
} memo;
enum {
    MEMO_SPLAT = 1,
    MEMO_SCALE,
    MEMO_PRODUCT,
    MEMO_SUM,
    MEMO_ADDRESS,
    MEMO_QUOTIENT,
    MEMO_REMAINDER,
    MEMO_SLOT,
    MEMO_RESIZE,
    MEMO_LINEAR,
    MEMO_AHEAD,
    MEMO_TABLE,
    MEMO_GROUP,
    MEMO_FLAT,
    MEMO_PLACE
};
enum { MEMO_HEADS = 1024 };

enum { QN_MOST_RECURRENT = 4 };
/** Values that the last steps of a dimension stored with one store. */
typedef struct recurrence {
    uint32_t store; /* 0: there is none */
    int dim, n;
    LLVMValueRef value[QN_MOST_RECURRENT]; /* the first one is that of the step before */
    LLVMValueRef stored;                   /* by this step, as in memory */
} recurrence;

typedef struct lower {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMValueRef function, slots, range, fault;
    int first_range; /* where the words of qn_entry's `range` begin in `range` */
    const qn_kernel *k;
    const qn_facts *f;
    const qn_grid *grid;            /* of a GPU: how threads walk the domain; else NULL */
    const qn_schedule *schedule;    /* whose loops are emitted; NULL of a GPU */
    const qn_analysis *scalar;      /* of scalar code: what it is of */
    const qn_block *block;          /* of the schedule; of trips while these are lanes, */
    qn_block trip_block;            /* this one */
    const struct qn_hooks *hooks; /* of the target (lower/hooks.h) */
    qn_analysis a;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr; /* ptr: to the data of views */

    int width, unroll, jam; /* of the block being emitted; jam: bits of jam_active */
    int one_part;           /* 1 + the only part that is emitted now; 0: all are */
    int jam_max;            /* part encoding */
    int across, n_across;   /* of the last jammed iterations, so many next to one another; -1: they
                               are not */
    bool lanes_are_aligned; /* vectors of the lanes begin at multiples of their width, from the
                               begin of the dimension on */
    uint64_t jam_active;    /* bit j: jammed iteration j is emitted */
    uint32_t jam_dims;      /* bit d: the index of dimension d differs between jammed iterations */
    int64_t jam_ahead[QN_MAX_RANK][MOST_PARTS]; /* how far it is from that of iteration 0 */
    uint64_t jam_same[QN_MAX_RANK][MOST_PARTS]; /* bit i: it is that of iteration i */
    LLVMValueRef mask[MOST_PARTS];      /* <width x i1>, active lanes; NULL: all */
    LLVMValueRef active;                /* a mask that has some lane here; NULL: none is known */
    LLVMValueRef
        tail_mask[MOST_PARTS]; /* the same for the remainder alone: lanes inside the domain */
    struct {
        LLVMValueRef mask, count; /* a mask of the first lanes, and of how many; NULL: none is */
    } first_lanes;
    uint8_t edges[MOST_PARTS]; /* of a GPU: the edges that a part's mask comes from, as bits */
    LLVMValueRef side[2][MOST_PARTS]; /* the masks of each vector of lanes, and of each jammed
                                         iteration; NULL: none */
    uint32_t stored_end;        /* stores before this instruction were done with an earlier one
                                   (lower/wide.c) */
    LLVMValueRef edge[N_EDGES]; /* and the conditions under which all parts at one are inside; NULL:
                                   always */

    LLVMValueRef iv[QN_MAX_RANK]; /* index of each open dimension: of lane 0, vector 0, jam 0 */
    int iv_level[QN_MAX_RANK];
    int64_t ahead[QN_MAX_RANK]; /* constant part of the index, added where iv is used; it goes into
                                   displacements */
    int ahead_level[QN_MAX_RANK]; /* of what depends on it, at least iv_level; 0 if there is none */
    LLVMValueRef begin[QN_MAX_RANK], end[QN_MAX_RANK];

    level level[MOST_LEVELS];
    int depth;
    LLVMValueRef before; /* what the builder stands before while seeking, else NULL */
    emitted *value; /* [k->n_insts] */
    filled *filled; /* [schedule->n_buffers]; NULL: there are none */
    memo *memo;
    int32_t n_memos, memo_capacity, memo_head[MEMO_HEADS];
    uint8_t *through; /* [n_accesses] 1 + number of its buffer in the schedule; 0: it has none */
    uint32_t *site; /* access site of each instruction */
    bool *covered;  /* [n_accesses] tested before the `for` around it (lower/version.c) or the body
                       (lower/inside.c) */
    bool *is_ahead; /* [n_accesses] loaded with an earlier one that is tested alike */
    int64_t covered_trips; /* which has no more trips then */
    LLVMValueRef *in_range; /* i1: whether all accesses were in range so far in a loop that runs
                               ahead of its checks; NULL: none does */
    uint64_t written_too; /* see qn__written_too */
    int points_level;     /* around the reduce that is emitted: nothing is stored inside */
    LLVMValueRef scratch[MOST_SCRATCH]; /* arrays of partials on the stack, reused by reduces that
                                           are not nested */
    int n_scratch, scratch_used;
    int streaming;     /* STREAM_...: which stores are non-temporal now */
    bool has_streamed; /* any was emitted */
    struct {
        LLVMValueRef low, high;             /* the iterations */
        LLVMValueRef result[MOST_STRIPPED]; /* arrays of the reduces at the top that are done */
        uint32_t done; /* those before this instruction; 0: no strip is being emitted */
    } strip; /* see lower/strip.c */
    struct {
        uint32_t buffers;    /* those that hold line ends, as bits */
        LLVMValueRef memory; /* where row 0 would have its line */
        LLVMValueRef first;  /* index of the lanes' first step; NULL: nothing is carried now */
    } ends;                  /* see lower/line_ends.c */
    recurrence recurrence; /* see lower/recurrence.c */
    LLVMValueRef scratch_memory; /* of the launch: for the sums of a strip, the lines of
                                    line ends, or buffers of the schedule */
    int lanes_level;   /* where the bounds of the loop over the lanes are known */
    int rest_lanes;    /* lanes that run of the last vector of this step, 0: all, or not known */
    bool loads_on_demand; /* where they are first used, in a region without branches whose loads
                             need no checks */
    LLVMValueRef alone;   /* i1, of atomics of threads: this launch has one; else NULL */
    LLVMValueRef collects;       /* i1: updates go where place_in_block has them; NULL: all do */
    LLVMValueRef lane_buffer[4]; /* what lanes of atomics bring, made when first needed */
    LLVMValueRef group_buffer;   /* the same of several atomics that stand together */
    bool is_cold;                /* what is emitted now should be small */
    int step; /* of a grid: 0, 1 */
    qn_debug *debug;       /* NULL: no lines for debuggers */
    LLVMMetadataRef scope; /* of these */
    int32_t shared_bytes; /* of reduces by blocks, as far as they are emitted */
    /* of a grid, see target/nvptx/nvptx.h */
    bool is_team;         /* all lanes of the warp run the code alike */
    uint32_t team_reduce; /* the reduce whose points the lanes share, while its region is emitted;
                             else 0 */
    LLVMValueRef lane;    /* i64, of this thread in its warp */
    int64_t multiple[QN_MAX_RANK]; /* what divides the index of a dimension, counted from its begin;
                                      0: nothing is known */
    LLVMValueRef kept;    /* the memory of the team for what grids keep; NULL: it has none */
    LLVMValueRef kept_row; /* of a block's tile, i64; NULL: a warp has one */
    LLVMValueRef moved_ahead[QN_MOST_MOVED]; /* of rows: from where this thread touches the view to
                                                where it does in shared memory, in bytes */
    bool kept_is_read; /* what points keep is there, and read where the same reduce wrote it, too */
    const LLVMValueRef *held; /* [part x QN_MOST_HELD + site] values of loads that were made before;
                                 NULL: none */
    int64_t
        work; /* what one trip of the loop being emitted does in loops inside, see lower/poll.c */
    LLVMBasicBlockRef cancelled; /* where a cancelled launch leaves; NULL: nothing looks */
    LLVMBasicBlockRef ended; /* where one leaves whose first failure is known; NULL: none does */
    LLVMValueRef looks;          /* memory that counts them behind a failure */
    bool may_fail;               /* an access with a check was emitted */
    uint32_t in_order; /* dimensions whose loops are open and the outermost ones, in the order of
                          the domain, as bits */
    LLVMValueRef cancel; /* the address of the word that says so, read at the begin; NULL: no loop
                            looks after every trip */
    bool failed;  /* out of memory, too deep or beyond the budget: emission goes on, the result is
                     dropped */
    bool is_over; /* beyond the budget: no more values and statements are emitted */
    bool is_fast; /* instructions are selected fast: scalar code */
    int64_t budget, spent; /* units; since the function was last counted, by estimate */
} lower;
/** Notes that one part of an instruction is emitted next; false if nothing is any more
 * (lower/level.c). */
bool qn__spend(lower *g, uint32_t i);

/** Level of what depends on the index of dimension d. */
static inline int qn__index_level(const lower *g, int d)
{
    return g->ahead_level[d] > g->iv_level[d] ? g->ahead_level[d] : g->iv_level[d];
}

/** Sets the index of a dimension where the lowering stands. */
static inline void qn__set_index(lower *g, int d, LLVMValueRef index)
{
    g->iv[d] = index;
    g->iv_level[d] = g->depth;
}

/** Sets the constant part of an index for what is emitted from level `at` on, or takes it away (0,
 * 0). */
static inline void qn__set_ahead(lower *g, int d, int64_t n, int at)
{
    g->ahead[d] = n;
    g->ahead_level[d] = at;
}

/** How far the index of dimension d for part p is from that of part 0. */
static inline int64_t qn__part_ahead(const lower *g, int d, int p)
{
    int64_t ahead = g->jam_ahead[d][p % g->jam_max];
    return d == g->block->lane_dim ? ahead + (int64_t)(p / g->jam_max) * g->width : ahead;
}

/** Loops over the parts of the current block that are emitted now. */
#define FOR_PARTS(g, p)                                                                            \
    for (int p##_u = 0; p##_u < (g)->unroll; p##_u++)                                              \
        for (int p##_j = 0, p = p##_u * (g)->jam_max; p##_j < (g)->jam_max; p##_j++, p++)          \
            if (!((g)->jam_active >> p##_j & 1) || ((g)->one_part && (g)->one_part != p + 1)) {    \
            } else

/* ---- lower/block.c: the parts of a block */
/** The jammed iterations of the block: those of its unrolled loops. */
void qn__parts_of_block(lower *g);
/** Sets g->lanes_are_aligned. */
void qn__find_alignment(lower *g);
/** Whether an index of a dimension of several digits has one value of all but the fastest digit in
 * the lanes: its first lane is a multiple of the width, and the width divides the fastest digit. */
bool qn__lanes_share_digits(const lower *g, uint32_t value, const qn_dim_fact *dim);
/** Whether the jammed iterations of an index of two digits are all of the fastest digit, and begin
 * with it: *ahead is that of part p. Strides are numbers, and the second is a multiple of the
 * extent of the first. */
bool qn__jam_shares_digits(const lower *g, uint32_t value, const qn_dim_fact *dim, int p,
                           int64_t *ahead);
/** Emits the first n jammed iterations, or those of a mask, until the next call. */
void qn__set_jam(lower *g, int n);
void qn__set_active(lower *g, uint64_t active);
/** Jammed iterations whose index of dimension d is less than n ahead. */
uint64_t qn__jammed_below(const lower *g, int d, int64_t n);
/** How many indices of dimension d they have. */
int64_t qn__jammed_step(const lower *g, int d);
/** Sets how far the index of a jammed dimension is ahead in each iteration: ahead[j], g->jam_max of
 * them. */
void qn__set_jam_ahead(lower *g, int d, const int64_t *ahead);

/* ---- lower/level.c: types, constants, levels, shared values */
LLVMTypeRef qn__lane_type(const lower *g,
                          int dtype); /* register type: vector, or scalar when width is 1 */
LLVMTypeRef qn__scalar_type(const lower *g, int dtype); /* bool is i1 */
LLVMTypeRef qn__memory_type(const lower *g, int dtype); /* bool is i8 */
LLVMTypeRef qn__vector_of(const lower *g, LLVMTypeRef t); /* t itself when width is 1 */
LLVMTypeRef qn__as_many(LLVMTypeRef t, LLVMValueRef v);   /* as many of t as lanes of v, or one */
LLVMValueRef qn__const_i64(const lower *g, int64_t n);
LLVMValueRef qn__const_bits(const lower *g, int dtype, uint64_t bits); /* scalar */
/** A scalar constant in all lanes of type t. */
LLVMValueRef qn__constant_like(LLVMTypeRef t, LLVMValueRef scalar);
/** An integer of type t, or that in all lanes. */
LLVMValueRef qn__int(LLVMTypeRef t, int64_t n);
/** The n elements that `index` names of vector a and, counted on, of b, which may be NULL; -1: any
 * element. n is MOST_SHUFFLED at most. */
enum { MOST_SHUFFLED = 2 * QN_MOST_LANES };
LLVMValueRef qn__shuffle(const lower *g, LLVMValueRef a, LLVMValueRef b, const int *index, int n);
/** n elements of a vector from element `first`, or from the first one on; those beyond the last are
 * any. */
LLVMValueRef qn__part_of(const lower *g, LLVMValueRef v, int first, int n);
LLVMValueRef qn__resized(const lower *g, LLVMValueRef v, int n);
/** The pointer so many bytes further. */
LLVMValueRef qn__ahead(const lower *g, LLVMValueRef pointer, int64_t bytes);
/** The address of element `index` of type t. */
static inline LLVMValueRef qn__gep(const lower *g, LLVMTypeRef t, LLVMValueRef base,
                                   LLVMValueRef index)
{
    return LLVMBuildGEP2(g->b, t, base, &index, 1, "");
}
static inline bool qn__is_vector(LLVMValueRef v)
{
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}
/** Takes lane l out of a vector, and puts one there. */
static inline LLVMValueRef qn__extract(const lower *g, LLVMValueRef v, int l)
{
    return LLVMBuildExtractElement(g->b, v, qn__int(g->i32, l), "");
}
static inline LLVMValueRef qn__insert(const lower *g, LLVMValueRef v, LLVMValueRef lane, int l)
{
    return LLVMBuildInsertElement(g->b, v, lane, qn__int(g->i32, l), "");
}
static inline LLVMTypeRef qn__int_type(const lower *g, int64_t bits)
{
    return LLVMIntTypeInContext(g->context, (unsigned)bits);
}
/** A mask of n constant lanes, those of bits that are set; NULL: all are. */
LLVMValueRef qn__lanes_of_bits(const lower *g, uint64_t lanes, int n);
/** A load and a store of an alignment. */
LLVMValueRef qn__load_at(lower *g, LLVMTypeRef t, LLVMValueRef pointer, unsigned align);
LLVMValueRef qn__store_at(lower *g, LLVMValueRef v, LLVMValueRef pointer, unsigned align);
LLVMValueRef qn__lanes(const lower *g, LLVMTypeRef t, int64_t step); /* <0, step, 2 step, ...> */
LLVMValueRef qn__call(lower *g, const char *name, LLVMTypeRef *overloads, int n_overloads,
                      LLVMValueRef *args, int n);
/** The lesser, or greater, of two integers or vectors of integers. */
LLVMValueRef qn__umin(lower *g, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef qn__smin(lower *g, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef qn__smax(lower *g, LLVMValueRef a, LLVMValueRef b);
/** What two ranges have in common; it may be empty. */
span qn__intersection(lower *g, span a, span b);
LLVMBasicBlockRef qn__new_block(lower *g, const char *name);
/** A buffer in the function's frame. */
LLVMValueRef qn__new_buffer(lower *g, uint64_t bytes, unsigned align);
/** A known i64 constant? */
bool qn__is_const(LLVMValueRef v, int64_t *n);

/** Opens a level entered from the current block, closes it (forgets what it holds). */
void qn__level_open(lower *g, bool is_branch, bool is_sequential, bool may_be_empty);
void qn__level_close(lower *g);
/** Moves the builder to where a value of `level` belongs; returns the level it really gets.
 * qn__unseek goes back. */
int qn__seek(lower *g, int wanted, place *here);
void qn__unseek(lower *g, const place *here);

/** The value, and its level; NULL: it is not there. */
LLVMValueRef qn__memo_find(const lower *g, const memo_key *key, int *at);
void qn__memo_add(lower *g, const memo_key *key, int at, LLVMValueRef result);
/** The value that is found; else NULL, and the builder stands where a value of level *at belongs,
 * until qn__memo_end adds it. *at becomes the level of the value. */
typedef struct sharing {
    memo_key key;
    place here;
    int at;
} sharing;
LLVMValueRef qn__memo_begin(lower *g, sharing *x, memo_key key, int *at);
LLVMValueRef qn__memo_end(lower *g, const sharing *x, LLVMValueRef result);
LLVMValueRef qn__splat(lower *g, LLVMValueRef scalar, int at);
LLVMValueRef qn__slot(lower *g, int slot, LLVMTypeRef t); /* level 0 */
LLVMValueRef qn__fact(lower *g, const qn_fact *fact);     /* level 0, i64 */

/* ---- lower/poll.c: leaving loops of a cancelled launch */
/** Ends the account of a loop: trips of one strip, 1: look after every trip, 0: it need not look.
 * `outer_work` is g->work from before the loop, which was 0 at its begin. */
int64_t qn__strip_trips(lower *g, LLVMBasicBlockRef head, int64_t most_trips, int64_t outer_work);
/** Looks where the builder stands, and goes on behind. */
void qn__look(lower *g);
/** The block where a cancelled launch leaves; after the last instruction of the function. */
void qn__poll_end(lower *g);
/** Closes a loop in strips of so many trips; the block from which l->after is entered. */
struct loop;
LLVMBasicBlockRef qn__strip_close(lower *g, struct loop *l, LLVMValueRef index, int64_t trips);

/** A loop that counts its trips only to end after the most that are allowed. The trip is compared
 * with the end of a strip. */
typedef struct pace {
    LLVMValueRef most, end,
        next; /* end of the strip: at the head, and after the test; NULL: there are no strips */
    LLVMBasicBlockRef edge, below, limit;
    int64_t most_trips, outer_work;
} pace;
/** At the head, among its phis. `most` trips, of which most_trips is a bound. */
void qn__pace_open(lower *g, pace *x, LLVMValueRef most, int64_t most_trips);
/** Goes to `limit` if `most` trips were run, else on, where the builder stands then. */
void qn__pace_test(lower *g, pace *x, LLVMValueRef trip, LLVMBasicBlockRef limit);
/** Ends it; the loop is entered from `before`, and trips jump back to `head` from `latch`. */
void qn__pace_close(lower *g, pace *x, LLVMBasicBlockRef before, LLVMBasicBlockRef head,
                    LLVMBasicBlockRef latch);
/** Lanes of a gather or scatter. */
int qn__lane_accesses(LLVMValueRef instruction);

/* ---- lower/value.c: values of instructions */
/** Canonical part of value i for part p. */
int qn__canonical_part(const lower *g, uint32_t i, int p);
/** Builds a pure instruction of these operands, of lanes or of one value, where the builder stands.
 */
LLVMValueRef qn__build_pure(lower *g, uint32_t i, int p, const LLVMValueRef *v);
/** The scalar of a uniform value, lane 0 of a linear one; any value when width is 1. */
LLVMValueRef qn__scalar(lower *g, uint32_t i, int p);
/** The value as a vector (a scalar when width is 1). */
LLVMValueRef qn__vector(lower *g, uint32_t i, int p);
/** An integer as a vector of so many bits: the value modulo 2^bits. */
LLVMValueRef qn__vector_bits(lower *g, uint32_t i, int p, int bits);
/** An integer or a vector of integers, cut to so many bits or extended to them. */
LLVMValueRef qn__in_bits(lower *g, LLVMValueRef v, bool is_signed, int bits);
/** The operands of a pure op on lanes: the value that operand n comes from, and the bits in which
 * an integer is wanted; 0: those of its type. */
typedef struct lane_operand {
    uint32_t from;
    int bits;
} lane_operand;
lane_operand qn__lane_operand(const lower *g, uint32_t i, int n);
/** The integer type of so many bits. */
int qn__integer_of(int bits, bool is_signed);
/** The op of instruction i, of which part p is emitted, on such operands. */
LLVMValueRef qn__build_lanes(lower *g, uint32_t i, int p, const LLVMValueRef *v);
int qn__level_of(lower *g, uint32_t i, int p);
/** The sum of a constant and of the terms of an affine form, i64, in lane 0; has_points: also those
 * of indices of reduces, which are set. */
LLVMValueRef qn__affine_value(lower *g, const qn_affine *f, int64_t constant, bool has_points);
/** Whether control flow on a value is the same for the whole block. */
bool qn__is_uniform(const lower *g, uint32_t i);
/** Sets part p of value i as emitted at level `at`. */
void qn__set(lower *g, uint32_t i, int p, LLVMValueRef v, int at);

/* ---- lower/ops.c: table ops on LLVM values of either shape */
LLVMValueRef qn__lower_op(lower *g, int op, int type, LLVMValueRef a, LLVMValueRef b,
                          LLVMValueRef c);
/** The sum or difference (op) of integers, saturating. */
LLVMValueRef qn__lower_saturating(lower *g, int op, int type, LLVMValueRef a, LLVMValueRef b);
/** neg or abs of a float of which only numbers are made: the bits of a NaN may change. */
LLVMValueRef qn__lower_sign(lower *g, int op, LLVMValueRef v);
LLVMValueRef qn__lower_cast(lower *g, int to, int from, LLVMValueRef v);
/** A float as i64 and back: without its fraction, and no -0. */
LLVMValueRef qn__lower_whole(lower *g, int type, LLVMValueRef v);
LLVMValueRef qn__lower_bitcast(lower *g, int to, int from, LLVMValueRef v);
LLVMValueRef qn__lower_combine(lower *g, int combine, int type, LLVMValueRef accumulated,
                               LLVMValueRef next);

/* ---- lower/control.c */
/** Values that blocks of code hand on, from trip to trip of a loop or beyond a branch: where they
 * stand, and what they were before. */
typedef struct carried_value {
    LLVMValueRef *value, init, phi; /* phi: at the head of a loop */
} carried_value;
typedef struct carry {
    carried_value *of;
    int n;
} carry;
/** Makes phis of n values more at the head of a loop, where the builder stands; the values become
 * these. Those that are NULL are left out. */
void qn__carry(lower *g, carry *c, LLVMValueRef *value, int n);
/** Completes the phis: the loop is entered from `before`, and trips leave the values in `latch`. */
void qn__carry_close(const carry *c, LLVMBasicBlockRef before, LLVMBasicBlockRef latch);
/** Behind a loop that ends at its head: the values are those there. */
void qn__carry_end(carry *c);

/* ---- accesses of memory */
#include "jit/lower/access.h"

/* ---- lower/fault.c */
/** Emits a cold block that records a failure of instruction i for the lanes `bad` (vector, or i1
 * for a scalar access). */
void qn__note_fault(lower *g, uint32_t i, int p, LLVMValueRef bad, int status);
/** Records a failure where `holds` is not so, in active lanes. */
void qn__require(lower *g, uint32_t i, int p, LLVMValueRef holds, int status);
/** An assertion: a test, and a cold block that records the first failure. */
void qn__lower_assert(lower *g, uint32_t i);
/** Branch weights: what the second successor does is laid out away from the loop. */
void qn__mark_likely(lower *g, LLVMValueRef branch_inst);

/* ---- lower/control.c */
/** An integer of 32 or 64 bits behind an empty piece of assembly, which costs no instruction: LLVM
 * knows nothing of it. */
LLVMValueRef qn__opaque(lower *g, LLVMValueRef v);
void qn__lower_region(lower *g, uint32_t begin, uint32_t end);

/** A loop over low, low + step, ... while != high (high - low a multiple of step). */
typedef struct loop {
    LLVMBasicBlockRef guard, before, head, after;
    LLVMValueRef index, start, end, step;
    carry carry;
    bool is_single; /* runs once: no jump back */
    bool is_guarded;
    int64_t most_trips; /* INT64_MAX: not known; the caller may know better */
    int64_t outer_work; /* see lower/poll.c */
} loop;
/** Whether a range is known to have no index. */
static inline bool qn__is_known_empty(span s)
{
    int64_t low, high;
    return qn__is_const(s.low, &low) && qn__is_const(s.high, &high) && high <= low;
}
/** [0, n) */
static inline span qn__up_to(const lower *g, LLVMValueRef n)
{
    return (span){qn__const_i64(g, 0), n};
}
/** How a loop is opened: it may run no trip, and is guarded then; loads are not hoisted out. */
enum { LOOP_MAY_BE_EMPTY = 1, LOOP_IS_SEQUENTIAL = 2 };
/** Opens a loop and its level. A loop known to be empty must not be opened. */
void qn__loop_open(lower *g, loop *l, span s, int64_t step, int how);
/** Carries n values more, next after qn__loop_open. value[] holds those before the loop, and now
 * gets those at its head; at qn__loop_close it holds those at the end of a trip, and gets the final
 * ones. Those that are NULL are left out. */
void qn__loop_carry(lower *g, loop *l, LLVMValueRef *value, int n);
void qn__loop_close(lower *g, loop *l);
/** A loop over 0, 1, ... while < n, at least one. */
void qn__loop_times(lower *g, loop *l, int64_t n);
/** Opens a level, as a loop does, for code that runs once, or not at all where the condition does
 * not hold; a condition of NULL always holds. The level carries nothing. */
void qn__once_open(lower *g, loop *l, LLVMValueRef condition);
/** Says that an open loop over (a part of) dimension d, or of so many indices, has no more trips
 * than these take. */
void qn__loop_bound(const lower *g, loop *l, int d);
void qn__loop_most(loop *l, int64_t n_indices);

/* ---- lower/lower.c */
/** Word n of qn_entry's range. */
LLVMValueRef qn__range_word(lower *g, int n);

/* ---- lower/points.c */
/** The whole function where threads divide the points of reduces. */
void qn__lower_points(lower *g);

/* ---- lower/reduce.c, lower/reduce_lanes.c, lower/stripes.c */
/* The order rules: blocks of points, partials of a block; MOST_DEPTH levels of blocks cover 2.8e14
 * points. */
enum { BLOCK = QN_BLOCK_POINTS, PARTIALS = QN_PARTIALS, MOST_DEPTH = 4 };
/* Reduces in one loop. */
enum { MOST_JOINED = 8 };

/** One reduce while it is lowered. */
typedef struct reduction {
    uint32_t inst, yield;
    uint32_t
        product; /* points are products that are added by fma, see qn__contracted_product; or 0 */
    int type, combine, n_dims;
    int dim[QN_MAX_RANK];
    LLVMValueRef identity; /* scalar */
    int64_t points;        /* -1: not known */
    int n;                 /* accumulators: canonical parts */
    int part[MOST_PARTS];  /* their parts */
    int n_levels;          /* of block results above the points */
    bool is_unordered;     /* the least or greatest f32, whichever zero that is */
    int n_beside;          /* reduces that are folded in the same loop, whose accumulators follow */
    const struct reduction *beside;
    LLVMValueRef low, high; /* of its only dimension, if not the whole range of that; else NULL */
    uint32_t carried; /* what trips of a `for` in lanes combine: the value that they carry */
    LLVMValueRef results; /* points are numbers in memory, 8 bytes apart, see lower/points.c; NULL:
                             the region's */
} reduction;

/** Arrays of 64 partials, one for each level and accumulator: array[level][n]. */
typedef struct stripes {
    LLVMValueRef array[MOST_DEPTH][MOST_PARTS];
    LLVMTypeRef t;
} stripes;

/** What one point adds to each accumulator: value[n], or value[n] x factor[n] with one rounding. */
typedef struct addend {
    LLVMValueRef value[MOST_PARTS], factor[MOST_PARTS];
} addend;
LLVMValueRef qn__add_point(lower *g, const reduction *r, LLVMValueRef accumulated, const addend *a,
                           int n);
/** Emits the region once, for the indices that stand in g->iv, and adds the point to each
 * accumulator. */
void qn__fold_point(lower *g, const reduction *r, LLVMValueRef *acc);
/** Adds all points one behind the other, in the order of their index: dimensions from number `at`
 * on. */
void qn__fold_from(lower *g, const reduction *r, int at, LLVMValueRef *acc);
/** Whether loads of a reduce may be emitted where they are first used: nothing branches, and no
 * load is checked. */
bool qn__is_plain_reduce(const lower *g, const qn_inst *reduce);
/** Evaluates a point without adding: *a is what the point adds to each accumulator. */
void qn__evaluate_point(lower *g, const reduction *r, addend *a);
/** Blocks in index order: state[level * r->n + n] holds accumulators of points, of blocks of 4096,
 * ... With `count` points in them a level that is full goes into the one above. */
void qn__fold_up(lower *g, const reduction *r, LLVMValueRef *state, LLVMValueRef count);
/** The value of an accumulator whose levels are sums[0], sums[apart], ...: later ones are below. */
LLVMValueRef qn__fold_levels(lower *g, const reduction *r, const LLVMValueRef *sums, int apart);
/** Points of a block of blocks ...: 4096^depth. */
int64_t qn__block_size(int depth);
/** Blocks of so many points that n points have; i64. */
LLVMValueRef qn__count_blocks(lower *g, LLVMValueRef n, int64_t size);
LLVMValueRef qn__is_multiple_of_block(lower *g, LLVMValueRef count);
/** Block number i of a range. */
span qn__block_at(lower *g, span s, LLVMValueRef i, int64_t size);
reduction qn__describe_reduction(const lower *g, uint32_t i);
/** Range of dimension d in a reduction. */
span qn__points_of(const lower *g, const reduction *r, int d);
/** Opens a loop over the points of dimension d, whose index it sets. */
void qn__loop_points(lower *g, loop *l, const reduction *r, int d);
/** What part p of the point adds to accumulator n. */
void qn__take_point(lower *g, const reduction *r, int p, bool vector, addend *a, int n);
/** The points of n reduces in the lanes, added to acc[m] of each, in one loop: of integers; of
 * floats in the striped order, over one dimension. */
void qn__lanes_reduce(lower *g, const reduction *r, int n, LLVMValueRef (*acc)[MOST_PARTS]);
/** The type of what points are added to. */
LLVMTypeRef qn__accumulator_type(const lower *g, const reduction *r);
/** The points in the striped order, to one value for each accumulator. */
void qn__fold_striped(lower *g, const reduction *r, LLVMValueRef *acc);
/** Points of dimension d, in order, added to acc; how: LOOP_... */
void qn__fold_run(lower *g, const reduction *r, int d, span s, int how, LLVMValueRef *acc);
/** n reduces that need nothing of one another from the identity on, in one loop, in the order rule
 * of the instruction. */
void qn__reduce_in_order(lower *g, const reduction *r, int n, LLVMValueRef (*acc)[MOST_PARTS]);
/** The result for v, the fold from the identity on: that of an empty range is specified to be
 * another for some. */
LLVMValueRef qn__or_empty(lower *g, const reduction *r, LLVMValueRef v);
LLVMValueRef qn__combine(lower *g, const reduction *r, LLVMValueRef a, LLVMValueRef b);
/** Whether there are several blocks, whose results go through arrays; NULL: there are. */
LLVMValueRef qn__are_several(lower *g, LLVMValueRef blocks);
/** Whether so many are less than a block. */
LLVMValueRef qn__is_below_block(lower *g, LLVMValueRef count);
/** Makes the arrays of levels `first` to the highest. That of points, level 0, gets the identity;
 * any other gets the identity when its first entry comes. */
void qn__stripes_open(lower *g, const reduction *r, stripes *s, int first, LLVMTypeRef t);
/** Adds entry number count - 1 of a level; when its block is full, the block's result goes up. */
void qn__stripes_push(lower *g, const reduction *r, const stripes *s, int depth, LLVMValueRef count,
                      const addend *a);
/** Ends: from level `depth`, which has had `count` entries, to the final value of each accumulator.
 */
void qn__stripes_close(lower *g, const reduction *r, const stripes *s, int depth,
                       LLVMValueRef count, LLVMValueRef *acc);
/** The tuple that a reduce is folded in, by the schedule; NULL: it is folded alone. */
const qn_reduced *qn__tuple_of(const lower *g, uint32_t reduce);
/** Lowers the reduce at i, with all of the tuple that begins with it; a later one of a tuple has
 * its value. */
void qn__lower_reduce(lower *g, uint32_t i);

#endif
