/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda_work.c: what runs the same on a real GPU and on the stub driver: results, faults,
 * lifetimes, graphs, copies. All of it once on the stub, with work that waits, and once on a GPU
 * where there is one. With an argument, times of a few launches, too.
 */
#define _POSIX_C_SOURCE 200809L
#include "runtime/context.h"
#include "tests/fill.h"
#include "tests/unit/gpu.h"

#include <stdlib.h>
#include <time.h>

enum { N = 1000, STREAMS = 8 };

static const stub_control *stub; /* NULL: a real GPU */

static qn_view host_vector(qn_context *c, int dtype, int64_t n)
{
    return vector_in(c, QN_SPACE_HOST, NULL, "host", dtype, n);
}

static qn_options on(qn_stream *s)
{
    return (qn_options){.bytes = sizeof(qn_options), .executor = QN_CUDA, .stream = s};
}

static void test_results(qn_context *c)
{
    qn_error err = {0};
    qn_stream *s = NULL;
    qn_stream_new(c, 0, &s, &err);
    qn_kernel *saxpy = kernel_of(SAXPY_TEXT), *steps = kernel_of(STEPS_TEXT);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, N),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, N);
    qn_view u = vector_in(c, QN_SPACE_CUDA, s, "u", QN_F64, N), h = host_vector(c, QN_F32, N),
            hu = host_vector(c, QN_F64, N);
    const qn_options o = on(s);
    fill_f32(&h, 1, 1);
    qn_stream_copy(s, &x, &h, &err);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
    const qn_arg stepped[] = {qn_arg_view(&u), qn_arg_int(QN_I64, 5)};
    tap_ok(qn_launch(c, saxpy, 3, args, &o, &err) == QN_OK &&
               qn_launch(c, saxpy, 3, args, &o, &err) == QN_OK,
           "saxpy twice %s", err.message);
    tap_ok(qn_launch(c, steps, 2, stepped, &o, &err) == QN_OK, "five steps %s", err.message);
    tap_ok(qn_stream_copy(s, &h, &y, &err) == QN_OK && qn_stream_copy(s, &hu, &u, &err) == QN_OK &&
               qn_stream_fence(s, &err) == QN_OK,
           "back and fence %s", err.message);
    bool is_right = true;
    for (int i = 0; i < N; i++)
        is_right =
            is_right && ((float *)h.data)[i] == 6 * (float)(i + 1) && ((double *)hu.data)[i] == 10;
    tap_ok(is_right, "the results");
    qn_kernel_release(saxpy);
    qn_kernel_release(steps);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&u);
    qn_view_release(&h);
    qn_view_release(&hu);
    qn_stream_release(s);
}

/** Launches a gather with some indices out of range. */
static qn_status gather(qn_context *c, const qn_kernel *k, qn_stream *s, int64_t first,
                        int64_t second, const char *label, qn_error *err)
{
    qn_view h = host_vector(c, QN_I64, N), x = vector_in(c, QN_SPACE_CUDA, s, label, QN_F64, N);
    qn_view index = vector_in(c, QN_SPACE_CUDA, s, "index", QN_I64, N),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F64, N);
    for (int64_t i = 0; i < N; i++)
        ((int64_t *)h.data)[i] = i == first || i == second ? N + i : i;
    qn_stream_copy(s, &index, &h, err);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&index), qn_arg_view(&y)};
    const qn_options o = on(s);
    qn_status status = qn_launch(c, k, 3, args, &o, err);
    qn_view_release(&h);
    qn_view_release(&x);
    qn_view_release(&index);
    qn_view_release(&y);
    return status;
}

