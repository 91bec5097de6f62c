/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affine.c: i64 values as affine functions of the domain's indices, and what two such functions
 * tell of one another.
 */
#include "jit/analysis/analyse.h"

#include <string.h>

/* ---------------------------------------------------------------- arithmetic */

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

/* ---------------------------------------------------------------- of values */

static void affine_of_fact(qn_affine *out, uint32_t i, const qn_fact *fact)
{
    if (fact->kind == QN_FACT_EXACT)
        affine_constant(out, fact->value);
    else
        affine_symbol(out, i);
}

static void affine_of_pure(const qn_analysis *a, uint32_t i, qn_affine *out)
{
    const uint32_t *arg = qn__args(a->k, i);
    const qn_affine *x = &a->affine[arg[0]];
    const qn_affine *y = &a->affine[arg[a->k->inst[i].n_args > 1]];
    int64_t c;
    affine_symbol(out, i);
    switch (qn__pure(&a->k->inst[i])) {
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

/** The index of a `for`: where trips are lanes, that of the first trip and a number of steps. */
static void affine_of_index(const qn_analysis *a, uint32_t i, qn_affine *out)
{
    const uint32_t loop = a->k->inst[i].parent;
    affine_symbol(out, i);
    if (!qn__lanes_are_trips_of(a, loop))
        return;
    *out = a->affine[qn__args(a->k, loop)[0]];
    out->coef[qn__trips_dim(a->k)] = (int64_t)a->k->inst[loop].imm;
}

/** What lanes of trips carry: where it begins, and a number of steps. */
static void affine_of_carried(const qn_analysis *a, uint32_t i, qn_affine *out)
{
    const qn_inst *x = &a->k->inst[i], *loop = &a->k->inst[x->parent];
    int64_t step;
    affine_symbol(out, i);
    if (!qn__lanes_are_trips_of(a, x->parent) || !qn__moves_with_trips(a, x->parent, i, &step))
        return;
    *out = a->affine[qn__args(a->k, x->parent)[(loop->op == QN_I_FOR ? 2 : 1) + x->imm]];
    out->coef[qn__trips_dim(a->k)] = step;
}

static void affine_of(const qn_analysis *a, uint32_t i)
{
    const qn_inst *x = &a->k->inst[i];
    qn_affine *out = &a->affine[i];
    const qn_param_fact *param = &a->f->param[x->imm < (uint64_t)a->f->n_params ? x->imm : 0];
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
        affine_of_index(a, i, out);
        return;
    case QN_I_CARRIED:
        affine_of_carried(a, i, out);
        return;
    default:
        if (x->op >= QN_I_PURE && x->n_args >= 1)
            affine_of_pure(a, i, out);
        else
            affine_symbol(out, i);
    }
}

/** Of one pass: operands stand before what is made of them. */
void qn__find_affine(qn_analysis *a)
{
    for (uint32_t i = 1; i < a->k->n_insts; i++)
        if (a->k->inst[i].type == QN_I64)
            affine_of(a, i);
}

/* ---------------------------------------------------------------- questions */

bool qn__differ_by_constant(const qn_affine *x, const qn_affine *y)
{
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (x->coef[d] != y->coef[d])
            return false;
    return x->sym[0] == y->sym[0] && x->sym[1] == y->sym[1] && x->sym_coef[0] == y->sym_coef[0] &&
           x->sym_coef[1] == y->sym_coef[1];
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
