/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_range.c: intervals of floats. Accesses whose indices are made of floats and are proved or
 * not; and random expressions of floats and integers, whose values are inside the intervals that
 * the analysis gives.
 */
#include "ir/range.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000 };

/* ---------------------------------------------------------------- proofs */

/* Functions that texts below call. "sin_f32" has a name of the library's, but not its range. */
static const char functions[] =
    "function \"share\" { scalar x: f32; %x: f32 = param x; %s: f32 = sin %x; %t: f32 = add %s, 1; "
    "%h: f32 = mul %t, 0.5; return %h; }\n"
    "function \"limited\" { scalar x: f32; %x: f32 = param x; %b: f32 = min %x, 1; %l: f32 = max "
    "%b, 0; return %l; }\n"
    "function \"sin_f32\" { scalar x: f32; %x: f32 = param x; return %x; }\n"
    "function \"halves\" { scalar x: f32; %x: f32 = param x; %h: f32 = call limited(%x); %g: f32 = "
    "mul %h, 0.5; return %g, %h; }\n";

/** Whether the load of the table, the second access, is proved: its index %j is made of %x: f32 and
 * the extent %n of the table. */
static void check_proof(const char *body, bool is_proved, const char *what)
{
    char text[4096];
    snprintf(text, sizeof text,
             "%skernel \"k\" { view x: f32[1]; view t: f32[1]; view y: f32[1]; array a: f32 = 0, "
             "0x1.8p+2, 999;\n"
             "%%0: i64 = const 0; %%m: i64 = extent y, 0; %%n: i64 = extent t, 0; %%last: i64 = "
             "sub %%n, 1;\n"
             "%%i: i64 = parallel %%0, %%m; %%x: f32 = load x[%%i];\n%s\n%%v: f32 = load t[%%j]; "
             "store y[%%i], %%v; }",
             functions, body);
    qn_layout layout;
    qn_layout_right(1, (const int64_t[]){N}, &layout, NULL);
    qn_arg_value args[3] = {{.layout = &layout}, {.layout = &layout}, {.layout = &layout}};
    qn_kernel *k = NULL;
    qn_error err = {0};
    qn_domain domain;
    uint8_t proved[3] = {2, 2, 2};
    bool ok = qn_kernel_parse(text, strlen(text), &k, &err) == QN_OK;
    const qn_kernel *inlined = ok && k->inlined ? k->inlined : k;
    ok = ok && inlined->n_accesses == 3 &&
         qn__domain(inlined, args, true, &domain, &err) == QN_OK &&
         qn__prove_bounds(inlined, args, &domain, proved);
    if (!tap_ok(ok && proved[1] == is_proved, "%s: %s", is_proved ? "proved" : "not proved", what))
        tap_note("%s, found %d", err.message, proved[1]);
    qn_kernel_release(k);
}

/* %s in [-1, 1] or NaN. */
#define LIMITED "%below: f32 = min %x, 1; %s: f32 = max %below, -1; "
#define SHARE LIMITED "%t: f32 = add %s, 1; %h: f32 = mul %t, 0x1p-1; "

