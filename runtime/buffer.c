/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c: host storage and the views on it. Small storage stands in one block with its header and
 * label; from 2 MiB on it is a mapping of its own, aligned for huge pages, whose pages are placed
 * by the threads that touch them first. Layout arithmetic is in ir/; nothing here adds an offset
 * that qn__layout_check has not bounded.
 */
#define _DEFAULT_SOURCE
#include "runtime/context.h"
#include "runtime/table.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, PAGE = 4096, HUGE_PAGE = 2 << 20 };
/* Mappings begin at so many places of a page in turn, each a number of lines that is odd behind the
 * one before. A processor compares the last 12 bits of addresses to find what a load must wait for:
 * where all arrays began at one place, loads of one would wait for stores to another. */
enum { PLACES = 5, PLACE_BYTES = 13 * 64 };

/* ---------------------------------------------------------------- storage */

/** A private mapping whose start is a multiple of HUGE_PAGE, or NULL. `bytes` is one of PAGE. */
static char *map_aligned(size_t bytes)
{
    size_t mapped = bytes + HUGE_PAGE;
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t head = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    size_t tail = HUGE_PAGE - head;
    if (head)
        munmap(start, head);
    munmap(start + head + bytes, tail);
    madvise(start + head, bytes, MADV_HUGEPAGE); /* advice only: may be refused */
    return start + head;
}

/** What describes storage, with one reference and `room` bytes behind the label; NULL if memory
 * runs out. */
static qn_buffer *new_head(const char *label, size_t room, bool zeroed)
{
    size_t label_bytes = strlen(label) + 1, head = offsetof(qn_buffer, label) + label_bytes;
    if (room > SIZE_MAX / 2 || head > SIZE_MAX / 4)
        return NULL;
    qn_buffer *b = zeroed ? qn__zalloc(1, head + room) : qn__alloc(head + room);
    if (!b)
        return NULL;
    memset(b, 0, offsetof(qn_buffer, label));
    atomic_init(&b->references, 1);
    memcpy(b->label, label, label_bytes);
    return b;
}

/** Data for `room` bytes: from the program's allocator, or mapped; false if there is no memory. */
static bool take_data(qn_buffer *b, size_t room, bool zeroed)
{
    qn_memory *m = b->memory;
    if (!qn__memory_is_foreign(m)) {
        if (m && b->alignment <= ALIGNMENT)
            b->place = atomic_fetch_add_explicit(&m->mappings, 1, memory_order_relaxed) % PLACES *
                       PLACE_BYTES;
        b->mapped_bytes = room + (b->place ? PAGE : 0);
        char *start = map_aligned(b->mapped_bytes); /* the system gives zeros */
        b->data = start ? start + b->place : NULL;
        return b->data;
    }
    b->given_bytes = room;
    b->data = m->allocator.allocate(m->allocator.arg, room, b->alignment);
    if (b->data && zeroed)
        memset(b->data, 0, room);
    return b->data;
}

/** Storage of so many bytes at a multiple of `alignment`, zeroed unless told otherwise, with one
 * reference; NULL if memory runs out or would break the bound of the account. */
static qn_buffer *new_storage(qn_memory *m, const char *label, size_t bytes, size_t alignment,
                              bool zeroed)
{
    bool is_mapped = bytes >= HUGE_PAGE && !qn__memory_is_foreign(m),
         is_inside = !is_mapped && !qn__memory_is_foreign(m);
    size_t unit = is_mapped ? HUGE_PAGE : ALIGNMENT;
    if (bytes > SIZE_MAX / 2)
        return NULL;
    /* Whole cache lines, at least one, so that data is never NULL. */
    size_t room = bytes ? (bytes + unit - 1) / unit * unit : unit;
    if (!qn__memory_count(m, QN_MEMORY_HOST, (int64_t)room))
        return NULL;
    qn_buffer *b = new_head(label, is_inside ? room + alignment - 1 : 0, zeroed && is_inside);
    if (!b) {
        qn__memory_uncount(m, QN_MEMORY_HOST, (int64_t)room);
        return NULL;
    }
    b->bytes = bytes;
    b->alignment = alignment;
    b->memory = m;
    b->counted = (int64_t)room;
    if (is_inside) {
        char *end = b->label + strlen(label) + 1;
        b->data = end + (alignment - (uintptr_t)end % alignment) % alignment;
    } else if (!take_data(b, room, zeroed)) {
        b->mapped_bytes = b->given_bytes = 0;
        qn__buffer_release(b);
        return NULL;
    }
    if (m && m->has_tools)
        qn__tools_allocated(QN_SPACE_HOST, b->label, b->data, bytes);
    return b;
}

