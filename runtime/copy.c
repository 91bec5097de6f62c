/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c: copies between views of equal extents, with and without conversion, and fills. What runs
 * on without gaps on both sides is plain memory; everything else is a kernel, launched as any
 * other, so that it falls back to the interpreter where code cannot be had. Elements are moved as
 * unsigned integers of their size: a copy keeps all bits.
 */
#include "runtime/copy.h"

#include "quern/cuda.h"
#include "runtime/context.h"
#include "runtime/cuda/copy.h"
#include "runtime/watch.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_BYTES = 150, WHO_BYTES = 120, MOST_WORDS = 16 };

/* ---------------------------------------------------------------- checks */

/** Text of label and extents: "q" [5,3]. */
static const char *print_shape(const qn_view *v, char *out)
{
    int64_t extent[QN_MAX_RANK];
    for (int d = 0; d < v->layout.rank; d++)
        extent[d] = v->layout.dim[d].extent;
    int at = snprintf(out, SHAPE_BYTES, "\"%.60s\" ", qn__label(v->label));
    qn__print_numbers(out + at, (size_t)(SHAPE_BYTES - at), v->layout.rank, extent);
    return out;
}

/** The check of the struct; views without data, default views among them, need only a rank. */
static qn_status check_view(const char *who, const char *name, const qn_view *v, qn_error *err)
{
    if (!v)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, name);
    if (v->data || v->layout.rank < 0 || v->layout.rank > QN_MAX_RANK || v->layout.digits)
        return qn__view_check(v, who, err);
    return QN_OK;
}

static qn_status check_shapes(const char *who, const qn_view *dst, const qn_view *src,
                              qn_error *err)
{
    bool is_same = dst->layout.rank == src->layout.rank;
    for (int d = 0; is_same && d < dst->layout.rank; d++)
        is_same = dst->layout.dim[d].extent == src->layout.dim[d].extent;
    if (is_same && !dst->data != !src->data && qn_layout_size(&dst->layout) > 0) {
        const qn_view *empty = dst->data ? src : dst;
        return qn__fail(err, QN_ERR_NULL_DATA, "%s: view \"%s\": data is NULL for %lld elements",
                        who, qn__label(empty->label), (long long)qn_layout_size(&empty->layout));
    }
    if (is_same)
        return QN_OK;
    char to[SHAPE_BYTES], from[SHAPE_BYTES];
    return qn__fail(err, QN_ERR_EXTENT, "%s: extents differ: dst %s, src %s", who,
                    print_shape(dst, to), print_shape(src, from));
}

/** What is promised of lists in kernels is checked here: no position stands for the element of
 * another. */
static qn_status check_lists(const char *who, const qn_view *v, qn_error *err)
{
    char name[WHO_BYTES];
    snprintf(name, sizeof name, "%s: view \"%.60s\"", who, qn__label(v->label));
    return qn__layout_check_lists(&v->layout, name, err);
}

static qn_status check_written(const char *who, const qn_view *v, qn_error *err)
{
    if (v->traits & QN_READ_ONLY)
        return qn__fail(err, QN_ERR_READ_ONLY, "%s: view \"%s\" is read-only", who,
                        qn__label(v->label));
    if (v->data && !qn__view_is_storable(v)) {
        char layout[200];
        qn_layout_print(&v->layout, layout, sizeof layout);
        return qn__fail(err, QN_ERR_NOT_INJECTIVE,
                        "%s: view \"%s\": its layout %s may map two indices to one element", who,
                        qn__label(v->label), layout);
    }
    return v->data && qn__layout_tables(&v->layout) ? check_lists(who, v, err) : QN_OK;
}

static qn_status check_pair(const char *who, const qn_view *dst, const qn_view *src, qn_error *err)
{
    qn_status status = check_view(who, "dst", dst, err);
    if (status == QN_OK)
        status = check_view(who, "src", src, err);
    if (status == QN_OK)
        status = check_shapes(who, dst, src, err);
    if (status == QN_OK)
        status = check_written(who, dst, err);
    return status;
}

static qn_status check_dtypes(const char *who, const qn_view *dst, const qn_view *src,
                              qn_error *err)
{
    if (dst && src && dst->dtype != src->dtype)
        return qn__fail(err, QN_ERR_DTYPE, "%s: dst \"%s\" is of %s, src \"%s\" is of %s", who,
                        qn__label(dst->label), qn_dtype_name(dst->dtype), qn__label(src->label),
                        qn_dtype_name(src->dtype));
    if (dst && src && !qn_record_equal(dst->record, src->record))
        return qn__fail(err, QN_ERR_DTYPE,
                        "%s: dst \"%s\" and src \"%s\" are of different record types", who,
                        qn__label(dst->label), qn__label(src->label));
    return QN_OK;
}

