/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c: a run of the interpreter that looks for mistakes: it finds the first op that makes a NaN
 * of operands that are none, and words what was found for people. A mathematical function counts as
 * one op, as what it computes on the way is its own affair. What keeps or moves bits (a load, a
 * bitcast, a select) makes no NaN.
 */
#include "ir/function.h"
#include "ir/location.h"
#include "ir/watch.h"

bool qn__is_nan(int dtype, uint64_t bits)
{
    if (qn__dtype_class(dtype) != QN_CLASS_F)
        return false;
    uint64_t magnitude = bits & ((UINT64_C(1) << (qn__dtype_width(dtype) - 1)) - 1);
    return magnitude > qn__float_format(dtype).infinity;
}

bool qn__watch_result(qn_watch *w, const qn_kernel *in, uint32_t i, int dtype, uint64_t bits, int n,
                      const int *dtypes, const uint64_t *operands)
{
    if (!qn__watch_seeks_nan(w) || !qn__is_nan(dtype, bits))
        return false;
    for (int j = 0; j < n; j++)
        if (qn__is_nan(dtypes[j], operands[j]))
            return false;
    w->nan = (qn_nan_op){.in = in, .inst = i, .n = n < QN_NAN_OPERANDS ? n : QN_NAN_OPERANDS};
    for (int j = 0; j < w->nan.n; j++) {
        w->nan.dtype[j] = dtypes[j];
        w->nan.bits[j] = operands[j];
    }
    return true;
}

/* ---------------------------------------------------------------- reports */

static const char *name_of_touch(int kind, const qn_kernel *k, int32_t access)
{
    if (access >= 0 && k->inst[access].op == QN_I_ATOMIC)
        return "atomic";
    static const char *const name[QN_N_TOUCHES] = {"load", "store", "atomic load", "atomic store"};
    return name[kind];
}

static void add_touch(qn_text *t, const qn_touch *touch, const qn_kernel *k,
                      const qn_domain *domain)
{
    qn__text_add(t, "%s by ", name_of_touch(touch->kind, k, touch->access));
    qn__text_iteration(t, k, touch->iteration, domain, "");
}

static void add_race(qn_text *t, const qn_watch *w, const qn_kernel *k, const qn_fault *f,
                     const qn_arg *args, const qn_domain *domain)
{
    qn__text_add(t, "race: ");
    add_touch(t, &w->first, k, domain);
    qn__text_add(t, ", ");
    add_touch(t, &w->second, k, domain);
    qn__text_add(t, "; element ");
    qn__text_element(t, k, f, args);
}

static const char *name_of_op(const qn_kernel *k, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    return x->op >= QN_I_PURE ? qn__op_info[qn__pure(x)].name : qn__combine_name(x->sub);
}

static void add_nan(qn_text *t, const qn_nan_op *x, const qn_kernel *k)
{
    const qn_inst *inst = &x->in->inst[x->inst];
    qn__text_add(t, "not a number: ");
    if (inst->op == QN_I_CALL) {
        const qn_function *f = qn__callee(x->in, x->inst);
        qn__text_add(t, "%.*s of ", f->keyword_bytes, f->body.name);
    } else {
        const char *core = inst->op == QN_I_REDUCE   ? "reduce "
                           : inst->op == QN_I_ATOMIC ? "atomic "
                                                     : "";
        qn__text_add(t, "%s%s of ", core, name_of_op(x->in, x->inst));
    }
    if (inst->op == QN_I_REDUCE)
        qn__text_add(t, "numbers");
    for (int j = 0; j < x->n; j++) {
        qn__text_add(t, "%s", j ? ", " : "");
        qn__text_value(t, x->dtype[j], x->bits[j]);
    }
    if (x->in != k)
        qn__text_add(t, " in function \"%.60s\"", x->in->name);
    for (int d = 0; d < x->n_point; d++)
        qn__text_add(t, "%s%lld", d ? "," : "; point (", (long long)x->point[d]);
    qn__text_add(t, "%s", x->n_point ? ")" : "");
}

/** The error of a launch whose record says QN_ERR_RACE or QN_ERR_NAN. */
static qn_status report(const qn_watch *w, const qn_kernel *k, const qn_fault *f, int n,
                        const qn_arg *args, qn_error *err)
{
    qn_text t = {0};
    qn_domain domain;
    qn__domain_of_args(k, n, args, &domain);
    int line = 0;
    if (f->status == QN_ERR_RACE) {
        add_race(&t, w, k, f, args, &domain);
        line = w->second.access < 0 ? 0 : qn__text_location(&t, k, (uint32_t)w->second.access);
    } else {
        add_nan(&t, &w->nan, k);
        qn__text_iteration(&t, k, f->iteration, &domain, "; ");
        line = qn__text_location(&t, w->nan.in, w->nan.inst);
    }
    qn__fail_line(err, (qn_status)f->status, line, "qn_launch: kernel \"%.100s\": %s", k->name,
                  t.data && !t.failed ? t.data : "a race or a NaN (no memory for details)");
    qn__text_release(&t);
    return (qn_status)f->status;
}

qn_status qn__interpret_debugged(const qn_kernel *k, int n, const qn_arg *args,
                                 const qn_domain *domain, int checks, int debug,
                                 const qn_print_buffer *printed, qn_fault *fault, qn_error *err)
{
    qn_watch w;
    if (!debug)
        return qn__interpret_watched(k, n, args, domain, checks, NULL, printed, fault, err);
    qn__watch_open(&w, debug, k, n, args, domain);
    qn_status status = qn__interpret_watched(k, n, args, domain, checks, &w, printed, fault, err);
    if (status == QN_OK && (fault->status == QN_ERR_RACE || fault->status == QN_ERR_NAN))
        status = report(&w, k, fault, n, args, err);
    qn__watch_close(&w);
    return status;
}
