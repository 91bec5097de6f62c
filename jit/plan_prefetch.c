/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_prefetch.c: what a register tile asks for ahead of time, because the hardware does not (jit/llvm_prefetch.c does it):
 * points that are far apart, which its jammed iterations load side by side; and, where the lanes are a batch, what the next
 * step of the lanes will load, a line of each element. Knows no LLVM.
 */
#include "jit/plan.h"

/* Points this far apart are not fetched ahead by the hardware; fewer stay near. So many points, of about 12 cycles each, cover the
 * way to the last-level cache, and their lines fit the sets of the second even at large powers of two. */
enum { FAR_BYTES = 1024, LEAST_POINTS = 256, POINTS_AHEAD = 32 };

/* Steps of the lanes ahead: as many as take so many operations, about the way to memory. Less than this in all is in a cache
 * that is near. */
enum { OPERATIONS_AHEAD = 512, MOST_STEPS_AHEAD = 8, NEAR_BYTES = 2 << 20 };

static bool is_parallel(const qn_kernel *k, int d)
{
    return qn__plan_kind(k, d) == QN_DIM_PARALLEL;
}

static uint32_t site_of(const qn_kernel *k, uint32_t i)
{
    uint32_t n = 0;
    while (k->access[n].inst != i)
        n++;
    return n;
}

static int dim_of(const qn_kernel *k, uint32_t reduce)
{
    return (int)k->inst[qn__args(k, reduce)[0]].imm;
}

bool qn__is_prefetched(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, const qn_plan *p, uint32_t i)
{
    uint32_t reduce = k->inst[i].op == QN_I_LOAD ? qn__single_reduce(k, i) : 0, deps = a->value[i].deps;
    int64_t along, across, bytes = qn_dtype_bytes(k->inst[i].type);
    if (!reduce || p->is_gpu || p->jam <= 1 || p->lane_dim < 0 || (deps >> p->lane_dim & 1) || i == p->pack ||
        !qn__is_known_ahead(k, i))
        return false;
    int d = dim_of(k, reduce);
    if (qn__is_checked(f, k, site_of(k, i)) || !qn__is_plain_access(k, f, i) || qn__plan_trips(f, d) < LEAST_POINTS ||
        !qn__access_stride(k, f, a, i, d, &along) || !qn__access_stride(k, f, a, i, p->jam_dim, &across))
        return false;
    return across == 1 && (along >= FAR_BYTES / bytes || along <= -FAR_BYTES / bytes);
}

int qn__asked_by(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, const qn_plan *p, uint32_t i)
{
    uint32_t reduce = k->inst[i].op == QN_I_LOAD ? qn__single_reduce(k, i) : 0, deps = a->value[i].deps;
    int64_t along;
    int shared = -1;
    if (!reduce || p->is_gpu || p->lane_dim < 0 || !is_parallel(k, p->lane_dim) || !qn__is_plain_access(k, f, i) ||
        !qn__is_known_ahead(k, i) || qn__is_checked(f, k, site_of(k, i)) || qn__plan_trips(f, dim_of(k, reduce)) <= 0 ||
        !qn__access_stride(k, f, a, i, p->lane_dim, &along) || along != 1)
        return -1;
    for (int d = 0; d < k->n_dims; d++) {
        if (d == p->lane_dim || !is_parallel(k, d) || qn__plan_trips(f, d) == 1)
            continue;
        if (qn__plan_trips(f, d) <= 0 || (!(deps >> d & 1) && shared >= 0))
            return -1;
        shared = deps >> d & 1 ? shared : d;
    }
    return shared;
}

/** Operations in one step of the lanes, about: points of the reduces times iterations of other dimensions. */
static double step_operations(const qn_kernel *k, const qn_facts *f, const qn_plan *p)
{
    double n = 1;
    for (int d = 0; d < k->n_dims; d++)
        n *= d == p->lane_dim || qn__plan_trips(f, d) < 1 ? 1 : (double)qn__plan_trips(f, d);
    return n * p->unroll;
}

void qn__plan_prefetch(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, qn_plan *p)
{
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (qn__is_prefetched(k, f, a, p, k->access[n].inst))
            p->prefetch = POINTS_AHEAD;
    if (p->lane_dim < 0 || !qn__is_batch(k, a, p->lane_dim) || qn__touched_in_all(k, f, a) < NEAR_BYTES)
        return;
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (qn__asked_by(k, f, a, p, k->access[n].inst) >= 0) {
            double steps = OPERATIONS_AHEAD / step_operations(k, f, p);
            p->steps_ahead = steps >= MOST_STEPS_AHEAD ? MOST_STEPS_AHEAD : 1 + (int32_t)steps;
        }
}
