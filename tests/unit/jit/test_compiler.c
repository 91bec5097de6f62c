/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compiler.c: the compile threads with a code generator of the test's own, which hangs, spins,
 * dies, fails or gives nonsense; and the arena by itself.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GIVE_RETURN = 0, HANG, SPIN, BLOCK, NAP, DIE, FAIL, GIVE_NONSENSE, GIVE_NOTHING };
static _Atomic int behaviour, n_inside, n_thread_ends, n_compiles;
static atomic_bool may_leave; /* SPIN and BLOCK */

/** Takes its time, with the processor or without. */
static void linger(int what)
{
    if (what == HANG)
        usleep(600000);
    for (int i = 0; what == NAP && i < 50; i++)
        usleep(10000);
    while ((what == SPIN || what == BLOCK) && !atomic_load(&may_leave))
        if (what == BLOCK)
            usleep(1000);
}

/** Stands in for the code generator. Its code is one `ret`. */
static int fake_provider(qn_request *r)
{
    static const unsigned char code[] = {0xc3};
    int what = atomic_load(&behaviour);
    if (r->kind == QN_REQUEST_THREAD_END) {
        *r->thread_state = NULL;
        atomic_fetch_add(&n_thread_ends, 1);
    }
    if (r->kind != QN_REQUEST_COMPILE)
        return QN_OK;
    *r->thread_state = &behaviour;
    atomic_fetch_add(&n_inside, 1);
    atomic_fetch_add(&n_compiles, 1);
    linger(what);
    if (what == DIE)
        r->fatal(r->fatal_arg, "cannot select: nothing");
    if (what == FAIL) {
        snprintf(r->error.message, sizeof r->error.message, "it does not want to");
        atomic_fetch_sub(&n_inside, 1);
        return QN_ERR_CODEGEN;
    }
    if (what != GIVE_NOTHING)
        r->sink(r->sink_arg, QN_SINK_CODE, code, sizeof code);
    r->info = (qn_blob_info){
        .split_dim = -1, .granule = 1, .entry = what == GIVE_NONSENSE ? 17 : 0, .align = 16};
    atomic_fetch_sub(&n_inside, 1);
    return QN_OK;
}

static qn_context *fake_context_with(int what, int compile_ms)
{
    const qn_context_options o = {.bytes = sizeof o, .compile_ms = compile_ms};
    qn_context *c = context_with(&o);
    c->compiler.function = fake_provider;
    c->compiler.provider = QN_PROVIDER_READY;
    if (c->isa == 0)
        c->isa = QN_ISA_V3; /* no code is run but one `ret` */
    atomic_store(&behaviour, what);
    atomic_store(&may_leave, false);
    return c;
}

static qn_context *fake_context(int what)
{
    return fake_context_with(what, 200);
}

/** Lets the threads that were given up come back, and waits for them. */
static void let_leave(qn_context *c)
{
    atomic_store(&may_leave, true);
    for (int n = 1; n > 0; usleep(1000)) {
        qn__lock(c);
        n = c->compiler.n_strays;
        qn__unlock(c);
    }
}

static qn_status copy_as(qn_context *c, const qn_kernel *k, int64_t n, int engine, int specialize,
                         qn_error *err)
{
    qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = engine, .specialize = specialize};
    qn_status status = qn_launch(c, k, 2, args, &o, err);
    qn_view_release(&x);
    qn_view_release(&y);
    return status;
}

/** Each length is a version of its own, so that what becomes of one compile is seen by itself. */
static qn_status copy(qn_context *c, const qn_kernel *k, int64_t n, int engine, qn_error *err)
{
    return copy_as(c, k, n, engine, QN_SPECIALIZE_EXACT, err);
}

