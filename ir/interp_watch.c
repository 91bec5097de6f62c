/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interp_watch.c: what the interpreter tells a watch (ir/watch.h) of accesses and results, and how
 * a find becomes the fault of the launch.
 */
#include "ir/interp.h"

#include <string.h>

void qn__look_for_nan(qn_interp *s, uint32_t i, int dtype, uint64_t bits, int n, const int *dtypes,
                      const uint64_t *operands)
{
    qn_nan_op *found = &s->watch->nan;
    if (!qn__watch_result(s->watch, s->k, i, dtype, bits, n, dtypes, operands))
        return;
    for (uint32_t r = s->given ? 0 : s->k->inst[i].parent; r; r = s->k->inst[r].parent) {
        int n_dims = s->k->inst[r].op == QN_I_REDUCE ? s->k->inst[r].n_args : 0;
        memmove(found->point + n_dims, found->point, (size_t)found->n_point * sizeof *found->point);
        for (int d = 0; d < n_dims; d++)
            found->point[d] = (int64_t)s->value[qn__args(s->k, r)[d]];
        found->n_point += n_dims;
    }
    qn__interp_record(s, QN_ERR_NAN, QN_SITE_UNKNOWN, 0, NULL);
}

void qn__look_at_result(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const uint32_t *args = qn__args(s->k, i);
    int dtypes[3] = {0};
    uint64_t operands[3] = {0};
    for (int j = 0; j < x->n_args; j++) {
        dtypes[j] = s->k->inst[args[j]].type;
        operands[j] = s->value[args[j]];
    }
    qn__look_for_nan(s, i, x->type, s->value[i], x->n_args, dtypes, operands);
}

void qn__look_at_access(qn_interp *s, uint32_t i, const qn_place *p, const int64_t *index,
                        const void *at)
{
    int op = s->k->inst[i].op;
    bool is_atomic = p->is_atomic || op == QN_I_ATOMIC;
    const qn_touch t = {.iteration = s->iteration,
                        .at = (uintptr_t)at,
                        .bytes = qn__access_bytes(s->k, i),
                        .kind = (op == QN_I_LOAD ? QN_TOUCH_LOAD : QN_TOUCH_STORE) +
                                (is_atomic ? QN_TOUCH_ATOMIC_LOAD : 0),
                        .access = s->given ? -1 - p->argument : (int32_t)i};
    if (qn__watch_touch(s->watch, p->argument, &t))
        qn__interp_record(s, QN_ERR_RACE,
                          s->given ? qn__site_in_function(p->argument) : qn__site_of(s->k, i),
                          p->rank, index);
}

void qn__look_at_call(qn_interp *s, uint32_t i, const qn_kernel *body, const uint32_t *returned,
                      int n_results, const uint64_t *results)
{
    const uint32_t *args = qn__args(s->k, i);
    int dtypes[QN_MAX_CARRIED], n = qn__callee(s->k, i)->n_values;
    uint64_t operands[QN_MAX_CARRIED];
    for (int j = 0; j < n; j++) {
        dtypes[j] = s->k->inst[args[j]].type;
        operands[j] = s->value[args[j]];
    }
    for (int r = 0; r < n_results; r++)
        qn__look_for_nan(s, i, body->inst[returned[r]].type, results[r], n, dtypes, operands);
}
