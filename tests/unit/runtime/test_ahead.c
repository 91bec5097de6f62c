/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ahead.c: bundles that are made ahead of time (qn_bundle_add). A context without a code
 * generator, of another processor with other caches, stands for the machine of who runs the
 * program.
 */
#define _GNU_SOURCE
#include "quern/cache.h"
#include "runtime/context.h"
#include "tests/unit/gpu.h"

#include <unistd.h>

enum { N = 1000 };
static char root[] = "/tmp/test_ahead.XXXXXX";
static qn_context *maker; /* has a code generator and no cache on disk */

/** Adds a kernel with values for vectors of n elements, or without arguments if n is 0. */
static qn_status add(const char *folder, const char *text, int64_t n, const qn_options *o,
                     qn_error *err)
{
    char bundle[200];
    qn_kernel *k = kernel_of(text);
    snprintf(bundle, sizeof bundle, "%s/%s", root, folder);
    qn_view x = vector_of(maker, "x", QN_F32, n), y = vector_of(maker, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
    qn_status status = qn_bundle_add(maker, bundle, k, 3, n ? args : NULL, o, err);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return status;
}

static void add_ok(const char *folder, int64_t n, int32_t specialize, int32_t isa)
{
    qn_error err = {0};
    const qn_options o = {.bytes = sizeof o, .specialize = specialize, .isa = isa};
    tap_ok(add(folder, SAXPY_TEXT, n, &o, &err) == QN_OK, "saxpy goes into %s %s", folder,
           err.message);
}

/** The machine has other caches. */
static void set_caches(qn_context *c, int64_t first, int64_t second, int64_t last)
{
    const int64_t bytes[QN_N_CACHES] = {first, second, last};
    for (int n = 0; n < QN_N_CACHES; n++)
        c->machine.cache[n].bytes = bytes[n];
}

/** A context of another machine, which has no code generator. */
static qn_context *elsewhere(const char *folder)
{
    char bundle[200];
    snprintf(bundle, sizeof bundle, "%s/%s", root, folder);
    const qn_context_options o = {.bytes = sizeof o,
                                  .disk_cache = "off",
                                  .bundle = bundle,
                                  .provider_path = "/nowhere/libquern-llvm.so"};
    qn_context *c = context_with(&o);
    snprintf(c->processor, sizeof c->processor, "Another 1.2");
    set_caches(c, 64 << 10, 4 << 20, 512 << 20);
    return c;
}

/** Launches y = x + 3 y on n elements that are `step` apart in memory; QN_ERR_INTERNAL if the
 * result is wrong. */
static qn_status saxpy(qn_context *c, const qn_options *o, int64_t n, int64_t step, qn_error *err)
{
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, n * step), y = vector_of(c, "y", QN_F32, n * step);
    fill_f32(&x, 1, 1);
    fill_f32(&y, 0, 2);
    qn_view parts[] = {x, y};
    for (int i = 0; i < 2; i++) {
        parts[i].layout.dim[0].extent = n;
        parts[i].layout.dim[0].stride = step;
    }
    const qn_arg args[] = {qn_arg_view(&parts[0]), qn_arg_view(&parts[1]), qn_arg_f32(3)};
    qn_status status = qn_launch(c, k, 3, args, o, err);
    for (int64_t i = 0; i < n * step && status == QN_OK; i++)
        if (((float *)y.data)[i] != (float)(i % step ? 2 * i : 3 * (i + 1) + 2 * i))
            status = QN_ERR_INTERNAL;
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return status;
}

/** Whether that ran code of the bundle, and nothing was compiled or interpreted. */
static bool runs(const char *folder, const qn_options *o, int64_t n, int64_t step)
{
    qn_error err = {0};
    qn_context *c = elsewhere(folder);
    qn_status status = saxpy(c, o, n, step, &err);
    qn_counters found = counters_of(c);
    bool is_run =
        status == QN_OK && found.disk_hits == 1 && found.compiles == 0 && found.interpreted == 0;
    if (status != QN_OK && status != QN_ERR_PROVIDER)
        tap_ok(false, "a launch: %s", err.message);
    qn_context_release(c);
    return is_run;
}

