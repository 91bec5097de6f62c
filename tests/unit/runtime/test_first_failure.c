/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_first_failure.c: a launch of 2^40 iterations, points or trips returns soon after the first
 * access that is out of range where loops walk the order of the domain, with the message of the
 * interpreter: on every engine, executor and instruction set. Without that the time limit of the
 * launch ends it.
 */
#include "tests/unit/launch.h"

#include <string.h>

enum { N = 30, ROWS = 5, COLUMNS = 6, LIMIT_SECONDS = 200 };
#define MANY (INT64_C(1) << 40)

/** x has 30 elements, y 5 x 6, and n is 2^40. */
#define HEAD "kernel k (x: i64[], y: i64[,], n: i64) {\n"
static const struct failing {
    const char *name, *text, *message;
} kernels[] = {
    {"a domain of one dimension", HEAD "for all i in 0 .. n { atomic y[0, 0] += x[i] } }",
     "indices [30], extents [30]; iteration (30)"},
    {"the second dimension of a domain",
     HEAD "for all i in 0 .. 5, j in 0 .. n { y[i, j] = x[i] } }",
     "indices [0,6], extents [5,6]; iteration (0,6)"},
    {"steps of a sequential dimension",
     HEAD "for sequential t in 0 .. n { for all i in 0 .. 5 { y[i, 0] = x[t] } } }",
     "indices [30], extents [30]; iteration (30,0)"},
    {"trips of a for",
     HEAD "for all i in 0 .. 5 { a: i64 = 0; for k in 0 .. n { a += x[k] }; y[i, 0] = a } }",
     "indices [30], extents [30]; iteration (0)"},
    {"trips of a for that is all right",
     HEAD "for all i in 0 .. 5 { a = x[i + 30]; for k in 0 .. n { a ^= k }; y[i, 0] = a } }",
     "indices [30], extents [30]; iteration (0)"},
    {"trips of a while",
     HEAD "for all i in 0 .. 5 { a: i64 = 0; k: i64 = 0; while k < n max 9223372036854775807 "
          "{ a += x[k]; k += 1 }; y[i, 0] = a } }",
     "indices [30], extents [30]; iteration (0)"},
    {"points of a sum", HEAD "for all i in 0 .. 5 { y[i, 0] = sum k in 0 .. n of x[k] } }",
     "indices [30], extents [30]; iteration (0)"},
    {"points of a sum in order",
     HEAD "for all i in 0 .. 5 { y[i, 0] = i64(sum indexed k in 0 .. n of f64(x[k])) } }",
     "indices [30], extents [30]; iteration (0)"},
    {"points of a sum in stripes",
     HEAD "for all i in 0 .. 5 { y[i, 0] = i64(sum striped k in 0 .. n of f64(x[k])) } }",
     "indices [30], extents [30]; iteration (0)"},
};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/** Ways to run them. */
static const struct way {
    const char *name;
    int engine, executor, isa, specialize;
    bool is_ordered; /* y has the memory of x */
} ways[] = {
    {"interpreter", QN_ENGINE_INTERP, QN_SERIAL, 0, 0, false},
    {"v3, exact", QN_ENGINE_NATIVE, QN_SERIAL, QN_ISA_V3, QN_SPECIALIZE_EXACT, false},
    {"exact", QN_ENGINE_NATIVE, QN_SERIAL, 0, QN_SPECIALIZE_EXACT, false},
    {"dynamic", QN_ENGINE_NATIVE, QN_SERIAL, 0, QN_SPECIALIZE_DYNAMIC, false},
    {"generic", QN_ENGINE_NATIVE, QN_SERIAL, 0, QN_SPECIALIZE_GENERIC, false},
    {"threads", QN_ENGINE_NATIVE, QN_THREADS, 0, QN_SPECIALIZE_EXACT, false},
    {"iteration order", QN_ENGINE_NATIVE, QN_THREADS, 0, QN_SPECIALIZE_EXACT, true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static void test_kernel(qn_context *c, const struct failing *f, bool has_code)
{
    int64_t x[N] = {0}, y[ROWS * COLUMNS], extents[2] = {ROWS, COLUMNS}, n = N;
    qn_kernel *k = kernel_of(f->text);
    qn_layout of_x, of_y;
    qn_view views[3];
    if (!k || qn_layout_right(1, &n, &of_x, NULL) || qn_layout_right(2, extents, &of_y, NULL) ||
        qn_view_wrap("x", x, QN_I64, &of_x, 0, &views[0], NULL) ||
        qn_view_wrap("y", y, QN_I64, &of_y, 0, &views[1], NULL) ||
        qn_view_wrap("y", x, QN_I64, &of_y, 0, &views[2], NULL)) {
        tap_ok(false, "%s: no arguments", f->name);
        return;
    }
    for (int w = 0; w < (has_code ? N_WAYS : 1); w++) {
        const qn_arg args[] = {qn_arg_view(&views[0]), qn_arg_view(&views[1 + ways[w].is_ordered]),
                               qn_arg_int(QN_I64, MANY)};
        const qn_options o = {.bytes = sizeof o,
                              .engine = ways[w].engine,
                              .executor = ways[w].executor,
                              .isa = ways[w].isa,
                              .specialize = ways[w].specialize,
                              .timeout_ns = LIMIT_SECONDS * INT64_C(1000000000)};
        qn_error err = {0};
        memset(y, 0, sizeof y);
        const qn_status status = qn_launch(c, k, 3, args, &o, &err);
        tap_ok(status == QN_ERR_BOUNDS && strstr(err.message, f->message), "%s, %s: %s", f->name,
               ways[w].name, err.message);
    }
    for (int v = 0; v < 3; v++)
        qn_view_release(&views[v]);
    qn_layout_release(&of_x);
    qn_layout_release(&of_y);
    qn_kernel_release(k);
}

int main(void)
{
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 3};
    char reason[QN_MESSAGE_BYTES];
    qn_context *c = NULL;
    qn_error err = {0};
    if (!tap_ok(qn_context_new(&o, &c, &err) == QN_OK, "a context %s", err.message))
        return tap_done();
    const bool has_code = has_x86(reason, sizeof reason);
    if (!has_code)
        tap_skip(reason);
    for (int i = 0; i < N_KERNELS; i++)
        test_kernel(c, &kernels[i], has_code);
    qn_context_release(c);
    return tap_done();
}
