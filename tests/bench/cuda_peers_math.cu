/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers_math.cu: the functions of cuda_math.def in CUDA C, on arrays and from registers,
 * Black-Scholes and softmax; part of the peers of bench_cuda (cuda_peers.cu). `a` and `b` are the
 * arguments of lines on arrays; of lines from registers `a` is an array of the host's with four
 * doubles, where the arguments begin and what a step adds (bench_cuda_math.c); of Black-Scholes an
 * array of the host's with the pointers of share, strike, years and put.
 */
#include "cuda_peers_variants.cuh"

#include <math.h>

/* ---------------------------------------------------------------- functions */

template <class T> static __device__ __forceinline__ T sum_of_sincos(T x)
{
    T s, c;
    sincos(x, &s, &c);
    return s + c;
}
template <class T> static __device__ __forceinline__ T sum_of_frexp(T x)
{
    int n;
    T f = frexp(x, &n);
    return f + (T)n;
}
template <class T> static __device__ __forceinline__ T sum_of_modf(T x)
{
    T whole, part = modf(x, &whole);
    return part + whole;
}

#define GPU_MATH(name, arity, spread, low, high, low2, high2, goal, ours, theirs)                  \
    template <class T> struct of_##name {                                                          \
        enum { n = arity };                                                                        \
        static __device__ __forceinline__ T at(T x, T z)                                           \
        {                                                                                          \
            (void)z;                                                                               \
            return theirs;                                                                         \
        }                                                                                          \
    };
#include "cuda_math.def"
#undef GPU_MATH

/* ---------------------------------------------------------------- arrays */

/* y = f(x) or f(x, z): V packs of 16 bytes in a thread. */
template <class F, class T, int B, int V>
__global__ void __launch_bounds__(B)
    map_kernel(T *y, const T *__restrict__ x, const T *__restrict__ z)
{
    enum { E = vec<T>::n };
    pack<T> p[V], q[V];
    const int64_t first = (int64_t)blockIdx.x * B * V + threadIdx.x;
#pragma unroll
    for (int v = 0; v < V; v++) {
        p[v] = load<T, false>(x + (first + v * B) * E);
        q[v] = F::n == 2 ? load<T, false>(z + (first + v * B) * E) : p[v];
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 0; e < E; e++)
            p[v].e[e] = F::at(p[v].e[e], q[v].e[e]);
        store<T, false>(y + (first + v * B) * E, p[v]);
    }
}
/* An element in a thread. */
template <class F, class T, int B>
__global__ void __launch_bounds__(B)
    single_kernel(T *y, const T *__restrict__ x, const T *__restrict__ z)
{
    const int64_t i = (int64_t)blockIdx.x * B + threadIdx.x;
    y[i] = F::at(x[i], F::n == 2 ? z[i] : x[i]);
}
template <class F, class T, int B, int V>
int map(cudaStream_t s, void *out, const void *a, const void *b)
{
    if (V == 0)
        single_kernel<F, T, B>
            <<<(unsigned)(GPU_MATH_ARRAY / B), B, 0, s>>>((T *)out, (const T *)a, (const T *)b);
    else
        map_kernel<F, T, B, V ? V : 1>
            <<<(unsigned)(GPU_MATH_ARRAY / vec<T>::n / (V ? V : 1) / B), B, 0, s>>>(
                (T *)out, (const T *)a, (const T *)b);
    return launched();
}

/* ---------------------------------------------------------------- registers */

template <class F, class T, int B, int U>
__global__ void __launch_bounds__(B) steps_kernel(T *y, T low, T step, T low2, T step2)
{
    const int64_t i = (int64_t)blockIdx.x * B + threadIdx.x;
    const T at = (T)(int)((i * 40503) & 0xffff);
    T x = fma(at, step * (T)(GPU_MATH_STEPS / 65536.0), low),
      z = fma(at, step2 * (T)(GPU_MATH_STEPS / 65536.0), low2), sum = 0;
#pragma unroll(U)
    for (int k = 0; k < GPU_MATH_STEPS; k++) {
        sum += F::at(x, z);
        x += step;
        z += step2;
    }
    y[i] = sum;
}
template <class F, class T, int B, int U>
int steps(cudaStream_t s, void *out, const void *a, const void *)
{
    const double *from = (const double *)a;
    steps_kernel<F, T, B, U><<<(unsigned)(GPU_MATH_THREADS / B), B, 0, s>>>(
        (T *)out, (T)from[0], (T)from[1], (T)from[2], (T)from[3]);
    return launched();
}

