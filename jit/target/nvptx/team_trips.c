/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team_trips.c: loops whose trips may run in any order (jit/analysis/trips.c), shared by the lanes
 * of a team: lane l runs trips l, l + 32, ...
 */
#include "jit/target/nvptx/team.h"

/** Trips of a lane that are emitted together, so that their loads are under way at once. */
enum { STEPS = 4 };

/** Whether the lanes share the trips of loop i: those may run at once and carry nothing, and none
 * fails, as other lanes would wait for the one that does. */
static bool may_share_trips(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    if (x->op != QN_I_FOR || x->n_args != 2 || x->imm != 1 || !qn__trips_are_free(&g->a, i))
        return false;
    FOR_ACCESSES (g->k, site, j) {
        if (j >= x->region[0] && j < x->region[2] && qn__is_checked(g->f, g->k, site))
            return false;
    }
    return true;
}

/** One trip of this lane, if `condition` holds; NULL: it does. */
static void lower_own_trip(lower *g, uint32_t i, LLVMValueRef index, LLVMValueRef condition)
{
    const qn_inst *x = &g->k->inst[i];
    loop once;
    qn__once_open(g, &once, condition);
    qn__set(g, x->region[0], 0, index, g->depth);
    g->is_team = false;
    if (g->kept) /* the loop begins where its points do */
        qn__kept_read(g, i, LLVMBuildSub(g->b, index, qn__scalar(g, qn__args(g->k, i)[0], 0), ""),
                      0);
    qn__lower_region(g, x->region[0], x->region[2]);
    g->is_team = true;
    qn__loop_close(g, &once);
}

bool qn__team_trips(lower *g, uint32_t i)
{
    if (!may_share_trips(g, i))
        return false;
    const int lanes = qn__team_lanes(g->grid);
    LLVMValueRef begin = qn__scalar(g, qn__args(g->k, i)[0], 0),
                 end = qn__scalar(g, qn__args(g->k, i)[1], 0);
    LLVMValueRef zero = qn__const_i64(g, 0), some = LLVMBuildICmp(g->b, LLVMIntSLT, begin, end, "");
    LLVMValueRef n = LLVMBuildSelect(g->b, some, LLVMBuildSub(g->b, end, begin, ""), zero, "");
    LLVMValueRef whole = LLVMBuildAnd(g->b, n, qn__const_i64(g, -STEPS * lanes), "");
    LLVMValueRef first = LLVMBuildAdd(g->b, begin, g->lane, "");
    int64_t known, known_whole;
    loop l;
    qn__team_wait(g);
    if (!qn__is_const(whole, &known_whole) || known_whole > 0) {
        qn__loop_open(g, &l, (span){zero, whole}, STEPS * lanes, LOOP_MAY_BE_EMPTY);
        LLVMValueRef at = LLVMBuildAdd(g->b, first, l.index, "");
        for (int step = 0; step < STEPS; step++)
            lower_own_trip(g, i, LLVMBuildAdd(g->b, at, qn__const_i64(g, step * lanes), ""), NULL);
        qn__loop_close(g, &l);
    }
    if (!qn__is_const(n, &known) || !qn__is_const(whole, &known_whole) || known > known_whole) {
        LLVMValueRef up = LLVMBuildAdd(g->b, n, qn__const_i64(g, lanes - 1), "");
        up = LLVMBuildAnd(g->b, up, qn__const_i64(g, -lanes), "");
        qn__loop_open(g, &l, (span){whole, up}, lanes, LOOP_MAY_BE_EMPTY);
        LLVMValueRef at = LLVMBuildAdd(g->b, first, l.index, ""),
                     here = LLVMBuildAdd(g->b, g->lane, l.index, "");
        lower_own_trip(g, i, at, LLVMBuildICmp(g->b, LLVMIntULT, here, n, ""));
        qn__loop_close(g, &l);
    }
    qn__team_wait(g);
    return true;
}
