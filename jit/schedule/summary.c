/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c: which orders keep the meaning of a region. Iterations of parallel dimensions depend on
 * one another through atomics only (the contract of a domain), so what remains to ask is whether
 * they may be run twice, whether views overlap, and which loops over the points of a reduce keep
 * its order rule.
 */
#include "jit/schedule/plan.h"
#include "jit/schedule/tree.h"

/** Whether what a load reads may be written between it and `until`. */
static bool may_change(const qn_analysis *x, uint32_t load, uint32_t until)
{
    const qn_kernel *k = x->k;
    bool has_store = x->f->is_ordered != 0;
    if (!qn__is_written_too(x, k->inst[load].imm))
        return false;
    for (uint32_t i = load; i < until && !has_store; i++)
        has_store = k->inst[i].op == QN_I_STORE || k->inst[i].op == QN_I_ATOMIC;
    return has_store;
}

/** *left: instructions that may still be looked at. */
static bool may_be_made_again(const qn_analysis *x, uint32_t i, uint32_t until, int *left)
{
    const qn_inst *inst = &x->k->inst[i];
    if (i < x->k->body)
        return true;
    bool is_load = inst->op == QN_I_LOAD && !(x->k->param[inst->imm].traits & QN_ATOMIC) &&
                   qn__is_in_range(x->f, qn__site_of(x->k, i)) && !may_change(x, i, until);
    if ((!is_load && !qn__is_pure(inst)) || --*left < 0)
        return false;
    for (int n = 0; n < inst->n_args; n++)
        if (!may_be_made_again(x, qn__args(x->k, i)[n], until, left))
            return false;
    return true;
}

bool qn__may_be_made_again(const qn_analysis *x, uint32_t i, uint32_t until)
{
    int left = 64;
    return may_be_made_again(x, i, until, &left);
}

/* ---------------------------------------------------------------- tuples of reduces */

/** Whether a load of the region of a reduce reads what an instruction of [begin, end) writes, or an
 * atomic view. */
static bool reads_what_is_written(const qn_analysis *x, uint32_t reduce, uint32_t begin,
                                  uint32_t end)
{
    const qn_kernel *k = x->k;
    for (uint32_t i = k->inst[reduce].region[0]; i < k->inst[reduce].region[1]; i++) {
        if (k->inst[i].op != QN_I_LOAD)
            continue;
        if (k->param[k->inst[i].imm].has_atomics || (k->param[k->inst[i].imm].traits & QN_ATOMIC))
            return true;
        for (uint32_t w = begin; w < end; w++)
            if ((k->inst[w].op == QN_I_STORE || k->inst[w].op == QN_I_ATOMIC) &&
                qn__may_meet(x, k->inst[i].imm, k->inst[w].imm))
                return true;
    }
    return false;
}

bool qn__may_be_tuple(const qn_analysis *x, int n, const uint32_t *reduce)
{
    const qn_kernel *k = x->k;
    uint32_t first = reduce[0], begin = k->inst[first].region[2];
    uint8_t *is_later = qn__zalloc(k->n_insts, 1); /* made behind the first reduce */
    bool may = is_later && !qn__region_may_fail(k, x->f, k->inst[first].region[0], begin);
    if (may)
        is_later[first] = 1;
    for (int m = 1; m < n && may; m++) {
        uint32_t i = reduce[m], end = k->inst[i].region[2];
        may = i >= k->inst[reduce[m - 1]].region[2] && k->inst[i].parent == k->inst[first].parent;
        for (uint32_t b = k->inst[reduce[m - 1]].region[2]; b < i && may; b++) {
            is_later[b] = !qn__is_pure(&k->inst[b]);
            for (int a = 0; a < k->inst[b].n_args; a++)
                is_later[b] |= is_later[qn__args(k, b)[a]];
        }
        may = may && !qn__region_uses(k, i, is_later) && !reads_what_is_written(x, i, begin, i) &&
              !qn__region_may_fail(k, x->f, i, end);
        is_later[i] = 1;
    }
    qn__free(is_later);
    return may;
}

/* ---------------------------------------------------------------- points of reduces */

