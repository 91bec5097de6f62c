/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_text_errors.c: texts that are no kernels: a table of wrong ones with the place and the words
 * of each message, wrong arguments, large texts, and limits.
 */
#include "ir/ir.h"
#include "tests/tap.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------------- wrong texts */

#define P(status) QN_ERR_##status
/* Line 1 is the head; lines 2 and 3 declare a view and a scalar; the statements start in line 4. */
#define HEAD "kernel \"k\" {\n"
#define BODY HEAD "view a: f32[1];\nscalar s: i64;\n"
/* Lines 4 to 6 define an index, an f32, and a bool. */
#define VALUES BODY "%i: i64 = param s;\n%x: f32 = load a[%i];\n%c: bool = gt %x, %x;\n"

static const struct {
    const char *text;
    int line, column;
    qn_status status;
    const char *part;
} wrong_texts[] = {
    /* the frame */
    {"", 1, 1, P(PARSE), "expected 'kernel' but found the end of the text"},
    {"# only a comment", 1, 17, P(PARSE), "expected 'kernel' but found the end"},
    {"krenel \"k\" {}", 1, 1, P(PARSE), "expected 'kernel' but found \"krenel\""},
    {"kernel 7 {}", 1, 8, P(PARSE), "expected the name of the kernel but found \"7\""},
    {"kernel", 1, 7, P(PARSE), "name of the kernel"},
    {"kernel \"k\"", 1, 11, P(PARSE), "expected '{' but found the end"},
    {"kernel \"k\" fast {}", 1, 12, P(PARSE), "expected '{' but found \"fast\""},
    {"kernel \"k\" contract contract {}", 1, 21, P(PARSE), "\"contract\" is written twice"},
    {"kernel \"k\" {", 1, 13, P(PARSE), "expected a statement or '}' but found the end"},
    {"kernel \"k\" {} {", 1, 15, P(PARSE), "expected the end of the text but found \"{\""},
    {"kernel \"k\" {}\nkernel \"l\" {}", 2, 1, P(PARSE), "expected the end of the text"},
    /* characters and strings */
    {"kernel \"k", 1, 8, P(PARSE), "string is not closed on its line"},
    {"kernel \"k\n\" {}", 1, 8, P(PARSE), "string is not closed on its line"},
    {"kernel \"a\\q\" {}", 1, 10, P(PARSE), "bad escape in a string"},
    {"kernel \"k\" { %0: i64 = pow 1 @", 1, 28, P(PARSE), "expected a value but found \"1\""},
    {"kernel \"a\\x0\" {}", 1, 10, P(PARSE), "bad escape in a string"},
    {"kernel \"a\\x00\" {}", 1, 10, P(PARSE), "bad escape in a string"},
    {"kernel \"a\\", 1, 10, P(PARSE), "bad escape in a string"},
    {"kernel \"a\tb\" {}", 1, 10, P(PARSE), "control character in a string"},
    {HEAD "@", 2, 1, P(PARSE), "expected a statement or '}' but found the character '@'"},
    {HEAD "\xff", 2, 1, P(PARSE), "found the byte 0xff"},
    {HEAD "%: i64 = const 1;}", 2, 1, P(PARSE), "expected a statement or '}' but found \"%\""},
    {HEAD "% x: i64 = const 1;}", 2, 1, P(PARSE), "expected a statement or '}' but found \"%\""},
    /* parameters */
    {HEAD "view a f32[1];}", 2, 8, P(PARSE), "expected ':' but found \"f32\""},
    {HEAD "view : f32[1];}", 2, 6, P(PARSE), "expected a name but found \":\""},
    {HEAD "view a: f33[1];}", 2, 9, P(PARSE), "expected a dtype but found \"f33\""},
    {HEAD "view a: void[1];}", 2, 9, P(PARSE), "expected a dtype but found \"void\""},
    {HEAD "view a: f32;}", 2, 12, P(PARSE), "expected '[' but found \";\""},
    {HEAD "view a: f32[x];}", 2, 13, P(PARSE), "expected ']' but found \"x\""},
    {HEAD "view a: f32[1.5];}", 2, 13, P(PARSE), "\"1.5\" is not an integer"},
    {HEAD "view a: f32[17];}", 2, 1, P(RANK), "17"},
    {HEAD "view a: f32[-1];}", 2, 1, P(RANK), "-1"},
    {HEAD "view a: f32[99999999999];}", 2, 13, P(PARSE), "\"99999999999\" does not fit (i32)"},
    {HEAD "view a: f32[1] readonly;}", 2, 16, P(PARSE), "expected ';' but found \"readonly\""},
    {HEAD "view a: f32[1] atomic atomic;}", 2, 23, P(PARSE), "\"atomic\" is written twice"},
    {HEAD "scalar a: f32 restrict;}", 2, 15, P(PARSE), "expected ';' but found \"restrict\""},
    {HEAD "view a: f32[1];\nscalar a: f32;}", 3, 8, P(PARSE),
     "parameter \"a\" is already declared"},
    {HEAD "view a: f32[1];\nview \"a\": f32[1];}", 3, 6, P(PARSE),
     "parameter \"a\" is already declared"},
    {HEAD "%0: i64 = const 1;\nview a: f32[1];}", 3, 1, P(PARSE),
     "expected a statement or '}' but found \"view\""},
    /* statements and their parts */
    {BODY "%0 i64 = const 1;}", 4, 4, P(PARSE), "expected ':' but found \"i64\""},
    {BODY "%0: i64 const 1;}", 4, 9, P(PARSE), "expected '=' but found \"const\""},
    {BODY "%0: i64 = const 1}", 4, 18, P(PARSE), "expected ';' but found \"}\""},
    {BODY "%0: i64 = ;}", 4, 11, P(PARSE), "expected an op but found \";\""},
    {BODY "%0: i64 = frobnicate %1;}", 4, 11, P(PARSE), "expected an op but found \"frobnicate\""},
    {BODY "%0: i64 = a_word_that_is_longer_than_any_keyword_of_the_text %1;}", 4, 11, P(PARSE),
     "expected an op"},
    {BODY "%0: i64 = mull %1, %1;}", 4, 11, P(PARSE), "unknown op \"mull\": did you mean \"mul\"?"},
    {VALUES "%y: f32 = frexpp %x;}", 7, 11, P(PARSE),
     "unknown op \"frexpp\": did you mean \"frexp\"?"},
    /* mathematical functions */
    {VALUES "%f: f32 = frexp %x;}", 7, 1, P(PARSE), "'frexp' has 2 results, not 1"},
    {VALUES "%f: f32, %e: i32, %g: f32 = frexp %x;}", 7, 1, P(PARSE),
     "'frexp' has 2 results, not 3"},
    {VALUES "frexp %x;}", 7, 1, P(PARSE), "'frexp' has 2 results, not 0"},
    {VALUES "%f: f32, %e: f32 = frexp %x;}", 7, 10, P(PARSE), "%e is written as f32 but is i32"},
    {VALUES "%y: f32, %z: f32 = exp %x;}", 7, 1, P(PARSE), "'exp' has 1 result, not 2"},
    {VALUES "%y: f32 = exp %x, %x;}", 7, 1, P(ARGUMENT), "exp takes 1 arguments, not 2"},
    {VALUES "%y: f32 = ldexp %x;}", 7, 1, P(ARGUMENT), "ldexp takes 2 arguments, not 1"},
    {VALUES "%y: f32 = ldexp %x, 1, 2;}", 7, 24, P(PARSE), "expected a value"},
    {VALUES "%y: f32 = ldexp %x, 1.5;}", 7, 21, P(PARSE), "\"1.5\" is not an integer"},
    {VALUES "%y: f32 = ldexp %x, %i;}", 7, 1, P(TYPE),
     "ldexp of f32: argument 1 is i64, expected i32"},
    {VALUES "%y: bool = isnan 2;}", 7, 18, P(PARSE), "expected a value"},
    {VALUES "%y: i64 = exp %i;}", 7, 1, P(NOT_FOUND), "exp_i64"},
    {BODY "%0: i64 = exetnt a, 0;}", 4, 11, P(PARSE),
     "unknown op \"exetnt\": did you mean \"extent\"?"},
    {BODY "stor a[%0], %1;}", 4, 1, P(PARSE),
     "unknown statement \"stor\": did you mean \"store\"?"},
    {HEAD "vew a: f32[1];}", 2, 1, P(PARSE), "unknown statement \"vew\": did you mean \"view\"?"},
    {BODY "%0: i64 = xyzzy a, 0;}", 4, 11, P(PARSE), "expected an op but found \"xyzzy\""},
    {BODY "load a[];}", 4, 1, P(PARSE), "'load' defines one value, not 0"},
    {BODY "add %0, %0;}", 4, 1, P(PARSE), "'add' defines one value, not 0"},
    {BODY "%0: i64, %1: i64 = param s;}", 4, 1, P(PARSE), "'param' defines one value, not 2"},
    {VALUES "%0: f32 = store a[%i], %x;}", 7, 1, P(PARSE), "'store' defines no value, not 1"},
    {BODY "%0: i64 = param t;}", 4, 17, P(PARSE), "no parameter \"t\" is declared"},
    {BODY "%0: i64 = param a;}", 4, 17, P(PARSE), "parameter \"a\" is a view, not a scalar"},
    {BODY "%0: i64 = extent s, 0;}", 4, 18, P(PARSE), "parameter \"s\" is a scalar, not a view"},
    {BODY "%0: i32 = param s;}", 4, 1, P(PARSE), "%0 is written as i32 but is i64"},
    {BODY "%0: i64 = extent a 0;}", 4, 20, P(PARSE), "expected ',' but found \"0\""},
    {BODY "%0: i64 = extent a, 1;}", 4, 1, P(RANK), "qn_extent"},
    {BODY "%0: i64 = lower a, -1;}", 4, 1, P(RANK), "qn_lower"},
    {BODY "%0: i64 = add %1, %1;}", 4, 15, P(PARSE), "no value %1 is defined here"},
    {BODY "%0: bool = lt 1, %1;}", 4, 15, P(PARSE), "expected a value but found \"1\""},
    {BODY "%0: i64 = select true, 1, 2;}", 4, 18, P(PARSE), "expected a value but found \"true\""},
    {BODY "%0: i64 = cast 1;}", 4, 16, P(PARSE), "expected a value but found \"1\""},
    {BODY "%0: i64 = add 1, 0.5;}", 4, 18, P(PARSE), "0.5"},
    {BODY "%0: i8 = add 1, 128;}", 4, 17, P(PARSE), "128"},
    {BODY "%0: i64 = add 1, ;}", 4, 18, P(PARSE), "expected a value"},
    {BODY "%0: i64 = param s;\n%0: i64 = param s;}", 5, 1, P(PARSE),
     "%0 is already defined in line 4"},
    {BODY "%0: i64 = param s;\n%1: i64 = add %0;}", 5, 1, P(ARGUMENT), "add"},
    {BODY "%0: i64 = param s;\n%1: i64 = add %0, %0, %0;}", 5, 1, P(ARGUMENT), "add"},
    {BODY "%0: i64 = param s;\n%1: i64 = add %0,;}", 5, 18, P(PARSE),
     "expected a value but found \";\""},
    {BODY "%0: i64 = param s;\n%1: i64 = sqrt %0;}", 5, 1, P(TYPE),
     "qn_sqrt: kernel \"k\": operand 0 (scalar s) is i64: type not taken, expected floats"},
    {VALUES "%0: f32 = add %x, %i;}", 7, 1, P(TYPE),
     "qn_add: kernel \"k\": operand 0 (load of a) is f32, operand 1 (scalar s) is i64: types "
     "differ"},
    {VALUES "%0: i64 = gt %x, %x;}", 7, 1, P(PARSE), "%0 is written as i64 but is bool"},
    {VALUES "%0: bool = cast %x;}", 7, 1, P(TYPE), "qn_cast"},
    {VALUES "%0: f64 = bitcast %x;}", 7, 1, P(TYPE), "qn_bitcast"},
    {VALUES "%0: f64 = load a[%i];}", 7, 1, P(PARSE), "%0 is written as f64 but is f32"},
    {VALUES "%0: f32 = load a[];}", 7, 1, P(RANK), "qn_load"},
    {VALUES "%0: f32 = load a[%x];}", 7, 1, P(TYPE), "qn_load"},
    {VALUES "%0: f32 = load a %i;}", 7, 18, P(PARSE), "expected '[' but found \"%i\""},
    {VALUES "store a[%i] %x;}", 7, 13, P(PARSE), "expected ',' but found \"%x\""},
    {VALUES "store a[%i], %i;}", 7, 1, P(TYPE), "qn_store"},
    {VALUES "atomic add a[%i], %x;}", 7, 8, P(PARSE), "expected an operation (sum, prod"},
    {VALUES "atomic prod a[%i], %x;}", 7, 1, P(ARGUMENT), "qn_atomic"},
    {VALUES "atomic and a[%i], %x;}", 7, 1, P(TYPE), "qn_atomic"},
    {VALUES "%0: i64 = parallel %i, %i;}", 7, 1, P(BUILD), "qn_parallel"},
    /* literals */
    {BODY "%0: i8 = const 128;}", 4, 16, P(PARSE), "literal \"128\" does not fit (i8)"},
    {BODY "%0: i8 = const -129;}", 4, 17, P(PARSE), "literal \"-129\" does not fit (i8)"},
    {BODY "%0: u8 = const -1;}", 4, 17, P(PARSE), "literal \"-1\" does not fit (u8)"},
    {BODY "%0: u64 = const 18446744073709551616;}", 4, 17, P(PARSE), "does not fit (u64)"},
    {BODY "%0: i64 = const 0x10000000000000000;}", 4, 17, P(PARSE), "does not fit (i64)"},
    {BODY "%0: i64 = const 0x;}", 4, 17, P(PARSE), "literal \"0x\" is not a number"},
    {BODY "%0: i64 = const 1.0;}", 4, 17, P(PARSE), "literal \"1.0\" is not an integer (i64)"},
    {BODY "%0: c128 = const 0;}", 4, 18, P(PARSE),
     "a complex number has no literal: c128 is written by parts"},
    {BODY "%0: c64 = const 1;}", 4, 17, P(PARSE), "a complex number has no literal: c64"},
    {BODY "%0: i64 = const inf;}", 4, 17, P(PARSE), "expected an integer but found \"inf\""},
    {BODY "%0: bool = const 1;}", 4, 18, P(PARSE), "expected 'true' or 'false' but found \"1\""},
    {BODY "%0: i64 = const true;}", 4, 17, P(PARSE), "expected an integer but found \"true\""},
    {BODY "%0: f32 = const 1e39;}", 4, 17, P(PARSE), "literal \"1e39\" does not fit (f32)"},
    {BODY "%0: f64 = const 0x1p+1024;}", 4, 17, P(PARSE), "does not fit (f64)"},
    {BODY "%0: f64 = const 0x1.8;}", 4, 17, P(PARSE), "a hex float has an exponent"},
    {BODY "%0: f64 = const 1.2.3;}", 4, 17, P(PARSE), "literal \"1.2.3\" is not a number"},
    {BODY "%0: f64 = const 1e;}", 4, 17, P(PARSE), "literal \"1e\" is not a number"},
    {BODY "%0: f64 = const 1f;}", 4, 17, P(PARSE), "literal \"1f\" is not a number"},
    {BODY "%0: f64 = const --1;}", 4, 18, P(PARSE), "expected a number but found \"-\""},
    {BODY "%0: f64 = const +1;}", 4, 17, P(PARSE), "expected a number but found \"+\""},
    {BODY "%0: f32 = const nan;}", 4, 20, P(PARSE), "expected '(' but found \";\""},
    {BODY "%0: f32 = const nan(0x7f800000);}", 4, 21, P(PARSE), "is not a NaN (f32)"},
    {BODY "%0: f32 = const nan(0x17fc00000);}", 4, 21, P(PARSE), "does not fit (f32)"},
    {BODY "%0: f32 = const nan(12);}", 4, 21, P(PARSE), "is not hex"},
    {BODY "%0: f32 = const -nan(0x7fc00000);}", 4, 18, P(PARSE),
     "expected a number but found \"nan\""},
    /* blocks */
    {VALUES "assert %i \"a\";}", 7, 1, P(TYPE), "qn_assert: kernel \"k\": the condition is i64"},
    {VALUES "assert %c;}", 7, 10, P(PARSE), "expected a message in quotes but found \";\""},
    {VALUES "assert %c \"a\" %i x;}", 7, 18, P(PARSE), "expected ';' but found"},
    {VALUES "assert %c \"a\" 3;}", 7, 15, P(PARSE), "\"3\" has no type here"},
    {VALUES "%y: f32 = assert %c \"a\";}", 7, 1, P(PARSE), "'assert' defines no value, not 1"},
    {VALUES "assert %c \"a\" %i, %i, %i, %i, %i, %i, %i, %i, %i;}", 7, 1, P(LIMIT),
     "9 values, limit 8"},
    {VALUES "print %i;}", 7, 7, P(PARSE), "expected a message in quotes but found"},
    {VALUES "print \"a\" %i x;}", 7, 14, P(PARSE), "expected ';' but found"},
    {VALUES "%y: f32 = print \"a\";}", 7, 1, P(PARSE), "'print' defines no value, not 1"},
    {VALUES "print \"a\" %i, %i, %i, %i, %i, %i, %i, %i, %i;}", 7, 1, P(LIMIT),
     "qn_print: kernel \"k\": 9 values, limit 8"},
    {VALUES "asert %c \"a\";}", 7, 1, P(PARSE), "did you mean \"assert\"?"},
    {BODY "%c: bool = const false; assert %c \"a\"; %b: i64 = const 0; %j: i64 = parallel %b, %b;}",
     4, 59, P(BUILD), "assert"},
    {VALUES "if %i { };}", 7, 1, P(TYPE), "qn_if"},
    {VALUES "if %c ;}", 7, 7, P(PARSE), "expected '{' but found \";\""},
    {VALUES "%0: f32 = if %c { yield %x; } else { yield %x; }}", 7, 49, P(PARSE),
     "expected ';' but found \"}\""},
    {VALUES "%0: f32 = if %c { yield %x; };}", 7, 30, P(PARSE),
     "expected 'else', since the 'if' has results,"},
    {VALUES "%0: f32 = if %c { } else { };}", 7, 1, P(PARSE),
     "the block of 'if' yields 0 values, expected 1"},
    {VALUES "if %c { yield %x; };}", 7, 1, P(PARSE),
     "the block of 'if' yields 1 values, expected 0"},
    {VALUES "%0: f32 = if %c { yield %x; } else { };}", 7, 1, P(PARSE),
     "the block of 'else' yields 0 values"},
    {VALUES "%0: f32 = if %c { yield %x; } else { yield %i; };}", 7, 1, P(TYPE), "qn_end_if"},
    {VALUES "%0: i64 = if %c { yield %x; } else { yield %x; };}", 7, 1, P(PARSE),
     "%0 is written as i64 but is f32"},
    {VALUES "if %c { yield; store a[%i], %x; };}", 7, 16, P(PARSE),
     "expected '}' after 'yield' but found \"store\""},
    {VALUES "yield %x;}", 7, 1, P(PARSE), "expected a statement or '}' but found \"yield\""},
    {VALUES "if %c { %y: f32 = neg %x; };\nstore a[%i], %y;}", 8, 14, P(PARSE),
     "no value %y is defined here"},
    {VALUES "if %c { %x: f32 = neg %x; };}", 7, 9, P(PARSE), "%x is already defined in line 5"},
    {VALUES "for %j: i32 = %i to %i step 1 () { };}", 7, 5, P(PARSE),
     "%j is written as i32 but is i64"},
    {VALUES "for %j: i64 = %i to %i step 0 () { };}", 7, 1, P(ARGUMENT), "qn_for"},
    {VALUES "for %j: i64 = %i to %i () { };}", 7, 24, P(PARSE), "expected 'step' but found \"(\""},
    {VALUES "for %j: i64 = %i to %i step 1 { };}", 7, 31, P(PARSE), "expected '(' but found \"{\""},
    {VALUES "for %j: i64 = %i to %x step 1 () { };}", 7, 1, P(TYPE), "qn_for"},
    {VALUES "for %j: i64 = %i to %i step 1 (%v: f32 = %x) { yield %x; };}", 7, 1, P(PARSE),
     "'for' has 0 results but 1 carried values"},
    {VALUES "%0: f32 = for %j: i64 = %i to %i step 1 (%v: f32 = %x) { };}", 7, 1, P(PARSE),
     "the block of 'for' yields 0 values, expected 1"},
    {VALUES "%0: f32 = for %j: i64 = %i to %i step 1 (%v: i64 = %x) { yield %x; };}", 7, 42,
     P(PARSE), "%v is written as i64 but is f32"},
    {VALUES "%0: f32 = for %j: i64 = %i to %i step 1 (%v: f32 = %x) { yield %i; };}", 7, 1, P(TYPE),
     "qn_end_for"},
    {VALUES "while %i () { yield %c; } do { };}", 7, 10, P(PARSE),
     "expected 'max' but found \"(\""},
    {VALUES "while max %x () { yield %c; } do { };}", 7, 1, P(TYPE), "qn_while"},
    {VALUES "while max %i () { } do { };}", 7, 1, P(PARSE),
     "the condition of 'while' yields 0 values, expected 1"},
    {VALUES "while max %i () { yield %x; } do { };}", 7, 1, P(TYPE), "qn_do"},
    {VALUES "while max %i () { yield %c; };}", 7, 30, P(PARSE), "expected 'do' but found \";\""},
    {BODY "%0: i64 = const 0;\n%r: i64 = reduction %0, %0;\n"
          "%1: f32 = reduce sum over %r { };}",
     6, 1, P(PARSE), "the block of 'reduce' yields 0 values, expected 1"},
    {BODY "%0: i64 = const 0;\n%r: i64 = reduction %0, %0;\n"
          "%1: i64 = reduce exchange over %r { yield %r; };}",
     6, 1, P(ARGUMENT), "qn_reduce"},
    {BODY "%0: i64 = const 0;\n%r: i64 = reduction %0, %0;\n"
          "%1: i64 = reduce sum striped ordered over %r { yield %r; };}",
     6, 30, P(PARSE), "expected 'over'"},
    {BODY "%0: i64 = const 0;\n%r: i64 = reduction %0, %0;\n"
          "%1: i64 = reduce sum over %0 { yield %0; };}",
     6, 1, P(ARGUMENT), "qn_reduce"},
    {BODY "%0: i64 = const 0;\n%r: i64 = reduction %0, %0;\n%1: f32 = load a[%r];}", 6, 1, P(BUILD),
     "qn_load"},
    {HEAD "view a: f32[1] read_only;\n%0: i64 = const 0; %x: f32 = load a[%0];\nstore a[%0], %x;}",
     4, 1, P(READ_ONLY), "qn_store"},
};

