/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.c: views of which a block has a copy in shared memory. Atomic updates are collected there
 * (grid->privatized): the copies stand one behind the other, in the order of the parameters, begin
 * with what changes nothing, and what they hold at the end is added to the views, element by
 * element. Records are moved there and back (grid->moved): word by word, those of the iterations
 * that a block takes at once; or pieces of rows by warps, of the trips that follow.
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/schedule/grid.h"

/** A view with a copy. */
typedef struct copy {
    int param, combine, type;
    int64_t first, n; /* byte of shared memory; elements */
    uint32_t inst;    /* one of its updates */
} copy;

/** The copy of a view; false: it has none. *out is the last one before it then, if there is one. */
static bool find_copy(const qn_kernel *k, const qn_facts *f, const qn_grid *grid, int param,
                      copy *out)
{
    int64_t first = 0;
    *out = (copy){.param = -1};
    for (int p = 0; p <= param; p++) {
        uint32_t inst = 0;
        for (uint32_t n = 0; n < k->n_accesses && n < 64; n++)
            if ((grid->privatized >> n & 1) && (int)k->inst[k->access[n].inst].imm == p)
                inst = k->access[n].inst;
        if (!inst)
            continue;
        int64_t bytes = qn__private_bytes(k, f, p);
        const qn_inst *x = &k->inst[inst];
        *out = (copy){p, x->sub, x->type, first, bytes / qn_dtype_bytes(x->type), inst};
        first += bytes;
    }
    return out->param == param;
}

