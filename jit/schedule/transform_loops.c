/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_loops.c: transformations of loops. An axis may have several loops, as a loop is
 * distributed, or cut into sections; most transformations change all of them.
 */
#include "jit/schedule/transform.h"

#include <string.h>

qn_node qn__next_loop(const qn_schedule *s, qn_axis a, qn_node after)
{
    for (uint16_t n = (uint16_t)(after.id + 1); n <= s->n_nodes; n++)
        if (s->node[n].kind == QN_NODE_LOOP && s->node[n].axis.id == a.id)
            return (qn_node){n};
    return (qn_node){0};
}

/** An error about an axis. */
static qn_status fail_axis(const qn_schedule *s, qn_axis a, qn_status status, const char *what,
                           qn_error *err)
{
    char name[QN_AXIS_NAME_BYTES];
    qn__axis_name(s, a, name);
    return qn__fail(err, status, "schedule: loop %s: %s", name, what);
}

static qn_status no_room(const qn_schedule *s, qn_axis a, qn_error *err)
{
    return fail_axis(s, a, QN_ERR_LIMIT, "the schedule becomes too large", err);
}

/** Whether an axis has a loop. */
static qn_status need_loop(const qn_schedule *s, qn_axis a, qn_error *err)
{
    return a.id && qn__next_loop(s, a, (qn_node){0}).id
               ? QN_OK
               : fail_axis(s, a, QN_ERR_ARGUMENT, "there is none", err);
}

/* ---------------------------------------------------------------- cuts */

/** Every loop over an axis becomes loops over the parts of a cut, one inside the other; the
 * outermost keeps the role. */
static bool nest_parts(qn_schedule *s, qn_axis a, const qn_cut *c)
{
    for (qn_node n = {0}; (n = qn__next_loop(s, a, n)).id;) {
        qn_node inside = s->node[n.id].child, at = n;
        s->node[n.id].axis = qn__axis_part(c, 0);
        for (int part = 1; part < c->n; part++) {
            qn_node next = qn__node_new(s, &(qn_node_info){.kind = QN_NODE_LOOP,
                                                           .axis = qn__axis_part(c, part),
                                                           .parent = at});
            if (!next.id)
                return false;
            s->node[at.id].child = next;
            at = next;
        }
        s->node[at.id].child = inside;
        for (; inside.id; inside = s->node[inside.id].next)
            s->node[inside.id].parent = at;
    }
    return true;
}

static qn_status split(qn_schedule *s, qn_axis a, int n, const int64_t *extent, int tail,
                       qn_error *err)
{
    qn_cut c = {.kind = QN_CUT_DIGITS, .n = (uint8_t)(n + 1), .tail = (uint8_t)tail};
    qn_axis first;
    int64_t step = 1;
    qn_status status = need_loop(s, a, err);
    if (status != QN_OK)
        return status;
    for (int i = 0; i < n; i++) {
        c.extent[i + 1] = extent[i];
        if (extent[i] < 1 || __builtin_mul_overflow(step, extent[i], &step))
            return fail_axis(s, a, QN_ERR_ARGUMENT,
                             "parts have at least one iteration, and not too many", err);
    }
    if (n < 1)
        return fail_axis(s, a, QN_ERR_ARGUMENT, "no number says how long its parts are", err);
    return qn__axis_cut(s, a, &c, &first) && nest_parts(s, a, &s->cut[s->n_cuts - 1])
               ? QN_OK
               : no_room(s, a, err);
}

qn_status qn__apply_split(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    (void)x;
    return split(s, how->axis[0], how->n_numbers, how->number, how->option, err);
}

qn_status qn__apply_set_tail(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                             qn_error *err)
{
    (void)x;
    int found = -1;
    for (int c = 0; c < s->n_cuts; c++)
        found = s->cut[c].of.id == how->axis[0].id && s->cut[c].kind == QN_CUT_DIGITS ? c : found;
    if (found < 0)
        return fail_axis(s, how->axis[0], QN_ERR_ARGUMENT, "it was not split", err);
    s->cut[found].tail = how->option;
    return QN_OK;
}

/* ---------------------------------------------------------------- copies of nodes */

static qn_node copy_node(qn_schedule *s, qn_node n, int depth);

