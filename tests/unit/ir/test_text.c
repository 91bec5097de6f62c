/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_text.c: the text form of kernels. Texts that are printed as they stand, texts in freer form
 * that reach a fixed point, literals, labels, memory that runs out; and every prefix and thousands
 * of one-byte changes of valid texts, which must fail cleanly or reach a fixed point. Wrong texts
 * are in test_text_errors.c.
 */
#include "ir/ir.h"
#include "tests/tap.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------------------- texts */

/** Texts in the printer's own form: finished kernels whose values are folded and numbered. */
static const char *const printed_texts[] = {
    "kernel \"small\" {\n"
    "  view y: i64[0];\n"
    "  %0: i64 = const 0;\n"
    "  store y[], %0;\n"
    "}\n",

    "kernel \"saxpy\" contract {\n"
    "  view x: f32[1];\n"
    "  view y: f32[1];\n"
    "  scalar a: f32;\n"
    "  %0: f32 = param a;\n"
    "  %1: i64 = lower y, 0;\n"
    "  %2: i64 = extent y, 0;\n"
    "  %3: i64 = add %1, %2;\n"
    "  %4: i64 = parallel %1, %3;\n"
    "  %5: f32 = load x[%4];\n"
    "  %6: f32 = load y[%4];\n"
    "  %7: f32 = fma %0, %5, %6;\n"
    "  store y[%4], %7;\n"
    "}\n",

    "kernel \"traits\" {\n"
    "  view a: f64[2] read_only restrict random_access aligned streaming;\n"
    "  view b: f64[0] atomic;\n"
    "  scalar unused: bool;\n"
    "  %0: i64 = lower a, 1;\n"
    "  %1: f64 = load a[%0, %0];\n"
    "  %2: f64 = atomic sum b[], %1;\n"
    "}\n",

    "kernel \"every atomic\" {\n"
    "  view a: i32[1];\n"
    "  view b: i32[1];\n"
    "  %0: i64 = extent a, 0;\n"
    "  %1: i64 = const 0;\n"
    "  %2: i64 = parallel %1, %0;\n"
    "  %3: i32 = load b[%2];\n"
    "  %4: i32 = atomic sum a[%2], %3;\n"
    "  %5: i32 = atomic min a[%2], %4;\n"
    "  %6: i32 = atomic max a[%2], %5;\n"
    "  %7: i32 = atomic and a[%2], %6;\n"
    "  %8: i32 = atomic or a[%2], %7;\n"
    "  %9: i32 = atomic xor a[%2], %8;\n"
    "  %10: i32 = atomic exchange a[%2], %9;\n"
    "  %11: i32 = atomic compare_exchange a[%2], %10, %3;\n"
    "}\n",

    "kernel \"regions\" indexed {\n"
    "  view x: f32[2];\n"
    "  view y: f32[1];\n"
    "  scalar n: i64;\n"
    "  %0: i64 = param n;\n"
    "  %1: i64 = const 0;\n"
    "  %2: i64 = sequential %1, %0;\n"
    "  %3: i64 = parallel %1, %0;\n"
    "  %4: i64 = reduction %1, %0;\n"
    "  %5: f32 = reduce sum striped over %4 {\n"
    "    %6: f32 = load x[%3, %4];\n"
    "    yield %6;\n"
    "  };\n"
    "  %7: f32 = load y[%3];\n"
    "  %8: bool = lt %5, %7;\n"
    "  %9: f32, %10: i64 = if %8 {\n"
    "    %11: f32 = mul %5, %7;\n"
    "    yield %11, %3;\n"
    "  } else {\n"
    "    %12: i64 = add %2, %3;\n"
    "    yield %7, %12;\n"
    "  };\n"
    "  %13: f32, %14: i64 = for %15: i64 = %1 to %10 step 2 (%16: f32 = %9, %17: i64 = %1) {\n"
    "    %18: f32 = sqrt %16;\n"
    "    %19: i64 = xor %17, %15;\n"
    "    if %8 {\n"
    "      store y[%15], %18;\n"
    "    };\n"
    "    yield %18, %19;\n"
    "  };\n"
    "  %20: f32 = while max %0 (%21: f32 = %13) {\n"
    "    %22: bool = gt %21, %7;\n"
    "    yield %22;\n"
    "  } do {\n"
    "    %23: f32 = sub %21, %7;\n"
    "    yield %23;\n"
    "  };\n"
    "  store y[%14], %20;\n"
    "  for %24: i64 = %1 to %0 step 1 () {\n"
    "    store y[%24], %7;\n"
    "  };\n"
    "  if %8 {\n"
    "    store y[%3], %5;\n"
    "  } else {\n"
    "    store y[%2], %5;\n"
    "  };\n"
    "}\n",

    "kernel \"reductions\" ordered {\n"
    "  view x: u8[2];\n"
    "  view y: u8[1];\n"
    "  %0: i64 = extent x, 0;\n"
    "  %1: i64 = const 0;\n"
    "  %2: i64 = reduction %1, %0;\n"
    "  %3: i64 = extent x, 1;\n"
    "  %4: i64 = reduction %1, %3;\n"
    "  %5: u8 = reduce xor ordered over %2, %4 {\n"
    "    %6: u8 = load x[%2, %4];\n"
    "    yield %6;\n"
    "  };\n"
    "  store y[%1], %5;\n"
    "}\n",

    "kernel \"odd \\\"labels\\\" \\\\ \\n\\t\\x01\\x7f \xc3\xa9\" striped {\n"
    "  view \"a b\": i8[1];\n"
    "  view \"\": i8[1];\n"
    "  view \"2x\": i8[1];\n"
    "  view \"\xc3\xa9\\n\": i8[1];\n"
    "  view load: i8[1];\n"
    "  view view: i8[1];\n"
    "  scalar scalar: i8;\n"
    "  scalar \"%1\": i8;\n"
    "  %0: i8 = param scalar;\n"
    "  %1: i8 = param \"%1\";\n"
    "  %2: i64 = extent \"a b\", 0;\n"
    "  %3: i64 = lower \"\", 0;\n"
    "  %4: i64 = parallel %3, %2;\n"
    "  %5: i8 = load load[%4];\n"
    "  store \"2x\"[%4], %5;\n"
    "  store \"\xc3\xa9\\n\"[%4], %0;\n"
    "  store view[%4], %1;\n"
    "}\n",
};

