/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: what layouts with tables are made of: index lists, which keep a reference to the view
 * with the indices, and MultiViews, which keep one to each member. A MultiView has no storage of
 * its own; its data is the lowest member, and its table has the distances of the others.
 */
#include "runtime/table.h"

#include "runtime/cuda/table.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

static void free_holder(qn_holder *h)
{
    if (!h)
        return;
    qn__cuda_copies_release(atomic_load(&h->copies));
    qn_view_release(&h->list);
    for (int64_t i = 0; h->member && i < h->n; i++)
        qn__buffer_release(h->member[i].owner);
    qn__free(h->member);
    qn__free(h->room);
    qn__free(h->label);
    qn__free(h);
}

static void release_table(qn_table *t)
{
    free_holder(t->holder);
}

/** A whole table with one reference and an empty holder, or NULL. */
static qn_table *new_table(void)
{
    qn_table *t = qn__zalloc(1, sizeof *t);
    if (t)
        t->holder = qn__zalloc(1, sizeof *t->holder);
    if (t && !t->holder) {
        qn__free(t);
        return NULL;
    }
    if (t) {
        atomic_init(&t->references, 1);
        t->release = release_table;
    }
    return t;
}

/* ---------------------------------------------------------------- index lists */

static qn_status check_list(const char *who, const qn_layout *l, int d, const qn_view *list,
                            qn_error *err)
{
    qn_status status = qn__view_check(list, who, err);
    if (status)
        return status;
    if (list->layout.rank != 1)
        return qn__fail(err, QN_ERR_RANK, "%s: list \"%.80s\": rank %d, expected 1", who,
                        qn__label(list->label), list->layout.rank);
    if (list->dtype != QN_I64)
        return qn__fail(err, QN_ERR_DTYPE, "%s: list \"%.80s\": dtype %s, expected i64", who,
                        qn__label(list->label), qn_dtype_name(list->dtype));
    if (qn__unit_bytes(list) != (int64_t)sizeof(int64_t))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: list \"%.80s\": strides count units of %u bytes: copy the list", who,
                        qn__label(list->label), (unsigned)list->unit);
    if (!qn_layout_is_strided(&list->layout) || list->layout.projected)
        return qn__fail(
            err, QN_ERR_UNSUPPORTED,
            "%s: list \"%.80s\": has several digits or a list of its own, not one stride", who,
            qn__label(list->label));
    if (l->projected >> d & 1)
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: dimension %d: is projected", who, d);
    if (qn__layout_table(l, d))
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: dimension %d: has a list already", who, d);
    if (l->dim[d].extent >= QN_MEMBER_EXTENT)
        return qn__fail(err, QN_ERR_OVERFLOW, "%s: dimension %d: extent %lld is above 2^62", who, d,
                        (long long)l->dim[d].extent);
    return QN_OK;
}

qn_status qn_layout_list(const qn_layout *l, int d, const qn_view *list, qn_layout *out,
                         qn_error *err)
{
    const char *who = "qn_layout_list";
    if (!l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, l ? "out" : "layout");
    qn_status status = qn__layout_check(l, who, err);
    if (status == QN_OK && (d < 0 || d >= l->rank))
        status = qn__fail(err, QN_ERR_ARGUMENT, "%s: dimension %d not in [0,%d)", who, d, l->rank);
    if (status == QN_OK && list)
        status = check_list(who, l, d, list, err);
    if (status)
        return status;
    if (!list) {
        qn_layout made = qn_layout_copy(l);
        if (out == l)
            qn_layout_release(out);
        *out = made;
        return QN_OK;
    }
    qn_table *t = new_table();
    if (!t)
        return qn__fail(err, QN_ERR_MEMORY, "%s: dimension %d: out of memory", who, d);
    t->holder->list = qn_view_copy(list);
    t->label = list->label;
    t->space = list->space;
    t->value = list->data;
    t->stride = list->layout.dim[0].stride;
    t->n = list->layout.dim[0].extent;
    t->lower = l->dim[d].lower;
    t->extent = l->dim[d].extent;
    status = qn__layout_with_table(l, d, t, out, who, err);
    if (status)
        qn__table_release(t);
    return status;
}

