/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h: how much work an operation is for LLVM's code generator, in units: about the machine instructions that it becomes.
 * Types that a processor has no instruction for are split into registers, widened, or done lane by lane. Knows no LLVM.
 */
#ifndef QN_JIT_COST_H
#define QN_JIT_COST_H

#include "jit/facts/target.h"

/**
 * Kinds of work: X(NAME, units of a scalar; then units of a vector register whose lanes have 8, 16, 32 and 64 bits, for
 * x86-64-v3 and for v4). A negative number is units of a lane: such vectors are done lane by lane.
 */
#define QN_WORK_LIST(X)                                                                            \
    X(SIMPLE, 1, 1, 1, 1, 1, 1, 1, 1, 1)          /* sums, comparisons, arithmetic of floats */    \
    X(SELECT, 3, 3, 3, 3, 3, 3, 3, 3, 3)          /* their conditions live long: measured three times a sum */ \
    X(EXTREMUM, 2, 1, 1, 1, 3, 1, 1, 1, 1)        /* min, max and abs of integers */               \
    X(MULTIPLY, 1, 8, 1, 1, 9, 8, 1, 1, 1)        /* of integers */                                \
    X(DIVIDE, 12, -14, -10, -8, -12, -14, -10, -8, -12) /* of integers, by what is not constant */       \
    X(DIVIDE_CONSTANT, 6, 12, 6, 9, -8, 12, 6, 9, -8)                                              \
    X(SHIFT, 3, 14, 8, 1, 3, 14, 1, 1, 1)         /* by what is not constant */                    \
    X(COUNT_BITS, 4, 8, 12, 16, 20, 8, 12, 8, 8)  /* of zeros and ones */                          \
    X(RESIZE, 1, 2, 2, 2, 2, 2, 2, 2, 2)          /* integers of other bits; counts those of the wider type */ \
    X(CONVERT, 3, 3, 3, 3, -4, 3, 3, 3, 3)        /* between integers and floats; the wider type */ \
    X(MOVE, 1, 1, 1, 1, 1, 1, 1, 1, 1)            /* loads and stores of whole vectors */          \
    X(MASKED, 4, -10, -10, 3, 3, 3, 3, 3, 3)      /* under a mask */                               \
    X(GATHER, 4, -12, -12, -3, -3, -12, -12, -3, -3) /* loads of lanes that lie anywhere */        \
    X(SCATTER, 4, -12, -12, -10, -10, -12, -12, -3, -3)                                            \
    X(SHUFFLE, 1, 3, 3, 2, 2, 3, 3, 2, 2)                                                          \
    X(LANE, 1, 2, 2, 2, 2, 2, 2, 2, 2)            /* one lane in or out */                         \
    X(ATOMIC, 6, 6, 6, 6, 6, 6, 6, 6, 6)                                                           \
    X(BLOCK, 6, 6, 6, 6, 6, 6, 6, 6, 6)           /* a basic block, its end included */            \
    X(WRONG_GUESS, 48, 48, 48, 48, 48, 48, 48, 48, 48) /* estimated: 3 instructions in each of 16 cycles */
enum {
#define QN_X(name, ...) QN_WORK_##name,
    QN_WORK_LIST(QN_X)
#undef QN_X
        QN_N_WORKS
};

/* What LLVM makes branches of splits the basic block that it stands in, and all instructions behind it are moved: so many of
 * these moves are a unit of work; with fast selection, where a unit takes less time, fewer. */
enum { QN_MOVES_PER_UNIT = 2500, QN_MOVES_PER_FAST_UNIT = 250 };

/* An instruction that fast selection does not know is selected slowly, with all that stands before it in its block, which then
 * counts as so many units (measured by compile_cost --family 7). */
enum { QN_FAST_UNITS_OF_SLOW = 8 };

/** Units of one operation on `lanes` lanes (1: a scalar) of `bits` bits each, for a target. */
int64_t qn__work_units(int work, int bits, int lanes, const qn_target *target);
const char *qn__work_name(int work);
/** Units of a region of pure values from which on a test pays that may skip the region, where every other one is skipped, half of them
 *  unforeseen; the test looks at the lanes of so many vectors. */
int64_t qn__least_units_to_skip(int vectors, const qn_target *target);

#endif
