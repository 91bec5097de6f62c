/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.c: atomic updates that a block collects in shared memory (grid->privatized). The copies
 * of the views stand one behind the other, in the order of the parameters. They begin with what
 * changes nothing, and what they hold at the end is added to the views, element by element.
 */
#include "jit/target/nvptx/private.h"
#include "jit/schedule/grid.h"

/** A view with a copy. */
typedef struct copy {
    int param, combine, type;
    int64_t first, n; /* byte of shared memory; elements */
    uint32_t inst;    /* one of its updates */
} copy;

/** The copy of a view; false: it has none. */
static bool find_copy(const lower *g, int param, copy *out)
{
    const qn_kernel *k = g->k;
    int64_t first = 0;
    *out = (copy){.param = -1};
    for (int p = 0; p <= param; p++) {
        uint32_t inst = 0;
        for (uint32_t n = 0; n < k->n_accesses && n < 64; n++)
            if ((g->grid->privatized >> n & 1) && (int)k->inst[k->access[n].inst].imm == p)
                inst = k->access[n].inst;
        if (!inst)
            continue;
        int64_t bytes = qn__private_bytes(k, g->f, p);
        const qn_inst *x = &k->inst[inst];
        *out = (copy){p, x->sub, x->type, first, bytes / qn_dtype_bytes(x->type), inst};
        first += bytes;
    }
    return out->param == param;
}

int32_t qn__private_all(const qn_kernel *k, const qn_facts *f, const qn_grid *p)
{
    int64_t sum = 0;
    for (int param = 0; param < k->n_params; param++) {
        bool is_one = false;
        for (uint32_t n = 0; n < k->n_accesses && n < 64; n++)
            is_one |= (p->privatized >> n & 1) && (int)k->inst[k->access[n].inst].imm == param;
        sum += is_one ? qn__private_bytes(k, f, param) : 0;
    }
    return (int32_t)sum;
}

static LLVMValueRef place_of(lower *g, const copy *c, LLVMValueRef bytes)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, bytes, qn__const_i64(g, c->first), "");
    return LLVMBuildGEP2(g->b, g->i8, qn__nvptx_shared(g), &at, 1, "");
}

LLVMValueRef qn__private_place(lower *g, uint32_t update, LLVMValueRef pointer)
{
    copy c;
    int param = (int)g->k->inst[update].imm;
    if (!(g->grid->privatized >> g->site[update] & 1) || !find_copy(g, param, &c))
        return NULL;
    LLVMValueRef base = qn__slot(g, g->f->param[param].slot, g->i64);
    LLVMValueRef at = LLVMBuildPtrToInt(g->b, pointer, g->i64, "");
    return place_of(g, &c, LLVMBuildSub(g->b, at, base, ""));
}

/** Element `index` of a copy: what changes nothing, or to the view with it. */
static void for_element(lower *g, const copy *c, LLVMValueRef index, bool is_end)
{
    const int64_t size = qn_dtype_bytes(c->type);
    LLVMValueRef bytes = LLVMBuildMul(g->b, index, qn__const_i64(g, size), "");
    LLVMValueRef at = place_of(g, c, bytes);
    LLVMValueRef none = qn__const_bits(g, c->type, qn__reduce_identity(c->combine, c->type));
    if (!is_end) {
        LLVMSetAlignment(LLVMBuildStore(g->b, none, at), (unsigned)size);
        return;
    }
    LLVMValueRef v = LLVMBuildLoad2(g->b, qn__memory_type(g, c->type), at, "");
    LLVMSetAlignment(v, (unsigned)size);
    branch then = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, v, none, ""));
    LLVMValueRef base = qn__slot(g, g->f->param[c->param].slot, g->ptr);
    base = LLVMBuildGEP2(g->b, g->i8, base, &bytes, 1, "");
    qn__nvptx_combine(g, c->combine, c->type, base, v);
    qn__end_branch(g, &then, NULL);
}

/** All elements of all copies by the threads of the block; threads are counted from 0. */
static void for_all(lower *g, bool is_end)
{
    copy c;
    LLVMValueRef thread = qn__nvptx_thread(g);
    int64_t threads = qn__nvptx_threads(g->grid);
    for (int param = 0; param < g->k->n_params; param++) {
        if (!find_copy(g, param, &c))
            continue;
        LLVMValueRef n = qn__const_i64(g, c.n);
        LLVMValueRef up = qn__const_i64(g, (c.n + threads - 1) / threads * threads);
        loop l, once;
        qn__loop_open(g, &l, qn__up_to(g, up), threads, 0);
        LLVMValueRef index = LLVMBuildAdd(g->b, l.index, thread, "");
        qn__once_open(g, &once, LLVMBuildICmp(g->b, LLVMIntULT, index, n, ""));
        for_element(g, &c, index, is_end);
        qn__loop_close(g, &once);
        qn__loop_close(g, &l);
    }
}

void qn__private_open(lower *g)
{
    if (!g->grid->privatized)
        return;
    for_all(g, false);
    qn__nvptx_barrier(g);
}

void qn__private_close(lower *g)
{
    if (!g->grid->privatized)
        return;
    qn__nvptx_barrier(g);
    for_all(g, true);
}
