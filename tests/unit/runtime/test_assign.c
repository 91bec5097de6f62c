/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_assign.c: view types and assignment, references, equality, queries, spaces and late traits.
 * Rows of the specification are named (X0.3, AC2, Q4, ...). qn_is_assignable is compared with
 * qn_view_assign throughout, and the rule for strides with a search over all pitches.
 */
#include "tests/unit/layout.h"

enum {
    ANY = QN_FAMILY_ANY,
    RIGHT = QN_FAMILY_RIGHT,
    LEFT = QN_FAMILY_LEFT,
    STRIDED = QN_FAMILY_STRIDED
};

static qn_view_type type_of(int dtype, int rank, const int64_t *extents, int family)
{
    qn_view_type type;
    qn_error err = {0};
    if (qn_view_type_init(dtype, rank, extents, family, &type, &err))
        tap_ok(false, "type: %s", err.message);
    return type;
}

static qn_view new_view(const char *label, int dtype, int rank, const int64_t *extents)
{
    qn_view v = {0};
    qn_error err = {0};
    if (qn_view_new(NULL, label, dtype, rank, extents, &v, &err))
        tap_ok(false, "view: %s", err.message);
    return v;
}

/** Assigns to a fresh view and compares with the question; QN_OK or the status. */
static qn_status assigns(const qn_view_type *type, const qn_view *v, qn_error *err)
{
    qn_view dst = {0};
    qn_error asked = {0};
    int64_t before = qn_view_use_count(v);
    bool can = qn_is_assignable(type, v, &asked);
    *err = (qn_error){0};
    qn_status status = qn_view_assign(&dst, type, v, err);
    const char *tail = strstr(err->message, ": "), *asked_tail = strstr(asked.message, ": ");
    bool agrees = can == (status == QN_OK) && asked.status == err->status;
    if (agrees && !can)
        agrees = tail && asked_tail && strcmp(tail, asked_tail) == 0;
    if (agrees && can)
        agrees = dst.data == v->data &&
                 qn_view_use_count(v) == before + (v->owner != NULL && !type->unmanaged);
    qn_view_release(&dst);
    if (!agrees || qn_view_use_count(v) != before)
        tap_ok(false, "Q4: is_assignable and assign differ: %s | %s", asked.message, err->message);
    return status;
}

/* ---------------------------------------------------------------- types */

