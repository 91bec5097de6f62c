/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c: views allocated by type and properties. Extents are checked against the type before
 * anything is allocated. Zeroed storage that is a mapping of its own is touched first, page by
 * page, by the threads that will use it.
 */
#include "runtime/create.h"

#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/cuda/memory.h"

enum { CACHE_LINE = 64, MAX_ALIGNMENT = 2 << 20 };

/* ---------------------------------------------------------------- properties */

static qn_status check_flags(const char *who, const qn_alloc_options *o, qn_error *err)
{
    if (o->alignment && (o->alignment < CACHE_LINE || o->alignment > MAX_ALIGNMENT ||
                         (o->alignment & (o->alignment - 1))))
        return qn__fail(
            err, QN_ERR_ARGUMENT, "%s: view \"%s\": alignment %lld is no power of two in [%d,%d]",
            who, qn__label(o->label), (long long)o->alignment, (int)CACHE_LINE, (int)MAX_ALIGNMENT);
    if (o->uninitialised < 0 || o->uninitialised > 1 || o->padding < 0 || o->padding > 1)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": uninitialised %d, padding %d: expected 0 or 1", who,
                        qn__label(o->label), o->uninitialised, o->padding);
    if (o->uninitialised && o->executor == QN_SERIAL)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": uninitialised, and initialised by executor serial", who,
                        qn__label(o->label));
    return QN_OK;
}

static qn_status check_space(const char *who, const char *label, int space, qn_error *err)
{
    if (qn_space_is_available(space))
        return QN_OK;
    bool is_known = space >= 0 && space < QN_N_SPACES;
    return qn__fail(err, is_known ? QN_ERR_NOT_AVAILABLE : QN_ERR_ARGUMENT,
                    "%s: view \"%s\": space %d (%s) is not available in this build", who,
                    qn__label(label), space, qn_space_name(space));
}

qn_status qn__properties(const char *who, const qn_context *c, const qn_alloc_options *o,
                         qn_alloc_options *out, qn_error *err)
{
    *out = (qn_alloc_options){.bytes = sizeof *out};
    qn_status status = o ? qn__struct_take(who, "options", o, out, sizeof *out, err) : QN_OK;
    if (status == QN_OK)
        status = check_flags(who, out, err);
    if (status == QN_OK)
        status = check_space(who, out->label, out->space, err);
    if (status == QN_OK && out->stream && out->space == QN_SPACE_HOST)
        status = qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": a stream, and space host", who,
                          qn__label(out->label));
    if (status == QN_OK)
        status = qn__executor(who, c, out->executor, &out->executor, err);
    return status;
}

/* ---------------------------------------------------------------- allocation */

qn_status qn__dense_layout(const char *who, const char *label, int64_t element_bytes, bool is_left,
                           bool is_padded, int rank, const int64_t *extents, qn_layout *out,
                           qn_error *err)
{
    qn_error inner = {0};
    qn_status status =
        is_left && is_padded ? qn_layout_left_padded(rank, extents, element_bytes, out, &inner)
        : is_left            ? qn_layout_left(rank, extents, out, &inner)
        : is_padded          ? qn_layout_right_padded(rank, extents, element_bytes, out, &inner)
                             : qn_layout_right(rank, extents, out, &inner);
    if (status)
        return qn__fail(err, status, "%s: view \"%s\": %s", who, qn__label(label), inner.message);
    return QN_OK;
}

qn_status qn__allocate(const char *who, qn_context *c, const char *label, int dtype,
                       const qn_record *record, const qn_layout *l, const qn_alloc_options *o,
                       qn_view *out, qn_error *err)
{
    qn_view made;
    if (o->space != QN_SPACE_HOST)
        return qn__cuda_allocate(who, c, label, dtype, record, l, o, out, err);
    qn_memory *m = c ? c->memory : NULL;
    bool is_by_threads = !o->uninitialised && o->executor == QN_THREADS;
    bool is_raw = o->uninitialised || (is_by_threads && qn__memory_is_foreign(m));
    qn_status status =
        qn__view_alloc(who, m, label, dtype, record, l, is_raw ? QN_UNINITIALISED : 0,
                       o->alignment ? o->alignment : CACHE_LINE, &made, err);
    if (status)
        return status;
    const unsigned char zero = 0;
    if (is_by_threads && (made.owner->mapped_bytes || made.owner->given_bytes))
        qn__fill_bytes(c, o->executor, made.owner->data, &zero, 1, (int64_t)made.owner->bytes);
    *out = made;
    return QN_OK;
}

/** What a type must be to be allocated. */
static qn_status check_type(const char *who, const qn_view_type *type, const char *label,
                            qn_error *err)
{
    qn_status status = qn__view_type_check(who, type, err);
    if (status)
        return status;
    if (qn__type_traits(type) & QN_READ_ONLY)
        return qn__fail(err, QN_ERR_READ_ONLY,
                        "%s: view \"%s\": the type is read-only: nothing could be stored", who,
                        qn__label(label));
    if (type->unmanaged)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": the type is unmanaged: storage needs an owner", who,
                        qn__label(label));
    return check_space(who, label, type->space, err);
}

/** Allocates, and makes sure that the result is of the type. */
static qn_status allocate_type(const char *who, qn_context *c, const qn_view_type *type,
                               const qn_layout *l, const qn_alloc_options *o, qn_view *out,
                               qn_error *err)
{
    qn_view made = {.label = o->label,
                    .dtype = type->dtype,
                    .record = type->record,
                    .space = o->space,
                    .layout = *l};
    made.layout.origin = 0;
    qn_status status = qn__assign_check(who, type, &made, err);
    if (status == QN_OK)
        status = qn__allocate(who, c, o->label, type->dtype, type->record, l, o, &made, err);
    if (status)
        return status;
    made.traits = qn__type_traits(type);
    if (made.traits & QN_ALIGNED)
        status = qn__check_aligned(who, &made, err);
    if (status)
        qn_view_release(&made);
    else
        *out = made;
    return status;
}

qn_status qn_view_create(qn_context *c, const qn_view_type *type, int n, const int64_t *extents,
                         const qn_alloc_options *o, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_create";
    qn_alloc_options properties;
    int64_t all[QN_MAX_RANK];
    int rank = 0;
    qn_layout l;
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    qn_status status = qn__properties(who, c, o, &properties, err);
    const char *label = properties.label;
    if (status == QN_OK)
        status = check_type(who, type, label, err);
    if (status == QN_OK && type->family == QN_FAMILY_STRIDED)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": the type asks for strides: give a layout", who,
                        qn__label(label));
    if (status == QN_OK)
        status = qn__view_type_extents(who, qn__label(label), type, n, extents, all, &rank, err);
    if (status == QN_OK)
        status = qn__dense_layout(who, label, qn__type_bytes(type), qn__type_is_left(type),
                                  properties.padding, rank, all, &l, err);
    return status ? status : allocate_type(who, c, type, &l, &properties, out, err);
}

qn_status qn_view_create_layout(qn_context *c, const qn_view_type *type, const qn_layout *l,
                                const qn_alloc_options *o, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_create_layout";
    qn_alloc_options properties;
    if (!l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, l ? "out" : "layout");
    qn_status status = qn__properties(who, c, o, &properties, err);
    if (status == QN_OK && properties.padding)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": padding is a property of extents, not of a layout", who,
                        qn__label(properties.label));
    if (status == QN_OK)
        status = check_type(who, type, properties.label, err);
    if (status == QN_OK)
        status = qn__layout_check(l, who, err);
    return status ? status : allocate_type(who, c, type, l, &properties, out, err);
}
