/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c: the checks of indices that were not proved at the call, and for which lanes an access is
 * performed.
 */
#include "jit/lower/lower.h"

/* ---------------------------------------------------------------- in range */

bool qn__indices_are_uniform(const lower *g, uint32_t i)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    const uint32_t *arg = qn__args(g->k, i);
    for (int r = 0; r < qn__n_indices(g->k, i); r++)
        if (g->a.value[arg[r]].shape != QN_UNIFORM && param->dim[r].n_digits > 0)
            return false;
    return true;
}

static LLVMValueRef in_range(lower *g, LLVMValueRef position, const qn_dim_fact *dim, bool vector)
{
    LLVMValueRef extent = qn__fact(g, &dim->extent);
    return LLVMBuildICmp(g->b, LLVMIntULT, position, vector ? qn__splat(g, extent, 0) : extent, "");
}

static LLVMValueRef like(lower *g, const check *c, LLVMValueRef scalar)
{
    return c->is_vector ? qn__splat(g, scalar, 0) : scalar;
}

/** The position of the nearest index of dimension r; an extent of 0 leaves no lane active. Indices
 * are compared as they are, with sign: the distance of a far one from the lower bound wraps. */
static void clamp_position(lower *g, check *c, int r, uint32_t value, int p, const qn_dim_fact *dim)
{
    int64_t known;
    LLVMValueRef low = qn__fact(g, &dim->lower), extent = qn__fact(g, &dim->extent);
    place here;
    qn__seek(g, 0, &here); /* where all facts are known */
    LLVMValueRef last =
        LLVMBuildSub(g->b, LLVMBuildAdd(g->b, low, extent, ""), qn__const_i64(g, 1), "");
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, extent, qn__const_i64(g, 0), "");
    qn__unseek(g, &here);
    LLVMValueRef v = c->is_vector ? qn__vector(g, value, p) : qn__scalar(g, value, p);
    v = qn__smin(g, qn__smax(g, v, like(g, c, low)), like(g, c, last));
    bool is_from_zero = qn__is_const(low, &known) && known == 0;
    c->position[r] = is_from_zero ? v : LLVMBuildSub(g->b, v, like(g, c, low), "");
    if (qn__is_const(extent, &known) && known > 0)
        return;
    LLVMValueRef ok = like(g, c, some);
    c->ok = c->ok ? LLVMBuildAnd(g->b, c->ok, ok, "") : ok;
}

/** Whether 32 bits are enough to compare an index that differs between lanes. */
static bool is_short_index(const lower *g, uint32_t value, const qn_dim_fact *dim)
{
    bool is_plain = dim->lower.kind == QN_FACT_EXACT && dim->lower.value == 0 &&
                    dim->extent.kind == QN_FACT_EXACT;
    return is_plain && dim->extent.value <= INT32_MAX && g->a.value[value].shape == QN_VARYING &&
           g->a.value[value].bits <= 32 && g->f->target->narrows_integers;
}

/** The index that is compared in 32 bits where one lane or thread stands alone: it was loaded or
 * computed in so many, and the dimension is no longer. NULL: it takes 64. */
static LLVMValueRef short_index(lower *g, uint32_t value, int p, const qn_dim_fact *dim)
{
    const qn_inst *x = &g->k->inst[value];
    const int from = x->op == QN_I_CAST ? g->k->inst[qn__args(g->k, value)[0]].type : QN_F64;
    if (!qn__is_integer(from) || qn__dtype_width(from) > 32 || g->width > 1 ||
        dim->lower.kind != QN_FACT_EXACT || dim->lower.value != 0 ||
        dim->extent.kind != QN_FACT_EXACT || dim->extent.value > INT32_MAX)
        return NULL;
    return LLVMBuildTrunc(g->b, qn__scalar(g, value, p), g->i32, "");
}

/** A load ahead of its check: of the first element along a dimension whose index is out of range,
 * which is noted. */
static void note_range(lower *g, int p, check *c)
{
    LLVMValueRef ok =
        g->mask[p] ? LLVMBuildOr(g->b, c->ok, LLVMBuildNot(g->b, g->mask[p], ""), "") : c->ok;
    *g->in_range = LLVMBuildAnd(g->b, *g->in_range, ok, "");
    c->ok = NULL;
    c->is_needed = false;
    c->is_clamped = true;
}

/** Adds coefficient x index to a range, from the first to the last index of dimension d; false:
 * these are not known, or too large. */
static bool widen(const qn_facts *f, int d, int64_t coef, int64_t *low, int64_t *high)
{
    int64_t first, last;
    if (!qn__is_exact(f, d) || __builtin_mul_overflow(coef, f->begin[d].value, &first) ||
        __builtin_mul_overflow(coef, f->end[d].value - 1, &last))
        return false;
    return !__builtin_add_overflow(*low, first < last ? first : last, low) &&
           !__builtin_add_overflow(*high, first < last ? last : first, high);
}

