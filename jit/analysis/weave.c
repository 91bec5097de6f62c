/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave.c: the ways of weave.h, and what they cost.
 */
#include "jit/analysis/weave.h"

#include <string.h>

static int power_from(int n)
{
    int power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------- permutations of two registers */

uint32_t qn__weave_places(uint32_t places, int n, int factor, int residue)
{
    uint32_t out = 0;
    for (int p = residue; p < n; p += factor)
        out |= (places >> p & 1) << p / factor;
    return out;
}

/** Each member by itself: one register after the other. */
static int direct_shuffles(int registers, uint32_t places, bool is_load)
{
    int used = __builtin_popcount(places), each = registers > 1 ? registers - 1 : 1;
    return is_load ? used * each : registers * (used > 1 ? used - 1 : 1);
}

int qn__weave_factor(int registers, int n, uint32_t places, bool is_load, int *shuffles)
{
    int best = 1;
    *shuffles = direct_shuffles(registers, places, is_load);
    for (int factor = 2; factor <= 3; factor++) {
        int sum = 0;
        if (n % factor || registers % factor || n == factor)
            continue;
        for (int a = 0; a < factor; a++) {
            uint32_t own = qn__weave_places(places, n, factor, a);
            int inside = 0;
            if (!own)
                continue;
            qn__weave_factor(registers / factor, n / factor, own, is_load, &inside);
            sum += inside + (is_load ? registers / factor * (factor - 1) : 0);
        }
        sum += is_load ? 0 : registers * (factor - 1);
        if (sum < *shuffles) {
            *shuffles = sum;
            best = factor;
        }
    }
    return best;
}

/** Whether shuffles of two registers are single instructions; of two places any processor has few.
 */
static bool may_be_pairs(const qn_target *t, const qn_weave *w)
{
    return t->permutes_pairs ? w->unit >= 2 : w->slots == 2 && w->unit >= 4;
}

static void make_pairs(const qn_target *t, bool is_load, qn_weave *w)
{
    int shuffles, all = w->lanes / w->per_chunk * w->slots * w->unit,
                  chunk = w->per_chunk * w->n * w->bytes;
    w->method = QN_WEAVE_PAIRS;
    w->register_bytes = smaller(t->vector_bytes, power_from(all));
    w->registers = (all + w->register_bytes - 1) / w->register_bytes;
    qn__weave_factor(w->registers, w->slots, w->places, is_load, &shuffles);
    w->shuffles = t->permutes_pairs ? shuffles : 2 * shuffles;
    w->moves = w->registers;
    w->is_side_by_side = w->per_chunk == 1 || chunk == QN_CHUNK_BYTES ||
                         (chunk == 12 && w->register_bytes > QN_CHUNK_BYTES);
    if (w->per_chunk > 1)
        w->shuffles += w->registers * (chunk == QN_CHUNK_BYTES ? 1 : 2);
    if (!w->is_side_by_side) { /* each chunk is moved by itself */
        w->moves = w->lanes / w->per_chunk;
        w->shuffles += w->moves - w->registers;
    }
}

/* ---------------------------------------------------------------- blends */

static bool may_be_blends(const qn_target *t, const qn_weave *w)
{
    return w->per_chunk == 1 && w->n % 2 == 1 && w->n <= 5 && w->unit >= t->least_shuffled &&
           w->unit >= 4 && w->lanes * w->bytes <= t->vector_bytes;
}

static void make_blends(const qn_target *t, qn_weave *w)
{
    int used = __builtin_popcount(w->places), blended = smaller(w->n, w->lanes) - 1;
    blended -= t->permutes_pairs; /* the last one is of the permutation */
    w->method = QN_WEAVE_BLENDS;
    w->is_side_by_side = true;
    w->registers = w->n;
    w->register_bytes = w->lanes * w->bytes;
    w->moves = w->n;
    w->shuffles = used + 0.5 * used * blended; /* blends have more ports than permutations */
}

/* ---------------------------------------------------------------- pieces */

static uint32_t window_bits(int first, int size)
{
    return ((UINT32_C(1) << size) - 1) << first;
}

/* Loads may read places twice, and those that nobody asked for; stores may not. */
int qn__weave_windows(const qn_weave *w, bool is_load, qn_window *out)
{
    uint32_t left = w->places, may = is_load ? w->known | w->places : w->places;
    int n = 0;
    while (left) {
        int first = __builtin_ctz(left), size = QN_CHUNK_BYTES / w->bytes, from = first;
        for (; size > 1; size /= 2) {
            from = first + size <= w->n ? first : is_load && w->n >= size ? w->n - size : first;
            bool is_inside = from + size <= w->n;
            int n_left = __builtin_popcount(window_bits(from, size) & left);
            bool is_wanted = !is_load || n_left > size / 4;
            uint32_t allowed = is_load ? may : left;
            if (is_inside && is_wanted && (window_bits(from, size) & ~allowed) == 0)
                break;
        }
        from = size > 1 ? from : first;
        out[n++] = (qn_window){from, size};
        left &= ~window_bits(from, size);
    }
    return n;
}

/** Loads or stores of `count` pieces, and what brings them to registers of `lanes` lanes. */
static void add_pieces(const qn_target *t, bool is_load, int count, int size, qn_weave *w)
{
    int bytes = size * w->unit, per_register = t->vector_bytes / bytes;
    int registers = (count + per_register - 1) / per_register;
    w->moves += count;
    if (is_load)
        w->shuffles += count - registers;
    w->shuffles += (double)__builtin_ctz((unsigned)size) * (registers < size ? size : registers);
}

static void make_pieces(const qn_target *t, bool is_load, qn_weave *w)
{
    qn_window window[QN_MOST_PLACES];
    w->method = QN_WEAVE_PIECES;
    w->is_side_by_side = false;
    w->moves = w->shuffles = 0;
    if (w->per_chunk > 1) {
        int chunks = w->lanes / w->per_chunk;
        add_pieces(t, is_load, chunks, w->slots, w);
        w->shuffles += w->slots;
        return;
    }
    int n = qn__weave_windows(w, is_load, window);
    for (int i = 0; i < n; i++)
        add_pieces(t, is_load, w->lanes, window[i].size, w);
}

/* ---------------------------------------------------------------- words */

uint32_t qn__weave_words(const qn_weave *w)
{
    int inside = w->unit / w->bytes;
    uint32_t words = 0;
    for (int p = 0; p < w->n; p++)
        words |= (w->places >> p & 1) << p / inside;
    return words;
}

/** Sets the words of `held` bytes, or of all places where these are fewer. */
static bool may_be_words(const qn_target *t, int held, qn_weave *w)
{
    int all = w->n * w->bytes;
    w->unit = smaller(held, all);
    w->slots = all / w->unit;
    return w->unit > w->bytes && all % w->unit == 0 && (w->unit & (w->unit - 1)) == 0 &&
           (w->slots == 1 || (w->lanes * w->unit <= t->vector_bytes && may_be_pairs(t, w)));
}

/* What extends members, or cuts them, is work of their conversions, and becomes a mask here. */
static void make_words(const qn_target *t, bool is_load, qn_weave *w)
{
    int all = w->lanes * w->n * w->bytes, shuffles = 0;
    w->method = QN_WEAVE_WORDS;
    w->is_side_by_side = true;
    w->register_bytes = w->slots == 1 ? all : smaller(t->vector_bytes, power_from(all));
    w->registers = (all + w->register_bytes - 1) / w->register_bytes;
    w->moves = all > t->vector_bytes ? (double)all / t->vector_bytes : 1;
    if (w->slots > 1)
        qn__weave_factor(w->registers, w->slots, qn__weave_words(w), is_load, &shuffles);
    w->shuffles = t->permutes_pairs ? shuffles : 2 * shuffles;
    w->shuffles += is_load ? 0 : 0.5 * w->moves * (w->n - w->slots); /* shifts have more ports */
}

/* ---------------------------------------------------------------- the best */

/** Keeps the cheaper of *out, which has no lanes if there is none, and x. */
static void keep(const qn_weave *x, bool is_load, qn_weave *out)
{
    double move = is_load ? 0.5 : 1; /* two loads a cycle, one store */
    if (!out->lanes || x->shuffles + move * x->moves < out->shuffles + move * out->moves)
        *out = *x;
}

/** The lanes of a chunk, or none. */
static void set_chunk(qn_weave *w, int per_chunk)
{
    w->per_chunk = smaller(per_chunk, w->lanes);
    w->unit = w->bytes * w->per_chunk;
    w->slots = w->per_chunk > 1 ? QN_CHUNK_BYTES / w->unit : w->n;
}

bool qn__weave_of(const qn_target *t, bool is_load, int held, qn_weave *out)
{
    qn_weave w = *out;
    int n = w.n, bytes = w.bytes, lanes = w.lanes, step = bytes * n;
    uint32_t places = w.places;
    memset(out, 0, sizeof *out);
    if (n < 2 || n > QN_MOST_PLACES || lanes < 2 || !places || lanes * bytes > t->vector_bytes)
        return false;
    bool has_chunks = bytes < 4 && step <= QN_CHUNK_BYTES / 2;
    set_chunk(&w, has_chunks ? QN_CHUNK_BYTES / power_from(step) : 1);
    bool has_all = ((is_load ? places | w.known : places) & window_bits(0, n)) == window_bits(0, n);
    if (w.per_chunk > 1 && has_all) {
        make_pieces(t, is_load, &w);
        keep(&w, is_load, out);
    }
    if (w.per_chunk > 1 && may_be_pairs(t, &w)) {
        make_pairs(t, is_load, &w);
        if (has_all || w.is_side_by_side)
            keep(&w, is_load, out);
    }
    set_chunk(&w, 1);
    if (!has_chunks && may_be_pairs(t, &w)) {
        make_pairs(t, is_load, &w);
        keep(&w, is_load, out);
    }
    if (may_be_blends(t, &w) && has_all) {
        make_blends(t, &w);
        keep(&w, is_load, out);
    }
    make_pieces(t, is_load, &w);
    keep(&w, is_load, out);
    if (has_all && may_be_words(t, held, &w)) {
        make_words(t, is_load, &w);
        keep(&w, is_load, out);
    }
    return true;
}