#define PEERS_OF(name, T, dtype)                                                                   \
    PEER(math_##name##_##dtype##_array, map<of_##name<T>, T, 128, 1>,                              \
         map<of_##name<T>, T, 256, 2>, map<of_##name<T>, T, 256, 0>)                               \
    PEER(math_##name##_##dtype##_registers, steps<of_##name<T>, T, 256, 1>,                        \
         steps<of_##name<T>, T, 256, 4>)
#define GPU_MATH(name, arity, spread, low, high, low2, high2, goal, ours, theirs)                  \
    PEERS_OF(name, float, f32)                                                                     \
    PEERS_OF(name, double, f64)
#include "cuda_math.def"
#undef GPU_MATH

/* ---------------------------------------------------------------- Black-Scholes */

template <class T> static __device__ __forceinline__ T normal_cdf(T x)
{
    return (T)0.5 + (T)0.5 * erf(x * (T)0.70710678118654752);
}
template <class T> static __device__ __forceinline__ void price(T s, T k, T t, T *call, T *put)
{
    const T r = (T)GPU_INTEREST, v = (T)GPU_VOLATILITY, spread = v * sqrt(t);
    const T d1 = (log(s / k) + (r + (T)0.5 * v * v) * t) / spread, today = k * exp(-r * t);
    *call = s * normal_cdf(d1) - today * normal_cdf(d1 - spread);
    *put = *call - s + today;
}
template <class T, int B, bool WIDE>
__global__ void __launch_bounds__(B)
    options_kernel(T *call, T *put, const T *__restrict__ share, const T *__restrict__ strike,
                   const T *__restrict__ years)
{
    const int64_t i = (int64_t)blockIdx.x * B + threadIdx.x;
    if (!WIDE) {
        T c, p;
        price(share[i], strike[i], years[i], &c, &p);
        call[i] = c;
        put[i] = p;
        return;
    }
    enum { E = vec<T>::n };
    const pack<T> s = load<T, false>(share + i * E), k = load<T, false>(strike + i * E),
                  t = load<T, false>(years + i * E);
    pack<T> c, p;
#pragma unroll
    for (int e = 0; e < E; e++)
        price(s.e[e], k.e[e], t.e[e], &c.e[e], &p.e[e]);
    store<T, false>(call + i * E, c);
    store<T, false>(put + i * E, p);
}
template <class T, int B, bool WIDE>
int options(cudaStream_t s, void *out, const void *a, const void *)
{
    const void *const *in = (const void *const *)a;
    options_kernel<T, B, WIDE><<<(unsigned)(GPU_OPTIONS / (WIDE ? vec<T>::n : 1) / B), B, 0, s>>>(
        (T *)out, (T *)(uintptr_t)in[3], (const T *)in[0], (const T *)in[1], (const T *)in[2]);
    return launched();
}
PEER(app_black_scholes_f32, options<float, 128, false>, options<float, 256, false>,
     options<float, 128, true>, options<float, 256, true>)
PEER(app_black_scholes_f64, options<double, 128, false>, options<double, 256, false>,
     options<double, 128, true>, options<double, 256, true>)

/* ---------------------------------------------------------------- softmax */

/* max or sum of all threads of a block, B > 32 of them a multiple of 32 */
template <int B, bool IS_SUM> __device__ __forceinline__ float of_all(float x, float *shared)
{
    for (int lane = 16; lane; lane /= 2) {
        const float other = __shfl_xor_sync(~0u, x, lane);
        x = IS_SUM ? x + other : fmaxf(x, other);
    }
    if (B == 32)
        return x;
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = shared[0];
#pragma unroll
    for (int warp = 1; warp < B / 32; warp++)
        x = IS_SUM ? x + shared[warp] : fmaxf(x, shared[warp]);
    return x;
}
/* A row for B threads, each with its part in registers: read once, written once. */
template <int COLUMNS, int B, int ROWS>
__global__ void __launch_bounds__(B *ROWS) softmax_kernel(float *y, const float *__restrict__ x)
{
    enum { V = COLUMNS / 4 / B };
    __shared__ float shared[2][32];
    const int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    pack<float> p[V];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int v = 0; v < V; v++) {
        p[v] = load<float, false>(x + row * COLUMNS + (v * B + threadIdx.x) * 4);
#pragma unroll
        for (int e = 0; e < 4; e++)
            most = fmaxf(most, p[v].e[e]);
    }
    most = of_all<B, false>(most, shared[0]);
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            p[v].e[e] = expf(p[v].e[e] - most);
            sum += p[v].e[e];
        }
    const float scale = 1 / of_all<B, true>(sum, shared[1]);
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            p[v].e[e] *= scale;
        store<float, false>(y + row * COLUMNS + (v * B + threadIdx.x) * 4, p[v]);
    }
}
template <int COLUMNS, int B, int ROWS>
int softmax(cudaStream_t s, void *out, const void *a, const void *)
{
    const int64_t rows = COLUMNS == GPU_SOFTMAX_1 ? GPU_SOFTMAX_0 : GPU_SOFTMAX_2;
    softmax_kernel<COLUMNS, B, ROWS>
        <<<(unsigned)(rows / ROWS), dim3(B, ROWS), 0, s>>>((float *)out, (const float *)a);
    return launched();
}
PEER(app_softmax_f32_long, softmax<GPU_SOFTMAX_1, 128, 1>, softmax<GPU_SOFTMAX_1, 256, 1>,
     softmax<GPU_SOFTMAX_1, 512, 1>, softmax<GPU_SOFTMAX_1, 1024, 1>)
PEER(app_softmax_f32_short, softmax<GPU_SOFTMAX_3, 128, 1>, softmax<GPU_SOFTMAX_3, 64, 1>,
     softmax<GPU_SOFTMAX_3, 32, 4>, softmax<GPU_SOFTMAX_3, 32, 8>)
