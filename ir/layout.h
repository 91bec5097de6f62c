/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h: what the files that implement layouts and views share: 128-bit arithmetic, and a layout
 * as one list of digits. Private to ir/; everybody else uses the declarations in ir.h.
 */
#ifndef QN_IR_LAYOUT_H
#define QN_IR_LAYOUT_H

#include "ir/ir.h"

/** Wide enough for every sum of digit x stride over one dimension: below 2^127. */
__extension__ typedef __int128 qn_wide;

/** A digit that takes more than one value, and where it stands in its index: index = sum(digit x
 * weight) + lower. */
typedef struct qn_place {
    int64_t extent; /* > 1 */
    int64_t stride;
    int64_t weight;
    int32_t dim;
} qn_place;

/** Whether the rank is legal, so that dimensions may be looked at. */
static inline bool qn__layout_has_rank(const qn_layout *l)
{
    return l && l->rank >= 0 && l->rank <= QN_MAX_RANK;
}
static inline bool qn__is_projected(const qn_layout *l, int d)
{
    return l->projected >> d & 1u;
}
static inline uint64_t qn__magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/** qn__layout_check that also gives the range of offsets, 0 and -1 if the layout is empty. */
qn_status qn__layout_measure(const qn_layout *l, const char *who, int64_t *low, int64_t *high,
                             qn_error *err);
/** Whether there is no index tuple at all. */
bool qn__layout_is_empty(const qn_layout *l);
/** Lists the places of a layout that is not empty, without projected dimensions; at most
 * QN_MAX_DIGITS. If the extents of a dimension's digits multiply to more than its extent, the list
 * describes a larger box of indices. */
int qn__layout_places(const qn_layout *l, qn_place *out);
/** Sorts by |stride|, smallest first, and tells whether different digits give different offsets for
 * certain. */
bool qn__places_sort(qn_place *place, int n);

/** Table with one reference, or NULL. `draft` needs first[0..rank], digit and n. */
qn_digits *qn__digits_new(const qn_digits *draft);
void qn__digits_retain(qn_digits *t);
void qn__digits_release(qn_digits *t);
/** Appends a dimension to a draft in its shortest form: digits without effect left out, neighbours
 * that are one digit joined, the last extent exact. False if there are too many digits. */
bool qn__draft_add(qn_digits *draft, int d, int64_t extent, int n, const qn_digit *digit);
/** Gives a layout the digits of a draft: in its dims if each has one digit, else in a new table. */
qn_status qn__draft_finish(const qn_digits *draft, const char *who, qn_layout *out, qn_error *err);
/** Copies head and the first `rank` dimensions, not the reference. */
void qn__layout_set(qn_layout *out, const qn_layout *l);

#endif
