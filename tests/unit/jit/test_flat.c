/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_flat.c: members of records and channels of pixels that are computed alike are stored as they
 * lie in memory: their schedules say so, and those of other groups do not. Bits are those of the
 * interpreter, and nothing outside the arrays is touched. A schedule that says so of other accesses
 * is refused.
 */
#define _DEFAULT_SOURCE
#include "quern.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_ARRAYS = 4, PAGE = 4096, MOST_TEXT = 1 << 17 };

typedef struct trial {
    const char *name, *text;
    int64_t inner;   /* extent of the last dimension of arrays of two */
    bool is_flat[2]; /* whether the schedule says so: x86-64-v3, -v4 */
    int64_t most;    /* elements of arrays of one dimension; 0: as many as iterations */
} trial;

#define ROWS "  for all i in dim(y, 0) {\n"
static const trial trials[] = {
    {"a factor for each channel",
     "kernel k (x: f32[,], w: f32[], y: f32[,]) {\n" ROWS
     "    y[i, 0] = x[i, 0] * w[0] - 1\n    y[i, 1] = x[i, 1] * w[1] - 5\n"
     "    y[i, 2] = x[i, 2] * w[2] - 7 } }",
     3,
     {true, true},
     3},
    {"channels in reverse, of bytes",
     "kernel k (x: u8[,], y: u8[,]) {\n" ROWS
     "    y[i, 0] = x[i, 2] + 1\n    y[i, 1] = x[i, 1] + 1\n    y[i, 2] = x[i, 0] + 1 } }",
     3,
     {true, true},
     0},
    {"a factor for each pixel",
     "kernel k (x: f32[,], t: f32[], y: f32[,]) {\n" ROWS
     "    y[i, 0] = x[i, 0] * t[i]\n    y[i, 1] = x[i, 1] * t[i]\n"
     "    y[i, 2] = x[i, 2] * t[i] } }",
     3,
     {true, true},
     0},
    {"bytes become floats",
     "kernel k (x: u8[,], w: f32[], y: f32[,]) {\n" ROWS
     "    y[i, 0] = (f32(x[i, 0]) - 7) * w[0]\n    y[i, 1] = (f32(x[i, 1]) - 7) * w[1]\n"
     "    y[i, 2] = (f32(x[i, 2]) - 7) * w[2] } }",
     3,
     {true, true},
     3},
    {"one member for all, and a condition",
     "kernel k (x: u8[,], y: u8[,]) {\n" ROWS "    a = u16(x[i, 3])\n"
     "    y[i, 0] = select(x[i, 0] > 50, u8(u16(x[i, 0]) * a >> 8), 9)\n"
     "    y[i, 1] = select(x[i, 1] > 50, u8(u16(x[i, 1]) * a >> 8), 9)\n"
     "    y[i, 2] = select(x[i, 2] > 50, u8(u16(x[i, 2]) * a >> 8), 9)\n"
     "    y[i, 3] = select(x[i, 3] > 50, u8(u16(x[i, 3]) * a >> 8), 9) } }",
     4,
     {true, true},
     0},
    {"members that are not stored, in place",
     "kernel k (r: f32[,], d: f32[]) {\n"
     "  for all i in dim(r, 0) {\n"
     "    r[i, 0] += d[0] * r[i, 3]\n    r[i, 1] += d[0] * r[i, 4]\n"
     "    r[i, 2] += d[0] * r[i, 5]\n    r[i, 3] += d[0] * r[i, 6]\n"
     "    r[i, 4] += d[0] * r[i, 7]\n    r[i, 5] += d[0] * r[i, 8] } }",
     9,
     {true, true},
     1},
    {"more members than lanes, in another order",
     "kernel k (x: f64[,], y: f64[,]) {\n" ROWS
     "    y[i, 0] = 2 - x[i, 13]\n    y[i, 1] = 2 - x[i, 4]\n    y[i, 2] = 2 - x[i, 0]\n"
     "    y[i, 3] = 2 - x[i, 9]\n    y[i, 4] = 2 - x[i, 7]\n    y[i, 5] = 2 - x[i, 1]\n"
     "    y[i, 6] = 2 - x[i, 12]\n    y[i, 7] = 2 - x[i, 5]\n    y[i, 8] = 2 - x[i, 0]\n"
     "    y[i, 9] = 2 - x[i, 8]\n    y[i, 10] = 2 - x[i, 3]\n    y[i, 11] = 2 - x[i, 10]\n"
     "    y[i, 12] = 2 - x[i, 6]\n    y[i, 13] = 2 - x[i, 11] } }",
     14,
     {false, true},
     0},
    {"members that differ",
     "kernel k (x: f32[,], y: f32[,]) {\n"
     "  for all i in dim(y, 0) {\n"
     "    y[i, 0] = x[i, 0] + x[i, 1]\n    y[i, 1] = x[i, 1] * x[i, 2]\n"
     "    y[i, 2] = x[i, 2] } }",
     3,
     {false, false},
     0},
    {"a member that is loaded after another one was stored",
     "kernel k (x: f32[,], y: f32[,]) {\n"
     "  for all i in dim(y, 0) {\n"
     "    y[i, 0] = x[i, 1] * 2\n    y[i, 1] = y[i, 0] * 2\n    y[i, 2] = x[i, 2] * 2 } }",
     3,
     {false, false},
     0},
};

