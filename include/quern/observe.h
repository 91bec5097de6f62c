/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/observe.h: what a context tells of what it does. Included by quern.h; docs/observing.md is the guide.
 *
 * Everything here is off by default and then costs nothing: fields of qn_context_options, or environment variables, turn it on when
 * a context is made.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_OBSERVE_H)
#define QUERN_OBSERVE_H

/** Levels of the log: X(NAME, number, text). A context tells what is of its level or below. */
#define QN_LOG_LIST(X)                                                                             \
    X(WARNING, 1, "what makes launches slow, and what could not be used")                          \
    X(INFO, 2, "what is compiled or found on disk, and why")                                       \
    X(DETAIL, 3, "what is dropped from the cache")
/** QN_LOG_WARNING, ... */
enum {
#define QN_X(name, number, text) QN_LOG_##name = number,
    QN_LOG_LIST(QN_X)
#undef QN_X
    QN_LOG_NONE = 0
};

/** Is told a line of the log, without a line break; `line` is borrowed for the call. It is called on the threads that launch or
 *  release, and with QN_COMPILE_NOW on a thread of the library, maybe at the same time, and no lock is held. */
typedef void (*qn_log_hook)(void *arg, int32_t level, const char *line);

#endif
