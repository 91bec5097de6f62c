/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression_read.c: infix expressions of kernel text, read into nodes in postfix order by operator
 * precedence. Operators and brackets that wait for operands are a stack of the parser with a limit,
 * so a hostile text uses no stack of the host's thread.
 */
#include "ir/build/builder.h"
#include "ir/expression.h"
#include "ir/function.h"

#include <string.h>

enum {
    PENDING_BINARY,
    PENDING_PREFIX,
    PENDING_ELSE,      /* c ? a : ... */
    PENDING_REDUCTION, /* sum k in ... of ... */
    PENDING_BRACKETS,  /* from here on what ends with a bracket or ':' */
    PENDING_ARGUMENTS,
    PENDING_INDEX,
    PENDING_THEN /* c ? ... */
};
enum { LEVEL_REDUCTION = 0, LEVEL_CHOOSE = 1, LEVEL_PREFIX = 11 };

static const struct {
    const char *text;
    uint8_t level, kind, op;
} binaries[] = {
    {"||", 2, NODE_OR, QN_OP_or},  {"&&", 3, NODE_AND, QN_OP_and}, {"|", 4, NODE_OP, QN_OP_or},
    {"^", 5, NODE_OP, QN_OP_xor},  {"&", 6, NODE_OP, QN_OP_and},   {"==", 7, NODE_OP, QN_OP_eq},
    {"!=", 7, NODE_OP, QN_OP_ne},  {"<", 8, NODE_OP, QN_OP_lt},    {"<=", 8, NODE_OP, QN_OP_le},
    {">", 8, NODE_OP, QN_OP_gt},   {">=", 8, NODE_OP, QN_OP_ge},   {"<<", 9, NODE_OP, QN_OP_shl},
    {">>", 9, NODE_OP, QN_OP_shr}, {"+", 10, NODE_OP, QN_OP_add},  {"-", 10, NODE_OP, QN_OP_sub},
    {"*", 11, NODE_OP, QN_OP_mul}, {"/", 11, NODE_OP, QN_OP_div},  {"%", 11, NODE_OP, QN_OP_rem},
};

/* --------------------------------------------------------------------------------------- stacks */

static bool push_pending(parser *p, pending x)
{
    if (p->n_pending == MOST_PENDING)
        return FAIL(p, &x.node.token, "an expression is nested deeper than %d", MOST_PENDING);
    if (!p->pending)
        p->pending = qn__zalloc(MOST_PENDING, sizeof *p->pending);
    if (!p->pending)
        return qn__parse_fail_memory(p);
    p->pending[p->n_pending++] = x;
    return true;
}

/** Room for one node more, and for one that waits. */
static bool make_room(parser *p, const qn_token *at)
{
    if (p->n_nodes == MOST_NODES || p->n_waiting == MOST_WAITING)
        return FAIL(p, at, "an expression has more than %d parts, or %d that wait for others",
                    MOST_NODES, MOST_WAITING);
    if (!p->waiting)
        p->waiting = qn__zalloc(MOST_WAITING, sizeof *p->waiting);
    if (p->n_nodes == p->node_capacity) {
        int32_t capacity = p->node_capacity ? 2 * p->node_capacity : 64;
        node *grown = qn__realloc(p->node, (size_t)capacity * sizeof *grown);
        if (!grown)
            return qn__parse_fail_memory(p);
        p->node = grown;
        p->node_capacity = capacity;
    }
    return p->waiting || qn__parse_fail_memory(p);
}

int32_t qn__node_add(parser *p, const node *x, int n_args)
{
    if (!make_room(p, &x->token))
        return -1;
    const int32_t *args = p->waiting + (p->n_waiting - n_args);
    int32_t id = p->n_nodes;
    node *new = &p->node[id];
    *new = *x;
    new->n_args = n_args;
    new->parent = -1;
    if (new->n_results == 0)
        new->n_results = 1;
    if (!qn__node_type(p, new, n_args, args))
        return -1;
    for (int i = 0; i < n_args; i++) {
        p->node[args[i]].parent = id;
        p->node[args[i]].position = i;
    }
    p->n_nodes++;
    p->n_waiting -= n_args;
    if (x->kind != NODE_MARK && x->kind != NODE_BEGIN)
        p->waiting[p->n_waiting++] = id;
    return id;
}

/** A mark before an operand; its number is put in *mark. */
static bool add_mark(parser *p, bool is_second, int32_t *mark)
{
    *mark =
        qn__node_add(p, &(node){.kind = NODE_MARK, .is_second = is_second, .token = p->token}, 0);
    return *mark >= 0;
}

