/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_body.c: a kernel from the text of a loop body (bodies.h, bench_cases_sum.c): statements
 * separated by semicolons.
 *
 *   O(i, j) = expression          arrays O, P, Q, R, S, U, V, W; indices are i, j, k, l, m with
 * constant distances, or numbers real name = expression        + - * /, -x, root(x), size(x),
 * real(i + 1), numbers, A(i, j - 1), a < b ? x : y, a >= b ? x : y sum(name, l, A, 1, expression)
 * over index l, which walks dimension 1 of A; stripes: in the striped order; least, most; the
 * indices of later ones are those of the first
 */
#include "bench.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 300, MOST_ARRAYS = 16, MOST_INDICES = 5, MAX_RANK = 4 };

typedef struct body_name {
    const char *text;
    size_t n;
    qn_val value;
} body_name;

typedef struct body {
    const char *at;
    qn_builder *b;
    qn_param array[MOST_ARRAYS];
    int rank[MOST_ARRAYS];
    qn_val index[MOST_INDICES]; /* i, j, ... */
    int dtype, n_names;
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

/* i, j, k, l or m, and a distance; or a number */
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
    if (d < 0 || d >= MOST_INDICES || !s->index[d].id) {
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

static void indices(body *s, int array, qn_val *index)
{
    need(s, "(");
    for (int d = 0; d < s->rank[array]; d++) {
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
    return qn_const_float(s->b, s->dtype, 0);
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
        return qn_const_float(s->b, s->dtype, x);
    }
    if (take(s, "root"))
        return qn_sqrt(s->b, in_parentheses(s));
    if (take(s, "size"))
        return qn_abs(s->b, in_parentheses(s));
    if (take(s, "real")) {
        need(s, "(");
        qn_val v = qn_cast(s->b, s->dtype, index_of(s));
        need(s, ")");
        return v;
    }
    const char *letter = isupper((unsigned char)*s->at) ? strchr(letters, *s->at) : NULL;
    if (!letter)
        return named(s);
    int array = (int)(letter - letters);
    qn_val index[MAX_RANK];
    s->at++;
    indices(s, array, index);
    return qn_load(s->b, s->array[array], s->rank[array], index);
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

static void define(body *s, const char *text, size_t n, qn_val v)
{
    if (s->n_names < MOST_NAMES)
        s->name[s->n_names++] = (body_name){text, n, v};
    else
        s->is_wrong = true;
}

/* The name that stands here; *n is its length. */
static const char *new_name(body *s, size_t *n)
{
    skip(s);
    const char *text = s->at;
    while (isalnum((unsigned char)*s->at))
        s->at++;
    *n = (size_t)(s->at - text);
    return text;
}

static void reduction(body *s, int combine, int order)
{
    size_t n;
    need(s, "(");
    const char *text = new_name(s, &n);
    need(s, ",");
    skip(s);
    int d = *s->at ? *s->at++ - 'i' : -1;
    need(s, ",");
    skip(s);
    const char *letter = *s->at ? strchr(letters, *s->at++) : NULL;
    need(s, ",");
    skip(s);
    int of = *s->at ? *s->at++ - '0' : -1;
    need(s, ",");
    if (!letter || d < 0 || d >= MOST_INDICES || of < 0 || of >= MAX_RANK) {
        s->is_wrong = true;
        return;
    }
    if (!s->index[d]
             .id) /* dimensions come before what runs in them: later sums walk the same one */
        s->index[d] =
            qn_reduction(s->b, qn_index(s->b, 0), qn_extent(s->b, s->array[letter - letters], of));
    qn_reduce(s->b, combine, order, 1, &s->index[d]);
    qn_val v = expression(s);
    define(s, text, n, qn_end_reduce(s->b, v));
    need(s, ")");
}

static bool is_reduction(body *s)
{
    static const struct {
        const char *word;
        int combine, order;
    } words[] = {{"sum", QN_COMBINE_SUM, QN_ORDER_DEFAULT},
                 {"stripes", QN_COMBINE_SUM, QN_STRIPED},
                 {"least", QN_COMBINE_MIN, QN_ORDER_DEFAULT},
                 {"most", QN_COMBINE_MAX, QN_ORDER_DEFAULT}};
    for (size_t n = 0; n < sizeof words / sizeof *words; n++)
        if (take(s, words[n].word)) {
            reduction(s, words[n].combine, words[n].order);
            return true;
        }
    return false;
}

static void statement(body *s)
{
    if (is_reduction(s))
        return;
    if (take(s, "real")) {
        size_t n;
        const char *text = new_name(s, &n);
        need(s, "=");
        define(s, text, n, expression(s));
        return;
    }
    const char *letter = *s->at ? strchr(letters, *s->at) : NULL;
    int array = letter ? (int)(letter - letters) : MOST_ARRAYS;
    qn_val index[MAX_RANK];
    if (array >= MOST_ARRAYS / 2) {
        s->is_wrong = true;
        return;
    }
    s->at++;
    indices(s, array, index);
    need(s, "=");
    qn_store(s->b, s->array[array], s->rank[array], index, expression(s));
}

qn_kernel *bench_body(const bench_body_info *info, qn_error *err)
{
    body s = {.at = info->text,
              .b = qn_builder_new(info->name, QN_CONTRACT),
              .dtype = info->dtype ? info->dtype : QN_F64};
    qn_kernel *k = NULL;
    for (int n = 0; n < info->n_out + info->n_in; n++) {
        int at = n < info->n_out ? n : MOST_ARRAYS / 2 + n - info->n_out;
        char name[2] = {letters[at], 0};
        s.rank[at] = info->ranks ? info->ranks[n] - '0' : info->rank;
        s.array[at] =
            qn_view_param(s.b, name, s.dtype, s.rank[at], n < info->n_out ? 0 : QN_READ_ONLY);
    }
    for (int is_parallel = 0; is_parallel < 2;
         is_parallel++) /* sequential ones are declared first */
        for (int d = 0; d < info->rank; d++) {
            if (is_parallel == (info->sequential >> d & 1))
                continue;
            qn_val begin = qn_index(s.b, info->first);
            qn_val end = qn_sub(s.b, qn_extent(s.b, s.array[0], d), qn_index(s.b, info->last));
            s.index[d] =
                is_parallel ? qn_parallel(s.b, begin, end) : qn_sequential(s.b, begin, end);
        }
    do
        statement(&s);
    while (!s.is_wrong && take(&s, ";"));
    skip(&s);
    if (!s.is_wrong && !*s.at)
        (void)qn_finish(s.b, &k, err);
    else if (err) {
        *err = (qn_error){.status = QN_ERR_PARSE};
        snprintf(err->message, sizeof err->message,
                 "cannot read the body of %s from here on: %.40s", info->name, s.at);
    }
    qn_builder_release(s.b);
    return k;
}
