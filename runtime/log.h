/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: lines of the log for the host, or for standard error where the environment asks for that
 * (runtime/env.c). A line is made only if somebody listens at its level.
 */
#ifndef QN_RUNTIME_LOG_H
#define QN_RUNTIME_LOG_H

#include "jit/jit.h"

/** Tells a line. No lock is held. */
void qn__log(const qn_context *c, int32_t level, const char *line);
/** Tells what is known of a machine, as plans take it. */
void qn__log_machine(const qn_context *c, const qn_machine *read, int isa);
/** Tells `kernel "NAME" ...` with the rest as printf makes it; more than QN_LOG_LINE_BYTES are cut.
 */
enum { QN_LOG_LINE_BYTES = 1024 };
void qn__log_kernel(const qn_context *c, int32_t level, const char *kernel, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
