/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_range.c: what an entry function computes before it calls the code, as C text: the begin
 * and end of each dimension, from extents and scalars, and whether accesses that the code does not
 * check stay inside their arrays. Ranges of indices are those of sums, differences, products,
 * minima and maxima; the text has each value once, under the number of its instruction.
 */
#include "runtime/object.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- what can be computed */

static bool have_all(const qn_ranges *r, uint32_t i, uint8_t what)
{
    const uint32_t *arg = qn__args(r->k, i);
    for (int j = 0; j < r->k->inst[i].n_args; j++)
        if (!(r->can[arg[j]] & what) || r->k->inst[arg[j]].type != QN_I64)
            return false;
    return true;
}

static bool is_simple_op(const qn_inst *x)
{
    int op = qn__pure(x);
    return x->type == QN_I64 && (op == QN_OP_add || op == QN_OP_sub || op == QN_OP_mul ||
                                 op == QN_OP_min || op == QN_OP_max || op == QN_OP_neg);
}

static bool can_value(const qn_ranges *r, uint32_t i)
{
    const qn_inst *x = &r->k->inst[i];
    if (i >= r->k->body)
        return false;
    switch (x->op) {
    case QN_I_CONST:
    case QN_I_PARAM:
        return qn__is_integer(x->type);
    case QN_I_EXTENT:
    case QN_I_LOWER:
        return true;
    case QN_I_CAST:
        return x->type == QN_I64 && (r->can[qn__args(r->k, i)[0]] & QN_CAN_VALUE);
    default:
        return is_simple_op(x) && have_all(r, i, QN_CAN_VALUE);
    }
}

static bool can_range(const qn_ranges *r, uint32_t i)
{
    const qn_inst *x = &r->k->inst[i];
    if (x->type == QN_I64 && can_value(r, i))
        return true;
    return x->op == QN_I_DIM || (is_simple_op(x) && have_all(r, i, QN_CAN_RANGE));
}

/** Bit d: the range of a value is that of dimension d, or made of it. */
static uint32_t dims_of(const qn_ranges *r, uint32_t i)
{
    const qn_inst *x = &r->k->inst[i];
    uint32_t dims = x->op == QN_I_DIM ? UINT32_C(1) << x->imm : 0;
    for (int j = 0; x->op >= QN_I_PURE && j < x->n_args; j++)
        dims |= r->dims[qn__args(r->k, i)[j]];
    return dims;
}

bool qn__ranges_init(const qn_kernel *k, qn_ranges *out)
{
    *out = (qn_ranges){.k = k,
                       .can = qn__zalloc(k->n_insts, 1),
                       .needs = qn__zalloc(k->n_insts, 1),
                       .dims = qn__zalloc(k->n_insts, sizeof *out->dims)};
    bool has_memory = out->can && out->needs && out->dims;
    for (uint32_t i = 1; has_memory && i < k->n_insts; i++) {
        out->can[i] = (uint8_t)((can_value(out, i) ? QN_CAN_VALUE : 0) |
                                (can_range(out, i) ? QN_CAN_RANGE : 0));
        out->dims[i] = dims_of(out, i);
    }
    return has_memory;
}

void qn__ranges_release(qn_ranges *r)
{
    qn__free(r->can);
    qn__free(r->needs);
    qn__free(r->dims);
}

bool qn__ranges_can_prove(const qn_ranges *r, uint32_t site)
{
    uint32_t i = r->k->access[site].inst;
    for (int d = 0; d < qn__n_indices(r->k, i); d++)
        if (!(r->can[qn__args(r->k, i)[d]] & QN_CAN_RANGE))
            return false;
    return true;
}

bool qn__ranges_are_needed(const qn_facts *f)
{
    bool is_exact = true;
    for (int d = 0; d < f->n_dims; d++)
        is_exact = is_exact && qn__is_exact(f, d);
    for (int p = 0; p < f->n_params; p++)
        is_exact = is_exact && !(f->param[p].is_view && f->param[p].has_slots);
    return !is_exact;
}

