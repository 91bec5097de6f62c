/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.h: when launches ran on a GPU, for contexts that trace or count: two events of the
 * driver a launch.
 */
#ifndef QN_RUNTIME_CUDA_TIME_H
#define QN_RUNTIME_CUDA_TIME_H

#include "runtime/cuda/stream.h"
#include "runtime/launch.h"

typedef struct qn_gpu_span qn_gpu_span;

/** Marks the begin of a launch between qn__stream_begin and qn__stream_end. NULL if nobody wants
 * the time, or an event cannot be had: a time that is missing does not fail a launch. */
qn_gpu_span *qn__gpu_span_begin(qn_stream *s, const qn_task *t);
/** Marks the end of the launch. The stream keeps the span, which tells trace and counters when the
 * work is done. NULL is ignored. */
void qn__gpu_span_end(qn_stream *s, qn_gpu_span *span);
/** Gives the clock of a GPU up, to which its spans refer. The GPU's context is current, if it can
 * be used. */
void qn__gpu_clock_release(qn_gpu *g);

#endif
