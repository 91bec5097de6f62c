/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_allocator.c: memory of views and launches of a context: functions of the program give it,
 * bounds hold it, counters count it. Storage may outlive its context, and so must what counts it.
 */
#include "tests/unit/launch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { N_THREADS = 4, N_TURNS = 2000 };

/* ---------------------------------------------------------------- functions of a program */

/** What the functions were asked for. */
typedef struct giver {
    _Atomic int64_t n_given, n_taken, bytes, alignment; /* alignment: the last */
    _Atomic int64_t n_wrong;                            /* taken back with other sizes than given */
    atomic_bool is_empty;                               /* gives nothing any more */
} giver;

/** In front of what is given: what was asked for, in room of one alignment. */
typedef struct label {
    size_t bytes, alignment;
} label;

static void *give(void *arg, size_t bytes, size_t alignment)
{
    giver *g = arg;
    char *p = NULL;
    if (!atomic_load(&g->is_empty))
        p = aligned_alloc(alignment, (bytes + 2 * alignment - 1) / alignment * alignment);
    if (!p)
        return NULL;
    *(label *)(void *)p = (label){bytes, alignment};
    memset(p + alignment, 0xa5, bytes);
    atomic_fetch_add(&g->n_given, 1);
    atomic_fetch_add(&g->bytes, (int64_t)bytes);
    atomic_store(&g->alignment, (int64_t)alignment);
    return p + alignment;
}

static void take(void *arg, void *memory, size_t bytes, size_t alignment)
{
    giver *g = arg;
    label *l = (label *)(void *)((char *)memory - alignment);
    if (l->bytes != bytes || l->alignment != alignment)
        atomic_fetch_add(&g->n_wrong, 1);
    atomic_fetch_add(&g->n_taken, 1);
    atomic_fetch_sub(&g->bytes, (int64_t)bytes);
    free(l);
}

static bool is_all_zero(const qn_view *v, size_t bytes)
{
    const char *p = v->data;
    for (size_t i = 0; i < bytes; i++)
        if (p[i])
            return false;
    return true;
}

static void test_views(void)
{
    giver g = {0};
    const qn_allocator a = {give, take, &g};
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 2, .allocator = &a};
    qn_context *c = context_with(&o);
    const int64_t large = 1 << 20, aligned = 4096;
    qn_view small = vector_of(c, "small", QN_F32, 5), huge = vector_of(c, "huge", QN_F32, large),
            made = {0};
    tap_is_int(g.n_given, 2, "functions of the program give memory of small and large views");
    tap_ok(is_all_zero(&small, 5 * sizeof(float)) &&
               is_all_zero(&huge, (size_t)large * sizeof(float)),
           "... which is zeroed");
    qn_view_type type;
    const qn_alloc_options options = {
        .bytes = sizeof options, .label = "made", .alignment = aligned, .executor = QN_THREADS};
    qn_error err = {0};
    qn_view_type_init(QN_F32, 1, NULL, QN_FAMILY_ANY, &type, &err);
    qn_status status = qn_view_create(c, &type, 1, &large, &options, &made, &err);
    tap_ok(status == QN_OK && (uintptr_t)made.data % (uintptr_t)aligned == 0 &&
               g.alignment == aligned,
           "an alignment is asked for: %s", err.message);
    tap_ok(status == QN_OK && is_all_zero(&made, (size_t)large * sizeof(float)),
           "... and threads zero a large view");
    tap_is_int(counters_of(c).data_bytes, g.bytes, "the counter is what was given");
    qn_view_release(&small);
    qn_view_release(&made);
    tap_is_int(counters_of(c).data_bytes, g.bytes, "... also when some is back");
    tap_ok(counters_of(c).data_peak_bytes > g.bytes, "the peak stays");
    qn_context_release(c);
    tap_ok(g.n_taken == 2, "a view outlives its context");
    qn_view_release(&huge);
    tap_ok(g.n_taken == 3 && g.bytes == 0 && g.n_wrong == 0,
           "all comes back, with sizes and alignments as asked for");
}

