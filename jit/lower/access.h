/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h: private to the lowering: how memory is accessed: addresses, checks, vectors and what
 * takes their place, streams, buffers, and what is asked for ahead. Included by lower.h.
 */
#ifndef QN_JIT_LLVM_LOWER_H
#include "jit/lower/lower.h" /* which includes this file in its place */
#elif !defined(QN_JIT_LLVM_ACCESS_H)
#define QN_JIT_LLVM_ACCESS_H

/* ---- lower/address.c */
enum { ADDRESS_UNIFORM, ADDRESS_UNIT, ADDRESS_REVERSED, ADDRESS_LANES };
enum { MOST_TERMS = 4 * QN_MAX_DIGITS };

/** scalar x scale [x stride], bytes */
typedef struct term {
    LLVMValueRef value, stride;
    int64_t scale;
    int level;
} term;

typedef struct address {
    int kind, level;
    LLVMValueRef pointer; /* of lane 0 */
    LLVMValueRef lanes;   /* <width x i64> byte offsets from pointer; ADDRESS_LANES only */
    LLVMValueRef
        scaled; /* the same, or the first part of the offsets, as elements of scale bytes */
    int64_t scale;
    int64_t stride; /* elements from lane to lane, 0 if not a known constant */
    /* while building */
    term term[MOST_TERMS];
    int n_terms;
    int64_t constant, lane_bytes;
    bool is_gather;      /* its lanes are loaded from anywhere */
    LLVMValueRef narrow; /* of the offsets, <width x i32>, in units of narrow_bytes; NULL: none */
    int64_t narrow_bytes;
} address;

/** Address of part p of access i. With `clamped`, positions (index - lower bound) come from there
 * instead of the index operands. */
void qn__make_address(lower *g, uint32_t i, int p, const LLVMValueRef *clamped, address *x);
/** Bytes by which all that access i may touch is aligned: the size of what it moves at most. */
unsigned qn__align_of(const lower *g, uint32_t i);
/** Whether each lane of a mask is known to be inside or outside; NULL: all are inside. */
bool qn__has_known_lanes(LLVMValueRef mask);
/** Only lanes of the mask are moved, and the others are zero; NULL: all are. The pointer may be a
 * vector of one for each lane. */
LLVMValueRef qn__load_masked(lower *g, LLVMTypeRef t, LLVMValueRef pointer, unsigned align,
                             LLVMValueRef mask);
void qn__store_masked(lower *g, LLVMValueRef v, LLVMValueRef pointer, unsigned align,
                      LLVMValueRef mask);
/** base + index x bytes, shared; `at` is the level of the index, or of the base if that is higher.
 */
LLVMValueRef qn__element_pointer(lower *g, LLVMValueRef base, LLVMValueRef index, int at,
                                 int64_t bytes);
/** A value of a and b, or of a and n, that is shared; `kind`: MEMO_SCALE to MEMO_REMAINDER. *at:
 * the level of both, then that of the result. */
LLVMValueRef qn__shared(lower *g, int kind, LLVMValueRef a, LLVMValueRef b, int64_t n, int *at);
/** Adds the displacement, where the access is, so that it ends in the instruction. */
void qn__displace(lower *g, address *x);
/** Pointers of all lanes (the pointer itself when width is 1), after qn__displace. */
LLVMValueRef qn__lane_pointers(lower *g, const address *x);
/** index - lower bound, as a scalar or a vector. */
LLVMValueRef qn__relative_index(lower *g, uint32_t value, int p, const qn_fact *lower_bound,
                                bool vector);

/* ---- lower/branch.c */
/** All lanes of all parts are active. */
void qn__clear_masks(lower *g);
/** any lane of a mask, as i1; true constant for NULL. */
LLVMValueRef qn__any(lower *g, LLVMValueRef mask);
/** every lane of a vector of i1; its lanes as the bits of an integer. */
LLVMValueRef qn__every(lower *g, LLVMValueRef mask);
LLVMValueRef qn__mask_bits(lower *g, LLVMValueRef mask);
/** The number of the lowest bit that is set of an integer, i64; 64: none is. */
LLVMValueRef qn__first_set(lower *g, LLVMValueRef bits);
/** Whether access i is tested where it stands: it was not proved, nor tested before. */
static inline bool qn__is_tested(const lower *g, uint32_t i)
{
    return qn__is_checked(g->f, g->k, g->site[i]) && !g->covered[g->site[i]];
}
/** mask & more; either may be NULL. */
LLVMValueRef qn__mask_and(lower *g, LLVMValueRef mask, LLVMValueRef more);
/** Code that runs only under a condition, or one of two pieces of code. Of code that runs in any
 * case `from` is NULL, and it stands where it is. */
