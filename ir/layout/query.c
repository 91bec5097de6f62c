/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c: queries by stride and by family of layouts: digits, strides, Right and Left,
 * bytes. A family is a property of the digits, not of the constructor; nothing is stored.
 */
#include "ir/layout/layout.h"

int qn_layout_n_digits(const qn_layout *l)
{
    if (!qn__layout_has_rank(l))
        return 0;
    return l->digits ? l->digits->n : l->rank;
}

qn_status qn_layout_stride(const qn_layout *l, int d, int64_t *stride, qn_error *err)
{
    const char *who = "qn_layout_stride";
    if (!l || !stride)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, l ? "stride" : "layout");
    if (!qn__layout_has_rank(l))
        return qn__fail(err, QN_ERR_RANK, "%s: rank %d not in [0,%d]", who, l->rank, QN_MAX_RANK);
    qn_status status = qn__check_dimension(who, d, l->rank, err);
    if (status)
        return status;
    status = qn__refuse_tables(l, d, d, who, err);
    if (status)
        return status;
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    if (n != 1)
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: dimension %d: has %d digits, not one stride",
                        who, d, n);
    *stride = digit->stride;
    return QN_OK;
}

bool qn_layout_is_strided(const qn_layout *l)
{
    return qn__layout_has_rank(l) && qn_layout_n_digits(l) == l->rank && !qn__layout_tables(l);
}

bool qn_layout_is_exhaustive(const qn_layout *l)
{
    return qn_layout_is_contiguous(l);
}

/**
 * The formula of Right, or mirrored of Left: going from the fastest dimension, the first stride is
 * 1, the next found is the free p, and every further one p times the extents in between.
 */
static bool is_family(const qn_layout *l, bool right)
{
    if (qn__layout_check(l, "layout", NULL) != QN_OK)
        return false;
    if (l->rank == 0 || qn__layout_is_empty(l))
        return true;
    if (l->projected || qn__layout_tables(l))
        return false;
    int64_t unit = l->dim[right ? l->rank - 1 : 0].extent;
    qn_wide expected = 0; /* 0: p is not known yet; else below 2^63 x the size, so below 2^126 */
    for (int i = 0; i < l->rank; i++) {
        int d = right ? l->rank - 1 - i : i, n;
        qn_digit one;
        const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
        if (l->dim[d].extent == 1)
            continue;
        if (n != 1)
            return false;
        if (i == 0 ? digit->stride != 1
                   : (expected == 0 ? digit->stride < unit : digit->stride != expected))
            return false;
        if (i > 0)
            expected = (qn_wide)digit->stride * l->dim[d].extent;
    }
    return true;
}

bool qn_layout_is_right(const qn_layout *l)
{
    return is_family(l, true);
}

bool qn_layout_is_left(const qn_layout *l)
{
    return is_family(l, false);
}

qn_status qn_layout_required_bytes(const qn_layout *l, int64_t element_bytes, int64_t *bytes,
                                   qn_error *err)
{
    const char *who = "qn_layout_required_bytes";
    if (!bytes)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: bytes is NULL", who);
    if (element_bytes < 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: element_bytes %lld is negative", who,
                        (long long)element_bytes);
    qn_status status = qn__layout_check(l, who, err);
    if (status)
        return status;
    int64_t span = qn_layout_span(l), product = 0;
    if (span < 0 || __builtin_mul_overflow(span, element_bytes, &product))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: rank %d: %lld elements of %lld bytes over their span do not fit in 64 "
                        "bits",
                        who, l->rank, (long long)qn_layout_size(l), (long long)element_bytes);
    *bytes = product;
    return QN_OK;
}
