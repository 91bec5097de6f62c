/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team_grid.c: kernels that only reduce, by all blocks of a grid: a first kernel leaves the result
 * of each block of 4096 points in scratch memory, a second one combines them and runs the body.
 */
#include "jit/target/nvptx/nvptx.h"

/* Scratch memory: for each reduce two arrays of `places` words, results of blocks of points and of
 * blocks of those. */

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

/** Array of reduce number n: results of blocks of points (0) or of blocks of those (1). */
static LLVMValueRef array_of(lower *g, const grid *x, int n, int above)
{
    LLVMValueRef at = LLVMBuildMul(g->b, x->places, qn__const_i64(g, 2 * n + above), "");
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
            qn__lower_load(g, i);
        if (inst->op != QN_I_REDUCE)
            continue;
        reduction r = qn__describe_reduction(g, i);
        team_source s = {.r = &r, .total = x->total};
        put(g, array_of(g, x, n++, 0), block, qn__team_block(g, &s, points));
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

typedef struct upper {
    const grid *x;
    const reduction *r;
    int n;
} upper;

static void second_block(lower *g, LLVMValueRef block, void *arg)
{
    const upper *u = arg;
    team_source s = {.r = u->r, .array = array_of(g, u->x, u->n, 0), .total = u->x->blocks};
    span results = qn__block_at(g, qn__up_to(g, u->x->blocks), block, BLOCK);
    put(g, array_of(g, u->x, u->n, 1), block, qn__team_block(g, &s, results));
}

/** The values of all reduces, then the rest of the body, by lane 0 of one warp. */
static void finish(lower *g, const grid *x, LLVMValueRef blocks)
{
    int n = 0;
    LLVMValueRef value[MOST_SHARED_REDUCES];
    uint32_t inst[MOST_SHARED_REDUCES];
    FOR_TOP_REDUCES (g->k, i) /* at most MOST_SHARED_REDUCES */
    {
        reduction r = qn__describe_reduction(g, i);
        team_source s = {.r = &r, .array = array_of(g, x, n, 1), .total = blocks};
        LLVMValueRef v = qn__team_range(g, &s, r.n_levels > 2 ? 1 : 0, qn__up_to(g, blocks));
        inst[n] = i;
        value[n++] = qn__or_empty(g, &r, v);
    }
    branch one = qn__begin_branch(g, qn__is_lane(g, 0));
    for (int m = 0; m < n; m++)
        qn__set(g, inst[m], 0, value[m], g->depth);
    g->is_team = false;
    qn__lower_region(g, g->k->body, g->k->n_insts);
    qn__end_branch(g, &one, NULL);
}

void qn__team_second(lower *g)
{
    grid x = open_grid(g);
    LLVMValueRef blocks = qn__count_blocks(g, x.blocks, BLOCK),
                 warp = qn__nvptx_register(g, "tid.y", g->i64);
    int n = 0;
    g->is_team = true;
    FOR_TOP_REDUCES (g->k, i) {
        reduction r = qn__describe_reduction(g, i);
        upper u = {&x, &r, n++};
        qn__nvptx_stride(g, warp, blocks, qn__const_i64(g, SECOND_WARPS), second_block, &u);
    }
    qn__nvptx_barrier(g);
    branch first_warp =
        qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntEQ, warp, qn__const_i64(g, 0), ""));
    finish(g, &x, blocks);
    qn__end_branch(g, &first_warp, NULL);
}

void qn__team_info(const qn_kernel *k, qn_gpu_info *info)
{
    info->n_steps = 2;
    info->step[0] = (qn_gpu_step){.threads = {WARP_LANES, FIRST_WARPS, 1},
                                  .points = (int64_t)BLOCK * FIRST_WARPS};
    info->step[1] = (qn_gpu_step){.threads = {WARP_LANES, SECOND_WARPS, 1}, .units = 1};
    info->scratch_per_unit =
        (int64_t)qn__n_top_reduces(k) * 2 * FIRST_WARPS * (int64_t)sizeof(int64_t);
}