/** Says what the marks of a node that may leave operands out belong to. */
static void link_marks(parser *p, int32_t id, int32_t first, int32_t second)
{
    const int32_t marks[] = {first, second};
    for (int i = 0; i < 2; i++) {
        p->node[marks[i]].link = id;
        p->node[marks[i]].is_lazy = p->node[id].is_lazy;
    }
}

/** The node of the pending operator that was pushed last, which has all its operands. */
static bool complete(parser *p)
{
    const pending x = p->pending[--p->n_pending];
    int32_t id = qn__node_add(p, &x.node, x.n_args);
    if (id < 0)
        return false;
    if (x.node.kind == NODE_AND || x.node.kind == NODE_OR)
        link_marks(p, id, x.mark, x.mark);
    if (x.kind == PENDING_ELSE)
        link_marks(p, id, x.node.link, x.mark);
    return true;
}

/** Completes the operators that bind at least as much, up to a bracket. */
static bool complete_above(parser *p, int32_t base, int level)
{
    while (p->n_pending > base && p->pending[p->n_pending - 1].kind < PENDING_BRACKETS &&
           p->pending[p->n_pending - 1].level >= level)
        if (!complete(p))
            return false;
    return true;
}

/* ------------------------------------------------------------------------------------- operands */

static bool add_leaf(parser *p, const node *x)
{
    return qn__node_add(p, x, 0) >= 0;
}

/** The value of a name is known to the builder; the body begins with one that is not uniform. */
static bool uses_value(parser *p, qn_val v)
{
    uint32_t i = qn__number(v);
    return i == 0 || p->b->note[i].is_uniform || qn__parse_begin_body(p);
}

/** An index of a reduction whose value is read now. */
static bool read_bound(parser *p, const qn_token *t, bool *is_bound)
{
    *is_bound = false;
    for (int32_t i = p->n_pending; i-- > 0 && !*is_bound;) {
        if (p->pending[i].kind != PENDING_REDUCTION)
            continue;
        const reduction *r = &p->head[p->pending[i].node.head];
        for (int j = 0; j < r->n && !*is_bound; j++)
            if (r->name[j].n == t->n && memcmp(r->name[j].text, t->text, t->n) == 0) {
                node x = {.kind = NODE_BOUND,
                          .dtype = QN_I64,
                          .link = j,
                          .head = p->pending[i].node.head,
                          .token = *t};
                *is_bound = true;
                if (!add_leaf(p, &x))
                    return false;
            }
    }
    return true;
}

/** "extent" or "lower" "(" view "," dimension ")", behind the word. */
static bool read_extent(parser *p, node *x)
{
    const parameter *view = NULL;
    int64_t dim = 0;
    if (!qn__parse_expect_symbol(p, '(') || !qn__parse_reference(p, true, &view) ||
        !qn__parse_expect_symbol(p, ',') || !qn__parse_integer(p, QN_I32, &dim) ||
        !qn__parse_expect_symbol(p, ')'))
        return false;
    x->view = view->view;
    x->link = (int32_t)dim;
    x->dtype = QN_I64;
    return add_leaf(p, x);
}

static bool fail_function(parser *p, const qn_token *t)
{
    qn_nearest near = {.text = t->text, .n = t->n};
    for (int op = 1; op < QN_N_TABLE_OPS; op++)
        qn__nearest_add(&near, "", qn__op_info[op].name);
    qn__near_math(&near);
    qn__parse_near_functions(p, "", &near);
    return FAIL(p, t, "no function \"%.*s\" is known%s%s%s", qn__parse_shown_bytes(t->text, t->n),
                t->text, near.best ? ": did you mean \"" : "", near.best ? near.best : "",
                near.best ? "\"?" : "");
}

/** What the word before a "(" calls. */
static bool find_callee(parser *p, const qn_token *t, node *x)
{
    char word[32];
    qn__parse_copy_word(p, word);
    x->function = qn__parse_find_function(p, t->text, t->n);
    x->op = (uint8_t)qn_op_of_name(word);
    x->word = qn__math_keyword(word);
    x->dtype = (int32_t)qn_dtype_of_name(word);
    if (x->function)
        x->kind = NODE_CALL;
    else if (x->dtype != QN_VOID)
        x->kind = NODE_CAST;
    else if (qn__parse_token_is(t, "bitcast"))
        x->kind = NODE_BITCAST;
    else if (x->op)
        x->kind = NODE_OP;
    else if (x->word)
        x->kind = NODE_MATH;
    else
        return fail_function(p, t);
    return true;
}

