/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_users.c: more kernels that no rule of the planner was made for, as users of arrays
 * write them: filters, statistics of rows, scans, sparse rows of equal lengths, distances,
 * particles, pixels, permuted dimensions, masks, mixed element types, wrapped indices, long bodies.
 * cuda_peers_users.cu has them in CUDA C of a competent author.
 */
#include "tests/bench/bench_cuda_arrays.h"
#include "tests/bench/cuda_peers_unseen.h"

/* ---------------------------------------------------------------- kernels */

static const char taps_text[] =
    "kernel taps (x: f32[], w: f32[], y: f32[]) contract {\n"
    "  for all i in y { y[i] = sum k in w of w[k] * x[i+k] }\n}\n";
static const char layers_text[] =
    "kernel layers (x: f32[,,], w: f32[,,], y: f32[,,]) contract {\n"
    "  for all o, i, j in y {\n"
    "    y[o,i,j] = sum c in dim(x, 0), u in 0 .. 3, v in 0 .. 3 of w[o,c,3*u+v] * x[c,i+u,j+v]\n"
    "  }\n}\n";
static const char batch_text[] =
    "kernel batch (a: f32[,,], b: f32[,,], c: f32[,,]) contract {\n"
    "  for all n, i, j in c { c[n,i,j] = sum k in dim(a, 2) of a[n,i,k] * b[n,k,j] }\n}\n";
static const char scatter_text[] =
    "kernel scatter (at: i32[], x: f32[], y: f32[]) {\n  for all i in x { y[at[i]] = x[i] }\n}\n";
static const char argmax_text[] = "kernel argmax (x: f32[,], y: i32[]) {\n"
                                  "  for all i in y {\n"
                                  "    m = max k in dim(x, 1) of x[i,k]\n"
                                  "    y[i] = max k in dim(x, 1) of x[i,k] == m ? i32(k) : -1\n"
                                  "  }\n}\n";
static const char moments_text[] =
    "kernel moments (x: f32[,], mean: f32[], spread: f32[]) contract {\n"
    "  n = f32(extent(x, 1))\n"
    "  for all i in mean {\n"
    "    m = (sum k in dim(x, 1) of x[i,k]) / n\n"
    "    mean[i] = m\n"
    "    spread[i] = sqrt((sum k in dim(x, 1) of x[i,k] * x[i,k]) / n - m * m)\n"
    "  }\n}\n";
static const char logsumexp_text[] = "kernel logsumexp (x: f32[,], y: f32[]) {\n"
                                     "  for all i in y {\n"
                                     "    m = max k in dim(x, 1) of x[i,k]\n"
                                     "    y[i] = m + log(sum k in dim(x, 1) of exp(x[i,k] - m))\n"
                                     "  }\n}\n";
static const char scan_columns_text[] = "kernel scan_columns (x: f32[,], y: f32[,]) {\n"
                                        "  for all j in dim(y, 1) {\n"
                                        "    t: f32 = 0\n"
                                        "    for i in dim(x, 0) { t += x[i,j]\n y[i,j] = t }\n"
                                        "  }\n}\n";
static const char scan_rows_text[] = "kernel scan_rows (x: f32[,], y: f32[,]) {\n"
                                     "  for all i in dim(y, 0) {\n"
                                     "    t: f32 = 0\n"
                                     "    for j in dim(x, 1) { t += x[i,j]\n y[i,j] = t }\n"
                                     "  }\n}\n";
static const char ell_text[] =
    "kernel ell (x: f32[], column: i32[,], value: f32[,], y: f32[]) contract {\n"
    "  for all i in y { y[i] = sum k in dim(value, 0) of value[k,i] * x[column[k,i]] }\n}\n";
static const char distances_text[] =
    "kernel distances (p: f32[,], q: f32[,], y: f32[,]) contract {\n"
    "  for all i, j in y {\n"
    "    y[i,j] = sqrt(sum c in dim(p, 1) of (p[i,c] - q[j,c]) * (p[i,c] - q[j,c]))\n"
    "  }\n}\n";
static const char particles_text[] = "kernel particles (p: f32[,]) contract {\n"
                                     "  for all i in dim(p, 0) {\n"
                                     "    for c in 0 .. 3 {\n"
                                     "      r = p[i,c] + 0.5 * p[i,c+3]\n"
                                     "      p[i,c] = r > 1 ? 2 - r : r\n"
                                     "      p[i,c+3] = r > 1 ? -p[i,c+3] : p[i,c+3]\n"
                                     "    }\n"
                                     "  }\n}\n";