/** Texts in freer form. */
static const char *const free_texts[] = {
    "kernel\"k\"{view a:f32[1]#comment\n;%n:i64=extent a,0;%z:i64=const 0;%i:i64=parallel%z,%n;"
    "%x:f32=load a[%i];%y:f32=neg%x;store a[%i],%y;}",

    "# names, dead values, equal values, constants to fold\r\n"
    "kernel \"k\" contract {\r\n"
    "  view a: f64[1];\r\n"
    "  scalar s: f64;\r\n"
    "  %zero: i64 = const 0x0;\r\n"
    "  %i: i64 = parallel %zero, %zero;\r\n"
    "  %two: i64 = const 2;  %three: i64 = const 3;\r\n"
    "  %six: i64 = mul %two, %three;\r\n"
    "  %x: f64 = load a[%six];\r\n"
    "  %x2: f64 = load a[%six];\r\n"
    "  %s: f64 = param s;\r\n"
    "  %t: f64 = param s;\r\n"
    "  %p: f64 = mul %x, %s;\r\n"
    "  %q: f64 = mul %x2, %t;\r\n"
    "  %sum: f64 = add %p, %q;\r\n"
    "  %dead: f64 = sqrt %sum;\r\n"
    "  %difference: f64 = sub %sum, %p;\r\n"
    "  store a[%i], %difference;\r\n"
    "}\r\n",

    "kernel \"same names in blocks\" {\n"
    "  view a: i32[1];\n"
    "  %n: i64 = extent a, 0; %z: i64 = const 0; %i: i64 = parallel %z, %n;\n"
    "  %v: i32 = load a[%i]; %o: i32 = const -1; %c: bool = gt %v, %o;\n"
    "  %r: i32 = if %c { %w: i32 = add %v, %o; yield %w; } else { %w: i32 = sub %v, %o; yield %w; "
    "};\n"
    "  %s: i32 = if %c { yield %v; } else { yield %r; };\n"
    "  if %c { yield; } else { };\n"
    "  if %c { } else { store a[%z], %s; };\n"
    "  atomic max a[%i], %s;\n"
    "  store a[%i], %s;\n"
    "}\n",

    "kernel people (x: f32[], y: f32[,] read_only, h: u32[] atomic, n: i64) contract {\n"
    "  array w: f32 = 0.25, 0.5, 0.25;\n"
    "  last = extent(x, 0) - 1\n"
    "  for sequential t in 0 .. n { for all i in inner(x, 1) {\n"
    "    a: f32, k: i64 = 0, 0\n"
    "    s, c = sincos(x[i])\n"
    "    while a < 4 && k != n max 9 { a, k = a * a + w[k], k + 1 }\n"
    "    for j in 0 .. extent(y, 1) step 2 { a += y[i, j] * f32(j) }\n"
    "    if i % 2 == 0 { a = -a; c *= 2 } else if a > 1e3 { c = i < last ? x[i + 1] : 0 }\n"
    "    h[i & 7] += 1; atomic h[0] -= 2\n"
    "    x[i] = s + c * a + (sum m in 0 .. n of y[i, m]) + max k2 in k .. i of x[k2]\n"
    "  } }\n"
    "}\n",

    "function f (v: f32[], i: i64) { return v[i], !(v[i] <= 1) ? min(v[i], 2) : sum j in v of v[j] "
    "}\n"
    "kernel \"functions and both forms\" (x: f32[], y: f32[0]) {\n"
    "  %n: i64 = extent x, 0;\n"
    "  p, q = f(x, %n - 1)\n"
    "  assert p > 0 || q >= 1 \"bad\" p * q;\n"
    "  store y[], ~(i32(p) << 2 | 5) > 3 ? p : bitcast(f32, i32(7));\n"
    "}\n",

    "kernel \"casts\" {\n"
    "  view a: u16[1]; view b: f32[1];\n"
    "  %z: i64 = const 0;\n"
    "  %u: u16 = load a[%z];\n"
    "  %s: i8 = cast %u; %b: bool = cast %s; %f: f32 = cast %s; %h: i16 = bitcast %u; %g: f64 = "
    "cast %f;\n"
    "  %m: u32 = bitcast %f; %l: i64 = cast %g; %w: u64 = bitcast %g;\n"
    "  if %b { store b[%l], %f; };\n"
    "  %k: i64 = cast %m; %j: i64 = cast %h; %i: i64 = cast %w;\n"
    "  store b[%k], %f; store b[%j], %f; store b[%i], %f;\n"
    "}\n",
};

