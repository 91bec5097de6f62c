/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate_grid.c: about how long a grid runs on a GPU. A multiprocessor issues the instructions of
 * its warps, moves the sectors that they ask for from its first-level cache, the bytes that its
 * blocks touch from the second level, and its part of what all touch from memory. Warps wait for
 * their loads, so many of them at a time as registers and shared memory leave room for. The longest
 * of these counts. A pure function of kernel, facts and grid; knows no LLVM.
 */
#include "jit/schedule/estimate_grid.h"

#define QUARTERS 4.0
/* Loads that a thread has under way at once where there is no loop, and registers that a thread has
 * beside its values. */
#define LOADS_UNDER_WAY 16.0
#define OWN_REGISTERS 24.0
/* Points of a reduce whose loads have registers: one, and the next. */
#define POINTS_LOADED 2
#define MOST_REGISTERS 255.0
/* Of one addition after the other in a thread, and where a thread adds what others put into shared
 * memory. */
#define SUM_CYCLES 4.0
#define ADDED_CYCLES 6.0
/* Of a launch with an extent that is not known: all of a GPU works. */
#define MANY_ITERATIONS 1048576.0

int64_t qn__grid_trips(const qn_grid_model *m, int d)
{
    const qn_kernel *k = m->x->k;
    const int64_t known = qn__usual_trips(m->x->f, d, -1);
    double others = 1;
    bool is_first = qn__is_parallel(k, d);
    if (known >= 0)
        return known;
    for (int e = 0; e < k->n_dims; e++) {
        if (e == d || !qn__is_parallel(k, e))
            continue;
        is_first &= e > d || qn__usual_trips(m->x->f, e, -1) >= 0;
        others *= (double)qn__usual_trips(m->x->f, e, QN_NOMINAL_EXTENT);
    }
    return is_first
               ? (int64_t)qn__larger(QN_NOMINAL_EXTENT, MANY_ITERATIONS / qn__larger(others, 1))
               : QN_NOMINAL_EXTENT;
}

/* ---------------------------------------------------------------- threads */

static void add_lanes(qn_grid_lanes *l, int dim, int64_t count, int64_t step)
{
    if (dim >= 0 && count > 1 && l->n < 3) {
        l->dim[l->n] = dim;
        l->count[l->n] = count;
        l->step[l->n++] = step;
    }
}

/** The dimension of the points of the first reduce, -1: there is none. */
static int dim_of_points(const qn_kernel *k)
{
    uint32_t r = qn__next_reduce(k, k->body);
    return r < k->n_insts ? qn__dim_of(k, r, k->inst[r].n_args - 1) : -1;
}

static void place_lanes(qn_grid_model *m)
{
    const qn_grid *p = m->p;
    int points = dim_of_points(m->x->k), first = p->axis[0];
    qn_grid_lanes of_iterations = {0};
    for (int a = 0; a < 3; a++)
        if (p->axis[a] >= 0)
            add_lanes(&of_iterations, p->axis[a], p->threads[p->axis[a]],
                      qn__grid_at_once(p, p->axis[a]));
    m->inside = m->outside = of_iterations;
    if (p->team == QN_TEAM_WARP) {
        m->inside = m->outside = (qn_grid_lanes){0};
        add_lanes(&m->inside, points, (int64_t)QN_LANES, 1);
        for (int d = m->x->k->n_dims - 1; d >= 0; d--)
            if (p->rest_dims >> d & 1)
                add_lanes(&m->outside, d, (int64_t)QN_LANES, 1);
    } else if (p->team == QN_TEAM_BLOCK) {
        m->inside = (qn_grid_lanes){0};
        int64_t tile = p->block[first];
        if (p->is_along_points)
            add_lanes(&m->inside, points, (int64_t)QN_LANES, 1);
        add_lanes(&m->inside, first, tile, 1);
        if (!p->is_along_points)
            add_lanes(&m->inside, points, (int64_t)QN_LANES, 1);
    }
}