static const char blend_text[] =
    "kernel blend (x: u8[,,], z: u8[,,], y: u8[,,]) {\n"
    "  for all i, j, c in y {\n"
    "    a = u32(x[i,j,3])\n"
    "    y[i,j,c] = u8((u32(x[i,j,c]) * a + u32(z[i,j,c]) * (255 - a) + 127) / 255)\n"
    "  }\n}\n";
static const char swap_text[] =
    "kernel swap (x: f32[,,], y: f32[,,]) {\n  for all j, i, k in y { y[j,i,k] = x[i,j,k] }\n}\n";
static const char masked_text[] =
    "kernel masked (m: u8[], x: f32[], y: f32[]) contract {\n"
    "  for all i in y { if m[i] > 127 { y[i] = 0.5 * x[i] + y[i] } }\n}\n";
static const char dequantize_text[] =
    "kernel dequantize (x: f16[,], q: i8[,], s: f32[], y: f32[,]) contract {\n"
    "  for all i, j in y { y[i,j] = f32(q[i,j]) * s[i] + f32(x[i,j]) }\n}\n";
static const char integer_text[] =
    "kernel integer (a: i8[,], x: i8[], y: i32[]) {\n"
    "  for all i in y { y[i] = sum k in dim(a, 1) of i32(a[i,k]) * i32(x[k]) }\n}\n";
static const char channels_text[] =
    "kernel channels (x: f32[,,], y: f32[]) contract {\n"
    "  for all c in y { y[c] = sum n in dim(x, 0), i in dim(x, 2) of x[n,c,i] * x[n,c,i] }\n}\n";
static const char gelu_text[] =
    "kernel gelu (x: f32[,], bias: f32[], r: f32[,], y: f32[,]) contract {\n"
    "  for all i, j in y {\n"
    "    t = x[i,j] + bias[j]\n"
    "    y[i,j] = r[i,j] + 0.5 * t * (1 + tanh(0.7978845608 * (t + 0.044715 * t * t * t)))\n"
    "  }\n}\n";
static const char periodic_text[] =
    "kernel periodic (x: f32[,], y: f32[,]) contract {\n"
    "  h, w = extent(x, 0), extent(x, 1)\n"
    "  for all i, j in y {\n"
    "    n = x[(i+h-1) % h,j] + x[(i+1) % h,j] + x[i,(j+w-1) % w] + x[i,(j+1) % w]\n"
    "    y[i,j] = 0.5 * x[i,j] + 0.125 * n\n"
    "  }\n}\n";
static const char lorenz_text[] =
    "function slope (x: f32, y: f32, z: f32) contract {\n"
    "  return 10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z\n}\n"
    "kernel lorenz (x: f32[], y: f32[], z: f32[]) contract {\n"
    "  for all i in x {\n"
    "    a, b, c = x[i], y[i], z[i]\n"
    "    for t in 0 .. 8 {\n"
    "      p, q, r = slope(a, b, c)\n"
    "      d, e, f = slope(a + 0.0078125 * p, b + 0.0078125 * q, c + 0.0078125 * r)\n"
    "      g, h, k = slope(a + 0.0078125 * d, b + 0.0078125 * e, c + 0.0078125 * f)\n"
    "      l, m, n = slope(a + 0.015625 * g, b + 0.015625 * h, c + 0.015625 * k)\n"
    "      a += 0.00260416675 * (p + 2 * d + 2 * g + l)\n"
    "      b += 0.00260416675 * (q + 2 * e + 2 * h + m)\n"
    "      c += 0.00260416675 * (r + 2 * f + 2 * k + n)\n"
    "    }\n"
    "    x[i] = a\n    y[i] = b\n    z[i] = c\n"
    "  }\n}\n";
