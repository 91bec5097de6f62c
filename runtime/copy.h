/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h: what copies share with the functions that make and resize views, and what a context keeps
 * for them.
 */
#ifndef QN_RUNTIME_COPY_H
#define QN_RUNTIME_COPY_H

#include "ir/ir.h"

/** A kernel that copies, converts or fills, in the list of a context. */
typedef struct qn_copy_kernel {
    struct qn_copy_kernel *next;
    int dst, src, rank; /* dtypes; src is QN_VOID: fills */
    int n_words;        /* more than 1: elements are so many of dtype dst */
    qn_kernel *kernel;
} qn_copy_kernel;

/** The kernel for these dtypes and rank, made when it is first asked for; borrowed from the context
 * (copy_kernel.c). */
qn_status qn__copy_kernel(qn_context *c, const char *who, int dst, int src, int n_words, int rank,
                          const qn_kernel **out, qn_error *err);
/** Frees the list of a context. */
void qn__copy_kernels_release(qn_context *c);

/** qn_deep_copy on behalf of `who`; executor 0 is the context's. */
qn_status qn__copy(const char *who, qn_context *c, int executor, const qn_view *dst,
                   const qn_view *src, qn_error *err);
/** Sets all elements, of any dtype, to zero bytes, on behalf of `who`. */
qn_status qn__fill_zero(const char *who, qn_context *c, const qn_view *v, qn_error *err);

/** Two arrays of one shape, dimension by dimension, the slowest of dst first (copy_shape.c). */
typedef struct qn_copy_shape {
    char *dst;
    const char *src;
    int64_t dst_bytes, src_bytes; /* of an element */
    int rank;
    int64_t extent[QN_MAX_RANK], dst_stride[QN_MAX_RANK], src_stride[QN_MAX_RANK];
} qn_copy_shape;

/**
 * The shape of checked views of equal extents that are not empty: digits of both sides split where
 * one of them is split, negative strides of dst turned round, sorted, and joined where they run on.
 * False if the digits do not fit each other, or are too many.
 */
bool qn__copy_shape(const qn_view *dst, const qn_view *src, qn_copy_shape *out);

/** Who copies, and where. */
typedef struct qn_copier {
    const char *who;
    qn_context *context;
    int executor;
    qn_stream *stream; /* executor QN_CUDA; borrowed */
    bool takes_faults; /* a fault of this stream, which had none, is of the copy */
} qn_copier;
/** Runs the kernel that copies or converts `src`, or fills with `bits` if src is NULL. */
qn_status qn__copy_launch(const qn_copier *p, const qn_view *dst, const qn_view *src, uint64_t bits,
                          qn_error *err);
/** A view of one side of a shape, a borrow of `v`'s owner and label. */
qn_view qn__copy_side(const qn_copy_shape *s, const qn_view *v, bool is_dst);
/** Whether a side is one run of elements. */
bool qn__copy_is_run(const qn_copy_shape *s, const int64_t *stride);

/** Copies bytes, or zeroes them if src is NULL, in pieces on the threads of a context if it is
 * worth it and `executor` is QN_THREADS (copy_bytes.c). */
void qn__copy_bytes(qn_context *c, int executor, char *dst, const char *src, int64_t bytes);
/** Repeats an element of 1, 2, 4 or 8 bytes. */
void qn__fill_bytes(qn_context *c, int executor, char *dst, const void *element,
                    int64_t element_bytes, int64_t bytes);
/** The executor that is meant: a valid one, or the context's; QN_SERIAL without context. */
qn_status qn__executor(const char *who, const qn_context *c, int wanted, int *out, qn_error *err);

#endif
