/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tools.c: what a tool of Kokkos, and NVTX, are told of launches, copies and allocations, in
 * which order, and when they are begun and ended. The tool is tests/stub/stub_tools.c.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUB QN_BUILD_DIR "/tests/stub/libstub_tools.so"
#define SUM_TEXT                                                                                   \
    "kernel \"sum\" {\n view x: f32[1]; view s: f32[0];\n %0: i64 = const 0; %1: i64 = extent x, " \
    "0;\n"                                                                                         \
    " %2: i64 = reduction %0, %1;\n %3: f32 = reduce sum over %2 { %4: f32 = load x[%2]; yield "   \
    "%4; };\n store s[], %3;\n}\n"

static const char *(*text_of)(void);
static void (*clear)(void);

/** Finds the functions of the stub, which a context has loaded. */
static bool find_stub(void)
{
    void *library = dlopen(STUB, RTLD_NOW | RTLD_NOLOAD);
    void *text = library ? dlsym(library, "stub_tools_text") : NULL,
         *clears = library ? dlsym(library, "stub_tools_clear") : NULL;
    memcpy(&text_of, &text, sizeof text);
    memcpy(&clear, &clears, sizeof clears);
    return text && clears;
}

static qn_context *with_tools(const char *kokkos, const char *nvtx)
{
    const qn_context_options o = {.bytes = sizeof o, .kokkos_tools = kokkos, .nvtx = nvtx};
    return context_with(&o);
}

/** Takes two vectors, launches, runs and copies; gives one vector back. */
static bool work(qn_context *c, int executor)
{
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP, .executor = executor};
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 10), y = vector_of(c, "y", QN_F32, 10);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_call *call = NULL;
    bool is_fine = qn_launch(c, k, 2, args, &o, NULL) == QN_OK &&
                   qn_prepare(c, k, 2, args, &o, &call, NULL) == QN_OK &&
                   qn_run(call, NULL) == QN_OK && qn_deep_copy(c, &y, &x, NULL) == QN_OK;
    qn_call_release(call);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return is_fine;
}

static void test_kokkos(void)
{
    qn_context *c = with_tools(STUB ";/nonexistent/second.so", "off");
    if (!find_stub()) {
        tap_ok(false, "the stub is loaded: %s", dlerror());
        return;
    }
    tap_ok(strcmp(text_of(), "init 0 20211015 0 NULL\n") == 0,
           "the first tool of the list is begun");
    clear();
    tap_ok(work(c, QN_SERIAL), "two vectors, a launch, a run, a copy");
    static const char wanted[] =
        "allocate Host x there 40\nallocate Host y there 40\n"
        "for copy on 0.0\nend for, the last\nfor copy on 0.0\nend for, the last\n"
        "copy Host y from Host x 40\nend copy\n"
        "deallocate Host x there 40\ndeallocate Host y there 40\n";
    tap_ok(strcmp(text_of(), wanted) == 0, "the tool is told of all in order");
    clear();
    tap_ok(work(c, QN_THREADS), "likewise on threads");
    tap_contains(text_of(), "for copy on 6.0\n", "threads have the number of Kokkos's threads");
    clear();
    qn_context *d = with_tools(STUB, NULL);
    tap_ok(text_of()[0] == 0, "a second context does not begin it again");
    qn_context_release(c);
    tap_ok(text_of()[0] == 0 && work(d, QN_SERIAL) && text_of()[0] != 0,
           "the first one does not end it");
    clear();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bool is_fine = work(d, QN_SERIAL);
        qn_context_release(d);
        _exit(is_fine && text_of()[0] == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap_ok(status == 0, "a child of fork tells nothing");
    qn_context_release(d);
    tap_ok(strcmp(text_of(), "finalize\n") == 0, "the last one ends it");
    clear();
    c = with_tools(NULL, NULL);
    tap_ok(work(c, QN_SERIAL) && text_of()[0] == 0, "a context without it tells nothing");
    qn_context_release(c);
}

static void test_reduction(void)
{
    qn_context *c = with_tools(STUB, NULL);
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    qn_kernel *k = kernel_of(SUM_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 10), s = {0};
    qn_error err = {0};
    tap_ok(qn_view_new(c, "s", QN_F32, 0, NULL, &s, &err) == QN_OK, "a scalar view: %s",
           err.message);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&s)};
    clear();
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_OK, "a sum: %s", err.message);
    tap_ok(strcmp(text_of(), "reduce sum on 0.0\nend reduce, the last\n") == 0,
           "a kernel without parallel dimensions is a reduction");
    qn_view_release(&x);
    qn_view_release(&s);
    qn_kernel_release(k);
    qn_context_release(c);
    clear();
}

static void test_nvtx(void)
{
    qn_context *c = with_tools(NULL, STUB);
    tap_ok(work(c, QN_SERIAL), "work under NVTX");
    tap_ok(strcmp(text_of(), "push copy\npop\npush copy\npop\npush qn_deep_copy\npop\n") == 0,
           "launches and copies are ranges");
    qn_context_release(c);
    clear();
}

static void test_variable(void)
{
    setenv("KOKKOS_TOOLS_LIBS", STUB, 1);
    qn_context *c = with_tools(NULL, NULL);
    tap_ok(strncmp(text_of(), "init ", 5) == 0, "KOKKOS_TOOLS_LIBS names a tool");
    qn_context_release(c);
    clear();
    c = with_tools("off", NULL);
    tap_ok(work(c, QN_SERIAL) && text_of()[0] == 0, "off in the options is stronger");
    qn_context_release(c);
    unsetenv("KOKKOS_TOOLS_LIBS");
    c = with_tools("/nonexistent/tool.so", "/nonexistent/nvtx.so");
    tap_ok(history_has(c, "the tool of Kokkos cannot be loaded: ") &&
               history_has(c, "NVTX cannot be loaded: "),
           "what cannot be loaded is in the history");
    tap_ok(work(c, QN_SERIAL), "and the context works");
    qn_context_release(c);
}

int main(void)
{
    unsetenv("KOKKOS_TOOLS_LIBS");
    test_kokkos();
    test_reduction();
    test_nvtx();
    test_variable();
    return tap_done();
}
