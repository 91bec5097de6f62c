/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h: the CUDA driver as we use it: types, numbers and one table of functions, found by
 * name in libcuda.so.1 when they are first needed. The prototypes are ours; no CUDA header or
 * library takes part in the build.
 */
#ifndef QN_RUNTIME_CUDA_DRIVER_H
#define QN_RUNTIME_CUDA_DRIVER_H

#include "ir/ir.h"

typedef unsigned long long qn_cu_ptr; /* a device address */

/** Results of the driver that mean something to us: X(NAME, number). */
enum {
    QN_CU_OK = 0,
    QN_CU_INVALID_VALUE = 1,
    QN_CU_OUT_OF_MEMORY = 2,
    QN_CU_NOT_INITIALIZED = 3,
    QN_CU_DEINITIALIZED = 4,
    QN_CU_STUB_LIBRARY = 34,
    QN_CU_DEVICE_UNAVAILABLE = 46,
    QN_CU_NO_DEVICE = 100,
    QN_CU_INVALID_IMAGE = 200,
    QN_CU_INVALID_CONTEXT = 201,
    QN_CU_NO_BINARY_FOR_GPU = 209,
    QN_CU_ECC_UNCORRECTABLE = 214,
    QN_CU_INVALID_PTX = 218,
    QN_CU_NVLINK_UNCORRECTABLE = 220,
    QN_CU_JIT_COMPILER_NOT_FOUND = 221,
    QN_CU_UNSUPPORTED_PTX_VERSION = 222,
    QN_CU_JIT_COMPILATION_DISABLED = 223,
    QN_CU_INVALID_HANDLE = 400,
    QN_CU_NOT_READY = 600,
    QN_CU_ILLEGAL_ADDRESS = 700,
    QN_CU_LAUNCH_TIMEOUT = 702,
    QN_CU_CONTEXT_IS_DESTROYED = 709,
    QN_CU_PEER_IS_ENABLED = 704,
    QN_CU_ASSERT = 710,
    QN_CU_HARDWARE_STACK_ERROR = 714,
    QN_CU_LAUNCH_FAILED = 719,
    QN_CU_SYSTEM_NOT_READY = 802,
    QN_CU_COMPAT_NOT_SUPPORTED = 804
};

/** Attributes, flags and kinds, by the driver's numbers. */
enum {
    QN_CU_ATTRIBUTE_MAX_PITCH = 11,
    QN_CU_ATTRIBUTE_CLOCK = 13, /* kHz */
    QN_CU_ATTRIBUTE_MULTIPROCESSORS = 16,
    QN_CU_ATTRIBUTE_MEMORY_CLOCK = 36, /* kHz */
    QN_CU_ATTRIBUTE_MEMORY_BITS = 37,  /* of the bus, each moved twice in a clock */
    QN_CU_ATTRIBUTE_L2_BYTES = 38,
    QN_CU_ATTRIBUTE_RESIDENT_THREADS = 39, /* of a multiprocessor */
    QN_CU_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    QN_CU_ATTRIBUTE_MAJOR = 75,
    QN_CU_ATTRIBUTE_MINOR = 76,
    QN_CU_ATTRIBUTE_SHARED_BYTES = 81, /* of a multiprocessor */
    QN_CU_ATTRIBUTE_REGISTERS = 82,    /* of a multiprocessor */
    QN_CU_ATTRIBUTE_MANAGED_MEMORY = 83,
    QN_CU_ATTRIBUTE_MEMORY_POOLS = 115,

    QN_CU_STREAM_NON_BLOCKING = 1,
    QN_CU_EVENT_NO_TIMING = 2,
    QN_CU_HOST_PORTABLE = 1,
    QN_CU_HOST_MAPPED = 2,
    QN_CU_MANAGED_GLOBAL = 1,
    QN_CU_POOL_RELEASE_THRESHOLD = 4,
    QN_CU_FUNCTION_MAX_SHARED = 8,
    QN_CU_CAPTURE_THREAD = 1,

    QN_CU_MEMORY_HOST = 1,
    QN_CU_MEMORY_DEVICE = 2,

    QN_CU_POINTER_CONTEXT = 1,
    QN_CU_POINTER_MEMORY_TYPE = 2,
    QN_CU_POINTER_IS_MANAGED = 8,
    QN_CU_POINTER_DEVICE = 9,
    QN_CU_POINTER_IS_LEGACY = 10,
    QN_CU_POINTER_RANGE_START = 11,
    QN_CU_POINTER_RANGE_BYTES = 12,
    QN_CU_POINTER_POOL = 17,

