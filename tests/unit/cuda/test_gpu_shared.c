/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_shared.c: what threads of a GPU do together for kernels written one iteration at a time:
 * rows whose reduces all elements share, reduces that need earlier ones, reduces in one loop,
 * atomic updates that a block collects, products of converted numbers, channels side by side. The
 * plan says so, and the bits are the interpreter's; on the stub driver where there is no GPU.
 */
#include "tests/unit/gpu_job.h"

enum { MOST_VIEWS = 4, TEXT_BYTES = 1 << 16 };

static device d;
static char plan[TEXT_BYTES];

typedef struct shape {
    int dtype, rank;
    int64_t extent[3];
} shape;

typedef struct row {
    const char *what, *text;
    const char *phrase; /* of the plan; NULL: of PTX, see ptx */
    const char *ptx;
    int n;
    shape view[MOST_VIEWS];
} row;

/* ---------------------------------------------------------------- kernels */

static const char divided[] =
    "kernel k (x: f32[,], y: f32[,]) $ {\n"
    "  for all i, j in y { y[i,j] = x[i,j] / (sum k in dim(x, 1) of x[i,k]) }\n}\n";
static const char spread[] =
    "kernel k (x: f32[,], y: f32[,]) $ contract {\n  n = f32(extent(x, 1))\n"
    "  for all i, j in y {\n"
    "    m = (sum k in dim(x, 1) of x[i,k]) / n\n"
    "    v = (sum k in dim(x, 1) of (x[i,k] - m) * (x[i,k] - m)) / n\n"
    "    y[i,j] = (x[i,j] - m) / sqrt(v + 1)\n  }\n}\n";
static const char softmax[] = "kernel k (x: f32[,], y: f32[,]) $ {\n  for all i, j in y {\n"
                              "    m = max k in dim(x, 1) of x[i,k]\n"
                              "    s = sum k in dim(x, 1) of exp(x[i,k] - m)\n"
                              "    y[i,j] = exp(x[i,j] - m) / s\n  }\n}\n";
static const char quantized[] =
    "kernel k (x: f32[,], y: i8[,]) $ {\n  for all i, j in y {\n"
    "    t = max(max k in dim(x, 1) of abs(x[i,k]), 0.001) / 127\n"
    "    y[i,j] = i8(round(x[i,j] / t))\n  }\n}\n";
static const char halves[] =
    "kernel k (x: f16[,], g: f32[], y: f16[,]) $ contract {\n  for all i, j in y {\n"
    "    s = sum k in dim(x, 1) of f32(x[i,k]) * f32(x[i,k])\n"
    "    t = sum k in dim(x, 1) of g[k] * f32(x[i,k])\n"
    "    y[i,j] = f16(f32(x[i,j]) / sqrt(s + 1) + t * g[j])\n  }\n}\n";
static const char groups[] =
    "kernel k (x: f32[,,], y: f32[,,]) $ contract {\n  n = f32(extent(x, 1) * extent(x, 2))\n"
    "  for all b, c, p in y {\n"
    "    m = (sum u in dim(x, 1), v in dim(x, 2) of x[b,u,v]) / n\n"
    "    s = (sum u in dim(x, 1), v in dim(x, 2) of (x[b,u,v] - m) * (x[b,u,v] - m)) / n\n"
    "    y[b,c,p] = (x[b,c,p] - m) / sqrt(s + 1)\n  }\n}\n";
static const char stored[] =
    "kernel k (x: f32[,], y: f32[,], z: f32[]) $ contract {\n  for all i in z {\n"
    "    s = sqrt(sum k in dim(x, 1) of x[i,k] * x[i,k])\n    z[i] = s\n"
    "    for k in dim(x, 1) { y[i,k] = x[i,k] / (s + 1) }\n  }\n}\n";
static const char scans[] =
    "kernel k (x: f32[,], y: f32[,], z: f32[]) $ {\n  for all i in z {\n    t: f32 = 0\n"
    "    m: f32 = x[i,0]\n    for k in dim(x, 1) {\n      t += x[i,k]\n"
    "      if x[i,k] > m { m = x[i,k] }\n      y[i,k] = t - m\n    }\n    z[i] = t\n  }\n}\n";