/** The view with lower bounds 0, no traits, and no reference of its own. */
static qn_view plain_view(const qn_view *v)
{
    qn_view plain = *v;
    plain.traits = 0;
    for (int d = 0; d < plain.layout.rank; d++)
        plain.layout.dim[d].lower = 0;
    return plain;
}

/* ---------------------------------------------------------------- running */

/** Whether an element is an integer's size, so that bits can stand for it. */
static bool is_word(int dtype)
{
    int64_t bytes = qn_dtype_bytes(dtype);
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/** Bytes of the largest word of which both views' elements consist, wherever they lie. */
static int64_t word_bytes(const qn_view *dst, const qn_view *src)
{
    uintptr_t bits = (uintptr_t)dst->data | (uintptr_t)src->data | (uintptr_t)qn__unit_bytes(dst) |
                     (uintptr_t)qn__unit_bytes(src) | (uintptr_t)qn__element_bytes(dst) | 8;
    return (int64_t)(bits & (0 - bits));
}

static qn_status fail_context(const char *who, const qn_view *dst, qn_error *err)
{
    return qn__fail(err, QN_ERR_ARGUMENT,
                    "%s: context is NULL, and writing view \"%s\" takes a kernel: its elements do "
                    "not run on without gaps, or in another order",
                    who, qn__label(dst->label));
}

qn_status qn__copy_launch(const qn_copier *p, const qn_view *dst, const qn_view *src,
                          uint64_t bits, qn_error *err)
{
    qn_context *c = p->context;
    if (!c)
        return fail_context(p->who, dst, err);
    const qn_kernel *k = NULL;
    qn_view to = *dst, from = src ? *src : (qn_view){0};
    int rank = dst->layout.rank, n_words = 1;
    if (src && src->dtype == dst->dtype) {
        int64_t bytes = word_bytes(dst, src);
        n_words = (int)(qn__element_bytes(dst) / bytes);
        to.dtype = from.dtype = qn__dtype_of_bits(bytes);
    }
    qn_status status = qn__copy_kernel(c, p->who, to.dtype, from.dtype, n_words, rank, &k, err);
    if (status)
        return status;
    if (n_words > 1)
        to.dtype = from.dtype = QN_RECORD;
    if (src && src->dtype == dst->dtype)
        to.record = from.record = k->param[0].record;
    const qn_arg value = {.dtype = dst->dtype, .bits = bits};
    const qn_arg args[2] = {qn_arg_view(&to), src ? qn_arg_view(&from) : value};
    bool has_lists = qn__layout_tables(&dst->layout) || (src && qn__layout_tables(&src->layout));
    qn_options o = {.bytes = sizeof o,
                    .executor = p->executor,
                    .checks = QN_CHECKS_NONE,
                    .stream = p->stream};
    if (has_lists) /* what they hold is known only there */
        o.checks = QN_CHECKS_REPORT;
    status = qn_launch(c, k, 2, args, &o, err);
    return status && err ? qn__fail(err, status, "%s: %s", p->who, err->message) : status;
}

/** Copies elements one by one, for large ones. */
static qn_status copy_each(const qn_view *dst, const qn_view *src, qn_error *err)
{
    int64_t index[QN_MAX_RANK] = {0};
    int rank = dst->layout.rank, d;
    do {
        void *to, *from;
        qn_status status = qn_view_at(dst, rank, index, &to, err);
        if (status == QN_OK)
            status = qn_view_at(src, rank, index, &from, err);
        if (status)
            return status;
        memcpy(to, from, (size_t)qn__element_bytes(dst));
        for (d = rank - 1; d >= 0 && ++index[d] == dst->layout.dim[d].extent; d--)
            index[d] = 0;
    } while (d >= 0);
    return QN_OK;
}

qn_view qn__copy_side(const qn_copy_shape *s, const qn_view *v, bool is_dst)
{
    qn_view side = {.data = is_dst ? s->dst : (char *)(uintptr_t)s->src,
                    .owner = v->owner,
                    .label = v->label,
                    .dtype = v->dtype,
                    .record = v->record,
                    .space = v->space};
    side.layout.rank = s->rank;
    for (int d = 0; d < s->rank; d++)
        side.layout.dim[d] =
            (qn_dim){0, s->extent[d], is_dst ? s->dst_stride[d] : s->src_stride[d]};
    return side;
}

bool qn__copy_is_run(const qn_copy_shape *s, const int64_t *stride)
{
    return s->rank == 0 || (s->rank == 1 && stride[0] == 1);
}

static int64_t count(const qn_copy_shape *s)
{
    return s->rank ? s->extent[0] : 1;
}

/** Runs the kernel on a shape of these views. */
static qn_status run_shape(const qn_copier *p, const qn_copy_shape *s, const qn_view *dst,
                           const qn_view *src, qn_error *err)
{
    qn_view to = qn__copy_side(s, dst, true), from = qn__copy_side(s, src, false);
    return qn__copy_launch(p, &to, &from, 0, err);
}

/** Copies checked, disjoint views that are not empty; they have lower bounds 0 and no traits. */
static qn_status move_elements(const qn_copier *p, const qn_view *dst, const qn_view *src,
                               qn_error *err)
{
    qn_copy_shape s;
    bool is_copy = dst->dtype == src->dtype, has_units = dst->unit || src->unit;
    if (is_copy && !has_units && qn__layout_equal(&dst->layout, &src->layout) &&
        qn_layout_is_contiguous(&dst->layout)) {
        int64_t begin, end;
        qn__view_bytes(dst, &begin, &end);
        qn__copy_bytes(p->context, p->executor, (char *)dst->data + begin,
                       (const char *)src->data + begin, end - begin);
        return QN_OK;
    }
    if (is_copy && qn__element_bytes(dst) / word_bytes(dst, src) > MOST_WORDS)
        return copy_each(dst, src, err);
    if (has_units || !qn__copy_shape(dst, src, &s))
        return qn__copy_launch(p, dst, src, 0, err);
    if (is_copy && qn__copy_is_run(&s, s.dst_stride) && qn__copy_is_run(&s, s.src_stride)) {
        qn__copy_bytes(p->context, p->executor, s.dst, s.src, count(&s) * s.dst_bytes);
        return QN_OK;
    }
    return run_shape(p, &s, dst, src, err);
}

/** Moves elements where the copier or the spaces ask for that to be done. */
static qn_status move_where(qn_copier *p, const qn_view *dst, const qn_view *src, qn_error *err)
{
    if (p->executor == QN_CUDA)
        return qn__cuda_copy(p, dst, src, err);
    if (qn__space_is_host(dst->space) && qn__space_is_host(src->space))
        return move_elements(p, dst, src, err);
    qn_status status = qn__cuda_take_over(p, dst, src, err);
    if (status == QN_OK)
        status = qn__cuda_copy(p, dst, src, err);
    return qn__cuda_hand_back(p, status, err);
}

/** Copies checked views. */
static qn_status copy_checked(qn_copier *p, const qn_view *dst, const qn_view *src, qn_error *err)
{
    qn_view to = plain_view(dst), from = plain_view(src);
    int relation = qn__view_relation(&to, &from);
    if (relation == QN_SAME && dst->dtype == src->dtype)
        return QN_OK;
    if (relation != QN_DISJOINT)
        return qn__fail(err, QN_ERR_OVERLAP, "%s: dst \"%s\" and src \"%s\" share elements", p->who,
                        qn__label(dst->label), qn__label(src->label));
    if (qn_view_size(dst) == 0)
        return QN_OK;
    if (!p->context || !qn__is_watched(p->context))
        return move_where(p, &to, &from, err);
    const qn_watch watch = qn__watch_copy(p->context, dst, src);
    qn_status status = move_where(p, &to, &from, err);
    qn__watch_copied(p->context, &watch, dst, src);
    return status;
}

/* ---------------------------------------------------------------- public */

static qn_status copy_on(qn_copier *p, bool may_convert, const qn_view *dst, const qn_view *src,
                         qn_error *err)
{
    qn_status status = QN_OK;
    if (p->executor != QN_CUDA)
        status = qn__executor(p->who, p->context, p->executor, &p->executor, err);
    bool has_record = dst && src && (dst->dtype == QN_RECORD || src->dtype == QN_RECORD);
    if (status == QN_OK && (!may_convert || has_record)) /* records are not converted */
        status = check_dtypes(p->who, dst, src, err);
    if (status == QN_OK)
        status = check_pair(p->who, dst, src, err);
    return status ? status : copy_checked(p, dst, src, err);
}

qn_status qn__copy(const char *who, qn_context *c, int executor, const qn_view *dst,
                   const qn_view *src, qn_error *err)
{
    return copy_on(&(qn_copier){who, c, executor, NULL, false}, false, dst, src, err);
}

qn_status qn_deep_copy(qn_context *c, const qn_view *dst, const qn_view *src, qn_error *err)
{
    return qn__copy("qn_deep_copy", c, QN_EXECUTOR_DEFAULT, dst, src, err);
}

qn_status qn_deep_copy_on(qn_context *c, int executor, const qn_view *dst, const qn_view *src,
                          qn_error *err)
{
    const char *who = "qn_deep_copy_on";
    if (executor == QN_CUDA)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: executor cuda: give a stream, qn_stream_copy",
                        who);
    return qn__copy(who, c, executor, dst, src, err);
}

