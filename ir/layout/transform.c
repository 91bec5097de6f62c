/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.c: functions from layout to layout that keep the digits of each dimension:
 * offset, shift, permute, broadcast, reverse, squeeze, expand, C and Fortran style. Parts of
 * dimensions are in layout/slice.c, splits and joins in layout/reshape.c. Each is given by its
 * post-condition, an equation between result(index) and l(index), which is also its test.
 *
 * All work the same way: the result's head and dims are made on the side, with the dimension of `l`
 * that each dimension of the result takes its digits from, and then committed at once, so that
 * `out` may be `l` and stays untouched on failure. An empty result keeps the origin of `l`: no
 * address is formed that has no element.
 */
#include "ir/layout/layout.h"

#include <string.h>

/** Gives a draft the tables of the dimensions that have one, whole or in part, each with a
 * reference. */
static qn_status take_tables(const qn_result *r, const qn_layout *l, const char *who,
                             qn_digits *draft, qn_error *err)
{
    for (int p = 0; p < r->layout.rank; p++) {
        qn_table *t = r->source[p] < 0 ? NULL : (qn_table *)qn__layout_table(l, r->source[p]);
        if (!t)
            continue;
        if (r->parts >> p & 1)
            t = qn__table_part(t, r->part[p].first, r->part[p].step, r->layout.dim[p].extent);
        else
            qn__table_retain(t);
        if (!t) {
            for (int q = 0; q < p; q++)
                if (draft->tables >> q & 1)
                    qn__table_release(draft->table[q]);
            return qn__fail(err, QN_ERR_MEMORY, "%s: dimension %d: out of memory", who, p);
        }
        draft->table[p] = t;
        draft->tables |= UINT32_C(1) << p;
    }
    return QN_OK;
}

/** Makes the digits of the result from those of `l`. A table that stays as it is is shared. */
static qn_status result_digits(qn_result *r, const qn_layout *l, const char *who, qn_error *err)
{
    bool is_same = r->layout.rank == l->rank;
    for (int p = 0; p < r->layout.rank; p++)
        is_same = is_same && r->source[p] == p;
    if (is_same && !r->parts) {
        r->layout.digits = l->digits;
        qn__digits_retain(l->digits);
        return QN_OK;
    }
    qn_digits draft = {0};
    for (int p = 0; p < r->layout.rank; p++) {
        const qn_dim *dim = &r->layout.dim[p];
        qn_digit one = {dim->extent, dim->stride};
        int n = 1, d = r->source[p];
        int64_t values = d >= 0 && qn__layout_table(l, d) ? qn__values(l, d) : dim->extent;
        const qn_digit *digit = &one;
        if (d >= 0)
            digit = qn__layout_dim_digits(l, d, &one, &n);
        else if (d == QN_FROM_OWN && r->own_count[p] > 0)
            n = r->own_count[p], digit = r->own + r->own_first[p];
        if (!qn__draft_add(&draft, p, values, n, digit))
            return qn__fail(err, QN_ERR_LIMIT, "%s: dimension %d: more than %d digits", who, p,
                            QN_MAX_DIGITS);
    }
    qn_status status = take_tables(r, l, who, &draft, err);
    return status ? status : qn__draft_finish(&draft, who, &r->layout, err);
}

qn_status qn__result_finish(qn_result *r, const qn_layout *l, const char *who, qn_layout *out,
                            qn_error *err)
{
    qn_status status = result_digits(r, l, who, err);
    if (status)
        return status;
    if (out == l)
        qn__digits_release(l->digits);
    qn__layout_set(out, &r->layout);
    return QN_OK;
}

qn_status qn__transform_check(const qn_layout *l, const void *array, const char *what,
                              const qn_layout *out, const char *who, qn_error *err)
{
    if (!l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, l ? "out" : "layout");
    qn_status status = qn__layout_check(l, who, err);
    if (!status && !array && l->rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, what);
    return status;
}

qn_status qn__check_dimension(const char *who, int d, int n, qn_error *err)
{
    if (d < 0 || d >= n)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: dimension %d not in [0,%d)", who, d, n);
    return QN_OK;
}

qn_status qn__refuse_tables(const qn_layout *l, int first, int last, const char *who, qn_error *err)
{
    for (int d = first; d <= last; d++)
        if (qn__layout_table(l, d))
            return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: dimension %d: %s", who, d,
                            qn__layout_table(l, d)->is_members ? "selects a member of a MultiView"
                                                               : "has an index list");
    return QN_OK;
}

