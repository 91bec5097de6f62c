/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_cases_ptx.c: PTX of every case. It is generated for several GPUs and looked at; where there is a ptxas, all of
 * them are assembled, in one file for each GPU. And it runs, on a machine of our own (ptx_machine.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "runtime/launch.h"
#include "tests/ptx_machine.h"
#include "tests/run_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *arch; /* arch: what ptxas assembles for; newer ones no longer know sm_70 */
    int32_t specialize, isa;
} ways[] = {{"exact sm_70", "sm_75", QN_SPECIALIZE_EXACT, QN_ISA_SM70},
            {"exact sm_80", "sm_80", QN_SPECIALIZE_EXACT, QN_ISA_SM80},
            {"exact sm_90", "sm_90", QN_SPECIALIZE_EXACT, QN_ISA_SM90},
            {"dynamic sm_90", "sm_90", QN_SPECIALIZE_DYNAMIC, QN_ISA_SM90}};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

struct ptx_cases {
    qn_context *context; /* its own: a fatal error of the code generator ends it for a context */
    FILE *file[N_WAYS];
    char path[N_WAYS][64];
    int n_kernels, n_failed;
};

ptx_cases *ptx_cases_new(void)
{
    ptx_cases *p = calloc(1, sizeof *p);
    if (!p || qn_context_new(NULL, &p->context, NULL) != QN_OK) {
        free(p);
        return NULL;
    }
    for (int w = 0; w < N_WAYS; w++) {
        snprintf(p->path[w], sizeof p->path[w], "/tmp/quern-cases-XXXXXX");
        int file = mkstemp(p->path[w]);
        p->file[w] = file >= 0 ? fdopen(file, "w") : NULL;
    }
    return p;
}

/** What must not stand in PTX: calls, products and sums that ptxas may fuse, and what has not the meaning of our ops. */
static const char *unsound(const char *text)
{
    static const char *const bad[] = {".extern", "call", "trap", "mul.f", "add.f", "sub.f", ".ftz", ".approx"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strstr(text, bad[i]))
            return bad[i];
    return strstr(text, ".visible .entry qn_kernel(") ? NULL : "no kernel";
}

/** Appends the kernels of a module under another name; its head only once in a file. */
static void append(ptx_cases *p, int w, const char *text)
{
    static const char name[] = "qn_kernel";
    if (!p->file[w])
        return;
    const char *at = ftell(p->file[w]) > 0 ? strstr(text, ".visible .entry") : text;
    for (const char *next; at && (next = strstr(at, name)) != NULL; at = next + sizeof name - 1)
        fprintf(p->file[w], "%.*s%s_%d", (int)(next - at), at, name, p->n_kernels);
    if (at)
        fputs(at, p->file[w]);
}

void ptx_cases_add(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args, int checks, int strict)
{
    p->n_kernels++;
    for (int w = 0; w < N_WAYS; w++) {
        qn_options o = {.bytes = sizeof o,
                        .checks = checks,
                        .strict = strict,
                        .specialize = ways[w].specialize,
                        .isa = ways[w].isa};
        qn_function *f = NULL;
        qn_error err = {0};
        if (qn_specialize(p->context, k, n, args, &o, &f, &err) != QN_OK) {
            printf("# %s: %s\n", ways[w].name, err.message);
            p->n_failed++;
            continue;
        }
        size_t bytes = qn_function_text(f, QN_DUMP_PTX, NULL, 0);
        char *text = malloc(bytes + 1);
        if (text)
            qn_function_text(f, QN_DUMP_PTX, text, bytes + 1);
        const char *bad = text ? unsound(text) : "no text";
        if (bad)
            printf("# kernel %s, %s: the PTX has \"%s\"\n", qn_kernel_name(k), ways[w].name, bad);
        p->n_failed += bad != NULL;
        if (!bad)
            append(p, w, text);
        free(text);
        qn_function_release(f);
    }
}

/* ---------------------------------------------------------------- running */

enum { MOST_WORDS = 1024 };

/** A kernel that is launched as the host would launch it on a GPU. */
typedef struct ptx_job {
    const qn_kernel *kernel;
    const qn_function *function;
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
                        .blocks = units < 3 ? units : 1 + seed % 7, /* fewer than units, or more */
                        .shared_bytes = step->shared_bytes,
                        .params = info->words_in_memory ? (const void *)&words : words,
                        .param_bytes = info->words_in_memory ? sizeof words : (size_t)info->n_words * 8,
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
        value[i] = (qn_arg_value){.layout = j->args[i].view ? &j->args[i].view->layout : NULL, .bits = j->args[i].bits};
    return qn__domain(j->kernel, value, &j->domain, j->err) == QN_OK;
}