qn_buffer *qn__buffer_foreign(const char *label, void *data, size_t bytes,
                              void (*release_data)(void *arg), void *release_arg)
{
    qn_buffer *b = new_head(label, 0, false);
    if (!b)
        return NULL;
    b->data = data;
    b->bytes = bytes;
    b->release_data = release_data;
    b->release_arg = release_arg;
    return b;
}

void qn__buffer_retain(qn_buffer *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
}

void qn__buffer_release(qn_buffer *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1)
        return;
    qn_memory *m = b->memory;
    if (m && m->has_tools && b->data)
        qn__tools_released(QN_SPACE_HOST, b->label, b->data, b->bytes);
    if (b->mapped_bytes)
        munmap(b->data - b->place, b->mapped_bytes);
    if (b->given_bytes)
        m->allocator.release(m->allocator.arg, b->data, b->given_bytes, b->alignment);
    if (b->release_data)
        b->release_data(b->release_arg);
    qn_record_release(b->record);
    qn__memory_uncount(m, QN_MEMORY_HOST, b->counted);
    qn__free(b);
}

/* ---------------------------------------------------------------- making views */

/** A layout's head and its first `rank` dimensions, without a reference: a copy costs what is used.
 */
static inline void set_layout(qn_layout *out, const qn_layout *l)
{
    out->rank = l->rank;
    out->projected = l->projected;
    out->origin = l->origin;
    out->digits = l->digits;
    for (int d = 0; d < l->rank; d++)
        out->dim[d] = l->dim[d];
}

static inline void retain_digits(const qn_layout *l)
{
    if (l->digits)
        atomic_fetch_add_explicit(&l->digits->references, 1, memory_order_relaxed);
}

/** Fills *out with everything but the layout; the space is the host's. */
static void set_head(qn_view *out, void *data, qn_buffer *owner, const char *label, int dtype,
                     const qn_record *record, uint32_t traits)
{
    out->data = data;
    out->owner = owner;
    out->label = label;
    out->dtype = dtype;
    out->space = QN_SPACE_HOST;
    out->traits = traits;
    out->unit = 0;
    out->device = 0;
    out->reserved = 0;
    out->record = record;
}

/** Fails with the message of an inner call, behind the name of the view. */
static qn_status fail_inner(const char *who, const char *label, qn_status status,
                            const qn_error *inner, qn_error *err)
{
    const char *message = strstr(inner->message, ": ");
    return qn__fail(err, status, "%s: view \"%s\"%s", who, qn__label(label),
                    message ? message : "");
}

/**
 * Offsets that storage holds: those of the layout, and where dimensions have several digits those
 * of whole tiles, also if the extent cuts the last one. A box of tiles that does not fit in 64 bits
 * leaves the layout's own range.
 */
static qn_status storage_range(const qn_layout *l, int64_t *low, int64_t *high, qn_error *err)
{
    qn_status status = qn_layout_range(l, low, high, err);
    if (status || !l->digits || *low > *high)
        return status;
    int64_t lowest = l->origin, highest = l->origin;
    for (int d = 0; d < l->rank; d++) {
        qn_digit digit[QN_MAX_DIGITS];
        int n = qn_layout_digits(l, d, digit);
        for (int j = 0; j < n; j++) {
            int64_t reach;
            if (__builtin_mul_overflow(digit[j].extent - 1, digit[j].stride, &reach) ||
                __builtin_add_overflow(lowest, reach < 0 ? reach : 0, &lowest) ||
                __builtin_add_overflow(highest, reach > 0 ? reach : 0, &highest))
                return QN_OK;
        }
    }
    *low = lowest;
    *high = highest;
    return QN_OK;
}

