/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c: the parts of a block of iterations that is emitted at once: where the indices of each
 * jammed iteration stand, and which iterations share a value.
 */
#include "jit/lower/lower.h"
#include "jit/schedule/shape.h"

void qn__set_active(lower *g, uint64_t active)
{
    g->jam_active = active;
    g->jam = __builtin_popcountll(active);
}

void qn__set_jam(lower *g, int n)
{
    qn__set_active(g, (UINT64_C(1) << n) - 1);
}

void qn__set_jam_ahead(lower *g, int d, const int64_t *ahead)
{
    for (int j = 0; j < g->jam_max; j++) {
        g->jam_ahead[d][j] = ahead[j];
        g->jam_same[d][j] = 0;
        for (int i = 0; i < g->jam_max; i++)
            g->jam_same[d][j] |= (uint64_t)(ahead[i] == ahead[j]) << i;
        if (ahead[j] != 0)
            g->jam_dims |= UINT32_C(1) << d;
    }
}

void qn__block_of_plan(lower *g)
{
    const qn_plan *p = g->p;
    int64_t jammed[MOST_PARTS], crossed[MOST_PARTS], skewed[MOST_PARTS];
    g->jam_max = p->jam * p->cross;
    for (int j = 0; j < g->jam_max; j++) {
        jammed[j] = j % p->jam;
        crossed[j] = j / p->jam;
        skewed[j] = -(int64_t)j * p->skew;
    }
    if (p->jam_dim >= 0 && p->jam > 1)
        qn__set_jam_ahead(g, p->jam_dim, jammed);
    if (p->cross > 1)
        qn__set_jam_ahead(g, p->cross_dim, crossed);
    if (p->skew)
        qn__set_jam_ahead(g, p->lane_dim, skewed);
    qn__set_jam(g, 1);
}

void qn__block_of_schedule(lower *g)
{
    qn_block b;
    qn_error err;
    g->jam_max = 1;
    if (qn__block_of(g->scheduled, g->schedule, &b, &err) != QN_OK) { /* it was asked before */
        g->failed = true;
        return;
    }
    for (int n = 0; n < b.n; n++)
        g->jam_max *= (int)b.extent[n];
    for (int d = 0; d < g->k->n_dims; d++) {
        int64_t ahead[MOST_PARTS] = {0};
        int64_t inside = 1;
        for (int n = b.n - 1; n >= 0; inside *= b.extent[n--])
            for (int j = 0; j < g->jam_max && b.dim[n] == d; j++)
                ahead[j] += j / inside % b.extent[n] * b.weight[n];
        qn__set_jam_ahead(g, d, ahead);
    }
    qn__set_jam(g, 1);
}
