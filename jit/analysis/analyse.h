/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse.h: what each value of a kernel looks like across the lanes of a vector, and i64 values as
 * affine functions of the domain's indices. Knows no LLVM.
 */
#ifndef QN_JIT_ANALYSE_H
#define QN_JIT_ANALYSE_H

#include "jit/jit.h"

/** Across the lanes: the same, first + lane x step (i64 only, wrapping), or anything. */
enum { QN_UNIFORM = 0, QN_LINEAR = 1, QN_VARYING = 2 };

/** constant + sum of coef[d] x index of domain dimension d + sum of sym_coef[s] x value sym[s]; all
 * wrapping. Behind the domain's dimensions stands the number of the trip of a `for` whose trips are
 * lanes (qn__trips_dim). */
typedef struct qn_affine {
    int64_t constant;
    int64_t coef[QN_MAX_RANK];
    uint32_t sym[2]; /* instruction numbers, 0: none */
    int64_t sym_coef[2];
} qn_affine;

typedef struct qn_value_info {
    uint8_t shape;     /* QN_UNIFORM, ... */
    bool depends_jam;  /* differs between jammed iterations */
    bool is_moved;     /* its bits are stored or passed on; else it is only computed with */
    uint32_t deps;     /* bit d: depends on domain dimension d */
    /* Integers, in vectors (jit/analysis/narrow.c): bits that hold the value in a lane; whether it
     * may be negative, and is then extended by its sign; of some ops the bits in which they are
     * computed, and whether as signed numbers; else 0. The fewest bits of a signed number that hold
     * it. The fewest bits in which a use wants it. */
    uint8_t bits, at, least, wanted;
    bool is_signed, at_signed;
    bool is_absorbed; /* nothing but a saturating sum uses it, and lanes do not compute it */
    uint32_t sum;     /* lanes compute instruction `sum` saturating, in `at` bits; else 0 */
    bool is_part; /* of what trips in lanes carry: a lane has a part, of any bits */
    bool wraps_once; /* of a quotient or a remainder by a number: 0 to less than twice that is
                        divided */
} qn_value_info;

/** Loops of the body, a `for` each and none inside another, whose trips are lanes. */
enum { QN_MOST_TRIP_LANES = 8 };
typedef struct qn_trip_lanes {
    int n;
    uint32_t loop[QN_MOST_TRIP_LANES];
} qn_trip_lanes;

/** A kernel, the facts of its launches, and what both tell of its values: what is given to all that
 * plans, schedules, estimates and verifies. A kernel that was not analysed has no values: NULL.
 * Kernel and facts must live as long. */
typedef struct qn_analysis {
    const qn_kernel *k;
    const qn_facts *f;
    qn_value_info *value; /* [k->n_insts] */
    qn_affine *affine;    /* [k->n_insts]: of i64 values */
    bool is_derived;      /* `affine` belongs to another analysis */
    qn_trip_lanes trips;  /* the lanes are trips of these loops */
} qn_analysis;

/** Analyses for a lane dimension (-1: none) and for jammed dimensions, as bits. False if memory
 * runs out: *out has no values then. */
bool qn__analyse(const qn_kernel *k, const qn_facts *f, int lane_dim, uint32_t jam_dims,
                 qn_analysis *out);
/** An analysis for other lanes and jammed dimensions than that of a scalar code, `of`, which must
 * live as long: affine forms and bits do not depend on them. False if memory runs out. */
bool qn__analyse_lanes(const qn_analysis *of, int lane_dim, uint32_t jam_dims, qn_analysis *out);
/** An analysis for lanes that are the trips of loops, whose indices are linear, or points of
 * reduces over points_dim (-1: none). False if memory runs out. */
bool qn__analyse_trips(const qn_kernel *k, const qn_facts *f, int points_dim,
                       const qn_trip_lanes *trips, qn_analysis *out);

/* What is taken for numbers that facts do not say. */
enum {
    QN_NOMINAL_EXTENT = 1024, /* iterations of a dimension */
    QN_NOMINAL_TRIPS = 16     /* of a loop of the body */
};

/** The number that trips have as a lane dimension, behind all dimensions of the domain; -1: the
 * kernel has too many dimensions. */
static inline int qn__trips_dim(const qn_kernel *k)
{
    return k->n_dims < QN_MAX_RANK ? k->n_dims : -1;
}
/** Dimensions that an index of the analysis may depend on: those of the domain, and of trips. */
static inline int qn__n_indexed(const qn_analysis *a) { return a->k->n_dims + (a->trips.n > 0); }
/** Whether the lanes are trips of loop i. */
static inline bool qn__lanes_are_trips_of(const qn_analysis *a, uint32_t i)
{
    bool has = false;
    for (int n = 0; n < a->trips.n; n++)
        has |= a->trips.loop[n] == i;
    return has;
}
/** What a loop carries, where its trips are lanes, which combine QN_MOST_TRIP_SUMS values at most.
 */
