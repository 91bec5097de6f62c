/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c: from the builder's instructions to those of a finished kernel: what is live, in
 * program order, renumbered. Live are stores, atomics, assertions, prints, dimensions, returns,
 * what they need, and the regions around them; in a kernel that is made of a finished one also the
 * loads of that one. A region instruction that is live keeps all its
 * carried values and results. Scalar parameters move to the front, where the text declares them; an
 * else branch without instructions and values goes, as the text does not show it.
 */
#include "ir/build/builder.h"
#include "ir/function.h"
#include "ir/location.h"

#include <string.h>

/** Whether instruction i stays although nothing needs its value. */
static bool has_effect(const qn_builder *b, uint32_t i)
{
    const qn_inst *x = &b->inst[i];
    return qn__effect(x) == QN_EFFECT_STORE || qn__effect(x) == QN_EFFECT_TELL ||
           b->note[i].is_kept ||
           (x->op == QN_I_CALL && qn__has_assertions(&b->function[x->imm]->body));
}

/** Requires: live is all zero. Ensures: live[i] is 1 for each instruction that stays. */
static void mark_live(const qn_builder *b, uint8_t *live)
{
    for (uint32_t i = 1; i < b->n_insts; i++) {
        const qn_inst *x = &b->inst[i];
        live[i] |= x->op == QN_I_DIM || x->op == QN_I_RETURN || has_effect(b, i);
        if (has_effect(b, i))
            for (uint32_t p = x->parent; p && !live[p]; p = b->inst[p].parent)
                live[p] = 1;
    }
    /* Backwards: all uses of a region's value or results come after it, so its parent's fate is
     * known by then. */
    for (uint32_t i = b->n_insts - 1; i > 0; i--) {
        const qn_inst *x = &b->inst[i];
        if (x->op == QN_I_YIELD || x->op == QN_I_INDEX || x->op == QN_I_CARRIED)
            live[i] = live[x->parent];
        for (uint32_t a = 0; live[i] && a < x->n_args; a++)
            live[qn__builder_args(b, i)[a]] = 1;
    }
    for (uint32_t i = 1; i < b->n_insts; i++)
        if (b->inst[i].op == QN_I_RESULT)
            live[i] = live[qn__builder_args(b, i)[0]];
}

/** Drops the yield of else branches in which nothing else is left. */
static void drop_empty_else(const qn_builder *b, uint8_t *live)
{
    for (uint32_t i = 1; i < b->n_insts; i++) {
        const qn_inst *x = &b->inst[i];
        if (!live[i] || x->op != QN_I_IF || x->region[1] == x->region[2])
            continue;
        uint32_t yield = x->region[2] - 1;
        bool is_empty = b->inst[yield].n_args == 0;
        for (uint32_t j = x->region[1]; j < yield; j++)
            is_empty = is_empty && !live[j];
        if (is_empty)
            live[yield] = 0;
    }
}

/** New numbers of live instructions; of others, that of the next live one. Returns one past the
 * last. */
static uint32_t number_live(const qn_builder *b, const uint8_t *live, uint32_t *number)
{
    uint32_t next = 1;
    for (uint32_t i = 1; i < b->n_insts; i++)
        if (b->inst[i].op == QN_I_PARAM) {
            number[i] = next;
            next += live[i];
        }
    for (uint32_t i = 1; i < b->n_insts; i++)
        if (b->inst[i].op != QN_I_PARAM) {
            number[i] = next;
            next += live[i];
        }
    number[b->n_insts] = next;
    return next;
}

static void copy_inst(const qn_builder *b, qn_kernel *k, uint32_t i, const uint32_t *number)
{
    qn_inst x = b->inst[i];
    const uint32_t *args = qn__builder_args(b, i);
    uint32_t first = k->n_operands;
    for (uint32_t a = 0; a < x.n_args; a++)
        k->operand[k->n_operands++] = number[args[a]];
    x.args = first;
    x.parent = x.parent ? number[x.parent] : 0;
    bool has_regions = qn__has_regions(&x);
    for (int r = 0; r < 3; r++)
        x.region[r] = has_regions ? number[x.region[r]] : number[i] + 1;
    k->inst[number[i]] = x;
    if (x.op == QN_I_DIM) {
        k->dim[x.imm] = number[i];
        k->body = number[i] + 1;
    }
}

