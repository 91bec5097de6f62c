/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_speed.c: saxpy, triad and two stencils against the same loops in C: two element
 * types, in and out of cache, three layouts, exact and dynamic extents. Ours is a prepared call on
 * one thread with bounds checks on; theirs always knows the extents when it is compiled. Both run
 * on the same arrays, in turns, and every case is first checked: against C bit for bit, and in
 * cache against the interpreter bit for bit too.
 */
#include "bench_model.h"
#include "native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PAIRS = 21, MAX_TRIES = 5, MAX_VIEWS = 3, MAX_RANK = 3 };
#define SAMPLE_SECONDS 2.5e-3
#define UNDISTURBED 0.98
#define SCALE 0.37
#define RATIO_GOAL 0.9
#define RATIO_SHORT 0.85

/* ---------------------------------------------------------------- kernels */

/* y = scale * x + y, and x = a + scale * b; the written view is the first parameter. */
static void build_vector_kernel(qn_builder *b, int kernel, int dtype)
{
    bool is_saxpy = kernel == KERNEL_SAXPY;
    qn_param out = qn_view_param(b, is_saxpy ? "y" : "x", dtype, 1, 0);
    qn_param first = qn_view_param(b, is_saxpy ? "x" : "a", dtype, 1, 0);
    qn_param second = is_saxpy ? out : qn_view_param(b, "b", dtype, 1, 0);
    qn_val scale = qn_scalar_param(b, "scale", dtype);
    qn_val i = qn_parallel_over(b, out, 0);
    qn_val x = qn_load(b, first, 1, &i), y = qn_load(b, second, 1, &i);
    qn_val value = is_saxpy ? qn_add(b, qn_mul(b, scale, x), y) : qn_add(b, x, qn_mul(b, scale, y));
    qn_store(b, out, 1, &i, value);
}

/* u at `index` with dimension d shifted by -1, plus the same with +1. */
static qn_val neighbours(qn_builder *b, qn_param u, int rank, const qn_val *index, int d)
{
    qn_val shifted[MAX_RANK];
    memcpy(shifted, index, sizeof shifted);
    shifted[d] = qn_sub(b, index[d], qn_index(b, 1));
    qn_val below = qn_load(b, u, rank, shifted);
    shifted[d] = qn_add(b, index[d], qn_index(b, 1));
    return qn_add(b, below, qn_load(b, u, rank, shifted));
}

/* One step of heat flow on the inner points: v = u + c * (sum of the neighbours - their number *
 * u). */
static void build_stencil_kernel(qn_builder *b, int rank, int dtype)
{
    qn_param v = qn_view_param(b, "v", dtype, rank, 0);
    qn_param u = qn_view_param(b, "u", dtype, rank, 0);
    qn_val index[MAX_RANK] = {{0}}, one = qn_index(b, 1);
    for (int d = 0; d < rank; d++) {
        qn_val lower = qn_lower(b, v, d), end = qn_add(b, lower, qn_extent(b, v, d));
        index[d] = qn_parallel(b, qn_add(b, lower, one), qn_sub(b, end, one));
    }
    qn_val centre = qn_load(b, u, rank, index);
    qn_val sum = neighbours(b, u, rank, index, 0);
    for (int d = 1; d < rank; d++)
        sum = qn_add(b, sum, neighbours(b, u, rank, index, d));
    qn_val points = qn_const_float(b, dtype, -2.0 * rank);
    qn_val flow = qn_add(b, sum, qn_mul(b, points, centre));
    qn_val step = qn_mul(b, qn_const_float(b, dtype, BENCH_COEFFICIENT), flow);
    qn_store(b, v, rank, index, qn_add(b, centre, step));
}

static int rank_of(int kernel)
{
    return kernel == KERNEL_FIVE ? 2 : kernel == KERNEL_SEVEN ? 3 : 1;
}

int bench_n_views(int kernel)
{
    return kernel == KERNEL_TRIAD ? 3 : 2;
}

