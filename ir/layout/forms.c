/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms.c: constructors of layouts of special form: padded, permuted, projected, with lower
 * bounds, Morton, and of any digits. As in layout/make.c, *out is written on success only and
 * passes qn__layout_check.
 */
#include "ir/layout/layout.h"

/* ---------------------------------------------------------------- dense with a difference */

/** N rounded up to a multiple of the elements in 64 bytes, if it is more than these. */
static bool pad(int64_t n, int64_t element_bytes, int64_t *padded)
{
    enum { ALIGNMENT = 64 };
    int64_t per_line = ALIGNMENT % element_bytes == 0 ? ALIGNMENT / element_bytes : 1;
    int64_t over = n % per_line;
    *padded = n;
    return n <= per_line || over == 0 || !__builtin_add_overflow(n, per_line - over, padded);
}

/** Dense layout of the extents with that of dimension `unit` padded; then its extent is put back.
 */
static qn_status make_padded(const char *who, int rank, const int64_t *extents,
                             int64_t element_bytes, bool right, qn_layout *out, qn_error *err)
{
    int64_t storage[QN_MAX_RANK] = {0};
    int order[QN_MAX_RANK] = {0};
    qn_status status = qn__check_extents(who, rank, extents, out, err);
    if (status)
        return status;
    const int unit = right ? rank - 1 : 0;
    if (element_bytes < 1)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: element_bytes %lld is not positive", who,
                        (long long)element_bytes);
    for (int d = 0; d < rank; d++) {
        storage[d] = extents[d];
        order[d] = right ? rank - 1 - d : d;
    }
    if (rank > 1 && !pad(extents[unit], element_bytes, &storage[unit]))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: dimension %d: extent %lld: padded does not fit in 64 bits", who, unit,
                        (long long)extents[unit]);
    qn_layout made;
    status = qn__make_dense(who, rank, storage, order, &made, err);
    if (status)
        return status;
    if (rank > 0)
        made.dim[unit].extent = extents[unit];
    qn__layout_set(out, &made);
    return QN_OK;
}

qn_status qn_layout_right_padded(int rank, const int64_t *extents, int64_t element_bytes,
                                 qn_layout *out, qn_error *err)
{
    return make_padded("qn_layout_right_padded", rank, extents, element_bytes, true, out, err);
}

qn_status qn_layout_left_padded(int rank, const int64_t *extents, int64_t element_bytes,
                                qn_layout *out, qn_error *err)
{
    return make_padded("qn_layout_left_padded", rank, extents, element_bytes, false, out, err);
}

qn_status qn_layout_permuted(int rank, const int64_t *extents, const int *longest_first,
                             qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_permuted";
    int order[QN_MAX_RANK];
    qn_status status = qn__check_extents(who, rank, extents, out, err);
    if (!status)
        status = qn__check_order(who, "longest_first", rank, longest_first, err);
    if (status)
        return status;
    for (int i = 0; i < rank; i++)
        order[i] = longest_first[rank - 1 - i];
    return qn__make_dense(who, rank, extents, order, out, err);
}

qn_status qn_layout_projected(int rank, const int64_t *extents, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_projected";
    int64_t counted[QN_MAX_RANK];
    qn_status status = qn__check_extents(who, rank, extents, out, err);
    if (status)
        return status;
    for (int d = 0; d < rank; d++)
        counted[d] = extents[d] == 0 ? 1 : extents[d];
    status = qn__make_dense(who, rank, counted, NULL, out, err);
    for (int d = 0; d < rank && !status; d++)
        if (extents[d] == 0) {
            out->dim[d] = (qn_dim){0, 0, 0};
            out->projected |= (uint32_t)1 << d;
        }
    return status;
}

/* ---------------------------------------------------------------- lower bounds */