typedef struct branch {
    LLVMBasicBlockRef from, other, join; /* other: NULL if there is one piece */
    LLVMBasicBlockRef last[2];           /* from where `join` is reached: taken or not */
    carry kept;
} branch;

/** A condition of NULL always holds. */
branch qn__begin_branch(lower *g, LLVMValueRef condition);
/** The first of two pieces, with names for their blocks; qn__begin_other goes on to the second. */
branch qn__begin_choice(lower *g, LLVMValueRef condition, const char *then, const char *other);
void qn__begin_other(lower *g, branch *x);
/** Ends it; the result is `value` if it was taken, else zero. `value` may be NULL. */
LLVMValueRef qn__end_branch(lower *g, branch *x, LLVMValueRef value);
/** Behind the begin of a branch: where that is not taken, n values are at its end what they are
 * here. Those that are NULL are left out. */
void qn__branch_keep(lower *g, branch *x, LLVMValueRef *value, int n);
/** What is `first` from one block and `other` from another. */
LLVMValueRef qn__phi(lower *g, LLVMValueRef first, LLVMBasicBlockRef from, LLVMValueRef other,
                     LLVMBasicBlockRef from_other);
/** What a branch that has ended makes of two values. */
LLVMValueRef qn__join(lower *g, const branch *x, LLVMValueRef taken, LLVMValueRef other);

/* ---- lower/check.c */
/** What the indices of one access need. */
typedef struct check {
    bool is_needed;
    bool is_vector;  /* ok is a vector: the indices differ between lanes */
    LLVMValueRef ok; /* in range */
    bool is_clamped;
    LLVMValueRef position[QN_MAX_RANK];
} check;
/** The address of part p of access i with its displacement; that of a checked access may be
 * clamped. c: NULL: no access is. */
address qn__displaced(lower *g, uint32_t i, int p, const check *c);

/** Tests the indices of part p of access i as far as the facts leave them open. */
check qn__make_check(lower *g, uint32_t i, int p);
/** Records lanes that are active and out of range. */
void qn__report(lower *g, uint32_t i, int p, const check *c);
/** Lanes for which a vector access is performed: NULL for all. Proved loads ignore the masks of
 * branches where their addresses are right for every iteration of the domain. */
LLVMValueRef qn__access_mask(lower *g, uint32_t i, int p, const check *c);
/** Whether a load may be performed in lanes that are not active: it is proved, and its indices are
 * right there too. */
bool qn__ignores_masks(const lower *g, uint32_t i);
/** Whether all lanes access one element: indices of projected dimensions do not matter. */
bool qn__indices_are_uniform(const lower *g, uint32_t i);
/** Whether access i is tested, and is out of range in all lanes of a part or in none: a branch
 * decides whether a part is performed or reported. */
bool qn__is_one_branch(const lower *g, uint32_t i);
/** The first part whose test is that of part p: it comes first, and neither has a mask. */
int qn__tested_with(const lower *g, uint32_t i, int p);
/** Whether lanes of a tested access i are side by side, as far as its test is concerned: where its
 * first and last lane are in range, all are. */
bool qn__is_row(const lower *g, uint32_t i);
/** A branch for lanes that are all in range, and another side for those that may not be. */
branch qn__begin_row(lower *g, uint32_t i, int p);
/** Whether load j, behind load i, is in range where that is: indices that may leave their
 * dimensions are the same, and so are these; all others are known before i is emitted. */
bool qn__is_tested_alike(const lower *g, uint32_t i, uint32_t j);
/** Opens that branch, in which the access is performed. */
branch qn__begin_checked(lower *g, const check *c);
/** Ends the branch: where part p is out of range, the failure is recorded. */
void qn__end_checked(lower *g, branch *x, uint32_t i, int p);

/* ---- lower/inside.c */
/** The body, for the indices that stand in g->iv: where indices are clamped in two versions. */
void qn__lower_body(lower *g);

