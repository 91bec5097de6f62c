/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll.c: loops that may run for long look now and then whether the launch was cancelled, at the
 * word that the fault record names, and leave the function if so. They leave, too, if an access was
 * out of range in an iteration before all that are left, many looks ago. Work is counted in emitted
 * instructions. A loop that does less than INNER_WORK x OUTER_FACTOR at most does not look, so
 * short loops are as they would be without. Else the loop is strip-mined: the inner loop is the one
 * that would have been emitted, with the end of its strip as its end, and between strips the word
 * is read. A loop of one strip, as most rows are, pays one test and one branch that is never taken
 * at its end; a loop that may be empty is tested once in any case. A strip of a loop without loops
 * inside is INNER_WORK at most, of other loops OUTER_FACTOR times that: outer strips are some trips
 * of inner ones that never fill a strip, as short rows do. A loop of which a strip would be few
 * trips looks after every trip: the end of a strip is a branch that processors do not foresee. The
 * address of the word is in a register then, and the look is a comparison with memory and a branch
 * that is never taken.
 */
#include "jit/lower/nest.h"

#include <stddef.h>

enum { INNER_WORK = 1 << 14, OUTER_FACTOR = 128, FEW_TRIPS = 32 };

/** Instructions emitted since block `head` was made, each lane of gathers and scatters as one. */
static int64_t work_since(LLVMBasicBlockRef head)
{
    int64_t n = 0;
    for (LLVMBasicBlockRef b = head; b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            n += 1 + qn__lane_accesses(i);
    return n;
}

int64_t qn__strip_trips(lower *g, LLVMBasicBlockRef head, int64_t most_trips, int64_t outer_work)
{
    int64_t inner = g->f->plan.poll ? g->f->plan.poll : INNER_WORK, outer = inner * OUTER_FACTOR,
            total;
    if (!g->f->target->looks || inner < 0)
        return 0;
    int64_t trip = work_since(head) + g->work, strip = g->work ? outer : inner;
    if (!__builtin_mul_overflow(trip, most_trips, &total) && total <= outer) {
        g->work = outer_work + total;
        return 0;
    }
    g->work = outer_work + (trip > strip ? trip : strip);
    return strip / trip < FEW_TRIPS ? 1 : strip / trip;
}

/** Where the address of the word is read, when the builder stands there. */
static LLVMValueRef load_address(lower *g)
{
    return qn__load_at(g, g->ptr, qn__ahead(g, g->fault, offsetof(qn_fault, cancel)), 8);
}

/** Number of the first iteration that may be left, in the order of the domain: all that comes
 * before it in the loops which walk that order is done. */
static LLVMValueRef first_left(lower *g)
{
    LLVMValueRef sum = qn__const_i64(g, 0);
    for (int d = 0; d < g->k->n_dims; d++) {
        if (qn__is_reduction(g->k, d))
            continue;
        sum = LLVMBuildMul(g->b, sum, LLVMBuildSub(g->b, g->end[d], g->begin[d], ""), "");
        if (!(g->in_order >> d & 1))
            continue;
        LLVMValueRef at = LLVMBuildSub(g->b, g->iv[d], g->begin[d], "");
        at = LLVMBuildAdd(g->b, at, qn__const_i64(g, g->ahead[d]), "");
        sum = LLVMBuildAdd(g->b, sum, at, "");
    }
    return sum;
}

/** Whether a failure may be recorded in place of one of its iteration that came before: points are
 * seen out of order (lower/fault.c) when a loop looks. */
static bool has_points_out_of_order(const lower *g)
{
    const qn_kernel *k = g->k;
    const int lane_dim = g->block->lane_dim;
    bool has = g->block->strip.length > 0;
    for (uint32_t i = k->body; i < k->n_insts && qn__is_reduction(k, lane_dim); i++) {
        const qn_inst *x = &k->inst[i];
        has |= (x->op == QN_I_FOR || x->op == QN_I_WHILE) && qn__enclosing_reduce(k, i);
        has |= x->op == QN_I_REDUCE && qn__dim_of(k, i, x->n_args - 1) != lane_dim;
    }
    return has;
}

/** The block where a launch leaves whose first failure is known, and a word of the frame that
 * counts looks behind a failure. */
static void open_ended(lower *g)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(g->function)));
    g->looks = LLVMBuildAlloca(g->b, g->i64, "");
    qn__store_at(g, qn__const_i64(g, 0), g->looks, 8);
    LLVMPositionBuilderAtEnd(g->b, here);
    g->ended = qn__new_block(g, "ended");
}

/** Leaves if an access was out of range before all that is left, and long ago: nothing of that is
 * reported, and what a failed launch writes is not to be used. What little is left runs as in the
 * interpreter. */
