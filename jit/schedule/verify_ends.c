/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_ends.c: buffers of line ends. A store whose lanes fill a cache line writes whole lines
 * where a row begins anywhere in one: what a step leaves of a line waits for the next step of the
 * lanes, and the last of it is flushed behind the loop over the steps.
 *
 *   1. The steps are one loop, in the order of the index, and the flush stands right behind that.
 *   2. In a step the store has each row once: the buffer is over all loops inside the steps that
 *      move the store, and no step overlaps another one.
 *   3. Elements are written one step late, so nothing else may have them: no other access of the
 *      view, and no later one of a view that launches may give the same elements.
 */
#include "jit/schedule/verify.h"

/** The node before a flush beside it; 0: the flush is the first. */
static qn_node before(const qn_schedule *s, qn_node flush)
{
    const qn_node_info *around = qn__node(s, qn__node(s, flush)->parent);
    qn_node n = around->kind ? around->child : s->root, last = {0};
    for (; n.id && n.id != flush.id; n = qn__node(s, n)->next)
        last = n;
    return last;
}

static bool have_own_iterations(const qn_schedule *s)
{
    for (int n = 0; n < s->n_cuts; n++)
        if (s->cut[n].kind == QN_CUT_DIGITS && s->cut[n].tail == QN_TAIL_OVERLAP)
            return false;
    return true;
}

/** The loop over the steps of the lanes, of which a flush stores the last; 0: there is none. */
qn_node qn__verify_steps(qn_verifier *v, qn_node at, int buffer, qn_node flush)
{
    const qn_schedule *s = v->s;
    const qn_buffer_info *b = &s->buffer[buffer];
    qn_node steps = before(s, flush), lanes = qn__vector_around(s, at);
    const qn_node_info *l = qn__node(s, steps), *vector = qn__node(s, lanes);
    qn_record_info derived = {.at = at, .inst = b->inst};
    qn_axis root, of_lanes;
    if (!lanes.id || l->kind != QN_NODE_LOOP || l->role != QN_ROLE_SEQUENTIAL) {
        qn__refuse(v, "b%d: its flush stands behind no loop over steps of lanes", buffer);
        return (qn_node){0};
    }
    int64_t step = qn__axis_weight(v->x, s, l->axis, &root),
            weight = qn__axis_weight(v->x, s, vector->axis, &of_lanes);
    qn__record_derive(v->x, s, &derived);
    if (root.id != of_lanes.id || weight != 1 || derived.method != QN_METHOD_CONTIGUOUS ||
        qn__axis_count(v->x, s, vector->axis).most != step) {
        qn__refuse(v, "b%d: steps of loop %s are no vectors of consecutive elements", buffer,
                   qn__axis_text(v, l->axis).name);
        return (qn_node){0};
    }
    if (!have_own_iterations(s)) {
        qn__refuse(v, "b%d: steps that overlap store a row twice", buffer);
        return (qn_node){0};
    }
    return steps;
}
