/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c: which dimension threads divide, and how many iterations are worth a chunk of their
 * own. Waking a helper and waiting for it takes microseconds, so a chunk should hold some times
 * that: counted in work, bytes through accesses and operations, not in iterations, which differ by
 * a factor of 100 between a copy of bytes and a long body.
 */
#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

#include <limits.h>

/* The outermost parallel loop is divided if it has so many pieces, else the one with most; of a
 * register tile the lanes, whose steps share nothing but what is read from memory. */
enum {
    ENOUGH_PIECES = 64,
    ENOUGH_STEPS = 32,
    SHORT_ROW = 64,
    STEPS_OF_ROWS = 16,
    STEPS_OF_STRIPS = 8,
    CHUNKS_PER_THREAD = 4
};
/* A register tile whose lanes have fewer steps than the first is divided in both dimensions, if the
 * jammed one has so many steps. */
enum { MANY_STEPS = 128, LEAST_SECOND = 4 };

/* In bytes: 3 us in cache (docs/measurements.md). An operation of a vector lane
 * takes as long as 4 bytes; scalar code is four times as slow. */
enum {
    CHUNK_WORK = 1 << 19,
    OPERATION_BYTES = 4,
    SCALAR_FACTOR = 4,
    LOOP_FACTOR = 8,
    LEAST_CHUNK = 1024
};

/* ---------------------------------------------------------------- what is divided */

/** Pieces of a dimension that may be given to threads, about. */
static int64_t pieces(const qn_facts *f, const qn_plan *p, int d, bool is_tile)
{
    bool has_blocks = is_tile || p->transpose;
    int64_t step = d == p->lane_dim && !has_blocks  ? SHORT_ROW
                   : d == p->jam_dim && !has_blocks ? 1
                                                    : qn__plan_step(p, d);
    return qn__trips_or(f, d, INT_MAX) / step;
}

/** Few steps of the lanes of a register tile do not come out even for many threads, and threads
 * that divide only the jammed dimension each load, and copy, what the lanes load of all steps: so
 * both are divided. */
static void split_both(const qn_kernel *k, const qn_facts *f, qn_plan *p)
{
    bool is_pair = (p->split_dim == p->lane_dim || p->split_dim == p->jam_dim) &&
                   qn__is_parallel(k, p->lane_dim) && p->jam_dim >= 0 &&
                   qn__is_parallel(k, p->jam_dim) && !p->merged[p->jam_dim] &&
                   f->part[p->lane_dim] >= 0 && f->part[p->jam_dim] >= 0;
    int64_t steps = is_pair ? pieces(f, p, p->lane_dim, true)
                            : 0; /* without lanes there is no such dimension */
    if (p->transpose || steps < 2 || steps >= MANY_STEPS ||
        qn__trips(f, p->jam_dim) < LEAST_SECOND * p->jam)
        return;
    p->split_dim = p->lane_dim;
    p->second_dim = p->jam_dim;
    p->second_granule = p->row_steps ? p->jam * p->row_steps : p->jam;
}

void qn__plan_split(const qn_kernel *k, const qn_facts *f, qn_plan *p, bool is_tile)
{
    int64_t most = -1, enough = is_tile ? ENOUGH_STEPS : ENOUGH_PIECES;
    p->split_dim = -1;
    p->granule = 1;
    if (f->has_ranges) {
        p->split_dim = f->ranges[0];
        p->second_dim = f->ranges[1];
        p->second_granule = p->second_dim >= 0;
        return;
    }
    for (int n = 0; n < p->n_loops && !f->is_ordered; n++) {
        int d = p->order[n];
        if (!qn__is_parallel(k, d) || f->part[d] < 0 ||
            qn__trips(f, d) == 1) /* merged into another one, too */
            continue;
        int64_t now = pieces(f, p, d, is_tile);
        if (most < 0 || (most < enough && now > most)) {
            p->split_dim = d;
            most = now;
        }
    }
    if (is_tile && p->split_dim >= 0)
        split_both(k, f, p);
    if (p->split_dim >= 0)
        p->granule = qn__plan_step(p, p->split_dim);
    if (p->split_dim >= 0 && p->split_dim == p->lane_dim && !is_tile && !p->transpose)
        p->granule *= p->strip ? STEPS_OF_STRIPS : STEPS_OF_ROWS;
    else if (p->split_dim >= 0 && p->split_dim == p->jam_dim && p->row_steps)
        p->granule *= p->row_steps;
}

int32_t qn__chunks_per_thread(const qn_schedule *s, const qn_block *b)
{
    bool has_copies = false;
    for (int n = 0; s && n < s->n_buffers; n++)
        has_copies |=
            s->buffer[n].content == QN_CONTENT_COPY && s->buffer[n].storage == QN_STORAGE_SCRATCH;
    return has_copies && b->split_dim != b->lane_dim ? 1 : CHUNKS_PER_THREAD;
}

/* ---------------------------------------------------------------- how much is worth it */

/** Times an instruction runs for each iteration, about. */
static int64_t times(const qn_kernel *k, uint32_t i)
{
    int64_t n = 1;
    for (i = k->inst[i].parent; i && n < 1 << 12; i = k->inst[i].parent)
        if (k->inst[i].op == QN_I_FOR || k->inst[i].op == QN_I_WHILE)
            n *= LOOP_FACTOR;
    return n;
}

int64_t qn__plan_chunk(const qn_kernel *k, const qn_facts *f, int lane_dim)
{
    int64_t work = 1;
    if (f->plan.chunk)
        return f->plan.chunk;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (qn__is_access(x))
            work += times(k, i) * qn_dtype_bytes(k->param[x->imm].dtype);
        else if (x->op >= QN_I_PURE && x->type != QN_I64)
            work += times(k, i) * OPERATION_BYTES;
    }
    int64_t n = CHUNK_WORK / (lane_dim < 0 ? work * SCALAR_FACTOR : work);
    return n < LEAST_CHUNK ? LEAST_CHUNK : n;
}

/* ---------------------------------------------------------------- atomics */

/** Whether the launch is one chunk for any number of threads: less than two are worth one
 * (execute.c). */
static bool is_one_chunk(const qn_kernel *k, const qn_facts *f, const qn_plan *p)
{
    double n = 1;
    for (int d = 0; d < k->n_dims; d++) {
        if (qn__trips(f, d) < 0)
            return false;
        n *= qn__dim_kind(k, d) == QN_DIM_SEQUENTIAL ? 1 : (double)qn__trips(f, d);
    }
    return n < 2 * (double)qn__plan_chunk(k, f, p->lane_dim);
}

void qn__plan_atomics(const qn_kernel *k, const qn_facts *f, qn_plan *p)
{
    bool is_one = p->split_dim < 0 || p->n_shared_reduces || is_one_chunk(k, f, p);
    p->atomics = f->atomics == QN_ATOMICS_OF_THREADS && is_one ? QN_ATOMICS_OF_ONE : f->atomics;
    if (p->atomics != QN_ATOMICS_OF_ONE || p->n_shared_reduces || f->has_ranges)
        return;
    p->split_dim = -1;
    p->granule = 1;
    p->second_granule = 0;
}
