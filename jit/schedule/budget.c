/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c: estimates what a plan costs to compile, and steps down from plans that cost too much.
 */
#include "jit/schedule/budget.h"

#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Measured (compile_cost): 5 to 50 us and about 1 KB a unit on Zen 5, a tenth of the time with fast
 * selection. A busy Xeon took 1.2 s where 12,000 units were allowed: a fourth less leaves room
 * below one second. */
enum { MOST_UNITS = 9000, FAST_IS_FASTER = 13 };
enum { FEW_LANES = 8 };

const char *qn__rung_name(int rung)
{
    static const char *const names[QN_N_RUNGS] = {
#define QN_X(name, text) text,
        QN_RUNG_LIST(QN_X)
#undef QN_X
    };
    return rung >= 0 && rung < QN_N_RUNGS ? names[rung] : "?";
}

int64_t qn__budget_units(int64_t most, int rung, const qn_target *target)
{
    most = most > 0 ? most : MOST_UNITS;
    if (target->is_text)
        return INT64_MAX;
    return rung == QN_RUNG_FAST ? most * FAST_IS_FASTER : most;
}

/* ---------------------------------------------------------------- estimate */

/** Whether an index has a vector of its own: it is no sum of a number and a multiple of the lanes,
 * or is divided. */
static bool is_of_lanes(const qn_analysis *a, uint32_t index, const qn_dim_fact *dim)
{
    int shape = a->value[index].shape;
    return shape == QN_VARYING || (shape == QN_LINEAR && dim->n_digits > 1);
}

/** The divisions of an index by the digits of a dimension, and products with their strides. */
static int64_t cost_of_digits(const qn_facts *f, const qn_dim_fact *dim, int lanes)
{
    int64_t units = 0;
    for (int n = 0; n + 1 < dim->n_digits; n++) {
        const qn_fact *extent = &f->digit[dim->first_digit + n].extent;
        bool is_exact = extent->kind == QN_FACT_EXACT,
             is_power = is_exact && (extent->value & (extent->value - 1)) == 0;
        int work = is_power ? QN_WORK_SIMPLE : is_exact ? QN_WORK_DIVIDE_CONSTANT : QN_WORK_DIVIDE;
        units += 2 * qn__work_units(work, 64, lanes, f->target) +
                 qn__work_units(QN_WORK_MULTIPLY, 64, lanes, f->target);
    }
    return units;
}

static int64_t cost_of_access(const qn_analysis *a, uint32_t i, bool is_checked, int width)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    enum { FAULT_UNITS = 24 };
    const qn_inst *x = &k->inst[i];
    bool is_anywhere = false, differs = false;
    int64_t units = is_checked ? FAULT_UNITS : 0;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_dim_fact *dim = &f->param[x->imm].dim[r];
        uint32_t index = qn__args(k, i)[r];
        bool is_vector = is_of_lanes(a, index, dim);
        is_anywhere |= is_vector;
        differs |= a->value[index].shape != QN_UNIFORM;
        units += cost_of_digits(f, dim, is_vector ? width : 1);
        if (is_checked)
            units += 2 * qn__work_units(QN_WORK_SIMPLE, 64, is_vector ? width : 1, f->target);
    }
    int work = x->op == QN_I_ATOMIC                ? QN_WORK_ATOMIC
               : is_anywhere && x->op == QN_I_LOAD ? QN_WORK_GATHER
               : is_anywhere                       ? QN_WORK_SCATTER
               : is_checked && differs             ? QN_WORK_MASKED
                                                   : QN_WORK_MOVE;
    return units +
           qn__work_units(work, (int)(8 * qn__access_bytes(k, i)), differs ? width : 1, f->target);
}

/** A branch, and the record of a failure with its values. */
static int64_t cost_of_assert(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    int64_t blocks = 4 * qn__work_units(QN_WORK_BLOCK, 64, 1, f->target);
    return blocks + k->inst[i].n_args * qn__work_units(QN_WORK_MOVE, 64, 1, f->target);
}

