/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c: the loop over the lanes: whole steps of width x unroll, then what is left: one smaller
 * step, vectors under a mask, or one by one. With non-temporal stores it begins at a cache line.
 */
#include "jit/lower/nest.h"

#include <string.h>

/* ---------------------------------------------------------------- masks of the lanes */

/** The mask of vector u, of its first lanes, for all that will be jammed inside. */
static void set_mask(lower *g, int u, LLVMValueRef mask, LLVMValueRef count)
{
    g->first_lanes.mask = mask;
    g->first_lanes.count = count;
    for (int j = 0; j < g->jam_max; j++)
        g->mask[u * g->jam_max + j] = g->tail_mask[u * g->jam_max + j] = mask;
}

/** A mask of the first n lanes, each of them a constant. */
static LLVMValueRef first_lanes(const lower *g, int64_t n)
{
    LLVMValueRef lane[64];
    for (int l = 0; l < g->width; l++)
        lane[l] = LLVMConstInt(g->i1, l < n, false);
    return g->width == 1 ? lane[0] : LLVMConstVector(lane, (unsigned)g->width);
}

/** A mask of the first n lanes; n is from 1 to the width. Of a constant n the lanes are constants,
 * which a cast of bits is not. */
static LLVMValueRef lanes_below(lower *g, LLVMValueRef n)
{
    int64_t known;
    if (qn__is_const(n, &known))
        return first_lanes(g, known);
    unsigned bits = g->width < 8 ? 8 : (unsigned)g->width;
    LLVMValueRef off = LLVMBuildSub(g->b, qn__const_i64(g, 64), n, "");
    LLVMValueRef word = LLVMBuildLShr(g->b, LLVMConstAllOnes(g->i64), off, "");
    word = LLVMBuildTrunc(g->b, word, qn__int_type(g, bits), "");
    LLVMValueRef mask = LLVMBuildBitCast(g->b, word, LLVMVectorType(g->i1, bits), "");
    return g->width >= 8
               ? mask
               : qn__shuffle(g, mask, NULL, (const int[8]){0, 1, 2, 3, 4, 5, 6, 7}, g->width);
}

/* ---------------------------------------------------------------- what is left of them */

/** The first n lanes of one vector at `low`. */
static void masked_vector(lower *g, const steps *of, LLVMValueRef low, LLVMValueRef n)
{
    qn__set_index(g, of->d, low);
    set_mask(g, 0, lanes_below(g, n), n);
    of->inside(g, of);
    qn__clear_masks(g);
}

/** All of a range, which has at most `most` indices, in vectors under a mask. */
static void masked_vectors(lower *g, const steps *of, span s, int64_t most)
{
    loop l;
    if (qn__is_known_empty(s))
        return;
    LLVMValueRef n = qn__pieces_open(g, &l, s, g->width);
    qn__loop_most(&l, most);
    masked_vector(g, of, l.index, n);
    qn__loop_close(g, &l);
}

/** Vectors under a mask for [low, high), which is shorter than `step`. In loops they are of half
 * the width: half a register seldom crosses a cache line, a whole one nearly always does, and on
 * average no more vectors are needed. */
static void masked_rest(lower *g, const steps *of, span s, int64_t step)
{
    loop l;
    g->width = of->is_inner && g->width >= 8 ? g->width / 2 : g->width;
    if (step > g->width) {
        masked_vectors(g, of, s, step);
    } else if (!qn__is_known_empty(s)) {
        LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
        qn__once_open(g, &l, LLVMBuildICmp(g->b, LLVMIntNE, n, qn__const_i64(g, 0), ""));
        masked_vector(g, of, s.low, n);
        qn__loop_close(g, &l);
    }
}

/** What is left, shorter than `step`, inside other loops: whole vectors, then one under a mask that
 * is made once for all rows, or one by one. */
