/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layout_algebra.c: transforms that shift, cut, join and reorder dimensions: the
 * post-condition of each over random layouts (dense, padded, strided, tiled, Morton, any digits)
 * and chains of transforms. Where one refuses, a search over all digit lists tells whether it may.
 */
#include "tests/unit/layout.h"

enum { MOST = 1500 };

/* ---------------------------------------------------------------- helpers */

static int64_t at(const qn_layout *l, const int64_t *index)
{
    int64_t offset = INT64_MIN;
    qn_error err = {0};
    if (qn_layout_at(l, l->rank, index, &offset, &err))
        tap_note("%s", err.message);
    return offset;
}

static void first_index(const qn_layout *l, int64_t *index)
{
    for (int d = 0; d < l->rank; d++)
        index[d] = l->dim[d].lower;
}

/** The next index tuple, last dimension fastest; false after the last. */
static bool next_index(const qn_layout *l, int64_t *index)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        if (++index[d] < l->dim[d].lower + l->dim[d].extent)
            return true;
        index[d] = l->dim[d].lower;
    }
    return false;
}

/** Any layout of at most a few hundred elements, with lower bounds and reversed dimensions. */
static void make_random(qn_layout *l)
{
    int rank = (int)random_in(0, 4), order[4], n_digits[4];
    int64_t extents[4], tile[4], strides[4], amount[4];
    qn_digit digit[12];
    random_order(rank, order);
    for (int d = 0, j = 0; d < rank; d++) {
        static const int64_t sizes[] = {1, 2, 3, 4, 4, 6, 6, 8};
        extents[d] = random_in(0, 30) ? sizes[random_in(0, 7)] : 0;
        tile[d] = random_in(1, 4);
        strides[d] = random_in(-10, 30);
        amount[d] = random_in(-5, 5);
        n_digits[d] = (int)random_in(1, 3);
        for (int k = 0; k < n_digits[d]; k++)
            digit[j++] = (qn_digit){random_in(1, 3), random_in(-20, 40)};
    }
    qn_status status = QN_OK;
    switch (random_in(0, 7)) {
    case 0:
        status = qn_layout_ordered(rank, extents, order, l, NULL);
        break;
    case 1:
        status = qn_layout_strided(rank, extents, strides, l, NULL);
        break;
    case 2:
        status = qn_layout_morton(rank, extents, order, l, NULL);
        break;
    case 3:
        status = qn_layout_custom(rank, NULL, n_digits, digit, l, NULL);
        break;
    case 4:
        status = qn_layout_right_padded(rank, extents, 16, l, NULL);
        break;
    case 5:
        status = qn_layout_right(rank, extents, l, NULL);
        break;
    default:
        status = qn_layout_tiled(rank, extents, tile, order, NULL, l, NULL);
    }
    if (!status && random_in(0, 1))
        status = qn_layout_shift(l, amount, l, NULL);
    if (status)
        tap_ok(false, "a constructor fails: %s", qn_status_name((int)status));
}

/* ---------------------------------------------------------------- transforms by post-condition */

enum { SHIFT, SECTION, SPLIT, MERGE, RESHAPE, COALESCE, SQUEEZE, EXPAND, TO_C, TO_FORTRAN, KINDS };
static const char *const kind_names[] = {"shift",    "section", "split",  "merge", "reshape",
                                         "coalesce", "squeeze", "expand", "to_c",  "to_fortran"};

typedef struct change {
    int kind, d, rank;
    int64_t amount[QN_MAX_RANK], begin, end, step, inner;
} change;

static int made[KINDS], refused[KINDS], wrong[KINDS], in_tables[KINDS];

/** Extents of a reshape of the same size: the prime factors, dealt out at random or kept together.
 */
static void random_shape(const qn_layout *l, change *c)
{
    int64_t size = qn_layout_size(l);
    c->rank = (int)random_in(size == 1 ? 0 : 1, 4);
    for (int p = 0; p < c->rank; p++)
        c->amount[p] = 1;
    if (size == 0)
        c->amount[0] = 0;
    for (int64_t factor = 2, p = 0; size > 1; size /= factor) {
        while (size % factor != 0)
            factor++;
        p = random_in(0, 1) ? p : random_in(0, c->rank - 1);
        c->amount[p] *= factor;
    }
}