static void test_failures(const qn_kernel *k)
{
    const struct {
        int what, status;
        const char *part;
    } cases[] = {
        {FAIL, QN_ERR_CODEGEN, "it does not want to"},
        {GIVE_NONSENSE, QN_ERR_INTERNAL, "entry 17"},
        {GIVE_NOTHING, QN_ERR_INTERNAL, "0 bytes of code"},
    };
    for (int i = 0; i < 3; i++) {
        qn_context *c = fake_context(cases[i].what);
        qn_error err = {0};
        tap_is_int((int)copy(c, k, 8, QN_ENGINE_NATIVE, &err), cases[i].status,
                   "a failed compile is reported");
        tap_contains(err.message, cases[i].part, "with its reason");
        tap_contains(err.message, "qn_launch: kernel \"copy\"", "and where");
        tap_ok(copy(c, k, 8, QN_ENGINE_AUTO, &err) == QN_OK && counters_of(c).interpreted == 1,
               "AUTO interprets");
        tap_ok(history_has(c, cases[i].part), "the history says why");
        atomic_store(&behaviour, GIVE_RETURN);
        tap_ok(copy(c, k, 9, QN_ENGINE_NATIVE, &err) == QN_OK, "the next compile works: %s",
               err.message);
        qn_context_release(c);
    }
}

static void test_fatal(const qn_kernel *k)
{
    qn_context *c = fake_context(GIVE_RETURN);
    qn_error err = {0};
    tap_ok(copy(c, k, 8, QN_ENGINE_NATIVE, &err) == QN_OK, "a first version: %s", err.message);
    atomic_store(&behaviour, DIE);
    tap_ok(copy(c, k, 9, QN_ENGINE_NATIVE, &err) == QN_ERR_CODEGEN_FATAL,
           "a fatal error is reported");
    tap_contains(err.message, "cannot select: nothing", "with its reason");
    atomic_store(&behaviour, GIVE_RETURN);
    tap_ok(copy(c, k, 10, QN_ENGINE_NATIVE, &err) == QN_ERR_CODEGEN_FATAL,
           "the engine stays unusable");
    tap_ok(copy(c, k, 10, QN_ENGINE_AUTO, &err) == QN_OK, "AUTO interprets: %s", err.message);
    tap_ok(copy(c, k, 8, QN_ENGINE_NATIVE, &err) == QN_OK, "code that is there still runs");
    qn_context_release(c); /* while the thread that was given up is still inside */
}

/** A compile that takes too long, of processor time or of time in all. */
static void test_timeout(const qn_kernel *k, int what, int compile_ms, int least_ms)
{
    qn_context *c = fake_context_with(GIVE_RETURN, compile_ms);
    qn_error err = {0};
    tap_ok(copy(c, k, 8, QN_ENGINE_NATIVE, &err) == QN_OK, "a first version: %s", err.message);
    atomic_store(&behaviour, what);
    double start = qn__now_ms();
    tap_ok(copy(c, k, 9, QN_ENGINE_NATIVE, &err) == QN_ERR_COMPILE_TIMEOUT,
           "a timeout is reported");
    tap_contains(err.message, "kernel \"copy\": no code after", "with the kernel");
    tap_contains(err.message, "of processor time", "and what counts");
    double passed = qn__now_ms() - start;
    tap_ok(passed >= least_ms, "after %.0f ms, not before %d", passed, least_ms);
    int n = atomic_load(&n_compiles);
    tap_ok(copy(c, k, 9, QN_ENGINE_NATIVE, &err) == QN_ERR_COMPILE_TIMEOUT, "and again");
    tap_ok(copy(c, k, 9, QN_ENGINE_AUTO, &err) == QN_OK && counters_of(c).interpreted == 1,
           "AUTO interprets: %s", err.message);
    tap_is_int(atomic_load(&n_compiles), n, "nobody tries these arguments again");
    tap_is_int(counters_of(c).compile_retries, 1, "but once with the cheapest plan");
    atomic_store(&behaviour, GIVE_RETURN);
    tap_ok(copy(c, k, 10, QN_ENGINE_NATIVE, &err) == QN_OK, "other arguments get their code: %s",
           err.message);
    tap_ok(copy(c, k, 8, QN_ENGINE_NATIVE, &err) == QN_OK, "code that is there still runs");
    tap_is_int(counters_of(c).live_functions, 2, "what was given up is no live function");
    let_leave(c);
    qn_context_release(c);
}

