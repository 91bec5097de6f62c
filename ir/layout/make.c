/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make.c: constructors of layouts, and the counted digit table of layouts with several
 * digits in a dimension. A table is written once, by qn__draft_finish, and then only counted.
 * Constructors write *out on success only; all products are checked, so that every layout they make
 * passes qn__layout_check.
 */
#include "ir/layout/layout.h"

#include <string.h>

/* ---------------------------------------------------------------- digit tables */

static void release_tables(qn_digits *t)
{
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (t->tables >> d & 1)
            qn__table_release(t->table[d]);
}

/** Table with one reference, or NULL. `draft` needs first[0..rank], digit, n and tables; takes over
 * the references to tables, on failure too. */
static qn_digits *make_digits(qn_digits *draft, int rank)
{
    qn_digits *t = qn__zalloc(1, sizeof *t);
    if (!t) {
        release_tables(draft);
        return NULL;
    }
    atomic_init(&t->references, 1);
    memcpy(t->first, draft->first, sizeof t->first);
    memcpy(t->digit, draft->digit, (size_t)draft->n * sizeof *t->digit);
    t->n = draft->n;
    t->tables = draft->tables;
    for (int d = 0; d < rank; d++)
        if (t->tables >> d & 1)
            t->table[d] = draft->table[d];
    if (t->tables && !qn__digits_expand(t, rank)) {
        qn__digits_release(t);
        return NULL;
    }
    return t;
}

void qn__digits_retain(qn_digits *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
}

void qn__digits_release(qn_digits *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1)
        return;
    release_tables(t);
    qn__digits_release(t->expanded);
    qn__free(t);
}

bool qn__draft_add(qn_digits *draft, int d, int64_t extent, int n, const qn_digit *digit)
{
    if (d == 0)
        draft->n = 0;
    int first = draft->n;
    int64_t left = extent,
            left_before = extent; /* values of this digit and all after it; of the one before */
    for (int j = 0; j < n; j++) {
        bool is_last = j == n - 1 || digit[j].extent >= left;
        int64_t values = is_last ? left : digit[j].extent;
        qn_digit *before = draft->n > first ? &draft->digit[draft->n - 1] : NULL;
        if (before && (qn_wide)before->extent * before->stride == digit[j].stride) {
            before->extent = is_last ? left_before : before->extent * values;
        } else if (values > 1 || is_last) {
            if (draft->n == QN_MAX_DIGITS)
                return false;
            draft->digit[draft->n++] = (qn_digit){values, digit[j].stride};
            left_before = left;
        }
        if (is_last)
            break;
        left = left / digit[j].extent + (left % digit[j].extent != 0);
    }
    draft->first[d + 1] = draft->n;
    return true;
}

qn_status qn__draft_finish(qn_digits *draft, const char *who, qn_layout *out, qn_error *err)
{
    out->digits = NULL;
    if (draft->n == out->rank && !draft->tables) {
        for (int d = 0; d < out->rank; d++)
            out->dim[d].stride = draft->digit[d].stride;
        return QN_OK;
    }
    for (int d = 0; d < out->rank; d++)
        out->dim[d].stride = 0;
    out->digits = make_digits(draft, out->rank);
    if (!out->digits)
        return qn__fail(err, QN_ERR_MEMORY, "%s: rank %d: out of memory for the digit table", who,
                        out->rank);
    return QN_OK;
}

/* ---------------------------------------------------------------- copy and release */

void qn__layout_set(qn_layout *out, const qn_layout *l)
{
    out->rank = l->rank;
    out->projected = l->projected;
    out->origin = l->origin;
    out->digits = l->digits;
    for (int d = 0; d < l->rank; d++)
        out->dim[d] = l->dim[d];
}

qn_layout qn_layout_copy(const qn_layout *l)
{
    qn_layout copy = {0};
    if (qn__layout_has_rank(l)) {
        qn__layout_set(&copy, l);
        qn__digits_retain(copy.digits);
    }
    return copy;
}

void qn_layout_release(qn_layout *l)
{
    if (!l)
        return;
    qn__digits_release(l->digits);
    *l = (qn_layout){0};
}

/* ---------------------------------------------------------------- constructors */

