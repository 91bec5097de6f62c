/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c: kernels whose reduces are shared by the threads of a block: a tile of iterations along
 * one dimension, its reduces one after the other (target/nvptx/block_fold.c), then the body by the
 * first threads, one for each iteration, with the values of the reduces known. Where iterations are
 * few and their points many, blocks of 4096 points are units of work of their own, and a second
 * kernel does the rest.
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/schedule/grid.h"

/** Results of blocks of points that are loaded before the first of them is added. */
enum { TOGETHER = 16, LEVELS = MOST_DEPTH + 1 };

/** The body for the iteration of this thread, if there is one, with the values of the reduces. */
static void run_body(lower *g, LLVMValueRef low, LLVMValueRef thread, const LLVMValueRef *value,
                     const span *spans)
{
    int x = g->grid->axis[0], n = 0;
    LLVMValueRef at = LLVMBuildAdd(g->b, low, thread, "");
    LLVMValueRef mine =
        LLVMBuildICmp(g->b, LLVMIntULT, thread, qn__const_i64(g, g->grid->block[x]), "");
    branch then =
        qn__begin_branch(g, LLVMBuildAnd(g->b, mine, qn__is_before(g, x, at, g->end[x]), ""));
    qn__set_index(g, x, at);
    FOR_TOP_REDUCES (g->k, i)
        qn__set(g, i, 0, value[n++], g->depth);
    qn__thread_body(g, spans);
    qn__end_branch(g, &then, NULL);
}

/* ---------------------------------------------------------------- values in shared memory */

/* A word for each reduce and each iteration of the tile: place reduce x tile + iteration, before
 * the buffers. Where rows are kept, words for parts of a reduce stand behind these. */

static int64_t words_of_values(const lower *g)
{
    return g->grid->has_values ? qn__n_top_reduces(g->k) * g->grid->block[g->grid->axis[0]] : 0;
}

int64_t qn__block_value_bytes(const lower *g)
{
    const int64_t threads = g->grid->n_kept ? qn__nvptx_threads(g->grid) : 0;
    return (8 * (words_of_values(g) + threads + threads / PARTIALS) + 15) / 16 * 16;
}

LLVMValueRef qn__block_word(lower *g, LLVMValueRef n)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, n, qn__const_i64(g, words_of_values(g)), "");
    return qn__gep(g, g->i64, qn__nvptx_shared(g), at);
}

static LLVMValueRef value_at(lower *g, uint32_t reduce, LLVMValueRef iteration)
{
    int64_t first = 0;
    FOR_TOP_REDUCES (g->k, i)
        first += i < reduce ? g->grid->block[g->grid->axis[0]] : 0;
    LLVMValueRef at = LLVMBuildAdd(g->b, iteration, qn__const_i64(g, first), "");
    return qn__gep(g, g->i64, qn__nvptx_shared(g), at);
}

void qn__block_put_value(lower *g, const reduction *r, LLVMValueRef iteration, LLVMValueRef v)
{
    qn__store_as(g, r->type, v, value_at(g, r->inst, iteration), 8);
}

/** The value that this thread has of its iteration, if there is one. */
static void put_own(lower *g, LLVMValueRef thread, const reduction *r, LLVMValueRef v)
{
    LLVMValueRef tile = qn__const_i64(g, g->grid->block[g->grid->axis[0]]);
    branch then = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntULT, thread, tile, ""));
    qn__block_put_value(g, r, thread, v);
    qn__end_branch(g, &then, NULL);
}

LLVMValueRef qn__block_value(lower *g, uint32_t reduce, LLVMValueRef iteration)
{
    return qn__load_as(g, g->k->inst[reduce].type, value_at(g, reduce, iteration), 8);
}

void qn__block_set_values(lower *g, LLVMValueRef iteration)
{
    FOR_TOP_REDUCES (g->k, i)
        qn__set(g, i, 0, qn__block_value(g, i, iteration), g->depth);
}

/* ---------------------------------------------------------------- a tile */

void qn__block_tile(lower *g, LLVMValueRef low, const span *spans)
{
    LLVMValueRef value[MOST_BLOCK_REDUCES], thread = qn__nvptx_register(g, "tid.x", g->i64);
    int n = 0;
    if (g->grid->has_values)
        qn__nvptx_barrier(g); /* those of the tile before have been read */
    FOR_TOP_REDUCES (g->k, i) /* at most MOST_BLOCK_REDUCES */
    {
        reduction r = qn__describe_reduction(g, i);
        value[n] = qn__or_empty(g, &r, qn__block_fold(g, i, low, NULL));
        if (g->grid->has_values && !qn__block_is_by_lanes(g->k, g->grid, i))
            put_own(g, thread, &r, value[n]);
        n++;
    }
    if (!g->grid->rest_dims) {
        run_body(g, low, thread, value, spans);
        return;
    }
    qn__nvptx_barrier(g);
    qn__rest_of_block(g, low);
}

/* ---------------------------------------------------------------- blocks of points apart */

