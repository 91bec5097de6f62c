/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda_errors.c: every call of the driver fails with errors of every kind, at its first and
 * its last use in a program that uses all of them. Nothing crashes, the message names the call and
 * the error, and nothing is left. Then what follows a lost context, a fork, and PTX that is
 * refused.
 */
#include "tests/fill.h"
#include "runtime/cuda/driver.h"
#include "tests/unit/gpu.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 200 };

static const stub_control *stub;
static qn_kernel *gather, *copy;

static const char *const calls[] = {
#define QN_X(name, symbol, parameters) #symbol,
    QN_CUDA_CALLS(QN_X)
#undef QN_X
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

/** What a run of the program makes; all of it can be released at any point. */
typedef struct things {
    qn_context *c;
    qn_stream *s, *far, *wrapped;
    qn_view x, y, index, pinned, managed, host, far_x, column;
    qn_mark *begin, *end;
    qn_call *call, *checked;
    qn_graph *graph;
} things;

static qn_status make_view(things *t, qn_view *out, int space, qn_stream *s, int dtype, int64_t n,
                           qn_error *err)
{
    qn_view_type type;
    const qn_alloc_options o = {.bytes = sizeof o, .label = "v", .space = space, .stream = s};
    qn_view_type_init(dtype, 1, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = space;
    return qn_view_create(t->c, &type, 1, &n, &o, out, err);
}

/** A view of every k-th element. */
static qn_view every(const qn_view *v, int64_t rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t extents[] = {2, 2, 24}, strides[] = {a, b, c};
    qn_view part = *v;
    qn_layout_strided((int)rank, extents + 3 - rank, strides + 3 - rank, &part.layout, NULL);
    return part;
}

#define STEP(call)                                                                                 \
    do {                                                                                           \
        qn_status step = (call);                                                                   \
        if (step)                                                                                  \
            return step;                                                                           \
    } while (0)

static qn_status work(things *t, qn_error *err)
{
    qn_cuda_device info;
    bool done;
    double ms;
    STEP(qn_cuda_device_info(t->c, 0, &info, sizeof info, err));
    STEP(qn_stream_new(t->c, 0, &t->s, err));
    STEP(qn_stream_new(t->c, 1, &t->far, err));
    STEP(qn_stream_wrap(t->c, qn_stream_handle(t->s), &t->wrapped, err));
    STEP(make_view(t, &t->x, QN_SPACE_CUDA, t->s, QN_F64, N, err));
    STEP(make_view(t, &t->y, QN_SPACE_CUDA, NULL, QN_F64, N, err));
    STEP(make_view(t, &t->index, QN_SPACE_CUDA, t->s, QN_I64, N, err));
    STEP(make_view(t, &t->far_x, QN_SPACE_CUDA, t->far, QN_F64, N, err));
    STEP(make_view(t, &t->pinned, QN_SPACE_CUDA_PINNED, NULL, QN_F64, N, err));
    STEP(make_view(t, &t->managed, QN_SPACE_CUDA_MANAGED, NULL, QN_F64, N, err));
    STEP(make_view(t, &t->host, QN_SPACE_HOST, NULL, QN_F64, N, err));
    STEP(qn_stream_mark(t->s, 1, &t->begin, err));
    STEP(stream_fill_bits(t->s, &t->x, 0, err));
    const qn_view small = {.data = t->x.data,
                           .owner = t->x.owner,
                           .dtype = QN_U8,
                           .space = QN_SPACE_CUDA,
                           .layout = t->x.layout};
    qn_view half = small;
    half.dtype = QN_U16;
    STEP(stream_fill_bits(t->s, &small, 1, err));
    STEP(stream_fill_bits(t->s, &half, 1, err));
    STEP(qn_stream_copy(t->s, &t->x, &t->host, err));
    STEP(qn_deep_copy(t->c, &t->far_x, &t->x, err));
    const qn_view rows = every(&t->x, 2, 0, 50, 1), host_rows = every(&t->host, 2, 0, 60, 1);
    STEP(qn_stream_copy(t->s, &rows, &host_rows, err));
    const qn_view blocks = every(&t->x, 3, 100, 50, 1), host_blocks = every(&t->host, 3, 90, 30, 1);
    STEP(qn_stream_copy(t->s, &blocks, &host_blocks, err));
    const qn_view odd = every(&t->x, 1, 0, 0, 2), host_odd = every(&t->host, 1, 0, 0, 3);
    STEP(qn_deep_copy(t->c, &odd, &host_odd, err));
    const qn_arg args[] = {qn_arg_view(&t->x), qn_arg_view(&t->index), qn_arg_view(&t->y)};
    const qn_arg two[] = {qn_arg_view(&t->pinned), qn_arg_view(&t->managed)};
    qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = t->s};
    STEP(qn_launch(t->c, gather, 3, args, &o, err));
    STEP(qn_prepare(t->c, copy, 2, two, &o, &t->call, err));
    STEP(qn_run(t->call, err));
    const qn_arg apart[] = {qn_arg_view(&t->x), qn_arg_view(&t->far_x)};
    o.stream = t->far;
    STEP(qn_launch(t->c, copy, 2, apart, &o, err));
    STEP(qn_stream_fence(t->far, err));
    o.stream = t->wrapped;
    STEP(qn_launch(t->c, gather, 3, args, &o, err));
    STEP(qn_prepare(t->c, gather, 3, args, &o, &t->checked, err));
    qn_call *both[] = {t->call, t->checked};
    STEP(qn_graph_new(t->c, 2, both, &t->graph, err));
    STEP(qn_graph_run(t->graph, t->s, err));
    STEP(qn_stream_mark(t->s, 1, &t->end, err));
    STEP(qn_stream_after(t->far, t->end, err));
    STEP(qn_mark_wait(t->end, err));
    STEP(qn_mark_is_done(t->end, &done, err));
    STEP(qn_mark_milliseconds(t->begin, t->end, &ms, err));
    STEP(qn_stream_is_done(t->s, &done, err));
    STEP(qn_stream_fence(t->s, err));
    STEP(qn_stream_fence(t->wrapped, err));
    STEP(qn_cuda_wrap(t->c, QN_SPACE_CUDA, "w", t->x.data, QN_F64, &t->x.layout, 0, &t->column,
                      err));
    STEP(qn_cuda_trim(t->c, 0, err));
    return QN_OK;
}

static void release(things *t)
{
    qn_view *const views[] = {&t->x,       &t->y,    &t->index, &t->pinned,
                              &t->managed, &t->host, &t->far_x, &t->column};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        qn_view_release(views[i]);
    qn_graph_release(t->graph);
    qn_call_release(t->call);
    qn_call_release(t->checked);
    qn_mark_release(t->begin);
    qn_mark_release(t->end);
    qn_stream_release(t->wrapped);
    qn_stream_release(t->far);
    qn_stream_release(t->s);
    qn_context_release(t->c);
}

static qn_status run_all(qn_error *err)
{
    things t = {.c = stub_context()};
    qn_status status = work(&t, err);
    release(&t);
    return status;
}

/** Calls whose failure is not told, since there is nothing to be done; what they were to free
 * stays. */
static bool is_quiet(const char *name)
{
    static const char *const quiet[] = {"Destroy", "Free", "Unload",
                                        "Release", "Pop",  "EventQuery"};
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        if (strstr(name, quiet[i]))
            return true;
    return false;
}

static bool has_failed_well(const char *name, int result, bool last, qn_status status,
                            const qn_error *err)
{
    bool is_fatal = qn__cuda_is_fatal(result);
    if (status == QN_OK) /* the last uses are in releases; memory is tried for again */
        return is_quiet(name) || last || result == QN_CU_OUT_OF_MEMORY;
    if (status != qn__cuda_status(result) && !(is_fatal && status == QN_ERR_CONTEXT_LOST))
        return false;
    return is_quiet(name) || strstr(err->message, name) != NULL;
}

static void test_matrix(void)
{
    static const int results[] = {1, 2, 3, 700, 719, 999};
    int64_t uses[N_CALLS];
    qn_error err = {0};
    stub->reset();
    tap_ok(run_all(&err) == QN_OK, "the program runs: %s", err.message);
    tap_ok(is_clean(stub), "and leaves nothing");
    for (int i = 0; i < N_CALLS; i++)
        uses[i] = stub->calls(calls[i]);
    for (int i = 0; i < N_CALLS; i++) {
        if (strncmp(calls[i], "cuGetError", 10) == 0)
            continue;
        int n_failed = 0;
        bool is_needed =
            strcmp(calls[i], "cuFuncSetAttribute") !=
                0 && /* for more shared memory than these kernels have */
            strcmp(calls[i], "cuCtxEnablePeerAccess") != 0; /* for devices without pools */
        if (is_needed)
            tap_ok(uses[i] > 0, "%s is used", calls[i]);
        for (size_t r = 0; r < sizeof results / sizeof results[0]; r++)
            for (int last = 0; last < 2 && uses[i] > last; last++) {
                err = (qn_error){0};
                stub->reset();
                stub->fail(calls[i], results[r], last ? (int)uses[i] : 1);
                qn_status status = run_all(&err);
                bool is_right = has_failed_well(calls[i], results[r], last != 0, status, &err);
                if (is_right && status != QN_OK && !qn__cuda_is_fatal(results[r]) &&
                    !is_quiet(calls[i]))
                    is_right = is_clean(stub);
                if (!is_right || stub->misuse()) {
                    tap_note("%s use of %s, result %d: %s: %s; %s", last ? "last" : "first",
                             calls[i], results[r], qn_status_name((int)status), err.message,
                             stub->misuse() ? stub->misuse() : "");
                    n_failed++;
                }
                for (int kind = 0; kind < STUB_KINDS;
                     kind++) /* what a failed free or a lost context left */
                    stub->forget(kind);
            }
        tap_ok(n_failed == 0, "%s fails well", calls[i]);
    }
    stub->reset();
}

/* ---------------------------------------------------------------- after a lost context */

static void test_lost(void)
{
    things t = {.c = stub_context()};
    qn_error err = {0};
    stub->reset();
    tap_ok(work(&t, &err) == QN_OK, "before");
    stub->fail("cuStreamSynchronize", 700, 1);
    tap_ok(qn_stream_fence(t.s, &err) == QN_ERR_CONTEXT_LOST, "a context is lost: %s", err.message);
    tap_contains(
        err.message,
        "device 0: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access",
        "told once");
    stub->fail(NULL, 0, 0);
    int64_t before = stub->calls(NULL);
    tap_ok(qn_stream_fence(t.s, &err) == QN_ERR_CONTEXT_LOST, "then refused: %s", err.message);
    tap_contains(err.message, "the CUDA context was lost by CUDA_ERROR_ILLEGAL_ADDRESS (700)",
                 "with the reason");
    tap_ok(qn_run(t.call, &err) == QN_ERR_CONTEXT_LOST, "prepared calls too: %s", err.message);
    tap_ok(qn_deep_copy(t.c, &t.host, &t.x, &err) == QN_ERR_CONTEXT_LOST, "copies too: %s",
           err.message);
    tap_is_int(stub->calls(NULL), before, "without asking the driver");
    stub->reset();
    release(&t);
    tap_ok(!stub->misuse(), "everything can be released");
    for (int kind = 0; kind < STUB_KINDS; kind++)
        stub->forget(kind);
}

/* ---------------------------------------------------------------- fork */

static void test_fork(void)
{
    things t = {.c = stub_context()};
    qn_error err = {0};
    stub->reset();
    tap_ok(work(&t, &err) == QN_OK, "before a fork");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int64_t before = stub->calls(NULL);
        bool is_right = qn_stream_fence(t.s, &err) == QN_ERR_FORKED &&
                        qn_run(t.call, &err) == QN_ERR_FORKED &&
                        qn_deep_copy(t.c, &t.host, &t.x, &err) == QN_ERR_FORKED;
        release(&t);
        _exit(is_right && stub->calls(NULL) == before ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "in a child calls are refused, releases do not call the driver");
    tap_ok(qn_stream_fence(t.s, &err) == QN_OK, "the parent goes on: %s", err.message);
    release(&t);
    tap_ok(is_clean(stub), "nothing is left");
}

int main(void)
{
    char reason[256];
    stub = stub_open(STUB_PATH);
    if (!stub || !has_x86(reason, sizeof reason)) {
        tap_skip(stub ? reason : "no stub driver");
        return tap_done();
    }
    gather = kernel_of(GATHER_TEXT);
    copy = kernel_of("kernel \"copy\" {\n view x: f64[1]; view y: f64[1];\n %1: i64 = extent y, 0; "
                     "%0: i64 = const 0;\n"
                     " %3: i64 = parallel %0, %1; %5: f64 = load x[%3]; store y[%3], %5;\n}\n");
    stub->peers(1);
    stub->run_with(NULL); /* what kernels do does not matter here */
    test_matrix();
    test_lost();
    test_fork();
    qn_kernel_release(gather);
    qn_kernel_release(copy);
    return tap_done();
}