static void test_faults(qn_context *c)
{
    qn_error err = {0};
    qn_stream *s = NULL;
    qn_kernel *k = kernel_of(GATHER_TEXT);
    qn_stream_new(c, 0, &s, &err);
    tap_ok(gather(c, k, s, -1, -1, "good", &err) == QN_OK &&
               gather(c, k, s, 700, 300, "first", &err) == QN_OK &&
               gather(c, k, s, 20, 10, "second", &err) == QN_OK,
           "launches give no errors themselves %s", err.message);
    tap_ok(qn_stream_fence(s, &err) == QN_ERR_BOUNDS, "the fence does");
    tap_is_str(err.message,
               "qn_launch: kernel \"gather\": out-of-bounds load: view \"first\", argument 0, "
               "dimension 0: index 1300 not in "
               "[0,1000); indices [1300], extents [1000]; iteration (300)",
               "the first iteration of the first launch, though its views are gone");
    tap_is_int(counters_of(c).faults, 2, "both were counted");
    tap_ok(qn_stream_fence(s, &err) == QN_OK, "it is told once");
    for (int i = 0; i < 100; i++)
        gather(c, k, s, i == 50 ? 7 : -1, -1, "many", &err);
    tap_ok(qn_stream_fence(s, &err) == QN_ERR_BOUNDS && strstr(err.message, "iteration (7)"),
           "of many: %s", err.message);
    qn_kernel_release(k);
    qn_stream_release(s);
}

/** Random launches on streams whose views, kernels and calls are released at once. */
static void test_lifetimes(qn_context *c, int n)
{
    qn_error err = {0};
    qn_stream *s[STREAMS] = {0};
    uint32_t seed = 12345;
    int n_failed = 0;
    for (int i = 0; i < STREAMS; i++)
        qn_stream_new(c, 0, &s[i], &err);
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        qn_stream *home = s[seed >> 8 & 7], *at = seed >> 12 & 1 ? home : s[seed >> 16 & 7];
        int64_t size = 1 + (seed >> 20 & 255);
        qn_kernel *k = kernel_of(SAXPY_TEXT);
        qn_view x = vector_in(c, seed >> 28 & 1 ? QN_SPACE_CUDA : QN_SPACE_CUDA_PINNED,
                              seed >> 28 & 1 ? home : NULL, "x", QN_F32, size);
        qn_view y = vector_in(c, QN_SPACE_CUDA, home, "y", QN_F32, size);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
        qn_options o = on(at);
        o.specialize = QN_SPECIALIZE_DYNAMIC;
        qn_call *call = NULL;
        qn_status status = seed >> 29 & 1 ? qn_launch(c, k, 3, args, &o, &err)
                                          : qn_prepare(c, k, 3, args, &o, &call, &err);
        if (status == QN_OK && call)
            status = qn_run(call, &err);
        n_failed += status != QN_OK;
        qn_call_release(call);
        qn_view_release(&x);
        qn_view_release(&y);
        qn_kernel_release(k);
    }
    tap_ok(n_failed == 0, "%d launches on %d streams, everything released at once %s", n, STREAMS,
           err.message);
    for (int i = 0; i < STREAMS; i++) {
        if (i & 1)
            n_failed += qn_stream_fence(s[i], &err) != QN_OK;
        qn_stream_release(s[i]);
    }
    tap_ok(n_failed == 0, "and fenced %s", err.message);
    tap_ok(!stub || !stub->misuse(), "nothing was used after it was freed %s",
           stub && stub->misuse() ? stub->misuse() : "");
}

/** Gives a stream indices of which one may be bad, and a run of the graph. */
static qn_status run_graph(qn_graph *g, qn_stream *s, const qn_view *index, int64_t bad,
                           qn_error *err)
{
    static int64_t indices[N];
    qn_view h = *index;
    h.data = indices;
    h.space = QN_SPACE_HOST;
    h.owner = NULL;
    for (int64_t i = 0; i < N; i++)
        indices[i] = i == bad ? -1 : i;
    qn_status status = qn_stream_copy(s, index, &h, err);
    return status ? status : qn_graph_run(g, s, err);
}

