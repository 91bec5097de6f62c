/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave.c: loads and stores of members that lie between one another, by the ways of
 * analysis/weave.h. All shuffles are of units, which are integers. Index -1 is any element.
 */
#include "jit/lower/weave.h"
#include "jit/lower/hooks.h"

enum { MOST_UNITS = 64, MOST_REGISTERS = 16 };

static LLVMTypeRef unit_type(const lower *g, int bytes)
{
    return LLVMIntTypeInContext(g->context, 8u * (unsigned)bytes);
}

static LLVMValueRef as_units(lower *g, LLVMValueRef v, int bytes, int n)
{
    return LLVMBuildBitCast(g->b, v, LLVMVectorType(unit_type(g, bytes), (unsigned)n), "");
}

static LLVMValueRef pick(lower *g, LLVMValueRef a, LLVMValueRef b, const int *index, int n)
{
    LLVMValueRef at[MOST_UNITS];
    for (int i = 0; i < n; i++)
        at[i] =
            index[i] < 0 ? LLVMGetPoison(g->i32) : LLVMConstInt(g->i32, (unsigned)index[i], false);
    return LLVMBuildShuffleVector(g->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)),
                                  LLVMConstVector(at, (unsigned)n), "");
}

/** n elements of a vector from element `first` on. */
static LLVMValueRef part_of(lower *g, LLVMValueRef v, int first, int n)
{
    int index[MOST_UNITS];
    for (int i = 0; i < n; i++)
        index[i] = first + i;
    return pick(g, v, NULL, index, n);
}

/** The first n of a vector, or the vector and n - have elements of any value. */
static LLVMValueRef resized(lower *g, LLVMValueRef v, int n)
{
    int have = (int)LLVMGetVectorSize(LLVMTypeOf(v)), index[MOST_UNITS];
    for (int i = 0; i < n; i++)
        index[i] = i < have ? i : -1;
    return have == n ? v : pick(g, v, NULL, index, n);
}

/* ---------------------------------------------------------------- permutations of two registers */

/**
 * n units of one or two vectors of `units` units. Whole registers are permuted by one instruction,
 * which LLVM would not always find.
 */
static LLVMValueRef permuted(lower *g, LLVMValueRef a, LLVMValueRef b, const int *index, int units,
                             int n)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    unsigned bits = LLVMGetIntTypeWidth(LLVMGetElementType(t));
    LLVMValueRef registers[2] = {a, b}, at[MOST_UNITS];
    if (!g->f->target->permutes_pairs || bits < (b ? 16 : 32) ||
        8 * g->f->target->vector_bytes != (int)bits * units)
        return pick(g, a, b, index, n);
    for (int i = 0; i < units; i++)
        at[i] = LLVMConstInt(LLVMGetElementType(t), i < n && index[i] > 0 ? (unsigned)index[i] : 0,
                             false);
    LLVMValueRef v =
        g->hooks->permute(g, registers, b ? 2 : 1, LLVMConstVector(at, (unsigned)units));
    return resized(g, v, n);
}

/** Members that lie between one another in registers side by side. */
typedef struct strand {
    int registers, units; /* of `units` units each */
    int n, lanes;         /* members, of so many units */
    uint32_t places;      /* those that are wanted or given, as bits */
} strand;

/** Member m: the units m, m + n, m + 2 n, ... */
static LLVMValueRef take(lower *g, const strand *s, const LLVMValueRef *v, int m)
{
    const int registers = s->registers, units = s->units, n = s->n, lanes = s->lanes;
    LLVMValueRef all = NULL;
    int index[MOST_UNITS], done = 0; /* lanes */
    for (int r = 0, next; r < registers; r = next) {
        bool is_first = !all;
        next = is_first && r + 1 < registers ? r + 2 : r + 1;
        int n_now = lanes;
        while (n_now > 0 && m + n * (n_now - 1) >= next * units)
            n_now--;
        for (int l = 0; l < units; l++) {
            int at = m + n * l - r * units;
            bool is_here = l >= done && l < n_now;
            index[l] = is_here ? at + (is_first ? 0 : units) : l < done ? l : -1;
        }
        if (is_first)
            all = permuted(g, v[r], next > r + 1 ? v[r + 1] : NULL, index, units,
                           next == registers ? lanes : units);
        else if (n_now > done)
            all = permuted(g, all, v[r], index, units, units);
        done = n_now;
    }
    return resized(g, all, lanes);
}

