/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.c: walks a schedule and adds up what the core does. Each loop has what one iteration of
 * it asks for, values that do not depend on a loop being computed outside; the longest of what an
 * iteration asks for is its time. What a statement asks for stands in estimate_work.c, what caches
 * move in estimate_bytes.c.
 */
#include "jit/schedule/buffer.h"
#include "jit/schedule/estimate_parts.h"
#include "jit/schedule/plan.h"

#include <string.h>

/* Instructions of a loop: for each iteration, and once. */
enum { LOOP_INSTRUCTIONS = 2, ENTRY_INSTRUCTIONS = 4 };

/* ---------------------------------------------------------------- counts */

static double step_of(const qn_cut *c, int number)
{
    double step = 1;
    for (int n = number + 1; n < c->n; n++)
        step *= (double)c->extent[n];
    return step;
}

/** Whole steps of a cut into digits. */
static double whole_steps(const qn_estimator *e, const qn_cut *c, bool is_stepped)
{
    double n = qn__nominal_count(e, c->of) / step_of(c, 0);
    return is_stepped ? qn__whole(n) : n;
}

double qn__nominal_count(const qn_estimator *e, qn_axis axis)
{
    const qn_axis_info *a = qn__axis(e->s, axis);
    if (a->kind == QN_AXIS_DIM || a->kind == QN_AXIS_POINT)
        return (double)qn__usual_trips(e->x->f, a->number, QN_NOMINAL_EXTENT);
    if (a->kind == QN_AXIS_TRIP)
        return qn__nominal_trips(e->x, a->inst);
    if (a->kind != QN_AXIS_PART) {
        qn_count n = qn__axis_count(e->x, e->s, axis);
        return n.kind == QN_COUNT_EXACT ? (double)n.most : (double)QN_NOMINAL_TRIPS;
    }
    const qn_cut *c = &e->s->cut[a->cut];
    if (c->kind == QN_CUT_SECTIONS) {
        qn_count n = qn__axis_count(e->x, e->s, axis);
        return n.kind == QN_COUNT_EXACT ? (double)n.most : qn__nominal_count(e, c->of) / c->n;
    }
    if (a->number == 0)
        return qn__larger(whole_steps(e, c, e->is_stepped[a->cut]), 1);
    double extent = (double)c->extent[a->number];
    double most = qn__nominal_count(e, c->of) / step_of(c, a->number);
    return e->is_stepped[a->cut] || most > extent ? extent : qn__larger(most, 1);
}

/** The cut into digits that an axis is a part of; NULL: there is none. */
static const qn_cut *digits_of(const qn_estimator *e, qn_axis axis)
{
    const qn_axis_info *a = qn__axis(e->s, axis);
    const qn_cut *c = a->kind == QN_AXIS_PART ? &e->s->cut[a->cut] : NULL;
    return c && c->kind == QN_CUT_DIGITS ? c : NULL;
}

double qn__steps(const qn_estimator *e, qn_axis axis)
{
    const qn_cut *c = digits_of(e, axis);
    bool is_stepped = c && qn__axis(e->s, axis)->number == 0;
    return is_stepped ? qn__larger(whole_steps(e, c, false), 1) : qn__nominal_count(e, axis);
}

/** Which cuts have parts that are emitted together, and whether lanes are fewer than a vector. */
static void mark_stepped(qn_estimator *e)
{
    FOR_LOOPS (e->s, l) {
        const qn_axis_info *a = qn__axis(e->s, l->axis);
        if (qn__is_together(l) && a->kind == QN_AXIS_PART)
            e->is_stepped[a->cut] = true;
    }
    FOR_LOOPS (e->s, l)
        if (l->role == QN_ROLE_VECTOR && digits_of(e, l->axis))
            e->is_masked |= whole_steps(e, digits_of(e, l->axis), true) < 1;
}

/** Whether the lanes of a step are so many that those far apart are gathered. */
static void mark_gathered(qn_estimator *e)
{
    double lanes = 1;
    int d = qn__lanes_of(e->x, e->s);
    FOR_LOOPS (e->s, l) {
        const qn_cut *c = digits_of(e, l->axis);
        if (qn__is_together(l) && qn__axis_dim(e->x, e->s, l->axis) == d)
            lanes = qn__larger(lanes, c ? step_of(c, 0) : qn__nominal_count(e, l->axis));
    }
    e->are_gathered = d >= 0 && qn__are_gathered(e->x, d, (int64_t)lanes);
}

