/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan.c: a plan as a schedule, made by transformations of the kernel as declared.
 */
#include "jit/schedule/from_plan.h"
#include "jit/schedule/from_plan_parts.h"

#include <string.h>

/** Applies a step without verifying it. Access records are made when all loops stand. */
static qn_status apply(maker *m, const qn_step *how, qn_error *err)
{
    if (how->n_axes > QN_MOST_STEP_AXES)
        return qn__fail(err, QN_ERR_INTERNAL, "schedule of a plan: a step of too many loops");
    qn_status status = qn__transforms[how->which].apply(m->x, m->s, how, err);
    if (status == QN_OK && m->s->n_steps < QN_MOST_STEPS)
        m->s->step[m->s->n_steps++] = *how;
    return status;
}

void qn__step(maker *m, const qn_step *how)
{
    if (m->status == QN_OK)
        m->status = apply(m, how, m->err);
}

void qn__step_on(maker *m, int which, qn_axis a)
{
    qn__step(m, &(qn_step){.which = (uint8_t)which, .n_axes = 1, .axis[0] = a});
}

void qn__mark(maker *m, const qn_step *how)
{
    qn_error refused = {0};
    if (m->status == QN_OK)
        (void)apply(m, how, &refused);
}

void qn__add_axis(qn_step *how, qn_axis a)
{
    if (!a.id)
        return;
    if (how->n_axes < QN_MOST_STEP_AXES)
        how->axis[how->n_axes] = a;
    if (how->n_axes <= QN_MOST_STEP_AXES)
        how->n_axes++;
}

/** Adds the loops over the points of a reduce that were not cut, but for that over dimension d. */
static void add_points(const maker *m, uint32_t reduce, int d, qn_step *how)
{
    for (int n = 0; n < m->x->k->inst[reduce].n_args; n++)
        if (qn__dim_of(m->x->k, reduce, n) != d)
            qn__add_axis(how, qn__axis_over(m->s, reduce, qn__dim_of(m->x->k, reduce, n)));
}

/* ---------------------------------------------------------------- tuples */

/** Reduces over one range in one loop, before anything is cut. */
static void join_reduces(maker *m)
{
    uint32_t tuple[QN_MOST_TUPLE + 1];
    int n = 0;
    FOR_TOP_REDUCES (m->x->k, i) {
        tuple[n++] = i;
        if (n > 1 && qn__plan_joins(m->x, m->p, n, tuple)) {
            qn__step(m, &(qn_step){.which = QN_DO_merge, .inst = i});
        } else {
            tuple[0] = i;
            n = 1;
        }
    }
}

/** Whether a reduce has loops of its own: it is the first of its tuple. */
static bool has_loops(const maker *m, uint32_t reduce)
{
    const qn_reduced *r = qn__reduction_of(m->s, reduce);
    return r && r->inst[0] == reduce;
}

/* ---------------------------------------------------------------- cuts */

void qn__split(maker *m, qn_axis a, int n, const int64_t *extent, int tail, qn_axis *part)
{
    qn_step how = {.which = QN_DO_split,
                   .n_axes = 1,
                   .axis[0] = a,
                   .n_numbers = (uint8_t)n,
                   .option = (uint8_t)tail};
    memcpy(how.number, extent, (size_t)n * sizeof *extent);
    qn__step(m, &how);
    for (int i = 0; i <= n && m->status == QN_OK; i++)
        part[i] = qn__axis_part(&m->s->cut[m->s->n_cuts - 1], i);
}

/** Cuts a dimension by all of these extents, of which the last n_inner stand inside. */
static void cut_all(maker *m, int d, int n, const int64_t *extent, int n_inner, int tail)
{
    qn__split(m, m->of[d].digit[0], n, extent, tail, m->of[d].digit);
    m->of[d].n = n + 1;
    m->of[d].n_inner = n_inner;
}

