/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers_unseen.cu: the kernels of bench_cuda_unseen.c in CUDA C, as a competent author writes
 * them: rows by blocks or warps with their elements in registers, stencils that keep planes in
 * registers, tiles in shared memory where data is turned or used again, accesses of 16 bytes where
 * that is simple. `a` is an array of the host's with the pointers of all arrays.
 */
#include "cuda_peers_variants.cuh"
#include "cuda_peers_unseen.h"

#include <cuda_fp16.h>

#define ARRAY(type, n) ((type *)((const void *const *)a)[n])

static __device__ __forceinline__ float warp_sum(float v)
{
    for (int n = 16; n > 0; n /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, n);
    return v;
}
static __device__ __forceinline__ float warp_max(float v)
{
    for (int n = 16; n > 0; n /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, n));
    return v;
}
template <int B, bool MAX> static __device__ __forceinline__ float block_fold(float v)
{
    __shared__ float part[B / 32];
    v = MAX ? warp_max(v) : warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int n = 1; n < B / 32; n++)
        v = MAX ? fmaxf(v, part[n]) : v + part[n];
    return v;
}

/* ---------------------------------------------------------------- stencil of 27 points */

/* Threads march along i; of each plane they keep three sums, by the distance from the centre. */
template <int X, int Y, int LENGTH>
__global__ void __launch_bounds__(X *Y)
    stencil27_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    const int N = (int)UNSEEN_CUBE, k = blockIdx.x * X + threadIdx.x + 1,
              j = blockIdx.y * Y + threadIdx.y + 1;
    const int first = blockIdx.z * LENGTH + 1, end = min(first + LENGTH, N - 1);
    if (k >= N - 1 || j >= N - 1)
        return;
    float c[3], e[3], d[3];
    auto plane = [&](int i, int at) {
        const float *p = x + ((int64_t)i * N + j) * N + k;
        c[at] = p[0];
        e[at] = (p[-N] + p[N]) + (p[-1] + p[1]);
        d[at] = (p[-N - 1] + p[-N + 1]) + (p[N - 1] + p[N + 1]);
    };
    plane(first - 1, 0);
    plane(first, 1);
    for (int i = first; i < end; i++) {
        plane(i + 1, 2);
        y[((int64_t)i * N + j) * N + k] = 0.5f * c[1] + 0.125f * (c[0] + c[2] + e[1]) +
                                          0.0625f * (e[0] + e[2] + d[1]) + 0.03125f * (d[0] + d[2]);
        for (int n = 0; n < 2; n++) {
            c[n] = c[n + 1];
            e[n] = e[n + 1];
            d[n] = d[n + 1];
        }
    }
}
template <int X, int Y, int L> int stencil27(cudaStream_t s, void *, const void *a, const void *)
{
    const int n = (int)UNSEEN_CUBE - 2;
    stencil27_kernel<X, Y, L>
        <<<dim3((n + X - 1) / X, (n + Y - 1) / Y, (n + L - 1) / L), dim3(X, Y), 0, s>>>(
            ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_stencil27_f32, stencil27<32, 8, 32>, stencil27<64, 4, 32>, stencil27<32, 8, 80>,
     stencil27<32, 4, 16>, stencil27<64, 8, 40>)

/* ---------------------------------------------------------------- rows */

enum { NORMALIZE, SOFTMAX, LAYERNORM };

/* A block for each row, whose elements stay in registers. */
template <int KIND, int B>
__global__ void __launch_bounds__(B) rows_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    enum { E = UNSEEN_COLUMNS / B / 4 };
    const float4 *from = (const float4 *)(x + (int64_t)blockIdx.x * UNSEEN_COLUMNS);
    float4 *to = (float4 *)(y + (int64_t)blockIdx.x * UNSEEN_COLUMNS);
    float4 v[E];
    float sum = 0, mean = 0, most = -1e30f;
    for (int e = 0; e < E; e++)
        v[e] = from[e * B + threadIdx.x];
    if (KIND == SOFTMAX) {
        for (int e = 0; e < E; e++)
            most = fmaxf(fmaxf(most, fmaxf(v[e].x, v[e].y)), fmaxf(v[e].z, v[e].w));
        most = block_fold<B, true>(most);
        for (int e = 0; e < E; e++)
            v[e] = make_float4(expf(v[e].x - most), expf(v[e].y - most), expf(v[e].z - most),
                               expf(v[e].w - most));
    }
    for (int e = 0; e < E; e++)
        sum += (v[e].x + v[e].y) + (v[e].z + v[e].w);
    sum = block_fold<B, false>(sum);
    if (KIND == LAYERNORM) {
        mean = sum / UNSEEN_COLUMNS;
        sum = 0;
        for (int e = 0; e < E; e++) {
            v[e] = make_float4(v[e].x - mean, v[e].y - mean, v[e].z - mean, v[e].w - mean);
            sum += (v[e].x * v[e].x + v[e].y * v[e].y) + (v[e].z * v[e].z + v[e].w * v[e].w);
        }
        sum = sqrtf(block_fold<B, false>(sum) / UNSEEN_COLUMNS + 0.00001f);
    }
    for (int e = 0; e < E; e++)
        to[e * B + threadIdx.x] =
            make_float4(v[e].x / sum, v[e].y / sum, v[e].z / sum, v[e].w / sum);
}
template <int KIND, int B> int rows(cudaStream_t s, void *, const void *a, const void *)
{
    rows_kernel<KIND, B>
        <<<(unsigned)UNSEEN_ROWS, B, 0, s>>>(ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_normalize_f32, rows<NORMALIZE, 128>, rows<NORMALIZE, 256>, rows<NORMALIZE, 512>)
PEER(unseen_normalize_f32_striped, rows<NORMALIZE, 128>, rows<NORMALIZE, 256>, rows<NORMALIZE, 512>)
PEER(unseen_softmax_f32_striped, rows<SOFTMAX, 128>, rows<SOFTMAX, 256>, rows<SOFTMAX, 512>)
PEER(unseen_layernorm_f32, rows<LAYERNORM, 128>, rows<LAYERNORM, 256>, rows<LAYERNORM, 512>)

/* A warp for each row: the least element and its first index. */
template <int B>
__global__ void __launch_bounds__(B) argmin_kernel(int *__restrict__ y, const float *__restrict__ x)
{
    const int64_t row = (int64_t)blockIdx.x * (B / 32) + threadIdx.x / 32;
    const float4 *from = (const float4 *)(x + row * UNSEEN_COLUMNS);
    float least = 1e30f;
    int at = 1 << 30;
    auto take = [&](float v, int i) {
        if (v < least || (v == least && i < at)) {
            least = v;
            at = i;
        }
    };
#pragma unroll 4
    for (int k = threadIdx.x % 32; k < UNSEEN_COLUMNS / 4; k += 32) {
        const float4 v = from[k];
        take(v.x, 4 * k);
        take(v.y, 4 * k + 1);
        take(v.z, 4 * k + 2);
        take(v.w, 4 * k + 3);
    }
    for (int n = 16; n > 0; n /= 2)
        take(__shfl_xor_sync(0xffffffffu, least, n), __shfl_xor_sync(0xffffffffu, at, n));
    if (threadIdx.x % 32 == 0)
        y[row] = at;
}
template <int B> int argmin(cudaStream_t s, void *, const void *a, const void *)
{
    argmin_kernel<B>
        <<<(unsigned)(UNSEEN_ROWS / (B / 32)), B, 0, s>>>(ARRAY(int, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_argmin_f32, argmin<64>, argmin<128>, argmin<256>)

/* ---------------------------------------------------------------- bodies */

template <int B>
__global__ void __launch_bounds__(B)
    bodies_kernel(const float *__restrict__ x, const float *__restrict__ y,
                  const float *__restrict__ z, const float *__restrict__ m, float *ax, float *ay,
                  float *az)
{
    __shared__ float4 tile[B];
    const int i = blockIdx.x * B + threadIdx.x;
    const float xi = x[i], yi = y[i], zi = z[i];
    float sx = 0, sy = 0, sz = 0;
    for (int first = 0; first < UNSEEN_BODIES; first += B) {
        const int j = first + threadIdx.x;
        tile[threadIdx.x] = make_float4(x[j], y[j], z[j], m[j]);
        __syncthreads();
#pragma unroll 8
        for (int n = 0; n < B; n++) {
            const float4 p = tile[n];
            const float dx = p.x - xi, dy = p.y - yi, dz = p.z - zi,
                        r = dx * dx + dy * dy + dz * dz + 0.0625f;
            const float w = p.w / (r * sqrtf(r));
            sx += w * dx;
            sy += w * dy;
            sz += w * dz;
        }
        __syncthreads();
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}
template <int B> int bodies(cudaStream_t s, void *, const void *a, const void *)
{
    bodies_kernel<B><<<(unsigned)(UNSEEN_BODIES / B), B, 0, s>>>(
        ARRAY(const float, 0), ARRAY(const float, 1), ARRAY(const float, 2), ARRAY(const float, 3),
        ARRAY(float, 4), ARRAY(float, 5), ARRAY(float, 6));
    return launched();
}
PEER(unseen_bodies_f32, bodies<32>, bodies<64>, bodies<128>, bodies<256>)

/* ---------------------------------------------------------------- sparse rows */

/* L lanes for each row. */
template <int L, int B>
__global__ void __launch_bounds__(B)
    lanes_kernel(float *__restrict__ y, const int *__restrict__ row, const int *__restrict__ column,
                 const float *__restrict__ value, const float *__restrict__ x)
{
    const int64_t i = (int64_t)blockIdx.x * (B / L) + threadIdx.x / L;
    const int lane = threadIdx.x % L, end = row[i + 1];
    float sum = 0;
    for (int k = row[i] + lane; k < end; k += L)
        sum += value[k] * __ldg(x + column[k]);
    for (int n = L / 2; n > 0; n /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, n, L);
    if (lane == 0)
        y[i] = sum;
}
template <int L, int B> int sparse(cudaStream_t s, void *, const void *a, const void *)
{
    lanes_kernel<L, B><<<(unsigned)(UNSEEN_CSR_ROWS / (B / L)), B, 0, s>>>(
        ARRAY(float, 4), ARRAY(const int, 0), ARRAY(const int, 1), ARRAY(const float, 2),
        ARRAY(const float, 3));
    return launched();
}
PEER(unseen_csr_f32, sparse<4, 128>, sparse<8, 128>, sparse<16, 128>, sparse<32, 128>,
     sparse<8, 256>, sparse<16, 256>)

/* ---------------------------------------------------------------- records */

/* A block moves its records through shared memory, 16 bytes at a time. One variant: the result is
 * the argument. */
template <int B> __global__ void __launch_bounds__(B) record_kernel(float *p)
{
    __shared__ float tile[9 * B];
    float4 *global = (float4 *)(p + (int64_t)blockIdx.x * 9 * B);
    for (int n = threadIdx.x; n < 9 * B / 4; n += B)
        ((float4 *)tile)[n] = global[n];
    __syncthreads();
    float *q = tile + 9 * threadIdx.x;
#pragma unroll
    for (int n = 0; n < 3; n++) {
        const float v = 0.5f * q[6 + n] + q[3 + n];
        q[3 + n] = v;
        q[n] = 0.5f * v + q[n];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < 9 * B / 4; n += B)
        global[n] = ((float4 *)tile)[n];
}
extern "C" int peer_unseen_record9_f32(void *s, void *, const void *a, const void *)
{
    record_kernel<256>
        <<<(unsigned)(UNSEEN_RECORDS / 256), 256, 0, (cudaStream_t)s>>>(ARRAY(float, 0));
    return launched();
}

/* ---------------------------------------------------------------- images of bytes */

union quad {
    uint32_t word;
    uint8_t byte[4];
};

/* Four pixels in a thread, three words. */
template <int KIND, int B>
__global__ void __launch_bounds__(B)
    pixels_kernel(uint8_t *__restrict__ y, const uint8_t *__restrict__ x)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const uint32_t *p = (const uint32_t *)x + 3 * n;
    union {
        uint32_t word[3];
        uint8_t byte[12];
    } in = {{p[0], p[1], p[2]}};
    if (KIND == 0) {
        quad out;
#pragma unroll
        for (int e = 0; e < 4; e++)
            out.byte[e] = (uint8_t)((77u * in.byte[3 * e] + 150u * in.byte[3 * e + 1] +
                                     29u * in.byte[3 * e + 2]) >>
                                    8);
        ((uint32_t *)y)[n] = out.word;
        return;
    }
#pragma unroll
    for (int c = 0; c < 3; c++) {
        quad out;
#pragma unroll
        for (int e = 0; e < 4; e++)
            out.byte[e] = in.byte[3 * e + c];
        ((uint32_t *)(y + c * UNSEEN_IMAGE_0 * UNSEEN_IMAGE_1))[n] = out.word;
    }
}
template <int KIND, int B> int pixels(cudaStream_t s, void *, const void *a, const void *)
{
    pixels_kernel<KIND, B><<<(unsigned)(UNSEEN_IMAGE_0 * UNSEEN_IMAGE_1 / 4 / B), B, 0, s>>>(
        ARRAY(uint8_t, 1), ARRAY(const uint8_t, 0));
    return launched();
}
PEER(unseen_gray_u8, pixels<0, 128>, pixels<0, 256>)
PEER(unseen_planes_u8, pixels<1, 128>, pixels<1, 256>)

/* Four bytes in a thread; the first and the last pixel of a row stay as they are. */
template <int B>
__global__ void __launch_bounds__(B)
    blur_kernel(uint8_t *__restrict__ y, const uint8_t *__restrict__ x)
{
    enum { BYTES = 3 * UNSEEN_IMAGE_1, WORDS = BYTES / 4 };
    const int n = blockIdx.x * B + threadIdx.x;
    if (n >= WORDS)
        return;
    const int64_t row = (int64_t)blockIdx.y * BYTES;
    const uint32_t *p = (const uint32_t *)(x + row) + n;
    union {
        uint32_t word[3];
        uint8_t byte[12];
    } in = {{n ? p[-1] : 0, p[0], n + 1 < WORDS ? p[1] : 0}};
    quad out;
#pragma unroll
    for (int e = 0; e < 4; e++)
        out.byte[e] = (uint8_t)((in.byte[1 + e] + 2u * in.byte[4 + e] + in.byte[7 + e]) >> 2);
    if (n && n + 1 < WORDS)
        *((uint32_t *)(y + row) + n) = out.word;
    else
        for (int e = n ? 0 : 3; e < (n ? 1 : 4); e++)
            y[row + 4 * n + e] = out.byte[e];
}
template <int B> int blur(cudaStream_t s, void *, const void *a, const void *)
{
    blur_kernel<B>
        <<<dim3((unsigned)((3 * UNSEEN_IMAGE_1 / 4 + B - 1) / B), (unsigned)UNSEEN_IMAGE_0), B, 0,
           s>>>(ARRAY(uint8_t, 1), ARRAY(const uint8_t, 0));
    return launched();
}
PEER(unseen_blur_u8, blur<128>, blur<256>, blur<512>)

/* A histogram for each block in shared memory, 16 bytes in a load. One variant: the result is added
 * to. */
__global__ void __launch_bounds__(256) bins_kernel(unsigned *h, const uint8_t *__restrict__ x)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < UNSEEN_BINS / 16;
         i += (int64_t)gridDim.x * 256) {
        const uint4 v = ((const uint4 *)x)[i];
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int n = 0; n < 16; n++)
            atomicAdd(&own[word[n / 4] >> n % 4 * 8 & 255], 1u);
    }
    __syncthreads();
    atomicAdd(&h[threadIdx.x], own[threadIdx.x]);
}
extern "C" int peer_unseen_histogram_u8(void *s, void *, const void *a, const void *)
{
    bins_kernel<<<132 * 8, 256, 0, (cudaStream_t)s>>>(ARRAY(unsigned, 1), ARRAY(const uint8_t, 0));
    return launched();
}

