/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile.c: the register tile of a reduction: how many vectors of the lane dimension times how many
 * iterations of a second parallel dimension have their accumulators in registers together. What is
 * loaded for one of them serves the others, and many independent sums hide the latency of one.
 * All tiles that fit the registers are compared by the cost of one point for the whole tile. Knows
 * no LLVM.
 *
 * "May the kernel have a tile?" (is_applicable) is kept apart from "what does one cost?"
 * (step_cost).
 */
#include "jit/schedule/plan.h"

enum { MOST_JAM = 14, SPARE_REGISTERS = 2, SPARE_CROSSED = 1 };

/* In operations of one vector. The loop itself takes about one; loads and operations go side by
 * side, nearly. */
#define LOOP_COST 1.0
#define OVERLAP_LOSS 0.1
#define LEAST_LOAD 0.5
/* Another tile must be this much better than none: a tile is more code. */
#define WORTH 0.95
/* What two bodies instead of one must save at least: they take twice as long to compile. */
#define TWO_BODIES 1.02
/*
 * Where it is not known how many iterations a dimension has, a tile must do for few ones: of many,
 * rests are a small part. Tiles of products of f32, f64 and i32 with 16 to 512 columns are the same
 * ones for every bound from 48 to 64. With AVX-512 they are for 96 to 256, too, and but for one
 * for 32. With AVX2 wide products of f32 and f64 get 4 vectors x 2 rows up to 64, and 2 x 6 from 96
 * on. With 64 to 256 columns, 2 x 6 take 1.2 to 1.6 times as long for 1 to 7 rows, as long for 9 to
 * 31, and 4 x 2 take 1.07 to 1.5 times as long for more than 64 (EPYC Zen 5, code for AVX2). So a
 * bound of 64 makes the loss small where it is largest.
 */
enum { MOST_FEW = 64 };

/* For each vector more in a step, see room_cost; so much of the nearest cache is for the lines that
 * a tile loads again and again. */
#define ROOM_COST 0.05
#define ROOM_PART 0.5

/* A copy costs that much for each element that is not loaded lane by lane, and pays from so many
 * tiles on. */
#define COPY_COST 2.0

typedef struct tiler {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_analysis *a;
    const qn_plan *p;
} tiler;

/** `unroll` vectors x `jam` iterations of dimension j x `cross` of dimension c; -1 and 1: none. */
typedef struct shape {
    int unroll, j, jam, c, cross;
} shape;

/* ---------------------------------------------------------------- where */

/** Whether the kernel is straight but for branches and for reduces over other dimensions than the
 * lanes, at the top, with one accumulator for each part, and has one. */
static bool is_applicable(const tiler *s)
{
    const qn_kernel *k = s->k;
    bool has_reduce = false;
    if (s->p->lane_dim < 0 || !qn__is_parallel(k, s->p->lane_dim))
        return false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_ATOMIC ||
            x->op == QN_I_ASSERT)
            return false;
        if (x->op == QN_I_IF && qn__enclosing_reduce(k, i))
            return false;
        if (x->op != QN_I_REDUCE)
            continue;
        if (x->parent || qn__order_rule(k, i) == QN_STRIPED)
            return false;
        has_reduce = true;
    }
    return has_reduce;
}

bool qn__plan_has_halves(const qn_facts *f, int lane_dim, int jam_dim)
{
    return jam_dim >= 0 && qn__trips(f, jam_dim) < 0 && lane_dim >= 0 &&
           qn__trips(f, lane_dim) >= 0;
}

bool qn__is_batch(const qn_analysis *a, int d)
{
    const qn_kernel *k = a->k;
    bool has_load = false;
    FOR_ACCESSES (k, n, i) {
        if (k->inst[i].op != QN_I_LOAD || !qn__enclosing_reduce(k, i))
            continue;
        has_load = true;
        if (!(a->value[i].deps >> d & 1))
            return false;
    }
    return has_load;
}

