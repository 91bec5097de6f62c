/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_disk_launch.c: contexts and their cache on disk. A second context, which has no code
 * generator, stands for a second process; a second process is made, too. What is damaged is never
 * run, and launches go on without it.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "runtime/stored.h"
#include "tests/unit/gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };
static char root[] = "/tmp/test_disk_launch.XXXXXX";
static const qn_options x86 = {
    .bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_EXACT};

/* ---------------------------------------------------------------- launches */

/** A context with a folder of the scratch folder; `path` NULL: the code generator of this build. */
static qn_context *open_context(const char *folder, const char *path)
{
    char text[256];
    bool is_path = folder[0] == '/' || strcmp(folder, "off") == 0;
    snprintf(text, sizeof text, "%s%s%s", is_path ? "" : root, is_path ? "" : "/", folder);
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = text, .provider_path = path};
    return context_with(&o);
}

/** Launches y = x + 3 y; QN_ERR_INTERNAL if the result is wrong. */
static qn_status saxpy(qn_context *c, const qn_options *o, int64_t n, qn_error *err)
{
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
    fill_f32(&x, 1, 1);
    fill_f32(&y, 0, 2);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
    qn_status status = qn_launch(c, k, 3, args, o, err);
    for (int64_t i = 0; i < n && status == QN_OK; i++)
        if (((float *)y.data)[i] != (float)(3 * (i + 1) + 2 * i))
            status = QN_ERR_INTERNAL;
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return status;
}

/** Fills a folder with the code for N elements. */
static bool fill(const char *folder)
{
    qn_error err = {0};
    qn_context *c = open_context(folder, NULL);
    bool is_ok = saxpy(c, &x86, N, &err) == QN_OK;
    qn_context_release(c);
    return tap_ok(is_ok, "a version is compiled for %s %s", folder, err.message);
}

/** The only entry in a folder: its path, or NULL. */
static const char *only_entry(const char *folder)
{
    static char path[600];
    char name[300];
    int n = 0;
    snprintf(name, sizeof name, "ls %s/%s/*/* 2> /dev/null", root, folder);
    FILE *list = popen(name, "r");
    for (char line[512]; list && fgets(line, sizeof line, list); n++)
        snprintf(path, sizeof path, "%.*s", (int)strcspn(line, "\n"), line);
    if (list)
        pclose(list);
    return n == 1 ? path : NULL;
}

/* ---------------------------------------------------------------- warm contexts */

static void test_warm(void)
{
    qn_error err = {0};
    qn_context *c = open_context("warm", NULL);
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK, "a launch %s", err.message);
    qn_counters n = counters_of(c);
    tap_ok(n.compiles == 1 && n.disk_writes == 1 && n.disk_hits == 0,
           "the first context compiles and writes");
    qn_context_release(c);
    tap_ok(only_entry("warm") != NULL, "one entry is there");
    c = open_context("warm", "/nowhere/libquern-llvm.so");
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK, "the second has no code generator, and launches %s",
           err.message);
    n = counters_of(c);
    tap_ok(n.compiles == 0 && n.disk_hits == 1 && n.disk_refused == 0 && n.interpreted == 0 &&
               n.live_functions == 1,
           "it found its code");
    tap_ok(history_has(c, "saxpy: first version; exact; from the cache on disk"),
           "the history says so");
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK && counters_of(c).disk_hits == 1, "once in a context");
    tap_ok(saxpy(c, &x86, N + 1, &err) == QN_ERR_PROVIDER, "other extents are another version");
    const qn_options constant = {
        .bytes = sizeof constant, .engine = QN_ENGINE_NATIVE, .constant_scalars = 1};
    tap_ok(saxpy(c, &constant, N, &err) == QN_ERR_PROVIDER, "so is a scalar that is a constant");
    qn_context_release(c);
    c = open_context("warm", "/nowhere/libquern-llvm.so");
    snprintf(c->processor, sizeof c->processor, "Another 1.2");
    tap_ok(saxpy(c, &x86, N, &err) == QN_ERR_PROVIDER, "another processor does not find it");
    qn_context_release(c);
    c = open_context("off", "/nowhere/libquern-llvm.so");
    tap_ok(saxpy(c, &x86, N, &err) == QN_ERR_PROVIDER, "nor does who has none");
    qn_context_release(c);
}

