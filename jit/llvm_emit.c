/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_emit.c: target machines, contexts, and module -> object bytes or assembly text. A target machine belongs to one
 * compile thread and is kept there, because making one costs a fifth of a small compile. No error of LLVM reaches the
 * host: diagnostics are collected, and fatal errors go to the request (guard).
 */
#include "jit/llvm_parts.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char triple[] = "x86_64-unknown-linux-gnu";

static void initialize_target(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
}

void qn__llvm_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialize_target);
}

/* ---------------------------------------------------------------- machines */

/* What one compile thread keeps. */
typedef struct machines {
    LLVMTargetMachineRef v3, v4;
} machines;

static qn_status make_machine(const char *cpu, LLVMTargetMachineRef *out, qn_error *err)
{
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", message);
        LLVMDisposeMessage(message);
        return QN_ERR_CODEGEN;
    }
    *out = LLVMCreateTargetMachine(target, triple, cpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                   LLVMCodeModelSmall);
    return *out ? QN_OK : qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: no target machine for %s", cpu);
}

qn_status qn__llvm_machine(void **thread_state, int isa, LLVMTargetMachineRef *out, qn_error *err)
{
    if (isa != QN_ISA_V3 && isa != QN_ISA_V4)
        return qn__fail(err, QN_ERR_TARGET, "qn_llvm_provider: instruction set %d is not 3 or 4", isa);
    if (!*thread_state)
        *thread_state = qn__zalloc(1, sizeof(machines));
    machines *m = *thread_state;
    if (!m)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for a target machine");
    LLVMTargetMachineRef *kept = isa == QN_ISA_V4 ? &m->v4 : &m->v3;
    qn_status status = QN_OK;
    if (!*kept)
        status = make_machine(isa == QN_ISA_V4 ? "x86-64-v4" : "x86-64-v3", kept, err);
    if (status == QN_OK)
        *out = *kept;
    return status;
}

void qn__llvm_thread_end(void **thread_state)
{
    machines *m = *thread_state;
    if (!m)
        return;
    if (m->v3)
        LLVMDisposeTargetMachine(m->v3);
    if (m->v4)
        LLVMDisposeTargetMachine(m->v4);
    qn__free(m);
    *thread_state = NULL;
}

/* ---------------------------------------------------------------- contexts and modules */

/* Keeps the first error; remarks and warnings come for good modules too. */
static void collect_diagnostic(LLVMDiagnosticInfoRef info, void *arg)
{
    qn_diagnostics *d = arg;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || d->has_error)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    d->has_error = true;
    snprintf(d->text, sizeof d->text, "%s", text);
    LLVMDisposeMessage(text);
}

LLVMContextRef qn__llvm_context(qn_diagnostics *d, bool keep_names)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(context, collect_diagnostic, d);
    LLVMContextSetDiscardValueNames(context, !keep_names);
    return context;
}

LLVMModuleRef qn__llvm_module(LLVMContextRef context, LLVMTargetMachineRef machine)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("quern", context);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetTarget(module, triple);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    return module;
}

static void add_flag(LLVMValueRef function, const char *name)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, kind, 0));
}

static void add_text(LLVMValueRef function, const char *name, const char *value)
{
    LLVMAddTargetDependentFunctionAttr(function, name, value);
}

void qn__llvm_finish_functions(LLVMModuleRef module, int isa)
{
    char *host = LLVMGetHostCPUName();
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        add_flag(f, "nounwind");
        add_text(f, "no-builtins", "");
        add_text(f, "tune-cpu", host);
        add_text(f, "prefer-vector-width", isa == QN_ISA_V4 ? "512" : "256");
    }
    LLVMDisposeMessage(host);
}

qn_status qn__llvm_verify(LLVMModuleRef module, qn_error *err)
{
    char *message = NULL;
    qn_status status = QN_OK;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        status = qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: module is not well formed: %s", message);
    LLVMDisposeMessage(message);
    return status;
}

qn_status qn__llvm_emit(LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                        const qn_diagnostics *d, LLVMMemoryBufferRef *out, qn_error *err)
{
    char *message = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer)) {
        qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", message ? message : "emission failed");
        LLVMDisposeMessage(message);
        return QN_ERR_CODEGEN;
    }
    if (d->has_error) {
        LLVMDisposeMemoryBuffer(buffer);
        return qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", d->text);
    }
    *out = buffer;
    return QN_OK;
}

/* ---------------------------------------------------------------- fatal errors */

/* The handler is one for the process and the host may use LLVM too: it is installed while one of our compiles runs, and
 * for a thread that is not ours it returns, which is what happens without a handler. A compile thread that met a fatal
 * error never reaches guard_end, so from then on the handler stays. */
static _Thread_local const qn_request *guarded;
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_guarded;

static void on_fatal_error(const char *reason)
{
    const qn_request *r = guarded;
    if (r)
        r->fatal(r->fatal_arg, reason ? reason : "unknown");
}

void qn__llvm_guard_begin(const qn_request *r)
{
    guarded = r;
    pthread_mutex_lock(&guard_lock);
    if (n_guarded++ == 0)
        LLVMInstallFatalErrorHandler(on_fatal_error);
    pthread_mutex_unlock(&guard_lock);
}

void qn__llvm_guard_end(void)
{
    pthread_mutex_lock(&guard_lock);
    if (--n_guarded == 0)
        LLVMResetFatalErrorHandler();
    pthread_mutex_unlock(&guard_lock);
    guarded = NULL;
}
