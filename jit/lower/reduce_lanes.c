/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_lanes.c: reductions whose lanes run over the last reduction dimension: the 64 partials of
 * the striped order are the lanes of the vectors of one step. Integers are reduced so in any order;
 * of products of 16 bits two that stand side by side are added at once. Trips of a `for` that are
 * lanes run in the same steps (lower/trip_lanes.c).
 */
#include "jit/lower/hooks.h"
#include "jit/lower/trip_lanes.h"
#include "jit/schedule/plan.h"

#include <string.h>

outside qn__enter_lanes(lower *g)
{
    outside o = {.width = g->width, .unroll = g->unroll};
    memcpy(o.mask, g->mask, sizeof o.mask);
    memcpy(o.tail_mask, g->tail_mask, sizeof o.tail_mask);
    g->width = g->block->width;
    g->unroll = g->block->unroll;
    FOR_PARTS (g, p) {
        LLVMValueRef m = o.mask[p % g->jam_max];
        g->mask[p] = m ? qn__splat(g, m, g->depth) : NULL;
        g->tail_mask[p] = NULL;
    }
    return o;
}

void qn__leave_lanes(lower *g, const outside *o)
{
    g->width = o->width;
    g->unroll = o->unroll;
    memcpy(g->mask, o->mask, sizeof o->mask);
    memcpy(g->tail_mask, o->tail_mask, sizeof o->tail_mask);
}

/** Whether points are products whose sum is taken of pairs: one instruction multiplies 16 bits and
 * adds what is side by side. */
static bool adds_pairs(const lower *g, const reduction *r)
{
    bool has_width = g->width >= 8 && 2 * g->width <= g->f->target->vector_bytes;
    return has_width && g->hooks->add_pairs && qn__paired_product(&g->a, r->inst);
}

/** What part p of the points adds, in half as many lanes. */
static LLVMValueRef pairs_of(lower *g, const reduction *r, int p)
{
    const uint32_t *arg = qn__args(g->k, qn__paired_product(&g->a, r->inst));
    LLVMValueRef v[2] = {qn__vector_bits(g, arg[0], p, 16), qn__vector_bits(g, arg[1], p, 16)};
    if (g->tail_mask[p])
        v[0] = LLVMBuildSelect(g->b, g->tail_mask[p], v[0], LLVMConstNull(LLVMTypeOf(v[0])), "");
    return g->hooks->add_pairs(g, v);
}

/** The type of accumulators. */
static LLVMTypeRef sums_type(const lower *g, const reduction *r)
{
    return adds_pairs(g, r) ? LLVMVectorType(g->i32, (unsigned)g->width / 2)
                            : qn__lane_type(g, r->type);
}

/** Adds part p of the point of one reduce to its accumulator. */
static void add_part(lower *g, const reduction *r, int p, LLVMValueRef *acc)
{
    addend a;
    a.factor[0] = NULL;
    if (adds_pairs(g, r)) {
        *acc = LLVMBuildAdd(g->b, *acc, pairs_of(g, r, p), "");
        return;
    }
    qn__take_point(g, r, p, true, &a, 0);
    LLVMValueRef sum = qn__add_point(g, r, *acc, &a, 0);
    *acc = g->tail_mask[p] ? LLVMBuildSelect(g->b, g->tail_mask[p], sum, *acc, "") : sum;
}

/** Whether what runs in the lanes is a loop of the body. */
static bool are_trips(const lower *g, const reduction *r)
{
    return g->k->inst[r->inst].op == QN_I_FOR;
}

void qn__keep_first(lower *g, LLVMValueRef n)
{
    LLVMTypeRef small = g->i16;
    n = qn__splat(g, LLVMBuildTrunc(g->b, n, small, ""), g->depth);
    FOR_PARTS (g, p) {
        LLVMValueRef first =
            LLVMConstInt(small, (unsigned long long)(p / g->jam_max * g->width), false);
        LLVMValueRef lane =
            LLVMBuildAdd(g->b, qn__lanes(g, small, 1), qn__const_splat(g, first), "");
        g->tail_mask[p] = LLVMBuildICmp(g->b, LLVMIntULT, lane, n, "");
        g->mask[p] = qn__mask_and(g, g->mask[p], g->tail_mask[p]);
    }
}

/** One step of width x unroll points; acc[m][p] of reduce m. With `left` (points left, i64) the
 * lanes beyond are masked. The points may be trips of a `for`, which may combine nothing. */
static void lane_step(lower *g, const reduction *r, int n_reduces, LLVMValueRef left, sums *acc)
{
    LLVMValueRef outer[MOST_PARTS];
    memcpy(outer, g->mask, sizeof outer);
    if (left)
        qn__keep_first(g, left);
    if (are_trips(g, r))
        qn__lower_trips_of_step(g, r, n_reduces, acc);
    for (int m = 0; m < n_reduces && !are_trips(g, r); m++) {
        const qn_inst *x = &g->k->inst[r[m].inst];
        qn__lower_region(g, x->region[0], x->region[2]);
        FOR_PARTS(g, p)
            add_part(g, &r[m], p, &acc[m][p]);
    }
    memset(g->tail_mask, 0, sizeof g->tail_mask);
    memcpy(g->mask, outer, sizeof outer);
}

