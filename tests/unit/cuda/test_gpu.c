/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu.c: the first things to know about a GPU: what it is, that fills, kernels, faults,
 * streams, prepared calls and copies of any layout do there what they do here. On the stub driver,
 * with smaller sizes, where there is no GPU.
 */
#include "tests/fill.h"
#include "tests/device.h"
#include "tests/unit/launch.h"

static device d;
static bool is_real;

/* ---------------------------------------------------------------- help */

static qn_view view_of(const qn_layout *l, int dtype, int space, const char *label)
{
    qn_view v = {0};
    qn_view_type type;
    qn_error err = {0};
    const qn_alloc_options o = {.bytes = sizeof o, .label = label, .space = space,
                                .stream = space == QN_SPACE_CUDA ? d.stream : NULL};
    qn_view_type_init(dtype, l->rank, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = space;
    if (qn_view_create_layout(d.context, &type, l, &o, &v, &err) != QN_OK)
        tap_ok(false, "test view %s: %s", label, err.message);
    return v;
}

static qn_view vector(int dtype, int64_t n, int space, const char *label)
{
    qn_layout l;
    qn_layout_right(1, &n, &l, NULL);
    return view_of(&l, dtype, space, label);
}

/** A point that passes if a status is QN_OK; its message if not. */
static bool is_fine(qn_status status, const qn_error *err, const char *what)
{
    bool passed = tap_ok(status == QN_OK, "%s", what);
    if (!passed)
        tap_note("%s: %s", qn_status_name((int)status), err->message);
    return passed;
}

static const qn_options *on_stream(qn_stream *s)
{
    static qn_options o;
    o = (qn_options){.bytes = sizeof o, .executor = QN_CUDA, .stream = s};
    return &o;
}

/* ---------------------------------------------------------------- the device */

static void test_info(void)
{
    const qn_cuda_device *i = &d.info;
    int n = 0;
    qn_error err = {0};
    is_fine(qn_cuda_device_count(d.context, &n, &err), &err, "devices are counted");
    for (int j = 0; j < n; j++) {
        qn_cuda_device one;
        if (is_fine(qn_cuda_device_info(d.context, j, &one, sizeof one, &err), &err,
                    "a device is described"))
            tap_note("device %d: %s, compute capability %d, driver %d, isa %d, %d multiprocessors, "
                     "%" PRId64 " MiB, L2 %" PRId64 " KiB",
                     j, one.name, one.capability, one.driver, one.isa, one.n_processors,
                     one.memory_bytes >> 20, one.l2_bytes >> 10);
    }
    tap_ok(n > 0 && i->name[0] && i->capability >= 70 && i->driver >= 11040 &&
               i->n_processors > 0 && i->memory_bytes > 0,
           "its numbers make sense");
}

/* ---------------------------------------------------------------- fills and a kernel */

static void test_fill(void)
{
    static const struct {
        int dtype;
        uint64_t bits;
    } values[] = {{QN_U8, 7}, {QN_I16, 0x1234}, {QN_F32, 0x3f800000}, {QN_F64, 0x3ff8000000000001}};
    int64_t n = is_real ? 1000003 : 307;
    for (int i = 0; i < 4; i++) {
        qn_view x = vector(values[i].dtype, n, QN_SPACE_CUDA, "x"),
                host = vector(values[i].dtype, n, QN_SPACE_HOST, "h");
        size_t bytes = (size_t)qn_dtype_bytes(values[i].dtype);
        qn_error err = {0};
        qn_status status = stream_fill_bits(d.stream, &x, values[i].bits, &err);
        if (status == QN_OK)
            status = qn_stream_copy(d.stream, &host, &x, &err);
        if (status == QN_OK)
            status = qn_stream_fence(d.stream, &err);
        int64_t n_wrong = 0;
        for (int64_t j = 0; j < n; j++)
            n_wrong += memcmp((char *)host.data + (size_t)j * bytes, &values[i].bits, bytes) != 0;
        is_fine(status, &err, "fill");
        tap_ok(n_wrong == 0, "fill of %s: %" PRId64 " wrong", qn_dtype_name(values[i].dtype),
               n_wrong);
        qn_view_release(&x);
        qn_view_release(&host);
    }
}

#define TRIAD_TEXT                                                                                 \
    "kernel \"triad\" contract {\n view a: f64[1]; view b: f64[1]; view c: f64[1]; scalar s: "     \
    "f64;\n"                                                                                       \
    " %z: i64 = const 0; %n: i64 = extent a, 0; %i: i64 = parallel %z, %n; %s: f64 = param s;\n"   \
    " %b: f64 = load b[%i]; %c: f64 = load c[%i]; %r: f64 = fma %s, %c, %b; store a[%i], %r;\n}\n"

static void test_triad(void)
{
    int64_t n = is_real ? INT64_C(1) << 25 : 301;
    qn_view host = vector(QN_F64, n, QN_SPACE_HOST, "h"), x[3];
    qn_error err = {0};
    qn_kernel *k = kernel_of(TRIAD_TEXT);
    qn_mark *begin = NULL, *end = NULL;
    double ms = 0, *h = host.data;
    for (int i = 0; i < 3; i++)
        x[i] = vector(QN_F64, n, QN_SPACE_CUDA, "x");
    for (int i = 1; i < 3; i++) {
        for (int64_t j = 0; j < n; j++)
            h[j] = (double)(i * j);
        is_fine(qn_stream_copy(d.stream, &x[i], &host, &err), &err, "host to device");
    }
    const qn_arg args[] = {qn_arg_view(&x[0]), qn_arg_view(&x[1]), qn_arg_view(&x[2]),
                           qn_arg_f64(3)};
    if (!is_fine(qn_launch(d.context, k, 4, args, on_stream(d.stream), &err), &err,
                 "triad is launched"))
        goto done;
    qn_stream_mark(d.stream, 1, &begin, &err);
    for (int i = 0; i < 20; i++)
        qn_launch(d.context, k, 4, args, on_stream(d.stream), &err);
    qn_stream_mark(d.stream, 1, &end, &err);
    qn_stream_copy(d.stream, &host, &x[0], &err);
    is_fine(qn_stream_fence(d.stream, &err), &err, "and done");
    int64_t n_wrong = 0;
    for (int64_t j = 0; j < n; j++)
        n_wrong += h[j] != 7.0 * (double)j;
    tap_ok(n_wrong == 0, "triad: %" PRId64 " wrong", n_wrong);
    is_fine(qn_mark_milliseconds(begin, end, &ms, &err), &err, "timed");
    tap_note("triad f64 of %" PRId64 ": %.4f ms each, %.0f GB/s", n, ms / 20,
             20 * 24 * (double)n / ms * 1e-6);
done:
    qn_mark_release(begin);
    qn_mark_release(end);
    for (int i = 0; i < 3; i++)
        qn_view_release(&x[i]);
    qn_view_release(&host);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- faults */

/** An index out of bounds: the interpreter's message at the fence, and nothing else happens. */
static void test_fault(void)
{
    enum { N = 100 };
    double x[N], y[N];
    int64_t index[N], n = N;
    qn_layout l;
    qn_view v[3];
    qn_error err = {0}, expected = {0};
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = 0;
        index[i] = i == 77 ? 100 : i == 42 ? -1 : N - 1 - i;
    }
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("x", x, QN_F64, &l, 0, &v[0], NULL);
    qn_view_wrap("index", index, QN_I64, &l, 0, &v[1], NULL);
    qn_view_wrap("y", y, QN_F64, &l, 0, &v[2], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_view(&v[2])};
    const device_memory memory[] = {{x, sizeof x}, {index, sizeof index}, {y, sizeof y}};
    const qn_options plain = {.bytes = sizeof plain},
                     interpreter = {.bytes = sizeof plain, .engine = QN_ENGINE_INTERP};
    qn_kernel *k = kernel_of(GATHER_TEXT);
    qn_launch(d.context, k, 3, args, &interpreter, &expected);
    for (int i = 0; i < 5; i++) {
        err = (qn_error){0};
        tap_ok(device_launch(&d, k, 3, args, 3, memory, &plain, &err) == QN_ERR_BOUNDS,
               "out of bounds is reported");
        tap_is_str(err.message, expected.message, "the first one, as the interpreter does");
    }
    index[42] = index[77] = 5;
    is_fine(device_launch(&d, k, 3, args, 3, memory, &plain, &err), &err, "the context is healthy");
    tap_ok(y[0] == 99 && y[42] == 5 && y[77] == 5 && y[99] == 0, "and the launch right");
    is_fine(qn_stream_fence(d.stream, &err), &err, "no fault is left");
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- streams */

/** A chain over two streams: each step waits for the one before in the other stream. */
static void test_streams(void)
{
    int steps = is_real ? 400 : 20;
    int64_t n = is_real ? 1 << 20 : 50;
    qn_stream *s[2] = {NULL, NULL};
    qn_error err = {0};
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view one = vector(QN_F32, n, QN_SPACE_CUDA, "one"),
            y = vector(QN_F32, n, QN_SPACE_CUDA, "y"), host = vector(QN_F32, n, QN_SPACE_HOST, "h");
    const qn_arg args[] = {qn_arg_view(&one), qn_arg_view(&y), qn_arg_f32(1)};
    fill_bits(d.context, &one, 0x3f800000, &err);
    for (int i = 0; i < 2; i++)
        is_fine(qn_stream_new(d.context, 0, &s[i], &err), &err, "a stream");
    qn_status status = qn_stream_fence(d.stream, &err);
    if (d.stub)
        d.stub->defer(1);
    for (int i = 0; i < steps && status == QN_OK; i++) {
        qn_mark *m = NULL;
        status = qn_launch(d.context, k, 3, args, on_stream(s[i % 2]), &err);
        if (status == QN_OK)
            status = qn_stream_mark(s[i % 2], 0, &m, &err);
        if (status == QN_OK)
            status = qn_stream_after(s[1 - i % 2], m, &err);
        qn_mark_release(m);
    }
    is_fine(status, &err, "a chain of launches over two streams");
    is_fine(qn_stream_fence(s[(steps - 1) % 2], &err), &err, "is done");
    qn_deep_copy(d.context, &host, &y, &err);
    int64_t n_wrong = 0;
    for (int64_t j = 0; j < n; j++)
        n_wrong += ((float *)host.data)[j] != (float)steps;
    if (!tap_ok(n_wrong == 0, "in order"))
        tap_note("%" PRId64 " elements are wrong, y[0] = %g of %d", n_wrong,
                 (double)((float *)host.data)[0], steps);
    if (d.stub)
        d.stub->defer(0);
    for (int i = 0; i < 2; i++)
        qn_stream_release(s[i]);
    qn_view_release(&one);
    qn_view_release(&y);
    qn_view_release(&host);
    qn_kernel_release(k);
}

static void test_prepared(void)
{
    int64_t n = is_real ? 100000 : 40;
    qn_error err = {0};
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector(QN_F32, n, QN_SPACE_CUDA, "x"), y = vector(QN_F32, n, QN_SPACE_CUDA, "y"),
            host = vector(QN_F32, n, QN_SPACE_HOST, "h");
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(1)};
    qn_call *call = NULL;
    stream_fill_bits(d.stream, &x, 0x3f800000, &err);
    qn_status status = qn_prepare(d.context, k, 3, args, on_stream(d.stream), &call, &err);
    qn_kernel_release(k);
    if (is_fine(status, &err, "prepared")) {
        for (int i = 0; i < 200 && status == QN_OK; i++) {
            if (i == 100) {
                const qn_arg two = qn_arg_f32(2);
                status = qn_call_set_scalar(call, 2, two.bits, &err);
            }
            if (status == QN_OK)
                status = qn_run(call, &err);
        }
        is_fine(status, &err, "run 200 times");
    }
    qn_call_release(call);
    qn_stream_copy(d.stream, &host, &y, &err);
    qn_view_release(&x);
    qn_view_release(&y);
    is_fine(qn_stream_fence(d.stream, &err), &err, "done");
    const float *h = host.data;
    tap_ok(h[0] == 300 && h[n - 1] == 300, "prepared calls add up: %g %g", (double)h[0],
           (double)h[n - 1]);
    qn_view_release(&host);
}

/* ---------------------------------------------------------------- copies */

enum { RIGHT, LEFT, PADDED, TILED, EVERY_OTHER, REVERSED, WIDE, MORTON, N_LAYOUTS };

static qn_layout layout_of(int kind, int64_t rows, int64_t columns)
{
    const int64_t extents[] = {rows, columns}, tile[] = {4, 6};
    const int64_t strides[N_LAYOUTS][2] = {
        [PADDED] = {columns + 5, 1}, [EVERY_OTHER] = {2 * columns, 2}, [WIDE] = {1, rows + 40}};
    qn_layout l = {0};
    qn_error err = {0};
    switch (kind) {
    case LEFT:
        qn_layout_left(2, extents, &l, &err);
        break;
    case TILED:
        qn_layout_tiled(2, extents, tile, NULL, NULL, &l, &err);
        break;
    case MORTON:
        qn_layout_morton(2, extents, NULL, &l, &err);
        break;
    case RIGHT:
    case REVERSED:
        qn_layout_right(2, extents, &l, &err);
        if (kind == REVERSED)
            qn_layout_reverse(&l, 0, &l, &err);
        break;
    default:
        qn_layout_strided(2, extents, strides[kind], &l, &err);
    }
    if (err.status)
        tap_ok(false, "test layout %d: %s", kind, err.message);
    return l;
}

static char *element(const qn_view *v, int64_t i, int64_t j)
{
    const int64_t index[] = {i, j};
    int64_t offset = 0;
    qn_layout_at(&v->layout, 2, index, &offset, NULL);
    return (char *)v->data + (offset - v->layout.origin) * qn_dtype_bytes(v->dtype);
}

/** Host to device, there into another layout, and back into a third; every element is compared. */
static void copy_around(int dtype, int a, int b, int64_t rows, int64_t columns)
{
    qn_layout la = layout_of(a, rows, columns), lb = layout_of(b, rows, columns);
    qn_view from = view_of(&la, dtype, QN_SPACE_HOST, "from"),
            there = view_of(&la, dtype, QN_SPACE_CUDA, "there"),
            turned = view_of(&lb, dtype, QN_SPACE_CUDA, "turned"),
            crossed = view_of(&lb, dtype, QN_SPACE_CUDA, "crossed"),
            back[3] = {view_of(&lb, dtype, QN_SPACE_HOST, "back"),
                       view_of(&la, dtype, QN_SPACE_HOST, "back"),
                       view_of(&lb, dtype, QN_SPACE_HOST, "back")};
    size_t bytes = (size_t)qn_dtype_bytes(dtype);
    qn_error err = {0};
    int n_failed = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        uint64_t bits[2] = {(uint64_t)i * UINT64_C(0x9e3779b97f4a7c15), (uint64_t)i};
        memcpy(element(&from, i / columns, i % columns), bits, bytes);
    }
    const struct {
        const qn_view *dst, *src;
    } copies[] = {{&there, &from},     {&turned, &there},    {&crossed, &from},
                  {&back[0], &turned}, {&back[1], &crossed}, {&back[2], &there}};
    for (int i = 0; i < 6 && n_failed == 0; i++) {
        qn_status status = i % 2 ? qn_deep_copy(d.context, copies[i].dst, copies[i].src, &err)
                                 : qn_stream_copy(d.stream, copies[i].dst, copies[i].src, &err);
        if (status && n_failed++ == 0)
            tap_note("%s to %s: %s", copies[i].src->label, copies[i].dst->label, err.message);
    }
    if (qn_stream_fence(d.stream, &err) && n_failed++ == 0)
        tap_note("fence: %s", err.message);
    for (int64_t i = 0; i < rows * columns && n_failed < 3; i++)
        for (int j = 0; j < 3; j++)
            if (memcmp(element(&back[j], i / columns, i % columns),
                       element(&from, i / columns, i % columns), bytes) != 0 &&
                n_failed++ < 3)
                tap_note("way %d (0: turned there, 1: turned in and out, 2: turned on the way "
                         "back), element (%" PRId64 ",%" PRId64 ") differs",
                         j, i / columns, i % columns);
    tap_ok(n_failed == 0, "%s %" PRId64 " x %" PRId64 ", layout %d to %d, there and back",
           qn_dtype_name(dtype), rows, columns, a, b);
    qn_view *all[] = {&from, &there, &turned, &crossed, &back[0], &back[1], &back[2]};
    for (int i = 0; i < 7; i++)
        qn_view_release(all[i]);
    qn_layout_release(&la);
    qn_layout_release(&lb);
}