/* Scratch memory: for each reduce a word for each iteration of each unit of the first step, which
 * is a tile and a block of 4096 points: place (reduce x units + unit) x tile + thread, where unit =
 * block x tiles + tile. */

static LLVMValueRef scratch_at(lower *g, int reduce, LLVMValueRef units, LLVMValueRef unit,
                               LLVMValueRef thread)
{
    LLVMValueRef at =
        LLVMBuildAdd(g->b, LLVMBuildMul(g->b, units, qn__const_i64(g, reduce), ""), unit, "");
    at = LLVMBuildMul(g->b, at, qn__const_i64(g, g->grid->block[g->grid->axis[0]]), "");
    at = LLVMBuildAdd(g->b, at, thread, "");
    return qn__gep(g, g->i64, qn__nvptx_scratch(g), at);
}

void qn__block_first(lower *g, LLVMValueRef low, LLVMValueRef tiles, LLVMValueRef tile,
                     LLVMValueRef number)
{
    LLVMValueRef thread = qn__nvptx_register(g, "tid.x", g->i64);
    LLVMValueRef mine = LLVMBuildICmp(g->b, LLVMIntULT, thread,
                                      qn__const_i64(g, g->grid->block[g->grid->axis[0]]), "");
    LLVMValueRef unit = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, number, tiles, ""), tile, "");
    int n = 0;
    FOR_TOP_REDUCES (g->k, i) {
        reduction r = qn__describe_reduction(g, i);
        LLVMValueRef units =
            LLVMBuildMul(g->b, tiles, qn__const_i64(g, (r.points + BLOCK - 1) / BLOCK), "");
        LLVMValueRef value = qn__block_fold(g, i, low, number);
        branch then = qn__begin_branch(g, mine);
        qn__store_as(g, r.type, value, scratch_at(g, n++, units, unit, thread), 8);
        qn__end_branch(g, &then, NULL);
    }
}

/** Adds the results of blocks [low, high) to the sums, `step` at a time. */
static void add_blocks(lower *g, const reduction *r, LLVMValueRef from, LLVMValueRef pitch,
                       int64_t low, int64_t high, int step, LLVMValueRef *sums)
{
    LLVMValueRef value[TOGETHER];
    int n_sums = r->n_levels + 1;
    loop l;
    if (low == high)
        return;
    qn__loop_open(g, &l, (span){qn__const_i64(g, low), qn__const_i64(g, high)}, step, 0);
    qn__loop_carry(g, &l, sums, n_sums);
    LLVMValueRef at = LLVMBuildMul(g->b, l.index, pitch, "");
    at = qn__gep(g, g->i8, from, at);
    for (int n = 0; n < step; n++) {
        value[n] = qn__load_as(g, r->type, at, 8);
        at = qn__gep(g, g->i8, at, pitch);
    }
    for (int n = 0; n < step; n++) {
        sums[0] = qn__combine(g, r, sums[0], value[n]);
        qn__fold_up(g, r, sums, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, n + 1), ""));
    }
    qn__loop_close(g, &l);
}

void qn__block_second(lower *g, LLVMValueRef low, LLVMValueRef tiles, LLVMValueRef tile,
                      const span *spans)
{
    LLVMValueRef value[MOST_BLOCK_REDUCES], thread = qn__nvptx_register(g, "tid.x", g->i64);
    LLVMValueRef mine = qn__umin(g, thread, qn__const_i64(g, g->grid->block[g->grid->axis[0]] - 1));
    LLVMValueRef pitch =
        LLVMBuildMul(g->b, tiles, qn__const_i64(g, 8 * g->grid->block[g->grid->axis[0]]), "");
    int n = 0;
    FOR_TOP_REDUCES (g->k, i) /* at most MOST_BLOCK_REDUCES */
    {
        LLVMValueRef sums[LEVELS];
        reduction r = qn__describe_reduction(g, i);
        int64_t blocks = (r.points + BLOCK - 1) / BLOCK, whole = blocks / TOGETHER * TOGETHER;
        LLVMValueRef units = LLVMBuildMul(g->b, tiles, qn__const_i64(g, blocks), "");
        if (qn__block_is_by_partials(g->k, g->grid, i)) {
            const int64_t tile_words = g->grid->block[g->grid->axis[0]];
            LLVMValueRef x = LLVMBuildURem(g->b, thread, qn__const_i64(g, tile_words), ""),
                         words = LLVMBuildMul(g->b, tiles, qn__const_i64(g, tile_words), "");
            value[n] = qn__block_join(g, i, scratch_at(g, n, units, tile, x), words,
                                      qn__const_i64(g, blocks));
            n++;
            continue;
        }
        r.n_levels--; /* of the points */
        for (int v = 0; v <= r.n_levels; v++)
            sums[v] = r.identity;
        LLVMValueRef from = scratch_at(g, n, units, tile, mine);
        add_blocks(g, &r, from, pitch, 0, whole, TOGETHER, sums);
        add_blocks(g, &r, from, pitch, whole, blocks, 1, sums);
        value[n++] = qn__fold_levels(g, &r, sums, 1);
    }
    run_body(g, low, thread, value, spans);
}
