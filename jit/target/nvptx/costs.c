/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c: what operations cost on NVIDIA's GPUs, whose code is scalar. Units are those of x86-64,
 * as compiling takes about as long. Slots are cycles of a quarter of a multiprocessor for one warp,
 * by the bits of the type: CUDA C++ Programming Guide, arithmetic instructions, of capability 9.0,
 * times the instructions that an operation becomes.
 */
#include "jit/target/costs.h"

#define ROW(work, latency_cycles, n_units, ...)                                                    \
    [QN_WORK_##work] = {{n_units, n_units, n_units, n_units, n_units}, __VA_ARGS__, latency_cycles}

/* ROW(KIND, latency, units, {slots: those of 32 bits, then of 8, 16, 32 and 64}) */
const qn_cost qn__nvptx_costs[QN_N_WORKS] = {
    ROW(SIMPLE, 5, 1, {2, 2, 2, 2, 4}),
    ROW(FLOAT, 4, 1, {1, 1, 1, 1, 2}),
    ROW(SELECT, 5, 3, {2, 2, 2, 2, 4}),
    ROW(EXTREMUM, 5, 2, {2, 2, 2, 2, 6}),
    ROW(FLOAT_EXTREMUM, 5, 2, {2, 2, 2, 2, 8}),
    ROW(MULTIPLY, 5, 1, {2, 2, 2, 2, 8}),
    ROW(DIVIDE, 40, 12, {40, 40, 40, 40, 120}),
    ROW(DIVIDE_CONSTANT, 15, 6, {10, 10, 10, 10, 24}),
    ROW(FLOAT_DIVIDE, 30, 1, {14, 14, 14, 14, 40}),
    ROW(ROOT, 30, 1, {14, 14, 14, 14, 44}),
    ROW(ROUND, 10, 1, {4, 4, 4, 4, 8}),
    ROW(SHIFT, 5, 3, {2, 2, 2, 2, 6}),
    ROW(COUNT_BITS, 10, 4, {8, 8, 8, 8, 16}),
    ROW(RESIZE, 5, 1, {2, 2, 2, 2, 2}),
    ROW(CONVERT, 10, 3, {2, 2, 2, 2, 8}),
    ROW(MOVE, 0, 1, {1, 1, 1, 1, 1}),
    ROW(MASKED, 0, 4, {1, 1, 1, 1, 1}),
    ROW(GATHER, 0, 4, {1, 1, 1, 1, 1}),
    ROW(SCATTER, 0, 4, {1, 1, 1, 1, 1}),
    ROW(SHUFFLE, 25, 1, {2, 2, 2, 2, 4}),
    ROW(LANE, 5, 1, {2, 2, 2, 2, 4}),
    ROW(ATOMIC, 0, 6, {1, 1, 1, 1, 1}),
    ROW(BLOCK, 10, 6, {4, 4, 4, 4, 4}),
    ROW(WRONG_GUESS, 0, 48, {0, 0, 0, 0, 0}),
};
