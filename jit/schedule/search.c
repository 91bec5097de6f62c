/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c: chooses among plans by their estimates. The rules (plan.c) make a plan; the others are
 * made by the same rules with one field fixed, in stages: lanes, trips, rows, width, steps. Each
 * starts from the best plan so far. Data in, data out; knows no LLVM.
 */
#include "jit/analysis/straighten.h"
#include "jit/schedule/budget.h"
#include "jit/schedule/estimate.h"
#include "jit/schedule/from_plan.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/search.h"

#include <string.h>

/* As QN_OTHER_FORM, of plans that differ in a number only. */
#define OTHER_STEPS 0.95
/* Of the core's time: what caches move may be a little longer; what comes from behind the second
 * cache must be hardly anything. */
#define MOST_MOVED 1.33
#define MOST_FAR 0.125
/* Units of code (budget.h) up to which a plan may have more than that of the rules: compiling takes
 * as long as there is code. */
enum { MOST_UNITS = 400, MOST_STRAIGHT_UNITS = 1500 };

typedef struct search {
    const qn_kernel *k;
    qn_facts f;              /* the caller's, but for the fields of the plan */
    qn_planned *of;          /* the best plan so far, and its draft */
    qn_schedule *s;          /* room for that of another one */
    qn_plan *best;           /* that of `of` */
    qn_plan_options options; /* by which it was made */
    qn_estimate least;
    int64_t most_units; /* of code */
} search;

/** Whether a plan is chosen for the way to memory: estimates do not tell it from others. */
static bool is_for_memory(const qn_plan *p)
{
    return p->strip || p->tile_at >= 0;
}

/** Whether estimates tell a plan from others: transposes in registers take longer than theirs. */
static bool is_modelled(const qn_plan *p)
{
    return !p->transpose && !is_for_memory(p);
}

/** Whether the caller fixes a field that the search would choose, or that decides about one. */
static bool is_fixed(const qn_plan_options *o)
{
    const int32_t field[] = {o->order[0],  o->lane_dim, o->width,     o->unroll,
                             o->jam_dim,   o->jam,      o->cross_dim, o->cross,
                             o->transpose, o->pack,     o->strip,     o->tile};
    bool is = false;
    for (size_t n = 0; n < sizeof field / sizeof field[0]; n++)
        is |= field[n] != 0;
    return is;
}

/** The estimate of a plan, of which *draft becomes the schedule; false: there is none. */
static bool estimate(const search *s, const qn_plan *p, qn_schedule *draft, qn_estimate *out)
{
    qn_error why = {0};
    return qn__schedule_draft(&s->of->analysis, p, draft, &why) == QN_OK &&
           qn__schedule_estimate(&s->of->analysis, draft, out, &why) == QN_OK;
}

/** Whether an estimate is below a part of the least. Scalar code moves the bytes that it moves with
 * lanes of trips: the core's time tells these apart. */
static bool is_below(const search *s, const qn_plan *p, const qn_estimate *e, double part)
{
    const int lanes = s->best->lane_dim;
    bool are_trips = p->trip_width && (lanes < 0 || qn__is_reduction(s->k, lanes));
    return e->cycles < (are_trips ? 1 : part) * s->least.cycles &&
           (!are_trips || e->core < part * s->least.core);
}

/** Takes the plan that the rules make of `options`, with so many lanes of trips, if its cycles are
 * below `part` of the least; whether they were. */
static bool try_with(search *s, const qn_plan_options *options, int trip_width, double part)
{
    qn_plan p;
    qn_estimate e;
    qn_analysis of = s->of->analysis;
    s->f.plan = *options;
    of.f = &s->f;
    qn__plan_by_rules(&of, &p);
    p.trip_width = trip_width;
    if (memcmp(&p, s->best, sizeof p) == 0 || (!is_modelled(&p) && is_modelled(s->best)) ||
        qn__estimate(&s->of->analysis, &p) > s->most_units || !estimate(s, &p, s->s, &e) ||
        !is_below(s, &p, &e, part))
        return false;
    qn_schedule *draft = s->s;
    s->s = s->of->schedule;
    s->of->schedule = draft;
    *s->best = p;
    s->options = *options;
    s->least = e;
    return true;
}

static bool try(search *s, const qn_plan_options *options, double part)
{
    return try_with(s, options, 0, part);
}

