/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse.c: shapes of values across lanes, by forward passes to a fixpoint (only values carried
 * around loops need a second pass; shapes only go up: uniform < linear < varying).
 *
 * Linear does not survive narrower types: only i64 add, sub, neg, multiplication and shift by a
 * constant keep it, and these wrap, so base + lane x step holds modulo 2^64 always.
 */
#include "jit/analysis/analyse.h"

#include <string.h>

typedef struct pass {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis *a;
    uint32_t lane_dims, jam_dims; /* as bits */
    int diverged; /* shape of what differs after divergent control flow: uniform if the lanes are
                     only inside reduces */
    int combined; /* that of what atomics give: uniform if the lanes are trips, too */
    bool changed;
} pass;

/* ---------------------------------------------------------------- shapes */

static void raise_to(pass *p, uint32_t i, int shape, bool jam, uint32_t deps)
{
    qn_value_info *v = &p->a->value[i];
    if (shape > v->shape || (jam && !v->depends_jam) || (deps & ~v->deps)) {
        if (shape > v->shape)
            v->shape = (uint8_t)shape;
        v->depends_jam |= jam;
        v->deps |= deps;
        p->changed = true;
    }
}

/** The value at i is joined from `from`: linear values become varying. */
static void join(pass *p, uint32_t i, uint32_t from)
{
    const qn_value_info *v = &p->a->value[from];
    raise_to(p, i, v->shape == QN_UNIFORM ? QN_UNIFORM : QN_VARYING, v->depends_jam, v->deps);
}

/** Whether the loop (for or while) at i runs a different number of trips in different lanes. */
static bool is_divergent_loop(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    if (x->op == QN_I_FOR)
        return qn__is_divergent(a, arg[0]) || qn__is_divergent(a, arg[1]);
    uint32_t yield = x->region[1] - 1;
    return qn__is_divergent(a, arg[0]) || qn__is_divergent(a, qn__args(k, yield)[0]);
}

static void visit_if_result(pass *p, uint32_t i, uint32_t owner, uint32_t n)
{
    const qn_kernel *k = p->k;
    const qn_inst *x = &k->inst[owner];
    uint32_t condition = qn__args(k, owner)[0];
    uint32_t then = x->region[1] - 1;
    uint32_t other = x->region[2] - 1;
    join(p, i, qn__args(k, then)[n]);
    join(p, i, qn__args(k, other)[n]);
    join(p, i, condition);
}

static void visit_loop_value(pass *p, uint32_t i, uint32_t owner, uint32_t n)
{
    const qn_kernel *k = p->k;
    const qn_inst *x = &k->inst[owner];
    const uint32_t *arg = qn__args(k, owner);
    uint32_t next = x->region[2] - 1;
    int64_t step;
    if (qn__lanes_are_trips_of(p->a, owner)) { /* and one value behind the loop */
        const bool is_inside = k->inst[i].op == QN_I_CARRIED;
        const bool is_linear = is_inside && k->inst[i].type == QN_I64 &&
                               qn__moves_with_trips(p->a, owner, i, &step);
        raise_to(p, i, is_linear ? QN_LINEAR : is_inside ? QN_VARYING : QN_UNIFORM, false,
                 UINT32_C(1) << qn__trips_dim(k));
        return;
    }
    join(p, i, arg[(x->op == QN_I_FOR ? 2 : 1) + n]);
    join(p, i, qn__args(k, next)[n]);
    if (is_divergent_loop(p->a, owner))
        raise_to(p, i, p->diverged, p->jam_dims, p->jam_dims);
}

/** A load does not depend on indices of projected dimensions: its address does not. */
static void visit_operands(pass *p, uint32_t i, bool varying_if_any)
{
    const qn_inst *x = &p->k->inst[i];
    const uint32_t *arg = qn__args(p->k, i);
    for (uint32_t n = 0; n < x->n_args; n++) {
        const qn_value_info *v = &p->a->value[arg[n]];
        int shape = v->shape == QN_UNIFORM || !varying_if_any ? QN_UNIFORM : QN_VARYING;
        if (x->op != QN_I_LOAD || p->f->param[x->imm].dim[n].n_digits > 0)
            raise_to(p, i, shape, v->depends_jam, v->deps);
    }
}