static void test_proofs(void)
{
    check_proof(
        SHARE "%f: f32 = cast %last; %p: f32 = mul %h, %f; %q: f32 = floor %p; %j: i64 = cast %q;",
        true, "floor((n - 1) (s + 1) / 2), s in [-1, 1] or NaN, which becomes 0");
    check_proof(SHARE
                "%f: f32 = cast %n; %p: f32 = mul %h, %f; %q: f32 = floor %p; %j: i64 = cast %q;",
                false, "floor(n (s + 1) / 2): it is n where s is 1");
    check_proof(SHARE "%f: f32 = cast %n; %p: f32 = mul %h, %f; %q: f32 = floor %p; %k: i64 = cast "
                      "%q; %j: i64 = min %k, %last;",
                true, "the same limited to n - 1");
    check_proof(LIMITED "%f: f32 = cast %last; %p: f32 = mul %s, %f; %j: i64 = cast %p;", false,
                "a negative index");
    check_proof(LIMITED
                "%f: f32 = cast %last; %p: f32 = mul %s, %f; %a: f32 = abs %p; %j: i64 = cast %a;",
                true, "its magnitude");
    check_proof(SHARE "%p: f32 = fma %h, 500, 499; %j: i64 = cast %p;", true, "fma up to n - 1");
    check_proof(SHARE "%p: f32 = fma %h, 500, 500; %j: i64 = cast %p;", false, "fma up to n");
    check_proof(SHARE "%p: f32 = fma %h, 500, 1; %k: i64 = cast %p; %j: i64 = sub %k, 1;", false,
                "a NaN becomes 0, which is below 1");
    check_proof("%below: f32 = min %x, 999; %zero: f32 = const 0; %s: f32 = max %zero, %below; %j: "
                "i64 = cast %s;",
                true, "max of a constant");
    check_proof("%one: f32 = const 1; %below: f32 = min %x, 999; %j: i64 = cast %below;", false,
                "nothing limits it from below");
    check_proof(
        LIMITED
        "%w: f64 = cast %s; %p: f64 = fma %w, 400, 400; %r: f64 = sqrt %p; %j: i64 = cast %r;",
        true, "in f64, a square root");
    check_proof(LIMITED "%zero: f32 = const 0; %c: bool = gt %x, %zero; %p: f32 = select %c, %s, "
                        "5; %q: f32 = mul %p, %p; %j: i64 = cast %q;",
                false, "a product with itself may be of two numbers, as far as is known");
    check_proof(LIMITED "%zero: f32 = const 0; %c: bool = gt %x, %zero; %a: f32 = abs %s; %p: f32 "
                        "= if %c { yield %a; } else { yield %zero; };"
                        " %q: f32 = mul %p, 999; %j: i64 = cast %q;",
                true, "both sides of an if");
    check_proof("%q: f32 = sub %x, %x; %r: f32 = mul %q, 2; %j: i64 = cast %r;", false,
                "of numbers without limits nothing");
    check_proof("%k: i32 = cast %x; %l: i32 = and %k, 63; %f: f32 = cast %l; %r: f32 = div %f, 2; "
                "%j: i64 = cast %r;",
                true, "from an integer");
    check_proof("%k: i32 = cast %x; %l: i32 = and %k, 63; %f: f32 = cast %l; %two: f32 = const 2; "
                "%r: f32 = div %two, %f; %j: i64 = cast %r;",
                false, "a divisor may be 0");
    check_proof("%k: i64 = cast %x; %f: f32 = lookup a[%k]; %j: i64 = cast %f;", true,
                "a constant array");
}

/** What is proved of the load in `body`, of x[1000], by conditions and loops around it. */
static void check_guard(const char *body, int proof, const char *what)
{
    char text[2048];
    snprintf(text, sizeof text,
             "kernel guard (x: f32[], y: f32[], s: i64) {\nfor all i in y {\n%s\n} }", body);
    qn_layout layout;
    qn_layout_right(1, (const int64_t[]){N}, &layout, NULL);
    qn_arg_value args[3] = {{.layout = &layout}, {.layout = &layout}, {.bits = 7}};
    qn_kernel *k = NULL;
    qn_error err = {0};
    qn_domain domain;
    uint8_t proved[4] = {9, 9, 9, 9};
    bool ok = qn_kernel_parse(text, strlen(text), &k, &err) == QN_OK && k->n_accesses <= 4 &&
              qn__domain(k, args, true, &domain, &err) == QN_OK &&
              qn__prove_bounds(k, args, &domain, proved);
    uint32_t load = 0;
    while (ok && load + 1 < k->n_accesses && k->inst[k->access[load].inst].op != QN_I_LOAD)
        load++;
    if (!tap_ok(ok && proved[load] == proof, "%s: %s",
                proof == QN_GUARDED    ? "guarded"
                : proof == QN_IN_RANGE ? "proved"
                                       : "not proved",
                what))
        tap_note("%s, found %d", err.message, proved[load]);
    qn_kernel_release(k);
}

