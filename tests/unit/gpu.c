/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c: opens the stub driver and runs its kernels on the machine for PTX.
 */
#include "tests/ptx/machine.h"
#include "tests/stub/stub_cuda.h"

#include <dlfcn.h>
#include <stdio.h>

const stub_control *stub_open(const char *path);
bool stub_run_kernel(const stub_kernel *k);

bool stub_run_kernel(const stub_kernel *k)
{
    static uint32_t seed;
    char error[256] = "";
    ptx_module *m = ptx_parse(k->text, error, sizeof error);
    const ptx_launch l = {
        .entry = k->entry,
        .blocks = k->blocks,
        .threads = {(int32_t)k->threads[0], (int32_t)k->threads[1], (int32_t)k->threads[2]},
        .shared_bytes = (int32_t)k->shared_bytes,
        .params = k->params,
        .param_bytes = k->param_bytes,
        .memory = (const ptx_memory *)(const void *)k->memory, /* the same struct */
        .n_memories = k->n_memories,
        .seed = seed++};
    bool passed = m && ptx_run(m, &l, error, sizeof error);
    if (!passed)
        printf("# kernel %s: %s\n", k->entry, error);
    if (m)
        ptx_free(m);
    return passed;
}

const stub_control *stub_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const stub_control *stub = library ? dlsym(library, "stub_control_table") : NULL;
    if (stub) {
        stub->reset();
        stub->run_with(stub_run_kernel);
    }
    return stub;
}
