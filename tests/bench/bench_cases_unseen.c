/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_unseen.c: kernels that nobody tuned the planner for, against plain loops of C
 * (native_unseen.c): stencils, small linear algebra, particles, images, recurrences, several
 * reductions, mixed types, odd strides and small extents. No rule or number may be chosen by them.
 */
#include "bench_model.h"
#include "native_unseen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 4, MOST_TEXT = 2048 };

/** Extents of each array, in the order of parameters: "101,131 101,131". 'l' behind them: the
 * first dimension lies together; "/n": only each n-th element of the last dimension is seen; "*n":
 * each n-th of both. */
typedef struct unseen {
    const char *name, *parameters, *body, *arrays;
} unseen;

static const unseen cases[] = {
    {"star9", "x: f32[,], y: f32[,]",
     "for all i, j in inner(y, 2) {"
     " near = x[i, j-1] + x[i, j+1] + x[i-1, j] + x[i+1, j]\n"
     " far = x[i, j-2] + x[i, j+2] + x[i-2, j] + x[i+2, j]\n"
     " y[i, j] = 0.5 * x[i, j] + 0.1 * near + 0.025 * far }",
     "133,201 133,201"},
    {"box9", "x: f64[,], y: f64[,]",
     "for all i, j in inner(y, 1) {"
     " side = x[i, j-1] + x[i, j+1] + x[i-1, j] + x[i+1, j]\n"
     " corner = x[i-1, j-1] + x[i-1, j+1] + x[i+1, j-1] + x[i+1, j+1]\n"
     " y[i, j] = 0.25 * x[i, j] + 0.125 * side + 0.0625 * corner }",
     "101,131 101,131"},
    {"box27", "x: f32[,,], y: f32[,,]",
     "for all i, j, k in inner(y, 1) {"
     " y[i, j, k] = 0.037 * sum indexed a in 0 .. 3, b in 0 .. 3, c in 0 .. 3 of"
     " x[i + a - 1, j + b - 1, k + c - 1] }",
     "20,30,41 20,30,41"},
    {"upwind", "q: f64[,], u: f64[,], y: f64[,]",
     "for all i, j in inner(y, 1) {"
     " back = q[i, j] - q[i, j-1]\n ahead = q[i, j+1] - q[i, j]\n"
     " y[i, j] = q[i, j] - 0.1 * u[i, j] * select(u[i, j] > 1, back, ahead) }",
     "101,131 101,131 101,131"},
    {"wave", "u: f32[,,], old: f32[,,]",
     "for all i, j, k in inner(u, 1) {"
     " around = u[i, j, k-1] + u[i, j, k+1] + u[i, j-1, k] + u[i, j+1, k] + u[i-1, j, k]"
     " + u[i+1, j, k]\n"
     " old[i, j, k] = 2 * u[i, j, k] - old[i, j, k] + 0.1 * (around - 6 * u[i, j, k]) }",
     "18,30,41 18,30,41"},
    {"limiter", "q: f64[], y: f64[]",
     "for all i in 2 .. extent(y, 0) - 2 {"
     " a = q[i] - q[i-1]\n b = q[i+1] - q[i]\n c = q[i-1] - q[i-2]\n"
     " here = select(a * b > 0, select(abs(a) < abs(b), a, b), 0)\n"
     " left = select(c * a > 0, select(abs(c) < abs(a), c, a), 0)\n"
     " y[i] = q[i] - 0.3 * (q[i] + 0.35 * here - q[i-1] - 0.35 * left) }",
     "5003 5003"},
    {"faces", "x: f64[,], k: f64[,], y: f64[,]",
     "for all i, j in inner(y, 1) { c = k[i, j]\n v = x[i, j]\n"
     " y[i, j] = (k[i, j+1] + c) * (x[i, j+1] - v) - (k[i, j-1] + c) * (v - x[i, j-1])"
     " + (k[i+1, j] + c) * (x[i+1, j] - v) - (k[i-1, j] + c) * (v - x[i-1, j]) }",
     "101,131 101,131 101,131"},
    {"matvec5", "m: f64[,,], x: f64[,], y: f64[,]",
     "for all n, i in y { y[n, i] = sum k in dim(x, 1) of m[n, i, k] * x[n, k] }",
     "403,5,5 403,5 403,5"},
    {"matvec4_soa", "m: f32[,,], x: f32[,], y: f32[,]",
     "for all i, n in y { y[i, n] = sum k in dim(x, 0) of m[i, k, n] * x[k, n] }",
     "4,4,1003 4,1003 4,1003"},
    {"determinant3", "m: f64[,,], y: f64[]",
     "for all n in y {"
     " p = m[n, 1, 1] * m[n, 2, 2] - m[n, 1, 2] * m[n, 2, 1]\n"
     " q = m[n, 1, 0] * m[n, 2, 2] - m[n, 1, 2] * m[n, 2, 0]\n"
     " r = m[n, 1, 0] * m[n, 2, 1] - m[n, 1, 1] * m[n, 2, 0]\n"
     " y[n] = m[n, 0, 0] * p - m[n, 0, 1] * q + m[n, 0, 2] * r }",
     "1003,3,3 1003"},
    {"product17", "a: f64[,], b: f64[,], c: f64[,]",
     "for all i, j in c { c[i, j] = sum k in dim(a, 1) of a[i, k] * b[k, j] }",
     "17,17 17,17 17,17"},
    {"products8", "a: f32[,,], b: f32[,,], c: f32[,,]",
     "for all n, i, j in c { c[n, i, j] = sum k in dim(a, 2) of a[n, i, k] * b[n, k, j] }",
     "64,8,8 64,8,8 64,8,8"},
    {"rank1", "x: f64[], y: f64[], a: f64[,]", "for all i, j in a { a[i, j] += x[i] * y[j] }",
     "100 203 100,203"},
    {"quadratic_form", "m: f64[,], x: f64[,], y: f64[]",
     "for all n in y {"
     " y[n] = sum i in dim(m, 0), k in dim(m, 1) of x[n, i] * m[i, k] * x[n, k] }",
     "7,7 90,7 90"},
    {"particles", "p: f32[], v: f32[]",
     "for all i in p { w = v[i] * 0.999 - 0.01\n q = p[i] + 0.01 * w\n"
     " v[i] = select(q < 0, -w, w)\n p[i] = select(q < 0, -q, q) }",
     "3001 3001"},
    {"bodies", "x: f32[], y: f32[], a: f32[], b: f32[]",
     "for all i in a {"
     " a[i] = sum j in x of (x[j] - x[i])"
     " / ((((x[j] - x[i]) * (x[j] - x[i]) + (y[j] - y[i]) * (y[j] - y[i])) + 0.01)"
     " * sqrt(((x[j] - x[i]) * (x[j] - x[i]) + (y[j] - y[i]) * (y[j] - y[i])) + 0.01))\n"
     " b[i] = sum j in x of (y[j] - y[i])"
     " / ((((x[j] - x[i]) * (x[j] - x[i]) + (y[j] - y[i]) * (y[j] - y[i])) + 0.01)"
     " * sqrt(((x[j] - x[i]) * (x[j] - x[i]) + (y[j] - y[i]) * (y[j] - y[i])) + 0.01)) }",
     "203 203 203 203"},
    {"pairs", "x: f64[], e: f64[]",
     "for all i in e { e[i] = sum j in x of"
     " (1 / ((x[j]-x[i]) * (x[j]-x[i]) + 0.5)) * (1 / ((x[j]-x[i]) * (x[j]-x[i]) + 0.5))"
     " * (1 / ((x[j]-x[i]) * (x[j]-x[i]) + 0.5))"
     " * ((1 / ((x[j]-x[i]) * (x[j]-x[i]) + 0.5)) * (1 / ((x[j]-x[i]) * (x[j]-x[i]) + 0.5))"
     " * (1 / ((x[j]-x[i]) * (x[j]-x[i]) + 0.5)) - 1) }",
     "203 203"},
    {"sobel", "x: u8[,], y: u8[,]",
     "for all i, j in inner(y, 1) {"
     " h = i32(x[i-1, j+1]) + 2 * i32(x[i, j+1]) + i32(x[i+1, j+1]) - i32(x[i-1, j-1])"
     " - 2 * i32(x[i, j-1]) - i32(x[i+1, j-1])\n"
     " v = i32(x[i+1, j-1]) + 2 * i32(x[i+1, j]) + i32(x[i+1, j+1]) - i32(x[i-1, j-1])"
     " - 2 * i32(x[i-1, j]) - i32(x[i-1, j+1])\n"
     " y[i, j] = u8(min(abs(h) + abs(v), 255)) }",
     "101,203 101,203"},
    {"median3", "x: u8[,], y: u8[,]",
     "for all i in dim(y, 0), j in 1 .. extent(y, 1) - 1 {"
     " low = min(x[i, j-1], x[i, j])\n high = max(x[i, j-1], x[i, j])\n"
     " y[i, j] = max(low, min(high, x[i, j+1])) }",
     "101,203 101,203"},
    {"quantize", "x: f32[], y: u8[]",
     "for all i in y { y[i] = u8(min(max(x[i] * 255 + 0.5, 0), 255)) }", "5003 5003"},
    {"halve", "x: f32[,], y: f32[,]",
     "for all i, j in y { y[i, j] = 0.25 * (x[2*i, 2*j] + x[2*i, 2*j + 1] + x[2*i + 1, 2*j]"
     " + x[2*i + 1, 2*j + 1]) }",
     "120,202 60,101"},
    {"filter5", "x: f32[,], w: f32[,], y: f32[,]",
     "for all i, j in y {"
     " y[i, j] = sum indexed a in dim(w, 0), b in dim(w, 1) of w[a, b] * x[i + a, j + b] }",
     "66,134 5,5 62,130"},
    {"blend", "a: u8[], b: u8[], alpha: u8[], y: u8[]",
     "for all i in y { t = i32(alpha[i])\n"
     " y[i] = u8((i32(a[i]) * t + i32(b[i]) * (255 - t) + 128) >> 8) }",
     "9001 9001 9001 9001"},
    {"sweep", "a: f64[,], x: f64[,]",
     "for sequential i in 1 .. extent(x, 0) { for all j in dim(x, 1) {"
     " x[i, j] -= a[i, j] * x[i - 1, j] } }",
     "100,203 100,203"},
    {"channels", "x: f32[,], y: f32[,]",
     "for all c in dim(y, 0) { s: f32 = 0\n for t in 0 .. extent(y, 1) {"
     " s = 0.9 * s + 0.1 * x[c, t]\n y[c, t] = s } }",
     "64,203 64,203"},
    {"prefix", "x: i32[,], y: i32[,]",
     "for all c in dim(y, 0) { s: i32 = 0\n for t in 0 .. extent(y, 1) {"
     " s += x[c, t]\n y[c, t] = s } }",
     "100,203 100,203"},
    {"row_stats", "x: f32[,], low: f32[], high: f32[], mean: f32[]",
     "for all i in low { low[i] = min j in dim(x, 1) of x[i, j]\n"
     " high[i] = max j in dim(x, 1) of x[i, j]\n"
     " mean[i] = (sum j in dim(x, 1) of x[i, j]) / f32(extent(x, 1)) }",
     "100,203 100 100 100"},
    {"column_norms", "x: f64[,], most: f64[], squares: f64[]",
     "for all j in most { most[j] = max i in dim(x, 0) of abs(x[i, j])\n"
     " squares[j] = sum i in dim(x, 0) of x[i, j] * x[i, j] }",
     "100,203 203 203"},
    {"cosine", "x: f32[], y: f32[], r: f32[0]",
     "a = sum i in x of x[i] * y[i]\n b = sum i in x of x[i] * x[i]\n"
     " c = sum i in x of y[i] * y[i]\n r[] = a / sqrt(b * c)",
     "5003 5003 1"},
    {"weighted_mean", "x: f64[,], w: f64[,], y: f64[]",
     "for all j in y { y[j] = (sum i in dim(x, 0) of w[i, j] * x[i, j])"
     " / (sum i in dim(x, 0) of w[i, j]) }",
     "100,203 100,203 203"},
    {"center17", "x: f32[,], y: f32[,]",
     "for all i, j in y { y[i, j] = x[i, j] - (sum k in dim(x, 1) of x[i, k]) / 17 }",
     "301,17 301,17"},
    {"dequantize", "q: i8[,], scale: f32[], y: f32[,]",
     "for all i, j in y { y[i, j] = f32(q[i, j]) * scale[i] }", "100,203 100 100,203"},
    {"widen", "x: f32[], z: f64[], y: f64[]",
     "for all i in y { y[i] = f64(x[i]) * 1.5 + z[i] }", "4003 4003 4003"},
    {"saturate", "a: i16[], b: i16[], y: i16[]",
     "for all i in y { y[i] = i16(min(max(i32(a[i]) + i32(b[i]), -32768), 32767)) }",
     "9001 9001 9001"},
    {"masked", "m: u8[], x: f32[], y: f32[]",
     "for all i in y { if m[i] > 50 { y[i] = 0.5 * (y[i] + x[i]) } }", "5003 5003 5003"},
    {"add_transposed", "a: f64[,], b: f64[,], c: f64[,]",
     "for all i, j in c { c[i, j] = a[i, j] + b[i, j] }", "133,129 133,129l 133,129"},
    {"magnitude", "z: f32[,], y: f32[]",
     "for all i in y { y[i] = sqrt(z[i, 0] * z[i, 0] + z[i, 1] * z[i, 1]) }", "3001,2 3001"},
    {"scale_columns", "x: f32[,], s: f32[], y: f32[,]",
     "for all i, j in y { y[i, j] = x[i, j] * s[j] }", "133,129l 129 133,129l"},
    {"every_third", "x: f64[], y: f64[]", "for all i in y { y[i] = 2 * x[i] + 1 }",
     "2001/3 2001"},
    {"rotate3", "m: f32[,], x: f32[,], y: f32[,]",
     "for all i, n in y { y[i, n] = sum k in dim(m, 1) of m[i, k] * x[k, n] }",
     "3,3 3,1003 3,1003"},
    {"horner", "c: f64[], x: f64[], y: f64[]",
     "for all i in y { s: f64 = c[5]\n for k in 0 .. 5 { s = s * x[i] + c[4 - k] }\n y[i] = s }",
     "6 3001 3001"},
    {"lower_copy", "a: f64[,], b: f64[,]",
     "for all i, j in b { if j <= i { b[i, j] = 2 * a[i, j] } }", "150,150 150,150"},
    {"upper_product", "a: f32[,], b: f32[,], c: f32[,]",
     "for all i, j in c { t = sum k in dim(a, 1) of a[i, k] * b[k, j]\n"
     " if j >= i { c[i, j] = t } }",
     "70,50 50,70 70,70"},
    {"newton", "x: f64[], y: f64[]",
     "for all i in y { s: f64 = 1\n for k in 0 .. 6 { s = 0.5 * (s + x[i] / s) }\n y[i] = s }",
     "1003 1003"},
    {"julia", "y: i32[,]",
     "for all i, j in y { a = -1.5 + 0.0375 * f32(j)\n b = -1.0 + 0.0333 * f32(i)\n n: i32 = 0\n"
     " while a * a + b * b <= 4 && n < 63 max 64 {"
     " a, b = a * a - b * b - 0.8, a * b + a * b + 0.156\n n += 1 }\n y[i, j] = n }",
     "60,80"},
    {"collatz", "x: i32[], y: i32[]",
     "for all i in y { v = x[i] + 1\n n: i32 = 0\n"
     " while v > 1 && n < 200 max 201 { v = select((v & 1) == 1, 3 * v + 1, v >> 1)\n n += 1 }\n"
     " y[i] = n }",
     "2001 2001"},
    {"depth3", "x: f32[,,], w: f32[,], y: f32[,,]",
     "for all i, j, o in y { y[i, j, o] = sum c in dim(w, 0) of x[i, j, c] * w[c, o] }",
     "40,33,3 3,5 40,33,5"},
    {"triangle", "a: f64[,]",
     "for all i in dim(a, 0) { for j in i .. extent(a, 1) { a[i, j] = 0.5 * a[i, j] + 1 } }",
     "150,150"},
    {"count_above", "x: f32[,], y: i32[]",
     "for all r in y { n: i32 = 0\n"
     " for k in 0 .. extent(x, 1) { if x[r, k] > 0.6 { n += 1 } }\n y[r] = n }",
     "300,200 300"},
    {"sum_until", "x: i32[,], y: i32[]",
     "for all r in y { k: i64 = 0\n s: i32 = 0\n"
     " while k < extent(x, 1) && x[r, k] != 42 max 256 { s += x[r, k]\n k += 1 }\n y[r] = s }",
     "400,256 400"},
    {"search", "x: f32[,], y: i32[]",
     "for all r in y { k: i64 = 0\n while k < extent(x, 1) && x[r, k] < 0.9 max 100 { k += 1 }\n"
     " y[r] = i32(k) }",
     "700,64 700"},
    {"parity", "x: u32[], y: u8[]",
     "for all i in y { v = x[i]\n v = v ^ (v >> 16)\n v = v ^ (v >> 8)\n v = v ^ (v >> 4)\n"
     " v = v ^ (v >> 2)\n v = v ^ (v >> 1)\n y[i] = u8(v & 1) }",
     "4097 4097"},
    {"windows3", "x: f32[,,], y: f32[,]",
     "for all k, p in y { y[k, p] = x[k / 9, p / 28 + k % 9 / 3, p % 28 + k % 3] }",
     "6,30,30 54,784"},
    {"shuffle2", "x: f32[,,], y: f32[,,]",
     "for all c, i, j in y { y[c, i, j] = x[4 * c + 2 * (i % 2) + j % 2, i / 2, j / 2] }",
     "12,40,44 3,80,88"},
};