/** Blocks of the launch, threads of one, and what each of these does. */
static void count_threads(qn_grid_model *m)
{
    const qn_grid *p = m->p;
    const qn_kernel *k = m->x->k;
    bool is_warp = p->team == QN_TEAM_WARP, is_block = p->team == QN_TEAM_BLOCK;
    double team = is_warp ? m->m->warp * (p->warps ? p->warps : 1) : 1;
    m->blocks = m->turns = m->rest = 1;
    m->threads = team;
    for (int d = 0; d < k->n_dims; d++) {
        double n = qn__dim_kind(k, d) == QN_DIM_REDUCTION ? 1 : (double)qn__grid_trips(m, d);
        if (p->rest_dims >> d & 1)
            m->rest *= is_block ? 1 : qn__above(n, team) / team / (double)qn__grid_at_once(p, d);
        else if (p->block[d] > 0)
            m->blocks *= qn__above(n + (double)qn__grid_reach(p, d), (double)p->block[d]) /
                         (double)p->block[d];
        else
            m->turns *= n;
    }
    for (int a = 0; a < 3; a++)
        m->threads *= p->axis[a] >= 0 ? p->threads[p->axis[a]] : 1;
    for (int d = 0; d < k->n_dims && p->team == QN_TEAM_THREAD; d++)
        if (p->block[d] > 0)
            m->turns *= (double)p->block[d] / (double)qn__grid_at_once(p, d);
    m->turns /= p->team == QN_TEAM_THREAD ? m->threads : 1;
    double tile = is_block ? (double)p->block[p->axis[0]] : 1;
    m->share = is_block ? m->threads / tile : team;
    m->others = is_block ? qn__smaller(1, qn__larger(tile, QN_LANES) / m->threads) : 1;
    if (is_block && p->is_split) {
        double pieces = 1;
        FOR_TOP_REDUCES (k, i)
            pieces = qn__larger(pieces, qn__nominal_trips(m->x, i) / (double)QN_BLOCK_POINTS);
        m->blocks *= pieces;
        m->share *= pieces;
    }
    if (p->most_blocks && m->blocks > p->most_blocks) {
        m->turns *= m->blocks / p->most_blocks;
        m->blocks = p->most_blocks;
    }
    m->blocks = qn__larger(m->blocks, 1);
}

/* ---------------------------------------------------------------- waiting */

/** Loads one after the other on the way to a value, and cycles of the sums of a reduce. */
static double wait_of_warp(qn_grid_model *m, double load_cycles)
{
    const qn_kernel *k = m->x->k;
    double top = 0, sum = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (!x->parent)
            top = qn__larger(top, m->loads[i]);
        if (x->op != QN_I_REDUCE && x->op != QN_I_FOR && x->op != QN_I_WHILE)
            continue;
        double deepest = 0, loads = 0, n = 1;
        for (uint32_t j = x->region[0]; j < x->region[2]; j++)
            if (k->inst[j].op == QN_I_LOAD && k->inst[j].parent == i) {
                deepest = qn__larger(deepest, 1);
                loads += qn__grid_values(m, qn__grid_deps(m, j));
                for (int a = 0; a < k->inst[j].n_args; a++)
                    deepest = qn__larger(deepest, 1 + m->loads[qn__args(k, j)[a]]);
            }
        bool is_reduce = x->op == QN_I_REDUCE;
        n = qn__nominal_trips(m->x, i) / (is_reduce && !x->parent ? m->share : 1);
        double under_way = !is_reduce                ? 1
                           : n <= m->p->straight     ? LOADS_UNDER_WAY / qn__larger(1, loads)
                           : m->p->team == QN_TEAM_BLOCK ? LOADS_UNDER_WAY / qn__larger(1, loads)
                                                         : QN_LOOP_POINTS;
        double rounds = qn__larger(1, n / qn__larger(1, under_way));
        bool is_in_order = is_reduce && !qn__is_associative(k, i) &&
                           qn__order_rule(k, i) != QN_STRIPED;
        double points = m->p->team == QN_TEAM_BLOCK ? n * m->share : n;
        double chain = m->p->team == QN_TEAM_BLOCK ? points * ADDED_CYCLES
                       : is_in_order               ? points * SUM_CYCLES
                                                   : n;
        sum += qn__grid_times(m, i) * qn__larger(deepest * rounds * load_cycles, chain);
    }
    /* a tile's loads are under way together */
    return sum + (m->p->staged ? 1 : m->turns) * m->rest * top * load_cycles;
}

/** Where value v is needed for the last time if instruction i needs it: at the end of the outermost
 * loop around i that v stands before. */
