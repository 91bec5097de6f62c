/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layout_forms.c: constructors of special form: padded, permuted, projected, with bounds,
 * Morton, any digits. Each in the exact numbers of its row of the specification, over random
 * arguments by its definition, and over hostile ones by arithmetic in 128 bits.
 */
#include "tests/unit/layout.h"

#include <limits.h>

/* ---------------------------------------------------------------- helpers */

static int64_t at(const qn_layout *l, int n, const int64_t *index)
{
    int64_t offset = INT64_MIN;
    qn_error err = {0};
    if (qn_layout_at(l, n, index, &offset, &err))
        tap_note("%s", err.message);
    return offset;
}

static void is_text(qn_layout *l, const char *expected, const char *what)
{
    char text[600];
    qn_layout_print(l, text, sizeof text);
    tap_is_str(text, expected, what);
    qn_layout_release(l);
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

static bool fits(wide x)
{
    return x >= INT64_MIN && x <= INT64_MAX;
}

/** Small numbers mostly, and those at which 64 bits end. */
static int64_t random_awkward(void)
{
    static const int64_t awkward[] = {0,
                                      1,
                                      2,
                                      3,
                                      -1,
                                      (int64_t)1 << 31,
                                      (int64_t)1 << 32,
                                      ((int64_t)1 << 32) + 1,
                                      (int64_t)1 << 61,
                                      (int64_t)1 << 62,
                                      ((int64_t)1 << 62) + 1,
                                      INT64_MAX - 1,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_MIN + 1};
    return random_in(0, 2) ? awkward[random_bits() % (sizeof awkward / sizeof *awkward)]
                           : random_in(1, 9);
}

/* ---------------------------------------------------------------- exact numbers */

static void test_padded(void)
{
    static const int64_t left[][2] = {{5, 5}, {8, 8}, {9, 16}, {16, 16}, {17, 24}};
    qn_layout l;
    qn_error err = {0};
    tap_ok(qn_layout_right_padded(3, INDEX(2, 3, 17), 8, &l, &err) == QN_OK, "padded");
    tap_ok(!qn_layout_is_contiguous(&l) && qn_layout_is_unique(&l) && qn_layout_is_right(&l) &&
               !qn_layout_is_left(&l),
           "Q7 is unique with gaps, and Right");
    is_text(&l, "(2,3,17):(72,24,1)", "Q7, LY10 Right (2,3,17) of 8 bytes");
    qn_layout_right_padded(3, INDEX(2, 3, 5), 8, &l, &err);
    is_text(&l, "(2,3,5):(15,5,1)", "LY10 (2,3,5) is not padded");
    for (int i = 0; i < 5; i++) {
        qn_layout_left_padded(2, INDEX(left[i][0], 3), 8, &l, &err);
        tap_is_int(l.dim[1].stride, left[i][1], "LY9 double Left N x 3");
        tap_ok(l.dim[0].extent == left[i][0] && qn_layout_is_left(&l), "LY9 extent, family");
    }
    qn_layout_left_padded(2, INDEX(9, 3), 8, &l, &err);
    tap_is_int(qn_layout_span(&l), 41, "LY9 span of double Left 9 x 3");
    qn_layout_right_padded(2, INDEX(3, 17), 4, &l, &err);
    tap_is_int(l.dim[0].stride, 32, "LY9 int Right 3 x 17");
    qn_layout_right_padded(2, INDEX(3, 2000), 4, &l, &err);
    tap_is_int(l.dim[0].stride, 2000, "LY9 int Right 3 x 2000");
    qn_layout_right_padded(2, INDEX(3, 17), 12, &l, &err);
    tap_is_int(l.dim[0].stride, 17, "LY9 12 bytes do not divide 64: not padded");
    qn_layout_right_padded(1, INDEX(17), 8, &l, &err);
    is_text(&l, "(17):(1)", "Q7 rank 1 is not padded");
    tap_ok(qn_layout_left_padded(0, NULL, 8, &l, &err) == QN_OK && l.rank == 0, "rank 0");
}

static void test_permuted(void)
{
    qn_layout l;
    qn_error err = {0};
    tap_ok(qn_layout_permuted(3, INDEX(5, 7, 11), (int[]){1, 2, 0}, &l, &err) == QN_OK, "permuted");
    tap_is_int(qn_layout_size(&l), 385, "LY11 size");
    tap_is_int(at(&l, 3, INDEX(1, 2, 3)), 1 + 2 * 5 * 11 + 3 * 5, "X1.9 (i,j,k)");
    is_text(&l, "(5,7,11):(1,55,5)", "LY11, X1.7 {1,2,0} longest first");
    qn_layout_permuted(3, INDEX(5, 7, 11), (int[]){0, 1, 2}, &l, &err);
    is_text(&l, "(5,7,11):(77,11,1)", "X1.8 identity is Right");
}

static void test_projected(void)
{
    qn_layout l;
    qn_error err = {0};
    int64_t index[3] = {7, 7, 7};
    tap_ok(qn_layout_projected(3, INDEX(3, 0, 5), &l, &err) == QN_OK, "projected");
    tap_is_int(qn_layout_size(&l), 15, "LY24 size");
    tap_is_int(at(&l, 3, INDEX(0, 10, 0)), 0, "LY24, X1.19 (0,10,0)");
    tap_is_int(at(&l, 3, INDEX(0, 5, 1)), 1, "LY24, X1.19 (0,5,1)");
    tap_is_int(at(&l, 3, INDEX(2, 99, 4)), 14, "LY24 (2,99,4)");
    tap_ok(qn_layout_inverse(&l, 1, index, &err) == QN_OK && index[0] == 0 && index[1] == 0 &&
               index[2] == 1,
           "X1.19 inverse of 1");
    tap_ok(!qn_layout_is_unique(&l) && !qn_layout_is_right(&l) && l.projected == 2, "not unique");
    is_text(&l, "(3,0,5):(5,0,1)", "LY24 strides");
    tap_ok(qn_layout_projected(2, INDEX(0, 0), &l, &err) == QN_OK && qn_layout_size(&l) == 1 &&
               at(&l, 2, INDEX(-4, INT64_MAX)) == 0,
           "LY24 (0,0): size 1, every index is 0");
    qn_layout_right(3, INDEX(3, 0, 5), &l, &err);
    tap_is_int(qn_layout_size(&l), 0, "Q6 of the plain constructor: empty");
}

static void test_bounds(void)
{
    qn_layout l;
    qn_error err = {0};
    tap_ok(qn_layout_bounds(1, INDEX(-5), INDEX(5), NULL, &l, &err) == QN_OK, "bounds");
    tap_ok(at(&l, 1, INDEX(-5)) == 0 && at(&l, 1, INDEX(4)) == 9, "LY14, X1.10 [-5,5)");
    tap_is_int(qn_layout_size(&l), 10, "LY14 size");
    qn_layout_bounds(2, INDEX(-1, -5), INDEX(2, 5), NULL, &l, &err);
    tap_is_int(at(&l, 2, INDEX(0, 0)), 15, "LY15 (0,0)");
    is_text(&l, "(3,10):(10,1)@(-1,-5)", "LY15, X1.11");
    qn_layout_bounds(2, INDEX(-1, -5), INDEX(2, 5), (int[]){0, 1}, &l, &err);
    tap_ok(at(&l, 2, INDEX(0, -5)) == 1 && at(&l, 2, INDEX(-1, -4)) == 3 &&
               at(&l, 2, INDEX(1, 4)) == 29,
           "LY16 elements");
    is_text(&l, "(3,10):(1,3)@(-1,-5)", "LY16, X1.12 (longest first {1,0} is fastest first {0,1})");
    tap_ok(qn_layout_bounds(1, INDEX(3), INDEX(3), NULL, &l, &err) == QN_OK &&
               qn_layout_size(&l) == 0,
           "empty bounds");
    tap_ok(qn_layout_fortran(3, INDEX(-1, 1, 0), INDEX(2, 5, 4), &l, &err) == QN_OK, "fortran");
    is_text(&l, "(4,5,5):(1,4,20)@(-1,1,0)", "LY18 {-1,2},5,{0,4}");
    qn_layout_fortran(2, NULL, INDEX(5, 7), &l, &err);
    is_text(&l, "(5,7):(1,5)@(1,1)", "Q18 lower bounds default to 1");
    qn_layout_fortran(2, INDEX(-1, -2), INDEX(3, 2), &l, &err);
    tap_ok(l.dim[0].extent == 5 && at(&l, 2, INDEX(-1, -2)) == 0 && at(&l, 2, INDEX(3, 2)) == 24,
           "LY17 inclusive {-1,3},{-2,2}");
    tap_ok(qn_layout_fortran(1, INDEX(3), INDEX(1), &l, &err) == QN_ERR_RANGE, "LY18 u < l - 1");
    tap_is_str(err.message,
               "qn_layout_fortran: dimension 0: bounds {3,1}: the upper is below the lower",
               "message");
    tap_ok(qn_layout_fortran(2, INDEX(3, INT64_MIN + 1), INDEX(2, INT64_MIN), &l, &err) == QN_OK,
           "LY18 u = l - 1: %s", err.message);
    is_text(&l, "(0,0):(1,0)@(3,-9223372036854775807)", "is empty");
    tap_ok(qn_layout_fortran(1, NULL, INDEX(0), &l, &err) == QN_OK && l.dim[0].extent == 0 &&
               l.dim[0].lower == 1,
           "a(0)");
}

static void test_digits(void)
{
    qn_layout l, again;
    qn_error err = {0};
    tap_ok(qn_layout_morton(2, INDEX(4, 4), NULL, &l, &err) == QN_OK, "morton");
    tap_ok(qn_layout_is_contiguous(&l) && qn_layout_is_unique(&l) && qn_layout_n_digits(&l) == 4,
           "LY20 of powers of two fills its span");
    is_text(&l, "((2,2),(2,2)):((2,8),(1,4))", "LY20 Morton (4,4)");
    qn_layout_morton(2, INDEX(5, 3), (int[]){0, 1}, &l, &err);
    tap_is_int(at(&l, 2, INDEX(4, 2)), 24, "LY20 (4,2) of (5,3), first dimension lowest");
    is_text(&l, "((2,2,2),(2,2)):((1,4,16),(2,8))", "LY20 padded to (8,4)");
    qn_layout_morton(3, INDEX(8, 1, 1), NULL, &l, &err);
    tap_ok(!l.digits, "bits that follow one another are one digit");
    is_text(&l, "(8,1,1):(1,0,0)", "LY20 of one dimension");
    tap_ok(qn_layout_morton(2, INDEX(0, 8), NULL, &l, &err) == QN_OK && qn_layout_size(&l) == 0,
           "LY20 empty");
    const qn_digit digits[] = {{4, 1}, {3, 32}, {2, 4}, {4, 8}};
    tap_ok(qn_layout_custom(2, NULL, (int[]){2, 2}, digits, &l, &err) == QN_OK, "custom");
    tap_is_int(at(&l, 2, INDEX(6, 5)), 2 + 32 + 4 + 16, "LY21 (6,5)");
    tap_ok(qn_layout_custom(2, INDEX(12, 8), (int[]){2, 1}, (qn_digit[]){{4, 1}, {3, 32}, {8, 4}},
                            &again, &err) == QN_OK &&
               qn__layout_equal(&l, &again),
           "LY21 in the shortest form");
    qn_layout_release(&again);
    is_text(&l, "((4,3),8):((1,32),4)", "LY21 custom");
    qn_layout_custom(3, INDEX(1, 3, 0), (int[]){0, 1, 0}, (qn_digit[]){{5, 7}}, &l, &err);
    is_text(&l, "(1,3,0):(0,7,0)", "LY21 cut, and without digits");
}

/* ---------------------------------------------------------------- definitions */

/** Position of an index by its bits, one after the other. */
static int64_t interleave(int rank, const int64_t *extents, const int *order, const int64_t *index)
{
    int64_t offset = 0, weight = 1;
    for (int bit = 0; bit < 63; bit++)
        for (int i = 0; i < rank; i++) {
            int d = order[i];
            if ((extents[d] - 1) >> bit == 0)
                continue;
            offset += (index[d] >> bit & 1) * weight;
            weight *= 2;
        }
    return offset;
}

static void test_random_morton(void)
{
    int n_wrong = 0;
    for (int i = 0; i < 1500; i++) {
        int64_t extents[3], index[3] = {0}, found[3], offset;
        int rank = (int)random_in(1, 3), order[3];
        random_order(rank, order);
        for (int d = 0; d < rank; d++)
            extents[d] = random_in(1, 11);
        qn_layout l;
        n_wrong += qn_layout_morton(rank, extents, order, &l, NULL) != QN_OK;
        n_wrong += !qn_layout_is_unique(&l);
        do {
            int64_t expected = interleave(rank, extents, order, index);
            n_wrong += qn_layout_at(&l, rank, index, &offset, NULL) != QN_OK || offset != expected;
            n_wrong += qn_layout_inverse(&l, offset, found, NULL) != QN_OK ||
                       memcmp(found, index, (size_t)rank * sizeof *found) != 0;
        } while (next_index(&l, index));
        qn_layout_release(&l);
    }
    tap_is_int(n_wrong, 0, "LY20 offset is the interleaved bits, and back");
}

static void test_random_custom(void)
{
    int n_wrong = 0;
    for (int i = 0; i < 3000; i++) {
        qn_digit digit[6];
        int n_digits[2] = {(int)random_in(0, 3), (int)random_in(0, 3)};
        int64_t extents[2], index[2] = {0}, offset;
        for (int d = 0, j = 0; d < 2; d++) {
            extents[d] = 1;
            for (int k = 0; k < n_digits[d]; k++, j++) {
                digit[j] = (qn_digit){random_in(1, 4), random_in(-20, 40)};
                extents[d] *= digit[j].extent;
            }
            extents[d] = random_in(0, 1) ? extents[d] : random_in(1, extents[d]);
        }
        qn_layout l, again;
        n_wrong += qn_layout_custom(2, extents, n_digits, digit, &l, NULL) != QN_OK;
        do {
            int64_t sum = 0;
            for (int d = 0, j = 0; d < 2; d++) {
                int64_t rest = index[d];
                for (int k = 0; k < n_digits[d]; k++, j++) {
                    sum += rest % digit[j].extent * digit[j].stride;
                    rest /= digit[j].extent;
                }
            }
            n_wrong += qn_layout_at(&l, 2, index, &offset, NULL) != QN_OK || offset != sum;
        } while (next_index(&l, index));
        qn_digit written[QN_MAX_DIGITS];
        int n_written[2] = {qn_layout_digits(&l, 0, written)};
        n_written[1] = qn_layout_digits(&l, 1, written + n_written[0]);
        n_wrong += qn_layout_n_digits(&l) != n_written[0] + n_written[1];
        n_wrong += qn_layout_custom(2, extents, n_written, written, &again, NULL) != QN_OK ||
                   !qn__layout_equal(&l, &again);
        qn_layout_release(&again);
        qn_layout_release(&l);
    }
    tap_is_int(n_wrong, 0, "LY21 offset is the sum of digit x stride; its digits give it back");
}

/* ---------------------------------------------------------------- hostile numbers */

/** Whether a dense layout of two extents fits, `fast` being the one of stride 1. */
static bool dense_fits(wide fast, wide slow)
{
    return fast >= 0 && slow >= 0 && fits(fast) && fits(slow) && fits(fast * slow);
}

static bool expect_padded(const int64_t *e)
{
    if (e[0] < 0 || e[1] < 0)
        return false;
    return dense_fits(e[1] <= 8 || e[1] % 8 == 0 ? (wide)e[1] : (wide)e[1] + 8 - e[1] % 8, e[0]);
}

static bool expect_bounds(const int64_t *begin, const int64_t *end)
{
    return dense_fits((wide)end[1] - begin[1], (wide)end[0] - begin[0]);
}

static bool expect_fortran(const int64_t *lower, const int64_t *upper)
{
    return (wide)upper[0] >= (wide)lower[0] - 1 && (wide)upper[1] >= (wide)lower[1] - 1 &&
           upper[0] < INT64_MAX && upper[1] < INT64_MAX &&
           dense_fits((wide)upper[0] - lower[0] + 1, (wide)upper[1] - lower[1] + 1);
}

/** One dimension of two digits. */
static bool expect_custom(const qn_digit *digit)
{
    wide low = 0, high = 0;
    for (int j = 0; j < 2; j++) {
        wide reach = (wide)(digit[j].extent - 1) * digit[j].stride;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
        if (digit[j].extent < 1 - j)
            return false;
    }
    return fits((wide)digit[0].extent * digit[1].extent) &&
           (digit[1].extent == 0 || (fits(low) && fits(high)));
}

static bool expect_morton(const int64_t *e)
{
    int bits = 0;
    for (int d = 0; d < 2; d++)
        for (int64_t last = e[d] > 0 ? e[d] - 1 : 0; last > 0; last /= 2)
            bits++;
    return e[0] >= 0 && e[1] >= 0 && bits <= 63 && fits((wide)e[0] * e[1]);
}

static void test_hostile(void)
{
    static const char *const names[] = {"padded", "bounds", "fortran", "custom", "morton"};
    int n_wrong[5] = {0}, n_accepted[5] = {0};
    for (int i = 0; i < 250000; i++) {
        int64_t a[2] = {random_awkward(), random_awkward()};
        int64_t b[2] = {random_awkward(), random_awkward()};
        qn_digit digit[2] = {{a[0] == INT64_MIN ? -1 : a[0], b[0]},
                             {a[1] == INT64_MIN ? -1 : a[1], b[1]}};
        int kind = i % 5;
        qn_layout l;
        qn_status status = kind == 0   ? qn_layout_right_padded(2, a, 8, &l, NULL)
                           : kind == 1 ? qn_layout_bounds(2, a, b, NULL, &l, NULL)
                           : kind == 2 ? qn_layout_fortran(2, a, b, &l, NULL)
                           : kind == 3 ? qn_layout_custom(1, NULL, (int[]){2}, digit, &l, NULL)
                                       : qn_layout_morton(2, a, NULL, &l, NULL);
        bool accepts = kind == 0   ? expect_padded(a)
                       : kind == 1 ? expect_bounds(a, b)
                       : kind == 2 ? expect_fortran(a, b)
                       : kind == 3 ? expect_custom(digit)
                                   : expect_morton(a);
        n_wrong[kind] += accepts != (status == QN_OK);
        if (status != QN_OK)
            continue;
        n_accepted[kind]++;
        int64_t low, high;
        n_wrong[kind] += qn_layout_range(&l, &low, &high, NULL) != QN_OK ||
                         qn__layout_check(&l, "x", NULL) != QN_OK ||
                         (kind != 3 && !qn_layout_is_unique(&l));
        qn_layout_release(&l);
    }
    for (int kind = 0; kind < 5; kind++) {
        tap_ok(n_accepted[kind] > 1000 && n_accepted[kind] < 49000, "%s: %d of 50000 accepted",
               names[kind], n_accepted[kind]);
        tap_is_int(n_wrong[kind], 0, "Q5 accepted iff it fits");
    }
}

/* ---------------------------------------------------------------- bad arguments */

static void test_bad_extents(void)
{
    const int64_t e[2] = {2, 3}, negative[2] = {2, -3};
    const int64_t huge[2] = {INT64_MAX - 3, INT64_MAX - 3};
    const int order[2] = {0, 1}, twice[2] = {1, 1};
    qn_layout out;
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_right_padded, 2, NULL, 8, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_right_padded, INT_MIN, e, 8, &out); /* INT_MIN - 1 */
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_right_padded, 2, e, 8, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_right_padded, 2, e, 0, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_right_padded, 17, e, 8, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_left_padded, 2, negative, 8, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_left_padded, 2, huge, 8, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_permuted, 2, e, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_permuted, 2, e, twice, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_permuted, 2, negative, order, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_permuted, 2, huge, order, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_projected, 2, NULL, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_projected, 2, negative, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_projected, 2, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_morton, 2, NULL, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_morton, 2, e, twice, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_morton, 2, negative, order, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_morton, 2, huge, order, &out);
}