/** A case with its arrays. */
typedef struct unseen_run {
    qn_kernel *k;
    int n;
    bench_memory memory;
    int64_t elements[BENCH_ARRAYS];
    qn_view view[BENCH_ARRAYS];
    qn_layout layout[BENCH_ARRAYS];
    qn_arg args[BENCH_ARRAYS];
    native_schedule_loop loop;
} unseen_run;

/* ---------------------------------------------------------------- arrays */

/** The next array of a list: its layout, and the elements of its memory. */
static const char *read_array(const char *at, int rank, qn_layout *l, int64_t *elements)
{
    int64_t extent[MOST_RANK] = {1}, step = 1, n = 1;
    bool is_left = false;
    for (int r = 0; r == 0 || r < rank; r++) {
        char *end;
        extent[r] = strtoll(at + (*at == ',' || *at == ' '), &end, 10);
        at = end;
    }
    if (*at == 'l') {
        is_left = true;
        at++;
    } else if (*at == '/') {
        step = at[1] - '0';
        at += 2;
    }
    l->rank = rank;
    for (int m = 0; m < rank; m++) {
        int r = is_left ? m : rank - 1 - m;
        n *= m == 0 ? step : 1;
        l->dim[r].extent = extent[r];
        l->dim[r].stride = n;
        n *= extent[r];
    }
    *elements = n;
    return at;
}