/** Whether the core's time counts: only that is told apart by width and steps. */
static bool is_of_core(const search *s)
{
    const qn_estimate *e = &s->least;
    double far = e->transfer[QN_CACHE_SECOND] + e->transfer[QN_CACHE_LAST];
    return e->moved <= MOST_MOVED * e->core && far <= MOST_FAR * e->core;
}

/** Whether some layout has several digits in a dimension: lanes within one are consecutive. */
static bool has_digits(const search *s)
{
    for (int p = 0; p < s->k->n_params; p++)
        for (int r = 0; r < s->k->param[p].rank; r++)
            if (s->f.param[p].dim[r].n_digits > 1)
                return true;
    return false;
}

/** Whether loops of the body run differently in each lane, as data say: how long the longest of
 * some lanes is may be far from what estimates take. */
static bool has_own_trips(const search *s)
{
    const qn_analysis *a = &s->of->analysis;
    bool has = false;
    for (uint32_t i = s->k->body; i < s->k->n_insts && s->best->lane_dim >= 0; i++)
        for (int n = 0; n < 2 && s->k->inst[i].op == QN_I_FOR; n++) {
            uint32_t bound = qn__args(s->k, i)[n];
            has |= a->affine[bound].sym[0] && (a->value[bound].deps >> s->best->lane_dim & 1);
        }
    return has;
}

/** Scalar code, and lanes along each dimension, where tiles may be shorter than a register also
 * fewer of them. */
static void try_lanes(search *s)
{
    qn_plan_options o = s->options;
    int32_t most = has_digits(s) ? s->f.target->vector_bytes : 0;
    o.lane_dim = -1;
    (void)try(s, &o, has_own_trips(s) ? 1 : QN_OTHER_FORM);
    for (int d = 0; d < s->k->n_dims; d++) {
        o.lane_dim = d + 1;
        o.width = 0;
        if (!qn__plan_may_be_lanes(&s->of->analysis, d))
            continue;
        (void)try(s, &o, QN_OTHER_FORM);
        for (o.width = most / 4; o.width >= QN_LEAST_WIDTH; o.width /= 2)
            (void)try(s, &o, QN_OTHER_FORM);
    }
}

/** Trips of the body's loops as lanes, in scalar code; also half a register of them. */
static void try_trips(search *s, const qn_plan_options *options, int width)
{
    double part = QN_OTHER_FORM;
    for (; width >= QN_LEAST_WIDTH && try_with(s, options, width, part); width /= 2)
        part = OTHER_STEPS;
}

/** Those, and points of reduces as lanes beside them. */
static void try_inner_lanes(search *s)
{
    qn_trip_lanes trips;
    qn_plan_options o = s->options;
    const int width = qn__plan_trips(&s->of->analysis, &trips);
    o.lane_dim = -1;
    o.unroll = o.jam = 1;
    try_trips(s, &o, width);
    for (int d = 0; d < s->k->n_dims && width; d++) {
        o.lane_dim = d + 1;
        if (qn__is_reduction(s->k, d) && qn__plan_may_be_lanes(&s->of->analysis, d) &&
            !qn__trips_meet(&s->of->analysis, &trips, d))
            try_trips(s, &o, width);
    }
}

/** Whether the body has loops: what they carry is in registers, under the masks of all vectors. */
static bool has_loops(const qn_kernel *k)
{
    return qn__has_insts(k, k->body, k->n_insts, 1u << QN_I_FOR | 1u << QN_I_WHILE);
}

/** Whether more lanes than a register has of the widest type may gain: narrower values fill their
 * registers then. What is put into place is so by registers. */
static bool may_widen(const search *s)
{
    const qn_analysis *a = &s->of->analysis;
    bool is_narrow = false, is_plain = !has_loops(s->k);
    int64_t stride;
    FOR_ACCESSES (s->k, n, i)
        is_plain = is_plain && s->best->lane_dim >= 0 &&
                   qn__access_stride(a, i, s->best->lane_dim, &stride) &&
                   (stride == 0 || stride == 1);
    for (uint32_t i = s->k->body; is_plain && i < s->k->n_insts; i++)
        is_narrow |=
            a->value[i].at * s->best->width <= 4 * s->f.target->vector_bytes && a->value[i].at;
    return is_narrow;
}

/** More lanes, or half a register of them, which lies across lines half as often: with as many
 * vectors in a step, or as many iterations. */
