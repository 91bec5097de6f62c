/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.c: what a register tile reads far apart is asked for ahead of time
 * (jit/schedule/prefetch.c says when). A prefetch is no access: it cannot fail, and what it asks
 * for beyond the end of a view is not read.
 */
#include "jit/lower/lower.h"
#include "jit/schedule/plan.h"

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
static void prefetch_jammed(lower *g, uint32_t i, int d)
{
    int64_t bytes = qn_dtype_bytes(g->k->inst[i].type), along = 0;
    int step = (int)(LINE_BYTES / bytes);
    (void)qn__access_stride(g->k, g->f, &g->a, i, d, &along);
    for (int j = 0; j < g->jam; j += step)
        qn__prefetch(g, i, j, along * bytes * g->p->prefetch);
    if ((g->jam - 1) % step)
        qn__prefetch(g, i, g->jam - 1, along * bytes * g->p->prefetch);
}

void qn__prefetch_point(lower *g, uint32_t reduce, int d)
{
    const qn_inst *x = &g->k->inst[reduce];
    for (uint32_t i = x->region[0]; g->p->prefetch && i < x->region[2]; i++)
        if (qn__is_prefetched(g->k, g->f, &g->a, g->p, i))
            prefetch_jammed(g, i, d);
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
    qn__loop_close(g, &once, NULL, NULL);
}

/** Iterations of dimension d that this block has. */
static int together(const lower *g, int d)
{
    return d == g->p->jam_dim ? g->p->jam : d == g->p->cross_dim ? g->p->cross : 1;
}

void qn__prefetch_step(lower *g, uint32_t reduce)
{
    const qn_inst *x = &g->k->inst[reduce];
    if (!g->p->steps_ahead || g->width != g->p->width || g->mask[0] || x->n_args != 1)
        return;
    int d = qn__dim_of(g->k, reduce, 0), s;
    for (uint32_t i = x->region[0]; i < x->region[2]; i++) {
        int64_t begin, end, first, last, bytes = qn_dtype_bytes(g->k->inst[i].type);
        if ((s = qn__asked_by(g->k, g->f, &g->a, g->p, i)) < 0 ||
            !qn__is_const(g->begin[d], &begin) || !qn__is_const(g->end[d], &end) ||
            !qn__is_const(g->begin[s], &first) || !qn__is_const(g->end[s], &last))
            continue;
        int64_t each =
            (end - begin + last - first - 1) / (last - first); /* points for each iteration of s */
        LLVMValueRef at = LLVMBuildSub(g->b, g->iv[s], qn__const_i64(g, first), "");
        at = LLVMBuildMul(g->b, at, qn__const_i64(g, each), "");
        g->iv[d] = LLVMBuildAdd(g->b, at, g->begin[d], "");
        for (int64_t n = 0; n < each * together(g, s) && n < end - begin; n++)
            prefetch_parts(g, i, d, n, g->p->steps_ahead * g->p->unroll * g->width * bytes);
    }
}

void qn__prefetch_front(lower *g, uint32_t i)
{
    int64_t bytes = g->width * qn_dtype_bytes(g->k->inst[i].type);
    if (!g->p->front_bytes || g->streaming == STREAM_NONE || !g->a.value[i].is_front)
        return;
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, i, p) == p &&
            p / g->jam_max * bytes % LINE_BYTES == 0) /* once a line */
            qn__prefetch(g, i, p, g->p->front_bytes);
}

void qn__prefetch_row(lower *g, uint32_t i)
{
    enum { LINES_AHEAD = 2 }; /* the next may have come with this one */
    int64_t stride;
    if (!g->ends.first || !qn__access_stride(g->k, g->f, &g->a, i, g->p->lane_dim, &stride) ||
        stride != 1)
        return;
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, i, p) == p)
            qn__prefetch(g, i, p, LINES_AHEAD * LINE_BYTES);
}
