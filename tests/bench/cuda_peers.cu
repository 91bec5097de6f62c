/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers.cu: the kernels of bench_cuda in CUDA C, written by hand for the extents of
 * cuda_peers.h. Each has several variants (elements a thread, shape of the blocks, cache hints);
 * the first call tries all and keeps the fastest. Calls are described in cuda_peers.h. Compiled
 * where the GPU is: nvcc -O3 -arch=sm_90 -shared -Xcompiler -fPIC -o libpeers.so cuda_peers.cu
 * cuda_peers_math.cu The kernels of mathematical functions stand in cuda_peers_math.cu, with
 * functions at nvcc's default accuracy.
 */
#include "cuda_peers_variants.cuh"

static void *scratch; /* partial sums */
static const size_t scratch_bytes = 64 << 20;

extern "C" int peer_begin(void)
{
    cudaError_t e = cudaSetDevice(0);
    if (e == cudaSuccess)
        e = cudaMalloc(&scratch, scratch_bytes);
    return (int)e;
}

/* ---------------------------------------------------------------- vectors */

enum { FILL, COPY, SAXPY, TRIAD, BRANCH, STEPS };

template <class T, int OP, int U, int B, bool CS>
__global__ void __launch_bounds__(B)
    vector_kernel(T *__restrict__ out, const T *__restrict__ a, const T *__restrict__ b)
{
    const int V = vec<T>::n;
    const int64_t first = ((int64_t)blockIdx.x * (U * B) + threadIdx.x) * V;
    pack<T> x[U], y[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const int64_t i = first + (int64_t)u * B * V;
        if (OP != FILL)
            x[u] = load<T, CS>(a + i);
        if (OP == SAXPY)
            y[u] = load<T, CS>(out + i);
        if (OP == TRIAD)
            y[u] = load<T, CS>(b + i);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
#pragma unroll
        for (int e = 0; e < V; e++) {
            if (OP == FILL)
                x[u].e[e] = (T)GPU_FILL;
            if (OP == SAXPY)
                x[u].e[e] = (T)GPU_SCALE * x[u].e[e] + y[u].e[e];
            if (OP == TRIAD)
                x[u].e[e] = x[u].e[e] + (T)GPU_SCALE * y[u].e[e];
            if (OP == BRANCH)
                x[u].e[e] = x[u].e[e] > (T)0.5 ? (T)GPU_SCALE * x[u].e[e] : x[u].e[e] + (T)0.5;
            if (OP == STEPS) {
                T r = 1;
                for (int i = 0; i < 4; i++)
                    r = r * x[u].e[e] + (T)0.5;
                x[u].e[e] = r;
            }
        }
        store<T, CS>(out + first + (int64_t)u * B * V, x[u]);
    }
}
template <class T, int OP, int U, int B, bool CS>
int vectors(cudaStream_t s, void *out, const void *a, const void *b)
{
    const int64_t blocks = GPU_VECTOR_BYTES / 16 / (U * B);
    vector_kernel<T, OP, U, B, CS>
        <<<(unsigned)blocks, B, 0, s>>>((T *)out, (const T *)a, (const T *)b);
    return launched();
}
#define VECTORS(T, OP)                                                                             \
    vectors<T, OP, 1, 256, false>, vectors<T, OP, 2, 256, false>, vectors<T, OP, 4, 256, false>,   \
        vectors<T, OP, 1, 512, false>, vectors<T, OP, 1, 1024, false>,                             \
        vectors<T, OP, 1, 256, true>, vectors<T, OP, 2, 256, true>, vectors<T, OP, 4, 256, true>,  \
        vectors<T, OP, 4, 512, true>
PEER(fill_f32, VECTORS(float, FILL))
PEER(fill_f64, VECTORS(double, FILL))
PEER(copy_f32, VECTORS(float, COPY))
PEER(copy_f64, VECTORS(double, COPY))
PEER(saxpy_f32, VECTORS(float, SAXPY))
PEER(saxpy_f64, VECTORS(double, SAXPY))
PEER(triad_f32, VECTORS(float, TRIAD))
PEER(triad_f64, VECTORS(double, TRIAD))
PEER(branch_f32, VECTORS(float, BRANCH))
PEER(branch_f64, VECTORS(double, BRANCH))
PEER(steps_f32, VECTORS(float, STEPS))
PEER(steps_f64, VECTORS(double, STEPS))