static void test_texts(void)
{
    static char plan[2][4096], text[1 << 16];
    qn_error err = {0};
    for (int i = 0; i < 2; i++) {
        qn_context *c = open_context("warm", NULL);
        qn_kernel *k = kernel_of(SAXPY_TEXT);
        qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
        qn_code *f = NULL;
        if (i == 0)
            c->disk.folder[strlen(c->disk.folder) - 1] = 'x'; /* not the filled one */
        tap_ok(qn_specialize(c, k, 3, args, &x86, &f, &err) == QN_OK &&
                   counters_of(c).disk_hits == i,
               "a version, %s %s", i ? "found" : "compiled", err.message);
        qn_code_text(f, QN_DUMP_PLAN, plan[i], sizeof plan[i]);
        tap_ok(qn_code_text(f, QN_DUMP_ASM, text, sizeof text) > 100 && strstr(text, "vfmadd"),
               "its assembly is to be had");
        qn_code_release(f);
        qn_view_release(&x);
        qn_view_release(&y);
        qn_kernel_release(k);
        qn_context_release(c);
    }
    tap_ok(strlen(plan[0]) > 20 && strcmp(plan[0], plan[1]) == 0, "both have one plan");
}

/** In a process of its own: no code generator is loaded, and the code runs. */
static int run_child(const char *folder)
{
    qn_context *c = open_context(folder, NULL);
    qn_error err = {0};
    bool is_ok = saxpy(c, &x86, N, &err) == QN_OK && counters_of(c).disk_hits == 1;
    FILE *maps = fopen("/proc/self/maps", "r");
    for (char line[512]; maps && fgets(line, sizeof line, maps);)
        is_ok = is_ok && !strstr(line, "quern-llvm") && !strstr(line, "libLLVM");
    if (maps)
        fclose(maps);
    qn_context_release(c);
    return is_ok ? 0 : 1;
}

static void test_process(void)
{
    char folder[200];
    int status = -1;
    snprintf(folder, sizeof folder, "%s/warm", root);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_disk_launch", "child", folder, (char *)NULL);
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    tap_is_int(status, 0, "another process finds it, too, and never loads LLVM");
}

static void test_bundle(void)
{
    char bundle[200];
    qn_error err = {0};
    snprintf(bundle, sizeof bundle, "%s/warm", root);
    const qn_context_options o = {.bytes = sizeof o,
                                  .disk_cache = "off",
                                  .bundle = bundle,
                                  .provider_path = "/nowhere/libquern-llvm.so"};
    qn_context *c = context_with(&o);
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK && counters_of(c).disk_hits == 1, "a bundle %s",
           err.message);
    tap_ok(history_has(c, "from the bundle"), "the history says so");
    qn_context_release(c);
}

/* ---------------------------------------------------------------- damage */

/** A launch in a new context without a code generator, whose result must be right; whether it ran
 * code from disk. */
static bool runs_from_disk(const char *folder, int64_t *n_refused)
{
    qn_error err = {0};
    qn_context *c = open_context(folder, "/nowhere/libquern-llvm.so");
    qn_status status = saxpy(c, NULL, N, &err);
    qn_counters n = counters_of(c);
    if (status != QN_OK)
        tap_ok(false, "a launch: %s", err.message);
    *n_refused = n.disk_refused;
    qn_context_release(c);
    return n.disk_hits > 0;
}

