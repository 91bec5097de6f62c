/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c: which facts become constants. At first all of them. A kernel for which many exact
 * versions were made gets versions whose varying extents and strides are dynamic; if lower bounds
 * vary, everything is. What varied is noted against the arguments of the version
 * that was ordered last.
 */
#include "runtime/launch.h"

#include <inttypes.h>

/* A version that serves further shapes is made soon: shapes that come back get their exact one
 * again (trial.c). */
enum { MOST_EXACT = 4 };

void qn__policy_observe(qn_known_kernel *known, const qn_arg *args)
{
    if (!known->has_last)
        return;
    const qn_kernel *k = known->kernel;
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        const qn_dim *now = args[p].view->layout.dim, *last = known->last[p].dim;
        for (int d = 0; d < k->param[p].rank; d++) {
            uint32_t bit = UINT32_C(1) << d;
            known->varied[p] |= now[d].extent != last[d].extent ? bit : 0;
            known->varied[QN_MAX_PARAMS + p] |= now[d].stride != last[d].stride ? bit : 0;
            known->has_odd_changes |= now[d].lower != last[d].lower;
        }
    }
}

bool qn__policy_wants_dynamic(const qn_known_kernel *known, qn_policy *out)
{
    bool has_varied = known->has_odd_changes;
    for (int p = 0; p < QN_POLICY_MASKS; p++)
        has_varied |= known->varied[p] != 0;
    if (known->n_exact < MOST_EXACT || !has_varied)
        return false;
    out->all_dynamic = known->has_odd_changes;
    out->dynamic_extents = known->varied;
    out->dynamic_strides = known->varied + QN_MAX_PARAMS;
    return true;
}

/** Appends the first difference of one kind between the arguments and those of the version that was
 * ordered last. */
static bool print_difference(const qn_known_kernel *known, const qn_arg *args, int kind,
                             qn_text *out)
{
    static const char *const name[] = {"extent", "lower bound", "stride"};
    const qn_kernel *k = known->kernel;
    for (int p = 0; p < k->n_params; p++) {
        for (int d = 0; d < k->param[p].rank; d++) {
            const qn_dim *now = &args[p].view->layout.dim[d], *last = &known->last[p].dim[d];
            int64_t values[3][2] = {{now->extent, last->extent},
                                    {now->lower, last->lower},
                                    {now->stride, last->stride}};
            if (values[kind][0] == values[kind][1])
                continue;
            qn__text_add(out, "%s %d of view %.60s: %" PRId64 ", was %" PRId64, name[kind], d,
                         k->param[p].name, values[kind][0], values[kind][1]);
            return true;
        }
    }
    return false;
}

void qn__policy_reason(const qn_known_kernel *known, const qn_arg *args, qn_text *out)
{
    if (!known->has_last) {
        qn__text_add(out, "first version");
        return;
    }
    for (int kind = 0; kind < 3; kind++)
        if (print_difference(known, args, kind, out))
            return;
    qn__text_add(out, "other facts or options");
}

void qn__policy_ordered(qn_known_kernel *known, const qn_arg *args, bool is_exact)
{
    const qn_kernel *k = known->kernel;
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        known->last[p] = args[p].view->layout;
        known->last[p].digits = NULL;
    }
    known->has_last = true;
    known->n_exact += is_exact;
}
