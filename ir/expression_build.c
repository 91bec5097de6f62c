/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression_build.c: calls the builder for the nodes of an expression, whose types are known. The
 * order is that of the nodes; their values wait on a stack of the parser. Errors of the builder
 * have the place of the operator or name.
 */
#include "ir/build/builder.h"
#include "ir/expression.h"
#include "ir/function.h"

#include <string.h>

/* ------------------------------------------------------------------------------------- literals */

/** Bits of a number of a type that is no complex number. */
static const char *read_number(const node *x, int dtype, uint64_t *bits)
{
    int class = qn__dtype_class(dtype);
    if (class != QN_CLASS_F && x->token.kind == QN_TOKEN_WORD)
        return "is a float";
    if (x->token.kind == QN_TOKEN_WORD) { /* inf, nan */
        qn_float_format f = qn__float_format(dtype);
        *bits = f.infinity | (*x->token.text == 'n' ? UINT64_C(1) << (f.fraction_bits - 1) : 0);
        return NULL;
    }
    if (class == QN_CLASS_F)
        return qn__read_float(&x->token, x->is_negative, dtype, bits);
    return qn__is_integer(dtype) ? qn__read_integer(&x->token, x->is_negative, dtype, bits)
                                 : "is a number";
}

static bool build_number(parser *p, const node *x, qn_val *out)
{
    uint64_t bits = 0;
    bool is_complex = qn__dtype_class(x->dtype) == QN_CLASS_C;
    int part = is_complex ? qn__part_dtype(x->dtype, NULL, 0) : x->dtype;
    const char *problem = read_number(x, part, &bits);
    if (problem)
        return FAIL(p, &x->token, "literal \"%s%.*s\" %s (%s)", x->is_negative ? "-" : "",
                    qn__parse_shown_bytes(x->token.text, x->token.n), x->token.text, problem,
                    qn_dtype_name(x->dtype));
    *out = is_complex ? qn__complex_const(p->b, "a literal", x->dtype, bits, 0)
                      : qn_const_bits(p->b, x->dtype, bits);
    return true;
}

/* ----------------------------------------------------------------------- operands that are left
 * out */

/** Opens the `if` around an operand, or goes to the other one. */
static void build_mark(parser *p, const node *x)
{
    const node *owner = &p->node[x->link];
    if (!x->is_lazy)
        return;
    if (x->is_second) {
        qn_else(p->b, 1, &p->built[--p->n_built]);
        return;
    }
    qn_if(p->b, p->built[--p->n_built]);
    if (owner->kind == NODE_OR) {
        const qn_val yes = qn_const_bits(p->b, QN_BOOL, 1);
        qn_else(p->b, 1, &yes);
    }
}

/** c ? a : b, a && b, a || b. */
static bool build_choice(parser *p, const node *x, const qn_val *args, qn_val *out)
{
    if (!x->is_lazy) {
        *out = x->kind == NODE_CHOOSE ? qn_select(p->b, args[0], args[1], args[2])
               : x->kind == NODE_AND  ? qn_and(p->b, args[0], args[1])
                                      : qn_or(p->b, args[0], args[1]);
        return true;
    }
    qn_val last = args[0]; /* the others were taken by the marks */
    if (x->kind == NODE_AND) {
        qn_else(p->b, 1, &last);
        last = qn_const_bits(p->b, QN_BOOL, 0);
    }
    qn_end_if(p->b, 1, &last, out);
    return true;
}

/* ----------------------------------------------------------------------------------- reductions */

static void open_reduction(parser *p, const node *x)
{
    reduction *r = &p->head[x->head];
    if (!r->is_loop) {
        qn_reduce(p->b, r->combine, r->order, r->n, r->value);
        return;
    }
    p->n_built -= 2;
    uint64_t identity =
        qn__dtype_class(x->dtype) == QN_CLASS_C ? 0 : qn__reduce_empty(r->combine, x->dtype);
    qn_val start = qn__dtype_class(x->dtype) == QN_CLASS_C
                       ? qn_const_complex(p->b, x->dtype, 0, 0)
                       : qn_const_bits(p->b, x->dtype, identity);
    r->value[0] =
        qn_for(p->b, p->built[p->n_built], p->built[p->n_built + 1], 1, 1, &start, &r->carried);
}

static bool close_reduction(parser *p, const node *x, const qn_val *args, qn_val *out)
{
    const reduction *r = &p->head[x->head];
    if (!r->is_loop) {
        *out = qn_end_reduce(p->b, args[0]);
        return true;
    }
    qn_val next = qn_op(p->b, qn__combine_op(r->combine), 2, (const qn_val[]){args[0], r->carried});
    qn_end_for(p->b, 1, &next, out);
    return true;
}

