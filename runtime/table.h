/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h: what the whole tables of layouts own: an index list its view, a MultiView its members
 * and their offsets.
 */
#ifndef QN_RUNTIME_TABLE_H
#define QN_RUNTIME_TABLE_H

#include "runtime/buffer.h"

struct qn_table_copy;

/** Whose storage a view, or a member of a MultiView, is on. */
typedef struct qn_member {
    qn_buffer *owner;  /* NULL: unmanaged */
    const char *label; /* as in the member */
    const qn_record *record;
    int32_t device;
} qn_member;

/** What a table keeps alive. */
typedef struct qn_holder {
    qn_view list; /* of an index list */
    char *lowest; /* of members */
    char *label;  /* of the MultiView */
    int64_t n;
    qn_member *member; /* [n], with references to the owners */
    void *room;
    int64_t *offset; /* [n], in `room`, aligned so that code for one MultiView is that of others */
    _Atomic(struct qn_table_copy *) copies; /* of the offsets, on GPUs (cuda/table.c) */
} qn_holder;

/** Replaces what *out says of a MultiView by its member that slices select, if they select one
 * (table.c). */
void qn__member_owner(const qn_view *v, const qn_slice *slices, qn_member *out);

/** The table that owns what a table, maybe a part, refers to. */
static inline const qn_table *qn__table_whole(const qn_table *t)
{
    return t->whole ? t->whole : t;
}

#endif