/** Floats from 0 to 1, integers below 100, the same for each call. */
static void fill(unseen_run *x)
{
    for (int p = 0; p < x->n; p++) {
        uint32_t state = (uint32_t)p * 77 + 5;
        for (int64_t i = 0; i < x->elements[p]; i++) {
            state = state * 1664525u + 1013904223u;
            double value = (double)(state >> 8) * 0x1p-24;
            char *to = (char *)x->memory.at[p] + i * qn_dtype_bytes(x->view[p].dtype);
            float f32 = (float)value;
            int32_t i32 = (int32_t)(value * 100);
            if (x->view[p].dtype == QN_F64)
                memcpy(to, &value, sizeof value);
            else if (x->view[p].dtype == QN_F32)
                memcpy(to, &f32, sizeof f32);
            else
                memcpy(to, &i32, (size_t)qn_dtype_bytes(x->view[p].dtype)); /* little-endian */
        }
    }
}

static double element(const unseen_run *x, int p, const char *at)
{
    double f64;
    float f32;
    int32_t i32 = 0;
    if (x->view[p].dtype == QN_F64)
        return memcpy(&f64, at, sizeof f64), f64;
    if (x->view[p].dtype == QN_F32)
        return memcpy(&f32, at, sizeof f32), f32;
    return memcpy(&i32, at, (size_t)qn_dtype_bytes(x->view[p].dtype)), i32;
}

