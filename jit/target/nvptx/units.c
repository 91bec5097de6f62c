/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.c: the walk of a GPU's threads over the domain. A unit of work is a tile of the parallel
 * dimensions (grid->block). Blocks take units blockIdx.x, blockIdx.x + gridDim.x, ...; the threads
 * of a block take the iterations of its unit (grid->axis).
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/lower/nest.h"
#include "jit/lower/wide.h"

#include <string.h>

bool qn__nvptx_is_light(const qn_kernel *k, const qn_grid *p)
{
    enum { FEW_REGISTERS = 16 }; /* of all that a thread loads: half of those that it then has */
    int64_t registers = 0;
    if (p->team != QN_TEAM_THREAD || p->staged || p->tall > 1)
        return false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_REDUCE ||
            x->op == QN_I_ATOMIC)
            return false;
        if (x->op == QN_I_LOAD)
            registers += (qn_dtype_bytes(x->type) + 3) / 4 * p->wide;
    }
    return registers <= FEW_REGISTERS;
}

int64_t qn__nvptx_units(const qn_facts *f, const qn_grid *p)
{
    int64_t n = 1;
    for (int at = 0; at < p->n_loops; at++) {
        int d = p->order[at];
        int64_t tile = p->block[d], extent = qn__trips(f, d) + qn__grid_reach(p, d);
        if (tile == 0)
            continue;
        if (!qn__is_exact(f, d))
            return 0;
        if (__builtin_mul_overflow(n, extent / tile + (extent % tile != 0), &n))
            return 0;
    }
    return n;
}

bool qn__nvptx_has_block_for_each(const qn_kernel *k, const qn_facts *f, const qn_grid *p)
{
    int64_t units = qn__nvptx_is_light(k, p) && !p->is_split ? qn__nvptx_units(f, p) : 0;
    return units > 0 && units <= INT32_MAX;
}

/** The walk over one function's units. Tiles are counted in `type`. */
typedef struct walk {
    int n, dim[QN_MAX_RANK]; /* tiled dimensions, outermost first */
    LLVMValueRef low[QN_MAX_RANK], high[QN_MAX_RANK], tiles[QN_MAX_RANK];
    LLVMValueRef units, unit; /* tiles */
    LLVMValueRef apart;       /* blocks of points of each, in the first of two steps; else NULL */
    LLVMTypeRef type;
    thread_place place;
    const span *spans; /* of all loops, by their place */
} walk;

static LLVMValueRef constant(LLVMTypeRef t, int64_t n)
{
    return LLVMConstInt(t, (unsigned long long)n, true);
}

/** ceil(extent / tile), i64 */
static LLVMValueRef tiles_of(lower *g, const walk *w, int n)
{
    int64_t tile = g->grid->block[w->dim[n]], low, high;
    if (qn__is_const(w->low[n], &low) && qn__is_const(w->high[n], &high)) {
        high += qn__grid_reach(g->grid, w->dim[n]);
        return qn__const_i64(g, (high - low) / tile + ((high - low) % tile != 0));
    }
    LLVMValueRef extent = LLVMBuildSub(g->b, w->high[n], w->low[n], "");
    if (tile == 1)
        return extent;
    extent = LLVMBuildAdd(g->b, extent, qn__const_i64(g, tile - 1), "");
    return LLVMBuildUDiv(g->b, extent, qn__const_i64(g, tile), "");
}

/** Blocks of 4096 points of the reduces. */
static int64_t blocks_apart(const lower *g)
{
    return (qn__describe_reduction(g, qn__next_reduce(g->k, g->k->body)).points + BLOCK - 1) /
           BLOCK;
}

/** Counts tiles and units; in 32 bits where their number is known to fit. */
static void count_units(lower *g, walk *w)
{
    int64_t apart = g->grid->is_split && g->step == 0 ? blocks_apart(g) : 1, known = apart, n;
    w->units = qn__const_i64(g, 1);
    for (int i = 0; i < w->n; i++) {
        w->tiles[i] = tiles_of(g, w, i);
        if (!qn__is_const(w->tiles[i], &n) || known > INT32_MAX / (n > 0 ? n : 1))
            known = INT64_MAX;
        else
            known *= n;
        w->units = LLVMBuildMul(g->b, w->units, w->tiles[i], "");
    }
    w->type = known > INT32_MAX ? g->i64 : g->i32;
    w->apart = g->grid->is_split && g->step == 0 ? constant(w->type, apart) : NULL;
    if (known > INT32_MAX)
        return; /* in 32 bits a step of gridDim.x < 2^31 beyond the last unit does not wrap either
                 */
    w->units = constant(g->i32, known / apart);
    for (int i = 0; i < w->n; i++)
        w->tiles[i] = LLVMBuildTrunc(g->b, w->tiles[i], g->i32, "");
}