/* -------------------------------------------------------------------------------------- helpers */

/** The text of a kernel, to be freed; NULL for NULL. */
static char *print_kernel(const qn_kernel *k)
{
    if (!k)
        return NULL;
    size_t n = qn_kernel_print(k, NULL, 0);
    char *text = malloc(n + 1);
    if (text && qn_kernel_print(k, text, n + 1) != n)
        text[0] = '\0';
    return text;
}

/**
 * Parses a text. If it is valid, whether it is a fixed point: verified, and printed, parsed and
 * printed again the same, under both kinds of names. If it is not, whether the error is complete.
 * *is_valid tells which.
 */
static bool is_sound(const char *text, size_t n, bool *is_valid)
{
    qn_kernel *k = NULL, *again = NULL;
    qn_error err = {0};
    qn_status status = qn_kernel_parse(text, n, &k, &err);
    *is_valid = status == QN_OK;
    if (status != QN_OK)
        return !k && err.status == (int)status && err.line >= 1 &&
               strncmp(err.message, "qn_kernel_parse: line ", 22) == 0;
    char *first = print_kernel(k);
    bool is_read = first && qn_kernel_parse(first, strlen(first), &again, &err) == QN_OK;
    char *second = print_kernel(again);
    bool is_same = is_read && second && strcmp(first, second) == 0 &&
                   qn__verify(k, NULL) == QN_OK && k->hash == again->hash &&
                   strcmp(k->canonical, again->canonical) == 0;
    if (!is_same)
        tap_note("not a fixed point: %s\nprinted:\n%s\nthen:\n%s", err.message, first ? first : "-",
                 second ? second : "-");
    free(first);
    free(second);
    qn_kernel_release(k);
    qn_kernel_release(again);
    return is_same;
}

