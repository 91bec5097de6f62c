/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gdb.h: tells GDB about code, through GDB's JIT interface: each of our libraries has a list of its
 * own, the provider that of the orc loader, the other one that of the arena. LLVM's own
 * registration cannot be used: it looks its hook up among the process's global symbols, where a
 * provider opened RTLD_LOCAL has none.
 */
#ifndef QN_JIT_GDB_H
#define QN_JIT_GDB_H

#include "jit/jit.h"

/** Announces an object whose function `symbol` lies at `address`. The bytes are copied. NULL if it
 * cannot be announced, which is no error. Callers hold a lock of their own around this and
 * qn__gdb_forget. */
void *qn__gdb_announce(const void *object, size_t n, const char *symbol, uint64_t address);
/** Takes it back. NULL is ignored. */
void qn__gdb_forget(void *announced);

#endif