bool bench_has_scalar(int kernel)
{
    return rank_of(kernel) == 1;
}

qn_kernel *bench_kernel(int kernel, int dtype, qn_error *err)
{
    static const char *const names[] = {
#define X(name, text) text,
        BENCH_KERNELS(X)
#undef X
    };
    qn_builder *b = qn_builder_new(names[kernel], QN_CONTRACT);
    qn_kernel *k = NULL;
    if (b && rank_of(kernel) == 1)
        build_vector_kernel(b, kernel, dtype);
    else if (b)
        build_stencil_kernel(b, rank_of(kernel), dtype);
    if (b)
        (void)qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

/* ---------------------------------------------------------------- cases */

typedef struct speed_case {
    bench *b;
    char name[64];
    int kernel, dtype, place, layout, specialize;
    native_loop native;
    size_t bytes;            /* of one array's memory, subviews with what surrounds them */
    bench_memory memory;
    qn_view view[MAX_VIEWS];
    void *first[MAX_VIEWS]; /* the first element of each view */
    qn_kernel *k;
    qn_arg args[MAX_VIEWS + 1];
    int n_args;
} speed_case;

static void extents_of(const speed_case *c, int64_t *extents)
{
    static const int64_t table[N_PLACES][3][MAX_RANK] = {
        {{IN_N}, {IN_2D_0, IN_2D_1}, {IN_3D_0, IN_3D_1, IN_3D_2}},
        {{OUT_N}, {OUT_2D_0, OUT_2D_1}, {OUT_3D_0, OUT_3D_1, OUT_3D_2}},
    };
    memcpy(extents, table[c->place][rank_of(c->kernel) - 1], sizeof table[0][0]);
}

/* The layout of the memory of one array; of the array itself where that is no subview. */
static qn_status memory_layout(const speed_case *c, qn_layout *out, qn_error *err)
{
    int rank = rank_of(c->kernel);
    int64_t extents[MAX_RANK];
    extents_of(c, extents);
    if (c->layout == LAYOUT_LEFT)
        return qn_layout_left(rank, extents, out, err);
    for (int d = 0; c->layout == LAYOUT_SUB && d < rank; d++)
        extents[d] = rank == 1 ? extents[d] * SUB_STEP : extents[d] + SUB_BEFORE + SUB_AFTER;
    return qn_layout_right(rank, extents, out, err);
}

static qn_status make_view(speed_case *c, int i, const qn_layout *whole, qn_error *err)
{
    static const char *const labels[MAX_VIEWS] = {"out", "a", "b"};
    qn_view all;
    qn_status status = qn_view_wrap(labels[i], c->memory.at[i], c->dtype, whole, 0, &all, err);
    if (status || c->layout != LAYOUT_SUB) {
        c->view[i] = all;
        return status;
    }
    int rank = rank_of(c->kernel);
    int64_t extents[MAX_RANK];
    extents_of(c, extents);
    qn_slice slices[MAX_RANK] = {{0}};
    for (int d = 0; d < rank; d++) {
        slices[d].kind = QN_RANGE;
        slices[d].begin = rank == 1 ? 0 : SUB_BEFORE;
        slices[d].end = rank == 1 ? extents[d] * SUB_STEP : SUB_BEFORE + extents[d];
        slices[d].step = rank == 1 ? SUB_STEP : 1;
    }
    return qn_subview(&all, rank, slices, &c->view[i], err);
}

/* Values in [0.5, 1.5) that differ from array to array. */
static void fill(const speed_case *c, int i)
{
    uint32_t state = 12345u + (uint32_t)i * 777u;
    size_t n = c->bytes / (size_t)qn_dtype_bytes(c->dtype);
    float *f = c->memory.at[i];
    double *d = c->memory.at[i];
    for (size_t e = 0; e < n; e++) {
        state = state * 1664525u + 1013904223u;
        float value = 0.5f + (float)(state >> 8) * 0x1p-24f;
        if (c->dtype == QN_F32)
            f[e] = value;
        else
            d[e] = (double)value;
    }
}

static void release_case(speed_case *c)
{
    for (int i = 0; i < MAX_VIEWS; i++)
        qn_view_release(&c->view[i]);
    bench_memory_free(&c->memory);
    qn_kernel_release(c->k);
}

static bool make_case(speed_case *c)
{
    qn_error error = {0};
    qn_layout whole;
    qn_status status = memory_layout(c, &whole, &error);
    c->bytes = (size_t)(qn_layout_size(&whole) * qn_dtype_bytes(c->dtype));
    int n_views = bench_n_views(c->kernel);
    const size_t bytes[MAX_VIEWS] = {c->bytes, c->bytes, c->bytes};
    if (!status)
        status = bench_memory_make(&c->memory, MAX_VIEWS, bytes, &error);
    for (int i = 0; !status && i < n_views; i++) {
        fill(c, i);
        status = make_view(c, i, &whole, &error);
        c->first[i] = c->view[i].data;
        c->args[c->n_args++] = qn_arg_view(&c->view[i]);
    }
    if (!status && bench_has_scalar(c->kernel))
        c->args[c->n_args++] = c->dtype == QN_F32 ? qn_arg_f32((float)SCALE) : qn_arg_f64(SCALE);
    if (!status)
        c->k = bench_kernel(c->kernel, c->dtype, &error);
    if (error.status)
        bench_wrong(c->b, c->name, "%s", error.message);
    return !error.status;
}

static void run_native(const speed_case *c)
{
    c->native(c->first[0], c->first[1], c->first[2], SCALE);
}

/* ---------------------------------------------------------------- checking */

static bool is_equal(const speed_case *c, const void *expected, const char *what)
{
    if (memcmp(c->memory.at[0], expected, c->bytes) == 0)
        return true;
    const unsigned char *x = c->memory.at[0], *y = expected;
    size_t at = 0;
    while (x[at] == y[at])
        at++;
    bench_wrong(c->b, c->name, "differs from %s at element %zu of the memory", what,
                at / (size_t)qn_dtype_bytes(c->dtype));
    return false;
}

/* Runs the call once and compares the whole memory of the written array. */
static bool check(speed_case *c, qn_call *call)
{
    qn_error error = {0};
    void *ours = malloc(c->bytes);
    if (!ours || qn_run(call, &error)) {
        bench_wrong(c->b, c->name, "%s", ours ? error.message : "out of memory");
        free(ours);
        return false;
    }
    memcpy(ours, c->memory.at[0], c->bytes);
    fill(c, 0);
    run_native(c);
    bool is_right = is_equal(c, ours, "the loop in C");
    if (is_right && c->place == PLACE_IN) {
        qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
        fill(c, 0);
        if (qn_launch(c->b->context, c->k, c->n_args, c->args, &o, &error)) {
            bench_wrong(c->b, c->name, "interpreter: %s", error.message);
            is_right = false;
        } else {
            is_right = is_equal(c, ours, "the interpreter");
        }
    }
    free(ours);
    return is_right;
}

/* ---------------------------------------------------------------- timing */

/* One sample: seconds of one call of ours, or of the loop in C where `call` is NULL. */
static double time_once(const speed_case *c, qn_call *call, int n)
{
    double begin = bench_now();
    for (int i = 0; i < n; i++) {
        if (call)
            (void)qn_run(call, NULL);
        else
            run_native(c);
    }
    return (bench_now() - begin) / n;
}

/* A sample in which the processor was not taken away; after some tries the shortest. */
static double time_sample(const speed_case *c, qn_call *call, int n)
{
    double shortest = 0;
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        double begin = bench_thread_time();
        double seconds = time_once(c, call, n);
        if (tries == 0 || seconds < shortest)
            shortest = seconds;
        if (bench_thread_time() - begin > UNDISTURBED * seconds * n)
            return seconds;
    }
    return shortest;
}

