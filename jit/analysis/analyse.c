/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse.c: shapes of values across lanes and affine forms of i64 values, by forward passes to a
 * fixpoint (only values carried around loops need a second pass; shapes only go up: uniform <
 * linear < varying).
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
    int lane_dim;
    uint32_t jam_dims; /* as bits */
    int diverged; /* shape of what differs after divergent control flow: uniform if the lanes are
                     only inside reduces */
    int combined; /* that of what atomics give: uniform if the lanes are trips, too */
    bool changed;
} pass;

/* ---------------------------------------------------------------- affine forms */

static void affine_symbol(qn_affine *out, uint32_t value)
{
    memset(out, 0, sizeof *out);
    out->sym[0] = value;
    out->sym_coef[0] = 1;
}

static void affine_constant(qn_affine *out, int64_t c)
{
    memset(out, 0, sizeof *out);
    out->constant = c;
}

static void affine_scale(qn_affine *out, const qn_affine *x, int64_t by)
{
    *out = *x;
    out->constant = qn__wrap_mul(x->constant, by);
    for (int d = 0; d < QN_MAX_RANK; d++)
        out->coef[d] = qn__wrap_mul(x->coef[d], by);
    for (int s = 0; s < 2; s++) {
        out->sym_coef[s] = qn__wrap_mul(x->sym_coef[s], by);
        if (out->sym_coef[s] == 0)
            out->sym[s] = 0;
    }
}

/** Adds a symbol term; false if there is no room. */
static bool affine_add_symbol(qn_affine *x, uint32_t sym, int64_t coef)
{
    for (int s = 0; s < 2; s++)
        if (x->sym[s] == sym) {
            x->sym_coef[s] = qn__wrap_add(x->sym_coef[s], coef);
            if (x->sym_coef[s] == 0)
                x->sym[s] = 0;
            return true;
        }
    for (int s = 0; s < 2; s++)
        if (!x->sym[s]) {
            x->sym[s] = sym;
            x->sym_coef[s] = coef;
            return true;
        }
    return false;
}

static bool affine_add(qn_affine *out, const qn_affine *x, const qn_affine *y, int64_t scale_y)
{
    qn_affine z, r = *x;
    affine_scale(&z, y, scale_y);
    r.constant = qn__wrap_add(r.constant, z.constant);
    for (int d = 0; d < QN_MAX_RANK; d++)
        r.coef[d] = qn__wrap_add(r.coef[d], z.coef[d]);
    for (int s = 0; s < 2; s++)
        if (z.sym[s] && !affine_add_symbol(&r, z.sym[s], z.sym_coef[s]))
            return false;
    *out = r;
    return true;
}

/** Whether an i64 value is a known constant; stores it. */
static bool is_known(const qn_affine *x, int64_t *c)
{
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (x->coef[d])
            return false;
    if (x->sym[0] || x->sym[1])
        return false;
    *c = x->constant;
    return true;
}

static void affine_of_fact(qn_affine *out, uint32_t i, const qn_fact *fact)
{
    if (fact->kind == QN_FACT_EXACT)
        affine_constant(out, fact->value);
    else
        affine_symbol(out, i);
}

static void affine_of_pure(const pass *p, uint32_t i, qn_affine *out)
{
    const uint32_t *arg = qn__args(p->k, i);
    const qn_affine *x = &p->a->affine[arg[0]];
    const qn_affine *y = &p->a->affine[arg[p->k->inst[i].n_args > 1]];
    int64_t c;
    affine_symbol(out, i);
    switch (qn__pure(&p->k->inst[i])) {
    case QN_OP_add:
        if (!affine_add(out, x, y, 1))
            affine_symbol(out, i);
        break;
    case QN_OP_sub:
        if (!affine_add(out, x, y, -1))
            affine_symbol(out, i);
        break;
    case QN_OP_neg:
        affine_scale(out, x, -1);
        break;
    case QN_OP_mul:
        if (is_known(y, &c))
            affine_scale(out, x, c);
        else if (is_known(x, &c))
            affine_scale(out, y, c);
        break;
    case QN_OP_shl:
        if (is_known(y, &c))
            affine_scale(out, x, (int64_t)(UINT64_C(1) << (c & 63)));
        break;
    default:
        break;
    }
}

/** Whether the trips of loop i are the lanes. */
static bool has_lanes(const qn_analysis *a, uint32_t i)
{
    for (int n = 0; n < a->trips.n; n++)
        if (a->trips.loop[n] == i)
            return true;
    return false;
}