/** A small generator of numbers, the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---------------------------------------------------------------------------------- round trips */

static void test_round_trips(void)
{
    for (size_t i = 0; i < sizeof printed_texts / sizeof printed_texts[0]; i++) {
        const char *text = printed_texts[i];
        qn_kernel *k = NULL;
        qn_error err = {0};
        qn_status status = qn_kernel_parse(text, strlen(text), &k, &err);
        if (status != QN_OK)
            tap_note("%s", err.message);
        char *printed = print_kernel(k);
        bool is_same = printed && strcmp(printed, text) == 0;
        tap_ok(is_same, "printed text %zu is printed as it stands", i);
        if (!is_same)
            tap_note("printed:\n%s", printed ? printed : "-");
        free(printed);
        qn_kernel_release(k);
        bool is_valid = false;
        tap_ok(is_sound(text, strlen(text), &is_valid) && is_valid, "... and is a fixed point");
    }
    for (size_t i = 0; i < sizeof free_texts / sizeof free_texts[0]; i++) {
        bool is_valid = false;
        bool passed = is_sound(free_texts[i], strlen(free_texts[i]), &is_valid) && is_valid;
        tap_ok(passed, "free text %zu reaches a fixed point", i);
        if (!is_valid) {
            qn_error err = {0};
            qn_kernel *k = NULL;
            qn_kernel_parse(free_texts[i], strlen(free_texts[i]), &k, &err);
            tap_note("%s", err.message);
        }
    }
}

