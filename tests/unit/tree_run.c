/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_run.c: see tree_run.h. Every iteration of the parallel and sequential dimensions has values
 * of its own, so that statements may be distributed, and loops stand inside of places, in any way.
 *
 * The partial results of a reduce are those of its order rule: a point is added to the partial of
 * its number in the order in which the tree brings it. So bits change where a tree brings points in
 * an order that the rule does not allow.
 */
#include "ir/order.h"
#include "tests/unit/tree_run_inside.h"

#include <string.h>

enum { MOST_VALUES = 1 << 25, MOST_STEPS = 1 << 20 };

static void run_nodes(runner *r, qn_node first);

/* ---------------------------------------------------------------- buffers */

/** The cell of a buffer for the loops that run, or NULL: beyond the end. */
static cell *cell_of(runner *r, int b)
{
    const qn_buffer_info *x = &r->s->buffer[b];
    int64_t at = 0, position;
    for (int a = 0; a < x->n_axes; a++) {
        if (!tree_resolve(r, x->axis[a], &position))
            return NULL;
        at = at * tree_count(r, x->axis[a]) + position;
    }
    return at < r->n_cells[b] ? &r->buffer[b][at] : NULL;
}

static void evaluate(runner *r, uint32_t i)
{
    const qn_inst *x = &r->x->k->inst[i];
    if (i < r->x->k->body)
        return;
    for (int n = 0; n < x->n_args; n++)
        evaluate(r, qn__args(r->x->k, i)[n]);
    qn__interp_run(&r->interp, i, i + 1);
}

/** Makes anew what instructions [first, end) use and what can be made again: in all trips of the
 * loop around, after what its trips write. */
static void make_again(runner *r, uint32_t first, uint32_t end)
{
    const qn_kernel *k = r->x->k;
    uint32_t until = k->inst[end - 1].region[2];
    for (int p = 0; p < r->n_places; p++) {
        const uint32_t place_end = k->inst[r->s->reduction[r->place[p]].inst[0]].region[2];
        until = place_end > until ? place_end : until;
    }
    for (uint32_t i = first; i < end; i++)
        for (int a = 0; a < k->inst[i].n_args; a++) {
            uint32_t value = qn__args(k, i)[a];
            if (value >= k->body && (value < first || value >= end) &&
                qn__may_be_made_again(r->x, value, until))
                evaluate(r, value);
        }
}

/** Sets the indices of dimensions that loops say, in the values of a scratch iteration; false:
 * beyond the end. */
static bool select_dims(runner *r, uint32_t inst)
{
    const qn_kernel *k = r->x->k;
    uint32_t reduce = qn__enclosing_reduce(k, inst);
    if (!tree_select_iteration(r))
        return false;
    for (; reduce; reduce = qn__enclosing_reduce(k, reduce)) {
        const qn_reduced *tuple = qn__reduction_of(r->s, reduce); /* its loops are of the first */
        for (int n = 0; n < k->inst[reduce].n_args; n++) {
            int d = qn__dim_of(k, reduce, n);
            qn_axis a = tree_root(r, QN_AXIS_POINT, tuple ? tuple->inst[0] : reduce, d);
            int64_t position = 0;
            if (tree_is_known(r, a) && !tree_resolve(r, a, &position))
                return false;
            r->interp.value[k->dim[d]] = (uint64_t)(r->domain->begin[d] + position);
        }
    }
    return true;
}

/** One element of a fill. */
static void move_element(runner *r, const qn_node_info *n)
{
    const qn_kernel *k = r->x->k;
    uint32_t i = r->s->buffer[n->index].inst;
    uint64_t *values = r->interp.value;
    if (select_dims(r, i)) {
        cell *c = cell_of(r, n->index);
        for (int a = 0; a < qn__n_indices(k, i); a++)
            evaluate(r, qn__args(k, i)[a]);
        if (c) {
            uint64_t kept = r->interp.value[i];
            qn__interp_run(&r->interp, i, i + 1);
            *c = (cell){r->interp.value[i], r->fill_number};
            r->interp.value[i] = kept;
        }
    }
    r->interp.value = values;
}