/** Copies of the children of one node become those of another. */
static bool copy_children(qn_schedule *s, qn_node from, qn_node to, int depth)
{
    s->node[to.id].child = (qn_node){0};
    for (qn_node c = s->node[from.id].child; c.id; c = s->node[c.id].next) {
        qn_node copy = copy_node(s, c, depth + 1);
        if (!copy.id)
            return false;
        qn__node_append(s, to, copy);
    }
    return true;
}

static bool copy_records(qn_schedule *s, qn_node from, qn_node to)
{
    int n = s->n_records;
    for (int r = 0; r < n; r++) {
        if (s->record[r].at.id != from.id)
            continue;
        if (s->n_records == QN_MOST_RECORDS)
            return false;
        s->record[s->n_records] = s->record[r];
        s->record[s->n_records++].at = to;
    }
    return true;
}

/** A copy with all that is inside; 0 without room. */
static qn_node copy_node(qn_schedule *s, qn_node n, int depth)
{
    qn_node_info info = s->node[n.id];
    info.child = info.next = info.parent = (qn_node){0};
    if (info.kind == QN_NODE_PLACE) {
        if (s->n_reductions == QN_MOST_REDUCTIONS)
            return (qn_node){0};
        s->reduction[s->n_reductions] = s->reduction[info.index];
        info.index = (uint8_t)s->n_reductions++;
    }
    qn_node copy = depth > QN_MOST_DEPTH ? (qn_node){0} : qn__node_new(s, &info);
    return copy.id && copy_records(s, n, copy) && copy_children(s, n, copy, depth) ? copy
                                                                                   : (qn_node){0};
}

/* ---------------------------------------------------------------- sections */

