/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_guard.c: generated code touches no byte outside the views. Each view's memory ends exactly
 * at an inaccessible page, and again begins exactly behind one; a wrong access ends the program.
 * The whole memory, the bytes between strided elements included, must afterwards be what the
 * interpreter leaves in a copy.
 */
#define _DEFAULT_SOURCE
#include "quern.h"
#include "tests/plan.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_VIEWS = 3 };

/** A kernel and its views: dtype and extents, where N is the case's size, and other numbers stand
 * for themselves. */
#define N (-1)
typedef struct guarded_kernel {
    const char *name, *text;
    int n_views;
    struct {
        int dtype, rank;
        int extent[3];
        bool takes_strides;
    } view[MOST_VIEWS];
} guarded_kernel;

#define HEAD1 "%z: i64 = const 0; %n: i64 = extent y, 0; %i: i64 = parallel %z, %n;\n"
#define HEAD2                                                                                      \
    "%one: i64 = const 1; %h: i64 = extent y, 0; %w: i64 = extent y, 1;\n"                         \
    "%h1: i64 = sub %h, %one; %w1: i64 = sub %w, %one;\n"                                          \
    "%i: i64 = parallel %one, %h1; %j: i64 = parallel %one, %w1;\n"

#define COPY(T)                                                                                    \
    "kernel \"copy\" { view x: " T "[1]; view y: " T "[1];" HEAD1 "%v: " T                         \
    " = load x[%i]; store y[%i], %v; }"
#define STENCIL                                                                                    \
    "kernel \"stencil\" { view x: f32[2]; view y: f32[2];" HEAD2                                   \
    "%a: i64 = sub %i, %one; %b: i64 = add %i, %one; %c: i64 = sub %j, %one; %d: i64 = add %j, "   \
    "%one;\n"                                                                                      \
    "%p: f32 = load x[%a, %j]; %q: f32 = load x[%b, %j]; %r: f32 = load x[%i, %c]; %s: f32 = "     \
    "load x[%i, %d];\n"                                                                            \
    "%t: f32 = add %p, %q; %u: f32 = add %r, %s; %v: f32 = add %t, %u; store y[%i, %j], %v; }"
#define GATHER                                                                                     \
    "kernel \"gather\" { view x: f32[1]; view at: i64[1]; view y: f32[1];" HEAD1                   \
    "%k: i64 = load at[%i]; %v: f32 = load x[%k]; store y[%i], %v; }"
#define SCATTER                                                                                    \
    "kernel \"scatter\" { view x: f32[1]; view at: i64[1]; view y: f32[1];\n"                      \
    "%z: i64 = const 0; %n: i64 = extent x, 0; %i: i64 = parallel %z, %n;\n"                       \
    "%k: i64 = load at[%i]; %v: f32 = load x[%i]; store y[%k], %v; }"
#define HISTOGRAM                                                                                  \
    "kernel \"histogram\" { view at: i64[1]; view y: u16[1];\n"                                    \
    "%z: i64 = const 0; %n: i64 = extent at, 0; %i: i64 = parallel %z, %n; %o: u16 = const 1;\n"   \
    "%k: i64 = load at[%i]; %old: u16 = atomic sum y[%k], %o; }"
#define ROW_SUMS(ORDER, T)                                                                         \
    "kernel \"rows\" " ORDER " { view x: " T "[2]; view y: " T "[1];\n"                            \
    "%z: i64 = const 0; %n: i64 = extent y, 0; %m: i64 = extent x, 1;\n"                           \
    "%i: i64 = parallel %z, %n; %k: i64 = reduction %z, %m;\n"                                     \
    "%r: " T " = reduce sum over %k { %v: " T " = load x[%i, %k]; yield %v; }; store y[%i], %r; }"
#define DOT                                                                                        \
    "kernel \"dot\" { view x: f64[1]; view y: f64[1]; view s: f64[0];\n"                           \
    "%z: i64 = const 0; %n: i64 = extent x, 0; %k: i64 = reduction %z, %n;\n"                      \
    "%r: f64 = reduce sum over %k { %a: f64 = load x[%k]; %b: f64 = load y[%k]; %p: f64 = mul "    \
    "%a, %b; yield %p; }; store s[], %r; }"
#define BEHIND                                                                                     \
    "kernel \"behind\" { view x: i16[1]; view y: i16[1];" HEAD1                                    \
    "%one: i64 = const 1; %c: bool = gt %i, %z; %o: i16 = const -1;\n"                             \
    "%v: i16 = if %c { %b: i64 = sub %i, %one; %l: i16 = load x[%b]; yield %l; } else { yield "    \
    "%o; }; store y[%i], %v; }"