static void visit_affine(pass *p, uint32_t i)
{
    const qn_affine *x = &p->a->affine[i];
    int shape = QN_UNIFORM;
    for (uint32_t left = p->lane_dims; left; left &= left - 1)
        shape = x->coef[__builtin_ctz(left)] ? QN_LINEAR : shape;
    for (int s = 0; s < 2; s++)
        if (x->sym[s] && x->sym[s] != i && p->a->value[x->sym[s]].shape != QN_UNIFORM)
            shape = QN_VARYING;
    /* Varying operands may cancel (x - x), but they are vectors, and so is what is computed from
     * them. */
    for (int n = 0; n < p->k->inst[i].n_args; n++)
        if (p->a->value[qn__args(p->k, i)[n]].shape == QN_VARYING)
            shape = QN_VARYING;
    visit_operands(p, i, x->sym[0] == i);
    raise_to(p, i, shape, false, 0);
}

static void visit(pass *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    switch (x->op) {
    case QN_I_DIM:
        raise_to(p, i, p->lane_dims >> x->imm & 1 ? QN_LINEAR : QN_UNIFORM,
                 p->jam_dims >> x->imm & 1, 1u << x->imm);
        break;
    case QN_I_ATOMIC:
        visit_operands(p, i, true);
        raise_to(p, i, p->combined, p->jam_dims, p->jam_dims);
        break;
    case QN_I_INDEX: /* all lanes that are still in the loop are in one trip */
        join(p, i, qn__args(p->k, x->parent)[0]);
        if (qn__lanes_are_trips_of(p->a, x->parent))
            raise_to(p, i, QN_LINEAR, false, UINT32_C(1) << qn__trips_dim(p->k));
        break;
    case QN_I_CARRIED:
        if (p->k->inst[x->parent].op == QN_I_ATOMIC) { /* the old value of an update */
            raise_to(p, i, p->combined, p->jam_dims,
                     p->a->value[x->parent].deps | p->jam_dims);
            break;
        }
        visit_loop_value(p, i, x->parent, (uint32_t)x->imm);
        break;
    case QN_I_RESULT: {
        uint32_t owner = qn__args(p->k, i)[0];
        if (p->k->inst[owner].op == QN_I_IF)
            visit_if_result(p, i, owner, (uint32_t)x->imm);
        else
            visit_loop_value(p, i, owner, (uint32_t)x->imm);
        break;
    }
    case QN_I_REDUCE: {
        const qn_value_info *y = &p->a->value[qn__args(p->k, x->region[2] - 1)[0]];
        /* Lanes of a reduction dimension end in one uniform value. */
        uint32_t dims = 0;
        for (int n = 0; n < x->n_args; n++)
            dims |= 1u << qn__dim_of(p->k, i, n);
        const bool over_lanes = (dims & p->lane_dims) != 0;
        raise_to(p, i, y->shape == QN_UNIFORM || over_lanes ? QN_UNIFORM : QN_VARYING,
                 y->depends_jam && (!p->jam_dims || p->jam_dims & ~dims), y->deps & ~dims);
        break;
    }
    default:
        if (x->type == QN_I64 && x->op >= QN_I_PURE)
            visit_affine(p, i);
        else
            visit_operands(p, i, true);
    }
}

/** Whether the result of instruction x is a new number or a comparison, not the bits of an operand.
 */
static bool is_computed(const qn_inst *x)
{
    int op = qn__pure(x);
    bool keeps_bits =
        op == QN_OP_neg || op == QN_OP_abs || op == QN_OP_copysign || op == QN_OP_select;
    return x->op == QN_I_CAST || (x->op >= QN_I_PURE && !keeps_bits);
}

static void find_uses(qn_analysis *out)
{
    const qn_kernel *k = out->k;
    for (uint32_t i = 1; i < k->n_insts; i++)
        for (int n = 0; n < k->inst[i].n_args; n++)
            out->value[qn__args(k, i)[n]].is_moved |= !is_computed(&k->inst[i]);
}

