/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c: what a kernel moves and computes for given arguments. Bytes come from the views: the
 * distinct elements of each view read, plus those of each view written. Operations come from the
 * printed kernel: floating-point ops of the body times the points of the domain, where the domain
 * can be evaluated and nothing but `reduce` nests.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = QN_MAX_OPS + 1 };

typedef struct counter {
    const tool_job *job;
    int64_t
        *value; /* of integer values in the prologue, and of a dimension its number of indices */
    bool *is_known;
    int64_t flops;     /* so far, of the whole launch */
    int64_t points;    /* of parallel and sequential dimensions */
    int64_t reduction; /* points of the reduce that we are in, 1 outside */
    bool is_evident;
} counter;

static const char *const arithmetic[] = {"add", "sub",  "mul",   "div",  "neg",   "abs",  "min",
                                         "max", "sqrt", "floor", "ceil", "round", "trunc"};
enum { N_ARITHMETIC = sizeof arithmetic / sizeof arithmetic[0] };

static int64_t bytes_of(const qn_view *v)
{
    int64_t size = qn_layout_size(&v->layout), span = qn_layout_span(&v->layout);
    return (span >= 0 && span < size ? span : size) * qn_dtype_bytes(v->dtype);
}

static int64_t count_bytes(const tool_job *job)
{
    int64_t sum = 0;
    for (int i = 0; i < job->n; i++) {
        qn_param_info info;
        if (qn_kernel_param(job->kernel, i, &info, sizeof info, NULL) == QN_OK && info.rank >= 0)
            sum += bytes_of(&job->view[i]) * ((info.is_read != 0) + (info.is_written != 0));
    }
    return sum;
}

static const qn_arg *find_arg(const counter *c, const char *name)
{
    for (int i = 0; i < c->job->n; i++) {
        qn_param_info info;
        if (qn_kernel_param(c->job->kernel, i, &info, sizeof info, NULL) == QN_OK &&
            strcmp(info.name, name) == 0)
            return &c->job->arg[i];
    }
    return NULL;
}

/* Value of operand "%12"; false if it is not known. */
static bool operand(const counter *c, const char **at, int64_t *out)
{
    const char *p = strchr(*at, '%');
    int64_t number;
    if (!p || !text_to_int(p + 1, strspn(p + 1, "0123456789"), &number) || number >= MAX_VALUES ||
        !c->is_known[number])
        return false;
    *at = p + 1;
    *out = c->value[number];
    return true;
}

static bool evaluate_view(const counter *c, const char *op, const char *rest, int64_t *out)
{
    char name[64];
    int d;
    if (sscanf(rest, " %63[^,], %d", name, &d) != 2 || d < 0 || d >= QN_MAX_RANK)
        return false;
    const qn_arg *arg = find_arg(c, name);
    if (!arg || !arg->view)
        return false;
    *out = op[0] == 'e' ? arg->view->layout.dim[d].extent : arg->view->layout.dim[d].lower;
    return true;
}

static bool evaluate_param(const counter *c, const char *rest, int64_t *out)
{
    char name[64];
    if (sscanf(rest, " %63[^;]", name) != 1)
        return false;
    const qn_arg *arg = find_arg(c, name);
    if (!arg || arg->view || arg->dtype != QN_I64)
        return false;
    *out = (int64_t)arg->bits;
    return true;
}

/* The integer ops that domains are made of. */
static bool evaluate(const counter *c, const char *op, const char *rest, int64_t *out)
{
    int64_t a, b;
    if (strcmp(op, "const") == 0) {
        rest += strspn(rest, " ");
        return text_to_int(rest, strcspn(rest, ";"), out);
    }
    if (strcmp(op, "extent") == 0 || strcmp(op, "lower") == 0)
        return evaluate_view(c, op, rest, out);
    if (strcmp(op, "param") == 0)
        return evaluate_param(c, rest, out);
    if (!operand(c, &rest, &a) || !operand(c, &rest, &b))
        return false;
    if (strcmp(op, "add") == 0)
        return !__builtin_add_overflow(a, b, out);
    if (strcmp(op, "sub") == 0)
        return !__builtin_sub_overflow(a, b, out);
    if (strcmp(op, "mul") == 0)
        return !__builtin_mul_overflow(a, b, out);
    bool is_min = strcmp(op, "min") == 0;
    *out = (a < b) == is_min ? a : b;
    return is_min || strcmp(op, "max") == 0;
}

