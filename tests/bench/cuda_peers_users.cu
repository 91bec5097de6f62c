/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers_users.cu: the kernels of bench_cuda_users.c in CUDA C, as a competent author writes
 * them. `a` is an array of the host's with the pointers of all arrays. Kernels that change what
 * they read have one variant, because trying several would change it more than once.
 */
#include "cuda_peers_variants.cuh"
#include "cuda_peers_unseen.h"

#include <cuda_fp16.h>

#define ARRAY(type, n) ((type *)((const void *const *)a)[n])
#define SIDE(name) static int name(cudaStream_t s, void *, const void *a, const void *)
#define ONE(name, call)                                                                            \
    extern "C" int peer_unseen_##name(void *stream, void *, const void *a, const void *)           \
    {                                                                                              \
        cudaStream_t s = (cudaStream_t)stream;                                                     \
        call;                                                                                      \
        return launched();                                                                         \
    }

template <class T, class F> static __device__ __forceinline__ T warp_fold(T v, F f)
{
    for (int n = 16; n > 0; n /= 2)
        v = f(v, __shfl_xor_sync(0xffffffffu, v, n));
    return v;
}
static __device__ __forceinline__ float add(float x, float y)
{
    return x + y;
}

/* ---------------------------------------------------------------- filters */

/* A tile of the signal in shared memory, R results in a thread with a window in registers. */
template <int B, int R>
__global__ void __launch_bounds__(B) taps_kernel(float *__restrict__ y, const float *__restrict__ x,
                                                 const float *__restrict__ w)
{
    enum { T = USERS_TAPS, N = B * R };
    __shared__ float tile[N + T - 1], weight[T];
    const int64_t first = (int64_t)blockIdx.x * N;
    for (int n = threadIdx.x; n < N + T - 1; n += B)
        tile[n] = x[first + n];
    if (threadIdx.x < T)
        weight[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    float sum[R] = {};
#pragma unroll
    for (int k = 0; k < T; k++)
#pragma unroll
        for (int r = 0; r < R; r++)
            sum[r] += weight[k] * tile[r * B + threadIdx.x + k];
    for (int r = 0; r < R; r++)
        y[first + r * B + threadIdx.x] = sum[r];
}
template <int B, int R> SIDE(taps)
{
    taps_kernel<B, R><<<(unsigned)(USERS_SIGNAL / (B * R)), B, 0, s>>>(
        ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_taps, taps<128, 4>, taps<256, 4>, taps<128, 8>, taps<256, 8>)

/* A thread has all output channels of R points of a row. */
template <int X, int Y>
__global__ void __launch_bounds__(X *Y)
    layers_kernel(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ w)
{
    enum { C = USERS_CHANNELS, N = USERS_SIDE, P = N + 2 };
    __shared__ float weight[C * 9][C];
    for (int n = threadIdx.y * X + threadIdx.x; n < C * C * 9; n += X * Y)
        weight[n % (C * 9)][n / (C * 9)] = w[n];
    __syncthreads();
    const int j = blockIdx.x * X + threadIdx.x, i = blockIdx.y * Y + threadIdx.y;
    float sum[C] = {};
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int u = 0; u < 3; u++)
#pragma unroll
            for (int v = 0; v < 3; v++) {
                const float e = x[((int64_t)c * P + i + u) * P + j + v];
#pragma unroll
                for (int o = 0; o < C; o++)
                    sum[o] += weight[c * 9 + 3 * u + v][o] * e;
            }
#pragma unroll
    for (int o = 0; o < C; o++)
        y[((int64_t)o * N + i) * N + j] = sum[o];
}
template <int X, int Y> SIDE(layers)
{
    layers_kernel<X, Y><<<dim3((unsigned)(USERS_SIDE / X), (unsigned)(USERS_SIDE / Y)), dim3(X, Y),
                          0, s>>>(ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_layers, layers<32, 4>, layers<32, 8>, layers<64, 4>, layers<128, 1>)

/* ---------------------------------------------------------------- products */

/* M pairs of 6 x 6 in shared memory, a row of a product in a thread. */
template <int M>
__global__ void __launch_bounds__(6 * M)
    batch_kernel(float *__restrict__ c, const float *__restrict__ a, const float *__restrict__ b)
{
    __shared__ float4 ta[9 * M], tb[9 * M];
    const int64_t first = (int64_t)blockIdx.x * 9 * M;
    for (int n = threadIdx.x; n < 9 * M; n += 6 * M) {
        ta[n] = ((const float4 *)a)[first + n];
        tb[n] = ((const float4 *)b)[first + n];
    }
    __syncthreads();
    const float *p = (const float *)ta + 6 * threadIdx.x,
                *q = (const float *)tb + threadIdx.x / 6 * 36;
    float sum[6] = {};
#pragma unroll
    for (int k = 0; k < 6; k++)
#pragma unroll
        for (int j = 0; j < 6; j++)
            sum[j] += p[k] * q[6 * k + j];
    __syncthreads();
    for (int j = 0; j < 6; j++)
        ((float *)ta)[6 * threadIdx.x + j] = sum[j];
    __syncthreads();
    for (int n = threadIdx.x; n < 9 * M; n += 6 * M)
        ((float4 *)c)[first + n] = ta[n];
}
template <int M> SIDE(batch)
{
    batch_kernel<M><<<(unsigned)(USERS_BATCH / M), 6 * M, 0, s>>>(
        ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_batch, batch<16>, batch<32>, batch<64>)

/* A warp for each row, 16 bytes in a load. */
template <int B>
__global__ void __launch_bounds__(B)
    integer_kernel(int *__restrict__ y, const int8_t *__restrict__ m, const int8_t *__restrict__ x)
{
    const int64_t i = (int64_t)blockIdx.x * (B / 32) + threadIdx.x / 32;
    const int4 *row = (const int4 *)(m + i * UNSEEN_COLUMNS), *v = (const int4 *)x;
    int sum = 0;
#pragma unroll 4
    for (int k = threadIdx.x % 32; k < UNSEEN_COLUMNS / 16; k += 32) {
        const int4 p = row[k], q = v[k];
        sum = __dp4a(p.x, q.x, sum);
        sum = __dp4a(p.y, q.y, sum);
        sum = __dp4a(p.z, q.z, sum);
        sum = __dp4a(p.w, q.w, sum);
    }
    sum = warp_fold(sum, [](int u, int w) { return u + w; });
    if (threadIdx.x % 32 == 0)
        y[i] = sum;
}
template <int B> SIDE(integer)
{
    integer_kernel<B><<<(unsigned)(4 * UNSEEN_ROWS / (B / 32)), B, 0, s>>>(
        ARRAY(int, 2), ARRAY(const int8_t, 0), ARRAY(const int8_t, 1));
    return launched();
}
PEER(unseen_integer, integer<64>, integer<128>, integer<256>)

template <int B>
__global__ void __launch_bounds__(B)
    ell_kernel(float *__restrict__ y, const float *__restrict__ x, const int *__restrict__ column,
               const float *__restrict__ value)
{
    const int i = blockIdx.x * B + threadIdx.x;
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < USERS_ELL_WIDTH; k++)
        sum += value[k * USERS_ELL_ROWS + i] * __ldg(x + column[k * USERS_ELL_ROWS + i]);
    y[i] = sum;
}
template <int B> SIDE(ell)
{
    ell_kernel<B><<<(unsigned)(USERS_ELL_ROWS / B), B, 0, s>>>(
        ARRAY(float, 3), ARRAY(const float, 0), ARRAY(const int, 1), ARRAY(const float, 2));
    return launched();
}
PEER(unseen_ell, ell<64>, ell<128>, ell<256>)

/* Four points in a thread, R of the others one after the other. */
template <int B, int R>
__global__ void __launch_bounds__(B)
    distances_kernel(float *__restrict__ y, const float *__restrict__ p,
                     const float *__restrict__ q)
{
    const int j = 4 * (blockIdx.x * B + threadIdx.x), first = blockIdx.y * R;
    float v[4][3];
#pragma unroll
    for (int n = 0; n < 12; n++)
        v[n / 3][n % 3] = q[3 * j + n];
#pragma unroll 4
    for (int i = first; i < first + R; i++) {
        const float a = p[3 * i], b = p[3 * i + 1], c = p[3 * i + 2];
        float d[4];
#pragma unroll
        for (int n = 0; n < 4; n++)
            d[n] = sqrtf((a - v[n][0]) * (a - v[n][0]) + (b - v[n][1]) * (b - v[n][1]) +
                         (c - v[n][2]) * (c - v[n][2]));
        *(float4 *)(y + (int64_t)i * USERS_POINTS + j) = make_float4(d[0], d[1], d[2], d[3]);
    }
}
template <int B, int R> SIDE(distances)
{
    distances_kernel<B, R>
        <<<dim3((unsigned)(USERS_POINTS / (4 * B)), (unsigned)(USERS_POINTS / R)), B, 0, s>>>(
            ARRAY(float, 2), ARRAY(const float, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_distances, distances<128, 8>, distances<128, 16>, distances<256, 8>, distances<64, 16>)

/* ---------------------------------------------------------------- rows */

enum { ARGMAX, MOMENTS, LOGSUMEXP };

/* A warp for each row, whose elements stay in registers. */
template <int KIND, int B>
__global__ void __launch_bounds__(B)
    short_rows_kernel(void *y, float *spread, const float *__restrict__ x)
{
    enum { N = USERS_SHORT_COLUMNS, E = N / 128 };
    const int row = blockIdx.x * (B / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float4 v[E];
    for (int e = 0; e < E; e++)
        v[e] = ((const float4 *)(x + (int64_t)row * N))[e * 32 + lane];
    const float *p = (const float *)v;
    if (KIND == MOMENTS) {
        float sum = 0, squares = 0;
#pragma unroll
        for (int n = 0; n < 4 * E; n++) {
            sum += p[n];
            squares += p[n] * p[n];
        }
        sum = warp_fold(sum, add) / N;
        squares = warp_fold(squares, add) / N;
        if (lane == 0) {
            ((float *)y)[row] = sum;
            spread[row] = sqrtf(squares - sum * sum);
        }
        return;
    }
    float most = p[0];
#pragma unroll
    for (int n = 1; n < 4 * E; n++)
        most = fmaxf(most, p[n]);
    most = warp_fold(most, fmaxf);
    if (KIND == ARGMAX) {
        int at = -1;
#pragma unroll
        for (int n = 0; n < 4 * E; n++)
            at = p[n] == most ? n / 4 * 128 + 4 * lane + n % 4 : at;
        at = warp_fold(at, [](int u, int w) { return max(u, w); });
        if (lane == 0)
            ((int *)y)[row] = at;
        return;
    }
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 4 * E; n++)
        sum += expf(p[n] - most);
    sum = warp_fold(sum, add);
    if (lane == 0)
        ((float *)y)[row] = most + logf(sum);
}
template <int KIND, int B> SIDE(short_rows)
{
    short_rows_kernel<KIND, B><<<(unsigned)(USERS_SHORT_ROWS / (B / 32)), B, 0, s>>>(
        ARRAY(void, 1), KIND == MOMENTS ? ARRAY(float, 2) : NULL, ARRAY(const float, 0));
    return launched();
}
PEER(unseen_argmax, short_rows<ARGMAX, 64>, short_rows<ARGMAX, 128>, short_rows<ARGMAX, 256>)
PEER(unseen_moments, short_rows<MOMENTS, 64>, short_rows<MOMENTS, 128>, short_rows<MOMENTS, 256>)
PEER(unseen_logsumexp, short_rows<LOGSUMEXP, 64>, short_rows<LOGSUMEXP, 128>,
     short_rows<LOGSUMEXP, 256>)

/* A block for each channel. */
template <int B>
__global__ void __launch_bounds__(B)
    channels_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    __shared__ float part[B / 32];
    const int c = blockIdx.x;
    float sum = 0;
    for (int n = 0; n < UNSEEN_MIDDLE_0; n++) {
        const float4 *p =
            (const float4 *)(x + ((int64_t)n * UNSEEN_MIDDLE_1 + c) * UNSEEN_MIDDLE_2);
        for (int i = threadIdx.x; i < UNSEEN_MIDDLE_2 / 4; i += B) {
            const float4 v = p[i];
            sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
        }
    }
    sum = warp_fold(sum, add);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int n = 1; n < B / 32; n++)
            sum += part[n];
        y[c] = sum;
    }
}
template <int B> SIDE(channels)
{
    channels_kernel<B>
        <<<(unsigned)UNSEEN_MIDDLE_1, B, 0, s>>>(ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_channels, channels<128>, channels<256>)

/* ---------------------------------------------------------------- running sums */

template <int B, int U>
__global__ void __launch_bounds__(B)
    scan_columns_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    const int j = blockIdx.x * B + threadIdx.x;
    float t = 0;
    for (int64_t i = 0; i < USERS_SCAN; i += U) {
        float v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] = x[(i + u) * USERS_SCANS + j];
#pragma unroll
        for (int u = 0; u < U; u++)
            y[(i + u) * USERS_SCANS + j] = t += v[u];
    }
}
template <int B, int U> SIDE(scan_columns)
{
    scan_columns_kernel<B, U>
        <<<(unsigned)(USERS_SCANS / B), B, 0, s>>>(ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_scan_columns, scan_columns<32, 16>, scan_columns<64, 16>, scan_columns<128, 16>,
     scan_columns<64, 32>)

/* A warp for 32 rows, by tiles of 32 x 32 in shared memory; each lane adds up a row of the tile. */
__global__ void __launch_bounds__(32)
    scan_rows_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    __shared__ float tile[32][33];
    const int lane = threadIdx.x;
    const int64_t first = (int64_t)blockIdx.x * 32 * USERS_SCAN + lane;
    float t = 0, next[32];
#pragma unroll
    for (int r = 0; r < 32; r++)
        next[r] = x[first + r * USERS_SCAN];
    for (int j = 0; j < USERS_SCAN; j += 32) {
#pragma unroll
        for (int r = 0; r < 32; r++)
            tile[r][lane] = next[r];
        __syncwarp();
        if (j + 32 < USERS_SCAN)
#pragma unroll
            for (int r = 0; r < 32; r++)
                next[r] = x[first + r * USERS_SCAN + j + 32];
#pragma unroll
        for (int c = 0; c < 32; c++)
            tile[lane][c] = t += tile[lane][c];
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 32; r++)
            y[first + r * USERS_SCAN + j] = tile[r][lane];
        __syncwarp();
    }
}
SIDE(scan_rows)
{
    scan_rows_kernel<<<(unsigned)(USERS_SCANS / 32), 32, 0, s>>>(ARRAY(float, 1),
                                                                 ARRAY(const float, 0));
    return launched();
}
PEER(unseen_scan_rows, scan_rows)

