/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential.c: the random-kernel tester. Makes kernels and arguments at random until its time is
 * up, and runs each on the interpreter and on generated code in many ways; all answers must be the
 * same. See docs/differential.md.
 *
 *   differential [--seconds S] [--seed N] [--case N] [--first N] [--way N] [--verbose] [--cuda]
 * [--only-cuda]
 *                [--schedules]
 *
 * `--case` makes one case again and prints its kernel, arguments and differences; `--way` runs it
 * in one way only, and is the number of its line in the summary. `--cuda` runs kernels on a GPU,
 * too,
 * `--only-cuda` nowhere else but on the interpreter. `--schedules` runs kernels by random schedules
 * only.
 */
#define _POSIX_C_SOURCE 200809L
#include "differential.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SHOWN = 10, HANG_SECONDS = 120, DEFAULT_SECONDS = 20 };

typedef struct settings {
    uint64_t seed, first, only;
    int only_way; /* or -1 */
    bool is_single, is_verbose, has_cuda, is_cuda_only, has_only_schedules;
    double seconds;
} settings;

/* ---------------------------------------------------------------- crashes */

/* What the handler prints; written before each case. */
static char crash_text[160];

static void on_crash(int number)
{
    ssize_t written = write(STDOUT_FILENO, crash_text, strlen(crash_text));
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], on_crash);
}

/* ---------------------------------------------------------------- one case */

static void note_arguments(const test_case *t)
{
    for (int i = 0; i < t->n_views; i++) {
        const test_view *v = &t->view[i];
        char layout[1024], lower[128] = "";
        (void)qn_layout_print(&v->layout, layout, sizeof layout);
        size_t n = 0;
        for (int d = 0; d < v->rank; d++)
            n += (size_t)snprintf(lower + n, sizeof lower - n, "%s%" PRId64, d ? ", " : "",
                                  v->lower[d]);
        tap_note("  %s: %s unit %u %s lower (%s)%s%s", v->name, qn_dtype_name(v->dtype),
                 (unsigned)v->unit, layout, lower, v->shares == i ? "" : " in the memory of ",
                 v->shares == i ? "" : t->view[v->shares].name);
    }
    for (int i = t->n_views; i < t->n_args; i++)
        tap_note("  scalar %d: %s bits 0x%" PRIx64, i - t->n_views, qn_dtype_name(t->args[i].dtype),
                 t->args[i].bits);
}

static void show_failure(runner *r, test_case *t, const settings *s, const way *first)
{
    tap_note("to repeat: differential --seed %" PRIu64 " --case %" PRIu64, s->seed, t->number);
    if (first->id < 0)
        return;
    note_way(first);
    note_arguments(t);
    char *reduced = reduce_case(r, t, first);
    char what[3 * QN_MESSAGE_BYTES];
    qn_kernel *k = NULL;
    if (reduced && !qn_kernel_parse(reduced, strlen(reduced), &k, NULL) &&
        is_different(r, t, k, first, what, sizeof what))
        tap_note("reduced: %s", what);
    note_text(reduced ? reduced : t->text);
    qn_kernel_release(k);
    free(reduced);
}

/* Makes and runs one case; false if something is wrong with it. */
static bool do_case(runner *r, const settings *s, uint64_t number, bool is_shown)
{
    test_case t;
    way first = {.id = -1};
    qn_error error = {0};
    snprintf(crash_text, sizeof crash_text,
             "# crashed or hung; to repeat: differential --seed %" PRIu64 " --case %" PRIu64 "\n",
             s->seed, number);
    (void)alarm(HANG_SECONDS);
    if (s->is_verbose)
        tap_note("case %" PRIu64, number);
    bool is_good = make_case(&t, s->seed, number, &error);
    if (!is_good) {
        tap_note("case %" PRIu64 " cannot be made: %s", number, error.message);
        note_arguments(&t);
    } else {
        if (s->is_single) {
            note_text(t.text);
            note_arguments(&t);
        }
        is_good = run_case(r, &t, &first);
        if (!is_good && is_shown)
            show_failure(r, &t, s, &first);
    }
    release_schedule(&first);
    release_case(&t);
    return is_good;
}

/* ---------------------------------------------------------------- program */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool read_settings(settings *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--verbose")) {
            s->is_verbose = true;
            continue;
        }
        if (!strcmp(argv[i], "--schedules")) {
            s->has_only_schedules = true;
            continue;
        }
        s->is_cuda_only = s->is_cuda_only || !strcmp(argv[i], "--only-cuda");
        if (!strcmp(argv[i], "--cuda") || !strcmp(argv[i], "--only-cuda")) {
            s->has_cuda = true;
            continue;
        }
        if (!value)
            return false;
        i++;
        if (!strcmp(argv[i - 1], "--seconds"))
            s->seconds = strtod(value, NULL);
        else if (!strcmp(argv[i - 1], "--seed"))
            s->seed = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i - 1], "--first"))
            s->first = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i - 1], "--way"))
            s->only_way = atoi(value);
        else if (!strcmp(argv[i - 1], "--case"))
            s->is_single = true, s->only = strtoull(value, NULL, 10);
        else
            return false;
    }
    return true;
}

/** Whether a way may be left out: those of a GPU, and with --only-cuda the others. */
static bool is_optional(const runner *r, int id)
{
    bool is_cuda = id == WAY_CUDA_EXACT || id == WAY_CUDA_PLAN || id == WAY_CUDA_SCHEDULE;
    return is_cuda ? r->gpu.context == NULL
                   : r->is_cuda_only || (r->has_only_schedules && !has_schedule(id));
}

