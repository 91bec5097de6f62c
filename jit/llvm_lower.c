/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_lower.c: the entry function and the loop nest over the domain. See llvm_lower.h for how a body is emitted.
 *
 * On x86 (llvm_nvptx.c says what differs in PTX):
 *
 *   entry:  bounds of the dimensions, argument slots
 *   loops:  plan->order, outermost first; a jammed dimension runs in steps of `jam`, and what is left overlaps the last
 *           whole step, or is a smaller step where its number is known, or runs one by one
 *   lanes:  whole steps of width x unroll, then what is left: one smaller step, vectors under a mask, or one by one
 */
#include "jit/llvm_team.h"
#include "jit/llvm_wide.h"
#include "jit/plan.h"

#include <string.h>

/* Compile time grows faster than the body: above this the body is emitted again with less unrolling. */
enum { MOST_INSTRUCTIONS = 4000 };

/* ---------------------------------------------------------------- bounds of the domain */

LLVMValueRef qn__range_word(lower *g, int n)
{
    LLVMValueRef at = qn__const_i64(g, g->first_range + n);
    LLVMValueRef v = LLVMBuildLoad2(g->b, g->i64, LLVMBuildGEP2(g->b, g->i64, g->range, &at, 1, ""), "");
    LLVMSetAlignment(v, 8);
    return v;
}

/** Whole range of each dimension: exact facts, or the prologue's values. */
static void compute_bounds(lower *g)
{
    for (int d = 0; d < g->k->n_dims; d++) {
        const uint32_t *arg = qn__args(g->k, g->k->dim[d]);
        const qn_fact *b = &g->f->begin[d], *e = &g->f->end[d];
        g->begin[d] = b->kind == QN_FACT_EXACT ? qn__const_i64(g, b->value) : qn__scalar(g, arg[0], 0);
        g->end[d] = e->kind == QN_FACT_EXACT ? qn__const_i64(g, e->value) : qn__scalar(g, arg[1], 0);
    }
    for (int d = 0; d < g->k->n_dims; d++) /* such a dimension is no loop in reduces */
        if (g->k->inst[g->k->dim[d]].sub == QN_DIM_REDUCTION && qn__has_single_index(g, d))
            g->iv[d] = g->begin[d];
}

/** The part of a dimension that this call runs. */
typedef struct span {
    LLVMValueRef low, high;
} span;

static span span_of(lower *g, int d, int *n_sequential)
{
    span s = {g->begin[d], g->end[d]};
    if (g->k->inst[g->k->dim[d]].sub == QN_DIM_SEQUENTIAL) {
        int n = 2 + 2 * (*n_sequential)++;
        s = (span){qn__range_word(g, n), qn__range_word(g, n + 1)};
    } else if (d == g->p->split_dim) {
        s = (span){qn__range_word(g, 0), qn__range_word(g, 1)};
    }
    return s;
}

/* ---------------------------------------------------------------- the loop nest */

static void set_index(lower *g, int d, LLVMValueRef index)
{
    g->iv[d] = index;
    g->iv_level[d] = g->depth;
}

static void emit_loops(lower *g, const span *spans, int at);

static bool is_known_empty(const span *s)
{
    int64_t low, high;
    return qn__is_const(s->low, &low) && qn__is_const(s->high, &high) && high <= low;
}

/** [low, high) in steps; high - low is a multiple of step. The body is what comes next in the nest. */
static void loop_over(lower *g, const span *spans, int at, span s, int64_t step, bool guarded)
{
    int d = g->p->order[at];
    bool is_sequential = g->k->inst[g->k->dim[d]].sub == QN_DIM_SEQUENTIAL;
    loop l;
    if (is_known_empty(&s))
        return;
    qn__loop_open(g, &l, s.low, s.high, step, guarded, is_sequential, 0, NULL, NULL);
    set_index(g, d, l.index);
    emit_loops(g, spans, at + 1);
    qn__loop_close(g, &l, NULL, NULL);
}

