/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h: accesses of one view whose lanes lie between one another, such as the members of
 * records, the parts of complex numbers and the channels of pixels. Together they move whole
 * vectors.
 */
#ifndef QN_JIT_GROUP_H
#define QN_JIT_GROUP_H

#include "jit/analysis/analyse.h"
#include "jit/analysis/weave.h"

/** Loads, or stores, of one view in one region whose lanes lie n accesses apart, all within n
 * accesses of one another. */
typedef struct qn_group {
    uint32_t inst[QN_MOST_PLACES]; /* by place, lowest address first; of several loads of a place
                                      the first one. 0: nobody moves that place */
    int n;                         /* places: bytes from lane to lane by the bytes of an access */
    int place;                     /* of the access that was asked for */
    uint32_t known; /* bit p: place p is an element of the view, or of an element, in all lanes */
    uint32_t first, last; /* members in the order of the program */
} qn_group;

/** Bytes of an element of the view that an access moves, or moves a part of. */
int64_t qn__unit_of(const qn_kernel *k, const qn_facts *f, uint32_t access);
/**
 * The group of load or store i for lanes along lane_dim. Its loads may all be made where the first
 * of them stands, its stores where the last one does. False: there is none of two members or more.
 */
bool qn__group_of(const qn_analysis *a, int lane_dim, uint32_t i, qn_group *out);
/** Bytes from the element of m to that of i in each iteration, of one view; false: not a known
 * number. */
bool qn__bytes_apart(const qn_analysis *a, uint32_t i, uint32_t m, int64_t *apart);
/** Whether what a load reads is there until the last of a group of stores is made, but for what
 * this group writes. */
bool qn__may_wait(const qn_analysis *a, int lane_dim, uint32_t load, const qn_group *stores);
/** Bytes in which lanes hold every member of a group at least: what they are extended to where they
 * are used, or cut from before they are stored. */
int qn__held_bytes(const qn_analysis *a, const qn_group *x);
/** How some places of a group, which access i is of, move for so many lanes; 0: all places with a
 * member. False: one by one. */
bool qn__weave_of_group(const qn_analysis *a, const qn_group *x, uint32_t i, int lanes,
                        uint32_t places, qn_weave *out);
/** Whether access m is in group x, which is for these lanes. */
bool qn__is_of_group(const qn_analysis *a, int lane_dim, uint32_t m, const qn_group *x);

#endif
