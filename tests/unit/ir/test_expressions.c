/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_expressions.c: kernel text for people. What each expression and statement is in the
 * canonical form, by its print; wrong texts with their places and messages; limits of nesting and
 * length.
 */
#include "quern.h"
#include "tests/tap.h"

#include <stdlib.h>

/** The canonical form of a text, to be freed; NULL after an error, which is noted. */
static char *canonical(const char *text)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_kernel_parse(text, strlen(text), &k, &err)) {
        tap_note("%s", err.message);
        return NULL;
    }
    size_t n = qn_kernel_print(k, NULL, 0);
    char *out = malloc(n + 1);
    if (out)
        qn_kernel_print(k, out, n + 1);
    qn_kernel_release(k);
    return out;
}

/** Each run of spaces and line ends as one space. */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != ' ' && *from != '\n')
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
}

/* ---------------------------------------------------------------------------------- expressions */

#define EXPRESSION_HEAD                                                                            \
    "kernel k (x: f32[], y: f32[], m: i32[], n: i32[], c: bool[], z: c64[], u: u8[], v: f32[0],\n" \
    "          out: %s[,], s: f32) {\n  array w: f32 = 1, 2, 3;\n"                                 \
    "  for all i in 0 .. 10, j in 0 .. 20 {\n    out[i, j] = %s\n  }\n}\n"

/* The dtype of an expression, its text, and what the printer writes for it. Numbers begin behind
 * the domain, whose indices are %3 and %4, or %4 and %5 where the scalar s is used. */