qn_status qn__apply_partition(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                              qn_error *err)
{
    (void)x;
    qn_axis a = how->axis[0], first;
    qn_cut c = {.kind = QN_CUT_SECTIONS, .n = (uint8_t)(how->n_numbers + 1)};
    qn_status status = need_loop(s, a, err);
    for (int n = 0; n < how->n_numbers && n < 3; n++)
        c.bound[n] = how->bound[n];
    if (status != QN_OK)
        return status;
    if (how->n_numbers < 1 || !qn__axis_cut(s, a, &c, &first))
        return no_room(s, a, err);
    for (qn_node n = {0}; (n = qn__next_loop(s, a, n)).id;) {
        s->node[n.id].axis = first;
        qn_node last = n;
        for (int part = 1; part < c.n; part++) {
            qn_node copy = copy_node(s, n, 1);
            if (!copy.id)
                return no_room(s, a, err);
            s->node[copy.id].axis = (qn_axis){(uint16_t)(first.id + part)};
            s->node[copy.id].parent = s->node[n.id].parent;
            s->node[copy.id].next = s->node[last.id].next;
            s->node[last.id].next = copy;
            last = copy;
        }
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- nests */

/** The only child of a loop, if that is a loop over an axis; 0: it is not. */
static qn_node only_loop_inside(const qn_schedule *s, qn_node n, qn_axis a)
{
    qn_node c = s->node[n.id].child;
    bool is_so = c.id && !s->node[c.id].next.id && s->node[c.id].kind == QN_NODE_LOOP &&
                 (!a.id || s->node[c.id].axis.id == a.id);
    return is_so ? c : (qn_node){0};
}

/** Place of an axis in a list, or -1. */
static int listed(const qn_step *how, qn_axis a)
{
    for (int n = 0; n < how->n_axes; n++)
        if (how->axis[n].id == a.id)
            return n;
    return -1;
}

/** Reorders the nest whose outermost listed loop is n; false: they are not one right inside the
 * other. */
static bool reorder_nest(qn_schedule *s, qn_node n, const qn_step *how)
{
    qn_node at[QN_MOST_STEP_AXES];
    uint8_t role[QN_MOST_STEP_AXES];
    int found = 0;
    for (; n.id && found < how->n_axes; n = only_loop_inside(s, n, (qn_axis){0})) {
        int place = listed(how, s->node[n.id].axis);
        if (place < 0)
            continue;
        role[place] = s->node[n.id].role;
        at[found++] = n;
    }
    for (int i = 0; i < found && found == how->n_axes; i++) {
        s->node[at[i].id].axis = how->axis[i];
        s->node[at[i].id].role = role[i];
    }
    return found == how->n_axes;
}

/** Whether a loop over another listed axis is around node n. */
static bool is_inside_listed(const qn_schedule *s, qn_node n, const qn_step *how)
{
    for (n = s->node[n.id].parent; n.id; n = s->node[n.id].parent)
        if (s->node[n.id].kind == QN_NODE_LOOP && listed(how, s->node[n.id].axis) >= 0)
            return true;
    return false;
}

qn_status qn__apply_reorder(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    (void)x;
    bool is_any = false;
    for (int i = 0; i < how->n_axes; i++)
        for (int m = 0; m < i; m++)
            if (how->axis[m].id == how->axis[i].id)
                return fail_axis(s, how->axis[i], QN_ERR_ARGUMENT, "it is named twice", err);
    bool is_root[QN_MOST_NODES + 1] = {false};
    for (uint16_t n = 1; n <= s->n_nodes; n++)
        is_root[n] = s->node[n].kind == QN_NODE_LOOP && listed(how, s->node[n].axis) >= 0 &&
                     !is_inside_listed(s, (qn_node){n}, how);
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        if (!is_root[n])
            continue;
        is_any |= reorder_nest(s, (qn_node){n},
                               how); /* nests that lack one of the loops stay as they are */
    }
    return is_any ? QN_OK
                  : fail_axis(s, how->axis[0], QN_ERR_ARGUMENT,
                              "the loops are not one right inside the other", err);
}

qn_status qn__apply_tile(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    qn_step order = {.n_axes = 4};
    for (int n = 0; n < 2; n++) {
        qn_status status = split(s, how->axis[n], 1, &how->number[n], how->option, err);
        if (status != QN_OK)
            return status;
        order.axis[n] = qn__axis_part(&s->cut[s->n_cuts - 1], 0);
        order.axis[n + 2] = qn__axis_part(&s->cut[s->n_cuts - 1], 1);
    }
    return qn__apply_reorder(x, s, &order, err);
}

/* ---------------------------------------------------------------- statements */

qn_status qn__apply_distribute(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                               qn_error *err)
{
    (void)x;
    qn_status status = need_loop(s, how->axis[0], err);
    bool is_old[QN_MOST_NODES + 1] = {false};
    for (uint16_t n = 1; n <= s->n_nodes; n++)
        is_old[n] = s->node[n].kind == QN_NODE_LOOP && s->node[n].axis.id == how->axis[0].id;
    for (uint16_t n = 1; status == QN_OK && n <= QN_MOST_NODES && n <= s->n_nodes; n++) {
        qn_node last = {n};
        qn_node c = is_old[n] ? s->node[s->node[n].child.id].next : (qn_node){0};
        if (is_old[n])
            s->node[s->node[n].child.id].next = (qn_node){0};
        while (c.id) {
            qn_node next = s->node[c.id].next;
            qn_node_info info = s->node[n];
            info.child = c;
            info.next = s->node[last.id].next;
            qn_node loop = qn__node_new(s, &info);
            if (!loop.id)
                return no_room(s, how->axis[0], err);
            s->node[last.id].next = loop;
            s->node[c.id].parent = loop;
            s->node[c.id].next = (qn_node){0};
            last = loop;
            c = next;
        }
    }
    return status;
}

/** loop a { place { B } } becomes place { loop a { B } }. */
static bool swap_with_place(qn_schedule *s, qn_node loop)
{
    qn_node place = s->node[loop.id].child;
    qn_node_info *l = &s->node[loop.id], *p = &s->node[place.id];
    if (!place.id || p->kind != QN_NODE_PLACE || p->next.id)
        return false;
    qn_node inside = p->child;
    qn__node_replace(s, loop,
                     place); /* the place is still a child of the loop, but no longer named there */
    l->child = inside;
    for (; inside.id; inside = s->node[inside.id].next)
        s->node[inside.id].parent = loop;
    p->child = loop;
    l->parent = place;
    l->next = (qn_node){0};
    return true;
}

qn_status qn__apply_move_place(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                               qn_error *err)
{
    (void)x;
    bool is_any = false;
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        qn_node_info *p = &s->node[n];
        bool is_it = p->kind == QN_NODE_PLACE && s->reduction[p->index].inst[0] == how->inst &&
                     s->node[p->parent.id].kind == QN_NODE_LOOP &&
                     s->node[p->parent.id].axis.id == how->axis[0].id;
        is_any |= is_it;
        if (is_it && !swap_with_place(s, p->parent))
            return fail_axis(s, how->axis[0], QN_ERR_ARGUMENT,
                             "other nodes stand beside the reduce; distribute it first", err);
    }
    return is_any
               ? QN_OK
               : fail_axis(s, how->axis[0], QN_ERR_ARGUMENT, "the reduce is not right inside", err);
}

