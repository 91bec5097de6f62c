/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_block.c: statements with blocks in the form of the printer: if, for, while, reduce, and
 * yield. Open blocks are a list, so that nesting needs no stack of the host's thread.
 */
#include "ir/build/builder.h"
#include "ir/parse.h"

#include <string.h>

/** "yield" [values] ";", which ends the block. */
bool qn__parse_yield(parser *p, values *yield)
{
    if (!qn__parse_is_symbol(p, ';') && !qn__parse_values(p, yield))
        return false;
    return qn__parse_expect_symbol(p, ';') &&
           (qn__parse_is_symbol(p, '}') || qn__parse_fail_expected(p, "'}' after 'yield'"));
}

/** A slot for a block that is about to be opened, see qn__parse_open_block; NULL if memory runs
 * out. */
block *qn__parse_new_block(parser *p, const definitions *d,
                           bool (*close)(parser *, block *, const values *))
{
    if (p->depth == p->block_capacity) {
        int capacity = p->block_capacity ? 2 * p->block_capacity : 4;
        block *grown = qn__realloc(p->block, (size_t)capacity * sizeof *grown);
        if (!grown) {
            qn__parse_fail_memory(p);
            return NULL;
        }
        p->block = grown;
        p->block_capacity = capacity;
    }
    block *b = &p->block[p->depth];
    *b = (block){.d = *d, .scope = p->symbols.n, .n = d->n, .close = close};
    return b;
}

/** The block in the next slot is open without a "{". */
static bool enter_block(parser *p)
{
    if (p->depth == QN_MAX_NESTING)
        return FAIL(p, &p->token, "blocks are nested deeper than %d", QN_MAX_NESTING);
    p->block[p->depth++].statement = p->statement;
    return true;
}

/** "{": what follows, up to the "}", belongs to the block in the next slot. */
bool qn__parse_open_block(parser *p)
{
    if (!qn__parse_is_symbol(p, '{'))
        return qn__parse_fail_expected(p, "'{'");
    if (!enter_block(p))
        return false;
    qn__parse_advance(p);
    return true;
}

/** "}": the innermost block goes on with what its kind has behind it. */
bool qn__parse_close_block(parser *p, const values *yield)
{
    block *b = &p->block[--p->depth];
    qn__parse_advance(p);
    p->statement = b->statement;
    return b->close(p, b, yield);
}

/** The end of a statement with blocks: names its results. */
static bool end_blocks(parser *p, const block *b, const qn_val *results)
{
    return qn__parse_define_all(p, &b->d, results) && qn__parse_expect_symbol(p, ';');
}

/** Whether a block yields as many values as wanted. */
static bool check_yield(parser *p, const values *yield, int n, const char *what)
{
    return yield->n == n ||
           FAIL(p, &p->statement, "%s yields %d values, expected %d", what, yield->n, n);
}

/** What a block gives: the values of its `yield`, then those of the variables that it assigns. */
static bool list_values(parser *p, const block *b, const values *yield, values *all)
{
    *all = *yield;
    if (yield->n + b->n_variables > QN_MAX_CARRIED)
        return FAIL(p, &p->statement, "more than %d values", QN_MAX_CARRIED);
    qn__parse_get_variables(p, b, all->v + yield->n);
    all->n += b->n_variables;
    return true;
}

/** The end of an `if` whose last block gave these values. An `else` before it without braces ends,
 * too. */
static bool finish_if(parser *p, block *b, const values *last)
{
    static const values none = {.n = 0};
    qn_val results[QN_MAX_CARRIED] = {{0}};
    values all = *last;
    if (!b->is_second && b->n_variables > 0) {
        qn_else(p->b, all.n, all.v);
        memcpy(all.v, b->before, sizeof all.v);
    }
    qn_end_if(p->b, all.n, all.v, results);
    qn__parse_set_variables(p, b, results + b->n);
    if (!qn__parse_define_all(p, &b->d, results))
        return false;
    while (p->depth > 0 && p->block[p->depth - 1].is_chained) {
        b = &p->block[--p->depth];
        qn__parse_end_scope(p, b->scope);
        if (!list_values(p, b, &none, &all))
            return false;
        qn_end_if(p->b, all.n, all.v, results);
        qn__parse_set_variables(p, b, results);
    }
    return qn__parse_check_builder(p) &&
           (qn__parse_accept_symbol(p, ';') || b->n == 0 || qn__parse_expect_symbol(p, ';'));
}

