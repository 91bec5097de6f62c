/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trips.c: which loops of the body may have their trips as lanes. That a trip stores to other
 * elements than its neighbours follows from an index that differs between trips: no two index
 * tuples of a view that is stored to are one element, or so many trips apart. What such a loop
 * carries is a number that moves by a constant, or made by one operation of integers that may be
 * done in any order: then each lane has a part of it.
 */
#include "jit/analysis/analyse.h"

/** Whether a value may differ between trips of a `for` whose index is `index`: those of one step of
 * the lanes, which are in one trip of each loop inside, or any. *left: instructions that may still
 * be looked at. */
static bool may_differ(const qn_kernel *k, uint32_t value, uint32_t index, bool in_one_step,
                       int *left)
{
    const qn_inst *x = &k->inst[value];
    if (value < index)
        return false;
    if (x->op == QN_I_INDEX && value != index && in_one_step && --*left >= 0)
        return may_differ(k, qn__args(k, x->parent)[0], index, true, left);
    if (value == index || !(qn__is_pure(x) || x->op == QN_I_LOAD) || --*left < 0)
        return true;
    for (int n = 0; n < x->n_args; n++)
        if (may_differ(k, qn__args(k, value)[n], index, in_one_step, left))
            return true;
    return false;
}

enum { MOST_STEP = 256 }; /* of indices, from trip to trip */

/* ---------------------------------------------------------------- carried values */

bool qn__is_number(const qn_analysis *a, uint32_t value, int64_t *n)
{
    const qn_inst *x = &a->k->inst[value];
    const qn_affine *f = &a->affine[value];
    const bool is_const = x->op == QN_I_CONST;
    bool is_number = x->type == QN_I64 && !f->sym[0] && !f->sym[1];
    for (int d = 0; d < QN_MAX_RANK; d++)
        is_number = is_number && !f->coef[d];
    *n = is_const ? (int64_t)x->imm : f->constant;
    return is_const ? qn__is_integer(x->type) &&
                          (*n >= 0 || qn__dtype_class(x->type) == QN_CLASS_S)
                    : is_number;
}

int64_t qn__trips_between(int64_t begin, int64_t end, int64_t step)
{
    int64_t length;
    if (end <= begin)
        return 0;
    return __builtin_sub_overflow(end, begin, &length) || step < 1 ? -1 : (length - 1) / step + 1;
}

bool qn__moves_with_trips(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *step)
{
    const qn_kernel *k = a->k;
    const qn_inst *c = &k->inst[value];
    if (c->op != QN_I_CARRIED || c->parent != i || !qn__is_integer(c->type))
        return false;
    const uint32_t next = qn__args(k, k->inst[i].region[2] - 1)[c->imm], *arg = qn__args(k, next);
    const int op = qn__pure(&k->inst[next]);
    const bool is_down = op == QN_OP_sub && arg[0] == value;
    if (!is_down && (op != QN_OP_add || (arg[0] != value && arg[1] != value)))
        return false;
    const uint32_t by = arg[arg[0] == value];
    const bool is_known = (by < i || k->inst[by].op == QN_I_CONST) && qn__is_number(a, by, step);
    *step = is_known && is_down ? qn__wrap_sub(0, *step) : *step;
    return is_known;
}

/** What is known of the values of a loop while they are walked: part[value]: 1 + the number of the
 * carried value that it is a part of; 0: it is none. */
typedef struct parts {
    const qn_analysis *a;
    uint32_t loop;
    uint8_t *part;
    qn_carried *of; /* [number] */
} parts;

/** Whether another combination is the one that carried value `part` - 1 is made by. */
static bool combines(parts *p, uint8_t part, int op)
{
    qn_carried *c = &p->of[part - 1];
    int combine = 0;
    while (combine < QN_N_COMBINES &&
           (!qn__is_reduction_combine(combine) || qn__combine_op(combine) != op))
        combine++;
    bool is_first = c->combine < 0;
    c->combine = is_first ? combine : c->combine;
    return combine < QN_N_COMBINES && c->combine == combine;
}

static bool is_constant(const qn_kernel *k, uint32_t value, uint64_t bits)
{
    return k->inst[value].op == QN_I_CONST && k->inst[value].imm == bits;
}

/** The part that result r of `if` i is; false: it is none, and made of parts. Where a part is the
 * condition, the `if` is an `or` or an `and`. */
