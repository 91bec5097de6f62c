/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lex.c: splits kernel text into tokens and reads literals. Every function is linear in the bytes
 * it reads. Decimal floats are converted exactly, by one division of big integers, so a literal
 * means the same bits on every machine.
 */
#include "ir/lex.h"

#include <string.h>

const qn_word qn__flag_words[] = {{"contract", QN_CONTRACT},
                                  {"striped", QN_ORDER_STRIPED},
                                  {"indexed", QN_ORDER_INDEXED},
                                  {"ordered", QN_ORDER_ORDERED},
                                  {NULL, 0}};

const qn_word qn__trait_words[] = {{"read_only", QN_READ_ONLY},
                                   {"atomic", QN_ATOMIC},
                                   {"restrict", QN_RESTRICT},
                                   {"random_access", QN_RANDOM_ACCESS},
                                   {"aligned", QN_ALIGNED},
                                   {"streaming", QN_STREAMING},
                                   {NULL, 0}};

const qn_word qn__order_words[] = {
    {"indexed", QN_INDEXED}, {"striped", QN_STRIPED}, {"ordered", QN_ORDERED}, {NULL, 0}};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/** Value of a hex digit, -1 for other characters. */
static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* --------------------------------------------------------------------------------------- tokens */

void qn__lex_start(qn_lexer *x, const char *text, size_t n)
{
    *x = (qn_lexer){.at = text, .end = text + n, .line_start = text, .line = 1};
}

