/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_access.c: transformations of buffers and of access records. A record is changed in
 * every statement that has the access.
 */
#include "jit/analysis/group.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/transform.h"

#include <string.h>

static qn_status no_access(uint32_t i, const char *what, qn_error *err)
{
    return qn__fail(err, QN_ERR_ARGUMENT, "schedule: access %%%u: %s", i, what);
}

/** Calls for every record of an instruction; an error if there is none. */
#define FOR_RECORDS(s, i, r)                                                                       \
    for (qn_record_info *r = (s)->record; r < (s)->record + (s)->n_records; r++)                   \
        if (r->inst == (i))

static bool has_record(const qn_schedule *s, uint32_t i)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].inst == i)
            return true;
    return false;
}

/* ---------------------------------------------------------------- marks */

qn_status qn__apply_stream(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    (void)x;
    FOR_RECORDS(s, how->inst, r)
    r->streams = 1;
    return has_record(s, how->inst) ? QN_OK : no_access(how->inst, "there is none", err);
}

qn_status qn__apply_prefetch(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                             qn_error *err)
{
    (void)x;
    if (how->number[0] < 1 || how->number[0] > INT32_MAX || !has_record(s, how->inst))
        return no_access(how->inst, "there is none, or nothing is ahead", err);
    FOR_RECORDS (s, how->inst, r) {
        r->ahead = (int32_t)how->number[0];
        r->along = how->axis[0];
    }
    return QN_OK;
}

qn_status qn__apply_group(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    if (how->number[0] < 1 || how->number[0] > UINT8_MAX)
        return no_access(how->inst, "groups have numbers from 1 to 255", err);
    if (!has_record(s, how->inst))
        return no_access(how->inst, "there is none", err);
    bool is_any = false;
    for (int n = 0; n < s->n_records; n++) { /* all of the group, in the same statement */
        qn_record_info *r = &s->record[n], d = *r;
        qn_group group;
        qn__record_derive(x, s, &d);
        int lanes = qn__axis_dim(x, s, qn__node(s, qn__vector_around(s, r->at))->axis);
        if (d.method != QN_METHOD_GROUP ||
            (r->method != QN_METHOD_STRIDED && r->method != QN_METHOD_GROUP) ||
            !qn__group_of(x, lanes, how->inst, &group) ||
            !qn__is_of_group(x, lanes, r->inst, &group))
            continue;
        r->method = QN_METHOD_GROUP;
        r->index = (uint8_t)how->number[0];
        is_any = true;
    }
    return is_any ? QN_OK : no_access(how->inst, "it is of no group", err);
}

qn_status qn__apply_table(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    int registers = has_record(s, how->inst) && x->k->inst[how->inst].op == QN_I_LOAD
                        ? qn__table_registers(x, how->inst)
                        : 0;
    FOR_RECORDS(s, how->inst, r)
    if (registers && r->method == QN_METHOD_GATHER) {
        r->method = QN_METHOD_TABLE;
        r->index = (uint8_t)registers;
    }
    return registers ? QN_OK : no_access(how->inst, "registers do not hold the view", err);
}

/* ---------------------------------------------------------------- buffers */

/** A DO that holds an instruction, below a loop; 0: none. */
static qn_node statement_of(const qn_schedule *s, uint32_t i, qn_node below)
{
    for (uint16_t n = 1; n <= s->n_nodes; n++)
        if (s->node[n].kind == QN_NODE_DO && i >= s->node[n].first && i < s->node[n].end &&
            qn__is_within(s, (qn_node){n}, below))
            return (qn_node){n};
    return (qn_node){0};
}

/** Makes a buffer, which has the bytes of an element, one over the loops from a statement up to
 * another node, outermost first, that move what a mask of dimensions says. False if they are too
 * many, or their length is not known. */
static bool axes_between(const qn_analysis *x, const qn_schedule *s, qn_node at, qn_node up_to,
                         uint32_t dims, qn_buffer_info *b)
{
    qn_axis axis[QN_MOST_BUFFER_AXES];
    int n = 0;
    for (qn_node up = s->node[at.id].parent; up.id && up.id != up_to.id;
         up = s->node[up.id].parent) {
        if (s->node[up.id].kind != QN_NODE_LOOP ||
            !(dims & qn__axis_dims(x, s, s->node[up.id].axis)))
            continue;
        if (n == QN_MOST_BUFFER_AXES)
            return false;
        axis[n++] = s->node[up.id].axis;
    }
    b->n_axes = (uint8_t)n;
    for (int a = 0; a < n; a++) {
        b->axis[a] = axis[n - 1 - a];
        qn_count count = qn__axis_count(x, s, b->axis[a]);
        if (count.most == INT64_MAX || __builtin_mul_overflow(b->bytes, count.most, &b->bytes))
            return false;
    }
    return true;
}

/** Puts the axes of a buffer into an order that names each of them once; false: it does not. */
static bool put_in_order(int n, const qn_axis *order, qn_buffer_info *b)
{
    uint32_t left = (UINT32_C(1) << b->n_axes) - 1;
    if (n != b->n_axes)
        return false;
    for (int i = 0; i < n; i++)
        if (qn__buffer_place(b, order[i]) >= 0)
            left &= ~(UINT32_C(1) << qn__buffer_place(b, order[i]));
    if (!left)
        memcpy(b->axis, order, (size_t)n * sizeof *order);
    return !left;
}

