/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_accuracy.c: the largest errors of the mathematical functions, found in a bounded time. f32
 * of one argument: all 2^32 inputs; others: 10^9 random arguments (unit/math_rows.def says where).
 * A wider hardware type filters, double for f32 and long double for f64. MPFR decides each error
 * that may be the largest and, of f32 and of functions that claim correct rounding, each result
 * near a boundary of rounding.
 *
 *   math_accuracy [pattern|all] [seconds] [file|-] [points]
 *   math_accuracy hard
 *
 * A pattern names functions, with or without a dtype: cr_exp, 'cr_*', '*' followed by /f64. The
 * seconds are those of the whole run: each line has its share of them, and what it does not need is
 * left to those behind. Seconds that are left when all lines had their share are shared again by
 * lines that are incomplete. The file holds what was found; a later run continues where the file
 * ends, and with 0 seconds only prints it. It belongs to one build of the library, `-` is none.
 * `points` is how many random arguments a row has instead of 10^9. Prints a row of a Markdown table
 * for each function and dtype, and a last line: how many rows are complete. `hard`
 * checks unit/math_hard.def. Fails if an error is larger than the bound in math_rows.def, or if a
 * function that is rounded once by its bound gives a number that is not the nearest.
 *
 * One process on each processor that the program may use takes blocks of arguments until none or no
 * time is left.
 */
#define _GNU_SOURCE
#include "tests/math/math_accuracy.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 256, N = TRIAL_ELEMENTS };
#define RANDOM_POINTS 1e9

/* ---------------------------------------------------------------- the file */

/** Reads what earlier runs found; no file is an empty one. False if it is of another build. */
static bool read_file(const char *path, math_line *lines, int n_lines)
{
    FILE *file = fopen(path, "r");
    char build[128], name[64], dtype[8];
    math_found f = {0};
    int64_t next;
    if (!file)
        return errno == ENOENT;
    bool is_good = fscanf(file, "build %127s", build) == 1 && strcmp(build, QN_BUILD_ID) == 0;
    while (is_good &&
           fscanf(file, "%63s %7s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %la %la %la",
                  name, dtype, &next, &f.n, &f.n_wrong, &f.n_special, &f.worst, &f.at_x,
                  &f.at_y) == 9)
        for (int i = 0; i < n_lines; i++)
            if (strcmp(lines[i].row->name, name) == 0 &&
                strcmp(qn_dtype_name(lines[i].dtype), dtype) == 0) {
                lines[i].next = next;
                lines[i].found = f;
            }
    fclose(file);
    return is_good;
}

/** Replaces the file as a whole, so that a run that is ended leaves it complete. */
static bool write_file(const char *path, const math_line *lines, int n_lines)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.new", path);
    FILE *file = fopen(other, "w");
    if (!file)
        return false;
    fprintf(file, "build %s\n", QN_BUILD_ID);
    for (int i = 0; i < n_lines; i++) {
        const math_found *f = &lines[i].found;
        if (f->n)
            fprintf(file, "%s %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %a %a %a\n",
                    lines[i].row->name, qn_dtype_name(lines[i].dtype), lines[i].next, f->n,
                    f->n_wrong, f->n_special, f->worst, f->at_x, f->at_y);
    }
    return fclose(file) == 0 && rename(other, path) == 0;
}

/* ---------------------------------------------------------------- rows */

static bool is_complete(const math_line *l)
{
    return l->next >= l->n_blocks;
}

/** Whether nothing was found that the row of math_rows.def does not allow. */
static bool is_within_bound(const math_line *l)
{
    return l->found.worst <= l->row->most[l->dtype == QN_F64] && l->found.n_special == 0 &&
           !(qn__is_rounded(l->row, l->dtype) && l->found.n_wrong > 0);
}

/** A row of the table of docs/math.md, and the arguments whose results are wrong where there are
 * few of them. */
static void print_line(const math_line *l)
{
    const math_found *f = &l->found;
    bool is_all = qn__is_exhaustive(l->row, l->dtype) && is_complete(l);
    char count[32], at[64], wrong[32];
    snprintf(count, sizeof count, is_all ? "all" : "%.1e", (double)f->n);
    snprintf(at, sizeof at, l->row->arguments[1] ? "%a, %a" : "%a", f->at_x, f->at_y);
    bool is_few = f->n_wrong < 1000;
    snprintf(wrong, sizeof wrong, is_few ? "%.0f" : "%.2g %%",
             (is_few ? 1 : 100 / (double)f->n) * (double)f->n_wrong);
    printf("| `%s` | %s | %.5f | `%s` | %s | %s |\n", l->row->name, qn_dtype_name(l->dtype),
           f->worst, at, count, wrong);
    if (f->n_special)
        printf("# %s %s: %" PRId64 " infinities or NaN are wrong\n", l->row->name,
               qn_dtype_name(l->dtype), f->n_special);
    if (!is_within_bound(l))
        printf("# %s %s: the bound of math_rows.def is %g ulp\n", l->row->name,
               qn_dtype_name(l->dtype), l->row->most[l->dtype == QN_F64]);
    for (int i = 0;
         i < f->n_listed && (f->n_wrong <= MOST_WRONG || qn__is_rounded(l->row, l->dtype)); i++)
        printf("# %s %s: not correctly rounded: %a %a\n", l->row->name, qn_dtype_name(l->dtype),
               f->wrong[i][0], f->wrong[i][1]);
    fflush(stdout);
}

