/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.c: how instructions get into a kernel under construction, and value numbering.
 *
 * An instruction is numbered if another one with the same op, type, sub, imm and operands stands in
 * a region that is still open, which then dominates it. Loads, and calls that are given views, must
 * also have seen one memory version. Operands of commutative integer ops are compared in either
 * order, and appended as given.
 */
#include "ir/build/builder.h"

#include <string.h>

/* ---------------------------------------------------------------- appending */

/** Makes room for one instruction with n_args operands. */
static bool reserve(qn_builder *b, uint32_t n_args)
{
    if (b->n_insts == b->inst_capacity) {
        uint32_t n = 2 * b->inst_capacity;
        qn_inst *inst = qn__realloc(b->inst, n * sizeof *inst);
        if (!inst)
            return false;
        b->inst = inst;
        qn_note *note = qn__realloc(b->note, n * sizeof *note);
        if (!note)
            return false;
        b->note = note;
        b->inst_capacity = n;
    }
    if (b->n_operands + n_args > b->operand_capacity) {
        uint32_t n = 2 * b->operand_capacity + n_args;
        uint32_t *operand = qn__realloc(b->operand, n * sizeof *operand);
        if (!operand)
            return false;
        b->operand = operand;
        b->operand_capacity = n;
    }
    return true;
}

static bool is_pure(int op)
{
    return op == QN_I_TUPLE || qn__is_pure(&(qn_inst){.op = (uint8_t)op});
}

/** Notes for uniformity and for the rule that dimensions come first. */
static void take_notes(qn_builder *b, uint32_t i)
{
    const qn_inst *x = &b->inst[i];
    bool has_atomic_load = x->op == QN_I_LOAD && (b->param[x->imm].traits & QN_ATOMIC);
    bool is_uniform =
        is_pure(x->op) && !(b->is_function && x->op == QN_I_PARAM); /* calls give what they like */
    bool uses_index = !is_pure(x->op) && x->op != QN_I_DIM;
    for (uint32_t a = 0; a < x->n_args; a++) {
        uint32_t arg = b->operand[x->args + a];
        is_uniform = is_uniform && b->note[arg].is_uniform;
        has_atomic_load = has_atomic_load || (is_pure(x->op) && b->note[arg].has_atomic_load);
        uses_index = uses_index || b->inst[arg].op == QN_I_DIM;
    }
    b->note[i] = (qn_note){.is_uniform = is_uniform,
                           .has_atomic_load = has_atomic_load,
                           .version = b->version,
                           .place = b->current};
    if (uses_index && !b->has_body) {
        b->has_body = true;
        b->body_op = qn__inst_name(x->op);
    }
}

uint32_t qn__append(qn_builder *b, const char *who, qn_inst x, uint32_t n_args,
                    const uint32_t *args)
{
    int limit = b->is_replay ? QN_MAX_REPLAY_OPS : QN_MAX_OPS;
    if (b->n_insts > (uint32_t)limit) {
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: more than %d instructions", who, limit);
        return 0;
    }
    if (!reserve(b, n_args)) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory after %u instructions", who,
                         (unsigned)b->n_insts);
        return 0;
    }
    uint32_t i = b->n_insts++;
    x.n_args = (uint8_t)n_args;
    x.args = b->n_operands;
    x.parent = b->depth ? b->frame[b->depth - 1].inst : 0;
    for (int r = 0; r < 3; r++)
        x.region[r] = i + 1;
    b->inst[i] = x;
    if (n_args)
        memcpy(b->operand + b->n_operands, args, n_args * sizeof *args);
    b->n_operands += n_args;
    take_notes(b, i);
    return i;
}

void qn__new_version(qn_builder *b)
{
    b->version = ++b->last_version;
    if (b->depth)
        b->frame[b->depth - 1].has_store = true;
}

/* ---------------------------------------------------------------- numbering */

static bool is_commutative(const qn_builder *b, const qn_inst *x, const uint32_t *args)
{
    if (x->op < QN_I_PURE || qn__dtype_class(b->inst[args[0]].type) == QN_CLASS_F)
        return false;
    switch (x->op - QN_I_PURE) {
    case QN_OP_add:
    case QN_OP_mul:
    case QN_OP_min:
    case QN_OP_max:
    case QN_OP_and:
    case QN_OP_or:
    case QN_OP_xor:
    case QN_OP_eq:
    case QN_OP_ne:
        return true;
    default:
        return false;
    }
}