static bool part_of_choice(parts *p, uint32_t i, uint32_t r)
{
    const qn_kernel *k = p->a->k;
    const qn_inst *x = &k->inst[i];
    const uint32_t n = (uint32_t)k->inst[r].imm, yes = qn__args(k, x->region[1] - 1)[n],
                   no = qn__args(k, x->region[2] - 1)[n], condition = qn__args(k, i)[0];
    const uint8_t part = p->part[condition];
    p->part[r] = part ? part : p->part[yes];
    if (!part)
        return p->part[yes] == p->part[no];
    const bool is_or = is_constant(k, yes, 1) && !p->part[no],
               is_and = is_constant(k, no, 0) && !p->part[yes];
    return k->inst[r].type == QN_BOOL && (is_or || is_and) &&
           combines(p, part, is_or ? QN_OP_or : QN_OP_and);
}

/** Whether the parts that a region yields are those of what receives them. */
static bool is_yielded(const parts *p, uint32_t yield)
{
    const qn_kernel *k = p->a->k;
    const qn_inst *x = &k->inst[yield], *owner = &k->inst[x->parent];
    const bool is_next = yield == owner->region[2] - 1;
    const bool is_carried = owner->op == QN_I_FOR || (owner->op == QN_I_WHILE && is_next);
    const uint32_t *first = qn__args(k, x->parent) + (owner->op == QN_I_FOR ? 2 : 1);
    bool is = true;
    for (int n = 0; n < x->n_args && owner->op != QN_I_IF; n++) {
        const int own = is_carried && x->parent == p->loop ? (p->of[n].is_step ? 0 : n + 1)
                        : is_carried                       ? p->part[first[n]]
                                                           : 0;
        is = is && p->part[qn__args(k, yield)[n]] == own;
    }
    return is;
}

/** Whether `if` i may run in trips that it does not run in: it stores nothing, loads nothing that
 * only its condition keeps in range, and has no loops, which might be long. */
static bool may_run_anyway(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    for (uint32_t n = i; n < k->inst[i].region[2]; n++) {
        const int op = k->inst[n].op;
        if (op == QN_I_STORE || op == QN_I_FOR ||
            (op == QN_I_LOAD && !a->f->proved[qn__site_of(k, n)] &&
             !qn__is_checked(a->f, k, qn__site_of(k, n))))
            return false;
    }
    return true;
}

/** Finds the part that value r is; false: parts are used in another way. */
static bool find_part(parts *p, uint32_t r)
{
    const qn_kernel *k = p->a->k;
    const qn_inst *x = &k->inst[r];
    const uint32_t *arg = qn__args(k, r);
    int n_parts = 0, at = 0;
    if (x->op == QN_I_YIELD)
        return is_yielded(p, r);
    if (x->op == QN_I_CARRIED && x->parent == p->loop) {
        p->part[r] = p->of[x->imm].is_step ? 0 : (uint8_t)(x->imm + 1);
        return true;
    }
    if (x->op == QN_I_CARRIED && k->inst[x->parent].op == QN_I_FOR)
        p->part[r] = p->part[qn__args(k, x->parent)[2 + x->imm]];
    if (x->op == QN_I_RESULT && k->inst[arg[0]].op == QN_I_IF)
        return part_of_choice(p, arg[0], r);
    if (x->op == QN_I_RESULT && k->inst[arg[0]].op == QN_I_FOR)
        p->part[r] = p->part[qn__args(k, arg[0])[2 + x->imm]];
    for (int n = 0; n < x->n_args; n++)
        if (p->part[arg[n]]) {
            n_parts++;
            at = n;
        }
    if (!n_parts)
        return true;
    if (x->op == QN_I_IF)
        return may_run_anyway(p->a, r);
    if (x->op == QN_I_FOR)
        return !p->part[arg[0]] && !p->part[arg[1]];
    if (x->op < QN_I_PURE || x->n_args < 2)
        return false;
    const int op = qn__pure(x);
    p->part[r] = p->part[arg[at]];
    if (op == QN_OP_select)
        return !p->part[arg[0]] && p->part[arg[1]] == p->part[arg[2]];
    return n_parts == 1 && x->n_args == 2 &&
           (op == QN_OP_sub && at == 0 ? combines(p, p->part[r], QN_OP_add)
                                       : combines(p, p->part[r], op));
}

