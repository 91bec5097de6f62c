/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_reduce_lanes.c: reductions whose lanes run over the last reduction dimension: the 64 partials of the striped order
 * are the lanes of the vectors of one step. Integers are reduced so in any order; of products of 16 bits two that stand side by
 * side are added at once.
 */
#include "jit/llvm_lower.h"

#include <string.h>

static void set_index(lower *g, int d, LLVMValueRef index)
{
    g->iv[d] = index;
    g->iv_level[d] = g->depth;
}

/** What the block outside looked like. */
typedef struct outside {
    int width, unroll;
    LLVMValueRef mask[MOST_PARTS], tail_mask[MOST_PARTS];
} outside;

static outside enter_lanes(lower *g)
{
    outside o = {.width = g->width, .unroll = g->unroll};
    memcpy(o.mask, g->mask, sizeof o.mask);
    memcpy(o.tail_mask, g->tail_mask, sizeof o.tail_mask);
    g->width = g->p->width;
    g->unroll = g->p->unroll;
    FOR_PARTS(g, p)
    {
        LLVMValueRef m = o.mask[p % g->jam_max];
        g->mask[p] = m ? qn__splat(g, m, g->depth) : NULL;
        g->tail_mask[p] = NULL;
    }
    return o;
}

static void leave_lanes(lower *g, const outside *o)
{
    g->width = o->width;
    g->unroll = o->unroll;
    memcpy(g->mask, o->mask, sizeof o->mask);
    memcpy(g->tail_mask, o->tail_mask, sizeof o->tail_mask);
}

/** Whether points are products whose sum is taken of pairs: one instruction multiplies 16 bits and adds what is side by side. */
static bool adds_pairs(const lower *g, const reduction *r)
{
    bool has_width = g->width == 8 || g->width == 16 || (g->width == 32 && g->f->isa >= QN_ISA_V4);
    return has_width && !g->p->is_gpu && qn__paired_product(g->k, &g->a, r->inst);
}

/** What part p of the points adds, in half as many lanes. */
static LLVMValueRef pairs_of(lower *g, const reduction *r, int p)
{
    static const char *const names[3] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512"};
    const uint32_t *arg = qn__args(g->k, qn__paired_product(g->k, &g->a, r->inst));
    LLVMValueRef v[2] = {qn__vector_bits(g, arg[0], p, 16), qn__vector_bits(g, arg[1], p, 16)};
    if (g->tail_mask[p])
        v[0] = LLVMBuildSelect(g->b, g->tail_mask[p], v[0], LLVMConstNull(LLVMTypeOf(v[0])), "");
    return qn__call(g, names[g->width / 16], NULL, 0, v, 2);
}

/** The type of accumulators. */
static LLVMTypeRef sums_type(const lower *g, const reduction *r)
{
    return adds_pairs(g, r) ? LLVMVectorType(g->i32, (unsigned)g->width / 2) : qn__lane_type(g, r->type);
}

/** One step of width x unroll points; acc[p]. With `left` (points left, i64) the lanes beyond are masked. */
static void lane_step(lower *g, const reduction *r, LLVMValueRef left, LLVMValueRef *acc)
{
    const qn_inst *x = &g->k->inst[r->inst];
    LLVMValueRef outer[MOST_PARTS];
    memcpy(outer, g->mask, sizeof outer);
    if (left) {
        LLVMTypeRef small = g->i16;
        LLVMValueRef n = qn__splat(g, LLVMBuildTrunc(g->b, left, small, ""), g->depth);
        FOR_PARTS(g, p)
        {
            LLVMValueRef first = LLVMConstInt(small, (unsigned long long)(p / g->jam_max * g->width), false);
            LLVMValueRef lane = LLVMBuildAdd(g->b, qn__lanes(g, small, 1), qn__const_splat(g, first), "");
            g->tail_mask[p] = LLVMBuildICmp(g->b, LLVMIntULT, lane, n, "");
            g->mask[p] = qn__mask_and(g, outer[p], g->tail_mask[p]);
        }
    }
    qn__lower_region(g, x->region[0], x->region[2]);
    FOR_PARTS(g, p)
    {
        addend a;
        a.factor[0] = NULL;
        if (adds_pairs(g, r)) {
            acc[p] = LLVMBuildAdd(g->b, acc[p], pairs_of(g, r, p), "");
            g->tail_mask[p] = NULL;
            continue;
        }
        qn__take_point(g, r, p, true, &a, 0);
        LLVMValueRef sum = qn__add_point(g, r, acc[p], &a, 0);
        acc[p] = g->tail_mask[p] ? LLVMBuildSelect(g->b, g->tail_mask[p], sum, acc[p], "") : sum;
        g->tail_mask[p] = NULL;
    }
    memcpy(g->mask, outer, sizeof outer);
}

