/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h: a builder to begin with, for the tests that look into builders.
 */
#ifndef QN_TESTS_BUILDER_H
#define QN_TESTS_BUILDER_H

#include "ir/build/builder.h"
#include "tests/tap.h"

static const qn_val inert = {0};

/** A builder with some parameters, and, unless it is fresh, two dimensions and some values. */
typedef struct fixture {
    qn_builder *b;
    qn_param x, m, c, ro, at; /* f32[1], f32[2], i32[1], f32[1] read-only, i32[1] atomic */
    qn_val a, n, u;           /* scalars: f32, i64, i32 */
    qn_val i, r;              /* parallel and reduction index */
    qn_val zero, one;         /* i64 */
    qn_val f, t;              /* f32 loaded from x[i], bool */
} fixture;

static inline fixture make_fresh(uint32_t flags)
{
    fixture f = {.b = qn_builder_new("k", flags)};
    f.x = qn_view_param(f.b, "x", QN_F32, 1, 0);
    f.m = qn_view_param(f.b, "m", QN_F32, 2, 0);
    f.c = qn_view_param(f.b, "c", QN_I32, 1, 0);
    f.ro = qn_view_param(f.b, "ro", QN_F32, 1, QN_READ_ONLY);
    f.at = qn_view_param(f.b, "at", QN_I32, 1, QN_ATOMIC);
    f.a = qn_scalar_param(f.b, "a", QN_F32);
    f.n = qn_scalar_param(f.b, "n", QN_I64);
    f.u = qn_scalar_param(f.b, "u", QN_I32);
    f.zero = qn_index(f.b, 0);
    f.one = qn_index(f.b, 1);
    return f;
}

static inline fixture make(uint32_t flags)
{
    fixture f = make_fresh(flags);
    f.i = qn_parallel_over(f.b, f.x, 0);
    f.r = qn_reduction_over(f.b, f.m, 1);
    f.f = qn_load(f.b, f.x, 1, &f.i);
    f.t = qn_lt(f.b, f.f, f.a);
    return f;
}

#endif
