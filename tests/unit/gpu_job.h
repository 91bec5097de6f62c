/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_job.h: arguments of a kernel for tests that compare a GPU with the interpreter: views of
 * memory of their own, with what they hold at first and what is expected of them.
 */
#ifndef QN_TESTS_UNIT_GPU_JOB_H
#define QN_TESTS_UNIT_GPU_JOB_H

#include "tests/device.h"
#include "tests/unit/launch.h"

enum { GPU_JOB_MOST = 5 };

/** The views come first among the arguments; scalars are added by the test. */
typedef struct gpu_job {
    int n, n_views, dtype[GPU_JOB_MOST];
    device_memory memory[GPU_JOB_MOST], initial[GPU_JOB_MOST], expected[GPU_JOB_MOST];
    qn_view view[GPU_JOB_MOST];
    qn_arg arg[GPU_JOB_MOST];
} gpu_job;

/** Writes n elements, which differ from seed to seed. */
typedef void (*gpu_job_fill)(int dtype, void *at, int64_t n, int64_t seed);

/** Adds a view of a layout whose lowest element is the first; the layout stays the caller's. */
static inline void gpu_job_add(gpu_job *j, int dtype, const qn_layout *l, gpu_job_fill fill)
{
    const int at = j->n_views++;
    int64_t low, high;
    qn_layout_range(l, &low, &high, NULL);
    const size_t bytes = (size_t)((high + 1) * qn_dtype_bytes(dtype));
    device_memory *all[] = {&j->memory[at], &j->initial[at], &j->expected[at]};
    for (int i = 0; i < 3; i++)
        *all[i] = (device_memory){calloc(1, bytes), bytes};
    fill(dtype, j->initial[at].at, high + 1, at);
    qn_view_wrap("v", j->memory[at].at, dtype, l, 0, &j->view[at], NULL);
    j->dtype[at] = dtype;
    j->arg[j->n++] = qn_arg_view(&j->view[at]);
}

static inline void gpu_job_add_right(gpu_job *j, int dtype, int rank, const int64_t *extents,
                                     gpu_job_fill fill)
{
    qn_layout l;
    qn_layout_right(rank, extents, &l, NULL);
    gpu_job_add(j, dtype, &l, fill);
}

static inline void gpu_job_close(gpu_job *j)
{
    for (int i = 0; i < j->n_views; i++) {
        qn_view_release(&j->view[i]);
        free(j->memory[i].at);
        free(j->initial[i].at);
        free(j->expected[i].at);
    }
}

static inline void gpu_job_copy(const gpu_job *j, const device_memory *to,
                                const device_memory *from)
{
    for (int i = 0; i < j->n_views; i++)
        memcpy(to[i].at, from[i].at, from[i].bytes);
}

/** Lets the interpreter find what is expected. */
static inline qn_status gpu_job_expect(gpu_job *j, qn_context *c, const qn_kernel *k, qn_error *err)
{
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    gpu_job_copy(j, j->memory, j->initial);
    const qn_status status = k ? qn_launch(c, k, j->n, j->arg, &o, err) : QN_ERR_PARSE;
    gpu_job_copy(j, j->expected, j->memory);
    return status;
}

/** Whether memory holds what is expected, in every bit; else a note tells where not. */
static inline bool gpu_job_is_expected(const gpu_job *j)
{
    for (int i = 0; i < j->n_views; i++) {
        const unsigned char *found = j->memory[i].at, *expected = j->expected[i].at;
        const size_t size = (size_t)qn_dtype_bytes(j->dtype[i]);
        for (size_t at = 0; at < j->memory[i].bytes; at += size)
            if (memcmp(found + at, expected + at, size) != 0) {
                uint64_t a[2] = {0}, b[2] = {0};
                memcpy(a, found + at, size);
                memcpy(b, expected + at, size);
                tap_note("view %d, element %zu: %#" PRIx64 " %#" PRIx64 ", expected %#" PRIx64
                         " %#" PRIx64,
                         i, at / size, a[0], a[1], b[0], b[1]);
                return false;
            }
    }
    return true;
}

#endif