/** member[apart * m] for all places m. */
static void unzip(lower *g, const strand *s, const LLVMValueRef *v, LLVMValueRef *member, int apart)
{
    int shuffles, factor = qn__weave_factor(s->registers, s->n, s->places, true, &shuffles);
    for (int m = 0; m < s->n && factor == 1; m++)
        if (s->places >> m & 1)
            member[apart * m] = take(g, s, v, m);
    const strand few = {factor, s->units, factor, s->units, 0};
    for (int a = 0; a < factor && factor > 1; a++) {
        LLVMValueRef own[MOST_REGISTERS];
        const strand inner = {s->registers / factor, s->units, s->n / factor, s->lanes,
                              qn__weave_places(s->places, s->n, factor, a)};
        if (!inner.places)
            continue;
        for (int k = 0; k < inner.registers; k++)
            own[k] = take(g, &few, v + k * factor, a);
        unzip(g, &inner, own, member + a * apart, apart * factor);
    }
}

/** Register r of those that hold n members of `lanes` units, member by member of a lane; NULL: it
 * holds none. */
static LLVMValueRef put(lower *g, const strand *s, const LLVMValueRef *member, int apart, int r)
{
    const int n = s->n, lanes = s->lanes, units = s->units;
    LLVMValueRef all = NULL;
    int index[MOST_UNITS], n_put = 0;
    for (int t = 0; t < units; t++)
        index[t] = -1;
    for (int m = 0; m < n; m++) {
        LLVMValueRef own = member[apart * m];
        bool is_here = false;
        for (int t = 0; t < units && own; t++) {
            int at = r * units + t;
            if (at % n != m || at / n >= lanes)
                continue;
            index[t] = (n_put == 0 ? 0 : units) + at / n;
            is_here = true;
        }
        if (!is_here)
            continue;
        own = resized(g, own, units);
        n_put++;
        if (n_put == 1) {
            all = own;
            continue;
        }
        all = permuted(g, all, own, index, units, units);
        for (int t = 0; t < units; t++)
            index[t] = index[t] < 0 ? -1 : t;
    }
    return n_put == 1 ? permuted(g, all, NULL, index, units, units) : all;
}

/** The inverse of unzip; a register of no member becomes NULL. */
static void zip(lower *g, const strand *s, const LLVMValueRef *member, int apart, LLVMValueRef *v)
{
    LLVMValueRef own[3][MOST_REGISTERS] = {{NULL}};
    int shuffles, factor = qn__weave_factor(s->registers, s->n, s->places, false, &shuffles);
    for (int r = 0; r < s->registers && factor == 1; r++)
        v[r] = put(g, s, member, apart, r);
    for (int a = 0; a < factor && factor > 1; a++) {
        const strand inner = {s->registers / factor, s->units, s->n / factor, s->lanes,
                              qn__weave_places(s->places, s->n, factor, a)};
        zip(g, &inner, member + a * apart, apart * factor, own[a]);
    }
    const strand few = {factor, s->units, factor, s->units, 0};
    for (int r = 0; r < s->registers && factor > 1; r++) {
        LLVMValueRef of[3] = {own[0][r / factor], own[1][r / factor], own[2][r / factor]};
        v[r] = put(g, &few, of, 1, r % factor);
    }
}

/* ---------------------------------------------------------------- bytes of a chunk */

/** Sorts the bytes of each chunk by place, or back. */
static LLVMValueRef sort_chunks(lower *g, const qn_weave *w, LLVMValueRef v, int bytes,
                                bool is_load)
{
    int index[MOST_UNITS];
    for (int i = 0; i < bytes; i++)
        index[i] = -1;
    for (int i = 0; i < bytes; i += QN_CHUNK_BYTES)
        for (int l = 0; l < w->per_chunk; l++)
            for (int b = 0; b < w->n * w->bytes; b++) {
                int in_memory = l * w->n * w->bytes + b;
                int sorted = b / w->bytes * w->unit + l * w->bytes + b % w->bytes;
                index[i + (is_load ? sorted : in_memory)] = i + (is_load ? in_memory : sorted);
            }
    return pick(g, as_units(g, v, 1, bytes), NULL, index, bytes);
}