static void move_all(runner *r, const qn_node_info *n, int axis)
{
    const qn_buffer_info *b = &r->s->buffer[n->index];
    if (axis == b->n_axes) {
        move_element(r, n);
        return;
    }
    qn_axis a = b->axis[axis];
    int64_t count = tree_count(r, a);
    r->is_live[a.id] = true;
    for (int64_t i = 0; i < count; i++) {
        r->position[a.id] = i;
        move_all(r, n, axis + 1);
    }
    r->is_live[a.id] = false;
}

static void run_fill(runner *r, const qn_node_info *n)
{
    r->fill_number++;
    for (int64_t c = 0; c < r->n_cells[n->index]; c++)
        r->buffer[n->index][c].filled = 0;
    move_all(r, n, 0);
}

/* ---------------------------------------------------------------- statements */

/** Loads of a statement that have copies are constants while `takes`, in its regions, too. */
static void take_copies(runner *r, qn_node at, bool takes)
{
    for (int n = 0; n < r->s->n_records; n++) {
        const qn_record_info *x = &r->s->record[n];
        const qn_inst *load = &r->x->k->inst[x->inst];
        const cell *c;
        if (x->at.id != at.id || x->method != QN_METHOD_THROUGH ||
            r->s->buffer[x->index - 1].content == QN_CONTENT_ENDS)
            continue;
        r->kernel.inst[x->inst] = *load;
        if (!takes)
            continue;
        c = cell_of(r, x->index - 1);
        r->report->unfilled += !load->parent && (!c || c->filled == 0);
        r->kernel.inst[x->inst].op = QN_I_CONST;
        r->kernel.inst[x->inst].imm = c ? c->bits : 0;
    }
}

/** Those of all statements from node n on, and inside of these. */
static void take_copies_inside(runner *r, qn_node n, bool takes)
{
    for (; n.id; n = qn__node(r->s, n)->next) {
        take_copies(r, n, takes);
        take_copies_inside(r, qn__node(r->s, n)->child, takes);
    }
}

static void run_instructions(runner *r, qn_node at, uint32_t first, uint32_t end)
{
    take_copies(r, at, true);
    qn__interp_run(&r->interp, first, end);
    take_copies(r, at, false);
}

/** The values that the yield at the end of a region gives. */
static void take_yield(const runner *r, uint32_t end, uint64_t *out)
{
    const qn_kernel *k = r->x->k;
    for (int n = 0; n < k->inst[end - 1].n_args; n++)
        out[n] = r->interp.value[qn__args(k, end - 1)[n]];
}

static sums *sums_of(const runner *r, int64_t iteration, int reduction)
{
    return &r->sums[iteration * r->s->n_reductions + reduction];
}

/** Adds the value of a point to the partial of its number. */
static void add_point(runner *r, int reduction, int m, int64_t point)
{
    const qn_kernel *k = r->x->k;
    uint32_t i = r->s->reduction[reduction].inst[m], product = qn__contracted_product(k, i);
    const qn_inst *x = &k->inst[i];
    sums *s = sums_of(r, (int64_t)r->interp.iteration, reduction);
    int64_t block = (int)x->imm == QN_ORDERED ? 0 : point / QN_BLOCK_POINTS;
    int64_t lane = (int)x->imm == QN_STRIPED ? point % QN_PARTIALS : 0;
    uint64_t *p = &s->partial[(m * r->n_blocks + block) * QN_PARTIALS + lane], value;
    take_yield(r, x->region[1], &value);
    if (product)
        *p = qn__raw_op(QN_OP_fma, x->type, r->interp.value[qn__args(k, product)[0]],
                        r->interp.value[qn__args(k, product)[1]], *p);
    else
        *p = qn__eval_combine(x->sub, x->type, *p, value);
    s->n += m == 0;
}

/** Index and carried values of a `for` that is placed. */
/** A value that loop i carries, if it is a number of steps from where it begins: trips may come in
 * another order then. */