/* ---------------------------------------------------------------- stencils, one order */

/* One row of 16 bytes at p and its neighbours to the left and right; [0] and [V + 1] are these. */
template <class T>
__device__ __forceinline__ void load_row(const T *p, bool has_left, bool has_right, T *row)
{
    const int V = vec<T>::n;
    pack<T> x = load<T, false>(p);
    row[0] = has_left ? p[-1] : (T)0;
#pragma unroll
    for (int e = 0; e < V; e++)
        row[1 + e] = x.e[e];
    row[V + 1] = has_right ? p[V] : (T)0;
}
template <class T>
__device__ __forceinline__ void store_inner(T *p, const pack<T> &x, bool has_left, bool has_right)
{
    const int V = vec<T>::n;
    if (has_left && has_right) {
        store<T, false>(p, x);
        return;
    }
#pragma unroll
    for (int e = 0; e < V; e++)
        if ((has_left || e > 0) && (has_right || e < V - 1))
            p[e] = x.e[e];
}

/* H rows of W; a thread walks down R rows of 16 bytes. */
template <class T, int H, int W, int R, int BX, int BY>
__global__ void __launch_bounds__(BX *BY) five_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int V = vec<T>::n;
    const int j = (blockIdx.x * BX + threadIdx.x) * V,
              first = 1 + (blockIdx.y * BY + threadIdx.y) * R;
    if (j >= W || first >= H - 1)
        return;
    const bool has_left = j > 0, has_right = j + V < W;
    const T *p = in + (int64_t)first * W + j;
    pack<T> up = load<T, false>(p - W);
    T row[V + 2];
    load_row<T>(p, has_left, has_right, row);
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int i = first + r;
        if (i >= H - 1)
            break;
        T next[V + 2];
        p += W;
        load_row<T>(p, has_left, has_right, next);
        pack<T> result;
#pragma unroll
        for (int e = 0; e < V; e++) {
            T sum = (up.e[e] + next[1 + e]) + (row[e] + row[2 + e]);
            result.e[e] = row[1 + e] + (T)GPU_STEP * (sum - (T)4 * row[1 + e]);
        }
        store_inner<T>(out + (int64_t)i * W + j, result, has_left, has_right);
#pragma unroll
        for (int e = 0; e < V; e++)
            up.e[e] = row[1 + e];