/** Threads that do not come back stand in the way only as long as there are several. */
static void test_strays(const qn_kernel *k)
{
    enum { STRAYS = 4 };
    qn_context *c = fake_context_with(BLOCK, 10);
    qn_error err = {0};
    int n_timeouts = 0;
    for (int i = 0; i < STRAYS - 1; i++)
        n_timeouts += copy(c, k, 8 + i, QN_ENGINE_NATIVE, &err) == QN_ERR_COMPILE_TIMEOUT;
    tap_is_int(n_timeouts, STRAYS - 1, "each compile that hangs fails by itself");
    tap_is_int(counters_of(c).compile_retries, 1,
               "only the first one was begun again, which hangs, too");
    atomic_store(&behaviour, GIVE_RETURN);
    tap_ok(copy(c, k, 20, QN_ENGINE_NATIVE, &err) == QN_ERR_BUSY, "after several no more is begun");
    tap_contains(err.message, "4 compiles do not come to an end", "with the reason");
    tap_ok(copy(c, k, 20, QN_ENGINE_AUTO, &err) == QN_OK && counters_of(c).interpreted == 1,
           "AUTO interprets: %s", err.message);
    let_leave(c);
    tap_ok(copy(c, k, 20, QN_ENGINE_AUTO, &err) == QN_OK && counters_of(c).interpreted == 1 &&
               counters_of(c).compiles == 1,
           "when they have come back, code is generated: %s", err.message);
    tap_ok(copy(c, k, 8, QN_ENGINE_NATIVE, &err) == QN_ERR_COMPILE_TIMEOUT,
           "what hung is remembered");
    qn_context_release(c);
}

/** Compiles that could not begin are no reason for a dynamic version. */
static void test_not_begun(const qn_kernel *k)
{
    qn_context *c = fake_context_with(BLOCK, 10);
    qn_error err = {0};
    int n_timeouts = 0, n_wrong = 0;
    for (int i = 0; i < 3; i++)
        n_timeouts += copy(c, k, 8 + i, QN_ENGINE_NATIVE, &err) == QN_ERR_COMPILE_TIMEOUT;
    atomic_store(&behaviour, GIVE_RETURN);
    qn_kernel *other = kernel_of(SHIFT_TEXT);
    for (int i = 0; i < 3; i++)
        n_wrong += copy_as(c, other, 8 + i, QN_ENGINE_NATIVE, 0, &err) != QN_ERR_BUSY;
    tap_ok(n_timeouts == 3 && n_wrong == 0, "three sizes wait for room: %s", err.message);
    let_leave(c);
    for (int i = 0; i < 2; i++)
        n_wrong += copy_as(c, other, 8 + i, QN_ENGINE_NATIVE, 0, &err) != QN_OK;
    tap_ok(n_wrong == 0 && counters_of(c).dynamic_compiles == 0, "then two are exact: %s",
           err.message);
    n_wrong += copy_as(c, other, 10, QN_ENGINE_NATIVE, 0, &err) != QN_OK;
    tap_ok(n_wrong == 0 && counters_of(c).dynamic_compiles == 1, "and the third is dynamic: %s",
           err.message);
    qn_kernel_release(other);
    qn_context_release(c);
}

/** Memory of this process that is in use, in MiB. */
static double resident_mib(void)
{
    long n_pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &n_pages) != 2)
        n_pages = 0;
    if (file)
        fclose(file);
    return (double)n_pages / 256;
}

/** What a context with many versions took goes back to the system with it. */
static void test_memory_returns(const qn_kernel *k)
{
    enum { VERSIONS = 5000 };
    const double most_mib = 8;
    if (IS_SANITIZED) {
        tap_skip("a sanitizer keeps what is freed");
        return;
    }
    qn_context *c = fake_context(GIVE_RETURN);
    int n_good = copy(c, k, 1, QN_ENGINE_NATIVE, NULL) == QN_OK;
    double before = resident_mib();
    for (int64_t n = 2; n <= VERSIONS; n++)
        n_good += copy(c, k, n, QN_ENGINE_NATIVE, NULL) == QN_OK;
    tap_is_int(n_good, VERSIONS, "many versions");
    double during = resident_mib() - before;
    qn_context_release(c);
    double after = resident_mib() - before;
    tap_ok(during > 2 * most_mib && after < most_mib, "of %.0f MiB %.1f are left", during, after);
}

