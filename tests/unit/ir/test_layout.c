/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layout.c: layouts in exact numbers, named by the row of the specification they come from
 * (LY1, X1.17, ...), and every function of layouts with bad arguments.
 */
#include "tests/unit/layout.h"

/* ---------------------------------------------------------------- helpers */

/** Offset of an index, or INT64_MIN with a note. */
static int64_t at(const qn_layout *l, int n, const int64_t *index)
{
    int64_t offset = INT64_MIN;
    qn_error err = {0};
    if (qn_layout_at(l, n, index, &offset, &err))
        tap_note("%s", err.message);
    return offset;
}
#define AT1(l, i) at(l, 1, INDEX(i))
#define AT2(l, i, j) at(l, 2, INDEX(i, j))
#define AT3(l, i, j, k) at(l, 3, INDEX(i, j, k))

static void is_text(const qn_layout *l, const char *expected, const char *what)
{
    char text[400];
    size_t n = qn_layout_print(l, text, sizeof text);
    tap_is_str(text, expected, what);
    tap_ok(n == strlen(expected), "%s: length", what);
}

/* ---------------------------------------------------------------- exact numbers */

static void test_constructors(void)
{
    qn_layout l;
    qn_error err = {0};
    int64_t e234[] = {2, 3, 4};
    tap_ok(qn_layout_right(3, e234, &l, &err) == QN_OK, "right");
    is_text(&l, "(2,3,4):(12,4,1)", "LY1 right (2,3,4)");
    tap_ok(qn_layout_left(3, e234, &l, &err) == QN_OK, "left");
    is_text(&l, "(2,3,4):(1,2,6)", "LY2 left (2,3,4)");
    tap_ok(qn_layout_strided(3, INDEX(3, 4, 5), INDEX(4, 1, 12), &l, &err) == QN_OK, "strided");
    tap_is_int(qn_layout_span(&l), 60, "LY3 span");
    tap_ok(qn_layout_is_contiguous(&l), "LY3 contiguous");
    tap_ok(qn_layout_is_unique(&l), "LY3 unique");
    tap_ok(qn_layout_ordered(3, INDEX(3, 4, 5), (int[]){1, 0, 2}, &l, &err) == QN_OK, "ordered");
    is_text(&l, "(3,4,5):(4,1,12)", "LY4 order {1,0,2}");
    qn_layout_ordered(3, e234, (int[]){0, 1, 2}, &l, &err);
    is_text(&l, "(2,3,4):(1,2,6)", "LY4 order {0,1,2} is left");
    qn_layout_ordered(3, e234, (int[]){2, 1, 0}, &l, &err);
    is_text(&l, "(2,3,4):(12,4,1)", "LY4 order {2,1,0} is right");
    /* Longest stride first {1,2,0} is fastest first {0,2,1}. */
    qn_layout_ordered(3, INDEX(5, 7, 11), (int[]){0, 2, 1}, &l, &err);
    is_text(&l, "(5,7,11):(1,55,5)", "LY11, X1.7 permuted");
    tap_is_int(qn_layout_size(&l), 385, "LY11 size");
    qn_layout_ordered(3, INDEX(5, 7, 11), (int[]){2, 1, 0}, &l, &err);
    is_text(&l, "(5,7,11):(77,11,1)", "X1.8 identity");
    qn_layout_left(2, INDEX(5, 7), &l, &err);
    tap_is_int(l.dim[1].stride, 5, "LY8 leading dimension");
}

