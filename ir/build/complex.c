/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complex.c: arithmetic on complex numbers, and what of it other tuples share, expanded into ops on
 * the parts while a kernel is built.
 */
#include "ir/build/builder.h"

#include <string.h>

static bool is_complex(const qn_builder *b, uint32_t i)
{
    return qn__dtype_class(b->inst[i].type) == QN_CLASS_C;
}

static uint32_t append_complex(qn_builder *b, const char *who, int dtype, uint32_t re, uint32_t im)
{
    const uint32_t parts[2] = {re, im};
    return qn__append_value(b, who, dtype, 0, parts);
}

/* Instructions are appended in statements of their own: C does not say in which order arguments of
 * a call are evaluated, and the text of a kernel must be one for all compilers. */

/** (a + bi)(c + di) */
static uint32_t append_product(qn_builder *b, const char *who, int dtype, const uint32_t *x,
                               const uint32_t *y)
{
    uint32_t bd = qn__op2(b, who, QN_OP_mul, x[1], y[1]),
             ac = qn__op2(b, who, QN_OP_mul, x[0], y[0]);
    uint32_t re = qn__op2(b, who, QN_OP_sub, ac, bd);
    uint32_t bc = qn__op2(b, who, QN_OP_mul, x[1], y[0]),
             ad = qn__op2(b, who, QN_OP_mul, x[0], y[1]);
    uint32_t im = qn__op2(b, who, QN_OP_add, ad, bc);
    return append_complex(b, who, dtype, re, im);
}

/** The quotient by the larger part of the divisor (Smith, 1962), which neither overflows nor loses
 * small parts early. */
static uint32_t append_quotient(qn_builder *b, const char *who, int dtype, const uint32_t *x,
                                const uint32_t *y)
{
    uint32_t d = qn__op1(b, who, QN_OP_abs, y[1]), c = qn__op1(b, who, QN_OP_abs, y[0]);
    uint32_t swaps = qn__op2(b, who, QN_OP_lt, c, d);
    uint32_t large = qn__choose(b, who, swaps, y[1], y[0]),
             small = qn__choose(b, who, swaps, y[0], y[1]);
    uint32_t first = qn__choose(b, who, swaps, x[1], x[0]),
             second = qn__choose(b, who, swaps, x[0], x[1]);
    uint32_t ratio = qn__op2(b, who, QN_OP_div, small, large);
    uint32_t divisor = qn__op2(b, who, QN_OP_add, large, qn__op2(b, who, QN_OP_mul, small, ratio));
    uint32_t re = qn__op2(b, who, QN_OP_add, first, qn__op2(b, who, QN_OP_mul, second, ratio));
    uint32_t im = qn__op2(b, who, QN_OP_sub, second, qn__op2(b, who, QN_OP_mul, first, ratio));
    im = qn__choose(b, who, swaps, qn__op1(b, who, QN_OP_neg, im), im);
    im = qn__op2(b, who, QN_OP_div, im, divisor);
    re = qn__op2(b, who, QN_OP_div, re, divisor);
    return append_complex(b, who, dtype, re, im);
}

/** eq and ne of tuples: of all parts. */
static uint32_t append_comparison(qn_builder *b, const char *who, int op, int n, const uint32_t *x,
                                  const uint32_t *y)
{
    uint32_t all = 0;
    for (int p = 0; p < n; p++) {
        uint32_t part = qn__op2(b, who, op, x[p], y[p]);
        all = p ? qn__op2(b, who, op == QN_OP_eq ? QN_OP_and : QN_OP_or, all, part) : part;
    }
    return all;
}

/** sqrt and abs, which are functions of kernel text for complex numbers (ir/math/complex.qn). */
static qn_val call_math(qn_builder *b, const char *who, int op, uint32_t x)
{
    const qn_val z = qn__value(b, x, 0);
    return qn__math(b, who, qn__op_info[op].name, 1, &z);
}

static qn_val fail_op(qn_builder *b, const char *who, int n, const uint32_t *a, const char *problem)
{
    qn__fail_operands(b, who, n, a, problem);
    return (qn_val){0};
}

