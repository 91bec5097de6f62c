/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_main.c: the benchmark program. `bench_main [--plan FIELD=VALUE,...] [filter...]` times the
 * cases whose names contain all filters, our side with these fields of the plan; `bench_main --asm
 * NAME` prints the code that is generated for a case; `--model` and `--tune` see bench_model.c and
 * bench_tune.c. One tab-separated line a case: name, ours,
 * theirs, ratio, goal, ok or SHORT; lines with # say where and with what; the last line counts. The
 * exit status is 0 unless a result is wrong. The program pins itself to one processor; the library
 * does not.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "bench_model.h"
#include "bench_plan.h"
#include "bench_tune.h"
#include "native.h"

#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXACT_GOAL 0.95

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

double bench_thread_time(void)
{
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

void bench_report_pairs(bench *b, bench_line *line, double *ours, double *theirs, int n)
{
    enum { MOST_PAIRS = 64 };
    const char *least = getenv("QUERN_BENCH_LEAST");
    double ratio[MOST_PAIRS], elements = line->n_elements ? line->n_elements : 1;
    for (int i = 0; i < n && i < MOST_PAIRS; i++)
        ratio[i] = theirs[i] / ours[i];
    line->ratio = bench_median(ratio, n < MOST_PAIRS ? n : MOST_PAIRS);
    line->ours = bench_median(ours, n) / elements;
    line->theirs = bench_median(theirs, n) / elements;
    if (least && strcmp(least, "1") == 0) { /* they are sorted */
        line->ours = ours[0] / elements;
        line->theirs = theirs[0] / elements;
        line->ratio = theirs[0] / ours[0];
    }
    bench_report(b, line);
}

bool bench_wants(bench *b, const char *name)
{
    if (b->model)
        return bench_model_wants(b, name);
    if (b->assembly_of)
        return strcmp(b->assembly_of, name) == 0;
    for (int i = 0; i < b->n_filters; i++)
        if (!strstr(name, b->filter[i]))
            return false;
    snprintf(b->name, sizeof b->name, "%s", name);
    return true;
}

qn_options bench_options(const bench *b)
{
    const char *isa = getenv("QUERN_BENCH_ISA");
    return (qn_options){.bytes = sizeof(qn_options),
                        .engine = QN_ENGINE_NATIVE,
                        .executor = QN_SERIAL,
                        .isa = isa ? atoi(isa) : QN_ISA_AUTO,
                        .plan = &b->plan};
}

/* A time with a unit that suits it. */
static const char *time_text(double seconds, char *buffer, size_t bytes)
{
    if (seconds < 1e-6)
        snprintf(buffer, bytes, "%.4g ns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(buffer, bytes, "%.4g us", seconds * 1e6);
    else
        snprintf(buffer, bytes, "%.4g ms", seconds * 1e3);
    return buffer;
}

void bench_report(bench *b, const bench_line *line)
{
    bool is_short = line->ratio < line->short_below;
    char ours[32], theirs[32];
    if (line->group == GROUP_ALONE) {
        printf("%s\t%s\t-\t-\t-\tok\n", line->name, time_text(line->ours, ours, sizeof ours));
        fflush(stdout);
        b->n_cases++;
        return;
    }
    printf("%s\t%s\t%s\t%.3f\t%.2f\t%s\n", line->name, time_text(line->ours, ours, sizeof ours),
           time_text(line->theirs, theirs, sizeof theirs), line->ratio, line->goal,
           is_short ? "SHORT" : "ok");
    fflush(stdout);
    if (is_short && b->n_short < MOST_SHORT) {
        snprintf(b->short_name[b->n_short], sizeof b->short_name[0], "%s", line->name);
        b->short_ratio[b->n_short] = line->ratio;
    }
    b->n_cases++;
    b->n_short += is_short;
    if (b->n_ratios[line->group]++ == 0 || line->ratio < b->least[line->group])
        b->least[line->group] = line->ratio;
    b->log_sum[line->group] += log(line->ratio);
    b->capped_sum[line->group] += log(line->ratio < 1 ? line->ratio : 1);
}

void bench_report_cost(bench *b, const char *name, double seconds, double goal_seconds)
{
    bench_line line = {.name = name,
                       .group = GROUP_COST,
                       .ours = seconds,
                       .theirs = goal_seconds,
                       .ratio = goal_seconds / seconds,
                       .goal = 1,
                       .short_below = 1};
    bench_report(b, &line);
}

void bench_wrong(bench *b, const char *name, const char *format, ...)
{
    if (bench_tune_leaves_out(b))
        return;
    if (bench_model_leaves_out(b))
        printf("# left out %s: ", name);
    else
        printf("# WRONG %s: ", name);
    va_list ap;
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

/* ---------------------------------------------------------------- header */

static void print_processor(void)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!strncmp(line, "model name", 10) && colon) {
            printf("# CPU:%s", colon + 1);
            break;
        }
    }
    if (f)
        fclose(f);
}

