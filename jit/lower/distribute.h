/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribute.h: private to the lowering: functions of pieces that call those of their parts.
 */
#ifndef QN_JIT_LOWER_DISTRIBUTE_H
#define QN_JIT_LOWER_DISTRIBUTE_H

#include "jit/lower/nest.h"
#include "jit/schedule/piece.h"

/** Emits what a piece with parts does, where the entry of its function, `symbol`, ends.
 * scratch_word: where the memory that a part needs stands in the range, -1: none does. */
void qn__lower_parts(lower *g, const qn_piece *p, const char *symbol, int scratch_word);

#endif
