/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_unseen.c: kernels that no rule of the planner was made for, written as a user would,
 * against CUDA C of a competent author (cuda_peers_unseen.cu). On small arrays all results have the
 * interpreter's bits; on large ones ours have those of the processor's code, and theirs are equal,
 * or near where an order of roundings is their own.
 */
#include "tests/fill.h"
#include "tests/bench/bench_cuda.h"
#include "tests/bench/cuda_peers_unseen.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 7, MOST_RANK = 3, SAMPLES = 9, MEMBERS = 9 };

/* What arrays hold at first. */
enum {
    SIXTEENTHS, /* f32: 1/16 to 1, so that sums are exact */
    HALVES,     /* f16: quarters up to 2 */
    BYTES,
    INDICES,    /* i32, into arrays[0] */
    ROW_STARTS, /* i32: uneven rows, from 1 to 226 elements */
    ZEROS
};

/* An array of a line; extents 0 are the number of elements of all sparse rows. Results follow the
 * inputs. */
typedef struct shape {
    int dtype, rank, holds;
    bool is_result;
    int64_t extent[MOST_RANK], tiny[MOST_RANK];
} shape;

typedef struct unseen {
    const char *name, *text;
    double tolerance; /* of theirs, relative; 0: their bits are ours */
    double flops;     /* counted instead of bytes, if any */
    double goal;
    int n;
    shape array[MOST_ARRAYS];
} unseen;

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

/* ---------------------------------------------------------------- lines */

#define IN(type, fill) .dtype = type, .holds = fill
#define OUT(type) .dtype = type, .holds = ZEROS, .is_result = true
#define VECTOR(n, t) .rank = 1, .extent = {n}, .tiny = {t}
#define PLANE(n0, n1, t0, t1) .rank = 2, .extent = {n0, n1}, .tiny = {t0, t1}
#define SPACE(n0, n1, n2, t0, t1, t2) .rank = 3, .extent = {n0, n1, n2}, .tiny = {t0, t1, t2}
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

