/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footprint.c: what the accesses of a view touch in some iterations, as a box: for each index of
 * the view, how far apart the first and the last one are.
 */
#include "jit/schedule/tree.h"

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}

/** Indices of position r of an access from the first to the last; -1: not known. */
static int64_t extent_of(const qn_analysis *x, const int64_t *spans, uint32_t inst, int r)
{
    uint32_t value = qn__args(x->k, inst)[r];
    const qn_affine *a = &x->affine[value];
    const qn_fact *whole = &x->f->param[x->k->inst[inst].imm].dim[r].extent;
    int64_t extent = 1;
    bool is_merged = false; /* indices beyond the last are those of the next row */
    for (int n = 0; n < 2; n++)
        if (a->sym[n] && x->value[a->sym[n]].deps)
            extent = -1; /* what was loaded, or computed otherwise, may be anywhere */
    for (int n = 0; n < 2; n++)
        if (a->sym[n] && a->sym[n] >= x->k->body && !qn__is_made_of_indices(x->k, a->sym[n]))
            extent = -1;
    for (int d = 0; d < x->k->n_dims && extent >= 0; d++) {
        int64_t step = a->coef[d] < 0 ? qn__wrap_sub(0, a->coef[d]) : a->coef[d];
        if (!step)
            continue;
        int64_t span = spans[d];
        is_merged |= x->f->merged[d] != 0;
        int64_t moved = span == 0 ? 0 : product(span < 0 ? -1 : span - 1, step);
        extent = moved < 0 || __builtin_add_overflow(extent, moved, &extent) ? -1 : extent;
    }
    if (whole->kind == QN_FACT_EXACT && (extent < 0 || (extent > whole->value && !is_merged)))
        return whole->value;
    return extent;
}

void qn__box_of_spans(const qn_analysis *x, uint32_t inst, const int64_t *spans, qn_box *out)
{
    *out = (qn_box){.rank = qn__n_indices(x->k, inst)};
    for (int r = 0; r < out->rank; r++) {
        out->extent[r] = x->f->param[x->k->inst[inst].imm].dim[r].n_digits == 0
                             ? 1
                             : extent_of(x, spans, inst, r);
        out->low[r] = x->affine[qn__args(x->k, inst)[r]].constant;
    }
}

void qn__box_widen(qn_box *b, const qn_box *other)
{
    for (int r = 0; r < b->rank; r++) {
        int64_t end = qn__wrap_add(b->low[r], b->extent[r]);
        int64_t other_end = qn__wrap_add(other->low[r], other->extent[r]);
        int64_t low = b->low[r] < other->low[r] ? b->low[r] : other->low[r];
        bool is_known = b->extent[r] >= 0 && other->extent[r] >= 0;
        b->extent[r] = !is_known ? -1 : qn__wrap_sub(end > other_end ? end : other_end, low);
        b->low[r] = low;
    }
}
