/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c: the table's ops as LLVM instructions, on scalars and on vectors alike. Everything is
 * total: no poison, no flags, no fast-math; what the instruction set leaves undefined is selected
 * away first.
 */
#include "jit/lower/hooks.h"

#include <math.h>
#include <string.h>

/** A constant of v's type (all lanes) with these canonical bits. */
static LLVMValueRef like(const lower *g, LLVMValueRef v, int dtype, uint64_t bits)
{
    return qn__constant_like(LLVMTypeOf(v), qn__const_bits(g, dtype, bits));
}

/** The LLVM type of `dtype` with as many lanes as v has. */
static LLVMTypeRef type_like(const lower *g, int dtype, LLVMValueRef v)
{
    return qn__as_many(qn__scalar_type(g, dtype), v);
}

/** The intrinsic `name`, overloaded by the type of v. */
static LLVMValueRef intrinsic(lower *g, const char *name, LLVMValueRef *v, int n)
{
    LLVMTypeRef t = LLVMTypeOf(v[0]);
    return qn__call(g, name, &t, 1, v, n);
}

static bool is_false(LLVMValueRef v)
{
    return LLVMIsConstant(v) && LLVMIsNull(v);
}

static LLVMValueRef either(lower *g, LLVMValueRef a, LLVMValueRef b)
{
    return is_false(a) ? b : is_false(b) ? a : LLVMBuildOr(g->b, a, b, "");
}

static LLVMValueRef choose(lower *g, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no)
{
    return is_false(condition) ? no : LLVMBuildSelect(g->b, condition, yes, no, "");
}

static int class_of(int type)
{
    return qn__dtype_class(type);
}

static uint64_t lowest(int type)
{
    return qn__canonical(type, UINT64_C(1) << (qn__dtype_width(type) - 1));
}

/** A divisor that cannot trap: 1 where y is 0, or x / y is MIN / -1. *by_zero tells where y is 0.
 */
static LLVMValueRef safe_divisor(lower *g, int type, LLVMValueRef x, LLVMValueRef y,
                                 LLVMValueRef *by_zero)
{
    *by_zero = LLVMBuildICmp(g->b, LLVMIntEQ, y, like(g, y, type, 0), "");
    LLVMValueRef bad = *by_zero;
    if (class_of(type) == QN_CLASS_S) {
        LLVMValueRef minus = LLVMBuildICmp(g->b, LLVMIntEQ, y, like(g, y, type, UINT64_MAX), "");
        if (!is_false(minus)) {
            LLVMValueRef low =
                LLVMBuildICmp(g->b, LLVMIntEQ, x, like(g, x, type, lowest(type)), "");
            bad = either(g, bad, LLVMBuildAnd(g->b, minus, low, ""));
        }
    }
    return choose(g, bad, like(g, y, type, 1), y);
}

/** Quotients of vectors by floats that are wide enough: a / d is no nearer to the next integer than
 * 1 / d, which is more than any rounding moves it. No instruction divides vectors of integers. */
static LLVMValueRef divide_as_floats(lower *g, int type, LLVMValueRef a, LLVMValueRef d)
{
    bool is_wide = qn__dtype_width(type) == 32, is_signed = class_of(type) == QN_CLASS_S;
    LLVMTypeRef floats = type_like(g, is_wide ? QN_F64 : QN_F32, a);
    LLVMTypeRef words = type_like(g, QN_I32, a), old = LLVMTypeOf(a);
    LLVMOpcode widen = is_signed ? LLVMSExt : LLVMZExt;
    LLVMValueRef v[2] = {a, d};
    for (int n = 0; n < 2; n++) {
        v[n] = is_wide ? v[n] : LLVMBuildCast(g->b, widen, v[n], words, "");
        v[n] =
            LLVMBuildCast(g->b, is_wide && !is_signed ? LLVMUIToFP : LLVMSIToFP, v[n], floats, "");
    }
    LLVMValueRef q = LLVMBuildFDiv(g->b, v[0], v[1], "");
    q = LLVMBuildCast(g->b, is_wide && !is_signed ? LLVMFPToUI : LLVMFPToSI, q, words, "");
    return is_wide ? q : LLVMBuildTrunc(g->b, q, old, "");
}

