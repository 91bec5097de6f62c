/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c: words that messages share: names of combinations, what is wrong with a number that names
 * nothing, lists of extents, and the known word that is nearest to an unknown one.
 */
#include "ir/build/builder.h"

#include <stdio.h>
#include <string.h>

const char *qn__no_dtype(int dtype, char *out)
{
    const char *text =
        dtype == QN_VOID     ? "no dtype is set (0, QN_VOID): expected one such as f32 (QN_F32)"
        : dtype == QN_RECORD ? "the dtype is a record, and the record is NULL or has no place here"
                             : NULL;
    if (text)
        snprintf(out, NO_DTYPE_BYTES, "%s", text);
    else
        snprintf(out, NO_DTYPE_BYTES, "no dtype has number %d: expected one such as f32 (QN_F32)",
                 dtype);
    return out;
}

/* ---------------------------------------------------------------- combinations */

const char *qn__combine_name(int combine)
{
    return combine >= 0 && combine < QN_N_COMBINES ? qn__reducer_info[combine].name : NULL;
}

const char *qn__no_combine(int combine, bool is_reduction, char *out)
{
    const char *kind = is_reduction ? "a reduction" : "an atomic",
               *name = qn__combine_name(combine), *joint = "";
    int n = name
                ? snprintf(out, NO_COMBINE_BYTES, "%s has no combination %s: expected ", kind, name)
                : snprintf(out, NO_COMBINE_BYTES, "%s has no combination of number %d: expected ",
                           kind, combine);
    for (int i = 0; i < QN_N_COMBINES; i++) {
        if (!(is_reduction ? qn__is_reduction_combine(i) : qn__is_atomic_combine(i)))
            continue;
        n += snprintf(out + n, (size_t)(NO_COMBINE_BYTES - n), "%s%s", joint, qn__combine_name(i));
        joint = ", ";
    }
    return out;
}

/* ---------------------------------------------------------------- extents */

void qn__print_numbers(char *text, size_t bytes, int n, const int64_t *number)
{
    size_t at = (size_t)snprintf(text, bytes, "[");
    for (int d = 0; d < n && at < bytes; d++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%lld", d ? "," : "", (long long)number[d]);
    if (at < bytes)
        snprintf(text + at, bytes - at, "]");
}

/* ---------------------------------------------------------------- the nearest word */

enum { WORD_BYTES = 31 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/** Bytes to insert, drop, exchange or swap with a neighbour, to make one of two short words of the
 * other. */
static int distance(const char *a, int n, const char *b, int m)
{
    int row[3][WORD_BYTES + 1] = {{0}};
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

void qn__nearest_add(qn_nearest *s, const char *prefix, const char *candidate)
{
    size_t n = strlen(candidate);
    if (n > WORD_BYTES || s->n > WORD_BYTES || s->n < 2)
        return;
    int far = distance(s->text, (int)s->n, candidate, (int)n), limit = s->n < 4 ? 1 : 2;
    if (far > limit || (s->best && far >= s->distance))
        return;
    s->best = candidate;
    s->prefix = prefix;
    s->distance = far;
}
