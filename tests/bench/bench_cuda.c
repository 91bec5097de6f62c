/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda.c: the program; what it does is in bench_cuda_run.c, which the test of it calls too.
 */
#include "tests/bench/bench_cuda.h"

int main(int argc, char **argv)
{
    gpu_bench b = {0};
    return gpu_bench_run(&b, argc, argv);
}
