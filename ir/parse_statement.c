/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_statement.c: the statements of the kernel text, one function each, chosen by a table of
 * keywords; those with blocks are in parse_block.c. What is allowed where is the builder's to say.
 */
#include "ir/build/builder.h"
#include "ir/function.h"
#include "ir/parse.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------------------- statements */

bool qn__parse_combine(parser *p, int *combine)
{
    for (*combine = 0; *combine < QN_N_COMBINES; ++*combine)
        if (qn__parse_accept_word(p, qn__combine_name(*combine)))
            return true;
    char expected[NO_COMBINE_BYTES] = "an operation (";
    size_t n = strlen(expected);
    for (int c = 0; c < QN_N_COMBINES && n < sizeof expected; c++)
        n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%s", c ? ", " : "",
                              qn__combine_name(c));
    if (n < sizeof expected)
        snprintf(expected + n, sizeof expected - n, ")");
    return qn__parse_fail_expected(p, expected);
}

static bool parse_const(parser *p, const definitions *d)
{
    uint64_t bits = 0;
    if (qn__dtype_class(d->d[0].dtype) == QN_CLASS_C)
        return FAIL(p, &p->token, "a complex number has no literal: %s is written by parts",
                    qn_dtype_name(d->d[0].dtype));
    return qn__parse_literal(p, d->d[0].dtype, &bits) &&
           qn__parse_define(p, &d->d[0], qn_const_bits(p->b, d->d[0].dtype, bits));
}

/** ["part" number]: -1 where nothing is written, the whole element. */
static bool parse_part(parser *p, int *part)
{
    int64_t value = -1;
    qn_token at = p->token;
    bool is_there = qn__parse_accept_word(p, "part");
    if (is_there && !qn__parse_integer(p, QN_I32, &value))
        return false;
    if (is_there && value < 0)
        return FAIL(p, &at, "part %d is negative", (int)value);
    *part = (int)value;
    return true;
}

static bool parse_param(parser *p, const definitions *d)
{
    const parameter *a = NULL;
    int part = -1;
    if (!qn__parse_reference(p, false, &a) || !parse_part(p, &part))
        return false;
    qn_val v = part < 0 ? a->scalar : qn__value_part(p->b, a->scalar, part);
    return qn__parse_define(p, &d->d[0], v);
}

/** The view and dimension of an extent or lower. */
static bool parse_view_dim(parser *p, qn_param *view, int *dim)
{
    const parameter *a = NULL;
    int64_t value = 0;
    if (!qn__parse_reference(p, true, &a) || !qn__parse_expect_symbol(p, ',') ||
        !qn__parse_integer(p, QN_I32, &value))
        return false;
    *view = a->view;
    *dim = (int)value;
    return true;
}

static bool parse_extent(parser *p, const definitions *d)
{
    qn_param view = {0};
    int dim = 0;
    return parse_view_dim(p, &view, &dim) &&
           qn__parse_define(p, &d->d[0], qn_extent(p->b, view, dim));
}

static bool parse_lower(parser *p, const definitions *d)
{
    qn_param view = {0};
    int dim = 0;
    return parse_view_dim(p, &view, &dim) &&
           qn__parse_define(p, &d->d[0], qn_lower(p->b, view, dim));
}

static bool parse_range(parser *p, qn_val *begin, qn_val *end)
{
    return qn__parse_value(p, begin) && qn__parse_expect_symbol(p, ',') && qn__parse_value(p, end);
}

static bool parse_parallel(parser *p, const definitions *d)
{
    qn_val begin = {0}, end = {0};
    return parse_range(p, &begin, &end) &&
           qn__parse_define(p, &d->d[0], qn_parallel(p->b, begin, end));
}

static bool parse_reduction(parser *p, const definitions *d)
{
    qn_val begin = {0}, end = {0};
    return parse_range(p, &begin, &end) &&
           qn__parse_define(p, &d->d[0], qn_reduction(p->b, begin, end));
}

static bool parse_sequential(parser *p, const definitions *d)
{
    qn_val begin = {0}, end = {0};
    return parse_range(p, &begin, &end) &&
           qn__parse_define(p, &d->d[0], qn_sequential(p->b, begin, end));
}