/** high - (high - low) mod step */
static LLVMValueRef whole_steps(lower *g, span s, int64_t step)
{
    LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
    LLVMValueRef left = LLVMBuildURem(g->b, n, qn__const_i64(g, step), "");
    return LLVMBuildSub(g->b, s.high, left, "");
}

/** One step at `first`, if middle != high; no branch where that is known. */
static void loop_once(lower *g, const span *spans, int at, LLVMValueRef middle, LLVMValueRef high, LLVMValueRef first)
{
    int64_t from, to;
    loop l;
    if (qn__is_const(middle, &from) && qn__is_const(high, &to)) {
        if (from != to)
            loop_over(g, spans, at, (span){first, LLVMBuildAdd(g->b, first, qn__const_i64(g, 1), "")}, 1, false);
        return;
    }
    qn__once_open(g, &l, LLVMBuildICmp(g->b, LLVMIntNE, middle, high, ""));
    set_index(g, g->p->order[at], first);
    emit_loops(g, spans, at + 1);
    qn__loop_close(g, &l, NULL, NULL);
}

/** Steps that cover [low, high), which is longer than one; the last one begins so early that it ends at high. */
static void loop_overlapping(lower *g, const span *spans, int at, span s, int64_t step)
{
    LLVMValueRef last = LLVMBuildSub(g->b, s.high, qn__const_i64(g, step), "");
    LLVMValueRef up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, step - 1), ""), pair[2];
    LLVMValueRef end = whole_steps(g, (span){s.low, up}, step);
    loop l;
    qn__loop_open(g, &l, s.low, end, step, true, false, 0, NULL, NULL);
    pair[0] = l.index;
    pair[1] = last;
    set_index(g, g->p->order[at], qn__call(g, "llvm.smin", &g->i64, 1, pair, 2));
    emit_loops(g, spans, at + 1);
    qn__loop_close(g, &l, NULL, NULL);
}

/** Iterations of a dimension beyond the last multiple of `step`, -1 if not known. A chunk of a split dimension has as many
 *  or none. */
static int64_t known_rest_of(const lower *g, int d, int64_t step)
{
    int64_t b, e;
    return qn__is_const(g->begin[d], &b) && qn__is_const(g->end[d], &e) ? (e - b) % step : -1;
}

/** Whole blocks of staged loads (llvm_transpose.c). */
static void blocks_staged(lower *g, const span *spans, int at, span s)
{
    int64_t block = g->p->transpose;
    loop l;
    if (is_known_empty(&s))
        return;
    qn__loop_open(g, &l, s.low, s.high, block, true, false, 0, NULL, NULL);
    set_index(g, g->p->jam_dim, l.index);
    qn__stage_fill(g, l.index);
    loop_over(g, spans, at, (span){l.index, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, block), "")}, g->jam, false);
    qn__stage_end(g);
    qn__loop_close(g, &l, NULL, NULL);
}

static void loop_jammed(lower *g, const span *spans, int at)
{
    span s = spans[at];
    int jam = g->p->jam;
    int64_t rest = known_rest_of(g, g->p->jam_dim, jam);
    g->jam = jam;
    if (g->p->transpose > jam && g->width > 1) {
        LLVMValueRef staged = whole_steps(g, s, g->p->transpose);
        blocks_staged(g, spans, at, (span){s.low, staged});
        s.low = staged;
    }
    if (g->p->jam_rest == QN_REMAINDER_OVERLAP && rest != 0) {
        loop_overlapping(g, spans, at, s, jam);
    } else {
        LLVMValueRef middle = rest == 0 ? s.high : whole_steps(g, s, jam);
        loop_over(g, spans, at, (span){s.low, middle}, jam, true);
        g->jam = rest > 0 ? (int)rest : 1;
        if (rest > 0)
            loop_once(g, spans, at, middle, s.high, middle);
        else if (rest < 0)
            loop_over(g, spans, at, (span){middle, s.high}, 1, true);
    }
    g->jam = 1;
}

