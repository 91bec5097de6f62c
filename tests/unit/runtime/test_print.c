/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_print.c: prints beside what the case files print*.case show: what the host gets, which
 * options go together, that launches without the option run the kernel without its prints, and
 * arguments that make another kernel of it.
 */
#include "ir/printed.h"
#include "tests/unit/gpu.h"

#include <pthread.h>

enum { N = 5, MANY = 2000 };

/** y[i] = 2 x[i]; prints x[i]. */
static const char DOUBLES[] =
    "kernel \"doubles\" {\n view x: f32[1]; view y: f32[1]; %b: i64 = const 0;\n"
    " %n: i64 = extent y, 0; %i: i64 = parallel %b, %n; %v: f32 = load x[%i];\n"
    " print \"x\" %v; %w: f32 = mul %v, 2; store y[%i], %w;\n}\n";

typedef struct text {
    char data[4096];
    size_t n;
    int calls;
} text;

static void take(void *arg, const qn_printed *line)
{
    text *t = arg;
    t->calls++;
    if (t->n < sizeof t->data)
        t->n += (size_t)snprintf(t->data + t->n, sizeof t->data - t->n, "%s\n", line->text);
}

static qn_options print_to(text *t)
{
    *t = (text){.n = 0};
    return (qn_options){.bytes = sizeof(qn_options), .print = take, .print_arg = t};
}

/* ---------------------------------------------------------------- what the host gets */

typedef struct seen {
    int n;
    bool has_parts, has_lost;
} seen;

static void look(void *arg, const qn_printed *p)
{
    seen *s = arg;
    s->n++;
    if (p->message)
        s->has_parts |= strcmp(p->message, "of a point") == 0 && p->n_lost == 0 &&
                        p->n_values == 2 && p->dtype[0] == QN_I32 && (int64_t)p->bits[0] == -7 &&
                        p->dtype[1] == QN_F32 && p->bits[1] == 0x3fc00000 && p->n_indices == 1 &&
                        p->index[0] == 2 && p->n_points == 1 && p->point[0] == 1;
    else
        s->has_lost = p->n_lost == 2 && p->n_values == 0 && p->n_indices == 0 && p->n_points == 0 &&
                      strcmp(p->text, "2 more lines were not kept") == 0;
}

/** Behind an access that is out of range a launch soon ends, unless it prints. */
static void test_failure(qn_context *c)
{
    static const char rows[] =
        "kernel \"rows\" {\n view x: f32[1]; view y: f32[3]; %b: i64 = const 0;\n"
        " %l: i64 = extent y, 0; %i: i64 = sequential %b, %l; %m: i64 = extent y, 1;\n"
        " %j: i64 = sequential %b, %m; %n: i64 = extent y, 2; %k: i64 = sequential %b, %n;\n"
        " print \"row\"; %v: f32 = load x[%i]; store y[%i, %j, %k], %v;\n}\n";
    const int64_t extents[3] = {20000, 2, 2};
    qn_view x = vector_of(c, "x", QN_F32, 30), y = {.data = NULL};
    tap_ok(qn_view_new(c, "y", QN_F32, 3, extents, &y, NULL) == QN_OK, "rows");
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_error err = {0};
    qn_kernel *k = kernel_of(rows);
    for (int engine = QN_ENGINE_AUTO; engine <= QN_ENGINE_INTERP; engine++) {
        text t;
        qn_options o = print_to(&t);
        o.engine = engine;
        o.print_lines = 1;
        o.specialize = QN_SPECIALIZE_GENERIC; /* loops of unknown length look whether they end */
        qn_status status = qn_launch(c, k, 2, args, &o, &err);
        tap_is_str(t.data, "row; iteration (0,0,0)\n79999 more lines were not kept\n",
                   "all lines behind a failure count");
        tap_is_int(status, QN_ERR_BOUNDS, "... of a launch that fails");
    }
    qn_kernel_release(k);
    qn_view_release(&x);
    qn_view_release(&y);
}