/** Graphs whose calls may fault: the third does, or the second and the third. */
static void test_graph_faults(qn_context *c)
{
    qn_error err = {0};
    qn_stream *s = NULL, *other = NULL;
    qn_stream_new(c, 0, &s, &err);
    qn_stream_new(c, 0, &other, &err);
    qn_kernel *k = kernel_of(GATHER_TEXT), *saxpy = kernel_of(SAXPY_TEXT);
    qn_view a = vector_in(c, QN_SPACE_CUDA, s, "a", QN_F64, N),
            i = vector_in(c, QN_SPACE_CUDA, s, "i", QN_I64, N);
    qn_view j = vector_in(c, QN_SPACE_CUDA, s, "j", QN_I64, N),
            b = vector_in(c, QN_SPACE_CUDA, s, "b", QN_F64, N);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, N);
    const qn_options o = on(s);
    const qn_arg first[] = {qn_arg_view(&a), qn_arg_view(&i), qn_arg_view(&b)},
                 second[] = {qn_arg_view(&b), qn_arg_view(&j), qn_arg_view(&a)};
    const qn_arg proved[] = {qn_arg_view(&x), qn_arg_view(&x), qn_arg_f32(1)};
    qn_call *calls[3] = {0};
    qn_graph *g = NULL;
    qn_prepare(c, saxpy, 3, proved, &o, &calls[0], &err);
    qn_prepare(c, k, 3, first, &o, &calls[1], &err);
    qn_prepare(c, k, 3, second, &o, &calls[2], &err);
    tap_ok(qn_graph_new(c, 3, calls, &g, &err) == QN_OK, "a graph of calls that may fault %s",
           err.message);
    for (int n = 0; n < 3; n++)
        qn_call_release(calls[n]);
    qn_kernel_release(k);
    qn_kernel_release(saxpy);
    int64_t before = counters_of(c).faults;
    tap_ok(run_graph(g, s, &i, -1, &err) == QN_OK && run_graph(g, s, &j, -1, &err) == QN_OK &&
               qn_stream_fence(s, &err) == QN_OK,
           "no fault %s", err.message);
    tap_ok(run_graph(g, s, &j, 77, &err) == QN_OK && qn_stream_fence(s, &err) == QN_ERR_BOUNDS &&
               strstr(err.message,
                      "out-of-bounds load: view \"b\", argument 0, dimension 0: index -1") &&
               strstr(err.message, "iteration (77)"),
           "of the third call: %s", err.message);
    tap_ok(run_graph(g, s, &i, 900, &err) == QN_OK && qn_stream_fence(s, &err) == QN_ERR_BOUNDS &&
               strstr(err.message, "view \"a\"") && strstr(err.message, "iteration (900)"),
           "of the second and the third: %s", err.message);
    tap_is_int(counters_of(c).faults - before, 3, "all are counted");
    tap_ok(run_graph(g, s, &i, -1, &err) == QN_OK && run_graph(g, s, &j, -1, &err) == QN_OK &&
               qn_stream_fence(s, &err) == QN_ERR_BOUNDS,
           "one of two runs");
    tap_ok(qn_graph_run(g, s, &err) == QN_OK && qn_stream_fence(s, &err) == QN_OK,
           "records are cleared %s", err.message);
    int n_failed = 0;
    for (int n = 0; n < 200; n++) /* on two streams in turn; the run knows which stream it was on */
        n_failed += run_graph(g, s, &i, n == 100 ? 5 : -1, &err) != QN_OK ||
                    qn_graph_run(g, other, &err) != QN_OK;
    qn_graph_release(g);
    qn_view *views[] = {&a, &b, &i, &j, &x};
    for (int n = 0; n < 5; n++)
        qn_view_release(views[n]);
    tap_ok(n_failed == 0 && qn_stream_fence(s, &err) == QN_ERR_BOUNDS &&
               strstr(err.message, "iteration (5)"),
           "of 400 runs, after everything was released: %s", err.message);
    qn_stream_fence(other, &err);
    tap_ok(qn_stream_fence(s, &err) == QN_OK && qn_stream_fence(other, &err) == QN_OK,
           "told once %s", err.message);
    qn_stream_release(s);
    qn_stream_release(other);
}

