/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms.h: what kernel and facts say of the forms that code may have, for the planner, for
 * schedules and for the code generator.
 */
#ifndef QN_JIT_FORMS_H
#define QN_JIT_FORMS_H

#include "jit/schedule/tree.h"

/* What code is laid out for: lines of a cache as all processors of these instruction sets have
 * them, at which memory for copies begins. */
enum { LINE_BYTES = 64 };
/* Rows of memory so far apart are streams of their own: the hardware fetches none ahead for
 * another. */
enum { QN_FAR_BYTES = 1024 };
/* Fewer lanes are not worth code of their own. */
enum { QN_LEAST_WIDTH = 4 };
enum { SMALL_STRIDE = 4 }; /* lanes so many elements apart, at most, lie in so many vectors */
static inline bool qn__is_small_stride(int64_t stride)
{
    return stride >= -SMALL_STRIDE && stride <= SMALL_STRIDE;
}

/** Points of a reduce, -1 if they are not known or too many (jit/schedule/points.c). */
int64_t qn__points(const qn_kernel *k, const qn_facts *f, uint32_t reduce);
/** Points of a reduce, or how many they are at most (qn__usual_trips); -1 as qn__points. */
int64_t qn__usual_points(const qn_kernel *k, const qn_facts *f, uint32_t reduce);
/** The last dimension of a reduce that may have more than one index, else its last; *n: how many
 * have. */
int qn__long_dim(const qn_kernel *k, const qn_facts *f, uint32_t reduce, int *n);
/** Whether lanes may run over the points of a reduce along dimension d: of what may be combined in
 * any order along each of its dimensions, in the striped order along the last one. Where that
 * begins anew for each index of others, rows begin at any partial: the lanes before are masked, and
 * their accesses are at sums of indices and not checked. */
bool qn__may_have_lanes(const qn_analysis *a, uint32_t reduce, int d);
/** Whether rows of lanes over the points of a reduce begin at any partial. */
bool qn__has_shifted_rows(const qn_kernel *k, const qn_facts *f, uint32_t reduce);
/** Whether the region of a reduce is so small, without others inside, that several points may be
 * emitted one after the other. */
bool qn__is_small_region(const qn_kernel *k, uint32_t reduce);
/* Sums of the striped order in registers: so many partials of one iteration are made at once, of
 * several iterations fewer. */
enum { QN_PARTIALS_AT_ONCE = 8 };
/** Whether partials of a reduce in the striped order, whose points are no lanes, stay in registers
 * until they are done: a small region over one dimension, in which nothing fails. */
bool qn__keeps_partials(const qn_kernel *k, const qn_facts *f, uint32_t reduce);
/** Whether lanes a known number of elements apart, more than one, are loaded or stored one by one.
 * apart: 1: those a few elements apart are; -1: they are not; 0: as the stride says. */
bool qn__is_one_by_one(const qn_facts *f, int apart, bool is_load, int64_t bytes, int width,
                       int64_t stride);
/** How lanes along a dimension, so many in a step, that lie apart are accessed. */
typedef struct qn_apart {
    int few;      /* see qn__is_one_by_one */
    bool gathers; /* those further apart: one by one they would be too much code */
} qn_apart;
qn_apart qn__apart_of(const qn_analysis *a, int lane_dim, int64_t lanes);

/** Reduces of few points have no loops: so many additions in all of them. */
int32_t qn__plan_straight(const qn_kernel *k, const qn_facts *f);
/** Whether load i of a register tile reads points far apart that its jammed iterations load side by
 * side: prefetches of points are for those. */
bool qn__is_prefetched(const qn_analysis *x, int lane_dim, int jam_dim, uint32_t i);
/** The parallel dimension, not the lanes, whose iterations all use what load i of a reduce loads in
 * a step of the lanes, where there is one, and its vectors are consecutive elements: each of them
 * asks for a part of the next step; else -1. */
