/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.c: the iterations of dimensions on which no reduce depends (grid->rest_dims), divided among
 * the threads of a team once the values of the reduces are known, or all of one thread. Iterations
 * count lexicographically, and neighbouring threads take neighbouring ones. Of the last dimension a
 * thread takes grid->wide at once, whose accesses are vectors; here these count as one.
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/lower/wide.h"
#include "jit/schedule/grid.h"

/** The dimensions, the last one fastest. */
typedef struct rest {
    int n, dim[QN_MAX_RANK];
    LLVMValueRef count; /* iterations, i64 */
} rest;

static rest find_rest(lower *g)
{
    rest r = {.count = qn__const_i64(g, 1)};
    for (int at = 0; at < g->grid->n_loops; at++) {
        int d = g->grid->order[at];
        if (!(g->grid->rest_dims >> d & 1))
            continue;
        r.dim[r.n++] = d;
        LLVMValueRef extent = LLVMBuildSub(g->b, g->end[d], g->begin[d], ""),
                     zero = qn__const_i64(g, 0);
        LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSGT, extent, zero, "");
        extent = LLVMBuildSelect(g->b, some, extent, zero, "");
        extent = LLVMBuildUDiv(g->b, extent, qn__const_i64(g, qn__grid_at_once(g->grid, d)), "");
        r.count = LLVMBuildMul(g->b, r.count, extent, "");
    }
    return r;
}

/** Iteration q, if `condition` holds; NULL: it does. */
static void lower_iteration(lower *g, LLVMValueRef q, LLVMValueRef condition, void *arg)
{
    const rest *r = arg;
    loop once;
    int64_t count;
    qn__once_open(g, &once, condition);
    qn__set_indices(g, r->dim, r->n, q, qn__is_const(r->count, &count) && count <= INT32_MAX);
    LLVMValueRef held[QN_MOST_HELD] = {NULL};
    g->unroll = g->grid->wide;
    if (g->kept) {
        qn__kept_read(g, QN_KEPT_BODY, LLVMBuildMul(g->b, q, qn__const_i64(g, g->grid->wide), ""),
                      0);
        qn__kept_hold(g, QN_KEPT_BODY, held);
    }
    g->held = g->unroll > 1 ? NULL : held;
    qn__wide_begin(g);
    qn__lower_region(g, g->k->body, g->k->n_insts);
    g->held = NULL;
    g->unroll = 1;
    qn__loop_close(g, &once);
}

void qn__share_out(lower *g, LLVMValueRef count, LLVMValueRef first, int64_t threads,
                   void (*one)(lower *g, LLVMValueRef q, LLVMValueRef condition, void *arg),
                   void *arg)
{
    loop l;
    int64_t n;
    const bool is_whole = qn__is_const(count, &n) && n % threads == 0;
    LLVMValueRef up = LLVMBuildAdd(g->b, count, qn__const_i64(g, threads - 1), "");
    const span all = qn__up_to(g, LLVMBuildAnd(g->b, up, qn__const_i64(g, -threads), ""));
    if (qn__is_known_empty(all))
        return;
    qn__loop_open(g, &l, all, threads, LOOP_MAY_BE_EMPTY);
    LLVMValueRef q = LLVMBuildAdd(g->b, l.index, first, "");
    one(g, q, is_whole ? NULL : LLVMBuildICmp(g->b, LLVMIntULT, q, count, ""), arg);
    qn__loop_close(g, &l);
}

/* ---------------------------------------------------------------- warps and threads */

/** Whether a load of the top is of all iterations of the rest: reduces may need it. */
static bool is_shared_load(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    return x->op == QN_I_LOAD && !(g->a.value[i].deps & g->grid->rest_dims) &&
           !qn__is_checked(g->f, g->k, g->site[i]) && g->f->param[x->imm].is_constant_memory &&
           !(g->k->param[x->imm].traits & QN_ATOMIC);
}

