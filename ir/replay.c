/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: builds finished instructions again, see replay.h. Regions do not recurse, so that
 * nesting needs no stack. An `if` whose condition has become a constant leaves the region that it
 * chooses.
 */
#include "ir/function.h"
#include "ir/location.h"
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
    r->b->is_replay = r->b->keeps_products = r->b->keeps_loads = true;
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
        if (r->b && r->b->n_params > p)
            r->b->param[p].pinned = param->pinned;
    }
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_PARAM) {
            qn_val whole = scalar[k->inst[i].imm];
            bool has_parts = qn__has_parts(k->param[k->inst[i].imm].dtype);
            r->value[i] = has_parts ? qn__value_part(r->b, whole, k->inst[i].sub) : whole;
        }
}

/* ---------------------------------------------------------------- accesses */

/** An update as what it is built of: a load of the element, the ops, and a store of what they give.
 */
static void replay_update(qn_replay *r, uint32_t i, int n, const qn_val *index)
{
    const qn_inst *x = &r->k->inst[i];
    uint32_t old = x->region[0], yield = x->region[1] - 1;
    r->value[old] = qn_load(r->b, r->param[x->imm], n, index);
    qn__replay_region(r, old + 1, yield);
    qn_store(r->b, r->param[x->imm], n, index, r->value[qn__args(r->k, yield)[0]]);
}

