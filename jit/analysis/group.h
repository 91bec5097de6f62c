/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h: accesses of one view whose lanes lie between one another, such as the members of records
 * and the parts of complex numbers. Together they move whole vectors.
 */
#ifndef QN_JIT_GROUP_H
#define QN_JIT_GROUP_H

#include "jit/analysis/analyse.h"

enum { QN_MOST_MEMBERS = 4 };

/** Loads, or stores, of one view in one region whose lanes lie n accesses apart, all within n
 * accesses of one another. */
typedef struct qn_group {
    uint32_t inst[QN_MOST_MEMBERS]; /* by place, lowest address first; 0: nobody moves that place */
    int n;                          /* places: bytes from lane to lane by the bytes of an access */
    int place;                      /* of the access that was asked for */
    uint32_t first, last;           /* members in the order of the program */
} qn_group;

/** The group of load or store i for lanes along lane_dim; written: qn__written_too. False: there is
 * none of two members or more, its members are of other sizes than 4 and 8 bytes, or what stands
 * between them may access what a member writes, or write what a member loads. */
bool qn__group_of(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, int lane_dim,
                 uint64_t written, uint32_t i, qn_group *out);

#endif
