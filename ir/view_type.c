/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_type.c: view types and whether a view fits one. The answer is exact: it looks at run-time
 * extents and strides, so that an assignment succeeds if and only if the question says so. The
 * assignment itself, which counts references, is the runtime's.
 */
#include "ir/layout/layout.h"

/* ---------------------------------------------------------------- types */

static qn_status check_fields(const char *who, const qn_view_type *type, qn_error *err)
{
    if (type->dtype == QN_RECORD ? !type->record : qn_dtype_bytes(type->dtype) == 0)
        return qn__fail(err, QN_ERR_DTYPE, "%s: type: %s", who,
                        qn__no_dtype(type->dtype, (char[NO_DTYPE_BYTES]){0}));
    if (type->dtype != QN_RECORD && type->record)
        return qn__fail(err, QN_ERR_DTYPE, "%s: type: dtype %s, and a record", who,
                        qn_dtype_name(type->dtype));
    if (type->rank < -1 || type->rank > QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: type: rank %d not in [-1,%d]", who, type->rank,
                        QN_MAX_RANK);
    if (type->family < QN_FAMILY_ANY || type->family > QN_FAMILY_STRIDED)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: type: there is no layout family %d", who,
                        type->family);
    if (type->traits & ~QN_ALL_TRAITS)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: type: unknown traits 0x%x", who,
                        (unsigned)type->traits);
    if (type->space < 0 || type->space >= QN_N_SPACES)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: type: there is no space %d", who,
                        (int)type->space);
    return QN_OK;
}

qn_status qn__view_type_check(const char *who, const qn_view_type *type, qn_error *err)
{
    if (!type)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: type is NULL", who);
    qn_status status = check_fields(who, type, err);
    for (int d = 0; status == QN_OK && d < type->rank; d++)
        if (type->extent[d] < -1)
            return qn__fail(err, QN_ERR_EXTENT, "%s: type: dimension %d: extent %lld is negative",
                            who, d, (long long)type->extent[d]);
    return status;
}

static qn_status init_type(const char *who, int dtype, const qn_record *record, int rank,
                           const int64_t *extents, int family, qn_view_type *out, qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    qn_view_type type = {.dtype = dtype, .record = record, .rank = rank, .family = family};
    for (int d = 0; d < QN_MAX_RANK; d++)
        type.extent[d] = extents && d < rank ? extents[d] : -1;
    qn_status status = qn__view_type_check(who, &type, err);
    if (status == QN_OK)
        *out = type;
    return status;
}

qn_status qn_view_type_init(int dtype, int rank, const int64_t *extents, int family,
                            qn_view_type *out, qn_error *err)
{
    return init_type("qn_view_type_init", dtype, NULL, rank, extents, family, out, err);
}

qn_status qn_view_type_init_record(const qn_record *record, int rank, const int64_t *extents,
                                   int family, qn_view_type *out, qn_error *err)
{
    return init_type("qn_view_type_init_record", QN_RECORD, record, rank, extents, family, out,
                     err);
}

int qn_view_type_rank_dynamic(const qn_view_type *type)
{
    int n = 0;
    if (!type || type->rank < 0 || type->rank > QN_MAX_RANK)
        return -1;
    for (int d = 0; d < type->rank; d++)
        n += type->extent[d] < 0;
    return n;
}