/** Notes all that is needed for what is noted. */
static void spread_needs(qn_ranges *r)
{
    for (uint32_t i = r->k->n_insts - 1; i > 0; i--) {
        if ((r->needs[i] & QN_CAN_RANGE) && (r->can[i] & QN_CAN_VALUE))
            r->needs[i] |= QN_CAN_VALUE;
        bool has_args = r->k->inst[i].op != QN_I_DIM && r->needs[i];
        uint8_t what = r->needs[i] & QN_CAN_VALUE ? QN_CAN_VALUE : QN_CAN_RANGE;
        for (int j = 0; has_args && j < r->k->inst[i].n_args; j++)
            r->needs[qn__args(r->k, i)[j]] |= what;
    }
}

/* ---------------------------------------------------------------- names */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void qn__object_param(const qn_kernel *k, int p, qn_text *out)
{
    const char *name = k->param[p].name;
    if (name[0] >= '0' && name[0] <= '9')
        qn__text_add(out, "p");
    for (const char *at = name; *at; at++)
        qn__text_add(out, "%c", is_word(*at) ? *at : '_');
    qn__text_add(out, "_%d", p);
}

/* ---------------------------------------------------------------- values */

static void print_number(int64_t value, qn_text *out)
{
    if (value == INT64_MIN)
        qn__text_add(out, "INT64_MIN");
    else
        qn__text_add(out, "INT64_C(%" PRId64 ")", value);
}

static const char *name_of_op(const qn_inst *x)
{
    switch (qn__pure(x)) {
    case QN_OP_add:
        return "add";
    case QN_OP_sub:
    case QN_OP_neg:
        return "sub";
    case QN_OP_mul:
        return "mul";
    case QN_OP_min:
        return "min";
    default:
        return "max";
    }
}

/** "quern_add(v1, v2)", or with ranges; a negation is a difference from 0. */
static void print_op(const qn_ranges *r, uint32_t i, const char *kind, char letter,
                     const char *zero, qn_text *out)
{
    const qn_inst *x = &r->k->inst[i];
    const uint32_t *arg = qn__args(r->k, i);
    qn__text_add(out, "quern_%s%s(", kind, name_of_op(x));
    if (x->n_args == 1)
        qn__text_add(out, "%s, %c%" PRIu32 ")", zero, letter, arg[0]);
    else
        qn__text_add(out, "%c%" PRIu32 ", %c%" PRIu32 ")", letter, arg[0], letter, arg[1]);
}

static void print_value(const qn_ranges *r, uint32_t i, qn_text *out)
{
    const qn_inst *x = &r->k->inst[i];
    qn__text_add(out, "    const int64_t v%" PRIu32 " = ", i);
    if (x->op == QN_I_CONST)
        print_number((int64_t)x->imm, out);
    else if (x->op == QN_I_CAST)
        qn__text_add(out, "v%" PRIu32, qn__args(r->k, i)[0]);
    else if (x->op >= QN_I_PURE)
        print_op(r, i, "", 'v', "0", out);
    else {
        qn__text_add(out, x->op == QN_I_PARAM ? "(int64_t)" : "");
        qn__object_param(r->k, (int)x->imm, out);
        if (x->op != QN_I_PARAM)
            qn__text_add(out, "->dim[%d].%s", (int)x->sub,
                         x->op == QN_I_EXTENT ? "extent" : "lower");
    }
    qn__text_add(out, ";\n");
}

static void print_bound(const qn_fact *fact, uint32_t value, qn_text *out)
{
    if (fact->kind == QN_FACT_EXACT)
        print_number(fact->value, out);
    else
        qn__text_add(out, "v%" PRIu32, value);
}

