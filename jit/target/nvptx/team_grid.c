/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team_grid.c: kernels that only reduce, by all blocks of a grid: a first kernel leaves the result
 * of each block of 4096 points in scratch memory, a second one combines them and runs the body.
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

/** One block of points for each reduce; loads between them are team code. */
static void first_block(lower *g, LLVMValueRef block, void *arg)
{
    const grid *x = arg;
    int n = 0;
    span points = qn__block_at(g, qn__up_to(g, x->total), block, BLOCK);
    for (uint32_t i = g->k->body; i < g->k->n_insts; i = g->k->inst[i].region[2]) {
        const qn_inst *inst = &g->k->inst[i];
        bool is_needed =
            qn__next_reduce(g->k, i) < g->k->n_insts; /* nothing after the last reduce is */
        if (inst->op == QN_I_LOAD && is_needed)
            qn__lower_load(g, i, 0);
        if (inst->op != QN_I_REDUCE)
            continue;
        reduction r = qn__describe_reduction(g, i);
        team_source s = {.r = &r, .total = x->total};
        LLVMValueRef v;
        qn__team_block(g, &s, points, &v);
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
        qn__team_range(g, &s, depth, qn__up_to(g, x.blocks), &value[n]);
        value[n] = qn__or_empty(g, &r, value[n]);
        n++;
    }
    branch one = qn__begin_branch(g, qn__team_begin(g));
    n = 0;
    FOR_TOP_REDUCES (g->k, i)
        qn__set(g, i, 0, value[n++], g->depth);
    g->is_team = false;
    qn__lower_region(g, g->k->body, g->k->n_insts);
    qn__end_branch(g, &one, NULL);
}
