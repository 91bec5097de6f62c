/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c: which dimension of the domain the lanes of vectors run along. "May it be the lane
 * dimension?" (qn__plan_may_be_lanes) is kept apart from "is it worth it?" (lane_cost).
 */
#include "jit/analysis/group.h"
#include "jit/schedule/plan.h"

/* Relative cost of one element through one access, by its stride along the lane dimension. A gather
 * of 16 lanes takes about 6 times a vector load from L1, a scatter more; a splat is a scalar load
 * for all lanes. */
#define COST_UNIT 1.0
#define COST_SPLAT 0.25
#define COST_REVERSED 1.3
#define COST_SPREAD 1.5 /* for each of the |stride| vectors that hold the lanes, stride 2 to 4 */
#define COST_MASKED_STORE 3 /* of one of them, in stores of one element */
#define COST_SCATTER 8.0
#define COST_TRANSPOSED 2.0 /* in blocks, with another dimension */
/* A vector step over fewer iterations than this wastes most of its lanes. */
#define SHORT_LANES 8

/* ---------------------------------------------------------------- where lanes may run */

/** Whether a branch or loop around instruction i may go another way in each lane of dimension d. */
static bool is_under_masks(const qn_analysis *a, int d, uint32_t i)
{
    const qn_kernel *k = a->k;
    for (i = k->inst[i].parent; i; i = k->inst[i].parent) {
        const int op = k->inst[i].op, n = op == QN_I_FOR ? 2 : op == QN_I_IF ? 1 : 0;
        uint32_t deps = n || op == QN_I_REDUCE ? 0 : UINT32_MAX;
        for (int m = 0; m < n; m++)
            deps |= a->value[qn__args(k, i)[m]].deps;
        if (deps >> d & 1)
            return true;
    }
    return false;
}

/** Whether an access is performed for some lanes only where an index is out of range: clamped, it
 * is performed for all. */
static bool may_fail(const qn_kernel *k, const qn_facts *f, uint32_t site)
{
    const qn_param_fact *param = &f->param[k->inst[k->access[site].inst].imm];
    bool is = qn__is_checked(f, k, site), may = is && param->checks != QN_CHECKS_CLAMP;
    for (int r = 0; r < qn__n_indices(k, k->access[site].inst) && is; r++)
        may = may || param->dim[r].extent.kind != QN_FACT_EXACT || param->dim[r].extent.value == 0;
    return may;
}

/** Masked accesses of 1- and 2-byte elements take a branch per lane without AVX-512BW: such kernels
 * stay scalar there. */
static bool needs_narrow_masks(const qn_analysis *a, int d)
{
    FOR_ACCESSES (a->k, n, i)
        if (qn__access_bytes(a->k, i) < a->f->target->least_masked &&
            (may_fail(a->k, a->f, n) || is_under_masks(a, d, i)))
            return true;
    return false;
}

/** Whether the least or greatest of floats is taken of loads that several iterations share, as in a
 * product of matrices: lanes over iterations have a register tile. */
static bool is_tiled(const qn_analysis *a, uint32_t reduce)
{
    const qn_kernel *k = a->k;
    uint32_t dims = 0;
    for (int d = 0; d < k->n_dims; d++)
        dims |= qn__is_parallel(k, d) && qn__trips(a->f, d) != 1 ? UINT32_C(1) << d : 0;
    dims &= a->value[reduce].deps;
    if (qn__order_rule(k, reduce) == QN_POINTS_ANY || qn__order_rule(k, reduce) == QN_STRIPED ||
        (dims & (dims - 1)) == 0)
        return false;
    FOR_ACCESSES (k, n, i) {
        if (i > reduce && i < k->inst[reduce].region[2] && (qn__index_deps(a, i) & dims) != dims)
            return true;
    }
    return false;
}

/** Whether a reduce is straight code outside of all loops and branches, where faults keep their
 * order, or inside of reduces, and cannot fail. */
static bool is_straight_reduce(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const uint32_t begin = k->inst[i].region[0], end = k->inst[i].region[2];
    bool is = qn__is_straight(k, begin, end) &&
              (!k->inst[i].parent || !qn__region_may_fail(k, a->f, begin, end));
    for (uint32_t r = k->inst[i].parent; r; r = k->inst[r].parent)
        is = is && k->inst[r].op == QN_I_REDUCE;
    return is;
}