qn_status qn__view_storage(const char *who, const char *label, int dtype, const qn_record *record,
                           const qn_layout *l, int64_t *bytes, int64_t *first_byte, qn_error *err)
{
    int64_t element = dtype == QN_RECORD ? qn_record_bytes(record) : qn_dtype_bytes(dtype);
    int64_t low, high, elements;
    if (element == 0)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": %s", who, qn__label(label),
                        qn__no_dtype(dtype, (char[NO_DTYPE_BYTES]){0}));
    if (qn__layout_members(l) >= 0)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%s\": the layout selects members of a MultiView", who,
                        qn__label(label));
    if (storage_range(l, &low, &high, NULL) || __builtin_sub_overflow(high, low, &elements) ||
        __builtin_add_overflow(elements, 1, &elements) ||
        __builtin_mul_overflow(elements, element, bytes))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: view \"%s\": bytes of %lld elements of %s do not fit in 64 bits", who,
                        qn__label(label), (long long)qn_layout_size(l), qn_dtype_name(dtype));
    *first_byte = *bytes ? (l->origin - low) * element : 0;
    return QN_OK;
}

void qn__view_on(qn_buffer *owner, int64_t first_byte, bool has_label, int dtype,
                 const qn_record *record, int space, const qn_layout *l, qn_view *out)
{
    owner->record = qn_record_retain(record);
    set_head(out, owner->data + first_byte, owner, has_label ? owner->label : NULL, dtype, record,
             0);
    out->space = space;
    set_layout(&out->layout, l);
    retain_digits(l);
    out->layout.origin = 0;
}

qn_status qn__view_alloc(const char *who, qn_memory *m, const char *label, int dtype,
                         const qn_record *record, const qn_layout *l, uint32_t flags,
                         int64_t alignment, qn_view *out, qn_error *err)
{
    int64_t bytes, first_byte;
    if (flags & ~(uint32_t)QN_UNINITIALISED)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": unknown flags 0x%x", who,
                        qn__label(label), (unsigned)flags);
    qn_status status = qn__view_storage(who, label, dtype, record, l, &bytes, &first_byte, err);
    if (status)
        return status;
    char reason[QN_MEMORY_REASON_BYTES];
    qn_buffer *owner = new_storage(m, label ? label : "", (size_t)bytes, (size_t)alignment,
                                   !(flags & QN_UNINITIALISED));
    if (!owner)
        return qn__fail(err, QN_ERR_MEMORY,
                        "%s: view \"%s\": no memory for %lld bytes in space host%s", who,
                        qn__label(label), (long long)bytes,
                        qn__memory_reason(m, QN_MEMORY_HOST, bytes, reason));
    qn__view_on(owner, first_byte, label != NULL, dtype, record, QN_SPACE_HOST, l, out);
    return QN_OK;
}

/** The account of a context; a view may be made without one. */
static qn_memory *memory_of(const qn_context *c)
{
    return c ? c->memory : NULL;
}

static qn_status alloc_checked(const char *who, const qn_context *c, const char *label, int dtype,
                               const qn_record *record, const qn_layout *l, uint32_t flags,
                               qn_view *out, qn_error *err)
{
    if (!l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s is NULL", who, qn__label(label),
                        l ? "out" : "layout");
    qn_error inner;
    qn_status status = qn__layout_check(l, "layout", err ? &inner : NULL);
    if (status)
        return err ? fail_inner(who, label, status, &inner, err) : status;
    return qn__view_alloc(who, memory_of(c), label, dtype, record, l, flags, ALIGNMENT, out, err);
}

qn_status qn_view_alloc(qn_context *c, const char *label, int dtype, const qn_layout *l,
                        uint32_t flags, qn_view *out, qn_error *err)
{
    return alloc_checked("qn_view_alloc", c, label, dtype, NULL, l, flags, out, err);
}

