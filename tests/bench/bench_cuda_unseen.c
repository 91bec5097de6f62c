/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_unseen.c: kernels that no rule of the planner was made for, written as a user would,
 * against CUDA C of a competent author (cuda_peers_unseen.cu). Then kernels whose iterations differ
 * in work, against CUDA C that does what the kernel says, thread by thread
 * (cuda_peers_uneven.cuh).
 */
#include "tests/bench/bench_cuda_arrays.h"
#include "tests/bench/cuda_peers_unseen.h"

#include <stdio.h>

/* ---------------------------------------------------------------- kernels */

static const char stencil27_text[] =
    "kernel stencil27 (x: f32[,,], y: f32[,,]) contract {\n"
    "  for all i, j, k in inner(y, 1) {\n"
    "    a = (x[i-1,j,k] + x[i+1,j,k]) + (x[i,j-1,k] + x[i,j+1,k]) + (x[i,j,k-1] + x[i,j,k+1])\n"
    "    b = (x[i-1,j-1,k] + x[i-1,j+1,k]) + (x[i+1,j-1,k] + x[i+1,j+1,k])\n"
    "    b += (x[i-1,j,k-1] + x[i-1,j,k+1]) + (x[i+1,j,k-1] + x[i+1,j,k+1])\n"
    "    b += (x[i,j-1,k-1] + x[i,j-1,k+1]) + (x[i,j+1,k-1] + x[i,j+1,k+1])\n"
    "    c = (x[i-1,j-1,k-1] + x[i-1,j-1,k+1]) + (x[i-1,j+1,k-1] + x[i-1,j+1,k+1])\n"
    "    c += (x[i+1,j-1,k-1] + x[i+1,j-1,k+1]) + (x[i+1,j+1,k-1] + x[i+1,j+1,k+1])\n"
    "    y[i,j,k] = 0.5 * x[i,j,k] + 0.125 * a + 0.0625 * b + 0.03125 * c\n"
    "  }\n}\n";
#define NORMALIZE(order)                                                                           \
    "kernel normalize (x: f32[,], y: f32[,]) " order "{\n"                                         \
    "  for all i, j in y { y[i,j] = x[i,j] / (sum k in dim(x, 1) of x[i,k]) }\n}\n"
static const char normalize_text[] = NORMALIZE(""), striped_text[] = NORMALIZE("striped ");
static const char softmax_text[] = "kernel softmax (x: f32[,], y: f32[,]) striped {\n"
                                   "  for all i, j in y {\n"
                                   "    m = max k in dim(x, 1) of x[i,k]\n"
                                   "    s = sum k in dim(x, 1) of exp(x[i,k] - m)\n"
                                   "    y[i,j] = exp(x[i,j] - m) / s\n"
                                   "  }\n}\n";
static const char layernorm_text[] =
    "kernel layernorm (x: f32[,], y: f32[,]) contract {\n"
    "  n = f32(extent(x, 1))\n"
    "  for all i, j in y {\n"
    "    m = (sum k in dim(x, 1) of x[i,k]) / n\n"
    "    v = (sum k in dim(x, 1) of (x[i,k] - m) * (x[i,k] - m)) / n\n"
    "    y[i,j] = (x[i,j] - m) / sqrt(v + 0.00001)\n"
    "  }\n}\n";
static const char bodies_text[] =
    "function pull (x: f32, y: f32, z: f32, m: f32) contract {\n"
    "  r = x * x + y * y + z * z + 0.0625\n  return m / (r * sqrt(r))\n}\n"
    "kernel bodies (x: f32[], y: f32[], z: f32[], m: f32[], ax: f32[], ay: f32[], az: f32[]) "
    "contract {\n"
    "  for all i in ax {\n"
    "    ax[i] = sum j in x of pull(x[j] - x[i], y[j] - y[i], z[j] - z[i], m[j]) * (x[j] - x[i])\n"
    "    ay[i] = sum j in x of pull(x[j] - x[i], y[j] - y[i], z[j] - z[i], m[j]) * (y[j] - y[i])\n"
    "    az[i] = sum j in x of pull(x[j] - x[i], y[j] - y[i], z[j] - z[i], m[j]) * (z[j] - z[i])\n"
    "  }\n}\n";
static const char csr_text[] =
    "kernel csr (row: i32[], column: i32[], value: f32[], x: f32[], y: f32[]) contract {\n"
    "  for all i in y { y[i] = sum k in row[i] .. row[i+1] of value[k] * x[column[k]] }\n}\n";
