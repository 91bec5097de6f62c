/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/cuda.h: NVIDIA GPUs: devices, streams, marks in them, memory of other libraries, copies in
 * streams, graphs.
 *
 * The driver, libcuda.so.1, is opened when it is first needed; where it or a GPU is missing,
 * functions return QN_ERR_NOT_AVAILABLE with the reason. The primary context of a device is used,
 * and the caller's current context is the same after a call as before it. Views in CUDA spaces are
 * made like others (qn_alloc_options.space, .stream), and kernels run on a stream with the executor
 * QN_CUDA (qn_options.executor, .stream).
 *
 * A stream does its work in order and later than the call that gave it. Arguments may be released
 * at once: views with an owner, kernels, functions and calls stay alive until the work is done.
 * Memory without an owner must outlive it. An access out of bounds is not performed; the first one
 * is returned by the next qn_stream_fence of the stream.
 */
#ifndef QUERN_CUDA_H
#define QUERN_CUDA_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A GPU as the driver describes it. */
typedef struct qn_cuda_device {
    char name[256];           /**< "NVIDIA H200", zero-terminated */
    uint8_t uuid[16];         /**< of the device, the same in all processes */
    int32_t capability;       /**< compute capability times 10: 90 is 9.0 */
    int32_t driver;           /**< CUDA version of the driver: 12040 is 12.4 */
    int32_t n_processors;     /**< multiprocessors */
    int32_t isa; /**< the QN_ISA_SM... that kernels are compiled for; 0: too old for us */
    int64_t memory_bytes;     /**< all memory of the device */
    int64_t l2_bytes;         /**< its second-level cache */
} qn_cuda_device;

/** Number of GPUs. QN_ERR_NOT_AVAILABLE if there is no driver or none. */
QN_API qn_status qn_cuda_device_count(qn_context *c, int *out, qn_error *err);
/** Describes GPU number `device`. `out_bytes` is sizeof *out. */
QN_API qn_status qn_cuda_device_info(qn_context *c, int device, qn_cuda_device *out,
                                     size_t out_bytes, qn_error *err);
/** Gives memory that is kept for later allocations on a device back to the driver. */
QN_API qn_status qn_cuda_trim(qn_context *c, int device, qn_error *err);

/** A new stream of a device, which does not wait for the legacy default stream. *out holds one
 * reference. */
QN_API qn_status qn_stream_new(qn_context *c, int device, qn_stream **out, qn_error *err);
/** The stream that is meant where none is given: of the context's device
 * (qn_context_options.cuda_device). */
QN_API qn_status qn_stream_default(qn_context *c, qn_stream **out, qn_error *err);
/** A stream of the host's, a CUstream or cudaStream_t, NULL for the legacy default stream of the
 * current context. It stays the host's, and must live until the last reference is released. */
QN_API qn_status qn_stream_wrap(qn_context *c, void *handle, qn_stream **out, qn_error *err);
/** Adds a reference and returns the stream. */
QN_API qn_stream *qn_stream_retain(qn_stream *s);
/** Drops a reference; work under way goes on. NULL is ignored. */
QN_API void qn_stream_release(qn_stream *s);
/** The driver's handle, a CUstream, and the number of the device; NULL and -1 for NULL. */
QN_API void *qn_stream_handle(const qn_stream *s);
QN_API int qn_stream_device(const qn_stream *s);
/** Waits until all work given so far is done. Returns the first error of a kernel since the last
 * fence. */
QN_API qn_status qn_stream_fence(qn_stream *s, qn_error *err);
/** Whether all work given so far is done. */
QN_API qn_status qn_stream_is_done(qn_stream *s, bool *out, qn_error *err);

/** A point in the work of a stream. Single-owner. */
typedef struct qn_mark qn_mark;
/** Marks the point behind the work given so far. `timed` 1: it can be used with
 * qn_mark_milliseconds. */
QN_API qn_status qn_stream_mark(qn_stream *s, int timed, qn_mark **out, qn_error *err);
/** Work given to `s` from now on waits for the mark, of any stream of the same context. */
QN_API qn_status qn_stream_after(qn_stream *s, const qn_mark *m, qn_error *err);
/** Waits until the stream has reached the mark. */
QN_API qn_status qn_mark_wait(const qn_mark *m, qn_error *err);
/** Whether the stream has reached the mark. */
QN_API qn_status qn_mark_is_done(const qn_mark *m, bool *out, qn_error *err);
/** Milliseconds on the device between two timed marks that were reached. */
QN_API qn_status qn_mark_milliseconds(const qn_mark *begin, const qn_mark *end, double *out,
                                      qn_error *err);
/** Frees a mark. NULL is ignored. */
QN_API void qn_mark_release(qn_mark *m);

/**
 * qn_view_wrap for memory in a CUDA space, of another library or of a stream's allocator: asks the
 * driver what `data` points to. QN_ERR_SPACE if that is not the space, QN_ERR_BOUNDS if elements
 * lie outside the allocation.
 */
QN_API qn_status qn_cuda_wrap(qn_context *c, int space, const char *label, void *data, int dtype,
                              const qn_layout *l, uint32_t traits, qn_view *out, qn_error *err);

/** qn_deep_copy, qn_convert_copy and qn_fill as work of a stream. Returns before it is done, but
 * not before host memory that is not in the space cuda-pinned was read or written. */
QN_API qn_status qn_stream_copy(qn_stream *s, const qn_view *dst, const qn_view *src,
                                qn_error *err);
QN_API qn_status qn_stream_convert(qn_stream *s, const qn_view *dst, const qn_view *src,
                                   qn_error *err);
QN_API qn_status qn_stream_fill(qn_stream *s, const qn_view *v, qn_arg value, qn_error *err);

/** A sequence of prepared calls that the driver runs at one go. Single-owner. */
typedef struct qn_graph qn_graph;
/** Makes a graph of n calls, prepared for streams of one device, in order. They stay alive with it;
 * later changes of their scalars do not reach it. */
QN_API qn_status qn_graph_new(qn_context *c, int n, qn_call *const *calls, qn_graph **out,
                              qn_error *err);
/** Runs it on a stream of its device. */
QN_API qn_status qn_graph_run(qn_graph *g, qn_stream *s, qn_error *err);
/** Frees a graph; work under way goes on. NULL is ignored. */
QN_API void qn_graph_release(qn_graph *g);

#ifdef __cplusplus
}
#endif
#endif