/* Repetitions that make a sample of theirs long enough; the same number is used for both sides. */
static int calibrate(const speed_case *c)
{
    int n = 1;
    while (n < 1 << 20 && time_sample(c, NULL, n) * n < SAMPLE_SECONDS)
        n *= 2;
    return n;
}

/* Pairs of samples in turns; which side begins alternates too. */
static void time_case(speed_case *c, qn_call *call)
{
    double ours[N_PAIRS], theirs[N_PAIRS];
    if (bench_model_times(c->b, call))
        return;
    int n = calibrate(c);
    (void)time_sample(c, call, n);
    for (int i = 0; i < N_PAIRS; i++) {
        if (i % 2)
            theirs[i] = time_sample(c, NULL, n);
        ours[i] = time_sample(c, call, n);
        if (i % 2 == 0)
            theirs[i] = time_sample(c, NULL, n);
    }
    bench_line line = {
        .name = c->name,
        .group = c->specialize == QN_SPECIALIZE_EXACT ? GROUP_EXACT : GROUP_DYNAMIC,
        .goal = RATIO_GOAL,
        .short_below = RATIO_SHORT,
    };
    bench_report_pairs(c->b, &line, ours, theirs, N_PAIRS);
}

void bench_print_assembly(bench *b, const char *name, const qn_kernel *k, int n, const qn_arg *args,
                          const qn_options *o)
{
    qn_error error = {0};
    qn_code *f = NULL;
    if (qn_specialize(b->context, k, n, args, o, &f, &error)) {
        bench_wrong(b, name, "%s", error.message);
        return;
    }
    size_t bytes = qn_code_text(f, QN_DUMP_ASM, NULL, 0);
    char *text = malloc(bytes + 1);
    if (text && qn_code_text(f, QN_DUMP_ASM, text, bytes + 1) == bytes)
        fwrite(text, 1, bytes, stdout);
    free(text);
    qn_code_release(f);
}