/* ---------------------------------------------------------------- lower bounds */

/** Gives dimension p of the result a lower bound. */
static qn_status set_lower(qn_result *r, int p, int64_t lower, const char *who, qn_error *err)
{
    int64_t end;
    if (__builtin_add_overflow(lower, r->layout.dim[p].extent, &end))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: dimension %d: lower bound %lld + extent %lld does not fit in 64 bits",
                        who, p, (long long)lower, (long long)r->layout.dim[p].extent);
    r->layout.dim[p].lower = lower;
    return QN_OK;
}

/** All dimensions, in order or reversed, with these lower bounds. */
static qn_status take_all(const qn_layout *l, bool is_reversed, const int64_t *lower,
                          qn_layout *out, const char *who, qn_error *err)
{
    qn_status status = QN_OK;
    qn_result r;
    qn__result_init(&r, l, l->rank);
    for (int p = 0; p < l->rank && !status; p++) {
        qn__result_take(&r, p, l, is_reversed ? l->rank - 1 - p : p);
        status = set_lower(&r, p, lower[p], who, err);
    }
    return status ? status : qn__result_commit(&r, l, who, out, err);
}

qn_status qn_layout_offset(const qn_layout *l, const int64_t *lower, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_offset";
    qn_status status = qn__transform_check(l, lower, "lower", out, who, err);
    return status ? status : take_all(l, false, lower, out, who, err);
}

qn_status qn_layout_shift(const qn_layout *l, const int64_t *amount, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_shift";
    qn_status status = qn__transform_check(l, amount, "amount", out, who, err);
    if (status)
        return status;
    int64_t lower[QN_MAX_RANK];
    for (int d = 0; d < l->rank; d++)
        if (__builtin_add_overflow(l->dim[d].lower, amount[d], &lower[d]))
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: dimension %d: lower bound %lld + %lld does not fit in 64 bits",
                            who, d, (long long)l->dim[d].lower, (long long)amount[d]);
    return take_all(l, false, lower, out, who, err);
}

/** Dimensions reversed, with the given lower bounds, or all `first`. */
static qn_status change_style(const qn_layout *l, const int64_t *lower, int64_t first,
                              qn_layout *out, const char *who, qn_error *err)
{
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (status)
        return status;
    int64_t same[QN_MAX_RANK];
    for (int p = 0; p < l->rank; p++)
        same[p] = first;
    return take_all(l, true, lower ? lower : same, out, who, err);
}

qn_status qn_layout_to_c(const qn_layout *l, qn_layout *out, qn_error *err)
{
    return change_style(l, NULL, 0, out, "qn_layout_to_c", err);
}

qn_status qn_layout_to_fortran(const qn_layout *l, const int64_t *lower, qn_layout *out,
                               qn_error *err)
{
    return change_style(l, lower, 1, out, "qn_layout_to_fortran", err);
}

/** A layout of a style's family with the lower bounds of that style. */
static qn_status take_style(const qn_layout *l, bool is_fortran, const int64_t *lower,
                            qn_layout *out, const char *who, qn_error *err)
{
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (status)
        return status;
    if (is_fortran ? !qn_layout_is_left(l) : !qn_layout_is_right(l)) {
        char text[200];
        qn_layout_print(l, text, sizeof text);
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: layout %s is not %s: it has no %s style", who,
                        text, is_fortran ? "left" : "right", is_fortran ? "Fortran" : "C");
    }
    int64_t first[QN_MAX_RANK];
    for (int d = 0; d < l->rank; d++)
        first[d] = !is_fortran ? 0 : lower ? lower[d] : 1;
    return take_all(l, false, first, out, who, err);
}

qn_status qn_layout_as_c(const qn_layout *l, qn_layout *out, qn_error *err)
{
    return take_style(l, false, NULL, out, "qn_layout_as_c", err);
}

qn_status qn_layout_as_fortran(const qn_layout *l, const int64_t *lower, qn_layout *out,
                               qn_error *err)
{
    return take_style(l, true, lower, out, "qn_layout_as_fortran", err);
}

/* ---------------------------------------------------------------- whole dimensions */

