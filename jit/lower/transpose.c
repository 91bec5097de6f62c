/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transpose.c: loads and stores that run along the jammed dimension instead of the lanes
 * (schedule/transpose.c). For each lane, a piece of up to 16 bytes along the jammed dimension is
 * loaded; pieces are joined to registers and transposed by log2(piece) steps of interleaving, each
 * within 16 bytes, which x86 has as single instructions (unpack). Registers and pieces of `q`
 * elements, lanes in groups of q:
 *
 *   register k = piece of lane k, of lane q + k, of lane 2q + k, ...      (k < q)
 *   a step:      register 2k = low halves of k and k + q/2 interleaved, register 2k + 1 = high
 * halves, in each group after log2 q steps register k holds element k of all lanes, in order; the
 * same steps lead back
 *
 * Lanes beyond the domain load the piece of lane 0, which exists.
 */
#include "jit/lower/weave.h"

#include "jit/schedule/forms.h"

enum { PIECE_BYTES = QN_CHUNK_BYTES };

/** One transposed access: piece of q elements for each of `lanes` lanes of part p. */
typedef struct pieces {
    uint32_t inst;
    int p, q, lanes;
    int64_t bytes; /* of an element */
    LLVMTypeRef element;
    LLVMValueRef base; /* where lane 0 begins */
    int64_t step;      /* bytes from lane to lane */
    LLVMValueRef mask; /* lanes inside the domain, NULL: all */
} pieces;

/* ---------------------------------------------------------------- shuffles */

LLVMValueRef qn__join_pieces(lower *g, LLVMValueRef *v, int n, int q)
{
    int index[QN_MOST_LANES];
    for (; n > 1; n /= 2, q *= 2) {
        for (int i = 0; i < 2 * q; i++)
            index[i] = i;
        for (int i = 0; i < n / 2; i++)
            v[i] = qn__shuffle(g, v[2 * i], v[2 * i + 1], index, 2 * q);
    }
    return v[0];
}

void qn__transpose_groups(lower *g, LLVMValueRef *r, int q, int n)
{
    LLVMValueRef next[PIECE_BYTES];
    int low[QN_MOST_LANES], high[QN_MOST_LANES];
    for (int i = 0; i < n; i++) {
        int group = i / q * q, at = i % q;
        low[i] = group + at / 2 + (at % 2 ? n : 0);
        high[i] = low[i] + q / 2;
    }
    for (int steps = q; steps > 1; steps /= 2) {
        for (int k = 0; k < q / 2; k++) {
            next[2 * k] = qn__shuffle(g, r[k], r[k + q / 2], low, n);
            next[2 * k + 1] = qn__shuffle(g, r[k], r[k + q / 2], high, n);
        }
        for (int k = 0; k < q; k++)
            r[k] = next[k];
    }
}

/* ---------------------------------------------------------------- pieces in memory */

static bool is_transposed(const lower *g, uint32_t i)
{
    bool are_first = g->jam_active == (UINT64_C(1) << g->jam) - 1;
    return g->across >= 0 && g->width > 1 && g->jam > 1 && are_first && qn__buffer_of(g, i) < 0 &&
           qn__is_transposed(&g->a, g->block->lane_dim, g->across, g->site[i]);
}

/** Where the pieces of vector u from jammed iteration j on lie in memory. */
static pieces pieces_at(lower *g, uint32_t i, int u, int j, int q)
{
    address x;
    pieces s = {.inst = i, .p = u * g->jam_max + j, .q = q, .lanes = g->width};
    int dtype = qn__access_dtype(g->k, i);
    s.bytes = qn_dtype_bytes(dtype);
    s.element = qn__memory_type(g, dtype);
    s.mask = g->tail_mask[s.p];
    x = qn__displaced(g, i, s.p, NULL);
    s.base = x.pointer;
    s.step = x.lane_bytes;
    return s;
}

/** Pointer of lane l; of lane 0 if l is outside the domain. */
static LLVMValueRef lane_pointer(lower *g, const pieces *s, int l)
{
    LLVMValueRef offset = qn__const_i64(g, qn__wrap_mul(l, s->step));
    if (s->mask) {
        LLVMValueRef is_inside = qn__extract(g, s->mask, l);
        offset = LLVMBuildSelect(g->b, is_inside, offset, qn__const_i64(g, 0), "");
    }
    return qn__gep(g, g->i8, s->base, offset);
}