/** Fills the access table and what the parameters are used for. */
static void collect_accesses(qn_kernel *k)
{
    for (uint32_t i = 1; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (!qn__is_access(x))
            continue;
        k->access[k->n_accesses] = (qn_access){.inst = i, .site = k->n_accesses};
        k->n_accesses++;
        qn_kernel_parameter *p = &k->param[x->imm];
        p->is_read |= x->op == QN_I_LOAD;
        p->is_written |= x->op != QN_I_LOAD;
        p->has_atomics |= x->op == QN_I_ATOMIC;
    }
}

/** The arrays of live lookups, numbered in the order of the first lookups. */
static bool collect_arrays(const qn_builder *b, qn_kernel *k)
{
    if (b->n_arrays == 0)
        return true;
    k->array = qn__zalloc(QN_MAX_ARRAYS, sizeof(qn_elements *));
    for (uint32_t i = 1; k->array && i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_LOOKUP)
            k->inst[i].imm =
                (uint64_t)qn__list_array(k->array, &k->n_arrays, b->array[k->inst[i].imm]);
    return k->array != NULL;
}

/** The messages of live assertions and prints, numbered in the order of the first ones. */
static bool collect_messages(const qn_builder *b, qn_kernel *k)
{
    if (b->n_messages == 0)
        return true;
    k->message = qn__zalloc(QN_MAX_MESSAGES, sizeof(char *));
    bool has_memory = k->message != NULL;
    for (uint32_t i = 1; has_memory && i < k->n_insts; i++) {
        qn_inst *x = &k->inst[i];
        if (qn__effect(x) != QN_EFFECT_TELL)
            continue;
        k->has_prints |= x->op == QN_I_PRINT;
        int number = qn__list_message(k->message, &k->n_messages, b->message[x->imm]);
        has_memory = number >= 0; /* the builder's list is as long */
        x->imm = (uint64_t)number;
    }
    return has_memory;
}

/** The functions of live calls, numbered in the order of the first calls, callees before callers;
 * and what their calls read. */
static bool collect_functions(const qn_builder *b, qn_kernel *k, qn_error *err)
{
    if (b->n_functions == 0)
        return true;
    k->function = qn__zalloc(QN_MAX_FUNCTIONS, sizeof(qn_function *));
    if (!k->function)
        return false;
    for (uint32_t i = 1; i < k->n_insts; i++) {
        qn_inst *x = &k->inst[i];
        if (x->op != QN_I_CALL)
            continue;
        const qn_function *f = b->function[x->imm];
        int number = qn__list_function(k->function, &k->n_functions, f, "qn_finish", err);
        x->imm = (uint64_t)number; /* the builder's list is as long: it does not fail */
        qn__mark_views(k, i);
        k->has_prints |= f->body.has_prints;
    }
    return true;
}

/** Moves parameters and name; the builder keeps neither. */
static void move_params(qn_builder *b, qn_kernel *k)
{
    k->name = b->name;
    b->name = NULL;
    if (b->n_params)
        memcpy(k->param, b->param, (size_t)b->n_params * sizeof *k->param);
    k->n_params = b->n_params;
    b->n_params = 0;
}

static uint32_t count_accesses(const qn_builder *b)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < b->n_insts; i++)
        n += qn__is_access(&b->inst[i]);
    return n;
}

qn_status qn__compact(qn_builder *b, qn_kernel *k, qn_error *err)
{
    uint8_t *live = qn__zalloc(b->n_insts, sizeof *live);
    uint32_t *number = qn__zalloc((size_t)b->n_insts + 1, sizeof *number);
    k->inst = qn__zalloc(b->n_insts, sizeof *k->inst);
    k->operand = qn__zalloc((size_t)b->n_operands + 1, sizeof *k->operand);
    k->param = qn__zalloc((size_t)b->n_params + 1, sizeof *k->param);
    k->access = qn__zalloc((size_t)count_accesses(b) + 1, sizeof *k->access);
    bool has_memory = live && number && k->inst && k->operand && k->param && k->access;
    if (has_memory) {
        move_params(b, k);
        k->flags = b->flags;
        k->n_dims = b->n_dims;
        k->body = 1;
        mark_live(b, live);
        drop_empty_else(b, live);
        k->n_insts = number_live(b, live, number);
        for (uint32_t i = 1; i < b->n_insts; i++)
            if (live[i])
                copy_inst(b, k, i, number);
        collect_accesses(k);
        has_memory = qn__locations_take(b, k, live, number) && collect_arrays(b, k) &&
                     collect_messages(b, k) && collect_functions(b, k, err);
    }
    qn__free(live);
    qn__free(number);
    return has_memory ? QN_OK : qn__fail(err, QN_ERR_MEMORY, "qn_finish: out of memory");
}
