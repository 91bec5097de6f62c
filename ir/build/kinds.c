/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.c: typed indices. A dimension of a view parameter may have a kind, a number from 1 to
 * 255; a value's kind travels in its handle (builder.h) and is gone in the kernel. So kinds cost
 * nothing, and swapped indices are errors of the builder.
 */
#include "ir/build/builder.h"

qn_val qn__value(const qn_builder *b, uint32_t number, int kind)
{
    if (number == 0 || !qn__is_integer(b->inst[number].type))
        kind = 0;
    return (qn_val){number | (uint32_t)kind << 24, number ? b->number : 0};
}

qn_param qn__param(const qn_builder *b, uint32_t id)
{
    return (qn_param){id, id ? b->number : 0};
}

bool qn__join_kinds(qn_builder *b, const char *who, int n, const qn_val *values, int *out)
{
    int joined = 0;
    for (int i = 0; i < n; i++) {
        int kind = qn__kind(values[i]);
        if (kind && joined && kind != joined) {
            qn__builder_fail(b, QN_ERR_TYPE, "%s: index kinds %d and %d differ", who, joined, kind);
            return false;
        }
        joined = kind ? kind : joined;
    }
    *out = joined;
    return true;
}

bool qn__has_kind(qn_builder *b, const char *who, const char *what, qn_val v, int wanted)
{
    if (qn__kind(v) == wanted)
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: %s has index kind %d, the dimension has %d", who, what,
                     qn__kind(v), wanted);
    return false;
}

void qn_param_kinds(qn_builder *b, qn_param p, const uint8_t *kinds)
{
    const char *who = "qn_param_kinds";
    if (!qn__builder_ready(b, who))
        return;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view)
        return;
    if (b->n_dims || b->has_body)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: view \"%.100s\": kinds come before %s", who,
                         view->name, b->n_dims ? "dimensions" : b->body_op);
    else if (view->rank > 0 && !kinds)
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: view \"%.100s\": kinds are NULL", who,
                         view->name);
    else
        for (int d = 0; d < view->rank; d++)
            b->kind[p.id - 1][d] = kinds[d];
}

qn_val qn_with_kind(qn_builder *b, qn_val v, int kind)
{
    const char *who = "qn_with_kind";
    uint32_t number;
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "operand", v, &number))
        return (qn_val){0};
    if (kind < 0 || kind > 255)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: index kind %d is not in 0 to 255", who,
                                kind);
    int type = b->inst[number].type;
    if (!qn__is_integer(type))
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: index kind %d for %s, not an integer", who,
                                kind, qn_dtype_name(type));
    return qn__value(b, number, kind);
}
