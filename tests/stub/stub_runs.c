/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_runs.c: makes the stub driver that it is linked into run kernels, on the machine for PTX,
 * without being asked.
 */
#include "tests/stub/stub_cuda.h"

bool stub_run_kernel(const stub_kernel *k); /* tests/unit/gpu.c */
extern const stub_control stub_control_table;

__attribute__((constructor)) static void run_kernels(void)
{
    stub_control_table.run_with(stub_run_kernel);
}
