/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_steps.c: random steps on a schedule. Most operands are drawn from what a row of the
 * table can be applied to, so that every row is legal often enough; the others are any.
 */
#include "differential_draw.h"
#include "jit/schedule/plan.h"
#include "tests/tap.h"

#include <string.h>

/* ---------------------------------------------------------------- what fits a row */

static const qn_inst *inst_of(const drawing *d, const qn_record_info *r)
{
    return &d->kernel->inst[r->inst];
}

static bool is_access(const drawing *d, const qn_record_info *r)
{
    (void)d;
    return r->method != QN_METHOD_THROUGH;
}

static bool is_line_store(const drawing *d, const qn_record_info *r)
{
    return inst_of(d, r)->op == QN_I_STORE && r->method == QN_METHOD_CONTIGUOUS && !r->streams;
}

static bool is_grouped(const drawing *d, const qn_record_info *r)
{
    (void)d;
    return r->method == QN_METHOD_GROUP;
}

static bool is_small_gather(const drawing *d, const qn_record_info *r)
{
    return r->method == QN_METHOD_GATHER && inst_of(d, r)->op == QN_I_LOAD &&
           qn__table_registers(&d->x, r->inst) > 0;
}

/** The loop that is all that stands inside a loop; 0: something else is. */
static qn_node only_loop(const drawing *d, qn_node loop)
{
    const qn_node_info *c = qn__node(d->now, qn__node(d->now, loop)->child);
    return c->kind == QN_NODE_LOOP && !c->next.id ? qn__node(d->now, loop)->child : (qn_node){0};
}

static bool has_only_loop(const drawing *d, qn_node loop)
{
    return only_loop(d, loop).id != 0;
}

/** Several nodes: values that go from one to the other are kept if the loop has registers. */
static bool has_several(const drawing *d, qn_node loop)
{
    int role = qn__node(d->now, loop)->role;
    return (role == QN_ROLE_VECTOR || role == QN_ROLE_UNROLLED || random_percent(d->random, 30)) &&
           qn__node(d->now, qn__node(d->now, loop)->child)->next.id != 0;
}

static bool is_sequential(const drawing *d, qn_node loop)
{
    return qn__node(d->now, loop)->role == QN_ROLE_SEQUENTIAL;
}

/** The place of a reduce that is all that stands inside a loop; 0: something else is. */
static qn_node only_place(const drawing *d, qn_node loop)
{
    const qn_node_info *c = qn__node(d->now, qn__node(d->now, loop)->child);
    return c->kind == QN_NODE_PLACE && !c->next.id ? qn__node(d->now, loop)->child : (qn_node){0};
}

/** A loop over iterations that may have accumulators in registers, of a reduce that may be placed
 * outside. */
static bool may_move_place(const drawing *d, qn_node loop)
{
    int role = qn__node(d->now, loop)->role;
    return (role == QN_ROLE_VECTOR || role == QN_ROLE_UNROLLED) && only_place(d, loop).id;
}

/** A sequential loop around one place, which vectorize or unroll makes one that may be moved. */
static bool may_get_role(const drawing *d, qn_node loop)
{
    return is_sequential(d, loop) && only_place(d, loop).id;
}

/** The second of two places beside one another whose reduces are over one range; 0: there is none.
 */
static qn_node second_place(const drawing *d)
{
    const qn_schedule *s = d->now;
    for (uint16_t n = 1; n <= s->n_nodes; n++) {
        qn_node before = {n}, at = s->node[n].next;
        if (s->node[n].kind != QN_NODE_PLACE)
            continue;
        while (at.id && s->node[at.id].kind != QN_NODE_PLACE)
            at = s->node[at.id].next;
        uint32_t one = s->reduction[s->node[before.id].index].inst[0],
                 two = s->reduction[s->node[at.id].index].inst[0];
        const qn_inst *x = &d->kernel->inst[one], *y = &d->kernel->inst[two];
        if (at.id && x->n_args == y->n_args && x->op == y->op &&
            memcmp(qn__args(d->kernel, one), qn__args(d->kernel, two),
                   x->n_args * sizeof(uint32_t)) == 0)
            return at;
    }
    return (qn_node){0};
}

