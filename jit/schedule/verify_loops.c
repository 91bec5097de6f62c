/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_loops.c: the loops around a statement. Together they walk each iteration once: every
 * dimension that the statement runs over has one loop over it, or loops over all digits of one cut,
 * or a loop over one of its sections, whose siblings verify.c looks for. Their order must keep what
 * depends on order.
 */
#include "jit/schedule/verify.h"

static const qn_node_info *loop_at(const qn_verifier *v, int n)
{
    return qn__node(v->s, v->path[n]);
}

/* ---------------------------------------------------------------- coverage */

static int loops_over(const qn_verifier *v, qn_axis a)
{
    int n = 0;
    for (int i = 0; i < v->n_path; i++)
        n += loop_at(v, i)->axis.id == a.id;
    return n;
}

/** Loops on the path that walk an axis whole, once; -1: they do not. */
static int covering(const qn_verifier *v, qn_axis a)
{
    const qn_schedule *s = v->s;
    if (loops_over(v, a) > 0)
        return loops_over(v, a) == 1 ? 1 : -1;
    for (int c = 0; c < s->n_cuts; c++) {
        int sum = 0, found = 0;
        if (s->cut[c].of.id != a.id)
            continue;
        for (int n = 0; n < s->cut[c].n; n++) {
            int loops = covering(v, qn__axis_part(&s->cut[c], n));
            found += loops >= 0;
            sum += loops >= 0 ? loops : 0;
        }
        if (found == (s->cut[c].kind == QN_CUT_DIGITS ? s->cut[c].n : 1))
            return sum;
    }
    return -1;
}

static bool cover(qn_verifier *v, qn_axis root, const char *what, int number, int *used)
{
    int loops = root.id ? covering(v, root) : -1;
    if (loops < 0)
        return qn__refuse(v, "no loops walk %s %d once around a statement", what, number);
    *used += loops;
    return true;
}

/** Every dimension of the statement, and nothing else. */
static bool cover_all(qn_verifier *v, qn_node at)
{
    const qn_kernel *k = v->x->k;
    int used = 0;
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d) &&
            !cover(v, qn__axis_over(v->s, 0, d), "dimension", d, &used))
            return false;
    for (int c = 1; c < v->n_contexts; c++) {
        uint32_t i = v->s->reduction[qn__node(v->s, v->context[c].place)->index].inst[0];
        bool is_reduce = k->inst[i].op == QN_I_REDUCE;
        for (int n = 0; n < (is_reduce ? k->inst[i].n_args : 1); n++)
            if (!cover(v,
                       is_reduce ? qn__axis_over(v->s, i, qn__dim_of(k, i, n))
                                 : qn__axis_over(v->s, i, -1),
                       is_reduce ? "points of reduce" : "trips of", (int)i, &used))
                return false;
    }
    return used == v->n_path ||
           qn__refuse(v, "do %%%u: %d loops are around it, and %d walk what it runs over",
                      qn__node(v->s, at)->first, v->n_path, used);
}

/* ---------------------------------------------------------------- order */

/** Whether an axis is made of points or trips of reduce or `for` i. */
static bool is_inside(const qn_verifier *v, qn_axis axis, uint32_t i)
{
    qn_axis root;
    (void)qn__axis_weight(v->x, v->s, axis, &root);
    return qn__axis(v->s, root)->inst == i;
}

enum { SEQUENTIAL = 1 << QN_DIM_SEQUENTIAL, ITERATIONS = ~(1 << QN_DIM_REDUCTION) };
/** Whether an axis walks a dimension of one of these kinds, as bits. */
static bool walks(const qn_verifier *v, qn_axis a, int kinds)
{
    uint32_t dims = qn__axis_dims(v->x, v->s, a);
    for (int d = 0; d < v->x->k->n_dims; d++)
        if ((dims >> d & 1) && (kinds >> qn__dim_kind(v->x->k, d) & 1))
            return true;
    return false;
}

/** Loops n and before it go through one dimension after the other, each from its begin to its end,
 * alone in their place. */
