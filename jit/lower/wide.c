/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c: loads and stores of a thread that computes several iterations at once (grid->wide,
 * unroll, jam: the parts of lower/lower.h, each a scalar). All elements that are needed are
 * collected first. An element that several iterations, or several loads, need is loaded once;
 * elements that follow one another from an aligned address on move together, up to 16 bytes with
 * one instruction. So neighbours of a stencil, rows that overlap, and interleaved channels need no
 * care.
 *
 * Obligations. (1) Nothing is loaded or stored but elements of iterations of the domain: where a
 * thread reaches beyond an edge, those parts have a mask, and what only they need is loaded under
 * it. (2) Loads that may fail, and those of atomic views, are not taken. (3) Loads are performed
 * ahead of their place only if the launch writes no element of the view.
 */
#include "jit/lower/wide_group.h"

/* ---------------------------------------------------------------- loads */

/** Whether access i is one of those that may move together. */
static bool is_taken(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    bool is_here = g->grid && g->grid->wide_dim >= 0;
    return is_here && !x->parent && !qn__is_tested(g, i) &&
           !(g->k->param[x->imm].traits & QN_ATOMIC);
}

/** Whether a load differs between the parts; others are left to be hoisted. */
static bool differs(const lower *g, uint32_t i)
{
    return g->a.value[i].shape != QN_UNIFORM || g->a.value[i].depends_jam;
}

/** Sides of a thread: parts that may be outside along the lanes, and along the jammed dimension. */
enum { SIDE_LANES = 1, SIDE_JAM = 2 };

/** First and last index of dimension e, with the parts that are outside the domain on these sides.
 */
static void whole_range(const lower *g, int e, int sides, int64_t *first, int64_t *last)
{
    bool is_jam = g->grid->is_crossed && e == g->grid->tall_dim && (sides & SIDE_JAM);
    bool is_lanes = e == g->grid->wide_dim && (sides & SIDE_LANES);
    int64_t step = is_jam ? g->grid->tall : is_lanes ? g->grid->wide : 1;
    *first = g->f->begin[e].value - (is_jam     ? g->grid->tall_lead
                                     : is_lanes ? g->grid->wide_lead
                                                : 0);
    *last = *first + (g->f->end[e].value - *first + step - 1) / step * step - 1;
}

/** Whether an index stays inside its dimension also in the parts that are outside the domain. */
static bool is_inside(const lower *g, const qn_affine *a, const qn_dim_fact *dim, int sides)
{
    int64_t low = a->constant, high = a->constant;
    if (a->sym[0] || a->sym[1] || a->constant < INT32_MIN || a->constant > INT32_MAX ||
        dim->lower.kind != QN_FACT_EXACT || dim->extent.kind != QN_FACT_EXACT)
        return false;
    for (int e = 0; e < g->k->n_dims; e++) {
        const qn_fact *begin = &g->f->begin[e], *end = &g->f->end[e];
        int64_t first, last;
        if (!a->coef[e])
            continue;
        if (!qn__is_exact(g->f, e) || begin->value < INT32_MIN || end->value > INT32_MAX ||
            a->coef[e] < -4 || a->coef[e] > 4)
            return false;
        whole_range(g, e, sides, &first, &last);
        if (last < first)
            return false;
        low += a->coef[e] * (a->coef[e] > 0 ? first : last);
        high += a->coef[e] * (a->coef[e] > 0 ? last : first);
    }
    return low >= dim->lower.value && high < qn__wrap_add(dim->lower.value, dim->extent.value);
}

/** Whether a load may be performed for the parts that are outside on these sides too: elements of
 * the view are there. */
static bool is_whole(const lower *g, uint32_t i, int sides)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    bool is_known = param->is_constant_memory;
    for (int r = 0; r < qn__n_indices(g->k, i) && is_known; r++)
        is_known = param->dim[r].n_digits == 0 ||
                   is_inside(g, &g->a.affine[qn__args(g->k, i)[r]], &param->dim[r], sides);
    return is_known;
}

static LLVMValueRef mask_of(lower *g, int p, int sides)
{
    return sides == SIDE_LANES ? g->side[0][p / g->jam_max]
           : sides == SIDE_JAM ? g->side[1][p % g->jam_max]
           : sides             ? g->tail_mask[p]
                               : NULL;
}