/** The index of a `for`: where trips are lanes, that of the first trip and a number of steps. */
static void affine_of_index(const pass *p, uint32_t i, qn_affine *out)
{
    const uint32_t loop = p->k->inst[i].parent;
    affine_symbol(out, i);
    if (!has_lanes(p->a, loop))
        return;
    *out = p->a->affine[qn__args(p->k, loop)[0]];
    out->coef[qn__trips_dim(p->k)] = (int64_t)p->k->inst[loop].imm;
}

/** What lanes of trips carry: where it begins, and a number of steps. */
static void affine_of_carried(const pass *p, uint32_t i, qn_affine *out)
{
    const qn_inst *x = &p->k->inst[i], *loop = &p->k->inst[x->parent];
    int64_t step;
    affine_symbol(out, i);
    if (!has_lanes(p->a, x->parent) || !qn__moves_with_trips(p->a, x->parent, i, &step))
        return;
    *out = p->a->affine[qn__args(p->k, x->parent)[(loop->op == QN_I_FOR ? 2 : 1) + x->imm]];
    out->coef[qn__trips_dim(p->k)] = step;
}

static void affine_of(const pass *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    qn_affine *out = &p->a->affine[i];
    const qn_param_fact *param = &p->f->param[x->imm < (uint64_t)p->f->n_params ? x->imm : 0];
    switch (x->op) {
    case QN_I_CONST:
        affine_constant(out, (int64_t)x->imm);
        return;
    case QN_I_PARAM:
        if (param->is_constant)
            affine_constant(out, (int64_t)param->bits[x->sub]);
        else
            affine_symbol(out, i);
        return;
    case QN_I_EXTENT:
        affine_of_fact(out, i, &param->dim[x->sub].extent);
        return;
    case QN_I_LOWER:
        affine_of_fact(out, i, &param->dim[x->sub].lower);
        return;
    case QN_I_DIM:
        memset(out, 0, sizeof *out);
        out->coef[x->imm] = 1;
        return;
    case QN_I_INDEX:
        affine_of_index(p, i, out);
        return;
    case QN_I_CARRIED:
        affine_of_carried(p, i, out);
        return;
    default:
        if (x->op >= QN_I_PURE && x->n_args >= 1)
            affine_of_pure(p, i, out);
        else
            affine_symbol(out, i);
    }
}

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
    if (has_lanes(p->a, owner)) { /* and one value behind the loop */
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
    if (p->lane_dim >= 0 && x->coef[p->lane_dim])
        shape = QN_LINEAR;
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
        raise_to(p, i, (int)x->imm == p->lane_dim ? QN_LINEAR : QN_UNIFORM,
                 p->jam_dims >> x->imm & 1, 1u << x->imm);
        break;
    case QN_I_ATOMIC:
        visit_operands(p, i, true);
        raise_to(p, i, p->combined, p->jam_dims, p->jam_dims);
        break;
    case QN_I_INDEX: /* all lanes that are still in the loop are in one trip */
        join(p, i, qn__args(p->k, x->parent)[0]);
        if (has_lanes(p->a, x->parent))
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
        bool over_lanes = false;
        uint32_t dims = 0;
        for (int n = 0; n < x->n_args; n++) {
            int d = qn__dim_of(p->k, i, n);
            over_lanes |= d == p->lane_dim;
            dims |= 1u << d;
        }
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

/** Of one pass: operands stand before what is made of them. */
static void find_affine(qn_analysis *out)
{
    const qn_kernel *k = out->k;
    const pass p = {.k = k, .f = out->f, .a = out};
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].type == QN_I64)
            affine_of(&p, i);
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
    const int outside = qn__is_reduction(k, lane_dim) ? QN_UNIFORM : QN_VARYING;
    const bool may_change = has_loops(k);
    pass p = {.k = k,
              .f = out->f,
              .a = out,
              .lane_dim = lane_dim,
              .jam_dims = jam_dims,
              .diverged = outside,
              .combined = out->trips.n ? QN_UNIFORM : outside};
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
        find_affine(out);
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

