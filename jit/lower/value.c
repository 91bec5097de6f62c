/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c: values of instructions, as scalars, as vectors and in fewer bits; pure ones are emitted
 * on demand. See lower/lower.h for parts and levels.
 */
#include "jit/lower/hooks.h"

#include <math.h>
#include <string.h>

int qn__canonical_part(const lower *g, uint32_t i, int p)
{
    const qn_value_info *v = &g->a.value[i];
    p = g->one_part ? g->one_part - 1 : p;
    int u = v->shape == QN_UNIFORM ? 0 : p / g->jam_max;
    int j = v->depends_jam ? p % g->jam_max : 0;
    uint32_t dims = j ? v->deps & g->jam_dims : 0;
    uint64_t same = dims ? UINT64_MAX : UINT64_C(1) << j;
    for (; dims; dims &= dims - 1)
        same &= g->jam_same[__builtin_ctz(dims)][j];
    return u * g->jam_max + __builtin_ctzll(same);
}

bool qn__is_uniform(const lower *g, uint32_t i)
{
    const qn_value_info *v = &g->a.value[i];
    bool same_lanes = v->shape == QN_UNIFORM || (g->width == 1 && g->unroll == 1);
    if (g->one_part && g->width == 1)
        return true;
    return same_lanes && (!v->depends_jam || g->jam == 1);
}

void qn__set(lower *g, uint32_t i, int p, LLVMValueRef v, int at)
{
    emitted *e = &g->value[i];
    e->part[qn__canonical_part(g, i, p)] = v;
    if (!e->is_set || at > e->level)
        e->level = at;
    e->is_set = true;
}

/** Whether instruction i is emitted as one vector operation. */
static bool is_vector(const lower *g, uint32_t i)
{
    return g->width > 1 && g->a.value[i].shape == QN_VARYING;
}

static LLVMValueRef param_value(lower *g, const qn_inst *x)
{
    const qn_param_fact *param = &g->f->param[x->imm];
    if (param->is_constant)
        return qn__const_bits(g, x->type, param->bits[x->sub]);
    LLVMValueRef bits = qn__slot(g, param->slot + x->sub, g->i64);
    if (x->type == QN_I64 || x->type == QN_U64)
        return bits;
    if (x->type == QN_F64)
        return LLVMBuildBitCast(g->b, bits, g->f64, "");
    if (x->type == QN_BOOL)
        return LLVMBuildICmp(g->b, LLVMIntNE, bits, qn__const_i64(g, 0), "");
    LLVMTypeRef narrow = qn__int_type(g, qn__dtype_width(x->type));
    LLVMValueRef cut = LLVMBuildTrunc(g->b, bits, narrow, "");
    return x->type == QN_F32 ? LLVMBuildBitCast(g->b, cut, g->f32, "") : cut;
}

/** Index of a dimension for part p: that of lane 0. */
static LLVMValueRef dim_value(lower *g, const qn_inst *x, int p)
{
    int d = (int)x->imm;
    int64_t ahead = qn__part_ahead(g, d, p) + g->ahead[d];
    return ahead ? LLVMBuildAdd(g->b, g->iv[d], qn__const_i64(g, ahead), "") : g->iv[d];
}

/** Whether value i is neg or abs of a float that the target may not do on the float, and only
 * computed with: then the sign is a part of the instructions that use it. */
static bool is_sign_of_operand(const lower *g, uint32_t i)
{
    int op = qn__pure(&g->k->inst[i]);
    return !g->f->target->keeps_signs && (op == QN_OP_neg || op == QN_OP_abs) &&
           !g->a.value[i].is_moved && qn__dtype_class(g->k->inst[i].type) == QN_CLASS_F;
}

static LLVMValueRef constant_value(lower *g, const qn_inst *x)
{
    LLVMValueRef v = qn__const_bits(g, x->type, x->imm);
    return g->hooks->constant ? g->hooks->constant(g, v, x->imm) : v;
}

