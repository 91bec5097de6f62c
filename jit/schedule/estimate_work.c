/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate_work.c: what a statement asks of the core. Each instruction is emitted once for every
 * vector and jammed iteration that it differs in, in the innermost loop that moves it; indices are
 * addresses, which cost nothing. Registers that a sum does not find are memory.
 */
#include "jit/schedule/estimate_parts.h"
#include "jit/schedule/plan.h"

#include <string.h>

/** How often an instruction is emitted, and where. */
typedef struct placed {
    qn_around *in; /* the loop */
    double parts;
    int lanes;
} placed;

/** A region that is walked: its weight, and when it begins. */
typedef struct region {
    qn_node at;
    double weight;  /* how often it runs for one iteration of the statement */
    double begin;   /* cycles from the begin of the statement */
    bool is_inside; /* of a branch or a loop of the body: nothing moves out of it */
} region;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/** dims: those that the instruction depends on. */
static placed place_of(qn_estimator *e, uint32_t dims, bool is_inside)
{
    placed p = {&e->around[0], 1, 1};
    for (int n = 1; n < e->n; n++) {
        qn_around *l = &e->around[n];
        bool moves = (l->dims & dims) != 0;
        if (l->is_lanes && moves)
            p.lanes *= (int)l->count;
        else if (l->is_together && moves)
            p.parts *= l->count;
        else if (!l->is_together && (moves || is_inside))
            p.in = l;
    }
    return p;
}

static const qn_record_info *record_of(const qn_schedule *s, qn_node at, uint32_t inst)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].at.id == at.id && s->record[n].inst == inst && !s->record[n].is_tail)
            return &s->record[n];
    return NULL;
}

/** Whether an i64 value is only a sum of indices: part of an address. */
static bool is_address(const qn_estimator *e, uint32_t i)
{
    const qn_affine *a = &e->x->a.affine[i];
    return e->x->k->inst[i].type == QN_I64 && a->sym[0] != i && a->sym[1] != i;
}

static void add_moves(const placed *p, double loads, double stores, double bytes)
{
    p->in->demand.loads += loads;
    p->in->demand.stores += stores;
    p->in->demand.load_bytes += loads * bytes;
    p->in->demand.store_bytes += stores * bytes;
}

/* ---------------------------------------------------------------- registers */

/** Notes how often and where last each value of a statement is used. */
static void note_uses(qn_estimator *e, uint32_t begin, uint32_t end)
{
    memset(e->n_uses, 0, e->x->k->n_insts * sizeof *e->n_uses);
    for (uint32_t i = begin; i < end; i++)
        for (int n = 0; n < e->x->k->inst[i].n_args; n++) {
            e->last_use[qn__args(e->x->k, i)[n]] = i;
            e->n_uses[qn__args(e->x->k, i)[n]]++;
        }
}

/** Values that registers have no room for: each is stored and loaded again, or, if it was loaded,
 * only loaded again. All that an instruction is emitted for stands side by side. What is loaded
 * for one use is an operand in memory. */
static double spilled(qn_estimator *e, uint32_t begin, uint32_t end, double *stores)
{
    const qn_kernel *k = e->x->k;
    const qn_target *t = e->x->f->target;
    double live = 0, spills = 0, room = t->vectors;
    note_uses(e, begin, end);
    for (uint32_t i = begin; i < end; i++) {
        for (int n = 0; n < k->inst[i].n_args; n++) {
            uint32_t arg = qn__args(k, i)[n];
            bool is_again = n > 0 && arg == qn__args(k, i)[n - 1];
            if (arg >= begin && e->last_use[arg] == i && !is_again)
                live -= e->held[arg];
        }
        e->held[i] = 0;
        bool is_load = k->inst[i].op == QN_I_LOAD, is_operand = is_load && e->n_uses[i] == 1;
        if (k->inst[i].type == QN_VOID || e->last_use[i] <= i || is_address(e, i) || is_operand)
            continue;
        placed p = place_of(e, e->x->a.value[i].deps, false);
        if (p.lanes == 1)
            continue;
        int bits = qn__dtype_width(k->inst[i].type);
        e->held[i] = p.parts * (double)qn__registers(bits, p.lanes, t);
        live += e->held[i];
        double excess = live - room > e->held[i] ? e->held[i] : live - room;
        spills += excess > 0 ? excess : 0;
        *stores += excess > 0 && !is_load ? excess : 0;
    }
    return spills;
}

