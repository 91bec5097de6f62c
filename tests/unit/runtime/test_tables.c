/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tables.c: index lists and MultiViews: addresses, transforms, queries, references, copies,
 * and kernels that were prepared. What kernels do with them is in the cases list_*.case and
 * multi_*.case. Rows of the specification are named (LY22, MV1, X1.15, ...).
 */
#include "tests/fill.h"
#include "tests/unit/launch.h"
#include "quern/bytes.h"
#include "tests/unit/layout.h"

/** A list on the caller's memory. */
static qn_view list_of(const char *label, int64_t n, int64_t *index)
{
    qn_layout l;
    qn_view v = {0};
    qn_error err = {0};
    if (qn_layout_right(1, &n, &l, &err) || qn_view_wrap(label, index, QN_I64, &l, 0, &v, &err))
        tap_ok(false, "list: %s", err.message);
    return v;
}

static qn_view ints_of(const char *label, int rank, const int64_t *extents, int32_t *data)
{
    qn_layout l;
    qn_view v = {0};
    qn_error err = {0};
    if (qn_layout_right(rank, extents, &l, &err) ||
        qn_view_wrap(label, data, QN_I32, &l, 0, &v, &err))
        tap_ok(false, "view: %s", err.message);
    return v;
}

static int32_t at(const qn_view *v, const int64_t *index)
{
    void *p = NULL;
    qn_error err = {0};
    if (qn_view_at(v, v->layout.rank, index, &p, &err) == QN_OK)
        return *(int32_t *)p;
    tap_note("%s", err.message);
    return -1;
}

static int64_t offset_at(const qn_layout *l, const int64_t *index)
{
    int64_t offset = INT64_MIN;
    qn_layout_at(l, l->rank, index, &offset, NULL);
    return offset;
}

static void fails(qn_status status, const qn_error *err, qn_status expected, const char *part)
{
    tap_is_int(status, expected, part);
    tap_contains(err->message, part, "... its message");
}

/* ---------------------------------------------------------------- lists */

static void test_examples(void)
{
    int32_t data[6] = {0, 1, 2, 10, 11, 12};
    int64_t index[2] = {1, 2};
    qn_view v = ints_of("data", 2, INDEX(2, 3), data), list = list_of("list", 2, index), w;
    qn_layout l, same;
    qn_error err = {0};
    void *p, *q;
    tap_ok(qn_layout_list(&v.layout, 1, &list, &l, &err) == QN_OK &&
               qn_view_with_layout(&v, &l, &w, &err) == QN_OK,
           "X1.15: a list for dimension 1: %s", err.message);
    tap_is_int(w.layout.dim[1].extent, 2, "its extent");
    tap_is_int(at(&w, INDEX(1, 0)), 11, "(1,0) is data[1][1]");
    qn_view_at(&w, 2, INDEX(1, 1), &p, &err);
    qn_view_at(&v, 2, INDEX(1, 2), &q, &err);
    tap_ok(p == q, "&(1,1) == &data[1][2]");
    tap_ok(qn_layout_list(&v.layout, 1, NULL, &same, &err) == QN_OK && !same.digits &&
               offset_at(&same, INDEX(1, 2)) == 5,
           "X1.16: a NULL list is identity");
    index[0] = 2;
    tap_is_int(at(&w, INDEX(1, 0)), 12, "lists are read at every access");
    index[0] = 3;
    fails(qn_view_at(&w, 2, INDEX(1, 0), &p, &err), &err, QN_ERR_BOUNDS,
          "view \"data\": dimension 1: list \"list\" holds 3 at position 0, not in [0,3)");
    fails(qn_layout_at(&l, 2, INDEX(1, 0), &(int64_t){0}, &err), &err, QN_ERR_BOUNDS,
          "qn_layout_at: dimension 1: list");
    fails(qn_view_at(&w, 2, INDEX(1, 2), &p, &err), &err, QN_ERR_BOUNDS,
          "index 2 not in [0,2); indices [1,2], extents [2,2]");
    qn_layout_release(&l);
    qn_view_release(&w);
}

