/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_unit.c: the iterations of one thread of a GPU that computes several at once: grid->wide
 * consecutive ones along the lanes, those that may be outside the domain under masks, and
 * grid->tall rows, all of them at once or, at the end, one after the other. Where some accesses run
 * along the rows (grid->is_crossed), rows have masks too. Threads begin grid->wide_lead iterations
 * and tall_lead rows before the domain, so that accesses are aligned.
 */
#include "jit/lower/wide.h"
#include "jit/schedule/grid.h"

#include <string.h>

typedef struct unit {
    const thread_place *at;
    void (*body)(lower *g, void *arg);
    void *arg;
} unit;

typedef void (*emitter)(lower *g, const unit *w);

/** Emits what depends on the indices at the present level, also where these are constants. */
static void emit_claimed(lower *g, const unit *w, emitter emit)
{
    const int dims[2] = {g->grid->wide_dim, g->grid->tall_dim};
    int levels[2] = {0, 0};
    for (int n = 0; n < 2; n++)
        if (dims[n] >= 0) {
            levels[n] = g->iv_level[dims[n]];
            g->iv_level[dims[n]] = g->depth;
        }
    emit(g, w);
    for (int n = 0; n < 2; n++)
        if (dims[n] >= 0)
            g->iv_level[dims[n]] = levels[n];
}

/** One of two, each at a level of its own. */
static void either(lower *g, const unit *w, LLVMValueRef condition, emitter yes, emitter no)
{
    branch x = qn__begin_choice(g, condition, "yes", "no");
    emit_claimed(g, w, yes);
    qn__begin_other(g, &x);
    emit_claimed(g, w, no);
    qn__end_branch(g, &x, NULL);
}

/** extent - ahead >= n along dimension d; NULL if that is always so because all threads have whole
 * multiples of n. */
static LLVMValueRef has_left(lower *g, int d, LLVMValueRef ahead, LLVMValueRef extent, int64_t n)
{
    int64_t known;
    bool is_whole = !g->grid->wide_lead && !g->grid->tall_lead && !g->grid->skew &&
                    !qn__is_exact(g->f, d) && qn__is_multiple(g->f, d, n);
    if (n <= 1 || is_whole || (qn__is_const(extent, &known) && known % n == 0))
        return NULL;
    LLVMValueRef left = LLVMBuildSub(g->b, extent, ahead, "");
    return LLVMBuildICmp(g->b, LLVMIntUGE, left, qn__int(LLVMTypeOf(left), n), "");
}

/* ---------------------------------------------------------------- rows */

static void rows_together(lower *g, const unit *w)
{
    qn__set_jam(g, g->grid->tall);
    w->body(g, w->arg);
    qn__set_jam(g, 1);
}

static void rows_apart(lower *g, const unit *w)
{
    int d = g->grid->tall_dim, at = g->iv_level[d];
    LLVMValueRef first = g->iv[d], n = LLVMBuildSub(g->b, w->at->extent[1], w->at->ahead[1], "");
    if (LLVMTypeOf(n) != g->i64)
        n = LLVMBuildZExt(g->b, n, g->i64, "");
    loop l;
    qn__loop_open(g, &l, qn__up_to(g, n), 1, 0);
    qn__set_index(g, d, LLVMBuildAdd(g->b, first, l.index, ""));
    w->body(g, w->arg);
    qn__loop_close(g, &l);
    g->iv[d] = first;
    g->iv_level[d] = at;
}

static void run_rows(lower *g, const unit *w)
{
    LLVMValueRef all = g->grid->tall > 1 ? has_left(g, g->grid->tall_dim, w->at->ahead[1],
                                                   w->at->extent[1], g->grid->tall)
                                        : NULL;
    if (g->grid->tall == 1)
        w->body(g, w->arg);
    else if (!all)
        rows_together(g, w);
    else
        either(g, w, all, rows_together, rows_apart);
}

/* ---------------------------------------------------------------- edges */

/** Parts of one dimension that may be outside the domain. */
typedef struct edges {
    LLVMValueRef begin, end;         /* the conditions under which all are inside; NULL: always */
    LLVMValueRef mask[MOST_PARTS];   /* of each part; NULL: always inside */
    bool at_begin[MOST_PARTS], at_end[MOST_PARTS];
} edges;

/** Of a thread whose `n` parts begin `ahead` iterations from where the first thread's do, which is
 * `lead` before the domain. Of a thread with iterations in the domain those parts have no mask that
 * are inside wherever it stands. */