static const char gelu[] =
    "kernel k (x: f16[], b: f16[], y: f16[]) $ contract {\n  for all i in x {\n"
    "    u = f32(x[i]) + f32(b[i])\n    t = 0.7978845 * (u + 0.044715 * u * u * u)\n"
    "    e = exp(-2 * abs(t))\n    s = (1 - e) / (1 + e)\n    h = t < 0 ? -s : s\n"
    "    y[i] = f16(0.5 * u * (1 + h))\n  }\n}\n";
static const char moments[] =
    "kernel k (x: f32[,], y: f32[], z: f32[]) $ contract {\n  for all i in y {\n"
    "    y[i] = sum k in dim(x, 1) of x[i,k]\n"
    "    z[i] = sum k in dim(x, 1) of x[i,k] * x[i,k]\n  }\n}\n";
static const char logarithms[] = "kernel k (x: f32[,], y: f32[]) $ {\n  for all i in y {\n"
                                 "    m = max k in dim(x, 1) of x[i,k]\n"
                                 "    y[i] = m + log(sum k in dim(x, 1) of exp(x[i,k] - m))\n"
                                 "  }\n}\n";
static const char members[] =
    "kernel k (p: f32[,], x: f32[]) $ {\n  for all i in dim(p, 0) {\n"
    "    p[i,0] = x[i] * p[i,3] + p[i,0]\n    p[i,1] = x[i] * p[i,4] + p[i,1]\n"
    "    p[i,2] = x[i] > 0.5 ? p[i,4] : p[i,2]\n  }\n}\n";
static const char trips_of_members[] =
    "kernel k (p: f32[,]) $ {\n  for all i in dim(p, 0) {\n    for c in 0 .. 3 {\n"
    "      r = p[i,c] + 0.5 * p[i,c+3]\n      p[i,c+3] = r > 1 ? -p[i,c+3] : p[i,c+3]\n"
    "      p[i,c] = r\n    }\n  }\n}\n";
static const char ends_of_rows[] =
    "kernel k (x: f32[,], y: f32[]) $ {\n  n = extent(x, 1)\n"
    "  for all i in y { y[i] = sum k in i .. n of x[i,k] }\n}\n";
static const char begins_of_rows[] =
    "kernel k (x: f32[,], y: f32[]) $ {\n"
    "  for all i in y { y[i] = sum k in 0 .. i of x[i,k] }\n}\n";
static const char planes[] =
    "kernel k (x: f32[,,], y: f32[,,]) $ {\n"
    "  for all i, j, l in y { y[i,j,l] = x[i,j,l] - (sum k in dim(x, 2) of x[i,0,k]) }\n}\n";
static const char place_of_least[] =
    "kernel k (x: f32[,], y: i32[], z: f32[]) $ {\n  n = i32(extent(x, 1))\n  for all i in y {\n"
    "    m = min k in dim(x, 1) of x[i,k]\n"
    "    y[i] = min k in dim(x, 1) of x[i,k] == m ? i32(k) : n\n    z[i] = m\n  }\n}\n";
static const char forces[] =
    "kernel k (x: f32[], m: f32[], a: f32[], b: f32[]) $ contract {\n  for all i in a {\n"
    "    a[i] = sum j in x of m[j] / ((x[j] - x[i]) * (x[j] - x[i]) + 1)\n"
    "    b[i] = sum j in x of m[j] * m[i] / ((x[j] - x[i]) * (x[j] - x[i]) + 1)\n  }\n}\n";
static const char counts[] =
    "kernel k (x: u8[], h: u32[]) $ {\n  for all i in x { atomic h[x[i] / 4] += 1 }\n}\n";
static const char weights[] =
    "kernel k (x: u8[], h: f64[,]) $ {\n"
    "  for all i in x { atomic h[x[i] / 32, x[i] % 9] += f64(x[i]) }\n}\n";
static const char least_weights[] =
    "kernel k (x: u8[], h: f32[,]) $ {\n"
    "  for all i in x { atomic min h[x[i] / 32, x[i] % 9], f32(x[i]); }\n}\n";
static const char total[] = "kernel k (x: f32[], s: f32[]) $ {\n"
                            "  for all i in s { s[i] = sum k in x of x[k] }\n}\n";
