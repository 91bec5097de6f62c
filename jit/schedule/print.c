/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c: a plan as text, for people.
 */
#include "jit/schedule/plan.h"

static void print_threads(const qn_plan *p, qn_text *out)
{
    static const char *const teams[] = {"", "threads", "warps", "all blocks", "blocks"};
    bool is_warp = p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID;
    qn__text_add(out, "\nteam %s\nthreads%s", teams[p->team],
                 !is_warp     ? ""
                 : p->is_pair ? " 64 of a team"
                              : " 32 of a team");
    for (int a = 0; a < 3; a++)
        if (p->axis[a] >= 0)
            qn__text_add(out, " %d of dimension %d", p->threads[p->axis[a]], p->axis[a]);
    if (p->lane_dim >= 0)
        qn__text_add(out, "\nat once %d of dimension %d, from %d before its begin", p->width,
                     p->lane_dim, p->lead);
    if (p->jam_dim >= 0)
        qn__text_add(out, "\njam %d of dimension %d, from %d before its begin%s", p->jam,
                     p->jam_dim, p->jam_lead, p->is_crossed ? ", crossed" : "");
    if (p->skew)
        qn__text_add(out, "\nskew %d a row", p->skew);
    for (int s = 0; s < 64; s++)
        if ((p->staged >> s & 1) && p->team == QN_TEAM_BLOCK)
            qn__text_add(out, "\nearly access %d", s);
        else if (p->staged >> s & 1)
            qn__text_add(out, "\nstaged access %d, %s %d", s,
                         p->is_product ? "product with dimension" : "along dimension",
                         p->stage_dim);
    for (int n = 0; n < p->n_kept; n++)
        qn__text_add(out, "\nkept %u as %u, from byte %d of %d", p->kept[n].from, p->kept[n].to,
                     p->kept[n].at, p->kept_bytes);
    for (int s = 0; s < 64; s++)
        if (p->privatized >> s & 1)
            qn__text_add(out, "\nprivatized access %d, in %d blocks", s, p->most_blocks);
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (p->rest_dims >> d & 1)
            qn__text_add(out, "\nrest dimension %d", d);
    qn__text_add(out, "\ntile");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %lld", (long long)p->tile[p->order[n]]);
    if (p->team == QN_TEAM_BLOCK)
        qn__text_add(out, "\nchunk %d points, along %s%s", p->chunk,
                     p->is_along_points ? "points" : "iterations",
                     p->is_split ? ", blocks of points apart" : "");
    qn__text_add(out, "\n");
}

void qn__plan_print(const qn_plan *p, const qn_kernel *k, qn_text *out)
{
    static const char *const remainders[] = {"none", "mask", "scalar", "tile", "overlap"};
    qn__text_add(out, "order");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %d", p->order[n]);
    if (qn__is_grid(p)) {
        print_threads(p, out);
        return;
    }
    for (int d = 0; d < k->n_dims; d++)
        for (int m = 0; m < k->n_dims; m++)
            if (p->merged[d] >> m & 1)
                qn__text_add(out, "\nmerged %d into %d", m, d);
    qn__text_add(
        out,
        "\nlanes %d%s\nwidth %d\nunroll %d\njam %d x %d, rest %s\ntranspose %d\nremainder %s\n",
        p->lane_dim, qn__is_reduction(k, p->lane_dim) ? " (reduction)" : "", p->width, p->unroll,
        p->jam_dim, p->jam, remainders[p->jam_rest], p->transpose, remainders[p->remainder]);
    if (p->cross > 1)
        qn__text_add(out, "cross %d x %d\n", p->cross_dim, p->cross);
    if (p->straight)
        qn__text_add(out, "straight %d\n", p->straight);
    if (p->pack)
        qn__text_add(out, "pack %s, %lld bytes\n", k->param[k->inst[p->pack].imm].name,
                     (long long)p->scratch_bytes);
    if (p->pack_steps)
        qn__text_add(out, "pack %d steps of the lanes, %lld bytes\n", p->pack_steps,
                     (long long)p->scratch_bytes);
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
