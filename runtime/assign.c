/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.c: what changes the references of views: assignment to a view type, late traits, views
 * without an owner, other data. Whether an assignment is right is decided in ir/view_type.c.
 */
#include "runtime/buffer.h"

#include <stddef.h>
#include <string.h>

qn_status qn_view_assign(qn_view *dst, const qn_view_type *type, const qn_view *src, qn_error *err)
{
    const char *who = "qn_view_assign";
    if (!dst || !src)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, dst ? "source" : "dst");
    qn_status status = type ? qn__assign_check(who, type, src, err) : QN_OK;
    if (status)
        return status;
    qn_view made = qn_view_copy(src);
    if (type)
        made.traits = qn__type_traits(type);
    if (type && type->unmanaged) {
        qn__buffer_release(made.owner);
        made.owner = NULL;
        made.label = NULL;
    }
    qn_view_release(dst);
    *dst = made;
    return QN_OK;
}

qn_status qn_view_with_traits(const qn_view *v, uint32_t traits, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_with_traits";
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    if (traits & ~QN_ALL_TRAITS)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": unknown traits 0x%x", who,
                        qn__label(v->label), (unsigned)traits);
    qn_status status = qn__view_check(v, who, err);
    if (status == QN_OK && traits & QN_ALIGNED)
        status = qn__check_aligned(who, v, err);
    if (status)
        return status;
    qn_view made = qn_view_copy(v), replaced = {0};
    made.traits |= traits;
    if (out == v)
        replaced = *out;
    *out = made;
    qn_view_release(&replaced);
    return QN_OK;
}

qn_status qn_view_unmanaged(const qn_view *v, qn_view *out, qn_error *err)
{
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_view_unmanaged: %s is NULL", v ? "out" : "view");
    qn_view made = *v, replaced = {0};
    made.layout = qn_layout_copy(&v->layout);
    made.owner = NULL;
    made.label = NULL;
    if (out == v)
        replaced = *out;
    *out = made;
    qn_view_release(&replaced);
    return QN_OK;
}

qn_status qn_view_assign_data(qn_view *v, void *data, qn_error *err)
{
    const char *who = "qn_view_assign_data";
    if (!v)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view is NULL", who);
    if (qn__layout_members(&v->layout) >= 0)
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: view \"%s\": is a MultiView: make another",
                        who, qn__label(v->label));
    if (v->owner && v->owner->record)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%s\": its storage holds the record type: wrap the data", who,
                        qn__label(v->label));
    qn_view made = *v;
    made.data = data;
    qn_status status = qn__view_check(&made, who, err);
    if (status == QN_OK && v->traits & QN_ALIGNED)
        status = qn__check_aligned(who, &made, err);
    if (status)
        return status;
    qn__buffer_release(v->owner);
    v->data = data;
    v->owner = NULL;
    v->label = NULL;
    return QN_OK;
}