static bool is_divided_as_floats(int type, LLVMValueRef d)
{
    return qn__is_vector(d) && !LLVMIsConstant(d) && qn__dtype_width(type) <= 32;
}

static LLVMValueRef lower_div(lower *g, int type, LLVMValueRef *v)
{
    if (class_of(type) == QN_CLASS_F)
        return LLVMBuildFDiv(g->b, v[0], v[1], "");
    LLVMValueRef a = v[0], by_zero, d = safe_divisor(g, type, a, v[1], &by_zero);
    LLVMValueRef q = is_divided_as_floats(type, d)  ? divide_as_floats(g, type, a, d)
                     : class_of(type) == QN_CLASS_S ? LLVMBuildSDiv(g->b, a, d, "")
                                                    : LLVMBuildUDiv(g->b, a, d, "");
    return choose(g, by_zero, like(g, a, type, 0), q);
}

static LLVMValueRef lower_rem(lower *g, int type, LLVMValueRef *v)
{
    LLVMValueRef a = v[0], by_zero, d = safe_divisor(g, type, a, v[1], &by_zero), r;
    if (is_divided_as_floats(type, d))
        r = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, divide_as_floats(g, type, a, d), d, ""), "");
    else
        r = class_of(type) == QN_CLASS_S ? LLVMBuildSRem(g->b, a, d, "")
                                         : LLVMBuildURem(g->b, a, d, "");
    return choose(g, by_zero, a, r);
}

/** neg, abs and copysign of some targets need not keep the bits of a NaN: they are integer
 * instructions, behind which LLVM does not find the operation on floats again. */
static LLVMValueRef change_sign(lower *g, int type, LLVMValueRef a, bool is_abs)
{
    int bits_type = qn__dtype_width(type) == 64 ? QN_U64 : QN_U32;
    LLVMTypeRef old = LLVMTypeOf(a);
    LLVMValueRef v = LLVMBuildBitCast(g->b, a, type_like(g, bits_type, a), "");
    uint64_t sign = lowest(bits_type);
    v = is_abs ? LLVMBuildAnd(g->b, v, like(g, v, bits_type, sign - 1), "")
               : LLVMBuildXor(g->b, v, like(g, v, bits_type, sign), "");
    return LLVMBuildBitCast(g->b, qn__opaque(g, v), old, "");
}

LLVMValueRef qn__lower_sign(lower *g, int op, LLVMValueRef v)
{
    return op == QN_OP_neg ? LLVMBuildFNeg(g->b, v, "") : intrinsic(g, "llvm.fabs", &v, 1);
}

static LLVMValueRef lower_neg(lower *g, int type, LLVMValueRef *v)
{
    bool is_fused = g->f->target->fuses_signs && !qn__is_vector(v[0]);
    if (class_of(type) == QN_CLASS_F && (is_fused || !g->f->target->keeps_signs))
        return change_sign(g, type, v[0], false);
    return class_of(type) == QN_CLASS_F ? LLVMBuildFNeg(g->b, v[0], "")
                                        : LLVMBuildNeg(g->b, v[0], "");
}

static LLVMValueRef lower_copysign(lower *g, int type, LLVMValueRef *v)
{
    if (g->f->target->keeps_signs)
        return intrinsic(g, "llvm.copysign", v, 2);
    int bits_type = qn__dtype_width(type) == 64 ? QN_U64 : QN_U32;
    LLVMValueRef a = v[0], b = v[1];
    LLVMTypeRef old = LLVMTypeOf(a), bits = type_like(g, bits_type, a);
    uint64_t sign = lowest(bits_type);
    a = LLVMBuildBitCast(g->b, a, bits, "");
    a = LLVMBuildAnd(g->b, a, like(g, a, bits_type, sign - 1), "");
    b = LLVMBuildAnd(g->b, LLVMBuildBitCast(g->b, b, bits, ""), like(g, a, bits_type, sign), "");
    return LLVMBuildBitCast(g->b, qn__opaque(g, LLVMBuildOr(g->b, a, b, "")), old, "");
}

/** An intrinsic with a flag behind its operand, which is not set. */
static LLVMValueRef unflagged(lower *g, const char *name, LLVMValueRef a)
{
    LLVMValueRef v[2] = {a, LLVMConstInt(g->i1, 0, false)};
    return intrinsic(g, name, v, 2);
}

