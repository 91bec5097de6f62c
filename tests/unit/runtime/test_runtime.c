/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_runtime.c: what a launch does besides its result: known arguments, prepared calls, overlap,
 * empty domains, the floating-point environment, faults, events, texts and dumps, and life of the
 * handles. Engine by engine.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { N = 1000 };

static void test_known_arguments(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N),
            z = vector_of(c, "z", QN_F32, N);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    fill_f32(&x, 0, 1);
    qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
    qn_error err = {0};
    for (int i = 0; i < 5; i++)
        if (qn_launch(c, k, 3, args, &o, &err) != QN_OK)
            tap_ok(false, "%s: launch: %s", name, err.message);
    qn_counters n = counters_of(c);
    tap_ok(n.launches == 5 && n.hits == 4 && n.misses == 1, "%s: four of five launches are known",
           name);
    tap_ok(((float *)y.data)[N - 1] == 10 * (N - 1), "%s: results add up", name);
    args[1] = qn_arg_view(&z);
    args[2] = qn_arg_f32(3);
    qn_launch(c, k, 3, args, &o, &err);
    tap_ok(counters_of(c).hits == 5, "%s: other data and another scalar are known too", name);
    tap_ok(((float *)z.data)[7] == 21, "%s: with their own result", name);
    tap_is_int(counters_of(c).compiles, engine == QN_ENGINE_NATIVE, "one compile at most");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&z);
    qn_kernel_release(k);
    qn_context_release(c);
}

/** The hit path may not confuse arguments that differ in anything: each launch is compared with the
 * interpreter. */