static void test_damage(void)
{
    int64_t n_refused = 0, refused = 0, n_run = 0;
    if (!fill("damage"))
        return;
    const char *path = only_entry("damage");
    struct stat st = {0};
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0 || fstat(fd, &st) != 0) {
        tap_ok(false, "the entry");
        return;
    }
    tap_ok(runs_from_disk("damage", &refused) && refused == 0, "the entry is run");
    for (off_t at = 0; at < st.st_size; at++) {
        uint8_t byte = 0, changed;
        n_run += pread(fd, &byte, 1, at) != 1;
        changed = byte ^ (uint8_t)(1 << at % 8);
        n_run += pwrite(fd, &changed, 1, at) != 1 || runs_from_disk("damage", &refused);
        n_refused += refused;
        n_run += pwrite(fd, &byte, 1, at) != 1;
    }
    tap_is_int(n_run, 0, "no entry with a changed byte is run");
    tap_is_int(n_refused, (int64_t)st.st_size, "each is refused and counted");
    tap_ok(runs_from_disk("damage", &refused), "the entry as it was is run");
    for (off_t n = st.st_size - 1; n >= 0; n -= 7)
        n_run += ftruncate(fd, n) != 0 || runs_from_disk("damage", &refused) || refused != 1;
    close(fd);
    tap_is_int(n_run, 0, "nor is one that was cut");
    fill("damage");
    tap_ok(runs_from_disk("damage", &refused), "who compiles puts a good one in its place");
}

/** Entries that are whole, but whose numbers do not fit to their kernel. */
static void test_info(void)
{
    int64_t refused, n_run = 0, n_refused = 0, n_trials = 0;
    const char *path = fill("info") ? only_entry("info") : NULL;
    int fd = path ? open(path, O_RDWR) : -1;
    static char was[1 << 16];
    ssize_t n = fd < 0 ? 0 : pread(fd, was, sizeof was, 0);
    qn_stored e;
    if (n <= 0 || qn__entry_read(was, (size_t)n, &e)) {
        tap_ok(false, "the entry");
        return;
    }
    int64_t words[128];
    const qn_stored_part info = e.part[QN_STORED_INFO];
    for (size_t i = 0; i < info.n / 8 && info.n <= sizeof words; i++) {
        qn_text bytes = {0};
        memcpy(words, info.data, info.n);
        words[i] = INT64_MIN; /* no number may be that */
        e.part[QN_STORED_INFO] = (qn_stored_part){words, info.n};
        qn__entry_write(&e, &bytes);
        n_run += pwrite(fd, bytes.data, bytes.n, 0) != (ssize_t)bytes.n ||
                 runs_from_disk("info", &refused);
        n_refused += refused;
        n_trials++;
        qn__text_release(&bytes);
    }
    close(fd);
    tap_ok(n_run == 0 && n_trials > 0 && n_refused == n_trials,
           "%" PRId64 " numbers out of range are refused", n_trials);
}

static void test_no_folder(void)
{
    qn_error err = {0};
    qn_context *c = open_context("/proc/nowhere/quern", NULL);
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK, "a folder that cannot be made is no error %s",
           err.message);
    qn_counters n = counters_of(c);
    tap_ok(n.compiles == 1 && n.disk_writes == 0 &&
               history_has(c, "cache on disk, not used: mkdir /proc/nowhere"),
           "the history says why");
    qn_context_release(c);
    char folder[300];
    snprintf(folder, sizeof folder, "%s/open", root);
    mkdir(folder, 0700);
    chmod(folder, 0777);
    c = open_context("open", NULL);
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK && saxpy(c, &x86, N + 1, &err) == QN_OK &&
               counters_of(c).disk_writes == 0,
           "one that all may write is not used");
    tap_ok(history_has(c, "others may write it"), "the history says why");
    qn_context_release(c);
    const qn_context_options bad = {.bytes = sizeof bad, .disk_cache_bytes = -1};
    tap_ok(qn_context_new(&bad, &c, &err) == QN_ERR_ARGUMENT, "a bound below 0 is an error");
}

