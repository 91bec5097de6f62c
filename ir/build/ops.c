/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c: the builder functions of the op table, cast and bitcast: type rules from the table,
 * constant folding by the reference meaning (eval.c), identities that are exact for every operand,
 * and contraction to fma.
 *
 * Folding looks only at the operands' own instructions, so building a finished kernel again changes
 * nothing.
 */
#include "ir/build/builder.h"

#include <stdio.h>

/* ---------------------------------------------------------------- identities */

/** Whether i is the integer or float constant `value` of its type. -0.0 is not 0. */
static bool is_number(const qn_builder *b, uint32_t i, int value)
{
    const qn_inst *x = &b->inst[i];
    return x->op == QN_I_CONST &&
           x->imm == qn__eval_cast(x->type, QN_I64, (uint64_t)(int64_t)value);
}

/** Whether i is the constant whose bits are all ones: -1, the largest unsigned number, true. */
static bool is_all_ones(const qn_builder *b, uint32_t i)
{
    const qn_inst *x = &b->inst[i];
    return x->op == QN_I_CONST &&
           x->imm == qn__canonical(x->type, x->type == QN_BOOL ? 1 : UINT64_MAX);
}

static bool is_op(const qn_builder *b, uint32_t i, int op)
{
    return b->inst[i].op == QN_I_PURE + op;
}

/** Identities of floating-point operands: exact for -0, infinities and NaN. Returns the value, or
 * 0. */
static uint32_t simplify_float(const qn_builder *b, int op, uint32_t x, uint32_t y)
{
    switch (op) {
    case QN_OP_mul:
        return is_number(b, y, 1) ? x : is_number(b, x, 1) ? y : 0;
    case QN_OP_div:
        return is_number(b, y, 1) ? x : 0;
    case QN_OP_sub:
        return is_number(b, y, 0) ? x : 0; /* x - +0.0 */
    case QN_OP_min:
    case QN_OP_max:
        return x == y ? x : 0;
    default:
        return 0;
    }
}

/** Identities of integers and bool whose result is an operand. Returns the value, or 0. */
static uint32_t simplify_integer(const qn_builder *b, int op, uint32_t x, uint32_t y)
{
    switch (op) {
    case QN_OP_add:
    case QN_OP_xor:
        return is_number(b, y, 0) ? x : is_number(b, x, 0) ? y : 0;
    case QN_OP_sub:
    case QN_OP_shl:
    case QN_OP_shr:
        return is_number(b, y, 0) ? x : 0;
    case QN_OP_mul:
        return is_number(b, y, 1) ? x : is_number(b, x, 1) ? y : 0;
    case QN_OP_div:
        return is_number(b, y, 1) ? x : 0;
    case QN_OP_and:
        return is_all_ones(b, y) || x == y ? x : is_all_ones(b, x) ? y : 0;
    case QN_OP_or:
        return is_number(b, y, 0) || x == y ? x : is_number(b, x, 0) ? y : 0;
    case QN_OP_min:
    case QN_OP_max:
        return x == y ? x : 0;
    default:
        return 0;
    }
}

/** The operand that an op of these operands always equals, or 0. */
static uint32_t simplify(const qn_builder *b, int op, const uint32_t *a)
{
    if (op == QN_OP_select) {
        if (qn__is_constant(b, a[0]))
            return b->inst[a[0]].imm ? a[1] : a[2];
        return a[1] == a[2] ? a[1] : 0;
    }
    if (op == QN_OP_not || op == QN_OP_neg)
        return is_op(b, a[0], op) ? qn__builder_args(b, a[0])[0] : 0;
    if (op == QN_OP_abs)
        return is_op(b, a[0], op) ? a[0] : 0;
    if (qn__op_info[op].arity != 2 || qn__op_info[op].rule != QN_RULE_SAME)
        return 0;
    bool is_float = qn__dtype_class(b->inst[a[0]].type) == QN_CLASS_F;
    return is_float ? simplify_float(b, op, a[0], a[1]) : simplify_integer(b, op, a[0], a[1]);
}

/** Whether an integer op of these operands is 0 whatever they are. */
static bool is_always_zero(const qn_builder *b, int op, const uint32_t *a)
{
    if (qn__op_info[op].arity != 2 || qn__dtype_class(b->inst[a[0]].type) == QN_CLASS_F)
        return false;
    switch (op) {
    case QN_OP_sub:
    case QN_OP_xor:
        return a[0] == a[1];
    case QN_OP_mul:
    case QN_OP_and:
        return is_number(b, a[0], 0) || is_number(b, a[1], 0);
    default:
        return false;
    }
}

/* ---------------------------------------------------------------- contraction */

/** Whether i is a product that may be contracted with the addend. An addend loaded through an
 * atomic view stays, so that a store of the sum can become an atomic. */
static bool can_contract(const qn_builder *b, uint32_t i, uint32_t addend)
{
    const qn_inst *c = &b->inst[addend];
    bool is_atomic = c->op == QN_I_LOAD && (b->param[c->imm].traits & QN_ATOMIC);
    return is_op(b, i, QN_OP_mul) && !is_atomic;
}

