/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c: other storage for a view: resize, realloc and mirrors. The new storage is complete
 * before the old reference is dropped, so that a failure changes nothing; other owners keep the old
 * storage.
 */
#include "runtime/buffer.h"
#include "runtime/copy.h"
#include "runtime/create.h"

#include <string.h>

/* ---------------------------------------------------------------- the new layout */

enum { ORDER_RIGHT, ORDER_LEFT, ORDER_OTHER };

/** Strides that are exactly those of a dense layout of the same extents. */
static bool is_exact(const qn_layout *l, bool is_left)
{
    int64_t expected = 1;
    for (int k = 0; k < l->rank; k++) {
        const qn_dim *dim = &l->dim[is_left ? k : l->rank - 1 - k];
        if (dim->stride != expected || __builtin_mul_overflow(expected, dim->extent, &expected))
            return false;
    }
    return true;
}

/** Whether dimension a is faster than b: by stride, where 0 is slowest; then those of extent 1;
 * then the later one. */
static bool is_faster(const qn_layout *l, int a, int b)
{
    int64_t stride_a = l->dim[a].stride, stride_b = l->dim[b].stride;
    uint64_t size_a = stride_a < 0 ? 0 - (uint64_t)stride_a : (uint64_t)stride_a;
    uint64_t size_b = stride_b < 0 ? 0 - (uint64_t)stride_b : (uint64_t)stride_b;
    if (size_a != size_b)
        return size_a - 1 < size_b - 1; /* 0 becomes the largest */
    if ((l->dim[a].extent == 1) != (l->dim[b].extent == 1))
        return l->dim[a].extent == 1;
    return a > b;
}

