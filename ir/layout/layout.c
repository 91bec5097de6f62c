/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c: queries of layouts: size, range, offset, uniqueness, and the check of hand-made ones;
 * the inverse is in layout/inverse.c. A layout is a sum of digit x stride; no question here asks
 * which constructor made it.
 *
 * Facts used throughout. (1) Over one dimension |sum| < 2^127: the digits' values sum to at most
 * the index, which is below 2^63, and so are the strides. (2) Index 0 of each dimension contributes
 * 0, so the lowest offset of a dimension is <= 0 and the highest >= 0, and partial sums of them are
 * monotone: the first that leaves int64 settles it. (3) A last digit may be cut short by the extent
 * (tiles at the rim); only then is the set of digits not a box.
 */
#include "ir/layout/layout.h"

#include <string.h>

/* ---------------------------------------------------------------- digits */

const qn_digit *qn__layout_dim_digits(const qn_layout *l, int d, qn_digit *one, int *n)
{
    if (l->digits && !qn__is_projected(l, d)) {
        *n = l->digits->first[d + 1] - l->digits->first[d];
        return l->digits->digit + l->digits->first[d];
    }
    *one = (qn_digit){l->dim[d].extent, qn__is_projected(l, d) ? 0 : l->dim[d].stride};
    *n = 1;
    return one;
}

int qn_layout_digits(const qn_layout *l, int d, qn_digit *out)
{
    if (!qn__layout_has_rank(l) || d < 0 || d >= l->rank)
        return 0;
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    if (out)
        memcpy(out, digit, (size_t)n * sizeof *out);
    return n;
}

int64_t qn__layout_offset_of(const qn_layout *l, const int64_t *index)
{
    uint64_t offset = (uint64_t)l->origin;
    for (int d = 0; d < l->rank; d++) {
        if (qn__is_projected(l, d))
            continue;
        uint64_t rest = (uint64_t)index[d] - (uint64_t)l->dim[d].lower;
        if (!l->digits) {
            offset += rest * (uint64_t)l->dim[d].stride;
            continue;
        }
        if (l->digits->tables >> d & 1)
            rest = (uint64_t)index[d] - (uint64_t)l->digits->table[d]->lower;
        const qn_digit *digit = l->digits->digit + l->digits->first[d];
        const qn_digit *last = l->digits->digit + l->digits->first[d + 1] - 1;
        for (; digit < last; digit++) {
            offset += rest % (uint64_t)digit->extent * (uint64_t)digit->stride;
            rest /= (uint64_t)digit->extent;
        }
        offset += rest * (uint64_t)last->stride;
    }
    return (int64_t)offset;
}

bool qn__layout_is_empty(const qn_layout *l)
{
    for (int d = 0; d < l->rank; d++)
        if (!qn__is_projected(l, d) && (l->dim[d].extent == 0 || qn__values(l, d) == 0))
            return true;
    return false;
}

int qn__layout_places(const qn_layout *l, qn_place *out)
{
    int n_places = 0;
    for (int d = 0; d < l->rank; d++) {
        qn_digit one;
        int n;
        const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
        int64_t left = qn__is_projected(l, d) ? 1 : qn__values(l, d);
        int64_t weight = 1;
        for (int j = 0; j < n && left > 1; j++) {
            int64_t extent = j == n - 1 || digit[j].extent > left ? left : digit[j].extent;
            if (extent > 1)
                out[n_places++] = (qn_place){extent, digit[j].stride, weight, d};
            left = left / extent + (left % extent != 0);
            weight *= left > 1 ? extent : 1; /* stays below the extent of the dimension */
        }
    }
    return n_places;
}

bool qn__places_sort(qn_place *place, int n)
{
    for (int i = 1; i < n; i++) {
        qn_place moved = place[i];
        int j = i;
        for (; j > 0 && qn__magnitude(place[j - 1].stride) > qn__magnitude(moved.stride); j--)
            place[j] = place[j - 1];
        place[j] = moved;
    }
    qn_wide reach = 0; /* of the digits so far; below the next stride, so below 2^63 + 2^126 */
    for (int i = 0; i < n; i++) {
        qn_wide stride = (qn_wide)qn__magnitude(place[i].stride);
        if (stride <= reach)
            return false;
        reach += (qn_wide)(place[i].extent - 1) * stride;
    }
    return true;
}