/* The LLVM that the code generator has brought into the process, by the name of its mapped file. */
static void print_llvm(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024], *path = NULL;
    while (f && !path && fgets(line, sizeof line, f))
        if (strstr(line, "libLLVM"))
            path = strchr(line, '/');
    if (path)
        path[strcspn(path, "\n")] = 0;
    printf("# LLVM: %s\n", path ? path : "no shared libLLVM is loaded");
    if (f)
        fclose(f);
}

static void print_header(const bench *b)
{
    print_processor();
    printf("# theirs: %s, -O3 -march=native\n", native_compiler);
    print_llvm();
    qn_counters counters;
    qn_context_counters(b->context, &counters, sizeof counters);
    printf("# loading the code generator: %.2f ms (not part of any case)\n",
           (double)counters.provider_us * 1e-3);
    printf("# in cache: %d elements; %d x %d; %d x %d x %d\n", IN_N, IN_2D_0, IN_2D_1, IN_3D_0,
           IN_3D_1, IN_3D_2);
    printf("# out of cache: %d elements; %d x %d; %d x %d x %d\n", OUT_N, OUT_2D_0, OUT_2D_1,
           OUT_3D_0, OUT_3D_1, OUT_3D_2);
    if (b->tuning.seconds > 0)
        printf("# name\tplanned\tbest\tgain\tmeasured\tchoice\n");
    else
        printf("# name\tours\ttheirs\tratio\tgoal\tverdict\n");
    fflush(stdout);
}

/* ---------------------------------------------------------------- program */

