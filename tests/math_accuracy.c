/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_accuracy.c: the largest errors of the mathematical functions, found in a bounded time. f32 of one argument: all
 * inputs, if time allows; others: random arguments (unit/math_rows.def says where). A wider hardware type filters, double for
 * f32 and long double for f64, and MPFR decides where the wider type cannot: near a boundary of rounding, and at each error
 * that may be the largest. Prints a line a function and dtype.
 *
 *   math_accuracy [function|all] [seconds a line] [first seed]
 *
 * One process on each processor that the program may use takes its part of the inputs, and writes what it found into a pipe.
 */
#define _GNU_SOURCE
#include "tests/math_trial.h"
#include "tests/unit/launch.h"

#include <math.h>
#include <mpfr.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DIGITS = 300, MOST_PROCESSES = 64, MOST_WRONG = 64 };

/* Relative errors of the references, generously: glibc's, of its double and of its long double functions. */
static const double filter_error[] = {0x1p-48, 0x1p-60};

#define QN_MATH_EXACT(name, statements)                                                            \
    static void name##_exact(mpfr_t *r, mpfr_t x, mpfr_t y)                                        \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        statements;                                                                                \
    }
#define N MPFR_RNDN
#include "tests/math_exact.def"
#undef N
#undef QN_MATH_EXACT

static const struct exact {
    const char *name;
    void (*f)(mpfr_t *r, mpfr_t x, mpfr_t y);
} exacts[] = {
#define QN_MATH_EXACT(name, statements) {#name, name##_exact},
#include "tests/math_exact.def"
#undef QN_MATH_EXACT
};

/** What one process found. */
typedef struct found {
    int64_t n, n_wrong;          /* results; those that are not correctly rounded */
    int64_t n_undecided;         /* results that neither type decides */
    int64_t n_special;           /* infinities and NaN that are not what they should be */
    double worst, at_x, at_y;    /* ulp */
    double wrong[MOST_WRONG][2]; /* arguments that are not correctly rounded, the first ones */
} found;

typedef struct search {
    math_trial *t;
    const struct exact *exact; /* NULL: MPFR has no such function, and the wider type decides all */
    mpfr_t x, y, r[MOST_RESULTS], rest;
    found *found;
} search;

static const struct exact *find_exact(const char *name)
{
    if (strncmp(name, "cr_", 3) == 0)
        name += 3;
    for (size_t i = 0; i < sizeof exacts / sizeof exacts[0]; i++)
        if (strcmp(exacts[i].name, name) == 0)
            return &exacts[i];
    return NULL;
}

/** MPFR's number rounded once to the dtype, subnormal results too. */
static double nearest_of(mpfr_t value, int dtype)
{
    return dtype == QN_F32 ? (double)mpfr_get_flt(value, MPFR_RNDN) : mpfr_get_d(value, MPFR_RNDN);
}

/** Asks MPFR about result a at (x, y), and counts its error. */
static void decide(search *s, double x, double y, int a, double result)
{
    found *f = s->found;
    mpfr_set_d(s->x, x, MPFR_RNDN);
    mpfr_set_d(s->y, y, MPFR_RNDN);
    s->exact->f(s->r, s->x, s->y);
    double nearest = nearest_of(s->r[a], s->t->dtype);
    if (nearest != result && !(isnan(nearest) && isnan(result)) && f->n_wrong++ < MOST_WRONG) {
        f->wrong[f->n_wrong - 1][0] = x;
        f->wrong[f->n_wrong - 1][1] = y;
    }
    if (isnan(nearest) || isinf(nearest) || isinf(result) || isnan(result)) {
        f->n_special += !(nearest == result || (isnan(nearest) && isnan(result)));
        return;
    }
    mpfr_d_sub(s->rest, result, s->r[a], MPFR_RNDN);
    double ulp = qn__ulp_of(mpfr_get_ld(s->r[a], MPFR_RNDN), s->t->row->least, s->t->dtype);
    mpfr_div_d(s->rest, s->rest, ulp, MPFR_RNDN); /* before it is rounded to double: it may be far below its least number */
    double error = fabs(mpfr_get_d(s->rest, MPFR_RNDN));
    if (error > f->worst) {
        f->worst = error;
        f->at_x = x;
        f->at_y = y;
    }
}