/* ---------------------------------------------------------------- one instruction */

static void add(const placed *p, double weight, double instructions, double slots)
{
    p->in->demand.instructions += weight * p->parts * instructions;
    p->in->demand.slots += weight * p->parts * slots;
}

/** Bytes of the registers that hold lanes. */
static double bytes_of(const qn_estimator *e, int bits, int lanes)
{
    double bytes = (double)bits / 8 * lanes, most = e->x->f->target->vector_bytes;
    return bytes < most ? bytes : most;
}

/** How often a port takes a part of a register. A divider is as slow as the table says. */
static double passes_of(const qn_estimator *e, const placed *p, int work, int bits)
{
    double bytes = bytes_of(e, bits, p->lanes);
    bool is_divider = work == QN_WORK_FLOAT_DIVIDE || work == QN_WORK_ROOT;
    bool is_by_lane = qn__cost_of(work, e->x->f->target)->slots[bits > 32 ? 4 : 3] < 0;
    return !is_divider && !is_by_lane && p->lanes > 1 && bytes > e->m->port_bytes
               ? bytes / e->m->port_bytes
               : 1;
}

/** Work by the table. Units count what is slow to compile more than once. */
static void add_work(const qn_estimator *e, const placed *p, double weight, int work, int bits)
{
    const qn_target *t = e->x->f->target;
    double units = (double)qn__work_units(work, bits, p->lanes, t);
    double slots = (double)qn__work_slots(work, bits, p->lanes, t);
    add(p, weight, slots > 0 && slots < units ? slots : units, slots * passes_of(e, p, work, bits));
}

static double latency_of(const qn_estimator *e, int work)
{
    int latency = qn__cost_of(work, e->x->f->target)->latency;
    return latency ? latency : e->m->latency;
}

static void add_pure(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_kernel *k = e->x->k;
    uint32_t reduce = qn__enclosing_reduce(k, i);
    int bits, work = qn__kind_of_work(k, &e->x->a, i, &bits);
    if (work < 0 || is_address(e, i))
        return;
    placed p = place_of(e, e->x->a.value[i].deps, r->is_inside);
    bool is_fused = reduce && qn__contracted_product(k, reduce) == i; /* with the sum */
    if (!is_fused)
        add_work(e, &p, r->weight, work, bits);
    double begin = r->begin;
    for (int n = 0; n < k->inst[i].n_args; n++)
        begin = larger(begin, e->ready[qn__args(k, i)[n]]);
    e->ready[i] = begin + (is_fused ? 0 : latency_of(e, work));
}

/* ---------------------------------------------------------------- accesses */

/** Whether registers of an access along the lanes lie across two lines, about half of them. */
static bool is_unaligned(const qn_estimator *e, uint32_t i, int64_t lanes)
{
    const qn_param_fact *view = &e->x->f->param[e->x->k->inst[i].imm];
    for (int r = 0; r < qn__n_indices(e->x->k, i); r++) {
        const qn_dim_fact *d = &view->dim[r];
        const qn_affine *a = &e->x->a.affine[qn__args(e->x->k, i)[r]];
        int64_t offset = a->constant;
        for (int n = 0; n < d->n_digits; n++) {
            const qn_fact *stride = &e->x->f->digit[d->first_digit + n].stride;
            if (stride->kind == QN_FACT_EXACT && stride->value != 1 && stride->value % lanes)
                return true;
        }
        for (int m = 0; m < e->x->k->n_dims; m++)
            if (e->x->f->begin[m].kind == QN_FACT_EXACT)
                offset = qn__wrap_add(offset, qn__wrap_mul(a->coef[m], e->x->f->begin[m].value));
        if (d->lower.kind == QN_FACT_EXACT)
            offset = qn__wrap_sub(offset, d->lower.value);
        if (d->n_digits == 1 && e->x->f->digit[d->first_digit].stride.kind == QN_FACT_EXACT &&
            e->x->f->digit[d->first_digit].stride.value == 1 && offset % lanes)
            return true;
    }
    return false;
}