/** Runs the code of f; the status of its fault record, or QN_ERR_INTERNAL if it cannot run. */
static qn_status run_function(const qn_function *f, const qn_kernel *k, int n, const qn_arg *args,
                              const ptx_memory *views, int n_views, uint32_t seed, qn_error *err)
{
    qn_gpu_fault fault = {.lock = 0};
    ptx_memory memory[2 * MAX_BINDINGS + 3];
    ptx_job j = {.kernel = k, .function = f, .n = n, .args = args, .memory = memory, .err = err};
    qn__fault_clear(&fault.fault);
    *err = (qn_error){0};
    if (!find_domain(&j))
        return QN_ERR_INTERNAL;
    size_t scratch_bytes = (size_t)(f->info.gpu.scratch_per_unit * qn__gpu_units(&f->info.gpu.step[0], k, &j.domain));
    void *scratch = aligned_alloc(64, scratch_bytes / 64 * 64 + 64);
    ptx_module *module = ptx_parse(f->ptx.data, err->message, sizeof err->message);
    memcpy(memory, views, (size_t)n_views * sizeof *views);
    memory[n_views] = (ptx_memory){&fault, sizeof fault};
    memory[n_views + 1] = (ptx_memory){scratch, scratch_bytes};
    memory[n_views + 2] = (ptx_memory){j.words, sizeof j.words};
    j.n_memories = n_views + 3;
    j.module = module;
    bool passed = module && scratch && fill_words(&j, &fault, scratch) && run_sequence(&j, 0, 0, seed);
    ptx_free(module);
    free(scratch);
    if (!passed)
        return QN_ERR_INTERNAL;
    return fault.fault.iteration == UINT64_MAX ? QN_OK : qn__fault_report(k, &fault.fault, n, args, err);
}

/** The same for arguments that may have tables. A list is among the views; the table of a MultiView is its own. */
static qn_status run_expanded(qn_context *c, const qn_function *f, const qn_kernel *k, int n, const qn_arg *args,
                              ptx_memory *views, int n_views, uint32_t seed, qn_error *err)
{
    if (!qn__has_tables(k, n, args))
        return run_function(f, k, n, args, views, n_views, seed, err);
    qn_expanded e;
    qn_status status = qn__expand(c, "ptx", k, n, args, &e, err);
    if (status)
        return status;
    for (int i = n; i < e.n; i++) {
        const qn_view *table = e.arg[i].view;
        int d = e.kernel->expansion->dim[i];
        if (qn__layout_members(&args[e.kernel->expansion->param[i]].view->layout) == d)
            views[n_views++] = (ptx_memory){table->data, (size_t)table->layout.dim[d].extent * sizeof(int64_t)};
    }
    status = run_function(f, e.kernel, e.n, e.arg, views, n_views, seed, err);
    qn_kernel_release(e.kernel);
    return status;
}

qn_status ptx_cases_run(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args, const case_instance *c, int way,
                        uint32_t seed, qn_error *err)
{
    ptx_memory views[2 * MAX_BINDINGS];
    for (int i = 0; i < c->n_storages; i++) {
        memcpy(c->storage[i].bytes, c->storage[i].initial, c->storage[i].n_bytes);
        views[i] = (ptx_memory){c->storage[i].bytes, c->storage[i].n_bytes};
    }
    qn_options o = {.bytes = sizeof o,
                    .checks = c->checks,
                    .strict = c->strict,
                    .specialize = way ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT,
                    .isa = QN_ISA_SM80};
    qn_function *f = NULL;
    qn_status status = qn_specialize(p->context, k, n, args, &o, &f, err);
    if (status == QN_OK)
        status = run_expanded(p->context, f, k, n, args, views, c->n_storages, seed, err);
    qn_function_release(f);
    return status;
}

/* ---------------------------------------------------------------- the end */

void ptx_cases_end(ptx_cases *p, void (*point)(int outcome, const char *what))
{
    char what[256];
    snprintf(what, sizeof what, "PTX of %d kernels in %d ways", p->n_kernels, N_WAYS);
    point(p->n_failed == 0, what);
    bool has_ptxas = system("ptxas --version > /dev/null 2>&1") == 0;
    if (!has_ptxas)
        point(-1, "ptxas is not in PATH: the PTX is not assembled");
    for (int w = 0; w < N_WAYS; w++) {
        char command[256];
        bool is_empty = p->file[w] && ftell(p->file[w]) == 0;
        if (!p->file[w] || fclose(p->file[w]) != 0) {
            point(0, "a file for PTX");
            continue;
        }
        snprintf(command, sizeof command, "ptxas -arch=%s -O1 -o /dev/null %s 1>&2", ways[w].arch, p->path[w]);
        snprintf(what, sizeof what, "%s: ptxas assembles it", ways[w].name);
        if (has_ptxas && !is_empty)
            point(system(command) == 0, what);
        unlink(p->path[w]);
    }
    qn_context_release(p->context);
    free(p);
}
