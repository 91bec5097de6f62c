/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compiler.c: the compile threads with a code generator of the test's own, which hangs, dies,
 * fails or gives nonsense; and the arena by itself.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/unit/launch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GIVE_RETURN = 0, HANG, DIE, FAIL, GIVE_NONSENSE, GIVE_NOTHING };
static _Atomic int behaviour, n_inside, n_thread_ends;

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
    if (what == HANG)
        usleep(600000);
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

static qn_context *fake_context(int what)
{
    const qn_context_options o = {.bytes = sizeof o, .compile_ms = 200};
    qn_context *c = context_with(&o);
    c->compiler.function = fake_provider;
    c->compiler.provider = QN_PROVIDER_READY;
    if (c->isa == 0)
        c->isa = QN_ISA_V3; /* no code is run but one `ret` */
    atomic_store(&behaviour, what);
    return c;
}

static qn_status copy(qn_context *c, const qn_kernel *k, int64_t n, int engine, qn_error *err)
{
    qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    qn_status status = qn_launch(c, k, 2, args, &o, err);
    qn_view_release(&x);
    qn_view_release(&y);
    return status;
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
        tap_is_int((int)copy(c, k, 8, QN_ENGINE_X86, &err), cases[i].status,
                   "a failed compile is reported");
        tap_contains(err.message, cases[i].part, "with its reason");
        tap_contains(err.message, "qn_launch: kernel \"copy\"", "and where");
        tap_ok(copy(c, k, 8, QN_ENGINE_AUTO, &err) == QN_OK && counters_of(c).interpreted == 1,
               "AUTO interprets");
        tap_ok(history_has(c, cases[i].part), "the history says why");
        atomic_store(&behaviour, GIVE_RETURN);
        tap_ok(copy(c, k, 9, QN_ENGINE_X86, &err) == QN_OK, "the next compile works: %s",
               err.message);
        qn_context_release(c);
    }
}

static void test_unusable(const qn_kernel *k, int what, qn_status status, const char *part)
{
    qn_context *c = fake_context(GIVE_RETURN);
    qn_error err = {0};
    tap_ok(copy(c, k, 8, QN_ENGINE_X86, &err) == QN_OK, "a first version: %s", err.message);
    atomic_store(&behaviour, what);
    double start = qn__now_ms();
    tap_ok(copy(c, k, 9, QN_ENGINE_X86, &err) == status, "%s is reported",
           qn_status_name((int)status));
    tap_contains(err.message, part, "with its reason");
    tap_ok(qn__now_ms() - start < 450, "in time");
    atomic_store(&behaviour, GIVE_RETURN);
    tap_ok(copy(c, k, 10, QN_ENGINE_X86, &err) == status, "the engine stays unusable");
    tap_ok(copy(c, k, 10, QN_ENGINE_AUTO, &err) == QN_OK, "AUTO interprets: %s", err.message);
    tap_ok(copy(c, k, 8, QN_ENGINE_X86, &err) == QN_OK, "code that is there still runs");
    qn_context_release(c); /* while the thread that was given up is still inside */
}

static void test_timeout_queue(const qn_kernel *k)
{
    qn_context *c = fake_context(HANG);
    c->options.compile_ms = 2000;
    qn_error err = {0};
    tap_ok(copy(c, k, 9, QN_ENGINE_X86, &err) == QN_OK,
           "a slow compile within the limit is waited for: %s", err.message);
    qn_context_release(c);
}

typedef struct compiling {
    qn_context *c;
    const qn_kernel *k;
} compiling;

static void *compile_slowly(void *arg)
{
    const compiling *job = arg;
    copy(job->c, job->k, 9, QN_ENGINE_X86, NULL);
    return NULL;
}

/** In a child: 0 if no context enters the code generator, old or new, and AUTO goes on. */
static int run_in_child(qn_context *other, const qn_kernel *k)
{
    if (copy(other, k, 8, QN_ENGINE_X86, NULL) != QN_OK)
        return 1;
    if (copy(other, k, 9, QN_ENGINE_X86, NULL) != QN_ERR_FORKED)
        return 2;
    qn_context *c = fake_context(GIVE_RETURN);
    if (copy(c, k, 9, QN_ENGINE_X86, NULL) != QN_ERR_FORKED)
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
    tap_ok(copy(other, k, 8, QN_ENGINE_X86, NULL) == QN_OK, "another context has code");
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
    tap_ok(copy(other, k, 10, QN_ENGINE_X86, NULL) == QN_OK, "the parent does not");
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
    test_arena();
    test_arena_fork();
    test_fork(k);
    test_failures(k);
    test_timeout_queue(k);
    test_unusable(k, HANG, QN_ERR_COMPILE_TIMEOUT, "no code after 200 ms");
    test_unusable(k, DIE, QN_ERR_CODEGEN_FATAL, "cannot select: nothing");
    usleep(700000); /* the hung thread comes back and cleans up */
    tap_is_int(atomic_load(&n_inside), 1, "only the thread that met a fatal error is inside");
    tap_ok(atomic_load(&n_thread_ends) >= 5, "threads end what they began");
    qn_kernel_release(k);
    return tap_done();
}
