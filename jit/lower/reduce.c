/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c: reductions in the kernel's order rule. All forms start from the identity, so that
 * combining with an unused partial changes no bit.
 *
 *   folds    in registers, one accumulator for each part: strict order, "indexed" (blocks of 4096,
 *            their results by the same rule), and integers
 *   stripes  64 partials, when the lanes run over another dimension or there are none
 *            (lower/stripes.c)
 *   lanes    over points of the reduction (lower/reduce_lanes.c)
 */
#include "jit/lower/hooks.h"
#include "jit/lower/nest.h"
#include "jit/lower/wide.h"
#include "jit/lower/yields.h"

#include <string.h>

LLVMValueRef qn__combine(lower *g, const reduction *r, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef both[2] = {a, b};
    if (r->is_unordered)
        return qn__call(g, r->combine == QN_COMBINE_MAX ? "llvm.maximum" : "llvm.minimum", &g->f32,
                        1, both, 2);
    return qn__lower_combine(g, r->combine, r->type, a, b);
}

LLVMValueRef qn__add_point(lower *g, const reduction *r, LLVMValueRef accumulated, const addend *a,
                           int n)
{
    if (a->factor[n])
        return qn__lower_op(g, QN_OP_fma, r->type, a->value[n], a->factor[n], accumulated);
    return qn__combine(g, r, accumulated, a->value[n]);
}

static bool is_vector(const lower *g, const reduction *r)
{
    return g->width > 1 && g->a.value[r->inst].shape != QN_UNIFORM;
}

LLVMTypeRef qn__accumulator_type(const lower *g, const reduction *r)
{
    return is_vector(g, r) ? qn__lane_type(g, r->type) : qn__scalar_type(g, r->type);
}

void qn__take_point(lower *g, const reduction *r, int p, bool vector, addend *a, int n)
{
    uint32_t value = r->product ? qn__args(g->k, r->product)[0] : qn__args(g->k, r->yield)[0];
    a->value[n] = vector ? qn__vector(g, value, p) : qn__scalar(g, value, p);
    if (!r->product)
        return;
    uint32_t factor = qn__args(g->k, r->product)[1];
    a->factor[n] = vector ? qn__vector(g, factor, p) : qn__scalar(g, factor, p);
}

bool qn__is_plain_reduce(const lower *g, const qn_inst *reduce)
{
    for (uint32_t i = reduce->region[0]; i < reduce->region[2]; i++) {
        const qn_inst *x = &g->k->inst[i];
        bool is_checked = x->op == QN_I_LOAD && qn__is_checked(g->f, g->k, g->site[i]);
        if (is_checked || x->op == QN_I_ASSERT || x->region[2] != i + 1)
            return false;
    }
    return true;
}

/** What the point adds where points are results in memory. */
static void load_result(lower *g, const reduction *r, addend *a)
{
    LLVMValueRef at = qn__gep(g, g->i64, r->results, g->iv[r->dim[0]]);
    a->value[0] = qn__load_as(g, r->type, at, 8);
}

/** Emits the region once for the indices that stand in g->iv. With `acc` the point is added to each
 * accumulator at once, so that few values wait for their use; else it is kept in *a. */
static void emit_point(lower *g, const reduction *r, addend *a, LLVMValueRef *acc)
{
    const qn_inst *x = &g->k->inst[r->inst];
    memset(a, 0, sizeof *a);
    if (r->results) {
        load_result(g, r, a);
        if (acc)
            acc[0] = qn__add_point(g, r, acc[0], a, 0);
        return;
    }
    g->loads_on_demand = qn__is_plain_reduce(g, x);
    if (!g->loads_on_demand)
        qn__lower_region(g, x->region[0], x->region[2]);
    for (int n = 0; n < r->n; n++) {
        qn__take_point(g, r, r->part[n], is_vector(g, r), a, n);
        if (acc)
            acc[n] = qn__add_point(g, r, acc[n], a, n);
    }
    g->loads_on_demand = false;
}

void qn__evaluate_point(lower *g, const reduction *r, addend *a)
{
    emit_point(g, r, a, NULL);
}

/** Accumulators of a reduce and of those beside it. */
static int n_sums(const reduction *r)
{
    int n = r->n;
    for (int m = 0; m < r->n_beside; m++)
        n += r->beside[m].n;
    return n;
}

