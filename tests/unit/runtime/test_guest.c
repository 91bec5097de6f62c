/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_guest.c: what the library leaves as it was in the process of its host: signals, the state of
 * floating point, files, threads and mappings, over many contexts that compile, run and go away.
 * Results do not depend on the host's rounding and flushing, on any thread.
 */
#define _GNU_SOURCE
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <dirent.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { N = 3000, N_SIGNALS = 65 };

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/** Threads of the process, once those that were joined have left; at most a second. */
static int count_threads(int most)
{
    int n = count_entries("/proc/self/task");
    for (int i = 0; i < 100 && n > most; i++) {
        usleep(10000);
        n = count_entries("/proc/self/task");
    }
    return n;
}

static int count_mappings(bool *has_writable_code)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) {
        n++;
        *has_writable_code |= strstr(line, " rwx") != NULL;
    }
    if (f)
        fclose(f);
    return n;
}

static void read_signals(struct sigaction *out)
{
    memset(out, 0, N_SIGNALS * sizeof *out);
    for (int i = 1; i < N_SIGNALS; i++)
        sigaction(i, NULL, &out[i]);
}

static int count_changed(const struct sigaction *before)
{
    struct sigaction now[N_SIGNALS];
    int n = 0;
    read_signals(now);
    for (int i = 1; i < N_SIGNALS; i++)
        n += now[i].sa_handler != before[i].sa_handler || now[i].sa_flags != before[i].sa_flags;
    return n;
}

/** How generated code is run. */
typedef struct manner {
    int engine, executor;
    unsigned mode; /* of the host, for the launch alone */
    bool is_kept;
} manner;

/** y = a x + y, where many x are denormal numbers. */
static bool run(qn_context *c, const qn_kernel *k, const qn_view *x, const qn_view *y, manner *m)
{
    qn_error err = {0};
    const qn_arg args[] = {qn_arg_view(x), qn_arg_view(y), qn_arg_f32(1.5f)};
    const qn_options o = {.bytes = sizeof o,
                          .engine = m->engine,
                          .executor = m->executor,
                          .plan = PLAN_WITH(.chunk = 100)};
    for (int i = 0; i < N; i++) {
        ((float *)x->data)[i] = i % 3 ? 0x1p-140f * (float)i : 1.0f / (float)(i + 1);
        ((float *)y->data)[i] = i % 2 ? 0 : 1.0f / 3;
    }
    unsigned host = _mm_getcsr();
    _mm_setcsr(m->mode);
    qn_status status = qn_launch(c, k, 3, args, &o, &err);
    m->is_kept = (_mm_getcsr() & ~0x3fu) == m->mode;
    _mm_setcsr(host);
    if (status)
        tap_note("launch: %s", err.message);
    return status == QN_OK;
}

/** One context's life. */
static bool live(manner *m, float *result)
{
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 3};
    qn_context *c = context_with(&o);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    bool is_good = run(c, k, &x, &y, m);
    if (result)
        memcpy(result, y.data, N * sizeof *result);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    return is_good;
}

static void test_modes(int engine, int executor, const char *name)
{
    static const unsigned modes[] = {0x1f80, 0x9fc0, 0x3f80,
                                     0x5f80, 0x7f80, 0x1fc0}; /* flushing, rounding */
    static float expected[N], found[N];
    manner plain = {QN_ENGINE_INTERP, QN_SERIAL, modes[0], false};
    bool is_same = live(&plain, expected), is_kept = true;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        manner m = {engine, executor, modes[i], false};
        is_same = live(&m, found) && is_same && memcmp(expected, found, sizeof expected) == 0;
        is_kept = is_kept && m.is_kept;
    }
    tap_ok(is_same, "%s: the results do not depend on the host's rounding and flushing", name);
    tap_ok(is_kept, "%s: which are as before afterwards", name);
}

static void test_lives(int engine)
{
    enum { FIRST = 6, MANY = 40 };
    struct sigaction before[N_SIGNALS];
    sigset_t mask, now;
    bool has_writable_code = false, is_good = true;
    int files = 0, threads = 0, mappings = 0;
    read_signals(before);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (int i = 0; i < MANY; i++) {
        if (i == FIRST) { /* what is made once is there: the code generator, arenas of malloc */
            files = count_entries("/proc/self/fd");
            threads = count_threads(1);
            mappings = count_mappings(&has_writable_code);
        }
        manner m = {engine, i % 2 ? QN_THREADS : QN_SERIAL, 0x1f80, false};
        is_good = live(&m, NULL) && is_good;
    }
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    tap_ok(is_good, "%d contexts one after the other", MANY);
    tap_is_int(count_changed(before), 0, "no signal is handled otherwise than before");
    bool is_same = true;
    for (int s = 1; s < N_SIGNALS; s++)
        is_same = is_same && sigismember(&mask, s) == sigismember(&now, s);
    tap_ok(is_same, "and none is blocked otherwise");
    tap_is_int(count_entries("/proc/self/fd"), files, "no file stays open");
    tap_ok(IS_SANITIZED || count_threads(threads) <= threads, "no thread stays");
    int more = count_mappings(&has_writable_code) - mappings;
    tap_ok(IS_SANITIZED || more <= 4, "no mappings stay: %d more", more);
    tap_ok(!has_writable_code, "no memory is both writable and executable");
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES];
    int engine = has_x86(reason, sizeof reason) ? QN_ENGINE_NATIVE : QN_ENGINE_INTERP;
    if (engine == QN_ENGINE_INTERP)
        tap_note("%s", reason);
    test_modes(QN_ENGINE_INTERP, QN_SERIAL, "interpreter");
    test_modes(engine, QN_SERIAL, "serial");
    test_modes(engine, QN_THREADS, "threads");
    test_lives(engine);
    return tap_done();
}