qn_val qn__tuple_op(qn_builder *b, const char *who, int op, int n, const uint32_t *a)
{
    uint32_t x[MOST_TUPLE_PARTS], y[MOST_TUPLE_PARTS] = {0};
    int first = op == QN_OP_select ? 1 : 0, dtype = b->inst[a[first]].type;
    bool is_same = b->inst[a[first]].op == QN_I_TUPLE;
    for (int i = first + 1; i < n; i++)
        is_same = is_same && b->inst[a[i]].op == QN_I_TUPLE && b->inst[a[i]].type == dtype &&
                  b->inst[a[i]].imm == b->inst[a[first]].imm;
    if (!is_same || (first && b->inst[a[0]].type != QN_BOOL))
        return fail_op(b, who, n, a, "types differ");
    int n_parts = qn__copy_parts(b, a[first], x), record = (int)b->inst[a[first]].imm;
    if (n > first + 1)
        qn__copy_parts(b, a[first + 1], y);
    if (op == QN_OP_select) {
        for (int p = 0; p < n_parts; p++)
            x[p] = qn__choose(b, who, a[0], x[p], y[p]);
        return qn__value(b, qn__append_value(b, who, dtype, record, x), 0);
    }
    if (!is_complex(b, a[first]))
        return fail_op(b, who, n, a, "type not taken");
    switch (op) {
    case QN_OP_add:
    case QN_OP_sub:
        x[1] = qn__op2(b, who, op, x[1], y[1]);
        x[0] = qn__op2(b, who, op, x[0], y[0]);
        return qn__value(b, append_complex(b, who, dtype, x[0], x[1]), 0);
    case QN_OP_mul:
        return qn__value(b, append_product(b, who, dtype, x, y), 0);
    case QN_OP_div:
        return qn__value(b, append_quotient(b, who, dtype, x, y), 0);
    case QN_OP_neg:
        x[1] = qn__op1(b, who, op, x[1]);
        x[0] = qn__op1(b, who, op, x[0]);
        return qn__value(b, append_complex(b, who, dtype, x[0], x[1]), 0);
    case QN_OP_sqrt:
    case QN_OP_abs:
        return call_math(b, who, op, a[first]);
    case QN_OP_eq:
    case QN_OP_ne:
        return qn__value(b, append_comparison(b, who, op, n_parts, x, y), 0);
    default:
        return fail_op(b, who, n, a, "type not taken");
    }
}

qn_val qn__tuple_cast(qn_builder *b, const char *who, int dtype, uint32_t x)
{
    uint32_t parts[2] = {x, 0};
    int part_dtype = qn__part_dtype(dtype, NULL, 0);
    if (qn__dtype_class(dtype) != QN_CLASS_C || b->inst[x].type == QN_RECORD)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s to %s: take a part", who,
                                qn_dtype_name(b->inst[x].type), qn_dtype_name(dtype));
    if (is_complex(b, x))
        qn__copy_parts(b, x, parts);
    else
        parts[1] = qn__append_const(b, who, part_dtype, 0);
    for (int p = 0; p < 2; p++)
        parts[p] = parts[p] ? qn__append_cast(b, who, part_dtype, parts[p]) : 0;
    return qn__value(b, qn__append_value(b, who, dtype, 0, parts), 0);
}

qn_val qn__complex_const(qn_builder *b, const char *who, int dtype, uint64_t re, uint64_t im)
{
    int part_dtype = qn__part_dtype(dtype, NULL, 0);
    uint32_t second = qn__append_const(b, who, part_dtype, im),
             first = qn__append_const(b, who, part_dtype, re);
    return qn__value(b, append_complex(b, who, dtype, first, second), 0);
}

qn_val qn_const_complex(qn_builder *b, int dtype, double re, double im)
{
    const char *who = "qn_const_complex";
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    if (qn__dtype_class(dtype) != QN_CLASS_C)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s is no complex type", who,
                                qn_dtype_name(dtype));
    int part = qn__part_dtype(dtype, NULL, 0);
    const double value[2] = {re, im};
    uint64_t bits[2];
    memcpy(bits, value, sizeof bits);
    return qn__complex_const(b, who, dtype, qn__eval_cast(part, QN_F64, bits[0]),
                             qn__eval_cast(part, QN_F64, bits[1]));
}

