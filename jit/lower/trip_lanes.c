/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trip_lanes.c: trips of a loop of the body as lanes. Those of a `for` run in steps as points do.
 * Those of a `while` run as if all lanes went on, as far as every access is in range; the first
 * lane that does not go on ends the lanes. The loop itself takes over from there: it looks at the
 * condition again, and ends, or runs what is left.
 */
#include "jit/lower/trip_lanes.h"
#include "jit/lower/yields.h"

#include <string.h>

/** What a loop carries while its trips are lanes. */
typedef struct combined {
    qn_carried of[QN_MAX_CARRIED];
    reduction r[QN_MOST_TRIP_SUMS];
    sums acc[QN_MOST_TRIP_SUMS];
    int n, n_sums, number[QN_MOST_TRIP_SUMS]; /* all; sums, and which they are */
} combined;

static const uint32_t *carried_args(const lower *g, uint32_t i)
{
    return qn__args(g->k, i) + (g->k->inst[i].op == QN_I_FOR ? 2 : 1);
}

static void open_combined(lower *g, uint32_t i, combined *c)
{
    c->n = g->k->inst[i].n_args - (g->k->inst[i].op == QN_I_FOR ? 2 : 1);
    c->n_sums = 0;
    c->r[0] = (reduction){.inst = i};
    if (!qn__trips_carry(&g->a, i, c->of, NULL))
        g->failed = true;
    for (int m = 0; m < c->n && !g->failed; m++) {
        const int type = g->k->inst[c->of[m].inst].type, combine = c->of[m].combine;
        if (c->of[m].is_step)
            continue;
        reduction *r = &c->r[c->n_sums];
        *r = (reduction){.inst = i, .type = type, .combine = combine, .n = 1};
        r->carried = c->of[m].inst;
        r->identity = qn__const_bits(g, type, qn__reduce_identity(combine, type));
        FOR_PARTS(g, p)
            c->acc[c->n_sums][p] = qn__constant_like(qn__lane_type(g, type), r->identity);
        c->number[c->n_sums++] = m;
    }
}

/** n steps from a value on. */
static LLVMValueRef moved(lower *g, LLVMValueRef first, LLVMValueRef n, int64_t step)
{
    LLVMTypeRef t = LLVMTypeOf(first);
    LLVMValueRef by = LLVMBuildIntCast2(g->b, n, t, true, "");
    by = LLVMBuildMul(g->b, by, qn__int(t, step), "");
    return LLVMBuildAdd(g->b, first, by, "");
}

/** What the loop carries, before n trips in lanes and then behind them. */
static void close_combined(lower *g, combined *c, LLVMValueRef n, const yields *carried)
{
    for (int m = 0; m < c->n; m++)
        if (c->of[m].is_step)
            *slot_of(carried, m, 0) = moved(g, *slot_of(carried, m, 0), n, c->of[m].step);
    for (int m = 0; m < c->n_sums; m++) {
        LLVMValueRef *all = slot_of(carried, c->number[m], 0);
        *all = qn__combine(g, &c->r[m], *all, qn__across_lanes(g, &c->r[m], c->acc[m], 0));
    }
}

/** A value that is `first` in the first trip of a loop and `step` more in each, in part p of a step
 * of lanes, of which g->iv has the first trip. */
static void set_step(lower *g, uint32_t value, int p, LLVMValueRef first, int64_t step)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, g->iv[g->block->lane_dim],
                                   qn__const_i64(g, p / g->jam_max * g->width), "");
    at = moved(g, first, at, step);
    if (g->a.value[value].shape == QN_VARYING)
        at = LLVMBuildAdd(g->b, qn__splat(g, at, g->depth), qn__lanes(g, LLVMTypeOf(first), step),
                          "");
    qn__set(g, value, p, at, g->depth);
}