/** Each allocation of a warm launch fails once. */
static void test_memory(void)
{
    qn_error err = {0};
    int n_wrong = 0, n = 1;
    for (bool is_over = false; !is_over && n < 1000; n++) {
        qn_context *c = open_context("warm", "/nowhere/libquern-llvm.so");
        qn_kernel *k = kernel_of(SAXPY_TEXT);
        qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
        fill_f32(&x, 1, 0);
        qn__fail_allocation(n, false);
        qn_status status = qn_launch(c, k, 3, args, NULL, &err);
        qn__fail_allocation(0, false);
        is_over = status == QN_OK && counters_of(c).disk_hits == 1 && n > 5 &&
                  ((float *)y.data)[N - 1] == 3;
        n_wrong += status == QN_OK ? ((float *)y.data)[N - 1] != 3 : status != QN_ERR_MEMORY;
        qn_view_release(&x);
        qn_view_release(&y);
        qn_kernel_release(k);
        qn_context_release(c);
        if (n > 60)
            break;
    }
    tap_is_int(n_wrong, 0, "without memory a launch is right, or says so");
}

/* ---------------------------------------------------------------- GPUs */

static qn_status saxpy_on_gpu(qn_context *c, float *last, qn_error *err)
{
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_stream *s = NULL;
    qn_status status = qn_stream_new(c, 0, &s, err);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, N),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, N);
    qn_view h = vector_in(c, QN_SPACE_HOST, NULL, "h", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(3)};
    const qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s};
    fill_f32(&h, 1, 1);
    if (status == QN_OK)
        status = qn_stream_copy(s, &x, &h, err);
    if (status == QN_OK)
        status = qn_launch(c, k, 3, args, &o, err);
    if (status == QN_OK)
        status = qn_stream_copy(s, &h, &y, err);
    if (status == QN_OK)
        status = qn_stream_fence(s, err);
    *last = ((float *)h.data)[N - 1];
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&h);
    qn_stream_release(s);
    qn_kernel_release(k);
    return status;
}

static void test_gpu(void)
{
    const stub_control *stub = stub_open(STUB_PATH);
    char folder[300];
    qn_error err = {0};
    float last = 0;
    if (!stub) {
        tap_skip("no stub driver");
        return;
    }
    snprintf(folder, sizeof folder, "%s/gpu", root);
    qn_context_options o = {.bytes = sizeof o, .disk_cache = folder, .cuda_driver = STUB_PATH};
    qn_context *c = context_with(&o);
    tap_ok(saxpy_on_gpu(c, &last, &err) == QN_OK && last == 3 * N, "a launch on the stub %s",
           err.message);
    tap_ok(counters_of(c).disk_writes == 2 && stub->calls("cuLinkCreate_v2") == 1,
           "PTX and cubin are written");
    qn_context_release(c);
    o.provider_path = "/nowhere/libquern-llvm.so";
    c = context_with(&o);
    tap_ok(saxpy_on_gpu(c, &last, &err) == QN_OK && last == 3 * N, "without a code generator %s",
           err.message);
    tap_ok(counters_of(c).disk_hits == 2 && stub->calls("cuLinkCreate_v2") == 1,
           "nothing is assembled");
    qn_context_release(c);
    c = context_with(&o);
    stub->fail("cuModuleLoadData", 200, 1);
    tap_ok(saxpy_on_gpu(c, &last, &err) == QN_OK && last == 3 * N,
           "a cubin that the driver refuses %s", err.message);
    tap_ok(stub->calls("cuLinkCreate_v2") == 2 && counters_of(c).disk_writes == 1,
           "... is assembled and written again");
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left in the driver");
}

/** Whether a context without a code generator finds the version for N elements. */
static bool is_found_in(const char *folder)
{
    qn_context *c = open_context(folder, "/nowhere/libquern-llvm.so");
    bool is_found = saxpy(c, &x86, N, NULL) == QN_OK && counters_of(c).disk_hits == 1;
    qn_context_release(c);
    return is_found;
}

/** An entry of an LLVM that was replaced is not used, but where that LLVM is not, or the entry is
 * in a bundle. */