static unsigned edges_of(const lower *g, int p, int sides)
{
    unsigned all = g->edges[p];
    return (sides & SIDE_LANES ? all & 3u : 0) | (sides & SIDE_JAM ? all & 12u : 0);
}

/** The parts that need a load's value: of those that share it, all. Each value is one need, whose
 * address is made once: an address that is made again may be another pointer to the same element.
 */
static bool add_load(lower *g, group *s, uint32_t i)
{
    const int both = SIDE_LANES | SIDE_JAM;
    int needed = g->grid->skew                ? both
                 : is_whole(g, i, both)       ? 0
                 : is_whole(g, i, SIDE_LANES) ? SIDE_JAM
                 : is_whole(g, i, SIDE_JAM)   ? SIDE_LANES
                                              : both;
    FOR_PARTS (g, p) {
        if (qn__canonical_part(g, i, p) != p)
            continue;
        if (!qn__wide_add(g, s, i, p, mask_of(g, p, needed), edges_of(g, p, needed)))
            return false;
        FOR_PARTS (g, q)
            if (q != p && qn__canonical_part(g, i, q) == p)
                qn__wide_unite(g, &s->need[s->n - 1].e, mask_of(g, q, needed),
                               edges_of(g, q, needed));
    }
    return true;
}

/** Whether the address of an access is made of indices of the domain and of what the prologue
 * gives. */
static bool is_known_early(const lower *g, uint32_t i)
{
    for (int r = 0; r < qn__n_indices(g->k, i); r++) {
        const qn_affine *a = &g->a.affine[qn__args(g->k, i)[r]];
        if (a->sym[0] >= g->k->body || a->sym[1] >= g->k->body)
            return false;
    }
    return true;
}

/** Whether a load is one of those that move together, and its address is known when the body
 * begins. */
static bool is_ready(const lower *g, uint32_t i)
{
    return g->k->inst[i].op == QN_I_LOAD && is_taken(g, i) && differs(g, i) && is_known_early(g, i);
}

static bool is_loaded(const lower *g, uint32_t i)
{
    bool is_there = g->value[i].is_set;
    FOR_PARTS (g, p)
        is_there = is_there && g->value[i].part[qn__canonical_part(g, i, p)];
    return is_there;
}

void qn__wide_begin(lower *g)
{
    group s = {0};
    bool ok = g->grid && g->grid->wide_dim >= 0;
    g->stored_end = 0;
    for (uint32_t n = 0; n < g->k->n_accesses && ok; n++) {
        uint32_t i = g->k->access[n].inst;
        if (is_ready(g, i) && !is_loaded(g, i) && g->f->param[g->k->inst[i].imm].is_constant_memory)
            ok = add_load(g, &s, i);
    }
    if (ok && s.n && qn__wide_sort(g, &s)) /* else each is loaded in its place */
        qn__wide_load_all(g, &s);
    qn__wide_release(&s);
}

/** The load at i, and those that follow before anything is written. */
static bool add_loads(lower *g, group *s, uint32_t i)
{
    bool ok = add_load(g, s, i);
    for (uint32_t j = i + 1; ok && j < g->k->n_insts; j++) {
        if (g->k->inst[j].op != QN_I_LOAD && !qn__is_pure(&g->k->inst[j]))
            break;
        if (is_ready(g, j) && !is_loaded(g, j))
            ok = add_load(g, s, j);
    }
    return ok;
}

bool qn__wide_load(lower *g, uint32_t i)
{
    if (!is_taken(g, i) || !differs(g, i))
        return false;
    if (is_loaded(g, i))
        return true;
    group s = {0};
    if (add_loads(g, &s, i) && qn__wide_sort(g, &s))
        qn__wide_load_all(g, &s);
    else
        g->failed = true;
    qn__wide_release(&s);
    return true;
}

/* ---------------------------------------------------------------- points of reduces */

/** Whether a load stands in a reduce and may be made ahead of its point. */
static bool is_of_point(const lower *g, uint32_t reduce, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    if (x->op != QN_I_LOAD || x->parent != reduce || qn__is_checked(g->f, g->k, g->site[i]) ||
        !g->f->param[x->imm].is_constant_memory || (g->k->param[x->imm].traits & QN_ATOMIC))
        return false;
    return is_known_early(g, i);
}