/* ---------------------------------------------------------------- elements */

template <int B>
__global__ void __launch_bounds__(B)
    scatter_kernel(float *__restrict__ y, const int *__restrict__ at, const float *__restrict__ x)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const int4 i = ((const int4 *)at)[n];
    const float4 v = ((const float4 *)x)[n];
    y[i.x] = v.x;
    y[i.y] = v.y;
    y[i.z] = v.z;
    y[i.w] = v.w;
}
template <int B> SIDE(scatter)
{
    scatter_kernel<B><<<(unsigned)(UNSEEN_GATHER / 4 / B), B, 0, s>>>(
        ARRAY(float, 2), ARRAY(const int, 0), ARRAY(const float, 1));
    return launched();
}
PEER(unseen_scatter, scatter<64>, scatter<128>, scatter<256>)

/* Particles through shared memory, 16 bytes at a time. */
template <int B> __global__ void __launch_bounds__(B) particles_kernel(float *p)
{
    __shared__ float tile[6 * B];
    float4 *global = (float4 *)(p + (int64_t)blockIdx.x * 6 * B);
    for (int n = threadIdx.x; n < 6 * B / 4; n += B)
        ((float4 *)tile)[n] = global[n];
    __syncthreads();
    float *q = tile + 6 * threadIdx.x;
#pragma unroll
    for (int c = 0; c < 3; c++) {
        const float r = q[c] + 0.5f * q[c + 3];
        q[c] = r > 1 ? 2 - r : r;
        q[c + 3] = r > 1 ? -q[c + 3] : q[c + 3];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < 6 * B / 4; n += B)
        global[n] = ((float4 *)tile)[n];
}
ONE(particles, (particles_kernel<256><<<(unsigned)(USERS_PARTICLES / 256), 256, 0, s>>>(
                   ARRAY(float, 0))))