static const struct {
    const char *dtype, *text, *printed;
} expressions[] = {
    {"f32", "x[i] + y[i] * s",
     "%6: f32 = load x[%4]; %7: f32 = load y[%4]; %8: f32 = mul %7, %0; %9: f32 = add %6,"
     " %8;"},
    {"f32", "(x[i] + y[i]) * s",
     "%6: f32 = load x[%4]; %7: f32 = load y[%4]; %8: f32 = add %6, %7; %9: f32 = mul %8,"
     " %0;"},
    {"f32", "x[i] - y[i] - s",
     "%6: f32 = load x[%4]; %7: f32 = load y[%4]; %8: f32 = sub %6, %7; %9: f32 = sub %8,"
     " %0;"},
    {"f32", "x[i] - (y[i] - s)",
     "%6: f32 = load x[%4]; %7: f32 = load y[%4]; %8: f32 = sub %7, %0; %9: f32 = sub %6,"
     " %8;"},
    {"f32", "x[i] / y[i] * s",
     "%6: f32 = load x[%4]; %7: f32 = load y[%4]; %8: f32 = div %6, %7; %9: f32 = mul %8,"
     " %0;"},
    {"f32", "-x[i] * y[i]",
     "%5: f32 = load x[%3]; %6: f32 = neg %5; %7: f32 = load y[%3]; %8: f32 = mul %6, %7;"},
    {"f32", "x[i] * -y[i]",
     "%5: f32 = load x[%3]; %6: f32 = load y[%3]; %7: f32 = neg %6; %8: f32 = mul %5, %7;"},
    {"i32", "m[i] % n[i]", "%5: i32 = load m[%3]; %6: i32 = load n[%3]; %7: i32 = rem %5, %6;"},
    {"i64", "i%j", "%5: i64 = rem %3, %4;"},
    {"i32", "m[i] << 2 + n[i]",
     "%5: i32 = load m[%3]; %6: i32 = const 2; %7: i32 = load n[%3]; %8: i32 = add %6, %7;"
     " %9: i32 = shl %5, %8;"},
    {"i32", "m[i] >> 1", "%5: i32 = load m[%3]; %6: i32 = const 1; %7: i32 = shr %5, %6;"},
    {"i32", "m[i] | n[i] ^ m[i] & ~n[i]",
     "%5: i32 = load m[%3]; %6: i32 = load n[%3]; %7: i32 = not %6; %8: i32 = and %5, %7;"
     " %9: i32 = xor %6, %8; %10: i32 = or %5, %9;"},
    {"bool", "x[i] < y[i]", "%5: f32 = load x[%3]; %6: f32 = load y[%3]; %7: bool = lt %5, %6;"},
    {"bool", "x[i] <= 1", "%5: f32 = load x[%3]; %6: f32 = const 0x1p+0; %7: bool = le %5, %6;"},
    {"bool", "0 > m[i]", "%5: i32 = const 0; %6: i32 = load m[%3]; %7: bool = gt %5, %6;"},
    {"bool", "m[i] >= n[i]", "%5: i32 = load m[%3]; %6: i32 = load n[%3]; %7: bool = ge %5, %6;"},
    {"bool", "m[i] == -1", "%5: i32 = load m[%3]; %6: i32 = const -1; %7: bool = eq %5, %6;"},
    {"bool", "x[i] != y[i]", "%5: f32 = load x[%3]; %6: f32 = load y[%3]; %7: bool = ne %5, %6;"},
    {"bool", "!c[i]", "%5: bool = load c[%3]; %6: bool = not %5;"},
    {"bool", "s > 0 && s < 1 || s == 2",
     "%6: f32 = const 0x0p+0; %7: bool = gt %0, %6; %8: f32 = const 0x1p+0; %9: bool = lt"
     " %0, %8; %10: bool = and %7, %9; %11: f32 = const 0x1p+1; %12: bool = eq %0, %11;"
     " %13: bool = or %10, %12;"},
    {"bool", "1 < m[i] == c[i]",
     "%5: i32 = const 1; %6: i32 = load m[%3]; %7: bool = lt %5, %6; %8: bool = load c[%3];"
     " %9: bool = eq %7, %8;"},
    /* Operands that are left out where they read a view. */
    {"bool", "i > 0 && x[i - 1] < 2",
     "%5: bool = gt %3, %0; %6: bool = if %5 { %7: i64 = const 1; %8: i64 = sub %3, %7; %9:"
     " f32 = load x[%8]; %10: f32 = const 0x1p+1; %11: bool = lt %9, %10; yield %11; } else"
     " { %12: bool = const false; yield %12; };"},
    {"bool", "i == 0 || c[i - 1]",
     "%5: bool = eq %3, %0; %6: bool = if %5 { %7: bool = const true; yield %7; } else {"
     " %8: i64 = const 1; %9: i64 = sub %3, %8; %10: bool = load c[%9]; yield %10; };"},
    {"f32", "i == 0 ? 0 : x[i - 1]",
     "%5: bool = eq %3, %0; %6: f32 = if %5 { %7: f32 = const 0x0p+0; yield %7; } else {"
     " %8: i64 = const 1; %9: i64 = sub %3, %8; %10: f32 = load x[%9]; yield %10; };"},
    {"f32", "i > 0 ? x[i - 1] : 0",
     "%5: bool = gt %3, %0; %6: f32 = if %5 { %7: i64 = const 1; %8: i64 = sub %3, %7; %9:"
     " f32 = load x[%8]; yield %9; } else { %10: f32 = const 0x0p+0; yield %10; };"},
    {"f32", "s > 0 ? s : -s",
     "%6: f32 = const 0x0p+0; %7: bool = gt %0, %6; %8: f32 = neg %0; %9: f32 = select %7,"
     " %0, %8;"},
    {"f32", "s > 2 ? 2 : s < 1 ? 1 : s",
     "%6: f32 = const 0x1p+1; %7: bool = gt %0, %6; %8: f32 = const 0x1p+0; %9: bool = lt"
     " %0, %8; %10: f32 = select %9, %8, %0; %11: f32 = select %7, %6, %10;"},
    {"f32", "select(c[i], x[i], 1)",
     "%5: bool = load c[%3]; %6: f32 = load x[%3]; %7: f32 = const 0x1p+0; %8: f32 = select"
     " %5, %6, %7;"},
    /* Numbers take the type that they meet. */
    {"f32", "2 * 3 + x[i]",
     "%5: f32 = const 0x1.8p+2; %6: f32 = load x[%3]; %7: f32 = add %5, %6;"},
    {"f32", "1 / 4.0 * x[i]",
     "%5: f32 = const 0x1p-2; %6: f32 = load x[%3]; %7: f32 = mul %5, %6;"},
    {"f32", "0.1 * x[i]",
     "%5: f32 = const 0x1.99999ap-4; %6: f32 = load x[%3]; %7: f32 = mul %5, %6;"},
    {"u8", "u[i] + 255", "%5: u8 = load u[%3]; %6: u8 = const 255; %7: u8 = add %5, %6;"},
    {"i8", "-128", "%5: i8 = const -128;"},
    {"f32", "7", "%5: f32 = const 0x1.cp+2;"},
    {"f32", "-inf", "%5: f32 = const -inf;"},
    {"f32", "nan", "%5: f32 = const nan(0x7fc00000);"},
    {"f32", "0x1.8p+1", "%5: f32 = const 0x1.8p+1;"},
    {"bool", "true", "%5: bool = const true;"},
    {"f32", "x[i] > 0 ? 1 : -1",
     "%5: f32 = load x[%3]; %6: f32 = const 0x0p+0; %7: bool = gt %5, %6; %8: f32 = const"
     " 0x1p+0; %9: f32 = const -0x1p+0; %10: f32 = select %7, %8, %9;"},
    {"f32", "exp(1)", "%5: f32 = const 0x1p+0; %6: f32 = exp %5;"},
    {"c64", "z[i] * 2",
     "%5: f32 = load z[%3] part 0; %6: f32 = load z[%3] part 1; %7: f32 = const 0x0p+0; %8:"
     " f32 = const 0x1p+1; %9: f32 = mul %6, %7; %10: f32 = mul %5, %8; %11: f32 = sub %10,"
     " %9; %12: f32 = mul %6, %8; %13: f32 = mul %5, %7; %14: f32 = add %13, %12;"},
    {"f32", "f32(1 / 4.0) * s", "%6: f32 = const 0x1p-2; %7: f32 = mul %6, %0;"},
    {"u8", "u8(255)", "%5: u8 = const 255;"},
    /* Conversions and functions. */
    {"f32", "f32(i) * s", "%6: f32 = cast %4; %7: f32 = mul %6, %0;"},
    {"i32", "i32(x[i])", "%5: f32 = load x[%3]; %6: i32 = cast %5;"},
    {"i32", "bitcast(i32, x[i])", "%5: f32 = load x[%3]; %6: i32 = bitcast %5;"},
    {"f32", "min(x[i], 0)", "%5: f32 = load x[%3]; %6: f32 = const 0x0p+0; %7: f32 = min %5, %6;"},
    {"f32", "max(0, x[i])", "%5: f32 = const 0x0p+0; %6: f32 = load x[%3]; %7: f32 = max %5, %6;"},
    {"f32", "fma(x[i], 2, y[i])",
     "%5: f32 = load x[%3]; %6: f32 = const 0x1p+1; %7: f32 = load y[%3]; %8: f32 = fma %5,"
     " %6, %7;"},
    {"f32", "sqrt(abs(x[i]))", "%5: f32 = load x[%3]; %6: f32 = abs %5; %7: f32 = sqrt %6;"},
    {"f32", "pow(2, x[i])", "%5: f32 = const 0x1p+1; %6: f32 = load x[%3]; %7: f32 = pow %5, %6;"},
    {"f32", "ldexp(x[i], 3)", "%5: f32 = load x[%3]; %6: i32 = const 3; %7: f32 = ldexp %5, %6;"},
    {"bool", "isnan(x[i])", "%5: f32 = load x[%3]; %6: bool = isnan %5;"},
    {"f32", "abs(z[i])",
     "%5: f32 = load z[%3] part 0; %6: f32 = load z[%3] part 1; %7: f32 = abs_c64 %5, %6;"},
    {"f32", "real(z[i])",
     "%5: f32 = load z[%3] part 0; %6: f32 = const 0x0p+0; %7: f32 = real_c64 %5, %6;"},
    {"f32", "z[i] part 1", "%5: f32 = load z[%3] part 1;"},
    {"f32", "uniform_f32(u64(7), i)", "%5: u64 = const 7; %6: f32 = uniform_f32 %5, %3;"},
    /* Loads and lookups. */
    {"f32", "x[i + 1]", "%5: i64 = const 1; %6: i64 = add %3, %5; %7: f32 = load x[%6];"},
    {"f32", "x[m[i]]", "%5: i32 = load m[%3]; %6: i64 = cast %5; %7: f32 = load x[%6];"},
    {"f32", "x[0]", "%5: f32 = load x[%0];"},
    {"f32", "v[]", "%5: f32 = load v[];"},
    {"f32", "w[i + 1]", "%5: i64 = const 1; %6: i64 = add %3, %5; %7: f32 = lookup a0[%6];"},
    {"i64", "extent(x, 0) - lower(y, 0)",
     "%5: i64 = extent x, 0; %6: i64 = lower y, 0; %7: i64 = sub %5, %6;"},
    {"f32", "((((((((x[i]))))))))", "%5: f32 = load x[%3];"},
    {"f32", "(x[i]) - (-(s))", "%6: f32 = load x[%4]; %7: f32 = neg %0; %8: f32 = sub %6, %7;"},
};

static void test_expressions(void)
{
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        char text[1000];
        snprintf(text, sizeof text, EXPRESSION_HEAD, expressions[i].dtype, expressions[i].text);
        char *printed = canonical(text), *begin = printed;
        if (printed)
            join_lines(printed);
        for (int k = 0; begin && k < 2; k++) /* behind the two dimensions */
            begin =
                strstr(begin, "parallel ") ? strstr(strstr(begin, "parallel "), "; ") + 2 : NULL;
        char *end = begin ? strstr(begin, "store out") : NULL;
        if (end && end > begin)
            end[-1] = '\0';
        else if (end)
            *end = '\0';
        tap_is_str(end ? begin : printed, expressions[i].printed, expressions[i].text);
        free(printed);
    }
}

