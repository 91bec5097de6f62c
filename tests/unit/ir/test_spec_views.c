/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_spec_views.c: rows of the specification of views that no other test shows, as far as they
 * need no kernel. Every check starts with the ids of its rows; the table in docs/views.md has all
 * rows.
 */
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"

static const qn_slice ALL = {.kind = QN_ALL};

static qn_slice at(int64_t i)
{
    return (qn_slice){.kind = QN_AT, .begin = i};
}

static qn_slice range(int64_t begin, int64_t end)
{
    return (qn_slice){.kind = QN_RANGE, .begin = begin, .end = end};
}

static qn_view new_view(const char *label, int dtype, int rank, const int64_t *extents)
{
    qn_view v = {0};
    qn_error err = {0};
    tap_ok(qn_view_new(NULL, label, dtype, rank, extents, &v, &err) == QN_OK, "a view %s",
           err.message);
    return v;
}

static qn_view_type type_of(int dtype, int rank, const int64_t *extents, int family)
{
    qn_view_type type;
    qn_error err = {0};
    tap_ok(qn_view_type_init(dtype, rank, extents, family, &type, &err) == QN_OK, "a type %s",
           err.message);
    return type;
}

static bool is_assigned(const qn_view_type *type, const qn_view *v)
{
    qn_view dst = {0};
    bool is_good = qn_view_assign(&dst, type, v, NULL) == QN_OK;
    qn_view_release(&dst);
    return is_good;
}

static int64_t offset_of(const qn_layout *l, const int64_t *index)
{
    int64_t offset = INT64_MIN;
    qn_layout_at(l, l->rank, index, &offset, NULL);
    return offset;
}

/* ------------------------------------------------------------------------------------------------
 * construction */

static void test_construction(void)
{
    qn_error err = {0};
    int64_t bytes = 0;
    qn_layout l;
    qn_view v = new_view("v", QN_I32, 2, INDEX(3, 4)), moved, w;
    moved = v;
    v = (qn_view){0};
    tap_ok(qn_view_use_count(&moved) == 1 && !qn_view_is_allocated(&v),
           "VC13: a moved-from view is empty, the count is unchanged");
    qn_view_release(&moved);
    const struct {
        int dtype, rank, n;
        int64_t fixed[3], given[1], bytes;
    } rows[] = {{QN_I32, 1, 1, {-1}, {100}, 400},
                {QN_I32, 3, 1, {-1, 5, 6}, {4}, 480},
                {QN_F64, 3, 1, {-1, 3, 4}, {7}, 672}};
    for (int r = 0; r < 3; r++) {
        qn_view_type type = type_of(rows[r].dtype, rows[r].rank, rows[r].fixed, QN_FAMILY_ANY);
        tap_ok(qn_view_type_layout(&type, rows[r].n, rows[r].given, &l, &err) == QN_OK &&
                   qn_layout_required_bytes(&l, qn_dtype_bytes(rows[r].dtype), &bytes, &err) ==
                       QN_OK,
               "VC17: a type gives its layout");
        tap_is_int(bytes, rows[r].bytes, "VC17: required bytes with fixed extents");
    }
    REFUSED(QN_ERR_EXTENT, l, qn_layout_right, 2, INDEX(-3, 4), &l);
    REFUSED(QN_ERR_OVERFLOW, l, qn_layout_right, 2, INDEX((int64_t)1 << 33, (int64_t)1 << 33), &l);
    tap_ok(qn_layout_right(2, INDEX(65536, 65536), &l, NULL) == QN_OK &&
               qn_layout_size(&l) == (int64_t)1 << 32,
           "VC19: (65536,65536) has 2^32 elements");
    qn_context *c = context_with(NULL);
    qn_view_new(c, "late", QN_F64, 1, INDEX(5), &v, NULL);
    w = qn_view_copy(&v);
    qn_context_release(c);
    ((double *)w.data)[4] = 4;
    tap_ok(qn_view_use_count(&v) == 2 && strcmp(v.label, "late") == 0,
           "VC22, X4.9: views outlive the context that made them: there is nothing to finalize");
    qn_view_release(&w);
    qn_view_release(&v);
    v = new_view("a", QN_F32, 2, INDEX(3, 4));
    int64_t extents[2];
    qn_view_extents(&v, extents, NULL);
    tap_ok(qn_view_alloc(NULL, "b", QN_F64, &v.layout, 0, &w, &err) == QN_OK &&
               w.layout.dim[0].extent == 3 && w.layout.dim[0].stride == 4,
           "LY6: the layout of a view builds another one of the shape");
    qn_view_release(&w);
    qn_view_release(&v);
}

