/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c: the time of one expression, from its text to its result, in each chapter and in C. What
 * fails ends the program.
 */
#define _XOPEN_SOURCE 700
#include "language.h"

#include <ftw.h>
#include <stdarg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char expression[] = "sum(w * (A - m) * (A - m), 1)";

static void run(session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void run(session *s, const char *format, ...)
{
    char line[200];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (s && session_run(s, line, false))
        return;
    fprintf(stderr, "%s\n", s ? s->error : "out of memory");
    exit(1);
}

/* A session of a chapter with A, m and w for n rows and columns. */
static session *new_session(int chapter, int n)
{
    session *s = session_new(chapter_of(chapter), "bench", NULL);
    run(s, "let A = reshape(iota(%d), %d, %d) / %d", n * n, n, n, n);
    run(s, "let m = iota(%d) / 7", n);
    run(s, "let w = 1 / (1 + iota(%d))", n);
    return s;
}

/* What is measured: the expression in a session, or a function in C on its arrays. */
typedef struct work {
    session *s;
    void (*f)(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
              double *result);
    int n;
    double *result;
} work;

static void do_work(const work *w)
{
    if (w->f)
        w->f(w->n, w->n, session_variable(w->s, "A")->data, session_variable(w->s, "m")->data,
             session_variable(w->s, "w")->data, w->result);
    else
        run(w->s, "%s", expression);
}

/* Time of the processor: other programs that it runs do not count. */
static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of the work: the least of many batches, each so long that the clock does not matter. */
static double time_work(const work *w)
{
    double best = INFINITY;
    const double begin = processor_seconds();
    for (int n = 1; best == INFINITY || processor_seconds() - begin < 0.2;) {
        const double start = processor_seconds();
        for (int i = 0; i < n; i++)
            do_work(w);
        const double seconds = processor_seconds() - start;
        if (seconds < 50e-6)
            n *= 2;
        else if (seconds / n < best)
            best = seconds / n;
    }
    return best;
}

/* Whether a chapter computes what C computes. */
static bool is_right(session *s, int n, const double *expected)
{
    run(s, "let r = %s", expression);
    const double *r = session_variable(s, "r")->data;
    int i = 0;
    while (i < n && fabs(r[i] - expected[i]) <= 1e-12 * fabs(expected[i]))
        i++;
    return i == n;
}

/* Measures a chapter, or a function in C, and prints a row; returns the number of wrong results. */
static int bench_row(const char *what, int chapter, const work *in_c, double first[2])
{
    static const int sizes[2] = {1000, 10};
    static double result[1000];
    double seconds[2];
    int n_wrong = 0;
    for (int i = 0; i < 2; i++) {
        session *s = new_session(chapter, sizes[i]);
        const work w = {s, in_c ? in_c->f : NULL, sizes[i], result};
        seconds[i] = time_work(&w);
        plain_loop(sizes[i], sizes[i], session_variable(s, "A")->data,
                   session_variable(s, "m")->data, session_variable(s, "w")->data, result);
        n_wrong += !is_right(s, sizes[i], result);
        first[i] = first[i] > 0 ? first[i] : seconds[i];
        session_free(s);
    }
    printf("%-46s %10.1f us %6.1f x %10.2f us %6.2f x\n", what, seconds[0] * 1e6,
           first[0] / seconds[0], seconds[1] * 1e6, first[1] / seconds[1]);
    return n_wrong;
}

/* ---------------------------------------------------------------- first results */

static double time_first(int chapter, const char *options, int n)
{
    session *s = new_session(chapter, n);
    if (*options)
        run(s, "%s", options);
    const double begin = now_seconds();
    run(s, "%s", expression);
    const double seconds = now_seconds() - begin;
    session_free(s);
    return seconds * 1e3;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static void bench_first(void)
{
    char folder[] = "/tmp/language-XXXXXX";
    if (!mkdtemp(folder))
        return;
    setenv("QUERN_CACHE", folder, 1);
    time_first(4, "", 11); /* loads the code generator */
    printf("\nthe first result, 10 x 10\n");
    printf("%-46s %10.2f ms\n", "4: compiled", time_first(4, "", 10));
    printf("%-46s %10.2f ms\n", "5: now, compiled in the background", time_first(5, "", 10));
    time_first(5, ":options compile=wait", 10);
    printf("%-46s %10.2f ms\n", "5: code on disk", time_first(5, ":options compile=wait", 10));
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int bench(int chapter)
{
    const work loop = {.f = plain_loop}, sums = {.f = plain_sums};
    double first[2] = {0};
    int n_wrong = 0;
    char what[80];
    printf("%s, from the text to the result, processor time of one thread\n%-46s %21s %22s\n",
           expression, "", "1000 x 1000", "10 x 10");
    for (int c = 1; c <= chapter; c++) {
        snprintf(what, sizeof what, "%d: %s", c, chapter_of(c)->title);
        n_wrong += bench_row(what, c, NULL, first);
    }
    n_wrong += bench_row("a loop in C", chapter, &loop, first) +
               bench_row("32 sums in C", chapter, &sums, first);
    if (chapter == 5)
        bench_first();
    if (n_wrong)
        printf("%d results are wrong\n", n_wrong);
    return n_wrong > 0;
}
