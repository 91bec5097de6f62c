/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_functions.c: functions of kernels: built and read from text, called with values, views and
 * complex numbers, inlined for generated code and executed by the interpreter, libraries of them,
 * kernels inside kernels, and what is refused.
 */
#include "ir/function.h"
#include "tests/unit/launch.h"

enum { N = 37 };

#define SQUARES                                                                                    \
    "function \"squares\" {\n scalar x: f32; scalar y: f32;\n %x: f32 = param x; %y: f32 = param " \
    "y;\n"                                                                                         \
    " %a: f32 = mul %x, %x; %b: f32 = mul %y, %y; %s: f32 = add %a, %b; %d: f32 = sub %a, %b;\n "  \
    "return %s, %d;\n}\n"
/** The element i of a, or 1 below zero; a loop and a branch. */
#define ROW                                                                                        \
    "function \"row\" {\n view a: f32[1]; scalar i: i64;\n %i: i64 = param i; %v: f32 = load "     \
    "a[%i];\n"                                                                                     \
    " %z: f32 = const 0; %one: f32 = const 1; %c: bool = lt %v, %z;\n"                             \
    " %r: f32 = if %c { yield %one; } else { %p: f32, %q: f32 = call squares(%v, %one); yield "    \
    "%p; };\n"                                                                                     \
    " %b: i64 = const 0; %e: i64 = const 3;\n"                                                     \
    " %t: f32 = for %j: i64 = %b to %e step 1 (%s: f32 = %r) { %n: f32 = add %s, %one; yield %n; " \
    "};\n return %t;\n}\n"
/** y[i] = row(x, i) + row(x, i) * 2 */
#define USER                                                                                       \
    "kernel \"user\" {\n view x: f32[1]; view y: f32[1];\n %0: i64 = const 0; %1: i64 = extent "   \
    "y, 0;\n"                                                                                      \
    " %i: i64 = parallel %0, %1; %r: f32 = call row(x, %i); %s: f32 = call row(x, %i);\n"          \
    " %two: f32 = const 2; %t: f32 = mul %s, %two; %u: f32 = add %r, %t; store y[%i], %u;\n}\n"

static float expected_of(float v)
{
    return ((v < 0 ? 1 : v * v + 1) + 3) * 3;
}

static char *print(const qn_kernel *k)
{
    size_t n = qn_kernel_print(k, NULL, 0);
    char *text = malloc(n + 1);
    qn_kernel_print(k, text, n + 1);
    return text;
}

static uint32_t count_calls(const qn_kernel *k)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < k->n_insts; i++)
        n += k->inst[i].op == QN_I_CALL;
    return n;
}

static void run(qn_context *c, const qn_kernel *k, int engine, const char *what)
{
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    fill_f32(&x, -7, 0.75f);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    qn_error err = {0};
    bool is_right = qn_launch(c, k, 2, args, &o, &err) == QN_OK;
    for (int i = 0; is_right && i < N; i++)
        is_right = ((float *)y.data)[i] == expected_of(((float *)x.data)[i]);
    tap_ok(is_right, "%s: %s", what, err.message);
    qn_view_release(&x);
    qn_view_release(&y);
}

/** The interpreter on the kernel as it is, calls included. */
static void interpret_calls(qn_context *c, const qn_kernel *k)
{
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    fill_f32(&x, -7, 0.75f);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_arg_value values[] = {{.layout = &x.layout}, {.layout = &y.layout}};
    qn_domain domain;
    qn_fault fault;
    qn__fault_clear(&fault, &qn__never);
    bool is_right = qn__domain(k, values, false, &domain, NULL) == QN_OK &&
                    qn__interpret(k, 2, args, &domain, QN_CHECKS_REPORT, &fault, NULL) == QN_OK &&
                    fault.status == 0;
    for (int i = 0; is_right && i < N; i++)
        is_right = ((float *)y.data)[i] == expected_of(((float *)x.data)[i]);
    tap_ok(is_right, "the interpreter executes calls");
    qn_view_release(&x);
    qn_view_release(&y);
}