bool qn__trips_carry(const qn_analysis *a, uint32_t i, qn_carried *out, qn_value_info *value)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[i];
    const int first = x->op == QN_I_FOR ? 2 : 1, n = x->n_args - first;
    uint8_t *part = n > 0 ? qn__zalloc(k->n_insts, 1) : NULL;
    parts p = {.a = a, .loop = i, .part = part, .of = out};
    bool is = n == 0 || part;
    for (uint32_t r = x->region[0]; r < x->region[2] && n > 0; r++)
        if (k->inst[r].op == QN_I_CARRIED && k->inst[r].parent == i) {
            qn_carried *c = &out[k->inst[r].imm];
            *c = (qn_carried){.inst = r, .combine = -1};
            c->is_step = qn__moves_with_trips(a, i, r, &c->step);
            is = is && (qn__is_integer(k->inst[r].type) || k->inst[r].type == QN_BOOL);
        }
    for (uint32_t r = x->region[0]; r < x->region[2] && is && n > 0; r++)
        is = find_part(&p, r);
    for (int m = 0; m < n && is; m++) /* what no trip changes has any neutral part */
        out[m].combine = out[m].combine < 0 ? QN_COMBINE_OR : out[m].combine;
    for (uint32_t r = x->region[0]; r < x->region[2] && is && n > 0 && value; r++)
        value[r].is_part = part[r];
    qn__free(part);
    return is;
}

bool qn__trips_meet(const qn_analysis *a, const qn_trip_lanes *trips, int d)
{
    bool do_meet = false;
    for (int n = 0; n < trips->n; n++) {
        const qn_inst *loop = &a->k->inst[trips->loop[n]];
        for (uint32_t i = loop->region[0]; i < loop->region[2]; i++)
            do_meet |= a->value[i].deps >> d & 1;
    }
    return do_meet;
}

int qn__trips_sums(const qn_analysis *a, uint32_t i)
{
    qn_carried c[QN_MAX_CARRIED];
    int n = a->k->inst[i].n_args - (a->k->inst[i].op == QN_I_FOR ? 2 : 1), sums = 0;
    if (!qn__trips_carry(a, i, c, NULL))
        return -1;
    for (int m = 0; m < n; m++)
        sums += !c[m].is_step;
    return sums > QN_MOST_TRIP_SUMS ? -1 : sums;
}

/* ---------------------------------------------------------------- accesses */

/** Whether an index is that of the trip and what all trips have, whatever loops are inside. */
static bool is_of_trip(const qn_analysis *a, uint32_t value, uint32_t i)
{
    const uint32_t index = a->k->inst[i].region[0];
    int left = 64;
    int64_t by;
    for (int s = 0; s < 2; s++) {
        uint32_t sym = a->affine[value].sym[s];
        if (sym && sym != index && !qn__moves_with_trips(a, i, sym, &by) &&
            may_differ(a->k, sym, index, false, &left))
            return false;
    }
    return true;
}

/** How far an index moves from one trip of a step of the lanes to the next; false if that is not a
 * known constant. */
static bool step_of_index(const qn_analysis *a, uint32_t value, uint32_t i, int64_t *step)
{
    const qn_kernel *k = a->k;
    const qn_affine *x = &a->affine[value];
    const uint32_t index = k->inst[i].region[0];
    const bool is_for = k->inst[i].op == QN_I_FOR;
    int left = 64;
    *step = 0;
    if (a->trips.n) {
        *step = x->coef[qn__trips_dim(k)];
        for (int s = 0; s < 2; s++)
            if (x->sym[s] && a->value[x->sym[s]].shape != QN_UNIFORM)
                return false;
        return true;
    }
    for (int s = 0; s < 2; s++) {
        int64_t by = (int64_t)k->inst[i].imm;
        if ((is_for && x->sym[s] == index) || qn__moves_with_trips(a, i, x->sym[s], &by))
            *step = qn__wrap_add(*step, qn__wrap_mul(x->sym_coef[s], by));
        else if (x->sym[s] && may_differ(k, x->sym[s], index, true, &left))
            return false;
    }
    return true;
}

bool qn__trip_stride(const qn_analysis *a, uint32_t inst, uint32_t i, int64_t *stride)
{
    const qn_kernel *k = a->k;
    const qn_param_fact *param = &a->f->param[k->inst[inst].imm];
    int64_t sum = 0, step;
    for (int r = 0; r < qn__n_indices(k, inst); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const qn_fact *digit = &a->f->digit[dim->first_digit].stride;
        if (dim->n_digits == 0)
            continue;
        if (!step_of_index(a, qn__args(k, inst)[r], i, &step))
            return false;
        if (step && (dim->n_digits != 1 || digit->kind != QN_FACT_EXACT))
            return false;
        sum = qn__wrap_add(sum, step ? qn__wrap_mul(step, digit->value) : 0);
    }
    *stride = sum;
    return true;
}