bool qn__may_cross(const qn_analysis *a, const qn_plan *p, int c, int cross)
{
    int j = p->jam_dim;
    if (c < 0 || j < 0 || p->lane_dim < 0 || c == j || c == p->lane_dim || p->jam <= 1 ||
        cross <= 1 || qn__is_given(a->f, c) || qn__is_given(a->f, j) || !qn__is_parallel(a->k, c) ||
        !qn__is_parallel(a->k, p->lane_dim) || p->unroll * p->jam * cross > MOST_PLANNED ||
        !qn__is_batch(a, p->lane_dim))
        return false;
    int64_t across = qn__trips(a->f, j), further = qn__trips(a->f, c);
    bool are_whole = across > 0 && further > 0 && across % p->jam == 0 && further % cross == 0;
    return are_whole || (across >= p->jam && further >= cross && qn__may_repeat(a));
}

/* ---------------------------------------------------------------- what a step costs */

static bool depends(const tiler *s, uint32_t i, int d)
{
    return d >= 0 && (s->a->value[i].deps >> d & 1);
}

/** Parts of a value in a tile. */
static int parts(const tiler *s, uint32_t i, const shape *t)
{
    return (depends(s, i, s->p->lane_dim) ? t->unroll : 1) * (depends(s, i, t->j) ? t->jam : 1) *
           (depends(s, i, t->c) ? t->cross : 1);
}

/** Registers that one reduce holds besides the accumulators: what is loaded for all iterations of
 * the outermost dimension of the tile. With a third dimension, one vector more, which is loaded for
 * each of its iterations. */
static int held_registers(const tiler *s, uint32_t reduce, const shape *t)
{
    int n = 0, outer = t->c >= 0 ? t->c : t->j;
    const qn_inst *x = &s->k->inst[reduce];
    for (uint32_t i = x->region[0]; i < x->region[2]; i++)
        if (s->k->inst[i].op == QN_I_LOAD && depends(s, i, s->p->lane_dim) && !depends(s, i, outer))
            n += parts(s, i, t);
    return n + (t->c >= 0 ? t->unroll : 0);
}

static bool fits_registers(const tiler *s, const shape *t)
{
    int n = 0, held = 0, most = s->f->target->vectors;
    int spare = t->c >= 0 ? SPARE_CROSSED : SPARE_REGISTERS;
    FOR_REDUCES (s->k, i) {
        n += parts(s, i, t);
        int now = held_registers(s, i, t);
        held = now > held ? now : held;
    }
    return n + held + spare <= most;
}

/** Of one part; a splat takes a load instruction or half of one. What would be loaded lane by lane
 * is copied if it can be: once for all tiles of the jammed dimension. */
static double load_cost(const tiler *s, uint32_t i, const shape *t)
{
    double cost = qn__access_cost(s->a, i, s->p->lane_dim);
    if (t->j >= 0 && cost >= COST_GATHER && qn__may_pack(s->a, s->p->lane_dim, t->j, t->c, i))
        cost = 1 + COPY_COST * t->jam / (double)qn__trips(s->f, t->j);
    return cost > LEAST_LOAD ? cost : LEAST_LOAD;
}

/** The part of its cost that a load has in a tile whose points are emitted one beside the other. */
static double share(const tiler *s, uint32_t i, const shape *t)
{
    qn_plan p = *s->p;
    p.unroll = t->unroll;
    p.jam_dim = t->jam > 1 ? t->j : -1;
    p.jam = t->jam;
    p.cross = t->cross;
    p.straight = qn__plan_straight(s->k, s->f);
    uint32_t reduce = qn__enclosing_reduce(s->k, i);
    return qn__plan_unrolls_points(s->a, &p, reduce)
               ? qn__window_share(s->a, i, p.lane_dim, p.jam_dim, p.jam)
               : 1;
}

