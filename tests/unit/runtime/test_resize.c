/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_resize.c: views allocated by type and properties, resize, realloc and mirrors: extents,
 * layouts, contents, labels, references, and failures, which change nothing. Rows of the
 * specification are named (VC2, RS1, MI1, X4.10, ...).
 */
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"

static qn_context *context;
#define OPTIONS(...) (&(qn_alloc_options){.bytes = sizeof(qn_alloc_options), __VA_ARGS__})

static qn_view_type type_of(int dtype, int rank, const int64_t *extents, int family)
{
    qn_view_type type;
    qn_error err = {0};
    if (qn_view_type_init(dtype, rank, extents, family, &type, &err))
        tap_ok(false, "type: %s", err.message);
    return type;
}

static bool has_strides(const qn_view *v, const int64_t *strides)
{
    int64_t found[QN_MAX_RANK];
    return qn_view_strides(v, found, NULL) == QN_OK &&
           memcmp(found, strides, (size_t)v->layout.rank * sizeof *strides) == 0;
}

static bool all_zero(const void *p, size_t bytes)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < bytes; i++)
        if (c[i])
            return false;
    return true;
}

/* ---------------------------------------------------------------- create */

static void test_create(void)
{
    qn_error err = {0};
    qn_view v;
    qn_view_type type = type_of(QN_F64, 2, INDEX(-1, 3), QN_FAMILY_ANY);
    tap_ok(qn_view_create(NULL, &type, 1, INDEX(7), OPTIONS(.label = "another label"), &v, &err) ==
                   QN_OK &&
               v.layout.rank == 2 && has_strides(&v, INDEX(3, 1)) && all_zero(v.data, 7 * 3 * 8),
           "X4.1, X4.18: double*[3] of (7), zero");
    tap_is_str(v.label, "another label", "label");
    qn_view_release(&v);
    tap_ok(qn_view_create(NULL, &type, 2, INDEX(7, 3), NULL, &v, &err) == QN_OK && !v.label,
           "X0.22: all extents");
    qn_view_release(&v);
    type = type_of(QN_I32, 2, INDEX(-1, 3), QN_FAMILY_ANY);
    tap_ok(qn_view_create(NULL, &type, 2, INDEX(9, 2), OPTIONS(.label = "q"), &v, &err) ==
               QN_ERR_EXTENT,
           "VC4");
    tap_is_str(
        err.message,
        "qn_view_create: view \"q\": dimension 1: extent 2, expected 3, which the type fixes",
        "VC4: message");
    tap_ok(qn_view_create(NULL, &type, 3, INDEX(9, 3, 1), OPTIONS(.label = "q"), &v, &err) ==
               QN_ERR_RANK,
           "VC3");
    tap_contains(err.message, "view \"q\": 3 extents, expected 2 (all dimensions) or 1",
                 "VC3: message");
    REFUSED(QN_ERR_EXTENT, v, qn_view_create, NULL, &type, 1, INDEX(-1), NULL, &v);
    REFUSED(QN_ERR_OVERFLOW, v, qn_view_create, NULL, &type, 1, INDEX(INT64_MAX / 3), NULL, &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, NULL, 1, INDEX(1), NULL, &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, NULL, NULL, &v);
    tap_ok(qn_view_create(NULL, &type, 1, INDEX(1), NULL, NULL, &err) == QN_ERR_ARGUMENT,
           "out is NULL");
    type.read_only = 1;
    REFUSED(QN_ERR_READ_ONLY, v, qn_view_create, NULL, &type, 1, INDEX(1), NULL, &v);
    type = type_of(QN_I32, 2, NULL, QN_FAMILY_STRIDED);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 2, INDEX(2, 2), NULL, &v);
    type = type_of(QN_I32, 1, NULL, QN_FAMILY_ANY);
    type.space = QN_SPACE_ROCM;
    REFUSED(QN_ERR_NOT_AVAILABLE, v, qn_view_create, NULL, &type, 1, INDEX(2), NULL, &v);
    type.space = QN_SPACE_HOST;
    type.unmanaged = 1;
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, INDEX(2), NULL, &v);
    type.unmanaged = 0;
    REFUSED(QN_ERR_NOT_AVAILABLE, v, qn_view_create, NULL, &type, 1, INDEX(2),
            OPTIONS(.space = QN_SPACE_HBW), &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, INDEX(2), OPTIONS(.alignment = 96),
            &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, INDEX(2), OPTIONS(.padding = 2),
            &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, INDEX(2),
            OPTIONS(.executor = QN_THREADS), &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, INDEX(2),
            OPTIONS(.executor = QN_SERIAL, .uninitialised = 1), &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create, NULL, &type, 1, INDEX(2),
            &(qn_alloc_options){.bytes = 3}, &v);
}