static void test_replaced_llvm(void)
{
    char path[300], bundle[300];
    qn_error err = {0};
    snprintf(path, sizeof path, "%s/libLLVM.so", root);
    snprintf(bundle, sizeof bundle, "%s/maker", root);
    FILE *file = fopen(path, "w");
    fprintf(file, "one");
    fclose(file);
    qn_context *c = open_context("maker", NULL);
    tap_ok(saxpy(c, &x86, N + 1, &err) == QN_OK && strstr(c->compiler.maker.path, ".so") &&
               c->compiler.maker.bytes > 0,
           "the file of LLVM is known: %s %s", c->compiler.maker.path, err.message);
    qn__maker_look(path, &c->compiler.maker);
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK, "a version is compiled %s", err.message);
    qn_context_release(c);
    tap_ok(is_found_in("maker"), "it is found while its LLVM is there");
    file = fopen(path, "a");
    fprintf(file, "two");
    fclose(file);
    tap_ok(!is_found_in("maker"), "... not after that is another one");
    const qn_context_options o = {.bytes = sizeof o,
                                  .disk_cache = "off",
                                  .bundle = bundle,
                                  .provider_path = "/nowhere/libquern-llvm.so"};
    c = context_with(&o);
    tap_ok(saxpy(c, &x86, N, &err) == QN_OK, "... but as a bundle %s", err.message);
    qn_context_release(c);
    unlink(path);
    tap_ok(is_found_in("maker"), "... or where that LLVM is not");
    file = fopen(path, "w");
    fprintf(file, "three");
    fclose(file);
    fill("maker");
    tap_ok(is_found_in("maker"), "the new code takes its place");
}

/** What a plan gave up for the time of its compile is said again where its code is found. */
static void test_descent(void)
{
    qn_builder *b = qn_builder_new("divisions", 0);
    const qn_param x = qn_view_param(b, "x", QN_I8, 1, 0), y = qn_view_param(b, "y", QN_I8, 1, 0);
    const qn_val i = qn_parallel_over(b, y, 0), first = qn_load(b, x, 1, &i);
    qn_val v = first;
    for (int n = 0; n < 100; n++)
        v = n % 2 ? qn_div(b, v, first) : qn_div(b, first, v);
    qn_store(b, y, 1, &i, v);
    qn_kernel *k = NULL;
    qn_error err = {0};
    bool is_made = qn_finish(b, &k, &err) == QN_OK;
    qn_builder_release(b);
    for (int is_warm = 0; is_warm < 2 && is_made; is_warm++) {
        qn_context *c = open_context("descent", is_warm ? "/nowhere/libquern-llvm.so" : NULL);
        qn_view from = vector_of(c, "x", QN_I8, N), to = vector_of(c, "y", QN_I8, N);
        const qn_arg args[] = {qn_arg_view(&from), qn_arg_view(&to)};
        tap_ok(qn_launch(c, k, 2, args, &x86, &err) == QN_OK, "a kernel of many divisions %s",
               err.message);
        tap_ok(counters_of(c).disk_hits == is_warm &&
                   history_has(c, "stepped down to compile less"),
               "the history has its steps, %s", is_warm ? "found" : "compiled");
        qn_view_release(&from);
        qn_view_release(&to);
        qn_context_release(c);
    }
    tap_ok(is_made, "a kernel");
    qn_kernel_release(k);
}

int main(int n_words, char **word)
{
    char reason[600], command[64];
    if (n_words == 3 && strcmp(word[1], "child") == 0)
        return run_child(word[2]);
    if (!mkdtemp(root) || !has_x86(reason, sizeof reason)) {
        tap_skip("no scratch folder, or no code");
        return tap_done();
    }
    test_warm();
    test_texts();
    test_process();
    test_bundle();
    test_damage();
    test_info();
    test_no_folder();
    test_memory();
    test_replaced_llvm();
    test_descent();
    test_gpu();
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? tap_done() : 1;
}
