/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.c: two loads that read one element are one. A kernel written naively names the same element
 * in several sums; the code generator sees that only where no store stands between, because it does
 * not know which views share memory. Here that is known: a launch whose views overlap runs in
 * iteration order, unless they are the same elements accessed with one index tuple throughout.
 *
 * Requires: a kernel of the provider's own, facts of it. Ensures: the same results; loads that are
 * shared are no access any more (k->access keeps the numbers of the others). Knows no LLVM.
 */
#include "jit/analysis/analyse.h"

#include <string.h>

typedef struct sharer {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis a;
} sharer;

/** Which region of its parent an instruction stands in: 0 or 1. */
static int side_of(const qn_kernel *k, uint32_t i)
{
    uint32_t parent = k->inst[i].parent;
    return parent && i >= k->inst[parent].region[1];
}

/** Whether m runs whenever i does, and before it: it stands in the same region or in one around it.
 */
static bool comes_first(const qn_kernel *k, uint32_t m, uint32_t i)
{
    for (; i; i = k->inst[i].parent)
        if (k->inst[m].parent == k->inst[i].parent && side_of(k, m) == side_of(k, i))
            return m < i;
    return false;
}

static int n_symbols(const qn_affine *x)
{
    return (x->sym[0] != 0) + (x->sym[1] != 0);
}

/** Whether two indices are not one value of the kernel: they differ whatever the symbols in them
 * are, or one has more symbols. */
static bool is_different(const qn_affine *x, const qn_affine *y)
{
    if (n_symbols(x) != n_symbols(y))
        return true;
    return memcmp(x->sym, y->sym, sizeof x->sym) == 0 &&
           memcmp(x->sym_coef, y->sym_coef, sizeof x->sym_coef) == 0 &&
           (x->constant != y->constant || memcmp(x->coef, y->coef, sizeof x->coef) != 0);
}

static bool is_long(const qn_fact *extent)
{
    return extent->kind == QN_FACT_EXACT && extent->value > 1;
}

static bool is_other(const qn_fact *x, const qn_fact *y)
{
    return x->kind == QN_FACT_EXACT && y->kind == QN_FACT_EXACT && x->value != y->value;
}

/** Whether two views are known to have other extents, or other strides where they matter: views of
 * one index are the same elements whatever their strides. */
static bool has_other_layout(const qn_facts *f, const qn_param_fact *x, const qn_param_fact *y,
                             int rank)
{
    for (int d = 0; d < rank; d++) {
        const qn_dim_fact *one = &x->dim[d], *other = &y->dim[d];
        if (is_other(&one->extent, &other->extent))
            return true;
        if (one->n_digits == 1 && other->n_digits == 1 && is_long(&one->extent) &&
            is_other(&f->digit[one->first_digit].stride, &f->digit[other->first_digit].stride))
            return true;
    }
    return false;
}

bool qn__may_meet(const qn_analysis *a, uint64_t p, uint64_t q)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    int rank = k->param[p].rank;
    uint32_t first = 0;
    if (p == q || f->is_ordered)
        return true;
    if (f->is_straight)
        return f->param[p].may_meet >> q & 1;
    if (k->param[p].has_atomics || k->param[q].has_atomics) /* iterations meet in elements */
        return false;
    if (rank != k->param[q].rank || k->param[p].dtype != k->param[q].dtype ||
        has_other_layout(f, &f->param[p], &f->param[q], rank))
        return false;
    FOR_ACCESSES (k, n, i) {
        if (k->inst[i].imm != p && k->inst[i].imm != q)
            continue;
        first = first ? first : i;
        for (int r = 0; r < rank; r++)
            if (is_different(&a->affine[qn__args(k, i)[r]], &a->affine[qn__args(k, first)[r]]))
                return false;
    }
    return true;
}

bool qn__is_written_too(const qn_analysis *a, uint64_t p)
{
    for (int q = 0; q < a->k->n_params; q++)
        if (a->k->param[q].is_written && qn__may_meet(a, p, (uint64_t)q))
            return true;
    return false;
}

uint64_t qn__written_too(const qn_analysis *a)
{
    uint64_t mask = 0;
    for (int p = 0; p < a->k->n_params; p++)
        if (a->k->param[p].rank >= 0 && qn__is_written_too(a, (uint64_t)p))
            mask |= UINT64_C(1) << p;
    return mask;
}

bool qn__may_repeat(const qn_analysis *a)
{
    const qn_kernel *k = a->k;
    for (int p = 0; p < k->n_params; p++)
        if (k->param[p].has_atomics || (k->param[p].is_read && qn__is_written_too(a, (uint64_t)p)))
            return false;
    return true;
}