/* ---------------------------------------------------------------- what is found */

static void test_exact(void)
{
    const qn_options exact = {.bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT};
    add_ok("exact", N, QN_SPECIALIZE_AUTO, QN_ISA_V3);
    tap_ok(runs("exact", NULL, N, 1),
           "the extents that it was made for are run on another machine");
    tap_ok(runs("exact", &exact, N, 1), "... and where exact code is asked for");
    tap_ok(!runs("exact", NULL, N + 1, 1), "other extents are not");
    const qn_options clamp = {.bytes = sizeof clamp, .checks = QN_CHECKS_CLAMP};
    tap_ok(runs("exact", &clamp, N, 1), "checks are no fact where all accesses are proved");
    const qn_options constant = {.bytes = sizeof constant, .constant_scalars = 1};
    tap_ok(!runs("exact", &constant, N, 1), "a constant scalar is another version");
}

static void test_dynamic(void)
{
    const qn_options exact = {.bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT};
    add_ok("dynamic", N, QN_SPECIALIZE_DYNAMIC, QN_ISA_V3);
    tap_ok(runs("dynamic", NULL, N, 1) && runs("dynamic", NULL, 7, 1),
           "dynamic code is run for all extents");
    tap_ok(!runs("dynamic", NULL, N, 3), "other strides are not");
    tap_ok(!runs("dynamic", &exact, N, 1), "nor is it found where exact code is asked for");
    const qn_options never = {.bytes = sizeof never, .compile = QN_COMPILE_NEVER};
    tap_ok(runs("dynamic", &never, N, 1), "a launch that does not compile finds it");
    const qn_options must = {.bytes = sizeof must, .must_generate = 1};
    tap_ok(runs("dynamic", &must, N, 1), "so does one that must have code");
}

static qn_status copy(qn_context *c, const char *bundle, const qn_options *o, int64_t n,
                      qn_error *err)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    fill_f32(&x, 1, 0);
    qn_status status =
        bundle ? qn_bundle_add(c, bundle, k, 2, args, o, err) : qn_launch(c, k, 2, args, o, err);
    if (status == QN_OK && !bundle && ((float *)y.data)[n - 1] != 1)
        status = QN_ERR_INTERNAL;
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return status;
}

/** Extents that give another version on this machine, one with non-temporal stores, do not where
 * the code is portable. */
static void test_large(void)
{
    enum { LARGE = 1 << 20 };
    char bundle[200];
    qn_error err = {0};
    const qn_options dynamic = {.bytes = sizeof dynamic, .specialize = QN_SPECIALIZE_DYNAMIC};
    snprintf(bundle, sizeof bundle, "%s/large", root);
    qn_context *c = context_with(
        &(qn_context_options){.bytes = sizeof(qn_context_options), .disk_cache = "off"});
    c->machine.cache[QN_CACHE_LAST].bytes = 1 << 20;
    tap_ok(copy(c, NULL, &dynamic, N, &err) == QN_OK &&
               copy(c, NULL, &dynamic, LARGE, &err) == QN_OK && counters_of(c).compiles == 2,
           "two versions where the cache is small %s", err.message);
    qn_context_release(c);
    tap_ok(copy(maker, bundle, &dynamic, N, &err) == QN_OK, "one goes into a bundle %s",
           err.message);
    c = elsewhere("large");
    c->machine.cache[QN_CACHE_LAST].bytes = 1 << 20;
    tap_ok(copy(c, NULL, &dynamic, N, &err) == QN_OK &&
               copy(c, NULL, &dynamic, LARGE, &err) == QN_OK && counters_of(c).interpreted == 0 &&
               counters_of(c).compiles == 0,
           "... and serves both %s", err.message);
    qn_context_release(c);
}

