/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stride.h: which elements plain loads read where the lanes of a vector lie a few elements apart.
 */
#ifndef QN_JIT_STRIDE_H
#define QN_JIT_STRIDE_H

#include <stdbool.h>

/** The register that a piece fills. */
enum { PIECE_BYTES = 16 };

/** One load of as many neighbouring elements as there are lanes. */
typedef struct qn_piece {
    int begin;             /* the first element that is read, counted from the element of lane 0 */
    int pick[PIECE_BYTES]; /* for each lane its place in the load; the number of lanes where another
                              load has it */
} qn_piece;

/**
 * Load `n` of the `stride` loads that together have the elements of `lanes` lanes, `stride`
 * elements apart; 0 < lanes <= PIECE_BYTES, 0 <= n < stride. False where no lane needs it. No load
 * reads an element before that of lane 0 or after that of the last lane, and each lane has its
 * element from one load.
 */
bool qn__piece_of(int lanes, int stride, int n, qn_piece *out);

#endif