/** Additions of the points of a loop and of those inside it: one for each sum of a tile. */
static double additions_below(const qn_estimator *e, qn_node node)
{
    const qn_node_info *l = qn__node(e->s, node);
    double most = 1;
    qn_axis root;
    for (qn_node n = l->child; n.id; n = qn__node(e->s, n)->next)
        most = qn__larger(most, additions_below(e, n));
    if (l->kind != QN_NODE_LOOP)
        return most;
    qn__axis_weight(e->x, e->s, l->axis, &root);
    bool is_points = qn__axis(e->s, root)->kind == QN_AXIS_POINT;
    return is_points || l->role == QN_ROLE_UNROLLED ? most * qn__nominal_count(e, l->axis) : most;
}

/** Whether a loop over points has so few, with those inside it, that the code has none: of these
 * there are so few additions. Loops over steps have a tail. */
static bool is_straight(const qn_estimator *e, const qn_around *l)
{
    const qn_axis_info *a = qn__axis(e->s, qn__node(e->s, l->node)->axis);
    bool is_stepped = a->kind == QN_AXIS_PART && e->is_stepped[a->cut];
    return l->is_points && !is_stepped &&
           additions_below(e, l->node) <= qn__straight_of(e->x, e->s);
}

/* ---------------------------------------------------------------- loops */

/** Adds to a sum of the result what one execution of the innermost loops has. */
static double executions(const qn_estimator *e)
{
    double n = 1;
    for (int i = 0; i < e->n; i++)
        if (!e->around[i].is_together)
            n *= e->around[i].count;
    return n;
}

/** Cycles of one iteration, without those of loops inside, and notes its parts. */
static double cycles_of(qn_estimator *e, const qn_around *l)
{
    const qn_demand *d = &l->demand;
    const qn_machine *m = e->m;
    double runs = executions(e), all = d->instructions * l->count;
    double instructions = d->instructions / m->instructions;
    double slots = qn__larger(qn__larger(d->slots / m->operations, d->shuffles / m->lane_moves),
                          (d->slots + d->shuffles) / m->ports);
    double loads = qn__larger(d->loads / m->loads, d->load_bytes / m->load_bytes);
    double stores = qn__larger(d->stores / m->stores, d->store_bytes / m->store_bytes);
    double busy = qn__larger(qn__larger(instructions, slots), qn__larger(loads, stores));
    /* iterations that the window holds overlap, and so do whole loops */
    double path = d->path * (d->instructions < m->window ? d->instructions / m->window : 1);
    double chain = all > 0 && all < m->window ? d->chain * all / m->window : d->chain;
    e->out->instructions += runs * instructions;
    e->out->arithmetic += runs * slots;
    e->out->loads += runs * loads;
    e->out->stores += runs * stores;
    e->out->chains += runs * qn__larger(path, chain);
    e->out->guesses += runs * d->guesses;
    return qn__larger(busy, qn__larger(path, chain)) + d->guesses;
}

/** Lanes of which fewer take no less time: those of a port, of the widest values. */
static double fewest_lanes(const qn_estimator *e)
{
    const qn_kernel *k = e->x->k;
    int widest = 8;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_value_info *v = &e->x->value[i];
        bool is_widest = v->deps && v->bits > widest && !qn__is_made_of_indices(k, i);
        widest = is_widest ? v->bits : widest;
    }
    return 8.0 * e->m->port_bytes / widest;
}

/** Lanes of all vectors for `left` iterations, whose number is known: whole ones, then narrower
 * ones, one of which may be under a mask. */
static double lanes_of_rest(const qn_estimator *e, double left, double lanes)
{
    double sum = 0, few = fewest_lanes(e);
    while (left > 0) {
        double width = lanes;
        while (width / 2 >= left)
            width /= 2;
        sum += qn__larger(width, few < lanes ? few : lanes);
        left -= width;
    }
    return sum;
}

