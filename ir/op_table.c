/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_table.c: what the rows of ir/instructions.def, quern/ops.def and quern/reducers.def say, as
 * data: names, effects, rules, arities, dtype classes. The meaning column of ops is used in eval.c,
 * the lowering columns of both in jit/.
 */
#include "ir/ir.h"

#include <string.h>

/* ---------------------------------------------------------------- instructions */

const qn_inst_info qn__inst_info[QN_I_PURE] = {
#define QN_INST(NAME, word, effect, n_regions, sub, imm, ...)                                      \
    [QN_I_##NAME] = {word, QN_EFFECT_##effect, n_regions, sub, imm},
#include "ir/instructions.def"
#undef QN_INST
};
_Static_assert(QN_N_CORE_INSTS <= (int)QN_I_PURE, "core instructions end before table ops");

const char *qn__inst_name(int op)
{
    const char *name = NULL;
    if (op >= 0 && op < QN_I_PURE)
        name = qn__inst_info[op].word;
    else if (op > QN_I_PURE && op - QN_I_PURE < QN_N_TABLE_OPS)
        name = qn__op_info[op - QN_I_PURE].name;
    return name ? name : "?";
}

/* ---------------------------------------------------------------- ops and reducers */

/* The classes column joins letters; every joined word in use has its value here. */
enum {
    CLASSES_B = QN_CLASS_B,
    CLASSES_F = QN_CLASS_F,
    CLASSES_SU = QN_CLASS_S | QN_CLASS_U,
    CLASSES_SUF = CLASSES_SU | QN_CLASS_F,
    CLASSES_BSU = QN_CLASS_B | CLASSES_SU,
    CLASSES_BSUF = CLASSES_BSU | QN_CLASS_F
};

const qn_op_info qn__op_info[QN_N_TABLE_OPS] = {
#define QN_OP(ID, name, rule, arity, classes, s, u, f, lowering, doc)                              \
    [QN_OP_##name] = {#name, QN_RULE_##rule, arity, CLASSES_##classes},
#include "quern/ops.def"
#undef QN_OP
};

const qn_reducer_info qn__reducer_info[QN_N_COMBINES] = {
#define QN_REDUCER(NAME, number, text, is_reduction, is_atomic, classes, op, neutral, ...)         \
    [number] = {text, QN_OP_##op, CLASSES_##classes, QN_NEUTRAL_##neutral, is_reduction, is_atomic},
#include "quern/reducers.def"
#undef QN_REDUCER
};

int qn__combine_of_op(int op)
{
    for (int c = 0; op && c < QN_N_COMBINES; c++)
        if (op == qn__combine_op(c))
            return qn__is_atomic_combine(c) ? c : -1;
    return -1;
}

int qn_op_of_name(const char *name)
{
    if (!name)
        return 0;
    for (int op = 1; op < QN_N_TABLE_OPS; op++)
        if (strcmp(qn__op_info[op].name, name) == 0)
            return op;
    return 0;
}
