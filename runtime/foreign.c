/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.c: arrays of other systems as views, and back. Everything a foreign description claims is
 * checked here: extents, products and offsets (in 128 bits, by the layout's own check), null data
 * and the alignment of the real address.
 */
#include "runtime/foreign.h"
#include "quern/bytes.h"

#include <string.h>

/* ---------------------------------------------------------------- import */

/** Fails with the message of an inner call, behind our own entry point and label. */
static qn_status fail_inner(const qn_foreign *f, qn_status status, const qn_error *inner,
                            qn_error *err)
{
    const char *message = strstr(inner->message, ": ");
    return qn__fail(err, status, "%s: view \"%s\"%s", f->who, qn__label(f->label),
                    message ? message : "");
}

static qn_status make_layout(const qn_foreign *f, qn_layout *out, qn_error *err)
{
    if (f->rank < 0 || f->rank > QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%s\": rank %d is not in [0,%d]", f->who,
                        qn__label(f->label), (int)f->rank, QN_MAX_RANK);
    if (f->rank > 0 && !f->extents)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": extents are NULL for rank %d",
                        f->who, qn__label(f->label), (int)f->rank);
    qn_error inner = {0};
    qn_status status = f->strides
                           ? qn_layout_strided(f->rank, f->extents, f->strides, out, &inner)
                           : qn_layout_right(f->rank, f->extents, out, &inner);
    if (!status && f->lower)
        status = qn_layout_offset(out, f->lower, out, &inner);
    return status ? fail_inner(f, status, &inner, err) : QN_OK;
}

/** Address of the first element; an empty array keeps whatever it has. */
static qn_status find_first(const qn_foreign *f, bool is_empty, void **out, qn_error *err)
{
    uintptr_t first;
    *out = f->data;
    if (is_empty)
        return QN_OK;
    if (!f->data)
        return qn__fail(err, QN_ERR_NULL_DATA, "%s: view \"%s\": data is NULL", f->who,
                        qn__label(f->label));
    if (f->byte_offset > INT64_MAX ||
        __builtin_add_overflow((uintptr_t)f->data, f->byte_offset, &first))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: view \"%s\": byte offset %llu leaves the address space", f->who,
                        qn__label(f->label), (unsigned long long)f->byte_offset);
    *out = (void *)first;
    return QN_OK;
}

qn_status qn__import(const qn_foreign *f, qn_view *out, qn_error *err)
{
    qn_layout l = {0};
    void *first;
    qn_status status = make_layout(f, &l, err);
    if (!status)
        status = find_first(f, qn_layout_size(&l) == 0, &first, err);
    if (status)
        return status;
    qn_view made = {0};
    status = qn__view_wrap(f->who, f->label, first, f->dtype, NULL, f->unit, &l, f->traits, &made,
                           err);
    if (status)
        return status;
    made.space = f->space;
    made.device = f->device;
    *out = made;
    return QN_OK;
}

/** Strides in elements from strides in bytes, or in the largest unit that divides them and the
 * element; returns it, 0 for elements. */
static uint32_t divide_strides(const qn_foreign *f, const int64_t *stride_bytes, int64_t *out)
{
    int64_t unit = qn_dtype_bytes(f->dtype), element = unit;
    for (int d = 0; d < f->rank; d++)
        while (f->extents[d] > 1 && stride_bytes[d] % unit)
            unit /= 2; /* elements are powers of two */
    for (int d = 0; d < f->rank; d++)
        out[d] = stride_bytes[d] / unit;
    return unit == element ? 0 : (uint32_t)unit;
}

qn_status qn_view_from_bytes(const char *label, void *data, int dtype, int rank,
                             const int64_t *extents, const int64_t *stride_bytes,
                             const int64_t *lower, uint32_t traits, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_from_bytes";
    int64_t strides[QN_MAX_RANK];
    qn_foreign f = {.who = who,
                    .label = label,
                    .data = data,
                    .dtype = dtype,
                    .space = QN_SPACE_HOST,
                    .rank = rank,
                    .traits = traits,
                    .extents = extents,
                    .lower = lower};
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": out is NULL", who,
                        qn__label(label));
    if (qn_dtype_bytes(dtype) == 0)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": %s", who, qn__label(label),
                        qn__no_dtype(dtype, (char[NO_DTYPE_BYTES]){0}));
    if (stride_bytes && extents && rank > 0 && rank <= QN_MAX_RANK) {
        f.unit = divide_strides(&f, stride_bytes, strides);
        f.strides = strides;
    }
    return qn__import(&f, out, err);
}

/* ---------------------------------------------------------------- export */

qn_status qn__export_strides(const qn_view *v, const char *who, int64_t *strides, qn_error *err)
{
    if (!v)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view is NULL", who);
    qn_status status = qn__view_check(v, who, err);
    if (status)
        return status;
    if (v->dtype == QN_RECORD)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": records: take a field", who,
                        qn__label(v->label));
    for (int d = 0; d < v->layout.rank; d++) {
        qn_digit digit[QN_MAX_DIGITS];
        int n = qn_layout_digits(&v->layout, d, digit);
        if (v->layout.projected >> d & 1u)
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "%s: view \"%s\": dimension %d is projected: it takes any index, "
                            "which no stride says",
                            who, qn__label(v->label), d);
        if (qn__layout_table(&v->layout, d))
            return qn__fail(
                err, QN_ERR_UNSUPPORTED,
                "%s: view \"%s\": dimension %d has a list, not one stride: copy the view", who,
                qn__label(v->label), d);
        if (n != 1)
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "%s: view \"%s\": dimension %d has %d digits, not one stride: split "
                            "it or copy the view",
                            who, qn__label(v->label), d, n);
        if (__builtin_mul_overflow(digit[0].stride, qn__unit_bytes(v), &strides[d]))
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: view \"%s\": dimension %d: stride in bytes does not fit in 64 "
                            "bits",
                            who, qn__label(v->label), d);
    }
    return QN_OK;
}

qn_status qn_view_to_bytes(const qn_view *v, int64_t *extents, int64_t *stride_bytes,
                           int64_t *lower, qn_error *err)
{
    const char *who = "qn_view_to_bytes";
    int64_t strides[QN_MAX_RANK];
    qn_status status = qn__export_strides(v, who, strides, err);
    if (status)
        return status;
    for (int d = 0; d < v->layout.rank; d++) {
        if (extents)
            extents[d] = v->layout.dim[d].extent;
        if (stride_bytes)
            stride_bytes[d] = strides[d];
        if (lower)
            lower[d] = v->layout.dim[d].lower;
    }
    return QN_OK;
}