static bool random_change(const qn_layout *l, change *c)
{
    c->kind = (int)random_in(0, KINDS - 1);
    c->d = l->rank > 0 ? (int)random_in(0, l->rank - 1) : 0;
    for (int d = 0; d < l->rank; d++)
        c->amount[d] = random_in(-4, 4);
    bool needs_dim = c->kind == SECTION || c->kind == SPLIT || c->kind == MERGE;
    if (l->rank < (c->kind == MERGE ? 2 : needs_dim) || (c->kind == SPLIT && l->rank > 8))
        return false;
    if (c->kind == MERGE)
        c->d = (int)random_in(0, l->rank - 2);
    if (c->kind == RESHAPE)
        random_shape(l, c);
    if (needs_dim) {
        const qn_dim *dim = &l->dim[c->d];
        c->step = random_in(1, 4);
        c->begin = dim->lower + random_in(0, dim->extent);
        c->end = random_in(0, 1) ? dim->lower + dim->extent
                                 : random_in(c->begin, dim->lower + dim->extent);
        do
            c->inner = random_in(1, dim->extent > 0 ? dim->extent : 3);
        while (dim->extent % c->inner != 0);
    }
    return true;
}

static qn_status apply(const change *c, const qn_layout *l, qn_layout *out)
{
    switch (c->kind) {
    case SHIFT:
        return qn_layout_shift(l, c->amount, out, NULL);
    case SECTION:
        return qn_layout_section(l, c->d, c->begin, c->end, c->step, out, NULL);
    case SPLIT:
        return qn_layout_split(l, c->d, c->inner, out, NULL);
    case MERGE:
        return qn_layout_merge(l, c->d, out, NULL);
    case RESHAPE:
        return qn_layout_reshape(l, c->rank, c->amount, out, NULL);
    case COALESCE:
        return qn_layout_coalesce(l, out, NULL);
    case SQUEEZE:
        return qn_layout_squeeze(l, out, NULL);
    case EXPAND:
        return qn_layout_expand(l, c->d, out, NULL);
    case TO_C:
        return qn_layout_to_c(l, out, NULL);
    default:
        return qn_layout_to_fortran(l, c->amount, out, NULL);
    }
}

/** Index of `l` that an index of the result stands for, by the post-condition; not for RESHAPE and
 * COALESCE. */
static void source_index(const change *c, const qn_layout *l, const int64_t *index, int64_t *source)
{
    int p = 0;
    for (int d = 0; d < l->rank; d++) {
        const qn_dim *dim = &l->dim[d];
        int64_t last = c->d + 1 < l->rank ? l->dim[c->d + 1].extent : 1;
        switch (c->kind) {
        case SHIFT:
            source[d] = index[d] - c->amount[d];
            break;
        case SECTION:
            source[d] = d == c->d ? c->begin + index[d] * c->step : index[d];
            break;
        case SPLIT:
            source[d] =
                d == c->d ? dim->lower + index[d] * c->inner + index[d + 1] : index[d + (d > c->d)];
            break;
        case MERGE:
            source[d] = d == c->d       ? dim->lower + index[d] / last
                        : d == c->d + 1 ? dim->lower + index[d - 1] % last
                                        : index[d - (d > c->d)];
            break;
        case SQUEEZE:
            source[d] = dim->extent == 1 ? dim->lower : index[p];
            break;
        case EXPAND:
            source[d] = index[d + (d >= c->d)];
            break;
        default: /* TO_C, TO_FORTRAN */
            source[d] = dim->lower + index[l->rank - 1 - d] -
                        (c->kind == TO_C ? 0 : c->amount[l->rank - 1 - d]);
        }
        p += dim->extent != 1;
    }
}