static uint32_t hash_of(const qn_inst *x, uint32_t n_args, const uint32_t *args, bool swaps)
{
    uint64_t h = (uint64_t)x->op << 16 | (uint64_t)x->type << 8 | x->sub;
    h = (h ^ x->imm) * UINT64_C(0x9e3779b97f4a7c15);
    if (swaps) /* the same for both orders */
        return (uint32_t)((h + (uint64_t)args[0] * args[1] + args[0] + args[1]) *
                              UINT64_C(0xff51afd7ed558ccd) >>
                          40) %
               QN_N_BUCKETS;
    for (uint32_t a = 0; a < n_args; a++)
        h = (h ^ h >> 29 ^ args[a]) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(h >> 40) % QN_N_BUCKETS;
}

static bool is_equal(const qn_builder *b, uint32_t i, const qn_inst *x, uint32_t n_args,
                     const uint32_t *args, bool swaps)
{
    const qn_inst *y = &b->inst[i];
    if (y->op != x->op || y->type != x->type || y->sub != x->sub || y->imm != x->imm ||
        y->n_args != n_args)
        return false;
    bool reads = x->op == QN_I_LOAD ||
                 (x->op == QN_I_CALL && n_args && b->inst[args[n_args - 1]].op == QN_I_VIEW);
    if (reads && b->note[i].version != b->version)
        return false;
    const uint32_t *other = qn__builder_args(b, i);
    if (n_args == 0 || memcmp(other, args, n_args * sizeof *args) == 0)
        return true;
    return swaps && other[0] == args[1] && other[1] == args[0];
}

uint32_t qn__append_numbered(qn_builder *b, const char *who, qn_inst x, uint32_t n_args,
                             const uint32_t *args)
{
    bool swaps = is_commutative(b, &x, args);
    uint32_t bucket = hash_of(&x, n_args, args, swaps);
    for (uint32_t i = b->bucket[bucket]; i; i = b->note[i].next)
        if (is_equal(b, i, &x, n_args, args, swaps) && qn__is_open(b, i))
            return i;
    uint32_t i = qn__append(b, who, x, n_args, args);
    if (i) {
        b->note[i].next = b->bucket[bucket];
        b->bucket[bucket] = i;
    }
    return i;
}

uint32_t qn__append_const(qn_builder *b, const char *who, int dtype, uint64_t bits)
{
    qn_inst x = {.op = QN_I_CONST, .type = (uint8_t)dtype, .imm = bits};
    return qn__append_numbered(b, who, x, 0, NULL);
}

uint32_t qn__append_cast(qn_builder *b, const char *who, int dtype, uint32_t from)
{
    int type = b->inst[from].type;
    if (type == dtype)
        return from;
    if (qn__is_constant(b, from))
        return qn__append_const(b, who, dtype, qn__eval_cast(dtype, type, b->inst[from].imm));
    if (qn__is_half(dtype) ? type != QN_F32 : qn__is_half(type) && dtype != QN_F32)
        return qn__append_half_cast(b, who, dtype, from);
    const uint32_t *of = qn__builder_args(b, from);
    if (qn__is_half(dtype) && b->inst[from].op == QN_I_CAST && b->inst[*of].type == dtype)
        return *of; /* there and back */
    qn_inst x = {.op = QN_I_CAST, .type = (uint8_t)dtype};
    return qn__append_numbered(b, who, x, 1, &from);
}

uint32_t qn__append_bitcast(qn_builder *b, const char *who, int dtype, uint32_t from)
{
    int type = b->inst[from].type;
    if (type == dtype)
        return from;
    if (qn__is_constant(b, from))
        return qn__append_const(b, who, dtype, qn__eval_bitcast(dtype, type, b->inst[from].imm));
    qn_inst x = {.op = QN_I_BITCAST, .type = (uint8_t)dtype};
    return qn__append_numbered(b, who, x, 1, &from);
}