/** y = sum of x by threads: each block has a result of its own in scratch. */
static const char sum_text[] = "kernel \"sum\" {\n view x: f64[1]; view y: f64[0];\n %0: i64 = "
                               "const 0; %1: i64 = extent x, 0;\n"
                               " %2: i64 = reduction %0, %1;\n %3: f64 = reduce sum over %2 { %4: "
                               "f64 = load x[%2]; yield %4; };\n"
                               " store y[], %3;\n}\n";

static void test_scratch(void)
{
    giver g = {0};
    const qn_allocator a = {give, take, &g};
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 3, .allocator = &a};
    qn_context *c = context_with(&o);
    qn_kernel *k = kernel_of(sum_text);
    const int64_t n = 5000000; /* more blocks than the frame of a launch on one thread holds */
    qn_view x = vector_of(c, "x", QN_F64, n), y = {0};
    qn_error err = {0};
    qn_view_new(c, "y", QN_F64, 0, NULL, &y, &err);
    for (int64_t i = 0; i < n; i++)
        ((double *)x.data)[i] = 1;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    for (int executor = QN_SERIAL; executor <= QN_THREADS; executor++) {
        const qn_options launch = {
            .bytes = sizeof launch, .engine = QN_ENGINE_NATIVE, .executor = executor};
        int64_t before = g.n_given;
        qn_status status = qn_launch(c, k, 2, args, &launch, &err);
        tap_ok(status == QN_OK && *(double *)y.data == (double)n && g.n_given == before + 1 &&
                   g.n_taken == g.n_given - 2,
               "scratch of a launch is given and comes back, executor %d: %s", executor,
               err.message);
        atomic_store(&g.is_empty, true);
        status = qn_launch(c, k, 2, args, &launch, &err);
        tap_ok(status == QN_ERR_MEMORY, "... without it: %s", err.message);
        atomic_store(&g.is_empty, false);
    }
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    tap_is_int(g.bytes, 0, "nothing is kept");
}

static void test_refusals(void)
{
    giver g = {.is_empty = true};
    qn_error err = {0};
    qn_context *c = NULL;
    const qn_allocator half = {give, NULL, NULL}, empty = {give, take, &g};
    qn_context_options o = {.bytes = sizeof o, .allocator = &half};
    tap_ok(qn_context_new(&o, &c, &err) == QN_ERR_ARGUMENT, "an allocator needs both functions: %s",
           err.message);
    o.allocator = &empty;
    c = context_with(&o);
    qn_view v = {0};
    const int64_t n = 10;
    tap_ok(qn_view_new(c, "none", QN_F32, 1, &n, &v, &err) == QN_ERR_MEMORY,
           "one that gives nothing: %s", err.message);
    tap_is_int(counters_of(c).data_bytes, 0, "... and nothing is counted");
    qn_context_release(c);
}

/* ---------------------------------------------------------------- bounds */

static void test_data_bound(void)
{
    const qn_context_options o = {.bytes = sizeof o, .data_bytes = 4096};
    qn_context *c = context_with(&o);
    qn_error err = {0};
    qn_view a = vector_of(c, "a", QN_F32, 512), b = {0}, other = {0};
    const int64_t n = 513, left = 512;
    qn_status status = qn_view_new(c, "b", QN_F32, 1, &n, &b, &err);
    tap_ok(status == QN_ERR_MEMORY, "more than the bound is refused");
    tap_contains(err.message,
                 "view \"b\": no memory for 2052 bytes in space host: data_bytes of the context is "
                 "4096, of which 2048",
                 "... with the numbers");
    tap_is_int(qn_view_new(c, "b", QN_F32, 1, &left, &b, &err), QN_OK, "what is left can be had");
    qn_view_release(&a);
    qn_view_release(&b);
    tap_is_int(qn_view_new(c, "b", QN_F32, 1, &n, &b, &err), QN_OK,
               "what was released can be had again");
    tap_is_int(qn_view_new(NULL, "c", QN_F32, 1, &n, &other, &err), QN_OK,
               "a view without a context has no bound");
    qn_view_release(&other);
    qn_view_release(&b);
    qn_context_release(c);
}