static bool is_wanted(const math_line *l, const char *pattern)
{
    char name[96];
    snprintf(name, sizeof name, "%s/%s", l->row->name, qn_dtype_name(l->dtype));
    return strcmp(pattern, "all") == 0 || fnmatch(pattern, l->row->name, 0) == 0 ||
           fnmatch(pattern, name, 0) == 0;
}

/** All rows that there can be, f32 before f64, with so many random arguments. */
static int list_lines(math_line *lines, double random_points)
{
    int n = 0;
    for (int d = 0; d < 2; d++)
        for (int i = 0; qn__math_row(i) && n < MOST_ROWS; i++) {
            const math_row *row = qn__math_row(i);
            int dtype = d ? QN_F64 : QN_F32;
            bool is_all = qn__is_exhaustive(row, dtype);
            int64_t points = is_all ? INT64_C(1) << 32 : (int64_t)random_points;
            if (row->most[d] >= 0)
                lines[n++] = (math_line){row, dtype, .n_blocks = (points + N - 1) / N};
        }
    return n;
}

/** Seconds that are left when all rows had their share are shared again if they are this many. */
#define LEAST_SECONDS 1.0

/** Searches incomplete rows until the time is over or all are complete. False if one failed. */
static bool search_lines(math_line **wanted, int n_wanted, double seconds, const char *path,
                         const math_line *lines, int n_lines)
{
    double end = qn__seconds_now() + seconds;
    bool is_good = true;
    int n_open = 1;
    while (is_good && n_open > 0 && end - qn__seconds_now() > LEAST_SECONDS) {
        n_open = 0;
        for (int i = 0; i < n_wanted; i++)
            n_open += !is_complete(wanted[i]);
        int n_left = n_open;
        for (int i = 0; i < n_wanted; i++) {
            if (is_complete(wanted[i]))
                continue;
            is_good &= qn__search_line(wanted[i], fmax(0, end - qn__seconds_now()) / n_left--);
            if (path && !write_file(path, lines, n_lines)) {
                fprintf(stderr, "math_accuracy: cannot write %s\n", path);
                return false;
            }
        }
    }
    return is_good;
}

int main(int argc, char **argv)
{
    static math_line lines[MOST_ROWS];
    math_line *wanted[MOST_ROWS];
    if (argc > 1 && strcmp(argv[1], "hard") == 0)
        return qn__check_hard();
    const char *pattern = argc > 1 ? argv[1] : "all";
    const char *path = argc > 3 && strcmp(argv[3], "-") != 0 ? argv[3] : NULL;
    double seconds = argc > 2 ? atof(argv[2]) : 60, points = argc > 4 ? atof(argv[4]) : 0;
    int n_lines = list_lines(lines, points >= 1 ? points : RANDOM_POINTS);
    int n_wanted = 0, n_complete = 0;
    if (path && !read_file(path, lines, n_lines)) {
        fprintf(stderr, "math_accuracy: %s is of another build: remove it, or name another\n",
                path);
        return 2;
    }
    for (int i = 0; i < n_lines; i++)
        if (is_wanted(&lines[i], pattern))
            wanted[n_wanted++] = &lines[i];
    puts("| function | dtype | largest error (ulp) | at | inputs | not correctly rounded |");
    puts("|---|---|---|---|---|---|");
    fflush(stdout);
    bool is_good = search_lines(wanted, n_wanted, seconds, path, lines, n_lines);
    for (int i = 0; i < n_wanted; i++) {
        n_complete += is_complete(wanted[i]);
        is_good &= is_within_bound(wanted[i]);
        if (wanted[i]->found.n)
            print_line(wanted[i]);
    }
    printf("# %d of %d rows are complete\n", n_complete, n_wanted);
    if (n_wanted == 0)
        fprintf(stderr, "math_accuracy: no function is called \"%s\"\n", pattern);
    return n_wanted == 0 || !is_good;
}