qn_status qn_convert_copy(qn_context *c, int executor, const qn_view *dst, const qn_view *src,
                          qn_error *err)
{
    const char *who = "qn_convert_copy";
    if (executor == QN_CUDA)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: executor cuda: give a stream, qn_stream_convert",
                        who);
    return copy_on(&(qn_copier){who, c, executor, NULL, false}, true, dst, src, err);
}

/** Fills a checked view of scalars that is not empty. */
static qn_status fill_elements(const qn_copier *p, const qn_view *v, uint64_t bits, qn_error *err)
{
    unsigned char element[8];
    if (qn_layout_is_contiguous(&v->layout) && !v->unit) {
        int64_t begin, end, bytes = qn_dtype_bytes(v->dtype);
        qn__store_element(v->dtype, element, bits);
        qn__view_bytes(v, &begin, &end);
        if (p->executor != QN_CUDA) {
            qn__fill_bytes(p->context, p->executor, (char *)v->data + begin, element, bytes,
                           end - begin);
            return QN_OK;
        }
        if (qn__cuda_can_set(element, bytes))
            return qn__cuda_set(p, v, (char *)v->data + begin, element, bytes, end - begin, err);
    }
    qn_view plain = plain_view(v);
    qn_copy_shape s;
    plain.dtype = qn__dtype_of_bits(qn_dtype_bytes(v->dtype));
    bits = qn__canonical(v->dtype, bits);
    if (plain.unit || !qn__copy_shape(&plain, &plain, &s))
        return qn__copy_launch(p, &plain, NULL, bits, err);
    qn_view side = qn__copy_side(&s, &plain, true);
    return qn__copy_launch(p, &side, NULL, bits, err);
}