/* ----------------------------------------------------------------------------------- statements */

/* A text for people, and one in the canonical form with the same print. */
static const struct {
    const char *what, *text, *expected;
} kernels[] = {
    {"views of each rank, traits, scalars, pins and flags in a list",
     "kernel k (a: f64[0], b: f64[], c: f64[,] read_only, d: f64[, ,] restrict {extent 1 "
     "multiple_of 8},\n"
     "  e: f64[4], n: i64 {dynamic}) contract striped { a[] = b[0] + c[0, 0] + d[0, 0, 0] + e[0, "
     "0, 0, n] }",
     "kernel \"k\" contract striped { view a: f64[0]; view b: f64[1]; view c: f64[2] read_only;\n"
     "  view d: f64[3] restrict {extent 1 multiple_of 8}; view e: f64[4]; scalar n: i64 "
     "{dynamic};\n"
     "  %n: i64 = param n; %z: i64 = const 0; %b: f64 = load b[%z]; %c: f64 = load c[%z, %z];\n"
     "  %1: f64 = add %b, %c; %d: f64 = load d[%z, %z, %z]; %2: f64 = add %1, %d;\n"
     "  %e: f64 = load e[%z, %z, %z, %n]; %3: f64 = add %2, %e; store a[], %3; }"},
    {"the domain over all indices of a view",
     "kernel k (x: f32[,], y: f32[,]) { for all i, j in y { y[i, j] = x[j, i] } }",
     "kernel \"k\" { view x: f32[2]; view y: f32[2]; %l: i64 = lower y, 0; %n: i64 = extent y, 0;\n"
     "  %e: i64 = add %l, %n; %l1: i64 = lower y, 1; %n1: i64 = extent y, 1; %e1: i64 = add %l1, "
     "%n1;\n"
     "  %i: i64 = parallel %l, %e; %j: i64 = parallel %l1, %e1; %x: f32 = load x[%j, %i];\n"
     "  store y[%i, %j], %x; }"},
    {"the inner indices of a view, and one dimension",
     "kernel k (x: f32[], y: f32[,]) { for all i in inner(x, 2) { for all j in dim(y, 1) { y[i, j] "
     "= x[i] } } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[2]; %l: i64 = lower x, 0; %n: i64 = extent x, 0;\n"
     "  %e: i64 = add %l, %n; %b: i64 = add %l, 2; %f: i64 = sub %e, 2; %i: i64 = parallel %b, "
     "%f;\n"
     "  %l1: i64 = lower y, 1; %n1: i64 = extent y, 1; %e1: i64 = add %l1, %n1; %j: i64 = parallel "
     "%l1, %e1;\n"
     "  %x: f32 = load x[%i]; store y[%i, %j], %x; }"},
    {"ranges, and a sequential dimension",
     "kernel k (y: f32[,], n: i64) { last = n - 1; for sequential t in 1 .. last { for all i in 0 "
     ".. 2 * n {\n"
     "  y[t, i] = y[t - 1, i] } } }",
     "kernel \"k\" { view y: f32[2]; scalar n: i64; %n: i64 = param n; %1: i64 = const 1; %last: "
     "i64 = sub %n, %1;\n"
     "  %t: i64 = sequential %1, %last; %0: i64 = const 0; %2: i64 = const 2; %m: i64 = mul %2, "
     "%n;\n"
     "  %i: i64 = parallel %0, %m; %s: i64 = sub %t, %1; %y: f32 = load y[%s, %i]; store y[%t, "
     "%i], %y; }"},
    {"a sum over a dimension",
     "kernel k (a: f64[,], s: f64[]) { for all i in 0 .. 8 { s[i] = sum j in 0 .. extent(a, 1) of "
     "a[i, j] } }",
     "kernel \"k\" { view a: f64[2]; view s: f64[1]; %0: i64 = const 0; %8: i64 = const 8; %i: i64 "
     "= parallel %0, %8;\n"
     "  %n: i64 = extent a, 1; %j: i64 = reduction %0, %n; %s: f64 = reduce sum over %j { %a: f64 "
     "= load a[%i, %j];\n"
     "  yield %a; }; store s[%i], %s; }"},
    {"a sum of all that is right of it, and one in parentheses",
     "kernel k (x: f64[], s: f64[0]) { s[] = (max ordered k in 0 .. 9 of x[k] * 2) + sum k in 0 .. "
     "9 of x[k] + 1 }",
     "kernel \"k\" { view x: f64[1]; view s: f64[0]; %0: i64 = const 0; %9: i64 = const 9; %k: i64 "
     "= reduction %0, %9;\n"
     "  %m: f64 = reduce max ordered over %k { %x: f64 = load x[%k]; %y: f64 = mul %x, 2; yield "
     "%y; };\n"
     "  %s: f64 = reduce sum over %k { %x: f64 = load x[%k]; %y: f64 = add %x, 1; yield %y; };\n"
     "  %r: f64 = add %m, %s; store s[], %r; }"},
    {"a reduction over two dimensions, and another range of one name",
     "kernel k (a: i32[,], s: i32[]) { s[0] = xor i, j in a of a[i, j]; s[1] = prod i in 0 .. 3 of "
     "a[i, i] }",
     "kernel \"k\" { view a: i32[2]; view s: i32[1]; %l: i64 = lower a, 0; %n: i64 = extent a, 0; "
     "%e: i64 = add %l, %n;\n"
     "  %l1: i64 = lower a, 1; %n1: i64 = extent a, 1; %e1: i64 = add %l1, %n1; %i: i64 = "
     "reduction %l, %e;\n"
     "  %j: i64 = reduction %l1, %e1; %0: i64 = const 0; %3: i64 = const 3; %q: i64 = reduction "
     "%0, %3;\n"
     "  %x: i32 = reduce xor over %i, %j { %a: i32 = load a[%i, %j]; yield %a; }; store s[%0], "
     "%x;\n"
     "  %1: i64 = const 1; %p: i32 = reduce prod over %q { %a: i32 = load a[%q, %q]; yield %a; }; "
     "store s[%1], %p; }"},
    {"a sum whose range is known in the body is a loop",
     "kernel k (row: i32[], v: f64[], y: f64[]) contract { for all i in y {\n"
     "  y[i] = sum k in row[i] .. row[i + 1] of 2 * v[k] } }",
     "kernel \"k\" contract { view row: i32[1]; view v: f64[1]; view y: f64[1]; %l: i64 = lower y, "
     "0;\n"
     "  %n: i64 = extent y, 0; %e: i64 = add %l, %n; %i: i64 = parallel %l, %e; %b: i32 = load "
     "row[%i];\n"
     "  %1: i64 = const 1; %j: i64 = add %i, %1; %f: i32 = load row[%j]; %0: f64 = const 0; %b1: "
     "i64 = cast %b;\n"
     "  %f1: i64 = cast %f; %s: f64 = for %k: i64 = %b1 to %f1 step 1 (%c: f64 = %0) { %2: f64 = "
     "const 2;\n"
     "  %v: f64 = load v[%k]; %p: f64 = mul %2, %v; %t: f64 = add %p, %c; yield %t; }; store "
     "y[%i], %s; }"},
    {"names of values, types of their own, several at once",
     "kernel k (x: f32[], y: f32[], z: f32[]) { for all i in 0 .. 9 { a = x[i]; b: f32 = 3; a, b = "
     "b, a; n: i64 = 1\n"
     "  s, c = sincos(a); y[i] = s - c * b; z[i + n] = a } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; view z: f32[1]; %0: i64 = const 0; %9: i64 = "
     "const 9; %i: i64 = parallel %0, %9;\n"
     "  %a: f32 = load x[%i]; %b: f32 = const 3; %1: i64 = const 1; %s: f32, %c: f32 = sincos %b; "
     "%p: f32 = mul %c, %a;\n"
     "  %d: f32 = sub %s, %p; store y[%i], %d; %j: i64 = add %i, %1; store z[%j], %b; }"},
    {"updates of names and of views",
     "kernel k (x: f32[], y: f32[], u: u32[]) { for all i in 0 .. 9 { t = x[i]; t *= 2; t -= 1; "
     "y[i] += t; y[i] /= x[0]\n"
     "  u[i] <<= 1; u[i] &= 255 } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; view u: u32[1]; %0: i64 = const 0; %9: i64 = "
     "const 9;\n"
     "  %i: i64 = parallel %0, %9; %x: f32 = load x[%i]; %2: f32 = const 2; %t: f32 = mul %x, %2; "
     "%1: f32 = const 1;\n"
     "  %v: f32 = sub %t, %1; %y: f32 = load y[%i]; %a: f32 = add %y, %v; store y[%i], %a; %d: f32 "
     "= load x[%0];\n"
     "  %y2: f32 = load y[%i]; %q: f32 = div %y2, %d; store y[%i], %q; %one: u32 = const 1; %u: "
     "u32 = load u[%i];\n"
     "  %w: u32 = shl %u, %one; store u[%i], %w; %m: u32 = const 255; %u2: u32 = load u[%i]; %z: "
     "u32 = and %u2, %m;\n"
     "  store u[%i], %z; }"},
    {"an update through an atomic view is one atomic, and so is one behind \"atomic\"",
     "kernel k (x: u8[], h: u32[] atomic, g: i32[]) { for all i in x { h[x[i]] += 1; h[0] |= 2; "
     "atomic g[x[i]] -= 3\n"
     "  atomic max g[0], 4 * i32(i); atomic g[1] = 5 } }",
     "kernel \"k\" { view x: u8[1]; view h: u32[1] atomic; view g: i32[1]; %l: i64 = lower x, 0; "
     "%n: i64 = extent x, 0;\n"
     "  %e: i64 = add %l, %n; %i: i64 = parallel %l, %e; %x: u8 = load x[%i]; %1: u32 = const 1; "
     "%b: i64 = cast %x;\n"
     "  atomic sum h[%b], %1; %0: i64 = const 0; %2: u32 = const 2; atomic or h[%0], %2; %x2: u8 = "
     "load x[%i];\n"
     "  %3: i32 = const -3; %b2: i64 = cast %x2; atomic sum g[%b2], %3; %4: i32 = const 4; %i4: "
     "i32 = cast %i;\n"
     "  %p: i32 = mul %4, %i4; atomic max g[%0], %p; %one: i64 = const 1; %5: i32 = const 5;\n"
     "  %old: i32 = atomic exchange g[%one], %5; }"},
    {"names that both branches of an if assign, and a chain of else",
     "kernel k (x: f32[], y: f32[]) { for all i in 0 .. 9 { t = x[i]; u = t; if t < 0 { t = -t } "
     "else if t > 2 { u = 2; t = 1 }\n"
     "  else { w = t; u = w + 1 } y[i] = t * u } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %0: i64 = const 0; %9: i64 = const 9; %i: i64 "
     "= parallel %0, %9;\n"
     "  %t: f32 = load x[%i]; %z: f32 = const 0; %c: bool = lt %t, %z; %t1: f32, %u1: f32 = if %c "
     "{ %n: f32 = neg %t;\n"
     "  yield %n, %t; } else { %2: f32 = const 2; %d: bool = gt %t, %2; %u2: f32, %t2: f32 = if %d "
     "{ %1: f32 = const 1;\n"
     "  yield %2, %1; } else { %1: f32 = const 1; %v: f32 = add %t, %1; yield %v, %t; }; yield "
     "%t2, %u2; };\n"
     "  %r: f32 = mul %t1, %u1; store y[%i], %r; }"},
    {"an if that assigns nothing, with stores, rare",
     "kernel k (x: f32[], y: f32[]) { for all i in 0 .. 9 { if rare x[i] > 1 { y[i] = 1 } else { "
     "y[i] = 2 } if x[i] < 0 { y[i] = 3 } } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %0: i64 = const 0; %9: i64 = const 9; %i: i64 "
     "= parallel %0, %9;\n"
     "  %x: f32 = load x[%i]; %1: f32 = const 1; %c: bool = gt %x, %1; if rare %c { store y[%i], "
     "%1; } else {\n"
     "  %2: f32 = const 2; store y[%i], %2; }; %y: f32 = load x[%i]; %z: f32 = const 0; %d: bool = "
     "lt %y, %z;\n"
     "  if %d { %3: f32 = const 3; store y[%i], %3; }; }"},
    {"a loop that assigns names",
     "kernel k (x: f32[], y: f32[]) { s: f32 = 0; n: i32 = 0\n for k in 0 .. extent(x, 0) step 2 { "
     "s += x[k]; if x[k] > 1 { n += 1 } }\n"
     "  y[0] = s / f32(n) }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %s: f32 = const 0; %n: i32 = const 0; %0: i64 "
     "= const 0;\n"
     "  %e: i64 = extent x, 0; %s2: f32, %n2: i32 = for %k: i64 = %0 to %e step 2 (%s1: f32 = %s, "
     "%n1: i32 = %n) {\n"
     "  %x: f32 = load x[%k]; %t: f32 = add %s1, %x; %one: f32 = const 1; %c: bool = gt %x, %one; "
     "%m: i32 = if %c {\n"
     "  %1: i32 = const 1; %v: i32 = add %n1, %1; yield %v; } else { yield %n1; }; yield %t, %m; "
     "};\n"
     "  %f: f32 = cast %n2; %q: f32 = div %s2, %f; store y[%0], %q; }"},
    {"a loop over a view, with stores",
     "kernel k (x: f32[], y: f32[]) { for k in x { y[k] = x[k] } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %l: i64 = lower x, 0; %n: i64 = extent x, 0; "
     "%e: i64 = add %l, %n;\n"
     "  for %k: i64 = %l to %e step 1 () { %x: f32 = load x[%k]; store y[%k], %x; }; }"},
    {"a while with its limit",
     "kernel k (x: f32[], n: i32[]) { for all i in 0 .. 9 { t = x[i]; c: i32 = 0; while t > 1 max "
     "100 { t /= 2; c += 1 } n[i] = c } }",
     "kernel \"k\" { view x: f32[1]; view n: i32[1]; %0: i64 = const 0; %9: i64 = const 9; %i: i64 "
     "= parallel %0, %9;\n"
     "  %t: f32 = load x[%i]; %c: i32 = const 0; %m: i64 = const 100; %t2: f32, %c2: i32 = while "
     "max %m\n"
     "  (%t1: f32 = %t, %c1: i32 = %c) { %1: f32 = const 1; %g: bool = gt %t1, %1; yield %g; } do "
     "{ %2: f32 = const 2;\n"
     "  %h: f32 = div %t1, %2; %one: i32 = const 1; %d: i32 = add %c1, %one; yield %h, %d; }; "
     "store n[%i], %c2; }"},
    {"functions, with views and several results",
     "function both (v: f32[], i: i64, a: f32) contract { return v[i] * a + 1, max(a, 0); }\n"
     "kernel k (x: f32[], y: f32[]) { for all i in 0 .. 9 { p, q = both(x, i, 2); y[i] = p - q } }",
     "function \"both\" contract { view v: f32[1]; scalar i: i64; scalar a: f32; %i: i64 = param "
     "i; %a: f32 = param a;\n"
     "  %v: f32 = load v[%i]; %p: f32 = mul %v, %a; %1: f32 = const 1; %r: f32 = add %p, %1; %0: "
     "f32 = const 0;\n"
     "  %m: f32 = max %a, %0; return %r, %m; }\n"
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %0: i64 = const 0; %9: i64 = const 9; %i: i64 "
     "= parallel %0, %9;\n"
     "  %2: f32 = const 2; %p: f32, %q: f32 = call both(x, %i, %2); %d: f32 = sub %p, %q; store "
     "y[%i], %d; }"},
    {"a sum in a function is a loop",
     "function total (v: f32[]) { return sum k in v of v[k] }\nkernel k (x: f32[], y: f32[]) { "
     "y[0] = total(x) }",
     "function \"total\" { view v: f32[1]; %l: i64 = lower v, 0; %n: i64 = extent v, 0; %e: i64 = "
     "add %l, %n; %0: f32 = const 0;\n"
     "  %s: f32 = for %k: i64 = %l to %e step 1 (%c: f32 = %0) { %v: f32 = load v[%k]; %t: f32 = "
     "add %v, %c; yield %t; };\n"
     "  return %s; }\n"
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %0: i64 = const 0; %t: f32 = call total(x); "
     "store y[%0], %t; }"},
    {"assertions and prints of expressions",
     "kernel k (x: f32[], y: f32[]) { for all i in 0 .. 9 { assert x[i] > 0 \"bad\" x[i], i + 1; "
     "print \"here\" x[i] * 2; y[i] = 1 } }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; %0: i64 = const 0; %9: i64 = const 9; %i: i64 "
     "= parallel %0, %9;\n"
     "  %x: f32 = load x[%i]; %z: f32 = const 0; %c: bool = gt %x, %z; %1: i64 = const 1; %j: i64 "
     "= add %i, %1;\n"
     "  assert %c \"bad\" %x, %j; %2: f32 = const 2; %t: f32 = mul %x, %2; print \"here\" %t; "
     "%one: f32 = const 1;\n"
     "  store y[%i], %one; }"},
    {"both forms mixed",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; scalar a: f32;\n %zero: i64 = const 0; %n: "
     "i64 = extent y, 0;\n"
     "  %i: i64 = parallel %zero, %n; t = a * x[i]\n %u: f32 = neg %t; store y[i], %u + t; }",
     "kernel \"k\" { view x: f32[1]; view y: f32[1]; scalar a: f32; %a: f32 = param a; %zero: i64 "
     "= const 0; %n: i64 = extent y, 0;\n"
     "  %i: i64 = parallel %zero, %n; %x: f32 = load x[%i]; %t: f32 = mul %a, %x; %u: f32 = neg "
     "%t; %v: f32 = add %u, %t;\n"
     "  store y[%i], %v; }"},
    {"keywords as names of views and values",
     "kernel kernel (store: f32[], for: f32[], max: f32) { for all all in 0 .. 9 { load = "
     "for[all]; \"store\"[all] = load + max\n"
     "  if: f32 = 1; store[all] += if } }",
     "kernel \"kernel\" { view store: f32[1]; view for: f32[1]; scalar max: f32; %m: f32 = param "
     "max; %0: i64 = const 0;\n"
     "  %9: i64 = const 9; %i: i64 = parallel %0, %9; %l: f32 = load for[%i]; %s: f32 = add %l, "
     "%m; store store[%i], %s;\n"
     "  %1: f32 = const 1; %o: f32 = load store[%i]; %t: f32 = add %o, %1; store store[%i], %t; }"},
    {"parts of records and complex numbers",
     "kernel k (p: record 12 align 4 {f32 0, i32 4, f32 8}[], z: c64[]) { p[0] part 2 = p[1] part "
     "0 + 1; z[0] part 1 += 2; z[1] = z[0] }",
     "kernel \"k\" { view p: record 12 align 4 {f32 0, i32 4, f32 8}[1]; view z: c64[1]; %0: i64 = "
     "const 0; %1: i64 = const 1;\n"
     "  %a: f32 = load p[%1] part 0; %f: f32 = const 1; %s: f32 = add %a, %f; store p[%0] part 2, "
     "%s; %2: f32 = const 2;\n"
     "  %i: f32 = load z[%0] part 1; %t: f32 = add %i, %2; store z[%0] part 1, %t; %z: c64 = load "
     "z[%0]; store z[%1], %z; }"},
};

