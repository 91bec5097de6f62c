/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_copy.c: deep copies, conversions and fills. Random pairs of layouts (any strides, negative
 * ones, broadcast sources, tiles, lower bounds) are compared with a plain loop over indices; every
 * byte that is no element must stay as it was. Rows of the specification are named (DC1, X4.20,
 * ...).
 */
#include "tests/fill.h"
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"
#include "tests/dtypes.h"

static qn_context *context;

static qn_view new_view(const char *label, int dtype, int rank, const int64_t *extents)
{
    qn_view v = {0};
    qn_error err = {0};
    if (qn_view_new(NULL, label, dtype, rank, extents, &v, &err))
        tap_ok(false, "view: %s", err.message);
    return v;
}

static qn_view view_of(const char *label, int dtype, const qn_layout *l)
{
    qn_view v = {0};
    qn_error err = {0};
    if (qn_view_alloc(NULL, label, dtype, l, 0, &v, &err))
        tap_ok(false, "view: %s", err.message);
    return v;
}

/* ---------------------------------------------------------------- random pairs */

enum { MAX_ELEMENTS = 1 << 14, PLAIN, BROADCAST, TILED };

/** A random layout of these extents. `kind`: only PLAIN and TILED are written to. */
static void random_layout(int rank, const int64_t *extents, int kind, qn_layout *out)
{
    int64_t strides[4], tile[4], lower[4], next = 1;
    int order[4];
    random_order(rank, order);
    for (int k = 0; k < rank; k++) {
        int d = order[k];
        strides[d] = random_in(0, 1) ? next : -next;
        next = next * extents[d] + (random_in(0, 2) ? 0 : random_in(0, 3));
        tile[d] = random_in(1, 4);
        lower[d] = random_in(-3, 3);
    }
    if (kind == BROADCAST && rank > 0)
        strides[random_in(0, rank - 1)] = 0;
    int inner[4], outer[4];
    random_order(rank, inner);
    random_order(rank, outer);
    qn_error err = {0};
    qn_status status = kind == TILED ? qn_layout_tiled(rank, extents, tile, inner, outer, out, &err)
                                     : qn_layout_strided(rank, extents, strides, out, &err);
    if (status == QN_OK && random_in(0, 1))
        status = qn_layout_offset(out, lower, out, &err);
    if (status)
        tap_ok(false, "random layout: %s", err.message);
}

/** A view on `memory` whose elements all fit into it. */
static bool wrap(const char *label, char *memory, int dtype, const qn_layout *l, qn_view *out)
{
    int64_t low, high;
    if (qn_layout_range(l, &low, &high, NULL) || high - low >= MAX_ELEMENTS)
        return false;
    char *data = memory + (high < low ? 0 : -low) * qn_dtype_bytes(dtype);
    return qn_view_wrap(label, data, dtype, l, 0, out, NULL) == QN_OK;
}

static bool step(int rank, const int64_t *extents, int64_t *at)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++at[d] < extents[d])
            return true;
        at[d] = 0;
    }
    return false;
}

/** Address of the element at an index counted from the lower bounds. */
static char *element(const qn_view *v, const int64_t *at)
{
    int64_t index[4];
    void *p = NULL;
    for (int d = 0; d < v->layout.rank; d++)
        index[d] = at[d] + v->layout.dim[d].lower;
    qn_error err = {0};
    if (qn_view_at(v, v->layout.rank, index, &p, &err))
        tap_note("%s", err.message);
    return p;
}

static char dst_memory[MAX_ELEMENTS * 8], src_memory[MAX_ELEMENTS * 8], expected[MAX_ELEMENTS * 8];

