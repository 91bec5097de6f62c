/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c: one line on the terminal of standard error that says what takes so long. The line
 * takes the place of the one before, and is gone when the work is done. Nothing is written where
 * standard error is no terminal.
 */
#define _POSIX_C_SOURCE 200809L
#include "tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A terminal that can clear a line. */
static bool has_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_clear(void)
{
    if (has_terminal())
        fputs("\r\033[K", stderr);
}

void progress_show(const tool_manner *how, const char *format, ...)
{
    if (how->quiet || !has_terminal())
        return;
    char text[80]; /* a longer line would wrap, and could not be cleared */
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}

double now_ns(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