static void test_refused(void)
{
    int64_t index[4] = {0, 1, 0, 1};
    qn_layout l, out = {0}, listed;
    qn_view list = list_of("list", 2, index), bad = list;
    qn_error err = {0};
    qn_layout_right(2, INDEX(2, 3), &l, &err);
    fails(qn_layout_list(NULL, 0, &list, &out, &err), &err, QN_ERR_ARGUMENT, "layout is NULL");
    fails(qn_layout_list(&l, 0, &list, NULL, &err), &err, QN_ERR_ARGUMENT, "out is NULL");
    fails(qn_layout_list(&l, 2, &list, &out, &err), &err, QN_ERR_ARGUMENT,
          "dimension 2 not in [0,2)");
    fails(qn_layout_list(&l, -1, NULL, &out, &err), &err, QN_ERR_ARGUMENT, "dimension -1");
    bad.dtype = QN_F64;
    fails(qn_layout_list(&l, 0, &bad, &out, &err), &err, QN_ERR_DTYPE, "dtype f64, expected i64");
    bad = list;
    bad.data = NULL;
    fails(qn_layout_list(&l, 0, &bad, &out, &err), &err, QN_ERR_NULL_DATA, "data is NULL");
    bad = list;
    bad.layout.rank = 0;
    fails(qn_layout_list(&l, 0, &bad, &out, &err), &err, QN_ERR_RANK, "rank 0, expected 1");
    qn_layout_list(&l, 0, &list, &listed, &err);
    fails(qn_layout_list(&listed, 0, &list, &out, &err), &err, QN_ERR_UNSUPPORTED,
          "has a list already");
    bad = list;
    qn_layout_list(&list.layout, 0, &list, &bad.layout, &err);
    fails(qn_layout_list(&l, 0, &bad, &out, &err), &err, QN_ERR_UNSUPPORTED, "a list of its own");
    qn_layout_release(&bad.layout);
    fails(qn_layout_split(&listed, 0, 1, &out, &err), &err, QN_ERR_UNSUPPORTED,
          "qn_layout_split: dimension 0: has an index list");
    fails(qn_layout_merge(&listed, 0, &out, &err), &err, QN_ERR_UNSUPPORTED,
          "dimension 0: has an index");
    fails(qn_layout_reshape(&listed, 1, INDEX(6), &out, &err), &err, QN_ERR_UNSUPPORTED,
          "dimension 0: has");
    fails(qn_layout_coalesce(&listed, &out, &err), &err, QN_ERR_UNSUPPORTED,
          "dimension 0: has an index");
    int64_t stride;
    fails(qn_layout_stride(&listed, 0, &stride, &err), &err, QN_ERR_UNSUPPORTED,
          "has an index list");
    tap_ok(qn_layout_stride(&listed, 1, &stride, &err) == QN_OK && stride == 1,
           "the other has a stride");
    tap_ok(!out.digits && out.rank == 0, "outputs are not written");
    tap_ok(qn_layout_split(&listed, 1, 3, &out, &err) == QN_OK && out.rank == 3,
           "others can be split");
    qn_layout_release(&out);
    qn_layout_projected(2, INDEX(0, 3), &l, &err);
    fails(qn_layout_list(&l, 0, &list, &out, &err), &err, QN_ERR_UNSUPPORTED, "is projected");
    qn_layout_right(1, INDEX(INT64_C(1) << 62), &l, &err);
    fails(qn_layout_list(&l, 0, &list, &out, &err), &err, QN_ERR_OVERFLOW, "above 2^62");
    qn_layout_release(&listed);
}