static void skip_space(qn_lexer *x)
{
    for (; x->at < x->end; x->at++) {
        char c = *x->at;
        if (c == '\n') {
            x->line++;
            x->line_start = x->at + 1;
        } else if (c == '#') {
            while (x->at + 1 < x->end && x->at[1] != '\n')
                x->at++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static qn_token token_at(const qn_lexer *x, qn_token_kind kind, const char *text)
{
    return (qn_token){
        .kind = kind, .line = x->line, .column = (int)(text - x->line_start) + 1, .text = text};
}

static qn_token bad_token(const qn_lexer *x, const char *at, const char *problem)
{
    qn_token t = token_at(x, QN_TOKEN_BAD, at);
    t.problem = problem;
    return t;
}

/** Bytes of the escape at `p`, which is a backslash; 0 if it is none. */
static size_t escape_bytes(const char *p, const char *end)
{
    if (end - p < 2)
        return 0;
    if (p[1] == '"' || p[1] == '\\' || p[1] == 'n' || p[1] == 't')
        return 2;
    bool is_hex = p[1] == 'x' && end - p >= 4 && hex_value(p[2]) >= 0 && hex_value(p[3]) >= 0;
    return is_hex && !(p[2] == '0' && p[3] == '0') ? 4 : 0;
}

/** A string; x->at is behind the opening quote. */
static qn_token lex_string(qn_lexer *x)
{
    qn_token t = token_at(x, QN_TOKEN_STRING, x->at - 1);
    const char *p = x->at;
    while (p < x->end && *p != '"') {
        unsigned char c = (unsigned char)*p;
        if (c == '\n')
            break;
        if (c < 0x20 || c == 0x7f)
            return bad_token(x, p, "control character in a string; write \\xHH");
        size_t n = c == '\\' ? escape_bytes(p, x->end) : 1;
        if (n == 0)
            return bad_token(
                x, p, "bad escape in a string; known are \\\" \\\\ \\n \\t and \\x01 to \\xff");
        p += n;
    }
    if (p == x->end || *p == '\n')
        return bad_token(x, t.text, "string is not closed on its line");
    t.text = x->at;
    t.n = (size_t)(p - x->at);
    x->at = p + 1;
    return t;
}

/** Letters, digits, points, the sign of an exponent; not the ".." of a range. Reading decides
 * whether it is a number. */
static void scan_number(qn_lexer *x)
{
    bool is_hex = x->end - x->at >= 2 && x->at[0] == '0' && (x->at[1] | 0x20) == 'x';
    char exponent = is_hex ? 'p' : 'e';
    for (char last = 0; x->at < x->end; last = *x->at++) {
        char c = *x->at;
        bool is_sign = (c == '+' || c == '-') && (last | 0x20) == exponent;
        bool is_range = c == '.' && x->end - x->at >= 2 && x->at[1] == '.';
        if (is_range || (!is_digit(c) && !is_letter(c) && c != '.' && !is_sign))
            return;
    }
}

static void scan_word(qn_lexer *x)
{
    while (x->at < x->end && (is_letter(*x->at) || is_digit(*x->at)))
        x->at++;
}

/** Bytes of the longest symbol at x->at; 0 if there is none. */
static size_t symbol_bytes(const qn_lexer *x)
{
    static const char *const longer[] = {"<<=", ">>=", "..", "==", "!=", "<=", ">=", "&&", "||",
                                         "<<",  ">>",  "+=", "-=", "*=", "/=", "%=", "&=", "|=",
                                         "^="};
    size_t room = (size_t)(x->end - x->at);
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
        size_t n = strlen(longer[i]);
        if (n <= room && memcmp(x->at, longer[i], n) == 0)
            return n;
    }
    return *x->at != '\0' && strchr("{}()[]:;,=+-*/%<>!&|^~?", *x->at) ? 1 : 0;
}

qn_token qn__lex(qn_lexer *x)
{
    skip_space(x);
    const char *start = x->at;
    if (start == x->end)
        return token_at(x, QN_TOKEN_END, start);
    char c = *start;
    if (c == '"') {
        x->at++;
        return lex_string(x);
    }
    qn_token t = token_at(x, QN_TOKEN_SYMBOL, start);
    if (is_letter(c)) {
        t.kind = QN_TOKEN_WORD;
        scan_word(x);
    } else if (is_digit(c)) {
        t.kind = QN_TOKEN_NUMBER;
        scan_number(x);
    } else if (c == '%' && x->end - start >= 2 && (is_letter(start[1]) || is_digit(start[1]))) {
        t.kind = QN_TOKEN_VALUE;
        t.text = ++x->at;
        scan_word(x);
    } else if (symbol_bytes(x) == 0) {
        return bad_token(x, start, "");
    } else {
        x->at += symbol_bytes(x);
    }
    t.n = (size_t)(x->at - t.text);
    return t;
}

void qn__lex_decode(const qn_token *t, qn_text *out)
{
    for (const char *p = t->text, *end = p + t->n; p < end;) {
        const char *run = p;
        while (p < end && *p != '\\')
            p++;
        qn__text_bytes(out, run, (size_t)(p - run));
        if (p == end)
            return;
        char c = p[1];
        if (c == 'x')
            c = (char)(hex_value(p[2]) * 16 + hex_value(p[3]));
        else if (c == 'n' || c == 't')
            c = c == 'n' ? '\n' : '\t';
        p += p[1] == 'x' ? 4 : 2;
        qn__text_bytes(out, &c, 1);
    }
}

/* ------------------------------------------------------------------------------------- integers */

/** Reads hex digits into *value, at most 64 bits. */
static const char *read_hex(const char *p, const char *end, uint64_t *value)
{
    if (p == end)
        return "is not a number";
    *value = 0;
    for (; p < end; p++) {
        int digit = hex_value(*p);
        if (digit < 0)
            return "is not a number";
        if (*value >> 60)
            return "does not fit";
        *value = *value << 4 | (uint64_t)digit;
    }
    return NULL;
}

static const char *read_decimal(const char *p, const char *end, uint64_t *value)
{
    *value = 0;
    for (; p < end; p++) {
        if (!is_digit(*p))
            return "is not an integer";
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*p - '0'), value))
            return "does not fit";
    }
    return NULL;
}

static bool is_hex_number(const qn_token *t)
{
    return t->n >= 2 && t->text[0] == '0' && (t->text[1] | 0x20) == 'x';
}

const char *qn__read_integer(const qn_token *t, bool is_negative, int dtype, uint64_t *bits)
{
    uint64_t magnitude = 0;
    const char *end = t->text + t->n;
    const char *problem = is_hex_number(t) ? read_hex(t->text + 2, end, &magnitude)
                                           : read_decimal(t->text, end, &magnitude);
    if (problem)
        return problem;
    int width = qn__dtype_width(dtype);
    bool is_signed = qn__dtype_class(dtype) == QN_CLASS_S;
    uint64_t largest = UINT64_MAX >> (64 - width + is_signed);
    uint64_t limit = !is_negative ? largest : is_signed ? largest + 1 : 0;
    if (magnitude > limit)
        return "does not fit";
    *bits = is_negative ? 0 - magnitude : magnitude;
    return NULL;
}

