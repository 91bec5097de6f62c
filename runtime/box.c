/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box.c: views in memory of the library, and functions that take or give by pointer what others
 * pass by value, for bindings (quern/embed.h).
 */
#include "quern/embed.h"

#include "ir/ir.h"

qn_view *qn_view_box(const qn_view *v)
{
    qn_view *box = qn__zalloc(1, sizeof *box);
    if (box && v)
        *box = qn_view_copy(v);
    return box;
}

void qn_view_unbox(qn_view *v)
{
    qn_view_release(v);
    qn__free(v);
}

int qn_view_rank(const qn_view *v)
{
    return v ? v->layout.rank : 0;
}

int qn_view_dtype(const qn_view *v)
{
    return v ? v->dtype : QN_VOID;
}

int qn_view_space(const qn_view *v)
{
    return v ? v->space : 0;
}

uint32_t qn_view_traits(const qn_view *v)
{
    return v ? v->traits : 0;
}

void *qn_view_data(const qn_view *v)
{
    return v ? v->data : NULL;
}

const char *qn_view_label(const qn_view *v)
{
    return v ? v->label : NULL;
}

/* ---------------------------------------------------------------- arguments */

static void set(qn_arg *args, int i, qn_arg value)
{
    if (args && i >= 0)
        args[i] = value;
}

void qn_args_set_view(qn_arg *args, int i, const qn_view *v)
{
    set(args, i, qn_arg_view(v));
}

void qn_args_set_int(qn_arg *args, int i, int dtype, int64_t value)
{
    set(args, i, qn_arg_int(dtype, value));
}

void qn_args_set_f32(qn_arg *args, int i, float value)
{
    set(args, i, qn_arg_f32(value));
}

void qn_args_set_f64(qn_arg *args, int i, double value)
{
    set(args, i, qn_arg_f64(value));
}

void qn_args_set_c64(qn_arg *args, int i, float re, float im)
{
    set(args, i, qn_arg_c64(re, im));
}

void qn_args_set_c128(qn_arg *args, int i, double re, double im)
{
    set(args, i, qn_arg_c128(re, im));
}

/* ---------------------------------------------------------------- copies */

void qn_view_copy_to(const qn_view *v, qn_view *out)
{
    if (out)
        *out = qn_view_copy(v);
}

void qn_layout_copy_to(const qn_layout *l, qn_layout *out)
{
    if (out)
        *out = qn_layout_copy(l);
}

qn_status qn_fill_arg(qn_context *c, const qn_view *v, const qn_arg *value, qn_error *err)
{
    if (!value)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_fill_arg: value is NULL");
    return qn__fail_as("qn_fill_arg", err, qn_fill(c, v, *value, err));
}