static bool is_in_order(qn_verifier *v, int n)
{
    qn_axis root, before;
    const qn_node_info *l = loop_at(v, n);
    qn_node first = l->parent.id ? qn__node(v->s, l->parent)->child : v->s->root;
    int64_t weight = qn__axis_weight(v->x, v->s, l->axis, &root);
    if (first.id != v->path[n].id || l->next.id)
        return qn__refuse(v,
                          "loop %s: other nodes stand beside it, and its iterations come in order",
                          qn__axis_text(v, l->axis).name);
    if ((l->role != QN_ROLE_SEQUENTIAL && l->role != QN_ROLE_UNROLLED) || !weight)
        return qn__refuse(v, "loop %s: its iterations come in order, and it is %s",
                          qn__axis_text(v, l->axis).name, qn__role_names[l->role]);
    if (n == 0)
        return true;
    int64_t weight_before = qn__axis_weight(v->x, v->s, loop_at(v, n - 1)->axis, &before);
    int d = qn__axis(v->s, root)->number, e = qn__axis(v->s, before)->number;
    return e < d || (e == d && weight_before > weight) ||
           qn__refuse(v, "loop %s: its iterations come in order, and %s stands around it",
                      qn__axis_text(v, l->axis).name,
                      qn__axis_text(v, loop_at(v, n - 1)->axis).name);
}

/** Sequential dimensions are outside all others. Where views overlap, all iterations come in order.
 */
static bool verify_sequence(qn_verifier *v)
{
    bool may_be_sequential = true, is_ordered = v->x->f->is_ordered != 0;
    int n_outside = v->n_contexts > 1 ? v->context[1].n_around : v->n_path;
    for (int n = 0; n < v->n_path; n++) {
        qn_axis axis = loop_at(v, n)->axis;
        bool is_sequential = walks(v, axis, SEQUENTIAL);
        if (is_sequential && !may_be_sequential)
            return qn__refuse(v, "loop %s: a sequential dimension inside others",
                              qn__axis_text(v, axis).name);
        may_be_sequential = is_sequential;
        if (is_ordered && n >= n_outside && walks(v, axis, ITERATIONS))
            return qn__refuse(v, "loop %s: views overlap, and iterations come in order",
                              qn__axis_text(v, axis).name);
        if ((is_sequential || (is_ordered && n < n_outside)) && !is_in_order(v, n))
            return false;
    }
    return true;
}

/** The loops over the points of a reduce, or the trips of a `for`, inside their place. */
static bool verify_points(qn_verifier *v, const qn_context *c)
{
    const qn_reduced *r = &v->s->reduction[qn__node(v->s, c->place)->index];
    const qn_kernel *k = v->x->k;
    qn_walk w = {.n = 0};
    for (int i = 0; i < v->n_path; i++) {
        const qn_node_info *l = loop_at(v, i);
        if (!is_inside(v, l->axis, r->inst[0]))
            continue;
        if (i < c->n_around)
            return qn__refuse(v, "loop %s: it is outside the place of %%%u",
                              qn__axis_text(v, l->axis).name, r->inst[0]);
        w.loop[w.n] = l->axis;
        w.role[w.n++] = l->role;
    }
    for (int m = 0; m < r->n; m++) {
        const char *why = "";
        if (k->inst[r->inst[m]].op == QN_I_REDUCE &&
            !qn__may_walk_points(v->x, v->s, r->inst[m], &w, &why))
            return qn__refuse(v, "place %%%u: %s", r->inst[m], why);
    }
    double together = 1; /* trips */
    for (int i = 0; i < w.n; i++)
        together *= w.role[i] == QN_ROLE_SEQUENTIAL
                        ? 1
                        : (double)qn__axis_count(v->x, v->s, w.loop[i]).most;
    for (int i = 0; i < w.n && qn__is_body_loop(k, r->inst[0]); i++) {
        bool is_free = w.role[i] == QN_ROLE_VECTOR &&
                       together <= (double)qn__trips_at_once(v->x, r->inst[0]);
        if (w.role[i] != QN_ROLE_SEQUENTIAL && w.role[i] != QN_ROLE_UNROLLED && !is_free)
            return qn__refuse(v, "loop %s: trips come in order, and it is %s",
                              qn__axis_text(v, w.loop[i]).name, qn__role_names[w.role[i]]);
        if (i > 0 && qn__axis_weight(v->x, v->s, w.loop[i], NULL) >=
                         qn__axis_weight(v->x, v->s, w.loop[i - 1], NULL))
            return qn__refuse(v, "loop %s: trips come in order", qn__axis_text(v, w.loop[i]).name);
    }
    return true;
}

