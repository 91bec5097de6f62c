/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_cuda.h: what tests may ask of the stub driver, a libcuda.so.1 without a GPU: device memory
 * is memory of the host, kernels are run by a function of the test, and any call can be made to
 * fail. Found with dlsym.
 */
#ifndef QN_TESTS_STUB_CUDA_H
#define QN_TESTS_STUB_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Memory that a kernel may touch. */
typedef struct stub_memory {
    const void *at;
    size_t bytes;
} stub_memory;

/** A kernel to be run. */
typedef struct stub_kernel {
    const char *text, *entry; /* PTX */
    unsigned blocks, threads[3], shared_bytes;
    const void *params;
    size_t param_bytes;
    const stub_memory *memory;
    int n_memories;
} stub_kernel;
/** Runs a kernel; false makes the context fail as after an illegal address. */
typedef bool (*stub_runner)(const stub_kernel *k);

/** What is counted. */
enum {
    STUB_CONTEXTS,
    STUB_STREAMS,
    STUB_EVENTS,
    STUB_BLOCKS,
    STUB_MODULES,
    STUB_LINKS,
    STUB_POOLS,
    STUB_GRAPHS,
    STUB_KINDS
};

/** The control functions, as one table; the symbol is stub_control_table. */
typedef struct stub_control {
    /** From now on the nth call (1: the next) of a function returns `result`; function NULL: none
     * fails. */
    void (*fail)(const char *function, int result, int nth);
    /** Calls of a function since `reset`; with NULL, of all functions. */
    int64_t (*calls)(const char *function);
    /** Objects that are there. */
    int64_t (*live)(int kind);
    /** Takes what is there as not there: after a failure that leaves something. */
    void (*forget)(int kind);
    /** The first misuse, or NULL: memory used after it was freed, handles of nothing, another
     * context's stream. */
    const char *(*misuse)(void);
    /** Forgets calls, failures, misuse and lost contexts; frees memory that was kept to catch its
     * use. */
    void (*reset)(void);
    /** 1: work waits until somebody waits for it. */
    void (*defer)(int on);
    void (*run_with)(stub_runner run);
    /** 1: the devices reach each other's memory. */
    void (*peers)(int on);
    /** A CUDA context of device 0 that is not its primary one. */
    void *(*other_context)(void);
} stub_control;

#endif
