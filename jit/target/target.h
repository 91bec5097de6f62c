/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h: the families of targets. A new one is a folder with a table of functions
 * (jit/lower/hooks.h), its line in target.c, and rows of properties in jit/facts/target.c.
 */
#ifndef QN_JIT_TARGET_TARGET_H
#define QN_JIT_TARGET_TARGET_H

#include "jit/lower/hooks.h"

extern const qn_hooks qn__x86_hooks, qn__nvptx_hooks, qn__aarch64_hooks;

/** NULL: the library was built without this family. */
const qn_hooks *qn__hooks_of(const qn_target *target);
/** Tells LLVM of all families. Once per process. */
void qn__hooks_initialize(void);

#endif
