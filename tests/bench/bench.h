/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h: what the parts of the benchmark share: the state of a run, its output lines, time and
 * medians.
 *
 * bench_main.c         the program: options, header, output lines, summary
 * bench_memory.c       memory of arrays; bench_turns.c: times of two sides in turns; bench_plan.h:
 * what --plan says bench_cases_speed.c  the kernels against the same loops in C
 * bench_cases_compile.c  what compiling costs, of kernels of bench_compile_texts.c, too
 * bench_cases_cost.c   what finding and entering code costs
 * bench_cases_policy.c  what QN_SPECIALIZE_AUTO costs on traces of shapes
 * bench_cases_copy.c   deep copies against memcpy, transpositions and streams against code by hand
 * bench_cases_product.c  sums of products: against the peak, and against C
 * bench_cases_body.c   kernels of RAJAPerf (bodies.h) against C; bench_body.c builds them
 * bench_cases_threads.c  what threads gain, against threads of fma chains and of streams
 * bench_cases_data.c   copies, sums, sparse rows, lists, tables, pixels (bench_data_list.c) against
 * C bench_cases_sum.c    those that reduce or sweep bench_cases_math.c   mathematical functions
 * against libmvec and SLEEF bench_cases_apps.c   softmax and others against C with libmvec
 * bench_cases_schedule.c  schedules by hand (tests/schedules) against C
 * bench_cases_unseen.c  kernels that the planner was not tuned for against C
 * bench_cases_kokkos.c kernels against Kokkos, where there is a peer library (kokkos_peer.cpp)
 * bench_model.c        --model: estimates and times of several plans of a case
 * bench_tune.c         --tune: what tuning gains
 * native_*.c           the loops in C, see native.h
 */
#ifndef QN_TESTS_BENCH_BENCH_H
#define QN_TESTS_BENCH_BENCH_H

#include "quern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GROUP_EXACT,
    GROUP_DYNAMIC,
    GROUP_COST,
    GROUP_PEAK,
    GROUP_BODY,
    GROUP_DATA,
    GROUP_EXPERT,
    GROUP_KOKKOS,
    GROUP_LIBMVEC,
    GROUP_SLEEF,
    GROUP_APPLICATION,
    GROUP_SCHEDULE,
    GROUP_UNSEEN,
    GROUP_ALONE, /* lines that nothing is compared with */
    N_GROUPS
};
enum { MOST_SHORT = 64, BENCH_ARRAYS = 16 };

/** What --tune adds up (bench_tune.c). */
typedef struct bench_tuning {
    double seconds; /* for each case; 0: nothing is tuned */
    bool is_done;   /* the case that is prepared was tuned */
    int n, n_gain;
    double log_sum;
} bench_tuning;

typedef struct bench {
    qn_context *context;
    const char *const *filter; /* a case runs if its name contains all of these */
    int n_filters;
    struct bench_model *model; /* of --model; or NULL */
    bench_tuning tuning;
    char name[80]; /* of the case that was wanted last */
    const char *assembly_of; /* --asm: print the code of this case instead of timing it; or NULL */
    qn_plan_options plan;    /* --plan */
    int n_cases, n_short, n_wrong;
    double log_sum[N_GROUPS];    /* of the ratios */
    double capped_sum[N_GROUPS]; /* of the ratios, those above 1 taken as 1 */
    int n_ratios[N_GROUPS];
    double least[N_GROUPS];      /* ratio */
    char short_name[MOST_SHORT][80]; /* the first lines that fall short */
    double short_ratio[MOST_SHORT];
} bench;

/** One result. Times in seconds. */
typedef struct bench_line {
    const char *name;
    int group; /* GROUP_... */
    double ours, theirs;
    double ratio;       /* theirs / ours; larger is better */
    double goal;        /* printed */
    double short_below; /* ratios below this are SHORT */
    int n_elements; /* bench_in_turns: times are those of one of so many elements; 0: of a call */
} bench_line;

/** Whether a case is wanted: all filters, or exactly the case of --asm. */
bool bench_wants(bench *b, const char *name);
/** Prints a result and counts it. */
void bench_report(bench *b, const bench_line *line);
/** Reports a cost: "theirs" is the goal. */
void bench_report_cost(bench *b, const char *name, double seconds, double goal_seconds);
/** Prints a wrong result or a failed call and counts it: the exit status becomes 1. */
__attribute__((format(printf, 3, 4))) void bench_wrong(bench *b, const char *name,
                                                       const char *format, ...);