static void clear_masks(lower *g)
{
    memset(g->mask, 0, sizeof g->mask);
    memset(g->tail_mask, 0, sizeof g->tail_mask);
}

/** The mask of vector u, for all that will be jammed inside. */
static void set_mask(lower *g, int u, LLVMValueRef mask)
{
    for (int j = 0; j < g->jam_max; j++)
        g->mask[u * g->jam_max + j] = g->tail_mask[u * g->jam_max + j] = mask;
}

/** A mask of the first n lanes; n is from 1 to the width. */
static LLVMValueRef lanes_below(lower *g, LLVMValueRef n)
{
    unsigned bits = g->width < 8 ? 8 : (unsigned)g->width;
    LLVMValueRef off = LLVMBuildSub(g->b, qn__const_i64(g, 64), n, "");
    LLVMValueRef word = LLVMBuildLShr(g->b, LLVMConstAllOnes(g->i64), off, ""), lane[8];
    word = LLVMBuildTrunc(g->b, word, LLVMIntTypeInContext(g->context, bits), "");
    LLVMValueRef mask = LLVMBuildBitCast(g->b, word, LLVMVectorType(g->i1, bits), "");
    for (int l = 0; l < g->width && l < 8; l++)
        lane[l] = LLVMConstInt(g->i32, (unsigned)l, false);
    return g->width >= 8 ? mask
                         : LLVMBuildShuffleVector(g->b, mask, LLVMConstNull(LLVMTypeOf(mask)),
                                                  LLVMConstVector(lane, (unsigned)g->width), "");
}

/** The first n lanes of one vector at `low`. */
static void masked_vector(lower *g, const span *spans, int at, LLVMValueRef low, LLVMValueRef n)
{
    set_index(g, g->p->lane_dim, low);
    set_mask(g, 0, lanes_below(g, n));
    emit_loops(g, spans, at + 1);
    clear_masks(g);
}

/** Vectors under a mask for [low, high), which is shorter than `step`. In loops they are of half the width: half a register
 *  seldom crosses a cache line, a whole one nearly always does, and on average no more vectors are needed. */
static void masked_rest(lower *g, const span *spans, int at, span s, int64_t step)
{
    loop l;
    g->width = at > 0 && g->width >= 8 ? g->width / 2 : g->width;
    if (is_known_empty(&s))
        return;
    if (step <= g->width) {
        LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
        qn__once_open(g, &l, LLVMBuildICmp(g->b, LLVMIntNE, n, qn__const_i64(g, 0), ""));
        masked_vector(g, spans, at, s.low, n);
    } else {
        LLVMValueRef up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, g->width - 1), "");
        LLVMValueRef end = whole_steps(g, (span){s.low, up}, g->width);
        qn__loop_open(g, &l, s.low, end, g->width, true, false, 0, NULL, NULL);
        LLVMValueRef left = LLVMBuildSub(g->b, s.high, l.index, "");
        masked_vector(g, spans, at, l.index, qn__umin(g, left, qn__const_i64(g, g->width)));
    }
    qn__loop_close(g, &l, NULL, NULL);
}

/** All of [low, high) in vectors under a mask: a body that is emitted once. */
static void masked_all(lower *g, const span *spans, int at, span s)
{
    loop l;
    LLVMValueRef width = qn__const_i64(g, g->width), up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, g->width - 1), "");
    LLVMValueRef end = whole_steps(g, (span){s.low, up}, g->width);
    if (is_known_empty(&(span){s.low, end}))
        return;
    qn__loop_open(g, &l, s.low, end, g->width, true, false, 0, NULL, NULL);
    masked_vector(g, spans, at, l.index, qn__umin(g, LLVMBuildSub(g->b, s.high, l.index, ""), width));
    qn__loop_close(g, &l, NULL, NULL);
}

