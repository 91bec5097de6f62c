/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c: cold blocks that record the first failure in iteration order. A failure replaces
 * the recorded one if its iteration is lower; within one iteration the first in time stays. Where
 * lanes run over a reduction, points of one reduce are seen out of order inside a vector, and so
 * are those of a strip, so there the lower point of the same reduce wins too; the record's `point`
 * carries the number of the reduce above its low 48 bits for that comparison. Where threads share
 * the points of reduces, statements at the top of the body have such a number, too. Threads of a
 * GPU share one record: a thread whose failure is earlier takes the record's lock, looks again, and
 * writes; no thread waits for one whose failure is not its business.
 */
#include "jit/lower/hooks.h"

#include <stddef.h>

/** Whether many threads share one record. */
static bool is_shared(const lower *g)
{
    return g->hooks->lock != NULL;
}

static LLVMValueRef field(lower *g, size_t offset)
{
    return qn__ahead(g, g->fault, (int64_t)offset);
}

static void set_field(lower *g, size_t offset, LLVMValueRef v)
{
    LLVMValueRef store = LLVMBuildStore(g->b, v, field(g, offset));
    LLVMSetAlignment(store, 8);
    LLVMSetVolatile(store, is_shared(g));
}

static LLVMValueRef get_field(lower *g, size_t offset)
{
    LLVMValueRef v = qn__load_at(g, g->i64, field(g, offset), 8);
    LLVMSetVolatile(v, is_shared(g));
    return v;
}

/** First active lane, i64. */
static LLVMValueRef first_lane(lower *g, LLVMValueRef bad)
{
    return qn__is_vector(bad) ? qn__first_set(g, qn__mask_bits(g, bad)) : qn__const_i64(g, 0);
}

/** Index of dimension d at a lane of part p, counted from its begin. */
static LLVMValueRef position(lower *g, int d, int p, LLVMValueRef lane)
{
    LLVMValueRef v = g->iv[d];
    int64_t ahead = qn__part_ahead(g, d, p) + g->ahead[d];
    if (d == g->block->lane_dim && g->width > 1)
        v = LLVMBuildAdd(g->b, v, lane, "");
    if (ahead)
        v = LLVMBuildAdd(g->b, v, qn__const_i64(g, ahead), "");
    return LLVMBuildSub(g->b, v, g->begin[d], "");
}

static LLVMValueRef extent_of(lower *g, int d)
{
    return LLVMBuildSub(g->b, g->end[d], g->begin[d], "");
}

/** Linear number over the sequential and parallel dimensions as declared, first slowest. */
static LLVMValueRef iteration_number(lower *g, int p, LLVMValueRef lane)
{
    LLVMValueRef sum = qn__const_i64(g, 0);
    for (int d = 0; d < g->k->n_dims; d++) {
        if (qn__is_reduction(g->k, d))
            continue;
        sum = LLVMBuildMul(g->b, sum, extent_of(g, d), "");
        sum = LLVMBuildAdd(g->b, sum, position(g, d, p, lane), "");
    }
    return sum;
}

/** Linear number over the dimensions of the reduce at r, with r above the low 48 bits. */
static LLVMValueRef point_number(lower *g, uint32_t r, int p, LLVMValueRef lane)
{
    LLVMValueRef sum = qn__const_i64(g, 0);
    if (!r)
        return sum;
    if (g->k->inst[r].op != QN_I_REDUCE)
        return qn__const_i64(g, (int64_t)r << 48);
    for (int n = 0; n < g->k->inst[r].n_args; n++) {
        int d = qn__dim_of(g->k, r, n);
        sum = LLVMBuildMul(g->b, sum, extent_of(g, d), "");
        sum = LLVMBuildAdd(g->b, sum, position(g, d, p, lane), "");
    }
    sum = LLVMBuildAnd(g->b, sum, qn__const_i64(g, (INT64_C(1) << 48) - 1), "");
    return LLVMBuildOr(g->b, sum, qn__const_i64(g, (int64_t)r << 48), "");
}

/** Scalar of an index operand at a lane. */
static LLVMValueRef at_lane(lower *g, uint32_t value, int p, LLVMValueRef lane)
{
    LLVMValueRef v = qn__scalar(g, value, p);
    int shape = g->a.value[value].shape;
    if (g->width == 1 || shape == QN_UNIFORM)
        return v;
    if (shape == QN_VARYING)
        return LLVMBuildExtractElement(g->b, qn__vector(g, value, p), lane, "");
    int64_t step = g->a.affine[value].coef[g->block->lane_dim];
    return LLVMBuildAdd(g->b, v, LLVMBuildMul(g->b, lane, qn__const_i64(g, step), ""), "");
}