qn_status qn_view_alloc_record(qn_context *c, const char *label, const qn_record *record,
                               const qn_layout *l, uint32_t flags, qn_view *out, qn_error *err)
{
    return alloc_checked("qn_view_alloc_record", c, label, QN_RECORD, record, l, flags, out, err);
}

qn_status qn_view_new(qn_context *c, const char *label, int dtype, int rank, const int64_t *extents,
                      qn_view *out, qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_view_new: view \"%s\": out is NULL",
                        qn__label(label));
    qn_layout l;
    qn_error inner;
    qn_status status = qn_layout_right(rank, extents, &l, err ? &inner : NULL);
    if (status)
        return err ? fail_inner("qn_view_new", label, status, &inner, err) : status;
    return qn__view_alloc("qn_view_new", memory_of(c), label, dtype, NULL, &l, 0, ALIGNMENT, out,
                          err);
}

/** Whether a layout has no elements. */
static bool is_empty(const qn_layout *l)
{
    return qn_layout_size(l) == 0;
}

/** Finishes a view whose layout (not yet counted) has its origin still in it: moves the origin into
 * data and checks. */
static qn_status settle(const char *who, qn_view *v, qn_error *err)
{
    int64_t move;
    if (__builtin_mul_overflow(v->layout.origin, qn__unit_bytes(v), &move))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "%s: view \"%s\": origin %lld in bytes does not fit in 64 bits", who,
                        qn__label(v->label), (long long)v->layout.origin);
    if (v->data && !is_empty(&v->layout))
        v->data = (void *)((uintptr_t)v->data +
                           (uintptr_t)move); /* no pointer arithmetic before the check */
    v->layout.origin = 0;
    return qn__view_check(v, who, err);
}

qn_status qn__view_wrap(const char *who, const char *label, void *data, int dtype,
                        const qn_record *record, uint32_t unit, const qn_layout *l, uint32_t traits,
                        qn_view *out, qn_error *err)
{
    if (!l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s is NULL", who, qn__label(label),
                        l ? "out" : "layout");
    qn_error inner;
    qn_status status = qn__layout_check(l, "layout", err ? &inner : NULL);
    if (status)
        return err ? fail_inner(who, label, status, &inner, err) : status;
    if (qn__layout_members(l) >= 0)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%s\": the layout selects members of a MultiView", who,
                        qn__label(label));
    qn_view made;
    set_head(&made, data, NULL, label, dtype, record, traits);
    made.unit = unit;
    set_layout(&made.layout, l);
    status = settle(who, &made, err);
    if (status)
        return status;
    memcpy(out, &made, offsetof(qn_view, layout));
    set_layout(&out->layout, &made.layout);
    retain_digits(&made.layout);
    return QN_OK;
}

qn_status qn_view_wrap(const char *label, void *data, int dtype, const qn_layout *l,
                       uint32_t traits, qn_view *out, qn_error *err)
{
    return qn__view_wrap("qn_view_wrap", label, data, dtype, NULL, 0, l, traits, out, err);
}

qn_status qn_view_wrap_record(const char *label, void *data, const qn_record *record,
                              const qn_layout *l, uint32_t traits, qn_view *out, qn_error *err)
{
    return qn__view_wrap("qn_view_wrap_record", label, data, QN_RECORD, record, 0, l, traits, out,
                         err);
}

/* ---------------------------------------------------------------- references */

qn_view qn_view_copy(const qn_view *v)
{
    if (!v || v->layout.rank < 0 || v->layout.rank > QN_MAX_RANK)
        return (qn_view){0};
    qn_view copy;
    memcpy(&copy, v, offsetof(qn_view, layout));
    set_layout(&copy.layout, &v->layout);
    retain_digits(&v->layout);
    qn__buffer_retain(copy.owner);
    return copy;
}

void qn_view_release(qn_view *v)
{
    if (!v)
        return;
    qn__buffer_release(v->owner);
    if (v->layout.digits)
        qn_layout_release(&v->layout);
    *v = (qn_view){0};
}

int64_t qn_view_use_count(const qn_view *v)
{
    return v && v->owner ? atomic_load_explicit(&v->owner->references, memory_order_relaxed) : 0;
}