/** Puts a node before the children of `parent`, or of the root, but for fills that stand first. */
static void put_first(qn_schedule *s, qn_node parent, qn_node n)
{
    qn_node *first = parent.id ? &s->node[parent.id].child : &s->root;
    while (first->id && s->node[first->id].kind == QN_NODE_FILL)
        first = &s->node[first->id].next;
    s->node[n.id].parent = parent;
    s->node[n.id].next = *first;
    *first = n;
}

/** Accesses of an instruction below a node go through the last buffer. */
static void set_through(qn_schedule *s, uint32_t i, qn_node below)
{
    FOR_RECORDS (s, i, r) {
        if (!qn__is_within(s, r->at, below))
            continue;
        r->method = QN_METHOD_THROUGH;
        r->index = (uint8_t)s->n_buffers;
        r->stride = 0;
    }
}

/** The loop that a step names first; no node: it names none, or there is none. */
static qn_node first_loop(const qn_schedule *s, const qn_step *how)
{
    return how->n_axes ? qn__next_loop(s, how->axis[0], (qn_node){0}) : (qn_node){0};
}

/** A buffer over the axes between the first loop of a step and access i below it, through which
 * that goes, and the fill or flush of the buffer, which stands nowhere yet. */
static qn_status add_buffer(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                            const qn_buffer_info *what, qn_node *move, qn_error *err)
{
    const uint32_t i = what->inst;
    const bool is_copy = what->content == QN_CONTENT_COPY;
    if (!has_record(s, i) || s->n_buffers == QN_MOST_BUFFERS ||
        x->k->inst[i].op != (is_copy ? QN_I_LOAD : QN_I_STORE))
        return no_access(i, "it is not what is kept, or there are too many buffers", err);
    const qn_node at = first_loop(s, how), statement = statement_of(s, i, at);
    const int kind = is_copy ? QN_NODE_FILL : QN_NODE_FLUSH;
    qn_buffer_info *b = &s->buffer[s->n_buffers];
    if ((how->n_axes && !at.id) || !statement.id)
        return no_access(i, "it is not below that loop", err);
    *b = *what;
    b->bytes = qn__access_bytes(x->k, i);
    if (!axes_between(x, s, statement, at, qn__moving_dims(x, i), b))
        return no_access(i, "the size of the buffer is not known", err);
    if (how->n_axes > 1 && !put_in_order(how->n_axes - 1, how->axis + 1, b))
        return no_access(i, "the buffer is over other axes than these", err);
    *move = qn__node_new(
        s, &(qn_node_info){.kind = (uint8_t)kind, .index = (uint8_t)s->n_buffers});
    if (!move->id)
        return no_access(i, "the schedule becomes too large", err);
    s->n_buffers++;
    set_through(s, i, at);
    return QN_OK;
}

qn_status qn__apply_buffer(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    const qn_buffer_info what = {
        .content = QN_CONTENT_COPY, .storage = how->option, .inst = how->inst};
    qn_node move;
    qn_status status = add_buffer(x, s, how, &what, &move, err);
    if (status == QN_OK)
        put_first(s, first_loop(s, how), move);
    return status;
}

qn_status qn__apply_join(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    const qn_buffer_info what = {
        .content = QN_CONTENT_ENDS, .storage = QN_STORAGE_SCRATCH, .inst = how->inst};
    const qn_node at = first_loop(s, how);
    qn_node move;
    qn_status status = add_buffer(x, s, how, &what, &move, err);
    if (status == QN_OK) { /* behind the loop */
        s->node[move.id].parent = s->node[at.id].parent;
        s->node[move.id].next = s->node[at.id].next;
        s->node[at.id].next = move;
    }
    return status;
}

qn_status qn__apply_accumulate(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                               qn_error *err)
{
    uint32_t i = how->inst, dims = 0;
    qn_node place = {0};
    for (uint16_t n = 1; n <= s->n_nodes; n++)
        if (s->node[n].kind == QN_NODE_PLACE && s->reduction[s->node[n].index].inst[0] == i)
            place = (qn_node){n};
    if (!place.id || s->n_buffers == QN_MOST_BUFFERS || x->k->inst[i].op != QN_I_REDUCE)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "schedule: place %%%u: there is none, or there are too many buffers", i);
    for (int d = 0; d < x->k->n_dims; d++)
        dims |= qn__is_reduction(x->k, d) ? 0 : UINT32_C(1) << d;
    qn_buffer_info *b = &s->buffer[s->n_buffers];
    *b = (qn_buffer_info){.content = QN_CONTENT_SUMS,
                          .storage = how->option,
                          .inst = i,
                          .bytes = qn_dtype_bytes(x->k->inst[i].type)};
    qn_node statement = statement_of(s, x->k->inst[i].region[1] - 1, place);
    if (!statement.id || !axes_between(x, s, statement, place, dims, b))
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "schedule: place %%%u: the size of its buffer is not known", i);
    s->reduction[s->node[place.id].index].buffer = (uint8_t)++s->n_buffers;
    return QN_OK;
}
