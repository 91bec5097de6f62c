/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate_work.c: what a statement asks of the core, but for how accesses are made, which is in
 * estimate_access.c. Each instruction is emitted once for every
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
    bool is_test;   /* what a loop ends by: its branches go one way until then */
    bool is_masked; /* some lanes may be off: they take another side, or fewer trips */
} region;

/* Cycles of a chain that has begun: what tells it from none. */
#define LEAST_CHAIN 1e-9
/* Of a point that is added to one of 64 partials in memory: its place, and whether a block ends. */
#define PARTIAL_INSTRUCTIONS 4

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

/** Whether an i64 value is only a sum of indices: part of an address. */
static bool is_address(const qn_estimator *e, uint32_t i)
{
    const qn_affine *a = &e->x->affine[i];
    return e->x->k->inst[i].type == QN_I64 && a->sym[0] != i && a->sym[1] != i;
}

static void add_moves(const placed *p, double loads, double stores, double bytes)
{
    p->in->demand.loads += loads;
    p->in->demand.stores += stores;
    p->in->demand.load_bytes += loads * bytes;
    p->in->demand.store_bytes += stores * bytes;
}

/* ---------------------------------------------------------------- one instruction */

static void add(const placed *p, double weight, double instructions, double slots)
{
    p->in->demand.instructions += weight * p->parts * instructions;
    p->in->demand.slots += weight * p->parts * slots;
}

static bool is_divider(int work)
{
    return work == QN_WORK_DIVIDE || work == QN_WORK_FLOAT_DIVIDE || work == QN_WORK_ROOT;
}