static void test_guards(void)
{
    check_guard("if i > 0 { y[i] = x[i - 1] }", QN_GUARDED, "behind a lower bound");
    check_guard("if i >= 0 { y[i] = x[i - 1] }", 0, "behind one that is too low");
    check_guard("if i < 999 { y[i] = x[i + 1] }", QN_GUARDED, "behind an upper bound");
    check_guard("if i <= 999 { y[i] = x[i + 1] }", 0, "behind one that is too high");
    check_guard("if 998 >= i { y[i] = x[i + 1] }", QN_GUARDED, "the bound stands first");
    check_guard("if i < 1 { y[i] = 0 } else { y[i] = x[i - 1] }", QN_GUARDED, "the other side");
    check_guard("if i >= 1 { y[i] = 0 } else { y[i] = x[i - 1] }", 0, "the wrong side");
    check_guard("if i < 1 || i > 998 { y[i] = 0 } else { y[i] = x[i - 1] }", QN_GUARDED,
                "neither of two");
    check_guard("if i < 1 && s > 3 { y[i] = 0 } else { y[i] = x[i - 1] }", 0, "not both of two");
    check_guard("if s >= 0 && s < 1000 { y[i] = x[s] }", QN_GUARDED, "a scalar");
    check_guard("if s < 1000 { y[i] = x[s] }", 0, "a scalar without a lower bound");
    check_guard("if i == 5 { y[i] = x[i + 994] }", QN_GUARDED, "an equal number");
    check_guard("if i != 5 { y[i] = x[i + 994] }", 0, "another number");
    check_guard("if i != 0 { y[i] = x[i - 1] }", QN_GUARDED, "any number but the first");
    check_guard("k: i64 = 0\nwhile k < 1000 && x[k] < 0.5 max 5000 { k += 1 }\ny[i] = f32(k)",
                QN_GUARDED, "in the condition of a loop, by what the loop carries");
    check_guard("k: i64 = 0\nwhile k < 1000 && x[k] < 0.5 max 5000 { k -= 1 }\ny[i] = f32(k)", 0,
                "where that falls");
    check_guard("k: i64 = 0\nwhile k < s max 999 { k += 1 }\ny[i] = x[k]", QN_IN_RANGE,
                "the result of a loop of so many trips");
    check_guard("k: i64 = 0\nwhile k < s max 1000 { k += 1 }\ny[i] = x[k]", 0, "of one trip more");
#define ADD "for j in 0 .. 3 { if i < s { k += 330 } else { k -= 3 } }\ny[i] = x[k]"
    check_guard("k: i64 = 9\n" ADD, QN_IN_RANGE, "sides that add other numbers");
    check_guard("k: i64 = 8\n" ADD, 0, "... and leave the view");
    check_guard("k: i64 = 1\nfor j in 0 .. 3 { k = k * 2 }\ny[i] = x[k]", 0, "a product");
    check_guard("y[i] = x[i == 0 ? 999 : i - 1]", QN_IN_RANGE, "the neighbour of a ring");
    check_guard("y[i] = x[i != 999 ? i + 1 : 0]", QN_IN_RANGE, "... on the other side");
    check_guard("y[i] = x[i == 1 ? 999 : i - 1]", 0, "... with the seam at another place");
    check_guard("y[i] = x[i < 3 ? i + 997 : i - 3]", QN_IN_RANGE, "... three elements away");
    check_guard("y[i] = x[i < 2 ? i + 997 : i - 3]", 0, "... where the seam is too short");
    check_guard("y[i] = x[select(i < 3, i - 3, i)]", 0, "the wrong side of a select");
}