bool qn__analyse_trips(const qn_kernel *k, const qn_facts *f, const qn_trip_lanes *trips,
                       qn_analysis *out)
{
    return analyse(k, f, qn__trips_dim(k), 0, trips, out);
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

/* ---------------------------------------------------------------- questions */

bool qn__access_stride(const qn_analysis *a, uint32_t inst, int d, int64_t *stride)
{
    const qn_kernel *k = a->k;
    const qn_param_fact *param = &a->f->param[k->inst[inst].imm];
    const uint32_t *arg = qn__args(k, inst);
    int64_t sum = 0;
    for (int r = 0; r < qn__n_indices(k, inst); r++) {
        if (!(a->value[arg[r]].deps >> d & 1) || param->dim[r].n_digits == 0)
            continue;
        const qn_affine *x = &a->affine[arg[r]];
        for (int s = 0; s < 2; s++)
            if (x->sym[s] && (a->value[x->sym[s]].deps >> d & 1))
                return false;
        const qn_digit_fact *digit = &a->f->digit[param->dim[r].first_digit];
        if (param->dim[r].n_digits != 1 || digit->stride.kind != QN_FACT_EXACT)
            return false;
        sum = qn__wrap_add(sum, qn__wrap_mul(x->coef[d], digit->stride.value));
    }
    *stride = sum;
    return true;
}

bool qn__is_within_digit(const qn_analysis *a, uint32_t value, const qn_dim_fact *dim, int lane_dim,
                         int64_t w)
{
    const qn_affine *x = &a->affine[value];
    const qn_digit_fact *digit = &a->f->digit[dim->first_digit];
    if (dim->n_digits < 2 || x->coef[lane_dim] != 1 || x->sym[0] || x->sym[1] ||
        a->f->begin[lane_dim].kind != QN_FACT_EXACT || dim->lower.kind != QN_FACT_EXACT ||
        digit->extent.kind != QN_FACT_EXACT || digit->stride.kind != QN_FACT_EXACT ||
        digit->extent.value % w)
        return false;
    for (int d = 0; d < a->k->n_dims; d++)
        if (d != lane_dim && x->coef[d] % w)
            return false;
    int64_t first = qn__wrap_add(a->f->begin[lane_dim].value, x->constant);
    return qn__wrap_sub(first, dim->lower.value) % w == 0;
}

bool qn__differ_by_constant(const qn_affine *x, const qn_affine *y)
{
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (x->coef[d] != y->coef[d])
            return false;
    return x->sym[0] == y->sym[0] && x->sym[1] == y->sym[1] && x->sym_coef[0] == y->sym_coef[0] &&
           x->sym_coef[1] == y->sym_coef[1];
}

static bool is_one_sum(const qn_affine *x, const qn_affine *y)
{
    return x->constant == y->constant && qn__differ_by_constant(x, y);
}

/** Whether something holds for each two indices of two accesses. */
static bool for_all_indices(const qn_analysis *a, uint32_t i, uint32_t m,
                            bool (*holds)(const qn_affine *, const qn_affine *))
{
    bool is = true;
    for (int r = 0; r < qn__n_indices(a->k, i) && is; r++)
        is = holds(&a->affine[qn__args(a->k, i)[r]], &a->affine[qn__args(a->k, m)[r]]);
    return is;
}

bool qn__walk_alike(const qn_analysis *a, uint32_t i, uint32_t m)
{
    return for_all_indices(a, i, m, qn__differ_by_constant);
}

bool qn__have_same_indices(const qn_analysis *a, uint32_t i, uint32_t m)
{
    return for_all_indices(a, i, m, is_one_sum);
}

uint32_t qn__index_deps(const qn_analysis *a, uint32_t inst)
{
    uint32_t deps = 0;
    for (int r = 0; r < qn__n_indices(a->k, inst); r++)
        deps |= a->value[qn__args(a->k, inst)[r]].deps;
    return deps;
}

uint32_t qn__moving_dims(const qn_analysis *a, uint32_t inst)
{
    uint32_t deps = 0;
    for (int r = 0; r < qn__n_indices(a->k, inst); r++)
        if (a->f->param[a->k->inst[inst].imm].dim[r].n_digits > 0)
            deps |= a->value[qn__args(a->k, inst)[r]].deps;
    return deps;
}

uint32_t qn__points_dims(const qn_kernel *k, uint32_t reduce)
{
    uint32_t dims = 0;
    for (int n = 0; n < k->inst[reduce].n_args; n++)
        dims |= UINT32_C(1) << qn__dim_of(k, reduce, n);
    return dims;
}

bool qn__is_ahead_of_trip(const qn_analysis *a, uint32_t i, uint32_t value, int64_t *ahead)
{
    const qn_affine *x = &a->affine[value], *index = &a->affine[a->k->inst[i].region[0]];
    *ahead = qn__wrap_sub(x->constant, index->constant);
    return a->k->inst[value].type == QN_I64 && qn__differ_by_constant(x, index);
}

bool qn__affine_is_small(const qn_analysis *a, const qn_affine *x)
{
    enum { MOST = 1 << 24 };
    bool is = !x->sym[0] && !x->sym[1] && x->constant >= -MOST && x->constant <= MOST;
    for (int d = 0; d < QN_MAX_RANK && is; d++)
        is = !x->coef[d] || (d < a->k->n_dims && x->coef[d] >= -MOST && x->coef[d] <= MOST &&
                             qn__fact_interval(&a->f->begin[d]).low >= INT32_MIN &&
                             qn__fact_interval(&a->f->end[d]).high <= INT32_MAX);
    return is;
}

int64_t qn__known_trips(const qn_analysis *a, uint32_t i)
{
    const uint32_t *arg = qn__args(a->k, i);
    const qn_affine *begin = &a->affine[arg[0]], *end = &a->affine[arg[1]];
    if (a->k->inst[i].imm != 1 || !qn__differ_by_constant(begin, end) ||
        !qn__affine_is_small(a, begin) || !qn__affine_is_small(a, end))
        return -1;
    return end->constant > begin->constant ? end->constant - begin->constant : 0;
}

bool qn__elements_apart(const qn_analysis *a, uint32_t i, uint32_t m, int64_t *apart)
{
    return qn__elements_apart_along(a, i, m, UINT32_MAX, apart);
}

/** Whether an affine form moves with one of these dimensions; of all of them any form counts. */
static bool is_along(const qn_affine *x, uint32_t dims)
{
    bool is = dims == UINT32_MAX;
    for (int d = 0; d < QN_MAX_RANK; d++)
        is |= (dims >> d & 1) && x->coef[d];
    return is;
}

bool qn__elements_apart_along(const qn_analysis *a, uint32_t i, uint32_t m, uint32_t dims,
                              int64_t *apart)
{
    const qn_kernel *k = a->k;
    *apart = 0;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_dim_fact *dim = &a->f->param[k->inst[i].imm].dim[r];
        const qn_affine *x = &a->affine[qn__args(k, i)[r]], *y = &a->affine[qn__args(k, m)[r]];
        if (dim->n_digits == 0 || !is_along(x, dims))
            continue;
        if (!qn__differ_by_constant(x, y))
            return false;
        if (x->constant == y->constant)
            continue;
        const qn_fact *stride = &a->f->digit[dim->first_digit].stride;
        if (dim->n_digits != 1 || stride->kind != QN_FACT_EXACT)
            return false;
        *apart = qn__wrap_add(*apart,
                              qn__wrap_mul(stride->value, qn__wrap_sub(x->constant, y->constant)));
    }
    return true;
}

