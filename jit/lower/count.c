/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c: how much work a function is for the code generator, by the table of cost.h: what was
 * emitted is counted, whatever was thought before.
 */
#include "jit/lower/parts.h"

#include "jit/schedule/cost.h"

#include <string.h>

typedef struct shape {
    int bits, lanes;
} shape;

static int bits_of(LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind:
        return (int)LLVMGetIntTypeWidth(t);
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return 16;
    case LLVMFloatTypeKind:
        return 32;
    default:
        return 64;
    }
}

static shape shape_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    bool is_vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    return (shape){bits_of(is_vector ? LLVMGetElementType(t) : t),
                   is_vector ? (int)LLVMGetVectorSize(t) : 1};
}

static shape wider(shape a, shape b)
{
    return a.bits * a.lanes >= b.bits * b.lanes ? a : b;
}

static bool starts(const char *name, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(name, with, strlen(with)) == 0;
}

/** The kind of work of a call under a mask, -1: there is none. */
static int masked_work(const char *name, size_t n)
{
    return starts(name, n, "llvm.masked.gather")    ? QN_WORK_GATHER
           : starts(name, n, "llvm.masked.scatter") ? QN_WORK_SCATTER
           : starts(name, n, "llvm.masked.")        ? QN_WORK_MASKED
                                                    : -1;
}

static int64_t units_of_call(LLVMValueRef i, const qn_target *target)
{
    size_t n = 0;
    const char *name = LLVMGetValueName2(LLVMGetCalledValue(i), &n);
    unsigned n_args = LLVMGetNumArgOperands(i);
    shape s = n_args ? shape_of(LLVMGetOperand(i, 0)) : (shape){64, 1};
    if (starts(name, n, "llvm.masked.gather") || starts(name, n, "llvm.masked.load"))
        s = shape_of(i);
    int work = starts(name, n, "llvm.ct")             ? QN_WORK_COUNT_BITS
               : starts(name, n, "llvm.smax") || starts(name, n, "llvm.smin") ||
                       starts(name, n, "llvm.umax") || starts(name, n, "llvm.umin") ||
                       starts(name, n, "llvm.abs")
                   ? QN_WORK_EXTREMUM
                   : QN_WORK_SIMPLE;
    work = masked_work(name, n) < 0 ? work : masked_work(name, n);
    return qn__work_units(work, s.bits, s.lanes, target);
}

static int64_t units_of(LLVMValueRef i, const qn_target *target)
{
    shape s = shape_of(i);
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMMul:
        return qn__work_units(QN_WORK_MULTIPLY, s.bits, s.lanes, target);
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return qn__work_units(LLVMIsConstant(LLVMGetOperand(i, 1)) ? QN_WORK_DIVIDE_CONSTANT
                                                                   : QN_WORK_DIVIDE,
                              s.bits, s.lanes, target);
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
        return qn__work_units(LLVMIsConstant(LLVMGetOperand(i, 1)) && s.bits > 8 ? QN_WORK_SIMPLE
                                                                                 : QN_WORK_SHIFT,
                              s.bits, s.lanes, target);
    case LLVMICmp:
    case LLVMFCmp:
        s = shape_of(LLVMGetOperand(i, 0));
        return qn__work_units(QN_WORK_SIMPLE, s.bits, s.lanes, target);
    case LLVMSelect:
        return qn__work_units(QN_WORK_SELECT, s.bits, s.lanes, target);
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        s = wider(s, shape_of(LLVMGetOperand(i, 0)));
        return qn__work_units(QN_WORK_RESIZE, s.bits, s.lanes, target);
    case LLVMFPToUI:
    case LLVMFPToSI:
    case LLVMUIToFP:
    case LLVMSIToFP:
    case LLVMFPTrunc:
    case LLVMFPExt:
        s = wider(s, shape_of(LLVMGetOperand(i, 0)));
        return qn__work_units(QN_WORK_CONVERT, s.bits, s.lanes, target);
    case LLVMStore:
        s = shape_of(LLVMGetOperand(i, 0));
        return qn__work_units(QN_WORK_MOVE, s.bits, s.lanes, target);
    case LLVMLoad:
        return qn__work_units(QN_WORK_MOVE, s.bits, s.lanes, target);
    case LLVMShuffleVector:
        s = wider(s, shape_of(LLVMGetOperand(i, 0)));
        return qn__work_units(QN_WORK_SHUFFLE, s.bits, s.lanes, target);
    case LLVMExtractElement:
    case LLVMInsertElement:
        return qn__work_units(QN_WORK_LANE, 8, 2, target);
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return qn__work_units(QN_WORK_ATOMIC, s.bits, 1, target);
    case LLVMCall:
        return units_of_call(i, target);
    case LLVMBr:
    case LLVMRet:
        return 0;
    default:
        return qn__work_units(QN_WORK_SIMPLE, s.bits, s.lanes, target);
    }
}

/** How often LLVM splits the block for this instruction: a scalar select without an instruction of
 * its own, lanes one by one under a mask, atomic operations that become loops. */