static void test_descriptions_differ(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(COPY_TEXT);
    float from[96] __attribute__((aligned(64))), to[64] __attribute__((aligned(64)));
    for (int i = 0; i < 96; i++)
        from[i] = (float)i;
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    int n_wrong = 0;
    for (int round = 0; round < 3; round++) {
        for (int64_t n = 0; n < 12; n++) {
            for (int64_t stride = -2; stride < 4; stride++) {
                qn_layout l, dense;
                qn_layout_strided(1, &n, &stride, &l, NULL);
                qn_layout_right(1, &n, &dense, NULL);
                qn_view x, y;
                float *start = from + 32 + (n + stride) % 4;
                memset(to, 0, sizeof to);
                qn_view_wrap("x", start, QN_F32, &l, 0, &x, NULL);
                qn_view_wrap("y", to + n % 3, QN_F32, &dense, 0, &y, NULL);
                const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
                n_wrong += qn_launch(c, k, 2, args, &o, NULL) != QN_OK;
                for (int64_t i = 0; i < n; i++)
                    n_wrong += to[n % 3 + i] != start[i * stride];
                n_wrong += to[n % 3 + n] != 0;
            }
        }
    }
    tap_is_int(n_wrong, 0, name);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_prepared(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT), *fill = kernel_of(FILL_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    fill_f32(&x, 1, 0);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
    const qn_arg fill_args[] = {qn_arg_view(&y), qn_arg_int(QN_I64, 3)};
    qn_call *call = NULL, *other = NULL;
    qn_error err = {0};
    tap_ok(qn_prepare(c, k, 3, args, &o, &call, &err) == QN_OK, "%s: prepare: %s", name,
           err.message);
    tap_ok(qn_prepare(c, fill, 2, fill_args, &o, &other, &err) == QN_OK, "%s: prepare: %s", name,
           err.message);
    qn_view_release(&x);
    tap_ok(qn_run(call, &err) == QN_OK && qn_run(call, &err) == QN_OK,
           "%s: run twice, the view released", name);
    tap_ok(((float *)y.data)[N - 1] == 4, "%s: result", name);
    float four = 4;
    uint32_t bits;
    memcpy(&bits, &four, sizeof bits);
    tap_ok(qn_call_set_scalar(call, 2, bits, &err) == QN_OK && qn_run(call, &err) == QN_OK,
           "%s: another scalar", name);
    tap_ok(((float *)y.data)[0] == 8, "%s: result", name);
    tap_ok(qn_call_set_scalar(other, 1, 4, &err) == QN_ERR_ARGUMENT,
           "%s: a scalar of the domain stays", name);
    tap_contains(err.message, "decides the domain", "and the message says why");
    tap_ok(qn_call_set_scalar(call, 0, 4, &err) == QN_ERR_ARGUMENT, "%s: a view is no scalar",
           name);
    tap_ok(qn_call_set_scalar(call, 3, 4, &err) == QN_ERR_ARGUMENT, "%s: no such argument", name);
    tap_is_int(counters_of(c).launches, 3, "runs are counted");
    qn_call_release(other);
    qn_context_release(c);
    tap_ok(qn_run(call, &err) == QN_OK && ((float *)y.data)[0] == 12,
           "%s: a call outlives its context", name);
    qn_kernel_release(k);
    qn_kernel_release(fill);
    tap_ok(qn_run(call, &err) == QN_OK && ((float *)y.data)[0] == 16, "%s: and its kernel", name);
    qn_call_release(call);
    qn_view_release(&y);
}

static void test_overlap(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *copy = kernel_of(COPY_TEXT), *shift = kernel_of(SHIFT_TEXT);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    float data[N + 16], expected[N + 16];
    int64_t n = N;
    qn_layout l;
    qn_layout_right(1, &n, &l, NULL);
    int n_wrong = 0;
    for (int gap = -16; gap <= 16; gap++) {
        for (int i = 0; i < N + 16; i++)
            data[i] = expected[i] = (float)i;
        qn_view x, y;
        int from = gap < 0 ? -gap : 0, to = gap < 0 ? 0 : gap;
        qn_view_wrap("x", data + from, QN_F32, &l, 0, &x, NULL);
        qn_view_wrap("y", data + to, QN_F32, &l, 0, &y, NULL);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
        for (int again = 0; again < 2; again++) {
            qn_error err = {0};
            if (qn_launch(c, copy, 2, args, &o, &err) != QN_OK ||
                qn_launch(c, shift, 2, args, &o, &err) != QN_OK)
                tap_ok(false, "%s: overlap of %d: %s", name, gap, err.message);
            for (int i = 0; i < N; i++)
                expected[to + i] = expected[from + i];
            for (int i = 0; i < N - 1; i++)
                expected[to + i] = expected[from + i + 1];
        }
        n_wrong += memcmp(data, expected, sizeof data) != 0;
    }
    tap_ok(n_wrong == 0, "%s: overlapping views give what iteration order gives", name);
    qn_counters counters = counters_of(c);
    /* 32 gaps of copy and 33 of shift, twice; copy onto itself is harmless */
    tap_is_int(counters.ordered, 130, "and are counted");
    tap_ok(counters.hits >= 66, "%s: also with overlap the arguments are known", name);
    tap_ok(history_has(c, "in iteration order: view x overlaps view y"), "%s: the history says so",
           name);
    qn_kernel_release(copy);
    qn_kernel_release(shift);
    qn_context_release(c);
}

/** All iterations read one element and add to one element. */
static void test_atomic_overlap(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k =
        kernel_of("kernel \"meet\" {\n view x: i64[1]; view y: i64[1] atomic; scalar n: i64;\n"
                  " %0: i64 = const 0; %1: i64 = param n; %2: i64 = parallel %0, %1;\n"
                  " %3: i64 = load x[%0]; %4: i64 = atomic sum y[%0], %3;\n}\n");
    qn_view x = vector_of(c, "x", QN_I64, 1), y = vector_of(c, "y", QN_I64, 1);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    const qn_arg apart[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_int(QN_I64, 20)};
    const qn_arg same[] = {qn_arg_view(&x), qn_arg_view(&x), qn_arg_int(QN_I64, 20)};
    *(int64_t *)x.data = 1;
    tap_ok(qn_launch(c, k, 3, apart, &o, NULL) == QN_OK && *(int64_t *)y.data == 20,
           "%s: iterations meet in one element by atomics", name);
    tap_ok(qn_launch(c, k, 3, same, &o, NULL) == QN_OK && *(int64_t *)x.data == 1 << 20,
           "%s: and run in order if they also read it", name);
    tap_is_int(counters_of(c).ordered, 1, "which is counted");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_empty(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    const int64_t zero = 0;
    qn_layout l;
    qn_layout_right(1, &zero, &l, NULL);
    qn_view x, y;
    qn_view_wrap("x", NULL, QN_F32, &l, 0, &x, NULL);
    qn_view_wrap("y", NULL, QN_F32, &l, 0, &y, NULL);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(1)};
    for (int i = 0; i < 2; i++)
        tap_ok(qn_launch(c, k, 3, args, &o, NULL) == QN_OK, "%s: extents of zero, null data", name);
    qn_call *call = NULL;
    tap_ok(qn_prepare(c, k, 3, args, &o, &call, NULL) == QN_OK && qn_run(call, NULL) == QN_OK,
           "%s: prepared", name);
    tap_is_int(counters_of(c).compiles, 0, "nothing is compiled for it");
    qn_call_release(call);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_float_environment(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 8), y = vector_of(c, "y", QN_F32, 8);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    fill_f32(&x, 0x1p-140f, 0);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(1)};
    qn_call *call = NULL;
    qn_prepare(c, k, 3, args, &o, &call, NULL);
    const uint32_t modes[] = {0x1f80, 0x9fc0,
                              0x7f80}; /* default; flush to zero, both ways; round to zero */
    for (int i = 0; i < 3; i++) {
        fill_f32(&y, 0x1p-141f, 0);
        uint32_t before = _mm_getcsr();
        _mm_setcsr(modes[i]);
        qn_status first = qn_launch(c, k, 3, args, &o, NULL), second = qn_run(call, NULL);
        uint32_t after = _mm_getcsr();
        _mm_setcsr(before);
        tap_ok(first == QN_OK && second == QN_OK && ((float *)y.data)[3] == 0x1.4p-139f,
               "%s: denormals survive control bits %x", name, (unsigned)modes[i]);
        tap_ok((after & ~0x3fu) == modes[i], "%s: and the host's control bits are back", name);
    }
    qn_call_release(call);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_fault(int engine, const char *name)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(GATHER_TEXT);
    qn_view x = vector_of(c, "x", QN_F64, 10), index = vector_of(c, "index", QN_I64, 100),
            y = vector_of(c, "y", QN_F64, 100);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    ((int64_t *)index.data)[77] = -1;
    ((int64_t *)index.data)[42] = 10;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&index), qn_arg_view(&y)};
    for (int i = 0; i < 2; i++) {
        qn_error err = {0};
        tap_ok(qn_launch(c, k, 3, args, &o, &err) == QN_ERR_BOUNDS,
               "%s: an index out of bounds is reported", name);
        tap_contains(err.message, "view \"x\", argument 0, dimension 0: index 10 not in [0,10)",
                     "the first one");
        tap_contains(err.message, "iteration (42)", "with its iteration");
    }
    tap_is_int(counters_of(c).faults, 2, "faults are counted");
    ((int64_t *)index.data)[77] = ((int64_t *)index.data)[42] = 3;
    tap_ok(qn_launch(c, k, 3, args, &o, NULL) == QN_OK, "%s: and forgotten by the next launch",
           name);
    qn_view_release(&x);
    qn_view_release(&index);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

