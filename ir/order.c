/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c: the order rules of reductions, with a fixed stack of levels. When a level has taken a
 * block, its result goes to the next level, which so reduces the block results by the same rule.
 * Combining with the identity keeps every value, so partials that took nothing are left out. This
 * is the definition; generated code must give the same bits.
 */
#include "ir/order.h"

#include <string.h>

void qn__order_start(qn_ordered_sum *s, int combine, int type, int order)
{
    s->combine = combine;
    s->type = type;
    s->identity = qn__reduce_identity(combine, type);
    s->block = order == QN_ORDERED ? INT64_MAX : QN_BLOCK_POINTS;
    s->n_partials = order == QN_STRIPED ? QN_PARTIALS : 1;
    s->top = 0;
    memset(s->count, 0, sizeof s->count);
}

/** Result of the block that a level holds; the level is empty afterwards. */
static uint64_t close_block(qn_ordered_sum *s, int level)
{
    uint64_t *p = s->partial[level];
    int64_t n = s->count[level] < s->n_partials ? s->count[level] : s->n_partials;
    for (int64_t half = s->n_partials / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half && l + half < n; l++)
            p[l] = qn__eval_combine(s->combine, s->type, p[l], p[l + half]);
    s->count[level] = 0;
    return p[0];
}

/** The partial that takes the next value of a level; it holds the identity if it has taken none. */
static uint64_t *next_partial(qn_ordered_sum *s, int level)
{
    int64_t n = s->count[level]++;
    uint64_t *p = &s->partial[level][n & (s->n_partials - 1)];
    if (n < s->n_partials)
        *p = s->identity;
    if (level > s->top)
        s->top = level;
    return p;
}

static void add_to(qn_ordered_sum *s, int level, uint64_t value)
{
    uint64_t *p = next_partial(s, level);
    *p = qn__eval_combine(s->combine, s->type, *p, value);
    if (s->count[level] == s->block)
        add_to(s, level + 1, close_block(s, level));
}

void qn__order_add(qn_ordered_sum *s, uint64_t value)
{
    add_to(s, 0, value);
}

void qn__order_add_product(qn_ordered_sum *s, uint64_t x, uint64_t y)
{
    uint64_t *p = next_partial(s, 0);
    *p = qn__eval_op(QN_OP_fma, s->type, x, y, *p);
    if (s->count[0] == s->block)
        add_to(s, 1, close_block(s, 0));
}

uint64_t qn__order_end(qn_ordered_sum *s)
{
    for (int level = 0; level < s->top; level++)
        if (s->count[level] > 0)
            add_to(s, level + 1, close_block(s, level));
    return close_block(s, s->top);
}
