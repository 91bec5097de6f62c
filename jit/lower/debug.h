/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug.h: line numbers for debuggers, for requests that name a file of the kernel's text. Without
 * one all of this does nothing.
 */
#ifndef QN_JIT_LLVM_DEBUG_H
#define QN_JIT_LLVM_DEBUG_H

#include "jit/jit.h"

#include <llvm-c/Core.h>

struct lower;

/** Debug information of a module: the file of a kernel's text, and a name for its functions, which
 * is borrowed. */
typedef struct qn_debug qn_debug;
/** NULL without memory: the code has no lines then. */
qn_debug *qn__debug_begin(LLVMModuleRef module, const qn_kernel *k, const char *path,
                          const char *name);
/** Completes the module. NULL is ignored. */
void qn__debug_end(qn_debug *d);
/** The function that was just begun gets a line, as do instructions from now on. */
void qn__debug_function(struct lower *g);
/** Instructions from now on are those of instruction i of the kernel. */
void qn__debug_at(struct lower *g, uint32_t i);

#endif