/** A quotient or a remainder of i64 by a number: by a comparison or a difference where the divisor
 * is contained once at most. NULL: it is none. */
static LLVMValueRef divide_in_32(lower *g, uint32_t i, LLVMValueRef n, LLVMValueRef by)
{
    const bool is_quotient = qn__pure(&g->k->inst[i]) == QN_OP_div,
               is_signed = g->a.value[qn__args(g->k, i)[0]].is_signed;
    int64_t known;
    if (!qn__is_const(by, &known) || known < 1)
        return NULL;
    if (g->a.value[i].wraps_once)
        return is_quotient
                   ? LLVMBuildZExt(g->b, LLVMBuildICmp(g->b, LLVMIntUGE, n, by, ""), g->i32, "")
                   : qn__umin(g, n, LLVMBuildSub(g->b, n, by, ""));
    if (is_signed)
        return is_quotient ? LLVMBuildSDiv(g->b, n, by, "") : LLVMBuildSRem(g->b, n, by, "");
    return is_quotient ? LLVMBuildUDiv(g->b, n, by, "") : LLVMBuildURem(g->b, n, by, "");
}

/** Ops of i64 that take less in 32 bits: others are addresses, which are extended once. */
static bool is_short_op(int op)
{
    return op == QN_OP_div || op == QN_OP_rem || op == QN_OP_min || op == QN_OP_max ||
           op == QN_OP_select || op == QN_OP_eq || op == QN_OP_ne || op == QN_OP_lt ||
           op == QN_OP_le || op == QN_OP_gt || op == QN_OP_ge;
}

/** What is computed of i64, or converted from or to it, in the 32 bits that all of it fits, where
 * these are faster; NULL: nothing. */
static LLVMValueRef in_32(lower *g, uint32_t i, const LLVMValueRef *v)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    const bool is_cast = x->op == QN_I_CAST;
    const int type = g->k->inst[arg[x->n_args - 1]].type, other = is_cast ? x->type : QN_I64;
    bool fits =
        g->f->target->counts_in_32 && (type == QN_I64 || other == QN_I64) && !qn__is_half(type) &&
        !qn__is_half(other) &&
        (is_cast ? (qn__dtype_class(type) == QN_CLASS_F) != (qn__dtype_class(x->type) == QN_CLASS_F)
                 : is_short_op(qn__pure(x)) && type == QN_I64) &&
        (x->type != QN_I64 || g->a.value[i].least <= 32);
    LLVMValueRef in[3] = {v[0], v[1], v[2]}, result;
    for (int n = 0; n < x->n_args && fits; n++) {
        fits = !qn__is_vector(v[n]) &&
               (g->k->inst[arg[n]].type != QN_I64 || g->a.value[arg[n]].least <= 32);
        if (fits && g->k->inst[arg[n]].type == QN_I64)
            in[n] = LLVMBuildTrunc(g->b, v[n], g->i32, "");
    }
    if (!fits)
        return NULL;
    if (is_cast)
        result = qn__lower_cast(g, x->type == QN_I64 ? QN_I32 : x->type,
                                type == QN_I64 ? QN_I32 : type, in[0]);
    else if (qn__pure(x) == QN_OP_div || qn__pure(x) == QN_OP_rem)
        result = divide_in_32(g, i, in[0], in[1]);
    else
        result = qn__lower_op(g, qn__pure(x), QN_I32, in[0], in[1], in[2]);
    return result && x->type == QN_I64
               ? LLVMBuildIntCast2(g->b, result, g->i64, g->a.value[i].is_signed, "")
               : result;
}

