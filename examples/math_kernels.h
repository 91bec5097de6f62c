/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_kernels.h: kernels that mathematical functions and random numbers make possible, for f32 and
 * f64: softmax, Black-Scholes, a step of n bodies, Monte Carlo pi. examples/07_math.c runs them,
 * tests/bench times them.
 */
#ifndef QUERN_MATH_KERNELS_H
#define QUERN_MATH_KERNELS_H

#include "quern.h"

/** The kernel, or NULL and *err. Releases the builder. */
static inline qn_kernel *math_kernel_finish(qn_builder *b, qn_error *err)
{
    qn_kernel *k = NULL;
    (void)qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

/* [softmax] */
/** Of each row of x the largest element. */
static inline qn_kernel *build_softmax_largest(int dtype, qn_error *err)
{
    qn_builder *b = qn_builder_new("softmax_largest", 0);
    qn_param x = qn_view_param(b, "x", dtype, 2, QN_READ_ONLY);
    qn_param largest = qn_view_param(b, "largest", dtype, 1, 0);
    qn_val i = qn_parallel_over(b, largest, 0), k = qn_reduction_over(b, x, 1), ik[2] = {i, k};

    qn_reduce(b, QN_COMBINE_MAX, QN_ORDER_DEFAULT, 1, &k);
    qn_store(b, largest, 1, &i, qn_end_reduce(b, qn_load(b, x, 2, ik)));
    return math_kernel_finish(b, err);
}

/** y[i,j] = exp(x[i,j] - largest[i]), in which nothing overflows */
static inline qn_kernel *build_softmax_exp(int dtype, qn_error *err)
{
    qn_builder *b = qn_builder_new("softmax_exp", QN_CONTRACT);
    qn_param x = qn_view_param(b, "x", dtype, 2, QN_READ_ONLY),
             y = qn_view_param(b, "y", dtype, 2, 0);
    qn_param largest = qn_view_param(b, "largest", dtype, 1, QN_READ_ONLY);
    qn_val i = qn_parallel_over(b, y, 0), j = qn_parallel_over(b, y, 1), ij[2] = {i, j};

    qn_val below = qn_sub(b, qn_load(b, x, 2, ij), qn_load(b, largest, 1, &i));
    qn_store(b, y, 2, ij, qn_exp(b, below));
    return math_kernel_finish(b, err);
}

/** scale[i] = 1 / sum over k of y[i,k] */
static inline qn_kernel *build_softmax_scale(int dtype, qn_error *err)
{
    qn_builder *b = qn_builder_new("softmax_scale", QN_ORDER_STRIPED);
    qn_param y = qn_view_param(b, "y", dtype, 2, QN_READ_ONLY);
    qn_param scale = qn_view_param(b, "scale", dtype, 1, 0);
    qn_val i = qn_parallel_over(b, scale, 0), k = qn_reduction_over(b, y, 1), ik[2] = {i, k};

    qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, 1, &k);
    qn_val sum = qn_end_reduce(b, qn_load(b, y, 2, ik));
    qn_store(b, scale, 1, &i, qn_div(b, qn_const_float(b, dtype, 1), sum));
    return math_kernel_finish(b, err);
}

/** y[i,j] *= scale[i] */
static inline qn_kernel *build_softmax_scaled(int dtype, qn_error *err)
{
    qn_builder *b = qn_builder_new("softmax_scaled", 0);
    qn_param y = qn_view_param(b, "y", dtype, 2, 0),
             scale = qn_view_param(b, "scale", dtype, 1, QN_READ_ONLY);
    qn_val i = qn_parallel_over(b, y, 0), j = qn_parallel_over(b, y, 1), ij[2] = {i, j};

    qn_store(b, y, 2, ij, qn_mul(b, qn_load(b, y, 2, ij), qn_load(b, scale, 1, &i)));
    return math_kernel_finish(b, err);
}
/* [end] */

/* [black-scholes] */
/** The probability that a normal number is below x. */
static inline qn_val normal_cdf(qn_builder *b, int dtype, qn_val x)
{
    qn_val half = qn_const_float(b, dtype, 0.5),
           scale = qn_const_float(b, dtype, 0.70710678118654752);
    return qn_add(b, half, qn_mul(b, half, qn_erf(b, qn_mul(b, x, scale))));
}

/** Prices of European calls and puts: price of the share, strike price and years to go for each
 * option; interest r and volatility v for all. */
