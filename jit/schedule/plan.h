/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: what the files of jit/schedule/ that make plans show one another.
 */
#ifndef QN_JIT_PLAN_H
#define QN_JIT_PLAN_H

#include "jit/schedule/forms.h"

/** The plan that the rules make, for the fields of f->plan as they are (jit/schedule/plan.c). a:
 * the analysis of scalar code, that of a qn_analysis; a GPU needs none. */
void qn__plan_by_rules(const qn_analysis *a, qn_plan *out);

/** The loops of the body whose trips may be lanes, those along which accesses cost least; how many
 * lanes a register has for the widest value in them (jit/schedule/trips.c). */
int qn__plan_trips(const qn_analysis *a, qn_trip_lanes *out);

/** Bits in which lanes hold what instruction i makes or stores; the least of an index. */
int qn__data_bits(const qn_analysis *a, uint32_t i);

enum { MOST_UNROLL = 8 }; /* vectors of the lanes in a step */
enum { MOST_PLANNED = 32 }; /* parts of a value in a step: vectors x jammed iterations */

/** Whether lanes may run along d (jit/schedule/lanes.c). */
bool qn__plan_may_be_lanes(const qn_analysis *a, int d);
/** The dimension along which they cost least; -1: none. */
int qn__plan_best_lanes(const qn_analysis *a);
/** How deep floating-point reduces in the striped order are nested. Their partials are in memory,
 * unless they are lanes. */
int qn__plan_stripe_depth(const qn_kernel *k);
/** Whether loads whose `lanes` lanes along d lie far apart are gathers: one by one they would be
 * too much code. */
bool qn__are_gathered(const qn_analysis *a, int d, int64_t lanes);
/** Relative cost of one element through one access by its stride along d; COST_GATHER and more:
 * lane by lane. */
double qn__access_cost(const qn_analysis *a, uint32_t i, int d);
#define COST_GATHER 6.0
/** Whether lanes along d of some access lie anywhere, and are moved one by one: much code. */
bool qn__has_gather(const qn_analysis *a, int d);

/** Elements an access moves along d, about: of dynamic strides only the order is known
 * (jit/schedule/order.c). */
double qn__distance(const qn_analysis *a, uint32_t i, int d);
/** Whether what is left of a jammed dimension of a register tile runs in halves of steps: its
 * number is not known. That of the lanes is, else each half would be as many bodies as they have.
 */
bool qn__plan_has_halves(const qn_facts *f, int lane_dim, int jam_dim);
/** Sets p->order and n_loops, once lanes and jam are chosen; has_tile: these make a register tile,
 * and the jammed dimension is innermost. Without an analysis (NULL) dimensions stay as declared
 * (jit/schedule/order.c). */
void qn__plan_order(const qn_analysis *a, bool has_tile, qn_plan *p);

/** Whether the caller leaves the lanes, a parallel dimension, innermost. */
bool qn__may_lanes_be_inner(const qn_kernel *k, const qn_facts *f, int lane_dim);

/** Chooses unroll, jam_dim and jam for a kernel that reduces, once its lanes and width are known;
 * false if it does not apply (jit/schedule/tile.c). */
bool qn__plan_tile(const qn_analysis *a, qn_plan *p);
/** Whether the tile of p may have `cross` iterations of parallel dimension c, too: its lanes are a
 * batch, and all steps of both dimensions are whole, or may overlap. */
bool qn__may_cross(const qn_analysis *a, const qn_plan *p, int c, int cross);
/** Whether everything that is loaded in reduces depends on d: iterations of other dimensions share
 * it, those of d nothing. */
bool qn__is_batch(const qn_analysis *a, int d);
/** Sets p->pack, p->pack_rows and p->scratch_bytes if copies of what a tile loads pay; the rest of
 * the plan is made (jit/schedule/pack.c). */
void qn__plan_pack(const qn_analysis *a, qn_plan *p);
/** Sets p->prefetch and p->steps_ahead if a register tile asks for something ahead of time; the
 * rest of the plan is made (jit/schedule/prefetch.c). */
void qn__plan_prefetch(const qn_analysis *a, qn_plan *p);
/** Bytes that the front row of a stencil asks for ahead. */
enum { FRONT_BYTES = 4096 };
/** Sets fronts[site] of loads through a view that others read, too, in rows that lie apart, which
 * meet new memory; whether there are any. fronts: [k->n_accesses], or NULL. False if memory runs
 * out. */
bool qn__find_fronts(const qn_analysis *a, const qn_plan *p, bool *fronts);
/** Place of a dimension in the order of the loops; n_loops: it is none of them. */
static inline int qn__place_of(const qn_plan *p, int d)
{
    int at = 0;
    while (at < p->n_loops && p->order[at] != d)
        at++;
    return at;
}
/** Iterations of a dimension that one step takes. */
static inline int64_t qn__plan_step(const qn_plan *p, int d)
{
    return d == p->lane_dim    ? (int64_t)p->width * p->unroll
           : d == p->jam_dim   ? p->jam
           : d == p->cross_dim ? p->cross
                               : 1;
}
/** Bytes that all accesses touch, those through one view counted once; 0 if not known. */
double qn__touched_in_all(const qn_analysis *a);
/** The reduce over one dimension in which load i stands, outside branches; or 0. */
uint32_t qn__single_reduce(const qn_kernel *k, uint32_t i);
/** That, if the load is plain and in range, at a place that is known before; else 0. */
uint32_t qn__reduce_of_plain(const qn_analysis *a, uint32_t i);
/** Whether what load i reads for one step of the lanes may be copied before the loop over dimension
 * j; c is the third dimension of the tile, or -1. One copy serves all iterations of both. */
