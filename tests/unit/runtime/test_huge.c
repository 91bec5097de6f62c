/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_huge.c: views of more than 2^31 and 2^32 elements (rows OV1, OV2), in memory that is
 * reserved but not used: few pages are touched. Indices, strides and byte offsets beyond 32 bits,
 * in loads, stores, atomics, gathers, reductions, copies and fills, for elements of 1 to 8 bytes,
 * on every engine, with checks and without, and on several threads. After each run the elements
 * whose offsets agree in the low 31 or 32 bits only are still zero.
 */
#define _GNU_SOURCE
#include "tests/fill.h"
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"

#include <sys/mman.h>

/** Elements of the view: 2^32 and a bit, of at most 8 bytes. */
#define MANY (((int64_t)1 << 32) + ((int64_t)1 << 20))
#define BORDER ((int64_t)1 << 32)

static const qn_options ways[] = {
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_INTERP},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_EXACT},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_DYNAMIC},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .executor = QN_THREADS},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .checks = QN_CHECKS_NONE},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3},
};
static const char *const way_names[] = {"interpreter", "exact",     "dynamic",
                                        "threads",     "no checks", "v3"};
static int n_ways;
static qn_context *context;

typedef struct huge {
    unsigned char *data;
    size_t bytes;
    int dtype;
    int64_t n, element_bytes;
    qn_view v; /* rank 1 */
} huge;

/** Gives all pages back: the memory reads as zero. */
static void clear(const huge *h)
{
    madvise(h->data, h->bytes, MADV_DONTNEED);
}

static bool reserve(int dtype, huge *h)
{
    *h = (huge){.dtype = dtype, .n = MANY, .element_bytes = qn_dtype_bytes(dtype)};
    h->bytes = (size_t)(h->n * h->element_bytes);
    void *p = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    madvise(p, h->bytes, MADV_NOHUGEPAGE);
    h->data = p;
    qn_layout l;
    qn_error err = {0};
    qn_layout_right(1, &h->n, &l, NULL);
    tap_ok(qn_view_wrap("huge", p, dtype, &l, 0, &h->v, &err) == QN_OK,
           "a view of %lld elements %s", (long long)h->n, err.message);
    return true;
}

/** The element at an offset as an integer. */
static int64_t element(const huge *h, int64_t offset)
{
    uint64_t bits = qn__load_element(h->dtype, h->data + offset * h->element_bytes);
    return (int64_t)qn__eval_cast(QN_I64, h->dtype, bits);
}

/** Elements [from, to) are `expected`, and those at the same offsets cut to 31 and 32 bits are 0.
 */
static bool is_run(const huge *h, int64_t from, int64_t to, int64_t expected)
{
    for (int64_t i = from; i < to; i++) {
        int64_t low = i & 0xffffffff, lower = i & 0x7fffffff;
        bool is_target = (low >= from && low < to) || (lower >= from && lower < to);
        if (element(h, i) != expected || (!is_target && (element(h, low) || element(h, lower)))) {
            tap_note("element %lld is %lld; at %lld %lld, at %lld %lld", (long long)i,
                     (long long)element(h, i), (long long)low, (long long)element(h, low),
                     (long long)lower, (long long)element(h, lower));
            return false;
        }
    }
    return element(h, from - 1) == 0 && (to >= h->n || element(h, to) == 0);
}

static qn_kernel *finish(qn_builder *b)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "a kernel %s", err.message);
    qn_builder_release(b);
    return k;
}

static qn_val number(qn_builder *b, int dtype, int64_t value)
{
    return qn_cast(b, dtype, qn_index(b, value));
}

/** x[i] = x[i] + 3 for from <= i < to, or atomically. */
static qn_kernel *make_add(int dtype, bool is_atomic)
{
    qn_builder *b = qn_builder_new("add", 0);
    qn_param x = qn_view_param(b, "x", dtype, 1, is_atomic ? QN_ATOMIC : 0);
    qn_val from = qn_scalar_param(b, "from", QN_I64), to = qn_scalar_param(b, "to", QN_I64);
    qn_val i = qn_parallel(b, from, to);
    qn_store(b, x, 1, &i, qn_add(b, qn_load(b, x, 1, &i), number(b, dtype, 3)));
    return finish(b);
}

static void launch(const huge *h, const qn_kernel *k, int n, const qn_arg *args, int way,
                   int expected, const char *what)
{
    qn_error err = {0};
    int status = (int)qn_launch(context, k, n, args, &ways[way], &err);
    tap_ok(status == expected, "%s of %s, %s: %s", what, qn_dtype_name(h->dtype), way_names[way],
           err.message);
}

