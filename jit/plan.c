/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c: how the domain is walked. Data in, data out; knows no LLVM. docs/plan.md explains the choices and where the
 * constants come from.
 *
 * "May it be the lane dimension?" (applicable) is kept apart from "is it worth it?" (lane_cost).
 */
#include "jit/plan.h"

#include <limits.h>
#include <string.h>

enum { WIDEST_V3 = 256, WIDEST_V4 = 512, MOST_PARTS = 32 };

/* Relative cost of one element through one access, by its stride along the lane dimension. A gather of 16 lanes takes
 * about 6 times a vector load from L1, a scatter more; a splat is a scalar load for all lanes. */
#define COST_UNIT 1.0
#define COST_SPLAT 0.25
#define COST_REVERSED 1.3
#define COST_SPREAD 1.5 /* for each of the |stride| vectors that hold the lanes, stride 2 to 4 */
#define SMALL_STRIDE 4
#define COST_SCATTER 8.0
#define COST_TRANSPOSED 2.0 /* in blocks, with another dimension */
/* A vector step over fewer iterations than this wastes most of its lanes. */
#define SHORT_LANES 8

typedef struct planner {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis a;
    bool has_analysis;
    qn_plan *p;
    bool has_one_step; /* of all lanes */
    bool has_rows; /* the jammed dimension is that of the rows that scalar code sums */
    bool has_tile; /* a register tile was chosen: the jammed dimension is innermost */
} planner;

static qn_dim_kind kind_of(const qn_kernel *k, int d)
{
    return (qn_dim_kind)k->inst[k->dim[d]].sub;
}

/** Iterations of a dimension, or -1 if not known. */
static int64_t trips(const qn_facts *f, int d)
{
    if (f->begin[d].kind != QN_FACT_EXACT || f->end[d].kind != QN_FACT_EXACT)
        return -1;
    return f->end[d].value - f->begin[d].value;
}

static bool is_in_branch_or_loop(const qn_kernel *k, uint32_t i)
{
    for (i = k->inst[i].parent; i; i = k->inst[i].parent)
        if (k->inst[i].op != QN_I_REDUCE)
            return true;
    return false;
}

/* ---------------------------------------------------------------- where lanes may run */

/** Masked accesses of 1- and 2-byte elements take a branch per lane without AVX-512BW: such kernels stay scalar there. */
static bool needs_narrow_masks(const planner *s)
{
    const qn_kernel *k = s->k;
    for (uint32_t n = 0; n < k->n_accesses; n++) {
        uint32_t i = k->access[n].inst;
        if (qn_dtype_bytes(qn__access_dtype(k, i)) <= 2 &&
            (!s->f->proved[n] || is_in_branch_or_loop(k, i)))
            return true;
    }
    return false;
}

/** Dimensions of reduce i with more than one index. */
static int long_dims(const planner *s, uint32_t i)
{
    int count = 0;
    for (int n = 0; n < s->k->inst[i].n_args; n++)
        count += trips(s->f, (int)s->k->inst[qn__args(s->k, i)[n]].imm) != 1;
    return count;
}

/** A reduction dimension may be the lanes if every reduce over it has an order that 64 partials or any order satisfy,
 *  names it last, and stands outside loops and branches (so that faults keep their order). */