static void test_types(void)
{
    qn_view_type type;
    int64_t n = -5;
    qn_view v;
    type = type_of(QN_F64, 2, NULL, ANY);
    tap_ok(type.rank == 2 && qn_view_type_rank_dynamic(&type) == 2, "X0.1: double**");
    type = type_of(QN_I32, 5, INDEX(-1, -1, -1, 5, 3), ANY);
    type.read_only = 1;
    tap_ok(qn_view_type_rank_dynamic(&type) == 3, "X0.1: const int***[5][3]");
    tap_ok(qn_view_type_static_extent(&type, 4, &n, NULL) == QN_OK && n == 3, "RK4: fixed extent");
    tap_ok(qn_view_type_static_extent(&type, 0, &n, NULL) == QN_OK && n == 0,
           "RK4: 0 where it is not");
    REFUSED(QN_ERR_RANK, n, qn_view_type_static_extent, &type, 5, &n);
    REFUSED(QN_ERR_ARGUMENT, n, qn_view_type_static_extent, NULL, 0, &n);
    tap_is_int(qn_view_type_rank_dynamic(NULL), -1, "NULL has no dimensions");
    type = type_of(QN_F32, 2, INDEX(6, 2), ANY);
    tap_is_int(qn_view_type_rank_dynamic(&type), 0, "X0.1: Foo[6][2]");
    REFUSED(QN_ERR_DTYPE, type, qn_view_type_init, QN_VOID, 1, NULL, ANY, &type);
    REFUSED(QN_ERR_RANK, type, qn_view_type_init, QN_F32, 17, NULL, ANY, &type);
    REFUSED(QN_ERR_RANK, type, qn_view_type_init, QN_F32, -2, NULL, ANY, &type);
    REFUSED(QN_ERR_EXTENT, type, qn_view_type_init, QN_F32, 1, INDEX(-2), ANY, &type);
    REFUSED(QN_ERR_ARGUMENT, type, qn_view_type_init, QN_F32, 1, NULL, 4, &type);
    tap_ok(qn_view_type_init(QN_F32, 1, NULL, ANY, NULL, NULL) == QN_ERR_ARGUMENT, "out is NULL");
    type = type_of(QN_I32, 1, INDEX(10), ANY);
    tap_ok(qn_view_default(&type, &v, NULL) == QN_OK && !v.data && v.layout.dim[0].extent == 10 &&
               qn_view_size(&v) == 0 && qn_view_span(&v) == 0 && qn_view_use_count(&v) == 0,
           "VC1, X0.2: default int[10]: extent 10, size 0, span 0, no count");
    qn_view none = {0};
    tap_ok(!qn_view_is_allocated(&none) && qn_view_size(&none) == 0 &&
               qn_view_use_count(&none) == 0,
           "VC15: all-zero is the default view");
    qn_layout l;
    type = type_of(QN_I32, 3, INDEX(-1, 5, 6), LEFT);
    tap_ok(qn_view_type_layout(&type, 1, INDEX(4), &l, NULL) == QN_OK &&
               qn_layout_span(&l) == 120 && l.dim[1].stride == 4,
           "VC17: int*[5][6](4), Left");
    tap_ok(qn_view_type_layout(&type, 3, INDEX(4, 5, 6), &l, NULL) == QN_OK, "X0.22: all extents");
    REFUSED(QN_ERR_EXTENT, l, qn_view_type_layout, &type, 3, INDEX(4, 5, 7), &l);
    REFUSED(QN_ERR_RANK, l, qn_view_type_layout, &type, 2, INDEX(4, 5), &l);
    REFUSED(QN_ERR_ARGUMENT, l, qn_view_type_layout, &type, 1, NULL, &l);
    REFUSED(QN_ERR_OVERFLOW, l, qn_view_type_layout, &type, 1, INDEX(INT64_MAX), &l);
    type.family = STRIDED;
    REFUSED(QN_ERR_ARGUMENT, l, qn_view_type_layout, &type, 1, INDEX(4), &l);
}

/* ---------------------------------------------------------------- X0 and X4.30 */