static const char resize_text[] =
    "kernel resize (x: f32[,], y: f32[,]) contract {\n"
    "  h, w = extent(x, 0) - 1, extent(x, 1) - 1\n"
    "  for all i, j in y {\n"
    "    u, v = 0.625 * f32(i), 0.625 * f32(j)\n"
    "    a, b = min(i64(u), h), min(i64(v), w)\n"
    "    c, d = min(a + 1, h), min(b + 1, w)\n"
    "    s, t = u - f32(a), v - f32(b)\n"
    "    p = x[a,b] + t * (x[a,d] - x[a,b])\n"
    "    q = x[c,b] + t * (x[c,d] - x[c,b])\n"
    "    y[i,j] = p + s * (q - p)\n"
    "  }\n}\n";
static const char upsample_text[] =
    "kernel upsample (x: f32[,], y: f32[,]) {\n  for all i, j in y { y[i,j] = x[i/2,j/2] }\n}\n";
static const char pool_text[] =
    "kernel pool (x: f32[,], y: f32[,]) {\n"
    "  for all i, j in y {\n"
    "    y[i,j] = max(max(x[2*i,2*j], x[2*i,2*j+1]), max(x[2*i+1,2*j], x[2*i+1,2*j+1]))\n"
    "  }\n}\n";

/* ---------------------------------------------------------------- lines */