/** Runs of elements across 2^31 and 2^32, at the end, and one beyond it. */
static void test_runs(const huge *h)
{
    const int64_t runs[][2] = {{((int64_t)1 << 31) - 500, ((int64_t)1 << 31) + 500},
                               {BORDER - 50000, BORDER + 50000},
                               {BORDER + 3, BORDER + 1000},
                               {MANY - 777, MANY}};
    for (int is_atomic = 0; is_atomic < (h->element_bytes > 2 ? 2 : 1); is_atomic++) {
        qn_kernel *k = make_add(h->dtype, is_atomic);
        for (int w = 0; w < n_ways; w++) {
            for (int r = 0; r < 4; r++) {
                const qn_arg args[] = {qn_arg_view(&h->v), qn_arg_int(QN_I64, runs[r][0]),
                                       qn_arg_int(QN_I64, runs[r][1])};
                clear(h);
                launch(h, k, 3, args, w, QN_OK, is_atomic ? "atomics" : "a run");
                tap_ok(is_run(h, runs[r][0], runs[r][1], 3), "run %d: only its elements", r);
            }
            const qn_arg beyond[] = {qn_arg_view(&h->v), qn_arg_int(QN_I64, MANY - 3),
                                     qn_arg_int(QN_I64, MANY + 1)};
            clear(h);
            if (ways[w].checks == QN_CHECKS_REPORT)
                launch(h, k, 3, beyond, w, QN_ERR_BOUNDS, "one element too many");
            tap_ok(element(h, MANY - BORDER) == 0, "... is not taken for one 2^32 below");
        }
        qn_kernel_release(k);
    }
}

/** x[at[k]] = 5 and y[k] = x[at[k]]; and x[k * step + 7] = 5: offsets that differ in their high
 * bits only. */
static void test_gather(const huge *h)
{
    enum { N = 40 };
    int64_t at[N], n = N, step = (int64_t)1 << 26;
    double y[N];
    qn_layout l;
    qn_view va, vy;
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("at", at, QN_I64, &l, 0, &va, NULL);
    qn_view_wrap("y", y, QN_F64, &l, 0, &vy, NULL);
    for (int k = 0; k < N; k++)
        at[k] = k * step * 8 / 5 + 11;
    qn_builder *b = qn_builder_new("scatter", 0);
    qn_param x = qn_view_param(b, "x", h->dtype, 1, 0), p = qn_view_param(b, "at", QN_I64, 1, 0),
             out = qn_view_param(b, "y", QN_F64, 1, 0);
    qn_val k = qn_parallel_over(b, p, 0), index = qn_load(b, p, 1, &k);
    qn_val affine = qn_add(b, qn_mul(b, k, qn_index(b, step)), qn_index(b, 7));
    qn_store(b, x, 1, &index, number(b, h->dtype, 5));
    qn_store(b, out, 1, &k, qn_cast(b, QN_F64, qn_load(b, x, 1, &affine)));
    qn_kernel *kernel = finish(b);
    const qn_arg args[] = {qn_arg_view(&h->v), qn_arg_view(&va), qn_arg_view(&vy)};
    for (int w = 0; w < n_ways; w++) {
        clear(h);
        for (int i = 0; i < N; i++)
            qn__store_element(h->dtype, h->data + (i * step + 7) * h->element_bytes,
                              qn__eval_cast(h->dtype, QN_I64, (uint64_t)i));
        at[N - 1] = MANY - 1;
        launch(h, kernel, 3, args, w, QN_OK, "scatter and gather");
        int wrong = 0;
        for (int i = 0; i < N; i++)
            wrong += element(h, at[i]) != 5 || y[i] != i;
        tap_is_int(wrong, 0, "... of elements far apart");
        at[N - 1] = (int64_t)1 << 33; /* a valid index in its low 32 bits */
        if (ways[w].checks == QN_CHECKS_REPORT)
            launch(h, kernel, 3, args, w, QN_ERR_BOUNDS, "an index of 2^33");
        tap_ok(element(h, 0) == 0, "... is not taken for 0");
    }
    qn_kernel_release(kernel);
}

/** y[i] = x[at[i], ..., at[i]] of 16 dimensions with indices of 32 bits: each reaches less than
 * 2^28 bytes, all of them more than 2^31. */