static void test_examples(void)
{
    enum { N = 7, M = 10 };
    qn_error err;
    qn_view a1 = new_view("A1", QN_I32, 1, INDEX(N)), a2 = new_view("A2", QN_I32, 2, INDEX(N, M));
    qn_view a3 = new_view("A3", QN_I32, 2, INDEX(4, M)), a4 = {0};
    qn_view_type type = type_of(QN_I32, 1, NULL, ANY);
    tap_ok(assigns(&type, &a1, &err) == QN_OK, "X0.3: int* = int*");
    type = type_of(QN_I32, 2, NULL, ANY);
    tap_ok(assigns(&type, &a2, &err) == QN_OK && a2.layout.dim[0].stride == 10,
           "X0.4: int** = int*[10]");
    type = type_of(QN_I32, 2, INDEX(-1, 10), ANY);
    tap_ok(assigns(&type, &a3, &err) == QN_OK, "X0.5: int*[10] = int** of 10");
    type.extent[1] = 9;
    tap_ok(assigns(&type, &a3, &err) == QN_ERR_EXTENT, "X0.5: int*[9] = int** of 10");
    tap_is_str(err.message, "qn_view_assign: view \"A3\": dimension 1: expected extent 9, found 10",
               "X0.5: dimension and extents");
    type = type_of(QN_I32, 1, NULL, ANY);
    type.read_only = 1;
    tap_ok(qn_view_assign(&a4, &type, &a1, &err) == QN_OK && a4.traits == QN_READ_ONLY &&
               qn_view_use_count(&a1) == 2,
           "X0.6: const int* = int*");
    tap_ok(assigns(&type, &a4, &err) == QN_OK, "X4.30: const to const");
    type.read_only = 0;
    tap_ok(assigns(&type, &a4, &err) == QN_ERR_READ_ONLY, "X0.7: int* = const int*");
    tap_contains(err.message, "expected a writable view, found a read-only one", "X0.7: message");
    type = type_of(QN_I32, 2, NULL, ANY);
    tap_ok(assigns(&type, &a1, &err) == QN_ERR_RANK, "X0.8: int** = int*");
    tap_contains(err.message, "expected rank 2, found 1", "X0.8: message");
    type = type_of(QN_I32, 2, INDEX(-1, 8), ANY);
    tap_ok(assigns(&type, &a3, &err) == QN_ERR_EXTENT, "X0.9: int*[8] = int*[10]");
    type = type_of(QN_I32, 2, INDEX(4, 10), ANY);
    tap_ok(assigns(&type, &a3, &err) == QN_OK, "X0.10: int[4][10] = int** of 4");
    tap_ok(assigns(&type, &a2, &err) == QN_ERR_EXTENT, "X0.10: int[4][10] = int** of 7");
    type = type_of(QN_I32, 1, NULL, LEFT);
    tap_ok(assigns(&type, &a1, &err) == QN_OK, "X0.11: rank 1 is Left too");
    type = type_of(QN_I32, 2, NULL, STRIDED);
    tap_ok(assigns(&type, &a3, &err) == QN_OK, "X0.12: Stride = int[4][10]");
    type.family = RIGHT;
    tap_ok(assigns(&type, &a3, &err) == QN_OK, "X0.13: Right = Stride whose strides match");
    qn_layout l;
    qn_view left;
    qn_layout_left(2, INDEX(4, 10), &l, NULL);
    qn_view_alloc(NULL, "L", QN_I32, &l, 0, &left, NULL);
    tap_ok(assigns(&type, &left, &err) == QN_ERR_ARGUMENT, "X0.13, X3.8: Right = Stride of Left");
    tap_is_str(
        err.message,
        "qn_view_assign: view \"L\": layout is not right: dimension 1: expected stride 1, found 4",
        "dimension and strides");
    type.family = LEFT;
    tap_ok(assigns(&type, &left, &err) == QN_OK, "X4.13: callBlas takes Left");
    tap_ok(assigns(&type, &a3, &err) == QN_ERR_ARGUMENT, "X4.13: and refuses Right");
    type = type_of(QN_I64, 1, NULL, ANY);
    tap_ok(assigns(&type, &a1, &err) == QN_ERR_DTYPE, "AC2, X4.30: int to long");
    type = type_of(QN_I32, -1, NULL, ANY);
    tap_ok(assigns(&type, &a1, &err) == QN_OK && assigns(&type, &a3, &err) == QN_OK,
           "X3.2, Q17: a type of any rank");
    qn_view *all[] = {&a1, &a2, &a3, &a4, &left};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qn_view_release(all[i]);
}

static void test_spaces_of_views(void)
{
    qn_error err;
    int memory[4] = {0};
    qn_layout l;
    qn_layout_right(1, INDEX(4), &l, NULL);
    qn_view v = {.data = memory, .dtype = QN_I32, .space = QN_SPACE_CUDA, .layout = l};
    qn_view_type type = type_of(QN_I32, 1, NULL, ANY);
    tap_ok(assigns(&type, &v, &err) == QN_ERR_SPACE, "X0.14: Host = Cuda");
    tap_contains(err.message, "space host or one assignable to it, found cuda", "X0.14: message");
    v.space = QN_SPACE_CUDA_PINNED;
    tap_ok(assigns(&type, &v, &err) == QN_OK, "X0.15: Host = CudaHostPinned");
    v.space = 99;
    tap_ok(assigns(&type, &v, &err) == QN_ERR_SPACE, "no such space");
}

/* ---------------------------------------------------------------- the rule for strides */

/** Whether one pitch p >= e(fastest) satisfies the formula of Q3; searched, not derived. */
static bool fits_by_search(const qn_layout *l, bool is_left)
{
    int n = l->rank;
    if (qn_layout_size(l) == 0 || n == 0)
        return true;
    int first = is_left ? 0 : n - 1;
    if (l->dim[first].extent != 1 && l->dim[first].stride != 1)
        return false;
    for (int64_t p = l->dim[first].extent; p < 200; p++) {
        bool fits = true;
        for (int d = 0; d < n; d++) {
            if (d == first || l->dim[d].extent == 1)
                continue;
            int64_t expected = p;
            for (int k = 0; k < n; k++)
                if (is_left ? k > 0 && k < d : k > d && k < n - 1)
                    expected *= l->dim[k].extent;
            fits = fits && l->dim[d].stride == expected;
        }
        if (fits)
            return true;
    }
    return false;
}