static const char record_text[] =
    "kernel move (p: record 36 align 4 {f32 0, f32 4, f32 8, f32 12, f32 16, f32 20, f32 24, f32 "
    "28, f32 32}[]) contract {\n"
    "  for all i in p {\n"
    "    vx = 0.5 * p[i] part 6 + p[i] part 3\n"
    "    vy = 0.5 * p[i] part 7 + p[i] part 4\n"
    "    vz = 0.5 * p[i] part 8 + p[i] part 5\n"
    "    p[i] part 3 = vx\n    p[i] part 4 = vy\n    p[i] part 5 = vz\n"
    "    p[i] part 0 = 0.5 * vx + p[i] part 0\n"
    "    p[i] part 1 = 0.5 * vy + p[i] part 1\n"
    "    p[i] part 2 = 0.5 * vz + p[i] part 2\n"
    "  }\n}\n";
static const char gray_text[] = "kernel gray (x: u8[,,], y: u8[,]) {\n"
                                "  for all i, j in y { y[i,j] = u8((77 * u32(x[i,j,0]) + 150 * "
                                "u32(x[i,j,1]) + 29 * u32(x[i,j,2])) >> 8) }\n}\n";
static const char planes_text[] =
    "kernel planes (x: u8[,,], y: u8[,,]) {\n  for all c, i, j in y { y[c,i,j] = x[i,j,c] }\n}\n";
static const char blur_text[] =
    "kernel blur (x: u8[,,], y: u8[,,]) {\n"
    "  last = extent(y, 1) - 1\n"
    "  for all i in dim(y, 0), j in 1 .. last, c in dim(y, 2) {\n"
    "    y[i,j,c] = u8((u32(x[i,j-1,c]) + 2 * u32(x[i,j,c]) + u32(x[i,j+1,c])) >> 2)\n"
    "  }\n}\n";
static const char half_text[] =
    "kernel half (a: f16[,], b: f16[,], c: f32[,]) contract {\n"
    "  for all i, j in c { c[i,j] = sum k in dim(a, 1) of f32(a[i,k]) * f32(b[k,j]) }\n}\n";
static const char filter_text[] = "kernel filter (x: f32[,], w: f32[,], y: f32[,]) contract {\n"
                                  "  for all i, j in y { y[i,j] = sum u in dim(w, 0), v in dim(w, "
                                  "1) of w[u,v] * x[i+u,j+v] }\n}\n";
static const char histogram_text[] =
    "kernel histogram (x: u8[], h: u32[]) {\n  for all i in x { atomic h[x[i]] += 1 }\n}\n";
static const char small_text[] =
    "kernel small (a: f32[,,], x: f32[,], y: f32[,]) contract {\n"
    "  for all b, i in y { y[b,i] = sum j in dim(a, 2) of a[b,i,j] * x[b,j] }\n}\n";
static const char lattice_text[] =
    "kernel lattice (f: f32[,,], g: f32[,,]) contract {\n"
    "  h = extent(f, 1) - 1\n  w = extent(f, 2) - 1\n"
    "  for all i in 1 .. h, j in 1 .. w {\n"
    "    c = f[0,i,j]\n"
    "    e, n, s, v = f[1,i,j-1], f[2,i-1,j], f[3,i+1,j], f[4,i,j+1]\n"
    "    a, b, d, q = f[5,i-1,j-1], f[6,i-1,j+1], f[7,i+1,j-1], f[8,i+1,j+1]\n"
    "    r = c + (e + n + s + v) + (a + b + d + q)\n"
    "    g[0,i,j] = 0.5 * c + 0.125 * r\n"
    "    g[1,i,j] = 0.5 * e + 0.0625 * r\n    g[2,i,j] = 0.5 * n + 0.0625 * r\n"
    "    g[3,i,j] = 0.5 * s + 0.0625 * r\n    g[4,i,j] = 0.5 * v + 0.0625 * r\n"
    "    g[5,i,j] = 0.5 * a + 0.03125 * r\n    g[6,i,j] = 0.5 * b + 0.03125 * r\n"
    "    g[7,i,j] = 0.5 * d + 0.03125 * r\n    g[8,i,j] = 0.5 * q + 0.03125 * r\n"
    "  }\n}\n";
static const char argmin_text[] = "kernel argmin (x: f32[,], y: i32[]) {\n"
                                  "  n = i32(extent(x, 1))\n"
                                  "  for all i in y {\n"
                                  "    m = min k in dim(x, 1) of x[i,k]\n"
                                  "    y[i] = min k in dim(x, 1) of x[i,k] == m ? i32(k) : n\n"
                                  "  }\n}\n";
