/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_explain.c: what qn_explain says of versions that are there, that are missing, that were made
 * for a reason, and of what would be faster; that a question changes nothing; and its errors.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <string.h>

/** A context with y = x + a y of so many elements, which lie `step` apart in y. */
typedef struct job {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
    char text[4096];
} job;

static qn_error err;

static void resize(job *j, int64_t n, int64_t step)
{
    qn_layout l;
    qn_view_release(&j->x);
    qn_view_release(&j->y);
    j->x = vector_of(j->c, "x", QN_F32, n);
    tap_ok(qn_layout_strided(1, &n, &step, &l, &err) == QN_OK &&
               qn_view_alloc(j->c, "y", QN_F32, &l, 0, &j->y, &err) == QN_OK,
           "%d elements", (int)n);
    fill_f32(&j->x, 1, 1);
    memset(j->y.data, 0, (size_t)(n * step) * sizeof(float));
}

static void open_job(job *j, const qn_context_options *o)
{
    *j = (job){.c = context_with(o), .k = kernel_of(SAXPY_TEXT)};
    resize(j, 1000, 1);
}

static void close_job(job *j)
{
    qn_view_release(&j->x);
    qn_view_release(&j->y);
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

static qn_status launch(job *j, const qn_options *o)
{
    const qn_arg args[] = {qn_arg_view(&j->x), qn_arg_view(&j->y), qn_arg_f32(2)};
    return qn_launch(j->c, j->k, 3, args, o, &err);
}

/** Whether the answer has a part. */
static bool says(job *j, const qn_options *o, const char *part)
{
    const qn_arg args[] = {qn_arg_view(&j->x), qn_arg_view(&j->y), qn_arg_f32(2)};
    size_t needed = 0;
    qn_status status = qn_explain(j->c, j->k, 3, args, o, j->text, sizeof j->text, &needed, &err);
    bool has = status == QN_OK && needed == strlen(j->text) && strstr(j->text, part);
    if (!has)
        tap_note("%s: the answer lacks \"%s\": %s", err.message, part, j->text);
    return has;
}

static void test_versions(void)
{
    job j;
    open_job(&j, NULL);
    tap_ok(says(&j, NULL, "version: exact, is not in memory") && counters_of(j.c).compiles == 0,
           "a version that is not there is missing, and is not made");
    tap_ok(launch(&j, NULL) == QN_OK && says(&j, NULL, "why: first version; exact"),
           "after a launch it runs, and has a reason");
    tap_ok(!strstr(j.text, "version:") && strstr(j.text, "kernel: saxpy, 1000 iterations"),
           "... and is not missing");
    const qn_options dynamic = {.bytes = sizeof dynamic, .specialize = QN_SPECIALIZE_DYNAMIC};
    tap_ok(says(&j, &dynamic, "version: dynamic, is not in memory"),
           "a dynamic version is another one");
    tap_ok(launch(&j, &dynamic) == QN_OK &&
               says(&j, &dynamic, "faster: constants for extent 0 of view x"),
           "what is no constant of it is named");
    const qn_options never = {.bytes = sizeof never, .compile = QN_COMPILE_NEVER};
    resize(&j, 801, 1);
    tap_ok(says(&j, &never, "version: exact, is not in memory") &&
               strstr(j.text, "runs: generated code") && strstr(j.text, "dynamic extents"),
           "where nothing may be compiled the dynamic version stands in");
    resize(&j, 904, 1);
    tap_ok(launch(&j, NULL) == QN_OK && says(&j, NULL, "extent 0 of view x: 904, was 1000"),
           "the next one has another reason");
    close_job(&j);
}

static void test_dynamic(void)
{
    job j;
    open_job(&j, NULL);
    int n_failed = 0;
    for (int64_t i = 0; i < 20; i++) {
        resize(&j, 100 + i, 1);
        n_failed += launch(&j, NULL) != QN_OK;
    }
    int64_t compiles = counters_of(j.c).compiles;
    resize(&j, 500, 1);
    tap_ok(n_failed == 0 && says(&j, NULL, "dynamic extents"),
           "after many shapes the dynamic version runs further ones");
    tap_ok(counters_of(j.c).compiles == compiles, "and asking compiled nothing");
    close_job(&j);
}

static void test_hints(void)
{
    job j;
    open_job(&j, NULL);
    resize(&j, 1000, 3);
    tap_ok(
        launch(&j, NULL) == QN_OK &&
            says(&j, NULL, "faster: a dimension of stride 1 in view y, whose elements are 3 apart"),
        "strides");
    resize(&j, 1 << 21, 1);
    const qn_context_options two = {.bytes = sizeof two, .n_threads = 2};
    job t;
    open_job(&t, &two);
    resize(&t, 1 << 21, 1);
    tap_ok(launch(&t, NULL) == QN_OK &&
               says(&t, NULL, "faster: executor QN_THREADS, with 2 threads"),
           "threads");
    const qn_options threads = {.bytes = sizeof threads, .executor = QN_THREADS};
    tap_ok(launch(&t, &threads) == QN_OK && says(&t, &threads, "executor threads") &&
               !strstr(t.text, "QN_THREADS"),
           "... but not if there are some");
    close_job(&t);
    resize(&j, 1000, 1);
    qn_view x = j.x, y = j.y; /* x becomes y, an element before it */
    y.layout.dim[0].extent = 900;
    j.x = j.y = y;
    j.y.data = (float *)y.data + 1;
    tap_ok(launch(&j, NULL) == QN_OK && says(&j, NULL, "faster: views that share no elements"),
           "overlap");
    y.layout.dim[0].extent = 1000;
    j.x = x;
    j.y = y;
    const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    tap_ok(says(&j, &interp, "runs: the interpreter, as option engine says"), "the interpreter");
    close_job(&j);
}

static void test_errors(void)
{
    job j;
    open_job(&j, NULL);
    const qn_arg args[] = {qn_arg_view(&j.x), qn_arg_view(&j.y), qn_arg_f32(2)};
    char small[8];
    size_t needed = 0, whole = 0;
    tap_ok(qn_explain(j.c, j.k, 3, args, NULL, NULL, 0, &whole, &err) == QN_OK && whole > 20,
           "the length alone can be asked for");
    tap_ok(qn_explain(j.c, j.k, 3, args, NULL, small, sizeof small, &needed, &err) == QN_OK &&
               needed == whole && strlen(small) == sizeof small - 1,
           "a small buffer gets the begin");
    tap_ok(qn_explain(j.c, j.k, 2, args, NULL, small, sizeof small, &needed, &err) ==
                   QN_ERR_ARGUMENT &&
               needed == 0 && strstr(err.message, "qn_explain"),
           "wrong arguments are errors: %s", err.message);
    tap_ok(qn_explain(j.c, j.k, 3, args, NULL, NULL, 8, NULL, &err) == QN_ERR_ARGUMENT,
           "no buffer: %s", err.message);
    tap_ok(qn_explain(NULL, j.k, 3, args, NULL, small, sizeof small, NULL, &err) == QN_ERR_ARGUMENT,
           "no context: %s", err.message);
    tap_ok(qn_explain(j.c, NULL, 3, args, NULL, small, sizeof small, NULL, &err) == QN_ERR_ARGUMENT,
           "no kernel: %s", err.message);
    close_job(&j);
}

int main(void)
{
    char reason[400];
    test_errors();
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_versions();
    test_dynamic();
    test_hints();
    return tap_done();
}
