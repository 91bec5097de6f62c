/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c: the parts of a schedule and how they hang together: nodes, names, copies, and the
 * schedule of a kernel as declared. What axes mean stands in axis.c, what accesses do in record.c.
 */
#include "jit/schedule/plan.h"
#include "jit/schedule/tree.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TEXT(id, text) text,
const char *const qn__role_names[] = {QN_ROLE_LIST(TEXT)};
const char *const qn__tail_names[] = {QN_TAIL_LIST(TEXT)};
const char *const qn__storage_names[] = {QN_STORAGE_LIST(TEXT)};
const char *const qn__content_names[] = {QN_CONTENT_LIST(TEXT)};
const char *const qn__method_names[] = {QN_METHOD_LIST(TEXT)};
const char *const qn__check_names[] = {QN_CHECK_LIST(TEXT)};
const char *const qn__points_names[] = {QN_POINTS_LIST(TEXT)};

/* ---------------------------------------------------------------- arrays */

const qn_axis_info *qn__axis(const qn_schedule *s, qn_axis a)
{
    return &s->axis[a.id <= s->n_axes ? a.id : 0];
}

const qn_node_info *qn__node(const qn_schedule *s, qn_node n)
{
    return &s->node[n.id <= s->n_nodes ? n.id : 0];
}

qn_axis qn__axis_new(qn_schedule *s, const qn_axis_info *info)
{
    if (s->n_axes == QN_MOST_AXES)
        return (qn_axis){0};
    s->axis[++s->n_axes] = *info;
    return (qn_axis){(uint16_t)s->n_axes};
}

qn_node qn__node_new(qn_schedule *s, const qn_node_info *info)
{
    int at = 1;
    while (at <= s->n_nodes && s->node[at].kind != QN_NODE_FREE)
        at++;
    if (at > QN_MOST_NODES)
        return (qn_node){0};
    s->n_nodes = at > s->n_nodes ? at : s->n_nodes;
    s->node[at] = *info;
    return (qn_node){(uint16_t)at};
}

/** Where the first child of a node, or of the root, is named. */
static qn_node *first_of(qn_schedule *s, qn_node parent)
{
    return parent.id ? &s->node[parent.id].child : &s->root;
}

void qn__node_append(qn_schedule *s, qn_node parent, qn_node n)
{
    qn_node *at = first_of(s, parent);
    while (at->id)
        at = &s->node[at->id].next;
    *at = n;
    s->node[n.id].parent = parent;
    s->node[n.id].next = (qn_node){0};
}

void qn__node_replace(qn_schedule *s, qn_node n, qn_node instead)
{
    qn_node *at = first_of(s, s->node[n.id].parent);
    while (at->id && at->id != n.id)
        at = &s->node[at->id].next;
    if (instead.id) {
        s->node[instead.id].next = s->node[n.id].next;
        s->node[instead.id].parent = s->node[n.id].parent;
        *at = instead;
    } else {
        *at = s->node[n.id].next;
    }
    s->node[n.id].next = s->node[n.id].parent = (qn_node){0};
}

int qn__straight_of(const qn_analysis *x, const qn_schedule *s)
{
    return s->straight < 0 ? qn__plan_straight(x->k, x->f) : s->straight;
}

#define COPY_USED(array, n) memcpy(to->array, from->array, (size_t)(n) * sizeof to->array[0])
void qn__schedule_copy(const qn_schedule *from, qn_schedule *to)
{
    memcpy(to, from, offsetof(qn_schedule, axis));
    COPY_USED(axis, from->n_axes + 1);
    COPY_USED(cut, from->n_cuts);
    COPY_USED(node, from->n_nodes + 1);
    COPY_USED(buffer, from->n_buffers);
    COPY_USED(reduction, from->n_reductions);
    COPY_USED(record, from->n_records);
    COPY_USED(step, from->n_steps);
}

/* ---------------------------------------------------------------- names of axes */

void qn__axis_name(const qn_schedule *s, qn_axis a, char *name)
{
    const qn_axis_info *x = qn__axis(s, a);
    switch (x->kind) {
    case QN_AXIS_DIM:
        snprintf(name, QN_AXIS_NAME_BYTES, "d%d", x->number);
        return;
    case QN_AXIS_POINT:
        snprintf(name, QN_AXIS_NAME_BYTES, "r%" PRIu32 "d%d", x->inst, x->number);
        return;
    case QN_AXIS_TRIP:
        snprintf(name, QN_AXIS_NAME_BYTES, "t%" PRIu32, x->inst);
        return;
    case QN_AXIS_PART: {
        char of[QN_AXIS_NAME_BYTES];
        int letter = s->cut[x->cut].letter;
        qn__axis_name(s, x->of, of);
        if (letter)
            snprintf(name, QN_AXIS_NAME_BYTES, "%.56s%c.%d", of, 'a' + letter, x->number);
        else
            snprintf(name, QN_AXIS_NAME_BYTES, "%.57s.%d", of, x->number);
        return;
    }
    default:
        snprintf(name, QN_AXIS_NAME_BYTES, "?");
    }
}