static const unseen lines[] = {
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

/* ---------------------------------------------------------------- arrays */

typedef int (*peer_function)(void *stream, void *out, const void *a, const void *b);

typedef struct array {
    const shape *shape;
    int64_t extent[MOST_RANK], n, item;
    void *initial, *wanted, *found; /* of the host; the last two of results only */
    qn_view there;
} array;

/* A line at one size. */
typedef struct run {
    gpu_bench *b;
    const unseen *u;
    qn_kernel *kernel;
    qn_record *record;
    qn_call *call;
    peer_function peer;
    array array[MOST_ARRAYS];
} run;

static uint32_t next_number(uint32_t *state)
{
    return (*state = *state * 1664525 + 1013904223) >> 8;
}

static int64_t row_length(int64_t i)
{
    const int64_t n = (i * 7 + i / 16) % 16;
    return n * n + 1;
}

/* Extents; those of elements of sparse rows once the rows are known. */
static void measure(run *r, bool is_small)
{
    int64_t n_rows = 0;
    for (int i = 0; i < r->u->n; i++) {
        array *a = &r->array[i];
        a->shape = &r->u->array[i];
        a->item = a->shape->dtype == QN_RECORD ? MEMBERS * (int64_t)sizeof(float)
                                               : qn_dtype_bytes(a->shape->dtype);
        a->n = 1;
        for (int d = 0; d < a->shape->rank; d++) {
            const int64_t n = is_small ? a->shape->tiny[d] : a->shape->extent[d];
            a->extent[d] = n ? n : n_rows;
            a->n *= a->extent[d];
        }
        for (int64_t row = 0; a->shape->holds == ROW_STARTS && row < a->n - 1; row++)
            n_rows += row_length(row);
    }
}

static void fill_array(const run *r, array *a, int seed)
{
    static const uint16_t half[8] = {0x3400, 0x3800, 0x3a00, 0x3c00,
                                     0x3d00, 0x3e00, 0x3f00, 0x4000};
    uint32_t state = (uint32_t)seed * 7919 + 1;
    const int64_t n = a->shape->dtype == QN_RECORD ? MEMBERS * a->n : a->n;
    int32_t start = 0;
    int64_t below = a->shape->holds != INDICES               ? 1
                    : r->array[0].shape->holds == ROW_STARTS ? r->array[0].n - 1
                                                             : r->array[0].n;
    for (int64_t i = 0; i < n; i++)
        switch (a->shape->holds) {
        case SIXTEENTHS:
            ((float *)a->initial)[i] = (float)(next_number(&state) % 16 + 1) / 16;
            break;
        case HALVES:
            ((uint16_t *)a->initial)[i] = half[next_number(&state) % 8];
            break;
        case BYTES:
            ((uint8_t *)a->initial)[i] = (uint8_t)next_number(&state);
            break;
        case INDICES:
            ((int32_t *)a->initial)[i] = (int32_t)(next_number(&state) % below);
            break;
        case ROW_STARTS:
            ((int32_t *)a->initial)[i] = start;
            start += (int32_t)row_length(i);
            break;
        default:
            break;
        }
}

/* A view of memory of the host. */
static qn_status wrap(const run *r, const array *a, void *data, qn_view *out, qn_error *err)
{
    qn_layout l;
    qn_status status = qn_layout_right(a->shape->rank, a->extent, &l, err);
    if (status)
        return status;
    return a->shape->dtype == QN_RECORD
               ? qn_view_wrap_record("array", data, r->record, &l, 0, out, err)
               : qn_view_wrap("array", data, a->shape->dtype, &l, 0, out, err);
}

static qn_status make_array(run *r, array *a, int seed, qn_error *err)
{
    qn_view_type type;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = "array", .space = QN_SPACE_CUDA, .stream = r->b->stream};
    const size_t bytes = (size_t)(a->n * a->item);
    a->initial = calloc(bytes, 1);
    a->wanted = a->shape->is_result ? malloc(bytes) : NULL;
    a->found = a->shape->is_result ? malloc(bytes) : NULL;
    if (!a->initial || (a->shape->is_result && (!a->wanted || !a->found)))
        return QN_ERR_MEMORY;
    fill_array(r, a, seed);
    if (a->wanted)
        memcpy(a->wanted, a->initial, bytes);
    qn_status status =
        a->shape->dtype == QN_RECORD
            ? qn_view_type_init_record(r->record, a->shape->rank, NULL, QN_FAMILY_RIGHT, &type, err)
            : qn_view_type_init(a->shape->dtype, a->shape->rank, NULL, QN_FAMILY_RIGHT, &type, err);
    type.space = QN_SPACE_CUDA;
    return status ? status
                  : qn_view_create(r->b->context, &type, a->shape->rank, a->extent, &o, &a->there,
                                   err);
}

/* Arrays of the device get what they hold at first; `all`: else the results only. */
static qn_status upload(run *r, bool all, qn_error *err)
{
    qn_status status = QN_OK;
    for (int i = 0; i < r->u->n && !status; i++) {
        qn_view host;
        if (!all && !r->array[i].shape->is_result)
            continue;
        status = wrap(r, &r->array[i], r->array[i].initial, &host, err);
        if (!status)
            status = qn_stream_copy(r->b->stream, &r->array[i].there, &host, err);
    }
    return status ? status : qn_stream_fence(r->b->stream, err);
}

