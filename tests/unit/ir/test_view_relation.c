/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_view_relation.c: whether two views share elements, against a map of the bytes they touch.
 * "Disjoint" must be right always; "overlapping" must be right wherever no tile is cut by an
 * extent.
 */
#include "tests/unit/layout.h"

enum { BYTES = 4096, MIDDLE = 2048 };
static _Alignas(64) char memory[BYTES];

/** Marks the bytes of a view's elements with `value`; tells whether any held `sought`. */
static bool mark(const qn_view *v, char *map, char value, char sought)
{
    bool is_found = false;
    int64_t index[QN_MAX_RANK], bytes = qn_dtype_bytes(v->dtype);
    for (int64_t t = 0; t < qn_layout_size(&v->layout); t++) {
        int64_t rest = t;
        for (int d = v->layout.rank - 1; d >= 0; d--) {
            index[d] = v->layout.dim[d].lower + rest % v->layout.dim[d].extent;
            rest /= v->layout.dim[d].extent;
        }
        char *p = (char *)v->data + qn__layout_offset_of(&v->layout, index) * bytes;
        for (int64_t k = 0; k < bytes; k++) {
            is_found |= map[p - memory + k] == sought;
            map[p - memory + k] = value;
        }
    }
    return is_found;
}

static bool share_bytes(const qn_view *a, const qn_view *b)
{
    char map[BYTES] = {0};
    mark(a, map, 1, 3);
    return mark(b, map, 2, 1);
}

static qn_view make(void *data, int dtype, const qn_layout *l)
{
    return (qn_view){.data = data, .dtype = dtype, .layout = *l};
}

static int relation_is_wrong(const qn_view *a, const qn_view *b, bool exact)
{
    int found = qn__view_relation(a, b), back = qn__view_relation(b, a);
    bool shared = share_bytes(a, b);
    if (found == QN_DISJOINT || back == QN_DISJOINT)
        return shared || found != back;
    if (found == QN_SAME || back == QN_SAME)
        return found != back || a->data != b->data || !qn__layout_equal(&a->layout, &b->layout);
    return exact && !shared;
}

static void test_known(void)
{
    qn_layout l, s;
    qn_layout_right(2, INDEX(4, 8), &l, NULL);
    qn_view whole = make(memory, QN_F32, &l), other = whole;
    tap_is_int(qn__view_relation(&whole, &other), QN_SAME, "the same view");
    other.dtype = QN_I32;
    tap_is_int(qn__view_relation(&whole, &other), QN_SAME,
               "the same elements as another dtype of that size");
    other.dtype = QN_F32;
    other.layout.dim[0].lower = 1;
    tap_is_int(qn__view_relation(&whole, &other), QN_OVERLAPPING,
               "other lower bounds: not the same");
    qn_layout_strided(2, INDEX(4, 4), INDEX(8, 1), &s, NULL);
    qn_view left = make(memory, QN_F32, &s), right = make(memory + 16, QN_F32, &s);
    tap_is_int(qn__view_relation(&left, &right), QN_DISJOINT, "halves of the columns");
    tap_is_int(qn__view_relation(&left, &whole), QN_OVERLAPPING, "a half and the whole");
    right.data = memory + 12;
    tap_is_int(qn__view_relation(&left, &right), QN_OVERLAPPING, "halves shifted by one column");
    qn_layout_strided(1, INDEX(16), INDEX(2), &s, NULL);
    qn_view real = make(memory, QN_F64, &s), imaginary = make(memory + 8, QN_F64, &s);
    tap_is_int(qn__view_relation(&real, &imaginary), QN_DISJOINT, "real and imaginary parts");
    qn_layout_strided(1, INDEX(9), INDEX(4), &s, NULL);
    qn_view every_fourth = make(memory + 8, QN_F64, &s);
    tap_is_int(qn__view_relation(&real, &every_fourth), QN_DISJOINT, "unequal strides: gcd");
    every_fourth.data = memory + 16;
    tap_is_int(qn__view_relation(&real, &every_fourth), QN_OVERLAPPING,
               "unequal strides that meet");
    other = whole;
    other.data = NULL;
    tap_is_int(qn__view_relation(&whole, &other), QN_DISJOINT, "no data");
    other = whole;
    other.layout.dim[1].extent = 0;
    tap_is_int(qn__view_relation(&whole, &other), QN_DISJOINT, "empty");
    other.layout.dim[1] = (qn_dim){0, INT64_MAX, INT64_MAX};
    tap_is_int(qn__view_relation(&whole, &other), QN_OVERLAPPING, "absurd: never disjoint");
}