static void test_queries(void)
{
    int64_t index[4] = {3, 0, 0, 2};
    qn_layout l, listed, other;
    qn_view list = list_of("list", 4, index);
    qn_error err = {0};
    char text[80];
    int64_t low, high, found[2];
    qn_layout_right(2, INDEX(5, 3), &l, &err);
    qn_layout_list(&l, 0, &list, &listed, &err);
    qn_layout_print(&listed, text, sizeof text);
    tap_is_str(text, "([4]5,3):(3,1)", "as text");
    tap_is_int(qn_layout_size(&listed), 12, "size");
    tap_is_int(qn_layout_span(&listed), 15, "span is that of the layout underneath");
    tap_ok(qn_layout_range(&listed, &low, &high, &err) == QN_OK && low == 0 && high == 14,
           "range too");
    tap_ok(!qn_layout_is_unique(&listed) && !qn_layout_is_contiguous(&listed) &&
               !qn_layout_is_strided(&listed) && !qn_layout_is_right(&listed) &&
               !qn_layout_is_left(&listed),
           "not unique, contiguous, strided, Right or Left");
    tap_is_int(qn_layout_digits(&listed, 0, NULL), 1, "digits are those of the values");
    tap_ok(qn_layout_inverse(&listed, 7, found, &err) == QN_OK && found[0] == 3 && found[1] == 1,
           "inverse: searched");
    tap_ok(qn_layout_inverse(&listed, 2, found, &err) == QN_OK && found[0] == 1 && found[1] == 2,
           "the first of equal ones");
    fails(qn_layout_inverse(&listed, 4, found, &err), &err, QN_ERR_NOT_FOUND,
          "offset 4 belongs to no index");
    qn_layout_list(&l, 0, &list, &other, &err);
    qn_view a = {.data = index, .dtype = QN_I8, .layout = listed}, b = a, c = a;
    b.layout = other;
    c.layout = l;
    tap_ok(qn_view_equal(&a, &b), "views through the same list are equal");
    int64_t again[4] = {3, 0, 0, 2};
    qn_view copy = list_of("copy", 4, again);
    qn_layout_release(&other);
    qn_layout_list(&l, 0, &copy, &other, &err);
    b.layout = other;
    tap_ok(!qn_view_equal(&a, &b) && !qn_view_equal(&a, &c),
           "other lists may change by themselves");
    qn_view_type type;
    qn_view_type_init(QN_I8, 2, NULL, QN_FAMILY_STRIDED, &type, &err);
    tap_ok(!qn_is_assignable(&type, &a, &err), "of no family");
    tap_contains(err.message, "found an index list", "... its message");
    type.family = QN_FAMILY_ANY;
    tap_ok(qn_is_assignable(&type, &a, &err), "but of any");
    qn_layout_release(&other);
    qn_layout_release(&listed);
}

/* ---------------------------------------------------------------- transforms */

typedef struct listed_layout {
    qn_layout under, layout; /* rank 3; a list for dimensions 0 and 2 */
    int64_t index[2][16];
} listed_layout;

static void make_listed(listed_layout *x)
{
    int64_t extents[3], strides[3], lower[3];
    qn_error err = {0};
    for (int d = 0; d < 3; d++) {
        extents[d] = 1 + random_in(0, -1 + 6);
        strides[d] = random_in(0, -1 + 40) - 20;
        lower[d] = random_in(0, -1 + 9) - 4;
    }
    if (random_in(0, -1 + 2))
        qn_layout_tiled(3, extents, INDEX(2, 3, 2), NULL, NULL, &x->under, &err);
    else
        qn_layout_strided(3, extents, strides, &x->under, &err);
    qn_layout_offset(&x->under, lower, &x->under, &err);
    x->layout = qn_layout_copy(&x->under);
    for (int i = 0; i < 2; i++) {
        int64_t n = 1 + random_in(0, -1 + 8);
        for (int64_t p = 0; p < n; p++)
            x->index[i][p] = lower[2 * i] + random_in(0, -1 + extents[2 * i]);
        qn_view list = list_of("list", n, x->index[i]);
        if (qn_layout_list(&x->layout, 2 * i, &list, &x->layout, &err))
            tap_ok(false, "%s", err.message);
    }
}

/** Steps an index tuple; false after the last. */
static bool next(const qn_layout *l, int64_t *index)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        if (++index[d] < l->dim[d].lower + l->dim[d].extent)
            return true;
        index[d] = l->dim[d].lower;
    }
    return false;
}

/** Whether result(index) = l(map(index)) everywhere. */
static bool agrees(const qn_layout *result, const qn_layout *l,
                   void (*map)(const void *arg, const int64_t *index, int64_t *out),
                   const void *arg)
{
    int64_t index[QN_MAX_RANK], from[QN_MAX_RANK];
    if (qn_layout_size(result) == 0)
        return true;
    for (int d = 0; d < result->rank; d++)
        index[d] = result->dim[d].lower;
    do {
        map(arg, index, from);
        if (offset_at(result, index) != offset_at(l, from) || offset_at(result, index) == INT64_MIN)
            return false;
    } while (next(result, index));
    return true;
}

static void map_list(const void *arg, const int64_t *i, int64_t *out)
{
    const listed_layout *x = arg;
    out[0] = x->index[0][i[0]];
    out[1] = i[1];
    out[2] = x->index[1][i[2]];
}

static void map_permute(const void *arg, const int64_t *i, int64_t *out)
{
    (void)arg;
    out[2] = i[0];
    out[0] = i[1];
    out[1] = i[2];
}

static void map_reverse(const void *arg, const int64_t *i, int64_t *out)
{
    const qn_layout *l = arg;
    out[0] = i[0];
    out[1] = i[1];
    out[2] = l->dim[2].extent - 1 - i[2];
}

