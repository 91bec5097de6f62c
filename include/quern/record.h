/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h: elements that are not one number, the part of quern.h about complex numbers and
 * records. In a kernel such a value is the tuple of its parts: it is loaded and stored whole or by
 * part, and parts are scalars.
 *
 * A complex number is its real part, then its imaginary part. A record is a struct of scalars, with
 * any offsets.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_RECORD_H)
#define QUERN_RECORD_H

/** Largest numbers in a record. */
#define QN_MAX_FIELDS 64
#define QN_MAX_RECORD_BYTES 65536

/** Flags of a record. */
enum { QN_PACKED = 1 << 0 /**< no padding, and no alignment */ };
/** A field follows the one before it: at the next multiple of its alignment, or at once if packed.
 */
#define QN_NEXT (-1)

/** A field of a record. */
typedef struct qn_field {
    const char *name; /**< may be NULL; copied into a record, borrowed from it when read */
    int32_t dtype;    /**< any but QN_RECORD */
    int32_t reserved; /**< 0 */
    int64_t offset;   /**< bytes from the start of the record, or QN_NEXT */
} qn_field;

/** A record type: immutable and counted. Opaque. */
typedef struct qn_record qn_record;

/**
 * Makes a record type with one reference. `bytes` is the distance of records in an array, 0 for the
 * smallest. Alignment is that of the C struct with these fields, or 1 if packed. Errors: no fields
 * or too many, dtypes, equal names, fields that overlap or lie outside (QN_ERR_EXTENT), or are not
 * aligned in a record that is not packed (QN_ERR_ALIGNMENT).
 */
QN_API qn_status qn_record_new(int n, const qn_field *fields, int64_t bytes, uint32_t flags,
                               qn_record **out, qn_error *err);
/** Adds a reference and returns the record type. */
QN_API qn_record *qn_record_retain(const qn_record *r);
/** Drops a reference. NULL is ignored. */
QN_API void qn_record_release(qn_record *r);
/** Bytes of a record and its alignment; 0 for NULL. */
QN_API int64_t qn_record_bytes(const qn_record *r);
QN_API int64_t qn_record_alignment(const qn_record *r);
/** Number of fields; 0 for NULL. */
QN_API int qn_record_n_fields(const qn_record *r);
/** Field i, 0 <= i < qn_record_n_fields(r); its name lives as long as the record type. */
QN_API qn_status qn_record_field(const qn_record *r, int i, qn_field *out, qn_error *err);
/** The number of the field with this name, or -1. */
QN_API int qn_record_find(const qn_record *r, const char *name);
/** Whether two record types have the same bytes and the same fields: dtypes and offsets; names are
 * not compared. */
QN_API bool qn_record_equal(const qn_record *a, const qn_record *b);

#endif