static qn_status check_fill(qn_copier *p, const qn_view *v, qn_error *err)
{
    qn_status status = QN_OK;
    if (p->executor != QN_CUDA)
        status = qn__executor(p->who, p->context, p->executor, &p->executor, err);
    if (status == QN_OK)
        status = check_view(p->who, "view", v, err);
    return status ? status : check_written(p->who, v, err);
}

/** Fills with an element: a copy from a view whose strides are 0. */
static qn_status fill_value(qn_copier *p, const qn_view *v, const void *value, qn_error *err)
{
    qn_status status = check_fill(p, v, err);
    if (status || qn_view_size(v) == 0)
        return status;
    _Alignas(8) unsigned char small[64];
    int64_t bytes = qn__element_bytes(v), zero[QN_MAX_RANK] = {0}, extents[QN_MAX_RANK];
    void *large = bytes > (int64_t)sizeof small ? qn__alloc((size_t)bytes) : NULL;
    if (bytes > (int64_t)sizeof small && !large)
        return qn__fail(err, QN_ERR_MEMORY, "%s: view \"%s\": no memory for an element", p->who,
                        qn__label(v->label));
    qn_view to = plain_view(v),
            from = {.data = large ? large : small, .dtype = v->dtype, .record = v->record};
    memcpy(from.data, value, (size_t)bytes);
    for (int d = 0; d < v->layout.rank; d++)
        extents[d] = v->layout.dim[d].extent;
    status = qn_layout_strided(v->layout.rank, extents, zero, &from.layout, err);
    if (status == QN_OK)
        status = move_where(p, &to, &from, err);
    qn__free(large);
    return status;
}

qn_status qn_fill_value(qn_context *c, const qn_view *v, const void *value, qn_error *err)
{
    const char *who = "qn_fill_value";
    if (!value)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: value is NULL", who);
    return fill_value(&(qn_copier){who, c, QN_EXECUTOR_DEFAULT, NULL, false}, v, value, err);
}