static void test_graph(qn_context *c)
{
    qn_error err = {0};
    qn_stream *s = NULL, *other = NULL;
    qn_stream_new(c, 0, &s, &err);
    qn_stream_new(c, 0, &other, &err);
    qn_kernel *saxpy = kernel_of(SAXPY_TEXT);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, N),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, N), h = host_vector(c, QN_F32, N);
    fill_f32(&h, 1, 0);
    qn_stream_copy(s, &x, &h, &err);
    const qn_options o = on(s);
    const qn_arg up[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)},
                 down[] = {qn_arg_view(&y), qn_arg_view(&x), qn_arg_f32(1)};
    qn_call *calls[2] = {0};
    qn_graph *g = NULL;
    tap_ok(qn_prepare(c, saxpy, 3, up, &o, &calls[0], &err) == QN_OK &&
               qn_prepare(c, saxpy, 3, down, &o, &calls[1], &err) == QN_OK,
           "two calls %s", err.message);
    tap_ok(qn_graph_new(c, 2, calls, &g, &err) == QN_OK, "a graph %s", err.message);
    qn_call_release(calls[0]);
    qn_call_release(calls[1]);
    bool is_run = true;
    for (int i = 0; i < 3; i++)
        is_run = is_run && qn_graph_run(g, s, &err) == QN_OK;
    tap_ok(is_run && qn_stream_copy(s, &h, &x, &err) == QN_OK && qn_stream_fence(s, &err) == QN_OK,
           "run three times %s", err.message);
    /* y += 2x; x += y: (1,0), (3,2), (11,8), (41,30) */
    tap_ok(((float *)h.data)[0] == 41 && ((float *)h.data)[N - 1] == 41, "the result is %g",
           (double)((float *)h.data)[0]);
    tap_ok(qn_graph_run(g, other, &err) == QN_OK && qn_stream_fence(other, &err) == QN_OK,
           "on another stream");
    qn_graph_release(g);
    tap_ok(qn_graph_new(c, 0, calls, &g, &err) == QN_ERR_ARGUMENT &&
               qn_graph_new(c, 1, (qn_call *[]){NULL}, &g, &err) == QN_ERR_ARGUMENT,
           "no calls, NULL: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&h);
    qn_kernel_release(saxpy);
    qn_stream_release(s);
    qn_stream_release(other);
}

/** Strided and transposing copies of 2-d views through the device and back. */
static void test_copies(qn_context *c)
{
    static const int64_t extents[] = {130, 70};
    static const int64_t strides[][2] = {{70, 1}, {1, 130}, {80, 1}, {1, 141}, {140, 2}};
    qn_error err = {0};
    int n_failed = 0;
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            qn_layout la, lb;
            qn_view h = {0}, d = {0}, e = {0}, back = {0};
            qn_view_type type;
            qn_layout_strided(2, extents, strides[a], &la, NULL);
            qn_layout_strided(2, extents, strides[b], &lb, NULL);
            qn_view_type_init(QN_F32, 2, NULL, QN_FAMILY_ANY, &type, NULL);
            qn_view_create_layout(c, &type, &la, NULL, &h, &err);
            qn_view_create_layout(c, &type, &lb, NULL, &back, &err);
            type.space = QN_SPACE_CUDA;
            const qn_alloc_options o = {.bytes = sizeof o, .space = QN_SPACE_CUDA};
            qn_view_create_layout(c, &type, &lb, &o, &d, &err);
            qn_view_create_layout(c, &type, &la, &o, &e, &err);
            for (int64_t i = 0; i < 130; i++)
                for (int64_t j = 0; j < 70; j++)
                    ((float *)h.data)[i * strides[a][0] + j * strides[a][1]] = (float)(100 * i + j);
            bool is_right = qn_deep_copy(c, &d, &h, &err) == QN_OK &&
                            qn_deep_copy(c, &e, &d, &err) == QN_OK &&
                            qn_deep_copy(c, &back, &e, &err) == QN_OK;
            for (int64_t i = 0; is_right && i < 130; i++)
                for (int64_t j = 0; j < 70; j++)
                    is_right =
                        is_right && ((float *)back.data)[i * strides[b][0] + j * strides[b][1]] ==
                                        (float)(100 * i + j);
            n_failed += !is_right;
            qn_view_release(&h);
            qn_view_release(&d);
            qn_view_release(&e);
            qn_view_release(&back);
        }
    tap_ok(n_failed == 0, "copies to the device, on it and back: %d wrong %s", n_failed,
           err.message);
}