/* To the last processor that this process may use: the first ones serve most interrupts. */
static void pin(void)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    for (size_t i = CPU_SETSIZE; i-- > 0;)
        if (CPU_ISSET(i, &allowed)) {
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

/* Compiles one kernel, which loads the code generator; false with a comment where x86 code cannot
 * be had. */
static bool warm_up(bench *b)
{
    qn_error error = {0};
    float data[8] = {0};
    int64_t extent = 8;
    qn_layout layout;
    qn_view view;
    qn_kernel *k = bench_kernel(KERNEL_SAXPY, QN_F32, &error);
    bool is_ok = k && qn_layout_right(1, &extent, &layout, &error) == QN_OK &&
                 qn_view_wrap("x", data, QN_F32, &layout, 0, &view, &error) == QN_OK;
    if (is_ok) {
        qn_code *f = NULL;
        qn_arg args[3] = {qn_arg_view(&view), qn_arg_view(&view), qn_arg_f32(1)};
        qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
        is_ok = qn_specialize(b->context, k, 3, args, &o, &f, &error) == QN_OK;
        qn_code_release(f);
    }
    if (!is_ok)
        printf("# no x86 code: %s\n", error.message);
    qn_kernel_release(k);
    return is_ok;
}

static double mean_ratio(const bench *b, int first_group, int last_group)
{
    double sum = 0;
    int n = 0;
    for (int g = first_group; g <= last_group; g++) {
        sum += b->log_sum[g];
        n += b->n_ratios[g];
    }
    return n ? exp(sum / n) : 0;
}

/* The capped mean does not let a loop that the C compiler does badly make up for one that we do
 * badly. */
static void print_group(const bench *b, int group, const char *what, const char *verdict)
{
    int n = b->n_ratios[group];
    if (n)
        printf(
            "# %s extents: %d cases, geometric mean %.3f, with ratios above 1 taken as 1 %.3f%s\n",
            what, n, mean_ratio(b, group, group), exp(b->capped_sum[group] / n), verdict);
}

static void print_class(const bench *b, int group, const char *what, double goal)
{
    int n = b->n_ratios[group];
    double mean = mean_ratio(b, group, group);
    if (n)
        printf("# %s: %d cases, geometric mean %.3f, with ratios above 1 taken as 1 %.3f, least "
               "%.3f; goal %.2f: %s\n",
               what, n, mean, exp(b->capped_sum[group] / n), b->least[group], goal,
               mean >= goal ? "ok" : "SHORT");
}

static void print_short(const bench *b)
{
    for (int n = 0; n < b->n_short && n < MOST_SHORT; n++)
        printf("# short: %s %.3f\n", b->short_name[n], b->short_ratio[n]);
}

/* The mean of the cases against C. Where none of them was asked for it is that of the comparisons
 * with other peers, and of the costs only where nothing else was asked for. */
static double total_mean(const bench *b)
{
    double sum = 0;
    int n = 0;
    if (b->n_ratios[GROUP_EXACT] || b->n_ratios[GROUP_DYNAMIC])
        return mean_ratio(b, GROUP_EXACT, GROUP_DYNAMIC);
    for (int g = GROUP_COST + 1; g < GROUP_ALONE; g++) {
        sum += b->log_sum[g];
        n += b->n_ratios[g];
    }
    return n ? exp(sum / n) : mean_ratio(b, GROUP_COST, GROUP_COST);
}

static void print_summary(const bench *b)
{
    bool is_good = mean_ratio(b, GROUP_EXACT, GROUP_EXACT) >= EXACT_GOAL;
    print_group(b, GROUP_EXACT, "exact", is_good ? "; goal 0.95: ok" : "; goal 0.95: SHORT");
    print_group(b, GROUP_DYNAMIC, "dynamic", "");
    print_group(b, GROUP_PEAK, "against the peak: exact", "");
    print_group(b, GROUP_DATA, "copies to pixels: exact", "");
    print_class(b, GROUP_BODY, "RAJAPerf bodies", 1.1);
    print_class(b, GROUP_EXPERT, "experts", 0.95);
    print_class(b, GROUP_KOKKOS, "Kokkos", 1);
    print_class(b, GROUP_LIBMVEC, "libmvec", 0.75);
    print_class(b, GROUP_SLEEF, "SLEEF", 1.2);
    print_class(b, GROUP_APPLICATION, "applications", 1);
    print_class(b, GROUP_SCHEDULE, "schedules by hand, and planned", 0.95);
    print_class(b, GROUP_UNSEEN, "not tuned for", 0.9);
    print_short(b);
    printf("bench: %d cases, %d short, geometric mean %.3f\n", b->n_cases, b->n_short,
           total_mean(b));
}

/* Options, then filters; false if they are not understood. */
static bool read_arguments(bench *b, bool *is_model, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i += 2) {
        if (!strcmp(argv[i], "--model")) {
            *is_model = true;
            i--;
        } else if (i + 1 < argc && !strcmp(argv[i], "--asm"))
            b->assembly_of = argv[i + 1];
        else if (i + 1 < argc && !strcmp(argv[i], "--tune"))
            b->tuning.seconds = atof(argv[i + 1]);
        else if (i + 1 == argc || strcmp(argv[i], "--plan") ||
                 !bench_read_plan(argv[i + 1], &b->plan))
            return false;
        else
            printf("# plan of ours: %s\n", argv[i + 1]);
    }
    b->filter = (const char *const *)argv + i;
    b->n_filters = argc - i;
    return !b->assembly_of || b->n_filters == 0;
}

int main(int argc, char **argv)
{
    bench b = {.plan = {.bytes = sizeof b.plan}};
    bool is_model = false;
    if (!read_arguments(&b, &is_model, argc, argv)) {
        fprintf(stderr,
                "usage: bench_main [--plan FIELD=VALUE,...] [--model] [--tune SECONDS] "
                "[filter... | --asm NAME]\n");
        return 2;
    }
    pin();
    qn_error error = {0};
    if (qn_context_new(NULL, &b.context, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    bool has_code = warm_up(&b);
    if (has_code && !b.assembly_of)
        print_header(&b);
    if (has_code && is_model) {
        bench_model_run(&b);
    } else if (has_code && b.tuning.seconds > 0) {
        bench_speed_cases(&b);
        bench_product_cases(&b);
        bench_body_cases(&b);
        bench_sum_cases(&b);
        bench_data_cases(&b);
        bench_tune_summary(&b);
    } else if (has_code) {
        bench_speed_cases(&b);
        bench_compile_cases(&b);
        bench_cost_cases(&b);
        bench_clamp_cases(&b);
        bench_policy_cases(&b);
        bench_copy_cases(&b);
        bench_product_cases(&b);
        bench_body_cases(&b);
        bench_sum_cases(&b);
        bench_kokkos_cases(&b);
        bench_threads_cases(&b);
        bench_data_cases(&b);
        bench_math_cases(&b);
        bench_apps_cases(&b);
        bench_schedule_cases(&b);
        bench_unseen_cases(&b);
    }
    if (!b.assembly_of && !is_model && b.tuning.seconds == 0)
        print_summary(&b);
    qn_context_release(b.context);
    return b.n_wrong != 0;
}