enum { QN_MOST_TRIP_SUMS = 8 };
typedef struct qn_carried {
    uint32_t inst;
    bool is_step; /* it is `step` more in each trip; else trips are combined, in any order */
    int64_t step;
    int combine; /* a qn_combine */
} qn_carried;
/** What loop i carries into out[QN_MAX_CARRIED]; whether lanes may hold all of it. Then is_part is
 * set in value[k->n_insts], which may be NULL (jit/analysis/trips.c). */
bool qn__trips_carry(const qn_analysis *a, uint32_t i, qn_carried *out, qn_value_info *value);
/** Whether what is computed in one of these loops depends on dimension d. */
bool qn__trips_meet(const qn_analysis *a, const qn_trip_lanes *trips, int d);
/** How many values lanes of trips of loop i combine; -1: it carries others, or too many. */
int qn__trips_sums(const qn_analysis *a, uint32_t i);
/** Whether a value is carried by loop i and a known `step` more in each trip. */
bool qn__moves_with_trips(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *step);
/** Whether a value is known before loop i, but for its own moves: how far it moves in each trip. */
bool qn__is_known_before(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *step);
/** Whether an integer is a known number that an i64 holds. */
bool qn__is_number(const qn_analysis *a, uint32_t value, int64_t *n);
/** How many trips of loop i that follow one another may run at once, INT64_MAX: all. Lanes may hold
 * what they carry, and no two of them access an element that one of them stores; those of a `while`
 * store nothing, and where they load is known before it (jit/analysis/trips.c). */
int64_t qn__trips_at_once(const qn_analysis *a, uint32_t i);
/** Elements the address of an access moves from one trip of `for` i around it to the next; false if
 * that is not a known constant. */
bool qn__trip_stride(const qn_analysis *a, uint32_t inst, uint32_t i, int64_t *stride);
/** Whether a value is the index of `for` i, so much ahead. */
bool qn__is_ahead_of_trip(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *ahead);
/** Whether an affine form of indices stays within what its numbers say, far from where it would
 * wrap. */
bool qn__affine_is_small(const qn_analysis *a, const qn_affine *x);
/** The trips of a `for` between two numbers; -1: more than a signed number counts. */
int64_t qn__trips_between(int64_t begin, int64_t end, int64_t step);
/** Trips of `for` i, whose range moves with the indices, as from 5 * i to 5 * i + 5; -1: not known.
 */
int64_t qn__known_trips(const qn_analysis *a, uint32_t i);
/** The analysis of scalar code, as qn__analyse; QN_ERR_MEMORY. */
qn_status qn__analyse_scalar(const qn_kernel *k, const qn_facts *f, qn_analysis *out,
                             qn_error *err);
/** Kernel and facts stay. */
void qn__analysis_release(qn_analysis *a);
/** Sets the affine forms of all i64 values; part of qn__analyse (jit/analysis/affine.c). */
void qn__find_affine(qn_analysis *a);
/** Sets bits, is_signed, at and at_signed of all values; part of qn__analyse. False if memory runs
 * out (jit/analysis/narrow.c). */
bool qn__narrow(qn_analysis *a);
/** The operands of which lanes compute a pure instruction: its own, or those of the sum that it
 * saturates. */
const uint32_t *qn__lane_args(const qn_analysis *a, uint32_t i);
/** The ranges of all values, range[k->n_insts]. */
void qn__find_ranges(const qn_analysis *a, qn_interval *range);

/** The product of two numbers of 16 signed bits that a reduce, a sum of i32 or u32, adds; else 0.
 */
uint32_t qn__paired_product(const qn_analysis *a, uint32_t reduce);

/* Indices of accesses (jit/analysis/indices.c; of affine forms, affine.c). */

/** Elements the address of an access moves per step of domain dimension d; false if it is not a
 * known constant (data-dependent, dynamic stride, several digits). Uniform dimensions give 0. */
bool qn__access_stride(const qn_analysis *a, uint32_t inst, int d, int64_t *stride);
/** What the indices of an access depend on, as bits. */
uint32_t qn__index_deps(const qn_analysis *a, uint32_t inst);
/** What moves an access, as bits: that but for indices of projected dimensions. */
uint32_t qn__moving_dims(const qn_analysis *a, uint32_t inst);
/** Whether two values differ by a constant. */
bool qn__differ_by_constant(const qn_affine *x, const qn_affine *y);
/** Whether all indices of two accesses of views of one rank differ by constants. */
bool qn__walk_alike(const qn_analysis *a, uint32_t i, uint32_t m);
/** Whether all indices of two such accesses are one sum each. */
bool qn__have_same_indices(const qn_analysis *a, uint32_t i, uint32_t m);
/** Elements from where access m stands to where access i of the same view does, in any iteration;
 * false if that is not known to be a constant. */
