/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_copy.c: qn_deep_copy of square arrays on one thread, against memcpy of the same bytes
 * and against a transposition written by hand; x = a + s b out of cache against the same with
 * streaming stores written by hand. Both sides run on touched memory, in turns, and results are
 * checked.
 */
#include "bench.h"
#include "native.h"
#include "tests/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RIGHT = 0, LEFT = 1, MOST_SAMPLES = 15 };
enum { MEMCPY = 0, BY_HAND = 1 };
#define SAMPLE_SECONDS 2e-3

typedef struct copy_case {
    const char *name;
    int dtype;
    int64_t edge;
    int dst, src; /* RIGHT or LEFT */
    int against;
    double goal;
} copy_case;

static qn_status new_array(bench *b, const copy_case *c, int order, qn_view *out, qn_error *err)
{
    const int64_t extents[2] = {c->edge, c->edge};
    qn_layout l;
    qn_status status =
        order == RIGHT ? qn_layout_right(2, extents, &l, err) : qn_layout_left(2, extents, &l, err);
    return status ? status : qn_view_alloc(b->context, "array", c->dtype, &l, 0, out, err);
}

static size_t bytes_of(const copy_case *c)
{
    return (size_t)(c->edge * c->edge * qn_dtype_bytes(c->dtype));
}

/** Compares through the other order of loops than either side uses: tiles. */
static bool is_copied(const copy_case *c, const char *dst, const char *src)
{
    enum { TILE = 64 };
    const size_t bytes = (size_t)qn_dtype_bytes(c->dtype);
    const int64_t n = c->edge;
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t j = 0; j < n; j += TILE)
            for (int64_t y = i; y < i + TILE; y++)
                for (int64_t x = j; x < j + TILE; x++) {
                    size_t right = (size_t)(y * n + x) * bytes, left = (size_t)(y + x * n) * bytes;
                    if (memcmp(dst + (c->dst == RIGHT ? right : left),
                               src + (c->src == RIGHT ? right : left), bytes) != 0)
                        return false;
                }
    return true;
}

static void fill(const copy_case *c, const qn_view *v)
{
    uint32_t state = 1;
    unsigned char *p = v->data;
    for (size_t i = 0; i < bytes_of(c); i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (unsigned char)(state >> 24);
    }
}

/** One copy of ours: qn_deep_copy against memcpy; a prepared kernel against the transposition by
 * hand, which is a function of nothing but pointers too. */
static qn_status run_ours(bench *b, qn_call *call, const qn_view *dst, const qn_view *src,
                          qn_error *err)
{
    return call ? qn_run(call, err) : qn_deep_copy_on(b->context, QN_SERIAL, dst, src, err);
}

static qn_status prepare_copy(bench *b, const copy_case *c, const qn_view *dst, const qn_view *src,
                              qn_call **out, qn_error *err)
{
    qn_builder *k = qn_builder_new("copy", 0);
    qn_kernel *kernel = NULL;
    qn_param to = qn_view_param(k, "dst", c->dtype, 2, 0),
             from = qn_view_param(k, "src", c->dtype, 2, QN_READ_ONLY);
    qn_val index[2] = {qn_parallel_over(k, to, 0), qn_parallel_over(k, to, 1)};
    qn_store(k, to, 2, index, qn_load(k, from, 2, index));
    qn_status status = qn_finish(k, &kernel, err);
    qn_builder_release(k);
    const qn_arg args[2] = {qn_arg_view(dst), qn_arg_view(src)};
    const qn_options o = bench_options(b);
    if (status == QN_OK)
        status = qn_prepare(b->context, kernel, 2, args, &o, out, err);
    qn_kernel_release(kernel);
    return status;
}

static void run_theirs(const copy_case *c, const qn_view *dst, const qn_view *src)
{
    if (c->against == MEMCPY)
        memcpy(dst->data, src->data, bytes_of(c));
    else
        native_transpose(dst->data, src->data, c->edge, (int)qn_dtype_bytes(c->dtype),
                         bytes_of(c) > (32u << 20));
}