void qn__replay_access(qn_replay *r, uint32_t i, int n, const qn_val *index)
{
    const qn_inst *x = &r->k->inst[i];
    if (qn__is_update(x)) {
        replay_update(r, i, n, index);
        return;
    }
    const qn_kernel_parameter *param = &r->k->param[x->imm];
    qn_param p = r->param[x->imm];
    qn_val more[2] = {{0}, {0}};
    uint32_t rank = (uint32_t)param->rank;
    bool has_parts = qn__has_parts(param->dtype);
    qn__replay_take(r, i, rank, x->n_args - rank, more);
    if (x->op == QN_I_LOAD)
        r->value[i] =
            has_parts ? qn__load_part(r->b, p, x->sub, n, index) : qn_load(r->b, p, n, index);
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

/** Which region an `if` is replaced by: 0 or 1 if its condition has become a constant, else -1. */
static int chosen_of(const qn_replay *r, uint32_t i)
{
    uint32_t condition = qn__number(r->value[qn__args(r->k, i)[0]]);
    if (!condition || !qn__is_constant(r->b, condition))
        return -1;
    return r->b->inst[condition].imm ? 0 : 1;
}

static void open_if(qn_replay *r, uint32_t i)
{
    if (chosen_of(r, i) < 0)
        (r->k->inst[i].sub ? qn_if_rare : qn_if)(r->b, r->value[qn__args(r->k, i)[0]]);
}

/** Behind the first region of an `if` that has a second one; true if that follows. */
static bool turn_if(qn_replay *r, uint32_t i)
{
    qn_val yield[QN_MAX_CARRIED];
    if (chosen_of(r, i) >= 0)
        return false;
    int n = take_yield(r, r->k->inst[i].region[1], yield);
    qn_else(r->b, n, yield);
    return true;
}

static void close_if(qn_replay *r, uint32_t i, uint32_t end)
{
    qn_val yield[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = take_yield(r, end, yield);
    bool is_chosen = chosen_of(r, i) >= 0;
    if (!is_chosen)
        qn_end_if(r->b, n, yield, results);
    give(r, r->k->inst[i].region[2], QN_I_RESULT, is_chosen ? yield : results);
}

static void open_for(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val bound[2], values[QN_MAX_CARRIED], carried[QN_MAX_CARRIED];
    int n = inst->n_args - 2;
    qn__replay_take(r, i, 0, 2, bound);
    qn__replay_take(r, i, 2, (uint32_t)n, values);
    r->value[inst->region[0]] =
        qn_for(r->b, bound[0], bound[1], (int64_t)inst->imm, n, values, carried);
    give(r, inst->region[0] + 1, QN_I_CARRIED, carried);
}

static void close_for(qn_replay *r, uint32_t i)
{
    qn_val values[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = take_yield(r, r->k->inst[i].region[2], values);
    qn_end_for(r->b, n, values, results);
    give(r, r->k->inst[i].region[2], QN_I_RESULT, results);
}

static void open_while(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val most, values[QN_MAX_CARRIED], carried[QN_MAX_CARRIED];
    int n = inst->n_args - 1;
    qn__replay_take(r, i, 0, 1, &most);
    qn__replay_take(r, i, 1, (uint32_t)n, values);
    qn_while(r->b, most, n, values, carried);
    give(r, inst->region[0], QN_I_CARRIED, carried);
}

static void turn_while(qn_replay *r, uint32_t i)
{
    qn_val condition;
    qn__replay_take(r, r->k->inst[i].region[1] - 1, 0, 1, &condition);
    qn_do(r->b, condition);
}

static void close_while(qn_replay *r, uint32_t i)
{
    qn_val values[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = take_yield(r, r->k->inst[i].region[2], values);
    qn_end_while(r->b, n, values, results);
    give(r, r->k->inst[i].region[2], QN_I_RESULT, results);
}

static void open_reduce(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    qn_val dims[QN_MAX_RANK];
    qn__replay_take(r, i, 0, inst->n_args, dims);
    qn_reduce(r->b, inst->sub, (int)inst->imm, inst->n_args, dims);
}

/**
 * What a reduce yields. In a kernel with QN_CONTRACT a sum contracts the product that it yields. A
 * value that was no product when it was written, such as the result of a call, must not become one:
 * fma(x, y, -0.0) has its bits.
 */
static qn_val yield_of_reduce(qn_replay *r, uint32_t i, qn_val value)
{
    const qn_inst *x = &r->k->inst[i];
    uint32_t product = qn__number(value);
    bool was_contracted = qn__contracted_product(r->k, i) != 0;
    bool is_sum = x->sub == QN_COMBINE_SUM && qn__dtype_class(x->type) == QN_CLASS_F;
    if (was_contracted && !(r->b->flags & QN_CONTRACT))
        return qn__builder_fail(
            r->b, QN_ERR_UNSUPPORTED,
            "kernel \"%.100s\" contracts the products of a sum, this kernel does not", r->k->name);
    if (was_contracted || !is_sum || !(r->b->flags & QN_CONTRACT) || product == 0 ||
        qn__pure(&r->b->inst[product]) != QN_OP_mul)
        return value;
    const uint32_t *factor = qn__builder_args(r->b, product);
    qn_val zero = qn_const_float(r->b, x->type, -0.0);
    return qn_fma(r->b, qn__value(r->b, factor[0], 0), qn__value(r->b, factor[1], 0), zero);
}

static void close_reduce(qn_replay *r, uint32_t i)
{
    qn_val value;
    qn__replay_take(r, r->k->inst[i].region[1] - 1, 0, 1, &value);
    r->value[i] = qn_end_reduce(r->b, yield_of_reduce(r, i, value));
}

/** Begins an instruction with regions and returns where its first instruction is, and *end of that
 * region; if there is nothing to do in it, what follows the instruction, and 0. */
static uint32_t open_inst(qn_replay *r, uint32_t i, uint32_t *end)
{
    const qn_inst *x = &r->k->inst[i];
    int first = 0;
    switch (x->op) {
    case QN_I_IF: open_if(r, i); break;
    case QN_I_FOR: open_for(r, i); break;
    case QN_I_WHILE: open_while(r, i); break;
    case QN_I_REDUCE: open_reduce(r, i); break;
    }
    if (x->op == QN_I_IF && chosen_of(r, i) > 0)
        first = 1;
    *end = x->region[first + 1];
    if (x->op == QN_I_IF && x->region[first] == x->region[first + 1])
        *end = 0;
    return *end ? x->region[first] + (x->op == QN_I_FOR) : x->region[2];
}

/** Ends a region, which ends before *end; true if another region of the instruction follows, whose
 * end *end then is. */
static bool close_region(qn_replay *r, uint32_t i, uint32_t *end)
{
    const qn_inst *x = &r->k->inst[i];
    bool has_more = *end == x->region[1] && x->region[1] != x->region[2];
    if (x->op == QN_I_WHILE && has_more)
        turn_while(r, i);
    else if (x->op != QN_I_IF || (has_more && !turn_if(r, i)))
        has_more = false;
    if (has_more) {
        *end = x->region[2];
        return true;
    }
    switch (x->op) {
    case QN_I_IF: close_if(r, i, *end); break;
    case QN_I_FOR: close_for(r, i); break;
    case QN_I_WHILE: close_while(r, i); break;
    case QN_I_REDUCE: close_reduce(r, i); break;
    }
    return false;
}

/* ---------------------------------------------------------------- calls */

static void replay_call(qn_replay *r, uint32_t i)
{
    const qn_function *f = qn__callee(r->k, i);
    qn_val values[QN_MAX_CARRIED], given[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    qn_param views[QN_MAX_PARAMS];
    int n = 0, at = 0, n_views = 0;
    qn__replay_take(r, i, 0, (uint32_t)f->n_values, values);
    for (int p = 0; p < f->body.n_params; p++) {
        const qn_kernel_parameter *param = &f->body.param[p];
        if (param->rank >= 0) {
            uint32_t view = qn__args(r->k, i)[f->n_values + n_views];
            views[n_views++] = r->param[r->k->inst[view].imm];
        } else if (qn__has_parts(param->dtype)) {
            given[n++] = qn_complex(r->b, values[at], values[at + 1]);
            at += 2;
        } else {
            given[n++] = values[at++];
        }
    }
    qn__invoke(r->b, "qn_apply", f, n, given, n_views, views, results);
    for (int v = 0, part = 0; v < f->n_results; v++) {
        int n_parts = f->shape[v] ? 2 : 1;
        for (int q = 0; q < n_parts; q++, part++)
            r->value[i + 1 + (uint32_t)part] =
                n_parts == 1 ? results[v] : qn__value_part(r->b, results[v], q);
    }
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

static qn_val replay_lookup(qn_replay *r, uint32_t i, qn_val index)
{
    qn_array array = {qn__builder_array(r->b, "qn_lookup", r->k->array[r->k->inst[i].imm])};
    return array.id ? qn_lookup(r->b, array, index) : (qn_val){0};
}

static void replay_assert(qn_replay *r, uint32_t i)
{
    qn_val given[1 + QN_MAX_SHOWN];
    const qn_inst *x = &r->k->inst[i];
    qn__replay_take(r, i, 0, x->n_args, given);
    qn_assert(r->b, given[0], r->k->message[x->imm], x->n_args - 1, given + 1);
}

static void replay_print(qn_replay *r, uint32_t i)
{
    qn_val given[QN_MAX_SHOWN];
    const qn_inst *x = &r->k->inst[i];
    qn__replay_take(r, i, 0, x->n_args, given);
    qn_print(r->b, r->k->message[x->imm], x->n_args, given);
}

/** An op of the table. A divisor may have become the constant 0, which the builder takes from no
 * caller. */
static qn_val replay_op(qn_replay *r, const qn_inst *x, const qn_val *operand)
{
    int op = qn__pure(x);
    bool divides = (op == QN_OP_div || op == QN_OP_rem) && qn__dtype_class(x->type) != QN_CLASS_F;
    uint32_t divisor = divides ? qn__number(operand[1]) : 0;
    if (divisor && qn__is_constant(r->b, divisor) && r->b->inst[divisor].imm == 0)
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
    case QN_I_LOOKUP: r->value[i] = replay_lookup(r, i, operand[0]); break;
    case QN_I_CAST: r->value[i] = qn_cast(r->b, x->type, operand[0]); break;
    case QN_I_BITCAST: r->value[i] = qn_bitcast(r->b, x->type, operand[0]); break;
    case QN_I_LOAD:
    case QN_I_STORE:
    case QN_I_ATOMIC: copy_access(r, i); break;
    case QN_I_CALL: replay_call(r, i); break;
    case QN_I_ASSERT:
        replay_assert(r, i);
        break;
    case QN_I_PRINT:
        replay_print(r, i);
        break;
    default:
        if (qn__pure(x))
            r->value[i] = replay_op(r, x, operand);
    }
}

void qn__replay_region(qn_replay *r, uint32_t begin, uint32_t end)
{
    const qn_inst *inst = r->k->inst;
    uint32_t i = begin, stop = end,
             open = 0; /* the innermost instruction that was begun; the others are its parents */
    int depth = 0;
    for (;;) {
        if (i < stop)
            qn__location_repeat(r->b, r->k, i);
        if (i < stop && r->special && r->special(r, i)) {
            i = inst[i].region[2];
        } else if (i < stop && qn__opens_regions(&inst[i])) {
            uint32_t at = i, region_end;
            i = open_inst(r, at, &region_end);
            if (!region_end)
                continue;
            open = at;
            stop = region_end;
            depth++;
        } else if (i < stop) {
            replay_inst(r, i);
            i = inst[i].region[2];
        } else if (depth == 0) {
            return;
        } else if (!close_region(r, open, &stop)) {
            uint32_t parent = inst[open].parent;
            stop = --depth == 0 ? end : inst[parent].region[open < inst[parent].region[1] ? 1 : 2];
            i = inst[open].region[2];
            open = parent;
        }
    }
}