static void test_copies(void)
{
    static const int dtypes[] = {QN_F32, QN_F64, QN_U8, QN_C128};
    int n_dtypes = is_real ? 4 : 1;
    for (int t = 0; t < n_dtypes; t++)
        for (int a = 0; a < N_LAYOUTS; a++)
            for (int b = 0; b < N_LAYOUTS; b++)
                if ((is_real && t == 0) || (a + b) % 4 == 0) {
                    bool has_morton = a == MORTON || b == MORTON;
                    copy_around(dtypes[t], a, b,
                                has_morton ? 64
                                : is_real  ? 236
                                           : 24,
                                has_morton ? 32
                                : is_real  ? 318
                                           : 36);
                }
    if (is_real)
        copy_around(QN_F64, LEFT, EVERY_OTHER, 2100, 3300); /* several pieces of 8 MiB */
}

/** What lies between the elements of a strided view is not touched. */
static void test_gaps(void)
{
    int64_t n = is_real ? 100001 : 101, half = (n + 1) / 2;
    qn_error err = {0};
    qn_view whole = vector(QN_F32, n, QN_SPACE_CUDA, "whole"), part = {0},
            host = vector(QN_F32, n, QN_SPACE_HOST, "h"),
            ones = vector(QN_F32, half, QN_SPACE_HOST, "ones");
    const qn_slice every_other = {.kind = QN_RANGE, .begin = 0, .end = n, .step = 2};
    fill_f32(&ones, 1, 0);
    is_fine(qn_subview(&whole, 1, &every_other, &part, &err), &err, "every other element");
    is_fine(qn_deep_copy(d.context, &part, &ones, &err), &err, "is written");
    is_fine(qn_deep_copy(d.context, &host, &whole, &err), &err, "and read");
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < n; i++)
        n_wrong += ((float *)host.data)[i] != (i % 2 ? 0 : 1);
    tap_ok(n_wrong == 0, "and no other: %" PRId64 " wrong", n_wrong);
    qn_view_release(&part);
    qn_view_release(&whole);
    qn_view_release(&host);
    qn_view_release(&ones);
}

