/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c: a layout as one line, shape:stride, dimensions with several digits in parentheses
 * of their own, fastest first. Lower bounds follow as @(l0,l1) and the origin as +o where they are
 * not zero: (3,10):(10,1)@(-1,-5)+4. A dimension with a table has its positions in brackets before
 * what they select from: ([2]3,10):(10,1), and nothing after them for members of a MultiView.
 */
#include "ir/layout/layout.h"


/** Where text goes: counts beyond the end of the buffer, as snprintf does. */
typedef struct text_cursor {
    char *buffer;
    size_t bytes, n;
} text_cursor;

__attribute__((format(printf, 2, 3))) static void put(text_cursor *t, const char *format, ...)
{
    bool fits = t->buffer && t->n < t->bytes;
    va_list ap;
    va_start(ap, format);
    int n = qn__vformat(fits ? t->buffer + t->n : NULL, fits ? t->bytes - t->n : 0, format, ap);
    va_end(ap);
    t->n += n > 0 ? (size_t)n : 0;
}

/** One half of shape:stride. */
static void put_digits(text_cursor *t, const qn_layout *l, bool strides)
{
    put(t, "(");
    for (int d = 0; d < l->rank; d++) {
        qn_digit one;
        int n;
        const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
        const qn_table *table = qn__layout_table(l, d);
        put(t, "%s", d ? "," : "");
        if (table && !strides)
            put(t, "[%lld]", (long long)l->dim[d].extent);
        if (table && table->is_members) {
            put(t, "%s", strides ? "*" : "");
            continue;
        }
        put(t, "%s", n > 1 ? "(" : "");
        for (int j = 0; j < n; j++)
            put(t, "%s%lld", j ? "," : "",
                (long long)(strides ? digit[j].stride : digit[j].extent));
        put(t, "%s", n > 1 ? ")" : "");
    }
    put(t, ")");
}

size_t qn_layout_print(const qn_layout *l, char *buffer, size_t buffer_bytes)
{
    text_cursor t = {buffer, buffer_bytes, 0};
    if (!qn__layout_has_rank(l)) {
        put(&t, "?");
        return t.n;
    }
    put_digits(&t, l, false);
    put(&t, ":");
    put_digits(&t, l, true);
    bool has_lower = false;
    for (int d = 0; d < l->rank; d++)
        has_lower |= l->dim[d].lower != 0;
    for (int d = 0; has_lower && d < l->rank; d++)
        put(&t, "%s%lld%s", d ? "," : "@(", (long long)l->dim[d].lower,
            d == l->rank - 1 ? ")" : "");
    if (l->origin)
        put(&t, "%+lld", (long long)l->origin);
    return t.n;
}