#pragma unroll
        for (int e = 0; e < V + 2; e++)
            row[e] = next[e];
    }
}
template <class T, int H, int W, int R, int BX, int BY>
int five(cudaStream_t s, void *out, const void *a, const void *)
{
    const int V = vec<T>::n;
    const dim3 block(BX, BY), grid((W / V + BX - 1) / BX, (H - 2 + R * BY - 1) / (R * BY));
    five_kernel<T, H, W, R, BX, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
#define FIVE(T, H, W)                                                                              \
    five<T, H, W, 1, 32, 8>, five<T, H, W, 1, 64, 4>, five<T, H, W, 2, 64, 4>,                     \
        five<T, H, W, 4, 64, 4>, five<T, H, W, 4, 256, 1>, five<T, H, W, 8, 256, 1>,               \
        five<T, H, W, 8, 128, 1>, five<T, H, W, 16, 128, 1>, five<T, H, W, 2, 32, 16>
PEER(stencil5_f32_right, FIVE(float, GPU_2D_0, GPU_2D_1))
PEER(stencil5_f64_right, FIVE(double, GPU_2D_0, GPU_2D_1))
PEER(stencil5_f32_left, FIVE(float, GPU_2D_1, GPU_2D_0))
PEER(stencil5_f64_left, FIVE(double, GPU_2D_1, GPU_2D_0))

/* A cube of N; a thread walks over R planes at 16 bytes of a row. */
template <class T, int N, int R, int BX, int BY>
__global__ void __launch_bounds__(BX *BY)
    seven_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int V = vec<T>::n;
    const int64_t plane = (int64_t)N * N;
    const int k = (blockIdx.x * BX + threadIdx.x) * V, j = 1 + blockIdx.y * BY + threadIdx.y;
    const int first = 1 + blockIdx.z * R;
    if (k >= N || j >= N - 1)
        return;
    const bool has_left = k > 0, has_right = k + V < N;
    const T *p = in + first * plane + (int64_t)j * N + k;
    pack<T> before = load<T, false>(p - plane), here = load<T, false>(p);
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int i = first + r;
        if (i >= N - 1)
            break;
        const T left = has_left ? p[-1] : (T)0, right = has_right ? p[V] : (T)0;
        const pack<T> after = load<T, false>(p + plane), up = load<T, false>(p - N),
                      down = load<T, false>(p + N);
        pack<T> result;
#pragma unroll
        for (int e = 0; e < V; e++) {
            const T l = e == 0 ? left : here.e[e == 0 ? 0 : e - 1];
            const T x = e == V - 1 ? right : here.e[e == V - 1 ? e : e + 1];
            const T sum = (before.e[e] + after.e[e]) + (up.e[e] + down.e[e]) + (l + x);
            result.e[e] = here.e[e] + (T)GPU_STEP * (sum - (T)6 * here.e[e]);
        }
        store_inner<T>(out + i * plane + (int64_t)j * N + k, result, has_left, has_right);
        before = here;
        here = after;
        p += plane;
    }
}
template <class T, int N, int R, int BX, int BY>
int seven(cudaStream_t s, void *out, const void *a, const void *)
{
    const int V = vec<T>::n;
    const dim3 block(BX, BY),
        grid((N / V + BX - 1) / BX, (N - 2 + BY - 1) / BY, (N - 2 + R - 1) / R);
    seven_kernel<T, N, R, BX, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
#define SEVEN(T)                                                                                   \
    seven<T, GPU_3D, 1, 32, 8>, seven<T, GPU_3D, 4, 32, 8>, seven<T, GPU_3D, 8, 32, 8>,            \
        seven<T, GPU_3D, 16, 32, 8>, seven<T, GPU_3D, 8, 64, 4>, seven<T, GPU_3D, 16, 64, 8>,      \
        seven<T, GPU_3D, 32, 64, 8>, seven<T, GPU_3D, 1, 64, 8>, seven<T, GPU_3D, 4, 128, 4>
PEER(stencil7_f32_right, SEVEN(float))
PEER(stencil7_f64_right, SEVEN(double))
PEER(stencil7_f32_left,
     SEVEN(float)) /* the cube's sum does not depend on the order of its dimensions */
PEER(stencil7_f64_left, SEVEN(double))

/* ---------------------------------------------------------------- stencils, from Right to Left */

/* A tile of TI x TJ through shared memory: read along j, written along i. */
template <class T, int H, int W, int TI, int TJ, int BY>
__global__ void __launch_bounds__(32 * BY)
    five_mixed_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    __shared__ T tile[TI + 2][TJ + 3];
    const int i0 = blockIdx.y * TI, j0 = blockIdx.x * TJ; /* of the tile's inner points */
    for (int r = threadIdx.y; r < TI + 2; r += BY) {
        const int i = i0 + r - 1;
        for (int c = threadIdx.x; c < TJ + 2; c += 32) {
            const int j = j0 + c - 1;
            if (i >= 0 && i < H && j >= 0 && j < W)
                tile[r][c] = in[(int64_t)i * W + j];
        }
    }
    __syncthreads();
    for (int c = threadIdx.y; c < TJ; c += BY)
        for (int r = threadIdx.x; r < TI; r += 32) {
            const int i = i0 + r, j = j0 + c;
            if (i == 0 || i >= H - 1 || j == 0 || j >= W - 1)
                continue;
            const T x = tile[r + 1][c + 1];
            const T sum =
                (tile[r][c + 1] + tile[r + 2][c + 1]) + (tile[r + 1][c] + tile[r + 1][c + 2]);
            out[(int64_t)j * H + i] = x + (T)GPU_STEP * (sum - (T)4 * x);
        }
}
template <class T, int H, int W, int TI, int TJ, int BY>
int five_mixed(cudaStream_t s, void *out, const void *a, const void *)
{
    const dim3 block(32, BY), grid((W + TJ - 1) / TJ, (H + TI - 1) / TI);
    five_mixed_kernel<T, H, W, TI, TJ, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
#define FIVE_MIXED(T, H, W)                                                                        \
    five_mixed<T, H, W, 32, 32, 8>, five_mixed<T, H, W, 32, 64, 8>,                                \
        five_mixed<T, H, W, 64, 32, 8>, five_mixed<T, H, W, 64, 64, 8>,                            \
        five_mixed<T, H, W, 64, 64, 16>, five_mixed<T, H, W, 64, 64, 32>
PEER(stencil5_f32_mixed, FIVE_MIXED(float, GPU_2D_0, GPU_2D_1))
PEER(stencil5_f64_mixed, FIVE_MIXED(double, GPU_2D_0, GPU_2D_1))

/* A tile of TI x TK for R planes of j one after the other; three of them lie in shared memory. */
template <class T, int N, int TI, int TK, int R, int BY>
__global__ void __launch_bounds__(32 * BY)
    seven_mixed_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    __shared__ T tile[3][TI + 2][TK + 3];
    const int i0 = blockIdx.y * TI, k0 = blockIdx.x * TK, first = 1 + blockIdx.z * R;
    const int last = first + R < N - 1 ? first + R : N - 1;
    for (int j = first - 1; j <= last; j++) {
        for (int r = threadIdx.y; r < TI + 2; r += BY) {
            const int i = i0 + r - 1;
            for (int c = threadIdx.x; c < TK + 2; c += 32) {
                const int k = k0 + c - 1;
                if (i >= 0 && i < N && k >= 0 && k < N)
                    tile[j % 3][r][c] = in[((int64_t)i * N + j) * N + k];
            }
        }
        __syncthreads();
        if (j <= first)
            continue;
        const T(*a)[TK + 3] = tile[(j - 2) % 3], (*x)[TK + 3] = tile[(j - 1) % 3],
                         (*b)[TK + 3] = tile[j % 3];
        for (int c = threadIdx.y; c < TK; c += BY)
            for (int r = threadIdx.x; r < TI; r += 32) {
                const int i = i0 + r, k = k0 + c;
                if (i == 0 || i >= N - 1 || k == 0 || k >= N - 1)
                    continue;
                const T here = x[r + 1][c + 1];
                const T sum = (x[r][c + 1] + x[r + 2][c + 1]) +
                              (a[r + 1][c + 1] + b[r + 1][c + 1]) + (x[r + 1][c] + x[r + 1][c + 2]);
                out[((int64_t)k * N + (j - 1)) * N + i] = here + (T)GPU_STEP * (sum - (T)6 * here);
            }
        __syncthreads();
    }
}
template <class T, int N, int TI, int TK, int R, int BY>
int seven_mixed(cudaStream_t s, void *out, const void *a, const void *)
{
    const dim3 block(32, BY), grid((N + TK - 1) / TK, (N + TI - 1) / TI, (N - 2 + R - 1) / R);
    seven_mixed_kernel<T, N, TI, TK, R, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
#define SEVEN_MIXED(T)                                                                             \
    seven_mixed<T, GPU_3D, 32, 32, 8, 8>, seven_mixed<T, GPU_3D, 32, 32, 32, 8>,                   \
        seven_mixed<T, GPU_3D, 32, 32, 64, 16>, seven_mixed<T, GPU_3D, 32, 32, 32, 32>,            \
        seven_mixed<T, GPU_3D, 32, 32, 8, 16>
PEER(stencil7_f32_mixed, SEVEN_MIXED(float), seven_mixed<float, GPU_3D, 32, 64, 32, 16>,
     seven_mixed<float, GPU_3D, 64, 32, 32, 16>)
PEER(stencil7_f64_mixed, SEVEN_MIXED(double))

#include "cuda_peers_odd.cuh"
#include "cuda_peers_uneven.cuh"

/* ---------------------------------------------------------------- transpositions */

/* Tiles of E x E elements, 16 bytes at a time on both sides. */
template <class T, int E, int THREADS>
__global__ void __launch_bounds__(THREADS)
    transpose_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int V = vec<T>::n, N = GPU_SQUARE, ROW = E / V;
    __shared__ T tile[E][E + 1];
    const int i0 = blockIdx.y * E, j0 = blockIdx.x * E;
#pragma unroll
    for (int t = threadIdx.x; t < E * ROW; t += THREADS) {
        const int r = t / ROW, c = t % ROW * V;
        const pack<T> x = load<T, true>(in + (int64_t)(i0 + r) * N + j0 + c);
#pragma unroll
        for (int e = 0; e < V; e++)
            tile[r][c + e] = x.e[e];
    }
    __syncthreads();
#pragma unroll
    for (int t = threadIdx.x; t < E * ROW; t += THREADS) {
        const int r = t / ROW, c = t % ROW * V;
        pack<T> x;
#pragma unroll
        for (int e = 0; e < V; e++)
            x.e[e] = tile[c + e][r];
        store<T, true>(out + (int64_t)(j0 + r) * N + i0 + c, x);
    }
}
template <class T, int E, int THREADS>
int transpose(cudaStream_t s, void *out, const void *a, const void *)
{
    transpose_kernel<T, E, THREADS>
        <<<dim3(GPU_SQUARE / E, GPU_SQUARE / E), THREADS, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
/* One element at a time: whole rows of a warp without bank conflicts. */
template <class T, int E, int BY>
__global__ void __launch_bounds__(32 * BY)
    transpose_plain_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int N = GPU_SQUARE;
    __shared__ T tile[E][E + 1];
    const int i0 = blockIdx.y * E, j0 = blockIdx.x * E;
#pragma unroll
    for (int r = 0; r < E; r += BY)
#pragma unroll
        for (int c = 0; c < E; c += 32)
            tile[r + threadIdx.y][c + threadIdx.x] =
                in[(int64_t)(i0 + r + threadIdx.y) * N + j0 + c + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < E; r += BY)
#pragma unroll
        for (int c = 0; c < E; c += 32)
            out[(int64_t)(j0 + r + threadIdx.y) * N + i0 + c + threadIdx.x] =
                tile[c + threadIdx.x][r + threadIdx.y];
}
template <class T, int E, int BY>
int transpose_plain(cudaStream_t s, void *out, const void *a, const void *)
{
    transpose_plain_kernel<T, E, BY>
        <<<dim3(GPU_SQUARE / E, GPU_SQUARE / E), dim3(32, BY), 0, s>>>((T *)out, (const T *)a);
    return launched();
}
/* Bytes: tiles of 128 x 128; blocks of 4 x 4 are transposed in registers, the rest in shared memory
 * by words. */