LLVMValueRef qn__build_pure(lower *g, uint32_t i, int p, const LLVMValueRef *v)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    qn__debug_at(g, i);
    LLVMValueRef narrow = x->op == QN_I_CAST || x->op >= QN_I_PURE ? in_32(g, i, v) : NULL;
    if (narrow)
        return narrow;
    switch (x->op) {
    case QN_I_CONST:
        return constant_value(g, x);
    case QN_I_PARAM:
        return param_value(g, x);
    case QN_I_EXTENT:
        return qn__fact(g, &g->f->param[x->imm].dim[x->sub].extent);
    case QN_I_LOWER:
        return qn__fact(g, &g->f->param[x->imm].dim[x->sub].lower);
    case QN_I_DIM:
        return dim_value(g, x, p);
    case QN_I_CAST:
        return qn__lower_cast(g, x->type, g->k->inst[arg[0]].type, v[0]);
    case QN_I_LOOKUP:
        return qn__lower_lookup(g, i, v[0]);
    case QN_I_BITCAST:
        return qn__lower_bitcast(g, x->type, g->k->inst[arg[0]].type, v[0]);
    default:
        if (is_sign_of_operand(g, i))
            return qn__lower_sign(g, qn__pure(x), v[0]);
        return qn__lower_op(g, qn__pure(x), g->k->inst[arg[x->n_args - 1]].type, v[0], v[1], v[2]);
    }
}

/** Whether a constant of float type is at or beyond the end of an integer type's range to which
 * `op` limits. */
static bool is_beyond(const lower *g, uint32_t constant, int op, int to)
{
    const qn_inst *x = &g->k->inst[constant];
    float narrow;
    double value;
    if (x->op != QN_I_CONST)
        return false;
    uint32_t low_bits = (uint32_t)x->imm;
    memcpy(&narrow, &low_bits, sizeof narrow);
    memcpy(&value, &x->imm, sizeof value);
    value = x->type == QN_F32 ? (double)narrow : value;
    bool is_signed = qn__dtype_class(to) == QN_CLASS_S;
    double end = (double)(UINT64_C(1) << (qn__dtype_width(to) - 1));
    if (op == QN_OP_max)
        return value <= (is_signed ? -end : 0);
    return value >= (is_signed ? end - 1 : 2 * end - 1);
}

/** What a cast converts: where floats become integers, min and max that limit no further than the
 * integer itself are left out. (A NaN passes through them.) */
static uint32_t cast_operand(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t v = qn__args(g->k, i)[0];
    int from = g->k->inst[v].type;
    if (x->op != QN_I_CAST || (from != QN_F32 && from != QN_F64) ||
        qn__dtype_class(x->type) == QN_CLASS_F || x->type == QN_BOOL)
        return v;
    for (;;) {
        const qn_inst *y = &g->k->inst[v];
        int op = y->op >= QN_I_PURE ? qn__pure(y) : -1;
        if ((op != QN_OP_min && op != QN_OP_max) ||
            !is_beyond(g, qn__args(g->k, v)[1], op, x->type))
            return v;
        v = qn__args(g->k, v)[0];
    }
}

/** Whether lanes compute instruction i in the bits that jit/analysis/narrow.c found. */
static bool is_narrow(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    bool is_cast = x->op == QN_I_CAST && qn__is_integer(g->k->inst[qn__args(g->k, i)[0]].type);
    return is_vector(g, i) && (is_cast || g->a.value[i].at);
}