qn_status qn__check_extents(const char *who, int rank, const int64_t *extents, const qn_layout *out,
                            qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    if (rank < 0 || rank > QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: rank %d not in [0,%d]", who, rank, QN_MAX_RANK);
    if (!extents && rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: extents are NULL", who);
    for (int d = 0; d < rank; d++)
        if (extents[d] < 0)
            return qn__fail(err, QN_ERR_EXTENT, "%s: dimension %d: extent %lld is negative", who, d,
                            (long long)extents[d]);
    return QN_OK;
}

static qn_status fail_product(const char *who, int d, int64_t extent, qn_error *err)
{
    return qn__fail(err, QN_ERR_OVERFLOW,
                    "%s: dimension %d: extent %lld: product of the extents does not fit in 64 bits",
                    who, d, (long long)extent);
}

qn_status qn__make_dense(const char *who, int rank, const int64_t *extents, const int *order,
                         qn_layout *out, qn_error *err)
{
    int64_t strides[QN_MAX_RANK];
    int64_t stride = 1;
    for (int i = 0; i < rank; i++) {
        int d = order ? order[i] : rank - 1 - i;
        strides[d] = stride;
        if (__builtin_mul_overflow(stride, extents[d], &stride))
            return fail_product(who, d, extents[d], err);
    }
    out->rank = rank;
    out->projected = 0;
    out->origin = 0;
    out->digits = NULL;
    for (int d = 0; d < rank; d++)
        out->dim[d] = (qn_dim){0, extents[d], strides[d]};
    return QN_OK;
}

qn_status qn_layout_right(int rank, const int64_t *extents, qn_layout *out, qn_error *err)
{
    qn_status status = qn__check_extents("qn_layout_right", rank, extents, out, err);
    return status ? status : qn__make_dense("qn_layout_right", rank, extents, NULL, out, err);
}

qn_status qn_layout_left(int rank, const int64_t *extents, qn_layout *out, qn_error *err)
{
    static const int order[QN_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    qn_status status = qn__check_extents("qn_layout_left", rank, extents, out, err);
    return status ? status : qn__make_dense("qn_layout_left", rank, extents, order, out, err);
}

qn_status qn_layout_strided(int rank, const int64_t *extents, const int64_t *strides,
                            qn_layout *out, qn_error *err)
{
    qn_status status = qn__check_extents("qn_layout_strided", rank, extents, out, err);
    if (status)
        return status;
    if (!strides && rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_layout_strided: strides are NULL");
    qn_layout made;
    made.rank = rank;
    made.projected = 0;
    made.origin = 0;
    made.digits = NULL;
    for (int d = 0; d < rank; d++)
        made.dim[d] = (qn_dim){0, extents[d], strides[d]};
    status = qn__layout_check(&made, "qn_layout_strided", err);
    if (!status)
        qn__layout_set(out, &made);
    return status;
}

qn_status qn__check_order(const char *who, const char *what, int rank, const int *order,
                          qn_error *err)
{
    if (!order && rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, what);
    uint32_t seen = 0;
    for (int i = 0; i < rank; i++) {
        if (order[i] < 0 || order[i] >= rank || seen >> order[i] & 1u)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s[%d] = %d: not a permutation of 0..%d",
                            who, what, i, order[i], rank - 1);
        seen |= 1u << order[i];
    }
    return QN_OK;
}

qn_status qn_layout_ordered(int rank, const int64_t *extents, const int *order, qn_layout *out,
                            qn_error *err)
{
    qn_status status = qn__check_extents("qn_layout_ordered", rank, extents, out, err);
    if (!status)
        status = qn__check_order("qn_layout_ordered", "order", rank, order, err);
    return status ? status : qn__make_dense("qn_layout_ordered", rank, extents, order, out, err);
}

/** Multiplies *stride by the tile sizes or tile counts in the given order, noting each stride
 * passed. */
static qn_status add_strides(const int64_t *count, int rank, const int *order, int64_t *strides,
                             int64_t *stride, qn_error *err)
{
    for (int i = 0; i < rank; i++) {
        int d = order ? order[i] : rank - 1 - i;
        strides[d] = *stride;
        if (__builtin_mul_overflow(*stride, count[d], stride))
            return fail_product("qn_layout_tiled", d, count[d], err);
    }
    return QN_OK;
}

qn_status qn_layout_tiled(int rank, const int64_t *extents, const int64_t *tile, const int *inner,
                          const int *outer, qn_layout *out, qn_error *err)
{
    const char *who = "qn_layout_tiled";
    qn_status status = qn__check_extents(who, rank, extents, out, err);
    if (!status && inner)
        status = qn__check_order(who, "inner", rank, inner, err);
    if (!status && outer)
        status = qn__check_order(who, "outer", rank, outer, err);
    if (status)
        return status;
    if (!tile && rank > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: tile is NULL", who);
    int64_t tiles[QN_MAX_RANK], inner_stride[QN_MAX_RANK], outer_stride[QN_MAX_RANK], stride = 1;
    for (int d = 0; d < rank; d++) {
        if (tile[d] < 1)
            return qn__fail(err, QN_ERR_EXTENT, "%s: dimension %d: tile %lld is not positive", who,
                            d, (long long)tile[d]);
        tiles[d] = extents[d] / tile[d] + (extents[d] % tile[d] != 0);
    }
    status = add_strides(tile, rank, inner, inner_stride, &stride, err);
    if (!status)
        status = add_strides(tiles, rank, outer, outer_stride, &stride, err);
    if (status)
        return status;
    qn_digits draft = {0};
    qn_layout made;
    made.rank = rank;
    made.projected = 0;
    made.origin = 0;
    for (int d = 0; d < rank; d++) {
        qn_digit digit[2] = {{tile[d], inner_stride[d]}, {tiles[d], outer_stride[d]}};
        made.dim[d] = (qn_dim){0, extents[d], 0};
        qn__draft_add(&draft, d, extents[d], 2, digit); /* at most 2 x QN_MAX_RANK digits */
    }
    status = qn__draft_finish(&draft, who, &made, err);
    if (!status)
        qn__layout_set(out, &made);
    return status;
}