/** Iterations of a loop around that moves the access by one element from one to the next, and that
 * are emitted together; 0: there is none. So many elements are moved at once, and transposed in
 * registers. */
static double transposed(const qn_estimator *e, uint32_t i)
{
    for (int n = 1; n < e->n; n++) {
        const qn_around *l = &e->around[n];
        int64_t stride;
        qn_axis axis = qn__node(e->s, l->node)->axis;
        int d = qn__axis_dim(e->x, e->s, axis);
        qn_axis root;
        if (l->is_together && !l->is_lanes && l->count >= 4 && d >= 0 &&
            qn__axis_weight(e->x, e->s, axis, &root) == 1 &&
            qn__access_stride(e->x->k, e->x->f, &e->x->a, i, d, &stride) && stride == 1)
            return l->count;
    }
    return 0;
}

static int log2_of(int n)
{
    int log2 = 0;
    while (n >> log2 > 1)
        log2++;
    return log2;
}

/** Memory operations and slots of an access of `lanes` lanes. */
static void moves_of(const qn_estimator *e, uint32_t i, const qn_record_info *r, int lanes,
                     double *moves, double *slots)
{
    const qn_target *t = e->x->f->target;
    bool is_load = e->x->k->inst[i].op == QN_I_LOAD;
    int bits = (int)(8 * qn__access_bytes(e->x->k, i)), method = r ? r->method : QN_METHOD_GATHER;
    double registers = (double)qn__registers(bits, lanes, t);
    int64_t apart = r && r->stride < 0 ? -r->stride : r ? r->stride : 0;
    double shuffle = (double)qn__work_slots(QN_WORK_SHUFFLE, bits, 2, t);
    double together = method == QN_METHOD_STRIDED ? transposed(e, i) : 0;
    int scattered = is_load ? QN_WORK_GATHER : QN_WORK_SCATTER;
    *moves = registers;
    *slots = 0;
    if (lanes == 1 || method == QN_METHOD_UNIFORM) {
        *moves = 1;
    } else if (method == QN_METHOD_CONTIGUOUS) {
        if (is_unaligned(e, i, 8 * t->vector_bytes / bits))
            *moves *= 1 + (double)t->vector_bytes / e->m->cache[0].line;
    } else if (method == QN_METHOD_TABLE) {
        *moves = 0;
        *slots = registers * shuffle * (r->index > 1 ? 2 : 1);
    } else if (method == QN_METHOD_GROUP) {
        *slots = 2 * registers * shuffle;
    } else if (method == QN_METHOD_STRIDED && r->stride == -1) {
        *slots = registers * shuffle;
    } else if (method == QN_METHOD_STRIDED && together > 0) {
        double run = together < lanes ? together : lanes;
        *moves = registers * (double)lanes / run;
        *slots = *moves * shuffle * log2_of(lanes);
    } else if (method == QN_METHOD_STRIDED && qn__is_small_stride(apart) && t->has_strided_loads) {
        *moves = registers * (double)apart;
        *slots = *moves * (shuffle + (is_load ? 0 : 1)); /* stores under masks */
    } else if (method == QN_METHOD_STRIDED) {
        *moves = lanes;
        *slots = (double)lanes * (double)qn__work_slots(QN_WORK_LANE, bits, 2, t);
    } else if (method == QN_METHOD_GATHER) {
        *moves = lanes;
        *slots = (double)qn__work_slots(scattered, bits, lanes, t);
    }
}

