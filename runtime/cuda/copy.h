/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h: copies and fills that a GPU takes part in.
 */
#ifndef QN_RUNTIME_CUDA_COPY_H
#define QN_RUNTIME_CUDA_COPY_H

#include "runtime/copy.h"
#include "runtime/cuda/memory.h"

/** Makes a copier that waits one of a stream: waits for the GPUs of both views, and takes the own
 * stream of one. */
qn_status qn__cuda_take_over(qn_copier *p, const qn_view *dst, const qn_view *src, qn_error *err);
/** Waits for the stream; the status is `status` if that is an error. */
qn_status qn__cuda_hand_back(const qn_copier *p, qn_status status, qn_error *err);

/** Copies, or converts, in the copier's stream: checked, disjoint views that are not empty, with
 * lower bounds 0 and no traits. Returns when host memory that is not pinned has been read or
 * written. */
qn_status qn__cuda_copy(const qn_copier *p, const qn_view *dst, const qn_view *src, qn_error *err);

/** A copy between the host and a GPU that reach only one side each, of a shape of two views
 * (cuda/staging.c). `is_up`: dst is on the GPU. Returns when the host's half is done. */
qn_status qn__cuda_stage(const qn_copier *p, const qn_copy_shape *shape, const qn_view *dst,
                         const qn_view *src, bool is_up, qn_error *err);

/** Whether the driver fills memory with an element. */
bool qn__cuda_can_set(const unsigned char *element, int64_t element_bytes);
/** Fills bytes from `first` on, which are the view's, in the copier's stream. */
qn_status qn__cuda_set(const qn_copier *p, const qn_view *v, char *first,
                       const unsigned char *element, int64_t element_bytes, int64_t bytes,
                       qn_error *err);
/** The element of a view of rank 0 in memory that the host does not reach. */
qn_status qn__cuda_read(const char *who, const qn_view *v, void *element, qn_error *err);

#endif