/* ---- lower/memory.c */
/** Marks a load of what the launch does not write: it may go another way (target->has_read_only).
 */
void qn__mark_invariant(lower *g, LLVMValueRef load);
/** Makes a load or store of one element a relaxed atomic one. */
void qn__make_relaxed(const lower *g, LLVMValueRef access);
/** What load i loads where earlier steps of the loop that is emitted stored it, as in memory; NULL:
 * that is not so. */
LLVMValueRef qn__recurrent(const lower *g, uint32_t i);
/** A load, and those tested alike before `end` with nothing but loads and pure ones between. */
void qn__lower_load(lower *g, uint32_t i, uint32_t end);
/** Emits canonical part p of load i. */
void qn__lower_load_part(lower *g, uint32_t i, int p);
/** The word of 4 bytes that begins with the element of load i, of memory that nobody writes. */
LLVMValueRef qn__load_word(lower *g, uint32_t i);
void qn__lower_store(lower *g, uint32_t i);

/** Between registers and memory: bool is i1 in one and i8 in the other. */
LLVMValueRef qn__to_register(lower *g, int dtype, LLVMValueRef v);
LLVMValueRef qn__to_memory(lower *g, int dtype, LLVMValueRef v);
/** One element as a register has it. */
LLVMValueRef qn__load_as(lower *g, int dtype, LLVMValueRef pointer, int64_t align);
void qn__store_as(lower *g, int dtype, LLVMValueRef v, LLVMValueRef pointer, int64_t align);

/* ---- lower/stride.c */
/** Whether the lanes of access i, a known number of elements apart, are loaded or stored by
 * qn__load_strided or qn__store_strided, only those in `mask`, NULL: all. Else they are gathered.
 */
bool qn__is_strided(const lower *g, uint32_t i, const address *x, LLVMValueRef mask);
/** All lanes of load i that are or may be near one another (qn__nearness); NULL: not so. */
LLVMValueRef qn__load_near(lower *g, uint32_t i, const address *x, LLVMTypeRef t);
/** The lanes in `mask`, NULL: all; x is displaced, t the type in memory. */
LLVMValueRef qn__load_strided(lower *g, uint32_t i, const address *x, LLVMTypeRef t,
                              LLVMValueRef mask);
void qn__store_strided(lower *g, uint32_t i, const address *x, LLVMValueRef v, LLVMValueRef mask);

/* ---- lower/narrow_store.c */
/** How many vectors of the lanes store i stores at once; 1: each has its own. */
int qn__stored_together(lower *g, uint32_t i, uint32_t value);
/** The n vectors from part p on as one. */
LLVMValueRef qn__pack_vectors(lower *g, uint32_t i, int p, uint32_t value, int n);

/* ---- lower/lookup.c */
/** Part p of a load from a small table, by permutation; NULL if it is to be done as usual. */
LLVMValueRef qn__load_table(lower *g, uint32_t i, int p, const check *c);
/** Lookup i at an index, a scalar or a vector. */
LLVMValueRef qn__lower_lookup(lower *g, uint32_t i, LLVMValueRef index);
/** The index of part p of lookup i as qn__lower_lookup takes it: in lanes 32 bits where no clamp is
 * needed, else 64. */
LLVMValueRef qn__lookup_index(lower *g, uint32_t i, int p);

/* ---- lower/group.c: accesses that move whole vectors together */
/** Part p of load i, which has address x, out of the vectors that its group loads; the type of an
 * element in memory is t. NULL: it has no group, or is to be loaded alone. */
LLVMValueRef qn__load_grouped(lower *g, uint32_t i, int p, const address *x, LLVMTypeRef t);
/** Whether access i is made with the other members of a flat group (lower/flat.c). */
bool qn__is_flat(const lower *g, uint32_t i);
/** Whether store i was done, or will be done by a later store of its group. */
bool qn__store_grouped(lower *g, uint32_t i);

/* ---- lower/flat.c: stores of members that are computed alike, in the order of memory */
/** Store i of a flat group: where it is the last one, computes and stores all members. */
void qn__store_flat(lower *g, uint32_t i);

/* ---- lower/transpose.c */
/** All parts of a load or store that runs along the dimension across; false if it is to be done as
 * usual. */
bool qn__lower_transposed_load(lower *g, uint32_t i);
bool qn__lower_transposed_store(lower *g, uint32_t i, uint32_t value);

