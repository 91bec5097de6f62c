/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c: regions, loops over the domain, and `if`. Control flow on a value that is the same for
 * the whole block becomes branches; on one that differs it becomes masks, with a branch around a
 * region that touches memory, or computes more than such a test costs, when no lane is active.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/yields.h"

#include "jit/schedule/budget.h"

#include <string.h>

/* ---------------------------------------------------------------- what LLVM does not see through
 */

LLVMValueRef qn__opaque(lower *g, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v), t = LLVMFunctionType(type, &type, 1, false);
    const char *same = type == g->i64 ? g->hooks->same_i64 : "=r,0";
    LLVMValueRef barrier =
        LLVMGetInlineAsm(t, "", 0, same, 4, false, false, LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(g->b, t, barrier, &v, 1, "");
}

/* ---------------------------------------------------------------- values that are handed on */

/** Adds a value to the list, without a phi; NULL without memory. */
static carried_value *add_carried(lower *g, carry *c, LLVMValueRef *value)
{
    carried_value *grown = qn__realloc(c->of, (size_t)(c->n + 1) * sizeof *grown);
    g->failed |= !grown;
    if (!grown)
        return NULL;
    c->of = grown;
    c->of[c->n] = (carried_value){value, *value, NULL};
    return &c->of[c->n++];
}

void qn__carry(lower *g, carry *c, LLVMValueRef *value, int n)
{
    for (int m = 0; m < n; m++) {
        carried_value *x = value[m] ? add_carried(g, c, &value[m]) : NULL;
        if (x)
            value[m] = x->phi = LLVMBuildPhi(g->b, LLVMTypeOf(value[m]), "");
    }
}

void qn__carry_close(const carry *c, LLVMBasicBlockRef before, LLVMBasicBlockRef latch)
{
    for (int n = 0; n < c->n; n++) {
        LLVMAddIncoming(c->of[n].phi, &c->of[n].init, &before, 1);
        LLVMAddIncoming(c->of[n].phi, c->of[n].value, &latch, 1);
    }
}

void qn__carry_end(carry *c)
{
    for (int n = 0; n < c->n; n++)
        *c->of[n].value = c->of[n].phi;
    qn__free(c->of);
}

void qn__branch_keep(lower *g, branch *x, LLVMValueRef *value, int n)
{
    for (int m = 0; m < n && x->from; m++)
        if (value[m])
            (void)add_carried(g, &x->kept, &value[m]);
}

/* ---------------------------------------------------------------- counted loops of LLVM */

void qn__loop_open(lower *g, loop *l, span of, int64_t step, int how)
{
    int64_t s = 0, e = 0;
    bool is_known = qn__is_const(of.low, &s) && qn__is_const(of.high, &e),
         is_sequential = how & LOOP_IS_SEQUENTIAL;
    *l = (loop){.start = of.low,
                .end = of.high,
                .step = qn__const_i64(g, step),
                .most_trips = INT64_MAX,
                .outer_work = g->work};
    g->work = 0;
    if (is_known)
        qn__loop_most(l, qn__wrap_sub(e, s));
    if (is_known && qn__wrap_sub(e, s) == step) {
        l->is_single = true;
        l->index = of.low;
        l->head = qn__new_block(g, "once");
        LLVMBuildBr(g->b, l->head);
        qn__level_open(g, false, is_sequential,
                       false); /* what it holds must not be taken for the next loop's */
        LLVMPositionBuilderAtEnd(g->b, l->head);
        return;
    }
    l->is_guarded = how & LOOP_MAY_BE_EMPTY && !is_known;
    if (l->is_guarded) {
        l->guard = LLVMGetInsertBlock(g->b);
        l->after = qn__new_block(g, "after");
        LLVMBasicBlockRef inside = qn__new_block(g, "inside");
        LLVMValueRef is_some = LLVMBuildICmp(g->b, LLVMIntNE, of.low, of.high, "");
        LLVMBuildCondBr(g->b, is_some, inside, l->after);
        qn__level_open(g, false, false, true);
        LLVMPositionBuilderAtEnd(g->b, inside);
    }
    l->before = LLVMGetInsertBlock(g->b);
    l->head = qn__new_block(g, "loop");
    LLVMBuildBr(g->b, l->head);
    qn__level_open(g, false, is_sequential, false);
    LLVMPositionBuilderAtEnd(g->b, l->head);
    l->index = LLVMBuildPhi(g->b, g->i64, "");
    g->level[g->depth].index = l->index;
    g->level[g->depth].multiple = qn__is_const(of.low, &s) ? (s | step) & -(s | step) : 1;
}

