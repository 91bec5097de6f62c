/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_gccjit.c: what libgccjit takes for an expression, a call and a stencil, built at run time
 * through its C interface at -O3 for x86-64-v4 (it does not know -march=native).
 * tests/bench/peers.py compiles and runs this program; it is no part of the build. Each line of the
 * output is the name of a row and seconds. Results are compared with what this program computes.
 */
#define _POSIX_C_SOURCE 200809L
#include <libgccjit.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1000000, SIDE = 1024 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static gcc_jit_context *open_context(void)
{
    gcc_jit_context *c = gcc_jit_context_acquire();
    gcc_jit_context_set_int_option(c, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, 3);
    gcc_jit_context_add_command_line_option(c, "-march=x86-64-v4");
    return c;
}

/* What a function that is built needs: its parameters x, y, out and n, and types. */
typedef struct build {
    gcc_jit_context *c;
    gcc_jit_type *real, *whole, *pointer;
    gcc_jit_param *param[4];
    gcc_jit_function *f;
} build;

static build begin(void)
{
    static const char *const names[] = {"x", "y", "out", "n"};
    build b = {.c = open_context()};
    b.real = gcc_jit_context_get_type(b.c, GCC_JIT_TYPE_DOUBLE);
    b.whole = gcc_jit_context_get_type(b.c, GCC_JIT_TYPE_LONG);
    b.pointer = gcc_jit_type_get_pointer(b.real);
    for (int i = 0; i < 4; i++)
        b.param[i] = gcc_jit_context_new_param(b.c, NULL, i < 3 ? b.pointer : b.whole, names[i]);
    b.f = gcc_jit_context_new_function(b.c, NULL, GCC_JIT_FUNCTION_EXPORTED,
                                       gcc_jit_context_get_type(b.c, GCC_JIT_TYPE_VOID), "f", 4,
                                       b.param, 0);
    return b;
}

static gcc_jit_rvalue *param(const build *b, int i)
{
    return gcc_jit_param_as_rvalue(b->param[i]);
}

static gcc_jit_rvalue *whole(const build *b, long value)
{
    return gcc_jit_context_new_rvalue_from_long(b->c, b->whole, value);
}

static gcc_jit_rvalue *real(const build *b, double value)
{
    return gcc_jit_context_new_rvalue_from_double(b->c, b->real, value);
}

static gcc_jit_rvalue *op(const build *b, enum gcc_jit_binary_op what, gcc_jit_type *type,
                          gcc_jit_rvalue *x, gcc_jit_rvalue *y)
{
    return gcc_jit_context_new_binary_op(b->c, NULL, what, type, x, y);
}

/* An element of array i of the parameters. */
static gcc_jit_lvalue *element(const build *b, int i, gcc_jit_rvalue *at)
{
    return gcc_jit_context_new_array_access(b->c, NULL, param(b, i), at);
}

static gcc_jit_rvalue *load(const build *b, int i, gcc_jit_rvalue *at)
{
    return gcc_jit_lvalue_as_rvalue(element(b, i, at));
}

/* The loop "for (i = from; i < to; i++)" in block `before`: its body is `body`, what follows is
 * `after`. */
typedef struct loop {
    gcc_jit_lvalue *i;
    gcc_jit_block *body, *after, *head;
} loop;

static loop begin_loop(const build *b, gcc_jit_block *before, const char *name,
                       gcc_jit_rvalue *from, gcc_jit_rvalue *to)
{
    loop l = {.i = gcc_jit_function_new_local(b->f, NULL, b->whole, name)};
    l.head = gcc_jit_function_new_block(b->f, NULL);
    l.body = gcc_jit_function_new_block(b->f, NULL);
    l.after = gcc_jit_function_new_block(b->f, NULL);
    gcc_jit_block_add_assignment(before, NULL, l.i, from);
    gcc_jit_block_end_with_jump(before, NULL, l.head);
    gcc_jit_block_end_with_conditional(
        l.head, NULL,
        gcc_jit_context_new_comparison(b->c, NULL, GCC_JIT_COMPARISON_LT,
                                       gcc_jit_lvalue_as_rvalue(l.i), to),
        l.body, l.after);
    return l;
}