/** The type of what is counted along dimension number n: i32 where all of it fits, tiles that reach
 * beyond the end too. */
static LLVMTypeRef counter_type(const lower *g, const walk *w, int n)
{
    int64_t low, high, last, tile = g->grid->block[w->dim[n]];
    bool fits = w->type == g->i32 && qn__is_const(w->low[n], &low) &&
                qn__is_const(w->high[n], &high) && low > INT32_MIN / 2 &&
                !__builtin_add_overflow(high, 2 * tile, &last) && last < INT32_MAX / 2;
    return fits ? g->i32 : g->i64;
}

/** Iterations from where threads begin to the end of dimension number n. */
static LLVMValueRef extent_from(lower *g, const walk *w, int n, LLVMTypeRef t)
{
    int64_t low, high, reach = qn__grid_reach(g->grid, w->dim[n]);
    if (qn__is_const(w->low[n], &low) && qn__is_const(w->high[n], &high))
        return constant(t, high - low + reach);
    return LLVMBuildSub(g->b, w->high[n], w->low[n], ""); /* no lead then */
}

/** Notes what code for several iterations at once must know of its place. */
static void note_place(const lower *g, walk *w, int d, LLVMValueRef ahead, LLVMValueRef extent)
{
    for (int n = 0; n < 2; n++)
        if (d == (n ? g->grid->tall_dim : g->grid->wide_dim)) {
            w->place.ahead[n] = ahead;
            w->place.extent[n] = extent;
        }
}

/** The index of this thread in dimension number n (of a team's tile: that of its corner) for the
 * present unit; *ok is anded with "inside the domain". */
static LLVMValueRef thread_index(lower *g, walk *w, int n, LLVMValueRef tile_number,
                                 LLVMValueRef *ok)
{
    static const char *const thread[3] = {"tid.x", "tid.y", "tid.z"};
    int d = w->dim[n];
    bool is_block = g->grid->team == QN_TEAM_BLOCK;
    int64_t tile = g->grid->block[d], each = qn__grid_at_once(g->grid, d), low, known;
    LLVMTypeRef t = counter_type(g, w, n);
    LLVMValueRef ahead =
        LLVMTypeOf(tile_number) == t ? tile_number : LLVMBuildZExt(g->b, tile_number, t, "");
    if (tile != 1)
        ahead = LLVMBuildMul(g->b, ahead, constant(t, tile), "");
    const bool is_tile = g->grid->is_product || g->grid->staged,
               is_corner = (is_tile && d == g->grid->tile_dim) ||
                           ((is_tile || is_block) && d == g->grid->axis[0]);
    for (int a = 0; a < 3 && !is_corner; a++)
        if (g->grid->axis[a] == d) {
            LLVMValueRef first = qn__nvptx_register(g, thread[a], t);
            if (each > 1)
                first = LLVMBuildMul(g->b, first, constant(t, each), "");
            ahead = LLVMBuildAdd(g->b, ahead, first, "");
        }
    LLVMValueRef extent = extent_from(g, w, n, t);
    note_place(g, w, d, ahead, extent);
    if (tile != 1 && !is_corner && !(qn__is_const(extent, &known) && known % tile == 0)) {
        *ok = qn__mask_and(g, *ok, LLVMBuildICmp(g->b, LLVMIntULT, ahead, extent, ""));
    }
    if (!qn__is_const(w->low[n], &low))
        return LLVMBuildAdd(g->b, w->low[n], ahead, "");
    low -= qn__grid_lead(g->grid, d);
    if (low)
        ahead = LLVMBuildAdd(g->b, ahead, constant(t, low), "");
    return t == g->i64 ? ahead
           : low >= 0  ? LLVMBuildZExt(g->b, ahead, g->i64, "")
                       : LLVMBuildSExt(g->b, ahead, g->i64, "");
}

/** Sets the indices of the tiled dimensions for the present unit; the condition under which they
 * are inside, or NULL. */
static LLVMValueRef set_indices(lower *g, walk *w)
{
    LLVMValueRef rest = w->unit, ok = NULL;
    for (int n = w->n - 1; n >= 0; n--) {
        int64_t tiles;
        LLVMValueRef number = rest;
        if (qn__is_const(w->tiles[n], &tiles) && tiles == 1) {
            number = constant(w->type, 0);
        } else if (n > 0) {
            number = LLVMBuildURem(g->b, rest, w->tiles[n], "");
            rest = LLVMBuildUDiv(g->b, rest, w->tiles[n], "");
        }
        qn__set_index(g, w->dim[n], thread_index(g, w, n, number, &ok));
    }
    return ok;
}