static bool copies_right(qn_context *c, int dtype, int rank, const int64_t *extents, int dst_kind,
                         int src_kind)
{
    qn_layout to, from;
    qn_view dst = {0}, src = {0};
    qn_error err = {0};
    random_layout(rank, extents, dst_kind, &to);
    random_layout(rank, extents, src_kind, &from);
    for (size_t i = 0; i < sizeof src_memory; i++) {
        src_memory[i] = (char)random_bits();
        dst_memory[i] = expected[i] = (char)i;
    }
    bool is_right = true;
    if (wrap("dst", dst_memory, dtype, &to, &dst) && wrap("src", src_memory, dtype, &from, &src)) {
        int64_t at[4] = {0}, bytes = qn_dtype_bytes(dtype);
        if (qn_layout_size(&to) > 0)
            do
                memcpy(expected + (element(&dst, at) - dst_memory), element(&src, at),
                       (size_t)bytes);
            while (step(rank, extents, at));
        is_right = qn_deep_copy(c, &dst, &src, &err) == QN_OK;
        is_right = is_right && memcmp(expected, dst_memory, sizeof expected) == 0;
        if (!is_right) {
            char a[200], b[200];
            qn_layout_print(&to, a, sizeof a);
            qn_layout_print(&from, b, sizeof b);
            tap_note("%s -> %s (%s): %s", b, a, qn_dtype_name(dtype), err.message);
        }
    }
    qn_view_release(&dst);
    qn_view_release(&src);
    qn_layout_release(&to);
    qn_layout_release(&from);
    return is_right;
}

static void test_random(int n, const char *what)
{
    static const int dtypes[] = {QN_U8, QN_BOOL, QN_I16, QN_F32, QN_F64, QN_I64};
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int rank = (int)random_in(0, 4);
        int64_t extents[4];
        for (int d = 0; d < rank; d++)
            extents[d] = random_in(0, 30) ? random_in(1, 9) : 0;
        int dst_kind = random_in(0, 3) ? PLAIN : TILED;
        int src_kind = (int)random_in(PLAIN, TILED);
        wrong += !copies_right(context, dtypes[random_in(0, 5)], rank, extents, dst_kind, src_kind);
    }
    tap_is_int(wrong, 0, what);
}

/* ---------------------------------------------------------------- by the row */

static void fill_i32(const qn_view *v)
{
    for (int64_t i = 0; i < qn_view_size(v); i++)
        ((int32_t *)v->data)[i] = (int32_t)i;
}

static void test_rows(void)
{
    qn_error err = {0};
    qn_view a = new_view("a", QN_I32, 1, INDEX(10)), b = new_view("b", QN_I32, 1, INDEX(10));
    fill_i32(&b);
    tap_ok(qn_deep_copy(context, &a, &b, &err) == QN_OK && memcmp(a.data, b.data, 40) == 0,
           "X4.20");
    tap_ok(qn_deep_copy(NULL, &a, &b, &err) == QN_OK, "X4.20 without context");
    tap_is_int(qn_view_use_count(&a), 1, "no references are left");
    tap_ok(qn_deep_copy(context, &a, &a, &err) == QN_OK, "DC3, Q15: a view onto itself");
    qn_view q = new_view("q", QN_I32, 1, INDEX(5)), y = new_view("y", QN_I32, 1, INDEX(4)),
            none = {0};
    tap_ok(qn_deep_copy(context, &q, &y, &err) == QN_ERR_EXTENT, "DC2: extents");
    tap_is_str(err.message, "qn_deep_copy: extents differ: dst \"q\" [5], src \"y\" [4]",
               "DC2: labels, extents");
    qn_view two = new_view("two", QN_I32, 2, INDEX(5, 1));
    tap_ok(qn_deep_copy(context, &q, &two, &err) == QN_ERR_EXTENT, "DC7: rank");
    tap_contains(err.message, "dst \"q\" [5], src \"two\" [5,1]", "DC7: message");
    none.dtype = QN_I32;
    none.layout.rank = 1;
    none.layout.dim[0] = (qn_dim){0, 0, 1};
    tap_ok(qn_deep_copy(context, &q, &none, &err) == QN_ERR_EXTENT, "DC2: nothing to something");
    none.layout.dim[0].extent = 5;
    tap_ok(qn_deep_copy(context, &q, &none, &err) == QN_ERR_NULL_DATA, "extents without data");
    qn_view void_a = {0}, void_b = {0};
    tap_ok(qn_deep_copy(context, &void_a, &void_b, &err) == QN_OK, "DC2: both empty");
    qn_view f = new_view("f", QN_F64, 1, INDEX(10));
    tap_ok(qn_deep_copy(context, &f, &a, &err) == QN_ERR_DTYPE, "DC1: double <- int");
    tap_is_str(err.message, "qn_deep_copy: dst \"f\" is of f64, src \"a\" is of i32",
               "DC1: message");
    qn_view ro = qn_view_copy(&a);
    ro.traits = QN_READ_ONLY;
    tap_ok(qn_deep_copy(context, &ro, &b, &err) == QN_ERR_READ_ONLY, "DC7: read-only dst");
    tap_ok(qn_deep_copy(context, &b, &ro, &err) == QN_OK, "read-only src");
    tap_ok(qn_deep_copy(context, NULL, &b, &err) == QN_ERR_ARGUMENT &&
               qn_deep_copy(context, &b, NULL, &err) == QN_ERR_ARGUMENT &&
               qn_deep_copy_on(context, 9, &b, &a, &err) == QN_ERR_ARGUMENT &&
               qn_deep_copy_on(NULL, QN_THREADS, &b, &a, &err) == QN_ERR_ARGUMENT,
           "bad arguments");
    tap_ok(qn_deep_copy_on(context, QN_THREADS, &b, &a, &err) == QN_OK &&
               qn_deep_copy_on(context, QN_SERIAL, &b, &a, &err) == QN_OK,
           "DC5: on an executor; done on return");
    qn_layout l;
    qn_layout_strided(1, INDEX(10), INDEX(0), &l, NULL);
    qn_view same = view_of("same", QN_I32, &l);
    tap_ok(qn_deep_copy(context, &same, &a, &err) == QN_ERR_NOT_INJECTIVE, "dst must be injective");
    *(int32_t *)same.data = 9;
    tap_ok(qn_deep_copy(context, &a, &same, &err) == QN_OK && ((int32_t *)a.data)[9] == 9,
           "broadcast source");
    a.traits = QN_ATOMIC;
    tap_ok(qn_deep_copy(context, &a, &b, &err) == QN_OK, "atomic dst");
    qn_view *all[] = {&a, &b, &q, &y, &two, &f, &ro, &same};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qn_view_release(all[i]);
}