#define RAGGED                                                                                     \
    "kernel \"ragged\" { view at: i64[1]; view x: f32[1]; view y: f32[1];" HEAD1                   \
    "%m: i64 = extent x, 0; %p: i64 = load at[%i]; %a: i64 = max %p, %z; %b: i64 = min %a, %m;\n"  \
    "%f: f32 = const 0.0; %r: f32 = for %k: i64 = %b to %m step 1 (%s: f32 = %f) { %v: f32 = "     \
    "load x[%k]; %t: f32 = add %s, %v; yield %t; }; store y[%i], %r; }"
#define TRANSPOSE                                                                                  \
    "kernel \"transpose\" { view x: u8[2]; view y: u8[2];\n"                                       \
    "%z: i64 = const 0; %h: i64 = extent y, 0; %w: i64 = extent y, 1;\n"                           \
    "%i: i64 = parallel %z, %h; %j: i64 = parallel %z, %w;\n"                                      \
    "%v: u8 = load x[%j, %i]; store y[%i, %j], %v; }"
#define BATCH                                                                                      \
    "kernel \"batch\" { view x: f64[3]; view y: f64[3]; view z: f64[3];\n"                         \
    "%0: i64 = const 0; %h: i64 = extent z, 0; %w: i64 = extent z, 1; %n: i64 = extent z, 2;\n"    \
    "%l: i64 = extent x, 1; %i: i64 = parallel %0, %h; %j: i64 = parallel %0, %w;\n"               \
    "%m: i64 = parallel %0, %n; %k: i64 = reduction %0, %l;\n"                                     \
    "%r: f64 = reduce sum over %k { %a: f64 = load x[%i, %k, %m]; %b: f64 = load y[%k, %j, %m];\n" \
    "%p: f64 = mul %a, %b; yield %p; }; store z[%i, %j, %m], %r; }"

static const guarded_kernel kernels[] = {
    {"copy u8", COPY("u8"), 2, {{QN_U8, 1, {N}, true}, {QN_U8, 1, {N}, true}}},
    {"copy i16", COPY("i16"), 2, {{QN_I16, 1, {N}, true}, {QN_I16, 1, {N}, true}}},
    {"copy f32", COPY("f32"), 2, {{QN_F32, 1, {N}, true}, {QN_F32, 1, {N}, true}}},
    {"copy f64", COPY("f64"), 2, {{QN_F64, 1, {N}, true}, {QN_F64, 1, {N}, true}}},
    {"copy bool", COPY("bool"), 2, {{QN_BOOL, 1, {N}, true}, {QN_BOOL, 1, {N}, true}}},
    {"stencil", STENCIL, 2, {{QN_F32, 2, {6, N}, true}, {QN_F32, 2, {6, N}, true}}},
    {"stencil, tall", STENCIL, 2, {{QN_F32, 2, {N, 6}, false}, {QN_F32, 2, {N, 6}, false}}},
    {"gather",
     GATHER,
     3,
     {{QN_F32, 1, {N}, true}, {QN_I64, 1, {N}, false}, {QN_F32, 1, {N}, true}}},
    {"scatter",
     SCATTER,
     3,
     {{QN_F32, 1, {N}, true}, {QN_I64, 1, {N}, false}, {QN_F32, 1, {N}, true}}},
    {"histogram", HISTOGRAM, 2, {{QN_I64, 1, {N}, true}, {QN_U16, 1, {16}, true}}},
    {"row sums striped",
     ROW_SUMS("striped", "f32"),
     2,
     {{QN_F32, 2, {5, N}, true}, {QN_F32, 1, {5}, true}}},
    {"row sums indexed",
     ROW_SUMS("indexed", "f64"),
     2,
     {{QN_F64, 2, {N, 9}, true}, {QN_F64, 1, {N}, true}}},
    {"row sums of u8",
     ROW_SUMS("indexed", "u8"),
     2,
     {{QN_U8, 2, {5, N}, true}, {QN_U8, 1, {5}, true}}},
    {"dot", DOT, 3, {{QN_F64, 1, {N}, true}, {QN_F64, 1, {N}, true}, {QN_F64, 0, {0}, false}}},
    {"the one before", BEHIND, 2, {{QN_I16, 1, {N}, true}, {QN_I16, 1, {N}, true}}},
    {"ragged rows",
     RAGGED,
     3,
     {{QN_I64, 1, {N}, false}, {QN_F32, 1, {N}, true}, {QN_F32, 1, {N}, true}}},
    {"batch",
     BATCH,
     3,
     {{QN_F64, 3, {3, 9, N}, false},
      {QN_F64, 3, {9, 11, N}, false},
      {QN_F64, 3, {3, 11, N}, false}}},
    {"batch of rows",
     BATCH,
     3,
     {{QN_F64, 3, {1, 18, N}, false},
      {QN_F64, 3, {18, 3, N}, false},
      {QN_F64, 3, {1, 3, N}, false}}},
    {"transpose", TRANSPOSE, 2, {{QN_U8, 2, {N, 7}, true}, {QN_U8, 2, {7, N}, true}}},
};