qn_status qn_view_type_static_extent(const qn_view_type *type, int d, int64_t *out, qn_error *err)
{
    const char *who = "qn_view_type_static_extent";
    if (!type || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, type ? "out" : "type");
    if (d < 0 || d >= type->rank || d >= QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: dimension %d of rank %d", who, d, type->rank);
    *out = type->extent[d] < 0 ? 0 : type->extent[d];
    return QN_OK;
}

qn_status qn__view_type_extents(const char *who, const char *label, const qn_view_type *type, int n,
                                const int64_t *extents, int64_t *out, int *rank, qn_error *err)
{
    int n_dynamic = qn_view_type_rank_dynamic(type);
    bool is_any = type->rank < 0, is_full = is_any || n == type->rank;
    if (is_any ? n < 0 || n > QN_MAX_RANK : !is_full && n != n_dynamic)
        return qn__fail(
            err, QN_ERR_RANK,
            "%s: view \"%s\": %d extents, expected %d (all dimensions) or %d (those not "
            "fixed)",
            who, label, n, is_any ? QN_MAX_RANK : type->rank, n_dynamic);
    if (!extents && n > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": extents is NULL", who, label);
    *rank = is_any ? n : type->rank;
    for (int d = 0, next = 0; d < *rank; d++) {
        int64_t fixed = is_any ? -1 : type->extent[d];
        out[d] = is_full || fixed < 0 ? extents[next++] : fixed;
        if (fixed >= 0 && out[d] != fixed)
            return qn__fail(err, QN_ERR_EXTENT,
                            "%s: view \"%s\": dimension %d: extent %lld, expected %lld, which the "
                            "type fixes",
                            who, label, d, (long long)out[d], (long long)fixed);
    }
    return QN_OK;
}

qn_status qn_view_type_layout(const qn_view_type *type, int n, const int64_t *extents,
                              qn_layout *out, qn_error *err)
{
    const char *who = "qn_view_type_layout";
    qn_status status = qn__view_type_check(who, type, err);
    if (status)
        return status;
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    if (type->family == QN_FAMILY_STRIDED)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: the type asks for strides: extents alone give no layout", who);
    int64_t all[QN_MAX_RANK];
    int rank;
    status = qn__view_type_extents(who, "(no label)", type, n, extents, all, &rank, err);
    if (status)
        return status;
    status = qn__type_is_left(type) ? qn_layout_left(rank, all, out, err)
                                    : qn_layout_right(rank, all, out, err);
    return qn__fail_as(who, err, status);
}

qn_status qn_view_default(const qn_view_type *type, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_default";
    qn_status status = qn__view_type_check(who, type, err);
    if (status)
        return status;
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    qn_view made = {.dtype = type->dtype,
                    .record = type->record,
                    .space = type->space,
                    .traits = qn__type_traits(type)};
    int64_t extents[QN_MAX_RANK];
    int rank = type->rank < 0 ? 0 : type->rank;
    for (int d = 0; d < rank; d++)
        extents[d] = type->extent[d] < 0 ? 0 : type->extent[d];
    status = qn__type_is_left(type) ? qn_layout_left(rank, extents, &made.layout, err)
                                    : qn_layout_right(rank, extents, &made.layout, err);
    if (status == QN_OK)
        *out = made;
    return qn__fail_as(who, err, status);
}

/* ---------------------------------------------------------------- layout families */

static qn_status fail_stride(const char *who, const qn_view *v, const char *family, int d,
                             bool is_least, qn_wide expected, qn_error *err)
{
    return qn__fail(err, QN_ERR_ARGUMENT,
                    "%s: view \"%s\": layout is not %s: dimension %d: expected stride %s%lld, "
                    "found %lld",
                    who, qn__label(v->label), family, d, is_least ? ">= " : "",
                    (long long)(expected > INT64_MAX ? INT64_MAX : expected),
                    (long long)v->layout.dim[d].stride);
}

/**
 * Left or Right: dimensions from the fastest to the slowest, `first` + k * `step`. The fastest has
 * stride 1; the next stride p is free but not below the fastest extent; each further one is p times
 * the extents between. Dimensions of extent 1 have any stride.
 */
static qn_status check_order(const char *who, const qn_view *v, const char *family, int first,
                             int step, qn_error *err)
{
    const qn_layout *l = &v->layout;
    qn_wide pitch = 0, product = 1;
    for (int k = 0; k < l->rank; k++) {
        int d = first + k * step;
        int64_t extent = l->dim[d].extent, stride = l->dim[d].stride;
        if (extent != 1 && k == 0 && stride != 1)
            return fail_stride(who, v, family, d, false, 1, err);
        if (extent != 1 && k > 0 && pitch == 0) {
            int64_t least = l->dim[first].extent;
            if (stride < least)
                return fail_stride(who, v, family, d, true, least, err);
            pitch = stride;
        } else if (extent != 1 && k > 0 && stride != pitch * product) {
            return fail_stride(who, v, family, d, false, pitch * product, err);
        }
        product = k > 0 ? product * extent : 1;
    }
    return QN_OK;
}

/** Whether every dimension has one stride. */
static qn_status check_strided(const char *who, const qn_view *v, const char *family, qn_error *err)
{
    for (int d = 0; d < v->layout.rank; d++) {
        qn_digit one;
        int n;
        qn__layout_dim_digits(&v->layout, d, &one, &n);
        bool has_table = qn__layout_table(&v->layout, d) != NULL;
        if (n != 1 || qn__is_projected(&v->layout, d) || has_table)
            return qn__fail(err, QN_ERR_ARGUMENT,
                            "%s: view \"%s\": layout is not %s: dimension %d: expected one stride, "
                            "found %s",
                            who, qn__label(v->label), family, d,
                            has_table ? "an index list"
                            : n != 1  ? "several digits"
                                      : "a projection");
    }
    return QN_OK;
}

/** Strides of a layout with a table in which every dimension has one digit, in its dims. */
static qn_view flatten(const qn_view *v)
{
    qn_view flat = *v;
    for (int d = 0; d < v->layout.rank; d++) {
        qn_digit one;
        int n;
        flat.layout.dim[d].stride = qn__layout_dim_digits(&v->layout, d, &one, &n)->stride;
    }
    return flat;
}

static qn_status check_family(const char *who, int family, const qn_view *v, qn_error *err)
{
    static const char *const names[] = {"any", "right", "left", "strided"};
    if (family == QN_FAMILY_ANY || qn_layout_size(&v->layout) == 0)
        return QN_OK;
    qn_status status = check_strided(who, v, names[family], err);
    if (!status && family != QN_FAMILY_STRIDED && v->unit && qn_layout_size(&v->layout) > 1)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": layout is not %s: strides count units of %u bytes", who,
                        qn__label(v->label), names[family], (unsigned)v->unit);
    if (status || family == QN_FAMILY_STRIDED)
        return status;
    qn_view flat = flatten(v);
    bool is_left = family == QN_FAMILY_LEFT;
    return check_order(who, &flat, names[family], is_left ? 0 : v->layout.rank - 1,
                       is_left ? 1 : -1, err);
}

