/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reshape.c: transforms that cut and join dimensions: split, merge, reshape, coalesce. None
 * copies: each gives the same offsets in the same index order (last dimension fastest), or says why
 * no sum of digits does.
 *
 * A run is a part of that order: an extent and digits, fastest first. Its digits multiply to
 * exactly its extent, unless the extent cuts tiles; then nothing can follow it in the same
 * dimension, for the index would have to jump over what was cut.
 */
#include "ir/layout/layout.h"

#include <string.h>

/** Digits of consecutive indices 0 .. extent - 1. Empty list: extent 1 (or 0). */
typedef struct run {
    int64_t extent;
    int32_t n;
    bool is_cut;
    qn_digit digit[QN_MAX_DIGITS];
} run;

/** Whether dimension d has indices that count: not projected, more or less than one. */
static bool is_counted(const qn_layout *l, int d)
{
    return !qn__is_projected(l, d) && l->dim[d].extent != 1;
}

/** Whether the digits of a dimension multiply to more than its extent. */
static bool is_cut(const qn_layout *l, int d)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    qn_wide product = 1; /* of all but the last below the extent; the last no larger than it */
    for (int j = 0; j < n; j++)
        product *= digit[j].extent;
    return product != l->dim[d].extent;
}

/** Appends dimension d of `l`, which counts and is not empty, to a run that is not cut. */
static void run_append(run *r, const qn_layout *l, int d)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    for (int j = 0; j < n; j++) {
        qn_digit *last = r->n > 0 ? &r->digit[r->n - 1] : NULL;
        if (last && (qn_wide)last->extent * last->stride == digit[j].stride)
            last->extent *= digit[j].extent;
        else
            r->digit[r->n++] = digit[j];
    }
    r->extent *= l->dim[d].extent;
    r->is_cut = is_cut(l, d);
}

/** Moves all digits of a run to dimension p of a result. */
static void run_empty(run *r, qn_result *to, int p)
{
    for (int j = 0; j < r->n; j++)
        qn__result_add(to, p, r->digit[j]);
    r->n = 0;
    r->extent = 1;
    r->is_cut = false;
}

/**
 * Moves the first `inner` indices of a run, a divisor of its extent, to dimension p; the run keeps
 * every inner-th. False if a digit would be cut unevenly, or its stride leaves int64: then both
 * are spoilt.
 */
static bool run_split(run *r, int64_t inner, qn_result *to, int p)
{
    if (inner == r->extent && inner > 0) {
        run_empty(r, to, p);
        return true;
    }
    int64_t left = inner;
    int j = 0;
    while (left > 1 && j < r->n && left % r->digit[j].extent == 0) {
        left /= r->digit[j].extent;
        qn__result_add(to, p, r->digit[j++]);
    }
    if (left > 1) {
        if (j == r->n || r->digit[j].extent % left != 0)
            return false;
        qn_digit *digit = &r->digit[j];
        qn__result_add(to, p, (qn_digit){left, digit->stride});
        digit->extent /= left;
        if (__builtin_mul_overflow(digit->stride, left, &digit->stride))
            return false;
    }
    r->n -= j;
    memmove(r->digit, r->digit + j, (size_t)r->n * sizeof *r->digit);
    r->extent /= inner;
    return true;
}

static qn_status fail_projected(const char *who, int d, qn_error *err)
{
    return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: dimension %d: is projected", who, d);
}

/* ---------------------------------------------------------------- split and merge */

qn_status qn_layout_split(const qn_layout *l, int d, int64_t inner, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_split";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (!status)
        status = qn__check_dimension(who, d, l->rank, err);
    if (status)
        return status;
    int64_t extent = l->dim[d].extent;
    if (l->rank == QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: rank %d is the largest", who, l->rank);
    if (qn__is_projected(l, d))
        return fail_projected(who, d, err);
    status = qn__refuse_tables(l, d, d, who, err);
    if (status)
        return status;
    if (inner < 1 || extent % inner != 0)
        return qn__fail(err, QN_ERR_EXTENT, "%s: dimension %d: %lld does not divide extent %lld",
                        who, d, (long long)inner, (long long)extent);
    run parts = {.extent = 1};
    if (extent > 0)
        run_append(&parts, l, d);
    qn_result r;
    qn__result_init(&r, l, l->rank + 1);
    for (int p = 0; p <= l->rank; p++)
        if (p < d || p > d + 1)
            qn__result_take(&r, p, l, p - (p > d));
    qn__result_open(&r, d + 1, inner);
    if (extent > 0 && !run_split(&parts, inner, &r, d + 1))
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: dimension %d: parts of %lld cut its digits",
                        who, d, (long long)inner);
    qn__result_open(&r, d, extent / inner);
    run_empty(&parts, &r, d);
    return qn__result_commit(&r, l, who, out, err);
}