typedef struct events {
    int n[8];
    char last[64];
} events;

static void on_event(void *arg, const qn_event *e)
{
    events *seen = arg;
    seen->n[e->kind]++;
    snprintf(seen->last, sizeof seen->last, "%s", e->kernel);
}

static void test_events(int engine, const char *name)
{
    events seen = {0};
    const qn_context_options options = {
        .bytes = sizeof options, .event_hook = on_event, .event_arg = &seen};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 8), y = vector_of(c, "y", QN_F32, 8);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    for (int i = 0; i < 3; i++)
        qn_launch(c, k, 2, args, &o, NULL);
    tap_is_int(seen.n[QN_EVENT_LAUNCH], 3, "the hook hears of launches");
    tap_is_int(seen.n[QN_EVENT_HIT], 2, "of hits");
    tap_is_int(seen.n[QN_EVENT_COMPILE], engine == QN_ENGINE_NATIVE, "of compiles");
    tap_ok(strcmp(seen.last, "copy") == 0, "%s: by the kernel's name", name);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

/** Releases the context that it belongs to at the first event of a kind. */
typedef struct quitter {
    qn_context *c;
    int kind;
} quitter;

static void quit(void *arg, const qn_event *e)
{
    quitter *q = arg;
    if (e->kind != q->kind || !q->c)
        return;
    qn_context_release(q->c);
    q->c = NULL;
}

/** `how`: 0 launch, 1 specialize, 2 prepare and run. */
static qn_status use_context(qn_context *c, const qn_kernel *k, int engine, int how)
{
    qn_view x = vector_of(c, "x", QN_F32, 8), y = vector_of(c, "y", QN_F32, 8);
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_code *f = NULL;
    qn_call *call = NULL;
    qn_status status = how == 0   ? qn_launch(c, k, 2, args, &o, NULL)
                       : how == 1 ? qn_specialize(c, k, 2, args, &o, &f, NULL)
                                  : qn_prepare(c, k, 2, args, &o, &call, NULL);
    if (call && status == QN_OK)
        status = qn_run(call, NULL);
    qn_call_release(call);
    qn_code_release(f);
    qn_view_release(&x);
    qn_view_release(&y);
    return status;
}

static void test_release_by_hook(int engine, const char *name)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    const int kinds[] = {QN_EVENT_COMPILE, QN_EVENT_LAUNCH, QN_EVENT_HIT};
    int n_wrong = 0;
    for (int i = 0; i < 9; i++) {
        quitter q = {.c = NULL, .kind = kinds[i / 3]};
        const qn_context_options options = {
            .bytes = sizeof options, .event_hook = quit, .event_arg = &q};
        qn_context *c = context_with(&options);
        if (q.kind == QN_EVENT_HIT)
            n_wrong += use_context(c, k, engine, 0) != QN_OK;
        q.c = c;
        n_wrong += use_context(c, k, engine, i % 3) != QN_OK;
        qn_context_release(q.c); /* if there was no such event */
    }
    tap_is_int(n_wrong, 0, name);
    qn_kernel_release(k);
}