qn_val qn_complex(qn_builder *b, qn_val re, qn_val im)
{
    const char *who = "qn_complex";
    uint32_t parts[2];
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "real part", re, &parts[0]) ||
        !qn__use(b, who, "imaginary part", im, &parts[1]))
        return (qn_val){0};
    int dtype = b->inst[parts[0]].type;
    if (dtype != b->inst[parts[1]].type || (dtype != QN_F32 && dtype != QN_F64))
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s, %s: expected two f32 or two f64", who,
                                qn_dtype_name(dtype), qn_dtype_name(b->inst[parts[1]].type));
    return qn__value(b, qn__append_value(b, who, dtype == QN_F32 ? QN_C64 : QN_C128, 0, parts), 0);
}

/** The parts of a complex operand. */
static bool use_complex(qn_builder *b, const char *who, qn_val z, uint32_t *parts, int *dtype)
{
    uint32_t i;
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "operand", z, &i))
        return false;
    *dtype = b->inst[i].type;
    if (!is_complex(b, i))
        return qn__fail_operands(b, who, 1, &i, "type not taken, expected c64 or c128");
    qn__copy_parts(b, i, parts);
    return true;
}

static qn_val complex_part(qn_builder *b, const char *who, qn_val z, int part)
{
    uint32_t x[2];
    int dtype;
    return use_complex(b, who, z, x, &dtype) ? qn__value(b, x[part], 0) : (qn_val){0};
}

qn_val qn_real(qn_builder *b, qn_val z)
{
    return complex_part(b, "qn_real", z, 0);
}

qn_val qn_imag(qn_builder *b, qn_val z)
{
    return complex_part(b, "qn_imag", z, 1);
}

qn_val qn_conj(qn_builder *b, qn_val z)
{
    const char *who = "qn_conj";
    uint32_t x[2];
    int dtype;
    if (!use_complex(b, who, z, x, &dtype))
        return (qn_val){0};
    return qn__value(b, append_complex(b, who, dtype, x[0], qn__op1(b, who, QN_OP_neg, x[1])), 0);
}

qn_val qn_complex_arg(qn_builder *b, qn_val z)
{
    return qn__math(b, "qn_complex_arg", "arg", 1, &z);
}

qn_val qn_complex_polar(qn_builder *b, qn_val length, qn_val angle)
{
    const qn_val args[2] = {length, angle};
    return qn__math(b, "qn_complex_polar", "polar", 2, args);
}

/** With m the larger and n the smaller magnitude of the parts: m sqrt(1 + (n/m)^2), and m where
 * that is 0 or infinite. */
qn_val qn_magnitude(qn_builder *b, qn_val z)
{
    const char *who = "qn_magnitude";
    uint32_t x[2];
    int dtype;
    if (!use_complex(b, who, z, x, &dtype))
        return (qn_val){0};
    int part = qn__part_dtype(dtype, NULL, 0);
    uint32_t one = qn__append_const(b, who, part, qn__eval_cast(part, QN_U8, 1));
    uint32_t re = qn__op1(b, who, QN_OP_abs, x[0]), im = qn__op1(b, who, QN_OP_abs, x[1]);
    uint32_t is_less = qn__op2(b, who, QN_OP_lt, re, im);
    uint32_t large = qn__choose(b, who, is_less, im, re),
             small = qn__choose(b, who, is_less, re, im);
    uint32_t ratio = qn__op2(b, who, QN_OP_div, small, large);
    uint32_t root =
        qn__op1(b, who, QN_OP_sqrt,
                qn__op2(b, who, QN_OP_add, one, qn__op2(b, who, QN_OP_mul, ratio, ratio)));
    uint32_t zero = qn__append_const(b, who, part, 0);
    uint32_t infinity = qn__append_const(b, who, part, qn__float_format(part).infinity);
    uint32_t is_infinite = qn__op2(b, who, QN_OP_eq, large, infinity),
             is_zero = qn__op2(b, who, QN_OP_eq, large, zero);
    uint32_t is_plain = qn__op2(b, who, QN_OP_or, is_zero, is_infinite);
    return qn__value(
        b, qn__choose(b, who, is_plain, large, qn__op2(b, who, QN_OP_mul, large, root)), 0);
}
