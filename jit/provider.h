/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.h: the boundary between libquern and the code generator. Bytes cross it: kernel text and
 * key in; code, plan, texts and error out. The provider exports exactly one function,
 * qn_llvm_provider.
 */
#ifndef QN_JIT_PROVIDER_H
#define QN_JIT_PROVIDER_H

#include "jit/schedule/budget.h"

/** Both sides must be built from the same sources; set by the build (a hash of the version and
 * sources). */
#ifndef QN_BUILD_ID
#define QN_BUILD_ID "unset"
#endif

enum {
    QN_REQUEST_START = 0,   /* initialise LLVM (once per process, any thread) */
    QN_REQUEST_COMPILE = 1, /* kernel + key -> sink calls */
    QN_REQUEST_FREE = 2,    /* orc_handle: code loaded by the orc loader is dropped */
    QN_REQUEST_THREAD_END = 3 /* frees *thread_state */
};
/** What sink receives. */
enum {
    QN_SINK_CODE = 0,
    QN_SINK_PLAN,
    QN_SINK_LLVM,
    QN_SINK_ASM,
    QN_SINK_KEY,
    QN_SINK_OBJECT,
    QN_SINK_SCHEDULE,
    QN_SINK_ESTIMATE
};

enum { QN_DEBUG_NAME_BYTES = 64 };
/** The steps of a compile whose times are told. */
enum { QN_TIME_PARSE, QN_TIME_PLAN, QN_TIME_BUILD, QN_TIME_EMIT, QN_TIME_LOAD, QN_N_TIMES };

typedef struct qn_request {
    size_t bytes; /* sizeof(qn_request) */
    const char *build_id;
    int32_t kind;
    int32_t loader; /* QN_LOADER_ARENA: code goes to sink; QN_LOADER_ORC: orc_entry is set */
    uint32_t texts; /* or of QN_DUMP_...: wanted besides code */
    int64_t most_units; /* see qn__budget_units */
    /** NULL, or the file that holds the kernel's printed text: code of a processor has its lines,
     * and the object comes, too, whose function is called debug_name then. */
    const char *debug_path, *debug_name;
    int32_t is_retry;   /* 1: the compile before took too long, so the plan is the cheapest one
                           (qn__step_to_fast) */
    const char *kernel; /* canonical text */
    size_t kernel_bytes;
    const void *key;
    size_t key_bytes;
    void **thread_state; /* one slot per compile thread, starts NULL; target machines live there */
    void (*sink)(void *arg, int what, const void *data, size_t n);
    void *sink_arg;
    /* Called on the compile thread on an LLVM fatal error; must not return (ends or parks the
     * thread). */
    void (*fatal)(void *arg, const char *reason);
    void *fatal_arg;
    /* out */
    qn_blob_info info;
    qn_entry orc_entry;
    void *orc_handle;
    qn_descent descent;
    const char *llvm_path;  /* QN_REQUEST_START: the file that LLVM's code is in; lives as long as
                               the process */
    double milliseconds[QN_N_TIMES];
    qn_error error;
} qn_request;

/** Serves a request; returns its status, also in r->error. Thread-safe. */
typedef int (*qn_provider_function)(qn_request *r);
#define QN_PROVIDER_SYMBOL "qn_llvm_provider"

#endif
