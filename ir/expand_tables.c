/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand_tables.c: the kernel for arguments with index lists and members, made from one that knows
 * nothing of them: each access x[i, j] through a list of dimension 0 becomes x'[list[i, j], j, i].
 * The list is a parameter of its own whose other dimensions are projected, and the position stands
 * again in a last dimension of x' of stride 0, so that an access at a bad position is not performed
 * whatever the list gives there. What comes out is an ordinary kernel: interpreter, proofs of
 * bounds and code generators need not know of tables.
 *
 * The kernel is built again, instruction by instruction, with the functions of the builder; so it
 * is folded and numbered as if it had been written like this.
 */
#include "ir/builder.h"

#include <stdio.h>

typedef struct expander {
    const qn_kernel *k;
    qn_builder *b;
    const uint32_t *tables;
    qn_expansion *note;
    qn_val *value; /* [n_insts] of the new kernel */
    qn_param param[QN_MAX_PARAMS];
    qn_param list[QN_MAX_PARAMS]; /* of a parameter: the first of its tables */
} expander;

static void expand_region(expander *x, uint32_t begin, uint32_t end);

/** The new values of n operands from `first` on; n is at most that of one instruction. */
static void take(const expander *x, uint32_t i, uint32_t first, uint32_t n, qn_val *out)
{
    for (uint32_t a = 0; a < n; a++)
        out[a] = x->value[qn__args(x->k, i)[first + a]];
}

/* ---------------------------------------------------------------- parameters */

static void declare(expander *x)
{
    const qn_kernel *k = x->k;
    qn_val scalar[QN_MAX_PARAMS];
    for (int p = 0; p < k->n_params; p++) {
        const qn_kernel_parameter *param = &k->param[p];
        int rank = param->rank + __builtin_popcount(x->tables[p]);
        if (param->rank < 0)
            scalar[p] = qn_scalar_param(x->b, param->name, param->dtype);
        else if (param->record)
            x->param[p] = qn_record_param(x->b, param->name, param->record, rank, param->traits);
        else
            x->param[p] = qn_view_param(x->b, param->name, param->dtype, rank, param->traits);
    }
    for (int p = 0, n = k->n_params; p < k->n_params; p++) {
        for (int d = 0, first = 1; d < k->param[p].rank; d++) {
            char name[160];
            if (!(x->tables[p] >> d & 1))
                continue;
            snprintf(name, sizeof name, "%.100s_list%d", k->param[p].name, d);
            qn_param list = qn_view_param(x->b, name, QN_I64, k->param[p].rank, QN_READ_ONLY);
            if (list.id == 0)
                return; /* the builder has the error */
            x->list[p] = first ? list : x->list[p];
            first = 0;
            x->note->param[n] = (uint8_t)p;
            x->note->dim[n++] = (uint8_t)d;
        }
    }
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_PARAM) {
            qn_val whole = scalar[k->inst[i].imm];
            bool has_parts = qn__has_parts(k->param[k->inst[i].imm].dtype);
            x->value[i] = has_parts ? qn__value_part(x->b, whole, k->inst[i].sub) : whole;
        }
}

/** Extent or lower bound: of the dimension of positions where there is a table. */
static qn_val expand_bound(const expander *x, const qn_inst *inst)
{
    uint64_t p = inst->imm;
    int d = inst->sub;
    if (x->tables[p] >> d & 1)
        d = x->k->param[p].rank + __builtin_popcount(x->tables[p] & ((UINT32_C(1) << d) - 1));
    return inst->op == QN_I_EXTENT ? qn_extent(x->b, x->param[p], d) : qn_lower(x->b, x->param[p], d);
}

/* ---------------------------------------------------------------- accesses */

