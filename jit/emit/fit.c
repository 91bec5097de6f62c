/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c: functions within the budget of a compile. A plan is said as a schedule, which is lowered;
 * where its code is too large, the kernel is planned again with less. A kernel that was distributed
 * becomes a function for each piece.
 */
#include "jit/emit/compilation.h"
#include "jit/lower/hooks.h"
#include "jit/schedule/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Plans again with less code; false: there is no such plan. */
static bool step_down(qn_planned *p, qn_descent *d, const qn_emitted *n, bool is_over)
{
    if (p->is_request || !qn__step_down(&p->analysis, &p->plan, d, n->units, is_over,
                                        n->lanes > (n->instructions + n->lanes) / 2))
        return false;
    qn__planned_forget(p);
    return true;
}

static int64_t estimated_units(const qn_facts *f, const qn_planned *p)
{
    return f->target->is_text ? 0
           : p->is_request    ? qn__units_of_block(&p->analysis, &p->block)
                              : qn__estimate(&p->analysis, &p->plan);
}

/** Emits under the plan, and then under others that give less code, until the budget holds. */
static qn_emitted lower_within(const qn_lowering *to, const qn_lowered *x, qn_planned *p,
                               const char *symbol, int32_t *block_bytes)
{
    enum { HOPELESS = 4 }; /* so many budgets by the estimate: nothing is emitted */
    qn_descent *d = to->descent;
    qn_error why = {0};
    for (;;) {
        int64_t budget = qn__budget_units(to->most, d->rung, x->f->target);
        qn_emitted n = {.units = estimated_units(x->f, p)};
        bool is_emitted = n.units / HOPELESS <= budget;
        if (is_emitted && !p->is_request && qn__planned_say(p, &why) != QN_OK)
            return (qn_emitted){.instructions = -1};
        qn_lowered own = *x;
        own.schedule = x->f->target->has_grid ? NULL : p->schedule;
        const qn_function_how how = {.budget = budget, .is_fast = d->rung == QN_RUNG_FAST};
        if (is_emitted)
            n = qn__lower_function(to, &own, &how, symbol, block_bytes);
        bool is_over = n.units > budget,
             is_long = n.instructions + n.lanes > QN_MOST_INSTRUCTIONS && d->rung < QN_RUNG_SCALAR;
        if (n.instructions < 0 || !(is_over || is_long) ||
            !step_down(p, d, &n, is_over))
            return n;
        if (is_emitted)
            LLVMDeleteFunction(LLVMGetNamedFunction(to->module, symbol));
    }
}

/** A granule in iterations of the launch's dimension d. */
static int64_t granule_of(const qn_facts *f, int d, int64_t granule)
{
    return d >= 0 && f->part[d] > 1 ? granule * f->part[d] : granule;
}

static void describe(const qn_kernel *k, const qn_facts *f, const qn_planned *p,
                     qn_blob_info *info)
{
    const qn_block *b = &p->block;
    info->split_dim = b->split_dim;
    info->granule = granule_of(f, b->split_dim, b->granule);
    info->second_dim = b->second_dim;
    info->second_granule = b->second_granule ? granule_of(f, b->second_dim, b->second_granule) : 0;
    info->n_shared_reduces = b->n_shared;
    info->split_merged = b->split_dim >= 0 ? f->merged[b->split_dim] : 0;
    info->n_sequential = qn__n_sequential(k);
    info->scratch_bytes = b->scratch_bytes;
    info->chunk = qn__plan_chunk(k, f, b->lane_dim);
    info->chunks_per_thread =
        qn__chunks_per_thread(f->target->has_grid ? NULL : p->schedule, b);
}

qn_status qn__llvm_lower(const qn_lowering *to, const qn_kernel *k, const qn_facts *f,
                         qn_planned *p, const char *symbol, qn_error *err)
{
    int32_t block_bytes = 0;
    bool has_grid = f->target->has_grid;
    const qn_lowered x = {.k = k,
                          .f = f,
                          .block = &p->block,
                          .scalar = &p->analysis,
                          .grid = has_grid ? &p->grid : NULL};
    qn_emitted *n = to->emitted;
    qn_descent *d = to->descent;
    *n = lower_within(to, &x, p, symbol, &block_bytes);
    d->units = n->units;
    if (n->instructions >= 0 && has_grid &&
        (p->grid.team == QN_TEAM_GRID || p->grid.is_split))
        *n = qn__lower_function(to, &x, &(qn_function_how){.budget = INT64_MAX, .step = 1},
                                QN_GPU_ENTRY "_2", &block_bytes);
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
        to->hooks->describe(k, f, &p->grid, block_bytes, to->info);
    describe(k, f, p, to->info);
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

static qn_status lower_parts(const qn_lowering *to, qn_piece *p, const char *symbol,
                             qn_error *err);

/** A part of a piece as a function of the module; one that is cut as those of its sections. */
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
        piece->sections.n ? lower_parts(&of_part, piece, symbol, err)
        : piece->n_parts
            ? qn__llvm_lower_piece(&of_part, piece, symbol, err)
            : qn__llvm_lower(&of_part, piece->kernel, &piece->facts, &piece->planned, symbol, err);
    if (status == QN_OK && own.rung == QN_RUNG_FAST)
        status = qn__fail(err, QN_ERR_LIMIT, "%s: too large for two functions", symbol);
    if (status != QN_OK)
        return status;
    if (!piece->sections.n)
        LLVMSetLinkage(LLVMGetNamedFunction(to->module, symbol), LLVMInternalLinkage);
    join_info(&part, to->info);
    join_emitted(&counted, to->emitted);
    join_descent(&own, to->descent);
    return QN_OK;
}

static qn_status lower_parts(const qn_lowering *to, qn_piece *p, const char *symbol,
                             qn_error *err)
{
    qn_status status = QN_OK;
    for (int n = 0; n < p->n_parts && status == QN_OK; n++) {
        char name[QN_PART_SYMBOL_BYTES];
        qn__part_symbol(symbol, n, name);
        status = lower_part(to, p->part[n], name, err);
    }
    return status;
}

qn_status qn__llvm_lower_piece(const qn_lowering *to, qn_piece *p, const char *symbol,
                               qn_error *err)
{
    qn_blob_info *info = to->info;
    *to->emitted = (qn_emitted){0};
    qn_status status = lower_parts(to, p, symbol, err);
    if (status != QN_OK)
        return status;
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
    const qn_emitted calls = qn__lower_calls(to, p, word, symbol);
    if (calls.instructions < 0)
        return qn__fail(err, QN_ERR_MEMORY, "qn__llvm_lower_piece: no memory");
    join_emitted(&calls, to->emitted);
    return QN_OK;
}