/** VC14, DR1, DR5, X3.1, X3.3: rank is run-time data. */
static void test_rank(void)
{
    qn_view none = {0}, s = new_view("label", QN_F64, 0, NULL),
            a = new_view("A", QN_F64, 1, INDEX(7)), v;
    tap_ok(none.layout.rank == 0 && !none.data && qn_view_size(&none) == 0, "X3.1, VC1: default");
    tap_ok(qn_view_size(&s) == 1 && s.layout.rank == 0, "DR1: a label only: rank 0, size 1");
    tap_ok(a.layout.rank == 1 && qn_view_size(&a) == 7, "X3.1: one extent: rank 1");
    int64_t ones[QN_MAX_RANK + 1];
    for (int d = 0; d <= QN_MAX_RANK; d++)
        ones[d] = d % 2 + 1;
    bool good = true;
    for (int rank = 0; rank <= QN_MAX_RANK; rank++) {
        qn_view_type fixed = type_of(QN_U8, rank, NULL, QN_FAMILY_ANY),
                     other = type_of(QN_U8, rank ? rank - 1 : 1, NULL, QN_FAMILY_ANY);
        v = new_view("v", QN_U8, rank, ones);
        good = good && v.layout.rank == rank && qn_view_size(&v) == (int64_t)1 << rank / 2;
        good = good && is_assigned(&fixed, &v) && !is_assigned(&other, &v);
        qn_view_release(&v);
    }
    tap_ok(good, "X3.3, RK1, Q10, DR5: every rank from 0 to 16, to a type of this rank only");
    REFUSED(QN_ERR_RANK, v, qn_view_new, NULL, "v", QN_U8, QN_MAX_RANK + 1, ones, &v);
    qn_view four = new_view("w", QN_I32, 4, INDEX(3, 5, 1, 1));
    const qn_slice cut[] = {ALL, ALL, at(0), at(0)};
    tap_ok(qn_subview(&four, 4, cut, &v, NULL) == QN_OK && v.layout.rank == 2 &&
               v.data == four.data,
           "VC14: a lower rank, where the extents beyond it are 1");
    qn_view_release(&v);
    qn_layout l;
    qn_layout_squeeze(&four.layout, &l, NULL);
    tap_ok(qn_view_with_layout(&four, &l, &v, NULL) == QN_OK && v.layout.rank == 2,
           "VC14: or all of them");
    qn_view_release(&v);
    qn_view_release(&four);
    qn_view_release(&a);
    qn_view_release(&s);
}

/** RK2, X4.2: any subset of the extents may be fixed. */
static void test_fixed_extents(void)
{
    qn_view v = new_view("v", QN_I32, 3, INDEX(4, 3, 8));
    int wrong = 0;
    for (int mask = 0; mask < 8; mask++) {
        const int64_t right[] = {mask & 1 ? 4 : -1, mask & 2 ? 3 : -1, mask & 4 ? 8 : -1};
        qn_view_type type = type_of(QN_I32, 3, right, QN_FAMILY_ANY);
        wrong += !is_assigned(&type, &v);
        wrong += qn_view_type_rank_dynamic(&type) != 3 - __builtin_popcount((unsigned)mask);
        for (int d = 0; d < 3; d++) {
            qn_view_type bad = type;
            bad.extent[d] = mask >> d & 1 ? right[d] + 1 : -1;
            wrong += is_assigned(&bad, &v) != !(mask >> d & 1);
        }
    }
    tap_is_int(wrong, 0, "RK2, AC5: any subset of the extents may be fixed, and each one counts");
    qn_view_release(&v);
}

/* ------------------------------------------------------------------------------------------------
 * layouts */