/** What is left, inside other loops: whole vectors, then one under a mask that is made once for all rows. */
static void masked_rest_of_rows(lower *g, const span *spans, int at, span s)
{
    place here;
    int width = g->width >= 8 ? g->width / 2 : g->width;
    LLVMTypeRef small = width <= 16 ? g->i32 : g->i8;
    g->width = width;
    qn__seek(g, 0, &here); /* where the bounds of the lanes are known */
    LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
    LLVMValueRef whole = LLVMBuildAnd(g->b, n, qn__const_i64(g, -(int64_t)width), "");
    LLVMValueRef end = LLVMBuildAdd(g->b, s.low, whole, "");
    LLVMValueRef left = LLVMBuildTrunc(g->b, LLVMBuildSub(g->b, s.high, end, ""), small, "");
    LLVMValueRef mask = LLVMBuildICmp(g->b, LLVMIntULT, qn__lanes(g, small, 1), qn__splat(g, left, 0), "");
    qn__unseek(g, &here);
    loop_over(g, spans, at, (span){s.low, end}, width, true);
    set_mask(g, 0, mask);
    loop_once(g, spans, at, end, s.high, end);
    clear_masks(g);
}

/** A mask of the first n lanes. */
static LLVMValueRef first_lanes(const lower *g, int64_t n)
{
    LLVMValueRef lane[64];
    for (int l = 0; l < g->width; l++)
        lane[l] = LLVMConstInt(g->i1, l < n, false);
    return g->width == 1 ? lane[0] : LLVMConstVector(lane, (unsigned)g->width);
}

/** `n` iterations from `low` on in one vector of `width` >= n lanes; those beyond are masked. */
static void known_vector(lower *g, const span *spans, int at, int64_t low, int width, int64_t n)
{
    g->width = width;
    if (n < width)
        set_mask(g, 0, first_lanes(g, n));
    loop_over(g, spans, at, (span){qn__const_i64(g, low), qn__const_i64(g, low + width)}, width, false);
    clear_masks(g);
}

/** What is left when its number is known: whole vectors, then narrower ones. A wide vector under a mask would touch two
 *  cache lines at each access; without AVX-512 masked stores are slow, so there the rest is cut into powers of two. */
static void known_rest(lower *g, const span *spans, int at, int64_t low, int64_t high)
{
    int width = g->p->width;
    int64_t whole = (high - low) / width * width;
    if (whole)
        loop_over(g, spans, at, (span){qn__const_i64(g, low), qn__const_i64(g, low + whole)}, width, true);
    low += whole;
    while (low < high) {
        int64_t n = high - low, fits = 1;
        while (fits * 2 <= n)
            fits *= 2;
        bool is_whole = fits == n || g->p->remainder != QN_REMAINDER_MASK;
        int64_t taken = is_whole ? fits : n;
        known_vector(g, spans, at, low, (int)(is_whole ? fits : 2 * fits), taken);
        low += taken;
    }
}

/** The rest, whose number is known, in one step of fewer vectors, the last of which is under a mask. */
static void rest_tile(lower *g, const span *spans, int at, LLVMValueRef middle, LLVMValueRef high, int64_t rest)
{
    int64_t width = g->width, over = rest % width;
    g->unroll = (int)((rest + width - 1) / width);
    if (over)
        set_mask(g, g->unroll - 1, first_lanes(g, over));
    g->rest_lanes = (int)over;
    if (rest)
        loop_once(g, spans, at, middle, high, middle);
    g->rest_lanes = 0;
    clear_masks(g);
}

/** Bodies above this size are emitted once more, not several times. */
enum { SMALL_BODY = 64 };
/** Bodies above this size are emitted only once. */
enum { LARGE_BODY = 512 };