/** H5: two views of every pair of dtypes, shifted by -64 .. 64 bytes. */
static void test_shifted(void)
{
    int n_wrong = 0;
    static const int dtypes[] = {QN_U8, QN_I16, QN_F32, QN_F64};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            for (int64_t stride = 1; stride <= 3; stride++) {
                qn_layout a, b;
                qn_layout_strided(1, INDEX(9), INDEX(stride), &a, NULL);
                qn_layout_strided(2, INDEX(3, 2), INDEX(-4, stride), &b, NULL);
                qn_view first = make(memory + MIDDLE, dtypes[i], &a);
                for (int64_t shift = -64; shift <= 64; shift++) {
                    qn_view second = make(memory + MIDDLE + shift, dtypes[j], &a);
                    n_wrong += relation_is_wrong(&first, &second, true);
                    second.layout = b;
                    n_wrong += relation_is_wrong(&first, &second, true);
                }
            }
        }
    }
    tap_is_int(n_wrong, 0, "H5: shifted by -64 to 64 bytes, also by parts of elements");
}

static void random_layout(qn_layout *l, bool *is_cut)
{
    int rank = (int)random_in(0, 3);
    int64_t extents[3], strides[3], tile[3];
    *is_cut = false;
    for (int d = 0; d < rank; d++) {
        extents[d] = random_in(1, 5);
        strides[d] = random_in(-12, 12);
        tile[d] = random_in(1, 3);
    }
    if (random_in(0, 3)) {
        qn_layout_strided(rank, extents, strides, l, NULL);
        return;
    }
    for (int d = 0; d < rank; d++)
        *is_cut |= extents[d] % tile[d] != 0;
    qn_layout_tiled(rank, extents, tile, NULL, NULL, l, NULL);
}

static void test_random(void)
{
    int n_wrong = 0, count[3] = {0};
    for (int i = 0; i < 30000; i++) {
        qn_layout a, b;
        bool cut_a, cut_b;
        random_layout(&a, &cut_a);
        random_layout(&b, &cut_b);
        static const int dtypes[] = {QN_U8, QN_I16, QN_F32, QN_F64};
        int64_t shift = random_in(0, 3) ? random_in(-8, 8) * 8 : random_in(-64, 64);
        int dtype = random_in(0, 1) ? QN_F64 : dtypes[random_in(0, 3)];
        qn_view first = make(memory + MIDDLE, QN_F64, &a),
                second = make(memory + MIDDLE + shift, dtype, &b);
        n_wrong += relation_is_wrong(&first, &second, !cut_a && !cut_b);
        count[qn__view_relation(&first, &second)]++;
        qn_layout_release(&a);
        qn_layout_release(&b);
    }
    tap_note("%d disjoint, %d same, %d overlapping", count[QN_DISJOINT], count[QN_SAME],
             count[QN_OVERLAPPING]);
    tap_is_int(n_wrong, 0, "random pairs");
}

/** Many strides that nearly agree: the search ends, with the safe answer. */
static void test_hard(void)
{
    qn_layout a, b;
    int64_t extents[8], strides[8];
    for (int d = 0; d < 8; d++) {
        extents[d] = 7;
        strides[d] = 1000003 + 2 * (int64_t)random_in(0, 1000);
    }
    qn_layout_strided(8, extents, strides, &a, NULL);
    for (int d = 0; d < 8; d++)
        strides[d] = 1000003 + 2 * (int64_t)random_in(0, 1000);
    qn_layout_strided(8, extents, strides, &b, NULL);
    qn_view first = make(memory, QN_F64, &a), second = make(memory + 8 * 17, QN_F64, &b);
    int relation = qn__view_relation(&first, &second);
    tap_ok(relation == QN_OVERLAPPING || relation == QN_DISJOINT, "a hard case ends");
}

int main(void)
{
    test_known();
    test_shifted();
    test_random();
    test_hard();
    return tap_done();
}
