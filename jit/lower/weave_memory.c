/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave_memory.c: registers and chunks of a weave in memory, plain, under masks and with their
 * bytes in the order of members.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/weave.h"

/** A register, or what of it lies in memory: `n` elements of `unit` bytes from byte `at` of the
 * step on; the first `inside` of them are its own. */
typedef struct woven_piece {
    int at, unit, n, inside;
} woven_piece;

LLVMTypeRef qn__units(const lower *g, int bytes, int n)
{
    return LLVMVectorType(qn__int_type(g, 8 * bytes), (unsigned)n);
}

LLVMValueRef qn__as_units(lower *g, LLVMValueRef v, int bytes, int n)
{
    return LLVMBuildBitCast(g->b, v, qn__units(g, bytes, n), "");
}

/* ---------------------------------------------------------------- bytes of a chunk */

LLVMValueRef qn__sort_chunks(lower *g, const qn_weave *w, LLVMValueRef v, int bytes, bool is_load)
{
    int index[QN_MOST_UNITS];
    for (int i = 0; i < bytes; i++)
        index[i] = -1;
    for (int i = 0; i < bytes; i += QN_CHUNK_BYTES)
        for (int l = 0; l < w->per_chunk; l++)
            for (int b = 0; b < w->n * w->bytes; b++) {
                int in_memory = l * w->n * w->bytes + b;
                int sorted = b / w->bytes * w->unit + l * w->bytes + b % w->bytes;
                index[i + (is_load ? sorted : in_memory)] = i + (is_load ? in_memory : sorted);
            }
    return qn__shuffle(g, qn__as_units(g, v, 1, bytes), NULL, index, bytes);
}

/** Chunks of `words` words of four bytes, from side by side to 16 bytes each, or back. */
static LLVMValueRef spread_chunks(lower *g, LLVMValueRef v, int bytes, int words, bool is_load)
{
    int index[QN_MOST_UNITS], n = bytes / 4;
    for (int i = 0; i < n && is_load; i++)
        index[i] = i % 4 < words ? i / 4 * words + i % 4 : -1;
    for (int i = 0; i < n && !is_load; i++)
        index[i] = i < n / 4 * words ? i / words * 4 + i % words : -1;
    return qn__shuffle(g, qn__as_units(g, v, 4, n), NULL, index, n);
}

/* ---------------------------------------------------------------- memory */

static int chunk_bytes(const qn_weave *w)
{
    return w->per_chunk * w->n * w->bytes;
}

static int all_bytes(const qn_weave *w)
{
    return w->lanes * w->n * w->bytes;
}

LLVMValueRef qn__load_plain(lower *g, const woven *x, int at, int unit, int n)
{
    LLVMTypeRef t = qn__units(g, unit, n);
    return qn__load_at(g, t, qn__ahead(g, x->pointer, at), (unsigned)x->w->bytes);
}

void qn__store_plain(lower *g, const woven *x, int at, LLVMValueRef v)
{
    qn__store_at(g, v, qn__ahead(g, x->pointer, at), (unsigned)x->w->bytes);
}

/** A number in all elements of a type. */
static LLVMValueRef in_all(lower *g, LLVMTypeRef t, LLVMValueRef number)
{
    static const int first[QN_MOST_UNITS] = {0};
    if (LLVMIsConstant(number))
        return qn__constant_like(t, number);
    return qn__shuffle(g, qn__insert(g, LLVMGetPoison(t), number, 0), NULL, first,
                       (int)LLVMGetVectorSize(t));
}

/**
 * The elements that are places of active lanes; NULL: all. Lanes are compared with the count at
 * once, as LLVM 19 makes mistakes with masks that are put together (lower/branch.c).
 */
static LLVMValueRef mask_of(lower *g, const woven *x, bool is_load, woven_piece of)
{
    enum { NEVER = 127 }; /* more lanes than there are */
    const qn_weave *w = x->w;
    uint32_t places = is_load ? w->places | w->known : w->places;
    LLVMTypeRef t = of.n <= 16 ? g->i32 : of.n <= 32 ? g->i16 : g->i8;
    LLVMValueRef lane[QN_MOST_UNITS];
    bool is_whole = !x->count;
    for (int i = 0; i < of.n; i++) {
        int element = (of.at + i * of.unit) / w->bytes;
        bool is_moved = i < of.inside && (places >> element % w->n & 1);
        lane[i] =
            x->count ? qn__int(t, is_moved ? element / w->n : NEVER) : qn__int(g->i1, is_moved);
        is_whole = is_whole && is_moved;
    }
    LLVMValueRef lanes = LLVMConstVector(lane, (unsigned)of.n);
    if (!x->count)
        return is_whole ? NULL : lanes;
    LLVMValueRef count = LLVMBuildTrunc(g->b, x->count, t, "");
    return LLVMBuildICmp(g->b, LLVMIntULT, lanes, in_all(g, LLVMTypeOf(lanes), count), "");
}

/** A register, under a mask where lanes are counted or elements are not its own. */
static LLVMValueRef load_piece(lower *g, const woven *x, woven_piece of)
{
    LLVMValueRef mask = mask_of(g, x, true, of), at = qn__ahead(g, x->pointer, of.at);
    LLVMTypeRef t = qn__units(g, of.unit, of.n);
    return qn__load_masked(g, t, at, (unsigned)x->w->bytes, mask);
}

