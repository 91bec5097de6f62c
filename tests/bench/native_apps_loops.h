/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_apps_loops.h: the loops of native_apps.c, for the dtype REAL with functions EXP, LOG, SQRT
 * and ERF. Included once for each dtype.
 */

void NAME(softmax)(const void *arrays)
{
    const REAL *restrict x = ((void *const *)arrays)[0];
    REAL *restrict y = ((void *const *)arrays)[3];
    for (int64_t i = 0; i < SOFTMAX_ROWS; i++, x += SOFTMAX_COLUMNS, y += SOFTMAX_COLUMNS) {
        REAL largest = x[0], sum = 0;
        for (int64_t j = 0; j < SOFTMAX_COLUMNS; j++)
            largest = x[j] > largest ? x[j] : largest;
        for (int64_t j = 0; j < SOFTMAX_COLUMNS; j++) {
            y[j] = EXP(x[j] - largest);
            sum += y[j];
        }
        REAL scale = 1 / sum;
        for (int64_t j = 0; j < SOFTMAX_COLUMNS; j++)
            y[j] *= scale;
    }
}

static inline REAL NAME(normal_cdf)(REAL x)
{
    return (REAL)0.5 + (REAL)0.5 * ERF(x * (REAL)0.70710678118654752);
}

void NAME(black_scholes)(const void *arrays)
{
    const REAL *restrict share = ((void *const *)arrays)[0], *restrict strike =
                                                                 ((void *const *)arrays)[1];
    const REAL *restrict years = ((void *const *)arrays)[2];
    REAL *restrict call = ((void *const *)arrays)[3], *restrict put = ((void *const *)arrays)[4];
    const REAL r = (REAL)APP_RATE, v = (REAL)APP_VOLATILITY;
    for (int64_t i = 0; i < N_OPTIONS; i++) {
        REAL s = share[i], k = strike[i], t = years[i], spread = v * SQRT(t);
        REAL d1 = (LOG(s / k) + (r + (REAL)0.5 * v * v) * t) / spread;
        REAL today = k * EXP(-r * t),
             price = s * NAME(normal_cdf)(d1) - today * NAME(normal_cdf)(d1 - spread);
        call[i] = price;
        put[i] = price - s + today;
    }
}

void NAME(n_body)(const void *arrays)
{
    REAL *const *p = arrays;
    const REAL *restrict x = p[0], *restrict y = p[1], *restrict z = p[2], *restrict mass = p[3];
    const REAL dt = (REAL)APP_DT;
    for (int64_t i = 0; i < N_BODIES; i++) {
        REAL pull[3] = {0, 0, 0};
        for (int64_t j = 0; j < N_BODIES; j++) {
            REAL dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            REAL inverse = 1 / SQRT(dx * dx + dy * dy + dz * dz + (REAL)APP_SOFTENING);
            REAL force = mass[j] * inverse * inverse * inverse;
            pull[0] += dx * force;
            pull[1] += dy * force;
            pull[2] += dz * force;
        }
        for (int d = 0; d < 3; d++) {
            p[4 + d][i] += dt * pull[d];
            p[7 + d][i] = p[d][i] + dt * p[4 + d][i];
        }
    }
}
