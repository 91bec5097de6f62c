/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h: portable code that another process runs: for a bundle (ahead.c) or an object file
 * (object.c).
 */
#ifndef QN_RUNTIME_AHEAD_H
#define QN_RUNTIME_AHEAD_H

#include "runtime/tier.h"

/** What is done with code. */
typedef struct qn_ahead_use {
    /** Changes facts before the code is compiled, or refuses them. They are portable. */
    qn_status (*prepare)(void *arg, const qn_launch_state *l, qn_facts *facts, qn_error *err);
    /** Takes the code: `f` has kernel, key, facts, info and plan, and no entry; both live while it
     * lasts. */
    qn_status (*take)(void *arg, const qn_code *f, const qn_compiled *code, qn_error *err);
    void *arg;
} qn_ahead_use;

/** Compiles a kernel for arguments, whatever the processor is, and calls take. `args` may be NULL
 * if the options ask for generic code. */
qn_status qn__ahead_make(const char *who, qn_context *c, const qn_kernel *k, int n,
                         const qn_arg *args, const qn_options *o, const qn_ahead_use *use,
                         qn_error *err);

#endif