/* A function whose values are in [low, high], called as kernels call it, or one of unknown range.
 */
static const struct bounded {
    const char *call;
    double low, high;
    bool is_bounded;
} bounded[] = {
    {"sin %x", -1, 1, true},
    {"cos %x", -1, 1, true},
    {"sinpi %x", -1, 1, true},
    {"cospi %x", -1, 1, true},
    {"tanh %x", -1, 1, true},
    {"erf %x", -1, 1, true},
    {"erfc %x", 0, 2, true},
    {"sigmoid %x", 0, 1, true},
    {"atan %x", -2, 2, true},
    {"asin %x", -2, 2, true},
    {"acos %x", 0, 4, true},
    {"atan2 %x, 2", -4, 4, true},
    {"cr_sin %x", -1, 1, true},
    {"cr_cos %x", -1, 1, true},
    {"cr_sinpi %x", -1, 1, true},
    {"cr_cospi %x", -1, 1, true},
    {"cr_tanh %x", -1, 1, true},
    {"cr_erf %x", -1, 1, true},
    {"cr_atan %x", -2, 2, true},
    {"cr_asin %x", -2, 2, true},
    {"cr_acos %x", 0, 4, true},
    {"uniform_f32 7, %k", 0, 1, true},
    {"tan %x", -1, 1, false},
    {"exp %x", 0, 1, false},
    {"sinh %x", -1, 1, false},
    {"normal_f32 7, %k", -4, 4, false},
    {"call sin_f32(%x)", -1, 1, false},
};

static void test_functions(void)
{
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        const struct bounded *f = &bounded[i];
        char body[512], what[128];
        snprintf(body, sizeof body,
                 "%%k: i64 = cast %%x; %%s: f32 = %s; %%t: f32 = sub %%s, %g; %%p: f32 = mul %%t, "
                 "%g; %%q: f32 = floor %%p; %%j: i64 = cast %%q;",
                 f->call, f->low, 999 / (f->high - f->low));
        snprintf(what, sizeof what, "%s, moved from [%g, %g] to [0, n - 1]", f->call, f->low,
                 f->high);
        check_proof(body, f->is_bounded, what);
    }
}

#define SINE_AND_1 "%s: f32 = sin %x; %t: f32 = add %s, 1; "
#define INDEX "%q: f32 = floor %p; %j: i64 = cast %q;"

static void test_sines(void)
{
    check_proof(SINE_AND_1 "%f: f32 = cast %n; %a: f32 = mul %f, %t; %p: f32 = div %a, 2; " INDEX,
                false, "floor((n (sin(x) + 1)) / 2): n where sin(x) is 1");
    check_proof(SINE_AND_1
                "%f: f32 = cast %last; %a: f32 = mul %f, %t; %p: f32 = div %a, 2; " INDEX,
                true, "floor((m (sin(x) + 1)) / 2) in a view of m + 1 elements");
    check_proof(SINE_AND_1 "%f: f32 = cast %n; %a: f32 = mul %f, %t; %p: f32 = div %a, 2; %q: f32 "
                           "= floor %p; %k: i64 = cast %q;"
                           " %j: i64 = min %k, %last;",
                true, "floor((n (sin(x) + 1)) / 2), at most n - 1");
    check_proof(SINE_AND_1
                "%h: f32 = div %t, 2; %f: f32 = cast %last; %p: f32 = mul %f, %h; " INDEX,
                true, "floor((n - 1) ((sin(x) + 1) / 2))");
    check_proof(SINE_AND_1 "%h: f32 = div %t, 2; %f: f32 = cast %n; %p: f32 = mul %f, %h; " INDEX,
                false, "floor(n ((sin(x) + 1) / 2))");
    check_proof("%h: f32 = call share(%x); %f: f32 = cast %last; %p: f32 = mul %f, %h; " INDEX,
                true, "the share from a function of the kernel's text");
    check_proof("%h: f32 = call share(%x); %f: f32 = cast %n; %p: f32 = mul %f, %h; " INDEX, false,
                "and its product with n");
    check_proof(
        "%g: f32, %h: f32 = call halves(%x); %f: f32 = cast %last; %p: f32 = mul %f, %h; " INDEX,
        true, "the second result of a call in a call");
    check_proof("%g: f32, %h: f32 = call halves(%x); %f: f32 = cast %last; %p: f32 = mul %f, 2; "
                "%a: f32 = mul %p, %h; %j: i64 = cast %a;",
                false, "twice the second result");
    check_proof("%w: f64 = cast %x; %s: f64 = sin %w; %t: f64 = add %s, 1; %f: f64 = cast %last; "
                "%a: f64 = mul %f, %t; %p: f64 = div %a, 2; "
                "%q: f64 = floor %p; %j: i64 = cast %q;",
                true, "in f64");
    check_proof("%s: f32, %c: f32 = sincos %x; %t: f32 = add %c, 1; %p: f32 = mul %t, 499; " INDEX,
                true, "the cosine of sincos");
}

