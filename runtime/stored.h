/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.h: code of a context in the cache on disk, and back. What is found replaces a compile, so
 * the code generator need not be loaded; what cannot be used is a miss, which counters, history and
 * log tell of. The lock of the context is not held.
 */
#ifndef QN_RUNTIME_STORED_H
#define QN_RUNTIME_STORED_H

#include "runtime/context.h"

/** Looks for the code of a function that is being built. Where it was found, for the history, or
 * NULL. */
const char *qn__stored_find(qn_context *c, const qn_code *f, qn_compiled *out);
/** Keeps the code of a function that was compiled and is ready: `code` is its blob or PTX,
 * `descent` what its plan gave up. */
void qn__stored_keep(qn_context *c, const qn_code *f, const qn_text *code,
                     const qn_descent *descent);

/** Writes that code as an entry of any folder; `f` has kernel, key, facts, info and plan. False:
 * `why` says what failed. */
bool qn__stored_write(qn_context *c, qn_disk *disk, const qn_code *f, const qn_text *code,
                      const qn_descent *descent, qn_error *why);

/* ---------------------------------------------------------------- shared with choice.c */

/** Whether code of this function is kept at all: that of the orc loader cannot be, and tests change
 * what a compile may cost. */
bool qn__is_storable(const qn_context *c, const qn_code *f);
/** Looks in one folder, and notes trouble. The caller releases *bytes in any case. */
bool qn__stored_look(qn_context *c, qn_disk *disk, const qn_code *f, const qn_stored *wanted,
                     qn_text *bytes, qn_stored *out);
/** Notes that an entry was refused, or, once, that a folder cannot be used. */
void qn__stored_trouble(qn_context *c, qn_disk *disk, const qn_code *f, int result,
                        const qn_error *why);
/** Writes an entry into a folder. */
bool qn__stored_write_entry(qn_disk *disk, const qn_stored *e, qn_error *why);

/* ---------------------------------------------------------------- cubins */

/** Who assembled PTX, and for what. */
typedef struct qn_assembler {
    int driver;     /* CUDA version of the driver */
    int capability; /* of the GPU */
} qn_assembler;
/** Looks for the cubin that an assembler made of the PTX of a function; false: there is none on
 * disk. */
bool qn__stored_find_cubin(qn_context *c, const qn_code *f, qn_assembler by, qn_text *out);
/** Keeps such a cubin, which the driver has taken. */
void qn__stored_keep_cubin(qn_context *c, const qn_code *f, qn_assembler by, const qn_text *cubin);

#endif