/** Fills a view of elements of 8 to 64 bits. */
static qn_status fill_words(qn_copier *p, const qn_view *v, uint64_t bits, qn_error *err)
{
    if (p->executor == QN_CUDA || qn__space_is_host(v->space))
        return fill_elements(p, v, bits, err);
    qn_status status = qn__cuda_take_over(p, v, v, err);
    if (status == QN_OK)
        status = fill_elements(p, v, bits, err);
    return qn__cuda_hand_back(p, status, err);
}

static qn_status fill_on(qn_copier *p, const qn_view *v, const qn_arg *value, qn_error *err)
{
    qn_status status = check_fill(p, v, err);
    if (status)
        return status;
    if (value->view || value->dtype != v->dtype)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": its elements are %s, the value is %s",
                        p->who, qn__label(v->label), qn_dtype_name(v->dtype),
                        value->view ? "a view" : qn_dtype_name(value->dtype));
    if (qn_view_size(v) == 0)
        return QN_OK;
    const uint64_t parts[2] = {value->bits, value->high};
    return is_word(v->dtype) ? fill_words(p, v, value->bits, err) : fill_value(p, v, parts, err);
}

qn_status qn_fill(qn_context *c, const qn_view *v, qn_arg value, qn_error *err)
{
    return fill_on(&(qn_copier){"qn_fill", c, QN_EXECUTOR_DEFAULT, NULL, false}, v, &value, err);
}

qn_status qn__fill_zero(const char *who, qn_context *c, const qn_view *v, qn_error *err)
{
    qn_copier p = {who, c, QN_EXECUTOR_DEFAULT, NULL, false};
    qn_status status = check_fill(&p, v, err);
    if (status || qn_view_size(v) == 0)
        return status;
    if (qn__space_is_host(v->space) && qn_layout_is_contiguous(&v->layout) && !v->unit) {
        const unsigned char zero = 0;
        int64_t begin, end;
        qn__view_bytes(v, &begin, &end);
        qn__fill_bytes(c, p.executor, (char *)v->data + begin, &zero, 1, end - begin);
        return QN_OK;
    }
    if (is_word(v->dtype))
        return fill_words(&p, v, 0, err);
    void *element = qn__zalloc(1, (size_t)qn__element_bytes(v));
    if (!element)
        return qn__fail(err, QN_ERR_MEMORY, "%s: view \"%s\": no memory for an element", who,
                        qn__label(v->label));
    status = fill_value(&p, v, element, err);
    qn__free(element);
    return status;
}

/** A copier for work of a stream. */
static qn_status on_stream(const char *who, qn_stream *s, qn_copier *out, qn_error *err)
{
    if (!s)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: stream is NULL", who);
    *out = (qn_copier){who, s->gpu->owner, QN_CUDA, s, false};
    return QN_OK;
}

qn_status qn_stream_copy(qn_stream *s, const qn_view *dst, const qn_view *src, qn_error *err)
{
    qn_copier p;
    qn_status status = on_stream("qn_stream_copy", s, &p, err);
    return status ? status : copy_on(&p, false, dst, src, err);
}

qn_status qn_stream_convert(qn_stream *s, const qn_view *dst, const qn_view *src, qn_error *err)
{
    qn_copier p;
    qn_status status = on_stream("qn_stream_convert", s, &p, err);
    return status ? status : copy_on(&p, true, dst, src, err);
}

qn_status qn_stream_fill(qn_stream *s, const qn_view *v, qn_arg value, qn_error *err)
{
    qn_copier p;
    qn_status status = on_stream("qn_stream_fill", s, &p, err);
    return status ? status : fill_on(&p, v, &value, err);
}

qn_status qn_read_scalar(const qn_view *v, uint64_t *bits, qn_error *err)
{
    const char *who = "qn_read_scalar";
    if (!v || !bits)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "bits" : "view");
    qn_status status = qn__view_check(v, who, err);
    if (status)
        return status;
    if (v->layout.rank != 0)
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%s\": rank %d, expected 0", who,
                        qn__label(v->label), v->layout.rank);
    if (!is_word(v->dtype))
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: view \"%s\": %s is not of 8 to 64 bits", who,
                        qn__label(v->label), qn_dtype_name(v->dtype));
    uint64_t element = 0;
    if (qn__space_is_host(v->space)) {
        *bits = qn__load_element(v->dtype, v->data);
        return QN_OK;
    }
    status = qn__cuda_read(who, v, &element, err);
    if (status == QN_OK)
        *bits = qn__load_element(v->dtype, &element);
    return status;
}
