/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86.c: what code for x86 has of its own: instructions of AVX2 and AVX-512 that LLVM does not find
 * by itself. The entry and the loops are those of any processor (lower/lower.c).
 */
#include "jit/target/target.h"

#include <llvm-c/Target.h>
#include <stdio.h>

static void initialize(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
}

static void add_attributes(LLVMValueRef function, const qn_target *target, const char *tune)
{
    char bits[8];
    snprintf(bits, sizeof bits, "%d", 8 * target->vector_bytes);
    LLVMAddTargetDependentFunctionAttr(function, "tune-cpu", tune);
    LLVMAddTargetDependentFunctionAttr(function, "prefer-vector-width", bits);
}

static void fence(lower *g)
{
    qn__call(g, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
}

/* ---------------------------------------------------------------- instructions */

/** Elements of 8 to 64 bits, and whether they are integers: names of permutations. */
static const struct {
    unsigned bits;
    bool is_integer;
    const char *one_256, *one_512, *two_512;
} permutations[] = {
    {8, true, NULL, "llvm.x86.avx512.permvar.qi.512", "llvm.x86.avx512.vpermi2var.qi.512"},
    {16, true, NULL, "llvm.x86.avx512.permvar.hi.512", "llvm.x86.avx512.vpermi2var.hi.512"},
    {32, true, "llvm.x86.avx2.permd", "llvm.x86.avx512.permvar.si.512",
     "llvm.x86.avx512.vpermi2var.d.512"},
    {32, false, "llvm.x86.avx2.permps", "llvm.x86.avx512.permvar.sf.512",
     "llvm.x86.avx512.vpermi2var.ps.512"},
    {64, true, NULL, "llvm.x86.avx512.permvar.di.512", "llvm.x86.avx512.vpermi2var.q.512"},
    {64, false, NULL, "llvm.x86.avx512.permvar.df.512", "llvm.x86.avx512.vpermi2var.pd.512"},
};
enum { N_PERMUTATIONS = sizeof permutations / sizeof permutations[0] };

static LLVMValueRef permute(lower *g, const LLVMValueRef *registers, int n, LLVMValueRef index)
{
    LLVMTypeRef type = LLVMTypeOf(registers[0]), element = LLVMGetElementType(type);
    bool is_integer = LLVMGetTypeKind(element) == LLVMIntegerTypeKind;
    unsigned bits = is_integer ? LLVMGetIntTypeWidth(element) : element == g->f64 ? 64 : 32;
    bool is_wide = bits * LLVMGetVectorSize(type) == 512;
    int at = 0;
    while (at + 1 < N_PERMUTATIONS &&
           (permutations[at].bits != bits || permutations[at].is_integer != is_integer))
        at++;
    LLVMValueRef args[3] = {registers[0], index, n > 1 ? registers[1] : NULL};
    const char *name = n > 1     ? permutations[at].two_512
                       : is_wide ? permutations[at].one_512
                                 : permutations[at].one_256;
    return qn__call(g, name, NULL, 0, args, 1 + n);
}

/** Packs neighbours of n vectors; half as many are left. */
static void pack_pairs(lower *g, LLVMValueRef *v, int n, const char *intrinsic)
{
    for (int u = 0; u < n; u += 2)
        v[u / 2] = qn__call(g, intrinsic, NULL, 0, &v[u], 2);
}

/* AVX2 packs the halves of registers apart: each half of the result has a piece of each vector. */
static LLVMValueRef pack(lower *g, LLVMValueRef *v, int n, int bits, bool is_signed)
{
    int have = (int)LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(v[0]))), left = n, order[8];
    int register_bits = have * (int)LLVMGetVectorSize(LLVMTypeOf(v[0]));
    if (have == 32) {
        pack_pairs(g, v, left,
                   is_signed || bits == 8 ? "llvm.x86.avx2.packssdw" : "llvm.x86.avx2.packusdw");
        left /= 2;
    }
    if (bits == 8)
        pack_pairs(g, v, left, is_signed ? "llvm.x86.avx2.packsswb" : "llvm.x86.avx2.packuswb");
    for (int k = 0; k < 2 * n; k++)
        order[k] = k % 2 * n + k / 2;
    LLVMTypeRef t = LLVMTypeOf(v[0]),
                piece = LLVMIntTypeInContext(g->context, (unsigned)(register_bits / (2 * n)));
    LLVMValueRef pieces =
        LLVMBuildBitCast(g->b, v[0], LLVMVectorType(piece, (unsigned)(2 * n)), "");
    return LLVMBuildBitCast(g->b, qn__shuffle(g, pieces, NULL, order, 2 * n), t, "");
}

static LLVMValueRef add_pairs(lower *g, LLVMValueRef *v)
{
    unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(v[0]));
    return qn__call(g,
                    lanes == 8    ? "llvm.x86.sse2.pmadd.wd"
                    : lanes == 16 ? "llvm.x86.avx2.pmadd.wd"
                                  : "llvm.x86.avx512.pmaddw.d.512",
                    NULL, 0, v, 2);
}