/** "else" of an `if` whose first block gave these values: a block, or an `if` without braces. */
static bool start_else(parser *p, block *b, const values *first)
{
    b->is_second = true;
    qn_else(p->b, first->n, first->v);
    qn__parse_set_variables(p, b, b->before);
    if (!qn__parse_check_builder(p))
        return false;
    if (b->n > 0 || !qn__parse_is_word(p, "if"))
        return qn__parse_open_block(p);
    b->is_chained = true;
    if (!enter_block(p))
        return false;
    p->statement = p->token;
    qn__parse_advance(p);
    return qn__parse_if(p, &(definitions){.n = 0});
}

/** The block of an `if`, or of its `else`. */
static bool close_if(parser *p, block *b, const values *yield)
{
    values all;
    if (!check_yield(p, yield, b->n, b->is_second ? "the block of 'else'" : "the block of 'if'") ||
        !list_values(p, b, yield, &all))
        return false;
    qn__parse_end_scope(p, b->scope);
    if (!b->is_second && qn__parse_accept_word(p, "else"))
        return start_else(p, b, &all);
    if (!b->is_second && b->n > 0)
        return qn__parse_fail_expected(p, "'else', since the 'if' has results,");
    return finish_if(p, b, &all);
}

/** ["rare"] condition block */
bool qn__parse_if(parser *p, const definitions *d)
{
    qn_val condition = {0};
    block *b = qn__parse_begin_body(p) ? qn__parse_new_block(p, d, close_if) : NULL;
    qn_token next = qn__parse_peek(p);
    if (!b)
        return false;
    bool is_rare = qn__parse_is_word(p, "rare") &&
                   (next.kind == QN_TOKEN_WORD || next.kind == QN_TOKEN_VALUE ||
                    qn__parse_is_operator(&next, "("));
    if (is_rare)
        qn__parse_advance(p);
    if (!qn__parse_given(p, QN_BOOL, "the condition", &condition) ||
        !qn__parse_find_variables(p, b))
        return false;
    (is_rare ? qn_if_rare : qn_if)(p->b, condition);
    return qn__parse_check_builder(p) && qn__parse_open_block(p);
}