/** Chunks of `words` words of four bytes, from side by side to 16 bytes each, or back. */
static LLVMValueRef spread_chunks(lower *g, LLVMValueRef v, int bytes, int words, bool is_load)
{
    int index[MOST_UNITS], n = bytes / 4;
    for (int i = 0; i < n && is_load; i++)
        index[i] = i % 4 < words ? i / 4 * words + i % 4 : -1;
    for (int i = 0; i < n && !is_load; i++)
        index[i] = i < n / 4 * words ? i / words * 4 + i % words : -1;
    return pick(g, as_units(g, v, 4, n), NULL, index, n);
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

/** `n` elements of `unit` bytes from byte `at` on. */
static LLVMValueRef load_plain(lower *g, const woven *x, int at, int unit, int n)
{
    LLVMTypeRef t = LLVMVectorType(unit_type(g, unit), (unsigned)n);
    LLVMValueRef v = qn__load_at(g, t, qn__ahead(g, x->pointer, at), (unsigned)x->w->bytes);
    return v;
}

static void store_plain(lower *g, const woven *x, int at, LLVMValueRef v)
{
    qn__store_at(g, v, qn__ahead(g, x->pointer, at), (unsigned)x->w->bytes);
}

/** A number in all elements of a type. */
static LLVMValueRef in_all(lower *g, LLVMTypeRef t, LLVMValueRef number)
{
    static const int first[MOST_UNITS] = {0};
    if (LLVMIsConstant(number))
        return qn__constant_like(t, number);
    LLVMValueRef v =
        LLVMBuildInsertElement(g->b, LLVMGetPoison(t), number, LLVMConstInt(g->i32, 0, false), "");
    return pick(g, v, NULL, first, (int)LLVMGetVectorSize(t));
}

/** A register, or what of it lies in memory: `n` elements of `unit` bytes from byte `at` of the
 * step on; the first `inside` of them are its own. */
typedef struct piece {
    int at, unit, n, inside;
} piece;

/**
 * The elements that are places of active lanes; NULL: all. Lanes are compared with the count at
 * once, as LLVM 19 makes mistakes with masks that are put together (lower/branch.c).
 */
static LLVMValueRef mask_of(lower *g, const woven *x, bool is_load, piece of)
{
    enum { NEVER = 127 }; /* more lanes than there are */
    const qn_weave *w = x->w;
    uint32_t places = is_load ? w->places | w->known : w->places;
    LLVMTypeRef t = of.n <= 16 ? g->i32 : of.n <= 32 ? g->i16 : g->i8;
    LLVMValueRef lane[MOST_UNITS];
    bool is_whole = !x->count;
    for (int i = 0; i < of.n; i++) {
        int element = (of.at + i * of.unit) / w->bytes;
        bool is_moved = i < of.inside && (places >> element % w->n & 1);
        lane[i] = x->count ? LLVMConstInt(t, (unsigned)(is_moved ? element / w->n : NEVER), false)
                           : LLVMConstInt(g->i1, is_moved, false);
        is_whole = is_whole && is_moved;
    }
    LLVMValueRef lanes = LLVMConstVector(lane, (unsigned)of.n);
    if (!x->count)
        return is_whole ? NULL : lanes;
    LLVMValueRef count = LLVMBuildTrunc(g->b, x->count, t, "");
    return LLVMBuildICmp(g->b, LLVMIntULT, lanes, in_all(g, LLVMTypeOf(lanes), count), "");
}

static LLVMValueRef load_piece(lower *g, const woven *x, piece of)
{
    LLVMValueRef mask = mask_of(g, x, true, of);
    LLVMTypeRef t = LLVMVectorType(unit_type(g, of.unit), (unsigned)of.n);
    if (!mask)
        return load_plain(g, x, of.at, of.unit, of.n);
    LLVMValueRef at = qn__ahead(g, x->pointer, of.at);
    return qn__load_masked(g, t, at, (unsigned)x->w->bytes, mask);
}

static void store_piece(lower *g, const woven *x, piece of, LLVMValueRef v)
{
    LLVMValueRef mask = mask_of(g, x, false, of);
    if (mask)
        qn__store_masked(g, v, qn__ahead(g, x->pointer, of.at), (unsigned)x->w->bytes, mask);
    else
        store_plain(g, x, of.at, v);
}

/** Chunk c as 16 bytes. Where reading on would end beyond the last lane, it begins earlier. */
static LLVMValueRef load_chunk(lower *g, const woven *x, int c)
{
    int own = chunk_bytes(x->w), at = c * own, all = all_bytes(x->w);
    if (at + QN_CHUNK_BYTES <= all)
        return load_plain(g, x, at, 1, QN_CHUNK_BYTES);
    if (all < QN_CHUNK_BYTES)
        return resized(g, load_plain(g, x, at, 1, own), QN_CHUNK_BYTES);
    int from = all - QN_CHUNK_BYTES;
    LLVMValueRef v = load_plain(g, x, from, 1, QN_CHUNK_BYTES);
    return resized(g, part_of(g, v, at - from, own), QN_CHUNK_BYTES);
}

/** What lies behind a chunk inside the step is stored later. */
static void store_chunk(lower *g, const woven *x, int c, LLVMValueRef v)
{
    int own = chunk_bytes(x->w), at = c * own;
    bool is_whole = at + QN_CHUNK_BYTES <= all_bytes(x->w);
    store_plain(g, x, at, resized(g, v, is_whole ? QN_CHUNK_BYTES : own));
}

/* ---------------------------------------------------------------- whole registers */

static int units_of(const qn_weave *w)
{
    return w->register_bytes / w->unit;
}

bool qn__may_count_lanes(const qn_weave *w)
{
    return (w->method == QN_WEAVE_PAIRS && w->is_side_by_side) || w->method == QN_WEAVE_WORDS;
}

/** Register r without chunks; the last one may be a part. */
static piece register_at(const qn_weave *w, int r)
{
    int n = units_of(w), at = r * w->register_bytes, left = (all_bytes(w) - at) / w->unit;
    n = left < n ? left : n;
    return (piece){at, w->unit, n, n};
}

/** Register r of chunks that lie side by side: in words, or in bytes where some are left out. */
static piece chunks_at(const woven *x, bool is_load, int r)
{
    const qn_weave *w = x->w;
    uint32_t places = is_load ? w->places | w->known : w->places, all = (1u << w->n) - 1;
    int unit = x->count || (places & all) != all ? 1 : 4, n = w->register_bytes / unit;
    int inside = w->register_bytes / QN_CHUNK_BYTES * chunk_bytes(w), at = r * inside;
    bool may_read_on = is_load && unit > 1 && at + w->register_bytes <= all_bytes(w);
    return (piece){at, unit, n, may_read_on ? n : inside / unit};
}

/** Register r of chunks, whose bytes are sorted. */
static LLVMValueRef load_chunks(lower *g, const woven *x, int r)
{
    const qn_weave *w = x->w;
    int bytes = w->register_bytes, n = bytes / QN_CHUNK_BYTES, own = chunk_bytes(w);
    LLVMValueRef v, chunk[MOST_UNITS / QN_CHUNK_BYTES];
    if (w->is_side_by_side) {
        v = load_piece(g, x, chunks_at(x, true, r));
        v = own < QN_CHUNK_BYTES ? spread_chunks(g, v, bytes, own / 4, true) : v;
    } else {
        for (int c = 0; c < n; c++)
            chunk[c] = load_chunk(g, x, r * n + c);
        v = qn__join_pieces(g, chunk, n, QN_CHUNK_BYTES);
    }
    return as_units(g, sort_chunks(g, w, v, bytes, true), w->unit, bytes / w->unit);
}

static void store_chunks(lower *g, const woven *x, int r, LLVMValueRef v)
{
    const qn_weave *w = x->w;
    int bytes = w->register_bytes, n = bytes / QN_CHUNK_BYTES, own = chunk_bytes(w);
    v = sort_chunks(g, w, v, bytes, false);
    for (int c = 0; c < n && !w->is_side_by_side; c++)
        store_chunk(g, x, r * n + c, part_of(g, v, c * QN_CHUNK_BYTES, QN_CHUNK_BYTES));
    if (!w->is_side_by_side)
        return;
    piece at = chunks_at(x, false, r);
    v = own < QN_CHUNK_BYTES ? spread_chunks(g, v, bytes, own / 4, false) : v;
    store_piece(g, x, at, as_units(g, v, at.unit, at.n));
}

/* ---------------------------------------------------------------- blends */

/** Which register of n has place m in its lane `at`. */
static int register_of(const qn_weave *w, int m, int at)
{
    int r = 0;
    while ((r * w->lanes + at) % w->n != m)
        r++;
    return r;
}

/** Lane l of vector from[l]. */
static LLVMValueRef blended(lower *g, const qn_weave *w, const LLVMValueRef *v, const int *from)
{
    LLVMValueRef all = NULL;
    int index[MOST_UNITS];
    for (int r = 0; r < w->n; r++) {
        bool is_here = false;
        for (int l = 0; l < w->lanes; l++) {
            index[l] = from[l] == r ? w->lanes + l : l;
            is_here |= from[l] == r;
        }
        if (is_here)
            all = all ? pick(g, all, v[r], index, w->lanes) : v[r];
    }
    return all;
}

static void load_blends(lower *g, const qn_weave *w, const LLVMValueRef *v, LLVMValueRef *member)
{
    int from[MOST_UNITS], index[MOST_UNITS];
    for (int m = 0; m < w->n; m++) {
        for (int l = 0; l < w->lanes; l++) {
            from[l] = register_of(w, m, l);
            index[l] = (w->n * l + m) % w->lanes;
        }
        if (w->places >> m & 1)
            member[m] = pick(g, blended(g, w, v, from), NULL, index, w->lanes);
    }
}

static void store_blends(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef turned[QN_MOST_PLACES];
    int index[MOST_UNITS];
    for (int m = 0; m < w->n; m++) {
        for (int l = 0; l < w->lanes; l++)
            index[(w->n * l + m) % w->lanes] = l;
        turned[m] = pick(g, member[m], NULL, index, w->lanes);
    }
    for (int r = 0; r < w->n; r++) {
        for (int l = 0; l < w->lanes; l++)
            index[l] = (r * w->lanes + l) % w->n;
        store_piece(g, x, register_at(w, r), blended(g, w, turned, index));
    }
}

/* ---------------------------------------------------------------- chunks */

/** Each chunk by itself: places of the lanes of the first register, then of the second. */
static void load_by_chunks(lower *g, const qn_weave *w, const LLVMValueRef *v, LLVMValueRef *member)
{
    int index[MOST_UNITS], chunk = QN_CHUNK_BYTES / w->unit, half = chunk / 2;
    for (int m = 0; m < w->n; m++) {
        for (int l = 0; l < w->lanes; l++) {
            int in = l % chunk;
            index[l] = (in < half ? 0 : w->lanes) + l - in + in % half * 2 + m;
        }
        member[m] = pick(g, v[0], v[1], index, w->lanes);
    }
}

static void store_by_chunks(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    int index[MOST_UNITS], chunk = QN_CHUNK_BYTES / w->unit;
    for (int r = 0; r < w->registers; r++) {
        for (int t = 0; t < w->lanes; t++) {
            int in = t % chunk;
            index[t] = in % 2 * w->lanes + t - in + r * chunk / 2 + in / 2;
        }
        store_piece(g, x, register_at(w, r), pick(g, member[0], member[1], index, w->lanes));
    }
}

/* ---------------------------------------------------------------- pieces */

/** Pieces of `size` units, one of each lane: unit k of all of them becomes r[k]. */
static void transpose_pieces(lower *g, const LLVMValueRef *of, int n, int size, LLVMValueRef *r)
{
    LLVMValueRef own[MOST_UNITS];
    int units = n < size ? size : n;
    for (int k = 0; k < size; k++) {
        for (int c = 0; c < units / size; c++)
            own[c] = of[c * size + k < n ? c * size + k : 0];
        r[k] = qn__join_pieces(g, own, units / size, size);
    }
    qn__transpose_groups(g, r, size, units);
    for (int k = 0; k < size; k++)
        r[k] = resized(g, r[k], n);
}

static void load_windows(lower *g, const woven *x, LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    qn_window window[QN_MOST_PLACES];
    LLVMValueRef of[MOST_UNITS], r[QN_CHUNK_BYTES];
    int n_windows = qn__weave_windows(w, true, window);
    for (int i = 0; i < n_windows; i++) {
        int first = window[i].first, size = window[i].size;
        for (int l = 0; l < w->lanes; l++)
            of[l] = load_plain(g, x, (l * w->n + first) * w->bytes, w->bytes, size);
        transpose_pieces(g, of, w->lanes, size, r);
        for (int k = 0; k < size; k++)
            if (w->places >> (first + k) & 1)
                member[first + k] = r[k];
    }
}

static void store_windows(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    qn_window window[QN_MOST_PLACES];
    LLVMValueRef r[QN_CHUNK_BYTES];
    int n_windows = qn__weave_windows(w, false, window);
    for (int i = 0; i < n_windows; i++) {
        int first = window[i].first, size = window[i].size;
        int units = w->lanes < size ? size : w->lanes;
        for (int k = 0; k < size; k++)
            r[k] = resized(g, member[first + k], units);
        qn__transpose_groups(g, r, size, units);
        for (int l = 0; l < w->lanes; l++)
            store_plain(g, x, (l * w->n + first) * w->bytes,
                        part_of(g, r[l % size], l / size * size, size));
    }
}

/** Even and odd elements of chunks of four, two of which become one. */
static void load_two(lower *g, const qn_weave *w, const LLVMValueRef *r, int n,
                     LLVMValueRef *member)
{
    int index[MOST_UNITS];
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < n; i++)
            index[i] = i / 4 * 4 + i % 2 * 2 + p + (i % 4 < 2 ? 0 : n);
        member[p] = resized(g, pick(g, r[0], r[1], index, n), w->lanes);
    }
}