/** C may contract and add otherwise. */
static bool is_close(const unseen_run *x, const char *kept)
{
    for (int p = 0; p < x->n; p++) {
        int dtype = x->view[p].dtype;
        int64_t bytes = qn_dtype_bytes(dtype);
        const char *theirs = x->memory.at[p], *ours = kept + (theirs - x->memory.first);
        double tolerance = dtype == QN_F64 ? 1e-12 : dtype == QN_F32 ? 1e-4 : 0;
        for (int64_t i = 0; i < x->elements[p]; i++) {
            double a = element(x, p, theirs + i * bytes), b = element(x, p, ours + i * bytes);
            if (!(fabs(a - b) <= tolerance * (1 + fabs(b))) && !(isnan(a) && isnan(b)))
                return false;
        }
    }
    return true;
}

static bool make(unseen_run *x, const unseen *c, qn_error *err)
{
    char text[MOST_TEXT];
    size_t bytes[BENCH_ARRAYS];
    const char *at = c->arrays;
    int n = snprintf(text, sizeof text, "kernel %s (%s) contract {\n%s\n}\n", c->name,
                     c->parameters, c->body);
    if (qn_kernel_parse(text, (size_t)n, &x->k, err) != QN_OK)
        return false;
    x->n = qn_kernel_n_params(x->k);
    x->loop = native_unseen(c->name);
    for (int p = 0; p < x->n; p++) {
        qn_param_info info;
        if (qn_kernel_param(x->k, p, &info, sizeof info, err) != QN_OK)
            return false;
        x->view[p].dtype = info.dtype;
        at = read_array(at, info.rank, &x->layout[p], &x->elements[p]);
        bytes[p] = (size_t)(x->elements[p] * qn_dtype_bytes(info.dtype));
    }
    if (bench_memory_make(&x->memory, x->n, bytes, err) != QN_OK)
        return false;
    for (int p = 0; p < x->n; p++) {
        if (qn_view_wrap("array", x->memory.at[p], x->view[p].dtype, &x->layout[p], 0, &x->view[p],
                         err) != QN_OK)
            return false;
        x->args[p] = qn_arg_view(&x->view[p]);
    }
    return true;
}