/** A reduction dimension may be the lanes if every reduce over it may have them. */
static bool reduction_is_applicable(const qn_analysis *a, int d)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    bool is_used = false;
    FOR_REDUCES (k, i) {
        if (!qn__is_over(k, i, d))
            continue;
        is_used = true;
        if (!is_straight_reduce(a, i) || is_tiled(a, i) || !qn__may_have_lanes(a, i, d))
            return false;
    }
    for (uint32_t n = 0; n < k->n_accesses; n++) { /* the last step is masked, but for integers */
        uint32_t reduce = qn__enclosing_reduce(k, k->access[n].inst);
        if (reduce && qn__dtype_class(k->inst[reduce].type) == QN_CLASS_F &&
            qn__access_bytes(k, k->access[n].inst) < f->target->least_masked)
            return false;
    }
    return is_used;
}

int qn__plan_stripe_depth(const qn_kernel *k)
{
    int most = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        int depth = 0;
        for (uint32_t r = i; r; r = k->inst[r].parent)
            depth += k->inst[r].op == QN_I_REDUCE && qn__order_rule(k, r) == QN_STRIPED;
        most = depth > most ? depth : most;
    }
    return most;
}

/** Partials of whole vectors take 4 x 4 KiB of the caller's stack. Nests of them stay scalar. */
enum { MOST_STRIPE_DEPTH = 1 };

bool qn__plan_may_be_lanes(const qn_analysis *a, int d)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    if (qn__is_parallel(k, d) && qn__plan_stripe_depth(k) > MOST_STRIPE_DEPTH)
        return false;
    if (f->is_ordered || needs_narrow_masks(a, d))
        return false;
    if (qn__dim_kind(k, d) == QN_DIM_SEQUENTIAL || qn__trips(f, d) == 1)
        return false;
    return qn__is_parallel(k, d) || reduction_is_applicable(a, d);
}

/* ---------------------------------------------------------------- what lanes cost */

/** The other way are as many vectors as the stride says, of stores under masks: AVX2 takes many
 * operations for one, AVX-512 about three, and out of cache the hardware fetches less ahead. */
bool qn__is_one_by_one(const qn_facts *f, int apart, bool is_load, int64_t bytes, int width,
                       int64_t stride)
{
    int64_t vectors = stride < 0 ? -stride : stride;
    bool is_narrow = bytes <= 2, is_wide = f->target->has_strided_loads;
    if (!qn__is_small_stride(stride) || (!is_load && is_narrow && !is_wide))
        return true;
    if (apart)
        return apart > 0;
    if (is_load)
        return !is_wide && 2 * vectors > width;
    return !is_wide || (!is_narrow && vectors * COST_MASKED_STORE > width);
}

bool qn__are_gathered(const qn_analysis *a, int d, int64_t lanes)
{
    const qn_kernel *k = a->k;
    enum { MOST_ONE_BY_ONE = 128 }; /* lanes of loads */
    int64_t n = 0, stride;
    FOR_ACCESSES (k, m, i) {
        n += k->inst[i].op == QN_I_LOAD && qn__access_stride(a, i, d, &stride) &&
                     !qn__is_small_stride(stride)
                 ? lanes
                 : 0;
    }
    return n > MOST_ONE_BY_ONE;
}

qn_apart qn__apart_of(const qn_analysis *a, int lane_dim, int64_t lanes)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    const qn_machine *m = &f->machine;
    bool is_large = f->is_large || qn__touched_in_all(a) > (double)m->cache[QN_CACHE_LAST].bytes,
         is_apart = false;
    double moves = 0, from_memory = 0; /* lanes that are stored and bytes of an iteration */
    FOR_ACCESSES (k, n, i) {
        int64_t stride;
        bool is_known = qn__access_stride(a, i, lane_dim, &stride);
        bool is_far = is_known && !qn__is_small_stride(stride);
        bool is_small = is_known && (stride > 1 || stride < -1) && !is_far &&
                        k->inst[i].op != QN_I_LOAD;
        is_apart |= is_small;
        moves += is_small;
        if (is_known && !is_far)
            from_memory += (double)(stride < 0 ? -stride : stride) * (double)qn__access_bytes(k, i);
    }
    bool is_hidden = moves * m->bytes_a_cycle[QN_CACHE_LAST] < from_memory * m->lane_moves;
    bool is_worth = is_large && is_apart && is_hidden && !m->fetches_masked;
    return (qn_apart){f->plan.apart ? f->plan.apart : is_worth,
                      qn__are_gathered(a, lane_dim, lanes)};
}