/** A constant stored to a view: dtype, text in, text out (NULL: the same), canonical bits. */
static const struct {
    int dtype;
    const char *text, *printed;
    uint64_t bits;
} literals[] = {
    {QN_BOOL, "true", NULL, 1},
    {QN_BOOL, "false", NULL, 0},
    {QN_I8, "-128", NULL, UINT64_C(0xffffffffffffff80)},
    {QN_I8, "127", NULL, 127},
    {QN_I8, "0x7f", "127", 127},
    {QN_I8, "- 5", "-5", UINT64_C(0xfffffffffffffffb)},
    {QN_I8, "-0", "0", 0},
    {QN_I16, "-32768", NULL, UINT64_C(0xffffffffffff8000)},
    {QN_I32, "-2147483648", NULL, UINT64_C(0xffffffff80000000)},
    {QN_I64, "-9223372036854775808", NULL, UINT64_C(1) << 63},
    {QN_I64, "9223372036854775807", NULL, INT64_MAX},
    {QN_I64, "0x7FFFFFFFFFFFFFFF", "9223372036854775807", INT64_MAX},
    {QN_U8, "255", NULL, 255},
    {QN_U16, "65535", NULL, 65535},
    {QN_U32, "4294967295", NULL, UINT32_MAX},
    {QN_U64, "18446744073709551615", NULL, UINT64_MAX},
    {QN_U64, "0xffffffffffffffff", "18446744073709551615", UINT64_MAX},
    {QN_U64, "000012", "12", 12},
    {QN_F32, "0x0p+0", NULL, 0},
    {QN_F32, "-0x0p+0", NULL, UINT64_C(0x80000000)},
    {QN_F32, "-0", "-0x0p+0", UINT64_C(0x80000000)},
    {QN_F32, "-0.000", "-0x0p+0", UINT64_C(0x80000000)},
    {QN_F32, "0x1p+0", NULL, UINT64_C(0x3f800000)},
    {QN_F32, "1", "0x1p+0", UINT64_C(0x3f800000)},
    {QN_F32, "-3.0", "-0x1.8p+1", UINT64_C(0xc0400000)},
    {QN_F32, "0.1", "0x1.99999ap-4", UINT64_C(0x3dcccccd)},
    {QN_F32, "0x1.fffffep+127", NULL, UINT64_C(0x7f7fffff)},
    {QN_F32, "3.4028235e38", "0x1.fffffep+127", UINT64_C(0x7f7fffff)},
    {QN_F32, "0x1p-126", NULL, UINT64_C(0x00800000)},
    {QN_F32, "0x1p-149", NULL, 1},
    {QN_F32, "0x1.8p-148", NULL, 3},
    {QN_F32, "0x1.fffffcp-127", NULL, UINT64_C(0x007fffff)},
    {QN_F32, "0x0.8p-125", "0x1p-126", UINT64_C(0x00800000)},
    {QN_F32, "0x1p-150", "0x0p+0", 0},
    {QN_F32, "0x1.000001p-150", "0x1p-149", 1},
    {QN_F32, "0x1.000001p+0", "0x1p+0", UINT64_C(0x3f800000)},
    {QN_F32, "0x1.00000100000000000000000001p+0", "0x1.000002p+0", UINT64_C(0x3f800001)},
    {QN_F32, "0X1.8P1", "0x1.8p+1", UINT64_C(0x40400000)},
    {QN_F32, "1e-999", "0x0p+0", 0},
    {QN_F32, "inf", NULL, UINT64_C(0x7f800000)},
    {QN_F32, "-inf", NULL, UINT64_C(0xff800000)},
    {QN_F32, "nan(0x7fc00000)", NULL, UINT64_C(0x7fc00000)},
    {QN_F32, "nan(0xffc00000)", NULL, UINT64_C(0xffc00000)},
    {QN_F32, "nan(0x7f800001)", NULL, UINT64_C(0x7f800001)},
    {QN_F32, "nan(0xffffffff)", NULL, UINT64_C(0xffffffff)},
    {QN_F64, "0x1.5555555555555p-2", NULL, UINT64_C(0x3fd5555555555555)},
    {QN_F64, "0.1", "0x1.999999999999ap-4", UINT64_C(0x3fb999999999999a)},
    {QN_F64, "1e23", "0x1.52d02c7e14af6p+76", UINT64_C(0x44b52d02c7e14af6)},
    {QN_F64, "1.E+2", "0x1.9p+6", UINT64_C(0x4059000000000000)},
    {QN_F64, "9007199254740993", "0x1p+53", UINT64_C(0x4340000000000000)},
    {QN_F64, "9007199254740993.00000000000000000000000000001", "0x1.0000000000001p+53",
     UINT64_C(0x4340000000000001)},
    {QN_F64, "0x1.fffffffffffffp+1023", NULL, UINT64_C(0x7fefffffffffffff)},
    {QN_F64, "1.7976931348623157e308", "0x1.fffffffffffffp+1023", UINT64_C(0x7fefffffffffffff)},
    {QN_F64, "0x1p-1022", NULL, UINT64_C(0x0010000000000000)},
    {QN_F64, "2.2250738585072011e-308", "0x1.ffffffffffffep-1023", UINT64_C(0x000fffffffffffff)},
    {QN_F64, "0x1p-1074", NULL, 1},
    {QN_F64, "5e-324", "0x1p-1074", 1},
    {QN_F64, "2.4703282292062327e-324", "0x0p+0", 0},
    {QN_F64, "2.4703282292062328e-324", "0x1p-1074", 1},
    {QN_F64, "-0x1.8p-1073", NULL, UINT64_C(0x8000000000000003)},
    {QN_F64, "0e999999999999", "0x0p+0", 0},
    {QN_F64, "inf", NULL, UINT64_C(0x7ff0000000000000)},
    {QN_F64, "-inf", NULL, UINT64_C(0xfff0000000000000)},
    {QN_F64, "nan(0x7ff8000000000000)", NULL, UINT64_C(0x7ff8000000000000)},
    {QN_F64, "nan(0xFFF0000000000001)", "nan(0xfff0000000000001)", UINT64_C(0xfff0000000000001)},
};