void qn__loop_carry(lower *g, loop *l, LLVMValueRef *value, int n)
{
    if (!l->is_single)
        qn__carry(g, &l->carry, value, n);
}

void qn__loop_times(lower *g, loop *l, int64_t n)
{
    qn__loop_open(g, l, qn__up_to(g, qn__const_i64(g, n)), 1, 0);
}

void qn__loop_most(loop *l, int64_t n_indices)
{
    int64_t trips = n_indices / LLVMConstIntGetSExtValue(l->step);
    trips += trips < INT64_MAX; /* the last one may not be whole */
    if (n_indices >= 0)         /* else they are 2^63 and more */
        l->most_trips = trips < l->most_trips ? trips : l->most_trips;
}

void qn__loop_bound(const lower *g, loop *l, int d)
{
    if (!l->is_single && qn__is_exact(g->f, d))
        qn__loop_most(l, qn__trips(g->f, d));
}

void qn__once_open(lower *g, loop *l, LLVMValueRef condition)
{
    if (!condition) {
        qn__loop_times(g, l, 1);
        return;
    }
    *l = (loop){.is_single = true,
                .is_guarded = true,
                .outer_work = g->work,
                .after = qn__new_block(g, "after")};
    g->work = 0;
    LLVMBasicBlockRef inside = qn__new_block(g, "once");
    LLVMBuildCondBr(g->b, condition, inside, l->after);
    qn__level_open(g, false, false, true);
    LLVMPositionBuilderAtEnd(g->b, inside);
}

static void close_single(lower *g, const loop *l)
{
    g->work += l->outer_work;
    if (l->is_guarded)
        LLVMBuildBr(g->b, l->after);
    qn__level_close(g);
    if (l->is_guarded)
        LLVMPositionBuilderAtEnd(g->b, l->after);
}

/** Whether an index, the start and some steps, is not yet the end. Where a known range is below
 * 2^32, lower halves tell: they are counted apart, if that takes fewer instructions. Of other
 * ranges the second count would take registers of its own for both ends. */
static LLVMValueRef goes_on(lower *g, const loop *l, LLVMValueRef index)
{
    const int64_t step = LLVMConstIntGetSExtValue(l->step);
    if (!g->f->target->counts_in_32 || step <= 0 || l->most_trips > UINT32_MAX / step ||
        !LLVMIsConstant(l->start) || !LLVMIsConstant(l->end))
        return LLVMBuildICmp(g->b, LLVMIntNE, index, l->end, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b), before = l->before;
    LLVMValueRef start = LLVMBuildTrunc(g->b, l->start, g->i32, ""),
                 end = LLVMBuildTrunc(g->b, l->end, g->i32, "");
    LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(l->head));
    LLVMValueRef low = LLVMBuildPhi(g->b, g->i32, "");
    LLVMPositionBuilderAtEnd(g->b, latch);
    LLVMValueRef next = LLVMBuildAdd(g->b, low, LLVMBuildTrunc(g->b, l->step, g->i32, ""), "");
    next = qn__opaque(g, next);
    LLVMAddIncoming(low, &start, &before, 1);
    LLVMAddIncoming(low, &next, &latch, 1);
    return LLVMBuildICmp(g->b, LLVMIntNE, next, end, "");
}