static void find_edges(lower *g, int d, LLVMValueRef ahead, LLVMValueRef extent, edges *e)
{
    const int lead = (int)qn__grid_lead(g->grid, d), n = (int)qn__grid_at_once(g->grid, d);
    int64_t known = 0;
    bool is_known = qn__is_const(extent, &known);
    LLVMValueRef left = LLVMBuildSub(g->b, extent, ahead, "");
    memset(e, 0, sizeof *e);
    e->begin =
        lead ? LLVMBuildICmp(g->b, LLVMIntNE, ahead, qn__int(LLVMTypeOf(ahead), 0), "") : NULL;
    e->end = has_left(g, d, ahead, extent, n);
    for (int u = 0; u < n; u++) {
        e->at_begin[u] = u < lead;
        e->at_end[u] = e->end && (is_known ? u >= known % n : u > 0);
        if (e->at_begin[u])
            e->mask[u] = e->begin;
        if (e->at_end[u] && is_known)
            e->mask[u] = qn__mask_and(g, e->mask[u], e->end);
        else if (e->at_end[u])
            e->mask[u] = qn__mask_and(
                g, e->mask[u],
                LLVMBuildICmp(g->b, LLVMIntUGT, left, qn__int(LLVMTypeOf(left), u), ""));
    }
}

static void set_masks(lower *g, const unit *w)
{
    edges x, y = {.begin = NULL};
    find_edges(g, g->grid->wide_dim, w->at->ahead[0], w->at->extent[0], &x);
    if (g->grid->is_crossed)
        find_edges(g, g->grid->tall_dim, w->at->ahead[1], w->at->extent[1], &y);
    g->edge[0] = x.begin;
    g->edge[1] = x.end;
    g->edge[2] = y.begin;
    g->edge[3] = y.end;
    memcpy(g->side[0], x.mask, sizeof x.mask);
    memcpy(g->side[1], y.mask, sizeof y.mask);
    for (int u = 0; u < g->grid->wide; u++)
        for (int j = 0; j < g->jam_max; j++) {
            int p = u * g->jam_max + j;
            g->mask[p] = g->tail_mask[p] = qn__mask_and(g, x.mask[u], y.mask[j]);
            g->edges[p] =
                (uint8_t)(x.at_begin[u] | x.at_end[u] << 1 | y.at_begin[j] << 2 | y.at_end[j] << 3);
        }
}

/* ---------------------------------------------------------------- skewed rows */

/** Iterations from where part (0, j) of the first thread stands to the begin of the domain. */
static int64_t lead_of_row(const lower *g, int j)
{
    return g->grid->wide_lead + (int64_t)g->grid->skew * j;
}

/** Iterations of the lanes from the first thread on that are in the domain or before it. */
static int64_t iterations_to_end(const lower *g, const unit *w)
{
    int64_t all = 0;
    (void)qn__is_const(w->at->extent[0], &all); /* the plan skews known domains only */
    return all - qn__grid_reach(g->grid, g->grid->wide_dim);
}

/** A thread some of whose parts may be outside: each has a mask of its own. */
static void skewed_edges(lower *g, const unit *w)
{
    LLVMValueRef ahead = w->at->ahead[0];
    int64_t trips = iterations_to_end(g, w);
    for (int u = 0; u < g->grid->wide; u++)
        for (int j = 0; j < g->jam_max; j++) {
            int p = u * g->jam_max + j;
            LLVMValueRef from_begin =
                LLVMBuildAdd(g->b, ahead, qn__int(LLVMTypeOf(ahead), u - lead_of_row(g, j)), "");
            g->mask[p] = g->tail_mask[p] =
                LLVMBuildICmp(g->b, LLVMIntULT, from_begin, qn__int(LLVMTypeOf(ahead), trips), "");
        }
    run_rows(g, w);
}

static void skewed_inside(lower *g, const unit *w)
{
    qn__clear_masks(g);
    run_rows(g, w);
}

/** Threads whose rows are all inside are most: their code has no masks. */
static void run_skewed(lower *g, const unit *w)
{
    int64_t first = lead_of_row(g, 0), last = lead_of_row(g, g->jam_max - 1);
    int64_t low = first > last ? first : last, least = first < last ? first : last;
    LLVMValueRef ahead = w->at->ahead[0],
                 from = LLVMBuildSub(g->b, ahead, qn__int(LLVMTypeOf(ahead), low), "");
    int64_t room = iterations_to_end(g, w) + least - low - g->grid->wide;
    LLVMValueRef inside =
        room < 0 ? LLVMConstInt(g->i1, 0, false)
                 : LLVMBuildICmp(g->b, LLVMIntULE, from, qn__int(LLVMTypeOf(ahead), room), "");
    either(g, w, inside, skewed_inside, skewed_edges);
}

void qn__wide_unit(lower *g, const thread_place *at, void (*body)(lower *g, void *arg), void *arg)
{
    const unit w = {at, body, arg};
    g->unroll = g->grid->wide;
    if (!g->grid->skew)
        set_masks(g, &w);
    if (g->grid->skew)
        run_skewed(g, &w);
    else if (g->grid->is_crossed)
        rows_together(g, &w);
    else
        run_rows(g, &w);
    g->unroll = 1;
    qn__clear_masks(g);
}