static void test_memory(void)
{
    qn_view_type type;
    qn_view v = {0};
    qn_error err = {0};
    int64_t n = d.info.memory_bytes * 4;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = "huge", .space = QN_SPACE_CUDA, .stream = d.stream};
    qn_view_type_init(QN_U8, 1, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = QN_SPACE_CUDA;
    tap_ok(qn_view_create(d.context, &type, 1, &n, &o, &v, &err) == QN_ERR_MEMORY,
           "out of memory: %s", err.message);
    n = is_real ? 256 << 20 : 1 << 20;
    qn_status status = QN_OK;
    for (int i = 0; i < 200 && status == QN_OK; i++) {
        status = qn_view_create(d.context, &type, 1, &n, &o, &v, &err);
        if (status == QN_OK)
            status = stream_fill_bits(d.stream, &v, 3, &err);
        qn_view_release(&v);
    }
    is_fine(status, &err, "200 views of 256 MiB, each released at once");
    is_fine(qn_stream_fence(d.stream, &err), &err, "fence");
    is_fine(qn_cuda_trim(d.context, 0, &err), &err, "trim");
}

int main(void)
{
    char reason[256];
    if (!device_open(&d, true)) {
        tap_skip(d.no_gpu);
        return tap_done();
    }
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    is_real = !d.stub;
    if (!is_real)
        tap_skip(d.no_gpu[0] ? d.no_gpu : "the stub driver was asked for: smaller sizes");
    test_info();
    test_fill();
    test_triad();
    test_fault();
    test_streams();
    test_prepared();
    test_gaps();
    test_copies();
    test_memory();
    device_close(&d);
    if (d.stub)
        tap_ok(!d.stub->misuse(), "the driver was used well %s",
               d.stub->misuse() ? d.stub->misuse() : "");
    return tap_done();
}