/** Carries the accumulators through a loop that was just opened, and, ahead of checks, whether
 * these would have held. */
static void carry_sums(lower *g, loop *l, const reduction *r, LLVMValueRef *acc)
{
    qn__loop_carry(g, l, acc, n_sums(r));
    if (g->in_range)
        qn__loop_carry(g, l, g->in_range, 1);
}

void qn__fold_point(lower *g, const reduction *r, LLVMValueRef *acc)
{
    addend a;
    emit_point(g, r, &a, acc);
    for (int m = 0, n = r->n; m < r->n_beside; n += r->beside[m++].n)
        emit_point(g, &r->beside[m], &a, acc + n);
}

/** The reduce that accumulator n belongs to. */
static const reduction *owner_of(const reduction *r, int n)
{
    int end = r->n, m = 0;
    while (n >= end && m < r->n_beside)
        end += r->beside[m++].n;
    return m ? &r->beside[m - 1] : r;
}

span qn__points_of(const lower *g, const reduction *r, int d)
{
    return (span){r->low ? r->low : g->begin[d], r->high ? r->high : g->end[d]};
}

/** How a loop over a range is opened. */
static int how_of(span s)
{
    int64_t low, high;
    bool is_some = qn__is_const(s.low, &low) && qn__is_const(s.high, &high) && high > low;
    return is_some ? 0 : LOOP_MAY_BE_EMPTY;
}

void qn__loop_points(lower *g, loop *l, const reduction *r, int d)
{
    span s = qn__points_of(g, r, d);
    qn__loop_open(g, l, s, 1, how_of(s));
    qn__set_index(g, d, l->index);
}

/* ---------------------------------------------------------------- folds */

/** Whether several points of a reduce may be emitted one after the other: a small region without
 * others inside. */
static bool is_worth_unrolling(const lower *g, const reduction *r)
{
    return !r->results && qn__is_small_region(g->k, r->inst);
}

/** What a point is added to. */
typedef struct point_sum {
    const reduction *r;
    LLVMValueRef *acc;
} point_sum;

static void add_point(lower *g, void *arg)
{
    const point_sum *s = arg;
    qn__fold_point(g, s->r, s->acc);
}

/** What is added in one loop, and how that is opened. */
typedef struct run {
    const reduction *r;
    int d, how;
} run;

/** A range of points, `step` emitted at once, of which they are a multiple. */
static void fold_steps(lower *g, const run *x, span s, int step, LLVMValueRef *acc)
{
    const reduction *r = x->r;
    const int d = x->d, together = qn_dtype_bytes(r->type) < 8
                                       ? 4
                                       : 2; /* points of which 16 bytes move at once */
    loop l;
    if (qn__is_known_empty(s))
        return;
    qn__loop_open(g, &l, s, step, x->how);
    carry_sums(g, &l, r, acc);
    qn__set_index(g, d, l.index);
    for (int n = 0; n < step && step > 1; n += together)
        qn__wide_points(g, r, d, n, step - n < together ? step - n : together, add_point,
                        &(point_sum){r, acc});
    if (step == 1) {
        qn__prefetch_point(g, r->inst, d);
        qn__fold_point(g, r, acc);
    }
    qn__loop_close(g, &l);
}

void qn__fold_run(lower *g, const reduction *r, int d, span s, int how, LLVMValueRef *acc)
{
    enum { TOGETHER = 8 };
    int64_t from, to;
    run x = {r, d, LOOP_MAY_BE_EMPTY};
    bool is_known = qn__is_const(s.low, &from) && qn__is_const(s.high, &to),
         is_straight = is_worth_unrolling(g, r);
    if (is_straight && is_known && to > from + 1 && to - from <= g->block->straight / n_sums(r) &&
        (!g->f->target->waits_for_loads || to - from <= (r->n > 1 ? 4 : 2) * TOGETHER)) {
        fold_steps(g, &x, s, (int)(to - from), acc); /* all of them: no loop */
        return;
    }
    if (!is_straight || !g->f->target->waits_for_loads) {
        x.how = how;
        fold_steps(g, &x, s, 1, acc);
        return;
    }
    /* A thread that waits for its loads has those of several points under way. */
    for (int step = TOGETHER; step >= 1; step /= 2) {
        LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, ""),
                     whole = LLVMBuildAnd(g->b, n, qn__const_i64(g, -step), ""),
                     middle = LLVMBuildAdd(g->b, s.low, whole, "");
        fold_steps(g, &x, (span){s.low, middle}, step, acc);
        s.low = middle;
    }
}