/** Counts the error of result a, which the wider type knows as `wide`. */
static void judge(search *s, double x, double y, int a, double result, long double wide)
{
    found *f = s->found;
    int dtype = s->t->dtype;
    long double margin = fmaxl(fabsl(wide), s->t->row->least) * filter_error[dtype == QN_F64];
    double below = dtype == QN_F32 ? (double)(float)(wide - margin) : (double)(wide - margin);
    double above = dtype == QN_F32 ? (double)(float)(wide + margin) : (double)(wide + margin);
    f->n++;
    if ((isnan(wide) && isnan(result)) || (below == above && result == below && f->worst > 0.499)) /* surely below 1/2 */
        return;
    double ulp = qn__ulp_of(wide, s->t->row->least, dtype);
    double error = (double)(fabsl(result - wide) / ulp), doubt = (double)(margin / ulp);
    bool is_decided = below == above && isfinite(below) && isfinite(result);
    if (is_decided && result == below && error + doubt <= f->worst)
        return;
    if (is_decided && error + doubt <= f->worst) {
        f->n_wrong++; /* and no new maximum */
        return;
    }
    if (below == above && result == below && isinf(below))
        return;
    if (s->exact) {
        decide(s, x, y, a, result);
        return;
    }
    f->n_undecided += below != above;
    f->n_wrong += below == above && result != below;
    if (isnan(wide) || isinf(below) || isinf(result)) {
        f->n_special += result != below;
    } else if (error > f->worst) {
        f->worst = error;
        f->at_x = x;
        f->at_y = y;
    }
}