static void test_wrong_texts(void)
{
    for (size_t i = 0; i < sizeof wrong_texts / sizeof wrong_texts[0]; i++) {
        qn_kernel *k = NULL;
        qn_error err = {0};
        char place[64];
        snprintf(place, sizeof place, "qn_kernel_parse: line %d, column %d: ", wrong_texts[i].line,
                 wrong_texts[i].column);
        qn_status status =
            qn_kernel_parse(wrong_texts[i].text, strlen(wrong_texts[i].text), &k, &err);
        bool passed = status == wrong_texts[i].status && !k && err.line == wrong_texts[i].line &&
                      strncmp(err.message, place, strlen(place)) == 0 &&
                      strstr(err.message, wrong_texts[i].part);
        tap_ok(passed, "wrong text %zu: %s%s", i, place, wrong_texts[i].part);
        if (!passed)
            tap_note("found %s in line %d: %s", qn_status_name((int)status), (int)err.line,
                     err.message);
        qn_kernel_release(k);
    }
}

static void test_arguments(void)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_is_int(qn_kernel_parse(NULL, 0, &k, &err), QN_ERR_ARGUMENT, "text NULL");
    tap_contains(err.message, "qn_kernel_parse: text is NULL", "... and its message");
    tap_is_int(qn_kernel_parse("", 0, NULL, &err), QN_ERR_ARGUMENT, "out NULL");
    tap_is_int(qn_kernel_parse("x", 1, &k, NULL), QN_ERR_PARSE, "err may be NULL");
    tap_ok(!k, "out is untouched");
    static const char zero[] = "kernel \"k\" {\n\0}";
    tap_is_int(qn_kernel_parse(zero, sizeof zero - 1, &k, &err), QN_ERR_PARSE,
               "a zero byte in the text");
    tap_contains(err.message,
                 "line 2, column 1: expected a statement or '}' but found the byte 0x00",
                 "... is shown");
    static const char in_string[] = "kernel \"\0\" {}";
    tap_is_int(qn_kernel_parse(in_string, sizeof in_string - 1, &k, &err), QN_ERR_PARSE,
               "a zero byte in a string");
    static const char in_comment[] =
        "kernel \"k\" { # \0\n view y: i64[0]; %0: i64 = const 0; store y[], %0; }";
    tap_is_int(qn_kernel_parse(in_comment, sizeof in_comment - 1, &k, &err), QN_OK,
               "a zero byte in a comment is fine");
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------------------------- large texts */

