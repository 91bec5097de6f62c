/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_view.c: views and their storage: allocation, wrapping, subviews, references, the check of
 * the struct, addresses, refused arguments and failing memory. Rows of the specification are named
 * (RC1, SV2, ...).
 */
#include "tests/unit/layout.h"

#include <stdlib.h>

static bool is_aligned(const void *p, uintptr_t n)
{
    return (uintptr_t)p % n == 0;
}

static bool all_zero(const void *p, size_t bytes)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < bytes; i++)
        if (c[i])
            return false;
    return true;
}

static void test_alloc(void)
{
    qn_view v, big;
    qn_error err = {0};
    qn_layout l;
    tap_ok(qn_view_new(NULL, "a", QN_F64, 2, INDEX(3, 5), &v, &err) == QN_OK,
           "new without a context");
    tap_ok(is_aligned(v.data, 64) && all_zero(v.data, 120),
           "ET4, VC8: aligned to 64 bytes, all zero");
    tap_ok(v.dtype == QN_F64 && v.space == QN_SPACE_HOST && v.traits == 0 && v.layout.rank == 2,
           "fields");
    tap_is_str(v.label, "a", "label");
    tap_is_int(qn_view_use_count(&v), 1, "one reference");
    qn_view_release(&v);
    tap_ok(!v.data && !v.owner && v.layout.rank == 0 && v.dtype == QN_VOID,
           "released: the default view");
    char label[] = "short lived";
    tap_ok(qn_view_new(NULL, label, QN_U8, 1, INDEX(10), &v, &err) == QN_OK, "another");
    label[0] = 'S';
    tap_is_str(v.label, "short lived", "the label is copied");
    qn_view_release(&v);
    tap_ok(qn_view_new(NULL, NULL, QN_I16, 0, NULL, &v, &err) == QN_OK && v.data && !v.label,
           "rank 0, no label");
    qn_view_release(&v);
    tap_ok(qn_view_new(NULL, "empty", QN_F32, 2, INDEX(0, 5), &v, &err) == QN_OK && v.data,
           "RC6: empty, not NULL");
    tap_is_int(qn_view_use_count(&v), 1, "empty views are counted");
    qn_view_release(&v);
    tap_ok(qn_view_new(NULL, "big", QN_F32, 1, INDEX(1 << 20), &big, &err) == QN_OK, "4 MiB");
    tap_ok(is_aligned(big.data, 2 << 20) && all_zero(big.data, 4 << 20),
           "aligned to 2 MiB, all zero");
    memset(big.data, 0xff, 4 << 20);
    qn_view_release(&big);
    qn_layout_strided(2, INDEX(3, 4), INDEX(-4, 1), &l, &err);
    tap_ok(qn_view_alloc(NULL, "down", QN_I32, &l, 0, &v, &err) == QN_OK, "negative stride");
    void *p, *q;
    tap_ok(qn_view_at(&v, 2, INDEX(0, 0), &p, &err) == QN_OK && p == v.data,
           "first element is at data");
    tap_ok(qn_view_at(&v, 2, INDEX(2, 0), &q, &err) == QN_OK && is_aligned(q, 64),
           "lowest element starts the storage");
    qn_view_release(&v);
    qn_layout_tiled(2, INDEX(5, 6), INDEX(2, 4), NULL, NULL, &l, &err);
    tap_ok(qn_view_alloc(NULL, "tiled", QN_F64, &l, QN_UNINITIALISED, &v, &err) == QN_OK, "tiled");
    memset(v.data, 1, 48 * 8); /* LY19: whole tiles; the sanitizer watches */
    tap_ok(v.layout.digits == l.digits && l.digits->references == 2, "shares the digit table");
    qn_layout_release(&l);
    tap_ok(qn_view_at(&v, 2, INDEX(4, 5), &p, &err) == QN_OK && p == (char *)v.data + 41 * 8,
           "and outlives the layout");
    qn_view_release(&v);
}