/** The number that digits stand for, which `*at` passes; -1: there is none, or it is above `most`.
 */
static int64_t take_number(const char **at, int64_t most)
{
    int64_t n = -1;
    for (bool is_zero = **at == '0'; **at >= '0' && **at <= '9' && !(is_zero && n == 0); ++*at) {
        n = (n < 0 ? 0 : n * 10) + (**at - '0');
        if (n > most)
            return -1;
    }
    return n;
}

const char *qn__axis_root(const char *name, qn_axis_info *out)
{
    const char *at = name + 1;
    bool is_dim = name[0] == 'd', is_point = name[0] == 'r';
    int64_t first = is_dim || is_point || name[0] == 't'
                        ? take_number(&at, is_dim ? QN_MAX_RANK - 1 : UINT32_MAX)
                        : -1;
    int64_t second = !is_point ? 0 : *at++ == 'd' ? take_number(&at, QN_MAX_RANK - 1) : -1;
    *out = (qn_axis_info){.kind = is_dim     ? QN_AXIS_DIM
                                  : is_point ? QN_AXIS_POINT
                                             : QN_AXIS_TRIP,
                          .number = (uint8_t)(is_dim ? first : second),
                          .inst = is_dim ? 0 : (uint32_t)first};
    return first >= 0 && second >= 0 ? at : NULL;
}

/** The axis that is no part of another one and is like this; 0: there is none. */
static qn_axis root_like(const qn_schedule *s, const qn_axis_info *root)
{
    for (uint16_t n = 1; n <= s->n_axes; n++)
        if (s->axis[n].kind == root->kind && s->axis[n].inst == root->inst &&
            s->axis[n].number == root->number)
            return (qn_axis){n};
    return (qn_axis){0};
}

qn_axis qn__axis_over(const qn_schedule *s, uint32_t inst, int d)
{
    const int kind = d < 0 ? QN_AXIS_TRIP : inst ? QN_AXIS_POINT : QN_AXIS_DIM;
    return root_like(s, &(qn_axis_info){.kind = (uint8_t)kind,
                                        .inst = inst,
                                        .number = (uint8_t)(d < 0 ? 0 : d)});
}

/** Part `number` of the cut of an axis that has this letter; 0: there is none. */
static qn_axis part_of(const qn_schedule *s, qn_axis of, int letter, int64_t number)
{
    for (int c = 0; c < s->n_cuts; c++)
        if (s->cut[c].of.id == of.id && s->cut[c].letter == letter && number >= 0 &&
            number < s->cut[c].n)
            return qn__axis_part(&s->cut[c], (int)number);
    return (qn_axis){0};
}

qn_axis qn__axis_find(const qn_schedule *s, const char *name)
{
    qn_axis_info root;
    const char *at = *name ? qn__axis_root(name, &root) : NULL;
    qn_axis a = at ? root_like(s, &root) : (qn_axis){0};
    while (a.id && *at) {
        int letter = *at > 'a' && *at <= 'z' ? *at++ - 'a' : 0;
        a = *at++ == '.' ? part_of(s, a, letter, take_number(&at, QN_MOST_PARTS)) : (qn_axis){0};
    }
    return a;
}

/* ---------------------------------------------------------------- the kernel as declared */

typedef struct maker {
    const qn_analysis *x;
    qn_schedule *s;
    bool is_full;
} maker;

static qn_node new_node(maker *m, qn_node parent, const qn_node_info *info)
{
    qn_node n = qn__node_new(m->s, info);
    if (n.id)
        qn__node_append(m->s, parent, n);
    else
        m->is_full = true;
    return n;
}

static qn_node new_loop(maker *m, qn_node parent, qn_axis_info axis)
{
    qn_axis a = qn__axis_new(m->s, &axis);
    if (a.id)
        m->s->axis[a.id].count = qn__axis_count(m->x, m->s, a);
    else
        m->is_full = true;
    return new_node(m, parent, &(qn_node_info){.kind = QN_NODE_LOOP, .axis = a});
}

const qn_node_info *qn__loop_behind(const qn_schedule *s, const qn_node_info *l)
{
    while (++l <= s->node + s->n_nodes)
        if (l->kind == QN_NODE_LOOP)
            return l;
    return NULL;
}

int qn__buffer_place(const qn_buffer_info *b, qn_axis a)
{
    int n = b->n_axes - 1;
    while (n >= 0 && b->axis[n].id != a.id)
        n--;
    return n;
}

