/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_add.c: what a reduce of a block has in shared memory, added in order: by the first threads,
 * one for each iteration of the tile.
 */
#include "jit/lower/wide.h"
#include "jit/target/nvptx/block_parts.h"

#include <string.h>

/** Points that are read from shared memory before the first of them is added: of so many bytes, and
 * at most so many. */
enum { BYTES_TOGETHER = 64, MOST_TOGETHER = 16 };

LLVMValueRef qn__block_place(lower *g, const block_fold *m, int n_array, LLVMValueRef q,
                             LLVMValueRef x, LLVMValueRef k)
{
    const block_array *v = &m->array[n_array];
    LLVMValueRef n = LLVMBuildUDiv(g->b, q, qn__const_i64(g, m->chunk), "");
    LLVMValueRef at = LLVMBuildAnd(g->b, n, qn__const_i64(g, 1), "");
    at = g->kept ? LLVMBuildMul(g->b, q, qn__const_i64(g, v->by_k), "")
                 : LLVMBuildMul(g->b, at, qn__const_i64(g, m->buffer_bytes), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildMul(g->b, x, qn__const_i64(g, v->by_x), ""), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildMul(g->b, k, qn__const_i64(g, v->by_k), ""), "");
    at = LLVMBuildAdd(g->b, at, qn__const_i64(g, m->first), "");
    return qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/** `count` neighbouring points, from number q of a multiple of count on. */
static void get_points(lower *g, const block_fold *m, const block_array *v, LLVMValueRef from,
                       LLVMValueRef q, int count, LLVMValueRef *out)
{
    int piece = (int)(16 / m->bytes);
    bool in_pieces = count % piece == 0 && v->by_k == m->bytes;
    LLVMValueRef offset = LLVMBuildMul(g->b, q, qn__const_i64(g, v->by_k), "");
    from = qn__gep(g, g->i8, from, offset);
    for (int n = 0; n < count; n += in_pieces ? piece : 1) {
        LLVMValueRef at = qn__block_further(g, v, from, 0, n);
        const bundle b = {qn__memory_type(g, m->r.type), (int)m->bytes, in_pieces ? piece : 1};
        qn__load_bundle(g, b, at, out + n);
    }
    for (int n = 0; n < count; n++)
        out[n] = qn__to_register(g, m->r.type, out[n]);
}

/* ---------------------------------------------------------------- sums */

/** acc with `count` points added whose values are known: array n's from value[n * count] on. */
static LLVMValueRef add_values(lower *g, const block_fold *m, const LLVMValueRef *value, int count,
                               LLVMValueRef acc)
{
    if (m->r.is_unordered && (count & (count - 1)) == 0) { /* pairs: few wait for one another */
        LLVMValueRef pair[MOST_TOGETHER];
        memcpy(pair, value, (size_t)count * sizeof *value);
        for (; count > 1; count /= 2)
            for (int n = 0; n < count / 2; n++)
                pair[n] = qn__combine(g, &m->r, pair[2 * n], pair[2 * n + 1]);
        return qn__combine(g, &m->r, acc, pair[0]);
    }
    for (int n = 0; n < count; n++) {
        addend a;
        a.value[0] = value[n];
        a.factor[0] = m->n_arrays > 1 ? value[count + n] : NULL;
        acc = qn__add_point(g, &m->r, acc, &a, 0);
    }
    return acc;
}

/** Adds points of this thread's iteration, `step` at a time; the first of the chunk stands at
 * `from`. The values of a step are read while those of the step before are added. */
static LLVMValueRef add_steps(lower *g, const block_fold *m, const LLVMValueRef *from, span s,
                              int step, LLVMValueRef acc)
{
    const int n_values = m->n_arrays * step;
    LLVMValueRef state[2 * MOST_TOGETHER + 1], next[2 * MOST_TOGETHER];
    loop l;
    if (qn__is_known_empty(s))
        return acc;
    LLVMValueRef is_some = LLVMBuildICmp(g->b, LLVMIntNE, s.low, s.high, ""),
                 last = LLVMBuildSub(g->b, s.high, qn__const_i64(g, step), "");
    last = LLVMBuildSelect(g->b, is_some, last, s.low, "");
    for (int n = 0; n < m->n_arrays; n++)
        get_points(g, m, &m->array[n], from[n], s.low, step, state + n * step);
    state[n_values] = acc;
    if (!qn__is_known_empty((span){s.low, last})) {
        qn__loop_open(g, &l, (span){s.low, last}, step, LOOP_MAY_BE_EMPTY);
        qn__loop_carry(g, &l, state, n_values + 1);
        LLVMValueRef after = LLVMBuildAdd(g->b, l.index, qn__const_i64(g, step), "");
        for (int n = 0; n < m->n_arrays; n++)
            get_points(g, m, &m->array[n], from[n], after, step, next + n * step);
        state[n_values] = add_values(g, m, state, step, state[n_values]);
        memcpy(state, next, (size_t)n_values * sizeof *next);
        qn__loop_close(g, &l);
    }
    LLVMValueRef sum = add_values(g, m, state, step, state[n_values]);
    return LLVMBuildSelect(g->b, is_some, sum, acc, "");
}

/** acc with points [0, n) of this thread's iteration added. */
static LLVMValueRef add_range(lower *g, const block_fold *m, const LLVMValueRef *from,
                              LLVMValueRef n, LLVMValueRef acc)
{
    int64_t step =
        BYTES_TOGETHER / m->bytes < MOST_TOGETHER ? BYTES_TOGETHER / m->bytes : MOST_TOGETHER;
    step = step < m->chunk ? step : m->chunk;
    LLVMValueRef whole = LLVMBuildAnd(g->b, n, qn__const_i64(g, -step), "");
    acc = add_steps(g, m, from, (span){qn__const_i64(g, 0), whole}, (int)step, acc);
    return add_steps(g, m, from, (span){whole, n}, 1, acc);
}

LLVMValueRef qn__block_add(lower *g, const block_fold *m, const block_part *c, LLVMValueRef points,
                           LLVMValueRef acc)
{
    LLVMValueRef zero = qn__const_i64(g, 0);
    LLVMValueRef mine = LLVMBuildICmp(g->b, LLVMIntULT, m->thread, qn__const_i64(g, m->tile), "");
    branch then = qn__begin_branch(g, mine);
    LLVMValueRef from[2], sum = acc;
    qn__branch_keep(g, &then, &sum, 1);
    for (int n = 0; n < m->n_arrays; n++)
        from[n] = qn__block_place(g, m, n, c->q, m->thread, zero);
    if (qn__is_extremum(&m->r)) {
        block_fold any = *m;
        any.r.is_unordered = true;
        LLVMValueRef v = add_range(g, &any, from, points, m->r.identity);
        branch again = qn__begin_branch(
            g, LLVMBuildFCmp(g->b, LLVMRealOEQ, v, LLVMConstNull(g->f32), ""));
        qn__branch_keep(g, &again, &v, 1);
        v = add_range(g, m, from, points, m->r.identity);
        qn__end_branch(g, &again, NULL);
        sum = qn__combine(g, &m->r, acc, v);
    } else {
        sum = add_range(g, m, from, points, acc);
    }
    qn__end_branch(g, &then, NULL);
    return sum;
}
