/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_kernel.c: the kernel that prints into a view, for engines that know nothing of prints: see
 * ir/printed.h. Its dimensions are sequential, so that each iteration finds the number of lines
 * that those before it printed. A print is: that number plus one is stored, and a row with what is
 * printed, if there is a row for it.
 *
 * Stores may not stand in a reduce. A reduce that prints becomes two: a loop over its points, in
 * their order, that prints and forgets what it computes; and the reduce as it is without prints.
 * Nothing is stored in a reduce, so both load the same values.
 */
#include "ir/function.h"
#include "ir/printed.h"
#include "ir/replay.h"

#include <stdio.h>
#include <string.h>

typedef struct rewriter {
    const qn_kernel *k;
    qn_replay *kernel; /* the replay of k itself, not of a function */
    qn_param rows;
    int silent;    /* in so many reduces whose prints were done before */
    int loops;     /* in so many loops over points; assertions are those of the reduces */
    uint32_t dims; /* bit d: dimension d has an index here */
} rewriter;

/* ---------------------------------------------------------------- prints */

/** A value as the 64 bits of its canonical form, as an i64. */
static qn_val bits_of(qn_builder *b, int dtype, qn_val v)
{
    if (dtype == QN_F64 || dtype == QN_U64)
        return qn_bitcast(b, QN_I64, v);
    if (dtype == QN_F32)
        v = qn_bitcast(b, QN_U32, v);
    else if (qn__is_half(dtype))
        v = qn_bitcast(b, qn__dtype_of_bits(qn_dtype_bytes(dtype)), v);
    return qn_cast(b, QN_I64, v);
}

static qn_val number(qn_builder *b, int64_t value)
{
    return qn_const_int(b, QN_I64, value);
}

static void put(qn_builder *b, const rewriter *x, qn_val row, int word, qn_val value)
{
    qn_val index[2] = {row, number(b, word)};
    qn_store(b, x->rows, 2, index, value);
}

static void print_values(qn_replay *r, const rewriter *x, uint32_t i, qn_val row)
{
    const qn_inst *inst = &r->k->inst[i];
    const uint32_t *args = qn__args(r->k, i);
    int64_t site = qn__site_of_assert(qn__number_of_function(x->k, r->k), i);
    put(r->b, x, row, QN_PRINTED_SITE, number(r->b, site));
    put(r->b, x, row, QN_PRINTED_DIMS, number(r->b, (int64_t)x->dims));
    for (int d = 0; d < x->k->n_dims; d++)
        if (x->dims >> d & 1)
            put(r->b, x, row, QN_PRINTED_INDICES + d, x->kernel->value[x->k->dim[d]]);
    for (int n = 0; n < inst->n_args; n++)
        put(r->b, x, row, QN_PRINTED_INDICES + x->k->n_dims + n,
            bits_of(r->b, r->k->inst[args[n]].type, r->value[args[n]]));
}

static void print_line(qn_replay *r, uint32_t i)
{
    const rewriter *x = r->data;
    qn_val zero = number(r->b, 0), first[2] = {zero, zero};
    qn_val row = qn_add(r->b, qn_load(r->b, x->rows, 2, first), number(r->b, 1));
    qn_if(r->b, qn_lt(r->b, row, qn_extent(r->b, x->rows, 0)));
    print_values(r, x, i, row);
    qn_end_if(r->b, 0, NULL, NULL);
    qn_store(r->b, x->rows, 2, first, row);
}

/* ---------------------------------------------------------------- reduces */

static bool prints(const qn_kernel *k, uint32_t reduce)
{
    for (uint32_t i = k->inst[reduce].region[0]; i < k->inst[reduce].region[1]; i++)
        if (k->inst[i].op == QN_I_PRINT ||
            (k->inst[i].op == QN_I_CALL && qn__callee(k, i)->body.has_prints))
            return true;
    return false;
}

