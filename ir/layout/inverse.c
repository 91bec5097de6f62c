/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inverse.c: the indices of an offset. The digits of an injective layout are found by
 * division, largest stride first; a table is searched for the position that has the value.
 */
#include "ir/layout/layout.h"

#include <string.h>

/**
 * Splits `rest` into digits, largest stride first; false if it is no sum of digits. The places are
 * sorted and injective: each stride exceeds what the smaller ones reach together, so each quotient
 * is forced. A negative stride counts backwards, from its last digit.
 */
static bool split_offset(qn_wide rest, const qn_place *place, int n, qn_wide *index)
{
    for (int i = 0; i < n; i++)
        if (place[i].stride < 0)
            rest += (qn_wide)(place[i].extent - 1) * (qn_wide)qn__magnitude(place[i].stride);
    for (int i = n - 1; i >= 0 && rest >= 0; i--) {
        qn_wide stride = (qn_wide)qn__magnitude(place[i].stride);
        qn_wide value = rest / stride;
        if (value >= place[i].extent)
            return false;
        rest -= value * stride;
        index[place[i].dim] +=
            (place[i].stride < 0 ? place[i].extent - 1 - value : value) * place[i].weight;
    }
    return rest == 0;
}

/** The first position of a table that holds a value, or -1. */
static qn_wide find_position(const qn_table *t, qn_wide value)
{
    for (int64_t p = 0; p < t->n; p++)
        if (qn__table_value(t, p) == value)
            return p;
    return -1;
}

/** Indices, less the lower bounds, of an offset of a layout without members: QN_ERR_NOT_FOUND if
 * there are none. */
static qn_status invert(const qn_layout *l, int64_t offset, qn_wide *found, qn_error *err)
{
    qn_place place[QN_MAX_DIGITS];
    memset(found, 0, QN_MAX_RANK * sizeof *found);
    if (qn__layout_is_empty(l))
        return QN_ERR_NOT_FOUND;
    int n = qn__layout_places(l, place);
    if (!qn__places_sort(place, n))
        return qn__fail(err, QN_ERR_NOT_INJECTIVE,
                        "qn_layout_inverse: rank %d: the layout may map two indices to one offset",
                        l->rank);
    bool is_found = split_offset((qn_wide)offset - l->origin, place, n, found);
    for (int d = 0; d < l->rank && is_found; d++) {
        const qn_table *t = qn__layout_table(l, d);
        is_found = qn__is_projected(l, d) || found[d] < qn__values(l, d);
        if (t && is_found)
            found[d] = find_position(t, found[d] + t->lower);
        is_found = is_found && found[d] >= 0;
    }
    return is_found ? QN_OK : QN_ERR_NOT_FOUND;
}

/** The index of an offset in any layout: members are searched one after the other. */
static qn_status invert_members(const qn_layout *l, int64_t offset, qn_wide *found, qn_error *err)
{
    int m = qn__layout_members(l);
    if (m < 0)
        return invert(l, offset, found, err);
    qn_status status = QN_ERR_NOT_FOUND;
    for (int64_t p = 0; p < l->dim[m].extent && status == QN_ERR_NOT_FOUND; p++) {
        qn_layout member;
        qn_digits digits;
        qn__layout_member(l, m, p, &member, &digits);
        status = invert(&member, offset, found, err);
        for (int d = l->rank - 1; d > m; d--)
            found[d] = found[d - 1];
        found[m] = p;
    }
    return status;
}

qn_status qn_layout_inverse(const qn_layout *l, int64_t offset, int64_t *index, qn_error *err)
{
    qn_status status = qn__layout_check(l, "qn_layout_inverse", err);
    if (status != QN_OK)
        return status;
    if (!index && l->rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_layout_inverse: index is NULL");
    qn_wide found[QN_MAX_RANK];
    status = invert_members(l, offset, found, err);
    if (status == QN_ERR_NOT_FOUND)
        return qn__fail(err, QN_ERR_NOT_FOUND,
                        "qn_layout_inverse: offset %lld belongs to no index of the %lld",
                        (long long)offset, (long long)qn_layout_size(l));
    for (int d = 0; d < l->rank && !status; d++)
        index[d] = (int64_t)(found[d] + l->dim[d].lower);
    return status;
}
