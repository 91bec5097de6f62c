/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c: what is specific to NVPTX before any code is generated: the facts about
 * views that only PTX uses, and how much work a launch has. Knows neither LLVM nor CUDA.
 */
#include "jit/facts/facts.h"

/* ---------------------------------------------------------------- views */

/** Whether no element of view p is written through any argument. */
static bool is_constant_memory(const qn_kernel *k, const qn_arg *args, int p)
{
    for (int q = 0; q < k->n_params; q++)
        if (k->param[q].rank >= 0 && k->param[q].is_written &&
            (q == p || qn__view_relation(args[p].view, args[q].view) != QN_DISJOINT))
            return false;
    return true;
}

static int32_t alignment(const void *data)
{
    int32_t align = 0;
    while (align < 4 && ((uintptr_t)data >> align & 1) == 0)
        align++;
    return align;
}

void qn__facts_gpu(const qn_kernel *k, const qn_arg *args, qn_facts *f)
{
    f->ptx = qn__ptx_of_isa(f->isa);
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        f->param[p].is_constant_memory = is_constant_memory(k, args, p);
        f->param[p].align = alignment(args[p].view->data);
    }
}

/* ---------------------------------------------------------------- work */

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

int64_t qn__gpu_units(const qn_gpu_step *s, const qn_kernel *k, const qn_domain *domain)
{
    int64_t n = s->units > 0 ? s->units : 1, points = 1;
    for (int d = 0; d < k->n_dims; d++) {
        int64_t extent = domain->end[d] - domain->begin[d];
        bool is_reduction = qn__is_reduction(k, d);
        if (!is_reduction && extent <= 0)
            return 0;
        if (is_reduction)
            points *= extent;
        else if (s->tile[d])
            n *= divide_up(extent, s->tile[d]);
    }
    if (s->points)
        n *= points > 0 ? divide_up(points, s->points) : 1;
    return n;
}