/** Whether iterations may run on another thread of the host, or in another block of a grid, in each
 *  loop of this role: no memory of a chunk goes from one such loop to the next. */
static bool is_of_chunks(int role)
{
    return role == QN_ROLE_THREADS || role == QN_ROLE_GRID;
}

static bool is_in_registers(int role)
{
    return role == QN_ROLE_VECTOR || role == QN_ROLE_UNROLLED;
}

/** Accumulators: for each iteration whose loop is inside the place one, in registers or in the
 * buffer. */
static bool verify_accumulators(qn_verifier *v, const qn_context *c)
{
    const qn_reduced *r = &v->s->reduction[qn__node(v->s, c->place)->index];
    const qn_buffer_info *b = r->buffer ? &v->s->buffer[r->buffer - 1] : NULL;
    const qn_inst *x = &v->x->k->inst[r->inst[0]];
    for (int n = c->n_around; n < v->n_path; n++) {
        const qn_node_info *l = loop_at(v, n);
        uint32_t dims = qn__axis_dims(v->x, v->s, l->axis);
        bool is_iteration = walks(v, l->axis, ITERATIONS);
        if (is_iteration && is_of_chunks(l->role))
            return qn__refuse(v, "place %%%u: accumulators belong to a chunk, and loop %s is %s",
                              r->inst[0], qn__axis_text(v, l->axis).name, qn__role_names[l->role]);
        if (is_iteration && !is_in_registers(l->role) && !(b && qn__buffer_place(b, l->axis) >= 0))
            return qn__refuse(v,
                              "place %%%u: its accumulators are for each iteration of loop %s, and "
                              "in no buffer over it",
                              r->inst[0], qn__axis_text(v, l->axis).name);
        if (is_iteration && x->op == QN_I_WHILE)
            return qn__refuse(v, "place %%%u: a `while`, and loop %s over iterations is inside",
                              r->inst[0], qn__axis_text(v, l->axis).name);
        for (int m = 0; m < 2 && x->op == QN_I_FOR && is_iteration; m++)
            if (v->x->value[qn__args(v->x->k, r->inst[0])[m]].deps & dims)
                return qn__refuse(
                    v, "place %%%u: its range differs between iterations of loop %s inside",
                    r->inst[0], qn__axis_text(v, l->axis).name);
    }
    return true;
}

/** A section that ends at the index of an axis is inside the loops over it. */
static bool verify_anchors(qn_verifier *v)
{
    for (int n = 0; n < v->n_path; n++) {
        const qn_axis_info *a = qn__axis(v->s, loop_at(v, n)->axis);
        const qn_cut *c = a->kind == QN_AXIS_PART ? &v->s->cut[a->cut] : NULL;
        for (int m = 0; c && c->kind == QN_CUT_SECTIONS && m < c->n - 1; m++) {
            int around = v->n_path;
            if (c->bound[m].from != QN_FROM_AXIS)
                continue;
            v->n_path = n;
            bool is_known = covering(v, c->bound[m].axis) > 0;
            v->n_path = around;
            if (!is_known)
                return qn__refuse(
                    v, "loop %s: it ends at the index of %s, whose loop is not around it",
                    qn__axis_text(v, loop_at(v, n)->axis).name,
                    qn__axis_text(v, c->bound[m].axis).name);
        }
    }
    return true;
}

bool qn__verify_loops(qn_verifier *v, qn_node at)
{
    if (!cover_all(v, at) || !verify_sequence(v) || !verify_anchors(v))
        return false;
    for (int c = 1; c < v->n_contexts; c++)
        if (!verify_points(v, &v->context[c]) || !verify_accumulators(v, &v->context[c]))
            return false;
    return true;
}

/* ---------------------------------------------------------------- roles */

static int loops_with(const qn_verifier *v, int role)
{
    int n = 0;
    for (int i = 0; i < v->n_path; i++)
        n += loop_at(v, i)->role == role;
    return n;
}

