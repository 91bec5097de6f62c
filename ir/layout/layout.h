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
/** Number of values that the digits of a dimension take: its extent, or that of what its table
 * selects from. */
static inline int64_t qn__values(const qn_layout *l, int d)
{
    const qn_table *t = qn__layout_table(l, d);
    return t ? t->extent : l->dim[d].extent;
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

/** Makes the digits of the layout that kernels see; false without memory. */
bool qn__digits_expand(qn_digits *t, int rank);
void qn__digits_retain(qn_digits *t);
void qn__digits_release(qn_digits *t);
/** Appends a dimension to a draft in its shortest form: digits without effect left out, neighbours
 * that are one digit joined, the last extent exact. False if there are too many digits. */
bool qn__draft_add(qn_digits *draft, int d, int64_t extent, int n, const qn_digit *digit);
/** Gives a layout the digits of a draft: in its dims if each has one digit, else in a new table. */
qn_status qn__draft_finish(qn_digits *draft, const char *who, qn_layout *out, qn_error *err);
/** Copies head and the first `rank` dimensions, not the reference. */
void qn__layout_set(qn_layout *out, const qn_layout *l);

/* ---------------------------------------------------------------- constructors */

/** Rank, pointers and signs of the arguments all constructors have. */
qn_status qn__check_extents(const char *who, int rank, const int64_t *extents, const qn_layout *out,
                            qn_error *err);
/** Whether `order` is a permutation; fails with the first entry that is not. `what` names it. */
qn_status qn__check_order(const char *who, const char *what, int rank, const int *order,
                          qn_error *err);
/** Dense strides of checked extents, fastest first in `order`; NULL is Right. */
qn_status qn__make_dense(const char *who, int rank, const int64_t *extents, const int *order,
                         qn_layout *out, qn_error *err);

/* ---------------------------------------------------------------- transforms */

/** Where the digits of a dimension of a result come from, if not from one of the argument. */
enum {
    QN_FROM_DIM = -1, /**< the one digit in dim[p] */
    QN_FROM_OWN = -2  /**< the list `own` */
};

/**
 * The result of a transform in the making: head and dims, and per dimension p the dimension of the
 * argument whose digits it keeps, or one of QN_FROM_*.
 */
typedef struct qn_result {
    qn_layout layout;
    int32_t n_own;
    uint32_t parts; /* bit p: of the table of dimension p a part is kept */
    struct {
        int64_t first, step;
    } part[QN_MAX_RANK];
    int8_t source[QN_MAX_RANK];
    uint8_t own_first[QN_MAX_RANK], own_count[QN_MAX_RANK];
    qn_digit own[QN_MAX_DIGITS + 2 * QN_MAX_RANK]; /* a transform adds at most two a dimension */
} qn_result;

/** A result with the origin of `l`, of the given rank, and no dims yet. */
static inline void qn__result_init(qn_result *r, const qn_layout *l, int rank)
{
    r->layout.rank = rank;
    r->layout.projected = 0;
    r->layout.origin = l->origin;
    r->layout.digits = NULL;
    r->n_own = 0;
    r->parts = 0;
}
/** Dimension p of the result becomes dimension d of `l`. */
static inline void qn__result_take(qn_result *r, int p, const qn_layout *l, int d)
{
    r->layout.dim[p] = l->dim[d];
    r->layout.projected |= (uint32_t)qn__is_projected(l, d) << p;
    r->source[p] = (int8_t)d;
}
/** Dimension p becomes one of this extent and digits that qn__result_add appends; none: stride 0.
 */
static inline void qn__result_open(qn_result *r, int p, int64_t extent)
{
    r->layout.dim[p] = (qn_dim){0, extent, 0};
    r->source[p] = QN_FROM_OWN;
    r->own_first[p] = (uint8_t)r->n_own;
    r->own_count[p] = 0;
}
/** Keeps of the table of dimension p the positions first, first + step, ..., as many as the dim
 * says. */
static inline void qn__result_part(qn_result *r, int p, int64_t first, int64_t step)
{
    r->parts |= UINT32_C(1) << p;
    r->part[p].first = first;
    r->part[p].step = step;
}
static inline void qn__result_add(qn_result *r, int p, qn_digit digit)
{
    r->own[r->n_own++] = digit;
    r->own_count[p]++;
}
/** Makes the digits of a result and commits it. */
qn_status qn__result_finish(qn_result *r, const qn_layout *l, const char *who, qn_layout *out,
                            qn_error *err);
/** Writes the result to *out, which may be `l`: then the old table is dropped. */
static inline qn_status qn__result_commit(qn_result *r, const qn_layout *l, const char *who,
                                          qn_layout *out, qn_error *err)
{
    if (l->digits || r->n_own)
        return qn__result_finish(r, l, who, out, err);
    qn__layout_set(out, &r->layout);
    return QN_OK;
}
/** What every transform checks first. */
qn_status qn__transform_check(const qn_layout *l, const void *array, const char *what,
                              const qn_layout *out, const char *who, qn_error *err);
/** Fails if one of the dimensions first .. last has a table. */
qn_status qn__refuse_tables(const qn_layout *l, int first, int last, const char *who,
                            qn_error *err);
/** The message about position `at` of a list, which holds a wrong value. */
qn_status qn__fail_value(const qn_table *t, int d, int64_t at, int64_t value, const char *who,
                         qn_error *err);
/** What index `at`, in range, of dimension d adds to the offset; fails if a list is wrong there. */
qn_status qn__offset_in_dim(const qn_layout *l, int d, int64_t at, const char *who, int64_t *out,
                            qn_error *err);
/** Fails unless 0 <= d < n. */
qn_status qn__check_dimension(const char *who, int d, int n, qn_error *err);

#endif