/** Whether failures of one iteration come in another order than that of the program. */
static bool is_out_of_time(const lower *g)
{
    return g->block->n_shared || g->block->team == QN_TEAM_GRID || g->block->team == QN_TEAM_BLOCK;
}

static LLVMValueRef is_earlier(lower *g, LLVMValueRef iteration, LLVMValueRef point, uint32_t r)
{
    LLVMValueRef old = get_field(g, offsetof(qn_fault, iteration)),
                 earlier = LLVMBuildICmp(g->b, LLVMIntULT, iteration, old, "");
    const bool over_lanes = g->width > 1 && qn__is_reduction(g->k, g->block->lane_dim),
               in_strip = g->strip.done; /* several points at once, in the order of partials */
    if (!r || !(is_out_of_time(g) || over_lanes || in_strip || g->block->team == QN_TEAM_WARP))
        return earlier;
    LLVMValueRef old_point = get_field(g, offsetof(qn_fault, point)),
                 same = LLVMBuildICmp(g->b, LLVMIntEQ, iteration, old, ""),
                 before = LLVMBuildICmp(g->b, LLVMIntULT, point, old_point, "");
    if (!is_out_of_time(g)) { /* points of one reduce only */
        LLVMValueRef of = LLVMBuildLShr(g->b, old_point, qn__const_i64(g, 48), "");
        of = LLVMBuildICmp(g->b, LLVMIntEQ, of, qn__const_i64(g, (int64_t)r), "");
        before = LLVMBuildAnd(g->b, of, before, "");
    }
    return LLVMBuildOr(g->b, earlier, LLVMBuildAnd(g->b, same, before, ""), "");
}

/** A value as the 64 bits of its canonical form. */
static LLVMValueRef bits_of(lower *g, int dtype, LLVMValueRef v)
{
    bool is_float = dtype == QN_F32 || dtype == QN_F64;
    if (is_float)
        v = LLVMBuildBitCast(g->b, v, dtype == QN_F32 ? g->i32 : g->i64, "");
    if (LLVMTypeOf(v) == g->i64)
        return v;
    return qn__dtype_class(dtype) == QN_CLASS_S ? LLVMBuildSExt(g->b, v, g->i64, "")
                                                : LLVMBuildZExt(g->b, v, g->i64, "");
}

/** All of the record but iteration and point. */
static void write_record(lower *g, uint32_t i, int p, LLVMValueRef lane, int status)
{
    bool is_access = status == QN_ERR_BOUNDS, is_assertion = status == QN_ERR_ASSERT;
    set_field(
        g, offsetof(qn_fault, site),
        qn__const_i64(g, is_access ? (int64_t)g->k->access[g->site[i]].site : -1 - (int64_t)i));
    set_field(g, offsetof(qn_fault, status), qn__const_i64(g, status));
    for (int r = 0; is_access && r < qn__n_indices(g->k, i); r++)
        set_field(g, offsetof(qn_fault, index) + 8 * (size_t)r,
                  at_lane(g, qn__args(g->k, i)[r], p, lane));
    for (int n = 1; is_assertion && n < g->k->inst[i].n_args; n++) {
        uint32_t shown = qn__args(g->k, i)[n];
        set_field(g, offsetof(qn_fault, index) + 8 * (size_t)(n - 1),
                  bits_of(g, g->k->inst[shown].type, at_lane(g, shown, p, lane)));
    }
}

static void set_weights(lower *g, LLVMValueRef branch_inst, unsigned first, unsigned second)
{
    static const char name[] = "branch_weights";
    LLVMMetadataRef m[3] = {LLVMMDStringInContext2(g->context, name, sizeof name - 1),
                            LLVMValueAsMetadata(LLVMConstInt(g->i32, first, false)),
                            LLVMValueAsMetadata(LLVMConstInt(g->i32, second, false))};
    unsigned kind = LLVMGetMDKindIDInContext(g->context, "prof", 4);
    LLVMSetMetadata(branch_inst, kind,
                    LLVMMetadataAsValue(g->context, LLVMMDNodeInContext2(g->context, m, 3)));
}

enum { LIKELY = 1000000 };

void qn__mark_likely(lower *g, LLVMValueRef branch_inst)
{
    set_weights(g, branch_inst, LIKELY, 1);
}

