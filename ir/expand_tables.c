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
#include "ir/replay.h"

#include <stdio.h>

typedef struct expander {
    const uint32_t *tables;
    qn_expansion *note;
    qn_param list[QN_MAX_PARAMS]; /* of a parameter: the first of its tables */
} expander;

/* ---------------------------------------------------------------- parameters */

/** Declares the lists that follow the parameters. */
static void declare_lists(qn_replay *r, expander *x)
{
    const qn_kernel *k = r->k;
    for (int p = 0, n = k->n_params; p < k->n_params; p++) {
        for (int d = 0, first = 1; d < k->param[p].rank; d++) {
            char name[160];
            if (!(x->tables[p] >> d & 1))
                continue;
            snprintf(name, sizeof name, "%.100s_list%d", k->param[p].name, d);
            qn_param list = qn_view_param(r->b, name, QN_I64, k->param[p].rank, QN_READ_ONLY);
            if (list.id == 0)
                return; /* the builder has the error */
            x->list[p] = first ? list : x->list[p];
            first = 0;
            x->note->param[n] = (uint8_t)p;
            x->note->dim[n++] = (uint8_t)d;
        }
    }
}

/** Extent or lower bound: of the dimension of positions where there is a table. */
static qn_val expand_bound(const qn_replay *r, const qn_inst *inst)
{
    const expander *x = r->data;
    uint64_t p = inst->imm;
    int d = inst->sub;
    if (x->tables[p] >> d & 1)
        d = r->k->param[p].rank + __builtin_popcount(x->tables[p] & ((UINT32_C(1) << d) - 1));
    return inst->op == QN_I_EXTENT ? qn_extent(r->b, r->param[p], d)
                                   : qn_lower(r->b, r->param[p], d);
}

/* ---------------------------------------------------------------- accesses */

/** Indices of an access in the new kernel; returns how many. */
static int expand_indices(qn_replay *r, uint32_t i, qn_val *index)
{
    const expander *x = r->data;
    uint64_t p = r->k->inst[i].imm;
    int rank = r->k->param[p].rank, n = rank, n_tables = 0;
    qn_val given[QN_MAX_RANK];
    qn__replay_take(r, i, 0, (uint32_t)rank, given);
    for (int d = 0; d < rank; d++) {
        index[d] = given[d];
        if (!(x->tables[p] >> d & 1))
            continue;
        qn_param list = x->list[p];
        list.id += (uint32_t)n_tables++;
        index[d] = qn_load(r->b, list, rank, given);
        index[n++] = given[d];
    }
    return n;
}

static bool expand_inst(qn_replay *r, uint32_t i)
{
    const qn_inst *inst = &r->k->inst[i];
    const expander *x = r->data;
    if (inst->op == QN_I_EXTENT || inst->op == QN_I_LOWER) {
        r->value[i] = expand_bound(r, inst);
        return true;
    }
    if (!qn__is_access(inst))
        return false;
    qn_val index[2 * QN_MAX_RANK];
    qn__replay_access(r, i, expand_indices(r, i, index), index);
    if (inst->op == QN_I_STORE && !(r->k->param[inst->imm].traits & QN_ATOMIC))
        x->note->stored |= UINT64_C(1) << inst->imm;
    return true;
}

/* ---------------------------------------------------------------- kernels */

qn_status qn__kernel_expand(const qn_kernel *k, const uint32_t *tables, qn_kernel **out,
                            qn_error *err)
{
    expander x = {.tables = tables, .note = qn__zalloc(1, sizeof *x.note)};
    qn_replay r = {.k = k, .special = expand_inst, .data = &x};
    int extra_rank[QN_MAX_PARAMS] = {0};
    qn_kernel *made = NULL;
    qn_status status = QN_ERR_MEMORY;
    if (!x.note || !qn__replay_start(&r, k->name, k->flags)) {
        qn__fail(err, status, "kernel \"%.60s\": no memory to expand its lists", k->name);
        goto done;
    }
    for (int p = 0; p < k->n_params; p++)
        extra_rank[p] = __builtin_popcount(tables[p]);
    qn__replay_declare(&r, extra_rank);
    declare_lists(&r, &x);
    qn__replay_region(&r, 1, k->n_insts);
    status = qn_finish(r.b, &made, err);
    if (status)
        goto done;
    for (int p = 0; p < k->n_params; p++)
        x.note->tables[p] = tables[p];
    x.note->given = qn_kernel_retain(k);
    made->expansion = x.note;
    made->prints_rows = k->prints_rows;
    x.note = NULL;
    *out = made;
done:
    qn__replay_end(&r);
    qn__free(x.note);
    return status;
}