void qn__cut(maker *m, int d, int n, const int64_t *extent, int n_inner, int tail)
{
    int64_t kept[4];
    int n_kept = 0, inner = 0;
    for (int i = 0; i < n; i++)
        if (extent[i] > 1) {
            kept[n_kept++] = extent[i];
            inner += i >= n - n_inner;
        }
    if (n_kept)
        cut_all(m, d, n_kept, kept, inner, tail);
}

/** What follows whole steps of a length of a dimension, by the plan's word. */
static int tail_of(const maker *m, int d, int64_t steps, int rest)
{
    bool is_whole = !m->of[d].tile.id && qn__is_multiple(m->x->f, d, steps) &&
                    (qn__is_exact(m->x->f, d) || (steps & (steps - 1)) == 0);
    if (is_whole)
        return QN_TAIL_NONE;
    const bool may_be_short = m->of[d].tile.id || qn__is_given(m->x->f, d);
    if (rest == QN_TAIL_NONE || (rest == QN_TAIL_OVERLAP && may_be_short))
        return QN_TAIL_SCALAR;
    return rest;
}

static void cut_tiles(maker *m)
{
    const qn_plan *p = m->p;
    for (int n = p->tile_at; n >= 0 && n < p->n_loops; n++) {
        pieces *x = &m->of[p->order[n]];
        int64_t tile = p->tile[p->order[n]];
        qn_axis part[2] = {{0}};
        if (tile <= 0)
            continue;
        qn__split(m, x->digit[0], 1, &tile, QN_TAIL_SCALAR, part);
        x->tile = part[0];
        x->digit[0] = part[1];
    }
}

/** Rows of a transposing kernel, some of which run at a time outside of the steps of the lanes. A
 * chunk of lanes of a thread is outside the rows. */
static void cut_line_ends(maker *m)
{
    const qn_plan *p = m->p;
    const int64_t width = p->width, lanes[] = {p->granule / width, width},
                  rows[] = {p->end_rows / p->jam, p->jam};
    bool is_divided = p->split_dim == p->lane_dim;
    cut_all(m, p->lane_dim, 1 + is_divided, lanes + !is_divided, 1,
            tail_of(m, p->lane_dim, width * (is_divided ? lanes[0] : 1), p->remainder));
    cut_all(m, p->jam_dim, 2, rows, 1, QN_TAIL_SCALAR);
}

/** Strips of the lanes, then steps in them. */
static void cut_strips(maker *m)
{
    const qn_plan *p = m->p;
    int64_t steps = p->strip / ((int64_t)p->width * p->unroll);
    const int64_t several[] = {steps, p->unroll, p->width}, single[] = {steps, p->width};
    bool has_several = p->unroll > 1;
    cut_all(m, p->lane_dim, 2 + has_several, has_several ? several : single, 1 + has_several,
            tail_of(m, p->lane_dim, p->strip, p->remainder));
}

static void cut_steps(maker *m)
{
    const qn_plan *p = m->p;
    int lanes = p->lane_dim;
    if (p->end_rows || p->strip) {
        if (p->end_rows)
            cut_line_ends(m);
        else
            cut_strips(m);
        return;
    }
    if (qn__is_parallel(m->x->k, lanes)) {
        qn__cut(m, lanes, 2, (int64_t[]){p->unroll, p->width}, 2,
                tail_of(m, lanes, p->width * p->unroll, p->remainder));
    }
    if (qn__is_parallel(m->x->k, p->jam_dim) && p->jam_dim != lanes) {
        int64_t blocks = p->row_steps ? p->row_steps : 1;
        qn__cut(m, p->jam_dim, 2, (int64_t[]){blocks, p->jam}, 1,
                tail_of(m, p->jam_dim, blocks * p->jam, p->jam_rest));
    }
    if (p->cross > 1)
        qn__cut(m, p->cross_dim, 1, (int64_t[]){p->cross}, 1,
                tail_of(m, p->cross_dim, p->cross, QN_TAIL_OVERLAP));
}

/* ---------------------------------------------------------------- order and roles */

