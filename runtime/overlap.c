/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap.c: what it means that two arguments share elements. Nothing, if neither is written and
 * neither claims to be alone. Nothing either, if they are the same elements in the same order and
 * the kernel touches both at one index tuple only and without atomics, so that no iteration sees
 * what another writes. Else the launch runs in iteration order, or is refused.
 */
#include "runtime/launch.h"

#include <string.h>

/* ---------------------------------------------------------------- usage */

/** Whether two accesses have the same index values. */
static bool has_same_tuple(const qn_kernel *k, uint32_t a, uint32_t b)
{
    int n = qn__n_indices(k, a);
    return n == qn__n_indices(k, b) &&
           memcmp(qn__args(k, a), qn__args(k, b), (size_t)n * sizeof(uint32_t)) == 0;
}

void qn__usage_collect(const qn_kernel *k, qn_usage *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t site = 0; site < k->n_accesses; site++) {
        uint32_t i = k->access[site].inst;
        uint64_t p = k->inst[i].imm;
        if (k->inst[i].op == QN_I_STORE && (k->param[p].traits & QN_ATOMIC) == 0)
            out->has_plain_store[p] = true;
        if (out->tuple[p] == 0)
            out->tuple[p] = i;
        else if (out->tuple[p] != UINT32_MAX && !has_same_tuple(k, out->tuple[p], i))
            out->tuple[p] = UINT32_MAX;
    }
}

/** Whether iterations may meet in one element of a parameter, as atomics and atomic stores may. */
static bool may_collide(const qn_kernel *k, int p)
{
    return k->param[p].has_atomics || (k->param[p].traits & QN_ATOMIC) != 0;
}

/** Whether all accesses of both parameters have one index tuple. */
static bool share_tuple(const qn_kernel *k, const qn_usage *usage, int a, int b)
{
    uint32_t i = usage->tuple[a], j = usage->tuple[b];
    return i != 0 && j != 0 && i != UINT32_MAX && j != UINT32_MAX && has_same_tuple(k, i, j);
}

bool qn__may_be_same(const qn_kernel *k, const qn_usage *usage, int a, int b)
{
    return k->param[a].dtype == k->param[b].dtype && k->is_in_place_safe &&
           share_tuple(k, usage, a, b) && !may_collide(k, a) && !may_collide(k, b);
}

/* ---------------------------------------------------------------- pairs */

static uint32_t traits_of(const qn_kernel *k, const qn_arg *args, int i)
{
    return k->param[i].traits | args[i].view->traits;
}

bool qn__overlap_matters(const qn_kernel *k, const qn_arg *args, int a, int b)
{
    if (k->param[a].rank < 0 || k->param[b].rank < 0)
        return false;
    return k->param[a].is_written || k->param[b].is_written ||
           ((traits_of(k, args, a) | traits_of(k, args, b)) & QN_RESTRICT) != 0;
}

static const char *label_of(const qn_launch_state *l, int i)
{
    const char *label = qn__given_view(l, i)->label;
    return label && label[0] ? label : l->kernel->param[i].name;
}

/** The claim that an overlap of a and b breaks, or NULL. */
static const char *broken_claim(const qn_launch_state *l, int a, int b)
{
    uint32_t traits_a = traits_of(l->kernel, l->args, a),
             traits_b = traits_of(l->kernel, l->args, b);
    if ((traits_a | traits_b) & QN_RESTRICT)
        return "restrict";
    bool claims_a = traits_a & QN_RANDOM_ACCESS && l->kernel->param[b].is_written;
    bool claims_b = traits_b & QN_RANDOM_ACCESS && l->kernel->param[a].is_written;
    return claims_a || claims_b ? "random_access" : NULL;
}

static qn_status check_pair(qn_launch_state *l, const qn_usage *usage, int a, int b, qn_error *err)
{
    const qn_view *view_a = qn__given_view(l, a), *view_b = qn__given_view(l, b);
    const qn_kernel *k = qn__given_kernel(l, b);
    int relation = qn__view_relation(view_a, view_b);
    if (relation == QN_DISJOINT)
        return QN_OK;
    const char *how = relation == QN_SAME ? "has the elements of" : "overlaps";
    const char *claim = broken_claim(l, a, b);
    if (claim)
        return qn__fail(
            err, QN_ERR_OVERLAP,
            "%s: kernel \"%.40s\": argument %d (%.60s) %s argument %d (%.60s) against the "
            "claim %s",
            l->who, l->kernel->name, a, label_of(l, a), how, b, label_of(l, b), claim);
    bool is_harmless = relation == QN_SAME && qn__may_be_same(k, usage, a, b);
    l->shares_elements = l->shares_elements || is_harmless;
    if (is_harmless)
        return QN_OK;
    if (l->options.executor == QN_CUDA)
        return qn__fail(err, QN_ERR_OVERLAP,
                        "%s: kernel \"%.40s\": argument %d (%.60s) %s argument %d (%.60s), and a "
                        "GPU has no iteration order",
                        l->who, l->kernel->name, a, label_of(l, a), how, b, label_of(l, b));
    if (l->options.strict)
        return qn__fail(err, QN_ERR_OVERLAP,
                        "%s: kernel \"%.40s\": argument %d (%.60s) %s argument %d (%.60s), and the "
                        "launch is strict",
                        l->who, l->kernel->name, a, label_of(l, a), how, b, label_of(l, b));
    if (!l->is_ordered)
        qn__fail(&l->overlap, QN_ERR_OVERLAP, "in iteration order: view %.60s %s view %.60s",
                 label_of(l, a), how, label_of(l, b));
    l->is_ordered = true;
    return QN_OK;
}

qn_status qn__overlap_check(qn_launch_state *l, qn_error *err)
{
    const qn_kernel *k = l->kernel;
    qn_usage usage; /* as the kernel was given: lists share no index tuple with anything */
    bool has_usage = false;
    l->is_ordered = l->shares_elements = false;
    for (int b = 0; b < l->n; b++) {
        bool is_view = k->param[b].rank >= 0;
        if (is_view && k->param[b].is_written && traits_of(k, l->args, b) & QN_RANDOM_ACCESS)
            return qn__fail(
                err, QN_ERR_OVERLAP,
                "%s: kernel \"%.40s\": argument %d (%.60s) is written against the claim "
                "random_access",
                l->who, k->name, b, label_of(l, b));
        for (int a = 0; a < b && is_view; a++) {
            if (!qn__overlap_matters(k, l->args, a, b))
                continue;
            if (!has_usage)
                qn__usage_collect(qn__given_kernel(l, 0), &usage);
            has_usage = true;
            qn_status status = check_pair(l, &usage, a, b, err);
            if (status)
                return status;
        }
    }
    return QN_OK;
}

qn_span qn__view_span(const qn_view *v)
{
    qn_span span;
    qn__view_bytes(v, &span.low, &span.high);
    return span;
}
