/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footprint.c: what the accesses of a view touch below a loop, as a box: for each index of the
 * view, how far apart the first and the last one are. Buffers, checks, prefetch distances and the
 * cost model take their sizes from here.
 */
#include "jit/schedule/tree.h"

#include <string.h>

/** Whether node n is `of`, or stands below it; everything stands below 0. */
static bool is_below(const qn_schedule *s, qn_node n, qn_node of)
{
    for (; n.id && n.id != of.id; n = qn__node(s, n)->parent)
        ;
    return n.id == of.id;
}

/** Iterations of dimension d that the loops above a statement, up to `loop`, which is not one of
 * them, make: the distance from the first to the last, plus one; -1 if that is not known. */
static int64_t span_of(const qn_analysis *x, const qn_schedule *s, qn_node at, qn_node loop, int d)
{
    int64_t last = 0, step;
    for (qn_node n = qn__node(s, at)->parent; n.id && n.id != loop.id; n = qn__node(s, n)->parent) {
        const qn_node_info *l = qn__node(s, n);
        if (l->kind != QN_NODE_LOOP || !(qn__axis_dims(x, s, l->axis) >> d & 1))
            continue;
        qn_axis root;
        int64_t weight = qn__axis_weight(x, s, l->axis, &root);
        qn_count count = qn__axis_count(x, s, l->axis);
        if (!weight || count.most == INT64_MAX ||
            __builtin_mul_overflow(weight, count.most - 1, &step) ||
            __builtin_add_overflow(last, step, &last))
            last = INT64_MAX;
        if (last == INT64_MAX)
            break;
    }
    int64_t trips = qn__trips(x->f, d);
    if (trips >= 0 && (last == INT64_MAX || last + 1 > trips))
        return trips;
    return last == INT64_MAX ? -1 : last + 1;
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}

/** Indices of position r of an access from the first to the last; -1: not known. */
static int64_t extent_of(const qn_analysis *x, const int64_t *spans, uint32_t inst, int r,
                         bool *is_exact)
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
        *is_exact &= step == 1;
        extent = moved < 0 || __builtin_add_overflow(extent, moved, &extent) ? -1 : extent;
    }
    *is_exact &= extent >= 0;
    if (whole->kind == QN_FACT_EXACT && (extent < 0 || (extent > whole->value && !is_merged)))
        return whole->value;
    return extent;
}

static void finish(const qn_analysis *x, uint32_t inst, qn_box *b)
{
    b->elements = 1;
    for (int r = 0; r < b->rank; r++)
        b->elements = product(b->elements, b->extent[r]);
    b->bytes = product(b->elements, qn__access_bytes(x->k, inst));
}

void qn__box_of_spans(const qn_analysis *x, uint32_t inst, const int64_t *spans, qn_box *out)
{
    *out = (qn_box){.rank = qn__n_indices(x->k, inst), .is_exact = true};
    for (int r = 0; r < out->rank; r++) {
        out->extent[r] = x->f->param[x->k->inst[inst].imm].dim[r].n_digits == 0
                             ? 1
                             : extent_of(x, spans, inst, r, &out->is_exact);
        out->low[r] = x->affine[qn__args(x->k, inst)[r]].constant;
    }
    finish(x, inst, out);
}

static void box_of(const qn_analysis *x, const qn_schedule *s, qn_node at, qn_node loop,
                   uint32_t inst, qn_box *out)
{
    int64_t spans[QN_MAX_RANK];
    for (int d = 0; d < x->k->n_dims; d++)
        spans[d] = span_of(x, s, at, loop, d);
    qn__box_of_spans(x, inst, spans, out);
}

static bool holds(const qn_node_info *n, uint32_t inst)
{
    return n->kind == QN_NODE_DO && n->first <= inst && inst < n->end;
}

bool qn__footprint(const qn_analysis *x, const qn_schedule *s, qn_node loop, uint32_t inst,
                   qn_box *out)
{
    bool is_found = false;
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        qn_box b;
        if (!holds(&s->node[n], inst) || !is_below(s, (qn_node){n}, loop))
            continue;
        box_of(x, s, (qn_node){n}, loop, inst, &b);
        if (!is_found || b.elements < 0 || (out->elements >= 0 && b.elements > out->elements))
            *out = b; /* the largest of the versions and sections that hold it */
        is_found = true;
    }
    return is_found;
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
    b->is_exact &= other->is_exact;
}

bool qn__walk_alike(const qn_analysis *x, uint32_t i, uint32_t m)
{
    for (int r = 0; r < qn__n_indices(x->k, i); r++) {
        const qn_affine *a = &x->affine[qn__args(x->k, i)[r]],
                        *b = &x->affine[qn__args(x->k, m)[r]];
        if (memcmp(a->coef, b->coef, sizeof a->coef) != 0 || a->sym[0] != b->sym[0] ||
            a->sym[1] != b->sym[1])
            return false;
    }
    return true;
}

bool qn__footprint_of_view(const qn_analysis *x, const qn_schedule *s, qn_node loop, int param,
                           qn_box *out)
{
    uint32_t first = 0;
    FOR_ACCESSES (x->k, n, i) {
        qn_box b;
        if (x->k->inst[i].imm != (uint64_t)param || !qn__footprint(x, s, loop, i, &b))
            continue;
        if (!first) {
            first = i;
            *out = b;
            continue;
        }
        qn__box_widen(out, &b);
        out->is_exact &= qn__walk_alike(x, first, i);
        for (int r = 0; r < out->rank; r++) {
            const qn_fact *whole = &x->f->param[param].dim[r].extent;
            if (!qn__walk_alike(x, first, i))
                out->extent[r] = whole->kind == QN_FACT_EXACT ? whole->value : -1;
            else if (whole->kind == QN_FACT_EXACT && out->extent[r] > whole->value)
                out->extent[r] = whole->value;
        }
        finish(x, i, out);
    }
    return first != 0;
}
