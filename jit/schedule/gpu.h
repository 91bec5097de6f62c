/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h: what the files that make the grid of a GPU show one another: schedule/gpu.c makes it,
 * schedule/gpu_team.c says who runs an iteration, schedule/gpu_block.c when that is a block,
 * schedule/gpu_wide.c how many iterations a thread computes at once and schedule/gpu_rows.c how
 * many of those that reduce, schedule/gpu_kept.c what a warp keeps of its points,
 * schedule/gpu_rest.c when a team takes all iterations that share its reduces,
 * schedule/gpu_private.c which atomic updates a block collects,
 * schedule/gpu_stage.c what goes through shared memory, schedule/gpu_product.c which sums are
 * register tiles, schedule/gpu_print.c prints it.
 */
#ifndef QN_JIT_PLAN_GPU_H
#define QN_JIT_PLAN_GPU_H

#include "jit/schedule/grid.h"
#include "jit/schedule/plan.h"

/* Cost of one element through one access, in sectors of 32 bytes that a warp touches, relative to
 * unit stride. */
#define GPU_COST_SAME 0.25
#define GPU_COST_APART 8.0

/* How deep an index may be made of other values. */
enum { MOST_INDEX_DEPTH = 8 };

/* Iterations of the jammed dimension in a thread, and instructions of all of them. */
enum { MOST_JAM = 16, MOST_EMITTED = 1500 };
/* All iterations that a thread computes at once, threads of a block, and additions of reduces that
 * have no loop. */
enum { QN_MOST_AT_ONCE = 32, QN_MOST_BLOCK_THREADS = 1024, QN_GPU_STRAIGHT = 256 };
enum { BODY_OTHER, BODY_SIMPLE, BODY_REDUCES };

typedef struct gpu_planner {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis a;
    qn_grid *p;
    bool has_assertions; /* then all of an iteration is done by one thread, or by a warp in step */
    bool is_unstaged;    /* without tiles in shared memory */
    bool is_alone;       /* one thread takes all iterations that share reduces */
} gpu_planner;

/** An address along a dimension, in bytes: first + step x index, and anything that is a multiple of
 * `align`. */
typedef struct gpu_course {
    int64_t first, step;
    uint64_t align; /* a power of two */
} gpu_course;
/** That of access i along x; false if it is not known (schedule/gpu_course.c). */
bool qn__gpu_find_course(const gpu_planner *s, uint32_t i, int x, gpu_course *out);
/** Bytes of the elements of the view that access i is to: all parts of them. */
int64_t qn__gpu_element_bytes(const gpu_planner *s, uint32_t i);
/** The largest power of two that divides n, at most 2^62. */
uint64_t qn__gpu_lowest_bit(int64_t n);

/** Iterations of all parallel dimensions, -1 if they are not known. */
int64_t qn__gpu_iterations(const gpu_planner *s);
double qn__gpu_access_cost(const gpu_planner *s, uint32_t i, int d);
/** The dimension of neighbouring threads, or -1; never one of grid->rest_dims. */
int qn__gpu_best_lanes(const gpu_planner *s);
/** Threads of a block and tiles; n_shared: dimensions along which neighbouring iterations share
 *  loads. */
void qn__gpu_choose_threads(const gpu_planner *s, int n_shared);
/** The dimension of a reduce over one, or over one that has more than one index; -1: over several.
 */
int qn__gpu_reduced_dim(const gpu_planner *s, uint32_t reduce);

/** QN_TEAM_...; `lanes` is the dimension of neighbouring threads, or -1 (schedule/gpu_team.c). */
int qn__gpu_choose_team(const gpu_planner *s, int lanes);
/** Whether warps, for what they keep or as they are few, would leave half of the threads idle, so
 * that a block for each row is better. */
bool qn__gpu_wants_blocks(const gpu_planner *s);
/** Whether all blocks may divide the blocks of 4096 points of all reduces, and it is worth a second
 * kernel. */