static LLVMValueRef lower_abs(lower *g, int type, LLVMValueRef *v)
{
    if (class_of(type) == QN_CLASS_U)
        return v[0];
    if (class_of(type) == QN_CLASS_S)
        return unflagged(g, "llvm.abs", v[0]);
    return g->f->target->keeps_signs ? intrinsic(g, "llvm.fabs", v, 1)
                                     : change_sign(g, type, v[0], true);
}

/** Whether v is a constant, no NaN, and not 0 where that is asked for, in all lanes. */
static bool is_number(LLVMValueRef v, bool may_be_zero)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    bool is_vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    for (unsigned l = 0; l < (is_vector ? LLVMGetVectorSize(t) : 1); l++) {
        LLVMValueRef x = is_vector ? LLVMIsConstant(v) ? LLVMGetAggregateElement(v, l) : NULL : v;
        LLVMBool loses;
        double number = x && LLVMIsAConstantFP(x) ? LLVMConstRealGetDouble(x, &loses) : NAN;
        if (number != number || (number == 0 && !may_be_zero))
            return false;
    }
    return true;
}

/** A NaN where a is one, else v. */
static LLVMValueRef keep_nan(lower *g, LLVMValueRef a, LLVMValueRef v)
{
    LLVMValueRef is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, a, a, "");
    bool may = g->hooks->keep_nan && !is_false(is_nan);
    LLVMValueRef kept = may ? g->hooks->keep_nan(g, a, v) : NULL;
    return kept ? kept : choose(g, is_nan, a, v);
}