static const char of_total[] =
    "kernel k (x: f32[], y: f32[]) $ {\n"
    "  for all i in y { y[i] = x[i] * (max k in x of x[k]) / (sum k in x of x[k]) }\n}\n";
static const char parts_of_rows[] =
    "kernel k (x: f32[,], y: f32[,]) $ {\n  for all i, j in y {\n"
    "    y[i,j] = exp(x[i,j]) / (sum k in dim(x, 1) of exp(x[i,k])) }\n}\n";
static const char larger[] = "kernel k (x: u8[,,], y: u8[,,]) $ {\n"
                             "  for all i, j, c in y { y[i,j,c] = x[i/2,j/2,c] }\n}\n";
static const char two_reducers[] =
    "kernel k (x: i32[], h: i64[,], g: u32[0]) $ {\n  for all i in x {\n"
    "    atomic h[i % 3, 1] |= 5\n    atomic h[i % 3, 1] &= -3\n"
    "    atomic g[] ^= u32(x[i])\n  }\n}\n";
static const char product[] =
    "kernel k (a: f16[,], b: u8[,], c: f32[,]) $ contract {\n"
    "  for all i, j in c { c[i,j] = sum k in dim(a, 1) of f32(a[i,k]) * f32(b[k,j]) }\n}\n";
static const char apart[] =
    "kernel k (x: u8[,,], y: u8[,,]) $ {\n  for all c, i, j in y { y[c,i,j] = x[i,j,c] }\n}\n";
static const char together[] =
    "kernel k (x: u8[,,], y: u8[,,]) $ {\n  for all i, j, c in y { y[i,j,c] = x[c,i,j] }\n}\n";
static const char mixed[] =
    "kernel k (x: u8[,,], y: u8[,]) $ {\n"
    "  for all i, j in y { y[i,j] = u8((77 * u32(x[i,j,0]) + 150 * u32(x[i,j,1]) + 29 * "
    "u32(x[i,j,2])) >> 8) }\n}\n";
static const char window[] =
    "kernel k (x: f32[,], w: f32[,], y: f32[,]) $ contract {\n"
    "  for all i, j in y { y[i,j] = sum u in dim(w, 0), v in dim(w, 1) of w[u,v] * x[i+u,j+v] "
    "}\n}\n";

static const char bytes_times[] =
    "kernel k (a: i8[,], x: i8[], y: i32[]) $ {\n"
    "  for all i in y { y[i] = sum k in dim(a, 1) of i32(a[i,k]) * i32(x[k]) }\n}\n";
static const char sides[] = "kernel k (x: f32[,], y: f32[], z: f32[]) $ {\n  for all i in y {\n"
                            "    y[i] = max k in dim(x, 1) of x[i,k] * 0\n"
                            "    z[i] = min k in 3 .. 100 of x[i,k]\n  }\n}\n";
static const char channels[] =
    "kernel k (x: f32[,,], y: f32[]) $ contract {\n"
    "  for all c in y { y[c] = sum n in dim(x, 0), i in dim(x, 2) of x[n,c,i] * x[n,c,i] }\n}\n";
static const char columns[] =
    "kernel k (x: f32[,], w: f32[,], y: f32[]) $ striped contract {\n"
    "  for all j in y { y[j] = sum i in dim(x, 0) of w[i,j] * x[i,j] }\n}\n";
static const char filter[] =
    "kernel k (x: f32[], w: f32[], y: f32[]) $ contract {\n"
    "  for all i in y { y[i] = sum k in w of w[k] * x[i+k] }\n}\n";
static const char nearest[] =
    "kernel k (p: f32[,], q: f32[,], y: f32[]) $ contract {\n  for all i in y {\n"
    "    y[i] = min j in dim(q, 0) of sum c in dim(p, 1) of (p[i,c] - q[j,c]) * (p[i,c] - q[j,c])\n"
    "  }\n}\n";

#define F32(n0, n1)                                                                                \
    {                                                                                              \
        QN_F32, 2,                                                                                 \
        {                                                                                          \
            n0, n1                                                                                 \
        }                                                                                          \
    }
#define ROWS(n0, n1)                                                                               \
    2,                                                                                             \
    {                                                                                              \
        F32(n0, n1), F32(n0, n1)                                                                   \
    }
