/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_updates.c: stores of expressions of the stored element through atomic views. Each is one
 * atomic update: n updates by one function give that function n times, in any order and on any
 * number of threads. What cannot be one update is refused by name, at finish, or at the launch
 * where only the argument is atomic.
 */
#include "tests/unit/launch.h"

enum { N = 100000, BINS = 3 };

/** The ways to run a kernel. */
static const struct way {
    const char *name;
    int engine, executor, isa, atomics;
} ways[] = {{"interpreter", QN_ENGINE_INTERP, QN_SERIAL, 0, 0},
            {"interpreter, threads", QN_ENGINE_INTERP, QN_THREADS, 0, 0},
            {"x86", QN_ENGINE_NATIVE, QN_SERIAL, 0, 0},
            {"x86, shared", QN_ENGINE_NATIVE, QN_SERIAL, 0, QN_ATOMICS_SHARED},
            {"x86 v3, threads", QN_ENGINE_NATIVE, QN_THREADS, QN_ISA_V3, 0},
            {"x86, threads", QN_ENGINE_NATIVE, QN_THREADS, 0, 0}};
enum { N_WAYS = sizeof ways / sizeof *ways };

typedef struct setup {
    qn_context *c;
    bool has_code;
    qn_view bins; /* i32, N values in [0, BINS) */
} setup;

static qn_options options_of(const struct way *w)
{
    return (qn_options){.bytes = sizeof(qn_options),
                        .engine = w->engine,
                        .executor = w->executor,
                        .isa = w->isa,
                        .atomics = w->atomics};
}

static bool can_run(const setup *s, int w)
{
    return s->has_code || ways[w].engine == QN_ENGINE_INTERP;
}

/* ---------------------------------------------------------------- functions */

/** Functions of an element: the statements that make %new of %old; %a is the index, %i the
 * iteration's. */
