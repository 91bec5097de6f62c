/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c: reads kernel text (docs/kernel-text.md) by driving the public builder, so that every
 * rule of kernels is checked in one place. The parser itself knows the grammar, the names and their
 * scopes, and that each value has the type written at it. This file holds errors, tokens
 * and the frame of a kernel; parse_parameter.c holds parameters, parse_value.c names of values and
 * literals, parse_statement.c and parse_block.c the statements of the printer, parse_assign.c and
 * parse_domain.c those that people write, expression_*.c expressions. The first error ends the
 * parse.
 */
#include "ir/build/builder.h"
#include "ir/parse.h"
#include "quern/embed.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 40 };

/* --------------------------------------------------------------------------------------- errors */

bool qn__parse_fail_at(parser *p, int line, int column, qn_status status, const char *format, ...)
{
    char message[QN_MESSAGE_BYTES];
    va_list ap;
    va_start(ap, format);
    qn__vformat(message, sizeof message, format, ap);
    va_end(ap);
    p->status = qn__fail_line(p->err, status, line, "%s: line %d, column %d: %s", p->who, line,
                              column, message);
    return false;
}

/** The bytes of a text to show in a message: some, never half a UTF-8 character. */
int qn__parse_shown_bytes(const char *text, size_t n)
{
    if (n <= SHOWN_BYTES)
        return (int)n;
    int cut = SHOWN_BYTES;
    while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
        cut--;
    return cut;
}

/** Fails at the next token: `expected ':' but found "f32"`. */
bool qn__parse_fail_expected(parser *p, const char *what)
{
    const qn_token *t = &p->token;
    int n = qn__parse_shown_bytes(t->text, t->n);
    switch (t->kind) {
    case QN_TOKEN_END:
        return FAIL(p, t, "expected %s but found the end of the text", what);
    case QN_TOKEN_VALUE:
        return FAIL(p, t, "expected %s but found \"%%%.*s\"", what, n, t->text);
    case QN_TOKEN_STRING:
        return FAIL(p, t, "expected %s but found the string \"%.*s\"", what, n, t->text);
    case QN_TOKEN_BAD:
        if (*t->problem)
            return FAIL(p, t, "%s", t->problem);
        if (*t->text > ' ' && *t->text < 0x7f)
            return FAIL(p, t, "expected %s but found the character '%c'", what, *t->text);
        return FAIL(p, t, "expected %s but found the byte 0x%02x", what,
                    (unsigned)(unsigned char)*t->text);
    default:
        return FAIL(p, t, "expected %s but found \"%.*s\"", what, n, t->text);
    }
}

bool qn__parse_fail_memory(parser *p)
{
    return qn__parse_fail_at(p, p->token.line, p->token.column, QN_ERR_MEMORY, "out of memory");
}

/** False with the builder's own status and message, at the statement, if a builder call failed. */
bool qn__parse_check_builder(parser *p)
{
    if (qn_builder_status(p->b, NULL) == QN_OK)
        return true;
    qn_error e = {0};
    qn_status status = qn_builder_status(p->b, &e);
    return qn__parse_fail_at(p, p->statement.line, p->statement.column, status, "%s", e.message);
}

/* --------------------------------------------------------------------------------------- tokens */

void qn__parse_advance(parser *p)
{
    p->last_line = p->token.line;
    p->token = qn__lex(&p->lexer);
}

bool qn__parse_is_symbol(const parser *p, char c)
{
    return p->token.kind == QN_TOKEN_SYMBOL && p->token.n == 1 && *p->token.text == c;
}

bool qn__parse_is_word(const parser *p, const char *word)
{
    return qn__parse_token_is(&p->token, word);
}

bool qn__parse_is_operator(const qn_token *t, const char *text)
{
    return t->kind == QN_TOKEN_SYMBOL && t->n == strlen(text) && memcmp(t->text, text, t->n) == 0;
}

bool qn__parse_token_is(const qn_token *t, const char *word)
{
    return t->kind == QN_TOKEN_WORD && t->n == strlen(word) && memcmp(t->text, word, t->n) == 0;
}

qn_token qn__parse_peek(const parser *p)
{
    qn_lexer ahead = p->lexer;
    return qn__lex(&ahead);
}

bool qn__parse_accept_symbol(parser *p, char c)
{
    bool is_here = qn__parse_is_symbol(p, c);
    if (is_here)
        qn__parse_advance(p);
    return is_here;
}