/* ---------------------------------------------------------------- lines */

static void run_native(const void *data)
{
    const unseen_run *x = data;
    x->loop(x->memory.at);
}

static void run_line(bench *b, const char *line, unseen_run *x)
{
    qn_error error = {0};
    qn_call *call = NULL;
    qn_options o = bench_options(b);
    bool is_ok = bench_prepare(b, x->k, x->n, x->args, &o, &call, &error) == QN_OK;
    void *ours = NULL;
    if (!is_ok && bench_model_leaves_out(b))
        return;
    fill(x);
    is_ok = is_ok && x->loop && qn_run(call, &error) == QN_OK &&
            (ours = bench_memory_keep(&x->memory)) != NULL;
    fill(x);
    if (is_ok)
        x->loop(x->memory.at);
    if (is_ok && is_close(x, ours)) {
        fill(x);
        bench_in_turns(
            b, &(bench_line){.name = line, .group = GROUP_UNSEEN, .goal = 0.9, .short_below = 0.9},
            call, run_native, x);
    } else {
        bench_wrong(b, line, "not the result of C: %s", error.message);
    }
    free(ours);
    qn_call_release(call);
}

static void run_case(bench *b, const char *line, const unseen *c)
{
    qn_error error = {0};
    qn_options o = bench_options(b);
    unseen_run *x = calloc(1, sizeof *x);
    if (!x)
        return;
    if (!make(x, c, &error))
        bench_wrong(b, line, "no kernel: %s", error.message);
    else if (b->assembly_of)
        bench_print_assembly(b, line, x->k, x->n, x->args, &o);
    else
        run_line(b, line, x);
    qn_kernel_release(x->k);
    bench_memory_free(&x->memory);
    for (int p = 0; p < BENCH_ARRAYS; p++)
        qn_layout_release(&x->layout[p]);
    free(x);
}

void bench_unseen_cases(bench *b)
{
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char line[64];
        snprintf(line, sizeof line, "unseen/%s", cases[n].name);
        if (bench_wants(b, line))
            run_case(b, line, &cases[n]);
    }
}
