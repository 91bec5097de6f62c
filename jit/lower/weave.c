/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave.c: loads and stores of members that lie between one another, by the ways of
 * analysis/weave.h. All shuffles are of units, which are integers.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/weave.h"

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
    LLVMValueRef registers[2] = {a, b}, at[QN_MOST_UNITS];
    if (!g->f->target->permutes_pairs || bits < (b ? 16 : 32) ||
        8 * g->f->target->vector_bytes != (int)bits * units)
        return qn__shuffle(g, a, b, index, n);
    for (int i = 0; i < units; i++)
        at[i] = qn__int(LLVMGetElementType(t), i < n && index[i] > 0 ? index[i] : 0);
    LLVMValueRef v =
        g->hooks->permute(g, registers, b ? 2 : 1, LLVMConstVector(at, (unsigned)units));
    return qn__resized(g, v, n);
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
    int index[QN_MOST_UNITS], done = 0; /* lanes */
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
    return qn__resized(g, all, lanes);
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
        LLVMValueRef own[QN_MOST_REGISTERS];
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
    int index[QN_MOST_UNITS], n_put = 0;
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
        own = qn__resized(g, own, units);
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
    LLVMValueRef own[3][QN_MOST_REGISTERS] = {{NULL}};
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
    int index[QN_MOST_UNITS];
    for (int r = 0; r < w->n; r++) {
        bool is_here = false;
        for (int l = 0; l < w->lanes; l++) {
            index[l] = from[l] == r ? w->lanes + l : l;
            is_here |= from[l] == r;
        }
        if (is_here)
            all = all ? qn__shuffle(g, all, v[r], index, w->lanes) : v[r];
    }
    return all;
}

static void load_blends(lower *g, const qn_weave *w, const LLVMValueRef *v, LLVMValueRef *member)
{
    int from[QN_MOST_UNITS], index[QN_MOST_UNITS];
    for (int m = 0; m < w->n; m++) {
        for (int l = 0; l < w->lanes; l++) {
            from[l] = register_of(w, m, l);
            index[l] = (w->n * l + m) % w->lanes;
        }
        if (w->places >> m & 1)
            member[m] = qn__shuffle(g, blended(g, w, v, from), NULL, index, w->lanes);
    }
}

static void blend_members(lower *g, const qn_weave *w, const LLVMValueRef *member, LLVMValueRef *v)
{
    LLVMValueRef turned[QN_MOST_PLACES];
    int index[QN_MOST_UNITS];
    for (int m = 0; m < w->n; m++) {
        for (int l = 0; l < w->lanes; l++)
            index[(w->n * l + m) % w->lanes] = l;
        turned[m] = qn__shuffle(g, member[m], NULL, index, w->lanes);
    }
    for (int r = 0; r < w->n; r++) {
        for (int l = 0; l < w->lanes; l++)
            index[l] = (r * w->lanes + l) % w->n;
        v[r] = blended(g, w, turned, index);
    }
}

/* ---------------------------------------------------------------- pieces */

/** Pieces of `size` units, one of each lane: unit k of all of them becomes r[k]. */
static void transpose_pieces(lower *g, const LLVMValueRef *of, int n, int size, LLVMValueRef *r)
{
    LLVMValueRef own[QN_MOST_UNITS];
    int units = n < size ? size : n;
    for (int k = 0; k < size; k++) {
        for (int c = 0; c < units / size; c++)
            own[c] = of[c * size + k < n ? c * size + k : 0];
        r[k] = qn__join_pieces(g, own, units / size, size);
    }
    qn__transpose_groups(g, r, size, units);
    for (int k = 0; k < size; k++)
        r[k] = qn__resized(g, r[k], n);
}

static void load_windows(lower *g, const woven *x, LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    qn_window window[QN_MOST_PLACES];
    LLVMValueRef of[QN_MOST_UNITS], r[QN_CHUNK_BYTES];
    int n_windows = qn__weave_windows(w, true, window);
    for (int i = 0; i < n_windows; i++) {
        int first = window[i].first, size = window[i].size;
        for (int l = 0; l < w->lanes; l++)
            of[l] = qn__load_plain(g, x, (l * w->n + first) * w->bytes, w->bytes, size);
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
            r[k] = qn__resized(g, member[first + k], units);
        qn__transpose_groups(g, r, size, units);
        for (int l = 0; l < w->lanes; l++)
            qn__store_plain(g, x, (l * w->n + first) * w->bytes,
                            qn__part_of(g, r[l % size], l / size * size, size));
    }
}

/* Chunks are joined first: one shuffle sorts those of a register. */
static void load_pieces_of_chunks(lower *g, const woven *x, LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef own[QN_MOST_UNITS], r[QN_CHUNK_BYTES];
    int chunks = w->lanes / w->per_chunk, registers = chunks < w->slots ? chunks : w->slots;
    int joined = chunks / registers, bytes = joined * QN_CHUNK_BYTES;
    for (int k = 0; k < registers; k++) {
        for (int c = 0; c < joined; c++)
            own[c] = qn__load_chunk(g, x, c * registers + k);
        LLVMValueRef all = qn__join_pieces(g, own, joined, QN_CHUNK_BYTES);
        r[k] = qn__as_units(g, qn__sort_chunks(g, w, all, bytes, true), w->unit, bytes / w->unit);
    }
    for (int k = registers; k < w->slots; k++)
        r[k] = LLVMGetPoison(LLVMTypeOf(r[0]));
    qn__transpose_groups(g, r, w->slots, bytes / w->unit);
    for (int p = 0; p < w->n; p++)
        member[p] = w->places >> p & 1 ? qn__resized(g, r[p], chunks) : NULL;
}