static uint32_t append_fma(qn_builder *b, const char *who, uint32_t product, bool is_negated,
                           uint32_t addend)
{
    uint32_t a[3] = {qn__builder_args(b, product)[0], qn__builder_args(b, product)[1], addend};
    if (is_negated)
        a[0] = qn__append_op(b, who, QN_OP_neg, a);
    return a[0] ? qn__append_op(b, who, QN_OP_fma, a) : 0;
}

/** a*b + c, a*b - c and c - a*b of floats; the left product if both are. Returns false if it does
 * not apply. */
static bool contract(qn_builder *b, const char *who, int op, const uint32_t *a, uint32_t *out)
{
    if (!(b->flags & QN_CONTRACT) || b->keeps_products || (op != QN_OP_add && op != QN_OP_sub) ||
        qn__dtype_class(b->inst[a[0]].type) != QN_CLASS_F)
        return false;
    if (can_contract(b, a[0], a[1])) {
        uint32_t addend = op == QN_OP_sub ? qn__append_op(b, who, QN_OP_neg, &a[1]) : a[1];
        *out = addend ? append_fma(b, who, a[0], false, addend) : 0;
        return true;
    }
    if (can_contract(b, a[1], a[0])) {
        *out = append_fma(b, who, a[1], op == QN_OP_sub, a[0]);
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- table ops */

uint32_t qn__append_op(qn_builder *b, const char *who, int op, const uint32_t *args)
{
    const qn_op_info *info = &qn__op_info[op];
    uint64_t bits[3] = {0};
    int n_consts = 0, type = b->inst[args[info->arity - 1]].type; /* of T */
    if (qn__is_half(type) && op != QN_OP_select)
        return qn__append_half_op(b, who, op, type, args);
    for (int i = 0; i < info->arity; i++)
        if (qn__is_constant(b, args[i])) {
            bits[i] = b->inst[args[i]].imm;
            n_consts++;
        }
    int result = info->rule == QN_RULE_COMPARE ? QN_BOOL : type;
    if (n_consts == info->arity)
        return qn__append_const(b, who, result, qn__eval_op(op, type, bits[0], bits[1], bits[2]));
    uint32_t same = simplify(b, op, args);
    if (same)
        return same;
    if (is_always_zero(b, op, args))
        return qn__append_const(b, who, result, 0);
    if (contract(b, who, op, args, &same))
        return same;
    qn_inst x = {.op = (uint8_t)(QN_I_PURE + op), .type = (uint8_t)result};
    return qn__append_numbered(b, who, x, info->arity, args);
}

uint32_t qn__op1(qn_builder *b, const char *who, int op, uint32_t x)
{
    return x ? qn__append_op(b, who, op, &x) : 0;
}

uint32_t qn__op2(qn_builder *b, const char *who, int op, uint32_t x, uint32_t y)
{
    const uint32_t args[2] = {x, y};
    return x && y ? qn__append_op(b, who, op, args) : 0;
}

uint32_t qn__choose(qn_builder *b, const char *who, uint32_t condition, uint32_t x, uint32_t y)
{
    const uint32_t args[3] = {condition, x, y};
    return condition && x && y ? qn__append_op(b, who, QN_OP_select, args) : 0;
}

bool qn__fail_operands(qn_builder *b, const char *who, int n, const uint32_t *a,
                       const char *problem)
{
    char text[3 * (ORIGIN_BYTES + 40)];
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%soperand %d%s is %s", i ? ", " : "",
                               i, qn__origin(b, a[i], (char[ORIGIN_BYTES]){0}),
                               qn_dtype_name(b->inst[a[i]].type));
    qn__builder_fail(b, QN_ERR_TYPE, "%s: %s: %s", who, text, problem);
    return false;
}

/** "type not taken, expected integers or floats" */
static const char *show_classes(int classes, char *out, size_t bytes)
{
    static const struct {
        int classes;
        const char *name;
    } words[] = {{QN_CLASS_B, "bool"},
                 {QN_CLASS_S | QN_CLASS_U, "integers"},
                 {QN_CLASS_S, "signed integers"},
                 {QN_CLASS_U, "unsigned integers"},
                 {QN_CLASS_F, "floats"},
                 {QN_CLASS_C, "complex numbers"}};
    size_t n = (size_t)snprintf(out, bytes, "type not taken, expected");
    const char *joint = " ";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((classes & words[i].classes) != words[i].classes)
            continue;
        classes &= ~words[i].classes;
        n += (size_t)snprintf(out + n, bytes - n, "%s%s", joint, words[i].name);
        joint = " or ";
    }
    return out;
}

