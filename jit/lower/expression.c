/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.c: the regions of updates. They hold pure instructions only, and nothing of them is
 * hoisted: they follow the old value, which a loop around compare-exchange finds anew.
 */
#include "jit/lower/atomic.h"

enum { MOST_OPERANDS = 3 };

bool qn__expression_open(lower *g, expression *e, uint32_t i, int p)
{
    const qn_inst *x = &g->k->inst[i];
    *e = (expression){.begin = x->region[0], .end = x->region[1]};
    size_t n = e->end - e->begin;
    if (n == 0)
        return true;
    e->result = qn__zalloc((1 + 2 * MOST_OPERANDS) * n, sizeof *e->result);
    if (!e->result) {
        g->failed = true;
        return false;
    }
    e->operand = e->result + n;
    e->taken = e->operand + MOST_OPERANDS * n;
    for (uint32_t j = e->begin; j < e->end; j++)
        for (uint32_t a = 0; a < g->k->inst[j].n_args; a++) {
            uint32_t from = qn__args(g->k, j)[a];
            bool has_lanes = g->width > 1 && g->a.value[from].shape != QN_UNIFORM;
            if (from < e->begin)
                e->operand[MOST_OPERANDS * (j - e->begin) + a] =
                    has_lanes ? qn__vector(g, from, p) : qn__scalar(g, from, p);
        }
    return true;
}

void qn__expression_close(expression *e)
{
    qn__free(e->result);
}

void qn__expression_take(lower *g, const expression *e, LLVMValueRef lane)
{
    for (uint32_t n = 0; n < MOST_OPERANDS * (e->end - e->begin); n++) {
        LLVMValueRef v = e->operand[n];
        const bool has_lanes = v && qn__is_vector(v);
        if (lane && has_lanes)
            v = LLVMBuildExtractElement(g->b, v, lane, "");
        else if (v && !lane && !has_lanes)
            v = qn__splat(g, v, g->depth);
        e->taken[n] = v;
    }
}

LLVMValueRef qn__expression_of(lower *g, const expression *e, LLVMValueRef old)
{
    for (uint32_t j = e->begin; j < e->end; j++) {
        const qn_inst *x = &g->k->inst[j];
        LLVMValueRef v[MOST_OPERANDS] = {NULL};
        if (!qn__spend(g, j))
            return old; /* of the type of the new value; the function is thrown away */
        for (uint32_t a = 0; a < x->n_args; a++) {
            LLVMValueRef taken = e->taken[MOST_OPERANDS * (j - e->begin) + a];
            v[a] = taken ? taken : e->result[qn__args(g->k, j)[a] - e->begin];
        }
        e->result[j - e->begin] = x->op == QN_I_CARRIED ? old
                                  : x->op == QN_I_YIELD ? v[0]
                                                        : qn__build_pure(g, j, 0, v);
    }
    return e->result[e->end - e->begin - 1];
}