/** Iterations of a part of the lanes shorter than `step`: under masks or one by one. */
static void lanes_apart(lower *g, const span *spans, int at, span s, int64_t step)
{
    g->unroll = 1;
    if (g->p->remainder == QN_REMAINDER_MASK) {
        g->width = g->p->width;
        masked_rest(g, spans, at, s, step);
    } else {
        g->width = 1;
        loop_over(g, spans, at, s, 1, true);
    }
}

/** Whole steps. */
static void lanes_together(lower *g, const span *spans, int at, span s, bool guarded, int streaming)
{
    g->width = g->p->width;
    g->unroll = g->p->unroll;
    g->streaming = streaming;
    loop_over(g, spans, at, s, (int64_t)g->width * g->unroll, guarded);
    g->streaming = STREAM_NONE;
}

/** Whole steps with non-temporal stores: of all streams if they agree, else of the first. */
static void lanes_streamed(lower *g, const span *spans, int at, span s, LLVMValueRef agree)
{
    if (!agree) {
        lanes_together(g, spans, at, s, true, STREAM_ALL);
        return;
    }
    LLVMBasicBlockRef block[2] = {qn__new_block(g, "agree"), qn__new_block(g, "differ")}, join = qn__new_block(g, "join");
    LLVMBuildCondBr(g->b, agree, block[0], block[1]);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    for (int n = 0; n < 2; n++) {
        LLVMPositionBuilderAtEnd(g->b, from);
        qn__level_open(g, true, false, false);
        LLVMPositionBuilderAtEnd(g->b, block[n]);
        lanes_together(g, spans, at, s, true, n == 0 ? STREAM_ALL : STREAM_ANCHOR);
        LLVMBuildBr(g->b, join);
        qn__level_close(g);
    }
    LLVMPositionBuilderAtEnd(g->b, join);
}

/** The lanes' loop if the first stream is to begin at a cache line; false if there is none. */
static bool loop_streams(lower *g, const span *spans, int at)
{
    span s = spans[at];
    int64_t step = (int64_t)g->p->width * g->p->unroll;
    g->width = g->p->width;
    for (int n = at; n < g->p->n_loops; n++)
        set_index(g, g->p->order[n], spans[n].low);
    LLVMValueRef begin = g->p->streams ? qn__stream_begin(g, s.low, s.high) : NULL;
    if (!begin)
        return false;
    LLVMValueRef agree = qn__streams_agree(g), middle = whole_steps(g, (span){begin, s.high}, step);
    lanes_apart(g, spans, at, (span){s.low, begin}, 64);
    lanes_streamed(g, spans, at, (span){begin, middle}, agree);
    lanes_apart(g, spans, at, (span){middle, s.high}, step);
    g->width = g->unroll = 1;
    return true;
}

/** A body so large that compiling it twice costs more than masks do. */
static bool is_emitted_once(const lower *g)
{
    return g->p->remainder == QN_REMAINDER_MASK && g->p->unroll == 1 && g->jam_max == 1 && !g->p->streams &&
           g->k->n_insts - g->k->body > LARGE_BODY;
}

static void loop_lanes(lower *g, const span *spans, int at)
{
    span s = spans[at];
    int64_t step = (int64_t)g->p->width * g->p->unroll, low, high;
    bool has_rest = g->p->remainder != QN_REMAINDER_NONE;
    if (loop_streams(g, spans, at))
        return;
    if (has_rest && is_emitted_once(g)) {
        g->width = g->p->width;
        masked_all(g, spans, at, s);
        g->width = 1;
        return;
    }
    place here;
    qn__seek(g, 0, &here); /* the bounds of the lanes are known from the beginning */
    LLVMValueRef middle = has_rest ? whole_steps(g, s, step) : s.high;
    qn__unseek(g, &here);
    bool is_known = qn__is_const(middle, &low) && qn__is_const(s.high, &high);
    bool is_small = g->k->n_insts - g->k->body <= SMALL_BODY;
    lanes_together(g, spans, at, (span){s.low, middle}, has_rest, STREAM_NONE);
    g->width = g->p->width;
    if (g->p->remainder == QN_REMAINDER_TILE) {
        rest_tile(g, spans, at, middle, s.high, known_rest_of(g, g->p->lane_dim, step));
        g->unroll = g->width = 1;
        return;
    }
    g->unroll = 1;
    if (has_rest && is_known && is_small)
        known_rest(g, spans, at, low, high);
    else if (g->p->remainder == QN_REMAINDER_MASK && g->depth > 0 && is_small)
        masked_rest_of_rows(g, spans, at, (span){middle, s.high});
    else if (has_rest)
        lanes_apart(g, spans, at, (span){middle, s.high}, step);
    g->width = 1;
}