static void test_layouts(void)
{
    qn_layout l, m;
    static const int spaces[] = {QN_SPACE_HOST, QN_SPACE_CUDA, QN_SPACE_CUDA_MANAGED,
                                 QN_SPACE_CUDA_PINNED};
    for (int s = 0; s < 4; s++) {
        qn_view_type type = type_of(QN_F64, 2, NULL, QN_FAMILY_ANY);
        type.space = spaces[s];
        bool is_left = s == 1 || s == 2;
        tap_ok(qn_view_type_layout(&type, 2, INDEX(3, 5), &l, NULL) == QN_OK &&
                   l.dim[0].stride == (is_left ? 1 : 5),
               "LY5, X4.14: default layout in %s", qn_space_name(spaces[s]));
        type.family = is_left ? QN_FAMILY_RIGHT : QN_FAMILY_LEFT;
        tap_ok(qn_view_type_layout(&type, 2, INDEX(3, 5), &l, NULL) == QN_OK &&
                   l.dim[0].stride == (is_left ? 5 : 1),
               "LY5: ... or the one asked for");
    }
    qn_layout_right(3, INDEX(3, 1, 2), &l, NULL);
    tap_is_int(offset_of(&l, INDEX(1, 0, 1)), 3, "LY13: right");
    qn_layout_left(3, INDEX(3, 1, 2), &l, NULL);
    tap_is_int(offset_of(&l, INDEX(1, 0, 1)), 4, "LY13: left");
    qn_layout_permuted(3, INDEX(3, 1, 2), (int[]){2, 0, 1}, &l, NULL);
    tap_is_int(offset_of(&l, INDEX(1, 0, 1)), 4, "LY13: order {2,0,1}");
    qn_layout_strided(1, INDEX(2), INDEX(20), &l, NULL);
    l.origin = 20;
    tap_ok(offset_of(&l, INDEX(0)) == 20 && offset_of(&l, INDEX(1)) == 40, "LY21: offsets {20,40}");
    qn_layout_right(2, INDEX(3, 4), &l, NULL);
    qn_layout_strided(2, INDEX(3, 4), INDEX(5, 1), &m, NULL);
    tap_ok(qn_layout_is_unique(&l) && qn_layout_is_exhaustive(&l) && qn_layout_is_strided(&l) &&
               qn_layout_is_unique(&m) && !qn_layout_is_exhaustive(&m) && qn_layout_span(&m) == 14,
           "IM5: unique, exhaustive, strided, required span");
}

/** IM6: a global number to indices, leftmost slowest; with lower bounds too. */
static void test_unpack(void)
{
    qn_layout c, fortran;
    int64_t index[3], wrong = 0, g = 0;
    qn_layout_right(3, INDEX(3, 4, 5), &c, NULL);
    qn_layout_bounds(3, INDEX(-1, 1, 7), INDEX(2, 5, 12), NULL, &fortran, NULL);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 5; k++, g++) {
                wrong += qn_layout_inverse(&c, g, index, NULL) != QN_OK || index[0] != i ||
                         index[1] != j || index[2] != k;
                wrong += qn_layout_inverse(&fortran, g, index, NULL) != QN_OK ||
                         index[0] != i - 1 || index[1] != j + 1 || index[2] != k + 7;
            }
    tap_is_int(wrong, 0, "IM6: unpacking");
    REFUSED(QN_ERR_NOT_FOUND, index, qn_layout_inverse, &c, 60, index);
    REFUSED(QN_ERR_NOT_FOUND, index, qn_layout_inverse, &c, -1, index);
}

/** X1.14: the whole window of a shifted layout. */
static void test_shift(void)
{
    enum { BY = 4 };
    qn_layout a, shifted;
    int wrong = 0;
    qn_layout_right(2, INDEX(10, 15), &a, NULL);
    qn_layout_shift(&a, INDEX(BY, BY), &shifted, NULL);
    for (int64_t x = -2; x < 20; x++)
        for (int64_t y = -2; y < 25; y++) {
            bool inside = x >= BY && x < 10 + BY && y >= BY && y < 15 + BY;
            wrong += inside
                         ? offset_of(&shifted, INDEX(x, y)) != offset_of(&a, INDEX(x - BY, y - BY))
                         : offset_of(&shifted, INDEX(x, y)) != INT64_MIN;
        }
    tap_is_int(wrong, 0, "X1.14: Ashift(x,y) is A(x-N,y-N) inside, out of bounds outside");
}

