/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_provider.c: the one function between the two libraries, called as libquern calls it, but
 * without the runtime: a kernel text and a key go in, the code that comes out is run here. Both
 * loaders, both instruction sets, the texts, and requests of every kind of wrongness.
 */
#define _GNU_SOURCE
#include "jit/provider.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static const char saxpy[] = "kernel \"saxpy\" contract {\n"
                            "  view x: f32[1];\n"
                            "  view y: f32[1];\n"
                            "  scalar a: f32;\n"
                            "  %0: i64 = lower y, 0;\n"
                            "  %1: i64 = extent y, 0;\n"
                            "  %2: i64 = add %0, %1;\n"
                            "  %3: i64 = parallel %0, %2;\n"
                            "  %4: f32 = param a;\n"
                            "  %5: f32 = load x[%3];\n"
                            "  %6: f32 = load y[%3];\n"
                            "  %7: f32 = fma %4, %5, %6;\n"
                            "  store y[%3], %7;\n"
                            "}\n";

/* The parameters of the kernel above, and more in the code: constants, branches, a division. */
static const char branches[] = "kernel \"branches\" {\n"
                               "  view x: f32[1];\n"
                               "  view y: f32[1];\n"
                               "  scalar a: f32;\n"
                               "  %0: i64 = lower y, 0;\n"
                               "  %1: i64 = extent y, 0;\n"
                               "  %2: i64 = add %0, %1;\n"
                               "  %3: i64 = parallel %0, %2;\n"
                               "  %4: f32 = param a;\n"
                               "  %5: f32 = load x[%3];\n"
                               "  %6: bool = lt %5, %4;\n"
                               "  %7: f32 = if %6 {\n"
                               "    %8: f32 = sqrt %5;\n"
                               "    yield %8;\n"
                               "  } else {\n"
                               "    %9: i64 = cast %5;\n"
                               "    %10: i64 = div %9, %1;\n"
                               "    %11: f32 = cast %10;\n"
                               "    yield %11;\n"
                               "  };\n"
                               "  store y[%3], %7;\n"
                               "}\n";

enum { N = 1003 };

/* A kernel, its arguments, and what the runtime would make of them. */
typedef struct job {
    qn_kernel *kernel;
    float x[N], y[N];
    qn_view view[2];
    qn_arg arg[3];
    qn_facts facts;
    qn_text key;
    int64_t slots[256];
} job;

typedef struct received {
    qn_text part[5]; /* by QN_SINK_... */
} received;

static qn_provider_function provider;

static void receive(void *arg, int what, const void *data, size_t n)
{
    received *r = arg;
    qn__text_bytes(&r->part[what], data, n);
}

static void end_thread(void *arg, const char *reason)
{
    (void)arg;
    tap_note("fatal: %s", reason);
    pthread_exit(NULL);
}

static void release_received(received *r)
{
    for (int i = 0; i < 5; i++)
        qn__text_release(&r->part[i]);
}

static void release_job(job *j)
{
    qn__facts_release(&j->facts);
    qn__text_release(&j->key);
    qn_kernel_release(j->kernel);
    free(j);
}

static job *make_job_of(const char *text, int isa, bool all_dynamic)
{
    static const int64_t extents[1] = {N};
    job *j = calloc(1, sizeof *j);
    qn_error err = {0};
    qn_layout layout;
    qn_domain domain;
    qn_policy policy = {.all_dynamic = all_dynamic};
    qn_options options = {.bytes = sizeof options};
    if (!j)
        return NULL;
    for (int i = 0; i < N; i++) {
        j->x[i] = (float)i;
        j->y[i] = (float)(2 * i);
    }
    qn_status status = qn_kernel_parse(text, strlen(text), &j->kernel, &err);
    if (status == QN_OK)
        status = qn_layout_right(1, extents, &layout, &err);
    if (status == QN_OK)
        status = qn_view_wrap("x", j->x, QN_F32, &layout, 0, &j->view[0], &err);
    if (status == QN_OK)
        status = qn_view_wrap("y", j->y, QN_F32, &layout, 0, &j->view[1], &err);
    j->arg[0] = qn_arg_view(&j->view[0]);
    j->arg[1] = qn_arg_view(&j->view[1]);
    j->arg[2] = qn_arg_f32(3);
    qn_arg_value value[3] = {{.layout = &j->view[0].layout}, {.layout = &j->view[1].layout},
                             {.bits = j->arg[2].bits}};
    if (status == QN_OK)
        status = qn__domain(j->kernel, value, false, &domain, &err);
    uint8_t proved[3] = {0};
    if (status == QN_OK && !qn__prove_bounds(j->kernel, value, &domain, proved))
        status = qn__fail(&err, QN_ERR_INTERNAL, "bounds are not proved");
    if (status == QN_OK)
        status = qn__facts_collect(
            j->kernel, &(qn_launched){j->arg, &domain, proved, &options, &policy, isa, false},
            &j->facts, &err);
    if (status == QN_OK && j->facts.n_slots <= 256) {
        qn__key_encode(&j->facts, &j->key);
        qn__facts_fill(&j->facts, j->kernel, j->arg, j->slots);
        return j;
    }
    tap_ok(false, "arguments of the test: %s", err.message);
    release_job(j);
    return NULL;
}

