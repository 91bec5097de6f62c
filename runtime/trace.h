/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h: a file of what happened when, for chrome://tracing and Perfetto, written by contexts
 * with the option `trace`. Times are those of CLOCK_MONOTONIC. The lock of the context guards the
 * text that waits to be written; the functions below take it.
 */
#ifndef QN_RUNTIME_TRACE_H
#define QN_RUNTIME_TRACE_H

#include "ir/ir.h"

/** All-zero is a trace that is off. */
typedef struct qn_trace {
    bool is_on;
    int fd;
    qn_text text; /* not yet written */
} qn_trace;

/** Opens the file of the option; if that cannot be, log and history say so. */
void qn__trace_open(qn_context *c);
/** Adds a span of this thread. The arguments are members of a JSON object as printf makes them; ""
 * for none. */
void qn__trace_span(qn_context *c, const char *category, const char *name, int64_t start_ns,
                    int64_t ns, const char *arguments, ...) __attribute__((format(printf, 6, 7)));
/** Adds a span of work on a stream of a GPU, which Perfetto shows as a process with its streams as
 * threads. */
void qn__trace_gpu(qn_context *c, int device, int stream, const char *name, int64_t start_ns,
                   int64_t ns, int64_t n_iterations);
/** Gives a stream of a GPU its name. */
void qn__trace_stream(qn_context *c, int device, int stream);
/** Gives this thread a name. */
void qn__trace_thread(qn_context *c, const char *name);
/** Writes the rest, and closes the file. */
void qn__trace_close(qn_context *c);
/** After fork, in the child: the file is the parent's. The lock is held. */
void qn__trace_forked(qn_context *c);

#endif