static const struct function {
    const char *name;
    int dtype;
    uint64_t first; /* bits of all elements before */
    const char *body;
} functions[] = {
    {"mul i8", QN_I8, 1, "%k: i8 = const 3; %new: i8 = mul %old, %k;"},
    {"mul u8", QN_U8, 1, "%k: u8 = const 7; %new: u8 = mul %old, %k;"},
    {"mul i16", QN_I16, 1, "%k: i16 = const 3; %new: i16 = mul %k, %old;"},
    {"mul u32", QN_U32, 1, "%k: u32 = const 3; %new: u32 = mul %old, %k;"},
    {"mul i64", QN_I64, 1, "%k: i64 = const 3; %new: i64 = mul %old, %k;"},
    {"mul f32", QN_F32, 0x3f800000, "%k: f32 = const 0x1.0001p+0; %new: f32 = mul %old, %k;"},
    {"div f64", QN_F64, 0x3ff0000000000000,
     "%k: f64 = const 0x1.0001p+0; %new: f64 = div %old, %k;"},
    {"div i64", QN_I64, 0x7fffffffffffffff,
     "%k: i64 = const 1; %m: i64 = const 2; %h: i64 = div %old, %m; %new: i64 = sub %k, %h;"},
    {"rem u16", QN_U16, 1,
     "%k: u16 = const 1; %m: u16 = const 1000; %p: u16 = add %old, %k; %new: u16 = rem %p, %m;"},
    {"difference of a constant", QN_I32, 5, "%k: i32 = const 12; %new: i32 = sub %k, %old;"},
    {"not bool", QN_BOOL, 1, "%new: bool = not %old;"},
    {"neg f16", QN_F16, 0x3c00, "%new: f16 = neg %old;"},
    {"mul bf16", QN_BF16, 0x3f80, "%k: bf16 = const 0x1.04p+0; %new: bf16 = mul %old, %k;"},
    {"f16 computed in f64", QN_F16, 0,
     "%w: f64 = cast %old; %k: f64 = const 0x1.8p-1; %t: f64 = add %w, %k; %new: f16 = cast %t;"},
    {"u8 counted in i32", QN_U8, 0,
     "%w: i32 = cast %old; %k: i32 = const 1; %t: i32 = add %w, %k; %new: u8 = cast %t;"},
    {"select of the smaller", QN_I32, 1000000,
     "%k: i32 = const -1; %m: i32 = const -700; %t: i32 = add %old, %k; "
     "%c: bool = gt %old, %m; %new: i32 = select %c, %t, %m;"},
    {"a rotation, which loads twice", QN_U32, 0x80000301,
     "%o: u32 = load h[%a]; %k: u32 = const 1; %m: u32 = const 31; "
     "%l: u32 = shl %old, %k; %r: u32 = shr %o, %m; %new: u32 = or %l, %r;"},
    {"a square, which loads twice", QN_I32, 3, "%o: i32 = load h[%a]; %new: i32 = mul %old, %o;"},
    {"twice the element, which loads twice", QN_U64, 1,
     "%o: u64 = load h[%a]; %k: u64 = const 5; %t: u64 = add %old, %o; "
     "%new: u64 = xor %t, %k;"},
    {"a sum with itself", QN_I64, 1, "%o: i64 = load h[%a]; %new: i64 = add %old, %o;"},
    {"an index that is computed again", QN_I32, 1,
     "%v: i32 = load v[%i]; %b: i64 = cast %v; %o: i32 = load h[%b]; "
     "%k: i32 = const 5; %t: i32 = mul %old, %k; %new: i32 = sub %t, %o;"},
    {"bits of a float", QN_F32, 0x40490fdb,
     "%u: u32 = bitcast %old; %k: u32 = const 40503; %t: u32 = mul %u, %k; "
     "%new: f32 = bitcast %t;"},
    {"a NaN", QN_F64, 0x7ff8000000000001,
     "%u: u64 = bitcast %old; %k: u64 = const 2; %t: u64 = add %u, %k; "
     "%m: u64 = const 9223372036854775808; %x: u64 = xor %t, %m; %new: f64 = bitcast %x;"},
    {"a fused product", QN_F64, 0x3ff0000000000000,
     "%k: f64 = const 0x1.fp-1; %m: f64 = const 0x1p-3; %new: f64 = fma %old, %k, %m;"},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/** h[v[i]] = f(h[v[i]]) for all i: `dim` is parallel or sequential. */
static void write_text(const struct function *f, const char *dim, const char *trait, char *out,
                       size_t bytes)
{
    const char *dtype = qn_dtype_name(f->dtype);
    snprintf(out, bytes,
             "kernel \"f\" {\n view v: i32[1]; view h: %s[1]%s;\n %%z: i64 = const 0; %%n: i64 = "
             "extent v, 0;\n"
             " %%i: i64 = %s %%z, %%n; %%b0: i32 = load v[%%i]; %%a: i64 = cast %%b0; %%old: %s = "
             "load h[%%a];\n %s\n"
             " store h[%%a], %%new;\n}\n",
             dtype, trait, dim, dtype, f->body);
}

static void fill_bits(const qn_view *v, uint64_t bits)
{
    for (int b = 0; b < BINS; b++)
        memcpy((char *)v->data + b * qn_dtype_bytes(v->dtype), &bits,
               (size_t)qn_dtype_bytes(v->dtype));
}

/** Runs k from the first bits on; whether `wanted` comes out. */
static bool gives(const setup *s, const qn_kernel *k, const struct function *f, int w,
                  const qn_view *h, const void *wanted)
{
    qn_error err = {0};
    qn_options o = options_of(&ways[w]);
    const qn_arg args[] = {qn_arg_view(&s->bins), qn_arg_view(h)};
    fill_bits(h, f->first);
    if (qn_launch(s->c, k, 2, args, &o, &err) != QN_OK)
        tap_note("%s", err.message);
    return !err.status && memcmp(h->data, wanted, (size_t)(BINS * qn_dtype_bytes(f->dtype))) == 0;
}

/** One function: the plain kernel in strict order says what n updates give. */
static void test_function(const setup *s, const struct function *f)
{
    char text[2000];
    unsigned char wanted[BINS * 8];
    qn_error err = {0};
    qn_view plain = vector_of(s->c, "h", f->dtype, BINS), atomic = {0};
    write_text(f, "sequential", "", text, sizeof text);
    qn_kernel *k = kernel_of(text);
    const qn_arg args[] = {qn_arg_view(&s->bins), qn_arg_view(&plain)};
    qn_options o = options_of(&ways[0]);
    fill_bits(&plain, f->first);
    tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_OK, "%s: in order %s", f->name, err.message);
    memcpy(wanted, plain.data, (size_t)(BINS * qn_dtype_bytes(f->dtype)));
    qn_kernel_release(k);
    qn_view_with_traits(&plain, QN_ATOMIC, &atomic, &err);
    for (int late = 0; late < 2; late++) {
        write_text(f, "parallel", late ? "" : " atomic", text, sizeof text);
        k = kernel_of(text);
        for (int w = 0; w < N_WAYS; w++)
            if (can_run(s, w))
                tap_ok(gives(s, k, f, w, late ? &atomic : &plain, wanted), "%s: %s%s", f->name,
                       ways[w].name, late ? ", the argument is atomic" : "");
        qn_kernel_release(k);
    }
    qn_view_release(&atomic);
    qn_view_release(&plain);
}

