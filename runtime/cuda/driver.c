/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c: finds the driver and its functions, and turns its results into statuses. The
 * driver stays open for the life of the process: it has threads of its own.
 */
#define _GNU_SOURCE
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "libcuda.so.1"

static const char *const call_names[QN_N_CUDA_CALLS] = {
#define QN_X(name, symbol, parameters) #symbol,
    QN_CUDA_CALLS(QN_X)
#undef QN_X
};

/** A slot of the table, by number. */
static const size_t call_slots[QN_N_CUDA_CALLS] = {
#define QN_X(name, symbol, parameters) offsetof(qn_cuda_api, name),
    QN_CUDA_CALLS(QN_X)
#undef QN_X
};

/** The driver's name of a function. */
static const char *call_name(int call)
{
    return call >= 0 && call < QN_N_CUDA_CALLS ? call_names[call] : "?";
}

qn_status qn__cuda_open(const char *path, qn_cuda_api *out, qn_error *err)
{
    void *library = dlopen(path ? path : FILE_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *reason = dlerror();
        return qn__fail(err, QN_ERR_NOT_AVAILABLE, "qn__cuda_open: no CUDA driver: %s",
                        reason ? reason : FILE_NAME);
    }
    for (int i = 0; i < QN_N_CUDA_CALLS; i++) {
        void *symbol = dlsym(library, call_names[i]);
        if (!symbol)
            return qn__fail(err, QN_ERR_NOT_AVAILABLE,
                            "qn__cuda_open: %s has no function %s: it is older than CUDA 11.4",
                            path ? path : FILE_NAME, call_names[i]);
        memcpy((char *)out + call_slots[i], &symbol, sizeof symbol);
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- results */

/** Results that have a status of their own; the others are QN_ERR_CUDA. */
static const struct {
    int first, last;
    qn_status status;
} statuses[] = {
    {QN_CU_OUT_OF_MEMORY, QN_CU_OUT_OF_MEMORY, QN_ERR_MEMORY},
    {QN_CU_NOT_INITIALIZED, QN_CU_DEINITIALIZED, QN_ERR_NOT_AVAILABLE},
    {QN_CU_STUB_LIBRARY, QN_CU_STUB_LIBRARY, QN_ERR_NOT_AVAILABLE},
    {QN_CU_DEVICE_UNAVAILABLE, QN_CU_DEVICE_UNAVAILABLE, QN_ERR_NOT_AVAILABLE},
    {QN_CU_NO_DEVICE, QN_CU_NO_DEVICE, QN_ERR_NOT_AVAILABLE},
    {QN_CU_SYSTEM_NOT_READY, QN_CU_COMPAT_NOT_SUPPORTED, QN_ERR_NOT_AVAILABLE},
    {QN_CU_INVALID_IMAGE, QN_CU_INVALID_IMAGE, QN_ERR_CODEGEN},
    {QN_CU_NO_BINARY_FOR_GPU, QN_CU_NO_BINARY_FOR_GPU, QN_ERR_CODEGEN},
    {QN_CU_INVALID_PTX, QN_CU_INVALID_PTX, QN_ERR_CODEGEN},
    {QN_CU_JIT_COMPILER_NOT_FOUND, QN_CU_JIT_COMPILATION_DISABLED, QN_ERR_CODEGEN},
};

bool qn__cuda_is_fatal(int result)
{
    switch (result) {
    case QN_CU_ECC_UNCORRECTABLE:
    case QN_CU_NVLINK_UNCORRECTABLE:
    case QN_CU_ILLEGAL_ADDRESS:
    case QN_CU_LAUNCH_TIMEOUT:
    case QN_CU_CONTEXT_IS_DESTROYED:
    case QN_CU_ASSERT:
        return true;
    default: /* stack, instruction, address and launch failures of a kernel */
        return result >= QN_CU_HARDWARE_STACK_ERROR && result <= QN_CU_LAUNCH_FAILED;
    }
}

qn_status qn__cuda_status(int result)
{
    if (result == QN_CU_OK)
        return QN_OK;
    if (qn__cuda_is_fatal(result))
        return QN_ERR_CONTEXT_LOST;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (result >= statuses[i].first && result <= statuses[i].last)
            return statuses[i].status;
    return QN_ERR_CUDA;
}

qn_status qn__cuda_fail(const qn_cuda_api *api, const char *who, int device, int call, int result,
                        qn_error *err)
{
    qn_status status = qn__cuda_status(result);
    if (status == QN_OK)
        return status;
    const char *name = NULL, *text = NULL;
    if (api->error_name(result, &name) != QN_CU_OK || !name)
        name = "unknown error";
    if (api->error_text(result, &text) != QN_CU_OK || !text)
        text = qn_status_text((int)status);
    char place[32] = "";
    if (device >= 0)
        snprintf(place, sizeof place, "device %d: ", device);
    return qn__fail(err, status, "%s: %s%s: %s (%d): %s", who, place, call_name(call),
                    name, result, text);
}
