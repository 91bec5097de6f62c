/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c: a line of the array language becomes nodes. The parser is one function for each rule:
 *
 *   statement  = "let" name "=" expression | "let" name "(" name ("," name)* ")" "=" expression |
 * expression expression = sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)? sum        = product
 * (("+" | "-") product)* product    = factor (("*" | "/") factor)* factor     = "-" factor |
 * primary ("[" list "]")* primary    = number | name | name "(" list ")" | "(" expression ")" | "["
 * list "]" list       = expression ("," expression)*
 *
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

static node *parse_expression(parser *p);

static place here(const parser *p)
{
    return (place){p->s->line, (int)(p->at - p->line) + 1};
}

static void skip_space(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
    if (*p->at == '#')
        p->at += strlen(p->at);
}

/* Takes a word of punctuation. */
static bool take(parser *p, const char *word)
{
    skip_space(p);
    const size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static node *expected(parser *p, const char *what)
{
    skip_space(p);
    const unsigned char c = (unsigned char)*p->at;
    if (!c)
        fail(p->s, here(p), "expected %s, found the end of the line", what);
    else
        fail(p->s, here(p), isprint(c) ? "expected %s, found '%c'" : "expected %s, found byte %d",
             what, c);
    return NULL;
}

static node *new_node(parser *p, node_kind kind, place at)
{
    node *n = calloc(1, sizeof *n);
    if (!n) {
        fail(p->s, at, "out of memory");
        return NULL;
    }
    n->kind = kind;
    n->at = at;
    n->older = p->out->newest;
    return p->out->newest = n;
}

/* A node of an operation on one or two nodes, of which `a` is not NULL. */
static node *operation(parser *p, op_id op, place at, node *a, node *b)
{
    node *n = new_node(p, NODE_OP, at);
    if (!n)
        return NULL;
    n->op = op;
    n->n = b ? 2 : 1;
    n->first = a;
    a->next = b;
    return n;
}

static bool take_name(parser *p, char name[MAX_NAME])
{
    skip_space(p);
    int n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
        n++;
    if (n == 0 || isdigit((unsigned char)*p->at)) {
        expected(p, "a name");
        return false;
    }
    if (n >= MAX_NAME)
        return fail(p->s, here(p), "a name has at most %d characters", MAX_NAME - 1);
    memcpy(name, p->at, (size_t)n);
    name[n] = 0;
    p->at += n;
    return true;
}

/* A list of at least one expression up to `end`, as operands of `n` behind those that it has. */
static node *parse_list(parser *p, node *n, const char *end)
{
    node **last = &n->first;
    while (*last)
        last = &(*last)->next;
    do {
        if (!(*last = parse_expression(p)))
            return NULL;
        last = &(*last)->next;
        n->n++;
    } while (take(p, ","));
    return take(p, end) ? n : expected(p, end[0] == ')' ? "',' or ')'" : "',' or ']'");
}

static node *parse_number(parser *p)
{
    node *n = new_node(p, NODE_NUMBER, here(p));
    char *end;
    if (!n)
        return NULL;
    n->number = strtod(p->at, &end);
    if (end == p->at)
        return expected(p, "a number");
    p->at = end;
    return n;
}

static node *parse_primary(parser *p)
{
    skip_space(p);
    const place at = here(p);
    if (isdigit((unsigned char)*p->at) || *p->at == '.')
        return parse_number(p);
    if (take(p, "(")) {
        node *n = parse_expression(p);
        return !n || take(p, ")") ? n : expected(p, "')'");
    }
    if (take(p, "[")) {
        node *n = new_node(p, NODE_LIST, at);
        return n ? parse_list(p, n, "]") : NULL;
    }
    if (!isalpha((unsigned char)*p->at) && *p->at != '_')
        return expected(p, "an expression");
    node *n = new_node(p, NODE_NAME, at);
    if (!n || !take_name(p, n->name))
        return NULL;
    if (!take(p, "("))
        return n;
    n->kind = NODE_CALL;
    return parse_list(p, n, ")");
}

static node *parse_factor(parser *p)
{
    skip_space(p);
    const place at = here(p);
    if (p->nesting >= MAX_NESTING) {
        fail(p->s, at, "nested more than %d deep", MAX_NESTING);
        return NULL;
    }
    p->nesting++;
    node *n;
    if (take(p, "-")) {
        n = parse_factor(p);
        n = n ? operation(p, OP_NEGATE, at, n, NULL) : NULL;
    } else {
        n = parse_primary(p);
        for (place bracket; n && (skip_space(p), bracket = here(p), take(p, "["));) {
            node *index = new_node(p, NODE_INDEX, bracket);
            if (!index)
                return NULL;
            index->first = n;
            index->n = 1;
            n = parse_list(p, index, "]");
        }
    }
    p->nesting--;
    return n;
}

/* One of the operators at this place, longer ones first; N_OPS if there is none. */
static op_id take_operator(parser *p, const op_id *ops, int n)
{
    static const char *const text[] = {
#define X(NAME, text, ...) text,
        OPS(X)
#undef X
    };
    for (int i = 0; i < n; i++)
        if (take(p, text[ops[i]]))
            return ops[i];
    return N_OPS;
}

/* Operands of one rule with operators between them, from the left. */
static node *parse_chain(parser *p, node *(*operand)(parser *p), const op_id *ops, int n_ops,
                         int most)
{
    node *left = operand(p);
    for (int i = 0; left && i < most; i++) {
        skip_space(p);
        const place at = here(p);
        const op_id op = take_operator(p, ops, n_ops);
        if (op == N_OPS)
            break;
        node *right = operand(p);
        left = right ? operation(p, op, at, left, right) : NULL;
    }
    return left;
}

static node *parse_product(parser *p)
{
    static const op_id ops[] = {OP_MULTIPLY, OP_DIVIDE};
    return parse_chain(p, parse_factor, ops, 2, MAX_LINE);
}

static node *parse_sum(parser *p)
{
    static const op_id ops[] = {OP_ADD, OP_SUBTRACT};
    return parse_chain(p, parse_product, ops, 2, MAX_LINE);
}

static node *parse_expression(parser *p)
{
    static const op_id ops[] = {OP_LESS_EQUAL, OP_GREATER_EQUAL, OP_EQUAL,
                                OP_NOT_EQUAL,  OP_LESS,          OP_GREATER};
    return parse_chain(p, parse_sum, ops, 6, 1);
}

static bool parse_let(parser *p, statement *out)
{
    skip_space(p);
    out->at = here(p);
    if (!take_name(p, out->name))
        return false;
    if (take(p, "(")) {
        out->n_parameters = 0;
        do {
            if (out->n_parameters == MAX_ARGS)
                return fail(p->s, here(p), "a function has at most %d parameters", MAX_ARGS);
            if (!take_name(p, out->parameter[out->n_parameters++]))
                return false;
        } while (take(p, ","));
        if (!take(p, ")"))
            return expected(p, "',' or ')'");
    }
    return take(p, "=") || expected(p, "'='");
}

static bool parse_statement(parser *p, statement *out)
{
    skip_space(p);
    if (strlen(p->at) >= MAX_LINE)
        return fail(p->s, here(p), "a line has at most %d characters", MAX_LINE - 1);
    if (!*p->at)
        return true;
    if (strncmp(p->at, "let", 3) == 0 && (p->at[3] == ' ' || p->at[3] == '\t')) {
        p->at += 3;
        if (!parse_let(p, out))
            return false;
    }
    if (!(out->body = parse_expression(p)))
        return false;
    skip_space(p);
    return !*p->at || expected(p, "an operator");
}

bool parse(session *s, const char *line, statement *out)
{
    *out = (statement){.n_parameters = -1};
    parser p = {.s = s, .line = line, .at = line, .out = out};
    if (parse_statement(&p, out))
        return true;
    statement_free(out);
    return false;
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
