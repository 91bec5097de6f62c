/* SPDX-License-Identifier: Apache-2.0 */
/*
 * domain.c: facts of the domain. A bound that depends on exact facts alone is exact. Of
 * another one, which the code computes, it is known what follows from the facts of the parameters:
 * which power of two divides the bound, whether it is small, and what it is not below or above.
 * Arithmetic of integers wraps, which keeps multiples of powers of two, and the intervals take
 * account of it.
 */
#include "jit/facts/facts.h"

/** What is known of each instruction of the prologue. */
typedef struct known {
    qn_interval *range;
    int32_t *multiple;
    uint8_t *is_exact;
} known;

static const qn_interval anything = {INT64_MIN, INT64_MAX, false};

/* ---------------------------------------------------------------- exact bounds */

static bool is_exact(const qn_kernel *k, const qn_facts *f, uint32_t i, const uint8_t *exact_ones)
{
    const qn_inst *x = &k->inst[i];
    if (x->op == QN_I_PARAM)
        return f->param[x->imm].is_constant != 0;
    if (x->op == QN_I_EXTENT)
        return f->param[x->imm].dim[x->sub].extent.kind == QN_FACT_EXACT;
    if (x->op == QN_I_LOWER)
        return f->param[x->imm].dim[x->sub].lower.kind == QN_FACT_EXACT;
    for (int j = 0; j < x->n_args; j++)
        if (!exact_ones[qn__args(k, i)[j]])
            return false;
    return true;
}

/* ---------------------------------------------------------------- multiples */

static int32_t greatest_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t multiple_of_pure(const qn_kernel *k, uint32_t i, const int32_t *multiple)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    const int32_t a = multiple[arg[0]], b = multiple[arg[x->n_args > 1]];
    const qn_inst *by = &k->inst[arg[x->n_args > 1]];
    bool is_const = by->op == QN_I_CONST && (int64_t)by->imm > 0;
    switch (qn__pure(x)) {
    case QN_OP_neg:
        return a;
    case QN_OP_add:
    case QN_OP_sub:
    case QN_OP_min:
    case QN_OP_max:
    case QN_OP_or:
    case QN_OP_xor:
        return a < b ? a : b;
    case QN_OP_and:
        return greatest_of(a, b);
    case QN_OP_mul:
        return qn__power_of((int64_t)a * b);
    case QN_OP_shl:
        return is_const && by->imm < 16 ? qn__power_of((int64_t)a << by->imm) : a;
    case QN_OP_div: /* exact where the divisor is a power of two that divides */
        return is_const && (by->imm & (by->imm - 1)) == 0 && by->imm <= (uint64_t)a
                   ? a / (int32_t)by->imm
                   : 1;
    default:
        return 1;
    }
}

static int32_t multiple_of(const qn_kernel *k, const qn_facts *f, uint32_t i,
                           const int32_t *multiple)
{
    const qn_inst *x = &k->inst[i];
    if (!qn__is_integer(x->type))
        return 1;
    if (x->op == QN_I_CONST)
        return qn__power_of((int64_t)x->imm);
    if (x->op == QN_I_PARAM)
        return greatest_of(1, f->param[x->imm].is_constant
                                  ? qn__power_of((int64_t)f->param[x->imm].bits[0])
                                  : f->param[x->imm].multiple);
    if (x->op == QN_I_EXTENT)
        return qn__multiple_of(&f->param[x->imm].dim[x->sub].extent);
    if (x->op == QN_I_LOWER)
        return qn__multiple_of(&f->param[x->imm].dim[x->sub].lower);
    if (x->op == QN_I_CAST)
        return qn__is_integer(k->inst[qn__args(k, i)[0]].type) ? multiple[qn__args(k, i)[0]] : 1;
    return x->op >= QN_I_PURE ? multiple_of_pure(k, i, multiple) : 1;
}

/* ---------------------------------------------------------------- ranges */