static void *take_turns(void *arg)
{
    qn_context *c = arg;
    const int64_t n = 256; /* 1 KiB */
    for (int i = 0; i < N_TURNS; i++) {
        qn_view v = {0};
        if (qn_view_new(c, "v", QN_F32, 1, &n, &v, NULL) == QN_OK)
            qn_view_release(&v);
    }
    return NULL;
}

static void test_many_threads(void)
{
    const qn_context_options o = {.bytes = sizeof o, .data_bytes = 2048};
    qn_context *c = context_with(&o);
    pthread_t thread[N_THREADS];
    int n = 0;
    for (; n < N_THREADS; n++)
        if (pthread_create(&thread[n], NULL, take_turns, c))
            break;
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    qn_counters counters = counters_of(c);
    tap_ok(n == N_THREADS && counters.data_bytes == 0 && counters.data_peak_bytes >= 1024 &&
               counters.data_peak_bytes <= 2048,
           "%d threads stay below the bound: %lld bytes at most", n,
           (long long)counters.data_peak_bytes);
    qn_context_release(c);
}

static void test_code_bound(void)
{
    const qn_context_options o = {.bytes = sizeof o, .code_bytes = 3 * 4096};
    qn_context *c = context_with(&o);
    qn_kernel *k = kernel_of(COPY_TEXT);
    int64_t most = 0;
    int n_bad = 0;
    for (int64_t n = 1; n <= 6; n++) {
        qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
        fill_f32(&x, 1, 1);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
        const qn_options launch = {
            .bytes = sizeof launch, .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_EXACT};
        n_bad += qn_launch(c, k, 2, args, &launch, NULL) != QN_OK ||
                 ((float *)y.data)[n - 1] != (float)n;
        qn_counters now = counters_of(c);
        most = now.code_bytes > most ? now.code_bytes : most;
        qn_view_release(&x);
        qn_view_release(&y);
    }
    qn_counters counters = counters_of(c);
    tap_ok(n_bad == 0 && most == 3 * 4096,
           "code of 6 versions, a page each, stays below a bound of 3 pages: %lld bytes",
           (long long)most);
    tap_ok(counters.evictions == 3 && counters.live_functions == 3,
           "... as the oldest versions are dropped");
    qn_kernel_release(k);
    qn_context_release(c);
}

/** Large views begin at different places of a page, so that loads of one do not wait for stores to
 * another. */
static void test_places(void)
{
    enum { N = 5 };
    const int64_t n = 1 << 19; /* of f32: 2 MiB, one huge page */
    qn_context *c = context_with(NULL);
    qn_view v[N];
    uintptr_t at[N];
    int n_near = 0, n_wrong = 0;
    for (int i = 0; i < N; i++) {
        v[i] = vector_of(c, "x", QN_F32, n);
        at[i] = (uintptr_t)v[i].data % 4096;
        n_wrong += at[i] % 64 != 0 || !is_all_zero(&v[i], (size_t)n * sizeof(float));
        for (int j = 0; j < i; j++) {
            uintptr_t apart = (at[i] - at[j]) % 4096;
            n_near += apart < 512 || apart > 4096 - 512;
        }
        memset(v[i].data, 1, (size_t)n * sizeof(float));
    }
    tap_is_int(n_near, 0, "five large views in turn begin 512 bytes of a page apart, or more");
    tap_is_int(n_wrong, 0, "... at cache lines, zeroed to their end");
    for (int i = 0; i < N; i++)
        qn_view_release(&v[i]);
    qn_context_release(c);
}

int main(void)
{
    char reason[600];
    test_views();
    test_places();
    test_refusals();
    test_data_bound();
    test_many_threads();
    if (has_x86(reason, sizeof reason)) {
        test_scratch();
        test_code_bound();
    } else {
        tap_skip(reason);
    }
    return tap_done();
}