/** Whether the schedule has all points of a dimension of a reduce one beside the other. */
static bool is_unrolled(const lower *g, const reduction *r, int d)
{
    const qn_reduced *tuple = g->schedule ? qn__reduction_of(g->schedule, r->inst) : NULL;
    if (!tuple)
        return false;
    FOR_LOOPS (g->schedule, l) {
        const qn_axis_info *a = qn__axis(g->schedule, l->axis);
        if (l->role == QN_ROLE_UNROLLED && a->kind == QN_AXIS_POINT && a->inst == tuple->inst[0] &&
            a->number == d)
            return qn__trips(g->f, d) > 0;
    }
    return false;
}

/** The iterations of dimension number `at`, one behind the other. */
static void fold_straight(lower *g, const reduction *r, int at, LLVMValueRef *acc)
{
    const int d = r->dim[at];
    for (int64_t n = 0; n < qn__trips(g->f, d); n++) {
        loop once;
        LLVMValueRef first = qn__points_of(g, r, d).low;
        qn__once_open(g, &once, NULL);
        qn__set_index(g, d, LLVMBuildAdd(g->b, first, qn__const_i64(g, n), ""));
        qn__fold_from(g, r, at + 1, acc);
        qn__loop_close(g, &once);
    }
}

void qn__fold_from(lower *g, const reduction *r, int at, LLVMValueRef *acc)
{
    if (at == r->n_dims) {
        qn__fold_point(g, r, acc);
        return;
    }
    int d = r->dim[at];
    if (at + 1 == r->n_dims) {
        span s = qn__points_of(g, r, d);
        qn__fold_run(g, r, d, s, how_of(s), acc);
        return;
    }
    if (is_unrolled(g, r, d)) {
        fold_straight(g, r, at, acc);
        return;
    }
    loop l;
    qn__loop_points(g, &l, r, d);
    carry_sums(g, &l, r, acc);
    qn__fold_from(g, r, at + 1, acc);
    qn__loop_close(g, &l);
}

static void set_identity(lower *g, const reduction *r, LLVMValueRef *acc)
{
    for (int n = 0; n < n_sums(r); n++) {
        const reduction *own = owner_of(r, n);
        acc[n] = qn__constant_like(qn__accumulator_type(g, own), own->identity);
    }
}

int64_t qn__block_size(int depth)
{
    int64_t size = 1;
    for (int n = 0; n < depth; n++)
        size *= BLOCK;
    return size;
}

LLVMValueRef qn__count_blocks(lower *g, LLVMValueRef n, int64_t size)
{
    return LLVMBuildUDiv(g->b, LLVMBuildAdd(g->b, n, qn__const_i64(g, size - 1), ""),
                         qn__const_i64(g, size), "");
}

span qn__block_at(lower *g, span s, LLVMValueRef i, int64_t size)
{
    LLVMValueRef by = qn__const_i64(g, size),
                 from = LLVMBuildAdd(g->b, s.low, LLVMBuildMul(g->b, i, by, ""), "");
    return qn__piece_at(g, from, size, s.high);
}

LLVMValueRef qn__fold_levels(lower *g, const reduction *r, const LLVMValueRef *sums, int apart)
{
    LLVMValueRef value = sums[0];
    for (int v = 1; v <= r->n_levels; v++)
        value = qn__combine(g, r, sums[v * apart], value);
    return value;
}

/** A range of one dimension in blocks of 4096^depth: each block's result is folded in order. */
static void fold_blocks(lower *g, const reduction *r, int depth, span s, LLVMValueRef *acc)
{
    LLVMValueRef inner[MOST_PARTS];
    loop l;
    int64_t size = qn__block_size(depth);
    set_identity(g, r, acc);
    if (depth == 0) {
        qn__fold_run(g, r, r->dim[0], s, LOOP_MAY_BE_EMPTY, acc);
        return;
    }
    LLVMValueRef blocks = qn__count_blocks(g, LLVMBuildSub(g->b, s.high, s.low, ""), size);
    qn__loop_open(g, &l, qn__up_to(g, blocks), 1, LOOP_MAY_BE_EMPTY);
    carry_sums(g, &l, r, acc);
    fold_blocks(g, r, depth - 1, qn__block_at(g, s, l.index, size), inner);
    for (int m = 0; m < n_sums(r); m++)
        acc[m] = qn__combine(g, owner_of(r, m), acc[m], inner[m]);
    qn__loop_close(g, &l);
}