typedef struct array {
    char *block, *at;
    size_t bytes;
    qn_view view;
} array;

/** Numbers that differ, at one end of their pages: what is beyond cannot be touched. */
static bool make_array(const qn_param_info *info, const trial *t, int64_t n, bool at_end, array *x,
                       qn_error *err)
{
    const int64_t extents[2] = {info->rank == 1 && t->most ? t->most : n, t->inner};
    int64_t elements = extents[0] * (info->rank == 2 ? extents[1] : 1);
    qn_layout layout;
    x->bytes = (size_t)(elements * qn_dtype_bytes(info->dtype));
    size_t pages = (x->bytes + PAGE - 1) / PAGE * PAGE;
    char *block = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED || mprotect(block + PAGE, pages, PROT_READ | PROT_WRITE))
        return false;
    x->block = block;
    x->at = block + PAGE + (at_end ? pages - x->bytes : 0);
    for (int64_t i = 0; i < elements; i++) {
        double wide = (double)(i * 37 % 101) - 20;
        float narrow = (float)wide;
        if (info->dtype == QN_F64)
            memcpy(x->at + 8 * i, &wide, sizeof wide);
        else if (info->dtype == QN_F32)
            memcpy(x->at + 4 * i, &narrow, sizeof narrow);
        else
            x->at[i] = (char)(i * 37 % 101);
    }
    return qn_layout_right(info->rank, extents, &layout, err) == QN_OK &&
           qn_view_wrap("array", x->at, info->dtype, &layout, 0, &x->view, err) == QN_OK;
}

static void release_array(const array *x)
{
    if (x->block)
        munmap(x->block, (x->bytes + PAGE - 1) / PAGE * PAGE + 2 * PAGE);
}

/** Arrays and arguments of a kernel for n iterations. */
typedef struct arguments {
    array array[MOST_ARRAYS];
    qn_arg arg[MOST_ARRAYS];
    int n;
} arguments;

static bool make_arguments(const qn_kernel *k, const trial *t, int64_t n, bool at_end, arguments *x,
                           qn_error *err)
{
    *x = (arguments){.n = qn_kernel_n_params(k)};
    for (int p = 0; p < x->n; p++) {
        qn_param_info info;
        if (qn_kernel_param(k, p, &info, sizeof info, err) ||
            !make_array(&info, t, n, at_end, &x->array[p], err))
            return false;
        x->arg[p] = qn_arg_view(&x->array[p].view);
    }
    return true;
}

