/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_control.c: regions, loops, `if`, `for` and `while`. Control flow on a value that is the same for the whole block
 * becomes branches; on one that differs it becomes masks, with a branch around a region that touches memory when no
 * lane is active, and loops run until no lane is.
 */
#include "jit/llvm_lower.h"

#include <string.h>

/* ---------------------------------------------------------------- counted loops of LLVM */

/** The same value behind an empty piece of assembly. It costs no instruction, but the code generator's loop strength
 *  reduction no longer sees an induction variable, so it leaves our addresses alone (and a third of a small kernel's
 *  compile time is saved). */
static LLVMValueRef opaque(lower *g, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMFunctionType(g->i64, &g->i64, 1, false);
    const char *same = g->p->is_gpu ? "=l,0" : "=r,0";
    LLVMValueRef barrier = LLVMGetInlineAsm(t, "", 0, same, 4, false, false, LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(g->b, t, barrier, &v, 1, "");
}

void qn__loop_open(lower *g, loop *l, LLVMValueRef start, LLVMValueRef end, int64_t step, bool guarded,
                   bool is_sequential, int n_carried, LLVMValueRef *init, LLVMValueRef *phi)
{
    int64_t s = 0, e = 0;
    bool is_known = qn__is_const(start, &s) && qn__is_const(end, &e);
    *l = (loop){.end = end, .step = qn__const_i64(g, step), .init = init, .phi = phi, .n_carried = n_carried};
    if (is_known && e - s == step) {
        l->is_single = true;
        l->index = start;
        l->head = qn__new_block(g, "once");
        LLVMBuildBr(g->b, l->head);
        qn__level_open(g, false, is_sequential, false); /* what it holds must not be taken for the next loop's */
        LLVMPositionBuilderAtEnd(g->b, l->head);
        for (int n = 0; n < n_carried; n++)
            phi[n] = init[n];
        return;
    }
    l->is_guarded = guarded && !is_known;
    if (l->is_guarded) {
        l->guard = LLVMGetInsertBlock(g->b);
        l->after = qn__new_block(g, "after");
        LLVMBasicBlockRef inside = qn__new_block(g, "inside");
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, start, end, ""), inside, l->after);
        qn__level_open(g, false, false, true);
        LLVMPositionBuilderAtEnd(g->b, inside);
    }
    l->before = LLVMGetInsertBlock(g->b);
    l->head = qn__new_block(g, "loop");
    LLVMBuildBr(g->b, l->head);
    qn__level_open(g, false, is_sequential, false);
    LLVMPositionBuilderAtEnd(g->b, l->head);
    l->index = LLVMBuildPhi(g->b, g->i64, "");
    LLVMAddIncoming(l->index, &start, &l->before, 1);
    for (int n = 0; n < n_carried; n++) {
        phi[n] = LLVMBuildPhi(g->b, LLVMTypeOf(init[n]), "");
        LLVMAddIncoming(phi[n], &init[n], &l->before, 1);
    }
}

void qn__once_open(lower *g, loop *l, LLVMValueRef condition)
{
    *l = (loop){.is_single = true, .is_guarded = true, .after = qn__new_block(g, "after")};
    LLVMBasicBlockRef inside = qn__new_block(g, "once");
    LLVMBuildCondBr(g->b, condition, inside, l->after);
    qn__level_open(g, false, false, true);
    LLVMPositionBuilderAtEnd(g->b, inside);
}

static void close_single(lower *g, loop *l, LLVMValueRef *next, LLVMValueRef *out)
{
    if (l->is_guarded)
        LLVMBuildBr(g->b, l->after);
    qn__level_close(g);
    if (l->is_guarded)
        LLVMPositionBuilderAtEnd(g->b, l->after);
    for (int n = 0; n < l->n_carried; n++)
        out[n] = next[n];
}