int64_t qn__cost_of_instruction(const qn_analysis *a, uint32_t i, bool is_checked, int width)
{
    const qn_inst *x = &a->k->inst[i];
    if (qn__is_access(x))
        return cost_of_access(a, i, is_checked, width);
    if (x->op == QN_I_ASSERT)
        return cost_of_assert(a->k, a->f, i);
    if (x->op == QN_I_IF || x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_REDUCE)
        return 4 * qn__work_units(QN_WORK_BLOCK, 64, 1, a->f->target);
    int bits, work = qn__kind_of_work(a, i, &bits);
    int lanes = a->value[i].shape == QN_VARYING ? width : 1;
    return qn__work_units(work, bits, lanes, a->f->target);
}

bool qn__goes_around(const qn_kernel *k, uint32_t i, int side, int64_t units, int vectors,
                     const qn_target *target)
{
    const qn_inst *x = &k->inst[i];
    bool is_rare = x->sub && side == 0;
    return units > 0 && (is_rare || units >= qn__least_units_to_skip(vectors, target));
}

/** Whether instruction i of a side under masks needs no branch: lanes beside one another, of which
 * those that are not active access nothing. */
static bool is_maskable(const qn_analysis *a, uint32_t i, int lane_dim)
{
    const qn_inst *x = &a->k->inst[i];
    int64_t stride;
    if (qn__is_pure(x) || x->op == QN_I_YIELD)
        return true;
    return (x->op == QN_I_LOAD || x->op == QN_I_STORE) && qn__is_plain_access(a->k, a->f, i) &&
           !qn__is_checked(a->f, a->k, qn__site_of(a->k, i)) &&
           qn__access_stride(a, i, lane_dim, &stride) && stride == 1;
}

bool qn__is_under_mask(const qn_analysis *a, uint32_t i, int side, int lane_dim)
{
    const qn_inst *x = &a->k->inst[i];
    const qn_target *target = a->f->target;
    uint32_t begin = x->region[side], end = x->region[side + 1];
    int64_t units = 0;
    if (!target->has_masks || target->has_grid || lane_dim < 0 || x->sub || begin == end ||
        a->k->inst[end - 1].n_args > 0)
        return false;
    for (uint32_t n = begin; n < end; n++) {
        if (!is_maskable(a, n, lane_dim))
            return false;
        if (a->value[n].deps >> lane_dim & 1 || qn__is_access(&a->k->inst[n]))
            units += qn__cost_of_instruction(a, n, false, QN_COUNTED_LANES);
    }
    return units < qn__least_units_to_skip(1, target);
}

/** What code is emitted for at once. */
typedef struct step_size {
    int lane_dim, width, unroll, jam;
    uint32_t jam_dims;
    bool has_rest, is_rest_scalar;
} step_size;

/** Parts of a value in one step: vectors that differ times jammed iterations that do. */
static int64_t parts_of(const step_size *p, const qn_analysis *a, uint32_t i)
{
    bool has_value = a->k->inst[i].type != QN_VOID;
    int64_t lanes = !has_value || a->value[i].shape != QN_UNIFORM ? p->unroll : 1;
    return lanes * (!has_value || a->value[i].depends_jam ? p->jam : 1);
}

static int64_t estimate(const qn_analysis *x, const step_size *p)
{
    const qn_kernel *k = x->k;
    const qn_facts *f = x->f;
    qn_analysis a;
    int64_t step = 0, rest = 0;
    uint32_t site = 0;
    if (!x->value || !qn__analyse_lanes(x, p->lane_dim, p->jam_dims, &a))
        return 0;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        bool is_checked = false;
        if (qn__is_access(&k->inst[i]) && site < k->n_accesses)
            is_checked = qn__is_checked(f, k, site++);
        step += parts_of(p, &a, i) * qn__cost_of_instruction(&a, i, is_checked, p->width);
        if (p->has_rest)
            rest += qn__cost_of_instruction(&a, i, is_checked, p->is_rest_scalar ? 1 : p->width);
    }
    qn__analysis_release(&a);
    return step + rest;
}

int64_t qn__estimate(const qn_analysis *x, const qn_plan *p)
{
    return estimate(x,
                    &(step_size){.lane_dim = p->lane_dim,
                                 .width = p->width,
                                 .unroll = p->unroll,
                                 .jam = p->jam * p->cross,
                                 .jam_dims = p->jam_dim >= 0 ? UINT32_C(1) << p->jam_dim : 0,
                                 .has_rest = p->remainder != QN_TAIL_NONE,
                                 .is_rest_scalar = p->remainder == QN_TAIL_SCALAR});
}

