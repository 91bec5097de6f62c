/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_tables.c: the part of the verifier that looks at a kernel without its instructions: sizes
 * and limits, flags, parameters, and what the parameters say about their uses.
 */
#include "ir/function.h"
#include "ir/verify.h"

static qn_status check_params(const qn_kernel *k, qn_error *err)
{
    for (int i = 0; i < k->n_params; i++) {
        const qn_kernel_parameter *p = &k->param[i];
        bool is_view = p->rank >= 0;
        bool is_record = p->dtype == QN_RECORD;
        if (is_record != (p->record != NULL) || (is_record && !is_view))
            return qn__fail(err, QN_ERR_VERIFY,
                            "qn_finish: parameter %d: dtype and record disagree", i);
        if (!p->name || !(is_record || qn__dtype_class(p->dtype)) || p->rank < -1 ||
            p->rank > QN_MAX_RANK || (p->traits & ~QN_PARAM_TRAITS) ||
            (!is_view && (p->traits || p->is_read || p->is_written)))
            return qn__fail(err, QN_ERR_VERIFY,
                            "qn_finish: parameter %d: wrong name, dtype, rank or traits", i);
    }
    return QN_OK;
}

qn_status qn__verify_tables(const qn_kernel *k, qn_error *err)
{
    const uint32_t orders = QN_ORDER_STRIPED | QN_ORDER_INDEXED | QN_ORDER_ORDERED;
    uint32_t order = k->flags & orders;
    if (!k->name || !k->inst || !k->operand || !k->param || !k->access)
        return qn__fail(err, QN_ERR_VERIFY, "qn_finish: a table is missing");
    if ((k->flags & ~(orders | QN_CONTRACT)) || (order & (order - 1)))
        return qn__fail(err, QN_ERR_VERIFY, "qn_finish: flags 0x%x", (unsigned)k->flags);
    if (k->n_params < 0 || k->n_params > QN_MAX_PARAMS || k->n_dims < 0 ||
        k->n_dims > QN_MAX_RANK || k->n_insts < 1 ||
        k->n_insts > (uint32_t)(k->is_replay ? QN_MAX_REPLAY_OPS : QN_MAX_OPS) + 1 || k->body < 1 ||
        k->body > k->n_insts || k->n_functions < 0 || k->n_functions > QN_MAX_FUNCTIONS ||
        (k->n_functions && !k->function) || k->n_arrays < 0 || k->n_arrays > QN_MAX_ARRAYS ||
        (k->n_arrays && !k->array) || k->n_messages < 0 || k->n_messages > QN_MAX_MESSAGES ||
        (k->n_messages && !k->message))
        return qn__fail(err, QN_ERR_VERIFY,
                        "qn_finish: %d parameters, %d dimensions, %u instructions", k->n_params,
                        k->n_dims, (unsigned)k->n_insts);
    return check_params(k, err);
}

/** Whether a call hands view parameter p to a function that reads it. The calls were checked. */
static bool calls_read(const qn_kernel *k, int p)
{
    for (uint32_t i = 1; k->n_functions && i < k->n_insts; i++) {
        if (k->inst[i].op != QN_I_CALL)
            continue;
        const qn_function *f = qn__callee(k, i);
        const uint32_t *view = qn__args(k, i) + f->n_values;
        for (int q = 0; q < f->body.n_params; q++)
            if (f->body.param[q].rank >= 0 && k->inst[*view++].imm == (uint64_t)p &&
                f->body.param[q].is_read)
                return true;
    }
    return false;
}

qn_status qn__verify_uses(const qn_kernel *k, qn_error *err)
{
    for (int i = 0; i < k->n_params; i++) {
        bool is_read = false, is_written = false, has_atomics = false;
        for (uint32_t n = 0; n < k->n_accesses; n++) {
            const qn_inst *x = &k->inst[k->access[n].inst];
            if (x->imm != (uint64_t)i)
                continue;
            is_read |= x->op == QN_I_LOAD;
            is_written |= x->op != QN_I_LOAD;
            has_atomics |= x->op == QN_I_ATOMIC;
        }
        is_read |= calls_read(k, i);
        const qn_kernel_parameter *p = &k->param[i];
        if (p->is_read != is_read || p->is_written != is_written || p->has_atomics != has_atomics)
            return qn__fail(err, QN_ERR_VERIFY,
                            "qn_finish: parameter %d: its uses are not what it says", i);
    }
    return QN_OK;
}
