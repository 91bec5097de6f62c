/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_query.c: what can be asked of a view: sizes, extents, strides, equality. Queries that take a
 * dimension refuse those beyond the rank.
 */
#include "ir/layout/layout.h"

bool qn_view_is_allocated(const qn_view *v)
{
    return v && v->data;
}

int64_t qn_view_size(const qn_view *v)
{
    return qn_view_is_allocated(v) ? qn_layout_size(&v->layout) : 0;
}

int64_t qn_view_span(const qn_view *v)
{
    return qn_view_is_allocated(v) ? qn_layout_span(&v->layout) : 0;
}

qn_status qn_view_required_bytes(const qn_view *v, int64_t *out, qn_error *err)
{
    const char *who = "qn_view_required_bytes";
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    int64_t span = qn_view_span(v), bytes = 0;
    if (span < 0 || (span > 0 && (__builtin_mul_overflow(span - 1, qn__unit_bytes(v), &bytes) ||
                                  __builtin_add_overflow(bytes, qn__element_bytes(v), &bytes))))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: view \"%s\": bytes of %lld elements of %s do not fit in 64 bits", who,
                        qn__label(v->label), (long long)qn_layout_size(&v->layout),
                        qn_dtype_name(v->dtype));
    *out = bytes;
    return QN_OK;
}

/* ---------------------------------------------------------------- dimensions */

/** What every query of dimensions checks. */
static qn_status check_view(const char *who, const qn_view *v, bool needs_out, const void *out,
                            qn_error *err)
{
    if (!v)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view is NULL", who);
    if (!qn__layout_has_rank(&v->layout))
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%s\": rank %d not in [0,%d]", who,
                        qn__label(v->label), v->layout.rank, QN_MAX_RANK);
    if (needs_out && !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": out is NULL", who,
                        qn__label(v->label));
    return QN_OK;
}

static qn_status check_one(const char *who, const qn_view *v, int d, const void *out, qn_error *err)
{
    qn_status status = check_view(who, v, true, out, err);
    if (status == QN_OK && (d < 0 || d >= v->layout.rank))
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%s\": dimension %d of rank %d", who,
                        qn__label(v->label), d, v->layout.rank);
    return status;
}

qn_status qn_view_extent(const qn_view *v, int d, int64_t *out, qn_error *err)
{
    qn_status status = check_one("qn_view_extent", v, d, out, err);
    if (status == QN_OK)
        *out = v->layout.dim[d].extent;
    return status;
}

qn_status qn_view_lower(const qn_view *v, int d, int64_t *out, qn_error *err)
{
    qn_status status = check_one("qn_view_lower", v, d, out, err);
    if (status == QN_OK)
        *out = v->layout.dim[d].lower;
    return status;
}

static qn_status find_stride(const char *who, const qn_view *v, int d, int64_t *out, qn_error *err)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(&v->layout, d, &one, &n);
    if (qn__layout_table(&v->layout, d))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%s\": dimension %d has a list, not one stride", who,
                        qn__label(v->label), d);
    if (n != 1)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%s\": dimension %d has %d digits, not one stride", who,
                        qn__label(v->label), d, n);
    *out = digit->stride;
    return QN_OK;
}

qn_status qn_view_stride(const qn_view *v, int d, int64_t *out, qn_error *err)
{
    qn_status status = check_one("qn_view_stride", v, d, out, err);
    return status ? status : find_stride("qn_view_stride", v, d, out, err);
}

qn_status qn_view_extents(const qn_view *v, int64_t *out, qn_error *err)
{
    qn_status status = check_view("qn_view_extents", v, v && v->layout.rank > 0, out, err);
    for (int d = 0; status == QN_OK && d < v->layout.rank; d++)
        out[d] = v->layout.dim[d].extent;
    return status;
}

qn_status qn_view_strides(const qn_view *v, int64_t *out, qn_error *err)
{
    int64_t stride[QN_MAX_RANK];
    qn_status status = check_view("qn_view_strides", v, v && v->layout.rank > 0, out, err);
    for (int d = 0; status == QN_OK && d < v->layout.rank; d++)
        status = find_stride("qn_view_strides", v, d, &stride[d], err);
    for (int d = 0; status == QN_OK && d < v->layout.rank; d++)
        out[d] = stride[d];
    return status;
}

qn_status qn_view_access(const qn_view *v, int n, const int64_t *index, void **out, qn_error *err)
{
    const char *who = "qn_view_access";
    if (!v || !out || (!index && n > 0))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !v     ? "view"
                        : !out ? "out"
                               : "index");
    if (n < v->layout.rank)
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%s\": %d indices for rank %d", who,
                        qn__label(v->label), n, v->layout.rank);
    for (int d = v->layout.rank < 0 ? 0 : v->layout.rank; d < n; d++)
        if (index[d] != 0)
            return qn__fail(err, QN_ERR_BOUNDS,
                            "%s: view \"%s\": index %lld of dimension %d beyond rank %d is not 0",
                            who, qn__label(v->label), (long long)index[d], d, v->layout.rank);
    return qn__fail_as(who, err, qn_view_at(v, v->layout.rank, index, out, err));
}

/* ---------------------------------------------------------------- equality */

/** Same extents and digits; lower bounds are not looked at. */
static bool has_same_digits(const qn_layout *a, const qn_layout *b)
{
    if (a->rank != b->rank || !qn__layout_has_rank(a) || a->projected != b->projected)
        return false;
    for (int d = 0; d < a->rank; d++) {
        qn_digit one_a, one_b;
        int n_a, n_b;
        const qn_digit *digit_a = qn__layout_dim_digits(a, d, &one_a, &n_a);
        const qn_digit *digit_b = qn__layout_dim_digits(b, d, &one_b, &n_b);
        if (a->dim[d].extent != b->dim[d].extent || n_a != n_b ||
            !qn__table_equal(qn__layout_table(a, d), qn__layout_table(b, d)))
            return false;
        for (int j = 0; j < n_a; j++)
            if (digit_a[j].extent != digit_b[j].extent || digit_a[j].stride != digit_b[j].stride)
                return false;
    }
    return true;
}

bool qn_view_equal(const qn_view *a, const qn_view *b)
{
    return a && b && a->data == b->data && a->dtype == b->dtype && a->space == b->space &&
           qn_record_equal(a->record, b->record) && qn__unit_bytes(a) == qn__unit_bytes(b) &&
           has_same_digits(&a->layout, &b->layout);
}
