/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cache.c: versions of kernels: keys that are equal share code, the bound in bytes, what the
 * policy does after many shapes, the history's reasons, and the ladder of engines when no code can
 * be had.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <unistd.h>

typedef struct job {
    qn_context *c;
    qn_kernel *k;
} job;

/** Scales a matrix of these extents (row stride 0: dense) and checks the result. */
static qn_status scale(const job *j, int64_t rows, int64_t columns, int64_t row_stride,
                       const qn_options *o, qn_error *err)
{
    const int64_t extents[] = {rows, columns}, strides[] = {row_stride ? row_stride : columns, 1};
    qn_layout l;
    qn_layout_strided(2, extents, strides, &l, NULL);
    qn_view a = {0}, b = {0};
    qn_status status = qn_view_alloc(j->c, "a", QN_F64, &l, 0, &a, err);
    if (status == QN_OK)
        status = qn_view_alloc(j->c, "b", QN_F64, &l, 0, &b, err);
    for (int64_t i = 0; i < qn_layout_span(&l) && status == QN_OK; i++)
        ((double *)a.data)[i] = (double)i;
    const qn_arg args[] = {qn_arg_view(&a), qn_arg_view(&b), qn_arg_f64(3)};
    if (status == QN_OK)
        status = qn_launch(j->c, j->k, 3, args, o, err);
    for (int64_t r = 0; r < rows && status == QN_OK; r++)
        for (int64_t i = 0; i < columns; i++)
            if (((double *)b.data)[r * strides[0] + i] != 3.0 * (double)(r * strides[0] + i))
                status = QN_ERR_INTERNAL;
    qn_view_release(&a);
    qn_view_release(&b);
    return status;
}

static job open_job(const qn_context_options *o)
{
    return (job){context_with(o), kernel_of(SCALE_TEXT)};
}