static qn_status check_bounds(const char *who, int rank, const void *ends, const qn_layout *out,
                              qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    if (rank < 0 || rank > QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: rank %d not in [0,%d]", who, rank, QN_MAX_RANK);
    if (!ends && rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: bounds are NULL", who);
    return QN_OK;
}

/** Dense layout of the indices from lower[d] on. Legal bounds end inside int64. */
static qn_status make_bounded(const char *who, int rank, const int64_t *lower,
                              const int64_t *extents, const int *order, qn_layout *out,
                              qn_error *err)
{
    for (int d = 0; d < rank; d++) {
        int64_t end;
        if (__builtin_add_overflow(lower[d], extents[d], &end))
            return qn__fail(
                err, QN_ERR_OVERFLOW,
                "%s: dimension %d: lower bound %lld + extent %lld does not fit in 64 bits", who, d,
                (long long)lower[d], (long long)extents[d]);
    }
    qn_status status = qn__make_dense(who, rank, extents, order, out, err);
    for (int d = 0; d < rank && !status; d++)
        out->dim[d].lower = lower[d];
    return status;
}

qn_status qn_layout_bounds(int rank, const int64_t *begin, const int64_t *end, const int *order,
                           qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_bounds";
    int64_t extents[QN_MAX_RANK];
    qn_status status = check_bounds(who, rank, begin && end ? begin : NULL, out, err);
    if (!status && order)
        status = qn__check_order(who, "order", rank, order, err);
    if (status)
        return status;
    for (int d = 0; d < rank; d++) {
        if (end[d] < begin[d])
            return qn__fail(err, QN_ERR_RANGE,
                            "%s: dimension %d: bounds [%lld,%lld) begin above their end", who, d,
                            (long long)begin[d], (long long)end[d]);
        if (__builtin_sub_overflow(end[d], begin[d], &extents[d]))
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: dimension %d: extent of [%lld,%lld) does not fit in 64 bits", who,
                            d, (long long)begin[d], (long long)end[d]);
    }
    return make_bounded(who, rank, begin, extents, order, out, err);
}

qn_status qn_layout_fortran(int rank, const int64_t *lower, const int64_t *upper, qn_layout *out,
                            qn_error *err)
{
    const char *who = "qn_layout_fortran";
    int64_t first[QN_MAX_RANK], extents[QN_MAX_RANK];
    int order[QN_MAX_RANK];
    qn_status status = check_bounds(who, rank, upper, out, err);
    if (status)
        return status;
    for (int d = 0; d < rank; d++) {
        order[d] = d;
        first[d] = lower ? lower[d] : 1;
        if (upper[d] < first[d] && upper[d] + 1 != first[d]) /* a(l:l-1) is empty */
            return qn__fail(err, QN_ERR_RANGE,
                            "%s: dimension %d: bounds {%lld,%lld}: the upper is below the lower",
                            who, d, (long long)first[d], (long long)upper[d]);
        if (__builtin_sub_overflow(upper[d], first[d], &extents[d]) ||
            __builtin_add_overflow(extents[d], 1, &extents[d]))
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: dimension %d: extent of {%lld,%lld} does not fit in 64 bits", who,
                            d, (long long)first[d], (long long)upper[d]);
    }
    return make_bounded(who, rank, first, extents, order, out, err);
}

/* ---------------------------------------------------------------- digits */

/** A layout of a draft that is complete but for the extents being checked against it. */
static qn_status make_of_draft(const char *who, int rank, const int64_t *extents, qn_digits *draft,
                               qn_layout *out, qn_error *err)
{
    qn_layout made;
    made.rank = rank;
    made.projected = 0;
    made.origin = 0;
    made.digits = draft; /* only for the check, which counts no reference */
    for (int d = 0; d < rank; d++)
        made.dim[d] = (qn_dim){0, extents[d], 0};
    qn_status status = qn__layout_check(&made, who, err);
    if (!status)
        status = qn__draft_finish(draft, who, &made, err);
    if (!status)
        qn__layout_set(out, &made);
    return status;
}

static qn_status fail_limit(const char *who, int d, qn_error *err)
{
    return qn__fail(err, QN_ERR_LIMIT, "%s: dimension %d: more than %d digits", who, d,
                    QN_MAX_DIGITS);
}

/** Bits of the indices 0 .. extent - 1. */
static int bits_of(int64_t extent)
{
    int n = 0;
    for (uint64_t last = extent > 0 ? (uint64_t)extent - 1 : 0; last > 0; last >>= 1)
        n++;
    return n;
}