static void test_properties(void)
{
    qn_error err = {0};
    qn_view v;
    qn_view_type right = type_of(QN_F64, 3, NULL, QN_FAMILY_RIGHT),
                 left = type_of(QN_F64, 2, NULL, QN_FAMILY_LEFT);
    tap_ok(qn_view_create(NULL, &right, 3, INDEX(2, 3, 17), OPTIONS(.padding = 1), &v, &err) ==
                   QN_OK &&
               has_strides(&v, INDEX(72, 24, 1)),
           "Q7: Right (2,3,17) padded: 72,24,1");
    qn_view_release(&v);
    static const int64_t rows[5][2] = {{5, 5}, {8, 8}, {9, 16}, {16, 16}, {17, 24}};
    for (int i = 0; i < 5; i++) {
        tap_ok(qn_view_create(NULL, &left, 2, INDEX(rows[i][0], 3), OPTIONS(.padding = 1), &v,
                              &err) == QN_OK &&
                   has_strides(&v, INDEX(1, rows[i][1])),
               "LY9: Left %d x 3: %d", (int)rows[i][0], (int)rows[i][1]);
        qn_view_release(&v);
    }
    qn_view_create(NULL, &left, 2, INDEX(9, 3), OPTIONS(.padding = 1), &v, &err);
    tap_is_int(qn_view_span(&v), 41, "LY9, Q8: span of 9 x 3 padded");
    qn_view_release(&v);
    for (int64_t alignment = 64; alignment <= 2 << 20; alignment *= 2) {
        qn_status status =
            qn_view_create(NULL, &left, 2, INDEX(9, 3), OPTIONS(.alignment = alignment), &v, &err);
        if (status || (uintptr_t)v.data % (uintptr_t)alignment || !all_zero(v.data, 9 * 3 * 8))
            tap_ok(false, "alignment %d", (int)alignment);
        memset(v.data, 1, 9 * 3 * 8);
        qn_view_release(&v);
    }
    tap_ok(qn_view_create(
               context, &left, 2, INDEX(1000, 700),
               OPTIONS(.label = "w", .executor = QN_THREADS, .padding = 1, .alignment = 4096), &v,
               &err) == QN_OK &&
               all_zero(v.data, 1000 * 700 * 8) && (uintptr_t)v.data % 4096 == 0,
           "X0.23, X4.25: first touch on threads; properties in any order");
    qn_view_release(&v);
    tap_ok(qn_view_create(context, &left, 2, INDEX(10, 7), OPTIONS(.uninitialised = 1), &v, &err) ==
               QN_OK,
           "X4.19: uninitialised");
    tap_is_int(counters_of(context).launches, 0, "X4.19: no kernel ran");
    qn_view_release(&v);
    left.traits = QN_ALIGNED | QN_RESTRICT;
    tap_ok(qn_view_create(NULL, &left, 2, INDEX(10, 7), NULL, &v, &err) == QN_OK &&
               v.traits == left.traits,
           "traits of the type");
    qn_view_release(&v);
}