static void test_kernels(void)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        char *found = canonical(kernels[i].text), *wanted = canonical(kernels[i].expected);
        bool is_same = found && wanted && strcmp(found, wanted) == 0;
        tap_ok(is_same, "%s", kernels[i].what);
        if (!is_same)
            tap_note("printed:\n%s\nexpected:\n%s", found ? found : "-", wanted ? wanted : "-");
        free(found);
        free(wanted);
    }
}

/* ----------------------------------------------------------------------------------- wrong texts
 */

#define WRONG                                                                                      \
    "kernel k (x: f32[], n: i64[], c: bool[], a: f32, y: f32[,]) {\n  array w: f32 = 1, 2;\n  "    \
    "for all i in 0 .. 9 {\n"

/* What stands in line 4 of a kernel, the column of the error, and a part of the message. */
static const struct {
    const char *text;
    int column;
    qn_status status;
    const char *part;
} wrong_lines[] = {
    {"y[i, 0] = x[i] * i }}", 16, QN_ERR_PARSE,
     "operands of \"*\" are f32 and i64: convert one, as in f32(...)"},
    {"y[i, 0] = x[i] < n[i] }}", 16, QN_ERR_PARSE, "operands of \"<\" are f32 and i64"},
    {"y[i, 0] = n[i] }}", 11, QN_ERR_PARSE,
     "an element of \"y\" is f32, and the expression is i64: convert it, as in f32(...)"},
    {"y[i, 0] = c[i] ? x[i] : n[i] }}", 16, QN_ERR_PARSE, "operands of \"?\" are f32 and i64"},
    {"y[i, 0] = x[i] ? 1 : 2 }}", 16, QN_ERR_PARSE, "\"?\" takes bool, not f32"},
    {"y[i, 0] = x[i] && c[i] ? 1 : 2 }}", 16, QN_ERR_PARSE, "\"&&\" takes bool, not f32"},
    {"y[i, 0] = f32(!x[i]) }}", 15, QN_ERR_PARSE,
     "\"!\" takes bool, not f32: compare, as in x != 0"},
    {"y[i, 0] = x[i] % a }}", 16, QN_ERR_TYPE,
     "qn_rem: kernel \"k\": operand 0 (load of x) is f32, operand 1 (scalar a) is f32"},
    {"y[i, 0] = x[a] }}", 13, QN_ERR_PARSE,
     "index 0 of \"x\" is f32, not an integer: convert it, as in i64(...)"},
    {"y[i, 0] = x[i, i] }}", 11, QN_ERR_PARSE, "view \"x\" has 1 dimension, and here 2 indices"},
    {"y[i] = 1 }}", 1, QN_ERR_RANK, "view \"y\": 1 indices for rank 2"},
    {"y[i, 0] = x }}", 11, QN_ERR_PARSE, "\"x\" is a view: write indices in [ ]"},
    {"y[i, 0] = x + 1 }}", 11, QN_ERR_PARSE, "\"x\" is a view: write indices in [ ]"},
    {"y[i, 0] = w }}", 11, QN_ERR_PARSE, "\"w\" is a constant array: write its index in [ ]"},
    {"w[i] = 1 }}", 1, QN_ERR_PARSE, "\"w\" is a constant array, not a view"},
    {"y[i, 0] = b }}", 11, QN_ERR_PARSE, "no name \"b\" is known here"},
    {"b += 1 }}", 1, QN_ERR_PARSE, "no name \"b\" is known here"},
    {"a = 1 }}", 1, QN_ERR_PARSE, "\"a\" is a parameter"},
    {"x = 1 }}", 1, QN_ERR_PARSE, "\"x\" is a view: write indices in [ ]"},
    {"i = 1 }}", 1, QN_ERR_PARSE, "\"i\" is an index or a value of line 3, and keeps its value"},
    {"t = 1 }}", 5, QN_ERR_PARSE,
     "\"1\" has no type here: write it as f32(...) or i64(...), or the name as t: f32 = ..."},
    {"t = 1 < 2 }}", 7, QN_ERR_PARSE, "operands of \"<\" are numbers without a type"},
    {"t: i32 = 0.5 }}", 10, QN_ERR_PARSE, "literal \"0.5\" is not an integer (i32)"},
    {"t: u8 = -1 }}", 10, QN_ERR_PARSE, "literal \"-1\" does not fit (u8)"},
    {"t: i32 = inf }}", 10, QN_ERR_PARSE, "literal \"inf\" is a float (i32)"},
    {"t: bool = 1 }}", 11, QN_ERR_PARSE, "literal \"1\" is a number (bool)"},
    {"t: f32 = x[i]; t: f32 = 1 }}", 16, QN_ERR_PARSE, "\"t\" is already defined in line 4"},
    {"t = x[i]; t = n[i] }}", 15, QN_ERR_PARSE, "\"t\" is f32, and the expression is i64"},
    {"if c[i] { t = 1.5 * a } y[i, 0] = t }}", 35, QN_ERR_PARSE, "no name \"t\" is known here"},
    {"s, t = x[i] }}", 13, QN_ERR_PARSE, "1 value for 2 names"},
    {"s = a, a }}", 8, QN_ERR_PARSE, "more values than the 1 name"},
    {"s, t, u = sincos(a) }}", 21, QN_ERR_PARSE, "2 values for 3 names"},
    {"s, t += a }}", 6, QN_ERR_PARSE, "2 names are updated at once"},
    {"y[i, 0] = sincos(a) + 1 }}", 11, QN_ERR_PARSE,
     "\"sincos\" has 2 results: give them names, as in a, b = sincos(...)"},
    {"y[i, 0] = fma(a, a) }}", 11, QN_ERR_PARSE, "\"fma\" takes 3 arguments, not 2"},
    {"y[i, 0] = exp(a, a) }}", 11, QN_ERR_PARSE, "\"exp\" takes 1 argument, not 2"},
    {"y[i, 0] = exp(n[i]) }}", 11, QN_ERR_NOT_FOUND,
     "no mathematical function is called \"exp_i64\""},
    {"y[i, 0] = pow(a, i) }}", 11, QN_ERR_PARSE, "argument 1 of \"pow\" is i64, expected f32"},
    {"y[i, 0] = sqtr(a) }}", 11, QN_ERR_PARSE,
     "no function \"sqtr\" is known: did you mean \"sqrt\"?"},
    {"y[i, 0] = f32(a, a) }}", 11, QN_ERR_PARSE, "\"f32\" takes 1 argument, not 2"},
    {"y[i, 0] = bitcast(f32, 1) }}", 11, QN_ERR_PARSE, "bits of a number without a type"},
    {"y[i, 0] = extent(x, 1) }}", 11, QN_ERR_PARSE, "is f32, and the expression is i64"},
    {"y[extent(x, 1), 0] = 1 }}", 3, QN_ERR_RANK, "has no dimension 1"},
    {"y[i, 0] = x[i] part 3 }}", 11, QN_ERR_PARSE, "have 1 parts, and no part 3"},
    {"y[i, 0] = (a + }}", 16, QN_ERR_PARSE, "expected a value but found \"}\""},
    {"y[i, 0] = (a + 1 }}", 18, QN_ERR_PARSE, "expected ')' but found \"}\""},
    {"y[i, 0] = x[i }}", 15, QN_ERR_PARSE, "expected ']' but found \"}\""},
    {"y[i, 0] = c[i] ? a }}", 20, QN_ERR_PARSE, "expected ':' but found \"}\""},
    {"y[i, 0] = (a, a) }}", 13, QN_ERR_PARSE, "expected ')' but found \",\""},
    {"y[i, 0] 1 }}", 9, QN_ERR_PARSE, "expected '=' or an operator such as '+='"},
    {"y[i, 0] = a a }}", 13, QN_ERR_PARSE, "expected a statement or '}'"},
    {"y[i, 0] = 1..2 }}", 12, QN_ERR_PARSE, "expected a statement or '}' but found \"..\""},
    {"y[i, 0] = a @ 1 }}", 13, QN_ERR_PARSE, "found the character '@'"},
    {"y[i, 0] = sum k in x of }}", 25, QN_ERR_PARSE, "expected a value"},
    {"y[i, 0] = sum k in 0 .. i of sum j in sum l in n[i] .. 3 of l .. 4 of x[j] }}", 39,
     QN_ERR_PARSE, "the range of a reduction has a reduction in it"},
    {"y[i, 0] = sum striped k in 0 .. i of x[k] }}", 11, QN_ERR_PARSE,
     "it is a loop of one index, in its order"},
    {"y[i, 0] = sum k, l in x of x[k] }}", 23, QN_ERR_PARSE,
     "2 names for the 1 dimension of the view"},
    {"y[i, 0] = sum k in x of n[k] }}", 11, QN_ERR_PARSE,
     "an element of \"y\" is f32, and the expression is i64"},
    {"y[i, 0] = sum x in 0 .. 3 of 1 }}", 15, QN_ERR_PARSE, "\"x\" is a parameter"},
    {"y[i, 0] = sum i in 0 .. 3 of 1 }}", 15, QN_ERR_PARSE, "\"i\" is already defined in line 3"},
    {"for k in 0 9 { } }}", 12, QN_ERR_PARSE, "expected '..', as in 0 .. n,"},
    {"for k in 0.5 .. 9 { } }}", 10, QN_ERR_PARSE, "literal \"0.5\" is not an integer (i64)"},
    {"for k in a .. 9 { } }}", 10, QN_ERR_PARSE,
     "the first index of a range is an integer, and the expression is f32"},
    {"for all j in 0 .. 9 { y[i, j] = a } y[i, 0] = 1 }}", 37, QN_ERR_PARSE,
     "nothing stands behind the block of 'for all'"},
    {"y[i, 0] = 1; for all j in 0 .. 9 { } }}", 14, QN_ERR_BUILD, "dimensions come before"},
    {"while c[i] { } }}", 12, QN_ERR_PARSE, "expected 'max'"},
    {"while a max 3 { } }}", 7, QN_ERR_PARSE, "the condition is bool, and the expression is f32"},
    {"if a { } }}", 4, QN_ERR_PARSE, "the condition is bool, and the expression is f32"},
    {"else { } }}", 1, QN_ERR_PARSE, "unknown statement \"else\""},
    {"atomic n[i] *= 2 }}", 8, QN_ERR_PARSE, "no atomic does this"},
    {"t = a; for %k: i64 = %i to %i step 1 () { t = 1; }; }}", 43, QN_ERR_PARSE,
     "\"t\" is assigned in a block that says what it carries"},
    {"yield = x[i] }}", 7, QN_ERR_PARSE, "expected"},
};