union pixels {
    uint4 v;
    uint8_t byte[16];
};
template <int B>
__global__ void __launch_bounds__(B)
    blend_kernel(uint8_t *__restrict__ y, const uint8_t *__restrict__ x,
                 const uint8_t *__restrict__ z)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    pixels p, q, r;
    p.v = ((const uint4 *)x)[n];
    q.v = ((const uint4 *)z)[n];
#pragma unroll
    for (int e = 0; e < 16; e++) {
        const uint32_t a = p.byte[e / 4 * 4 + 3];
        r.byte[e] = (uint8_t)((p.byte[e] * a + q.byte[e] * (255 - a) + 127) / 255);
    }
    ((uint4 *)y)[n] = r.v;
}
template <int B> SIDE(blend)
{
    blend_kernel<B><<<(unsigned)(UNSEEN_IMAGE_0 * UNSEEN_IMAGE_1 / 4 / B), B, 0, s>>>(
        ARRAY(uint8_t, 2), ARRAY(const uint8_t, 0), ARRAY(const uint8_t, 1));
    return launched();
}
PEER(unseen_blend, blend<128>, blend<256>)

template <int B>
__global__ void __launch_bounds__(B) swap_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    enum { Q = USERS_SWAP_2 / 4 };
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const int k = (int)(n % Q), i = (int)(n / Q % USERS_SWAP_0), j = (int)(n / Q / USERS_SWAP_0);
    ((float4 *)y)[n] = ((const float4 *)x)[((int64_t)i * USERS_SWAP_1 + j) * Q + k];
}
template <int B> SIDE(swap)
{
    swap_kernel<B>
        <<<(unsigned)(USERS_SWAP_0 * USERS_SWAP_1 * USERS_SWAP_2 / 4 / B), B, 0, s>>>(
            ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_swap, swap<64>, swap<128>, swap<256>)

__global__ void __launch_bounds__(256)
    masked_kernel(float *y, const uint8_t *__restrict__ m, const float *__restrict__ x)
{
    const int64_t n = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const uchar4 mask = ((const uchar4 *)m)[n];
    const float4 v = ((const float4 *)x)[n];
    float4 w = ((float4 *)y)[n];
    w.x = mask.x > 127 ? 0.5f * v.x + w.x : w.x;
    w.y = mask.y > 127 ? 0.5f * v.y + w.y : w.y;
    w.z = mask.z > 127 ? 0.5f * v.z + w.z : w.z;
    w.w = mask.w > 127 ? 0.5f * v.w + w.w : w.w;
    ((float4 *)y)[n] = w;
}
ONE(masked, (masked_kernel<<<(unsigned)(USERS_SIGNAL / 4 / 256), 256, 0, s>>>(
                ARRAY(float, 2), ARRAY(const uint8_t, 0), ARRAY(const float, 1))))

template <int B>
__global__ void __launch_bounds__(B)
    dequantize_kernel(float *__restrict__ y, const __half *__restrict__ x,
                      const int8_t *__restrict__ q, const float *__restrict__ s)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const float scale = s[n / (UNSEEN_COLUMNS / 4)];
    const uint2 raw = ((const uint2 *)x)[n];
    const float2 low = __half22float2(*(const __half2 *)&raw.x),
                 high = __half22float2(*(const __half2 *)&raw.y);
    const char4 v = ((const char4 *)q)[n];
    ((float4 *)y)[n] = make_float4((float)v.x * scale + low.x, (float)v.y * scale + low.y,
                                   (float)v.z * scale + high.x, (float)v.w * scale + high.y);
}
template <int B> SIDE(dequantize)
{
    dequantize_kernel<B><<<(unsigned)(UNSEEN_ROWS * UNSEEN_COLUMNS / 4 / B), B, 0, s>>>(
        ARRAY(float, 3), ARRAY(const __half, 0), ARRAY(const int8_t, 1), ARRAY(const float, 2));
    return launched();
}
PEER(unseen_dequantize, dequantize<128>, dequantize<256>, dequantize<512>)