/** Prints what reduce i prints. Functions have no reduces, so r is the replay of the kernel. */
static void loop_over_points(qn_replay *r, rewriter *x, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    const uint32_t *dims = qn__args(r->k, i);
    qn_val reduction[QN_MAX_RANK];
    uint32_t outside = x->dims;
    for (int d = 0; d < inst->n_args; d++) {
        const uint32_t *bounds = qn__args(r->k, dims[d]);
        reduction[d] = r->value[dims[d]];
        r->value[dims[d]] =
            qn_for(r->b, r->value[bounds[0]], r->value[bounds[1]], 1, 0, NULL, NULL);
        x->dims |= UINT32_C(1) << r->k->inst[dims[d]].imm;
    }
    x->loops++;
    qn__replay_region(r, inst->region[0], inst->region[1] - 1);
    x->loops--;
    for (int d = 0; d < inst->n_args; d++) {
        qn_end_for(r->b, 0, NULL, NULL);
        r->value[dims[d]] = reduction[d];
    }
    x->dims = outside;
}

static bool replay_reduce(qn_replay *r, rewriter *x, uint32_t i)
{
    if (x->silent || !prints(r->k, i))
        return false;
    loop_over_points(r, x, i);
    x->silent++;
    qn__replay_region(r, i, r->k->inst[i].region[2]);
    x->silent--;
    return true;
}

/* ---------------------------------------------------------------- kernels */

static bool replay_dim(qn_replay *r, rewriter *x, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    if (inst->sub == QN_DIM_REDUCTION)
        return false;
    x->dims |= UINT32_C(1) << inst->imm;
    qn_val begin = r->value[qn__args(r->k, i)[0]], end = r->value[qn__args(r->k, i)[1]];
    r->value[i] = qn_sequential(r->b, begin, end);
    return true;
}

static bool rewrite(qn_replay *r, uint32_t i)
{
    rewriter *x = r->data;
    switch (r->k->inst[i].op) {
    case QN_I_DIM:
        return replay_dim(r, x, i);
    case QN_I_REDUCE:
        return replay_reduce(r, x, i);
    case QN_I_ASSERT:
        return x->loops > 0;
    case QN_I_PRINT:
        if (!x->silent)
            print_line(r, i);
        return true;
    case QN_I_CALL:
        qn__replay_body(r, i);
        return true;
    }
    return r->k->inst[i].op == QN_I_VIEW;
}

/** Declares the rows under a name that no parameter has. */
static void declare_rows(qn_replay *r, rewriter *x)
{
    char name[] = "printed_lines_00";
    bool is_taken = true;
    for (int n = 0; is_taken; n++) {
        snprintf(name, sizeof name, "printed_lines_%d", n);
        is_taken = false;
        for (int p = 0; p < r->k->n_params; p++)
            is_taken |= strcmp(r->k->param[p].name, name) == 0;
    }
    x->rows = qn_view_param(r->b, name, QN_I64, 2, 0);
}

static qn_status make(const qn_kernel *k, qn_kernel **out, qn_error *err)
{
    rewriter x = {.k = k};
    qn_replay r = {.k = k, .special = rewrite, .data = &x};
    qn_error why = {0};
    qn_status status = QN_ERR_MEMORY;
    x.kernel = &r;
    if (qn__replay_start(&r, k->name, k->flags)) {
        qn__replay_declare(&r, NULL);
        declare_rows(&r, &x);
        qn__replay_region(&r, 1, k->n_insts);
        status = qn_finish(r.b, out, &why);
        if (status == QN_OK)
            (*out)->prints_rows = true;
    }
    qn__replay_end(&r);
    return status ? qn__fail(err, status, "qn_launch: kernel \"%.60s\" with its prints: %.300s",
                             k->name, why.status ? why.message : "no memory")
                  : QN_OK;
}

qn_status qn__kernel_printing(const qn_kernel *k, const qn_kernel **out, qn_error *err)
{
    qn_kernel *mine = (qn_kernel *)(uintptr_t)k; /* only this kernel of it changes */
    qn_kernel *there = atomic_load_explicit(&mine->printing, memory_order_acquire), *made = NULL;
    if (!there) {
        qn_status status = make(k, &made, err);
        if (status)
            return status;
        if (!atomic_compare_exchange_strong_explicit(&mine->printing, &there, made,
                                                     memory_order_acq_rel, memory_order_acquire))
            qn_kernel_release(made); /* another thread was faster */
        else
            there = made;
    }
    *out = there;
    return QN_OK;
}