static void test_offsets(void)
{
    qn_layout l, r;
    qn_error err = {0};
    qn_layout_right(1, INDEX(10), &l, &err);
    tap_ok(qn_layout_offset(&l, INDEX(-5), &l, &err) == QN_OK, "offset in place");
    tap_is_int(AT1(&l, -5), 0, "LY14 -5");
    tap_is_int(AT1(&l, 4), 9, "LY14 4");
    tap_is_int(qn_layout_size(&l), 10, "LY14 size");
    qn_layout_right(2, INDEX(3, 10), &r, &err);
    qn_layout_offset(&r, INDEX(-1, -5), &l, &err);
    is_text(&l, "(3,10):(10,1)@(-1,-5)", "LY15, X1.11 strides and bounds");
    tap_is_int(AT2(&l, -1, -5), 0, "LY15 (-1,-5)");
    tap_is_int(AT2(&l, 0, 0), 15, "LY15 (0,0)");
    tap_is_int(AT2(&l, 1, 4), 29, "LY15 (1,4)");
    qn_layout_left(2, INDEX(3, 10), &r, &err);
    qn_layout_offset(&r, INDEX(-1, -5), &l, &err);
    tap_is_int(AT2(&l, 0, -5), 1, "LY16 (0,-5)");
    tap_is_int(AT2(&l, -1, -4), 3, "LY16 (-1,-4)");
    tap_is_int(AT2(&l, 1, 4), 29, "LY16 (1,4)");
    int64_t found[3];
    tap_ok(qn_layout_inverse(&l, 3, found, &err) == QN_OK && found[0] == -1 && found[1] == -4,
           "LY16 inverse of 3");
    qn_layout_right(2, INDEX(2, 5), &l, &err);
    qn_layout_offset(&l, INDEX(1, 1), &l, &err);
    tap_is_int(AT2(&l, 1, 1), 0, "IM4 (1,1)");
    tap_is_int(AT2(&l, 2, 5), 9, "IM4 (2,5)");
    int64_t offset = 77;
    tap_ok(qn_layout_at(&l, 2, INDEX(0, 1), &offset, &err) == QN_ERR_BOUNDS,
           "IM4 (0,1) is out of bounds");
    tap_is_int(offset, 77, "output untouched");
    tap_is_str(err.message, "qn_layout_at: dimension 0: index 0 not in [1,3)", "message");
}

static void test_mapping(void)
{
    qn_layout l;
    qn_error err = {0};
    int64_t index[3] = {9, 9, 9};
    qn_layout_right(3, INDEX(5, 7, 11), &l, &err);
    tap_is_int(AT3(&l, 2, 3, 1), 188, "IM1, X1.17 (2,3,1)");
    tap_ok(qn_layout_inverse(&l, 188, index, &err) == QN_OK && index[0] == 2 && index[1] == 3 &&
               index[2] == 1,
           "IM2, X1.18 188 is (2,3,1)");
    tap_ok(qn_layout_inverse(&l, 385, index, &err) == QN_ERR_NOT_FOUND, "IM3 385");
    tap_contains(err.message, "qn_layout_inverse: offset 385", "IM3 message");
    tap_ok(qn_layout_inverse(&l, -1, index, &err) == QN_ERR_NOT_FOUND, "IM3 -1");
    tap_ok(index[0] == 2 && index[1] == 3 && index[2] == 1, "IM3 output untouched");
    qn_layout_left(3, INDEX(5, 7, 11), &l, &err);
    tap_is_int(AT3(&l, 2, 3, 1), 2 + 3 * 5 + 35, "left (2,3,1)");
    qn_layout_strided(2, INDEX(3, 3), INDEX(1, 2), &l, &err);
    tap_ok(qn_layout_inverse(&l, 2, index, &err) == QN_ERR_NOT_INJECTIVE,
           "no inverse of a layout that folds");
}