#define BLOCKS "rest dimension 1"

/* A row for each block, by the lanes of a warp, from what is kept of its elements. */
static const row long_rows[] = {
    {"long rows of several blocks of points",
     logarithms,
     "0 of 36816",
     NULL,
     2,
     {F32(3, 9203), {QN_F32, 1, {3}}}},
    {"long rows, two reduces", spread, "0 of 16480", NULL, ROWS(2, 2059)},
    {"long rows, whose elements a loop stores",
     stored,
     "rest dimension 2",
     NULL,
     3,
     {F32(2, 2059), F32(2, 2059), {QN_F32, 1, {2}}}},
    {"few sums of many points, whose blocks several warps take",
     moments,
     "warps 16 of a team",
     NULL,
     3,
     {F32(2, 70003), {QN_F32, 1, {2}}, {QN_F32, 1, {2}}}},
    {"long rows, exponentials in place of elements", softmax, "0 of 8240", NULL, ROWS(2, 2059)},
    {"a sum of exponentials of long rows",
     logarithms,
     "0 of 8240",
     NULL,
     2,
     {F32(2, 2059), {QN_F32, 1, {2}}}},
    {"rows in 8 bits", quantized, "0 of 8240", NULL, 2, {F32(2, 2059), {QN_I8, 2, {2, 2059}}}},
    {"rows of f16, weights of all rows",
     halves,
     "0 of 16528",
     NULL,
     3,
     {{QN_F16, 2, {2, 2059}}, {QN_F32, 1, {2059}}, {QN_F16, 2, {2, 2059}}}},
    {"planes of one group",
     groups,
     "0 of 16544",
     NULL,
     2,
     {{QN_F32, 3, {2, 7, 295}}, {QN_F32, 3, {2, 7, 295}}}},
};