/** Of one member of the group of access i, in whole registers; 0: it has no group. */
static double group_cost(const qn_analysis *a, uint32_t i, int d)
{
    qn_group x;
    qn_weave w;
    int lanes = a->f->target->vector_bytes / (int)qn__access_bytes(a->k, i);
    if (!qn__group_of(a, d, i, &x) || !qn__weave_of_group(a, &x, i, lanes < 64 ? lanes : 64, 0, &w))
        return 0;
    double moves = (a->k->inst[i].op == QN_I_LOAD ? 1 : 2) * w.moves;
    return (w.shuffles + moves) * COST_UNIT / __builtin_popcount(w.places);
}

double qn__access_cost(const qn_analysis *a, uint32_t i, int d)
{
    const qn_kernel *k = a->k;
    bool is_load = k->inst[i].op == QN_I_LOAD;
    int64_t stride;
    if (k->inst[i].op == QN_I_ATOMIC && qn__access_stride(a, i, d, &stride) && stride == 1 &&
        a->f->atomics)
        return 3 * COST_UNIT; /* a load and a store */
    if (k->inst[i].op == QN_I_ATOMIC)
        return COST_SCATTER;
    if (!qn__access_stride(a, i, d, &stride)) {
        double table = is_load ? COST_UNIT * qn__table_registers(a, i) : 0;
        return table > 0 && table < COST_GATHER ? table : is_load ? COST_GATHER : COST_SCATTER;
    }
    if (stride == 1)
        return is_load ? COST_UNIT : 2 * COST_UNIT;
    if (stride == 0)
        return is_load ? COST_SPLAT : COST_SCATTER;
    if (stride == -1)
        return is_load ? COST_REVERSED : 2 * COST_REVERSED;
    double grouped = group_cost(a, i, d);
    if (grouped > 0)
        return grouped;
    if (qn__is_small_stride(stride))
        return (is_load ? 1 : 2) * COST_SPREAD * (double)(stride < 0 ? -stride : stride);
    if (a->f->plan.transpose >= 0 && qn__transposed_across(a, d, i) >= 0)
        return is_load ? COST_TRANSPOSED : 2 * COST_TRANSPOSED;
    return is_load ? COST_GATHER : COST_SCATTER;
}

bool qn__has_gather(const qn_analysis *a, int d)
{
    FOR_ACCESSES (a->k, n, i)
        if (qn__access_cost(a, i, d) >= COST_GATHER)
            return true;
    return false;
}

/** Accesses inside reduces run more often; outside a reduce over d they are scalar when d is the
 * lane dimension. */
static double lane_cost(const qn_analysis *a, int d)
{
    const qn_kernel *k = a->k;
    double sum = 1;
    bool over_reduction = qn__is_reduction(k, d);
    FOR_ACCESSES (k, n, i) {
        bool inside = qn__enclosing_reduce(k, i) != 0;
        double times = inside ? 16 : 1;
        sum += times * (over_reduction && !inside ? COST_UNIT : qn__access_cost(a, i, d));
    }
    int64_t t = qn__trips(a->f, d);
    if (t >= 0 && t < SHORT_LANES)
        sum *= (double)SHORT_LANES / (double)(t + 1);
    return sum;
}

int qn__plan_best_lanes(const qn_analysis *a)
{
    int best = -1;
    double least = 0;
    for (int d = 0; d < a->k->n_dims; d++) {
        if (!qn__plan_may_be_lanes(a, d))
            continue;
        double cost = lane_cost(a, d);
        if (best < 0 || cost <= least) {
            best = d;
            least = cost;
        }
    }
    return best;
}