/* --------------------------------------------------------------------------------------- floats */

/**
 * Rounds (q + s) * 2^exponent, where 0 <= s < 1 and `is_inexact` says s > 0, to nearest even.
 * Needs q != 0, with at least precision + 2 significant bits where is_inexact.
 */
static const char *round_float(int dtype, uint64_t q, bool is_inexact, int64_t exponent,
                               uint64_t *bits)
{
    qn_float_format f = qn__float_format(dtype);
    int precision = f.fraction_bits + 1, min_exponent = 1 - f.bias;
    int shift = __builtin_clzll(q);
    q <<= shift;
    int64_t top = exponent - shift + 63; /* 2^top <= value */
    int64_t below = top < min_exponent ? min_exponent - top : 0;
    int64_t drop = 64 - precision + below;
    if (drop > 64) {
        *bits = 0;
        return NULL;
    }
    uint64_t kept = drop == 64 ? 0 : q >> drop;
    uint64_t rest = drop == 64 ? q : q & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    kept += rest > half || (rest == half && (is_inexact || (kept & 1)));
    if (top > 1023)
        return "does not fit";
    if (below == 0)
        kept += (uint64_t)(top - min_exponent) << (precision - 1);
    *bits = kept;
    return kept >= f.infinity ? "does not fit" : NULL;
}

/** A decimal or hex exponent with its sign, cut to +-100,000. */
static const char *read_exponent(const char *p, const char *end, int64_t *value)
{
    bool is_negative = p < end && *p == '-';
    if (p < end && (*p == '+' || *p == '-'))
        p++;
    if (p == end)
        return "is not a number";
    *value = 0;
    for (; p < end; p++) {
        if (!is_digit(*p))
            return "is not a number";
        *value = *value > 9999 ? 100000 : *value * 10 + (*p - '0');
    }
    *value = is_negative ? -*value : *value;
    return NULL;
}

static const char *read_hex_float(const qn_token *t, int dtype, uint64_t *bits)
{
    const char *p = t->text + 2, *end = t->text + t->n;
    uint64_t q = 0;
    int64_t exponent = 0, n_digits = 0;
    bool is_inexact = false, is_fraction = false;
    for (; p < end && (*p | 0x20) != 'p'; p++) {
        int digit = hex_value(*p);
        if (digit < 0 && (*p != '.' || is_fraction))
            return "is not a number";
        if (digit < 0) {
            is_fraction = true;
            continue;
        }
        n_digits++;
        bool is_full = q >> 60 != 0;
        is_inexact |= is_full && digit != 0;
        q = is_full ? q : q << 4 | (uint64_t)digit;
        exponent += 4 * (is_full - is_fraction);
    }
    if (p == end || n_digits == 0)
        return "is not a number; a hex float has an exponent, 0x1.8p+1";
    int64_t written = 0;
    const char *problem = read_exponent(p + 1, end, &written);
    if (problem)
        return problem;
    *bits = 0;
    return q == 0 ? NULL : round_float(dtype, q, is_inexact, exponent + written, bits);
}

/* Big integers, little-endian. 3,000 bits hold 801 digits, 10^311 and 5^1131, and one bit more. */
typedef struct big {
    uint32_t word[96];
    int n;
} big;

enum { MAX_DIGITS = 800, MAX_POINT = 310, MIN_POINT = -330 };