void qn__rest_of_unit(lower *g)
{
    const bool is_warp = g->is_team;
    for (uint32_t i = g->k->body; i < g->k->n_insts; i = g->k->inst[i].region[2])
        if (is_shared_load(g, i))
            qn__lower_load(g, i, 0);
        else if (g->k->inst[i].op == QN_I_REDUCE)
            qn__lower_reduce(g, i);
    rest r = find_rest(g);
    if (g->kept && g->grid->wide > 1) /* what other lanes have kept */
        qn__team_wait(g);
    g->is_team = false;
    qn__share_out(g, r.count, is_warp ? g->lane : qn__const_i64(g, 0), is_warp ? WARP_LANES : 1,
                  lower_iteration, &r);
    g->is_team = is_warp;
    if (g->kept) /* the next unit's points may be another lane's than the iterations here */
        qn__team_wait(g);
}

/* ---------------------------------------------------------------- all blocks */

static void next_iteration(lower *g, LLVMValueRef q, void *arg)
{
    lower_iteration(g, q, NULL, arg);
}

void qn__rest_of_grid(lower *g)
{
    rest r = find_rest(g);
    LLVMValueRef threads = qn__const_i64(g, (int64_t)WARP_LANES * g->grid->warps), first, step;
    first = LLVMBuildMul(g->b, qn__nvptx_register(g, "ctaid.x", g->i64), threads, "");
    step = LLVMBuildMul(g->b, qn__nvptx_register(g, "nctaid.x", g->i64), threads, "");
    threads = LLVMBuildMul(g->b, qn__nvptx_register(g, "tid.y", g->i64),
                           qn__const_i64(g, WARP_LANES), "");
    first = LLVMBuildAdd(g->b, first, LLVMBuildAdd(g->b, threads, g->lane, ""), "");
    qn__nvptx_stride(g, first, r.count, step, next_iteration, &r);
}

/* ---------------------------------------------------------------- blocks */

/** Threads that take one row at a time: all, or as many as are not idle. */
static int64_t threads_of_row(const lower *g, const rest *r)
{
    int64_t threads = qn__nvptx_threads(g->grid), n;
    while (qn__is_const(r->count, &n) && threads > 1 && threads / 2 >= n)
        threads /= 2;
    return threads;
}

void qn__rest_of_block(lower *g, LLVMValueRef low)
{
    int x = g->grid->axis[0];
    rest r = find_rest(g);
    int64_t threads = threads_of_row(g, &r), rows = qn__nvptx_threads(g->grid) / threads;
    LLVMValueRef thread = qn__nvptx_register(g, "tid.x", g->i64);
    LLVMValueRef here =
        qn__umin(g, LLVMBuildSub(g->b, g->end[x], low, ""), qn__const_i64(g, g->grid->block[x]));
    LLVMValueRef own = LLVMBuildUDiv(g->b, thread, qn__const_i64(g, threads), "");
    LLVMValueRef first = LLVMBuildURem(g->b, thread, qn__const_i64(g, threads), "");
    LLVMValueRef up = LLVMBuildAdd(g->b, here, qn__const_i64(g, rows - 1), "");
    loop l, once;
    up = LLVMBuildAnd(g->b, up, qn__const_i64(g, -rows), "");
    qn__loop_open(g, &l, qn__up_to(g, up), rows, LOOP_MAY_BE_EMPTY);
    LLVMValueRef row = LLVMBuildAdd(g->b, l.index, own, "");
    qn__once_open(g, &once, rows > 1 ? LLVMBuildICmp(g->b, LLVMIntULT, row, here, "") : NULL);
    qn__set_index(g, x, LLVMBuildAdd(g->b, low, row, ""));
    qn__block_set_values(g, row);
    g->kept_row = row;
    qn__share_out(g, r.count, first, threads, lower_iteration, &r);
    g->kept_row = NULL;
    qn__loop_close(g, &once);
    qn__loop_close(g, &l);
}
