/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.h: about how long a schedule runs on a processor, after the execution-cache-memory
 * model: what the core does while all data is in its first cache, and what caches and memory move
 * meanwhile. Numbers of the processor come from the machine record, those of operations from the
 * target's table of costs (cost.h). A pure function of kernel, facts and schedule; knows no LLVM.
 */
#ifndef QN_JIT_ESTIMATE_H
#define QN_JIT_ESTIMATE_H

#include "jit/schedule/grid.h"
#include "jit/schedule/tree.h"

/** Of one call on one thread, after others on the same arrays; in cycles. */
typedef struct qn_estimate {
    double cycles; /* the longest of the core's and the transfers, a part of the others, and what is
                      waited for */
    double core;   /* over all loops, the longest of what follows, and loops, tails, guesses */
    /* each as if there were nothing else */
    double instructions; /* that begin */
    double arithmetic;   /* ports */
    double loads, stores;
    double chains; /* of what waits for one another */
    /* parts of the core's */
    double loops;   /* instructions that count, and ends that are not foreseen */
    double tails;   /* what is left of axes after whole steps */
    double guesses; /* of branches in the body */
    /* between a cache and what lies behind it: the last one and memory */
    double bytes[QN_N_CACHES], transfer[QN_N_CACHES];
    double waiting[QN_N_CACHES]; /* for lines that nothing fetches ahead */
    double moved; /* cycles of the longest transfer */
} qn_estimate;

/** Errors: QN_ERR_UNSUPPORTED for a target with a grid; QN_ERR_MEMORY. */
qn_status qn__schedule_estimate(const qn_analysis *x, const qn_schedule *s, qn_estimate *out,
                                qn_error *err);
/** As text, for people: a line for each part, then what limits. */
void qn__estimate_print(const qn_estimate *e, const qn_machine *m, qn_text *out);

/** About how long a launch takes, in cycles of a multiprocessor: the longest of five times, each as
 * if there were nothing else, and a part of the others. */
typedef struct qn_grid_estimate {
    double cycles;
    double issue;             /* of instructions */
    double near, far, memory; /* caches of the first and second level, and memory */
    double waiting;           /* for loads, of as many warps as have room */
    double far_bytes, memory_bytes;
    double blocks, warps; /* of the launch; at most at once on a multiprocessor */
    double registers;     /* of a thread */
} qn_grid_estimate;
/** Registers of a thread for the values that are needed at once, in the order of the body. */
double qn__grid_registers(const qn_analysis *x, const qn_grid *p);
/** Estimates a grid of a GPU (jit/schedule/estimate_grid.c). False: there is no model for its form
 * (register tiles of products, all blocks as one team, atomic updates that blocks collect, a single
 * thread), or no memory. */
bool qn__grid_estimate(const qn_analysis *x, const qn_grid *p, qn_grid_estimate *out);
/** As text, for people. */
void qn__grid_estimate_print(const qn_grid_estimate *e, qn_text *out);

#endif