static bool step_to(const runner *r, uint32_t i, uint32_t carried, int64_t trip, uint64_t *bits)
{
    const qn_inst *x = &r->x->k->inst[carried];
    int64_t step;
    if (!qn__moves_with_trips(r->x, i, carried, &step))
        return false;
    uint64_t far = qn__raw_op(QN_OP_mul, x->type, qn__raw_cast(x->type, QN_I64, (uint64_t)trip),
                              qn__raw_cast(x->type, QN_I64, (uint64_t)step), 0);
    const uint64_t first = r->interp.value[qn__args(r->x->k, i)[2 + x->imm]];
    *bits = qn__raw_op(QN_OP_add, x->type, first, far, 0);
    return true;
}

static void begin_trip(runner *r, int reduction, int64_t trip)
{
    const qn_kernel *k = r->x->k;
    uint32_t i = r->s->reduction[reduction].inst[0], at = k->inst[i].region[0];
    const sums *s = sums_of(r, (int64_t)r->interp.iteration, reduction);
    r->interp.value[at] = (uint64_t)r->trip_begin[reduction] + (uint64_t)trip * k->inst[i].imm;
    for (at++; k->inst[at].op == QN_I_CARRIED; at++)
        if (!step_to(r, i, at, trip, &r->interp.value[at]))
            r->interp.value[at] = s->carried[k->inst[at].imm];
}

static void end_trip(runner *r, int reduction)
{
    const qn_kernel *k = r->x->k;
    const uint32_t loop = r->s->reduction[reduction].inst[0];
    const qn_inst *x = &k->inst[loop];
    sums *s = sums_of(r, (int64_t)r->interp.iteration, reduction);
    take_yield(r, x->region[1], s->carried);
    for (uint32_t i = x->region[0] + 1; k->inst[i].op == QN_I_CARRIED; i++)
        (void)step_to(r, loop, i, r->trips[reduction], &s->carried[k->inst[i].imm]);
    for (uint32_t i = x->region[2]; i < k->n_insts && k->inst[i].op == QN_I_RESULT; i++)
        r->interp.value[i] = s->carried[k->inst[i].imm];
}

static void run_do(runner *r, qn_node at)
{
    const qn_node_info *n = qn__node(r->s, at);
    const qn_kernel *k = r->x->k;
    int64_t point[QN_MOST_DEPTH];
    if (!tree_select_iteration(r))
        return;
    for (int p = 0; p < r->n_places; p++)
        if (!tree_select_point(r, p, &point[p]))
            return;
    int last = r->n_places - 1, reduction = last >= 0 ? r->place[last] : 0;
    const qn_reduced *x = last >= 0 ? &r->s->reduction[reduction] : NULL;
    uint8_t *times = &r->times[r->interp.iteration * k->n_insts + n->first];
    if (r->n_places == 0 && *times && !r->overlaps)
        r->report->repeated++;
    *times = 1;
    if (x && k->inst[x->inst[0]].op == QN_I_FOR && n->first == k->inst[x->inst[0]].region[0])
        begin_trip(r, reduction, point[last]);
    make_again(r, n->first, n->end);
    run_instructions(r, at, n->first, n->end);
    for (int m = 0; x && m < x->n; m++) {
        bool is_end = n->end == k->inst[x->inst[m]].region[1];
        if (is_end && k->inst[x->inst[m]].op == QN_I_REDUCE)
            add_point(r, reduction, m, point[last]);
        else if (is_end)
            end_trip(r, reduction);
    }
}

/* ---------------------------------------------------------------- places */

/** Points of a reduce. */
static int64_t points_of(const runner *r, uint32_t i)
{
    int64_t n = 1;
    for (int a = 0; a < r->x->k->inst[i].n_args; a++) {
        int d = qn__dim_of(r->x->k, i, a);
        int64_t trips = r->domain->end[d] - r->domain->begin[d];
        n *= trips > 0 ? trips : 0;
    }
    return n;
}

