/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broadcast.h: layouts of the operands of one expression, as every binding for a language with
 * expressions over arrays needs them: extents are broadcast as numpy does, and dimensions that all
 * operands walk alike become one. Nothing here allocates or knows a language.
 */
#ifndef QUERN_SHARED_BROADCAST_H
#define QUERN_SHARED_BROADCAST_H

#include "quern.h"

/** The operands of one expression. */
typedef struct bind_shape {
    int n, rank;
    qn_layout *layout[QN_MAX_PARAMS]; /**< [n]; NULL for numbers; [0] is the result, NULL if there
                                           is none yet */
    int64_t extent[QN_MAX_RANK];      /**< [rank] of all of them together */
} bind_shape;

/** Finds rank and extents that all layouts but [0] have together. False where two extents differ
 * and none is 1: these are two[0] and two[1]. */
bool bind_extents(bind_shape *s, int64_t two[2]);
/** Gives all layouts but [0] the extents of all, by strides of 0. Lower bounds become 0. */
void bind_stretch(bind_shape *s);
/** Joins dimensions whose neighbour continues them in all layouts. */
void bind_join(bind_shape *s);
/** Extents that a reduction leaves, and their number. `reduced` has a bit for each dimension from
 * the last one; -1 is all of them. */
int bind_kept(const bind_shape *s, int64_t reduced, int64_t out[QN_MAX_RANK]);

#endif
