/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h: how the threads of a GPU walk a kernel. jit/schedule/gpu.c makes a grid by rules,
 * shape_grid.c reads that of a schedule, from_grid.c says one as a schedule, and target/nvptx/
 * emits code from it.
 */
#ifndef QN_JIT_GRID_H
#define QN_JIT_GRID_H

#include "jit/jit.h"

/** Who runs an iteration: a thread; a warp, whose lanes share the points of reduces; in kernels
 * whose reduces depend on no parallel dimension, all blocks share the points of the reduces, and
 * all blocks of a second kernel do the rest; or the threads of a block evaluate the points of a
 * block of iterations, and one for each iteration adds them and does the rest. The numbers are
 * those of qn_plan_options. */
enum { QN_TEAM_NONE = 0, QN_TEAM_THREAD, QN_TEAM_WARP, QN_TEAM_GRID, QN_TEAM_BLOCK };

/** A value of each point that a team keeps in shared memory: reduce `writer` computes it as `from`,
 * and a later reduce or loop, `region`, computes it again as `to`. A block also keeps what each of
 * its reduces adds: region is the reduce itself then. The values of all points begin at byte `at`
 * of the team's memory; those of the next row of a block begin `pitch` bytes further. */
#define QN_KEPT_BODY UINT32_MAX /* instead of a region: what the lanes do behind the reduces */
typedef struct qn_kept {
    uint32_t from, to, writer, region;
    int32_t at, pitch;
} qn_kept;
enum { QN_MOST_KEPT = 8 };

/** A view of records whose bytes a block moves through shared memory, side by side. Each iteration
 * touches one record of `step` bytes: words of 4 bytes that are loaded, and stored (bits). Record n
 * begins at byte begin + n x step of the view; those of a block stand from byte `at` of shared
 * memory on. Or, with grid->moved_loop, a view of rows: trips of the loop touch word after word of
 * one, and warps move QN_MOVED_TRIPS words of the rows of their threads before and behind as many
 * trips. */
typedef struct qn_moved {
    int32_t param, step, at;
    int64_t begin;
    uint64_t loads, stores;
} qn_moved;
/** Views of one kernel, and the bytes of a word that a thread moves. */
enum { QN_MOST_MOVED = 2, QN_MOVED_WORD = 4, QN_MOVED_TRIPS = 32 };

/** A grid is data: printed, and kept no longer than a compile. Dimensions are those of the domain,
 * -1: none. */
typedef struct qn_grid {
    int32_t n_loops;            /* sequential and parallel dimensions */
    int32_t order[QN_MAX_RANK]; /* their numbers, outermost first */
    int32_t straight;           /* a reduce of at most so many additions has no loop */
    int32_t team;               /* QN_TEAM_... */
    /* ---- blocks and threads */
    int64_t block[QN_MAX_RANK];   /* iterations of a dimension that a block takes at once; 0: a loop
                                     in each thread */
    int32_t threads[QN_MAX_RANK]; /* of a block along a dimension */
    int32_t axis[3];              /* dimensions of threadIdx.x, y and z */
    int32_t most_blocks; /* of a launch, each of which takes several units; 0: one for each unit */
    /* ---- iterations of one thread */
    int32_t wide_dim, wide; /* so many consecutive iterations, whose accesses are vectors */
    int32_t wide_lead;      /* iterations before the begin of wide_dim at which threads begin */
    int32_t tall_dim, tall, tall_lead; /* rows of those along a second dimension */
    int32_t skew; /* iterations of wide_dim by which each row of a thread begins before the one
                     above */
    int32_t is_crossed; /* some accesses are consecutive along tall_dim, others along wide_dim */
    /* ---- shared memory */
    uint64_t early;     /* bit s: a block performs the load at access s ahead of its point */
    uint64_t staged;    /* bit s: the load at access s goes through a tile in shared memory */
    uint64_t words;     /* bit s: several of its small elements stand in a word of 4 bytes */
    int32_t is_product; /* early loads are those of a reduce over a third dimension, whose sums are
                           register tiles */
    int32_t tile_dim;   /* with axis[0], the dimension of a tile of either kind */
    int32_t n_moved;
    qn_moved moved[QN_MOST_MOVED];
    uint32_t moved_loop; /* a `for` at the top, whose rows are moved; 0: records are */
    uint64_t privatized; /* bit s: a block collects what the atomic at access s does */
    int32_t private_room; /* bytes of a copy of a view whose elements the launch counts: if all such
                             views fit, and have few elements for the iterations, blocks collect */
    /* ---- QN_TEAM_BLOCK */
    int32_t chunk;           /* points of an iteration that are evaluated together */
    int32_t is_split;        /* pieces of QN_BLOCK_POINTS points are units of their own; a second
                                kernel does the rest */
    int32_t is_along_points; /* neighbouring threads take neighbouring points, not iterations */
    int32_t has_values;      /* the values of reduces are in shared memory */
    /* ---- QN_TEAM_WARP and QN_TEAM_BLOCK */
    int32_t warps; /* of a team that shares blocks of 4096 points; 0: a team is one warp */
    int32_t has_pairs; /* lane l holds the partials 2 l and 2 l + 1, not l and l + 32 */
    uint32_t rest_dims;         /* bits: dimensions on which no reduce depends, whose iterations a
                                   team divides behind the reduces; their block is 0 */
    int32_t n_kept, kept_bytes; /* what a team keeps, and the shared memory of each */
    qn_kept kept[QN_MOST_KEPT];
} qn_grid;