bool qn__verify_role(qn_verifier *v, qn_node at)
{
    const qn_node_info *l = qn__node(v->s, at);
    qn_axis_text name = qn__axis_text(v, l->axis);
    qn_count count = qn__axis_count(v->x, v->s, l->axis);
    bool has_grid = v->x->f->target->has_grid;
    switch (l->role) {
    case QN_ROLE_VECTOR:
        if (count.most > QN_MOST_LANES)
            return qn__refuse(v, "loop %s: a vector has at most %d lanes", name.name,
                              QN_MOST_LANES);
        return loops_with(v, QN_ROLE_VECTOR) == 1 ||
               qn__refuse(v, "loop %s: lanes inside of lanes", name.name);
    case QN_ROLE_UNROLLED:
        return count.most <= QN_MOST_UNROLLED ||
               qn__refuse(v, "loop %s: at most %d iterations are unrolled", name.name,
                          QN_MOST_UNROLLED);
    case QN_ROLE_THREADS:
        if (has_grid || loops_with(v, QN_ROLE_VECTOR) || loops_with(v, QN_ROLE_UNROLLED))
            return qn__refuse(v, "loop %s: threads of the host inside of lanes, or on a GPU",
                              name.name);
        break;
    case QN_ROLE_GRID:
    case QN_ROLE_BLOCK:
    case QN_ROLE_THREAD:
        if (!has_grid)
            return qn__refuse(v, "loop %s: this target has no grid", name.name);
        break;
    default:
        return true;
    }
    return !v->x->f->is_ordered ||
           qn__refuse(v, "loop %s: views overlap, and iterations come in order", name.name);
}

/* ---------------------------------------------------------------- values */

/** The buffer that keeps value i over an axis. */
static bool is_kept(const qn_verifier *v, uint32_t i, qn_axis a)
{
    for (int b = 0; b < v->s->n_buffers; b++) {
        const qn_buffer_info *x = &v->s->buffer[b];
        if (x->inst == i && x->content == QN_CONTENT_SUMS && qn__buffer_place(x, a) >= 0)
            return true;
    }
    return false;
}

/** The loop over whose iterations value i is made, and not kept, where a statement uses it; 0: it
 * is at hand. */
static qn_node lost_over(const qn_verifier *v, qn_node at, uint32_t i)
{
    qn_node n = qn__node(v->s, (qn_node){v->made_at[i]})->parent;
    for (; n.id && !qn__is_within(v->s, at, n); n = qn__node(v->s, n)->parent) {
        const qn_node_info *l = qn__node(v->s, n);
        bool is_apart =
            is_of_chunks(l->role) || (!is_in_registers(l->role) && !is_kept(v, i, l->axis));
        if (l->kind == QN_NODE_LOOP && is_apart)
            return n;
    }
    return (qn_node){0};
}

/** Whether a node has value i: it is at hand, or can be made of what is before `until`. */
static bool has_value(const qn_verifier *v, qn_node at, uint32_t i, uint32_t until, int *left)
{
    const qn_inst *x = &v->x->k->inst[i];
    if (i < v->x->k->body || x->op == QN_I_INDEX || x->op == QN_I_CARRIED ||
        qn__may_be_made_again(v->x, i, until))
        return true;
    if (v->made_at[i] && !lost_over(v, at, i).id)
        return true;
    if (!qn__is_pure(x) || --*left < 0)
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!has_value(v, at, qn__args(v->x->k, i)[n], until, left))
            return false;
    return true;
}

bool qn__verify_values(qn_verifier *v, qn_node at, uint32_t first, uint32_t end)
{
    const qn_kernel *k = v->x->k;
    uint32_t until = k->inst[end - 1].region[2]; /* or all trips of the loop around */
    if (v->n_contexts > 1 && v->context[1].end[0] > until)
        until = v->context[1].end[0];
    for (uint32_t i = first; i < end; i++)
        for (int a = 0; a < k->inst[i].n_args; a++) {
            uint32_t value = qn__args(k, i)[a];
            int left = 64;
            if ((value >= first && value < end) || has_value(v, at, value, until, &left))
                continue;
            if (!v->made_at[value])
                return qn__refuse(v, "%%%u: value %%%u is made later", first, value);
            qn_node lost = lost_over(v, at, value);
            return qn__refuse(v, "%%%u: value %%%u of loop %s is kept in no buffer", first, value,
                              qn__axis_text(v, qn__node(v->s, lost)->axis).name);
        }
    return true;
}
