/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c: words, numbers and data of case files (docs/testing.md). Errors end the program.
 */
#include "tests/run/reader.h"
#include "tests/dtypes.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reader_stop(const reader *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    printf("Bail out! %s:%d: ", r->file->path, r->line);
    vprintf(format, ap);
    printf(" at \"%.40s\"\n", r->at ? r->at : "");
    va_end(ap);
    exit(1);
}

void *reader_memory(size_t n)
{
    void *p = calloc(n ? n : 1, 1);
    if (!p) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return p;
}

/* ---------------------------------------------------------------- words and numbers */

void reader_skip_space(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

/** Takes the text if it comes next. */
bool reader_take(reader *r, const char *text)
{
    reader_skip_space(r);
    size_t n = strlen(text);
    bool is_word = isalnum((unsigned char)text[n - 1]);
    if (strncmp(r->at, text, n) != 0 ||
        (is_word && (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')))
        return false;
    r->at += n;
    return true;
}

void reader_expect(reader *r, const char *text)
{
    if (!reader_take(r, text))
        reader_stop(r, "expected \"%s\"", text);
}

bool reader_at_end(reader *r)
{
    reader_skip_space(r);
    return *r->at == 0;
}

/** A word up to white space or one of the characters of `until`. */
void reader_word(reader *r, const char *until, char *out, size_t out_bytes)
{
    reader_skip_space(r);
    size_t n = 0;
    while (*r->at && !isspace((unsigned char)*r->at) && !strchr(until, *r->at)) {
        if (n + 1 == out_bytes)
            reader_stop(r, "word too long");
        out[n++] = *r->at++;
    }
    out[n] = 0;
    if (n == 0)
        reader_stop(r, "expected a word");
}

static int64_t take_term(reader *r)
{
    reader_skip_space(r);
    bool negative = *r->at == '-' && r->at[1] == '$';
    r->at += negative;
    if (*r->at == '$') {
        size_t n = strlen(r->variable);
        if (n == 0 || strncmp(r->at + 1, r->variable, n) != 0)
            reader_stop(r, "unknown variable");
        r->at += 1 + n;
        return negative ? -r->value : r->value;
    }
    char *end;
    int64_t v = strtoll(r->at, &end, 0);
    if (end == r->at)
        reader_stop(r, "expected an integer");
    r->at = end;
    return v;
}

/** Integers and $variable joined by + - * without spaces, from left to right. */
int64_t reader_integer(reader *r)
{
    int64_t v = take_term(r);
    for (;;) {
        char op = *r->at;
        if (op != '+' && op != '-' && op != '*')
            return v;
        r->at++;
        int64_t w = take_term(r);
        v = op == '+' ? v + w : op == '-' ? v - w : v * w;
    }
}

/** Integers between two characters; returns how many. */
int reader_list(reader *r, const char *open, const char *close, int64_t *out)
{
    int n = 0;
    reader_expect(r, open);
    while (!reader_take(r, close)) {
        if (n == QN_MAX_RANK)
            reader_stop(r, "too many numbers");
        out[n++] = reader_integer(r);
        reader_take(r, ",");
    }
    return n;
}

/** Whether the next word names the variable, and so is an integer expression also where a float may
 * stand. */
static bool is_expression(const reader *r)
{
    size_t n = strcspn(r->at, " \t");
    const char *dollar = strchr(r->at, '$');
    return dollar && (size_t)(dollar - r->at) < n;
}

static uint64_t bits_of(int dtype, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return qn_convert_value(dtype, QN_F64, bits);
}

/** Raw bits cut to the dtype's size. */
static uint64_t cut(int dtype, uint64_t bits)
{
    int64_t bytes = qn_dtype_bytes(dtype);
    return bytes == 8 ? bits : bits & ((UINT64_C(1) << 8 * bytes) - 1);
}

static bool is_float(int dtype)
{
    return dtype_infinity(dtype) != 0;
}

/** One value of a dtype, as raw bits: a number, true, false, nan, inf, or bits:0x...; of c64 (real,
 * imaginary), or its real part alone. */
uint64_t reader_value(reader *r, int dtype)
{
    reader_skip_space(r);
    if (dtype == QN_C64) {
        bool is_pair = reader_take(r, "(");
        uint64_t bits = reader_value(r, QN_F32);
        if (!is_pair)
            return bits;
        reader_expect(r, ",");
        bits |= reader_value(r, QN_F32) << 32;
        reader_expect(r, ")");
        return bits;
    }
    if (reader_take(r, "bits:"))
        return cut(dtype, (uint64_t)reader_integer(r));
    if (reader_take(r, "true"))
        return 1;
    if (reader_take(r, "false"))
        return 0;
    if (dtype == QN_U64 && isdigit((unsigned char)*r->at) && !is_expression(r)) {
        char *end;
        uint64_t v = strtoull(r->at, &end, 0);
        r->at = end;
        return v;
    }
    if (!is_float(dtype) || is_expression(r))
        return is_float(dtype) ? bits_of(dtype, (double)reader_integer(r))
                               : cut(dtype, (uint64_t)reader_integer(r));
    char *end;
    uint64_t bits = dtype == QN_F32 ? bits_of(dtype, (double)strtof(r->at, &end))
                                    : bits_of(dtype, strtod(r->at, &end));
    if (end == r->at)
        reader_stop(r, "expected a number");
    r->at = end;
    return bits;
}

/* ---------------------------------------------------------------- data */

static double take_double(reader *r)
{
    reader_skip_space(r);
    if (is_expression(r))
        return (double)reader_integer(r);
    char *end;
    double v = strtod(r->at, &end);
    if (end == r->at)
        reader_stop(r, "expected a number");
    r->at = end;
    return v;
}

static uint64_t bits_of_number(int dtype, double x)
{
    if (dtype == QN_C64)
        return bits_of(QN_F32, x);
    return is_float(dtype) ? bits_of(dtype, x) : cut(dtype, (uint64_t)(int64_t)x);
}

/** `random SEED LOW HIGH`: integers from LOW to HIGH, or floats in [LOW, HIGH) with all bits in
 * use. */
static void fill_random(reader *r, int dtype, int64_t n, uint64_t *out)
{
    uint64_t state = (uint64_t)reader_integer(r) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    double low = take_double(r), high = take_double(r);
    for (int64_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double unit = (double)(state >> 11) * 0x1p-53;
        if (dtype == QN_C64)
            out[i] = bits_of(QN_F32, low + (high - low) * unit) | bits_of(QN_F32, high - unit)
                                                                      << 32;
        else if (is_float(dtype))
            out[i] = bits_of(dtype, low + (high - low) * unit);
        else
            out[i] = bits_of_number(dtype, low + (double)(int64_t)((high - low + 1) * unit));
    }
}

/** What stands behind "=": n values in index order. */
void reader_data(reader *r, int dtype, int64_t n, uint64_t *out)
{
    if (reader_take(r, "fill")) {
        uint64_t bits = reader_value(r, dtype);
        for (int64_t i = 0; i < n; i++)
            out[i] = bits;
    } else if (reader_take(r, "iota")) {
        double start = reader_at_end(r) ? 0 : take_double(r),
               step = reader_at_end(r) ? 1 : take_double(r);
        for (int64_t i = 0; i < n; i++)
            out[i] = bits_of_number(dtype, start + step * (double)i);
    } else if (reader_take(r, "random")) {
        fill_random(r, dtype, n, out);
    } else {
        int64_t i = 0;
        while (!reader_at_end(r)) {
            uint64_t bits = reader_value(r, dtype);
            int64_t times = reader_take(r, "times") ? reader_integer(r) : 1;
            for (; times > 0; times--, i++)
                if (i < n)
                    out[i] = bits;
        }
        if (i != n)
            reader_stop(r, "%" PRId64 " values for %" PRId64 " elements", i, n);
    }
    if (!reader_at_end(r))
        reader_stop(r, "unexpected text");
}