/* Chunks are joined first: one shuffle sorts those of a register. */
static void load_pieces_of_chunks(lower *g, const woven *x, LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef own[MOST_UNITS], r[QN_CHUNK_BYTES];
    int chunks = w->lanes / w->per_chunk, registers = chunks < w->slots ? chunks : w->slots;
    int joined = chunks / registers, bytes = joined * QN_CHUNK_BYTES;
    for (int k = 0; k < registers; k++) {
        for (int c = 0; c < joined; c++)
            own[c] = load_chunk(g, x, c * registers + k);
        LLVMValueRef all = qn__join_pieces(g, own, joined, QN_CHUNK_BYTES);
        if (w->bytes == 4)
            r[k] = as_units(g, all, w->bytes, bytes / w->bytes);
        else
            r[k] = as_units(g, sort_chunks(g, w, all, bytes, true), w->unit, bytes / w->unit);
    }
    for (int k = registers; k < w->slots; k++)
        r[k] = LLVMGetPoison(LLVMTypeOf(r[0]));
    if (w->bytes == 4) { /* two places: sorted and transposed at once */
        load_two(g, w, r, bytes / 4, member);
        return;
    }
    qn__transpose_groups(g, r, w->slots, bytes / w->unit);
    for (int p = 0; p < w->n; p++)
        member[p] = w->places >> p & 1 ? resized(g, r[p], chunks) : NULL;
}