static void rest_of_rows(lower *g, const steps *of, span s, int64_t step)
{
    place here;
    const bool is_masked = g->block->tail == QN_TAIL_MASK;
    const int width = g->width >= 8 ? g->width / 2 : g->width;
    LLVMValueRef mask = NULL, count = NULL;
    g->width = width;
    qn__seek(g, g->lanes_level, &here); /* where the bounds of the lanes are known */
    LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
    LLVMValueRef whole = LLVMBuildAnd(g->b, n, qn__const_i64(g, -(int64_t)width), "");
    LLVMValueRef end = LLVMBuildAdd(g->b, s.low, whole, "");
    if (is_masked) {
        LLVMTypeRef small = width <= 16 ? g->i32 : g->i8;
        count = LLVMBuildSub(g->b, s.high, end, "");
        LLVMValueRef left = LLVMBuildTrunc(g->b, count, small, "");
        mask = LLVMBuildICmp(g->b, LLVMIntULT, qn__lanes(g, small, 1),
                             qn__splat(g, left, g->lanes_level), "");
    }
    qn__unseek(g, &here);
    qn__nest_some(g, of, (span){s.low, end}, width, true, step);
    if (is_masked) {
        set_mask(g, 0, mask, count);
        qn__nest_once(g, of, end, s.high, end);
        qn__clear_masks(g);
    } else {
        g->width = 1;
        qn__nest_some(g, of, (span){end, s.high}, 1, true, width);
    }
}

/** `n` iterations from `low` on in one vector of `width` >= n lanes; those beyond are masked. */
static void known_vector(lower *g, const steps *of, int64_t low, int width, int64_t n)
{
    g->width = width;
    if (n < width)
        set_mask(g, 0, first_lanes(g, n), qn__const_i64(g, n));
    LLVMValueRef first = qn__const_i64(g, low);
    qn__nest_once(g, of, first, qn__const_i64(g, low + n), first);
    qn__clear_masks(g);
}

/** What is left when its number is known: whole vectors, then narrower ones. A wide vector under a
 * mask would touch two cache lines at each access; without AVX-512 masked stores are slow, so there
 * the rest is cut into powers of two. */
static void known_rest(lower *g, const steps *of, int64_t low, int64_t high)
{
    int width = g->block->width;
    int64_t whole = (high - low) / width * width;
    if (whole)
        qn__nest_over(g, of, (span){qn__const_i64(g, low), qn__const_i64(g, low + whole)}, width,
                      true);
    low += whole;
    while (low < high) {
        int64_t n = high - low, fits = 1;
        while (fits * 2 <= n)
            fits *= 2;
        bool is_whole = fits == n || g->block->tail != QN_TAIL_MASK;
        int64_t taken = is_whole ? fits : n;
        known_vector(g, of, low, (int)(is_whole ? fits : 2 * fits), taken);
        low += taken;
    }
}

/** The rest, whose number is known, in one step of fewer vectors, the last of which is under a
 * mask; a rest of at most half a vector in one of fewer lanes. (Buffers are laid out for whole
 * ones.) */
static void rest_tile(lower *g, const steps *of, LLVMValueRef middle, LLVMValueRef high,
                      int64_t rest)
{
    while (g->schedule->n_buffers == 0 && g->width > QN_LEAST_WIDTH && g->width >= 2 * rest)
        g->width /= 2;
    int64_t width = g->width, over = rest % width;
    g->unroll = (int)((rest + width - 1) / width);
    if (over)
        set_mask(g, g->unroll - 1, first_lanes(g, over), qn__const_i64(g, over));
    g->rest_lanes = (int)over;
    if (rest)
        qn__nest_once(g, of, middle, high, middle);
    g->rest_lanes = 0;
    qn__clear_masks(g);
}

/* ---------------------------------------------------------------- all of them */

/** Bodies above this size are emitted only once. */
enum { LARGE_BODY = 256 };

void qn__lanes_rest(lower *g, const steps *of, span s, int64_t step)
{
    g->unroll = 1;
    if (g->block->tail == QN_TAIL_MASK) {
        g->width = g->block->width;
        masked_rest(g, of, s, step);
    } else {
        g->width = 1;
        qn__nest_some(g, of, s, 1, true, step);
    }
}

void qn__lanes_whole(lower *g, const steps *of, span s, bool guarded, int streaming)
{
    g->width = g->block->width;
    g->unroll = g->block->unroll;
    g->streaming = streaming;
    qn__nest_over(g, of, s, (int64_t)g->width * g->unroll, guarded);
    g->streaming = STREAM_NONE;
}