/** Rows of a matrix with room for more columns: its strides are the same for all extents. */
enum { MOST_ROWS = 40, APART = 160 };

static qn_status copy_rows(qn_context *c, const char *bundle, const qn_kernel *k, int64_t rows,
                           int64_t columns, const qn_options *o, qn_error *err)
{
    static float memory[2][MOST_ROWS * APART];
    const int64_t extents[] = {rows, columns}, strides[] = {APART, 1};
    qn_layout l;
    qn_view v[2] = {{0}, {0}};
    qn_status status = qn_layout_strided(2, extents, strides, &l, err);
    for (int i = 0; i < 2 && status == QN_OK; i++)
        status = qn_view_wrap("m", memory[i], QN_F32, &l, 0, &v[i], err);
    for (int i = 0; i < MOST_ROWS * APART; i++) {
        memory[0][i] = (float)i;
        memory[1][i] = -1;
    }
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    if (status == QN_OK)
        status = bundle ? qn_bundle_add(c, bundle, k, 2, args, o, err)
                        : qn_launch(c, k, 2, args, o, err);
    for (int i = 0; i < MOST_ROWS * APART && status == QN_OK && !bundle; i++) {
        bool is_copied = i / APART < rows && i % APART < columns;
        if (memory[1][i] != (is_copied ? (float)i : -1))
            status = QN_ERR_INTERNAL;
    }
    return status;
}

/** What the policy learns, that strides never varied and what divides extents, makes other versions
 * than the bundle's, which has dynamic strides: where there is no code generator that one serves.
 */
static void test_strides(void)
{
    const qn_options dynamic = {.bytes = sizeof dynamic, .specialize = QN_SPECIALIZE_DYNAMIC};
    char bundle[200];
    qn_error err = {0};
    int n_failed = 0;
    qn_kernel *k = kernel_of(
        "kernel \"rows\" {\n view x: f32[2]; view y: f32[2];\n %0: i64 = const 0;\n"
        " %1: i64 = extent y, 0; %2: i64 = extent y, 1; %3: i64 = parallel %0, %1;\n"
        " %4: i64 = parallel %0, %2; %5: f32 = load x[%3, %4]; store y[%3, %4], %5;\n}\n");
    snprintf(bundle, sizeof bundle, "%s/strides", root);
    tap_ok(copy_rows(maker, bundle, k, 16, 64, &dynamic, &err) == QN_OK,
           "rows go into a bundle, for any extents and strides: %s", err.message);
    qn_context *c = elsewhere("strides");
    for (int64_t rows = 1; rows <= MOST_ROWS; rows++)
        n_failed += copy_rows(c, NULL, k, rows, 64 + 16 * (rows % 5), NULL, &err) != QN_OK;
    for (int64_t columns = 1; columns < APART; columns += 3)
        n_failed += copy_rows(c, NULL, k, 9, columns, NULL, &err) != QN_OK;
    qn_counters n = counters_of(c);
    tap_ok(n_failed == 0 && n.interpreted == 0 && n.compiles == 0 && n.disk_hits == 1,
           "it runs for all extents of which the strides never varied: %s", err.message);
    tap_ok(history_has(c, "dynamic extents; from the bundle"), "as the history says");
    qn_context_release(c);
    qn_kernel_release(k);
}

static void test_generic(void)
{
    add_ok("generic", 0, QN_SPECIALIZE_GENERIC, QN_ISA_V3);
    tap_ok(runs("generic", NULL, N, 1) && runs("generic", NULL, 7, 3),
           "generic code, made without arguments, is run for all layouts");
}