static void test_corner(const huge *h)
{
    enum { N = 40 };
    int64_t n = N, extents[QN_MAX_RANK], strides[QN_MAX_RANK], last = 0;
    int32_t at[N];
    double y[N];
    qn_layout l;
    qn_view va, vx, vy;
    for (int d = 0; d < QN_MAX_RANK; d++) {
        extents[d] = 3;
        strides[d] = (1 << 28) / 3 / h->element_bytes;
        last += 2 * strides[d];
    }
    qn_layout_strided(QN_MAX_RANK, extents, strides, &l, NULL);
    qn_view_wrap("x", h->data, h->dtype, &l, 0, &vx, NULL);
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("at", at, QN_I32, &l, 0, &va, NULL);
    qn_view_wrap("y", y, QN_F64, &l, 0, &vy, NULL);
    qn_builder *b = qn_builder_new("corner", 0);
    qn_param x = qn_view_param(b, "x", h->dtype, QN_MAX_RANK, 0),
             p = qn_view_param(b, "at", QN_I32, 1, 0), out = qn_view_param(b, "y", QN_F64, 1, 0);
    qn_val i = qn_parallel_over(b, p, 0), index[QN_MAX_RANK];
    index[0] = qn_cast(b, QN_I64, qn_load(b, p, 1, &i));
    for (int d = 1; d < QN_MAX_RANK; d++)
        index[d] = index[0];
    qn_store(b, out, 1, &i, qn_cast(b, QN_F64, qn_load(b, x, QN_MAX_RANK, index)));
    qn_kernel *k = finish(b);
    const qn_arg args[] = {qn_arg_view(&vx), qn_arg_view(&va), qn_arg_view(&vy)};
    clear(h);
    qn__store_element(h->dtype, h->data + last * h->element_bytes,
                      qn__eval_cast(h->dtype, QN_I64, 5));
    for (int w = 0; w < n_ways; w++) {
        int wrong = 0;
        for (int j = 0; j < N; j++) {
            at[j] = 2 * (j % 2);
            y[j] = -1;
        }
        launch(h, k, 3, args, w, QN_OK, "a corner of 16 dimensions");
        for (int j = 0; j < N; j++)
            wrong += y[j] != 5 * (j % 2);
        tap_is_int(wrong, 0, "... is found");
    }
    qn_kernel_release(k);
}

/** m[i,j] = 9 in a window of the last rows, for layouts with strides or digits beyond 32 bits. */
static void test_matrices(const huge *h)
{
    const struct {
        const char *what;
        int64_t extents[2], strides[2], origin;
    } rows[] = {
        {"rows of 65537", {65535, 65537}, {65537, 1}, 0},
        {"columns of 65535", {65535, 65537}, {1, 65535}, 0},
        {"a stride of 2^31 + 64", {2, 1 << 20}, {((int64_t)1 << 31) + 64, 1}, 0},
        {"rows backwards", {65536, 65536}, {-65536, 1}, (int64_t)65535 * 65536},
        {"a stride of 4097 in rows", {1024, 1024}, {(int64_t)1 << 22, 4097}, 0},
    };
    enum { WINDOW = 30 };
    qn_builder *b = qn_builder_new("window", 0);
    qn_param m = qn_view_param(b, "m", h->dtype, 2, 0);
    qn_val e0 = qn_extent(b, m, 0), e1 = qn_extent(b, m, 1),
           w0 = qn_min(b, e0, qn_index(b, WINDOW)), w1 = qn_min(b, e1, qn_index(b, WINDOW));
    qn_val i[] = {qn_parallel(b, qn_sub(b, e0, w0), e0), qn_parallel(b, qn_sub(b, e1, w1), e1)};
    qn_store(b, m, 2, i, number(b, h->dtype, 9));
    qn_kernel *k = finish(b);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        qn_layout l;
        qn_view v;
        qn_error err = {0};
        qn_layout_strided(2, rows[r].extents, rows[r].strides, &l, NULL);
        l.origin = rows[r].origin;
        tap_ok(qn_view_wrap("m", h->data, h->dtype, &l, 0, &v, &err) == QN_OK, "%s %s",
               rows[r].what, err.message);
        for (int w = 0; w < n_ways; w++) {
            const qn_arg args[] = {qn_arg_view(&v)};
            clear(h);
            launch(h, k, 1, args, w, QN_OK, rows[r].what);
            int wrong = 0;
            const int64_t *e = rows[r].extents;
            for (int64_t a = e[0] < WINDOW ? 0 : e[0] - WINDOW; a < e[0]; a++)
                for (int64_t c = e[1] - WINDOW; c < e[1]; c++) {
                    int64_t offset =
                        rows[r].origin + a * rows[r].strides[0] + c * rows[r].strides[1];
                    wrong += element(h, offset) != 9;
                }
            int64_t before = rows[r].origin + (e[0] - 1) * rows[r].strides[0] +
                             (e[1] - WINDOW - 1) * rows[r].strides[1];
            tap_ok(wrong == 0 && element(h, before) == 0, "... a window of %d columns",
                   (int)WINDOW);
        }
    }
    qn_kernel_release(k);
}