void qn__loop_close(lower *g, loop *l, LLVMValueRef *next, LLVMValueRef *out)
{
    if (l->is_single) {
        close_single(g, l, next, out);
        return;
    }
    LLVMValueRef index = opaque(g, LLVMBuildAdd(g->b, l->index, l->step, ""));
    LLVMValueRef more = LLVMBuildICmp(g->b, LLVMIntNE, index, l->end, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    if (!l->is_guarded)
        l->after = qn__new_block(g, "after");
    LLVMBuildCondBr(g->b, more, l->head, l->after);
    LLVMAddIncoming(l->index, &index, &latch, 1);
    for (int n = 0; n < l->n_carried; n++)
        LLVMAddIncoming(l->phi[n], &next[n], &latch, 1);
    qn__level_close(g);
    if (l->is_guarded)
        qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, l->after);
    for (int n = 0; n < l->n_carried; n++) {
        out[n] = next[n];
        if (!l->is_guarded)
            continue;
        LLVMValueRef values[2] = {l->init[n], next[n]};
        LLVMBasicBlockRef blocks[2] = {l->guard, latch};
        out[n] = LLVMBuildPhi(g->b, LLVMTypeOf(next[n]), "");
        LLVMAddIncoming(out[n], values, blocks, 2);
    }
}

/* ---------------------------------------------------------------- results of regions */

/** Values of one region's end: [n * MOST_PARTS + p]. Only canonical parts of the receiving instruction are set. */
typedef struct yields {
    LLVMValueRef *value;
    uint32_t receiver[QN_MAX_CARRIED]; /* result or carried instruction, 0: nobody */
    int n;
} yields;

static bool yields_new(lower *g, yields *y, int n)
{
    memset(y, 0, sizeof *y);
    y->n = n > QN_MAX_CARRIED ? QN_MAX_CARRIED : n;
    y->value = qn__zalloc((size_t)(y->n + 1) * MOST_PARTS, sizeof *y->value);
    if (!y->value)
        g->failed = true;
    return y->value != NULL;
}

static LLVMValueRef *slot_of(const yields *y, int n, int p)
{
    return &y->value[(size_t)n * MOST_PARTS + (size_t)p];
}

/** The `result` instructions that follow instruction i. */
static void find_results(const qn_kernel *k, uint32_t i, yields *y)
{
    for (uint32_t r = k->inst[i].region[2]; r < k->n_insts && k->inst[r].op == QN_I_RESULT; r++)
        if (qn__args(k, r)[0] == i && k->inst[r].imm < (uint64_t)y->n)
            y->receiver[k->inst[r].imm] = r;
}

static bool wants_vector(const lower *g, uint32_t receiver)
{
    return g->width > 1 && g->a.value[receiver].shape != QN_UNIFORM;
}

static LLVMValueRef shaped(lower *g, uint32_t value, int p, uint32_t receiver)
{
    return wants_vector(g, receiver) ? qn__vector(g, value, p) : qn__scalar(g, value, p);
}

/** Reads the operands of a yield in the shape of their receivers. */
static void collect(lower *g, yields *y, const uint32_t *operand)
{
    for (int n = 0; n < y->n; n++)
        FOR_PARTS(g, p)
            if (y->receiver[n] && qn__canonical_part(g, y->receiver[n], p) == p)
                *slot_of(y, n, p) = shaped(g, operand[n], p, y->receiver[n]);
}

/* ---------------------------------------------------------------- if */

static uint32_t n_yielded(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    return k->inst[qn__last_of_region(k, begin, end)].n_args;
}

static LLVMBasicBlockRef lower_branch(lower *g, LLVMBasicBlockRef from, LLVMBasicBlockRef block, LLVMBasicBlockRef join,
                                      uint32_t begin, uint32_t end, yields *y)
{
    LLVMPositionBuilderAtEnd(g->b, from);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, block);
    qn__lower_region(g, begin, end);
    if (y->n)
        collect(g, y, qn__args(g->k, qn__last_of_region(g->k, begin, end)));
    LLVMBasicBlockRef last = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, join);
    qn__level_close(g);
    return last;
}