/** What the first instruction and the first loop of a row are drawn from; NULL: any. */
static const struct fit {
    const char *row;
    bool (*record)(const drawing *d, const qn_record_info *r);
    bool (*loop)(const drawing *d, qn_node loop);
} fits[] = {
    {"reorder", NULL, has_only_loop},
    {"distribute", NULL, has_several}, {"place", NULL, may_move_place},
    {"tile", NULL, has_only_loop},     {"vectorize", NULL, is_sequential},
    {"unroll", NULL, is_sequential},   {"parallelize", NULL, is_sequential},
    {"bind", NULL, is_sequential},     {"buffer", is_access, NULL},
    {"stream", is_line_store, NULL},   {"prefetch", is_access, NULL},
    {"group", is_grouped, NULL},       {"table", is_small_gather, NULL},
};

static const struct fit *fit_of(const char *row)
{
    static const struct fit any = {"", NULL, NULL};
    for (size_t n = 0; n < sizeof fits / sizeof fits[0]; n++)
        if (strcmp(fits[n].row, row) == 0)
            return &fits[n];
    return &any;
}

/* ---------------------------------------------------------------- operands */

/** A loop for which `is_so` holds, or any; 0: none. Each is as probable as the others. */
static qn_node random_loop(const drawing *d, bool (*is_so)(const drawing *d, qn_node loop))
{
    qn_node found = {0};
    int n_found = 0;
    for (uint16_t n = 1; n <= d->now->n_nodes; n++) {
        qn_node at = {n};
        if (qn__node(d->now, at)->kind != QN_NODE_LOOP || (is_so && !is_so(d, at)))
            continue;
        if (random_below(d->random, ++n_found) == 0)
            found = at;
    }
    return found;
}

static qn_axis random_axis(const drawing *d, const struct fit *fit)
{
    if (d->last.id && random_percent(d->random, 40))
        return d->last;
    qn_node at = {0};
    if (fit->loop == is_sequential && random_percent(d->random, 30))
        at = random_loop(d, may_get_role);
    if (!at.id)
        at = random_loop(d, random_percent(d->random, 85) ? fit->loop : NULL);
    return at.id ? qn__node(d->now, at)->axis : d->last;
}

/** An axis that was cut into digits. */
static qn_axis random_cut(const drawing *d)
{
    const qn_cut *c =
        d->now->n_cuts ? &d->now->cut[random_below(d->random, d->now->n_cuts)] : NULL;
    return c && c->kind == QN_CUT_DIGITS ? c->of : (qn_axis){0};
}

/** A node that has an instruction: a statement, or the place of a reduce; 0: none. */
static qn_node node_of(const drawing *d, uint32_t inst)
{
    const qn_schedule *s = d->now;
    for (uint16_t n = 1; n <= s->n_nodes; n++)
        if (s->node[n].kind == QN_NODE_PLACE &&
            s->reduction[s->node[n].index].inst[0] == inst)
            return (qn_node){n};
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].inst == inst)
            return s->record[n].at;
    return (qn_node){0};
}

/** A loop around an instruction, mostly the innermost. */
static qn_axis random_around(const drawing *d, uint32_t inst)
{
    qn_axis found = {0};
    for (qn_node n = node_of(d, inst); n.id; n = qn__node(d->now, n)->parent) {
        if (qn__node(d->now, n)->kind != QN_NODE_LOOP)
            continue;
        found = qn__node(d->now, n)->axis;
        if (random_percent(d->random, 55))
            break;
    }
    return found;
}

/** The loop that is right inside the one of the last axis of a step. */
static qn_axis axis_inside(const drawing *d, const qn_step *step)
{
    qn_axis outer = step->axis[step->n_axes - 1];
    for (uint16_t n = 1; n <= d->now->n_nodes; n++) {
        qn_node at = {n};
        if (qn__node(d->now, at)->kind == QN_NODE_LOOP && qn__node(d->now, at)->axis.id == outer.id)
            return qn__node(d->now, only_loop(d, at))->axis;
    }
    return (qn_axis){0};
}

