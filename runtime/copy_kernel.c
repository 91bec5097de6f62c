/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_kernel.c: the kernels that copies run, one for each pair of dtypes and rank. A context makes
 * one when it is first needed and keeps it; the code behind it is found as for every kernel.
 */
#include "runtime/context.h"
#include "runtime/copy.h"

/** What is stored: the value loaded from src, converted, or the scalar. */
static qn_val build_value(qn_builder *b, qn_param in, qn_val scalar, int dst, int src, int rank,
                          const qn_val *index)
{
    if (src == QN_VOID)
        return scalar;
    qn_val x = qn_load(b, in, rank, index);
    if (dst == src)
        return x;
    if (dst == QN_BOOL && qn__dtype_class(src) == QN_CLASS_F)
        return qn_ne(b, x, qn_const_float(b, src, 0));
    return qn_cast(b, dst, x);
}

/** A parameter of one dtype, or of records of n words of it. */
static qn_param add_param(qn_builder *b, const char *name, int dtype, int n_words, int rank,
                          uint32_t traits)
{
    qn_field field[QN_MAX_FIELDS] = {{0}};
    qn_record *record = NULL;
    qn_param p = {0};
    if (n_words == 1)
        return qn_view_param(b, name, dtype, rank, traits);
    for (int i = 0; i < n_words; i++)
        field[i] = (qn_field){.dtype = dtype, .offset = QN_NEXT};
    if (qn_record_new(n_words, field, 0, 0, &record, NULL) == QN_OK)
        p = qn_record_param(b, name, record, rank, traits);
    else /* of memory: recorded as the builder's error */
        p = qn_record_param(b, name, NULL, rank, traits);
    qn_record_release(record);
    return p;
}

static qn_kernel *build(int dst, int src, int n_words, int rank, qn_error *err)
{
    qn_builder *b = qn_builder_new(src == QN_VOID ? "fill" : dst == src ? "copy" : "convert", 0);
    qn_kernel *k = NULL;
    qn_param in = {0};
    qn_val scalar = {0}, index[QN_MAX_RANK];
    qn_param out = add_param(b, "dst", dst, n_words, rank, 0);
    if (src == QN_VOID)
        scalar = qn_scalar_param(b, "value", dst);
    else
        in = add_param(b, "src", src, n_words, rank, QN_READ_ONLY);
    for (int d = 0; d < rank; d++)
        index[d] = qn_parallel(b, qn_index(b, 0), qn_extent(b, out, d));
    qn_store(b, out, rank, index, build_value(b, in, scalar, dst, src, rank, index));
    if (!b)
        qn__fail(err, QN_ERR_MEMORY, "no memory");
    else
        qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

static const qn_copy_kernel *find(const qn_context *c, int dst, int src, int n_words, int rank)
{
    const qn_copy_kernel *at = c->copy_kernels;
    while (at && (at->dst != dst || at->src != src || at->n_words != n_words || at->rank != rank))
        at = at->next;
    return at;
}

/** Puts a kernel into the list, unless another thread was faster; returns what is in it. */
static const qn_copy_kernel *enter(qn_context *c, qn_copy_kernel *made)
{
    qn__lock(c);
    const qn_copy_kernel *found = find(c, made->dst, made->src, made->n_words, made->rank);
    if (!found) {
        made->next = c->copy_kernels;
        c->copy_kernels = made;
    }
    qn__unlock(c);
    if (found) {
        qn_kernel_release(made->kernel);
        qn__free(made);
    }
    return found ? found : made;
}

qn_status qn__copy_kernel(qn_context *c, const char *who, int dst, int src, int n_words, int rank,
                          const qn_kernel **out, qn_error *err)
{
    qn__lock(c);
    const qn_copy_kernel *found = find(c, dst, src, n_words, rank);
    qn__unlock(c);
    if (!found) {
        qn_error inner = {0};
        qn_copy_kernel *made = qn__alloc(sizeof *made);
        qn_kernel *k = made ? build(dst, src, n_words, rank, &inner) : NULL;
        if (!k) {
            qn__free(made);
            return qn__fail(err, made ? (qn_status)inner.status : QN_ERR_MEMORY,
                            "%s: kernel of %s, %s and rank %d: %s", who, qn_dtype_name(dst),
                            qn_dtype_name(src), rank, made ? inner.message : "no memory");
        }
        *made = (qn_copy_kernel){NULL, dst, src, rank, n_words, k};
        found = enter(c, made);
    }
    *out = found->kernel;
    return QN_OK;
}

void qn__copy_kernels_release(qn_context *c)
{
    while (c->copy_kernels) {
        qn_copy_kernel *first = c->copy_kernels;
        c->copy_kernels = first->next;
        qn_kernel_release(first->kernel);
        qn__free(first);
    }
}