void qn__fold_up(lower *g, const reduction *r, LLVMValueRef *state, LLVMValueRef count)
{
    int64_t size = 1;
    for (int v = 1; v <= r->n_levels; v++) {
        size *= BLOCK;
        LLVMValueRef rest = LLVMBuildAnd(g->b, count, qn__const_i64(g, size - 1), "");
        LLVMValueRef is_full = LLVMBuildICmp(g->b, LLVMIntEQ, rest, qn__const_i64(g, 0), "");
        for (int n = 0; n < r->n; n++) {
            LLVMValueRef *below = &state[(v - 1) * r->n + n], *above = &state[v * r->n + n];
            LLVMValueRef sum = qn__combine(g, r, *above, *below);
            LLVMValueRef fresh = qn__constant_like(LLVMTypeOf(*below), r->identity);
            *above = LLVMBuildSelect(g->b, is_full, sum, *above, "");
            *below = LLVMBuildSelect(g->b, is_full, fresh, *below, "");
        }
    }
}

/** Several dimensions in blocks: accumulators of all levels and a counter are carried through the
 * nest. */
static void fold_counted(lower *g, const reduction *r, int at, LLVMValueRef *state)
{
    int n_state = r->n * (r->n_levels + 1) + 1;
    LLVMValueRef *count = &state[n_state - 1];
    if (at < r->n_dims) {
        loop l;
        qn__loop_points(g, &l, r, r->dim[at]);
        qn__loop_carry(g, &l, state, n_state);
        fold_counted(g, r, at + 1, state);
        qn__loop_close(g, &l);
        return;
    }
    qn__fold_point(g, r, state);
    *count = LLVMBuildAdd(g->b, *count, qn__const_i64(g, 1), "");
    qn__fold_up(g, r, state, *count);
}

static void fold_indexed(lower *g, const reduction *r, LLVMValueRef *acc)
{
    if (r->n_dims == 1) {
        fold_blocks(g, r, r->n_levels, qn__points_of(g, r, r->dim[0]), acc);
        return;
    }
    LLVMValueRef state[MOST_PARTS * (MOST_DEPTH + 1)];
    for (int v = 0; v <= r->n_levels; v++)
        set_identity(g, r, &state[v * r->n]);
    state[r->n * (r->n_levels + 1)] = qn__const_i64(g, 0);
    fold_counted(g, r, 0, state);
    for (int n = 0; n < r->n; n++)
        acc[n] = qn__fold_levels(g, r, &state[n], r->n);
}

static void fold_in_order(lower *g, const reduction *r, LLVMValueRef *acc)
{
    if (qn__order_rule(g->k, r->inst) == QN_INDEXED && r->n_levels > 0)
        fold_indexed(g, r, acc);
    else
        qn__fold_from(g, r, 0, acc);
}

/* ---------------------------------------------------------------- the reduce instruction */

/** The dimension of the lanes stands inside of all others. */
static void put_lanes_last(const lower *g, reduction *r)
{
    const int lanes = g->block->lane_dim;
    int n = 0;
    if (!qn__may_have_lanes(&g->a, r->inst, lanes))
        return;
    for (int m = 0; m < r->n_dims; m++)
        if (r->dim[m] != lanes)
            r->dim[n++] = r->dim[m];
    if (n < r->n_dims)
        r->dim[n] = lanes;
}