static int n_splits(LLVMValueRef i, const qn_target *target)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(i);
    shape s = shape_of(i);
    if (op == LLVMAtomicRMW)
        return 1;
    if (op == LLVMSelect) {
        LLVMTypeKind condition = LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0)));
        bool is_plain = LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMIntegerTypeKind && s.bits > 8;
        return condition != LLVMVectorTypeKind && !is_plain;
    }
    if (op != LLVMCall || LLVMGetNumArgOperands(i) < 3)
        return 0;
    size_t n = 0;
    const char *name = LLVMGetValueName2(LLVMGetCalledValue(i), &n);
    const int work = masked_work(name, n);
    if (work < 0)
        return 0;
    s = starts(name, n, "llvm.masked.s") ? shape_of(LLVMGetOperand(i, 0)) : s;
    return qn__work_units(work, s.bits, s.lanes, target) >= 8 * s.lanes ? s.lanes : 0;
}

/** Whether fast selection does not know an instruction of scalars: those of f16, and most
 * conversions between floats and what is no signed integer of 32 or 64 bits (llc -fast-isel
 * -pass-remarks-missed=sdagisel). Calls are selected alone. */
static bool is_slow(LLVMValueRef i, const qn_target *target)
{
    shape s = shape_of(i);
    LLVMOpcode op = LLVMGetInstructionOpcode(i);
    if (LLVMGetNumOperands(i) == 0 || op == LLVMBr || op == LLVMCall)
        return false;
    LLVMValueRef from = LLVMGetOperand(i, 0);
    if (LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMHalfTypeKind ||
        LLVMGetTypeKind(LLVMTypeOf(from)) == LLVMHalfTypeKind)
        return true;
    switch (op) {
    case LLVMFPToSI:
        return s.bits < 32;
    case LLVMSIToFP:
        return shape_of(from).bits < 32;
    case LLVMUIToFP:
        return shape_of(from).bits < 32 || !target->converts_unsigned;
    case LLVMFPToUI:
    case LLVMFRem:
        return true;
    case LLVMICmp:
        return shape_of(from).bits == 1;
    case LLVMFreeze:
        return s.bits == 1;
    default:
        return false;
    }
}

int qn__lane_accesses(LLVMValueRef i)
{
    if (!LLVMIsACallInst(i))
        return 0;
    for (unsigned at = 0; at < LLVMGetNumArgOperands(i); at++) {
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, at));
        if (LLVMGetTypeKind(type) == LLVMVectorTypeKind &&
            LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMPointerTypeKind)
            return (int)LLVMGetVectorSize(type);
    }
    return 0;
}

qn_emitted qn__llvm_count(LLVMValueRef function, const qn_target *target, bool is_fast)
{
    qn_emitted n = {0};
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        int64_t units = qn__work_units(QN_WORK_BLOCK, 64, 1, target), instructions = 0, splits = 0,
                slow = 0;
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            units += units_of(i, target);
            n.lanes += qn__lane_accesses(i);
            splits += n_splits(i, target);
            slow = is_fast && is_slow(i, target) ? units : slow;
            instructions++;
        }
        units += slow * (QN_FAST_UNITS_OF_SLOW - 1);
        units += splits * units / 2 / (is_fast ? QN_MOVES_PER_FAST_UNIT : QN_MOVES_PER_UNIT);
        n.units += units;
        n.instructions += instructions;
        n.largest_block = units > n.largest_block ? units : n.largest_block;
        n.most_in_block = instructions > n.most_in_block ? instructions : n.most_in_block;
    }
    return n;
}

/** A conversion between a float and an integer by way of a signed integer that has more bits, where
 * the value is the same; else NULL. */
static LLVMValueRef converted(LLVMValueRef i, LLVMBuilderRef b, LLVMContextRef context)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(i);
    LLVMValueRef from = LLVMGetNumOperands(i) == 1 ? LLVMGetOperand(i, 0) : NULL;
    bool is_signed = op == LLVMSIToFP || op == LLVMFPToSI,
         is_to_float = op == LLVMSIToFP || op == LLVMUIToFP;
    if (!is_to_float && op != LLVMFPToSI && op != LLVMFPToUI)
        return NULL;
    shape s = shape_of(is_to_float ? from : i);
    if (s.lanes > 1 || s.bits >= (is_signed ? 32 : 64))
        return NULL;
    LLVMTypeRef wide = LLVMIntTypeInContext(context, s.bits < 32 ? 32 : 64);
    if (!is_to_float)
        return LLVMBuildTrunc(b, LLVMBuildFPToSI(b, from, wide, ""), LLVMTypeOf(i), "");
    from = is_signed ? LLVMBuildSExt(b, from, wide, "") : LLVMBuildZExt(b, from, wide, "");
    return LLVMBuildSIToFP(b, from, LLVMTypeOf(i), "");
}

