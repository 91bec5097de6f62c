/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.c: what a register tile asks for ahead of time, because the hardware does not
 * (jit/lower/prefetch.c does it): points that are far apart, which its jammed iterations load side
 * by side; and, where the lanes are a batch, what the next step of the lanes will load, a line of
 * each element. And what a stencil out of cache asks for: of the many rows of one array that it
 * reads at once, the one that comes from memory. Knows no LLVM.
 */
#include "jit/schedule/plan.h"

/* Fewer points stay near. So many points ahead, of about 12 cycles each, cover the way to the
 * last-level cache, and their lines fit the sets of the second even at large powers of two. */
enum { LEAST_POINTS = 256, POINTS_AHEAD = 32 };

/* Steps of the lanes ahead: as many as take about the way to memory. What all views have must be so
 * often the second-level cache. */
#define MOST_STEPS_AHEAD 8.0
#define FAR 2.0

/* Rows of one view that are read side by side before the first is asked for. */
enum { LEAST_ROWS = 3, MOST_ROWS = 64 };

bool qn__is_prefetched(const qn_analysis *x, int lane_dim, int jam_dim, uint32_t i)
{
    uint32_t reduce = qn__reduce_of_plain(x, i);
    int64_t along, across, bytes = qn_dtype_bytes(x->k->inst[i].type);
    if (!reduce || jam_dim < 0 || lane_dim < 0 || (x->value[i].deps >> lane_dim & 1))
        return false;
    int d = qn__dim_of(x->k, reduce, 0);
    if (qn__trips(x->f, d) < LEAST_POINTS || !qn__access_stride(x, i, d, &along) ||
        !qn__access_stride(x, i, jam_dim, &across))
        return false;
    return across == 1 && (along >= QN_FAR_BYTES / bytes || along <= -QN_FAR_BYTES / bytes);
}

int qn__asked_by(const qn_analysis *a, int lane_dim, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    uint32_t reduce = qn__reduce_of_plain(a, i), deps = a->value[i].deps;
    int64_t along;
    int shared = -1;
    if (!reduce || lane_dim < 0 || !qn__is_parallel(k, lane_dim) ||
        qn__trips(f, qn__dim_of(k, reduce, 0)) <= 0 || !qn__access_stride(a, i, lane_dim, &along) ||
        along != 1)
        return -1;
    for (int d = 0; d < k->n_dims; d++) {
        if (d == lane_dim || !qn__is_parallel(k, d) || qn__trips(f, d) == 1)
            continue;
        if (qn__trips(f, d) <= 0 || (!(deps >> d & 1) && shared >= 0))
            return -1;
        shared = deps >> d & 1 ? shared : d;
    }
    return shared;
}

/** Operations in one step of the lanes, about: points of the reduces times iterations of other
 * dimensions. */
static double step_operations(const qn_kernel *k, const qn_facts *f, const qn_plan *p)
{
    double n = 1;
    for (int d = 0; d < k->n_dims; d++)
        n *= d == p->lane_dim || qn__trips(f, d) < 1 ? 1 : (double)qn__trips(f, d);
    return n * p->unroll;
}

void qn__plan_prefetch(const qn_analysis *a, qn_plan *p)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    if (f->plan.prefetch < 0)
        return;
    FOR_ACCESSES (k, n, i)
        if (p->jam > 1 && i != p->pack && i != p->pack_rows &&
            qn__is_prefetched(a, p->lane_dim, p->jam_dim, i))
            p->prefetch = POINTS_AHEAD;
    if (p->lane_dim < 0 || !qn__is_batch(a, p->lane_dim) ||
        qn__touched_in_all(a) < FAR * (double)f->machine.cache[QN_CACHE_SECOND].bytes)
        return;
    FOR_ACCESSES (k, n, i)
        if (qn__asked_by(a, p->lane_dim, i) >= 0) {
            double ahead = f->machine.memory_cycles * f->machine.operations,
                   steps = ahead / step_operations(k, f, p);
            p->steps_ahead = (int32_t)(steps < MOST_STEPS_AHEAD ? 1 + steps : MOST_STEPS_AHEAD);
        }
}

/* ---------------------------------------------------------------- rows of a view */

/** Whether access `site` may ask for memory ahead: a load of consecutive elements in the innermost
 * loop, outside of reduces and branches. */
static bool may_be_front(const qn_analysis *a, const qn_plan *p, uint32_t site)
{
    const qn_kernel *k = a->k;
    int64_t along;
    uint32_t i = k->access[site].inst;
    bool is_plain =
        k->inst[i].op == QN_I_LOAD && k->inst[i].parent == 0 && qn__is_plain_access(k, a->f, i);
    return is_plain && !qn__is_checked(a->f, k, site) && qn__is_parallel(k, p->lane_dim) &&
           p->order[p->n_loops - 1] == p->lane_dim &&
           qn__access_stride(a, i, p->lane_dim, &along) && along == 1;
}

/** 1 or -1: whether the outermost loop that moves load i moves it forwards or backwards; 0: none is
 * known to. */
static int direction(const qn_analysis *a, const qn_plan *p, uint32_t i)
{
    int64_t stride;
    for (int n = 0; n < p->n_loops; n++) {
        if (!qn__access_stride(a, i, p->order[n], &stride))
            return 0;
        if (stride)
            return stride > 0 ? 1 : -1;
    }
    return 0;
}

enum { NO_FRONT = 0, MAY_BE_FRONT = 1, DONE = 2 };

/** Of the loads that stay as far from that at `first` as they are, in state MAY_BE_FRONT before and
 * DONE after, marks the one that meets new memory, if they read enough rows; whether it did. */
static bool mark_front(const qn_analysis *a, const qn_plan *p, uint32_t first, uint8_t *state,
                       bool *fronts)
{
    const qn_kernel *k = a->k;
    uint32_t i = k->access[first].inst, front = first;
    int64_t row[MOST_ROWS], apart, most = 0, bytes = qn_dtype_bytes(k->inst[i].type);
    int n_rows = 0, sign = direction(a, p, i);
    for (uint32_t n = first; n < k->n_accesses; n++) {
        uint32_t m = k->access[n].inst;
        if (state[n] != MAY_BE_FRONT || k->inst[m].imm != k->inst[i].imm ||
            !qn__elements_apart(a, m, i, &apart))
            continue;
        state[n] = DONE;
        if (sign > 0 ? apart > most : apart < most) {
            most = apart;
            front = n;
        }
        bool is_near = false;
        for (int r = 0; r < n_rows; r++) {
            int64_t between = qn__wrap_sub(row[r], apart);
            is_near |= between > -QN_FAR_BYTES / bytes && between < QN_FAR_BYTES / bytes;
        }
        if (!is_near && n_rows < MOST_ROWS)
            row[n_rows++] = apart;
    }
    state[first] = DONE;
    bool is_front = sign && n_rows >= LEAST_ROWS;
    if (fronts)
        fronts[front] = is_front;
    return is_front;
}

bool qn__find_fronts(const qn_analysis *a, const qn_plan *p, bool *fronts)
{
    const qn_kernel *k = a->k;
    bool has_any = false;
    uint8_t *state = qn__zalloc(k->n_accesses + 1, 1);
    for (uint32_t n = 0; state && n < k->n_accesses; n++)
        state[n] = may_be_front(a, p, n) ? MAY_BE_FRONT : NO_FRONT;
    for (uint32_t n = 0; state && n < k->n_accesses; n++)
        if (state[n] == MAY_BE_FRONT)
            has_any |= mark_front(a, p, n, state, fronts);
    qn__free(state);
    return has_any;
}
