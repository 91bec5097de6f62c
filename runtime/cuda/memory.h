/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h: memory of the spaces cuda, cuda-managed and cuda-pinned.
 *
 * Device memory has a home, a stream of ours: it is allocated, zeroed and freed in its order, so
 * that memory used in its home only may be released while work is under way, and is reused at once.
 * Work of other streams waits until it is ready, and keeps it.
 */
#ifndef QN_RUNTIME_CUDA_MEMORY_H
#define QN_RUNTIME_CUDA_MEMORY_H

#include "runtime/buffer.h"
#include "runtime/create.h"
#include "runtime/cuda/stream.h"

/** Whether code of the host reaches a space. */
static inline bool qn__space_is_host(int space)
{
    return qn_exec_can_access(QN_EXEC_SERIAL, space);
}
/** Whether a space is one of CUDA's. */
static inline bool qn__space_is_cuda(int space)
{
    return space == QN_SPACE_CUDA || space == QN_SPACE_CUDA_MANAGED ||
           space == QN_SPACE_CUDA_PINNED;
}

/** qn__allocate for CUDA spaces. The context may not be NULL. */
qn_status qn__cuda_allocate(const char *who, qn_context *c, const char *label, int dtype,
                            const qn_record *record, const qn_layout *l,
                            const qn_alloc_options *o, qn_view *out,
                            qn_error *err);
/** A view of device memory with n indices, dense, whose home is a stream's; `values` is read before
 * this returns. */
qn_status qn__cuda_upload(const char *who, qn_stream *s, const char *label, int64_t n,
                          const int64_t *values, qn_view *out, qn_error *err);
/** Device memory in the order of a stream, for use in it only; the GPU's context is current. */
qn_status qn__gpu_alloc(qn_stream *s, const char *who, size_t bytes, qn_cu_ptr *out, qn_error *err);
void qn__gpu_free(qn_stream *s, qn_cu_ptr p);

/**
 * Prepares work of a stream on a view: QN_ERR_SPACE if the GPU does not reach the view's memory, as
 * the driver knows it where it is not ours; the stream waits until memory of another home is ready.
 * *keep tells whether a reference to the owner must be kept until the work is done. The GPU's
 * context is current.
 */
qn_status qn__cuda_use(qn_stream *s, const char *who, const qn_view *v, bool *keep, qn_error *err);
/** The GPU that a view's memory was allocated with; NULL: not ours. */
qn_gpu *qn__cuda_gpu(const qn_view *v);
/** qn__buffer_release for qn__stream_keep. */
void qn__cuda_drop_owner(void *owner);

#endif