static void test_family_search(void)
{
    int wrong = 0, n_right = 0, n_left = 0;
    double memory[1];
    for (int i = 0; i < 20000; i++) {
        int n = (int)random_in(0, 4);
        int64_t extent[4], stride[4];
        qn_layout l;
        qn_error err;
        bool is_left = random_in(0, 1) == 1;
        int64_t next = 1;
        for (int k = 0; k < n; k++) {
            int d = is_left ? k : n - 1 - k;
            extent[d] = random_in(0, 9) ? random_in(1, 3) : 0;
            stride[d] = random_in(0, 9) ? next : random_in(-3, 9);
            next *= extent[d] ? extent[d] : 1;
            next += k == 0 ? random_in(0, 2) : 0;
        }
        if (qn_layout_strided(n, extent, stride, &l, NULL))
            continue;
        qn_view v = {.data = memory, .dtype = QN_F64, .layout = l};
        qn_view_type right = type_of(QN_F64, n, NULL, RIGHT), left = type_of(QN_F64, n, NULL, LEFT);
        bool is_right_found = assigns(&right, &v, &err) == QN_OK;
        bool is_left_found = assigns(&left, &v, &err) == QN_OK;
        wrong += is_right_found != fits_by_search(&l, false) ||
                 is_left_found != fits_by_search(&l, true);
        n_right += is_right_found;
        n_left += is_left_found;
    }
    tap_is_int(wrong, 0, "Q3: Left and Right as the formula says, 20000 layouts");
    tap_ok(n_right > 2000 && n_right < 18000 && n_left > 2000 && n_left < 18000,
           "both answers occur");
}

static void test_families(void)
{
    qn_layout l;
    qn_error err;
    qn_view v, row;
    qn_view_type right = type_of(QN_F64, 2, NULL, RIGHT), left = type_of(QN_F64, 2, NULL, LEFT);
    qn_layout_left(2, INDEX(20, 36), &l, NULL);
    qn_view_alloc(NULL, "big", QN_F64, &l, 0, &v, NULL);
    qn_slice part[2] = {{.kind = QN_RANGE, .begin = 0, .end = 10}, {.kind = QN_ALL}};
    qn_subview(&v, 2, part, &row, NULL);
    tap_ok(assigns(&left, &row, &err) == QN_OK, "MD4: (10,36) out of Left (20,36): one free pitch");
    qn_view_release(&row);
    part[0].end = 1;
    qn_subview(&v, 2, part, &row, NULL);
    tap_ok(assigns(&right, &row, &err) == QN_ERR_ARGUMENT,
           "one row of Left: dimension 1 has stride 20");
    qn_view_release(&row);
    part[0] = (qn_slice){.kind = QN_ALL};
    part[1] = (qn_slice){.kind = QN_RANGE, .begin = 3, .end = 4};
    qn_subview(&v, 2, part, &row, NULL);
    tap_ok(assigns(&right, &row, &err) == QN_OK,
           "one column of Left: dimension 1 is skipped, pitch 1");
    qn_view_release(&row);
    part[1] = (qn_slice){.kind = QN_RANGE, .begin = 3, .end = 3};
    qn_subview(&v, 2, part, &row, NULL);
    tap_ok(assigns(&right, &row, &err) == QN_OK, "views of size 0 fit every family");
    qn_view_release(&row);
    qn_view_release(&v);
    qn_layout_tiled(2, INDEX(4, 4), INDEX(2, 2), NULL, NULL, &l, NULL);
    qn_view_alloc(NULL, "tiled", QN_F64, &l, 0, &v, NULL);
    qn_view_type strided = type_of(QN_F64, 2, NULL, STRIDED), any = type_of(QN_F64, 2, NULL, ANY);
    tap_ok(assigns(&strided, &v, &err) == QN_ERR_ARGUMENT && assigns(&any, &v, &err) == QN_OK,
           "tiled: not strided, but any");
    qn_layout_release(&l);
    qn_view_release(&v);
}

/* ---------------------------------------------------------------- references, traits, data */

