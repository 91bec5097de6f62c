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

uint64_t qn__jammed_below(const lower *g, int d, int64_t n)
{
    uint64_t below = 0;
    for (int j = 0; j < g->jam_max; j++)
        below |= (uint64_t)(g->jam_ahead[d][j] < n) << j;
    return below;
}

int64_t qn__jammed_step(const lower *g, int d)
{
    int64_t step = 1;
    for (int j = 0; j < g->jam_max; j++)
        step = g->jam_ahead[d][j] >= step ? g->jam_ahead[d][j] + 1 : step;
    return step;
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

void qn__parts_of_block(lower *g)
{
    const qn_block *b = g->block;
    g->jam_max = 1;
    g->across = qn__across(b);
    g->n_across = g->across >= 0 ? (int)b->extent[b->n - 1] : 1;
    for (int n = 0; n < b->n; n++)
        g->jam_max *= (int)b->extent[n];
    for (int d = 0; d < g->k->n_dims; d++) {
        int64_t ahead[MOST_PARTS] = {0};
        int64_t inside = 1;
        for (int n = b->n - 1; n >= 0; inside *= b->extent[n--])
            for (int j = 0; j < g->jam_max && b->dim[n] == d; j++)
                ahead[j] += j / inside % b->extent[n] * b->weight[n];
        for (int j = 0; j < g->jam_max && d == b->lane_dim; j++)
            ahead[j] -= (int64_t)j * b->skew;
        qn__set_jam_ahead(g, d, ahead);
    }
    if (g->grid && g->grid->team == QN_TEAM_BLOCK) /* any of them: target/nvptx/block_points.c */
        g->jam_dims = (UINT32_C(1) << g->k->n_dims) - 1;
    qn__set_jam(g, 1);
}

/* ---------------------------------------------------------------- alignment */

/** Whether all loops of a schedule over a dimension have steps of whole vectors of w lanes. */
static bool has_whole_steps(const lower *g, int d, int64_t w)
{
    const qn_schedule *s = g->schedule;
    for (int c = 0; c < s->n_cuts; c++)
        if (qn__axis_dim(g->scalar, s, s->cut[c].of) == d &&
            (s->cut[c].kind == QN_CUT_SECTIONS || s->cut[c].tail == QN_TAIL_OVERLAP))
            return false;
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        const qn_node_info *l = qn__node(s, (qn_node){n});
        if (l->kind == QN_NODE_LOOP && l->role != QN_ROLE_VECTOR &&
            qn__axis_dim(g->scalar, s, l->axis) == d &&
            !qn__is_of_block(g->scalar, s, (qn_node){n}) &&
            qn__axis_weight(g->scalar, s, l->axis, NULL) % w)
            return false;
    }
    return true;
}

void qn__find_alignment(lower *g)
{
    const qn_block *b = g->block;
    int d = b->lane_dim;
    int64_t w = b->width;
    g->lanes_are_aligned = g->schedule && (qn__is_parallel(g->k, d) || qn__is_reduction(g->k, d)) &&
                           w >= 2 && !b->streams && g->f->begin[d].kind == QN_FACT_EXACT &&
                           !(b->split_dim == d && b->granule % w) &&
                           !(b->second_granule && b->second_dim == d && b->second_granule % w) &&
                           has_whole_steps(g, d, w);
}

bool qn__lanes_share_digits(const lower *g, uint32_t value, const qn_dim_fact *dim)
{
    return g->lanes_are_aligned && g->width > 1 && g->a.value[value].shape == QN_LINEAR &&
           qn__is_within_digit(&g->a, value, dim, g->block->lane_dim, g->block->width);
}

/** Whether all steps of a dimension are whole, and begin at multiples of n. */
static bool has_no_rest(const lower *g, int d, int64_t n)
{
    const qn_schedule *s = g->schedule;
    const qn_block *b = g->block;
    bool is_divided = (b->split_dim == d && b->granule % n) ||
                      (b->second_granule && b->second_dim == d && b->second_granule % n);
    for (int c = 0; s && c < s->n_cuts; c++)
        if (qn__axis_dim(g->scalar, s, s->cut[c].of) == d && s->cut[c].tail != QN_TAIL_NONE)
            return false;
    return s && !is_divided && has_whole_steps(g, d, n);
}

bool qn__jam_shares_digits(const lower *g, uint32_t value, const qn_dim_fact *dim, int p,
                           int64_t *ahead)
{
    const qn_affine *x = &g->a.affine[value];
    const qn_digit_fact *first = &g->f->digit[dim->first_digit], *second = first + 1;
    int64_t n = first->extent.value;
    int along = -1;
    if (first->extent.kind != QN_FACT_EXACT || first->stride.kind != QN_FACT_EXACT ||
        second->stride.kind != QN_FACT_EXACT || n < 2 || second->stride.value % n ||
        dim->lower.kind != QN_FACT_EXACT || x->sym[0] || x->sym[1] ||
        g->a.value[value].shape != QN_UNIFORM || g->grid)
        return false;
    for (int d = 0; d < g->k->n_dims; d++) {
        if (x->coef[d] % n == 0)
            continue;
        if (along >= 0 || x->coef[d] != 1 || !qn__is_parallel(g->k, d))
            return false;
        along = d;
    }
    if (along < 0 || g->ahead[along] || g->f->begin[along].kind != QN_FACT_EXACT)
        return false;
    for (int j = 0; j < g->jam_max; j++)
        if (g->jam_ahead[along][j] < 0 || g->jam_ahead[along][j] >= n)
            return false;
    int64_t begin = qn__wrap_add(g->f->begin[along].value, x->constant);
    *ahead = qn__part_ahead(g, along, p);
    return g->jam_max > 1 && qn__wrap_sub(begin, dim->lower.value) % n == 0 &&
           has_no_rest(g, along, n);
}