static void test_create_layout(void)
{
    qn_error err = {0};
    qn_view v;
    qn_layout l;
    qn_view_type type = type_of(QN_I32, 3, INDEX(3, -1, -1), QN_FAMILY_STRIDED);
    qn_layout_strided(3, INDEX(3, 4, 5), INDEX(4, 1, 12), &l, NULL);
    tap_ok(qn_view_create_layout(NULL, &type, &l, OPTIONS(.label = "p"), &v, &err) == QN_OK &&
               qn_view_span(&v) == 60 && qn_layout_is_contiguous(&v.layout),
           "VC5, LY3: label and layout");
    qn_view_release(&v);
    type.family = QN_FAMILY_LEFT;
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create_layout, NULL, &type, &l, NULL, &v);
    type.family = QN_FAMILY_ANY;
    type.extent[0] = 2;
    REFUSED(QN_ERR_EXTENT, v, qn_view_create_layout, NULL, &type, &l, NULL, &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create_layout, NULL, &type, NULL, NULL, &v);
    REFUSED(QN_ERR_ARGUMENT, v, qn_view_create_layout, NULL, &type, &l, OPTIONS(.padding = 1), &v);
    type = type_of(QN_I32, 2, NULL, QN_FAMILY_ANY);
    qn_layout_tiled(2, INDEX(5, 6), INDEX(2, 4), NULL, NULL, &l, NULL);
    tap_ok(qn_view_create_layout(NULL, &type, &l, OPTIONS(.label = "t"), &v, &err) == QN_OK,
           "tiled");
    qn_view_release(&v);
    qn_layout_release(&l);
    type.traits = QN_ALIGNED;
    qn_layout_strided(2, INDEX(3, 5), INDEX(-5, 1), &l, NULL);
    REFUSED(QN_ERR_ALIGNMENT, v, qn_view_create_layout, NULL, &type, &l, NULL, &v);
}

/* ---------------------------------------------------------------- resize */

/** v(i,j,..) = 1 + 100 i + 10 j + k, by qn_view_at. */
static int32_t value_at(const int64_t *i, int rank)
{
    return (int32_t)(1 + i[0] * 10000 + (rank > 1 ? i[1] * 100 : 0) + (rank > 2 ? i[2] : 0));
}

/** Calls for all indices of v: sets, or counts the elements that are not as after a resize from
 * `old` extents. */
static int walk(const qn_view *v, bool sets, int old_rank, const int64_t *old)
{
    int64_t at[3] = {0}, index[3];
    int wrong = 0, rank = v->layout.rank;
    for (bool more = qn_view_size(v) > 0; more;) {
        void *p = NULL;
        for (int d = 0; d < rank; d++)
            index[d] = at[d] + v->layout.dim[d].lower;
        qn_view_at(v, rank, index, &p, NULL);
        int32_t expected = value_at(at, rank);
        for (int d = 0; !sets && d < rank; d++)
            if (d < old_rank ? at[d] >= old[d] : at[d] > 0)
                expected = 0;
        if (sets)
            *(int32_t *)p = expected;
        else
            wrong += *(int32_t *)p != expected;
        more = false;
        for (int d = rank - 1; d >= 0 && !more; d--) {
            more = ++at[d] < v->layout.dim[d].extent;
            at[d] = more ? at[d] : 0;
        }
    }
    return wrong;
}

static qn_view filled(const char *label, const qn_layout *l)
{
    qn_view v = {0};
    qn_error err = {0};
    if (qn_view_alloc(NULL, label, QN_I32, l, 0, &v, &err))
        tap_ok(false, "view: %s", err.message);
    walk(&v, true, 0, NULL);
    return v;
}