/* ---------------------------------------------------------------- range */

/** Lowest and highest sum of digit x stride over the indices 0 .. last. Exact also where `last`
 * cuts the last digit. */
static void digit_reach(const qn_digit *digit, int n, int64_t last, qn_wide *low, qn_wide *high)
{
    qn_wide best_low = 0, best_high = 0; /* lower digits no larger than those of `last` */
    qn_wide full_low = 0, full_high = 0; /* lower digits free */
    for (int j = 0; j < n && last > 0; j++) {
        bool is_last = j == n - 1;
        int64_t top = is_last ? last : last % digit[j].extent;
        qn_wide stride = digit[j].stride;
        best_low += top * stride;
        best_high += top * stride;
        if (top > 0) {
            /* A smaller value of this digit frees the lower ones; extremes are at 0 and top - 1. */
            qn_wide below = (top - 1) * stride;
            qn_wide free_low = full_low + (below < 0 ? below : 0);
            qn_wide free_high = full_high + (below > 0 ? below : 0);
            best_low = free_low < best_low ? free_low : best_low;
            best_high = free_high > best_high ? free_high : best_high;
        }
        qn_wide full = (digit[j].extent - 1) * stride;
        full_low += full < 0 ? full : 0;
        full_high += full > 0 ? full : 0;
        last = is_last ? 0 : last / digit[j].extent;
    }
    *low = best_low;
    *high = best_high;
}

/** Range of a layout that is not empty. False if it leaves int64, at dimension *bad (-1: none). */
static bool find_range(const qn_layout *l, int64_t *low, int64_t *high, int *bad)
{
    qn_wide lowest = l->origin, highest = l->origin;
    for (int d = 0; d < l->rank; d++) {
        qn_wide dim_low, dim_high;
        if (!l->digits) {
            qn_wide reach = (qn_wide)(l->dim[d].extent - 1) * l->dim[d].stride;
            dim_low = reach < 0 ? reach : 0;
            dim_high = reach > 0 ? reach : 0;
            if (qn__is_projected(l, d))
                dim_low = dim_high = 0;
        } else {
            qn_digit one;
            int n;
            const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
            digit_reach(digit, n, qn__values(l, d) - 1, &dim_low, &dim_high);
        }
        lowest += dim_low;
        highest += dim_high;
        if (lowest < INT64_MIN || highest > INT64_MAX) {
            *bad = d;
            return false;
        }
    }
    *low = (int64_t)lowest;
    *high = (int64_t)highest;
    return true;
}

/** Fails with the dimension at which the offsets leave int64. */
static qn_status fail_range(const qn_layout *l, const char *who, int d, qn_error *err)
{
    if (l->digits)
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: dimension %d: extent %lld: offsets do not fit in 64 bits", who, d,
                        (long long)l->dim[d].extent);
    return qn__fail(
        err, QN_ERR_OVERFLOW,
        "%s: dimension %d: extent %lld, stride %lld, origin %lld: offsets do not fit in 64 bits",
        who, d, (long long)l->dim[d].extent, (long long)l->dim[d].stride, (long long)l->origin);
}

qn_status qn_layout_range(const qn_layout *l, int64_t *low, int64_t *high, qn_error *err)
{
    if (!l || !low || !high)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_layout_range: %s is NULL",
                        !l     ? "layout"
                        : !low ? "low"
                               : "high");
    if (!qn__layout_has_rank(l))
        return qn__fail(err, QN_ERR_RANK, "qn_layout_range: rank %d not in [0,%d]", l->rank,
                        QN_MAX_RANK);
    for (int d = 0; d < l->rank; d++)
        if (l->dim[d].extent < 0)
            return qn__fail(err, QN_ERR_EXTENT,
                            "qn_layout_range: dimension %d: extent %lld is negative", d,
                            (long long)l->dim[d].extent);
    int64_t lowest = 0, highest = -1;
    int bad = 0;
    if (!qn__layout_is_empty(l) && !find_range(l, &lowest, &highest, &bad))
        return fail_range(l, "qn_layout_range", bad, err);
    *low = lowest;
    *high = highest;
    return QN_OK;
}