/** Indices of an access in the new kernel; returns how many. */
static int expand_indices(expander *x, uint32_t i, qn_val *index)
{
    uint64_t p = x->k->inst[i].imm;
    int rank = x->k->param[p].rank, n = rank, n_tables = 0;
    qn_val given[QN_MAX_RANK];
    take(x, i, 0, (uint32_t)rank, given);
    for (int d = 0; d < rank; d++) {
        index[d] = given[d];
        if (!(x->tables[p] >> d & 1))
            continue;
        qn_param list = {x->list[p].id + (uint32_t)n_tables++};
        index[d] = qn_load(x->b, list, rank, given);
        index[n++] = given[d];
    }
    return n;
}

static void expand_access(expander *x, uint32_t i)
{
    const qn_inst *inst = &x->k->inst[i];
    qn_param p = x->param[inst->imm];
    qn_val index[2 * QN_MAX_RANK], more[2] = {{0}, {0}};
    int n = expand_indices(x, i, index);
    uint32_t rank = (uint32_t)x->k->param[inst->imm].rank;
    take(x, i, rank, inst->n_args - rank, more);
    const qn_kernel_parameter *param = &x->k->param[inst->imm];
    bool has_parts = qn__has_parts(param->dtype);
    if (inst->op == QN_I_LOAD)
        x->value[i] = has_parts ? qn__load_part(x->b, p, inst->sub, n, index) : qn_load(x->b, p, n, index);
    else if (inst->op == QN_I_STORE && has_parts)
        qn__store_part(x->b, p, inst->sub, n, index, more[0]);
    else if (inst->op == QN_I_STORE)
        qn_store(x->b, p, n, index, more[0]);
    else
        x->value[i] = qn_atomic(x->b, inst->sub, p, n, index, more[0], more[1]);
    if (inst->op == QN_I_STORE && !(x->k->param[inst->imm].traits & QN_ATOMIC))
        x->note->stored |= UINT64_C(1) << inst->imm;
}

/* ---------------------------------------------------------------- regions */

/** The values that end the region before `end`; returns how many. */
static int take_yield(const expander *x, uint32_t end, qn_val *out)
{
    take(x, end - 1, 0, x->k->inst[end - 1].n_args, out);
    return x->k->inst[end - 1].n_args;
}

/** Gives the values to the `result` or `carried` instructions from `i` on. */
static void give(expander *x, uint32_t i, uint8_t op, const qn_val *values)
{
    for (; i < x->k->n_insts && x->k->inst[i].op == op; i++)
        x->value[i] = values[x->k->inst[i].imm];
}

