/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers_odd.cuh: stencils over rows whose pitch is not a multiple of 16 bytes, in CUDA C, for the odd extents of
 * cuda_peers.h. Part of cuda_peers.cu. Two ways: one element at a time, neighbouring threads at neighbouring elements; and
 * pieces of 16 bytes, in which each row's begin where memory is aligned, so that those of the next row are an element aside.
 */

/* The skew of rows of pitch P: an element of row i at j lies as element j + skew x i of rows of P - skew, a multiple of 16 bytes. */
template <class T, int P> struct skew {
    enum { V = vec<T>::n, rest = P % V, value = rest > V / 2 ? rest - V : rest };
};

/* ---------------------------------------------------------------- two dimensions */

/* H rows of W; a thread walks down R rows of one column. */
template <class T, int H, int W, int R, int BX, int BY>
__global__ void __launch_bounds__(BX *BY) five_plain_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int j = 1 + blockIdx.x * BX + threadIdx.x, first = 1 + (blockIdx.y * BY + threadIdx.y) * R;
    if (j >= W - 1 || first >= H - 1)
        return;
    const T *p = in + (int64_t)first * W + j;
    T *q = out + (int64_t)first * W + j;
    T up = p[-W], here = p[0];
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (first + r >= H - 1)
            break;
        const T down = p[W], sum = (up + down) + (p[-1] + p[1]);
        *q = here + (T)GPU_STEP * (sum - (T)4 * here);
        up = here;
        here = down;
        p += W;
        q += W;
    }
}
template <class T, int H, int W, int R, int BX, int BY> int five_plain(cudaStream_t s, void *out, const void *a, const void *)
{
    const dim3 block(BX, BY), grid((W - 2 + BX - 1) / BX, (H - 2 + R * BY - 1) / (R * BY));
    five_plain_kernel<T, H, W, R, BX, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}

/* The elements [-1, V] of a row around an aligned piece; those outside the row are 0. */
template <class T, int W> __device__ __forceinline__ void load_around(const T *row, int j, T *x)
{
    const int V = vec<T>::n;
    if (j >= 1 && j + V < W) {
        const pack<T> y = load<T, false>(row + j);
#pragma unroll
        for (int e = 0; e < V; e++)
            x[1 + e] = y.e[e];
        x[0] = row[j - 1];
        x[V + 1] = row[j + V];
    } else {
#pragma unroll
        for (int e = -1; e <= V; e++)
            x[1 + e] = j + e >= 0 && j + e < W ? row[j + e] : (T)0;
    }
}
/* The same for a piece of which element j - skew is aligned. */
template <class T, int H, int W, int R, int BX, int BY>
__global__ void __launch_bounds__(BX *BY) five_skew_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int V = vec<T>::n, S = skew<T, W>::value;
    const int first = 1 + (blockIdx.y * BY + threadIdx.y) * R;
    const int begin = (V - (first * (W % V)) % V) % V; /* an aligned element of the first row */
    int j = (blockIdx.x * BX + threadIdx.x) * V + begin - V - (S < 0 ? -S * (R - 1) : 0) / V * V;
    if (first >= H - 1 || j >= W + (S > 0 ? S * R : 0))
        return;
    T up[V + 2], row[V + 2], down[V + 2];
    const T *p = in + (int64_t)first * W;
    load_around<T, W>(p - W, j + S, up);
    load_around<T, W>(p, j, row);
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int i = first + r;
        if (i >= H - 1)
            break;
        p += W;
        load_around<T, W>(p, j - S, down);
        pack<T> result;
#pragma unroll
        for (int e = 0; e < V; e++) { /* element e of this row is element e - S of the one above, e + S of that below */
            const T above = 1 + e - S >= 0 && 1 + e - S < V + 2 ? up[1 + e - S < 0 ? 0 : 1 + e - S > V + 1 ? V + 1 : 1 + e - S] : (T)0;
            const T below = down[1 + e + S < 0 ? 0 : 1 + e + S > V + 1 ? V + 1 : 1 + e + S];
            const T sum = (above + below) + (row[e] + row[2 + e]);
            result.e[e] = row[1 + e] + (T)GPU_STEP * (sum - (T)4 * row[1 + e]);
        }
        T *q = out + (int64_t)i * W + j;
        if (j >= 1 && j + V < W) {
            store<T, false>(q, result);
        } else {
#pragma unroll
            for (int e = 0; e < V; e++)
                if (j + e >= 1 && j + e < W - 1)
                    q[e] = result.e[e];
        }
        j -= S;
