/* SPDX-License-Identifier: Apache-2.0 */
/*
 * while.c: loops with their test at the head: `while`, and a `for` whose trips differ between
 * lanes. These run under masks until no lane is active.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/yields.h"

#include <string.h>

/* ---------------------------------------------------------------- the head */

/** Blocks: before -> head -> body -> head, head -> after. */
typedef struct headed {
    yields now; /* carried values where the lowering stands */
    carry carry;
    LLVMBasicBlockRef before, head, body, after;
    LLVMValueRef trip; /* i64, 0, 1, ...; NULL: trips are counted down, */
    LLVMValueRef left; /* and so many may still be run */
    pace pace;
    LLVMValueRef outer[MOST_PARTS];
    LLVMValueRef alive[MOST_PARTS]; /* lanes of a `while` that have not left; NULL: all or none */
    bool is_divergent;
} headed;

/** `most`: trips that are allowed, before the loop. ran: NULL, or trips that ran in lanes. */
static void head_open(lower *g, headed *h, LLVMValueRef most, LLVMValueRef ran)
{
    h->before = LLVMGetInsertBlock(g->b);
    h->head = qn__new_block(g, "head");
    h->body = qn__new_block(g, "body");
    h->after = qn__new_block(g, "after");
    LLVMBuildBr(g->b, h->head);
    qn__level_open(g, false, true, false);
    LLVMPositionBuilderAtEnd(g->b, h->head);
    h->trip = h->left ? NULL : qn__const_i64(g, 0);
    qn__carry(g, &h->carry, &h->trip, 1);
    qn__carry(g, &h->carry, &h->left, 1);
    int64_t known;
    qn__pace_open(g, &h->pace, most, qn__is_const(most, &known) ? known : INT64_MAX);
    qn__carry(g, &h->carry, h->now.value, h->now.n * MOST_PARTS);
    qn__set_yields(g, &h->now, h->now.receiver);
    memcpy(h->outer, g->mask, sizeof h->outer);
    qn__carry(g, &h->carry, h->alive, MOST_PARTS);
    if (ran)
        qn__set_index(g, g->trip_block.lane_dim, LLVMBuildAdd(g->b, ran, h->trip, ""));
}

/** What a trip carries on; lanes that are not active keep what they have. */
static void collect(lower *g, headed *h, const uint32_t *operand, const LLVMValueRef *active)
{
    qn__collect(g, &h->now, operand);
    for (int n = 0; n < h->carry.n && h->is_divergent; n++) {
        const carried_value *x = &h->carry.of[n];
        const ptrdiff_t at = x->value - h->now.value;
        const bool is_own = x->value >= h->now.value && at < h->now.n * MOST_PARTS;
        LLVMValueRef mask = is_own ? active[at % MOST_PARTS] : NULL;
        if (mask)
            *x->value = LLVMBuildSelect(g->b, mask, *x->value, x->phi, "");
    }
}

/** Emits the body's region and the jump back; stands at `after` then. */
static void head_close(lower *g, headed *h, uint32_t i, uint32_t begin, uint32_t end)
{
    LLVMValueRef active[MOST_PARTS];
    memcpy(active, g->mask, sizeof active);
    qn__lower_region(g, begin, end);
    collect(g, h, qn__args(g->k, end - 1), active);
    FOR_PARTS (g, p)
        h->alive[p] = h->alive[p] ? active[p] : NULL;
    if (h->trip)
        h->trip = LLVMBuildAdd(g->b, h->trip, qn__const_i64(g, 1), "");
    if (h->left)
        h->left = LLVMBuildSub(g->b, h->left, qn__int(LLVMTypeOf(h->left), 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    qn__carry_close(&h->carry, h->before, latch);
    qn__carry_end(&h->carry);
    LLVMBuildBr(g->b, h->head);
    qn__pace_close(g, &h->pace, h->before, h->head, latch);
    memcpy(g->mask, h->outer, sizeof h->outer);
    g->active = NULL;
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, h->after);
    qn__set_results(g, &h->now, i);
}

/** Trips that differ: under masks, until no lane is active. */
static void lower_divergent(lower *g, uint32_t i, headed *h)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    LLVMValueRef begin[MOST_PARTS], trips[MOST_PARTS], index[MOST_PARTS];
    FOR_PARTS (g, p) {
        begin[p] = qn__vector(g, arg[0], p);
        trips[p] = qn__count_trips(g, begin[p], qn__vector(g, arg[1], p), (int64_t)x->imm);
    }
    head_open(g, h, qn__const_i64(g, INT64_MAX), NULL);
    FOR_PARTS (g, p) {
        LLVMValueRef trip = qn__splat(g, h->trip, g->depth);
        g->mask[p] =
            qn__mask_and(g, h->outer[p], LLVMBuildICmp(g->b, LLVMIntULT, trip, trips[p], ""));
    }
    LLVMBuildCondBr(g->b, qn__any_part(g), h->body, h->after);
    LLVMPositionBuilderAtEnd(g->b, h->body);
    if (h->pace.end)
        qn__pace_test(g, &h->pace, h->trip, h->after);
    bool is_vector = qn__wants_vector(g, x->region[0]);
    FOR_PARTS (g, p)
        index[p] = qn__index_of_trip(g, is_vector ? begin[p] : qn__scalar(g, arg[0], p), h->trip,
                                     (int64_t)x->imm);
    qn__set_trip_index(g, x->region[0], index, is_vector);
    head_close(g, h, i, x->region[0], x->region[2]);
}