static void test_references(void)
{
    qn_error err;
    qn_view a = new_view("a", QN_F64, 1, INDEX(10)), b = new_view("b", QN_F64, 1, INDEX(10));
    qn_view_type type = type_of(QN_F64, 1, NULL, ANY);
    qn_view keep = qn_view_copy(&a);
    tap_ok(qn_view_assign(&a, &type, &b, &err) == QN_OK && a.data == b.data, "X4.8: a = b");
    tap_ok(qn_view_use_count(&b) == 2 && qn_view_use_count(&keep) == 1,
           "X4.8, RC2: count of b is 2, a's old storage lost one");
    tap_ok(qn_view_assign(&a, &type, &a, &err) == QN_OK && qn_view_use_count(&b) == 2, "a = a");
    qn_view_type other = type_of(QN_F32, 1, NULL, ANY);
    void *before = keep.data;
    tap_ok(qn_view_assign(&keep, &other, &b, &err) == QN_ERR_DTYPE && keep.data == before &&
               qn_view_use_count(&keep) == 1 && qn_view_use_count(&b) == 2,
           "a failure changes nothing");
    tap_ok(qn_view_assign(NULL, &type, &b, &err) == QN_ERR_ARGUMENT &&
               qn_view_assign(&a, &type, NULL, &err) == QN_ERR_ARGUMENT &&
               !qn_is_assignable(NULL, &a, &err) && !qn_is_assignable(&type, NULL, &err),
           "NULL arguments");
    type.unmanaged = 1;
    tap_ok(assigns(&type, &b, &err) == QN_OK, "AS2: managed to unmanaged");
    qn_view free_view = {0};
    tap_ok(qn_view_assign(&free_view, &type, &b, &err) == QN_OK && !free_view.owner &&
               !free_view.label && qn_view_use_count(&b) == 2,
           "MT2: count 0, no label, parent's count unchanged");
    qn_view_type plain = type_of(QN_F64, 1, NULL, ANY);
    tap_ok(qn_view_assign(&keep, &plain, &free_view, &err) == QN_OK &&
               qn_view_use_count(&keep) == 0,
           "AS2: unmanaged to managed: still not counted");
    tap_ok(qn_view_assign(&keep, NULL, &b, &err) == QN_OK && qn_view_use_count(&b) == 3,
           "no type: a copy");
    qn_view un;
    tap_ok(qn_view_unmanaged(&b, &un, &err) == QN_OK && qn_view_use_count(&un) == 0 && !un.label &&
               qn_view_use_count(&b) == 3,
           "MT2: unmanaged copy");
    tap_ok(qn_view_unmanaged(&keep, &keep, &err) == QN_OK && qn_view_use_count(&b) == 2,
           "in place");
    tap_ok(qn_view_unmanaged(NULL, &un, &err) == QN_ERR_ARGUMENT, "NULL");
    qn_view_release(&a);
    qn_view_release(&b);
}

static void test_traits(void)
{
    qn_error err;
    qn_view a = new_view("a", QN_I32, 1, INDEX(40)), v = {0}, part;
    tap_ok(qn_view_with_traits(&a, QN_ALIGNED | QN_READ_ONLY | QN_RANDOM_ACCESS, &v, &err) ==
                   QN_OK &&
               v.traits == (QN_ALIGNED | QN_READ_ONLY | QN_RANDOM_ACCESS) &&
               qn_view_use_count(&a) == 2,
           "MT7: late traits");
    tap_ok(qn_view_with_traits(&v, QN_STREAMING, &v, &err) == QN_OK && v.traits & QN_READ_ONLY &&
               v.traits & QN_STREAMING && qn_view_use_count(&a) == 2,
           "in place; the old ones stay");
    qn_slice tail = {.kind = QN_RANGE, .begin = 1, .end = 40};
    qn_subview(&v, 1, &tail, &part, NULL);
    tap_ok((part.traits & QN_ALIGNED) == 0, "MT6: subviews drop the claim");
    tap_ok(qn_view_with_traits(&part, QN_ALIGNED, &v, &err) == QN_ERR_ALIGNMENT,
           "MT6: claim is checked");
    tap_ok(qn_view_with_traits(&part, 1u << 20, &v, &err) == QN_ERR_ARGUMENT, "unknown traits");
    tap_ok(qn_view_with_traits(NULL, 0, &v, &err) == QN_ERR_ARGUMENT, "NULL");
    qn_view_type type = type_of(QN_I32, 1, NULL, ANY);
    type.read_only = 1;
    type.traits = QN_ALIGNED;
    tap_ok(assigns(&type, &part, &err) == QN_ERR_ALIGNMENT, "a type may ask for alignment");
    qn_view_release(&part);
    qn_view_release(&v);
    tap_ok(qn_view_with_traits(&a, QN_ATOMIC, &v, &err) == QN_OK, "atomic view");
    type = type_of(QN_I32, 1, NULL, ANY);
    tap_ok(assigns(&type, &v, &err) == QN_OK, "AS2: atomic to plain");
    void *p = NULL;
    tap_ok(qn_view_at(&v, 1, INDEX(3), &p, &err) == QN_ERR_UNSUPPORTED && !p,
           "MT8, X4.24: no address of an element of an atomic view");
    tap_ok(qn_view_at(&a, 1, INDEX(3), &p, &err) == QN_OK && p == (int32_t *)a.data + 3,
           "X4.24: &x(3)");
    qn_view_release(&v);
    qn_view_release(&a);
}

