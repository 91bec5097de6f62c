/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_process.c: the library inside somebody else's process: forks while threads work, small
 * stacks, systems that refuse executable memory, many kernels. What changes the process is done in
 * children.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

enum { N = 1 << 18 };

/** ThreadSanitizer ends a child that starts threads unless it is told that this is wanted. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

/** Copies n elements and compares. */
static bool copies(qn_context *c, const qn_kernel *k, int64_t n, int engine, int executor)
{
    qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
    fill_f32(&x, 3, 1);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o,
                          .engine = engine,
                          .executor = executor,
                          .specialize = QN_SPECIALIZE_EXACT};
    bool is_fine = qn_launch(c, k, 2, args, &o, NULL) == QN_OK &&
                   memcmp(x.data, y.data, (size_t)n * sizeof(float)) == 0;
    qn_view_release(&x);
    qn_view_release(&y);
    return is_fine;
}

static int wait_for_child(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

/* ---------------------------------------------------------------- fork */

typedef struct worker {
    qn_context *c;
    qn_kernel *k;
    atomic_bool stop;
    _Atomic int n_failed;
} worker;

static void *keep_working(void *arg)
{
    worker *w = arg;
    for (int64_t i = 0; !atomic_load(&w->stop); i++) {
        bool is_fine = copies(w->c, w->k, N, QN_ENGINE_NATIVE, QN_THREADS) &&
                       copies(w->c, w->k, 100 + i % 50, QN_ENGINE_AUTO, QN_SERIAL);
        if (!is_fine)
            atomic_fetch_add(&w->n_failed, 1);
    }
    return NULL;
}

static void test_fork(void)
{
    const qn_context_options options = {.bytes = sizeof options, .n_threads = 3};
    worker w = {.c = context_with(&options), .k = kernel_of(COPY_TEXT)};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, keep_working, &w);
    usleep(20000);
    int n_bad = 0, last = 0;
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* a hang ends the child */
            bool is_fine = copies(w.c, w.k, N, QN_ENGINE_AUTO, QN_THREADS) &&
                           copies(w.c, w.k, 3000 + i, QN_ENGINE_AUTO, QN_SERIAL);
            _exit(is_fine ? 0 : 1);
        }
        last = child > 0 ? wait_for_child(child) : -1;
        n_bad += last != 0;
    }
    atomic_store(&w.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    tap_ok(n_bad == 0,
           "30 children forked at work run known and new kernels, on threads of their own");
    if (n_bad)
        tap_note("%d bad, the last ended with %d", n_bad, last);
    tap_is_int(atomic_load(&w.n_failed), 0, "the parent goes on");
    qn_kernel_release(w.k);
    qn_context_release(w.c);
}

/* ---------------------------------------------------------------- stacks */

static void *on_small_stack(void *arg)
{
    worker *w = arg;
    if (!copies(w->c, w->k, 1234, QN_ENGINE_NATIVE, QN_SERIAL))
        atomic_fetch_add(&w->n_failed, 1);
    return NULL;
}

static void test_small_stack(void)
{
    worker w = {.c = context_with(NULL), .k = kernel_of(COPY_TEXT)};
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    bool is_set = pthread_attr_setstacksize(&attr, 64 << 10) == 0;
    if (is_set && pthread_create(&thread, &attr, on_small_stack, &w) == 0) {
        pthread_join(thread, NULL);
        tap_is_int(atomic_load(&w.n_failed), 0,
                   "compile and run from a thread with 64 KiB of stack");
        tap_is_int(counters_of(w.c).compiles, 1, "with generated code");
    } else {
        tap_skip("no thread with so small a stack here");
    }
    pthread_attr_destroy(&attr);
    qn_kernel_release(w.k);
    qn_context_release(w.c);
}

/* ---------------------------------------------------------------- executable memory */

static int count_writable_code(void)
{
    char line[512];
    int n = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file))
        n += strstr(line, " rwxp ") != NULL || strstr(line, " rwxs ") != NULL;
    if (file)
        fclose(file);
    return n;
}

/** In a child that may not make memory executable: codes 0 fine, 77 not to be tested here, else
 * what failed. */
static int run_under_mdwe(void)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(COPY_TEXT);
    if (prctl(PR_SET_MDWE, 1, 0, 0, 0) != 0)
        return 77;
    for (int64_t n = 100; n < 120; n++)
        if (!copies(c, k, n, QN_ENGINE_NATIVE, QN_SERIAL))
            return 1;
    if (count_writable_code())
        return 2;
    pid_t child = fork();
    if (child == 0) /* the memory file is shared with the parent: both go on */
        _exit(copies(c, k, 100, QN_ENGINE_NATIVE, QN_SERIAL) &&
                      copies(c, k, 200, QN_ENGINE_NATIVE, QN_SERIAL)
                  ? 0
                  : 1);
    bool is_fine = copies(c, k, 300, QN_ENGINE_NATIVE, QN_SERIAL);
    if (wait_for_child(child) != 0 || !is_fine)
        return 3;
    for (int64_t n = 100; n < 120; n++)
        if (!copies(c, k, n, QN_ENGINE_NATIVE, QN_SERIAL))
            return 4;
    qn_kernel_release(k);
    qn_context_release(c);
    return 0;
}

static void test_mdwe(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(run_under_mdwe());
    }
    int code = wait_for_child(child);
    if (code == 77)
        tap_skip("the kernel has no PR_SET_MDWE");
    else
        tap_is_int(code, 0,
                   "a process that may not make memory executable runs code from a memory file");
}

/* ---------------------------------------------------------------- many kernels */

static int count_maps(void)
{
    int n = 0, ch;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && (ch = fgetc(file)) != EOF)
        n += ch == '\n';
    if (file)
        fclose(file);
    return n;
}

static void test_many_kernels(void)
{
    const qn_context_options options = {.bytes = sizeof options, .cache_bytes = 1 << 20};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(COPY_TEXT);
    bool is_fine = copies(c, k, 10, QN_ENGINE_NATIVE, QN_SERIAL);
    int before = count_maps();
    for (int64_t n = 11; n < 311; n++)
        is_fine &= copies(c, k, n, QN_ENGINE_NATIVE, QN_SERIAL);
    tap_ok(is_fine, "300 versions");
    tap_ok(count_maps() < before + 100, "take no mapping each (%d before, %d after)", before,
           count_maps());
    tap_is_int(count_writable_code(), 0, "no page is writable and executable");
    qn_kernel_release(k);
    qn_context_release(c);
}

int main(void)
{
    char reason[600];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_mdwe();
    test_small_stack();
    test_many_kernels();
    test_fork();
    return tap_done();
}