static LLVMValueRef as_i64(lower *g, LLVMValueRef v)
{
    return LLVMBuildIntCast2(g->b, v, g->i64, false, "");
}

/** A tile whose reduces all threads share, or a block of its points. */
static void run_block(lower *g, const walk *w, LLVMValueRef tile, LLVMValueRef number)
{
    LLVMValueRef low = g->iv[g->grid->axis[0]], tiles = as_i64(g, w->units);
    if (!g->grid->is_split)
        qn__block_tile(g, low, w->spans);
    else if (g->step == 0)
        qn__block_first(g, low, tiles, as_i64(g, tile), as_i64(g, number));
    else
        qn__block_second(g, low, tiles, as_i64(g, tile), w->spans);
}

static void run_body(lower *g, void *walk_of_units)
{
    qn__thread_body(g, ((const walk *)walk_of_units)->spans);
}

static void run_thread(lower *g, walk *w)
{
    if (g->grid->wide_dim >= 0 && !g->grid->rest_dims)
        qn__wide_unit(g, &w->place, run_body, w);
    else
        run_body(g, w);
}

/** Opens code that some threads do not run, out of which values are hoisted; NULL: all run it. */
static branch begin_guard(lower *g, LLVMValueRef condition)
{
    branch x = qn__begin_branch(g, condition);
    if (condition) {
        g->level[g->depth].is_branch = false;
        g->level[g->depth].may_be_empty = true;
    }
    return x;
}

/** The body with rows that a warp moves, where `is_whole` tells that all of its threads have an
 * iteration; else without. ok: this thread has one; NULL: all have. */
static void run_rows(lower *g, walk *w, LLVMValueRef is_whole, LLVMValueRef ok)
{
    const qn_grid *rows = g->grid;
    qn_grid plain = *rows;
    plain.n_moved = 0;
    plain.moved_loop = 0;
    branch all = qn__begin_choice(g, is_whole, "rows", "some");
    run_thread(g, w);
    qn__begin_other(g, &all);
    g->grid = &plain;
    branch own = begin_guard(g, ok);
    run_thread(g, w);
    qn__end_branch(g, &own, NULL);
    g->grid = rows;
    qn__end_branch(g, &all, NULL);
}

/** Whether the last thread of a warp has an iteration; NULL: every warp is whole. */
static LLVMValueRef is_whole_warp(lower *g)
{
    const int x = g->grid->axis[0];
    if (!qn__last_unless(g, x, WARP_LANES, 1))
        return NULL;
    LLVMValueRef lane = LLVMBuildAnd(g->b, qn__nvptx_register(g, "tid.x", g->i64),
                                     qn__const_i64(g, WARP_LANES - 1), "");
    LLVMValueRef ahead = LLVMBuildSub(g->b, qn__const_i64(g, WARP_LANES - 1), lane, "");
    return qn__is_before(g, x, LLVMBuildAdd(g->b, g->iv[x], ahead, ""), g->end[x]);
}

/** A unit: the body, if this thread has an iteration in it. */
static void run_unit(lower *g, LLVMValueRef unit, void *arg)
{
    walk *w = arg;
    const qn_grid *p = g->grid;
    LLVMValueRef number = unit, is_whole;
    if (w->apart) {
        number = LLVMBuildUDiv(g->b, unit, w->units, "");
        unit = LLVMBuildURem(g->b, unit, w->units, "");
    }
    w->unit = unit;
    LLVMValueRef ok = set_indices(g, w);
    if (p->is_product) {
        qn__product_tile(g, g->iv[p->axis[0]], g->iv[p->tile_dim], w->spans);
    } else if (p->team == QN_TEAM_BLOCK) {
        run_block(g, w, unit, number);
    } else if (p->staged) {
        qn__stage_tile(g, g->iv[p->axis[0]], g->iv[p->tile_dim], w->spans);
    } else if (p->moved_loop && (is_whole = is_whole_warp(g))) {
        run_rows(g, w, is_whole, ok);
    } else {
        qn__move_records(g, false);
        branch own = begin_guard(g, ok);
        run_thread(g, w);
        qn__end_branch(g, &own, NULL);
        qn__move_records(g, true);
    }
}

