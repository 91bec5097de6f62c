/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h: how much a compile may cost, and what is given up where a plan would cost more. The
 * steps down are: one vector in a step, narrower vectors, scalar code, LLVM's fast instruction
 * selection, and the interpreter. What code costs is estimated before it is emitted and counted
 * while it is (docs/lowering.md). Knows no LLVM.
 */
#ifndef QN_JIT_BUDGET_H
#define QN_JIT_BUDGET_H

#include "jit/schedule/cost.h"
#include "jit/schedule/tree.h"

struct qn_block; /* jit/schedule/shape.h */

/** What code is planned and selected with: X(NAME, "text"), each cheaper than the one before. */
#define QN_RUNG_LIST(X)                                                                            \
    X(PLANNED, "as planned")                                                                       \
    X(SINGLE, "one vector in a step")                                                              \
    X(NARROW, "narrower vectors")                                                                  \
    X(SCALAR, "scalar code")                                                                       \
    X(FAST, "scalar code, fast instruction selection")
enum {
#define QN_X(name, text) QN_RUNG_##name,
    QN_RUNG_LIST(QN_X)
#undef QN_X
        QN_N_RUNGS
};
const char *qn__rung_name(int rung);

/** Bytes that a compile may need at most, of memory and of addresses. */
#define QN_BUDGET_BYTES (INT64_C(256) << 20)
/** Units that code may have at most on a rung; of code for a GPU all that there can be. `most`:
 * before fast instruction selection; 0: as many as are compiled in a second. */
int64_t qn__budget_units(int64_t most, int rung, const qn_target *target);
/** Above so many instructions, lanes of gathers counted, a plan gives up what only makes it longer.
 */
enum { QN_MOST_INSTRUCTIONS = 4000 };

/** Lanes for which the sides of an `if` are counted before the width is known: what pays with them
 * pays with more. */
enum { QN_COUNTED_LANES = 8 };
/** Units of one part of instruction i, an access or what is pure, for vectors of so many lanes. */
int64_t qn__cost_of_instruction(const qn_analysis *a, uint32_t i, bool is_checked, int width);
/** Whether code goes around a side of a divergent `if` that computes `units` where no lane of so
 * many vectors takes the side: where the test pays, and where the kernel says that the side is
 * rare. */
bool qn__goes_around(const qn_kernel *k, uint32_t i, int side, int64_t units, int vectors,
                     const qn_target *target);
/** Whether lanes take a side of `if` i under masks, without a branch around that side: what the
 * side accesses are whole vectors that are proved, and there is so little of it that a branch takes
 * longer. The `if` has no results, and its condition differs between lanes. */
bool qn__is_under_mask(const qn_analysis *a, uint32_t i, int side, int lane_dim);
/** About the units that the body has under a plan, remainders included; 0 without memory. */
int64_t qn__estimate(const qn_analysis *x, const qn_plan *p);

/** About the units that the body has under a schedule whose block is b, remainders included; 0
 * without memory. */
int64_t qn__units_of_block(const qn_analysis *x, const struct qn_block *b);

/** How far a plan has stepped down, and why. */
typedef struct qn_descent {
    int32_t rung;
    int64_t units; /* of the code in the end */
    char steps[224]; /* for people: each step and the units before it; "" if there was none */
} qn_descent;
/** Changes a plan of a processor so that it gives less code than now, which has `units`; false:
 * there is no such plan, or x->k is NULL, as of a GPU. `is_over`: the budget is too small for them,
 * and where there is no such plan, only the interpreter is left; else there are only more
 * than QN_MOST_INSTRUCTIONS. `are_lanes_many`: most of these are lanes of gathers. */
bool qn__step_down(const qn_analysis *x, qn_plan *p, qn_descent *d, int64_t units, bool is_over,
                   bool are_lanes_many);

/** Changes a plan of a processor to the one that compiles fastest: scalar code, fast instruction
 * selection. Leaves it as it is where x->k is NULL, as of a GPU. */
void qn__step_to_fast(const qn_analysis *x, qn_plan *p, qn_descent *d);

#endif