/** Digits of an index that are taken apart by divisions. */
static void add_digits(const qn_estimator *e, const placed *p, uint32_t i, double weight)
{
    for (int r = 0; r < qn__n_indices(e->x->k, i); r++) {
        const qn_dim_fact *d = &e->x->f->param[e->x->k->inst[i].imm].dim[r];
        for (int n = 0; n + 1 < d->n_digits; n++) {
            const qn_fact *extent = &e->x->f->digit[d->first_digit + n].extent;
            bool is_power = extent->kind == QN_FACT_EXACT && !(extent->value & (extent->value - 1));
            add_work(e, p, weight, is_power ? QN_WORK_SIMPLE : QN_WORK_DIVIDE_CONSTANT, 64);
            add_work(e, p, weight, QN_WORK_MULTIPLY, 64);
        }
    }
}

static void add_access(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_kernel *k = e->x->k;
    const qn_inst *x = &k->inst[i];
    const qn_record_info *record = record_of(e->s, r->at, i);
    uint32_t dims = e->x->a.value[i].deps;
    double moves, slots, begin = r->begin;
    for (int n = 0; n < x->n_args; n++) {
        dims |= e->x->a.value[qn__args(k, i)[n]].deps;
        begin = larger(begin, e->ready[qn__args(k, i)[n]]);
    }
    bool is_load = x->op == QN_I_LOAD;
    placed p = place_of(e, dims, r->is_inside || !is_load);
    moves_of(e, i, record, p.lanes, &moves, &slots);
    double all = r->weight * p.parts * moves;
    add(&p, r->weight, moves + slots, slots);
    bool is_whole = p.lanes > 1 && moves < p.lanes;
    add_moves(&p, x->op != QN_I_STORE ? all : 0, is_load ? 0 : all,
              bytes_of(e, (int)(8 * qn__access_bytes(k, i)), is_whole ? p.lanes : 1));
    add_digits(e, &p, i, r->weight);
    if (record && record->check == QN_CHECK_PER_LANE)
        for (int n = 0; n < 2 * qn__n_indices(k, i) + 1; n++)
            add_work(e, &p, r->weight, QN_WORK_SIMPLE, 64);
    if (x->op == QN_I_ATOMIC && !(record && record->is_plain))
        add(&p, r->weight, 0,
            p.lanes * (double)qn__work_slots(QN_WORK_ATOMIC, 64, 1, e->x->f->target));
    int work = record && record->method == QN_METHOD_GATHER ? QN_WORK_GATHER : QN_WORK_MOVE;
    e->ready[i] = begin + (is_load ? latency_of(e, work) : 1);
}

/** The work of combining two values of a reduce. */
static int work_of_combine(const qn_kernel *k, uint32_t reduce)
{
    const qn_inst *x = &k->inst[reduce];
    bool is_integer = qn__is_integer(x->type) || x->type == QN_BOOL;
    if (x->sub == QN_COMBINE_PROD)
        return is_integer ? QN_WORK_MULTIPLY : QN_WORK_FLOAT;
    if (x->sub == QN_COMBINE_SUM)
        return is_integer ? QN_WORK_SIMPLE : QN_WORK_FLOAT;
    if (x->sub == QN_COMBINE_MIN || x->sub == QN_COMBINE_MAX)
        return is_integer ? QN_WORK_EXTREMUM : QN_WORK_FLOAT_EXTREMUM;
    return QN_WORK_SIMPLE;
}

/* ---------------------------------------------------------------- accumulators */

static const qn_reduced *reduction_of(const qn_schedule *s, uint32_t reduce)
{
    for (int n = 0; n < s->n_reductions; n++)
        for (int m = 0; m < s->reduction[n].n; m++)
            if (s->reduction[n].inst[m] == reduce)
                return &s->reduction[n];
    return NULL;
}