/* Whole texts. */
static const struct {
    const char *text;
    int line, column;
    qn_status status;
    const char *part;
} wrong_kernels[] = {
    {"kernel k (x: f32[,) { }", 1, 19, QN_ERR_PARSE, "expected ']' but found \")\""},
    {"kernel k (x f32) { }", 1, 13, QN_ERR_PARSE, "expected ':'"},
    {"kernel k (x: f32 { }", 1, 20, QN_ERR_PARSE, "expected \"constexpr\""},
    {"kernel k (x: f32, x: f32[]) { }", 1, 19, QN_ERR_PARSE, "parameter \"x\" is already declared"},
    {"kernel k (x: f32[17]) { }", 1, 11, QN_ERR_RANK, "rank 17 is not in 0 to 16"},
    {"kernel k (", 1, 11, QN_ERR_PARSE, "expected a name but found the end of the text"},
    {"kernel k (x: @) contract { }", 1, 14, QN_ERR_PARSE, "expected a dtype"},
    {"kernel k (x: f32[]) contract contract { }", 1, 30, QN_ERR_PARSE, "written twice"},
    {"kernel k (x: f32[,]) { for all i in x { x[i, i] = 1 } }", 1, 37, QN_ERR_PARSE,
     "1 name for the 2 dimensions of the view"},
    {"kernel k (x: f32[]) { for all i, j in 0 .. 9 { } }", 1, 39, QN_ERR_PARSE,
     "2 names for one range"},
    {"kernel k (x: f32[]) { for all i in dim(x, 1) { } }", 1, 23, QN_ERR_RANK,
     "has no dimension 1"},
    {"function f (x: f32) { y[0] = 1; return x }", 1, 23, QN_ERR_PARSE,
     "no parameter \"y\" is declared"},
    {"function f (x: f32) { for all i in 0 .. 9 { } return x }", 1, 23, QN_ERR_BUILD,
     "a function has no dimensions"},
    {"function f (x: f32) { return 1 }", 1, 30, QN_ERR_PARSE, "\"1\" has no type here"},
    {"function f (v: f32[], x: f32) { return x }\nkernel k (v: f32[]) { v[0] = f(1, 2) }", 2, 32,
     QN_ERR_PARSE, "argument 0 of \"f\" is a view"},
    {"function f (x: f32) { return x }\nkernel k (v: f32[]) { v[0] = f(v) }", 2, 32, QN_ERR_PARSE,
     "argument 0 of \"f\" is no view"},
    {"function f (x: f32) { return x }\nkernel k (v: f64[]) { v[0] = f(v[0]) }", 2, 30,
     QN_ERR_PARSE, "argument 0 of \"f\" is f64, expected f32: convert it, as in f32(...)"},
};

