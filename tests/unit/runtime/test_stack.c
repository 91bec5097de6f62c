/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stack.c: how much of a host thread's stack the library uses. Each entry runs on a thread
 * whose stack was filled with a pattern; what is no longer the pattern was used. Kernels are nested
 * to the limit. All entries must do with what a thread of 32 KiB has, and the whole way from text
 * to result runs on such a thread.
 */
#define _GNU_SOURCE
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <pthread.h>
#include <sys/mman.h>

enum {
    LARGE_BYTES = (IS_SANITIZED ? 4096 : 512) << 10,
    SMALL_BYTES = 32 << 10,
    PATTERN = 0xA5,
    N = 100,
    MARGIN_BYTES = 4 << 10
};

/** What an entry works on; all of it is made once, with a stack as large as any. */
typedef struct work {
    const char *name;
    bool (*run)(struct work *);
    char *text;
    qn_kernel *kernel;
    qn_context *context;
    qn_view x, y, part, tiled, listed, list;
    int engine, executor;
    bool is_done;
} work;

/* ---------------------------------------------------------------- kernels */

/** Text of 63 `for` loops, with an `if`, a `while` or a `reduce` innermost. Each loop carries a
 * value. */
static char *nested_text(const char *kind)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int depth = QN_MAX_NESTING - 1;
    fprintf(
        f,
        "kernel \"nested\" {\n view x: f32[1]; view y: f32[1];\n %%zero: i64 = const 0; %%one: i64 "
        "= const 1;\n"
        " %%n: i64 = extent y, 0; %%i: i64 = parallel %%zero, %%n;\n%s %%v: f32 = load x[%%i];\n",
        strcmp(kind, "reduce") == 0 ? " %r: i64 = reduction %zero, %n;\n" : "");
    fprintf(f, "%%r0: f32 = for %%k0: i64 = %%zero to %%one step 1 (%%c0: f32 = %%v) {\n");
    for (int d = 1; d < depth; d++)
        fprintf(f, "%%r%d: f32 = for %%k%d: i64 = %%zero to %%one step 1 (%%c%d: f32 = %%c%d) {\n",
                d, d, d, d - 1);
    fprintf(f, " %%a: f32 = add %%c%d, %%v;\n", depth - 1);
    if (strcmp(kind, "if") == 0)
        fprintf(
            f, " %%b: bool = lt %%a, %%v; %%z: f32 = if %%b { yield %%a; } else { yield %%v; };\n");
    else if (strcmp(kind, "while") == 0)
        fprintf(f, " %%z: f32 = while max %%one (%%w: f32 = %%a) { %%b: bool = lt %%w, %%v; yield "
                   "%%b; } do { yield %%a; };\n");
    else
        fprintf(f, " %%z: f32 = reduce sum over %%r { %%e: f32 = load x[%%r]; yield %%e; };\n");
    fprintf(f, " yield %%z; };\n");
    for (int d = depth - 1; d > 0; d--)
        fprintf(f, " yield %%r%d; };\n", d);
    fprintf(f, " store y[%%i], %%r0;\n}\n");
    fclose(f);
    return text;
}

/** The form for people, nested to the limit: loops that carry two names, a sum that is a loop,
 * parentheses. */
static char *readable_text(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int depth = QN_MAX_NESTING - 2, n_brackets = 150;
    fprintf(f, "kernel nested (x: f32[], y: f32[]) {\n for all i in y { t = x[i]; u = t\n");
    for (int d = 0; d < depth; d++)
        if (d % 2)
            fprintf(f, "for k%d in 0 .. 1 { u += t\n", d);
        else
            fprintf(f, "if t > -1 { t += 0 * u\n");
    fprintf(f, "s = sum l in i .. i + 1 of (i > 0 && x[i - 1] > t ? sqrt(x[i]) : ");
    for (int d = 0; d < n_brackets; d++)
        fprintf(f, "(");
    fprintf(f, "x[l]");
    for (int d = 0; d < n_brackets + 1; d++)
        fprintf(f, ")");
    fprintf(f, "\n t += s + sum m in x of x[m]\n");
    for (int d = 0; d < depth; d++)
        fprintf(f, "}\n");
    fprintf(f, " y[i] = t + u } }\n");
    fclose(f);
    return text;
}