/* The results as the processor has them: by the interpreter, or compiled. */
static qn_status expect(run *r, bool by_interpreter, qn_error *err)
{
    const qn_options o = {.bytes = sizeof o,
                          .engine = by_interpreter ? QN_ENGINE_INTERP : QN_ENGINE_AUTO,
                          .executor = by_interpreter ? QN_SERIAL : QN_THREADS};
    qn_view host[MOST_ARRAYS];
    qn_arg args[MOST_ARRAYS];
    qn_status status = QN_OK;
    for (int i = 0; i < r->u->n && !status; i++) {
        array *a = &r->array[i];
        status = wrap(r, a, a->shape->is_result ? a->wanted : a->initial, &host[i], err);
        args[i] = qn_arg_view(&host[i]);
    }
    return status ? status : qn_launch(r->b->context, r->kernel, r->u->n, args, &o, err);
}

/* ---------------------------------------------------------------- running */

static qn_status run_side(run *r, bool is_ours, qn_error *err)
{
    const void *pointer[MOST_ARRAYS] = {NULL};
    if (is_ours)
        return qn_run(r->call, err);
    for (int i = 0; i < r->u->n; i++)
        pointer[i] = r->array[i].there.data;
    const int result = r->peer(qn_stream_handle(r->b->stream), NULL, pointer, NULL);
    if (result)
        snprintf(err->message, sizeof err->message, "theirs: CUDA error %d", result);
    return result ? QN_ERR_CUDA : QN_OK;
}

static bool is_near(const run *r, const array *a)
{
    const float *found = a->found, *wanted = a->wanted;
    for (int64_t i = 0; i < a->n; i++)
        if (!(fabs((double)found[i] - (double)wanted[i]) <=
              r->u->tolerance * (1e-3 + fabs((double)wanted[i]))))
            return false;
    return true;
}

/* Runs once and compares. */
static bool run_and_check(run *r, bool is_ours, const char *what)
{
    qn_error err = {0};
    qn_status status = upload(r, false, &err);
    bool is_right = true;
    if (!status)
        status = run_side(r, is_ours, &err);
    for (int i = 0; i < r->u->n && !status && is_right; i++) {
        array *a = &r->array[i];
        qn_view host;
        if (!a->shape->is_result)
            continue;
        status = wrap(r, a, a->found, &host, &err);
        if (!status)
            status = qn_stream_copy(r->b->stream, &host, &a->there, &err);
        if (!status)
            status = qn_stream_fence(r->b->stream, &err);
        is_right = memcmp(a->found, a->wanted, (size_t)(a->n * a->item)) == 0 ||
                   (!is_ours && r->u->tolerance > 0 && is_near(r, a));
        if (!is_right && !status)
            gpu_wrong(r->b, r->u->name, "%s: array %d is not %s", is_ours ? "ours" : "theirs", i,
                      what);
    }
    if (status)
        gpu_wrong(r->b, r->u->name, "%s: %s", is_ours ? "ours" : "theirs", err.message);
    return !status && is_right;
}

static qn_status time_side(run *r, bool is_ours, double *seconds, qn_error *err)
{
    qn_mark *begin = NULL, *end = NULL;
    double ms = 0;
    qn_status status = qn_stream_mark(r->b->stream, 1, &begin, err);
    if (!status)
        status = run_side(r, is_ours, err);
    if (!status)
        status = qn_stream_mark(r->b->stream, 1, &end, err);
    if (!status)
        status = qn_stream_fence(r->b->stream, err);
    if (!status)
        status = qn_mark_milliseconds(begin, end, &ms, err);
    qn_mark_release(begin);
    qn_mark_release(end);
    *seconds = ms * 1e-3;
    return status;
}