/** That random schedules are not only drawn: code is generated for most of them, and runs. */
static void check_schedules(const runner *r, const settings *s)
{
    enum { ENOUGH_KERNELS = 10, LEAST_LOWERED = 10, MANY_KERNELS = 300 };
    const schedule_counts *n = &r->schedules;
    if (s->is_single || s->only_way >= 0 || r->is_cuda_only || r->n_kernels < ENOUGH_KERNELS)
        return;
    if (r->no_x86) {
        tap_skip(r->no_x86);
        return;
    }
    tap_ok(n->n_lowered >= LEAST_LOWERED && 2 * n->n_lowered >= n->n_given,
           "%" PRId64 " of %" PRId64 " launches with a random schedule ran its code", n->n_lowered,
           n->n_given);
    if (r->n_kernels >= MANY_KERNELS)
        tap_ok(is_every_row_legal(r), "every transformation was a legal step");
}

/** How many plans did what. */
static void summarise_plans(const runner *r)
{
    char text[2048] = "";
    size_t n = 0;
    for (int i = 0; i < N_PLAN_MARKS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %" PRId64, i ? ", " : "",
                              plan_mark_name(i), r->n_plans[i]);
    tap_note("plans: %s", text);
    n = 0;
    for (int i = 0; i < N_PLAN_MARKS; i++)
        if (!r->n_plans[i])
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
                                  plan_mark_name(i));
    tap_note("plans never met: %s", n ? text : "none");
}

static void summarise(const runner *r, int64_t n_refused)
{
    tap_note("%" PRId64 " kernels, %.0f points each on average; interpreter: ok %" PRId64
             ", bounds %" PRId64 ", limit %" PRId64 ", other %" PRId64,
             r->n_kernels, (double)r->n_points / (double)(r->n_kernels ? r->n_kernels : 1),
             r->n_by_status[QN_OK], r->n_by_status[QN_ERR_BOUNDS], r->n_by_status[QN_ERR_LIMIT],
             r->n_references - r->n_by_status[QN_OK] - r->n_by_status[QN_ERR_BOUNDS] -
                 r->n_by_status[QN_ERR_LIMIT]);
    const int64_t *n = r->n_with;
    tap_note("kernels with if %" PRId64 ", for %" PRId64 ", while %" PRId64 ", reduce %" PRId64
             ", atomic %" PRId64 ", sequential %" PRId64 ", load %" PRId64
             "; launches with lists compared with dense copies %" PRId64,
             n[FEATURE_IF], n[FEATURE_FOR], n[FEATURE_WHILE], n[FEATURE_REDUCE], n[FEATURE_ATOMIC],
             n[FEATURE_SEQUENTIAL], n[FEATURE_LOAD], r->n_lists);
    tap_note("kernels with updates of atomic views %" PRId64
             "; made again because one would be none %" PRId64,
             r->n_updates, r->n_redone);
    tap_note("kernels with mathematical functions %" PRId64 ", calls %" PRId64 ", lookups %" PRId64
             ", neighbouring atomics %" PRId64 ", assertions %" PRId64 ", prints %" PRId64,
             r->n_math, n[FEATURE_CALL], n[FEATURE_LOOKUP], r->n_neighbours, n[FEATURE_ASSERT],
             n[FEATURE_PRINT]);
    tap_note("launches that their time limit ended %" PRId64, r->n_ended);
    summarise_plans(r);
    summarise_schedules(&r->schedules);
    tap_is_int(n_refused, 0, "every random kernel can be built");
    tap_is_int(r->n_unvaried, 0, "every kernel has second arguments");
    tap_is_int(r->n_text_errors, 0, "kernel text survives print, parse, print");
    tap_is_int(r->n_escapes, 0, "the interpreter writes nothing outside the views");
    tap_is_int(r->n_lists_differ, 0, "views with lists give what dense copies give");
    for (int id = 0; id < N_WAYS; id++) {
        if (r->no_x86 && id != WAY_INTERPRETER)
            tap_skip(r->no_x86);
        else if (r->n_runs[id] > 0 || !is_optional(r, id))
            tap_ok(r->n_differences[id] == 0, "%s: %" PRId64 " runs, %" PRId64 " differ",
                   way_name(id), r->n_runs[id], r->n_differences[id]);
    }
}

int main(int argc, char **argv)
{
    settings s = {.seed = 1, .only_way = -1, .seconds = DEFAULT_SECONDS};
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr, "usage: differential [--seconds S] [--seed N] [--first N] [--case N] "
                        "[--way N] [--verbose] [--cuda]"
                        " [--only-cuda] [--schedules]\n");
        return 2;
    }
    runner r;
    qn_error error = {0};
    if (!tap_ok(open_runner(&r, &error), "a context can be made %s", error.message))
        return tap_done();
    r.is_cuda_only = s.is_cuda_only;
    r.only_way = s.only_way;
    r.has_only_schedules = s.has_only_schedules;
    if (s.has_cuda && !device_open(&r.gpu, false))
        tap_skip(r.gpu.no_gpu);
    if (r.gpu.context)
        tap_note("cuda: %s", r.gpu.info.name);
    watch_crashes();
    int64_t n_refused = 0, n_bad = 0;
    if (s.is_single)
        n_refused += !do_case(&r, &s, s.only, true) && r.n_kernels == 0;
    double end = now() + s.seconds;
    for (uint64_t i = s.first; !s.is_single && now() < end; i++) {
        int64_t before = r.n_kernels;
        bool is_good = do_case(&r, &s, i, n_bad < MAX_SHOWN);
        n_bad += !is_good;
        n_refused += !is_good && r.n_kernels == before;
    }
    summarise(&r, n_refused);
    check_schedules(&r, &s);
    if (r.gpu.context)
        tap_note("cuda: %" PRId64 " launches are none for a GPU: iteration order", r.n_limits);
    close_runner(&r);
    return tap_done();
}