void qn__order_loops(maker *m, qn_step *order, const int *inside, int n_inside)
{
    for (int n = 0; n < n_inside; n++) {
        const pieces *x = &m->of[inside[n] < 0 ? 0 : inside[n]];
        if (!qn__is_parallel(m->x->k, inside[n]))
            continue;
        for (int i = x->n - x->n_inner; i < x->n; i++) {
            qn__add_axis(order, x->digit[i]);
            m->inner[m->n_inner++] = x->digit[i];
        }
    }
    if (order->n_axes > 1)
        qn__step(m, order);
}

/** All loops around the body: tiles, the dimensions in their order, and inside of them what is
 * emitted together: jammed iterations, then vectors, then lanes. */
static void order_loops(maker *m)
{
    const qn_plan *p = m->p;
    qn_step order = {.which = QN_DO_reorder};
    for (int n = 0; n < p->n_loops; n++) {
        if (p->row_steps && p->order[n] == p->lane_dim)
            qn__add_axis(&order, m->of[p->jam_dim].digit[0]);
        for (int t = n; n == p->tile_at && t < p->n_loops; t++)
            qn__add_axis(&order, m->of[p->order[t]].tile);
        const pieces *x = &m->of[p->order[n]];
        int first = /* it stands before the lanes' steps */
            (p->end_rows || p->row_steps) && p->order[n] == p->jam_dim;
        for (int i = first; i < x->n - x->n_inner; i++) {
            if (p->end_rows && p->order[n] == p->lane_dim && i == x->n - x->n_inner - 1)
                qn__add_axis(&order, m->of[p->jam_dim].digit[0]);
            qn__add_axis(&order, x->digit[i]);
        }
    }
    const int inside[3] = {p->cross > 1 ? p->cross_dim : -1, p->jam_dim, p->lane_dim};
    qn__order_loops(m, &order, inside, inside[2] == inside[1] ? 2 : 3);
    bool has_lanes = p->width > 1 && qn__is_parallel(m->x->k, p->lane_dim);
    for (int n = 0; n < m->n_inner; n++)
        qn__step_on(m, has_lanes && n == m->n_inner - 1 ? QN_DO_vectorize : QN_DO_unroll,
                    m->inner[n]);
}

void qn__move_inside(maker *m, qn_axis a)
{
    const qn_kernel *k = m->x->k;
    if (qn__n_top_reduces(k) == 0)
        return;
    qn__step_on(m, QN_DO_distribute, a);
    FOR_TOP_REDUCES (k, i) {
        qn_step order = {.which = QN_DO_reorder};
        if (!has_loops(m, i))
            continue;
        add_points(m, i, -1, &order);
        qn__add_axis(&order, a);
        qn__step(m, &(qn_step){.which = QN_DO_place, .n_axes = 1, .axis[0] = a, .inst = i});
        qn__step(m, &order);
    }
}

/* ---------------------------------------------------------------- points */

/** Points that are emitted one beside the other. */
static void unroll_points(maker *m)
{
    FOR_TOP_REDUCES (m->x->k, i) {
        qn_step points = {0};
        if (!has_loops(m, i) || m->p->strip || !qn__plan_unrolls_points(m->x, m->p, i))
            continue;
        add_points(m, i, -1, &points);
        for (int n = 0; n < points.n_axes; n++)
            qn__step_on(m, QN_DO_unroll, points.axis[n]);
    }
}

/** Loops over the points of a reduce with that over dimension d inside of all others. */
static void order_points(maker *m, uint32_t reduce, int d)
{
    const qn_kernel *k = m->x->k;
    qn_step order = {.which = QN_DO_reorder};
    if (qn__dim_of(k, reduce, k->inst[reduce].n_args - 1) == d)
        return;
    add_points(m, reduce, d, &order);
    qn__add_axis(&order, qn__axis_over(m->s, reduce, d));
    qn__step(m, &order);
}