reduction qn__describe_reduction(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    reduction r = {.inst = i, .type = x->type, .combine = x->sub, .n_dims = x->n_args};
    r.product = qn__contracted_product(g->k, i);
    r.yield = x->region[2] - 1;
    r.identity = qn__const_bits(g, x->type, qn__reduce_identity(x->sub, x->type));
    r.n_dims = 0;
    for (int n = 0; n < x->n_args; n++) {
        int d = qn__dim_of(g->k, i, n);
        if (n + 1 == x->n_args && r.n_dims == 0)
            r.dim[r.n_dims++] = d;
        else if (qn__trips(g->f, d) != 1)
            r.dim[r.n_dims++] = d;
    }
    put_lanes_last(g, &r);
    r.points = qn__points(g->k, g->f, i);
    /* Vectors of one jammed iteration after another: in a register tile those of the lanes are
     * fewer, and stay. */
    for (int j = 0; j < g->jam_max; j++)
        for (int u = 0; u < g->unroll; u++)
            if ((g->jam_active >> j & 1) &&
                qn__canonical_part(g, i, u * g->jam_max + j) == u * g->jam_max + j)
                r.part[r.n++] = u * g->jam_max + j;
    for (int64_t left = r.points; (left < 0 || left > BLOCK) && r.n_levels < MOST_DEPTH - 1;
         r.n_levels++)
        left = left < 0 ? left : (left + BLOCK - 1) / BLOCK;
    return r;
}

LLVMValueRef qn__or_empty(lower *g, const reduction *r, LLVMValueRef v)
{
    LLVMValueRef empty = qn__const_bits(g, r->type, qn__reduce_empty(r->combine, r->type)),
                 is_empty = NULL;
    if (r->points > 0 || empty == r->identity)
        return v;
    for (int n = 0; n < r->n_dims; n++) {
        LLVMValueRef none =
            LLVMBuildICmp(g->b, LLVMIntEQ, g->begin[r->dim[n]], g->end[r->dim[n]], "");
        is_empty = is_empty ? LLVMBuildOr(g->b, is_empty, none, "") : none;
    }
    return LLVMBuildSelect(g->b, is_empty, qn__constant_like(LLVMTypeOf(v), empty), v, "");
}

/** Several reduces in one loop. */
static void fold_beside(lower *g, const reduction *r, int n, LLVMValueRef (*acc)[MOST_PARTS])
{
    LLVMValueRef sums[MOST_PARTS], *from = sums;
    reduction all = *r;
    all.beside = r + 1;
    all.n_beside = n - 1;
    set_identity(g, &all, sums);
    if (r->points != 0)
        fold_in_order(g, &all, sums);
    for (int m = 0; m < n; from += r[m++].n)
        memcpy(acc[m], from, (size_t)r[m].n * sizeof *from);
}

void qn__reduce_in_order(lower *g, const reduction *r, int n, LLVMValueRef (*acc)[MOST_PARTS])
{
    bool over_lanes =
        g->block->lane_dim >= 0 && r->dim[r->n_dims - 1] == g->block->lane_dim && !r->results;
    const int scratch_used = g->scratch_used;
    if (n > 1 && !over_lanes) {
        fold_beside(g, r, n, acc);
        return;
    }
    for (int m = 0; m < n; m++)
        set_identity(g, &r[m], acc[m]);
    if (r->points == 0)
        ;
    else if (over_lanes)
        qn__lanes_reduce(g, r, n, acc);
    else if (qn__order_rule(g->k, r->inst) == QN_STRIPED)
        qn__fold_striped(g, r, acc[0]);
    else
        fold_in_order(g, r, acc[0]);
    g->scratch_used = scratch_used;
}

/** Whether reduce r is folded in registers, one point behind the other, in a way that carries more
 * than sums. */
static bool is_fold(const lower *g, const reduction *r)
{
    const int order = qn__order_rule(g->k, r->inst);
    return g->width == 1 && order != QN_STRIPED && r->points != 0 && !r->results &&
           (order != QN_INDEXED || r->n_levels == 0 || r->n_dims == 1);
}

/** A reduce of a thread ahead of its checks, so that no load waits behind a branch; once more with
 * checks where one would have failed. */
static void fold_ahead(lower *g, const reduction *r, LLVMValueRef condition, LLVMValueRef *acc)
{
    LLVMValueRef in_range = LLVMConstInt(g->i1, 0, false);
    set_identity(g, r, acc);
    branch x = qn__begin_branch(g, condition);
    qn__branch_keep(g, &x, acc, r->n);
    qn__branch_keep(g, &x, &in_range, 1);
    in_range = LLVMConstInt(g->i1, 1, false);
    g->in_range = &in_range;
    fold_in_order(g, r, acc);
    g->in_range = NULL;
    qn__end_branch(g, &x, NULL);
    branch y = qn__begin_branch(g, LLVMBuildNot(g->b, in_range, ""));
    qn__branch_keep(g, &y, acc, r->n);
    qn__reduce_in_order(g, r, 1, (LLVMValueRef(*)[MOST_PARTS])acc);
    qn__end_branch(g, &y, NULL);
}

