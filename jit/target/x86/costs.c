/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c: what operations cost on x86-64. Units were measured on LLVM 19 (compile_cost). Slots and
 * latencies are those of instruction tables (Intel's and AMD's optimization manuals, uops.info): of
 * the processors with these instructions a usual one, and sums over the instructions that an
 * operation becomes. A divider is busy as long as its quotient takes: its slots are those cycles,
 * times the ports.
 */
#include "jit/target/costs.h"

#define ROW(work, latency_cycles, ...) [QN_WORK_##work] = {__VA_ARGS__, latency_cycles}

/* ROW(KIND, latency, {units}, {slots}); scalars have ports of their own for what is simple. A
 * select's conditions live long: measured three times a sum. A wrong guess: 3 instructions in each
 * of 16 cycles, estimated. */
#define ROWS_COMMON                                                                                \
    ROW(SIMPLE, 1, {1, 1, 1, 1, 1}, {0, 1, 1, 1, 1}),                                              \
        ROW(FLOAT, 0, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}),                                           \
        ROW(SELECT, 2, {3, 3, 3, 3, 3}, {1, 1, 1, 1, 1}),                                          \
        ROW(ROUND, 8, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}),                                           \
        ROW(RESIZE, 3, {1, 2, 2, 2, 2}, {1, 1, 1, 1, 1}),                                          \
        ROW(MOVE, 5, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}),                                            \
        ROW(GATHER, 20, {4, -12, -12, -3, -3}, {0, -2, -2, -1, -1}),                               \
        ROW(LANE, 3, {1, 2, 2, 2, 2}, {1, 1, 1, 1, 1}),                                            \
        ROW(ATOMIC, 20, {6, 6, 6, 6, 6}, {40, 40, 40, 40, 40}),                                    \
        ROW(BLOCK, 1, {6, 6, 6, 6, 6}, {1, 1, 1, 1, 1}),                                           \
        ROW(WRONG_GUESS, 16, {48, 48, 48, 48, 48}, {0, 0, 0, 0, 0})

const qn_cost qn__x86_costs_v3[QN_N_WORKS] = {
    ROWS_COMMON,
    ROW(EXTREMUM, 1, {2, 1, 1, 1, 3}, {2, 1, 1, 1, 2}),
    ROW(FLOAT_EXTREMUM, 8, {2, 1, 1, 1, 3}, {3, 3, 3, 3, 3}),
    ROW(MULTIPLY, 4, {1, 8, 1, 1, 9}, {1, 6, 1, 2, 8}),
    ROW(DIVIDE, 16, {12, 40, 24, 24, -12}, {12, 66, 30, 44, -14}),
    ROW(DIVIDE_CONSTANT, 8, {6, 12, 6, 9, -8}, {5, 10, 5, 8, -6}),
    ROW(FLOAT_DIVIDE, 13, {1, 1, 1, 1, 1}, {8, 10, 10, 10, 16}),
    ROW(ROOT, 18, {1, 1, 1, 1, 1}, {10, 12, 12, 12, 18}),
    ROW(SHIFT, 2, {3, 14, 8, 1, 3}, {2, 12, 6, 1, 2}),
    ROW(COUNT_BITS, 4, {4, 8, 12, 16, 20}, {1, 6, 10, 14, 18}),
    ROW(CONVERT, 5, {3, 3, 3, 3, -4}, {2, 2, 2, 1, -2}),
    ROW(MASKED, 6, {4, -10, -10, 3, 3}, {1, -4, -4, 1, 1}),
    ROW(SCATTER, 6, {4, -12, -12, -10, -10}, {0, -2, -2, -2, -2}),
    ROW(SHUFFLE, 3, {1, 3, 3, 2, 2}, {1, 2, 2, 1, 1}),
};

/* What all with AVX-512 share: but for COUNT_BITS, which some have instructions for. */
#define ROWS_V4(...)                                                                               \
    ROWS_COMMON, ROW(EXTREMUM, 1, {2, 1, 1, 1, 1}, {2, 1, 1, 1, 1}),                               \
        ROW(FLOAT_EXTREMUM, 8, {2, 1, 1, 1, 1}, {3, 2, 2, 2, 2}),                                  \
        ROW(MULTIPLY, 4, {1, 8, 1, 1, 1}, {1, 6, 1, 2, 3}),                                        \
        ROW(DIVIDE, 16, {12, 30, 18, 12, -12}, {12, 108, 52, 74, -14}),                            \
        ROW(DIVIDE_CONSTANT, 8, {6, 12, 6, 9, -8}, {5, 10, 5, 8, 12}),                             \
        ROW(FLOAT_DIVIDE, 14, {1, 1, 1, 1, 1}, {8, 20, 20, 20, 32}),                               \
        ROW(ROOT, 20, {1, 1, 1, 1, 1}, {10, 24, 24, 24, 36}),                                      \
        ROW(SHIFT, 1, {3, 14, 1, 1, 1}, {2, 12, 1, 1, 1}), ROW(COUNT_BITS, __VA_ARGS__),           \
        ROW(CONVERT, 5, {3, 3, 3, 3, 3}, {2, 2, 2, 1, 1}),                                         \
        ROW(MASKED, 6, {4, 3, 3, 3, 3}, {1, 1, 1, 1, 1}),                                          \
        ROW(SCATTER, 6, {4, -12, -12, -3, -3}, {0, -2, -2, -2, -2}),                               \
        ROW(SHUFFLE, 3, {1, 3, 3, 2, 2}, {1, 2, 1, 1, 1})

const qn_cost qn__x86_costs_v4[QN_N_WORKS] = {
    ROWS_V4(4, {4, 8, 12, 8, 8}, {1, 6, 8, 4, 4}),
};
const qn_cost qn__x86_costs_v4_bytes[QN_N_WORKS] = {
    ROWS_V4(3, {4, 1, 1, 1, 1}, {1, 1, 1, 1, 1}),
};