static void test_resize_example(void)
{
    qn_error err = {0};
    qn_layout l;
    qn_layout_right(3, INDEX(100, 50, 4), &l, NULL);
    qn_view a = filled("a", &l), b;
    void *first = a.data;
    tap_ok(qn_view_resize(NULL, &a, 3, INDEX(200, 50, 4), NULL, &err) == QN_OK &&
               walk(&a, false, 3, INDEX(100, 50, 4)) == 0,
           "X4.10: (100,50,4) to (200,50,4), without context: one run of memory");
    tap_ok(a.data != first && qn_view_use_count(&a) == 1, "X4.10: new storage");
    tap_is_str(a.label, "a", "RS1: label kept");
    walk(&a, true, 0, NULL);
    b = qn_view_copy(&a);
    tap_ok(qn_view_resize(context, &a, 3, INDEX(300, 60, 4), NULL, &err) == QN_OK &&
               walk(&a, false, 3, INDEX(200, 50, 4)) == 0,
           "X4.10: to (300,60,4): the common part, the rest zero");
    tap_ok(b.layout.dim[0].extent == 200 && walk(&b, false, 3, INDEX(200, 50, 4)) == 0 &&
               qn_view_use_count(&b) == 1,
           "X4.10: b keeps the old");
    first = a.data;
    tap_ok(qn_view_resize(NULL, &a, 3, INDEX(300, 60, 4), NULL, &err) == QN_OK && a.data == first,
           "RS1: unchanged extents: same storage");
    tap_ok(qn_view_resize(NULL, &a, 3, INDEX(5, 7, 3), NULL, &err) == QN_ERR_ARGUMENT &&
               a.data == first,
           "a part with gaps needs a context; nothing changes");
    qn_view_release(&a);
    qn_view_release(&b);
    qn_layout_right(2, INDEX(3, 4), &l, NULL);
    a = filled("m", &l);
    for (int i = 0; i < 12; i++)
        ((int32_t *)a.data)[i] = 10 * (i / 4) + i % 4;
    static const int32_t after[12] = {0, 1, 2, 3, 0, 0, 10, 11, 12, 13, 0, 0};
    tap_ok(qn_view_resize(context, &a, 2, INDEX(2, 6), NULL, &err) == QN_OK &&
               memcmp(a.data, after, 48) == 0,
           "RS1: (3,4) to (2,6)");
    qn_view_release(&a);
}

