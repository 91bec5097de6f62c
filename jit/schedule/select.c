/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c: an `if` of which both sides only compute, and no more than a branch costs, becomes
 * straight code: both sides run, and its results are selected. What asks for straight regions then
 * sees one: lanes over the points of reduces, trips as lanes, register tiles, parts of a step. A
 * side may load what is in range for the whole domain, at an index that moves with the loops.
 *
 * Requires: a kernel of the provider's own, facts of it. Ensures: the same results and accesses.
 */
#include "jit/schedule/budget.h"

#include <string.h>

/** Whether i stands in the condition of a `while`: where its first part does not hold, the others
 * are not looked at (lower/loops.c). */
static bool is_in_condition(const qn_kernel *k, uint32_t i)
{
    for (uint32_t loop = k->inst[i].parent; loop; loop = k->inst[loop].parent)
        if (k->inst[loop].op == QN_I_WHILE && i < k->inst[loop].region[1])
            return true;
    return false;
}

/** Whether load i may run where nobody asks for it: no more elements are touched than by a loop
 * without a condition. Threads that wait for their loads make none in vain. */
static bool is_free_load(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_LOAD || a->f->target->waits_for_loads ||
        !qn__is_in_range(a->f, qn__site_of(k, i)) || (k->param[x->imm].traits & QN_ATOMIC) ||
        k->param[x->imm].has_atomics)
        return false;
    for (int r = 0; r < qn__n_indices(k, i); r++)
        for (int s = 0; s < 2; s++) {
            uint32_t of = a->affine[qn__args(k, i)[r]].sym[s];
            if (of >= k->body && k->inst[of].op != QN_I_INDEX)
                return false;
        }
    return true;
}

/** Whether side n of `if` i may run in any case, and is worth no branch in a step of as many
 * vectors as there may be. */
static bool is_cheap(const qn_analysis *a, uint32_t i, int n)
{
    const qn_kernel *k = a->k;
    enum { MOST_VECTORS = 8 };
    const qn_inst *x = &k->inst[i];
    int64_t units = 0;
    for (uint32_t m = x->region[n]; m < x->region[n + 1]; m++) {
        if (!qn__is_pure(&k->inst[m]) && k->inst[m].op != QN_I_YIELD && !is_free_load(a, m))
            return false;
        units += k->inst[m].op == QN_I_YIELD ? 0 : qn__cost_of_instruction(a, m, false, 1);
    }
    return !qn__goes_around(k, i, n, MOST_VECTORS * units, MOST_VECTORS, a->f->target);
}

static bool is_number(const qn_kernel *k, uint32_t i, uint64_t number)
{
    return k->inst[i].op == QN_I_CONST && k->inst[i].imm == number;
}

/** Makes result r of `if` i one of two values; `operand` has room for three. */
static void select_result(qn_kernel *k, uint32_t i, uint32_t r)
{
    const qn_inst *x = &k->inst[i];
    qn_inst *to = &k->inst[r];
    uint32_t *arg = k->operand + k->n_operands, condition = qn__args(k, i)[0];
    uint32_t yes = qn__args(k, x->region[1] - 1)[to->imm],
             no = qn__args(k, x->region[2] - 1)[to->imm];
    bool is_and = to->type == QN_BOOL && is_number(k, no, 0),
         is_or = to->type == QN_BOOL && is_number(k, yes, 1);
    arg[0] = condition;
    arg[1] = is_and ? yes : is_or ? no : yes;
    arg[2] = no;
    to->op = (uint8_t)(QN_I_PURE + (is_and ? QN_OP_and : is_or ? QN_OP_or : QN_OP_select));
    to->n_args = is_and || is_or ? 2 : 3;
    to->args = k->n_operands;
    to->imm = 0;
    k->n_operands += to->n_args;
}

static void flatten(qn_kernel *k, uint32_t i)
{
    const qn_inst x = k->inst[i];
    for (uint32_t r = x.region[2];
         r < k->n_insts && k->inst[r].op == QN_I_RESULT && qn__args(k, r)[0] == i; r++)
        select_result(k, i, r);
    for (uint32_t m = i + 1; m < x.region[2]; m++) {
        k->inst[m].parent = x.parent;
        if (k->inst[m].op == QN_I_YIELD)
            qn__drop(k, m, m + 1);
    }
    qn__drop(k, i, i + 1);
}

/** More operands for results that are selected; false without memory. */
static bool make_room(qn_kernel *k)
{
    uint32_t n = k->n_operands;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        n += k->inst[i].op == QN_I_RESULT ? 3 : 0;
    uint32_t *operand = qn__zalloc((size_t)n + 1, sizeof *operand);
    if (!operand)
        return false;
    memcpy(operand, k->operand, k->n_operands * sizeof *operand);
    qn__free(k->operand);
    k->operand = operand;
    return true;
}

void qn__select_sides(qn_kernel *k, const qn_facts *f)
{
    qn_analysis a;
    uint32_t last = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        last = k->inst[i].op == QN_I_IF ? i : last;
    if (!last || !qn__analyse(k, f, -1, 0, &a))
        return;
    bool is_ready = make_room(k);
    for (uint32_t i = last; i >= k->body && is_ready; i--) /* what stands in a side first */
        if (k->inst[i].op == QN_I_IF && k->inst[i].region[1] < k->inst[i].region[2] &&
            !is_in_condition(k, i) && is_cheap(&a, i, 0) && is_cheap(&a, i, 1))
            flatten(k, i);
    qn__analysis_release(&a);
}