/** Jumps back to the head, behind a look if `polls`; the block from which l->after is entered. The
 * look is not on the way back, so that the loop has one way out at its end whether there is a look
 * or not. */
static LLVMBasicBlockRef close_simple(lower *g, loop *l, LLVMValueRef index, bool polls)
{
    if (polls)
        qn__look(g);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMBuildCondBr(g->b, goes_on(g, l, index), l->head, l->after);
    LLVMAddIncoming(l->index, &l->start, &l->before, 1);
    LLVMAddIncoming(l->index, &index, &latch, 1);
    qn__carry_close(&l->carry, l->before, latch);
    return latch;
}

void qn__loop_close(lower *g, loop *l)
{
    if (l->is_single) {
        close_single(g, l);
        return;
    }
    /* LLVM's loop strength reduction sees no induction variable, so it leaves our addresses alone,
       and a third of a small kernel's compile time is saved. */
    LLVMValueRef index = qn__opaque(g, LLVMBuildAdd(g->b, l->index, l->step, ""));
    int64_t trips = qn__strip_trips(g, l->head, l->most_trips, l->outer_work);
    if (!l->is_guarded)
        l->after = qn__new_block(g, "after");
    LLVMBasicBlockRef latch =
        trips > 1 ? qn__strip_close(g, l, index, trips) : close_simple(g, l, index, trips > 0);
    qn__level_close(g);
    if (l->is_guarded)
        qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, l->after);
    for (int n = 0; n < l->carry.n && l->is_guarded; n++) {
        const carried_value *x = &l->carry.of[n];
        *x->value = qn__phi(g, x->init, l->guard, *x->value, latch);
    }
    qn__free(l->carry.of);
}

/* ---------------------------------------------------------------- results of regions */

bool qn__yields_new(lower *g, yields *y, int n)
{
    memset(y, 0, sizeof *y);
    y->n = n > QN_MAX_CARRIED ? QN_MAX_CARRIED : n;
    y->value = qn__zalloc((size_t)(y->n + 1) * MOST_PARTS, sizeof *y->value);
    if (!y->value)
        g->failed = true;
    return y->value != NULL;
}

void qn__find_results(const qn_kernel *k, uint32_t i, yields *y)
{
    for (uint32_t r = k->inst[i].region[2]; r < k->n_insts && k->inst[r].op == QN_I_RESULT; r++)
        if (qn__args(k, r)[0] == i && k->inst[r].imm < (uint64_t)y->n)
            y->receiver[k->inst[r].imm] = r;
}

bool qn__results_new(lower *g, uint32_t i, int n, yields *a, yields *b)
{
    b->value = NULL;
    if (!qn__yields_new(g, a, n) || !qn__yields_new(g, b, n))
        return false;
    qn__find_results(g->k, i, a);
    qn__find_results(g->k, i, b);
    return true;
}

bool qn__wants_vector(const lower *g, uint32_t receiver)
{
    return g->width > 1 && g->a.value[receiver].shape != QN_UNIFORM;
}

void qn__collect(lower *g, yields *y, const uint32_t *operand)
{
    for (int n = 0; n < y->n; n++)
        FOR_PARTS (g, p)
            if (y->receiver[n] && qn__canonical_part(g, y->receiver[n], p) == p)
                *slot_of(y, n, p) = qn__wants_vector(g, y->receiver[n])
                                        ? qn__vector(g, operand[n], p)
                                        : qn__scalar(g, operand[n], p);
}

void qn__join_yields(lower *g, const yields *then, const yields *other, const branch *x)
{
    for (int n = 0; n < then->n; n++)
        FOR_PARTS (g, p) {
            LLVMValueRef yes = *slot_of(then, n, p), no = *slot_of(other, n, p);
            if (yes && no)
                qn__set(g, then->receiver[n], p, qn__join(g, x, yes, no), g->depth);
        }
}

