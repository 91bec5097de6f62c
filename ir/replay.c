/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: builds finished instructions again, see replay.h. Regions recurse to QN_MAX_NESTING at most. An `if` whose
 * condition has become a constant leaves the region that it chooses.
 */
#include "ir/replay.h"

void qn__replay_take(const qn_replay *r, uint32_t i, uint32_t first, uint32_t n, qn_val *out)
{
    for (uint32_t a = 0; a < n; a++)
        out[a] = r->value[qn__args(r->k, i)[first + a]];
}

bool qn__replay_start(qn_replay *r, const char *name, uint32_t flags)
{
    r->value = qn__zalloc(r->k->n_insts, sizeof *r->value);
    r->b = qn_builder_new(name, flags);
    if (!r->value || !r->b)
        return false;
    r->b->is_replay = true;
    return true;
}

void qn__replay_end(qn_replay *r)
{
    qn_builder_release(r->b);
    qn__free(r->value);
}

/* ---------------------------------------------------------------- parameters */

void qn__replay_declare(qn_replay *r, const int *extra_rank)
{
    const qn_kernel *k = r->k;
    qn_val scalar[QN_MAX_PARAMS];
    for (int p = 0; p < k->n_params; p++) {
        const qn_kernel_parameter *param = &k->param[p];
        int rank = param->rank + (extra_rank ? extra_rank[p] : 0);
        if (param->rank < 0)
            scalar[p] = qn_scalar_param(r->b, param->name, param->dtype);
        else if (param->record)
            r->param[p] = qn_record_param(r->b, param->name, param->record, rank, param->traits);
        else
            r->param[p] = qn_view_param(r->b, param->name, param->dtype, rank, param->traits);
    }
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_PARAM) {
            qn_val whole = scalar[k->inst[i].imm];
            bool has_parts = qn__has_parts(k->param[k->inst[i].imm].dtype);
            r->value[i] = has_parts ? qn__value_part(r->b, whole, k->inst[i].sub) : whole;
        }
}

/* ---------------------------------------------------------------- accesses */

void qn__replay_access(qn_replay *r, uint32_t i, int n, const qn_val *index)
{
    const qn_inst *x = &r->k->inst[i];
    const qn_kernel_parameter *param = &r->k->param[x->imm];
    qn_param p = r->param[x->imm];
    qn_val more[2] = {{0}, {0}};
    uint32_t rank = (uint32_t)param->rank;
    bool has_parts = qn__has_parts(param->dtype);
    qn__replay_take(r, i, rank, x->n_args - rank, more);
    if (x->op == QN_I_LOAD)
        r->value[i] = has_parts ? qn__load_part(r->b, p, x->sub, n, index) : qn_load(r->b, p, n, index);
    else if (x->op == QN_I_STORE && has_parts)
        qn__store_part(r->b, p, x->sub, n, index, more[0]);
    else if (x->op == QN_I_STORE)
        qn_store(r->b, p, n, index, more[0]);
    else
        r->value[i] = qn_atomic(r->b, x->sub, p, n, index, more[0], more[1]);
}

/** An access whose indices are those of the original. */
static void copy_access(qn_replay *r, uint32_t i)
{
    qn_val index[QN_MAX_RANK];
    int n = qn__n_indices(r->k, i);
    qn__replay_take(r, i, 0, (uint32_t)n, index);
    qn__replay_access(r, i, n, index);
}

/* ---------------------------------------------------------------- regions */

/** The values that end the region before `end`; returns how many. */
static int take_yield(const qn_replay *r, uint32_t end, qn_val *out)
{
    qn__replay_take(r, end - 1, 0, r->k->inst[end - 1].n_args, out);
    return r->k->inst[end - 1].n_args;
}

/** Gives the values to the `result` or `carried` instructions from `i` on. */
static void give(qn_replay *r, uint32_t i, uint8_t op, const qn_val *values)
{
    for (; i < r->k->n_insts && r->k->inst[i].op == op; i++)
        r->value[i] = values[r->k->inst[i].imm];
}

/** The region of an if whose condition has become a constant. */
static void replay_chosen(qn_replay *r, uint32_t i, int which)
{
    const uint32_t *region = r->k->inst[i].region;
    qn_val results[QN_MAX_CARRIED];
    if (region[which] == region[which + 1])
        return;
    qn__replay_region(r, region[which], region[which + 1]);
    take_yield(r, region[which + 1], results);
    give(r, region[2], QN_I_RESULT, results);
}

static void replay_if(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val yield[QN_MAX_CARRIED], results[QN_MAX_CARRIED], condition = r->value[qn__args(r->k, i)[0]];
    if (qn__number(condition) && qn__is_const(r->b, qn__number(condition))) {
        replay_chosen(r, i, r->b->inst[qn__number(condition)].imm ? 0 : 1);
        return;
    }
    qn_if(r->b, condition);
    qn__replay_region(r, inst->region[0], inst->region[1]);
    int n = take_yield(r, inst->region[1], yield);
    if (inst->region[1] != inst->region[2]) {
        qn_else(r->b, n, yield);
        qn__replay_region(r, inst->region[1], inst->region[2]);
        n = take_yield(r, inst->region[2], yield);
    }
    qn_end_if(r->b, n, yield, results);
    give(r, inst->region[2], QN_I_RESULT, results);
}