int64_t qn_layout_span(const qn_layout *l)
{
    int64_t low = 0, high = -1, span;
    if (!l)
        return 0;
    if (qn_layout_range(l, &low, &high, NULL) != QN_OK ||
        __builtin_sub_overflow(high, low, &span) || span == INT64_MAX)
        return -1;
    return span + 1;
}

int64_t qn_layout_size(const qn_layout *l)
{
    if (!qn__layout_has_rank(l))
        return 0;
    int64_t size = 1;
    for (int d = 0; d < l->rank; d++)
        if (!qn__is_projected(l, d) && l->dim[d].extent <= 0)
            return 0;
    for (int d = 0; d < l->rank; d++)
        if (!qn__is_projected(l, d) && __builtin_mul_overflow(size, l->dim[d].extent, &size))
            return INT64_MAX;
    return size;
}

/* ---------------------------------------------------------------- check */

/** Digit table against the extents: lower digits >= 1, the last one exact. */
static qn_status check_table(const qn_layout *l, const char *who, qn_error *err)
{
    for (int d = 0; d < l->rank; d++) {
        qn_digit one;
        int n;
        const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
        const qn_table *t = qn__layout_table(l, d);
        int64_t left = qn__values(l, d);
        for (int j = 0; j < n - 1 && digit[j].extent > 0; j++)
            left = left / digit[j].extent + (left % digit[j].extent != 0);
        if (n < 1 || (!qn__is_projected(l, d) && digit[n - 1].extent != left) ||
            (t && t->n != l->dim[d].extent))
            return qn__fail(err, QN_ERR_EXTENT,
                            "%s: dimension %d: extent %lld does not fit the digits", who, d,
                            (long long)l->dim[d].extent);
    }
    return QN_OK;
}

/**
 * The common case in one pass: one digit per dimension, not empty, everything inside int64. False
 * otherwise, and then nothing is said about the layout.
 */
static bool measure_plain(const qn_layout *l, int64_t *low, int64_t *high)
{
    if (l->digits || l->projected)
        return false;
    int64_t lowest = l->origin, highest = l->origin, size = 1, end, reach;
    bool fails = false;
    for (int d = 0; d < l->rank; d++) {
        const qn_dim *dim = &l->dim[d];
        fails |= dim->extent <= 0;
        fails |= __builtin_add_overflow(dim->lower, dim->extent, &end);
        fails |= __builtin_mul_overflow(size, dim->extent, &size);
        fails |= __builtin_mul_overflow((int64_t)((uint64_t)dim->extent - 1), dim->stride, &reach);
        fails |= __builtin_add_overflow(lowest, reach < 0 ? reach : 0, &lowest);
        fails |= __builtin_add_overflow(highest, reach > 0 ? reach : 0, &highest);
    }
    *low = lowest;
    *high = highest;
    return !fails;
}

/** The general case: extents, lower bounds, digits, size and range, one after the other. */
static qn_status measure_any(const qn_layout *l, const char *who, int64_t *low, int64_t *high,
                             qn_error *err)
{
    int64_t size = 1, ignored;
    bool is_empty = false, is_large = false;
    for (int d = 0; d < l->rank; d++) {
        int64_t extent = l->dim[d].extent;
        if (extent < 0)
            return qn__fail(err, QN_ERR_EXTENT, "%s: dimension %d: extent %lld is negative", who, d,
                            (long long)extent);
        if (__builtin_add_overflow(l->dim[d].lower, extent, &ignored))
            return qn__fail(
                err, QN_ERR_OVERFLOW,
                "%s: dimension %d: lower bound %lld + extent %lld does not fit in 64 bits", who, d,
                (long long)l->dim[d].lower, (long long)extent);
        if (qn__is_projected(l, d))
            continue;
        is_empty |= extent == 0 || qn__values(l, d) == 0;
        is_large |= __builtin_mul_overflow(size, extent, &size);
    }
    qn_status status = l->digits ? check_table(l, who, err) : QN_OK;
    if (status)
        return status;
    *low = 0;
    *high = -1;
    if (is_empty)
        return QN_OK;
    if (is_large)
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: rank %d: product of the extents does not fit in 64 bits", who,
                        l->rank);
    int bad = 0;
    return find_range(l, low, high, &bad) ? QN_OK : fail_range(l, who, bad, err);
}