static void time_case(bench *b, const copy_case *c, qn_call *call, const qn_view *dst,
                      const qn_view *src)
{
    double ours[MOST_SAMPLES], theirs[MOST_SAMPLES];
    qn_error error = {0};
    fill(c, src);
    qn_status status = run_ours(b, call, dst, src, &error); /* a deep copy compiles */
    if (status || !is_copied(c, dst->data, src->data)) {
        bench_wrong(b, c->name, "%s", status ? error.message : "elements differ");
        return;
    }
    double once = bench_now();
    run_theirs(c, dst, src);
    once = bench_now() - once;
    int n = once < SAMPLE_SECONDS ? (int)(SAMPLE_SECONDS / once) + 1 : 1,
        samples = n > 1 ? MOST_SAMPLES : 9;
    for (int s = 0; s < samples && !status; s++) {
        double begin = bench_now();
        for (int i = 0; i < n && !status; i++)
            status = run_ours(b, call, dst, src, &error);
        double middle = bench_now();
        for (int i = 0; i < n; i++)
            run_theirs(c, dst, src);
        ours[s] = (middle - begin) / n;
        theirs[s] = (bench_now() - middle) / n;
    }
    if (status) {
        bench_wrong(b, c->name, "%s", error.message);
        return;
    }
    bench_line line = {
        .name = c->name, .group = GROUP_COST, .goal = c->goal, .short_below = c->goal};
    bench_report_pairs(b, &line, ours, theirs, samples);
}

static void copy_cases(bench *b)
{
    static const copy_case cases[] = {
        {"deep_copy/f64/4096/right-right", QN_F64, 4096, RIGHT, RIGHT, MEMCPY, 0.9},
        {"deep_copy/f64/4096/right-left", QN_F64, 4096, LEFT, RIGHT, MEMCPY, 0.6},
        {"deep_copy/f32/8192/left-right", QN_F32, 8192, RIGHT, LEFT, MEMCPY, 0.6},
        {"deep_copy/u16/16384/right-left", QN_U16, 16384, LEFT, RIGHT, MEMCPY, 0.5},
        {"deep_copy/u8/16384/right-left", QN_U8, 16384, LEFT, RIGHT, MEMCPY, 0.5},
        {"transpose/f64/4096", QN_F64, 4096, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/f32/8192", QN_F32, 8192, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/u16/16384", QN_U16, 16384, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/u8/16384", QN_U8, 16384, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/f64/512", QN_F64, 512, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/f32/1024", QN_F32, 1024, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/u16/1024", QN_U16, 1024, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/u8/1024", QN_U8, 1024, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/f64/64", QN_F64, 64, LEFT, RIGHT, BY_HAND, 0.9},
        {"transpose/u8/128", QN_U8, 128, LEFT, RIGHT, BY_HAND, 0.9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_view dst = {0}, src = {0};
        qn_error error = {0};
        if (b->assembly_of || !bench_wants(b, cases[i].name))
            continue;
        qn_call *call = NULL;
        if (new_array(b, &cases[i], cases[i].dst, &dst, &error) ||
            new_array(b, &cases[i], cases[i].src, &src, &error) ||
            (cases[i].against == BY_HAND && prepare_copy(b, &cases[i], &dst, &src, &call, &error)))
            bench_wrong(b, cases[i].name, "%s", error.message);
        else
            time_case(b, &cases[i], call, &dst, &src);
        qn_call_release(call);
        qn_view_release(&dst);
        qn_view_release(&src);
    }
}

/* ---------------------------------------------------------------- streams */

static void time_stream(bench *b, const char *name, int dtype, qn_view *v, qn_call *call)
{
    enum { N = 11 };
    double ours[N], theirs[N];
    const int bytes = (int)qn_dtype_bytes(dtype);
    const size_t all = (size_t)OUT_N * (size_t)bytes;
    void *expected = malloc(all);
    qn_error error = {0};
    native_stream_triad(v[0].data, v[1].data, v[2].data, 0.37, OUT_N, bytes);
    if (expected)
        memcpy(expected, v[0].data, all);
    if (!expected || qn_run(call, &error) || memcmp(expected, v[0].data, all) != 0) {
        bench_wrong(b, name, "%s", error.status ? error.message : "elements differ");
        free(expected);
        return;
    }
    free(expected);
    for (int s = 0; s < N; s++) {
        double begin = bench_now();
        qn_run(call, NULL);
        double middle = bench_now();
        native_stream_triad(v[0].data, v[1].data, v[2].data, 0.37, OUT_N, bytes);
        ours[s] = middle - begin;
        theirs[s] = bench_now() - middle;
    }
    bench_line line = {.name = name, .group = GROUP_COST, .goal = 0.97, .short_below = 0.97};
    bench_report_pairs(b, &line, ours, theirs, N);
}

static void stream_case(bench *b, const char *name, int dtype)
{
    const int64_t n = OUT_N;
    qn_error error = {0};
    qn_layout l;
    qn_view v[3] = {{0}};
    qn_call *call = NULL;
    qn_kernel *k = bench_kernel(KERNEL_TRIAD, dtype, &error);
    qn_status status = k ? qn_layout_right(1, &n, &l, &error) : (qn_status)error.status;
    for (int i = 0; i < 3 && !status; i++)
        status = qn_view_alloc(b->context, "x", dtype, &l, 0, &v[i], &error);
    for (int64_t i = 0; i < n && !status; i++)
        for (int m = 1; m < 3; m++)
            if (dtype == QN_F32)
                ((float *)v[m].data)[i] = (float)(i % 1000 + m);
            else
                ((double *)v[m].data)[i] = (double)(i % 1000 + m);
    qn_arg args[4] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_view(&v[2]),
                      dtype == QN_F32 ? qn_arg_f32(0.37f) : qn_arg_f64(0.37)};
    const qn_options o = bench_options(b);
    if (!status)
        status = qn_prepare(b->context, k, 4, args, &o, &call, &error);
    if (status)
        bench_wrong(b, name, "%s", error.message);
    else
        time_stream(b, name, dtype, v, call);
    qn_call_release(call);
    for (int i = 0; i < 3; i++)
        qn_view_release(&v[i]);
    qn_kernel_release(k);
}