static void test_assign_data(void)
{
    qn_error err;
    _Alignas(8) static int32_t memory[12] = {5, 6, 7, 8};
    qn_view a = new_view("a", QN_I32, 1, INDEX(4)), keep = qn_view_copy(&a);
    tap_ok(qn_view_assign_data(&a, memory, &err) == QN_OK && a.data == memory && !a.label &&
               qn_view_use_count(&a) == 0 && a.layout.dim[0].extent == 4 &&
               qn_view_use_count(&keep) == 1,
           "VC16: count 0, extents kept, the old reference dropped");
    void *p;
    tap_ok(qn_view_at(&a, 1, INDEX(2), &p, &err) == QN_OK && *(int32_t *)p == 7,
           "VC16: values of the pointer");
    tap_ok(qn_view_assign_data(&keep, NULL, &err) == QN_ERR_NULL_DATA &&
               qn_view_assign_data(&keep, (char *)memory + 1, &err) == QN_ERR_ALIGNMENT &&
               keep.owner,
           "refused: the view is as it was");
    tap_ok(qn_view_assign_data(NULL, memory, &err) == QN_ERR_ARGUMENT, "NULL");
    memory[0] = 77;
    tap_ok(((int32_t *)a.data)[0] == 77, "X4.29: visible both ways");
    qn_view_release(&a);
    qn_view_release(&keep);
}

/* ---------------------------------------------------------------- equality and queries */

static void test_equal(void)
{
    qn_layout l, r, off, t;
    static double memory[64];
    qn_view a, b, full;
    qn_layout_left(1, INDEX(8), &l, NULL);
    qn_layout_right(1, INDEX(8), &r, NULL);
    qn_view_wrap("x", memory, QN_F64, &l, 0, &a, NULL);
    qn_view_wrap("y", memory, QN_F64, &r, QN_READ_ONLY, &b, NULL);
    tap_ok(qn_view_equal(&a, &b), "EQ1, Q9: 1-D Left equals Right; label and read-only ignored");
    qn_subview(&a, 1, &(qn_slice){.kind = QN_RANGE, .begin = 0, .end = 8}, &full, NULL);
    tap_ok(qn_view_equal(&a, &full), "the full range equals its parent");
    qn_view_release(&full);
    qn_layout_offset(&r, INDEX(1), &off, NULL);
    qn_view_wrap("z", memory, QN_F64, &off, 0, &full, NULL);
    tap_ok(qn_view_equal(&a, &full), "lower bounds are not compared");
    b.data = memory + 8;
    tap_ok(!qn_view_equal(&a, &b), "other data");
    b = a;
    b.dtype = QN_I64;
    tap_ok(!qn_view_equal(&a, &b), "other dtype");
    b = a;
    b.space = QN_SPACE_CUDA_PINNED;
    tap_ok(!qn_view_equal(&a, &b), "other space");
    qn_layout_strided(2, INDEX(2, 3), INDEX(1, 2), &l, NULL);
    qn_layout_strided(2, INDEX(2, 3), INDEX(3, 1), &r, NULL);
    qn_view_wrap("x", memory, QN_F64, &l, 0, &a, NULL);
    qn_view_wrap("x", memory, QN_F64, &r, 0, &b, NULL);
    tap_ok(!qn_view_equal(&a, &b), "Q9: other strides");
    qn_layout_tiled(2, INDEX(4, 4), INDEX(2, 2), NULL, NULL, &t, NULL);
    qn_layout_tiled(2, INDEX(4, 4), INDEX(4, 2), NULL, NULL, &l, NULL);
    qn_view_wrap("x", memory, QN_F64, &t, 0, &a, NULL);
    qn_view_wrap("y", memory, QN_F64, &t, 0, &b, NULL);
    tap_ok(qn_view_equal(&a, &b), "same digits");
    qn_view_release(&b);
    qn_view_wrap("y", memory, QN_F64, &l, 0, &b, NULL);
    tap_ok(!qn_view_equal(&a, &b) && !qn_view_equal(NULL, &b) && !qn_view_equal(&a, NULL),
           "other digits; NULL");
    qn_view_release(&a);
    qn_view_release(&b);
    qn_layout_release(&t);
    qn_layout_release(&l);
}