/* ---------------------------------------------------------------- entries */

static bool do_nothing(work *w)
{
    (void)w;
    return true;
}

static bool parse_and_finish(work *w)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    bool is_done = qn_kernel_parse(w->text, strlen(w->text), &k, &err) == QN_OK;
    if (!is_done)
        tap_note("%s", err.message);
    qn_kernel_release(k);
    return is_done;
}

static bool parse_wrong_text(work *w)
{
    qn_error err = {0};
    qn_kernel *k = NULL;
    return qn_kernel_parse(w->text, strlen(w->text) - 20, &k, &err) == QN_ERR_PARSE;
}

static bool print_kernel(work *w)
{
    static char text[1 << 16];
    return qn_kernel_print(w->kernel, text, sizeof text) > 100;
}

/** The builder, as deep as it goes. */
static bool build_kernel(work *w)
{
    qn_builder *b = qn_builder_new("built", 0);
    qn_param y = qn_view_param(b, "y", QN_C64, 1, 0);
    qn_val at = qn_parallel_over(b, y, 0), z = qn_load(b, y, 1, &at), unused;
    (void)w;
    for (int d = 0; d < QN_MAX_NESTING; d++)
        qn_for(b, qn_index(b, 0), qn_index(b, 1), 1, 1, &z, &unused);
    z = qn_div(b, qn_mul(b, unused, z), qn_sqrt(b, z));
    for (int d = 0; d < QN_MAX_NESTING; d++)
        qn_end_for(b, 1, &z, &z);
    qn_store(b, y, 1, &at, z);
    qn_kernel *k = NULL;
    qn_error err = {0};
    bool is_done = qn_finish(b, &k, &err) == QN_OK || err.status == QN_ERR_TYPE;
    if (!is_done)
        tap_note("%s", err.message);
    qn_kernel_release(k);
    qn_builder_release(b);
    return is_done;
}

static bool launch_as(work *w, const qn_view *x)
{
    const qn_arg args[] = {qn_arg_view(x), qn_arg_view(&w->y)};
    const qn_options o = {.bytes = sizeof o, .engine = w->engine, .executor = w->executor};
    qn_error err = {0};
    qn_status status = qn_launch(w->context, w->kernel, 2, args, &o, &err);
    qn_call *call = NULL;
    qn_code *code = NULL;
    if (status == QN_OK)
        status = qn_launch(w->context, w->kernel, 2, args, &o, &err);
    if (status == QN_OK)
        status = qn_prepare(w->context, w->kernel, 2, args, &o, &call, &err);
    if (status == QN_OK)
        status = qn_run(call, &err);
    if (status == QN_OK)
        status = qn_specialize(w->context, w->kernel, 2, args, &o, &code, &err);
    static char text[1 << 16];
    if (code)
        qn_code_text(code, QN_DUMP_PLAN, text, sizeof text);
    qn_code_release(code);
    qn_call_release(call);
    if (status)
        tap_note("%s", err.message);
    return status == QN_OK;
}

static bool launch(work *w)
{
    return launch_as(w, &w->x);
}

static bool launch_overlapping(work *w)
{
    return launch_as(w, &w->part);
}

static bool launch_tiled(work *w)
{
    return launch_as(w, &w->tiled);
}

static bool launch_listed(work *w)
{
    return launch_as(w, &w->listed);
}

