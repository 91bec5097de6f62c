/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.c: the expression of the bench, written by hand in C and compiled with -O3 for this
 * processor.
 */
#include "language.h"

/* [plain] */
/* The loop as one writes it. The order of the sum is that of the loop, so compilers do not
 * vectorize it. */
void plain_loop(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
                double *result)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) {
            const double d = A[i * columns + j] - m[j];
            sum += w[j] * d * d;
        }
        result[i] = sum;
    }
}

/* The loop of someone who knows that: many sums, which a compiler keeps in vectors. */
void plain_sums(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
                double *result)
{
    enum { N = 32 };
    for (int64_t i = 0; i < rows; i++) {
        const double *row = A + i * columns;
        double sums[N] = {0}, sum = 0;
        int64_t j = 0;
        for (; j + N <= columns; j += N)
            for (int l = 0; l < N; l++) {
                const double d = row[j + l] - m[j + l];
                sums[l] += w[j + l] * d * d;
            }
        for (; j < columns; j++) {
            const double d = row[j] - m[j];
            sum += w[j] * d * d;
        }
        for (int l = 0; l < N; l++)
            sum += sums[l];
        result[i] = sum;
    }
}
/* [end] */