static void test_references(void)
{
    qn_view a, b, c;
    qn_error err = {0};
    qn_view_new(NULL, "a", QN_I32, 3, INDEX(5, 6, 7), &a, &err);
    b = qn_view_copy(&a);
    tap_is_int(qn_view_use_count(&a), 2, "RC2: copy adds one");
    qn_slice slices[3] = {
        {.kind = QN_AT, .begin = 1}, {.kind = QN_ALL}, {.kind = QN_RANGE, .begin = 2, .end = 5}};
    tap_ok(qn_subview(&a, 3, slices, &c, &err) == QN_OK, "subview");
    tap_is_int(qn_view_use_count(&a), 3, "RC2: subview adds one");
    tap_ok(c.label == a.label && c.data == (int32_t *)a.data + 44,
           "RC3, SV2: the parent's label; data moves");
    tap_ok(c.layout.rank == 2 && c.layout.origin == 0 && c.layout.dim[0].stride == 7,
           "origin is folded into data");
    qn_view_release(&a);
    qn_view_release(&b);
    tap_is_int(qn_view_use_count(&c), 1, "RC3: the subview keeps the storage");
    ((int32_t *)c.data)[0] = 42;
    tap_is_str(c.label, "a", "and the label");
    qn_slice row[2] = {{.kind = QN_AT, .begin = 2}, {.kind = QN_ALL}};
    tap_ok(qn_subview(&c, 2, row, &c, &err) == QN_OK && c.layout.rank == 1, "subview in place");
    tap_is_int(qn_view_use_count(&c), 1, "keeps one reference");
    qn_slice nothing = {.kind = QN_RANGE, .begin = 3, .end = 3};
    tap_ok(qn_subview(&c, 1, &nothing, &b, &err) == QN_OK && b.data == c.data &&
               qn_layout_size(&b.layout) == 0,
           "SV6: an empty subview stays at the parent's data");
    qn_view_release(&b);
    tap_ok(qn_subview(&c, 1, &(qn_slice){.kind = QN_AT, .begin = 3}, &b, &err) == QN_ERR_BOUNDS,
           "index out of bounds");
    tap_is_str(err.message, "qn_subview: view \"a\": dimension 0: index 3 not in [0,3)", "message");
    tap_ok(qn_subview(&c, 1, &(qn_slice){.kind = QN_RANGE, .begin = 2, .end = 1}, &b, NULL) ==
               QN_ERR_RANGE,
           "Q13");
    c.traits = QN_ALIGNED | QN_READ_ONLY;
    tap_ok(qn_subview(&c, 1, &(qn_slice){.kind = QN_ALL}, &b, &err) == QN_OK &&
               b.traits == QN_READ_ONLY,
           "MT6: subviews drop the alignment, keep the rest");
    qn_view_release(&b);
    qn_view_release(&c);
    qn_view_release(&c);
    qn_view_release(NULL);
    b = qn_view_copy(NULL);
    tap_ok(!b.data && qn_view_use_count(NULL) == 0 && qn_view_use_count(&b) == 0,
           "NULL and default views");
}

static void test_wrap(void)
{
    _Alignas(64) static double memory[64];
    qn_view v, s;
    qn_layout l, m;
    qn_error err = {0};
    qn_layout_right(2, INDEX(4, 5), &l, &err);
    tap_ok(qn_view_wrap("w", memory, QN_F64, &l, QN_READ_ONLY, &v, &err) == QN_OK, "wrap");
    tap_ok(v.data == memory && !v.owner && v.traits == QN_READ_ONLY && qn_view_use_count(&v) == 0,
           "MT2: not counted");
    qn_view_release(&v);
    qn_layout_reverse(&l, 0, &m, &err);
    tap_ok(qn_view_wrap(NULL, memory, QN_F64, &m, 0, &v, &err) == QN_OK && v.data == memory + 15 &&
               v.layout.origin == 0,
           "data is the element at the lower bounds: the origin moves it");
    void *p;
    tap_ok(qn_view_at(&v, 2, INDEX(3, 4), &p, &err) == QN_OK && p == memory + 4, "address");
    qn_layout_offset(&l, INDEX(1, 1), &l, &err);
    qn_view_wrap("x", memory, QN_F64, &l, 0, &v, &err);
    tap_ok(qn_view_at(&v, 2, INDEX(4, 5), &p, &err) == QN_OK && p == memory + 19,
           "address with lower bounds");
    p = NULL;
    tap_ok(qn_view_at(&v, 2, INDEX(2, 6), &p, &err) == QN_ERR_BOUNDS && !p, "out of bounds");
    tap_is_str(
        err.message,
        "qn_view_at: view \"x\": dimension 1: index 6 not in [1,6); indices [2,6], extents [4,5]",
        "Q14 message");
    tap_ok(qn_view_at(&v, 1, INDEX(2), &p, &err) == QN_ERR_RANK, "too few indices");
    tap_ok(qn_subview(&v, 2, (qn_slice[2]){{.kind = QN_AT, .begin = 2}, {.kind = QN_ALL}}, &s,
                      &err) == QN_OK &&
               s.data == memory + 5 && s.layout.dim[0].lower == 1,
           "subview of unmanaged memory, in its own index space");
    qn_layout none;
    qn_layout_right(2, INDEX(0, 5), &none, &err);
    tap_ok(qn_view_wrap("none", NULL, QN_F64, &none, 0, &v, &err) == QN_OK && !v.data,
           "NULL data of an empty view");
}