/* ---------------------------------------------------------------- products */

/* Tiles of 128 x 128 x 16 in shared memory as f32, 8 x 8 results in a thread. */
__global__ void __launch_bounds__(256)
    half_kernel(float *__restrict__ c, const __half *__restrict__ a, const __half *__restrict__ b)
{
    enum { N = UNSEEN_PRODUCT, T = 128, K = 16 };
    __shared__ float as[K][T + 4], bs[K][T];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16, row = blockIdx.y * T,
              column = blockIdx.x * T;
    float sum[8][8] = {};
    union eight {
        uint4 v;
        __half h[8];
    } pa, pb;
    pa.v = *(const uint4 *)(a + (int64_t)(row + t / 2) * N + t % 2 * 8);
    pb.v = *(const uint4 *)(b + (int64_t)(t / 16) * N + column + t % 16 * 8);
    for (int k = 0; k < N; k += K) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < 8; e++) {
            as[t % 2 * 8 + e][t / 2] = __half2float(pa.h[e]);
            bs[t / 16][t % 16 * 8 + e] = __half2float(pb.h[e]);
        }
        __syncthreads();
        if (k + K < N) {
            pa.v = *(const uint4 *)(a + (int64_t)(row + t / 2) * N + k + K + t % 2 * 8);
            pb.v = *(const uint4 *)(b + (int64_t)(k + K + t / 16) * N + column + t % 16 * 8);
        }