/** `head`, `unit` n times, `tail`; to be freed. */
static char *repeat(const char *head, const char *unit, size_t n, const char *tail)
{
    size_t n_unit = strlen(unit), n_head = strlen(head);
    char *text = malloc(n_head + n * n_unit + strlen(tail) + 1);
    if (!text)
        return NULL;
    memcpy(text, head, n_head);
    for (size_t i = 0; i < n; i++)
        memcpy(text + n_head + i * n_unit, unit, n_unit);
    strcpy(text + n_head + n * n_unit, tail);
    return text;
}

static void expect_large(const char *head, const char *unit, size_t n, const char *tail,
                         qn_status expected, const char *part)
{
    char *text = repeat(head, unit, n, tail);
    qn_kernel *k = NULL;
    qn_error err = {0};
    qn_status status = text ? qn_kernel_parse(text, strlen(text), &k, &err) : QN_ERR_MEMORY;
    bool passed = status == expected && strstr(err.message, part);
    tap_ok(passed, "%zu times \"%s\"", n, *unit == '\n' ? "\\n" : unit);
    if (!passed)
        tap_note("found %s: %s", qn_status_name((int)status), err.message);
    qn_kernel_release(k);
    free(text);
}

static void test_large_texts(void)
{
    expect_large("kernel \"k\" {", "(", 100000, "", QN_ERR_PARSE, "expected a statement");
    expect_large("kernel \"k\" {", "{", 100000, "", QN_ERR_PARSE, "expected a statement");
    expect_large("kernel \"k\" { view a: f32[0]; %c: bool = const true; ", "if %c {", 100000, "",
                 QN_ERR_LIMIT, "nesting deeper than 64");
    expect_large("kernel \"k\" { %c: i64 = param ", "[", 100000, "", QN_ERR_PARSE,
                 "expected a name");
    expect_large("kernel \"k\" { %c: i64 = const ", "-", 100000, "1; }", QN_ERR_PARSE,
                 "expected an integer");
    expect_large("kernel \"", "x", 1000000,
                 "\" { view y: f64[0]; %0: f64 = const 1.0; store y[], %0; }", QN_OK, "");
    expect_large("kernel \"", "x", 1, "\" {}", QN_ERR_BUILD, "kernel \"x\" stores nothing");
    expect_large("kernel \"k\" { view ", "x", 1000000,
                 ": f32[1]; view y: f64[0]; %0: f64 = const 1.0; store y[], %0; }", QN_OK, "");
    expect_large("kernel \"k\" { view y: f64[0]; %c: f64 = const 0.", "9", 1000000,
                 "; store y[], %c; }", QN_OK, "");
    expect_large("kernel \"k\" { %c: f64 = const 1", "0", 1000000, "; }", QN_ERR_PARSE,
                 "does not fit (f64)");
    expect_large("kernel \"k\" { view y: i64[0]; %c: i64 = const ", "0", 1000000,
                 "1; store y[], %c; }", QN_OK, "");
    expect_large("", "\n", 1000000, "kernel", QN_ERR_PARSE, "line 1000001, column 7");
    expect_large("kernel \"k\" {", "\"", 1000000, "", QN_ERR_PARSE, "expected a statement");
}

