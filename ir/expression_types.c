/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression_types.c: types of the nodes of an expression. A node gets its type from its operands
 * when it is read. A number has none: it takes the type that it meets, from the other operand, the
 * function, or the place of the expression, in one pass from the root down. What an op takes is
 * checked by the builder.
 */
#include "ir/build/builder.h"
#include "ir/expression.h"
#include "ir/function.h"

const char *qn__type_words(int dtype)
{
    return dtype == QN_VOID ? "a number" : qn_dtype_name(dtype);
}

/** The spelling of a node's token, for "%.*s". */
static int shown(const node *x)
{
    return qn__parse_shown_bytes(x->token.text, x->token.n);
}

/* ------------------------------------------------------------------------------- from operands */

/** The one type that operands have, QN_VOID if all are numbers. */
static bool join(parser *p, const node *x, int n, const int32_t *args, int32_t *out)
{
    *out = QN_VOID;
    for (int i = 0; i < n; i++) {
        int32_t type = p->node[args[i]].dtype;
        if (type == QN_VOID || type == *out)
            continue;
        if (*out != QN_VOID)
            return FAIL(p, &x->token,
                        "operands of \"%.*s\" are %s and %s: convert one, as in %s(...)", shown(x),
                        x->token.text, qn__type_words(*out), qn__type_words(type),
                        qn__type_words(*out));
        *out = type;
    }
    return true;
}

/** Operands that are conditions. */
static bool check_bool(parser *p, const node *x, int n, const int32_t *args)
{
    for (int i = 0; i < n; i++) {
        const node *arg = &p->node[args[i]];
        if (arg->dtype != QN_BOOL)
            return FAIL(p, &x->token, "\"%.*s\" takes bool, not %s: compare, as in x != 0",
                        shown(x), x->token.text, qn__type_words(arg->dtype));
    }
    return true;
}

static bool check_count(parser *p, const node *x, int n, int wanted)
{
    return n == wanted || FAIL(p, &x->token, "\"%.*s\" takes %d argument%s, not %d", shown(x),
                               x->token.text, wanted, wanted == 1 ? "" : "s", n);
}

static bool type_op(parser *p, node *x, int n, const int32_t *args)
{
    const qn_op_info *info = &qn__op_info[x->op];
    bool is_select = info->rule == QN_RULE_SELECT,
         is_not = *x->token.text == '!' && x->op == QN_OP_not;
    if (!check_count(p, x, n, info->arity) ||
        ((is_select || is_not) && !check_bool(p, x, 1, args)) ||
        !join(p, x, n - is_select, args + is_select, &x->operands))
        return false;
    bool is_comparison = info->rule == QN_RULE_COMPARE,
         is_length = x->op == QN_OP_abs && qn__dtype_class(x->operands) == QN_CLASS_C;
    x->dtype = is_comparison ? QN_BOOL
               : is_length   ? qn__part_dtype(x->operands, NULL, 0)
                             : x->operands;
    return !is_comparison || x->operands != QN_VOID ||
           FAIL(p, &x->token,
                "operands of \"%.*s\" are numbers without a type: write one as f32(...), i64(...)",
                shown(x), x->token.text);
}

static bool type_choose(parser *p, node *x, int n, const int32_t *args)
{
    (void)n;
    x->is_lazy = p->node[args[1]].has_access || p->node[args[2]].has_access;
    return check_bool(p, x, 1, args) && join(p, x, 2, args + 1, &x->dtype);
}

static bool type_both(parser *p, node *x, int n, const int32_t *args)
{
    x->is_lazy = p->node[args[1]].has_access;
    x->dtype = QN_BOOL;
    return check_bool(p, x, n, args);
}

static bool type_cast(parser *p, node *x, int n, const int32_t *args)
{
    bool is_number = n == 1 && p->node[args[0]].dtype == QN_VOID;
    return check_count(p, x, n, 1) &&
           (x->kind == NODE_CAST || !is_number ||
            FAIL(p, &x->token, "bits of a number without a type: write it as f32(...), i64(...)"));
}

