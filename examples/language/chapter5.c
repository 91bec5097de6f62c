/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chapter5.c: a calculator for people. No first result waits for code where that can be avoided,
 * code is kept on disk, and commands show what became of an expression:
 *
 *   :kernel E    the kernels that E is computed by, as text
 *   :plan E      their plans
 *   :why E       what runs, and why
 *   :time E      the time of the first evaluation and of later ones
 *   :options T   options of launches, such as `executor=threads checks=none`; see docs/embedding.md
 */
#include "language.h"

#include <string.h>
#include <time.h>

static double now_seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* [time] */
static bool show_time(session *s, const char *text)
{
    s->n_launches = 0;
    const double begin = now_seconds();
    if (!session_run(s, text, false))
        return false;
    const double first = now_seconds() - begin;
    const int n_launches = s->n_launches;
    double best = first;
    for (int run = 0; run < 1000 && now_seconds() - begin < 0.5; run++) {
        const double start = now_seconds();
        if (!session_run(s, text, false))
            return false;
        best = now_seconds() - start < best ? now_seconds() - start : best;
    }
    printf("%d launches; first %.3f ms, then %.3f ms\n", n_launches, first * 1e3, best * 1e3);
    return true;
}
/* [end] */

static bool show(session *s, const char *text, unsigned what)
{
    s->shows = what;
    const bool is_good = session_run(s, text, true);
    s->shows = 0;
    return is_good;
}

/* If a line starts with a command, its text with spaces for the command, so that columns stay; else
 * NULL. */
static const char *text_of(const char *line, const char *command, char text[MAX_LINE + 1])
{
    const size_t n = strlen(command);
    if (strncmp(line, command, n) != 0 || (line[n] != ' ' && line[n] != 0) ||
        strlen(line) > MAX_LINE)
        return NULL;
    strcpy(text, line);
    memset(text, ' ', n);
    return text;
}

static bool command(session *s, const char *line)
{
    char text[MAX_LINE + 1];
    s->error[0] = 0;
    if (text_of(line, ":kernel", text))
        return show(s, text, SHOW_KERNEL);
    if (text_of(line, ":plan", text))
        return show(s, text, SHOW_PLAN);
    if (text_of(line, ":why", text))
        return show(s, text, SHOW_WHY);
    if (text_of(line, ":time", text))
        return show_time(s, text);
    if (text_of(line, ":options", text))
        return options_set(s, text, QN_COMPILE_NOW);
    return fail(s, (place){s->line, 1},
                "the commands are :kernel, :plan, :why, :time and :options");
}

/* [open] */
static bool open_context(session *s)
{
    return context_open(s, NULL) && options_set(s, "", QN_COMPILE_NOW);
}
/* [end] */

const engine chapter5 = {.title = "... for people",
                         .open = open_context,
                         .waits = waits_for_fusion,
                         .compute = compute_fused,
                         .command = command};