static void map_range(const void *arg, const int64_t *i, int64_t *out)
{
    const qn_slice *s = arg;
    out[0] = s[0].begin + i[0] * s[0].step;
    out[1] = i[1];
    out[2] = i[2];
}

static void map_at(const void *arg, const int64_t *i, int64_t *out)
{
    const qn_slice *s = arg;
    out[0] = s[0].begin;
    out[1] = i[0];
    out[2] = i[1];
}

static void map_shift(const void *arg, const int64_t *i, int64_t *out)
{
    (void)arg;
    for (int d = 0; d < 3; d++)
        out[d] = i[d] - 7;
}

static void map_broadcast(const void *arg, const int64_t *i, int64_t *out)
{
    (void)arg;
    out[0] = i[0];
    out[1] = i[2];
    out[2] = i[3];
}

/** Drops dimensions of extent 1 as squeeze does. */
static void map_squeeze(const void *arg, const int64_t *i, int64_t *out)
{
    const qn_layout *l = arg;
    for (int d = 0; d < 3; d++)
        out[d] = l->dim[d].extent == 1 ? l->dim[d].lower : *i++;
}

static void test_transforms(void)
{
    enum { N = 2000 };
    int wrong[8] = {0};
    for (int n = 0; n < N; n++) {
        listed_layout x;
        qn_layout r = {0};
        qn_error err = {0};
        make_listed(&x);
        wrong[0] += !agrees(&x.layout, &x.under, map_list, &x);
        qn_layout_permute(&x.layout, ((const int[]){2, 0, 1}), &r, &err);
        wrong[1] += !agrees(&r, &x.layout, map_permute, NULL);
        qn_layout_release(&r);
        qn_layout_reverse(&x.layout, 2, &r, &err);
        wrong[2] += !agrees(&r, &x.layout, map_reverse, &x.layout);
        qn_layout_release(&r);
        int64_t extent = x.layout.dim[0].extent, begin = random_in(0, -1 + extent);
        qn_slice s[3] = {{QN_RANGE, begin, begin + random_in(0, -1 + extent - begin + 1),
                          1 + random_in(0, -1 + 3)}};
        wrong[3] += qn_layout_slice(&x.layout, 3, s, &r, &err) != QN_OK ||
                    !agrees(&r, &x.layout, map_range, s);
        qn_layout_release(&r);
        s[0].kind = QN_AT;
        wrong[4] += qn_layout_slice(&x.layout, 3, s, &r, &err) != QN_OK ||
                    !agrees(&r, &x.layout, map_at, s);
        qn_layout_release(&r);
        qn_layout_shift(&x.layout, INDEX(7, 7, 7), &r, &err);
        wrong[5] += !agrees(&r, &x.layout, map_shift, NULL);
        qn_layout_release(&r);
        qn_layout_broadcast(&x.layout, 1, 3, &r, &err);
        wrong[6] += !agrees(&r, &x.layout, map_broadcast, NULL);
        qn_layout_release(&r);
        wrong[7] += qn_layout_squeeze(&x.layout, &r, &err) != QN_OK ||
                    !agrees(&r, &x.layout, map_squeeze, &x.layout);
        qn_layout_release(&r);
        qn_layout_release(&x.layout);
        qn_layout_release(&x.under);
    }
    static const char *const names[] = {"list",  "permute",          "reverse",   "range of a list",
                                        "at",    "shift of a list",  "broadcast", "squeeze"};
    for (int i = 0; i < 8; i++)
        tap_is_int(wrong[i], 0, names[i]);
}

/* ---------------------------------------------------------------- references */

static void test_list_references(void)
{
    qn_view list, v, w, part;
    qn_layout l;
    qn_error err = {0};
    qn_view_new(NULL, "list", QN_I64, 1, INDEX(3), &list, &err);
    qn_view_new(NULL, "v", QN_I32, 1, INDEX(5), &v, &err);
    qn_layout_list(&v.layout, 0, &list, &l, &err);
    tap_is_int(qn_view_use_count(&list), 2, "a layout keeps its list");
    qn_view_with_layout(&v, &l, &w, &err);
    qn_layout_release(&l);
    tap_is_int(qn_view_use_count(&list), 2, "layouts share it");
    qn_slice s = {QN_RANGE, 1, 3, 1};
    qn_subview(&w, 1, &s, &part, &err);
    qn_view_release(&w);
    tap_is_int(qn_view_use_count(&list), 2, "a part keeps it too");
    ((int64_t *)list.data)[2] = 4;
    ((int32_t *)v.data)[4] = 77;
    tap_is_int(at(&part, INDEX(1)), 77, "and reads it");
    qn_view_release(&part);
    tap_is_int(qn_view_use_count(&list), 1, "nothing is left");
    qn_view_release(&list);
    qn_view_release(&v);
}