static void pack(const lower *g, LLVMValueRef *from, LLVMValueRef *to, bool in)
{
    int n = 0;
    FOR_PARTS(g, p)
    {
        if (in)
            to[n] = from[p];
        else
            to[p] = from[n];
        n++;
    }
}

/** Whether what is left after whole steps is folded one by one: the processor has no masks for elements so small. */
static bool has_scalar_rest(const lower *g, const reduction *r)
{
    const qn_inst *x = &g->k->inst[r->inst];
    for (uint32_t n = 0; n < g->k->n_accesses && g->f->isa < QN_ISA_V4; n++) {
        uint32_t i = g->k->access[n].inst;
        if (i >= x->region[0] && i < x->region[2] && qn_dtype_bytes(qn__access_dtype(g->k, i)) <= 2)
            return true;
    }
    return false;
}

/** Points [low, high) of the lane dimension into acc[p]: whole steps, then one masked step unless they are all. */
static void lane_range(lower *g, const reduction *r, LLVMValueRef low, LLVMValueRef high, bool is_whole, LLVMValueRef *acc)
{
    int d = g->p->lane_dim, n_acc = g->unroll * g->jam;
    int64_t step = (int64_t)g->width * g->unroll, known;
    LLVMValueRef n = LLVMBuildSub(g->b, high, low, "");
    LLVMValueRef left = LLVMBuildAnd(g->b, n, qn__const_i64(g, step - 1), "");
    LLVMValueRef whole = is_whole ? high : LLVMBuildSub(g->b, high, left, "");
    LLVMValueRef init[MOST_PARTS], phi[MOST_PARTS], next[MOST_PARTS], out[MOST_PARTS], now[MOST_PARTS];
    int64_t a, b;
    bool has_whole = !(qn__is_const(low, &a) && qn__is_const(whole, &b) && a == b);
    if (has_whole) {
        loop l;
        pack(g, acc, init, true);
        qn__loop_open(g, &l, low, whole, step, true, false, n_acc, init, phi);
        set_index(g, d, l.index);
        pack(g, phi, now, false);
        lane_step(g, r, NULL, now);
        pack(g, now, next, true);
        qn__loop_close(g, &l, next, out);
        pack(g, out, acc, false);
    }
    if (is_whole || (qn__is_const(left, &known) && known == 0))
        return;
    loop l;
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, left, qn__const_i64(g, 0), "");
    pack(g, acc, init, true);
    qn__loop_open(g, &l, qn__const_i64(g, 0), LLVMBuildZExt(g->b, some, g->i64, ""), 1, true, false, n_acc, init, phi);
    set_index(g, d, whole);
    pack(g, phi, now, false);
    lane_step(g, r, left, now);
    pack(g, now, next, true);
    qn__loop_close(g, &l, next, out);
    pack(g, out, acc, false);
}

static LLVMValueRef half_of(lower *g, LLVMValueRef v, unsigned first, unsigned n)
{
    LLVMValueRef lane[64];
    for (unsigned m = 0; m < n; m++)
        lane[m] = LLVMConstInt(g->i32, first + m, false);
    return LLVMBuildShuffleVector(g->b, v, LLVMConstNull(LLVMTypeOf(v)), LLVMConstVector(lane, n), "");
}

/** 64 lanes to one: l with l + 32, l + 16, ... First whole vectors, then halves of one. */
static LLVMValueRef across_lanes(lower *g, const reduction *r, LLVMValueRef *acc, int j)
{
    LLVMValueRef v[MOST_PARTS];
    int n = g->unroll;
    for (int u = 0; u < n; u++)
        v[u] = acc[u * g->jam_max + j];
    for (; n > 1; n /= 2)
        for (int u = 0; u < n / 2; u++)
            v[u] = qn__combine(g, r, v[u], v[u + n / 2]);
    for (unsigned half = LLVMGetVectorSize(LLVMTypeOf(v[0])) / 2; half > 0; half /= 2)
        v[0] = qn__combine(g, r, half_of(g, v[0], 0, half), half_of(g, v[0], half, half));
    return LLVMBuildExtractElement(g->b, v[0], LLVMConstInt(g->i32, 0, false), "");
}