static const char middle_text[] =
    "kernel middle (x: f32[,,], y: f32[,]) contract {\n"
    "  for all i, k in y { y[i,k] = sqrt(sum j in dim(x, 1) of x[i,j,k] * x[i,j,k]) }\n}\n";
static const char odd_text[] =
    "kernel odd (x: f32[,], y: f32[,]) {\n  for all i, j in y { y[i,j] = x[i,2*j+1] }\n}\n";
static const char last_first_text[] = "kernel last_first (x: f32[,,], y: f32[,,]) {\n  for all k, "
                                      "i, j in y { y[k,i,j] = x[i,j,k] }\n}\n";
static const char reverse_text[] = "kernel reverse (x: f32[,,], y: f32[,,]) {\n  for all k, j, i "
                                   "in y { y[k,j,i] = x[i,j,k] }\n}\n";
static const char gather_text[] =
    "kernel gather (x: f32[], at: i32[], y: f32[]) {\n  for all i in y { y[i] = x[at[i]] }\n}\n";
static const char nearest_text[] =
    "kernel nearest (p: f32[,], q: f32[,], y: f32[]) contract {\n"
    "  for all i in y {\n"
    "    y[i] = min j in dim(q, 0) of sum c in dim(p, 1) of (p[i,c] - q[j,c]) * (p[i,c] - q[j,c])\n"
    "  }\n}\n";

/* GPU_MANDELBROT_MOST */
static const char mandelbrot_text[] =
    "kernel \"mandelbrot\" {\n view y: i32[2];\n %0: i64 = const 0; %1: i64 = extent y, 0; %2: "
    "i64 = extent y, 1;\n"
    " %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2; %fi: f32 = cast %i; %fj: f32 = cast "
    "%j; %h: f32 = const 0x1p-11;\n"
    " %l: f32 = const -2.0; %d: f32 = const -1.0; %cx: f32 = fma %fj, %h, %l; %cy: f32 = fma "
    "%fi, %h, %d;\n"
    " %z: f32 = const 0.0; %four: f32 = const 4.0; %zero: i32 = const 0; %one: i32 = const 1; "
    "%m: i32 = const 256; %most: i64 = const 256;\n"
    " %u: f32, %v: f32, %n: i32 = while max %most (%a: f32 = %z, %b: f32 = %z, %c: i32 = %zero) "
    "{\n"
    " %bb: f32 = mul %b, %b; %r: f32 = fma %a, %a, %bb; %in: bool = le %r, %four; %below: bool "
    "= lt %c, %m;\n"
    " %go: bool = and %in, %below; yield %go;\n } do {\n"
    " %vv: f32 = mul %b, %b; %x: f32 = sub %cx, %vv; %p: f32 = fma %a, %a, %x; %w: f32 = add %a, "
    "%a; %q: f32 = fma %w, %b, %cy;\n"
    " %t: i32 = add %c, %one; yield %p, %q, %t;\n };\n store y[%i, %j], %n;\n}\n";

/* ---------------------------------------------------------------- lines */

#define ROWS PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS, 7, 133)
#define CUBE SPACE(UNSEEN_CUBE, UNSEEN_CUBE, UNSEEN_CUBE, 7, 9, 37)
#define BODIES VECTOR(UNSEEN_BODIES, 67)
#define LATTICE SPACE(9, UNSEEN_LATTICE_0, UNSEEN_LATTICE_1, 9, 7, 37)
#define IMAGE SPACE(UNSEEN_IMAGE_0, UNSEEN_IMAGE_1, 3, 11, 37, 3)
#define F32_TO_F32(where)                                                                          \
    2,                                                                                             \
    {                                                                                              \
        {IN(QN_F32, SIXTEENTHS), where},                                                           \
        {                                                                                          \
            OUT(QN_F32), where                                                                     \
        }                                                                                          \
    }