/* ---------------------------------------------------------------- MultiViews */

static void test_multi(void)
{
    int32_t a1[4] = {5, 6, 7, 8}, a2[4] = {9, 10, 11, 12};
    qn_view m[2] = {ints_of("a1", 1, INDEX(4), a1), ints_of("a2", 1, INDEX(4), a2)}, v, row;
    qn_error err = {0};
    void *p;
    tap_ok(qn_view_multi("m", 2, m, 0, &v, &err) == QN_OK, "MV1: two members: %s", err.message);
    tap_ok(at(&v, INDEX(0, 3)) == 8 && at(&v, INDEX(1, 2)) == 11, "X1.3");
    fails(qn_view_at(&v, 2, INDEX(-1, 0), &p, &err), &err, QN_ERR_BOUNDS,
          "dimension 0: index -1 not in [0,2)");
    fails(qn_view_at(&v, 2, INDEX(2, 0), &p, &err), &err, QN_ERR_BOUNDS,
          "dimension 0: index 2 not in [0,2)");
    fails(qn_view_at(&v, 2, INDEX(0, 4), &p, &err), &err, QN_ERR_BOUNDS, "dimension 1: index 4");
    tap_ok(qn_layout_is_unique(&v.layout) && !qn_layout_is_contiguous(&v.layout),
           "unique, not contiguous");
    qn_slice s[2] = {{QN_AT, 1, 0, 0}, {QN_ALL, 0, 0, 0}};
    tap_ok(qn_subview(&v, 2, s, &row, &err) == QN_OK && qn_view_equal(&row, &m[1]) &&
               strcmp(row.label, "a2") == 0,
           "a subview at a position is the member");
    qn_view_release(&row);
    int64_t offset, found[2];
    tap_ok(qn_layout_at(&v.layout, 2, INDEX(1, 3), &offset, &err) == QN_OK &&
               qn_layout_inverse(&v.layout, offset, found, &err) == QN_OK && found[0] == 1 &&
               found[1] == 3,
           "inverse");
    qn_view_release(&v);
    tap_ok(qn_view_multi("m", 2, m, 1, &v, &err) == QN_OK && at(&v, INDEX(3, 0)) == 8 &&
               at(&v, INDEX(2, 1)) == 11,
           "MV2, X1.4: position 1");
    fails(qn_view_with_layout(&m[0], &v.layout, &row, &err), &err, QN_ERR_UNSUPPORTED,
          "different MultiViews");
    fails(qn_view_with_layout(&v, &m[0].layout, &row, &err), &err, QN_ERR_UNSUPPORTED,
          "different MultiViews");
    fails(qn_view_wrap("w", a1, QN_I32, &v.layout, 0, &row, &err), &err, QN_ERR_UNSUPPORTED,
          "members of a MultiView");
    fails(qn_view_alloc(NULL, "w", QN_I32, &v.layout, 0, &row, &err), &err, QN_ERR_UNSUPPORTED,
          "members of a MultiView");
    fails(qn_view_assign_data(&v, a1, &err), &err, QN_ERR_UNSUPPORTED, "is a MultiView");
    qn_layout turned;
    qn_layout_reverse(&v.layout, 0, &turned, &err);
    tap_ok(qn_view_with_layout(&v, &turned, &row, &err) == QN_OK && at(&row, INDEX(0, 1)) == 12,
           "through a transformed layout: %s", err.message);
    qn_view_release(&row);
    turned.dim[0].extent = 4;
    turned.origin = 4;
    tap_ok(qn_view_with_layout(&v, &turned, &row, &err) == QN_ERR_BOUNDS,
           "that must stay inside the members");
    qn_layout_release(&turned);
    int perm[2] = {1, 0};
    qn_layout_permute(&v.layout, perm, &turned, &err);
    qn_view_with_layout(&v, &turned, &row, &err);
    tap_is_int(at(&row, INDEX(1, 3)), 12, "permuted");
    qn_layout_release(&turned);
    qn_view_release(&row);
    qn_view_release(&v);
    m[0] = ints_of("a1", 2, INDEX(2, 2), a1);
    m[1] = ints_of("a2", 2, INDEX(2, 2), a2);
    tap_ok(qn_view_multi("m", 2, m, 2, &v, &err) == QN_OK && at(&v, INDEX(1, 1, 0)) == 8 &&
               at(&v, INDEX(0, 0, 1)) == 9,
           "X1.5, X1.6: position 2");
    qn_view_release(&v);
    void *data[2] = {a2, a1};
    tap_ok(qn_view_multi_wrap("w", 2, data, QN_I32, &m[0].layout, 0, 0, &v, &err) == QN_OK &&
               at(&v, INDEX(0, 1, 0)) == 11,
           "from addresses");
    qn_view_release(&v);
    fails(qn_view_multi_wrap("w", 2, data, QN_VOID, &m[0].layout, 0, 0, &v, &err), &err,
          QN_ERR_DTYPE, "qn_view_multi_wrap: view \"w\": no dtype");
    fails(qn_view_multi_wrap("w", 2, data, QN_I32, &m[0].layout, 9, 0, &v, &err), &err,
          QN_ERR_ARGUMENT, "qn_view_multi_wrap: view \"w\": position 9");
    tap_ok(qn_view_multi(NULL, 0, NULL, 0, &v, &err) == QN_OK && !v.data && qn_view_size(&v) == 0,
           "MV4: no members: the default view");
    m[1].dtype = QN_F32;
    fails(qn_view_multi("m", 2, m, 0, &v, &err), &err, QN_ERR_DTYPE,
          "member 1 (a2): dtype f32, that of member 0 is i32");
    m[1] = ints_of("a2", 1, INDEX(4), a2);
    fails(qn_view_multi("m", 2, m, 0, &v, &err), &err, QN_ERR_EXTENT,
          "layout (4):(1), that of member 0 is (2,2):(2,1)");
    m[1] = m[0];
    fails(qn_view_multi("m", 2, m, 3, &v, &err), &err, QN_ERR_ARGUMENT, "position 3 not in [0,2]");
    fails(qn_view_multi("m", -1, m, 0, &v, &err), &err, QN_ERR_ARGUMENT, "is negative");
    fails(qn_view_multi("m", 2, NULL, 0, &v, &err), &err, QN_ERR_ARGUMENT, "views are NULL");
    tap_ok(qn_view_multi("m", 2, m, 0, &v, &err) == QN_OK && !qn_layout_is_unique(&v.layout),
           "members that share elements: not unique");
    fails(qn_view_multi("n", 1, &v, 0, &row, &err), &err, QN_ERR_UNSUPPORTED,
          "is a MultiView itself");
    qn_view_release(&v);
}

