/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sides.c: what ranges tell of a kernel that is written anew (writer.h): values that are numbers,
 * and both sides of an `if` as straight code.
 */
#include "jit/analysis/writer.h"

/* ---------------------------------------------------------------- values */

/** What an op on truth values is where one of them is known. */
static qn_form truth_of(const qn_writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    const uint32_t *arg = qn__args(w->k, i);
    const int op = x->op >= QN_I_PURE ? qn__pure(x) : -1;
    int64_t is_true;
    if (op == QN_OP_select && qn__is_written_number(w, w->map[arg[0]], &is_true))
        return (qn_form){.kind = is_true ? QN_FORM_SECOND : QN_FORM_THIRD};
    if (op == QN_OP_not && x->type == QN_BOOL && qn__is_written_number(w, w->map[arg[0]], &is_true))
        return (qn_form){QN_FORM_NUMBER, !is_true};
    for (int n = 0; n < 2 && x->type == QN_BOOL && (op == QN_OP_and || op == QN_OP_or); n++)
        if (qn__is_written_number(w, w->map[arg[n]], &is_true))
            return is_true == (op == QN_OP_or)
                       ? (qn_form){QN_FORM_NUMBER, is_true}
                       : (qn_form){.kind = n ? QN_FORM_FIRST : QN_FORM_SECOND};
    return (qn_form){.kind = QN_FORM_OWN};
}

bool qn__write_known(qn_writer *w, uint32_t i)
{
    const int type = w->k->inst[i].type;
    qn_form form = qn__form_of(w->k, w->range, i);
    if (form.kind == QN_FORM_OWN)
        form = truth_of(w, i);
    if (form.kind == QN_FORM_OWN)
        return false;
    w->map[i] = form.kind == QN_FORM_NUMBER ? qn__write_number(w, type, form.number)
                                            : w->map[qn__args(w->k, i)[form.kind - QN_FORM_FIRST]];
    if (form.kind == QN_FORM_FIRST && form.number)
        w->map[i] = qn__write_op(w, QN_OP_sub, type, 2,
                                 (uint32_t[]){w->map[i], qn__write_number(w, type, form.number)});
    return true;
}

/* ---------------------------------------------------------------- sides of branches */

bool qn__write_both(qn_writer *w, uint32_t i)
{
    const qn_kernel *k = w->k;
    const qn_inst *x = &k->inst[i];
    if (!w->loops->has_sides || !qn__may_compute_both(k, w->f, i))
        return false;
    const uint32_t outer = w->guard, condition = w->map[qn__args(k, i)[0]];
    for (int side = 0; side < 2; side++) {
        uint32_t holds = condition;
        if (side)
            holds = qn__write_op(w, QN_OP_not, QN_BOOL, 1, &condition);
        w->guard =
            outer ? qn__write_op(w, QN_OP_and, QN_BOOL, 2, (uint32_t[]){outer, holds}) : holds;
        qn__write_body(w, x->region[side], x->region[side + 1] - 1, 0);
    }
    w->guard = outer;
    for (uint32_t r = x->region[2];
         r < k->n_insts && k->inst[r].op == QN_I_RESULT && qn__args(k, r)[0] == i; r++) {
        uint32_t value[3] = {condition};
        for (int side = 0; side < 2; side++)
            value[side + 1] = w->map[qn__args(k, x->region[side + 1] - 1)[k->inst[r].imm]];
        w->map[r] = qn__write_op(w, QN_OP_select, k->inst[r].type, 3, value);
    }
    w->map[i] = 0;
    return true;
}

/* ---------------------------------------------------------------- guarded loads */

/** Whether load i is one of several iterations: it moves no more memory where one of them needs
 * none. */
static bool is_for_several(const qn_writer *w, uint32_t i)
{
    for (int d = 0; d < w->k->n_dims; d++)
        if (qn__is_parallel(w->k, d) && qn__trips(w->f, d) != 1 && !(w->a->value[i].deps >> d & 1))
            return true;
    return false;
}

void qn__guard_indices(qn_writer *w, uint32_t i, uint32_t *args)
{
    const qn_inst *x = &w->k->inst[i];
    const int n = qn__n_indices(w->k, i);
    bool has_one = is_for_several(w, i);
    for (int r = 0; r < n; r++) {
        const qn_dim_fact *dim = &w->f->param[x->imm].dim[r];
        const qn_interval at = w->range[qn__args(w->k, i)[r]];
        const bool is_inside = at.low >= dim->lower.value &&
                               at.high < dim->lower.value + qn__fact_interval(&dim->extent).low;
        if (is_inside && (has_one || r + 1 < n))
            continue;
        has_one = true;
        args[r] = qn__write_op(
            w, QN_OP_select, QN_I64, 3,
            (uint32_t[]){w->guard, args[r], qn__write_number(w, QN_I64, dim->lower.value)});
    }
}
