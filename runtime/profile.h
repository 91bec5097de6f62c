/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h: counters by kernel, for contexts with the option `summary`. Kernels of equal text and
 * name are one. The caller holds the lock of the context.
 */
#ifndef QN_RUNTIME_PROFILE_H
#define QN_RUNTIME_PROFILE_H

#include "ir/ir.h"

/** Kernels that are told apart; the rest is one row. */
enum { QN_PROFILE_BUCKETS = 256, QN_PROFILE_KERNELS = 4096 };

typedef struct qn_profile_row {
    struct qn_profile_row *next; /* in a bucket */
    uint64_t hash;
    char *name;
    qn_kernel_counters count;
} qn_profile_row;

typedef struct qn_profile {
    qn_profile_row *bucket[QN_PROFILE_BUCKETS];
    qn_kernel_counters rest; /* of kernels beyond the bound, or without memory for a row */
    int32_t n;
} qn_profile;

/** Adds to the counters of a kernel; flops of -1 make them unknown. */
void qn__profile_add(qn_profile *p, const qn_kernel *k, const qn_kernel_counters *add);
void qn__profile_release(qn_profile *p);

#endif