/** The bits of the constant that the only store of a kernel stores; ~0 - 1 if there is none. */
static uint64_t stored_constant(const qn_kernel *k)
{
    for (uint32_t i = 1; k && i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_STORE)
            return k->inst[qn__args(k, i)[0]].imm;
    return UINT64_MAX - 1;
}

static void test_literals(void)
{
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        const char *dtype = qn_dtype_name(literals[i].dtype);
        const char *printed = literals[i].printed ? literals[i].printed : literals[i].text;
        const char *form =
            "kernel \"k\" {\n  view a: %s[0];\n  %%0: %s = const %s;\n  store a[], %%0;\n}\n";
        char text[512], expected[512];
        snprintf(text, sizeof text, form, dtype, dtype, literals[i].text);
        snprintf(expected, sizeof expected, form, dtype, dtype, printed);
        qn_kernel *k = NULL;
        qn_error err = {0};
        if (qn_kernel_parse(text, strlen(text), &k, &err) != QN_OK)
            tap_note("%s", err.message);
        char *found = print_kernel(k);
        bool passed =
            found && strcmp(found, expected) == 0 && stored_constant(k) == literals[i].bits;
        tap_ok(passed, "%s literal %s", dtype, literals[i].text);
        if (!passed)
            tap_note("bits 0x%" PRIx64 ", text %s", stored_constant(k), found ? found : "-");
        free(found);
        qn_kernel_release(k);
    }
}

/** The example of the page is the printer's form. */
static void test_page(void)
{
    FILE *f = fopen(QN_SOURCE_DIR "/docs/kernel-text.md", "rb");
    static char page[1 << 16];
    size_t n = f ? fread(page, 1, sizeof page - 1, f) : 0;
    if (f)
        fclose(f);
    page[n] = '\0';
    tap_ok(strstr(page, printed_texts[1]) != NULL, "docs/kernel-text.md shows this form");
}

static void test_print_buffer(void)
{
    const char *text = printed_texts[1];
    qn_kernel *k = NULL;
    qn_kernel_parse(text, strlen(text), &k, NULL);
    char small[8] = "xxxxxxx";
    tap_is_int((int64_t)qn_kernel_print(k, small, sizeof small), (int64_t)strlen(text),
               "a small buffer gets the length needed");
    tap_is_str(small, "kernel ", "... and a cut text with its zero");
    tap_is_int((int64_t)qn_kernel_print(NULL, small, sizeof small), 0, "no kernel prints nothing");
    tap_is_str(small, "", "... as an empty string");
    qn_text anonymous = {0};
    qn__print(k, true, &anonymous);
    tap_contains(
        anonymous.data,
        "kernel \"k\" contract {\n  view p0: f32[1];\n  view p1: f32[1];\n  scalar p2: f32;\n",
        "the anonymous text has numbered parameters");
    tap_contains(anonymous.data, "= param p2;", "... also where they are used");
    qn__text_release(&anonymous);
    qn_kernel_release(k);
}

