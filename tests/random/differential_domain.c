/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_domain.c: domains of plain kernels, many of them of a shape that a rule of plans is
 * for.
 */
#include "differential.h"

enum { MANY_POINTS = 50000, LARGE_POINTS = 400000, MOST_STEPS = 5 };

static void add_plain_dim(test_case *t, int kind)
{
    static const uint16_t extents[] = {1,   2,   3,   4,   5,   7,   8,    9,    12,   16,   17,
                                       24,  31,  32,  33,  48,  64,  65,   70,   96,   100,  128,
                                       130, 200, 257, 300, 512, 700, 1030, 4100, 9000, 40000};
    randoms *r = &t->random;
    int64_t n = kind == KIND_SEQUENTIAL
                    ? random_between(r, 1, MOST_STEPS)
                    : extents[random_below(r, sizeof extents / sizeof *extents)];
    t->dim[t->n_dims++] = (test_dim){kind, 0, random_percent(r, 1) ? 0 : n};
}

/* Products of more than 64 bits are the largest. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t n;
    return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

static void count_points(test_case *t)
{
    t->points = t->iterations = 1;
    for (int d = 0; d < t->n_dims; d++) {
        int64_t n = t->dim[d].end > 0 ? t->dim[d].end : 1; /* an empty dimension may grow */
        t->points = product(t->points, n);
        t->iterations = product(t->iterations, t->dim[d].kind == KIND_REDUCTION ? 1 : n);
    }
}

/* Halves dimensions until there are few enough points; in some kernels not those of reductions,
 * while others are left. */
static void limit_points(test_case *t, int64_t most)
{
    bool keeps_reductions = random_percent(&t->random, 30);
    for (count_points(t); t->points > most; count_points(t)) {
        test_dim *dim = &t->dim[random_below(&t->random, t->n_dims)];
        if (dim->kind == KIND_REDUCTION && keeps_reductions && t->iterations > 1)
            continue;
        dim->end = (dim->end + 1) / 2;
    }
}

/* What only large arrays have: all dimensions but one are short. */
static void choose_large(test_case *t)
{
    int longest = t->longest = random_below(&t->random, t->n_dims);
    for (int d = 0; d < t->n_dims; d++)
        t->dim[d].end = d == longest ? 1 : random_between(&t->random, 2, 3);
    count_points(t);
    t->dim[longest].end = random_between(&t->random, LARGE_POINTS / 2, LARGE_POINTS) / t->points;
    count_points(t);
}

/* Extents of reductions and of two parallel dimensions, least and most. */
typedef struct proportion {
    int16_t points[2], across[2];
} proportion;

static void choose_proportion(test_case *t, const proportion *p)
{
    for (int d = 0, n = 0; d < t->n_dims; d++) {
        bool is_reduction = t->dim[d].kind == KIND_REDUCTION,
             is_first = t->dim[d].kind == KIND_PARALLEL && n++ < 2;
        const int16_t *range = is_reduction ? p->points : p->across;
        t->dim[d].end =
            is_reduction || is_first ? random_between(&t->random, range[0], range[1]) : 1;
    }
    count_points(t);
}

/* Many points that lie far apart, which are asked for ahead. */
static void choose_tall(test_case *t)
{
    choose_proportion(t, &(proportion){{256, 270}, {4, 15}});
    t->has_far_rows = random_percent(&t->random, 70);
    t->is_tall = true;
}

/* Small products; the number of them is a parallel dimension. */
static void choose_batch(test_case *t)
{
    int number = random_below(&t->random, 3);
    for (int d = 0, n = 0; d < t->n_dims; d++) {
        bool is_number = t->dim[d].kind == KIND_PARALLEL && n++ == number;
        t->dim[d].end =
            is_number ? random_between(&t->random, 20, 200) : random_between(&t->random, 2, 6);
        t->longest = is_number ? d : t->longest;
    }
    t->is_batch = true;
    count_points(t);
}

/* So few iterations that a step of a few lanes is all, or that one is left behind whole vectors. */
static void choose_narrow(test_case *t)
{
    static const uint8_t extents[] = {2, 2, 3, 4, 1, 6, 10, 18, 34, 66};
    for (int d = 0; d < t->n_dims; d++)
        t->dim[d].end = extents[random_below(&t->random, d + 1 < t->n_dims ? 5 : sizeof extents)];
    count_points(t);
}