void qn__llvm_suit_fast(LLVMValueRef function, LLVMBuilderRef b)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
            LLVMTypeRef t = LLVMTypeOf(i);
            LLVMTypeKind kind = LLVMGetTypeKind(t);
            bool is_narrow = kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) <= 8;
            bool is_float = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
            next = LLVMGetNextInstruction(i);
            LLVMPositionBuilderBefore(b, i);
            LLVMValueRef other = converted(i, b, context);
            if (other) {
                LLVMReplaceAllUsesWith(i, other);
                LLVMInstructionEraseFromParent(i);
                continue;
            }
            if (LLVMGetInstructionOpcode(i) != LLVMSelect || !(is_narrow || is_float))
                continue;
            LLVMTypeRef wide = LLVMIntTypeInContext(context, kind == LLVMDoubleTypeKind ? 64 : 32);
            LLVMValueRef v[2];
            for (unsigned n = 0; n < 2; n++)
                v[n] = is_float ? LLVMBuildBitCast(b, LLVMGetOperand(i, n + 1), wide, "")
                                : LLVMBuildZExt(b, LLVMGetOperand(i, n + 1), wide, "");
            LLVMValueRef all = LLVMBuildSelect(b, LLVMGetOperand(i, 0), v[0], v[1], "");
            all = is_float ? LLVMBuildBitCast(b, all, t, "") : LLVMBuildTrunc(b, all, t, "");
            LLVMReplaceAllUsesWith(i, all);
            LLVMInstructionEraseFromParent(i);
        }
}

/* ---------------------------------------------------------------- truth values of lanes */

/** The integers that truth values v of lanes are between blocks, a register of them; NULL: v is
 * something else. */
static LLVMTypeRef carried_type(LLVMValueRef v, const qn_target *target)
{
    const shape s = shape_of(v);
    const unsigned bits = s.lanes < 2 ? 0 : 8 * (unsigned)target->vector_bytes / (unsigned)s.lanes;
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(v));
    return s.bits == 1 && bits >= 8
               ? LLVMVectorType(LLVMIntTypeInContext(context, bits < 64 ? bits : 64),
                                (unsigned)s.lanes)
               : NULL;
}

static LLVMValueRef after_phis(LLVMBasicBlockRef block)
{
    LLVMValueRef i = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(i))
        i = LLVMGetNextInstruction(i);
    return i;
}

/** All uses of i in a block are those of what is made there of `wide`. */
static void use_carried(LLVMBuilderRef b, LLVMValueRef i, LLVMValueRef wide,
                        LLVMBasicBlockRef block)
{
    LLVMPositionBuilderBefore(b, after_phis(block));
    LLVMValueRef v = LLVMBuildICmp(b, LLVMIntSLT, wide, LLVMConstNull(LLVMTypeOf(wide)), "");
    for (LLVMUseRef u = LLVMGetFirstUse(i), next; u; u = next) {
        LLVMValueRef user = LLVMGetUser(u);
        next = LLVMGetNextUse(u);
        const int operands = LLVMGetInstructionParent(user) == block ? LLVMGetNumOperands(user) : 0;
        for (int n = 0; n < operands; n++)
            if (LLVMGetOperand(user, (unsigned)n) == i)
                LLVMSetOperand(user, (unsigned)n, v);
    }
}

/** A phi of integers in place of one of truth values. */
static LLVMValueRef carried_phi(LLVMBuilderRef b, LLVMValueRef phi, LLVMTypeRef t)
{
    LLVMPositionBuilderBefore(b, phi);
    LLVMValueRef wide = LLVMBuildPhi(b, t, "");
    for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, n);
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(from));
        LLVMValueRef v = LLVMBuildSExt(b, LLVMGetIncomingValue(phi, n), t, "");
        LLVMAddIncoming(wide, &v, &from, 1);
    }
    return wide;
}

void qn__llvm_carry_bools(LLVMValueRef function, LLVMBuilderRef b, const qn_target *target)
{
    for (int are_phis = 1; are_phis >= 0; are_phis--)
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
             block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
                LLVMTypeRef t = carried_type(i, target);
                LLVMValueRef wide = NULL;
                next = LLVMGetNextInstruction(i);
                if (!t || (LLVMIsAPHINode(i) != NULL) != are_phis)
                    continue;
                if (are_phis)
                    wide = carried_phi(b, i, t);
                for (LLVMUseRef u = LLVMGetFirstUse(i); u;) {
                    LLVMValueRef user = LLVMGetUser(u);
                    LLVMBasicBlockRef in = LLVMGetInstructionParent(user);
                    u = LLVMGetNextUse(u);
                    if (LLVMIsAPHINode(user) || (in == block && !are_phis))
                        continue;
                    if (!wide) {
                        LLVMPositionBuilderBefore(b, next);
                        wide = LLVMBuildSExt(b, i, t, "");
                    }
                    use_carried(b, i, wide, in);
                    u = LLVMGetFirstUse(i);
                }
                if (are_phis && !LLVMGetFirstUse(i))
                    LLVMInstructionEraseFromParent(i);
            }
}

bool qn__is_large(const qn_emitted *n)
{
    enum { MOST_IN_BLOCK = 512, MOST = 2000, MOST_UNITS_IN_BLOCK = 8000, MOST_UNITS = 10000 };
    return n->most_in_block > MOST_IN_BLOCK || n->instructions > MOST ||
           n->largest_block > MOST_UNITS_IN_BLOCK || n->units > MOST_UNITS;
}