static const int sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129};
static const int strides[] = {1, 2, 3, 4, 5, -1, -2};

/** Memory of one view, with inaccessible pages on both sides. */
typedef struct guarded_memory {
    char *map, *data;
    size_t map_bytes, bytes;
} guarded_memory;

static bool make_memory(guarded_memory *m, size_t bytes, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    m->bytes = bytes;
    m->map_bytes = inside + 2 * page;
    m->map = mmap(NULL, m->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->map == MAP_FAILED || mprotect(m->map + page, inside, PROT_READ | PROT_WRITE))
        return false;
    m->data = m->map + page + (at_end ? inside - bytes : 0);
    return true;
}

/** Indices, some of them far outside; other types get small numbers. */
static void fill_memory(const guarded_memory *m, int dtype, int size)
{
    static const int64_t hostile[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1 << 30, INT64_C(1) << 33};
    int64_t bytes = qn_dtype_bytes(dtype);
    uint32_t state = 12345;
    for (size_t at = 0; at + (size_t)bytes <= m->bytes; at += (size_t)bytes) {
        state = state * 1664525u + 1013904223u;
        int64_t index =
            state >> 28 == 0 ? hostile[(state >> 8) % 7] : (int64_t)((state >> 8) % (uint32_t)size);
        float f = (float)(state >> 20);
        double d = f;
        uint8_t small = (uint8_t)(state >> 24);
        if (dtype == QN_I64)
            memcpy(m->data + at, &index, 8);
        else if (dtype == QN_F32)
            memcpy(m->data + at, &f, 4);
        else if (dtype == QN_F64)
            memcpy(m->data + at, &d, 8);
        else
            memset(m->data + at, dtype == QN_BOOL ? small & 1 : small, (size_t)bytes);
    }
}

/** One run of a kernel: views in guarded memory, launched on an engine. */
typedef struct run {
    const guarded_kernel *g;
    int size, stride;
    bool at_end, is_left;
    guarded_memory memory[MOST_VIEWS];
    qn_view view[MOST_VIEWS];
} run;

static bool make_view(run *r, int v)
{
    int64_t extents[3], low, high, bytes = qn_dtype_bytes(r->g->view[v].dtype);
    qn_layout l;
    for (int d = 0; d < r->g->view[v].rank; d++) {
        int e = r->g->view[v].extent[d];
        extents[d] = e == N ? r->size : e;
    }
    qn_status status = r->is_left ? qn_layout_left(r->g->view[v].rank, extents, &l, NULL)
                                  : qn_layout_right(r->g->view[v].rank, extents, &l, NULL);
    for (int d = 0; r->g->view[v].takes_strides && d < l.rank; d++)
        l.dim[d].stride *= r->stride;
    if (status != QN_OK || qn_layout_range(&l, &low, &high, NULL) != QN_OK)
        return false;
    if (!make_memory(&r->memory[v], (size_t)((high - low + 1) * bytes), r->at_end))
        return false;
    fill_memory(&r->memory[v], r->g->view[v].dtype, r->size);
    return qn_view_wrap(r->g->name, r->memory[v].data - low * bytes, r->g->view[v].dtype, &l, 0,
                        &r->view[v], NULL) == QN_OK;
}

static bool make_run(run *r)
{
    for (int v = 0; v < r->g->n_views; v++)
        if (!make_view(r, v))
            return false;
    return true;
}

static void end_run(run *r)
{
    for (int v = 0; v < r->g->n_views; v++) {
        qn_view_release(&r->view[v]);
        if (r->memory[v].map)
            munmap(r->memory[v].map, r->memory[v].map_bytes);
    }
}

static qn_status launch(qn_context *c, const qn_kernel *k, run *r, const qn_options *o,
                        qn_error *err)
{
    qn_arg args[MOST_VIEWS];
    for (int v = 0; v < r->g->n_views; v++)
        args[v] = qn_arg_view(&r->view[v]);
    return qn_launch(c, k, r->g->n_views, args, o, err);
}