int32_t qn__private_all(const qn_kernel *k, const qn_facts *f, const qn_grid *p)
{
    copy last;
    (void)find_copy(k, f, p, k->n_params - 1, &last);
    return (int32_t)(last.param < 0 ? 0 : last.first + last.n * qn_dtype_bytes(last.type));
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
    return last->at + qn__moved_pitch(p, last) * (int32_t)p->block[p->axis[0]];
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
    if (g->grid->moved_loop)
        at = LLVMBuildAdd(g->b, at, g->moved_ahead[m - g->grid->moved], "");
    else
        at = LLVMBuildSub(g->b, at, first_record(g, m), "");
    at = LLVMBuildAdd(g->b, at, qn__const_i64(g, m->at), "");
    return qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/** Where words are moved to or from: this thread's first of them. */
typedef struct mover {
    const qn_moved *m;
    int64_t threads;
    LLVMValueRef thread, view, shared; /* its number; the view's address, i64, and the other's */
    LLVMValueRef count;                /* of the words of a block that is not whole; else NULL */
} mover;

/** The address of word n of this thread in the view; beyond the last, that of the last. */
static LLVMValueRef word_of_view(lower *g, const mover *v, int n)
{
    LLVMValueRef number = LLVMBuildAdd(g->b, v->thread, qn__const_i64(g, n * v->threads), "");
    if (v->count)
        number = qn__umin(g, number, LLVMBuildSub(g->b, v->count, qn__const_i64(g, 1), ""));
    LLVMValueRef at = LLVMBuildMul(g->b, number, qn__const_i64(g, QN_MOVED_WORD), "");
    return qn__gep(g, g->i8, v->view, at);
}

static LLVMValueRef word_of_block(lower *g, const mover *v, int n)
{
    return qn__gep(g, g->i8, v->shared, qn__const_i64(g, QN_MOVED_WORD * n * v->threads));
}

/** All loads are under way before the first store. */
static void fetch_words(lower *g, const mover *v)
{
    LLVMValueRef value[64];
    const int n_words = v->m->step / QN_MOVED_WORD;
    for (int n = 0; n < n_words; n++)
        value[n] = qn__load_at(g, g->i32, word_of_view(g, v, n), QN_MOVED_WORD);
    for (int n = 0; n < n_words; n++)
        qn__store_at(g, value[n], word_of_block(g, v, n), QN_MOVED_WORD);
}

/** Moves back what is stored, of the words that there are. */
static void flush_words(lower *g, const mover *v)
{
    const int n_words = v->m->step / QN_MOVED_WORD;
    const uint64_t all = n_words < 64 ? (UINT64_C(1) << n_words) - 1 : UINT64_MAX;
    for (int n = 0; n < n_words; n++) {
        LLVMValueRef number = LLVMBuildAdd(g->b, v->thread, qn__const_i64(g, n * v->threads), ""),
                     ok = v->count ? LLVMBuildICmp(g->b, LLVMIntULT, number, v->count, "") : NULL;
        if (v->m->stores != all) {
            LLVMValueRef bit = LLVMBuildURem(g->b, number, qn__const_i64(g, n_words), "");
            bit = LLVMBuildLShr(g->b, qn__const_i64(g, (int64_t)v->m->stores), bit, "");
            ok = qn__mask_and(g, ok, LLVMBuildTrunc(g->b, bit, g->i1, ""));
        }
        loop once;
        qn__once_open(g, &once, ok);
        LLVMValueRef word = qn__load_at(g, g->i32, word_of_block(g, v, n), QN_MOVED_WORD);
        qn__store_at(g, word, word_of_view(g, v, n), QN_MOVED_WORD);
        qn__loop_close(g, &once);
    }
}

static void move_records(lower *g, const qn_moved *m, bool is_flush)
{
    const int x = g->grid->axis[0];
    const int64_t block = g->grid->block[x];
    int64_t low, high;
    mover v = {.m = m,
               .threads = qn__nvptx_threads(g->grid),
               .thread = qn__nvptx_register(g, "tid.x", g->i64)};
    LLVMValueRef bytes = LLVMBuildMul(g->b, v.thread, qn__const_i64(g, QN_MOVED_WORD), ""),
                 at = LLVMBuildAdd(g->b, bytes, qn__const_i64(g, m->at), "");
    v.shared = qn__gep(g, g->i8, qn__nvptx_shared(g), at);
    v.view = LLVMBuildIntToPtr(g->b, first_record(g, m),
                               LLVMPointerTypeInContext(g->context, g->hooks->data_space), "");
    if (!qn__is_const(g->begin[x], &low) || !qn__is_const(g->end[x], &high) ||
        (high - low) % block != 0) {
        LLVMValueRef here = LLVMBuildSub(g->b, g->end[x], g->iv[x], "");
        here = qn__umin(g, LLVMBuildAdd(g->b, here, v.thread, ""), qn__const_i64(g, block));
        v.count = LLVMBuildMul(g->b, here, qn__const_i64(g, m->step / QN_MOVED_WORD), "");
    }
    if (is_flush)
        flush_words(g, &v);
    else
        fetch_words(g, &v);
}

void qn__moved_fetch(lower *g)
{
    if (g->grid->moved_loop)
        return;
    for (int n = 0; n < g->grid->n_moved; n++)
        if (g->grid->moved[n].loads)
            move_records(g, &g->grid->moved[n], false);
    if (g->grid->n_moved)
        qn__nvptx_barrier(g);
}

void qn__moved_flush(lower *g)
{
    if (g->grid->moved_loop)
        return;
    if (g->grid->n_moved)
        qn__nvptx_barrier(g);
    for (int n = 0; n < g->grid->n_moved; n++)
        if (g->grid->moved[n].stores)
            move_records(g, &g->grid->moved[n], true);
    if (g->grid->n_moved && !qn__nvptx_has_block_for_each(g->k, g->f, g->grid))
        qn__nvptx_barrier(g);
}

/* ---------------------------------------------------------------- rows */

/** A word of each row of this warp's threads, by one lane each: side by side in both memories. */
static void move_words(lower *g, const qn_moved *m, LLVMValueRef index, LLVMValueRef lane,
                       bool is_flush)
{
    LLVMValueRef word[WARP_LANES], own = qn__nvptx_register(g, "tid.x", g->i64);
    LLVMValueRef first = LLVMBuildSub(g->b, own, lane, ""),
                 row = LLVMBuildSub(g->b, g->iv[g->grid->axis[0]], lane, "");
    LLVMValueRef ahead = LLVMBuildMul(g->b, lane, qn__const_i64(g, QN_MOVED_WORD), ""), view, there;
    view = qn__slot(g, g->f->param[m->param].slot, g->ptr);
    view = qn__gep(g, g->i8, view, LLVMBuildMul(g->b, row, qn__const_i64(g, m->step), ""));
    view = qn__gep(g, g->i32, view, LLVMBuildAdd(g->b, index, lane, ""));
    view = qn__ahead(g, view, m->begin);
    there = LLVMBuildMul(g->b, first, qn__const_i64(g, qn__moved_pitch(g->grid, m)), "");
    there = qn__gep(g, g->i8, qn__nvptx_shared(g), LLVMBuildAdd(g->b, there, ahead, ""));
    there = qn__ahead(g, there, m->at);
    for (int half = 0; half < 2; half++) /* all loads are under way before the first store */
        for (int n = 0; n < WARP_LANES; n++) {
            LLVMValueRef in_view = qn__ahead(g, view, (int64_t)n * m->step),
                         in_block = qn__ahead(g, there, n * qn__moved_pitch(g->grid, m));
            if (half)
                qn__store_at(g, word[n], is_flush ? in_view : in_block, QN_MOVED_WORD);
            else
                word[n] = qn__load_at(g, g->i32, is_flush ? in_block : in_view, QN_MOVED_WORD);
        }
}

void qn__nvptx_move_rows(lower *g, LLVMValueRef index, int64_t count, bool is_flush)
{
    const qn_grid *p = g->grid;
    LLVMValueRef thread = qn__nvptx_register(g, "tid.x", g->i64),
                 lane = LLVMBuildAnd(g->b, thread, qn__const_i64(g, WARP_LANES - 1), "");
    if (is_flush)
        qn__team_wait(g);
    for (int n = 0; n < p->n_moved; n++) {
        const qn_moved *m = &p->moved[n];
        loop once;
        LLVMValueRef here = qn__slot(g, g->f->param[m->param].slot, g->i64), at;
        at = LLVMBuildMul(g->b, g->iv[p->axis[0]], qn__const_i64(g, m->step), "");
        here = LLVMBuildAdd(g->b, here, LLVMBuildAdd(g->b, at, qn__const_i64(g, m->begin), ""), "");
        at = LLVMBuildMul(g->b, index, qn__const_i64(g, QN_MOVED_WORD), "");
        here = LLVMBuildAdd(g->b, here, at, "");
        at = LLVMBuildMul(g->b, thread, qn__const_i64(g, qn__moved_pitch(p, m)), "");
        g->moved_ahead[n] = is_flush ? NULL : LLVMBuildSub(g->b, at, here, "");
        if (!(is_flush ? m->stores : m->loads))
            continue;
        qn__once_open(g, &once,
                      count < WARP_LANES
                          ? LLVMBuildICmp(g->b, LLVMIntULT, lane, qn__const_i64(g, count), "")
                          : NULL);
        move_words(g, m, index, lane, is_flush);
        qn__loop_close(g, &once);
    }
    qn__team_wait(g);
}

/* ---------------------------------------------------------------- all accesses */

LLVMValueRef qn__place_in_block(lower *g, uint32_t update, LLVMValueRef pointer)
{
    copy c;
    int param = (int)g->k->inst[update].imm;
    const qn_moved *moved = qn__grid_moved(g->grid, g->k, update);
    if (moved)
        return moved_place(g, moved, pointer);
    if (!(g->grid->privatized >> g->site[update] & 1) || !find_copy(g->k, g->f, g->grid, param, &c))
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
        if (!find_copy(g->k, g->f, g->grid, param, &c))
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