int qn__asked_by(const qn_analysis *a, int lane_dim, uint32_t i);
enum { MOST_STRIPPED = 16 }; /* reduces */
/** The dimension of the points if all reduces may have their sums in memory, else -1: they stand at
 * the top, over one last dimension, and before the last of them are only pure operations, loads and
 * reduces. */
int qn__strip_dim(const qn_analysis *a, int lane_dim);
/** Memory of a strip of so many iterations, with so many points at once. */
int64_t qn__strip_bytes(const qn_kernel *k, const qn_facts *f, int64_t strip, int32_t together);
/** Where in the memory of a strip of so many iterations a reduce at the top has its result;
 * k->n_insts: where arrays begin that all of them work in. */
int64_t qn__strip_offset(const qn_kernel *k, uint32_t reduce, int64_t strip);
/** Bytes from one array to the next. */
int64_t qn__strip_pitch(int type, int64_t strip);

/** How lanes along a dimension load near one another, where a gather would load them. LIMITED:
 * neighbours but at limits, `x[max(i - 1, 0)]`; they are if the last lane is as far from the first
 * as there are lanes. CERTAIN: at a quotient by a number, `x[i / 2]`, so that lane l is at most l
 * elements behind the first one and never before it. LIKELY: at an index made of indices only,
 * `x[i64(0.7 * f32(i))]`; whether they are near is seen when all are known. */
enum { QN_NEAR_NONE, QN_NEAR_LIMITED, QN_NEAR_CERTAIN, QN_NEAR_LIKELY };
int qn__nearness(const qn_analysis *a, int lane_dim, uint32_t i);
/** Registers that hold n elements of so many bytes where permutations of them are faster than a
 * gather; 0: they are not (jit/schedule/table.c). */
int qn__permuted_registers(const qn_target *target, int64_t bytes, int64_t n);
/** Registers that hold the view of load i where a permutation of them may take the place of a
 * gather; 0: it may not (jit/schedule/table.c). */
int qn__table_registers(const qn_analysis *a, uint32_t i);
/** Elements of one of them. */
int qn__table_lanes(const qn_kernel *k, const qn_facts *f, uint32_t i);
/** Whether store `site` fills whole cache lines with lanes along a dimension, where these begin at
 * one. */
bool qn__may_fill_lines(const qn_analysis *a, int lane_dim, int width, uint32_t site);
/** Whether a store may have line ends: nothing else has its elements before they are written. No
 * other access of the view, and no later one of a view that has the same elements, which launches
 * may share with views of one dtype. */
bool qn__may_have_ends(const qn_analysis *a, uint32_t store);
/** Whether access `site` moves far with dimension `lanes` and by one element with `across`, on
 * every iteration. */
bool qn__is_transposed(const qn_analysis *a, int lanes, int across, uint32_t site);

/** Whether the region of a reduce uses a value that is marked. */
bool qn__region_uses(const qn_kernel *k, uint32_t reduce, const uint8_t *marked);
/** Whether two reduces are over the same dimensions, in one order. */
bool qn__have_one_range(const qn_kernel *k, uint32_t reduce, uint32_t other);
/** Whether the first n reduces at the top may have their points divided: they are over the same
 * dimensions, need nothing of one another, and nothing is written before the last of them
 * (jit/schedule/points.c). */
bool qn__are_independent(const qn_kernel *k, int n);
enum { MOST_SHARED_REDUCES = 16 }; /* of a kernel run by all blocks */
/** The dimension of the points that threads may divide, those of all reduces of a kernel that has
 * nothing else to divide; -1: there is none. *n: how many reduces these are. */
int qn__shared_dim(const qn_kernel *k, const qn_facts *f, int *n);
/** Whether the lanes of a warp may share the points of a reduce: its order is the striped one, or
 * any does. */
bool qn__may_share_points(const qn_kernel *k, uint32_t i);

#endif