/** What is better is taken first. */
static void test_order(void)
{
    qn_error err = {0};
    add_ok("order", 0, QN_SPECIALIZE_GENERIC, QN_ISA_V3);
    add_ok("order", N, QN_SPECIALIZE_DYNAMIC, QN_ISA_V3);
    add_ok("order", N, QN_SPECIALIZE_EXACT, QN_ISA_V3);
    qn_context *c = elsewhere("order");
    tap_ok(saxpy(c, NULL, N, 1, &err) == QN_OK && history_has(c, "exact; from the bundle"),
           "exact code first %s", err.message);
    tap_ok(saxpy(c, NULL, N + 1, 1, &err) == QN_OK &&
               history_has(c, "dynamic extents; from the bundle"),
           "then dynamic %s", err.message);
    tap_ok(saxpy(c, NULL, N, 3, &err) == QN_OK && counters_of(c).disk_hits == 3 &&
               counters_of(c).interpreted == 0,
           "then generic %s", err.message);
    tap_ok(saxpy(c, NULL, N, 3, &err) == QN_OK && counters_of(c).disk_hits == 3,
           "once in a context");
    qn_context_release(c);
}

/** Where a code generator is, code for the machine itself is not looked for in vain: what is
 * portable serves. */
static void test_with_provider(void)
{
    char bundle[200];
    qn_error err = {0};
    snprintf(bundle, sizeof bundle, "%s/exact", root);
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = "off", .bundle = bundle};
    qn_context *c = context_with(&o);
    tap_ok(saxpy(c, NULL, N, 1, &err) == QN_OK && counters_of(c).compiles == 0,
           "what the bundle has is not compiled %s", err.message);
    tap_ok(saxpy(c, NULL, N + 1, 1, &err) == QN_OK && counters_of(c).compiles == 1,
           "the rest is %s", err.message);
    qn_context_release(c);
}

static void test_isa(void)
{
    const qn_options v3 = {.bytes = sizeof v3, .isa = QN_ISA_V3};
    add_ok("v4", N, QN_SPECIALIZE_EXACT, QN_ISA_V4);
    tap_ok(!runs("v4", &v3, N, 1), "code for v4 is not run where v3 is asked for");
    tap_is_int(runs("v4", NULL, N, 1), qn__isa_best() >= QN_ISA_V4,
               "it is run where the processor has v4");
    tap_ok(runs("exact", NULL, N, 1), "code for v3 is run everywhere");
}

/** AArch64: code that a generator with the target makes, and that this processor does not run. */
static void test_other_machine(void)
{
    const qn_options neon = {.bytes = sizeof neon, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_NEON};
    qn_error err = {0};
    qn_status status = add("neon", SAXPY_TEXT, N, &neon, &err);
    tap_ok(status == QN_OK || (status == QN_ERR_TARGET &&
                               strstr(err.message, "built without code for armv8-a+lse")),
           "code for AArch64 is made, or said not to be known %s", err.message);
    qn_context *c = elsewhere("neon");
    status = saxpy(c, &neon, N, 1, &err);
    tap_is_int(status, QN_ERR_TARGET, "a launch that asks for it is refused");
    tap_contains(err.message, "armv8-a+lse was asked for, the processor is x86-64-v",
                 "... and says so");
    qn_context_release(c);
    tap_ok(!runs("neon", NULL, N, 1), "another one does not find it");
}