static inline qn_kernel *build_black_scholes(int dtype, qn_error *err)
{
    qn_builder *b = qn_builder_new("black_scholes", QN_CONTRACT);
    qn_param share = qn_view_param(b, "share", dtype, 1, QN_READ_ONLY);
    qn_param strike = qn_view_param(b, "strike", dtype, 1, QN_READ_ONLY);
    qn_param years = qn_view_param(b, "years", dtype, 1, QN_READ_ONLY);
    qn_param call = qn_view_param(b, "call", dtype, 1, 0),
             put = qn_view_param(b, "put", dtype, 1, 0);
    qn_val r = qn_scalar_param(b, "r", dtype), v = qn_scalar_param(b, "v", dtype);
    qn_val i = qn_parallel_over(b, call, 0);
    qn_val s = qn_load(b, share, 1, &i), k = qn_load(b, strike, 1, &i),
           t = qn_load(b, years, 1, &i);

    qn_val spread = qn_mul(b, v, qn_sqrt(b, t));
    qn_val drift =
        qn_mul(b, qn_add(b, r, qn_mul(b, qn_const_float(b, dtype, 0.5), qn_mul(b, v, v))), t);
    qn_val d1 = qn_div(b, qn_add(b, qn_log(b, qn_div(b, s, k)), drift), spread);
    qn_val n1 = normal_cdf(b, dtype, d1), n2 = normal_cdf(b, dtype, qn_sub(b, d1, spread));
    qn_val today = qn_mul(
        b, k, qn_exp(b, qn_neg(b, qn_mul(b, r, t)))); /* what the strike price is worth today */
    qn_val price = qn_sub(b, qn_mul(b, s, n1), qn_mul(b, today, n2));
    qn_store(b, call, 1, &i, price);
    qn_store(b, put, 1, &i, qn_add(b, qn_sub(b, price, s), today));
    return math_kernel_finish(b, err);
}
/* [end] */

/* [n-body] */
/** A step of bodies that attract each other: new velocities v and new places y from places x;
 * body[i] is x, y, z, mass. */
static inline qn_kernel *build_n_body(int dtype, qn_error *err)
{
    qn_builder *b = qn_builder_new("n_body", QN_CONTRACT);
    qn_param from[4], v[3], to[3];
    static const char *const names[] = {"x",  "y",  "z",     "mass",  "vx",
                                        "vy", "vz", "new_x", "new_y", "new_z"};
    for (int d = 0; d < 4; d++)
        from[d] = qn_view_param(b, names[d], dtype, 1, QN_READ_ONLY);
    for (int d = 0; d < 3; d++)
        v[d] = qn_view_param(b, names[4 + d], dtype, 1, 0);
    for (int d = 0; d < 3; d++)
        to[d] = qn_view_param(b, names[7 + d], dtype, 1, 0);
    qn_val dt = qn_scalar_param(b, "dt", dtype), softening = qn_scalar_param(b, "softening", dtype);
    qn_val i = qn_parallel_over(b, to[0], 0), begin = qn_lower(b, from[0], 0);
    qn_val zero = qn_const_float(b, dtype, 0), none[3] = {zero, zero, zero}, sum[3], away[3],
           next[3], pull[3];

    qn_val j = qn_for(b, begin, qn_add(b, begin, qn_extent(b, from[0], 0)), 1, 3, none, sum),
           square = softening;
    for (int d = 0; d < 3; d++) {
        away[d] = qn_sub(b, qn_load(b, from[d], 1, &j), qn_load(b, from[d], 1, &i));
        square = qn_add(b, qn_mul(b, away[d], away[d]), square);
    }
    qn_val inverse = qn_div(b, qn_const_float(b, dtype, 1), qn_sqrt(b, square)),
           mass = qn_load(b, from[3], 1, &j);
    qn_val force = qn_mul(b, mass, qn_mul(b, inverse, qn_mul(b, inverse, inverse)));
    for (int d = 0; d < 3; d++)
        next[d] = qn_add(b, qn_mul(b, away[d], force), sum[d]);
    qn_end_for(b, 3, next, pull);
    for (int d = 0; d < 3; d++) {
        qn_val speed = qn_add(b, qn_mul(b, dt, pull[d]), qn_load(b, v[d], 1, &i));
        qn_store(b, v[d], 1, &i, speed);
        qn_store(b, to[d], 1, &i, qn_add(b, qn_mul(b, dt, speed), qn_load(b, from[d], 1, &i)));
    }
    return math_kernel_finish(b, err);
}
/* [end] */

/* [pi] */
/** Counts the points of the unit square that lie within the circle of radius 1: four words make two
 * points an index. */
static inline qn_kernel *build_pi(qn_error *err)
{
    qn_builder *b = qn_builder_new("pi", QN_CONTRACT);
    qn_param inside = qn_view_param(b, "inside", QN_I64, 0, 0);
    qn_val seed = qn_scalar_param(b, "seed", QN_U64), n = qn_scalar_param(b, "n", QN_I64);
    qn_val i = qn_reduction(b, qn_index(b, 0), n), one = qn_const_float(b, QN_F32, 1), hits[2];

    qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, 1, &i);
    qn_val seed_and_index[2] = {seed, i}, word[4];
    qn_math(b, "random4", 2, seed_and_index, word);
    for (int point = 0; point < 2; point++) {
        qn_val x = qn_uniform(b, word[2 * point]), y = qn_uniform(b, word[2 * point + 1]);
        qn_val square = qn_add(b, qn_mul(b, x, x), qn_mul(b, y, y));
        hits[point] = qn_cast(b, QN_I64, qn_lt(b, square, one));
    }
    qn_store(b, inside, 0, NULL, qn_end_reduce(b, qn_add(b, hits[0], hits[1])));
    return math_kernel_finish(b, err);
}
/* [end] */

#endif