static void expand_if(expander *x, uint32_t i)
{
    const qn_inst *inst = &x->k->inst[i];
    qn_val yield[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    qn_if(x->b, x->value[qn__args(x->k, i)[0]]);
    expand_region(x, inst->region[0], inst->region[1]);
    int n = take_yield(x, inst->region[1], yield);
    if (inst->region[1] != inst->region[2]) {
        qn_else(x->b, n, yield);
        expand_region(x, inst->region[1], inst->region[2]);
        n = take_yield(x, inst->region[2], yield);
    }
    qn_end_if(x->b, n, yield, results);
    give(x, inst->region[2], QN_I_RESULT, results);
}

static void expand_for(expander *x, uint32_t i)
{
    const qn_inst *inst = &x->k->inst[i];
    qn_val bound[2], values[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = inst->n_args - 2;
    take(x, i, 0, 2, bound);
    take(x, i, 2, (uint32_t)n, values);
    uint32_t index = inst->region[0];
    x->value[index] =
        qn_for(x->b, bound[0], bound[1], (int64_t)inst->imm, n, values, results);
    give(x, index + 1, QN_I_CARRIED, results);
    expand_region(x, index + 1, inst->region[2]);
    take_yield(x, inst->region[2], values);
    qn_end_for(x->b, n, values, results);
    give(x, inst->region[2], QN_I_RESULT, results);
}

static void expand_while(expander *x, uint32_t i)
{
    const qn_inst *inst = &x->k->inst[i];
    qn_val most, values[QN_MAX_CARRIED], results[QN_MAX_CARRIED];
    int n = inst->n_args - 1;
    take(x, i, 0, 1, &most);
    take(x, i, 1, (uint32_t)n, values);
    qn_while(x->b, most, n, values, results);
    give(x, inst->region[0], QN_I_CARRIED, results);
    expand_region(x, inst->region[0], inst->region[1]);
    take_yield(x, inst->region[1], values);
    qn_do(x->b, values[0]);
    expand_region(x, inst->region[1], inst->region[2]);
    take_yield(x, inst->region[2], values);
    qn_end_while(x->b, n, values, results);
    give(x, inst->region[2], QN_I_RESULT, results);
}

static void expand_reduce(expander *x, uint32_t i)
{
    const qn_inst *inst = &x->k->inst[i];
    qn_val values[QN_MAX_RANK];
    take(x, i, 0, inst->n_args, values);
    qn_reduce(x->b, inst->sub, (int)inst->imm, inst->n_args, values);
    expand_region(x, inst->region[0], inst->region[1]);
    take_yield(x, inst->region[1], values);
    x->value[i] = qn_end_reduce(x->b, values[0]);
}

/* ---------------------------------------------------------------- instructions */

static void expand_dim(expander *x, uint32_t i)
{
    qn_val bound[2];
    take(x, i, 0, 2, bound);
    int kind = x->k->inst[i].sub;
    x->value[i] = kind == QN_DIM_PARALLEL    ? qn_parallel(x->b, bound[0], bound[1])
                  : kind == QN_DIM_REDUCTION ? qn_reduction(x->b, bound[0], bound[1])
                                             : qn_sequential(x->b, bound[0], bound[1]);
}

static void expand_inst(expander *x, uint32_t i)
{
    const qn_inst *inst = &x->k->inst[i];
    qn_val operand[3];
    if (qn__is_pure(inst))
        take(x, i, 0, inst->n_args, operand);
    switch (inst->op) {
    case QN_I_CONST: x->value[i] = qn_const_bits(x->b, inst->type, inst->imm); break;
    case QN_I_EXTENT:
    case QN_I_LOWER: x->value[i] = expand_bound(x, inst); break;
    case QN_I_DIM: expand_dim(x, i); break;
    case QN_I_CAST: x->value[i] = qn_cast(x->b, inst->type, operand[0]); break;
    case QN_I_BITCAST: x->value[i] = qn_bitcast(x->b, inst->type, operand[0]); break;
    case QN_I_LOAD:
    case QN_I_STORE:
    case QN_I_ATOMIC: expand_access(x, i); break;
    case QN_I_IF: expand_if(x, i); break;
    case QN_I_FOR: expand_for(x, i); break;
    case QN_I_WHILE: expand_while(x, i); break;
    case QN_I_REDUCE: expand_reduce(x, i); break;
    default:
        if (qn__pure(inst))
            x->value[i] = qn_op(x->b, qn__pure(inst), inst->n_args, operand);
    }
}

static void expand_region(expander *x, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i = x->k->inst[i].region[2])
        expand_inst(x, i);
}

qn_status qn__kernel_expand(const qn_kernel *k, const uint32_t *tables, qn_kernel **out,
                            qn_error *err)
{
    expander x = {.k = k, .tables = tables};
    qn_kernel *made = NULL;
    qn_status status = QN_ERR_MEMORY;
    x.value = qn__zalloc(k->n_insts, sizeof *x.value);
    x.note = qn__zalloc(1, sizeof *x.note);
    x.b = qn_builder_new(k->name, k->flags);
    if (!x.value || !x.note || !x.b) {
        qn__fail(err, status, "kernel \"%.60s\": no memory to expand its lists", k->name);
        goto done;
    }
    declare(&x);
    expand_region(&x, 1, k->n_insts);
    status = qn_finish(x.b, &made, err);
    if (status)
        goto done;
    for (int p = 0; p < k->n_params; p++)
        x.note->tables[p] = tables[p];
    x.note->given = qn_kernel_retain(k);
    made->expansion = x.note;
    x.note = NULL;
    *out = made;
done:
    qn_builder_release(x.b);
    qn__free(x.note);
    qn__free(x.value);
    return status;
}