/* ---------------------------------------------------------------- what commutes, and what does not
 * escape */

/** x[0] = 3 x[0], n times: as said, on threads and on one. */
static void test_product(const setup *s)
{
    static const char text[] =
        "kernel \"cube\" {\n scalar n: i64; view x: u64[1] atomic;\n %z: i64 = const 0;\n"
        " %e: i64 = param n; %i: i64 = parallel %z, %e; %old: u64 = load x[%z];\n"
        " %k: u64 = const 3; %new: u64 = mul %old, %k; store x[%z], %new;\n}\n";
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(s->c, "x", QN_U64, 1);
    uint64_t wanted = 1;
    for (int i = 0; i < N; i++)
        wanted *= 3;
    for (int w = 0; w < N_WAYS; w++) {
        if (!can_run(s, w))
            continue;
        qn_error err = {0};
        qn_options o = options_of(&ways[w]);
        const qn_arg args[] = {qn_arg_int(QN_I64, N), qn_arg_view(&x)};
        *(uint64_t *)x.data = 1;
        tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_OK && *(uint64_t *)x.data == wanted,
               "x[0] *= 3, %d times: %s %s", N, ways[w].name, err.message);
    }
    qn_view_release(&x);
    qn_kernel_release(k);
}

/** Operands of the iteration's own, in branches, with what is loaded outside of them: the largest
 * number of each bin, and a product of the odd ones. */
static void test_operands(const setup *s)
{
    static const char text[] = "kernel \"both\" {\n view v: i32[1]; view m: i64[1] atomic; view p: "
                               "u32[1] atomic;\n %z: i64 = const 0;\n"
                               " %n: i64 = extent v, 0; %i: i64 = parallel %z, %n; %v: i32 = load "
                               "v[%i]; %a: i64 = cast %v;\n"
                               " %q: i64 = const 7919; %t: i64 = mul %i, %q; %r: i64 = const "
                               "65521; %x: i64 = rem %t, %r;\n"
                               " %m: i64 = load m[%a]; %c: bool = lt %m, %x; %s: i64 = select %c, "
                               "%x, %m; store m[%a], %s;\n"
                               " %one: i64 = const 1; %b: i64 = and %x, %one; %odd: bool = ne %b, "
                               "%z; %u: u32 = cast %x; %p: u32 = load p[%a];\n"
                               " %k: u32 = const 3;\n"
                               " if %odd { %g: u32 = mul %p, %u; store p[%a], %g; } else { %h: u32 "
                               "= mul %p, %k; store p[%a], %h; };\n}\n";
    qn_kernel *k = kernel_of(text);
    qn_view m = vector_of(s->c, "m", QN_I64, BINS), p = vector_of(s->c, "p", QN_U32, BINS);
    int64_t most[BINS] = {0};
    uint32_t product[BINS] = {1, 1, 1};
    for (int i = 0; i < N; i++) {
        int64_t x = (int64_t)i * 7919 % 65521;
        int b = ((int32_t *)s->bins.data)[i];
        most[b] = most[b] < x ? x : most[b];
        product[b] *= x % 2 ? (uint32_t)x : 3;
    }
    for (int w = 0; w < N_WAYS; w++) {
        if (!can_run(s, w))
            continue;
        qn_error err = {0};
        qn_options o = options_of(&ways[w]);
        const qn_arg args[] = {qn_arg_view(&s->bins), qn_arg_view(&m), qn_arg_view(&p)};
        fill_bits(&m, 0);
        fill_bits(&p, 1);
        tap_ok(qn_launch(s->c, k, 3, args, &o, &err) == QN_OK &&
                   memcmp(m.data, most, sizeof most) == 0,
               "the largest by select: %s %s", ways[w].name, err.message);
        tap_ok(memcmp(p.data, product, sizeof product) == 0, "products in branches: %s",
               ways[w].name);
    }
    qn_view_release(&m);
    qn_view_release(&p);
    qn_kernel_release(k);
}