/** a < b (or >) ? a : b is the machine's min (max), which loses a NaN in the first operand. */
static LLVMValueRef extremum(lower *g, int type, LLVMValueRef *v, bool is_max)
{
    LLVMValueRef a = v[0], b = v[1];
    if (class_of(type) == QN_CLASS_S)
        return intrinsic(g, is_max ? "llvm.smax" : "llvm.smin", v, 2);
    if (class_of(type) == QN_CLASS_U)
        return intrinsic(g, is_max ? "llvm.umax" : "llvm.umin", v, 2);
    if (is_number(b, false)) /* the machine's own with the operands exchanged: a where it is NaN or
                                both are equal */
        return LLVMBuildSelect(
            g->b, LLVMBuildFCmp(g->b, is_max ? LLVMRealOGT : LLVMRealOLT, b, a, ""), b, a, "");
    if (is_number(
            b, true)) /* one comparison: a where it is NaN or before b; where both are equal, b */
        return LLVMBuildSelect(
            g->b, LLVMBuildFCmp(g->b, is_max ? LLVMRealUGT : LLVMRealULT, a, b, ""), a, b, "");
    LLVMValueRef before = LLVMBuildFCmp(g->b, is_max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    return keep_nan(g, a, LLVMBuildSelect(g->b, before, a, b, ""));
}

static LLVMValueRef lower_min(lower *g, int type, LLVMValueRef *v)
{
    return extremum(g, type, v, false);
}

static LLVMValueRef lower_max(lower *g, int type, LLVMValueRef *v)
{
    return extremum(g, type, v, true);
}

static LLVMValueRef shift_count(lower *g, int type, LLVMValueRef b)
{
    return LLVMBuildAnd(g->b, b, like(g, b, type, (uint64_t)qn__dtype_width(type) - 1), "");
}

static LLVMValueRef lower_shl(lower *g, int type, LLVMValueRef *v)
{
    return LLVMBuildShl(g->b, v[0], shift_count(g, type, v[1]), "");
}

static LLVMValueRef lower_shr(lower *g, int type, LLVMValueRef *v)
{
    LLVMValueRef n = shift_count(g, type, v[1]);
    return class_of(type) == QN_CLASS_S ? LLVMBuildAShr(g->b, v[0], n, "")
                                        : LLVMBuildLShr(g->b, v[0], n, "");
}

/* Those that are the same for all types. */
#define lower_not(g, type, v) LLVMBuildNot((g)->b, (v)[0], "")
#define lower_clz(g, type, v) unflagged(g, "llvm.ctlz", (v)[0])
#define lower_ctz(g, type, v) unflagged(g, "llvm.cttz", (v)[0])
#define lower_select(g, type, v) LLVMBuildSelect((g)->b, (v)[0], (v)[1], (v)[2], "")

/* ---------------------------------------------------------------- the table */

/** An operation of two scalar bools in bytes: for chains of them in single bits, LLVM 19 takes time
 * and memory without bound when it selects code for x86 (7,826 of them: 27 GB). */
static LLVMValueRef in_bytes(lower *g, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b)
{
    a = LLVMBuildZExt(g->b, a, g->i8, "");
    b = LLVMBuildZExt(g->b, b, g->i8, "");
    return LLVMBuildTrunc(g->b, LLVMBuildBinOp(g->b, op, a, b, ""), g->i1, "");
}

/** Two vectors as one of twice the lanes. */
static LLVMValueRef joined(lower *g, const LLVMValueRef *half)
{
    int index[QN_MOST_LANES], n = 2 * (int)LLVMGetVectorSize(LLVMTypeOf(half[0]));
    for (int l = 0; l < n; l++)
        index[l] = l;
    return qn__shuffle(g, half[0], half[1], index, n);
}

/** What `joined` made v of, or halves of a constant; false: v is neither. */
static bool halves_of(lower *g, LLVMValueRef v, LLVMValueRef *half)
{
    const int n = (int)LLVMGetVectorSize(LLVMTypeOf(v));
    const bool is_constant = LLVMIsConstant(v);
    if (!is_constant && !LLVMIsAShuffleVectorInst(v))
        return false;
    for (int h = 0; h < 2; h++)
        half[h] = is_constant ? qn__part_of(g, v, h * n / 2, n / 2)
                              : LLVMGetOperand(v, (unsigned)h);
    bool are = (int)LLVMGetVectorSize(LLVMTypeOf(half[0])) == n / 2;
    for (int l = 0; l < n && !is_constant; l++)
        are = are && LLVMGetMaskValue(v, (unsigned)l) == l;
    return are;
}

/** An operation of truth values of lanes: of each register of those that were compared, if both
 * operands are of several. Only the result is put together then. */
static LLVMValueRef of_bools(lower *g, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef x[2], y[2];
    if ((LLVMIsConstant(a) && LLVMIsConstant(b)) || !halves_of(g, a, x) || !halves_of(g, b, y))
        return LLVMBuildBinOp(g->b, op, a, b, "");
    for (int h = 0; h < 2; h++)
        x[h] = of_bools(g, op, x[h], y[h]);
    return joined(g, x);
}

/** of: for signed and unsigned integers, and floats. */
static LLVMValueRef binary(lower *g, int type, const LLVMOpcode *of, LLVMValueRef a, LLVMValueRef b)
{
    if (type == QN_BOOL && LLVMTypeOf(a) == g->i1 && g->f->target->has_slow_bools)
        return in_bytes(g, of[1], a, b);
    if (type == QN_BOOL && qn__is_vector(a))
        return of_bools(g, of[1], a, b);
    int class = class_of(type);
    return LLVMBuildBinOp(g->b, class == QN_CLASS_F ? of[2] : of[class != QN_CLASS_S], a, b, "");
}

/** Bits of a vector; 0: of a scalar. */
static unsigned vector_bits(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v), of = qn__is_vector(v) ? LLVMGetElementType(t) : NULL;
    const LLVMTypeKind kind = of ? LLVMGetTypeKind(of) : LLVMVoidTypeKind;
    const unsigned bits = kind == LLVMIntegerTypeKind  ? LLVMGetIntTypeWidth(of)
                          : kind == LLVMDoubleTypeKind ? 64
                          : kind == LLVMFloatTypeKind  ? 32
                                                       : 16;
    return of ? bits * LLVMGetVectorSize(t) : 0;
}

/** of: for signed and unsigned integers. Where masks are registers of their own, those of several
 * vectors are compared one by one, see of_bools. */
static LLVMValueRef compare(lower *g, int type, const LLVMIntPredicate *of, LLVMRealPredicate f,
                            LLVMValueRef a, LLVMValueRef b)
{
    const int class = class_of(type);
    if (g->f->target->has_masks && vector_bits(a) > 8 * (unsigned)g->f->target->vector_bytes) {
        const int n = (int)LLVMGetVectorSize(LLVMTypeOf(a)) / 2;
        LLVMValueRef half[2];
        for (int h = 0; h < 2; h++)
            half[h] = compare(g, type, of, f, qn__part_of(g, a, h * n, n),
                              qn__part_of(g, b, h * n, n));
        return joined(g, half);
    }
    if (class == QN_CLASS_F)
        return LLVMBuildFCmp(g->b, f, a, b, "");
    return LLVMBuildICmp(g->b, of[class != QN_CLASS_S], a, b, "");
}

