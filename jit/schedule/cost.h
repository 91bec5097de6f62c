/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h: what an operation becomes on a target and how long that takes: the table that the compile
 * budget (budget.h) and the estimate of run time (estimate.h) share. Each family of targets has its
 * own, in jit/target/. Types that a processor has no instruction for are split into registers,
 * widened, or done lane by lane. Knows no LLVM.
 */
#ifndef QN_JIT_COST_H
#define QN_JIT_COST_H

#include "jit/analysis/analyse.h"

/** Kinds of work: X(NAME, what). */
#define QN_WORK_LIST(X)                                                                            \
    X(SIMPLE, "sums, comparisons and bits of integers, comparisons of floats")                     \
    X(FLOAT, "sums, products and fma of floats")                                                   \
    X(SELECT, "select")                                                                            \
    X(EXTREMUM, "min, max and abs of integers")                                                    \
    X(FLOAT_EXTREMUM, "min and max of floats")                                                     \
    X(MULTIPLY, "products of integers")                                                            \
    X(DIVIDE, "quotients of integers, by what is not constant")                                    \
    X(DIVIDE_CONSTANT, "quotients of integers by constants")                                       \
    X(FLOAT_DIVIDE, "quotients of floats")                                                         \
    X(ROOT, "square roots")                                                                        \
    X(ROUND, "floats rounded to integers")                                                         \
    X(SHIFT, "shifts by what is not constant")                                                     \
    X(COUNT_BITS, "counts of zeros and ones")                                                      \
    X(RESIZE, "integers of other bits; the row of the wider type")                                 \
    X(CONVERT, "between integers and floats, or floats; the row of the wider type")                \
    X(MOVE, "loads and stores of whole vectors")                                                   \
    X(MASKED, "loads and stores under a mask")                                                     \
    X(GATHER, "loads of lanes that lie anywhere")                                                  \
    X(SCATTER, "stores of such lanes")                                                             \
    X(SHUFFLE, "lanes in another order")                                                           \
    X(LANE, "one lane in or out")                                                                  \
    X(ATOMIC, "an atomic operation")                                                               \
    X(BLOCK, "a basic block, its end included")                                                    \
    X(WRONG_GUESS, "a branch that the processor guessed wrong")
enum {
#define QN_X(name, ...) QN_WORK_##name,
    QN_WORK_LIST(QN_X)
#undef QN_X
        QN_N_WORKS
};

/** Columns of a table: a scalar, then registers whose lanes have 8, 16, 32 and 64 bits. */
enum { QN_N_COST_COLUMNS = 5 };
/** A row. A negative number is that of each lane, as such vectors are done lane by lane. */
typedef struct qn_cost {
    /* instructions, about, that LLVM's code generator makes of it: the unit of the compile budget.
     * Of what it is slow at, as many as take that time. */
    int8_t units[QN_N_COST_COLUMNS];
    /* of the ports for arithmetic: how many of their cycles it takes. Of loads and stores without
     * the ports of memory */
    int8_t slots[QN_N_COST_COLUMNS];
    int8_t latency; /* cycles; 0: that of sums of floats in the machine record */
} qn_cost;
/** The row of a kind of work for a target. Never NULL (jit/target/costs.c). */
const qn_cost *qn__cost_of(int work, const qn_target *target);

/* What LLVM makes branches of splits the basic block that it stands in, and all instructions behind
 * it are moved: so many of these moves are a unit of work; with fast selection, where a unit takes
 * less time, fewer. */
enum { QN_MOVES_PER_UNIT = 2500, QN_MOVES_PER_FAST_UNIT = 250 };

/* An instruction that fast selection does not know is selected slowly, with all that stands before
 * it in its block, which then counts as so many units (measured by compile_cost --family 7). */
enum { QN_FAST_UNITS_OF_SLOW = 8 };

/** The kind of work that instruction i is, which is no access and has no regions, and the bits of
 * its lanes; -1: it becomes no instruction. */
int qn__kind_of_work(const qn_analysis *a, uint32_t i, int *bits);
/** That of combining two values of a reduce. */
int qn__work_of_combine(const qn_kernel *k, uint32_t reduce);

/** Units of one operation on `lanes` lanes (1: a scalar) of `bits` bits each, for a target. */
int64_t qn__work_units(int work, int bits, int lanes, const qn_target *target);
/** Cycles of the ports for arithmetic that one operation on `lanes` lanes of `bits` bits takes. */
int64_t qn__work_slots(int work, int bits, int lanes, const qn_target *target);
/** Registers that so many lanes take, at least one. */
int64_t qn__registers(int bits, int lanes, const qn_target *target);
/** Units of a region of pure values from which on a test pays that may skip the region, where every
 * other one is skipped, half of them unforeseen; the test looks at the lanes of so many vectors. */
int64_t qn__least_units_to_skip(int vectors, const qn_target *target);

#endif