static const row rows[] = {
    {"rows divided by their sum", divided, BLOCKS, NULL, ROWS(13, 301)},
    {"short rows divided by their sum", divided, BLOCKS, NULL, ROWS(70, 40)},
    {"two reduces, one of which needs the other", spread, BLOCKS, NULL, ROWS(9, 300)},
    {"the greatest, then a sum", softmax, BLOCKS, NULL, ROWS(9, 133)},
    {"rows of more than 4096 points that a block keeps", divided, "kept ", NULL, ROWS(3, 4133)},
    {"tiles of rows that a block keeps", divided, "tile 2 0", NULL, ROWS(1027, 35)},
    {"values that replace what they were computed from", spread, "kept ", NULL, ROWS(9, 300)},
    {"a reduce that adds what an earlier one has left",
     moments,
     "kept ",
     NULL,
     3,
     {F32(37, 133), {QN_F32, 1, {37}}, {QN_F32, 1, {37}}}},
    {"a sum of exponentials", logarithms, "kept ", NULL, 2, {F32(21, 133), {QN_F32, 1, {21}}}},
    {"members of records, the last block not whole",
     members,
     "moved records of 20 bytes",
     NULL,
     2,
     {F32(333, 5), {QN_F32, 1, {333}}}},
    {"members of records in whole blocks",
     members,
     "moved records of 20 bytes",
     NULL,
     2,
     {F32(512, 5), {QN_F32, 1, {512}}}},
    {"trips of a short loop over members",
     trips_of_members,
     "moved records of 24 bytes",
     NULL,
     1,
     {F32(333, 6)}},
    {"sums of the ends of rows, which begin anywhere",
     ends_of_rows,
     NULL,
     "ld.global.nc.v4.f32",
     2,
     {F32(61, 72), {QN_F32, 1, {61}}}},
    {"sums of the begins of rows",
     begins_of_rows,
     NULL,
     "ld.global.nc.v4.f32",
     2,
     {F32(61, 72), {QN_F32, 1, {61}}}},
    {"a sum for a plane",
     planes,
     "rest dimension 2",
     NULL,
     2,
     {{QN_F32, 3, {5, 7, 65}}, {QN_F32, 3, {5, 7, 65}}}},
    {"trips of a loop behind a sum, which is stored, too",
     stored,
     "rest dimension 2",
     NULL,
     3,
     {F32(13, 301), F32(13, 301), {QN_F32, 1, {13}}}},
    {"scans of rows, the last piece not whole",
     scans,
     "moved rows 400 bytes apart of view 1",
     NULL,
     3,
     {F32(96, 100), F32(96, 100), {QN_F32, 1, {96}}}},
    {"scans of rows in pieces",
     scans,
     "moved rows 256 bytes apart of view 1",
     NULL,
     3,
     {F32(160, 64), F32(160, 64), {QN_F32, 1, {160}}}},
    {"four neighbours of f16, whose values take the registers of eight",
     gelu,
     "at once 4 of dimension 0",
     NULL,
     3,
     {{QN_F16, 1, {1003}}, {QN_F16, 1, {1003}}, {QN_F16, 1, {1003}}}},
    {"the place of the least",
     place_of_least,
     "team warps",
     NULL,
     3,
     {F32(37, 170), {QN_I32, 1, {37}}, {QN_F32, 1, {37}}}},
    {"two sums in one loop",
     forces,
     NULL,
     "sub.rn.f32",
     4,
     {{QN_F32, 1, {67}}, {QN_F32, 1, {67}}, {QN_F32, 1, {67}}, {QN_F32, 1, {67}}}},
    {"a histogram", counts, "privatized", NULL, 2, {{QN_U8, 1, {300007}}, {QN_U32, 1, {64}}}},
    {"bins without room", counts, "team", NULL, 2, {{QN_U8, 1, {30007}}, {QN_U32, 1, {9001}}}},
    {"few updates of many bins",
     counts,
     "team",
     NULL,
     2,
     {{QN_U8, 1, {3007}}, {QN_U32, 1, {4099}}}},
    {"sums of weights",
     weights,
     "privatized",
     NULL,
     2,
     {{QN_U8, 1, {300007}}, {QN_F64, 2, {8, 9}}}},
    {"least weights", least_weights, "team", NULL, 2, {{QN_U8, 1, {300007}}, {QN_F32, 2, {8, 9}}}},
    {"a total", total, "team all blocks", NULL, 2, {{QN_F32, 1, {20011}}, {QN_F32, 1, {1}}}},
    {"parts of a total",
     of_total,
     "rest dimension 0",
     NULL,
     2,
     {{QN_F32, 1, {20011}}, {QN_F32, 1, {3005}}}},
    {"parts of short rows", parts_of_rows, NULL, NULL, 2, {F32(301, 9), F32(301, 9)}},
    {"pixels with three channels, twice as large",
     larger,
     NULL,
     NULL,
     2,
     {{QN_U8, 3, {9, 37, 3}}, {QN_U8, 3, {18, 74, 3}}}},
    {"a product of f16 and u8",
     product,
     "product with dimension",
     NULL,
     3,
     {{QN_F16, 2, {70, 33}}, {QN_U8, 2, {33, 90}}, F32(70, 90)}},
    {"channels apart",
     apart,
     "jam 3 of dimension 0",
     NULL,
     2,
     {{QN_U8, 3, {5, 67, 3}}, {QN_U8, 3, {3, 5, 67}}}},
    {"channels together",
     together,
     "jam 3 of dimension 2",
     NULL,
     2,
     {{QN_U8, 3, {3, 5, 67}}, {QN_U8, 3, {5, 67, 3}}}},
    {"channels mixed",
     mixed,
     "at once 16 of dimension 1",
     NULL,
     2,
     {{QN_U8, 3, {5, 67, 3}}, {QN_U8, 2, {5, 67}}}},
    {"products of bytes",
     bytes_times,
     "team warps",
     NULL,
     3,
     {{QN_I8, 2, {37, 1200}}, {QN_I8, 1, {1200}}, {QN_I32, 1, {37}}}},
    {"zeros of both signs",
     sides,
     "team warps",
     NULL,
     3,
     {F32(37, 333), {QN_F32, 1, {37}}, {QN_F32, 1, {37}}}},
    {"sums over two dimensions that are apart",
     channels,
     "team blocks",
     NULL,
     2,
     {{QN_F32, 3, {9, 21, 130}}, {QN_F32, 1, {21}}}},
    {"the same, in blocks of points that are apart",
     channels,
     "blocks of points apart",
     NULL,
     2,
     {{QN_F32, 3, {65, 5, 190}}, {QN_F32, 1, {5}}}},
    {"columns in the striped order",
     columns,
     "tile 16\nchunk",
     NULL,
     3,
     {F32(1001, 77), F32(1001, 77), {QN_F32, 1, {77}}}},
    {"columns in the striped order, in blocks of points that are apart",
     columns,
     "blocks of points apart",
     NULL,
     3,
     {F32(9001, 37), F32(9001, 37), {QN_F32, 1, {37}}}},
    {"a filter of several results in a thread",
     filter,
     "at once 4 of dimension 0",
     NULL,
     3,
     {{QN_F32, 1, {2012}}, {QN_F32, 1, {7}}, {QN_F32, 1, {2006}}}},
    {"the nearest, of several in a thread",
     nearest,
     "at once 4 of dimension 0",
     NULL,
     3,
     {F32(2003, 3), F32(9, 3), {QN_F32, 1, {2003}}}},
    {"a window of 5 x 5", window, NULL, NULL, 3, {F32(15, 41), F32(5, 5), F32(11, 37)}},
};