/** Bandwidth and cost of launches, for people. */
static void print_times(qn_context *c)
{
    enum { LARGE = 1 << 27, REPEATS = 20 };
    qn_error err = {0};
    qn_stream *s = NULL;
    qn_mark *begin = NULL, *end = NULL;
    qn_call *call = NULL;
    double ms = 0;
    qn_stream_new(c, 0, &s, &err);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, LARGE),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, LARGE);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
    const qn_options o = on(s);
    qn_launch(c, k, 3, args, &o, &err);
    qn_stream_mark(s, 1, &begin, &err);
    for (int i = 0; i < REPEATS; i++)
        qn_launch(c, k, 3, args, &o, &err);
    qn_stream_mark(s, 1, &end, &err);
    qn_stream_fence(s, &err);
    qn_mark_milliseconds(begin, end, &ms, &err);
    tap_note("saxpy f32, 2 x 512 MiB: %.0f GB/s",
             12.0 * (double)LARGE * (double)REPEATS / ms * 1e-6);
    qn_mark_release(begin);
    qn_mark_release(end);
    qn_stream_mark(s, 1, &begin, &err);
    for (int i = 0; i < REPEATS; i++)
        qn_stream_copy(s, &x, &y, &err);
    qn_stream_mark(s, 1, &end, &err);
    qn_stream_fence(s, &err);
    qn_mark_milliseconds(begin, end, &ms, &err);
    tap_note("device to device copy: %.0f GB/s", 8.0 * (double)LARGE * (double)REPEATS / ms * 1e-6);
    qn_view_release(&x);
    qn_view_release(&y);
    x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, 1000);
    y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, 1000);
    qn_prepare(c, k, 3, args, &o, &call, &err);
    for (int way = 0; way < 2; way++) {
        struct timespec a, b;
        qn_launch(c, k, 3, args, &o, &err);
        qn_stream_fence(s, &err);
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 1000; i++)
            way ? qn_run(call, &err) : qn_launch(c, k, 3, args, &o, &err);
        clock_gettime(CLOCK_MONOTONIC, &b);
        qn_stream_fence(s, &err);
        tap_note("%s: %.2f us", way ? "prepared launch" : "launch through the cache",
                 ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) * 1e-6);
    }
    qn_call_release(call);
    qn_mark_release(begin);
    qn_mark_release(end);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_stream_release(s);
}

/** Numbers 1, 2, ... from a view of any device, with a step between them. */
static bool holds_numbers(qn_context *c, const qn_view *v, int64_t n, float step)
{
    qn_error err = {0};
    qn_view h = host_vector(c, QN_F32, n);
    bool is_right = qn_deep_copy(c, &h, v, &err) == QN_OK;
    for (int64_t i = 0; is_right && i < n; i++)
        is_right = ((float *)h.data)[i] == step * (float)(i + 1);
    qn_view_release(&h);
    return is_right;
}

/** Copies between two devices, dense and with gaps, and kernels of one on memory of the other. */
static void test_two_devices(qn_context *c)
{
    qn_error err = {0};
    qn_stream *near = NULL, *far = NULL;
    int n = 0;
    qn_cuda_device_count(c, &n, &err);
    if (n < 2) {
        tap_skip("fewer than two GPUs: nothing goes between them");
        return;
    }
    if (stub)
        stub->peers(1);
    qn_stream_new(c, 0, &near, &err);
    qn_stream_new(c, 1, &far, &err);
    qn_view x = vector_in(c, QN_SPACE_CUDA, near, "x", QN_F32, 2 * N),
            y = vector_in(c, QN_SPACE_CUDA, far, "y", QN_F32, N);
    qn_view z = vector_in(c, QN_SPACE_CUDA, far, "z", QN_F32, 2 * N),
            h = host_vector(c, QN_F32, 2 * N), odd = {0}, part = {0};
    const qn_slice second = {.kind = QN_RANGE, .begin = 1, .end = 2 * N, .step = 2},
                   half = {.kind = QN_RANGE, .end = N, .step = 1};
    fill_f32(&h, 1, 1);
    tap_ok(qn_deep_copy(c, &x, &h, &err) == QN_OK && qn_deep_copy(c, &z, &x, &err) == QN_OK &&
               holds_numbers(c, &z, 2 * N, 1),
           "a copy between devices %s", err.message);
    tap_ok(qn_subview(&x, 1, &second, &odd, &err) == QN_OK &&
               qn_stream_copy(far, &y, &odd, &err) == QN_OK &&
               qn_stream_fence(far, &err) == QN_OK && holds_numbers(c, &y, N, 2),
           "and of every other element %s", err.message);
    qn_kernel *saxpy = kernel_of(SAXPY_TEXT);
    const qn_options o = on(far);
    qn_subview(&x, 1, &half, &part, &err);
    const qn_arg args[] = {qn_arg_view(&part), qn_arg_view(&y), qn_arg_f32(3)};
    qn_status status = qn_launch(c, saxpy, 3, args, &o, &err);
    qn_view_release(&part);
    qn_view_release(&odd);
    qn_view_release(&x); /* while the other device may be reading it */
    x = vector_in(c, QN_SPACE_CUDA, near, "x", QN_F32, 2 * N);
    stream_fill_bits(near, &x, 0, NULL);
    if (status == QN_ERR_SPACE && !stub)
        tap_skip(err.message);
    else
        tap_ok(status == QN_OK && qn_stream_fence(far, &err) == QN_OK && holds_numbers(c, &y, N, 5),
               "a kernel reads memory of the other device, which was released after the launch %s",
               err.message);
    qn_kernel_release(saxpy);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&z);
    qn_view_release(&h);
    qn_stream_release(near);
    qn_stream_release(far);
    if (stub)
        stub->peers(0);
}

