/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_line_ends.c: transposing kernels with non-temporal stores to rows that begin anywhere in a
 * cache line: all of the rows are written, and nothing between or beside them. Schedules of v4 have
 * buffers of line ends.
 */
#include "quern.h"
#include "tests/plan.h"
#include "tests/tap.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20, GUARD = 128, N_VIEWS = 5 };

/* What else than the sum is stored: nothing; a second result; what is loaded behind the first
 * store, from the same elements; or a row of each column. */
enum { ONE, TWO, SHARED, COLUMNS, N_KINDS };

/* Of the same size: views of another type share no elements. */
static int other_dtype(int dtype)
{
    return dtype == QN_F64   ? QN_I64
           : dtype == QN_F32 ? QN_I32
           : dtype == QN_I64 ? QN_F64
           : dtype == QN_I16 ? QN_U16
                             : QN_I8;
}

/* O[i, j] = A[j, i] + B[i, j], and P[i, j] = A[j, i] + C[j, i] or P[j, i] = A[j, i]; or, where O
 * and B are one array, O[i, j] = A[j, i], P[i, j] = B[i, j] + C[j, i]. A and C are stored by
 * rows. */
static qn_kernel *build(int dtype, int kind, qn_error *err)
{
    const int other = other_dtype(dtype), in = kind == SHARED ? other : dtype;
    qn_builder *b = qn_builder_new("turn", 0);
    qn_kernel *k = NULL;
    qn_param o = qn_view_param(b, "o", dtype, 2, 0), x = qn_view_param(b, "a", in, 2, 0),
             y = qn_view_param(b, "b", dtype, 2, 0), z = qn_view_param(b, "c", in, 2, 0),
             q = qn_view_param(b, "p", kind == COLUMNS ? other : dtype, 2, 0);
    qn_val at[2] = {qn_parallel_over(b, o, 0), qn_parallel_over(b, o, 1)},
           turned[2] = {at[1], at[0]};
    qn_val v = qn_cast(b, dtype, qn_load(b, x, 2, turned));
    if (kind == COLUMNS)
        qn_store(b, q, 2, turned, qn_cast(b, other, v));
    qn_store(b, o, 2, at, kind == SHARED ? v : qn_add(b, v, qn_load(b, y, 2, at)));
    if (kind == TWO || kind == SHARED) {
        qn_val w = qn_cast(b, dtype, qn_load(b, z, 2, turned));
        qn_store(b, q, 2, at, qn_add(b, kind == SHARED ? qn_load(b, y, 2, at) : v, w));
    }
    (void)qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

typedef struct trial {
    int dtype;
    int kind;
    int64_t rows, columns, gap, begin; /* elements between rows, and before the first */
    int32_t executor;
} trial;

static char in[2][MOST_BYTES];
/* The schedule that the code has. */
static char schedule[1 << 16];

/* Runs into `out`, the results one behind the other; all of their memory counts. Of generated code
 * `schedule` is what it has. */
static qn_status run(qn_context *c, const qn_kernel *k, const trial *t, int engine, char *out,
                     qn_error *err)
{
    const int64_t bytes = qn_dtype_bytes(t->dtype), e[2] = {t->rows, t->columns},
                  turned[2] = {t->columns, t->rows};
    const int64_t pitch[2] = {t->columns + t->gap, 1},
                  all = t->rows * pitch[0] * bytes + 2 * GUARD + 64;
    const int other = other_dtype(t->dtype), turned_type = t->kind == SHARED ? other : t->dtype;
    qn_layout l, lt;
    qn_view v[N_VIEWS];
    qn_arg args[N_VIEWS];
    memset(out, 0x55, (size_t)(2 * all));
    char *o = out + GUARD + t->begin * bytes, *p = out + all + GUARD + t->begin * bytes;
    if (qn_layout_strided(2, e, pitch, &l, err) || qn_layout_right(2, turned, &lt, err) ||
        qn_view_wrap("o", o, t->dtype, &l, 0, &v[0], err) ||
        qn_view_wrap("a", in[0], turned_type, &lt, 0, &v[1], err) ||
        qn_view_wrap("b", t->kind == SHARED ? o : in[1], t->dtype, &l, 0, &v[2], err) ||
        qn_view_wrap("c", in[1], turned_type, &lt, 0, &v[3], err) ||
        qn_view_wrap("p", p, t->kind == COLUMNS ? other : t->dtype, t->kind == COLUMNS ? &lt : &l,
                     0, &v[4], err))
        return QN_ERR_ARGUMENT;
    for (int n = 0; n < N_VIEWS; n++)
        args[n] = qn_arg_view(&v[n]);
    qn_options options = {.bytes = sizeof options,
                          .engine = engine,
                          .executor = t->executor,
                          .specialize = QN_SPECIALIZE_EXACT};
    options.plan = PLAN_WITH(.streams = 1, .chunk = 4096);
    qn_code *code = NULL;
    if (engine == QN_ENGINE_NATIVE &&
        qn_specialize(c, k, N_VIEWS, args, &options, &code, err) == QN_OK)
        qn_code_text(code, QN_DUMP_SCHEDULE, schedule, sizeof schedule);
    qn_code_release(code);
    return err->status ? (qn_status)err->status : qn_launch(c, k, N_VIEWS, args, &options, err);
}

static bool has_line_ends(void)
{
    return strstr(schedule, " scratch ends %") && strstr(schedule, "flush b");
}

static bool is_right(qn_context *c, const qn_kernel *k, const trial *t)
{
    static char ours[2 * MOST_BYTES], expected[2 * MOST_BYTES];
    const int64_t all =
        2 * (t->rows * (t->columns + t->gap) * qn_dtype_bytes(t->dtype) + 2 * GUARD + 64);
    qn_error err = {0};
    bool is_equal = run(c, k, t, QN_ENGINE_INTERP, expected, &err) == QN_OK &&
                    run(c, k, t, QN_ENGINE_NATIVE, ours, &err) == QN_OK &&
                    memcmp(ours, expected, (size_t)all) == 0;
    if (!is_equal)
        tap_note("%s, %d x %d, gap %d, begin %d: %s", qn_dtype_name(t->dtype), (int)t->rows,
                 (int)t->columns, (int)t->gap, (int)t->begin, err.message);
    return is_equal;
}

int main(void)
{
    static const char *const names[N_KINDS] = {"one result", "two",
                                               "two, one of them from the elements of the other",
                                               "two, one of them by columns"};
    static const int dtypes[] = {QN_F64, QN_F32, QN_I16, QN_U8};
    static const int64_t rows[] = {8, 67, 601}, columns[] = {5, 33, 131};
    qn_error err = {0};
    qn_context *c = NULL;
    for (int64_t i = 0; i < (int64_t)sizeof in[0]; i++) {
        in[0][i] = (char)(i * 37 % 59);
        in[1][i] = (char)(i * 31 % 53);
    }
    qn_context_options o = {.bytes = sizeof o};
    if (qn_context_new(&o, &c, &err)) {
        tap_ok(false, "%s", err.message);
        return tap_done();
    }
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        const bool may_have_ends =
            __builtin_cpu_supports("avx512bw") && qn_dtype_bytes(dtypes[d]) > 1;
        const int n_kinds = qn_dtype_bytes(dtypes[d]) > 1 ? N_KINDS : 1; /* bytes have none */
        for (int kind = 0; kind < n_kinds; kind++) {
            qn_kernel *k = build(dtypes[d], kind, &err);
            bool is_equal = k != NULL;
            int n_ends = 0;
            for (int m = 0; m < 9 && is_equal; m++) {
                const trial t = {.dtype = dtypes[d],
                                 .kind = kind,
                                 .rows = rows[m / 3],
                                 .columns = columns[m % 3],
                                 .gap = (m + kind) % 4,
                                 .begin = m % 7,
                                 .executor = m % 2 ? QN_THREADS : QN_SERIAL};
                is_equal = is_right(c, k, &t);
                n_ends += has_line_ends();
            }
            if (!k)
                tap_note("%s", err.message);
            tap_ok(is_equal, "%s, %s", qn_dtype_name(dtypes[d]), names[kind]);
            tap_ok((n_ends > 0) == may_have_ends, "... of 9 schedules %d have line ends", n_ends);
            qn_kernel_release(k);
        }
    }
    qn_context_release(c);
    return tap_done();
}