/** A kernel from the builder, whose calls come in another order than its text. */
static void test_built_kernel(void)
{
    static const char expected[] = "kernel \"built\" contract {\n"
                                   "  view x: f32[1];\n"
                                   "  scalar a: f32;\n"
                                   "  scalar unused: bool;\n"
                                   "  view y: f32[1] atomic;\n"
                                   "  %0: f32 = param a;\n"
                                   "  %1: i64 = extent x, 0;\n"
                                   "  %2: f32 = const 0x1p+1;\n"
                                   "  %3: i64 = const 0;\n"
                                   "  %4: i64 = parallel %3, %1;\n"
                                   "  %5: i64 = lower y, 0;\n"
                                   "  %6: i64 = extent y, 0;\n"
                                   "  %7: i64 = add %5, %6;\n"
                                   "  %8: i64 = reduction %5, %7;\n"
                                   "  %9: f32 = reduce sum indexed over %8 {\n"
                                   "    %10: f32 = load y[%8];\n"
                                   "    yield %10;\n"
                                   "  };\n"
                                   "  %11: f32 = mul %0, %2;\n"
                                   "  %12: f32 = load x[%4];\n"
                                   "  %13: f32 = mul %11, %12;\n"
                                   "  %14: f32 = while max %1 (%15: f32 = %13) {\n"
                                   "    %16: bool = lt %15, %9;\n"
                                   "    yield %16;\n"
                                   "  } do {\n"
                                   "    %17: f32 = fma %15, %15, %9;\n"
                                   "    yield %17;\n"
                                   "  };\n"
                                   "  %18: f32 = atomic sum y[%4], %14;\n"
                                   "}\n";
    qn_builder *b = qn_builder_new("built", QN_CONTRACT);
    qn_param x = qn_view_param(b, "x", QN_F32, 1, 0);
    qn_val n = qn_extent(b, x, 0), two = qn_const_float(b, QN_F32, 2.0);
    qn_val a = qn_scalar_param(b, "a", QN_F32);
    qn_scalar_param(b, "unused", QN_BOOL);
    qn_param y = qn_view_param(b, "y", QN_F32, 1, QN_ATOMIC);
    qn_val i = qn_parallel(b, qn_index(b, 0), n), k = qn_reduction_over(b, y, 0), sum = {0};
    qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, 1, &k);
    sum = qn_end_reduce(b, qn_load(b, y, 1, &k));
    qn_val doubled = qn_mul(b, a, two), element = qn_load(b, x, 1, &i);
    qn_val product = qn_mul(b, doubled, element), carried, next;
    qn_while(b, n, 1, &product, &carried);
    qn_val done = qn_lt(b, carried, sum);
    qn_do(b, done);
    next = qn_add(b, qn_mul(b, carried, carried), sum);
    qn_end_while(b, 1, &next, &carried);
    qn_store(b, y, 1, &i, qn_add(b, qn_load(b, y, 1, &i), carried));
    qn_kernel *kernel = NULL;
    qn_error err = {0};
    bool is_valid = false;
    if (qn_finish(b, &kernel, &err) != QN_OK)
        tap_note("%s", err.message);
    qn_builder_release(b);
    char *text = print_kernel(kernel);
    tap_is_str(text, expected, "a built kernel");
    tap_ok(text && is_sound(text, strlen(text), &is_valid) && is_valid, "... is a fixed point");
    free(text);
    qn_kernel_release(kernel);
}

/* ----------------------------------------------------------------------- memory that runs out */

