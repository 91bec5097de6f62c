/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * fortran.h: Fortran 2018 array descriptors (`CFI_cdesc_t`) as views, and views as descriptors.
 *
 * The layout of a descriptor differs from one Fortran compiler to the next. So these functions are
 * compiled into your program, with the `ISO_Fortran_binding.h` of your Fortran compiler, and the
 * library never sees a descriptor. Dimension 0 is the first, fastest dimension of Fortran, and
 * dimension 0 of the view; nothing is reordered.
 */
#ifndef QUERN_FORTRAN_H
#define QUERN_FORTRAN_H

#include "quern/bytes.h"

#include <ISO_Fortran_binding.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Sets *err, if not NULL, and returns the status. */
static inline qn_status qn_cfi_fail(qn_error *err, qn_status status, const char *format, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, format);
        err->status = (int32_t)status;
        err->line = 0;
        vsnprintf(err->message, sizeof err->message, format, ap);
        va_end(ap);
    }
    return status;
}

/** Name of the dtype of elements of a descriptor's type and size; NULL if there is none. */
static inline const char *qn_cfi_dtype_name(CFI_type_t type, size_t elem_len)
{
    static const CFI_type_t integers[] = {
        CFI_type_signed_char, CFI_type_short,   CFI_type_int,     CFI_type_long,
        CFI_type_long_long,   CFI_type_size_t,  CFI_type_int8_t,  CFI_type_int16_t,
        CFI_type_int32_t,     CFI_type_int64_t, CFI_type_intmax_t, CFI_type_intptr_t,
        CFI_type_ptrdiff_t,
    };
    if (type < 0) /* a type that this Fortran compiler lacks */
        return NULL;
    if (type == CFI_type_float || type == CFI_type_double)
        return elem_len == 4 ? "f32" : elem_len == 8 ? "f64" : NULL;
    if (type == CFI_type_float_Complex || type == CFI_type_double_Complex)
        return elem_len == 8 ? "c64" : elem_len == 16 ? "c128" : NULL;
    if (type == CFI_type_Bool)
        return elem_len == 1 ? "bool" : NULL;
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (type == integers[i])
            return elem_len == 1   ? "i8"
                   : elem_len == 2 ? "i16"
                   : elem_len == 4 ? "i32"
                   : elem_len == 8 ? "i64"
                                   : NULL;
    return NULL;
}

/** The descriptor type of a dtype; false for unsigned and other types that Fortran lacks. */
static inline bool qn_cfi_type(int dtype, CFI_type_t *out)
{
    static const struct {
        const char *dtype;
        CFI_type_t type;
    } row[] = {
        {"i8", CFI_type_int8_t},          {"i16", CFI_type_int16_t},
        {"i32", CFI_type_int32_t},        {"i64", CFI_type_int64_t},
        {"f32", CFI_type_float},          {"f64", CFI_type_double},
        {"c64", CFI_type_float_Complex},  {"c128", CFI_type_double_Complex},
        {"bool", CFI_type_Bool},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (strcmp(row[i].dtype, qn_dtype_name(dtype)) == 0 && row[i].type >= 0) {
            *out = row[i].type;
            return true;
        }
    }
    return false;
}

/**
 * Borrows the array behind a descriptor: any section, also with negative steps, and the parts of
 * complex arrays. Lower bounds are those of the descriptor: kept for allocatable and pointer
 * dummies, 0 for assumed-shape ones. The label is borrowed; *out is unmanaged. `last_extent` is the
 * last extent of an assumed-size array, whose descriptor does not have it; -1 where there is none.
 * `traits` are given to the view; use QN_READ_ONLY for intent(in). Errors: an absent array, one
 * that is not allocated or associated (QN_ERR_NULL_DATA), a descriptor of another compiler
 * (QN_ERR_VERSION), types that Quern lacks, an assumed size that is not given (QN_ERR_EXTENT),
 * rank, overflow, misaligned data. Strides that are no multiple of the element count a smaller
 * unit.
 */