/** Trips of loop i of which two that access one element, by m and by n, are at least so far from
 * one another; INT64_MAX: no two do. An index of both, which tells elements apart, is a sum that
 * moves from trip to trip, and differs by a constant. Indices are numbers of 64 bits: they do not
 * come back to where they were in fewer than 2^56 trips. */
static int64_t distance_of(const qn_analysis *a, uint32_t i, uint32_t m, uint32_t n)
{
    const qn_kernel *k = a->k;
    int64_t step, most = 1;
    for (int r = 0; r < qn__n_indices(k, m); r++) {
        const uint32_t value = qn__args(k, m)[r];
        const qn_affine *x = &a->affine[value], *y = &a->affine[qn__args(k, n)[r]];
        const int64_t more = qn__wrap_sub(y->constant, x->constant);
        if (a->f->param[k->inst[m].imm].dim[r].n_digits == 0 ||
            !qn__differ_by_constant(x, y) || !is_of_trip(a, value, i) ||
            !step_of_index(a, value, i, &step) || !step || step < -MOST_STEP || step > MOST_STEP ||
            more < INT32_MIN || more > INT32_MAX)
            continue;
        int64_t trips = more % step ? 0 : more / step;
        trips = trips < 0 ? -trips : trips;
        most = trips == 0 ? INT64_MAX : trips > most ? trips : most;
    }
    return most;
}

/** Whether instruction n of loop i may stand beside itself in other trips, whatever it accesses. */
static bool is_plain(const qn_analysis *a, uint32_t i, uint32_t n)
{
    const qn_inst *x = &a->k->inst[n];
    if (x->op == QN_I_REDUCE)
        return qn__order_rule(a->k, n) != QN_STRIPED;
    if (x->op == QN_I_WHILE || x->op == QN_I_ATOMIC || qn__effect(x) == QN_EFFECT_TELL)
        return false;
    if (!qn__is_access(x))
        return true;
    const bool is_clamped = a->f->param[x->imm].checks == QN_CHECKS_CLAMP;
    return !(a->k->param[x->imm].traits & QN_ATOMIC) && !a->k->param[x->imm].has_atomics &&
           !(is_clamped && qn__is_checked(a->f, a->k, qn__site_of(a->k, n))) &&
           (x->parent == i || qn__access_bytes(a->k, n) >= a->f->target->least_masked);
}

bool qn__is_known_before(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *step)
{
    const qn_affine *x = &a->affine[value];
    int64_t by;
    *step = 0;
    if (a->k->inst[value].type != QN_I64 || !step_of_index(a, value, i, step))
        return false;
    for (int s = 0; s < 2; s++)
        if (x->sym[s] >= i && !qn__moves_with_trips(a, i, x->sym[s], &by))
            return false;
    return *step > -MOST_STEP && *step < MOST_STEP;
}

/** Whether trips of `while` i only load, from where is known before it. */
static bool only_loads(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    int64_t step;
    for (uint32_t n = k->inst[i].region[0]; n < k->inst[i].region[2]; n++) {
        const qn_inst *x = &k->inst[n];
        const bool is_loop = x->op == QN_I_FOR || x->op == QN_I_REDUCE;
        if (x->op == QN_I_STORE || is_loop)
            return false;
        for (int r = 0; x->op == QN_I_LOAD && r < qn__n_indices(k, n); r++)
            if (a->f->param[x->imm].dim[r].n_digits > 0 &&
                !qn__is_known_before(a, i, qn__args(k, n)[r], &step))
                return false;
    }
    return true;
}

int64_t qn__trips_at_once(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[i];
    int64_t least = INT64_MAX;
    if ((x->op != QN_I_FOR && x->op != QN_I_WHILE) || a->f->is_ordered || qn__trips_dim(k) < 0 ||
        (x->op == QN_I_WHILE && !only_loads(a, i)))
        return 1;
    for (uint32_t n = x->region[0]; n < x->region[2]; n++)
        if (!is_plain(a, i, n))
            return 1;
    if (qn__trips_sums(a, i) < 0)
        return 1;
    for (uint32_t m = x->region[0]; m < x->region[2]; m++)
        for (uint32_t n = x->region[0]; n < x->region[2] && k->inst[m].op == QN_I_STORE; n++)
            if (qn__is_access(&k->inst[n]) && qn__may_meet(a, k->inst[m].imm, k->inst[n].imm)) {
                int64_t trips = distance_of(a, i, m, n);
                least = trips < least ? trips : least;
            }
    return least;
}