/** The index of a loop and what it carries, in the trips of a step. */
static void set_carried(lower *g, const reduction *r, int n_sums, sums *acc)
{
    const qn_inst *x = &g->k->inst[r->inst];
    const bool has_index = x->op == QN_I_FOR;
    const uint32_t *first = carried_args(g, r->inst);
    int64_t step;
    FOR_PARTS (g, p) {
        if (has_index)
            set_step(g, x->region[0], p, qn__scalar(g, qn__args(g->k, r->inst)[0], 0),
                     (int64_t)x->imm);
        for (uint32_t n = x->region[0] + has_index; g->k->inst[n].op == QN_I_CARRIED; n++)
            if (qn__moves_with_trips(&g->a, r->inst, n, &step))
                set_step(g, n, p, qn__scalar(g, first[g->k->inst[n].imm], 0), step);
        for (int m = 0; m < n_sums; m++)
            qn__set(g, r[m].carried, p, acc[m][p], g->depth);
    }
}

/** The trips of a step behind the condition, if there is one. */
static void lower_body(lower *g, const reduction *r, int n_sums, sums *acc)
{
    const qn_inst *x = &g->k->inst[r->inst];
    qn__lower_region(g, x->region[x->op == QN_I_WHILE], x->region[2]);
    for (int m = 0; m < n_sums; m++)
        FOR_PARTS (g, p) {
            const uint32_t n = (uint32_t)g->k->inst[r[m].carried].imm;
            LLVMValueRef next = qn__vector(g, qn__args(g->k, x->region[2] - 1)[n], p),
                         own = g->tail_mask[p];
            acc[m][p] = own ? LLVMBuildSelect(g->b, own, next, acc[m][p], "") : next;
        }
}

void qn__lower_trips_of_step(lower *g, const reduction *r, int n_sums, sums *acc)
{
    set_carried(g, r, n_sums, acc);
    lower_body(g, r, n_sums, acc);
}

void qn__lanes_trips(lower *g, uint32_t i, LLVMValueRef n, bool is_whole, yields *carried)
{
    combined c;
    outside o = qn__enter_lanes(g, &g->trip_block);
    open_combined(g, i, &c);
    qn__lane_range(g, c.r, c.n_sums, qn__up_to(g, n), is_whole, c.acc);
    close_combined(g, &c, n, carried);
    qn__leave_lanes(g, &o);
}

/* ---------------------------------------------------------------- while */

/** An index of a loop in its first trip. */
static LLVMValueRef value_in_first(lower *g, uint32_t value)
{
    return qn__affine_value(g, &g->a.affine[value], g->a.affine[value].constant, true);
}

/** The least of n and of how often `by` goes into a distance, as u64, with both ends; 0 trips where
 * `is` does not hold. */
static LLVMValueRef least_trips(lower *g, LLVMValueRef n, LLVMValueRef is, LLVMValueRef distance,
                                int64_t by)
{
    LLVMValueRef trips = LLVMBuildUDiv(g->b, distance, qn__const_i64(g, by), "");
    trips = LLVMBuildAdd(g->b, trips, qn__const_i64(g, 1), "");
    return qn__umin(g, n, LLVMBuildSelect(g->b, is, trips, qn__const_i64(g, 0), ""));
}

/** Whether `value` is a comparison that a number of trips is known to keep: one side moves towards
 * the other. *low, *high: the sides. */
static bool is_bound(const lower *g, uint32_t i, uint32_t value, uint32_t *low, uint32_t *high,
                     int64_t *by)
{
    const qn_inst *x = &g->k->inst[value];
    const int op = qn__pure(x);
    const bool is_below = op == QN_OP_lt || op == QN_OP_le,
               is_above = op == QN_OP_gt || op == QN_OP_ge;
    int64_t step[2];
    if (!is_below && !is_above)
        return false;
    *low = qn__args(g->k, value)[is_above];
    *high = qn__args(g->k, value)[is_below];
    if (!qn__is_known_before(&g->a, i, *low, &step[0]) ||
        !qn__is_known_before(&g->a, i, *high, &step[1]) || (step[0] && step[1]))
        return false;
    *by = step[0] - step[1];
    return *by > 0;
}