/** Iterations of a thread that are asked for, as the arrays are too small for several; 0: none. */
static int asked_width(const row *r)
{
    return r->text == filter || r->text == nearest ? 4 : 0;
}

/* ---------------------------------------------------------------- the same bits */

static void fill_numbers(int dtype, void *at, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = (i * 7919 + seed * 31) % 23 - 7;
        const double x = (double)number / 7;
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        const bool is_float = dtype == QN_F32 || dtype == QN_F16;
        bits = qn_convert_value(dtype, is_float ? QN_F64 : QN_I64,
                                is_float ? bits : (uint64_t)(number * number * 3));
        memcpy((char *)at + i * qn_dtype_bytes(dtype), &bits, (size_t)qn_dtype_bytes(dtype));
    }
}

static void open_job(gpu_job *j, const row *r)
{
    *j = (gpu_job){0};
    for (int v = 0; v < r->n; v++)
        gpu_job_add_right(j, r->view[v].dtype, r->view[v].rank, r->view[v].extent, fill_numbers);
}

/** What the plan, or the PTX, for a GPU of compute capability 9.0 says. */
static const char *stage_of(const row *r, const gpu_job *j, const qn_kernel *k, int stage)
{
    const qn_plan_options asked = {.bytes = sizeof asked, .width = asked_width(r)};
    const qn_options o = {.bytes = sizeof o,
                          .isa = QN_ISA_SM90,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = &asked};
    qn_error err = {0};
    qn_code *code = NULL;
    plan[0] = 0;
    if (qn_specialize(d.context, k, r->n, j->arg, &o, &code, &err) == QN_OK)
        qn_code_text(code, stage, plan, sizeof plan);
    qn_code_release(code);
    return plan;
}

static int count(const char *in, const char *what)
{
    int n = 0;
    for (const char *at = in; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void check(const row *r, const char *words)
{
    static const char *const way_name[] = {"auto", "exact", "dynamic"};
    char text[1024];
    gpu_job j;
    qn_error err = {0};
    const char *at = strchr(r->text, '$');
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - r->text), r->text, words, at + 1);
    qn_kernel *k = kernel_of(text);
    open_job(&j, r);
    const qn_status status = gpu_job_expect(&j, d.context, k, &err);
    if (status)
        tap_ok(false, "%s: interpreter: %s", r->what, err.message);
    if (k && r->phrase &&
        !tap_ok(strstr(stage_of(r, &j, k, QN_DUMP_PLAN), r->phrase) != NULL, "%s %s: %s", r->what,
                words, r->phrase))
        tap_note("%s", plan);
    if (k && r->ptx) { /* once a point: of eight, and of the four, two and one that are left */
        const int n = count(stage_of(r, &j, k, QN_DUMP_PTX), r->ptx);
        tap_ok(n > 0 && n <= 15, "%s %s: %d of %s, one for each point", r->what, words, n, r->ptx);
    }
    for (int way = QN_SPECIALIZE_EXACT; !status && way <= QN_SPECIALIZE_DYNAMIC; way++) {
        const qn_plan_options asked = {.bytes = sizeof asked, .width = asked_width(r)};
        const qn_options o = {.bytes = sizeof o, .specialize = way, .plan = &asked};
        gpu_job_copy(&j, j.memory, j.initial);
        bool is_same = device_launch(&d, k, r->n, j.arg, r->n, j.memory, &o, &err) == QN_OK &&
                       gpu_job_is_expected(&j);
        tap_ok(is_same, "%s %s, %s: the interpreter's bits %s", r->what, words, way_name[way],
               err.message);
    }
    gpu_job_close(&j);
    qn_kernel_release(k);
}