static void test_memory(void)
{
#ifdef QN_FAULTS
    int n = 0;
    enum {
        N_PRINTED = sizeof printed_texts / sizeof *printed_texts,
        N_FREE = sizeof free_texts / sizeof *free_texts
    };
    for (size_t i = 0; i < N_PRINTED + N_FREE; i++) {
        const char *tried = i < N_PRINTED ? printed_texts[i] : free_texts[i - N_PRINTED];
        qn_status status = QN_ERR_MEMORY;
        for (int at = 1; status == QN_ERR_MEMORY && at < 1000; at++, n++) {
            qn_kernel *k = NULL;
            qn_error err = {0};
            qn__fail_allocation(at, false);
            status = qn_kernel_parse(tried, strlen(tried), &k, &err);
            qn__fail_allocation(0, false);
            if (status != QN_OK && (status != QN_ERR_MEMORY || k || !strstr(err.message, "memory")))
                tap_ok(false, "allocation %d: %s", at, err.message);
            qn_kernel_release(k);
        }
        tap_is_int(status, QN_OK, "every failed allocation is reported");
    }
    qn_kernel *k = NULL;
    char text[64] = "untouched";
    qn_kernel_parse(printed_texts[1], strlen(printed_texts[1]), &k, NULL);
    qn__fail_allocation(1, true);
    size_t bytes = qn_kernel_print(k, text, sizeof text);
    qn__fail_allocation(0, false);
    tap_is_int((int64_t)bytes, 0, "printing without memory prints nothing");
    tap_is_str(text, "", "... as an empty string");
    qn_kernel_release(k);
    tap_note("%d allocations failed", n);
#else
    tap_skip("needs a build with QN_FAULTS");
#endif
}

/* -------------------------------------------------------------------------------- changed texts */

static void test_prefixes(const char *text)
{
    size_t n = strlen(text), n_bad = 0, n_valid = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_valid = false;
        /* A copy of its own, so that a sanitizer sees reads behind the end. */
        char *prefix = malloc(i + 1);
        if (!prefix)
            continue;
        memcpy(prefix, text, i);
        n_bad += !is_sound(prefix, i, &is_valid);
        n_valid += is_valid;
        free(prefix);
    }
    tap_is_int((int64_t)n_bad, 0, "every prefix fails cleanly");
    tap_ok(n_valid <= 2, "... and only the final line end may be missing");
}

static void test_mutations(const char *text, int n_mutations, uint64_t seed)
{
    static const char bytes[] = "%0123456789,;:=(){}[]\"\\-#. \nxafiy+*/<>!&|^~?\0\x7f\xff";
    size_t n = strlen(text);
    char *changed = malloc(n + 1);
    if (!changed)
        return;
    int n_bad = 0, n_valid = 0;
    for (int i = 0; i < n_mutations; i++) {
        size_t at = (size_t)(next_random(&seed) % n), size = n;
        char byte = bytes[next_random(&seed) % (sizeof bytes - 1)];
        uint64_t kind = next_random(&seed) % 3;
        memcpy(changed, text, at);
        if (kind == 0) { /* replace */
            memcpy(changed + at, text + at, n - at);
            changed[at] = byte;
        } else if (kind == 1) { /* insert */
            changed[at] = byte;
            memcpy(changed + at + 1, text + at, n - at);
            size = n + 1;
        } else { /* remove */
            memcpy(changed + at, text + at + 1, n - at - 1);
            size = n - 1;
        }
        bool is_valid = false;
        if (!is_sound(changed, size, &is_valid)) {
            n_bad++;
            tap_note("mutation %d: %.*s", i, (int)size, changed);
        }
        n_valid += is_valid;
    }
    free(changed);
    tap_is_int(n_bad, 0, "every one-byte change fails cleanly or reaches a fixed point");
    tap_note("%d of %d changes are valid texts", n_valid, n_mutations);
}

int main(void)
{
    test_round_trips();
    test_literals();
    test_page();
    test_print_buffer();
    test_built_kernel();
    test_memory();
    for (size_t i = 0; i < sizeof printed_texts / sizeof printed_texts[0]; i++) {
        test_prefixes(printed_texts[i]);
        test_mutations(printed_texts[i], 1000, 1 + i);
    }
    for (size_t i = 0; i < sizeof free_texts / sizeof free_texts[0]; i++) {
        test_prefixes(free_texts[i]);
        test_mutations(free_texts[i], 1000, 101 + i);
    }
    return tap_done();
}
