/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_parts.h: private to block_fold.c, block_points.c and block_add.c: one reduce by the threads
 * of a block.
 */
#ifndef QN_JIT_LLVM_BLOCK_PARTS_H
#define QN_JIT_LLVM_BLOCK_PARTS_H

#include "jit/target/nvptx/nvptx.h"

enum { MOST_LOADS = 64, MOST_VALUES = 256, LEVELS = MOST_DEPTH + 1 };
/** Points that are evaluated together where a region branches. */
enum { MOST_AT_ONCE = 4 };

/** A load that is made ahead of its point; it differs between this thread's iterations, its points,
 * or both. */
typedef struct block_early {
    uint32_t inst;
    bool has_x, has_k, is_thin;
    int first; /* of its values, if it has_k */
} block_early;

/** What points add, in shared memory. Of a factor that is the same for all iterations there is one
 * row; it is thin if each of its points can be evaluated by one thread instead of one for each
 * iteration. */
typedef struct block_array {
    bool has_x, is_thin;
    int64_t first, by_x, by_k; /* bytes: of the array in its buffer; from iteration to iteration,
                                  from point to point */
} block_array;

typedef struct block_fold {
    reduction r;
    int x, k;            /* dimension of the tile; the reduced one, or -1: there are several */
    uint32_t reduced;    /* bits of the reduced dimensions */
    int64_t threads;     /* of the block */
    int64_t tile, chunk; /* iterations, points */
    int each_x, each_k;  /* a thread's: steps of step_x iterations and step_k points */
    int64_t step_x, step_k;
    int together_x, together_k; /* of them that are evaluated at once, as jammed iterations */
    LLVMValueRef thread, low, off_x, off_k; /* off: of a thread's first iteration and point */
    LLVMValueRef thin_k;                    /* its first point of what is thin */
    LLVMValueRef at_x[QN_MOST_EACH]; /* its iterations; the first only if no bound is in the way */
    bool x_inside;
    int level;    /* of at_x */
    bool is_thin; /* what is thin is being emitted, not the rest */
    block_early load[MOST_LOADS];
    int n_loads, n_values;
    /* Values of loads that do not differ between points. */
    LLVMValueRef row[MOST_LOADS][QN_MOST_EACH];
    int n_arrays;                            /* in shared memory: 2 for products */
    bool by_lanes; /* of a warp, which have all of a row: not by one thread */
    block_array array[2];
    int64_t first; /* byte of shared memory at which the buffers begin */
    /* Of earlier reduces, for its iterations. */
    LLVMValueRef value[MOST_BLOCK_REDUCES][QN_MOST_EACH];
    int64_t bytes, buffer_bytes; /* of an element, of a buffer with its arrays */
    LLVMValueRef begin;          /* index of the first point; of several dimensions its number */
    LLVMValueRef points;         /* their number, at least 1 */
    LLVMValueRef all;            /* points of the reduce */
} block_fold;

/** A chunk: the number of its first point, whether it may reach beyond the last, and of how many
 * points nothing else may be touched; NULL: of any. */
typedef struct block_part {
    LLVMValueRef q;
    bool is_clamped;
    LLVMValueRef left;
} block_part;

/** Whether a reduce is found without regard to the sign of zeros first, which order decides. */
static inline bool qn__is_extremum(const reduction *r)
{
    return r->type == QN_F32 && (r->combine == QN_COMBINE_MIN || r->combine == QN_COMBINE_MAX);
}

/** Points of a chunk that each thread evaluates for one iteration. Of what is thin, some are
 * evaluated by several threads. */
static inline int qn__block_each_point(const block_fold *m)
{
    return !m->is_thin ? m->each_k : m->chunk > m->threads ? (int)(m->chunk / m->threads) : 1;
}

/* ---- target/nvptx/block_points.c */
/** This thread's places in the tile and in chunks, the values of earlier reduces and what points
 * share; before the first chunk. */
void qn__block_begin_points(lower *g, block_fold *m);
/** Sets what all points of a row have: what is loaded for it, and the values of earlier reduces. */
void qn__block_set_row(lower *g, const block_fold *m, LLVMValueRef row);
/** Makes the loads of a chunk's points: [m->n_values]. */
void qn__block_fetch(lower *g, block_fold *m, const block_part *c, LLVMValueRef *values);
/** Evaluates a chunk's points, whose loads were made, leaves what they add in shared memory, and
 * waits for the other threads. */
void qn__block_put_chunk(lower *g, block_fold *m, const block_part *c, LLVMValueRef *fetched);

/* ---- target/nvptx/block_add.c */
/** Where array n of the chunk that begins at point number q is kept: in one of two buffers, at
 * iteration x and point k. */
LLVMValueRef qn__block_place(lower *g, const block_fold *m, int n, LLVMValueRef q, LLVMValueRef x,
                             LLVMValueRef k);
/** The place i iterations and j points further. */
static inline LLVMValueRef qn__block_further(lower *g, const block_array *v, LLVMValueRef at,
                                             int64_t i, int64_t j)
{
    return qn__ahead(g, at, v->first + i * v->by_x + j * v->by_k);
}
/** acc with `points` points of a chunk added, by the threads that have an iteration. */
LLVMValueRef qn__block_add(lower *g, const block_fold *m, const block_part *c, LLVMValueRef points,
                           LLVMValueRef acc);

#endif