static void test_special_shapes(void)
{
    qn_layout l;
    qn_error err = {0};
    qn_layout_right(2, INDEX(0, 5), &l, &err);
    is_text(&l, "(0,5):(5,1)", "RK7 right (0,5)");
    tap_is_int(qn_layout_span(&l), 0, "RK7 span");
    tap_is_int(qn_layout_size(&l), 0, "RK7 size");
    tap_ok(qn_layout_is_contiguous(&l) && qn_layout_is_unique(&l), "RK7 contiguous and unique");
    int64_t offset, low = 5, high = 5;
    tap_ok(qn_layout_at(&l, 2, INDEX(0, 0), &offset, &err) == QN_ERR_BOUNDS,
           "RK7 no index is in bounds");
    tap_ok(qn_layout_range(&l, &low, &high, &err) == QN_OK && low == 0 && high == -1, "RK7 range");
    tap_ok(qn_layout_inverse(&l, 0, &low, &err) == QN_ERR_NOT_FOUND, "RK7 inverse");
    qn_layout_left(2, INDEX(0, 5), &l, &err);
    is_text(&l, "(0,5):(1,0)", "RK7 left (0,5)");
    tap_ok(qn_layout_right(0, NULL, &l, &err) == QN_OK, "RK8 rank 0");
    is_text(&l, "():()", "RK8 text");
    tap_is_int(qn_layout_size(&l), 1, "RK8 size");
    tap_is_int(qn_layout_span(&l), 1, "RK8 span");
    tap_is_int(at(&l, 0, NULL), 0, "RK8 offset");
    tap_ok(qn_layout_is_contiguous(&l) && qn_layout_is_unique(&l), "RK8 contiguous and unique");
    tap_ok(qn_layout_inverse(&l, 0, NULL, &err) == QN_OK, "RK8 inverse");
    qn_layout zero = {0};
    tap_ok(qn__layout_check(&zero, "x", &err) == QN_OK && qn__layout_equal(&zero, &l),
           "all-zero is the scalar layout");
    int64_t ones[QN_MAX_RANK];
    for (int d = 0; d < QN_MAX_RANK; d++)
        ones[d] = 2;
    tap_ok(qn_layout_right(QN_MAX_RANK, ones, &l, &err) == QN_OK, "largest rank");
    tap_is_int(qn_layout_size(&l), 65536, "largest rank: size");
    tap_ok(qn_layout_right(QN_MAX_RANK + 1, ones, &l, &err) == QN_ERR_RANK, "rank 17");
    tap_contains(err.message, "qn_layout_right: rank 17", "rank 17: message");
}

static void test_projection(void)
{
    qn_error err = {0};
    qn_layout l = {.rank = 3, .projected = 2, .dim = {{0, 3, 5}, {0, 0, 0}, {0, 5, 1}}};
    tap_is_int(qn_layout_size(&l), 15, "LY24 size");
    tap_is_int(AT3(&l, 0, 10, 0), 0, "LY24, X1.19 (0,10,0)");
    tap_is_int(AT3(&l, 0, 5, 1), 1, "LY24 (0,5,1)");
    tap_is_int(AT3(&l, 2, 99, 4), 14, "LY24 (2,99,4)");
    int64_t index[3];
    tap_ok(qn_layout_inverse(&l, 1, index, &err) == QN_OK && index[0] == 0 && index[1] == 0 &&
               index[2] == 1,
           "LY24 inverse of 1");
    tap_ok(!qn_layout_is_unique(&l), "a projection is not unique");
    tap_ok(qn_layout_is_contiguous(&l), "LY24 contiguous");
    qn_slice slices[3] = {{.kind = QN_ALL}, {.kind = QN_AT, .begin = 1000}, {.kind = QN_ALL}};
    qn_layout s;
    tap_ok(qn_layout_slice(&l, 3, slices, &s, &err) == QN_OK && s.rank == 2 && AT2(&s, 2, 4) == 14,
           "an index of a projected dimension may be anything");
    slices[1] = (qn_slice){.kind = QN_RANGE};
    tap_ok(qn_layout_slice(&l, 3, slices, &s, &err) == QN_ERR_UNSUPPORTED,
           "a projected dimension takes no range");
    qn_layout both = {.rank = 2, .projected = 3};
    tap_is_int(qn_layout_size(&both), 1, "LY24 (0,0): size");
    tap_is_int(AT2(&both, -7, 8), 0, "LY24 (0,0): every index is 0");
    qn_layout wrong = {.rank = 1, .projected = 2};
    tap_ok(qn__layout_check(&wrong, "x", &err) == QN_ERR_ARGUMENT,
           "projected bits beyond the rank are refused");
}

