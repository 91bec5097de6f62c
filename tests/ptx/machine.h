/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h: a small machine that runs PTX on the processor, for tests where there is no GPU. It
 * knows the instructions that our kernels use and refuses all others. Addresses of global memory
 * are those of the host; every access is checked. Blocks run one after the other; the threads of a
 * block in an order that `seed` decides, each until it has to wait for others.
 */
#ifndef QN_TESTS_PTX_MACHINE_H
#define QN_TESTS_PTX_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;

/** Memory that a kernel may touch. */
typedef struct ptx_memory {
    const void *at;
    size_t bytes;
} ptx_memory;

typedef struct ptx_launch {
    const char *entry;
    int64_t blocks;
    int32_t threads[3];
    int32_t shared_bytes; /* dynamic ones */
    const void *params;   /* of the kernel's parameters, as laid out in it */
    size_t param_bytes;
    const ptx_memory *memory;
    int n_memories;
    uint32_t seed;
} ptx_launch;

/** Reads a module; NULL and a reason in `error` if there is something it does not know. */
ptx_module *ptx_parse(const char *text, char *error, size_t error_bytes);
void ptx_free(ptx_module *m);
/** Runs a kernel; false and a reason on any access outside, deadlock, or 2^32 instructions. */
bool ptx_run(const ptx_module *m, const ptx_launch *l, char *error, size_t error_bytes);

#endif
