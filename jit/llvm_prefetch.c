/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_prefetch.c: what a register tile reads far apart is asked for ahead of time (jit/plan_pack.c says when). A prefetch
 * is no access: it cannot fail, and what it asks for beyond the end of a view is not read.
 */
#include "jit/llvm_lower.h"
#include "jit/plan.h"

enum { LINE_BYTES = 64, TO_SECOND_LEVEL = 2, DATA = 1 };

static void prefetch(lower *g, uint32_t i, int p, int64_t ahead_bytes)
{
    address x;
    qn__make_address(g, i, p, NULL, &x);
    x.constant += ahead_bytes;
    qn__displace(g, &x);
    LLVMValueRef args[4] = {x.pointer, LLVMConstInt(g->i32, 0, false), LLVMConstInt(g->i32, TO_SECOND_LEVEL, false),
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
        prefetch(g, i, j, along * bytes * g->p->prefetch);
    if ((g->jam - 1) % step)
        prefetch(g, i, g->jam - 1, along * bytes * g->p->prefetch);
}

void qn__prefetch_point(lower *g, uint32_t reduce, int d)
{
    const qn_inst *x = &g->k->inst[reduce];
    for (uint32_t i = x->region[0]; g->p->prefetch && i < x->region[2]; i++)
        if (qn__is_prefetched(g->k, g->f, &g->a, g->p, i))
            prefetch_jammed(g, i, d);
}
