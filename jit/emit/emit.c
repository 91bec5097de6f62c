/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c: target machines, contexts, and module -> object bytes or assembly text (PTX is the assembly of NVPTX). A
 * target machine and its passes belong to one compile thread and are kept there, because making them costs a third of a
 * small compile. No error of LLVM reaches the host: diagnostics are collected, and fatal errors go to the request (guard).
 */
#include "jit/lower/parts.h"
#include "jit/emit/passes.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void initialize_target(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

void qn__llvm_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialize_target);
}

/* ---------------------------------------------------------------- machines */

enum { MOST_MACHINES = 8 };

/* What one compile thread keeps. */
typedef struct machines {
    qn_machine kept[MOST_MACHINES];
    int n;
    char *host; /* its processor; asking costs 30 us where the processor is virtual */
} machines;

static void drop_machine(qn_machine *m)
{
    qn__passes_free(m->passes);
    LLVMDisposeTargetMachine(m->target);
}

static qn_status make_machine(int isa, int ptx, bool is_fast, LLVMTargetMachineRef *out, qn_error *err)
{
    bool is_gpu = qn__target_of(isa) == QN_TARGET_NVPTX;
    const char *triple = is_gpu ? "nvptx64-nvidia-cuda" : "x86_64-unknown-linux-gnu";
    char cpu[16], features[16] = "", *message = NULL;
    LLVMTargetRef target;
    snprintf(cpu, sizeof cpu, is_gpu ? "sm_%d" : "x86-64-v%d", isa);
    if (is_gpu)
        snprintf(features, sizeof features, "+ptx%d", ptx);
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", message);
        LLVMDisposeMessage(message);
        return QN_ERR_CODEGEN;
    }
    *out = LLVMCreateTargetMachine(target, triple, cpu, features, is_fast ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                   is_gpu ? LLVMCodeModelDefault : LLVMCodeModelSmall);
    return *out ? QN_OK : qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: no target machine for %s", cpu);
}

qn_status qn__llvm_machine(void **thread_state, const qn_facts *f, bool is_fast, qn_machine **out, qn_error *err)
{
    bool is_ptx = (f->ptx >= 63 && f->ptx <= 65) || (f->ptx >= 70 && f->ptx <= 78) || (f->ptx >= 80 && f->ptx <= 85);
    bool is_known = f->ptx ? is_ptx && qn__ptx_of_isa(f->isa) && f->ptx >= qn__ptx_of_isa(f->isa)
                           : f->isa == QN_ISA_V3 || f->isa == QN_ISA_V4;
    if (!is_known)
        return qn__fail(err, QN_ERR_TARGET, "qn_llvm_provider: no instruction set %d (PTX ISA %d)", f->isa, f->ptx);
    if (!*thread_state)
        *thread_state = qn__zalloc(1, sizeof(machines));
    machines *m = *thread_state;
    if (!m)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for a target machine");
    for (int i = 0; i < m->n; i++)
        if (m->kept[i].isa == f->isa && m->kept[i].ptx == f->ptx &&
            m->kept[i].is_portable == (f->is_portable != 0) && m->kept[i].is_fast == is_fast) {
            *out = &m->kept[i];
            return QN_OK;
        }
    if (!m->host)
        m->host = LLVMGetHostCPUName();
    const char *any = f->isa == QN_ISA_V4 ? "x86-64-v4" : "x86-64-v3";
    qn_machine made = {.isa = f->isa,
                       .ptx = f->ptx,
                       .is_portable = f->is_portable != 0,
                       .is_fast = is_fast,
                       .tune = f->is_portable ? any : m->host};
    qn_status status = make_machine(f->isa, f->ptx, is_fast, &made.target, err);
    if (status != QN_OK)
        return status;
    if (m->n == MOST_MACHINES)
        drop_machine(&m->kept[--m->n]);
    *out = &m->kept[m->n++];
    **out = made;
    return QN_OK;
}

void qn__llvm_thread_end(void **thread_state)
{
    machines *m = *thread_state;
    for (int i = 0; m && i < m->n; i++)
        drop_machine(&m->kept[i]);
    if (m)
        LLVMDisposeMessage(m->host);
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

LLVMModuleRef qn__llvm_module(LLVMContextRef context, const qn_machine *m)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("quern", context);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(m->target);
    char *triple = LLVMGetTargetMachineTriple(m->target);
    LLVMSetTarget(module, triple);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeMessage(triple);
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

void qn__llvm_finish_functions(LLVMModuleRef module, const qn_machine *m)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        add_flag(f, "nounwind");
        add_text(f, "no-builtins", "");
        if (qn__target_of(m->isa) == QN_TARGET_NVPTX) { /* subnormal numbers are kept */
            add_text(f, "denormal-fp-math", "ieee,ieee");
            add_text(f, "denormal-fp-math-f32", "ieee,ieee");
            continue;
        }
        add_text(f, "tune-cpu", m->tune);
        add_text(f, "prefer-vector-width", m->isa == QN_ISA_V4 ? "512" : "256");
    }
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

qn_status qn__llvm_code(qn_machine *m, LLVMModuleRef module, bool is_large, const qn_diagnostics *d, const char **bytes,
                        size_t *n, qn_error *err)
{
    if (!m->passes)
        m->passes = qn__passes_new(m->target, m->ptx != 0);
    if (!m->passes)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for the passes");
    qn__passes_run(m->passes, module, is_large, bytes, n);
    if (!d->has_error)
        return QN_OK;
    qn__passes_free(m->passes); /* the next module is not to depend on a bad one */
    m->passes = NULL;
    return qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", d->text);
}

qn_status qn__llvm_assembly(const qn_machine *m, LLVMModuleRef module, bool is_large, const qn_diagnostics *d,
                            LLVMMemoryBufferRef *out, qn_error *err)
{
    qn_passes *passes = qn__passes_new(m->target, true);
    const char *text;
    size_t n;
    if (!passes)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for the passes");
    qn__passes_run(passes, module, is_large, &text, &n);
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, n, "assembly");
    qn__passes_free(passes);
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
    if (!r)
        return;
    qn__exit_leave();
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