/** Indices of a view or constant array, and bounds of a loop: integers. */
static bool check_indices(parser *p, const node *x, int n, const int32_t *args, const char *what)
{
    for (int i = 0; i < n; i++) {
        const node *arg = &p->node[args[i]];
        if (arg->dtype != QN_VOID && !qn__is_integer(arg->dtype))
            return FAIL(p, &arg->token,
                        "%s %d of \"%.*s\" is %s, not an integer: convert it, as in i64(...)", what,
                        i, shown(x), x->token.text, qn__type_words(arg->dtype));
    }
    return true;
}

static bool type_load(parser *p, node *x, int n, const int32_t *args)
{
    const qn_kernel_parameter *view = &p->b->param[x->view.id - 1];
    int n_parts = qn__n_parts(view->dtype, view->record);
    if (n != view->rank)
        return FAIL(p, &x->token, "view \"%.*s\" has %d dimension%s, and here %d %s", shown(x),
                    x->token.text, view->rank, view->rank == 1 ? "" : "s", n,
                    n == 1 ? "index" : "indices");
    if (x->part >= n_parts)
        return FAIL(p, &x->token, "elements of view \"%.*s\" have %d parts, and no part %d",
                    shown(x), x->token.text, n_parts, (int)x->part);
    x->has_access = true;
    x->dtype = x->part < 0 ? view->dtype : qn__part_dtype(view->dtype, view->record, x->part);
    return check_indices(p, x, n, args, "index");
}

static bool type_lookup(parser *p, node *x, int n, const int32_t *args)
{
    x->dtype = p->b->array[x->array.id - 1]->dtype;
    return check_count(p, x, n, 1) && check_indices(p, x, n, args, "index");
}

/** Whether the argument has the type of the parameter. */
static bool check_argument(parser *p, const node *x, int i, int type, int wanted)
{
    return type == QN_VOID || type == wanted ||
           FAIL(p, &x->token,
                "argument %d of \"%.*s\" is %s, expected %s: convert it, as in %s(...)", i,
                shown(x), x->token.text, qn__type_words(type), qn__type_words(wanted),
                qn__type_words(wanted));
}

static bool type_call(parser *p, node *x, int n, const int32_t *args)
{
    const qn_kernel *body = &x->function->body;
    if (!check_count(p, x, n, body->n_params))
        return false;
    for (int i = 0; i < n; i++) {
        const node *arg = &p->node[args[i]];
        bool is_view = body->param[i].rank >= 0;
        if ((arg->kind == NODE_VIEW) != is_view)
            return FAIL(p, &arg->token, "argument %d of \"%.*s\" is %s view", i, shown(x),
                        x->token.text, is_view ? "a" : "no");
        if (!is_view && !check_argument(p, x, i, arg->dtype, body->param[i].dtype))
            return false;
    }
    x->n_results = (uint8_t)x->function->n_results;
    x->dtype = (int32_t)qn_function_result(x->function, 0);
    return true;
}

/** The function of a keyword whose first argument is of this type. */
static bool find_math(parser *p, node *x, int type)
{
    qn_error e = {0};
    x->function = qn__math_of(x->word, type, &e);
    if (!x->function)
        return qn__parse_fail_at(p, x->token.line, x->token.column, (qn_status)e.status, "%s",
                                 e.message);
    x->operands = type;
    x->n_results = (uint8_t)x->function->n_results;
    int32_t result = (int32_t)qn_function_result(x->function, 0);
    x->dtype = qn__is_half(type) && result == QN_F32 ? type : result;
    return true;
}

/** The first argument decides; a number there takes the type of another one, or the only one. */
static bool type_math(parser *p, node *x, int n, const int32_t *args)
{
    int type = n > 0 ? p->node[args[0]].dtype : QN_VOID;
    for (int i = 1; type == QN_VOID && i < n; i++)
        if (qn__math_of(x->word, p->node[args[i]].dtype, NULL))
            type = p->node[args[i]].dtype;
    if (type == QN_VOID)
        type = qn__math_only_dtype(x->word);
    if (type == QN_VOID)
        return n > 0 || check_count(p, x, n, 1);
    if (!find_math(p, x, type) || !check_count(p, x, n, x->function->body.n_params))
        return false;
    for (int i = 0; i < n; i++)
        if (!check_argument(p, x, i, p->node[args[i]].dtype,
                            qn__math_argument(x->function, i, type)))
            return false;
    return true;
}

static bool type_begin(parser *p, node *x, int n, const int32_t *args)
{
    return check_indices(p, x, n, args, "bound");
}

