/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c: two versions of a `for` that walks through views: the row of a sparse matrix, a
 * segment of a ragged array. Its range is loaded, so that nothing is proved at the call; but one
 * test before the loop tells whether all accesses at its index are in range, and the first version
 * needs no other. The second is for rows that fail. Where loads are waited for, the first version
 * also runs ahead of tests that one before the loop cannot replace, those of a gather: it notes
 * whether one would have failed, and then the second version runs instead, from the begin.
 */
#include "jit/lower/yields.h"

/* Larger loops take longer than their checks, and code is emitted twice. */
enum { MOST_TESTED = 16 };
/* Rows of more trips run in the second version, in strips: then the first one never looks whether
 * it is cancelled. */
#define MOST_TRIPS (INT64_C(1) << 15)

/** Whether one test before loop i is enough for access n: each index is the loop's or is known
 * before it. */
static bool may_cover(const lower *g, uint32_t i, uint32_t n)
{
    uint32_t access = g->k->access[n].inst;
    const uint32_t *arg = qn__args(g->k, access);
    const qn_param_fact *param = &g->f->param[g->k->inst[access].imm];
    int64_t ahead;
    for (int r = 0; r < qn__n_indices(g->k, access); r++) {
        bool is_known_before = arg[r] < g->k->inst[i].region[0] && qn__is_uniform(g, arg[r]);
        if (param->dim[r].n_digits > 0 && !is_known_before &&
            !qn__is_ahead_of_trip(&g->a, i, arg[r], &ahead))
            return false;
    }
    return true;
}

/** The test before loop i while it is made. */
typedef struct cover {
    uint32_t loop;
    LLVMValueRef all; /* NULL: nothing yet */
    bool is_forward;  /* the loop does not end before it begins */
    bool is_short;    /* it has MOST_TRIPS at most */
    struct tested {
        uint32_t arg; /* the index; 0: the loop's, so much ahead */
        int64_t ahead;
        const qn_dim_fact *dim;
    } tested[MOST_TESTED];
    int n_tested;
} cover;

static void require(lower *g, cover *c, LLVMIntPredicate is, LLVMValueRef a, LLVMValueRef b)
{
    c->all = qn__mask_and(g, c->all, LLVMBuildICmp(g->b, is, a, b, ""));
}

/** Whether another index of the same value was tested, in a dimension that begins where this one
 * does; with `extent`, and ends where it does. */
static bool was_tested(const cover *c, const struct tested *t, bool extent)
{
    for (int n = 0; n < c->n_tested; n++) {
        const struct tested *other = &c->tested[n];
        if (other->arg == t->arg && other->ahead == t->ahead &&
            qn__is_same_fact(&other->dim->lower, &t->dim->lower) &&
            (!extent || qn__is_same_fact(&other->dim->extent, &t->dim->extent)))
            return true;
    }
    return false;
}

/** That the loop's index, so much ahead, is in range in all trips: the positions of its first and
 * of the one past its last are in order and at most the extent. Then, whatever wrapped on the way,
 * each between them is in range. */
static void require_all_trips(lower *g, cover *c, const struct tested *t)
{
    LLVMValueRef low = qn__fact(g, &t->dim->lower), position[2];
    for (int n = 0; n < 2; n++) {
        LLVMValueRef border = qn__scalar(g, qn__args(g->k, c->loop)[n], 0);
        position[n] =
            LLVMBuildSub(g->b, LLVMBuildAdd(g->b, border, qn__const_i64(g, t->ahead), ""), low, "");
    }
    if (!was_tested(c, t, false))
        require(g, c, LLVMIntULE, position[0], position[1]);
    require(g, c, LLVMIntULE, position[1], qn__fact(g, &t->dim->extent));
    c->is_short |= t->dim->extent.kind == QN_FACT_EXACT && t->dim->extent.value <= MOST_TRIPS;
    c->is_forward |=
        t->ahead == 0 && t->dim->lower.kind == QN_FACT_EXACT && t->dim->lower.value == 0;
}

static void cover_index(lower *g, cover *c, uint32_t arg, const qn_dim_fact *dim)
{
    struct tested t = {.arg = arg, .dim = dim};
    bool is_loops = qn__is_ahead_of_trip(&g->a, c->loop, arg, &t.ahead);
    t.arg = is_loops ? 0 : arg;
    if (dim->n_digits == 0 || was_tested(c, &t, true))
        return;
    if (is_loops)
        require_all_trips(g, c, &t);
    else
        require(g, c, LLVMIntULT, qn__relative_index(g, arg, 0, &dim->lower, false),
                qn__fact(g, &dim->extent));
    if (c->n_tested < MOST_TESTED)
        c->tested[c->n_tested++] = t;
}

