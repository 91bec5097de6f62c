/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compilation.h: private to the provider: one compile in progress (emit/provider.c), and the texts
 * that are sent of it (emit/texts.c).
 */
#ifndef QN_JIT_COMPILATION_H
#define QN_JIT_COMPILATION_H

#include "jit/lower/parts.h"
#include "jit/schedule/piece.h"
#include "jit/schedule/planned.h"

/* One compile in progress. All of it is released by compile(). */
typedef struct compilation {
    qn_request *r;
    qn_kernel *kernel;
    qn_facts facts;
    qn_kernel *declared; /* the kernel, if `kernel` is one with short loops as straight code */
    qn_facts declared_facts;
    qn_planned planned; /* of the whole kernel */
    qn_piece *pieces;   /* NULL: the kernel is one function */
    char symbol[QN_DEBUG_NAME_BYTES];
    qn_debug *debug; /* NULL: no lines for debuggers */
    qn_generator *generator; /* of the thread */
    qn_diagnostics diagnostics;
    qn_emitted emitted;
    LLVMContextRef context;
    LLVMModuleRef module;
    const char *object; /* of the machine */
    size_t object_bytes;
    qn_text code;
} compilation;

/** Gives data to the caller's sink, if there is one. */
void qn__send(const qn_request *r, int what, const void *data, size_t n);
/** Each sends its text if the caller asked for it. */
void qn__send_key(const compilation *c);
void qn__send_plan(const compilation *c);
void qn__send_schedule(compilation *c);
void qn__send_estimate(compilation *c);
qn_status qn__send_llvm_and_asm(const compilation *c);
/** Whether passes are left out whose work grows faster than the code. */
bool qn__is_large_compile(const compilation *c);

#endif
