/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate_grid_work.c: what a warp of a grid asks for: slots of instructions, sectors and lines of
 * accesses, bytes that its block and the launch touch.
 */
#include "jit/analysis/group.h"
#include "jit/schedule/estimate_grid.h"

#define LINE 128.0
/* Instructions of an address, and of one turn of a loop, in slots of a quarter. */
#define ADDRESS_SLOTS 4.0
#define LOOP_SLOTS 8.0
/* Points of a loop that a step beside its neighbours takes to touch whole sectors. */
enum { STEP_POINTS = 8 };

/* ---------------------------------------------------------------- instructions */

uint32_t qn__grid_deps(const qn_grid_model *m, uint32_t i)
{
    const qn_kernel *k = m->x->k;
    uint32_t deps = m->x->value[i].deps;
    for (int n = 0; n < k->inst[i].n_args; n++)
        deps |= m->x->value[qn__args(k, i)[n]].deps;
    return deps;
}

double qn__grid_times(const qn_grid_model *m, uint32_t i)
{
    const qn_kernel *k = m->x->k;
    uint32_t reduce = 0, deps = qn__grid_deps(m, i);
    double n = m->turns * (deps & m->p->rest_dims ? m->rest : 1);
    bool is_in_loop = false;
    for (uint32_t r = k->inst[i].parent; r; r = k->inst[r].parent) {
        double trips = k->inst[r].op == QN_I_IF ? 1 : qn__nominal_trips(m->x, r);
        bool is_reduce = k->inst[r].op == QN_I_REDUCE;
        bool is_inside = !is_reduce || is_in_loop || (deps & qn__points_dims(k, r));
        n *= is_inside || k->inst[i].op == QN_I_YIELD ? trips : 1;
        is_in_loop |= !is_reduce || trips > m->p->straight;
        reduce = is_reduce ? r : reduce;
    }
    return reduce ? n / m->share : n * m->others;
}

double qn__grid_values(const qn_grid_model *m, uint32_t deps)
{
    const qn_grid *p = m->p;
    double n = 1;
    for (int d = 0; d < m->x->k->n_dims; d++)
        if (deps >> d & 1)
            n *= (double)qn__grid_at_once(p, d);
    return n;
}

/* ---------------------------------------------------------------- accesses */

/** Whether data says where an access goes. */
static bool is_anywhere(const qn_grid_model *m, uint32_t i)
{
    for (int r = 0; r < qn__n_indices(m->x->k, i); r++)
        for (int n = 0; n < 2; n++) {
            uint32_t sym = m->x->affine[qn__args(m->x->k, i)[r]].sym[n];
            if (sym && m->loads[sym] > 0)
                return true;
        }
    return false;
}

/** The number of the part of memory in which a byte stands. */
static int64_t part_of(double byte, double part)
{
    double n = byte / part;
    int64_t whole = (int64_t)n;
    return (double)whole > n ? whole - 1 : whole;
}

/** Sectors and lines that a warp touches with one access of so many bytes in each lane. */
static void touch(const qn_grid_model *m, uint32_t i, double bytes, double *sectors,
                  double *n_lines)
{
    const qn_grid_lanes *l = qn__enclosing_reduce(m->x->k, i) ? &m->inside : &m->outside;
    int64_t stride[3];
    double at[(int)QN_LANES];
    double unit = (double)qn__unit_of(m->x->k, m->x->f, i);
    *sectors = *n_lines = 0;
    for (int n = 0; n < l->n; n++)
        if (!qn__access_stride(m->x, i, l->dim[n], &stride[n])) {
            bool is_apart = is_anywhere(m, i); /* else neighbours are about side by side */
            *sectors = is_apart ? QN_LANES : qn__larger(1, QN_LANES * bytes / QN_SECTOR_BYTES);
            *n_lines = is_apart ? QN_LANES : qn__larger(1, QN_LANES * bytes / LINE);
            return;
        }
    for (int lane = 0; lane < (int)QN_LANES; lane++) {
        int64_t left = lane;
        double byte = 0;
        for (int n = 0; n < l->n; n++) {
            byte += (double)(left % l->count[n]) * (double)l->step[n] * (double)stride[n] * unit;
            left /= l->count[n];
        }
        at[lane] = byte;
        bool is_new = true, is_new_line = true;
        for (int other = 0; other < lane; other++) {
            is_new &= part_of(at[other], QN_SECTOR_BYTES) != part_of(at[lane], QN_SECTOR_BYTES);
            is_new_line &= part_of(at[other], LINE) != part_of(at[lane], LINE);
        }
        *sectors += is_new ? qn__larger(1, bytes / QN_SECTOR_BYTES) : 0;
        *n_lines += is_new_line ? 1 : 0;
    }
}

/** Whether the iterations along a dimension that a thread takes at once are one access. */
static bool is_vector(const qn_grid_model *m, uint32_t i, int d)
{
    int64_t stride;
    return d >= 0 && qn__grid_at_once(m->p, d) > 1 &&
           qn__unit_of(m->x->k, m->x->f, i) <= qn__access_bytes(m->x->k, i) &&
           qn__access_stride(m->x, i, d, &stride) && stride == 1;
}