static void expect_error(const char *text, int line, int column, qn_status wanted, const char *part,
                         const char *name)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    char place[64];
    snprintf(place, sizeof place, "qn_kernel_parse: line %d, column %d: ", line, column);
    qn_status status = qn_kernel_parse(text, strlen(text), &k, &err);
    bool passed = status == wanted && !k && err.line == line &&
                  strncmp(err.message, place, strlen(place)) == 0 && strstr(err.message, part);
    tap_ok(passed, "%s: %s", name, part);
    if (!passed)
        tap_note("expected %s, found %s: %s", place, qn_status_name((int)status), err.message);
    qn_kernel_release(k);
}

static void test_wrong_texts(void)
{
    for (size_t i = 0; i < sizeof wrong_lines / sizeof *wrong_lines; i++) {
        char text[1000];
        snprintf(text, sizeof text, "%s%s", WRONG, wrong_lines[i].text);
        expect_error(text, 4, wrong_lines[i].column, wrong_lines[i].status, wrong_lines[i].part,
                     wrong_lines[i].text);
    }
    for (size_t i = 0; i < sizeof wrong_kernels / sizeof *wrong_kernels; i++)
        expect_error(wrong_kernels[i].text, wrong_kernels[i].line, wrong_kernels[i].column,
                     wrong_kernels[i].status, wrong_kernels[i].part, "whole text");
}