static uint32_t needed_until(const qn_kernel *k, uint32_t v, uint32_t i)
{
    uint32_t last = i;
    for (uint32_t r = k->inst[i].parent; r > v; r = k->inst[r].parent)
        last = k->inst[r].op == QN_I_IF ? last : k->inst[r].region[2] - 1;
    return last;
}

/** Registers of value i of all iterations of a thread; what is in addresses or predicates has none.
 */
static double words_of(const qn_grid_model *m, uint32_t i)
{
    const qn_inst *x = &m->x->k->inst[i];
    const bool is_value = x->op == QN_I_LOAD || x->op == QN_I_CARRIED || x->op == QN_I_RESULT ||
                          x->op == QN_I_REDUCE || (qn__is_pure(x) && x->op != QN_I_CONST);
    const bool is_index = qn__is_pure(x) && x->type == QN_I64 && m->x->affine[i].sym[0] != i;
    const bool is_of_point = m->x->k->inst[x->parent].op == QN_I_REDUCE;
    double words = (qn__dtype_width(x->type) + 31) / 32;
    if (!is_value || is_index || x->type == QN_VOID || x->type == QN_BOOL ||
        (is_of_point && qn__contracted_product(m->x->k, x->parent) == i))
        return 0;
    words *= is_of_point && x->op == QN_I_LOAD ? POINTS_LOADED : 1;
    for (uint32_t r = x->parent; r; r = m->x->k->inst[r].parent)
        if (m->x->k->inst[r].op == QN_I_IF) /* of one iteration after the other */
            return words;
    return words * qn__grid_values(m, qn__grid_deps(m, i));
}

double qn__grid_registers(const qn_analysis *x, const qn_grid *p)
{
    const qn_kernel *k = x->k;
    const qn_grid_model m = {.x = x, .p = p};
    double most = 0, live = 0, *ends = qn__zalloc(k->n_insts, sizeof *ends);
    uint32_t *last = qn__zalloc(k->n_insts, sizeof *last);
    for (uint32_t i = k->body; ends && last && i < k->n_insts; i++)
        for (int n = 0; n < k->inst[i].n_args; n++) {
            const uint32_t v = qn__args(k, i)[n], until = needed_until(k, v, i);
            last[v] = until > last[v] ? until : last[v];
        }
    for (uint32_t i = k->body; ends && last && i < k->n_insts; i++) {
        const double words = words_of(&m, i);
        live += words;
        most = qn__larger(most, live);
        ends[last[i] > i ? last[i] : i] += words;
        live -= ends[i];
    }
    qn__free(ends);
    qn__free(last);
    return OWN_REGISTERS + most;
}

static double shared_bytes_of(const qn_grid_model *m)
{
    const qn_grid *p = m->p;
    const qn_kernel *k = m->x->k;
    bool is_warp = p->team == QN_TEAM_WARP;
    double rows = is_warp ? m->threads / m->m->warp : (double)p->block[p->axis[0]];
    double bytes = (double)p->kept_bytes * rows;
    if (p->team == QN_TEAM_BLOCK && !p->n_kept)
        bytes += 8.0 * (double)p->chunk * (double)p->block[p->axis[0]];
    for (uint32_t s = 0; s < k->n_accesses && s < 64; s++)
        if (p->staged >> s & 1)
            bytes += QN_STAGE_SIDE * QN_STAGE_SIDE * (double)qn__access_bytes(k, k->access[s].inst);
    for (int n = 0; n < p->n_moved; n++)
        bytes += m->threads * qn__moved_pitch(p, &p->moved[n]);
    return bytes;
}

/** Blocks that a multiprocessor holds. */
static double held_blocks(const qn_grid_model *m, double shared)
{
    const qn_machine *g = m->m;
    double threads = qn__above(m->threads, g->warp), n = g->blocks;
    n = qn__smaller(n, g->threads / threads);
    n = qn__smaller(n, g->registers / (m->out->registers * threads));
    if (shared > 0)
        n = qn__smaller(n, g->shared_bytes / (shared + g->system_bytes));
    return qn__larger(1, qn__whole(n));
}

/* ---------------------------------------------------------------- all of it */

