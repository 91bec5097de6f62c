/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bench_cuda.c: the benchmark of GPUs without a GPU: it says so; on the stub driver, with tiny
 * extents, every line runs and has the host's results.
 */
#define _DEFAULT_SOURCE
#include "tests/bench/bench_cuda.h"
#include "tests/unit/gpu.h"

#define TAP_ARGS(...) (char *[]){"bench_cuda", __VA_ARGS__, NULL}

int main(void)
{
    gpu_bench none = {0}, bad = {0}, all = {0}, one = {0};
    setenv("QUERN_PROVIDER", QN_BUILD_DIR "/libquern-llvm.so", 0);
    setenv("QUERN_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    tap_ok(gpu_bench_run(&none, 1, TAP_ARGS(NULL)) == 0 && none.n_cases == 0 && none.n_wrong == 0,
           "no GPU: nothing to do");
    tap_ok(gpu_bench_run(&bad, 2, TAP_ARGS("--nonsense")) == 2, "bad arguments");
    setenv("QUERN_CUDA_DRIVER", STUB_PATH, 1);
    const stub_control *stub = stub_open(STUB_PATH);
    char reason[600] = "the stub driver cannot be opened";
    if (!stub || !has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    tap_is_int(gpu_bench_run(&all, 4, TAP_ARGS("--tiny", "--limit", "1200")), 0,
               "all lines run, with the right results");
    tap_is_int(all.n_wrong, 0, "none is wrong");
    tap_ok(all.n_cases >= 34, "%d lines", all.n_cases);
    tap_ok(is_clean(stub), "nothing is left");
    tap_is_int(gpu_bench_run(&one, 4, TAP_ARGS("--tiny", "stencil5", "f64/left")), 0, "filters");
    tap_is_int(one.n_cases, 1, "choose lines");
    return tap_done();
}