/** Lanes over the points of reduces, and blocks of points for threads. */
static void cut_points(maker *m)
{
    const qn_plan *p = m->p;
    const qn_kernel *k = m->x->k;
    int n_shared = 0;
    FOR_REDUCES (k, i) {
        int n = 0;
        const bool is_shared = !k->inst[i].parent && n_shared++ < p->n_shared_reduces;
        if (!has_loops(m, i))
            continue;
        int d = is_shared ? qn__long_dim(k, m->x->f, i, &n) : p->lane_dim;
        bool has_lanes = d == p->lane_dim && qn__may_have_lanes(m->x, i, d) && p->width > 1;
        int64_t lanes = has_lanes ? (int64_t)p->width * p->unroll : 1, extent[3];
        int64_t block = is_shared ? QN_BLOCK_POINTS / lanes : 1;
        qn_axis part[4] = {{0}};
        n = 0;
        if (is_shared)
            extent[n++] = block;
        if (has_lanes && p->unroll > 1)
            extent[n++] = p->unroll;
        if (has_lanes)
            extent[n++] = p->width;
        if (!n)
            continue;
        if (!is_shared)
            order_points(m, i, d);
        qn__split(m, qn__axis_over(m->s, i, d), n, extent,
                  tail_of(m, d, lanes * block,
                          p->remainder == QN_TAIL_MASK ? QN_TAIL_MASK : QN_TAIL_SCALAR),
                  part);
        if (is_shared)
            qn__step_on(m, QN_DO_parallelize, part[0]);
        if (has_lanes && p->unroll > 1)
            qn__step_on(m, QN_DO_unroll, part[n - 1]);
        if (has_lanes)
            qn__step_on(m, QN_DO_vectorize, part[n]);
    }
}

/** Adds loops over the points of a reduce for a strip, outermost first: all other dimensions,
 * blocks, in the striped order partials, then some points at once, whose loop is returned; 0: there
 * are none. */
static qn_axis cut_strip_points(maker *m, uint32_t reduce, qn_step *order)
{
    const qn_kernel *k = m->x->k;
    int d = m->p->jam_dim, jam = m->p->jam, rule = qn__order_rule(k, reduce), n = 0;
    int64_t points = qn__points(k, m->x->f, reduce), block = QN_BLOCK_POINTS, extent[2];
    qn_axis at = qn__axis_over(m->s, reduce, d), part[3] = {{0}};
    add_points(m, reduce, d, order);
    if ((rule == QN_STRIPED || rule == QN_INDEXED) && (points < 0 || points > QN_BLOCK_POINTS)) {
        qn__split(m, at, 1, &block, QN_TAIL_SCALAR, part);
        qn__add_axis(order, part[0]);
        at = part[1];
    }
    if (jam > 1)
        extent[n++] = jam;
    if (rule == QN_STRIPED)
        extent[n++] = jam % 2 ? QN_PARTIALS : QN_PARTIALS / 2;
    if (n) {
        qn__split(m, at, n, extent, QN_TAIL_SCALAR, part);
        at = part[0];
    }
    if (rule == QN_STRIPED)
        qn__add_axis(order, part[n]);
    qn__add_axis(order, at);
    return jam > 1 ? part[1] : (qn_axis){0};
}

/** Sums of a strip in memory: the points outside, several at once inside. In the striped order the
 * two partials that are combined first are made together. */
static void make_strip(maker *m)
{
    const pieces *lanes = &m->of[m->p->lane_dim];
    qn__move_inside(m, lanes->digit[1]);
    FOR_TOP_REDUCES (m->x->k, i) {
        qn_step order = {.which = QN_DO_reorder};
        qn_axis together = cut_strip_points(m, i, &order);
        qn__add_axis(&order, lanes->digit[1]);
        qn__add_axis(&order, together);
        for (int n = 2; n < lanes->n; n++)
            qn__add_axis(&order, lanes->digit[n]);
        qn__step(m, &order);
        if (together.id)
            qn__step_on(m, QN_DO_unroll, together);
        qn__step(m, &(qn_step){.which = QN_DO_accumulate, .inst = i, .option = QN_STORAGE_SCRATCH});
    }
}