static void test_queries(void)
{
    qn_error err;
    int64_t n = 0, s[5] = {0}, bytes;
    qn_view v = new_view("v", QN_F64, 5, INDEX(2, 3, 4, 5, 6)), w;
    void *p, *q;
    tap_ok(qn_view_stride(&v, 3, &n, &err) == QN_OK && n == 6, "X0.16: stride(3) of rank 5");
    qn_view_at(&v, 5, INDEX(1, 2, 3, 2, 4), &p, NULL);
    qn_view_at(&v, 5, INDEX(1, 2, 3, 3, 4), &q, NULL);
    tap_is_int((double *)q - (double *)p, n, "X0.16: is the distance of neighbours");
    tap_ok(qn_view_strides(&v, s, &err) == QN_OK && s[0] == 360 && s[4] == 1,
           "X0.17: rank entries");
    tap_is_int(qn_view_span(&v), 720, "X0.17, Q1: the span is its own function");
    tap_ok(qn_view_extents(&v, s, &err) == QN_OK && s[0] == 2 && s[4] == 6, "extents");
    tap_ok(qn_view_extent(&v, 1, &n, &err) == QN_OK && n == 3, "X4.11: extent(1)");
    REFUSED(QN_ERR_RANK, n, qn_view_extent, &v, 5, &n);
    REFUSED(QN_ERR_RANK, n, qn_view_extent, &v, -1, &n);
    REFUSED(QN_ERR_RANK, n, qn_view_stride, &v, 5, &n);
    REFUSED(QN_ERR_RANK, n, qn_view_lower, &v, 9, &n);
    REFUSED(QN_ERR_ARGUMENT, n, qn_view_extent, NULL, 0, &n);
    tap_ok(qn_view_required_bytes(&v, &bytes, &err) == QN_OK && bytes == 5760,
           "VC17: required bytes");
    tap_ok(qn_view_access(&v, 7, INDEX(1, 2, 3, 2, 4, 0, 0), &q, &err) == QN_OK && p == q,
           "X0.18: surplus zeros");
    REFUSED(QN_ERR_BOUNDS, q, qn_view_access, &v, 6, INDEX(1, 2, 3, 2, 4, 1), &q);
    REFUSED(QN_ERR_RANK, q, qn_view_access, &v, 4, INDEX(1, 2, 3, 2), &q);
    REFUSED(QN_ERR_BOUNDS, q, qn_view_access, &v, 5, INDEX(1, 2, 3, 2, 99), &q);
    qn_layout l;
    qn_view_extents(&v, s, NULL);
    int64_t strides[5];
    qn_view_strides(&v, strides, NULL);
    qn_layout_strided(5, s, strides, &l, NULL);
    tap_ok(qn_view_wrap("import", v.data, v.dtype, &l, 0, &w, &err) == QN_OK &&
               qn_view_equal(&v, &w) && qn_view_use_count(&w) == 0,
           "X0.19, X0.20: data, extents, strides out and in again");
    qn_view_release(&v);
    v = new_view("s", QN_F64, 0, NULL);
    tap_ok(qn_view_strides(&v, NULL, &err) == QN_OK && qn_view_span(&v) == 1 &&
               qn_view_size(&v) == 1,
           "RK8: rank 0");
    qn_view_release(&v);
    v = new_view("e", QN_F64, 2, INDEX(0, 5));
    tap_ok(qn_view_is_allocated(&v) && qn_view_span(&v) == 0 && qn_layout_is_contiguous(&v.layout),
           "RK7, RC6: (0,5)");
    qn_view_release(&v);
    qn_layout_tiled(2, INDEX(4, 4), INDEX(2, 2), NULL, NULL, &l, NULL);
    qn_view_alloc(NULL, "t", QN_F64, &l, 0, &v, NULL);
    REFUSED(QN_ERR_UNSUPPORTED, n, qn_view_stride, &v, 0, &n);
    qn_view_release(&v);
    qn_layout_release(&l);
    qn_layout_left(2, INDEX(5, 7), &l, NULL);
    qn_view_alloc(NULL, "lda", QN_F64, &l, 0, &v, NULL);
    tap_ok(qn_view_strides(&v, s, &err) == QN_OK && s[1] == 5, "X4.12, LY8: leading dimension");
    qn_view_release(&v);
}