bool qn__may_pack(const qn_analysis *a, int lane_dim, int j, int c, uint32_t i);

/** Keeps the sums of the reduces in memory for a strip of the lanes, the points outside, if that
 * pays; once the lanes and their width are known (jit/schedule/strip.c). */
bool qn__plan_strip(const qn_analysis *a, qn_plan *p);
/** Its length and memory; the rest of the plan is made. */
void qn__plan_strip_end(const qn_kernel *k, const qn_facts *f, qn_plan *p);

/** Whether scalar code of several iterations at once is better than lanes along d, as each lane of
 * what is moved is an access of its own (jit/schedule/scalar.c). */
bool qn__plan_is_scalar(const qn_analysis *a, int d, int width);

/** Whether scalar code for several iterations of d at once is better, because each reduces a row of
 * its own. */
bool qn__plan_is_rows(const qn_analysis *a, int d, int width);

/** Sets p->split_dim and p->granule, after all else (jit/schedule/threads.c). */
void qn__plan_split(const qn_kernel *k, const qn_facts *f, qn_plan *p, bool is_tile);
/** Iterations, those of reductions included, that are worth a chunk of their own. */
int64_t qn__plan_chunk(const qn_kernel *k, const qn_facts *f, int lane_dim);

/** Whether scalar code for several iterations of d at once is better, because each does little but
 * an atomic. */
bool qn__plan_is_counting(const qn_analysis *a, int d);
/** Sets p->atomics, and takes away what threads divide where they must be of one; the rest of the
 * plan is made (jit/schedule/threads.c). */
void qn__plan_atomics(const qn_kernel *k, const qn_facts *f, qn_plan *p);

/** Sets p->streams if non-temporal stores pay; the rest of the plan is made
 * (jit/schedule/streams.c). */
void qn__plan_streams(const qn_analysis *a, qn_plan *p);
/** Whether access `site` is a store that may be non-temporal under the plan: whole vectors to
 * consecutive elements. */
bool qn__is_stream(const qn_analysis *a, const qn_plan *p, uint32_t site);
/** Whether access `site` is a store that may be non-temporal by line ends: rows begin at any place
 * of a line, and each step of the lanes stores to many rows, innermost. */
bool qn__has_line_ends(const qn_analysis *a, const qn_plan *p, uint32_t site);

/** Chooses jam and order for accesses that run along another dimension than the lanes
 * (jit/schedule/transpose.c). */
void qn__plan_transpose(const qn_analysis *a, qn_plan *p);
/** Sets p->tile and p->tile_at if cache tiles pay, once the loops are known and which stores are
 * streams (jit/schedule/reuse.c). */
void qn__plan_tiles(const qn_analysis *a, qn_plan *p);
/** A dimension across which access i would be transposed, or -1. */
int qn__transposed_across(const qn_analysis *a, int lanes, uint32_t i);

/** Whether reduces that may be a tuple have code (jit/schedule/tuple.c): lanes over the points of
 * points_dim, -1: none; `parts`: accumulators of each. */
bool qn__tuple_has_code(const qn_analysis *x, int n, const uint32_t *reduce, int points_dim,
                        int64_t parts);
/** Whether the last of n reduces is folded in the loop of the others, a tuple already. */
bool qn__plan_joins(const qn_analysis *x, const qn_plan *p, int n, const uint32_t *reduce);
/** Whether what is left after whole steps of the points of a reduce is folded one by one: the
 * processor has no masks for elements so small. */
bool qn__has_scalar_rest(const qn_kernel *k, const qn_facts *f, uint32_t reduce);
/** Whether all points of a reduce are emitted one beside the other, as some load is shared by them
 * or by jammed iterations (jit/schedule/window.c). */
bool qn__plan_unrolls_points(const qn_analysis *a, const qn_plan *p, uint32_t reduce);
/** The part of what load i would take alone that it takes then, where `jam` iterations of jam_dim
 * (-1: none) are emitted together. Points are known. */
double qn__window_share(const qn_analysis *a, uint32_t i, int lane_dim, int jam_dim, int64_t jam);
/** Leaves of a plan of a processor a loop for each dimension, and lanes (jit/schedule/plan.c). */
void qn__plan_plainly(qn_plan *p);
/** Sets p->n_shared_reduces and what threads divide, if they may divide points; the rest of the
 * plan is made. */
void qn__plan_points(const qn_kernel *k, const qn_facts *f, qn_plan *p);

#endif