enum { MOST_CONDITIONS = 128 };

/** The conditions that `value` is the `and` of, each once; their number. What is too much for the
 * list stays one condition. */
static int conditions_of(const lower *g, uint32_t value, uint32_t *of)
{
    uint32_t seen[MOST_CONDITIONS] = {value};
    int n_seen = 1, n = 0;
    for (int m = 0; m < n_seen; m++) {
        const bool is_one = qn__pure(&g->k->inst[seen[m]]) != QN_OP_and ||
                            n_seen + 2 > MOST_CONDITIONS;
        if (is_one)
            of[n++] = seen[m];
        for (int a = 0; a < 2 && !is_one; a++) {
            const uint32_t arg = qn__args(g->k, seen[m])[a];
            int at = 0;
            while (at < n_seen && seen[at] != arg)
                at++;
            seen[n_seen] = arg;
            n_seen += at == n_seen;
        }
    }
    return n;
}

/** n becomes the trips in which the bounds of a condition hold. */
static LLVMValueRef within_bounds(lower *g, uint32_t i, uint32_t value, LLVMValueRef n)
{
    uint32_t of[MOST_CONDITIONS], low, high;
    int64_t by;
    const int n_conditions = conditions_of(g, value, of);
    for (int m = 0; m < n_conditions; m++) {
        const int op = qn__pure(&g->k->inst[of[m]]);
        if (!is_bound(g, i, of[m], &low, &high, &by))
            continue;
        LLVMValueRef end[2] = {value_in_first(g, low), value_in_first(g, high)};
        const bool is_strict = op == QN_OP_lt || op == QN_OP_gt;
        LLVMValueRef is = LLVMBuildICmp(g->b, is_strict ? LLVMIntSLT : LLVMIntSLE, end[0], end[1],
                                        ""),
                     distance = LLVMBuildSub(g->b, end[1], end[0], "");
        if (is_strict)
            distance = LLVMBuildSub(g->b, distance, qn__const_i64(g, 1), "");
        n = least_trips(g, n, is, distance, by);
    }
    return n;
}

/** The trips in which an access is in range. */
static LLVMValueRef within_view(lower *g, uint32_t i, uint32_t access, LLVMValueRef n)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[access].imm];
    int64_t step;
    for (int r = 0; r < qn__n_indices(g->k, access); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const uint32_t index = qn__args(g->k, access)[r];
        if (dim->n_digits == 0)
            continue;
        if (!qn__is_known_before(&g->a, i, index, &step))
            return qn__const_i64(g, 0);
        LLVMValueRef at = value_in_first(g, index), extent = qn__fact(g, &dim->extent);
        at = LLVMBuildSub(g->b, at, qn__fact(g, &dim->lower), "");
        LLVMValueRef is = LLVMBuildICmp(g->b, LLVMIntULT, at, extent, "");
        if (!step)
            n = LLVMBuildSelect(g->b, is, n, qn__const_i64(g, 0), "");
        else if (step < 0)
            n = least_trips(g, n, is, at, -step);
        else
            n = least_trips(g, n, is,
                            LLVMBuildSub(g->b, LLVMBuildSub(g->b, extent, at, ""),
                                         qn__const_i64(g, 1), ""),
                            step);
    }
    return n;
}

/** The `if` that the condition in [begin, end) ends with, see qn__last_condition, or 0; *value: the
 * condition until there. */
static uint32_t next_condition(const lower *g, uint32_t begin, uint32_t end, uint32_t *value)
{
    const uint32_t i = qn__last_condition(g, begin, end);
    *value = qn__args(g->k, i ? i : end - 1)[0];
    return i;
}

