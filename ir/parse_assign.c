/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_assign.c: assignments of kernel text for people: names of values ("t = a + b"), stores
 * ("y[i] = t") and updates ("y[i] += t", "t *= 2"). A name may be assigned again: its values in the
 * blocks of an `if` or loop become results and carried values (parse_variables.c).
 */
#include "ir/build/builder.h"
#include "ir/expression.h"

#include <stdio.h>
#include <string.h>

/* What is done between the old and the new value; 0: nothing. */
static const struct {
    const char *text;
    int op;
} updates[] = {
    {"=", 0},          {"+=", QN_OP_add},  {"-=", QN_OP_sub},  {"*=", QN_OP_mul},
    {"/=", QN_OP_div}, {"%=", QN_OP_rem},  {"&=", QN_OP_and},  {"|=", QN_OP_or},
    {"^=", QN_OP_xor}, {"<<=", QN_OP_shl}, {">>=", QN_OP_shr},
};
enum { N_UPDATES = sizeof updates / sizeof updates[0], WHAT_BYTES = 80 };

/** The row of the operator that a token is, or -1. */
static int update_of(const qn_token *t)
{
    for (int i = 0; i < N_UPDATES; i++)
        if (qn__parse_is_operator(t, updates[i].text))
            return i;
    return -1;
}

/** The reducer of an atomic that does what a row says, of -x for a difference; -1: none does. */
static int combine_of(int row)
{
    int op = updates[row].op;
    return op == 0 ? QN_COMBINE_EXCHANGE : op == QN_OP_sub ? QN_COMBINE_SUM : qn__combine_of_op(op);
}

bool qn__parse_is_update(const qn_token *t)
{
    return update_of(t) >= 0;
}

static bool expect_update(parser *p, int *row)
{
    *row = update_of(&p->token);
    if (*row < 0)
        return qn__parse_fail_expected(p, "'=' or an operator such as '+='");
    qn__parse_advance(p);
    return true;
}

bool qn__parse_is_assignment(const parser *p)
{
    if (p->token.kind != QN_TOKEN_WORD && p->token.kind != QN_TOKEN_STRING)
        return false;
    qn_token next = qn__parse_peek(p);
    return update_of(&next) >= 0 || qn__parse_is_operator(&next, "[") ||
           qn__parse_is_operator(&next, ":") || qn__parse_is_operator(&next, ",");
}

/* ---------------------------------------------------------------------------------------- stores
 */

/** view index ["part" number] and the operator of an assignment. */
typedef struct element {
    qn_param view;
    values index;
    int part, dtype, row;
    char what[WHAT_BYTES];
} element;

static bool read_element(parser *p, element *x)
{
    const parameter *a = NULL;
    const qn_token at = p->token;
    int64_t part = -1;
    if (!qn__parse_begin_body(p) || !qn__parse_reference(p, true, &a) ||
        !qn__parse_index(p, &x->index) ||
        (qn__parse_accept_word(p, "part") && !qn__parse_integer(p, QN_I16, &part)) ||
        !expect_update(p, &x->row))
        return false;
    const qn_kernel_parameter *view = &p->b->param[a->view.id - 1];
    int n_parts = qn__n_parts(view->dtype, view->record);
    if (part < -1 || part >= n_parts)
        return FAIL(p, &at, "elements have %d parts, and no part %d", n_parts, (int)part);
    x->view = a->view;
    x->part = (int)part;
    x->dtype = part < 0 ? view->dtype : qn__part_dtype(view->dtype, view->record, (int)part);
    snprintf(x->what, sizeof x->what, "an element of \"%.*s\"",
             qn__parse_shown_bytes(at.text, at.n), at.text);
    return true;
}

/** view index ["part" number] ("=" | "+=" | ...) expression. An update through an atomic view is
 * one atomic update. */
static bool parse_store(parser *p)
{
    element x = {.part = -1};
    qn_val v = {0};
    if (!read_element(p, &x) || !qn__parse_expression(p, x.dtype, x.what, &v))
        return false;
    int n = x.index.n;
    if (updates[x.row].op) {
        qn_val old = x.part < 0 ? qn_load(p->b, x.view, n, x.index.v)
                                : qn__load_part(p->b, x.view, x.part, n, x.index.v);
        v = qn_op(p->b, updates[x.row].op, 2, (const qn_val[]){old, v});
    }
    if (x.part < 0)
        qn_store(p->b, x.view, n, x.index.v, v);
    else
        qn__store_part(p->b, x.view, x.part, n, x.index.v, v);
    return qn__parse_check_builder(p);
}

bool qn__parse_atomic_update(parser *p)
{
    element x = {.part = -1};
    qn_val v = {0};
    qn__parse_advance(p);
    const qn_token at = p->token;
    if (!read_element(p, &x))
        return false;
    if (combine_of(x.row) < 0 || x.part >= 0)
        return FAIL(p, &at,
                    "no atomic does this: atomics are =, +=, -=, &=, |=, ^=; others are updates of "
                    "a view with "
                    "the trait atomic");
    if (!qn__parse_expression(p, x.dtype, x.what, &v))
        return false;
    if (updates[x.row].op == QN_OP_sub)
        v = qn_neg(p->b, v);
    qn_atomic(p->b, combine_of(x.row), x.view, x.index.n, x.index.v, v, (qn_val){0});
    qn__parse_accept_symbol(p, ';');
    return qn__parse_check_builder(p);
}