static const gpu_arrays_line lines[] = {
    {"unseen/stencil27/f32", stencil27_text, 0, 0, 0.9, F32_TO_F32(CUBE)},
    {"unseen/normalize/f32", normalize_text, 0, 0, 0.9, F32_TO_F32(ROWS)},
    {"unseen/normalize/f32/striped", striped_text, 0, 0, 0.9, F32_TO_F32(ROWS)},
    {"unseen/softmax/f32/striped", softmax_text, 1e-5, 0, 0.9, F32_TO_F32(ROWS)},
    {"unseen/layernorm/f32", layernorm_text, 1e-4, 0, 0.9, F32_TO_F32(ROWS)},
    {"unseen/bodies/f32",
     bodies_text,
     1e-3,
     20.0 * UNSEEN_BODIES *UNSEEN_BODIES,
     0.9,
     7,
     {{IN(QN_F32, SIXTEENTHS), BODIES},
      {IN(QN_F32, SIXTEENTHS), BODIES},
      {IN(QN_F32, SIXTEENTHS), BODIES},
      {IN(QN_F32, SIXTEENTHS), BODIES},
      {OUT(QN_F32), BODIES},
      {OUT(QN_F32), BODIES},
      {OUT(QN_F32), BODIES}}},
    {"unseen/csr/f32",
     csr_text,
     0,
     0,
     0.9,
     5,
     {{IN(QN_I32, ROW_STARTS), VECTOR(UNSEEN_CSR_ROWS + 1, 301)},
      {IN(QN_I32, INDICES), VECTOR(0, 0)},
      {IN(QN_F32, SIXTEENTHS), VECTOR(0, 0)},
      {IN(QN_F32, SIXTEENTHS), VECTOR(UNSEEN_CSR_ROWS, 300)},
      {OUT(QN_F32), VECTOR(UNSEEN_CSR_ROWS, 300)}}},
    {"unseen/record9/f32",
     record_text,
     0,
     0,
     0.9,
     1,
     {{.dtype = QN_RECORD, .holds = SIXTEENTHS, .is_result = true, VECTOR(UNSEEN_RECORDS, 333)}}},
    {"unseen/gray/u8",
     gray_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_U8, BYTES), IMAGE}, {OUT(QN_U8), PLANE(UNSEEN_IMAGE_0, UNSEEN_IMAGE_1, 11, 37)}}},
    {"unseen/planes/u8",
     planes_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_U8, BYTES), IMAGE},
      {OUT(QN_U8), SPACE(3, UNSEEN_IMAGE_0, UNSEEN_IMAGE_1, 3, 11, 37)}}},
    {"unseen/blur/u8", blur_text, 0, 0, 0.9, 2, {{IN(QN_U8, BYTES), IMAGE}, {OUT(QN_U8), IMAGE}}},
    {"unseen/half/f16",
     half_text,
     0,
     2.0 * UNSEEN_PRODUCT *UNSEEN_PRODUCT *UNSEEN_PRODUCT,
     0.9,
     3,
     {{IN(QN_F16, HALVES), PLANE(UNSEEN_PRODUCT, UNSEEN_PRODUCT, 65, 49)},
      {IN(QN_F16, HALVES), PLANE(UNSEEN_PRODUCT, UNSEEN_PRODUCT, 49, 71)},
      {OUT(QN_F32), PLANE(UNSEEN_PRODUCT, UNSEEN_PRODUCT, 65, 71)}}},
    {"unseen/filter5x5/f32",
     filter_text,
     0,
     0,
     0.9,
     3,
     {{IN(QN_F32, SIXTEENTHS), PLANE(UNSEEN_ROWS + 4, UNSEEN_COLUMNS + 4, 15, 41)},
      {IN(QN_F32, SIXTEENTHS), PLANE(UNSEEN_FILTER, UNSEEN_FILTER, 5, 5)},
      {OUT(QN_F32), PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS, 11, 37)}}},
    {"unseen/histogram/u8",
     histogram_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_U8, BYTES), VECTOR(UNSEEN_BINS, 3000)}, {OUT(QN_U32), VECTOR(256, 256)}}},
    {"unseen/small4x4/f32",
     small_text,
     0,
     0,
     0.9,
     3,
     {{IN(QN_F32, SIXTEENTHS), SPACE(UNSEEN_SMALL, 4, 4, 77, 4, 4)},
      {IN(QN_F32, SIXTEENTHS), PLANE(UNSEEN_SMALL, 4, 77, 4)},
      {OUT(QN_F32), PLANE(UNSEEN_SMALL, 4, 77, 4)}}},
    {"unseen/lattice9/f32", lattice_text, 0, 0, 0.9, F32_TO_F32(LATTICE)},
    {"unseen/argmin/f32",
     argmin_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_F32, SIXTEENTHS), ROWS}, {OUT(QN_I32), VECTOR(UNSEEN_ROWS, 7)}}},
    {"unseen/middle/f32",
     middle_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_F32, SIXTEENTHS), SPACE(UNSEEN_MIDDLE_0, UNSEEN_MIDDLE_1, UNSEEN_MIDDLE_2, 5, 67, 37)},
      {OUT(QN_F32), PLANE(UNSEEN_MIDDLE_0, UNSEEN_MIDDLE_2, 5, 37)}}},
    {"unseen/odd/f32",
     odd_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_F32, SIXTEENTHS), PLANE(UNSEEN_ROWS, 2 * UNSEEN_COLUMNS, 9, 74)},
      {OUT(QN_F32), PLANE(UNSEEN_ROWS, UNSEEN_COLUMNS, 9, 37)}}},
    {"unseen/last_first/f32",
     last_first_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_F32, SIXTEENTHS),
       SPACE(UNSEEN_PERMUTE_0, UNSEEN_PERMUTE_1, UNSEEN_PERMUTE_2, 5, 13, 37)},
      {OUT(QN_F32), SPACE(UNSEEN_PERMUTE_2, UNSEEN_PERMUTE_0, UNSEEN_PERMUTE_1, 37, 5, 13)}}},
    {"unseen/reverse/f32",
     reverse_text,
     0,
     0,
     0.9,
     2,
     {{IN(QN_F32, SIXTEENTHS),
       SPACE(UNSEEN_PERMUTE_0, UNSEEN_PERMUTE_1, UNSEEN_PERMUTE_2, 5, 13, 37)},
      {OUT(QN_F32), SPACE(UNSEEN_PERMUTE_2, UNSEEN_PERMUTE_1, UNSEEN_PERMUTE_0, 37, 13, 5)}}},
    {"unseen/gather/f32",
     gather_text,
     0,
     0,
     0.9,
     3,
     {{IN(QN_F32, SIXTEENTHS), VECTOR(UNSEEN_TABLE, 97)},
      {IN(QN_I32, INDICES), VECTOR(UNSEEN_GATHER, 333)},
      {OUT(QN_F32), VECTOR(UNSEEN_GATHER, 333)}}},
    {"unseen/nearest8/f32",
     nearest_text,
     0,
     24.0 * UNSEEN_POINTS *UNSEEN_CENTRES,
     0.9,
     3,
     {{IN(QN_F32, SIXTEENTHS), PLANE(UNSEEN_POINTS, 8, 70, 8)},
      {IN(QN_F32, SIXTEENTHS), PLANE(UNSEEN_CENTRES, 8, 9, 8)},
      {OUT(QN_F32), VECTOR(UNSEEN_POINTS, 70)}}},
};