static void branch_on_failure(lower *g)
{
    if (!g->may_fail || !g->in_order)
        return;
    if (!g->ended)
        open_ended(g);
    LLVMBasicBlockRef order = qn__new_block(g, "order"), late = qn__new_block(g, "late"),
                      go_on = qn__new_block(g, "good");
    LLVMValueRef status =
        qn__load_at(g, g->i64, qn__ahead(g, g->fault, offsetof(qn_fault, status)), 8);
    LLVMValueRef is_good =
        LLVMBuildICmp(g->b, LLVMIntNE, status, qn__const_i64(g, QN_ERR_BOUNDS), "");
    qn__mark_likely(g, LLVMBuildCondBr(g->b, is_good, go_on, order));
    LLVMPositionBuilderAtEnd(g->b, order);
    LLVMValueRef looks =
        LLVMBuildAdd(g->b, qn__load_at(g, g->i64, g->looks, 8), qn__const_i64(g, 1), "");
    qn__store_at(g, looks, g->looks, 8);
    LLVMBuildCondBr(
        g->b, LLVMBuildICmp(g->b, LLVMIntUGT, looks, qn__const_i64(g, QN_MOST_LOOKS_BEHIND), ""),
        late, go_on);
    LLVMPositionBuilderAtEnd(g->b, late);
    LLVMValueRef iteration =
        qn__load_at(g, g->i64, qn__ahead(g, g->fault, offsetof(qn_fault, iteration)), 8);
    LLVMBuildCondBr(g->b,
                    LLVMBuildICmp(g->b, has_points_out_of_order(g) ? LLVMIntULT : LLVMIntULE,
                                  iteration, first_left(g), ""),
                    g->ended, go_on);
    LLVMPositionBuilderAtEnd(g->b, go_on);
}

/** Ends a block: goes on to another one unless the word says that the launch was cancelled, or its
 * first failure is known. */
static void branch_on_word(lower *g, LLVMValueRef at, LLVMBasicBlockRef go_on)
{
    branch_on_failure(g);
    if (!g->cancelled)
        g->cancelled = qn__new_block(g, "cancelled");
    LLVMValueRef word = qn__load_at(g, g->i32, at, 4);
    LLVMSetVolatile(word, true);
    LLVMValueRef goes_on = LLVMBuildICmp(g->b, LLVMIntEQ, word, LLVMConstInt(g->i32, 0, false), "");
    qn__mark_likely(g, LLVMBuildCondBr(g->b, goes_on, go_on, g->cancelled));
}

/** A block that looks, and goes on to another one, at the end of block *from. */
static LLVMBasicBlockRef new_poll(lower *g, LLVMBasicBlockRef go_on, LLVMBasicBlockRef *from)
{
    LLVMBasicBlockRef poll = qn__new_block(g, "poll");
    LLVMPositionBuilderAtEnd(g->b, poll);
    branch_on_word(g, load_address(g), go_on);
    *from = LLVMGetInsertBlock(g->b);
    return poll;
}

void qn__look(lower *g)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b), go_on = qn__new_block(g, "looked");
    if (!g->cancel) {
        LLVMPositionBuilderBefore(g->b,
                                  LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(g->function)));
        g->cancel = load_address(g);
        LLVMPositionBuilderAtEnd(g->b, here);
    }
    branch_on_word(g, g->cancel, go_on);
    LLVMPositionBuilderAtEnd(g->b, go_on);
}

void qn__poll_end(lower *g)
{
    if (g->ended) {
        LLVMPositionBuilderAtEnd(g->b, g->ended);
        qn__stream_fence(g);
        LLVMBuildRetVoid(g->b);
    }
    if (!g->cancelled)
        return;
    LLVMPositionBuilderAtEnd(g->b, g->cancelled);
    LLVMValueRef status = qn__ahead(g, g->fault, offsetof(qn_fault, status));
    qn__store_at(g, qn__const_i64(g, QN_ERR_CANCELLED), status, 8);
    qn__stream_fence(g);
    LLVMBuildRetVoid(g->b);
}

/* ---------------------------------------------------------------- loops that count */

/** Where the first strip ends, at the block behind which the loop is entered, *entry. Short loops
 * must not pay for strips: whether the loop is longer than one is the same test as whether it has
 * any trip. The first strip of a longer loop takes what does not fill one, so that the ends of the
 * others need no register of the inner loop. */