static void try_width(search *s)
{
    bool is_better = may_widen(s);
    qn_plan_options o = s->options;
    for (o.width = 2 * s->best->width; is_better && o.width <= QN_MOST_LANES; o.width *= 2) {
        o.unroll = s->best->unroll > 1 ? s->best->unroll / 2 : 1;
        is_better = try(s, &o, OTHER_STEPS);
    }
    o = s->options;
    is_better = s->best->lane_dim >= 0;
    for (o.width = s->best->width / 2; is_better && o.width >= QN_LEAST_WIDTH; o.width /= 2) {
        o.unroll = s->options.unroll;
        is_better = try(s, &o, OTHER_STEPS);
        o.unroll = 2 * s->best->unroll;
        is_better = is_better || (o.unroll <= MOST_UNROLL && try(s, &o, OTHER_STEPS));
    }
}

/** Whether a row is as long as a step of so many vectors. */
static bool has_step(const search *s, int unroll)
{
    int64_t row = qn__usual_trips(&s->f, s->best->lane_dim, -1);
    return row < 0 || row >= (int64_t)unroll * s->best->width;
}

/** The width of the vectors of a row of the lanes in one step: the chosen one, where the last may
 * be under a mask, or a narrower one, such that all are whole. 0: there is none. */
static int width_of_row(const search *s, int64_t row)
{
    int width = s->best->width;
    if (row % width == 0 || (s->f.target->has_masks && !has_loops(s->k)))
        return width;
    while (row % width && width > QN_LEAST_WIDTH)
        width /= 2;
    return row % width == 0 && is_of_core(s) ? width : 0;
}

/** A row of the lanes in one step. Where threads divide the row, what is left of whole steps is not
 * known, and is a loop over vectors: no step would be run. */
static void try_row(search *s)
{
    qn_plan_options o = s->options;
    int64_t row = s->best->lane_dim >= 0 ? qn__trips(&s->f, s->best->lane_dim) : -1;
    o.width = row > 0 ? width_of_row(s, row) : 0;
    int64_t vectors = o.width ? (row - 1) / o.width + 1 : 0;
    bool is_divided = o.width && s->best->split_dim == s->best->lane_dim &&
                      !qn__is_multiple(&s->f, s->best->lane_dim, o.width);
    if (vectors <= s->best->unroll || vectors > MOST_UNROLL || is_divided)
        return;
    o.unroll = (int32_t)vectors;
    (void)try(s, &o, OTHER_STEPS);
    o.jam = 1;
    if (s->best->jam > 1)
        (void)try(s, &o, OTHER_STEPS);
}

/** No jammed iterations, and more vectors. */
static void try_steps(search *s)
{
    qn_plan_options o = s->options;
    o.jam = 1;
    if (s->best->jam > 1)
        (void)try(s, &o, OTHER_STEPS);
    bool is_better = s->best->lane_dim >= 0;
    while (is_better && s->best->unroll < MOST_UNROLL && has_step(s, 2 * s->best->unroll)) {
        o = s->options;
        o.unroll = 2 * s->best->unroll;
        is_better = try(s, &o, OTHER_STEPS);
    }
}

/** Longer pieces of the rows that are copied: what the lanes load is copied for each piece. Such
 * rows lie beyond the second cache, from where they are read in order. */
static void try_pieces(search *s)
{
    qn_plan_options o = s->options;
    const int64_t all =
        s->best->row_steps ? qn__trips(&s->f, s->best->jam_dim) / s->best->jam + 1 : 0;
    for (o.pack = 2 * s->best->row_steps; o.pack < 2 * all; o.pack *= 2)
        (void)try(s, &o, OTHER_STEPS);
}

/** Improves on the plan of the rules, of which there is a draft. What a call costs before its first
 * iteration, about as much as a wrong guess, hides what shorter ones could gain. */
static void improve(search *s)
{
    if (s->least.cycles <= s->f.machine.wrong_guess)
        return;
    try_lanes(s);
    try_inner_lanes(s);
    try_row(s);
    if (is_of_core(s))
        try_width(s);
    if (is_of_core(s))
        try_steps(s);
    try_pieces(s);
}

/** No transposes in registers. They take longer than their estimate, so what is estimated to take
 * less does: gathers, or other lanes. */
static void try_gathers(search *s)
{
    qn_plan_options o = s->options;
    o.transpose = -1;
    (void)try(s, &o, 1);
    if (s->best->transpose && is_of_core(s))
        try_lanes(s);
}

/** The plan of the rules with one vector in a step, or that of other lanes; scalar code instead of
 * gathers where it takes not much longer. */