static bool reduction_is_applicable(const planner *s, int d)
{
    const qn_kernel *k = s->k;
    bool is_used = false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (x->op != QN_I_REDUCE)
            continue;
        const uint32_t *dims = qn__args(k, i);
        int at = -1;
        for (int n = 0; n < x->n_args; n++)
            if ((int)k->inst[dims[n]].imm == d)
                at = n;
        if (at < 0)
            continue;
        is_used = true;
        bool is_float = qn__dtype_class(x->type) == QN_CLASS_F;
        if (at != x->n_args - 1 || x->parent || x->type == QN_BOOL)
            return false;
        if (is_float && (x->imm != QN_STRIPED || long_dims(s, i) != 1))
            return false;
    }
    if (s->f->isa < QN_ISA_V4) /* the last step is masked */
        for (uint32_t n = 0; n < k->n_accesses; n++)
            if (qn__enclosing_reduce(k, k->access[n].inst) &&
                qn_dtype_bytes(qn__access_dtype(k, k->access[n].inst)) <= 2)
                return false;
    for (uint32_t i = k->body; i < k->n_insts; i++) /* no nested reduces, loops or branches inside: keep it simple */
        if (k->inst[i].region[2] != i + 1 && qn__enclosing_reduce(k, i))
            return false;
    return is_used;
}

/** How deep floating-point reduces in the striped order are nested. Their partials are in memory, unless they are lanes. */
static int stripe_depth(const qn_kernel *k)
{
    int most = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        int depth = 0;
        for (uint32_t r = i; r; r = k->inst[r].parent)
            depth += k->inst[r].op == QN_I_REDUCE && k->inst[r].imm == QN_STRIPED &&
                     qn__dtype_class(k->inst[r].type) == QN_CLASS_F;
        most = depth > most ? depth : most;
    }
    return most;
}

/** Partials of whole vectors take 4 x 4 KiB of the caller's stack. Nests of them stay scalar. */
enum { MOST_STRIPE_DEPTH = 1 };

static bool is_applicable(const planner *s, int d)
{
    if (stripe_depth(s->k) > MOST_STRIPE_DEPTH)
        return false;
    if (s->f->is_ordered || (s->f->isa < QN_ISA_V4 && needs_narrow_masks(s)))
        return false;
    if (kind_of(s->k, d) == QN_DIM_SEQUENTIAL || trips(s->f, d) == 1)
        return false;
    return kind_of(s->k, d) == QN_DIM_PARALLEL || reduction_is_applicable(s, d);
}

/* ---------------------------------------------------------------- what lanes cost */

double qn__access_cost(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, uint32_t i, int d)
{
    bool is_load = k->inst[i].op == QN_I_LOAD;
    int64_t stride;
    if (k->inst[i].op == QN_I_ATOMIC)
        return COST_SCATTER;
    if (!qn__access_stride(k, f, a, i, d, &stride) && is_load && qn__table_registers(k, f, i))
        return COST_UNIT * qn__table_registers(k, f, i) < COST_GATHER ? COST_UNIT * qn__table_registers(k, f, i) : COST_GATHER;
    if (!qn__access_stride(k, f, a, i, d, &stride))
        return is_load ? COST_GATHER : COST_SCATTER;
    if (stride == 1)
        return is_load ? COST_UNIT : 2 * COST_UNIT;
    if (stride == 0)
        return is_load ? COST_SPLAT : COST_SCATTER;
    if (stride == -1)
        return is_load ? COST_REVERSED : 2 * COST_REVERSED;
    if (stride >= -SMALL_STRIDE && stride <= SMALL_STRIDE)
        return (is_load ? 1 : 2) * COST_SPREAD * (double)(stride < 0 ? -stride : stride);
    if (f->plan.transpose >= 0 && qn__transposed_across(k, f, a, d, i) >= 0)
        return is_load ? COST_TRANSPOSED : 2 * COST_TRANSPOSED;
    return is_load ? COST_GATHER : COST_SCATTER;
}

static double access_cost(const planner *s, uint32_t i, int d)
{
    return qn__access_cost(s->k, s->f, &s->a, i, d);
}

/** Accesses inside reduces run more often; outside a reduce over d they are scalar when d is the lane dimension. */
static double lane_cost(const planner *s, int d)
{
    double sum = 1;
    bool over_reduction = kind_of(s->k, d) == QN_DIM_REDUCTION;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        uint32_t i = s->k->access[n].inst;
        bool inside = qn__enclosing_reduce(s->k, i) != 0;
        double times = inside ? 16 : 1;
        sum += times * (over_reduction && !inside ? COST_UNIT : access_cost(s, i, d));
    }
    int64_t t = trips(s->f, d);
    if (t >= 0 && t < SHORT_LANES)
        sum *= (double)SHORT_LANES / (double)(t + 1);
    return sum;
}