static void test_tiled(void)
{
    qn_layout l, p;
    qn_error err = {0};
    tap_ok(qn_layout_tiled(2, INDEX(5, 6), INDEX(2, 4), NULL, NULL, &l, &err) == QN_OK, "tiled");
    is_text(&l, "((2,3),(4,2)):((4,16),(1,8))", "LY19 text");
    bool is_right = true;
    for (int64_t i = 0; i < 5; i++)
        for (int64_t j = 0; j < 6; j++)
            is_right &= AT2(&l, i, j) == ((i / 2) * 2 + j / 4) * 8 + (i % 2) * 4 + j % 4;
    tap_ok(is_right, "LY19 offset is tile offset x elements per tile + inner offset");
    tap_is_int(qn_layout_span(&l), 42, "LY19 span of what can be reached: (4,5) is 41");
    tap_ok(qn_layout_is_unique(&l), "LY19 unique");
    tap_ok(!qn_layout_is_contiguous(&l), "LY19 with cut tiles is not contiguous");
    p = qn_layout_copy(&l);
    tap_ok(p.digits == l.digits && p.digits->references == 2, "a copy shares the table");
    tap_ok(qn_layout_offset(&p, INDEX(1, 1), &p, &err) == QN_OK && p.digits == l.digits &&
               p.digits->references == 2,
           "offset in place shares it, too");
    tap_ok(qn_layout_permute(&l, (int[]){1, 0}, &p, &err) == QN_OK && p.digits != l.digits,
           "permute makes its own");
    tap_ok(AT2(&p, 5, 4) == 41, "permuted");
    qn_layout_release(&p);
    tap_is_int(l.digits->references, 2, "the layout overwritten without release still counts");
    l.digits->references = 1;
    qn_slice slices[2] = {{.kind = QN_AT, .begin = 3}, {.kind = QN_RANGE, .begin = 1, .end = 6}};
    tap_ok(qn_layout_slice(&l, 2, slices, &p, &err) == QN_ERR_UNSUPPORTED,
           "a part of several digits that is not aligned is refused");
    tap_contains(err.message, "qn_layout_slice: dimension 1", "... by name and dimension");
    slices[1] = (qn_slice){.kind = QN_ALL};
    tap_ok(qn_layout_slice(&l, 2, slices, &p, &err) == QN_OK &&
               AT1(&p, 5) == ((3 / 2) * 2 + 1) * 8 + 4 + 1,
           "a row of a tiled layout");
    qn_layout_release(&p);
    slices[1] = (qn_slice){.kind = QN_AT, .begin = 5};
    tap_ok(qn_layout_slice(&l, 2, slices, &l, &err) == QN_OK && !l.digits && l.rank == 0 &&
               l.origin == 29,
           "an element, in place: the table is dropped");
    tap_ok(qn_layout_tiled(2, INDEX(5, 6), INDEX(1, 6), NULL, NULL, &l, &err) == QN_OK && !l.digits,
           "tiles that change nothing need no table");
    is_text(&l, "(5,6):(6,1)", "... and are the right layout");
    tap_ok(qn_layout_tiled(1, INDEX(5), INDEX(0), NULL, NULL, &l, &err) == QN_ERR_EXTENT, "tile 0");
    tap_contains(err.message, "qn_layout_tiled: dimension 0: tile 0", "tile 0: message");
    tap_ok(qn_layout_tiled(2, INDEX(4, 4), INDEX(2, 2), (int[]){0, 1}, (int[]){0, 1}, &l, &err) ==
               QN_OK,
           "orders");
    is_text(&l, "((2,2),(2,2)):((1,4),(2,8))", "left inside, left outside");
    qn_layout_release(&l);
    tap_ok(l.rank == 0 && !l.digits, "released is all-zero");
}