/** name "(" with what follows in "( )" to come; a call without arguments is complete. */
static bool read_call(parser *p, bool *is_operand)
{
    node x = {.token = p->token};
    bool is_extent = qn__parse_token_is(&x.token, "extent");
    if (is_extent || qn__parse_token_is(&x.token, "lower")) {
        x.kind = is_extent ? NODE_EXTENT : NODE_LOWER;
        *is_operand = true;
        qn__parse_advance(p);
        return read_extent(p, &x);
    }
    if (!find_callee(p, &x.token, &x))
        return false;
    qn__parse_advance(p);
    qn__parse_advance(p);
    if (x.kind == NODE_BITCAST &&
        (!qn__parse_dtype(p, &x.dtype) || !qn__parse_expect_symbol(p, ',')))
        return false;
    if (qn__parse_accept_symbol(p, ')')) {
        *is_operand = true;
        return add_leaf(p, &x);
    }
    return push_pending(p, (pending){.kind = PENDING_ARGUMENTS, .node = x});
}

/** "[" behind a view or constant array. */
static bool open_index(parser *p, const node *x, bool *is_operand)
{
    qn__parse_advance(p);
    if (!qn__parse_accept_symbol(p, ']'))
        return push_pending(p, (pending){.kind = PENDING_INDEX, .node = *x});
    *is_operand = true;
    return add_leaf(p, x);
}

/** A parameter or constant array, behind its name. */
static bool read_parameter(parser *p, const parameter *a, const qn_token *t, bool *is_operand)
{
    node x = {.kind = NODE_VALUE, .part = -1, .token = *t};
    bool has_index = qn__parse_is_symbol(p, '[');
    if (a->is_array) {
        x.kind = NODE_LOOKUP;
        x.array = a->array;
        return has_index ? open_index(p, &x, is_operand)
                         : FAIL(p, t, "\"%.*s\" is a constant array: write its index in [ ]",
                                (int)t->n, t->text);
    }
    if (a->is_view) {
        x.kind = has_index ? NODE_LOAD : NODE_VIEW;
        x.view = a->view;
        if (!qn__parse_begin_body(p))
            return false;
        if (has_index)
            return open_index(p, &x, is_operand);
    } else {
        x.value = a->scalar;
        x.dtype = (int32_t)qn_type_of(p->b, a->scalar);
    }
    *is_operand = true;
    return add_leaf(p, &x);
}

static bool read_literal_word(parser *p, const qn_token *t, bool *is_known)
{
    node x = {.kind = NODE_NUMBER, .token = *t};
    bool is_true = qn__parse_token_is(t, "true");
    *is_known = true;
    if (is_true || qn__parse_token_is(t, "false")) {
        x.kind = NODE_VALUE;
        x.dtype = QN_BOOL;
        x.value = qn_const_bits(p->b, QN_BOOL, is_true);
        return qn__parse_check_builder(p) && add_leaf(p, &x);
    }
    *is_known = qn__parse_token_is(t, "inf") || qn__parse_token_is(t, "nan");
    return !*is_known || add_leaf(p, &x);
}

/** A variable, or a value by its name without "%", behind the name. */
static bool read_symbol(parser *p, const qn_token *t, int32_t i)
{
    const qn_val v = p->symbols.entry[i].value;
    node x = {.kind = NODE_NAME, .link = i, .token = *t, .dtype = (int32_t)qn_type_of(p->b, v)};
    return uses_value(p, v) && add_leaf(p, &x);
}

/** A name: of an index of a reduction, a parameter, a value, or a literal. */
static bool read_name(parser *p, bool *is_operand)
{
    const char *name = NULL;
    size_t n = 0;
    const qn_token t = p->token;
    bool is_known = false, is_word = t.kind == QN_TOKEN_WORD;
    if (!read_bound(p, &t, &is_known) || !qn__parse_name(p, &name, &n))
        return false;
    const parameter *a = is_known ? NULL : qn__parse_find_parameter(p, name, n);
    if (a)
        return read_parameter(p, a, &t, is_operand);
    *is_operand = true;
    int32_t i = is_known || !is_word ? -1 : qn__parse_find(p, name, n);
    if (i >= 0)
        return read_symbol(p, &t, i);
    if (is_word && !is_known && !read_literal_word(p, &t, &is_known))
        return false;
    return is_known ||
           FAIL(p, &t, "no name \"%.*s\" is known here", qn__parse_shown_bytes(name, n), name);
}

