/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team_grid.c: kernels whose reduces depend on no parallel dimension, by all blocks of a grid: a
 * first kernel leaves the result of each block of 4096 points in scratch memory, a second one
 * combines them and runs the body, of which all its blocks divide the iterations.
 */
#include "jit/target/nvptx/nvptx.h"

/* Scratch memory: for each reduce `places` words, results of blocks of points. */

typedef struct grid {
    LLVMValueRef scratch, total, blocks,
        places; /* of the points of the reduces, which are the same */
} grid;

static grid open_grid(lower *g)
{
    reduction r = qn__describe_reduction(g, qn__next_reduce(g->k, g->k->body));
    grid x = {.total = qn__team_points(g, &r)};
    LLVMValueRef units = qn__count_blocks(g, x.total, (int64_t)BLOCK * FIRST_WARPS);
    x.blocks = qn__count_blocks(g, x.total, BLOCK);
    x.places = LLVMBuildMul(g->b, units, qn__const_i64(g, FIRST_WARPS), "");
    x.scratch = qn__nvptx_scratch(g);
    return x;
}

/** The results of reduce number n. */
static LLVMValueRef array_of(lower *g, const grid *x, int n)
{
    LLVMValueRef at = LLVMBuildMul(g->b, x->places, qn__const_i64(g, n), "");
    return qn__gep(g, g->i64, x->scratch, at);
}

/** array[n] = v, by lane 0 */
static void put(lower *g, LLVMValueRef array, LLVMValueRef n, LLVMValueRef v)
{
    branch then = qn__begin_branch(g, qn__is_lane(g, 0));
    v = LLVMTypeOf(v) == g->i1 ? LLVMBuildZExt(g->b, v, g->i8, "") : v;
    qn__store_at(g, v, qn__gep(g, g->i64, array, n), 8);
    qn__end_branch(g, &then, NULL);
}

/** Points of a reduce in index order, all lanes alike: of one block, or its results of blocks. */
static LLVMValueRef in_order(lower *g, reduction r, span of, LLVMValueRef results)
{
    LLVMValueRef acc[1][MOST_PARTS], begin = g->begin[r.dim[0]];
    const bool is_team = g->is_team;
    r.low = results ? of.low : LLVMBuildAdd(g->b, begin, of.low, "");
    r.high = results ? of.high : LLVMBuildAdd(g->b, begin, of.high, "");
    r.points = -1;
    r.n_levels = results ? r.n_levels - (r.n_levels > 0) : 0;
    r.results = results;
    r.product = results ? 0 : r.product;
    g->is_team = false;
    qn__reduce_in_order(g, &r, 1, acc);
    g->is_team = is_team;
    return acc[0][0];
}

/** One block of points for each reduce; loads between them are team code. */
static void first_block(lower *g, LLVMValueRef block, void *arg)
{
    const grid *x = arg;
    int n = 0;
    span points = qn__block_at(g, qn__up_to(g, x->total), block, BLOCK);
    for (uint32_t i = g->k->body; i < g->k->n_insts; i = g->k->inst[i].region[2]) {
        const qn_inst *inst = &g->k->inst[i];
        bool is_needed = qn__next_reduce(g->k, i) < g->k->n_insts && /* nothing after the last is */
                         !(g->a.value[i].deps & g->grid->rest_dims);
        if (inst->op == QN_I_LOAD && is_needed)
            qn__lower_load(g, i, 0);
        if (inst->op != QN_I_REDUCE)
            continue;
        reduction r = qn__describe_reduction(g, i);
        team_source s = {.r = &r, .total = x->total};
        LLVMValueRef v;
        if (qn__may_share_points(g->k, i))
            qn__team_block(g, &s, points, &v);
        else
            v = in_order(g, r, points, NULL);
        put(g, array_of(g, x, n++), block, v);
    }
}

void qn__team_first(lower *g)
{
    grid x = open_grid(g);
    g->is_team = true;
    LLVMValueRef warps = qn__const_i64(g, FIRST_WARPS);
    LLVMValueRef first = LLVMBuildMul(g->b, qn__nvptx_register(g, "ctaid.x", g->i64), warps, "");
    LLVMValueRef step = LLVMBuildMul(g->b, qn__nvptx_register(g, "nctaid.x", g->i64), warps, "");
    first = LLVMBuildAdd(g->b, first, qn__nvptx_register(g, "tid.y", g->i64), "");
    qn__nvptx_stride(g, first, x.blocks, step, first_block, &x);
}

/* All warps of a block combine the results, and have the values; one thread runs the body. */
void qn__team_second(lower *g)
{
    LLVMValueRef value[MOST_SHARED_REDUCES];
    const grid x = open_grid(g);
    int n = 0;
    g->is_team = true;
    FOR_TOP_REDUCES (g->k, i) { /* at most MOST_SHARED_REDUCES */
        const reduction r = qn__describe_reduction(g, i);
        const team_source s = {.r = &r, .array = array_of(g, &x, n), .total = x.blocks};
        const int depth = r.n_levels > 1 ? r.n_levels - 1 : 0;
        const span all = qn__up_to(g, x.blocks);
        if (qn__may_share_points(g->k, i))
            qn__team_range(g, &s, depth, all, &value[n]);
        else
            value[n] = in_order(g, r, all, s.array);
        value[n] = qn__or_empty(g, &r, value[n]);
        n++;
    }
    LLVMValueRef first = g->grid->rest_dims ? NULL : qn__team_begin(g);
    branch one = qn__begin_branch(g, first);
    n = 0;
    FOR_TOP_REDUCES (g->k, i) {
        qn__set(g, i, 0, first ? value[n] : qn__team_same(g, value[n]), g->depth);
        n++;
    }
    g->is_team = false;
    if (g->grid->rest_dims)
        qn__rest_of_grid(g);
    else
        qn__lower_region(g, g->k->body, g->k->n_insts);
    qn__end_branch(g, &one, NULL);
}
