/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.c: views of which a block has a copy in shared memory. Atomic updates are collected there
 * (grid->privatized): the copies stand one behind the other, in the order of the parameters, begin
 * with what changes nothing, and what they hold at the end is added to the views, element by
 * element. Records are moved there and back (grid->moved), by each warp those of its threads; or
 * pieces of their rows, of the trips that follow.
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/lower/atomic.h"
#include "jit/schedule/grid.h"

/** A view with a copy. */
typedef struct copy {
    int param, combine, type;
    int64_t first, bytes; /* of shared memory */
    uint32_t inst;    /* one of its updates */
    bool is_end;      /* what it holds goes to the view */
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
        const qn_inst *x = &k->inst[inst];
        *out = (copy){p, x->sub, x->type, first, qn__private_bytes(k, f, grid, p), inst, false};
        first += out->bytes;
    }
    return out->param == param;
}

int32_t qn__private_all(const qn_kernel *k, const qn_facts *f, const qn_grid *p)
{
    copy last;
    (void)find_copy(k, f, p, k->n_params - 1, &last);
    return (int32_t)(last.param < 0 ? 0 : last.first + last.bytes);
}

static LLVMValueRef place_of(lower *g, const copy *c, LLVMValueRef bytes)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, bytes, qn__const_i64(g, c->first), "");
    return qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/* ---------------------------------------------------------------- records and rows */

int32_t qn__moved_bytes(const qn_grid *p)
{
    const qn_moved *last = &p->moved[p->n_moved - 1];
    return last->at + qn__moved_pitch(p, last) * (int32_t)p->block[p->axis[0]];
}

static LLVMValueRef moved_place(lower *g, const qn_moved *m, LLVMValueRef pointer)
{
    LLVMValueRef at = LLVMBuildPtrToInt(g->b, pointer, g->i64, "");
    at = LLVMBuildAdd(g->b, at, g->moved_ahead[m - g->grid->moved], "");
    at = LLVMBuildAdd(g->b, at, qn__const_i64(g, m->at), "");
    return qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/** Whether word n of each lane, which has this number among those of a warp's records, is stored;
 * NULL: it is. */
static LLVMValueRef is_stored(lower *g, const qn_moved *m, LLVMValueRef number)
{
    const int n_words = m->step / QN_MOVED_WORD;
    if (g->grid->moved_loop || __builtin_popcountll(m->stores) == n_words)
        return NULL;
    LLVMValueRef bit = LLVMBuildURem(g->b, number, qn__const_i64(g, n_words), "");
    bit = LLVMBuildLShr(g->b, qn__const_i64(g, (int64_t)m->stores), bit, "");
    return LLVMBuildTrunc(g->b, bit, g->i1, "");
}

/** Words of the records of this warp's threads, which stand side by side; or, of their rows, words
 * from number `index` on, row by row. Each lane moves one of 32 neighbours. All loads are under way
 * before the first store. Beyond the last record that one's last word is loaded. */
static void move_words(lower *g, const qn_moved *m, LLVMValueRef index, LLVMValueRef lane,
                       bool is_flush)
{
    enum { MOST = 64 };
    const int x = g->grid->axis[0], n_words = m->step / QN_MOVED_WORD;
    const bool is_rows = g->grid->moved_loop != 0;
    const int64_t pitch = qn__moved_pitch(g->grid, m), side = WARP_LANES * QN_MOVED_WORD;
    LLVMValueRef word[MOST], row = LLVMBuildSub(g->b, g->iv[x], lane, ""), view, block, last;
    LLVMValueRef bytes = LLVMBuildMul(g->b, lane, qn__const_i64(g, QN_MOVED_WORD), "");
    LLVMValueRef from =
        LLVMBuildAdd(g->b, LLVMBuildMul(g->b, row, qn__const_i64(g, m->step), ""),
                     LLVMBuildMul(g->b, index, qn__const_i64(g, QN_MOVED_WORD), ""), "");
    view = qn__gep(g, g->i8, qn__slot(g, g->f->param[m->param].slot, g->ptr), from);
    view = qn__ahead(g, view, m->begin);
    block = LLVMBuildSub(g->b, qn__nvptx_register(g, "tid.x", g->i64), lane, "");
    block = LLVMBuildMul(g->b, block, qn__const_i64(g, pitch), "");
    block = qn__gep(g, g->i8, qn__nvptx_shared(g), LLVMBuildAdd(g->b, block, bytes, ""));
    block = qn__ahead(g, block, m->at);
    last = is_rows ? NULL : qn__last_unless(g, x, g->grid->block[x], 0);
    if (last) { /* the number of the last word, less than 0 where a warp has no record */
        last = LLVMBuildMul(g->b, LLVMBuildSub(g->b, last, row, ""), qn__const_i64(g, n_words), "");
        last = LLVMBuildSub(g->b, last, qn__const_i64(g, 1), "");
    }
    for (int pass = 0; pass < 2; pass++)
        for (int n = 0; n < (is_rows ? WARP_LANES : n_words); n++) {
            LLVMValueRef number = LLVMBuildAdd(g->b, lane, qn__const_i64(g, n * WARP_LANES), ""),
                         in_view = last ? qn__smin(g, number, last) : lane,
                         in_block = qn__ahead(g, block, n * (is_rows ? pitch : side)), ok;
            in_view = LLVMBuildMul(g->b, in_view, qn__const_i64(g, QN_MOVED_WORD), "");
            in_view = qn__gep(g, g->i8, view, in_view);
            if (!last)
                in_view = qn__ahead(g, in_view, n * (is_rows ? m->step : side));
            if (pass == 0) {
                word[n] = qn__load_at(g, g->i32, is_flush ? in_block : in_view, QN_MOVED_WORD);
                continue;
            }
            ok = is_flush ? is_stored(g, m, number) : NULL;
            if (is_flush && last)
                ok = qn__mask_and(g, ok, LLVMBuildICmp(g->b, LLVMIntSLE, number, last, ""));
            branch then = qn__begin_branch(g, ok);
            qn__store_at(g, word[n], is_flush ? in_view : in_block, QN_MOVED_WORD);
            qn__end_branch(g, &then, NULL);
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

void qn__move_records(lower *g, bool is_flush)
{
    if (g->grid->n_moved && !g->grid->moved_loop)
        qn__nvptx_move_rows(g, qn__const_i64(g, 0), WARP_LANES, is_flush);
}

/* ---------------------------------------------------------------- all accesses */

LLVMValueRef qn__place_in_block(lower *g, uint32_t i, LLVMValueRef pointer)
{
    copy c;
    int param = (int)g->k->inst[i].imm;
    const qn_moved *moved = qn__grid_moved(g->grid, g->k, i);
    if (moved)
        return moved_place(g, moved, pointer);
    if (!(g->grid->privatized >> g->site[i] & 1) || !find_copy(g->k, g->f, g->grid, param, &c))
        return NULL;
    LLVMValueRef base = qn__slot(g, g->f->param[param].slot, g->i64);
    LLVMValueRef at = LLVMBuildPtrToInt(g->b, pointer, g->i64, "");
    return place_of(g, &c, LLVMBuildSub(g->b, at, base, ""));
}

/** Element `index` of a copy, if `condition` holds: what changes nothing, or to the view with it.
 */
static void for_element(lower *g, LLVMValueRef index, LLVMValueRef condition, void *arg)
{
    const copy *c = arg;
    loop once;
    qn__once_open(g, &once, condition);
    const int64_t size = qn_dtype_bytes(c->type);
    LLVMValueRef bytes = LLVMBuildMul(g->b, index, qn__const_i64(g, size), "");
    LLVMValueRef at = place_of(g, c, bytes);
    LLVMValueRef none = qn__const_bits(g, c->type, qn__reduce_identity(c->combine, c->type));
    if (c->is_end) {
        LLVMValueRef v = qn__load_at(g, qn__memory_type(g, c->type), at, (unsigned)size);
        branch then = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, qn__as_bits(g, c->type, v),
                                                        qn__as_bits(g, c->type, none), ""));
        LLVMValueRef base = qn__slot(g, g->f->param[c->param].slot, g->ptr);
        qn__nvptx_combine(g, c->combine, c->type, qn__gep(g, g->i8, base, bytes), v);
        qn__end_branch(g, &then, NULL);
    } else {
        qn__store_at(g, none, at, (unsigned)size);
    }
    qn__loop_close(g, &once);
}

/** Elements from the first of a view to its last one. */
static LLVMValueRef span_of(lower *g, const copy *c)
{
    LLVMValueRef n = qn__const_i64(g, 1), one = n;
    for (int d = 0; d < g->k->param[c->param].rank; d++) {
        const qn_dim_fact *dim = &g->f->param[c->param].dim[d];
        if (!dim->n_digits)
            continue;
        LLVMValueRef last = LLVMBuildSub(g->b, qn__fact(g, &dim->extent), one, ""),
                     stride = qn__fact(g, &g->f->digit[dim->first_digit].stride);
        n = LLVMBuildAdd(g->b, n, LLVMBuildMul(g->b, last, stride, ""), "");
    }
    return n;
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
        c.is_end = is_end;
        qn__share_out(g, span_of(g, &c), thread, threads, for_element, &c);
    }
}

