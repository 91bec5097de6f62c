/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the program of each chapter, which is the macro CHAPTER.
 *
 *   languageN            reads statements, prints their values, and goes on after errors
 *   languageN FILE       runs a file and ends at the first error, with status 1
 *   languageN --echo     as without arguments, and prints each line behind "> " before its result
 *   languageN --bench    measures chapters 1 to N on one expression
 */
#define _POSIX_C_SOURCE 200809L
#include "language.h"

#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* [interrupt] */
static volatile int32_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}
/* [end] */

/* Reads a line without its end. What is beyond the longest line is dropped; then the line is one
 * too long. */
static bool read_line(FILE *in, char line[MAX_LINE + 2])
{
    if (!fgets(line, MAX_LINE + 2, in))
        return false;
    size_t n = strlen(line);
    if (n == MAX_LINE + 1 && line[n - 1] != '\n')
        for (int c = getc(in); c != EOF && c != '\n';)
            c = getc(in);
    if (n > 0 && line[n - 1] == '\n')
        line[n - 1] = 0;
    return true;
}

static void print_error(FILE *to, const session *s, const char *line)
{
    if (s->error_at.line == s->line && s->error_at.column > 0)
        fprintf(to, "  %s\n  %*s\n", line, s->error_at.column, "^");
    fprintf(to, "%s:%d:%d: %s\n", s->file, s->error_at.line, s->error_at.column, s->error);
}

static bool run_line(session *s, const char *line)
{
    is_interrupted = 0;
    s->line++;
    return session_run(s, line, true);
}

/* Runs all lines of a stream; returns the number of errors. */
static int run_all(session *s, FILE *in, bool is_script, bool echoes)
{
    const bool prompts = !is_script && !echoes && isatty(fileno(in));
    char line[MAX_LINE + 2];
    int n_errors = 0;
    for (;;) {
        if (prompts)
            printf("> ");
        fflush(stdout);
        if ((is_script && n_errors) || !read_line(in, line))
            return n_errors;
        if (echoes)
            printf("> %s\n", line);
        if (run_line(s, line))
            continue;
        print_error(is_script ? stderr : stdout, s, line);
        n_errors++;
    }
}

int main(int argc, char **argv)
{
    /* Memory of arrays is used again: fresh memory costs more than most operations. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const bool echoes = argc == 2 && strcmp(argv[1], "--echo") == 0;
    if (argc == 2 && strcmp(argv[1], "--bench") == 0)
        return bench(CHAPTER);
    if (argc > 2 || (argc == 2 && argv[1][0] == '-' && !echoes)) {
        fprintf(stderr, "usage: %s [--echo | --bench | FILE]\n", argv[0]);
        return 2;
    }
    const bool is_script = argc == 2 && !echoes;
    FILE *in = is_script ? fopen(argv[1], "r") : stdin;
    if (!in) {
        fprintf(stderr, "%s: cannot read %s\n", argv[0], argv[1]);
        return 1;
    }
    session *s = session_new(chapter_of(CHAPTER), is_script ? argv[1] : "input", &is_interrupted);
    if (!s)
        return 1;
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    if (CHAPTER == 5)
        sigaction(SIGINT, &action, NULL);
    const int n_errors = run_all(s, in, is_script, echoes);
    session_free(s);
    if (is_script)
        fclose(in);
    return is_script && n_errors > 0;
}