bool qn__parse_accept_word(parser *p, const char *word)
{
    bool is_here = qn__parse_is_word(p, word);
    if (is_here)
        qn__parse_advance(p);
    return is_here;
}

bool qn__parse_expect_symbol(parser *p, char c)
{
    char what[] = {'\'', c, '\'', 0};
    return qn__parse_accept_symbol(p, c) || qn__parse_fail_expected(p, what);
}

bool qn__parse_expect_word(parser *p, const char *word)
{
    char what[32];
    snprintf(what, sizeof what, "'%s'", word);
    return qn__parse_accept_word(p, word) || qn__parse_fail_expected(p, what);
}

/** The next token as a zero-terminated word; "" if it is none or too long to be a keyword. */
void qn__parse_copy_word(const parser *p, char word[32])
{
    size_t n = p->token.kind == QN_TOKEN_WORD && p->token.n < 32 ? p->token.n : 0;
    memcpy(word, p->token.text, n);
    word[n] = '\0';
}

bool qn__parse_dtype(parser *p, int32_t *dtype)
{
    char word[32];
    qn__parse_copy_word(p, word);
    *dtype = (int32_t)qn_dtype_of_name(word);
    if (*dtype == QN_VOID)
        return qn__parse_fail_expected(p, "a dtype");
    qn__parse_advance(p);
    return true;
}

/** An integer of the text itself: a rank, a dimension, a step. */
bool qn__parse_integer(parser *p, int dtype, int64_t *value)
{
    bool is_negative = qn__parse_accept_symbol(p, '-');
    if (p->token.kind != QN_TOKEN_NUMBER)
        return qn__parse_fail_expected(p, "an integer");
    uint64_t bits = 0;
    const char *problem = qn__read_integer(&p->token, is_negative, dtype, &bits);
    if (problem)
        return FAIL(p, &p->token, "\"%s%.*s\" %s (%s)", is_negative ? "-" : "",
                    qn__parse_shown_bytes(p->token.text, p->token.n), p->token.text, problem,
                    qn_dtype_name(dtype));
    *value = (int64_t)bits;
    qn__parse_advance(p);
    return true;
}

/** Words of a list, each at most once, or-ed together. */
bool qn__parse_words(parser *p, const qn_word *list, uint32_t *bits)
{
    *bits = 0;
    for (const qn_word *w = list; w->text;) {
        if (!qn__parse_is_word(p, w->text)) {
            w++;
            continue;
        }
        if (*bits & w->number)
            return FAIL(p, &p->token, "\"%s\" is written twice", w->text);
        *bits |= w->number;
        qn__parse_advance(p);
        w = list;
    }
    return true;
}

/* -------------------------------------------------------------------------------------- kernels */

/** Skips a list of parameters, which is read once there is a builder; errors are found then. */
static void skip_list(parser *p)
{
    for (int depth = 0; p->token.kind != QN_TOKEN_END && p->token.kind != QN_TOKEN_BAD;) {
        depth += qn__parse_is_symbol(p, '(') - qn__parse_is_symbol(p, ')');
        qn__parse_advance(p);
        if (depth <= 0)
            return;
    }
}

/** The name of a kernel or function with a zero behind it, in p->scratch. */
static bool parse_title(parser *p, const char *what)
{
    const char *name = NULL;
    size_t n = 0;
    if (p->token.kind != QN_TOKEN_STRING && p->token.kind != QN_TOKEN_WORD)
        return qn__parse_fail_expected(p, what);
    bool is_word = p->token.kind == QN_TOKEN_WORD;
    if (!qn__parse_name(p, &name, &n))
        return false;
    if (is_word) {
        p->scratch.n = 0;
        qn__text_bytes(&p->scratch, name, n);
    }
    return !p->scratch.failed || qn__parse_fail_memory(p);
}

bool qn__parse_head(parser *p, qn_builder *make(const char *name, uint32_t flags))
{
    p->statement = p->token;
    uint32_t flags = 0;
    qn__parse_advance(p);
    if (!parse_title(p, make == qn_builder_new ? "the name of the kernel"
                                               : "the name of the function"))
        return false;
    const qn_lexer list = p->lexer;
    const qn_token first = p->token;
    bool has_list = qn__parse_is_symbol(p, '(');
    if (has_list)
        skip_list(p);
    if (!has_list || qn__parse_is_symbol(p, '{') || p->token.kind == QN_TOKEN_WORD)
        if (!qn__parse_words(p, qn__flag_words, &flags))
            return false;
    p->b = make(p->scratch.data, flags);
    if (!p->b)
        return qn__parse_fail_memory(p);
    p->b->is_replay = p->b->keeps_products = p->b->keeps_loads = p->is_canonical;
    if (!qn__parse_check_builder(p))
        return false;
    if (has_list) {
        const qn_lexer behind = p->lexer;
        const qn_token next = p->token;
        p->lexer = list;
        p->token = first;
        if (!qn__parse_parameter_list(p))
            return false;
        p->lexer = behind;
        p->token = next;
    }
    return qn__parse_expect_symbol(p, '{');
}

