/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_sum.c: kernels of RAJAPerf that reduce or sweep against C in the right order for each
 * layout (native_sum.c), and kernels against what an expert writes by hand (native_expert_body.c):
 * one thread, exact extents. Checked before they are timed, against C to what the length of the
 * sums allows.
 */
#include "bench.h"
#include "native_sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, HALF = 8, MAX_RANK = 3 };

/* Extents of arrays: nothing, a vector, a square matrix, and what single kernels need. */
enum {
    SCALAR,
    VECTOR,
    SQUARE,
    PHI,
    PSI,
    ELL,
    PREDICT_13,
    PREDICT_14,
    LONG,
    WIDE,
    CUBE,
    THICK,
    THIN,
    ROWS_LONG,
    N_SHAPES
};
static const struct {
    int rank;
    int64_t extent[MAX_RANK];
} shapes[N_SHAPES] = {
    [SCALAR] = {0, {0}},
    [VECTOR] = {1, {SUM_N}},
    [SQUARE] = {2, {SUM_EDGE, SUM_EDGE}},
    [PHI] = {3, {LTIMES_Z, LTIMES_G, LTIMES_M}},
    [PSI] = {3, {LTIMES_Z, LTIMES_G, LTIMES_D}},
    [ELL] = {2, {LTIMES_M, LTIMES_D}},
    [PREDICT_13] = {2, {PREDICT_N, PREDICT_INT}},
    [PREDICT_14] = {2, {PREDICT_N, PREDICT_DIFF}},
    [LONG] = {1, {LARGE_N}},
    [WIDE] = {2, {LARGE_2D, LARGE_2D}},
    [CUBE] = {3, {LARGE_3D, LARGE_3D, LARGE_3D}},
    [THICK] = {3, {PLANES_1003, 1003, 1003}},
    [ROWS_LONG] = {2, {ROWS_0, ROWS_1}},
    [THIN] = {3, {PLANES_3003, 3003, 3003}},
};

typedef struct sum_case {
    bench_body_info body;
    int shape[MOST]; /* of each array; a VECTOR in a case with a SQUARE has the length of its edge
                      */
    sum_loop right, left; /* NULL: not in this layout */
    bool is_expert, is_large;
} sum_case;

#define STENCIL5                                                                                   \
    "O(i, j) = A(i, j) + 0.1 * ((A(i - 1, j) + A(i + 1, j)) + (A(i, j - 1) + A(i, j + 1)) - 4.0 "  \
    "* A(i, j))"
#define STENCIL7                                                                                   \
    "O(i, j, k) = A(i, j, k) + 0.1 * ((A(i, j - 1, k) + A(i, j + 1, k)) + (A(i, j, k - 1) + A(i, " \
    "j, k + 1)) + "                                                                                \
    "(A(i - 1, j, k) + A(i + 1, j, k)) - 6.0 * A(i, j, k))"
#define ROWS "stripes(s, j, A, 1, A(i, j) * B(j)); "
#define COLUMNS "sum(s, j, A, 0, A(j, i) * B(j)); "