#define ROWS PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS, 7, 133)
#define SHORT_ROWS PLANE(USERS_SHORT_ROWS, USERS_SHORT_COLUMNS, 35, 133)
#define A_ROW VECTOR(USERS_SHORT_ROWS, 35)
#define RGBA SPACE(UNSEEN_IMAGE_0, UNSEEN_IMAGE_1, 4, 11, 37, 4)
#define SIX SPACE(USERS_BATCH, 6, 6, 77, 6, 6)
#define SERIES VECTOR(USERS_SERIES, 333)
#define IN_F32 IN(QN_F32, SIXTEENTHS)
#define CHANGED_F32 .dtype = QN_F32, .holds = SIXTEENTHS, .is_result = true
#define LINE(name, tolerance, flops, n, ...)                                                       \
    {"unseen/" #name, name##_text, tolerance, flops, 0.9, n, {__VA_ARGS__}}

static const gpu_arrays_line lines[] = {
    LINE(taps, 1e-5, 2.0 * USERS_TAPS * USERS_SIGNAL, 3,
         {IN_F32, VECTOR(USERS_SIGNAL + USERS_TAPS - 1, 300 + USERS_TAPS - 1)},
         {IN_F32, VECTOR(USERS_TAPS, USERS_TAPS)}, {OUT(QN_F32), VECTOR(USERS_SIGNAL, 300)}),
    LINE(layers, 1e-5, 18.0 * USERS_CHANNELS * USERS_CHANNELS * USERS_SIDE * USERS_SIDE, 3,
         {IN_F32, SPACE(USERS_CHANNELS, USERS_SIDE + 2, USERS_SIDE + 2, 3, 11, 37)},
         {IN_F32, SPACE(USERS_CHANNELS, USERS_CHANNELS, 9, 5, 3, 9)},
         {OUT(QN_F32), SPACE(USERS_CHANNELS, USERS_SIDE, USERS_SIDE, 5, 9, 35)}),
    LINE(batch, 0, 0, 3, {IN_F32, SIX}, {IN_F32, SIX}, {OUT(QN_F32), SIX}),
    LINE(scatter, 0, 0, 3, {IN(QN_I32, PERMUTATION), VECTOR(UNSEEN_GATHER, 256)},
         {IN_F32, VECTOR(UNSEEN_GATHER, 256)}, {OUT(QN_F32), VECTOR(UNSEEN_GATHER, 256)}),
    LINE(argmax, 0, 0, 2, {IN_F32, SHORT_ROWS}, {OUT(QN_I32), A_ROW}),
    LINE(moments, 1e-4, 0, 3, {IN_F32, SHORT_ROWS}, {OUT(QN_F32), A_ROW}, {OUT(QN_F32), A_ROW}),
    LINE(logsumexp, 1e-5, 0, 2, {IN_F32, SHORT_ROWS}, {OUT(QN_F32), A_ROW}),
    LINE(scan_columns, 0, 0, 2, {IN_F32, PLANE(USERS_SCAN, USERS_SCANS, 37, 67)},
         {OUT(QN_F32), PLANE(USERS_SCAN, USERS_SCANS, 37, 67)}),
    LINE(scan_rows, 0, 0, 2, {IN_F32, PLANE(USERS_SCANS, USERS_SCAN, 67, 37)},
         {OUT(QN_F32), PLANE(USERS_SCANS, USERS_SCAN, 67, 37)}),
    LINE(ell, 0, 0, 4, {IN_F32, VECTOR(USERS_ELL_ROWS, 300)},
         {IN(QN_I32, INDICES), PLANE(USERS_ELL_WIDTH, USERS_ELL_ROWS, 7, 300)},
         {IN_F32, PLANE(USERS_ELL_WIDTH, USERS_ELL_ROWS, 7, 300)},
         {OUT(QN_F32), VECTOR(USERS_ELL_ROWS, 300)}),
    LINE(distances, 1e-5, 0, 3, {IN_F32, PLANE(USERS_POINTS, 3, 35, 3)},
         {IN_F32, PLANE(USERS_POINTS, 3, 37, 3)},
         {OUT(QN_F32), PLANE(USERS_POINTS, USERS_POINTS, 35, 37)}),
    LINE(particles, 0, 0, 1, {CHANGED_F32, PLANE(USERS_PARTICLES, 6, 333, 6)}),
    LINE(blend, 0, 0, 3, {IN(QN_U8, BYTES), RGBA}, {IN(QN_U8, BYTES), RGBA}, {OUT(QN_U8), RGBA}),
    LINE(swap, 0, 0, 2, {IN_F32, SPACE(USERS_SWAP_0, USERS_SWAP_1, USERS_SWAP_2, 7, 13, 16)},
         {OUT(QN_F32), SPACE(USERS_SWAP_1, USERS_SWAP_0, USERS_SWAP_2, 13, 7, 16)}),
    LINE(masked, 0, 0, 3, {IN(QN_U8, BYTES), VECTOR(USERS_SIGNAL, 333)},
         {IN_F32, VECTOR(USERS_SIGNAL, 333)}, {CHANGED_F32, VECTOR(USERS_SIGNAL, 333)}),
    LINE(dequantize, 0, 0, 4, {IN(QN_F16, HALVES), ROWS}, {IN(QN_I8, BYTES), ROWS},
         {IN_F32, VECTOR(UNSEEN_ROWS, 7)}, {OUT(QN_F32), ROWS}),
    LINE(integer, 0, 0, 3, {IN(QN_I8, BYTES), PLANE(4 * UNSEEN_ROWS, UNSEEN_COLUMNS, 7, 133)},
         {IN(QN_I8, BYTES), VECTOR(UNSEEN_COLUMNS, 133)},
         {OUT(QN_I32), VECTOR(4 * UNSEEN_ROWS, 7)}),
    LINE(channels, 1e-3, 0, 2,
         {IN_F32, SPACE(UNSEEN_MIDDLE_0, UNSEEN_MIDDLE_1, UNSEEN_MIDDLE_2, 5, 67, 37)},
         {OUT(QN_F32), VECTOR(UNSEEN_MIDDLE_1, 67)}),
    LINE(gelu, 1e-4, 0, 4, {IN_F32, ROWS}, {IN_F32, VECTOR(UNSEEN_COLUMNS, 133)}, {IN_F32, ROWS},
         {OUT(QN_F32), ROWS}),
    LINE(periodic, 0, 0, 2, {IN_F32, ROWS}, {OUT(QN_F32), ROWS}),
    LINE(lorenz, 1e-3, 0, 3, {CHANGED_F32, SERIES}, {CHANGED_F32, SERIES}, {CHANGED_F32, SERIES}),
    LINE(resize, 1e-4, 0, 2, {IN_F32, PLANE(5 * UNSEEN_ROWS / 8, 5 * UNSEEN_COLUMNS / 8, 21, 23)},
         {OUT(QN_F32), PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS, 33, 36)}),
    LINE(upsample, 0, 0, 2, {IN_F32, PLANE(UNSEEN_ROWS / 2, UNSEEN_COLUMNS / 2, 15, 23)},
         {OUT(QN_F32), PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS, 30, 46)}),
    LINE(pool, 0, 0, 2, {IN_F32, PLANE(2 * UNSEEN_ROWS, UNSEEN_COLUMNS, 14, 74)},
         {OUT(QN_F32), PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS / 2, 7, 37)}),
};

void gpu_users_cases(gpu_bench *b)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        gpu_arrays_run(b, &lines[i], &(gpu_arrays_how){.record = NULL});
}