bool qn__is_within(const qn_schedule *s, qn_node n, qn_node outer)
{
    while (n.id && n.id != outer.id)
        n = qn__node(s, n)->parent;
    return n.id == outer.id;
}

bool qn__has_threads(const qn_schedule *s)
{
    FOR_LOOPS (s, l)
        if (l->role >= QN_ROLE_THREADS && l->role <= QN_ROLE_THREAD)
            return true;
    return false;
}

int qn__lanes_of(const qn_analysis *x, const qn_schedule *s)
{
    FOR_LOOPS(s, l)
    if (l->role == QN_ROLE_VECTOR)
        return qn__axis_dim(x, s, l->axis);
    return -1;
}

const qn_reduced *qn__reduction_of(const qn_schedule *s, uint32_t i)
{
    for (int n = 0; n < s->n_reductions; n++)
        for (int m = 0; m < s->reduction[n].n; m++)
            if (s->reduction[n].inst[m] == i)
                return &s->reduction[n];
    return NULL;
}

static void add_region(maker *m, qn_node parent, uint32_t begin, uint32_t end);

static void add_reduce(maker *m, qn_node parent, uint32_t i)
{
    const qn_kernel *k = m->x->k;
    const qn_inst *x = &k->inst[i];
    if (m->s->n_reductions == QN_MOST_REDUCTIONS) {
        m->is_full = true;
        return;
    }
    m->s->reduction[m->s->n_reductions] =
        (qn_reduced){.n = 1, .order = (uint8_t)qn__order_rule(k, i), .inst[0] = i};
    qn_node at = new_node(m, parent,
                          &(qn_node_info){.kind = QN_NODE_PLACE,
                                          .index = (uint8_t)m->s->n_reductions++,
                                          .first = i,
                                          .end = x->region[2]});
    for (int n = 0; n < x->n_args && !m->is_full; n++)
        at =
            new_loop(m, at,
                     (qn_axis_info){
                         .kind = QN_AXIS_POINT, .inst = i, .number = (uint8_t)qn__dim_of(k, i, n)});
    add_region(m, at, x->region[0], x->region[1]);
}

/** The statements of a region and the reduces among them; what else has regions is part of a
 * statement. */
static void add_region(maker *m, qn_node parent, uint32_t begin, uint32_t end)
{
    const qn_kernel *k = m->x->k;
    uint32_t first = begin;
    for (uint32_t i = begin; i < end && !m->is_full; i = k->inst[i].region[2]) {
        if (k->inst[i].op != QN_I_REDUCE)
            continue;
        if (first < i)
            new_node(m, parent, &(qn_node_info){.kind = QN_NODE_DO, .first = first, .end = i});
        add_reduce(m, parent, i);
        first = k->inst[i].region[2];
    }
    if (first < end && !m->is_full)
        new_node(m, parent, &(qn_node_info){.kind = QN_NODE_DO, .first = first, .end = end});
}

/** An empty schedule with a loop for each dimension that is none of reduces; the innermost one. */
static qn_node begin_loops(maker *m)
{
    const qn_kernel *k = m->x->k;
    qn_schedule *s = m->s;
    qn_node at = {0};
    memset(s, 0, offsetof(qn_schedule, cut));
    memset(&s->node[0], 0, sizeof s->node[0]);
    s->straight = -1;
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d))
            at = new_loop(m, at, (qn_axis_info){.kind = QN_AXIS_DIM, .number = (uint8_t)d});
    return at;
}

static qn_status fail_full(const qn_kernel *k, qn_error *err)
{
    return qn__fail(err, QN_ERR_LIMIT,
                    "schedule: kernel \"%s\" has more than %d reduces, or %d statements", k->name,
                    QN_MOST_REDUCTIONS, QN_MOST_NODES);
}

qn_status qn__schedule_declared(const qn_analysis *x, qn_schedule *out, qn_error *err)
{
    maker m = {.x = x, .s = out};
    add_region(&m, begin_loops(&m), x->k->body, x->k->n_insts);
    return m.is_full ? fail_full(x->k, err) : QN_OK;
}

qn_status qn__schedule_begin(const qn_analysis *x, qn_schedule *out, qn_error *err)
{
    qn_status status = qn__schedule_declared(x, out, err);
    return status == QN_OK ? qn__schedule_derive(x, out, err) : status;
}

qn_status qn__schedule_loops(const qn_analysis *x, qn_schedule *out, qn_error *err)
{
    maker m = {.x = x, .s = out};
    new_node(&m, begin_loops(&m),
             &(qn_node_info){.kind = QN_NODE_DO, .first = x->k->body, .end = x->k->n_insts});
    return m.is_full ? fail_full(x->k, err) : QN_OK;
}
