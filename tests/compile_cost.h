/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_cost.h: the compile-cost tester, which makes kernels up to the limits of kernels and measures what it takes to
 * compile them. Everything of a case follows from the seed and its number.
 *
 * compile_cost.c         the program: a process for each case, measurements, summary
 * compile_cost_kernel.c  the kernels and their arguments
 */
#ifndef QN_TESTS_COMPILE_COST_H
#define QN_TESTS_COMPILE_COST_H

#include "tests/differential.h"

/** What a kernel is made of: X(NAME, "text"). */
#define COST_FAMILY_LIST(X)                                                                        \
    X(OPS, "one op of one dtype, many times")                                                      \
    X(MIXED, "random ops of random dtypes")                                                        \
    X(LOADS, "loads from one view")                                                                \
    X(STORES, "stores to one view")                                                                \
    X(ATOMICS, "atomics on one view")                                                              \
    X(REGIONS, "branches, loops and reduces, nested and in a row")                                 \
    X(RANDOM, "a random kernel of the differential tester with a large body")
enum {
#define QN_X(name, text) COST_##name,
    COST_FAMILY_LIST(QN_X)
#undef QN_X
        N_COST_FAMILIES
};
const char *cost_family_name(int family);

enum { COST_VIEWS = 4 };

/** A kernel and how it is compiled. */
typedef struct cost_case {
    uint64_t number;
    int family;
    char what[160]; /* for people */
    qn_kernel *kernel;
    int n_args;
    qn_arg arg[MAX_ARGS];
    qn_view view[COST_VIEWS];
    qn_layout layout[COST_VIEWS];
    test_case random; /* of the family RANDOM */
    qn_options options;
} cost_case;

/** Makes a case; false with *err where the library refuses it. `memory` is at least COST_MEMORY bytes that nobody reads. */
enum { COST_MEMORY = 1 << 30 };
bool make_cost_case(cost_case *c, uint64_t seed, uint64_t number, int family, void *memory, qn_error *err);
void release_cost_case(cost_case *c);

#endif