/** Machine code for any processor does not depend on where it was made. */
static void test_environment(void)
{
    char bundle[200];
    qn_error err = {0};
    snprintf(bundle, sizeof bundle, "%s/here", root);
    add_ok("here", N, QN_SPECIALIZE_EXACT, QN_ISA_V3);
    qn_machine own = maker->machine;
    set_caches(maker, 64 << 10, 4 << 20, 512 << 20);
    add_ok("here", N, QN_SPECIALIZE_EXACT, QN_ISA_V3);
    maker->machine = own;
    int64_t n = 0;
    char copy[220];
    snprintf(copy, sizeof copy, "%s/copy", root);
    tap_ok(qn_cache_import(copy, bundle, &n, &err) == QN_OK && n == 1,
           "machines with other caches make one entry %s", err.message);
    const qn_context_options o = {
        .bytes = sizeof o, .disk_cache = copy, .provider_path = "/nowhere/libquern-llvm.so"};
    qn_context *c = context_with(&o);
    tap_ok(saxpy(c, NULL, N, 1, &err) == QN_OK && counters_of(c).disk_hits == 1 &&
               history_has(c, "from the cache on disk"),
           "imported into a cache it is found there %s", err.message);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- atomics and GPUs */

#define COUNT_TEXT                                                                                 \
    "kernel \"count\" { view x: u8[1]; view h: u32[1]; %0: i64 = const 0; %1: i64 = extent x, 0;"  \
    " %2: i64 = parallel %0, %1; %3: u8 = load x[%2]; %4: i64 = cast %3; %5: u32 = const 1;"       \
    " %6: u32 = atomic sum h[%4], %5; }"

static qn_status count(qn_context *c, const char *bundle, const qn_options *o, qn_error *err)
{
    enum { MANY = 1 << 20 };
    qn_kernel *k = kernel_of(COUNT_TEXT);
    qn_view x = vector_of(c, "x", QN_U8, MANY), h = vector_of(c, "h", QN_U32, 256);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&h)};
    qn_status status =
        bundle ? qn_bundle_add(c, bundle, k, 2, args, o, err) : qn_launch(c, k, 2, args, o, err);
    if (status == QN_OK && !bundle && ((uint32_t *)h.data)[0] != MANY)
        status = QN_ERR_INTERNAL;
    qn_view_release(&x);
    qn_view_release(&h);
    qn_kernel_release(k);
    return status;
}

static void test_atomics(void)
{
    char bundle[200];
    qn_error err = {0};
    const qn_options serial = {.bytes = sizeof serial, .executor = QN_SERIAL},
                     threads = {.bytes = sizeof threads, .executor = QN_THREADS};
    const qn_options shared = {.bytes = sizeof shared, .atomics = QN_ATOMICS_SHARED};
    snprintf(bundle, sizeof bundle, "%s/atomics", root);
    tap_ok(count(maker, bundle, &serial, &err) == QN_OK, "atomics of a launch %s", err.message);
    qn_context *c = elsewhere("atomics");
    tap_ok(count(c, NULL, &serial, &err) == QN_OK && counters_of(c).disk_hits == 1,
           "are run by one thread %s", err.message);
    tap_ok(count(c, NULL, &threads, &err) == QN_OK && counters_of(c).interpreted == 0,
           "and by several %s", err.message);
    tap_ok(count(c, NULL, &shared, &err) == QN_OK && counters_of(c).interpreted == 1,
           "but not where others may meet them %s", err.message);
    qn_context_release(c);
    snprintf(bundle, sizeof bundle, "%s/shared", root);
    tap_ok(count(maker, bundle, &shared, &err) == QN_OK, "atomics that others may meet %s",
           err.message);
    c = elsewhere("shared");
    tap_ok(count(c, NULL, &shared, &err) == QN_OK && count(c, NULL, &serial, &err) == QN_OK &&
               counters_of(c).interpreted == 0,
           "are good for all launches %s", err.message);
    qn_context_release(c);
}