/** Points by which a loop over a part of a dimension of a reduce moves; 0: not known. */
static int64_t points_of(const qn_analysis *x, const qn_schedule *s, uint32_t reduce, qn_axis axis,
                         int *place)
{
    qn_axis root;
    int64_t weight = qn__axis_weight(x, s, axis, &root);
    int n_dims = x->k->inst[reduce].n_args;
    *place = -1;
    for (int n = 0; weight && n < n_dims; n++)
        if (qn__dim_of(x->k, reduce, n) == qn__axis(s, root)->number)
            *place = n;
    for (int n = *place + 1; *place >= 0 && n < n_dims; n++) {
        int64_t trips = qn__trips(x->f, qn__dim_of(x->k, reduce, n));
        if (trips < 0 || __builtin_mul_overflow(weight, trips, &weight))
            return 0;
    }
    return weight;
}

/** Whether the index of a part follows from the number of the point modulo the steps around it: no
 * section shifts it, and each cut of a part with an extent divides that. */
static bool is_regular(const qn_schedule *s, qn_axis axis)
{
    const qn_axis_info *a = qn__axis(s, axis);
    if (a->kind != QN_AXIS_PART)
        return a->kind == QN_AXIS_POINT;
    const qn_cut *c = &s->cut[a->cut];
    const qn_axis_info *of = qn__axis(s, c->of);
    int64_t step = 1;
    if (c->kind == QN_CUT_SECTIONS || c->tail == QN_TAIL_OVERLAP)
        return false;
    for (int n = a->number ? a->number : 1; n < c->n; n++)
        step *= c->extent[n]; /* no overflow: the parser and qn__axis_cut's callers check it */
    if (of->kind == QN_AXIS_PART && of->number > 0 && s->cut[of->cut].extent[of->number] % step)
        return false;
    return is_regular(s, c->of);
}

/** Whether a loop may stand anywhere: it tells blocks of points apart, or, in the striped order,
 * partials. */
static bool is_free(const qn_analysis *x, const qn_schedule *s, uint32_t reduce, qn_axis axis,
                    int rule, bool *is_partial)
{
    int place;
    int64_t weight = points_of(x, s, reduce, axis, &place);
    qn_count count = qn__axis_count(x, s, axis);
    *is_partial = false;
    if (rule == QN_POINTS_ANY)
        return true;
    if (weight == 0 || rule == QN_POINTS_ORDERED || !is_regular(s, axis))
        return false;
    if (weight % QN_BLOCK_POINTS == 0)
        return true;
    *is_partial = rule == QN_POINTS_STRIPED && count.most >= 1 && count.most <= QN_PARTIALS &&
                  weight <= QN_PARTIALS && QN_PARTIALS % (weight * count.most) == 0 &&
                  qn__axis(s, axis)->number > 0;
    return *is_partial;
}

static bool has_lanes(const qn_walk *w)
{
    bool has = false;
    for (int i = 0; i < w->n; i++)
        has |= w->role[i] == QN_ROLE_VECTOR;
    return has;
}

bool qn__may_walk_points(const qn_analysis *x, const qn_schedule *s, uint32_t reduce,
                         const qn_walk *w, const char **why)
{
    int rule = qn__order_rule(x->k, reduce), last_place = -1;
    int64_t last_weight = INT64_MAX;
    bool is_any = rule == QN_POINTS_ANY || (qn__is_associative(x->k, reduce) && has_lanes(w));
    for (int i = 0; i < w->n; i++) {
        bool is_partial;
        int place;
        bool may_stand = is_free(x, s, reduce, w->loop[i], rule, &is_partial);
        points_of(x, s, reduce, w->loop[i], &place);
        int64_t own = qn__axis_weight(x, s, w->loop[i], NULL);
        if (w->role[i] == QN_ROLE_VECTOR && !is_any && !is_partial) {
            *why = "lanes must be the partials of the striped order";
            return false;
        }
        bool is_divided = w->role[i] == QN_ROLE_THREADS || w->role[i] == QN_ROLE_GRID ||
                          w->role[i] == QN_ROLE_BLOCK || w->role[i] == QN_ROLE_THREAD;
        if (is_divided && !may_stand) {
            *why =
                "threads must take whole blocks of 4096 points, or partials of the striped order";
            return false;
        }
        if (may_stand || is_any)
            continue;
        if (place < 0 || !own || place < last_place ||
            (place == last_place && own >= last_weight)) {
            *why = "points must be added in the order of their index";
            return false;
        }
        last_place = place;
        last_weight = own;
    }
    return true;
}