static void run_case(speed_case *c)
{
    qn_error error = {0};
    qn_call *call = NULL;
    qn_options o = bench_options(c->b);
    o.specialize = c->specialize;
    if (make_case(c)) {
        if (c->b->assembly_of)
            bench_print_assembly(c->b, c->name, c->k, c->n_args, c->args, &o);
        else if (bench_prepare(c->b, c->k, c->n_args, c->args, &o, &call, &error))
            bench_wrong(c->b, c->name, "%s", error.message);
        else if (check(c, call))
            time_case(c, call);
    }
    qn_call_release(call);
    release_case(c);
}

static const char *const kernel_texts[] = {
#define X(name, text) text,
    BENCH_KERNELS(X)
#undef X
};
static const char *const place_texts[] = {
#define X(name, text) text,
    BENCH_PLACES(X)
#undef X
};
static const char *const layout_texts[] = {
#define X(name, text) text,
    BENCH_LAYOUTS(X)
#undef X
};

/* Case number i of all combinations, the mode of the extents fastest. */
static void case_of_number(bench *b, int i, speed_case *c)
{
    *c = (speed_case){.b = b};
    c->specialize = i % 2 ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT;
    c->layout = i / 2 % N_LAYOUTS;
    c->place = i / (2 * N_LAYOUTS) % N_PLACES;
    c->dtype = i / (2 * N_LAYOUTS * N_PLACES) % 2 ? QN_F64 : QN_F32;
    c->kernel = i / (4 * N_LAYOUTS * N_PLACES);
    c->native = (c->dtype == QN_F32 ? native_f32 : native_f64)[c->kernel][c->place][c->layout];
    snprintf(c->name, sizeof c->name, "%s/%s/%s/%s/%s", kernel_texts[c->kernel],
             qn_dtype_name(c->dtype), place_texts[c->place], layout_texts[c->layout],
             i % 2 ? "dynamic" : "exact");
}

void bench_speed_cases(bench *b)
{
    for (int i = 0; i < N_KERNELS * 2 * N_PLACES * N_LAYOUTS * 2; i++) {
        speed_case c;
        case_of_number(b, i, &c);
        if (bench_wants(b, c.name))
            run_case(&c);
    }
}