/** Accumulators in memory, or those that registers have no room for. */
static void add_accumulators(const qn_estimator *e, const qn_reduced *r, const placed *p,
                             double registers, double bytes)
{
    bool is_memory = r->buffer && e->s->buffer[r->buffer - 1].storage != QN_STORAGE_REGISTERS;
    double room = e->x->f->target->vectors - 2; /* operands */
    double moved = is_memory ? registers : registers > room ? registers - room : 0;
    add_moves(p, moved, moved, bytes);
    p->in->demand.instructions += 2 * moved;
}

/** What a point adds to the accumulators of a reduce that has loops. */
static void add_combine(qn_estimator *e, uint32_t reduce, const qn_reduced *r)
{
    int bits = qn__dtype_width(e->x->k->inst[reduce].type), work = work_of_combine(e->x->k, reduce);
    placed p = place_of(e, UINT32_MAX, true);
    double in_turn = 1;
    for (int n = 1; n < e->n; n++) /* points that one accumulator takes in one iteration */
        if (e->around[n].is_together && !e->around[n].is_lanes && e->around[n].is_points &&
            (r->order == QN_POINTS_INDEXED || r->order == QN_POINTS_ORDERED))
            in_turn *= e->around[n].count;
    add_work(e, &p, 1, work, bits);
    double registers = p.parts / in_turn * (double)qn__registers(bits, p.lanes, e->x->f->target);
    add_accumulators(e, r, &p, registers, bytes_of(e, bits, p.lanes));
    if (p.in->is_points && !r->buffer)
        p.in->demand.chain = larger(p.in->demand.chain, in_turn * latency_of(e, work));
}

void qn__estimate_moves(qn_estimator *e, double loads, double stores, double slots)
{
    qn_around *in = &e->around[e->n - 1];
    while (in->is_together)
        in--;
    add_moves(&(placed){in, 1, 1}, loads, stores, e->x->f->target->vector_bytes);
    in->demand.slots += slots;
    in->demand.instructions += loads + stores + slots;
}

/* ---------------------------------------------------------------- regions */

static double walk(qn_estimator *e, uint32_t begin, uint32_t end, const region *r);

/** Trips of a loop of the body, or points of a reduce in it. */
static double trips_of(const qn_estimator *e, uint32_t i)
{
    const qn_kernel *k = e->x->k;
    const qn_inst *x = &k->inst[i];
    double trips = 1;
    for (int n = 0; x->op == QN_I_REDUCE && n < x->n_args; n++)
        trips *= (double)qn__trips_or(e->x->f, qn__dim_of(k, i, n), QN_NOMINAL_TRIPS);
    if (x->op == QN_I_REDUCE)
        return trips;
    const qn_affine *a = &e->x->a.affine[qn__args(k, i)[0]], *b = a;
    int64_t length = a->constant, step = 1;
    bool is_number = !a->sym[0];
    if (x->op == QN_I_FOR) {
        b = &e->x->a.affine[qn__args(k, i)[1]];
        length = qn__wrap_sub(b->constant, a->constant);
        step = (int64_t)x->imm > 0 ? (int64_t)x->imm : 1;
        is_number = memcmp(a->coef, b->coef, sizeof a->coef) == 0 && a->sym[0] == b->sym[0] &&
                    a->sym[1] == b->sym[1];
    }
    bool is_while = x->op == QN_I_WHILE;
    if (!is_number || length < 0 || (is_while && length > QN_NOMINAL_TRIPS))
        return QN_NOMINAL_TRIPS;
    return (double)(length / step);
}