static LLVMValueRef first_end(lower *g, loop *l, int64_t most, LLVMBasicBlockRef *entry)
{
    LLVMBasicBlockRef rare = qn__new_block(g, "rare"), from = l->is_guarded ? l->guard : l->before,
                      longer = rare;
    *entry = l->is_guarded ? l->before : qn__new_block(g, "inside");
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(from));
    LLVMPositionBuilderAtEnd(g->b, from);
    LLVMValueRef n = LLVMBuildSub(g->b, l->end, l->start, ""), beyond = n;
    if (l->is_guarded) /* no index: more than all */
        beyond = LLVMBuildSub(g->b, n, qn__const_i64(g, 1), "");
    LLVMValueRef is_one = LLVMBuildICmp(g->b, LLVMIntULT, beyond, qn__const_i64(g, most), "");
    qn__mark_likely(g, LLVMBuildCondBr(g->b, is_one, *entry, rare));
    LLVMPositionBuilderAtEnd(g->b, rare);
    if (l->is_guarded) {
        longer = qn__new_block(g, "longer");
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, n, qn__const_i64(g, 0), ""), l->after,
                        longer);
        l->guard = rare; /* from where l->after is entered without a trip */
        LLVMPositionBuilderAtEnd(g->b, longer);
    }
    LLVMValueRef rest =
        LLVMBuildURem(g->b, LLVMBuildSub(g->b, n, l->step, ""), qn__const_i64(g, most), "");
    LLVMValueRef first = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, l->start, rest, ""), l->step, "");
    LLVMBuildBr(g->b, *entry);
    if (!l->is_guarded) {
        LLVMPositionBuilderAtEnd(g->b, *entry);
        LLVMBuildBr(g->b, l->head);
    }
    LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(*entry));
    return qn__phi(g, l->end, from, first, longer);
}

LLVMBasicBlockRef qn__strip_close(lower *g, loop *l, LLVMValueRef index, int64_t trips)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b), strip = qn__new_block(g, "strip"),
                      done = qn__new_block(g, "done"), entry, from_poll;
    int64_t step = LLVMConstIntGetSExtValue(l->step), most;
    if (__builtin_mul_overflow(trips, step, &most))
        most = step;
    LLVMBasicBlockRef next_strip = qn__new_block(g, "next"),
                      poll = new_poll(g, next_strip, &from_poll);
    LLVMPositionBuilderAtEnd(g->b, next_strip);
    LLVMValueRef further = LLVMBuildAdd(g->b, index, qn__const_i64(g, most), "");
    LLVMBuildBr(g->b, strip);
    LLVMValueRef first = first_end(g, l, most, &entry);
    LLVMSetSuccessor(LLVMGetBasicBlockTerminator(entry), 0, strip);
    LLVMPositionBuilderAtEnd(g->b, strip);
    LLVMValueRef from = qn__phi(g, l->start, entry, index, next_strip),
                 end = qn__phi(g, first, entry, further, next_strip);
    LLVMAddIncoming(l->index, &from, &strip, 1);
    LLVMAddIncoming(l->index, &index, &latch, 1);
    for (int n = 0; n < l->carry.n; n++) {
        carried_value *x = &l->carry.of[n];
        LLVMValueRef at_strip = qn__phi(g, x->init, entry, *x->value, next_strip);
        LLVMAddIncoming(x->phi, &at_strip, &strip, 1);
        LLVMAddIncoming(x->phi, x->value, &latch, 1);
    }
    LLVMBuildBr(g->b, l->head);
    LLVMPositionBuilderAtEnd(g->b, latch);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, index, end, ""), l->head, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    qn__mark_likely(g, LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, index, l->end, ""),
                                       l->after, poll));
    return done;
}

/* ---------------------------------------------------------------- loops that end when they find
 * out */

void qn__pace_open(lower *g, pace *x, LLVMValueRef most, int64_t most_trips)
{
    *x = (pace){.most = most, .most_trips = most_trips, .outer_work = g->work};
    g->work = 0;
    if (g->f->target->looks)
        x->end = LLVMBuildPhi(g->b, g->i64, "");
}

void qn__pace_test(lower *g, pace *x, LLVMValueRef trip, LLVMBasicBlockRef limit)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    x->edge = qn__new_block(g, "edge");
    x->below = qn__new_block(g, "below");
    x->limit = limit;
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, trip, x->end, ""), x->below, x->edge);
    LLVMPositionBuilderAtEnd(g->b, x->below);
    x->next = LLVMBuildPhi(g->b, g->i64, "");
    LLVMAddIncoming(x->next, &x->end, &from, 1);
}

void qn__pace_close(lower *g, pace *x, LLVMBasicBlockRef before, LLVMBasicBlockRef head,
                    LLVMBasicBlockRef latch)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    int64_t trips = qn__strip_trips(g, head, x->most_trips, x->outer_work);
    if (!x->end)
        return;
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(before));
    LLVMValueRef first = trips ? qn__smin(g, x->most, qn__const_i64(g, trips)) : x->most;
    LLVMAddIncoming(x->end, &first, &before, 1);
    LLVMAddIncoming(x->end, &x->next, &latch, 1);
    if (trips) {
        LLVMBasicBlockRef from, poll = new_poll(g, x->below, &from);
        LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(poll));
        LLVMValueRef next = qn__piece_at(g, x->end, trips, x->most).high;
        LLVMAddIncoming(x->next, &next, &from, 1);
        LLVMPositionBuilderAtEnd(g->b, x->edge);
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, x->end, x->most, ""), poll, x->limit);
    } else {
        LLVMPositionBuilderAtEnd(g->b, x->edge);
        LLVMBuildBr(g->b, x->limit);
    }
    LLVMPositionBuilderAtEnd(g->b, here);
}