/** Whether two axes are the same part of the points of one dimension, of any reduce, or one axis.
 */
static bool is_like_axis(const qn_schedule *s, qn_axis a, qn_axis b)
{
    const qn_axis_info *x = qn__axis(s, a), *y = qn__axis(s, b);
    if (a.id == b.id)
        return true;
    if (x->kind == QN_AXIS_POINT && y->kind == QN_AXIS_POINT)
        return x->number == y->number;
    if (x->kind != QN_AXIS_PART || y->kind != QN_AXIS_PART || x->number != y->number)
        return false;
    const qn_cut *c = &s->cut[x->cut], *e = &s->cut[y->cut];
    return c->kind == QN_CUT_DIGITS && e->kind == QN_CUT_DIGITS && c->n == e->n &&
           c->tail == e->tail &&
           memcmp(&c->extent[1], &e->extent[1], (size_t)(c->n - 1) * sizeof c->extent[1]) == 0 &&
           is_like_axis(s, c->of, e->of);
}

/** Puts what the loops of place `other` hold behind what those of `place` hold; false: the loops
 * differ. */
static bool merge_places(qn_schedule *s, qn_node place, qn_node other)
{
    qn_node to = s->node[place.id].child, from = s->node[other.id].child, around = place;
    while (s->node[to.id].kind == QN_NODE_LOOP && s->node[from.id].kind == QN_NODE_LOOP) {
        const qn_node_info *a = &s->node[to.id], *b = &s->node[from.id];
        if (a->role != b->role || a->next.id || b->next.id || !is_like_axis(s, a->axis, b->axis))
            return false;
        around = to;
        to = a->child;
        from = b->child;
    }
    if (!to.id || !from.id || s->node[to.id].kind == QN_NODE_LOOP ||
        s->node[from.id].kind == QN_NODE_LOOP)
        return false;
    const qn_node first = from;
    while (s->node[to.id].next.id)
        to = s->node[to.id].next;
    s->node[to.id].next = from;
    for (; from.id; from = s->node[from.id].next)
        s->node[from.id].parent = around;
    qn__node_replace(s, other, (qn_node){0});
    for (qn_node next; other.id && other.id != first.id; other = next) {
        next = s->node[other.id].child;
        s->node[other.id] = (qn_node_info){.kind = QN_NODE_FREE};
    }
    return true;
}

/** The last place before node n beside it; 0: there is none. */
static qn_node place_before(const qn_schedule *s, qn_node n)
{
    qn_node parent = s->node[n.id].parent, found = {0};
    qn_node at = parent.id ? s->node[parent.id].child : s->root;
    for (; at.id && at.id != n.id; at = s->node[at.id].next)
        found = s->node[at.id].kind == QN_NODE_PLACE ? at : found;
    return found;
}

qn_status qn__apply_merge(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    bool is_any = false;
    (void)x;
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        qn_node at = {n};
        if (s->node[n].kind != QN_NODE_PLACE || s->reduction[s->node[n].index].inst[0] != how->inst)
            continue;
        qn_reduced *own = &s->reduction[s->node[n].index], *r;
        qn_node before = place_before(s, at);
        r = &s->reduction[s->node[before.id].index];
        bool is_new = before.id && r->inst[r->n - 1] != how->inst;
        if (!before.id || (is_new && own->n + r->n > QN_MOST_TUPLE) || own->buffer || r->buffer ||
            !merge_places(s, before, at))
            return qn__fail(err, QN_ERR_ARGUMENT,
                            "schedule: reduce %%%u: no place with such loops is before it",
                            how->inst);
        for (int m = 0; is_new && m < own->n; m++)
            r->inst[r->n++] = own->inst[m];
        is_any = true;
    }
    return is_any ? QN_OK
                  : qn__fail(err, QN_ERR_ARGUMENT, "schedule: %%%u has no place", how->inst);
}

