/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_loops.c: which loops may become straight code, and which dimensions two (straighten.h).
 * Facts in, choices out; knows no LLVM.
 */
#include "jit/analysis/straighten.h"

static bool is_short(const qn_facts *f, int d)
{
    return qn__trips(f, d) >= 2 && qn__trips(f, d) <= QN_MOST_SHORT;
}

static int64_t magnitude(int64_t n)
{
    return n < 0 ? -n : n;
}

/** Whether access i moves less far along d than along some other, longer, parallel dimension. */
static bool is_between(const qn_analysis *a, uint32_t i, int d)
{
    int64_t own, far;
    if (!qn__access_stride(a, i, d, &own) || own == 0)
        return false;
    for (int l = 0; l < a->k->n_dims; l++)
        if (l != d && qn__is_parallel(a->k, l) && !is_short(a->f, l) && qn__trips(a->f, l) != 1 &&
            qn__access_stride(a, i, l, &far) && magnitude(far) <= QN_MOST_PLACES &&
            magnitude(own) < magnitude(far))
            return true;
    return false;
}

/** With all dimensions of reduces over some of `dims`; where one of these is long, all reduces
 * stay. */
static uint32_t closed(const qn_kernel *k, const qn_facts *f, uint32_t dims)
{
    uint32_t before, reductions = 0;
    bool may_be = true;
    do {
        before = dims;
        for (uint32_t i = k->body; i < k->n_insts; i++) {
            uint32_t own = k->inst[i].op == QN_I_REDUCE ? qn__points_dims(k, i) : 0;
            dims |= own & dims ? own : 0;
        }
    } while (dims != before);
    for (int d = 0; d < k->n_dims; d++)
        if ((dims >> d & 1) && qn__is_reduction(k, d)) {
            reductions |= 1u << d;
            may_be = may_be && is_short(f, d);
        }
    return may_be ? dims : dims & ~reductions;
}

uint32_t qn__dims_between(const qn_analysis *a)
{
    const qn_kernel *k = a->k;
    uint32_t dims = 0;
    for (int d = 0; d < k->n_dims; d++)
        for (uint32_t n = 0; n < k->n_accesses && qn__dim_kind(k, d) != QN_DIM_SEQUENTIAL; n++)
            if (is_short(a->f, d) && is_between(a, k->access[n].inst, d))
                dims |= 1u << d;
    return closed(k, a->f, dims);
}

/** Whether nothing else meets what store i writes: one of the trips may do it at any time. */
static bool is_apart(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    bool is = k->inst[i].op == QN_I_STORE;
    FOR_ACCESSES (k, n, other) {
        is = is && (other == i || !qn__may_meet(a, k->inst[other].imm, k->inst[i].imm));
    }
    return is;
}

/** Whether something outside of a loop may meet what the loop stores: as iterations its trips would
 * do so at any time. */
static bool is_met_outside(const qn_analysis *a, uint32_t loop)
{
    const qn_kernel *k = a->k;
    const uint32_t begin = k->inst[loop].region[0], end = k->inst[loop].region[2];
    bool is_met = false;
    FOR_ACCESSES (k, n, i) {
        const bool is_store = i >= begin && i < end && k->inst[i].op != QN_I_LOAD;
        FOR_ACCESSES (k, m, other) {
            is_met |= is_store && !(other >= begin && other < end) &&
                      qn__may_meet(a, k->inst[other].imm, k->inst[i].imm);
        }
    }
    return is_met;
}

bool qn__find_loop(const qn_analysis *a, qn_short_loops *out)
{
    const qn_kernel *k = a->k;
    out->loop = 0;
    for (uint32_t i = k->body; i < k->n_insts; i = k->inst[i].region[2]) {
        const qn_inst *x = &k->inst[i];
        const bool is_loop = x->op == QN_I_FOR && !out->loop && x->n_args == 2;
        if (is_loop && qn__known_trips(a, i) > 1 && qn__trips_at_once(a, i) == INT64_MAX)
            out->loop = i;
        else if (x->op != QN_I_REDUCE && x->op != QN_I_LOAD && !qn__is_pure(x) && !is_apart(a, i))
            return false;
    }
    return out->loop && k->n_dims < QN_MAX_RANK && qn__n_top_reduces(k) > 0 &&
           !is_met_outside(a, out->loop);
}