/* ---------------------------------------------------------------- trips */

/** Places of a `for` and of the loops around it, outermost first. */
static void open_trips(maker *m, uint32_t i)
{
    if (m->x->k->inst[i].parent)
        open_trips(m, m->x->k->inst[i].parent);
    if (m->status == QN_OK && !qn__reduction_of(m->s, i))
        qn__step(m, &(qn_step){.which = QN_DO_trips, .inst = i});
}

/** Lanes over trips of loops of the body. */
static void cut_trips(maker *m)
{
    qn_trip_lanes trips;
    int most = m->p->trip_width ? qn__plan_trips(m->x, &trips) : 0;
    for (int n = 0; most && n < trips.n; n++) {
        const int64_t width = m->p->trip_width;
        qn_axis part[2] = {{0}};
        open_trips(m, trips.loop[n]);
        qn__split(m, qn__axis_over(m->s, trips.loop[n], -1), 1, &width,
                  m->x->f->target->has_masks ? QN_TAIL_MASK : QN_TAIL_SCALAR, part);
        qn__step_on(m, QN_DO_vectorize, part[1]);
    }
}

/* ---------------------------------------------------------------- threads, accesses */

static void divide(maker *m, int d, int64_t granule)
{
    pieces *x = &m->of[d];
    qn_axis *outer = x->tile.id ? &x->tile : &x->digit[0], part[2] = {{0}};
    if (m->status != QN_OK)
        return;
    int64_t own = qn__axis_weight(m->x, m->s, *outer, NULL), more = own > 0 ? granule / own : 1;
    if (more <= 1 || granule % own) {
        qn__step_on(m, QN_DO_parallelize, *outer);
        return;
    }
    qn__split(m, *outer, 1, &more, QN_TAIL_SCALAR, part);
    qn__step_on(m, QN_DO_parallelize, part[0]);
    if (!x->tile.id)
        x->digit[0] = part[1];
}

/* ---------------------------------------------------------------- all of it */

static void divide_all(maker *m)
{
    const qn_plan *p = m->p;
    if (p->split_dim >= 0 && !p->n_shared_reduces)
        divide(m, p->split_dim, p->granule);
    if (p->second_granule)
        divide(m, p->second_dim, p->second_granule);
}

void qn__pieces_begin(maker *m)
{
    for (int d = 0; d < m->x->k->n_dims; d++) {
        m->of[d].n = 1;
        m->of[d].digit[0] = qn__axis_over(m->s, 0, d);
    }
}

/** All but the marks of accesses. */
static void make(maker *m)
{
    const qn_analysis *x = m->x;
    const qn_plan *p = m->p;
    m->status = qn__schedule_declared(x, m->s, m->err);
    m->s->straight = p->straight == qn__plan_straight(x->k, x->f) ? -1 : p->straight;
    qn__pieces_begin(m);
    join_reduces(m);
    cut_tiles(m);
    cut_steps(m);
    order_loops(m);
    for (int n = m->n_inner - 1; n >= 0; n--)
        qn__move_inside(m, m->inner[n]);
    cut_points(m);
    unroll_points(m);
    if (p->strip)
        make_strip(m);
    divide_all(m);
    cut_trips(m);
    if (m->status == QN_OK)
        m->status = qn__schedule_derive(x, m->s, m->err);
}

qn_status qn__schedule_draft(const qn_analysis *x, const qn_plan *p, qn_schedule *out,
                             qn_error *err)
{
    maker m = {.x = x, .p = p, .s = out, .err = err};
    make(&m);
    qn__mark_accesses(&m);
    return m.status;
}

qn_status qn__schedule_plain(const qn_analysis *x, const qn_plan *p, qn_schedule *out,
                             qn_error *err)
{
    maker m = {.x = x, .p = p, .s = out, .err = err};
    m.status = qn__schedule_loops(x, out, err);
    qn__pieces_begin(&m);
    cut_steps(&m);
    order_loops(&m);
    divide_all(&m);
    return m.status;
}