/** Tiles of the jammed dimension, the innermost, around the lanes: the lanes sweep each tile. */
static void loop_tiles(lower *g, const span *spans, int at)
{
    int last = g->p->n_loops - 1;
    int64_t tile = g->p->tile[g->p->jam_dim];
    span inner[QN_MAX_RANK], s = spans[last];
    loop l;
    memcpy(inner, spans, sizeof inner);
    LLVMValueRef up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, tile - 1), ""), pair[2];
    LLVMValueRef end = whole_steps(g, (span){s.low, up}, tile);
    if (is_known_empty(&(span){s.low, end}))
        return;
    qn__loop_open(g, &l, s.low, end, tile, true, false, 0, NULL, NULL);
    pair[0] = s.high;
    pair[1] = LLVMBuildAdd(g->b, l.index, qn__const_i64(g, tile), "");
    inner[last] = (span){l.index, qn__call(g, "llvm.smin", &g->i64, 1, pair, 2)};
    loop_lanes(g, inner, at);
    qn__loop_close(g, &l, NULL, NULL);
}

static void emit_nest(lower *g, const span *spans, int at);

/** What is inside loop at - 1. */
static void emit_loops(lower *g, const span *spans, int at)
{
    bool packs = g->p->pack && at > 0 && g->p->order[at - 1] == g->p->lane_dim;
    if (packs)
        qn__pack_open(g);
    emit_nest(g, spans, at);
    if (packs)
        qn__pack_close(g);
}

static void emit_nest(lower *g, const span *spans, int at)
{
    bool is_sequential =
        at < g->p->n_loops && g->k->inst[g->k->dim[g->p->order[at]]].sub == QN_DIM_SEQUENTIAL;
    if (at == g->p->n_loops) {
        qn__wide_begin(g);
        qn__lower_region(g, g->k->body, g->k->n_insts);
    } else if (g->p->is_gpu && (is_sequential || qn__nvptx_is_tiled(g, g->p->order[at]))) {
        if (is_sequential) /* a launch runs one index */
            set_index(g, g->p->order[at], spans[at].low);
        emit_loops(g, spans, at + 1);
    } else if (g->p->order[at] == g->p->lane_dim) {
        bool has_tiles = g->p->transpose && g->p->tile[g->p->jam_dim];
        (has_tiles ? loop_tiles : loop_lanes)(g, spans, at);
    } else if (g->p->order[at] == g->p->jam_dim) {
        loop_jammed(g, spans, at);
    } else {
        loop_over(g, spans, at, spans[at], 1, false);
    }
}

/* ---------------------------------------------------------------- the function */

static void set_types(lower *g)
{
    g->i1 = LLVMInt1TypeInContext(g->context);
    g->i8 = LLVMInt8TypeInContext(g->context);
    g->i16 = LLVMInt16TypeInContext(g->context);
    g->i32 = LLVMInt32TypeInContext(g->context);
    g->i64 = LLVMInt64TypeInContext(g->context);
    g->f32 = LLVMFloatTypeInContext(g->context);
    g->f64 = LLVMDoubleTypeInContext(g->context);
    g->ptr = LLVMPointerTypeInContext(g->context, g->p->is_gpu ? 1 : 0);
}

