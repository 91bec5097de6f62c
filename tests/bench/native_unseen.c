/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_unseen.c: the kernels of bench_cases_unseen.c as plain loops of C, with constant extents
 * and restrict pointers. Arrays come in the order of the kernel's parameters.
 */
#include "native_unseen.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LOOP(name) static void name(void *const *d)
#define FOR(i, begin, end) for (int i = (begin); i < (end); i++)
#define IN(type, name, n) const type *restrict name = d[n]
#define OUT(type, name, n) type *restrict name = d[n]

/* ---------------------------------------------------------------- stencils */

LOOP(star9)
{
    enum { N = 133, M = 201 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(i, 2, N - 2)
    FOR(j, 2, M - 2)
    {
        const float *p = x + i * M + j;
        float near = p[-1] + p[1] + p[-M] + p[M], far = p[-2] + p[2] + p[-2 * M] + p[2 * M];
        y[i * M + j] = 0.5f * p[0] + 0.1f * near + 0.025f * far;
    }
}

LOOP(box9)
{
    enum { N = 101, M = 131 };
    IN(double, x, 0);
    OUT(double, y, 1);
    FOR(i, 1, N - 1)
    FOR(j, 1, M - 1)
    {
        const double *p = x + i * M + j;
        y[i * M + j] = 0.25 * p[0] + 0.125 * (p[-1] + p[1] + p[-M] + p[M]) +
                       0.0625 * (p[-M - 1] + p[-M + 1] + p[M - 1] + p[M + 1]);
    }
}

LOOP(box27)
{
    enum { A = 20, B = 30, C = 41 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(i, 1, A - 1)
    FOR(j, 1, B - 1)
    FOR(k, 1, C - 1)
    {
        float s = 0;
        FOR(a, -1, 2)
        FOR(b, -1, 2)
        FOR(c, -1, 2)
        s += x[((i + a) * B + j + b) * C + k + c];
        y[(i * B + j) * C + k] = s * 0.037f;
    }
}

LOOP(upwind)
{
    enum { N = 101, M = 131 };
    IN(double, q, 0);
    IN(double, u, 1);
    OUT(double, y, 2);
    FOR(i, 1, N - 1)
    FOR(j, 1, M - 1)
    {
        int at = i * M + j;
        double back = q[at] - q[at - 1], ahead = q[at + 1] - q[at];
        y[at] = q[at] - 0.1 * u[at] * (u[at] > 1 ? back : ahead);
    }
}

LOOP(wave)
{
    enum { A = 18, B = 30, C = 41 };
    IN(float, u, 0);
    OUT(float, old, 1);
    FOR(i, 1, A - 1)
    FOR(j, 1, B - 1)
    FOR(k, 1, C - 1)
    {
        int at = (i * B + j) * C + k;
        float around =
            u[at - 1] + u[at + 1] + u[at - C] + u[at + C] + u[at - B * C] + u[at + B * C];
        old[at] = 2 * u[at] - old[at] + 0.1f * (around - 6 * u[at]);
    }
}

static inline double minmod(double a, double b)
{
    double m = fabs(a) < fabs(b) ? a : b;
    return a * b > 0 ? m : 0;
}

LOOP(limiter)
{
    enum { N = 5003 };
    IN(double, q, 0);
    OUT(double, y, 1);
    FOR(i, 2, N - 2)
    {
        double here = minmod(q[i] - q[i - 1], q[i + 1] - q[i]);
        double left = minmod(q[i - 1] - q[i - 2], q[i] - q[i - 1]);
        y[i] = q[i] - 0.3 * (q[i] + 0.35 * here - q[i - 1] - 0.35 * left);
    }
}

LOOP(faces)
{
    enum { N = 101, M = 131 };
    IN(double, x, 0);
    IN(double, k, 1);
    OUT(double, y, 2);
    FOR(i, 1, N - 1)
    FOR(j, 1, M - 1)
    {
        int at = i * M + j;
        double c = k[at], v = x[at];
        y[at] = (k[at + 1] + c) * (x[at + 1] - v) - (k[at - 1] + c) * (v - x[at - 1]) +
                (k[at + M] + c) * (x[at + M] - v) - (k[at - M] + c) * (v - x[at - M]);
    }
}

/* ---------------------------------------------------------------- small linear algebra */

LOOP(matvec5)
{
    enum { N = 403 };
    IN(double, m, 0);
    IN(double, x, 1);
    OUT(double, y, 2);
    FOR(n, 0, N)
    FOR(i, 0, 5)
    {
        double s = 0;
        FOR(k, 0, 5) s += m[n * 25 + i * 5 + k] * x[n * 5 + k];
        y[n * 5 + i] = s;
    }
}

LOOP(matvec4_soa)
{
    enum { N = 1003 };
    IN(float, m, 0);
    IN(float, x, 1);
    OUT(float, y, 2);
    FOR(i, 0, 4)
    FOR(n, 0, N)
    {
        float s = 0;
        FOR(k, 0, 4) s += m[(i * 4 + k) * N + n] * x[k * N + n];
        y[i * N + n] = s;
    }
}

LOOP(determinant3)
{
    enum { N = 1003 };
    IN(double, m, 0);
    OUT(double, y, 1);
    FOR(n, 0, N)
    {
        const double *a = m + 9 * n;
        y[n] = a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) +
               a[2] * (a[3] * a[7] - a[4] * a[6]);
    }
}

LOOP(product17)
{
    enum { N = 17 };
    IN(double, a, 0);
    IN(double, b, 1);
    OUT(double, c, 2);
    FOR(i, 0, N)
    {
        double row[N] = {0};
        FOR(k, 0, N)
        FOR(j, 0, N) row[j] += a[i * N + k] * b[k * N + j];
        FOR(j, 0, N) c[i * N + j] = row[j];
    }
}

LOOP(products8)
{
    enum { N = 64, M = 8 };
    IN(float, a, 0);
    IN(float, b, 1);
    OUT(float, c, 2);
    FOR(n, 0, N)
    FOR(i, 0, M)
    {
        float row[M] = {0};
        FOR(k, 0, M)
        FOR(j, 0, M) row[j] += a[(n * M + i) * M + k] * b[(n * M + k) * M + j];
        FOR(j, 0, M) c[(n * M + i) * M + j] = row[j];
    }
}

LOOP(rank1)
{
    enum { N = 100, M = 203 };
    IN(double, x, 0);
    IN(double, y, 1);
    OUT(double, a, 2);
    FOR(i, 0, N)
    FOR(j, 0, M) a[i * M + j] += x[i] * y[j];
}

LOOP(quadratic_form)
{
    enum { N = 90, M = 7 };
    IN(double, m, 0);
    IN(double, x, 1);
    OUT(double, y, 2);
    FOR(n, 0, N)
    {
        double s = 0;
        FOR(i, 0, M)
        {
            double t = 0;
            FOR(k, 0, M) t += m[i * M + k] * x[n * M + k];
            s += x[n * M + i] * t;
        }
        y[n] = s;
    }
}

/* ---------------------------------------------------------------- particles */

LOOP(particles)
{
    enum { N = 3001 };
    OUT(float, p, 0);
    OUT(float, v, 1);
    FOR(i, 0, N)
    {
        float w = v[i] * 0.999f - 0.01f, q = p[i] + 0.01f * w;
        v[i] = q < 0 ? -w : w;
        p[i] = q < 0 ? -q : q;
    }
}

LOOP(bodies)
{
    enum { N = 203 };
    IN(float, x, 0);
    IN(float, y, 1);
    OUT(float, a, 2);
    OUT(float, b, 3);
    FOR(i, 0, N)
    {
        float s = 0, t = 0;
        FOR(j, 0, N)
        {
            float dx = x[j] - x[i], dy = y[j] - y[i], r = dx * dx + dy * dy + 0.01f;
            float w = 1 / (r * sqrtf(r));
            s += w * dx;
            t += w * dy;
        }
        a[i] = s;
        b[i] = t;
    }
}

LOOP(pairs)
{
    enum { N = 203 };
    IN(double, x, 0);
    OUT(double, e, 1);
    FOR(i, 0, N)
    {
        double s = 0;
        FOR(j, 0, N)
        {
            double r = x[j] - x[i], q = 1 / (r * r + 0.5), c = q * q * q;
            s += c * c - c;
        }
        e[i] = s;
    }
}

/* ---------------------------------------------------------------- images */

LOOP(sobel)
{
    enum { N = 101, M = 203 };
    IN(uint8_t, x, 0);
    OUT(uint8_t, y, 1);
    FOR(i, 1, N - 1)
    FOR(j, 1, M - 1)
    {
        const uint8_t *p = x + i * M + j;
        int h = p[-M + 1] + 2 * p[1] + p[M + 1] - p[-M - 1] - 2 * p[-1] - p[M - 1];
        int v = p[M - 1] + 2 * p[M] + p[M + 1] - p[-M - 1] - 2 * p[-M] - p[-M + 1];
        int s = (h < 0 ? -h : h) + (v < 0 ? -v : v);
        y[i * M + j] = (uint8_t)(s > 255 ? 255 : s);
    }
}

LOOP(median3)
{
    enum { N = 101, M = 203 };
    IN(uint8_t, x, 0);
    OUT(uint8_t, y, 1);
    FOR(i, 0, N)
    FOR(j, 1, M - 1)
    {
        const uint8_t *p = x + i * M + j;
        uint8_t a = p[-1], b = p[0], c = p[1], low = a < b ? a : b, high = a < b ? b : a;
        uint8_t less = high < c ? high : c;
        y[i * M + j] = low > less ? low : less;
    }
}

LOOP(quantize)
{
    enum { N = 5003 };
    IN(float, x, 0);
    OUT(uint8_t, y, 1);
    FOR(i, 0, N)
    {
        float v = x[i] * 255.0f + 0.5f;
        v = v < 0 ? 0 : v > 255 ? 255 : v;
        y[i] = (uint8_t)v;
    }
}

LOOP(halve)
{
    enum { N = 60, M = 101 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(i, 0, N)
    FOR(j, 0, M)
    {
        const float *p = x + 2 * i * 2 * M + 2 * j;
        y[i * M + j] = 0.25f * (p[0] + p[1] + p[2 * M] + p[2 * M + 1]);
    }
}

LOOP(filter5)
{
    enum { N = 66, M = 134 };
    IN(float, x, 0);
    IN(float, w, 1);
    OUT(float, y, 2);
    FOR(i, 0, N - 4)
    FOR(j, 0, M - 4)
    {
        float s = 0;
        FOR(a, 0, 5)
        FOR(b, 0, 5) s += w[a * 5 + b] * x[(i + a) * M + j + b];
        y[i * (M - 4) + j] = s;
    }
}

LOOP(blend)
{
    enum { N = 9001 };
    IN(uint8_t, a, 0);
    IN(uint8_t, b, 1);
    IN(uint8_t, alpha, 2);
    OUT(uint8_t, y, 3);
    FOR(i, 0, N)
    y[i] = (uint8_t)((a[i] * alpha[i] + b[i] * (255 - alpha[i]) + 128) >> 8);
}

/* ---------------------------------------------------------------- recurrences */

LOOP(sweep)
{
    enum { N = 100, M = 203 };
    IN(double, a, 0);
    OUT(double, x, 1);
    FOR(i, 1, N)
    FOR(j, 0, M) x[i * M + j] -= a[i * M + j] * x[(i - 1) * M + j];
}

LOOP(channels)
{
    enum { N = 64, M = 203 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(c, 0, N)
    {
        float s = 0;
        FOR(t, 0, M)
        {
            s = 0.9f * s + 0.1f * x[c * M + t];
            y[c * M + t] = s;
        }
    }
}

LOOP(prefix)
{
    enum { N = 100, M = 203 };
    IN(int32_t, x, 0);
    OUT(int32_t, y, 1);
    FOR(c, 0, N)
    {
        int32_t s = 0;
        FOR(t, 0, M)
        {
            s += x[c * M + t];
            y[c * M + t] = s;
        }
    }
}

/* ---------------------------------------------------------------- several reductions */

LOOP(row_stats)
{
    enum { N = 100, M = 203 };
    IN(float, x, 0);
    OUT(float, low, 1);
    OUT(float, high, 2);
    OUT(float, mean, 3);
    FOR(i, 0, N)
    {
        const float *p = x + i * M;
        float a = INFINITY, b = -INFINITY, s = 0;
        FOR(j, 0, M)
        {
            a = p[j] < a ? p[j] : a;
            b = p[j] > b ? p[j] : b;
            s += p[j];
        }
        low[i] = a;
        high[i] = b;
        mean[i] = s / (float)M;
    }
}

LOOP(column_norms)
{
    enum { N = 100, M = 203 };
    IN(double, x, 0);
    OUT(double, most, 1);
    OUT(double, squares, 2);
    double *restrict a = most, *restrict b = squares;
    FOR(j, 0, M) a[j] = b[j] = 0;
    FOR(i, 0, N)
    FOR(j, 0, M)
    {
        double v = x[i * M + j], w = fabs(v);
        a[j] = w > a[j] ? w : a[j];
        b[j] += v * v;
    }
}

LOOP(cosine)
{
    enum { N = 5003 };
    IN(float, x, 0);
    IN(float, y, 1);
    OUT(float, r, 2);
    float a = 0, b = 0, c = 0;
    FOR(i, 0, N)
    {
        a += x[i] * y[i];
        b += x[i] * x[i];
        c += y[i] * y[i];
    }
    r[0] = a / sqrtf(b * c);
}

LOOP(weighted_mean)
{
    enum { N = 100, M = 203 };
    IN(double, x, 0);
    IN(double, w, 1);
    OUT(double, y, 2);
    double s[M] = {0}, t[M] = {0};
    FOR(i, 0, N)
    FOR(j, 0, M)
    {
        s[j] += w[i * M + j] * x[i * M + j];
        t[j] += w[i * M + j];
    }
    FOR(j, 0, M) y[j] = s[j] / t[j];
}

LOOP(center17)
{
    enum { N = 301, M = 17 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(i, 0, N)
    {
        float s = 0;
        FOR(j, 0, M) s += x[i * M + j];
        s /= (float)M;
        FOR(j, 0, M) y[i * M + j] = x[i * M + j] - s;
    }
}

/* ---------------------------------------------------------------- mixed types */

LOOP(dequantize)
{
    enum { N = 100, M = 203 };
    IN(int8_t, q, 0);
    IN(float, scale, 1);
    OUT(float, y, 2);
    FOR(i, 0, N)
    FOR(j, 0, M) y[i * M + j] = (float)q[i * M + j] * scale[i];
}

LOOP(widen)
{
    enum { N = 4003 };
    IN(float, x, 0);
    IN(double, z, 1);
    OUT(double, y, 2);
    FOR(i, 0, N) y[i] = (double)x[i] * 1.5 + z[i];
}

LOOP(saturate)
{
    enum { N = 9001 };
    IN(int16_t, a, 0);
    IN(int16_t, b, 1);
    OUT(int16_t, y, 2);
    FOR(i, 0, N)
    {
        int s = a[i] + b[i];
        y[i] = (int16_t)(s < -32768 ? -32768 : s > 32767 ? 32767 : s);
    }
}

LOOP(masked)
{
    enum { N = 5003 };
    IN(uint8_t, m, 0);
    IN(float, x, 1);
    OUT(float, y, 2);
    FOR(i, 0, N)
    if (m[i] > 50) y[i] = 0.5f * (y[i] + x[i]);
}

/* ---------------------------------------------------------------- strided and transposed */

LOOP(add_transposed)
{
    enum { N = 133, M = 129 };
    IN(double, a, 0);
    IN(double, b, 1);
    OUT(double, c, 2);
    FOR(i, 0, N)
    FOR(j, 0, M) c[i * M + j] = a[i * M + j] + b[j * N + i];
}

LOOP(magnitude)
{
    enum { N = 3001 };
    IN(float, z, 0);
    OUT(float, y, 1);
    FOR(i, 0, N) y[i] = sqrtf(z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1]);
}

LOOP(scale_columns)
{
    enum { N = 133, M = 129 };
    IN(float, x, 0);
    IN(float, s, 1);
    OUT(float, y, 2);
    FOR(j, 0, M)
    FOR(i, 0, N) y[j * N + i] = x[j * N + i] * s[j];
}

LOOP(every_third)
{
    enum { N = 2001 };
    IN(double, x, 0);
    OUT(double, y, 1);
    FOR(i, 0, N) y[i] = 2 * x[3 * i] + 1;
}

/* ---------------------------------------------------------------- small and odd */

LOOP(rotate3)
{
    enum { N = 1003 };
    IN(float, m, 0);
    IN(float, x, 1);
    OUT(float, y, 2);
    FOR(i, 0, 3)
    FOR(n, 0, N)
    {
        float s = 0;
        FOR(k, 0, 3) s += m[i * 3 + k] * x[k * N + n];
        y[i * N + n] = s;
    }
}

LOOP(horner)
{
    enum { N = 3001 };
    IN(double, c, 0);
    IN(double, x, 1);
    OUT(double, y, 2);
    FOR(i, 0, N)
    {
        double s = c[5];
        for (int k = 4; k >= 0; k--)
            s = s * x[i] + c[k];
        y[i] = s;
    }
}

LOOP(lower_copy)
{
    enum { N = 150 };
    IN(double, a, 0);
    OUT(double, b, 1);
    FOR(i, 0, N)
    FOR(j, 0, i + 1) b[i * N + j] = 2 * a[i * N + j];
}

LOOP(upper_product)
{
    enum { N = 70, K = 50 };
    IN(float, a, 0);
    IN(float, b, 1);
    OUT(float, c, 2);
    FOR(i, 0, N)
    {
        float row[N] = {0};
        FOR(k, 0, K)
        FOR(j, i, N) row[j] += a[i * K + k] * b[k * N + j];
        FOR(j, i, N) c[i * N + j] = row[j];
    }
}

LOOP(newton)
{
    enum { N = 1003 };
    IN(double, x, 0);
    OUT(double, y, 1);
    FOR(i, 0, N)
    {
        double s = 1;
        FOR(n, 0, 6) s = 0.5 * (s + x[i] / s);
        y[i] = s;
    }
}

LOOP(julia)
{
    enum { N = 60, M = 80 };
    OUT(int32_t, y, 0);
    FOR(i, 0, N)
    FOR(j, 0, M)
    {
        float a = -1.5f + 0.0375f * (float)j, b = -1.0f + 0.0333f * (float)i;
        int32_t n = 0;
        while (a * a + b * b <= 4 && n < 63) {
            float t = a * a - b * b - 0.8f;
            b = a * b + a * b + 0.156f;
            a = t;
            n++;
        }
        y[i * M + j] = n;
    }
}

LOOP(collatz)
{
    enum { N = 2001 };
    IN(int32_t, x, 0);
    OUT(int32_t, y, 1);
    FOR(i, 0, N)
    {
        int32_t v = x[i] + 1, n = 0;
        while (v > 1 && n < 200) {
            v = v & 1 ? 3 * v + 1 : v >> 1;
            n++;
        }
        y[i] = n;
    }
}

LOOP(depth3)
{
    enum { N = 40, M = 33, C = 3 };
    IN(float, x, 0);
    IN(float, w, 1);
    OUT(float, y, 2);
    FOR(i, 0, N)
    FOR(j, 0, M)
    FOR(o, 0, 5)
    {
        float s = 0;
        FOR(c, 0, C) s += x[(i * M + j) * C + c] * w[c * 5 + o];
        y[(i * M + j) * 5 + o] = s;
    }
}

LOOP(triangle)
{
    enum { N = 150 };
    OUT(double, a, 0);
    FOR(i, 0, N)
    FOR(j, i, N) a[i * N + j] = 0.5 * a[i * N + j] + 1;
}

LOOP(search)
{
    enum { N = 700, M = 64 };
    IN(float, x, 0);
    OUT(int32_t, y, 1);
    FOR(r, 0, N)
    {
        int k = 0;
        while (k < M && x[r * M + k] < 0.9f)
            k++;
        y[r] = k;
    }
}

LOOP(parity)
{
    enum { N = 4097 };
    IN(uint32_t, x, 0);
    OUT(uint8_t, y, 1);
    FOR(i, 0, N)
    {
        uint32_t v = x[i];
        v ^= v >> 16;
        v ^= v >> 8;
        v ^= v >> 4;
        v ^= v >> 2;
        v ^= v >> 1;
        y[i] = (uint8_t)(v & 1);
    }
}

LOOP(windows3)
{
    enum { N = 30, M = 28 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(k, 0, 54)
    FOR(i, 0, M)
    FOR(j, 0, M)
    y[(k * M + i) * M + j] = x[(k / 9 * N + i + k % 9 / 3) * N + j + k % 3];
}

LOOP(shuffle2)
{
    enum { N = 40, M = 44 };
    IN(float, x, 0);
    OUT(float, y, 1);
    FOR(c, 0, 3)
    FOR(i, 0, 2 * N)
    FOR(j, 0, 2 * M)
    y[(c * 2 * N + i) * 2 * M + j] = x[((4 * c + i % 2 * 2 + j % 2) * N + i / 2) * M + j / 2];
}

LOOP(count_above)
{
    enum { N = 300, M = 200 };
    IN(float, x, 0);
    OUT(int32_t, y, 1);
    FOR(r, 0, N)
    {
        int n = 0;
        FOR(k, 0, M)
        if (x[r * M + k] > 0.6f)
            n++;
        y[r] = n;
    }
}

LOOP(sum_until)
{
    enum { N = 400, M = 256 };
    IN(int32_t, x, 0);
    OUT(int32_t, y, 1);
    FOR(r, 0, N)
    {
        int k = 0, s = 0;
        while (k < M && x[r * M + k] != 42) {
            s += x[r * M + k];
            k++;
        }
        y[r] = s;
    }
}

static const struct {
    const char *name;
    native_schedule_loop loop;
} loops[] = {
#define X(name) {#name, name},
    UNSEEN_KERNELS(X)
#undef X
};

native_schedule_loop native_unseen(const char *kernel)
{
    for (unsigned n = 0; n < sizeof loops / sizeof loops[0]; n++)
        if (strcmp(loops[n].name, kernel) == 0)
            return loops[n].loop;
    return 0;
}
