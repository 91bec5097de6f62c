/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h: private to the lowering: reduces whose points are shared by the lanes of a warp, or by
 * all blocks.
 *
 * Team code (g->is_team) is run alike by all 32 lanes: they hold the same values and take the same
 * branches. In it, lane 0 alone stores; what memory may answer differently is taken from lane 0.
 * The points of a reduce are shared: there each lane is on its own, until the partials are combined
 * by shuffles.
 */
#ifndef QN_JIT_LLVM_TEAM_H
#define QN_JIT_LLVM_TEAM_H

#include "jit/target/nvptx/nvptx.h"

enum { WARP_LANES = 32, FIRST_WARPS = 8, SECOND_WARPS = 32 };

/** Lanes of a team: those of a warp, or of two. */
static inline int qn__team_lanes(const qn_grid *p)
{
    return p->is_pair ? 2 * WARP_LANES : WARP_LANES;
}

/* Hooks (lower/hooks.h). The team is a warp, or a pair of warps: lane 0 stores, and its value is
 * that of all. */
LLVMValueRef qn__team_begin(lower *g);
void qn__team_end(lower *g);
LLVMValueRef qn__team_same(lower *g, LLVMValueRef v);
LLVMValueRef qn__team_reduce(lower *g, const reduction *r);
bool qn__team_trips(lower *g, uint32_t i);

/** All lanes of a team wait for one another; whether this is lane n of it. */
void qn__team_wait(lower *g);
LLVMValueRef qn__is_lane(lower *g, int n);
/** Points of a reduce, or numbers in memory. */
typedef struct team_source {
    const reduction *r;
    LLVMValueRef array; /* NULL: the points of r */
    LLVMValueRef total; /* points, i64 */
} team_source;
/** Those of [low, high) reduced, at most 4096 of them, or 4096^(depth + 1); right in lane 0. */
LLVMValueRef qn__team_block(lower *g, const team_source *s, span of);
LLVMValueRef qn__team_range(lower *g, const team_source *s, int depth, span of);

/** Sets the indices of point q of a reduce: dimensions count lexicographically. */
void qn__team_set_point(lower *g, const reduction *r, LLVMValueRef q);
/** Points of all its dimensions, i64. */
LLVMValueRef qn__team_points(lower *g, const reduction *r);

/* ---- target/nvptx/kept.c: values of points in shared memory (grid->kept) */
/** Shared memory of a block for them. */
int32_t qn__kept_bytes(const qn_grid *p);
/** Where the memory of this team begins; before the first unit of work. */
void qn__kept_open(lower *g);
/** The address of a kept value of point at + ahead, of row g->kept_row of a block. */
LLVMValueRef qn__kept_place(lower *g, const qn_kept *x, LLVMValueRef at, int64_t ahead);
/** Sets what a region has of an earlier one: of point `at`, i64, and `ahead` more. */
void qn__kept_read(lower *g, uint32_t region, LLVMValueRef at, int64_t ahead);
/** Sets held[site] of loads of a region that were read so: they are not made again. */
void qn__kept_hold(lower *g, uint32_t region, LLVMValueRef *held);
/** What later regions need of a point of a reduce, for each entry of grid->kept; NULL: nothing. */
enum { MOST_OF_PIECE = 16 };
typedef struct kept_point {
    LLVMValueRef value[QN_MOST_KEPT];
} kept_point;
/** Takes it once the region was emitted for the point. */
void qn__kept_take(lower *g, uint32_t reduce, kept_point *out);
/** Keeps `count` consecutive points, a power of two, 16 bytes at once. */
void qn__kept_put(lower *g, const kept_point *point, int count, LLVMValueRef at, int64_t ahead);
/** Both for one point. */
void qn__kept_write(lower *g, uint32_t reduce, LLVMValueRef at, int64_t ahead);

/** QN_TEAM_GRID: the first kernel leaves the result of each block of 4096 points in scratch memory,
 * the second combines them and runs the body with the reduces' values known. */
void qn__team_first(lower *g);
void qn__team_second(lower *g);
/** What a launch must know of both. */
void qn__team_info(const qn_kernel *k, qn_gpu_info *info);

#endif
