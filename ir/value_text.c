/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_text.c: the text of a value in messages for people, and numbers of texts. Floats have the
 * fewest digits that give their bits again. Whether they do is found with integers, whatever the
 * host has set for floats.
 */
#include "ir/lex.h"

#include <inttypes.h>
#include <string.h>

/** The bits of the f64 with the value of a float of a dtype. */
static uint64_t widen(int dtype, uint64_t bits)
{
    bits = qn__is_half(dtype) ? qn__eval_cast(QN_F32, dtype, bits) : bits;
    return dtype == QN_F64 ? bits : qn__eval_cast(QN_F64, QN_F32, bits);
}

/** Whether the magnitude of an f64 is an integer below 10^15. */
static bool is_short_integer(uint64_t magnitude)
{
    const uint64_t most = UINT64_C(0x430c6bf526340000); /* 10^15 */
    int exponent = (int)(magnitude >> 52) - 1023;
    return magnitude < most &&
           (magnitude == 0 || (exponent >= 0 && magnitude << (12 + exponent) == 0));
}

/** Whether a text, read as a float of a dtype, has these bits. */
static bool is_read_as(const char *text, int dtype, uint64_t bits)
{
    bool is_negative = *text == '-';
    const qn_token t = {.kind = QN_TOKEN_NUMBER,
                        .text = text + is_negative,
                        .n = strlen(text + is_negative)};
    uint64_t read = 0;
    return !qn__read_float(&t, is_negative, dtype, &read) && read == bits;
}

bool qn__read_number(const char *text, size_t n, double *value)
{
    const qn_token t = {.kind = QN_TOKEN_NUMBER, .text = text, .n = n};
    uint64_t bits;
    if (n == 0 || qn__read_float(&t, false, QN_F64, &bits))
        return false;
    memcpy(value, &bits, sizeof *value);
    return true;
}

static void add_float(qn_text *t, int dtype, uint64_t bits)
{
    enum { MOST_DIGITS = 17 };
    const uint64_t wide = widen(dtype, bits), magnitude = wide & INT64_MAX,
                   infinity = qn__float_format(QN_F64).infinity;
    char text[64];
    double value;
    memcpy(&value, &wide, sizeof value);
    if (magnitude >= infinity) {
        qn__text_add(t, "%s", magnitude > infinity ? "nan" : magnitude == wide ? "inf" : "-inf");
        return;
    }
    if (is_short_integer(magnitude)) {
        qn__text_add(t, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= MOST_DIGITS; digits++) {
        qn__format(text, sizeof text, "%.*g", digits, value);
        if (is_read_as(text, dtype, bits))
            break;
    }
    qn__text_add(t, "%s", text);
}

void qn__text_value(qn_text *t, int dtype, uint64_t bits)
{
    bits = qn__canonical(dtype, bits);
    switch (qn__dtype_class(dtype)) {
    case QN_CLASS_B:
        qn__text_add(t, "%s", bits ? "true" : "false");
        break;
    case QN_CLASS_S:
        qn__text_add(t, "%" PRId64, (int64_t)bits);
        break;
    case QN_CLASS_F:
        add_float(t, dtype, bits);
        break;
    default:
        qn__text_add(t, "%" PRIu64, bits);
    }
}