/** The rule of the table: which operands must agree, and the dtypes taken. */
static bool check_types(qn_builder *b, const char *who, int op, const uint32_t *a)
{
    const qn_op_info *info = &qn__op_info[op];
    int first = info->rule == QN_RULE_SELECT ? 1 : 0;
    const char *problem = NULL;
    char words[120];
    if (first && b->inst[a[0]].type != QN_BOOL)
        problem = "the condition is not bool";
    for (int i = first + 1; i < info->arity; i++)
        if (b->inst[a[i]].type != b->inst[a[first]].type)
            problem = "types differ";
    if (!problem && !(qn__dtype_class(b->inst[a[first]].type) & info->classes))
        problem = show_classes(info->classes, words, sizeof words);
    return !problem || qn__fail_operands(b, who, info->arity, a, problem);
}

static qn_val build_op(qn_builder *b, const char *who, int op, const qn_val *args)
{
    static const char *const labels[] = {"operand 0", "operand 1", "operand 2"};
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    uint32_t a[3] = {0};
    for (int i = 0; i < qn__op_info[op].arity; i++) {
        if (!qn__use(b, who, labels[i], args[i], &a[i]))
            return (qn_val){0};
    }
    int arity = qn__op_info[op].arity, kind;
    if (qn__is_tuple(b, a[0]) || qn__is_tuple(b, a[arity - 1]))
        return qn__tuple_op(b, who, op, arity, a);
    if (!check_types(b, who, op, a) ||
        !qn__join_kinds(b, who, arity, args, &kind))
        return (qn_val){0};
    bool is_integer = qn__dtype_class(b->inst[a[0]].type) != QN_CLASS_F;
    if ((op == QN_OP_div || op == QN_OP_rem) && is_integer && is_number(b, a[1], 0))
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: operand 0%s: %s by constant 0", who,
                                qn__origin(b, a[0], (char[ORIGIN_BYTES]){0}),
                                qn_dtype_name(b->inst[a[0]].type));
    return qn__value(b, qn__append_op(b, who, op, a), kind);
}

#define ARRAY1                                                                                     \
    {                                                                                              \
        x                                                                                          \
    }
#define ARRAY2                                                                                     \
    {                                                                                              \
        x, y                                                                                       \
    }
#define ARRAY3                                                                                     \
    {                                                                                              \
        x, y, z                                                                                    \
    }
#define QN_OP(ID, name, rule, arity, ...)                                                          \
    qn_val qn_##name(QN_ARGS##arity(b))                                                            \
    {                                                                                              \
        const qn_val args[] = ARRAY##arity;                                                        \
        return build_op(b, "qn_" #name, QN_OP_##name, args);                                       \
    }
#include "quern/ops.def"
#undef QN_OP

qn_val qn_op(qn_builder *b, int op, int n, const qn_val *args)
{
    static const char *const names[QN_N_TABLE_OPS] = {
#define QN_OP(ID, name, ...) [QN_OP_##name] = "qn_" #name,
#include "quern/ops.def"
#undef QN_OP
    };
    if (!qn__builder_ready(b, "qn_op"))
        return (qn_val){0};
    if (op <= 0 || op >= QN_N_TABLE_OPS)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_op: no op has number %d", op);
    if (n != qn__op_info[op].arity)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_op: %s takes %d operands, not %d",
                                qn__op_info[op].name, qn__op_info[op].arity, n);
    if (!args)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_op: %s: operands are NULL",
                                qn__op_info[op].name);
    return build_op(b, names[op], op, args);
}

/* ---------------------------------------------------------------- casts */

qn_val qn_cast(qn_builder *b, int dtype, qn_val v)
{
    const char *who = "qn_cast";
    uint32_t x;
    if (!qn__builder_ready(b, who) || !qn__known_dtype(b, who, dtype) ||
        !qn__use(b, who, "operand", v, &x))
        return (qn_val){0};
    int from = b->inst[x].type;
    if (qn__is_tuple(b, x) || qn__dtype_class(dtype) == QN_CLASS_C)
        return qn__tuple_cast(b, who, dtype, x);
    if (dtype == QN_BOOL && qn__dtype_class(from) == QN_CLASS_F)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: operand%s: %s to bool: compare instead", who,
                                qn__origin(b, x, (char[ORIGIN_BYTES]){0}), qn_dtype_name(from));
    return qn__value(b, qn__append_cast(b, who, dtype, x), qn__kind(v));
}

qn_val qn_bitcast(qn_builder *b, int dtype, qn_val v)
{
    const char *who = "qn_bitcast";
    uint32_t x;
    if (!qn__builder_ready(b, who) || !qn__known_dtype(b, who, dtype) ||
        !qn__use(b, who, "operand", v, &x))
        return (qn_val){0};
    int from = b->inst[x].type;
    bool has_parts = qn__is_tuple(b, x) || qn__dtype_class(dtype) == QN_CLASS_C;
    if (has_parts || qn_dtype_bytes(from) != qn_dtype_bytes(dtype))
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: operand%s: %s to %s: %s", who,
                                qn__origin(b, x, (char[ORIGIN_BYTES]){0}), qn_dtype_name(from),
                                qn_dtype_name(dtype),
                                has_parts ? "only parts have bits" : "sizes differ");
    return qn__value(b, qn__append_bitcast(b, who, dtype, x), qn__kind(v));
}