static void test_parts(qn_context *c)
{
    qn_view y = vector_of(c, "y", QN_F32, 4);
    const qn_arg arg = qn_arg_view(&y);
    qn_error err = {0};
    qn_kernel *k =
        kernel_of("kernel \"parts\" {\n view y: f32[1]; %b: i64 = const 0; %n: i64 = extent y, 0; "
                  "%t: i64 = const 2;\n"
                  " %i: i64 = parallel %b, %n; %j: i64 = reduction %b, %t; %s: i32 = const -7; %h: "
                  "f32 = const 1.5;\n"
                  " %m: i64 = reduce max over %j { print \"of a point\" %s, %h; yield %j; };\n"
                  " %f: f32 = cast %m; store y[%i], %f;\n}\n");
    for (int engine = QN_ENGINE_AUTO; engine <= QN_ENGINE_INTERP; engine++) {
        seen s = {0};
        const qn_options o = {.bytes = sizeof o,
                              .engine = engine,
                              .print = look,
                              .print_arg = &s,
                              .print_lines = engine == QN_ENGINE_AUTO ? 8 : 6};
        qn_status status = qn_launch(c, k, 1, &arg, &o, &err);
        tap_ok(status == QN_OK && s.has_parts, "a line has its parts: %s",
               status ? err.message : "");
        tap_ok(s.has_lost == (engine == QN_ENGINE_INTERP) && s.n == (s.has_lost ? 7 : 8),
               "... and a last one says how many were not kept, if some were not");
    }
    qn_kernel_release(k);
    qn_view_release(&y);
}

/* ---------------------------------------------------------------- options */

static void test_options(qn_context *c, const qn_kernel *k, const qn_arg *args)
{
    text t;
    qn_error err = {0};
    qn_options o = print_to(&t);
    o.print_lines = -1;
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_ERR_ARGUMENT, "lines below 0: %s", err.message);
    o.print_lines = QN_MAX_PRINT_LINES + 1;
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_ERR_ARGUMENT, "too many: %s", err.message);
    tap_ok(qn_launch(c, k, 1, args, &o, &err) == QN_ERR_ARGUMENT, "... %s", err.message);
    o.print_lines = 0;
    tap_ok(qn_launch(c, k, 1, args, &o, &err) == QN_ERR_ARGUMENT, "an argument too few: %s",
           err.message);
    tap_ok(qn_launch(c, k, 2, NULL, &o, &err) == QN_ERR_ARGUMENT, "no arguments: %s", err.message);
    tap_is_int(t.calls, 0, "nothing was printed by launches that failed before they ran");
    const int32_t stop = 1;
    o.cancel = &stop;
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_ERR_CANCELLED && t.calls == 0, "cancelled: %s",
           err.message);
    o.cancel = NULL;
    o.engine = QN_ENGINE_INTERP;
    o.debug = QN_DEBUG_RACES | QN_DEBUG_NAN;
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_OK && t.calls == N,
           "together with the search for races and NaN");
    o = print_to(&t);
    o.bytes = offsetof(qn_options, print);
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_OK && t.calls == 0,
           "a caller of a version that lacks the option");
}

/* ---------------------------------------------------------------- prepared calls */

/** Prints x[i] + s; the iterations from the third on assert that s is small. */
static const char SCALED[] =
    "kernel \"scaled\" {\n view x: f32[1]; view y: f32[1]; scalar s: f32; %b: i64 = const 0;\n"
    " %n: i64 = extent y, 0; %i: i64 = parallel %b, %n; %v: f32 = load x[%i]; %s: f32 = param s;\n"
    " %w: f32 = add %v, %s; print \"w\" %w; %most: f32 = const 100.0; %c: bool = lt %w, %most;\n"
    " assert %c \"small\" %w; store y[%i], %w;\n}\n";