/** Points [low, high), at most a block for floats, to one scalar for each accumulator. is_whole: they are whole steps. */
static void lane_block(lower *g, const reduction *r, LLVMValueRef low, LLVMValueRef high, bool is_whole, LLVMValueRef *out)
{
    outside o = enter_lanes(g);
    LLVMValueRef acc[MOST_PARTS];
    FOR_PARTS(g, p)
        acc[p] = qn__constant_like(sums_type(g, r), r->identity);
    lane_range(g, r, low, high, is_whole, acc);
    for (int n = 0; n < r->n; n++)
        out[n] = across_lanes(g, r, acc, r->part[n] % g->jam_max);
    leave_lanes(g, &o);
}

/* Integers: outer reduction dimensions are loops, each row's result is folded. */
void qn__lanes_any_order(lower *g, const reduction *r, int at, LLVMValueRef *acc)
{
    int d = r->dim[at];
    LLVMValueRef init[MOST_PARTS], phi[MOST_PARTS], inner[MOST_PARTS];
    if (at == r->n_dims - 1) {
        LLVMValueRef low = qn__low_of(g, r, d), high = qn__high_of(g, r, d), end = high;
        bool is_whole = has_scalar_rest(g, r);
        if (is_whole) {
            LLVMValueRef step = qn__const_i64(g, (int64_t)g->p->width * g->p->unroll - 1);
            end = LLVMBuildSub(g->b, high, LLVMBuildAnd(g->b, LLVMBuildSub(g->b, high, low, ""), step, ""), "");
        }
        lane_block(g, r, low, end, is_whole, inner);
        for (int n = 0; n < r->n; n++)
            acc[n] = qn__combine(g, r, acc[n], inner[n]);
        if (is_whole)
            qn__fold_run(g, r, d, end, high, true, acc);
        return;
    }
    loop l;
    memcpy(init, acc, sizeof init);
    qn__loop_open(g, &l, qn__low_of(g, r, d), qn__high_of(g, r, d), 1, qn__reduce_may_be_empty(g, r, d), false, r->n, init, phi);
    set_index(g, d, l.index);
    memcpy(inner, phi, sizeof inner);
    qn__lanes_any_order(g, r, at + 1, inner);
    qn__loop_close(g, &l, inner, acc);
}

/* Floats: blocks of 4096, each in 64 lanes; block results go through stripes of their own. */
void qn__lanes_striped(lower *g, const reduction *r, LLVMValueRef *acc)
{
    int d = r->dim[0];
    if (r->n_levels == 0) {
        lane_block(g, r, qn__low_of(g, r, d), qn__high_of(g, r, d), false, acc);
        return;
    }
    stripes s = {0};
    qn__stripes_open(g, r, &s, 1, qn__scalar_type(g, r->type));
    LLVMValueRef size = qn__const_i64(g, BLOCK), n = LLVMBuildSub(g->b, qn__high_of(g, r, d), qn__low_of(g, r, d), "");
    LLVMValueRef blocks = LLVMBuildLShr(g->b, LLVMBuildAdd(g->b, n, qn__const_i64(g, BLOCK - 1), ""),
                                        qn__const_i64(g, 12), "");
    loop l;
    qn__loop_open(g, &l, qn__const_i64(g, 0), blocks, 1, true, false, 0, NULL, NULL);
    LLVMValueRef low = LLVMBuildAdd(g->b, qn__low_of(g, r, d), LLVMBuildMul(g->b, l.index, size, ""), "");
    LLVMValueRef part = qn__umin(g, LLVMBuildSub(g->b, qn__high_of(g, r, d), low, ""), size);
    addend result = {0};
    lane_block(g, r, low, LLVMBuildAdd(g->b, low, part, ""), false, result.value);
    qn__stripes_push(g, r, &s, 1, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, 1), ""), &result);
    qn__loop_close(g, &l, NULL, NULL);
    qn__stripes_close(g, r, &s, 1, blocks, acc);
}