/** Accumulators of all reduces one behind the other, into `flat` or out of it; their number. */
static int pack(const lower *g, int n_reduces, sums *acc, LLVMValueRef *flat, bool in)
{
    int n = 0;
    for (int m = 0; m < n_reduces; m++)
        FOR_PARTS (g, p) {
            LLVMValueRef *to = in ? &flat[n] : &acc[m][p];
            *to = in ? acc[m][p] : flat[n];
            n++;
        }
    return n;
}

/** Opens a loop's carried values, which are the accumulators of all parts, and closes the loop. */
static void carry_parts(lower *g, loop *l, int n_reduces, sums *acc, LLVMValueRef *flat)
{
    qn__loop_carry(g, l, flat, pack(g, n_reduces, acc, flat, true));
    pack(g, n_reduces, acc, flat, false);
}

static void close_parts(lower *g, loop *l, int n_reduces, sums *acc, LLVMValueRef *flat)
{
    pack(g, n_reduces, acc, flat, true);
    qn__loop_close(g, l);
    pack(g, n_reduces, acc, flat, false);
}

void qn__lane_range(lower *g, const reduction *r, int n_reduces, span s, bool is_whole, sums *acc)
{
    int d = g->block->lane_dim;
    int64_t step = (int64_t)g->width * g->unroll, known;
    const int how = LOOP_MAY_BE_EMPTY | (are_trips(g, r) ? LOOP_IS_SEQUENTIAL : 0);
    LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
    LLVMValueRef left = LLVMBuildAnd(g->b, n, qn__const_i64(g, step - 1), "");
    LLVMValueRef whole = is_whole ? s.high : LLVMBuildSub(g->b, s.high, left, "");
    LLVMValueRef carried[MOST_PARTS];
    int64_t first, end;
    loop l;
    if (qn__is_const(s.low, &first) && qn__is_const(whole, &end) && end - first <= 2 * step) {
        for (; first < end; first += step) {
            qn__once_open(g, &l, NULL);
            qn__set_index(g, d, qn__const_i64(g, first));
            lane_step(g, r, n_reduces, NULL, acc);
            qn__loop_close(g, &l);
        }
    } else if (!qn__is_known_empty((span){s.low, whole})) {
        qn__loop_open(g, &l, (span){s.low, whole}, step, how);
        carry_parts(g, &l, n_reduces, acc, carried);
        qn__set_index(g, d, l.index);
        lane_step(g, r, n_reduces, NULL, acc);
        close_parts(g, &l, n_reduces, acc, carried);
    }
    if (is_whole || (qn__is_const(left, &known) && known == 0))
        return;
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, left, qn__const_i64(g, 0), "");
    some = LLVMBuildZExt(g->b, some, g->i64, "");
    qn__loop_open(g, &l, qn__up_to(g, some), 1, how);
    carry_parts(g, &l, n_reduces, acc, carried);
    qn__set_index(g, d, whole);
    lane_step(g, r, n_reduces, left, acc);
    close_parts(g, &l, n_reduces, acc, carried);
}

static LLVMValueRef half_of(lower *g, LLVMValueRef v, int first, int n)
{
    int lane[64];
    for (int m = 0; m < n; m++)
        lane[m] = first + m;
    return qn__shuffle(g, v, NULL, lane, n);
}

LLVMValueRef qn__across_lanes(lower *g, const reduction *r, LLVMValueRef *acc, int j)
{
    LLVMValueRef v[MOST_PARTS];
    int n = g->unroll;
    for (int u = 0; u < n; u++)
        v[u] = acc[u * g->jam_max + j];
    for (; n > 1; n /= 2)
        for (int u = 0; u < n / 2; u++)
            v[u] = qn__combine(g, r, v[u], v[u + n / 2]);
    int half = (int)LLVMGetVectorSize(LLVMTypeOf(v[0])) / 2;
    for (; half > 1; half /= 2)
        v[0] = qn__combine(g, r, half_of(g, v[0], 0, half), half_of(g, v[0], half, half));
    if (half == 1) /* of two lanes: no vector of one, which would be scalars */
        v[0] = qn__combine(g, r, v[0], half_of(g, v[0], 1, 2));
    return LLVMBuildExtractElement(g->b, v[0], LLVMConstInt(g->i32, 0, false), "");
}

/** Points, at most a block for floats, to one scalar for each accumulator. is_whole: they are whole
 * steps. */
