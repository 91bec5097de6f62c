/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.c: parts of layouts: slice, and section, a range of one dimension. A range of a
 * dimension with several digits is one only where it is a sum of digits again: then it keeps or
 * cuts whole digits, and the index counted from its begin never carries into a digit that is left
 * out.
 */
#include "ir/layout/layout.h"

qn_status qn__offset_in_dim(const qn_layout *l, int d, int64_t at, const char *who, int64_t *out,
                            qn_error *err)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    const qn_table *t = qn__layout_table(l, d);
    uint64_t rest = (uint64_t)at - (uint64_t)l->dim[d].lower, offset = 0;
    if (t) {
        qn_status status = qn__table_check_readable(t, d, who, err);
        if (status)
            return status;
        int64_t value = qn__table_value(t, (int64_t)rest);
        rest = (uint64_t)value - (uint64_t)t->lower;
        if (rest >= (uint64_t)t->extent)
            return qn__fail_value(t, d, at, value, who, err);
    }
    for (int j = 0; j < n - 1; j++) {
        offset += rest % (uint64_t)digit[j].extent * (uint64_t)digit[j].stride;
        rest /= (uint64_t)digit[j].extent;
    }
    *out = (int64_t)(offset + rest * (uint64_t)digit[n - 1].stride);
    return QN_OK;
}

/**
 * Digits of the indices from, from + step, .., `kept` > 0 of them, of dimension d, as dimension p.
 * Digit by digit, fastest first; `from` and `step` are divided by the digits passed:
 * (1) all that is left lies in one value range of this digit: it is the last;
 * (2) the step is a multiple of the digit: the digit keeps its value and contributes nothing;
 * (3) the digit is a multiple of the step and is entered in its first step: it runs through all
 *     its multiples and carries into the next by 1.
 * Anything else is no sum of digits.
 */
static qn_status add_part(qn_result *r, int p, const qn_layout *l, int d, int64_t from,
                          int64_t step, int64_t kept, const char *who, qn_error *err)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    for (int j = 0; j < n; j++) {
        int64_t extent = digit[j].extent, stride;
        bool is_last = j == n - 1;
        int64_t value = is_last ? from : from % extent;
        bool in_one = is_last || kept == 1 || (extent - 1 - value) / step >= kept - 1;
        if (!in_one && step % extent == 0) {
            step /= extent;
            from /= extent;
            continue;
        }
        if (!in_one && (extent % step != 0 || value >= step))
            break;
        if (kept == 1)
            stride = digit[j].stride;
        else if (__builtin_mul_overflow(digit[j].stride, step, &stride))
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: dimension %d: step %lld x stride does not fit in 64 bits", who, d,
                            (long long)step);
        int64_t values = in_one ? kept : extent / step;
        qn__result_add(r, p, (qn_digit){values, stride});
        if (in_one)
            return QN_OK;
        from /= extent;
        kept = kept / values + (kept % values != 0);
        step = 1;
    }
    return qn__fail(err, QN_ERR_UNSUPPORTED,
                    "%s: dimension %d: the range is not aligned to its %d digits", who, d, n);
}

/** Whether [begin,end) by step is a range of dimension d. */
static qn_status check_range(const qn_layout *l, int d, const qn_slice *s, const char *who,
                             qn_error *err)
{
    int64_t first = l->dim[d].lower, end = first + l->dim[d].extent;
    if (s->begin > s->end || s->begin < first || s->end > end)
        return qn__fail(err, QN_ERR_RANGE, "%s: dimension %d: range [%lld,%lld) %s [%lld,%lld)",
                        who, d, (long long)s->begin, (long long)s->end,
                        s->begin > s->end ? "begins above its end; the indices are" : "not in",
                        (long long)first, (long long)end);
    if (s->step < 0)
        return qn__fail(err, QN_ERR_RANGE, "%s: dimension %d: step %lld is negative", who, d,
                        (long long)s->step);
    if (qn__is_projected(l, d))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: dimension %d: is projected and takes no range", who, d);
    return QN_OK;
}