static void end_loop(const build *b, const loop *l, gcc_jit_block *last)
{
    gcc_jit_block_add_assignment_op(last, NULL, l->i, GCC_JIT_BINARY_OP_PLUS, whole(b, 1));
    gcc_jit_block_end_with_jump(last, NULL, l->head);
}

typedef void function(const double *x, const double *y, double *out, long n);

static function *finish(const build *b, gcc_jit_result **result)
{
    *result = gcc_jit_context_compile(b->c);
    gcc_jit_context_release(b->c);
    void *code = *result ? gcc_jit_result_get_code(*result, "f") : NULL;
    function *f;
    memcpy(&f, &code, sizeof f); /* ISO C has no cast from one to the other */
    return f;
}

/* out[i] = number * x[i] + sin(x[i] / 10) */
static function *build_expression(double number, gcc_jit_result **result)
{
    build b = begin();
    loop l = begin_loop(&b, gcc_jit_function_new_block(b.f, NULL), "i", whole(&b, 0), param(&b, 3));
    gcc_jit_rvalue *i = gcc_jit_lvalue_as_rvalue(l.i), *tenth;
    tenth = op(&b, GCC_JIT_BINARY_OP_DIVIDE, b.real, load(&b, 0, i), real(&b, 10));
    gcc_jit_rvalue *sine = gcc_jit_context_new_call(
        b.c, NULL, gcc_jit_context_get_builtin_function(b.c, "sin"), 1, &tenth);
    gcc_jit_rvalue *product =
        op(&b, GCC_JIT_BINARY_OP_MULT, b.real, real(&b, number), load(&b, 0, i));
    gcc_jit_block_add_assignment(l.body, NULL, element(&b, 2, i),
                                 op(&b, GCC_JIT_BINARY_OP_PLUS, b.real, product, sine));
    end_loop(&b, &l, l.body);
    gcc_jit_block_end_with_void_return(l.after, NULL);
    return finish(&b, result);
}

/* out[i] = x[i] + y[i] */
static function *build_sum(gcc_jit_result **result)
{
    build b = begin();
    loop l = begin_loop(&b, gcc_jit_function_new_block(b.f, NULL), "i", whole(&b, 0), param(&b, 3));
    gcc_jit_rvalue *i = gcc_jit_lvalue_as_rvalue(l.i);
    gcc_jit_block_add_assignment(
        l.body, NULL, element(&b, 2, i),
        op(&b, GCC_JIT_BINARY_OP_PLUS, b.real, load(&b, 0, i), load(&b, 1, i)));
    end_loop(&b, &l, l.body);
    gcc_jit_block_end_with_void_return(l.after, NULL);
    return finish(&b, result);
}

/* The mean of four neighbours on the inner points of n x n, which is SIDE x SIDE: the extent is a
 * constant of the code. */
static function *build_stencil(gcc_jit_result **result)
{
    build b = begin();
    const enum gcc_jit_binary_op plus = GCC_JIT_BINARY_OP_PLUS;
    loop rows = begin_loop(&b, gcc_jit_function_new_block(b.f, NULL), "i", whole(&b, 1),
                           whole(&b, SIDE - 1));
    loop columns = begin_loop(&b, rows.body, "j", whole(&b, 1), whole(&b, SIDE - 1));
    gcc_jit_rvalue *row =
        op(&b, GCC_JIT_BINARY_OP_MULT, b.whole, gcc_jit_lvalue_as_rvalue(rows.i), whole(&b, SIDE));
    gcc_jit_rvalue *at = op(&b, plus, b.whole, row, gcc_jit_lvalue_as_rvalue(columns.i)),
                   *sum = NULL;
    const long step[] = {-SIDE, SIDE, -1, 1};
    for (int k = 0; k < 4; k++) {
        gcc_jit_rvalue *value = load(&b, 0, op(&b, plus, b.whole, at, whole(&b, step[k])));
        sum = sum ? op(&b, plus, b.real, sum, value) : value;
    }
    gcc_jit_block_add_assignment(columns.body, NULL, element(&b, 2, at),
                                 op(&b, GCC_JIT_BINARY_OP_MULT, b.real, real(&b, 0.25), sum));
    end_loop(&b, &columns, columns.body);
    end_loop(&b, &rows, columns.after);
    gcc_jit_block_end_with_void_return(rows.after, NULL);
    return finish(&b, result);
}