/* ---------------------------------------------------------------- views of views */

/** What a view says of its storage. */
static qn_member storage_of(const qn_view *v)
{
    return (qn_member){v->owner, v->label, v->record, v->device};
}

/** Fills the head of *out, a view of a part of v on storage `m`; its layout, with a reference to
 * its table, is set. */
static void derive_head(const qn_view *v, void *data, const qn_member *m, qn_view *out)
{
    /* The claim on alignment was made for the parent's first element. */
    uint32_t unit = v->unit;
    int space = v->space;
    set_head(out, data, m->owner, m->label, v->dtype, m->record, v->traits & ~(uint32_t)QN_ALIGNED);
    out->unit = unit;
    out->space = space;
    out->device = m->device;
    out->layout.origin = 0;
}

qn_status qn_subview(const qn_view *v, int n, const qn_slice *slices, qn_view *out, qn_error *err)
{
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_subview: %s is NULL", v ? "out" : "view");
    qn_status status = qn__view_check(v, "qn_subview", err);
    if (status)
        return status;
    qn_error inner;
    qn_buffer *replaced = out == v ? v->owner : NULL;
    qn_member m = storage_of(v);
    if (qn__layout_tables(&v->layout) && n == v->layout.rank && slices)
        qn__member_owner(v, slices, &m);
    qn__buffer_retain(m.owner); /* before the layout lets go of a MultiView's members */
    status = qn__layout_cut(&v->layout, n, slices, &out->layout, err ? &inner : NULL);
    if (status) {
        qn__buffer_release(m.owner);
        return err ? fail_inner("qn_subview", v->label, status, &inner, err) : status;
    }
    /* The origin is the offset of an element of v, or 0 if the result is empty. */
    char *data = v->data;
    if (out->layout.origin)
        data += out->layout.origin * qn__unit_bytes(v);
    derive_head(v, data, &m, out);
    qn__buffer_release(replaced);
    return QN_OK;
}

/** Whether all elements of a view lie in its owner's storage; true for unmanaged and empty views.
 */
static bool is_in_storage(const qn_view *v)
{
    int64_t low, high;
    qn__view_bytes(v, &low, &high);
    if (!v->owner || high == low)
        return true;
    uintptr_t begin = (uintptr_t)v->data + (uintptr_t)low;
    uintptr_t last = (uintptr_t)v->data + (uintptr_t)high - 1;
    uintptr_t storage = (uintptr_t)v->owner->data;
    return begin >= storage && last - storage < v->owner->bytes && last >= storage;
}

qn_status qn_view_with_layout(const qn_view *v, const qn_layout *l, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_with_layout";
    if (!v || !l || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !v   ? "view"
                        : !l ? "layout"
                             : "out");
    qn_status status = qn__view_check(v, who, err);
    if (status)
        return status;
    qn_error inner;
    status = qn__layout_check(l, "layout", err ? &inner : NULL);
    if (status)
        return err ? fail_inner(who, v->label, status, &inner, err) : status;
    qn_view made;
    memcpy(&made, v, offsetof(qn_view, layout));
    set_layout(&made.layout, l);
    status = settle(who, &made, err);
    if (status)
        return status;
    status = qn__check_members(who, v, &made, err);
    if (status)
        return status;
    if (!is_in_storage(&made)) {
        int64_t low = 0, high = 0;
        qn_layout_range(l, &low, &high, NULL);
        return qn__fail(err, QN_ERR_BOUNDS,
                        "%s: view \"%s\": offsets [%lld,%lld] leave its storage of %lld bytes", who,
                        qn__label(v->label), (long long)low, (long long)high,
                        (long long)v->owner->bytes);
    }
    qn_view replaced = {0};
    if (out == v) {
        replaced.owner = v->owner;
        replaced.layout.digits = v->layout.digits;
    }
    set_layout(&out->layout, &made.layout);
    retain_digits(&made.layout);
    qn__buffer_retain(v->owner);
    const qn_member m = storage_of(v);
    derive_head(v, made.data, &m, out);
    qn_view_release(&replaced);
    return QN_OK;
}