int qn__integer_of(int bits, bool is_signed)
{
    static const int types[2][4] = {{QN_U8, QN_U16, QN_U32, QN_U64},
                                    {QN_I8, QN_I16, QN_I32, QN_I64}};
    return types[is_signed][bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
}

/** The number whose whole part, as i64 and back, lanes of instruction i are; 0: they are not. */
static uint32_t whole_of(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t number = x->op == QN_I_CAST ? qn__args(g->k, i)[0] : 0;
    if (!number || !is_vector(g, i) || g->f->target->has_masks || qn__is_half(x->type) ||
        qn__dtype_class(x->type) != QN_CLASS_F || g->k->inst[number].op != QN_I_CAST ||
        g->k->inst[number].type != QN_I64 || g->a.value[number].at)
        return 0;
    const uint32_t from = qn__args(g->k, number)[0];
    return g->k->inst[from].type == x->type ? from : 0;
}

lane_operand qn__lane_operand(const lower *g, uint32_t i, int n)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t arg = is_narrow(g, i) ? qn__lane_args(&g->a, i)[n] : qn__args(g->k, i)[n];
    if (!is_narrow(g, i))
        return (lane_operand){n == 0 ? cast_operand(g, i) : arg, 0};
    if (!qn__is_integer(g->k->inst[arg].type))
        return (lane_operand){arg, 0};
    if (x->op != QN_I_CAST)
        return (lane_operand){arg, g->a.value[i].at};
    return (lane_operand){arg, g->a.value[qn__is_integer(x->type) ? i : arg].bits};
}

static LLVMValueRef build_narrow(lower *g, uint32_t i, const LLVMValueRef *v)
{
    const qn_inst *x = &g->k->inst[i];
    const qn_value_info *info = &g->a.value[i], *first = &g->a.value[qn__args(g->k, i)[0]];
    if (x->op == QN_I_CAST && info->at) /* of a float */
        return qn__lower_cast(g, qn__integer_of(info->at, true),
                              g->k->inst[qn__args(g->k, i)[0]].type, v[0]);
    if (x->op == QN_I_CAST)
        return qn__is_integer(x->type)
                   ? v[0]
                   : qn__lower_cast(g, x->type, qn__integer_of(first->bits, first->is_signed),
                                    v[0]);
    int type = qn__integer_of(info->at, info->at_signed);
    return info->sum ? qn__lower_saturating(g, qn__pure(&g->k->inst[info->sum]), type, v[0], v[1])
                     : qn__lower_op(g, qn__pure(x), type, v[0], v[1], v[2]);
}

LLVMValueRef qn__build_lanes(lower *g, uint32_t i, int p, const LLVMValueRef *v)
{
    return is_narrow(g, i) ? build_narrow(g, i, v) : qn__build_pure(g, i, p, v);
}

/** An operand of an instruction, as the instruction takes it. */
static LLVMValueRef operand_value(lower *g, uint32_t i, int p, lane_operand x)
{
    if (g->k->inst[i].op == QN_I_LOOKUP)
        return qn__lookup_index(g, i, p);
    if (!is_vector(g, i))
        return qn__scalar(g, x.from, p);
    return x.bits ? qn__vector_bits(g, x.from, p, x.bits) : qn__vector(g, x.from, p);
}

/** What a quotient of floats at level `around` is made of, outside of a loop; NULL: nothing. */
static LLVMValueRef inverse_of(lower *g, uint32_t i, int p, int around, const LLVMValueRef *v)
{
    const qn_inst *x = &g->k->inst[i], *of;
    if (!g->hooks->invert || x->op != QN_I_PURE + QN_OP_div ||
        qn__dtype_class(x->type) != QN_CLASS_F || qn__is_half(x->type))
        return NULL;
    of = &g->k->inst[qn__args(g->k, i)[0]];
    while (of->op == QN_I_CAST)
        of = &g->k->inst[g->k->operand[of->args]];
    if (of->op != QN_I_LOAD) /* what is computed is rarely zero */
        return NULL;
    place here;
    LLVMBool is_rounded;
    int exponent;
    if (LLVMIsAConstantFP(v[1]) &&
        fabs(frexp(LLVMConstRealGetDouble(v[1], &is_rounded), &exponent)) == 0.5)
        return NULL; /* a product is exact */
    int at = qn__seek(g, qn__level_of(g, qn__args(g->k, i)[1], p), &here);
    bool is_in_loop = false;
    for (int n = at + 1; n <= around; n++)
        is_in_loop |= g->level[n].index != NULL;
    LLVMValueRef inverse = is_in_loop ? g->hooks->invert(g, v[1]) : NULL;
    qn__unseek(g, &here);
    return inverse;
}

