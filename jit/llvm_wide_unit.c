/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_wide_unit.c: the iterations of one thread of a GPU that computes several at once: plan->width consecutive ones along
 * the lanes, those that may be outside the domain under masks, and plan->jam rows, all of them at once or, at the end, one
 * after the other. Threads begin plan->lead iterations before the domain, so that accesses are aligned.
 */
#include "jit/llvm_wide.h"

#include <string.h>

typedef struct unit {
    const thread_place *at;
    void (*body)(lower *g, void *arg);
    void *arg;
} unit;

typedef void (*emitter)(lower *g, const unit *w);

/** Values that depend on the indices belong to the present level, also where these are constants. */
static void claim_indices(lower *g, int *levels)
{
    const int dims[2] = {g->p->lane_dim, g->p->jam_dim};
    for (int n = 0; n < 2; n++)
        if (dims[n] >= 0) {
            levels[n] = g->iv_level[dims[n]];
            g->iv_level[dims[n]] = g->depth;
        }
}

static void return_indices(lower *g, const int *levels)
{
    const int dims[2] = {g->p->lane_dim, g->p->jam_dim};
    for (int n = 0; n < 2; n++)
        if (dims[n] >= 0)
            g->iv_level[dims[n]] = levels[n];
}

/** One of two, each at a level of its own. */
static void either(lower *g, const unit *w, LLVMValueRef condition, emitter yes, emitter no)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), join = qn__new_block(g, "join"), block[2];
    emitter emit[2] = {yes, no};
    block[0] = qn__new_block(g, "yes");
    block[1] = qn__new_block(g, "no");
    LLVMBuildCondBr(g->b, condition, block[0], block[1]);
    for (int n = 0; n < 2; n++) {
        LLVMPositionBuilderAtEnd(g->b, from);
        qn__level_open(g, true, false, false);
        LLVMPositionBuilderAtEnd(g->b, block[n]);
        int levels[2] = {0, 0};
        claim_indices(g, levels);
        emit[n](g, w);
        return_indices(g, levels);
        LLVMBuildBr(g->b, join);
        qn__level_close(g);
    }
    LLVMPositionBuilderAtEnd(g->b, join);
}

static LLVMValueRef number_like(LLVMValueRef v, int64_t n)
{
    return LLVMConstInt(LLVMTypeOf(v), (unsigned long long)n, true);
}

/** extent - ahead >= n; NULL if that is always so because all threads have whole multiples of n. */
static LLVMValueRef has_left(lower *g, LLVMValueRef ahead, LLVMValueRef extent, int64_t n)
{
    int64_t known;
    if (n <= 1 || (qn__is_const(extent, &known) && known % n == 0))
        return NULL;
    LLVMValueRef left = LLVMBuildSub(g->b, extent, ahead, "");
    return LLVMBuildICmp(g->b, LLVMIntUGE, left, number_like(left, n), "");
}

/* ---------------------------------------------------------------- rows */

static void rows_together(lower *g, const unit *w)
{
    g->jam = g->p->jam;
    w->body(g, w->arg);
    g->jam = 1;
}

static void rows_apart(lower *g, const unit *w)
{
    int d = g->p->jam_dim, at = g->iv_level[d];
    LLVMValueRef first = g->iv[d], n = LLVMBuildSub(g->b, w->at->extent[1], w->at->ahead[1], "");
    if (LLVMTypeOf(n) != g->i64)
        n = LLVMBuildZExt(g->b, n, g->i64, "");
    loop l;
    qn__loop_open(g, &l, qn__const_i64(g, 0), n, 1, false, false, 0, NULL, NULL);
    g->iv[d] = LLVMBuildAdd(g->b, first, l.index, "");
    g->iv_level[d] = g->depth;
    w->body(g, w->arg);
    qn__loop_close(g, &l, NULL, NULL);
    g->iv[d] = first;
    g->iv_level[d] = at;
}

static void run_rows(lower *g, const unit *w)
{
    LLVMValueRef all = g->p->jam > 1 ? has_left(g, w->at->ahead[1], w->at->extent[1], g->p->jam) : NULL;
    if (g->p->jam == 1)
        w->body(g, w->arg);
    else if (!all)
        rows_together(g, w);
    else
        either(g, w, all, rows_together, rows_apart);
}

/* ---------------------------------------------------------------- all of it */

/** Masks of the parts of a thread that begins `ahead` iterations from where the first does. Of one with iterations in the
 *  domain those parts have none that are inside wherever it stands. */
static void set_masks(lower *g, LLVMValueRef ahead, LLVMValueRef extent)
{
    int64_t known = 0, width = g->p->width, lead = g->p->lead;
    bool is_known = qn__is_const(extent, &known);
    LLVMValueRef left = LLVMBuildSub(g->b, extent, ahead, "");
    g->edge[0] = lead ? LLVMBuildICmp(g->b, LLVMIntNE, ahead, number_like(ahead, 0), "") : NULL;
    g->edge[1] = has_left(g, ahead, extent, width);
    for (int u = 0; u < width; u++) {
        bool at_begin = u < lead, at_end = g->edge[1] && (is_known ? u >= known % width : u > 0);
        LLVMValueRef mask = at_begin ? g->edge[0] : NULL;
        if (at_end && is_known)
            mask = qn__mask_and(g, mask, g->edge[1]);
        else if (at_end)
            mask = qn__mask_and(g, mask, LLVMBuildICmp(g->b, LLVMIntUGT, left, number_like(left, u), ""));
        for (int j = 0; j < g->jam_max; j++) {
            int p = u * g->jam_max + j;
            g->mask[p] = g->tail_mask[p] = mask;
            g->edges[p] = (uint8_t)((at_begin ? EDGE_BEGIN : 0) | (at_end ? EDGE_END : 0));
        }
    }
}

void qn__wide_unit(lower *g, const thread_place *at, void (*body)(lower *g, void *arg), void *arg)
{
    const unit w = {at, body, arg};
    g->unroll = g->p->width;
    set_masks(g, at->ahead[0], at->extent[0]);
    run_rows(g, &w);
    g->unroll = 1;
    memset(g->mask, 0, sizeof g->mask);
    memset(g->tail_mask, 0, sizeof g->tail_mask);
    memset(g->edges, 0, sizeof g->edges);
}