#define EVEN_CSR                                                                                   \
    5,                                                                                             \
    {                                                                                              \
        {IN(QN_I32, EVEN_STARTS), VECTOR(GPU_CSR_ROWS + 1, 301)},                                  \
            {IN(QN_I32, NEAR_ROW), VECTOR(0, 0)}, {IN(QN_F32, SIXTEENTHS), VECTOR(0, 0)},          \
            {IN(QN_F32, SIXTEENTHS), VECTOR(GPU_CSR_ROWS, 300)},                                   \
            {OUT(QN_F32), VECTOR(GPU_CSR_ROWS, 300)},                                              \
    }
#define POINTS                                                                                     \
    1,                                                                                             \
    {                                                                                              \
        {OUT(QN_I32), PLANE(GPU_MANDELBROT, GPU_MANDELBROT, 65, 65)},                              \
    }

static const struct uneven {
    gpu_arrays_line line;
    gpu_arrays_how how;
} uneven[] = {
    {{"csr/f32", csr_text, 0, 0, 0.9, EVEN_CSR}, {.peer = "csr"}},
    {{"csr/f32/unchecked", csr_text, 0, 0, 0.95, EVEN_CSR},
     {.peer = "csr", .checks = QN_CHECKS_NONE}},
    {{"mandelbrot/f32", mandelbrot_text, 0, 0, 0.95, POINTS}, {.peer = "mandelbrot"}},
};

void gpu_unseen_cases(gpu_bench *b)
{
    qn_record *record = NULL;
    qn_field field[GPU_MEMBERS];
    char name[GPU_MEMBERS][8];
    qn_error err = {0};
    for (int i = 0; i < GPU_MEMBERS; i++) {
        snprintf(name[i], sizeof name[i], "m%d", i % 10);
        field[i] = (qn_field){.name = name[i], .dtype = QN_F32, .offset = 4 * i};
    }
    if (qn_record_new(GPU_MEMBERS, field, 0, 0, &record, &err)) {
        gpu_wrong(b, "unseen", "%s", err.message);
        return;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        gpu_arrays_run(b, &lines[i], &(gpu_arrays_how){.record = record});
    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++)
        gpu_arrays_run(b, &uneven[i].line, &uneven[i].how);
    qn_record_release(record);
}