static void improve_rim(search *s, double slack)
{
    qn_plan_options o = s->options;
    o.lane_dim = -1;
    if (s->least.cycles > slack)
        try_lanes(s);
    if (s->best->lane_dim >= 0 && qn__has_gather(&s->of->analysis, s->best->lane_dim))
        (void)try(s, &o, 1 + slack / s->least.cycles);
}

/** Whether several reduces are there, none of them in partials, whose sums in memory take longer
 * than the estimate tells. */
static bool has_several_sums(const qn_kernel *k)
{
    int n = 0;
    FOR_TOP_REDUCES (k, i) {
        n++;
        if (qn__order_rule(k, i) == QN_STRIPED)
            return false;
    }
    return n > 1;
}

/** Sums in registers instead of a strip where several reduces may share what they load: a strip
 * loads it for each of them. */
static void try_registers(search *s)
{
    qn_estimate strip, none;
    qn_plan plain;
    qn_analysis of = s->of->analysis;
    qn_schedule *draft = qn__alloc(sizeof *draft);
    s->f.plan.strip = -1;
    of.f = &s->f;
    qn__plan_by_rules(&of, &plain);
    if (draft && estimate(s, s->best, draft, &strip) && estimate(s, &plain, draft, &none) &&
        none.cycles < QN_OTHER_FORM * strip.cycles) {
        *s->best = plain;
        s->options = s->f.plan;
    }
    s->f.plan = s->options;
    qn__free(draft);
}

/** slack: 0, or the cycles that a rim may take longer for less code. A plan of more than most_units
 * has one vector in a step. */
static void search_plan(const qn_kernel *k, const qn_facts *f, double slack, int64_t most_units,
                        qn_planned *out)
{
    search s = {.k = k, .f = *f, .of = out, .best = &out->plan, .options = f->plan};
    qn_analysis of;
    out->analysis = (qn_analysis){.k = k, .f = f};
    bool has_values = !f->target->has_grid && qn__analyse(k, f, -1, 0, &out->analysis),
         is_fixed_plan = f->is_ordered || is_fixed(&f->plan);
    of = out->analysis;
    of.f = &s.f;
    qn__plan_by_rules(&of, &out->plan);
    int64_t units = has_values ? qn__estimate(&out->analysis, &out->plan) : 0;
    if ((slack > 0 || units > most_units) && !is_fixed_plan) {
        s.f.plan.unroll = s.f.plan.jam = 1;
        s.options = s.f.plan;
        qn__plan_by_rules(&of, &out->plan);
        units = qn__estimate(&out->analysis, &out->plan);
    }
    if (has_values && !is_fixed_plan && out->plan.strip && has_several_sums(k))
        try_registers(&s);
    const bool is_near = !is_for_memory(&out->plan);
    if (!has_values || is_fixed_plan || (!is_near && !out->plan.transpose))
        return;
    s.most_units = units > MOST_UNITS ? units : MOST_UNITS;
    s.s = qn__alloc(sizeof *s.s);
    out->schedule = qn__alloc(sizeof *out->schedule);
    out->is_draft = s.s && out->schedule && estimate(&s, &out->plan, out->schedule, &s.least);
    if (out->is_draft && is_modelled(&out->plan) && slack > 0)
        improve_rim(&s, slack);
    else if (out->is_draft && is_modelled(&out->plan))
        improve(&s);
    else if (out->is_draft && is_near)
        try_gathers(&s);
    if (!out->is_draft)
        qn__planned_forget(out);
    qn__free(s.s);
    out->cycles = is_near ? s.least.cycles : 0;
}

void qn__search(const qn_kernel *k, const qn_facts *f, qn_planned *out)
{
    search_plan(k, f, 0, INT64_MAX, out);
}

void qn__plan_rim(const qn_kernel *k, qn_facts *f, double slack, qn_planned *out)
{
    *out = (qn_planned){0};
    qn__collapse(k, f);
    search_plan(k, f, slack, INT64_MAX, out);
}

/* ---------------------------------------------------------------- straight code */

bool qn__copy_both(const qn_kernel *k, const qn_facts *f, qn_kernel **kernel, qn_facts *facts)
{
    *kernel = qn__kernel_copy(k);
    if (*kernel && qn__facts_copy(f, facts))
        return true;
    qn_kernel_release(*kernel);
    *kernel = NULL;
    return false;
}

void qn__straight_release(qn_straight *x)
{
    qn__planned_release(&x->planned);
    qn_kernel_release(x->kernel);
    if (x->kernel)
        qn__facts_release(&x->facts);
    *x = (qn_straight){.kernel = NULL};
}

