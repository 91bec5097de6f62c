/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c: how the domain is walked, by rules (docs/schedule.md). Puts a plan for a processor
 * together from what the other files choose, and chooses width, unrolling and remainders itself.
 * Data in, data out; knows no LLVM.
 */
#include "jit/schedule/budget.h"
#include "jit/schedule/cost.h"
#include "jit/schedule/gpu.h"
#include "jit/schedule/plan.h"

#include <limits.h>
#include <string.h>

typedef struct planner {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_analysis *a; /* NULL: there was no memory for it */
    qn_plan *p;
    bool has_one_step; /* of all lanes */
    bool has_rows;     /* the jammed dimension is that of the rows that scalar code sums */
    bool has_strip;    /* sums in memory: the jammed dimension is that of the points */
    bool has_tile;     /* a register tile was chosen: the jammed dimension is innermost */
} planner;

/* ---------------------------------------------------------------- sides that are skipped */

/** Whether code goes around side n, 0 or 1, of `if` i where no lane takes it: such a side is the
 * rare one. */
static bool is_skipped_side(const planner *s, uint32_t i, int n)
{
    const qn_inst *x = &s->k->inst[i];
    uint32_t begin = x->region[n], end = x->region[n + 1];
    if (!s->a->value || s->p->lane_dim < 0 || begin == end)
        return false;
    if (s->k->inst[end - 1].n_args == 0 || qn__region_has_memory(s->k, begin, end))
        return false;
    int64_t units = 0;
    for (uint32_t m = begin; m < end; m++)
        if (s->a->value[m].deps >> s->p->lane_dim & 1)
            units += qn__cost_of_instruction(s->a, m, false, QN_COUNTED_LANES);
    return qn__goes_around(s->k, i, n, units, 1, s->f->target);
}

/** Whether lanes take both sides of `if` i under masks, without a branch. */
static bool has_no_branch(const planner *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    bool has_none = s->a->value != NULL;
    for (int n = 0; n < 2 && has_none; n++)
        has_none = x->region[n] + 1 >= x->region[n + 1] || /* a yield, at most */
                   qn__is_under_mask(s->a, i, n, s->p->lane_dim);
    return has_none;
}

/** The first instruction from i on that is in no skipped side. */
static uint32_t usual(const planner *s, uint32_t i)
{
    const qn_kernel *k = s->k;
    while (i < k->n_insts) {
        uint32_t parent = k->inst[i].parent;
        if (!parent || k->inst[parent].op != QN_I_IF)
            break;
        int side = i == k->inst[parent].region[1];
        if ((side == 0 && i != k->inst[parent].region[0]) || !is_skipped_side(s, parent, side))
            break;
        i = k->inst[parent].region[side + 1];
    }
    return i;
}

/* ---------------------------------------------------------------- width and unrolling */

/** Whether instruction i is a sum of pairs of products of 16 bits, or what is multiplied for one.
 */
static bool is_of_pairs(const planner *s, uint32_t i)
{
    const qn_kernel *k = s->k;
    uint32_t reduce = k->inst[i].op == QN_I_REDUCE ? i : qn__enclosing_reduce(k, i);
    uint32_t product = s->a->value && reduce ? qn__paired_product(s->a, reduce) : 0;
    bool is_factor = product && k->inst[i].op == QN_I_CAST &&
                     (qn__args(k, product)[0] == i || qn__args(k, product)[1] == i);
    return product && (i == reduce || i == product || is_factor);
}

/** Bits of the widest type that is computed with in vectors. Indices count only where they are
 * data; what stands outside reduces whose points are the lanes is scalar. */