static void time_line(run *r)
{
    double sample[2][SAMPLES], median[2] = {0}, bytes = 0;
    const int n = r->b->is_tiny ? 1 : SAMPLES;
    qn_error err = {0};
    qn_status status = QN_OK;
    for (int i = 0; i < n && !status; i++)
        for (int turn = 0; turn < 2 && !status; turn++) {
            const int who = (turn + i) % 2;
            if (who == 0 || r->peer)
                status = time_side(r, who == 0, &sample[who][i], &err);
        }
    if (status) {
        gpu_wrong(r->b, r->u->name, "%s", err.message);
        return;
    }
    for (int who = 0; who < (r->peer ? 2 : 1); who++)
        median[who] = gpu_median(sample[who], n);
    for (int i = 0; i < r->u->n; i++)
        bytes += (double)(r->array[i].n * r->array[i].item) *
                 (r->array[i].shape->holds != ZEROS && r->array[i].shape->is_result ? 2 : 1);
    const gpu_line line = {.name = r->u->name,
                           .ours = median[0],
                           .theirs = median[1],
                           .rate =
                               (r->u->flops > 0 ? r->u->flops * 1e-12 : bytes * 1e-9) / median[0],
                           .unit = r->u->flops > 0 ? "TF/s" : "GB/s",
                           .peer_goal = r->peer ? r->u->goal : 0,
                           .is_counted = r->peer != NULL};
    gpu_report(r->b, &line);
}

/* A line at one size: checked, and timed unless it is small. */
static bool run_size(gpu_bench *b, const unseen *u, qn_kernel *kernel, qn_record *record,
                     bool is_small)
{
    run r = {.b = b, .u = u, .kernel = kernel, .record = record};
    char name[GPU_NAME_BYTES + 8];
    qn_error err = {0};
    qn_arg args[MOST_ARRAYS];
    const qn_options o = {.bytes = sizeof o,
                          .executor = QN_CUDA,
                          .stream = b->stream,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = &b->plan};
    const int length = snprintf(name, sizeof name, "peer_%s", u->name);
    for (int i = 0; i < length; i++)
        name[i] = (char)(name[i] == '/' ? '_' : name[i]);
    void *symbol = b->peers && !is_small ? dlsym(b->peers, name) : NULL;
    memcpy(&r.peer, &symbol, sizeof r.peer);
    measure(&r, is_small);
    qn_status status = QN_OK;
    for (int i = 0; i < u->n && !status; i++) {
        status = make_array(&r, &r.array[i], i, &err);
        args[i] = qn_arg_view(&r.array[i].there);
    }
    if (!status)
        status = upload(&r, true, &err);
    if (!status)
        status = expect(&r, is_small, &err);
    if (!status)
        status = qn_prepare(b->context, kernel, u->n, args, &o, &r.call, &err);
    if (status)
        gpu_wrong(b, u->name, "%s", err.message);
    bool is_right = !status &&
                    run_and_check(&r, true, is_small ? "the interpreter's" : "the processor's") &&
                    (!r.peer || run_and_check(&r, false, "the processor's"));
    if (is_right && (!is_small || b->is_tiny))
        time_line(&r);
    qn_call_release(r.call);
    for (int i = 0; i < u->n; i++) {
        qn_view_release(&r.array[i].there);
        free(r.array[i].initial);
        free(r.array[i].wanted);
        free(r.array[i].found);
    }
    return is_right;
}

void gpu_unseen_cases(gpu_bench *b)
{
    qn_record *record = NULL;
    qn_field field[MEMBERS];
    char name[MEMBERS][8];
    qn_error err = {0};
    for (int i = 0; i < MEMBERS; i++) {
        snprintf(name[i], sizeof name[i], "m%d", i % 10);
        field[i] = (qn_field){.name = name[i], .dtype = QN_F32, .offset = 4 * i};
    }
    if (qn_record_new(MEMBERS, field, 0, 0, &record, &err)) {
        gpu_wrong(b, "unseen", "%s", err.message);
        return;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (!gpu_wants(b, lines[i].name))
            continue;
        qn_kernel *k = NULL;
        if (qn_kernel_parse(lines[i].text, strlen(lines[i].text), &k, &err))
            gpu_wrong(b, lines[i].name, "%s", err.message);
        else if (run_size(b, &lines[i], k, record, true) && !b->is_tiny)
            run_size(b, &lines[i], k, record, false);
        qn_kernel_release(k);
    }
    qn_record_release(record);
}
