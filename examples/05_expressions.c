/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 05_expressions.c: a small interpreter of array expressions, as a calculator or a database has
 * one. It parses an expression that is known only at run time, builds a kernel for it, and
 * evaluates it over whole arrays. Arrays are named a to z; every op of the op table with
 * floating-point operands is a function.
 *
 *   05_expressions                       a tour, with a check
 *   05_expressions 'a*b + sqrt(c) - 2'   evaluates this one
 *
 *   sum     = product (("+" | "-") product)*
 *   product = factor (("*" | "/") factor)*
 *   factor  = number | letter | name "(" sum ("," sum)* ")" | "(" sum ")" | "-" factor
 */
#include "example.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { N = 1000, N_LETTERS = 26, MAX_DEPTH = 100 };

/* ---------------------------------------------------------------- parsing into a builder */

/* [expressions-parser] */
typedef struct parser {
    const char *text, *at;
    qn_builder *b;
    qn_val array[N_LETTERS]; /* the element of each array in this iteration */
    int depth;
    char error[QN_MESSAGE_BYTES + 32]; /* the first one; empty if there is none */
} parser;

static qn_val parse_sum(parser *p);
/* [end] */

static qn_val fail(parser *p, const char *what)
{
    if (!p->error[0])
        snprintf(p->error, sizeof p->error, "column %d: %s", (int)(p->at - p->text) + 1, what);
    return (qn_val){0};
}

