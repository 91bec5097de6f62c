/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h: what the interpreter looks for while it debugs a kernel: races of parallel iterations
 * (ir/watch_race.c), and ops that make a NaN of numbers (ir/watch.c). The first find in iteration
 * order is kept, and becomes the error of the launch.
 */
#ifndef QN_IR_WATCH_H
#define QN_IR_WATCH_H

#include "ir/ir.h"

/** How an access touches memory. */
enum {
    QN_TOUCH_LOAD = 0,
    QN_TOUCH_STORE = 1,
    QN_TOUCH_ATOMIC_LOAD = 2,
    QN_TOUCH_ATOMIC_STORE = 3,
    QN_N_TOUCHES = 4
};

typedef struct qn_touch {
    uint64_t iteration;
    uintptr_t at; /* of the first byte */
    int64_t bytes;
    int32_t kind;   /* QN_TOUCH_... */
    int32_t access; /* its instruction in the kernel; in a function -1 - the argument */
} qn_touch;

/** Operands that a message shows. */
enum { QN_NAN_OPERANDS = 8 };

/** An op that made a NaN. */
typedef struct qn_nan_op {
    const qn_kernel *in; /* the kernel, or the body of a function; NULL: none was found */
    uint32_t inst;
    int n; /* of the operands that are numbers: their dtypes and bits */
    int dtype[QN_NAN_OPERANDS];
    uint64_t bits[QN_NAN_OPERANDS];
    int n_point; /* in a reduce of the kernel: indices of its point, outer reduces first */
    int64_t point[QN_MAX_RANK];
} qn_nan_op;

typedef struct qn_granule qn_granule;

typedef struct qn_watch {
    int flags;           /* of QN_DEBUG_... */
    bool failed;         /* no memory for granules */
    uint64_t watched;    /* bit p: accesses to argument p may meet a store */
    uint64_t per_step;   /* iterations of a step of the sequential dimensions */
    int shift;           /* a granule is 2^shift bytes; elements are whole granules */
    qn_granule *granule; /* [n_slots], a hash table by address */
    size_t n_slots, n_used;
    bool has_race;
    qn_touch first, second; /* of the race */
    qn_nan_op nan;
} qn_watch;

/** Begins to watch a launch with checked arguments; flags: QN_DEBUG_... . All-zero is a watch that
 * looks for nothing. */
void qn__watch_open(qn_watch *w, int flags, const qn_kernel *k, int n, const qn_arg *args,
                    const qn_domain *domain);
void qn__watch_close(qn_watch *w);
/** Notes an access to an argument. True for the first that races with one before; both are kept. */
bool qn__watch_touch(qn_watch *w, int argument, const qn_touch *t);
/** Whether a NaN is looked for and none was found. */
static inline bool qn__watch_seeks_nan(const qn_watch *w)
{
    return w && (w->flags & QN_DEBUG_NAN) && !w->nan.in;
}
/** Whether the bits are those of a NaN of the dtype. */
bool qn__is_nan(int dtype, uint64_t bits);
/** Notes the first op with a NaN as its result; true if it is one, as no operand is a NaN. Operands
 * that are no floats count as numbers. `in` is the kernel, or the body of a function, of
 * instruction i. */
bool qn__watch_result(qn_watch *w, const qn_kernel *in, uint32_t i, int dtype, uint64_t bits, int n,
                      const int *dtypes, const uint64_t *operands);
/** qn__interpret with a watch, or NULL. QN_ERR_MEMORY also if there is none for the granules
 * (ir/interp.c). */
qn_status qn__interpret_watched(const qn_kernel *k, int n, const qn_arg *args,
                                const qn_domain *domain, int checks, qn_watch *watch,
                                const qn_print_buffer *printed, qn_fault *fault, qn_error *err);

#endif