/** "(" [typed "=" value ("," typed "=" value)*] ")" */
static bool parse_carried(parser *p, definitions *d, values *init)
{
    d->n = init->n = 0;
    if (!qn__parse_expect_symbol(p, '('))
        return false;
    if (qn__parse_accept_symbol(p, ')'))
        return true;
    do {
        if (d->n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d carried values", QN_MAX_CARRIED);
        if (!qn__parse_typed(p, &d->d[d->n++]) || !qn__parse_expect_symbol(p, '=') ||
            !qn__parse_value(p, &init->v[init->n++]))
            return false;
    } while (qn__parse_accept_symbol(p, ','));
    return qn__parse_expect_symbol(p, ')');
}

/** A block that says what it carries assigns no variable that is known before it. */
static bool keep_variables(block *b)
{
    b->is_explicit = true;
    return true;
}

/** A loop has one result for each carried value. */
static bool check_results(parser *p, const definitions *d, int n_carried, const char *what)
{
    return d->n == n_carried || FAIL(p, &p->statement, "'%s' has %d results but %d carried values",
                                     what, d->n, n_carried);
}

/** A `for` up to its block: opens the loop and names its index and carried values. */
static bool parse_for_head(parser *p, int *n_carried)
{
    definition index;
    definitions carried;
    values init;
    qn_val begin = {0}, end = {0}, v[QN_MAX_CARRIED] = {{0}};
    int64_t step = 0;
    if (!qn__parse_typed(p, &index) || !qn__parse_expect_symbol(p, '=') ||
        !qn__parse_value(p, &begin) || !qn__parse_expect_word(p, "to") ||
        !qn__parse_value(p, &end) || !qn__parse_expect_word(p, "step") ||
        !qn__parse_integer(p, QN_I64, &step) || !parse_carried(p, &carried, &init))
        return false;
    *n_carried = carried.n;
    qn_val i = qn_for(p->b, begin, end, step, init.n, init.v, v);
    return qn__parse_define(p, &index, i) && qn__parse_define_all(p, &carried, v);
}

static bool close_for(parser *p, block *b, const values *yield)
{
    qn_val results[QN_MAX_CARRIED] = {{0}};
    if (!check_yield(p, yield, b->n, "the block of 'for'"))
        return false;
    qn__parse_end_scope(p, b->scope);
    qn_end_for(p->b, yield->n, yield->v, results);
    return end_blocks(p, b, results);
}

bool qn__parse_for(parser *p, const definitions *d)
{
    block *b = qn__parse_new_block(p, d, close_for);
    return b && keep_variables(b) && parse_for_head(p, &b->n) && check_results(p, d, b->n, "for") &&
           qn__parse_open_block(p);
}

static bool parse_while_head(parser *p, int *n_carried)
{
    definitions carried;
    values init;
    qn_val max_trips = {0}, v[QN_MAX_CARRIED] = {{0}};
    if (!qn__parse_expect_word(p, "max") || !qn__parse_value(p, &max_trips) ||
        !parse_carried(p, &carried, &init))
        return false;
    *n_carried = carried.n;
    qn_while(p->b, max_trips, init.n, init.v, v);
    return qn__parse_define_all(p, &carried, v);
}

/** The carried values are known in both blocks, other names only in their own. */
static bool close_while(parser *p, block *b, const values *yield)
{
    qn_val results[QN_MAX_CARRIED] = {{0}};
    if (!check_yield(p, yield, b->is_second ? b->n : 1,
                     b->is_second ? "the block of 'while'" : "the condition of 'while'"))
        return false;
    if (!b->is_second) {
        b->is_second = true;
        qn__parse_end_scope(p, b->head_scope);
        qn_do(p->b, yield->v[0]);
        return qn__parse_check_builder(p) && qn__parse_expect_word(p, "do") &&
               qn__parse_open_block(p);
    }
    qn__parse_end_scope(p, b->scope);
    qn_end_while(p->b, yield->n, yield->v, results);
    return end_blocks(p, b, results);
}

bool qn__parse_while(parser *p, const definitions *d)
{
    block *b = qn__parse_new_block(p, d, close_while);
    if (!b || !keep_variables(b) || !parse_while_head(p, &b->n) ||
        !check_results(p, d, b->n, "while"))
        return false;
    b->head_scope = p->symbols.n;
    return qn__parse_open_block(p);
}

static bool close_reduce(parser *p, block *b, const values *yield)
{
    if (!check_yield(p, yield, 1, "the block of 'reduce'"))
        return false;
    qn__parse_end_scope(p, b->scope);
    const qn_val result = qn_end_reduce(p->b, yield->v[0]);
    return end_blocks(p, b, &result);
}

bool qn__parse_reduce(parser *p, const definitions *d)
{
    int combine = 0, order = QN_ORDER_DEFAULT;
    values dims = {.n = 0};
    block *b = qn__parse_new_block(p, d, close_reduce);
    if (!b || !keep_variables(b) || !qn__parse_combine(p, &combine))
        return false;
    for (const qn_word *w = qn__order_words; w->text && order == QN_ORDER_DEFAULT; w++)
        if (qn__parse_accept_word(p, w->text))
            order = (int)w->number;
    if (!qn__parse_expect_word(p, "over") || !qn__parse_values(p, &dims))
        return false;
    qn_reduce(p->b, combine, order, dims.n, dims.v);
    return qn__parse_check_builder(p) && qn__parse_open_block(p);
}