static const sum_case cases[] = {
    {{"DOT", "sum(s, i, A, 0, A(i) * B(i)); O() = s", .n_out = 1, .n_in = 2, .ranks = "011"},
     {SCALAR, VECTOR, VECTOR},
     dot,
     NULL,
     false,
     false},
    {{"REDUCE_SUM", "sum(s, i, A, 0, A(i)); O() = s", .n_out = 1, .n_in = 1, .ranks = "01"},
     {SCALAR, VECTOR},
     reduce_sum,
     NULL,
     false,
     false},
    {{"PI_REDUCE",
      "sum(s, i, A, 0, 0.000001 / (1.0 + (real(i) + 0.5) * 0.000001 * ((real(i) + 0.5) * "
      "0.000001))); O() = 4.0 * s",
      .n_out = 1, .n_in = 1, .ranks = "01"},
     {SCALAR, VECTOR},
     pi_reduce,
     NULL,
     false,
     false},
    {{"TRAP_INT",
      "sum(s, i, A, 0, 1.0 / root((real(i) * 0.0000006 - 0.2) * (real(i) * 0.0000006 - 0.2) + "
      "0.04)); "
      "O() = s * 0.0000006",
      .n_out = 1, .n_in = 1, .ranks = "01"},
     {SCALAR, VECTOR},
     trap_int,
     NULL,
     false,
     false},
    {{"REDUCE3_INT",
      "sum(s, i, A, 0, A(i)); least(l, i, A, 0, A(i)); most(m, i, A, 0, A(i)); O() = s; P() = l; "
      "Q() = m",
      .n_out = 3, .n_in = 1, .dtype = QN_I32, .ranks = "0001"},
     {SCALAR, SCALAR, SCALAR, VECTOR},
     reduce3_int,
     NULL,
     false,
     false},
    {{"REDUCE_STRUCT",
      "sum(s, i, A, 0, A(i)); least(l, i, A, 0, A(i)); most(m, i, A, 0, A(i)); O() = s; P() = l; "
      "Q() = m; "
      "sum(t, i, A, 0, B(i)); least(n, i, A, 0, B(i)); most(o, i, A, 0, B(i)); R() = t; S() = n; "
      "U() = o",
      .n_out = 6, .n_in = 2, .ranks = "00000011"},
     {SCALAR, SCALAR, SCALAR, SCALAR, SCALAR, SCALAR, VECTOR, VECTOR},
     reduce_struct,
     NULL,
     false,
     false},
    {{"GESUMMV",
      "stripes(s, j, A, 1, A(i, j) * C(j)); stripes(t, j, A, 1, B(i, j) * C(j)); O(i) = 1.5 * s + "
      "1.2 * t",
      .rank = 1, .n_out = 1, .n_in = 3, .ranks = "1221"},
     {VECTOR, SQUARE, SQUARE, VECTOR},
     gesummv_right,
     gesummv_left,
     false,
     false},
    {{"ATAX_1", ROWS "O(i) = s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     rows_right,
     rows_left,
     false,
     false},
    {{"ATAX_2", COLUMNS "O(i) = s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     columns_right,
     columns_left,
     false,
     false},
    {{"MVT_1", ROWS "O(i) = O(i) + s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     add_rows_right,
     add_rows_left,
     false,
     false},
    {{"MVT_2", COLUMNS "O(i) = O(i) + s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     add_columns_right,
     add_columns_left,
     false,
     false},
    {{"GEMVER_W", ROWS "O(i) = O(i) + 1.5 * s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     gemver_w_right,
     gemver_w_left,
     false,
     false},
    {{"LTIMES", "sum(s, l, A, 2, B(k, l) * A(i, j, l)); O(i, j, k) = O(i, j, k) + s", .rank = 3,
      .n_out = 1, .n_in = 2, .ranks = "332"},
     {PHI, PSI, ELL},
     ltimes_right,
     ltimes_left,
     false,
     false},
    {{"ADI",
      "real t = 1.0 / (0.3 * O(i, j - 1) + 1.6); O(i, j) = -0.3 * t; "
      "P(i, j) = (1.4 * A(j, i) - 0.2 * (A(j, i - 1) + A(j, i + 1)) - 0.3 * P(i, j - 1)) * t",
      .rank = 2, .n_out = 2, .n_in = 1, .first = 1, .last = 1, .sequential = 2},
     {SQUARE, SQUARE, SQUARE},
     adi_right,
     adi_left,
     false,
     false},
    {{"INT_PREDICT",
      "O(i, 0) = 0.1 * O(i, 12) + 0.2 * O(i, 11) + 0.3 * O(i, 10) + 0.4 * O(i, 9) + 0.5 * O(i, 8) "
      "+ "
      "0.6 * O(i, 7) + 0.7 * O(i, 6) + 0.8 * (O(i, 4) + O(i, 5)) + O(i, 2)",
      .rank = 1, .n_out = 1, .ranks = "2"},
     {PREDICT_13},
     NULL,
     int_predict,
     false,
     false},
    {{"DIFF_PREDICT",
      "real a = A(i, 4); real b = a - O(i, 4); O(i, 4) = a; real c = b - O(i, 5); O(i, 5) = b; "
      "real d = c - O(i, 6); O(i, 6) = c; real e = d - O(i, 7); O(i, 7) = d; real f = e - O(i, 8); "
      "O(i, 8) = e; "
      "real g = f - O(i, 9); O(i, 9) = f; real h = g - O(i, 10); O(i, 10) = g; real p = h - O(i, "
      "11); O(i, 11) = h; "
      "real q = p - O(i, 12); O(i, 12) = p; O(i, 13) = q",
      .rank = 1, .n_out = 1, .n_in = 1, .ranks = "22"},
     {PREDICT_14, PREDICT_14},
     NULL,
     diff_predict,
     false,
     false},
    {{"PLANES_1003", STENCIL7, .rank = 3, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {THICK, THICK},
     planes_1003,
     NULL,
     false,
     true},
    {{"PLANES_3003", STENCIL7, .rank = 3, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {THIN, THIN},
     planes_3003,
     NULL,
     false,
     true},
    {{"LONG_ROWS", STENCIL5, .rank = 2, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {ROWS_LONG, ROWS_LONG},
     long_rows,
     NULL,
     false,
     true},
    {{"COPY_ROWS", "O(i, j, k) = A(i, j, k)", .rank = 3, .n_out = 1, .n_in = 1, .first = 1,
      .last = 1},
     {CUBE, CUBE},
     copy_rows,
     NULL,
     false,
     true},

    {{"COPY", "O(i) = A(i)", .rank = 1, .n_out = 1, .n_in = 1},
     {LONG, LONG},
     expert_copy,
     NULL,
     true,
     false},
    {{"STENCIL5", STENCIL5, .rank = 2, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {WIDE, WIDE},
     expert_stencil5,
     NULL,
     true,
     false},
    {{"STENCIL7", STENCIL7, .rank = 3, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {CUBE, CUBE},
     expert_stencil7,
     NULL,
     true,
     false},
    {{"PLANES_1003", STENCIL7, .rank = 3, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {THICK, THICK},
     expert_planes_1003,
     NULL,
     true,
     false},
    {{"PLANES_3003", STENCIL7, .rank = 3, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {THIN, THIN},
     expert_planes_3003,
     NULL,
     true,
     false},
    {{"DOT", "sum(s, i, A, 0, A(i) * B(i)); O() = s", .n_out = 1, .n_in = 2, .ranks = "011"},
     {SCALAR, VECTOR, VECTOR},
     expert_dot,
     NULL,
     true,
     false},
    {{"REDUCE_SUM", "sum(s, i, A, 0, A(i)); O() = s", .n_out = 1, .n_in = 1, .ranks = "01"},
     {SCALAR, VECTOR},
     expert_sum,
     NULL,
     true,
     false},
    {{"ATAX_1", ROWS "O(i) = s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     expert_rows,
     NULL,
     true,
     false},
    {{"ATAX_2", COLUMNS "O(i) = s", .rank = 1, .n_out = 1, .n_in = 2, .ranks = "121"},
     {VECTOR, SQUARE, VECTOR},
     expert_columns,
     NULL,
     true,
     false},
    {{"SHARE_ROWS", "stripes(s, k, A, 1, A(i, k)); O(i, j) = A(i, j) / s", .rank = 2, .n_out = 1,
      .n_in = 1},
     {SQUARE, SQUARE},
     expert_share_rows,
     NULL,
     true,
     false},
};

/* ---------------------------------------------------------------- arrays */

typedef struct arrays {
    bench_memory memory;
    int n, dtype;
    qn_view view[MOST];
    qn_arg args[MOST];
    void *data[2 * HALF]; /* as the C loops want them */
} arrays;

static int64_t extents_of(const sum_case *c, int array, int64_t *extents)
{
    int64_t n = 1;
    const int shape = c->shape[array], rank = shapes[shape].rank;
    bool has_square = false;
    for (int i = 0; i < c->body.n_out + c->body.n_in; i++)
        has_square |= c->shape[i] == SQUARE;
    for (int d = 0; d < rank; d++) {
        extents[d] = shape == VECTOR && has_square ? SUM_EDGE : shapes[shape].extent[d];
        n *= extents[d];
    }
    return n;
}

static bool make_arrays(arrays *a, const sum_case *c, bool is_left, qn_error *err)
{
    int64_t extents[MAX_RANK];
    size_t bytes[MOST];
    *a = (arrays){.n = c->body.n_out + c->body.n_in,
                  .dtype = c->body.dtype ? c->body.dtype : QN_F64};
    for (int i = 0; i < a->n; i++)
        bytes[i] = (size_t)(extents_of(c, i, extents) * qn_dtype_bytes(a->dtype));
    if (bench_memory_make(&a->memory, a->n, bytes, err))
        return false;
    for (int i = 0; i < a->n; i++) {
        qn_layout l;
        (void)extents_of(c, i, extents);
        int rank = shapes[c->shape[i]].rank;
        bool is_out = i < c->body.n_out;
        void *data = a->memory.at[i];
        qn_status status = is_left ? qn_layout_left(rank, extents, &l, err)
                                   : qn_layout_right(rank, extents, &l, err);
        if (status ||
            qn_view_wrap("array", data, a->dtype, &l, is_out ? 0 : QN_READ_ONLY, &a->view[i], err))
            return false;
        a->args[i] = qn_arg_view(&a->view[i]);
        a->data[is_out ? i : HALF + i - c->body.n_out] = data;
    }
    return true;
}

/* Values in [0.5, 1.5), or integers of 31 bits. */
static void fill(const arrays *a)
{
    if (a->dtype != QN_I32) {
        bench_memory_fill(&a->memory);
        return;
    }
    uint32_t state = 7;
    int32_t *x = (int32_t *)(void *)a->memory.first;
    for (size_t i = 0; i < a->memory.bytes / sizeof *x; i++)
        x[i] = (int32_t)(state = state * 1664525u + 1013904223u);
}

/* Integers are the same; floats differ by as many roundings as the longest sum has. */
static bool is_close(const arrays *a, const void *kept)
{
    if (a->dtype == QN_I32)
        return memcmp(a->memory.first, kept, a->memory.bytes) == 0;
    return bench_memory_is_close(&a->memory, kept, (double)SUM_N * 0x1p-53);
}

/* ---------------------------------------------------------------- cases */

typedef struct native_run {
    sum_loop loop;
    void *const *data;
} native_run;

static void run_native(const void *data)
{
    const native_run *r = data;
    r->loop(r->data);
}

static void run_case(bench *b, const char *name, const sum_case *c, bool is_left,
                     const qn_kernel *k)
{
    arrays a;
    qn_error error = {0};
    qn_call *call = NULL;
    void *ours = NULL;
    sum_loop loop = is_left ? c->left : c->right;
    qn_options o = bench_options(b);
    bool is_ok = make_arrays(&a, c, is_left, &error);
    if (is_ok && b->assembly_of) {
        bench_print_assembly(b, name, k, a.n, a.args, &o);
        bench_memory_free(&a.memory);
        return;
    }
    is_ok = is_ok && bench_prepare(b, k, a.n, a.args, &o, &call, &error) == QN_OK;
    if (is_ok) {
        fill(&a);
        is_ok = qn_run(call, &error) == QN_OK && (ours = bench_memory_keep(&a.memory)) != NULL;
    }
    if (is_ok) {
        fill(&a);
        loop(a.data);
        is_ok = is_close(&a, ours);
    }
    free(ours);
    double goal = c->is_expert ? 0.85 : 0.9;
    bench_line line = {.name = name,
                       .group = c->is_expert  ? GROUP_EXPERT
                                : c->is_large ? GROUP_DATA
                                              : GROUP_BODY,
                       .goal = goal,
                       .short_below = goal};
    if (is_ok)
        bench_in_turns(b, &line, call, run_native, &(native_run){loop, a.data});
    else
        bench_wrong(b, name, "not the result of C: %s", error.message);
    qn_call_release(call);
    bench_memory_free(&a.memory);
}

void bench_sum_cases(bench *b)
{
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int is_left = 0; is_left < 2; is_left++) {
            const sum_case *c = &cases[n];
            char name[64];
            qn_error error = {0};
            snprintf(name, sizeof name, "%s/%s/%s",
                     c->is_expert  ? "expert"
                     : c->is_large ? "large"
                                   : "raja",
                     c->body.name, is_left ? "left" : "right");
            if (!(is_left ? c->left : c->right) || !bench_wants(b, name))
                continue;
            qn_kernel *k = bench_body(&c->body, &error);
            if (k)
                run_case(b, name, c, is_left, k);
            else
                bench_wrong(b, name, "no kernel: %s", error.message);
            qn_kernel_release(k);
        }
}