#define OUTER_TEXT                                                                                 \
    "kernel \"outer\" {\n view outer: f64[2];\n %0: i64 = const 0; %1: i64 = extent outer, 0;\n"   \
    " %2: i64 = extent outer, 1; %3: i64 = parallel %0, %1; %4: i64 = parallel %0, %2;\n"          \
    " %5: f64 = cast %3; %6: f64 = cast %4; %7: f64 = const 0x1.4p+3; %8: f64 = mul %5, %7;\n"     \
    " %9: f64 = add %8, %6; store outer[%3, %4], %9;\n}\n"

static void test_view_of_views(qn_context *c)
{
    qn_view inner[5], outer, row;
    qn_error err = {0};
    qn_kernel *k = kernel_of(OUTER_TEXT);
    for (int i = 0; i < 5; i++)
        qn_view_new(c, "inner", QN_F64, 1, INDEX(4), &inner[i], &err);
    tap_ok(qn_view_multi("outer", 5, inner, 0, &outer, &err) == QN_OK, "X4.4: a view of views");
    tap_is_int(qn_view_use_count(&inner[2]), 2, "keeps its members");
    qn_arg arg = qn_arg_view(&outer);
    qn_call *call = NULL;
    tap_ok(qn_launch(c, k, 1, &arg, NULL, &err) == QN_OK, "launch: %s", err.message);
    tap_ok(qn_prepare(c, k, 1, &arg, NULL, &call, &err) == QN_OK, "prepare: %s", err.message);
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .plan = PLAN_WITH(.streams = 1)};
    qn_status status = qn_launch(c, k, 1, &arg, &o, &err);
    char reason[QN_MESSAGE_BYTES];
    tap_ok(status == QN_OK || !has_x86(reason, sizeof reason), "members take no streams: %s",
           err.message);
    qn_slice s[2] = {{QN_AT, 3, 0, 0}, {QN_ALL, 0, 0, 0}};
    qn_subview(&outer, 2, s, &row, &err);
    tap_is_int(qn_view_use_count(&inner[3]), 3, "member, MultiView (the call shares it) and row");
    qn_view_release(&outer);
    bool is_right = true;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++) {
            is_right = is_right && ((double *)inner[i].data)[j] == 10.0 * i + j;
            ((double *)inner[i].data)[j] = 0;
        }
    tap_ok(is_right, "inner k holds 10 k + {0,1,2,3}");
    tap_ok(qn_run(call, &err) == QN_OK && ((double *)row.data)[2] == 32,
           "the prepared call, without the MultiView");
    qn_call_release(call);
    qn_view_release(&row);
    for (int i = 0; i < 5; i++)
        tap_is_int(qn_view_use_count(&inner[i]), 1, "nothing leaks");
    for (int i = 0; i < 5; i++)
        qn_view_release(&inner[i]);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- copies */

