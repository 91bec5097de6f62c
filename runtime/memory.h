/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h: memory for elements of views and for scratch of launches, counted for a context. The
 * account is shared by the context and by all storage that was taken through it, as storage may
 * outlive the context.
 */
#ifndef QN_RUNTIME_MEMORY_H
#define QN_RUNTIME_MEMORY_H

#include "ir/ir.h"

/** What is bounded apart. */
enum { QN_MEMORY_HOST, QN_MEMORY_CUDA, QN_N_MEMORIES };

typedef struct qn_memory {
    _Atomic int64_t references;
    _Atomic int64_t bytes[QN_N_MEMORIES],
        peak[QN_N_MEMORIES];     /* taken now, and the most there was at a time */
    int64_t most[QN_N_MEMORIES]; /* bounds; 0: none */
    qn_allocator allocator;      /* of the host; without functions: that of the library */
    _Atomic uint32_t mappings;   /* of views that were made so far */
    bool has_tools;              /* who may be told of it (runtime/tools.h) */
} qn_memory;

/** A new account with one reference, or NULL. `allocator` may be NULL, and is copied. */
qn_memory *qn__memory_new(const qn_allocator *allocator, int64_t most_host, int64_t most_cuda);
void qn__memory_release(qn_memory *m);

/** Counts bytes that are about to be taken, and adds a reference; false if the bound does not allow
 * them. NULL counts nothing. */
bool qn__memory_count(qn_memory *m, int kind, int64_t bytes);
/** Takes back what was counted, and the reference. */
void qn__memory_uncount(qn_memory *m, int kind, int64_t bytes);

/** Whether memory of the host comes from functions of the program. */
static inline bool qn__memory_is_foreign(const qn_memory *m)
{
    return m && m->allocator.allocate;
}

/** Scratch of a launch: counted, aligned as malloc does, from the allocator of the account; NULL
 * without memory. */
void *qn__memory_scratch(qn_memory *m, int64_t bytes);
/** Gives scratch back; NULL is ignored. `bytes` as when it was taken. */
void qn__memory_scratch_free(qn_memory *m, void *p, int64_t bytes);

enum { QN_MEMORY_REASON_BYTES = 100 };
/** Ends a message about memory: what the bound is, if there is one that `bytes` would break.
 * Returns `out`. */
const char *qn__memory_reason(const qn_memory *m, int kind, int64_t bytes,
                              char out[QN_MEMORY_REASON_BYTES]);

#endif
