/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_tools.c: a tool of Kokkos, and an NVTX, that note what they are told as lines of text, which
 * stub_tools_text gives.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct space {
    char name[64];
} space;

static char text[20000];
static uint64_t n_spans;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t n = strlen(text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text + n, sizeof text - n, format, ap);
    va_end(ap);
}

#define EXPORT __attribute__((visibility("default")))
EXPORT const char *stub_tools_text(void);
EXPORT void stub_tools_clear(void);
EXPORT void kokkosp_init_library(int sequence, uint64_t version, uint32_t n_devices, void *devices);
EXPORT void kokkosp_finalize_library(void);
EXPORT void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id);
EXPORT void kokkosp_end_parallel_for(uint64_t id);
EXPORT void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id);
EXPORT void kokkosp_end_parallel_reduce(uint64_t id);
EXPORT void kokkosp_allocate_data(space where, const char *label, const void *data, uint64_t bytes);
EXPORT void kokkosp_deallocate_data(space where, const char *label, const void *data,
                                    uint64_t bytes);
EXPORT void kokkosp_begin_deep_copy(space to, const char *to_name, const void *to_data, space from,
                                    const char *from_name, const void *from_data, uint64_t bytes);
EXPORT void kokkosp_end_deep_copy(void);
EXPORT int nvtxRangePushA(const char *name);
EXPORT int nvtxRangePop(void);

const char *stub_tools_text(void)
{
    return text;
}

void stub_tools_clear(void)
{
    text[0] = 0;
}

void kokkosp_init_library(int sequence, uint64_t version, uint32_t n_devices, void *devices)
{
    note("init %d %llu %u %s\n", sequence, (unsigned long long)version, n_devices,
         devices ? "devices" : "NULL");
}

void kokkosp_finalize_library(void)
{
    note("finalize\n");
}

void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id)
{
    *id = ++n_spans;
    note("for %s on %u.%u\n", name, device >> 24, device & 0xffffff);
}

void kokkosp_end_parallel_for(uint64_t id)
{
    note("end for, %s\n", id == n_spans ? "the last" : "another");
}

void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id)
{
    *id = ++n_spans;
    note("reduce %s on %u.%u\n", name, device >> 24, device & 0xffffff);
}

void kokkosp_end_parallel_reduce(uint64_t id)
{
    note("end reduce, %s\n", id == n_spans ? "the last" : "another");
}

void kokkosp_allocate_data(space where, const char *label, const void *data, uint64_t bytes)
{
    note("allocate %s %s %s %llu\n", where.name, label, data ? "there" : "NULL",
         (unsigned long long)bytes);
}

void kokkosp_deallocate_data(space where, const char *label, const void *data, uint64_t bytes)
{
    note("deallocate %s %s %s %llu\n", where.name, label, data ? "there" : "NULL",
         (unsigned long long)bytes);
}

void kokkosp_begin_deep_copy(space to, const char *to_name, const void *to_data, space from,
                             const char *from_name, const void *from_data, uint64_t bytes)
{
    note("copy %s %s from %s %s %llu%s\n", to.name, to_name, from.name, from_name,
         (unsigned long long)bytes, to_data && from_data ? "" : " NULL");
}

void kokkosp_end_deep_copy(void)
{
    note("end copy\n");
}

int nvtxRangePushA(const char *name)
{
    note("push %s\n", name);
    return 0;
}

int nvtxRangePop(void)
{
    note("pop\n");
    return 0;
}
