/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence.c: what a step of a sequence stores and the next few steps load stays in registers, as
 * y[i - 1] in y[i] = y[i - 1] + x[i]: a load of what was just stored waits for the store. It is so
 * in kernels with one store and no parallel iterations.
 */
#include "jit/lower/nest.h"

/** The only store of the kernel, of which nothing may be left out; 0: there is none. */
static uint32_t only_store(const lower *g)
{
    uint32_t store = 0;
    FOR_ACCESSES (g->k, n, i) {
        const qn_inst *x = &g->k->inst[i];
        if (x->op == QN_I_LOAD)
            continue;
        if (store || x->op != QN_I_STORE || x->parent || qn__is_checked(g->f, g->k, g->site[i]))
            return 0;
        store = i;
    }
    return store;
}

/** Whether load i finds what the store stored so many steps of dimension d before. */
static bool is_steps_behind(const lower *g, int d, uint32_t store, uint32_t i, int64_t back)
{
    const qn_kernel *k = g->k;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_LOAD || x->imm != k->inst[store].imm || i > store ||
        x->type != qn__access_dtype(k, store) ||
        qn__access_offset(k, i) != qn__access_offset(k, store))
        return false;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_affine *from = &g->a.affine[qn__args(k, i)[r]],
                        *to = &g->a.affine[qn__args(k, store)[r]];
        if (!qn__differ_by_constant(from, to) ||
            qn__wrap_sub(to->constant, from->constant) != qn__wrap_mul(back, to->coef[d]))
            return false;
    }
    return true;
}

/** A load that is always run and always in the view, of what was stored so many steps before; 0:
 * there is none. */
static uint32_t load_behind(const lower *g, int d, uint32_t store, int64_t back)
{
    FOR_ACCESSES (g->k, n, i)
        if (!g->k->inst[i].parent && !qn__is_checked(g->f, g->k, g->site[i]) &&
            is_steps_behind(g, d, store, i, back))
            return i;
    return 0;
}

/** Whether dimension d is the innermost one of a sequence of single elements. */
static bool is_sequence(const lower *g, int d)
{
    bool is = g->width == 1 && g->unroll == 1 && g->jam_max == 1 && !g->grid;
    for (int m = 0; m < g->k->n_dims && is; m++)
        is = qn__is_reduction(g->k, m) ||
             (qn__dim_kind(g->k, m) == QN_DIM_SEQUENTIAL && m <= d);
    return is;
}

void qn__recurrence_open(lower *g, int d, span s, bool guarded)
{
    recurrence *of = &g->recurrence;
    uint32_t load[QN_MOST_RECURRENT], store = is_sequence(g, d) ? only_store(g) : 0;
    *of = (recurrence){.store = store, .dim = d};
    if (!store)
        return;
    const int dtype = qn__access_dtype(g->k, store);
    LLVMTypeRef t = qn__memory_type(g, dtype);
    int64_t stride;
    bool moves = qn__access_stride(&g->a, store, d, &stride) && stride != 0;
    if (t != qn__scalar_type(g, dtype) || (g->k->param[g->k->inst[store].imm].traits & QN_ATOMIC))
        return;
    while (of->n < (moves ? QN_MOST_RECURRENT : 1) &&
           (load[of->n] = load_behind(g, d, store, of->n + 1)) != 0)
        of->value[of->n++] = LLVMConstNull(t);
    if (of->n == 0)
        return;
    loop once;
    branch some =
        qn__begin_branch(g, guarded ? LLVMBuildICmp(g->b, LLVMIntNE, s.low, s.high, "") : NULL);
    qn__branch_keep(g, &some, of->value, of->n);
    qn__once_open(g, &once, NULL);
    qn__set_index(g, d, s.low);
    for (int n = 0; n < of->n; n++)
        of->value[n] = qn__load_at(g, t, qn__displaced(g, load[n], 0, NULL).pointer,
                                   qn__align_of(g, load[n]));
    qn__loop_close(g, &once);
    qn__end_branch(g, &some, NULL);
}

LLVMValueRef qn__recurrent(const lower *g, uint32_t i)
{
    const recurrence *of = &g->recurrence;
    for (int n = 0; n < of->n; n++)
        if (is_steps_behind(g, of->dim, of->store, i, n + 1))
            return of->value[n];
    return NULL;
}

void qn__recurrence_step(lower *g)
{
    recurrence *of = &g->recurrence;
    for (int n = of->n - 1; n > 0; n--)
        of->value[n] = of->value[n - 1];
    if (of->n)
        of->value[0] = of->stored;
}
