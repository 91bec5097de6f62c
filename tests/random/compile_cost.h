/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_cost.h: the compile-cost tester, which makes kernels up to the limits of kernels and
 * measures what it takes to compile them. Everything of a case follows from the seed and its
 * number.
 *
 * compile_cost.c         the program: a process for each case, measurements, summary
 * compile_cost_kernel.c  the kernels and their arguments
 * compile_cost_calls.c   those that call functions, look up constants and update elements
 */
#ifndef QN_TESTS_COMPILE_COST_H
#define QN_TESTS_COMPILE_COST_H

#include "tests/random/differential.h"

/** What a kernel is made of: X(NAME, "text"). */
#define COST_FAMILY_LIST(X)                                                                        \
    X(OPS, "one op of one dtype, many times")                                                      \
    X(MIXED, "random ops of random dtypes")                                                        \
    X(LOADS, "loads from one view")                                                                \
    X(STORES, "stores to one view")                                                                \
    X(ATOMICS, "atomics on one view")                                                              \
    X(UPDATES, "updates through an atomic view")                                                   \
    X(MATH, "mathematical functions")                                                              \
    X(CALLS, "functions that call functions")                                                      \
    X(LOOKUPS, "lookups of constant arrays")                                                       \
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

enum { MOST_VALUES = 64, MOST_COST_RANK = 8 };

/** A kernel that is being made: view 0 is written, view 1 read, view 2 holds i32 that are indices
 * of view 1. */
typedef struct maker {
    cost_case *c;
    randoms *r;
    qn_builder *b;
    qn_param view[3];
    int dtype, rank, n, n_dims, n_values;
    int64_t extent[MOST_COST_RANK];
    qn_val dim[MOST_COST_RANK], point, at[MOST_COST_RANK], value[MOST_VALUES];
    int style; /* of indices */
} maker;

/** A value made before; makes a value one of these; as another dtype. */
qn_val cost_pick(maker *m);
void cost_keep(maker *m, qn_val v);
qn_val cost_convert(maker *m, qn_val v, int to);
/** Indices of an access to a view of m->rank. */
void cost_indices(maker *m, qn_val *index);
/** A random op for a dtype, of random values. */
qn_val cost_op(maker *m, int dtype);
/** The bodies of compile_cost_calls.c. */
void cost_updates(maker *m);
void cost_math(maker *m);
void cost_calls(maker *m);
void cost_lookups(maker *m);

/** Makes a case; false with *err where the library refuses it. `memory` is at least COST_MEMORY
 * bytes that nobody reads. */
enum { COST_MEMORY = 1 << 30 };
bool make_cost_case(cost_case *c, uint64_t seed, uint64_t number, int family, void *memory,
                    qn_error *err);
void release_cost_case(cost_case *c);

#endif
