/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_transform.c: functions from layout to layout: offset, permute, broadcast, reverse, slice.
 * Each is given by its post-condition, an equation between result(index) and l(index), which is
 * also its test.
 *
 * All work the same way: the result's head and dims are made on the side, with the dimension of `l`
 * that each dimension of the result takes its digits from, and then committed at once, so that
 * `out` may be `l` and stays untouched on failure. An empty result keeps the origin of `l`: no
 * address is formed that has no element.
 */
#include "ir/layout.h"

#include <string.h>

/** A result in the making. source[p]: dimension of `l` whose digits dimension p keeps; -1: the one
 * digit in dim[p]. */
typedef struct result {
    qn_layout layout;
    int8_t source[QN_MAX_RANK];
} result;

/** A result with the head of `l`, of the given rank, and no dims yet. */
static void result_init(result *r, const qn_layout *l, int rank)
{
    r->layout.rank = rank;
    r->layout.projected = 0;
    r->layout.origin = l->origin;
    r->layout.digits = NULL;
}

/** Dimension p of the result becomes dimension d of `l`. */
static void result_take(result *r, int p, const qn_layout *l, int d)
{
    r->layout.dim[p] = l->dim[d];
    r->layout.projected |= (uint32_t)qn__is_projected(l, d) << p;
    r->source[p] = (int8_t)d;
}

/** Number of digits of a dimension, and its first stride. */
static int dim_digits(const qn_layout *l, int d, int64_t *stride)
{
    qn_digit one;
    int n;
    *stride = qn__layout_dim_digits(l, d, &one, &n)->stride;
    return n;
}

/** Makes the digits of the result from those of `l`. A table that stays as it is is shared. */
static qn_status result_digits(result *r, const qn_layout *l, const char *who, qn_error *err)
{
    bool is_same = r->layout.rank == l->rank;
    for (int p = 0; p < r->layout.rank; p++)
        is_same = is_same && r->source[p] == p;
    if (is_same) {
        r->layout.digits = l->digits;
        qn__digits_retain(l->digits);
        return QN_OK;
    }
    qn_digits draft = {0};
    for (int p = 0; p < r->layout.rank; p++) {
        const qn_dim *dim = &r->layout.dim[p];
        qn_digit one = {dim->extent, dim->stride};
        int n = 1;
        const qn_digit *digit =
            r->source[p] < 0 ? &one : qn__layout_dim_digits(l, r->source[p], &one, &n);
        if (!qn__draft_add(&draft, p, dim->extent, n, digit))
            return qn__fail(err, QN_ERR_LIMIT, "%s: dimension %d: more than %d digits", who, p,
                            QN_MAX_DIGITS);
    }
    return qn__draft_finish(&draft, who, &r->layout, err);
}

/** Writes the result to *out, which may be `l`: then the old table is dropped. */
static qn_status result_commit(result *r, const qn_layout *l, const char *who, qn_layout *out,
                               qn_error *err)
{
    if (l->digits) {
        qn_status status = result_digits(r, l, who, err);
        if (status)
            return status;
    }
    if (out == l)
        qn__digits_release(l->digits);
    qn__layout_set(out, &r->layout);
    return QN_OK;
}

/** What every transform checks first. */
static qn_status check_arguments(const qn_layout *l, const void *array, const char *what,
                                 const qn_layout *out, const char *who, qn_error *err)
{
    if (!l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, l ? "out" : "layout");
    qn_status status = qn__layout_check(l, who, err);
    if (!status && !array && l->rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, what);
    return status;
}

