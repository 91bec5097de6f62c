/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_large_body.c: a body of several hundred operations, which generated code holds only once:
 * rows of all lengths around those of vectors, with and without accesses that fail.
 */
#include "quern.h"
#include "tests/tap.h"

enum { ROWS = 3, LONGEST = 70, N_OPS = 250, GAP = 5 };

/* y[i, j] = a long chain over x[i, j + shift] */
static qn_kernel *build(int64_t shift, qn_error *err)
{
    qn_builder *b = qn_builder_new("large", 0);
    qn_param y = qn_view_param(b, "y", QN_F64, 2, 0), x = qn_view_param(b, "x", QN_F64, 2, 0);
    qn_val index[2] = {qn_parallel_over(b, y, 0), qn_parallel_over(b, y, 1)};
    qn_val at[2] = {index[0], qn_add(b, index[1], qn_index(b, shift))};
    qn_val v = qn_load(b, x, 2, at), w = v;
    for (int n = 0; n < N_OPS; n++) {
        qn_val c = qn_const_float(b, QN_F64, 1 + 0x1p-8 * n);
        qn_val next = n % 3 ? qn_add(b, qn_mul(b, v, c), w) : qn_sub(b, c, v);
        w = n % 7 ? w : v;
        v = qn_mul(b, next, qn_const_float(b, QN_F64, 0.5));
    }
    qn_store(b, y, 2, index, v);
    qn_kernel *k = NULL;
    (void)qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

/* The schedule that the code has. */
static char schedule[1 << 16];

/* Runs with rows of n elements; the memory around them must stay. Of generated code `schedule` is
 * what it has. */
static qn_status run(qn_context *c, const qn_kernel *k, int64_t n, int engine, int isa, double *out,
                     qn_error *err)
{
    static double in[ROWS * (LONGEST + GAP)];
    const int64_t extents[2] = {ROWS, n}, strides[2] = {n + GAP, 1};
    qn_layout l;
    qn_view y, x;
    for (int64_t i = 0; i < ROWS * (n + GAP); i++) {
        in[i] = (double)(i * 37 % 101) * 0x1p-5;
        out[i] = -1;
    }
    if (qn_layout_strided(2, extents, strides, &l, err) ||
        qn_view_wrap("y", out, QN_F64, &l, 0, &y, err) ||
        qn_view_wrap("x", in, QN_F64, &l, 0, &x, err))
        return QN_ERR_ARGUMENT;
    qn_arg args[2] = {qn_arg_view(&y), qn_arg_view(&x)};
    qn_options o = {.bytes = sizeof o, .engine = engine, .isa = isa, .executor = QN_SERIAL};
    o.specialize = n % 2 ? QN_SPECIALIZE_EXACT : QN_SPECIALIZE_DYNAMIC;
    qn_code *code = NULL;
    if (engine == QN_ENGINE_NATIVE && qn_specialize(c, k, 2, args, &o, &code, err) == QN_OK)
        qn_code_text(code, QN_DUMP_SCHEDULE, schedule, sizeof schedule);
    qn_code_release(code);
    return err->status ? (qn_status)err->status : qn_launch(c, k, 2, args, &o, err);
}

/* Whether results are right, and what is left of rows has the tail that keeps code small: of v4 the
 * vectors under a mask that all steps are, of v3 scalar code. */
static bool is_right(qn_context *c, const qn_kernel *k, int isa)
{
    static double ours[ROWS * (LONGEST + GAP)], expected[ROWS * (LONGEST + GAP)];
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 33, 64, 69};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        qn_error first = {0}, second = {0};
        int64_t n = sizes[s];
        qn_status status = run(c, k, n, QN_ENGINE_INTERP, 0, expected, &first);
        if (run(c, k, n, QN_ENGINE_NATIVE, isa, ours, &second) != status ||
            strcmp(first.message, second.message) != 0 ||
            memcmp(ours, expected, (size_t)(ROWS * (n + GAP)) * sizeof *ours) != 0) {
            tap_note("rows of %d: %s; expected %s", (int)n, second.message, first.message);
            return false;
        }
        if (!strstr(schedule, isa == QN_ISA_V4 ? " tail mask" : " tail scalar")) {
            tap_note("rows of %d have the schedule %.200s", (int)n, schedule);
            return false;
        }
    }
    return true;
}

int main(void)
{
    static const struct {
        int64_t shift;
        int isa;
        const char *what;
    } cases[] = {{0, QN_ISA_V3, "v3"},
                 {0, QN_ISA_V4, "v4"},
                 {1, QN_ISA_V3, "v3, last column fails"},
                 {1, QN_ISA_V4, "v4, last column fails"},
                 {-2, QN_ISA_V4, "v4, first columns fail"}};
    qn_context *c = NULL;
    qn_error err = {0};
    tap_ok(qn_context_new(NULL, &c, &err) == QN_OK, "context %s", err.message);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        qn_kernel *k = build(cases[n].shift, &err);
        if (!k)
            tap_ok(false, "kernel: %s", err.message);
        else if (!__builtin_cpu_supports("avx512bw") && cases[n].isa == QN_ISA_V4)
            tap_skip("no AVX-512");
        else
            tap_ok(is_right(c, k, cases[n].isa), "rows and their tails: %s", cases[n].what);
        qn_kernel_release(k);
    }
    qn_context_release(c);
    return tap_done();
}
