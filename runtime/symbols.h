/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.h: tells profilers and debuggers where code is and what it is called, for contexts with
 * the option `symbols`. Code of the arena only: LLVM tells of its own. The caller holds the lock of
 * the context.
 */
#ifndef QN_RUNTIME_SYMBOLS_H
#define QN_RUNTIME_SYMBOLS_H

#include "ir/ir.h"

/** All-zero: nobody is told. */
typedef struct qn_symbols {
    int dump;         /* descriptor of the jitdump; 0: there is none */
    void *dump_page;  /* mapped so that perf sees the file */
} qn_symbols;

/** Opens what the option asks for; if that cannot be, log and history say so. */
void qn__symbols_open(qn_context *c);
void qn__symbols_close(qn_context *c);
/** After fork, in the child: the jitdump is the parent's. */
void qn__symbols_forked(qn_context *c);
/** Code of a compile is where it runs. */
struct qn_compiled;
void qn__symbols_add(qn_context *c, qn_code *f, const struct qn_compiled *code);
/** It will be gone. */
void qn__symbols_drop(qn_code *f);

/** For GDB: writes the text of a kernel to a file in dump_dir unless it is there, and gives its
 * path, and the name that its functions have: at most QN_DEBUG_NAME_BYTES. False if GDB is not
 * told, or the file cannot be written. The lock is not held (runtime/source.c). */
void qn__source_name(const qn_kernel *k, char *name);
bool qn__symbols_source(qn_context *c, const qn_kernel *k, char *name, qn_text *path);

#endif
