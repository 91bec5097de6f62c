/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h: streams, and what their work needs until it is done.
 *
 * Work goes into the open batch of its stream, together with references to what it uses; a batch is
 * closed with an event of the driver's when it is full or somebody waits. When the event has
 * happened, the fault records of the batch are read and the references given up. So a launch costs
 * no event of its own.
 */
#ifndef QN_RUNTIME_CUDA_STREAM_H
#define QN_RUNTIME_CUDA_STREAM_H

#include "jit/jit.h"
#include "runtime/cuda/cuda.h"

/** A reference to be given up. */
typedef struct qn_keep {
    void (*release)(void *what);
    void *what;
} qn_keep;

/** What a fault is reported with, or several: those of a graph. Borrowed: something in the batch
 * keeps it. */
typedef struct qn_report {
    const qn_kernel *kernel;
    int n;
    const qn_arg *args;
    int n_more; /* not 0: these reports instead, with records that are pinned and will have been
                   copied */
    const struct qn_report *more;
    const qn_gpu_fault *seen;
} qn_report;

enum { QN_BATCH_LAUNCHES = 64, QN_BATCH_KEEPS = 256, QN_BATCH_FAULTS = 16, QN_MOST_BATCHES = 32 };

typedef struct qn_batch {
    struct qn_batch *next;
    void *event; /* of the driver */
    int n_launches, n_keeps, n_faults;
    qn_keep keep[QN_BATCH_KEEPS];
    qn_report report[QN_BATCH_FAULTS];
    qn_cu_ptr faults;   /* qn_gpu_fault[QN_BATCH_FAULTS] on the device; 0: none was needed yet */
    qn_gpu_fault *seen; /* pinned: their copy */
} qn_batch;

struct qn_stream {
    _Atomic int64_t references;
    _Atomic int64_t holds; /* of memory in its order, and one of all references */
    qn_stream *next, **link; /* list of the GPU */
    uint64_t pass;           /* the last sweep that met it, under the lock of the GPU */
    atomic_bool is_captured; /* into a graph: nobody else may touch it */
    qn_gpu *gpu;
    int number; /* on its GPU, in the order of their making: what a trace calls it */
    void *handle;
    bool is_own;          /* made and destroyed by us */
    pthread_mutex_t lock; /* of what follows; work is given under it */
    qn_batch *open;
    qn_batch *first, **last; /* closed, the oldest first */
    int n_closed;
    qn_error fault; /* the first since the last fence */
};

/** A stream of a GPU with one reference, which is not one of the context: `handle` of the host's,
 * or a new one. The GPU's context is current. */
qn_status qn__stream_make(qn_gpu *g, const char *who, void *handle, bool is_wrapped,
                          qn_stream **out, qn_error *err);
/** Keeps the driver's stream until qn__stream_unhold, not what its work uses: what is held may be
 * in a batch of it. The caller keeps the context. */
qn_stream *qn__stream_hold(qn_stream *s);
void qn__stream_unhold(qn_stream *s);
/** The stream that is meant: `s`, or the context's own. Borrowed. QN_ERR_ARGUMENT for streams of
 * other contexts. */
qn_status qn__stream_of(qn_context *c, const char *who, qn_stream *s, qn_stream **out,
                        qn_error *err);
/** Frees the own stream, orphans and free batches of a GPU. Nobody else uses it. */
void qn__gpu_streams_release(qn_gpu *g);
/** Gives up what finished work of a GPU held. With `wait`, waits for all of it. The GPU's context
 * is current, and no stream locked. */
void qn__gpu_sweep(qn_gpu *g, bool wait);

/**
 * Starts giving work to a stream: locks it, and makes room for n_keeps references and a launch.
 * *fault becomes the device address of a cleared record if `report` is not NULL. The GPU's context
 * is current. On success qn__stream_end must follow.
 */
qn_status qn__stream_begin(qn_stream *s, const char *who, int n_keeps, const qn_report *report,
                           qn_cu_ptr *fault, qn_error *err);
/** Keeps something until the work given so far is done; takes over the reference. */
void qn__stream_keep(qn_stream *s, void (*release)(void *what), void *what);
/** Whether that is among the last things kept for the open batch; between begin and end. */
bool qn__stream_keeps(const qn_stream *s, const void *what);
/** Ends what qn__stream_begin started. */
void qn__stream_end(qn_stream *s);
/** Gives up what finished work held, and leaves the rest to the GPU. No more work will be given. */
void qn__stream_end_work(qn_stream *s);
/** Frees the batches of a GPU that are for use; nobody else uses it. */
void qn__gpu_batches_release(qn_gpu *g);
/** Waits for everything given so far, and gives up what it held. Faults stay for the next fence. */
qn_status qn__stream_wait(qn_stream *s, const char *who, qn_error *err);
/** Whether a launch whose batch was seen to be done had a fault, since the last fence. */
bool qn__stream_has_fault(qn_stream *s);
/** Returns the first such fault and forgets it; `who`, if not NULL, starts the message. */
qn_status qn__stream_take_fault(qn_stream *s, const char *who, qn_error *err);

#endif
