/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: loads, stores and atomics. Every store and atomic, to any view, starts a new
 * version of the memory; loads are numbered per version, loads of atomic views never. Stores
 * through atomic views stand in build/update.c.
 */
#include "ir/build/builder.h"

#include <stdio.h>

bool qn__use_indices(qn_builder *b, const char *who, const qn_kernel_parameter *view, int n,
                     const qn_val *index, uint32_t *out)
{
    const uint8_t *kinds = b->kind[view - b->param];
    if (n != view->rank) {
        qn__builder_fail(b, QN_ERR_RANK, "%s: view \"%.100s\": %d indices for rank %d", who,
                         view->name, n, view->rank);
        return false;
    }
    if (n > 0 && !index) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: view \"%.100s\": indices are NULL", who,
                         view->name);
        return false;
    }
    for (int i = 0; i < n; i++) {
        char label[160];
        snprintf(label, sizeof label, "view \"%.100s\": index %d", view->name, i);
        if (!qn__use_index(b, who, label, index[i], &out[i]) ||
            !qn__has_kind(b, who, label, index[i], kinds[i]))
            return false;
    }
    return true;
}

bool qn__can_write(qn_builder *b, const char *who, const qn_kernel_parameter *view)
{
    if (b->is_function) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: view \"%.100s\": a function stores nothing", who,
                         view->name);
        return false;
    }
    if (view->traits & (QN_READ_ONLY | QN_RANDOM_ACCESS)) {
        qn__builder_fail(b, QN_ERR_READ_ONLY, "%s: view \"%.100s\" is %s", who, view->name,
                         view->traits & QN_READ_ONLY ? "read-only" : "random-access: read-only");
        return false;
    }
    for (int d = 0; d < b->depth; d++)
        if (b->frame[d].op == QN_I_REDUCE) {
            qn__builder_fail(b, QN_ERR_BUILD, "%s: view \"%.100s\": inside a reduce", who,
                             view->name);
            return false;
        }
    return true;
}

/** The value of an access, usable and of the view's dtype: its number in *out. */
static bool use_value(qn_builder *b, const char *who, const qn_kernel_parameter *view,
                      const char *what, qn_val v, uint32_t *out)
{
    char label[160];
    snprintf(label, sizeof label, "view \"%.100s\": %s", view->name, what);
    if (!qn__use(b, who, label, v, out))
        return false;
    if (qn__is_element_of(b, view, *out))
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: %s%s is %s, the view's elements are %s", who, label,
                     qn__origin(b, *out, (char[ORIGIN_BYTES]){0}),
                     qn_dtype_name(b->inst[*out].type), qn_dtype_name(view->dtype));
    return false;
}

qn_val qn_load(qn_builder *b, qn_param p, int n, const qn_val *index)
{
    const char *who = "qn_load";
    uint32_t args[QN_MAX_RANK];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !qn__use_indices(b, who, view, n, index, args))
        return (qn_val){0};
    return qn__load_element_of(b, who, p, args);
}

uint32_t qn__append_load(qn_builder *b, const char *who, qn_param p, int part,
                         const uint32_t *index)
{
    const qn_kernel_parameter *view = &b->param[p.id - 1];
    qn_inst x = {.op = QN_I_LOAD,
                 .type = (uint8_t)qn__part_dtype(view->dtype, view->record, part),
                 .sub = (uint8_t)part,
                 .imm = p.id - 1};
    bool is_atomic = view->traits & QN_ATOMIC;
    uint32_t i =
        (is_atomic ? qn__append : qn__append_numbered)(b, who, x, (uint32_t)view->rank, index);
    if (i && b->keeps_loads)
        b->note[i].is_kept = true;
    return i;
}

void qn__append_store(qn_builder *b, const char *who, qn_param p, int part, const uint32_t *index,
                      uint32_t value)
{
    uint32_t args[QN_MAX_RANK + 1];
    int n = b->param[p.id - 1].rank;
    for (int d = 0; d < n; d++)
        args[d] = index[d];
    args[n] = value;
    qn_inst x = {.op = QN_I_STORE, .sub = (uint8_t)part, .imm = p.id - 1};
    qn__append(b, who, x, (uint32_t)n + 1, args);
}

uint32_t qn__append_atomic(qn_builder *b, const char *who, int combine, qn_param p, int n_args,
                           const uint32_t *args)
{
    qn_inst x = {.op = QN_I_ATOMIC,
                 .type = (uint8_t)b->param[p.id - 1].dtype,
                 .sub = (uint8_t)combine,
                 .imm = p.id - 1};
    uint32_t i = qn__append(b, who, x, (uint32_t)n_args, args);
    qn__new_version(b);
    return i;
}

void qn_store(qn_builder *b, qn_param p, int n, const qn_val *index, qn_val value)
{
    const char *who = "qn_store";
    uint32_t args[QN_MAX_RANK + 1];
    if (!qn__builder_ready(b, who))
        return;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !qn__can_write(b, who, view) || !qn__use_indices(b, who, view, n, index, args) ||
        !use_value(b, who, view, "value", value, &args[n]))
        return;
    if (view->traits & QN_ATOMIC)
        qn__store_atomically(b, who, p, args);
    else
        qn__store_element_of(b, who, p, args, args[n]);
}

/* ---------------------------------------------------------------- atomics */

/** Whether an atomic combination exists and takes the dtype. */
static bool check_combine(qn_builder *b, const char *who, int combine,
                          const qn_kernel_parameter *view)
{
    if (!qn__is_atomic_combine(combine)) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s", who,
                         qn__no_combine(combine, false, (char[NO_COMBINE_BYTES]){0}));
        return false;
    }
    if (!qn__has_parts(view->dtype) && qn__reducer_takes(combine, qn__dtype_class(view->dtype)))
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: view \"%.100s\": %s does not take %s", who, view->name,
                     qn__combine_name(combine), qn_dtype_name(view->dtype));
    return false;
}

qn_val qn_atomic(qn_builder *b, int combine, qn_param p, int n, const qn_val *index, qn_val value,
                 qn_val compare)
{
    const char *who = "qn_atomic";
    uint32_t args[QN_MAX_RANK + 2];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !check_combine(b, who, combine, view) || !qn__can_write(b, who, view) ||
        !qn__use_indices(b, who, view, n, index, args) ||
        !use_value(b, who, view, "value", value, &args[n]))
        return (qn_val){0};
    bool compares = combine == QN_COMBINE_COMPARE_EXCHANGE;
    if (compares && !use_value(b, who, view, "compare", compare, &args[n + 1]))
        return (qn_val){0};
    if (!compares && compare.id)
        return qn__builder_fail(b, QN_ERR_ARGUMENT,
                                "%s: view \"%.100s\": compare is for compare_exchange only", who,
                                view->name);
    return qn__value(b, qn__append_atomic(b, who, combine, p, n + 1 + compares, args), 0);
}