/** PTX for a GPU that is older than the one that runs it. */
static void test_gpu(void)
{
    qn_error err = {0};
    qn_code *f = NULL;
    add_ok("gpu", N, QN_SPECIALIZE_EXACT, QN_ISA_SM80);
    qn_context *c = elsewhere("gpu");
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
    qn_options o = {.bytes = sizeof o, .isa = QN_ISA_SM75};
    char text[512] = "";
    tap_ok(qn_specialize(c, k, 3, args, &o, &f, &err) == QN_ERR_PROVIDER,
           "PTX for sm_80 is not found for sm_75");
    o.isa = QN_ISA_SM90;
    err = (qn_error){0};
    tap_ok(qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK, "it is for sm_90 %s", err.message);
    qn_code_text(f, QN_DUMP_PTX, text, sizeof text);
    tap_contains(text, ".target sm_80", "it is that PTX");
    qn_code_release(f);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- errors */

static void test_errors(void)
{
    char bundle[200];
    qn_error err = {0};
    const qn_options exact = {.bytes = sizeof exact},
                     generic = {.bytes = sizeof generic, .specialize = QN_SPECIALIZE_GENERIC};
    snprintf(bundle, sizeof bundle, "%s/errors", root);
    qn_kernel *k = kernel_of(SAXPY_TEXT), *shift = kernel_of(SHIFT_TEXT);
    tap_ok(qn_bundle_add(NULL, bundle, k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "no context: %s", err.message);
    tap_ok(qn_bundle_add(maker, NULL, k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "no bundle: %s", err.message);
    tap_ok(qn_bundle_add(maker, "", k, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "an empty name: %s", err.message);
    tap_ok(qn_bundle_add(maker, bundle, NULL, 0, NULL, &generic, &err) == QN_ERR_ARGUMENT,
           "no kernel: %s", err.message);
    tap_ok(qn_bundle_add(maker, bundle, k, 3, NULL, &exact, &err) == QN_ERR_ARGUMENT,
           "no arguments: %s", err.message);
    tap_ok(qn_bundle_add(maker, bundle, k, 0, NULL, NULL, &err) == QN_ERR_ARGUMENT,
           "no options, no arguments: %s", err.message);
    tap_ok(qn_bundle_add(maker, "/proc/nowhere", k, 0, NULL, &generic, &err) ==
               QN_ERR_NOT_AVAILABLE,
           "a folder that cannot be: %s", err.message);
    qn_view x = vector_of(maker, "x", QN_F32, 1), y = vector_of(maker, "y", QN_F32, 1);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    tap_ok(qn_bundle_add(maker, bundle, shift, 2, args, &exact, &err) == QN_ERR_ARGUMENT,
           "no iterations: %s", err.message);
    tap_ok(qn_bundle_add(maker, bundle, k, 2, args, &exact, &err) == QN_ERR_ARGUMENT,
           "too few arguments: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_context *c = elsewhere("errors");
    tap_ok(qn_bundle_add(c, bundle, k, 0, NULL, &generic, &err) == QN_ERR_PROVIDER,
           "no code generator: %s", err.message);
    qn_context_release(c);
    qn_kernel_release(k);
    qn_kernel_release(shift);
}

/** Each allocation fails once. */
static void test_memory(void)
{
    char bundle[200];
    qn_error err = {0};
    const qn_options generic = {.bytes = sizeof generic, .specialize = QN_SPECIALIZE_GENERIC};
    snprintf(bundle, sizeof bundle, "%s/memory", root);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_status status = QN_ERR_MEMORY;
    int n = 1, n_wrong = 0;
    for (; n < 400 && status != QN_OK; n++) {
        qn__fail_allocation(n, false);
        status = qn_bundle_add(maker, bundle, k, 0, NULL, &generic, &err);
        qn__fail_allocation(0, false);
        n_wrong += status != QN_OK && status != QN_ERR_MEMORY && status != QN_ERR_NOT_AVAILABLE &&
                   status != QN_ERR_CODEGEN;
    }
    tap_ok(status == QN_OK && n > 5 && n_wrong == 0,
           "%d allocations fail once each; %d other errors, last %s", n, n_wrong, err.message);
    qn_kernel_release(k);
}

int main(void)
{
    char reason[600], command[64];
    if (!mkdtemp(root) || !has_x86(reason, sizeof reason)) {
        tap_skip("no scratch folder, or no code");
        return tap_done();
    }
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = "off"};
    maker = context_with(&o);
    test_exact();
    test_dynamic();
    test_large();
    test_strides();
    test_generic();
    test_order();
    test_with_provider();
    test_isa();
    test_other_machine();
    test_environment();
    test_atomics();
    test_gpu();
    test_errors();
    test_memory();
    qn_context_release(maker);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? tap_done() : 1;
}