/** Time that a compile thread does not get is not held against the kernel. */
static void test_starved(const qn_kernel *k)
{
    qn_context *c = fake_context(HANG);
    qn_error err = {0};
    tap_ok(copy(c, k, 9, QN_ENGINE_NATIVE, &err) == QN_OK,
           "a compile that waits three times as long as the limit is waited for: %s", err.message);
    qn_context_release(c);
}

/** A process that is stopped during a compile for longer than any limit goes on afterwards. */
static void test_stopped(const qn_kernel *k)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        qn_context *c = fake_context_with(NAP, 100);
        _exit(copy(c, k, 9, QN_ENGINE_NATIVE, NULL) == QN_OK ? 0 : 1);
    }
    int status = -1;
    usleep(200000);
    kill(child, SIGSTOP);
    usleep(1500000);
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    tap_is_int(status, 0, "a process that was stopped meanwhile waits on");
}

/** In a child: no thread can be started, as there is no memory for its stack. 0 if all is well. */
static int run_without_thread(const qn_kernel *k)
{
    qn_context *c = fake_context(GIVE_RETURN);
    struct rlimit old, little;
    long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &n_pages) != 1 || getrlimit(RLIMIT_AS, &old) != 0)
        return 77;
    fclose(file);
    little = old;
    little.rlim_cur = (rlim_t)n_pages * 4096 + (8 << 20);
    if (setrlimit(RLIMIT_AS, &little) != 0)
        return 77;
    qn_error err = {0};
    if (copy(c, k, 8, QN_ENGINE_NATIVE, &err) != QN_ERR_MEMORY)
        return 1;
    if (!strstr(err.message, "no thread could be started"))
        return 2;
    if (copy(c, k, 8, QN_ENGINE_AUTO, &err) != QN_OK || counters_of(c).interpreted != 1)
        return 3;
    if (!history_has(c, "interpreted: QN_ERR_MEMORY"))
        return 4;
    setrlimit(RLIMIT_AS, &old);
    if (copy(c, k, 8, QN_ENGINE_AUTO, &err) != QN_OK || counters_of(c).interpreted != 1)
        return 5; /* the want of memory was held for lasting */
    return counters_of(c).compiles == 1 ? 0 : 6;
}

/** Before any other test: no stack of an earlier thread may lie ready. */
static void test_no_thread(const qn_kernel *k)
{
    if (IS_SANITIZED) {
        tap_skip("a sanitizer needs the address space");
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(run_without_thread(k));
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        tap_skip("the address space cannot be limited here");
    else
        tap_is_int(status, 0, "where no compile thread starts, AUTO interprets until one does");
}

typedef struct compiling {
    qn_context *c;
    const qn_kernel *k;
} compiling;

static void *compile_slowly(void *arg)
{
    const compiling *job = arg;
    copy(job->c, job->k, 9, QN_ENGINE_NATIVE, NULL);
    return NULL;
}

/** In a child: 0 if no context enters the code generator, old or new, and AUTO goes on. */
static int run_in_child(qn_context *other, const qn_kernel *k)
{
    if (copy(other, k, 8, QN_ENGINE_NATIVE, NULL) != QN_OK)
        return 1;
    if (copy(other, k, 9, QN_ENGINE_NATIVE, NULL) != QN_ERR_FORKED)
        return 2;
    qn_context *c = fake_context(GIVE_RETURN);
    if (copy(c, k, 9, QN_ENGINE_NATIVE, NULL) != QN_ERR_FORKED)
        return 3;
    if (copy(c, k, 9, QN_ENGINE_AUTO, NULL) != QN_OK)
        return 4;
    qn_context_release(c);
    return 0;
}

/** The code generator has locks for the whole process: a fork while one context is inside concerns
 * all. */
static void test_fork(const qn_kernel *k)
{
    qn_context *other = fake_context(GIVE_RETURN);
    tap_ok(copy(other, k, 8, QN_ENGINE_NATIVE, NULL) == QN_OK, "another context has code");
    compiling job = {.c = fake_context(HANG), .k = k};
    job.c->options.compile_ms = 5000;
    pthread_t thread;
    pthread_create(&thread, NULL, compile_slowly, &job);
    while (atomic_load(&n_inside) == 0)
        usleep(1000);
    atomic_store(&behaviour, GIVE_RETURN);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(run_in_child(other, k));
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap_is_int(status, 0, "a child forked while code is generated stays out of the code generator");
    pthread_join(thread, NULL);
    tap_ok(copy(other, k, 10, QN_ENGINE_NATIVE, NULL) == QN_OK, "the parent does not");
    qn_context_release(job.c);
    qn_context_release(other);
}

/** A slab that could not be separated from the parent's is not written any more. */
static void test_arena_fork(void)
{
    static const unsigned char code[] = {0xc3};
    qn_arena arena = {.is_dual = true};
    qn_blob first = {0}, second = {0};
    bool is_added = qn__arena_add(&arena, code, 1, &first, NULL) == QN_OK;
    qn__arena_forked(&arena);
    tap_ok(is_added && *(const unsigned char *)first.code == 0xc3, "code stays where it was");
    tap_ok(qn__arena_add(&arena, code, 1, &second, NULL) == QN_OK && second.slab == first.slab,
           "and the slab is in use");
    struct rlimit old, none = {0};
    getrlimit(RLIMIT_NOFILE, &old);
    none.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_NOFILE, &none); /* no further memory file */
    qn__arena_forked(&arena);
    setrlimit(RLIMIT_NOFILE, &old);
    qn_blob third = {0};
    tap_ok(qn__arena_add(&arena, code, 1, &third, NULL) == QN_OK && third.slab != first.slab,
           "a slab still shared with the parent is left alone");
    qn__arena_drop(&arena, &first);
    qn__arena_drop(&arena, &second);
    qn__arena_drop(&arena, &third);
    qn__arena_release(&arena);
}

