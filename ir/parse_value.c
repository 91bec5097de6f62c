/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_value.c: names of values, their scopes, and literals of the kernel text. Names are found by
 * hashing. The newest name of a bucket comes first, so a scope ends by cutting the list.
 */
#include "ir/parse.h"

#include <string.h>

enum { NO_SYMBOL = -1 };

/* --------------------------------------------------------------------------------------- values */

static int32_t *bucket_of(symbols *s, uint64_t hash)
{
    return &s->bucket[hash & (uint64_t)(s->capacity - 1)];
}

static bool grow_symbols(parser *p)
{
    symbols *s = &p->symbols;
    int32_t capacity = s->capacity ? 2 * s->capacity : 64;
    symbol *entry = qn__realloc(s->entry, (size_t)capacity * sizeof *entry);
    if (entry)
        s->entry = entry;
    int32_t *bucket = qn__realloc(s->bucket, (size_t)capacity * sizeof *bucket);
    if (bucket)
        s->bucket = bucket;
    if (!entry || !bucket)
        return qn__parse_fail_memory(p);
    s->capacity = capacity;
    for (int32_t i = 0; i < capacity; i++)
        bucket[i] = NO_SYMBOL;
    for (int32_t i = 0; i < s->n; i++) {
        int32_t *head = bucket_of(s, entry[i].hash);
        entry[i].next = *head;
        *head = i;
    }
    return true;
}

static const symbol *find_symbol(symbols *s, const char *text, size_t n, uint64_t hash)
{
    for (int32_t i = s->n ? *bucket_of(s, hash) : NO_SYMBOL; i != NO_SYMBOL; i = s->entry[i].next) {
        const symbol *e = &s->entry[i];
        if (e->hash == hash && e->n == n && memcmp(e->text, text, n) == 0)
            return e;
    }
    return NULL;
}

/** Appends a name that is not known yet. */
static bool enter(parser *p, const symbol *x)
{
    symbols *s = &p->symbols;
    if (s->n == s->capacity && !grow_symbols(p))
        return false;
    int32_t *head = bucket_of(s, x->hash);
    s->entry[s->n] = *x;
    s->entry[s->n].next = *head;
    *head = s->n++;
    return true;
}

/** Gives a value its name, from here to the end of the block. */
bool qn__parse_define(parser *p, const definition *d, qn_val value)
{
    if (!qn__parse_check_builder(p))
        return false;
    int shown = qn__parse_shown_bytes(d->text, d->n), type = (int)qn_type_of(p->b, value);
    if (type != d->dtype)
        return qn__parse_fail_at(p, d->line, d->column, QN_ERR_PARSE,
                                 "%%%.*s is written as %s but is %s", shown, d->text,
                                 qn_dtype_name(d->dtype), qn_dtype_name(type));
    uint64_t hash = qn__hash(d->text, d->n, 0);
    const symbol *other = find_symbol(&p->symbols, d->text, d->n, hash);
    if (other)
        return qn__parse_fail_at(p, d->line, d->column, QN_ERR_PARSE,
                                 "%%%.*s is already defined in line %d", shown, d->text,
                                 (int)other->line);
    return enter(
        p, &(symbol){.text = d->text, .n = d->n, .hash = hash, .line = d->line, .value = value});
}

int32_t qn__parse_find(parser *p, const char *text, size_t n)
{
    const symbol *found = find_symbol(&p->symbols, text, n, qn__hash(text, n, 0));
    return found ? (int32_t)(found - p->symbols.entry) : -1;
}

bool qn__parse_is_new(parser *p, const qn_token *name)
{
    int shown = qn__parse_shown_bytes(name->text, name->n);
    if (name->kind != QN_TOKEN_WORD)
        return FAIL(p, name, "expected a name");
    if (qn__parse_find_parameter(p, name->text, name->n))
        return FAIL(p, name, "\"%.*s\" is a parameter: it cannot be given to another value", shown,
                    name->text);
    int32_t other = qn__parse_find(p, name->text, name->n);
    return other < 0 || FAIL(p, name, "\"%.*s\" is already defined in line %d", shown, name->text,
                             (int)p->symbols.entry[other].line);
}

bool qn__parse_introduce(parser *p, const qn_token *name, qn_val value, bool is_variable)
{
    return qn__parse_check_builder(p) && qn__parse_is_new(p, name) &&
           enter(p, &(symbol){.text = name->text,
                              .n = name->n,
                              .hash = qn__hash(name->text, name->n, 0),
                              .line = name->line,
                              .is_variable = is_variable,
                              .value = value});
}

bool qn__parse_define_all(parser *p, const definitions *d, const qn_val *v)
{
    for (int i = 0; i < d->n; i++)
        if (!qn__parse_define(p, &d->d[i], v[i]))
            return false;
    return qn__parse_check_builder(p);
}

/** Ends the scopes of all names after the first n. */
void qn__parse_end_scope(parser *p, int32_t n)
{
    symbols *s = &p->symbols;
    while (s->n > n) {
        symbol *e = &s->entry[--s->n];
        *bucket_of(s, e->hash) = e->next;
    }
}

