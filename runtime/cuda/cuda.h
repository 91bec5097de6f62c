/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h: NVIDIA GPUs inside the runtime.
 *
 * cuda/driver.c   the driver's functions and errors
 * cuda.c          what a context keeps: the driver, its GPUs; making a GPU's context current
 * cuda/stream.c   streams: their life, waiting for them
 * cuda/batch.c    work in batches, what it keeps alive, faults
 * cuda/mark.c     marks in streams
 * cuda/memory.c   memory of the CUDA spaces, and pointers of others
 * cuda/module.c   PTX to code on a GPU
 * cuda/launch.c   running kernels in streams
 * cuda/copy.c     copies and fills that a GPU takes part in
 * cuda/staging.c  copies through pinned memory
 * cuda/graph.c    graphs of prepared calls
 * cuda/table.c    index lists and MultiViews as arguments
 *
 * Every function that calls the driver does so between qn__gpu_enter and qn__gpu_leave. After a
 * fatal result of the driver, and in a forked child, enter refuses, and what is released frees host
 * memory only.
 */
#ifndef QN_RUNTIME_CUDA_H
#define QN_RUNTIME_CUDA_H

#include "jit/jit.h"
#include "quern/cuda.h"
#include "runtime/cuda/driver.h"

#include <pthread.h>

/** What a context keeps once the driver was needed. */
typedef struct qn_cuda {
    qn_cuda_api api;
    int driver; /* version */
    int n_devices;
    atomic_bool is_forked; /* in a child: the driver belongs to the parent */
    pthread_mutex_t lock;  /* of `gpus` */
    struct qn_gpu *gpus;
} qn_cuda;

struct qn_batch;
typedef struct qn_piece qn_piece;
typedef struct qn_gpu_clock qn_gpu_clock;

/** A CUDA context on a device: the primary one, or that of a stream of the host's. Lives as long as
 * our context. */
typedef struct qn_gpu {
    struct qn_gpu *next;
    qn_cuda *cuda;
    qn_context *owner;
    int device, handle; /* our number, the driver's */
    void *context;
    bool is_primary;
    int capability, isa;
    qn_machine machine; /* as read */
    size_t max_pitch;
    void *pool; /* NULL: the device has none */
    _Atomic int lost; /* the fatal result, or 0 */
    pthread_mutex_t lock; /* of the lists below */
    struct qn_batch *free_batches; /* for use */
    struct qn_batch *orphans;      /* of released streams, with work under way */
    qn_piece *pieces;              /* pinned memory that copies go through, for use */
    qn_stream *streams;            /* all of them; a stream may be held by its own work */
    uint64_t n_sweeps;
    int n_streams;                 /* made so far: their numbers */
    qn_gpu_clock *clock;           /* of cuda/time.c; NULL: no time was asked for yet */
    qn_stream *own;                /* the stream that is meant where none is given */
    uint64_t peers_asked,
        peers; /* bit: number of another device; whether its memory can be reached */
} qn_gpu;

/* ---------------------------------------------------------------- cuda.c */

/** The driver of a context, opened now if need be. */
qn_status qn__cuda_of(qn_context *c, const char *who, qn_cuda **out, qn_error *err);
/** A device of a context, with its primary context. `device` -1: the one of the options. */
qn_status qn__gpu_of(qn_context *c, const char *who, int device, qn_gpu **out, qn_error *err);
/** The GPU of a CUDA context. */
qn_status qn__gpu_of_context(qn_context *c, const char *who, void *context, qn_gpu **out,
                             qn_error *err);
/** Frees everything; the context has no other references. */
void qn__cuda_release(qn_context *c);
/** Waits for all work, before the context goes (cuda/stream.c). */
void qn__cuda_drain(qn_context *c);
/** Frees the pinned memory that copies go through and that nobody uses (cuda/staging.c). */
void qn__gpu_pieces_release(qn_gpu *g);
/** After fork, in the child. */
void qn__cuda_forked(qn_context *c);

/** Makes the GPU's context current if another is; *is_pushed is for qn__gpu_leave. */
qn_status qn__gpu_enter(qn_gpu *g, const char *who, bool *is_pushed, qn_error *err);
void qn__gpu_leave(qn_gpu *g, bool is_pushed);
/** Whether kernels of a GPU reach memory that another one, of another device, allocates; made so
 * now if it can be. The context of `g` is current. */
qn_status qn__gpu_reaches(qn_gpu *g, qn_gpu *other, const char *who, bool *out, qn_error *err);
/** Whether the driver may be called at all. */
bool qn__gpu_is_usable(const qn_gpu *g);
/** The status of a result of the driver; notes a lost context. */
qn_status qn__gpu_check(qn_gpu *g, const char *who, int call, int result, qn_error *err);
/** Whether the work before an event is done, or without one (NULL) all work of a stream; both are
 * the driver's. */
qn_status qn__gpu_is_done(qn_gpu *g, const char *who, void *event, void *stream, bool *out,
                          qn_error *err);
/** A call of the driver: QN_CU(g, who, stream_sync, (handle), err). */
#define QN_CU(g, who, name, arguments, err)                                                        \
    qn__gpu_check(g, who, QN_CU_CALL_##name, (g)->cuda->api.name arguments, err)

#endif