static bool text_has(const qn_code *f, int stage, const char *part)
{
    static char text[65536];
    size_t n = qn_code_text(f, stage, text, sizeof text);
    return n > 0 && n == strlen(text) && strstr(text, part) &&
           qn_code_text(f, stage, NULL, 0) == n;
}

static void test_texts(void)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 8), y = vector_of(c, "y", QN_F32, 8);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_code *f = NULL, *g = NULL, *i = NULL;
    tap_ok(qn_specialize(c, k, 3, args, &o, &f, NULL) == QN_OK, "specialize");
    tap_ok(qn_specialize(c, k, 3, args, &o, &g, NULL) == QN_OK && f == g,
           "the same facts give the same function");
    o.engine = QN_ENGINE_INTERP;
    tap_ok(qn_specialize(c, k, 3, args, &o, &i, NULL) == QN_OK, "a function for the interpreter");
    qn_context_release(c);
    tap_ok(text_has(f, QN_DUMP_KERNEL, "kernel \"saxpy\""), "text of the kernel");
    tap_ok(text_has(f, QN_DUMP_KEY, "extent 8, stride 1"), "text of the key");
    tap_ok(text_has(f, QN_DUMP_SCHEDULE, "schedule {") && text_has(f, QN_DUMP_SCHEDULE, "vector"),
           "text of the schedule");
    tap_ok(text_has(f, QN_DUMP_ESTIMATE, "cycles a call"), "text of the estimate");
    tap_ok(text_has(f, QN_DUMP_PLAN, "width"), "text of the plan");
    tap_ok(text_has(f, QN_DUMP_LLVM, "define"),
           "LLVM text, made on demand after the context is gone");
    tap_ok(text_has(f, QN_DUMP_ASM, "vfmadd"), "assembly");
    tap_is_int((int64_t)qn_code_text(f, QN_DUMP_PTX, NULL, 0), 0, "no PTX");
    tap_ok(text_has(i, QN_DUMP_KEY, "extent 8, stride 1") &&
               qn_code_text(i, QN_DUMP_ASM, NULL, 0) == 0,
           "the interpreter's function has a key and no assembly");
    qn_code_release(f);
    qn_code_release(g);
    qn_code_release(i);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

static int count_files(const char *folder, bool remove_them)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char path[600];
        snprintf(path, sizeof path, "%s/%.300s", folder, entry->d_name);
        bool is_dump = strncmp(entry->d_name, "copy-", 5) == 0;
        n += is_dump;
        if (is_dump && remove_them)
            unlink(path);
    }
    if (dir)
        closedir(dir);
    return n;
}

static void test_dumps(void)
{
    char folder[] = "/tmp/quern-test-XXXXXX";
    if (!mkdtemp(folder)) {
        tap_skip("no temporary folder");
        return;
    }
    const qn_context_options good = {.bytes = sizeof good,
                                     .dump_dir = folder,
                                     .dump = QN_DUMP_KERNEL | QN_DUMP_KEY | QN_DUMP_PLAN |
                                             QN_DUMP_LLVM | QN_DUMP_ASM};
    const qn_context_options bad = {
        .bytes = sizeof bad, .dump_dir = "/nonexistent/folder", .dump = QN_DUMP_KEY};
    qn_context *c = context_with(&good), *d = context_with(&bad);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 8), y = vector_of(c, "y", QN_F32, 8);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    tap_ok(qn_launch(c, k, 2, args, NULL, NULL) == QN_OK, "launch with dumps");
    tap_is_int(count_files(folder, true), 5, "one file a stage");
    tap_ok(qn_launch(d, k, 2, args, NULL, NULL) == QN_OK,
           "a folder that does not exist is no failure");
    tap_ok(history_has(d, "dump to /nonexistent/folder/copy-"), "but stands in the history");
    rmdir(folder);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    qn_context_release(d);
}

static void test_engine(int engine, const char *name)
{
    test_known_arguments(engine, name);
    test_descriptions_differ(engine, name);
    test_prepared(engine, name);
    test_overlap(engine, name);
    test_atomic_overlap(engine, name);
    test_empty(engine, name);
    test_float_environment(engine, name);
    test_fault(engine, name);
    test_events(engine, name);
    test_release_by_hook(engine, "the hook may release the context");
}

int main(void)
{
    char reason[600];
    test_engine(QN_ENGINE_INTERP, "interpreter");
    if (has_x86(reason, sizeof reason)) {
        test_engine(QN_ENGINE_NATIVE, "x86");
        test_texts();
        test_dumps();
    } else {
        tap_skip(reason);
    }
    return tap_done();
}