/** The order of the dimensions of a layout, fastest first, and whether it is one with a name. */
static int find_order(const qn_layout *l, int *order)
{
    for (int i = 0; i < l->rank; i++) {
        int j = i;
        for (; j > 0 && is_faster(l, i, order[j - 1]); j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    if (is_exact(l, false))
        return ORDER_RIGHT;
    if (is_exact(l, true))
        return ORDER_LEFT;
    bool is_right = true, is_left = true;
    for (int i = 0; i < l->rank; i++) {
        is_right = is_right && order[i] == l->rank - 1 - i;
        is_left = is_left && order[i] == i;
    }
    return is_right ? ORDER_RIGHT : is_left ? ORDER_LEFT : ORDER_OTHER;
}

/** Where a digit of a layout stands. */
typedef struct place {
    int64_t stride; /* magnitude, less 1: stride 0 is slowest */
    int at;         /* in the list */
} place;

/** The digits of a layout for other extents: the last of each dimension takes what is left. Returns
 * how many. */
static int stretch(const qn_layout *l, const int64_t *extents, int *n_digits, qn_digit *digit,
                   place *order)
{
    int n = 0;
    for (int d = 0; d < l->rank; d++) {
        n_digits[d] = qn_layout_digits(l, d, digit + n);
        int64_t left = extents[d];
        for (int j = 0; j < n_digits[d]; j++, n++) {
            uint64_t stride = (uint64_t)digit[n].stride;
            if (j == n_digits[d] - 1)
                digit[n].extent = left > 0 ? left : 1;
            left = left / digit[n].extent + (left % digit[n].extent != 0);
            place p = {(int64_t)((digit[n].stride < 0 ? 0 - stride : stride) - 1), n};
            int k = n;
            for (; k > 0 && (uint64_t)order[k - 1].stride > (uint64_t)p.stride; k--)
                order[k] = order[k - 1];
            order[k] = p;
        }
    }
    return n;
}

/** The layout of v with other extents: digits keep their extents, but the last of each dimension,
 * and their order; strides are dense. So tiles keep their size and place. */
static qn_status like_digits(const char *who, const qn_view *v, const int64_t *extents,
                             qn_layout *out, qn_error *err)
{
    qn_digit digit[QN_MAX_DIGITS];
    place order[QN_MAX_DIGITS];
    int n_digits[QN_MAX_RANK];
    int64_t stride = 1;
    qn_error inner = {0};
    for (int d = 0; d < v->layout.rank; d++)
        if (extents[d] < 0)
            return qn__fail(err, QN_ERR_EXTENT,
                            "%s: view \"%s\": dimension %d: extent %lld is negative", who,
                            qn__label(v->label), d, (long long)extents[d]);
    int n = stretch(&v->layout, extents, n_digits, digit, order);
    for (int i = 0; i < n; i++) {
        digit[order[i].at].stride = stride;
        if (__builtin_mul_overflow(stride, digit[order[i].at].extent, &stride))
            return qn__fail(err, QN_ERR_OVERFLOW,
                            "%s: view \"%s\": product of the extents does not fit in 64 bits", who,
                            qn__label(v->label));
    }
    qn_status status = qn_layout_custom(v->layout.rank, extents, n_digits, digit, out, &inner);
    return status ? qn__fail(err, status, "%s: view \"%s\": %s", who, qn__label(v->label),
                             inner.message)
                  : QN_OK;
}

/** A dense layout of n extents in the order of v's dimensions, with its lower bounds. */
static qn_status like(const char *who, const qn_view *v, bool is_padded, int n,
                      const int64_t *extents, qn_layout *out, qn_error *err)
{
    int order[QN_MAX_RANK], kind = find_order(&v->layout, order);
    if (qn__layout_tables(&v->layout))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%s\": has an index list or members: their number is the extent",
                        who, qn__label(v->label));
    if (v->layout.digits && n != v->layout.rank)
        return qn__fail(
            err, QN_ERR_UNSUPPORTED,
            "%s: view \"%s\": a dimension has several digits, and the rank changes: give "
            "the layout",
            who, qn__label(v->label));
    qn_status status;
    if (v->layout.digits)
        status = like_digits(who, v, extents, out, err);
    else if (kind != ORDER_OTHER || n != v->layout.rank) {
        status = qn__dense_layout(who, v->label, qn__element_bytes(v), kind == ORDER_LEFT,
                                  is_padded, n, extents, out, err);
    } else {
        qn_error inner = {0};
        status = qn_layout_ordered(n, extents, order, out, &inner);
        if (status)
            qn__fail(err, status, "%s: view \"%s\": %s", who, qn__label(v->label), inner.message);
    }
    for (int d = 0; status == QN_OK && n == v->layout.rank && d < n; d++)
        out->dim[d].lower = v->layout.dim[d].lower;
    return status;
}

/* ---------------------------------------------------------------- the common part */

/** Slices that cut the part that both views have; dimensions that the other lacks are index 0. */
static void cut(const qn_layout *l, const qn_layout *other, qn_slice *slices)
{
    for (int d = 0; d < l->rank; d++) {
        const qn_dim *dim = &l->dim[d];
        int64_t extent = d < other->rank && other->dim[d].extent < dim->extent
                             ? other->dim[d].extent
                             : dim->extent;
        slices[d] = (qn_slice){.kind = extent == dim->extent ? QN_ALL : QN_RANGE,
                               .begin = dim->lower,
                               .end = dim->lower + extent};
        if (d >= other->rank)
            slices[d].kind = QN_AT;
    }
}

/** Element by element, for layouts that cannot be cut. */
static void copy_each(const qn_view *dst, const qn_view *src)
{
    const qn_layout *to = &dst->layout, *from = &src->layout;
    int rank = to->rank < from->rank ? to->rank : from->rank;
    int64_t to_index[QN_MAX_RANK], from_index[QN_MAX_RANK], extent[QN_MAX_RANK];
    int64_t at[QN_MAX_RANK] = {0}, bytes = qn__element_bytes(dst);
    for (int d = 0; d < to->rank; d++)
        to_index[d] = to->dim[d].lower;
    for (int d = 0; d < from->rank; d++)
        from_index[d] = from->dim[d].lower;
    for (int d = 0; d < rank; d++)
        extent[d] =
            to->dim[d].extent < from->dim[d].extent ? to->dim[d].extent : from->dim[d].extent;
    for (int d = rank; d >= 0;) {
        memcpy((char *)dst->data + qn__layout_offset_of(to, to_index) * qn__unit_bytes(dst),
               (const char *)src->data +
                   qn__layout_offset_of(from, from_index) * qn__unit_bytes(src),
               (size_t)bytes);
        for (d = rank - 1; d >= 0 && at[d] + 1 == extent[d]; d--) {
            to_index[d] -= at[d];
            from_index[d] -= at[d];
            at[d] = 0;
        }
        if (d >= 0) {
            at[d]++;
            to_index[d]++;
            from_index[d]++;
        }
    }
}

/** Copies the part that both views have. */
static qn_status copy_common(const char *who, qn_context *c, int executor, const qn_view *dst,
                             const qn_view *src, qn_error *err)
{
    qn_slice cut_dst[QN_MAX_RANK], cut_src[QN_MAX_RANK];
    qn_view to = {0}, from = {0};
    if (qn_view_size(dst) == 0 || qn_view_size(src) == 0)
        return QN_OK;
    cut(&dst->layout, &src->layout, cut_dst);
    cut(&src->layout, &dst->layout, cut_src);
    qn_status status = qn_subview(dst, dst->layout.rank, cut_dst, &to, err);
    if (status == QN_OK)
        status = qn_subview(src, src->layout.rank, cut_src, &from, err);
    if (status == QN_OK)
        status = qn__copy(who, c, executor, &to, &from, err);
    bool has_tables = qn__layout_tables(&dst->layout) || qn__layout_tables(&src->layout);
    bool is_on_host = qn_exec_can_access(QN_EXEC_SERIAL, dst->space);
    if (status == QN_ERR_UNSUPPORTED && !has_tables && is_on_host) {
        copy_each(dst, src);
        status = QN_OK;
    }
    qn_view_release(&to);
    qn_view_release(&from);
    return status;
}

/* ---------------------------------------------------------------- resize and realloc */

/** What the functions that replace storage check; `out` gets their properties. */
static qn_status check_replaced(const char *who, qn_context *c, const qn_view *v, int n,
                                const int64_t *extents, const qn_alloc_options *o,
                                qn_alloc_options *out, qn_error *err)
{
    if (!v || (!extents && n > 0))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "extents" : "view");
    qn_view seen = *v;
    qn_error inner = {0};
    qn_status status = qn__view_check(&seen, who, &inner);
    if (status && !(status == QN_ERR_NULL_DATA && !v->owner))
        return qn__fail(err, status, "%s", inner.message);
    if (v->traits & QN_READ_ONLY)
        return qn__fail(err, QN_ERR_READ_ONLY, "%s: view \"%s\" is read-only", who,
                        qn__label(v->label));
    status = qn__properties(who, c, o, out, err);
    if (status == QN_OK && (out->label || out->alignment))
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": properties have a label or an alignment", who,
                        qn__label(v->label));
    return status;
}