static inline qn_status qn_view_from_cfi(const char *label, const CFI_cdesc_t *a,
                                         int64_t last_extent, uint32_t traits, qn_view *out,
                                         qn_error *err)
{
    const char *who = "qn_view_from_cfi", *name = label ? label : "(no label)";
    if (!a || !out)
        return qn_cfi_fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s", who, name,
                           a ? "out is NULL" : "the array is absent");
    if (a->version != CFI_VERSION)
        return qn_cfi_fail(err, QN_ERR_VERSION,
                           "%s: view \"%s\": descriptor version %d is not the %d of this compiler",
                           who, name, (int)a->version, (int)CFI_VERSION);
    if (a->rank < 0 || a->rank > QN_MAX_RANK || a->rank > CFI_MAX_RANK)
        return qn_cfi_fail(err, QN_ERR_RANK, "%s: view \"%s\": rank %d", who, name, (int)a->rank);
    const char *dtype_name = qn_cfi_dtype_name(a->type, a->elem_len);
    int dtype = dtype_name ? (int)qn_dtype_of_name(dtype_name) : QN_VOID;
    if (dtype == QN_VOID)
        return qn_cfi_fail(err, QN_ERR_DTYPE,
                           "%s: view \"%s\": descriptor type %d with elements of %llu bytes (%s) "
                           "is not supported",
                           who, name, (int)a->type, (unsigned long long)a->elem_len,
                           dtype_name ? dtype_name : "no dtype");
    if (!a->base_addr && a->attribute != CFI_attribute_other)
        return qn_cfi_fail(err, QN_ERR_NULL_DATA,
                           "%s: view \"%s\": the array is not allocated or associated", who, name);
    int64_t extents[QN_MAX_RANK], strides[QN_MAX_RANK], lower[QN_MAX_RANK];
    for (int d = 0; d < a->rank; d++) {
        lower[d] = (int64_t)a->dim[d].lower_bound;
        extents[d] = (int64_t)a->dim[d].extent;
        strides[d] = (int64_t)a->dim[d].sm;
        if (extents[d] == -1 && d == a->rank - 1)
            extents[d] = last_extent;
        if (extents[d] < 0)
            return qn_cfi_fail(err, QN_ERR_EXTENT,
                               "%s: view \"%s\": dimension %d: extent %lld: an assumed size must "
                               "be given",
                               who, name, d, (long long)extents[d]);
    }
    qn_error inner;
    memset(&inner, 0, sizeof inner);
    qn_status status = qn_view_from_bytes(label, a->base_addr, dtype, a->rank, extents, strides,
                                          lower, traits, out, &inner);
    const char *message = strchr(inner.message, ':');
    return status ? qn_cfi_fail(err, status, "%s%s", who, message ? message : "") : QN_OK;
}

/**
 * Describes a view for Fortran, in a descriptor of the caller's with room for its rank,
 * `CFI_CDESC_T(rank)`. `attribute` is CFI_attribute_pointer, for pointer dummies and
 * CFI_setpointer, which keeps the lower bounds, or CFI_attribute_other, for assumed-shape dummies,
 * where they are 0. The view must outlive the descriptor's use. Links with the Fortran runtime
 * (CFI_establish). Errors: read-only views (a descriptor cannot say so), more than CFI_MAX_RANK
 * dimensions, dtypes that Fortran lacks, views that no strides describe.
 */
static inline qn_status qn_view_to_cfi(const qn_view *v, int attribute, CFI_cdesc_t *out,
                                       qn_error *err)
{
    const char *who = "qn_view_to_cfi";
    if (!v || !out)
        return qn_cfi_fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    const char *name = v->label ? v->label : "(no label)";
    CFI_type_t type = 0;
    if (attribute != CFI_attribute_pointer && attribute != CFI_attribute_other)
        return qn_cfi_fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": attribute %d", who, name,
                           attribute);
    if (v->traits & QN_READ_ONLY)
        return qn_cfi_fail(err, QN_ERR_READ_ONLY,
                           "%s: view \"%s\": a descriptor cannot be read-only", who, name);
    if (v->layout.rank > CFI_MAX_RANK)
        return qn_cfi_fail(err, QN_ERR_RANK, "%s: view \"%s\": rank %d is above the %d of Fortran",
                           who, name, (int)v->layout.rank, (int)CFI_MAX_RANK);
    if (!qn_cfi_type((int)v->dtype, &type))
        return qn_cfi_fail(err, QN_ERR_DTYPE, "%s: view \"%s\": Fortran has no type for %s", who,
                           name, qn_dtype_name((int)v->dtype));
    int64_t extents[QN_MAX_RANK], strides[QN_MAX_RANK], lower[QN_MAX_RANK];
    qn_error inner;
    memset(&inner, 0, sizeof inner);
    qn_status status = qn_view_to_bytes(v, extents, strides, lower, &inner);
    if (status) {
        const char *message = strchr(inner.message, ':');
        return qn_cfi_fail(err, status, "%s%s", who, message ? message : "");
    }
    CFI_index_t cfi_extents[QN_MAX_RANK];
    for (int d = 0; d < v->layout.rank; d++)
        cfi_extents[d] = (CFI_index_t)extents[d];
    int failed = CFI_establish(out, v->data, (CFI_attribute_t)attribute, type,
                               (size_t)qn_dtype_bytes((int)v->dtype), (CFI_rank_t)v->layout.rank,
                               cfi_extents);
    if (failed)
        return qn_cfi_fail(err, QN_ERR_INTERNAL, "%s: view \"%s\": CFI_establish gives %d", who,
                           name, failed);
    for (int d = 0; d < v->layout.rank; d++) {
        bool has_lower = attribute == CFI_attribute_pointer;
        out->dim[d].lower_bound = has_lower ? (CFI_index_t)lower[d] : 0;
        out->dim[d].extent = cfi_extents[d];
        out->dim[d].sm = (CFI_index_t)strides[d];
    }
    return QN_OK;
}

#endif
