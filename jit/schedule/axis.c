/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.c: what an axis is made of: how often it is walked, by how many steps it moves the
 * dimension, the points or the trips that it is a part of.
 */
#include "jit/schedule/tree.h"

#include <string.h>

bool qn__axis_cut(qn_schedule *s, qn_axis of, const qn_cut *how, qn_axis *first)
{
    char name[QN_AXIS_NAME_BYTES];
    if (s->n_cuts == QN_MOST_CUTS || s->n_axes + how->n > QN_MOST_AXES || how->n < 2 ||
        how->n > QN_MOST_PARTS || !of.id)
        return false;
    qn__axis_name(s, of, name);
    qn_cut *c = &s->cut[s->n_cuts];
    *c = *how;
    c->of = of;
    c->letter = 0;
    for (int n = 0; n < s->n_cuts; n++)
        c->letter = (uint8_t)(c->letter + (s->cut[n].of.id == of.id));
    if (strlen(name) + 8 > QN_AXIS_NAME_BYTES || c->letter > 25)
        return false;
    for (int n = 0; n < how->n; n++) {
        qn_axis a = qn__axis_new(s, &(qn_axis_info){.kind = QN_AXIS_PART,
                                                    .number = (uint8_t)n,
                                                    .cut = (uint8_t)s->n_cuts,
                                                    .of = of});
        if (n == 0)
            c->first = a;
    }
    *first = c->first;
    s->n_cuts++;
    return true;
}

qn_axis qn__axis_part(const qn_cut *c, int n)
{
    return (qn_axis){(uint16_t)(c->first.id + n)};
}

/** a x b, INT64_MAX where that is too large. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/** Steps of the axis that was cut by which a part of digits moves. */
static int64_t digit_weight(const qn_cut *c, int number)
{
    int64_t weight = 1;
    for (int n = number + 1; n < c->n; n++)
        weight = times(weight, c->extent[n]);
    return weight;
}

static qn_count count_of_dim(const qn_facts *f, int d)
{
    int64_t trips = qn__trips(f, d);
    if (!qn__is_exact(f, d))
        return (qn_count){QN_COUNT_SYMBOLIC, INT64_MAX};
    return (qn_count){QN_COUNT_EXACT, trips > 0 ? trips : 0};
}

static qn_count count_of_trips(const qn_analysis *x, uint32_t i)
{
    const uint32_t *arg = qn__args(x->k, i);
    int64_t begin, end, trips = -1;
    if (x->k->inst[i].op == QN_I_WHILE)
        return (qn_count){QN_COUNT_DATA, INT64_MAX};
    if (qn__is_number(x, arg[0], &begin) && qn__is_number(x, arg[1], &end))
        trips = qn__trips_between(begin, end, (int64_t)x->k->inst[i].imm);
    if (trips >= 0)
        return (qn_count){QN_COUNT_EXACT, trips};
    bool is_uniform = qn__is_made_of_indices(x->k, arg[0]) &&
                      qn__is_made_of_indices(x->k, arg[1]) && !x->value[arg[0]].deps &&
                      !x->value[arg[1]].deps;
    return (qn_count){is_uniform ? QN_COUNT_SYMBOLIC : QN_COUNT_DATA, INT64_MAX};
}

