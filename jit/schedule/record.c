/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c: how each access of each statement is made. The facts give the method and the check;
 * streams, prefetch distances and buffers are asked for by transformations.
 */
#include "jit/analysis/flat.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/verify.h"

#include <string.h>

qn_node qn__vector_around(const qn_schedule *s, qn_node n)
{
    for (; n.id; n = qn__node(s, n)->parent)
        if (qn__node(s, n)->kind == QN_NODE_LOOP && qn__node(s, n)->role == QN_ROLE_VECTOR)
            return n;
    return n;
}

const qn_record_info *qn__record_at(const qn_schedule *s, qn_node at, uint32_t inst, int is_tail)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].at.id == at.id && s->record[n].inst == inst &&
            s->record[n].is_tail == is_tail)
            return &s->record[n];
    return NULL;
}

/** Elements from lane to lane; false if the facts do not say. */
static bool lane_stride(const qn_analysis *x, const qn_schedule *s, qn_axis lanes, uint32_t inst,
                        int64_t *stride)
{
    int64_t weight = qn__axis_weight(x, s, lanes, NULL);
    int d = qn__axis_dim(x, s, lanes);
    uint32_t loop = qn__axis_loop(x, s, lanes);
    bool is_known = d >= 0 ? qn__access_stride(x, inst, d, stride)
                           : loop && qn__trip_stride(x, inst, loop, stride);
    if (!is_known)
        return false;
    *stride = qn__wrap_mul(*stride, weight);
    return true;
}

/** The number of the group of an access: 1 + the site of its first member; 0: it has none, or none
 * that has a number. */
static uint8_t group_number(const qn_analysis *x, const qn_schedule *s, qn_axis lanes,
                            uint32_t inst)
{
    qn_group group;
    int d = qn__axis_dim(x, s, lanes);
    if (d < 0 || qn__axis_weight(x, s, lanes, NULL) != 1 || !qn__group_of(x, d, inst, &group))
        return 0;
    uint32_t first = qn__site_of(x->k, group.first);
    return first < UINT8_MAX ? (uint8_t)(first + 1) : 0;
}

void qn__record_derive(const qn_analysis *x, const qn_schedule *s, qn_record_info *r)
{
    uint32_t site = qn__site_of(x->k, r->inst);
    int64_t stride = 0;
    qn_node vector = qn__vector_around(s, r->at);
    r->check = qn__is_in_range(x->f, site)        ? QN_CHECK_PROVED
               : qn__is_checked(x->f, x->k, site) ? QN_CHECK_PER_LANE
                                                  : QN_CHECK_UNCHECKED;
    r->stride = 0;
    r->index = 0;
    if (!vector.id) {
        r->method = QN_METHOD_UNIFORM;
        return;
    }
    if (!lane_stride(x, s, qn__node(s, vector)->axis, r->inst, &stride))
        r->method = QN_METHOD_GATHER;
    else if (stride == 0)
        r->method = QN_METHOD_UNIFORM;
    else if (stride == 1 && qn__is_plain_access(x->k, x->f, r->inst))
        r->method = QN_METHOD_CONTIGUOUS;
    else {
        r->index = group_number(x, s, qn__node(s, vector)->axis, r->inst);
        r->method = r->index ? QN_METHOD_GROUP : QN_METHOD_STRIDED;
        r->stride = stride;
    }
}

/** Whether the lanes around a statement have a tail of their own. */
static bool has_tail(const qn_analysis *x, const qn_schedule *s, qn_node at)
{
    qn_node vector = qn__vector_around(s, at);
    if (!vector.id)
        return false;
    const qn_axis_info *a = qn__axis(s, qn__node(s, vector)->axis);
    return a->kind == QN_AXIS_PART && s->cut[a->cut].kind == QN_CUT_DIGITS &&
           s->cut[a->cut].tail != QN_TAIL_NONE &&
           qn__axis_count(x, s, qn__node(s, vector)->axis).kind != QN_COUNT_EXACT;
}

