/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exit.c: exit() at random times while other threads load the code generator and compile. Each
 * time is that of a process of its own, which must end with status 0. `test_exit N` does it N times
 * (default 100); QUERN_PROVIDER names the code generator.
 */
#define _GNU_SOURCE
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_THREADS = 2, N_MEASURED = 6 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct compiling {
    qn_context *c;
    int first;
} compiling;

/** Makes one version after the other; the process ends meanwhile. */
static void *compile_on(void *arg)
{
    static const char *const text[] = {COPY_TEXT, SHIFT_TEXT};
    const compiling *job = arg;
    for (int64_t n = job->first;; n += N_THREADS) {
        qn_kernel *k = kernel_of(text[n / N_THREADS % 2]);
        qn_view x = vector_of(job->c, "x", QN_F32, n + 1), y = vector_of(job->c, "y", QN_F32, n);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
        const qn_options o = {.bytes = sizeof o, .specialize = QN_SPECIALIZE_EXACT};
        qn_launch(job->c, k, 2, args, &o, NULL);
        qn_view_release(&x);
        qn_view_release(&y);
        qn_kernel_release(k);
    }
    return NULL;
}

/** In a process of its own: ends after so many milliseconds, or with 0 after some compiles. */
static int run_child(double milliseconds)
{
    alarm(60); /* a hang is a failure */
    qn_context *c = context_with(NULL);
    compiling job[N_THREADS];
    pthread_t thread;
    for (int i = 0; i < N_THREADS; i++) {
        job[i] = (compiling){c, 16 + i};
        if (pthread_create(&thread, NULL, compile_on, &job[i]) != 0)
            return 1;
    }
    if (milliseconds > 0)
        usleep((useconds_t)(milliseconds * 1e3));
    while (milliseconds <= 0 && counters_of(c).compiles < N_MEASURED && !counters_of(c).interpreted)
        usleep(200);
    exit(0);
}

/** The status of a child that ends after so many milliseconds. */
static int status_after(const char *program, double milliseconds)
{
    char text[40];
    snprintf(text, sizeof text, "%.3f", milliseconds);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "child", text, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static double random_part(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

int main(int n_words, char **word)
{
    if (n_words == 3 && strcmp(word[1], "child") == 0)
        return run_child(atof(word[2]));
    int n = n_words == 2 ? atoi(word[1]) : 100, n_bad = 0, last = 0;
    char reason[600] = "a sanitizer does its own work in exit()";
    if (IS_SANITIZED || !has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    status_after("/proc/self/exe", 0); /* what is read from a disk is now in memory */
    double start = now_ms();
    tap_is_int(status_after("/proc/self/exe", 0), 0, "exit() after some compiles");
    double length = 1.2 * (now_ms() - start), longest = 0;
    for (int i = 0; i < n; i++) {
        double begin = now_ms(), after = random_part() * length;
        int status = status_after("/proc/self/exe", after > 0.01 ? after : 0.01);
        double wait = now_ms() - begin - after;
        longest = wait > longest ? wait : longest;
        n_bad += status != 0;
        last = status ? status : last;
    }
    if (!tap_ok(n_bad == 0, "%d exits while code is generated, within %.0f ms", n, length))
        tap_note("%d bad, the last with status %d", n_bad, last);
    tap_note("the slowest took %.0f ms longer than it was to live", longest);
    return tap_done();
}
