/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.c: reduces whose points are divided between threads: those of a kernel without parallel
 * dimensions. A call does one or both of two phases (qn_entry):
 *
 *   QN_PHASE_POINTS  the results of the blocks of 4096 points in [range[0], range[1]), into memory
 * of the launch: one array for each reduce QN_PHASE_REST    the values of the reduces from all
 * those results, by the same order rule, then the body
 *
 * The order rule makes results of blocks the same whoever computes them, so the bits do not depend
 * on threads.
 */
#include "jit/lower/lower.h"
#include "jit/schedule/forms.h"

typedef struct points {
    int d; /* dimension */
    LLVMValueRef memory, blocks; /* results; blocks of the whole range */
} points;

static LLVMValueRef blocks_of(lower *g, LLVMValueRef low, LLVMValueRef high)
{
    return qn__count_blocks(g, LLVMBuildSub(g->b, high, low, ""), BLOCK);
}

/** The array of reduce number n. */
static LLVMValueRef results_of(lower *g, const points *x, int n)
{
    return qn__gep(g, g->i64, x->memory, LLVMBuildMul(g->b, x->blocks, qn__const_i64(g, n), ""));
}

/** Loads at the top that a later reduce may need. The plan has seen to it that they need no reduce
 * themselves. */
static void load_before_reduces(lower *g)
{
    int left = g->block->n_shared;
    for (uint32_t i = g->k->body; i < g->k->n_insts && left > 0; i = g->k->inst[i].region[2]) {
        if (g->k->inst[i].op == QN_I_LOAD)
            qn__lower_load(g, i, 0);
        left -= g->k->inst[i].op == QN_I_REDUCE;
    }
}

/** Reduce m of all, with those that are folded with it, to the results of block `number`. */
static void reduce_tuple(lower *g, const points *x, const reduction *all, int m,
                         const qn_reduced *tuple, LLVMValueRef number)
{
    LLVMValueRef acc[MOST_JOINED][MOST_PARTS];
    reduction r[MOST_JOINED];
    int at[MOST_JOINED], n = tuple ? tuple->n : 1;
    for (int q = 0; q < n; q++, m++) {
        while (tuple && all[m].inst != tuple->inst[q])
            m++;
        at[q] = m;
        r[q] = all[m];
    }
    qn__reduce_in_order(g, r, n, acc);
    for (int q = 0; q < n; q++) {
        LLVMValueRef to = qn__gep(g, g->i64, results_of(g, x, at[q]), number);
        qn__store_as(g, r[q].type, acc[q][0], to, 8);
    }
}

static void reduce_blocks(lower *g, const points *x)
{
    LLVMValueRef low = qn__range_word(g, 0), high = qn__range_word(g, 1);
    loop l;
    load_before_reduces(g);
    qn__loop_open(g, &l, qn__up_to(g, blocks_of(g, low, high)), 1, LOOP_MAY_BE_EMPTY);
    span s = qn__block_at(g, (span){low, high}, l.index, BLOCK);
    LLVMValueRef number = blocks_of(g, g->begin[x->d], s.low);
    reduction r[MOST_SHARED_REDUCES];
    uint32_t i = g->k->body;
    for (int m = 0; m < g->block->n_shared; m++, i = g->k->inst[i].region[2]) {
        i = qn__next_reduce(g->k, i);
        r[m] = qn__describe_reduction(g, i);
        r[m].low = s.low;
        r[m].high = s.high;
        r[m].points = -1;
        r[m].n_levels = 0;
    }
    for (int m = 0; m < g->block->n_shared; m++) {
        const qn_reduced *tuple = qn__tuple_of(g, r[m].inst);
        if (!tuple || tuple->inst[0] == r[m].inst)
            reduce_tuple(g, x, r, m, tuple, number);
    }
    qn__loop_close(g, &l);
}

static void finish(lower *g, const points *x)
{
    uint32_t i = g->k->body;
    for (int m = 0; m < g->block->n_shared; m++, i = g->k->inst[i].region[2]) {
        LLVMValueRef acc[1][MOST_PARTS];
        i = qn__next_reduce(g->k, i);
        reduction r = qn__describe_reduction(g, i), blocks = r;
        blocks.low = qn__const_i64(g, 0);
        blocks.high = x->blocks;
        blocks.points = -1;
        blocks.n_levels -= r.n_levels > 0;
        blocks.results = results_of(g, x, m);
        blocks.product = 0;
        qn__reduce_in_order(g, &blocks, 1, acc);
        qn__set(g, i, 0, qn__or_empty(g, &r, acc[0][0]), g->depth);
    }
    qn__lower_region(g, g->k->body, g->k->n_insts);
}

/** Whether this call does a phase. */
static LLVMValueRef does(lower *g, LLVMValueRef phases, int phase)
{
    LLVMValueRef bit = LLVMBuildAnd(g->b, phases, qn__const_i64(g, phase), "");
    return LLVMBuildICmp(g->b, LLVMIntNE, bit, qn__const_i64(g, 0), "");
}

void qn__lower_points(lower *g)
{
    points x = {.d = g->block->split_dim};
    LLVMValueRef phases = qn__range_word(g, 3);
    x.memory = LLVMBuildIntToPtr(g->b, qn__range_word(g, 2), g->ptr, "");
    x.blocks = blocks_of(g, g->begin[x.d], g->end[x.d]);
    branch first = qn__begin_branch(g, does(g, phases, QN_PHASE_POINTS));
    reduce_blocks(g, &x);
    qn__end_branch(g, &first, NULL);
    branch second = qn__begin_branch(g, does(g, phases, QN_PHASE_REST));
    finish(g, &x);
    qn__end_branch(g, &second, NULL);
}
