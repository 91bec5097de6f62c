/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_bytes.c: plain memory, copied or filled, on the caller or in pieces on the threads of a
 * context.
 */
#include "runtime/context.h"
#include "runtime/copy.h"

#include <string.h>

enum { PIECE_BYTES = 1 << 20 }; /* a multiple of every element */

typedef struct bytes_job {
    char *dst;
    const char *src; /* NULL: the element */
    int64_t bytes, element_bytes;
    unsigned char element[8];
} bytes_job;

static bool is_one_byte(const bytes_job *job)
{
    for (int64_t i = 1; i < job->element_bytes; i++)
        if (job->element[i] != job->element[0])
            return false;
    return true;
}

static void repeat(const bytes_job *job, char *dst, int64_t bytes)
{
    if (is_one_byte(job)) {
        memset(dst, job->element[0], (size_t)bytes);
        return;
    }
    uint64_t pattern = 0; /* eight bytes of elements */
    for (int64_t i = 0; i < (int64_t)sizeof pattern; i += job->element_bytes)
        memcpy((char *)&pattern + i, job->element, (size_t)job->element_bytes);
    int64_t i = 0;
    for (; i + (int64_t)sizeof pattern <= bytes; i += (int64_t)sizeof pattern)
        memcpy(dst + i, &pattern, sizeof pattern);
    memcpy(dst + i, &pattern, (size_t)(bytes - i));
}

static void run_piece(void *arg, int64_t i)
{
    const bytes_job *job = arg;
    int64_t begin = i * PIECE_BYTES, bytes = job->bytes - begin;
    bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    if (job->src)
        memcpy(job->dst + begin, job->src + begin, (size_t)bytes);
    else
        repeat(job, job->dst + begin, bytes);
}

static void run_job(qn_context *c, int executor, bytes_job *job)
{
    int64_t n = job->bytes / PIECE_BYTES + (job->bytes % PIECE_BYTES != 0);
    bool is_shared = c && executor == QN_THREADS && n > 1;
    if (is_shared && qn__pool_size(&c->pool, c->options.n_threads, c->thread_limit) < 2 &&
        !c->options.parallel_for)
        is_shared = false;
    if (!is_shared && job->src)
        memcpy(job->dst, job->src, (size_t)job->bytes);
    else if (!is_shared)
        repeat(job, job->dst, job->bytes);
    else if (c->options.parallel_for &&
             !atomic_load_explicit(&c->is_released, memory_order_relaxed))
        c->options.parallel_for(c->options.parallel_pool, n, 0, run_piece, job);
    else
        qn__pool_run(&c->pool, n, 0, run_piece, job);
}

void qn__copy_bytes(qn_context *c, int executor, char *dst, const char *src, int64_t bytes)
{
    bytes_job job = {.dst = dst, .src = src, .bytes = bytes, .element_bytes = 1};
    if (bytes > 0)
        run_job(c, executor, &job);
}

void qn__fill_bytes(qn_context *c, int executor, char *dst, const void *element,
                    int64_t element_bytes, int64_t bytes)
{
    bytes_job job = {.dst = dst, .bytes = bytes, .element_bytes = element_bytes};
    memcpy(job.element, element, (size_t)element_bytes);
    if (bytes > 0)
        run_job(c, executor, &job);
}

qn_status qn__executor(const char *who, const qn_context *c, int wanted, int *out, qn_error *err)
{
    if (wanted < QN_EXECUTOR_DEFAULT || wanted > QN_THREADS)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: there is no executor %d", who, wanted);
    if (wanted == QN_THREADS && !c)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: context is NULL, and executor threads needs one",
                        who);
    *out = wanted ? wanted : c ? c->options.default_executor : QN_SERIAL;
    return QN_OK;
}
