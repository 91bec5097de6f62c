/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.c: the most trips of a `while`. Nothing is counted where the condition ends the loop in
 * time. On a target that computes in 32 bits twice as fast as in 64 (target->counts_in_32) trips
 * are counted down in 32 bits: in rounds of 2^30, a new one of which begins beside the loop.
 */
#include "jit/lower/yields.h"

enum { ROUND = 1 << 30 };

/* ---------------------------------------------------------------- loops that end in time */

/** What an integer was before it was made wider. */
static uint32_t before_casts(const qn_kernel *k, uint32_t value)
{
    for (;;) {
        const qn_inst *x = &k->inst[value];
        uint32_t from = x->op == QN_I_CAST ? qn__args(k, value)[0] : 0;
        int type = k->inst[from].type;
        if (!from || !qn__is_integer(type) || !qn__is_integer(x->type) ||
            qn__dtype_width(x->type) <= qn__dtype_width(type) ||
            (qn__dtype_class(type) == QN_CLASS_S && qn__dtype_class(x->type) != QN_CLASS_S))
            return value;
        value = from;
    }
}

/** Whether a value of loop i is carried and one more in each trip; *first is where it begins. */
static bool counts_trips(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *first)
{
    int64_t step;
    return qn__moves_with_trips(a, i, value, &step) && step == 1 &&
           qn__is_number(a, qn__args(a->k, i)[1 + a->k->inst[value].imm], first);
}

/** Whether `test`, which holds while loop i goes on, holds in no more trips than the limit allows.
 */
static bool ends_in_time(const qn_analysis *a, uint32_t i, uint32_t test, int depth)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[test];
    const uint32_t *arg = qn__args(k, test);
    uint32_t limit = qn__args(k, i)[0];
    int64_t first, end, most, trips;
    if (x->op == QN_I_PURE + QN_OP_and && x->type == QN_BOOL && depth > 0)
        return ends_in_time(a, i, arg[0], depth - 1) || ends_in_time(a, i, arg[1], depth - 1);
    if (x->op == QN_I_RESULT && k->inst[arg[0]].op == QN_I_IF && depth > 0) {
        const qn_inst *choice = &k->inst[arg[0]];
        const uint32_t no = qn__args(k, choice->region[2] - 1)[x->imm];
        return k->inst[no].op == QN_I_CONST && !k->inst[no].imm &&
               (ends_in_time(a, i, qn__args(k, arg[0])[0], depth - 1) ||
                ends_in_time(a, i, qn__args(k, choice->region[1] - 1)[x->imm], depth - 1));
    }
    bool is_below = x->op == QN_I_PURE + QN_OP_lt, is_above = x->op == QN_I_PURE + QN_OP_gt;
    if (!is_below && !is_above)
        return false;
    uint32_t counter = arg[is_above], bound = arg[is_below];
    if (!counts_trips(a, i, counter, &first))
        return false;
    if (first >= 0 && bound < k->inst[i].region[0] &&
        before_casts(k, bound) == before_casts(k, limit))
        return true;
    return qn__is_number(a, bound, &end) && qn__is_number(a, limit, &most) &&
           !__builtin_sub_overflow(end, first, &trips) && trips <= most;
}

/* ---------------------------------------------------------------- counting down */

void qn__limit_prepare(lower *g, uint32_t i, countdown *c)
{
    enum { MOST_DEPTH_OF_TEST = 8 };
    const qn_inst *x = &g->k->inst[i];
    *c = (countdown){.is_here = g->f->target->counts_in_32};
    c->is_in_time = ends_in_time(&g->a, i, qn__args(g->k, x->region[1] - 1)[0], MOST_DEPTH_OF_TEST);
    if (!c->is_here || c->is_in_time)
        return;
    LLVMValueRef v[2] = {qn__scalar(g, qn__args(g->k, i)[0], 0), qn__const_i64(g, 0)};
    int64_t known;
    if (qn__is_const(v[0], &known) && known <= ROUND) {
        c->left = LLVMConstInt(g->i32, known > 0 ? (unsigned long long)known : 0, false);
        return;
    }
    LLVMValueRef all = qn__call(g, "llvm.smax", &g->i64, 1, v, 2),
                 round = qn__umin(g, all, qn__const_i64(g, ROUND));
    c->left = LLVMBuildTrunc(g->b, round, g->i32, "");
    c->rest = LLVMBuildSub(g->b, all, round, "");
}

void qn__limit_test(lower *g, countdown *c, LLVMBasicBlockRef go_on, LLVMBasicBlockRef limit)
{
    LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(g->b), NULL};
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, c->left, LLVMConstInt(g->i32, 0, false), "");
    if (!c->rest) {
        qn__mark_likely(g, LLVMBuildCondBr(g->b, some, go_on, limit));
        LLVMPositionBuilderAtEnd(g->b, go_on);
        return;
    }
    from[1] = qn__new_block(g, "round");
    qn__mark_likely(g, LLVMBuildCondBr(g->b, some, go_on, from[1]));
    LLVMPositionBuilderAtEnd(g->b, from[1]);
    LLVMValueRef round = qn__umin(g, c->rest, qn__const_i64(g, ROUND));
    LLVMValueRef left[2] = {c->left, LLVMBuildTrunc(g->b, round, g->i32, "")},
                 rest[2] = {c->rest, LLVMBuildSub(g->b, c->rest, round, "")};
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, round, qn__const_i64(g, 0), ""), go_on,
                    limit);
    LLVMPositionBuilderAtEnd(g->b, go_on);
    c->left = qn__phi(g, left[0], from[0], left[1], from[1]);
    c->rest = qn__phi(g, rest[0], from[0], rest[1], from[1]);
}

void qn__limit_close(lower *g, countdown *c)
{
    if (c->left)
        c->left = LLVMBuildSub(g->b, c->left, LLVMConstInt(g->i32, 1, false), "");
}