bool qn__elements_apart(const qn_analysis *a, uint32_t i, uint32_t m, int64_t *apart);
/** Of indices alone that some of these dimensions, as bits, move. */
bool qn__elements_apart_along(const qn_analysis *a, uint32_t i, uint32_t m, uint32_t dims,
                              int64_t *apart);
/** Whether a value is made of indices of the domain, of scalars and arithmetic, of which little:
 * then it is known before the body begins. */
bool qn__is_made_of_indices(const qn_kernel *k, uint32_t value);
/** Whether the indices of access `inst` are: then the address is known, also where an index that is
 * loaded cannot leave its view. */
bool qn__is_known_ahead(const qn_kernel *k, uint32_t inst);
/** Whether an index of a dimension of several digits has one value of all but the fastest digit in
 * w lanes along lane_dim, the first of which is a multiple of w: w divides the fastest digit. */
bool qn__is_within_digit(const qn_analysis *a, uint32_t value, const qn_dim_fact *dim, int lane_dim,
                         int64_t w);

/** Whether control flow on this value differs between lanes or jammed iterations. */
static inline bool qn__is_divergent(const qn_analysis *a, uint32_t value)
{
    return a->value[value].shape != QN_UNIFORM || a->value[value].depends_jam;
}
/** Wrapping i64 arithmetic of addresses. */
static inline int64_t qn__wrap_mul(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}
static inline int64_t qn__wrap_add(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}
static inline int64_t qn__wrap_sub(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

/** Whether arguments p and q may have elements in common (jit/analysis/share.c). Those of a launch
 * in iteration order may; in any other launch they are the same elements, by one index tuple. */
bool qn__may_meet(const qn_analysis *a, uint64_t p, uint64_t q);
/** Whether view p is written, or may be the same as one that is: its elements change while the
 * kernel runs (jit/analysis/share.c). */
bool qn__is_written_too(const qn_analysis *a, uint64_t p);
/** Bit p: parameter p is such a view. */
uint64_t qn__written_too(const qn_analysis *a);
/** Whether iterations may run twice, one after the other or by two threads: what they read is not
 * written, also where two arguments are the same array, and they combine nothing. */
bool qn__may_repeat(const qn_analysis *a);

/** All accesses of a kernel: n is the site, i the instruction. */
#define FOR_ACCESSES(k, n, i)                                                                      \
    for (uint32_t n = 0, i; n < (k)->n_accesses && (i = (k)->access[n].inst, true); n++)

/* What stands in a region (jit/analysis/region.c). */

/** The first reduce at the top from instruction i on, which stands there too; k->n_insts: there is
 * none. */
uint32_t qn__next_reduce(const qn_kernel *k, uint32_t i);
#define FOR_TOP_REDUCES(k, i)                                                                      \
    for (uint32_t i = qn__next_reduce(k, (k)->body); i < (k)->n_insts;                             \
         i = qn__next_reduce(k, (k)->inst[i].region[2]))
/** All reduces of a kernel, wherever they stand. */
#define FOR_REDUCES(k, i)                                                                          \
    for (uint32_t i = (k)->body; i < (k)->n_insts; i++)                                            \
        if ((k)->inst[i].op != QN_I_REDUCE) {                                                      \
        } else
/** How many there are at the top. */
int qn__n_top_reduces(const qn_kernel *k);
/** The reduce an instruction stands in, 0 if none. */
uint32_t qn__enclosing_reduce(const qn_kernel *k, uint32_t i);
/** The dimensions of a reduce, as bits. */
uint32_t qn__points_dims(const qn_kernel *k, uint32_t reduce);
/** Whether an instruction needs the value of instruction i. */
bool qn__is_used(const qn_kernel *k, uint32_t i);
/** Whether an access, an assertion or a `while` of [begin, end) may record a failure. */
bool qn__region_may_fail(const qn_kernel *k, const qn_facts *f, uint32_t begin, uint32_t end);
/** Whether the kernel's body might fail, run forever or tell something. */
bool qn__may_fail(const qn_kernel *k, const qn_facts *f);
/** Whether a plan of the caller's names dimensions, which are those of the kernel. */
static inline bool qn__names_dims(const qn_plan_options *o)
{
    return o->lane_dim > 0 || o->jam_dim || o->cross_dim || o->tile_dim || o->order[0];
}
/** Makes instructions [begin, end) numbers that nobody asks for, in the region where the first
 * stands. */
void qn__drop(qn_kernel *k, uint32_t begin, uint32_t end);
/** Whether a region stores, loads, loops or branches: worth a real branch around it. */
bool qn__region_has_memory(const qn_kernel *k, uint32_t begin, uint32_t end);
/** Whether one of these instructions is of the core instructions `kinds`: bits 1 << QN_I_.... */
bool qn__has_insts(const qn_kernel *k, uint32_t begin, uint32_t end, uint32_t kinds);
/** Whether none of these instructions has a region. */
bool qn__is_straight(const qn_kernel *k, uint32_t begin, uint32_t end);

#endif