/** How often a port takes a part of a register. A divider is as slow as the table says. */
static double passes_of(const qn_estimator *e, const placed *p, int work, int bits)
{
    double bytes = qn__register_bytes(e, bits, p->lanes);
    bool is_by_lane = qn__cost_of(work, e->x->f->target)->slots[bits > 32 ? 4 : 3] < 0;
    return !is_divider(work) && !is_by_lane && p->lanes > 1 && bytes > e->m->port_bytes
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

/** Of all lanes: a divider takes the halves of a vector one after the other. */
static double latency_of_lanes(const qn_estimator *e, const placed *p, int work, int bits)
{
    int lanes = p->lanes * bits > 8 * e->x->f->target->vector_bytes
                    ? 8 * e->x->f->target->vector_bytes / bits
                    : p->lanes;
    double busy = (double)qn__work_slots(work, bits, lanes, e->x->f->target) / e->m->ports;
    return latency_of(e, work) + (is_divider(work) && lanes > 1 ? busy / 2 : 0);
}

static void add_pure(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_kernel *k = e->x->k;
    uint32_t reduce = qn__enclosing_reduce(k, i);
    int bits, work = qn__kind_of_work(e->x, i, &bits);
    if (work < 0 || is_address(e, i))
        return;
    placed p = place_of(e, e->x->value[i].deps, r->is_inside);
    bool is_fused = reduce && qn__contracted_product(k, reduce) == i; /* with the sum */
    if (!is_fused)
        add_work(e, &p, r->weight, work, bits);
    double begin = r->begin;
    for (int n = 0; n < k->inst[i].n_args; n++)
        begin = qn__larger(begin, e->ready[qn__args(k, i)[n]]);
    bool is_mask = p.lanes > 1 && k->inst[i].type == QN_BOOL;
    double latency = is_mask ? e->m->latency : latency_of_lanes(e, &p, work, bits);
    e->ready[i] = begin + (is_fused ? 0 : latency);
}

/* ---------------------------------------------------------------- accesses */

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

/** A load of the element that load i reads, by an earlier reduce of its tuple; 0: there is none. */
static uint32_t loaded_before(const qn_estimator *e, uint32_t i)
{
    const qn_kernel *k = e->x->k;
    uint32_t reduce = qn__enclosing_reduce(k, i);
    const qn_reduced *tuple = reduce ? qn__reduction_of(e->s, reduce) : NULL;
    for (int m = 0; tuple && tuple->inst[m] != reduce; m++)
        for (uint32_t n = k->inst[tuple->inst[m]].region[0]; n < k->inst[tuple->inst[m]].region[1];
             n++) {
            bool is_it = k->inst[n].op == QN_I_LOAD && k->inst[n].imm == k->inst[i].imm &&
                         k->inst[n].sub == k->inst[i].sub;
            if (is_it && qn__have_same_indices(e->x, n, i))
                return n;
        }
    return 0;
}

/** The part of its moves that a load has where all points of its reduce, and some iterations, are
 * emitted together. */
static double shared_part(const qn_estimator *e, uint32_t i)
{
    uint32_t reduce = qn__enclosing_reduce(e->x->k, i), together = 0,
             points = reduce ? qn__points_dims(e->x->k, reduce) : 0;
    int lane_dim = -1, jam_dim = -1;
    int64_t jam = 1;
    for (int n = 1; n < e->n; n++) {
        const qn_around *l = &e->around[n];
        int d = l->dims ? __builtin_ctz(l->dims) : -1;
        if (l->is_lanes)
            lane_dim = d;
        else if (l->is_points && qn__node(e->s, l->node)->role == QN_ROLE_UNROLLED)
            together |= l->dims; /* others that are emitted together may have a loop after all */
    }
    for (int n = 1; n < e->n; n++) {
        const qn_around *l = &e->around[n];
        int d = l->dims ? __builtin_ctz(l->dims) : -1;
        if (l->is_together && !l->is_lanes && !l->is_points && d != lane_dim) {
            jam_dim = d;
            jam = (int64_t)l->count;
        }
    }
    return points && (points & ~together) == 0 && lane_dim >= 0
               ? qn__window_share(e->x, i, lane_dim, jam_dim, jam)
               : 1;
}

/** Whether an access is at sums of indices of the domain, which branches and loops of the body do
 * not change. */
static bool is_of_indices(const qn_estimator *e, uint32_t i)
{
    bool is = true;
    for (int n = 0; n < qn__n_indices(e->x->k, i); n++)
        is &= !e->x->affine[qn__args(e->x->k, i)[n]].sym[0];
    return is;
}

/** Two comparisons of each index, and what becomes of them. Of an index that data says, lanes that
 * have one index have one comparison. */
static void add_checks(qn_estimator *e, uint32_t i, double weight, bool is_inside)
{
    uint32_t all = 0;
    for (int n = 0; n < qn__n_indices(e->x->k, i); n++) {
        const uint32_t index = qn__args(e->x->k, i)[n];
        const uint32_t *data = e->x->affine[index].sym;
        const uint32_t dims = e->x->value[data[0] && !data[1] ? data[0] : index].deps;
        all |= dims;
        const placed p = place_of(e, dims, is_inside);
        for (int end = 0; end < 2; end++)
            add_work(e, &p, weight, QN_WORK_SIMPLE, 64);
    }
    const placed p = place_of(e, all, is_inside);
    add_work(e, &p, weight, QN_WORK_SIMPLE, 64);
}

static void add_access(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_kernel *k = e->x->k;
    const qn_inst *x = &k->inst[i];
    uint32_t before = x->op == QN_I_LOAD ? loaded_before(e, i) : 0;
    if (before) {
        e->ready[i] = e->ready[before];
        return;
    }
    const qn_record_info *record = qn__record_at(e->s, r->at, i, 0);
    uint32_t dims = e->x->value[i].deps;
    double begin = r->begin;
    for (int n = 0; n < x->n_args; n++) {
        dims |= e->x->value[qn__args(k, i)[n]].deps;
        begin = qn__larger(begin, e->ready[qn__args(k, i)[n]]);
    }
    bool is_load = x->op == QN_I_LOAD;
    bool is_outside = is_load && !r->is_inside && !qn__enclosing_reduce(k, i);
    placed p = place_of(e, dims, !is_outside); /* loads of points stay with the reduce */
    bool outer = e->is_masked;
    e->is_masked |= r->is_masked && !is_of_indices(e, i);
    qn_access_work w = qn__estimate_access(e, i, record, p.lanes);
    e->is_masked = outer;
    double part = is_load ? shared_part(e, i) : 1;
    double all = r->weight * p.parts * w.moves * part;
    add(&p, r->weight * part, w.moves + w.slots + w.shuffles, w.slots);
    p.in->demand.shuffles += r->weight * part * p.parts * w.shuffles;
    bool is_whole = p.lanes > 1 && w.moves < p.lanes;
    add_moves(&p, x->op != QN_I_STORE ? all : 0, is_load ? 0 : all,
              qn__register_bytes(e, (int)(8 * qn__access_bytes(k, i)), is_whole ? p.lanes : 1) +
                  w.torn / qn__larger(w.moves, 1));
    placed digits = p;
    digits.lanes = qn__lanes_are_in_digit(e, i, p.lanes) ? 1 : p.lanes;
    add_digits(e, &digits, i, r->weight);
    if (record && record->check == QN_CHECK_PER_LANE)
        add_checks(e, i, r->weight, !is_outside);
    if (x->op == QN_I_ATOMIC && !(record && record->is_plain))
        add(&p, r->weight, 0,
            p.lanes * (double)qn__work_slots(QN_WORK_ATOMIC, 64, 1, e->x->f->target));
    int work = p.lanes > 1 && w.moves >= p.lanes ? QN_WORK_GATHER : QN_WORK_MOVE;
    e->ready[i] = begin + (is_load ? latency_of(e, work) : 1);
}

/* ---------------------------------------------------------------- accumulators */

/** Whether points are lanes. */
static bool has_lane_points(const qn_estimator *e)
{
    for (int n = 1; n < e->n; n++)
        if (e->around[n].is_points && e->around[n].is_lanes)
            return true;
    return false;
}

/** Accumulators in memory, or those that registers have no room for; is_partial: of a reduce whose
 * points are added to partials there. */
static void add_accumulators(const qn_estimator *e, const qn_reduced *r, const placed *p,
                             double registers, double bytes, bool is_partial)
{
    const bool is_memory =
        is_partial || (r->buffer && e->s->buffer[r->buffer - 1].storage != QN_STORAGE_REGISTERS);
    double room = e->x->f->target->vectors - 2; /* operands */
    double moved = is_memory ? registers : registers > room ? registers - room : 0;
    add_moves(p, moved, moved, bytes);
    p->in->demand.instructions += 2 * moved + (is_partial ? PARTIAL_INSTRUCTIONS * p->parts : 0);
}

/** Lanes over points become one value behind them: whole vectors first, then halves of one. */
static void add_joining(qn_estimator *e, int work, int bits)
{
    double vectors = 1, lanes = 1;
    int first = e->n;
    for (int n = e->n - 1; n > 0; n--) {
        const qn_around *l = &e->around[n];
        first = l->is_points ? n : first;
        lanes *= l->is_points && l->is_lanes ? l->count : 1;
        vectors *= l->is_points && l->is_together && !l->is_lanes ? l->count : 1;
    }
    if (lanes < 2)
        return;
    vectors = qn__larger(vectors, 1); /* of a loop without trips there are none */
    double halves = __builtin_ctz((unsigned)lanes), pairs = __builtin_ctz((unsigned)vectors);
    placed behind = {&e->around[first - 1], 1, (int)lanes};
    while (behind.in->is_together)
        behind.in--;
    double path = (pairs + halves) * latency_of(e, work) + halves * latency_of(e, QN_WORK_SHUFFLE);
    add_work(e, &behind, vectors - 1 + halves, work, bits);
    behind.in->demand.shuffles += halves;
    behind.in->demand.instructions += halves;
    behind.in->demand.path = qn__larger(behind.in->demand.path, path);
}

/** What a point adds to the accumulators of a reduce that has loops. */
static void add_combine(qn_estimator *e, uint32_t reduce, const qn_reduced *r)
{
    int bits = qn__dtype_width(e->x->k->inst[reduce].type),
        work = qn__work_of_combine(e->x->k, reduce);
    placed p = place_of(e, UINT32_MAX, true);
    double in_turn = 1;
    for (int n = 1; n < e->n; n++) /* points that one accumulator takes in one iteration */
        if (e->around[n].is_together && !e->around[n].is_lanes && e->around[n].is_points &&
            (r->order == QN_POINTS_INDEXED || r->order == QN_POINTS_ORDERED))
            in_turn *= e->around[n].count;
    add_work(e, &p, 1, work, bits);
    add_joining(e, work, bits);
    double registers = p.parts / in_turn * (double)qn__registers(bits, p.lanes, e->x->f->target);
    const bool has_partials = r->order == QN_POINTS_STRIPED && !has_lane_points(e),
               is_kept = has_partials && qn__keeps_partials(e->x->k, e->x->f, reduce);
    add_accumulators(e, r, &p, registers, qn__register_bytes(e, bits, p.lanes),
                     has_partials && !is_kept);
    if (is_kept) /* other sums take points between */
        in_turn = qn__larger(1, p.parts) / (double)QN_PARTIALS_AT_ONCE;
    double *chain = p.in->is_points ? &p.in->demand.chain : &p.in->demand.path;
    if (!r->buffer)
        *chain = qn__larger(*chain, in_turn * latency_of(e, work));
}

void qn__estimate_moves(qn_estimator *e, double loads, double stores, double shuffles)
{
    qn_around *in = &e->around[e->n - 1];
    while (in->is_together)
        in--;
    add_moves(&(placed){in, 1, 1}, loads, stores, e->x->f->target->vector_bytes);
    in->demand.shuffles += shuffles;
    in->demand.instructions += loads + stores + shuffles;
}

/* ---------------------------------------------------------------- regions */

static double walk(qn_estimator *e, uint32_t begin, uint32_t end, const region *r);

/** The index in the middle of a dimension. */
static double middle_of(const qn_analysis *x, int d)
{
    const qn_fact *begin = &x->f->begin[d];
    double trips = (double)qn__usual_trips(x->f, d, QN_NOMINAL_EXTENT);
    return (begin->kind == QN_FACT_EXACT ? (double)begin->value : 0) + (trips - 1) / 2;
}

/** Trips of a `for` whose bounds differ by a sum of indices, in the middle of the domain; below 0:
 * what they are, data say. */
static double trips_of_bounds(const qn_analysis *x, uint32_t i)
{
    const uint32_t *arg = qn__args(x->k, i);
    const qn_affine *a = &x->affine[arg[0]], *b = &x->affine[arg[1]];
    double length = (double)b->constant - (double)a->constant;
    double step = (int64_t)x->k->inst[i].imm > 0 ? (double)x->k->inst[i].imm : 1;
    if (memcmp(a->sym, b->sym, sizeof a->sym) != 0 ||
        memcmp(a->sym_coef, b->sym_coef, sizeof a->sym_coef) != 0)
        return -1;
    for (int d = 0; d < x->k->n_dims; d++)
        length += ((double)b->coef[d] - (double)a->coef[d]) * middle_of(x, d);
    return length > 0 ? length / step : 0;
}

double qn__nominal_trips(const qn_analysis *x, uint32_t i)
{
    const qn_kernel *k = x->k;
    const qn_inst *own = &k->inst[i];
    double trips = 1;
    for (int n = 0; own->op == QN_I_REDUCE && n < own->n_args; n++)
        trips *= (double)qn__usual_trips(x->f, qn__dim_of(k, i, n), QN_NOMINAL_TRIPS);
    if (own->op == QN_I_REDUCE)
        return trips;
    trips = own->op == QN_I_FOR ? trips_of_bounds(x, i) : -1;
    if (trips >= 0)
        return trips;
    const qn_affine *most = &x->affine[qn__args(k, i)[0]];
    bool has_few = own->op == QN_I_WHILE && !most->sym[0] && most->constant >= 0 &&
                   most->constant < QN_NOMINAL_TRIPS;
    return has_few ? (double)most->constant : (double)QN_NOMINAL_TRIPS;
}

/** Trips of a loop of the body, or points of a reduce in it. Of lanes whose numbers of trips data
 * say, all wait for the longest. */
static double trips_of(const qn_estimator *e, uint32_t i, const placed *uneven)
{
    const int op = e->x->k->inst[i].op;
    bool is_data = op != QN_I_REDUCE && !(op == QN_I_FOR && trips_of_bounds(e->x, i) >= 0);
    return qn__nominal_trips(e->x, i) * (is_data && uneven->lanes > 1 ? QN_LONGEST : 1);
}

/** Sides of a branch: of lanes that take different ones, both are computed. */
static void walk_if(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_kernel *k = e->x->k;
    const qn_inst *x = &k->inst[i];
    placed p = place_of(e, e->x->value[qn__args(k, i)[0]].deps, true);
    double first = x->sub ? QN_RARE_SHARE : 0.5, end = r->begin;
    bool is_masked = p.lanes > 1;
    for (int side = 0; side < 2; side++) {
        double share = is_masked ? (x->sub && side == 0 ? QN_RARE_SHARE * 2 : 1)
                       : side    ? 1 - first
                                 : first;
        region inside = {r->at, r->weight * share, r->begin,
                         true,  r->is_test,        r->is_masked || is_masked};
        end = qn__larger(end, walk(e, x->region[side], x->region[side + 1], &inside));
    }
    if (!is_masked) {
        add_work(e, &p, r->weight, QN_WORK_BLOCK, 64);
        double wrong = r->is_test ? 0 : QN_WRONG_SHARE;
        p.in->demand.guesses += r->weight * p.parts * wrong * e->m->wrong_guess;
    }
    e->ready[i] = end;
}

/** Whether instruction i, or one in its regions, uses a value that trips carry. */
static bool uses_carried(const qn_estimator *e, uint32_t i)
{
    const qn_kernel *k = e->x->k;
    uint32_t end = qn__has_regions(&k->inst[i]) ? k->inst[i].region[2] : i + 1;
    for (uint32_t j = i; j < end; j++)
        for (int n = 0; n < k->inst[j].n_args; n++)
            if (e->carried[qn__args(k, j)[n]] > 0)
                return true;
    return false;
}

/** Cycles from the values that trips carry into a region to those that end it, of what depends on
 * them. All other values of later trips are made ahead. */
static double carried_chain(qn_estimator *e, uint32_t begin, uint32_t end, double start)
{
    const qn_kernel *k = e->x->k;
    double most = 0;
    for (uint32_t j = begin; j < end; j++) {
        const qn_inst *x = &k->inst[j];
        double known = start, since = 0;
        e->carried[j] = 0;
        for (int n = 0; n < x->n_args; n++) {
            known = qn__larger(known, e->ready[qn__args(k, j)[n]]);
            since = qn__larger(since, e->carried[qn__args(k, j)[n]]);
        }
        if (x->op == QN_I_CARRIED)
            e->carried[j] = LEAST_CHAIN;
        else if (uses_carried(e, j))
            e->carried[j] = qn__larger(since, LEAST_CHAIN) + qn__larger(e->ready[j] - known, 0);
        if (x->op == QN_I_YIELD)
            most = qn__larger(most, since);
        if (qn__has_regions(x) && x->region[2] > j)
            j = x->region[2] - 1;
    }
    return most;
}

/** Cycles from one trip to the next. Lanes that have ended keep their values: these wait for the
 * condition, too. Else it is foreseen. */
static double chain_of_trips(qn_estimator *e, uint32_t i, double begin)
{
    const qn_inst *x = &e->x->k->inst[i];
    if (x->op == QN_I_REDUCE)
        return latency_of(e, qn__work_of_combine(e->x->k, i));
    double condition = carried_chain(e, x->region[0], x->region[1], begin);
    if (x->op == QN_I_FOR)
        return condition;
    double body = carried_chain(e, x->region[1], x->region[2], begin);
    uint32_t yield = x->region[1] - 1; /* of the condition */
    uint32_t dims = e->x->value[qn__args(e->x->k, yield)[0]].deps;
    bool is_masked = place_of(e, dims, true).lanes > 1;
    return is_masked ? qn__larger(condition, body) + latency_of(e, QN_WORK_SELECT) : body;
}

/** Lanes that have numbers of trips of their own. */
static placed uneven_lanes(qn_estimator *e, uint32_t i)
{
    const qn_inst *x = &e->x->k->inst[i];
    const uint32_t *arg = qn__args(e->x->k, i);
    uint32_t dims = 0;
    if (x->op == QN_I_FOR)
        dims = e->x->value[arg[0]].deps | e->x->value[arg[1]].deps;
    else if (x->op == QN_I_WHILE)
        dims = e->x->value[qn__args(e->x->k, x->region[1] - 1)[0]].deps;
    return place_of(e, dims, true);
}

/** Whether trips are so few, and as many each time, that their end is foreseen. */
static bool is_foreseen(const qn_estimator *e, uint32_t i, double trips)
{
    const qn_inst *x = &e->x->k->inst[i];
    const uint32_t *arg = qn__args(e->x->k, i);
    const qn_affine *a = &e->x->affine[arg[0]], *b = &e->x->affine[arg[x->op == QN_I_FOR]];
    return x->op != QN_I_WHILE && trips < (double)QN_FORESEEN_TRIPS && !a->sym[0] && !b->sym[0] &&
           memcmp(a->coef, b->coef, sizeof a->coef) == 0;
}

/** A loop of the body, or a reduce in it: trips wait for one another if they carry values. */
static void walk_trips(qn_estimator *e, uint32_t i, const region *r)
{
    const qn_inst *x = &e->x->k->inst[i];
    placed uneven = uneven_lanes(e, i);
    double trips = trips_of(e, i, &uneven), begin = r->begin;
    for (int n = 0; n < x->n_args; n++)
        begin = qn__larger(begin, e->ready[qn__args(e->x->k, i)[n]]);
    region inside = {r->at, r->weight * trips,   begin,
                     true,  x->op == QN_I_WHILE, r->is_masked || uneven.lanes > 1};
    double end = walk(e, x->region[0], x->region[1], &inside);
    inside.is_test = false;
    if (x->op == QN_I_WHILE)
        end = qn__larger(end, walk(e, x->region[1], x->region[2], &inside));
    placed p = place_of(e, UINT32_MAX, true), once = {p.in, 1, 1};
    add_work(e, &once, inside.weight, QN_WORK_SIMPLE, 64);
    if (!is_foreseen(e, i, trips))
        p.in->demand.guesses += r->weight * e->m->wrong_guess;
    if (x->op == QN_I_REDUCE)
        add_work(e, &p, inside.weight, qn__work_of_combine(e->x->k, i),
                 qn__dtype_width(x->type));
    e->ready[i] = end + trips * chain_of_trips(e, i, begin);
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
            reduction = qn__reduction_of(e->s, x->parent);
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
        last = qn__larger(last, e->ready[i]);
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
    region r = {at, 1, 0, false, false, false};
    /* values of other statements are known */
    memset(e->ready, 0, e->x->k->n_insts * sizeof *e->ready);
    double path = walk(e, n->first, n->end, &r);
    placed p = place_of(e, UINT32_MAX, true);
    p.in->demand.path = qn__larger(p.in->demand.path, path);
}