/** qn_prepare; where candidates are timed (bench_model.c), it also notes the estimate. With --tune
 * the case is tuned, and the call fails with QN_ERR_CANCELLED. */
qn_status bench_prepare(bench *b, const qn_kernel *k, int n, const qn_arg *args,
                        const qn_options *o, qn_call **out, qn_error *err);
/** Options of our side: code on one thread, the plan fields of --plan, the instruction set of
 * QUERN_BENCH_ISA. */
qn_options bench_options(const bench *b);

/** Memory of the arrays of a case, zeroed, in huge pages: each begins a page of 4 KiB and 21 cache
 * lines behind the end of the one before, which keeps loads of one array from looking like stores
 * to another (same low 12 bits of the address). */
typedef struct bench_memory {
    void *block;
    size_t block_bytes;
    char *first;  /* of all bytes of all arrays, gaps included */
    size_t bytes;
    void *at[BENCH_ARRAYS];
} bench_memory;
qn_status bench_memory_make(bench_memory *m, int n, const size_t *bytes, qn_error *err);
/** Memory that was not made is ignored. */
void bench_memory_free(bench_memory *m);
/** Fills everything with values of f64 in [0.5, 1.5). */
void bench_memory_fill(const bench_memory *m);
/** A copy of everything, for free(); NULL if there is no memory. */
void *bench_memory_keep(const bench_memory *m);
/** Whether all f64 differ from those of the copy by no more than a part of 1 + their size. */
bool bench_memory_is_close(const bench_memory *m, const void *kept, double tolerance);

/** Monotonic seconds. */
double bench_now(void);
/** Seconds that the calling thread has run: a sample whose thread ran less than it took was
 * preempted. */
double bench_thread_time(void);
/** The median; sorts `x`. */
double bench_median(double *x, int n);
/** Fills times and ratio of a line from n pairs of samples, 64 at most, and reports it: medians, or
 * with QUERN_BENCH_LEAST=1 the least of each side. Sorts the samples. */
void bench_report_pairs(bench *b, struct bench_line *line, double *ours, double *theirs, int n);

/** The kernel of a case: KERNEL_... of native.h for QN_F32 or QN_F64, with QN_CONTRACT. NULL and
 * *err on failure. */
qn_kernel *bench_kernel(int kernel, int dtype, qn_error *err);
/** How many views a kernel has; a scalar, if any, follows them. */
int bench_n_views(int kernel);
bool bench_has_scalar(int kernel);

/** A loop body: see bench_body.c for its text. Arrays that are written come first, then those that
 * are read. */
typedef struct bench_body_info {
    const char *name, *text;
    int rank;         /* dimensions of the domain: those of the first array */
    int n_out, n_in;  /* arrays */
    int first, last;  /* index at which each dimension begins, and indices left out at its end */
    int sequential;   /* bit d: dimension d of the domain is sequential */
    int dtype;        /* 0: f64 */
    const char *ranks; /* of each array, a digit each; NULL: that of the domain */
} bench_body_info;
/** Its kernel, with QN_CONTRACT. NULL and *err on failure. */
qn_kernel *bench_body(const bench_body_info *info, qn_error *err);

void bench_speed_cases(bench *b);
void bench_compile_cases(bench *b);
void bench_cost_cases(bench *b);
void bench_clamp_cases(bench *b);
void bench_policy_cases(bench *b);
void bench_copy_cases(bench *b);
void bench_product_cases(bench *b);
/** Prints the code of a case. */
void bench_print_assembly(bench *b, const char *name, const qn_kernel *k, int n, const qn_arg *args,
                          const qn_options *o);
void bench_body_cases(bench *b);
void bench_threads_cases(bench *b);
void bench_data_cases(bench *b);
void bench_sum_cases(bench *b);
void bench_kokkos_cases(bench *b);
void bench_math_cases(bench *b);
void bench_apps_cases(bench *b);
void bench_schedule_cases(bench *b);
void bench_unseen_cases(bench *b);

/** Times a prepared call and theirs(data) in turns, by the clock of the thread, completes the line
 * by medians and reports it. */
void bench_in_turns(bench *b, bench_line *line, qn_call *call, void (*theirs)(const void *data),
                    const void *data);
/** Times several prepared calls, one after the other, likewise. */
void bench_calls_in_turns(bench *b, bench_line *line, int n_calls, qn_call *const *calls,
                          void (*theirs)(const void *data), const void *data);

#endif
