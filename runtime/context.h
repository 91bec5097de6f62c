/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h: the inside of a context. Its guts are counted: the handle, each function and each call
 * hold one reference.
 *
 * One lock guards arena, cache, history, counters, calls and the queue of the compile threads; it
 * is held for short steps only, never while code is generated or run, or while a function of the
 * host runs. The pool has a lock of its own; only the handlers of fork take both.
 */
#ifndef QN_RUNTIME_CONTEXT_H
#define QN_RUNTIME_CONTEXT_H

#include "jit/jit.h"
#include "runtime/arena.h"
#include "runtime/background.h"
#include "runtime/cache.h"
#include "runtime/compile.h"
#include "runtime/copy.h"
#include "runtime/cuda/cuda.h"
#include "runtime/deadline.h"
#include "runtime/disk.h"
#include "runtime/history.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "runtime/pool.h"
#include "runtime/processor.h"
#include "runtime/profile.h"
#include "runtime/symbols.h"
#include "runtime/tools.h"
#include "runtime/trace.h"

struct qn_context {
    _Atomic int64_t references;
    atomic_bool
        is_released; /* the handle is gone: nothing is cached, the host's hooks are not called */
    pthread_mutex_t lock;
    qn_context_options options; /* defaults and environment filled in; strings are owned */
    int32_t thread_limit;       /* of the environment; 0: none */
    bool is_watched; /* somebody looks at launches, so that none takes a short way; never changes */
    uint64_t told;              /* bit s: the hook knows that for status s no code can be had */
    int isa;                    /* best of the machine; 0: none that code is generated for */
    qn_machine machine;         /* as read: the processor's */
    char processor[QN_PROCESSOR_BYTES];
    qn_memory *memory;    /* of views and launches */
    qn_disk disk, bundle; /* folders of entries; never changed but for what they count */
    qn_arena arena;
    qn_cache cache;
    qn_compiler compiler;
    qn_history history;
    qn_counters counters;
    qn_call *calls; /* list, for their launch counts */
    qn_copy_kernel *copy_kernels;
    struct qn_expansion_entry *expansions; /* latest first */
    qn_pool pool;
    qn_timer timer;
    qn_background background;
    _Atomic(qn_cuda *) cuda;    /* NULL until it is needed */
    pthread_mutex_t cuda_lock;  /* held while the driver is opened */
    struct qn_context *next, **link; /* list of the process, for fork */
    bool was_large;                  /* released: it knew of many versions */
    qn_log_hook summary_log;         /* who is told the summary at the end, or NULL */
    qn_peaks peaks;                  /* of the environment */
    qn_profile profile;
    qn_trace trace;
    qn_symbols symbols;
    bool has_tools;
};

/** Frees the list of expanded kernels (expand.c). */
void qn__expansions_release(qn_context *c);

/** A context for the use of another one: with the same threads and code generator, but without a
 * cache on disk, and nobody is told of what it does. qn_context_release ends it. */
qn_status qn__context_inside(const qn_context *outer, qn_context **out, qn_error *err);

/** Adds a reference of the guts: a launch holds one while it compiles, interprets or calls the
 * host, who may release the handle meanwhile. */
void qn__context_retain(qn_context *c);
/** Drops a reference of the guts. */
void qn__context_drop(qn_context *c);

static inline void qn__lock(qn_context *c)
{
    pthread_mutex_lock(&c->lock);
}

static inline void qn__unlock(qn_context *c)
{
    pthread_mutex_unlock(&c->lock);
}

/** Whether somebody looks at launches (runtime/watch.h). */
static inline bool qn__is_watched(const qn_context *c)
{
    return c->is_watched && !atomic_load_explicit(&c->is_released, memory_order_relaxed);
}
/** Tells the hook, if there is one. No lock is held. */
void qn__event(const qn_context *c, int kind, const char *kernel, const char *text,
               double milliseconds);
/** Monotonic milliseconds, a multiple of 1/1024: a time and the difference of two are exact, so
 * that a host may trap inexact results. */
double qn__now_ms(void);
/** Monotonic nanoseconds, and such a difference as milliseconds likewise. */
int64_t qn__now_ns(void);
double qn__ms_of_ns(int64_t ns);

/** What the system says of the processor, in a folder like /sys/devices/system/cpu/cpu0; 0 where it
 * says nothing (runtime/machine.c). */
qn_machine qn__machine_read(const char *folder);
#define QN_SYSTEM_FOLDER "/sys/devices/system/cpu/cpu0"

/** Runs of the prepared calls of a context that are not yet in its counters. The lock is held
 * (runtime/prepare.c). */
int64_t qn__calls_count(const qn_context *c);

/** Fills what is zero in `o` from the environment; strings are borrowed from it (runtime/env.c). */
void qn__env_fill(qn_context *c, qn_context_options *o);
/** Tells the summary to who wants it at the end (runtime/profile.c). No lock is held. */
void qn__summary_tell(const qn_context *c);
/** The folder that is meant where none is named: that of QUERN_CACHE, XDG_CACHE_HOME or HOME;
 * appends nothing if there is none (runtime/env.c). */
void qn__env_cache(qn_text *out);

#endif