static int best_lane_dim(const planner *s)
{
    int best = -1;
    double least = 0;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (!is_applicable(s, d))
            continue;
        double cost = lane_cost(s, d);
        if (best < 0 || cost <= least) {
            best = d;
            least = cost;
        }
    }
    return best;
}

/* ---------------------------------------------------------------- order of the other dimensions */

/** Elements an access moves along d, about: of dynamic strides only the order is known. */
static double distance(const planner *s, uint32_t i, int d)
{
    int64_t stride;
    double far = 0;
    if (qn__access_stride(s->k, s->f, &s->a, i, d, &stride))
        return stride < 0 ? -(double)stride : (double)stride;
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        int32_t reach = s->f->param[s->k->inst[i].imm].dim[r].reach;
        if ((s->a.value[qn__args(s->k, i)[r]].deps >> d & 1) && reach)
            far += (double)(UINT64_C(1) << (3 * reach));
    }
    return far;
}

/** How far accesses move along d: the larger, the further out. */
static double reach(const planner *s, int d)
{
    double sum = 0;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        uint32_t i = s->k->access[n].inst;
        sum += (s->k->inst[i].op == QN_I_LOAD ? 1 : 2) * distance(s, i, d);
    }
    return sum;
}

/** Whether everything that is loaded in reduces depends on d: iterations of other dimensions share it, those of d nothing. */
static bool is_batch(const planner *s, int d)
{
    bool has_load = false;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        uint32_t i = s->k->access[n].inst;
        if (s->k->inst[i].op != QN_I_LOAD || !qn__enclosing_reduce(s->k, i))
            continue;
        has_load = true;
        if (!(s->a.value[i].deps >> d & 1))
            return false;
    }
    return has_load;
}

/** Parallel dimensions from place `first` on, those that move furthest outermost: batches or what is not one (with a
 *  register tile), without the lanes and what is jammed in a tile. The next place. */
static int order_by_reach(const planner *s, int first, bool batches)
{
    qn_plan *p = s->p;
    double far[QN_MAX_RANK] = {0};
    int n = first;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (kind_of(s->k, d) != QN_DIM_PARALLEL || d == p->lane_dim || (s->has_tile && d == p->jam_dim) ||
            (s->has_tile && is_batch(s, d)) != batches)
            continue;
        far[d] = s->f->is_ordered || !s->has_analysis ? 0 : reach(s, d);
        int at = n++;
        while (at > first && far[p->order[at - 1]] < far[d]) {
            p->order[at] = p->order[at - 1];
            at--;
        }
        p->order[at] = d;
    }
    return n;
}

/** Batches outermost, so that what one of them shares is used up before the next; if the lanes are one, then what is jammed,
 *  because what a tile loads for its jammed iterations is most, and stays for all others. Of the others the lanes are
 *  last, and in a register tile what is jammed: then what the lanes load serves one tile after another from the nearest cache. */
static void choose_order(const planner *s)
{
    qn_plan *p = s->p;
    bool has_lanes = p->lane_dim >= 0 && kind_of(s->k, p->lane_dim) == QN_DIM_PARALLEL;
    bool has_jam = s->has_tile && p->jam_dim >= 0, are_lanes_batch = s->has_tile && has_lanes && is_batch(s, p->lane_dim);
    int n = 0;
    for (int d = 0; d < s->k->n_dims; d++)
        if (kind_of(s->k, d) == QN_DIM_SEQUENTIAL)
            p->order[n++] = d;
    n = order_by_reach(s, n, true);
    for (int is_last = 0; is_last < 2; is_last++) {
        if (has_lanes && are_lanes_batch != is_last)
            p->order[n++] = p->lane_dim;
        if (has_jam && (are_lanes_batch || is_batch(s, p->jam_dim)) != is_last)
            p->order[n++] = p->jam_dim;
        if (!is_last)
            n = order_by_reach(s, n, false);
    }
    p->n_loops = n;
}