LLVMValueRef qn__lower_saturating(lower *g, int op, int type, LLVMValueRef a, LLVMValueRef b)
{
    static const char *const names[2][2] = {{"llvm.uadd.sat", "llvm.sadd.sat"},
                                            {"llvm.usub.sat", "llvm.ssub.sat"}};
    LLVMValueRef v[2] = {a, b};
    return intrinsic(g, names[op == QN_OP_sub][class_of(type) == QN_CLASS_S], v, 2);
}

LLVMValueRef qn__lower_op(lower *g, int op, int type, LLVMValueRef a, LLVMValueRef b,
                          LLVMValueRef c)
{
    LLVMValueRef v[3] = {a, b, c};
    switch (op) {
#define BIN(s, u, f) binary(g, type, (const LLVMOpcode[]){LLVM##s, LLVM##u, LLVM##f}, a, b)
#define CMP(s, u, f)                                                                               \
    compare(g, type, (const LLVMIntPredicate[]){LLVMInt##s, LLVMInt##u}, LLVMReal##f, a, b)
#define CALL(name) intrinsic(g, name, v, n_args)
#define FN(f) lower_##f(g, type, v)
#define QN_OP(ID, name, rule, arity, classes, s, u, f, lowering, doc)                              \
    case QN_OP_##name: {                                                                           \
        const int n_args = arity;                                                                  \
        (void)n_args;                                                                              \
        return lowering;                                                                           \
    }
#include "quern/ops.def"
#undef QN_OP
#undef FN
#undef CALL
#undef CMP
#undef BIN
    default:
        g->failed = true;
        return a;
    }
}

LLVMValueRef qn__lower_combine(lower *g, int combine, int type, LLVMValueRef accumulated,
                               LLVMValueRef next)
{
    return qn__lower_op(g, qn__combine_op(combine), type, accumulated, next, NULL);
}

/* ---------------------------------------------------------------- conversions */

/** An integer of 32 bits that is in the range of a narrower type, said in a way that the code
 * generator knows: then it packs vectors, and the limits cost nothing. */
static LLVMValueRef limit_to(lower *g, int to, LLVMValueRef v)
{
    bool is_signed = class_of(to) == QN_CLASS_S;
    int64_t low = is_signed ? -(INT64_C(1) << (qn__dtype_width(to) - 1)) : 0;
    int64_t high = (INT64_C(1) << (qn__dtype_width(to) - is_signed)) - 1;
    LLVMTypeRef t = LLVMTypeOf(v);
    return qn__smin(g, qn__smax(g, v, qn__int(t, low)), qn__int(t, high));
}

/** Vectors of floats to integers, 0 for NaN and the nearest end beyond the range. (LLVM 19 does the
 * intrinsics lane by lane.) What is converted is clamped to numbers that the integer holds; where
 * the highest of these is no float, the largest float below 2^n stands for it, and what was 2^n or
 * more is set afterwards. */
static LLVMValueRef saturate_vector(lower *g, int to, int from, LLVMValueRef v)
{
    bool is_signed = class_of(to) == QN_CLASS_S;
    int bits = qn__dtype_width(to), n = is_signed ? bits - 1 : bits,
        digits = from == QN_F64 ? 53 : 24;
    uint64_t power = from == QN_F64 ? (uint64_t)(1023 + n) << 52
                                    : (uint64_t)(127 + n) << 23; /* the bits of 2^n */
    uint64_t minus = UINT64_C(1) << (qn__dtype_width(from) - 1),
             step = n <= digits ? UINT64_C(1) << (digits - n) : 1;
    LLVMValueRef above = like(g, v, from, power),
                 low = like(g, v, from, is_signed ? power | minus : 0);
    LLVMValueRef most = like(g, v, from, power - step);
    LLVMValueRef x =
        LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, v, low, ""), v, low, "");
    x = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, x, most, ""), x, most, "");
    bool is_wide = bits > 32 || (bits == 32 && !is_signed);
    LLVMTypeRef t = type_like(g, to, v), through = is_wide ? t : type_like(g, QN_I32, v);
    LLVMValueRef r = is_wide && !is_signed ? LLVMBuildFPToUI(g->b, x, through, "")
                                           : LLVMBuildFPToSI(g->b, x, through, "");
    if (n > digits) {
        LLVMValueRef is_above = LLVMBuildFCmp(g->b, LLVMRealOGE, v, above, "");
        r = LLVMBuildSelect(g->b, is_above, like(g, r, to, is_signed ? lowest(to) - 1 : UINT64_MAX),
                            r, "");
    }
    if (is_signed)
        r = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""),
                            LLVMConstNull(through), r, "");
    if (through == t)
        return r;
    return LLVMBuildTrunc(g->b, g->f->target->truncates ? r : limit_to(g, to, r), t, "");
}