/* ---------------------------------------------------------------- if */

/** A branch's region, and what it yields. */
static void lower_side(lower *g, uint32_t begin, uint32_t end, yields *y)
{
    qn__lower_region(g, begin, end);
    if (y->n)
        qn__collect(g, y, qn__args(g->k, end - 1));
}

static void lower_uniform_if(lower *g, uint32_t i, yields *then, yields *other)
{
    const qn_inst *x = &g->k->inst[i];
    LLVMValueRef condition = qn__scalar(g, qn__args(g->k, i)[0], 0);
    branch choice = qn__begin_choice(g, condition, "yes", "no");
    lower_side(g, x->region[0], x->region[1], then);
    qn__begin_other(g, &choice);
    lower_side(g, x->region[1], x->region[2], other);
    qn__end_branch(g, &choice, NULL);
    qn__join_yields(g, then, other, &choice);
}

LLVMValueRef qn__any_part(lower *g)
{
    LLVMValueRef any = NULL;
    FOR_PARTS (g, p) {
        LLVMValueRef one = qn__any(g, g->mask[p]);
        g->active = any ? NULL : g->mask[p];
        any = any ? LLVMBuildOr(g->b, any, one, "") : one;
    }
    return any;
}

/** Whether any lane of any part is set; `masks` are never NULL. */
static LLVMValueRef any_of(lower *g, const LLVMValueRef *masks)
{
    LLVMValueRef all = NULL;
    FOR_PARTS (g, p)
        all = !all || all == masks[p] ? masks[p] : LLVMBuildOr(g->b, all, masks[p], "");
    return qn__any(g, all);
}

/** Units of a region of pure values, those left out that are the same in all lanes: they may stand
 * outside. */
static int64_t cost_of_values(const lower *g, uint32_t begin, uint32_t end)
{
    int64_t units = 0;
    for (uint32_t i = begin; i < end; i++) {
        int n_parts = 0;
        FOR_PARTS (g, p)
            n_parts += qn__canonical_part(g, i, p) == p;
        if (g->width == 1 || g->a.value[i].shape != QN_UNIFORM)
            units += n_parts * qn__cost_of_instruction(&g->a, i, false, g->width);
    }
    return units;
}

/** Whether code goes around a side of a divergent if where no lane takes it. */
static bool is_branched(const lower *g, uint32_t i, int side, int n_yields)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t begin = x->region[side], end = x->region[side + 1];
    if (qn__region_has_memory(g->k, begin, end))
        return true;
    int64_t units = n_yields ? cost_of_values(g, begin, end) : 0;
    return qn__goes_around(g->k, i, side, units, g->unroll * g->jam, g->f->target);
}

/** What lanes of part p get as result n, of those where the condition of `if` i holds and of the
 * others. */
static LLVMValueRef chosen(lower *g, uint32_t i, const yields *then, const yields *other, int n,
                           int p)
{
    uint32_t condition = qn__args(g->k, i)[0];
    LLVMValueRef yes = *slot_of(then, n, p), no = *slot_of(other, n, p);
    /* A condition that differs only between jammed iterations gives uniform results. */
    bool vector = qn__wants_vector(g, then->receiver[n]);
    LLVMValueRef which = vector ? qn__vector(g, condition, p) : qn__scalar(g, condition, p);
    return LLVMBuildSelect(g->b, which, yes, no, "");
}

/**
 * A side of a divergent if that is branched around. Memory is accessed under the mask of the lanes
 * that take it. What is pure is right in all of these lanes, active or not, whether the side is
 * skipped or not: accesses that were proved in range rely on it. If the other side's values are
 * there, `last`, the lanes' results are chosen behind the branch, so that where no lane takes this
 * side the other's values are the results as they stand. Where a branch takes longer than the side,
 * there is none.
 */
