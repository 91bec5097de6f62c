/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c: record types, and the parts of elements: the scalars of which an element consists. A
 * number is its only part; a complex number has two; a record has those of its fields, in order.
 */
#include "ir/ir.h"

#include <string.h>

/* ---------------------------------------------------------------- parts */

int qn__part_dtype(int dtype, const qn_record *record, int part)
{
    if (dtype == QN_RECORD)
        return record->part[part].dtype;
    return qn__dtype_part(dtype);
}

int64_t qn__part_offset(int dtype, const qn_record *record, int part)
{
    if (dtype == QN_RECORD)
        return record->part[part].offset;
    return part ? qn_dtype_bytes(dtype) / 2 : 0;
}

int qn__n_parts(int dtype, const qn_record *record)
{
    if (dtype == QN_RECORD)
        return record->n_parts;
    return qn__dtype_class(dtype) == QN_CLASS_C ? 2 : 1;
}

int64_t qn__dtype_align(int dtype, const qn_record *record)
{
    if (dtype == QN_RECORD)
        return record->align;
    return qn_dtype_bytes(qn__part_dtype(dtype, NULL, 0));
}

/* ---------------------------------------------------------------- record types */

static const char *name_of(const qn_field *f)
{
    return f->name ? f->name : "(no name)";
}

/** Checks field i of `fields` but its offset. */
static qn_status check_field(const qn_field *fields, int i, qn_error *err)
{
    const char *who = "qn_record_new";
    const qn_field *f = &fields[i];
    if (!qn__dtype_class(f->dtype))
        return qn__fail(err, QN_ERR_DTYPE, "%s: field %d (%.60s): %s", who, i, name_of(f),
                        qn__no_dtype(f->dtype, (char[NO_DTYPE_BYTES]){0}));
    if (f->reserved)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: field %d (%.60s): reserved is %d, not 0", who, i,
                        name_of(f), (int)f->reserved);
    for (int j = 0; f->name && j < i; j++)
        if (fields[j].name && strcmp(fields[j].name, f->name) == 0)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: fields %d and %d are both named \"%.60s\"",
                            who, j, i, f->name);
    return QN_OK;
}

/** Places field i behind *end, or where it says, and moves *end behind it. */
static qn_status place_field(qn_record *r, const qn_field *f, int i, bool is_packed, int64_t *end,
                             qn_error *err)
{
    const char *who = "qn_record_new";
    int64_t bytes = qn_dtype_bytes(f->dtype),
            align = is_packed ? 1 : qn__dtype_align(f->dtype, NULL);
    int64_t offset = f->offset == QN_NEXT ? (*end + align - 1) / align * align : f->offset;
    if (offset < 0 || offset > QN_MAX_RECORD_BYTES - bytes)
        return qn__fail(err, QN_ERR_EXTENT, "%s: field %d (%.60s): offset %lld not in [0,%d]", who,
                        i, name_of(f), (long long)offset, (int)(QN_MAX_RECORD_BYTES - bytes));
    if (offset % align)
        return qn__fail(err, QN_ERR_ALIGNMENT,
                        "%s: field %d (%.60s): offset %lld is no multiple of %lld, and the record "
                        "is not packed",
                        who, i, name_of(f), (long long)offset, (long long)align);
    for (int j = 0; j < i; j++) {
        const qn_record_entry *other = &r->field[j];
        if (offset < other->offset + qn_dtype_bytes(other->dtype) && other->offset < offset + bytes)
            return qn__fail(err, QN_ERR_EXTENT, "%s: fields %d and %d (%.60s) overlap at byte %lld",
                            who, j, i, name_of(f),
                            (long long)(offset > other->offset ? offset : other->offset));
    }
    r->field[i] = (qn_record_entry){NULL, f->dtype, (int32_t)offset, r->n_parts};
    int n = qn__n_parts(f->dtype, NULL);
    for (int p = 0; p < n; p++)
        r->part[r->n_parts++] = (qn_part){qn__part_dtype(f->dtype, NULL, p),
                                          (int32_t)(offset + qn__part_offset(f->dtype, NULL, p))};
    r->align = align > r->align ? (int32_t)align : r->align;
    *end = offset + bytes;
    return QN_OK;
}

