/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_accuracy_search.c: computes blocks of arguments in all processors, and judges the results:
 * first by a wider hardware type, and by MPFR where that decides nothing or sees an error that may
 * be the largest.
 */
#define _GNU_SOURCE
#include "tests/math/math_accuracy.h"
#include "tests/unit/launch.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64, N = TRIAL_ELEMENTS };

/* Errors that exceed the largest one by less than so many ulp are not asked about: many results may
 * have the largest error. */
#define NEGLIGIBLE 0x1p-20

/* Relative errors of the references, generously: 16 ulp of glibc's double functions, 8 of its long
 * double ones. */
static const double filter_error[] = {0x1p-48, 0x1p-60};

/** What the processes share. */
typedef struct shared {
    atomic_llong next;
    _Atomic double worst; /* an error that one of them found */
    math_found found[MOST_PROCESSES];
} shared;

typedef struct search {
    math_trial t;
    const math_exact *exact; /* NULL: the wider type is exact */
    mpfr_t x, y, r[MOST_RESULTS], rest;
    double margin;  /* relative error of the wider type */
    bool is_strict; /* every result near a boundary of rounding is decided by MPFR */
    double known;   /* errors up to it are of no interest: some process found one as large */
    math_found *found;
    /* A block, where the wider type is double. */
    double argument[2][N], result[N], wide[MOST_RESULTS][N];
} search;

bool qn__is_exhaustive(const math_row *row, int dtype)
{
    return dtype == QN_F32 && strcmp(row->arguments, "f") == 0;
}

bool qn__is_rounded(const math_row *row, int dtype)
{
    return row->most[dtype == QN_F64] <= 0.500001;
}

static void add_error(math_found *f, double x, double y, double error)
{
    if (!(error > f->worst))
        return;
    f->worst = error;
    f->at_x = x;
    f->at_y = y;
}

/** Counts a result that is not the number nearest to the exact one. */
static void add_wrong(math_found *f, double x, double y, double result, double nearest)
{
    f->n_wrong++;
    f->n_special += isnan(nearest) || isinf(nearest) || isnan(result) || isinf(result);
    if (f->n_listed >= MOST_WRONG)
        return;
    f->wrong[f->n_listed][0] = x;
    f->wrong[f->n_listed++][1] = y;
}

/** Asks MPFR about result a at (x, y), and counts its error. */
static void decide(search *s, double x, double y, int a, double result)
{
    mpfr_set_d(s->x, x, MPFR_RNDN);
    mpfr_set_d(s->y, y, MPFR_RNDN);
    s->exact->f(s->r, s->x, s->y);
    double nearest = qn__nearest_of(s->r[a], s->t.dtype);
    if (nearest != result && !(isnan(nearest) && isnan(result)))
        add_wrong(s->found, x, y, result, nearest);
    if (isnan(nearest) || isinf(nearest) || isinf(result) || isnan(result))
        return;
    mpfr_d_sub(s->rest, result, s->r[a], MPFR_RNDN);
    double ulp = qn__ulp_of(mpfr_get_ld(s->r[a], MPFR_RNDN), s->t.row->least, s->t.dtype);
    /* Before it is rounded to double: it may be far below the least number. */
    mpfr_div_d(s->rest, s->rest, ulp, MPFR_RNDN);
    add_error(s->found, x, y, fabs(mpfr_get_d(s->rest, MPFR_RNDN)));
    s->known = fmax(s->known, s->found->worst + NEGLIGIBLE);
}

/** Counts the error of result a, which the wider type knows as `wide`. */
static void judge(search *s, double x, double y, int a, double result, long double wide)
{
    math_found *f = s->found;
    int dtype = s->t.dtype;
    bool is_same_nan = isnan(wide) && isnan(result);
    /* long double has no infinity below 2^16384, so that an overflow needs no other opinion. */
    bool is_same_infinity = dtype == QN_F64 && isinf(wide) && result == wide;
    if (is_same_nan || is_same_infinity)
        return;
    long double margin = fmaxl(fabsl(wide), s->t.row->least) * s->margin;
    double below = dtype == QN_F32 ? (double)(float)(wide - margin) : (double)(wide - margin);
    double above = dtype == QN_F32 ? (double)(float)(wide + margin) : (double)(wide + margin);
    if (below == above && result == below && isinf(below))
        return;
    double ulp = qn__ulp_of(wide, s->t.row->least, dtype),
           difference = (double)fabsl(result - wide);
    double error = difference / ulp, doubt = (double)(margin / ulp);
    bool may_be_largest = !(difference == 0 || error + doubt <= s->known);
    bool is_undecided = isnan(wide) || isnan(result) || isinf(result) || isinf(below) ||
                        (s->is_strict && below != above);
    if (s->exact && (may_be_largest || is_undecided)) {
        decide(s, x, y, a, result);
        return;
    }
    if (below == above ? result != below : isnan(wide) || isnan(result))
        add_wrong(f, x, y, result, below);
    else
        add_error(f, x, y, error);
}

