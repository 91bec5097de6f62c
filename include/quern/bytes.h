/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * bytes.h: arrays whose strides count bytes, as in Python's buffer protocol, `__array_interface__`,
 * Fortran and MPI. Quern's strides count elements; these two functions convert, and refuse what
 * does not divide.
 */
#ifndef QUERN_BYTES_H
#define QUERN_BYTES_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Borrows an array: `data` is the address of its first element, strides may have any sign, `lower`
 * (NULL: zeros) are the lower bounds, `stride_bytes` NULL is row-major. Strides that are no
 * multiple of the element give a view whose offsets count a smaller unit (see qn_view). The label
 * is borrowed; *out is unmanaged. Errors: null data of an array with elements, data that is not
 * aligned to the element or that unit, rank, dtype, negative extents, offsets that do not fit.
 */
QN_API qn_status qn_view_from_bytes(const char *label, void *data, int dtype, int rank,
                                    const int64_t *extents, const int64_t *stride_bytes,
                                    const int64_t *lower, uint32_t traits, qn_view *out,
                                    qn_error *err);
/**
 * Extents, strides in bytes and lower bounds of a view, rank entries each; any of them may be NULL.
 * Errors: views that no strides describe, with the dimension (QN_ERR_UNSUPPORTED); strides in bytes
 * that do not fit.
 */
QN_API qn_status qn_view_to_bytes(const qn_view *v, int64_t *extents, int64_t *stride_bytes,
                                  int64_t *lower, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