/** "sum" k "in" ... "of", whose value follows. */
static bool read_reduction(parser *p)
{
    node begin = {.kind = NODE_BEGIN, .token = p->token};
    begin.head = qn__reduction_head(p);
    if (begin.head < 0)
        return false;
    const reduction *r = &p->head[begin.head];
    node end = {
        .kind = NODE_END, .op = (uint8_t)r->combine, .head = begin.head, .token = begin.token};
    end.link = qn__node_add(p, &begin, r->is_loop ? 2 : 0);
    return end.link >= 0 && push_pending(p, (pending){.kind = PENDING_REDUCTION,
                                                      .level = LEVEL_REDUCTION,
                                                      .node = end,
                                                      .n_args = 1});
}

/** "-", "!", "~" before an operand; a number behind "-" is a negative number. */
static bool read_prefix(parser *p, bool *is_operand)
{
    node x = {
        .kind = NODE_OP, .op = *p->token.text == '-' ? QN_OP_neg : QN_OP_not, .token = p->token};
    qn__parse_advance(p);
    if (x.op != QN_OP_neg || p->token.kind != QN_TOKEN_NUMBER)
        return push_pending(
            p, (pending){.kind = PENDING_PREFIX, .level = LEVEL_PREFIX, .node = x, .n_args = 1});
    x = (node){.kind = NODE_NUMBER, .is_negative = true, .token = p->token};
    qn__parse_advance(p);
    *is_operand = true;
    return add_leaf(p, &x);
}

/** An operand, or what stands before one. */
static bool read_operand(parser *p, bool *is_operand)
{
    node x = {.kind = NODE_NUMBER, .token = p->token};
    qn_token next = qn__parse_peek(p);
    switch (p->token.kind) {
    case QN_TOKEN_NUMBER:
        qn__parse_advance(p);
        *is_operand = true;
        return add_leaf(p, &x);
    case QN_TOKEN_VALUE:
        x.kind = NODE_VALUE;
        *is_operand = true;
        if (!qn__parse_value(p, &x.value))
            return false;
        x.dtype = (int32_t)qn_type_of(p->b, x.value);
        return uses_value(p, x.value) && add_leaf(p, &x);
    case QN_TOKEN_WORD:
        if (qn__parse_is_reduction(&p->lexer, &p->token))
            return read_reduction(p);
        return qn__parse_is_operator(&next, "(") ? read_call(p, is_operand)
                                                 : read_name(p, is_operand);
    case QN_TOKEN_STRING:
        return read_name(p, is_operand);
    default:
        break;
    }
    if (qn__parse_is_symbol(p, '-') || qn__parse_is_symbol(p, '!') || qn__parse_is_symbol(p, '~'))
        return read_prefix(p, is_operand);
    if (!qn__parse_accept_symbol(p, '('))
        return qn__parse_fail_expected(p, "a value");
    return push_pending(p, (pending){.kind = PENDING_BRACKETS, .node = x});
}

/* ------------------------------------------------------------------------------------ operators */

/** "%" before a name on the line of the operand is an operator, on another one it begins a
 *  statement. */
static void split_remainder(parser *p)
{
    if (p->token.kind != QN_TOKEN_VALUE || p->token.line != p->last_line)
        return;
    p->lexer.at = p->token.text;
    p->token.kind = QN_TOKEN_SYMBOL;
    p->token.text--;
    p->token.n = 1;
}

static bool read_binary(parser *p, int32_t base, size_t i)
{
    pending x = {.kind = PENDING_BINARY, .level = binaries[i].level, .n_args = 2};
    x.node = (node){.kind = binaries[i].kind, .op = binaries[i].op, .token = p->token};
    bool may_leave_out = x.node.kind != NODE_OP;
    if (!complete_above(p, base, x.level) || (may_leave_out && !add_mark(p, false, &x.mark)))
        return false;
    qn__parse_advance(p);
    return push_pending(p, x);
}

/** "?", behind the condition */
static bool read_then(parser *p, int32_t base)
{
    pending x = {.kind = PENDING_THEN, .node = {.kind = NODE_CHOOSE, .token = p->token}};
    if (!complete_above(p, base, LEVEL_CHOOSE + 1) || !add_mark(p, false, &x.mark))
        return false;
    qn__parse_advance(p);
    return push_pending(p, x);
}

