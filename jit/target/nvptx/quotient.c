/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quotient.c: quotients of loaded floats by a divisor that does not change in a loop. The inverse y
 * of the divisor b is rounded once, before the loop. From q = a * y two steps q + (a - b * q) * y,
 * whose remainder is exact, lead to a / b as rounded once (P. W. Markstein, "Computation of
 * elementary functions on the IBM RISC System/6000 processor", IBM Journal of Research and
 * Development, 1990). That holds where nothing overflows or is subnormal, and where a is zero; else
 * the processor divides, behind a branch: under a predicate the assembler divides in any case. The
 * assembler's own quotient takes fewer instructions, but calls a function of 28 for each zero.
 */
#include "jit/target/nvptx/nvptx.h"

#include <math.h>
#include <string.h>

/** Powers of two: divisors lie within 2^-divisor and 2^divisor; what is divided is at least
 * 2^-number, and the quotient at most 2^number. So the quotient is normal, and the last bit of the
 * remainder is that of a number. */
typedef struct bounds {
    int divisor, number;
} bounds;

static bounds bounds_of(const lower *g, LLVMValueRef v)
{
    return LLVMTypeOf(v) == g->f32 ? (bounds){.divisor = 40, .number = 85}
                                   : (bounds){.divisor = 300, .number = 650};
}

static LLVMValueRef power(LLVMValueRef like, int exponent)
{
    return LLVMConstReal(LLVMTypeOf(like), ldexp(1, exponent));
}

static LLVMValueRef magnitude(lower *g, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return qn__call(g, "llvm.fabs", &t, 1, &v, 1);
}

/** A number of the sign of another one, or zero, which gets that sign. */
static LLVMValueRef with_sign_of(lower *g, LLVMValueRef v, LLVMValueRef other)
{
    LLVMTypeRef t = LLVMTypeOf(v), bits = t == g->f32 ? g->i32 : g->i64;
    LLVMValueRef sign = LLVMBuildBitCast(g->b, LLVMConstReal(t, -0.0), bits, "");
    sign = LLVMBuildAnd(g->b, LLVMBuildBitCast(g->b, other, bits, ""), sign, "");
    v = LLVMBuildOr(g->b, LLVMBuildBitCast(g->b, v, bits, ""), sign, "");
    return LLVMBuildBitCast(g->b, v, t, "");
}

LLVMValueRef qn__nvptx_invert(lower *g, LLVMValueRef b)
{
    const bounds most = bounds_of(g, b);
    LLVMValueRef size = magnitude(g, b),
                 y = LLVMBuildFDiv(g->b, LLVMConstReal(LLVMTypeOf(b), 1), b, "");
    LLVMValueRef fits = LLVMBuildAnd(
        g->b, LLVMBuildFCmp(g->b, LLVMRealOGE, size, power(b, -most.divisor), ""),
        LLVMBuildFCmp(g->b, LLVMRealOLE, size, power(b, most.divisor), ""), "");
    return LLVMBuildSelect(g->b, fits, y, LLVMConstRealOfString(LLVMTypeOf(b), "nan"), "");
}

/** q, or the quotient of the processor where `condition` holds. */
static LLVMValueRef divide_if(lower *g, LLVMValueRef condition, LLVMValueRef q, LLVMValueRef a,
                              LLVMValueRef b)
{
    static const char *const text[2] = {
        "@!$4 bra $$L_q${:uid};\n\tdiv.rn.f32 $0, $2, $3;\n$$L_q${:uid}:",
        "@!$4 bra $$L_q${:uid};\n\tdiv.rn.f64 $0, $2, $3;\n$$L_q${:uid}:"},
                            *const operands[2] = {"=f,0,f,f,b", "=d,0,d,d,b"};
    const LLVMTypeRef t = LLVMTypeOf(q);
    const int n = t == g->f32 ? 0 : 1;
    LLVMTypeRef types[4] = {t, t, t, LLVMTypeOf(condition)},
                function = LLVMFunctionType(t, types, 4, false);
    LLVMValueRef code = LLVMGetInlineAsm(function, text[n], strlen(text[n]), operands[n],
                                         strlen(operands[n]), false, false,
                                         LLVMInlineAsmDialectATT, false);
    LLVMValueRef args[4] = {q, a, b, condition};
    return LLVMBuildCall2(g->b, function, code, args, 4, "");
}

LLVMValueRef qn__nvptx_divide(lower *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef y)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    const bounds most = bounds_of(g, a);
    LLVMValueRef first = LLVMBuildFMul(g->b, a, y, ""), q = first,
                 minus = LLVMBuildFNeg(g->b, b, "");
    for (int n = 0; n < 2; n++) {
        LLVMValueRef rest[3] = {minus, q, a};
        LLVMValueRef step[3] = {qn__call(g, "llvm.fma", &t, 1, rest, 3), y, q};
        q = qn__call(g, "llvm.fma", &t, 1, step, 3);
    }
    q = with_sign_of(g, q, first); /* that of a zero */
    LLVMValueRef is_small =
        LLVMBuildFCmp(g->b, LLVMRealOLT, magnitude(g, a), power(a, -most.number), "");
    LLVMValueRef is_some = LLVMBuildFCmp(g->b, LLVMRealUNE, a, LLVMConstNull(t), "");
    LLVMValueRef is_large =
        LLVMBuildFCmp(g->b, LLVMRealUGT, magnitude(g, q), power(a, most.number), "");
    is_small = LLVMBuildAnd(g->b, is_small, is_some, "");
    return divide_if(g, LLVMBuildOr(g->b, is_large, is_small, ""), q, a, b);
}