static void test_arena(void)
{
    qn_arena arena = {0};
    enum { N_BLOBS = 700 };
    static qn_blob blob[N_BLOBS];
    static unsigned char code[3 * 4096];
    int n_wrong = 0;
    qn_error err = {0};
    for (int dual = 0; dual < 2; dual++) {
        arena.is_dual = dual;
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < N_BLOBS; i++) {
                size_t n = 1 + (size_t)(i * 37 % (int)sizeof code);
                memset(code, i + round, n);
                n_wrong += qn__arena_add(&arena, code, n, &blob[i], &err) != QN_OK;
                n_wrong += memcmp(blob[i].code, code, n) != 0;
                if (i >= 100 && i % 3) /* holes */
                    qn__arena_drop(&arena, &blob[i - 100]);
            }
            for (int i = 0; i < N_BLOBS; i++) {
                unsigned char first = (unsigned char)(i + round);
                n_wrong += blob[i].slab && *(const unsigned char *)blob[i].code != first;
                qn__arena_drop(&arena, &blob[i]);
            }
        }
    }
    tap_ok(n_wrong == 0, "blobs keep their bytes while others come and go: %s", err.message);
    tap_ok(qn__arena_add(&arena, code, 0, &blob[0], &err) == QN_ERR_INTERNAL, "no code is no blob");
    memset(&blob[0], 0, sizeof blob[0]);
    size_t large = (size_t)3 << 20;
    unsigned char *big = calloc(1, large);
    tap_ok(big && qn__arena_add(&arena, big, large, &blob[0], &err) == QN_OK,
           "a blob larger than a slab");
    qn__arena_drop(&arena, &blob[0]);
    free(big);
    qn__arena_release(&arena);
}

int main(void)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    test_no_thread(k);
    test_arena();
    test_arena_fork();
    test_fork(k);
    test_stopped(k);
    test_failures(k);
    test_starved(k);
    test_timeout(k, SPIN, 100, 100);
    test_timeout(k, BLOCK, 20, 200);
    test_strays(k);
    test_not_begun(k);
    test_memory_returns(k);
    test_fatal(k);
    tap_is_int(atomic_load(&n_inside), 1, "only the thread that met a fatal error is inside");
    tap_ok(atomic_load(&n_thread_ends) >= 5, "threads end what they began");
    qn_kernel_release(k);
    return tap_done();
}