static void walk(qn_estimator *e, qn_node n);

/** Whether threads divide the loops around the steps of a cut, whose rest is not known then. */
static bool is_divided(const qn_estimator *e, const qn_cut *c)
{
    for (int i = 1; i <= e->n; i++) {
        const qn_node_info *l = qn__node(e->s, e->around[i].node);
        if (l->role == QN_ROLE_THREADS && qn__axis_is_of(e->s, l->axis, qn__axis_part(c, 0)))
            return true;
    }
    return false;
}

/** Cycles of the loop that was walked last, all of whose lanes run under masks. */
static double cycles_under_mask(qn_estimator *e)
{
    const qn_estimate kept = *e->out;
    qn_around *own = &e->around[e->n];
    bool was_masked = e->is_masked;
    own->demand = (qn_demand){.instructions = LOOP_INSTRUCTIONS};
    own->inside = 0;
    e->is_masked = true;
    e->n++;
    walk(e, qn__node(e->s, own->node)->child);
    double cycles = own->count * (cycles_of(e, own) + own->inside);
    e->n--;
    e->is_masked = was_masked;
    *e->out = kept;
    return cycles;
}

/** Cycles of what is left of the axis after whole steps, which take `cycles` in all. */
static double cycles_of_tail(qn_estimator *e, qn_axis axis, double cycles, double *main)
{
    const qn_axis_info *a = qn__axis(e->s, axis);
    *main = cycles;
    while (a->kind == QN_AXIS_PART && !(a->number == 0 && e->is_stepped[a->cut]))
        a = qn__axis(e->s, e->s->cut[a->cut].of);
    if (a->kind != QN_AXIS_PART || e->s->cut[a->cut].kind != QN_CUT_DIGITS)
        return 0;
    const qn_cut *c = &e->s->cut[a->cut];
    for (int i = 1; i < e->n; i++) /* an outer loop over another part has it */
        if (qn__axis_is_of(e->s, qn__node(e->s, e->around[i].node)->axis, qn__axis_part(c, 0)))
            return 0;
    double step = step_of(c, 0), whole = whole_steps(e, c, true), lanes = 1, together = 1;
    double left = qn__nominal_count(e, c->of) - whole * step;
    FOR_LOOPS (e->s, l) {
        const int number = qn__axis(e->s, l->axis)->number;
        bool is_own = digits_of(e, l->axis) == c && number > 0;
        double extent = is_own ? (double)c->extent[number] : 1;
        if (is_own && l->role == QN_ROLE_VECTOR)
            lanes = extent;
        if (is_own && qn__is_together(l))
            together *= extent;
    }
    double one = cycles / qn__larger(whole, 1) * lanes / step; /* of one vector, or iteration */
    if (whole < 1)
        *main = 0;
    if (left <= 0 || c->tail == QN_TAIL_NONE)
        return 0;
    if (c->tail == QN_TAIL_OVERLAP)
        return one * step / lanes;
    if (c->tail == QN_TAIL_SCALAR && is_divided(e, c))
        return left * one;
    if (c->tail == QN_TAIL_SCALAR) { /* of a known number as few powers of two as there are */
        int64_t narrower = qn__extent_of(left) % qn__extent_of(lanes);
        return one * (qn__whole(left / lanes) + __builtin_popcountll((uint64_t)narrower));
    }
    if (c->tail == QN_TAIL_MASK && qn__axis(e->s, c->of)->kind == QN_AXIS_POINT)
        return one * together / lanes * qn__whole((left + together - 1) / together);
    if (c->tail == QN_TAIL_MASK && !e->is_masked && is_divided(e, c))
        return cycles_under_mask(e) / qn__larger(whole, 1) * lanes / step *
               qn__whole((left + lanes - 1) / lanes);
    /* fewer vectors, all with all lanes */
    if (c->tail == QN_TAIL_NARROWER && (left > lanes / 2 || e->s->n_buffers))
        return one * qn__whole((left + lanes - 1) / lanes);
    return one / lanes * lanes_of_rest(e, left, lanes);
}