qn_status qn_layout_offset(const qn_layout *l, const int64_t *lower, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_offset";
    qn_status status = check_arguments(l, lower, "lower", out, who, err);
    if (status)
        return status;
    result r;
    result_init(&r, l, l->rank);
    for (int d = 0; d < l->rank; d++) {
        int64_t end;
        if (__builtin_add_overflow(lower[d], l->dim[d].extent, &end))
            return qn__fail(
                err, QN_ERR_OVERFLOW,
                "%s: dimension %d: lower bound %lld + extent %lld does not fit in 64 bits", who, d,
                (long long)lower[d], (long long)l->dim[d].extent);
        result_take(&r, d, l, d);
        r.layout.dim[d].lower = lower[d];
    }
    return result_commit(&r, l, who, out, err);
}

qn_status qn_layout_permute(const qn_layout *l, const int *perm, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_permute";
    qn_status status = check_arguments(l, perm, "perm", out, who, err);
    if (status)
        return status;
    result r;
    result_init(&r, l, l->rank);
    uint32_t seen = 0;
    for (int p = 0; p < l->rank; p++) {
        if (perm[p] < 0 || perm[p] >= l->rank || seen >> perm[p] & 1u)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: perm[%d] = %d: not a permutation of 0..%d",
                            who, p, perm[p], l->rank - 1);
        seen |= 1u << perm[p];
        result_take(&r, p, l, perm[p]);
    }
    return result_commit(&r, l, who, out, err);
}

qn_status qn_layout_broadcast(const qn_layout *l, int at, int64_t extent, qn_layout *out,
                              qn_error *err)
{
    const char *who = "qn_layout_broadcast";
    qn_status status = check_arguments(l, l, "layout", out, who, err);
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
    result r;
    result_init(&r, l, l->rank + 1);
    for (int d = 0; d < l->rank; d++)
        result_take(&r, d + (d >= at), l, d);
    r.layout.dim[at] = (qn_dim){0, extent, 0};
    r.source[at] = -1;
    return result_commit(&r, l, who, out, err);
}

qn_status qn_layout_reverse(const qn_layout *l, int d, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_reverse";
    qn_status status = check_arguments(l, l, "layout", out, who, err);
    if (status)
        return status;
    if (d < 0 || d >= l->rank)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: dimension %d not in [0,%d)", who, d, l->rank);
    result r;
    result_init(&r, l, l->rank);
    for (int p = 0; p < l->rank; p++)
        result_take(&r, p, l, p);
    qn_dim *dim = &r.layout.dim[d];
    if (dim->extent > 1 && !qn__is_projected(l, d)) {
        int64_t stride;
        if (dim_digits(l, d, &stride) > 1)
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "%s: dimension %d: has %d digits, one can be reversed", who, d,
                            dim_digits(l, d, &stride));
        if (stride == INT64_MIN)
            return qn__fail(err, QN_ERR_OVERFLOW, "%s: dimension %d: stride %lld has no negative",
                            who, d, (long long)stride);
        if (!qn__layout_is_empty(l)) /* the last element: the sum is in the layout's range */
            r.layout.origin =
                (int64_t)((uint64_t)l->origin + (uint64_t)(dim->extent - 1) * (uint64_t)stride);
        dim->stride = -stride;
        r.source[d] = -1;
    }
    return result_commit(&r, l, who, out, err);
}

/* ---------------------------------------------------------------- slices */

/** Offset of index `at` of dimension d relative to its lower bound; in the layout's range. */
static int64_t offset_in_dim(const qn_layout *l, int d, int64_t at)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    uint64_t rest = (uint64_t)at - (uint64_t)l->dim[d].lower, offset = 0;
    for (int j = 0; j < n - 1; j++) {
        offset += rest % (uint64_t)digit[j].extent * (uint64_t)digit[j].stride;
        rest /= (uint64_t)digit[j].extent;
    }
    return (int64_t)(offset + rest * (uint64_t)digit[n - 1].stride);
}

