/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 07_math.c: what mathematical functions and random numbers are for: softmax, prices of options
 * (Black-Scholes), bodies that attract each other, and pi by counting random points. The kernels
 * stand in math_kernels.h. Each result is compared with a property that it must have, and with the
 * interpreter, which computes the same bits.
 */
#include "example.h"
#include "math_kernels.h"

#include <math.h>
#include <string.h>

enum { ROWS = 20, COLUMNS = 300, OPTIONS = 1000, BODIES = 200, MOST = ROWS * COLUMNS };

static double memory[2][16][MOST]; /* arrays of code and of the interpreter */

/* A view of array i; extents of 0 are dimensions that it lacks. */
static qn_view wrap(int side, int i, int dtype, int64_t rows, int64_t columns)
{
    const int64_t extent[2] = {rows, columns};
    qn_error err = {0};
    qn_layout l;
    qn_view v;
    must(qn_layout_right((rows > 0) + (columns > 0), extent, &l, &err), &err);
    must(qn_view_wrap("array", memory[side][i], dtype, &l, 0, &v, &err), &err);
    return v;
}

/* Runs a kernel on side 0 as code and on side 1 by the interpreter. */
static void run(qn_context *c, const qn_kernel *k, int n, const qn_arg *args, int side)
{
    qn_error err = {0};
    qn_options o = {.bytes = sizeof o, .engine = side ? QN_ENGINE_INTERP : QN_ENGINE_AUTO};
    must(qn_launch(c, k, n, args, &o, &err), &err);
}

static bool is_equal_everywhere(void)
{
    return memcmp(memory[0], memory[1], sizeof memory[0]) == 0;
}

/* Numbers in [low, high) for both sides. */
static void fill(int i, int n, double low, double high)
{
    for (int at = 0; at < n; at++)
        memory[0][i][at] = memory[1][i][at] = low + (high - low) * ((at * 7919 % 1009) / 1009.0);
}

static void clear(void)
{
    memset(memory, 0, sizeof memory);
}

/* [softmax-run] */
static int run_softmax(qn_context *c)
{
    qn_error err = {0};
    qn_kernel *(*const build[])(int, qn_error *) = {build_softmax_largest, build_softmax_exp,
                                                     build_softmax_scale, build_softmax_scaled};
    qn_kernel *k[4];
    for (int n = 0; n < 4; n++) {
        k[n] = build[n](QN_F64, &err);
        must(k[n] ? QN_OK : (qn_status)err.status, &err);
    }
    clear();
    fill(0, MOST, 0, 900); /* exp(900) is infinite */
    for (int side = 0; side < 2; side++) {
        const qn_view x = wrap(side, 0, QN_F64, ROWS, COLUMNS),
                      y = wrap(side, 1, QN_F64, ROWS, COLUMNS);
        const qn_view largest = wrap(side, 2, QN_F64, ROWS, 0),
                      scale = wrap(side, 3, QN_F64, ROWS, 0);
        run(c, k[0], 2, (const qn_arg[]){qn_arg_view(&x), qn_arg_view(&largest)}, side);
        run(c, k[1], 3, (const qn_arg[]){qn_arg_view(&x), qn_arg_view(&y), qn_arg_view(&largest)},
            side);
        run(c, k[2], 2, (const qn_arg[]){qn_arg_view(&y), qn_arg_view(&scale)}, side);
        run(c, k[3], 2, (const qn_arg[]){qn_arg_view(&y), qn_arg_view(&scale)}, side);
    }
    /* [end] */
    double worst = 0;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++)
            sum += memory[0][1][i * COLUMNS + j];
        worst = fmax(worst, fabs(sum - 1));
    }
    printf("Softmax of %d rows of %d numbers: sums differ from 1 by %.1e at most\n", ROWS, COLUMNS,
           worst);
    for (int n = 0; n < 4; n++)
        qn_kernel_release(k[n]);
    return check(worst < 1e-13, "each row sums to 1") +
           check(is_equal_everywhere(), "the interpreter has the same bits");
}