void qn__straight_take(qn_straight *x, qn_kernel **k, qn_facts *f, qn_planned *p)
{
    *k = x->kernel;
    *f = x->facts;
    *p = x->planned;
    p->analysis.f = f;
    *x = (qn_straight){.kernel = NULL};
}

/** A kernel with short loops as straight code, or as it is (NULL), taken where the estimate is
 * below a part of the least. */
static void try_straight(const qn_kernel *k, const qn_facts *f, const qn_short_loops *loops,
                         double part, qn_straight *best, double *least)
{
    qn_straight x = {.kernel = NULL};
    if (!qn__copy_both(k, f, &x.kernel, &x.facts))
        return;
    if (!loops || qn__straighten(x.kernel, &x.facts, loops)) {
        qn__collapse(x.kernel, &x.facts);
        search_plan(x.kernel, &x.facts, 0, MOST_STRAIGHT_UNITS, &x.planned);
    }
    double cycles = x.planned.cycles;
    bool is_less = cycles > 0 && cycles < part * *least &&
                   qn__estimate(&x.planned.analysis, &x.planned.plan) <= MOST_STRAIGHT_UNITS;
    if (is_less) {
        qn__straight_release(best);
        *best = x;
        *least = cycles;
    } else {
        qn__straight_release(&x);
    }
}

/** A kernel of a GPU with these loops and sides as straight code, and its grid; false: there is
 * none. */
static bool make_thread(const qn_kernel *k, const qn_facts *f, const qn_short_loops *loops,
                        qn_straight *out)
{
    if (!qn__copy_both(k, f, &out->kernel, &out->facts))
        return false;
    if (!qn__straighten(out->kernel, &out->facts, loops)) {
        qn__straight_release(out);
        return false;
    }
    qn__collapse(out->kernel, &out->facts);
    qn__planned_make(out->kernel, &out->facts, &out->planned);
    return true;
}

/** Whether a thread computes one iteration at a time, and accesses memory for it alone. */
static bool is_one_by_one(const qn_grid *p)
{
    return p->team == QN_TEAM_THREAD && p->wide * p->tall == 1 && !p->n_moved && !p->staged;
}

/** A loop behind reduces as a dimension, if a team divides it. Short loops of a thread of a GPU as
 * straight code, where they access memory: what an iteration accesses is known then before it is
 * walked. And both sides of an `if` that loads, where a thread computes several iterations then. */
static bool plan_thread(const qn_kernel *k, const qn_facts *f, qn_straight *out)
{
    qn_short_loops loops = {.has_trips = false};
    bool has_memory = false;
    qn_analysis a;
    if (qn__may_fail(k, f)) /* loops run ahead of their checks */
        return false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        has_memory |= k->inst[i].op == QN_I_FOR &&
                      qn__region_has_memory(k, k->inst[i].region[0], k->inst[i].region[2]);
        loops.has_sides |= qn__may_compute_both(k, f, i);
    }
    if (has_memory && qn__analyse(k, f, -1, 0, &a)) {
        qn_short_loops rest = {.has_trips = false};
        loops.has_trips = qn__has_short_trips(&a);
        const bool is_rest = qn__find_loop(&a, &rest);
        qn__analysis_release(&a);
        if (is_rest && make_thread(k, f, &rest, out)) {
            if (out->planned.grid.rest_dims >> k->n_dims & 1)
                return true;
            qn__straight_release(out);
        }
    }
    if (loops.has_sides) {
        qn_grid plain;
        qn__grid_make(k, f, &plain);
        if (is_one_by_one(&plain) && make_thread(k, f, &loops, out)) {
            if (!is_one_by_one(&out->planned.grid))
                return true;
            qn__straight_release(out);
        }
    }
    loops.has_sides = false;
    return loops.has_trips && make_thread(k, f, &loops, out);
}

/** The estimate of a grid; 0: there is none. */
static double cycles_of_grid(const qn_kernel *k, const qn_facts *f, const qn_grid *grid)
{
    qn_analysis a;
    qn_grid_estimate e = {0};
    if (!qn__analyse(k, f, -1, 0, &a))
        return 0;
    const bool is_known = qn__grid_estimate(&a, grid, &e);
    qn__analysis_release(&a);
    return is_known ? e.cycles : 0;
}

/** All iterations of short dimensions in one thread, where these are records that warps move and
 * the estimate is clearly less: what they load is loaded once, and what they share is computed
 * once. `declared`: the facts before dimensions were merged; f, grid: those of the kernel as it is.
 */