template <int BY>
__global__ void __launch_bounds__(32 * BY)
    transpose_bytes_kernel(uint32_t *__restrict__ out, const uint32_t *__restrict__ in)
{
    const int64_t N = GPU_SQUARE / 4; /* words of a row */
    __shared__ uint32_t tile[4][32][33];
    const int x = threadIdx.x;
    const int64_t i0 = (int64_t)blockIdx.y * 128, j0 = (int64_t)blockIdx.x * 128;
#pragma unroll
    for (int q = threadIdx.y; q < 32; q += BY) {
        const uint32_t *p = in + (i0 + 4 * q) * N + j0 / 4 + x;
        const uint32_t a = p[0], b = p[N], c = p[2 * N], d = p[3 * N];
        const uint32_t ab = __byte_perm(a, b, 0x5140),
                       cd = __byte_perm(c, d, 0x5140); /* a0 b0 a1 b1 */
        const uint32_t ef = __byte_perm(a, b, 0x7362),
                       gh = __byte_perm(c, d, 0x7362); /* a2 b2 a3 b3 */
        tile[0][x][q] = __byte_perm(ab, cd, 0x5410);
        tile[1][x][q] = __byte_perm(ab, cd, 0x7632);
        tile[2][x][q] = __byte_perm(ef, gh, 0x5410);
        tile[3][x][q] = __byte_perm(ef, gh, 0x7632);
    }
    __syncthreads();
#pragma unroll
    for (int t = threadIdx.y; t < 32; t += BY)
#pragma unroll
        for (int c = 0; c < 4; c++)
            out[(j0 + 4 * t + c) * N + i0 / 4 + x] = tile[c][t][x];
}
template <int BY> int transpose_bytes(cudaStream_t s, void *out, const void *a, const void *)
{
    transpose_bytes_kernel<BY><<<dim3(GPU_SQUARE / 128, GPU_SQUARE / 128), dim3(32, BY), 0, s>>>(
        (uint32_t *)out, (const uint32_t *)a);
    return launched();
}
PEER(transpose_f32, transpose<float, 64, 256>, transpose<float, 32, 256>, transpose<float, 64, 512>,
     transpose_plain<float, 32, 8>, transpose_plain<float, 64, 8>, transpose_plain<float, 64, 16>)
