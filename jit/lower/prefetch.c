/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.c: what a register tile reads far apart is asked for ahead of time
 * (jit/schedule/prefetch.c says when). A prefetch is no access: it cannot fail, and what it asks
 * for beyond the end of a view is not read.
 */
#include "jit/lower/lower.h"
#include "jit/schedule/forms.h"

void qn__prefetch(lower *g, uint32_t i, int p, int64_t ahead_bytes)
{
    enum { FOR_WRITING = 1, TO_SECOND_LEVEL = 2, TO_FIRST_LEVEL = 3, DATA = 1 };
    bool is_store = g->k->inst[i].op == QN_I_STORE;
    address x;
    qn__make_address(g, i, p, NULL, &x);
    x.constant += ahead_bytes;
    qn__displace(g, &x);
    LLVMValueRef args[4] = {
        x.pointer, LLVMConstInt(g->i32, is_store ? FOR_WRITING : 0, false),
        LLVMConstInt(g->i32, is_store ? TO_FIRST_LEVEL : TO_SECOND_LEVEL, false),
        LLVMConstInt(g->i32, DATA, false)};
    qn__call(g, "llvm.prefetch", &g->ptr, 1, args, 4);
}

/** The jammed iterations lie side by side: one of each line, and the last. */
static void prefetch_jammed(lower *g, uint32_t i, int d, int points)
{
    int64_t bytes = qn_dtype_bytes(g->k->inst[i].type), along = 0;
    int step = (int)(LINE_BYTES / bytes);
    (void)qn__access_stride(&g->a, i, d, &along);
    for (int j = 0; j < g->jam; j += step)
        qn__prefetch(g, i, j, along * bytes * points);
    if ((g->jam - 1) % step)
        qn__prefetch(g, i, g->jam - 1, along * bytes * points);
}

/** What the record of load i asks for ahead of time, if that is of this kind; else NULL. */
static const qn_record_info *ahead_of(const lower *g, uint32_t i, int kind)
{
    const qn_record_info *r = qn__record_of(g, i);
    bool is_it = r && r->ahead && qn__ahead_of(g->scalar, g->schedule, g->block, r) == kind;
    return is_it ? r : NULL;
}

void qn__prefetch_point(lower *g, uint32_t reduce, int d)
{
    const qn_inst *x = &g->k->inst[reduce];
    for (uint32_t i = x->region[0]; i < x->region[2]; i++) {
        const qn_record_info *r = ahead_of(g, i, QN_AHEAD_POINTS);
        if (r && qn__enclosing_reduce(g->k, i) == reduce)
            prefetch_jammed(g, i, d, r->ahead);
    }
}

/** Asks for vector `n` points from the index of dimension d, for all jammed iterations that differ.
 */
static void prefetch_parts(lower *g, uint32_t i, int d, int64_t n, int64_t ahead_bytes)
{
    loop once;
    LLVMValueRef index = g->iv[d];
    qn__once_open(g, &once, NULL);
    qn__set_index(g, d, index);
    qn__set_ahead(g, d, n, g->depth);
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, i, p) == p)
            qn__prefetch(g, i, p, ahead_bytes);
    qn__set_ahead(g, d, 0, 0);
    qn__loop_close(g, &once);
}

/** Iterations of dimension d that this block has. */
static int64_t together(const lower *g, int d)
{
    const qn_block *b = g->block;
    int64_t all = 1;
    for (int n = 0; n < b->n; n++)
        all *= b->dim[n] == d ? b->extent[n] : 1;
    return all;
}

void qn__prefetch_step(lower *g, uint32_t reduce)
{
    const qn_inst *x = &g->k->inst[reduce];
    if (g->width != g->block->width || g->mask[0] || x->n_args != 1)
        return;
    int d = qn__dim_of(g->k, reduce, 0), s;
    for (uint32_t i = x->region[0]; i < x->region[2]; i++) {
        int64_t begin, end, first, last, bytes = qn_dtype_bytes(g->k->inst[i].type);
        const qn_record_info *r = ahead_of(g, i, QN_AHEAD_STEPS);
        if (!r || (s = qn__asked_by(&g->a, g->block->lane_dim, i)) < 0 ||
            !qn__is_const(g->begin[d], &begin) || !qn__is_const(g->end[d], &end) ||
            !qn__is_const(g->begin[s], &first) || !qn__is_const(g->end[s], &last))
            continue;
        int64_t each =
            (end - begin + last - first - 1) / (last - first); /* points for each iteration of s */
        LLVMValueRef at = LLVMBuildSub(g->b, g->iv[s], qn__const_i64(g, first), "");
        at = LLVMBuildMul(g->b, at, qn__const_i64(g, each), "");
        g->iv[d] = LLVMBuildAdd(g->b, at, g->begin[d], "");
        for (int64_t n = 0; n < each * together(g, s) && n < end - begin; n++)
            prefetch_parts(g, i, d, n, (int64_t)r->ahead * g->block->unroll * g->width * bytes);
    }
}

void qn__prefetch_front(lower *g, uint32_t i)
{
    int64_t bytes = qn_dtype_bytes(g->k->inst[i].type);
    const qn_record_info *r = ahead_of(g, i, QN_AHEAD_LANES);
    if (!r || qn__is_rest(g))
        return;
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, i, p) == p &&
            p / g->jam_max * g->width * bytes % LINE_BYTES == 0) /* once a line */
            qn__prefetch(g, i, p, r->ahead * bytes);
}