bool qn__ranges_print_domain(qn_ranges *r, const qn_facts *f, qn_text *out, int *bad_dim)
{
    const qn_kernel *k = r->k;
    for (int d = 0; d < k->n_dims; d++) {
        const uint32_t *bound = qn__args(k, k->dim[d]);
        const qn_fact *fact[2] = {&f->begin[d], &f->end[d]};
        for (int i = 0; i < 2; i++) {
            if (fact[i]->kind == QN_FACT_EXACT)
                continue;
            *bad_dim = d;
            if (!(r->can[bound[i]] & QN_CAN_VALUE))
                return false;
            r->needs[bound[i]] |= QN_CAN_VALUE;
        }
    }
    for (uint32_t site = 0; qn__ranges_are_needed(f) && site < k->n_accesses; site++)
        for (int d = 0; f->proved[site] && d < qn__n_indices(k, k->access[site].inst); d++)
            r->needs[qn__args(k, k->access[site].inst)[d]] |= QN_CAN_RANGE;
    spread_needs(r);
    for (uint32_t i = 1; i < k->body; i++)
        if (r->needs[i] & QN_CAN_VALUE)
            print_value(r, i, out);
    for (int d = 0; d < k->n_dims; d++) {
        const uint32_t *bound = qn__args(k, k->dim[d]);
        qn__text_add(out, "    const int64_t begin%d = ", d);
        print_bound(&f->begin[d], bound[0], out);
        qn__text_add(out, ", end%d = quern_max(begin%d, ", d, d);
        print_bound(&f->end[d], bound[1], out);
        qn__text_add(out, ");\n");
    }
    return true;
}

/* ---------------------------------------------------------------- proofs */

static void print_range(const qn_ranges *r, uint32_t i, qn_text *out)
{
    const qn_inst *x = &r->k->inst[i];
    qn__text_add(out, "    const quern_range r%" PRIu32 " = ", i);
    if (r->can[i] & QN_CAN_VALUE)
        qn__text_add(out, "quern_range_make(v%" PRIu32 ", v%" PRIu32 ")", i, i);
    else if (x->op == QN_I_DIM)
        qn__text_add(out, "quern_range_make(begin%d, quern_sub(end%d, 1))", (int)x->imm,
                     (int)x->imm);
    else
        print_op(r, i, "range_", 'r', "quern_range_make(0, 0)", out);
    qn__text_add(out, ";\n");
}

/** An access in an empty reduce never happens. */
static void print_test(const qn_ranges *r, uint32_t i, int d, qn_text *out)
{
    const uint32_t value = qn__args(r->k, i)[d], dims = r->dims[value];
    int p = (int)r->k->inst[i].imm;
    qn__text_add(out, "    if (");
    for (int other = 0; other < r->k->n_dims; other++)
        if ((dims >> other & 1) && qn__is_reduction(r->k, other))
            qn__text_add(out, "begin%d < end%d && ", other, other);
    qn__text_add(out, "quern_is_outside(r%" PRIu32 ", &", value);
    qn__object_param(r->k, p, out);
    qn__text_add(
        out,
        "->dim[%d]))\n        return quern_fail(fault, QUERN_ERR_RANGE, facts[%d].name, %d);\n", d,
        qn__object_number_of_view(r->k, p), d);
}

/** Whether an access before has the same test, among those that are near. */
static bool is_tested(const qn_ranges *r, const qn_facts *f, uint32_t site, int d)
{
    enum { NEAR = 64 };
    const qn_kernel *k = r->k;
    uint32_t i = k->access[site].inst;
    for (uint32_t n = 1; n <= NEAR && n <= site; n++) {
        uint32_t other = k->access[site - n].inst;
        if (f->proved[site - n] && k->inst[other].imm == k->inst[i].imm &&
            qn__args(k, other)[d] == qn__args(k, i)[d])
            return true;
    }
    return false;
}

void qn__ranges_print_proof(qn_ranges *r, const qn_facts *f, qn_text *out)
{
    const qn_kernel *k = r->k;
    if (!qn__ranges_are_needed(f))
        return;
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (r->needs[i] & QN_CAN_RANGE)
            print_range(r, i, out);
    for (uint32_t site = 0; site < k->n_accesses; site++)
        for (int d = 0; f->proved[site] && d < qn__n_indices(k, k->access[site].inst); d++)
            if (!is_tested(r, f, site, d))
                print_test(r, k->access[site].inst, d, out);
}