static void add_dim(counter *c, const char *op, int64_t number, const char *rest)
{
    int64_t begin, end;
    bool is_good = operand(c, &rest, &begin) && operand(c, &rest, &end) && end >= begin;
    c->is_evident = c->is_evident && is_good;
    if (!is_good)
        return;
    c->is_known[number] = true;
    c->value[number] = end - begin;
    if (strcmp(op, "reduction") != 0 && __builtin_mul_overflow(c->points, end - begin, &c->points))
        c->is_evident = false;
}

static void add_flops(counter *c, int64_t n)
{
    int64_t all;
    if (__builtin_mul_overflow(c->points, c->reduction, &all) ||
        __builtin_mul_overflow(all, n, &all) || __builtin_add_overflow(c->flops, all, &c->flops))
        c->is_evident = false;
}

static void enter_reduce(counter *c, bool is_float, const char *rest)
{
    int64_t n;
    rest = strstr(rest, "over");
    while (rest && strchr(rest, '%')) {
        if (!operand(c, &rest, &n) || __builtin_mul_overflow(c->reduction, n, &c->reduction)) {
            c->is_evident = false;
            return;
        }
    }
    if (is_float)
        add_flops(c, 1);
}

static void count_line(counter *c, const char *line)
{
    long number;
    char type[16], op[32];
    int n = 0;
    line += strspn(line, " ");
    if (line[0] == '}')
        c->reduction = 1;
    if (sscanf(line, "%%%ld: %15[a-z0-9] = %31[a-z_0-9]%n", &number, type, op, &n) != 3) {
        if (line[0] == '%' || strncmp(line, "if", 2) == 0 || strncmp(line, "for", 3) == 0 ||
            strncmp(line, "while", 5) == 0)
            c->is_evident = false; /* several results, or none */
        return;
    }
    if (number < 0 || number >= MAX_VALUES || strcmp(op, "if") == 0 || strcmp(op, "for") == 0 ||
        strcmp(op, "while") == 0) {
        c->is_evident = false;
        return;
    }
    const char *rest = line + n;
    bool is_float = type[0] == 'f';
    if (strcmp(op, "parallel") == 0 || strcmp(op, "reduction") == 0 ||
        strcmp(op, "sequential") == 0)
        add_dim(c, op, number, rest);
    else if (strcmp(op, "reduce") == 0)
        enter_reduce(c, is_float, rest);
    else if (!is_float)
        c->is_known[number] = evaluate(c, op, rest, &c->value[number]);
    else if (strcmp(op, "fma") == 0)
        add_flops(c, 2);
    else
        for (int i = 0; i < N_ARITHMETIC; i++)
            if (strcmp(op, arithmetic[i]) == 0)
                add_flops(c, 1);
}

static void count_lines(counter *c, char *text)
{
    for (char *line = text; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = 0;
        count_line(c, line);
        line = end ? end + 1 : NULL;
    }
}

tool_counts count_work(const tool_job *job)
{
    counter c = {.job = job, .points = 1, .reduction = 1, .is_evident = true};
    tool_counts counts = {count_bytes(job), -1};
    size_t n = qn_kernel_print(job->kernel, NULL, 0);
    char *text = malloc(n + 1);
    c.value = calloc(MAX_VALUES, sizeof *c.value);
    c.is_known = calloc(MAX_VALUES, sizeof *c.is_known);
    if (text && c.value && c.is_known) {
        qn_kernel_print(job->kernel, text, n + 1);
        count_lines(&c, text);
        if (c.is_evident && c.flops > 0)
            counts.flops = c.flops;
    }
    free(text);
    free(c.value);
    free(c.is_known);
    return counts;
}