static void release_arguments(const arguments *x)
{
    for (int p = 0; p < x->n; p++)
        release_array(&x->array[p]);
}

static char schedule[MOST_TEXT];

/** Whether generated code has the bits of the interpreter; `schedule` is what it has. */
static bool is_right(qn_context *c, const qn_kernel *k, const trial *t, int isa, int64_t n,
                     bool at_end, qn_error *err)
{
    arguments expected, ours;
    qn_code *code = NULL;
    qn_options o = {.bytes = sizeof o, .isa = isa, .engine = QN_ENGINE_NATIVE};
    const qn_options interpreted = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    bool is_equal = make_arguments(k, t, n, at_end, &expected, err) &&
                    make_arguments(k, t, n, at_end, &ours, err) &&
                    qn_launch(c, k, ours.n, expected.arg, &interpreted, err) == QN_OK &&
                    qn_specialize(c, k, ours.n, ours.arg, &o, &code, err) == QN_OK &&
                    qn_launch(c, k, ours.n, ours.arg, &o, err) == QN_OK;
    for (int p = 0; is_equal && p < ours.n; p++)
        is_equal = memcmp(ours.array[p].at, expected.array[p].at, ours.array[p].bytes) == 0;
    if (code)
        qn_code_text(code, QN_DUMP_SCHEDULE, schedule, sizeof schedule);
    qn_code_release(code);
    release_arguments(&ours);
    release_arguments(&expected);
    return is_equal;
}