/** Puts storage of a layout in the place of a view's. */
static qn_status replace(const char *who, qn_context *c, qn_view *v, const qn_layout *l,
                         const qn_alloc_options *o, bool keeps, qn_error *err)
{
    qn_view made;
    qn_alloc_options same_space = *o;
    same_space.space = v->space;
    qn_status status =
        qn__allocate(who, c, v->label, v->dtype, v->record, l, &same_space, &made, err);
    if (status)
        return status;
    if (v->traits & QN_ALIGNED)
        status = qn__check_aligned(who, &made, err);
    if (status == QN_OK && keeps)
        status = copy_common(who, c, o->executor, &made, v, err);
    if (status) {
        qn_view_release(&made);
        return status;
    }
    made.traits = v->traits;
    qn_view_release(v);
    *v = made;
    return QN_OK;
}

static bool has_extents(const qn_view *v, int n, const int64_t *extents)
{
    bool is_same = v->data && v->layout.rank == n;
    for (int d = 0; is_same && d < n; d++)
        is_same = v->layout.dim[d].extent == extents[d];
    return is_same;
}

qn_status qn_view_resize(qn_context *c, qn_view *v, int n, const int64_t *extents,
                         const qn_alloc_options *o, qn_error *err)
{
    const char *who = "qn_view_resize";
    qn_alloc_options properties;
    qn_layout l;
    qn_status status = check_replaced(who, c, v, n, extents, o, &properties, err);
    if (status || has_extents(v, n, extents))
        return status;
    status = like(who, v, properties.padding, n, extents, &l, err);
    if (status)
        return status;
    status = replace(who, c, v, &l, &properties, true, err);
    qn_layout_release(&l);
    return status;
}

qn_status qn_view_resize_layout(qn_context *c, qn_view *v, const qn_layout *l,
                                const qn_alloc_options *o, qn_error *err)
{
    const char *who = "qn_view_resize_layout";
    qn_alloc_options properties;
    qn_status status = check_replaced(who, c, v, 0, NULL, o, &properties, err);
    if (status == QN_OK)
        status = qn__layout_check(l, who, err);
    if (status || (v->data && !v->unit && qn__layout_equal(&v->layout, l)))
        return status;
    if (!qn_layout_is_unique(l))
        return qn__fail(err, QN_ERR_NOT_INJECTIVE,
                        "%s: view \"%s\": the layout may map two indices to one element", who,
                        qn__label(v->label));
    return replace(who, c, v, l, &properties, true, err);
}

