/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h: threads of the library's own.
 */
#ifndef QN_RUNTIME_THREAD_H
#define QN_RUNTIME_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/** Starts a thread that blocks all signals, which are the host's threads' business. Its
 * floating-point environment is that of the caller. False if the system refuses. */
bool qn__thread_start(pthread_t *out, size_t stack_bytes, void *(*run)(void *), void *arg);

#endif