#pragma unroll
        for (int e = 0; e < V + 2; e++) {
            up[e] = row[e];
            row[e] = down[e];
        }
    }
}
template <class T, int H, int W, int R, int BX, int BY> int five_skew(cudaStream_t s, void *out, const void *a, const void *)
{
    const int V = vec<T>::n, pieces = (W + 2 * V + R + V - 1) / V;
    const dim3 block(BX, BY), grid((pieces + BX - 1) / BX, (H - 2 + R * BY - 1) / (R * BY));
    five_skew_kernel<T, H, W, R, BX, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
#define FIVE_ODD(T, H, W)                                                                          \
    five_plain<T, H, W, 1, 256, 1>, five_plain<T, H, W, 4, 256, 1>, five_plain<T, H, W, 8, 256, 1>, \
        five_plain<T, H, W, 4, 64, 4>, five_plain<T, H, W, 8, 128, 1>, five_plain<T, H, W, 16, 128, 1>, \
        five_plain<T, H, W, 2, 128, 4>, five_skew<T, H, W, 1, 64, 4>, five_skew<T, H, W, 2, 64, 4>, \
        five_skew<T, H, W, 4, 64, 4>, five_skew<T, H, W, 4, 256, 1>, five_skew<T, H, W, 8, 128, 1>
PEER(odd5_f32_right, FIVE_ODD(float, GPU_ODD_0, GPU_ODD_1))
PEER(odd5_f64_right, FIVE_ODD(double, GPU_ODD_0, GPU_ODD_1))
PEER(odd5_f32_left, FIVE_ODD(float, GPU_ODD_1, GPU_ODD_0))
PEER(odd5_f64_left, FIVE_ODD(double, GPU_ODD_1, GPU_ODD_0))
PEER(odd5_f32_mixed, FIVE_MIXED(float, GPU_ODD_0, GPU_ODD_1))
PEER(odd5_f64_mixed, FIVE_MIXED(double, GPU_ODD_0, GPU_ODD_1))

/* ---------------------------------------------------------------- three dimensions */

/* A cube of N; a thread walks over R planes at one element of a row. */
template <class T, int N, int R, int BX, int BY>
__global__ void __launch_bounds__(BX *BY) seven_plain_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int64_t plane = (int64_t)N * N;
    const int k = 1 + blockIdx.x * BX + threadIdx.x, j = 1 + blockIdx.y * BY + threadIdx.y;
    const int first = 1 + blockIdx.z * R;
    if (k >= N - 1 || j >= N - 1)
        return;
    const T *p = in + first * plane + (int64_t)j * N + k;
    T *q = out + first * plane + (int64_t)j * N + k;
    T before = p[-plane], here = p[0];
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (first + r >= N - 1)
            break;
        const T after = p[plane], sum = (before + after) + (p[-N] + p[N]) + (p[-1] + p[1]);
        *q = here + (T)GPU_STEP * (sum - (T)6 * here);
        before = here;
        here = after;
        p += plane;
        q += plane;
    }
}
template <class T, int N, int R, int BX, int BY> int seven_plain(cudaStream_t s, void *out, const void *a, const void *)
{
    const dim3 block(BX, BY), grid((N - 2 + BX - 1) / BX, (N - 2 + BY - 1) / BY, (N - 2 + R - 1) / R);
    seven_plain_kernel<T, N, R, BX, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
/* Pieces that are aligned in the result; N is 1 less than a multiple of them, so that rows and planes differ by one element. */
template <class T, int N, int BX, int BY>
__global__ void __launch_bounds__(BX *BY) seven_skew_kernel(T *__restrict__ out, const T *__restrict__ in)
{
    const int V = vec<T>::n;
    const int64_t plane = (int64_t)N * N;
    const int j = 1 + blockIdx.y * BY + threadIdx.y, i = 1 + blockIdx.z;
    if (j >= N - 1)
        return;
    const int64_t row = i * plane + (int64_t)j * N;
    const int k = (blockIdx.x * BX + threadIdx.x) * V - (int)(row & (V - 1));
    if (k >= N - 1)
        return;
    const T *p = in + row + k;
    T *q = out + row + k;
    if (k >= 1 && k + V < N) { /* above and below a piece lie others an element aside */
        const pack<T> x = load<T, false>(p);
        const pack<T> up = load<T, false>(p - N - 1), down = load<T, false>(p + N + 1);
        const pack<T> before = load<T, false>(p - plane + 1), after = load<T, false>(p + plane - 1);
        const T left = p[-1], right = p[V], up_last = p[V - 1 - N], down_first = p[N];
        const T before_first = p[-plane], after_last = p[plane + V - 1];
        pack<T> result;
#pragma unroll
        for (int e = 0; e < V; e++) {
            const T l = e == 0 ? left : x.e[e == 0 ? 0 : e - 1], r = e == V - 1 ? right : x.e[e == V - 1 ? e : e + 1];
            const T u = e == V - 1 ? up_last : up.e[e == V - 1 ? e : e + 1], d = e == 0 ? down_first : down.e[e == 0 ? 0 : e - 1];
            const T b = e == 0 ? before_first : before.e[e == 0 ? 0 : e - 1];
            const T a = e == V - 1 ? after_last : after.e[e == V - 1 ? e : e + 1];
            const T sum = (b + a) + (u + d) + (l + r);
            result.e[e] = x.e[e] + (T)GPU_STEP * (sum - (T)6 * x.e[e]);
        }
        store<T, false>(q, result);
        return;
    }
#pragma unroll
    for (int e = 0; e < V; e++)
        if (k + e >= 1 && k + e < N - 1) {
            const T sum = (p[e - plane] + p[e + plane]) + (p[e - N] + p[e + N]) + (p[e - 1] + p[e + 1]);
            q[e] = p[e] + (T)GPU_STEP * (sum - (T)6 * p[e]);
        }
}
template <class T, int N, int BX, int BY> int seven_skew(cudaStream_t s, void *out, const void *a, const void *)
{
    const int V = vec<T>::n;
    const dim3 block(BX, BY), grid((N + V - 1 + V * BX - 1) / (V * BX), (N - 2 + BY - 1) / BY, N - 2);
    seven_skew_kernel<T, N, BX, BY><<<grid, block, 0, s>>>((T *)out, (const T *)a);
    return launched();
}
#define SEVEN_ODD(T)                                                                               \
    seven_plain<T, GPU_ODD_3D, 1, 128, 2>, seven_plain<T, GPU_ODD_3D, 2, 64, 4>, seven_plain<T, GPU_ODD_3D, 4, 64, 4>, \
        seven_plain<T, GPU_ODD_3D, 4, 32, 8>, seven_plain<T, GPU_ODD_3D, 8, 64, 8>, seven_plain<T, GPU_ODD_3D, 16, 128, 4>, \
        seven_skew<T, GPU_ODD_3D, 32, 8>, seven_skew<T, GPU_ODD_3D, 16, 16>, seven_skew<T, GPU_ODD_3D, 64, 4>, \
        seven_skew<T, GPU_ODD_3D, 128, 4>
PEER(odd7_f32_right, SEVEN_ODD(float))
PEER(odd7_f64_right, SEVEN_ODD(double))
PEER(odd7_f32_left, SEVEN_ODD(float))
PEER(odd7_f64_left, SEVEN_ODD(double))
#define SEVEN_MIXED_ODD(T)                                                                         \
    seven_mixed<T, GPU_ODD_3D, 32, 32, 8, 8>, seven_mixed<T, GPU_ODD_3D, 32, 32, 32, 8>,           \
        seven_mixed<T, GPU_ODD_3D, 32, 32, 64, 16>, seven_mixed<T, GPU_ODD_3D, 32, 32, 8, 16>
PEER(odd7_f32_mixed, SEVEN_MIXED_ODD(float))
PEER(odd7_f64_mixed, SEVEN_MIXED_ODD(double))