int64_t qn__units_of_block(const qn_analysis *x, const qn_block *b)
{
    step_size p = {.lane_dim = b->lane_dim,
                   .width = b->width,
                   .unroll = b->unroll,
                   .jam = 1,
                   .has_rest = b->tail != QN_TAIL_NONE,
                   .is_rest_scalar = b->tail == QN_TAIL_SCALAR};
    for (int n = 0; n < b->n; n++) {
        p.jam *= (int)b->extent[n];
        p.jam_dims |= UINT32_C(1) << b->dim[n];
    }
    return estimate(x, &p);
}

/* ---------------------------------------------------------------- steps */

/** What only makes code longer, one thing after the other. */
static bool step_to_single(const qn_kernel *k, qn_plan *p)
{
    if (p->strip) /* sums in registers */
        p->strip = 0, p->jam = p->unroll = 1;
    else if (p->cross > 1)
        p->cross = 1;
    else if (p->trip_width)
        p->trip_width = 0;
    else if (p->straight > 0)
        p->straight = 0;
    else if (p->jam > 1)
        p->jam = 1;
    else if (p->unroll > 1 && !qn__is_reduction(k, p->lane_dim))
        p->unroll = 1;
    else
        return false;
    if (p->jam == 1) {
        p->jam_dim = -1;
        p->transpose = 0;
    }
    if (p->cross == 1)
        p->cross_dim = -1;
    return true;
}

/** Scalar code is another plan: its loops have another order. */
static void step_to_scalar(const qn_analysis *x, qn_plan *p)
{
    qn_facts scalar = *x->f; /* the arrays are those of f */
    qn_analysis of = *x;
    of.f = &scalar;
    memset(&scalar.plan, 0, sizeof scalar.plan);
    scalar.plan.lane_dim = -1;
    scalar.plan.unroll = scalar.plan.jam = scalar.plan.cross = 1;
    scalar.plan.strip = scalar.plan.pack = scalar.plan.transpose = scalar.plan.prefetch =
        scalar.plan.tile = -1;
    qn__plan_by_rules(&of, p);
    p->straight = 0;
}

static void note_step(qn_descent *d, int rung, int64_t units, const qn_plan *p)
{
    size_t n = strlen(d->steps);
    if (rung == d->rung && rung != QN_RUNG_NARROW)
        return; /* said already */
    d->rung = rung;
    if (rung == QN_RUNG_NARROW)
        snprintf(d->steps + n, sizeof d->steps - n, "%s%" PRId64 " units, so %d lanes",
                 n ? "; " : "", units, p->width);
    else
        snprintf(d->steps + n, sizeof d->steps - n, "%s%" PRId64 " units, so %s", n ? "; " : "",
                 units, qn__rung_name(rung));
}

bool qn__step_down(const qn_analysis *x, qn_plan *p, qn_descent *d, int64_t units, bool is_over,
                   bool are_lanes_many)
{
    if (!x->k) /* a grid is bounded */
        return false;
    bool may_narrow = p->lane_dim >= 0 && !qn__is_reduction(x->k, p->lane_dim);
    if (d->rung < QN_RUNG_SCALAR && step_to_single(x->k, p)) {
        note_step(d, QN_RUNG_SINGLE, units, p);
    } else if (may_narrow && p->width > (is_over ? QN_LEAST_WIDTH : FEW_LANES) &&
               (is_over || are_lanes_many)) {
        p->width /= 2;
        if (!p->streams &&
            qn__is_multiple(x->f, p->lane_dim, (int64_t)p->width * p->unroll))
            p->remainder = QN_TAIL_NONE;
        note_step(d, QN_RUNG_NARROW, units, p);
    } else if (is_over && d->rung < QN_RUNG_SCALAR && p->lane_dim >= 0) {
        step_to_scalar(x, p);
        note_step(d, QN_RUNG_SCALAR, units, p);
    } else if (is_over && d->rung < QN_RUNG_FAST) {
        step_to_single(x->k, p);
        note_step(d, QN_RUNG_FAST, units, p);
    } else {
        return false;
    }
    return true;
}

void qn__step_to_fast(const qn_analysis *x, qn_plan *p, qn_descent *d)
{
    if (!x->k)
        return;
    int64_t units = qn__estimate(x, p);
    if (p->lane_dim >= 0)
        step_to_scalar(x, p);
    while (step_to_single(x->k, p))
        continue;
    note_step(d, QN_RUNG_FAST, units, p);
}