static void test_layouts(void)
{
    qn_error err = {0};
    qn_layout left, padded;
    qn_view right = new_view("right", QN_I32, 2, INDEX(50, 3)), v;
    fill_i32(&right);
    qn_layout_left(2, INDEX(50, 3), &left, NULL);
    v = view_of("left", QN_I32, &left);
    tap_ok(qn_deep_copy(NULL, &v, &right, &err) == QN_ERR_ARGUMENT, "a kernel needs a context");
    tap_contains(err.message,
                 "qn_deep_copy: context is NULL, and writing view \"left\" takes a kernel",
                 "says so");
    tap_ok(qn_deep_copy(context, &v, &right, &err) == QN_OK && ((int32_t *)v.data)[50] == 1 &&
               ((int32_t *)v.data)[49] == 147,
           "X4.21, Q2: Left <- Right");
    qn_layout_strided(2, INDEX(50, 3), INDEX(1, 64), &padded, NULL);
    qn_view p = view_of("padded", QN_I32, &padded);
    tap_ok(qn_deep_copy(context, &p, &v, &err) == QN_OK && ((int32_t *)p.data)[64] == 1,
           "X4.22, Q2: other padding");
    qn_view back = new_view("back", QN_I32, 2, INDEX(50, 3));
    tap_ok(qn_deep_copy(context, &back, &p, &err) == QN_OK &&
               memcmp(back.data, right.data, 600) == 0,
           "and back");
    qn_view_release(&v);
    qn_view_release(&p);
    qn_view_release(&back);
    qn_view_release(&right);
}