/** Whether index r of checked access i may leave its dimension: it is no sum of indices of the
 * domain whose ranges show the opposite. */
static bool is_open(const lower *g, uint32_t i, int r)
{
    const qn_dim_fact *dim = &g->f->param[g->k->inst[i].imm].dim[r];
    const qn_affine *sum = &g->a.affine[qn__args(g->k, i)[r]];
    int64_t low = sum->constant, high = low;
    bool is_known = !sum->sym[0] && !sum->sym[1] && dim->lower.kind == QN_FACT_EXACT &&
                    dim->extent.kind == QN_FACT_EXACT;
    for (int d = 0; d < qn__n_indexed(&g->a) && is_known; d++)
        is_known = !sum->coef[d] || (d < g->k->n_dims && widen(g->f, d, sum->coef[d], &low, &high));
    return dim->n_digits > 0 &&
           !(is_known && low >= dim->lower.value &&
             (uint64_t)high - (uint64_t)dim->lower.value < (uint64_t)dim->extent.value);
}

/** Whether an index that access i may be out of range by differs between lanes. */
static bool differs_in_lanes(const lower *g, uint32_t i)
{
    for (int r = 0; r < qn__n_indices(g->k, i) && g->width > 1; r++)
        if (g->a.value[qn__args(g->k, i)[r]].shape != QN_UNIFORM && is_open(g, i, r))
            return true;
    return false;
}

check qn__make_check(lower *g, uint32_t i, int p)
{
    check c = {0};
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    const uint32_t *arg = qn__args(g->k, i);
    if (!qn__is_tested(g, i))
        return c;
    c.is_vector = differs_in_lanes(g, i);
    c.is_clamped = param->checks == QN_CHECKS_CLAMP;
    for (int r = 0; r < qn__n_indices(g->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        if (!is_open(g, i, r))
            continue;
        c.is_needed = true;
        if (c.is_vector && !c.is_clamped && is_short_index(g, arg[r], dim)) {
            LLVMValueRef v = qn__vector_bits(g, arg[r], p, 32),
                         extent = qn__int(LLVMTypeOf(v), dim->extent.value),
                         below = LLVMBuildICmp(g->b, LLVMIntULT, v, extent, "");
            c.ok = c.ok ? LLVMBuildAnd(g->b, c.ok, below, "") : below;
            continue;
        }
        if (c.is_clamped) {
            clamp_position(g, &c, r, arg[r], p, dim);
            continue;
        }
        LLVMValueRef small = g->in_range ? short_index(g, arg[r], p, dim) : NULL, ok;
        if (small) {
            ok = LLVMBuildICmp(g->b, LLVMIntULT, small, qn__int(g->i32, dim->extent.value), "");
            small = LLVMBuildSelect(g->b, ok, small, LLVMConstNull(g->i32), "");
            c.position[r] = LLVMBuildZExt(g->b, small, g->i64, "");
        } else {
            c.position[r] = qn__relative_index(g, arg[r], p, &dim->lower, c.is_vector);
            ok = in_range(g, c.position[r], dim, c.is_vector);
        }
        c.ok = c.ok ? LLVMBuildAnd(g->b, c.ok, ok, "") : ok;
        if (g->in_range && !small)
            c.position[r] = LLVMBuildSelect(g->b, ok, c.position[r], qn__const_i64(g, 0), "");
    }
    c.is_needed = c.is_needed && c.ok;
    if (c.is_needed && g->in_range && !c.is_clamped)
        note_range(g, p, &c);
    return c;
}

void qn__report(lower *g, uint32_t i, int p, const check *c)
{
    if (c->is_needed && !c->is_clamped)
        qn__require(g, i, p, c->ok, QN_ERR_BOUNDS);
}

/* ---------------------------------------------------------------- active lanes */

/** Whether a value is wrong in lanes that are not active: it counts in a loop that they have left,
 * or comes from a region that was skipped because no lane was active. */
static bool depends_on_region(const qn_kernel *k, uint32_t value, int depth)
{
    const qn_inst *x = &k->inst[value];
    if (x->op == QN_I_RESULT || x->op == QN_I_CARRIED || x->op == QN_I_INDEX || depth == 0)
        return true;
    for (int n = 0; x->op >= QN_I_CAST && qn__is_pure(x) && n < x->n_args; n++)
        if (depends_on_region(k, qn__args(k, value)[n], depth - 1))
            return true;
    return false;
}

bool qn__ignores_masks(const lower *g, uint32_t i)
{
    enum { MOST_DEPTH_OF_INDEX = 8 };
    if (g->k->inst[i].op != QN_I_LOAD || !qn__is_in_range(g->f, g->site[i]))
        return false;
    for (int r = 0; r < qn__n_indices(g->k, i); r++)
        if (depends_on_region(g->k, qn__args(g->k, i)[r], MOST_DEPTH_OF_INDEX))
            return false;
    return true;
}

LLVMValueRef qn__access_mask(lower *g, uint32_t i, int p, const check *c)
{
    LLVMValueRef mask = qn__ignores_masks(g, i) ? g->tail_mask[p] : g->mask[p];
    if (c->is_needed)
        mask = qn__mask_and(g, mask, c->is_vector ? c->ok : qn__splat(g, c->ok, g->depth));
    return mask;
}

/* ---------------------------------------------------------------- one branch for an access */

/** The first index of access i from r on that may leave its dimension, or their number. */
static int next_open(const lower *g, uint32_t i, int r)
{
    while (r < qn__n_indices(g->k, i) && !is_open(g, i, r))
        r++;
    return r;
}

/** Whether access i is tested, and branches may decide what is performed. */
static bool may_branch(const lower *g, uint32_t i)
{
    return next_open(g, i, 0) < qn__n_indices(g->k, i) && qn__is_tested(g, i) &&
           g->f->param[g->k->inst[i].imm].checks != QN_CHECKS_CLAMP &&
           !g->f->target->branches_diverge;
}

bool qn__is_one_branch(const lower *g, uint32_t i)
{
    return may_branch(g, i) && !differs_in_lanes(g, i);
}

int qn__tested_with(const lower *g, uint32_t i, int p)
{
    for (int q = 0; q < p && !g->mask[p]; q++) {
        bool is_same = !g->mask[q];
        for (int r = 0; r < qn__n_indices(g->k, i) && is_same; r++)
            is_same = !is_open(g, i, r) || qn__canonical_part(g, qn__args(g->k, i)[r], q) ==
                                               qn__canonical_part(g, qn__args(g->k, i)[r], p);
        if (is_same)
            return q;
    }
    return p;
}

bool qn__is_tested_alike(const lower *g, uint32_t i, uint32_t j)
{
    const uint32_t *of = qn__args(g->k, i), *arg = qn__args(g->k, j);
    int r = next_open(g, i, 0);
    for (int s = 0; s < qn__n_indices(g->k, j); s++) {
        const qn_dim_fact *x = &g->f->param[g->k->inst[i].imm].dim[r],
                          *y = &g->f->param[g->k->inst[j].imm].dim[s];
        if (!is_open(g, j, s) && arg[s] > i && g->a.affine[arg[s]].sym[0])
            return false;
        if (!is_open(g, j, s))
            continue;
        if (r == qn__n_indices(g->k, i) || of[r] != arg[s] ||
            !qn__is_same_fact(&x->lower, &y->lower) || !qn__is_same_fact(&x->extent, &y->extent))
            return false;
        r = next_open(g, i, r + 1);
    }
    return r == qn__n_indices(g->k, i);
}

bool qn__is_row(const lower *g, uint32_t i)
{
    bool is = g->block->lane_dim >= 0 && !g->in_range && may_branch(g, i) && differs_in_lanes(g, i);
    for (int r = next_open(g, i, 0); r < qn__n_indices(g->k, i); r = next_open(g, i, r + 1)) {
        const uint32_t v = qn__args(g->k, i)[r];
        is = is &&
             (g->a.value[v].shape == QN_UNIFORM ||
              (g->a.value[v].shape == QN_LINEAR && g->a.affine[v].coef[g->block->lane_dim] == 1));
    }
    return is;
}

branch qn__begin_checked(lower *g, const check *c)
{
    branch x = qn__begin_choice(g, c->ok, "then", "failed");
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(x.from));
    return x;
}