/** Whether blocks collect: all copies of a fixed size have room for their views, none of these has
 * elements before its first one, and a block has an update for each element. NULL: they do. */
static LLVMValueRef are_collected(lower *g, LLVMValueRef iterations)
{
    LLVMValueRef ok = NULL, zero = qn__const_i64(g, 0), elements = zero, least;
    copy c;
    if (!g->grid->private_room)
        return NULL;
    for (int param = 0; param < g->k->n_params; param++) {
        if (!find_copy(g->k, g->f, g->grid, param, &c))
            continue;
        LLVMValueRef n = span_of(g, &c), room = qn__const_i64(g, c.bytes / qn_dtype_bytes(c.type));
        ok = qn__mask_and(g, ok, LLVMBuildICmp(g->b, LLVMIntULE, n, room, ""));
        elements = LLVMBuildAdd(g->b, elements, n, "");
        for (int d = 0; d < g->k->param[param].rank; d++) {
            const qn_dim_fact *dim = &g->f->param[param].dim[d];
            const qn_fact *stride = &g->f->digit[dim->first_digit].stride;
            if (dim->n_digits && stride->kind != QN_FACT_EXACT)
                ok = qn__mask_and(g, ok,
                                  LLVMBuildICmp(g->b, LLVMIntSGE, qn__fact(g, stride), zero, ""));
        }
    }
    least = LLVMBuildMul(g->b, elements, qn__nvptx_register(g, "nctaid.x", g->i64), "");
    return qn__mask_and(g, ok, LLVMBuildICmp(g->b, LLVMIntULE, least, iterations, ""));
}

void qn__private_open(lower *g, LLVMValueRef iterations)
{
    if (!g->grid->privatized)
        return;
    g->collects = are_collected(g, iterations);
    branch then = qn__begin_branch(g, g->collects);
    for_all(g, false);
    qn__end_branch(g, &then, NULL);
    qn__nvptx_barrier(g);
}

void qn__private_close(lower *g)
{
    if (!g->grid->privatized)
        return;
    qn__nvptx_barrier(g);
    branch then = qn__begin_branch(g, g->collects);
    for_all(g, true);
    qn__end_branch(g, &then, NULL);
}