static void test_overlap(void)
{
    qn_error err = {0};
    qn_view a = new_view("a", QN_I32, 1, INDEX(20)), head, tail, even, odd;
    fill_i32(&a);
    qn_subview(&a, 1, &(qn_slice){.kind = QN_RANGE, .begin = 0, .end = 10}, &head, NULL);
    qn_subview(&a, 1, &(qn_slice){.kind = QN_RANGE, .begin = 5, .end = 15}, &tail, NULL);
    tap_ok(qn_deep_copy(context, &head, &tail, &err) == QN_ERR_OVERLAP, "DC3, Q15: overlap");
    tap_is_str(err.message, "qn_deep_copy: dst \"a\" and src \"a\" share elements", "message");
    tap_is_int(((int32_t *)a.data)[0], 0, "nothing was copied");
    qn_subview(&a, 1, &(qn_slice){.kind = QN_RANGE, .begin = 0, .end = 20, .step = 2}, &even, NULL);
    qn_subview(&a, 1, &(qn_slice){.kind = QN_RANGE, .begin = 1, .end = 20, .step = 2}, &odd, NULL);
    tap_ok(qn_deep_copy(context, &even, &odd, &err) == QN_OK && ((int32_t *)a.data)[0] == 1 &&
               ((int32_t *)a.data)[18] == 19 && ((int32_t *)a.data)[19] == 19,
           "Q15: interleaved views share nothing");
    qn_layout l;
    qn_view shifted;
    qn_layout_offset(&a.layout, INDEX(-5), &l, NULL);
    qn_view_with_layout(&a, &l, &shifted, NULL);
    tap_ok(qn_deep_copy(context, &a, &shifted, &err) == QN_OK,
           "itself with other lower bounds: nothing to do");
    qn_view_release(&shifted);
    qn_layout_reverse(&a.layout, 0, &l, NULL);
    qn_view_with_layout(&a, &l, &shifted, NULL);
    tap_ok(qn_deep_copy(context, &a, &shifted, &err) == QN_ERR_OVERLAP, "itself reversed: overlap");
    tap_ok(qn_convert_copy(context, 0, &a, &shifted, &err) == QN_ERR_OVERLAP, "conversions too");
    qn_view *all[] = {&a, &head, &tail, &even, &odd, &shifted};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qn_view_release(all[i]);
}

static void test_large(void)
{
    enum { N = 3000 * 1000 };
    qn_error err = {0};
    qn_view a = new_view("a", QN_F64, 1, INDEX(N)), b = new_view("b", QN_F64, 1, INDEX(N));
    for (int64_t i = 0; i < N; i++)
        ((double *)a.data)[i] = (double)i;
    tap_ok(qn_deep_copy_on(context, QN_THREADS, &b, &a, &err) == QN_OK &&
               memcmp(a.data, b.data, N * sizeof(double)) == 0,
           "plain memory in pieces");
    tap_ok(fill_bits(context, &b, 0x4008000000000000u, &err) == QN_OK &&
               ((double *)b.data)[N - 1] == 3.0 && ((double *)b.data)[131072] == 3.0,
           "DC4: fill in pieces");
    qn_view_release(&a);
    qn_view_release(&b);
}

/** Large enough for tiles, with and without a rest on each side. */
static void test_transpose(void)
{
    static const int64_t extents[][3] = {
        {1, 1024, 768}, {1, 1030, 771}, {600, 3, 515}, {2, 64, 9000}};
    for (size_t n = 0; n < sizeof extents / sizeof extents[0]; n++) {
        const int64_t *e = extents[n];
        qn_error err = {0};
        qn_layout l;
        qn_layout_left(3, e, &l, NULL);
        qn_view a = new_view("a", QN_F64, 3, e), b = view_of("b", QN_F64, &l);
        for (int64_t i = 0; i < qn_view_size(&a); i++)
            ((double *)a.data)[i] = (double)i;
        qn_status status = qn_deep_copy(context, &b, &a, &err);
        int64_t wrong = status != QN_OK;
        for (int64_t i = 0; i < e[0]; i++)
            for (int64_t j = 0; j < e[1]; j++)
                for (int64_t k = 0; k < e[2]; k++)
                    wrong += ((double *)b.data)[i + e[0] * (j + e[1] * k)] !=
                             (double)((i * e[1] + j) * e[2] + k);
        tap_ok(wrong == 0, "large (%d,%d,%d), Left <- Right", (int)e[0], (int)e[1], (int)e[2]);
        qn_view_release(&a);
        qn_view_release(&b);
    }
}