static void store_pieces_of_chunks(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef r[QN_CHUNK_BYTES];
    int chunks = w->lanes / w->per_chunk, units = chunks < w->slots ? w->slots : chunks;
    for (int s = 0; s < w->slots; s++)
        r[s] = s < w->n ? resized(g, member[s], units) : LLVMGetPoison(LLVMTypeOf(r[0]));
    qn__transpose_groups(g, r, w->slots, units);
    for (int k = 0; k < w->slots; k++)
        r[k] = sort_chunks(g, w, r[k], units * w->unit, false);
    for (int c = 0; c < chunks; c++)
        store_chunk(g, x, c,
                    part_of(g, r[c % w->slots], c / w->slots * QN_CHUNK_BYTES, QN_CHUNK_BYTES));
}

/* ---------------------------------------------------------------- words */

/** The constant n in each lane of a vector. */
static LLVMValueRef in_each(LLVMTypeRef t, int n)
{
    return qn__constant_like(t, LLVMConstInt(LLVMGetElementType(t), (unsigned)n, false));
}

/** The words of all lanes, and whose members move. */
static strand words_of(const qn_weave *w)
{
    return (strand){w->registers, units_of(w), w->slots, w->lanes, qn__weave_words(w)};
}

static void load_words(lower *g, const qn_weave *w, const LLVMValueRef *v, LLVMValueRef *member)
{
    LLVMTypeRef own = LLVMVectorType(unit_type(g, w->bytes), (unsigned)w->lanes);
    LLVMValueRef word[QN_MOST_PLACES] = {v[0]};
    int inside = w->unit / w->bytes;
    const strand all = words_of(w);
    if (w->slots > 1)
        unzip(g, &all, v, word, 1);
    for (int p = 0; p < w->n; p++) {
        if (!(w->places >> p & 1))
            continue;
        LLVMValueRef from = word[p / inside];
        LLVMValueRef by = in_each(LLVMTypeOf(from), 8 * w->bytes * (p % inside));
        member[p] = LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, from, by, ""), own, "");
    }
}

