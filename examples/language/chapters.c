/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chapters.c: the engines of the five chapters. Each is the one before it and a little more.
 */
#include "language.h"

#include <string.h>
#include <time.h>

static void open_without_disk(session *s)
{
    context_open(s, "off");
}

/* ---------------------------------------------------------------- 3: elements wait */

/* [waits] */
/* The index of a domain is no iota of one element, which may be repeated there. */
static bool is_single_iota(const value *v)
{
    return v->kind == IOTA && v->extent[0] == 1;
}

static bool elements_wait(const value *v)
{
    return v->kind != REDUCE && !is_single_iota(v);
}

static void compute_elements(session *s, value *v)
{
    if (v->kind == REDUCE)
        force(s, v->arg[0]);
    compute_by_kernel(s, v);
}
/* [end] */

/* ---------------------------------------------------------------- 4: reductions wait, too */

/* [settle] */
static bool all_wait(const value *v)
{
    return !is_single_iota(v);
}

/* Computes the reductions of a record that cannot be part of its kernel. A reduction can if it has
 * one value for each element of the root, so that no sum is computed twice, and if it does not
 * stand in another reduction. */
static void settle(session *s, const value *root, value *v, bool is_in_reduction)
{
    if (v->kind == REDUCE && v != root && (is_in_reduction || !has_shape_of(v, root)))
        force(s, v);
    for (int i = 0; i < v->n_args; i++)
        settle(s, root, v->arg[i], is_in_reduction || v->kind == REDUCE);
}

static void compute_expression(session *s, value *v)
{
    settle(s, v, v, false);
    compute_by_kernel(s, v);
}
/* [end] */

/* ---------------------------------------------------------------- 5: for people
 *
 *   :kernel E    the kernels that E is computed by, as text
 *   :plan E      their plans
 *   :why E       what runs, and why
 *   :time E      the time of the first evaluation and of later ones
 *   :options T   options of launches, such as `executor=threads checks=none`; see docs/embedding.md
 */

double now_seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void show_time(session *s, const char *text)
{
    s->n_launches = 0;
    const double begin = now_seconds();
    run_statement(s, text, false);
    const double first = now_seconds() - begin;
    const int n_launches = s->n_launches;
    double best = first;
    for (int run = 0; run < 1000 && now_seconds() - begin < 0.5; run++) {
        const double start = now_seconds();
        run_statement(s, text, false);
        const double seconds = now_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    printf("%d launches; first %.3f ms, then %.3f ms\n", n_launches, first * 1e3, best * 1e3);
}

static void run_command(session *s, const char *line)
{
    enum { TIME = 3, OPTIONS, N };
    static const struct {
        const char *name;
        unsigned shows;
    } commands[N] = {{":kernel", SHOW_KERNEL},
                     {":plan", SHOW_PLAN},
                     {":why", SHOW_WHY},
                     {":time", 0},
                     {":options", 0}};
    char text[MAX_LINE + 1];
    const size_t n = strcspn(line, " ");
    int i = 0;
    while (i < N && (strlen(commands[i].name) != n || strncmp(commands[i].name, line, n) != 0))
        i++;
    if (i == N || strlen(line) > MAX_LINE)
        fail(s, (place){s->line, 1}, "the commands are :kernel, :plan, :why, :time and :options");
    strcpy(text, line);
    memset(text, ' ', n); /* so that columns stay */
    s->shows = commands[i].shows;
    if (i == OPTIONS)
        options_set(s, text, QN_COMPILE_NOW);
    else if (i == TIME)
        show_time(s, text);
    else
        run_statement(s, text, true);
}

/* [open] */
static void open_for_people(session *s)
{
    context_open(s, NULL);
    options_set(s, "", QN_COMPILE_NOW);
}
/* [end] */

/* [chapters] */
const engine *chapter_of(int n)
{
    static const engine chapters[] = {
        {"loops in C", NULL, NULL, compute_by_loops, NULL},
        {"a kernel for each operation", open_without_disk, NULL, compute_by_kernel, NULL},
        {"a kernel for each expression", open_without_disk, elements_wait, compute_elements, NULL},
        {"... with reductions", open_without_disk, all_wait, compute_expression, NULL},
        {"... for people", open_for_people, all_wait, compute_expression, run_command},
    };
    return n >= 1 && n <= 5 ? &chapters[n - 1] : NULL;
}
/* [end] */
