/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c: kinds of work of a kernel's instructions, and the table of cost.h applied to vectors. */
#include "jit/schedule/cost.h"

int64_t qn__registers(int bits, int lanes, const qn_target *target)
{
    int register_bits = 8 * target->vector_bytes;
    return lanes <= 1 ? 1 : ((int64_t)lanes * bits + register_bits - 1) / register_bits;
}

/** Of a row: the number of the column times registers, or lanes. */
static int64_t in_all(const int8_t *row, int bits, int lanes, const qn_target *target)
{
    if (lanes <= 1)
        return row[0];
    int64_t n = row[bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 3 : 4];
    return n < 0 ? -n * lanes : n * qn__registers(bits, lanes, target);
}

int64_t qn__work_units(int work, int bits, int lanes, const qn_target *target)
{
    if (work < 0 || work >= QN_N_WORKS)
        return 0;
    return in_all(qn__cost_of(work, target)->units, bits, lanes, target);
}

int64_t qn__work_slots(int work, int bits, int lanes, const qn_target *target)
{
    if (work < 0 || work >= QN_N_WORKS)
        return 0;
    return in_all(qn__cost_of(work, target)->slots, bits, lanes, target);
}

int64_t qn__least_units_to_skip(int vectors, const qn_target *target)
{
    int64_t test = qn__work_units(QN_WORK_BLOCK, 64, 1, target) + vectors;
    return 2 * test + qn__work_units(QN_WORK_WRONG_GUESS, 64, 1, target);
}

/* ---------------------------------------------------------------- instructions */

/** Of an operation of the table. is_constant: its last operand is one; is_power: a power of two. */
static int work_of_op(int op, bool is_integer, bool is_constant, bool is_power)
{
    switch (op) {
    case QN_OP_add:
    case QN_OP_sub:
    case QN_OP_fma:
        return is_integer ? QN_WORK_SIMPLE : QN_WORK_FLOAT;
    case QN_OP_mul:
        return is_integer ? QN_WORK_MULTIPLY : QN_WORK_FLOAT;
    case QN_OP_div:
    case QN_OP_rem:
        return !is_integer   ? QN_WORK_FLOAT_DIVIDE
               : is_power    ? QN_WORK_SHIFT
               : is_constant ? QN_WORK_DIVIDE_CONSTANT
                             : QN_WORK_DIVIDE;
    case QN_OP_shl:
    case QN_OP_shr:
        return is_constant ? QN_WORK_SIMPLE : QN_WORK_SHIFT; /* of bytes: and a mask */
    case QN_OP_min:
    case QN_OP_max:
        return is_integer ? QN_WORK_EXTREMUM : QN_WORK_FLOAT_EXTREMUM;
    case QN_OP_abs:
        return is_integer ? QN_WORK_EXTREMUM : QN_WORK_SIMPLE;
    case QN_OP_select:
        return QN_WORK_SELECT;
    case QN_OP_clz:
    case QN_OP_ctz:
    case QN_OP_popcount:
        return QN_WORK_COUNT_BITS;
    case QN_OP_sqrt:
        return QN_WORK_ROOT;
    case QN_OP_floor:
    case QN_OP_ceil:
    case QN_OP_round:
    case QN_OP_trunc:
        return QN_WORK_ROUND;
    default:
        return QN_WORK_SIMPLE;
    }
}

int qn__work_of_combine(const qn_kernel *k, uint32_t reduce)
{
    const qn_inst *x = &k->inst[reduce];
    bool is_integer = qn__is_integer(x->type) || x->type == QN_BOOL;
    return work_of_op(qn__combine_op(x->sub), is_integer, false, false);
}

int qn__kind_of_work(const qn_analysis *a, uint32_t i, int *bits)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[i];
    *bits = 8;
    if (x->op == QN_I_CONST || !qn__is_pure(x) || x->n_args == 0 || a->value[i].is_absorbed)
        return -1;
    int first = k->inst[qn__args(k, i)[0]].type;
    int type = k->inst[qn__args(k, i)[x->n_args - 1]].type;
    int from = qn__dtype_width(type), to = qn__dtype_width(x->type);
    /* in fewer bits than those of its type? */
    *bits = a->value[i].at ? a->value[i].at : from > to ? from : to;
    if (x->op >= QN_I_PURE) {
        const qn_inst *last = &k->inst[qn__args(k, i)[x->n_args - 1]];
        const bool is_constant = last->op == QN_I_CONST, /* division by a power of two is shifts */
            is_power = is_constant && last->imm && (last->imm & (last->imm - 1)) == 0;
        const int work = work_of_op(qn__pure(x), qn__is_integer(type) || type == QN_BOOL,
                                    is_constant, is_power);
        if (work == QN_WORK_MULTIPLY && *bits == 64 && a->value[qn__args(k, i)[0]].bits <= 32 &&
            a->value[qn__args(k, i)[1]].bits <= 32)
            return QN_WORK_SIMPLE; /* one instruction multiplies lower halves */
        return work;
    }
    if (x->op == QN_I_LOOKUP)
        return QN_WORK_GATHER;
    if (x->op == QN_I_BITCAST)
        return QN_WORK_SIMPLE;
    if (!qn__is_integer(x->type) || !qn__is_integer(first))
        return QN_WORK_CONVERT;
    int had = a->value[qn__args(k, i)[0]].bits, has = a->value[i].bits;
    *bits = had > has ? had : has;
    return had == has ? -1 : QN_WORK_RESIZE;
}
