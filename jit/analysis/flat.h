/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat.h: members of a group of stores that are computed alike, such as the channels of a pixel or
 * the coordinates of a particle. Vectors then lie over the members as they lie in memory, each
 * with several members of several lanes, and nothing is put into the order of the lanes and back.
 */
#ifndef QN_JIT_FLAT_H
#define QN_JIT_FLAT_H

#include "jit/analysis/group.h"

enum { QN_MOST_FLAT = 48 };

/**
 * What the members of a flat group compute at one place of their expressions.
 * LOAD: elements of a group of loads of as many places.
 * SPREAD: one value for all members, which differs between lanes.
 * UNIFORM: a value for each member that all lanes have.
 * OP: one pure op of other nodes.
 */
enum { QN_FLAT_LOAD, QN_FLAT_SPREAD, QN_FLAT_UNIFORM, QN_FLAT_OP };

typedef struct qn_flat_node {
    int kind;
    uint32_t inst[QN_MOST_PLACES]; /* of the member at each place; 0: nobody is there */
    uint8_t arg[3];                /* OP: nodes of the operands, which stand before this one */
    uint8_t place[QN_MOST_PLACES]; /* LOAD: of the element that each member loads */
    uint32_t readable;             /* LOAD: bit p: place p may be loaded in all lanes, */
    uint32_t group;                /* and the first load of the group */
} qn_flat_node;

typedef struct qn_flat {
    qn_group group;   /* of the stores */
    uint32_t members; /* bit p: place p is stored */
    int first;        /* the lowest place that is stored */
    qn_flat_node node[QN_MOST_FLAT];
    int n;                  /* nodes; the last one is what is stored */
    bool reads_stored;      /* a load reads a view that the kernel writes */
    double shuffles, saved; /* of a step: what spreads and permutes; that of weaves, which falls
                               away */
    int ops;                /* ops on places that are not stored */
} qn_flat;

/** The flat group of store i for so many lanes along lane_dim; `of` is of scalar code. False: its
 * members are not alike, or that would take longer. */
bool qn__flat_of(const qn_analysis *of, int lane_dim, int lanes, uint32_t i, qn_flat *out);

/** Sets is_flat[i] of the loads that only members of a flat group use, which are made with it.
 * False without memory: none is set. */
bool qn__flat_loads(const qn_analysis *a, const qn_flat *x, uint8_t *is_flat);

#endif