static void lower_uniform_if(lower *g, uint32_t i, yields *then, yields *other)
{
    const qn_inst *x = &g->k->inst[i];
    LLVMValueRef condition = qn__scalar(g, qn__args(g->k, i)[0], 0);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), yes = qn__new_block(g, "yes"), no = qn__new_block(g, "no"),
                      join = qn__new_block(g, "join");
    LLVMBuildCondBr(g->b, condition, yes, no);
    LLVMBasicBlockRef blocks[2];
    blocks[0] = lower_branch(g, from, yes, join, x->region[0], x->region[1], then);
    blocks[1] = lower_branch(g, from, no, join, x->region[1], x->region[2], other);
    LLVMPositionBuilderAtEnd(g->b, join);
    for (int n = 0; n < then->n; n++)
        FOR_PARTS(g, p)
        {
            LLVMValueRef values[2] = {*slot_of(then, n, p), *slot_of(other, n, p)};
            if (!values[0] || !values[1])
                continue;
            LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(values[0]), "");
            LLVMAddIncoming(phi, values, blocks, 2);
            qn__set(g, then->receiver[n], p, phi, g->depth);
        }
}

static LLVMValueRef any_part(lower *g)
{
    LLVMValueRef any = NULL;
    FOR_PARTS(g, p)
    {
        LLVMValueRef one = qn__any(g, g->mask[p]);
        any = any ? LLVMBuildOr(g->b, any, one, "") : one;
    }
    return any;
}

/** One branch of a divergent if, under the masks that stand in g->mask. */
static void lower_masked_branch(lower *g, uint32_t begin, uint32_t end, yields *y)
{
    if (!qn__region_has_memory(g->k, begin, end)) {
        if (y->n)
            collect(g, y, qn__args(g->k, qn__last_of_region(g->k, begin, end)));
        return;
    }
    LLVMValueRef any = any_part(g);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), block = qn__new_block(g, "active"), join = qn__new_block(g, "join");
    LLVMBuildCondBr(g->b, any, block, join);
    LLVMBasicBlockRef last = lower_branch(g, from, block, join, begin, end, y);
    LLVMPositionBuilderAtEnd(g->b, join);
    for (int n = 0; n < y->n; n++)
        FOR_PARTS(g, p)
        {
            LLVMValueRef v = *slot_of(y, n, p);
            if (!v)
                continue;
            LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(v), ""), values[2] = {v, LLVMConstNull(LLVMTypeOf(v))};
            LLVMBasicBlockRef blocks[2] = {last, from};
            LLVMAddIncoming(phi, values, blocks, 2);
            *slot_of(y, n, p) = phi;
        }
}

static void lower_masked_if(lower *g, uint32_t i, yields *then, yields *other)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t condition = qn__args(g->k, i)[0];
    LLVMValueRef outer[MOST_PARTS], c[MOST_PARTS];
    memcpy(outer, g->mask, sizeof outer);
    FOR_PARTS(g, p)
    {
        c[p] = qn__vector(g, condition, p);
        g->mask[p] = qn__mask_and(g, outer[p], c[p]);
    }
    lower_masked_branch(g, x->region[0], x->region[1], then);
    FOR_PARTS(g, p)
        g->mask[p] = qn__mask_and(g, outer[p], LLVMBuildNot(g->b, c[p], ""));
    lower_masked_branch(g, x->region[1], x->region[2], other);
    memcpy(g->mask, outer, sizeof outer);
    for (int n = 0; n < then->n; n++)
        FOR_PARTS(g, p)
        {
            LLVMValueRef yes = *slot_of(then, n, p), no = *slot_of(other, n, p);
            if (!yes || !no)
                continue;
            /* A condition that differs only between jammed iterations gives uniform results. */
            bool vector = wants_vector(g, then->receiver[n]);
            LLVMValueRef which = vector ? c[p] : qn__scalar(g, condition, p);
            qn__set(g, then->receiver[n], p, LLVMBuildSelect(g->b, which, yes, no, ""), g->depth);
        }
}

static void lower_if(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    int n = (int)n_yielded(g->k, x->region[0], x->region[1]);
    yields then, other;
    if (!yields_new(g, &then, n))
        return;
    if (yields_new(g, &other, n)) {
        find_results(g->k, i, &then);
        find_results(g->k, i, &other);
        if (qn__is_uniform(g, qn__args(g->k, i)[0]))
            lower_uniform_if(g, i, &then, &other);
        else
            lower_masked_if(g, i, &then, &other);
    }
    qn__free(then.value);
    qn__free(other.value);
}

