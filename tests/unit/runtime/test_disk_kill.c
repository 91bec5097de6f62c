/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_disk_kill.c: two processes with 32 threads each launch kernels through one cache on disk,
 * which is small, so that entries come and go, and are killed at random times. Every result must be
 * right, no process may end otherwise than by our signal, and no entry that is visible may ever be
 * bad. `test_disk_kill N` kills N processes (default 20); QUERN_PROVIDER names the code generator.
 */
#define _GNU_SOURCE
#include "quern/cache.h"
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_PROCESSES = 2, N_THREADS = 32, N_VERSIONS = 24, BOUND_BYTES = 24000, MOST_MS = 120 };
static char root[] = "/tmp/test_disk_kill.XXXXXX";

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---------------------------------------------------------------- a process that is killed */

static void give_up(const char *why)
{
    dprintf(STDERR_FILENO, "# test_disk_kill: %s\n", why);
    _exit(2);
}

/** y = a x + y in a version of its own for each n. */
static void launch_once(qn_context *c, const qn_kernel *k, int64_t n)
{
    float x[N_VERSIONS + 1], y[N_VERSIONS + 1];
    qn_layout l;
    qn_view vx, vy;
    qn_error err = {0};
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("x", x, QN_F32, &l, 0, &vx, NULL);
    qn_view_wrap("y", y, QN_F32, &l, 0, &vy, NULL);
    const qn_arg args[] = {qn_arg_view(&vx), qn_arg_view(&vy), qn_arg_f32(2)};
    const qn_options o = {.bytes = sizeof o, .specialize = QN_SPECIALIZE_EXACT};
    if (qn_launch(c, k, 3, args, &o, &err) != QN_OK)
        give_up(err.message);
    for (int64_t i = 0; i < n; i++)
        if (y[i] != (float)(2 * i + 1))
            give_up("a wrong result");
}

/** Each round has a context of its own, which knows nothing but what is on disk. */
static void *launch_for_ever(void *arg)
{
    uint64_t state = (uint64_t)(uintptr_t)arg;
    const qn_context_options o = {
        .bytes = sizeof o, .disk_cache = root, .disk_cache_bytes = BOUND_BYTES};
    for (;;) {
        qn_context *c = context_with(&o);
        qn_kernel *k = kernel_of(SAXPY_TEXT);
        for (int i = 0; i < 4; i++)
            launch_once(c, k, 1 + (int64_t)(next_random(&state) % N_VERSIONS));
        if (counters_of(c).disk_refused)
            give_up("an entry was refused");
        qn_kernel_release(k);
        qn_context_release(c);
    }
    return NULL;
}

static int run_child(const char *folder, uint64_t seed)
{
    pthread_t thread;
    snprintf(root, sizeof root, "%s", folder);
    for (uint64_t i = 0; i < N_THREADS; i++)
        if (pthread_create(&thread, NULL, launch_for_ever,
                           (void *)(uintptr_t)(seed + 7919 * (i + 1))) != 0)
            return 3;
    for (;;)
        pause();
}

/* ---------------------------------------------------------------- who kills */

static pid_t start_child(uint64_t seed)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRIu64, seed);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_disk_kill", "child", root, text, (char *)NULL);
        _exit(127);
    }
    return child;
}

/** Kills a child; whether it was alive until then. */
static bool end_child(pid_t child)
{
    int status = 0;
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    bool was_alive = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!was_alive)
        tap_note("a process ended with status %x", status);
    return was_alive;
}

typedef struct sums {
    int64_t n, n_refused, bytes;
} sums;

/** An entry may be evicted while it is looked at, which is no fault of it. */
static void add(void *arg, const qn_cache_entry *e)
{
    sums *s = arg;
    bool is_gone = e->refused && strcmp(e->refused, strerror(ENOENT)) == 0;
    s->n += !is_gone;
    s->bytes += e->file_bytes;
    s->n_refused += e->refused && !is_gone;
    if (e->refused && !is_gone)
        tap_note("%s: %s", e->path, e->refused);
}

int main(int n_words, char **word)
{
    if (n_words == 4 && strcmp(word[1], "child") == 0)
        return run_child(word[2], strtoull(word[3], NULL, 10));
    int n = n_words == 2 ? atoi(word[1]) : 20, n_dead = 0;
    char reason[600] = "a sanitizer is too slow for that", command[64];
    if (IS_SANITIZED || !has_x86(reason, sizeof reason) || !mkdtemp(root)) {
        tap_skip(reason);
        return tap_done();
    }
    uint64_t state = 88172645463325252u ^ (uint64_t)time(NULL);
    pid_t child[N_PROCESSES];
    sums s = {0}, last = {0};
    int64_t most = 0;
    for (int i = 0; i < N_PROCESSES; i++)
        child[i] = start_child(next_random(&state));
    for (int i = 0; i < n; i++) {
        usleep((useconds_t)(next_random(&state) % (MOST_MS * 1000)));
        n_dead += !end_child(child[i % N_PROCESSES]);
        child[i % N_PROCESSES] = start_child(next_random(&state));
        last = (sums){.n_refused = s.n_refused};
        qn_cache_visit(root, add, &last, NULL);
        s = last;
        most = s.bytes > most ? s.bytes : most;
    }
    for (int i = 0; i < N_PROCESSES; i++)
        n_dead += !end_child(child[i]);
    tap_is_int(n_dead, 0,
               "every process lived until it was killed, and all its results were right");
    tap_is_int(s.n_refused, 0, "no entry was bad at any time");
    tap_ok(s.n > 0, "entries were written: %" PRId64 " at the end, at most %" PRId64 " bytes of %d",
           s.n, most, BOUND_BYTES);
    tap_note("%d processes of %d threads were killed", n, N_THREADS);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? tap_done() : 1;
}
