/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h: the region of an update (QN_UPDATE, see ir.h) as code that an atomic emits where it
 * has the old value: in a loop around compare-exchange, or between a load and a store.
 */
#ifndef QN_JIT_LLVM_EXPRESSION_H
#define QN_JIT_LLVM_EXPRESSION_H

#include "jit/lower/lower.h"

/** The region of one part of an update. Arrays: the first has an entry for each instruction, the
 * others for its operands. */
typedef struct expression {
    uint32_t begin, end;    /* its instructions are [begin, end); none: a combination */
    LLVMValueRef *result;   /* values while it is emitted */
    LLVMValueRef *operand;  /* from outside the region: one value or lanes; NULL: from inside */
    LLVMValueRef *taken;    /* of the lane that is emitted */
} expression;

/** Describes the region of atomic i, and emits for part p what it uses from outside. Combinations
 * have none. False without memory. */
bool qn__expression_open(lower *g, expression *e, uint32_t i, int p);
void qn__expression_close(expression *e);
/** Takes the operands for one lane, where the builder stands. lane NULL: there are no lanes. */
void qn__expression_take(lower *g, const expression *e, LLVMValueRef lane);
/** Takes them for all lanes at once. */
void qn__expression_take_all(lower *g, const expression *e);
/** Emits the new value for the old one, of the lane or lanes that were taken. */
LLVMValueRef qn__expression_of(lower *g, const expression *e, LLVMValueRef old);

#endif