    QN_CU_JIT_INFO_LOG = 3,
    QN_CU_JIT_INFO_LOG_BYTES = 4,
    QN_CU_JIT_ERROR_LOG = 5,
    QN_CU_JIT_ERROR_LOG_BYTES = 6,
    QN_CU_JIT_LOG_VERBOSE = 12,
    QN_CU_JIT_INPUT_PTX = 1
};

/** What the driver takes for a pool of memory. */
typedef struct qn_cu_pool {
    int allocation, handles; /* 1 pinned; 0 none */
    int location, device;    /* 1 device */
    void *security;
    unsigned char reserved[64];
} qn_cu_pool;

/** Who may touch the memory of a pool. */
typedef struct qn_cu_access {
    int location, device; /* 1 device */
    int flags;            /* 3 reads and writes */
} qn_cu_access;

/** One side of a strided copy of the driver's. */
typedef struct qn_cu_copy2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    qn_cu_ptr src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    qn_cu_ptr dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width_bytes, height;
} qn_cu_copy2d;

typedef struct qn_cu_copy3d {
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    qn_cu_ptr src_device;
    void *src_array, *src_reserved;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    qn_cu_ptr dst_device;
    void *dst_array, *dst_reserved;
    size_t dst_pitch, dst_height;
    size_t width_bytes, height, depth;
} qn_cu_copy3d;

typedef struct qn_cu_uuid {
    unsigned char byte[16];
} qn_cu_uuid;

/**
 * The functions: X(our name, the driver's symbol, (parameters)). All return a result. Handles of
 * the driver are void pointers. A driver of CUDA 11.4 or newer has all of them.
 */