bool qn__gpu_may_divide(const gpu_planner *s);
/** Several warps for a team whose iterations are few and have many points, once the threads are
 * chosen: warps. */
void qn__gpu_choose_warps(const gpu_planner *s);
/** What a team keeps of its points in shared memory: kept, n_kept and kept_bytes
 * (schedule/gpu_kept.c).
 */
void qn__gpu_choose_kept(const gpu_planner *s);
/** Sets where all of it stands, and kept_bytes: again once the tile of a block is chosen. */
void qn__gpu_place_kept(const gpu_planner *s);
/** A team for all iterations that share the reduces (grid->rest_dims), if there are such; makes the
 *  whole plan then (schedule/gpu_rest.c). */
bool qn__gpu_choose_rest(const gpu_planner *s);
/** How many iterations of the last dimension of the rest a thread of the team computes at once,
 * once the team is chosen (schedule/gpu_wide.c). */
void qn__gpu_widen_rest(const gpu_planner *s);
/** Atomic updates that blocks collect: privatized and most_blocks (schedule/gpu_private.c). */
void qn__gpu_choose_private(const gpu_planner *s);
bool qn__gpu_is_privatized(const gpu_planner *s, uint32_t i);
/** QN_TEAM_BLOCK instead of p->team, if the kernel allows it and it pays; makes the whole plan then
 * (schedule/gpu_block.c). */
bool qn__gpu_choose_block(const gpu_planner *s, int lanes);
/** width, lead, jam_dim and jam, and lane_dim if there are any, once the order is chosen; x: as
 * `lanes` above. Returns the number of dimensions along which iterations share loads, 0 without jam
 * (schedule/gpu_wide.c). */
int qn__gpu_choose_wide(const gpu_planner *s, int x);
/** Instead of a short dimension of neighbouring threads that one, if there is such, along which a
 * thread takes all iterations of the short one: members of records, channels of pixels. */
int qn__gpu_lanes_beside(const gpu_planner *s, int x);
/** Iterations of x before its begin at which threads that take `width` of them begin, so that most
 * accesses are aligned. */
int qn__gpu_lead(const gpu_planner *s, int x, int width);
/** Iterations of one dimension of which a thread computes several, because what the reduces load is
 * the same for them; sets jam_dim, jam and lane_dim (schedule/gpu_rows.c). */
bool qn__gpu_choose_rows(const gpu_planner *s, int x);
/** Whether a body of nothing but loads, arithmetic, stores and reduces has a reduce whose points
 * are next to one another in memory for all threads of a warp: several are loaded at once then. */
bool qn__gpu_loads_points(const gpu_planner *s, int x);
/** Then, in the end: units of one batch one after the other, so that what they share is still in
 * the second-level cache. */
void qn__gpu_order_batches(const gpu_planner *s);
/** BODY_...: what several iterations in a thread may run together. */
int qn__gpu_kind_of_body(const gpu_planner *s);
/** Whether `width` consecutive iterations of x from index `at` on are one access of this site, or
 * as many of 16 bytes as these are. */
bool qn__gpu_is_aligned(const gpu_planner *s, uint32_t site, int x, int width, int64_t at);
/** Tiles of x and grid->tile_dim, and so many threads along x. */
void qn__gpu_set_tile(const gpu_planner *s, int x, int side, int threads);
/** Loads through shared memory, and then threads, axis and tile, once the order is chosen; whether
 * there are any (schedule/gpu_stage.c). */
bool qn__gpu_choose_staging(const gpu_planner *s, int x);
/** Records that a block moves through shared memory, once the threads are chosen: moved, n_moved
 * (schedule/gpu_moved.c). */
void qn__gpu_choose_moved(const gpu_planner *s, int x);
/** Register tiles for what is like a matrix product, if it is long enough in all three dimensions
 * (schedule/gpu_product.c). */
bool qn__gpu_choose_product(const gpu_planner *s, int x);

#endif
