/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c: threads of the library's own, see thread.h.
 */
#define _GNU_SOURCE
#include "runtime/thread.h"

#include <signal.h>

enum { GUARD_BYTES = 64 << 10 };

bool qn__thread_start(pthread_t *out, size_t stack_bytes, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, old;
    if (pthread_attr_init(&attr) != 0)
        return false;
    sigfillset(&all);
    bool is_started = pthread_attr_setstacksize(&attr, stack_bytes) == 0 &&
                      pthread_attr_setguardsize(&attr, GUARD_BYTES) == 0 &&
                      pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    if (is_started) {
        is_started = pthread_create(out, &attr, run, arg) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    return is_started;
}
