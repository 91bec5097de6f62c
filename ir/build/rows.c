/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c: shorthand for rows of different lengths that lie one behind the other, as in sparse
 * matrices and ragged arrays: row r of the entries is map[r] .. map[r + 1] - 1. Nothing but loads,
 * comparisons and loops of the builder.
 */
#include "ir/build/builder.h"

/** Element `row + ahead` of the map as an index. */
static qn_val load_border(qn_builder *b, const char *who, qn_param map, qn_val row, int ahead)
{
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    const qn_kernel_parameter *view = qn__view_of(b, who, map);
    if (!view)
        return (qn_val){0};
    int cls = qn__dtype_class(view->dtype);
    if (view->rank != 1 || (cls != QN_CLASS_S && cls != QN_CLASS_U))
        return qn__builder_fail(b, QN_ERR_TYPE,
                                "%s: view \"%.100s\" of %s and rank %d is no map of rows: expected "
                                "integers and rank 1",
                                who, view->name, qn_dtype_name(view->dtype), view->rank);
    uint32_t number;
    if (!qn__use_index(b, who, "row", row, &number))
        return (qn_val){0};
    qn_val at = qn_type_of(b, row) == QN_I64
                    ? row
                    : qn__value(b, number, 0); /* the row as it is has its kind */
    if (ahead)
        at = qn_add(b, at, qn_index(b, ahead));
    return qn_cast(b, QN_I64, qn_load(b, map, 1, &at));
}

qn_val qn_row_begin(qn_builder *b, qn_param map, qn_val row)
{
    return load_border(b, "qn_row_begin", map, row, 0);
}

qn_val qn_row_end(qn_builder *b, qn_param map, qn_val row)
{
    return load_border(b, "qn_row_end", map, row, 1);
}

qn_val qn_row_at(qn_builder *b, qn_param map, qn_val row, qn_val k)
{
    const char *who = "qn_row_at";
    qn_val begin = load_border(b, who, map, row, 0), end = load_border(b, who, map, row, 1);
    uint32_t number;
    if (!qn__builder_ready(b, who) || !qn__use_index(b, who, "k", k, &number))
        return (qn_val){0};
    qn_val at = qn_add(b, begin, qn__value(b, number, 0));
    qn_val is_in = qn_and(b, qn_ge(b, qn__value(b, number, 0), qn_index(b, 0)), qn_lt(b, at, end));
    is_in = qn_and(b, is_in, qn_ge(b, at, begin)); /* the sum has not wrapped */
    return qn_select(b, is_in, at, qn_index(b, INT64_MIN));
}

qn_val qn_for_row(qn_builder *b, qn_param map, qn_val row, int n, const qn_val *init,
                  qn_val *carried)
{
    qn_val begin = load_border(b, "qn_for_row", map, row, 0);
    qn_val end = load_border(b, "qn_for_row", map, row, 1);
    return qn_for(b, begin, end, 1, n, init, carried);
}