static void store_words(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMTypeRef t = LLVMVectorType(unit_type(g, w->unit), (unsigned)w->lanes);
    LLVMValueRef word[QN_MOST_PLACES] = {NULL}, v[MOST_REGISTERS];
    int inside = w->unit / w->bytes;
    const strand all = words_of(w);
    for (int p = 0; p < w->n; p++) {
        LLVMValueRef own = LLVMBuildZExt(g->b, as_units(g, member[p], w->bytes, w->lanes), t, "");
        own = LLVMBuildShl(g->b, own, in_each(t, 8 * w->bytes * (p % inside)), "");
        LLVMValueRef *to = &word[p / inside];
        *to = *to ? LLVMBuildOr(g->b, *to, own, "") : own;
    }
    if (w->slots > 1)
        zip(g, &all, word, 1, v);
    else
        v[0] = word[0];
    for (int r = 0; r < w->registers; r++)
        store_piece(g, x, register_at(w, r), resized(g, v[r], register_at(w, r).n));
}

/* ---------------------------------------------------------------- all of them */

void qn__load_woven(lower *g, const woven *x, LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMTypeRef t = LLVMVectorType(x->element, (unsigned)w->lanes);
    LLVMValueRef v[MOST_REGISTERS];
    for (int p = 0; p < QN_MOST_PLACES; p++)
        member[p] = NULL;
    for (int r = 0; r < w->registers && w->method != QN_WEAVE_PIECES; r++) {
        piece at = w->per_chunk > 1 ? (piece){0} : register_at(w, r);
        v[r] =
            w->per_chunk > 1 ? load_chunks(g, x, r) : resized(g, load_piece(g, x, at), units_of(w));
    }
    if (w->method == QN_WEAVE_PAIRS)
        unzip(g, &(strand){w->registers, units_of(w), w->slots, w->lanes / w->per_chunk, w->places},
              v, member, 1);
    else if (w->method == QN_WEAVE_BLENDS)
        load_blends(g, w, v, member);
    else if (w->method == QN_WEAVE_CHUNKS)
        load_by_chunks(g, w, v, member);
    else if (w->method == QN_WEAVE_WORDS)
        load_words(g, w, v, member);
    else if (w->per_chunk > 1)
        load_pieces_of_chunks(g, x, member);
    else
        load_windows(g, x, member);
    for (int p = 0; p < w->n; p++)
        member[p] = member[p] ? LLVMBuildBitCast(g->b, member[p], t, "") : NULL;
}