/** ":", behind what stands between it and the "?" that was pushed last */
static bool read_else(parser *p)
{
    pending *x = &p->pending[p->n_pending - 1];
    x->node.link = x->mark;
    x->kind = PENDING_ELSE;
    x->level = LEVEL_CHOOSE;
    x->n_args = 3;
    bool is_good = add_mark(p, true, &x->mark);
    qn__parse_advance(p);
    return is_good;
}

/** ["part" number] behind the indices of a view */
static bool read_part(parser *p, node *x)
{
    qn_token next = qn__parse_peek(p);
    int64_t part = -1;
    bool is_there =
        x->kind == NODE_LOAD && qn__parse_is_word(p, "part") && next.kind == QN_TOKEN_NUMBER;
    if (!is_there)
        return true;
    qn__parse_advance(p);
    if (!qn__parse_integer(p, QN_I16, &part))
        return false;
    x->part = (int16_t)part;
    return true;
}

/** ",", ")" or "]": goes on in the brackets that are open, or closes them. *is_end: there are none.
 */
static bool read_bracket(parser *p, int32_t base, bool *wants_operand, bool *is_end)
{
    if (!complete_above(p, base, LEVEL_REDUCTION))
        return false;
    pending *x = p->n_pending > base ? &p->pending[p->n_pending - 1] : NULL;
    *is_end = !x;
    if (!x)
        return true;
    bool is_comma = qn__parse_is_symbol(p, ','),
         has_list = x->kind == PENDING_ARGUMENTS || x->kind == PENDING_INDEX;
    if (is_comma && has_list) {
        x->n_args++;
        qn__parse_advance(p);
        *wants_operand = true;
        return true;
    }
    if (x->kind == PENDING_THEN || !qn__parse_is_symbol(p, x->kind == PENDING_INDEX ? ']' : ')'))
        return qn__parse_fail_expected(p, x->kind == PENDING_THEN    ? "':'"
                                          : x->kind == PENDING_INDEX ? "']'"
                                                                     : "')'");
    qn__parse_advance(p);
    if (!has_list) {
        p->n_pending--;
        return true;
    }
    x->n_args++;
    return read_part(p, &x->node) && complete(p);
}

/** What stands behind an operand. *is_end: nothing that belongs to the expression. */
static bool read_operator(parser *p, int32_t base, bool *wants_operand, bool *is_end)
{
    split_remainder(p);
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (qn__parse_is_operator(&p->token, binaries[i].text)) {
            *wants_operand = true;
            return read_binary(p, base, i);
        }
    if (qn__parse_is_symbol(p, '?')) {
        *wants_operand = true;
        return read_then(p, base);
    }
    if (qn__parse_is_symbol(p, ':')) {
        if (!complete_above(p, base, LEVEL_REDUCTION))
            return false;
        if (p->n_pending > base && p->pending[p->n_pending - 1].kind == PENDING_THEN) {
            *wants_operand = true;
            return read_else(p);
        }
    }
    return read_bracket(p, base, wants_operand, is_end);
}

bool qn__expression_read(parser *p, expression *e)
{
    int32_t base = p->n_pending;
    bool wants_operand = true, is_end = false;
    e->begin = p->n_nodes;
    while (!is_end) {
        bool is_operand = false, is_good = wants_operand
                                               ? read_operand(p, &is_operand)
                                               : read_operator(p, base, &wants_operand, &is_end);
        if (!is_good)
            return false;
        if (wants_operand && is_operand)
            wants_operand = false;
    }
    e->end = p->n_nodes;
    p->n_waiting--;
    return true;
}

bool qn__parse_expression(parser *p, int dtype, const char *what, qn_val *out)
{
    expression e;
    values v = {.n = 0};
    const qn_token at = p->token;
    if (!qn__expression_read(p, &e) || !qn__expression_settle(p, &e, dtype, what) ||
        !qn__expression_build(p, &e, &v))
        return false;
    *out = v.v[0];
    return v.n == 1 || FAIL(p, &at, "%s is one value, not %d", what, v.n);
}

bool qn__parse_expressions(parser *p, values *v)
{
    do {
        if (v->n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d values", QN_MAX_CARRIED);
        if (!qn__parse_given(p, QN_VOID, "a value", &v->v[v->n]))
            return false;
        v->n++;
    } while (qn__parse_accept_symbol(p, ','));
    return true;
}