/** Elements that a vector has of those of access i, as others of the view have what lies between
 * them; 1: there is none. */
static double members_of(const qn_grid_model *m, uint32_t i)
{
    const qn_kernel *k = m->x->k;
    int64_t stride, element = qn__access_bytes(k, i);
    double n = 0;
    if (m->p->wide < 2 || !qn__access_stride(m->x, i, m->p->wide_dim, &stride) || stride < 2 ||
        stride * qn__unit_of(k, m->x->f, i) > QN_ACCESS_BYTES)
        return 1;
    FOR_ACCESSES (k, s, other) {
        n += k->inst[other].imm == k->inst[i].imm && k->inst[other].op == k->inst[i].op &&
             qn__walk_alike(m->x, i, other);
    }
    bool is_full = n * (double)element >= (double)(stride * qn__unit_of(k, m->x->f, i));
    return is_full ? m->p->wide : 1;
}

/** Adds an access to what a warp does. */
static void add_access(qn_grid_model *m, uint32_t i)
{
    const qn_grid *p = m->p;
    double element = (double)qn__access_bytes(m->x->k, i), bytes, sectors, n_lines;
    double n = qn__grid_values(m, qn__grid_deps(m, i));
    int wide = is_vector(m, i, p->wide_dim)                    ? p->wide_dim
               : p->is_crossed && is_vector(m, i, p->tall_dim) ? p->tall_dim
                                                               : -1;
    double together = wide >= 0 ? (double)qn__grid_at_once(p, wide) : members_of(m, i);
    bytes = qn__smaller(QN_ACCESS_BYTES, element * together);
    n /= bytes / element;
    touch(m, i, bytes, &sectors, &n_lines);
    const uint32_t site = qn__site_of(m->x->k, i);
    if (qn__grid_moved(p, m->x->k, i) || (site < 64 && (p->staged >> site & 1))) {
        /* in there and out again */
        sectors = 2 * QN_LANES * bytes / QN_SECTOR_BYTES;
        n_lines = 2;
    }
    double cycles = qn__larger(n_lines, sectors * QN_SECTOR_BYTES / m->m->near_rate);
    double times = n * qn__grid_times(m, i);
    if (m->x->k->inst[i].op == QN_I_ATOMIC)
        cycles *= 2;
    if (m->x->k->inst[i].op == QN_I_STORE && n_lines > QN_LANES / 2 && bytes < QN_SECTOR_BYTES)
        m->torn += times * sectors;
    m->near += times * cycles;
    m->sectors += times * sectors;
    m->issue += times * (1 + ADDRESS_SLOTS / (bytes / element));
}

static void add_work(qn_grid_model *m, uint32_t i, int work, int bits, double times)
{
    const int column = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 3 : 4;
    double slots = qn__cost_of(work, m->x->f->target)->slots[column];
    m->issue += times * qn__grid_values(m, qn__grid_deps(m, i)) * slots;
}

void qn__grid_add_work(qn_grid_model *m)
{
    const qn_kernel *k = m->x->k;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        int bits, work = qn__is_access(x) ? -1 : qn__kind_of_work(m->x, i, &bits);
        if (qn__is_access(x))
            add_access(m, i);
        else if (work >= 0)
            add_work(m, i, work, bits, qn__grid_times(m, i));
        if (x->op == QN_I_YIELD && k->inst[x->parent].op == QN_I_REDUCE) {
            uint32_t r = x->parent;
            int type = k->inst[r].type;
            bool is_integer = qn__is_integer(type);
            add_work(m, i, is_integer ? QN_WORK_SIMPLE : QN_WORK_FLOAT, qn__dtype_width(type),
                     qn__grid_times(m, i));
        }
        if (x->op == QN_I_REDUCE || x->op == QN_I_FOR || x->op == QN_I_WHILE) {
            double trips = qn__nominal_trips(m->x, i) * (x->op == QN_I_REDUCE ? 1 / m->share : 1);
            if (trips > m->p->straight || x->op != QN_I_REDUCE)
                m->issue += qn__grid_times(m, i) * trips / QN_LOOP_POINTS * LOOP_SLOTS;
        }
    }
}

/* ---------------------------------------------------------------- bytes */

/** Bytes in whole sectors of a box. */
static double bytes_of(const qn_grid_model *m, uint32_t inst, const qn_box *box)
{
    qn_stretch s[QN_MOST_STRETCHES];
    double run = (double)qn__access_bytes(m->x->k, inst), runs = 1;
    int n = qn__stretches_of(m->x, inst, box, s);
    for (int i = 0; i < n; i++) {
        if (runs <= 1 && (s[i].stride <= run || s[i].stride < QN_SECTOR_BYTES))
            run += (s[i].n - 1) * s[i].stride;
        else
            runs *= s[i].n;
    }
    return runs * qn__above(run, QN_SECTOR_BYTES);
}