/** *left: operations that may still be looked at, so that an expression that uses its parts often
 * takes no time. */
static bool is_made_of_indices(const qn_kernel *k, uint32_t i, int *left)
{
    const qn_inst *x = &k->inst[i];
    if (i < k->body)
        return true;
    if (!qn__is_pure(x) || --*left < 0)
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!is_made_of_indices(k, qn__args(k, i)[n], left))
            return false;
    return true;
}

bool qn__is_made_of_indices(const qn_kernel *k, uint32_t value)
{
    int left = 64;
    return is_made_of_indices(k, value, &left);
}

bool qn__is_known_ahead(const qn_kernel *k, uint32_t inst)
{
    for (int r = 0; r < qn__n_indices(k, inst); r++)
        if (!qn__is_made_of_indices(k, qn__args(k, inst)[r]))
            return false;
    return true;
}

bool qn__region_has_memory(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (!qn__is_pure(&k->inst[i]) && k->inst[i].op != QN_I_YIELD)
            return true;
    return false;
}

bool qn__has_insts(const qn_kernel *k, uint32_t begin, uint32_t end, uint32_t kinds)
{
    for (uint32_t i = begin; i < end; i++)
        if (k->inst[i].op < QN_I_PURE && (kinds >> k->inst[i].op & 1))
            return true;
    return false;
}

bool qn__is_straight(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (k->inst[i].region[2] != i + 1)
            return false;
    return true;
}

bool qn__may_fail(const qn_kernel *k, const qn_facts *f)
{
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (qn__is_checked(f, k, n))
            return true;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_WHILE || qn__effect(&k->inst[i]) == QN_EFFECT_TELL)
            return true;
    return false;
}

uint32_t qn__next_reduce(const qn_kernel *k, uint32_t i)
{
    while (i < k->n_insts && k->inst[i].op != QN_I_REDUCE)
        i = k->inst[i].region[2];
    return i;
}

int qn__n_top_reduces(const qn_kernel *k)
{
    int n = 0;
    FOR_TOP_REDUCES(k, i)
        n++;
    return n;
}

uint32_t qn__enclosing_reduce(const qn_kernel *k, uint32_t i)
{
    for (i = k->inst[i].parent; i; i = k->inst[i].parent)
        if (k->inst[i].op == QN_I_REDUCE)
            return i;
    return 0;
}

bool qn__is_used(const qn_kernel *k, uint32_t i)
{
    for (uint32_t user = i + 1; user < k->n_insts; user++)
        for (int n = 0; n < k->inst[user].n_args; n++)
            if (qn__args(k, user)[n] == i)
                return true;
    return false;
}