qn_status qn__layout_measure(const qn_layout *l, const char *who, int64_t *low, int64_t *high,
                             qn_error *err)
{
    if (!l)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: layout is NULL", who);
    if (!qn__layout_has_rank(l))
        return qn__fail(err, QN_ERR_RANK, "%s: rank %d not in [0,%d]", who, l->rank, QN_MAX_RANK);
    if (measure_plain(l, low, high))
        return QN_OK;
    if (l->projected >> l->rank)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: projected 0x%x names dimensions beyond rank %d",
                        who, (unsigned)l->projected, l->rank);
    return measure_any(l, who, low, high, err);
}

qn_status qn__layout_check(const qn_layout *l, const char *who, qn_error *err)
{
    int64_t low, high;
    return qn__layout_measure(l, who, &low, &high, err);
}

bool qn__layout_equal(const qn_layout *a, const qn_layout *b)
{
    if (a->rank != b->rank || a->projected != b->projected)
        return false;
    for (int d = 0; d < a->rank; d++) {
        if (a->dim[d].extent != b->dim[d].extent || a->dim[d].lower != b->dim[d].lower ||
            !qn__table_equal(qn__layout_table(a, d), qn__layout_table(b, d)))
            return false;
        if (qn__values(a, d) <= 1 || qn__is_projected(a, d))
            continue;
        qn_digit one_a, one_b;
        int n_a, n_b;
        const qn_digit *digit_a = qn__layout_dim_digits(a, d, &one_a, &n_a);
        const qn_digit *digit_b = qn__layout_dim_digits(b, d, &one_b, &n_b);
        if (n_a != n_b) /* tables hold the shortest form */
            return false;
        for (int j = 0; j < n_a; j++)
            if (digit_a[j].extent != digit_b[j].extent || digit_a[j].stride != digit_b[j].stride)
                return false;
    }
    return true;
}

/* ---------------------------------------------------------------- index to offset */

/** Sum over the digits of an index in range; false if it leaves 128 bits (made by hand). */
static bool add_index(const qn_layout *l, int d, uint64_t index, qn_wide *sum)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    for (int j = 0; j < n; j++) {
        uint64_t value = j < n - 1 ? index % (uint64_t)digit[j].extent : index;
        if (__builtin_add_overflow(*sum, (qn_wide)value * digit[j].stride, sum))
            return false;
        if (j < n - 1)
            index /= (uint64_t)digit[j].extent;
    }
    return true;
}