/** Bytes that one instruction of a thread moves at most. */
enum { QN_ACCESS_BYTES = 16 };
/** Iterations, and points of a reduce, that a thread of a block evaluates at most. */
enum { QN_MOST_EACH = 16 };
/** Threads of a block that shares points, or a tile. */
enum { QN_BLOCK_THREADS = 256 };
/** Staged tiles are squares of this side. */
enum { QN_STAGE_SIDE = 64 };
/** Tiles of products have this side, or half of it, and so many points of the reduce at a time. */
enum { QN_PRODUCT_SIDE = 128, QN_PRODUCT_CHUNK = 16 };

/** Makes the grid. Pure: one kernel with one set of facts has one grid. Never fails: the fallback
 * is a thread that runs all of it. */
void qn__grid_make(const qn_kernel *k, const qn_facts *f, qn_grid *out);
void qn__grid_print(const qn_grid *p, qn_text *out);
/** One thread, no loops yet. */
qn_grid qn__grid_of_one(void);

/** Shared memory for the copy of a view whose updates a block collects (privatized). */
int64_t qn__private_bytes(const qn_kernel *k, const qn_facts *f, const qn_grid *p, int param);
/** What a product (is_product) keeps of a load in shared memory: the number that it is
 * converted to, if nothing else needs the load, or the load. Only loads that stand in a reduce are
 * asked for. */
uint32_t qn__product_value(const qn_kernel *k, uint32_t load);
int64_t qn__product_value_bytes(const qn_kernel *k, uint32_t load);
/** Whether the lanes of a warp may share all reduces that stand in no other: their points as they
 * come, or in pieces of neighbours. */
bool qn__gpu_may_share(const qn_kernel *k, bool in_pieces);
/** Whether the lanes of a warp fold the points of a reduce of a block that keeps rows, from what is
 * kept of them. */
bool qn__block_is_by_lanes(const qn_kernel *k, const qn_grid *p, uint32_t reduce);
/** Whether the threads of a block have partials of each iteration of its tile: of a reduce in the
 * striped order whose rows are not kept. */
bool qn__block_is_by_partials(const qn_kernel *k, const qn_grid *p, uint32_t reduce);
/** Points of an iteration that a block evaluates together of one reduce: grid->chunk, or fewer
 * where rows are kept and the reduce is much code. */
int64_t qn__block_chunk(const qn_kernel *k, const qn_grid *p, uint32_t reduce);
/** Value number n that a point of a reduce adds: 0, or 0 and 1 of a product that is contracted. */
uint32_t qn__added_value(const qn_kernel *k, uint32_t reduce, int n);
enum { MOST_BLOCK_REDUCES = 16 }; /* of one whose reduces are shared by the threads of a block */
/** How a block moves what access i touches; NULL: it does not. */
static inline const qn_moved *qn__grid_moved(const qn_grid *p, const qn_kernel *k, uint32_t i)
{
    const qn_inst *loop = &k->inst[p->moved_loop];
    for (int n = 0; n < p->n_moved; n++)
        if ((uint64_t)p->moved[n].param == k->inst[i].imm &&
            (!p->moved_loop || (i > p->moved_loop && i < loop->region[2])))
            return &p->moved[n];
    return NULL;
}
/** Bytes of shared memory for what an iteration touches of a moved view. Words of a piece of a row
 * are an odd number, so that 32 rows stand in as many banks. */
static inline int32_t qn__moved_pitch(const qn_grid *p, const qn_moved *m)
{
    return p->moved_loop ? (QN_MOVED_TRIPS + 1) * QN_MOVED_WORD : m->step;
}
/** Iterations of dimension d before its begin at which threads begin. */
static inline int64_t qn__grid_lead(const qn_grid *p, int d)
{
    return d == p->wide_dim ? p->wide_lead : d == p->tall_dim ? p->tall_lead : 0;
}
/** Those, and the ones beyond its end that rows which begin earlier need. */
static inline int64_t qn__grid_reach(const qn_grid *p, int d)
{
    bool is_skewed = d == p->wide_dim && p->skew > 0;
    return qn__grid_lead(p, d) + (is_skewed ? p->skew * (p->tall - 1) : 0);
}
/** Iterations of dimension d that a thread computes at once, next to one another. */
static inline int64_t qn__grid_at_once(const qn_grid *p, int d)
{
    return d == p->wide_dim ? p->wide : d == p->tall_dim ? p->tall : 1;
}

#endif