/** A call prints in each run, with the lines of its scalar, also if it fails. */
static void test_prepared(qn_context *c, int engine, int executor, qn_stream *stream, int space)
{
    text t;
    qn_error err = {0};
    qn_options o = print_to(&t);
    o.engine = engine;
    o.executor = executor;
    o.stream = stream;
    o.print_lines = 2;
    qn_kernel *k = kernel_of(SCALED);
    qn_view x = vector_in(c, space, stream, "x", QN_F32, 3),
            y = vector_in(c, space, stream, "y", QN_F32, 3);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(1)};
    qn_call *call = NULL;
    tap_ok(qn_prepare(c, k, 3, args, &o, &call, &err) == QN_OK && t.calls == 0, "a call: %s",
           err.message);
    tap_ok(qn_run(call, &err) == QN_OK && qn_run(call, &err) == QN_OK, "runs: %s", err.message);
    const char *const once =
        "w: 1; iteration (0)\nw: 1; iteration (1)\n1 more lines were not kept\n";
    tap_ok(strncmp(t.data, once, strlen(once)) == 0 && strcmp(t.data + strlen(once), once) == 0,
           "and prints each time: \"%s\"", t.data);
    t = (text){.n = 0};
    const float large = 500;
    uint32_t bits;
    memcpy(&bits, &large, sizeof bits);
    bool is_set = qn_call_set_scalar(call, 2, bits, &err) == QN_OK;
    qn_status status = qn_run(call, &err);
    if (stream && status == QN_OK)
        status = qn_stream_fence(stream, &err);
    tap_ok(is_set && status == QN_ERR_ASSERT && strstr(t.data, "w: 500; iteration (0)\nw: 500; "),
           "a run that fails gives its lines: \"%s\"", t.data);
    qn_call_release(call);
    o.debug = QN_DEBUG_NAN;
    o.engine = QN_ENGINE_INTERP;
    o.executor = QN_SERIAL;
    call = NULL;
    status = stream ? QN_ERR_UNSUPPORTED : qn_prepare(c, k, 3, args, &o, &call, &err);
    tap_ok(status == QN_ERR_UNSUPPORTED && !call, "not together with debug: %s", err.message);
    o.debug = 0;
    o.print_lines = -1;
    status = qn_prepare(c, k, 3, args, &o, &call, &err);
    tap_ok(status == QN_ERR_ARGUMENT && strstr(err.message, "qn_prepare: option print_lines: -1"),
           "%s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

static void test_prepared_gpu(void)
{
    const stub_control *stub = stub_open(STUB_PATH);
    const qn_context_options options = {
        .bytes = sizeof options, .disk_cache = "off", .cuda_driver = STUB_PATH};
    qn_context *c = stub ? context_with(&options) : NULL;
    qn_stream *s = NULL;
    if (!c || qn_stream_new(c, -1, &s, NULL) != QN_OK) {
        tap_skip("no stub of a driver");
        return;
    }
    test_prepared(c, QN_ENGINE_AUTO, QN_CUDA, s, QN_SPACE_CUDA);
    qn_stream_release(s);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing of the driver's is left");
}

/* ---------------------------------------------------------------- without the option */

/** The code of a kernel with prints is that of the kernel without them. */
static void test_code(qn_context *c, const qn_kernel *k, const qn_arg *args, const char *no_x86)
{
    char source[1024], bodies[2][20000] = {"", ""};
    snprintf(source, sizeof source, "%s", DOUBLES);
    char *at = strstr(source, "print");
    memset(at, ' ', strcspn(at, ";") + 1);
    qn_kernel *plain = kernel_of(source);
    const qn_kernel *kernels[2] = {k, plain};
    for (int i = 0; i < 2 && !no_x86[0]; i++) {
        const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3};
        qn_code *f = NULL;
        qn_specialize(c, kernels[i], 2, args, &o, &f, NULL);
        qn_code_text(f, QN_DUMP_ASM, bodies[i], sizeof bodies[i]);
        qn_code_release(f);
    }
    if (no_x86[0])
        tap_skip(no_x86);
    else
        tap_ok(bodies[0][0] && strcmp(bodies[0], bodies[1]) == 0,
               "without the option the code has no prints");
    text t;
    const qn_options o = print_to(&t);
    tap_ok(qn_launch(c, plain, 2, args, &o, NULL) == QN_OK && t.calls == 0,
           "the option does nothing where nothing is printed");
    tap_ok(plain->printing == NULL, "... and no kernel is made for it");
    qn_kernel_release(plain);
}

/* ---------------------------------------------------------------- other kernels of it */

static const char FIVE[] = "x: 1; iteration (0)\nx: 2; iteration (1)\nx: 3; iteration (2)\n"
                           "x: 4; iteration (3)\nx: 5; iteration (4)\n";

static void expect(qn_context *c, const qn_kernel *k, const qn_arg *args, const char *wanted,
                   const char *what)
{
    for (int engine = QN_ENGINE_AUTO; engine <= QN_ENGINE_INTERP; engine++) {
        text t;
        qn_error err = {0};
        qn_options o = print_to(&t);
        o.engine = engine;
        qn_status status = qn_launch(c, k, 2, args, &o, &err);
        tap_is_str(status ? err.message : t.data, wanted, what);
    }
}