/** Of n records that of an access like r, in the statement if it had one, else in any. */
static const qn_record_info *asked_of(const qn_record_info *record, int n, const qn_record_info *r)
{
    const qn_record_info *found = NULL;
    for (int i = 0; i < n; i++)
        if (record[i].inst == r->inst &&
            (!found || (record[i].at.id == r->at.id && record[i].is_tail == r->is_tail)))
            found = &record[i];
    return found;
}

static void keep_asked(const qn_record_info *old, qn_record_info *r)
{
    if (!old)
        return;
    r->streams = old->streams;
    r->ahead = old->ahead;
    r->along = old->along;
    if (old->method == QN_METHOD_THROUGH ||
        (old->method == QN_METHOD_TABLE && r->method == QN_METHOD_GATHER) ||
        (old->method == QN_METHOD_GROUP && r->method == QN_METHOD_GROUP)) {
        r->method = old->method;
        r->index = old->index;
    }
}

/* ---------------------------------------------------------------- what facts ask for */

/** Lanes of a step around a statement, so many at most as code is made for, and the dimension that
 * they are along. Schedules that are not verified yet have any number. */
static int64_t lanes_around(const qn_analysis *x, const qn_schedule *s, qn_node at, int *d,
                            int *width)
{
    qn_node vector = qn__vector_around(s, at);
    const int64_t most = (int64_t)QN_MOST_LANES * QN_MOST_UNROLLED;
    int64_t lanes = qn__axis_count(x, s, qn__node(s, vector)->axis).most;
    lanes = lanes > QN_MOST_LANES ? QN_MOST_LANES : lanes;
    *d = qn__axis_dim(x, s, qn__node(s, vector)->axis);
    *width = (int)lanes;
    for (qn_node n = at; n.id; n = qn__node(s, n)->parent) {
        const qn_node_info *l = qn__node(s, n);
        bool is_beside = l->kind == QN_NODE_LOOP && l->role == QN_ROLE_UNROLLED &&
                         qn__axis_dim(x, s, l->axis) == *d;
        int64_t n_beside = is_beside ? qn__axis_count(x, s, l->axis).most : 1;
        lanes *= n_beside > QN_MOST_UNROLLED ? QN_MOST_UNROLLED : n_beside;
        lanes = lanes > most ? most : lanes;
    }
    return lanes;
}

/** The record of an access in the whole steps of a statement; NULL: none, or it is not of a group.
 */
static const qn_record_info *grouped(const qn_schedule *s, qn_node at, uint32_t inst)
{
    const qn_record_info *r = qn__record_at(s, at, inst, 0);
    return r && r->method == QN_METHOD_GROUP ? r : NULL;
}

/** Whether the stores of a group have records of groups in a statement, all of them flat. */
static bool are_grouped(const qn_schedule *s, qn_node at, const qn_group *x, bool are_flat)
{
    for (int p = 0; p < x->n; p++) {
        const qn_record_info *r = x->inst[p] ? grouped(s, at, x->inst[p]) : NULL;
        if (x->inst[p] && (!r || (are_flat && !r->is_flat)))
            return false;
    }
    return true;
}

void qn__find_flat(const qn_analysis *x, const qn_schedule *s, qn_node at, bool of_flat,
                   uint8_t *is_flat)
{
    const qn_kernel *k = x->k;
    const qn_node_info *node = qn__node(s, at);
    int d, width;
    memset(is_flat, 0, k->n_insts);
    if (!qn__vector_around(s, at).id || node->first < k->body || node->end > k->n_insts)
        return;
    lanes_around(x, s, at, &d, &width);
    for (uint32_t i = node->first; i < node->end; i++) {
        qn_group group;
        qn_flat flat;
        if (k->inst[i].op != QN_I_STORE || !grouped(s, at, i) ||
            !qn__group_of(x, d, i, &group) || group.last != i ||
            !are_grouped(s, at, &group, of_flat) || !qn__flat_of(x, d, width, i, &flat) ||
            !qn__flat_loads(x, &flat, is_flat))
            continue;
        for (int p = 0; p < flat.group.n; p++)
            is_flat[flat.group.inst[p]] = 1;
    }
    is_flat[0] = 0;
}

/** Sets what the facts ask of the records from number `from` on: which lanes that lie apart are
 * accessed one by one, and which atomics no other thread meets. */
