/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_random.c: random launches over 8 streams, whose views, kernels, calls, marks and streams
 * are released as soon as they were used. Each adds to the sums of its stream, which are known:
 * memory that is freed or used again too early, work that overtakes other work, and a launch that
 * is lost or done twice show in them. Some launches fail on purpose.
 *
 *   test_gpu_random [seed]      10,000 launches or 30 seconds on a GPU, 400 on the stub driver
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/fill.h"
#include "tests/device.h"
#include "tests/unit/launch.h"

#include <time.h>

enum { N_STREAMS = 8, MOST = 4096 };

static device d;
static uint64_t state;
static int n_bad; /* calls that failed */

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)n);
}

static bool check(qn_status status, const qn_error *err)
{
    if (status && n_bad++ < 10)
        tap_note("%s: %s", qn_status_name((int)status), err->message);
    return status == QN_OK;
}

/* ---------------------------------------------------------------- kernels */

/** acc[i] += s * t[i], in several ways; the last stores to t alone, out of bounds. */
enum { ADD, ADD_2D, GATHER, SUM, FAULT, N_KINDS };

static const char *const texts[N_KINDS] = {
    [ADD] = "kernel \"add\" {\n view acc: i64[1]; view t: i64[1]; scalar s: i64;\n %z: i64 = const "
            "0; %n: i64 = extent t, 0;\n"
            " %i: i64 = parallel %z, %n; %s: i64 = param s; %t: i64 = load t[%i]; %a: i64 = load "
            "acc[%i];\n"
            " %p: i64 = mul %t, %s; %q: i64 = add %p, %a; store acc[%i], %q;\n}\n",
    [ADD_2D] = "kernel \"add_2d\" {\n view acc: i64[1]; view t: i64[2]; scalar s: i64;\n %z: i64 = "
               "const 0; %n: i64 = extent t, 0;\n"
               " %m: i64 = extent t, 1; %i: i64 = parallel %z, %n; %j: i64 = parallel %z, %m; %s: "
               "i64 = param s;\n"
               " %r: i64 = mul %i, %m; %at: i64 = add %r, %j; %t: i64 = load t[%i, %j]; %a: i64 = "
               "load acc[%at];\n"
               " %p: i64 = mul %t, %s; %q: i64 = add %p, %a; store acc[%at], %q;\n}\n",
    [GATHER] = "kernel \"gather\" {\n view acc: i64[1]; view t: i64[1]; scalar s: i64;\n %z: i64 = "
               "const 0; %n: i64 = extent t, 0;\n"
               " %i: i64 = parallel %z, %n; %s: i64 = param s; %k: i64 = load t[%i]; %m: i64 = and "
               "%k, %z; %t: i64 = load t[%m];\n"
               " %a: i64 = load acc[%i]; %p: i64 = mul %t, %s; %q: i64 = add %p, %a; store "
               "acc[%i], %q;\n}\n",
    [SUM] = "kernel \"sum\" {\n view acc: i64[1]; view t: i64[1]; scalar s: i64;\n %z: i64 = const "
            "0; %n: i64 = extent t, 0;\n"
            " %k: i64 = reduction %z, %n; %s: i64 = param s;\n"
            " %t: i64 = reduce sum over %k { %x: i64 = load t[%k]; yield %x; };\n"
            " %a: i64 = load acc[%z]; %p: i64 = mul %t, %s; %q: i64 = add %p, %a; store acc[%z], "
            "%q;\n}\n",
    [FAULT] = ("kernel \"fault\" {\n view acc: i64[1]; view t: i64[1]; scalar s: i64;\n %z: i64 = "
               "const 0; %n: i64 = extent t, 0;\n"
               " %i: i64 = parallel %z, %n; %k: i64 = load t[%i]; %w: i64 = mul %k, %n; %v: i64 = "
               "load t[%w]; store t[%i], %v;\n}\n"),
};

/* ---------------------------------------------------------------- one launch */

typedef struct lane {
    qn_stream *stream;
    qn_view sums; /* of MOST elements, in its stream */
    uint64_t expected[MOST];
    bool has_failed; /* a fault since the last fence */
} lane;

static lane lanes[N_STREAMS];
static qn_kernel *kernels[N_KINDS];

