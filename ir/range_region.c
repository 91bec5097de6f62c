/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_region.c: intervals by loops and branches, for ir/range.c. What a loop carries grows by the
 * same numbers in each trip; where a region runs, the conditions around it hold. Of u64, whose
 * intervals are those of i64, conditions say nothing.
 */
#include "ir/range.h"

enum { MOST_DEPTH = 4, MOST_CONDITIONS = 8 }; /* of values and conditions that are looked through */

/* ---------------------------------------------------------------- what loops carry */

static bool is_integer_const(const qn_kernel *k, uint32_t i)
{
    return k->inst[i].op == QN_I_CONST && qn__is_integer(k->inst[i].type);
}

static bool added(const qn_kernel *k, uint32_t i, uint32_t carried, int depth, qn_interval *out);

static bool added_by_either(const qn_kernel *k, uint32_t a, uint32_t b, uint32_t carried, int depth,
                            qn_interval *out)
{
    qn_interval x, y;
    if (!added(k, a, carried, depth, &x) || !added(k, b, carried, depth, &y))
        return false;
    *out = (qn_interval){x.low < y.low ? x.low : y.low, x.high > y.high ? x.high : y.high, false};
    return true;
}

/** What value i is above the carried one; false: something else. */
static bool added(const qn_kernel *k, uint32_t i, uint32_t carried, int depth, qn_interval *out)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    *out = (qn_interval){0, 0, false};
    if (i == carried)
        return true;
    if (depth == 0)
        return false;
    if (x->op == QN_I_RESULT && k->inst[arg[0]].op == QN_I_IF) {
        const qn_inst *owner = &k->inst[arg[0]];
        return owner->region[1] != owner->region[2] &&
               added_by_either(k, qn__args(k, owner->region[1] - 1)[x->imm],
                               qn__args(k, owner->region[2] - 1)[x->imm], carried, depth - 1, out);
    }
    if (x->op < QN_I_PURE)
        return false;
    int op = qn__pure(x);
    if (op == QN_OP_select)
        return added_by_either(k, arg[1], arg[2], carried, depth - 1, out);
    uint32_t from = op == QN_OP_add && is_integer_const(k, arg[0]) ? arg[1] : arg[0];
    uint32_t by = from == arg[0] && x->n_args > 1 ? arg[1] : arg[0];
    if ((op != QN_OP_add && op != QN_OP_sub) || !is_integer_const(k, by) ||
        !added(k, from, carried, depth - 1, out))
        return false;
    int64_t n = (int64_t)k->inst[by].imm;
    bool overflows = op == QN_OP_add ? __builtin_add_overflow(out->low, n, &out->low) ||
                                           __builtin_add_overflow(out->high, n, &out->high)
                                     : __builtin_sub_overflow(out->low, n, &out->low) ||
                                           __builtin_sub_overflow(out->high, n, &out->high);
    return !overflows;
}

bool qn__carried_range(const qn_kernel *k, const qn_interval *value, uint32_t i, qn_interval *out)
{
    const qn_inst *x = &k->inst[i], *loop = &k->inst[x->parent];
    const uint32_t *arg = qn__args(k, x->parent);
    bool is_while = loop->op == QN_I_WHILE;
    qn_interval step;
    int64_t trips = is_while ? value[arg[0]].high : 0, low, high;
    if ((!is_while && loop->op != QN_I_FOR) || !qn__is_integer(x->type) || x->type == QN_U64)
        return false;
    if (!is_while && __builtin_sub_overflow(value[arg[1]].high, value[arg[0]].low, &trips))
        return false;
    if (!added(k, qn__args(k, loop->region[2] - 1)[x->imm], i, MOST_DEPTH, &step))
        return false;
    trips = trips > 0 ? trips : 0;
    *out = value[arg[(is_while ? 1 : 2) + x->imm]];
    if (__builtin_mul_overflow(step.low < 0 ? step.low : 0, trips, &low) ||
        __builtin_mul_overflow(step.high > 0 ? step.high : 0, trips, &high) ||
        __builtin_add_overflow(out->low, low, &out->low) ||
        __builtin_add_overflow(out->high, high, &out->high))
        return false;
    qn_interval all = qn__interval_of_type(x->type);
    return out->low >= all.low && out->high <= all.high;
}

/* ---------------------------------------------------------------- where conditions hold */

/** A value whose interval conditions make smaller. */
typedef struct narrowed {
    const qn_kernel *k;
    const qn_interval *value; /* of all instructions */
    uint32_t of;
    qn_interval now;
} narrowed;

static void at_most(narrowed *s, int64_t bound, int64_t less)
{
    if (!__builtin_sub_overflow(bound, less, &bound) && bound < s->now.high)
        s->now.high = bound;
}

static void at_least(narrowed *s, int64_t bound, int64_t more)
{
    if (!__builtin_add_overflow(bound, more, &bound) && bound > s->now.low)
        s->now.low = bound;
}

