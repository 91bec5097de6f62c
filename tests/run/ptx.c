/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.c: PTX of every case. It is generated for several GPUs and looked at; where there is a ptxas,
 * all of them are assembled, in one file for each GPU. And it runs, on a machine of our own
 * (ptx/machine.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/ptx/host.h"
#include "tests/run/run_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *arch; /* arch: what ptxas assembles for */
    int32_t specialize, isa;
} ways[] = {{"exact sm_75", "sm_75", QN_SPECIALIZE_EXACT, QN_ISA_SM75},
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

/** What must not stand in PTX: calls, products and sums that ptxas may fuse, and what has not the
 * meaning of our ops. */
static const char *unsound(const char *text)
{
    static const char *const bad[] = {".extern .func", "call",    "trap", "\tmul.f",
                                      "\tadd.f",       "\tsub.f", ".ftz", ".approx"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strstr(text, bad[i]))
            return bad[i];
    return strstr(text, ".visible .entry qn_kernel(") ? NULL : "no kernel";
}

/** Writes [at, end) with the number of the kernel behind each name that a module defines. */
static void write_renamed(ptx_cases *p, FILE *file, const char *at, const char *end)
{
    static const char *const names[] = {"qn_kernel", "qn_array", "qn_table", "qn_f64"};
    while (at < end) {
        const char *next = end;
        size_t n = 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const char *found = strstr(at, names[i]);
            if (found && found < next) {
                next = found;
                n = strlen(names[i]);
            }
        }
        fprintf(file, "%.*s", (int)(next - at), at);
        if (next < end)
            fprintf(file, "%.*s_%d_", (int)n, next, p->n_kernels);
        at = next + n;
    }
}

/** Appends the kernels and constants of a module under other names; its head, and shared memory,
 * only once in a file. */
static void append(ptx_cases *p, int w, const char *text)
{
    if (!p->file[w])
        return;
    const char *at = strstr(text, ".visible .entry"), *head = strstr(text, "\n\n\t");
    if (ftell(p->file[w]) == 0 && head)
        fprintf(p->file[w], "%.*s\n\n.extern .shared .align 16 .b8 qn_shared[];\n\n",
                (int)(head - text), text);
    static const char *const spaces[] = {"\n.const ", "\n.global "};
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++)
        for (const char *c = strstr(text, spaces[s]); c && c < at; c = strstr(c + 1, spaces[s]))
            write_renamed(p, p->file[w], c + 1, strchr(c + 1, '\n') + 1);
    if (at)
        write_renamed(p, p->file[w], at, at + strlen(at));
}

void ptx_cases_add(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args, int checks,
                   int strict)
{
    p->n_kernels++;
    for (int w = 0; w < N_WAYS; w++) {
        qn_options o = {.bytes = sizeof o,
                        .checks = checks,
                        .strict = strict,
                        .specialize = ways[w].specialize,
                        .isa = ways[w].isa};
        qn_code *f = NULL;
        qn_error err = {0};
        if (qn_specialize(p->context, k, n, args, &o, &f, &err) != QN_OK) {
            printf("# %s: %s\n", ways[w].name, err.message);
            p->n_failed++;
            continue;
        }
        size_t bytes = qn_code_text(f, QN_DUMP_PTX, NULL, 0);
        char *text = malloc(bytes + 1);
        if (text)
            qn_code_text(f, QN_DUMP_PTX, text, bytes + 1);
        const char *bad = text ? unsound(text) : "no text";
        if (bad)
            printf("# kernel %s, %s: the PTX has \"%s\"\n", qn_kernel_name(k), ways[w].name, bad);
        p->n_failed += bad != NULL;
        if (!bad)
            append(p, w, text);
        free(text);
        qn_code_release(f);
    }
}

/* ---------------------------------------------------------------- running */

qn_status ptx_cases_run(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                        const case_instance *c, int way, uint32_t seed, qn_error *err)
{
    ptx_memory views[MAX_BINDINGS];
    for (int i = 0; i < c->n_storages; i++) {
        memcpy(c->storage[i].bytes, c->storage[i].initial, c->storage[i].n_bytes);
        views[i] = (ptx_memory){c->storage[i].bytes, c->storage[i].n_bytes};
    }
    qn_options o = {.bytes = sizeof o,
                    .checks = c->checks,
                    .strict = c->strict,
                    .specialize = way ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT,
                    .isa = QN_ISA_SM80};
    qn_code *f = NULL;
    qn_status status = qn_specialize(p->context, k, n, args, &o, &f, err);
    if (status == QN_OK)
        status = ptx_host_run(p->context, f, k, n, args, views, c->n_storages, seed, err);
    qn_code_release(f);
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
        snprintf(command, sizeof command, "ptxas -arch=%s -O1 -o /dev/null %s 1>&2", ways[w].arch,
                 p->path[w]);
        snprintf(what, sizeof what, "%s: ptxas assembles it", ways[w].name);
        if (has_ptxas && !is_empty)
            point(system(command) == 0, what);
        unlink(p->path[w]);
    }
    qn_context_release(p->context);
    free(p);
}