bool qn__has_short_trips(const qn_analysis *a)
{
    const qn_kernel *k = a->k;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        int64_t begin, end;
        if (k->inst[i].op != QN_I_FOR || !qn__is_number(a, qn__args(k, i)[0], &begin) ||
            !qn__is_number(a, qn__args(k, i)[1], &end))
            continue;
        int64_t trips = qn__trips_between(begin, end, (int64_t)k->inst[i].imm);
        if (trips >= 0 && trips <= QN_MOST_SHORT)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- sides */

/** Whether a view has an element whose place is known when code is made. */
static bool has_element(const qn_facts *f, const qn_kernel *k, uint64_t param)
{
    for (int r = 0; r < k->param[param].rank; r++) {
        const qn_dim_fact *dim = &f->param[param].dim[r];
        if (dim->lower.kind != QN_FACT_EXACT || qn__fact_interval(&dim->extent).low < 1)
            return false;
    }
    return true;
}

bool qn__may_compute_both(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    enum { MOST_COMPUTED = 32 };
    const qn_inst *x = &k->inst[i];
    const uint32_t after = x->region[2];
    bool has_loads = false;
    if (x->op != QN_I_IF || x->sub || after - i > MOST_COMPUTED || after >= k->n_insts ||
        k->inst[after].op != QN_I_RESULT)
        return false;
    for (uint32_t j = i + 1; j < after; j++) {
        const qn_inst *y = &k->inst[j];
        const bool is_load = y->op == QN_I_LOAD, is_if = y->op == QN_I_IF && !y->sub;
        if (is_load &&
            ((k->param[y->imm].traits & QN_ATOMIC) || !f->param[y->imm].is_constant_memory ||
             qn__is_checked(f, k, qn__site_of(k, j)) || !has_element(f, k, y->imm)))
            return false;
        if (!is_load && !is_if && !qn__is_pure(y) && y->op != QN_I_YIELD && y->op != QN_I_RESULT)
            return false;
        has_loads |= is_load;
    }
    return has_loads;
}

/* ---------------------------------------------------------------- dimensions that become two */

bool qn__quotient(const qn_inst *inst, const uint32_t *operand, uint32_t i, qn_quotient *out)
{
    const qn_inst *x = &inst[i];
    int op = x->op >= QN_I_PURE ? qn__pure(x) : -1;
    bool is_one = op == QN_OP_div || op == QN_OP_rem || op == QN_OP_and || op == QN_OP_shr;
    if (!is_one || x->type != QN_I64 || inst[operand[x->args + 1]].op != QN_I_CONST)
        return false;
    int64_t n = (int64_t)inst[operand[x->args + 1]].imm;
    if (op == QN_OP_shr ? n < 1 || n > 32 : n < 1 || n > INT32_MAX)
        return false;
    *out = (qn_quotient){.of = operand[x->args],
                         .by = op == QN_OP_shr   ? INT64_C(1) << n
                               : op == QN_OP_and ? n + 1
                                                 : n,
                         .is_rest = op == QN_OP_rem || op == QN_OP_and};
    return op != QN_OP_and || (n & (n + 1)) == 0;
}

/** Whether dimension d may be taken in parts of n iterations. */
static bool may_be_cut(const qn_analysis *a, int d, int64_t n)
{
    const qn_facts *f = a->f;
    return qn__is_parallel(a->k, d) && qn__is_exact(f, d) && f->begin[d].value >= 0 && n >= 2 &&
           qn__trips(f, d) % n == 0 && qn__trips(f, d) / n >= 2;
}

bool qn__find_cuts(const qn_analysis *a, int64_t *cut)
{
    const qn_kernel *k = a->k;
    int n_cuts = 0;
    qn_quotient q;
    for (int d = 0; d < QN_MAX_RANK; d++)
        cut[d] = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        for (int d = 0; qn__quotient(k->inst, k->operand, i, &q) && d < k->n_dims; d++) {
            if (a->affine[q.of].coef[d] != 1 || q.by <= cut[d] || !may_be_cut(a, d, q.by) ||
                (!cut[d] && k->n_dims + n_cuts == QN_MAX_RANK))
                continue;
            n_cuts += !cut[d];
            cut[d] = q.by;
        }
    return n_cuts > 0;
}