/* ---------------------------------------------------------------- spaces */

static void test_spaces(void)
{
    static const int spaces[] = {QN_SPACE_HOST,         QN_SPACE_HBW,         QN_SPACE_CUDA,
                                 QN_SPACE_CUDA_MANAGED, QN_SPACE_CUDA_PINNED, QN_SPACE_ROCM,
                                 QN_SPACE_ROCM_PINNED};
    static const char *const access[] = {"yyy--", "yyy--", "---y-", "yyyy-",
                                         "yyyy-", "----y", "yyy-y"};
    int wrong = 0;
    for (int s = 0; s < QN_N_SPACES; s++)
        for (int e = 0; e < QN_N_EXECS; e++)
            wrong += qn_exec_can_access(e, spaces[s]) != (access[s][e] == 'y');
    tap_is_int(wrong, 0, "X4.16: all 35 cells");
    static const int four[] = {QN_SPACE_HOST, QN_SPACE_CUDA, QN_SPACE_CUDA_MANAGED,
                               QN_SPACE_CUDA_PINNED};
    static const char *const cell[4][4] = {{"TTT", "FFT", "FTT", "TTT"},
                                           {"FFT", "TTT", "TTT", "FTT"},
                                           {"FFT", "FTT", "TTT", "FTT"},
                                           {"FTT", "FFT", "FTT", "TTT"}};
    wrong = 0;
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < 4; s++) {
            wrong += qn_space_is_assignable(four[d], four[s]) != (cell[d][s][0] == 'T');
            wrong += qn_space_can_access(four[d], four[s]) != (cell[d][s][1] == 'T');
            wrong += qn_space_can_copy(four[d], four[s]) != (cell[d][s][2] == 'T');
        }
    tap_is_int(wrong, 0, "1.7: assignable, accessible, copy");
    qn_error err = {0};
    tap_ok(qn_space_check(QN_SPACE_HOST, &err) == QN_OK &&
               qn_exec_check(QN_EXEC_THREADS, &err) == QN_OK,
           "the host is available");
    tap_ok(qn_space_check(QN_SPACE_HBW, &err) == QN_ERR_NOT_AVAILABLE, "Q16: HBW");
    tap_is_str(err.message, "qn_space_check: space hbw is not available in this build",
               "Q16: message");
    tap_ok(qn_space_check(QN_SPACE_ROCM_PINNED, &err) == QN_ERR_NOT_AVAILABLE &&
               qn_exec_check(QN_EXEC_ROCM, &err) == QN_ERR_NOT_AVAILABLE,
           "Q16: ROCm");
    tap_ok(qn_space_check(7, &err) == QN_ERR_ARGUMENT &&
               qn_exec_check(-1, &err) == QN_ERR_ARGUMENT && !qn_exec_can_access(5, 0) &&
               !qn_exec_can_access(0, 7) && !qn_space_can_copy(0, -1) &&
               !qn_space_is_assignable(9, 0) && !qn_space_can_access(-1, 0),
           "unknown numbers");
    tap_is_str(qn_exec_name(QN_EXEC_OPENMP), "openmp", "names");
    tap_is_str(qn_exec_name(77), "?", "no name");
}

int main(void)
{
    test_types();
    test_examples();
    test_spaces_of_views();
    test_families();
    test_family_search();
    test_references();
    test_traits();
    test_assign_data();
    test_equal();
    test_queries();
    test_spaces();
    return tap_done();
}