static void walk_loop(qn_estimator *e, qn_node node)
{
    const qn_node_info *l = qn__node(e->s, node);
    const qn_axis_info *a = qn__axis(e->s, l->axis);
    bool is_known = a->kind != QN_AXIS_TRIP;
    qn_axis root;
    if (e->n > QN_MOST_DEPTH)
        return;
    qn__axis_weight(e->x, e->s, l->axis, &root);
    qn_around *own = &e->around[e->n];
    *own = (qn_around){.node = node,
                       .dims = is_known ? qn__axis_dims(e->x, e->s, l->axis) : UINT32_MAX,
                       .count = qn__nominal_count(e, l->axis),
                       .is_together = qn__is_together(l),
                       .is_lanes = l->role == QN_ROLE_VECTOR,
                       .is_points = qn__axis(e->s, root)->kind == QN_AXIS_POINT};
    own->is_together |= is_straight(e, own);
    if (!own->is_together)
        own->demand.instructions = LOOP_INSTRUCTIONS;
    e->n++;
    walk(e, l->child);
    double main, cycles = own->is_together ? 0 : own->count * (cycles_of(e, own) + own->inside);
    e->n--;
    if (own->is_together) /* lanes and unrolled loops are no loops in the code */
        return;
    double tail = cycles_of_tail(e, l->axis, cycles, &main);
    double exit = own->count >= (double)QN_FORESEEN_TRIPS ? e->m->wrong_guess : 0;
    double entry = exit + (double)ENTRY_INSTRUCTIONS / e->m->instructions;
    double counting = (double)LOOP_INSTRUCTIONS / e->m->instructions, runs = executions(e);
    qn_around *outer = &e->around[e->n - 1];
    while (outer->is_together)
        outer--;
    outer->inside += main + tail + entry;
    e->out->loops += runs * (entry + own->count * counting);
    e->out->tails += runs * tail;
}

/** A buffer that is filled or flushed, in whole vectors: one shuffle for each, or one in each stage
 * where squares are transposed for that. */
static void walk_copy(qn_estimator *e, qn_node node)
{
    const qn_node_info *n = qn__node(e->s, node);
    const qn_buffer_info *b = &e->s->buffer[n->index];
    const int64_t vector_bytes = e->x->f->target->vector_bytes,
                  bytes = qn_dtype_bytes(e->x->k->inst[b->inst].type);
    const double vectors = (double)b->bytes / (double)vector_bytes;
    qn_fill_loops how = {.n = 0};
    bool is_transposed = n->kind == QN_NODE_FILL && b->content == QN_CONTENT_COPY &&
                         !qn__fill_of(e->x, e->s, node, &how) && how.is_transposed;
    int stages = is_transposed ? __builtin_ctzll((uint64_t)(vector_bytes / bytes)) : 0;
    qn__estimate_moves(e, vectors, vectors, vectors * (stages ? stages : 1));
}

/** The nodes from n on. */
static void walk(qn_estimator *e, qn_node n)
{
    for (; n.id; n = qn__node(e->s, n)->next) {
        const qn_node_info *l = qn__node(e->s, n);
        switch (l->kind) {
        case QN_NODE_LOOP:
            walk_loop(e, n);
            break;
        case QN_NODE_DO:
            qn__estimate_statement(e, n);
            break;
        case QN_NODE_FILL:
        case QN_NODE_FLUSH:
            walk_copy(e, n);
            break;
        default:
            walk(e, l->child);
        }
    }
}

/** The longest of the core's cycles and the transfers, and a part of the others. Meanwhile nothing
 * waits for lines: those that are not fetched ahead fill the window. */
static double in_all(const qn_estimator *e)
{
    qn_estimate *r = e->out;
    double sum = 0, waiting = 0;
    for (int n = 0; n < QN_N_CACHES; n++) {
        r->moved = qn__larger(r->moved, r->transfer[n]);
        sum += r->transfer[n];
        waiting += r->waiting[n];
    }
    double longest = qn__larger(r->core, r->moved);
    return longest + (r->core + sum - longest) * QN_SHOWN_SHARE + waiting;
}

