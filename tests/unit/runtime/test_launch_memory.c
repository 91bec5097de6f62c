/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_launch_memory.c: lack of memory anywhere in a context's life: the n-th allocation of the
 * library fails, once and for ever, for every n until all goes well. Nothing crashes, and a
 * sanitizer sees that nothing leaks; what fails says so, what does not has the right result, and
 * the same context works afterwards.
 */
#include "ir/ir.h"
#include "tests/unit/launch.h"

enum { N = 50, MOST = 5000, ENOUGH = 40 };

/** Launches twice, in the interpreter once debugged, prepares, runs and looks inside; false with a
 * status that is not about memory, or a wrong result. Done is who had no lack of memory: AUTO is
 * not while it interprets. */
static bool use(qn_context *c, const qn_kernel *k, const qn_view *x, const qn_view *y, int engine,
                bool *is_done)
{
    qn_options o = {.bytes = sizeof o, .engine = engine, .executor = QN_THREADS};
    const qn_arg args[] = {qn_arg_view(x), qn_arg_view(y)};
    qn_error err = {0};
    qn_call *call = NULL;
    qn_code *f = NULL;
    qn_status status = QN_OK;
    int64_t n_interpreted = counters_of(c).interpreted;
    for (int i = 0; i < 2 && status == QN_OK; i++) {
        fill_f32(y, 0, 0);
        o.debug = i == 1 && engine == QN_ENGINE_INTERP ? QN_DEBUG_RACES | QN_DEBUG_NAN : 0;
        status = qn_launch(c, k, 2, args, &o, &err);
    }
    if (status == QN_OK)
        status = qn_prepare(c, k, 2, args, &o, &call, &err);
    if (status == QN_OK)
        status = qn_run(call, &err);
    if (status == QN_OK)
        status = qn_specialize(c, k, 2, args, &o, &f, &err);
    if (status == QN_OK)
        qn_code_text(f, QN_DUMP_KEY, NULL, 0);
    qn_context_history(c, NULL, 0);
    qn_call_release(call);
    qn_code_release(f);
    bool has_code = engine == QN_ENGINE_INTERP || counters_of(c).interpreted == n_interpreted;
    *is_done = status == QN_OK && has_code;
    bool is_right = status != QN_OK || memcmp(x->data, y->data, N * sizeof(float)) == 0;
    if (!is_right || (status != QN_OK && status != QN_ERR_MEMORY))
        tap_note("%s: %s", qn_status_name((int)status), err.message);
    return is_right && (status == QN_OK || status == QN_ERR_MEMORY);
}

static void test_failures(const qn_kernel *k, int engine, bool for_ever, const char *name)
{
    qn_context *outer = context_with(NULL);
    qn_view x = vector_of(outer, "x", QN_F32, N), y = vector_of(outer, "y", QN_F32, N);
    fill_f32(&x, 1, 1);
    int n_bad = 0, n = 1, n_done = 0;
    for (; n < MOST && n_done < ENOUGH; n++) {
        const qn_context_options o = {.bytes = sizeof o,
                                      .provider_path = QN_BUILD_DIR "/libquern-llvm.so"};
        qn_context *c = NULL;
        bool is_done = false, is_done_after = false;
        qn__fail_allocation(n, for_ever);
        qn_status status = qn_context_new(&o, &c, NULL);
        n_bad += status != QN_OK && status != QN_ERR_MEMORY;
        if (c)
            n_bad += !use(c, k, &x, &y, engine, &is_done);
        qn__fail_allocation(0, false);
        n_done = is_done ? n_done + 1 : 0;
        if (c)
            n_bad += !use(c, k, &x, &y, engine, &is_done_after) || !is_done_after;
        qn_context_release(c);
    }
    tap_ok(n_bad == 0, "%s: each of %d allocations fails %s", name, n - 1 - n_done,
           for_ever ? "with all after it" : "once");
    tap_ok(n_done == ENOUGH, "%s: until all goes well", name);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_context_release(outer);
}

static void count_line(void *arg, const qn_printed *line)
{
    *(int *)arg += line->message && strcmp(line->message, "x") == 0;
}

/** A launch of a kernel that has not printed yet gives all its lines, or says that it had no
 * memory; the next one gives them. */
static void test_prints(int engine, bool for_ever, const char *name)
{
    static const char text[] =
        "kernel \"prints\" {\n view x: f32[1]; view y: f32[1]; %b: i64 = const 0; %n: i64 = extent "
        "y, 0;\n"
        " %i: i64 = parallel %b, %n; %v: f32 = load x[%i]; print \"x\" %v; store y[%i], %v;\n}\n";
    qn_context *c = context_with(NULL);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    int n_bad = 0, n = 1, n_done = 0, lines;
    const qn_options o = {
        .bytes = sizeof o, .engine = engine, .print = count_line, .print_arg = &lines};
    fill_f32(&x, 1, 1);
    for (; n < MOST && n_done < ENOUGH; n++) {
        qn_kernel *k = kernel_of(text);
        lines = 0;
        qn__fail_allocation(n, for_ever);
        qn_status status = qn_launch(c, k, 2, args, &o, NULL);
        qn__fail_allocation(0, false);
        n_bad += status ? status != QN_ERR_MEMORY : lines != N;
        n_done = status ? 0 : n_done + 1;
        lines = 0;
        fill_f32(&y, 0, 0);
        status = qn_launch(c, k, 2, args, &o, NULL);
        n_bad += status || lines != N || memcmp(x.data, y.data, N * sizeof(float)) != 0;
        qn_kernel_release(k);
    }
    tap_ok(n_bad == 0 && n_done == ENOUGH, "%s: prints where each of %d allocations fails %s", name,
           n - 1 - n_done, for_ever ? "with all after it" : "once");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_context_release(c);
}

int main(void)
{
    char reason[600];
    qn_kernel *k = kernel_of(COPY_TEXT);
    test_failures(k, QN_ENGINE_INTERP, false, "interpreter");
    test_failures(k, QN_ENGINE_INTERP, true, "interpreter");
    test_prints(QN_ENGINE_INTERP, false, "interpreter");
    test_prints(QN_ENGINE_INTERP, true, "interpreter");
    if (has_x86(reason, sizeof reason)) {
        test_prints(QN_ENGINE_NATIVE, false, "x86");
        test_prints(QN_ENGINE_NATIVE, true, "x86");
        test_failures(k, QN_ENGINE_NATIVE, false, "x86");
        test_failures(k, QN_ENGINE_NATIVE, true, "x86");
        test_failures(k, QN_ENGINE_AUTO, false, "either");
    } else {
        tap_skip(reason);
    }
    qn_kernel_release(k);
    return tap_done();
}