/** Vectors of floats to i64, for which AVX2 has no instruction: numbers below 2^31 go through 32
 * bits, where all lanes have such ones. */
static LLVMValueRef saturate_near(lower *g, int from, LLVMValueRef v)
{
    LLVMValueRef end = like(g, v, from, from == QN_F64 ? UINT64_C(0x41e) << 52 : 0x4f000000),
                 is_near = LLVMBuildFCmp(g->b, LLVMRealOLT, intrinsic(g, "llvm.fabs", &v, 1), end,
                                         "");
    branch x = qn__begin_choice(g, qn__every(g, is_near), "near", "far");
    LLVMValueRef near = LLVMBuildFPToSI(g->b, v, type_like(g, QN_I32, v), "");
    near = LLVMBuildSExt(g->b, near, type_like(g, QN_I64, v), "");
    qn__begin_other(g, &x);
    LLVMValueRef far = saturate_vector(g, QN_I64, from, v);
    qn__end_branch(g, &x, NULL);
    return qn__join(g, &x, near, far);
}

LLVMValueRef qn__lower_whole(lower *g, int type, LLVMValueRef v)
{
    const uint64_t end = type == QN_F64 ? UINT64_C(0x43e) << 52 : 0x5f000000, sign = lowest(type);
    const LLVMValueRef limits[2] = {like(g, v, type, end | sign), like(g, v, type, end)};
    LLVMValueRef is_number = LLVMBuildFCmp(g->b, LLVMRealORD, v, v, "");
    v = LLVMBuildSelect(g->b, is_number, v, LLVMConstNull(LLVMTypeOf(v)), "");
    for (int n = 0; n < 2; n++) {
        LLVMValueRef is_in =
            LLVMBuildFCmp(g->b, n ? LLVMRealOLT : LLVMRealOGT, v, limits[n], "");
        v = LLVMBuildSelect(g->b, is_in, v, limits[n], "");
    }
    return LLVMBuildFAdd(g->b, intrinsic(g, "llvm.trunc", &v, 1), LLVMConstNull(LLVMTypeOf(v)), "");
}

static LLVMValueRef saturate(lower *g, int to, int from, LLVMValueRef v)
{
    LLVMTypeRef types[2] = {type_like(g, to, v), LLVMTypeOf(v)};
    bool is_open = !LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(g->b));
    if (qn__is_vector(v) && to == QN_I64 && !g->f->target->has_masks && is_open)
        return saturate_near(g, from, v);
    if (qn__is_vector(v))
        return saturate_vector(g, to, from, v);
    if (g->hooks->to_integer)
        return g->hooks->to_integer(g, to, from, v);
    return qn__call(g, class_of(to) == QN_CLASS_S ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2,
                    &v, 1);
}

/** f16 and bf16 are held as i16. f16: the processor's conversions, which need the type half only
 * here. */