/** Reductions, fills, copies and subviews beyond 2^32. */
static void test_parts(const huge *h)
{
    enum { N = 5000 };
    qn_builder *b = qn_builder_new("count", 0);
    qn_param x = qn_view_param(b, "x", h->dtype, 1, 0), out = qn_view_param(b, "out", QN_I64, 1, 0);
    qn_val from = qn_scalar_param(b, "from", QN_I64), to = qn_scalar_param(b, "to", QN_I64);
    qn_val p = qn_parallel_over(b, out, 0), r = qn_reduction(b, from, to);
    qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, 1, &r);
    qn_val sum = qn_end_reduce(b, qn_cast(b, QN_I64, qn_load(b, x, 1, &r)));
    qn_store(b, out, 1, &p, sum);
    qn_kernel *k = finish(b);
    qn_view total = vector_of(context, "total", QN_I64, 1), part,
            copy = vector_of(context, "copy", h->dtype, N);
    const qn_slice slice = {.kind = QN_RANGE, .begin = BORDER - 1000, .end = BORDER - 1000 + N};
    clear(h);
    qn_error err = {0};
    tap_ok(qn_subview(&h->v, 1, &slice, &part, &err) == QN_OK &&
               (unsigned char *)part.data == h->data + slice.begin * h->element_bytes,
           "a subview across 2^32 %s", err.message);
    tap_ok(fill_bits(context, &part, qn__eval_cast(h->dtype, QN_I64, 1), &err) == QN_OK,
           "a fill %s", err.message);
    tap_ok(is_run(h, slice.begin, slice.end, 1), "... of its elements only");
    tap_ok(qn_deep_copy(context, &copy, &part, &err) == QN_OK &&
               memcmp(copy.data, part.data, (size_t)(N * h->element_bytes)) == 0,
           "a copy %s", err.message);
    for (int w = 0; w < n_ways; w++) {
        const qn_arg args[] = {qn_arg_view(&h->v), qn_arg_view(&total),
                               qn_arg_int(QN_I64, slice.begin - 3),
                               qn_arg_int(QN_I64, slice.end + 3)};
        launch(h, k, 4, args, w, QN_OK, "a sum");
        tap_is_int(*(int64_t *)total.data, N, "... of the ones");
    }
    qn_view_release(&part);
    qn_view_release(&copy);
    qn_view_release(&total);
    qn_kernel_release(k);
}

/** The sum of 2^48 points keeps a number for each block of them: more memory than a machine has. */
static void test_scratch(void)
{
    const char *text =
        "kernel \"sum\" {\n view x: f64[1]; view y: f64[0];\n %0: i64 = const 0;\n"
        " %1: i64 = extent x, 0; %k: i64 = reduction %0, %1;\n"
        " %s: f64 = reduce sum striped over %k {\n  %a: f64 = load x[%k]; yield %a;\n };\n"
        " store y[], %s;\n}\n";
    const int64_t extent = INT64_C(1) << 48, stride = 0;
    double one = 1, sum = 0;
    qn_error err = {0};
    qn_layout l, scalar;
    qn_view x = {0}, y = {0};
    qn_kernel *k = kernel_of(text);
    qn_status status = qn_layout_strided(1, &extent, &stride, &l, &err);
    if (status == QN_OK)
        status = qn_layout_right(0, NULL, &scalar, &err);
    if (status == QN_OK)
        status = qn_view_wrap("x", &one, QN_F64, &l, 0, &x, &err);
    if (status == QN_OK)
        status = qn_view_wrap("y", &sum, QN_F64, &scalar, 0, &y, &err);
    tap_ok(status == QN_OK, "a view of one element 2^48 times: %s", err.message);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    for (int executor = QN_SERIAL; executor <= QN_THREADS; executor++) {
        const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .executor = executor};
        status = qn_launch(context, k, 2, args, &o, &err);
        tap_ok(status == QN_ERR_MEMORY && strstr(err.message, ": the machine has "),
               "its striped sum is refused: %s", err.message);
    }
    qn_kernel_release(k);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 40];
    static const int dtypes[] = {QN_U8, QN_I16, QN_F32, QN_F64};
    context =
        context_with(&(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 2});
    n_ways = has_x86(reason, sizeof reason) ? (int)(sizeof ways / sizeof *ways) : 1;
    for (int d = 0; d < 4; d++) {
        huge h;
        if (!reserve(dtypes[d], &h)) {
            tap_skip("so much address space is refused here");
            continue;
        }
        test_runs(&h);
        test_gather(&h);
        test_corner(&h);
        test_matrices(&h);
        test_parts(&h);
        munmap(h.data, h.bytes);
    }
    if (n_ways > 1)
        test_scratch();
    qn_context_release(context);
    return tap_done();
}