static void close_job(job *j)
{
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

static void test_policy(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    int n_failed = 0;
    for (int64_t i = 0; i < 2; i++)
        n_failed += scale(&j, 5, 100 + i, 0, NULL, &err) != QN_OK;
    tap_ok(n_failed == 0 && counters_of(j.c).compiles == 2 &&
               counters_of(j.c).dynamic_compiles == 0,
           "two shapes, two exact versions");
    tap_ok(history_has(j.c, "scale: first version; exact"), "the first has no other reason");
    tap_ok(history_has(j.c, "extent 1 of view a: 101, was 100; exact"),
           "the other has the extent that changed");
    for (int64_t i = 2; i < 200; i++)
        n_failed += scale(&j, 5, 100 + i, 0, NULL, &err) != QN_OK;
    qn_counters n = counters_of(j.c);
    tap_ok(n_failed == 0, "198 further shapes run: %s", err.message);
    tap_ok(n.dynamic_compiles >= 1 && n.dynamic_compiles <= 12 &&
               n.compiles - n.dynamic_compiles == 2,
           "with a few dynamic versions");
    tap_note("%" PRId64 " dynamic versions", n.dynamic_compiles);
    tap_ok(history_has(j.c, "dynamic extents"), "the history says so");
    int64_t before = n.compiles;
    tap_ok(scale(&j, 5, 101, 0, NULL, &err) == QN_OK && counters_of(j.c).compiles == before,
           "exact versions stay in use");
    tap_ok(scale(&j, 9, 333, 0, NULL, &err) == QN_OK,
           "another extent varies: a version for that: %s", err.message);
    for (int64_t i = 1; i < 40; i++)
        n_failed += scale(&j, 9, 100, 100 + i, NULL, &err) != QN_OK;
    tap_ok(n_failed == 0 && counters_of(j.c).compiles < before + 24,
           "varying strides become dynamic as well");
    tap_note("%" PRId64 " compiles", counters_of(j.c).compiles);
    const qn_options exact = {.bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT};
    before = counters_of(j.c).compiles;
    tap_ok(scale(&j, 3, 77, 0, &exact, &err) == QN_OK && counters_of(j.c).compiles == before + 1,
           "exact versions can be asked for");
    close_job(&j);
}

static void test_dynamic(void)
{
    job j = open_job(NULL);
    const qn_options o = {.bytes = sizeof o, .specialize = QN_SPECIALIZE_DYNAMIC};
    qn_error err = {0};
    int n_failed = 0;
    for (int64_t i = 0; i < 40; i++)
        n_failed += scale(&j, 3 + i % 7, 64 * (1 + i), 0, &o, &err) != QN_OK;
    tap_ok(n_failed == 0 && counters_of(j.c).compiles == 1,
           "one dynamic version serves all shapes of one alignment");
    tap_is_int(counters_of(j.c).dynamic_compiles, 1, "and is counted as such");
    close_job(&j);
}

/** What is known of many shapes does not push out the code that serves them all. */
static void test_shapes_spare_code(void)
{
    const qn_context_options small = {.bytes = sizeof small, .cache_bytes = 100000};
    job j = open_job(&small);
    const qn_options o = {.bytes = sizeof o, .specialize = QN_SPECIALIZE_DYNAMIC};
    qn_error err = {0};
    int n_failed = 0;
    for (int64_t i = 0; i < 400; i++) {
        job other = {j.c, kernel_of(COPY_TEXT)};
        qn_view x = vector_of(j.c, "x", QN_F32, 64), y = vector_of(j.c, "y", QN_F32, 64);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
        n_failed += scale(&j, 3 + i % 7, 64 * (1 + i), 0, &o, &err) != QN_OK;
        n_failed += qn_launch(other.c, other.k, 2, args, &o, &err) != QN_OK;
        qn_view_release(&x);
        qn_view_release(&y);
        qn_kernel_release(other.k);
    }
    tap_is_int(n_failed, 0, "two kernels and 400 shapes in a small cache");
    tap_is_int(counters_of(j.c).compiles, 2, "each is compiled once");
    close_job(&j);
}

/** A function that is pinned while it runs outlives its removal. */
static void test_pins(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    qn_pin *pin[QN_PINS + 1];
    qn_code *f = NULL;
    tap_ok(scale(&j, 4, 4, 0, NULL, &err) == QN_OK && scale(&j, 4, 4, 0, NULL, &err) == QN_OK,
           "a hit");
    qn__lock(j.c);
    for (int b = 0; b < QN_FUNCTION_BUCKETS && !f; b++)
        f = j.c->cache.functions[b];
    for (int i = 0; i <= QN_PINS; i++)
        pin[i] = f ? qn__cache_pin(&j.c->cache, f) : NULL;
    if (f)
        qn__cache_remove(&j.c->cache, f);
    qn__unlock(j.c);
    tap_ok(pin[0] && pin[QN_PINS - 1] && !pin[QN_PINS], "there are so many pins, all were free");
    for (int i = 0; i < QN_PINS && pin[i]; i++) {
        if (i == QN_PINS / 2)
            tap_ok(!qn__cache_sweep(j.c) && f->entry, "a pinned function stays");
        qn__cache_unpin(pin[i]);
    }
    tap_ok(qn__cache_sweep(j.c), "then it goes");
    tap_ok(scale(&j, 4, 4, 0, NULL, &err) == QN_OK && counters_of(j.c).compiles == 2,
           "and is made anew");
    close_job(&j);
}

static void test_equal_kernels_share(void)
{
    job j = open_job(NULL);
    job other = {j.c, kernel_of(SCALE_TEXT)};
    qn_error err = {0};
    tap_ok(scale(&j, 4, 4, 0, NULL, &err) == QN_OK && scale(&other, 4, 4, 0, NULL, &err) == QN_OK,
           "two equal kernels");
    tap_is_int(counters_of(j.c).compiles, 1, "share code");
    qn_kernel_release(other.k);
    close_job(&j);
}

static void test_options_make_versions(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    const qn_options o[] = {
        {.bytes = sizeof o[0]},
        {.bytes = sizeof o[0], .checks = QN_CHECKS_NONE},
        {.bytes = sizeof o[0], .constant_scalars = 1},
        {.bytes = sizeof o[0], .plan = PLAN_WITH(.width = 2)},
        {.bytes = sizeof o[0], .isa = QN_ISA_V3, .plan = PLAN_WITH(.width = 4)},
        {.bytes = sizeof o[0], .loader = QN_LOADER_ORC},
    };
    int n = sizeof o / sizeof o[0], n_failed = 0;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++)
            n_failed += scale(&j, 4, 40, 0, &o[i], &err) != QN_OK;
    tap_ok(n_failed == 0, "options are honoured: %s", err.message);
    tap_is_int(counters_of(j.c).compiles, n - 1,
               "each has a version of its own, but where nothing is to be checked");
    close_job(&j);
}

