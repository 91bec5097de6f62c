/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_copy.c: qn_deep_copy of large arrays of double on one thread, against memcpy of the
 * same bytes. Equal layouts are to be as fast as memcpy; a copy between layouts of opposite order
 * has a goal of its own. Both run on touched memory, in turns, and the result is checked.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

enum { EDGE = 4096, N_SAMPLES = 9, RIGHT = 0, LEFT = 1 };

typedef struct copy_case {
    const char *name;
    int dst, src; /* RIGHT or LEFT */
    double goal;
} copy_case;

static qn_status new_array(bench *b, int order, qn_view *out, qn_error *err)
{
    const int64_t extents[2] = {EDGE, EDGE};
    qn_layout l;
    qn_status status =
        order == RIGHT ? qn_layout_right(2, extents, &l, err) : qn_layout_left(2, extents, &l, err);
    return status ? status : qn_view_alloc(b->context, "array", QN_F64, &l, 0, out, err);
}

static bool is_copied(const copy_case *c, const double *dst, const double *src)
{
    for (int64_t i = 0; i < EDGE; i++)
        for (int64_t j = 0; j < EDGE; j++) {
            int64_t right = i * EDGE + j, left = i + j * EDGE;
            if (dst[c->dst == RIGHT ? right : left] != src[c->src == RIGHT ? right : left])
                return false;
        }
    return true;
}

static void time_case(bench *b, const copy_case *c, const qn_view *dst, const qn_view *src)
{
    const size_t bytes = sizeof(double) * EDGE * EDGE;
    double ours[N_SAMPLES], theirs[N_SAMPLES];
    qn_error error = {0};
    double *from = src->data;
    for (int64_t i = 0; i < (int64_t)EDGE * EDGE; i++)
        from[i] = (double)i;
    qn_status status = qn_deep_copy_on(b->context, QN_SERIAL, dst, src, &error); /* compiles */
    if (status || !is_copied(c, dst->data, from)) {
        bench_wrong(b, c->name, "%s", status ? error.message : "elements differ");
        return;
    }
    for (int s = 0; s < N_SAMPLES && !status; s++) {
        double begin = bench_now();
        status = qn_deep_copy_on(b->context, QN_SERIAL, dst, src, &error);
        double middle = bench_now();
        memcpy(dst->data, src->data, bytes);
        ours[s] = middle - begin;
        theirs[s] = bench_now() - middle;
    }
    if (status) {
        bench_wrong(b, c->name, "%s", error.message);
        return;
    }
    bench_line line = {.name = c->name, .group = GROUP_COST, .goal = c->goal};
    line.ours = bench_median(ours, N_SAMPLES);
    line.theirs = bench_median(theirs, N_SAMPLES);
    line.ratio = line.theirs / line.ours;
    line.short_below = c->goal;
    bench_report(b, &line);
}

void bench_copy_cases(bench *b)
{
    static const copy_case cases[] = {
        {"deep_copy/f64/right-right", RIGHT, RIGHT, 0.9},
        {"deep_copy/f64/right-left", LEFT, RIGHT, 0.6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_view dst = {0}, src = {0};
        qn_error error = {0};
        if (b->assembly_of || !bench_wants(b, cases[i].name))
            continue;
        if (new_array(b, cases[i].dst, &dst, &error) || new_array(b, cases[i].src, &src, &error))
            bench_wrong(b, cases[i].name, "%s", error.message);
        else
            time_case(b, &cases[i], &dst, &src);
        qn_view_release(&dst);
        qn_view_release(&src);
    }
}
