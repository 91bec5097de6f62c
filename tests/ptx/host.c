/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c: launches of PTX as a host does them, on the machine of ptx/machine.h: words, steps,
 * sequential dimensions, the fault record.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/ptx/host.h"

#include "runtime/launch.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 1024, MOST_MEMORIES = 64 };

/** A kernel that is launched as the host would launch it on a GPU. */
typedef struct ptx_job {
    const qn_kernel *kernel;
    const qn_code *function;
    const ptx_module *module;
    int n;
    const qn_arg *args;
    const ptx_memory *memory; /* the last two are the words and the scratch memory */
    int n_memories;
    qn_domain domain;
    int64_t words[MOST_WORDS];
    qn_error *err;
} ptx_job;

/** Fills the words but for the indices of sequential dimensions; false if they are too many. */
static bool fill_words(ptx_job *j, const void *fault, const void *scratch)
{
    const qn_gpu_info *info = &j->function->info.gpu;
    if (info->n_words > MOST_WORDS)
        return false;
    qn__facts_fill(&j->function->facts, j->kernel, j->args, j->words);
    j->words[info->n_words - 2] = (int64_t)(intptr_t)fault;
    j->words[info->n_words - 1] = (int64_t)(intptr_t)scratch;
    return true;
}

static bool run_steps(ptx_job *j, uint32_t seed)
{
    const qn_gpu_info *info = &j->function->info.gpu;
    const void *words = j->words;
    for (int s = 0; s < info->n_steps; s++) {
        const qn_gpu_step *step = &info->step[s];
        int64_t units = qn__gpu_units(step, j->kernel, &j->domain);
        ptx_launch l = {.entry = s ? QN_GPU_ENTRY "_2" : QN_GPU_ENTRY,
                        .blocks = units < 3 || step->has_block_for_each
                                      ? units
                                      : 1 + seed % 7, /* fewer than units, or more */
                        .shared_bytes = step->shared_bytes,
                        .params = info->words_in_memory ? (const void *)&words : words,
                        .param_bytes =
                            info->words_in_memory ? sizeof words : (size_t)info->n_words * 8,
                        .memory = j->memory,
                        .n_memories = j->n_memories,
                        .seed = seed};
        memcpy(l.threads, step->threads, sizeof l.threads);
        if (!ptx_run(j->module, &l, j->err->message, sizeof j->err->message))
            return false;
    }
    return true;
}

/** One launch for each index of the sequential dimensions from number `at` on. */
static bool run_sequence(ptx_job *j, int d, int at, uint32_t seed)
{
    const qn_kernel *k = j->kernel;
    while (d < k->n_dims && k->inst[k->dim[d]].sub != QN_DIM_SEQUENTIAL)
        d++;
    if (d == k->n_dims)
        return run_steps(j, seed);
    int64_t *range = &j->words[j->function->facts.n_slots + 2 * at];
    bool passed = true;
    for (int64_t i = j->domain.begin[d]; passed && i < j->domain.end[d]; i++) {
        range[0] = i;
        range[1] = i + 1;
        passed = run_sequence(j, d + 1, at + 1, seed);
    }
    return passed;
}

static bool find_domain(ptx_job *j)
{
    qn_arg_value value[QN_MAX_PARAMS];
    for (int i = 0; i < j->n; i++)
        value[i] = (qn_arg_value){.layout = j->args[i].view ? &j->args[i].view->layout : NULL,
                                  .bits = j->args[i].bits};
    return qn__domain(j->kernel, value, false, &j->domain, j->err) == QN_OK;
}

/** Runs the code of f; the status of its fault record, or QN_ERR_INTERNAL if it cannot run. */
static qn_status run_function(const qn_code *f, const qn_kernel *k, int n, const qn_arg *args,
                              const ptx_memory *views, int n_views, uint32_t seed, qn_error *err)
{
    qn_gpu_fault fault = {.lock = 0};
    ptx_memory memory[MOST_MEMORIES];
    ptx_job j = {.kernel = k, .function = f, .n = n, .args = args, .memory = memory, .err = err};
    qn__fault_clear(&fault.fault, &qn__never);
    *err = (qn_error){0};
    if (!find_domain(&j))
        return QN_ERR_INTERNAL;
    size_t scratch_bytes =
        (size_t)(f->info.gpu.scratch_per_unit * qn__gpu_units(&f->info.gpu.step[0], k, &j.domain));
    void *scratch = aligned_alloc(64, scratch_bytes / 64 * 64 + 64);
    ptx_module *module = ptx_parse(f->ptx.data, err->message, sizeof err->message);
    memcpy(memory, views, (size_t)n_views * sizeof *views);
    memory[n_views] = (ptx_memory){&fault, sizeof fault};
    memory[n_views + 1] = (ptx_memory){scratch, scratch_bytes};
    memory[n_views + 2] = (ptx_memory){j.words, sizeof j.words};
    j.n_memories = n_views + 3;
    j.module = module;
    bool passed =
        module && scratch && fill_words(&j, &fault, scratch) && run_sequence(&j, 0, 0, seed);
    ptx_free(module);
    free(scratch);
    if (!passed)
        return QN_ERR_INTERNAL;
    return fault.fault.iteration == UINT64_MAX ? QN_OK
                                               : qn__fault_report(k, &fault.fault, n, args, err);
}

qn_status ptx_host_run(qn_context *c, const qn_code *f, const qn_kernel *k, int n,
                       const qn_arg *args, const ptx_memory *memory, int n_memories, uint32_t seed,
                       qn_error *err)
{
    qn_status status = qn__late_atomics(qn__kernel_to_run(k), n, args, &k, err);
    if (status)
        return status;
    ptx_memory views[MOST_MEMORIES];
    int n_views = n_memories;
    memcpy(views, memory, (size_t)n_memories * sizeof *views);
    if (!qn__has_tables(k, n, args))
        return run_function(f, k, n, args, views, n_views, seed, err);
    qn_expanded *e = NULL;
    status = qn__expand(c, "ptx", k, n, args, NULL, &e, err);
    if (status)
        return status;
    for (int i = n; i < e->n && n_views < MOST_MEMORIES - 3; i++) { /* tables */
        qn_span span = qn__view_span(e->arg[i].view);
        views[n_views++] = (ptx_memory){(const char *)e->arg[i].view->data + span.low,
                                        (size_t)(span.high - span.low)};
    }
    status = run_function(f, e->kernel, e->n, e->arg, views, n_views, seed, err);
    qn__expanded_release("ptx", args, e);
    return status;
}