static void test_resize_layouts(void)
{
    qn_error err = {0};
    qn_layout l;
    qn_layout_left(2, INDEX(5, 6), &l, NULL);
    qn_layout_offset(&l, INDEX(1, -2), &l, NULL);
    qn_view v = filled("left", &l);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(7, 4), NULL, &err) == QN_OK &&
               has_strides(&v, INDEX(1, 7)) && v.layout.dim[1].lower == -2 &&
               walk(&v, false, 2, INDEX(5, 6)) == 0,
           "Left stays Left; lower bounds stay");
    tap_ok(qn_view_resize(context, &v, 2, INDEX(1, 4), NULL, &err) == QN_OK &&
               qn_view_resize(context, &v, 2, INDEX(3, 4), NULL, &err) == QN_OK &&
               has_strides(&v, INDEX(1, 3)),
           "also over extent 1");
    tap_ok(qn_view_resize(context, &v, 2, INDEX(0, 4), NULL, &err) == QN_OK &&
               qn_view_resize(context, &v, 2, INDEX(3, 4), NULL, &err) == QN_OK &&
               has_strides(&v, INDEX(1, 3)) && all_zero(v.data, 48),
           "and over extent 0");
    qn_view_release(&v);
    qn_layout_ordered(3, INDEX(3, 4, 5), (int[]){1, 0, 2}, &l, NULL);
    v = filled("permuted", &l);
    tap_ok(qn_view_resize(context, &v, 3, INDEX(4, 6, 5), NULL, &err) == QN_OK &&
               has_strides(&v, INDEX(6, 1, 24)) && walk(&v, false, 3, INDEX(3, 4, 5)) == 0,
           "a permuted layout keeps its order");
    tap_ok(qn_view_resize(context, &v, 2, INDEX(5, 10), NULL, &err) == QN_OK && v.layout.rank == 2,
           "DR4: rank 3 to 2");
    tap_is_int(((int32_t *)v.data)[12], value_at(INDEX(1, 2, 0), 3),
               "DR4: elements of index 0 are kept");
    qn_view_release(&v);
    qn_layout_right(1, INDEX(4), &l, NULL);
    v = filled("line", &l);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(6, 3), NULL, &err) == QN_OK &&
               ((int32_t *)v.data)[9] == value_at(INDEX(3), 1) && ((int32_t *)v.data)[1] == 0,
           "rank 1 to 2");
    qn_view_release(&v);
    qn_layout_right(2, INDEX(3, 40), &l, NULL);
    v = filled("pad", &l);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(4, 41), OPTIONS(.padding = 1), &err) == QN_OK &&
               has_strides(&v, INDEX(48, 1)) && walk(&v, false, 2, INDEX(3, 40)) == 0,
           "padding if asked for");
    qn_view_release(&v);
    qn_layout_tiled(2, INDEX(5, 6), INDEX(2, 4), NULL, NULL, &l, NULL);
    v = filled("tiled", &l);
    tap_ok(qn_view_resize(context, &v, 3, INDEX(7, 7, 1), NULL, &err) == QN_ERR_UNSUPPORTED &&
               walk(&v, false, 2, INDEX(5, 6)) == 0,
           "tiles of another rank: the caller gives the layout");
    qn_layout_release(&l);
    qn_layout_tiled(2, INDEX(7, 9), INDEX(2, 4), NULL, NULL, &l, NULL);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(7, 9), NULL, &err) == QN_OK &&
               qn__layout_equal(&v.layout, &l) && walk(&v, false, 2, INDEX(5, 6)) == 0,
           "tiles keep their size");
    qn_layout_release(&l);
    qn_layout_tiled(2, INDEX(3, 5), INDEX(2, 4), NULL, NULL, &l, NULL);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(3, 5), NULL, &err) == QN_OK &&
               qn__layout_equal(&v.layout, &l) && walk(&v, false, 2, INDEX(3, 5)) == 0,
           "of a smaller view too");
    qn_layout_release(&l);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(INT64_MAX, 5), NULL, &err) == QN_ERR_OVERFLOW &&
               qn_view_resize(context, &v, 2, INDEX(-1, 5), NULL, &err) == QN_ERR_EXTENT &&
               walk(&v, false, 2, INDEX(3, 5)) == 0,
           "refused extents");
    tap_ok(qn_view_realloc(context, &v, 2, INDEX(0, 5), NULL, &err) == QN_OK &&
               qn_view_size(&v) == 0,
           "to nothing");
    qn_view_release(&v);
    qn_layout_morton(2, INDEX(4, 4), NULL, &l, NULL);
    v = filled("morton", &l);
    tap_ok(qn_view_resize(context, &v, 2, INDEX(4, 9), NULL, &err) == QN_OK &&
               walk(&v, false, 2, INDEX(4, 4)) == 0 && qn_layout_is_unique(&v.layout),
           "Morton");
    qn_layout_release(&l);
    qn_view_release(&v);
    qn_layout_tiled(2, INDEX(5, 6), INDEX(2, 4), NULL, NULL, &l, NULL);
    v = filled("tiled", &l);
    qn_layout_release(&l);
    qn_layout_tiled(2, INDEX(7, 5), INDEX(2, 4), NULL, NULL, &l, NULL);
    tap_ok(qn_view_resize_layout(context, &v, &l, NULL, &err) == QN_OK &&
               walk(&v, false, 2, INDEX(5, 6)) == 0,
           "resize to a tiled layout");
    void *before = v.data;
    tap_ok(qn_view_resize_layout(context, &v, &l, NULL, &err) == QN_OK && v.data == before,
           "unchanged");
    qn_layout_release(&l);
    qn_layout_strided(2, INDEX(3, 3), INDEX(0, 1), &l, NULL);
    tap_ok(qn_view_resize_layout(context, &v, &l, NULL, &err) == QN_ERR_NOT_INJECTIVE &&
               qn_view_resize_layout(context, &v, NULL, NULL, &err) == QN_ERR_ARGUMENT &&
               v.data == before,
           "refused layouts");
    qn_view_release(&v);
}