/** Points of the longest reduce, many if that is not known. */
static double points(const tiler *s)
{
    double most = 1, window = s->f->machine.window;
    FOR_REDUCES (s->k, i) {
        int64_t n = qn__points(s->k, s->f, i);
        most = n < 0 && most < window ? window : (double)n > most ? (double)n : most;
    }
    return most;
}

/** One point of every reduce for a whole tile. */
static double step_cost(const tiler *s, const shape *t)
{
    double loads = 0, ops = 0;
    for (uint32_t i = s->k->body; i < s->k->n_insts; i++) {
        const qn_inst *x = &s->k->inst[i];
        if (x->op == QN_I_REDUCE)
            ops +=
                qn__contracted_product(s->k, i) ? 0 : parts(s, i, t); /* else the product counts */
        if (!qn__enclosing_reduce(s->k, i))
            continue;
        bool is_data = qn__is_pure(x) && x->type != QN_I64 && x->op != QN_I_CONST;
        if (x->op == QN_I_LOAD)
            loads += parts(s, i, t) * load_cost(s, i, t) * share(s, i, t);
        else if (is_data)
            ops += parts(s, i, t);
    }
    double longer = ops > loads ? ops : loads;
    return longer + OVERLAP_LOSS * (ops + loads) + LOOP_COST;
}

/** Where all that is loaded depends on the lanes, more vectors of them share nothing and take room
 * in the nearest cache. */
static double room_cost(const tiler *s, const shape *t)
{
    if (!qn__is_batch(s->a, s->p->lane_dim))
        return 1;
    bool fits = t->jam * t->unroll * points(s) * (double)LINE_BYTES <=
                ROOM_PART * (double)s->f->machine.cache[QN_CACHE_FIRST].bytes;
    return t->jam > 1 && !fits ? 1 + ROOM_COST * (t->unroll - 1) : 1;
}

/** Steps of one dimension for each of its iterations: the last may be for fewer, or overlap. */
static double steps(const tiler *s, int d, int together)
{
    int64_t n = d >= 0 ? qn__trips(s->f, d) : 1;
    return n > 0 ? (double)((n + together - 1) / together) / (double)n : 1 / (double)together;
}

/** All lanes (one vector where their number is not known), with what is left over in smaller steps,
 * of `jam` iterations. */
static double lanes_cost(const tiler *s, const shape *t, int jam)
{
    int64_t width = s->p->width, step = width * t->unroll,
            lanes = qn__usual_trips(s->f, s->p->lane_dim, -1);
    shape now = *t;
    now.jam = jam;
    double whole = step_cost(s, &now), cost = whole / (double)t->unroll;
    if (lanes >= 0) {
        int64_t rest = (lanes % step + width - 1) / width;
        shape less = now;
        less.unroll = (int)rest;
        cost = (double)(lanes / step) * whole + (rest ? step_cost(s, &less) : 0);
        cost *= rest && lanes >= step ? TWO_BODIES : 1;
    }
    return cost;
}

/** The mean of one iteration of a jammed dimension that has 1 to MOST_FEW of them, where rests run
 * in halves of steps. */
static double few_cost(const tiler *s, const shape *t)
{
    double part[MOST_JAM + 1], cost = 0, whole = lanes_cost(s, t, t->jam);
    for (int n = 1; n < t->jam; n *= 2)
        part[n] = lanes_cost(s, t, n);
    for (int n = 1; n <= MOST_FEW; n++) {
        cost += n / t->jam * whole;
        for (int bit = 1; bit < t->jam; bit *= 2)
            cost += n % t->jam & bit ? part[bit] : 0;
    }
    return cost / (MOST_FEW * (MOST_FEW + 1) / 2);
}

/** One iteration of the tile's other dimensions. */
static double iteration_cost(const tiler *s, const shape *t)
{
    if (t->j >= 0 && t->jam > 1 && t->c < 0 && qn__plan_has_halves(s->f, s->p->lane_dim, t->j))
        return few_cost(s, t);
    return lanes_cost(s, t, t->jam) * steps(s, t->j, t->jam) * steps(s, t->c, t->cross);
}

