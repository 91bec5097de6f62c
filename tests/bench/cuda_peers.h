/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers.h: what bench_cuda and the kernels in CUDA C that it is compared with have in common:
 * extents and constants. cuda_peers.cu exports `int peer_NAME(void *stream, void *out, const void
 * *a, const void *b)`, where NAME is that of the line with _ for /, which returns 0 or a
 * cudaError_t, and `int peer_begin(void)`, which is called first. The first call of each tries
 * several variants and keeps the fastest. Of the lines of bench_cuda_unseen.c, a is an array of the
 * host's with the pointers of all arrays. cuda_peers_math.cu says what it is of those of
 * bench_cuda_math.c.
 */
#ifndef QN_TESTS_BENCH_CUDA_PEERS_H
#define QN_TESTS_BENCH_CUDA_PEERS_H

#define GPU_VECTOR_BYTES (512LL << 20) /* of a vector, and of each side of the memcpy */
#define GPU_2D_0 8192LL
#define GPU_2D_1 16384LL
#define GPU_3D 512LL
#define GPU_ODD_0 8191LL    /* rows that are not a multiple of 16 bytes apart */
#define GPU_ODD_1 16383LL
#define GPU_ODD_3D 511LL
#define GPU_SQUARE 16384LL  /* transpositions */
#define GPU_PRODUCT 4096LL  /* matrix products */
#define GPU_BATCH_BYTES (256LL << 20) /* of the matrices of a batch */
#define GPU_CSR_ROWS (1LL << 20) /* sparse rows */
#define GPU_MANDELBROT 4096LL
#define GPU_MANDELBROT_MOST 256
#define GPU_MATH_ARRAY (64LL << 20)    /* elements of y = f(x) */
#define GPU_MATH_THREADS                                                                           \
    (1LL << 20) /* threads of a line from registers, and what each of them adds */
#define GPU_MATH_STEPS 256
#define GPU_OPTIONS (16LL << 20)       /* priced by Black-Scholes */
#define GPU_INTEREST 0.03125
#define GPU_VOLATILITY 0.25
#define GPU_SOFTMAX_0 4096LL           /* rows and columns, few long rows and many short ones */
#define GPU_SOFTMAX_1 4096LL
#define GPU_SOFTMAX_2 65536LL
#define GPU_SOFTMAX_3 512LL
#define GPU_SCALE 0.375     /* of saxpy and triad */
#define GPU_STEP 0.125      /* of the stencils */
#define GPU_FILL 0.75

#endif