static void test_copies(qn_context *c)
{
    int64_t index[4] = {4, 0, 3, 1}, twice[4] = {4, 0, 4, 1};
    int32_t data[5] = {0, 1, 2, 3, 4}, plain[4] = {0};
    qn_view v = ints_of("v", 1, INDEX(5), data), list = list_of("list", 4, index),
            dup = list_of("dup", 4, twice), p = ints_of("p", 1, INDEX(4), plain), w, d, mirror;
    qn_layout l;
    qn_error err = {0};
    qn_layout_list(&v.layout, 0, &list, &l, &err);
    qn_view_with_layout(&v, &l, &w, &err);
    qn_layout_release(&l);
    qn_layout_list(&v.layout, 0, &dup, &l, &err);
    qn_view_with_layout(&v, &l, &d, &err);
    qn_layout_release(&l);
    tap_ok(qn_deep_copy(c, &p, &w, &err) == QN_OK && plain[0] == 4 && plain[1] == 0 &&
               plain[2] == 3 && plain[3] == 1,
           "from a list: %s", err.message);
    for (int i = 0; i < 4; i++)
        plain[i] = 10 + i;
    tap_ok(qn_deep_copy(c, &w, &p, &err) == QN_OK && data[4] == 10 && data[0] == 11 &&
               data[3] == 12 && data[1] == 13 && data[2] == 2,
           "to a list");
    fails(qn_deep_copy(c, &d, &p, &err), &err, QN_ERR_NOT_INJECTIVE,
          "list \"dup\" holds 4 twice, the second time at position 2");
    tap_ok(qn_deep_copy(c, &p, &d, &err) == QN_OK && plain[0] == 10 && plain[2] == 10,
           "from one with duplicates");
    fails(qn_deep_copy(c, &w, &d, &err), &err, QN_ERR_OVERLAP, "share elements");
    index[1] = 5;
    fails(qn_deep_copy(c, &w, &p, &err), &err, QN_ERR_BOUNDS,
          "list \"list\" holds 5 at position 1, not in [0,5)");
    fails(qn_deep_copy(c, &p, &w, &err), &err, QN_ERR_BOUNDS,
          "list \"list\" holds 5 at position 1, not in [0,5)");
    index[1] = 0;
    tap_ok(fill_bits(c, &w, 7, &err) == QN_OK && data[0] == 7 && data[2] == 2, "fill");
    tap_ok(qn_create_mirror(c, QN_SPACE_HOST, &w, &mirror, &err) == QN_OK &&
               qn_layout_is_right(&mirror.layout) && mirror.layout.dim[0].extent == 4,
           "a mirror is dense");
    qn_view_release(&mirror);
    int64_t strides[1];
    fails(qn_view_strides(&w, strides, &err), &err, QN_ERR_UNSUPPORTED, "dimension 0 has a list");
    fails(qn_view_resize(c, &w, 1, INDEX(3), NULL, &err), &err, QN_ERR_UNSUPPORTED,
          "has an index list or members");
    fails(qn_view_to_bytes(&w, NULL, strides, NULL, &err), &err, QN_ERR_UNSUPPORTED,
          "dimension 0 has a list");
    qn_layout right;
    qn_layout_right(1, INDEX(6), &right, &err);
    qn_view grown = qn_view_copy(&w);
    tap_ok(qn_view_resize_layout(c, &grown, &right, NULL, &err) == QN_OK &&
               at(&grown, INDEX(0)) == 7,
           "to a layout of one's own: %s", err.message);
    qn_view_release(&grown);
    qn_view_release(&w);
    qn_view_release(&d);
}