static __device__ __forceinline__ float gelu_of(float x, float b, float r)
{
    const float t = x + b;
    return r + 0.5f * t * (1 + tanhf(0.7978845608f * (t + 0.044715f * t * t * t)));
}
template <int B>
__global__ void __launch_bounds__(B)
    gelu_kernel(float *__restrict__ y, const float *__restrict__ x, const float *__restrict__ bias,
                const float *__restrict__ r)
{
    const int64_t n = (int64_t)blockIdx.x * B + threadIdx.x;
    const float4 v = ((const float4 *)x)[n], b = ((const float4 *)bias)[n % (UNSEEN_COLUMNS / 4)],
                 w = ((const float4 *)r)[n];
    ((float4 *)y)[n] = make_float4(gelu_of(v.x, b.x, w.x), gelu_of(v.y, b.y, w.y),
                                   gelu_of(v.z, b.z, w.z), gelu_of(v.w, b.w, w.w));
}
template <int B> SIDE(gelu)
{
    gelu_kernel<B><<<(unsigned)(UNSEEN_ROWS * UNSEEN_COLUMNS / 4 / B), B, 0, s>>>(
        ARRAY(float, 3), ARRAY(const float, 0), ARRAY(const float, 1), ARRAY(const float, 2));
    return launched();
}
PEER(unseen_gelu, gelu<128>, gelu<256>, gelu<512>)