static int widest_bits(const planner *s)
{
    const qn_kernel *k = s->k;
    bool is_reduction = qn__is_reduction(k, s->p->lane_dim);
    int bits = 8;
    for (uint32_t i = usual(s, k->body); i < k->n_insts; i = usual(s, i + 1)) {
        const qn_inst *x = &k->inst[i];
        bool is_scalar = is_reduction && x->op != QN_I_REDUCE && !qn__enclosing_reduce(k, i);
        int width = is_scalar ? 8 : qn__data_bits(s->a, i);
        width = is_reduction && is_of_pairs(s, i) ? 16 : width;
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

/** Whether an instruction is one of the code's own in each vector: no constant, and no index. */
static bool is_compiled(const qn_inst *x)
{
    return x->op != QN_I_CONST && x->type != QN_I64;
}

/** Vectors in one step by the operations of the body and the longest chain among them: where each
 * waits for the one before it, more steps must be under way than the processor looks ahead. Where
 * there is little but arithmetic, as in a mathematical function, the processor finds the next steps
 * by itself, and each vector takes its time to compile, that of skipped sides too; these limits
 * were chosen by bench_main compile/functions. */
static int natural_unroll(const planner *s)
{
    const qn_kernel *k = s->k;
    enum {
        FEW = 12,
        SOME = 48,
        MANY = 192,
        LONG_CHAIN = 8,
        OPS_AN_ACCESS = 10,
        TWO_VECTORS = 24,
        ONE_VECTOR = 32
    };
    uint8_t *chain = qn__zalloc(k->n_insts, 1);
    int n = 0, longest = 0, n_compiled = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        n_compiled += is_compiled(&k->inst[i]);
    for (uint32_t i = usual(s, k->body); chain && i < k->n_insts; i = usual(s, i + 1)) {
        const qn_inst *x = &k->inst[i];
        if (x->op == QN_I_WHILE || x->op == QN_I_FOR ||
            (x->op == QN_I_IF && !has_no_branch(s, i))) {
            qn__free(chain);
            return 1;
        }
        if (!is_compiled(x))
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
    if (n_compiled > TWO_VECTORS && (uint32_t)n_compiled >= OPS_AN_ACCESS * k->n_accesses)
        return n_compiled > ONE_VECTOR ? 1 : 2;
    return n <= FEW ? 4 : n <= SOME ? 2 * more : n <= MANY ? more : 1;
}

/** Lanes of a whole register. */
static int lanes_of(const planner *s)
{
    int lanes = 8 * s->f->target->vector_bytes / widest_bits(s);
    return lanes > 64 ? 64 : lanes;
}

/** A row of a few vectors that are only stored: what depends on the lanes alone is constant in one
 * step. */
static bool is_one_step(const planner *s, int64_t row)
{
    enum { MOST_VECTORS = 16, MOST_OPS = 12 };
    uint32_t n_ops = s->k->n_insts - s->k->body;
    FOR_ACCESSES (s->k, n, i)
        if (s->k->inst[i].op != QN_I_STORE || s->k->inst[i].parent)
            return false;
    bool has_masks = s->f->target->has_masks || row % s->p->width == 0;
    return has_masks && n_ops <= MOST_OPS && row > 0 && row <= (int64_t)MOST_VECTORS * s->p->width;
}

/** Whether so many lanes along a dimension lie within one digit of each layout that has several. */
static bool are_in_digits(const planner *s, int d, int width)
{
    FOR_ACCESSES (s->k, n, i)
        for (int r = 0; r < qn__n_indices(s->k, i); r++) {
            const qn_dim_fact *dim = &s->f->param[s->k->inst[i].imm].dim[r];
            uint32_t index = qn__args(s->k, i)[r];
            if (dim->n_digits > 1 && (s->a->value[index].deps >> d & 1) &&
                !qn__is_within_digit(s->a, index, dim, d, width))
                return false;
        }
    return true;
}

static void choose_width(planner *s)
{
    qn_plan *p = s->p;
    int64_t t = qn__trips(s->f, p->lane_dim);
    p->width = lanes_of(s);
    if (qn__is_reduction(s->k, p->lane_dim)) {
        if (!are_in_digits(s, p->lane_dim, p->width) && are_in_digits(s, p->lane_dim, p->width / 2))
            p->width /= 2; /* neighbours, instead of a gather */
        p->unroll = 64 / p->width > 8 ? 8 : 64 / p->width;
        p->width = 64 / p->unroll; /* 64 partials exactly */
        return;
    }
    while (t >= 0 && p->width > 2 && p->width / 2 >= t)
        p->width /= 2;
    p->unroll = natural_unroll(s);
    if (qn__has_gather(s->a, p->lane_dim) && p->unroll > 2)
        p->unroll = 2; /* moved lane by lane, more vectors only add code */
    s->has_one_step = p->unroll > 1 && is_one_step(s, t);
    if (s->has_one_step)
        p->unroll = (int32_t)((t + p->width - 1) / p->width);
    else if (t >= 0 &&
             (int64_t)p->unroll * p->width > t) /* a short row is one step: no loop turns */
        p->unroll = t < p->width ? 1 : (int32_t)(t / p->width);
}

/** The most vectors in a step whose partials find room. */
static int most_of_partials(const planner *s)
{
    enum { MOST_VECTORS = 4 }; /* of one level of blocks; 4 KiB each */
    int most = MOST_VECTORS;
    FOR_REDUCES (s->k, i) {
        if (qn__order_rule(s->k, i) != QN_STRIPED)
            continue;
        int64_t points = qn__points(s->k, s->f, i);
        bool is_kept = qn__keeps_partials(s->k, s->f, i) && !s->k->inst[i].parent && points >= 0;
        int own = is_kept ? MOST_VECTORS : 1;
        for (; points > QN_BLOCK_POINTS && own > 1; points /= QN_BLOCK_POINTS)
            own /= 2;
        most = own < most ? own : most;
    }
    return most;
}

/** One smaller step needs masks that are cheap and a body that may be emitted twice whole. */
static bool has_rest_tile(const planner *s)
{
    const qn_plan *p = s->p;
    bool has_partials = qn__plan_stripe_depth(s->k) > 0,
         has_steps = s->has_tile || s->has_one_step || p->jam > 1;
    if (!(has_partials ? p->unroll > 1 : has_steps) || p->streams ||
        !qn__is_parallel(s->k, p->lane_dim) || qn__trips(s->f, p->lane_dim) < 0)
        return false;
    FOR_ACCESSES (s->k, n, i)
        if (qn__access_bytes(s->k, i) < s->f->target->least_masked)
            return false;
    return true;
}

static void choose_jam_rest(const planner *s)
{
    qn_plan *p = s->p;
    if (s->has_strip)
        return;
    bool may_overlap = p->jam > 1 && !p->transpose && qn__trips(s->f, p->jam_dim) >= p->jam &&
                       qn__may_repeat(s->a);
    bool has_halves = s->has_tile && p->jam > 1 && !p->transpose && p->cross == 1 &&
                      qn__plan_has_halves(s->f, p->lane_dim, p->jam_dim);
    p->jam_rest = p->jam <= 1   ? QN_TAIL_NONE
                  : may_overlap ? QN_TAIL_OVERLAP
                  : has_halves  ? QN_TAIL_NARROWER
                                : QN_TAIL_SCALAR;
}

/** Whether the lanes that a mask leaves out behind the end of a row of access i may be of another
 * row. */
static bool has_next_row(const planner *s, uint32_t i)
{
    int64_t stride, trips = qn__trips(s->f, s->p->lane_dim), pitch = INT64_MAX;
    bool has_pitch = true;
    if (!qn__access_stride(s->a, i, s->p->lane_dim, &stride) || stride != 1)
        return false;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (d == s->p->lane_dim || !qn__is_parallel(s->k, d))
            continue;
        bool is_known = qn__access_stride(s->a, i, d, &stride);
        stride = is_known && stride < 0 ? -stride : stride;
        has_pitch &= is_known;
        pitch = is_known && stride && stride < pitch ? stride : pitch;
    }
    if (has_pitch && pitch == INT64_MAX)
        return false; /* there is one row */
    if (trips < 0 || !has_pitch)
        return true;
    int64_t rest = trips % s->p->width, lanes = 1;
    while (lanes < rest)
        lanes *= 2;
    return rest && pitch - trips < lanes - rest;
}

/** Whether rows of a view are loaded and stored. A store under a mask holds up a load of what its
 * other lanes name, the begin of the next row: the processor forwards nothing there. */
static bool has_rows_in_place(const planner *s)
{
    const qn_kernel *k = s->k;
    bool is_loaded[QN_MAX_PARAMS] = {false}, is_stored[QN_MAX_PARAMS] = {false};
    FOR_ACCESSES (k, n, i) {
        const qn_inst *x = &k->inst[i];
        bool *of = x->op == QN_I_LOAD ? is_loaded : x->op == QN_I_STORE ? is_stored : NULL;
        if (!of || of[x->imm] || !has_next_row(s, i))
            continue;
        of[x->imm] = true;
        if (is_loaded[x->imm] && is_stored[x->imm])
            return true;
    }
    return false;
}

static void choose_remainder(const planner *s)
{
    qn_plan *p = s->p;
    int64_t step = (int64_t)p->width * p->unroll;
    if (qn__is_multiple(s->f, p->lane_dim, step) && !p->streams) /* which start at a cache line */
        p->remainder = QN_TAIL_NONE;
    else if (has_rest_tile(s))
        p->remainder = QN_TAIL_NARROWER;
    else
        p->remainder =
            s->f->target->has_masks && !has_rows_in_place(s) ? QN_TAIL_MASK : QN_TAIL_SCALAR;
}

/* ---------------------------------------------------------------- the plan */

/** Several rows, counts or moves at once in scalar code, where lanes over them would gather or be
 * taken apart. */
static void choose_rows(planner *s)
{
    enum { TOGETHER = 8 };
    qn_plan *p = s->p;
    int64_t t = qn__trips(s->f, p->lane_dim);
    bool are_rows = s->has_tile && qn__plan_is_rows(s->a, p->lane_dim, p->width);
    bool are_counts = !s->has_tile && qn__is_parallel(s->k, p->lane_dim) &&
                      (qn__plan_is_counting(s->a, p->lane_dim) ||
                       qn__plan_is_scalar(s->a, p->lane_dim, p->width));
    if (p->jam_dim >= 0 || (t >= 0 && t < 2) || !(are_rows || are_counts))
        return;
    s->has_rows = true;
    p->jam_dim = p->lane_dim;
    p->jam = t >= 0 && t < TOGETHER ? (int32_t)t : TOGETHER;
    p->lane_dim = -1;
    p->width = p->unroll = 1;
}

/** A third dimension of a register tile, as the caller wants it, where the rest of the plan allows
 * it. */
static void apply_cross(const planner *s)
{
    qn_plan *p = s->p;
    int c = s->f->plan.cross_dim - 1, cross = s->f->plan.cross;
    if (cross == 1 || !s->has_tile || !qn__may_cross(s->a, p, p->cross_dim, p->cross)) {
        p->cross_dim = -1;
        p->cross = 1;
    }
    if (cross > 1 && c < s->k->n_dims && s->has_tile && qn__may_cross(s->a, p, c, cross)) {
        p->cross_dim = c;
        p->cross = cross;
    }
}

static void apply_overrides(const planner *s)
{
    const qn_plan_options *o = &s->f->plan;
    qn_plan *p = s->p;
    bool is_reduction = qn__is_reduction(s->k, p->lane_dim);
    if (p->lane_dim >= 0 && !is_reduction && o->width > 0)
        p->width = (int32_t)round_down_to_power(o->width > 64 ? 64 : o->width);
    if (p->lane_dim >= 0 && !is_reduction && o->unroll > 0)
        p->unroll = o->unroll > 8 ? 8 : o->unroll;
    if (p->width < 2)
        p->lane_dim = is_reduction ? p->lane_dim : -1;
    int j = o->jam_dim - 1;
    if (s->has_strip) {
        p->jam = o->jam > 0 ? o->jam : p->jam;
        return;
    }
    if (o->jam == 1 || (p->lane_dim < 0 && !s->has_rows)) {
        p->jam = 1;
        p->jam_dim = -1;
    }
    if (p->lane_dim >= 0 && o->jam > 1 && j >= 0 && j < s->k->n_dims && j != p->lane_dim &&
        qn__is_parallel(s->k, j)) {
        p->jam_dim = j;
        p->jam = o->jam > 16 ? 16 : o->jam;
    }
    while (p->jam * p->unroll > MOST_PLANNED)
        p->jam /= 2;
    apply_cross(s);
    if (p->lane_dim >= 0 && !is_reduction &&
        qn__plan_stripe_depth(s->k) > 0) { /* partials of one iteration of other dimensions */
        int most = most_of_partials(s);
        p->unroll = p->unroll < most ? p->unroll : most;
        p->jam = 1;
        p->jam_dim = -1;
    }
    if (p->lane_dim < 0) {
        p->width = 1;
        p->unroll = 1;
    }
}

int32_t qn__plan_straight(const qn_kernel *k, const qn_facts *f)
{
    enum { MOST_ADDITIONS = 128 };
    int32_t n = 0;
    if (f->target->has_grid)
        return QN_GPU_STRAIGHT;
    FOR_REDUCES (k, i)
        n++;
    return n ? MOST_ADDITIONS / n : 0;
}

void qn__plan_by_rules(const qn_analysis *a, qn_plan *out)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    memset(out, 0, sizeof *out);
    planner s = {.k = k, .f = f, .a = a, .p = out};
    memcpy(out->merged, f->merged, sizeof out->merged);
    out->lane_dim = -1;
    out->jam_dim = -1;
    out->jam = 1;
    out->cross_dim = -1;
    out->cross = 1;
    out->tile_at = -1;
    out->width = 1;
    out->unroll = 1;
    out->straight = qn__plan_straight(k, f);
    int wanted = f->plan.lane_dim - 1;
    if (s.a->value && f->plan.lane_dim >= 0) {
        bool is_wanted = wanted >= 0 && wanted < k->n_dims && qn__plan_may_be_lanes(s.a, wanted);
        out->lane_dim = is_wanted ? wanted : qn__plan_best_lanes(s.a);
    }
    if (out->lane_dim >= 0) {
        choose_width(&s);
        s.has_strip = qn__plan_strip(s.a, out);
        s.has_tile = !s.has_strip && qn__plan_tile(s.a, out);
        if (!s.has_strip && f->plan.lane_dim == 0 && f->plan.jam == 0)
            choose_rows(&s);
    }
    apply_overrides(&s);
    qn__plan_order(s.a, s.has_tile || s.has_rows, out);
    if (s.a->value)
        qn__plan_transpose(s.a, out);
    if (s.has_strip)
        qn__plan_strip_end(k, f, out);
    else if (s.a->value)
        qn__plan_streams(s.a, out);
    if (s.a->value && !s.has_strip)
        qn__plan_tiles(s.a, out);
    choose_jam_rest(&s);
    if (out->lane_dim >= 0)
        choose_remainder(&s);
    if (s.has_tile && !s.has_rows) {
        qn__plan_pack(s.a, out);
        qn__plan_prefetch(s.a, out);
    }
    if (out->streams && f->plan.prefetch >= 0 && qn__find_fronts(s.a, out, NULL))
        out->front_bytes = FRONT_BYTES;
    qn__plan_split(k, f, out, s.has_tile && out->jam > 1);
    qn__plan_points(k, f, out);
    qn__plan_atomics(k, f, out);
}

void qn__plan_plainly(qn_plan *p)
{
    if (p->n_shared_reduces) {
        p->split_dim = -1;
        p->granule = 1;
    }
    p->n_shared_reduces = 0;
    p->jam_dim = p->cross_dim = p->tile_at = -1;
    p->jam = p->cross = 1;
    p->transpose = p->end_rows = p->strip = 0;
    p->prefetch = p->steps_ahead = p->front_bytes = 0;
    p->pack = p->pack_rows = 0;
    p->row_steps = 0;
    p->scratch_bytes = 0;
    memset(p->tile, 0, sizeof p->tile);
}