static void test_slices(void)
{
    qn_layout l, s;
    qn_error err = {0};
    qn_layout_right(3, INDEX(5, 6, 7), &l, &err);
    qn_slice slices[3] = {
        {.kind = QN_AT, .begin = 1}, {.kind = QN_ALL}, {.kind = QN_RANGE, .begin = 2, .end = 5}};
    tap_ok(qn_layout_slice(&l, 3, slices, &s, &err) == QN_OK, "SV9");
    is_text(&s, "(6,3):(7,1)+44", "SV2, SV9 (1,ALL,(2,5))");
    qn_slice points[3] = {
        {.kind = QN_AT, .begin = 4}, {.kind = QN_AT, .begin = 5}, {.kind = QN_AT, .begin = 6}};
    tap_ok(qn_layout_slice(&l, 3, points, &s, &err) == QN_OK && s.rank == 0 && s.origin == 209,
           "SV5 all integers");
    qn_layout_left(2, INDEX(10, 5), &l, &err);
    qn_slice rows[2] = {{.kind = QN_RANGE, .begin = 1, .end = 9}, {.kind = QN_ALL}};
    qn_layout_slice(&l, 2, rows, &s, &err);
    tap_is_int(qn_layout_span(&s), 48, "RK10 span of left (10,5) ((1,9),ALL)");
    tap_ok(!qn_layout_is_contiguous(&s), "SV7 rows of left are not contiguous");
    qn_slice columns[2] = {{.kind = QN_ALL}, {.kind = QN_RANGE, .begin = 2, .end = 4}};
    qn_layout_slice(&l, 2, columns, &s, &err);
    tap_ok(qn_layout_is_contiguous(&s), "SV7 columns are");
    qn_slice empty[2] = {{.kind = QN_ALL}, {.kind = QN_RANGE, .begin = 5, .end = 5}};
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_OK && qn_layout_size(&s) == 0,
           "SV6 empty range at the end");
    empty[1].end = 4;
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_ERR_RANGE, "Q13 reversed range");
    tap_contains(err.message, "qn_layout_slice: dimension 1: range [5,4)", "Q13 message");
    empty[1] = (qn_slice){.kind = QN_RANGE, .begin = 0, .end = 6};
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_ERR_RANGE, "BC10 range beyond the extent");
    tap_contains(err.message, "[0,6) not in [0,5)", "BC10 message");
    empty[1] = (qn_slice){.kind = QN_RANGE, .begin = -1, .end = 2};
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_ERR_RANGE, "negative begin");
    empty[1] = (qn_slice){.kind = QN_AT, .begin = 5};
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_ERR_BOUNDS, "index out of bounds");
    empty[1] = (qn_slice){.kind = QN_RANGE, .begin = 0, .end = 5, .step = -1};
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_ERR_RANGE, "negative step");
    tap_ok(qn_layout_slice(&l, 1, empty, &s, &err) == QN_ERR_RANK, "too few slices");
    empty[0].kind = 3;
    tap_ok(qn_layout_slice(&l, 2, empty, &s, &err) == QN_ERR_ARGUMENT, "unknown kind");
    qn_layout_offset(&l, INDEX(1, 1), &l, &err);
    qn_slice bounds[2] = {{.kind = QN_ALL}, {.kind = QN_RANGE, .begin = 2, .end = 6, .step = 2}};
    qn_layout_slice(&l, 2, bounds, &s, &err);
    is_text(&s, "(10,2):(1,20)@(1,0)+10", "LY17 ALL keeps the lower bound, a range resets it");
}

/* ---------------------------------------------------------------- bad arguments */