/** X1.1, X1.2, X2.1 to X2.6: one memory in C and Fortran style. */
static void test_styles(void)
{
    enum { NX = 5, NY = 3, NZ = 2 };
    static double data[NX * NY * NZ];
    qn_layout c3, c2, f3, back, l;
    int wrong = 0;
    qn_error err = {0};
    qn_layout_right(3, INDEX(NZ, NY, NX), &c3, NULL);
    qn_layout_right(2, INDEX(NZ, NY * NX), &c2, NULL);
    qn_layout_fortran(3, NULL, INDEX(NX, NY, NZ), &f3, NULL);
    qn_view arr, arr2d, arr_f;
    qn_view_wrap("arr", data, QN_F64, &c3, 0, &arr, NULL);
    qn_view_wrap("arr2d", data, QN_F64, &c2, 0, &arr2d, NULL);
    qn_view_wrap("arrF", data, QN_F64, &f3, 0, &arr_f, NULL);
    qn_layout_to_c(&f3, &back, NULL);
    for (int k = 0; k < NZ; k++)
        for (int j = 0; j < NY; j++)
            for (int i = 0; i < NX; i++) {
                void *p = NULL, *q = NULL, *r = NULL;
                qn_view_at(&arr, 3, INDEX(k, j, i), &p, NULL);
                qn_view_at(&arr2d, 2, INDEX(k, j * NX + i), &q, NULL);
                qn_view_at(&arr_f, 3, INDEX(i + 1, j + 1, k + 1), &r, NULL);
                wrong += p != data + k * NY * NX + j * NX + i || p != q || p != r;
                wrong += offset_of(&back, INDEX(k, j, i)) != offset_of(&c3, INDEX(k, j, i));
            }
    tap_is_int(wrong, 0, "X1.1, X1.2, X2.1, X2.2, X2.3, X2.4: one memory, three shapes, and back");
    qn_layout_left(2, INDEX(4, 6), &l, NULL);
    tap_ok(qn_layout_as_fortran(&l, NULL, &f3, &err) == QN_OK &&
               offset_of(&f3, INDEX(2, 5)) == offset_of(&l, INDEX(1, 4)),
           "X2.5: Left in Fortran style: the same index, from 1");
    tap_ok(qn_layout_as_fortran(&l, INDEX(-2, 0), &f3, &err) == QN_OK &&
               offset_of(&f3, INDEX(-1, 4)) == offset_of(&l, INDEX(1, 4)),
           "X2.5: ... or from other lower bounds");
    qn_layout_offset(&c2, INDEX(3, 9), &back, NULL);
    tap_ok(qn_layout_as_c(&back, &back, &err) == QN_OK && qn__layout_equal(&back, &c2),
           "X2.5: Right in C style: the same index, from 0");
    REFUSED(QN_ERR_UNSUPPORTED, back, qn_layout_as_c, &l, &back);
    REFUSED(QN_ERR_UNSUPPORTED, back, qn_layout_as_fortran, &c2, NULL, &back);
    const int64_t strides[][2] = {{2, 12}, {6, 2}, {-6, 1}, {0, 1}};
    for (int s = 0; s < 4; s++) {
        qn_layout_strided(2, INDEX(4, 6), strides[s], &l, NULL);
        tap_ok(qn_layout_as_c(&l, &back, &err) == QN_ERR_UNSUPPORTED &&
                   qn_layout_as_fortran(&l, NULL, &back, &err) == QN_ERR_UNSUPPORTED,
               "X2.6, LY27: strides %d,%d are no style", (int)strides[s][0], (int)strides[s][1]);
    }
    tap_contains(err.message, "qn_layout_as_fortran: layout (4,6):(0,1) is not left",
                 "X2.6: message");
    qn_layout_tiled(2, INDEX(4, 6), INDEX(2, 3), NULL, NULL, &l, NULL);
    tap_ok(qn_layout_as_c(&l, &back, &err) == QN_ERR_UNSUPPORTED, "X2.6: nor are tiles");
    qn_layout_release(&l);
    REFUSED(QN_ERR_ARGUMENT, back, qn_layout_as_c, NULL, &back);
    qn_layout_left(1, INDEX(3), &l, NULL);
    REFUSED(QN_ERR_OVERFLOW, back, qn_layout_as_fortran, &l, INDEX(INT64_MAX), &back);
}