qn_status qn_layout_merge(const qn_layout *l, int d, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_merge";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (!status)
        status = qn__check_dimension(who, d, l->rank - 1, err);
    if (status)
        return status;
    for (int e = d; e <= d + 1; e++)
        if (qn__is_projected(l, e))
            return fail_projected(who, e, err);
    status = qn__refuse_tables(l, d, d + 1, who, err);
    if (status)
        return status;
    int64_t extent, outer = l->dim[d].extent, inner = l->dim[d + 1].extent;
    if (__builtin_mul_overflow(outer, inner, &extent))
        return qn__fail(
            err, QN_ERR_OVERFLOW,
            "%s: dimension %d: the product of extents %lld and %lld does not fit in 64 bits", who,
            d, (long long)outer, (long long)inner);
    if (extent > 0 && outer > 1 && is_cut(l, d + 1))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: dimension %d: extent %lld cuts its last tile, nothing can follow it",
                        who, d + 1, (long long)inner);
    run joined = {.extent = 1};
    for (int e = d + 1; extent > 0 && e >= d; e--)
        if (is_counted(l, e))
            run_append(&joined, l, e);
    qn_result r;
    qn__result_init(&r, l, l->rank - 1);
    for (int p = 0; p < l->rank - 1; p++)
        if (p != d)
            qn__result_take(&r, p, l, p + (p > d));
    qn__result_open(&r, d, extent);
    run_empty(&joined, &r, d);
    return qn__result_commit(&r, l, who, out, err);
}

/* ---------------------------------------------------------------- reshape */

/** Starts a run with dimension *d, going down, and joins all that can follow; *d is the next. */
static void run_start(run *r, const qn_layout *l, int *d)
{
    for (; *d >= 0 && !r->is_cut; --*d)
        if (is_counted(l, *d))
            run_append(r, l, *d);
}

/** Whether the extents are legal and have the size of `l`. */
static qn_status check_size(const char *who, const qn_layout *l, int rank, const int64_t *extents,
                            const qn_layout *out, qn_error *err)
{
    qn_status status = qn__check_extents(who, rank, extents, out, err);
    if (status)
        return status;
    int64_t size = 1;
    bool is_empty = false, is_large = false;
    for (int p = 0; p < rank; p++) {
        is_empty |= extents[p] == 0;
        is_large |= __builtin_mul_overflow(size, extents[p], &size);
    }
    if (is_empty ? !qn__layout_is_empty(l) : is_large || size != qn_layout_size(l))
        return qn__fail(err, QN_ERR_EXTENT,
                        "%s: rank %d: the extents have another product than the layout, %lld", who,
                        rank, (long long)qn_layout_size(l));
    return QN_OK;
}

qn_status qn_layout_reshape(const qn_layout *l, int rank, const int64_t *extents, qn_layout *out,
                            qn_error *err)
{
    const char *who = "qn_layout_reshape";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (!status)
        status = check_size(who, l, rank, extents, out, err);
    if (!status)
        status = qn__refuse_tables(l, 0, l->rank - 1, who, err);
    if (status)
        return status;
    bool is_empty = qn__layout_is_empty(l);
    qn_result r;
    qn__result_init(&r, l, rank);
    run rest = {.extent = 1};
    int d = l->rank - 1;
    for (int p = rank - 1; p >= 0; p--) {
        qn__result_open(&r, p, extents[p]);
        if (is_empty || extents[p] == 1)
            continue;
        if (rest.extent == 1)
            run_start(&rest, l, &d);
        if (rest.extent % extents[p] != 0 || !run_split(&rest, extents[p], &r, p))
            return qn__fail(
                err, QN_ERR_UNSUPPORTED,
                "%s: dimension %d: extent %lld cuts or jumps over the digits of the layout", who, p,
                (long long)extents[p]);
    }
    return qn__result_commit(&r, l, who, out, err);
}

/* ---------------------------------------------------------------- coalesce */

/** Whether dimension `outer` continues dimension `inner`: one run of fewer digits than both. */
static bool continues(const qn_layout *l, int outer, int inner)
{
    qn_digit one_outer, one_inner;
    int n_outer, n_inner;
    const qn_digit *above = qn__layout_dim_digits(l, outer, &one_outer, &n_outer);
    const qn_digit *below = qn__layout_dim_digits(l, inner, &one_inner, &n_inner) + n_inner - 1;
    return (qn_wide)below->extent * below->stride == above->stride && !is_cut(l, inner);
}

qn_status qn_layout_coalesce(const qn_layout *l, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_coalesce";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (!status)
        status = qn__refuse_tables(l, 0, l->rank - 1, who, err);
    if (status)
        return status;
    qn_result r;
    qn__result_init(&r, l, 0);
    if (qn__layout_is_empty(l)) {
        qn__result_open(&r, r.layout.rank++, 0);
        return qn__result_commit(&r, l, who, out, err);
    }
    int group[QN_MAX_RANK]; /* of each dimension that counts, numbered from the last; -1: none */
    int n_groups = 0, inner = -1;
    for (int d = l->rank - 1; d >= 0; d--) {
        group[d] = -1;
        if (!is_counted(l, d))
            continue;
        n_groups += inner < 0 || !continues(l, d, inner);
        group[d] = n_groups - 1;
        inner = d;
    }
    r.layout.rank = n_groups;
    for (int g = 0; g < n_groups; g++) {
        run joined = {.extent = 1};
        for (int d = l->rank - 1; d >= 0; d--)
            if (group[d] == g)
                run_append(&joined, l, d);
        int p = n_groups - 1 - g;
        qn__result_open(&r, p, joined.extent);
        run_empty(&joined, &r, p);
    }
    return qn__result_commit(&r, l, who, out, err);
}
