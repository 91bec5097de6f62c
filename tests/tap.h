/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h: a small TAP 13 producer. One program, one plan, printed at the end by tap_done. Every line
 * is flushed, so that a crash shows the last test. main returns tap_done(): non-zero if and only if
 * something failed.
 */
#ifndef QN_TESTS_TAP_H
#define QN_TESTS_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
    int n, failed;
} tap_state;

static inline void tap_vline(const char *head, const char *format, va_list ap)
{
    fputs(head, stdout);
    vprintf(format, ap);
    putchar('\n');
    fflush(stdout);
}

/** A comment line. */
__attribute__((format(printf, 1, 2))) static inline void tap_note(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    tap_vline("# ", format, ap);
    va_end(ap);
}

/** One test point; returns `passed`. */
__attribute__((format(printf, 2, 3))) static inline bool tap_ok(bool passed, const char *format,
                                                                ...)
{
    if (tap_state.n++ == 0)
        puts("TAP version 13");
    tap_state.failed += !passed;
    char head[32];
    snprintf(head, sizeof head, "%s %d - ", passed ? "ok" : "not ok", tap_state.n);
    va_list ap;
    va_start(ap, format);
    tap_vline(head, format, ap);
    va_end(ap);
    return passed;
}

static inline bool tap_is_int(int64_t found, int64_t expected, const char *what)
{
    bool passed = tap_ok(found == expected, "%s", what);
    if (!passed)
        tap_note("found %" PRId64 ", expected %" PRId64, found, expected);
    return passed;
}

static inline bool tap_is_str(const char *found, const char *expected, const char *what)
{
    bool passed = tap_ok(found && expected && strcmp(found, expected) == 0, "%s", what);
    if (!passed)
        tap_note("found \"%s\", expected \"%s\"", found ? found : "(null)",
                 expected ? expected : "(null)");
    return passed;
}

/** Whether `text` contains `part`; for messages. */
static inline bool tap_contains(const char *text, const char *part, const char *what)
{
    bool passed = tap_ok(text && part && strstr(text, part), "%s", what);
    if (!passed)
        tap_note("\"%s\" does not contain \"%s\"", text ? text : "(null)", part ? part : "(null)");
    return passed;
}

/** One skipped test point with its reason. */
static inline void tap_skip(const char *reason)
{
    if (tap_state.n++ == 0)
        puts("TAP version 13");
    printf("ok %d # SKIP %s\n", tap_state.n, reason);
    fflush(stdout);
}

/** Prints the plan; the exit status of the program. */
static inline int tap_done(void)
{
    printf("1..%d\n", tap_state.n);
    fflush(stdout);
    return tap_state.failed != 0;
}

#endif