static void store_pieces_of_chunks(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    LLVMValueRef r[QN_CHUNK_BYTES];
    int chunks = w->lanes / w->per_chunk, units = chunks < w->slots ? w->slots : chunks;
    for (int s = 0; s < w->slots; s++)
        r[s] = s < w->n ? qn__resized(g, member[s], units) : LLVMGetPoison(LLVMTypeOf(r[0]));
    qn__transpose_groups(g, r, w->slots, units);
    for (int k = 0; k < w->slots; k++)
        r[k] = qn__sort_chunks(g, w, r[k], units * w->unit, false);
    for (int c = 0; c < chunks; c++)
        qn__store_chunk(
            g, x, c,
            qn__part_of(g, r[c % w->slots], c / w->slots * QN_CHUNK_BYTES, QN_CHUNK_BYTES));
}

/* ---------------------------------------------------------------- words */

/** The words of all lanes, and whose members move. */
static strand words_of(const qn_weave *w)
{
    return (strand){w->registers, qn__weave_units(w), w->slots, w->lanes, qn__weave_words(w)};
}

static void load_words(lower *g, const qn_weave *w, const LLVMValueRef *v, LLVMValueRef *member)
{
    LLVMTypeRef own = qn__units(g, w->bytes, w->lanes);
    LLVMValueRef word[QN_MOST_PLACES] = {v[0]};
    int inside = w->unit / w->bytes;
    const strand all = words_of(w);
    if (w->slots > 1)
        unzip(g, &all, v, word, 1);
    for (int p = 0; p < w->n; p++) {
        if (!(w->places >> p & 1))
            continue;
        LLVMValueRef from = word[p / inside];
        LLVMValueRef by = qn__int(LLVMTypeOf(from), 8 * w->bytes * (p % inside));
        member[p] = LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, from, by, ""), own, "");
    }
}

static void join_words(lower *g, const qn_weave *w, const LLVMValueRef *member, LLVMValueRef *v)
{
    LLVMTypeRef t = qn__units(g, w->unit, w->lanes);
    LLVMValueRef word[QN_MOST_PLACES] = {NULL};
    int inside = w->unit / w->bytes;
    const strand all = words_of(w);
    for (int p = 0; p < w->n; p++) {
        LLVMValueRef units = qn__as_units(g, member[p], w->bytes, w->lanes);
        LLVMValueRef own = LLVMBuildZExt(g->b, units, t, "");
        own = LLVMBuildShl(g->b, own, qn__int(t, 8 * w->bytes * (p % inside)), "");
        LLVMValueRef *to = &word[p / inside];
        *to = *to ? LLVMBuildOr(g->b, *to, own, "") : own;
    }
    if (w->slots > 1)
        zip(g, &all, word, 1, v);
    else
        v[0] = word[0];
}

/* ---------------------------------------------------------------- all of them */

static strand pairs_of(const qn_weave *w)
{
    return (strand){w->registers, qn__weave_units(w), w->slots, w->lanes / w->per_chunk, w->places};
}

void qn__load_woven(lower *g, const woven *x, LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    const strand pairs = pairs_of(w);
    LLVMTypeRef t = LLVMVectorType(x->element, (unsigned)w->lanes);
    LLVMValueRef v[QN_MOST_REGISTERS];
    for (int p = 0; p < QN_MOST_PLACES; p++)
        member[p] = NULL;
    for (int r = 0; r < w->registers && w->method != QN_WEAVE_PIECES; r++)
        v[r] = qn__load_register(g, x, r);
    if (w->method == QN_WEAVE_PAIRS)
        unzip(g, &pairs, v, member, 1);
    else if (w->method == QN_WEAVE_BLENDS)
        load_blends(g, w, v, member);
    else if (w->method == QN_WEAVE_WORDS)
        load_words(g, w, v, member);
    else if (w->per_chunk > 1)
        load_pieces_of_chunks(g, x, member);
    else
        load_windows(g, x, member);
    for (int p = 0; p < w->n; p++)
        member[p] = member[p] ? LLVMBuildBitCast(g->b, member[p], t, "") : NULL;
}

void qn__store_woven(lower *g, const woven *x, const LLVMValueRef *member)
{
    const qn_weave *w = x->w;
    const strand pairs = pairs_of(w);
    LLVMValueRef units[QN_MOST_PLACES] = {NULL}, v[QN_MOST_REGISTERS] = {NULL};
    for (int p = 0; p < w->n && w->method != QN_WEAVE_WORDS; p++)
        if (w->places >> p & 1)
            units[p] = qn__as_units(g, member[p], w->unit, w->lanes / w->per_chunk);
    if (w->method == QN_WEAVE_WORDS)
        join_words(g, w, member, v);
    else if (w->method == QN_WEAVE_PAIRS)
        zip(g, &pairs, units, 1, v);
    else if (w->method == QN_WEAVE_BLENDS)
        blend_members(g, w, units, v);
    else if (w->per_chunk > 1)
        store_pieces_of_chunks(g, x, units);
    else
        store_windows(g, x, units);
    for (int r = 0; r < w->registers && w->method != QN_WEAVE_PIECES; r++)
        if (v[r])
            qn__store_register(g, x, r, v[r]);
}