static void test_memory_speed_path(void)
{
    qn_error err = {0};
    qn_layout l;
    qn_context *c = context_with(NULL);
    qn_layout_ordered(3, INDEX(5, 6, 7), (int[]){1, 0, 2}, &l, NULL);
    qn_view a = view_of("a", QN_F32, &l), b = view_of("b", QN_F32, &l);
    memset(a.data, 7, 5 * 6 * 7 * 4);
    tap_ok(qn_deep_copy(c, &b, &a, &err) == QN_OK && memcmp(a.data, b.data, 5 * 6 * 7 * 4) == 0,
           "permuted");
    qn_view_release(&a);
    qn_view_release(&b);
    qn_layout_tiled(2, INDEX(8, 8), INDEX(4, 2), NULL, NULL, &l, NULL);
    a = view_of("a", QN_F32, &l);
    b = view_of("b", QN_F32, &l);
    memset(a.data, 5, 256);
    tap_ok(qn_deep_copy(c, &b, &a, &err) == QN_OK && memcmp(a.data, b.data, 256) == 0, "tiled");
    tap_is_int(counters_of(c).launches, 0, "equal layouts without gaps: no kernel ran");
    qn_view r = new_view("r", QN_F32, 2, INDEX(8, 8));
    qn_deep_copy(c, &r, &a, &err);
    qn_deep_copy(c, &r, &b, &err);
    tap_is_int(counters_of(c).launches, 2, "else one launch a copy");
    tap_is_int(counters_of(c).misses, 1, "of one kernel, known the second time");
    qn_view_release(&a);
    qn_view_release(&b);
    qn_view_release(&r);
    qn_layout_release(&l);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- fill, scalars, conversion */

static void test_fill(void)
{
    qn_error err = {0};
    qn_view a = new_view("a", QN_I32, 2, INDEX(6, 8)), part,
            scalar = new_view("s", QN_I16, 0, NULL);
    uint64_t bits = 0;
    tap_ok(fill_bits(NULL, &a, 7, &err) == QN_OK && ((int32_t *)a.data)[47] == 7,
           "DC4: fill without context");
    qn_slice cut[2] = {{.kind = QN_RANGE, .begin = 1, .end = 3},
                       {.kind = QN_RANGE, .begin = 2, .end = 8, .step = 3}};
    qn_subview(&a, 2, cut, &part, NULL);
    tap_ok(fill_bits(NULL, &part, 9, &err) == QN_ERR_ARGUMENT, "gaps need a kernel");
    tap_ok(fill_bits(context, &part, (uint64_t)-3, &err) == QN_OK, "DC4: fill of a part");
    int n = 0;
    for (int i = 0; i < 48; i++)
        n += ((int32_t *)a.data)[i] == -3;
    tap_ok(n == 4 && ((int32_t *)a.data)[10] == -3 && ((int32_t *)a.data)[21] == -3,
           "only the part");
    part.traits = QN_READ_ONLY;
    tap_ok(fill_bits(context, &part, 1, &err) == QN_ERR_READ_ONLY &&
               fill_bits(context, NULL, 1, &err) == QN_ERR_ARGUMENT,
           "refused");
    tap_ok(fill_bits(context, &scalar, (uint64_t)-5, &err) == QN_OK &&
               qn_read_scalar(&scalar, &bits, &err) == QN_OK && (int64_t)bits == -5,
           "DC4: scalar <- rank-0 view");
    tap_ok(qn_read_scalar(&a, &bits, &err) == QN_ERR_RANK &&
               qn_read_scalar(NULL, &bits, &err) == QN_ERR_ARGUMENT,
           "rank 0 only");
    qn_view none = {0}, empty = new_view("e", QN_F32, 2, INDEX(0, 3)),
            flag = new_view("b", QN_BOOL, 1, INDEX(3));
    tap_ok(fill_bits(NULL, &none, 0, &err) == QN_OK && fill_bits(NULL, &empty, 0, &err) == QN_OK,
           "nothing to fill");
    tap_ok(fill_bits(NULL, &flag, 6, &err) == QN_OK && ((char *)flag.data)[2] == 1,
           "true is stored as 1");
    qn_layout l;
    qn_layout_tiled(2, INDEX(5, 5), INDEX(2, 3), NULL, NULL, &l, NULL);
    qn_view tiled = view_of("tiled", QN_F32, &l);
    tap_ok(fill_bits(context, &tiled, 0x3f800000, &err) == QN_OK, "tiled");
    int64_t at[2] = {0};
    n = 0;
    do
        n += *(float *)(void *)element(&tiled, at) == 1.0f;
    while (step(2, INDEX(5, 5), at));
    tap_is_int(n, 25, "all 25 elements");
    qn_view *all[] = {&a, &part, &scalar, &empty, &flag, &tiled};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qn_view_release(all[i]);
    qn_layout_release(&l);
}

/** Every pair of dtypes, against the reference meaning of cast. */
static void test_convert(void)
{
    static const double values[] = {0, 1, -1, 2.5, -3.75, 100, 127, 300, -40000, 1e10, -1e20};
    enum { N = sizeof values / sizeof values[0] };
    int wrong = 0;
    qn_view f = new_view("f", QN_F64, 1, INDEX(N));
    memcpy(f.data, values, sizeof values);
    FOR_NUMBERS(from) { /* numbers and bool */
        qn_view src = new_view("src", from, 1, INDEX(N));
        qn_error err = {0};
        qn_status status = qn_convert_copy(context, 0, &src, &f, &err);
        FOR_NUMBERS(to) {
            if (status != QN_OK)
                break;
            qn_view dst = new_view("dst", to, 1, INDEX(N));
            status = qn_convert_copy(context, QN_SERIAL, &dst, &src, &err);
            for (int i = 0; i < N && status == QN_OK; i++) {
                uint64_t x = qn__load_element(from, (char *)src.data + i * qn_dtype_bytes(from));
                uint64_t y = qn__load_element(to, (char *)dst.data + i * qn_dtype_bytes(to));
                bool is_float = qn__dtype_class(from) == QN_CLASS_F;
                uint64_t z = from == to ? x
                             : to == QN_BOOL && is_float
                                 ? (from == QN_F32 ? (x & 0x7fffffffu) != 0 : x << 1 != 0)
                                 : qn__eval_cast(to, from, x);
                if (y != z && wrong++ < 5)
                    tap_note("%s -> %s of %g", qn_dtype_name(from), qn_dtype_name(to), values[i]);
            }
            qn_view_release(&dst);
        }
        if (status)
            tap_note("%s", err.message);
        wrong += status != QN_OK;
        qn_view_release(&src);
    }
    tap_is_int(wrong, 0, "conversion between all dtypes is the reference's cast");
    qn_error err = {0};
    qn_view other = new_view("w", QN_F32, 2, INDEX(N, 1));
    tap_ok(qn_convert_copy(context, 0, &other, &f, &err) == QN_ERR_EXTENT &&
               qn_convert_copy(NULL, 0, &f, NULL, &err) == QN_ERR_ARGUMENT,
           "refused");
    qn_view narrow = new_view("n", QN_F32, 1, INDEX(N));
    tap_ok(qn_convert_copy(NULL, 0, &narrow, &f, &err) == QN_ERR_ARGUMENT,
           "conversion needs a context");
    qn_view_release(&f);
    qn_view_release(&other);
    qn_view_release(&narrow);
}

/* ---------------------------------------------------------------- failures */

/** Every allocation of a first copy fails once: a status, no change, no leak. */
static void test_memory(void)
{
    qn_layout left;
    qn_layout_left(2, INDEX(6, 5), &left, NULL);
    qn_view a = new_view("a", QN_I32, 2, INDEX(6, 5)), b = view_of("b", QN_I32, &left);
    fill_i32(&a);
    int wrong = 0, failures = 0;
    for (int n = 1; n < 400; n++) {
        qn_context *c = context_with(&(qn_context_options){.bytes = sizeof(qn_context_options),
                                                           .provider_path = "/nowhere"});
        qn_error err = {0};
        memset(b.data, 0, 120);
        qn__fail_allocation(n, false);
        qn_status status = qn_deep_copy(c, &b, &a, &err);
        qn__fail_allocation(0, false);
        failures += status != QN_OK;
        wrong += status != QN_OK && (status != QN_ERR_MEMORY || err.status != QN_ERR_MEMORY);
        wrong += status == QN_OK && ((int32_t *)b.data)[29] != 29;
        qn_status again = qn_deep_copy(c, &b, &a, &err);
        wrong += again != QN_OK || ((int32_t *)b.data)[1] != 5;
        qn_context_release(c);
    }
    tap_is_int(wrong, 0, "a failed allocation is a status; the next copy works");
    tap_ok(failures > 3, "and some fail");
    qn_view_release(&a);
    qn_view_release(&b);
}

int main(void)
{
    context = context_with(&(qn_context_options){
        .bytes = sizeof(qn_context_options), .n_threads = 2, .default_executor = QN_THREADS});
    test_rows();
    test_layouts();
    test_overlap();
    test_large();
    test_transpose();
    test_memory_speed_path();
    test_fill();
    test_random(60, "60 random pairs of layouts, generated code");
    qn_context *code = context;
    context = context_with(
        &(qn_context_options){.bytes = sizeof(qn_context_options), .provider_path = "/nowhere"});
    test_random(2000, "2000 random pairs of layouts, interpreter");
    test_convert();
    test_memory();
    qn_context_release(context);
    qn_context_release(code);
    return tap_done();
}