static void start_sums(runner *r, int64_t iteration, int reduction)
{
    const qn_reduced *x = &r->s->reduction[reduction];
    const qn_kernel *k = r->x->k;
    sums *s = sums_of(r, iteration, reduction);
    uint64_t *values = r->value + (uint64_t)iteration * k->n_insts;
    s->n = 0;
    r->interp.value = values;
    for (int m = 0; m < x->n; m++) {
        const qn_inst *inst = &k->inst[x->inst[m]];
        for (int64_t p = 0; inst->op == QN_I_REDUCE && p < r->n_blocks * QN_PARTIALS; p++)
            s->partial[m * r->n_blocks * QN_PARTIALS + p] =
                qn__reduce_identity(inst->sub, inst->type);
        for (uint32_t i = m ? k->inst[x->inst[m - 1]].region[2] : x->inst[0]; i < x->inst[m]; i++)
            if (qn__is_pure(&k->inst[i]))
                qn__interp_run(&r->interp, i, i + 1);
    }
    if (k->inst[x->inst[0]].op != QN_I_FOR)
        return;
    for (int n = 2; n < k->inst[x->inst[0]].n_args; n++)
        s->carried[n - 2] = values[qn__args(k, x->inst[0])[n]];
    for (uint32_t i = k->inst[x->inst[0]].region[2]; i < k->n_insts && k->inst[i].op == QN_I_RESULT;
         i++)
        values[i] = s->carried[k->inst[i].imm];
}

/** What the partials of a block are combined to. */
static uint64_t close_block(const qn_inst *x, uint64_t *p, int64_t n)
{
    if ((int)x->imm == QN_STRIPED)
        for (int64_t half = QN_PARTIALS / 2; half > 0; half /= 2)
            for (int64_t l = 0; l < half && l + half < n; l++)
                p[l] = qn__eval_combine(x->sub, x->type, p[l], p[l + half]);
    return p[0];
}

static void end_sums(runner *r, int64_t iteration, int reduction)
{
    const qn_reduced *x = &r->s->reduction[reduction];
    const qn_kernel *k = r->x->k;
    sums *s = sums_of(r, iteration, reduction);
    for (int m = 0; m < x->n; m++) {
        const qn_inst *inst = &k->inst[x->inst[m]];
        int64_t points = inst->op == QN_I_REDUCE ? points_of(r, x->inst[m]) : 0;
        uint64_t *value = &r->value[(uint64_t)iteration * k->n_insts + x->inst[m]],
                 *p = s->partial + m * r->n_blocks * QN_PARTIALS;
        if (inst->op != QN_I_REDUCE)
            continue;
        r->report->missing += s->n < points;
        r->report->repeated += s->n > points;
        *value = qn__reduce_empty(inst->sub, inst->type);
        if (points == 0)
            continue;
        if (points <= QN_BLOCK_POINTS || (int)inst->imm == QN_ORDERED) {
            *value = close_block(inst, p, points);
            continue;
        }
        qn_ordered_sum blocks; /* block results are added by the same rule */
        qn__order_start(&blocks, inst->sub, inst->type, (int)inst->imm);
        for (int64_t b = 0; b * QN_BLOCK_POINTS < points; b++) {
            int64_t left = points - b * QN_BLOCK_POINTS;
            qn__order_add(&blocks, close_block(inst, p + b * QN_PARTIALS,
                                               left < QN_BLOCK_POINTS ? left : QN_BLOCK_POINTS));
        }
        *value = qn__order_end(&blocks);
    }
}

/** A `while` as the interpreter runs it: whether trips are lanes does not show in the tree. */
static void run_while(runner *r, int64_t iteration, int reduction)
{
    const uint32_t i = r->s->reduction[reduction].inst[0];
    r->interp.value = r->value + (uint64_t)iteration * r->x->k->n_insts;
    make_again(r, i, i + 1);
    qn__interp_run(&r->interp, i, r->x->k->inst[i].region[2]);
}