/* ------------------------------------------------------------------------------------------------
 * subviews */

/** SV3, SV4: the families of what is cut out of a Left and of a Right view. */
static void test_subview_families(void)
{
    static const struct {
        const char *what;
        qn_slice cut[3];
        bool left_of_left, right_of_right;
    } rows[] = {
        {"(ALL,ALL,2)", {{0}, {0}, {QN_AT, 2, 0, 0}}, true, false},
        {"((1,3),(1,3),1)",
         {{QN_RANGE, 1, 3, 1}, {QN_RANGE, 1, 3, 1}, {QN_AT, 1, 0, 0}},
         true,
         false},
        {"((1,3),ALL,ALL)", {{QN_RANGE, 1, 3, 1}, {0}, {0}}, true, true},
        {"(ALL,2,ALL)", {{0}, {QN_AT, 2, 0, 0}, {0}}, true, true},
        {"(2,ALL,ALL)", {{QN_AT, 2, 0, 0}, {0}, {0}}, false, true},
        {"(1,(1,3),(1,3))",
         {{QN_AT, 1, 0, 0}, {QN_RANGE, 1, 3, 1}, {QN_RANGE, 1, 3, 1}},
         false,
         true},
        {"three ranges",
         {{QN_RANGE, 1, 3, 1}, {QN_RANGE, 1, 3, 1}, {QN_RANGE, 1, 3, 1}},
         false,
         false},
    };
    qn_layout left, right, cut;
    qn_layout_left(3, INDEX(4, 5, 6), &left, NULL);
    qn_layout_right(3, INDEX(4, 5, 6), &right, NULL);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        qn_layout_slice(&left, 3, rows[r].cut, &cut, NULL);
        tap_ok(qn_layout_is_left(&cut) == rows[r].left_of_left, "SV3: %s of Left", rows[r].what);
        qn_layout_slice(&right, 3, rows[r].cut, &cut, NULL);
        tap_ok(qn_layout_is_right(&cut) == rows[r].right_of_right, "SV4: %s of Right",
               rows[r].what);
    }
    const qn_slice middle[] = {ALL, at(2), ALL};
    qn_layout_slice(&left, 3, middle, &cut, NULL);
    tap_is_int(cut.dim[1].stride, 20, "SV3: (ALL,2,ALL) of Left has stride(1) = e0*e1");
    qn_layout_slice(&right, 3, middle, &cut, NULL);
    tap_is_int(cut.dim[0].stride, 30, "SV4: (ALL,2,ALL) of Right has stride(0) = e1*e2");
    qn_layout_right(2, INDEX(10, 4), &left, NULL);
    const qn_slice rows_2_to_5[] = {range(2, 5 + 1), ALL};
    qn_layout_slice(&left, 2, rows_2_to_5, &cut, NULL);
    tap_ok(cut.dim[0].extent == 4 && cut.origin == 8 && qn_layout_is_contiguous(&cut),
           "SV10: subset of the slowest dimension, both bounds included");
}

/** SV8: what is cut out of a type with fixed extents is assignable to the type that the rule gives.
 */
