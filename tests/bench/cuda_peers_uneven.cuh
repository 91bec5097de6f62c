/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_peers_uneven.cuh: part of cuda_peers.cu; sparse rows and a `while` as the kernels of
 * bench_cuda_unseen.c say them: a thread for each row or point. `a` is an array of the host's with
 * the pointers of the inputs.
 */

__global__ void csr_kernel(float *y, const int *__restrict__ start, const int *__restrict__ column, const float *__restrict__ value,
                           const float *__restrict__ x)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= GPU_CSR_ROWS)
        return;
    float sum = 0;
    for (int k = start[i], end = start[i + 1]; k < end; k++)
        sum += value[k] * x[column[k]];
    y[i] = sum;
}
template <int B> int csr(cudaStream_t s, void *out, const void *a, const void *)
{
    const void *const *in = (const void *const *)a;
    csr_kernel<<<(unsigned)((GPU_CSR_ROWS + B - 1) / B), B, 0, s>>>((float *)out, (const int *)in[0], (const int *)in[1], (const float *)in[2],
                                                                    (const float *)in[3]);
    return launched();
}
PEER(csr, csr<64>, csr<128>, csr<256>, csr<512>)

__global__ void mandelbrot_kernel(int *out)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    const float cx = fmaf((float)j, 0x1p-11f, -2.0f), cy = fmaf((float)i, 0x1p-11f, -1.0f);
    float x = 0, y = 0;
    int count = 0;
    while (fmaf(x, x, __fmul_rn(y, y)) <= 4 && count < GPU_MANDELBROT_MOST) {
        const float next = fmaf(x, x, cx - __fmul_rn(y, y));
        y = fmaf(x + x, y, cy);
        x = next;
        count++;
    }
    out[(int64_t)i * GPU_MANDELBROT + j] = count;
}
template <int X, int Y> int mandelbrot(cudaStream_t s, void *out, const void *, const void *)
{
    mandelbrot_kernel<<<dim3(GPU_MANDELBROT / X, GPU_MANDELBROT / Y), dim3(X, Y), 0, s>>>((int *)out);
    return launched();
}
PEER(mandelbrot, mandelbrot<256, 1>, mandelbrot<128, 1>, mandelbrot<32, 8>, mandelbrot<16, 16>,
     mandelbrot<8, 16>)