/** Whether the element that m loads may have changed when i loads it. */
static bool may_change(const sharer *s, uint32_t m, uint32_t i)
{
    const qn_kernel *k = s->k;
    bool is_one_region = k->inst[m].parent == k->inst[i].parent;
    FOR_ACCESSES (k, n, w)
        if (k->inst[w].op != QN_I_LOAD && (!is_one_region || (m < w && w < i)) &&
            qn__may_meet(&s->a, k->inst[i].imm, k->inst[w].imm))
            return true;
    return false;
}

/** An earlier load of the same element, or 0. Where that is out of range, the earlier one is what
 * fails. */
static uint32_t earlier_load(const sharer *s, uint32_t site)
{
    const qn_kernel *k = s->k;
    uint32_t i = k->access[site].inst;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_LOAD || k->param[x->imm].has_atomics || (k->param[x->imm].traits & QN_ATOMIC))
        return 0;
    for (uint32_t n = 0; n < site; n++) {
        uint32_t m = k->access[n].inst;
        const qn_inst *y = &k->inst[m];
        if (y->op == QN_I_LOAD && y->imm == x->imm && y->sub == x->sub && comes_first(k, m, i) &&
            qn__have_same_indices(&s->a, m, i) && !may_change(s, m, i))
            return m;
    }
    return 0;
}

/** What used the value of i uses that of m: nobody asks for i. */
static void rename_value(qn_kernel *k, qn_analysis *a, uint32_t i, uint32_t m)
{
    for (uint32_t n = 0; n < k->n_operands; n++)
        k->operand[n] = k->operand[n] == i ? m : k->operand[n];
    for (uint32_t n = 1; n < k->n_insts; n++)
        for (int sym = 0; sym < 2; sym++)
            a->affine[n].sym[sym] = a->affine[n].sym[sym] == i ? m : a->affine[n].sym[sym];
    qn__drop(k, i, i + 1);
}

static bool is_alike(const qn_kernel *k, uint32_t n, uint32_t i)
{
    const qn_inst *x = &k->inst[n], *y = &k->inst[i];
    return x->op == y->op && x->type == y->type && x->sub == y->sub && x->imm == y->imm &&
           x->n_args == y->n_args &&
           memcmp(qn__args(k, n), qn__args(k, i), x->n_args * sizeof(uint32_t)) == 0;
}

/** Values of m that are computed alike become one, as indices that were loaded twice. */
static void join_values(qn_kernel *k, qn_analysis *a, uint32_t m)
{
    for (uint32_t i = m + 1; i < k->n_insts; i++) {
        if (!qn__is_pure(&k->inst[i]) || !k->inst[i].n_args || qn__args(k, i)[0] != m)
            continue;
        uint32_t n = m + 1;
        while (n < i && !(is_alike(k, n, i) && comes_first(k, n, i)))
            n++;
        if (n < i) {
            rename_value(k, a, i, n);
            join_values(k, a, n);
        }
    }
}

/** Takes access `site` out of the tables; its value is that of m from now on. */
static void replace(qn_kernel *k, qn_facts *f, qn_analysis *a, uint32_t site, uint32_t m)
{
    uint32_t rest = --k->n_accesses - site;
    rename_value(k, a, k->access[site].inst, m);
    join_values(k, a, m);
    f->n_accesses--;
    memmove(&k->access[site], &k->access[site + 1], rest * sizeof *k->access);
    memmove(&f->proved[site], &f->proved[site + 1], rest);
}

void qn__drop_assertions(qn_kernel *k, const qn_facts *f)
{
    if (f->checks != QN_CHECKS_NONE || !qn__has_assertions(k))
        return;
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_ASSERT)
            qn__drop(k, i, i + 1);
    for (int n = 0; n < k->n_messages; n++)
        qn__free(k->message[n]);
    k->n_messages = 0;
}

/** Whether a view is loaded at two sites: most kernels have none, and need no analysis. */
static bool is_loaded_twice(const qn_kernel *k)
{
    uint64_t seen = 0;
    FOR_ACCESSES (k, n, i) {
        uint64_t view = k->inst[i].op == QN_I_LOAD ? UINT64_C(1) << k->inst[i].imm : 0;
        if (seen & view)
            return true;
        seen |= view;
    }
    return false;
}

void qn__share_loads(qn_kernel *k, qn_facts *f)
{
    sharer s = {.k = k, .f = f};
    if (f->is_ordered || !is_loaded_twice(k) || !qn__analyse(k, f, -1, 0, &s.a))
        return;
    for (uint32_t site = 1; site < k->n_accesses; site++) {
        uint32_t m = earlier_load(&s, site);
        if (m)
            replace(k, f, &s.a, site--, m);
    }
    qn__analysis_release(&s.a);
}
