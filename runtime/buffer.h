/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.h: counted storage behind views. A buffer belongs to the references to it and to nothing
 * else: it may outlive the context it was made with. The count is atomic; the rest never changes
 * after construction.
 */
#ifndef QN_RUNTIME_BUFFER_H
#define QN_RUNTIME_BUFFER_H

#include "runtime/memory.h"

struct qn_buffer {
    _Atomic int64_t references;
    char *data;          /* aligned to `alignment`, at least 64 bytes */
    size_t bytes;        /* that views may use; at most what is there */
    size_t mapped_bytes; /* of a mapping of its own; 0: there is none */
    size_t place;        /* of data in it */
    size_t given_bytes;  /* of memory that an allocator of the program gave for data; 0: none */
    size_t alignment;    /* that was asked for */
    qn_memory *memory;   /* the account that counts this storage; NULL: none does */
    int64_t counted;     /* bytes in it */
    void (*release_data)(
        void *arg); /* of foreign storage: called with the last reference; or NULL */
    void *release_arg;
    qn_record *record; /* of views on it, with a reference; or NULL */
    char label[];        /* zero-terminated */
};

/** A counted owner of foreign storage: `data` is not freed; `release_data`, which may be NULL, is
 * called once with the last reference, on the thread that drops it. NULL if memory runs out. */
qn_buffer *qn__buffer_foreign(const char *label, void *data, size_t bytes,
                              void (*release_data)(void *arg), void *release_arg);
void qn__buffer_retain(qn_buffer *b);
/** Drops a reference. NULL is ignored. */
void qn__buffer_release(qn_buffer *b);

/** Whether a view of the same data through another layout stays inside the members, if there are
 * any: the layout then selects members of the same MultiView (table.c). */
qn_status qn__check_members(const char *who, const qn_view *v, const qn_view *made, qn_error *err);

/** Bytes of storage for a view of dtype and layout, and where in it the element of offset 0 of the
 * layout lies plus its origin: the element at the lower bounds. `l` passes qn__layout_check. */
qn_status qn__view_storage(const char *who, const char *label, int dtype, const qn_record *record,
                           const qn_layout *l, int64_t *bytes, int64_t *first_byte, qn_error *err);
/** A view of such storage in a space; takes over the reference. */
void qn__view_on(qn_buffer *owner, int64_t first_byte, bool has_label, int dtype,
                 const qn_record *record, int space, const qn_layout *l, qn_view *out);

/** Allocates a view, see qn_view_alloc, whose storage starts at a multiple of `alignment`, a power
 * of two from 64 to 2 MiB, and is counted in `m`, which may be NULL. `l` passes qn__layout_check.
 */
qn_status qn__view_alloc(const char *who, qn_memory *m, const char *label, int dtype,
                         const qn_record *record, const qn_layout *l, uint32_t flags,
                         int64_t alignment, qn_view *out, qn_error *err);

/** Wraps memory of the caller, see qn_view_wrap; `unit` as in a view. */
qn_status qn__view_wrap(const char *who, const char *label, void *data, int dtype,
                        const qn_record *record, uint32_t unit, const qn_layout *l, uint32_t traits,
                        qn_view *out, qn_error *err);

#endif