static bool parse_cast(parser *p, const definitions *d)
{
    qn_val x = {0};
    return qn__parse_value(p, &x) && qn__parse_define(p, &d->d[0], qn_cast(p->b, d->d[0].dtype, x));
}

static bool parse_bitcast(parser *p, const definitions *d)
{
    qn_val x = {0};
    return qn__parse_value(p, &x) &&
           qn__parse_define(p, &d->d[0], qn_bitcast(p->b, d->d[0].dtype, x));
}

static bool parse_lookup(parser *p, const definitions *d)
{
    qn_array array = {0};
    values index = {.n = 0};
    qn_token at = p->token;
    if (!qn__parse_array_name(p, &array) || !qn__parse_index(p, &index))
        return false;
    if (index.n != 1)
        return FAIL(p, &at, "%d indices of a constant array, which has one", index.n);
    return qn__parse_define(p, &d->d[0], qn_lookup(p->b, array, index.v[0]));
}

static bool parse_load(parser *p, const definitions *d)
{
    const parameter *a = NULL;
    values index = {.n = 0};
    int part = -1;
    if (!qn__parse_reference(p, true, &a) || !qn__parse_index(p, &index) || !parse_part(p, &part))
        return false;
    qn_val v = part < 0 ? qn_load(p->b, a->view, index.n, index.v)
                        : qn__load_part(p->b, a->view, part, index.n, index.v);
    return qn__parse_define(p, &d->d[0], v);
}

/** The dtype of a view's elements. */
static int element_of(const parser *p, const parameter *view)
{
    return p->b->param[view->view.id - 1].dtype;
}

static bool parse_store(parser *p, const definitions *d)
{
    const parameter *a = NULL;
    values index = {.n = 0};
    qn_val value = {0};
    int part = -1;
    (void)d;
    if (!qn__parse_reference(p, true, &a) || !qn__parse_index(p, &index) || !parse_part(p, &part) ||
        !qn__parse_expect_symbol(p, ',') ||
        !qn__parse_given(p, part < 0 ? element_of(p, a) : QN_VOID, "the value", &value))
        return false;
    if (part < 0)
        qn_store(p->b, a->view, index.n, index.v, value);
    else
        qn__store_part(p->b, a->view, part, index.n, index.v, value);
    return qn__parse_check_builder(p);
}

static bool parse_atomic(parser *p, const definitions *d)
{
    const parameter *a = NULL;
    values index = {.n = 0};
    qn_val value = {0}, compare = {0};
    int combine = 0;
    if (!qn__parse_combine(p, &combine) || !qn__parse_reference(p, true, &a) ||
        !qn__parse_index(p, &index) || !qn__parse_expect_symbol(p, ',') ||
        !qn__parse_given(p, element_of(p, a), "the value", &value))
        return false;
    if (qn__parse_accept_symbol(p, ',') &&
        !qn__parse_given(p, element_of(p, a), "the value", &compare))
        return false;
    qn_val old = qn_atomic(p->b, combine, a->view, index.n, index.v, value, compare);
    return qn__parse_define_all(p, d, &old);
}

/** string [values]: the message is the caller's, with its final zero. */
static bool parse_message(parser *p, qn_text *message, values *shown)
{
    if (p->token.kind != QN_TOKEN_STRING)
        return qn__parse_fail_expected(p, "a message in quotes");
    qn__lex_decode(&p->token, message);
    qn__text_bytes(message, "", 1);
    qn__parse_advance(p);
    bool is_good = !message->failed || qn__parse_fail_memory(p);
    if (is_good && !qn__parse_is_symbol(p, ';'))
        is_good = qn__parse_expressions(p, shown);
    return is_good;
}

/** "assert" condition string [values] */
static bool parse_assert(parser *p, const definitions *d)
{
    qn_val condition = {0};
    values shown = {.n = 0};
    qn_text message = {0};
    (void)d;
    bool is_good = qn__parse_given(p, QN_BOOL, "the condition", &condition) &&
                   parse_message(p, &message, &shown);
    if (is_good) {
        qn_assert(p->b, condition, message.data, shown.n, shown.v);
        is_good = qn__parse_check_builder(p);
    }
    qn__text_release(&message);
    return is_good;
}

