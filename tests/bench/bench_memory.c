/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_memory.c: the memory of the arrays of a case, in huge pages and always placed alike: with
 * small pages, times in cache differ from run to run by a factor of two.
 */
#define _DEFAULT_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20, SHIFT_BYTES = 21 * 64 };

qn_status bench_memory_make(bench_memory *m, int n, const size_t *bytes, qn_error *err)
{
    size_t offset[BENCH_ARRAYS];
    *m = (bench_memory){0};
    for (int i = 0; i < n; i++) {
        offset[i] = m->bytes;
        m->bytes += (bytes[i] + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + SHIFT_BYTES;
    }
    size_t total = m->bytes + HUGE_BYTES;
    void *block = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        *err = (qn_error){.status = QN_ERR_MEMORY, .message = "no memory for the arrays"};
        return QN_ERR_MEMORY;
    }
    (void)madvise(block, total, MADV_HUGEPAGE);
    m->block = block;
    m->block_bytes = total;
    m->first = (char *)(((uintptr_t)block + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
    for (int i = 0; i < n; i++)
        m->at[i] = m->first + offset[i];
    return QN_OK;
}

void bench_memory_free(bench_memory *m)
{
    if (m->block)
        munmap(m->block, m->block_bytes);
    *m = (bench_memory){0};
}

void bench_memory_fill(const bench_memory *m)
{
    uint32_t state = 7;
    double *x = (double *)(void *)m->first;
    for (size_t i = 0; i < m->bytes / sizeof *x; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = 0.5 + (double)(state >> 8) * 0x1p-24;
    }
}

void *bench_memory_keep(const bench_memory *m)
{
    void *kept = malloc(m->bytes);
    if (kept)
        memcpy(kept, m->first, m->bytes);
    return kept;
}

bool bench_memory_is_close(const bench_memory *m, const void *kept, double tolerance)
{
    const double *x = (const double *)(const void *)m->first, *y = kept;
    for (size_t i = 0; i < m->bytes / sizeof *x; i++)
        if (!(fabs(x[i] - y[i]) <= tolerance * (1 + fabs(y[i]))))
            return false;
    return true;
}