/** Neighbouring threads are asked for along a dimension on which no reduce depends. */
static void test_lanes_of_rest(void)
{
    static const char text[] = "kernel same (x: f32[], y: f32[]) ordered {\n"
                               "  for all i in y { y[i] = max j in dim(x, 0) of x[j] }\n"
                               "}\n";
    const qn_plan_options along = {.bytes = sizeof along, .lane_dim = 1};
    const qn_options o = {.bytes = sizeof o, .isa = QN_ISA_SM90, .plan = &along};
    qn_error err = {0};
    qn_code *code = NULL;
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(d.context, "x", QN_F32, 300), y = vector_of(d.context, "y", QN_F32, 30);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    bool is_made = qn_specialize(d.context, k, 2, args, &o, &code, &err) == QN_OK;
    plan[0] = 0;
    if (is_made)
        qn_code_text(code, QN_DUMP_PTX, plan, sizeof plan);
    tap_ok(strstr(plan, ".reqntid") && !strstr(plan, ".reqntid 0"),
           "blocks have threads where lanes of the rest are asked for %s", err.message);
    qn_code_release(code);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/** Both reducers meet in one view, and the other view has one element. */
static void test_two_reducers(void)
{
    const row r = {"two reducers of one view",
                   two_reducers,
                   "privatized access 3",
                   NULL,
                   3,
                   {{QN_I32, 1, {20011}}, {QN_I64, 2, {3, 2}}, {QN_U32, 0, {0}}}};
    check(&r, "");
    tap_ok(!strstr(plan, "privatized access 1"), "a view with two reducers is updated itself");
}

/** The least of zeros of both signs is the last one. */
static void test_zeros(void)
{
    const row r = {"zeros of both signs",
                   place_of_least,
                   "team blocks",
                   NULL,
                   3,
                   {F32(9, 96), {QN_I32, 1, {9}}, {QN_F32, 1, {9}}}};
    gpu_job j;
    qn_error err = {0};
    qn_kernel *k = kernel_of("kernel k (x: f32[,], z: f32[]) {\n  for all i in z { z[i] = min k in "
                             "dim(x, 1) of x[i,k] }\n}\n");
    open_job(&j, &r);
    float *x = j.memory[0].at, *z = j.memory[2].at;
    for (int64_t i = 0; i < (int64_t)9 * 96; i++)
        x[i] = (i * 7919) % 5 < 2 ? 0.0f : -0.0f;
    const qn_arg arg[2] = {j.arg[0], j.arg[2]};
    const device_memory memory[2] = {j.memory[0], j.memory[2]};
    const qn_options o = {.bytes = sizeof o, .specialize = QN_SPECIALIZE_EXACT};
    qn_status status = device_launch(&d, k, 2, arg, 2, memory, &o, &err);
    bool is_right = status == QN_OK;
    for (int i = 0; i < 9 && is_right; i++)
        is_right = memcmp(&z[i], &x[i * 96 + 95], sizeof *z) == 0;
    tap_ok(is_right, "the least of zeros of both signs is the last %s", err.message);
    gpu_job_close(&j);
    qn_kernel_release(k);
}

int main(void)
{
    char reason[256];
    bool is_open = device_open(&d, true);
    if (!is_open || !has_x86(reason, sizeof reason)) {
        tap_skip(is_open ? reason : d.no_gpu);
        device_close(&d);
        return tap_done();
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(&rows[i], "");
    for (size_t i = 0; i < 5; i++)
        check(&rows[i], "striped");
    check(&rows[0], "ordered");
    for (size_t i = 0; i < sizeof long_rows / sizeof long_rows[0]; i++)
        check(&long_rows[i], "striped");
    test_two_reducers();
    test_lanes_of_rest();
    test_zeros();
    device_close(&d);
    return tap_done();
}