/** The loads of one point, whose index is set. */
static bool add_point(lower *g, group *s, uint32_t reduce, int point)
{
    bool ok = true;
    FOR_ACCESSES (g->k, a, i) {
        if (!is_of_point(g, reduce, i))
            continue;
        const int before = s->n;
        ok = ok && add_load(g, s, i);
        for (int n = before; n < s->n; n++)
            s->need[n].point = point;
    }
    return ok;
}

void qn__wide_points(lower *g, const reduction *r, int d, int first, int n,
                     void (*point)(lower *g, void *arg), void *arg)
{
    group s = {0};
    bool ok = g->grid && (g->grid->wide_dim >= 0 || g->multiple[d]);
    for (int m = 0; m < n && ok; m++) {
        loop once; /* digits of the index of one point are not those of the next */
        qn__once_open(g, &once, NULL);
        qn__set_ahead(g, d, first + m, g->depth);
        ok = add_point(g, &s, r->inst, m);
        for (int b = 0; b < r->n_beside && ok; b++)
            ok = add_point(g, &s, r->beside[b].inst, m);
        qn__set_ahead(g, d, 0, 0);
        qn__loop_close(g, &once);
    }
    ok = ok && s.n && qn__wide_sort(g, &s); /* else each load is made where it is used */
    if (ok)
        qn__wide_load_elements(g, &s);
    for (int m = 0; m < n; m++) {
        loop once;
        qn__once_open(g, &once, NULL);
        qn__set_ahead(g, d, first + m, g->depth);
        if (ok)
            qn__wide_set_values(g, &s, m);
        point(g, arg);
        qn__set_ahead(g, d, 0, 0);
        qn__loop_close(g, &once);
    }
    qn__wide_release(&s);
}

/* ---------------------------------------------------------------- stores */

/** The stores from i on that may be done together: to one view, with nothing but arithmetic between
 * them. Ends after the last. */
static uint32_t end_of_stores(const lower *g, uint32_t i)
{
    uint32_t end = i + 1;
    for (uint32_t j = i + 1; j < g->k->n_insts; j++) {
        const qn_inst *x = &g->k->inst[j];
        bool is_store = x->op == QN_I_STORE && x->imm == g->k->inst[i].imm && is_taken(g, j);
        if (!is_store && !qn__is_pure(x))
            break;
        end = is_store ? j + 1 : end;
    }
    return end;
}

/** What part p of a store writes. */
static LLVMValueRef stored_value(lower *g, uint32_t i, int p)
{
    uint32_t value = qn__args(g->k, i)[g->k->inst[i].n_args - 1];
    return qn__to_memory(g, qn__access_dtype(g->k, i), qn__scalar(g, value, p));
}

/** What is stored in each element: by the last that writes it, where its condition holds. Parts
 * that are outside the domain may have the address of another part's element. */
static void choose_values(lower *g, group *s)
{
    for (int n = 0; n < s->n; n++) {
        element *e = &s->element[s->need[n].order];
        LLVMValueRef v = stored_value(g, s->need[n].inst, s->need[n].part),
                     condition = s->need[n].e.condition;
        bool is_only = !e->value || !condition || condition == e->condition;
        e->value = is_only ? v : LLVMBuildSelect(g->b, condition, v, e->value, "");
    }
}

bool qn__wide_store(lower *g, uint32_t i)
{
    group s = {0};
    bool ok = is_taken(g, i);
    if (!ok || i < g->stored_end)
        return ok;
    g->stored_end = end_of_stores(g, i);
    for (uint32_t j = i; ok && j < g->stored_end; j++) {
        int n = s.n, n_bases = s.n_bases;
        FOR_PARTS (g, p)
            if (ok && g->k->inst[j].op == QN_I_STORE)
                ok = qn__wide_add(g, &s, j, p, g->mask[p], g->edges[p]);
        if (n && s.n_bases > n_bases) { /* addresses of two bases may be equal: these stores are
                                           done after the others */
            s.n = n;
            s.n_bases = n_bases;
            g->stored_end = j;
        }
    }
    if (ok && qn__wide_sort(g, &s)) {
        choose_values(g, &s);
        qn__wide_store_all(g, &s);
    } else {
        g->failed = true;
    }
    qn__wide_release(&s);
    return true;
}