/** Faults of calls: a load that leaves the view, reported with the view of the caller. */
static void interpret_fault(qn_context *c, const qn_kernel *k)
{
    qn_view x = vector_of(c, "short", QN_F32, 5), y = vector_of(c, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_arg_value values[] = {{.layout = &x.layout}, {.layout = &y.layout}};
    qn_domain domain;
    qn_fault fault;
    qn_error by_calls = {0}, inlined = {0};
    qn__fault_clear(&fault, &qn__never);
    qn__domain(k, values, false, &domain, NULL);
    qn__interpret(k, 2, args, &domain, QN_CHECKS_REPORT, &fault, NULL);
    qn__fault_report(k, &fault, 2, args, &by_calls);
    qn_launch(c, k, 2, args, NULL, &inlined);
    tap_is_str(by_calls.message, inlined.message,
               "a fault in a function has the message of the inlined kernel");
    tap_contains(by_calls.message,
                 "out-of-bounds load: view \"short\", argument 0, dimension 0: index 5",
                 "... which says all");
    qn_view_release(&x);
    qn_view_release(&y);
}

static void test_text(qn_context *c, bool has_code)
{
    qn_kernel *k = kernel_of(SQUARES ROW USER), *again = NULL;
    char *text = print(k);
    qn_error err = {0};
    bool is_read = qn_kernel_parse(text, strlen(text), &again, &err) == QN_OK;
    char *second = is_read ? print(again) : NULL;
    tap_is_str(second, text, "the text of a kernel with functions parses and prints again");
    tap_is_int(count_calls(k), 1, "equal calls are one");
    tap_is_int(k->n_functions, 2, "it holds both functions, though it calls one");
    tap_ok(k->inlined && count_calls(k->inlined) == 0 && k->inlined->n_functions == 0,
           "it has a copy without calls");
    interpret_calls(c, k);
    interpret_fault(c, k);
    run(c, k, QN_ENGINE_INTERP, "interpreter");
    if (has_code)
        run(c, k, QN_ENGINE_NATIVE, "x86");
    else
        tap_skip("no generated code");
    free(text);
    free(second);
    qn_kernel_release(k);
    qn_kernel_release(again);
}

/* ---------------------------------------------------------------- builder */

/** |z|^2 and z * 2 of a complex z. */
static qn_function *make_complex(void)
{
    qn_builder *b = qn_function_new("twice", 0);
    qn_val z = qn_scalar_param(b, "z", QN_C64), out[2];
    out[0] =
        qn_add(b, qn_mul(b, qn_real(b, z), qn_real(b, z)), qn_mul(b, qn_imag(b, z), qn_imag(b, z)));
    out[1] = qn_add(b, z, z);
    qn_function *f = NULL;
    qn_error err = {0};
    tap_is_int(qn_function_finish(b, 2, out, &f, &err), QN_OK,
               "a function of a complex number is finished");
    qn_builder_release(b);
    return f;
}

static void test_complex(qn_context *c)
{
    qn_function *f = make_complex();
    tap_is_int(qn_function_n_results(f), 2, "it has two results");
    tap_ok(qn_function_result(f, 0) == QN_F32 && qn_function_result(f, 1) == QN_C64,
           "of f32 and c64");
    qn_builder *b = qn_builder_new("k", 0);
    qn_param z = qn_view_param(b, "z", QN_C64, 1, 0), n = qn_view_param(b, "n", QN_F32, 1, 0);
    qn_val i = qn_parallel_over(b, n, 0), value = qn_load(b, z, 1, &i), out[2];
    qn_invoke(b, f, 1, &value, 0, NULL, out);
    qn_store(b, z, 1, &i, out[1]);
    qn_store(b, n, 1, &i, out[0]);
    qn_function_release(f);
    qn_kernel *k = NULL, *again = NULL;
    qn_error err = {0};
    tap_is_int(qn_finish(b, &k, &err), QN_OK, "a kernel calls it, and keeps it");
    qn_builder_release(b);
    char *text = print(k);
    tap_is_int(qn_kernel_parse(text, strlen(text), &again, &err), QN_OK,
               "its text, by parts, is read");
    char *second = print(again);
    tap_is_str(second, text, "... and printed again");
    qn_view vz = vector_of(c, "z", QN_C64, 3), vn = vector_of(c, "n", QN_F32, 3);
    const float values[] = {1, 2, -3, 0.5f, 0, -4}, norms[] = {5, 9.25f, 16};
    memcpy(vz.data, values, sizeof values);
    const qn_arg args[] = {qn_arg_view(&vz), qn_arg_view(&vn)};
    bool is_right =
        qn_launch(c, k, 2, args, NULL, &err) == QN_OK && memcmp(vn.data, norms, sizeof norms) == 0;
    for (int j = 0; j < 6; j++)
        is_right = is_right && ((float *)vz.data)[j] == 2 * values[j];
    tap_ok(is_right, "both results arrive: %s", err.message);
    qn_view_release(&vz);
    qn_view_release(&vn);
    free(text);
    free(second);
    qn_kernel_release(k);
    qn_kernel_release(again);
}

/* ---------------------------------------------------------------- flags */

/** A product that a function returns is rounded before a contracting kernel adds it, also in a sum.
 */
static void test_contraction(qn_context *c)
{
    static const char text[] =
        "function \"product\" {\n scalar x: f64; scalar y: f64;\n %x: f64 = param x; %y: f64 = "
        "param y;\n"
        " %p: f64 = mul %x, %y; return %p;\n}\n"
        "kernel \"k\" contract {\n view x: f64[1]; view y: f64[1];\n %0: i64 = const 0; %1: i64 = "
        "extent x, 0;\n"
        " %k: i64 = reduction %0, %1;\n"
        " %s: f64 = reduce sum ordered over %k { %v: f64 = load x[%k]; %p: f64 = call product(%v, "
        "%v); yield %p; };\n"
        " %v0: f64 = load x[%0]; %p0: f64 = call product(%v0, %v0); %t: f64 = add %p0, %s;\n"
        " %one: i64 = const 1; store y[%0], %s; store y[%one], %t;\n}\n";
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(c, "x", QN_F64, 2), y = vector_of(c, "y", QN_F64, 2);
    double *v = x.data, *r = y.data;
    v[0] = 1 + 0x1p-30;
    v[1] = 3 + 0x1p-28;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_error err = {0};
    qn_status status = qn_launch(c, k, 2, args, NULL, &err);
    volatile double a = v[0] * v[0], b = v[1] * v[1];
    tap_ok(status == QN_OK && r[0] == a + b, "a sum of results of calls rounds each: %s",
           err.message);
    tap_ok(status == QN_OK && r[1] == a + r[0],
           "a result of a call is not contracted with an addition");
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    double first = r[0], second = r[1];
    qn_launch(c, k, 2, args, &o, &err);
    tap_ok(r[0] == first && r[1] == second, "the interpreter agrees");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- libraries, apply */

static void test_library(qn_context *c)
{
    qn_library *base = NULL, *rows = NULL;
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_is_int(qn_library_parse(SQUARES, strlen(SQUARES), NULL, &base, &err), QN_OK,
               "a library is read");
    tap_is_int(qn_library_parse(ROW, strlen(ROW), base, &rows, &err), QN_OK,
               "one that uses another, too");
    tap_ok(qn_library_n_functions(rows) == 1 &&
               qn_library_find(rows, "row") == qn_library_function(rows, 0) &&
               !qn_library_find(rows, "squares"),
           "its functions are found by name");
    tap_is_int(qn_kernel_parse_with(USER, strlen(USER), rows, &k, &err), QN_OK, "a kernel uses it");
    qn_library_release(base);
    qn_library_release(rows);
    run(c, k, QN_ENGINE_AUTO, "the kernel runs after the libraries are gone");
    qn_kernel_release(k);
    k = NULL;
    tap_is_int(qn_kernel_parse(USER, strlen(USER), &k, &err), QN_ERR_PARSE, "without it");
    tap_contains(err.message, "no function \"row\" is defined before",
                 "... the message names the function");
}

/** y[i, j] = user's body at j, in a kernel with one more dimension. */
static void test_apply(qn_context *c)
{
    qn_kernel *inner = kernel_of(SQUARES ROW USER), *k = NULL;
    qn_builder *b = qn_builder_new("outer", 0);
    qn_param x = qn_view_param(b, "from", QN_F32, 1, 0), y = qn_view_param(b, "to", QN_F32, 1, 0);
    qn_val j = qn_parallel_over(b, y, 0);
    qn_apply(b, inner, 1, &j, 0, NULL, 2, (const qn_param[]){x, y});
    qn_error err = {0};
    tap_is_int(qn_finish(b, &k, &err), QN_OK, "the body of a kernel is built inside another");
    qn_builder_release(b);
    qn_kernel_release(inner);
    tap_note("%s", err.message);
    run(c, k, QN_ENGINE_AUTO, "it runs there");
    tap_is_int(count_calls(k), 1, "its calls are calls");
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- limits and refusals */

/** A chain of functions that each call the one before twice: 2^levels bodies. */
static char *doubling(int levels)
{
    char *text = malloc(200 * (size_t)levels + 1000), *at = text;
    at += sprintf(at, "function \"f0\" { scalar x: f32; %%x: f32 = param x; %%y: f32 = mul %%x, "
                      "%%x; return %%y; }\n");
    for (int i = 1; i <= levels; i++)
        at += sprintf(
            at,
            "function \"f%d\" { scalar x: f32; %%x: f32 = param x; %%a: f32 = call f%d(%%x); "
            "%%o: f32 = const 1; %%n: f32 = add %%x, %%o; %%b: f32 = call f%d(%%n); %%c: f32 = sub "
            "%%a, %%b; "
            "return %%c; }\n",
            i, i - 1, i - 1);
    sprintf(at,
            "kernel \"k\" { view x: f32[1]; view y: f32[1]; %%0: i64 = const 0; %%1: i64 = extent "
            "y, 0; "
            "%%i: i64 = parallel %%0, %%1; %%v: f32 = load x[%%i]; %%r: f32 = call f%d(%%v); store "
            "y[%%i], %%r; }\n",
            levels);
    return text;
}

static float doubled(int level, float x)
{
    return level == 0 ? x * x : doubled(level - 1, x) - doubled(level - 1, x + 1);
}

static void test_kept(qn_context *c)
{
    char *text = doubling(14);
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(c, "x", QN_F32, 2), y = vector_of(c, "y", QN_F32, 2);
    fill_f32(&x, 0.5f, 1);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_error err = {0};
    tap_ok(k && !k->inlined, "a kernel whose calls stand for 2^14 bodies keeps them");
    qn_status status = qn_launch(c, k, 2, args, NULL, &err);
    tap_ok(status == QN_OK && ((float *)y.data)[0] == doubled(14, 0.5f) &&
               ((float *)y.data)[1] == doubled(14, 1.5f),
           "it is interpreted, calls and all: %s", err.message);
    tap_ok(history_has(c, "in place of their calls"), "the history says why");
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    status = qn_launch(c, k, 2, args, &o, &err);
    tap_ok(status == QN_ERR_LIMIT || status == QN_ERR_PROVIDER, "generated code is refused: %s",
           err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    free(text);
}

static const struct refused {
    const char *what, *text, *message;
} refused[] = {
    {"a call before the definition",
     "function \"f\" { scalar x: f32; %x: f32 = param x; %y: f32 = call f(%x); return %y; }\n",
     "no function \"f\" is defined before"},
    {"a store",
     "function \"f\" { view y: f32[1]; scalar x: f32; %x: f32 = param x; %z: i64 = const 0; store "
     "y[%z], %x; return %x; }\n",
     "qn_store: function \"f\": view \"y\": a function stores nothing"},
    {"an order of reductions",
     "function \"f\" striped { scalar x: f32; %x: f32 = param x; return %x; }\n",
     "a function takes QN_CONTRACT only"},
    {"a dimension",
     "function \"f\" { scalar n: i64; %n: i64 = param n; %z: i64 = const 0; %i: i64 = parallel %z, "
     "%n; return %i; }\n",
     "qn_parallel: function \"f\": a function has no dimensions"},
    {"two of one name", SQUARES SQUARES, "function \"squares\" is already defined"},
    {"a limit of trips from a parameter",
     "function \"f\" { scalar n: i64; %n: i64 = param n; while max %n () { %t: bool = const true; "
     "yield %t; } do { }; return %n; }\n",
     "max_trips"},
    {"an argument of another type",
     SQUARES "kernel \"k\" { view y: f64[1]; %0: i64 = const 0; %v: f64 = load y[%0]; %a: f32, %b: "
             "f32 = call squares(%v, %v); }\n",
     "qn_invoke: kernel \"k\": call of \"squares\": argument 0 (load of y) is f64, parameter \"x\" "
     "is f32"},
    {"a view of another rank",
     SQUARES ROW "kernel \"k\" { view y: f32[2]; %0: i64 = const 0; %a: f32 = call row(y, %0); "
                 "store y[%0, %0], %a; }\n",
     "call of \"row\": view \"y\" is f32[2], parameter \"a\" is f32[1]"},
    {"a function of the library that is not public",
     "kernel \"k\" { scalar x: f32; %x: f32 = param x; %s: f32 = small_sine_f32 %x, %x; }\n",
     "expected an op but found \"small_sine_f32\""},
    {"... by its keyword",
     "kernel \"k\" { scalar x: f32; %x: f32 = param x; %s: f32 = small_sine %x, %x; }\n",
     "expected an op but found \"small_sine\""},
    {"... by call",
     "kernel \"k\" { scalar x: f32; %x: f32 = param x; %s: f32 = call small_sine_f32(%x, %x); }\n",
     "no function \"small_sine_f32\" is defined before"},
    {"a literal of unknown dtype", "kernel \"k\" { %b: bool = isnan 2; }\n", "expected a value"},
    {"a literal that does not fit",
     SQUARES "kernel \"k\" { %a: f32, %b: f32 = call squares(true, 1); }\n", "expected a number"},
    {"a result too many",
     SQUARES "kernel \"k\" { scalar x: f32; %x: f32 = param x; %a: f32 = call squares(%x, %x); }\n",
     "function \"squares\" has 2 results, not 1"},
};

/* Texts that mean the same, the second one with literals as arguments. */
static const struct same {
    const char *what, *by_values, *by_literals;
} same[] = {
    {"the first argument of pow, of the dtype of the result",
     "%t: f32 = const 2; %y: f32 = pow %t, %x;", "%y: f32 = pow 2, %x;"},
    {"a fraction", "%t: f32 = const -0x1.8p+0; %y: f32 = atan2 %t, %x;",
     "%y: f32 = atan2 -1.5, %x;"},
    {"beside an integer", "%t: f32 = const 3; %y: f32 = powi %t, %n;", "%y: f32 = powi 3, %n;"},
    {"of the dtype of another argument",
     "%t: f32 = const 2; %z: c64 = polar %t, %x; %y: f32 = real %z;",
     "%z: c64 = polar 2, %x; %y: f32 = real %z;"},
    {"of the one dtype that the function takes",
     "%t: u64 = const 7; %i: i64 = const 1; %y: f32 = uniform_f32 %t, %i;",
     "%y: f32 = uniform_f32 7, 1;"},
    {"of half precision",
     "%t: f16 = const 2; %h: f16 = cast %x; %p: f16 = pow %t, %h; %y: f32 = cast %p;",
     "%h: f16 = cast %x; %p: f16 = pow 2, %h; %y: f32 = cast %p;"},
    {"all arguments", "%t: f32 = const 2; %u: f32 = const 3; %y: f32 = hypot %t, %u;",
     "%y: f32 = hypot 2, 3;"},
    {"arguments of a function of the text",
     "%t: f32 = const 2; %y: f32, %v: f32 = call squares(%x, %t);",
     "%y: f32, %v: f32 = call squares(%x, 2);"},
    {"parts of a complex number", "%t: f32 = const 2; %y: f32, %v: f32 = sqrt_c64 %x, %t;",
     "%y: f32, %v: f32 = sqrt_c64 %x, 2;"},
    {"the first part of one", "%t: f32 = const 2; %y: f32, %v: f32 = sqrt_c64 %t, %x;",
     "%y: f32, %v: f32 = sqrt_c64 2, %x;"},
};

/** The printed text of a kernel with these statements; to be freed. */
static char *printed_of(const char *statements)
{
    char text[1024], *printed = NULL;
    qn_kernel *k = NULL;
    qn_error err = {0};
    snprintf(text, sizeof text,
             "%skernel \"k\" { view r: f32[0]; scalar x: f32; scalar n: i32; %%x: f32 = param x; "
             "%%n: i32 = param n; %s"
             " store r[], %%y; }\n",
             SQUARES, statements);
    if (qn_kernel_parse(text, strlen(text), &k, &err) != QN_OK) {
        tap_note("%s", err.message);
        return NULL;
    }
    size_t n = qn_kernel_print(k, NULL, 0) + 1;
    printed = malloc(n);
    if (printed)
        qn_kernel_print(k, printed, n);
    qn_kernel_release(k);
    return printed;
}

static void test_literals(void)
{
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char *values = printed_of(same[i].by_values), *literals = printed_of(same[i].by_literals);
        tap_ok(values && literals && strcmp(values, literals) == 0, "a literal as an argument: %s",
               same[i].what);
        free(values);
        free(literals);
    }
}

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        qn_kernel *k = NULL;
        qn_error err = {0};
        tap_ok(qn_kernel_parse(refused[i].text, strlen(refused[i].text), &k, &err) != QN_OK,
               "refused: %s", refused[i].what);
        tap_contains(err.message, refused[i].message, "... with the reason");
        qn_kernel_release(k);
    }
    qn_error err = {0};
    qn_builder *b = qn_function_new("f", 1u << 30);
    tap_is_int(qn_builder_status(b, &err), QN_ERR_ARGUMENT, "a function with an unknown flag");
    tap_contains(err.message, "qn_function_new: ", "... is an error of qn_function_new");
    qn_builder_release(b);
    b = qn_function_new(NULL, 0);
    tap_is_int(qn_builder_status(b, &err), QN_ERR_ARGUMENT, "a function without a name");
    tap_contains(err.message, "qn_function_new: name is NULL",
                 "... is an error of qn_function_new");
    qn_builder_release(b);
    b = qn_function_new("f", 0);
    qn_val x = qn_scalar_param(b, "x", QN_F32);
    qn_kernel *k = NULL;
    qn_function *f = NULL;
    tap_is_int(qn_finish(b, &k, &err), QN_ERR_BUILD, "qn_finish takes no function");
    qn_builder_release(b);
    b = qn_builder_new("k", 0);
    x = qn_scalar_param(b, "x", QN_F32);
    tap_is_int(qn_function_finish(b, 1, &x, &f, &err), QN_ERR_BUILD,
               "qn_function_finish takes no kernel");
    qn_builder_release(b);
}

/** Functions that call each other in a chain are refused when it is too long. */
static void test_depth(void)
{
    char *text = doubling(QN_MAX_CALL_DEPTH - 1), *longer = doubling(QN_MAX_CALL_DEPTH);
    qn_kernel *k = NULL, *none = NULL;
    qn_error err = {0};
    tap_is_int(qn_kernel_parse(text, strlen(text), &k, &err), QN_OK,
               "calls inside each other up to the limit");
    tap_is_int(qn_kernel_parse(longer, strlen(longer), &none, &err), QN_ERR_LIMIT,
               "one more is refused");
    tap_contains(
        err.message,
        "call of \"f15\": the function is the first of 17 calls inside each other, limit 16",
        "... by name and number");
    qn_kernel_release(k);
    free(text);
    free(longer);
}

/** Two functions of one name, of different libraries, meet in a kernel. */
static void test_names(void)
{
    static const char own[] =
        "function \"small_sine_f32\" { scalar x: f32; %x: f32 = param x; return %x; }\n"
        "kernel \"k\" { view y: f32[0]; %x: f32 = const 3; %s: f32 = sin %x; %a: f32 = call "
        "small_sine_f32(%s); store y[], %a; }\n";
    qn_kernel *k = NULL;
    tap_is_int(qn_kernel_parse(own, strlen(own), &k, NULL), QN_OK,
               "a function may have the name of a private one of the library");
    qn_kernel_release(k);
    qn_builder *c = qn_builder_new("k", 0);
    qn_val parts[2] = {qn_const_float(c, QN_F32, 1), qn_const_float(c, QN_F32, 1)}, sine;
    qn_math(c, "small_sine", 2, parts, &sine);
    tap_is_int(qn_builder_status(c, NULL), QN_ERR_NOT_FOUND, "qn_math does not know it either");
    qn_builder_release(c);
    static const char other[] =
        "function \"squares\" { scalar x: f32; %x: f32 = param x; return %x; }\n";
    qn_library *l = NULL, *m = NULL;
    qn_error err = {0};
    qn_library_parse(SQUARES, strlen(SQUARES), NULL, &l, &err);
    qn_library_parse(other, strlen(other), NULL, &m, &err);
    qn_builder *b = qn_builder_new("k", 0);
    qn_val x = qn_scalar_param(b, "x", QN_F32), two[] = {x, x}, out[2];
    qn_invoke(b, qn_library_function(l, 0), 2, two, 0, NULL, out);
    qn_invoke(b, qn_library_function(m, 0), 1, two, 0, NULL, out);
    tap_is_int(qn_builder_status(b, &err), QN_ERR_ARGUMENT,
               "two functions of one name in a kernel are refused");
    tap_contains(err.message, "qn_invoke: kernel \"k\": two functions have the name \"squares\"",
                 "... by name");
    qn_builder_release(b);
    qn_library_release(l);
    qn_library_release(m);
}

/** A kernel of a builder has an array without a name, and a parameter that is called as the text
 * calls arrays. */
static void test_array_names(void)
{
    const float elements[] = {1, 2};
    qn_builder *b = qn_builder_new("k", 0);
    qn_param y = qn_view_param(b, "y", QN_F32, 1, 0), x = qn_view_param(b, "a0", QN_F32, 1, 0),
             z = qn_view_param(b, "a_7", QN_F32, 1, 0);
    qn_array a = qn_const_array(b, QN_F32, 2, elements);
    qn_val i = qn_parallel_over(b, y, 0);
    qn_store(b, y, 1, &i,
             qn_add(b, qn_add(b, qn_lookup(b, a, i), qn_load(b, x, 1, &i)), qn_load(b, z, 1, &i)));
    qn_kernel *k = NULL, *again = NULL;
    qn_error err = {0};
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "arrays beside parameters of their names %s",
           err.message);
    char *text = print(k);
    tap_contains(text, "array a__0: f32", "the text calls them otherwise");
    tap_ok(qn_kernel_parse(text, strlen(text), &again, &err) == QN_OK, "... so that it parses %s",
           err.message);
    qn_builder_release(b);
    qn_kernel_release(again);
    qn_kernel_release(k);
    free(text);
}

int main(void)
{
    char reason[600] = "";
    qn_context *c = context_with(NULL);
    bool has_code = has_x86(reason, sizeof reason);
    test_text(c, has_code);
    test_complex(c);
    test_contraction(c);
    test_library(c);
    test_apply(c);
    test_kept(c);
    test_literals();
    test_refused();
    test_names();
    test_array_names();
    test_depth();
    qn_context_release(c);
    return tap_done();
}