static void lower_branched_side(lower *g, uint32_t i, int side, yields *y, const yields *last)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t begin = x->region[side], end = x->region[side + 1], condition = qn__args(g->k, i)[0];
    LLVMValueRef outer[MOST_PARTS], takes[MOST_PARTS];
    bool is_pure = !qn__region_has_memory(g->k, begin, end),
         is_under_mask = qn__is_under_mask(&g->a, i, side, g->block->lane_dim);
    memcpy(outer, g->mask, sizeof outer);
    FOR_PARTS (g, p) {
        takes[p] = qn__vector(g, condition, p);
        takes[p] = side ? LLVMBuildNot(g->b, takes[p], "") : takes[p];
        g->mask[p] = is_pure ? outer[p] : qn__mask_and(g, outer[p], takes[p]);
    }
    if (is_under_mask) { /* which has no results */
        lower_side(g, begin, end, y);
        memcpy(g->mask, outer, sizeof outer);
        return;
    }
    branch active =
        qn__begin_choice(g, is_pure ? any_of(g, takes) : qn__any_part(g), "active", NULL);
    lower_side(g, begin, end, y);
    for (int n = 0; last && n < y->n; n++)
        FOR_PARTS (g, p)
            if (*slot_of(y, n, p) && *slot_of(last, n, p))
                *slot_of(y, n, p) =
                    side ? chosen(g, i, last, y, n, p) : chosen(g, i, y, last, n, p);
    qn__end_branch(g, &active, NULL);
    for (int n = 0; n < y->n; n++)
        FOR_PARTS (g, p) {
            LLVMValueRef v = *slot_of(y, n, p), without = last ? *slot_of(last, n, p) : NULL;
            if (v)
                *slot_of(y, n, p) =
                    qn__join(g, &active, v, without ? without : LLVMConstNull(LLVMTypeOf(v)));
        }
    memcpy(g->mask, outer, sizeof outer);
    g->active = NULL;
}

/** Whether a region, of which `if`s may be a part, only computes. */
static bool computes_only(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        int op = k->inst[i].op;
        if (!qn__is_pure(&k->inst[i]) && op != QN_I_IF && op != QN_I_YIELD)
            return false;
    }
    return true;
}

/** The parts of results of an `if` that are emitted; their number. */
static int parts_of_results(const lower *g, const yields *y, int *part)
{
    int n_parts = 0;
    FOR_PARTS (g, p) {
        bool has_results = false;
        for (int n = 0; n < y->n; n++)
            has_results |= y->receiver[n] && qn__canonical_part(g, y->receiver[n], p) == p;
        if (has_results)
            part[n_parts++] = p;
    }
    return n_parts;
}

/** Whether a thread computes the usual side of an `if` in any case, and then looks whether
 * the rare one is needed. */
static bool is_rare_of_thread(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    return g->f->target->branches_diverge && g->width == 1 && x->sub &&
           computes_only(g->k, x->region[0], x->region[2]);
}

/** The usual side of all parts, without branches between them, and one branch to the rare sides,
 * where each part has its own. */
static void lower_rare_if(lower *g, uint32_t i, yields *rare, yields *usual)
{
    const qn_inst *x = &g->k->inst[i];
    int part[MOST_PARTS], n_parts = parts_of_results(g, rare, part), outer = g->one_part;
    LLVMValueRef condition[MOST_PARTS], any = NULL;
    for (int n = 0; n < n_parts; n++) {
        condition[n] = qn__scalar(g, qn__args(g->k, i)[0], part[n]);
        any = !any || any == condition[n] ? condition[n] : LLVMBuildOr(g->b, any, condition[n], "");
    }
    if (!any)
        return; /* nobody uses a result */
    lower_side(g, x->region[1], x->region[2], usual);
    branch all = qn__begin_choice(g, any, "rare", NULL);
    for (int n = 0; n < n_parts; n++) {
        g->one_part = 1 + part[n];
        branch one = n_parts > 1 ? qn__begin_choice(g, condition[n], "one", NULL) : all;
        lower_side(g, x->region[0], x->region[1], rare);
        if (n_parts > 1)
            qn__end_branch(g, &one, NULL);
        for (int m = 0; m < rare->n && n_parts > 1; m++)
            FOR_PARTS (g, p)
                if (*slot_of(rare, m, p))
                    *slot_of(rare, m, p) =
                        qn__join(g, &one, *slot_of(rare, m, p), *slot_of(usual, m, p));
    }
    g->one_part = outer;
    qn__end_branch(g, &all, NULL);
    qn__join_yields(g, rare, usual, &all);
}