/** Whole steps with non-temporal stores: of all streams if they agree, else of the first. */
static void lanes_streamed(lower *g, const steps *of, span s, LLVMValueRef agree)
{
    if (!agree) {
        qn__lanes_whole(g, of, s, true, STREAM_ALL);
        return;
    }
    branch x = qn__begin_choice(g, agree, "agree", "differ");
    qn__lanes_whole(g, of, s, true, STREAM_ALL);
    qn__begin_other(g, &x);
    qn__lanes_whole(g, of, s, true, STREAM_ANCHOR);
    qn__end_branch(g, &x, NULL);
}

/** The lanes' loop if the first stream is to begin at a cache line; false if there is none. */
static bool loop_streams(lower *g, const steps *of)
{
    span s = of->all;
    int64_t step = (int64_t)g->block->width * g->block->unroll;
    g->width = g->block->width;
    of->first(g, of);
    LLVMValueRef begin = g->block->streams ? qn__emit_stream_begin(g, s.low, s.high) : NULL;
    if (!begin)
        return false;
    LLVMValueRef agree = qn__streams_agree(g),
                 middle = qn__whole_steps(g, (span){begin, s.high}, step);
    qn__lanes_rest(g, of, (span){s.low, begin}, 64);
    lanes_streamed(g, of, (span){begin, middle}, agree);
    qn__lanes_rest(g, of, (span){middle, s.high}, step);
    g->width = g->unroll = 1;
    return true;
}

/** Whether whole steps of the lanes run in strips, sums in memory. */
static bool has_strips(const lower *g)
{
    return g->block && g->block->strip.length > 0;
}

/** A body so large that compiling it twice costs more than masks do. */
static bool is_emitted_once(const lower *g)
{
    return g->block->tail == QN_TAIL_MASK && g->block->unroll == 1 && g->jam_max == 1 &&
           !g->block->streams && !has_strips(g) && !g->filled &&
           g->k->n_insts - g->k->body > LARGE_BODY;
}

/** Whether the lanes' loop may have no whole step: a row that is known to have one needs no test.
 */
static bool may_have_no_step(const lower *g, const steps *of, int64_t step)
{
    if (of->may_be_empty)
        return true;
    if (!of->may_be_short && qn__is_at_least(g->f, of->d, step))
        return false;
    return g->block->tail != QN_TAIL_NONE || !qn__is_exact(g->f, of->d);
}

void qn__nest_lanes(lower *g, const steps *of)
{
    span s = of->all;
    int64_t step = (int64_t)g->block->width * g->block->unroll, low, high;
    bool has_rest = g->block->tail != QN_TAIL_NONE;
    if (loop_streams(g, of))
        return;
    if (has_rest && is_emitted_once(g)) {
        g->width = g->block->width;
        masked_vectors(g, of, s, qn__is_exact(g->f, of->d) ? qn__trips(g->f, of->d) : INT64_MAX);
        g->width = 1;
        return;
    }
    place here;
    qn__seek(g, g->lanes_level,
             &here); /* where the bounds of the lanes are known: from the beginning, or in a tile */
    LLVMValueRef middle = has_rest ? qn__whole_steps(g, s, step) : s.high;
    qn__unseek(g, &here);
    bool is_known = qn__is_const(middle, &low) && qn__is_const(s.high, &high);
    bool is_small = g->k->n_insts - g->k->body <= MOST_TWICE;
    if (has_strips(g))
        qn__lower_strips(g, s.low, middle);
    else
        qn__lanes_whole(g, of, (span){s.low, middle}, may_have_no_step(g, of, step), STREAM_NONE);
    g->width = g->block->width;
    if (g->block->tail == QN_TAIL_NARROWER) {
        rest_tile(g, of, middle, s.high, qn__known_rest_of(g, g->block->lane_dim, step));
        g->unroll = g->width = 1;
        return;
    }
    g->unroll = 1;
    if (has_rest && is_known && is_small)
        known_rest(g, of, low, high);
    else if (g->depth > 0 && is_small &&
             (g->block->tail == QN_TAIL_MASK ||
              (g->block->tail == QN_TAIL_SCALAR && g->width >= 8)))
        rest_of_rows(g, of, (span){middle, s.high}, step);
    else if (has_rest)
        qn__lanes_rest(g, of, (span){middle, s.high}, step);
    g->width = 1;
}
