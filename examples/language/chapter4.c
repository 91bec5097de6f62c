/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chapter4.c: reductions wait, too, and kernels are kept by the structure of their expressions.
 * Whether a reduction is part of a larger kernel is decided by shapes, when they are known.
 */
#include "language.h"

/* [settle] */
/* Computes the reductions of a record that cannot be part of its kernel. A reduction can if it has
 * one value for each element of the root, so that no sum is computed twice, and if it does not
 * stand in another reduction. */
static bool settle(session *s, const value *root, value *v, bool is_in_reduction)
{
    if (v->kind == REDUCE && v != root && (is_in_reduction || !has_shape_of(v, root)))
        return force(s, v);
    for (int i = 0; i < v->n_args; i++)
        if (!settle(s, root, v->arg[i], is_in_reduction || v->kind == REDUCE))
            return false;
    return true;
}

bool compute_fused(session *s, value *v)
{
    fusion f;
    if (!settle(s, v, v, false) || !fusion_collect(&f, s, v))
        return false;
    const qn_kernel *k = kernel_find(s, f.n_key, f.key);
    if (!k)
        k = kernel_keep(s, f.n_key, f.key, fusion_build(&f));
    return k && fusion_launch(&f, k);
}
/* [end] */

bool waits_for_fusion(const value *v)
{
    return !(v->kind == IOTA && v->extent[0] == 1);
}

static bool open_context(session *s)
{
    return context_open(s, "off");
}

const engine chapter4 = {.title = "... with reductions, kept by structure",
                         .open = open_context,
                         .waits = waits_for_fusion,
                         .compute = compute_fused};
