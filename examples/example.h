/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.h: what the numbered examples share: an end with a message where a call fails that must
 * not, a check of results, and a clock. A program that embeds Quern would handle errors in its own
 * way instead.
 */
#ifndef QUERN_EXAMPLE_H
#define QUERN_EXAMPLE_H

#include "quern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/** Ends the program with the library's message if a call failed. */
static inline void must(qn_status status, const qn_error *err)
{
    if (status == QN_OK)
        return;
    fprintf(stderr, "failed: %s: %s\n", qn_status_name(err->status), err->message);
    exit(1);
}

/** Prints a check and returns 1 if it failed, 0 if it holds; the sum is the exit status. */
static inline int check(bool holds, const char *what)
{
    printf("  %-6s %s\n", holds ? "ok" : "FAILED", what);
    return !holds;
}

/** Milliseconds of a clock. */
static inline double now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
