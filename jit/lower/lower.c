/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c: the entry function. See lower/lower.h for how a body is emitted.
 *
 * On a processor (target/nvptx/nvptx.c has the entry and the walk of a grid):
 *
 *   entry:  bounds of the dimensions, argument slots
 *   loops:  those of the schedule (lower/walk.c), in them the lanes (lower/lanes.c)
 *   body:   regions and instructions (lower/control.c)
 */
#include "jit/lower/hooks.h"
#include "jit/lower/nest.h"
#include "jit/schedule/piece.h"

#include <string.h>

/* ---------------------------------------------------------------- bounds of the domain */

LLVMValueRef qn__range_word(lower *g, int n)
{
    LLVMValueRef at = qn__const_i64(g, g->first_range + n);
    return qn__load_at(g, g->i64, qn__gep(g, g->i64, g->range, at), 8);
}

/** The end of a dimension, not below its begin. A launch where a dimension outside reduces is empty
 * runs nothing. */
static LLVMValueRef end_of(lower *g, int d, LLVMValueRef end)
{
    int64_t first, last;
    if (!qn__is_reduction(g->k, d))
        return end;
    if (qn__is_const(g->begin[d], &first) && qn__is_const(end, &last))
        return last < first ? g->begin[d] : end;
    LLVMValueRef is_reversed = LLVMBuildICmp(g->b, LLVMIntSLT, end, g->begin[d], "");
    return LLVMBuildSelect(g->b, is_reversed, g->begin[d], end, "");
}

/** A bound that the facts leave open. It may be a constant where a piece is given a part of the
 * range (schedule/piece.h): nothing may follow from the length of the whole range then. */
static LLVMValueRef open_bound(lower *g, uint32_t value)
{
    int64_t n;
    LLVMValueRef v = qn__scalar(g, value, 0);
    return qn__is_const(v, &n) ? qn__opaque(g, v) : v;
}

/** Whole range of each dimension: exact facts, or the prologue's values. */
static void compute_bounds(lower *g)
{
    for (int d = 0; d < g->k->n_dims; d++) {
        const uint32_t *arg = qn__args(g->k, g->k->dim[d]);
        const qn_fact *b = &g->f->begin[d], *e = &g->f->end[d];
        g->begin[d] = b->kind == QN_FACT_EXACT ? qn__const_i64(g, b->value) : open_bound(g, arg[0]);
        g->end[d] = end_of(
            g, d, e->kind == QN_FACT_EXACT ? qn__const_i64(g, e->value) : open_bound(g, arg[1]));
    }
    for (int d = 0; d < g->k->n_dims; d++) /* such a dimension is no loop in reduces */
        if (qn__is_reduction(g->k, d) && qn__trips(g->f, d) == 1)
            g->iv[d] = g->begin[d];
}

/** A bound of the launch's dimension d, at the end of a part, in parts. */
static LLVMValueRef part_of(lower *g, int d, LLVMValueRef bound)
{
    int64_t n = g->f->part[d];
    if (n <= 1)
        return bound;
    bound = LLVMBuildSub(g->b, bound, qn__const_i64(g, g->f->from[d]), "");
    return LLVMBuildExactSDiv(g->b, bound, qn__const_i64(g, n), "");
}

static span span_of(lower *g, int d, int *n_sequential)
{
    span s = {g->begin[d], g->end[d]};
    if (qn__dim_kind(g->k, d) == QN_DIM_SEQUENTIAL) {
        int n = 2 + 2 * (*n_sequential)++;
        s = (span){qn__range_word(g, n), qn__range_word(g, n + 1)};
    } else if (d == g->block->split_dim) {
        s = (span){part_of(g, d, qn__range_word(g, 0)), part_of(g, d, qn__range_word(g, 1))};
    } else if (g->block->second_granule && d == g->block->second_dim) {
        int n = qn__second_word(qn__n_sequential(g->k));
        s = (span){part_of(g, d, qn__range_word(g, n)), part_of(g, d, qn__range_word(g, n + 1))};
    }
    return s;
}