/* ----------------------------------------------------------------------------------------- names
 */

/** A name that is assigned; its dtype is QN_VOID where it is that of the expression. */
typedef struct target {
    qn_token name;
    int32_t dtype, symbol;
} target;

typedef struct targets {
    int n;
    target t[QN_MAX_CARRIED];
} targets;

static bool read_target(parser *p, target *t)
{
    *t = (target){.name = p->token, .symbol = -1};
    if (p->token.kind != QN_TOKEN_WORD)
        return qn__parse_fail_expected(p, "a name");
    qn__parse_advance(p);
    if (qn__parse_accept_symbol(p, ':'))
        return qn__parse_is_new(p, &t->name) && qn__parse_dtype(p, &t->dtype);
    const char *text = t->name.text;
    const parameter *a = qn__parse_find_parameter(p, text, t->name.n);
    int shown = qn__parse_shown_bytes(text, t->name.n);
    if (a)
        return FAIL(p, &t->name,
                    a->is_view ? "\"%.*s\" is a view: write indices in [ ]"
                               : "\"%.*s\" is a parameter",
                    shown, text);
    t->symbol = qn__parse_find(p, text, t->name.n);
    if (t->symbol < 0)
        return true;
    const symbol *s = &p->symbols.entry[t->symbol];
    t->dtype = (int32_t)qn_type_of(p->b, s->value);
    return s->is_variable ||
           FAIL(p, &t->name, "\"%.*s\" is an index or a value of line %d, and keeps its value",
                shown, text, (int)s->line);
}

/** The values of the expressions behind "=": one for each name, or all results of one function. */
static bool read_values(parser *p, const targets *names, values *v)
{
    do {
        expression e;
        char what[WHAT_BYTES] = "a name";
        const qn_token at = p->token;
        if (!qn__expression_read(p, &e))
            return false;
        int n_results = p->node[e.end - 1].n_results;
        if (v->n + n_results > names->n)
            return FAIL(p, &at, "more values than the %d name%s", names->n,
                        names->n == 1 ? "" : "s");
        const target *t = &names->t[v->n];
        snprintf(what, sizeof what, "\"%.*s\"", qn__parse_shown_bytes(t->name.text, t->name.n),
                 t->name.text);
        if (!qn__expression_settle(p, &e, n_results == 1 ? t->dtype : QN_VOID, what) ||
            !qn__expression_build(p, &e, v))
            return false;
    } while (qn__parse_accept_symbol(p, ','));
    return v->n == names->n ||
           FAIL(p, &p->token, "%d value%s for %d names", v->n, v->n == 1 ? "" : "s", names->n);
}

static bool assign(parser *p, const target *t, qn_val v)
{
    if (t->symbol < 0)
        return qn__parse_introduce(p, &t->name, v, true);
    for (int d = 0; d < p->depth; d++)
        if (p->block[d].is_explicit && t->symbol < p->block[d].scope)
            return FAIL(p, &t->name,
                        "\"%.*s\" is assigned in a block that says what it carries: write for k "
                        "in, while c max n",
                        qn__parse_shown_bytes(t->name.text, t->name.n), t->name.text);
    int type = (int)qn_type_of(p->b, v);
    if (type != t->dtype)
        return FAIL(p, &t->name, "\"%.*s\" is %s and cannot be %s",
                    qn__parse_shown_bytes(t->name.text, t->name.n), t->name.text,
                    qn__type_words(t->dtype), qn__type_words(type));
    p->symbols.entry[t->symbol].value = v;
    return true;
}

/** name ("+=" | ...) expression */
static bool update_name(parser *p, const target *t, int row)
{
    qn_val v = {0};
    char what[WHAT_BYTES];
    snprintf(what, sizeof what, "\"%.*s\"", qn__parse_shown_bytes(t->name.text, t->name.n),
             t->name.text);
    if (t->symbol < 0)
        return FAIL(p, &t->name, "no name %s is known here", what);
    if (!qn__parse_expression(p, t->dtype, what, &v))
        return false;
    v = qn_op(p->b, updates[row].op, 2, (const qn_val[]){p->symbols.entry[t->symbol].value, v});
    return qn__parse_check_builder(p) && assign(p, t, v);
}

/** name [":" dtype] ("," name [":" dtype])* "=" expression ("," expression)* */
static bool parse_names(parser *p)
{
    targets names = {.n = 0};
    values v = {.n = 0};
    int row = 0;
    do {
        if (names.n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d names", QN_MAX_CARRIED);
        if (!read_target(p, &names.t[names.n++]))
            return false;
    } while (qn__parse_accept_symbol(p, ','));
    const qn_token at = p->token;
    if (!expect_update(p, &row))
        return false;
    if (updates[row].op)
        return names.n == 1 ? update_name(p, &names.t[0], row)
                            : FAIL(p, &at, "%d names are updated at once", names.n);
    if (!read_values(p, &names, &v))
        return false;
    for (int i = 0; i < names.n; i++)
        if (!assign(p, &names.t[i], v.v[i]))
            return false;
    return true;
}

bool qn__parse_assignment(parser *p)
{
    qn_token next = qn__parse_peek(p);
    bool is_store = qn__parse_is_operator(&next, "[") || p->token.kind == QN_TOKEN_STRING;
    if (!(is_store ? parse_store(p) : parse_names(p)))
        return false;
    qn__parse_accept_symbol(p, ';');
    return true;
}