/** Adds [begin,end) by step of dimension d to the result as dimension p. */
static qn_status take_range(qn_result *r, int p, const qn_layout *l, int d, const qn_slice *s,
                            const char *who, qn_error *err)
{
    qn_status status = check_range(l, d, s, who, err);
    if (status)
        return status;
    int64_t step = s->step ? s->step : 1;
    int64_t kept = s->end - s->begin;
    if (step > 1)
        kept = kept / step + (kept % step != 0);
    qn__result_take(r, p, l, d);
    r->layout.dim[p].lower = 0;
    if (kept == l->dim[d].extent && s->begin == l->dim[d].lower)
        return QN_OK;
    if (qn__layout_table(l, d)) {
        r->layout.dim[p].extent = kept;
        qn__result_part(r, p, kept ? s->begin - l->dim[d].lower : 0, step);
        return QN_OK;
    }
    qn_digit one;
    int n;
    int64_t stride = qn__layout_dim_digits(l, d, &one, &n)->stride;
    if (n > 1 && kept > 0) {
        qn__result_open(r, p, kept);
        return add_part(r, p, l, d, s->begin - l->dim[d].lower, step, kept, who, err);
    }
    if (kept > 1 && __builtin_mul_overflow(stride, step, &stride))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: dimension %d: step %lld x stride does not fit in 64 bits", who, d,
                        (long long)step);
    r->layout.dim[p].extent = kept;
    r->layout.dim[p].stride = stride;
    r->source[p] = QN_FROM_DIM;
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
static qn_status find_origin(const qn_layout *l, const qn_slice *slices, const char *who,
                             int64_t *out, qn_error *err)
{
    uint64_t origin = (uint64_t)l->origin;
    for (int d = 0; d < l->rank; d++) {
        int64_t offset;
        if (slices[d].kind == QN_ALL || (slices[d].kind == QN_RANGE && qn__layout_table(l, d)))
            continue;
        qn_status status = qn__offset_in_dim(l, d, slices[d].begin, who, &offset, err);
        if (status)
            return status;
        origin += (uint64_t)offset;
    }
    *out = (int64_t)origin;
    return QN_OK;
}

/** qn_layout_slice of a checked layout. */
static qn_status cut(const qn_layout *l, const qn_slice *slices, qn_layout *out, const char *who,
                     qn_error *err)
{
    qn_status status = QN_OK;
    qn_result r;
    qn__result_init(&r, l, 0);
    int rank = 0;
    for (int d = 0; d < l->rank && !status; d++) {
        switch (slices[d].kind) {
        case QN_ALL:
            qn__result_take(&r, rank++, l, d);
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
        status = find_origin(l, slices, who, &r.layout.origin, err);
    if (status)
        return status;
    return qn__result_commit(&r, l, who, out, err);
}

/** One dimension of cut_plain: false for what is refused, or is not plain. *is_kept: it stays, as
 * *out. */
static inline bool cut_dim(const qn_dim *dim, const qn_slice *s, qn_dim *out, bool *is_kept,
                           uint64_t *origin)
{
    uint64_t begin = (uint64_t)s->begin - (uint64_t)dim->lower, extent = (uint64_t)dim->extent;
    uint64_t end = (uint64_t)s->end - (uint64_t)dim->lower;
    *is_kept = s->kind != QN_AT;
    *out = *dim;
    if (s->kind == QN_ALL)
        return true;
    *origin += begin * (uint64_t)dim->stride;
    if (s->kind == QN_AT)
        return begin < extent;
    out->lower = 0;
    out->extent = (int64_t)(end - begin);
    return s->kind == QN_RANGE && begin <= end && end <= extent && (uint64_t)s->step <= 1;
}

/** The short way of a checked layout with one digit a dimension and steps of 1: the same as cut.
 * False for all others, and where cut would fail; then nothing is written. */
static bool cut_plain(const qn_layout *l, const qn_slice *slices, qn_layout *out)
{
    qn_dim kept[QN_MAX_RANK];
    uint64_t origin = (uint64_t)l->origin;
    int rank = 0, n = l->rank;
    bool is_empty = false;
    if (l->digits || l->projected)
        return false;
    for (int d = 0; d < n; d++) {
        bool is_kept;
        if (!cut_dim(&l->dim[d], &slices[d], &kept[rank], &is_kept, &origin))
            return false;
        is_empty |= is_kept && kept[rank].extent == 0;
        rank += is_kept;
    }
    out->origin = is_empty ? l->origin : (int64_t)origin;
    out->rank = rank;
    out->projected = 0;
    out->digits = NULL;
    for (int p = 0; p < rank; p++)
        out->dim[p] = kept[p];
    return true;
}

qn_status qn__layout_cut(const qn_layout *l, int n, const qn_slice *slices, qn_layout *out,
                         qn_error *err)
{
    const char *who = "qn_layout_slice";
    if (!slices && l->rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: slices is NULL", who);
    if (n != l->rank)
        return qn__fail(err, QN_ERR_RANK, "%s: %d slices for rank %d", who, n, l->rank);
    return cut_plain(l, slices, out) ? QN_OK : cut(l, slices, out, who, err);
}

qn_status qn_layout_slice(const qn_layout *l, int n, const qn_slice *slices, qn_layout *out,
                          qn_error *err)
{
    qn_status status = qn__transform_check(l, l, "layout", out, "qn_layout_slice", err);
    return status ? status : qn__layout_cut(l, n, slices, out, err);
}

qn_status qn_layout_section(const qn_layout *l, int d, int64_t begin, int64_t end, int64_t step,
                            qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_section";
    qn_status status = qn__transform_check(l, l, "layout", out, who, err);
    if (!status)
        status = qn__check_dimension(who, d, l->rank, err);
    if (status)
        return status;
    qn_slice slices[QN_MAX_RANK] = {{QN_ALL, 0, 0, 0}};
    slices[d] = (qn_slice){QN_RANGE, begin, end, step};
    return cut(l, slices, out, who, err);
}