static void test_subview_types(void)
{
    const struct {
        const char *what;
        int rank, rank_of_result;
        int64_t extents[4];
        qn_slice cut[4];
        int64_t fixed[4];
    } rows[] = {
        {"(0,ALL,ALL,ALL)", 4, 3, {3, 10, 5, 2}, {at(0), ALL, ALL, ALL}, {10, 5, 2}},
        {"(0,0,ALL,0)", 4, 1, {3, 10, 5, 2}, {at(0), at(0), ALL, at(0)}, {5}},
        {"(ALL,0,ALL,ALL)", 4, 3, {3, 10, 5, 2}, {ALL, at(0), ALL, ALL}, {-1, 5, 2}},
        {"(ALL,0,ALL,range)", 4, 3, {3, 10, 5, 2}, {ALL, at(0), ALL, range(0, 1)}, {-1, -1, -1}},
        {"(ALL,0,range,ALL)", 4, 3, {3, 10, 5, 2}, {ALL, at(0), range(1, 3), ALL}, {-1, -1, 2}},
        {"int[6][7][8] (range,ALL,ALL)", 3, 3, {6, 7, 8}, {range(1, 3), ALL, ALL}, {-1, 7, 8}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        qn_view v = new_view("v", QN_I32, rows[r].rank, rows[r].extents), part = {0};
        qn_view_type type = type_of(QN_I32, rows[r].rank_of_result, rows[r].fixed, QN_FAMILY_ANY);
        tap_ok(qn_subview(&v, rows[r].rank, rows[r].cut, &part, NULL) == QN_OK &&
                   is_assigned(&type, &part),
               "SV8: %s", rows[r].what);
        qn_view_release(&part);
        qn_view_release(&v);
    }
}

/** SV1, SV9, SV11: arguments of subviews. */
static void test_subview_arguments(void)
{
    qn_view v = new_view("v", QN_I32, 3, INDEX(5, 6, 7)), part;
    const qn_slice cut[] = {at(1), ALL, range(2, 5)}, more[] = {at(1), ALL, ALL, ALL};
    tap_ok(qn_subview(&v, 3, cut, &part, NULL) == QN_OK && part.layout.rank == 2 &&
               part.layout.dim[0].extent == 6 && part.layout.dim[1].extent == 3 &&
               part.layout.dim[0].stride == 7 && part.layout.dim[1].stride == 1,
           "SV9: (1,ALL,(2,5)) of (5,6,7)");
    qn_view_release(&part);
    REFUSED(QN_ERR_RANK, part, qn_subview, &v, 4, more, &part);
    REFUSED(QN_ERR_RANK, part, qn_subview, &v, 2, more, &part);
    const qn_slice reversed[] = {range(5, 2), ALL, ALL}, negative[] = {range(-1, 2), ALL, ALL},
                   beyond[] = {range(1, 6), ALL, ALL};
    REFUSED(QN_ERR_RANGE, part, qn_subview, &v, 3, reversed, &part);
    REFUSED(QN_ERR_RANGE, part, qn_subview, &v, 3, negative, &part);
    REFUSED(QN_ERR_RANGE, part, qn_subview, &v, 3, beyond, &part);
    qn_view_release(&v);
    qn_layout l;
    qn_layout_tiled(2, INDEX(8, 8), INDEX(4, 2), NULL, NULL, &l, NULL);
    qn_view_alloc(NULL, "tiled", QN_F32, &l, 0, &v, NULL);
    const qn_slice one[] = {range(4, 8), range(2, 4)};
    tap_ok(qn_subview(&v, 2, one, &part, NULL) == QN_OK && qn_view_span(&part) == 8 &&
               qn_layout_is_contiguous(&part.layout),
           "SV11: one tile of a tiled view");
    qn_view_release(&part);
    qn_view_release(&v);
    qn_layout_release(&l);
}

/* ------------------------------------------------------------------------------------------------
 * the rest */

/** AC1 to AC4, X3.5 to X3.7, X4.5, X4.26: one condition at a time. */
static void test_conditions(void)
{
    qn_view a = new_view("a", QN_I32, 1, INDEX(10)), reader = {0}, atomic = {0};
    qn_view_type good = type_of(QN_I32, 1, NULL, QN_FAMILY_ANY), bad = good;
    qn_error err = {0};
    bad.rank = 2;
    bad.extent[1] = -1;
    tap_ok(is_assigned(&good, &a) && !is_assigned(&bad, &a), "AC1, X3.7, AS3: rank");
    bad = type_of(QN_I64, 1, NULL, QN_FAMILY_ANY);
    tap_ok(!is_assigned(&bad, &a), "AC2, X3.7: value type");
    bad = good;
    bad.read_only = 1;
    tap_ok(qn_view_assign(&reader, &bad, &a, &err) == QN_OK && reader.data == a.data &&
               reader.traits == QN_READ_ONLY && !is_assigned(&good, &reader),
           "AC3, X3.5, X3.6, X4.5: to read-only and not back");
    bad = good;
    bad.space = QN_SPACE_CUDA;
    tap_ok(!is_assigned(&bad, &a), "AC4, X3.7: space");
    bad = good;
    bad.traits = QN_ATOMIC;
    ((int32_t *)a.data)[1] = 9;
    tap_ok(qn_view_assign(&atomic, &bad, &a, &err) == QN_OK && atomic.traits == QN_ATOMIC &&
               atomic.data == a.data,
           "X4.26: an atomic view of a view");
    qn_view_release(&atomic);
    qn_view_release(&reader);
    qn_view_release(&a);
}

/** MT1, MS6, MS7, X4.15, X4.17, ET1, ET7: names and tables. */
static void test_tables(void)
{
    const uint32_t traits[] = {QN_READ_ONLY,     QN_ATOMIC,  QN_RESTRICT,
                               QN_RANDOM_ACCESS, QN_ALIGNED, QN_STREAMING};
    uint32_t all = 0;
    bool good = true;
    for (int t = 0; t < 6; t++) {
        good = good && (all & traits[t]) == 0;
        all |= traits[t];
    }
    tap_ok(good, "MT1: traits are bits of their own");
    qn_view v = new_view("host", QN_F32, 1, INDEX(3));
    tap_is_int(v.space, QN_SPACE_HOST, "MS6: the space of a view");
    tap_ok(qn_exec_can_access(QN_EXEC_SERIAL, v.space) &&
               qn_exec_can_access(QN_EXEC_OPENMP, v.space) &&
               !qn_exec_can_access(QN_EXEC_CUDA, v.space),
           "X4.15, X4.17, MS5: access depends on the memory");
    qn_view_release(&v);
    const char *const names[] = {"bool", "i8",  "i16", "i32", "i64", "u8",
                                 "u16",  "u32", "u64", "f32", "f64"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        good = good && qn_dtype_of_name(names[i]) != QN_VOID;
    tap_ok(good, "ET1, ET7: element types by name");
    qn_view_type type = type_of(QN_F64, 1, NULL, QN_FAMILY_ANY);
    type.read_only = 1;
    REFUSED(QN_ERR_READ_ONLY, v, qn_view_create, NULL, &type, 1, INDEX(4), NULL, &v);
}

/** OV1, OV2: offsets are those of 64 bits, whatever the numbers. */
static void test_wide_offsets(void)
{
    qn_layout l;
    const struct {
        int64_t extents[3], index[3], offset;
    } rows[] = {{{56925, 56927, 1}, {56924, 56926, 0}, (int64_t)56925 * 56927 - 1},
                {{1024, 1024, 1500}, {1023, 1023, 1499}, (int64_t)1024 * 1024 * 1500 - 1},
                {{1, 1, 5000000000}, {0, 0, 4999999999}, 4999999999}};
    for (int r = 0; r < 3; r++)
        tap_ok(qn_layout_right(3, rows[r].extents, &l, NULL) == QN_OK &&
                   offset_of(&l, rows[r].index) == rows[r].offset,
               "OV1, OV2: the last offset of layout %d", r);
}

/** Views of one-digit layouts are made, cut, copied and released without a single allocation. */
static void test_no_allocation(void)
{
    static float data[60];
    qn_layout l;
    qn_view v = {0}, part = {0}, same = {0}, w = {0};
    const qn_slice cut[] = {at(1), ALL, range(1, 4)},
                   steps[] = {ALL, range(0, 4), {QN_RANGE, 0, 5, 2}};
    qn__fail_allocation(1, true);
    bool good = qn_layout_right(3, INDEX(3, 4, 5), &l, NULL) == QN_OK &&
                qn_view_wrap("v", data, QN_F32, &l, 0, &v, NULL) == QN_OK &&
                qn_subview(&v, 3, cut, &part, NULL) == QN_OK &&
                qn_subview(&v, 3, steps, &w, NULL) == QN_OK;
    same = qn_view_copy(&part);
    qn_view_release(&part);
    qn__fail_allocation(0, false);
    tap_ok(good && same.data == data + 21 && same.layout.dim[1].extent == 3 &&
               w.layout.dim[2].stride == 2,
           "creation, subviews and copies allocate nothing");
    qn_view_release(&same);
}

int main(void)
{
    test_construction();
    test_rank();
    test_fixed_extents();
    test_layouts();
    test_unpack();
    test_shift();
    test_styles();
    test_subview_families();
    test_subview_types();
    test_subview_arguments();
    test_conditions();
    test_tables();
    test_wide_offsets();
    test_no_allocation();
    return tap_done();
}