/** Sides of a branch: of lanes that take different ones, both are computed. */
static void walk_if(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_kernel *k = e->x->k;
    const qn_inst *x = &k->inst[i];
    placed p = place_of(e, e->x->a.value[qn__args(k, i)[0]].deps, true);
    double first = x->sub ? QN_RARE_SHARE : 0.5, end = r->begin;
    bool is_masked = p.lanes > 1;
    for (int side = 0; side < 2; side++) {
        double share = is_masked ? (x->sub && side == 0 ? QN_RARE_SHARE * 2 : 1)
                       : side    ? 1 - first
                                 : first;
        region inside = {r->at, r->weight * share, r->begin, true};
        end = larger(end, walk(e, x->region[side], x->region[side + 1], &inside));
    }
    if (!is_masked) {
        add_work(e, &p, r->weight, QN_WORK_BLOCK, 64);
        p.in->demand.guesses += r->weight * p.parts * QN_WRONG_SHARE * e->m->wrong_guess;
    }
    e->ready[i] = end;
}

/** A loop of the body, or a reduce in it: trips wait for one another if they carry values. */
static void walk_trips(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_inst *x = &e->x->k->inst[i];
    double trips = trips_of(e, i), begin = r->begin;
    for (int n = 0; n < x->n_args; n++)
        begin = larger(begin, e->ready[qn__args(e->x->k, i)[n]]);
    region inside = {r->at, r->weight * trips, begin, true};
    double end = walk(e, x->region[0], x->region[1], &inside);
    if (x->op == QN_I_WHILE)
        end = larger(end, walk(e, x->region[1], x->region[2], &inside));
    placed p = place_of(e, UINT32_MAX, true), once = {p.in, 1, 1};
    add_work(e, &once, inside.weight, QN_WORK_SIMPLE, 64);
    p.in->demand.guesses += r->weight * e->m->wrong_guess;
    if (x->op == QN_I_REDUCE) {
        add_work(e, &p, inside.weight, work_of_combine(e->x->k, i), qn__dtype_width(x->type));
        end = larger(end, begin + latency_of(e, work_of_combine(e->x->k, i)));
    }
    e->ready[i] = begin + trips * (end - begin);
}

/** Instructions from begin up to end; when the last value is known. */
static double walk(qn_estimator *e, uint32_t begin, uint32_t end, const region *r)
{
    const qn_kernel *k = e->x->k;
    double last = r->begin;
    uint32_t loop = 0;
    for (uint32_t i = begin; i < end; i++) {
        const qn_inst *x = &k->inst[i];
        const qn_reduced *reduction = NULL;
        e->ready[i] = r->begin;
        if (x->op == QN_I_YIELD && x->parent && k->inst[x->parent].op == QN_I_REDUCE)
            reduction = reduction_of(e->s, x->parent);
        if (reduction)
            add_combine(e, x->parent, reduction);
        else if (x->op == QN_I_IF)
            walk_if(e, i, r);
        else if (qn__is_access(x))
            add_access(e, i, r);
        else if (qn__has_regions(x))
            walk_trips(e, i, r);
        else if (x->op == QN_I_RESULT)
            e->ready[i] = e->ready[loop];
        else
            add_pure(e, i, r);
        last = larger(last, e->ready[i]);
        if (qn__has_regions(x)) {
            loop = i;
            i = x->region[2] > i ? x->region[2] - 1 : i;
        }
    }
    return last;
}

void qn__estimate_statement(qn_estimator *e, qn_node at)
{
    const qn_node_info *n = qn__node(e->s, at);
    region r = {at, 1, 0, false};
    /* values of other statements are known */
    memset(e->ready, 0, e->x->k->n_insts * sizeof *e->ready);
    double path = walk(e, n->first, n->end, &r);
    placed p = place_of(e, UINT32_MAX, true);
    p.in->demand.path = larger(p.in->demand.path, path);
    double stores = 0, loads = p.lanes > 1 ? spilled(e, n->first, n->end, &stores) : 0;
    p.parts = 1;
    add_moves(&p, loads, stores, e->x->f->target->vector_bytes);
    add(&p, 1, loads + stores, 0);
}