/* ---------------------------------------------------------------- the function */

static void set_types(lower *g)
{
    g->i1 = LLVMInt1TypeInContext(g->context);
    g->i8 = LLVMInt8TypeInContext(g->context);
    g->i16 = LLVMInt16TypeInContext(g->context);
    g->i32 = LLVMInt32TypeInContext(g->context);
    g->i64 = LLVMInt64TypeInContext(g->context);
    g->f32 = LLVMFloatTypeInContext(g->context);
    g->f64 = LLVMDoubleTypeInContext(g->context);
    g->ptr = LLVMPointerTypeInContext(g->context, g->hooks->data_space);
}

void qn__lower_open(lower *g, const char *symbol)
{
    LLVMTypeRef params[3] = {g->ptr, g->ptr, g->ptr};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), params, 3, false);
    g->function = LLVMAddFunction(g->module, symbol, type);
    g->slots = LLVMGetParam(g->function, 0);
    g->range = LLVMGetParam(g->function, 1);
    g->fault = LLVMGetParam(g->function, 2);
    LLVMPositionBuilderAtEnd(g->b, qn__new_block(g, "entry"));
}

void qn__lower_run(lower *g, const span *spans)
{
    span of[QN_MAX_RANK];
    for (int at = 0; at < g->block->n_loops; at++)
        of[g->block->order[at]] = spans[at];
    qn__walk(g, of);
}

/** Which accesses have a buffer, and the first record of each. */
static void find_records(lower *g)
{
    const qn_schedule *s = g->schedule;
    for (int n = s ? s->n_records : 0; n-- > 0;) {
        const qn_record_info *r = &s->record[n];
        if (r->method == QN_METHOD_THROUGH)
            g->through[g->site[r->inst]] = r->index;
        g->value[r->inst].record[0] = g->value[r->inst].record[1] = (uint16_t)(n + 1);
    }
}

static bool analyse(lower *g)
{
    int lanes = g->block->lane_dim;
    const int points = lanes == g->trip_block.lane_dim ? -1 : lanes;
    if (g->block->trips.n)
        return qn__analyse_trips(g->k, g->f, points, &g->block->trips, &g->a);
    return g->scalar && g->scalar->value ? qn__analyse_lanes(g->scalar, lanes, g->jam_dims, &g->a)
                                         : qn__analyse(g->k, g->f, lanes, g->jam_dims, &g->a);
}

static bool make_arrays(lower *g)
{
    uint32_t n = g->k->n_insts;
    g->value = qn__zalloc(n, sizeof *g->value);
    g->site = qn__zalloc(n, sizeof *g->site);
    g->covered = qn__zalloc(g->k->n_accesses + 1, sizeof *g->covered);
    g->is_ahead = qn__zalloc(g->k->n_accesses + 1, sizeof *g->is_ahead);
    g->through = qn__zalloc(g->k->n_accesses + 1, sizeof *g->through);
    LLVMValueRef *parts = qn__zalloc((size_t)n * MOST_PARTS, sizeof *parts);
    if (!g->value || !g->site || !g->covered || !g->is_ahead || !g->through || !parts ||
        !qn__buffers_open(g) || !analyse(g)) {
        qn__free(parts);
        return false;
    }
    for (uint32_t i = 0; i < n && g->block->skew;
         i++) /* rows of a thread stand at different places of the lanes */
        g->a.value[i].depends_jam |= g->a.value[i].shape != QN_UNIFORM;
    for (uint32_t i = 0; i < n; i++)
        g->value[i].part = parts + (size_t)i * MOST_PARTS;
    for (uint32_t s = 0; s < g->k->n_accesses; s++)
        g->site[g->k->access[s].inst] = s;
    find_records(g);
    g->written_too = qn__written_too(&g->a);
    g->points_level = MOST_LEVELS;
    memset(g->memo_head, 0xff, sizeof g->memo_head);
    return true;
}