/** Rank and lower bounds of the result. */
static bool has_shape(const change *c, const qn_layout *l, const qn_layout *out)
{
    int n_not_one = 0;
    for (int d = 0; d < l->rank; d++)
        n_not_one += l->dim[d].extent != 1;
    int ranks[] = {l->rank,   l->rank,   l->rank + 1, l->rank - 1, c->rank,
                   out->rank, n_not_one, l->rank + 1, l->rank,     l->rank};
    bool is_right = out->rank == ranks[c->kind];
    for (int p = 0; p < out->rank; p++) {
        int64_t lower = out->dim[p].lower, extent = out->dim[p].extent;
        if (c->kind == RESHAPE)
            is_right = is_right && extent == c->amount[p] && lower == 0;
        if (c->kind == SPLIT && (p == c->d || p == c->d + 1))
            is_right = is_right && lower == 0 && (p == c->d || extent == c->inner);
        if (c->kind == COALESCE || c->kind == SQUEEZE)
            is_right = is_right && extent != 1;
        if (c->kind == TO_FORTRAN)
            is_right = is_right && lower == c->amount[p];
        if (c->kind == TO_C || c->kind == COALESCE)
            is_right = is_right && lower == 0;
    }
    return is_right;
}

/** Whether no two neighbours could be one dimension of one stride. */
static bool is_fewest(const qn_layout *l)
{
    for (int d = 0; d + 1 < l->rank; d++) {
        int64_t outer, inner;
        if (qn_layout_stride(l, d, &outer, NULL) == QN_OK &&
            qn_layout_stride(l, d + 1, &inner, NULL) == QN_OK &&
            inner * l->dim[d + 1].extent == outer)
            return false;
    }
    return qn_layout_size(l) > 0 || l->rank == 1;
}

static bool holds(const change *c, const qn_layout *l, const qn_layout *out)
{
    int64_t index[QN_MAX_RANK], source[QN_MAX_RANK], low = INT64_MAX, high = INT64_MIN;
    bool in_order = c->kind == RESHAPE || c->kind == COALESCE;
    if (!has_shape(c, l, out) || (c->kind == COALESCE && !is_fewest(out)))
        return false;
    if (c->kind != SECTION && qn_layout_size(out) != qn_layout_size(l))
        return false;
    if (qn_layout_size(out) == 0)
        return true;
    first_index(out, index);
    first_index(l, source);
    do {
        if (!in_order)
            source_index(c, l, index, source);
        int64_t offset = at(out, index);
        if (offset != at(l, source))
            return false;
        low = offset < low ? offset : low;
        high = offset > high ? offset : high;
        if (in_order)
            next_index(l, source);
    } while (next_index(out, index));
    int64_t found_low, found_high;
    return qn__layout_check(out, "x", NULL) == QN_OK &&
           qn_layout_range(out, &found_low, &found_high, NULL) == QN_OK && found_low == low &&
           found_high == high &&
           (!qn_layout_is_unique(out) || high - low + 1 >= qn_layout_size(out));
}

/**
 * Whether any digits describe offsets f(0 .. n - 1) of one dimension: tries all extents of each
 * digit; the definition, and slow.
 */
static bool is_digit_sum(const int64_t *f, int64_t n)
{
    if (n <= 1)
        return true;
    for (int64_t e = n; e >= 2; e--) { /* extent of the first digit */
        int64_t next[MOST], n_next = (n + e - 1) / e;
        bool fits = true;
        for (int64_t i = 0; i < n && fits; i++)
            fits = f[i] - f[i / e * e] == i % e * (f[1] - f[0]);
        for (int64_t i = 0; i < n_next && fits; i++)
            next[i] = f[i * e];
        if (fits && is_digit_sum(next, n_next))
            return true;
    }
    return false;
}

/** Whether a section is aligned to the digits of its dimension for certain. */
static bool is_aligned(const change *c, const qn_layout *l)
{
    qn_digit digit[QN_MAX_DIGITS];
    int n = qn_layout_digits(l, c->d, digit);
    int64_t tile = 1, from = c->begin - l->dim[c->d].lower;
    for (int j = 0; j < n - 1; j++)
        tile *= digit[j].extent;
    return c->step % tile == 0 || (from % tile == 0 && digit[0].extent % c->step == 0) ||
           from % digit[0].extent + c->end - c->begin <= digit[0].extent;
}