static void run_place(runner *r, qn_node at)
{
    const qn_node_info *n = qn__node(r->s, at);
    const qn_kernel *k = r->x->k;
    uint32_t i = r->s->reduction[n->index].inst[0];
    if (!tree_select_iteration(r))
        return;
    if (k->inst[i].op == QN_I_WHILE) {
        take_copies_inside(r, n->child, true);
        tree_for_iterations(r, run_while, n->index);
        take_copies_inside(r, n->child, false);
        return;
    }
    if (k->inst[i].op == QN_I_FOR) {
        make_again(r, i, i + 1);
        int64_t begin = (int64_t)r->interp.value[qn__args(k, i)[0]],
                end = (int64_t)r->interp.value[qn__args(k, i)[1]];
        uint64_t length = end > begin ? (uint64_t)end - (uint64_t)begin : 0, step = k->inst[i].imm;
        r->trip_begin[n->index] = begin;
        r->trips[n->index] = (int64_t)(length / step + (length % step != 0));
    }
    tree_for_iterations(r, start_sums, n->index);
    r->place[r->n_places++] = n->index;
    run_nodes(r, n->child);
    r->n_places--;
    tree_for_iterations(r, end_sums, n->index);
}

/* ---------------------------------------------------------------- nodes */

static void run_loop(runner *r, const qn_node_info *n)
{
    bool is_backwards = n->role != QN_ROLE_SEQUENTIAL && n->role != QN_ROLE_UNROLLED;
    int64_t count = tree_count(r, n->axis);
    r->is_live[n->axis.id] = true;
    for (int64_t i = 0; i < count && r->n_steps <= MOST_STEPS; i++, r->n_steps++) {
        r->position[n->axis.id] = is_backwards ? count - 1 - i : i;
        run_nodes(r, n->child);
    }
    r->is_live[n->axis.id] = false;
}

static void run_nodes(runner *r, qn_node first)
{
    for (qn_node at = first; at.id; at = qn__node(r->s, at)->next) {
        const qn_node_info *n = qn__node(r->s, at);
        switch (n->kind) {
        case QN_NODE_LOOP:
            run_loop(r, n);
            break;
        case QN_NODE_DO:
            run_do(r, at);
            break;
        case QN_NODE_PLACE:
            run_place(r, at);
            break;
        case QN_NODE_FILL:
            run_fill(r, n);
            break;
        default: /* results do not show when lines are written */
            break;
        }
    }
}

/* ---------------------------------------------------------------- a run */

static void count_missing(runner *r, qn_node at)
{
    for (; at.id; at = qn__node(r->s, at)->next) {
        const qn_node_info *n = qn__node(r->s, at);
        if (n->kind == QN_NODE_LOOP)
            count_missing(r, n->child);
        for (int64_t i = 0; n->kind == QN_NODE_DO && i < r->n_iterations; i++)
            r->report->missing += r->times[(uint64_t)i * r->x->k->n_insts + n->first] == 0;
    }
}

/** Room for all iterations, which begin with the values of the prologue. */
static bool make_room(runner *r)
{
    const qn_kernel *k = r->x->k;
    int64_t most = 1;
    r->n_iterations = 1;
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d))
            r->n_iterations *= r->domain->end[d] - r->domain->begin[d];
    for (uint32_t i = k->body; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_REDUCE && points_of(r, i) > most)
            most = points_of(r, i);
    r->n_blocks = (most + QN_BLOCK_POINTS - 1) / QN_BLOCK_POINTS;
    uint64_t n = (uint64_t)r->n_iterations;
    uint64_t n_partials = (uint64_t)r->n_blocks * QN_PARTIALS * QN_MOST_TUPLE,
             n_sums = n * (uint64_t)r->s->n_reductions;
    if (n * k->n_insts > MOST_VALUES || n_sums * (n_partials + QN_MAX_CARRIED) > MOST_VALUES)
        return false;
    r->value = qn__zalloc(n * k->n_insts + 1, sizeof *r->value);
    r->times = qn__zalloc(n * k->n_insts + 1, 1);
    r->sums = qn__zalloc(n_sums + 1, sizeof *r->sums);
    uint64_t *all = qn__zalloc(n_sums * (n_partials + QN_MAX_CARRIED) + 1, sizeof *all);
    if (r->sums)
        r->sums[n_sums].partial = all; /* for the end of the run */
    if (!r->value || !r->times || !r->sums || !all)
        return false;
    for (uint64_t i = 0; i < n_sums; i++) {
        r->sums[i].partial = all + i * (n_partials + QN_MAX_CARRIED);
        r->sums[i].carried = r->sums[i].partial + n_partials;
    }
    for (int b = 0; b < r->s->n_buffers; b++) {
        r->n_cells[b] = 1;
        for (int a = 0; a < r->s->buffer[b].n_axes; a++)
            r->n_cells[b] *= qn__axis_count(r->x, r->s, r->s->buffer[b].axis[a]).most;
        if (r->n_cells[b] > MOST_VALUES)
            return false;
        r->buffer[b] = qn__zalloc((size_t)r->n_cells[b] + 1, sizeof *r->buffer[b]);
        if (!r->buffer[b])
            return false;
    }
    return true;
}