static bool make_layouts(work *w)
{
    int64_t extents[] = {8, 8, 8, 8, 8, 8, 8, 8}, tiles[] = {2, 2, 2, 2, 2, 2, 2, 2};
    qn_layout l = {0}, m = {0}, t = {0}, s = {0};
    qn_error err = {0};
    (void)w;
    bool is_done = qn_layout_right(8, extents, &l, &err) == QN_OK &&
                   qn_layout_morton(8, extents, NULL, &m, &err) == QN_OK &&
                   qn_layout_tiled(8, extents, tiles, NULL, NULL, &t, &err) == QN_OK &&
                   qn_layout_is_unique(&m) && qn_layout_is_unique(&t) &&
                   qn_layout_coalesce(&t, &s, &err) == QN_OK;
    qn_layout_release(&m);
    qn_layout_release(&t);
    qn_layout_release(&s);
    if (!is_done)
        tap_note("%s", err.message);
    return is_done;
}

static bool copy_views(work *w)
{
    qn_view y = {0};
    qn_error err = {0};
    int64_t n = N, fewer = N / 2;
    bool is_done = qn_view_new(w->context, "y", QN_F16, 1, &n, &y, &err) == QN_OK &&
                   qn_convert_copy(w->context, w->executor, &y, &w->tiled, &err) == QN_OK &&
                   qn_deep_copy(w->context, &w->y, &w->tiled, &err) == QN_OK &&
                   qn_view_resize(w->context, &y, 1, &fewer, NULL, &err) == QN_OK &&
                   qn_view_realloc(w->context, &y, 1, &n, NULL, &err) == QN_OK;
    qn_view_release(&y);
    if (!is_done)
        tap_note("%s", err.message);
    return is_done;
}

static bool make_context(work *w)
{
    (void)w;
    qn_context *c = context_with(NULL);
    qn_context_release(c);
    return c != NULL;
}

/** From text to result, as a host's small thread would do it. */
static bool do_everything(work *w)
{
    qn_context *c = w->context;
    qn_kernel *k = w->kernel;
    w->context = context_with(NULL);
    w->kernel = NULL;
    bool is_done = qn_kernel_parse(w->text, strlen(w->text), &w->kernel, NULL) == QN_OK &&
                   print_kernel(w) && launch(w) && launch_listed(w) && launch_tiled(w) &&
                   launch_overlapping(w) && copy_views(w) && build_kernel(w);
    qn_kernel_release(w->kernel);
    qn_context_release(w->context);
    w->context = c;
    w->kernel = k;
    return is_done;
}

/* ---------------------------------------------------------------- threads */

static void *on_thread(void *arg)
{
    work *w = arg;
    w->is_done = w->run(w);
    return NULL;
}

/** Runs an entry on a thread with so much stack; returns the bytes that were used, -1 if there is
 * no thread. */
static int64_t run_on(work *w, size_t bytes)
{
    pthread_attr_t attr;
    pthread_t thread;
    size_t guard = 1 << 16;
    unsigned char *stack =
        mmap(NULL, bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, guard, PROT_NONE) != 0)
        return -1;
    stack += guard;
    memset(stack, PATTERN, bytes);
    w->is_done = false;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack, bytes);
    int64_t used = -1;
    if (pthread_create(&thread, &attr, on_thread, w) == 0) {
        pthread_join(thread, NULL);
        size_t first = 0;
        while (first < bytes && stack[first] == PATTERN)
            first++;
        used = (int64_t)(bytes - first);
    }
    pthread_attr_destroy(&attr);
    munmap(stack - guard, bytes + guard);
    return used;
}

/** Measures an entry, which may use what a thread of 32 KiB has, but for a margin. */
static void measure(work *w, const char *name, bool (*run)(work *))
{
    w->run = do_nothing;
    int64_t none = run_on(w, LARGE_BYTES);
    w->run = run;
    int64_t used = run_on(w, LARGE_BYTES);
    tap_ok(w->is_done, "%s: done", name);
    if (IS_SANITIZED)
        tap_skip("sanitizers need more stack");
    else
        tap_ok(used >= 0 && used <= SMALL_BYTES - MARGIN_BYTES,
               "%s: %lld bytes of stack, %lld of them the thread's", name, (long long)used,
               (long long)none);
}