/** Whether a refusal is right: there is no layout of digits with these offsets. */
static bool is_impossible(const change *c, const qn_layout *l)
{
    static int64_t f[MOST];
    int64_t index[QN_MAX_RANK], n = 0;
    first_index(l, index);
    if (qn_layout_size(l) == 0) /* its digits are refused as if it were not empty */
        return true;
    if (c->kind == SECTION)
        return !is_aligned(c, l);
    if (c->kind == MERGE) {
        for (int64_t i = 0; i < l->dim[c->d].extent; i++)
            for (int64_t j = 0; j < l->dim[c->d + 1].extent; j++) {
                index[c->d] = l->dim[c->d].lower + i;
                index[c->d + 1] = l->dim[c->d + 1].lower + j;
                f[n++] = at(l, index);
            }
        return !is_digit_sum(f, n);
    }
    if (c->kind == SPLIT) { /* additive: f(o * inner + n) = f(o * inner) + f(n) */
        for (int64_t i = 0; i < l->dim[c->d].extent; i++) {
            index[c->d] = l->dim[c->d].lower + i;
            f[n++] = at(l, index);
        }
        for (int64_t i = 0; i < n; i++)
            if (f[i] - f[0] != f[i / c->inner * c->inner] - f[0] + f[i % c->inner] - f[0])
                return true;
        return false;
    }
    if (c->kind != RESHAPE)
        return false;
    do
        f[n++] = at(l, index);
    while (next_index(l, index));
    for (int64_t p = c->rank - 1, inner = 1; p >= 0; inner *= c->amount[p--]) {
        int64_t g[MOST];
        for (int64_t i = 0; i < c->amount[p]; i++)
            g[i] = f[i * inner];
        if (!is_digit_sum(g, c->amount[p]))
            return true;
        for (int64_t i = 0; i < n; i++) /* each dimension adds the same wherever the others are */
            if (f[i] - f[i - i / inner % c->amount[p] * inner] !=
                g[i / inner % c->amount[p]] - f[0])
                return true;
    }
    return false;
}

static int n_pessimistic;

static void change_once(qn_layout *l)
{
    change c = {0};
    if (!random_change(l, &c))
        return;
    qn_layout before = qn_layout_copy(l), bytes, out = {0};
    memcpy(&bytes, l, sizeof bytes);
    bool in_place = random_in(0, 1) != 0;
    qn_status status = apply(&c, l, in_place ? l : &out);
    if (status) {
        refused[c.kind]++;
        bool is_same = memcmp(&bytes, l, sizeof bytes) == 0 && !out.digits;
        wrong[c.kind] += status != QN_ERR_UNSUPPORTED || !is_same || c.kind > RESHAPE;
        if (!is_impossible(&c, &before)) {
            char text[400];
            qn_layout_print(&before, text, sizeof text);
            tap_note("%s of %s is refused, at %d", kind_names[c.kind], text, c.d);
            n_pessimistic++;
        }
    } else {
        const qn_layout *now = in_place ? l : &out;
        made[c.kind]++;
        in_tables[c.kind] += now->digits != NULL;
        if (!holds(&c, &before, now)) {
            char old[400], new[400];
            qn_layout_print(&before, old, sizeof old);
            qn_layout_print(now, new, sizeof new);
            tap_note("%s of %s is %s", kind_names[c.kind], old, new);
            wrong[c.kind]++;
        }
        if (!in_place) {
            qn_layout_release(l);
            *l = out;
        }
    }
    qn_layout_release(&before);
}

static void test_random(void)
{
    for (int i = 0; i < 12000; i++) {
        qn_layout l;
        make_random(&l);
        for (int64_t k = random_in(1, 5); k > 0 && qn_layout_size(&l) <= MOST; k--)
            change_once(&l);
        qn_layout_release(&l);
    }
    for (int k = 0; k < KINDS; k++) {
        tap_note("%s: %d made, %d with tables, %d refused", kind_names[k], made[k], in_tables[k],
                 refused[k]);
        tap_ok(made[k] > 800 && in_tables[k] > 100, "%s: the sample has all sorts", kind_names[k]);
        tap_is_int(wrong[k], 0, kind_names[k]);
    }
    tap_is_int(n_pessimistic, 0, "what is refused has no digits");
}

int main(void)
{
    test_random();
    return tap_done();
}