/** A function of the element is an expression of it: h[v[i]] = f(h[v[i]]). */
static void test_function_call(const setup *s)
{
    static const char text[] = "function \"f\" { scalar x: u32; %x: u32 = param x; %k: u32 = const "
                               "5; %m: u32 = const 7; %p: u32 = mul %x, %k;"
                               " %y: u32 = xor %p, %m; return %y; }\n"
                               "kernel \"call\" {\n view v: i32[1]; view h: u32[1] atomic;\n %z: "
                               "i64 = const 0; %n: i64 = extent v, 0;\n"
                               " %i: i64 = parallel %z, %n; %v: i32 = load v[%i]; %a: i64 = cast "
                               "%v; %old: u32 = load h[%a];\n"
                               " %new: u32 = call f(%old); store h[%a], %new;\n}\n";
    qn_kernel *k = kernel_of(text);
    qn_view h = vector_of(s->c, "h", QN_U32, BINS);
    uint32_t wanted[BINS] = {1, 1, 1};
    for (int i = 0; i < N; i++) {
        uint32_t *x = &wanted[((int32_t *)s->bins.data)[i]];
        *x = *x * 5 ^ 7;
    }
    for (int w = 0; w < N_WAYS; w++) {
        if (!can_run(s, w))
            continue;
        qn_error err = {0};
        qn_options o = options_of(&ways[w]);
        const qn_arg args[] = {qn_arg_view(&s->bins), qn_arg_view(&h)};
        fill_bits(&h, 1);
        tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_OK &&
                   memcmp(h.data, wanted, sizeof wanted) == 0,
               "a function of the element: %s %s", ways[w].name, err.message);
    }
    qn_view_release(&h);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- what is refused, and what is not
 */

#define HEAD                                                                                       \
    "kernel \"k\" {\n view x: i32[1]%s; view y: i32[1]; scalar n: i64;\n %%z: i64 = const 0;\n"    \
    " %%e: i64 = param n; %%i: i64 = parallel %%z, %%e; %%one: i64 = const 1; %%j: i64 = add "     \
    "%%i, %%one;\n"                                                                                \
    " %%k: i32 = const 3; %%y: i32 = load y[%%i]; %%t: bool = lt %%y, %%k; %%o: i32 = load "       \
    "x[%%i];\n"
#define NO_UPDATE(through)                                                                         \
    "view \"x\": what is stored depends on the loaded element through " through                    \
    ", which is no atomic update"