static void replay_for(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val bound[2], values[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = inst->n_args - 2;
    qn__replay_take(r, i, 0, 2, bound);
    qn__replay_take(r, i, 2, (uint32_t)n, values);
    uint32_t index = inst->region[0];
    r->value[index] =
        qn_for(r->b, bound[0], bound[1], (int64_t)inst->imm, n, values, results);
    give(r, index + 1, QN_I_CARRIED, results);
    qn__replay_region(r, index + 1, inst->region[2]);
    take_yield(r, inst->region[2], values);
    qn_end_for(r->b, n, values, results);
    give(r, inst->region[2], QN_I_RESULT, results);
}

static void replay_while(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val most, values[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = inst->n_args - 1;
    qn__replay_take(r, i, 0, 1, &most);
    qn__replay_take(r, i, 1, (uint32_t)n, values);
    qn_while(r->b, most, n, values, results);
    give(r, inst->region[0], QN_I_CARRIED, results);
    qn__replay_region(r, inst->region[0], inst->region[1]);
    take_yield(r, inst->region[1], values);
    qn_do(r->b, values[0]);
    qn__replay_region(r, inst->region[1], inst->region[2]);
    take_yield(r, inst->region[2], values);
    qn_end_while(r->b, n, values, results);
    give(r, inst->region[2], QN_I_RESULT, results);
}

static void replay_reduce(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val values[QN_MAX_RANK];
    qn__replay_take(r, i, 0, inst->n_args, values);
    qn_reduce(r->b, inst->sub, (int)inst->imm, inst->n_args, values);
    qn__replay_region(r, inst->region[0], inst->region[1]);
    take_yield(r, inst->region[1], values);
    r->value[i] = qn_end_reduce(r->b, values[0]);
}

/* ---------------------------------------------------------------- instructions */

static void replay_dim(qn_replay *r, uint32_t i)
{
    qn_val bound[2];
    qn__replay_take(r, i, 0, 2, bound);
    int kind = r->k->inst[i].sub;
    r->value[i] = kind == QN_DIM_PARALLEL    ? qn_parallel(r->b, bound[0], bound[1])
                  : kind == QN_DIM_REDUCTION ? qn_reduction(r->b, bound[0], bound[1])
                                             : qn_sequential(r->b, bound[0], bound[1]);
}

static qn_val replay_bound(qn_replay *r, const qn_inst *x)
{
    qn_param p = r->param[x->imm];
    return x->op == QN_I_EXTENT ? qn_extent(r->b, p, x->sub) : qn_lower(r->b, p, x->sub);
}

/** An op of the table. A divisor may have become the constant 0, which the builder takes from no caller. */
static qn_val replay_op(qn_replay *r, const qn_inst *x, const qn_val *operand)
{
    int op = qn__pure(x);
    bool divides = (op == QN_OP_div || op == QN_OP_rem) && qn__dtype_class(x->type) != QN_CLASS_F;
    uint32_t divisor = divides ? qn__number(operand[1]) : 0;
    if (divisor && qn__is_const(r->b, divisor) && r->b->inst[divisor].imm == 0)
        return op == QN_OP_div ? operand[1] : operand[0];
    return qn_op(r->b, op, x->n_args, operand);
}

static void replay_inst(qn_replay *r, uint32_t i)
{
    const qn_inst *x = &r->k->inst[i];
    qn_val operand[3];
    if (qn__is_pure(x))
        qn__replay_take(r, i, 0, x->n_args, operand);
    switch (x->op) {
    case QN_I_CONST: r->value[i] = qn_const_bits(r->b, x->type, x->imm); break;
    case QN_I_EXTENT:
    case QN_I_LOWER: r->value[i] = replay_bound(r, x); break;
    case QN_I_DIM: replay_dim(r, i); break;
    case QN_I_CAST: r->value[i] = qn_cast(r->b, x->type, operand[0]); break;
    case QN_I_BITCAST: r->value[i] = qn_bitcast(r->b, x->type, operand[0]); break;
    case QN_I_LOAD:
    case QN_I_STORE:
    case QN_I_ATOMIC: copy_access(r, i); break;
    case QN_I_IF: replay_if(r, i); break;
    case QN_I_FOR: replay_for(r, i); break;
    case QN_I_WHILE: replay_while(r, i); break;
    case QN_I_REDUCE: replay_reduce(r, i); break;
    default:
        if (qn__pure(x))
            r->value[i] = replay_op(r, x, operand);
    }
}

void qn__replay_region(qn_replay *r, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i = r->k->inst[i].region[2])
        if (!r->special || !r->special(r, i))
            replay_inst(r, i);
}
