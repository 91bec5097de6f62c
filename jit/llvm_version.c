/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_version.c: two versions of a `for` that walks through views: the row of a sparse matrix, a segment of a ragged array.
 * Its range is loaded, so that nothing is proved at the call; but one test before the loop tells whether all accesses at its
 * index are in range, and the first version needs no other. The second is for rows that fail.
 */
#include "jit/llvm_yields.h"

/* Larger loops take longer than their checks, and code is emitted twice. */
enum { LARGEST_BODY = 64 };

/** Whether value is the index of loop i plus a constant. */
static bool is_index_of(const lower *g, uint32_t i, uint32_t value, int64_t *ahead)
{
    const qn_affine *f = &g->a.affine[value];
    *ahead = f->constant;
    if (g->k->inst[value].type != QN_I64 || f->sym[0] != g->k->inst[i].region[0] || f->sym_coef[0] != 1 || f->sym[1])
        return false;
    for (int d = 0; d < g->k->n_dims; d++)
        if (f->coef[d])
            return false;
    return true;
}

/** Whether one test before loop i is enough for access n: each index is the loop's or is known before it. */
static bool may_cover(const lower *g, uint32_t i, uint32_t n)
{
    uint32_t access = g->k->access[n].inst;
    const uint32_t *arg = qn__args(g->k, access);
    const qn_param_fact *param = &g->f->param[g->k->inst[access].imm];
    int64_t ahead;
    if (!qn__is_checked(g->f, g->k, n))
        return false;
    for (int r = 0; r < qn__n_indices(g->k, access); r++) {
        bool is_known_before = arg[r] < g->k->inst[i].region[0] && qn__is_uniform(g, arg[r]);
        if (param->dim[r].n_digits > 0 && !is_index_of(g, i, arg[r], &ahead) && !is_known_before)
            return false;
    }
    return true;
}

static LLVMValueRef both(lower *g, LLVMValueRef a, LLVMValueRef b)
{
    return a ? LLVMBuildAnd(g->b, a, b, "") : b;
}

/** `all` and: the positions of index arg in dimension r, from the loop's first to the one past its last, are in order and
 *  at most the extent. Then, whatever wrapped on the way, each between them is in range. */
static LLVMValueRef cover_dimension(lower *g, uint32_t i, uint32_t arg, const qn_dim_fact *dim, LLVMValueRef all)
{
    int64_t ahead;
    LLVMValueRef extent = qn__fact(g, &dim->extent), low = qn__fact(g, &dim->lower), position[2];
    if (dim->n_digits == 0)
        return all;
    if (!is_index_of(g, i, arg, &ahead))
        return both(g, all, LLVMBuildICmp(g->b, LLVMIntULT, LLVMBuildSub(g->b, qn__scalar(g, arg, 0), low, ""), extent, ""));
    for (int n = 0; n < 2; n++) {
        LLVMValueRef end = qn__scalar(g, qn__args(g->k, i)[n], 0);
        position[n] = LLVMBuildSub(g->b, LLVMBuildAdd(g->b, end, qn__const_i64(g, ahead), ""), low, "");
    }
    all = both(g, all, LLVMBuildICmp(g->b, LLVMIntULE, position[0], position[1], ""));
    return both(g, all, LLVMBuildICmp(g->b, LLVMIntULE, position[1], extent, ""));
}

/** A small loop of scalar code, or the same for all lanes, without another one inside. */
static bool is_worth(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    if (g->p->is_gpu || x->region[2] - x->region[0] > LARGEST_BODY || !qn__is_uniform(g, arg[0]) || !qn__is_uniform(g, arg[1]))
        return false;
    for (uint32_t n = x->region[0]; n < x->region[2]; n++)
        if (g->k->inst[n].op == QN_I_FOR || g->k->inst[n].op == QN_I_WHILE || g->k->inst[n].op == QN_I_REDUCE)
            return false;
    return true;
}

LLVMValueRef qn__cover(lower *g, uint32_t i)
{
    LLVMValueRef all = NULL;
    for (uint32_t n = 0; n < g->k->n_accesses && is_worth(g, i); n++) {
        uint32_t access = g->k->access[n].inst;
        if (access < g->k->inst[i].region[0] || access >= g->k->inst[i].region[2] || !may_cover(g, i, n))
            continue;
        const qn_param_fact *param = &g->f->param[g->k->inst[access].imm];
        for (int r = 0; r < qn__n_indices(g->k, access); r++)
            all = cover_dimension(g, i, qn__args(g->k, access)[r], &param->dim[r], all);
        g->covered[n] = all != NULL;
    }
    return all;
}

void qn__uncover(lower *g, uint32_t i)
{
    for (uint32_t n = 0; n < g->k->n_accesses; n++)
        if (g->k->access[n].inst >= g->k->inst[i].region[0] && g->k->access[n].inst < g->k->inst[i].region[2])
            g->covered[n] = false;
}