/** A comparison holds, or, as `holds` says, does not. */
static void compare(narrowed *s, int op, const uint32_t *arg, bool holds)
{
    bool is_first = arg[0] == s->of;
    qn_interval other = s->value[arg[is_first]];
    bool is_below = op == QN_OP_lt || op == QN_OP_le, is_strict = op == QN_OP_lt || op == QN_OP_gt;
    int type = s->k->inst[s->of].type;
    if ((!is_first && arg[1] != s->of) || !qn__is_integer(type) || type == QN_U64)
        return;
    if (op == (holds ? QN_OP_eq : QN_OP_ne)) {
        at_most(s, other.high, 0);
        at_least(s, other.low, 0);
    }
    if (op == (holds ? QN_OP_ne : QN_OP_eq) && other.low == other.high) { /* not at an end */
        if (s->now.low == other.low)
            at_least(s, other.low, 1);
        if (s->now.high == other.low)
            at_most(s, other.low, 1);
    }
    if (!is_below && op != QN_OP_gt && op != QN_OP_ge)
        return;
    if (is_below == (is_first == holds))
        at_most(s, other.high, is_strict == holds);
    else
        at_least(s, other.low, is_strict == holds);
}

static bool is_bool(const qn_kernel *k, uint32_t i, bool is_true)
{
    return k->inst[i].op == QN_I_CONST && k->inst[i].type == QN_BOOL &&
           (k->inst[i].imm != 0) == is_true;
}

static void suppose(narrowed *s, uint32_t condition, bool holds, int depth)
{
    const qn_kernel *k = s->k;
    const qn_inst *x = &k->inst[condition];
    const uint32_t *arg = qn__args(k, condition);
    if (depth == 0)
        return;
    if (x->op == QN_I_RESULT && k->inst[arg[0]].op == QN_I_IF) { /* `and`, `or` of a language */
        const qn_inst *owner = &k->inst[arg[0]];
        if (owner->region[1] == owner->region[2])
            return;
        uint32_t yes = qn__args(k, owner->region[1] - 1)[x->imm],
                 no = qn__args(k, owner->region[2] - 1)[x->imm];
        bool is_other = is_bool(k, holds ? no : yes, !holds);
        if (is_other) {
            suppose(s, qn__args(k, arg[0])[0], holds, depth - 1);
            suppose(s, holds ? yes : no, holds, depth - 1);
        }
        return;
    }
    if (x->op < QN_I_PURE)
        return;
    int op = qn__pure(x);
    if (op == QN_OP_not)
        suppose(s, arg[0], !holds, depth - 1);
    else if (x->type == QN_BOOL && op == (holds ? QN_OP_and : QN_OP_or)) {
        suppose(s, arg[0], holds, depth - 1);
        suppose(s, arg[1], holds, depth - 1);
    } else if (qn__op_info[op].rule == QN_RULE_COMPARE)
        compare(s, op, arg, holds);
}

/** What holds: the conditions around instruction `at`, or, where that is 0, one of a select. */
typedef struct place {
    uint32_t at, condition;
    bool holds;
} place;

static void suppose_place(narrowed *s, const place *p)
{
    const qn_kernel *k = s->k;
    if (!p->at)
        suppose(s, p->condition, p->holds, MOST_CONDITIONS);
    for (uint32_t inner = p->at, r = k->inst[p->at].parent; p->at && r;
         inner = r, r = k->inst[r].parent) {
        const qn_inst *owner = &k->inst[r];
        if (owner->op == QN_I_IF)
            suppose(s, qn__args(k, r)[0], inner < owner->region[1], MOST_CONDITIONS);
        else if (owner->op == QN_I_WHILE && inner >= owner->region[1])
            suppose(s, qn__args(k, owner->region[1] - 1)[0], true, MOST_CONDITIONS);
    }
}

/** Nothing where conditions that exclude one another hold: what never runs has no values, and
 * nothing is computed of it. */
static qn_interval range_at(const qn_kernel *k, const qn_interval *value, uint32_t i,
                            const place *p, int depth)
{
    const qn_interval nothing = {INT64_MAX, INT64_MIN, false};
    const qn_inst *x = &k->inst[i];
    narrowed s = {k, value, i, value[i]};
    if (depth > 0 && qn__is_integer(x->type) && x->type != QN_U64 && x->op >= QN_I_PURE) {
        qn_interval operand[3] = {{0}}, made;
        for (int n = 0; n < x->n_args && n < 3; n++) {
            uint32_t arg = qn__args(k, i)[n];
            operand[n] = range_at(k, value, arg, p, depth - 1);
            if (qn__is_integer(k->inst[arg].type) && operand[n].low > operand[n].high)
                return nothing;
        }
        made = qn__interval_of_operands(k, i, operand);
        at_most(&s, made.high, 0);
        at_least(&s, made.low, 0);
    }
    suppose_place(&s, p);
    return s.now;
}

qn_interval qn__range_at(const qn_kernel *k, const qn_interval *value, uint32_t i, uint32_t at)
{
    return k->inst[at].parent ? range_at(k, value, i, &(place){.at = at}, MOST_DEPTH) : value[i];
}

qn_interval qn__range_of_side(const qn_kernel *k, const qn_interval *value, uint32_t select,
                              int side)
{
    const uint32_t *arg = qn__args(k, select);
    return range_at(k, value, arg[side], &(place){0, arg[0], side == 1}, MOST_DEPTH);
}