void qn__nvptx_stride(lower *g, LLVMValueRef first, LLVMValueRef end, LLVMValueRef step,
                      void (*body)(lower *g, LLVMValueRef index, void *arg), void *arg)
{
    LLVMBasicBlockRef entry = qn__new_block(g, "some"), head = qn__new_block(g, "stride"),
                      done = qn__new_block(g, "done");
    carry indices = {.of = NULL};
    LLVMValueRef index = first;
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, first, end, ""), entry, done);
    qn__level_open(g, false, false, true);
    LLVMPositionBuilderAtEnd(g->b, entry);
    LLVMBuildBr(g->b, head);
    qn__level_open(g, false, false, false);
    LLVMPositionBuilderAtEnd(g->b, head);
    qn__carry(g, &indices, &index, 1);
    body(g, index, arg);
    index = LLVMBuildAdd(g->b, index, step, "");
    qn__carry_close(&indices, entry, LLVMGetInsertBlock(g->b));
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, index, end, ""), head, done);
    qn__carry_end(&indices);
    qn__level_close(g);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/** A loop of a thread, over dimension number `at` of the plan's order. */
typedef struct thread_steps {
    steps steps;
    const span *spans; /* of all dimensions, by their place */
    int at;
} thread_steps;

static void thread_loops(lower *g, const span *spans, int at);

static void inside_loop(lower *g, const steps *of)
{
    const thread_steps *x = (const thread_steps *)of;
    thread_loops(g, x->spans, x->at + 1);
}

/** The loops of a thread over the dimensions that are no tiles, from place `at` on, and the body.
 * Of sequential dimensions a launch runs one index. */
static void thread_loops(lower *g, const span *spans, int at)
{
    const qn_grid *p = g->grid;
    while (at < p->n_loops &&
           (p->block[p->order[at]] > 0 || qn__dim_kind(g->k, p->order[at]) == QN_DIM_SEQUENTIAL))
        at++;
    if (at == p->n_loops) {
        qn__wide_begin(g);
        qn__lower_body(g);
        return;
    }
    const thread_steps x = {.steps = {.d = p->order[at], .all = spans[at], .inside = inside_loop},
                            .spans = spans,
                            .at = at};
    qn__nest_over(g, &x.steps, spans[at], 1, false);
}

void qn__thread_body(lower *g, const span *spans)
{
    if (g->grid->rest_dims)
        qn__rest_of_unit(g);
    else
        thread_loops(g, spans, 0);
}

/** The loop over units of work and in it the body, for each thread that has an iteration, with the
 * indices of the tiled dimensions set. */
static void run_units(lower *g, const span *spans)
{
    walk w = {.spans = spans};
    for (int at = 0; at < g->grid->n_loops; at++)
        if (g->grid->block[g->grid->order[at]] > 0) {
            w.dim[w.n] = g->grid->order[at];
            w.low[w.n] = spans[at].low;
            w.high[w.n++] = spans[at].high;
        }
    count_units(g, &w);
    g->is_team = g->grid->team == QN_TEAM_WARP;
    qn__kept_open(g);
    LLVMValueRef iterations = LLVMBuildZExtOrBitCast(g->b, w.units, g->i64, "");
    for (int n = 0; n < w.n; n++)
        iterations = LLVMBuildMul(g->b, iterations, qn__const_i64(g, g->grid->block[w.dim[n]]), "");
    qn__private_open(g, iterations);
    LLVMValueRef first = qn__nvptx_register(g, "ctaid.x", w.type),
                 step = qn__nvptx_register(g, "nctaid.x", w.type);
    LLVMValueRef units = w.apart ? LLVMBuildMul(g->b, w.units, w.apart, "") : w.units;
    if (qn__nvptx_has_block_for_each(g->k, g->f, g->grid)) {
        branch some = begin_guard(g, LLVMBuildICmp(g->b, LLVMIntULT, first, units, ""));
        run_unit(g, first, &w);
        qn__end_branch(g, &some, NULL);
    } else {
        qn__nvptx_stride(g, first, units, step, run_unit, &w);
    }
    qn__private_close(g);
}

void qn__nvptx_run(lower *g, const span *spans)
{
    bool is_grid = g->grid->team == QN_TEAM_GRID;
    for (int at = 0; at < g->grid->n_loops; at++)
        if (is_grid || qn__dim_kind(g->k, g->grid->order[at]) ==
                           QN_DIM_SEQUENTIAL) /* parallel dimensions of a grid have one index, a
                                                 launch runs one of others */
            qn__set_index(g, g->grid->order[at], spans[at].low);
    if (!is_grid)
        run_units(g, spans);
    else if (g->step == 0)
        qn__team_first(g);
    else
        qn__team_second(g);
}