/** Whether a group of accesses that walk alike begins with this one. */
static bool is_first_of_group(const qn_grid_model *m, uint32_t site)
{
    const qn_kernel *k = m->x->k;
    uint32_t i = k->access[site].inst;
    for (uint32_t n = 0; n < site; n++) {
        uint32_t other = k->access[n].inst;
        if (k->inst[other].imm == k->inst[i].imm && qn__walk_alike(m->x, other, i))
            return false;
    }
    return true;
}

/** Bytes that all accesses of the group of `site` move in iterations with these spans: once to load
 * and once to store. */
static double group_bytes(const qn_grid_model *m, uint32_t site, const int64_t *span)
{
    const qn_kernel *k = m->x->k;
    uint32_t first = k->access[site].inst;
    qn_box all;
    int n_alike = 1;
    bool is_loaded = k->inst[first].op != QN_I_STORE, is_stored = k->inst[first].op != QN_I_LOAD;
    qn__box_of_spans(m->x, first, span, &all);
    for (uint32_t n = site + 1; n < k->n_accesses; n++) {
        uint32_t i = k->access[n].inst;
        qn_box own;
        if (k->inst[i].imm != k->inst[first].imm || !qn__walk_alike(m->x, first, i))
            continue;
        qn__box_of_spans(m->x, i, span, &own);
        qn__box_widen(&all, &own);
        n_alike++;
        is_loaded |= k->inst[i].op != QN_I_STORE;
        is_stored |= k->inst[i].op != QN_I_LOAD;
    }
    double unit = (double)qn__unit_of(m->x->k, m->x->f, first);
    double accesses = 1, each = is_anywhere(m, first) ? QN_SECTOR_BYTES : unit;
    for (int d = 0; d < k->n_dims; d++)
        if (qn__grid_deps(m, first) >> d & 1)
            accesses *= (double)span[d];
    double most = qn__larger(QN_SECTOR_BYTES, accesses * each * n_alike);
    double bytes = qn__smaller(bytes_of(m, first, &all), most);
    return bytes * (is_loaded + is_stored);
}

/** Iterations of a dimension that a block has under way at once; of those that its threads walk,
 * `walked`. */
static int64_t span_of(const qn_grid_model *m, int d, int64_t walked)
{
    const qn_grid *p = m->p;
    int64_t all = qn__grid_trips(m, d);
    int64_t own =
        qn__dim_kind(m->x->k, d) != QN_DIM_REDUCTION && p->block[d] > 0 ? p->block[d] : walked;
    return own < all && own > 0 ? own : all;
}

double qn__grid_far_bytes(const qn_grid_model *m, double room)
{
    const qn_kernel *k = m->x->k;
    int64_t whole[QN_MAX_RANK], step[QN_MAX_RANK];
    double in_all = 0, sum = 0;
    for (int d = 0; d < k->n_dims; d++) {
        whole[d] = span_of(m, d, INT64_MAX);
        step[d] = span_of(m, d, STEP_POINTS);
    }
    FOR_ACCESSES (k, s, i) {
        if (!is_first_of_group(m, s))
            continue;
        double once = group_bytes(m, s, whole), steps = 1;
        for (int d = 0; d < k->n_dims; d++)
            if (qn__grid_deps(m, i) >> d & 1)
                steps *= qn__above((double)whole[d], (double)step[d]) / (double)step[d];
        in_all += once;
        sum += qn__larger(once, steps * group_bytes(m, s, step));
    }
    return in_all <= room ? in_all : sum;
}

/** Bytes of a view of which all extents are known; else more than any view has. */
static double view_bytes(const qn_grid_model *m, int param)
{
    const qn_param_fact *f = &m->x->f->param[param];
    const qn_kernel_parameter *p = &m->x->k->param[param];
    double n = (double)(p->record ? p->record->bytes : qn_dtype_bytes(p->dtype));
    for (int r = 0; r < m->x->k->param[param].rank; r++)
        n *= f->dim[r].extent.kind == QN_FACT_EXACT ? (double)f->dim[r].extent.value : 1e300;
    return n;
}

double qn__grid_bytes(const qn_grid_model *m)
{
    const qn_kernel *k = m->x->k;
    int64_t span[QN_MAX_RANK];
    double sum = 0;
    for (int d = 0; d < k->n_dims; d++)
        span[d] = qn__grid_trips(m, d);
    for (int param = 0; param < k->n_params; param++) {
        double own = 0, ways = 0; /* what several loads read is moved once */
        for (uint32_t s = 0; s < k->n_accesses; s++) {
            const qn_inst *x = &k->inst[k->access[s].inst];
            if ((int)x->imm != param)
                continue;
            own += is_first_of_group(m, s) ? group_bytes(m, s, span) : 0;
            ways = qn__larger(ways, x->op == QN_I_LOAD ? 1 : 2);
        }
        sum += own > 0 ? qn__smaller(own, ways * view_bytes(m, param)) : 0;
    }
    return sum;
}