static int run_black_scholes(qn_context *c)
{
    qn_error err = {0};
    qn_kernel *k = build_black_scholes(QN_F64, &err);
    must(k ? QN_OK : (qn_status)err.status, &err);
    clear();
    fill(0, OPTIONS, 80, 120);
    fill(1, OPTIONS, 90, 110);
    fill(2, OPTIONS, 0.1, 2);
    memory[0][0][0] = memory[1][0][0] = memory[0][1][0] = memory[1][1][0] =
        100; /* the usual example */
    memory[0][2][0] = memory[1][2][0] = 1;
    for (int side = 0; side < 2; side++) {
        qn_view v[5];
        qn_arg args[7] = {[5] = qn_arg_f64(0.05), [6] = qn_arg_f64(0.2)};
        for (int i = 0; i < 5; i++) {
            v[i] = wrap(side, i, QN_F64, OPTIONS, 0);
            args[i] = qn_arg_view(&v[i]);
        }
        run(c, k, 7, args, side);
    }
    double call = memory[0][3][0], put = memory[0][4][0];
    printf(
        "Share 100, strike price 100, a year, 5 %% interest, volatility 0.2: call %.4f, put %.4f\n",
        call, put);
    qn_kernel_release(k);
    return check(fabs(call - 10.450583572185565) < 1e-12,
                 "the price of the call as printed in textbooks: 10.4506") +
           check(is_equal_everywhere(), "the interpreter has the same bits");
}

/* The sum of mass times velocity of dimension d, which no step changes. */
static double momentum(int d)
{
    double sum = 0;
    for (int i = 0; i < BODIES; i++)
        sum += memory[0][3][i] * memory[0][4 + d][i];
    return sum;
}

static int run_n_body(qn_context *c)
{
    qn_error err = {0};
    qn_kernel *k = build_n_body(QN_F64, &err);
    must(k ? QN_OK : (qn_status)err.status, &err);
    clear();
    for (int d = 0; d < 3; d++)
        fill(d, BODIES, -1, 1 + 0.37 * d);
    fill(3, BODIES, 0.5, 1);
    for (int side = 0; side < 2; side++) {
        qn_view v[10];
        qn_arg args[12] = {[10] = qn_arg_f64(1e-3), [11] = qn_arg_f64(1e-2)};
        for (int i = 0; i < 10; i++) {
            v[i] = wrap(side, i, QN_F64, BODIES, 0);
            args[i] = qn_arg_view(&v[i]);
        }
        run(c, k, 12, args, side);
    }
    double worst = 0;
    for (int d = 0; d < 3; d++)
        worst = fmax(worst, fabs(momentum(d)));
    printf("A step of %d bodies from rest: total momentum %.1e\n", BODIES, worst);
    qn_kernel_release(k);
    return check(worst < 1e-12 && memory[0][4][0] != 0, "momentum is kept") +
           check(is_equal_everywhere(), "the interpreter has the same bits");
}

static int run_pi(qn_context *c)
{
    enum { PAIRS = 20000 };
    qn_error err = {0};
    qn_kernel *k = build_pi(&err);
    must(k ? QN_OK : (qn_status)err.status, &err);
    int64_t inside[2];
    clear();
    for (int side = 0; side < 2; side++) {
        const qn_view v = wrap(side, 0, QN_I64, 0, 0);
        const qn_arg args[] = {qn_arg_view(&v), qn_arg_int(QN_U64, 2026),
                               qn_arg_int(QN_I64, PAIRS)};
        run(c, k, 3, args, side);
        memcpy(&inside[side], memory[side][0], sizeof inside[side]);
    }
    double pi = 4.0 * (double)inside[0] / (2.0 * (double)PAIRS);
    printf("Of %d random points %" PRId64 " lie in the circle: pi is about %.4f\n", 2 * PAIRS,
           inside[0], pi);
    qn_kernel_release(k);
    return check(fabs(pi - 3.14159265) < 0.041, "within five standard deviations of pi") +
           check(inside[0] == inside[1], "the interpreter counts as many");
}

int main(void)
{
    qn_error err = {0};
    qn_context *c = NULL;
    must(qn_context_new(NULL, &c, &err), &err);
    int failed = run_softmax(c) + run_black_scholes(c) + run_n_body(c) + run_pi(c);
    qn_context_release(c);
    return failed != 0;
}
