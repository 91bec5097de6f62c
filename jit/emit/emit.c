/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c: target machines, contexts, and module -> object bytes or assembly text (PTX is the
 * assembly of NVPTX). A target machine and its passes belong to one compile thread and are kept
 * there, because making them costs a third of a small compile. No error of LLVM reaches the host:
 * diagnostics are collected, and fatal errors go to the request (guard).
 */
#include "jit/emit/passes.h"
#include "jit/target/target.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

void qn__llvm_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, qn__hooks_initialize);
}

/* ---------------------------------------------------------------- machines */

enum { MOST_GENERATORS = 8 };

/* What one compile thread keeps. */
typedef struct generators {
    qn_generator kept[MOST_GENERATORS];
    int n;
    char *host; /* its processor; asking costs 30 us where the processor is virtual */
} generators;

static void drop_generator(qn_generator *m)
{
    qn__passes_free(m->passes);
    LLVMDisposeTargetMachine(m->machine);
}

static qn_status make_machine(const qn_generator *of, LLVMTargetMachineRef *out, qn_error *err)
{
    const qn_target *row = of->row;
    char ptx[16], *message = NULL;
    LLVMTargetRef target;
    snprintf(ptx, sizeof ptx, "+ptx%d", of->ptx);
    if (LLVMGetTargetFromTriple(row->triple, &target, &message)) {
        qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", message);
        LLVMDisposeMessage(message);
        return QN_ERR_CODEGEN;
    }
    *out = LLVMCreateTargetMachine(target, row->triple, row->cpu ? row->cpu : row->name,
                                   of->ptx         ? ptx
                                   : row->features ? row->features
                                                   : "",
                                   of->is_fast ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault,
                                   LLVMRelocPIC, of->hooks->code_model);
    return *out ? QN_OK
                : qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: no target machine for %s",
                           row->name);
}

qn_status qn__llvm_generator(void **thread_state, const qn_facts *f, bool is_fast,
                             qn_generator **out, qn_error *err)
{
    bool is_ptx = (f->ptx >= 63 && f->ptx <= 65) || (f->ptx >= 70 && f->ptx <= 78) ||
                  (f->ptx >= 80 && f->ptx <= 85);
    bool is_known = f->ptx ? is_ptx && f->target->ptx && f->ptx >= f->target->ptx : !f->target->ptx;
    if (!is_known || f->target->isa != f->isa)
        return qn__fail(err, QN_ERR_TARGET, "qn_llvm_provider: no instruction set %d (PTX ISA %d)",
                        f->isa, f->ptx);
    const qn_hooks *hooks = qn__hooks_of(f->target);
    if (!hooks)
        return qn__fail(err, QN_ERR_TARGET, "qn_llvm_provider: built without code for %s",
                        f->target->name);
    if (!*thread_state)
        *thread_state = qn__zalloc(1, sizeof(generators));
    generators *m = *thread_state;
    if (!m)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for a target machine");
    for (int i = 0; i < m->n; i++)
        if (m->kept[i].row == f->target && m->kept[i].ptx == f->ptx &&
            m->kept[i].is_portable == (f->is_portable != 0) && m->kept[i].is_fast == is_fast) {
            *out = &m->kept[i];
            return QN_OK;
        }
    if (!m->host)
        m->host = LLVMGetHostCPUName();
    qn_generator made = {.row = f->target,
                         .hooks = hooks,
                         .ptx = f->ptx,
                         .is_portable = f->is_portable != 0,
                         .is_fast = is_fast,
                         .tune = f->is_portable ? f->target->name : m->host};
    qn_status status = make_machine(&made, &made.machine, err);
    if (status != QN_OK)
        return status;
    if (m->n == MOST_GENERATORS)
        drop_generator(&m->kept[--m->n]);
    *out = &m->kept[m->n++];
    **out = made;
    return QN_OK;
}

void qn__llvm_thread_end(void **thread_state)
{
    generators *m = *thread_state;
    for (int i = 0; m && i < m->n; i++)
        drop_generator(&m->kept[i]);
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

LLVMModuleRef qn__llvm_module(LLVMContextRef context, const qn_generator *m)
{
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("quern", context);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(m->machine);
    char *triple = LLVMGetTargetMachineTriple(m->machine);
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

void qn__llvm_finish_functions(LLVMModuleRef module, const qn_generator *m)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        add_flag(f, "nounwind");
        LLVMAddTargetDependentFunctionAttr(f, "no-builtins", "");
        m->hooks->attributes(f, m->row, m->tune);
    }
}

qn_status qn__llvm_verify(LLVMModuleRef module, qn_error *err)
{
    char *message = NULL;
    qn_status status = QN_OK;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        status = qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: module is not well formed: %s",
                          message);
    LLVMDisposeMessage(message);
    return status;
}

qn_status qn__llvm_code(qn_generator *m, LLVMModuleRef module, bool is_large,
                        const qn_diagnostics *d, const char **bytes, size_t *n, qn_error *err)
{
    if (!m->passes)
        m->passes = qn__passes_new(m->machine, m->ptx != 0, m->hooks->not_for_large);
    if (!m->passes)
        return qn__fail(err, QN_ERR_MEMORY, "qn_llvm_provider: no memory for the passes");
    qn__passes_run(m->passes, module, is_large, bytes, n);
    if (!d->has_error)
        return QN_OK;
    qn__passes_free(m->passes); /* the next module is not to depend on a bad one */
    m->passes = NULL;
    return qn__fail(err, QN_ERR_CODEGEN, "qn_llvm_provider: %s", d->text);
}

qn_status qn__llvm_assembly(const qn_generator *m, LLVMModuleRef module, bool is_large,
                            const qn_diagnostics *d, LLVMMemoryBufferRef *out, qn_error *err)
{
    qn_passes *passes = qn__passes_new(m->machine, true, m->hooks->not_for_large);
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

/* The handler is one for the process and the host may use LLVM too: it is installed while one of
 * our compiles runs, and for a thread that is not ours it returns, which is what happens without a
 * handler. A compile thread that met a fatal error never reaches guard_end, so from then on the
 * handler stays. */
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
