/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.h: code on GPUs. A function has its PTX, what the driver made of it for one compute
 * capability (the cubin, which loads in a fraction of the time), and a module for each GPU where it
 * ran.
 */
#ifndef QN_RUNTIME_CUDA_MODULE_H
#define QN_RUNTIME_CUDA_MODULE_H

#include "runtime/cuda/cuda.h"

typedef struct qn_gpu_code {
    struct qn_gpu_code *next;
    qn_gpu *gpu;
    void *module;
    void *step[QN_GPU_STEPS]; /* the driver's handles of the kernels */
} qn_gpu_code;

/** The code of a function on a GPU, assembled and loaded now if need be. The GPU's context is
 * current. Borrowed from the function. */
qn_status qn__gpu_code_of(qn_gpu *g, const char *who, qn_code *f, const qn_gpu_code **out,
                          qn_error *err);
/** Unloads and frees a list. */
void qn__gpu_code_release(qn_gpu_code *list);

#endif