static void store_pairs(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef v[MOST_REGISTERS];
    zip(g, &(strand){w->registers, units_of(w), w->slots, w->lanes / w->per_chunk, w->places},
        member, 1, v);
    for (int r = 0; r < w->registers; r++) {
        if (!v[r])
            continue;
        if (w->per_chunk > 1) {
            store_chunks(g, x, r, v[r]);
        } else {
            piece at = register_at(w, r);
            store_piece(g, x, at, resized(g, v[r], at.n));
        }
    }
}

void qn__store_woven(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef units[QN_MOST_PLACES] = {NULL};
    if (w->method == QN_WEAVE_WORDS) {
        store_words(g, x, member);
        return;
    }
    for (int p = 0; p < w->n; p++)
        if (w->places >> p & 1)
            units[p] = as_units(g, member[p], w->unit, w->lanes / w->per_chunk);
    if (w->method == QN_WEAVE_PAIRS)
        store_pairs(g, x, units);
    else if (w->method == QN_WEAVE_BLENDS)
        store_blends(g, x, units);
    else if (w->method == QN_WEAVE_CHUNKS)
        store_by_chunks(g, x, units);
    else if (w->per_chunk > 1)
        store_pieces_of_chunks(g, x, units);
    else
        store_windows(g, x, units);
}