/* ---------------------------------------------------------------- loops: carried values */

/** State of a loop of the kernel while it is lowered. */
typedef struct carried {
    yields init, phi, next;
    LLVMBasicBlockRef before;
} carried;

static bool carried_new(lower *g, carried *c, uint32_t i, uint32_t first, int n)
{
    memset(c, 0, sizeof *c);
    if (!yields_new(g, &c->init, n) || !yields_new(g, &c->phi, n) || !yields_new(g, &c->next, n))
        return false;
    for (uint32_t r = first; g->k->inst[r].op == QN_I_CARRIED; r++)
        if (g->k->inst[r].imm < (uint64_t)c->init.n)
            c->init.receiver[g->k->inst[r].imm] = r;
    memcpy(c->phi.receiver, c->init.receiver, sizeof c->phi.receiver);
    memcpy(c->next.receiver, c->init.receiver, sizeof c->next.receiver);
    collect(g, &c->init, qn__args(g->k, i) + (g->k->inst[i].op == QN_I_FOR ? 2 : 1));
    return true;
}

static void carried_free(carried *c)
{
    qn__free(c->init.value);
    qn__free(c->phi.value);
    qn__free(c->next.value);
}

/** Makes the phis of the carried values in the current block, entered from c->before. */
static void carried_phis(lower *g, carried *c)
{
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS(g, p)
        {
            LLVMValueRef init = *slot_of(&c->init, n, p);
            if (!init)
                continue;
            LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(init), "");
            LLVMAddIncoming(phi, &init, &c->before, 1);
            *slot_of(&c->phi, n, p) = phi;
            qn__set(g, c->phi.receiver[n], p, phi, g->depth);
        }
}

/** Closes the phis with the next values from block `latch`; lanes that are not in `active` keep theirs. */
static void carried_close(lower *g, carried *c, LLVMValueRef *active)
{
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS(g, p)
        {
            LLVMValueRef phi = *slot_of(&c->phi, n, p), next = *slot_of(&c->next, n, p);
            if (phi && active && active[p])
                *slot_of(&c->next, n, p) = LLVMBuildSelect(g->b, active[p], next, phi, "");
        }
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS(g, p)
            if (*slot_of(&c->phi, n, p))
                LLVMAddIncoming(*slot_of(&c->phi, n, p), slot_of(&c->next, n, p), &latch, 1);
}

/** The results of a loop are the carried values at its head when it ends. */
static void carried_results(lower *g, const carried *c, uint32_t i)
{
    yields y = {.n = c->init.n};
    find_results(g->k, i, &y);
    for (int n = 0; n < y.n; n++)
        FOR_PARTS(g, p)
            if (y.receiver[n] && *slot_of(&c->phi, n, p))
                qn__set(g, y.receiver[n], p, *slot_of(&c->phi, n, p), g->depth);
}

/* ---------------------------------------------------------------- for and while */

/** A loop with its test at the head. Blocks: before -> head -> body -> head, head -> after. */
typedef struct headed {
    carried c;
    LLVMBasicBlockRef head, body, after, latch;
    LLVMValueRef trip; /* i64, 0, 1, ... */
    LLVMValueRef outer[MOST_PARTS];
    bool is_divergent;
} headed;

static void head_open(lower *g, headed *h)
{
    h->c.before = LLVMGetInsertBlock(g->b);
    h->head = qn__new_block(g, "head");
    h->body = qn__new_block(g, "body");
    h->after = qn__new_block(g, "after");
    LLVMBuildBr(g->b, h->head);
    qn__level_open(g, false, true, false);
    LLVMPositionBuilderAtEnd(g->b, h->head);
    LLVMValueRef zero = qn__const_i64(g, 0);
    h->trip = LLVMBuildPhi(g->b, g->i64, "");
    LLVMAddIncoming(h->trip, &zero, &h->c.before, 1);
    carried_phis(g, &h->c);
    memcpy(h->outer, g->mask, sizeof h->outer);
}