/** What stands for failures of instruction i in comparisons of points: a reduce, or an instruction
 * at the top; 0 if only the order in time counts. Where no order in time is left, everything has a
 * place: a reduce whose points threads of a grid share, else the instruction at the top. */
static uint32_t place_of(const lower *g, uint32_t i, int status)
{
    if (g->grid && (g->team_reduce || !is_out_of_time(g)))
        return g->team_reduce;
    if (!is_out_of_time(g))
        return status != QN_ERR_LIMIT ? qn__enclosing_reduce(g->k, i) : 0;
    while (g->k->inst[i].parent)
        i = g->k->inst[i].parent;
    return i;
}

/** Waits for the lock of a shared record as long as this failure is earlier; goes on to `go_on`
 * when it is not. Returns the block where the lock has to be given back. */
static LLVMBasicBlockRef take_lock(lower *g, LLVMValueRef iteration, LLVMValueRef point, uint32_t r,
                                   LLVMBasicBlockRef go_on)
{
    LLVMBasicBlockRef look = qn__new_block(g, "look"), try = qn__new_block(g, "try"),
                      locked = qn__new_block(g, "locked"), release = qn__new_block(g, "release");
    LLVMBuildBr(g->b, look);
    LLVMPositionBuilderAtEnd(g->b, look);
    LLVMBuildCondBr(g->b, is_earlier(g, iteration, point, r), try, go_on);
    LLVMPositionBuilderAtEnd(g->b, try);
    g->hooks->lock(g, look, locked);
    return release;
}

/** An assertion that fails in a part is not looked at in parts of later iterations whose condition
 * is the same value. */
void qn__lower_assert(lower *g, uint32_t i)
{
    uint32_t condition = qn__args(g->k, i)[0];
    bool is_vector = g->width > 1 && !qn__is_uniform(g, condition);
    FOR_PARTS (g, p) {
        if (!g->mask[p] && qn__canonical_part(g, condition, p) != p)
            continue;
        LLVMValueRef holds = is_vector ? qn__vector(g, condition, p) : qn__scalar(g, condition, p);
        qn__require(g, i, p, holds, QN_ERR_ASSERT);
    }
}

void qn__require(lower *g, uint32_t i, int p, LLVMValueRef holds, int status)
{
    LLVMValueRef bad = LLVMBuildNot(g->b, holds, "");
    if (qn__is_vector(holds))
        bad = qn__mask_and(g, g->mask[p], bad);
    else if (g->mask[p]) /* the first active lane fails first */
        bad = LLVMBuildAnd(g->b, g->mask[p], qn__splat(g, bad, g->depth), "");
    qn__note_fault(g, i, p, bad, status);
}

void qn__note_fault(lower *g, uint32_t i, int p, LLVMValueRef bad, int status)
{
    LLVMBasicBlockRef cold = qn__new_block(g, "cold"), record = qn__new_block(g, "record"),
                      go_on = qn__new_block(g, "on");
    int64_t known;
    g->may_fail |= status == QN_ERR_BOUNDS;
    if (qn__is_const(bad, &known) && known) /* in a block that is cold itself */
        LLVMBuildBr(g->b, cold);
    else
        set_weights(g, LLVMBuildCondBr(g->b, qn__any(g, bad), cold, go_on), 1, LIKELY);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, cold);
    uint32_t r = place_of(g, i, status);
    LLVMValueRef lane = first_lane(g, bad), iteration = iteration_number(g, p, lane);
    if (is_shared(g)) /* else LLVM looks, for each comparison of it, at all of them, in search of a
                         difference: thousands of failures would take seconds */
        iteration = qn__opaque(g, iteration);
    LLVMValueRef point = point_number(g, r, p, lane);
    LLVMBasicBlockRef release = go_on;
    if (is_shared(g))
        release = take_lock(g, iteration, point, r, go_on);
    LLVMBuildCondBr(g->b, is_earlier(g, iteration, point, r), record, release);
    LLVMPositionBuilderAtEnd(g->b, record);
    set_field(g, offsetof(qn_fault, iteration), iteration);
    set_field(g, offsetof(qn_fault, point), point);
    write_record(g, i, p, lane, status);
    LLVMBuildBr(g->b, release);
    if (is_shared(g)) {
        LLVMPositionBuilderAtEnd(g->b, release);
        g->hooks->unlock(g);
        LLVMBuildBr(g->b, go_on);
    }
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, go_on);
}