/** The trips that lanes may run of `while` i, at most `most`. */
static LLVMValueRef trips_in_range(lower *g, uint32_t i, LLVMValueRef most)
{
    const qn_inst *x = &g->k->inst[i];
    LLVMValueRef n = qn__smax(g, most, qn__const_i64(g, 0));
    uint32_t begin = x->region[0], end = x->region[1], value;
    for (uint32_t next = i; next; end = next ? g->k->inst[next].region[1] : end) {
        next = next_condition(g, begin, end, &value);
        n = within_bounds(g, i, value, n);
        begin = next ? g->k->inst[next].region[0] : begin;
    }
    FOR_ACCESSES (g->k, site, access)
        if (access >= x->region[0] && access < x->region[2])
            n = within_view(g, i, access, n);
    return n;
}

/** Whether a condition holds in the lanes of part p, without bounds, which hold; NULL: it does. */
static LLVMValueRef holds(lower *g, uint32_t i, uint32_t value, int p)
{
    uint32_t of[MOST_CONDITIONS], low, high;
    int64_t by;
    const int n_conditions = conditions_of(g, value, of);
    LLVMValueRef all = NULL;
    for (int m = 0; m < n_conditions; m++)
        if (!is_bound(g, i, of[m], &low, &high, &by))
            all = qn__mask_and(g, all, qn__vector(g, of[m], p));
    return all;
}

/** Emits the condition for the trips of a step: i64, whose bit l is set where lane l goes on; the
 * bits beyond the lanes are not. */
static LLVMValueRef lower_conditions(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    LLVMValueRef mask[MOST_PARTS] = {NULL}, all = qn__const_i64(g, 0);
    uint32_t begin = x->region[0], end = x->region[1], value;
    for (uint32_t next = i; next;) {
        next = next_condition(g, begin, end, &value);
        qn__lower_region(g, begin, next ? next : end);
        FOR_PARTS(g, p)
            mask[p] = qn__mask_and(g, mask[p], holds(g, i, value, p));
        begin = next ? g->k->inst[next].region[0] : begin;
        end = next ? g->k->inst[next].region[1] : end;
    }
    FOR_PARTS (g, p) {
        LLVMValueRef own = qn__mask_and(g, mask[p], g->tail_mask[p]);
        if (!own)
            own = LLVMConstAllOnes(qn__vector_of(g, g->i1));
        own = LLVMBuildZExt(g->b, qn__mask_bits(g, own), g->i64, "");
        own = LLVMBuildShl(g->b, own, qn__const_i64(g, p / g->jam_max * g->width), "");
        all = LLVMBuildOr(g->b, all, own, "");
    }
    return all;
}

/** How many lanes from the first one on are set. */
static LLVMValueRef leading(lower *g, LLVMValueRef bits)
{
    return qn__first_set(g, LLVMBuildNot(g->b, bits, ""));
}

/** The lanes of a `while` while they are emitted. */
typedef struct search {
    uint32_t inst;
    combined c;
    LLVMValueRef all; /* trips in range */
    LLVMValueRef step, ran; /* at the head: whole steps so far, and their trips */
    LLVMBasicBlockRef end, done;
    LLVMValueRef found; /* trips until a lane did not go on, from block found_at; NULL: see `end` */
    LLVMBasicBlockRef found_at;
} search;

/** Whole steps, as long as all lanes go on. Stands at s->end then, where s->step and the parts of
 * sums are those of the last step but the one that ended them. */