/* ---------------------------------------------------------------- random expressions */

static uint64_t state = 1;

static int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

/** A small number, an end of the range, an infinity or NaN. */
static double any_number(void)
{
    static const double special[] = {0,        -0.0,     INFINITY,   -INFINITY, NAN, 0x1.fffffep127,
                                     0x1p-149, 0x1p1023, -0x1p-1074, 1,         -1,  0x1p53};
    return below(3) == 0 ? special[below(12)] : (below(2001) - 1000) * (below(2) ? 0.25 : 0x1p-20);
}

static uint64_t bits_of(int type, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return qn__eval_cast(type, QN_F64, bits);
}

static double number_of(int type, uint64_t bits)
{
    double x;
    bits = type == QN_F64 ? bits : qn__eval_cast(QN_F64, type, bits);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** A kernel that stores a value made by random ops of what it loads. */
static qn_kernel *random_kernel(void)
{
    static const int ops[] = {QN_OP_add,  QN_OP_sub,      QN_OP_mul,   QN_OP_div,   QN_OP_min,
                              QN_OP_max,  QN_OP_min,      QN_OP_max,   QN_OP_fma,   QN_OP_neg,
                              QN_OP_abs,  QN_OP_floor,    QN_OP_ceil,  QN_OP_round, QN_OP_trunc,
                              QN_OP_sqrt, QN_OP_copysign, QN_OP_select};
    enum { N_OPS = sizeof ops / sizeof ops[0], N_VALUES = 24 };
    int type = below(2) ? QN_F32 : QN_F64, other = type == QN_F32 ? QN_F64 : QN_F32;
    const int integers[] = {QN_I8, QN_U8, QN_I32, QN_U32, QN_I64, QN_U64};
    qn_builder *b = qn_builder_new("random", 0);
    qn_param x = qn_view_param(b, "x", type, 1, 0), y = qn_view_param(b, "y", type, 1, 0);
    qn_val i = qn_parallel_over(b, y, 0), v[N_VALUES], sum;
    v[0] = v[1] = qn_load(b, x, 1, &i);
    for (int n = 2; n < N_VALUES; n++) {
        qn_val a[3] = {v[below(n)], v[below(n)], v[below(n)]};
        int op = ops[below(N_OPS)], kind = below(8);
        qn_val c = op == QN_OP_select ? qn_lt(b, a[0], a[1]) : a[0];
        const qn_val args[3] = {c, a[1], a[2]};
        int arity = op == QN_OP_fma || op == QN_OP_select ? 3
                    : op == QN_OP_add || op == QN_OP_sub || op == QN_OP_mul || op == QN_OP_div ||
                            op == QN_OP_min || op == QN_OP_max || op == QN_OP_copysign
                        ? 2
                        : 1;
        v[n] = kind < 2   ? qn_const_bits(b, type, bits_of(type, any_number()))
               : kind < 3 ? qn_cast(b, type, qn_cast(b, integers[below(6)], a[0]))
               : kind < 4 ? qn_cast(b, type, qn_cast(b, other, a[0]))
                          : qn_op(b, op, arity, args);
    }
    sum = v[0];
    for (int n = 1; n < N_VALUES; n++)
        sum = qn_add(b, sum, v[n]);
    qn_store(b, y, 1, &i, sum);
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
    qn_builder_release(b);
    return k;
}

/** Whether a value is in its interval. */
static bool is_inside(int type, qn_interval r, uint64_t bits)
{
    if (qn__dtype_class(type) != QN_CLASS_F)
        return (type == QN_U64 && r.low < 0) || ((int64_t)bits >= r.low && (int64_t)bits <= r.high);
    double x = number_of(type, bits);
    return isnan(x)
               ? r.may_be_nan
               : x >= number_of(type, (uint64_t)r.low) && x <= number_of(type, (uint64_t)r.high);
}

/** Values of the kernel for one random element; the first instruction whose value is outside, or 0.
 * *n_known: intervals that are not everything. */
static uint32_t find_outside(const qn_kernel *k, qn_interval *r, uint64_t *v, int64_t *n_known)
{
    for (uint32_t i = 1; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        const uint32_t *a = qn__args(k, i);
        int from = x->n_args ? k->inst[a[x->n_args - 1]].type : 0;
        if (x->op == QN_I_CONST) {
            v[i] = x->imm;
            r[i] = qn__dtype_class(x->type) == QN_CLASS_F
                       ? qn__float_const(x->type, x->imm)
                       : (qn_interval){(int64_t)x->imm, (int64_t)x->imm, false};
        } else if (x->op == QN_I_LOAD) {
            v[i] = bits_of(x->type, any_number());
            r[i] = qn__interval_of_type(x->type);
        } else if (x->op == QN_I_CAST || x->op >= QN_I_PURE) {
            v[i] = x->op == QN_I_CAST
                       ? qn__eval_cast(x->type, from, v[a[0]])
                       : qn__eval_op(qn__pure(x), from, v[a[0]], x->n_args > 1 ? v[a[1]] : 0,
                                     x->n_args > 2 ? v[a[2]] : 0);
            r[i] = qn__interval_of_pure(k, r, i);
            *n_known += memcmp(&r[i].low, &(int64_t){qn__interval_of_type(x->type).low}, 8) != 0;
            if (!is_inside(x->type, r[i], v[i]))
                return i;
        }
    }
    return 0;
}

static void test_random(void)
{
    enum { KERNELS = 2000, ELEMENTS = 40, MOST = 256 };
    static qn_interval r[MOST];
    static uint64_t v[MOST];
    int64_t n_known = 0;
    int n_wrong = 0;
    for (int n = 0; n < KERNELS && n_wrong < 3; n++) {
        qn_kernel *k = random_kernel();
        for (int e = 0; k && k->n_insts <= MOST && e < ELEMENTS; e++) {
            uint32_t i = find_outside(k, r, v, &n_known);
            if (!i)
                continue;
            char text[8192];
            qn_kernel_print(k, text, sizeof text);
            n_wrong++;
            tap_note("instruction %u: %a is not in [%a, %a], NaN %d\n%s", i,
                     number_of(k->inst[i].type, v[i]),
                     number_of(k->inst[i].type, (uint64_t)r[i].low),
                     number_of(k->inst[i].type, (uint64_t)r[i].high), r[i].may_be_nan, text);
            break;
        }
        qn_kernel_release(k);
    }
    tap_ok(n_wrong == 0, "values of random expressions are inside their intervals");
    tap_ok(n_known > KERNELS * ELEMENTS, "and intervals say something: %" PRId64, n_known);
}

int main(void)
{
    test_guards();
    test_proofs();
    test_functions();
    test_sines();
    test_random();
    return tap_done();
}