static void store_piece(lower *g, const woven *x, woven_piece of, LLVMValueRef v)
{
    LLVMValueRef mask = mask_of(g, x, false, of), at = qn__ahead(g, x->pointer, of.at);
    qn__store_masked(g, v, at, (unsigned)x->w->bytes, mask);
}

LLVMValueRef qn__load_chunk(lower *g, const woven *x, int c)
{
    int own = chunk_bytes(x->w), at = c * own, all = all_bytes(x->w);
    if (at + QN_CHUNK_BYTES <= all)
        return qn__load_plain(g, x, at, 1, QN_CHUNK_BYTES);
    if (all < QN_CHUNK_BYTES)
        return qn__resized(g, qn__load_plain(g, x, at, 1, own), QN_CHUNK_BYTES);
    int from = all - QN_CHUNK_BYTES;
    LLVMValueRef v = qn__load_plain(g, x, from, 1, QN_CHUNK_BYTES);
    return qn__resized(g, qn__part_of(g, v, at - from, own), QN_CHUNK_BYTES);
}

void qn__store_chunk(lower *g, const woven *x, int c, LLVMValueRef v)
{
    int own = chunk_bytes(x->w), at = c * own;
    bool is_whole = at + QN_CHUNK_BYTES <= all_bytes(x->w);
    qn__store_plain(g, x, at, qn__resized(g, v, is_whole ? QN_CHUNK_BYTES : own));
}

/* ---------------------------------------------------------------- whole registers */

int qn__weave_units(const qn_weave *w)
{
    return w->register_bytes / w->unit;
}

bool qn__may_count_lanes(const qn_weave *w)
{
    return (w->method == QN_WEAVE_PAIRS && w->is_side_by_side) || w->method == QN_WEAVE_WORDS;
}

/** Register r without chunks; the last one may be a part. */
static woven_piece register_at(const qn_weave *w, int r)
{
    int n = qn__weave_units(w), at = r * w->register_bytes, left = (all_bytes(w) - at) / w->unit;
    n = left < n ? left : n;
    return (woven_piece){at, w->unit, n, n};
}

/** Register r of chunks that lie side by side: in words, or in bytes where some are left out. */
static woven_piece chunks_at(const woven *x, bool is_load, int r)
{
    const qn_weave *w = x->w;
    uint32_t places = is_load ? w->places | w->known : w->places, all = (1u << w->n) - 1;
    int unit = x->count || (places & all) != all ? 1 : 4, n = w->register_bytes / unit;
    int inside = w->register_bytes / QN_CHUNK_BYTES * chunk_bytes(w), at = r * inside;
    bool may_read_on = is_load && unit > 1 && at + w->register_bytes <= all_bytes(w);
    return (woven_piece){at, unit, n, may_read_on ? n : inside / unit};
}

/** Register r of chunks, whose bytes are sorted. */
static LLVMValueRef load_chunks(lower *g, const woven *x, int r)
{
    const qn_weave *w = x->w;
    int bytes = w->register_bytes, n = bytes / QN_CHUNK_BYTES, own = chunk_bytes(w);
    LLVMValueRef v, chunk[QN_MOST_UNITS / QN_CHUNK_BYTES];
    if (w->is_side_by_side) {
        v = load_piece(g, x, chunks_at(x, true, r));
        v = own < QN_CHUNK_BYTES ? spread_chunks(g, v, bytes, own / 4, true) : v;
    } else {
        for (int c = 0; c < n; c++)
            chunk[c] = qn__load_chunk(g, x, r * n + c);
        v = qn__join_pieces(g, chunk, n, QN_CHUNK_BYTES);
    }
    return qn__as_units(g, qn__sort_chunks(g, w, v, bytes, true), w->unit, bytes / w->unit);
}

static void store_chunks(lower *g, const woven *x, int r, LLVMValueRef v)
{
    const qn_weave *w = x->w;
    int bytes = w->register_bytes, n = bytes / QN_CHUNK_BYTES, own = chunk_bytes(w);
    v = qn__sort_chunks(g, w, v, bytes, false);
    for (int c = 0; c < n && !w->is_side_by_side; c++)
        qn__store_chunk(g, x, r * n + c, qn__part_of(g, v, c * QN_CHUNK_BYTES, QN_CHUNK_BYTES));
    if (!w->is_side_by_side)
        return;
    woven_piece at = chunks_at(x, false, r);
    v = own < QN_CHUNK_BYTES ? spread_chunks(g, v, bytes, own / 4, false) : v;
    store_piece(g, x, at, qn__as_units(g, v, at.unit, at.n));
}

LLVMValueRef qn__load_register(lower *g, const woven *x, int r)
{
    const qn_weave *w = x->w;
    return w->per_chunk > 1
               ? load_chunks(g, x, r)
               : qn__resized(g, load_piece(g, x, register_at(w, r)), qn__weave_units(w));
}

void qn__store_register(lower *g, const woven *x, int r, LLVMValueRef v)
{
    const woven_piece at = register_at(x->w, r);
    if (x->w->per_chunk > 1)
        store_chunks(g, x, r, v);
    else
        store_piece(g, x, at, qn__resized(g, v, at.n));
}