/** "print" string [values] */
static bool parse_print(parser *p, const definitions *d)
{
    values shown = {.n = 0};
    qn_text message = {0};
    (void)d;
    bool is_good = parse_message(p, &message, &shown);
    if (is_good) {
        qn_print(p->b, message.data, shown.n, shown.v);
        is_good = qn__parse_check_builder(p);
    }
    qn__text_release(&message);
    return is_good;
}

bool qn__parse_is_literal(const parser *p)
{
    return p->token.kind == QN_TOKEN_NUMBER || qn__parse_is_symbol(p, '-') ||
           qn__parse_is_word(p, "inf") || qn__parse_is_word(p, "nan") ||
           qn__parse_is_word(p, "true") || qn__parse_is_word(p, "false");
}

bool qn__parse_operand(parser *p, int dtype, qn_val *v)
{
    uint64_t bits = 0;
    if (dtype == QN_VOID || qn__dtype_class(dtype) == QN_CLASS_C || !qn__parse_is_literal(p))
        return qn__parse_value(p, v);
    if (!qn__parse_literal(p, dtype, &bits))
        return false;
    *v = qn_const_bits(p->b, dtype, bits);
    return true;
}

/** The dtype of a literal behind the operands `args` of an op: QN_VOID where no literal may stand.
 */
static int dtype_of_operand(parser *p, const definitions *d, int op, const values *args)
{
    int rule = qn__op_info[op].rule;
    if (args->n == 0 && rule != QN_RULE_SAME)
        return QN_VOID;
    return rule == QN_RULE_COMPARE ? (int)qn_type_of(p->b, args->v[0]) : d->d[0].dtype;
}