static void test_arguments(qn_context *c, const qn_kernel *k, const qn_arg *args)
{
    expect(c, k, args, FIVE, "plain arguments");
    qn_view atomic = *args[1].view, list = {0}, listed = {0};
    atomic.traits |= QN_ATOMIC;
    const qn_arg late[] = {args[0], qn_arg_view(&atomic)};
    expect(c, k, late, FIVE, "a view that claims to be atomic");
    qn_view shifted = *args[0].view;
    shifted.data = (float *)shifted.data + 1;
    shifted.layout.dim[0].extent = N - 1;
    const qn_arg overlapping[] = {args[0], qn_arg_view(&shifted)};
    fill_f32(args[0].view, 1, 0);
    expect(c, k, overlapping,
           "x: 1; iteration (0)\nx: 2; iteration (1)\nx: 4; iteration (2)\nx: 8; iteration (3)\n",
           "overlapping views");
    fill_f32(args[0].view, 1, 1);
    static const int64_t reversed[N] = {4, 3, 2, 1, 0};
    qn_error err = {0};
    qn_layout l;
    const int64_t n = N;
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("reversed", (void *)(uintptr_t)reversed, QN_I64, &l, QN_READ_ONLY, &list, &err);
    listed = *args[0].view;
    qn_status status = qn_layout_list(&args[0].view->layout, 0, &list, &listed.layout, &err);
    tap_ok(status == QN_OK, "an index list: %s", status ? err.message : "");
    const qn_arg with_list[] = {qn_arg_view(&listed), args[1]};
    expect(c, k, with_list,
           "x: 5; iteration (0)\nx: 4; iteration (1)\nx: 3; iteration (2)\nx: 2; iteration (3)\nx: "
           "1; iteration (4)\n",
           "an argument with an index list");
    text t;
    qn_options o = print_to(&t);
    o.engine = QN_ENGINE_INTERP;
    o.debug = QN_DEBUG_NAN;
    tap_ok(qn_launch(c, k, 2, with_list, &o, &err) == QN_ERR_UNSUPPORTED,
           "... but not with debug: %s", err.message);
    qn_layout_release(&listed.layout);
}

/* ---------------------------------------------------------------- the builder */