/** The policy of checks makes versions of a kernel with something to check. */
static void test_checks_make_versions(void)
{
    job j = {context_with(NULL), kernel_of(GATHER_TEXT)};
    qn_view x = vector_of(j.c, "x", QN_F64, 8), y = vector_of(j.c, "y", QN_F64, 8),
            index = vector_of(j.c, "index", QN_I64, 8);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&index), qn_arg_view(&y)};
    int n_failed = 0;
    for (int checks = QN_CHECKS_REPORT; checks <= QN_CHECKS_NONE; checks++) {
        const qn_options o = {.bytes = sizeof o, .checks = checks};
        n_failed += qn_launch(j.c, j.k, 3, args, &o, NULL) != QN_OK;
    }
    tap_ok(n_failed == 0 && counters_of(j.c).compiles == 3,
           "each policy of checks has its version of a gather");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&index);
    close_job(&j);
}

/** Memory of the process in use, in KiB; 0 if that cannot be had, or tells nothing because a
 * sanitizer keeps what is freed. */
static long resident(void)
{
    long all = 0, used = 0;
    FILE *f = IS_SANITIZED ? NULL : fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &used) != 2)
        used = 0;
    if (f)
        fclose(f);
    return used * sysconf(_SC_PAGESIZE) / 1024;
}

/** Versions that come and go leave nothing behind: a process may make them for ever. */
static void test_memory(void)
{
    enum { FIRST = 100, N = 500, MOST = 500 };
    const qn_context_options small = {.bytes = sizeof small, .cache_bytes = 256 << 10};
    const qn_options exact = {.bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT};
    job j = open_job(&small);
    qn_error err = {0};
    int n_failed = 0;
    for (int64_t i = 0; i < FIRST; i++)
        n_failed += scale(&j, 2, 8 * (1 + i), 0, &exact, &err) != QN_OK;
    long before = resident();
    for (int64_t i = FIRST; i < FIRST + N; i++)
        n_failed += scale(&j, 2, 8 * (1 + i), 0, &exact, &err) != QN_OK;
    long growth = resident() - before;
    tap_ok(n_failed == 0 && counters_of(j.c).compiles == FIRST + N, "600 versions: %s",
           err.message);
    tap_ok(counters_of(j.c).live_functions < FIRST, "few of them live");
    tap_ok(growth < MOST, "the last 500 cost less than 1 KiB each");
    tap_note("%ld KiB", growth);
    close_job(&j);
}

