/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.c: the view of a field of records, or of a part of complex numbers. The layout stays as it
 * is and counts records as its unit; where strides in fields say the same, they are written so,
 * since more can be done with such a view.
 */
#include "runtime/buffer.h"

/** Dtype and offset of a field. */
static qn_status find_field(const char *who, const qn_view *v, int field, int32_t *dtype,
                            int64_t *offset, qn_error *err)
{
    const char *label = qn__label(v->label);
    bool is_record = v->dtype == QN_RECORD;
    int n = is_record ? v->record->n_fields : qn__n_parts(v->dtype, NULL);
    if (!is_record && n == 1)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": %s has no fields", who, label,
                        qn_dtype_name(v->dtype));
    if (field < 0 || field >= n)
        return qn__fail(err, QN_ERR_NOT_FOUND, "%s: view \"%s\": %d fields, none has number %d",
                        who, label, n, field);
    *dtype = is_record ? v->record->field[field].dtype : qn__part_dtype(v->dtype, NULL, field);
    *offset = is_record ? v->record->field[field].offset : qn__part_offset(v->dtype, NULL, field);
    return QN_OK;
}

/** Multiplies the strides of a layout of one digit a dimension; false if one does not fit. */
static bool scale(qn_layout *l, int64_t by)
{
    for (int d = 0; d < l->rank; d++)
        if (__builtin_mul_overflow(l->dim[d].stride, by, &l->dim[d].stride))
            return false;
    return true;
}

/** Chooses what the strides count: elements, or else the largest unit that addresses are multiples
 * of. */
static qn_status choose_unit(const char *who, const qn_view *v, qn_view *made, qn_error *err)
{
    int64_t step = qn__unit_bytes(v), bytes = qn_dtype_bytes(made->dtype),
            align = qn__dtype_align(made->dtype, NULL);
    int64_t low =
        (int64_t)((uintptr_t)made->data | (uintptr_t)align); /* its lowest bit: a multiple of it */
    bool is_aligned = (low & -low) == align, is_plain = !v->layout.digits;
    int64_t unit = step;
    if (is_plain && is_aligned && step % bytes == 0)
        unit = bytes;
    while (!is_aligned && (unit & -unit) > (low & -low))
        unit /= 2;
    if (unit != step && (!is_plain || !scale(&made->layout, step / unit)))
        return qn__fail(err, is_plain ? QN_ERR_OVERFLOW : QN_ERR_UNSUPPORTED, "%s: view \"%s\": %s",
                        who, qn__label(v->label),
                        is_plain ? "strides of the field do not fit"
                                 : "packed records in several digits: copy the view");
    made->unit = unit == bytes ? 0 : (uint32_t)unit;
    return QN_OK;
}

qn_status qn_view_field(const qn_view *v, int field, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_field";
    int64_t offset = 0;
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    qn_status status = qn__view_check(v, who, err);
    qn_view made = *v; /* a borrow */
    if (status == QN_OK)
        status = find_field(who, v, field, &made.dtype, &offset, err);
    if (status)
        return status;
    made.record = NULL;
    made.traits &= ~(uint32_t)QN_ALIGNED;
    if (made.data)
        made.data = (char *)made.data + offset;
    status = choose_unit(who, v, &made, err);
    if (status == QN_OK)
        status = qn__view_check(&made, who, err);
    if (status)
        return status;
    qn_view kept = qn_view_copy(&made), replaced = {0};
    if (out == v)
        replaced = *out;
    *out = kept;
    qn_view_release(&replaced);
    return QN_OK;
}