static void test_with_layout(void)
{
    qn_view v, w;
    qn_layout l, t;
    qn_error err = {0};
    qn_view_new(NULL, "v", QN_F32, 2, INDEX(4, 6), &v, &err);
    for (int i = 0; i < 24; i++)
        ((float *)v.data)[i] = (float)i;
    qn_layout_permute(&v.layout, (int[]){1, 0}, &l, &err);
    tap_ok(qn_view_with_layout(&v, &l, &w, &err) == QN_OK && qn_view_use_count(&v) == 2,
           "transposed");
    void *p;
    tap_ok(qn_view_at(&w, 2, INDEX(5, 3), &p, &err) == QN_OK && *(float *)p == 23,
           "the same elements");
    qn_view_release(&w);
    qn_layout_reverse(&v.layout, 1, &l, &err);
    tap_ok(qn_view_with_layout(&v, &l, &w, &err) == QN_OK && w.data == (float *)v.data + 5,
           "reversed");
    qn_layout_reverse(&w.layout, 1, &l, &err);
    tap_ok(qn_view_with_layout(&w, &l, &w, &err) == QN_OK && w.data == v.data &&
               qn_view_use_count(&v) == 2,
           "and back, in place");
    qn_view_release(&w);
    qn_layout_tiled(1, INDEX(23), INDEX(4), NULL, NULL, &t, &err);
    tap_ok(!t.digits, "a tiled line is a line");
    qn_layout_tiled(2, INDEX(3, 5), INDEX(2, 3), NULL, NULL, &t, &err);
    tap_ok(qn_view_with_layout(&v, &t, &w, &err) == QN_OK && t.digits->references == 2,
           "tiled, with its table");
    qn_layout_release(&t);
    qn_view_release(&w);
    const int64_t bad[][2] = {{25, 1}, {24, -1}, {2, 24}, {2, -1}};
    for (int i = 0; i < 4; i++) {
        qn_layout_strided(1, &bad[i][0], &bad[i][1], &l, &err);
        tap_ok(qn_view_with_layout(&v, &l, &w, &err) == QN_ERR_BOUNDS,
               "extent %d, stride %d leave the storage", (int)bad[i][0], (int)bad[i][1]);
    }
    tap_contains(err.message,
                 "qn_view_with_layout: view \"v\": offsets [-1,0] leave its storage of 96 bytes",
                 "message");
    qn_layout_right(0, NULL, &l, &err);
    for (int64_t origin = -3; origin < 28; origin++) {
        l.origin = origin;
        qn_status status = qn_view_with_layout(&v, &l, &w, &err);
        bool inside = origin >= 0 && origin < 24;
        if (status != (inside ? QN_OK : QN_ERR_BOUNDS))
            tap_ok(false, "origin %d", (int)origin);
        if (!status)
            qn_view_release(&w);
    }
    qn_layout huge = {.rank = 1, .origin = INT64_MAX / 4, .dim = {{0, 1, 1}}};
    tap_ok(qn_view_with_layout(&v, &huge, &w, &err) != QN_OK, "an origin that wraps the address");
    tap_is_int(qn_view_use_count(&v), 1, "failures count nothing");
    qn_view_release(&v);
}

/** Offsets 0..63 of data for each dtype: accepted iff aligned to the element. */
static void test_alignment(void)
{
    _Alignas(64) static char memory[256];
    qn_layout l;
    qn_layout_right(1, INDEX(3), &l, NULL);
    int n_wrong = 0;
    for (int dtype = 1; dtype < QN_RECORD; dtype++) {
        for (int64_t k = 0; k < 64; k++) {
            qn_view v;
            qn_status status = qn_view_wrap("m", memory + k, dtype, &l, 0, &v, NULL);
            bool is_complex = dtype == QN_C64 || dtype == QN_C128;
            int64_t align = qn_dtype_bytes(dtype) / (is_complex ? 2 : 1);
            n_wrong += status != (k % align ? QN_ERR_ALIGNMENT : QN_OK);
        }
    }
    tap_is_int(n_wrong, 0, "H6: alignment for every dtype and offset");
}