static job *make_job(int isa, bool all_dynamic)
{
    return make_job_of(saxpy, isa, all_dynamic);
}

static qn_request make_request(const job *j, int loader, void **thread_state, received *r)
{
    return (qn_request){.bytes = sizeof(qn_request),
                        .build_id = QN_BUILD_ID,
                        .kind = QN_REQUEST_COMPILE,
                        .loader = loader,
                        .kernel = j->kernel->canonical,
                        .kernel_bytes = j->kernel->canonical_bytes,
                        .key = j->key.data,
                        .key_bytes = j->key.n,
                        .thread_state = thread_state,
                        .sink = receive,
                        .sink_arg = r,
                        .fatal = end_thread};
}

static void end_state(void **thread_state)
{
    qn_request r = {.bytes = sizeof r, .build_id = QN_BUILD_ID, .kind = QN_REQUEST_THREAD_END,
                    .thread_state = thread_state};
    tap_ok(provider(&r) == QN_OK && !*thread_state, "the thread's state is freed");
}

/* The code of a job. A state of its own is made and freed if there is none. */
static void compile_job(const job *j, void **kept, received *got)
{
    void *own = NULL;
    qn_request r = make_request(j, QN_LOADER_ARENA, kept ? kept : &own, got);
    if (provider(&r) != QN_OK)
        tap_ok(false, "%s", r.error.message);
    r.kind = QN_REQUEST_THREAD_END;
    if (!kept)
        provider(&r);
}

/* A thread keeps its passes: they give the same code for a kernel whatever they have compiled
 * before. */
static void test_kept(void)
{
    enum { N_JOBS = 12, N_ROUNDS = 3 };
    static const int isas[3] = {QN_ISA_V3, QN_ISA_V4, QN_ISA_SM80};
    void *state = NULL;
    int n_same = 0;
    for (int i = 0; i < N_JOBS * N_ROUNDS; i++) {
        job *j = make_job_of(i & 1 ? saxpy : branches, isas[i / 4 % 3], (i & 2) != 0);
        received kept = {0}, fresh = {0};
        if (!j)
            continue;
        compile_job(j, &state, &kept);
        compile_job(j, NULL, &fresh);
        const qn_text *a = &kept.part[QN_SINK_CODE], *b = &fresh.part[QN_SINK_CODE];
        n_same += a->n > 0 && a->n == b->n && memcmp(a->data, b->data, a->n) == 0;
        release_received(&kept);
        release_received(&fresh);
        release_job(j);
    }
    tap_is_int(n_same, N_JOBS * N_ROUNDS,
               "code does not depend on what the thread compiled before");
    end_state(&state);
}

/* Calls the entry over the whole range and compares all elements. */
static bool runs_right(job *j, qn_entry entry)
{
    const int64_t range[2] = {0, N};
    qn_fault fault;
    qn__fault_clear(&fault, &qn__never);
    entry(j->slots, range, &fault);
    for (int i = 0; i < N; i++)
        if (j->y[i] != (float)(5 * i))
            return false;
    return fault.status == 0;
}