/** A NaN where a is one, else v: all ones are a NaN, and cost less than a blend with a. */
static LLVMValueRef set_nan(lower *g, LLVMValueRef a, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    LLVMTypeRef number = qn__as_many(LLVMGetElementType(t) == g->f64 ? g->i64 : g->i32, v);
    LLVMValueRef is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, a, a, "");
    LLVMValueRef bits = LLVMBuildOr(g->b, LLVMBuildSExt(g->b, is_nan, number, ""),
                                    LLVMBuildBitCast(g->b, v, number, ""), "");
    return LLVMBuildBitCast(g->b, bits, t, "");
}

/** A scalar, which is the first lane of vectors: a branch would be a guess, and a blend waits. */
static LLVMValueRef set_scalar_nan(lower *g, LLVMValueRef a, LLVMValueRef v)
{
    enum { UNORDERED = 3 }; /* the predicate of the instruction */
    LLVMTypeRef t = LLVMTypeOf(v), all = LLVMVectorType(t, t == g->f64 ? 2 : 4),
                bits = LLVMVectorType(t == g->f64 ? g->i64 : g->i32, t == g->f64 ? 2 : 4);
    LLVMValueRef first = LLVMConstInt(g->i32, 0, false), none = LLVMGetPoison(all);
    a = LLVMBuildInsertElement(g->b, none, a, first, "");
    v = LLVMBuildInsertElement(g->b, none, v, first, "");
    LLVMValueRef args[3] = {a, a, LLVMConstInt(g->i8, UNORDERED, false)};
    const char *name = t == g->f64 ? "llvm.x86.sse2.cmp.sd" : "llvm.x86.sse.cmp.ss";
    LLVMValueRef is_nan = LLVMBuildBitCast(g->b, qn__call(g, name, NULL, 0, args, 3), bits, "");
    v = LLVMBuildOr(g->b, is_nan, LLVMBuildBitCast(g->b, v, bits, ""), "");
    return LLVMBuildExtractElement(g->b, LLVMBuildBitCast(g->b, v, all, ""), first, "");
}

/* The class of each element of a, of which there are eight, names what the result has: the element
 * of v (0) or that of a (1), four bits for each class from quiet and signalling NaN on. */
static LLVMValueRef keep_nan(lower *g, LLVMValueRef a, LLVMValueRef v)
{
    enum { A_IF_NAN = 0x11, VECTOR = 512 };
    static const char *const names[2][3] = {
        {"llvm.x86.avx512.mask.fixupimm.ps.128", "llvm.x86.avx512.mask.fixupimm.ps.256",
         "llvm.x86.avx512.mask.fixupimm.ps.512"},
        {"llvm.x86.avx512.mask.fixupimm.pd.128", "llvm.x86.avx512.mask.fixupimm.pd.256",
         "llvm.x86.avx512.mask.fixupimm.pd.512"}};
    enum { CURRENT_ROUNDING = 4 };
    LLVMTypeRef t = LLVMTypeOf(v);
    if (!qn__is_vector(v))
        return set_scalar_nan(g, a, v);
    if (!g->f->target->has_masks)
        return set_nan(g, a, v);
    LLVMTypeRef element = LLVMGetElementType(t);
    const int n = (int)LLVMGetVectorSize(t), is_f64 = element == g->f64;
    const int bits = n * (is_f64 ? 64 : 32);
    if ((element != g->f32 && !is_f64) || bits < 128)
        return NULL;
    if (bits > VECTOR) {
        int lane[64];
        for (int l = 0; l < n; l++)
            lane[l] = l;
        const int half = n / 2;
        LLVMValueRef low = keep_nan(g, qn__resized(g, a, half), qn__resized(g, v, half)),
                     high = keep_nan(g, qn__part_of(g, a, half, half),
                                     qn__part_of(g, v, half, half));
        return qn__shuffle(g, low, high, lane, n);
    }
    LLVMTypeRef mask = LLVMIntTypeInContext(g->context, n < 8 ? 8 : (unsigned)n);
    LLVMTypeRef number = is_f64 ? g->i64 : g->i32;
    LLVMValueRef table[16];
    for (int l = 0; l < n; l++)
        table[l] = LLVMConstInt(number, A_IF_NAN, false);
    LLVMValueRef args[6] = {v,
                            a,
                            LLVMConstVector(table, (unsigned)n),
                            LLVMConstInt(g->i32, 0, false),
                            LLVMConstAllOnes(mask),
                            LLVMConstInt(g->i32, CURRENT_ROUNDING, false)};
    return qn__call(g, names[is_f64][bits == 128 ? 0 : bits == 256 ? 1 : 2], NULL, 0, args,
                    bits == 512 ? 6 : 5);
}

static const char *const not_for_large[] = {
    "X86 Avoid Store Forwarding Blocks",
    "X86 Domain Reassignment Pass",
    "X86 LEA Optimize",
    "X86 Partial Reduction",
    "X86 cmov Conversion",
    NULL,
};

const qn_hooks qn__x86_hooks = {
    .same_i64 = "=r,0",
    .code_model = LLVMCodeModelSmall,
    .not_for_large = not_for_large,
    .initialize = initialize,
    .attributes = add_attributes,
    .open = qn__lower_open,
    .run = qn__lower_run,
    .fence = fence,
    .permute = permute,
    .pack = pack,
    .keep_nan = keep_nan,
    .add_pairs = add_pairs,
};