branch qn__begin_row(lower *g, uint32_t i, int p)
{
    const int64_t more = g->width - 1;
    check c = {.ok = NULL};
    for (int r = next_open(g, i, 0); r < qn__n_indices(g->k, i); r = next_open(g, i, r + 1)) {
        const uint32_t v = qn__args(g->k, i)[r];
        qn_dim_fact dim = g->f->param[g->k->inst[i].imm].dim[r];
        const bool are_lanes = g->a.value[v].shape != QN_UNIFORM,
                   is_long = dim.extent.kind == QN_FACT_EXACT && dim.extent.value > more;
        LLVMValueRef first = qn__relative_index(g, v, p, &dim.lower, false), ok;
        dim.extent.value -= are_lanes && is_long ? more : 0;
        ok = in_range(g, first, &dim, false);
        first = LLVMBuildAdd(g->b, first, qn__const_i64(g, more), "");
        if (are_lanes && !is_long)
            ok = LLVMBuildAnd(g->b, ok, in_range(g, first, &dim, false), "");
        c.ok = qn__mask_and(g, c.ok, ok);
    }
    return qn__begin_checked(g, &c);
}

void qn__end_checked(lower *g, branch *x, uint32_t i, int p)
{
    qn__begin_other(g, x);
    qn__note_fault(g, i, p, g->mask[p] ? g->mask[p] : LLVMConstInt(g->i1, 1, false), QN_ERR_BOUNDS);
    qn__end_branch(g, x, NULL);
}