/** Sets m->loads. */
static void count_loads(qn_grid_model *m)
{
    const qn_kernel *k = m->x->k;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        for (int n = 0; n < k->inst[i].n_args; n++)
            m->loads[i] = qn__larger(m->loads[i], m->loads[qn__args(k, i)[n]]);
        m->loads[i] += k->inst[i].op == QN_I_LOAD ? 1 : 0;
    }
}

static void estimate(qn_grid_model *m)
{
    qn_grid_estimate *out = m->out;
    const qn_machine *g = m->m;
    count_loads(m);
    count_threads(m);
    place_lanes(m);
    out->registers = qn__smaller(MOST_REGISTERS, qn__grid_registers(m->x, m->p));
    double shared = shared_bytes_of(m), held = held_blocks(m, shared);
    double warps = qn__above(m->threads, g->warp) / g->warp;
    double all = qn__grid_bytes(m);
    bool is_in_far = all <= (double)g->far_bytes / 2;
    double load_cycles = is_in_far ? g->far_cycles : g->far_memory_cycles;
    qn__grid_add_work(m);
    /* of the multiprocessor that has the most blocks */
    double blocks = qn__above(m->blocks / g->multiprocessors, 1);
    out->blocks = m->blocks;
    out->warps = warps * qn__smaller(held, blocks);
    out->issue = blocks * warps * m->issue / QUARTERS;
    out->near = blocks * warps * m->near;
    out->far_bytes = qn__grid_far_bytes(m, (g->near_bytes - shared * held) / held) * m->blocks;
    out->far = out->far_bytes / qn__larger(1, m->blocks) * blocks / g->far_rate;
    if (!is_in_far)
        out->far += blocks * warps * m->torn * g->torn_cycles;
    out->memory_bytes = is_in_far ? 0 : all;
    out->memory = out->memory_bytes / ((double)g->memory_rate * g->multiprocessors);
    double asked = qn__larger(1, m->sectors * QN_SECTOR_BYTES * warps * m->blocks);
    double missed = qn__smaller(1, out->far_bytes / asked);
    load_cycles = g->near_cycles + missed * (load_cycles - g->near_cycles);
    out->waiting = qn__above(blocks / held, 1) * (wait_of_warp(m, load_cycles) + m->issue);
    double most = out->issue, sum = out->issue + out->near + out->far + out->memory + out->waiting;
    most = qn__larger(qn__larger(most, out->near), qn__larger(out->far, out->memory));
    most = qn__larger(most, out->waiting);
    out->cycles = g->launch_cycles + most + (sum - most) * QN_SHOWN_SHARE;
}

bool qn__grid_estimate(const qn_analysis *x, const qn_grid *p, qn_grid_estimate *out)
{
    qn_grid_model m = {.x = x, .p = p, .m = &x->f->machine, .out = out};
    *out = (qn_grid_estimate){0};
    if (p->is_product || p->team == QN_TEAM_GRID || p->privatized ||
        (p->axis[0] < 0 && p->team != QN_TEAM_WARP))
        return false;
    m.loads = qn__zalloc(x->k->n_insts, sizeof *m.loads);
    if (m.loads)
        estimate(&m);
    qn__free(m.loads);
    return m.loads != NULL;
}

void qn__grid_estimate_print(const qn_grid_estimate *e, qn_text *out)
{
    const qn_estimate_part parts[] = {{e->issue, "instructions"},
                                      {e->near, "first-level cache"},
                                      {e->far, "second-level cache"},
                                      {e->memory, "memory"},
                                      {e->waiting, "waiting for loads"}};
    const char *name = qn__longest_part(parts, sizeof parts / sizeof parts[0]);
    qn__text_add(out, "estimate %.0f cycles a launch, limit: %s\n", e->cycles, name);
    qn__text_add(out, "blocks %.0f, warps of a multiprocessor %.0f, registers of a thread %.0f\n",
                 e->blocks, e->warps, e->registers);
    qn__text_add(out, "instructions %.0f, first-level cache %.0f, waiting for loads %.0f cycles\n",
                 e->issue, e->near, e->waiting);
    qn__text_add(out, "second-level cache %.0f bytes, %.0f cycles\n", e->far_bytes, e->far);
    qn__text_add(out, "memory %.0f bytes, %.0f cycles\n", e->memory_bytes, e->memory);
}
