/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_cost.c: the compile-cost tester. Makes kernels up to the limits of kernels, compiles each
 * in a process of its own, and measures processor time and memory: of everything from the finished
 * kernel to code, and of making the kernel. See docs/testing.md.
 *
 *   compile_cost [--kernels N] [--seed N] [--case N] [--family N] [--seconds S] [--ms MS] [--mb MB]
 * [--verbose]
 *
 * With `--ms` and `--mb`, fails where a kernel takes more milliseconds of processor time or
 * megabytes; without, only where one cannot be specialized. `--case` makes one kernel again and
 * prints its text to the standard error; `--seconds` ends after so long.
 */
#define _GNU_SOURCE
#include "tests/random/compile_cost.h"
#include "tests/sanitizer.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_KERNELS = 60, DEFAULT_SEED = 1, HANG_SECONDS = 120, WORST_SHOWN = 5 };

typedef struct settings {
    uint64_t seed, only;
    int64_t n;
    int family; /* or -1 */
    bool is_single, is_verbose;
    double seconds, ms, mb;
} settings;

/** What a child measured. */
typedef struct measured {
    uint64_t number;
    int32_t family, status, made;
    double ms, make_ms, mb;
    char what[160], error[QN_MESSAGE_BYTES];
    char history[400];
} measured;

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** A number of kilobytes in /proc/self/status, in megabytes. */
static double status_mb(const char *name)
{
    char line[256];
    double mb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            mb = strtod(line + strlen(name) + 1, NULL) / 1024;
    if (f)
        fclose(f);
    return mb;
}

/** From now on the peak of resident memory counts from what is resident. */
static void forget_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY);
    ssize_t n = fd >= 0 ? write(fd, "5", 1) : 0;
    (void)n;
    if (fd >= 0)
        close(fd);
}

/* ---------------------------------------------------------------- one case */

static void measure(qn_context *c, const settings *s, uint64_t number, void *memory, measured *m)
{
    cost_case k;
    qn_error error = {0};
    qn_code *f = NULL;
    double start = cpu_ms();
    m->number = number;
    m->made = make_cost_case(&k, s->seed, number, s->family, memory, &error);
    m->make_ms = cpu_ms() - start;
    m->family = k.family;
    snprintf(m->what, sizeof m->what, "%s: %s, %s, v%d", cost_family_name(k.family), k.what,
             k.options.specialize == QN_SPECIALIZE_EXACT ? "exact" : "dynamic", k.options.isa);
    if (m->made) {
        if (s->is_single)
            fputs(kernel_text(k.kernel), stderr);
        forget_peak();
        double before = status_mb("VmRSS:");
        start = cpu_ms();
        m->status = (int32_t)qn_specialize(c, k.kernel, k.n_args, k.arg, &k.options, &f, &error);
        m->ms = cpu_ms() - start;
        m->mb = status_mb("VmHWM:") - before;
        (void)qn_context_history(c, m->history, sizeof m->history);
    } else {
        m->status = (int32_t)error.status;
    }
    memcpy(m->error, error.message, sizeof m->error);
}