/** Emits the body's region and the jump back; stands at `after` then. */
static void head_close(lower *g, headed *h, uint32_t i, uint32_t begin, uint32_t end)
{
    LLVMValueRef active[MOST_PARTS];
    memcpy(active, g->mask, sizeof active);
    qn__lower_region(g, begin, end);
    collect(g, &h->c.next, qn__args(g->k, qn__last_of_region(g->k, begin, end)));
    carried_close(g, &h->c, h->is_divergent ? active : NULL);
    LLVMValueRef next = LLVMBuildAdd(g->b, h->trip, qn__const_i64(g, 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(h->trip, &next, &latch, 1);
    LLVMBuildBr(g->b, h->head);
    h->latch = latch;
    memcpy(g->mask, h->outer, sizeof h->outer);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, h->after);
    carried_results(g, &h->c, i);
}

/** Trips of a `for`: begin < end ? (end - begin - 1) / step + 1 : 0, for scalars or vectors. */
static LLVMValueRef trips_of(lower *g, LLVMValueRef begin, LLVMValueRef end, int64_t step, bool vector)
{
    LLVMValueRef one = qn__const_i64(g, 1), by = qn__const_i64(g, step), zero = LLVMConstNull(LLVMTypeOf(begin));
    if (vector) {
        one = qn__const_splat(g, one);
        by = qn__const_splat(g, by);
    }
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSLT, begin, end, ""), n = LLVMBuildSub(g->b, end, begin, "");
    if (step != 1) {
        n = LLVMBuildUDiv(g->b, LLVMBuildSub(g->b, n, one, ""), by, "");
        n = LLVMBuildAdd(g->b, n, one, "");
    }
    return LLVMBuildSelect(g->b, some, n, zero, "");
}

static LLVMValueRef index_of_trip(lower *g, LLVMValueRef begin, LLVMValueRef trip, int64_t step)
{
    LLVMValueRef ahead = trip;
    if (step != 1)
        ahead = LLVMBuildMul(g->b, trip, qn__const_i64(g, step), "");
    if (LLVMGetTypeKind(LLVMTypeOf(begin)) == LLVMVectorTypeKind)
        ahead = qn__splat(g, ahead, g->depth);
    return LLVMBuildAdd(g->b, begin, ahead, "");
}

static void lower_for(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    uint32_t index = x->region[0];
    headed h = {.is_divergent = !qn__is_uniform(g, arg[0]) || !qn__is_uniform(g, arg[1])};
    LLVMValueRef begin[MOST_PARTS], trips[MOST_PARTS], going = NULL;
    bool vector = g->width > 1 && h.is_divergent;
    if (!carried_new(g, &h.c, i, index + 1, x->n_args - 2)) {
        carried_free(&h.c);
        return;
    }
    FOR_PARTS(g, p)
    {
        begin[p] = vector ? qn__vector(g, arg[0], p) : qn__scalar(g, arg[0], p);
        LLVMValueRef end = vector ? qn__vector(g, arg[1], p) : qn__scalar(g, arg[1], p);
        trips[p] = h.is_divergent || p == 0 ? trips_of(g, begin[p], end, (int64_t)x->imm, vector) : trips[0];
    }
    head_open(g, &h);
    if (h.is_divergent) {
        FOR_PARTS(g, p)
        {
            LLVMValueRef trip = vector ? qn__splat(g, h.trip, g->depth) : h.trip;
            g->mask[p] = qn__mask_and(g, h.outer[p], LLVMBuildICmp(g->b, LLVMIntULT, trip, trips[p], ""));
        }
        going = any_part(g);
    } else {
        going = LLVMBuildICmp(g->b, LLVMIntULT, h.trip, trips[0], "");
    }
    LLVMBuildCondBr(g->b, going, h.body, h.after);
    LLVMPositionBuilderAtEnd(g->b, h.body);
    FOR_PARTS(g, p)
    {
        LLVMValueRef v = index_of_trip(g, begin[p], h.trip, (int64_t)x->imm);
        if (wants_vector(g, index) && !vector) /* would differ between jammed iterations, of which there is one now */
            v = qn__splat(g, v, g->depth);
        if (qn__canonical_part(g, index, p) == p)
            qn__set(g, index, p, v, g->depth);
    }
    head_close(g, &h, i, x->region[0], x->region[2]);
    carried_free(&h.c);
}