PEER(transpose_f64, transpose<double, 32, 256>, transpose<double, 64, 256>,
     transpose<double, 64, 512>, transpose_plain<double, 32, 8>, transpose_plain<double, 64, 8>,
     transpose_plain<double, 64, 16>)
PEER(transpose_u8, transpose_bytes<8>, transpose_bytes<16>, transpose_bytes<32>, transpose_bytes<4>)

/* ---------------------------------------------------------------- sums */

template <class T> __device__ __forceinline__ T sum_of_block(T x)
{
    __shared__ T part[32];
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_down_sync(0xffffffffu, x, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : (T)0;
    if (threadIdx.x < 32)
#pragma unroll
        for (int d = 16; d > 0; d /= 2)
            x += __shfl_down_sync(0xffffffffu, x, d);
    return x;
}

template <class T, int B, int U>
__global__ void __launch_bounds__(B) rows_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int V = vec<T>::n, W = GPU_2D_1;
    const T *row = in + (int64_t)blockIdx.x * W;
    T sum[U] = {};
    for (int j = threadIdx.x * V; j < W; j += B * V * U)
#pragma unroll
        for (int u = 0; u < U; u++)
            if (W % (B * V * U) == 0 || j + u * B * V < W) {
                const pack<T> x = load<T, true>(row + j + u * B * V);
#pragma unroll
                for (int e = 0; e < V; e++)
                    sum[u] += x.e[e];
            }
#pragma unroll
    for (int u = 1; u < U; u++)
        sum[0] += sum[u];
    const T total = sum_of_block<T>(sum[0]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = total;
}
template <class T, int B, int U> int rows(cudaStream_t s, void *out, const void *a, const void *)
{
    rows_kernel<T, B, U><<<GPU_2D_0, B, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
PEER(rows_f32, rows<float, 128, 4>, rows<float, 256, 4>, rows<float, 512, 4>, rows<float, 512, 8>,
     rows<float, 256, 8>, rows<float, 1024, 4>)
PEER(rows_f64, rows<double, 128, 4>, rows<double, 256, 4>, rows<double, 512, 4>,
     rows<double, 512, 8>, rows<double, 256, 8>, rows<double, 1024, 4>)

/* Blocks of 16 bytes x 32 lanes of columns and `CHUNKS` parts of the rows, whose sums are added in
 * a second step. */
template <class T, int CHUNKS, int BY>
__global__ void __launch_bounds__(32 * BY)
    columns_kernel(T *__restrict__ part, const T *__restrict__ in)
{
    const int V = vec<T>::n, W = GPU_2D_1, H = GPU_2D_0, ROWS = H / CHUNKS;
    __shared__ pack<T> sums[BY][32];
    const int j = (blockIdx.x * 32 + threadIdx.x) * V;
    const T *p = in + ((int64_t)blockIdx.y * ROWS + threadIdx.y) * W + j;
    pack<T> sum = {};
#pragma unroll 8
    for (int i = threadIdx.y; i < ROWS; i += BY) {
        const pack<T> x = load<T, true>(p);
#pragma unroll
        for (int e = 0; e < V; e++)
            sum.e[e] += x.e[e];
        p += (int64_t)BY * W;
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0)
        return;
#pragma unroll
    for (int y = 1; y < BY; y++)
#pragma unroll
        for (int e = 0; e < V; e++)
            sum.e[e] += sums[y][threadIdx.x].e[e];
    store<T, false>(part + (int64_t)blockIdx.y * W + j, sum);
}
template <class T, int CHUNKS>
__global__ void columns_end_kernel(T *__restrict__ out, const T *__restrict__ part)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = 0;
#pragma unroll 8
    for (int c = 0; c < CHUNKS; c++)
        sum += part[(int64_t)c * GPU_2D_1 + j];
    out[j] = sum;
}
template <class T, int CHUNKS, int BY>
int columns(cudaStream_t s, void *out, const void *a, const void *)
{
    const dim3 grid(GPU_2D_1 / vec<T>::n / 32, CHUNKS), block(32, BY);
    columns_kernel<T, CHUNKS, BY><<<grid, block, 0, s>>>((T *)scratch, (const T *)a);
    columns_end_kernel<T, CHUNKS><<<GPU_2D_1 / 128, 128, 0, s>>>((T *)out, (const T *)scratch);
    return launched();
}
#define COLUMNS(T)                                                                                 \
    columns<T, 16, 8>, columns<T, 32, 8>, columns<T, 64, 8>, columns<T, 128, 8>,                   \
        columns<T, 16, 16>, columns<T, 32, 4>
PEER(columns_f32, COLUMNS(float))
PEER(columns_f64, COLUMNS(double))

template <class T, int B, int U>
__global__ void __launch_bounds__(B)
    dot_kernel(T *__restrict__ part, const T *__restrict__ a, const T *__restrict__ b)
{
    const int V = vec<T>::n;
    const int64_t n = GPU_VECTOR_BYTES / sizeof(T);
    T sum[U] = {};
    for (int64_t i = ((int64_t)blockIdx.x * U * B + threadIdx.x) * V; i < n;
         i += (int64_t)gridDim.x * U * B * V) {
        pack<T> x[U], y[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            x[u] = load<T, true>(a + i + (int64_t)u * B * V);
            y[u] = load<T, true>(b + i + (int64_t)u * B * V);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < V; e++)
                sum[u] += x[u].e[e] * y[u].e[e];
    }
#pragma unroll
    for (int u = 1; u < U; u++)
        sum[0] += sum[u];
    const T total = sum_of_block<T>(sum[0]);
    if (threadIdx.x == 0)
        part[blockIdx.x] = total;
}
template <class T>
__global__ void dot_end_kernel(T *__restrict__ out, const T *__restrict__ part, int n)
{
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += part[i];
    sum = sum_of_block<T>(sum);
    if (threadIdx.x == 0)
        *out = sum;
}
/* BLOCKS divides the number of steps, a power of two. */
template <class T, int B, int U, int BLOCKS>
int dot(cudaStream_t s, void *out, const void *a, const void *b)
{
    dot_kernel<T, B, U><<<BLOCKS, B, 0, s>>>((T *)scratch, (const T *)a, (const T *)b);
    dot_end_kernel<T><<<1, 1024, 0, s>>>((T *)out, (const T *)scratch, BLOCKS);
    return launched();
}
#define DOT(T)                                                                                     \
    dot<T, 256, 4, 1024>, dot<T, 256, 4, 2048>, dot<T, 512, 2, 1024>, dot<T, 256, 4, 4096>,        \
        dot<T, 256, 4, 16384>, dot<T, 512, 4, 2048>
PEER(dot_f32, DOT(float))
PEER(dot_f64, DOT(double))

/* ---------------------------------------------------------------- matrix product */

/* Tiles of BM x BN by steps of BK; a thread has TM x TN results, in groups of 16 bytes. The next
 * step's elements are loaded into registers while this one is computed. A is kept transposed. */
template <class T, int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM / TM * BN / TN)
    product_kernel(T *__restrict__ out, const T *__restrict__ a, const T *__restrict__ b)
{
    const int V = vec<T>::n, N = GPU_PRODUCT, THREADS = BM / TM * (BN / TN);
    const int GM = TM / V, GN = TN / V, LA = BM * BK / V / THREADS, LB = BK * BN / V / THREADS;
    __shared__ __align__(16) T as[2][BK][BM + V], bs[2][BK][BN];
    const int t = threadIdx.x, tx = t % (BN / TN), ty = t / (BN / TN);
    const T *pa = a + (int64_t)blockIdx.y * BM * N, *pb = b + (int64_t)blockIdx.x * BN;
    pack<T> na[LA], nb[LB];
    T sum[TM][TN] = {};
    auto fetch = [&](int k) {
#pragma unroll
        for (int l = 0; l < LA; l++) {
            const int e = t + l * THREADS, r = e / (BK / V), c = e % (BK / V) * V;
            na[l] = load<T, false>(pa + (int64_t)r * N + k + c);
        }
#pragma unroll
        for (int l = 0; l < LB; l++) {
            const int e = t + l * THREADS, r = e / (BN / V), c = e % (BN / V) * V;
            nb[l] = load<T, false>(pb + (int64_t)(k + r) * N + c);
        }
    };
    auto put = [&](int half) {
#pragma unroll
        for (int l = 0; l < LA; l++) {
            const int e = t + l * THREADS, r = e / (BK / V), c = e % (BK / V) * V;
#pragma unroll
            for (int q = 0; q < V; q++)
                as[half][c + q][r] = na[l].e[q];
        }
#pragma unroll
        for (int l = 0; l < LB; l++) {
            const int e = t + l * THREADS, r = e / (BN / V), c = e % (BN / V) * V;
            store<T, false>(&bs[half][r][c], nb[l]);
        }
    };
    fetch(0);
    put(0);
    __syncthreads();
    for (int k = 0; k < N; k += BK) {
        const int half = k / BK % 2;
        if (k + BK < N)
            fetch(k + BK);
#pragma unroll
        for (int q = 0; q < BK; q++) {
            pack<T> x[GM], y[GN];
#pragma unroll
            for (int g = 0; g < GM; g++)
                x[g] = load<T, false>(&as[half][q][g * (BM / GM) + ty * V]);
#pragma unroll
            for (int g = 0; g < GN; g++)
                y[g] = load<T, false>(&bs[half][q][g * (BN / GN) + tx * V]);
#pragma unroll
            for (int m = 0; m < TM; m++)
#pragma unroll
                for (int n = 0; n < TN; n++)
                    sum[m][n] += x[m / V].e[m % V] * y[n / V].e[n % V];
        }
        if (k + BK < N)
            put(1 - half);
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < TM; m++)
#pragma unroll
        for (int g = 0; g < GN; g++) {
            pack<T> x;
#pragma unroll
            for (int e = 0; e < V; e++)
                x.e[e] = sum[m][g * V + e];
            const int row = blockIdx.y * BM + m / V * (BM / GM) + ty * V + m % V;
            store<T, false>(out + (int64_t)row * N + blockIdx.x * BN + g * (BN / GN) + tx * V, x);
        }
}
template <class T, int BM, int BN, int BK, int TM, int TN>
int product(cudaStream_t s, void *out, const void *a, const void *b)
{
    const dim3 grid(GPU_PRODUCT / BN, GPU_PRODUCT / BM);
    product_kernel<T, BM, BN, BK, TM, TN>
        <<<grid, BM / TM *(BN / TN), 0, s>>>((T *)out, (const T *)a, (const T *)b);
    return launched();
}
PEER(product_f32, product<float, 128, 128, 16, 8, 8>, product<float, 128, 128, 8, 8, 8>,
     product<float, 128, 64, 16, 8, 8>, product<float, 128, 256, 8, 8, 16>)
PEER(product_f64, product<double, 64, 64, 8, 4, 4>, product<double, 64, 64, 16, 4, 4>,
     product<double, 128, 64, 8, 8, 4>, product<double, 128, 128, 8, 8, 8>,
     product<double, 64, 128, 8, 8, 8>)