/** Whether a value may depend on one that stands behind it: on the end of a region. */
static bool has_loops(const qn_kernel *k)
{
    return qn__has_insts(k, k->body, k->n_insts,
                         1u << QN_I_FOR | 1u << QN_I_WHILE | 1u << QN_I_REDUCE | 1u << QN_I_ATOMIC);
}

/** Raises shapes and dependences until nothing changes. */
static void visit_all(int lane_dim, uint32_t jam_dims, qn_analysis *out)
{
    const qn_kernel *k = out->k;
    const bool has_trips = out->trips.n > 0;
    const int outside = qn__is_reduction(k, lane_dim) ? QN_UNIFORM : QN_VARYING;
    const bool may_change = has_loops(k);
    pass p = {.k = k,
              .f = out->f,
              .a = out,
              .lane_dims = (lane_dim < 0 ? 0 : UINT32_C(1) << lane_dim) |
                           (uint32_t)has_trips << (has_trips ? qn__trips_dim(k) : 0),
              .jam_dims = jam_dims,
              .diverged = has_trips ? QN_VARYING : outside,
              .combined = has_trips ? QN_UNIFORM : outside};
    do {
        p.changed = false;
        for (uint32_t i = 1; i < k->n_insts; i++)
            visit(&p, i);
    } while (p.changed && may_change);
}

static bool analyse(const qn_kernel *k, const qn_facts *f, int lane_dim, uint32_t jam_dims,
                    const qn_trip_lanes *trips, qn_analysis *out)
{
    *out = (qn_analysis){.k = k,
                         .f = f,
                         .value = qn__zalloc(k->n_insts, sizeof *out->value),
                         .affine = qn__zalloc(k->n_insts, sizeof *out->affine),
                         .trips = *trips};
    bool is_made = out->value && out->affine;
    if (is_made) {
        find_uses(out);
        qn__find_affine(out);
        visit_all(lane_dim, jam_dims, out);
        qn_carried carried[QN_MAX_CARRIED];
        for (int n = 0; n < trips->n; n++)
            is_made = is_made && qn__trips_carry(out, trips->loop[n], carried, out->value);
        is_made = is_made && qn__narrow(out);
    }
    if (!is_made)
        qn__analysis_release(out);
    return is_made;
}

bool qn__analyse(const qn_kernel *k, const qn_facts *f, int lane_dim, uint32_t jam_dims,
                 qn_analysis *out)
{
    return analyse(k, f, lane_dim, jam_dims, &(qn_trip_lanes){0}, out);
}

bool qn__analyse_trips(const qn_kernel *k, const qn_facts *f, int points_dim,
                       const qn_trip_lanes *trips, qn_analysis *out)
{
    return analyse(k, f, points_dim, 0, trips, out);
}

qn_status qn__analyse_scalar(const qn_kernel *k, const qn_facts *f, qn_analysis *out, qn_error *err)
{
    return qn__analyse(k, f, -1, 0, out)
               ? QN_OK
               : qn__fail(err, QN_ERR_MEMORY, "no memory for the analysis of kernel \"%s\"",
                          k->name);
}

bool qn__analyse_lanes(const qn_analysis *of, int lane_dim, uint32_t jam_dims, qn_analysis *out)
{
    const qn_kernel *k = of->k;
    size_t bytes = k->n_insts * sizeof *out->value;
    *out = (qn_analysis){
        .k = k, .f = of->f, .value = qn__alloc(bytes), .affine = of->affine, .is_derived = true};
    if (!out->value)
        return false;
    memcpy(out->value, of->value, bytes);
    for (uint32_t i = 0; i < k->n_insts; i++)
        out->value[i].shape = QN_UNIFORM;
    visit_all(lane_dim, jam_dims, out);
    return true;
}

void qn__analysis_release(qn_analysis *a)
{
    qn__free(a->value);
    if (!a->is_derived)
        qn__free(a->affine);
    *a = (qn_analysis){.k = a->k, .f = a->f};
}