/* ---------------------------------------------------------------- width and unrolling */

/** Bits of the widest type that is computed with in vectors. Indices count only where they are data. */
static int widest_bits(const planner *s)
{
    const qn_kernel *k = s->k;
    int bits = 8;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        int type = x->op == QN_I_STORE ? qn__access_dtype(k, i) : x->type;
        bool is_index = type == QN_I64 && x->op != QN_I_STORE && x->op != QN_I_LOAD;
        bool is_narrow = s->has_analysis && x->op != QN_I_STORE && s->a.value[i].held;
        int width = is_index || type == QN_VOID ? 8 : is_narrow ? s->a.value[i].held : qn__dtype_width(type);
        bits = width > bits ? width : bits;
    }
    return bits;
}

static int64_t round_down_to_power(int64_t n)
{
    int64_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/** Vectors in one step by the operations of the body and the longest chain among them: where each waits for the one
 *  before it, more steps must be under way than the processor looks ahead. */
static int natural_unroll(const qn_kernel *k, bool *is_small)
{
    enum { FEW = 12, SOME = 48, MANY = 192, LONG_CHAIN = 8 };
    *is_small = false;
    uint8_t *chain = qn__zalloc(k->n_insts, 1);
    int n = 0, longest = 0;
    for (uint32_t i = k->body; chain && i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        bool has_stripes = x->op == QN_I_REDUCE && x->imm == QN_STRIPED; /* partials of each part are in memory */
        if (has_stripes || x->op == QN_I_WHILE || x->op == QN_I_FOR || x->op == QN_I_IF) {
            qn__free(chain);
            return 1;
        }
        if (x->op == QN_I_CONST || x->type == QN_I64)
            continue;
        n++;
        for (int m = 0; qn__is_pure(x) && m < x->n_args; m++) {
            int length = chain[qn__args(k, i)[m]];
            if (length >= chain[i] && length < UINT8_MAX)
                chain[i] = (uint8_t)(length + 1);
        }
        longest = chain[i] > longest ? chain[i] : longest;
    }
    qn__free(chain);
    int more = longest >= LONG_CHAIN ? 2 : 1;
    *is_small = n <= FEW;
    return n <= FEW ? 4 : n <= SOME ? 2 * more : n <= MANY ? more : 1;
}

/** Gathers, scatters and atomics take so long lane by lane that unrolling only adds code. */
static bool has_gather(const planner *s)
{
    for (uint32_t n = 0; n < s->k->n_accesses; n++)
        if (access_cost(s, s->k->access[n].inst, s->p->lane_dim) >= COST_GATHER)
            return true;
    return false;
}

/** Lanes of a whole register. */
static int lanes_of(const planner *s)
{
    int lanes = (s->f->isa >= QN_ISA_V4 ? WIDEST_V4 : WIDEST_V3) / widest_bits(s);
    return lanes > 64 ? 64 : lanes;
}

/** A small body takes a short row in one step: what depends on the lanes alone is then constant, and no loop turns. */
static bool is_one_step(const planner *s, int64_t row)
{
    enum { MOST_VECTORS = 16 };
    const qn_plan *p = s->p;
    bool has_masks = s->f->isa >= QN_ISA_V4 || row % p->width == 0;
    return has_masks && row > 0 && row <= (int64_t)MOST_VECTORS * p->width;
}

static void choose_width(planner *s)
{
    bool is_small = false;
    qn_plan *p = s->p;
    int64_t t = trips(s->f, p->lane_dim);
    p->width = lanes_of(s);
    if (kind_of(s->k, p->lane_dim) == QN_DIM_REDUCTION) {
        p->unroll = 64 / p->width > 8 ? 8 : 64 / p->width;
        p->width = 64 / p->unroll; /* 64 partials exactly */
        return;
    }
    while (t >= 0 && p->width > 2 && p->width / 2 >= t)
        p->width /= 2;
    p->unroll = has_gather(s) ? 1 : natural_unroll(s->k, &is_small);
    if (is_small && is_one_step(s, t)) {
        s->has_one_step = true;
        p->unroll = (int32_t)((t + p->width - 1) / p->width);
        return;
    }
    while (t >= 0 && p->unroll > 1 && (int64_t)p->unroll * p->width > t)
        p->unroll /= 2;
}

/** One smaller step needs masks that are cheap and a body that may be emitted twice whole. */
static bool has_rest_tile(const planner *s)
{
    const qn_plan *p = s->p;
    if (!(s->has_tile || s->has_one_step || p->jam > 1) || p->streams || p->lane_dim < 0 || kind_of(s->k, p->lane_dim) != QN_DIM_PARALLEL ||
        trips(s->f, p->lane_dim) < 0)
        return false;
    for (uint32_t n = 0; n < s->k->n_accesses && s->f->isa < QN_ISA_V4; n++)
        if (qn_dtype_bytes(qn__access_dtype(s->k, s->k->access[n].inst)) <= 2)
            return false;
    return true;
}

static void choose_jam_rest(const planner *s)
{
    qn_plan *p = s->p;
    bool may_overlap = p->jam > 1 && !p->transpose && trips(s->f, p->jam_dim) >= p->jam && qn__may_repeat(s->k);
    p->jam_rest = p->jam <= 1 ? QN_REMAINDER_NONE : may_overlap ? QN_REMAINDER_OVERLAP : QN_REMAINDER_SCALAR;
}

static void choose_remainder(const planner *s)
{
    qn_plan *p = s->p;
    int64_t t = trips(s->f, p->lane_dim), step = (int64_t)p->width * p->unroll;
    if (t >= 0 && t % step == 0 && !p->streams) /* which start at a cache line */
        p->remainder = QN_REMAINDER_NONE;
    else if (has_rest_tile(s))
        p->remainder = QN_REMAINDER_TILE;
    else
        p->remainder = s->f->isa >= QN_ISA_V4 ? QN_REMAINDER_MASK : QN_REMAINDER_SCALAR;
}

/* ---------------------------------------------------------------- the plan */

/** Several rows at once in scalar code, where lanes over them would gather. */
static void choose_rows(planner *s)
{
    enum { TOGETHER = 8 };
    qn_plan *p = s->p;
    int64_t t = trips(s->f, p->lane_dim);
    if (p->jam_dim >= 0 || (t >= 0 && t < 2) || !qn__plan_is_rows(s->k, s->f, &s->a, p->lane_dim, p->width))
        return;
    s->has_rows = true;
    p->jam_dim = p->lane_dim;
    p->jam = t >= 0 && t < TOGETHER ? (int32_t)t : TOGETHER;
    p->lane_dim = -1;
    p->width = p->unroll = 1;
}

static void apply_overrides(const planner *s)
{
    const qn_plan_options *o = &s->f->plan;
    qn_plan *p = s->p;
    bool is_reduction = p->lane_dim >= 0 && kind_of(s->k, p->lane_dim) == QN_DIM_REDUCTION;
    if (p->lane_dim >= 0 && !is_reduction && o->width > 0)
        p->width = (int32_t)round_down_to_power(o->width > 64 ? 64 : o->width);
    if (p->lane_dim >= 0 && !is_reduction && o->unroll > 0)
        p->unroll = o->unroll > 8 ? 8 : o->unroll;
    if (p->width < 2)
        p->lane_dim = is_reduction ? p->lane_dim : -1;
    int j = o->jam_dim - 1;
    if (o->jam == 1 || (p->lane_dim < 0 && !s->has_rows)) {
        p->jam = 1;
        p->jam_dim = -1;
    }
    if (p->lane_dim >= 0 && o->jam > 1 && j >= 0 && j < s->k->n_dims && j != p->lane_dim &&
        kind_of(s->k, j) == QN_DIM_PARALLEL) {
        p->jam_dim = j;
        p->jam = o->jam > 16 ? 16 : o->jam;
    }
    while (p->jam * p->unroll > MOST_PARTS)
        p->jam /= 2;
    if (p->lane_dim >= 0 && !is_reduction && stripe_depth(s->k) > 0) { /* one set of partials */
        p->unroll = 1;
        p->jam = 1;
        p->jam_dim = -1;
    }
    if (p->lane_dim < 0) {
        p->width = 1;
        p->unroll = 1;
    }
}

/** The caller's order of the loops, if it names each once; sequential dimensions stay outermost. The lanes are innermost if
 *  they are not named. */
static void apply_order(const planner *s)
{
    qn_plan *p = s->p;
    int32_t order[QN_MAX_RANK];
    uint32_t seen = 0;
    int n = 0;
    if (s->f->is_ordered)
        return;
    for (int m = 0; m < QN_MAX_RANK; m++) {
        int d = s->f->plan.order[m] - 1;
        if (d < 0 || d >= s->k->n_dims || (seen >> d & 1) || kind_of(s->k, d) != QN_DIM_PARALLEL)
            continue;
        seen |= 1u << d;
        order[n++] = d;
    }
    bool has_lanes = p->lane_dim >= 0 && kind_of(s->k, p->lane_dim) == QN_DIM_PARALLEL;
    if (has_lanes && !(seen >> p->lane_dim & 1))
        order[n++] = p->lane_dim;
    int at = 0;
    while (at < p->n_loops && kind_of(s->k, p->order[at]) == QN_DIM_SEQUENTIAL)
        at++;
    if (n == p->n_loops - at)
        memcpy(p->order + at, order, (size_t)n * sizeof *order);
}

void qn__plan_make(const qn_kernel *k, const qn_facts *f, qn_plan *out)
{
    memset(out, 0, sizeof *out);
    planner s = {.k = k, .f = f, .p = out};
    memcpy(out->merged, f->merged, sizeof out->merged);
    out->lane_dim = -1;
    out->jam_dim = -1;
    out->jam = 1;
    out->width = 1;
    out->unroll = 1;
    if (qn__target_of(f->isa) == QN_TARGET_NVPTX) {
        out->split_dim = -1;
        out->granule = 1;
        qn__plan_gpu(k, f, out);
        return;
    }
    s.has_analysis = qn__analyse(k, f, -1, -1, &s.a);
    int wanted = f->plan.lane_dim - 1;
    if (s.has_analysis && f->plan.lane_dim >= 0) {
        bool is_wanted = wanted >= 0 && wanted < k->n_dims && is_applicable(&s, wanted);
        out->lane_dim = is_wanted ? wanted : best_lane_dim(&s);
        if (!is_wanted && out->lane_dim >= 0 && qn__plan_is_scalar(k, f, &s.a, out->lane_dim, lanes_of(&s)))
            out->lane_dim = -1;
    }
    if (out->lane_dim >= 0) {
        choose_width(&s);
        s.has_tile = qn__plan_tile(k, f, &s.a, out);
        if (s.has_tile && f->plan.lane_dim == 0 && f->plan.jam == 0)
            choose_rows(&s);
    }
    apply_overrides(&s);
    choose_order(&s);
    apply_order(&s);
    if (s.has_analysis)
        qn__plan_transpose(k, f, &s.a, out);
    if (s.has_analysis)
        qn__plan_streams(k, f, &s.a, out);
    qn__plan_tiles(k, f, out);
    choose_jam_rest(&s);
    if (out->lane_dim >= 0)
        choose_remainder(&s);
    if (s.has_tile && !s.has_rows) {
        qn__plan_pack(k, f, &s.a, out);
        qn__plan_prefetch(k, f, &s.a, out);
    }
    qn__plan_split(k, f, out, s.has_tile && out->jam > 1);
    qn__plan_points(k, f, out);
    qn__analysis_release(&s.a);
}

static void print_threads(const qn_plan *p, qn_text *out)
{
    static const char *const teams[] = {"threads", "warps", "all blocks", "blocks"};
    bool is_warp = p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID;
    qn__text_add(out, "\nteam %s\nthreads%s", teams[p->team], is_warp ? " 32 of a team" : "");
    for (int a = 0; a < 3; a++)
        if (p->axis[a] >= 0)
            qn__text_add(out, " %d of dimension %d", p->threads[p->axis[a]], p->axis[a]);
    if (p->lane_dim >= 0)
        qn__text_add(out, "\nat once %d of dimension %d, from %d before its begin", p->width, p->lane_dim, p->lead);
    if (p->jam_dim >= 0)
        qn__text_add(out, "\njam %d of dimension %d, from %d before its begin%s", p->jam, p->jam_dim, p->jam_lead,
                     p->is_crossed ? ", crossed" : "");
    for (int s = 0; s < 64; s++)
        if ((p->staged >> s & 1) && p->team == QN_TEAM_BLOCK)
            qn__text_add(out, "\nearly access %d", s);
        else if (p->staged >> s & 1)
            qn__text_add(out, "\nstaged access %d, %s %d", s, p->is_product ? "product with dimension" : "along dimension",
                         p->stage_dim);
    qn__text_add(out, "\ntile");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %lld", (long long)p->tile[p->order[n]]);
    if (p->team == QN_TEAM_BLOCK)
        qn__text_add(out, "\nchunk %d points, along %s%s", p->chunk, p->is_along_points ? "points" : "iterations",
                     p->is_split ? ", blocks of points apart" : "");
    qn__text_add(out, "\n");
}

void qn__plan_print(const qn_plan *p, const qn_kernel *k, qn_text *out)
{
    static const char *const remainders[] = {"none", "mask", "scalar", "tile", "overlap"};
    qn__text_add(out, "order");
    for (int n = 0; n < p->n_loops; n++)
        qn__text_add(out, " %d", p->order[n]);
    if (p->is_gpu) {
        print_threads(p, out);
        return;
    }
    for (int d = 0; d < k->n_dims; d++)
        for (int m = 0; m < k->n_dims; m++)
            if (p->merged[d] >> m & 1)
                qn__text_add(out, "\nmerged %d into %d", m, d);
    qn__text_add(out, "\nlanes %d%s\nwidth %d\nunroll %d\njam %d x %d, rest %s\ntranspose %d\nremainder %s\n", p->lane_dim,
                 p->lane_dim >= 0 && kind_of(k, p->lane_dim) == QN_DIM_REDUCTION ? " (reduction)" : "",
                 p->width, p->unroll, p->jam_dim, p->jam, remainders[p->jam_rest], p->transpose,
                 remainders[p->remainder]);
    if (p->pack)
        qn__text_add(out, "pack %s, %lld bytes\n", k->param[k->inst[p->pack].imm].name, (long long)p->scratch_bytes);
    if (p->prefetch)
        qn__text_add(out, "prefetch %d points ahead\n", p->prefetch);
    for (int d = 0; d < k->n_dims; d++)
        if (p->tile[d])
            qn__text_add(out, "tile %lld of %d\n", (long long)p->tile[d], d);
    qn__text_add(out, "split %d%s granule %lld\nstreams %d\n", p->split_dim, p->n_shared_reduces ? " (points)" : "", (long long)p->granule, p->streams);
}
