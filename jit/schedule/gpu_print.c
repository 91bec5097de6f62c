/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_print.c: the grid of a GPU as text, for people.
 */
#include "jit/schedule/grid.h"

void qn__grid_print(const qn_grid *p, qn_text *out)
{
    static const char *const teams[] = {"", "threads", "warps", "all blocks", "blocks"};
    bool is_warp = p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID;
    qn__text_add(out, "order");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %d", p->order[n]);
    qn__text_add(out, "\nteam %s\nthreads%s", teams[p->team], is_warp ? " 32 of a team" : "");
    for (int a = 0; a < 3; a++)
        if (p->axis[a] >= 0)
            qn__text_add(out, " %d of dimension %d", p->threads[p->axis[a]], p->axis[a]);
    if (p->wide_dim >= 0)
        qn__text_add(out, "\nat once %d of dimension %d, from %d before its begin", p->wide,
                     p->wide_dim, p->wide_lead);
    if (p->tall_dim >= 0)
        qn__text_add(out, "\njam %d of dimension %d, from %d before its begin%s", p->tall,
                     p->tall_dim, p->tall_lead, p->is_crossed ? ", crossed" : "");
    if (p->skew)
        qn__text_add(out, "\nskew %d a row", p->skew);
    for (int s = 0; s < 64; s++)
        if (p->early >> s & 1)
            qn__text_add(out, "\nearly access %d", s);
    for (int s = 0; s < 64; s++)
        if (p->staged >> s & 1)
            qn__text_add(out, "\nstaged access %d, along dimension %d", s, p->tile_dim);
    if (p->has_pairs)
        qn__text_add(out, "\nneighbouring partials in a lane");
    if (p->is_product)
        qn__text_add(out, "\nproduct with dimension %d", p->tile_dim);
    for (int n = 0; n < p->n_kept; n++)
        qn__text_add(out, "\nkept %u as %u, from byte %d of %d", p->kept[n].from, p->kept[n].to,
                     p->kept[n].at, p->kept_bytes);
    if (p->warps)
        qn__text_add(out, "\nwarps %d of a team", p->warps);
    for (int n = 0; n < p->n_moved; n++)
        qn__text_add(out,
                     p->moved_loop ? "\nmoved rows %d bytes apart of view %d"
                                   : "\nmoved records of %d bytes of view %d",
                     p->moved[n].step, p->moved[n].param);
    for (int s = 0; s < 64; s++)
        if (p->privatized >> s & 1)
            qn__text_add(out, "\nprivatized access %d, in %d blocks", s, p->most_blocks);
    if (p->private_room)
        qn__text_add(out, "\nroom of %d bytes for a private copy", p->private_room);
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (p->rest_dims >> d & 1)
            qn__text_add(out, "\nrest dimension %d", d);
    qn__text_add(out, "\ntile");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %lld", (long long)p->block[p->order[n]]);
    if (p->team == QN_TEAM_BLOCK)
        qn__text_add(out, "\nchunk %d points, along %s%s", p->chunk,
                     p->is_along_points ? "points" : "iterations",
                     p->is_split ? ", blocks of points apart" : "");
    qn__text_add(out, "\n");
}