/* -------------------------------------------------------------------------------------- the page
 */

/* Parts of kernels on the page, by their first words, and what stands around them. */
static const struct {
    const char *begin, *before, *after;
} fragments[] = {
    {"kernel name", "", "s[] = 1 }"},
    {"t = a * x[i]",
     "kernel k (x: f32[], y: f32[], h: u32[], a: f32) { for all i in x { bin = i % 4\n", "} }"},
    {"if x[i] < 0", "kernel k (x: f32[], y: f32[]) { for all i in x { t = x[i]; n: i64 = 0\n",
     "} }"},
    {"s[i] = sum",
     "kernel k (s: f64[], x: f64[], y: f64[], z: f64[], a: f64[,], b: f64[,], c: f64[,], row: "
     "i32[], value: f64[],\n"
     "column: i32[], n: i64) contract { for all i in s { j = i\n",
     "} }"},
    {"function relu", "", ""},
    {"kernel ", "", ""},
};
enum { N_FRAGMENTS = sizeof fragments / sizeof *fragments };

/** Whether a block of the page is read, with what belongs around it. */
static bool reads_block(const char *block, size_t n)
{
    for (int i = 0; i < N_FRAGMENTS; i++) {
        char text[4000];
        if (strncmp(block, fragments[i].begin, strlen(fragments[i].begin)))
            continue;
        snprintf(text, sizeof text, "%s%.*s%s", fragments[i].before, (int)n, block,
                 fragments[i].after);
        char *printed = canonical(text);
        free(printed);
        return printed != NULL;
    }
    tap_note("no fragment for: %.*s", (int)n, block);
    return false;
}

