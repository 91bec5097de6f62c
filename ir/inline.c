/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inline.c: a kernel without calls, and from that one without prints, for analysis and code
 * generation: each call is replaced by the body of its function, built anew with the arguments of
 * the call, so constant arguments fold into it. Calls nest as functions do, which only call
 * functions that were finished before them. Launches that print run the kernel between the two.
 */
#include "ir/function.h"
#include "ir/replay.h"

/** The results of the call i of r from the return of its body. */
static void give_results(qn_replay *r, uint32_t i, const qn_replay *body)
{
    qn_val results[QN_MAX_CARRIED];
    uint32_t last = body->k->n_insts - 1;
    qn__replay_take(body, last, 0, body->k->inst[last].n_args, results);
    for (uint32_t at = i + 1; at < r->k->n_insts && r->k->inst[at].op == QN_I_RESULT; at++)
        r->value[at] = results[r->k->inst[at].imm];
}

void qn__replay_body(qn_replay *r, uint32_t i)
{
    const qn_function *f = qn__callee(r->k, i);
    const qn_kernel *k = &f->body;
    if (r->b->error.status)
        return;
    qn_replay body = {.k = k,
                      .b = r->b,
                      .special = r->special,
                      .data = r->data,
                      .value = qn__zalloc(k->n_insts, sizeof *body.value)};
    if (!body.value) {
        qn__builder_fail(r->b, QN_ERR_MEMORY, "qn_finish: out of memory for a call of \"%.100s\"",
                         k->name);
        return;
    }
    qn_val values[QN_MAX_CARRIED], scalar[QN_MAX_PARAMS][2];
    qn__replay_take(r, i, 0, (uint32_t)f->n_values, values);
    for (int p = 0, value = 0, view = f->n_values; p < k->n_params; p++) {
        if (k->param[p].rank >= 0)
            body.param[p] = r->param[r->k->inst[qn__args(r->k, i)[view++]].imm];
        else
            for (int part = 0; part < qn__n_parts(k->param[p].dtype, NULL); part++)
                scalar[p][part] = values[value++];
    }
    for (uint32_t at = 1; at < k->n_insts; at++)
        if (k->inst[at].op == QN_I_PARAM)
            body.value[at] = scalar[k->inst[at].imm][k->inst[at].sub];
    qn__replay_region(&body, 1, k->n_insts - 1);
    give_results(r, i, &body);
    qn__free(body.value);
}

static bool inline_call(qn_replay *r, uint32_t i)
{
    int op = r->k->inst[i].op;
    if (op == QN_I_CALL)
        qn__replay_body(r, i);
    return op == QN_I_CALL || op == QN_I_VIEW;
}

/**
 * Marks what a kernel needs beside its prints: needs is [n_insts], all zero. A load whose value
 * nothing uses is one that a call performs.
 */
static void mark_needs(const qn_kernel *k, uint8_t *needs)
{
    enum { IS_NEEDED = 1, IS_USED = 2 };
    for (uint32_t i = 1; i < k->n_insts; i++)
        for (uint32_t a = 0; a < k->inst[i].n_args; a++)
            needs[qn__args(k, i)[a]] |= IS_USED;
    for (uint32_t i = k->n_insts - 1; i > 0; i--) {
        const qn_inst *x = &k->inst[i];
        bool is_root = qn__effect(x) == QN_EFFECT_STORE || x->op == QN_I_ASSERT ||
                       (x->op == QN_I_LOAD && needs[i] == 0);
        for (uint32_t p = i; is_root && p && !(needs[p] & IS_NEEDED); p = k->inst[p].parent)
            needs[p] |= IS_NEEDED;
    }
    for (uint32_t i = k->n_insts - 1; i > 0; i--) {
        const qn_inst *x = &k->inst[i];
        if (x->op == QN_I_YIELD || x->op == QN_I_CARRIED)
            needs[i] |= needs[x->parent] & IS_NEEDED;
        for (uint32_t a = 0; needs[i] & IS_NEEDED && a < x->n_args; a++)
            needs[qn__args(k, i)[a]] |= IS_NEEDED;
    }
    for (uint32_t i = 1; i < k->n_insts; i++)
        needs[i] &= IS_NEEDED;
}

/** Prints go, and with them the loads that only they need. */
static bool drop_print(qn_replay *r, uint32_t i)
{
    const uint8_t *needs = r->data;
    r->b->keeps_loads = needs[i];
    return r->k->inst[i].op == QN_I_PRINT;
}

qn_status qn__inline_calls(qn_kernel *k, qn_error *err)
{
    uint32_t n, n_regions;
    int height;
    qn__measure_calls(k, &n, &n_regions, &height);
    if (n > QN_MAX_REPLAY_OPS || n_regions > QN_MAX_REPLAY_REGIONS)
        return QN_OK;
    uint8_t *needs = qn__zalloc(k->n_insts, 1);
    qn_replay r = {
        .k = k, .special = k->n_functions ? inline_call : drop_print, .data = needs};
    qn_status status = QN_ERR_MEMORY;
    if (needs && qn__replay_start(&r, k->name, k->flags)) {
        mark_needs(k, needs);
        qn__replay_declare(&r, NULL);
        qn__replay_region(&r, 1, k->n_insts);
        status = qn_finish(r.b, &k->inlined, err);
    } else {
        qn__fail(err, status, "qn_finish: out of memory for the calls");
    }
    qn__replay_end(&r);
    qn__free(needs);
    return status;
}