static void lane_block(lower *g, const reduction *r, int n_reduces, span s, bool is_whole,
                       sums *out)
{
    outside o = qn__enter_lanes(g);
    sums acc[MOST_JOINED];
    for (int m = 0; m < n_reduces; m++)
        FOR_PARTS(g, p)
            acc[m][p] = qn__constant_like(sums_type(g, &r[m]), r[m].identity);
    qn__lane_range(g, r, n_reduces, s, is_whole, acc);
    for (int m = 0; m < n_reduces; m++)
        for (int n = 0; n < r[m].n; n++)
            out[m][n] = qn__across_lanes(g, &r[m], acc[m], r[m].part[n] % g->jam_max);
    qn__leave_lanes(g, &o);
}

static bool is_float(const reduction *r)
{
    return qn__dtype_class(r->type) == QN_CLASS_F;
}

/** One row: all its points in lanes, or the last of them one by one. */
static void lane_row(lower *g, const reduction *r, int n_reduces, sums *acc)
{
    int d = r->dim[r->n_dims - 1];
    span s = qn__points_of(g, r, d);
    LLVMValueRef end = s.high;
    bool is_whole = qn__has_scalar_rest(g->k, g->f, r->inst);
    sums inner[MOST_JOINED];
    if (is_whole) {
        LLVMValueRef step = qn__const_i64(g, (int64_t)g->block->width * g->block->unroll - 1);
        end = LLVMBuildAnd(g->b, LLVMBuildSub(g->b, s.high, s.low, ""), step, "");
        end = LLVMBuildSub(g->b, s.high, end, "");
    }
    lane_block(g, r, n_reduces, (span){s.low, end}, is_whole, inner);
    for (int m = 0; m < n_reduces; m++) {
        for (int n = 0; n < r[m].n; n++)
            acc[m][n] =
                is_float(&r[m]) ? inner[m][n] : qn__combine(g, &r[m], acc[m][n], inner[m][n]);
        if (is_whole)
            qn__fold_run(g, &r[m], d, (span){end, s.high}, LOOP_MAY_BE_EMPTY, acc[m]);
    }
}

/** The accumulators of rows one behind the other, into `flat` or out of it; their number. */
static int pack_rows(const reduction *r, int n_reduces, sums *acc, LLVMValueRef *flat, bool in)
{
    int n = 0;
    for (int m = 0; m < n_reduces; n += r[m++].n)
        memcpy(in ? flat + n : acc[m], in ? acc[m] : flat + n, (size_t)r[m].n * sizeof *flat);
    return n;
}

/** Integers: outer reduction dimensions are loops, each row's result is folded. Floats have one
 * row, of a block. */
static void lane_rows(lower *g, const reduction *r, int n_reduces, int at, sums *acc)
{
    LLVMValueRef carried[MOST_PARTS];
    loop l;
    if (at == r->n_dims - 1) {
        lane_row(g, r, n_reduces, acc);
        return;
    }
    qn__loop_points(g, &l, r, r->dim[at]);
    qn__loop_carry(g, &l, carried, pack_rows(r, n_reduces, acc, carried, true));
    pack_rows(r, n_reduces, acc, carried, false);
    lane_rows(g, r, n_reduces, at + 1, acc);
    pack_rows(r, n_reduces, acc, carried, true);
    qn__loop_close(g, &l);
    pack_rows(r, n_reduces, acc, carried, false);
}

/** Floats: blocks of 4096, each in 64 lanes; block results go through stripes of their own. */
static void lane_blocks(lower *g, const reduction *r, int n_reduces, sums *acc)
{
    stripes s[MOST_JOINED] = {0};
    for (int m = 0; m < n_reduces; m++)
        qn__stripes_open(g, &r[m], &s[m], 1, qn__scalar_type(g, r[m].type));
    span all = qn__points_of(g, r, r->dim[0]);
    LLVMValueRef blocks = qn__count_blocks(g, LLVMBuildSub(g->b, all.high, all.low, ""), BLOCK);
    loop l;
    qn__loop_open(g, &l, qn__up_to(g, blocks), 1, LOOP_MAY_BE_EMPTY);
    sums results[MOST_JOINED];
    lane_block(g, r, n_reduces, qn__block_at(g, all, l.index, BLOCK), false, results);
    for (int m = 0; m < n_reduces; m++) {
        addend result = {0};
        memcpy(result.value, results[m], sizeof result.value);
        qn__stripes_push(g, &r[m], &s[m], 1, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, 1), ""),
                         &result);
    }
    qn__loop_close(g, &l);
    for (int m = 0; m < n_reduces; m++)
        qn__stripes_close(g, &r[m], &s[m], 1, blocks, acc[m]);
}

void qn__lanes_reduce(lower *g, const reduction *r, int n_reduces, LLVMValueRef (*acc)[MOST_PARTS])
{
    if (is_float(r) && r->n_levels > 0)
        lane_blocks(g, r, n_reduces, acc);
    else
        lane_rows(g, r, n_reduces, 0, acc);
}