static qn_axis random_axis_of(const drawing *d, const struct fit *fit, const char *row,
                              const qn_step *step)
{
    qn_axis a = {0};
    if (random_percent(d->random, 10))
        return random_axis(d, fit);
    if (step->inst)
        a = random_around(d, step->inst);
    else if (strcmp(row, "tail") == 0)
        a = random_cut(d);
    else if (step->n_axes > 0)
        a = axis_inside(d, step);
    return a.id ? a : random_axis(d, fit);
}

static uint32_t random_record(const drawing *d, const struct fit *fit)
{
    uint32_t found = 0;
    int n_found = 0;
    for (int n = 0; n < d->now->n_records; n++)
        if ((!fit->record || fit->record(d, &d->now->record[n])) &&
            random_below(d->random, ++n_found) == 0)
            found = d->now->record[n].inst;
    return found;
}

static uint32_t random_inst(const drawing *d, const struct fit *fit)
{
    const qn_schedule *s = d->now;
    uint32_t inst = 0;
    if (fit->record && random_percent(d->random, 90))
        inst = random_record(d, fit);
    if (!inst && s->n_reductions && random_percent(d->random, 80))
        inst = s->reduction[random_below(d->random, s->n_reductions)].inst[0];
    return inst ? inst : (uint32_t)random_below(d->random, (int)d->kernel->n_insts);
}

/** A `for` of the body; 0: there is none. */
static uint32_t random_for(const drawing *d)
{
    uint32_t found = 0;
    int n_found = 0;
    for (uint32_t i = d->kernel->body; i < d->kernel->n_insts; i++)
        if (qn__is_body_loop(d->kernel, i) && random_below(d->random, ++n_found) == 0)
            found = i;
    return found;
}

static int64_t random_number(randoms *r)
{
    static const int8_t lanes[] = {2, 4, 4, 8, 8, 16, 32, 64};
    return random_percent(r, 60) ? lanes[random_below(r, 8)]
                                 : 1 + random_below(r, random_percent(r, 70) ? 9 : 100);
}

static qn_bound random_bound(const drawing *d)
{
    static const struct fit any;
    qn_bound b = {.from = (uint8_t)random_below(d->random, 3)};
    b.axis = b.from == QN_FROM_AXIS ? random_axis(d, &any) : (qn_axis){0};
    b.offset = random_below(d->random, random_percent(d->random, 80) ? 5 : 100);
    b.offset = b.from == QN_FROM_END || random_percent(d->random, 10) ? -b.offset : b.offset;
    return b;
}

static void random_operand(const drawing *d, const struct fit *fit, char kind, int n,
                           qn_step *step)
{
    const char *row = qn__transforms[step->which].name;
    if (kind == 'a' && step->n_axes < QN_MOST_STEP_AXES) {
        qn_axis a = random_axis_of(d, fit, row, step);
        step->axis[step->n_axes++] = a;
    } else if (kind == 'n' && step->n_numbers < 4) {
        step->number[step->n_numbers++] = random_number(d->random);
    } else if (kind == 'b' && n < 3) { /* bounds are counted as numbers */
        step->bound[n] = random_bound(d);
        step->n_numbers = (uint8_t)(n + 1);
    } else if (kind == 'i') {
        step->inst = strcmp(row, "trips") == 0 ? random_for(d) : 0;
        step->inst = step->inst ? step->inst : random_inst(d, fit);
    }
}

/* ---------------------------------------------------------------- steps */

/** Whether the schedule has something that a row's first operand is drawn from. */
static bool may_fit(const drawing *d, const struct fit *fit)
{
    return (!fit->record || random_record(d, fit)) && (!fit->loop || random_loop(d, fit->loop).id);
}

/** A row whose operands are drawn from few accesses or places, where there are some; -1: there are
 * none. */
static int random_rare_row(const drawing *d)
{
    for (int tries = 0; tries < 8; tries++) {
        int which = random_below(d->random, qn__n_transforms);
        const char *name = qn__transforms[which].name;
        const struct fit *fit = fit_of(name);
        if (strcmp(name, "merge") == 0 && second_place(d).id)
            return which;
        if (strcmp(name, "place") == 0 && random_loop(d, may_move_place).id)
            return which;
        if (fit->record && fit->record != is_access && random_record(d, fit))
            return which;
    }
    return -1;
}