#pragma unroll
        for (int n = 0; n < K; n++) {
            float u[8], v[8];
            *(float4 *)u = *(const float4 *)&as[n][4 * ty];
            *(float4 *)(u + 4) = *(const float4 *)&as[n][64 + 4 * ty];
            *(float4 *)v = *(const float4 *)&bs[n][4 * tx];
            *(float4 *)(v + 4) = *(const float4 *)&bs[n][64 + 4 * tx];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++)
                    sum[i][j] += u[i] * v[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int at = row + i / 4 * 64 + 4 * ty + i % 4;
            *(float4 *)(c + (int64_t)at * N + column + h * 64 + 4 * tx) =
                make_float4(sum[i][4 * h], sum[i][4 * h + 1], sum[i][4 * h + 2], sum[i][4 * h + 3]);
        }
}
static int half_product(cudaStream_t s, void *, const void *a, const void *)
{
    const unsigned n = (unsigned)(UNSEEN_PRODUCT / 128);
    half_kernel<<<dim3(n, n), 256, 0, s>>>(ARRAY(float, 2), ARRAY(const __half, 0),
                                           ARRAY(const __half, 1));
    return launched();
}
PEER(unseen_half_f16, half_product)

/* A row of 4 in a thread. */
template <int B>
__global__ void __launch_bounds__(B)
    small_kernel(float *__restrict__ y, const float *__restrict__ m, const float *__restrict__ x)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const float4 row = ((const float4 *)m)[n], v = ((const float4 *)x)[n / 4];
    y[n] = row.x * v.x + row.y * v.y + row.z * v.z + row.w * v.w;
}
template <int B> int small(cudaStream_t s, void *, const void *a, const void *)
{
    small_kernel<B><<<(unsigned)(4 * UNSEEN_SMALL / B), B, 0, s>>>(
        ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_small4x4_f32, small<128>, small<256>, small<512>)

/* Filter of 5 x 5: a thread marches down R rows with five rows' sums in registers. */
template <int B, int R>
__global__ void __launch_bounds__(B)
    filter_kernel(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ w)
{
    enum { F = UNSEEN_FILTER, PITCH = UNSEEN_COLUMNS + 4 };
    float weight[F][F], sum[R] = {};
    const int j = blockIdx.x * B + threadIdx.x, first = blockIdx.y * R;
#pragma unroll
    for (int u = 0; u < F; u++)
#pragma unroll
        for (int v = 0; v < F; v++)
            weight[u][v] = w[u * F + v];
#pragma unroll
    for (int i = 0; i < R + F - 1; i++) {
        float p[F];
#pragma unroll
        for (int v = 0; v < F; v++)
            p[v] = x[(int64_t)(first + i) * PITCH + j + v];
#pragma unroll
        for (int u = 0; u < F; u++)
            if (i - u >= 0 && i - u < R)
#pragma unroll
                for (int v = 0; v < F; v++)
                    sum[i - u] += weight[u][v] * p[v];
    }
#pragma unroll
    for (int i = 0; i < R; i++)
        y[(int64_t)(first + i) * UNSEEN_COLUMNS + j] = sum[i];
}
template <int B, int R> int filter(cudaStream_t s, void *, const void *a, const void *)
{
    filter_kernel<B, R>
        <<<dim3((unsigned)(UNSEEN_COLUMNS / B), (unsigned)(UNSEEN_ROWS / R)), B, 0, s>>>(
            ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_filter5x5_f32, filter<128, 4>, filter<128, 8>, filter<256, 4>, filter<256, 8>,
     filter<128, 16>)

/* Eight coordinates of a point in registers, the centres in shared memory. */
template <int B>
__global__ void __launch_bounds__(B)
    nearest_kernel(float *__restrict__ y, const float *__restrict__ p, const float *__restrict__ q)
{
    __shared__ float4 centre[2 * UNSEEN_CENTRES];
    for (int n = threadIdx.x; n < 2 * UNSEEN_CENTRES; n += B)
        centre[n] = ((const float4 *)q)[n];
    __syncthreads();
    const int64_t i = (int64_t)blockIdx.x * B + threadIdx.x;
    const float4 u = ((const float4 *)p)[2 * i], v = ((const float4 *)p)[2 * i + 1];
    float least = 1e30f;
#pragma unroll 4
    for (int j = 0; j < UNSEEN_CENTRES; j++) {
        const float4 c = centre[2 * j], d = centre[2 * j + 1];
        float sum = (u.x - c.x) * (u.x - c.x);
        sum += (u.y - c.y) * (u.y - c.y);
        sum += (u.z - c.z) * (u.z - c.z);
        sum += (u.w - c.w) * (u.w - c.w);
        sum += (v.x - d.x) * (v.x - d.x);
        sum += (v.y - d.y) * (v.y - d.y);
        sum += (v.z - d.z) * (v.z - d.z);
        sum += (v.w - d.w) * (v.w - d.w);
        least = fminf(least, sum);
    }
    y[i] = least;
}
template <int B> int nearest(cudaStream_t s, void *, const void *a, const void *)
{
    nearest_kernel<B><<<(unsigned)(UNSEEN_POINTS / B), B, 0, s>>>(
        ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_nearest8_f32, nearest<64>, nearest<128>, nearest<256>)

/* ---------------------------------------------------------------- lattice, sums, copies */

template <int X, int Y>
__global__ void __launch_bounds__(X *Y)
    lattice_kernel(float *__restrict__ g, const float *__restrict__ f)
{
    enum { H = UNSEEN_LATTICE_0, W = UNSEEN_LATTICE_1 };
    const int64_t n = (int64_t)H * W;
    const int j = blockIdx.x * X + threadIdx.x, i = blockIdx.y * Y + threadIdx.y;
    if (i < 1 || j < 1 || i >= H - 1 || j >= W - 1)
        return;
    const int64_t at = (int64_t)i * W + j;
    const float c = f[at], e = f[n + at - 1], u = f[2 * n + at - W], s = f[3 * n + at + W],
                v = f[4 * n + at + 1];
    const float a = f[5 * n + at - W - 1], b = f[6 * n + at - W + 1], d = f[7 * n + at + W - 1],
                q = f[8 * n + at + W + 1];
    const float r = c + (e + u + s + v) + (a + b + d + q);
    g[at] = 0.5f * c + 0.125f * r;
    g[n + at] = 0.5f * e + 0.0625f * r;
    g[2 * n + at] = 0.5f * u + 0.0625f * r;
    g[3 * n + at] = 0.5f * s + 0.0625f * r;
    g[4 * n + at] = 0.5f * v + 0.0625f * r;
    g[5 * n + at] = 0.5f * a + 0.03125f * r;
    g[6 * n + at] = 0.5f * b + 0.03125f * r;
    g[7 * n + at] = 0.5f * d + 0.03125f * r;
    g[8 * n + at] = 0.5f * q + 0.03125f * r;
}
template <int X, int Y> int lattice(cudaStream_t s, void *, const void *a, const void *)
{
    lattice_kernel<X, Y><<<dim3((unsigned)(UNSEEN_LATTICE_1 / X), (unsigned)(UNSEEN_LATTICE_0 / Y)),
                           dim3(X, Y), 0, s>>>(ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_lattice9_f32, lattice<128, 1>, lattice<256, 1>, lattice<64, 4>, lattice<32, 8>)

template <int B, int U>
__global__ void __launch_bounds__(B)
    middle_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x, i = n / UNSEEN_MIDDLE_2,
                  k = n % UNSEEN_MIDDLE_2;
    const float *p = x + i * UNSEEN_MIDDLE_1 * UNSEEN_MIDDLE_2 + k;
    float sum = 0;
#pragma unroll(U)
    for (int j = 0; j < UNSEEN_MIDDLE_1; j++)
        sum += p[j * UNSEEN_MIDDLE_2] * p[j * UNSEEN_MIDDLE_2];
    y[n] = sqrtf(sum);
}
template <int B, int U> int middle(cudaStream_t s, void *, const void *a, const void *)
{
    middle_kernel<B, U><<<(unsigned)(UNSEEN_MIDDLE_0 * UNSEEN_MIDDLE_2 / B), B, 0, s>>>(
        ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_middle_f32, middle<64, 8>, middle<128, 8>, middle<128, 16>, middle<256, 16>)

/* 4 results in a thread. */
template <int B>
__global__ void __launch_bounds__(B) odd_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const float4 u = ((const float4 *)x)[2 * n], v = ((const float4 *)x)[2 * n + 1];
    ((float4 *)y)[n] = make_float4(u.y, u.w, v.y, v.w);
}
template <int B> int odd(cudaStream_t s, void *, const void *a, const void *)
{
    odd_kernel<B><<<(unsigned)(UNSEEN_ROWS * UNSEEN_COLUMNS / 4 / B), B, 0, s>>>(
        ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_odd_f32, odd<128>, odd<256>, odd<512>)

/* Matrices of rows x columns turned through tiles of 32 x 32; the pitches are given. */
template <int Y>
__global__ void __launch_bounds__(32 * Y)
    turn_kernel(float *__restrict__ to, const float *__restrict__ from, int64_t from_pitch,
                int64_t to_pitch, int64_t from_plane, int64_t to_plane)
{
    __shared__ float tile[32][33];
    from += blockIdx.z * from_plane + (int64_t)blockIdx.y * 32 * from_pitch + blockIdx.x * 32;
    to += blockIdx.z * to_plane + (int64_t)blockIdx.x * 32 * to_pitch + blockIdx.y * 32;
#pragma unroll
    for (int n = threadIdx.y; n < 32; n += Y)
        tile[n][threadIdx.x] = from[n * from_pitch + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int n = threadIdx.y; n < 32; n += Y)
        to[n * to_pitch + threadIdx.x] = tile[threadIdx.x][n];
}
template <int Y> int last_first(cudaStream_t s, void *, const void *a, const void *)
{
    const int64_t rows = UNSEEN_PERMUTE_0 * UNSEEN_PERMUTE_1;
    turn_kernel<Y>
        <<<dim3((unsigned)(UNSEEN_PERMUTE_2 / 32), (unsigned)(rows / 32)), dim3(32, Y), 0, s>>>(
            ARRAY(float, 1), ARRAY(const float, 0), UNSEEN_PERMUTE_2, rows, 0, 0);
    return launched();
}
template <int Y> int reverse(cudaStream_t s, void *, const void *a, const void *)
{
    turn_kernel<Y><<<dim3((unsigned)(UNSEEN_PERMUTE_2 / 32), (unsigned)(UNSEEN_PERMUTE_0 / 32),
                          (unsigned)UNSEEN_PERMUTE_1),
                     dim3(32, Y), 0, s>>>(
        ARRAY(float, 1), ARRAY(const float, 0), UNSEEN_PERMUTE_1 * UNSEEN_PERMUTE_2,
        UNSEEN_PERMUTE_1 * UNSEEN_PERMUTE_0, UNSEEN_PERMUTE_2, UNSEEN_PERMUTE_0);
    return launched();
}
PEER(unseen_last_first_f32, last_first<4>, last_first<8>, last_first<16>)
PEER(unseen_reverse_f32, reverse<4>, reverse<8>, reverse<16>)

template <int B>
__global__ void __launch_bounds__(B)
    gather_kernel(float *__restrict__ y, const float *__restrict__ x, const int *__restrict__ at)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const int4 i = ((const int4 *)at)[n];
    ((float4 *)y)[n] = make_float4(__ldg(x + i.x), __ldg(x + i.y), __ldg(x + i.z), __ldg(x + i.w));
}
template <int B> int gather(cudaStream_t s, void *, const void *a, const void *)
{
    gather_kernel<B><<<(unsigned)(UNSEEN_GATHER / 4 / B), B, 0, s>>>(
        ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const int, 1));
    return launched();
}
PEER(unseen_gather_f32, gather<128>, gather<256>, gather<512>)
