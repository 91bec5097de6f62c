/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c: the only file that reads the environment. Variables fill option fields that the host left
 * zero, once, when a context is made, and none is read in a process with raised privileges
 * (AT_SECURE).
 *
 *   QUERN_NUM_THREADS  upper limit of the own pool
 *   QUERN_PROVIDER     file of the code generator
 *   QUERN_DUMP         stages to write, separated by commas: kernel,key,plan,llvm,asm
 *   QUERN_DUMP_DIR     where to write them
 *   QUERN_CUDA_DRIVER  file of the CUDA driver
 */
#define _GNU_SOURCE
#include "runtime/context.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/** Stages of a list; unknown names are left out. */
static uint32_t parse_stages(const char *list)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } stage[] = {
#define QN_X(name, number, text) {text, QN_DUMP_##name},
        QN_DUMP_LIST(QN_X)
#undef QN_X
    };
    uint32_t bits = 0;
    while (*list) {
        size_t n = strcspn(list, ",");
        for (size_t i = 0; i < sizeof stage / sizeof stage[0]; i++)
            if (strlen(stage[i].name) == n && memcmp(stage[i].name, list, n) == 0)
                bits |= stage[i].bit;
        list += n + (list[n] == ',');
    }
    return bits;
}

void qn__env_fill(qn_context_options *o, int32_t *thread_limit)
{
    *thread_limit = 0;
    if (getauxval(AT_SECURE))
        return;
    const char *threads = variable("QUERN_NUM_THREADS"), *stages = variable("QUERN_DUMP");
    if (threads) {
        char *end;
        long n = strtol(threads, &end, 10);
        if (*end == 0 && n > 0 && n <= QN_MAX_THREADS)
            *thread_limit = (int32_t)n;
    }
    if (!o->provider_path)
        o->provider_path = variable("QUERN_PROVIDER");
    if (!o->dump && stages)
        o->dump = parse_stages(stages);
    if (!o->dump_dir)
        o->dump_dir = variable("QUERN_DUMP_DIR");
    if (!o->cuda_driver)
        o->cuda_driver = variable("QUERN_CUDA_DRIVER");
}