static void ask_records(const qn_analysis *x, qn_schedule *s, int from)
{
    const qn_kernel *k = x->k;
    qn_apart apart = {0};
    uint8_t *is_flat = qn__alloc(k->n_insts);
    qn_node flat_at = {0};
    bool is_known = false, is_alone = x->f->atomics != QN_ATOMICS_OF_ALL && !qn__has_threads(s);
    for (int n = from; n < s->n_records; n++) {
        qn_record_info *r = &s->record[n], in_view = *r;
        int op = k->inst[r->inst].op, d, width;
        if (r->method == QN_METHOD_THROUGH) /* what is left of whole steps may go to the view */
            qn__record_derive(x, s, &in_view);
        r->is_single = 0;
        r->is_flat = 0;
        r->is_plain = op == QN_I_ATOMIC && is_alone;
        if ((in_view.method != QN_METHOD_STRIDED && in_view.method != QN_METHOD_GROUP) ||
            op == QN_I_ATOMIC)
            continue;
        if (is_flat && r->method == QN_METHOD_GROUP && !r->is_tail && flat_at.id != r->at.id) {
            qn__find_flat(x, s, r->at, false, is_flat);
            flat_at = r->at;
        }
        r->is_flat = is_flat && r->method == QN_METHOD_GROUP && !r->is_tail && is_flat[r->inst];
        int64_t lanes = lanes_around(x, s, r->at, &d, &width);
        if (d < 0) /* trips: code has no other way than for all lanes */
            continue;
        int64_t bytes = qn__access_bytes(k, r->inst),
                stride = qn__wrap_mul(in_view.stride, qn__unit_of(k, x->f, r->inst) / bytes);
        if (!is_known)
            apart = qn__apart_of(x, d, lanes);
        is_known = true;
        bool is_load = op == QN_I_LOAD,
             is_gathered = is_load && apart.gathers && !qn__is_small_stride(stride);
        r->is_single = !r->is_flat && !is_gathered &&
                       qn__is_one_by_one(x->f, is_load ? x->f->plan.apart : apart.few, is_load,
                                         bytes, width, stride);
    }
    qn__free(is_flat);
}

/** Adds the records that statements lack, of which the numbers may be anything; what was asked of
 * n old ones is kept. */
static qn_status add_records(const qn_analysis *x, qn_schedule *s, const qn_record_info *old, int n,
                             qn_error *err)
{
    const int given = s->n_records;
    for (uint16_t id = 1; id <= s->n_nodes; id++) {
        const qn_node_info *l = &s->node[id];
        const qn_node at = {id};
        if (l->kind != QN_NODE_DO || l->first < x->k->body || l->end > x->k->n_insts)
            continue;
        int n_tails = has_tail(x, s, at);
        for (uint32_t i = l->first; i < l->end; i++)
            for (int tail = 0; qn__is_access(&x->k->inst[i]) && tail <= n_tails; tail++) {
                qn_record_info *r = &s->record[s->n_records];
                if (given && qn__record_at(s, at, i, tail))
                    continue;
                if (s->n_records++ == QN_MOST_RECORDS)
                    return qn__fail(err, QN_ERR_LIMIT,
                                    "schedule: kernel \"%s\" has more than %d access records",
                                    x->k->name, QN_MOST_RECORDS);
                *r = (qn_record_info){.at = at, .inst = i, .is_tail = (uint8_t)tail};
                qn__record_derive(x, s, r);
                keep_asked(asked_of(old, n, r), r);
            }
    }
    ask_records(x, s, given);
    return QN_OK;
}

qn_status qn__records_complete(const qn_analysis *x, qn_schedule *s, qn_error *err)
{
    return add_records(x, s, NULL, 0, err);
}

qn_status qn__schedule_derive(const qn_analysis *x, qn_schedule *s, qn_error *err)
{
    const int n = s->n_records;
    qn_record_info *old = qn__alloc((size_t)(n + 1) * sizeof *old);
    if (!old)
        return qn__fail(err, QN_ERR_MEMORY, "schedule: no memory for access records");
    memcpy(old, s->record, (size_t)n * sizeof *old);
    s->n_records = 0;
    qn_status status = add_records(x, s, old, n, err);
    qn__free(old);
    return status;
}