/** A small loop of scalar code, or the same for all lanes, without another one inside. */
static bool is_worth(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    return x->region[2] - x->region[0] <= MOST_TWICE && qn__is_uniform(g, arg[0]) &&
           qn__is_uniform(g, arg[1]) &&
           !qn__has_insts(g->k, x->region[0], x->region[2],
                          1u << QN_I_FOR | 1u << QN_I_WHILE | 1u << QN_I_REDUCE);
}

/** Whether a loop or reduce may be run again: it is small, nothing but loads and computes, and
 * tests no index in an `if`. */
static bool may_run_ahead(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    FOR_ACCESSES (g->k, n, access)
        if (access > i && access < x->region[2] && g->k->inst[access].parent != i &&
            qn__is_checked(g->f, g->k, n))
            return false;
    return g->f->target->waits_for_loads && x->region[2] - x->region[0] <= MOST_TWICE &&
           !qn__has_insts(g->k, x->region[0], x->region[2],
                          1u << QN_I_FOR | 1u << QN_I_WHILE | 1u << QN_I_REDUCE | 1u << QN_I_STORE |
                              1u << QN_I_ATOMIC | 1u << QN_I_ASSERT);
}

bool qn__runs_ahead(const lower *g, uint32_t i)
{
    return is_worth(g, i) && may_run_ahead(g, i);
}

/** That a view has elements, one of which is loaded where an index is out of range. */
static void require_elements(lower *g, cover *c, const qn_param_fact *param, int rank)
{
    for (int r = 0; r < rank; r++)
        if (param->dim[r].n_digits > 0)
            require(g, c, LLVMIntNE, qn__fact(g, &param->dim[r].extent), qn__const_i64(g, 0));
}

LLVMValueRef qn__ahead_of_points(lower *g, uint32_t i)
{
    cover c = {.loop = i};
    FOR_ACCESSES (g->k, n, access) {
        if (access > i && access < g->k->inst[i].region[2] && qn__is_checked(g->f, g->k, n))
            require_elements(g, &c, &g->f->param[g->k->inst[access].imm],
                             qn__n_indices(g->k, access));
    }
    return c.all && may_run_ahead(g, i) ? c.all : NULL;
}

LLVMValueRef qn__cover(lower *g, uint32_t i)
{
    cover c = {.loop = i};
    bool is_ahead = qn__runs_ahead(g, i);
    for (uint32_t n = 0; n < g->k->n_accesses && is_worth(g, i); n++) {
        uint32_t access = g->k->access[n].inst;
        if (access < g->k->inst[i].region[0] || access >= g->k->inst[i].region[2] ||
            !qn__is_checked(g->f, g->k, n))
            continue;
        const qn_param_fact *param = &g->f->param[g->k->inst[access].imm];
        if (!may_cover(g, i, n)) {
            if (is_ahead)
                require_elements(g, &c, param, qn__n_indices(g->k, access));
            continue;
        }
        for (int r = 0; r < qn__n_indices(g->k, access); r++)
            cover_index(g, &c, qn__args(g->k, access)[r], &param->dim[r]);
        g->covered[n] = c.all != NULL;
    }
    if (c.all && !c.is_forward)
        require(g, &c, LLVMIntSLE, qn__scalar(g, qn__args(g->k, i)[0], 0),
                qn__scalar(g, qn__args(g->k, i)[1], 0));
    if (c.all && !c.is_short && g->f->target->looks) {
        LLVMValueRef begin = qn__scalar(g, qn__args(g->k, i)[0], 0),
                     end = qn__scalar(g, qn__args(g->k, i)[1], 0);
        require(g, &c, LLVMIntULE, LLVMBuildSub(g->b, end, begin, ""),
                qn__const_i64(g, MOST_TRIPS));
    }
    g->covered_trips = MOST_TRIPS;
    return c.all;
}

void qn__uncover(lower *g, uint32_t i)
{
    for (uint32_t n = 0; n < g->k->n_accesses; n++)
        if (g->k->access[n].inst >= g->k->inst[i].region[0] &&
            g->k->access[n].inst < g->k->inst[i].region[2])
            g->covered[n] = false;
}