static void set_up(work *w, const char *text)
{
    int64_t n = N;
    qn_error err = {0};
    qn_layout l = {0};
    w->text = strdup(text);
    w->kernel = kernel_of(text);
    w->context = context_with(NULL);
    w->x = vector_of(w->context, "x", QN_F32, 4 * N);
    w->y = vector_of(w->context, "y", QN_F32, N);
    w->list = vector_of(w->context, "list", QN_I64, N);
    for (int64_t i = 0; i < N; i++)
        ((int64_t *)w->list.data)[i] = N - 1 - i;
    tap_ok(qn_layout_strided(1, &n, (int64_t[]){-1}, &l, &err) == QN_OK &&
               qn_view_wrap("part", (float *)w->y.data + N - 1, QN_F32, &l, 0, &w->part, &err) ==
                   QN_OK,
           "a view that overlaps: %s", err.message);
    tap_ok(qn_layout_tiled(1, &n, (int64_t[]){8}, NULL, NULL, &l, &err) == QN_OK &&
               qn_view_with_layout(&w->x, &l, &w->tiled, &err) == QN_OK,
           "a tiled view: %s", err.message);
    qn_layout_release(&l);
    tap_ok(qn_layout_list(&w->x.layout, 0, &w->list, &l, &err) == QN_OK &&
               qn_view_with_layout(&w->x, &l, &w->listed, &err) == QN_OK,
           "a view with a list: %s", err.message);
    qn_layout_release(&l);
}

static void tear_down(work *w)
{
    free(w->text);
    qn_kernel_release(w->kernel);
    qn_view_release(&w->listed);
    qn_view_release(&w->tiled);
    qn_view_release(&w->part);
    qn_view_release(&w->list);
    qn_view_release(&w->x);
    qn_view_release(&w->y);
    qn_context_release(w->context);
}

static void test_kernel(const char *text, const char *kind, bool has_code)
{
    work w = {.name = kind};
    char name[100];
    set_up(&w, text);
    static const struct {
        const char *name;
        bool (*run)(work *);
    } entries[] = {
        {"parse and finish", parse_and_finish},
        {"parse a wrong text", parse_wrong_text},
        {"print", print_kernel},
        {"launch", launch},
        {"launch with overlap", launch_overlapping},
        {"launch of a tiled view", launch_tiled},
        {"launch with a list", launch_listed},
        {"copies", copy_views},
        {"layouts", make_layouts},
        {"build", build_kernel},
        {"context", make_context},
    };
    for (int engine = 0; engine < 1 + has_code; engine++)
        for (int executor = QN_SERIAL; executor <= QN_THREADS; executor++)
            for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
                w.engine = engine ? QN_ENGINE_NATIVE : QN_ENGINE_INTERP;
                w.executor = executor;
                snprintf(name, sizeof name, "%s, %s, executor %d: %s", kind,
                         engine ? "x86" : "interpreter", executor, entries[i].name);
                measure(&w, name, entries[i].run);
            }
    for (int engine = 0; engine < 1 + has_code && !IS_SANITIZED; engine++) {
        w.engine = engine ? QN_ENGINE_NATIVE : QN_ENGINE_INTERP;
        w.run = do_everything;
        int64_t used = run_on(&w, SMALL_BYTES);
        tap_ok(used >= 0 && w.is_done, "%s, %s: from text to result on a thread of 32 KiB", kind,
               engine ? "x86" : "interpreter");
    }
    tear_down(&w);
}

int main(void)
{
    static const char *const kinds[] = {"if", "while", "reduce"};
    char reason[600];
    bool has_code = has_x86(reason, sizeof reason);
    test_kernel(COPY_TEXT, "flat", has_code);
    char *people = readable_text();
    test_kernel(people, "people", has_code);
    free(people);
    for (int i = 0; i < 3; i++) {
        char *text = nested_text(kinds[i]);
        test_kernel(text, kinds[i], has_code);
        free(text);
    }
    return tap_done();
}
