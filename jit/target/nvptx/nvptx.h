/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvptx.h: private to the lowering: what the files of NVPTX show one another.
 */
#ifndef QN_JIT_LLVM_NVPTX_H
#define QN_JIT_LLVM_NVPTX_H

#include "jit/lower/hooks.h"

enum { QN_MOST_HELD = 64 }; /* sites of g->held for each part */

/** The hook `run`: the body for all iterations of this thread (target/nvptx/units.c). */
void qn__nvptx_run(lower *g, const span *spans);
/** What a thread runs for the indices that are set; spans: the bounds of all loops. */
void qn__thread_body(lower *g, const span *spans);
/** Whether the body is straight code and branches of a thread that loads little: more registers
 * than its values need would only let fewer threads have loads under way. */
bool qn__nvptx_is_light(const qn_kernel *k, const qn_grid *p);
/** Units of work if the domain is exact and not empty, else 0. Merged dimensions are one here. */
int64_t qn__nvptx_units(const qn_facts *f, const qn_grid *p);
/** Whether each unit has a block of its own, so that blocks need no loop over units. */
bool qn__nvptx_has_block_for_each(const qn_kernel *k, const qn_facts *f, const qn_grid *p);
/** Address of the scratch memory. */
LLVMValueRef qn__nvptx_scratch(lower *g);
/** Shared memory of the block; its size is given at the launch. */
LLVMValueRef qn__nvptx_shared(lower *g);
/** The number of this thread in its block, i64, and how many there are. */
LLVMValueRef qn__nvptx_thread(lower *g);
int64_t qn__nvptx_threads(const qn_grid *p);
/** The hook `constant`: those of f64 that no instruction holds come from constant memory. */
LLVMValueRef qn__nvptx_constant(lower *g, LLVMValueRef v, uint64_t bits);
/** The hook `combine`. */
bool qn__nvptx_combine(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v);
/** All threads of the block wait for one another. */
void qn__nvptx_barrier(lower *g);
/** A special register, "tid.x", as i32 or i64. */
LLVMValueRef qn__nvptx_register(lower *g, const char *name, LLVMTypeRef t);
/** The last index of dimension d at which `each` elements begin; NULL: the dimension is known to be
 * whole tiles of `side`. */
LLVMValueRef qn__last_unless(lower *g, int d, int64_t side, int64_t each);
/** Whether an index of dimension d, which may have wrapped beyond its end, is before another. */
LLVMValueRef qn__is_before(lower *g, int d, LLVMValueRef v, LLVMValueRef end);
/** Sets the index of d to v + n, no more than `last` unless that is NULL: beyond the end of a
 * dimension its last element is loaded again. */
void qn__set_clamped(lower *g, int d, LLVMValueRef v, int64_t n, LLVMValueRef last);
/** The condition under which the index of d is inside; NULL as above. */
LLVMValueRef qn__is_inside(lower *g, int d, int64_t side);
/** The body for first, first + step, ... below end, unsigned; i32 or i64. */
void qn__nvptx_stride(lower *g, LLVMValueRef first, LLVMValueRef end, LLVMValueRef step,
                      void (*body)(lower *g, LLVMValueRef index, void *arg), void *arg);

/* ---- target/nvptx/team.c, team_grid.c, team_trips.c: reduces whose points are shared by the lanes
 * of a warp, or by all blocks */

/* Team code (g->is_team) is run alike by all 32 lanes: they hold the same values and take the same
 * branches. In it, lane 0 alone stores; what memory may answer differently is taken from lane 0.
 * The points of a reduce are shared: there each lane is on its own, until the partials are combined
 * by shuffles. */
enum { WARP_LANES = 32, FIRST_WARPS = 8 };

/* Hooks (lower/hooks.h). The team is a warp: lane 0 stores, and its value is that of all. */
LLVMValueRef qn__team_begin(lower *g);
LLVMValueRef qn__team_same(lower *g, LLVMValueRef v);
void qn__team_reduce(lower *g, const reduction *r, int n, LLVMValueRef *out);
bool qn__team_trips(lower *g, uint32_t i);

/** All lanes of a team wait for one another; whether this is lane n of it. */
void qn__team_wait(lower *g);
/** Values of blocks of points that the warps of a team put side by side: all of one range. */
enum { QN_TEAM_VALUES = 4096 };
LLVMValueRef qn__is_lane(lower *g, int n);
/** Points of a reduce, or numbers in memory. */
typedef struct team_source {
    const reduction *r;
    int n_more;         /* reduces behind it, of one order and over its points */
    LLVMValueRef array; /* NULL: the points of r */
    LLVMValueRef pitch; /* from a number in memory to the next, in words; NULL: 1 */
    LLVMValueRef total; /* points, i64 */
    int64_t lanes;      /* that take pieces, or of 64 a partial each, g->lane one of them; 0: those
                           of a warp */
} team_source;
/** Those of [low, high) reduced, at most 4096 of them, or 4096^(depth + 1); right in lane 0. Of 64
 * lanes each has the partial of its own. */
void qn__team_block(lower *g, const team_source *s, span of, LLVMValueRef *out);
void qn__team_range(lower *g, const team_source *s, int depth, span of, LLVMValueRef *out);
/** All points reduced by pieces, of a reduce that may come in any order; right in the first lane of
 * each warp, of what that warp took. */
LLVMValueRef qn__team_pieces(lower *g, const team_source *s);
/** All points reduced; in pieces if the reduce is associative, which is one then. */
void qn__team_fold(lower *g, const team_source *s, bool in_pieces, LLVMValueRef *out);

/** Sets the indices of n dimensions, whose iterations count lexicographically, to those of number
 * q; of the iterations that a thread has at once the first counts. is_small: in 32 bits. */
