/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.c: views of which a block has a copy in shared memory. Atomic updates are collected there
 * (grid->privatized): the copies stand one behind the other, in the order of the parameters, begin
 * with what changes nothing, and what they hold at the end is added to the views, element by
 * element. Records are moved there and back (grid->moved): word by word, those of the iterations
 * that a block takes at once.
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
    return qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/* ---------------------------------------------------------------- records */

int32_t qn__moved_bytes(const qn_grid *p)
{
    const qn_moved *last = &p->moved[p->n_moved - 1];
    return last->at + last->step * (int32_t)p->block[p->axis[0]];
}

/** The address of the first record of a block, i64. */
static LLVMValueRef first_record(lower *g, const qn_moved *m)
{
    const int x = g->grid->axis[0];
    LLVMValueRef low = LLVMBuildSub(g->b, g->iv[x], qn__nvptx_register(g, "tid.x", g->i64), "");
    LLVMValueRef base = qn__slot(g, g->f->param[m->param].slot, g->i64);
    low = LLVMBuildMul(g->b, low, qn__const_i64(g, m->step), "");
    return LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, base, qn__const_i64(g, m->begin), ""), low, "");
}

static LLVMValueRef moved_place(lower *g, const qn_moved *m, LLVMValueRef pointer)
{
    LLVMValueRef at = LLVMBuildPtrToInt(g->b, pointer, g->i64, "");
    at = LLVMBuildSub(g->b, at, first_record(g, m), "");
    at = LLVMBuildAdd(g->b, at, qn__const_i64(g, m->at), "");
    return qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/** Where words are moved to or from: this thread's first of them. */
typedef struct mover {
    const qn_moved *m;
    int64_t threads;
    bool is_flush;
    LLVMValueRef thread, view, shared;
} mover;

static LLVMValueRef word_at(lower *g, LLVMValueRef from, const mover *v, int n)
{
    return qn__gep(g, g->i8, from, qn__const_i64(g, 4 * n * v->threads));
}

static LLVMValueRef load_word(lower *g, LLVMValueRef at)
{
    LLVMValueRef v = qn__load_at(g, g->i32, at, 4);
    return v;
}

static void store_word(lower *g, LLVMValueRef v, LLVMValueRef at)
{
    qn__store_at(g, v, at, 4);
}

/** Moves word n of this thread, if it is below `count`, NULL: it is; and back only what is stored.
 */
static void move_word(lower *g, const mover *v, int n, LLVMValueRef count)
{
    const int64_t words = v->m->step / QN_MOVED_WORD;
    const uint64_t all = words < 64 ? (UINT64_C(1) << words) - 1 : UINT64_MAX;
    LLVMValueRef number = LLVMBuildAdd(g->b, v->thread, qn__const_i64(g, n * v->threads), ""),
                 condition = count ? LLVMBuildICmp(g->b, LLVMIntULT, number, count, "") : NULL;
    if (v->is_flush && v->m->stores != all) {
        LLVMValueRef bit = LLVMBuildURem(g->b, number, qn__const_i64(g, words), "");
        bit = LLVMBuildLShr(g->b, qn__const_i64(g, (int64_t)v->m->stores), bit, "");
        condition = qn__mask_and(g, condition, LLVMBuildTrunc(g->b, bit, g->i1, ""));
    }
    LLVMValueRef from = word_at(g, v->is_flush ? v->shared : v->view, v, n),
                 to = word_at(g, v->is_flush ? v->view : v->shared, v, n);
    branch then = {0};
    if (condition)
        then = qn__begin_branch(g, condition);
    store_word(g, load_word(g, from), to);
    if (condition)
        qn__end_branch(g, &then, NULL);
}

/** All words of a whole block: all loads are under way before the first store. */
static void move_whole(lower *g, const mover *v)
{
    LLVMValueRef value[64];
    const int n_words = v->m->step / QN_MOVED_WORD;
    for (int n = 0; n < n_words && v->is_flush; n++)
        move_word(g, v, n, NULL);
    for (int n = 0; n < n_words && !v->is_flush; n++)
        value[n] = load_word(g, word_at(g, v->view, v, n));
    for (int n = 0; n < n_words && !v->is_flush; n++)
        store_word(g, value[n], word_at(g, v->shared, v, n));
}

static void move_records(lower *g, const qn_moved *m, bool is_flush)
{
    const int x = g->grid->axis[0];
    const int64_t block = g->grid->block[x];
    int64_t low, high;
    mover v = {.m = m,
               .threads = qn__nvptx_threads(g->grid),
               .is_flush = is_flush,
               .thread = qn__nvptx_register(g, "tid.x", g->i64)};
    LLVMValueRef bytes = LLVMBuildMul(g->b, v.thread, qn__const_i64(g, 4), ""),
                 at = LLVMBuildAdd(g->b, bytes, qn__const_i64(g, m->at), ""),
                 view = LLVMBuildAdd(g->b, first_record(g, m), bytes, "");
    v.shared = qn__gep(g, g->i8, qn__nvptx_shared(g), at);
    v.view = LLVMBuildIntToPtr(g->b, view,
                               LLVMPointerTypeInContext(g->context, g->hooks->data_space), "");
    if (qn__is_const(g->begin[x], &low) && qn__is_const(g->end[x], &high) &&
        (high - low) % block == 0) {
        move_whole(g, &v);
        return;
    }
    LLVMValueRef here = LLVMBuildSub(g->b, g->end[x], g->iv[x], "");
    here = LLVMBuildAdd(g->b, here, v.thread, "");
    branch is_whole = qn__begin_choice(
        g, LLVMBuildICmp(g->b, LLVMIntSGE, here, qn__const_i64(g, block), ""), "whole", "part");
    move_whole(g, &v);
    qn__begin_other(g, &is_whole);
    LLVMValueRef count = LLVMBuildMul(g->b, here, qn__const_i64(g, m->step / QN_MOVED_WORD), "");
    for (int n = 0; n < m->step / QN_MOVED_WORD; n++)
        move_word(g, &v, n, count);
    qn__end_branch(g, &is_whole, NULL);
}

void qn__moved_fetch(lower *g)
{
    for (int n = 0; n < g->grid->n_moved; n++)
        if (g->grid->moved[n].loads)
            move_records(g, &g->grid->moved[n], false);
    if (g->grid->n_moved)
        qn__nvptx_barrier(g);
}

void qn__moved_flush(lower *g)
{
    if (g->grid->n_moved)
        qn__nvptx_barrier(g);
    for (int n = 0; n < g->grid->n_moved; n++)
        if (g->grid->moved[n].stores)
            move_records(g, &g->grid->moved[n], true);
    if (g->grid->n_moved && !qn__nvptx_has_block_for_each(g->k, g->f, g->grid))
        qn__nvptx_barrier(g);
}

/* ---------------------------------------------------------------- all accesses */

LLVMValueRef qn__place_in_block(lower *g, uint32_t update, LLVMValueRef pointer)
{
    copy c;
    int param = (int)g->k->inst[update].imm;
    const qn_moved *moved = qn__grid_moved(g->grid, g->k->inst[update].imm);
    if (moved)
        return moved_place(g, moved, pointer);
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
        qn__store_at(g, none, at, (unsigned)size);
        return;
    }
    LLVMValueRef v = qn__load_at(g, qn__memory_type(g, c->type), at, (unsigned)size);
    branch then = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, v, none, ""));
    LLVMValueRef base = qn__slot(g, g->f->param[c->param].slot, g->ptr);
    base = qn__gep(g, g->i8, base, bytes);
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