static void lower_whole_steps(lower *g, search *s)
{
    combined *c = &s->c;
    const int64_t step = (int64_t)g->width * g->unroll;
    LLVMValueRef most = LLVMBuildUDiv(g->b, s->all, qn__const_i64(g, step), "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), head = qn__new_block(g, "lanes"),
                      go_on = qn__new_block(g, "all"), latch;
    pace own;
    carry values = {.of = NULL};
    LLVMBuildBr(g->b, head);
    qn__level_open(g, false, true, false);
    LLVMPositionBuilderAtEnd(g->b, head);
    s->step = qn__const_i64(g, 0);
    qn__carry(g, &values, &s->step, 1);
    qn__pace_open(g, &own, most, INT64_MAX);
    for (int m = 0; m < c->n_sums; m++)
        FOR_PARTS(g, p)
            qn__carry(g, &values, &c->acc[m][p], 1);
    s->ran = LLVMBuildMul(g->b, s->step, qn__const_i64(g, step), "");
    qn__pace_test(g, &own, s->step, s->end);
    qn__set_index(g, g->block->lane_dim, s->ran);
    set_carried(g, c->r, c->n_sums, c->acc);
    LLVMValueRef bits = lower_conditions(g, s->inst),
                 all = qn__const_i64(g, step == 64 ? -1 : (INT64_C(1) << step) - 1);
    s->found_at = LLVMGetInsertBlock(g->b);
    s->found = c->n_sums ? NULL : LLVMBuildAdd(g->b, s->ran, leading(g, bits), "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, bits, all, ""), go_on,
                    s->found ? s->done : s->end);
    LLVMPositionBuilderAtEnd(g->b, go_on);
    if (c->n_sums)
        lower_body(g, c->r, c->n_sums, c->acc);
    s->step = LLVMBuildAdd(g->b, s->step, qn__const_i64(g, 1), "");
    latch = LLVMGetInsertBlock(g->b);
    qn__carry_close(&values, before, latch);
    qn__carry_end(&values);
    LLVMBuildBr(g->b, head);
    qn__pace_close(g, &own, before, head, latch);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, s->end);
}

/** One more step, of the trips in range behind the whole ones: those of its lanes that go on. The
 * trips in all. */
static LLVMValueRef lower_last_step(lower *g, search *s)
{
    const int64_t step = (int64_t)g->width * g->unroll;
    LLVMValueRef outer[MOST_PARTS], left = LLVMBuildSub(g->b, s->all, s->ran, "");
    memcpy(outer, g->mask, sizeof outer);
    qn__keep_first(g, qn__umin(g, left, qn__const_i64(g, step)));
    qn__set_index(g, g->block->lane_dim, s->ran);
    set_carried(g, s->c.r, s->c.n_sums, s->c.acc);
    LLVMValueRef n = leading(g, lower_conditions(g, s->inst));
    if (s->c.n_sums) {
        memcpy(g->mask, outer, sizeof outer);
        qn__keep_first(g, n);
        lower_body(g, s->c.r, s->c.n_sums, s->c.acc);
    }
    memset(g->tail_mask, 0, sizeof g->tail_mask);
    memcpy(g->mask, outer, sizeof outer);
    return LLVMBuildAdd(g->b, s->ran, n, "");
}

LLVMValueRef qn__lanes_while(lower *g, uint32_t i, LLVMValueRef most, yields *carried)
{
    const qn_inst *x = &g->k->inst[i];
    search s = {.inst = i, .end = qn__new_block(g, "end"), .done = qn__new_block(g, "done")};
    s.all = trips_in_range(g, i, most);
    FOR_ACCESSES (g->k, site, access)
        g->covered[site] |= access >= x->region[0] && access < x->region[2];
    outside o = qn__enter_lanes(g, &g->trip_block);
    open_combined(g, i, &s.c);
    lower_whole_steps(g, &s);
    qn__level_open(g, true, false, false);
    LLVMValueRef ran = g->block->tail == QN_TAIL_MASK ? lower_last_step(g, &s) : s.ran;
    LLVMBasicBlockRef last = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, s.done);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, s.done);
    if (s.found)
        ran = qn__phi(g, s.found, s.found_at, ran, last);
    close_combined(g, &s.c, ran, carried);
    qn__leave_lanes(g, &o);
    qn__uncover(g, i);
    return ran;
}