/** The assembler of the stub says that registers spill where so many blocks, or more, must fit. The
 * stub's cubin is the text. */
static void test_spills(qn_context *c)
{
    enum { MANY = 1 << 15 }; /* of fewer elements, blocks have fewer threads */
    static const struct {
        const char *least, *kept, *what;
    } way[] = {{NULL, ".minnctapersm 8", "what does not spill keeps the limit of registers: %s"},
               {"7", ".minnctapersm 6",
                "what spills is assembled again for three quarters of the blocks: %s"},
               {"1", NULL, "what spills then, too, is assembled without the limit: %s"}};
    for (int spills = 0; spills < 3; spills++) {
        qn_error err = {0};
        qn_stream *s = NULL;
        qn_kernel *k = kernel_of(COPY_TEXT);
        qn_view x = vector_in(c, QN_SPACE_CUDA, NULL, "x", QN_F32, MANY + spills),
                y = vector_in(c, QN_SPACE_CUDA, NULL, "y", QN_F32, MANY + spills);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
        qn_code *f = NULL;
        bool ok = qn_stream_new(c, 0, &s, &err) == QN_OK;
        const qn_options o = on(s);
        if (spills)
            setenv("QUERN_STUB_SPILLS", way[spills].least, 1);
        ok = ok && qn_launch(c, k, 2, args, &o, &err) == QN_OK &&
             qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK;
        unsetenv("QUERN_STUB_SPILLS");
        bool has_limit = ok && strstr(f->ptx.data, ".minnctapersm 8") && f->cubin.n;
        const char *kept = has_limit ? strstr(f->cubin.data, ".minnctapersm ") : NULL;
        bool is_as_said = way[spills].kept ? kept && strncmp(kept, way[spills].kept,
                                                             strlen(way[spills].kept)) == 0
                                           : !kept;
        tap_ok(has_limit && is_as_said, way[spills].what, err.message);
        qn_code_release(f);
        qn_stream_release(s);
        qn_view_release(&x);
        qn_view_release(&y);
        qn_kernel_release(k);
    }
}

static void test_all(qn_context *c, int n_launches)
{
    test_two_devices(c);
    test_results(c);
    test_faults(c);
    test_graph(c);
    test_graph_faults(c);
    test_copies(c);
    test_lifetimes(c, n_launches);
}

int main(int argc, char **argv)
{
    char reason[256];
    (void)argv;
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    stub = stub_open(STUB_PATH);
    if (stub) {
        qn_context *c = stub_context();
        test_spills(c);
        stub->defer(1);
        test_all(c, 400);
        qn_context_release(c);
        stub->defer(0);
        tap_ok(is_clean(stub), "nothing is left");
    }
    stub = NULL;
    qn_context *c = context_with(NULL);
    qn_error err = {0};
    int n = 0;
    if (qn_cuda_device_count(c, &n, &err) != QN_OK) {
        tap_skip(err.message);
    } else {
        test_all(c, 10000);
        if (argc > 1)
            print_times(c);
    }
    qn_context_release(c);
    return tap_done();
}