/* ---------------------------------------------------------------- the choice */

/** Gathers take so long lane by lane that unrolling only adds code, unless they are made once, for
 * a copy. */
static int most_unroll(const tiler *s, int j)
{
    const shape t = {.j = j, .c = -1, .jam = 1};
    FOR_ACCESSES (s->k, n, i)
        if (qn__enclosing_reduce(s->k, i) && load_cost(s, i, &t) >= COST_GATHER)
            return 1;
    return MOST_UNROLL;
}

/** Takes the tile if it fits and is better than what *p has. */
static void try_shape(const tiler *s, const shape *t, qn_plan *p, double *least)
{
    int64_t lanes = qn__usual_trips(s->f, p->lane_dim, -1);
    bool is_longer = lanes >= 0 && t->unroll > 1 && (int64_t)(t->unroll - 1) * p->width >= lanes;
    if (is_longer || !fits_registers(s, t))
        return;
    double cost = iteration_cost(s, t) * (t->j < 0 || t->c >= 0 ? WORTH : 1) * room_cost(s, t);
    if (*least >= 0 && cost >= *least)
        return;
    *least = cost;
    p->unroll = t->unroll;
    p->jam_dim = t->j;
    p->jam = t->jam;
    p->cross_dim = t->c;
    p->cross = t->cross;
}

static int most_together(const tiler *s, int d)
{
    int64_t n = d >= 0 ? qn__trips(s->f, d) : 1;
    return n >= 0 && n < MOST_JAM ? (int)n : MOST_JAM;
}

/** Takes the best tile with dimension j if it is better than what *p has; j -1: none. */
static void try_dimension(const tiler *s, int j, qn_plan *p, double *least)
{
    int most_jam = most_together(s, j), most = most_unroll(s, j);
    for (int jam = j < 0 ? 1 : 2; jam <= most_jam; jam++)
        for (int unroll = 1; unroll <= most && unroll * jam <= MOST_PLANNED; unroll++)
            try_shape(s, &(shape){unroll, j, jam, -1, 1}, p, least);
}

/** Tries tiles of two dimensions beside the lanes: one vector of lanes, which share nothing. */
static void try_dimensions(const tiler *s, int j, int c, qn_plan *p, double *least)
{
    for (int jam = 2; jam <= most_together(s, j); jam++)
        for (int cross = 2; cross <= most_together(s, c); cross++) {
            qn_plan wanted = *s->p;
            wanted.unroll = 1;
            wanted.jam_dim = j;
            wanted.jam = jam;
            if (qn__may_cross(s->a, &wanted, c, cross))
                try_shape(s, &(shape){1, j, jam, c, cross}, p, least);
        }
}

/** Whether dimension d may be jammed. */
static bool may_jam(const tiler *s, int d)
{
    return d != s->p->lane_dim && qn__is_parallel(s->k, d) && qn__trips(s->f, d) != 1 &&
           qn__trips(s->f, d) != 0;
}

bool qn__plan_tile(const qn_analysis *a, qn_plan *p)
{
    const qn_kernel *k = a->k;
    const qn_plan fixed = *p;
    tiler s = {k, a->f, a, &fixed};
    double least = -1;
    if (!is_applicable(&s))
        return false;
    try_dimension(&s, -1, p, &least);
    for (int d = 0; d < k->n_dims; d++)
        if (may_jam(&s, d))
            try_dimension(&s, d, p, &least);
    for (int j = 0; j < k->n_dims && qn__is_batch(a, p->lane_dim); j++)
        for (int c = 0; c < k->n_dims; c++)
            if (c != j && may_jam(&s, j) && may_jam(&s, c))
                try_dimensions(&s, j, c, p, &least);
    return true;
}