static void big_multiply_add(big *x, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    for (int i = 0; i < x->n; i++) {
        carry += (uint64_t)x->word[i] * factor;
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        x->word[x->n++] = (uint32_t)carry;
}

static int big_bits(const big *x)
{
    return x->n == 0 ? 0 : 32 * x->n - __builtin_clz(x->word[x->n - 1]);
}

static void big_shift_left(big *x, int count)
{
    int words = count / 32, rest = count % 32;
    memmove(x->word + words, x->word, (size_t)x->n * sizeof x->word[0]);
    memset(x->word, 0, (size_t)words * sizeof x->word[0]);
    x->n += words;
    if (rest)
        big_multiply_add(x, UINT32_C(1) << rest, 0);
}

static bool big_is_less(const big *x, const big *y)
{
    if (x->n != y->n)
        return x->n < y->n;
    for (int i = x->n; i-- > 0;)
        if (x->word[i] != y->word[i])
            return x->word[i] < y->word[i];
    return false;
}

/** x -= y, where x >= y. */
static void big_subtract(big *x, const big *y)
{
    uint64_t borrow = 0;
    for (int i = 0; i < x->n; i++) {
        uint64_t difference = (uint64_t)x->word[i] - (i < y->n ? y->word[i] : 0) - borrow;
        x->word[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    while (x->n > 0 && x->word[x->n - 1] == 0)
        x->n--;
}

/** digits * 10^exponent, rounded: 64 bits of the quotient of two integers, and if more is left. */
static const char *round_decimal(int dtype, big *digits, int64_t exponent, uint64_t *bits)
{
    big divisor = {.word = {1}, .n = 1};
    big *scaled = exponent < 0 ? &divisor : digits;
    for (int64_t i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        big_multiply_add(scaled, 5, 0);
    int shift = big_bits(digits) - big_bits(&divisor);
    big_shift_left(shift < 0 ? digits : &divisor, shift < 0 ? -shift : shift);
    uint64_t q = 0;
    for (int i = 0; i < 64; i++) {
        bool is_one = !big_is_less(digits, &divisor);
        if (is_one)
            big_subtract(digits, &divisor);
        q = q << 1 | is_one;
        big_shift_left(digits, 1);
    }
    return round_float(dtype, q, digits->n != 0, exponent + shift - 63, bits);
}

static const char *read_decimal_float(const qn_token *t, int dtype, uint64_t *bits)
{
    const char *p = t->text, *end = t->text + t->n;
    big digits = {.n = 0};
    int64_t exponent = 0, written = 0, n_digits = 0;
    bool is_fraction = false, is_cut = false;
    for (; p < end && (*p | 0x20) != 'e'; p++) {
        if (!is_digit(*p) && (*p != '.' || is_fraction))
            return "is not a number";
        if (*p == '.') {
            is_fraction = true;
            continue;
        }
        bool is_full = n_digits == MAX_DIGITS;
        is_cut |= is_full && *p != '0';
        if (!is_full)
            big_multiply_add(&digits, 10, (uint32_t)(*p - '0'));
        n_digits += digits.n != 0 && !is_full;
        exponent += (int64_t)is_full - is_fraction;
    }
    const char *problem = p < end ? read_exponent(p + 1, end, &written) : NULL;
    *bits = 0;
    if (problem || digits.n == 0)
        return problem;
    if (is_cut) { /* more digits than decide: only that something follows counts */
        big_multiply_add(&digits, 10, 1);
        exponent--;
    }
    exponent += written;
    if (n_digits + exponent > MAX_POINT)
        return "does not fit";
    return n_digits + exponent < MIN_POINT ? NULL : round_decimal(dtype, &digits, exponent, bits);
}

const char *qn__read_float(const qn_token *t, bool is_negative, int dtype, uint64_t *bits)
{
    const char *problem =
        is_hex_number(t) ? read_hex_float(t, dtype, bits) : read_decimal_float(t, dtype, bits);
    if (!problem && is_negative)
        *bits |= UINT64_C(1) << (qn__dtype_width(dtype) - 1);
    return problem;
}

const char *qn__read_nan(const qn_token *t, int dtype, uint64_t *bits)
{
    const char *problem =
        is_hex_number(t) ? read_hex(t->text + 2, t->text + t->n, bits) : "is not hex";
    if (problem)
        return problem;
    int width = qn__dtype_width(dtype);
    if (*bits > UINT64_MAX >> (64 - width))
        return "does not fit";
    uint64_t magnitude = *bits & ~(UINT64_C(1) << (width - 1));
    return magnitude > qn__float_format(dtype).infinity ? NULL : "is not a NaN";
}