/** All code of docs/kernel-text.md before its grammar. */
static void test_page(void)
{
    static char page[1 << 16];
    FILE *f = fopen(QN_SOURCE_DIR "/docs/kernel-text.md", "rb");
    size_t n = f ? fread(page, 1, sizeof page - 1, f) : 0;
    int n_read = 0;
    if (f)
        fclose(f);
    page[n] = '\0';
    char *end = strstr(page, "## Grammar"), *at = page;
    tap_ok(end != NULL, "docs/kernel-text.md has a grammar");
    if (end)
        *end = '\0';
    while ((at = strstr(at, "\n```\n")) != NULL) {
        char *block = at + 5, *close = strstr(block, "```\n");
        if (!close)
            break;
        bool is_read = reads_block(block, (size_t)(close - block));
        n_read += is_read;
        tap_ok(is_read, "block \"%.20s\" of docs/kernel-text.md is read", block);
        at = close;
    }
    tap_is_int(n_read, 8, "all blocks of docs/kernel-text.md are read");
}

/** Lists of C: QN_AT, QN_SLICES and the constructors of slices. */
static void test_macros(void)
{
    qn_builder *b = qn_builder_new("macros", 0);
    qn_param x = qn_view_param(b, "x", QN_F32, 2, 0), s = qn_view_param(b, "s", QN_F32, 0, 0);
    qn_val i = qn_index(b, 1), j = qn_index(b, 2);
    qn_store(b, s, QN_AT(), qn_load(b, x, QN_AT(i, qn_add(b, i, j))));
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_is_int(qn_finish(b, &k, &err), QN_OK, "a kernel whose indices are QN_AT(...)");
    char text[400];
    qn_kernel_print(k, text, sizeof text);
    tap_contains(text, "load x[%0, %1];\n  store s[], %2;",
                 "... has two indices, and none for rank 0");
    qn_kernel_release(k);
    qn_builder_release(b);
    qn_layout l, part;
    qn_layout_right(3, (const int64_t[]){4, 10, 5}, &l, &err);
    tap_is_int(
        qn_layout_slice(&l, QN_SLICES(qn_at(3), qn_range_step(2, 9, 3), qn_all()), &part, &err),
        QN_OK, "slices are QN_SLICES(...)");
    tap_ok(part.rank == 2 && part.dim[0].extent == 3 && part.dim[0].stride == 15 &&
               part.dim[1].extent == 5 && part.origin == 160,
           "... of one index, a range with a step, and all");
    tap_is_int(
        qn_layout_slice(&l, QN_SLICES(qn_range(1, 3), qn_range(0, 10), qn_at(0)), &part, &err),
        QN_OK, "ranges without a step");
    tap_ok(part.rank == 2 && part.dim[0].extent == 2 && part.origin == 50,
           "... begin at their first index");
}

/* ----------------------------------------------------------------------------------- large texts
 */

/** head, `unit` n times, middle, `close` n times, tail. */
static void expect_large(const char *unit, size_t n, const char *middle, const char *close,
                         qn_status wanted, const char *part)
{
    static const char head[] = "kernel k (x: f32[], y: f32[], c: bool[]) { y[0] = ", tail[] = " }";
    size_t n_unit = strlen(unit), n_close = strlen(close), at = 0;
    char *text = malloc(sizeof head + sizeof tail + n * (n_unit + n_close) + strlen(middle));
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (!text)
        return;
    memcpy(text, head, at = sizeof head - 1);
    for (size_t i = 0; i < n; i++, at += n_unit)
        memcpy(text + at, unit, n_unit);
    memcpy(text + at, middle, strlen(middle));
    at += strlen(middle);
    for (size_t i = 0; i < n; i++, at += n_close)
        memcpy(text + at, close, n_close);
    strcpy(text + at, tail);
    qn_status status = qn_kernel_parse(text, strlen(text), &k, &err);
    bool passed = status == wanted && strstr(err.message, part);
    tap_ok(passed, "%zu times \"%s\": %s", n, unit, *part ? part : "is read");
    if (!passed)
        tap_note("found %s: %s", qn_status_name((int)status), err.message);
    qn_kernel_release(k);
    free(text);
}

static void test_large_texts(void)
{
    expect_large("(", 150, "x[0]", ")", QN_OK, "");
    expect_large("(", 100000, "x[0]", ")", QN_ERR_PARSE, "nested deeper than 200");
    expect_large("-", 100000, "x[0]", "", QN_ERR_PARSE, "nested deeper than 200");
    expect_large("x[0] + ", 9000, "x[0]", "", QN_OK, "");
    expect_large("x[0] + ", 100000, "x[0]", "", QN_ERR_PARSE, "more than 40000 parts");
    expect_large("sqrt(", 150, "x[0]", ")", QN_OK, "");
    expect_large("c[0] ? 1 : ", 60, "x[0]", "", QN_OK, "");
    expect_large("c[0] ? 1 : ", 1000, "x[0]", "", QN_ERR_PARSE, "nested deeper than 200");
    expect_large("c[0] ? ", 100, "x[0]", " : 1", QN_ERR_LIMIT, "nesting deeper than 64");
    expect_large("sum k in x of ", 100000, "x[k]", "", QN_ERR_PARSE, "more than 512 reductions");
    expect_large("min(1, ", 100000, "x[0]", ")", QN_ERR_PARSE, "nested deeper than 200");
    expect_large("x[i64(", 100000, "x[0]", ")]", QN_ERR_PARSE, "nested deeper than 200");
    expect_large("1 + ", 9000, "x[0]", "", QN_OK, "");
    expect_large("1 if c[0] { y[0] = 1 } else if c[0] { y[0] = 2 } if c[1] { y[0] = ", 60, "3",
                 " }", QN_OK, "");
    expect_large("1 if c[0] { y[0] = 1 } else if c[0] { y[0] = ", 100000, "3", " }", QN_ERR_LIMIT,
                 "nesting deeper than 64");
}

int main(void)
{
    test_expressions();
    test_kernels();
    test_wrong_texts();
    test_page();
    test_macros();
    test_large_texts();
    return tap_done();
}