#define QN_CUDA_CALLS(X)                                                                           \
    X(init, cuInit, (unsigned))                                                                    \
    X(driver_version, cuDriverGetVersion, (int *))                                                 \
    X(error_name, cuGetErrorName, (int, const char **))                                            \
    X(error_text, cuGetErrorString, (int, const char **))                                          \
    X(device_count, cuDeviceGetCount, (int *))                                                     \
    X(device_get, cuDeviceGet, (int *, int))                                                       \
    X(device_name, cuDeviceGetName, (char *, int, int))                                            \
    X(device_uuid, cuDeviceGetUuid_v2, (qn_cu_uuid *, int))                                        \
    X(device_bytes, cuDeviceTotalMem_v2, (size_t *, int))                                          \
    X(device_attribute, cuDeviceGetAttribute, (int *, int, int))                                   \
    X(peer_can, cuDeviceCanAccessPeer, (int *, int, int))                                          \
    X(peer_enable, cuCtxEnablePeerAccess, (void *, unsigned))                                      \
    X(primary_retain, cuDevicePrimaryCtxRetain, (void **, int))                                    \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (int))                                        \
    X(context_current, cuCtxGetCurrent, (void **))                                                 \
    X(context_push, cuCtxPushCurrent_v2, (void *))                                                 \
    X(context_pop, cuCtxPopCurrent_v2, (void **))                                                  \
    X(context_device, cuCtxGetDevice, (int *))                                                     \
    X(context_sync, cuCtxSynchronize, (void))                                                      \
    X(stream_create, cuStreamCreate, (void **, unsigned))                                          \
    X(stream_destroy, cuStreamDestroy_v2, (void *))                                                \
    X(stream_sync, cuStreamSynchronize, (void *))                                                  \
    X(stream_query, cuStreamQuery, (void *))                                                       \
    X(stream_wait, cuStreamWaitEvent, (void *, void *, unsigned))                                  \
    X(stream_context, cuStreamGetCtx, (void *, void **))                                           \
    X(event_create, cuEventCreate, (void **, unsigned))                                            \
    X(event_destroy, cuEventDestroy_v2, (void *))                                                  \
    X(event_record, cuEventRecord, (void *, void *))                                               \
    X(event_query, cuEventQuery, (void *))                                                         \
    X(event_sync, cuEventSynchronize, (void *))                                                    \
    X(event_elapsed, cuEventElapsedTime, (float *, void *, void *))                                \
    X(memory_alloc, cuMemAlloc_v2, (qn_cu_ptr *, size_t))                                          \
    X(memory_free, cuMemFree_v2, (qn_cu_ptr))                                                      \
    X(host_alloc, cuMemHostAlloc, (void **, size_t, unsigned))                                     \
    X(host_free, cuMemFreeHost, (void *))                                                          \
    X(managed_alloc, cuMemAllocManaged, (qn_cu_ptr *, size_t, unsigned))                           \
    X(pool_create, cuMemPoolCreate, (void **, const qn_cu_pool *))                                 \
    X(pool_destroy, cuMemPoolDestroy, (void *))                                                    \
    X(pool_set, cuMemPoolSetAttribute, (void *, int, void *))                                      \
    X(pool_access, cuMemPoolSetAccess, (void *, const qn_cu_access *, size_t))                     \
    X(pool_trim, cuMemPoolTrimTo, (void *, size_t))                                                \
    X(pool_alloc, cuMemAllocFromPoolAsync, (qn_cu_ptr *, size_t, void *, void *))                  \
    X(pool_free, cuMemFreeAsync, (qn_cu_ptr, void *))                                              \
    X(pointer_attributes, cuPointerGetAttributes, (unsigned, int *, void **, qn_cu_ptr))           \
    X(copy, cuMemcpyAsync, (qn_cu_ptr, qn_cu_ptr, size_t, void *))                                 \
    X(copy_peer, cuMemcpyPeerAsync, (qn_cu_ptr, void *, qn_cu_ptr, void *, size_t, void *))        \
    X(copy_2d, cuMemcpy2DAsync_v2, (const qn_cu_copy2d *, void *))                                 \
    X(copy_3d, cuMemcpy3DAsync_v2, (const qn_cu_copy3d *, void *))                                 \
    X(set_8, cuMemsetD8Async, (qn_cu_ptr, unsigned char, size_t, void *))                          \
    X(set_16, cuMemsetD16Async, (qn_cu_ptr, unsigned short, size_t, void *))                       \
    X(set_32, cuMemsetD32Async, (qn_cu_ptr, unsigned, size_t, void *))                             \
    X(module_load, cuModuleLoadData, (void **, const void *))                                      \
    X(module_unload, cuModuleUnload, (void *))                                                     \
    X(module_function, cuModuleGetFunction, (void **, void *, const char *))                       \
    X(function_set, cuFuncSetAttribute, (void *, int, int))                                        \
    X(link_create, cuLinkCreate_v2, (unsigned, int *, void **, void **))                           \
    X(link_add, cuLinkAddData_v2,                                                                  \
      (void *, int, void *, size_t, const char *, unsigned, int *, void **))                       \
    X(link_complete, cuLinkComplete, (void *, void **, size_t *))                                  \
    X(link_destroy, cuLinkDestroy, (void *))                                                       \
    X(launch, cuLaunchKernel,                                                                      \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,       \
       void **, void **))                                                                          \
    X(capture_begin, cuStreamBeginCapture_v2, (void *, int))                                       \
    X(capture_end, cuStreamEndCapture, (void *, void **))                                          \
    X(capture_query, cuStreamIsCapturing, (void *, int *))                                         \
    X(graph_make, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))              \
    X(graph_launch, cuGraphLaunch, (void *, void *))                                               \
    X(graph_free, cuGraphDestroy, (void *))                                                        \
    X(graph_exec_free, cuGraphExecDestroy, (void *))

/** The table. */
typedef struct qn_cuda_api {
#define QN_X(name, symbol, parameters) int(*name) parameters;
    QN_CUDA_CALLS(QN_X)
#undef QN_X
} qn_cuda_api;

/** QN_CU_CALL_init, ...: the functions as numbers, for messages. */
enum {
#define QN_X(name, symbol, parameters) QN_CU_CALL_##name,
    QN_CUDA_CALLS(QN_X)
#undef QN_X
    QN_N_CUDA_CALLS
};

/** Opens the driver and fills the table. `path` NULL: libcuda.so.1, as the system searches for it.
 * QN_ERR_NOT_AVAILABLE with the reason if it is not there, or too old. It is never closed. */
qn_status qn__cuda_open(const char *path, qn_cuda_api *out, qn_error *err);

/** The status that a result of the driver becomes. */
qn_status qn__cuda_status(int result);
/** Whether nothing can be done in this CUDA context after a result. */
bool qn__cuda_is_fatal(int result);
/** QN_OK for QN_CU_OK; else an error with function, name and text: "qn_x: device 0: cuInit:
 * CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected". `device` -1: none. */
qn_status qn__cuda_fail(const qn_cuda_api *api, const char *who, int device, int call, int result,
                        qn_error *err);

#endif
