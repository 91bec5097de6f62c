/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team_trips.c: loops whose trips may run in any order (jit/analysis/trips.c), shared by the lanes
 * of a team: lane l runs trips l, l + 32, ...
 */
#include "jit/target/nvptx/nvptx.h"

/** Whether the lanes share the trips of loop i: those may run at once and carry nothing, and none
 * fails, as other lanes would wait for the one that does. */
static bool may_share_trips(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    if (x->op != QN_I_FOR || x->n_args != 2 || x->imm != 1 ||
        qn__trips_at_once(&g->a, i) < INT64_MAX)
        return false;
    FOR_ACCESSES (g->k, site, j) {
        if (j >= x->region[0] && j < x->region[2] && qn__is_checked(g->f, g->k, site))
            return false;
    }
    return true;
}

typedef struct shared_loop {
    uint32_t inst;
    LLVMValueRef begin;
} shared_loop;

/** Trip q, if `condition` holds; NULL: it does. */
static void lower_own_trip(lower *g, LLVMValueRef q, LLVMValueRef condition, void *arg)
{
    const shared_loop *of = arg;
    const qn_inst *x = &g->k->inst[of->inst];
    loop once;
    qn__once_open(g, &once, condition);
    qn__set(g, x->region[0], 0, LLVMBuildAdd(g->b, of->begin, q, ""), g->depth);
    g->is_team = false;
    if (g->kept) /* the loop begins where its points do */
        qn__kept_read(g, of->inst, q, 0);
    qn__lower_region(g, x->region[0], x->region[2]);
    g->is_team = true;
    qn__loop_close(g, &once);
}

bool qn__team_trips(lower *g, uint32_t i)
{
    if (!may_share_trips(g, i))
        return false;
    shared_loop of = {i, qn__scalar(g, qn__args(g->k, i)[0], 0)};
    LLVMValueRef end = qn__smax(g, qn__scalar(g, qn__args(g->k, i)[1], 0), of.begin);
    qn__team_wait(g);
    qn__share_out(g, LLVMBuildSub(g->b, end, of.begin, ""), g->lane, WARP_LANES, lower_own_trip,
                  &of);
    qn__team_wait(g);
    return true;
}
