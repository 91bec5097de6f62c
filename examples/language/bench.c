/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c: the time of one expression, from its text to its result, in each chapter and in C.
 */
#define _XOPEN_SOURCE 700
#include "language.h"
#include "quern/cache.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char expression[] = "sum(w * (A - m) * (A - m), 1)";

static double now_seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs a statement; ends the program where that fails. */
static void run(session *s, const char *text)
{
    s->line = 1;
    if (session_run(s, text, false))
        return;
    fprintf(stderr, "%s\n", s->error);
    exit(1);
}

/* A session of a chapter with A, m and w for n rows and columns; ends the program where that fails.
 */
static session *new_session(int chapter, int n)
{
    char lines[4][80];
    session *s = session_new(chapter_of(chapter), "bench", NULL);
    snprintf(lines[0], sizeof lines[0], "let A = reshape(iota(%d), %d, %d) / %d", n * n, n, n, n);
    snprintf(lines[1], sizeof lines[1], "let m = iota(%d) / 7", n);
    snprintf(lines[2], sizeof lines[2], "let w = 1 / (1 + iota(%d))", n);
    for (int i = 0; s && i < 3; i++)
        run(s, lines[i]);
    if (!s)
        exit(1);
    return s;
}

typedef void (*plain)(int64_t rows, int64_t columns, const double *A, const double *m,
                      const double *w, double *result);

/* What is measured: an expression in a session, or a function in C on its arrays. */
typedef struct work {
    session *s;
    plain f; /* NULL: the expression */
    int n;
    double *result;
} work;

static void do_work(const work *w)
{
    if (!w->f)
        run(w->s, expression);
    else
        w->f(w->n, w->n, session_variable(w->s, "A")->data, session_variable(w->s, "m")->data,
             session_variable(w->s, "w")->data, w->result);
}

/* Seconds of the work: the least of many batches, each so long that the clock does not matter. */
static double time_work(const work *w)
{
    double best = INFINITY;
    const double begin = now_seconds();
    for (int n = 1; best == INFINITY || now_seconds() - begin < 0.2;) {
        const double start = now_seconds();
        for (int i = 0; i < n; i++)
            do_work(w);
        const double seconds = now_seconds() - start;
        if (seconds < 50e-6)
            n *= 2;
        else if (seconds / n < best)
            best = seconds / n;
    }
    return best;
}

static void print_row(const char *what, const double seconds[2], const double first[2])
{
    printf("%-46s %10.1f us %6.1f x %10.2f us %6.2f x\n", what, seconds[0] * 1e6,
           first[0] / seconds[0], seconds[1] * 1e6, first[1] / seconds[1]);
}

/* Whether a chapter computes what C computes. */
static bool is_right(session *s, int n, const double *expected)
{
    char line[80];
    snprintf(line, sizeof line, "let r = %s", expression);
    run(s, line);
    const value *r = session_variable(s, "r");
    for (int i = 0; i < n; i++)
        if (!(fabs(r->data[i] - expected[i]) <= 1e-12 * fabs(expected[i])))
            return false;
    return true;
}

static int bench_chapters(int last)
{
    static const int sizes[2] = {1000, 10};
    double first[2] = {0}, seconds[2], in_c[2][2] = {{0}}, *result = calloc(1000, sizeof *result);
    int n_wrong = 0;
    if (!result)
        return 1;
    printf("%s, from the text to the result, one thread\n%-46s %21s %22s\n", expression, "",
           "1000 x 1000", "10 x 10");
    for (int chapter = 1; chapter <= last; chapter++) {
        char what[80];
        for (int i = 0; i < 2; i++) {
            session *s = new_session(chapter, sizes[i]);
            seconds[i] = time_work(&(work){.s = s});
            for (int c = 0; c < 2 && (chapter == last || c == 0); c++)
                in_c[c][i] = time_work(&(work){s, c ? plain_sums : plain_loop, sizes[i], result});
            n_wrong += !is_right(s, sizes[i], result);
            first[i] = chapter == 1 ? seconds[i] : first[i];
            session_free(s);
        }
        snprintf(what, sizeof what, "%d: %s", chapter, chapter_of(chapter)->title);
        print_row(what, seconds, first);
    }
    print_row("a loop in C", in_c[0], first);
    print_row("32 sums in C", in_c[1], first);
    free(result);
    return n_wrong;
}

/* ---------------------------------------------------------------- first results */

static double time_first(int chapter, const char *options, int n)
{
    session *s = new_session(chapter, n);
    if (!options_set(s, options, QN_COMPILE_NOW))
        exit(1);
    const double begin = now_seconds();
    run(s, expression);
    const double seconds = now_seconds() - begin;
    session_free(s);
    return seconds;
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
    time_first(4, "compile=wait", 11); /* loads the code generator */
    printf("\nthe first result, 10 x 10\n");
    printf("%-46s %10.2f ms\n", "4: compiled", time_first(4, "compile=wait", 10) * 1e3);
    printf("%-46s %10.2f ms\n", "5: now, compiled in the background", time_first(5, "", 10) * 1e3);
    time_first(5, "compile=wait", 10);
    printf("%-46s %10.2f ms\n", "5: code on disk", time_first(5, "compile=wait", 10) * 1e3);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void print_processor(void)
{
    char line[200];
    FILE *in = fopen("/proc/cpuinfo", "r");
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            printf("processor%s", strchr(line, ':'));
            break;
        }
    if (in)
        fclose(in);
}

int bench(int chapter)
{
    print_processor();
    const int n_wrong = bench_chapters(chapter);
    if (chapter == 5)
        bench_first();
    if (n_wrong)
        printf("%d results are wrong\n", n_wrong);
    return n_wrong > 0;
}
