/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.c: two versions of the body where indices are clamped. Before a step one test tells
 * whether all indices that are sums of indices of the domain are in range, in all lanes, parts and
 * points of reduces; then the body needs no limits, and neighbours are loaded as vectors. Steps at
 * the rim run the second version.
 */
#include "jit/lower/lower.h"

enum { MOST_RANGES = 16, LEVELS_LEFT = 8 };

/** What is added in a sum; limits keep sums of them from overflowing. */
enum { LARGEST_CONSTANT = 1 << 30, LARGEST_FACTOR = 1 << 12, LARGEST_INDEX = 1 << 16 };

/** Indices of dimensions that begin and end alike: one sum of indices and symbols, plus from `low`
 * to `high`. */
typedef struct range {
    const qn_affine *sum;
    const qn_dim_fact *dim;
    int64_t low, high;
} range;

typedef struct ranges {
    range range[MOST_RANGES];
    int n;
} ranges;

static bool is_between(int64_t n, int64_t most)
{
    return n >= -most && n <= most;
}

/** How far ahead of g->iv[d] a step reaches; of a reduction dimension its indices. False: not
 * known. */
static bool reach_of(const lower *g, int d, int64_t *low, int64_t *high)
{
    if (qn__is_reduction(g->k, d)) {
        *low = g->f->begin[d].value;
        *high = g->f->end[d].value - 1;
        return qn__is_exact(g->f, d) && is_between(*low, LARGEST_INDEX) &&
               is_between(*high, LARGEST_INDEX) && *low <= *high;
    }
    *low = INT64_MAX;
    *high = INT64_MIN;
    FOR_PARTS (g, p) {
        int64_t ahead = qn__part_ahead(g, d, p) + g->ahead[d],
                last = ahead + (d == g->block->lane_dim ? g->width - 1 : 0);
        *low = ahead < *low ? ahead : *low;
        *high = last > *high ? last : *high;
    }
    return g->iv[d] && is_between(*low, LARGEST_INDEX) && is_between(*high, LARGEST_INDEX);
}

/** The range of one index; false if it is no such sum, or reaches further than the dimension is
 * long. */
static bool range_of(const lower *g, uint32_t value, const qn_dim_fact *dim, range *out)
{
    const qn_affine *sum = &g->a.affine[value];
    *out = (range){.sum = sum, .dim = dim, .low = sum->constant, .high = sum->constant};
    if (g->k->inst[value].type != QN_I64 || !is_between(sum->constant, LARGEST_CONSTANT))
        return false;
    for (int s = 0; s < 2; s++)
        if (sum->sym[s] >= g->k->body)
            return false;
    for (int d = 0; d < g->k->n_dims; d++) {
        int64_t low, high, factor = sum->coef[d];
        if (!factor)
            continue;
        if (!is_between(factor, LARGEST_FACTOR) || !reach_of(g, d, &low, &high))
            return false;
        out->low += factor * (factor > 0 ? low : high);
        out->high += factor * (factor > 0 ? high : low);
    }
    return dim->extent.kind != QN_FACT_EXACT || dim->extent.value > out->high - out->low;
}

/** Whether two ranges differ in what is added to the sum only. */
static bool is_alike(const lower *g, const range *a, const range *b)
{
    for (int d = 0; d < g->k->n_dims; d++)
        if (a->sum->coef[d] != b->sum->coef[d] && !qn__is_reduction(g->k, d))
            return false;
    for (int s = 0; s < 2; s++)
        if (a->sum->sym[s] != b->sum->sym[s] ||
            (a->sum->sym[s] && a->sum->sym_coef[s] != b->sum->sym_coef[s]))
            return false;
    return qn__is_same_fact(&a->dim->lower, &b->dim->lower) &&
           qn__is_same_fact(&a->dim->extent, &b->dim->extent);
}

static bool add_range(const lower *g, ranges *all, const range *x)
{
    for (int n = 0; n < all->n; n++) {
        range *r = &all->range[n];
        int64_t low = x->low < r->low ? x->low : r->low,
                high = x->high > r->high ? x->high : r->high;
        if (!is_alike(g, r, x) ||
            (x->dim->extent.kind == QN_FACT_EXACT && x->dim->extent.value <= high - low))
            continue;
        r->low = low;
        r->high = high;
        return true;
    }
    if (all->n == MOST_RANGES)
        return false;
    all->range[all->n++] = *x;
    return true;
}

/** Adds what access n needs; false, and nothing, if it is to be clamped in any case. */
static bool add_access(const lower *g, ranges *all, uint32_t n)
{
    uint32_t i = g->k->access[n].inst;
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    ranges more = *all;
    if (!qn__is_checked(g->f, g->k, n) || param->checks != QN_CHECKS_CLAMP)
        return false;
    for (int r = 0; r < qn__n_indices(g->k, i); r++) {
        range x;
        if (param->dim[r].n_digits == 0)
            continue;
        if (!range_of(g, qn__args(g->k, i)[r], &param->dim[r], &x) || !add_range(g, &more, &x))
            return false;
    }
    *all = more;
    return true;
}

/* ---------------------------------------------------------------- the test */

/** Where the lowest index stands in the dimension. */
static LLVMValueRef position_of(lower *g, const range *r)
{
    LLVMValueRef sum = qn__affine_value(g, r->sum, r->low, false);
    return LLVMBuildSub(g->b, sum, qn__fact(g, &r->dim->lower), "");
}

/** In how many places the lowest index may stand. */
static LLVMValueRef limit_of(lower *g, const range *r)
{
    int64_t reach = r->high - r->low;
    LLVMValueRef extent = qn__fact(g, &r->dim->extent),
                 left = LLVMBuildSub(g->b, extent, qn__const_i64(g, reach), "");
    return r->dim->extent.kind == QN_FACT_EXACT ? left : qn__smax(g, left, qn__const_i64(g, 0));
}

static LLVMValueRef test(lower *g, const ranges *all)
{
    LLVMValueRef ok = NULL;
    for (int n = 0; n < all->n; n++) {
        const range *r = &all->range[n];
        LLVMValueRef position = position_of(g, r), limit = limit_of(g, r);
        ok = qn__mask_and(g, ok, LLVMBuildICmp(g->b, LLVMIntULT, position, limit, ""));
    }
    return ok;
}

/* ---------------------------------------------------------------- the body */

/** Whether the body may be emitted twice. Threads of a grid that work together run all of it
 * together. */
static bool is_worth(const lower *g)
{
    bool is_small =
        g->k->n_insts - g->k->body <= MOST_TWICE && g->depth + LEVELS_LEFT < MOST_LEVELS;
    return is_small &&
           !(g->grid && qn__has_insts(g->k, g->k->body, g->k->n_insts, 1u << QN_I_REDUCE));
}

void qn__lower_body(lower *g)
{
    ranges all = {.n = 0};
    for (uint32_t n = 0; n < g->k->n_accesses && is_worth(g); n++)
        g->covered[n] = add_access(g, &all, n);
    if (all.n == 0) {
        qn__lower_region(g, g->k->body, g->k->n_insts);
        return;
    }
    branch x = qn__begin_choice(g, test(g, &all), "inside", "rim");
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(x.from));
    g->level[g->depth].is_branch =
        false; /* what does not change in the loops is computed before them */
    qn__lower_region(g, g->k->body, g->k->n_insts);
    for (uint32_t n = 0; n < g->k->n_accesses; n++)
        g->covered[n] = false;
    g->stored_end = 0;
    qn__begin_other(g, &x);
    qn__lower_region(g, g->k->body, g->k->n_insts);
    qn__end_branch(g, &x, NULL);
}