/** Emits part p of a pure instruction: operands first, then the operation at the lowest level where
 * they exist. */
static void emit_pure(lower *g, uint32_t i, int p)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t whole = whole_of(g, i);
    LLVMValueRef v[3] = {NULL, NULL, NULL};
    int wanted = x->op == QN_I_DIM ? qn__index_level(g, (int)x->imm) : 0;
    p = qn__canonical_part(g, i, p);
    for (int n = 0; x->op != QN_I_DIM && n < x->n_args && n < 3; n++) {
        lane_operand operand = whole ? (lane_operand){whole, 0} : qn__lane_operand(g, i, n);
        v[n] = operand_value(g, i, p, operand);
        int at = qn__level_of(g, operand.from, p);
        wanted = at > wanted ? at : wanted;
    }
    place here;
    int at = qn__seek(g, wanted, &here);
    LLVMValueRef inverse = inverse_of(g, i, p, at, v);
    LLVMValueRef result = inverse ? g->hooks->divide(g, v[0], v[1], inverse)
                          : whole ? qn__lower_whole(g, x->type, v[0])
                                  : qn__build_lanes(g, i, p, v);
    qn__unseek(g, &here);
    qn__set(g, i, p, result, LLVMIsConstant(result) ? wanted : at);
}

/** Bits of the lanes of value i. */
static int lane_bits(const lower *g, uint32_t i)
{
    bool is_vector = qn__is_integer(g->k->inst[i].type) && is_narrow(g, i);
    return is_vector ? g->a.value[i].bits : qn__dtype_width(g->k->inst[i].type);
}

/** What stands for a value where nothing is emitted. */
static LLVMValueRef nothing(const lower *g, uint32_t i)
{
    int type = g->k->inst[i].type;
    LLVMTypeRef t = qn__is_integer(type)
                        ? qn__int_type(g, lane_bits(g, i))
                        : qn__scalar_type(g, type);
    return LLVMConstNull(g->width > 1 && g->a.value[i].shape == QN_VARYING ? qn__vector_of(g, t)
                                                                           : t);
}

static LLVMValueRef value_of(lower *g, uint32_t i, int p)
{
    const qn_inst *x = &g->k->inst[i];
    int canonical = qn__canonical_part(g, i, p);
    LLVMValueRef *part = g->value[i].part;
    bool is_pure = qn__is_pure(x) || x->op == QN_I_DIM;
    if (!part[canonical] && is_pure && qn__spend(g, i))
        emit_pure(g, i, p);
    if (!part[canonical] && !g->is_over && x->op == QN_I_LOAD && g->loads_on_demand)
        qn__lower_load_part(g, i, canonical);
    if (!part[canonical]) { /* beyond the budget; or an effect that was not emitted: a defect of the
                               lowering */
        g->failed = true;
        return nothing(g, i);
    }
    return part[canonical];
}

LLVMValueRef qn__scalar(lower *g, uint32_t i, int p)
{
    return value_of(g, i, p);
}

LLVMValueRef qn__affine_value(lower *g, const qn_affine *f, int64_t constant, bool has_points)
{
    LLVMValueRef sum = qn__const_i64(g, constant);
    for (int n = 0; n < g->k->n_dims + 2; n++) {
        const int d = n - 2;
        const int64_t by = n < 2 ? f->sym[n] ? f->sym_coef[n] : 0 : f->coef[d];
        if (!by || (n >= 2 && !has_points && qn__is_reduction(g->k, d)))
            continue;
        LLVMValueRef v = n < 2 ? qn__scalar(g, f->sym[n], 0) : g->iv[d];
        v = by == 1 ? v : LLVMBuildMul(g->b, v, qn__const_i64(g, by), "");
        sum = LLVMBuildAdd(g->b, sum, v, "");
    }
    return sum;
}

