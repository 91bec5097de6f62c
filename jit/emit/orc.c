/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc.c: the loader for debugging. One LLJIT per process; objects that our compile threads emitted
 * are added under a lock, one resource tracker each, announced to GDB, and dropped again. Not the
 * default loader: a kept kernel costs two mappings, of which a process has 65,530.
 */
#include "jit/emit/gdb.h"
#include "jit/lower/parts.h"

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The LLJIT, made at first use and kept: code of it may run until the process ends. */
static struct {
    pthread_mutex_t lock;
    LLVMOrcLLJITRef jit;
} orc = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* What a handle is. */
typedef struct loaded {
    LLVMOrcResourceTrackerRef tracker;
    void *announced; /* to GDB */
} loaded;

/* The default prints to stderr. Every error reported here also fails the call that met it. */
static void drop_error(void *arg, LLVMErrorRef error)
{
    (void)arg;
    LLVMConsumeError(error);
}

/* Consumes an LLVM error. */
static qn_status fail_llvm(qn_error *err, const char *what, LLVMErrorRef error)
{
    char *message = LLVMGetErrorMessage(error);
    qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return QN_ERR_CODEGEN;
}

/* With the lock held. */
static qn_status make_jit(qn_error *err)
{
    if (orc.jit)
        return QN_OK;
    LLVMOrcLLJITRef jit = NULL;
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit, NULL);
    if (error)
        return fail_llvm(err, "orc", error);
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), drop_error, NULL);
    orc.jit = jit;
    return QN_OK;
}

/* With the lock held. Drops what the tracker holds, and names nobody uses any more. */
static void drop_tracker(LLVMOrcResourceTrackerRef tracker)
{
    LLVMErrorRef error = LLVMOrcResourceTrackerRemove(tracker);
    if (error)
        LLVMConsumeError(error);
    LLVMOrcReleaseResourceTracker(tracker);
    LLVMOrcExecutionSessionRef session = LLVMOrcLLJITGetExecutionSession(orc.jit);
    LLVMOrcSymbolStringPoolClearDeadEntries(LLVMOrcExecutionSessionGetSymbolStringPool(session));
}

/* With the lock held. */
static qn_status load_object(const void *object, size_t n, const char *symbol, qn_entry *entry,
                             loaded *l, qn_error *err)
{
    qn_status status = make_jit(err);
    if (status != QN_OK)
        return status;
    LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(orc.jit);
    LLVMOrcResourceTrackerRef tracker = LLVMOrcJITDylibCreateResourceTracker(library);
    LLVMMemoryBufferRef copy = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, n, symbol);
    LLVMErrorRef error =
        LLVMOrcLLJITAddObjectFileWithRT(orc.jit, tracker, copy); /* takes the copy */
    LLVMOrcExecutorAddress address = 0;
    if (!error)
        error = LLVMOrcLLJITLookup(orc.jit, &address, symbol);
    if (error) {
        drop_tracker(tracker);
        return fail_llvm(err, "orc", error);
    }
    memcpy(entry, &address, sizeof *entry);
    l->tracker = tracker;
    l->announced = qn__gdb_announce(object, n, symbol, address);
    return QN_OK;
}

void qn__orc_symbol(char *buffer, size_t buffer_bytes)
{
    static _Atomic uint64_t n;
    snprintf(buffer, buffer_bytes, "quern_%llu", (unsigned long long)atomic_fetch_add(&n, 1));
}

qn_status qn__orc_load(const void *object, size_t n, const char *symbol, qn_entry *entry,
                       void **handle, qn_error *err)
{
    loaded *l = qn__zalloc(1, sizeof *l);
    if (!l)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for a handle");
    pthread_mutex_lock(&orc.lock);
    qn_status status = load_object(object, n, symbol, entry, l, err);
    pthread_mutex_unlock(&orc.lock);
    if (status == QN_OK)
        *handle = l;
    else
        qn__free(l);
    return status;
}

void qn__orc_free(void *handle)
{
    loaded *l = handle;
    if (!l)
        return;
    pthread_mutex_lock(&orc.lock);
    qn__gdb_forget(l->announced);
    drop_tracker(l->tracker);
    pthread_mutex_unlock(&orc.lock);
    qn__free(l);
}
