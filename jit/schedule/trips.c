/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trips.c: the loops of the body whose trips become lanes, in iterations that are scalar code. Of
 * loops inside one another one is chosen, by the strides of what is accessed in it.
 */
#include "jit/schedule/plan.h"

#include <stdlib.h>

/** Relative cost of the accesses in `for` i with lanes along it. */
static double cost_along(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    double sum = 0;
    int64_t stride;
    for (uint32_t n = k->inst[i].region[0]; n < k->inst[i].region[2]; n++) {
        if (!qn__is_access(&k->inst[n]))
            continue;
        if (!qn__trip_stride(a, n, i, &stride))
            sum += COST_GATHER;
        else
            sum += qn__is_small_stride(stride) ? (double)llabs(stride) : stride ? COST_GATHER : 0;
    }
    return sum;
}

/** Whether accesses in `for` i are in range in all lanes, or one test before the loop shows that
 * (jit/lower/version.c). */
static bool may_be_tested_before(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const uint32_t first = k->inst[i].region[0], end = k->inst[i].region[2];
    bool is_checked = false, has_loops = false;
    int64_t ahead;
    if (k->inst[i].op == QN_I_WHILE) /* lanes stop where an access leaves its view */
        return true;
    for (uint32_t n = first; n < end; n++) {
        has_loops |= n > first && qn__has_regions(&k->inst[n]) && k->inst[n].op != QN_I_IF;
        if (!qn__is_access(&k->inst[n]) || !qn__is_checked(a->f, k, qn__site_of(k, n)))
            continue;
        is_checked = true;
        for (int r = 0; r < qn__n_indices(k, n); r++) {
            uint32_t index = qn__args(k, n)[r];
            if (a->f->param[k->inst[n].imm].dim[r].n_digits > 0 && index >= first &&
                !qn__is_ahead_of_trip(a, i, index, &ahead))
                return false;
        }
    }
    return !is_checked || (!has_loops && k->inst[i].imm == 1);
}

/** Adds those of the loops in [begin, end) that are in no branch. */
static void choose(const qn_analysis *a, uint32_t begin, uint32_t end, qn_trip_lanes *out)
{
    const qn_kernel *k = a->k;
    for (uint32_t i = begin; i < end; i = k->inst[i].region[2]) {
        if (!qn__is_body_loop(k, i))
            continue;
        const int before = out->n;
        double inner = 0;
        choose(a, k->inst[i].region[0], k->inst[i].region[2], out);
        for (int n = before; n < out->n; n++)
            inner += cost_along(a, out->loop[n]);
        bool is_better = out->n == before || cost_along(a, i) < inner;
        if (is_better && before < QN_MOST_TRIP_LANES && qn__trips_at_once(a, i) > 1 &&
            may_be_tested_before(a, i)) {
            out->n = before;
            out->loop[out->n++] = i;
        }
    }
}

int qn__data_bits(const qn_analysis *a, uint32_t i)
{
    const qn_inst *x = &a->k->inst[i];
    const int type = x->op == QN_I_STORE ? qn__access_dtype(a->k, i) : x->type;
    bool is_index = type == QN_I64 && x->op != QN_I_STORE && x->op != QN_I_LOAD;
    if (is_index || type == QN_VOID)
        return 8;
    return a->value && x->op != QN_I_STORE && a->value[i].bits ? a->value[i].bits
                                                               : qn__dtype_width(type);
}

/** Bits of the widest value of a loop that is no index. */
static int widest_in(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    int widest = 8;
    for (uint32_t n = k->inst[i].region[0]; n < k->inst[i].region[2]; n++) {
        const int bits = qn__data_bits(a, n);
        widest = bits > widest ? bits : widest;
    }
    return widest;
}

int qn__plan_trips(const qn_analysis *a, qn_trip_lanes *out)
{
    int widest = 8;
    int64_t most = QN_MOST_LANES;
    *out = (qn_trip_lanes){0};
    if (!a->value)
        return 0;
    choose(a, a->k->body, a->k->n_insts, out);
    for (int n = 0; n < out->n; n++) {
        int bits = widest_in(a, out->loop[n]);
        int64_t at_once = qn__trips_at_once(a, out->loop[n]);
        widest = bits > widest ? bits : widest;
        most = at_once < most ? at_once : most;
    }
    int lanes = 8 * a->f->target->vector_bytes / widest;
    while (lanes > most)
        lanes /= 2;
    return out->n == 0 ? 0 : lanes;
}