static void test_resize_refused(void)
{
    qn_error err = {0};
    qn_layout l;
    qn_layout_right(1, INDEX(4), &l, NULL);
    qn_view v = filled("v", &l), none = {0};
    void *before = v.data;
    v.traits = QN_READ_ONLY;
    tap_ok(qn_view_resize(context, &v, 1, INDEX(5), NULL, &err) == QN_ERR_READ_ONLY, "read-only");
    v.traits = 0;
    tap_ok(qn_view_resize(context, &v, 1, INDEX(-5), NULL, &err) == QN_ERR_EXTENT,
           "negative extent");
    tap_ok(qn_view_resize(context, &v, 2, INDEX(INT64_MAX, 3), NULL, &err) == QN_ERR_OVERFLOW,
           "overflow");
    tap_ok(qn_view_resize(context, &v, 1, INDEX(INT64_MAX / 16), NULL, &err) == QN_ERR_MEMORY,
           "VC18: memory");
    tap_contains(err.message, "view \"v\": no memory for 2305843009213693948 bytes in space host",
                 "VC18: message");
    tap_ok(qn_view_resize(context, &v, 17, INDEX(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
                          NULL, &err) == QN_ERR_RANK,
           "rank 17");
    tap_ok(qn_view_resize(context, &v, 1, INDEX(5), OPTIONS(.label = "new"), &err) ==
               QN_ERR_ARGUMENT,
           "RS3: no label");
    tap_ok(qn_view_resize(context, &v, 1, NULL, NULL, &err) == QN_ERR_ARGUMENT &&
               qn_view_resize(context, NULL, 1, INDEX(5), NULL, &err) == QN_ERR_ARGUMENT &&
               qn_view_resize(context, &none, 1, INDEX(5), NULL, &err) == QN_ERR_DTYPE,
           "NULL, and a view without dtype");
    tap_ok(v.data == before && walk(&v, false, 1, INDEX(4)) == 0 && qn_view_use_count(&v) == 1,
           "nothing changed");
    int failures = 0, wrong = 0;
    for (int n = 1; n < 60; n++) {
        qn_context *c = context_with(&(qn_context_options){.bytes = sizeof(qn_context_options),
                                                           .provider_path = "/nowhere"});
        qn_layout_right(2, INDEX(3, 4), &l, NULL);
        qn_view w = filled("w", &l);
        before = w.data;
        qn__fail_allocation(n, false);
        qn_status status = qn_view_resize(c, &w, 2, INDEX(4, 6), NULL, &err);
        qn__fail_allocation(0, false);
        failures += status != QN_OK;
        wrong += status != QN_OK && (status != QN_ERR_MEMORY || w.data != before);
        wrong += walk(&w, false, 2, INDEX(3, 4)) != 0 || qn_view_use_count(&w) != 1;
        qn_view_release(&w);
        qn_context_release(c);
    }
    tap_ok(wrong == 0 && failures > 3,
           "every allocation fails once: the view is as it was (%d failures)", failures);
    qn_view_release(&v);
}

static void test_realloc(void)
{
    qn_error err = {0};
    qn_layout l;
    qn_layout_right(2, INDEX(4, 5), &l, NULL);
    qn_view v = filled("v", &l);
    void *before = v.data;
    tap_ok(qn_view_realloc(NULL, &v, 2, INDEX(4, 5), OPTIONS(.uninitialised = 1), &err) == QN_OK &&
               v.data == before && walk(&v, false, 2, INDEX(4, 5)) == 0,
           "RS2: same size, uninitialised: nothing is touched");
    tap_ok(qn_view_realloc(NULL, &v, 2, INDEX(4, 5), NULL, &err) == QN_OK && v.data == before &&
               all_zero(v.data, 80),
           "RS2: same size: same storage, zero");
    walk(&v, true, 0, NULL);
    qn_view other = qn_view_copy(&v);
    tap_ok(qn_view_realloc(NULL, &v, 2, INDEX(6, 5), NULL, &err) == QN_OK &&
               all_zero(v.data, 120) && v.layout.dim[0].extent == 6 &&
               walk(&other, false, 2, INDEX(4, 5)) == 0,
           "RS2: contents are discarded; other owners keep theirs");
    tap_is_str(v.label, "v", "RS2: label kept");
    tap_ok(qn_view_realloc(NULL, &v, 1, INDEX(-1), NULL, &err) == QN_ERR_EXTENT &&
               qn_view_realloc(NULL, NULL, 1, INDEX(1), NULL, &err) == QN_ERR_ARGUMENT,
           "refused");
    qn_view_release(&v);
    qn_view_release(&other);
    qn_view_type type = type_of(QN_F32, 1, NULL, QN_FAMILY_ANY);
    qn_view_default(&type, &v, NULL);
    tap_ok(qn_view_realloc(NULL, &v, 1, INDEX(6), NULL, &err) == QN_OK && v.data &&
               qn_view_size(&v) == 6,
           "a default view of a type gets storage");
    qn_view_release(&v);
}

/* ---------------------------------------------------------------- mirrors */

static void test_mirrors(void)
{
    qn_error err = {0};
    qn_layout l;
    qn_layout_strided(2, INDEX(9, 3), INDEX(1, 16), &l, NULL);
    qn_view v = filled("v", &l), m, same;
    tap_ok(qn_create_mirror(NULL, QN_SPACE_HOST, &v, &m, &err) == QN_OK && m.data != v.data &&
               has_strides(&m, INDEX(1, 16)) && all_zero(m.data, 41 * 4),
           "MI1, MI3: always allocates, keeps layout and padding");
    tap_is_str(m.label, "v_mirror", "MI2: label");
    tap_ok(qn_deep_copy(context, &m, &v, &err) == QN_OK && walk(&m, false, 2, INDEX(9, 3)) == 0,
           "X4.23: copy");
    tap_ok(qn_create_mirror_view(NULL, QN_SPACE_HOST, &v, &same, &err) == QN_OK &&
               qn_view_equal(&same, &v) && qn_view_use_count(&v) == 2,
           "MI1: the mirror view of a host view is the view");
    tap_ok(qn_deep_copy(NULL, &same, &v, &err) == QN_OK,
           "X4.23: the copy is a no-op, without a context");
    qn_view_release(&same);
    tap_ok(qn_create_mirror_copy(NULL, QN_SPACE_HOST, &v, &same, &err) == QN_OK &&
               qn_view_equal(&same, &v),
           "MI3: mirror and copy");
    qn_view_release(&same);
    REFUSED(QN_ERR_NOT_AVAILABLE, same, qn_create_mirror, NULL, QN_SPACE_ROCM, &v, &same);
    REFUSED(QN_ERR_NOT_AVAILABLE, same, qn_create_mirror_view, NULL, QN_SPACE_HBW, &v, &same);
    REFUSED(QN_ERR_ARGUMENT, same, qn_create_mirror_copy, NULL, QN_SPACE_HOST, NULL, &same);
    qn_view_release(&m);
    qn_view_release(&v);
    qn_layout_strided(2, INDEX(3, 4), INDEX(0, 1), &l, NULL);
    qn_view_alloc(NULL, NULL, QN_I32, &l, 0, &v, &err);
    ((int32_t *)v.data)[2] = 8;
    tap_ok(qn_create_mirror(NULL, QN_SPACE_HOST, &v, &m, &err) == QN_OK &&
               has_strides(&m, INDEX(4, 1)) && qn_deep_copy(context, &m, &v, &err) == QN_OK &&
               ((int32_t *)m.data)[10] == 8,
           "the mirror of a broadcast view is dense");
    tap_is_str(m.label, "_mirror", "MI2: no label");
    qn_view_release(&m);
    int failures = 0;
    for (int n = 1; n < 6; n++) {
        qn__fail_allocation(n, false);
        qn_status status = qn_create_mirror(NULL, QN_SPACE_HOST, &v, &m, &err);
        qn__fail_allocation(0, false);
        failures += status == QN_ERR_MEMORY;
        if (status == QN_OK)
            qn_view_release(&m);
    }
    tap_is_int(failures, 2, "failing memory");
    qn_view_release(&v);
}

int main(void)
{
    context =
        context_with(&(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 2});
    test_create();
    test_properties();
    test_create_layout();
    test_resize_example();
    test_resize_layouts();
    test_resize_refused();
    test_realloc();
    test_mirrors();
    qn_context_release(context);
    return tap_done();
}