static void open_function(lower *g, const char *symbol)
{
    LLVMTypeRef params[3] = {g->ptr, g->ptr, g->ptr};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), params, 3, false);
    g->function = LLVMAddFunction(g->module, symbol, type);
    g->slots = LLVMGetParam(g->function, 0);
    g->range = LLVMGetParam(g->function, 1);
    g->fault = LLVMGetParam(g->function, 2);
    LLVMPositionBuilderAtEnd(g->b, qn__new_block(g, "entry"));
}

static void emit_body(lower *g, void *spans)
{
    emit_loops(g, spans, 0);
}

/** Everything on a GPU: units of work, and loops where a dimension is not divided between threads. */
static void emit_units(lower *g, span *spans)
{
    LLVMValueRef low[QN_MAX_RANK], high[QN_MAX_RANK];
    for (int at = 0; at < g->p->n_loops; at++) {
        low[at] = spans[at].low;
        high[at] = spans[at].high;
    }
    qn__nvptx_units(g, low, high, emit_body, spans);
}

static void emit_step(lower *g, span *spans, int step)
{
    for (int at = 0; at < g->p->n_loops; at++)
        if (g->k->inst[g->k->dim[g->p->order[at]]].sub == QN_DIM_SEQUENTIAL) /* a launch runs one index */
            set_index(g, g->p->order[at], spans[at].low);
    if (g->p->team != QN_TEAM_GRID)
        emit_units(g, spans);
    else if (step == 0)
        qn__team_first(g);
    else
        qn__team_second(g);
}

static bool make_arrays(lower *g)
{
    uint32_t n = g->k->n_insts;
    g->value = qn__zalloc(n, sizeof *g->value);
    g->site = qn__zalloc(n, sizeof *g->site);
    g->covered = qn__zalloc(g->k->n_accesses + 1, sizeof *g->covered);
    LLVMValueRef *parts = qn__zalloc((size_t)n * MOST_PARTS, sizeof *parts);
    if (!g->value || !g->site || !g->covered || !parts || !qn__analyse(g->k, g->f, g->p->lane_dim, g->p->jam_dim, &g->a)) {
        qn__free(parts);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        g->value[i].part = parts + (size_t)i * MOST_PARTS;
    for (uint32_t s = 0; s < g->k->n_accesses; s++)
        g->site[g->k->access[s].inst] = s;
    g->written_too = qn__written_too(g->k, g->f, &g->a);
    memset(g->memo_head, 0xff, sizeof g->memo_head);
    return true;
}

static void free_arrays(lower *g)
{
    if (g->value)
        qn__free(g->value[0].part);
    qn__free(g->value);
    qn__free(g->site);
    qn__free(g->covered);
    qn__free(g->memo);
    qn__analysis_release(&g->a);
}

/** Lanes of a gather or scatter: most types and machines have no instruction for it, and take one or more a lane. */
static int n_lane_accesses(LLVMValueRef i)
{
    if (!LLVMIsACallInst(i))
        return 0;
    for (unsigned at = 0; at < LLVMGetNumArgOperands(i); at++) {
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, at));
        if (LLVMGetTypeKind(type) == LLVMVectorTypeKind &&
            LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMPointerTypeKind)
            return (int)LLVMGetVectorSize(type);
    }
    return 0;
}

static int count_instructions(LLVMValueRef function)
{
    int n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            n += 1 + n_lane_accesses(i);
    return n;
}

static int count_sequential(const qn_kernel *k)
{
    int n = 0;
    for (int d = 0; d < k->n_dims; d++)
        n += k->inst[k->dim[d]].sub == QN_DIM_SEQUENTIAL;
    return n;
}