static void is_refused(qn_view v, qn_status expected, const char *part)
{
    qn_error err = {0};
    qn_status status = qn__view_check(&v, "qn_launch", &err);
    if (!tap_ok(status == expected && strstr(err.message, part) &&
                    strncmp(err.message, "qn_launch: ", 11) == 0,
                "check: %s", part))
        tap_note("%s: %s", qn_status_name((int)status), err.message);
}

static void test_check(void)
{
    static double memory[32];
    qn_layout l;
    qn_layout_right(2, INDEX(4, 8), &l, NULL);
    qn_view good, v;
    qn_view_wrap("g", memory, QN_F64, &l, 0, &good, NULL);
    tap_ok(qn__view_check(&good, "x", NULL) == QN_OK, "a good view");
    tap_ok(qn__view_check(NULL, "x", NULL) == QN_ERR_ARGUMENT, "NULL");
    is_refused((qn_view){0}, QN_ERR_DTYPE, "view \"(no label)\": no dtype is set (0, QN_VOID)");
    v = good, v.dtype = 99, is_refused(v, QN_ERR_DTYPE, "view \"g\": no dtype has number 99");
    v = good, v.space = QN_SPACE_HBW,
    is_refused(v, QN_ERR_SPACE, "space 4 (hbw) is not available");
    v = good, v.space = -1, is_refused(v, QN_ERR_SPACE, "space -1 (?)");
    v = good, v.data = NULL, is_refused(v, QN_ERR_NULL_DATA, "data is NULL for 32 elements");
    v = good, v.traits = 1u << 9, is_refused(v, QN_ERR_ARGUMENT, "unknown traits 0x200");
    v = good, v.layout.origin = 3, is_refused(v, QN_ERR_ARGUMENT, "origin 3");
    v = good, v.layout.rank = 17, is_refused(v, QN_ERR_RANK, "rank 17");
    v = good, v.layout.dim[1].extent = -2, is_refused(v, QN_ERR_EXTENT, "dimension 1: extent -2");
    v = good, v.layout.dim[0].stride = INT64_MAX,
    is_refused(v, QN_ERR_OVERFLOW, "dimension 0: extent 4");
    v = good, v.layout.dim[0].stride = INT64_MAX / 4,
    is_refused(v, QN_ERR_OVERFLOW, "leave the address space");
    v = good, v.layout.dim[0].stride = -INT64_MAX / 64,
    is_refused(v, QN_ERR_OVERFLOW, "leave the address space");
}