/* ---------------------------------------------------------------- MultiViews */

/** A member by address, and where it ends. */
typedef struct span {
    const qn_view *view;
    uintptr_t begin, end;
} span;

static int compare_spans(const void *a, const void *b)
{
    uintptr_t x = ((const span *)a)->begin, y = ((const span *)b)->begin;
    return (x > y) - (x < y);
}

/** Whether no two members share an element. Only those whose byte ranges meet are compared. */
static bool are_disjoint(const qn_view *views, int64_t n, int64_t low, int64_t high, span *room)
{
    uintptr_t unit = (uintptr_t)qn__unit_bytes(&views[0]);
    for (int64_t i = 0; i < n; i++) {
        uintptr_t data = (uintptr_t)views[i].data;
        room[i] = (span){&views[i], data + (uintptr_t)low * unit,
                         data + (uintptr_t)high * unit + (uintptr_t)qn__element_bytes(&views[0])};
    }
    qsort(room, (size_t)n, sizeof *room, compare_spans);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n && room[j].begin < room[i].end; j++)
            if (qn__view_relation(room[i].view, room[j].view) != QN_DISJOINT)
                return false;
    return true;
}

static qn_status check_member(const char *who, const qn_view *views, int i, qn_error *err)
{
    const qn_view *first = &views[0], *v = &views[i];
    qn_status status = qn__view_check(v, who, err);
    if (status)
        return status;
    if (qn__layout_members(&v->layout) >= 0)
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: member %d (%.80s): is a MultiView itself",
                        who, i, qn__label(v->label));
    if (v->dtype != first->dtype)
        return qn__fail(err, QN_ERR_DTYPE,
                        "%s: member %d (%.80s): dtype %s, that of member 0 is %s", who, i,
                        qn__label(v->label), qn_dtype_name(v->dtype), qn_dtype_name(first->dtype));
    if (!qn_record_equal(v->record, first->record) || qn__unit_bytes(v) != qn__unit_bytes(first))
        return qn__fail(
            err, QN_ERR_DTYPE,
            "%s: member %d (%.80s): record type or unit of strides are not those of member 0", who,
            i, qn__label(v->label));
    if (v->space != first->space)
        return qn__fail(err, QN_ERR_SPACE,
                        "%s: member %d (%.80s): space %s, that of member 0 is %s", who, i,
                        qn__label(v->label), qn_space_name(v->space), qn_space_name(first->space));
    if (qn__layout_equal(&v->layout, &first->layout))
        return QN_OK;
    char mine[160], its[160];
    qn_layout_print(&v->layout, mine, sizeof mine);
    qn_layout_print(&first->layout, its, sizeof its);
    return qn__fail(err, QN_ERR_EXTENT, "%s: member %d (%.80s): layout %s, that of member 0 is %s",
                    who, i, qn__label(v->label), mine, its);
}

static qn_status check_members(const char *who, const char *label, int n, const qn_view *views,
                               int position, qn_error *err)
{
    for (int i = 0; i < n; i++) {
        qn_status status = check_member(who, views, i, err);
        if (status)
            return status;
    }
    int rank = views[0].layout.rank;
    if (position < 0 || position > rank)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%.80s\": position %d not in [0,%d]", who,
                        qn__label(label), position, rank);
    if (rank == QN_MAX_RANK)
        return qn__fail(err, QN_ERR_RANK,
                        "%s: view \"%.80s\": rank %d of the members is the largest", who,
                        qn__label(label), rank);
    return QN_OK;
}