static void test_bad_bounds(void)
{
    const int64_t low[2] = {1, 1}, high[2] = {3, 4}, lowest[2] = {INT64_MIN, 1};
    const int64_t last[2] = {3, INT64_MAX};
    const int twice[2] = {1, 1}, counts[2] = {2, 1}, minus[2] = {1, -1}, many[2] = {40, 30};
    const qn_digit digits[3] = {{4, 1}, {2, 8}, {3, 16}}, zero[3] = {{0, 1}, {2, 8}, {3, 16}};
    qn_digit all[70];
    for (int j = 0; j < 70; j++)
        all[j] = (qn_digit){j % 2 + 1, j % 5};
    qn_layout out;
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_bounds, 2, NULL, high, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_bounds, 2, low, NULL, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_bounds, 2, low, high, NULL, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_bounds, 2, low, high, twice, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_bounds, -1, low, high, NULL, &out);
    REFUSED(QN_ERR_RANGE, out, qn_layout_bounds, 2, high, low, NULL, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_bounds, 2, lowest, high, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_fortran, 2, low, NULL, &out);
    REFUSED(QN_ERR_RANGE, out, qn_layout_fortran, 2, high, low, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_fortran, 2, lowest, high, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_fortran, 2, low, last, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_custom, 2, NULL, NULL, digits, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_custom, 2, NULL, counts, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_custom, 2, NULL, minus, digits, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_custom, 2, NULL, counts, zero, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_custom, 2, INDEX(8, 4), counts, digits, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_custom, 2, INDEX(-1, 3), counts, digits, &out);
    REFUSED(QN_ERR_LIMIT, out, qn_layout_custom, 2, NULL, many, all, &out);
}

int main(void)
{
    test_padded();
    test_permuted();
    test_projected();
    test_bounds();
    test_digits();
    test_random_morton();
    test_random_custom();
    test_hostile();
    test_bad_extents();
    test_bad_bounds();
    return tap_done();
}