/** The sides one after the other: first the one that is computed in any case, if there is one. */
static void lower_masked_if(lower *g, uint32_t i, yields *then, yields *other)
{
    const qn_inst *x = &g->k->inst[i];
    yields *sides[2] = {then, other};
    bool branched[2];
    for (int n = 0; n < 2; n++)
        branched[n] = is_branched(g, i, n, then->n);
    int first = branched[0] && !branched[1];
    for (int n = 0; n < 2; n++) {
        int side = first ^ n;
        if (branched[side])
            lower_branched_side(g, i, side, sides[side], n ? sides[first] : NULL);
        else if (then->n)
            qn__collect(g, sides[side], qn__args(g->k, x->region[side + 1] - 1));
    }
    const yields *last = sides[!first];
    for (int n = 0; n < then->n; n++)
        FOR_PARTS (g, p) {
            LLVMValueRef v = *slot_of(last, n, p);
            if (v && *slot_of(sides[first], n, p))
                qn__set(g, then->receiver[n], p,
                        branched[!first] ? v : chosen(g, i, then, other, n, p), g->depth);
        }
}

/** Whether all results of an `if` that only computes are there: kept from an earlier reduce. */
static bool is_known(const lower *g, uint32_t i, const yields *y)
{
    bool is_there = g->kept && y->n > 0 &&
                    computes_only(g->k, g->k->inst[i].region[0], g->k->inst[i].region[2]);
    for (int n = 0; is_there && n < y->n; n++)
        is_there = !y->receiver[n] ||
                   (g->value[y->receiver[n]].is_set && g->value[y->receiver[n]].part[0]);
    return is_there;
}

static void lower_if(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    int n = g->k->inst[x->region[1] - 1].n_args;
    yields then, other;
    if (qn__results_new(g, i, n, &then, &other)) {
        if (is_known(g, i, &then))
            ;
        else if (is_rare_of_thread(g, i))
            lower_rare_if(g, i, &then, &other);
        else if (qn__is_uniform(g, qn__args(g->k, i)[0]))
            lower_uniform_if(g, i, &then, &other);
        else
            lower_masked_if(g, i, &then, &other);
    }
    qn__free(then.value);
    qn__free(other.value);
}

/* ---------------------------------------------------------------- regions */

void qn__lower_region(lower *g, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end && qn__spend(g, i); i = g->k->inst[i].region[2]) {
        qn__debug_at(g, i);
        switch (g->k->inst[i].op) {
        case QN_I_LOAD:
            qn__lower_load(g, i, end);
            break;
        case QN_I_STORE:
            qn__lower_store(g, i);
            break;
        case QN_I_ATOMIC:
            i = qn__lower_atomic(g, i, end);
            break;
        case QN_I_ASSERT:
            qn__lower_assert(g, i);
            break;
        case QN_I_IF:
            lower_if(g, i);
            break;
        case QN_I_FOR:
            qn__lower_for(g, i);
            break;
        case QN_I_WHILE:
            qn__lower_while(g, i);
            break;
        case QN_I_REDUCE:
            qn__lower_reduce(g, i);
            break;
        default: /* pure: emitted where it is used */
            break;
        }
    }
}