/** In a child, so that memory is that of one compile and a crash ends the child only. */
static bool measure_apart(qn_context *c, const settings *s, uint64_t number, void *memory,
                          measured *m)
{
    int pipes[2], status = 0;
    memset(m, 0, sizeof *m);
    if (pipe(pipes))
        return false;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(HANG_SECONDS);
        measure(c, s, number, memory, m);
        ssize_t n = write(pipes[1], m, sizeof *m);
        _exit(n == (ssize_t)sizeof *m ? 0 : 1);
    }
    close(pipes[1]);
    ssize_t n = child > 0 ? read(pipes[0], m, sizeof *m) : 0;
    close(pipes[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    if (n == (ssize_t)sizeof *m)
        return true;
    tap_note("case %" PRIu64 " ended with %s %d", number, WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

/* ---------------------------------------------------------------- summary */

static void note_measured(const char *title, const measured *m)
{
    tap_note("%s %.0f ms, %.1f MB (made in %.0f ms): case %" PRIu64 ", %s%s%s", title, m->ms, m->mb,
             m->make_ms, m->number, m->what, m->status ? ": " : "", m->status ? m->error : "");
    for (const char *line = m->history; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, "warm:", 5) != 0)
            tap_note("    %.*s", (int)strcspn(line, "\n"), line);
}

typedef struct summary {
    measured slowest, largest;
    int64_t n, n_refused, n_failed, n_over;
    double ms;
} summary;

static void count(summary *t, const settings *s, const measured *m, bool is_measured)
{
    t->n++;
    bool is_refused = !m->made || m->status == QN_ERR_BUILD; /* the latter: an argument claims to be
                                                                atomic late, but no update can be */
    t->n_refused += is_measured && is_refused;
    t->n_failed += !is_measured || (m->status && !is_refused);
    t->ms += m->ms;
    bool is_over = is_measured && (m->ms > s->ms || m->mb > s->mb);
    t->n_over += is_over;
    t->slowest = m->ms > t->slowest.ms ? *m : t->slowest;
    t->largest = m->mb > t->largest.mb ? *m : t->largest;
    if (is_over || s->is_verbose || s->is_single || (m->status && !is_refused))
        note_measured(is_over ? "over the bounds:" : "case:", m);
}

static settings read_settings(int argc, char **argv)
{
    settings s = {.seed = DEFAULT_SEED,
                  .n = DEFAULT_KERNELS,
                  .family = -1,
                  .seconds = 1e9,
                  .ms = HUGE_VAL,
                  .mb = HUGE_VAL};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (!strcmp(argv[i], "--verbose")) {
            s.is_verbose = true;
            continue;
        }
        i++;
        if (!strcmp(argv[i - 1], "--kernels"))
            s.n = strtoll(value, NULL, 0);
        else if (!strcmp(argv[i - 1], "--seed"))
            s.seed = strtoull(value, NULL, 0);
        else if (!strcmp(argv[i - 1], "--case"))
            s.only = strtoull(value, NULL, 0), s.is_single = true;
        else if (!strcmp(argv[i - 1], "--family"))
            s.family = (int)strtol(value, NULL, 0);
        else if (!strcmp(argv[i - 1], "--seconds"))
            s.seconds = strtod(value, NULL);
        else if (!strcmp(argv[i - 1], "--ms"))
            s.ms = strtod(value, NULL);
        else if (!strcmp(argv[i - 1], "--mb"))
            s.mb = strtod(value, NULL);
    }
    return s;
}

/** Loads the code generator, so that no child counts that. */
static bool warm(qn_context *c, qn_error *err)
{
    float x[4] = {0};
    int64_t extent = 4;
    qn_layout l;
    qn_view v;
    qn_kernel *k = NULL;
    qn_builder *b = qn_builder_new("warm", 0);
    qn_param p = qn_view_param(b, "x", QN_F32, 1, 0);
    qn_val i = qn_parallel_over(b, p, 0);
    qn_store(b, p, 1, &i, qn_const_float(b, QN_F32, 1));
    qn_status status = qn_finish(b, &k, err);
    qn_builder_release(b);
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    if (status == QN_OK)
        status = qn_layout_right(1, &extent, &l, err);
    if (status == QN_OK)
        status = qn_view_wrap("x", x, QN_F32, &l, 0, &v, err);
    qn_arg arg = qn_arg_view(&v);
    if (status == QN_OK)
        status = qn_launch(c, k, 1, &arg, &o, err);
    qn_kernel_release(k);
    return status == QN_OK;
}

int main(int argc, char **argv)
{
    settings s = read_settings(argc, argv);
    qn_context *c = NULL;
    qn_error error = {0};
    void *memory = mmap(NULL, COST_MEMORY, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (IS_THREAD_SANITIZED) {
        tap_skip("children of this program start threads, which the thread sanitizer refuses");
        return tap_done();
    }
    if (memory == MAP_FAILED || qn_context_new(NULL, &c, &error) || !warm(c, &error)) {
        tap_skip(error.message);
        return tap_done();
    }
    static summary t;
    static measured m;
    double start = now();
    for (int64_t i = 0; i < (s.is_single ? 1 : s.n) && now() - start < s.seconds; i++) {
        bool is_measured = measure_apart(c, &s, s.is_single ? s.only : (uint64_t)i, memory, &m);
        count(&t, &s, &m, is_measured);
    }
    tap_note("compile_cost --seed %" PRIu64 ": %" PRId64 " kernels, %" PRId64
             " refused, %.0f ms each",
             s.seed, t.n, t.n_refused, t.ms / (double)(t.n > t.n_refused ? t.n - t.n_refused : 1));
    note_measured("longest:", &t.slowest);
    note_measured("largest:", &t.largest);
    if (s.ms < HUGE_VAL || s.mb < HUGE_VAL)
        tap_ok(t.n_over == 0, "no compile takes more than %.0f ms or %.0f MB; %" PRId64 " do", s.ms,
               s.mb, t.n_over);
    tap_ok(t.n_failed == 0, "all kernels are specialized; %" PRId64 " are not", t.n_failed);
    qn_context_release(c);
    return tap_done();
}