/** Room for n members, and copies of their owners and labels. */
static bool hold_members(qn_holder *h, const char *label, int n, const qn_view *views)
{
    h->label = label ? qn__strdup(label) : NULL;
    h->room = qn__alloc((size_t)n * sizeof *h->offset + CACHE_LINE);
    h->member = qn__zalloc((size_t)n, sizeof *h->member);
    if ((label && !h->label) || !h->room || !h->member)
        return false;
    h->offset = (int64_t *)(((uintptr_t)h->room + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    h->n = n;
    for (int i = 0; i < n; i++) {
        qn__buffer_retain(views[i].owner);
        h->member[i] =
            (qn_member){views[i].owner, views[i].label, views[i].record, views[i].device};
    }
    return true;
}

/** Distances of the members from the lowest, in elements. */
static qn_status measure(const char *who, int n, const qn_view *views, qn_table *t, qn_error *err)
{
    int64_t bytes = qn__unit_bytes(&views[0]);
    uintptr_t lowest = (uintptr_t)views[0].data;
    for (int i = 1; i < n; i++)
        lowest = (uintptr_t)views[i].data < lowest ? (uintptr_t)views[i].data : lowest;
    t->holder->lowest = (char *)lowest;
    t->extent = 1;
    for (int i = 0; i < n; i++) {
        uintptr_t distance = (uintptr_t)views[i].data - lowest;
        if (distance % (uintptr_t)bytes || distance > INT64_MAX)
            return qn__fail(
                err, QN_ERR_ALIGNMENT,
                "%s: member %d (%.80s): %llu bytes from the lowest member are no number "
                "of elements of %s",
                who, i, qn__label(views[i].label), (unsigned long long)distance,
                qn_dtype_name(views[0].dtype));
        int64_t offset = (int64_t)(distance / (uintptr_t)bytes);
        t->holder->offset[i] = offset;
        t->extent = offset + 1 > t->extent ? offset + 1 : t->extent;
    }
    t->value = t->holder->offset;
    t->stride = 1;
    t->n = n;
    return QN_OK;
}

/** Claims hold for all members, restrictions for any. */
static uint32_t join_traits(int n, const qn_view *views)
{
    const uint32_t claims = QN_ALIGNED | QN_STREAMING | QN_UNCHECKED;
    uint32_t any = 0, all = claims;
    for (int i = 0; i < n; i++) {
        any |= views[i].traits;
        all &= views[i].traits;
    }
    return (any & ~claims) | all;
}

static qn_status make_multi(const char *who, int n, const qn_view *views, int position, qn_table *t,
                            qn_view *out, qn_error *err)
{
    const qn_layout *l = &views[0].layout;
    qn_status status = qn_layout_range(l, &t->low, &t->high, err);
    if (status == QN_OK)
        status = measure(who, n, views, t, err);
    span *room = status ? NULL : qn__alloc((size_t)n * sizeof *room);
    if (status == QN_OK && !room)
        status = qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d members", who, n);
    if (status)
        return status;
    t->is_members = true;
    t->is_disjoint = t->high < t->low || are_disjoint(views, n, t->low, t->high, room);
    t->label = t->holder->label;
    qn__free(room);
    qn_view made = {.data = t->holder->lowest,
                    .label = t->label,
                    .dtype = views[0].dtype,
                    .space = views[0].space,
                    .device = views[0].device,
                    .traits = join_traits(n, views),
                    .unit = views[0].unit,
                    .record = views[0].record};
    qn_layout wide; /* a dimension for the members, whose digits the table gives */
    status = qn_layout_expand(l, position, &wide, err);
    if (status)
        return status;
    status = qn__layout_with_table(&wide, position, t, &made.layout, who, err);
    qn_layout_release(&wide);
    if (status)
        return status;
    status = qn__view_check(&made, who, err);
    if (status) {
        qn__table_retain(t); /* the caller's, again */
        qn_layout_release(&made.layout);
        return status;
    }
    *out = made;
    return QN_OK;
}

qn_status qn_view_multi(const char *label, int n, const qn_view *views, int position, qn_view *out,
                        qn_error *err)
{
    const char *who = "qn_view_multi";
    if (!out || n < 0 || (!views && n > 0))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%.80s\": %s", who, qn__label(label),
                        !out    ? "out is NULL"
                        : n < 0 ? "number of members is negative"
                                : "views are NULL");
    if (n == 0) {
        *out = (qn_view){0};
        return QN_OK;
    }
    qn_status status = check_members(who, label, n, views, position, err);
    if (status)
        return status;
    qn_table *t = new_table();
    if (!t || !hold_members(t->holder, label, n, views))
        status = qn__fail(err, QN_ERR_MEMORY, "%s: view \"%.80s\": no memory for %d members", who,
                          qn__label(label), n);
    if (status == QN_OK)
        status = make_multi(who, n, views, position, t, out, err);
    if (status)
        qn__table_release(t);
    return status;
}

qn_status qn_view_multi_wrap(const char *label, int n, void *const *data, int dtype,
                             const qn_layout *l, int position, uint32_t traits, qn_view *out,
                             qn_error *err)
{
    const char *who = "qn_view_multi_wrap";
    if (!l || n < 0 || (!data && n > 0))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%.80s\": %s", who, qn__label(label),
                        !l      ? "layout is NULL"
                        : n < 0 ? "number of members is negative"
                                : "data are NULL");
    qn_view *views = qn__zalloc((size_t)n + 1, sizeof *views);
    qn_status status = QN_OK;
    if (!views)
        return qn__fail(err, QN_ERR_MEMORY, "%s: view \"%.80s\": no memory for %d members", who,
                        qn__label(label), n);
    for (int i = 0; i < n && status == QN_OK; i++)
        status = qn_view_wrap(label, data[i], dtype, l, traits, &views[i], err);
    if (status == QN_OK)
        status = qn_view_multi(label, n, views, position, out, err);
    for (int i = 0; i < n; i++)
        qn_view_release(&views[i]);
    qn__free(views);
    return qn__fail_as(who, err, status);
}