static void test_bad_arguments(void)
{
    static double memory[8];
    qn_layout l, huge = {.rank = 2, .dim = {{0, (int64_t)1 << 40, (int64_t)1 << 40}, {0, 4, 1}}};
    qn_layout broken = {.rank = -3};
    qn_layout_right(1, INDEX(8), &l, NULL);
    qn_view v, out;
    qn_view_wrap("v", memory, QN_F64, &l, 0, &v, NULL);
    qn_view bad = {0};
    qn_slice all = {0};
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_alloc, NULL, "a", QN_F64, NULL, 0, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_alloc, NULL, "a", QN_F64, &l, 0, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_alloc, NULL, "a", QN_F64, &l, 2, &out);
    REFUSED(QN_ERR_DTYPE, out, qn_view_alloc, NULL, "a", 0, &l, 0, &out);
    REFUSED(QN_ERR_DTYPE, out, qn_view_alloc, NULL, "a", 99, &l, 0, &out);
    REFUSED(QN_ERR_RANK, out, qn_view_alloc, NULL, "a", QN_F64, &broken, 0, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_view_alloc, NULL, "a", QN_F64, &huge, 0, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_new, NULL, "a", QN_F64, 2, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_new, NULL, "a", QN_F64, 1, INDEX(3), NULL);
    REFUSED(QN_ERR_DTYPE, out, qn_view_new, NULL, "a", -1, 1, INDEX(3), &out);
    REFUSED(QN_ERR_RANK, out, qn_view_new, NULL, "a", QN_F64, 17, INDEX(3), &out);
    REFUSED(QN_ERR_EXTENT, out, qn_view_new, NULL, "a", QN_F64, 2, INDEX(3, -1), &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_view_new, NULL, "a", QN_F64, 2,
            INDEX((int64_t)1 << 33, (int64_t)1 << 33), &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_view_new, NULL, "a", QN_F64, 1, INDEX((int64_t)1 << 60), &out);
    REFUSED(QN_ERR_MEMORY, out, qn_view_new, NULL, "a", QN_U8, 1, INDEX((int64_t)1 << 60), &out);
    REFUSED(QN_ERR_MEMORY, out, qn_view_new, NULL, "a", QN_U8, 1, INDEX(INT64_MAX), &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_wrap, "a", memory, QN_F64, NULL, 0, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_wrap, "a", memory, QN_F64, &l, 0, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_wrap, "a", memory, QN_F64, &l, 1u << 31, &out);
    REFUSED(QN_ERR_DTYPE, out, qn_view_wrap, "a", memory, QN_VOID, &l, 0, &out);
    REFUSED(QN_ERR_NULL_DATA, out, qn_view_wrap, "a", NULL, QN_F64, &l, 0, &out);
    REFUSED(QN_ERR_ALIGNMENT, out, qn_view_wrap, "a", (char *)memory + 4, QN_F64, &l, 0, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_view_wrap, "a", memory, QN_F64, &huge, 0, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_subview, NULL, 1, &all, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_subview, &v, 1, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_subview, &v, 1, &all, NULL);
    REFUSED(QN_ERR_RANK, out, qn_subview, &v, 0, &all, &out);
    REFUSED(QN_ERR_RANK, out, qn_subview, &v, INT32_MAX, &all, &out);
    REFUSED(QN_ERR_DTYPE, out, qn_subview, &bad, 0, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_with_layout, NULL, &l, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_with_layout, &v, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_view_with_layout, &v, &l, NULL);
    REFUSED(QN_ERR_RANK, out, qn_view_with_layout, &v, &broken, &out);
    void *p;
    REFUSED(QN_ERR_ARGUMENT, p, qn_view_at, NULL, 1, INDEX(0), &p);
    REFUSED(QN_ERR_ARGUMENT, p, qn_view_at, &v, 1, NULL, &p);
    REFUSED(QN_ERR_ARGUMENT, p, qn_view_at, &v, 1, INDEX(0), NULL);
    REFUSED(QN_ERR_BOUNDS, p, qn_view_at, &v, 1, INDEX(8), &p);
    REFUSED(QN_ERR_BOUNDS, p, qn_view_at, &v, 1, INDEX(INT64_MIN), &p);
    REFUSED(QN_ERR_DTYPE, p, qn_view_at, &bad, 0, NULL, &p);
}

/** Every allocation in turn fails: QN_ERR_MEMORY, nothing lost. */
static void test_failing_memory(void)
{
    qn__fail_allocation(1, false);
    void *probe = qn__alloc(1);
    qn__fail_allocation(0, false);
    if (probe) {
        qn__free(probe);
        tap_skip("allocations cannot be made to fail in this build");
        return;
    }
    qn_layout l, out;
    qn_view v, w;
    qn__fail_allocation(1, false);
    REFUSED(QN_ERR_MEMORY, l, qn_layout_tiled, 2, INDEX(4, 4), INDEX(2, 2), NULL, NULL, &l);
    tap_ok(qn_layout_tiled(2, INDEX(4, 4), INDEX(2, 2), NULL, NULL, &l, NULL) == QN_OK,
           "the next one succeeds");
    qn__fail_allocation(1, true);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_permute, &l, (const int[]){1, 0}, &out);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_broadcast, &l, 0, 2, &out);
    REFUSED(QN_ERR_MEMORY, w, qn_view_alloc, NULL, "v", QN_F32, &l, 0, &w);
    REFUSED(QN_ERR_MEMORY, w, qn_view_new, NULL, "v", QN_F32, 1, INDEX(1 << 22), &w);
    qn__fail_allocation(0, false);
    tap_ok(qn_view_alloc(NULL, "v", QN_F32, &l, 0, &v, NULL) == QN_OK, "memory is back");
    qn__fail_allocation(1, true);
    qn_slice slices[2] = {{.kind = QN_AT, .begin = 1}, {.kind = QN_ALL}};
    REFUSED(QN_ERR_MEMORY, w, qn_subview, &v, 2, slices, &w);
    qn__fail_allocation(0, false);
    tap_is_int(qn_view_use_count(&v), 1, "a failed subview counts nothing");
    qn_view_release(&v);
    tap_is_int(l.digits->references, 1, "nor do failed transforms");
    qn_layout_release(&l);
}

int main(void)
{
    test_alloc();
    test_references();
    test_wrap();
    test_with_layout();
    test_alignment();
    test_check();
    test_bad_arguments();
    test_failing_memory();
    return tap_done();
}
