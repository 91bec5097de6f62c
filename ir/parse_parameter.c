/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_parameter.c: parameters in the kernel text, one a statement or in a list behind the name of
 * the kernel: views and scalars with traits and pins, constant arrays, and their names.
 */
#include "ir/build/builder.h"
#include "ir/parse.h"

#include <string.h>

/** An identifier or string: its bytes, valid until the next name. */
bool qn__parse_name(parser *p, const char **text, size_t *n)
{
    if (p->token.kind != QN_TOKEN_WORD && p->token.kind != QN_TOKEN_STRING)
        return qn__parse_fail_expected(p, "a name");
    *text = p->token.text;
    *n = p->token.n;
    if (p->token.kind == QN_TOKEN_STRING) {
        p->scratch.n = 0;
        qn__text_bytes(&p->scratch, "", 0);
        qn__lex_decode(&p->token, &p->scratch);
        if (p->scratch.failed)
            return qn__parse_fail_memory(p);
        *text = p->scratch.data;
        *n = p->scratch.n;
    }
    qn__parse_advance(p);
    return true;
}

const parameter *qn__parse_find_parameter(const parser *p, const char *name, size_t n)
{
    for (int i = 0; i < p->n_params; i++)
        if (p->param[i].name_bytes == n && memcmp(p->names.data + p->param[i].name, name, n) == 0)
            return &p->param[i];
    return NULL;
}

/** The name of a declared parameter of the wanted kind. */
bool qn__parse_reference(parser *p, bool is_view, const parameter **out)
{
    const char *name = NULL;
    size_t n = 0;
    qn_token at = p->token;
    if (!qn__parse_name(p, &name, &n))
        return false;
    *out = qn__parse_find_parameter(p, name, n);
    int shown = qn__parse_shown_bytes(name, n);
    if (!*out)
        return FAIL(p, &at, "no parameter \"%.*s\" is declared", shown, name);
    if ((*out)->is_array)
        return FAIL(p, &at, "\"%.*s\" is a constant array, not a %s", shown, name,
                    is_view ? "view" : "scalar");
    if ((*out)->is_view != is_view)
        return FAIL(p, &at, "parameter \"%.*s\" is a %s, not a %s", shown, name,
                    is_view ? "scalar" : "view", is_view ? "view" : "scalar");
    return true;
}

bool qn__parse_array_name(parser *p, qn_array *out)
{
    const char *name = NULL;
    size_t n = 0;
    qn_token at = p->token;
    if (!qn__parse_name(p, &name, &n))
        return false;
    const parameter *a = qn__parse_find_parameter(p, name, n);
    if (!a || !a->is_array)
        return FAIL(p, &at, "no constant array \"%.*s\" is declared",
                    qn__parse_shown_bytes(name, n), name);
    *out = a->array;
    return true;
}

/** bytes "align" alignment "{" dtype offset ("," dtype offset)* "}", behind "record" */
static bool parse_record(parser *p, qn_record **out)
{
    qn_field field[QN_MAX_FIELDS] = {{0}};
    int64_t bytes = 0, align = 0;
    int n = 0;
    qn_error e = {0};
    if (!qn__parse_integer(p, QN_I32, &bytes) || !qn__parse_expect_word(p, "align") ||
        !qn__parse_integer(p, QN_I32, &align) || !qn__parse_expect_symbol(p, '{'))
        return false;
    do {
        if (n == QN_MAX_FIELDS)
            return FAIL(p, &p->token, "more than %d fields", QN_MAX_FIELDS);
        if (!qn__parse_dtype(p, &field[n].dtype) || !qn__parse_integer(p, QN_I32, &field[n].offset))
            return false;
        if (field[n].offset < 0)
            return FAIL(p, &p->statement, "offset %d of field %d is negative", (int)field[n].offset,
                        n);
        n++;
    } while (qn__parse_accept_symbol(p, ','));
    if (!qn__parse_expect_symbol(p, '}'))
        return false;
    if (qn_record_new(n, field, bytes, align == 1 ? QN_PACKED : 0, out, &e))
        return FAIL(p, &p->statement, "%s", e.message);
    return qn_record_alignment(*out) == align ||
           FAIL(p, &p->statement, "a record of these fields is aligned to %d or 1, not %d",
                (int)qn_record_alignment(*out), (int)align);
}