static bool plan_short(const qn_kernel *k, const qn_facts *declared, const qn_facts *f,
                       const qn_grid *grid, qn_straight *out)
{
    qn_short_loops loops = {0};
    uint32_t parallel = 0;
    qn_analysis a;
    if (qn__may_fail(k, f) || is_fixed(&f->plan) || !qn__analyse(k, declared, -1, 0, &a))
        return false;
    loops.dims = qn__dims_between(&a);
    loops.has_trips = qn__has_short_trips(&a);
    qn__analysis_release(&a);
    for (int d = 0; d < k->n_dims; d++)
        parallel |= qn__is_parallel(k, d) ? loops.dims & 1u << d : 0;
    const double least = parallel ? cycles_of_grid(k, f, grid) : 0;
    if (least <= 0 || !make_thread(k, declared, &loops, out))
        return false;
    const double cycles = cycles_of_grid(out->kernel, &out->facts, &out->planned.grid);
    if (out->planned.grid.n_moved && cycles > 0 && cycles < QN_OTHER_FORM * least)
        return true;
    qn__straight_release(out);
    return false;
}

/** Short loops of a kernel as straight code. of: its analysis with the facts as declared. */
static void try_short(const qn_analysis *of, qn_straight *best, double *least)
{
    const qn_kernel *k = of->k;
    qn_short_loops loops = {.dims = qn__dims_between(of), .has_trips = qn__has_short_trips(of)};
    uint32_t parallel = 0;
    for (int d = 0; d < k->n_dims; d++) /* not all of it is run at once */
        loops.dims &= qn__is_given(of->f, d) ? ~(1u << d) : loops.dims;
    for (int d = 0; d < k->n_dims; d++)
        parallel |= qn__is_parallel(k, d) ? loops.dims & 1u << d : 0;
    if (loops.has_trips) /* lanes and accesses are the same without them */
        try_straight(k, of->f, &(qn_short_loops){.has_trips = true}, 1, best, least);
    const double part = best->kernel ? 1 : QN_OTHER_FORM;
    if (loops.dims)
        try_straight(k, of->f, &loops, part, best, least);
    if (parallel && parallel != loops.dims)
        try_straight(k, of->f, &(qn_short_loops){.dims = parallel, .has_trips = loops.has_trips},
                     part, best, least);
}

/** Dimensions whose indices are divided become two, as long as there are such. of: the analysis of
 * the kernel with the facts as declared. */
static void try_cuts(const qn_analysis *of, qn_straight *best, double *least)
{
    enum { MOST_ROUNDS = 3 };
    qn_short_loops loops = {0};
    qn_straight x = {.kernel = NULL};
    qn_analysis a;
    if (!qn__find_cuts(of, loops.cut) || !qn__copy_both(of->k, of->f, &x.kernel, &x.facts))
        return;
    bool is_made = qn__straighten(x.kernel, &x.facts, &loops),
         is_known = is_made && qn__analyse(x.kernel, &x.facts, -1, 0, &a);
    for (int n = 1; n < MOST_ROUNDS && is_known && qn__find_cuts(&a, loops.cut); n++) {
        qn__analysis_release(&a);
        is_known = qn__straighten(x.kernel, &x.facts, &loops) &&
                   qn__analyse(x.kernel, &x.facts, -1, 0, &a);
    }
    if (is_known) {
        try_straight(x.kernel, &x.facts, NULL, QN_OTHER_FORM, best, least);
        try_short(&a, best, least);
        qn__analysis_release(&a);
    }
    qn__straight_release(&x);
}

bool qn__plan_kernel(const qn_kernel *k, qn_facts *f, qn_planned *p, qn_straight *out)
{
    const qn_facts declared = *f;
    *out = (qn_straight){.kernel = NULL};
    *p = (qn_planned){0};
    if (f->target->has_grid && plan_thread(k, f, out))
        return true;
    qn__collapse(k, f);
    if (f->target->has_grid) {
        qn__planned_make(k, f, p);
        return plan_short(k, &declared, f, &p->grid, out);
    }
    qn__search(k, f, p);
    double least = p->cycles;
    if (least <= 0)
        return false;
    qn_analysis of = p->analysis;
    of.f = &declared;
    try_short(&of, out, &least);
    if (!f->has_ranges) /* a range may begin inside of a part */
        try_cuts(&of, out, &least);
    return out->kernel != NULL;
}
