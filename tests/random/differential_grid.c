/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_grid.c: random steps that make a kernel as declared one of a grid: blocks and
 * threads of parallel dimensions, iterations that a thread takes at once, loops in each thread, and
 * warps whose lanes share the points of reduces.
 */
#include "differential_draw.h"

#include <string.h>

/** Cuts dimension d by threads and by what a thread takes; *left: threads that a block may have
 * yet; *several: dimensions of which a thread may take more than one. Appends the loop that a
 * thread takes at once to `inner`, others to `outer`. */
static void cut_dimension(step_text *s, randoms *r, int d, int *left, int *several,
                          step_text *outer, step_text *inner)
{
    static const int threads[] = {1, 1, 2, 3, 4, 8, 16, 32, 33, 64, 128, 256},
                     at_once[] = {1, 1, 1, 2, 2, 3, 4, 4, 5, 8, 16};
    int n = threads[random_below(r, 12)], each = at_once[random_below(r, 11)], piece = 0;
    if (random_percent(r, 10)) { /* a loop in each thread */
        add_steps(outer, " d%d", d);
        return;
    }
    n = n > *left ? 1 : n;
    each = *several > 0 ? each : 1;
    *several -= each > 1;
    *left /= n;
    if (n == 1 && each == 1) {
        add_steps(outer, " d%d", d);
        add_steps(s, "bind d%d role=grid; ", d);
        return;
    }
    add_steps(s, "split d%d", d);
    if (n > 1)
        add_steps(s, " %d", n);
    if (each > 1)
        add_steps(s, " %d", each);
    add_steps(s, " tail=mask; bind d%d.0 role=grid; ", d);
    add_steps(outer, " d%d.%d", d, piece++);
    if (n > 1) {
        add_steps(outer, " d%d.%d", d, piece);
        add_steps(s, "bind d%d.%d role=block; ", d, piece++);
    }
    if (each > 1)
        add_steps(inner, " d%d.%d", d, piece);
}

/** The lanes of a warp share the points of every reduce at the top. */
static void share_points(step_text *s, const qn_kernel *k)
{
    for (uint32_t i = k->body; i < k->n_insts; i = k->inst[i].region[2]) {
        if (k->inst[i].op != QN_I_REDUCE)
            continue;
        int d = qn__dim_of(k, i, k->inst[i].n_args - 1);
        add_steps(s, "split r%ud%d 32 tail=scalar; bind r%ud%d.1 role=thread; ", i, d, i, d);
    }
}

void draw_grid(randoms *r, const qn_kernel *k, char *text, size_t bytes)
{
    char loops[400], unrolled[400];
    step_text s = {text, 0, bytes}, outer = {loops, 0, sizeof loops}, inner = {unrolled, 0, 400};
    int order[QN_MAX_RANK], n = 0, left = random_percent(r, 50) ? 256 : 1024,
                            several = random_below(r, 3);
    bool has_warps = random_percent(r, 25);
    left = has_warps ? left / 32 : left;
    text[0] = loops[0] = unrolled[0] = 0;
    for (int d = 0; d < k->n_dims; d++) {
        if (qn__dim_kind(k, d) == QN_DIM_SEQUENTIAL)
            add_steps(&outer, " d%d", d);
        if (qn__dim_kind(k, d) != QN_DIM_PARALLEL)
            continue;
        int at = random_below(r, n + 1);
        for (int i = n++; i > at; i--)
            order[i] = order[i - 1];
        order[at] = d;
    }
    for (int i = 0; i < n; i++)
        cut_dimension(&s, r, order[i], &left, &several, &outer, &inner);
    if (outer.n + inner.n > 4)
        add_steps(&s, "reorder%s%s; ", loops, unrolled);
    for (char *at = unrolled; *at;) {
        size_t length = strcspn(at + 1, " ");
        add_steps(&s, "unroll %.*s; ", (int)length, at + 1);
        at += 1 + length;
    }
    if (has_warps)
        share_points(&s, k);
}