/* ---- lower/stream.c: with the index of the lanes set to where they begin */
enum { STREAM_NONE, STREAM_ANCHOR, STREAM_ALL };
/** The first index in [low, high] whose element of the first stream is at a cache line; NULL
 * without streams. */
LLVMValueRef qn__emit_stream_begin(lower *g, LLVMValueRef low, LLVMValueRef high);
/** Whether all streams are at cache lines together, as i1; NULL if there is only one. */
LLVMValueRef qn__streams_agree(lower *g);
/** Makes a store of a whole vector non-temporal if it is a stream and g->streaming says so. */
void qn__mark_stream(lower *g, uint32_t i, LLVMValueRef store);
/** Makes a store non-temporal; the address is a multiple of `align`, as many bytes as it writes. */
void qn__make_nontemporal(lower *g, LLVMValueRef store, int64_t align);
/** At the end of the function: what follows on this or another thread sees what was streamed. */
void qn__stream_fence(lower *g);

/* ---- lower/line_ends.c */
/** Until qn__line_ends_close, stores through these buffers of line ends, as bits, write the lines
 * of rows from `first_row` on, which begin with the lanes at first_lane. */
void qn__line_ends_open(lower *g, uint32_t buffers, LLVMValueRef first_row,
                        LLVMValueRef first_lane);
/** Part p of store i, if it is one: v goes to `pointer` and behind. */
bool qn__line_ends_store(lower *g, uint32_t i, int p, LLVMValueRef v, LLVMValueRef pointer);
/** Stores the ends of these rows, whose whole steps ended before `end`. */
void qn__line_ends_close(lower *g, span rows, LLVMValueRef end);

/* ---- lower/buffer.c */
/** Makes g->filled; false without memory. */
bool qn__buffers_open(lower *g);
/** From here on accesses of the statements of node n are made as their records say; or, not any
 * more, they go through the buffers that these name. */
void qn__go_through(lower *g, qn_node n, bool is_begin);
/** The record of access i in the statement that is emitted, NULL: it has none. */
const qn_record_info *qn__record_of(const lower *g, uint32_t i);
/** Whether what is emitted now is no whole step of the lanes. */
bool qn__is_rest(const lower *g);
/** The buffer that load i goes through now, -1: none. */
int qn__buffer_of(const lower *g, uint32_t i);
/** Bytes in a buffer between an index of dimension d and one so many iterations further, where the
 * buffer begins with the first one, or a step of the block does. */
int64_t qn__buffer_distance(const qn_buffer_layout *l, int d, int64_t ahead);
/** The address of part p of the element, or the lanes, at the indices that stand in g->iv. */
LLVMValueRef qn__buffer_pointer(lower *g, int buffer, int p);
/** Stores what load i loads to an address in a buffer. */
void qn__store_copy(lower *g, uint32_t i, LLVMValueRef v, LLVMValueRef pointer);
/** Part p of load i from a buffer in memory. */
void qn__load_through(lower *g, int buffer, uint32_t i, int p);

/* ---- lower/strip.c */
/** Iterations [low, high) of the lanes, whole steps, in strips. */
void qn__lower_strips(lower *g, LLVMValueRef low, LLVMValueRef high);
/** Sets the value of a reduce at the top for the iterations that stand in g->iv if a strip has it
 * in memory; else false. */
bool qn__strip_value(lower *g, uint32_t i);

/* ---- lower/prefetch.c */
/** Asks for the memory so many bytes behind what part p of an access meets: of a load into the
 * second-level cache, of a store into the first, for writing. */
void qn__prefetch(lower *g, uint32_t i, int p, int64_t ahead_bytes);
/** Asks for what `reduce` will load ahead by the points of its record, of dimension d. */
void qn__prefetch_point(lower *g, uint32_t reduce, int d);
/** Asks for this tile's part of what the reduce will load ahead by the steps of the
 * lanes of its record. */
void qn__prefetch_step(lower *g, uint32_t reduce);
/** Asks for what load i will meet ahead by the bytes of its record, if that is of a front row. */
void qn__prefetch_front(lower *g, uint32_t i);

/* ---- lower/atomic.c */
/** Lowers the atomic at i, and maybe those after it in the region that ends before `end`; returns
 * the last one. */
uint32_t qn__lower_atomic(lower *g, uint32_t i, uint32_t end);

#endif