/** A MultiView's code does not depend on addresses. */
static void test_one_version(qn_context *c)
{
    qn_error err = {0};
    qn_kernel *k = kernel_of(OUTER_TEXT);
    qn_counters before, after;
    for (int i = 0; i < 6; i++) {
        qn_view m[3], outer;
        int64_t far = 1 << (8 + i);
        qn_view all;
        qn_view_new(c, "all", QN_F64, 2, INDEX(3, far), &all, &err);
        for (int j = 0; j < 3; j++) {
            qn_slice s[2] = {{QN_AT, (j + i) % 3, 0, 0}, {QN_RANGE, 0, 100, 1}};
            qn_subview(&all, 2, s, &m[j], &err);
        }
        qn_view_multi("outer", 3, m, 0, &outer, &err);
        qn_arg arg = qn_arg_view(&outer);
        if (qn_launch(c, k, 1, &arg, NULL, &err))
            tap_ok(false, "launch: %s", err.message);
        if (i == 0)
            qn_context_counters(c, &before, sizeof before);
        qn_view_release(&outer);
        for (int j = 0; j < 3; j++)
            qn_view_release(&m[j]);
        qn_view_release(&all);
    }
    qn_context_counters(c, &after, sizeof after);
    tap_is_int(after.compiles, before.compiles, "members elsewhere: no new version");
    tap_is_int(after.misses, before.misses, "and known arguments");
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- memory that runs out */

/** Makes lists, parts of them and MultiViews, and launches; OK, or out of memory and nothing left.
 */
static qn_status use_tables(qn_context *c, const qn_kernel *k, const qn_view *inner, qn_view *list,
                            qn_error *err)
{
    qn_view outer = {0}, listed = {0}, part = {0};
    qn_layout l = {0};
    qn_slice s[2] = {{QN_ALL, 0, 0, 0}, {QN_RANGE, 0, 4, 2}};
    qn_status status = qn_view_multi("outer", 2, inner, 0, &outer, err);
    if (status == QN_OK)
        status = qn_layout_list(&outer.layout, 1, list, &l, err);
    if (status == QN_OK)
        status = qn_view_with_layout(&outer, &l, &listed, err);
    if (status == QN_OK)
        status = qn_subview(&listed, 2, s, &part, err);
    qn_arg arg = qn_arg_view(&part);
    if (status == QN_OK)
        status = qn_launch(c, k, 1, &arg, NULL, err);
    qn_call *call = NULL;
    if (status == QN_OK)
        status = qn_prepare(c, k, 1, &arg, NULL, &call, err);
    qn_call_release(call);
    qn_view_release(&part);
    qn_view_release(&listed);
    qn_layout_release(&l);
    qn_view_release(&outer);
    return status;
}

static void test_out_of_memory(void)
{
    qn_view inner[2], list;
    qn_error err = {0};
    bool is_right = true;
    int n = 0;
    qn_status status = QN_ERR_MEMORY;
    for (int i = 0; i < 2; i++)
        qn_view_new(NULL, "inner", QN_F64, 1, INDEX(4), &inner[i], &err);
    qn_view_new(NULL, "list", QN_I64, 1, INDEX(4), &list, &err);
    qn_kernel *k = kernel_of(OUTER_TEXT);
    while (status && n < 500) {
        qn_context *c = NULL; /* a new one: what was made before is not found */
        err = (qn_error){0};
        if (qn_context_new(NULL, &c, &err))
            break;
        qn__fail_allocation(++n, false);
        status = use_tables(c, k, inner, &list, &err);
        qn__fail_allocation(0, false);
        qn_context_release(c);
        is_right = is_right && (status == QN_OK || status == QN_ERR_MEMORY) &&
                   qn_view_use_count(&inner[0]) == 1 && qn_view_use_count(&list) == 1;
        if (status && status != QN_ERR_MEMORY)
            tap_note("%d: %s", n, err.message);
    }
    tap_ok(is_right && n > 10, "each allocation may fail, %d of them", n);
    for (int i = 0; i < 2; i++)
        qn_view_release(&inner[i]);
    qn_view_release(&list);
    qn_kernel_release(k);
}

int main(void)
{
    qn_context *c = context_with(NULL);
    test_examples();
    test_refused();
    test_queries();
    test_transforms();
    test_list_references();
    test_multi();
    test_view_of_views(c);
    test_copies(c);
    test_one_version(c);
    qn_context_release(c);
    test_out_of_memory();
    return tap_done();
}
