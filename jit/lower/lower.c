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
#include "jit/lower/distribute.h"
#include "jit/lower/group.h"
#include "jit/lower/hooks.h"
#include "jit/lower/nest.h"
#include "jit/lower/walk.h"
#include "jit/schedule/from_plan.h"
#include "jit/schedule/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- bounds of the domain */

LLVMValueRef qn__range_word(lower *g, int n)
{
    LLVMValueRef at = qn__const_i64(g, g->first_range + n);
    LLVMValueRef v =
        LLVMBuildLoad2(g->b, g->i64, LLVMBuildGEP2(g->b, g->i64, g->range, &at, 1, ""), "");
    LLVMSetAlignment(v, 8);
    return v;
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

static span span_of(lower *g, int d, int *n_sequential)
{
    span s = {g->begin[d], g->end[d]};
    if (qn__dim_kind(g->k, d) == QN_DIM_SEQUENTIAL) {
        int n = 2 + 2 * (*n_sequential)++;
        s = (span){qn__range_word(g, n), qn__range_word(g, n + 1)};
    } else if (d == g->p->split_dim) {
        s = (span){qn__range_word(g, 0), qn__range_word(g, 1)};
    } else if (g->p->second_granule && d == g->p->second_dim) {
        int n = qn__second_word(qn__n_sequential(g->k));
        s = (span){qn__range_word(g, n), qn__range_word(g, n + 1)};
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
    qn__nest_emit(g, spans, 0);
}

/** Which accesses have a buffer. */
static void find_buffers(lower *g)
{
    const qn_schedule *s = g->schedule;
    for (int n = 0; s && s->n_buffers && n < s->n_records; n++)
        if (s->record[n].method == QN_METHOD_THROUGH)
            g->through[g->site[s->record[n].inst]] = s->record[n].index;
}

static bool make_arrays(lower *g)
{
    uint32_t n = g->k->n_insts;
    g->value = qn__zalloc(n, sizeof *g->value);
    g->site = qn__zalloc(n, sizeof *g->site);
    g->covered = qn__zalloc(g->k->n_accesses + 1, sizeof *g->covered);
    g->through = qn__zalloc(g->k->n_accesses + 1, sizeof *g->through);
    LLVMValueRef *parts = qn__zalloc((size_t)n * MOST_PARTS, sizeof *parts);
    if (!g->value || !g->site || !g->covered || !g->through || !parts || !qn__buffers_open(g) ||
        !qn__analyse(g->k, g->f, g->p->lane_dim, g->jam_dims, &g->a)) {
        qn__free(parts);
        return false;
    }
    for (uint32_t i = 0; i < n && g->p->skew;
         i++) /* rows of a thread stand at different places of the lanes */
        g->a.value[i].depends_jam |= g->a.value[i].shape != QN_UNIFORM;
    for (uint32_t i = 0; i < n; i++)
        g->value[i].part = parts + (size_t)i * MOST_PARTS;
    for (uint32_t s = 0; s < g->k->n_accesses; s++)
        g->site[g->k->access[s].inst] = s;
    find_buffers(g);
    if (g->p->front_bytes)
        (void)qn__mark_fronts(g->k, g->f, g->p, &g->a);
    g->written_too = qn__written_too(g->k, g->f, &g->a);
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
    qn__free(g->filled);
    qn__free(g->through);
    qn__free(g->memo);
    qn__analysis_release(&g->a);
}

/** The spans are those of the places of the plan's order. */
static void walk_schedule(lower *g, const span *spans)
{
    span of[QN_MAX_RANK];
    for (int at = 0; at < g->p->n_loops; at++)
        of[g->p->order[at]] = spans[at];
    qn__walk(g, of);
}

/** How a function is emitted. */
typedef struct function_how {
    int64_t budget;
    bool is_fast; /* instructions are selected fast */
    int step;     /* of a grid */
} function_how;

/** Emits the function under one plan, of a grid the kernel of one step; and counts it. A function
 * that is beyond the budget is not complete. *block_bytes becomes the most shared memory that a
 * function asks for. */
static qn_emitted lower_once(const qn_lowering *to, const qn_lowered *x, const function_how *how,
                             const char *symbol, int32_t *block_bytes)
{
    const qn_kernel *k = x->k;
    const qn_facts *f = x->f;
    const qn_hooks *hooks = to->hooks;
    const qn_plan *p = x->plan;
    lower g = {.module = to->module, .context = LLVMGetModuleContext(to->module), .k = k, .f = f,
               .p = p, .schedule = x->schedule, .scheduled = x->scheduled, .block = x->block,
               .hooks = hooks, .width = 1, .unroll = 1, .step = how->step, .budget = how->budget,
               .is_fast = how->is_fast, .debug = how->step ? NULL : to->debug};
    span spans[QN_MAX_RANK];
    int n_sequential = 0;
    qn_emitted n = {.instructions = -1};
    if (x->schedule)
        qn__block_of_schedule(&g);
    else
        qn__block_of_plan(&g);
    if (make_arrays(&g)) {
        g.b = LLVMCreateBuilderInContext(g.context);
        set_types(&g);
        hooks->open(&g, symbol);
        qn__debug_function(&g);
        compute_bounds(&g);
        qn__find_alignment(&g);
        qn__find_lane_order(&g);
        if (p->scratch_bytes)
            g.scratch_memory = LLVMBuildIntToPtr(
                g.b, qn__range_word(&g, qn__scratch_word(qn__n_sequential(k), p->second_granule)),
                g.ptr, "");
        if (p->atomics == QN_ATOMICS_OF_THREADS)
            g.alone = LLVMBuildICmp(g.b, LLVMIntNE, qn__range_word(&g, QN_ALONE_WORD),
                                    qn__const_i64(&g, 0), "");
        bool is_empty = false;
        for (int at = 0; at < p->n_loops; at++) {
            spans[at] = span_of(&g, p->order[at], &n_sequential);
            is_empty |= qn__is_known_empty(&(span){g.begin[p->order[at]], g.end[p->order[at]]});
        }
        if (!is_empty && x->schedule)
            walk_schedule(&g, spans);
        else if (!is_empty)
            hooks->run(&g, spans);
        qn__stream_fence(&g);
        LLVMBuildRetVoid(g.b);
        qn__poll_end(&g);
        if (how->is_fast && !g.failed)
            qn__llvm_suit_fast(g.function, g.b);
        n = g.failed && !g.is_over ? n : qn__llvm_count(g.function, f->target, how->is_fast);
        LLVMDisposeBuilder(g.b);
    }
    free_arrays(&g);
    *block_bytes = g.shared_bytes > *block_bytes ? g.shared_bytes : *block_bytes;
    return n;
}

/** The loops of plans as a schedule. */
typedef struct said {
    qn_schedule *schedule; /* NULL: none was made yet */
    qn_scheduled scheduled;
    qn_block block;
} said;

/** Makes the schedule of the plan. Without memory, or where it has too many parts, there is none,
 * and the plan becomes one of plain loops. */
static void say_plan(said *to, qn_lowered *x)
{
    qn_error why = {0};
    x->schedule = NULL;
    if (x->f->target->has_grid) /* its plan says all */
        return;
    if (!to->scheduled.k && qn__scheduled_begin(x->k, x->f, &to->scheduled, &why) == QN_OK)
        to->schedule = qn__alloc(sizeof *to->schedule);
    if (to->schedule &&
        qn__schedule_of_plan(&to->scheduled, x->plan, to->schedule, &why) == QN_OK &&
        qn__block_of(&to->scheduled, to->schedule, &to->block, &why) == QN_OK) {
        x->schedule = to->schedule;
        x->scheduled = &to->scheduled;
        x->block = &to->block;
        if (x->plan->pack || x->plan->pack_steps)
            x->plan->scratch_bytes = qn__buffers_scratch(to->schedule, to->schedule->n_buffers);
    } else {
        qn__plan_plainly(x->plan);
    }
}

static void release_said(said *s)
{
    qn__scheduled_end(&s->scheduled);
    qn__free(s->schedule);
}

/** Emits under the plan, and then under others that give less code, until the budget holds. */
static qn_emitted lower_within(const qn_lowering *to, const qn_lowered *from, const char *symbol,
                               int32_t *block_bytes)
{
    qn_lowered own = *from, *x = &own;
    said of_plan = {0};
    qn_emitted n;
    enum { HOPELESS = 4 }; /* so many budgets by the estimate: nothing is emitted */
    qn_descent *d = to->descent;
    for (;;) {
        int64_t budget = qn__budget_units(to->most, d->rung, x->f->target);
        n = (qn_emitted){.units = x->f->target->is_text ? 0 : qn__estimate(x->k, x->f, x->plan)};
        bool is_emitted = n.units / HOPELESS <= budget;
        if (is_emitted && !x->is_request)
            say_plan(&of_plan, x);
        if (is_emitted)
            n = lower_once(to, x,
                           &(function_how){.budget = budget, .is_fast = d->rung == QN_RUNG_FAST},
                           symbol, block_bytes);
        bool is_over = n.units > budget,
             is_long = n.instructions + n.lanes > QN_MOST_INSTRUCTIONS && d->rung < QN_RUNG_SCALAR;
        if (n.instructions < 0 || !(is_over || is_long) || x->is_request ||
            !qn__step_down(x->k, x->f, x->plan, d, n.units, is_over,
                           n.lanes > (n.instructions + n.lanes) / 2))
            break;
        if (is_emitted)
            LLVMDeleteFunction(LLVMGetNamedFunction(to->module, symbol));
    }
    release_said(&of_plan);
    return n;
}

qn_status qn__llvm_lower(const qn_lowering *to, const qn_lowered *x, const char *symbol,
                         qn_error *err)
{
    int32_t block_bytes = 0;
    const qn_kernel *k = x->k;
    const qn_facts *f = x->f;
    const qn_plan *p = x->plan;
    qn_blob_info *info = to->info;
    qn_emitted *n = to->emitted;
    qn_descent *d = to->descent;
    *n = lower_within(to, x, symbol, &block_bytes);
    d->units = n->units;
    if (n->instructions >= 0 && (p->team == QN_TEAM_GRID || p->is_split))
        *n = lower_once(to, x, &(function_how){.budget = INT64_MAX, .step = 1}, QN_GPU_ENTRY "_2",
                        &block_bytes);
    if (n->instructions < 0)
        return qn__fail(err, QN_ERR_CODEGEN,
                        "qn__llvm_lower: kernel could not be lowered (out of memory or too deep)");
    if (n->units > qn__budget_units(to->most, d->rung, f->target))
        return qn__fail(err, QN_ERR_LIMIT,
                        "compiling would take too long: %" PRId64
                        " units of work or more, of %" PRId64 ": %s",
                        n->units, qn__budget_units(to->most, d->rung, f->target),
                        qn__rung_name(d->rung));
    if (to->hooks->describe)
        to->hooks->describe(k, f, p, block_bytes, info);
    info->split_dim = p->split_dim;
    info->granule = p->granule;
    info->second_dim = p->second_dim;
    info->second_granule = p->second_granule;
    info->n_shared_reduces = p->n_shared_reduces;
    info->split_merged = p->split_dim >= 0 ? p->merged[p->split_dim] : 0;
    info->n_sequential = qn__n_sequential(k);
    info->scratch_bytes = p->scratch_bytes;
    info->chunk = qn__plan_chunk(k, f, p);
    info->chunks_per_thread = qn__plan_chunks_per_thread(p);
    return QN_OK;
}

/* ---------------------------------------------------------------- pieces */

/** What the functions of two parts need together. */
static void join_info(const qn_blob_info *part, qn_blob_info *info)
{
    int64_t scratch =
        info->scratch_bytes > part->scratch_bytes ? info->scratch_bytes : part->scratch_bytes;
    *info = *part;
    info->scratch_bytes = scratch;
}

static void join_emitted(const qn_emitted *part, qn_emitted *n)
{
    n->units += part->units;
    n->instructions += part->instructions;
    n->lanes += part->lanes;
    n->largest_block =
        part->largest_block > n->largest_block ? part->largest_block : n->largest_block;
    n->most_in_block =
        part->most_in_block > n->most_in_block ? part->most_in_block : n->most_in_block;
}

static void join_descent(const qn_descent *part, qn_descent *d)
{
    d->rung = part->rung > d->rung ? part->rung : d->rung;
    d->units += part->units;
    if (!d->steps[0])
        memcpy(d->steps, part->steps, sizeof d->steps);
}

/** The function of a piece with parts, whose functions are there. */
static qn_emitted lower_calls(const qn_lowering *to, const qn_piece *piece,
                              const LLVMValueRef *function, int scratch_word, const char *symbol)
{
    qn_plan plan = {.lane_dim = -1,
                    .jam_dim = -1,
                    .cross_dim = -1,
                    .width = 1,
                    .unroll = 1,
                    .jam = 1,
                    .cross = 1,
                    .split_dim = -1,
                    .second_dim = -1,
                    .tile_at = -1,
                    .granule = 1};
    lower g = {.module = to->module,
               .context = LLVMGetModuleContext(to->module),
               .k = piece->kernel,
               .f = &piece->facts,
               .p = &plan,
               .hooks = to->hooks,
               .width = 1,
               .unroll = 1,
               .budget = INT64_MAX,
               .debug = to->debug};
    qn_emitted n = {.instructions = -1};
    qn__block_of_plan(&g);
    if (make_arrays(&g)) {
        g.b = LLVMCreateBuilderInContext(g.context);
        set_types(&g);
        g.hooks->open(&g, symbol);
        qn__debug_function(&g);
        compute_bounds(&g);
        qn__lower_parts(&g, piece, function, scratch_word);
        LLVMBuildRetVoid(g.b);
        qn__poll_end(&g);
        n = g.failed ? n : qn__llvm_count(g.function, g.f->target, false);
        LLVMDisposeBuilder(g.b);
    }
    free_arrays(&g);
    return n;
}

/** A part of a piece as a function of the module. */
static qn_status lower_part(const qn_lowering *to, qn_piece *piece, const char *symbol,
                            qn_error *err)
{
    qn_descent own = {0};
    qn_emitted counted = {0};
    qn_blob_info part = {0};
    qn_lowering of_part = *to;
    of_part.info = &part;
    of_part.descent = &own;
    of_part.emitted = &counted;
    qn_status status =
        piece->part[0]
            ? qn__llvm_lower_piece(&of_part, piece, symbol, err)
            : qn__llvm_lower(
                  &of_part,
                  &(qn_lowered){.k = piece->kernel, .f = &piece->facts, .plan = &piece->plan},
                  symbol, err);
    if (status == QN_OK && own.rung == QN_RUNG_FAST)
        status = qn__fail(err, QN_ERR_LIMIT, "%s: too large for two functions", symbol);
    if (status != QN_OK)
        return status;
    LLVMSetLinkage(LLVMGetNamedFunction(to->module, symbol), LLVMInternalLinkage);
    join_info(&part, to->info);
    join_emitted(&counted, to->emitted);
    join_descent(&own, to->descent);
    return QN_OK;
}

qn_status qn__llvm_lower_piece(const qn_lowering *to, qn_piece *p, const char *symbol,
                               qn_error *err)
{
    enum { SYMBOL_BYTES = QN_DEBUG_NAME_BYTES + 16 };
    LLVMValueRef function[2];
    qn_blob_info *info = to->info;
    *to->emitted = (qn_emitted){0};
    for (int i = 0; i < 2; i++) {
        char name[SYMBOL_BYTES];
        snprintf(name, sizeof name, "%s_%d", symbol, i + 1);
        qn_status status = lower_part(to, p->part[i], name, err);
        if (status != QN_OK)
            return status;
        function[i] = LLVMGetNamedFunction(to->module, name);
    }
    bool is_whole =
        p->is_free && p->distribution.block_dim < 0; /* the rest is divided as if it were all */
    if (!is_whole) {
        info->split_dim = p->split_dim;
        info->granule = 1;
        info->second_dim = p->second_dim;
        info->second_granule = p->second_dim >= 0;
        info->split_merged = 0;
        info->n_shared_reduces = 0;
        info->n_sequential = 0;
    }
    int word = info->scratch_bytes ? qn__scratch_word(0, info->second_granule) : -1;
    const qn_emitted calls = lower_calls(to, p, function, word, symbol);
    if (calls.instructions < 0)
        return qn__fail(err, QN_ERR_MEMORY, "qn__llvm_lower_piece: no memory");
    join_emitted(&calls, to->emitted);
    return QN_OK;
}
