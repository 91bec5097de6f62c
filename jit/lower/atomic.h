/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic.h: what the files of atomics show one another.
 */
#ifndef QN_JIT_LLVM_ATOMIC_H
#define QN_JIT_LLVM_ATOMIC_H

#include "jit/lower/lower.h"

/* ---- lower/expression.c: the region of an update (QN_UPDATE, see ir.h) as code that an atomic
 * emits where it has the old value: in a loop around compare-exchange, or between a load and a
 * store */

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
/** Takes the operands for one lane, where the builder stands; NULL: for all lanes at once. */
void qn__expression_take(lower *g, const expression *e, LLVMValueRef lane);
/** Emits the new value for the old one, of the lane or lanes that were taken. */
LLVMValueRef qn__expression_of(lower *g, const expression *e, LLVMValueRef old);

/* ---- lower/atomic.c, atomic_lanes.c, atomic_group.c */

/** One atomic instruction, and how it is done. */
typedef struct update {
    uint32_t inst;
    int dtype, combine;
    bool is_plain; /* no other thread meets the elements while the launch runs */
    bool is_used;  /* the old value */
    const expression *of; /* that combination QN_UPDATE computes */
} update;

/** What differs between lanes, in a buffer of the frame as integers or in a register, or what does
 * not. */
typedef struct operand {
    LLVMValueRef scalar, buffer, lanes;
    LLVMTypeRef type;
    unsigned align;
} operand;
enum { MOST_LANE_BYTES = 8 };
/** Puts a vector of integers there. */
operand qn__keep_lanes(lower *g, LLVMValueRef buffer, LLVMValueRef bits);

/** What a lane updates in its turn: elements side by side, so many bytes behind its own. */
typedef struct run {
    update u;
    int64_t constant;
    operand values, expected; /* expected: empty if nothing is compared */
} run;
/** Turns of the lanes of an address, each with all of some runs. */
typedef struct turns {
    const address *x;
    const run *of;
    int n;
    bool is_straight; /* lanes are emitted one by one */
    operand offset;   /* of lanes whose distance is not known */
    operand results;  /* what was there before, of a single run; empty: nobody asks */
} turns;
/** Puts the offsets where the lanes take them from. */
void qn__keep_offsets(lower *g, turns *t);
/** The turns of all lanes. */
void qn__take_turns(lower *g, const turns *t);

/** A value as the integer that stands in memory, and back; scalars or vectors. Of a bool any byte
 * but 0 is true. */
LLVMValueRef qn__as_bits(lower *g, int dtype, LLVMValueRef v);
LLVMValueRef qn__from_bits(lower *g, int dtype, LLVMValueRef v);
/** What the element is afterwards, of its old value; scalars or vectors. `expected` is that of
 * COMPARE_EXCHANGE, else NULL. Of QN_UPDATE v is any value of the element's type, and the lane or
 * lanes of the expression were taken. */
LLVMValueRef qn__updated(lower *g, const update *u, LLVMValueRef old, LLVMValueRef v,
                         LLVMValueRef expected);
/** One operation on one element; the old value. */
LLVMValueRef qn__update_element(lower *g, const update *u, LLVMValueRef pointer, LLVMValueRef v,
                                LLVMValueRef expected);
/** All lanes of part p; the old values, zero if nobody uses them. */
LLVMValueRef qn__update_lanes(lower *g, uint32_t i, int p, const check *c, const expression *e);
/** Emits an update as the launch needs it: plain, locked, or both and the choice. The old value;
 * NULL if nobody uses it. */
typedef LLVMValueRef emit_update(lower *g, const update *u, const void *of);
LLVMValueRef qn__update_as_needed(lower *g, uint32_t i, const expression *e, emit_update *emit,
                                  const void *of);

/** Atomics from i on that stand together, each iteration's after that of the one before; the last
 * of them, 0 if i is not one of several that go together. */
uint32_t qn__update_group(lower *g, uint32_t i, uint32_t end);

#endif