/** Digits of dimension d, whose bits are taken in turn with those of the others. */
static void morton_digits(int rank, const int *n_bits, const int *order, int wanted,
                          qn_digit *digit)
{
    int at = 0;
    for (int bit = 0; bit < n_bits[wanted]; bit++)
        for (int i = 0; i < rank; i++) {
            int d = order ? order[i] : rank - 1 - i;
            if (d == wanted)
                digit[bit] = (qn_digit){2, (int64_t)1 << at};
            at += bit < n_bits[d];
        }
}

qn_status qn_layout_morton(int rank, const int64_t *extents, const int *order, qn_layout *out,
                           qn_error *err)
{
    enum { MOST_BITS = 63 };
    const char *who = "qn_layout_morton";
    qn_status status = qn__check_extents(who, rank, extents, out, err);
    if (!status && order)
        status = qn__check_order(who, "order", rank, order, err);
    if (status)
        return status;
    int n_bits[QN_MAX_RANK] = {0}, total = 0;
    for (int d = 0; d < rank; d++) {
        n_bits[d] = bits_of(extents[d]);
        total += n_bits[d];
        if (total > MOST_BITS)
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: dimension %d: extent %lld: more than %d bits in all", who, d,
                            (long long)extents[d], MOST_BITS);
    }
    qn_digits draft = {0};
    for (int d = 0; d < rank; d++) {
        qn_digit digit[MOST_BITS] = {{1, 0}};
        morton_digits(rank, n_bits, order, d, digit);
        if (!qn__draft_add(&draft, d, extents[d], n_bits[d] ? n_bits[d] : 1, digit))
            return fail_limit(who, d, err);
    }
    return make_of_draft(who, rank, extents, &draft, out, err);
}

/** Extent of dimension d: the product of its digits, or one that they can hold. */
static qn_status find_extent(const char *who, int d, const int64_t *extents, int n,
                             const qn_digit *digit, int64_t *extent, qn_error *err)
{
    int64_t product = 1;
    bool is_large = false;
    for (int j = 0; j < n; j++) {
        if (digit[j].extent < (j < n - 1))
            return qn__fail(err, QN_ERR_EXTENT,
                            "%s: dimension %d: digit %d: extent %lld is too small", who, d, j,
                            (long long)digit[j].extent);
        is_large = is_large || __builtin_mul_overflow(product, digit[j].extent, &product);
    }
    *extent = extents ? extents[d] : product;
    if (!extents && is_large)
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: dimension %d: product of the %d digits does not fit in 64 bits", who,
                        d, n);
    if (!is_large && *extent > product)
        return qn__fail(err, QN_ERR_EXTENT,
                        "%s: dimension %d: extent %lld is more than the digits hold, %lld", who, d,
                        (long long)*extent, (long long)product);
    return QN_OK;
}

qn_status qn_layout_custom(int rank, const int64_t *extents, const int *n_digits,
                           const qn_digit *digits, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_custom";
    qn_status status = check_bounds(who, rank, n_digits, out, err);
    if (!status && extents)
        status = qn__check_extents(who, rank, extents, out, err);
    if (status)
        return status;
    qn_digits draft = {0};
    int64_t extent[QN_MAX_RANK];
    const qn_digit none = {1, 0};
    for (int d = 0, first = 0; d < rank; first += n_digits[d++]) {
        int n = n_digits[d];
        if (n < 0)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: dimension %d: %d digits", who, d, n);
        if (n > QN_MAX_DIGITS - first)
            return fail_limit(who, d, err);
        if (n > 0 && !digits)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: digits are NULL", who);
        const qn_digit *digit = n > 0 ? digits + first : &none;
        n = n > 0 ? n : 1;
        status = find_extent(who, d, extents, n, digit, &extent[d], err);
        if (status)
            return status;
        if (!qn__draft_add(&draft, d, extent[d], n, digit))
            return fail_limit(who, d, err);
    }
    return make_of_draft(who, rank, extent, &draft, out, err);
}
