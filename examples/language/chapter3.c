/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chapter3.c: operations on elements wait, and what waits becomes one kernel. The kernel is built
 * each time.
 */
#include "language.h"

/* [waits] */
static bool waits(const value *v)
{
    return v->kind != REDUCE && !(v->kind == IOTA && v->extent[0] == 1);
}

static bool compute(session *s, value *v)
{
    fusion f;
    if (v->kind == REDUCE && !force(s, v->arg[0]))
        return false;
    if (!fusion_collect(&f, s, v))
        return false;
    qn_kernel *k = fusion_build(&f);
    const bool is_good = k && fusion_launch(&f, k);
    qn_kernel_release(k);
    return is_good;
}
/* [end] */

static bool open_context(session *s)
{
    return context_open(s, "off");
}

const engine chapter3 = {.title = "a kernel for each expression",
                         .open = open_context,
                         .waits = waits,
                         .compute = compute};