qn_status qn_view_realloc(qn_context *c, qn_view *v, int n, const int64_t *extents,
                          const qn_alloc_options *o, qn_error *err)
{
    const char *who = "qn_view_realloc";
    qn_alloc_options properties;
    qn_layout l;
    qn_status status = check_replaced(who, c, v, n, extents, o, &properties, err);
    if (status)
        return status;
    if (has_extents(v, n, extents))
        return properties.uninitialised ? QN_OK : qn__fill_zero(who, c, v, err);
    status = like(who, v, properties.padding, n, extents, &l, err);
    if (status)
        return status;
    status = replace(who, c, v, &l, &properties, false, err);
    qn_layout_release(&l);
    return status;
}

/* ---------------------------------------------------------------- mirrors */

/** Checks, and the space of the mirror. */
static qn_status check_mirror(const char *who, int space, const qn_view *v, const qn_view *out,
                              qn_error *err)
{
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    if (!qn_space_is_available(space))
        return qn__fail(err, QN_ERR_NOT_AVAILABLE,
                        "%s: view \"%s\": space %d (%s) is not available in this build", who,
                        qn__label(v->label), space, qn_space_name(space));
    return qn__view_check(v, who, err);
}

static qn_status make_mirror(const char *who, qn_context *c, int space, const qn_view *v,
                             qn_view *out, qn_error *err)
{
    const qn_alloc_options o = {.bytes = sizeof o, .space = space};
    int64_t extents[QN_MAX_RANK];
    qn_layout dense, l = v->layout; /* a borrow */
    qn_status status = QN_OK;
    for (int d = 0; d < l.rank; d++)
        extents[d] = l.dim[d].extent;
    if (v->unit || !qn_layout_is_unique(&l) || qn__layout_tables(&l)) {
        status = qn__dense_layout(who, v->label, qn__element_bytes(v), false, false, l.rank,
                                  extents, &dense, err);
        for (int d = 0; status == QN_OK && d < l.rank; d++)
            dense.dim[d].lower = l.dim[d].lower;
        if (status == QN_OK)
            l = dense;
    }
    qn_text label = {0};
    qn__text_add(&label, "%s_mirror", v->label ? v->label : "");
    if (status == QN_OK && label.failed)
        status = qn__fail(err, QN_ERR_MEMORY, "%s: view \"%s\": no memory for its label", who,
                          qn__label(v->label));
    if (status == QN_OK)
        status = qn__allocate(who, c, label.data, v->dtype, v->record, &l, &o, out, err);
    qn__text_release(&label);
    return status;
}

qn_status qn_create_mirror(qn_context *c, int space, const qn_view *v, qn_view *out, qn_error *err)
{
    qn_status status = check_mirror("qn_create_mirror", space, v, out, err);
    return status ? status : make_mirror("qn_create_mirror", c, space, v, out, err);
}

qn_status qn_create_mirror_view(qn_context *c, int space, const qn_view *v, qn_view *out,
                                qn_error *err)
{
    const char *who = "qn_create_mirror_view";
    qn_status status = check_mirror(who, space, v, out, err);
    if (status)
        return status;
    if (!qn_space_can_access(space, v->space))
        return make_mirror(who, c, space, v, out, err);
    *out = qn_view_copy(v);
    return QN_OK;
}

qn_status qn_create_mirror_copy(qn_context *c, int space, const qn_view *v, qn_view *out,
                                qn_error *err)
{
    const char *who = "qn_create_mirror_copy";
    qn_view made;
    qn_status status = check_mirror(who, space, v, out, err);
    if (status)
        return status;
    if (qn_space_can_access(space, v->space)) {
        *out = qn_view_copy(v);
        return QN_OK;
    }
    status = make_mirror(who, c, space, v, &made, err);
    if (status)
        return status;
    status = qn__copy(who, c, QN_EXECUTOR_DEFAULT, &made, v, err);
    if (status)
        qn_view_release(&made);
    else
        *out = made;
    return status;
}