qn_status qn_layout_at(const qn_layout *l, int n, const int64_t *index, int64_t *offset,
                       qn_error *err)
{
    if (!l || !offset || (!index && n > 0))
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_layout_at: %s is NULL",
                        !l        ? "layout"
                        : !offset ? "offset"
                                  : "index");
    if (!qn__layout_has_rank(l))
        return qn__fail(err, QN_ERR_RANK, "qn_layout_at: rank %d not in [0,%d]", l->rank,
                        QN_MAX_RANK);
    if (n != l->rank)
        return qn__fail(err, QN_ERR_RANK, "qn_layout_at: %d indices for rank %d", n, l->rank);
    qn_wide sum = l->origin;
    int64_t value[QN_MAX_RANK];
    for (int d = 0; d < n; d++) {
        qn_wide end = (qn_wide)l->dim[d].lower + l->dim[d].extent;
        if (!qn__is_projected(l, d) && (index[d] < l->dim[d].lower || index[d] >= end))
            return qn__fail(err, QN_ERR_BOUNDS,
                            "qn_layout_at: dimension %d: index %lld not in [%lld,%lld)", d,
                            (long long)index[d], (long long)l->dim[d].lower, (long long)end);
    }
    qn_status status = qn__layout_look_up(l, index, value, "qn_layout_at", err);
    for (int d = 0; d < n && !status; d++) {
        const qn_table *t = qn__layout_table(l, d);
        uint64_t lower = (uint64_t)(t ? t->lower : l->dim[d].lower);
        if (!qn__is_projected(l, d) && !add_index(l, d, (uint64_t)value[d] - lower, &sum))
            return fail_range(l, "qn_layout_at", d, err);
    }
    if (status)
        return status;
    if (sum < INT64_MIN || sum > INT64_MAX)
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "qn_layout_at: rank %d: offset does not fit in 64 bits", n);
    *offset = (int64_t)sum;
    return QN_OK;
}

/* ---------------------------------------------------------------- uniqueness and contiguity */

bool qn_layout_is_unique(const qn_layout *l)
{
    if (!qn__layout_has_rank(l))
        return false;
    if (qn_layout_size(l) == 0)
        return true;
    for (int d = 0; d < l->rank; d++) /* what a list holds may change */
        if (qn__layout_table(l, d) && !qn__layout_table(l, d)->is_members)
            return false;
    return qn__layout_is_storable(l);
}

bool qn__layout_is_storable(const qn_layout *l)
{
    qn_place place[QN_MAX_DIGITS];
    qn_layout member;
    qn_digits digits;
    int m = qn__layout_members(l);
    if (m >= 0 && l->dim[m].extent > 0) {
        if (l->dim[m].extent > 1 && !l->digits->table[m]->is_disjoint)
            return false;
        qn__layout_member(l, m, 0, &member, &digits);
        l = &member;
    }
    if (qn_layout_size(l) == 0)
        return true;
    return !l->projected && qn__places_sort(place, qn__layout_places(l, place));
}

/** Whether each dimension's digits multiply to exactly its extent: the digits fill a box. */
static bool is_box(const qn_layout *l, const qn_place *place, int n)
{
    for (int i = 0; i < n; i++) {
        bool is_last = i == n - 1 || place[i + 1].dim != place[i].dim;
        if (is_last && place[i].weight * (qn_wide)place[i].extent != l->dim[place[i].dim].extent)
            return false;
    }
    return true;
}

/**
 * Of a box: sums of digits fill their range if and only if no stride leaves a gap above what the
 * smaller ones reach. Else (tiles cut at the rim, which are unique once broadcast dimensions are
 * left out): as many indices as offsets.
 */
bool qn_layout_is_contiguous(const qn_layout *l)
{
    if (!qn__layout_has_rank(l))
        return false;
    if (qn_layout_size(l) == 0)
        return true;
    int64_t span = qn_layout_span(l);
    if (span < 0 || qn__layout_tables(l))
        return false;
    qn_place place[QN_MAX_DIGITS];
    int n = qn__layout_places(l, place);
    bool box = is_box(l, place, n);
    int n_moving = 0;
    for (int i = 0; i < n; i++)
        if (place[i].stride != 0)
            place[n_moving++] = place[i];
    qn_wide count = 1;
    for (int i = 0; i < n_moving && count <= span; i++)
        if (i == n_moving - 1 || place[i + 1].dim != place[i].dim)
            count *= l->dim[place[i].dim].extent;
    bool is_injective = qn__places_sort(place, n_moving);
    if (!box)
        return is_injective && count == span;
    qn_wide reach = 0;
    for (int i = 0; i < n_moving; i++) {
        qn_wide stride = (qn_wide)qn__magnitude(place[i].stride);
        if (stride > reach + 1)
            return false;
        reach += (place[i].extent - 1) * stride;
    }
    return true;
}
