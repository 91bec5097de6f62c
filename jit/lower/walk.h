/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h: private to the lowering: the loops of a schedule.
 */
#ifndef QN_JIT_LLVM_WALK_H
#define QN_JIT_LLVM_WALK_H

#include "jit/lower/nest.h"
#include "jit/schedule/shape.h"

/** Emits the loops of g->schedule and what is inside of them. spans[d]: what is run of dimension d,
 * which is no dimension of reduces. */
void qn__walk(lower *g, const span *spans);

#endif