static qn_view create(const qn_layout *l, qn_stream *s, const char *label)
{
    qn_view v = {0};
    qn_view_type type;
    qn_error err = {0};
    const qn_alloc_options o = {.bytes = sizeof o,
                                .label = label,
                                .space = QN_SPACE_CUDA,
                                .stream = s,
                                .uninitialised = below(2)};
    qn_view_type_init(QN_I64, l->rank, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = QN_SPACE_CUDA;
    check(qn_view_create_layout(d.context, &type, l, &o, &v, &err), &err);
    return v;
}

/** A layout for t, of at most MOST elements. */
static qn_layout random_layout(int kind)
{
    const int64_t most = d.stub ? 64 : MOST, n = 1 + below((int)most), rows = 1 + below((int)n),
                  both[] = {rows, n / rows}, tile[] = {4, 4}, strides[] = {1, rows + 3};
    qn_layout l = {0};
    if (kind != ADD_2D)
        qn_layout_right(1, &n, &l, NULL);
    else if (below(3) == 0)
        qn_layout_left(2, both, &l, NULL);
    else if (below(2) == 0)
        qn_layout_tiled(2, both, tile, NULL, NULL, &l, NULL);
    else
        qn_layout_strided(2, both, strides, &l, NULL);
    return l;
}

/** Work given to `to` from now on comes after that of `from`. */
static void order(qn_stream *to, qn_stream *from)
{
    qn_mark *m = NULL;
    qn_error err = {0};
    if (to == from)
        return;
    if (check(qn_stream_mark(from, 0, &m, &err), &err))
        check(qn_stream_after(to, m, &err), &err);
    qn_mark_release(m);
}

static void expect(lane *a, int kind, const qn_layout *l, uint64_t value, uint64_t s)
{
    int64_t n = qn_layout_size(l);
    if (kind == SUM)
        a->expected[0] += (uint64_t)n * value * s;
    else if (kind == FAULT)
        a->has_failed = a->has_failed || value * (uint64_t)n >= (uint64_t)n; /* value > 0 */
    else
        for (int64_t i = 0; i < n; i++)
            a->expected[i] += value * s;
}

static void launch(const qn_kernel *k, const qn_arg *args, qn_stream *s)
{
    const qn_options o = {.bytes = sizeof o,
                          .executor = QN_CUDA,
                          .stream = s,
                          .specialize = below(200) ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT};
    qn_error err = {0};
    qn_call *call = NULL;
    if (below(5)) {
        check(qn_launch(d.context, k, 3, args, &o, &err), &err);
    } else if (check(qn_prepare(d.context, k, 3, args, &o, &call, &err), &err)) {
        check(qn_run(call, &err), &err);
        qn_call_release(call);
    }
}

static void one_launch(void)
{
    lane *a = &lanes[below(N_STREAMS)], *home = below(4) ? a : &lanes[below(N_STREAMS)];
    int kind = below(100) ? below(FAULT) : FAULT;
    bool is_elsewhere =
        below(50) == 0 && kind != FAULT; /* in a stream that lives for this launch only */
    qn_stream *s = a->stream;
    qn_error err = {0};
    if (is_elsewhere && check(qn_stream_new(d.context, 0, &s, &err), &err))
        order(s, a->stream);
    uint64_t value = 1 + (uint64_t)below(1000);
    qn_layout l = random_layout(kind);
    qn_view t = create(&l, home->stream, "t");
    check(stream_fill_bits(home->stream, &t, value, &err), &err);
    order(s, home->stream);
    qn_kernel *k = below(20) ? qn_kernel_retain(kernels[kind]) : kernel_of(texts[kind]);
    const qn_arg args[] = {qn_arg_view(&a->sums), qn_arg_view(&t),
                           qn_arg_int(QN_I64, below(7) - 3)};
    launch(k, args, s);
    qn_kernel_release(k);
    qn_view_release(&t);
    expect(a, kind, &l, value, args[2].bits);
    qn_layout_release(&l);
    if (is_elsewhere) {
        order(a->stream, s);
        qn_stream_release(s);
    }
}

/** A fence, which reports if and only if a launch failed. */
static bool fence(lane *a)
{
    qn_error err = {0};
    qn_status status = qn_stream_fence(a->stream, &err),
              expected = a->has_failed ? QN_ERR_BOUNDS : QN_OK;
    a->has_failed = false;
    if (status != expected && n_bad++ < 10)
        tap_note("stream %d: fence: %s \"%s\", expected %s", (int)(a - lanes),
                 qn_status_name((int)status), err.message, qn_status_name((int)expected));
    return status == expected;
}

/* ---------------------------------------------------------------- all of them */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool open_lanes(void)
{
    const int64_t n = MOST;
    qn_layout l;
    qn_error err = {0};
    qn_layout_right(1, &n, &l, NULL);
    for (int i = 0; i < N_STREAMS; i++) {
        if (!check(qn_stream_new(d.context, 0, &lanes[i].stream, &err), &err))
            return false;
        lanes[i].sums = create(&l, lanes[i].stream, "sums");
        check(stream_fill_bits(lanes[i].stream, &lanes[i].sums, 0, &err), &err);
    }
    return n_bad == 0;
}

static void compare_sums(void)
{
    static uint64_t found[MOST];
    const int64_t n = MOST;
    qn_layout l;
    qn_view host;
    qn_error err = {0};
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("found", found, QN_I64, &l, 0, &host, NULL);
    for (int i = 0; i < N_STREAMS; i++) {
        int n_wrong = 0;
        check(qn_deep_copy(d.context, &host, &lanes[i].sums, &err), &err);
        for (int j = 0; j < MOST; j++)
            if (found[j] != lanes[i].expected[j] && n_wrong++ < 5)
                tap_note("stream %d, element %d: %" PRIu64 ", expected %" PRIu64
                         ", difference %" PRId64,
                         i, j, found[j], lanes[i].expected[j],
                         (int64_t)(found[j] - lanes[i].expected[j]));
        tap_ok(n_wrong == 0, "stream %d: %d of %d sums are wrong", i, n_wrong, MOST);
    }
}

static void run_all(uint64_t seed)
{
    int n = 0, most = d.stub ? 400 : 10000;
    double begin = now();
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < N_KINDS; i++)
        kernels[i] = kernel_of(texts[i]);
    if (tap_ok(open_lanes(), "%d streams", N_STREAMS)) {
        if (d.stub)
            d.stub->defer(1);
        for (; n < most && n_bad < 10 && now() - begin < 30; n++) {
            one_launch();
            if (below(200) == 0)
                fence(&lanes[below(N_STREAMS)]);
        }
        for (int i = 0; i < N_STREAMS; i++)
            fence(&lanes[i]);
        if (d.stub)
            d.stub->defer(0);
        tap_ok(n_bad == 0, "%d launches, %d calls went wrong, %.1f s; seed %" PRIu64, n, n_bad,
               now() - begin, seed);
        if (n < most)
            tap_note("%d launches were to be done", most);
        compare_sums();
        if (d.stub)
            d.stub->defer(1);
        for (int i = 0; i < 200; i++) /* under way when all is released */
            one_launch();
    }
    for (int i = 0; i < N_STREAMS; i++) {
        qn_view_release(&lanes[i].sums);
        qn_stream_release(lanes[i].stream);
    }
    for (int i = 0; i < N_KINDS; i++)
        qn_kernel_release(kernels[i]);
}

int main(int argc, char **argv)
{
    char reason[256];
    bool is_open = device_open(&d, true);
    if (!is_open || !has_x86(reason, sizeof reason)) {
        tap_skip(is_open ? reason : d.no_gpu);
        device_close(&d);
        return tap_done();
    }
    if (d.stub)
        tap_skip(d.no_gpu[0] ? d.no_gpu : "the stub driver was asked for: fewer launches");
    run_all(argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    device_close(&d);
    if (d.stub)
        d.stub->defer(0);
    tap_ok(n_bad == 0, "all was released with work under way");
    if (d.stub)
        tap_ok(!d.stub->misuse() && d.stub->live(STUB_BLOCKS) == 0 &&
                   d.stub->live(STUB_EVENTS) == 0 && d.stub->live(STUB_STREAMS) == 0,
               "nothing is left, %" PRId64 " blocks, and nothing was misused %s",
               d.stub->live(STUB_BLOCKS), d.stub->misuse() ? d.stub->misuse() : "");
    return tap_done();
}
