/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c: a copy of a kernel that the code generator may change: what the kernel computes, without
 * its texts, places and variants, and without functions, which a kernel that runs has none of.
 */
#include "ir/build/builder.h"

#include <string.h>

/** The parameters with references of their own, and no names yet. */
static void own_parameters(qn_kernel *to)
{
    for (int p = 0; p < to->n_params; p++) {
        to->param[p].name = NULL;
        qn_record_retain(to->param[p].record);
    }
}

static bool copy_names(const qn_kernel *k, qn_kernel *to)
{
    for (int p = 0; p < k->n_params; p++) {
        to->param[p].name = k->param[p].name ? qn__strdup(k->param[p].name) : NULL;
        if (k->param[p].name && !to->param[p].name)
            return false;
    }
    to->name = k->name ? qn__strdup(k->name) : NULL;
    return !k->name || to->name;
}

static bool copy_messages(const qn_kernel *k, qn_kernel *to)
{
    to->message = qn__zalloc((size_t)k->n_messages + 1, sizeof *to->message);
    for (int n = 0; to->message && n < k->n_messages; n++) {
        to->message[n] = qn__strdup(k->message[n]);
        if (!to->message[n])
            return false;
        to->n_messages = n + 1;
    }
    return to->message != NULL;
}

static bool copy_arrays(const qn_kernel *k, qn_kernel *to)
{
    to->array = qn__zalloc((size_t)k->n_arrays + 1, sizeof(qn_elements *));
    for (int n = 0; to->array && n < k->n_arrays; n++)
        to->array[n] = qn__elements_retain(k->array[n]);
    to->n_arrays = to->array ? k->n_arrays : 0;
    return to->array != NULL;
}

qn_kernel *qn__kernel_copy(const qn_kernel *k)
{
    qn_kernel *to = qn__zalloc(1, sizeof *to);
    if (!to)
        return NULL;
    atomic_init(&to->references, 1);
    to->flags = k->flags;
    to->n_dims = k->n_dims;
    to->n_insts = k->n_insts;
    to->n_operands = k->n_operands;
    to->n_accesses = k->n_accesses;
    to->body = k->body;
    to->is_in_place_safe = k->is_in_place_safe;
    to->is_replay = k->is_replay;
    to->prints_rows = k->prints_rows;
    to->hash = k->hash;
    memcpy(to->dim, k->dim, sizeof to->dim);
    to->inst = qn__copy_array(k->inst, k->n_insts, sizeof *k->inst);
    to->operand = qn__copy_array(k->operand, k->n_operands, sizeof *k->operand);
    to->access = qn__copy_array(k->access, k->n_accesses, sizeof *k->access);
    to->param = qn__copy_array(k->param, (size_t)k->n_params, sizeof *k->param);
    to->n_params = to->param ? k->n_params : 0;
    own_parameters(to);
    if (!to->inst || !to->operand || !to->access || !to->param || !copy_names(k, to) ||
        !copy_messages(k, to) || !copy_arrays(k, to)) {
        qn__kernel_free(to);
        return NULL;
    }
    return to;
}