static const struct row {
    const char *what, *body, *words; /* words: of the refusal; NULL: taken */
    bool is_declared; /* the kernel is one with a declared trait only */
} rows[] = {
    {"a condition", "%c: bool = lt %o, %k; if %c { store x[%i], %k; };", NO_UPDATE("if"), false},
    {"a condition of a condition", "%c: bool = lt %o, %k; if %c { if %t { store x[%i], %k; }; };",
     NO_UPDATE("if"), false},
    {"the result of an if",
     "%c: bool = lt %o, %k; %r: i32 = if %c { yield %y; } else { yield %k; }; store x[%i], %r;",
     NO_UPDATE("if"), false},
    {"what an if yields", "%r: i32 = if %t { yield %o; } else { yield %k; }; store x[%i], %r;",
     NO_UPDATE("if"), false},
    {"an operand of an update",
     "%r: i32 = if %t { yield %o; } else { yield %k; }; %p: i32 = load x[%i]; %q: i32 = mul %p, "
     "%r; store x[%i], %q;",
     NO_UPDATE("if"), false},
    {"an operand of a sum",
     "%r: i32 = if %t { yield %o; } else { yield %k; }; %p: i32 = load x[%i]; %q: i32 = add %p, "
     "%r; store x[%i], %q;",
     NO_UPDATE("if"), false},
    {"the end of a loop",
     "%m: i64 = cast %o; for %l: i64 = %z to %m step 1 () { store x[%i], %k; };", NO_UPDATE("for"),
     false},
    {"a carried value",
     "%r: i32 = for %l: i64 = %z to %e step 1 (%c: i32 = %o) { %q: i32 = add %c, %k; yield %q; }; "
     "store x[%i], %r;",
     NO_UPDATE("for"), false},
    {"a value of the trip before",
     "%u: i32 = for %l: i64 = %z to %e step 1 (%c: i32 = %k) { store x[%i], %c; %p: i32 = load "
     "x[%i]; yield %p; };",
     NO_UPDATE("for"), false},
    {"the condition of a while",
     "while max %e () { %p: i32 = load x[%i]; %c: bool = lt %p, %k; yield %c; } do { store x[%i], "
     "%k; };",
     NO_UPDATE("while"), false},
    {"the index of a load", "%m: i64 = cast %o; %p: i32 = load y[%m]; store x[%i], %p;",
     NO_UPDATE("load"), false},
    {"another atomic", "%p: i32 = atomic sum y[%i], %o; store x[%i], %p;", NO_UPDATE("atomic"),
     false},
    {"a load before another store", "store x[%i], %k; %q: i32 = add %o, %k; store x[%i], %q;",
     "view \"x\": what is stored depends on the element as it was loaded before another store to "
     "it",
     false},
    {"a load before the loop",
     "for %l: i64 = %z to %e step 1 () { %q: i32 = mul %o, %k; store x[%i], %q; };",
     "view \"x\": what is stored depends on the element as it was loaded before another store to "
     "it",
     false},
    {"a condition on another element",
     "%p: i32 = load x[%j]; %c: bool = lt %p, %k; if %c { store x[%i], %k; };", NULL, true},
    {"a value of another element", "%p: i32 = load x[%j]; store x[%i], %p;", NULL, true},
    {"a store of another view between", "store y[%i], %k; %q: i32 = mul %o, %k; store x[%i], %q;",
     NULL, false},
    {"a store of another element between",
     "store x[%j], %k; %q: i32 = mul %o, %k; store x[%i], %q;", NULL, true},
    {"a store in the other branch",
     "if %t { %q: i32 = mul %o, %k; store x[%i], %q; } else { %r: i32 = sub %k, %o; store x[%i], "
     "%r; };",
     NULL, false},
    {"a carried value of other elements",
     "%u: i32 = for %l: i64 = %z to %e step 1 (%c: i32 = %k) { %p: i32 = load x[%l]; %q: i32 = mul "
     "%p, %c; store x[%l], %q; yield %p; };",
     NULL, false},
    {"a lock",
     "while max %e () { %p: i32 = atomic exchange x[%i], %k; %c: bool = gt %p, %k; yield %c; } do "
     "{ }; store x[%i], %k;",
     NULL, false},
    {"a test before an atomic", "%c: bool = lt %o, %y; if %c { %p: i32 = atomic max x[%i], %y; };",
     NULL, false},
    {"an exchange for two steps",
     "%r: i32 = if %t { yield %o; } else { yield %k; }; %p: i32 = atomic exchange x[%i], %r;", NULL,
     false},
    {"a difference of the element with itself",
     "%p: i32 = load x[%i]; %q: i32 = sub %o, %p; %r: i32 = div %y, %q; store x[%i], %r;", NULL,
     true},
};

/** With a trait that is declared. */
static void test_declared(const struct row *r)
{
    char text[2000];
    qn_error err = {0};
    qn_kernel *k = NULL;
    snprintf(text, sizeof text, HEAD "%s\n}\n", " atomic", r->body);
    tap_is_int(qn_kernel_parse(text, strlen(text), &k, &err), r->words ? QN_ERR_UNSUPPORTED : QN_OK,
               r->what);
    tap_contains(err.message, r->words ? r->words : "", "... says so");
    qn_kernel_release(k);
}

/** With the trait of an argument. */
static void test_late(const setup *s, const struct row *r, const qn_view *x, const qn_view *y)
{
    char text[2000];
    qn_error err = {0};
    snprintf(text, sizeof text, HEAD "%s\n}\n", "", r->body);
    qn_kernel *k = kernel_of(text);
    memset(x->data, 0, (size_t)x->layout.dim[0].extent * sizeof(int32_t));
    memset(y->data, 0, (size_t)y->layout.dim[0].extent * sizeof(int32_t));
    const qn_arg args[] = {qn_arg_view(x), qn_arg_view(y), qn_arg_int(QN_I64, 1)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    int found = (int)qn_launch(s->c, k, 3, args, &o, &err);
    tap_ok(found == (r->words ? QN_ERR_UNSUPPORTED : QN_OK), "... an atomic argument: %s",
           err.message);
    tap_contains(err.message, r->words ? r->words : "", "... at the launch");
    tap_ok(!strstr(err.message, ": line "), "... and not where, in a text that nobody wrote");
    qn_kernel_release(k);
}

static void test_refusals(const setup *s)
{
    enum { LENGTH = 4 };
    qn_view x = vector_of(s->c, "x", QN_I32, LENGTH + 1), late = {0},
            y = vector_of(s->c, "y", QN_I32, LENGTH);
    qn_view_with_traits(&x, QN_ATOMIC, &late, NULL);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        test_declared(&rows[r]);
        if (!rows[r].is_declared)
            test_late(s, &rows[r], &late, &y);
    }
    qn_view_release(&late);
    qn_view_release(&x);
    qn_view_release(&y);
}