bool qn__parse_format(parser *p)
{
    int64_t format = 0;
    p->statement = p->token;
    if (!qn__parse_accept_word(p, "format"))
        return true;
    if (!qn__parse_integer(p, QN_I32, &format) || !qn__parse_expect_symbol(p, ';'))
        return false;
    return (format >= 1 && format <= QN_TEXT_FORMAT) ||
           qn__parse_fail_at(p, p->statement.line, p->statement.column, QN_ERR_VERSION,
                             "format %d: this version reads the formats 1 to %d", (int)format,
                             QN_TEXT_FORMAT);
}

/** A whole text with one kernel, which is put at `out`. */
static bool parse_kernel(parser *p, void *out)
{
    if (!qn__parse_format(p) || !qn__parse_definitions_of_functions(p))
        return false;
    if (!qn__parse_is_word(p, "kernel"))
        return qn__parse_fail_expected(p, "'kernel'");
    if (!qn__parse_head(p, qn_builder_new) || !qn__parse_parameters(p))
        return false;
    while (!qn__parse_is_symbol(p, '}'))
        if (!qn__parse_statement(p))
            return false;
    p->statement = p->token;
    qn__parse_advance(p);
    if (p->token.kind != QN_TOKEN_END)
        return qn__parse_fail_expected(p, "the end of the text");
    qn_error e = {0};
    qn_kernel *k = NULL;
    qn_status status = qn_finish(p->b, &k, &e);
    if (status)
        return qn__parse_fail_at(p, p->statement.line, p->statement.column, status, "%s",
                                 e.message);
    *(qn_kernel **)out = k;
    return true;
}

static void release_parser(parser *p)
{
    qn_builder_release(p->b);
    qn__free(p->block);
    for (int i = 0; i < p->n_functions; i++)
        qn_function_release(p->function[i]);
    qn__free(p->node);
    qn__free(p->pending);
    qn__free(p->waiting);
    qn__free(p->built);
    qn__free(p->head);
    qn__parse_free_variables(p);
    qn__free(p->symbols.entry);
    qn__free(p->symbols.bucket);
    qn__text_release(&p->names);
    qn__text_release(&p->scratch);
    qn__free(p);
}

qn_status qn__parse_text(const reading *r, const char *text, size_t text_bytes, void *out,
                         qn_error *err)
{
    if (!text || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", r->who, text ? "out" : "text");
    if (text_bytes > INT32_MAX)
        return qn__fail(err, QN_ERR_LIMIT, "%s: %zu bytes of text, limit %d", r->who, text_bytes,
                        INT32_MAX);
    parser *p = qn__zalloc(1, sizeof *p);
    if (!p)
        return qn__fail(err, QN_ERR_MEMORY, "%s: out of memory", r->who);
    p->who = r->who;
    p->uses = r->uses;
    p->is_math = r->is_math;
    p->is_canonical = r->is_canonical;
    p->err = err;
    qn__lex_start(&p->lexer, text, text_bytes);
    qn__parse_advance(p);
    qn_status status = r->read(p, out) ? QN_OK : p->status;
    release_parser(p);
    return status;
}

qn_status qn_kernel_parse(const char *text, size_t text_bytes, qn_kernel **out, qn_error *err)
{
    return qn__parse_text(&(reading){.who = "qn_kernel_parse", .read = parse_kernel}, text,
                          text_bytes, out, err);
}

qn_status qn_kernel_parse_with(const char *text, size_t text_bytes, const qn_library *uses,
                               qn_kernel **out, qn_error *err)
{
    return qn__parse_text(
        &(reading){.who = "qn_kernel_parse_with", .read = parse_kernel, .uses = uses}, text,
        text_bytes, out, err);
}

qn_status qn__kernel_parse_canonical(const char *text, size_t n, qn_kernel **out, qn_error *err)
{
    return qn__parse_text(
        &(reading){.who = "qn_kernel_parse", .read = parse_kernel, .is_canonical = true}, text, n,
        out, err);
}