const qn_reduced *qn__tuple_of(const lower *g, uint32_t reduce)
{
    const qn_reduced *r = g->schedule ? qn__reduction_of(g->schedule, reduce) : NULL;
    return r && r->n > 1 ? r : NULL;
}

/** The reduce at i and later ones that a thread of a grid, or a team, folds in one loop with it: a
 * tuple that no schedule has said. */
static int reduces_ahead(const lower *g, uint32_t i, reduction *out)
{
    const qn_kernel *k = g->k;
    const uint32_t end = k->inst[i].parent ? k->inst[k->inst[i].parent].region[2] : k->n_insts;
    uint32_t reduce[MOST_JOINED] = {i};
    int n = 1, sums = out->n;
    /* Blocks of points of which the warps of a team have no room for several values. What a team
     * keeps it reads again for less than it takes to have the values of two points. */
    const bool is_long = out->points < 0 || out->points / BLOCK >= BLOCK / MOST_JOINED;
    if (g->is_team != (qn__order_rule(k, i) == QN_STRIPED) ||
        (g->is_team ? g->kept || (g->grid->warps && is_long) : k->inst[i].n_args != 1))
        return 1;
    for (uint32_t j = k->inst[i].region[2]; j < end && n < MOST_JOINED; j = k->inst[j].region[2]) {
        const qn_inst *x = &k->inst[j];
        if (x->op != QN_I_REDUCE || g->value[j].is_set || !qn__have_one_range(k, i, j) ||
            qn__order_rule(k, j) != qn__order_rule(k, i) || !qn__is_plain_reduce(g, &k->inst[i]) ||
            !qn__is_plain_reduce(g, x))
            continue;
        reduce[n] = j;
        if (!qn__may_be_tuple(&g->a, n + 1, reduce))
            continue;
        out[n] = qn__describe_reduction(g, j);
        sums += out[n].n;
        n += sums <= MOST_PARTS;
    }
    return n;
}

void qn__lower_reduce(lower *g, uint32_t i)
{
    if (g->value[i].is_set &&
        (g->grid || g->block->n_shared)) /* ahead of time, from results of blocks */
        return;
    const qn_reduced *tuple = qn__tuple_of(g, i);
    if (qn__strip_value(g, i) || (tuple && tuple->inst[0] != i))
        return;
    reduction r[MOST_JOINED] = {qn__describe_reduction(g, i)};
    LLVMValueRef acc[MOST_JOINED][MOST_PARTS];
    const bool is_team = r->points != 0 && g->is_team &&
                         (qn__may_share_points(g->k, i) || qn__is_associative(g->k, i));
    bool is_threads = g->block->team == QN_TEAM_THREAD && !g->block->is_product;
    int n = is_threads || is_team ? reduces_ahead(g, i, r) : tuple ? tuple->n : 1;
    for (int m = 1; m < n && tuple; m++)
        r[m] = qn__describe_reduction(g, tuple->inst[m]);
    LLVMValueRef ahead = is_threads && n == 1 && is_fold(g, r) ? qn__ahead_of_points(g, i) : NULL;
    int outside = g->points_level;
    g->points_level = g->depth < outside ? g->depth : outside;
    qn__prefetch_step(g, i);
    if (is_team) {
        LLVMValueRef value[MOST_JOINED];
        g->hooks->team_reduce(g, r, n, value);
        for (int m = 0; m < n; m++)
            acc[m][0] = value[m];
    } else if (ahead) {
        fold_ahead(g, r, ahead, acc[0]);
    } else {
        qn__reduce_in_order(g, r, n, acc);
    }
    g->points_level = outside;
    for (int m = 0; m < n; m++)
        for (int q = 0; q < r[m].n; q++)
            qn__set(g, r[m].inst, r[m].part[q], qn__or_empty(g, &r[m], acc[m][q]), g->depth);
}
