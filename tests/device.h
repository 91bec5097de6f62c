/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h: the GPU that tests run on: a real one, or the stub driver, whose kernels run on the
 * machine for PTX. Kernels are launched on copies of the host's memory, so that a test of the
 * host's engines is one of a GPU, too.
 */
#ifndef QN_TESTS_DEVICE_H
#define QN_TESTS_DEVICE_H

#include "quern/cuda.h"
#include "tests/stub/stub_cuda.h"

typedef struct device {
    qn_context *context;
    qn_stream *stream;
    const stub_control *stub; /* NULL: the GPU is real */
    qn_cuda_device info;
    char no_gpu[QN_MESSAGE_BYTES]; /* why it is not real; "": it is, or the driver was named by
                                      QUERN_CUDA_DRIVER */
} device;

/** Memory of the host in which elements of arguments lie. */
typedef struct device_memory {
    void *at;
    size_t bytes;
} device_memory;

/** Opens the GPU of QUERN_CUDA_DRIVER or libcuda.so.1, else the stub if it may be one. False, and
 * d->no_gpu. */
bool device_open(device *d, bool may_be_stub);
/** Frees what device_open made; all-zero is ignored. */
void device_close(device *d);
/**
 * Launches a kernel whose views lie in `memory`, with options o, on copies of that memory at the
 * same alignment; waits, and copies all of it back. The status and message are those of the launch
 * or the fence. Views that lie elsewhere are given as they are.
 */
qn_status device_launch(const device *d, const qn_kernel *k, int n, const qn_arg *args,
                        int n_memories, const device_memory *memory, const qn_options *o,
                        qn_error *err);
/** Whether the status says that a GPU does not do what was asked: iteration order, index lists,
 * MultiViews. */
bool device_is_limit(qn_status status, const qn_error *err);

#endif