/* The least time of one of `calls` calls, over 0.4 s. */
static double least(function *f, const double *x, const double *y, double *out, long n, int calls)
{
    double best = 1e9, stop = now() + 0.4;
    for (f(x, y, out, n); now() < stop;) {
        double start = now();
        for (int i = 0; i < calls; i++)
            f(x, y, out, n);
        double one = (now() - start) / calls;
        best = one < best ? one : best;
    }
    return best;
}

/* Whether every step-th of n results is number * x + sin(x / 10). */
static bool expression_holds(const double *x, const double *out, double number, int n, int step)
{
    for (int i = 0; i < n; i += step) {
        double want = number * x[i] + sin(x[i] / 10);
        if (!(fabs(out[i] - want) <= 1e-12 * (1 + fabs(want))))
            return false;
    }
    return true;
}

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void)
{
    double *x = malloc(sizeof *x * SIDE * SIDE), *out = calloc(SIDE * SIDE, sizeof *out),
           best = 1e9;
    gcc_jit_result *result;
    if (!x || !out)
        return fail("no memory");
    printf("version: %d.%d.%d\n", gcc_jit_version_major(), gcc_jit_version_minor(),
           gcc_jit_version_patchlevel());
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = 100.0 * i / (SIDE * SIDE);
    for (int i = 0; i < 7; i++) {
        double start = now();
        function *f = build_expression(i + 2.5, &result);
        if (!f)
            return fail("the expression is not compiled");
        f(x, x, out, 1000);
        double time = now() - start;
        best = i && time < best ? time : best;
        if (!expression_holds(x, out, i + 2.5, 1000, 1))
            return fail("the first result is wrong");
        gcc_jit_result_release(result);
    }
    printf("first result of a new expression: %.9g\n", best);
    function *f = build_sum(&result);
    if (!f)
        return fail("the sum is not compiled");
    printf("call, x + y of 5 elements: %.9g\n", least(f, x, x, out, 5, 100000));
    for (int i = 0; i < 5; i++)
        if (out[i] != x[i] + x[i])
            return fail("the sum is wrong");
    gcc_jit_result_release(result);
    if (!(f = build_expression(2, &result)))
        return fail("the expression is not compiled");
    printf("2*x + sin(x/10), 10^6 f64: %.9g\n", least(f, x, x, out, N, 1));
    if (!expression_holds(x, out, 2, N, 997))
        return fail("the expression is wrong");
    gcc_jit_result_release(result);
    if (!(f = build_stencil(&result)))
        return fail("the stencil is not compiled");
    printf("5-point stencil, 1024 x 1024 f64: %.9g\n", least(f, x, x, out, SIDE, 1));
    for (int i = 1; i < SIDE - 1; i += 7)
        if (fabs(out[i * SIDE + i] - 0.25 * (x[(i - 1) * SIDE + i] + x[(i + 1) * SIDE + i] +
                                             x[i * SIDE + i - 1] + x[i * SIDE + i + 1])) >
            1e-12 * fabs(out[i * SIDE + i]))
            return fail("the stencil is wrong");
    gcc_jit_result_release(result);
    free(x);
    free(out);
    return 0;
}