static LLVMValueRef load_piece(lower *g, const pieces *s, int l)
{
    LLVMTypeRef t = LLVMVectorType(s->element, (unsigned)s->q);
    return qn__load_at(g, t, lane_pointer(g, s, l), (unsigned)s->bytes);
}

/** The pieces as q vectors, one for each jammed iteration. */
static void load_pieces(lower *g, const pieces *s, LLVMValueRef *r)
{
    int n = s->lanes < s->q ? s->q : s->lanes, groups = n / s->q;
    for (int k = 0; k < s->q; k++) {
        LLVMValueRef v[QN_MOST_LANES] = {NULL};
        for (int m = 0; m < groups; m++)
            v[m] = load_piece(g, s, m * s->q + k < s->lanes ? m * s->q + k : 0);
        r[k] = qn__join_pieces(g, v, groups, s->q);
    }
    qn__transpose_groups(g, r, s->q, n);
    for (int k = 0; k < s->q; k++)
        r[k] = qn__resized(g, r[k], s->lanes);
}

/** Elements of a piece from jammed iteration j on: a power of two, of one iteration of the third
 * dimension of a tile. */
static int piece_of(const lower *g, int64_t bytes, int j)
{
    int q = 1, end = (j / g->n_across + 1) * g->n_across;
    end = end < g->jam ? end : g->jam;
    while (q * 2 * bytes <= PIECE_BYTES && j + q * 2 <= end)
        q *= 2;
    return q;
}

/* ---------------------------------------------------------------- accesses */

bool qn__lower_transposed_load(lower *g, uint32_t i)
{
    if (!is_transposed(g, i))
        return false;
    int dtype = g->k->inst[i].type;
    int64_t bytes = qn_dtype_bytes(dtype);
    for (int u = 0; u < g->unroll; u++)
        for (int j = 0, q; j < g->jam; j += q) {
            LLVMValueRef r[PIECE_BYTES];
            q = piece_of(g, bytes, j);
            pieces s = pieces_at(g, i, u, j, q);
            load_pieces(g, &s, r);
            for (int k = 0; k < q; k++)
                qn__set(g, i, s.p + k, qn__to_register(g, dtype, r[k]), g->depth);
        }
    return true;
}

static void store_pieces(lower *g, const pieces *s, LLVMValueRef *r)
{
    int n = s->lanes < s->q ? s->q : s->lanes;
    for (int k = 0; k < s->q; k++) /* what is added is not stored */
        r[k] = qn__resized(g, r[k], n);
    qn__transpose_groups(g, r, s->q, n);
    for (int l = 0; l < s->lanes; l++) {
        if (s->mask && LLVMIsNull(LLVMGetAggregateElement(s->mask, (unsigned)l)))
            continue;
        LLVMValueRef piece = qn__part_of(g, r[l % s->q], l / s->q * s->q, s->q);
        qn__store_at(g, piece, lane_pointer(g, s, l), (unsigned)s->bytes);
    }
}

bool qn__lower_transposed_store(lower *g, uint32_t i, uint32_t value)
{
    if (!is_transposed(g, i))
        return false;
    int dtype = qn__access_dtype(g->k, i);
    int64_t bytes = qn_dtype_bytes(dtype);
    for (int u = 0; u < g->unroll; u++)
        if (!qn__has_known_lanes(g->tail_mask[u * g->jam_max]))
            return false; /* a piece would need a branch for each lane */
    for (int u = 0; u < g->unroll; u++)
        for (int j = 0, q; j < g->jam; j += q) {
            LLVMValueRef r[PIECE_BYTES];
            q = piece_of(g, bytes, j);
            pieces s = pieces_at(g, i, u, j, q);
            for (int k = 0; k < q; k++)
                r[k] = qn__to_memory(g, dtype, qn__vector(g, value, s.p + k));
            store_pieces(g, &s, r);
        }
    return true;
}
