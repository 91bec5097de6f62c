/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log.c: lines of the log: which level hears of what, where lines go, and that nothing is told
 * by default.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <sys/wait.h>
#include <unistd.h>

typedef struct heard {
    int n[4]; /* by level */
    char text[4000];
} heard;

static void on_line(void *arg, int32_t level, const char *line)
{
    heard *h = arg;
    size_t n = strlen(h->text);
    h->n[level]++;
    snprintf(h->text + n, sizeof h->text - n, "%s\n", line);
}

static qn_status launch(qn_context *c, const char *text, int64_t n, bool is_shared)
{
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(c, "x", QN_F32, n + 1), y = x;
    y.layout.dim[0].extent = n;
    y.data = (float *)x.data + 1;
    if (!is_shared)
        y = vector_of(c, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_status status = qn_launch(c, k, 2, args, NULL, NULL);
    if (!is_shared)
        qn_view_release(&y);
    qn_view_release(&x);
    qn_kernel_release(k);
    return status;
}

/** A context at a level, in which the interpreter or code runs two kernels, one of them in
 * iteration order. */
static heard hear(int32_t level, const char *provider)
{
    heard h = {0};
    const qn_context_options o = {.bytes = sizeof o,
                                  .provider_path = provider,
                                  .disk_cache = "off",
                                  .log = on_line,
                                  .log_arg = &h,
                                  .log_level = level,
                                  .cache_bytes = level == QN_LOG_DETAIL}; /* room for one version */
    qn_context *c = context_with(&o);
    tap_ok(launch(c, COPY_TEXT, 5, false) == QN_OK && launch(c, COPY_TEXT, 5, false) == QN_OK &&
               launch(c, COPY_TEXT, 5, true) == QN_OK && launch(c, COPY_TEXT, 5, true) == QN_OK,
           "launches with a log of level %d", (int)level);
    qn_context_release(c);
    return h;
}

static void test_levels(void)
{
    char reason[600];
    heard h = hear(0, "/nonexistent/libquern-llvm.so");
    tap_contains(h.text,
                 "kernel \"copy\" is interpreted: QN_ERR_PROVIDER: ", "a fallback is a warning");
    tap_contains(h.text, "kernel \"copy\" runs in iteration order: view ",
                 "an overlap is a warning");
    tap_ok(h.n[QN_LOG_WARNING] == 2 && h.n[QN_LOG_INFO] == 0, "each is told once");
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return;
    }
    h = hear(QN_LOG_WARNING, NULL);
    tap_ok(h.n[QN_LOG_WARNING] == 1 && h.n[QN_LOG_INFO] == 0, "compiles are no warnings");
    h = hear(QN_LOG_INFO, NULL);
    tap_ok(h.n[QN_LOG_INFO] == 2 && h.n[QN_LOG_DETAIL] == 0, "level INFO hears of compiles");
    tap_contains(h.text, "kernel \"copy\" is compiled: first version; exact, ", "with the reason");
    tap_contains(h.text, " ms\n", "and the time");
    h = hear(QN_LOG_DETAIL, NULL);
    tap_contains(h.text, "kernel \"copy\" lost a version\n",
                 "level DETAIL hears of what is dropped");
    tap_contains(h.text, "machine: first cache ", "and of the machine");
}

static void test_options(void)
{
    qn_context *c = NULL;
    qn_error err = {0};
    const qn_context_options o = {.bytes = sizeof o, .log_level = 4};
    tap_ok(qn_context_new(&o, &c, &err) == QN_ERR_ARGUMENT, "there is no level 4");
    tap_contains(err.message, "log_level 4 not in [0,3]", "which is said");
}

/** What a child with QUERN_VERBOSE writes to standard error; it has a log of its own if `h` is not
 * NULL. */
static void read_child(const char *value, bool has_log, char *text, size_t text_bytes)
{
    int ends[2], status = -1;
    text[0] = 0;
    if (pipe(ends) != 0)
        return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        heard h = {0};
        alarm(20);
        dup2(ends[1], STDERR_FILENO);
        setenv("QUERN_VERBOSE", value, 1);
        const qn_context_options o = {
            .bytes = sizeof o, .disk_cache = "off", .log = has_log ? on_line : NULL, .log_arg = &h};
        qn_context *c = context_with(&o);
        bool is_fine = launch(c, COPY_TEXT, 5, false) == QN_OK;
        qn_context_release(c);
        is_fine = is_fine && (h.n[QN_LOG_INFO] > 0) == has_log;
        _exit(is_fine ? 0 : 1);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t more;
         n + 1 < text_bytes && (more = read(ends[0], text + n, text_bytes - 1 - n)) > 0;)
        n += (size_t)more;
    text[n] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    tap_ok(status == 0, "a child with QUERN_VERBOSE=%s%s", value, has_log ? " and a log" : "");
}

static void test_variable(void)
{
    char text[4000], reason[600];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return;
    }
    read_child("1", false, text, sizeof text);
    tap_ok(text[0] == 0, "QUERN_VERBOSE=1 does not tell of compiles");
    read_child("2", false, text, sizeof text);
    tap_contains(text, "quern: kernel \"copy\" is compiled: first version; exact, ",
                 "QUERN_VERBOSE=2 does");
    read_child("2", true, text, sizeof text);
    tap_ok(text[0] == 0, "the host's log is told instead of standard error, at this level");
}

int main(void)
{
    test_variable();
    test_levels();
    test_options();
    return tap_done();
}