static bool type_end(parser *p, node *x, int n, const int32_t *args)
{
    (void)n;
    x->dtype = p->node[args[0]].dtype;
    x->has_access = true;
    return true;
}

bool qn__node_type(parser *p, node *x, int n, const int32_t *args)
{
    static bool (*const rules[])(parser *, node *, int, const int32_t *) = {
        [NODE_LOAD] = type_load, [NODE_LOOKUP] = type_lookup, [NODE_OP] = type_op,
        [NODE_CAST] = type_cast, [NODE_BITCAST] = type_cast,  [NODE_MATH] = type_math,
        [NODE_CALL] = type_call, [NODE_CHOOSE] = type_choose, [NODE_AND] = type_both,
        [NODE_OR] = type_both,   [NODE_BEGIN] = type_begin,   [NODE_END] = type_end};
    for (int i = 0; i < n; i++) {
        const node *arg = &p->node[args[i]];
        x->has_access = x->has_access || arg->has_access;
        if (arg->kind == NODE_VIEW && x->kind != NODE_CALL)
            return FAIL(p, &arg->token, "\"%.*s\" is a view: write indices in [ ]", shown(arg),
                        arg->token.text);
        if (arg->n_results != 1)
            return FAIL(p, &arg->token,
                        "\"%.*s\" has %d results: give them names, as in a, b = %.*s(...)",
                        shown(arg), arg->token.text, arg->n_results, shown(arg), arg->token.text);
    }
    x->has_access = x->has_access || x->kind == NODE_VIEW;
    bool has_rule = x->kind < sizeof rules / sizeof *rules && rules[x->kind];
    return !has_rule || rules[x->kind](p, x, n, args);
}

/* ------------------------------------------------------------------------------ from the place */

/** The type that a node wants of an operand. */
static int wanted_by(const node *x, int position)
{
    switch (x->kind) {
    case NODE_OP:
        return x->operands ? x->operands : x->dtype;
    case NODE_LOAD:
    case NODE_LOOKUP:
    case NODE_BEGIN:
        return QN_I64;
    case NODE_MATH:
        return x->function ? qn__math_argument(x->function, position, x->operands) : QN_VOID;
    case NODE_CALL:
        return x->function->body.param[position].dtype;
    default:
        return x->dtype;
    }
}

static bool fail_ambiguous(parser *p, const node *x)
{
    return FAIL(
        p, &x->token,
        "\"%.*s\" has no type here: write it as f32(...) or i64(...), or the name as t: f32 = ...",
        shown(x), x->token.text);
}

/** Gives a node its type, if it has none, once that of its parent is known. */
static bool settle_node(parser *p, node *x, int wanted)
{
    if (x->kind == NODE_MARK || x->kind == NODE_BEGIN || x->kind == NODE_VIEW)
        return true;
    if (x->dtype == QN_VOID) {
        if (wanted == QN_VOID)
            return fail_ambiguous(p, x);
        x->dtype = wanted;
        if (x->kind == NODE_MATH &&
            (!find_math(p, x, wanted) || !check_count(p, x, x->n_args, x->function->body.n_params)))
            return false;
    }
    if (x->kind == NODE_END)
        p->node[x->link].dtype = x->dtype;
    return true;
}

bool qn__expression_settle(parser *p, const expression *e, int dtype, const char *what)
{
    const node *root = &p->node[e->end - 1];
    if (root->kind == NODE_VIEW)
        return FAIL(p, &root->token, "\"%.*s\" is a view: write indices in [ ]", shown(root),
                    root->token.text);
    bool is_index = dtype == INDEX_TYPE;
    int place = is_index ? QN_I64 : dtype;
    for (int32_t i = e->end; i-- > e->begin;) {
        node *x = &p->node[i];
        if (!settle_node(p, x, x->parent < 0 ? place : wanted_by(&p->node[x->parent], x->position)))
            return false;
    }
    bool is_wanted =
        is_index ? qn__is_integer(root->dtype) : dtype == QN_VOID || root->dtype == dtype;
    return is_wanted ||
           FAIL(p, &root->token, "%s is %s, and the expression is %s: convert it, as in %s(...)",
                what, is_index ? "an integer" : qn__type_words(dtype), qn__type_words(root->dtype),
                qn__type_words(place));
}