/** Adds [begin,end) by step of dimension d to the result as dimension p. */
static qn_status take_range(result *r, int p, const qn_layout *l, int d, const qn_slice *s,
                            const char *who, qn_error *err)
{
    int64_t first = l->dim[d].lower, end = first + l->dim[d].extent;
    if (s->begin > s->end || s->begin < first || s->end > end)
        return qn__fail(err, QN_ERR_RANGE, "%s: dimension %d: range [%lld,%lld) %s [%lld,%lld)",
                        who, d, (long long)s->begin, (long long)s->end,
                        s->begin > s->end ? "is reversed, in" : "not in", (long long)first,
                        (long long)end);
    if (s->step < 0)
        return qn__fail(err, QN_ERR_RANGE, "%s: dimension %d: step %lld is negative", who, d,
                        (long long)s->step);
    if (qn__is_projected(l, d))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: dimension %d: is projected and takes no range", who, d);
    int64_t step = s->step ? s->step : 1;
    int64_t count = s->end - s->begin;
    int64_t kept = count / step + (count % step != 0);
    int64_t stride;
    int n = dim_digits(l, d, &stride);
    result_take(r, p, l, d);
    r->layout.dim[p].lower = 0;
    if (kept == l->dim[d].extent && s->begin == first)
        return QN_OK;
    if (n > 1 && kept > 0)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: dimension %d: a part of %d digits, range [%lld,%lld) of [%lld,%lld)",
                        who, d, n, (long long)s->begin, (long long)s->end, (long long)first,
                        (long long)end);
    if (kept > 1 && __builtin_mul_overflow(stride, step, &stride))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: dimension %d: step %lld x stride does not fit in 64 bits", who, d,
                        (long long)step);
    r->layout.dim[p].extent = kept;
    r->layout.dim[p].stride = stride;
    r->source[p] = -1;
    return QN_OK;
}

/** Whether the dimension has this index. */
static qn_status check_at(const qn_layout *l, int d, int64_t at, const char *who, qn_error *err)
{
    int64_t first = l->dim[d].lower, end = first + l->dim[d].extent;
    if (!qn__is_projected(l, d) && (at < first || at >= end))
        return qn__fail(err, QN_ERR_BOUNDS, "%s: dimension %d: index %lld not in [%lld,%lld)", who,
                        d, (long long)at, (long long)first, (long long)end);
    return QN_OK;
}

/** Where the first element of the result lies: the indices and the begins of ranges, in `l`. */
static int64_t find_origin(const qn_layout *l, const qn_slice *slices)
{
    uint64_t origin = (uint64_t)l->origin;
    for (int d = 0; d < l->rank; d++)
        if (slices[d].kind != QN_ALL)
            origin += (uint64_t)offset_in_dim(l, d, slices[d].begin);
    return (int64_t)origin;
}

qn_status qn_layout_slice(const qn_layout *l, int n, const qn_slice *slices, qn_layout *out,
                          qn_error *err)
{
    const char *who = "qn_layout_slice";
    qn_status status = check_arguments(l, slices, "slices", out, who, err);
    if (status)
        return status;
    if (n != l->rank)
        return qn__fail(err, QN_ERR_RANK, "%s: %d slices for rank %d", who, n, l->rank);
    result r;
    result_init(&r, l, 0);
    int rank = 0;
    for (int d = 0; d < n && !status; d++) {
        switch (slices[d].kind) {
        case QN_ALL:
            result_take(&r, rank++, l, d);
            break;
        case QN_AT:
            status = check_at(l, d, slices[d].begin, who, err);
            break;
        case QN_RANGE:
            status = take_range(&r, rank++, l, d, &slices[d], who, err);
            break;
        default:
            status = qn__fail(err, QN_ERR_ARGUMENT,
                              "%s: dimension %d: slice kind %d is not QN_ALL, QN_AT or QN_RANGE",
                              who, d, (int)slices[d].kind);
        }
    }
    if (status)
        return status;
    r.layout.rank = rank;
    if (!qn__layout_is_empty(&r.layout))
        r.layout.origin = find_origin(l, slices);
    return result_commit(&r, l, who, out, err);
}