/* ---------------------------------------------------------------- views of MultiViews */

static const qn_table *whole_of(const qn_view *v)
{
    int m = qn__layout_members(&v->layout);
    if (m < 0)
        return NULL;
    return qn__table_whole(v->layout.digits->table[m]);
}

void qn__member_owner(const qn_view *v, const qn_slice *slices, qn_member *out)
{
    int m = qn__layout_members(&v->layout);
    if (m < 0 || slices[m].kind != QN_AT)
        return;
    const qn_table *t = v->layout.digits->table[m];
    int64_t at = slices[m].begin - v->layout.dim[m].lower;
    if (at < 0 || at >= t->n)
        return;
    const qn_table *whole = whole_of(v);
    const qn_record *record = out->record;
    *out = whole->holder->member[&t->value[at * t->stride] - whole->value];
    if (v->dtype != QN_RECORD) /* it may be the view of a field */
        out->record = record;
}

qn_status qn__check_members(const char *who, const qn_view *v, const qn_view *made, qn_error *err)
{
    const qn_table *whole = whole_of(v);
    if (whole != whole_of(made))
        return qn__fail(
            err, QN_ERR_UNSUPPORTED,
            "%s: view \"%.80s\": view and layout select members of different MultiViews", who,
            qn__label(v->label));
    int m = qn__layout_members(&made->layout);
    if (m < 0 || made->layout.dim[m].extent == 0)
        return QN_OK;
    qn_layout member;
    qn_digits digits;
    int64_t low = 0, high = -1;
    qn__layout_member(&made->layout, m, 0, &member, &digits);
    member.origin = ((char *)made->data - whole->holder->lowest) / qn__unit_bytes(v);
    qn_status status = qn_layout_range(&member, &low, &high, err);
    if (status == QN_OK && low <= high && (low < whole->low || high > whole->high))
        return qn__fail(err, QN_ERR_BOUNDS,
                        "%s: view \"%.80s\": offsets [%lld,%lld] leave the members, [%lld,%lld]",
                        who, qn__label(v->label), (long long)low, (long long)high,
                        (long long)whole->low, (long long)whole->high);
    return status;
}