/** The statement that loop i stands in, outside of all other loops and branches in it; 0: there is
 * none. */
static qn_node statement_of(const qn_kernel *k, const qn_schedule *s, uint32_t i)
{
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        const qn_node_info *l = &s->node[n];
        if (l->kind == QN_NODE_DO && l->first <= i && i < l->end &&
            (k->inst[i].parent < l->first || k->inst[i].parent >= l->end))
            return (qn_node){n};
    }
    return (qn_node){0};
}

/** do A B becomes do A; place { loop t { do } }; do B. Access records are made anew. */
static bool open_loop(const qn_analysis *x, qn_schedule *s, qn_node at, uint32_t i)
{
    const qn_inst *own = &x->k->inst[i];
    const qn_node_info all = s->node[at.id];
    qn_axis_info axis = {.kind = QN_AXIS_TRIP, .inst = i};
    qn_axis trips = qn__axis_over(s, i, -1); /* of another copy of the statement */
    if (!trips.id)
        trips = qn__axis_new(s, &axis);
    qn_node_info info[] = {{.kind = QN_NODE_PLACE, .index = (uint8_t)s->n_reductions},
                           {.kind = QN_NODE_LOOP, .axis = trips},
                           {.kind = QN_NODE_DO, .first = own->region[0], .end = own->region[2]},
                           {.kind = QN_NODE_DO, .first = own->region[2], .end = all.end}};
    qn_node n[4] = {{0}};
    bool has_before = all.first < i, has_after = own->region[2] < all.end;
    info[0].first = i;
    info[0].end = own->region[2];
    if (!trips.id || s->n_reductions == QN_MOST_REDUCTIONS)
        return false;
    s->axis[trips.id].count = qn__axis_count(x, s, trips);
    for (int m = 0; m < 3 + has_after; m++)
        if (!(n[m] = qn__node_new(s, &info[m])).id)
            return false;
    s->reduction[s->n_reductions++] =
        (qn_reduced){.n = 1, .order = QN_POINTS_ORDERED, .inst[0] = i};
    s->node[n[0].id].parent = all.parent;
    s->node[n[0].id].next = has_after ? n[3] : all.next;
    s->node[n[3].id].parent = all.parent;
    s->node[n[3].id].next = all.next;
    qn__node_append(s, n[0], n[1]);
    qn__node_append(s, n[1], n[2]);
    if (has_before) {
        s->node[at.id].end = i;
        s->node[at.id].next = n[0];
    } else {
        s->node[at.id].next = (qn_node){0};
        qn__node_replace(s, at, n[0]);
        s->node[n[0].id].next = has_after ? n[3] : all.next;
        s->node[at.id].kind = QN_NODE_FREE;
    }
    return true;
}

qn_status qn__apply_trips(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    qn_node at = statement_of(x->k, s, how->inst);
    if (!at.id || !qn__is_body_loop(x->k, how->inst))
        return qn__fail(err, QN_ERR_ARGUMENT, "schedule: %%%u is no loop of a statement",
                        how->inst);
    for (; at.id; at = statement_of(x->k, s, how->inst))
        if (!open_loop(x, s, at, how->inst))
            return qn__fail(err, QN_ERR_LIMIT, "schedule: %%%u: the schedule becomes too large",
                            how->inst);
    return QN_OK;
}

/* ---------------------------------------------------------------- roles */

qn_status qn__apply_role(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    const int role = how->which == QN_DO_vectorize     ? QN_ROLE_VECTOR
                     : how->which == QN_DO_unroll      ? QN_ROLE_UNROLLED
                     : how->which == QN_DO_parallelize ? QN_ROLE_THREADS
                                                       : QN_ROLE_GRID + how->option;
    qn_status status = need_loop(s, how->axis[0], err);
    (void)x;
    for (qn_node n = {0}; status == QN_OK && (n = qn__next_loop(s, how->axis[0], n)).id;)
        s->node[n.id].role = (uint8_t)role;
    return status;
}
