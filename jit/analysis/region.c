/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.c: what stands in a region of a kernel: reduces, memory, branches, what may fail.
 */
#include "jit/analysis/analyse.h"

uint32_t qn__points_dims(const qn_kernel *k, uint32_t reduce)
{
    uint32_t dims = 0;
    for (int n = 0; n < k->inst[reduce].n_args; n++)
        dims |= UINT32_C(1) << qn__dim_of(k, reduce, n);
    return dims;
}

void qn__drop(qn_kernel *k, uint32_t begin, uint32_t end)
{
    const uint32_t parent = k->inst[begin].parent;
    for (uint32_t i = begin; i < end; i++) {
        const qn_inst x = k->inst[i];
        k->inst[i] = (qn_inst){.op = QN_I_CONST,
                               .type = x.type == QN_VOID ? QN_BOOL : x.type,
                               .args = x.args,
                               .parent = parent,
                               .region = {i + 1, i + 1, i + 1}};
    }
}

bool qn__region_has_memory(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (!qn__is_pure(&k->inst[i]) && k->inst[i].op != QN_I_YIELD)
            return true;
    return false;
}

bool qn__has_insts(const qn_kernel *k, uint32_t begin, uint32_t end, uint32_t kinds)
{
    for (uint32_t i = begin; i < end; i++)
        if (k->inst[i].op < QN_I_PURE && (kinds >> k->inst[i].op & 1))
            return true;
    return false;
}

bool qn__is_straight(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (k->inst[i].region[2] != i + 1)
            return false;
    return true;
}

bool qn__region_may_fail(const qn_kernel *k, const qn_facts *f, uint32_t begin, uint32_t end)
{
    FOR_ACCESSES (k, n, i)
        if (i >= begin && i < end && qn__is_checked(f, k, n))
            return true;
    return qn__has_insts(k, begin, end, 1u << QN_I_WHILE | 1u << QN_I_ASSERT);
}

bool qn__may_fail(const qn_kernel *k, const qn_facts *f)
{
    bool tells = false;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        tells |= qn__effect(&k->inst[i]) == QN_EFFECT_TELL;
    return tells || qn__region_may_fail(k, f, k->body, k->n_insts);
}

uint32_t qn__next_reduce(const qn_kernel *k, uint32_t i)
{
    while (i < k->n_insts && k->inst[i].op != QN_I_REDUCE)
        i = k->inst[i].region[2];
    return i;
}

int qn__n_top_reduces(const qn_kernel *k)
{
    int n = 0;
    FOR_TOP_REDUCES(k, i)
        n++;
    return n;
}

uint32_t qn__enclosing_reduce(const qn_kernel *k, uint32_t i)
{
    for (i = k->inst[i].parent; i; i = k->inst[i].parent)
        if (k->inst[i].op == QN_I_REDUCE)
            return i;
    return 0;
}

bool qn__is_used(const qn_kernel *k, uint32_t i)
{
    for (uint32_t user = i + 1; user < k->n_insts; user++)
        for (int n = 0; n < k->inst[user].n_args; n++)
            if (qn__args(k, user)[n] == i)
                return true;
    return false;
}