/** A row of the table that may fit: after a cut often one that gives a loop a role. */
static int random_row(const drawing *d)
{
    bool has_role = d->last.id && random_percent(d->random, 50),
         is_of_loops = random_percent(d->random, 30), has_grid = d->facts.target->has_grid;
    int rare = random_percent(d->random, 15) ? random_rare_row(d) : -1;
    while (rare < 0) {
        int which = random_below(d->random, qn__n_transforms);
        const qn_transform_info *t = &qn__transforms[which];
        if (strcmp(t->name, has_grid ? "parallelize" : "bind") == 0 &&
            random_percent(d->random, 95))
            continue;
        bool has_none = strcmp(t->name, "trips") == 0   ? !random_for(d)
                        : strcmp(t->name, "merge") == 0 ? !second_place(d).id
                        : strcmp(t->name, "join") == 0 && !random_record(d, fit_of("stream"));
        if (has_none && random_percent(d->random, 97))
            continue;
        if ((has_role ? strcmp(t->operands, "a") == 0 : !is_of_loops || t->operands[0] == 'a') &&
            (may_fit(d, fit_of(t->name)) || random_percent(d->random, 3)))
            return which;
    }
    return rare;
}

/** Operands of `place` that fit one another; false: there are none. */
static bool fit_place(const drawing *d, qn_step *step)
{
    qn_node loop = random_loop(d, may_move_place);
    if (!loop.id || random_percent(d->random, 10))
        return false;
    step->inst = d->now->reduction[qn__node(d->now, only_place(d, loop))->index].inst[0];
    step->axis[step->n_axes++] = qn__node(d->now, loop)->axis;
    return true;
}

/** The reduce of a place that may go into the one before it; false: there is none. */
static bool fit_merge(const drawing *d, qn_step *step)
{
    qn_node at = second_place(d);
    if (!at.id || random_percent(d->random, 10))
        return false;
    step->inst = d->now->reduction[qn__node(d->now, at)->index].inst[0];
    return true;
}

/** A store of lanes, and the loop over their steps; false: there is none. */
static bool fit_join(const drawing *d, qn_step *step)
{
    const uint32_t store = random_record(d, fit_of("stream"));
    const qn_node lanes = store ? qn__vector_around(d->now, node_of(d, store)) : (qn_node){0};
    const qn_axis_info *a = qn__axis(d->now, qn__node(d->now, lanes)->axis);
    if (!lanes.id || a->kind != QN_AXIS_PART || random_percent(d->random, 10))
        return false;
    step->inst = store;
    step->axis[step->n_axes++] = d->now->cut[a->cut].first;
    return true;
}

/** Loops that stand one right inside the other, in another order; false: there are none. */
static bool fit_reorder(const drawing *d, qn_step *step)
{
    qn_node at = random_loop(d, has_only_loop);
    if (!at.id || random_percent(d->random, 10))
        return false;
    for (; at.id && (step->n_axes < 2 || (step->n_axes < 4 && random_percent(d->random, 50)));
         at = only_loop(d, at)) {
        int place = random_below(d->random, step->n_axes + (step->n_axes != 1));
        for (int n = step->n_axes++; n > place; n--)
            step->axis[n] = step->axis[n - 1];
        step->axis[place] = qn__node(d->now, at)->axis;
    }
    return true;
}

qn_step random_step(const drawing *d)
{
    qn_step step = {.which = (uint8_t)random_row(d)};
    const qn_transform_info *row = &qn__transforms[step.which];
    const struct fit *fit = fit_of(row->name);
    if (strcmp(row->name, "place") == 0 && fit_place(d, &step))
        return step;
    if (strcmp(row->name, "merge") == 0 && fit_merge(d, &step))
        return step;
    if (strcmp(row->name, "join") == 0 && fit_join(d, &step))
        return step;
    if (strcmp(row->name, "reorder") == 0 && fit_reorder(d, &step))
        return step;
    for (const char *kind = row->operands; *kind; kind += kind[1] == '*' ? 2 : 1) {
        int n = kind[1] != '*' ? 1 : random_percent(d->random, 60) ? 1 : random_below(d->random, 4);
        for (int i = 0; i < n; i++)
            random_operand(d, fit, *kind, i, &step);
    }
    step.option = (uint8_t)(row->n_options ? random_below(d->random, row->n_options) : 0);
    return step;
}