static void test_bad_arguments(void)
{
    const int64_t e[3] = {2, 3, 4}, negative[3] = {2, -3, 4},
                  huge[3] = {(int64_t)1 << 32, (int64_t)1 << 31, 4};
    const int order[3] = {0, 1, 2}, wrong_order[3] = {0, 0, 2}, outside[3] = {0, 3, 1};
    qn_layout l, out;
    int64_t number;
    qn_layout_right(3, e, &l, NULL);
    qn_layout bad_rank = {.rank = 17}, minus = {.rank = -1};
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_right, 3, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_right, 3, e, NULL);
    REFUSED(QN_ERR_RANK, out, qn_layout_right, -1, e, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_right, INT32_MAX, e, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_right, 3, negative, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_right, 3, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_left, 3, NULL, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_left, 3, negative, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_left, 3, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_strided, 3, e, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_strided, 3, NULL, e, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_strided, 3, e, e, NULL);
    REFUSED(QN_ERR_RANK, out, qn_layout_strided, 17, e, e, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_strided, 3, huge, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_ordered, 3, e, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_ordered, 3, e, wrong_order, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_ordered, 3, e, outside, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_tiled, 3, e, NULL, NULL, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_tiled, 3, e, e, wrong_order, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_tiled, 3, e, e, order, outside, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_tiled, 3, e, negative, NULL, NULL, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_tiled, 3, huge, e, NULL, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_offset, NULL, e, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_offset, &l, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_offset, &l, e, NULL);
    REFUSED(QN_ERR_RANK, out, qn_layout_offset, &bad_rank, e, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_offset, &l, INDEX(0, INT64_MAX, 0), &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_permute, &l, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_permute, &l, wrong_order, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_permute, &l, outside, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_permute, &minus, order, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_broadcast, NULL, 0, 1, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_broadcast, &l, -1, 1, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_broadcast, &l, 4, 1, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_broadcast, &l, 0, -1, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_broadcast, &l, 0, INT64_MAX, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_reverse, &l, -1, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_reverse, &l, 3, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_reverse, &l, 0, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_slice, &l, 3, NULL, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_slice, &l, 2, (qn_slice[3]){{0}}, &out);
    REFUSED(QN_ERR_RANK, number, qn_layout_at, &l, 2, e, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_at, NULL, 3, e, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_at, &l, 3, NULL, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_at, &l, 3, e, NULL);
    REFUSED(QN_ERR_BOUNDS, number, qn_layout_at, &l, 3, INDEX(0, 0, 4), &number);
    REFUSED(QN_ERR_BOUNDS, number, qn_layout_at, &l, 3, INDEX(0, -1, 0), &number);
    REFUSED(QN_ERR_RANK, number, qn_layout_at, &bad_rank, 17, e, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_inverse, &l, 0, NULL);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_inverse, NULL, 0, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_range, &l, &number, NULL);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_range, &l, NULL, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_range, NULL, &number, &number);
    REFUSED(QN_ERR_RANK, number, qn_layout_range, &minus, &number, &number);
    qn_layout_release(NULL);
    qn_layout copy = qn_layout_copy(NULL);
    tap_ok(copy.rank == 0 && !copy.digits, "copy of NULL");
    tap_ok(qn_layout_size(NULL) == 0 && qn_layout_span(NULL) == 0 && !qn_layout_is_unique(NULL) &&
               !qn_layout_is_contiguous(NULL) && qn_layout_digits(NULL, 0, NULL) == 0,
           "queries of NULL");
    tap_ok(qn_layout_size(&bad_rank) == 0 && qn_layout_span(&bad_rank) == -1 &&
               !qn_layout_is_unique(&bad_rank) && qn_layout_digits(&bad_rank, 0, NULL) == 0 &&
               qn_layout_digits(&l, 3, NULL) == 0 && qn_layout_digits(&l, -1, NULL) == 0,
           "queries with a bad rank or dimension");
    char text[8];
    tap_ok(qn_layout_print(NULL, text, sizeof text) == 1 && text[0] == '?', "text of NULL");
    tap_ok(qn_layout_right(3, negative, &out, NULL) == QN_ERR_EXTENT, "err may be NULL");
}

int main(void)
{
    test_constructors();
    test_offsets();
    test_mapping();
    test_special_shapes();
    test_projection();
    test_tiled();
    test_slices();
    test_bad_arguments();
    return tap_done();
}