void qn__lower_divergent_for(lower *g, uint32_t i)
{
    headed h = {.is_divergent = true};
    if (qn__open_carried(g, i, &h.now))
        lower_divergent(g, i, &h);
    qn__free(h.now.value);
}

/** Ends the loop for good when it has run its most trips, and records that. */
static void check_limit(lower *g, uint32_t i, headed *h)
{
    LLVMBasicBlockRef limit = qn__new_block(g, "limit"), go_on;
    if (!h->pace.end) {
        LLVMValueRef some = h->left ? LLVMBuildICmp(g->b, LLVMIntNE, h->left,
                                                    LLVMConstNull(LLVMTypeOf(h->left)), "")
                                    : LLVMBuildICmp(g->b, LLVMIntSLT, h->trip, h->pace.most, "");
        go_on = qn__new_block(g, "below");
        qn__mark_likely(g, LLVMBuildCondBr(g->b, some, go_on, limit));
    } else {
        LLVMBasicBlockRef test = LLVMGetInsertBlock(g->b);
        qn__pace_test(g, &h->pace, h->trip, limit);
        go_on = h->pace.below;
        LLVMPositionBuilderAtEnd(g->b, test);
    }
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, limit);
    FOR_PARTS (g, p)
        qn__note_fault(g, i, p, g->mask[p] ? g->mask[p] : LLVMConstInt(g->i1, 1, false),
                       QN_ERR_LIMIT);
    LLVMBuildBr(g->b, h->after);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, go_on);
}

uint32_t qn__last_condition(const lower *g, uint32_t begin, uint32_t end)
{
    const qn_kernel *k = g->k;
    const uint32_t result = qn__args(k, end - 1)[0];
    const uint32_t i = k->inst[result].op == QN_I_RESULT ? qn__args(k, result)[0] : 0;
    if (i < begin || result != end - 2 || k->inst[i].op != QN_I_IF ||
        k->inst[i].region[2] != result || g->f->target->branches_diverge)
        return 0;
    const qn_inst *other = &k->inst[qn__args(k, k->inst[i].region[2] - 1)[0]];
    return other->op == QN_I_CONST && !other->imm ? i : 0;
}

/** What a loop ends by, the same for the whole block: goes to its body or behind it. Where a
 * condition of several does not hold, the others are not looked at. */
static void lower_test(lower *g, uint32_t begin, uint32_t end, const headed *h)
{
    const uint32_t i = qn__last_condition(g, begin, end);
    qn__lower_region(g, begin, i ? i : end);
    LLVMValueRef going = qn__scalar(g, qn__args(g->k, i ? i : end - 1)[0], 0);
    LLVMBasicBlockRef next = i ? qn__new_block(g, "and") : h->body;
    LLVMBuildCondBr(g->b, going, next, h->after);
    if (!i)
        return;
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, next);
    lower_test(g, g->k->inst[i].region[0], g->k->inst[i].region[1], h);
    qn__level_close(g);
}

/** On a target that computes in 32 bits twice as fast as in 64 (target->counts_in_32) trips are
 * counted down, in 32 bits where `most` is known to fit. */
static LLVMValueRef count_down(lower *g, LLVMValueRef most)
{
    int64_t known;
    LLVMValueRef left = qn__smax(g, most, qn__const_i64(g, 0));
    if (!g->f->target->counts_in_32)
        return NULL;
    return qn__is_const(left, &known) && known <= UINT32_MAX ? qn__int(g->i32, known) : left;
}

void qn__lower_while(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t test = qn__args(g->k, x->region[1] - 1)[0];
    headed h = {.is_divergent = !qn__is_uniform(g, test)};
    if (!qn__open_carried(g, i, &h.now))
        return;
    LLVMValueRef most = qn__scalar(g, qn__args(g->k, i)[0], 0), /* and how many ran in lanes */
        ran = qn__has_trip_lanes(g, i) ? qn__lanes_while(g, i, most, &h.now) : NULL;
    most = ran ? LLVMBuildSub(g->b, most, ran, "") : most;
    h.left = ran ? NULL : count_down(g, most);
    FOR_PARTS (g, p)
        if (h.is_divergent) /* lanes that left stay out */
            h.alive[p] = g->mask[p] ? g->mask[p] : LLVMConstAllOnes(qn__vector_of(g, g->i1));
    head_open(g, &h, most, ran);
    if (h.is_divergent) {
        memcpy(g->mask, h.alive, sizeof h.alive);
        qn__lower_region(g, x->region[0], x->region[1]);
        FOR_PARTS (g, p)
            g->mask[p] = qn__mask_and(g, h.alive[p], qn__vector(g, test, p));
        LLVMBuildCondBr(g->b, qn__any_part(g), h.body, h.after);
    } else {
        lower_test(g, x->region[0], x->region[1], &h);
    }
    LLVMPositionBuilderAtEnd(g->b, h.body);
    check_limit(g, i, &h);
    head_close(g, &h, i, x->region[1], x->region[2]);
    qn__free(h.now.value);
}