static void test_builder(void)
{
    qn_error err = {0};
    char many[QN_MAX_MESSAGE_BYTES + 2];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = 0;
    const struct {
        const char *message, *what;
        int n;
        qn_status status;
    } bad[] = {{NULL, "no message", 0, QN_ERR_ARGUMENT},
               {many, "a long message", 0, QN_ERR_LIMIT},
               {"m", "too many values", QN_MAX_SHOWN + 1, QN_ERR_LIMIT},
               {"m", "fewer than none", -1, QN_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_builder *b = qn_builder_new("built", 0);
        qn_val zero = qn_const_int(b, QN_I64, 0), values[QN_MAX_SHOWN + 1];
        for (int v = 0; v <= QN_MAX_SHOWN; v++)
            values[v] = zero;
        qn_print(b, bad[i].message, bad[i].n, values);
        tap_ok(qn_builder_status(b, &err) == bad[i].status, "%s: %s", bad[i].what, err.message);
        qn_builder_release(b);
    }
    qn_builder *b = qn_builder_new("nothing", 0);
    qn_kernel *k = NULL;
    qn_print(b, "nothing is stored", 0, NULL);
    tap_ok(qn_finish(b, &k, &err) == QN_ERR_BUILD, "a kernel that only prints: %s", err.message);
    qn_builder_release(b);
}

/** A kernel with as many parameters as there may be has none left for its lines. */
static void test_parameters(qn_context *c)
{
    for (int n = QN_MAX_PARAMS - 1; n <= QN_MAX_PARAMS; n++) {
        qn_builder *b = qn_builder_new("wide", 0);
        qn_view y = vector_of(c, "y", QN_F32, 1);
        qn_arg args[QN_MAX_PARAMS];
        qn_error err = {0};
        qn_kernel *k = NULL;
        text t;
        qn_param p = {0};
        for (int i = 0; i < n; i++) {
            char name[32]; /* the first names are those that the view of the lines would have */
            snprintf(name, sizeof name, "printed_lines_%d", i);
            if (i == n - 1)
                p = qn_view_param(b, name, QN_F32, 1, 0);
            else
                qn_scalar_param(b, name, QN_I64);
            args[i] = i == n - 1 ? qn_arg_view(&y) : (qn_arg){.dtype = QN_I64};
        }
        qn_val i = qn_parallel_over(b, p, 0);
        qn_print(b, "here", 0, NULL);
        qn_store(b, p, 1, &i, qn_const_float(b, QN_F32, 1));
        qn_status status = qn_finish(b, &k, &err);
        qn_options o = print_to(&t);
        if (status == QN_OK)
            status = qn_launch(c, k, n, args, &o, &err);
        if (n < QN_MAX_PARAMS)
            tap_is_str(status ? err.message : t.data, "here; iteration (0)\n", "63 parameters");
        else
            tap_ok(status == QN_ERR_LIMIT, "64 parameters: %s", err.message);
        qn_kernel_release(k);
        qn_builder_release(b);
        qn_view_release(&y);
    }
}

/** Two calls of a function with the same value print twice; what they give is one value. */
static void test_calls(qn_context *c)
{
    qn_view y = vector_of(c, "y", QN_F32, 1);
    const qn_arg args[] = {qn_arg_view(&y), {0}};
    qn_kernel *k = kernel_of(
        "function \"seen\" {\n scalar x: f32; %x: f32 = param x; print \"seen\" %x; return %x;\n}\n"
        "kernel \"calls\" {\n view y: f32[1]; %b: i64 = const 0; %n: i64 = extent y, 0; %i: i64 = "
        "parallel %b, %n;\n"
        " %v: f32 = const 2; %w: f32 = call seen(%v); %u: f32 = call seen(%v);\n store y[%i], "
        "%v;\n}\n");
    for (int engine = QN_ENGINE_AUTO; engine <= QN_ENGINE_INTERP; engine++) {
        text t;
        qn_error err = {0};
        qn_options o = print_to(&t);
        o.engine = engine;
        qn_status status = qn_launch(c, k, 1, args, &o, &err);
        tap_is_str(status ? err.message : t.data,
                   "seen: 2; iteration (0)\nseen: 2; iteration (0)\n",
                   "equal calls print, also if nobody uses their results");
    }
    qn_kernel_release(k);
    qn_view_release(&y);
}

/* ---------------------------------------------------------------- threads */

typedef struct race {
    qn_context *c;
    const qn_kernel *k;
    bool agreed;
} race;

static void *print_often(void *arg)
{
    race *r = arg;
    qn_view x = vector_of(r->c, "x", QN_F32, N), y = vector_of(r->c, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    fill_f32(&x, 1, 1);
    r->agreed = true;
    for (int i = 0; i < 20; i++) {
        text t;
        const qn_options o = print_to(&t);
        qn_status status = qn_launch(r->c, r->k, 2, args, &o, NULL);
        r->agreed = r->agreed && status == QN_OK && strcmp(t.data, FIVE) == 0;
    }
    qn_view_release(&x);
    qn_view_release(&y);
    return NULL;
}

/** Threads that print with one kernel, for which none has printed before. */
static void test_threads(qn_context *c)
{
    enum { THREADS = 4 };
    qn_kernel *k = kernel_of(DOUBLES);
    race r[THREADS];
    pthread_t thread[THREADS];
    bool agreed = true;
    for (int i = 0; i < THREADS; i++) {
        r[i] = (race){.c = c, .k = k};
        pthread_create(&thread[i], NULL, print_often, &r[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        agreed = agreed && r[i].agreed;
    }
    tap_ok(agreed, "%d threads get their own lines", THREADS);
    qn_kernel_release(k);
}

int main(void)
{
    qn_context *c = context_with(NULL);
    char no_x86[600] = "";
    if (has_x86(no_x86, sizeof no_x86))
        no_x86[0] = 0;
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_kernel *k = kernel_of(DOUBLES);
    fill_f32(&x, 1, 1);
    test_failure(c);
    test_parts(c);
    test_options(c, k, args);
    test_code(c, k, args, no_x86);
    test_arguments(c, k, args);
    test_builder();
    test_parameters(c);
    test_calls(c);
    test_threads(c);
    test_prepared(c, QN_ENGINE_INTERP, QN_SERIAL, NULL, QN_SPACE_HOST);
    test_prepared(c, QN_ENGINE_AUTO, QN_THREADS, NULL, QN_SPACE_HOST);
    if (!no_x86[0])
        test_prepared_gpu();
    qn_kernel_release(k);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_context_release(c);
    return tap_done();
}