/** The distance between neighbours of a dtype at a positive number, or just below it. */
static inline double ulp_below(double number, int dtype)
{
    const uint64_t least_normal = dtype == QN_F32 ? 1023 - 126 : 1,
                   digits = dtype == QN_F32 ? 23 : 52;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = (bits - 1) >> 52 & 0x7ff;
    bits = bits < least_normal || number == 0 ? least_normal : bits;
    bits = bits > digits ? (bits - digits) << 52 : UINT64_C(1) << (bits - 1);
    memcpy(&number, &bits, sizeof number);
    return number;
}

/** All f32 results of a block: counts those that double decides, and judges the few others. */
static void judge_f32(search *s, int a)
{
    const double least = s->t.row->least, known = s->known;
    const double *result = s->result, *wide = s->wide[a];
    static _Thread_local uint8_t is_open[N];
    int64_t n_wrong = 0;
    for (int i = 0; i < N; i++) {
        double r = result[i], w = wide[i], magnitude = fabs(w) > least ? fabs(w) : least;
        double margin = (magnitude < 0x1p1000 ? magnitude : 0x1p1000) * s->margin;
        float below = (float)(w - margin), above = (float)(w + margin);
        double difference = fabs(r - w), ulp = ulp_below(magnitude, QN_F32);
        bool is_decided = (below == above) & (r - r == 0), is_wrong = r != (double)below;
        bool is_large = (difference != 0) & !(difference + margin <= known * ulp);
        bool is_special =
            ((w != w) & (r != r)) | ((below == above) & (r == (double)below) & (r - r != 0));
        is_open[i] = !(is_special | (is_decided & !is_large));
        n_wrong += is_decided & !is_large & is_wrong;
    }
    s->found->n_wrong += n_wrong;
    for (int i = 0; i < N; i++)
        if (is_open[i])
            judge(s, s->argument[0][i], s->argument[1][i], a, result[i], wide[i]);
}

static void judge_block_f32(search *s)
{
    const math_trial *t = &s->t;
    double r[MOST_RESULTS] = {0};
    for (int a = 0; a < t->n_arguments; a++)
        qn__trial_read(&t->views[a], s->argument[a]);
    for (int i = 0; i < N; i++) {
        t->row->f32(s->argument[0][i], s->argument[1][i], r);
        for (int a = 0; a < t->n_results; a++)
            s->wide[a][i] = r[a];
    }
    for (int a = 0; a < t->n_results; a++) {
        qn__trial_read(&t->views[t->n_arguments + a], s->result);
        judge_f32(s, a);
    }
}

/** Whether long double decides a f64 result of no great error; counts it. */
static inline bool is_decided_f64(search *s, double result, long double wide)
{
    double w = (double)wide, magnitude = fmax(fabs(w), s->t.row->least);
    long double margin = (long double)magnitude * s->margin,
                difference = result > wide ? result - wide : wide - result;
    bool is_usual = magnitude < 0x1p1020 &&
                    difference + margin <= s->known * (long double)ulp_below(magnitude, QN_F64) &&
                    !(s->is_strict && (double)(wide - margin) != (double)(wide + margin));
    s->found->n_wrong += is_usual && result != w;
    return is_usual;
}

static void judge_block_f64(search *s)
{
    const math_trial *t = &s->t;
    long double wide[MOST_RESULTS];
    for (int i = 0; i < N; i++) {
        double x = qn__trial_get(&t->views[0], i),
               y = t->n_arguments > 1 ? qn__trial_get(&t->views[1], i) : 0;
        t->row->f64(x, y, wide);
        for (int a = 0; a < t->n_results; a++) {
            double result = qn__trial_get(&t->views[t->n_arguments + a], i);
            if (!is_decided_f64(s, result, wide[a]))
                judge(s, x, y, a, result, wide[a]);
        }
    }
}