static bool take(parser *p, char c)
{
    while (*p->at == ' ')
        p->at++;
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* [expressions-call] */
static qn_val parse_call(parser *p, const char *name, const char *start)
{
    qn_val args[3];
    int n = 0, op = qn_op_of_name(name);
    if (op == 0) {
        p->at = start;
        return fail(p, "no such function");
    }
    do {
        if (n == 3)
            return fail(p, "too many operands");
        args[n++] = parse_sum(p);
    } while (take(p, ','));
    if (!take(p, ')'))
        return fail(p, "expected , or )");
    qn_val result = qn_op(p->b, op, n, args);
    qn_error err = {0};
    if (!p->error[0] && qn_builder_status(p->b, &err) != QN_OK) {
        p->at = start;
        return fail(p, err.message);
    }
    return result;
}
/* [end] */

static qn_val parse_name(parser *p)
{
    char name[16];
    size_t n = 0;
    const char *start = p->at;
    while (isalnum((unsigned char)*p->at) && n + 1 < sizeof name)
        name[n++] = *p->at++;
    name[n] = 0;
    if (take(p, '('))
        return parse_call(p, name, start);
    if (n == 1 && name[0] >= 'a' && name[0] <= 'z')
        return p->array[name[0] - 'a'];
    p->at = start;
    return fail(p, "not an array: they are named a to z");
}

static qn_val parse_number(parser *p)
{
    char *end;
    double value = strtod(p->at, &end);
    if (end == p->at)
        return fail(p, "not a number");
    p->at = end;
    return qn_const_float(p->b, QN_F64, value);
}

static qn_val parse_group(parser *p)
{
    qn_val value = parse_sum(p);
    return take(p, ')') ? value : fail(p, "expected )");
}

static qn_val parse_factor(parser *p)
{
    if (p->error[0] || p->depth >= MAX_DEPTH)
        return fail(p, "nested too deeply");
    qn_val value;
    p->depth++;
    if (take(p, '('))
        value = parse_group(p);
    else if (take(p, '-'))
        value = qn_neg(p->b, parse_factor(p));
    else if (isdigit((unsigned char)*p->at) || *p->at == '.')
        value = parse_number(p);
    else if (isalpha((unsigned char)*p->at))
        value = parse_name(p);
    else
        value = fail(p, *p->at ? "expected a number, an array, a function or ("
                               : "the expression ends too early");
    p->depth--;
    return value;
}

static qn_val parse_product(parser *p)
{
    qn_val value = parse_factor(p);
    for (;;) {
        if (take(p, '*'))
            value = qn_mul(p->b, value, parse_factor(p));
        else if (take(p, '/'))
            value = qn_div(p->b, value, parse_factor(p));
        else
            return value;
    }
}

static qn_val parse_sum(parser *p)
{
    qn_val value = parse_product(p);
    for (;;) {
        if (take(p, '+'))
            value = qn_add(p->b, value, parse_product(p));
        else if (take(p, '-'))
            value = qn_sub(p->b, value, parse_product(p));
        else
            return value;
    }
}

/* [expressions-build] */
/* The kernel result[i] = expression, over arrays a to z; NULL with a message on standard output. */
static qn_kernel *build(const char *text)
{
    parser p = {.text = text, .at = text, .b = qn_builder_new(text, 0)};
    qn_param result = qn_view_param(p.b, "result", QN_F64, 1, 0), array[N_LETTERS];
    for (int l = 0; l < N_LETTERS; l++) {
        char name[2] = {(char)('a' + l), 0};
        array[l] = qn_view_param(p.b, name, QN_F64, 1, QN_READ_ONLY);
    }
    qn_val i = qn_parallel_over(p.b, result, 0);
    for (int l = 0; l < N_LETTERS; l++)
        p.array[l] = qn_load(p.b, array[l], 1, &i); /* those not used are dropped by qn_finish */
    qn_val value = parse_sum(&p);
    if (!p.error[0] && *p.at)
        fail(&p, "something is left over");
    qn_store(p.b, result, 1, &i, value);

    qn_kernel *k = NULL;
    qn_error err = {0};
    if (p.error[0])
        printf("  %-36s %s\n", text, p.error);
    else if (qn_finish(p.b, &k, &err) != QN_OK)
        printf("  %-36s %s\n", text, err.message);
    qn_builder_release(p.b);
    return k;
}
/* [end] */

/* ---------------------------------------------------------------- evaluating */

typedef struct workspace {
    qn_context *c;
    double data[N_LETTERS + 1][N]; /* the result, then a to z */
    qn_view view[N_LETTERS + 1];
    qn_arg arg[N_LETTERS + 1];
} workspace;

static void workspace_open(workspace *w)
{
    static const char names[] =
        "=\0a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";
    qn_error err = {0};
    qn_layout l;
    int64_t n = N;
    must(qn_context_new(NULL, &w->c, &err), &err);
    must(qn_layout_right(1, &n, &l, &err), &err);
    for (int v = 0; v <= N_LETTERS; v++) {
        for (int i = 0; i < N; i++)
            w->data[v][i] =
                v == 0 ? 0 : (double)(i + 1) / v; /* a = 1, 2, ..; b = a/2; c = a/3; .. */
        must(qn_view_wrap(names + (ptrdiff_t)2 * v, w->data[v], QN_F64, &l, 0, &w->view[v], &err),
             &err);
        w->arg[v] = qn_arg_view(&w->view[v]);
    }
}

/* Builds, compiles and evaluates; false if the expression is bad. */
static bool evaluate(workspace *w, const char *text)
{
    qn_kernel *k = build(text);
    if (!k)
        return false;
    qn_error err = {0};
    double start = now_ms();
    must(qn_launch(w->c, k, N_LETTERS + 1, w->arg, NULL, &err), &err);
    double first = now_ms() - start;
    start = now_ms();
    must(qn_launch(w->c, k, N_LETTERS + 1, w->arg, NULL, &err), &err);
    printf("  %-36s = %g %g %g ... %g   (first %.2f ms, again %.4f ms)\n", text, w->data[0][0],
           w->data[0][1], w->data[0][2], w->data[0][N - 1], first, now_ms() - start);
    qn_kernel_release(k);
    return true;
}

static bool is_result(const workspace *w, double (*f)(double a, double b, double c))
{
    for (int i = 0; i < N; i++)
        if (w->data[0][i] != f(w->data[1][i], w->data[2][i], w->data[3][i]))
            return false;
    return true;
}

static double expected_1(double a, double b, double c)
{
    double product = a * b;
    return product + sqrt(c) - 2;
}

static double expected_2(double a, double b, double c)
{
    return fmax(a / 10, b) / -(c - 1000);
}

static int tour(workspace *w)
{
    static const char *const bad[] = {
        "a*b + sqrt(c - 2", "a + * b", "a + sine(b)", "min(a)", "alpha + 1", "a b", "",
        "and(a, b)"};
    int failed = 0;
    printf("Expressions over arrays of %d elements, a = 1, 2, 3, ..., b = a/2, c = a/3, ...:\n", N);
    bool is_good = evaluate(w, "a*b + sqrt(c) - 2");
    failed += check(is_good && is_result(w, expected_1), "the same as in C, bit for bit");
    is_good = evaluate(w, "max(a/10, b) / -(c - 1000)");
    failed += check(is_good && is_result(w, expected_2), "the same as in C, bit for bit");
    failed +=
        check(evaluate(w, "floor(z) + copysign(a, b - c*1.6)"), "functions of the op table work");
    puts("Bad expressions give messages:");
    bool is_refused = true;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        is_refused = !evaluate(w, bad[i]) && is_refused;
    failed += check(is_refused, "all of them were refused");
    return failed;
}

int main(int argc, char **argv)
{
    static workspace w;
    workspace_open(&w);
    int failed = argc > 1 ? !evaluate(&w, argv[1]) : tour(&w);
    qn_context_release(w.c);
    return failed != 0;
}
