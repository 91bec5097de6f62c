/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fallback.c: who hears that the interpreter runs because code cannot be had: the event hook
 * and, on request, standard error, once per context; and nobody needs to, with must_generate.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <sys/wait.h>
#include <unistd.h>

typedef struct heard {
    int n;
    char text[200], kernel[40];
} heard;

static void on_event(void *arg, const qn_event *e)
{
    heard *h = arg;
    if (e->kind != QN_EVENT_FALLBACK)
        return;
    h->n++;
    snprintf(h->text, sizeof h->text, "%s", e->text);
    snprintf(h->kernel, sizeof h->kernel, "%s", e->kernel);
}

/** A context whose code generator is not there. */
static qn_context *without_provider(heard *h)
{
    const qn_context_options o = {.bytes = sizeof o,
                                  .provider_path = "/nonexistent/libquern-llvm.so",
                                  .event_hook = h ? on_event : NULL,
                                  .event_arg = h};
    return context_with(&o);
}

static qn_status launch(qn_context *c, const char *text, int64_t n, const qn_options *o,
                        qn_error *err)
{
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(c, "x", QN_F32, n + 1), y = vector_of(c, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_status status = qn_launch(c, k, 2, args, o, err);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return status;
}

static void test_hook(void)
{
    heard h = {0};
    for (int round = 1; round <= 2; round++) {
        qn_context *c = without_provider(&h);
        bool is_fine = launch(c, COPY_TEXT, 5, NULL, NULL) == QN_OK &&
                       launch(c, COPY_TEXT, 5, NULL, NULL) == QN_OK &&
                       launch(c, COPY_TEXT, 6, NULL, NULL) == QN_OK &&
                       launch(c, SHIFT_TEXT, 5, NULL, NULL) == QN_OK;
        tap_ok(is_fine && counters_of(c).interpreted == 4, "two kernels are interpreted");
        tap_is_int(h.n, round, "which the hook hears once per context");
        tap_contains(h.text, "QN_ERR_PROVIDER", "with the reason");
        tap_ok(strcmp(h.kernel, "copy") == 0, "and the first kernel");
        tap_ok(history_has(c, "copy: interpreted") && history_has(c, "shift: interpreted"),
               "the history has each kernel");
        qn_context_release(c);
    }
    qn_context *c = without_provider(&h);
    const qn_options wanted = {.bytes = sizeof wanted, .engine = QN_ENGINE_INTERP};
    tap_ok(launch(c, COPY_TEXT, 5, &wanted, NULL) == QN_OK && h.n == 2,
           "the interpreter that was asked for is no news");
    qn_context_release(c);
}

static void test_must_generate(void)
{
    heard h = {0};
    qn_context *c = without_provider(&h);
    const qn_options must = {.bytes = sizeof must, .must_generate = 1};
    const qn_options both = {.bytes = sizeof both, .must_generate = 1, .engine = QN_ENGINE_INTERP};
    qn_error err = {0};
    tap_ok(launch(c, COPY_TEXT, 5, &must, &err) == QN_ERR_PROVIDER, "must_generate fails");
    tap_contains(err.message, "/nonexistent/libquern-llvm.so", "with the reason");
    tap_ok(launch(c, COPY_TEXT, 5, NULL, NULL) == QN_OK, "without it the kernel is interpreted");
    tap_ok(launch(c, COPY_TEXT, 5, &must, &err) == QN_ERR_PROVIDER,
           "what was interpreted fails with must_generate");
    tap_is_int(h.n, 1, "an error is no fallback");
    tap_ok(launch(c, COPY_TEXT, 5, &both, &err) == QN_ERR_ARGUMENT,
           "must_generate and the interpreter do not go together");
    tap_contains(err.message, "must_generate", "which is said");
    qn_context_release(c);
    char reason[600];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return;
    }
    c = context_with(NULL);
    tap_ok(launch(c, COPY_TEXT, 5, &must, &err) == QN_OK && counters_of(c).compiles == 1,
           "where code can be had, must_generate changes nothing: %s", err.message);
    qn_context_release(c);
}

/** Lines that a child with QUERN_VERBOSE set to `value` writes to standard error. */
static int count_lines(const char *value, char *text, size_t text_bytes)
{
    int pipe_ends[2], n = 0;
    if (pipe(pipe_ends) != 0)
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        dup2(pipe_ends[1], STDERR_FILENO);
        if (value)
            setenv("QUERN_VERBOSE", value, 1);
        else
            unsetenv("QUERN_VERBOSE");
        qn_context *c = without_provider(NULL);
        bool is_fine = launch(c, COPY_TEXT, 5, NULL, NULL) == QN_OK &&
                       launch(c, SHIFT_TEXT, 5, NULL, NULL) == QN_OK;
        _exit(is_fine ? 0 : 1);
    }
    close(pipe_ends[1]);
    FILE *file = fdopen(pipe_ends[0], "r");
    char line[1000];
    while (file && fgets(line, sizeof line, file)) {
        snprintf(text, text_bytes, "%s", line);
        n++;
    }
    if (file)
        fclose(file);
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 ? n : -1;
}

static void test_standard_error(void)
{
    char text[1000] = {0};
    tap_is_int(count_lines(NULL, text, sizeof text), 0, "standard error is left alone");
    tap_is_int(count_lines("0", text, sizeof text), 0, "also with QUERN_VERBOSE=0");
    tap_is_int(count_lines("1", text, sizeof text), 1, "QUERN_VERBOSE=1 gives one line");
    tap_contains(text,
                 "quern: kernel \"copy\" is interpreted: QN_ERR_PROVIDER: ", "with the reason");
}

int main(void)
{
    test_standard_error();
    test_hook();
    test_must_generate();
    return tap_done();
}
