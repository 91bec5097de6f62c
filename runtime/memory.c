/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: counts and bounds the memory of views and launches of a context, and takes that of the
 * host from the program's own functions where the context was given some. Counts are atomic: no
 * lock is held while memory is taken.
 */
#include "runtime/memory.h"

#include <stdio.h>
#include <unistd.h>

enum { ALWAYS_THERE = 1 << 26 }; /* bytes that any machine has */
enum { SCRATCH_ALIGNMENT = 64 }; /* asked for; scratch of the library is aligned by who uses it */

qn_memory *qn__memory_new(const qn_allocator *allocator, int64_t most_host, int64_t most_cuda)
{
    qn_memory *m = qn__zalloc(1, sizeof *m);
    if (!m)
        return NULL;
    atomic_init(&m->references, 1);
    m->most[QN_MEMORY_HOST] = most_host;
    m->most[QN_MEMORY_CUDA] = most_cuda;
    if (allocator)
        m->allocator = *allocator;
    return m;
}

void qn__memory_release(qn_memory *m)
{
    if (m && atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) == 1)
        qn__free(m);
}

static void raise_peak(_Atomic int64_t *peak, int64_t bytes)
{
    int64_t known = atomic_load_explicit(peak, memory_order_relaxed);
    while (bytes > known && !atomic_compare_exchange_weak_explicit(
                                peak, &known, bytes, memory_order_relaxed, memory_order_relaxed))
        ;
}

bool qn__memory_count(qn_memory *m, int kind, int64_t bytes)
{
    if (!m)
        return true;
    int64_t most = m->most[kind] ? m->most[kind] : INT64_MAX;
    int64_t taken = atomic_load_explicit(&m->bytes[kind], memory_order_relaxed);
    do {
        if (bytes > most - taken)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&m->bytes[kind], &taken, taken + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    raise_peak(&m->peak[kind], taken + bytes);
    atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
    return true;
}

void qn__memory_uncount(qn_memory *m, int kind, int64_t bytes)
{
    if (!m)
        return;
    atomic_fetch_sub_explicit(&m->bytes[kind], bytes, memory_order_relaxed);
    qn__memory_release(m);
}

/** Bytes of the machine's memory. */
static int64_t machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (int64_t)pages * page_bytes : INT64_MAX;
}

/** Whether scratch is more than the machine has. All of it will be written: a system that promises
 * memory which is not there would end the process later. */
static bool is_beyond_machine(int64_t bytes)
{
    return bytes >= ALWAYS_THERE && bytes > machine_bytes();
}

void *qn__memory_scratch(qn_memory *m, int64_t bytes)
{
    if (is_beyond_machine(bytes) || !qn__memory_count(m, QN_MEMORY_HOST, bytes))
        return NULL;
    void *p = qn__memory_is_foreign(m)
                  ? m->allocator.allocate(m->allocator.arg, (size_t)bytes, SCRATCH_ALIGNMENT)
                  : qn__alloc((size_t)bytes);
    if (!p)
        qn__memory_uncount(m, QN_MEMORY_HOST, bytes);
    return p;
}

void qn__memory_scratch_free(qn_memory *m, void *p, int64_t bytes)
{
    if (!p)
        return;
    if (qn__memory_is_foreign(m))
        m->allocator.release(m->allocator.arg, p, (size_t)bytes, SCRATCH_ALIGNMENT);
    else
        qn__free(p);
    qn__memory_uncount(m, QN_MEMORY_HOST, bytes);
}

const char *qn__memory_reason(const qn_memory *m, int kind, int64_t bytes,
                              char out[QN_MEMORY_REASON_BYTES])
{
    static const char *const name[QN_N_MEMORIES] = {"data_bytes", "cuda_data_bytes"};
    int64_t taken = m ? atomic_load_explicit(&m->bytes[kind], memory_order_relaxed) : 0;
    out[0] = '\0';
    if (m && m->most[kind] && bytes > m->most[kind] - taken)
        snprintf(out, QN_MEMORY_REASON_BYTES,
                 ": %s of the context is %lld, of which %lld are in use", name[kind],
                 (long long)m->most[kind], (long long)taken);
    else if (kind == QN_MEMORY_HOST && is_beyond_machine(bytes))
        snprintf(out, QN_MEMORY_REASON_BYTES, ": the machine has %lld", (long long)machine_bytes());
    return out;
}