void qn__set_indices(lower *g, const int *dim, int n, LLVMValueRef q, bool is_small);
/** Those of point q of a reduce. */
void qn__team_set_point(lower *g, const reduction *r, LLVMValueRef q);
/** Points of all its dimensions, i64. */
LLVMValueRef qn__team_points(lower *g, const reduction *r);

/* ---- target/nvptx/kept.c: values of points in shared memory (grid->kept) */
/** Shared memory of a block for them. */
int32_t qn__kept_bytes(const qn_grid *p);
/** Where the memory of this team begins; before the first unit of work. */
void qn__kept_open(lower *g);
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

/* ---- target/nvptx/rest.c: the iterations that share the reduces of a team */
/** The reduces by all lanes of a warp, then what is left of the body by the lanes, each of which
 *  takes other iterations of grid->rest_dims; or all of that by each thread. */
void qn__rest_of_unit(lower *g);
/** The body for all iterations of grid->rest_dims, by all threads of all blocks. */
void qn__rest_of_grid(lower *g);
/** The body for all iterations of grid->rest_dims and of the tile that begins at `low`, by all
 *  threads of a block. */
void qn__rest_of_block(lower *g, LLVMValueRef low);
/** `one` for q = first, first + threads, ... below count, of which `threads`, a power of two,
 * threads take some each; where that may reach beyond the count, under a condition. */
void qn__share_out(lower *g, LLVMValueRef count, LLVMValueRef first, int64_t threads,
                   void (*one)(lower *g, LLVMValueRef q, LLVMValueRef condition, void *arg),
                   void *arg);

/* ---- target/nvptx/block.c: reduces that are shared by the threads of a block */
/** The reduces, then the body for each iteration, for the tile of dimension axis[0] that begins at
 * `low`. */
void qn__block_tile(lower *g, LLVMValueRef low, const span *spans);
/** What qn__block_tile emits, in two kernels: the first does block `number` of 4096 points of the
 * tile, the second the rest. `tile` is the tile's number, of `tiles`; i64. */
void qn__block_first(lower *g, LLVMValueRef low, LLVMValueRef tiles, LLVMValueRef tile,
                     LLVMValueRef number);
void qn__block_second(lower *g, LLVMValueRef low, LLVMValueRef tiles, LLVMValueRef tile,
                      const span *spans);

/** Shared memory before the buffers for the values of reduces, where other threads than the one
 *  that added them need them; else 0. */
int64_t qn__block_value_bytes(const lower *g);
/** Word n of shared memory for parts of reduces, of which a block that keeps rows has one for each
 * thread and one for each 64 of these. */
LLVMValueRef qn__block_word(lower *g, LLVMValueRef n);
/** The value of a reduce for an iteration of the tile, which stands in shared memory; those of all
 *  become the values of the reduces. */
LLVMValueRef qn__block_value(lower *g, uint32_t reduce, LLVMValueRef iteration);
void qn__block_set_values(lower *g, LLVMValueRef iteration);
void qn__block_put_value(lower *g, const reduction *r, LLVMValueRef iteration, LLVMValueRef v);
/** One reduce for the tile, or block `number` of its points (NULL: all): the fold from the identity
 * on, in the first threads (target/nvptx/block_fold.c, block_add.c). */
LLVMValueRef qn__block_fold(lower *g, uint32_t reduce, LLVMValueRef low, LLVMValueRef number);
/** The results of at most 4096 blocks of a reduce in the striped order combined: those of this
 * thread's iteration stand `pitch` words apart in memory. */
LLVMValueRef qn__block_join(lower *g, uint32_t reduce, LLVMValueRef from, LLVMValueRef pitch,
                            LLVMValueRef blocks);

/* ---- target/nvptx/private.c: copies of views in shared memory */
/** Shared memory of all copies. */
int32_t qn__private_all(const qn_kernel *k, const qn_facts *f, const qn_grid *p);
/** Before the first unit of work, and behind the last. */
void qn__private_open(lower *g, LLVMValueRef iterations);
void qn__private_close(lower *g);
/** Shared memory of all records or rows that are moved. */
int32_t qn__moved_bytes(const qn_grid *p);
/** Moves the records of this warp's iterations, before its threads take theirs, and behind; the
 * index of each thread is set, also of one that has no iteration. */
void qn__move_records(lower *g, bool is_flush);
/** The hook `move_rows`. */
void qn__nvptx_move_rows(lower *g, LLVMValueRef index, int64_t count, bool is_flush);
/** Where the element at `pointer` stands in the copy; NULL: the access goes to the view. */
LLVMValueRef qn__place_in_block(lower *g, uint32_t i, LLVMValueRef pointer);

/* ---- target/nvptx/stage.c: loads through shared memory */
/** Bytes of shared memory of a block. */
int32_t qn__stage_bytes(const qn_kernel *k, const qn_grid *p);
/** One tile of the dimensions axis[0] and tile_dim, which begins at (low_x, low_y): staged loads
 * into shared memory, and the body for each iteration. The other indices are set. */
void qn__stage_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y, const span *spans);

/* ---- target/nvptx/product.c: register tiles */
/** Shared memory of a block. */
int32_t qn__product_bytes(const qn_kernel *k, const qn_grid *p);
/** Blocks that a multiprocessor should have registers for. */
int qn__product_blocks(const qn_kernel *k, const qn_grid *p);
/** One tile of the dimensions axis[0] and tile_dim, which begins at (low_x, low_y); the other
 * indices are set. */
void qn__product_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y, const span *spans);

/* ---- target/nvptx/quotient.c */
/** What `divide` of the hooks multiplies by, for divisor b; NaN where the processor divides. */
LLVMValueRef qn__nvptx_invert(lower *g, LLVMValueRef b);
LLVMValueRef qn__nvptx_divide(lower *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef inverse);

#endif