static void test_eviction(void)
{
    const qn_context_options small = {.bytes = sizeof small, .cache_bytes = 64 << 10};
    job j = open_job(&small);
    const qn_options exact = {
        .bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT, .engine = QN_ENGINE_NATIVE};
    qn_error err = {0};
    qn_code *kept = NULL;
    double a[16] = {0}, b[16] = {0};
    const int64_t extents[] = {4, 4};
    qn_layout l;
    qn_view va, vb;
    qn_layout_right(2, extents, &l, NULL);
    qn_view_wrap("a", a, QN_F64, &l, 0, &va, NULL);
    qn_view_wrap("b", b, QN_F64, &l, 0, &vb, NULL);
    a[5] = 2;
    const qn_arg args[] = {qn_arg_view(&va), qn_arg_view(&vb), qn_arg_f64(4)};
    qn_call *call = NULL;
    tap_ok(qn_prepare(j.c, j.k, 3, args, &exact, &call, &err) == QN_OK &&
               qn_specialize(j.c, j.k, 3, args, &exact, &kept, &err) == QN_OK,
           "a call and a function are held");
    int n_failed = 0;
    for (int64_t i = 0; i < 60; i++)
        n_failed += scale(&j, 3, 20 + i, 0, &exact, &err) != QN_OK;
    qn_counters n = counters_of(j.c);
    tap_ok(n_failed == 0, "60 versions run in a small cache: %s", err.message);
    tap_ok(n.evictions > 30 && n.live_functions < 30, "most were dropped");
    tap_ok(n.code_bytes <= 64 << 10, "the bound holds");
    tap_ok(qn_run(call, &err) == QN_OK && b[5] == 8, "code that is held is still there");
    int64_t compiles = n.compiles;
    tap_ok(scale(&j, 3, 79, 0, &exact, &err) == QN_OK && counters_of(j.c).compiles == compiles,
           "the newest is kept");
    tap_ok(scale(&j, 3, 20, 0, &exact, &err) == QN_OK && counters_of(j.c).compiles == compiles + 1,
           "the oldest is made anew");
    const qn_context_options tiny = {.bytes = sizeof tiny, .cache_bytes = 1};
    job t = open_job(&tiny);
    for (int64_t i = 0; i < 4; i++)
        n_failed += scale(&t, 3, 20 + i / 2, 0, &exact, &err) != QN_OK;
    tap_ok(n_failed == 0 && counters_of(t.c).live_functions == 1,
           "a cache of one byte keeps one function");
    close_job(&t);
    close_job(&j);
    qn_call_release(call);
    qn_code_release(kept);
}

/** What counts against the bound is all that is there, and nothing is dropped before the bound is
 * reached. */
static void test_bytes(void)
{
    enum { BOUND = 1 << 20 };
    const qn_context_options options = {.bytes = sizeof options, .cache_bytes = BOUND};
    const qn_options exact = {
        .bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT, .engine = QN_ENGINE_NATIVE};
    job j = open_job(&options);
    qn_error err = {0};
    qn_counters n = counters_of(j.c), before = n;
    tap_ok(n.cache_bytes == 0 && n.code_bytes == 0 && n.arena_bytes == 0,
           "an empty cache has no bytes");
    for (int64_t i = 0; i < 1000 && n.evictions == 0; i++) {
        before = n;
        if (scale(&j, 3, 20 + i, 0, &exact, &err) != QN_OK)
            break;
        n = counters_of(j.c);
    }
    int64_t one = before.cache_bytes / (before.live_functions + !before.live_functions);
    /* The oldest version may be a little smaller than the newest: then two go. */
    bool is_first = n.evictions == 1 || n.evictions == 2;
    tap_ok(is_first && before.cache_bytes + 2 * one > BOUND,
           "the first eviction comes when %" PRId64 " bytes are used %s", before.cache_bytes,
           err.message);
    tap_ok(n.cache_bytes <= BOUND, "then the bound holds");
    tap_ok(n.code_bytes == n.live_functions * 4096 && n.arena_bytes >= n.code_bytes &&
               n.arena_bytes % 4096 == 0,
           "each version has a page of a slab");
    close_job(&j);
}