/** Emits the function under one plan, of a GPU the kernel of one step; its number of instructions, or -1. */
static int lower_once(LLVMModuleRef module, const qn_kernel *k, const qn_facts *f, const qn_plan *p,
                      const char *symbol, int step, int32_t *block_bytes)
{
    lower g = {.module = module, .context = LLVMGetModuleContext(module), .k = k, .f = f, .p = p,
               .width = 1, .unroll = 1, .jam = 1, .jam_max = p->jam, .step = step};
    span spans[QN_MAX_RANK];
    int n_sequential = 0, n = -1;
    if (make_arrays(&g)) {
        g.b = LLVMCreateBuilderInContext(g.context);
        set_types(&g);
        if (p->is_gpu)
            qn__nvptx_open(&g, symbol, step);
        else
            open_function(&g, symbol);
        compute_bounds(&g);
        if (p->pack)
            g.copy = LLVMBuildIntToPtr(g.b, qn__range_word(&g, 2 + 2 * count_sequential(k)), g.ptr, "");
        bool is_empty = false;
        for (int at = 0; at < p->n_loops; at++) {
            spans[at] = span_of(&g, p->order[at], &n_sequential);
            is_empty |= is_known_empty(&(span){g.begin[p->order[at]], g.end[p->order[at]]});
        }
        if (!is_empty && p->is_gpu)
            emit_step(&g, spans, step);
        else if (!is_empty && p->n_shared_reduces)
            qn__lower_points(&g);
        else if (!is_empty)
            emit_loops(&g, spans, 0);
        qn__stream_fence(&g);
        LLVMBuildRetVoid(g.b);
        n = g.failed ? -1 : count_instructions(g.function);
        LLVMDisposeBuilder(g.b);
    }
    free_arrays(&g);
    *block_bytes = g.shared_bytes > *block_bytes ? g.shared_bytes : *block_bytes;
    return n;
}

/** A plan that emits less, or false if there is none. */
static bool reduce_plan(const qn_kernel *k, qn_plan *p)
{
    if (p->is_gpu)
        return false; /* its plan is bounded */
    bool over_reduction = p->lane_dim >= 0 && k->inst[k->dim[p->lane_dim]].sub == QN_DIM_REDUCTION;
    if (p->jam > 1)
        p->jam = 1;
    else if (p->unroll > 1 && !over_reduction)
        p->unroll = 1;
    else
        return false;
    if (p->jam == 1) {
        p->jam_dim = -1;
        p->transpose = 0;
    }
    return true;
}

qn_status qn__llvm_lower(LLVMModuleRef module, const qn_kernel *k, const qn_facts *f, const qn_plan *p,
                         const char *symbol, qn_blob_info *info, qn_error *err)
{
    qn_plan plan = *p;
    int32_t block_bytes = 0; /* of shared memory */
    int n;
    while ((n = lower_once(module, k, f, &plan, symbol, 0, &block_bytes)) > MOST_INSTRUCTIONS && reduce_plan(k, &plan))
        LLVMDeleteFunction(LLVMGetNamedFunction(module, symbol));
    if (n >= 0 && (plan.team == QN_TEAM_GRID || plan.is_split))
        n = lower_once(module, k, f, &plan, QN_GPU_ENTRY "_2", 1, &block_bytes);
    if (n < 0)
        return qn__fail(err, QN_ERR_CODEGEN, "qn__llvm_lower: kernel could not be lowered (out of memory or too deep)");
    if (p->is_gpu)
        qn__nvptx_info(k, f, p, block_bytes, &info->gpu);
    info->split_dim = plan.split_dim;
    info->granule = plan.granule;
    info->n_shared_reduces = plan.n_shared_reduces;
    info->split_merged = plan.split_dim >= 0 ? plan.merged[plan.split_dim] : 0;
    info->n_sequential = count_sequential(k);
    info->scratch_bytes = plan.scratch_bytes;
    info->chunk = qn__plan_chunk(k, &plan);
    info->chunks_per_thread = qn__plan_chunks_per_thread(&plan);
    return QN_OK;
}