/* ---------------------------------------------------------------- assignability */

static qn_status check_extents(const char *who, const qn_view_type *type, const qn_view *v,
                               qn_error *err)
{
    for (int d = 0; d < type->rank; d++)
        if (type->extent[d] >= 0 && type->extent[d] != v->layout.dim[d].extent)
            return qn__fail(err, QN_ERR_EXTENT,
                            "%s: view \"%s\": dimension %d: expected extent %lld, found %lld", who,
                            qn__label(v->label), d, (long long)type->extent[d],
                            (long long)v->layout.dim[d].extent);
    return QN_OK;
}

static qn_status check_kind(const char *who, const qn_view_type *type, const qn_view *v,
                            qn_error *err)
{
    if (type->rank >= 0 && type->rank != v->layout.rank)
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%s\": expected rank %d, found %d", who,
                        qn__label(v->label), type->rank, v->layout.rank);
    if (type->dtype != v->dtype)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": expected dtype %s, found %s", who,
                        qn__label(v->label), qn_dtype_name(type->dtype), qn_dtype_name(v->dtype));
    if (!qn_record_equal(type->record, v->record))
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": another record type", who,
                        qn__label(v->label));
    if (v->traits & QN_READ_ONLY && !(qn__type_traits(type) & QN_READ_ONLY))
        return qn__fail(err, QN_ERR_READ_ONLY,
                        "%s: view \"%s\": expected a writable view, found a read-only one", who,
                        qn__label(v->label));
    if (!qn_space_is_assignable(type->space, v->space))
        return qn__fail(err, QN_ERR_SPACE,
                        "%s: view \"%s\": expected space %s or one assignable to it, found %s", who,
                        qn__label(v->label), qn_space_name(type->space), qn_space_name(v->space));
    return QN_OK;
}

/** The check of the struct, which views without data pass, and views of spaces that this build
 * lacks so far as the space goes. */
static qn_status check_source(const char *who, const qn_view *v, qn_error *err)
{
    if (!v)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view is NULL", who);
    if (v->space < 0 || v->space >= QN_N_SPACES)
        return qn__fail(err, QN_ERR_SPACE, "%s: view \"%s\": there is no space %d", who,
                        qn__label(v->label), (int)v->space);
    qn_view seen = *v;
    qn_error inner = {0};
    seen.space = QN_SPACE_HOST;
    qn_status status = qn__view_check(&seen, who, &inner);
    if (status == QN_OK || (status == QN_ERR_NULL_DATA && !v->data))
        return QN_OK;
    return qn__fail(err, status, "%s", inner.message);
}

qn_status qn__assign_check(const char *who, const qn_view_type *type, const qn_view *v,
                           qn_error *err)
{
    qn_status status = qn__view_type_check(who, type, err);
    if (status == QN_OK)
        status = check_source(who, v, err);
    if (status == QN_OK)
        status = check_kind(who, type, v, err);
    if (status == QN_OK)
        status = check_extents(who, type, v, err);
    if (status == QN_OK)
        status = check_family(who, type->family, v, err);
    if (status == QN_OK && type->traits & QN_ALIGNED)
        status = qn__check_aligned(who, v, err);
    return status;
}

qn_status qn__check_aligned(const char *who, const qn_view *v, qn_error *err)
{
    enum { CACHE_LINE = 64 };
    int m = qn__layout_members(&v->layout);
    int64_t n = m < 0 ? 1 : v->layout.dim[m].extent, bytes = qn__unit_bytes(v), p = 0;
    while (p < n &&
           ((uintptr_t)v->data +
            (m < 0 ? 0 : (uintptr_t)(qn__table_value(v->layout.digits->table[m], p) * bytes))) %
                   CACHE_LINE ==
               0)
        p++;
    if (p == n)
        return QN_OK;
    return qn__fail(err, QN_ERR_ALIGNMENT, "%s: view \"%s\": expected alignment to %d, found %p",
                    who, qn__label(v->label), (int)CACHE_LINE, v->data);
}

bool qn_is_assignable(const qn_view_type *type, const qn_view *v, qn_error *err)
{
    return qn__assign_check("qn_is_assignable", type, v, err) == QN_OK;
}