/** One view more than a kernel may have, and one value more than a statement may have. */
static void test_limits(void)
{
    qn_text text = {0};
    qn__text_add(&text, "kernel \"k\" {\n");
    for (int i = 0; i <= QN_MAX_PARAMS; i++)
        qn__text_add(&text, "view a%d: f32[1];\n", i);
    qn_error err = {0};
    qn_kernel *k = NULL;
    tap_is_int(qn_kernel_parse(text.data, text.n, &k, &err), QN_ERR_PARSE, "too many parameters");
    tap_contains(err.message, "line 66, column 1: more than 64 parameters", "... and the message");
    text.n = 0;
    qn__text_add(&text, BODY "%%i: i64 = param s;\n%%0: f32 = load a[%%i");
    for (int i = 0; i < QN_MAX_CARRIED; i++)
        qn__text_add(&text, ", %%i");
    qn__text_add(&text, "];\n}\n");
    tap_is_int(qn_kernel_parse(text.data, text.n, &k, &err), QN_ERR_PARSE, "too many values");
    tap_contains(err.message, "line 5, column 146: more than 32 values", "... and the message");
    text.n = 0;
    qn__text_add(&text, "kernel \"k\" { view a: i64[0]; %%v0: i64 = load a[];\n");
    for (int i = 0; i < 20000; i++)
        qn__text_add(&text, "%%v%d: i64 = add %%v%d, %%v0;\n", i + 1, i);
    qn__text_add(&text, "store a[], %%v20000; }");
    tap_is_int(qn_kernel_parse(text.data, text.n, &k, &err), QN_ERR_LIMIT, "too many ops");
    tap_contains(err.message, "10000", "... and the message");
    text.n = 0;
    qn__text_add(&text, "kernel \"k\" { view a: i64[0]; %%v0: i64 = load a[];\n");
    for (int i = 0; i < 60000; i++)
        qn__text_add(&text, "%%v%d: i64 = neg %%v0;\n", i + 1);
    qn__text_add(&text, "store a[], %%v59999; }");
    tap_is_int(qn_kernel_parse(text.data, text.n, &k, &err), QN_OK, "60,000 names of equal values");
    qn_kernel_release(k);
    qn__text_release(&text);
}

int main(void)
{
    test_wrong_texts();
    test_arguments();
    test_large_texts();
    test_limits();
    return tap_done();
}