double qn__seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** All f32 inputs whose high 16 bits are the block's, blocks in an order that spreads over all
 * numbers. */
static void fill_patterns(const math_trial *t, uint32_t block)
{
    uint32_t high = (block * 40503u & 0xffff) << 16;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = high | i;
        memcpy((float *)t->views[0].data + i, &bits, sizeof bits);
    }
}

/** Random arguments that depend on the block alone, whose number is mixed (Steele, Lea, Flood,
 * 2014). */
static void fill_random(const math_trial *t, uint64_t block)
{
    uint64_t state = (block + 1) * UINT64_C(0x9e3779b97f4a7c15);
    state = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ state >> 27) * UINT64_C(0x94d049bb133111eb);
    for (int i = 0; i < N; i++)
        for (int a = 0; a < t->n_arguments; a++)
            qn__trial_set(&t->views[a], i, qn__trial_draw(&t->row->range[a], t->dtype, &state));
}

/** Takes blocks until none is left, or no time. */
static void search_blocks(const math_line *l, shared *all, double end, math_found *out)
{
    qn_context *c =
        context_with(&(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 1});
    search *s = calloc(1, sizeof *s);
    s->t = qn__trial_begin(c, l->row, l->dtype);
    s->exact = qn__find_exact(l->row->name);
    s->margin = s->exact ? filter_error[l->dtype == QN_F64] : 0;
    s->is_strict = l->dtype == QN_F32 || qn__is_rounded(l->row, l->dtype);
    s->found = out;
    mpfr_inits2(DIGITS, s->x, s->y, s->r[0], s->r[1], s->rest, (mpfr_ptr)0);
    while (qn__seconds_now() < end) {
        int64_t block = atomic_fetch_add(&all->next, 1);
        if (block >= l->n_blocks)
            break;
        if (qn__is_exhaustive(l->row, l->dtype))
            fill_patterns(&s->t, (uint32_t)block);
        else
            fill_random(&s->t, (uint64_t)block);
        qn__trial_compute(&s->t);
        s->known = fmax(out->worst, all->worst) + NEGLIGIBLE;
        out->n += N * s->t.n_results;
        if (l->dtype == QN_F64)
            judge_block_f64(s);
        else
            judge_block_f32(s);
        if (out->worst > all->worst)
            all->worst = out->worst;
    }
    mpfr_clears(s->x, s->y, s->r[0], s->r[1], s->rest, (mpfr_ptr)0);
    qn__trial_end(&s->t);
    free(s);
    qn_context_release(c);
}

static void add_found(math_found *sum, const math_found *part)
{
    for (int i = 0; i < part->n_listed && sum->n_listed < MOST_WRONG; i++)
        memcpy(sum->wrong[sum->n_listed++], part->wrong[i], sizeof part->wrong[i]);
    sum->n += part->n;
    sum->n_wrong += part->n_wrong;
    sum->n_special += part->n_special;
    add_error(sum, part->at_x, part->at_y, part->worst);
}

bool qn__search_line(math_line *l, double seconds)
{
    cpu_set_t processors;
    int n = sched_getaffinity(0, sizeof processors, &processors) ? 1 : CPU_COUNT(&processors);
    shared *all =
        mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[MOST_PROCESSES];
    bool is_good = all != MAP_FAILED;
    double end = qn__seconds_now() + seconds;
    n = !is_good ? 0 : n > MOST_PROCESSES ? MOST_PROCESSES : n;
    if (is_good) {
        all->next = l->next;
        all->worst = l->found.worst;
    }
    for (int i = 0; i < n; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            search_blocks(l, all, end, &all->found[i]);
            _exit(tap_state.failed > 0);
        }
    }
    for (int i = 0; i < n; i++) {
        int status = 1;
        is_good &=
            children[i] > 0 && waitpid(children[i], &status, 0) == children[i] && status == 0;
    }
    for (int i = 0; i < n && is_good; i++)
        add_found(&l->found, &all->found[i]);
    if (is_good)
        l->next = all->next < l->n_blocks ? all->next : l->n_blocks;
    if (all != MAP_FAILED)
        munmap(all, sizeof *all);
    return is_good;
}