static const qn_options ways[] = {
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V3,
     .specialize = QN_SPECIALIZE_EXACT},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V4,
     .specialize = QN_SPECIALIZE_EXACT},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V3,
     .specialize = QN_SPECIALIZE_DYNAMIC},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V4,
     .specialize = QN_SPECIALIZE_DYNAMIC},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V4,
     .specialize = QN_SPECIALIZE_DYNAMIC,
     .executor = QN_THREADS,
     .plan = PLAN_WITH(.width = 4, .unroll = 3)},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V3,
     .specialize = QN_SPECIALIZE_EXACT,
     .plan = PLAN_WITH(.pack = 1, .streams = 1)},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V4,
     .specialize = QN_SPECIALIZE_EXACT,
     .plan = PLAN_WITH(.pack = 1, .unroll = 2)},
    {.bytes = sizeof(qn_options),
     .engine = QN_ENGINE_NATIVE,
     .isa = QN_ISA_V4,
     .specialize = QN_SPECIALIZE_EXACT,
     .executor = QN_THREADS,
     .plan = PLAN_WITH(.pack = 1, .width = 4, .chunk = 9)},
};

/** Runs one kernel, size, stride and placement in all ways; the number of differences. */
static int compare(qn_context *c, const qn_kernel *k, const run *shape, bool has_v4)
{
    int n_wrong = 0;
    static const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    run expected = *shape;
    qn_error expected_error = {0};
    qn_status status = QN_ERR_MEMORY;
    if (make_run(&expected))
        status = launch(c, k, &expected, &interp, &expected_error);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        bool has_batch = shape->g->view[0].rank == 3;
        if ((ways[w].isa == QN_ISA_V4 && !has_v4) ||
            ((ways[w].plan && ways[w].plan->pack) && !has_batch))
            continue;
        run found = *shape;
        qn_error err = {0};
        bool is_same = make_run(&found) && launch(c, k, &found, &ways[w], &err) == status &&
                       strcmp(err.message, expected_error.message) == 0;
        for (int v = 0; is_same && status == QN_OK && v < found.g->n_views; v++)
            is_same =
                memcmp(found.memory[v].data, expected.memory[v].data, found.memory[v].bytes) == 0;
        if (!is_same) {
            n_wrong++;
            tap_note("%s: way %zu, size %d, stride %d, %s, %s: %s", shape->g->name, w, shape->size,
                     shape->stride, shape->at_end ? "at the end" : "at the begin",
                     shape->is_left ? "left" : "right", err.message);
        }
        end_run(&found);
    }
    end_run(&expected);
    return n_wrong;
}

static void test_kernel(qn_context *c, const guarded_kernel *g, bool has_v4)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    int n_wrong = 0;
    if (qn_kernel_parse(g->text, strlen(g->text), &k, &err) != QN_OK) {
        tap_ok(false, "%s: %s", g->name, err.message);
        return;
    }
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t t = 0; t < sizeof strides / sizeof strides[0]; t++) {
            run r = {.g = g,
                     .size = sizes[s],
                     .stride = strides[t],
                     .at_end = (s + t) % 2 == 0,
                     .is_left = s % 3 == 0};
            n_wrong += compare(c, k, &r, has_v4);
            if (strides[t] == 1) { /* the usual layout at both ends */
                r.at_end = !r.at_end;
                n_wrong += compare(c, k, &r, has_v4);
            }
        }
    qn_kernel_release(k);
    tap_ok(n_wrong == 0, "%s: no byte outside, the interpreter's result inside", g->name);
}

/** Whether code for an instruction set can be made here. */
static bool is_available(qn_context *c, int isa, qn_error *err)
{
    static const char text[] =
        "kernel \"probe\" { view y: f32[0]; %o: f32 = const 1.0; store y[], %o; }";
    qn_kernel *k = NULL;
    qn_code *f = NULL;
    float y = 0;
    qn_layout l = {0};
    qn_view v = {0};
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = isa};
    bool is_good = qn_kernel_parse(text, sizeof text - 1, &k, err) == QN_OK &&
                   qn_view_wrap("y", &y, QN_F32, &l, 0, &v, err) == QN_OK;
    qn_arg a = qn_arg_view(&v);
    is_good = is_good && qn_specialize(c, k, 1, &a, &o, &f, err) == QN_OK;
    qn_code_release(f);
    qn_kernel_release(k);
    return is_good;
}

int main(void)
{
    qn_context *c = NULL;
    qn_error err = {0};
    qn_context_options o = {.bytes = sizeof o, .n_threads = 2};
    if (!tap_ok(qn_context_new(&o, &c, &err) == QN_OK, "a context %s", err.message))
        return tap_done();
    if (!is_available(c, QN_ISA_V3, &err)) {
        tap_skip(err.message);
    } else {
        bool has_v4 = is_available(c, QN_ISA_V4, &err);
        for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
            test_kernel(c, &kernels[i], has_v4);
    }
    qn_context_release(c);
    return tap_done();
}