bool qn__parse_value(parser *p, qn_val *value)
{
    const qn_token *t = &p->token;
    if (t->kind != QN_TOKEN_VALUE)
        return qn__parse_fail_expected(p, "a value");
    const symbol *s = find_symbol(&p->symbols, t->text, t->n, qn__hash(t->text, t->n, 0));
    if (!s)
        return FAIL(p, t, "no value %%%.*s is defined here", qn__parse_shown_bytes(t->text, t->n),
                    t->text);
    *value = s->value;
    qn__parse_advance(p);
    return true;
}

int qn__parse_type_of(parser *p, const qn_token *t)
{
    const symbol *s = t->kind == QN_TOKEN_VALUE
                          ? find_symbol(&p->symbols, t->text, t->n, qn__hash(t->text, t->n, 0))
                          : NULL;
    return s ? (int)qn_type_of(p->b, s->value) : QN_VOID;
}

/** value ("," value)* */
bool qn__parse_values(parser *p, values *v)
{
    do {
        if (v->n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d values", QN_MAX_CARRIED);
        if (!qn__parse_value(p, &v->v[v->n]))
            return false;
        v->n++;
    } while (qn__parse_accept_symbol(p, ','));
    return true;
}

/** "%name: dtype" */
bool qn__parse_typed(parser *p, definition *d)
{
    if (p->token.kind != QN_TOKEN_VALUE)
        return qn__parse_fail_expected(p, "a value to define");
    *d = (definition){p->token.text, (uint32_t)p->token.n, p->token.line, p->token.column, QN_VOID};
    qn__parse_advance(p);
    return qn__parse_expect_symbol(p, ':') && qn__parse_dtype(p, &d->dtype);
}

bool qn__parse_definitions(parser *p, definitions *d)
{
    d->n = 0;
    if (p->token.kind != QN_TOKEN_VALUE)
        return true;
    do {
        if (d->n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d values", QN_MAX_CARRIED);
        if (!qn__parse_typed(p, &d->d[d->n]))
            return false;
        d->n++;
    } while (qn__parse_accept_symbol(p, ','));
    return qn__parse_expect_symbol(p, '=');
}

/* ---------------------------------------------------------------------------------- expressions */

/** Fails at a literal: `literal "-300" does not fit (i8)`. */
static bool fail_literal(parser *p, bool is_negative, int dtype, const char *problem)
{
    return FAIL(p, &p->token, "literal \"%s%.*s\" %s (%s)", is_negative ? "-" : "",
                qn__parse_shown_bytes(p->token.text, p->token.n), p->token.text, problem,
                qn_dtype_name(dtype));
}

/** "(" hex bits ")" behind "nan" */
static bool parse_nan(parser *p, int dtype, uint64_t *bits)
{
    if (!qn__parse_expect_symbol(p, '('))
        return false;
    if (p->token.kind != QN_TOKEN_NUMBER)
        return qn__parse_fail_expected(p, "hex bits");
    const char *problem = qn__read_nan(&p->token, dtype, bits);
    if (problem)
        return fail_literal(p, false, dtype, problem);
    qn__parse_advance(p);
    return qn__parse_expect_symbol(p, ')');
}

bool qn__parse_literal(parser *p, int dtype, uint64_t *bits)
{
    int class = qn__dtype_class(dtype);
    if (class == QN_CLASS_B) {
        *bits = qn__parse_is_word(p, "true");
        return qn__parse_accept_word(p, "true") || qn__parse_accept_word(p, "false") ||
               qn__parse_fail_expected(p, "'true' or 'false'");
    }
    bool is_negative = qn__parse_accept_symbol(p, '-');
    if (class == QN_CLASS_F && qn__parse_accept_word(p, "inf")) {
        *bits = qn__float_format(dtype).infinity;
        *bits |= (uint64_t)is_negative << (qn__dtype_width(dtype) - 1);
        return true;
    }
    if (class == QN_CLASS_F && !is_negative && qn__parse_accept_word(p, "nan"))
        return parse_nan(p, dtype, bits);
    if (p->token.kind != QN_TOKEN_NUMBER)
        return qn__parse_fail_expected(p, class == QN_CLASS_F ? "a number" : "an integer");
    const char *problem = class == QN_CLASS_F
                              ? qn__read_float(&p->token, is_negative, dtype, bits)
                              : qn__read_integer(&p->token, is_negative, dtype, bits);
    if (problem)
        return fail_literal(p, is_negative, dtype, problem);
    qn__parse_advance(p);
    return true;
}

/** Whether the next token is a value by its name, and a whole operand: text of the printer has no
 *  other ones. */
static bool is_plain(const parser *p)
{
    const char *c = p->lexer.at;
    while (c < p->lexer.end && (*c == ' ' || *c == '\n' || *c == '\r' || *c == '\t'))
        c++;
    return p->token.kind == QN_TOKEN_VALUE && c < p->lexer.end && *c && strchr(",;]){\"", *c);
}

bool qn__parse_given(parser *p, int dtype, const char *what, qn_val *v)
{
    return is_plain(p) ? qn__parse_value(p, v) : qn__parse_expression(p, dtype, what, v);
}

bool qn__parse_index(parser *p, values *index)
{
    if (!qn__parse_expect_symbol(p, '['))
        return false;
    if (qn__parse_accept_symbol(p, ']'))
        return true;
    do {
        if (index->n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d values", QN_MAX_CARRIED);
        if (!qn__parse_given(p, INDEX_TYPE, "an index", &index->v[index->n]))
            return false;
        index->n++;
    } while (qn__parse_accept_symbol(p, ','));
    return qn__parse_expect_symbol(p, ']');
}
