/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c: a line of the array language becomes nodes.
 *
 *   statement  = expression | "let" name "=" expression
 *              | "let" name "(" name ("," name)* ")" "=" expression
 *   expression = factor (operator factor)*
 *   factor     = "-" factor | primary ("[" list "]")*
 *   primary    = number | name | name "(" list ")" | "(" expression ")" | "[" list "]"
 *   list       = expression ("," expression)*
 *
 * Operators bind as strongly as the table OPS says, and comparisons are not chained.
 * A comment begins with #.
 */
#include "language.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    session *s;
    const char *line, *at;
    statement *out;
    int nesting;
} parser;

static node *parse_expression(parser *p, int power);

/* The place behind white space and comments. */
static place here(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
    if (*p->at == '#')
        p->at += strlen(p->at);
    return (place){p->s->line, (int)(p->at - p->line) + 1};
}

/* Takes a word of punctuation. */
static bool take(parser *p, const char *word)
{
    here(p);
    const size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static _Noreturn void expected(parser *p, const char *what)
{
    const place at = here(p);
    const unsigned char c = (unsigned char)*p->at;
    if (!c)
        fail(p->s, at, "expected %s, found the end of the line", what);
    fail(p->s, at, isprint(c) ? "expected %s, found '%c'" : "expected %s, found byte %d", what, c);
}

static node *new_node(parser *p, node_kind kind, place at)
{
    node *n = calloc(1, sizeof *n);
    if (!n)
        fail(p->s, at, "out of memory");
    n->kind = kind;
    n->at = at;
    n->older = p->out->newest;
    return p->out->newest = n;
}

static void add_operand(node *n, node *operand)
{
    node **last = &n->first;
    while (*last)
        last = &(*last)->next;
    *last = operand;
    n->n++;
}

static void take_name(parser *p, char name[MAX_NAME])
{
    const place at = here(p);
    int n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
        n++;
    if (n == 0 || isdigit((unsigned char)*p->at))
        expected(p, "a name");
    if (n >= MAX_NAME)
        fail(p->s, at, "a name has at most %d characters", MAX_NAME - 1);
    memcpy(name, p->at, (size_t)n);
    name[n] = 0;
    p->at += n;
}

/* A list of at least one expression up to `end`, as operands of `n` behind those that it has. */
static node *parse_list(parser *p, node *n, const char *end)
{
    do {
        add_operand(n, parse_expression(p, 1));
    } while (take(p, ","));
    if (!take(p, end))
        expected(p, *end == ')' ? "',' or ')'" : "',' or ']'");
    return n;
}

static node *parse_primary(parser *p)
{
    const place at = here(p);
    if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        node *n = new_node(p, NUMBER, at);
        char *end;
        n->number = strtod(p->at, &end);
        if (end == p->at)
            expected(p, "a number");
        p->at = end;
        return n;
    }
    if (take(p, "(")) {
        node *n = parse_expression(p, 1);
        if (!take(p, ")"))
            expected(p, "')'");
        return n;
    }
    if (take(p, "["))
        return parse_list(p, new_node(p, LIST, at), "]");
    if (!isalpha((unsigned char)*p->at) && *p->at != '_')
        expected(p, "an expression");
    node *n = new_node(p, NAME, at);
    take_name(p, n->name);
    if (!take(p, "("))
        return n;
    n->kind = CALL;
    return parse_list(p, n, ")");
}

static node *parse_factor(parser *p)
{
    place at = here(p);
    node *n;
    if (p->nesting++ >= MAX_NESTING)
        fail(p->s, at, "nested more than %d deep", MAX_NESTING);
    if (take(p, "-")) {
        n = new_node(p, OP, at);
        n->op = OP_NEGATE;
        add_operand(n, parse_factor(p));
    } else {
        n = parse_primary(p);
        for (at = here(p); take(p, "["); at = here(p)) {
            node *index = new_node(p, PICK, at);
            add_operand(index, n);
            n = parse_list(p, index, "]");
        }
    }
    p->nesting--;
    return n;
}

/* [expression] */
/* Operands with operators between them, of those that bind at least so strongly. */
static node *parse_expression(parser *p, int power)
{
    static const struct {
        const char *text;
        int power;
    } ops[] = {
#define X(NAME, text, n, power, ...) {text, power},
        OPS(X)
#undef X
    };
    node *left = parse_factor(p);
    for (;;) {
        const place at = here(p);
        int op = 0;
        while (op < N_OPS &&
               (ops[op].power < power || ops[op].power == 0 || !take(p, ops[op].text)))
            op++;
        if (op == N_OPS)
            return left;
        node *n = new_node(p, OP, at);
        n->op = op;
        add_operand(n, left);
        add_operand(n, parse_expression(p, ops[op].power + 1));
        left = n;
        if (ops[op].power == 1)
            power = 2; /* comparisons are not chained */
    }
}
/* [end] */

static void parse_let(parser *p)
{
    statement *t = p->out;
    t->at = here(p);
    take_name(p, t->name);
    if (take(p, "(")) {
        t->n_parameters = 0;
        do {
            if (t->n_parameters == MAX_ARGS)
                fail(p->s, here(p), "a function has at most %d parameters", MAX_ARGS);
            take_name(p, t->parameter[t->n_parameters++]);
        } while (take(p, ","));
        if (!take(p, ")"))
            expected(p, "',' or ')'");
    }
    if (!take(p, "="))
        expected(p, "'='");
}

void parse(session *s, const char *line, statement *out)
{
    *out = (statement){.n_parameters = -1};
    parser p = {.s = s, .line = line, .at = line, .out = out};
    const place at = here(&p);
    if (strlen(p.at) >= MAX_LINE)
        fail(s, at, "a line has at most %d characters", MAX_LINE - 1);
    if (!*p.at)
        return;
    if (strncmp(p.at, "let", 3) == 0 && (p.at[3] == ' ' || p.at[3] == '\t')) {
        p.at += 3;
        parse_let(&p);
    }
    out->body = parse_expression(&p, 1);
    here(&p);
    if (*p.at)
        expected(&p, "an operator");
}

void statement_free(statement *t)
{
    while (t->newest) {
        node *n = t->newest;
        t->newest = n->older;
        free(n);
    }
    t->body = NULL;
}