static LLVMValueRef cast_half(lower *g, int to, int from, LLVMValueRef v)
{
    LLVMTypeRef half = qn__as_many(LLVMHalfTypeInContext(g->context), v);
    if (from == QN_F16)
        return LLVMBuildFPExt(g->b, LLVMBuildBitCast(g->b, v, half, ""), type_like(g, to, v), "");
    if (to == QN_F16) {
        LLVMValueRef bits =
            LLVMBuildBitCast(g->b, LLVMBuildFPTrunc(g->b, v, half, ""), type_like(g, to, v), "");
        return g->hooks->half_bits ? g->hooks->half_bits(g, bits) : bits;
    }
    if (from == QN_BF16) {
        v = LLVMBuildZExt(g->b, v, type_like(g, QN_U32, v), "");
        v = LLVMBuildShl(g->b, v, like(g, v, QN_U32, 16), "");
        return LLVMBuildBitCast(g->b, v, type_like(g, QN_F32, v), "");
    }
    LLVMValueRef is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, "");
    LLVMValueRef bits = LLVMBuildBitCast(g->b, v, type_like(g, QN_U32, v), "");
    LLVMValueRef high = LLVMBuildLShr(g->b, bits, like(g, bits, QN_U32, 16), "");
    LLVMValueRef odd = LLVMBuildAnd(g->b, high, like(g, bits, QN_U32, 1), "");
    LLVMValueRef sum = LLVMBuildAdd(g->b, bits, like(g, bits, QN_U32, 0x7fff), "");
    sum = LLVMBuildLShr(g->b, LLVMBuildAdd(g->b, sum, odd, ""), like(g, bits, QN_U32, 16), "");
    LLVMValueRef quiet = LLVMBuildOr(g->b, high, like(g, bits, QN_U32, 0x40), "");
    v = LLVMBuildSelect(g->b, is_nan, quiet, sum, "");
    return LLVMBuildTrunc(g->b, v, type_like(g, to, v), "");
}

static LLVMValueRef int_to_float(lower *g, LLVMTypeRef t, bool is_signed, LLVMValueRef v)
{
    return is_signed ? LLVMBuildSIToFP(g->b, v, t, "") : LLVMBuildUIToFP(g->b, v, t, "");
}

/** The lanes of a vector one by one (target->rounds_twice). */
static LLVMValueRef lanes_to_float(lower *g, LLVMTypeRef t, bool is_signed, LLVMValueRef v)
{
    LLVMValueRef all = LLVMConstNull(t);
    for (int l = 0; l < (int)LLVMGetVectorSize(t); l++) {
        LLVMValueRef lane = qn__extract(g, v, l);
        lane = int_to_float(g, LLVMGetElementType(t), is_signed, lane);
        all = qn__insert(g, all, lane, l);
    }
    return all;
}

LLVMValueRef qn__lower_cast(lower *g, int to, int from, LLVMValueRef v)
{
    LLVMTypeRef t = type_like(g, to, v);
    bool from_float = class_of(from) == QN_CLASS_F, to_float = class_of(to) == QN_CLASS_F;
    if (to == from)
        return v;
    if (qn__is_half(to) || qn__is_half(from))
        return cast_half(g, to, from, v);
    if (to == QN_BOOL)
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    if (from_float && to_float)
        return to == QN_F64 ? LLVMBuildFPExt(g->b, v, t, "") : LLVMBuildFPTrunc(g->b, v, t, "");
    if (from_float)
        return saturate(g, to, from, v);
    bool is_signed = class_of(from) == QN_CLASS_S;
    /* LLVM 19 takes twenty times as long to select the code of the conversion, which is that of
     * this select. */
    if (to_float && from == QN_BOOL && qn__is_vector(v))
        return LLVMBuildSelect(g->b, v,
                               LLVMBuildUIToFP(g->b, LLVMConstAllOnes(LLVMTypeOf(v)), t, ""),
                               LLVMConstNull(t), "");
    if (to_float && qn__is_vector(v) && g->f->target->rounds_twice && to == QN_F32 &&
        qn__dtype_width(from) == 64)
        return lanes_to_float(g, t, is_signed, v);
    if (to_float)
        return int_to_float(g, t, is_signed, v);
    int have = qn__dtype_width(from), want = qn__dtype_width(to);
    if (want == have)
        return v;
    if (want < have)
        return LLVMBuildTrunc(g->b, v, t, "");
    return is_signed ? LLVMBuildSExt(g->b, v, t, "") : LLVMBuildZExt(g->b, v, t, "");
}

LLVMValueRef qn__lower_bitcast(lower *g, int to, int from, LLVMValueRef v)
{
    if (to == from)
        return v;
    if (from == QN_BOOL) /* bool <-> 8-bit integers: true is 1, any other byte is true */
        return LLVMBuildZExt(g->b, v, type_like(g, to, v), "");
    if (to == QN_BOOL)
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    return LLVMBuildBitCast(g->b, v, type_like(g, to, v), "");
}
