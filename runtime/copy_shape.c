/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_shape.c: two layouts of equal extents as one list of dimensions with a stride on each side,
 * as few as possible. Which elements meet stays the same; in which order they are visited does not
 * matter to a copy.
 */
#include "runtime/copy.h"

/** Appends a dimension; false if there are too many. */
static bool add_dim(qn_copy_shape *s, int64_t extent, int64_t dst_stride, int64_t src_stride)
{
    if (extent == 1)
        return true;
    if (s->rank == QN_MAX_RANK)
        return false;
    s->extent[s->rank] = extent;
    s->dst_stride[s->rank] = dst_stride;
    s->src_stride[s->rank] = src_stride;
    s->rank++;
    return true;
}

/** Splits one dimension of both sides into steps on which each stays within one digit. False if a
 * digit of one side ends inside a digit of the other, or the extent cuts one. */
static bool split_dim(qn_copy_shape *s, const qn_layout *dst, const qn_layout *src, int d)
{
    qn_digit one_a, one_b;
    int n_a, n_b, j_a = 0, j_b = 0;
    const qn_digit *digit_a = qn__layout_dim_digits(dst, d, &one_a, &n_a);
    const qn_digit *digit_b = qn__layout_dim_digits(src, d, &one_b, &n_b);
    if (qn__layout_table(dst, d) || qn__layout_table(src, d))
        return false;
    int64_t left = dst->dim[d].extent;
    qn_digit a = digit_a[0], b = digit_b[0];
    while (left > 1) {
        bool is_last_a = j_a == n_a - 1, is_last_b = j_b == n_b - 1;
        int64_t extent_a = is_last_a ? left : a.extent, extent_b = is_last_b ? left : b.extent;
        int64_t step = extent_a < extent_b ? extent_a : extent_b;
        if (step < 1 || extent_a % step || extent_b % step || left % step ||
            !add_dim(s, step, a.stride, b.stride))
            return false;
        left /= step;
        bool ends_a = extent_a == step && !is_last_a, ends_b = extent_b == step && !is_last_b;
        int64_t run_a = 0, run_b = 0; /* no next step: not used */
        if (left > 1 &&
            (__builtin_mul_overflow(a.stride, step, &run_a) ||
             __builtin_mul_overflow(b.stride, step, &run_b)) &&
            !(ends_a && ends_b))
            return false;
        a = ends_a ? digit_a[++j_a] : (qn_digit){extent_a / step, run_a};
        b = ends_b ? digit_b[++j_b] : (qn_digit){extent_b / step, run_b};
    }
    return true;
}

/** Turns dimensions round along which dst runs down. */
static void turn(qn_copy_shape *s)
{
    for (int d = 0; d < s->rank; d++) {
        if (s->dst_stride[d] >= 0)
            continue;
        s->dst += (s->extent[d] - 1) * s->dst_stride[d] * s->dst_bytes;
        s->src += (s->extent[d] - 1) * s->src_stride[d] * s->src_bytes;
        s->dst_stride[d] = -s->dst_stride[d];
        s->src_stride[d] = -s->src_stride[d];
    }
}

static void swap_numbers(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/** Largest stride of dst first. */
static void sort(qn_copy_shape *s)
{
    for (int i = 1; i < s->rank; i++)
        for (int j = i; j > 0 && s->dst_stride[j - 1] < s->dst_stride[j]; j--) {
            swap_numbers(&s->extent[j - 1], &s->extent[j]);
            swap_numbers(&s->dst_stride[j - 1], &s->dst_stride[j]);
            swap_numbers(&s->src_stride[j - 1], &s->src_stride[j]);
        }
}

/** Whether dimension d runs on where the faster dimension d + 1 ends, on both sides. */
static bool runs_on(const qn_copy_shape *s, int d)
{
    int64_t dst_run, src_run;
    return !__builtin_mul_overflow(s->extent[d + 1], s->dst_stride[d + 1], &dst_run) &&
           !__builtin_mul_overflow(s->extent[d + 1], s->src_stride[d + 1], &src_run) &&
           dst_run == s->dst_stride[d] && src_run == s->src_stride[d];
}

static void join(qn_copy_shape *s)
{
    for (int d = s->rank - 2; d >= 0; d--) {
        if (!runs_on(s, d))
            continue;
        s->extent[d] *= s->extent[d + 1]; /* at most the number of elements */
        s->dst_stride[d] = s->dst_stride[d + 1];
        s->src_stride[d] = s->src_stride[d + 1];
        for (int k = d + 1; k + 1 < s->rank; k++) {
            s->extent[k] = s->extent[k + 1];
            s->dst_stride[k] = s->dst_stride[k + 1];
            s->src_stride[k] = s->src_stride[k + 1];
        }
        s->rank--;
    }
}

bool qn__copy_shape(const qn_view *dst, const qn_view *src, qn_copy_shape *out)
{
    out->dst = dst->data;
    out->src = src->data;
    out->dst_bytes = qn__element_bytes(dst);
    out->src_bytes = qn__element_bytes(src);
    out->rank = 0;
    for (int d = 0; d < dst->layout.rank; d++)
        if (!split_dim(out, &dst->layout, &src->layout, d))
            return false;
    turn(out);
    sort(out);
    join(out);
    return true;
}