qn_status qn_layout_permute(const qn_layout *l, const int *perm, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_permute";
    qn_status status = qn__transform_check(l, perm, "perm", out, who, err);
    if (status)
        return status;
    qn_result r;
    qn__result_init(&r, l, l->rank);
    uint32_t seen = 0;
    for (int p = 0; p < l->rank; p++) {
        if (perm[p] < 0 || perm[p] >= l->rank || seen >> perm[p] & 1u)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: perm[%d] = %d: not a permutation of 0..%d",
                            who, p, perm[p], l->rank - 1);
        seen |= 1u << perm[p];
        qn__result_take(&r, p, l, perm[p]);
    }
    return qn__result_commit(&r, l, who, out, err);
}

/** Inserts a dimension of stride 0. */
static qn_status insert_dimension(const qn_layout *l, int at, int64_t extent, qn_layout *out,
                                  const char *who, qn_error *err)
{
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (status)
        return status;
    if (l->rank == QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: rank %d is the largest", who, l->rank);
    if (at < 0 || at > l->rank)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: dimension %d not in [0,%d]", who, at, l->rank);
    if (extent < 0)
        return qn__fail(err, QN_ERR_EXTENT, "%s: dimension %d: extent %lld is negative", who, at,
                        (long long)extent);
    int64_t size;
    if (__builtin_mul_overflow(qn_layout_size(l), extent, &size))
        return qn__fail(
            err, QN_ERR_OVERFLOW,
            "%s: dimension %d: extent %lld: product of the extents does not fit in 64 bits", who,
            at, (long long)extent);
    qn_result r;
    qn__result_init(&r, l, l->rank + 1);
    for (int d = 0; d < l->rank; d++)
        qn__result_take(&r, d + (d >= at), l, d);
    r.layout.dim[at] = (qn_dim){0, extent, 0};
    r.source[at] = QN_FROM_DIM;
    return qn__result_commit(&r, l, who, out, err);
}

qn_status qn_layout_broadcast(const qn_layout *l, int at, int64_t extent, qn_layout *out,
                              qn_error *err)
{
    return insert_dimension(l, at, extent, out, "qn_layout_broadcast", err);
}

qn_status qn_layout_expand(const qn_layout *l, int at, qn_layout *out, qn_error *err)
{
    return insert_dimension(l, at, 1, out, "qn_layout_expand", err);
}

qn_status qn_layout_squeeze(const qn_layout *l, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_squeeze";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (status)
        return status;
    qn_result r;
    qn__result_init(&r, l, 0);
    for (int d = 0; d < l->rank; d++)
        if (l->dim[d].extent != 1 || qn__is_projected(l, d))
            qn__result_take(&r, r.layout.rank++, l, d);
    for (int d = 0; d < l->rank && qn__layout_tables(l) && !qn__layout_is_empty(&r.layout); d++) {
        int64_t offset;
        if (!qn__layout_table(l, d) || l->dim[d].extent != 1)
            continue;
        status = qn__offset_in_dim(l, d, l->dim[d].lower, who, &offset, err);
        if (status)
            return status;
        r.layout.origin += offset;
    }
    return qn__result_commit(&r, l, who, out, err);
}

qn_status qn_layout_reverse(const qn_layout *l, int d, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_reverse";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (status)
        return status;
    status = qn__check_dimension(who, d, l->rank, err);
    if (status)
        return status;
    qn_result r;
    qn__result_init(&r, l, l->rank);
    for (int p = 0; p < l->rank; p++)
        qn__result_take(&r, p, l, p);
    qn_dim *dim = &r.layout.dim[d];
    if (qn__layout_table(l, d)) {
        qn__result_part(&r, d, dim->extent - 1, -1);
    } else if (dim->extent > 1 && !qn__is_projected(l, d)) {
        qn_digit one;
        int n;
        int64_t stride = qn__layout_dim_digits(l, d, &one, &n)->stride;
        if (n > 1)
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "%s: dimension %d: has %d digits, one can be reversed", who, d, n);
        if (stride == INT64_MIN)
            return qn__fail(err, QN_ERR_OVERFLOW, "%s: dimension %d: stride %lld has no negative",
                            who, d, (long long)stride);
        if (!qn__layout_is_empty(l)) /* the last element: the sum is in the layout's range */
            r.layout.origin =
                (int64_t)((uint64_t)l->origin + (uint64_t)(dim->extent - 1) * (uint64_t)stride);
        dim->stride = -stride;
        r.source[d] = QN_FROM_DIM;
    }
    return qn__result_commit(&r, l, who, out, err);
}
