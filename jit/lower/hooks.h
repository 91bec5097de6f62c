/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks.h: what a target emits of its own, as a table of functions; jit/target/ has one for each
 * family. Properties that code depends on are data instead (jit/facts/target.h). Nothing of
 * jit/lower/ knows a target's files.
 */
#ifndef QN_JIT_LLVM_HOOKS_H
#define QN_JIT_LLVM_HOOKS_H

#include "jit/lower/lower.h"

#include <llvm-c/TargetMachine.h>

typedef struct qn_hooks {
    unsigned data_space;        /* address space of views */
    unsigned constant_space[2]; /* of constant arrays: whose index differs between threads; is the
                                   same in all of them */
    const char *same_i64; /* operands of inline assembly whose result of 64 bits is its operand */

    LLVMCodeModel code_model;
    const char *const *not_for_large; /* NULL, or passes of LLVM that a large function goes without,
                                         by their names; NULL behind the last */

    /* ---- LLVM */
    /** Tells LLVM of the target. Once per process. */
    void (*initialize)(void);
    /** Attributes of every function. `tune`: the processor that code is tuned for. */
    void (*attributes)(LLVMValueRef function, const qn_target *target, const char *tune);

    /* ---- the function */
    /** Adds it to the module, sets g->function, slots, range and fault, and stands in its entry
     * block. */
    void (*open)(lower *g, const char *symbol);
    /** All loops and the body, for a domain that is not known to be empty; the bounds of the loops
     * of block->order. */
    void (*run)(lower *g, const span *spans);
    /** NULL, or what a launch must know of it; block_bytes: shared memory that was asked for while
     * it was emitted. */
    void (*describe)(const qn_kernel *k, const qn_facts *f, const qn_grid *p, int32_t block_bytes,
                     qn_blob_info *info);
    /** NULL, or: what follows sees what was stored without the caches. */
    void (*fence)(lower *g);

    /* ---- instructions; NULL where no property of the target leads there */
    /** The integer of dtype `to` nearest to zero of a number f32 or f64, saturated; 0 for NaN. */
    LLVMValueRef (*to_integer)(lower *g, int to, int from, LLVMValueRef v);
    /** NULL, or: constant v, of these bits, as the target has it: itself, or loaded. */
    LLVMValueRef (*constant)(lower *g, LLVMValueRef v, uint64_t bits);
    /** NULL, or: what a float is multiplied by to be divided by b, which loops do not change; and
     * the quotient a / b by means of that, where a may well be zero. Scalars. */
    LLVMValueRef (*invert)(lower *g, LLVMValueRef b);
    LLVMValueRef (*divide)(lower *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef inverse);
    /** The bits of an f16 that a conversion has made, i16. */
    LLVMValueRef (*half_bits)(lower *g, LLVMValueRef bits);
    /** The lanes that `index` names of one register, or of two side by side; all have one number of
     * lanes. */
    LLVMValueRef (*permute)(lower *g, const LLVMValueRef *registers, int n, LLVMValueRef index);
    /** n whole registers of integers as one of integers of `bits`, in order; limited to those that
     * fit, as signed or unsigned. */
    LLVMValueRef (*pack)(lower *g, LLVMValueRef *v, int n, int bits, bool is_signed);
    /** NULL, or: a NaN where a is one, else v; vectors of floats. NULL if a select is as good. */
    LLVMValueRef (*keep_nan)(lower *g, LLVMValueRef a, LLVMValueRef v);
    /** Products of integers of 16 bits, in 32, of which the sums of neighbours are taken. */
    LLVMValueRef (*add_pairs)(lower *g, LLVMValueRef *v);
    /** Combines v with the element at `pointer` in one atomic step; nobody learns what was there.
     * False if there is no such instruction. */
    bool (*combine)(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v);

    /* ---- threads that work together; NULL without a grid */
    /** The value of load i for part p where it does not come from the view, but from registers or
     * shared memory; else NULL. */
    LLVMValueRef (*held)(lower *g, uint32_t i, int p);
    /** Around a store or atomic of team code (g->is_team): orders it after what others read, and
     * before what they read next. The condition under which this thread does it. */
    LLVMValueRef (*team_begin)(lower *g);
    void (*team_end)(lower *g);
    /** The value that one thread of the team has. */
    LLVMValueRef (*team_same)(lower *g, LLVMValueRef v);
    /** The fold of a reduce from the identity on, with its points shared by the team. */
    void (*team_reduce)(lower *g, const reduction *r, int n, LLVMValueRef *out);
    /** Shares the trips of loop i; false if they may not be. */
    bool (*team_trips)(lower *g, uint32_t i);
    /** Where access i of the element at `pointer` goes instead; NULL: to that element. Threads of a
     * block collect updates there, and add them to the element later, or move elements there and
     * back. */
    LLVMValueRef (*place_in_block)(lower *g, uint32_t i, LLVMValueRef pointer);
    /** Moves what the next `count` trips of grid->moved_loop touch, from the one with this index
     * on, to where place_in_block has it; or, behind them, back. All threads of a warp run it. */
    void (*move_rows)(lower *g, LLVMValueRef index, int64_t count, bool is_flush);
    /** Takes the lock of the fault record or goes to `retry`; stands in `locked` then. */
    void (*lock)(lower *g, LLVMBasicBlockRef retry, LLVMBasicBlockRef locked);
    void (*unlock)(lower *g);
} qn_hooks;

/** The entry and the loops of a function that a processor's thread calls (lower/lower.c). */
void qn__lower_open(lower *g, const char *symbol);
void qn__lower_run(lower *g, const span *spans);

#endif