/* ---------------------------------------------------------------------------------------- nodes */

static bool build_call(parser *p, const node *x, const qn_val *args, qn_val *out)
{
    qn_val given[QN_MAX_PARAMS];
    qn_param views[QN_MAX_PARAMS];
    int n_values = 0, n_views = 0;
    for (int i = 0; i < x->n_args; i++)
        if (x->function->body.param[i].rank < 0)
            given[n_values++] = args[i];
        else
            views[n_views++] = (qn_param){.id = args[i].id, .builder = args[i].builder};
    qn_invoke(p->b, x->function, n_values, given, n_views, views, out);
    return true;
}

static bool build_leaf(parser *p, const node *x, qn_val *out)
{
    switch (x->kind) {
    case NODE_NUMBER:
        return build_number(p, x, out);
    case NODE_VALUE:
        *out = x->value;
        return true;
    case NODE_NAME:
        *out = p->symbols.entry[x->link].value;
        return true;
    case NODE_BOUND:
        *out = p->head[x->head].value[x->link];
        return true;
    case NODE_VIEW:
        *out = (qn_val){.id = x->view.id, .builder = x->view.builder};
        return true;
    default:
        *out = x->kind == NODE_EXTENT ? qn_extent(p->b, x->view, x->link)
                                      : qn_lower(p->b, x->view, x->link);
        return true;
    }
}

/** A node of operands. */
static bool build_inner(parser *p, const node *x, const qn_val *args, qn_val *out)
{
    switch (x->kind) {
    case NODE_LOAD:
        *out = x->part < 0 ? qn_load(p->b, x->view, x->n_args, args)
                           : qn__load_part(p->b, x->view, x->part, x->n_args, args);
        return true;
    case NODE_LOOKUP:
        *out = qn_lookup(p->b, x->array, args[0]);
        return true;
    case NODE_OP:
        *out = qn_op(p->b, x->op, x->n_args, args);
        return true;
    case NODE_CAST: /* of a number: the number itself */
        *out =
            (int)qn_type_of(p->b, args[0]) == x->dtype ? args[0] : qn_cast(p->b, x->dtype, args[0]);
        return true;
    case NODE_BITCAST:
        *out = qn_bitcast(p->b, x->dtype, args[0]);
        return true;
    case NODE_MATH:
        qn_math(p->b, x->word, x->n_args, args, out);
        return true;
    case NODE_CALL:
        return build_call(p, x, args, out);
    case NODE_END:
        return close_reduction(p, x, args, out);
    default:
        return build_choice(p, x, args, out);
    }
}

/** Operands that a node finds on the stack: those of an `if` were taken before it. */
static int n_operands(const node *x)
{
    bool is_choice = x->kind == NODE_CHOOSE || x->kind == NODE_AND || x->kind == NODE_OR;
    return is_choice && x->is_lazy ? 1 : x->n_args;
}

/** Builds a node, which puts its value on the stack; several ones for the root go to *out. */
static bool build_node(parser *p, const node *x, values *out)
{
    qn_val result[QN_MAX_CARRIED] = {{0}};
    int n = n_operands(x);
    p->statement = x->token;
    if (x->kind == NODE_MARK || x->kind == NODE_BEGIN) {
        if (x->kind == NODE_MARK)
            build_mark(p, x);
        else
            open_reduction(p, x);
        return qn__parse_check_builder(p);
    }
    p->n_built -= n;
    const qn_val *args = p->built + p->n_built;
    bool is_leaf = x->kind <= NODE_LOWER;
    if (!(is_leaf ? build_leaf(p, x, result) : build_inner(p, x, args, result)) ||
        !qn__parse_check_builder(p))
        return false;
    if (x->parent >= 0) {
        p->built[p->n_built++] = result[0];
        return true;
    }
    for (int i = 0; i < x->n_results; i++) {
        if (out->n == QN_MAX_CARRIED)
            return FAIL(p, &x->token, "more than %d values", QN_MAX_CARRIED);
        out->v[out->n++] = result[i];
    }
    return true;
}

bool qn__expression_build(parser *p, const expression *e, values *out)
{
    const qn_token statement = p->statement;
    if (!p->built)
        p->built = qn__zalloc(MOST_WAITING, sizeof *p->built);
    if (!p->built)
        return qn__parse_fail_memory(p);
    for (int32_t i = e->begin; i < e->end; i++)
        if (!build_node(p, &p->node[i], out))
            return false;
    p->n_nodes = e->begin;
    p->statement = statement;
    return true;
}