/* Members of records: few iterations of the last parallel dimension, many of another one. */
static void choose_members(test_case *t)
{
    int last = t->n_dims - 1, longest = random_below(&t->random, last);
    for (int d = 0; d < t->n_dims; d++)
        t->dim[d].end = d == last      ? random_between(&t->random, 2, 9)
                        : d == longest ? random_between(&t->random, 10, 300)
                                       : random_between(&t->random, 1, 3);
    count_points(t);
}

/* What a GPU moves or keeps in shared memory: records of words, of as many places as leave few
 * banks alone; or a few long rows, of which each reduce computes what the one before it did. */
static bool choose_shared(test_case *t, randoms *r)
{
    static const uint8_t words[] = {3, 5, 6, 7, 9, 10, 11, 13, 14, 15};
    const int what = random_below(r, 100);
    if (what >= 18)
        return false;
    t->loads_escape = t->stores_escape = false;
    add_plain_dim(t, KIND_PARALLEL);
    t->dim[0].end = what < 7 ? random_between(r, 33, 300) : random_between(r, 1, 40);
    t->is_shared = true;
    if (what < 7) {
        t->n_alike = words[random_below(r, sizeof words)];
    } else {
        add_plain_dim(t, KIND_REDUCTION);
        t->dim[1].end = random_between(r, 64, 200);
    }
    count_points(t);
    return true;
}

/* Rows that a stencil reads side by side, long enough for streams on small caches; or rows that are
 * stored across those that are read. */
static bool choose_rows(test_case *t, randoms *r)
{
    const int what = random_below(r, 100);
    if (what >= 9)
        return false;
    t->loads_escape = t->stores_escape = false;
    t->rows = what < 5 ? ROWS_BESIDE : ROWS_ACROSS;
    add_plain_dim(t, KIND_PARALLEL);
    add_plain_dim(t, KIND_PARALLEL);
    t->dim[0].end = t->rows == ROWS_BESIDE ? random_between(r, 3, 14) : random_between(r, 17, 70);
    t->dim[1].end =
        random_percent(r, 60) ? random_between(r, 256, 400) : random_between(r, 64, 200);
    count_points(t);
    return true;
}

void choose_plain_domain(test_case *t)
{
    static const uint8_t n_parallel[] = {0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4};
    randoms *r = &t->random, shared = {r->state ^ 0x54a3ed}, rows = {r->state ^ 0x40e5};
    t->longest = -1;
    if (choose_shared(t, &shared) || choose_rows(t, &rows))
        return;
    int parallel = n_parallel[random_below(r, sizeof n_parallel)];
    int reductions = parallel == 0 || random_percent(r, 55) ? 1 + random_percent(r, 12) : 0,
        size = random_below(r, 100);
    if (random_percent(r, 4))
        add_plain_dim(t, KIND_SEQUENTIAL);
    for (int i = 0; i < parallel; i++)
        add_plain_dim(t, KIND_PARALLEL);
    for (int i = 0; i < reductions; i++)
        add_plain_dim(t, KIND_REDUCTION);
    t->is_contraction = parallel > 1 && reductions > 0 && random_percent(r, 85);
    randoms channels = {~r->state};
    t->has_channels = parallel > 0 && reductions == 0 && random_percent(&channels, 30);
    t->has_members =
        parallel > 1 && reductions == 0 && !t->has_channels && random_percent(&channels, 30);
    if (t->has_members)
        choose_members(t);
    else if (t->has_channels && random_percent(r, 85))
        choose_narrow(t);
    else if (size < 5)
        choose_large(t);
    else if (size < 8 && reductions == 1)
        choose_proportion(t, &(proportion){{8192, 12500}, {1, 2}}); /* blocks of points */
    else if (size < 45 && parallel == 3 && t->is_contraction && reductions == 1)
        choose_batch(t);
    else if (size < 24 && t->is_contraction && reductions == 1)
        choose_proportion(
            t,
            &(proportion){{16, 20}, {48, 54}}); /* from this size on a GPU has tiles of products */
    else if (size < 36 && t->is_contraction && reductions == 1)
        choose_tall(t);
    else
        limit_points(t, size < 50 ? MANY_POINTS : FEW_POINTS);
    for (int d = 0; d < t->n_dims; d++) {
        int64_t begin = random_percent(r, 80) ? 0 : random_between(r, -6, 40);
        begin = random_at_limit(r, begin, t->dim[d].end);
        t->dim[d].begin = begin;
        t->dim[d].end += begin;
    }
}