/* R rows in a thread, four points of each. */
template <int B, int R>
__global__ void __launch_bounds__(B)
    periodic_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    enum { H = UNSEEN_ROWS, W = UNSEEN_COLUMNS };
    const int j = 4 * (blockIdx.x * B + threadIdx.x), first = blockIdx.y * R;
    float4 above = *(const float4 *)(x + (int64_t)((first + H - 1) % H) * W + j),
           here = *(const float4 *)(x + (int64_t)first * W + j);
#pragma unroll
    for (int r = 0; r < R; r++) {
        const float *row = x + (int64_t)(first + r) * W;
        const float4 below = *(const float4 *)(x + (int64_t)((first + r + 1) % H) * W + j);
        const float left = row[(j + W - 1) % W], right = row[(j + 4) % W];
        float4 out;
        out.x = 0.5f * here.x + 0.125f * (above.x + below.x + left + here.y);
        out.y = 0.5f * here.y + 0.125f * (above.y + below.y + here.x + here.z);
        out.z = 0.5f * here.z + 0.125f * (above.z + below.z + here.y + here.w);
        out.w = 0.5f * here.w + 0.125f * (above.w + below.w + here.z + right);
        *(float4 *)(y + (int64_t)(first + r) * W + j) = out;
        above = here;
        here = below;
    }
}
template <int B, int R> SIDE(periodic)
{
    periodic_kernel<B, R>
        <<<dim3((unsigned)(UNSEEN_COLUMNS / 4 / B), (unsigned)(UNSEEN_ROWS / R)), B, 0, s>>>(
            ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_periodic, periodic<128, 4>, periodic<256, 4>, periodic<128, 8>, periodic<128, 2>)

static __device__ __forceinline__ float3 slope(float x, float y, float z)
{
    return make_float3(10 * (y - x), x * (28 - z) - y, x * y - 2.5f * z);
}
__global__ void __launch_bounds__(256) lorenz_kernel(float *x, float *y, float *z)
{
    const int n = blockIdx.x * 256 + threadIdx.x;
    float a = x[n], b = y[n], c = z[n];
    for (int t = 0; t < 8; t++) {
        const float h = 0.0078125f, w = 0.00260416675f;
        const float3 p = slope(a, b, c), d = slope(a + h * p.x, b + h * p.y, c + h * p.z),
                     g = slope(a + h * d.x, b + h * d.y, c + h * d.z),
                     l = slope(a + 2 * h * g.x, b + 2 * h * g.y, c + 2 * h * g.z);
        a += w * (p.x + 2 * d.x + 2 * g.x + l.x);
        b += w * (p.y + 2 * d.y + 2 * g.y + l.y);
        c += w * (p.z + 2 * d.z + 2 * g.z + l.z);
    }
    x[n] = a;
    y[n] = b;
    z[n] = c;
}
ONE(lorenz, (lorenz_kernel<<<(unsigned)(USERS_SERIES / 256), 256, 0, s>>>(
                ARRAY(float, 0), ARRAY(float, 1), ARRAY(float, 2))))

/* ---------------------------------------------------------------- images of floats */

template <int X, int Y>
__global__ void __launch_bounds__(X *Y)
    resize_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    enum { H = 5 * UNSEEN_ROWS / 8, W = 5 * UNSEEN_COLUMNS / 8 };
    const int j = blockIdx.x * X + threadIdx.x, i = blockIdx.y * Y + threadIdx.y;
    const float u = 0.625f * i, v = 0.625f * j;
    const int a = min((int)u, H - 1), b = min((int)v, W - 1), c = min(a + 1, H - 1),
              d = min(b + 1, W - 1);
    const float s = u - a, t = v - b;
    const float p = x[a * W + b] + t * (x[a * W + d] - x[a * W + b]),
                q = x[c * W + b] + t * (x[c * W + d] - x[c * W + b]);
    y[(int64_t)i * UNSEEN_COLUMNS + j] = p + s * (q - p);
}
template <int X, int Y> SIDE(resize)
{
    resize_kernel<X, Y><<<dim3((unsigned)(UNSEEN_COLUMNS / X), (unsigned)(UNSEEN_ROWS / Y)),
                          dim3(X, Y), 0, s>>>(ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_resize, resize<32, 4>, resize<32, 8>, resize<64, 4>, resize<128, 2>)

/* Two elements of two rows in a thread, of each of which there are 4 results. */
template <int B>
__global__ void __launch_bounds__(B)
    upsample_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    const int64_t j = blockIdx.x * B + threadIdx.x, i = blockIdx.y;
    const float2 v = ((const float2 *)(x + i * (UNSEEN_COLUMNS / 2)))[j];
    const float4 w = make_float4(v.x, v.x, v.y, v.y);
    ((float4 *)(y + 2 * i * UNSEEN_COLUMNS))[j] = w;
    ((float4 *)(y + (2 * i + 1) * UNSEEN_COLUMNS))[j] = w;
}
template <int B> SIDE(upsample)
{
    upsample_kernel<B>
        <<<dim3((unsigned)(UNSEEN_COLUMNS / 4 / B), (unsigned)(UNSEEN_ROWS / 2)), B, 0, s>>>(
            ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_upsample, upsample<64>, upsample<128>, upsample<256>)

template <int B>
__global__ void __launch_bounds__(B) pool_kernel(float *__restrict__ y, const float *__restrict__ x)
{
    const int64_t j = blockIdx.x * B + threadIdx.x, i = blockIdx.y;
    const float4 u = ((const float4 *)(x + 2 * i * UNSEEN_COLUMNS))[j],
                 v = ((const float4 *)(x + (2 * i + 1) * UNSEEN_COLUMNS))[j];
    ((float2 *)(y + i * (UNSEEN_COLUMNS / 2)))[j] =
        make_float2(fmaxf(fmaxf(u.x, u.y), fmaxf(v.x, v.y)),
                    fmaxf(fmaxf(u.z, u.w), fmaxf(v.z, v.w)));
}
template <int B> SIDE(pool)
{
    pool_kernel<B><<<dim3((unsigned)(UNSEEN_COLUMNS / 4 / B), (unsigned)UNSEEN_ROWS), B, 0, s>>>(
        ARRAY(float, 1), ARRAY(const float, 0));
    return launched();
}
PEER(unseen_pool, pool<64>, pool<128>, pool<256>)
