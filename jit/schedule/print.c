/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c: a plan as text, for people.
 */
#include "jit/schedule/plan.h"

void qn__plan_print(const qn_plan *p, const qn_kernel *k, qn_text *out)
{
    static const char *const remainders[] = {"none", "mask", "scalar", "tile", "overlap"};
    qn__text_add(out, "order");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %d", p->order[n]);
    for (int d = 0; d < k->n_dims; d++)
        for (int m = 0; m < k->n_dims; m++)
            if (p->merged[d] >> m & 1)
                qn__text_add(out, "\nmerged %d into %d", m, d);
    qn__text_add(
        out,
        "\nlanes %d%s\nwidth %d\nunroll %d\njam %d x %d, rest %s\ntranspose %d\nremainder %s\n",
        p->lane_dim, qn__is_reduction(k, p->lane_dim) ? " (reduction)" : "", p->width, p->unroll,
        p->jam_dim, p->jam, remainders[p->jam_rest], p->transpose, remainders[p->remainder]);
    if (p->trip_width)
        qn__text_add(out, "width of trips %d\n", p->trip_width);
    if (p->cross > 1)
        qn__text_add(out, "cross %d x %d\n", p->cross_dim, p->cross);
    if (p->straight)
        qn__text_add(out, "straight %d\n", p->straight);
    if (p->pack)
        qn__text_add(out, "pack %s, %lld bytes\n", k->param[k->inst[p->pack].imm].name,
                     (long long)p->scratch_bytes);
    if (p->pack_rows)
        qn__text_add(out, "pack %s for %d x %d rows\n", k->param[k->inst[p->pack_rows].imm].name,
                     p->row_steps, p->jam);
    if (p->strip)
        qn__text_add(out, "strip %d, %lld bytes of sums\n", p->strip, (long long)p->scratch_bytes);
    if (p->prefetch)
        qn__text_add(out, "prefetch %d points ahead\n", p->prefetch);
    if (p->front_bytes)
        qn__text_add(out, "prefetch %d bytes ahead of front rows\n", p->front_bytes);
    if (p->steps_ahead)
        qn__text_add(out, "prefetch %d steps of the lanes ahead\n", p->steps_ahead);
    if (p->end_rows)
        qn__text_add(out, "line ends of %d rows\n", p->end_rows);
    for (int d = 0; d < k->n_dims; d++)
        if (p->tile[d])
            qn__text_add(out, "tile %lld of %d\n", (long long)p->tile[d], d);
    if (p->atomics)
        qn__text_add(out, "atomics %s\n",
                     p->atomics == QN_ATOMICS_OF_ONE ? "of one thread" : "of the launch");
    qn__text_add(out, "split %d%s granule %lld\n", p->split_dim,
                 p->n_shared_reduces ? " (points)" : "", (long long)p->granule);
    if (p->second_granule)
        qn__text_add(out, "split %d too, granule %lld\n", p->second_dim,
                     (long long)p->second_granule);
    qn__text_add(out, "streams %d\n", p->streams);
}
