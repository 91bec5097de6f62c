/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_domain.c: ranges of kernel text for people: the domain ("for all i, j in y"), loops ("for k
 * in a .. b", "while c max n"), and the ranges of reductions ("sum k in 0 .. n of ..."). Dimensions
 * stand before all else in a kernel, so those of reductions are found ahead where the body begins.
 * A reduction whose range is known in the body only is a loop, which combines in the order of its
 * index.
 */
#include "ir/build/builder.h"
#include "ir/expression.h"
#include "quern/embed.h"

#include <string.h>

/* Reductions of a kernel or function, and tokens of the bounds of one that has dimensions. */
enum { MOST_REDUCTIONS = 512, MOST_BOUND_TOKENS = 500 };

/** name ("," name)* "in" range, each name with its range. */
typedef struct bindings {
    int n;
    qn_token name[QN_MAX_RANK];
    qn_val begin[QN_MAX_RANK], end[QN_MAX_RANK];
} bindings;

/* --------------------------------------------------------------------------------------- ranges */

/** The view whose name the next token is, without indices behind it; or NULL. */
static const parameter *view_ahead(const parser *p)
{
    qn_token next = qn__parse_peek(p);
    bool is_name = p->token.kind == QN_TOKEN_WORD && !qn__parse_is_operator(&next, "[");
    const parameter *a = is_name ? qn__parse_find_parameter(p, p->token.text, p->token.n) : NULL;
    return a && a->is_view ? a : NULL;
}

/** The indices of dimension d that are `margin` or more away from both ends. */
static void set_over(parser *p, bindings *b, int i, qn_param view, int d, int64_t margin)
{
    qn_val begin = qn_lower(p->b, view, d);
    b->end[i] = qn_add(p->b, begin, qn_extent(p->b, view, d));
    b->begin[i] = margin ? qn_add(p->b, begin, qn_index(p->b, margin)) : begin;
    b->end[i] = margin ? qn_sub(p->b, b->end[i], qn_index(p->b, margin)) : b->end[i];
}

/** "inner" | "dim": "(" view "," number ")" */
static bool read_call(parser *p, const parameter **view, int64_t *number)
{
    qn__parse_advance(p);
    return qn__parse_expect_symbol(p, '(') && qn__parse_reference(p, true, view) &&
           qn__parse_expect_symbol(p, ',') && qn__parse_integer(p, QN_I32, number) &&
           qn__parse_expect_symbol(p, ')');
}

/** All dimensions of a view, one name each. */
static bool bind_all(parser *p, bindings *b, int first, const parameter *view, int64_t margin,
                     const qn_token *at)
{
    int rank = p->b->param[view->view.id - 1].rank;
    if (b->n - first != rank)
        return FAIL(p, at, "%d name%s for the %d dimension%s of the view", b->n - first,
                    b->n - first == 1 ? "" : "s", rank, rank == 1 ? "" : "s");
    for (int d = 0; d < rank; d++)
        set_over(p, b, first + d, view->view, d, margin);
    return qn__parse_check_builder(p);
}

/** view | "inner" "(" view "," margin ")" | "dim" "(" view "," d ")" | expression ".." expression:
 * of the names from `first` on. */
static bool read_range(parser *p, bindings *b, int first)
{
    const qn_token at = p->token, next = qn__parse_peek(p);
    const parameter *view = view_ahead(p);
    int64_t number = 0;
    bool is_call = qn__parse_is_operator(&next, "("),
         is_inner = is_call && qn__parse_is_word(p, "inner");
    bool is_dim = is_call && qn__parse_is_word(p, "dim");
    if (view)
        qn__parse_advance(p);
    else if ((is_inner || is_dim) && !read_call(p, &view, &number))
        return false;
    if (view && !is_dim)
        return bind_all(p, b, first, view, number, &at);
    if (b->n - first != 1)
        return FAIL(p, &at, "%d names for one range: write i in a .. b, j in c .. d", b->n - first);
    if (is_dim) {
        set_over(p, b, first, view->view, (int)number, 0);
        return qn__parse_check_builder(p);
    }
    if (!qn__parse_expression(p, INDEX_TYPE, "the first index of a range", &b->begin[first]))
        return false;
    if (!qn__parse_is_operator(&p->token, ".."))
        return qn__parse_fail_expected(p, "'..', as in 0 .. n,");
    qn__parse_advance(p);
    return qn__parse_expression(p, INDEX_TYPE, "the end of a range", &b->end[first]);
}

/** name ("," name)* "in", whose names are appended. */
static bool read_names(parser *p, int *n, qn_token *name)
{
    do {
        if (*n == QN_MAX_RANK)
            return FAIL(p, &p->token, "more than %d indices", QN_MAX_RANK);
        if (!qn__parse_is_new(p, &p->token))
            return false;
        name[(*n)++] = p->token;
        qn__parse_advance(p);
    } while (qn__parse_accept_symbol(p, ','));
    return qn__parse_expect_word(p, "in");
}

static bool read_bindings(parser *p, bindings *b)
{
    b->n = 0;
    do {
        int first = b->n;
        if (!read_names(p, &b->n, b->name) || !read_range(p, b, first))
            return false;
    } while (qn__parse_accept_symbol(p, ','));
    return true;
}

/** The name of an index, for messages and options of launches. */
static bool name_index(parser *p, const qn_token *t, qn_val index)
{
    p->scratch.n = 0;
    qn__text_bytes(&p->scratch, t->text, t->n);
    if (p->scratch.failed)
        return qn__parse_fail_memory(p);
    qn_builder_name(p->b, index, p->scratch.data);
    return qn__parse_check_builder(p);
}

/* --------------------------------------------------------------------------------------- domain */

bool qn__parse_is_domain(const parser *p)
{
    qn_lexer ahead = p->lexer;
    qn_token kind = qn__lex(&ahead), name = qn__lex(&ahead);
    bool is_kind = qn__parse_token_is(&kind, "all") || qn__parse_token_is(&kind, "sequential");
    return qn__parse_is_word(p, "for") && is_kind && name.kind == QN_TOKEN_WORD &&
           !qn__parse_token_is(&name, "in");
}

static bool close_domain(parser *p, block *b, const values *yield)
{
    if (yield->n)
        return FAIL(p, &p->statement, "the block of 'for all' yields %d values, expected 0",
                    yield->n);
    qn__parse_end_scope(p, b->scope);
    p->is_complete = true;
    qn__parse_accept_symbol(p, ';');
    return true;
}

/** "for" ("all" | "sequential") bindings block */
bool qn__parse_domain(parser *p)
{
    bindings b;
    qn__parse_advance(p);
    bool is_parallel = qn__parse_is_word(p, "all");
    qn__parse_advance(p);
    if (!read_bindings(p, &b) || !qn__parse_new_block(p, &(definitions){.n = 0}, close_domain))
        return false;
    for (int i = 0; i < b.n; i++) {
        qn_val index = (is_parallel ? qn_parallel : qn_sequential)(p->b, b.begin[i], b.end[i]);
        if (!qn__parse_introduce(p, &b.name[i], index, false) || !name_index(p, &b.name[i], index))
            return false;
    }
    return qn__parse_open_block(p);
}

/* ---------------------------------------------------------------------------------------- loops */

bool qn__parse_is_loop(const parser *p)
{
    qn_lexer ahead = p->lexer;
    qn_token name = qn__lex(&ahead), in = qn__lex(&ahead);
    return qn__parse_is_word(p, "for") && name.kind == QN_TOKEN_WORD &&
           qn__parse_token_is(&in, "in");
}

/** A loop of statements ends: its variables have the values after the last trip. */
static bool end_loop(parser *p, block *b, const values *yield,
                     void (*end)(qn_builder *, int, const qn_val *, qn_val *))
{
    qn_val next[QN_MAX_CARRIED] = {{0}}, results[QN_MAX_CARRIED] = {{0}};
    if (yield->n)
        return FAIL(p, &p->statement, "the block of a loop yields %d values, expected 0", yield->n);
    qn__parse_get_variables(p, b, next);
    qn__parse_end_scope(p, b->scope);
    end(p->b, b->n_variables, next, results);
    qn__parse_set_variables(p, b, results);
    qn__parse_accept_symbol(p, ';');
    return qn__parse_check_builder(p);
}

static bool close_loop(parser *p, block *b, const values *yield)
{
    return end_loop(p, b, yield, qn_end_for);
}

/** "for" name "in" range ["step" number] block */
bool qn__parse_loop(parser *p)
{
    bindings r = {.n = 0};
    int64_t step = 1;
    qn_val carried[QN_MAX_CARRIED] = {{0}};
    qn__parse_advance(p);
    block *b =
        qn__parse_begin_body(p) ? qn__parse_new_block(p, &(definitions){.n = 0}, close_loop) : NULL;
    if (!b || !read_names(p, &r.n, r.name) || !read_range(p, &r, 0) ||
        (qn__parse_accept_word(p, "step") && !qn__parse_integer(p, QN_I64, &step)) ||
        !qn__parse_find_variables(p, b))
        return false;
    qn_val index = qn_for(p->b, r.begin[0], r.end[0], step, b->n_variables, b->before, carried);
    if (!qn__parse_check_builder(p))
        return false;
    qn__parse_set_variables(p, b, carried);
    return qn__parse_introduce(p, &r.name[0], index, false) && qn__parse_open_block(p);
}

/** Not the "while max %limit" that the printer writes. */
bool qn__parse_is_repeat(const parser *p)
{
    qn_lexer ahead = p->lexer;
    qn_token first = qn__lex(&ahead), second = qn__lex(&ahead);
    return qn__parse_is_word(p, "while") &&
           !(qn__parse_token_is(&first, "max") && !qn__parse_is_operator(&second, "("));
}

static bool close_repeat(parser *p, block *b, const values *yield)
{
    return end_loop(p, b, yield, qn_end_while);
}

/** "while" condition "max" trips block: the condition is built where the loop is open. */
bool qn__parse_repeat(parser *p)
{
    expression condition;
    values holds = {.n = 0};
    qn_val trips = {0}, carried[QN_MAX_CARRIED] = {{0}};
    qn__parse_advance(p);
    if (!qn__parse_begin_body(p) || !qn__expression_read(p, &condition) ||
        !qn__parse_expect_word(p, "max") ||
        !qn__parse_expression(p, INDEX_TYPE, "the greatest number of trips", &trips))
        return false;
    block *b = qn__parse_new_block(p, &(definitions){.n = 0}, close_repeat);
    if (!b || !qn__parse_find_variables(p, b))
        return false;
    qn_while(p->b, trips, b->n_variables, b->before, carried);
    if (!qn__parse_check_builder(p))
        return false;
    qn__parse_set_variables(p, b, carried);
    if (!qn__expression_settle(p, &condition, QN_BOOL, "the condition") ||
        !qn__expression_build(p, &condition, &holds))
        return false;
    qn_do(p->b, holds.v[0]);
    return qn__parse_check_builder(p) && qn__parse_open_block(p);
}

/* ----------------------------------------------------------------------------------- reductions */

/** The combination of a reduction that a token names, or -1. */
static int combine_of(const qn_token *t)
{
    for (int c = 0; c < QN_N_COMBINES; c++)
        if (qn__is_reduction_combine(c) && qn__parse_token_is(t, qn__combine_name(c)))
            return c;
    return -1;
}

static int order_of(const qn_token *t)
{
    for (const qn_word *w = qn__order_words; w->text; w++)
        if (qn__parse_token_is(t, w->text))
            return (int)w->number;
    return QN_ORDER_DEFAULT;
}

/** Whether a name, and behind it "in" or ",". */
static bool is_binding(const qn_token *name, const qn_token *next)
{
    return name->kind == QN_TOKEN_WORD &&
           (qn__parse_token_is(next, "in") || qn__parse_is_operator(next, ","));
}

bool qn__parse_is_reduction(const qn_lexer *x, const qn_token *t)
{
    if (combine_of(t) < 0)
        return false;
    qn_lexer ahead = *x;
    qn_token first = qn__lex(&ahead), second = qn__lex(&ahead);
    if (is_binding(&first, &second))
        return true;
    qn_token third = qn__lex(&ahead);
    return order_of(&first) != QN_ORDER_DEFAULT && is_binding(&second, &third);
}

/** combine [order], where the name of an index may be that of an order. */
static void read_kind(parser *p, reduction *r)
{
    r->text = p->token.text;
    r->combine = combine_of(&p->token);
    qn__parse_advance(p);
    qn_token next = qn__parse_peek(p);
    r->order = is_binding(&p->token, &next) ? QN_ORDER_DEFAULT : order_of(&p->token);
    if (r->order != QN_ORDER_DEFAULT)
        qn__parse_advance(p);
}

/** Whether a word in the bounds of a reduction is known before the body and depends on no index. */
static bool is_uniform(parser *p, const qn_token *t, const qn_token *next)
{
    if (qn__parse_is_operator(next, "["))
        return false;
    if (qn__parse_is_operator(next, "(") ||
        (t->kind == QN_TOKEN_WORD && qn__parse_find_parameter(p, t->text, t->n)))
        return true;
    int32_t i = qn__parse_find(p, t->text, t->n);
    return i >= 0 && p->b->note[qn__number(p->symbols.entry[i].value)].is_uniform;
}

/** Whether the reduction that begins at the next token has dimensions of its own: its bounds are
 * uniform. */
static bool has_dimensions(parser *p)
{
    qn_lexer ahead = p->lexer;
    bool is_name = true;
    int depth = 0;
    qn_token t = qn__lex(&ahead);
    for (int n = 0; n < MOST_BOUND_TOKENS && t.kind != QN_TOKEN_END && t.kind != QN_TOKEN_BAD;
         n++) {
        qn_token next = qn__lex(&ahead);
        bool is_of = qn__parse_token_is(&t, "of"), is_in = qn__parse_token_is(&t, "in");
        if (is_of || qn__parse_is_operator(&t, ";") || qn__parse_is_operator(&t, "{"))
            return is_of;
        depth += qn__parse_is_operator(&t, "(") - qn__parse_is_operator(&t, ")");
        bool is_value = !is_name && !is_in && (t.kind == QN_TOKEN_WORD || t.kind == QN_TOKEN_VALUE);
        if (is_value && !is_uniform(p, &t, &next))
            return false;
        is_name = (is_name || (depth == 0 && qn__parse_is_operator(&t, ","))) && !is_in;
        t = next;
    }
    return false;
}

/** A slot for one head more, or NULL. */
static reduction *new_head(parser *p)
{
    if (p->n_heads == MOST_REDUCTIONS) {
        FAIL(p, &p->token, "more than %d reductions", MOST_REDUCTIONS);
        return NULL;
    }
    if (p->n_heads == p->head_capacity) {
        int32_t capacity = p->head_capacity ? 2 * p->head_capacity : 4;
        reduction *grown = qn__realloc(p->head, (size_t)capacity * sizeof *grown);
        if (!grown) {
            qn__parse_fail_memory(p);
            return NULL;
        }
        p->head = grown;
        p->head_capacity = capacity;
    }
    reduction *r = &p->head[p->n_heads];
    *r = (reduction){.text = NULL};
    return r;
}

static bool is_same_value(qn_val a, qn_val b)
{
    return a.id == b.id;
}

/** The index of an earlier reduction with this name and range, or a new dimension. */
static qn_val dimension_of(parser *p, const bindings *b, int i)
{
    for (int32_t h = 0; h < p->n_heads; h++)
        for (int j = 0; j < p->head[h].n; j++) {
            const reduction *r = &p->head[h];
            bool is_name = r->name[j].n == b->name[i].n &&
                           memcmp(r->name[j].text, b->name[i].text, b->name[i].n) == 0;
            if (is_name && is_same_value(r->begin[j], b->begin[i]) &&
                is_same_value(r->end[j], b->end[i]))
                return r->value[j];
        }
    return qn_reduction(p->b, b->begin[i], b->end[i]);
}

/** The head at the next token, whose dimensions are declared. */
static bool declare(parser *p)
{
    bindings b;
    reduction *r = new_head(p);
    if (!r)
        return false;
    p->statement = p->token;
    read_kind(p, r);
    if (!read_bindings(p, &b))
        return false;
    for (int i = 0; i < b.n; i++) {
        r->name[i] = b.name[i];
        r->begin[i] = b.begin[i];
        r->end[i] = b.end[i];
        r->value[i] = dimension_of(p, &b, i);
        if (!qn__parse_check_builder(p) || !name_index(p, &b.name[i], r->value[i]))
            return false;
    }
    r->n = b.n;
    if (!qn__parse_expect_word(p, "of"))
        return false;
    r->after = p->lexer;
    r->next = p->token;
    p->n_heads++;
    return true;
}

/** Declares the dimensions of the reductions from the next token to the end of the body. */
static bool declare_ahead(parser *p)
{
    for (int depth = 0;
         depth >= 0 && p->token.kind != QN_TOKEN_END && p->token.kind != QN_TOKEN_BAD;) {
        if (qn__parse_is_reduction(&p->lexer, &p->token) && has_dimensions(p)) {
            if (!declare(p))
                return false;
            continue;
        }
        depth += qn__parse_is_symbol(p, '{') - qn__parse_is_symbol(p, '}');
        qn__parse_advance(p);
    }
    return true;
}

bool qn__parse_begin_body(parser *p)
{
    if (p->has_begun || p->is_canonical || p->b->is_function)
        return true;
    const qn_lexer lexer = p->lexer;
    const qn_token token = p->token, statement = p->statement;
    const int last_line = p->last_line;
    p->has_begun = p->is_in_range = true;
    if (!declare_ahead(p))
        return false;
    p->is_in_range = false;
    p->lexer = lexer;
    p->token = token;
    p->statement = statement;
    p->last_line = last_line;
    return true;
}

/** A bound of a loop, which waits as operand. */
static bool read_bound(parser *p)
{
    expression e;
    if (!qn__expression_read(p, &e))
        return false;
    p->waiting[p->n_waiting++] = e.end - 1;
    return true;
}

/** All indices of a view of rank 1, or of a dimension: two operands. */
static bool add_over(parser *p, const parameter *view, int d, const qn_token *at)
{
    node lower = {.kind = NODE_LOWER, .dtype = QN_I64, .view = view->view, .link = d, .token = *at};
    node extent = lower, sum = {.kind = NODE_OP, .op = QN_OP_add, .token = *at};
    extent.kind = NODE_EXTENT;
    return qn__node_add(p, &lower, 0) >= 0 && qn__node_add(p, &lower, 0) >= 0 &&
           qn__node_add(p, &extent, 0) >= 0 && qn__node_add(p, &sum, 2) >= 0;
}

/** name "in" (view | "dim" "(" view "," d ")" | expression ".." expression) "of" of a reduction
 * that is a loop. */
static bool read_loop(parser *p, reduction *r)
{
    const qn_token at = p->token, next = qn__parse_peek(p);
    const parameter *view = view_ahead(p);
    int64_t d = 0;
    bool is_dim = qn__parse_is_operator(&next, "(") && qn__parse_is_word(p, "dim");
    if (view)
        qn__parse_advance(p);
    if (is_dim && !read_call(p, &view, &d))
        return false;
    if (view && !is_dim && p->b->param[view->view.id - 1].rank != 1)
        return FAIL(p, &at, "a loop has one index: write dim(%.*s, 0)",
                    qn__parse_shown_bytes(at.text, at.n), at.text);
    if (view)
        return add_over(p, view, (int)d, &at) && qn__parse_expect_word(p, "of");
    if (!read_bound(p))
        return false;
    if (!qn__parse_is_operator(&p->token, ".."))
        return qn__parse_fail_expected(p, "'..', as in 0 .. n,");
    qn__parse_advance(p);
    (void)r;
    return read_bound(p) && qn__parse_expect_word(p, "of");
}

int32_t qn__reduction_head(parser *p)
{
    const qn_token at = p->token;
    if (!qn__parse_begin_body(p))
        return -1;
    if (p->is_in_range) {
        FAIL(p, &at, "the range of a reduction has a reduction in it: give that a name before");
        return -1;
    }
    for (int32_t i = 0; i < p->n_heads; i++)
        if (p->head[i].text == at.text) {
            p->lexer = p->head[i].after;
            p->token = p->head[i].next;
            return i;
        }
    reduction *r = new_head(p), found = {.is_loop = true};
    if (!r)
        return -1;
    read_kind(p, &found);
    if (!read_names(p, &found.n, found.name))
        return -1;
    if (found.n != 1 || (found.order != QN_ORDER_DEFAULT && found.order != QN_ORDERED)) {
        FAIL(p, &at,
             "the range of this reduction is known in the body only: it is a loop of one index, in "
             "its order");
        return -1;
    }
    p->is_in_range = true;
    if (!read_loop(p, &found))
        return -1;
    p->is_in_range = false;
    *r = found;
    return p->n_heads++;
}