static void *map_code(const qn_text *code)
{
    void *p = mmap(NULL, code->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    memcpy(p, code->data, code->n);
    return mprotect(p, code->n, PROT_READ | PROT_EXEC) == 0 ? p : NULL;
}

static void test_arena(int isa, bool all_dynamic)
{
    job *j = make_job(isa, all_dynamic);
    if (!j)
        return;
    void *state = NULL;
    received got = {0};
    qn_request r = make_request(j, QN_LOADER_ARENA, &state, &got);
    int status = provider(&r);
    if (!tap_ok(status == QN_OK, "isa %d, %s: compiles", isa, all_dynamic ? "dynamic" : "exact"))
        tap_note("%s", r.error.message);
    const qn_text *code = &got.part[QN_SINK_CODE];
    tap_ok(code->n > 0 && r.info.entry < code->n && r.info.align >= 16, "... gives code");
    tap_ok(!got.part[QN_SINK_PLAN].n && !got.part[QN_SINK_LLVM].n,
           "... and nothing that was not wanted");
    bool can_run =
        isa == QN_ISA_V3 ? __builtin_cpu_supports("avx2") : __builtin_cpu_supports("avx512vl");
    void *p = can_run && code->n ? map_code(code) : NULL;
    if (p) {
        char *at = (char *)p + r.info.entry;
        qn_entry entry;
        memcpy(&entry, &at, sizeof at);
        tap_ok(runs_right(j, entry), "... which runs");
        munmap(p, code->n);
    } else {
        tap_skip("the processor lacks the instruction set, or executable memory is denied");
    }
    end_state(&state);
    release_received(&got);
    release_job(j);
}

static void test_orc(void)
{
    job *j = make_job(QN_ISA_V3, false);
    if (!j)
        return;
    if (!__builtin_cpu_supports("avx2")) {
        tap_skip("no AVX2");
        release_job(j);
        return;
    }
    void *state = NULL;
    received got = {0};
    qn_request r = make_request(j, QN_LOADER_ORC, &state, &got), second = r;
    int status = provider(&r);
    if (!tap_ok(status == QN_OK && r.orc_entry && r.orc_handle, "orc loads"))
        tap_note("%s", r.error.message);
    status = provider(&second);
    tap_ok(status == QN_OK && second.orc_entry && second.orc_entry != r.orc_entry,
           "... a second copy too");
    r.kind = QN_REQUEST_FREE;
    tap_ok(provider(&r) == QN_OK && !r.orc_handle, "... drops the first");
    tap_ok(second.orc_entry && runs_right(j, second.orc_entry), "... and the second runs");
    second.kind = QN_REQUEST_FREE;
    tap_ok(provider(&second) == QN_OK && provider(&second) == QN_OK, "dropping twice is harmless");
    end_state(&state);
    release_received(&got);
    release_job(j);
}

static void test_texts(void)
{
    static const char *const part[5] = {NULL, "", "define void @quern_kernel", "quern_kernel:", ""};
    job *j = make_job(QN_ISA_V3, false);
    if (!j)
        return;
    void *state = NULL;
    received got = {0};
    qn_request r = make_request(j, QN_LOADER_ARENA, &state, &got);
    r.texts = QN_DUMP_KEY | QN_DUMP_PLAN | QN_DUMP_LLVM | QN_DUMP_ASM;
    tap_is_int(provider(&r), QN_OK, "compiles with texts");
    for (int i = QN_SINK_PLAN; i <= QN_SINK_KEY; i++)
        tap_ok(got.part[i].n > 0 && strstr(got.part[i].data, part[i]), "text %d", i);
    tap_ok(got.part[QN_SINK_ASM].n && strstr(got.part[QN_SINK_ASM].data, "vfmadd"),
           "an fma is one");
    tap_ok(got.part[QN_SINK_ASM].n && !strstr(got.part[QN_SINK_ASM].data, "call"), "no calls");
    end_state(&state);
    release_received(&got);
    release_job(j);
}

/* Every wrong request gets its status, and a message where there is a place for one. */
static void test_wrong(void)
{
    job *j = make_job(QN_ISA_V3, false);
    if (!j)
        return;
    void *state = NULL;
    received got = {0};
    const qn_request good = make_request(j, QN_LOADER_ARENA, &state, &got);
    tap_is_int(provider(NULL), QN_ERR_ARGUMENT, "no request");
    qn_request r = good;
    r.bytes--;
    tap_is_int(provider(&r), QN_ERR_VERSION, "a request of another size");
    r = good;
    r.build_id = "other";
    tap_is_int(provider(&r), QN_ERR_VERSION, "another build");
    tap_contains(r.error.message, "called as other", "... named");
    r = good;
    r.build_id = NULL;
    tap_is_int(provider(&r), QN_ERR_VERSION, "no build");
    r = good;
    r.kind = 99;
    tap_is_int(provider(&r), QN_ERR_ARGUMENT, "unknown kind");
    r = good;
    r.loader = QN_LOADER_AUTO;
    tap_is_int(provider(&r), QN_ERR_ARGUMENT, "unknown loader");
    r = good;
    r.fatal = NULL;
    tap_is_int(provider(&r), QN_ERR_ARGUMENT, "no fatal function");
    r = good;
    r.kernel = "kernel \"k\" { nonsense }";
    r.kernel_bytes = strlen(r.kernel);
    tap_is_int(provider(&r), QN_ERR_PARSE, "not a kernel");
    r = good;
    r.kernel = "kernel \"k\" { view p0: f32[1]; %0: i64 = const 0; %1: i64 = const 1; %2: i64 = "
               "parallel %0, %1;"
               " %3: f32 = load p0[%2]; store p0[%2], %3; }";
    r.kernel_bytes = strlen(r.kernel);
    tap_is_int(provider(&r), QN_ERR_INTERNAL, "key of another kernel");
    int n_accepted = 0;
    for (size_t n = 0; n < good.key_bytes; n++) {
        r = good;
        r.key_bytes = n;
        n_accepted += provider(&r) == QN_OK || !r.error.message[0];
    }
    tap_is_int(n_accepted, 0, "a key cut anywhere is refused");
    tap_is_int((int64_t)got.part[QN_SINK_CODE].n, 0, "no code came of all that");
    r = good;
    tap_is_int(provider(&r), QN_OK, "the good request still works");
    end_state(&state);
    release_received(&got);
    release_job(j);
}

/* Compiles from several threads at once, with both loaders. */
static void *compile_often(void *arg)
{
    job *j = make_job(QN_ISA_V3, arg != NULL);
    void *state = NULL;
    intptr_t n_failed = j == NULL;
    for (int i = 0; j && i < 20; i++) {
        received got = {0};
        qn_request r = make_request(j, i % 2 ? QN_LOADER_ORC : QN_LOADER_ARENA, &state, &got);
        n_failed += provider(&r) != QN_OK;
        r.kind = QN_REQUEST_FREE;
        n_failed += provider(&r) != QN_OK;
        release_received(&got);
    }
    if (j) {
        qn_request r = {.bytes = sizeof r, .build_id = QN_BUILD_ID, .kind = QN_REQUEST_THREAD_END,
                        .thread_state = &state};
        n_failed += provider(&r) != QN_OK;
        release_job(j);
    }
    return (void *)n_failed;
}

static void test_threads(void)
{
    pthread_t thread[4];
    intptr_t n_failed = 0;
    for (int i = 0; i < 4; i++)
        n_failed += pthread_create(&thread[i], NULL, compile_often, i % 2 ? &thread[i] : NULL) != 0;
    for (int i = 0; i < 4 && n_failed == 0; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        n_failed += (intptr_t)result;
    }
    tap_is_int(n_failed, 0, "4 threads, 20 compiles each");
}

int main(void)
{
    const char *path = getenv("QUERN_PROVIDER");
    void *library = dlopen(path ? path : QN_BUILD_DIR "/libquern-llvm.so", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, QN_PROVIDER_SYMBOL) : NULL;
    if (!tap_ok(symbol != NULL, "the provider opens")) {
        tap_note("%s", dlerror());
        return tap_done();
    }
    memcpy(&provider, &symbol, sizeof symbol);
    qn_request start = {.bytes = sizeof start, .build_id = QN_BUILD_ID, .kind = QN_REQUEST_START};
    tap_is_int(provider(&start), QN_OK, "start");
    for (int all_dynamic = 0; all_dynamic < 2; all_dynamic++) {
        test_arena(QN_ISA_V3, all_dynamic);
        test_arena(QN_ISA_V4, all_dynamic);
    }
    test_kept();
    test_orc();
    test_texts();
    test_wrong();
    test_threads();
    return tap_done();
}