/** Fields, alignment and bytes. */
static qn_status fill_record(qn_record *r, int n, const qn_field *fields, int64_t bytes,
                             bool is_packed, qn_error *err)
{
    int64_t end = 0, least = 0;
    r->align = 1;
    for (int i = 0; i < n; i++) {
        qn_status status = check_field(fields, i, err);
        if (status == QN_OK)
            status = place_field(r, &fields[i], i, is_packed, &end, err);
        if (status)
            return status;
        least = end > least ? end : least;
    }
    r->n_fields = n;
    least = (least + r->align - 1) / r->align * r->align;
    r->bytes = bytes ? bytes : least;
    if (r->bytes < least || r->bytes > QN_MAX_RECORD_BYTES || r->bytes % r->align)
        return qn__fail(err, QN_ERR_EXTENT,
                        "qn_record_new: %lld bytes: expected a multiple of %d in [%lld,%d]",
                        (long long)bytes, (int)r->align, (long long)least, QN_MAX_RECORD_BYTES);
    return QN_OK;
}

static bool copy_names(qn_record *r, const qn_field *fields)
{
    for (int i = 0; i < r->n_fields; i++) {
        r->field[i].name = fields[i].name ? qn__strdup(fields[i].name) : NULL;
        if (fields[i].name && !r->field[i].name)
            return false;
    }
    return true;
}

qn_status qn_record_new(int n, const qn_field *fields, int64_t bytes, uint32_t flags,
                        qn_record **out, qn_error *err)
{
    const char *who = "qn_record_new";
    if (!fields || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, fields ? "out" : "fields");
    if (n < 1 || n > QN_MAX_FIELDS)
        return qn__fail(err, QN_ERR_LIMIT, "%s: %d fields: not in [1,%d]", who, n, QN_MAX_FIELDS);
    if (flags & ~(uint32_t)QN_PACKED)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: flags 0x%x: unknown bits", who, (unsigned)flags);
    qn_record *r = qn__zalloc(1, sizeof *r);
    if (!r)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d fields", who, n);
    atomic_init(&r->references, 1);
    qn_status status = fill_record(r, n, fields, bytes, flags & QN_PACKED, err);
    if (status == QN_OK && !copy_names(r, fields))
        status = qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d fields", who, n);
    if (status)
        qn_record_release(r);
    else
        *out = r;
    return status;
}

qn_record *qn_record_retain(const qn_record *r)
{
    qn_record *mine = (qn_record *)(uintptr_t)r; /* immutable but for its count */
    if (mine)
        atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void qn_record_release(qn_record *r)
{
    if (!r || atomic_fetch_sub_explicit(&r->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < QN_MAX_FIELDS; i++)
        qn__free(r->field[i].name);
    qn__free(r);
}

int64_t qn_record_bytes(const qn_record *r)
{
    return r ? r->bytes : 0;
}

int64_t qn_record_alignment(const qn_record *r)
{
    return r ? r->align : 0;
}

int qn_record_n_fields(const qn_record *r)
{
    return r ? r->n_fields : 0;
}

qn_status qn_record_field(const qn_record *r, int i, qn_field *out, qn_error *err)
{
    if (!r || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_record_field: %s is NULL", r ? "out" : "record");
    if (i < 0 || i >= r->n_fields)
        return qn__fail(err, QN_ERR_NOT_FOUND,
                        "qn_record_field: the record has %d fields, none has number %d",
                        r->n_fields, i);
    const qn_record_entry *f = &r->field[i];
    *out = (qn_field){.name = f->name, .dtype = f->dtype, .offset = f->offset};
    return QN_OK;
}

int qn_record_find(const qn_record *r, const char *name)
{
    for (int i = 0; r && name && i < r->n_fields; i++)
        if (r->field[i].name && strcmp(r->field[i].name, name) == 0)
            return i;
    return -1;
}

bool qn_record_equal(const qn_record *a, const qn_record *b)
{
    if (a == b || !a || !b)
        return a == b;
    bool is_equal = a->bytes == b->bytes && a->align == b->align && a->n_fields == b->n_fields;
    for (int i = 0; is_equal && i < a->n_fields; i++)
        is_equal =
            a->field[i].dtype == b->field[i].dtype && a->field[i].offset == b->field[i].offset;
    return is_equal;
}

/* ---------------------------------------------------------------- text */

void qn__record_print(const qn_record *r, qn_text *out)
{
    qn__text_add(out, "record %lld align %d {", (long long)r->bytes, (int)r->align);
    for (int i = 0; i < r->n_fields; i++)
        qn__text_add(out, "%s%s %d", i ? ", " : "", qn_dtype_name(r->field[i].dtype),
                     (int)r->field[i].offset);
    qn__text_add(out, "}");
}