static void judge_all(search *s)
{
    const math_trial *t = s->t;
    for (int i = 0; i < TRIAL_ELEMENTS; i++) {
        double x = qn__trial_get(&t->views[0], i), y = t->n_arguments > 1 ? qn__trial_get(&t->views[1], i) : 0;
        double near[MOST_RESULTS];
        long double wide[MOST_RESULTS];
        if (t->dtype == QN_F64)
            t->row->f64(x, y, wide);
        else
            t->row->f32(x, y, near);
        for (int a = 0; a < t->n_results; a++) {
            double result = qn__trial_get(&t->views[t->n_arguments + a], i);
            judge(s, x, y, a, result, t->dtype == QN_F64 ? wide[a] : near[a]);
        }
    }
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** All f32 inputs whose high 16 bits are the block's, blocks in an order that spreads over all numbers. */
static void fill_patterns(const math_trial *t, uint32_t block)
{
    uint32_t high = (block * 40503u & 0xffff) << 16;
    for (uint32_t i = 0; i < TRIAL_ELEMENTS; i++) {
        uint32_t bits = high | i;
        memcpy((float *)t->views[0].data + i, &bits, sizeof bits);
    }
}

/** Part `part` of `n_parts` of a search of so many seconds. */
static void search_part(const math_row *row, int dtype, int part, int n_parts, double seconds, uint64_t seed, found *out)
{
    qn_context *c = context_with(&(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 1});
    math_trial t = qn__trial_begin(c, row, dtype);
    search s = {.t = &t, .exact = find_exact(row->name), .found = out};
    double end = seconds_now() + seconds;
    bool is_all = dtype == QN_F32 && strcmp(row->arguments, "f") == 0;
    uint64_t state = seed * 1000003 + (uint64_t)part;
    mpfr_inits2(DIGITS, s.x, s.y, s.r[0], s.r[1], s.rest, (mpfr_ptr)0);
    for (uint32_t block = (uint32_t)part; seconds_now() < end && !(is_all && block >= 1 << 16); block += (uint32_t)n_parts) {
        if (is_all)
            fill_patterns(&t, block);
        for (int i = 0; i < TRIAL_ELEMENTS && !is_all; i++)
            for (int a = 0; a < t.n_arguments; a++)
                qn__trial_set(&t.views[a], i, qn__trial_draw(&row->range[a], dtype, &state));
        qn__trial_compute(&t);
        judge_all(&s);
    }
    mpfr_clears(s.x, s.y, s.r[0], s.r[1], s.rest, (mpfr_ptr)0);
    qn__trial_end(&t);
    qn_context_release(c);
}

static void add_found(found *sum, const found *part)
{
    for (int64_t i = 0; i < part->n_wrong && i < MOST_WRONG && sum->n_wrong + i < MOST_WRONG; i++)
        memcpy(sum->wrong[sum->n_wrong + i], part->wrong[i], sizeof part->wrong[i]);
    sum->n += part->n;
    sum->n_wrong += part->n_wrong;
    sum->n_undecided += part->n_undecided;
    sum->n_special += part->n_special;
    if (part->worst > sum->worst) {
        sum->worst = part->worst;
        sum->at_x = part->at_x;
        sum->at_y = part->at_y;
    }
}

/** Starts the processes and adds what they found; false if one failed. */
static bool search_row(const math_row *row, int dtype, double seconds, uint64_t seed, found *sum)
{
    cpu_set_t processors;
    int n = sched_getaffinity(0, sizeof processors, &processors) ? 1 : CPU_COUNT(&processors), pipes[MOST_PROCESSES][2];
    pid_t children[MOST_PROCESSES];
    bool is_good = true;
    n = n > MOST_PROCESSES ? MOST_PROCESSES : n;
    for (int i = 0; i < n; i++) {
        if (pipe(pipes[i]) || (children[i] = fork()) < 0)
            return false;
        if (children[i] == 0) {
            found part = {0};
            search_part(row, dtype, i, n, seconds, seed, &part);
            _exit(write(pipes[i][1], &part, sizeof part) == (ssize_t)sizeof part ? 0 : 1);
        }
        close(pipes[i][1]);
    }
    for (int i = 0; i < n; i++) {
        found part;
        int status = 1;
        if (read(pipes[i][0], &part, sizeof part) == (ssize_t)sizeof part)
            add_found(sum, &part);
        close(pipes[i][0]);
        is_good &= waitpid(children[i], &status, 0) == children[i] && status == 0;
    }
    return is_good;
}

/** A line of the table of docs/math.md. */
static void print_found(const math_row *row, int dtype, const found *f)
{
    bool is_all = dtype == QN_F32 && strcmp(row->arguments, "f") == 0 && f->n == (int64_t)strlen(row->results) << 32;
    char count[32], at[64];
    snprintf(count, sizeof count, is_all ? "all" : "%.1e", (double)f->n);
    snprintf(at, sizeof at, row->arguments[1] ? "%a, %a" : "%a", f->at_x, f->at_y);
    printf("| `%s` | %s | %.5f | `%s` | %s | %" PRId64 " |\n", row->name, qn_dtype_name(dtype), f->worst, at, count, f->n_wrong);
    if (f->n_special)
        printf("# %" PRId64 " infinities or NaN are wrong\n", f->n_special);
    if (f->n_undecided)
        printf("# %" PRId64 " are undecided: MPFR has no such function\n", f->n_undecided);
    for (int64_t i = 0; i < f->n_wrong && f->n_wrong <= MOST_WRONG && find_exact(row->name); i++)
        printf("# not correctly rounded: %a %a\n", f->wrong[i][0], f->wrong[i][1]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 && strcmp(argv[1], "all") != 0 ? argv[1] : NULL;
    double seconds = argc > 2 ? atof(argv[2]) : 60;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int n_lines = 0, n_failed = 0;
    printf("| function | dtype | largest error (ulp) | at | inputs | not correctly rounded |\n|---|---|---|---|---|---|\n");
    fflush(stdout);
    for (int i = 0; qn__math_row(i); i++) {
        const math_row *row = qn__math_row(i);
        for (int d = 0; d < 2; d++) {
            found sum = {0};
            int dtype = d ? QN_F64 : QN_F32;
            if ((only && strcmp(only, row->name) != 0) || row->most[d] < 0)
                continue;
            n_lines++;
            n_failed += !search_row(row, dtype, seconds, seed, &sum);
            print_found(row, dtype, &sum);
        }
    }
    if (n_lines == 0)
        fprintf(stderr, "math_accuracy: no function is called \"%s\"\n", only ? only : "");
    return n_lines == 0 || n_failed > 0;
}