static void free_arrays(lower *g)
{
    if (g->value)
        qn__free(g->value[0].part);
    qn__free(g->value);
    qn__free(g->site);
    qn__free(g->covered);
    qn__free(g->is_ahead);
    qn__free(g->filled);
    qn__free(g->through);
    qn__free(g->memo);
    qn__analysis_release(&g->a);
}

/** Begins a function, and what is known of it; false: there is no memory. */
static bool open_function(lower *g, const char *symbol)
{
    g->context = LLVMGetModuleContext(g->module);
    qn__parts_of_block(g);
    if (!make_arrays(g))
        return false;
    g->b = LLVMCreateBuilderInContext(g->context);
    set_types(g);
    g->hooks->open(g, symbol);
    qn__debug_function(g);
    compute_bounds(g);
    return true;
}

static qn_emitted close_function(lower *g)
{
    LLVMBuildRetVoid(g->b);
    qn__poll_end(g);
    if (g->is_fast && !g->failed)
        qn__llvm_suit_fast(g->function, g->b);
    if (!g->f->target->has_masks && !g->failed)
        qn__llvm_carry_bools(g->function, g->b, g->f->target);
    LLVMDisposeBuilder(g->b);
    return g->failed && !g->is_over ? (qn_emitted){.instructions = -1}
                                    : qn__llvm_count(g->function, g->f->target, g->is_fast);
}

qn_emitted qn__lower_function(const qn_lowering *to, const qn_lowered *x,
                              const qn_function_how *how, const char *symbol, int32_t *block_bytes)
{
    const qn_kernel *k = x->k;
    const qn_facts *f = x->f;
    const qn_hooks *hooks = to->hooks;
    const qn_block *block = x->block;
    lower g = {.module = to->module,
               .k = k,
               .f = f,
               .grid = x->grid,
               .schedule = x->schedule,
               .scalar = x->scalar,
               .block = block,
               .hooks = hooks,
               .width = 1,
               .unroll = 1,
               .step = how->step,
               .budget = how->budget,
               .is_fast = how->is_fast,
               .debug = how->step ? NULL : to->debug};
    qn__block_of_trips(block, &g.trip_block);
    span spans[QN_MAX_RANK];
    int n_sequential = 0;
    qn_emitted n = {.instructions = -1};
    if (open_function(&g, symbol)) {
        qn__find_alignment(&g);
        if (block->scratch_bytes)
            g.scratch_memory = LLVMBuildIntToPtr(
                g.b,
                qn__range_word(&g, qn__scratch_word(qn__n_sequential(k), block->second_granule)),
                g.ptr, "");
        if (block->atomics == QN_ATOMICS_OF_THREADS)
            g.alone = LLVMBuildICmp(g.b, LLVMIntNE, qn__range_word(&g, QN_ALONE_WORD),
                                    qn__const_i64(&g, 0), "");
        bool is_empty = false;
        for (int at = 0; at < block->n_loops; at++) {
            int d = block->order[at];
            spans[at] = span_of(&g, d, &n_sequential);
            is_empty |= qn__is_known_empty((span){g.begin[d], g.end[d]});
        }
        if (!is_empty)
            hooks->run(&g, spans);
        qn__stream_fence(&g);
        n = close_function(&g);
    }
    free_arrays(&g);
    *block_bytes = g.shared_bytes > *block_bytes ? g.shared_bytes : *block_bytes;
    return n;
}

qn_emitted qn__lower_calls(const qn_lowering *to, const qn_piece *piece, int scratch_word,
                           const char *symbol)
{
    const qn_block block = qn__block_of_one();
    lower g = {.module = to->module,
               .k = piece->kernel,
               .f = &piece->facts,
               .block = &block,
               .hooks = to->hooks,
               .width = 1,
               .unroll = 1,
               .budget = INT64_MAX,
               .debug = to->debug};
    qn_emitted n = {.instructions = -1};
    if (open_function(&g, symbol)) {
        qn__lower_parts(&g, piece, symbol, scratch_word);
        n = close_function(&g);
    }
    free_arrays(&g);
    return n;
}