/** operand ("," operand)* */
static bool parse_op(parser *p, const definitions *d, int op)
{
    values args = {.n = 0};
    do {
        if (args.n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d operands", QN_MAX_CARRIED);
        if (!qn__parse_operand(p, dtype_of_operand(p, d, op, &args), &args.v[args.n]))
            return false;
        args.n++;
    } while (qn__parse_accept_symbol(p, ','));
    return qn__parse_define(p, &d->d[0], qn_op(p->b, op, args.n, args.v));
}

/* ----------------------------------------------------------------------------------- the grammar
 */

/** The statements that are no ops of the table, and how many values they define. */
static const struct {
    const char *word;
    int least, most;
    bool (*parse)(parser *, const definitions *);
} forms[] = {
    {"const", 1, 1, parse_const},
    {"param", 1, 1, parse_param},
    {"extent", 1, 1, parse_extent},
    {"lower", 1, 1, parse_lower},
    {"parallel", 1, 1, parse_parallel},
    {"reduction", 1, 1, parse_reduction},
    {"sequential", 1, 1, parse_sequential},
    {"cast", 1, 1, parse_cast},
    {"bitcast", 1, 1, parse_bitcast},
    {"load", 1, 1, parse_load},
    {"store", 0, 0, parse_store},
    {"atomic", 0, 1, parse_atomic},
    {"if", 0, QN_MAX_CARRIED, qn__parse_if},
    {"for", 0, QN_MAX_CARRIED, qn__parse_for},
    {"while", 0, QN_MAX_CARRIED, qn__parse_while},
    {"reduce", 1, 1, qn__parse_reduce},
    {"lookup", 1, 1, parse_lookup},
    {"call", 1, QN_MAX_CARRIED, qn__parse_call},
    {"assert", 0, 0, parse_assert},
    {"print", 0, 0, parse_print},
};

/** Whether a statement may define this many values. */
static bool check_count(parser *p, const char *word, int n, int least, int most)
{
    if (n >= least && n <= most)
        return true;
    return FAIL(p, &p->statement, "'%s' defines %s, not %d", word,
                most == 0 ? "no value" : "one value", n);
}

/** Fails at a word that begins no statement, with the nearest one that does. */
static bool fail_unknown(parser *p, bool has_values)
{
    static const char *const more[] = {"view", "scalar", "array", "yield", "return"};
    const qn_token *t = &p->token;
    qn_nearest near = {.text = t->text, .n = t->kind == QN_TOKEN_WORD ? t->n : 0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        qn__nearest_add(&near, "", forms[i].word);
    for (int op = 1; op < QN_N_TABLE_OPS; op++)
        qn__nearest_add(&near, "", qn__op_info[op].name);
    qn__near_math(&near);
    for (size_t i = 0; !has_values && i < sizeof more / sizeof *more; i++)
        qn__nearest_add(&near, "", more[i]);
    qn__parse_near_functions(p, "call ", &near);
    if (!near.best || (near.distance == 0 && !*near.prefix))
        return qn__parse_fail_expected(p, has_values ? "an op" : "a statement or '}'");
    return FAIL(p, t, "unknown %s \"%.*s\": did you mean \"%s%s\"?",
                has_values ? "op" : "statement", (int)t->n, t->text, near.prefix, near.best);
}

/** "atomic" view "[" */
static bool is_atomic_update(const parser *p)
{
    qn_lexer ahead = p->lexer;
    qn_token view = qn__lex(&ahead), bracket = qn__lex(&ahead);
    return qn__parse_is_word(p, "atomic") &&
           (view.kind == QN_TOKEN_WORD || view.kind == QN_TOKEN_STRING) &&
           qn__parse_is_operator(&bracket, "[");
}

/** The statements that are not those of the printer: whether one begins here, and how it is read.
 */
static const struct {
    bool (*is_here)(const parser *);
    bool (*parse)(parser *);
} readable[] = {{qn__parse_is_assignment, qn__parse_assignment},
                {is_atomic_update, qn__parse_atomic_update},
                {qn__parse_is_domain, qn__parse_domain},
                {qn__parse_is_loop, qn__parse_loop},
                {qn__parse_is_repeat, qn__parse_repeat}};

/** A statement, or the head of one with blocks, up to the "{". */
static bool begin_statement(parser *p)
{
    p->statement = p->token;
    if (p->is_complete)
        return qn__parse_fail_expected(p,
                                       "'}', since nothing stands behind the block of 'for all',");
    bool is_word = p->token.kind == QN_TOKEN_WORD || p->token.kind == QN_TOKEN_STRING;
    for (size_t i = 0; is_word && !p->is_canonical && i < sizeof readable / sizeof *readable; i++)
        if (readable[i].is_here(p))
            return readable[i].parse(p);
    definitions d;
    char word[32];
    int depth = p->depth;
    if (!qn__parse_definitions(p, &d))
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (qn__parse_accept_word(p, forms[i].word))
            return check_count(p, forms[i].word, d.n, forms[i].least, forms[i].most) &&
                   forms[i].parse(p, &d) && (p->depth > depth || qn__parse_expect_symbol(p, ';'));
    qn__parse_copy_word(p, word);
    int op = qn_op_of_name(word);
    qn_math_word math = op == 0 ? qn__math_word(word) : QN_MATH_NONE;
    if (math != QN_MATH_NONE) {
        qn__parse_advance(p);
        return (math == QN_MATH_KEYWORD ? qn__parse_math_call : qn__parse_named_math)(p, &d,
                                                                                      word) &&
               qn__parse_expect_symbol(p, ';');
    }
    if (op == 0)
        return fail_unknown(p, d.n > 0);
    qn__parse_advance(p);
    return check_count(p, word, d.n, 1, 1) && parse_op(p, &d, op) &&
           qn__parse_expect_symbol(p, ';');
}

/** The next statement, yield or end of the innermost block. */
static bool parse_in_block(parser *p)
{
    values yield = {.n = 0};
    if (qn__parse_accept_word(p, "yield") && !qn__parse_yield(p, &yield))
        return false;
    return qn__parse_is_symbol(p, '}') ? qn__parse_close_block(p, &yield) : begin_statement(p);
}

bool qn__parse_statement(parser *p)
{
    int depth = p->depth;
    if (!begin_statement(p))
        return false;
    while (p->depth > depth)
        if (!parse_in_block(p))
            return false;
    return true;
}
