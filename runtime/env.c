/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c: the only file that reads the environment, and the only one that writes to standard error,
 * which QUERN_VERBOSE asks for. Variables fill option fields that the host left zero, once, when a
 * context is made, and none is read in a process with raised privileges (AT_SECURE).
 *
 *   QUERN_NUM_THREADS  upper limit of the own pool
 *   QUERN_PROVIDER     file of the code generator
 *   QUERN_DUMP         stages to write, separated by commas: kernel,key,plan,llvm,asm
 *   QUERN_DUMP_DIR     where to write them
 *   QUERN_CUDA_DRIVER  file of the CUDA driver
 *   QUERN_CACHE        folder of code that is kept on disk, or off
 *   XDG_CACHE_HOME     folder that has it by default, else .cache in HOME
 *   QUERN_SUMMARY      1: the host's log, else standard error, gets a table of kernels when a
 *                      context is released
 *   QUERN_PEAKS        GB/s,GFLOP/s of the machine, for that table
 *   KOKKOS_TOOLS_LIBS  library of a tool of Kokkos
 *   QUERN_NVTX         library of NVTX that gets ranges
 *   QUERN_SYMBOLS      who is told where code is, separated by commas: perf_map,jitdump,gdb
 *   QUERN_TRACE        file for a trace of what happens when
 *   QUERN_VERBOSE      level of the log, which then goes to standard error if the host takes none
 */
#define _GNU_SOURCE
#include "runtime/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/** A word of a list, and what it stands for. */
typedef struct flag {
    const char *name;
    uint32_t bit;
} flag;
static const flag stages[] = {
#define QN_X(name, number, text) {text, QN_DUMP_##name},
    QN_DUMP_LIST(QN_X)
#undef QN_X
    {NULL, 0}};
static const flag symbols[] = {
#define QN_X(name, number, text) {text, QN_SYMBOLS_##name},
    QN_SYMBOLS_LIST(QN_X)
#undef QN_X
    {NULL, 0}};

/** The words of a variable, with commas between them; unknown ones are left out. */
static uint32_t flags_of(const char *name, const flag *known)
{
    const char *list = variable(name);
    uint32_t bits = 0;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        for (const flag *f = known; f->name; f++)
            if (strlen(f->name) == n && memcmp(f->name, list, n) == 0)
                bits |= f->bit;
        list += n + (list[n] == ',');
    }
    return bits;
}

/** A number in [1, most] of a variable, else 0. */
static int32_t number_of(const char *name, int32_t most)
{
    const char *value = variable(name);
    char *end;
    long n = value ? strtol(value, &end, 10) : 0;
    return value && *end == 0 && n > 0 && n <= most ? (int32_t)n : 0;
}

/** The log where the host takes none. */
static void tell_standard_error(void *arg, int32_t level, const char *line)
{
    (void)arg;
    (void)level;
    dprintf(STDERR_FILENO, "quern: %s\n", line);
}

static void fill_log(qn_context_options *o)
{
    int32_t level = number_of("QUERN_VERBOSE", INT32_MAX);
    if (level > 0 && !o->log)
        o->log = tell_standard_error;
    if (!o->log_level)
        o->log_level = level;
}

/** One number or two with a comma between them, or zeros. */
static qn_peaks read_peaks(void)
{
    const char *value = variable("QUERN_PEAKS");
    qn_peaks peaks = {0};
    if (!value)
        return peaks;
    size_t n = strcspn(value, ",");
    const char *second = value[n] ? value + n + 1 : NULL;
    bool is_good = qn__read_number(value, n, &peaks.gigabytes) &&
                   (!second || qn__read_number(second, strlen(second), &peaks.gigaflops));
    return is_good ? peaks : (qn_peaks){0};
}

static void fill_summary(qn_context *c, qn_context_options *o)
{
    bool is_asked = !o->summary && number_of("QUERN_SUMMARY", 1);
    if (is_asked)
        o->summary = QN_SUMMARY_RELEASE;
    if (is_asked && !o->log)
        c->summary_log = tell_standard_error;
    if (o->summary)
        c->peaks = read_peaks();
}

void qn__env_fill(qn_context *c, qn_context_options *o)
{
    c->summary_log = o->log;
    if (getauxval(AT_SECURE))
        return;
    c->thread_limit = number_of("QUERN_NUM_THREADS", QN_MAX_THREADS);
    fill_log(o);
    c->summary_log = o->log;
    fill_summary(c, o);
    if (!o->provider_path)
        o->provider_path = variable("QUERN_PROVIDER");
    if (!o->dump)
        o->dump = flags_of("QUERN_DUMP", stages);
    if (!o->symbols)
        o->symbols = flags_of("QUERN_SYMBOLS", symbols);
    if (!o->trace)
        o->trace = variable("QUERN_TRACE");
    if (!o->kokkos_tools)
        o->kokkos_tools = variable("KOKKOS_TOOLS_LIBS");
    if (!o->nvtx)
        o->nvtx = variable("QUERN_NVTX");
    if (!o->dump_dir)
        o->dump_dir = variable("QUERN_DUMP_DIR");
    if (!o->cuda_driver)
        o->cuda_driver = variable("QUERN_CUDA_DRIVER");
}

/** A path of a variable, if it is absolute and is not, as under sudo, a folder of somebody else. */
static const char *own_folder(const char *name)
{
    const char *path = variable(name);
    struct stat info;
    bool is_absolute = path && path[0] == '/';
    return is_absolute && (stat(path, &info) != 0 || info.st_uid == geteuid()) ? path : NULL;
}

void qn__env_cache(qn_text *out)
{
    if (getauxval(AT_SECURE))
        return;
    const char *named = variable("QUERN_CACHE"), *caches = own_folder("XDG_CACHE_HOME"),
               *home = own_folder("HOME");
    if (named)
        qn__text_add(out, "%s", named);
    else if (caches)
        qn__text_add(out, "%s/quern", caches);
    else if (home)
        qn__text_add(out, "%s/.cache/quern", home);
}
