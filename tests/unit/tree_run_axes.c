/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_run_axes.c: where the loops of a schedule stand while it runs: positions of axes that are
 * cut, and the iteration that they make.
 */
#include "tests/unit/tree_run_inside.h"

static int64_t clamp(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

static int64_t step_of(const qn_cut *c)
{
    int64_t step = 1;
    for (int n = 1; n < c->n; n++)
        step *= c->extent[n];
    return step;
}

/** Where section `number` begins; number + 1: where it ends. */
static int64_t section_begin(runner *r, const qn_cut *c, int number)
{
    int64_t n = tree_count(r, c->of), at = 0, index;
    for (int m = 0; m < number; m++) {
        const qn_bound *b = &c->bound[m];
        int64_t end = n;
        if (m < c->n - 1 && b->from == QN_FROM_BEGIN)
            end = b->offset;
        else if (m < c->n - 1 && b->from == QN_FROM_END)
            end = n + b->offset;
        else if (m < c->n - 1) {
            int d = qn__axis(r->s, b->axis)->number, own = qn__axis(r->s, c->of)->number;
            tree_resolve(r, b->axis, &index);
            end = index + r->domain->begin[d] + b->offset - r->domain->begin[own];
        }
        end = clamp(end, 0, n);
        at = end > at ? end : at;
    }
    return at;
}

int64_t tree_count(runner *r, qn_axis a)
{
    const qn_axis_info *x = qn__axis(r->s, a);
    int64_t n;
    switch (x->kind) {
    case QN_AXIS_DIM:
    case QN_AXIS_POINT:
        n = r->domain->end[x->number] - r->domain->begin[x->number];
        return n > 0 ? n : 0;
    case QN_AXIS_TRIP:
        for (int p = 0; p < r->n_places; p++)
            if (r->s->reduction[r->place[p]].inst[0] == x->inst)
                return r->trips[r->place[p]];
        return 0;
    default:
        break;
    }
    const qn_cut *c = &r->s->cut[x->cut];
    if (c->kind == QN_CUT_SECTIONS)
        return section_begin(r, c, x->number + 1) - section_begin(r, c, x->number);
    if (x->number > 0)
        return c->extent[x->number];
    n = tree_count(r, c->of);
    return n / step_of(c) + (n % step_of(c) != 0);
}

/** Of a cut whose parts are all running; false: beyond the end. */
static bool resolve_digits(runner *r, const qn_cut *c, int64_t *position)
{
    int64_t part, sum = 0, step = step_of(c), n = tree_count(r, c->of);
    for (int m = 0; m < c->n; m++) {
        int64_t weight = 1;
        for (int i = m + 1; i < c->n; i++)
            weight *= c->extent[i];
        if (!tree_resolve(r, qn__axis_part(c, m), &part))
            return false;
        int64_t begin = part * weight;
        if (m == 0 && c->tail == QN_TAIL_OVERLAP && begin + step > n)
            begin = n - step;
        sum += begin;
    }
    *position = sum;
    if (sum < n)
        return true;
    r->report->outside += c->tail == QN_TAIL_NONE || c->tail == QN_TAIL_OVERLAP;
    return false;
}

/** Whether loops that run now say where axis `a` stands. */
bool tree_is_known(const runner *r, qn_axis a)
{
    if (r->is_live[a.id])
        return true;
    for (int n = 0; n < r->s->n_cuts; n++) {
        const qn_cut *c = &r->s->cut[n];
        int known = 0;
        if (c->of.id != a.id)
            continue;
        for (int m = 0; m < c->n; m++)
            known += tree_is_known(r, qn__axis_part(c, m));
        if (known == (c->kind == QN_CUT_DIGITS ? c->n : 1))
            return true;
    }
    return false;
}

/** The position of an axis that is known; false: beyond its end, in the last step of a cut. */
bool tree_resolve(runner *r, qn_axis a, int64_t *position)
{
    *position = r->position[a.id];
    if (r->is_live[a.id])
        return true;
    for (int n = 0; n < r->s->n_cuts; n++) {
        const qn_cut *c = &r->s->cut[n];
        int known = 0, which = 0;
        if (c->of.id != a.id)
            continue;
        for (int m = 0; m < c->n; m++)
            if (tree_is_known(r, qn__axis_part(c, m))) {
                known++;
                which = m;
            }
        if (c->kind == QN_CUT_DIGITS && known == c->n)
            return resolve_digits(r, c, position);
        if (c->kind == QN_CUT_SECTIONS && known == 1) {
            bool is_inside = tree_resolve(r, qn__axis_part(c, which), position);
            is_inside = is_inside && *position < tree_count(r, qn__axis_part(c, which));
            *position += section_begin(r, c, which);
            return is_inside;
        }
    }
    return true;
}

qn_axis tree_root(const runner *r, int kind, uint32_t inst, int number)
{
    for (uint16_t a = 1; a <= r->s->n_axes; a++)
        if (r->s->axis[a].kind == kind && r->s->axis[a].inst == inst &&
            (kind == QN_AXIS_TRIP || r->s->axis[a].number == number))
            return (qn_axis){a};
    return (qn_axis){0};
}

/* ---------------------------------------------------------------- iterations */

/** Selects the iteration of the loops that run; dimensions whose loops do not all run stand at
 * their begin. False: it is beyond the end of an axis. */
bool tree_select_iteration(runner *r)
{
    const qn_kernel *k = r->x->k;
    int64_t number = 0, position;
    bool is_inside = true;
    for (int d = 0; d < k->n_dims; d++) {
        qn_axis a = tree_root(r, QN_AXIS_DIM, 0, d);
        if (qn__is_reduction(k, d))
            continue;
        position = 0;
        if (tree_is_known(r, a))
            is_inside = tree_resolve(r, a, &position) && is_inside;
        number = number * (r->domain->end[d] - r->domain->begin[d]) + (is_inside ? position : 0);
    }
    if (!is_inside)
        return false;
    r->interp.iteration = (uint64_t)number;
    r->interp.value = r->value + (uint64_t)number * k->n_insts;
    return true;
}

/** The point of the reduce that is placed innermost at level p, or the trip of a `for`. Sets the
 * indices of its dimensions. */
bool tree_select_point(runner *r, int p, int64_t *point)
{
    const qn_kernel *k = r->x->k;
    uint32_t i = r->s->reduction[r->place[p]].inst[0];
    int64_t position;
    *point = 0;
    if (k->inst[i].op == QN_I_FOR)
        return tree_resolve(r, tree_root(r, QN_AXIS_TRIP, i, 0), point) &&
               *point < r->trips[r->place[p]];
    for (int n = 0; n < k->inst[i].n_args; n++) {
        int d = qn__dim_of(k, i, n);
        if (!tree_resolve(r, tree_root(r, QN_AXIS_POINT, i, d), &position))
            return false;
        r->interp.value[k->dim[d]] = (uint64_t)(r->domain->begin[d] + position);
        *point = *point * (r->domain->end[d] - r->domain->begin[d]) + position;
    }
    return true;
}

static bool agrees(runner *r, qn_axis a, int64_t position);

/** Whether all parts of a position of an axis that was cut agree. */
static bool digits_agree(runner *r, const qn_cut *c, int64_t position)
{
    for (int m = c->n - 1; m > 0; m--) {
        if (!agrees(r, qn__axis_part(c, m), position % c->extent[m]))
            return false;
        position /= c->extent[m];
    }
    return agrees(r, c->first, position);
}

/** Whether an iteration of dimension axis a at `position` is among those that run, as far as loops
 * say. */
static bool agrees(runner *r, qn_axis a, int64_t position)
{
    int64_t here;
    if (tree_is_known(r, a))
        return tree_resolve(r, a, &here) && here == position;
    for (int n = 0; n < r->s->n_cuts; n++) {
        const qn_cut *c = &r->s->cut[n];
        int64_t step = c->kind == QN_CUT_DIGITS ? step_of(c) : 1, at;
        qn_axis first = c->first;
        if (c->of.id != a.id)
            continue;
        for (int m = 0; m < c->n && c->kind == QN_CUT_SECTIONS; m++) {
            int64_t begin = section_begin(r, c, m);
            if (tree_is_known(r, qn__axis_part(c, m)) &&
                (position < begin || position >= section_begin(r, c, m + 1) ||
                 !agrees(r, qn__axis_part(c, m), position - begin)))
                return false;
        }
        if (c->kind == QN_CUT_SECTIONS)
            continue;
        if (c->tail != QN_TAIL_OVERLAP) {
            if (!digits_agree(r, c, position))
                return false;
            continue;
        }
        if (!tree_is_known(r, first)) /* an iteration may be in two steps */
            continue;
        if (!tree_resolve(r, first, &at))
            return false;
        int64_t begin = at * step, all = tree_count(r, c->of);
        begin = begin + step > all ? all - step : begin;
        if (position < begin || position >= begin + step)
            return false;
    }
    return true;
}

/** Calls for the iterations that agree with the loops that run, in order: of those that begin as
 * `before` says in the dimensions below d. The positions of one dimension agree or not whatever the
 * others are. */
static void visit_agreeing(runner *r, int d, int64_t before,
                           void (*call)(runner *r, int64_t iteration, int reduction), int reduction)
{
    const qn_kernel *k = r->x->k;
    while (d < k->n_dims && qn__is_reduction(k, d))
        d++;
    if (d == k->n_dims) {
        call(r, before, reduction);
        return;
    }
    int64_t n = r->domain->end[d] - r->domain->begin[d];
    for (int64_t position = 0; position < n; position++)
        if (agrees(r, tree_root(r, QN_AXIS_DIM, 0, d), position))
            visit_agreeing(r, d + 1, before * n + position, call, reduction);
}

/** Calls for all iterations that agree with the loops that run. */
void tree_for_iterations(runner *r, void (*call)(runner *r, int64_t iteration, int reduction),
                         int reduction)
{
    visit_agreeing(r, 0, 0, call, reduction);
}