int qn__level_of(lower *g, uint32_t i, int p)
{
    value_of(g, i, p);
    return g->value[i].level;
}

LLVMValueRef qn__in_bits(lower *g, LLVMValueRef v, bool is_signed, int bits)
{
    return LLVMBuildIntCast2(g->b, v, qn__as_many(qn__int_type(g, bits), v), is_signed, "");
}

/** v, an integer of `from` bits, in so many others; shared, at the level of what it belongs to. */
static LLVMValueRef resize(lower *g, LLVMValueRef v, int level_of_v, int from, bool is_signed,
                           int to)
{
    if (from == to)
        return v;
    sharing x;
    const memo_key key = {MEMO_RESIZE, v, qn__int(g->i1, is_signed), to};
    LLVMValueRef found = qn__memo_begin(g, &x, key, &level_of_v);
    return found ? found : qn__memo_end(g, &x, qn__in_bits(g, v, is_signed, to));
}

/** The first vector of a linear value in `bits` bits: from its first lane, without the lanes in 64
 * bits. */
static LLVMValueRef first_linear(lower *g, uint32_t i, int p, int bits)
{
    int64_t step = g->a.affine[i].coef[g->block->lane_dim];
    LLVMValueRef first = value_of(g, i, p), width = qn__int(g->i32, g->width * 64 + bits);
    const int level_of_first = g->value[i].level;
    int at = level_of_first;
    sharing x;
    LLVMValueRef found = qn__memo_begin(g, &x, (memo_key){MEMO_LINEAR, first, width, step}, &at);
    if (found)
        return found;
    LLVMValueRef all =
        qn__splat(g, resize(g, first, level_of_first, 64, true, bits), level_of_first);
    all = LLVMBuildAdd(g->b, all, qn__lanes(g, qn__int_type(g, bits), step), "");
    return qn__memo_end(g, &x, all);
}

/** A linear value in `bits` bits as a vector. That of a later vector of the step is the first one,
 * so much further: a vector that is made from a scalar takes longer than an addition. */
static LLVMValueRef linear_vector(lower *g, uint32_t i, int p, int bits)
{
    int64_t step = g->a.affine[i].coef[g->block->lane_dim];
    int64_t ahead = qn__wrap_mul(step, (int64_t)(p / g->jam_max) * g->width);
    if (ahead == 0)
        return first_linear(g, i, p, bits);
    LLVMValueRef first = linear_vector(g, i, p % g->jam_max, bits);
    LLVMValueRef by = qn__int(LLVMTypeOf(first), ahead), width = qn__int(g->i32, g->width);
    if (LLVMIsConstant(first))
        return LLVMConstAdd(first, by);
    sharing x;
    int at = g->value[i].level;
    LLVMValueRef found = qn__memo_begin(g, &x, (memo_key){MEMO_AHEAD, first, width, ahead}, &at);
    return found ? found : qn__memo_end(g, &x, LLVMBuildAdd(g->b, first, by, ""));
}

LLVMValueRef qn__vector_bits(lower *g, uint32_t i, int p, int bits)
{
    int shape = g->a.value[i].shape, natural = qn__dtype_width(g->k->inst[i].type);
    if (shape == QN_LINEAR)
        return linear_vector(g, i, p, bits);
    LLVMValueRef v = value_of(g, i, p);
    if (shape == QN_VARYING)
        return resize(g, v, g->value[i].level, lane_bits(g, i), g->a.value[i].is_signed, bits);
    v = resize(g, v, g->value[i].level, natural, g->a.value[i].is_signed, bits);
    return qn__splat(g, v, g->value[i].level);
}

LLVMValueRef qn__vector(lower *g, uint32_t i, int p)
{
    return g->width == 1 ? value_of(g, i, p)
                         : qn__vector_bits(g, i, p, qn__dtype_width(g->k->inst[i].type));
}