/** Elements that no atomic of the machine holds. */
static void test_wide_elements(const setup *s)
{
    static const char text[] =
        "kernel \"wide\" {\n view x: c128[1]%s;\n %%z: i64 = const 0; %%n: i64 = extent x, 0;\n"
        " %%i: i64 = parallel %%z, %%n; %%r: f64 = load x[%%i] part 0; %%s: f64 = mul %%r, %%r;\n"
        " store x[%%i] part 0, %%s;\n}\n";
    char buffer[400];
    qn_error err = {0};
    qn_kernel *k = NULL;
    snprintf(buffer, sizeof buffer, text, " atomic");
    tap_is_int(qn_kernel_parse(buffer, strlen(buffer), &k, &err), QN_ERR_UNSUPPORTED,
               "16 bytes are not atomic");
    tap_contains(err.message, "\"x\": elements of c128 are not atomic", "... says so");
    snprintf(buffer, sizeof buffer, text, "");
    k = kernel_of(buffer);
    qn_view x = vector_of(s->c, "x", QN_C128, 2);
    qn_view late = x;
    late.traits |= QN_ATOMIC;
    const qn_arg args[] = {qn_arg_view(&late)};
    tap_is_int(qn_launch(s->c, k, 1, args, NULL, &err), QN_ERR_UNSUPPORTED,
               "... nor as an argument");
    tap_contains(err.message, "elements of c128 are not atomic", "... at the launch");
    qn_view_release(&x);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- the text */

/** The text of an update is the load, the ops and the store that it was built of, and gives the
 * same kernel again. */
static void test_text(void)
{
    for (int f = 0; f < N_FUNCTIONS; f++) {
        char text[2000], first[4000], second[4000];
        write_text(&functions[f], "parallel", " atomic", text, sizeof text);
        qn_kernel *k = kernel_of(text);
        qn_kernel_print(k, first, sizeof first);
        qn_kernel *again = kernel_of(first);
        qn_kernel_print(again, second, sizeof second);
        tap_is_str(second, first, functions[f].name);
        qn_kernel_release(k);
        qn_kernel_release(again);
    }
    qn_kernel *k = kernel_of(
        "kernel \"k\" {\n view x: i32[1] atomic;\n %z: i64 = const 0; %n: i64 = extent x, 0;\n"
        " %i: i64 = parallel %z, %n; %o: i32 = load x[%i]; %p: i32 = load x[%i]; %k: i32 = const "
        "3;\n"
        " %m: i32 = mul %o, %k; %q: i32 = sub %m, %p; store x[%i], %q;\n}\n");
    char text[2000];
    qn_kernel_print(k, text, sizeof text);
    tap_contains(text,
                 "  %3: i32 = const 3;\n  %4: i32 = load x[%2];\n  %5: i32 = mul %4, %3;\n  %6: "
                 "i32 = sub %5, %4;\n"
                 "  store x[%2], %6;\n",
                 "two loads are one");
    qn_kernel_release(k);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 40];
    setup s = {.c = context_with(
                   &(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 3})};
    s.has_code = has_x86(reason, sizeof reason);
    if (!s.has_code)
        tap_skip(reason);
    s.bins = vector_of(s.c, "bins", QN_I32, N);
    for (int i = 0; i < N; i++)
        ((int32_t *)s.bins.data)[i] = (int)((unsigned)i * 2654435761u >> 7) % BINS;
    for (int f = 0; f < N_FUNCTIONS; f++)
        test_function(&s, &functions[f]);
    test_product(&s);
    test_operands(&s);
    test_function_call(&s);
    test_refusals(&s);
    test_wide_elements(&s);
    test_text();
    qn_view_release(&s.bins);
    qn_context_release(s.c);
    return tap_done();
}