/** PTX counts as code, and texts that are asked for count, too. */
static void test_bytes_of_texts(void)
{
    const qn_options ptx = {.bytes = sizeof ptx, .isa = QN_ISA_SM80};
    job j = open_job(NULL);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_error err = {0};
    qn_code *f = NULL;
    qn_view x = vector_of(j.c, "x", QN_F32, 64), y = vector_of(j.c, "y", QN_F32, 64);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    tap_ok(qn_specialize(j.c, k, 2, args, &ptx, &f, &err) == QN_OK, "PTX %s", err.message);
    size_t bytes = f ? qn_code_text(f, QN_DUMP_PTX, NULL, 0) : 0;
    qn_counters n = counters_of(j.c);
    tap_ok(bytes > 100 && n.code_bytes > (int64_t)bytes && n.cache_bytes > n.code_bytes &&
               n.arena_bytes == 0,
           "it is code: %" PRId64 " bytes", n.code_bytes);
    size_t more = f ? qn_code_text(f, QN_DUMP_LLVM, NULL, 0) : 0;
    qn_counters after = counters_of(j.c);
    tap_ok(more > 100 && after.cache_bytes >= n.cache_bytes + (int64_t)more &&
               after.code_bytes == n.code_bytes,
           "a text of %zu bytes counts", more);
    qn_code_release(f);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    close_job(&j);
}

/** A context whose code generator cannot be loaded. */
static void test_missing_provider(const char *path, const char *part)
{
    const qn_context_options o = {.bytes = sizeof o, .provider_path = path};
    job j = open_job(&o);
    const qn_options x86 = {.bytes = sizeof x86, .engine = QN_ENGINE_NATIVE};
    qn_error err = {0};
    tap_ok(scale(&j, 4, 5, 0, NULL, &err) == QN_OK && scale(&j, 4, 6, 0, NULL, &err) == QN_OK,
           "without a code generator AUTO interprets: %s", err.message);
    tap_is_int(counters_of(j.c).interpreted, 2, "which is counted");
    tap_ok(history_has(j.c, "interpreted: QN_ERR_PROVIDER") && history_has(j.c, part),
           "the history says why");
    tap_ok(scale(&j, 4, 5, 0, &x86, &err) == QN_ERR_PROVIDER, "x86 by name fails");
    tap_contains(err.message, part, "the message has the path");
    tap_contains(err.message, "kernel \"scale\"", "and the kernel");
    tap_ok(scale(&j, 4, 5, 0, NULL, &err) == QN_OK, "and AUTO goes on");
    close_job(&j);
}

static void test_target(void)
{
    job j = open_job(NULL);
    const qn_options v4 = {.bytes = sizeof v4,
                           .engine = QN_ENGINE_NATIVE,
                           .isa = QN_ISA_V4,
                           .plan = PLAN_WITH(.width = 8)};
    qn_error err = {0};
    qn_status status = scale(&j, 4, 5, 0, &v4, &err);
    tap_ok(status == QN_OK || status == QN_ERR_TARGET, "an instruction set runs or is refused: %s",
           err.message);
    close_job(&j);
}

static void test_background_start(void)
{
    const qn_context_options o = {.bytes = sizeof o, .start_provider = 1};
    job j = open_job(&o);
    for (int i = 0; i < 1000 && counters_of(j.c).provider_us == 0; i++)
        usleep(5000);
    tap_ok(counters_of(j.c).provider_us > 0, "the code generator loads in the background");
    tap_is_int(counters_of(j.c).compiles, 0, "without a compile");
    close_job(&j);
    close_job(&(job){context_with(&o), NULL}); /* released while it loads */
}

int main(void)
{
    char reason[600];
    test_missing_provider("/nonexistent/libquern-llvm.so", "/nonexistent/libquern-llvm.so");
    test_missing_provider(QN_SOURCE_DIR "/README.md", "README.md");
    test_missing_provider(QN_BUILD_DIR "/tests/stub/libcuda.so.1", "qn_llvm_provider");
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_policy();
    test_dynamic();
    test_shapes_spare_code();
    test_pins();
    test_equal_kernels_share();
    test_options_make_versions();
    test_checks_make_versions();
    test_memory();
    test_eviction();
    test_bytes();
    test_bytes_of_texts();
    test_target();
    test_background_start();
    return tap_done();
}