/** Ends the loop for good when it has run its most trips, and records that. */
static void check_limit(lower *g, uint32_t i, const headed *h)
{
    LLVMBasicBlockRef limit = qn__new_block(g, "limit"), go_on = qn__new_block(g, "below");
    LLVMValueRef most = qn__scalar(g, qn__args(g->k, i)[0], 0);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, h->trip, most, ""), go_on, limit);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, limit);
    FOR_PARTS(g, p)
        qn__note_fault(g, i, p, g->mask[p] ? g->mask[p] : LLVMConstInt(g->i1, 1, false), QN_ERR_LIMIT);
    LLVMBuildBr(g->b, h->after);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, go_on);
}

/** Masks of lanes that are still in the loop, as phis at its head. */
static void open_alive(lower *g, const headed *h, LLVMValueRef *alive)
{
    LLVMBasicBlockRef before = h->c.before;
    FOR_PARTS(g, p)
    {
        LLVMValueRef first = h->outer[p] ? h->outer[p] : qn__const_splat(g, LLVMConstInt(g->i1, 1, false));
        alive[p] = LLVMBuildPhi(g->b, LLVMTypeOf(first), "");
        LLVMAddIncoming(alive[p], &first, &before, 1);
        g->mask[p] = alive[p];
    }
}

static void close_alive(lower *g, headed *h, LLVMValueRef *alive, LLVMValueRef *still)
{
    FOR_PARTS(g, p)
        if (alive[p])
            LLVMAddIncoming(alive[p], &still[p], &h->latch, 1);
}

static void lower_while(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t test = qn__args(g->k, qn__last_of_region(g->k, x->region[0], x->region[1]))[0];
    headed h = {.is_divergent = !qn__is_uniform(g, test)};
    if (!carried_new(g, &h.c, i, x->region[0], x->n_args - 1)) {
        carried_free(&h.c);
        return;
    }
    qn__scalar(g, qn__args(g->k, i)[0], 0);
    head_open(g, &h);
    LLVMValueRef alive[MOST_PARTS] = {NULL}; /* lanes that left stay out */
    if (h.is_divergent)
        open_alive(g, &h, alive);
    qn__lower_region(g, x->region[0], x->region[1]);
    LLVMValueRef going;
    if (h.is_divergent) {
        FOR_PARTS(g, p)
            g->mask[p] = qn__mask_and(g, alive[p], qn__vector(g, test, p));
        going = any_part(g);
    } else {
        going = qn__scalar(g, test, 0);
    }
    LLVMBuildCondBr(g->b, going, h.body, h.after);
    LLVMPositionBuilderAtEnd(g->b, h.body);
    check_limit(g, i, &h);
    LLVMValueRef still[MOST_PARTS];
    memcpy(still, g->mask, sizeof still);
    head_close(g, &h, i, x->region[1], x->region[2]);
    close_alive(g, &h, alive, still);
    carried_free(&h.c);
}

/* ---------------------------------------------------------------- regions */

void qn__lower_region(lower *g, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i = g->k->inst[i].region[2]) {
        switch (g->k->inst[i].op) {
        case QN_I_LOAD:
            qn__lower_load(g, i);
            break;
        case QN_I_STORE:
            qn__lower_store(g, i);
            break;
        case QN_I_ATOMIC:
            qn__lower_atomic(g, i);
            break;
        case QN_I_IF:
            lower_if(g, i);
            break;
        case QN_I_FOR:
            lower_for(g, i);
            break;
        case QN_I_WHILE:
            lower_while(g, i);
            break;
        case QN_I_REDUCE:
            qn__lower_reduce(g, i);
            break;
        default: /* pure: emitted where it is used */
            break;
        }
    }
}