/** A dtype, or for views a record type in *record. */
static bool parse_element(parser *p, bool is_view, int32_t *dtype, qn_record **record)
{
    *dtype = QN_RECORD;
    if (is_view && qn__parse_accept_word(p, "record"))
        return parse_record(p, record);
    return qn__parse_dtype(p, dtype);
}

/** ["extent" d | "stride" d | "lower" d] ("constexpr" | "dynamic" | "multiple_of" n): of a scalar
 * without the first part. */
static bool parse_pin(parser *p, bool is_view)
{
    static const char *const kinds[] = {"extent", "stride", "lower"};
    qn_fact_pin pin = {.param = p->n_declared - 1, .of = QN_PIN_SCALAR, .as = QN_PIN_MULTIPLE};
    int64_t dim = 0;
    for (int of = 0; of < 3 && is_view; of++)
        if (qn__parse_is_word(p, kinds[of]))
            pin.of = of;
    if (is_view && pin.of == QN_PIN_SCALAR)
        return FAIL(p, &p->token, "expected \"extent\", \"stride\" or \"lower\"");
    if (is_view)
        qn__parse_advance(p);
    if (is_view && !qn__parse_integer(p, QN_I32, &dim))
        return false;
    pin.dim = (int32_t)dim;
    if (qn__parse_is_word(p, "constexpr"))
        pin.as = QN_PIN_CONSTANT;
    else if (qn__parse_is_word(p, "dynamic"))
        pin.as = QN_PIN_DYNAMIC;
    else if (!qn__parse_is_word(p, "multiple_of"))
        return FAIL(p, &p->token, "expected \"constexpr\", \"dynamic\" or \"multiple_of\"");
    qn__parse_advance(p);
    if (pin.as == QN_PIN_MULTIPLE && !qn__parse_integer(p, QN_I64, &pin.multiple))
        return false;
    qn_builder_pin(p->b, &pin);
    return qn__parse_check_builder(p);
}

/** ["{" pin ("," pin)* "}"] */
static bool parse_pins(parser *p, bool is_view)
{
    bool is_good = qn__parse_check_builder(p);
    if (is_good && qn__parse_accept_symbol(p, '{')) {
        do
            is_good = parse_pin(p, is_view);
        while (is_good && qn__parse_accept_symbol(p, ','));
        is_good = is_good && qn__parse_expect_symbol(p, '}');
    }
    return is_good;
}

/** "[" (rank | ","*) "]": "[,]" is rank 2. */
static bool parse_rank(parser *p, int64_t *rank)
{
    if (!qn__parse_expect_symbol(p, '['))
        return false;
    if (p->token.kind == QN_TOKEN_NUMBER ||
        qn__parse_is_symbol(p, '-')) /* the builder refuses negative ones */
        return qn__parse_integer(p, QN_I32, rank) && qn__parse_expect_symbol(p, ']');
    for (*rank = 1; qn__parse_accept_symbol(p, ',');)
        ++*rank;
    return qn__parse_expect_symbol(p, ']');
}

/** ":" element "[" rank "]" trait* [pins] of a view, ":" dtype [pins] of a scalar. */
static bool declare_as(parser *p, parameter *a, qn_record **record)
{
    int32_t dtype = QN_VOID;
    int64_t rank = 0;
    uint32_t traits = 0;
    if (!qn__parse_expect_symbol(p, ':') || !parse_element(p, a->is_view, &dtype, record))
        return false;
    if (a->is_view && (!parse_rank(p, &rank) || !qn__parse_words(p, qn__trait_words, &traits)))
        return false;
    const char *name = p->names.data + a->name;
    if (*record)
        a->view = qn_record_param(p->b, name, *record, (int)rank, traits);
    else if (a->is_view)
        a->view = qn_view_param(p->b, name, dtype, (int)rank, traits);
    else
        a->scalar = qn_scalar_param(p->b, name, dtype);
    return parse_pins(p, a->is_view);
}

static bool declare(parser *p, parameter *a)
{
    qn_record *record = NULL;
    bool is_declared = declare_as(p, a, &record);
    qn_record_release(record);
    return is_declared;
}