/** A kernel of which instructions may be changed, for the interpreter. */
static bool copy_kernel(runner *r)
{
    const qn_kernel *k = r->x->k;
    memcpy(&r->kernel, k, sizeof *k);
    r->kernel.inst = qn__alloc(k->n_insts * sizeof *k->inst);
    if (r->kernel.inst)
        memcpy(r->kernel.inst, k->inst, k->n_insts * sizeof *k->inst);
    return r->kernel.inst != NULL;
}

static void begin_iterations(runner *r)
{
    const qn_kernel *k = r->x->k;
    for (int64_t i = 0; i < r->n_iterations; i++) {
        uint64_t *values = r->value + (uint64_t)i * k->n_insts;
        int64_t rest = i;
        memcpy(values, r->interp.value, k->body * sizeof *values);
        for (int d = k->n_dims - 1; d >= 0; d--) {
            int64_t n = r->domain->end[d] - r->domain->begin[d];
            if (qn__is_reduction(k, d))
                continue;
            values[k->dim[d]] = (uint64_t)(r->domain->begin[d] + rest % n);
            rest /= n;
        }
    }
}

qn_status tree_run(const qn_analysis *x, const qn_schedule *s, int n, const qn_arg *args,
                   const qn_domain *domain, int checks, qn_fault *fault,
                   tree_run_report *report, qn_error *err)
{
    runner *r = qn__zalloc(1, sizeof *r);
    qn_status status = QN_OK;
    *report = (tree_run_report){0};
    if (!r)
        return qn__fail(err, QN_ERR_MEMORY, "tree_run: no memory");
    *r = (runner){.x = x, .s = s, .domain = domain, .report = report};
    if (!copy_kernel(r)) {
        qn__free(r);
        return qn__fail(err, QN_ERR_MEMORY, "tree_run: no memory");
    }
    status = qn__interp_open(&r->interp, &r->kernel, n, args, domain, checks, fault, err);
    uint64_t *values = r->interp.value;
    for (int c = 0; c < s->n_cuts; c++)
        r->overlaps |= s->cut[c].kind == QN_CUT_DIGITS && s->cut[c].tail == QN_TAIL_OVERLAP;
    if (status == QN_OK && !domain->is_empty) {
        if (make_room(r)) {
            qn__interp_run(&r->interp, 1, x->k->body);
            begin_iterations(r);
            run_nodes(r, s->root);
            count_missing(r, s->root);
            if (r->n_steps > MOST_STEPS)
                status = qn__fail(err, QN_ERR_LIMIT, "tree_run: more than %d steps of loops",
                                  MOST_STEPS);
        } else {
            status = qn__fail(err, QN_ERR_LIMIT, "tree_run: kernel \"%s\" has too many iterations",
                              x->k->name);
        }
    }
    r->interp.value = values;
    qn__interp_close(&r->interp);
    if (r->sums)
        qn__free(r->sums[(uint64_t)r->n_iterations * (uint64_t)s->n_reductions].partial);
    qn__free(r->value);
    qn__free(r->times);
    qn__free(r->sums);
    for (int b = 0; b < s->n_buffers; b++)
        qn__free(r->buffer[b]);
    qn__free(r->kernel.inst);
    qn__free(r);
    return status;
}
