/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collapse.c: two parallel dimensions, or two reduction dimensions that follow each other in every
 * reduce, become one where every access walks them as one: the outer's stride is the inner's times
 * its iterations. The inner then runs over both ranges and the outer over its first index only;
 * addresses are affine in the indices, so an inner index past its own end reaches exactly the
 * elements of the next outer one. A long dimension has whole vectors where two short ones have
 * remainders (rows without gaps, pixels of three channels).
 *
 * Indices change, so: they are used in addresses only; every access is proved in range (nothing is
 * recorded or clamped); no `while` may record its limit, no assertion may fail. Ranges and strides
 * are exact. Facts in, facts out; knows no LLVM.
 */
#include "jit/analysis/analyse.h"

/** Indices of domain dimensions that values carry outside memory: bit d of mask[i]. */
static void mark_indices(const qn_kernel *k, uint32_t *mask)
{
    for (uint32_t i = 1; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        mask[i] = x->op == QN_I_DIM ? 1u << x->imm : 0;
        for (int n = 0; x->op != QN_I_DIM && qn__is_pure(x) && n < x->n_args; n++)
            mask[i] |= mask[qn__args(k, i)[n]];
    }
}

/** Dimensions whose index is used for something else than the indices of accesses. */
static uint32_t used_as_values(const qn_kernel *k, const uint32_t *mask)
{
    uint32_t used = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (qn__is_pure(x) || x->op == QN_I_REDUCE)
            continue;
        for (int n = qn__is_access(x) ? qn__n_indices(k, i) : 0; n < x->n_args; n++)
            used |= mask[qn__args(k, i)[n]];
    }
    return used;
}

/** Whether every access goes on along `inner` where `outer` steps. */
static bool runs_on(const qn_analysis *a, int outer, int inner)
{
    for (uint32_t n = 0; n < a->k->n_accesses; n++) {
        int64_t far, near, run;
        uint32_t i = a->k->access[n].inst;
        if (!qn__access_stride(a, i, outer, &far) || !qn__access_stride(a, i, inner, &near) ||
            __builtin_mul_overflow(near, qn__trips(a->f, inner), &run) || run != far)
            return false;
    }
    return true;
}

/** Whether each reduce over one of two reduction dimensions is over both, `inner` right behind
 * `outer`: the order of points is that of one dimension then. */
static bool follow_each_other(const qn_kernel *k, int outer, int inner)
{
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        int at = -1, behind = -1;
        for (int n = 0; k->inst[i].op == QN_I_REDUCE && n < k->inst[i].n_args; n++) {
            int d = qn__dim_of(k, i, n);
            at = d == outer ? n : at;
            behind = d == inner ? n : behind;
        }
        if ((at >= 0 || behind >= 0) && (at < 0 || behind != at + 1))
            return false;
    }
    return true;
}

static bool may_be_one(const qn_kernel *k, int outer, int inner)
{
    bool is_same_kind = qn__dim_kind(k, outer) == qn__dim_kind(k, inner);
    return is_same_kind && (qn__is_parallel(k, outer) || follow_each_other(k, outer, inner));
}

/** Merges one pair of the dimensions in `candidates`; false if there is none. */
static bool merge_pair(qn_facts *f, const qn_analysis *a, uint32_t candidates)
{
    const qn_kernel *k = a->k;
    for (int outer = 0; outer < k->n_dims; outer++)
        for (int inner = 0; inner < k->n_dims; inner++) {
            int64_t n, end;
            if (outer == inner || !(candidates >> outer & 1) || !(candidates >> inner & 1) ||
                qn__trips(f, outer) < 2 || qn__trips(f, inner) < 2 ||
                !may_be_one(k, outer, inner) || !runs_on(a, outer, inner) ||
                __builtin_mul_overflow(qn__trips(f, outer), qn__trips(f, inner), &n) ||
                __builtin_add_overflow(f->begin[inner].value, n, &end))
                continue;
            f->end[inner].value = end;
            f->end[outer].value = f->begin[outer].value + 1;
            f->merged[inner] |= 1u << outer | f->merged[outer];
            f->merged[outer] = 0;
            return true;
        }
    return false;
}

/** Dimensions that may be merged: exact ones, whose index is used in addresses alone and whose
 * range no caller gives. */
static uint32_t find_candidates(const qn_kernel *k, const qn_facts *f, uint32_t used)
{
    uint32_t candidates = 0;
    for (int d = 0; d < k->n_dims; d++) {
        qn_dim_kind kind = qn__dim_kind(k, d);
        bool is_given = qn__is_given(f, d);
        if (kind != QN_DIM_SEQUENTIAL && qn__is_exact(f, d) && !f->part[d] && !is_given &&
            !(used >> d & 1))
            candidates |= 1u << d;
    }
    return candidates;
}

void qn__collapse(const qn_kernel *k, qn_facts *f)
{
    qn_analysis a;
    if (k->n_dims < 2 || f->is_ordered || qn__may_fail(k, f) || qn__names_dims(&f->plan))
        return;
    uint32_t *mask = qn__zalloc(k->n_insts, sizeof *mask);
    if (mask)
        mark_indices(k, mask);
    uint32_t candidates = mask ? find_candidates(k, f, used_as_values(k, mask)) : 0;
    bool has_pair = (candidates & (candidates - 1)) != 0;
    if (has_pair && qn__analyse(k, f, -1, 0, &a)) {
        while (merge_pair(f, &a, candidates))
            ;
        qn__analysis_release(&a);
    }
    qn__free(mask);
}