/** ":" dtype "=" literal ("," literal)* of a constant array. */
static bool declare_array(parser *p, parameter *a)
{
    int32_t dtype = QN_VOID, n = 0;
    qn_text elements = {0};
    bool is_good = qn__parse_expect_symbol(p, ':') && qn__parse_dtype(p, &dtype) &&
                   qn__parse_expect_symbol(p, '=');
    if (is_good && qn__dtype_class(dtype) == QN_CLASS_C)
        is_good = FAIL(p, &p->statement,
                       "a constant array of %s: give real and imaginary parts an array each",
                       qn_dtype_name(dtype));
    do {
        uint64_t bits = 0, element = 0;
        is_good = is_good && qn__parse_literal(p, dtype, &bits);
        if (is_good && n++ == QN_MAX_ARRAY_ELEMENTS)
            is_good = FAIL(p, &p->token, "more than %d elements", QN_MAX_ARRAY_ELEMENTS);
        qn__store_element(dtype, &element, bits);
        qn__text_bytes(&elements, &element, (size_t)qn_dtype_bytes(dtype));
    } while (is_good && qn__parse_accept_symbol(p, ','));
    if (is_good && elements.failed)
        is_good = qn__parse_fail_memory(p);
    if (is_good)
        a->array = qn_const_array(p->b, dtype, n, elements.data);
    qn__text_release(&elements);
    return is_good && qn__parse_check_builder(p);
}

/** A name and what it is, up to what ends a declaration. */
static bool parse_parameter(parser *p, parameter a)
{
    int32_t *count = a.is_array ? &p->n_arrays : &p->n_declared,
            limit = a.is_array ? QN_MAX_ARRAYS : QN_MAX_PARAMS;
    if (*count == limit)
        return FAIL(p, &p->statement, "more than %d %s", (int)limit,
                    a.is_array ? "constant arrays" : "parameters");
    ++*count;
    const char *name = NULL;
    qn_token at = p->token;
    a.name = p->names.n;
    if (!qn__parse_name(p, &name, &a.name_bytes))
        return false;
    if (qn__parse_find_parameter(p, name, a.name_bytes))
        return FAIL(p, &at, "parameter \"%.*s\" is already declared",
                    qn__parse_shown_bytes(name, a.name_bytes), name);
    qn__text_bytes(&p->names, name, a.name_bytes);
    qn__text_bytes(&p->names, "", 1);
    if (p->names.failed)
        return qn__parse_fail_memory(p);
    if (!(a.is_array ? declare_array(p, &a) : declare(p, &a)))
        return false;
    p->param[p->n_params++] = a;
    return true;
}

/** "view" ..., "scalar" ... or "array" ..., with a ";" */
static bool parse_declaration(parser *p)
{
    parameter a = {.is_view = qn__parse_is_word(p, "view"),
                   .is_array = qn__parse_is_word(p, "array")};
    p->statement = p->token;
    qn__parse_advance(p);
    return parse_parameter(p, a) && qn__parse_expect_symbol(p, ';');
}

/** Whether a list of parameters goes on with a view: name ":" "record", or name ":" dtype "[". */
static bool is_view_ahead(const parser *p)
{
    qn_lexer ahead = p->lexer;
    qn__lex(&ahead);
    qn_token type = qn__lex(&ahead), next = qn__lex(&ahead);
    return qn__parse_token_is(&type, "record") || qn__parse_is_operator(&next, "[");
}

/** "(" [name ":" type ("," name ":" type)*] ")" */
bool qn__parse_parameter_list(parser *p)
{
    if (!qn__parse_expect_symbol(p, '('))
        return false;
    if (qn__parse_accept_symbol(p, ')'))
        return true;
    do {
        p->statement = p->token;
        if (!parse_parameter(p, (parameter){.is_view = is_view_ahead(p)}))
            return false;
    } while (qn__parse_accept_symbol(p, ','));
    return qn__parse_expect_symbol(p, ')');
}

bool qn__parse_parameters(parser *p)
{
    while (qn__parse_is_word(p, "view") || qn__parse_is_word(p, "scalar") ||
           qn__parse_is_word(p, "array"))
        if (!parse_declaration(p))
            return false;
    return true;
}