qn_interval qn__facts_range(const qn_kernel *k, const qn_facts *f, const qn_interval *value,
                            uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    qn_interval r = anything;
    if (!qn__is_integer(x->type))
        return qn__interval_of_type(x->type);
    if (x->op >= QN_I_PURE || x->op == QN_I_CAST || x->op == QN_I_BITCAST || x->op == QN_I_LOOKUP)
        return qn__interval_of_pure(k, value, i);
    if (x->op == QN_I_CONST && !(x->type == QN_U64 && (int64_t)x->imm < 0))
        return (qn_interval){(int64_t)x->imm, (int64_t)x->imm, false};
    if (x->op == QN_I_LOWER)
        return qn__fact_interval(&f->param[x->imm].dim[x->sub].lower);
    if (x->op == QN_I_EXTENT) {
        r = qn__fact_interval(&f->param[x->imm].dim[x->sub].extent);
        r.low = r.low < 0 ? 0 : r.low;
        return r;
    }
    r = qn__interval_of_type(x->type);
    if (x->op == QN_I_PARAM && x->sub == 0 && f->param[x->imm].is_small) {
        bool is_unsigned = qn__dtype_class(x->type) == QN_CLASS_U;
        r.low = is_unsigned ? 0 : r.low < -INT32_MAX ? -INT32_MAX : r.low;
        r.high = r.high > INT32_MAX ? INT32_MAX : r.high;
    }
    return r;
}

/* ---------------------------------------------------------------- all of it */

/** A bound that is computed: the facts that follow. */
static qn_fact computed(const known *x, uint32_t i)
{
    const qn_interval *r = &x->range[i];
    int32_t least = r->low <= 0 ? 0 : r->low < INT32_MAX ? (int32_t)r->low : INT32_MAX;
    return (qn_fact){.kind = QN_FACT_DYNAMIC,
                     .slot = -1,
                     .multiple = x->multiple[i],
                     .is_small = r->low >= -INT32_MAX && r->high <= INT32_MAX,
                     .least = least,
                     .most = r->high >= 1 && r->high <= QN_SHORT_EXTENT ? (int32_t)r->high : 0};
}

static qn_fact exactly(int64_t value)
{
    return (qn_fact){.kind = QN_FACT_EXACT, .slot = -1, .value = value};
}

static void collect(const qn_kernel *k, const qn_domain *domain, const known *x, qn_facts *f)
{
    for (uint32_t i = 1; i < k->body; i++) {
        x->is_exact[i] = is_exact(k, f, i, x->is_exact);
        x->multiple[i] = multiple_of(k, f, i, x->multiple);
        x->range[i] = qn__facts_range(k, f, x->range, i);
    }
    for (int d = 0; d < k->n_dims; d++) {
        const uint32_t *bound = qn__args(k, k->dim[d]);
        f->begin[d] = x->is_exact[bound[0]] ? exactly(domain->begin[d]) : computed(x, bound[0]);
        /* That of a range that begins above its end is the begin, which may be that of this launch
         * only. */
        bool is_given =
            x->is_exact[bound[1]] && (x->is_exact[bound[0]] || !(domain->reversed >> d & 1));
        f->end[d] = is_given ? exactly(domain->end[d]) : computed(x, bound[1]);
    }
}

bool qn__facts_domain(const qn_kernel *k, const qn_domain *domain, qn_facts *f)
{
    const known x = {.range = qn__zalloc(k->body + 1, sizeof *x.range),
                     .multiple = qn__zalloc(k->body + 1, sizeof *x.multiple),
                     .is_exact = qn__zalloc(k->body + 1, 1)};
    bool has_memory = x.range && x.multiple && x.is_exact;
    if (has_memory)
        collect(k, domain, &x, f);
    qn__free(x.range);
    qn__free(x.multiple);
    qn__free(x.is_exact);
    return has_memory;
}
