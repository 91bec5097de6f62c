/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h: runs a function that was specialized for a GPU where there is none.
 */
#ifndef QN_TESTS_PTX_HOST_H
#define QN_TESTS_PTX_HOST_H

#include "quern.h"
#include "tests/ptx/machine.h"

/** Runs f, which qn_specialize made of kernel k for a GPU, with arguments that have its facts.
 * `memory` is that of the views. QN_OK, the error of the kernel, or QN_ERR_INTERNAL if the PTX
 * cannot run. */
qn_status ptx_host_run(qn_context *c, const qn_code *f, const qn_kernel *k, int n,
                       const qn_arg *args, const ptx_memory *memory, int n_memories, uint32_t seed,
                       qn_error *err);

#endif
