/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_body.c: a kernel from the text of a loop body (bodies.h): assignments of C expressions to array elements and to
 * names, separated by semicolons. Each array is read with indices i, j, k and constant distances.
 */
#include "bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 64, MOST_ARRAYS = 16 };

typedef struct body_name {
    const char *text;
    size_t n;
    qn_val value;
} body_name;

typedef struct body {
    const char *at;
    qn_builder *b;
    qn_param array[MOST_ARRAYS];
    qn_val index[3];
    int rank, n_names;
    body_name name[MOST_NAMES];
    bool is_wrong;
} body;

static const char letters[] = "OPQRSUVWABCDEFGH";

static qn_val expression(body *s);

static void skip(body *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

static bool take(body *s, const char *text)
{
    skip(s);
    size_t n = strlen(text);
    bool is_word = isalpha((unsigned char)text[0]) != 0;
    if (strncmp(s->at, text, n) != 0 || (is_word && isalnum((unsigned char)s->at[n])))
        return false;
    s->at += n;
    return true;
}

static void need(body *s, const char *text)
{
    if (!take(s, text))
        s->is_wrong = true;
}

/* i, j or k, and a distance; or a number */
static qn_val index_of(body *s)
{
    skip(s);
    if (isdigit((unsigned char)*s->at)) {
        char *end;
        long n = strtol(s->at, &end, 10);
        s->at = end;
        return qn_index(s->b, n);
    }
    int d = *s->at - 'i';
    if (d < 0 || d >= s->rank) {
        s->is_wrong = true;
        return qn_index(s->b, 0);
    }
    s->at++;
    bool is_plus = take(s, "+");
    if (!is_plus && !take(s, "-"))
        return s->index[d];
    skip(s);
    char *end;
    long n = strtol(s->at, &end, 10);
    s->at = end;
    return qn_add(s->b, s->index[d], qn_index(s->b, is_plus ? n : -n));
}

static void indices(body *s, qn_val *index)
{
    need(s, "(");
    for (int d = 0; d < s->rank; d++) {
        if (d)
            need(s, ",");
        index[d] = index_of(s);
    }
    need(s, ")");
}

static qn_val in_parentheses(body *s)
{
    need(s, "(");
    qn_val v = expression(s);
    need(s, ")");
    return v;
}

static qn_val named(body *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s->at[n]))
        n++;
    for (int m = 0; m < s->n_names; m++)
        if (s->name[m].n == n && strncmp(s->name[m].text, s->at, n) == 0) {
            s->at += n;
            return s->name[m].value;
        }
    s->is_wrong = true;
    return qn_const_float(s->b, QN_F64, 0);
}

static qn_val primary(body *s)
{
    skip(s);
    if (*s->at == '(')
        return in_parentheses(s);
    if (take(s, "-"))
        return qn_neg(s->b, primary(s));
    if (isdigit((unsigned char)*s->at)) {
        char *end;
        double x = strtod(s->at, &end);
        s->at = end;
        return qn_const_float(s->b, QN_F64, x);
    }
    if (take(s, "root"))
        return qn_sqrt(s->b, in_parentheses(s));
    if (take(s, "size"))
        return qn_abs(s->b, in_parentheses(s));
    if (take(s, "real")) {
        need(s, "(");
        qn_val v = qn_cast(s->b, QN_F64, index_of(s));
        need(s, ")");
        return v;
    }
    const char *letter = isupper((unsigned char)*s->at) ? strchr(letters, *s->at) : NULL;
    if (!letter)
        return named(s);
    qn_val index[3];
    s->at++;
    indices(s, index);
    return qn_load(s->b, s->array[letter - letters], s->rank, index);
}

static qn_val product(body *s)
{
    qn_val v = primary(s);
    for (;;)
        if (take(s, "*"))
            v = qn_mul(s->b, v, primary(s));
        else if (take(s, "/"))
            v = qn_div(s->b, v, primary(s));
        else
            return v;
}

static qn_val sum(body *s)
{
    qn_val v = product(s);
    for (;;)
        if (take(s, "+"))
            v = qn_add(s->b, v, product(s));
        else if (take(s, "-"))
            v = qn_sub(s->b, v, product(s));
        else
            return v;
}

static qn_val expression(body *s)
{
    qn_val v = sum(s), c;
    if (take(s, ">="))
        c = qn_ge(s->b, v, sum(s));
    else if (take(s, "<"))
        c = qn_lt(s->b, v, sum(s));
    else
        return v;
    need(s, "?");
    qn_val yes = expression(s);
    need(s, ":");
    return qn_select(s->b, c, yes, expression(s));
}

static void statement(body *s)
{
    skip(s);
    if (take(s, "real")) {
        skip(s);
        const char *text = s->at;
        while (isalnum((unsigned char)*s->at))
            s->at++;
        size_t n = (size_t)(s->at - text);
        need(s, "=");
        qn_val v = expression(s);
        if (s->n_names < MOST_NAMES)
            s->name[s->n_names++] = (body_name){text, n, v};
        return;
    }
    const char *letter = *s->at ? strchr(letters, *s->at) : NULL;
    qn_val index[3];
    if (!letter || letter - letters >= 8) {
        s->is_wrong = true;
        return;
    }
    s->at++;
    indices(s, index);
    need(s, "=");
    qn_store(s->b, s->array[letter - letters], s->rank, index, expression(s));
}

qn_kernel *bench_body(const bench_body_info *info, qn_error *err)
{
    body s = {.at = info->text, .b = qn_builder_new(info->name, QN_CONTRACT), .rank = info->rank};
    qn_kernel *k = NULL;
    for (int n = 0; n < info->n_out + info->n_in; n++) {
        int at = n < info->n_out ? n : 8 + n - info->n_out;
        char name[2] = {letters[at], 0};
        s.array[at] = qn_view_param(s.b, name, QN_F64, info->rank, n < info->n_out ? 0 : QN_READ_ONLY);
    }
    for (int d = 0; d < info->rank; d++)
        s.index[d] = qn_parallel(s.b, qn_index(s.b, info->first),
                                 qn_sub(s.b, qn_extent(s.b, s.array[0], d), qn_index(s.b, info->last)));
    do
        statement(&s);
    while (!s.is_wrong && take(&s, ";"));
    skip(&s);
    if (!s.is_wrong && !*s.at)
        (void)qn_finish(s.b, &k, err);
    else if (err)
        *err = (qn_error){.status = QN_ERR_PARSE};
    qn_builder_release(s.b);
    return k;
}