static void run_plain(const void *call)
{
    qn_run((qn_call *)(uintptr_t)call, NULL);
}

/** stream_rows/BYTES: what non-temporal stores bring where rows have so many bytes, against plain
 * stores of the same kernel. */
static void stream_rows(bench *b, const char *name, int64_t bytes)
{
    enum { PLANES = 256, ELEMENTS = 1 << 23 };
    const int64_t row = bytes / 8 + 2, extents[3] = {PLANES, ELEMENTS / PLANES / row, row};
    qn_error error = {0};
    qn_layout l;
    qn_view v[2] = {{0}};
    qn_call *call[2] = {NULL, NULL};
    qn_kernel *k = bench_kernel(KERNEL_SEVEN, QN_F64, &error);
    qn_status status = k ? qn_layout_right(3, extents, &l, &error) : (qn_status)error.status;
    for (int i = 0; i < 2 && !status; i++)
        status = qn_view_alloc(b->context, "x", QN_F64, &l, 0, &v[i], &error);
    qn_arg args[2] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    for (int i = 0; i < 2 && !status; i++) {
        qn_options o = bench_options(b);
        o.plan = PLAN_WITH(.streams = i ? -1 : 1);
        memset(v[i].data, 0, (size_t)(extents[0] * extents[1] * row) * sizeof(double));
        status = qn_prepare(b->context, k, 2, args, &o, &call[i], &error);
    }
    bench_line line = {
        .name = name, .group = GROUP_COST, .goal = 1, .short_below = bytes < 2048 ? 0 : 1};
    if (status)
        bench_wrong(b, name, "%s", error.message);
    else
        bench_in_turns(b, &line, call[0], run_plain, call[1]);
    for (int i = 0; i < 2; i++) {
        qn_call_release(call[i]);
        qn_view_release(&v[i]);
    }
    qn_kernel_release(k);
}

void bench_copy_cases(bench *b)
{
    for (int64_t bytes = 512; bytes <= 16384 && !b->assembly_of; bytes *= 2) {
        char name[32];
        snprintf(name, sizeof name, "stream_rows/%lld", (long long)bytes);
        if (bench_wants(b, name))
            stream_rows(b, name, bytes);
    }
    copy_cases(b);
    if (!b->assembly_of && bench_wants(b, "stream_triad/f32"))
        stream_case(b, "stream_triad/f32", QN_F32);
    if (!b->assembly_of && bench_wants(b, "stream_triad/f64"))
        stream_case(b, "stream_triad/f64", QN_F64);
}