/* How many rows there are: no whole vector, some, with a rest and without. */
static const int64_t rows[] = {1, 5, 16, 64, 131, 1000};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void test(qn_context *c, const trial *t, int isa)
{
    static const char *const names[2] = {"x86-64-v3", "x86-64-v4"};
    bool is_v4 = isa == QN_ISA_V4;
    qn_error err = {0};
    qn_kernel *k = NULL;
    bool is_equal = qn_kernel_parse(t->text, strlen(t->text), &k, &err) == QN_OK;
    for (int n = 0; n < N_ROWS && is_equal; n++)
        for (int at_end = 0; at_end < 2 && is_equal; at_end++)
            is_equal = is_right(c, k, t, isa, rows[n], at_end, &err);
    if (err.status)
        tap_note("%s", err.message);
    tap_ok(is_equal, "%s, %s: bits of the interpreter", t->name, names[is_v4]);
    tap_ok((strstr(schedule, "proved flat;") != NULL) == t->is_flat[is_v4],
           "... and its schedule is %sflat", t->is_flat[is_v4] ? "" : "not ");
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- schedules of a text */

static const char update[] = "kernel k (r: f32[,], d: f32) {\n"
                             "  for all i in dim(r, 0) {\n"
                             "    r[i, 0] += d * r[i, 2]\n    r[i, 1] += d * r[i, 3] } }";

/** Writes a schedule of vectors of 16 whose accesses with a bit of `flat` are said to be flat; bit
 * n is the access n of the kernel. */
static void write_schedule(const qn_code *code, uint32_t flat, char *out, size_t bytes)
{
    static char made[MOST_TEXT];
    uint32_t access = 0;
    size_t n = 0;
    qn_code_text(code, QN_DUMP_SCHEDULE, made, sizeof made);
    for (const char *at = made; *at && n + 8 < bytes;) {
        if (strncmp(at, " flat;", 6) == 0) {
            at += 5;
            if (flat >> access++ & 1) {
                memcpy(out + n, " flat", 5);
                n += 5;
            }
            continue;
        }
        out[n++] = *at++;
    }
    out[n] = 0;
}

static void test_texts(qn_context *c)
{
    static const struct {
        const char *name;
        uint32_t flat;
        bool is_legal;
    } texts[] = {{"as planned", 077, true},
                 {"no access flat", 0, true},
                 {"stores flat, loads on their own", 044, true},
                 {"one store flat, the other not", 073, false},
                 {"loads flat, stores not", 033, false}};
    static char text[MOST_TEXT];
    const trial t = {.inner = 4};
    qn_error err = {0};
    qn_kernel *k = NULL;
    arguments x = {.n = 0};
    qn_code *code = NULL;
    qn_options o = {.bytes = sizeof o, .isa = QN_ISA_V4, .engine = QN_ENGINE_NATIVE};
    float d = 0.5f;
    qn_param_info info;
    bool is_made = qn_kernel_parse(update, sizeof update - 1, &k, &err) == QN_OK &&
                   qn_kernel_param(k, 0, &info, sizeof info, &err) == QN_OK &&
                   make_array(&info, &t, 100, true, &x.array[0], &err);
    x.arg[0] = qn_arg_view(&x.array[0].view);
    x.arg[1] = qn_arg_f32(d);
    is_made = is_made && qn_specialize(c, k, 2, x.arg, &o, &code, &err) == QN_OK;
    tap_ok(is_made, "an update of two members is compiled: %s", err.message);
    for (size_t n = 0; is_made && n < sizeof texts / sizeof *texts; n++) {
        write_schedule(code, texts[n].flat, text, sizeof text);
        qn_options given = o;
        given.schedule = text;
        err = (qn_error){0};
        bool is_taken = qn_launch(c, k, 2, x.arg, &given, &err) == QN_OK;
        tap_ok(is_taken == texts[n].is_legal && (is_taken || strstr(err.message, "flat group")),
               "schedule, %s: %s", texts[n].name, is_taken ? "taken" : err.message);
    }
    qn_code_release(code);
    release_array(&x.array[0]);
    qn_kernel_release(k);
}

/** Lanes over one iteration, whose members lie apart: they are no vectors. */
static void test_one_lane(qn_context *c)
{
    static const char one[] = "kernel k (x: f32[,], d: f32) { for all i in 0 .. 1 {\n"
                              "  x[i, 0] *= d; x[i, 1] *= d; x[i, 3] *= d } }";
    int64_t extents[] = {8, 4};
    float data[32] = {3, 4, 5, 6};
    qn_error err = {0};
    qn_layout l;
    qn_view x;
    qn_kernel *k = NULL;
    qn_options o = {.bytes = sizeof o,
                    .specialize = QN_SPECIALIZE_DYNAMIC,
                    .schedule = "declared { vectorize d0; }"};
    bool is_run = qn_kernel_parse(one, sizeof one - 1, &k, &err) == QN_OK &&
                  qn_layout_right(2, extents, &l, &err) == QN_OK &&
                  qn_view_wrap("x", data, QN_F32, &l, 0, &x, &err) == QN_OK;
    qn_arg args[] = {qn_arg_view(&x), qn_arg_f32(2)};
    is_run = is_run && qn_launch(c, k, 2, args, &o, &err) == QN_OK;
    tap_ok(is_run && data[0] == 6 && data[1] == 8 && data[2] == 5 && data[3] == 12,
           "members of one lane: %s", err.message);
    qn_kernel_release(k);
}

int main(void)
{
    qn_error err = {0};
    qn_context *c = NULL;
    bool has_v4 = __builtin_cpu_supports("avx512bw");
    qn_context_options o = {.bytes = sizeof o};
    if (!getenv("QUERN_PROVIDER"))
        o.provider_path = QN_BUILD_DIR "/libquern-llvm.so";
    if (!__builtin_cpu_supports("avx2")) {
        tap_skip("no AVX2");
        return tap_done();
    }
    if (qn_context_new(&o, &c, &err)) {
        tap_ok(false, "%s", err.message);
        return tap_done();
    }
    for (size_t n = 0; n < sizeof trials / sizeof *trials; n++) {
        test(c, &trials[n], QN_ISA_V3);
        if (has_v4)
            test(c, &trials[n], QN_ISA_V4);
    }
    if (has_v4)
        test_texts(c);
    test_one_lane(c);
    qn_context_release(c);
    return tap_done();
}
