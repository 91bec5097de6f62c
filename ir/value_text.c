/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_text.c: the text of a value in messages for people. Floats have the fewest digits that give
 * their bits again, and a point whatever the locale of the host is.
 */
#include "ir/ir.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The double of the same value as a float of a dtype. */
static double double_of(int dtype, uint64_t bits)
{
    double value;
    uint64_t wide = qn__eval_cast(QN_F64, QN_F32,
                                  qn__is_half(dtype) ? qn__eval_cast(QN_F32, dtype, bits) : bits);
    wide = dtype == QN_F64 ? bits : wide;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static void add_float(qn_text *t, int dtype, double value)
{
    enum { MOST_DIGITS = 17 };
    char text[64];
    if (value != value || (fabs(value) < 1e15 && value == (double)(int64_t)value)) {
        snprintf(text, sizeof text, "%.0f", value);
        qn__text_add(t, "%s", value != value ? "nan" : text);
        return;
    }
    for (int digits = 1; digits <= MOST_DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double read = dtype == QN_F64 ? strtod(text, NULL) : (double)strtof(text, NULL);
        if (read == value)
            break;
    }
    size_t n = 0;
    for (const char *c = text; *c; c++) {
        bool is_of_number = strchr("0123456789+-einfa", *c) != NULL;
        if (is_of_number || n == 0 || text[n - 1] != '.')
            text[n++] = is_of_number ? *c : '.'; /* the point of a locale may have several bytes */
    }
    qn__text_add(t, "%.*s", (int)n, text);
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
        add_float(t, dtype, double_of(dtype, bits));
        break;
    default:
        qn__text_add(t, "%" PRIu64, bits);
    }
}