static int64_t clamp(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/** Of section `number` of an axis with n iterations. */
static qn_count count_of_section(const qn_cut *c, int number, qn_count whole)
{
    int64_t low = 0, high = 0;
    for (int n = 0; n <= number; n++) {
        const qn_bound *b = &c->bound[n];
        low = high;
        if (n < c->n - 1 && b->from == QN_FROM_AXIS)
            return (qn_count){QN_COUNT_DATA, INT64_MAX};
        if (whole.kind != QN_COUNT_EXACT)
            continue;
        int64_t end = n == c->n - 1            ? whole.most
                      : b->from == QN_FROM_END ? whole.most + clamp(b->offset, -whole.most, 0)
                                               : clamp(b->offset, 0, whole.most);
        high = end > low ? end : low;
    }
    return whole.kind == QN_COUNT_EXACT ? (qn_count){QN_COUNT_EXACT, high - low} : whole;
}

static qn_count count_of_part(const qn_analysis *x, const qn_schedule *s, const qn_axis_info *a)
{
    const qn_cut *c = &s->cut[a->cut];
    qn_count whole = qn__axis_count(x, s, c->of);
    if (c->kind == QN_CUT_SECTIONS)
        return count_of_section(c, a->number, whole);
    int64_t step = digit_weight(c, 0);
    if (a->number == 0) {
        if (whole.kind == QN_COUNT_EXACT || whole.kind == QN_COUNT_MOST)
            whole.most = whole.most / step + (whole.most % step != 0);
        return whole;
    }
    bool is_whole = c->tail == QN_TAIL_NONE || c->tail == QN_TAIL_OVERLAP ||
                    (whole.kind == QN_COUNT_EXACT && whole.most % step == 0);
    return (qn_count){is_whole ? QN_COUNT_EXACT : QN_COUNT_MOST, c->extent[a->number]};
}

qn_count qn__axis_count(const qn_analysis *x, const qn_schedule *s, qn_axis axis)
{
    const qn_axis_info *a = qn__axis(s, axis);
    switch (a->kind) {
    case QN_AXIS_DIM:
    case QN_AXIS_POINT:
        return count_of_dim(x->f, a->number);
    case QN_AXIS_TRIP:
        return count_of_trips(x, a->inst);
    case QN_AXIS_PART:
        return count_of_part(x, s, a);
    default:
        return (qn_count){QN_COUNT_EXACT, 0};
    }
}

int64_t qn__axis_weight(const qn_analysis *x, const qn_schedule *s, qn_axis axis, qn_axis *root)
{
    const qn_axis_info *a = qn__axis(s, axis);
    if (root)
        *root = axis;
    if (a->kind == QN_AXIS_NONE)
        return 0;
    if (a->kind != QN_AXIS_PART)
        return 1;
    const qn_cut *c = &s->cut[a->cut];
    int64_t outer = qn__axis_weight(x, s, c->of, root);
    int64_t weight = c->kind == QN_CUT_SECTIONS ? outer : times(outer, digit_weight(c, a->number));
    return weight == INT64_MAX ? 0 : weight;
}

/** What an axis is made of; of one whose weight is not known nothing. */
static const qn_axis_info *root_of(const qn_analysis *x, const qn_schedule *s, qn_axis axis)
{
    qn_axis root;
    return qn__axis_weight(x, s, axis, &root) ? qn__axis(s, root) : &s->axis[0];
}

int qn__axis_dim(const qn_analysis *x, const qn_schedule *s, qn_axis axis)
{
    const qn_axis_info *a = root_of(x, s, axis);
    return a->kind == QN_AXIS_DIM || a->kind == QN_AXIS_POINT ? a->number : -1;
}

uint32_t qn__axis_loop(const qn_analysis *x, const qn_schedule *s, qn_axis axis)
{
    const qn_axis_info *a = root_of(x, s, axis);
    return a->kind == QN_AXIS_TRIP ? a->inst : 0;
}

qn_trip_lanes qn__trip_lanes_of(const qn_analysis *x, const qn_schedule *s)
{
    qn_trip_lanes t = {0};
    FOR_LOOPS (s, l) {
        uint32_t loop = l->role == QN_ROLE_VECTOR ? qn__axis_loop(x, s, l->axis) : 0;
        for (int m = 0; m < t.n && loop; m++)
            loop = t.loop[m] == loop ? 0 : loop;
        if (loop && t.n < QN_MOST_TRIP_LANES)
            t.loop[t.n++] = loop;
    }
    return t;
}

uint32_t qn__axis_dims(const qn_analysis *x, const qn_schedule *s, qn_axis axis)
{
    const qn_axis_info *a = qn__axis(s, axis);
    switch (a->kind) {
    case QN_AXIS_DIM:
    case QN_AXIS_POINT:
        return UINT32_C(1) << a->number;
    case QN_AXIS_TRIP:
        return qn__trips_dim(x->k) < 0 ? 0 : UINT32_C(1) << qn__trips_dim(x->k);
    case QN_AXIS_PART:
        return qn__axis_dims(x, s, a->of);
    default:
        return 0;
    }
}

bool qn__axis_is_of(const qn_schedule *s, qn_axis axis, qn_axis of)
{
    const qn_axis_info *a = qn__axis(s, axis);
    return axis.id == of.id || (a->kind == QN_AXIS_PART && qn__axis_is_of(s, a->of, of));
}
