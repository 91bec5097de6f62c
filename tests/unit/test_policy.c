/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policy.c: what QN_SPECIALIZE_AUTO makes of the shapes that a kernel meets: versions whose
 * varying extents are dynamic give the bits of the interpreter for every extent, and their plans
 * suit extents that are not known.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <inttypes.h>
#include <string.h>

#define PRODUCT_TEXT                                                                               \
    "kernel \"product\" {\n view a: f32[2]; view b: f32[2]; view c: f32[2];\n"                     \
    " %0: i64 = const 0; %1: i64 = extent c, 0; %2: i64 = extent c, 1;\n"                          \
    " %3: i64 = extent a, 1; %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2;\n"              \
    " %k: i64 = reduction %0, %3;\n %s: f32 = reduce sum over %k {\n"                              \
    " %x: f32 = load a[%i, %k]; %y: f32 = load b[%k, %j]; %p: f32 = mul %x, %y; yield %p;\n };\n"  \
    " store c[%i, %j], %s;\n}\n"

enum { ROWS = 40, COLUMNS = 96, POINTS = 20 };

typedef struct job {
    qn_context *c;
    qn_kernel *k;
} job;

static qn_error err;

static job open_job(const char *text)
{
    return (job){context_with(NULL), kernel_of(text)};
}

static void close_job(job *j)
{
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

static qn_view matrix(float *data, int64_t rows, int64_t columns)
{
    const int64_t extents[] = {rows, columns};
    qn_layout l;
    qn_view v = {0};
    if (qn_layout_right(2, extents, &l, &err) || qn_view_wrap("m", data, QN_F32, &l, 0, &v, &err))
        tap_ok(false, "test view: %s", err.message);
    return v;
}

/** c = a b with so many rows, on code and on the interpreter; whether all bits are those. */
static bool multiply(const job *j, int64_t rows, char *plan, size_t plan_bytes)
{
    static float a[ROWS * POINTS], b[POINTS * COLUMNS], c[2][(ROWS + 1) * COLUMNS];
    for (int i = 0; i < ROWS * POINTS; i++)
        a[i] = (float)(i % 37) * 0.31F - 2;
    for (int i = 0; i < POINTS * COLUMNS; i++)
        b[i] = (float)(i % 41) * 0.17F - 3;
    memset(c, 0, sizeof c);
    bool is_same = true;
    for (int side = 0; side < 2; side++) {
        qn_view x = matrix(a, rows, POINTS), y = matrix(b, POINTS, COLUMNS);
        qn_view z = matrix(c[side], rows, COLUMNS);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_view(&z)};
        const qn_options o = {.bytes = sizeof o,
                              .engine = side ? QN_ENGINE_INTERP : QN_ENGINE_X86};
        qn_code *f = NULL;
        is_same = is_same && qn_launch(j->c, j->k, 3, args, &o, &err) == QN_OK;
        if (side == 0 && plan && qn_specialize(j->c, j->k, 3, args, &o, &f, &err) == QN_OK)
            qn_code_text(f, QN_DUMP_PLAN, plan, plan_bytes);
        qn_code_release(f);
    }
    return is_same && memcmp(c[0], c[1], sizeof c[0]) == 0;
}

/** Rows vary, columns and points do not: the rest of the rows runs in halves of steps. */
static void test_rows(void)
{
    job j = open_job(PRODUCT_TEXT);
    char plan[2000] = "";
    int n_wrong = 0;
    for (int64_t rows = 1; rows <= ROWS; rows++)
        n_wrong += !multiply(&j, rows, NULL, 0);
    for (int64_t rows = 1; rows <= ROWS; rows++)
        n_wrong += !multiply(&j, rows, rows == ROWS ? plan : NULL, sizeof plan);
    tap_ok(n_wrong == 0, "a product of 1 to %d rows has the bits of the interpreter: %s", ROWS,
           err.message);
    tap_is_int(counters_of(j.c).dynamic_compiles, 1, "one version serves most of them");
    tap_contains(plan, "rest tile", "what is left of the rows runs in halves of steps");
    close_job(&j);
}

int main(void)
{
    char reason[400];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_rows();
    return tap_done();
}