/** x: the analysis for the lanes of the schedule; scalar: that of scalar code. */
static qn_status estimate(const qn_analysis *x, const qn_analysis *scalar, const qn_schedule *s,
                          qn_estimate *out, qn_error *err)
{
    if (x->f->target->has_grid)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "estimate: target \"%s\" has grids instead of schedules",
                        x->f->target->name);
    qn_estimator *e = qn__zalloc(1, sizeof *e);
    double *ready = qn__zalloc(x->k->n_insts, 2 * sizeof *ready);
    qn_status status = QN_OK;
    if (e && ready) {
        *e = (qn_estimator){.x = x, .s = s, .m = &x->f->machine, .out = out, .n = 1};
        e->ready = ready;
        e->carried = ready + x->k->n_insts;
        e->around[0].count = 1;
        mark_stepped(e);
        mark_gathered(e);
        walk(e, s->root);
        out->core = cycles_of(e, &e->around[0]) + e->around[0].inside;
        e->x = scalar;
        status = qn__estimate_bytes(e, err);
        out->cycles = in_all(e);
    } else {
        status = qn__fail(err, QN_ERR_MEMORY, "estimate: no memory for kernel \"%s\"", x->k->name);
    }
    qn__free(ready);
    qn__free(e);
    return status;
}

qn_status qn__schedule_estimate(const qn_analysis *x, const qn_schedule *s, qn_estimate *out,
                                qn_error *err)
{
    const qn_trip_lanes trips = qn__trip_lanes_of(x, s);
    qn_analysis of;
    memset(out, 0, sizeof *out);
    if (!trips.n || qn__trips_dim(x->k) < 0)
        return estimate(x, x, s, out, err);
    if (!qn__analyse_trips(x->k, x->f, -1, &trips, &of))
        return qn__fail(err, QN_ERR_MEMORY, "estimate: no memory for kernel \"%s\"", x->k->name);
    qn_status status = estimate(&of, x, s, out, err);
    qn__analysis_release(&of);
    return status;
}

/* ---------------------------------------------------------------- text */

const char *qn__longest_part(const qn_estimate_part *parts, size_t n_parts)
{
    size_t longest = 0;
    for (size_t n = 1; n < n_parts; n++)
        longest = parts[n].cycles > parts[longest].cycles ? n : longest;
    return parts[longest].name;
}

static const char *limit_of(const qn_estimate *e)
{
    static const char *const between[QN_N_CACHES] = {"the second cache", "the last cache",
                                                     "memory"};
    int most = 0;
    double moved = 0;
    for (int n = 0; n < QN_N_CACHES; n++) {
        moved += e->transfer[n] + e->waiting[n];
        most = e->transfer[n] + e->waiting[n] > e->transfer[most] + e->waiting[most] ? n : most;
    }
    if (moved > e->core)
        return between[most];
    const qn_estimate_part parts[] = {{e->arithmetic, "arithmetic"},
                                      {e->loads, "loads"},
                                      {e->stores, "stores"},
                                      {e->chains, "chains of values"},
                                      {e->instructions, "instructions"},
                                      {e->loops, "loops"},
                                      {e->tails, "tails"},
                                      {e->guesses, "branches"}};
    return qn__longest_part(parts, sizeof parts / sizeof parts[0]);
}

void qn__estimate_print(const qn_estimate *e, const qn_machine *m, qn_text *out)
{
    static const char *const ends[QN_N_CACHES] = {"first and second cache", "second and last cache",
                                                  "last cache and memory"};
    qn__text_add(out, "estimate %.0f cycles a call, limit: %s\n", e->cycles, limit_of(e));
    qn__text_add(out,
                 "core %.0f cycles: instructions %.0f, arithmetic %.0f, loads %.0f, stores %.0f, "
                 "chains %.0f\n",
                 e->core, e->instructions, e->arithmetic, e->loads, e->stores, e->chains);
    qn__text_add(out, "... of which loops %.0f, tails %.0f, wrong guesses %.0f\n", e->loops,
                 e->tails, e->guesses);
    for (int n = 0; n < QN_N_CACHES && m->cache[n].bytes; n++)
        qn__text_add(out, "between %s %.0f bytes, %.0f cycles and %.0f of waiting\n", ends[n],
                     e->bytes[n], e->transfer[n], e->waiting[n]);
}
