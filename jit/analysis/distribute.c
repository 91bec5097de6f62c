/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribute.c: which reduces are computed apart from the iterations that use them, and the two
 * kernels that a kernel becomes (distribute.h). Knows no LLVM.
 *
 * "May it be done?" (may_be_moved) is kept apart from "is it worth it?" (is_worth).
 * 1. A reduce that moves runs in another order against the rest: nothing it reads is written.
 * 2. It runs even where the rest has no iteration: nothing in it may fail.
 * 3. Both kernels keep the numbers of instructions, so that failures are told as ever.
 */
#include "jit/analysis/distribute.h"
#include "jit/analysis/analyse.h"

#include <string.h>

/** Operations saved below which two calls cost more: a call takes some ten of them. */
enum { LEAST_SAVED = 256 };

typedef struct distributor {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis a;
    uint64_t written;  /* bit p: what parameter p names may be written */
    uint32_t parallel; /* dimensions */
} distributor;

/* ---------------------------------------------------------------- may it be done? */

/** Whether a load finds the same element whenever it runs, and cannot fail. */
static bool is_constant_load(const distributor *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    bool is_changed = (s->written >> x->imm & 1) || (s->k->param[x->imm].traits & QN_ATOMIC);
    return !is_changed && !qn__is_checked(s->f, s->k, qn__site_of(s->k, i));
}

/** Whether an operand is there in the first kernel: it is pure, or a constant load, and so are its
 * own. *left: instructions that may still be looked at. */
static bool is_available(const distributor *s, uint32_t i, int *left)
{
    const qn_inst *x = &s->k->inst[i];
    if (i < s->k->body)
        return true;
    if (--*left < 0 || x->parent)
        return false;
    bool is_load = x->op == QN_I_LOAD && is_constant_load(s, i);
    if (x->op == QN_I_REDUCE) /* its own test decides */
        return true;
    if (!qn__is_pure(x) && !is_load)
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!is_available(s, qn__args(s->k, i)[n], left))
            return false;
    return true;
}

/** Whether reduce i, at the top, may be computed apart from the rest. */
static bool may_be_moved(const distributor *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    int left = 256;
    for (uint32_t m = x->region[0]; m < x->region[2]; m++) {
        const qn_inst *y = &s->k->inst[m];
        if (y->op == QN_I_WHILE || y->op == QN_I_ASSERT || y->op == QN_I_STORE ||
            y->op == QN_I_ATOMIC || (y->op == QN_I_LOAD && !is_constant_load(s, m)))
            return false;
        for (int n = 0; n < y->n_args; n++) {
            uint32_t from = qn__args(s->k, m)[n];
            bool is_inside = from > i && from < x->region[2];
            if (!is_inside && !is_available(s, from, &left))
                return false;
        }
    }
    return true;
}

/** Parallel dimensions that the points of reduce i depend on. */
static uint32_t dims_of(const distributor *s, uint32_t i)
{
    uint32_t dims = 0;
    for (uint32_t m = i; m < s->k->inst[i].region[2]; m++)
        dims |= s->a.value[m].deps;
    for (uint32_t m = s->k->inst[i].region[0]; m < s->k->inst[i].region[2]; m++)
        for (int n = 0; n < s->k->inst[m].n_args; n++)
            dims |= s->a.value[qn__args(s->k, m)[n]].deps;
    return dims & s->parallel;
}

/* ---------------------------------------------------------------- is it worth it? */

/** n x trips of dimension d; those that are not known count as many. */
static int64_t times(const qn_facts *f, int d, int64_t n)
{
    int64_t trips = qn__trips_or(f, d, LEAST_SAVED);
    return n > LEAST_SAVED || trips > LEAST_SAVED ? INT64_C(2) * LEAST_SAVED
                                                  : n * (trips > 0 ? trips : 0);
}

/** Whether a reduce that depends on `dims` only runs so often in vain that it is worth a kernel. */
static bool is_worth(const distributor *s, uint32_t dims, uint32_t reduce)
{
    int64_t iterations = 1, points = 1;
    for (int d = 0; d < s->k->n_dims; d++)
        if ((s->parallel & ~dims) >> d & 1)
            iterations = times(s->f, d, iterations);
    for (int n = 0; n < s->k->inst[reduce].n_args; n++)
        points = times(s->f, qn__dim_of(s->k, reduce, n), points);
    return iterations > 1 && (iterations - 1) * points >= LEAST_SAVED;
}

/* ---------------------------------------------------------------- the decision */

/** The reduces that depend on the fewest dimensions go first: what is left is divided again,
 * inside. */
static void choose(const distributor *s, qn_distribution *out)
{
    bool is_chosen = false;
    uint32_t dims = 0;
    FOR_TOP_REDUCES (s->k, i) {
        uint32_t own = dims_of(s, i);
        bool is_fewer = !is_chosen || __builtin_popcount(own) < __builtin_popcount(dims);
        if (is_fewer && may_be_moved(s, i) && is_worth(s, own, i)) {
            dims = own;
            is_chosen = true;
        }
    }
    if (!is_chosen)
        return;
    out->dims = dims;
    FOR_TOP_REDUCES (s->k, i) {
        bool is_one =
            !(dims_of(s, i) & ~dims) && out->n < QN_MOST_DISTRIBUTED && may_be_moved(s, i);
        if (is_one)
            out->reduce[out->n++] = i;
    }
}

static bool is_one_of(const qn_distribution *d, uint32_t i)
{
    for (int n = 0; n < d->n; n++)
        if (d->reduce[n] == i)
            return true;
    return false;
}

/** Marks what reduces of the first kernel use at the top; false if that is a reduce which is not
 * one of them. */
static bool mark_used(const qn_kernel *k, const qn_distribution *d, uint8_t *used)
{
    for (uint32_t i = k->n_insts; i-- > k->body;) {
        uint32_t top = i;
        while (k->inst[top].parent)
            top = k->inst[top].parent;
        bool is_kept = is_one_of(d, top) || (top == i && used[i]);
        if (is_kept && top == i && k->inst[i].op == QN_I_REDUCE && !is_one_of(d, i))
            return false;
        for (int n = 0; is_kept && n < k->inst[i].n_args; n++)
            used[qn__args(k, i)[n]] = 1;
    }
    return true;
}

/** Whether all reduces that those of *d use are among them. */
static bool is_closed(const qn_kernel *k, const qn_distribution *d)
{
    uint8_t *used = qn__zalloc(k->n_insts, 1);
    bool is = used && mark_used(k, d, used);
    qn__free(used);
    return is;
}

static bool is_kind_of_kernel(const qn_kernel *k, const qn_facts *f)
{
    if (qn__names_dims(&f->plan) || f->is_ordered || f->target->has_grid || qn__n_sequential(k) ||
        k->n_dims < 2 || k->n_params + QN_MOST_DISTRIBUTED > QN_MAX_PARAMS)
        return false;
    return !qn__has_insts(k, k->body, k->n_insts, 1u << QN_I_ATOMIC);
}

bool qn__distribution_of(const qn_kernel *k, const qn_facts *f, qn_distribution *out)
{
    distributor s = {.k = k, .f = f};
    memset(out, 0, sizeof *out);
    out->block_dim = -1;
    for (int d = 0; d < k->n_dims; d++)
        s.parallel |= qn__is_parallel(k, d) ? 1u << d : 0;
    if (!s.parallel || !is_kind_of_kernel(k, f) || qn__n_top_reduces(k) == 0)
        return false;
    if (qn__analyse(k, f, -1, 0, &s.a)) {
        s.written = qn__written_too(&s.a);
        choose(&s, out);
        qn__analysis_release(&s.a);
    }
    for (int d = 0; d < k->n_dims; d++)
        out->block_dim = out->dims >> d & 1 ? d : out->block_dim;
    return out->n > 0 && is_closed(k, out);
}

uint32_t qn__shared_dims(const qn_analysis *a, bool is_worth_a_team)
{
    const qn_kernel *k = a->k;
    distributor s = {.k = k, .f = a->f, .a = *a, .written = qn__written_too(a)};
    uint32_t dims = 0, several = 0;
    bool may = true, is_needed = false;
    for (int d = 0; d < k->n_dims; d++) {
        s.parallel |= qn__is_parallel(k, d) ? 1u << d : 0;
        several |= qn__trips(a->f, d) != 1 ? 1u << d : 0;
    }
    FOR_TOP_REDUCES (k, i) {
        may = may && may_be_moved(&s, i);
        dims |= may ? dims_of(&s, i) : 0;
    }
    FOR_TOP_REDUCES(k, i)
        is_needed = is_needed || (may && (!is_worth_a_team || is_worth(&s, dims, i)));
    return is_needed ? s.parallel & several & ~dims : 0;
}

/* ---------------------------------------------------------------- the two kernels */

static bool grow(void **list, size_t n, size_t more, size_t bytes)
{
    void *longer = qn__realloc(*list, (n + more) * bytes);
    if (!longer)
        return false;
    *list = longer;
    memset((char *)longer + n * bytes, 0, more * bytes);
    return true;
}

/** Takes accesses that were cleared out of the tables. */
static void forget_accesses(qn_kernel *k, qn_facts *f)
{
    uint32_t n = 0;
    for (uint32_t site = 0; site < k->n_accesses; site++)
        if (qn__is_access(&k->inst[k->access[site].inst])) {
            k->access[n] = k->access[site];
            f->proved[n++] = f->proved[site];
        }
    k->n_accesses = f->n_accesses = n;
}

/** Adds an access that cannot fail, in the order of the program; there is room. */
static void add_access(qn_kernel *k, qn_facts *f, uint32_t inst)
{
    uint32_t at = k->n_accesses;
    for (; at > 0 && k->access[at - 1].inst > inst; at--) {
        k->access[at] = k->access[at - 1];
        f->proved[at] = f->proved[at - 1];
    }
    k->access[at] = (qn_access){.inst = inst};
    f->proved[at] = 1;
    k->n_accesses = ++f->n_accesses;
}

static bool make_room(qn_kernel *k, qn_facts *f, size_t n)
{
    return grow((void **)&k->inst, k->n_insts, n, sizeof *k->inst) &&
           grow((void **)&k->operand, k->n_operands, 2 * n, sizeof *k->operand) &&
           grow((void **)&k->access, k->n_accesses, n, sizeof *k->access) &&
           grow((void **)&k->param, (size_t)k->n_params, n, sizeof *k->param) &&
           grow((void **)&f->param, (size_t)f->n_params, n, sizeof *f->param) &&
           grow((void **)&f->digit, (size_t)f->n_digits, n, sizeof *f->digit) &&
           grow((void **)&f->proved, f->n_accesses, n, 1);
}

/** A view for the results of reduce i. */
static bool add_view(qn_kernel *k, qn_facts *f, const qn_distribution *d, uint32_t i, bool is_read)
{
    int rank = d->block_dim >= 0;
    int64_t extent = rank ? qn__trips_or(f, d->block_dim, INT32_MAX) : 0;
    char *name = qn__strdup("result");
    if (!name)
        return false;
    k->param[k->n_params++] = (qn_kernel_parameter){.name = name,
                                                    .dtype = k->inst[i].type,
                                                    .rank = rank,
                                                    .is_read = is_read,
                                                    .is_written = !is_read};
    qn_param_fact *p = &f->param[f->n_params++];
    *p = (qn_param_fact){.slot = f->n_slots++, .is_view = 1, .checks = QN_CHECKS_NONE};
    if (rank) {
        const qn_fact whole = {.kind = QN_FACT_EXACT, .value = extent};
        p->dim[0] = (qn_dim_fact){.extent = whole, .first_digit = f->n_digits, .n_digits = 1};
        f->digit[f->n_digits++] =
            (qn_digit_fact){.extent = whole, .stride = {.kind = QN_FACT_EXACT, .value = 1}};
    }
    return true;
}

/** Both kernels walk block_dim in pieces, and have one index of the other dimensions in `dims`. */
static void cut_dims(qn_kernel *k, qn_facts *f, const qn_distribution *d)
{
    const int b = d->block_dim;
    for (int n = 0; n < k->n_dims; n++)
        if ((d->dims >> n & 1) && n != b)
            k->inst[k->dim[n]].sub = QN_DIM_SEQUENTIAL;
    if (b < 0)
        return;
    qn_fact *ends[2] = {&f->begin[b], &f->end[b]};
    for (int n = 0; n < 2; n++)
        if (ends[n]->kind == QN_FACT_EXACT)
            *ends[n] =
                (qn_fact){.kind = QN_FACT_DYNAMIC,
                          .slot = -1,
                          .multiple = 1,
                          .is_small = ends[n]->value >= -INT32_MAX && ends[n]->value <= INT32_MAX};
}

/** The indices of an access to the results. */
static uint32_t add_index(qn_kernel *k, const qn_distribution *d)
{
    uint32_t first = k->n_operands;
    if (d->block_dim >= 0)
        k->operand[k->n_operands++] = k->dim[d->block_dim];
    return first;
}

bool qn__distribute_first(qn_kernel *k, qn_facts *f, const qn_distribution *d)
{
    uint8_t *used = qn__zalloc(k->n_insts, 1);
    bool is_done = used && make_room(k, f, (size_t)d->n) && mark_used(k, d, used);
    for (uint32_t i = k->body, end; is_done && i < k->n_insts; i = end) {
        end = k->inst[i].region[2];
        bool is_kept =
            is_one_of(d, i) || qn__is_pure(&k->inst[i]) || (used[i] && k->inst[i].op == QN_I_LOAD);
        if (!is_kept)
            qn__drop(k, i, end);
    }
    qn__free(used);
    if (!is_done)
        return false;
    forget_accesses(k, f);
    for (int n = 0; n < d->n; n++) {
        uint32_t i = d->reduce[n], store = k->n_insts++, args = add_index(k, d);
        k->operand[k->n_operands++] = i;
        k->inst[store] = (qn_inst){.op = QN_I_STORE,
                                   .type = QN_VOID,
                                   .n_args = (uint8_t)(k->n_operands - args),
                                   .args = args,
                                   .region = {store + 1, store + 1, store + 1},
                                   .imm = (uint64_t)k->n_params};
        if (!add_view(k, f, d, i, false))
            return false;
        add_access(k, f, store);
    }
    for (int n = 0; n < k->n_dims; n++)
        if (qn__is_parallel(k, n) && !(d->dims >> n & 1)) { /* one index, which nothing uses */
            f->begin[n] = (qn_fact){.kind = QN_FACT_EXACT, .value = 0};
            f->end[n] = (qn_fact){.kind = QN_FACT_EXACT, .value = 1};
        }
    cut_dims(k, f, d);
    return true;
}

bool qn__distribute_rest(qn_kernel *k, qn_facts *f, const qn_distribution *d)
{
    if (!make_room(k, f, (size_t)d->n))
        return false;
    for (int n = 0; n < d->n; n++)
        qn__drop(k, d->reduce[n], k->inst[d->reduce[n]].region[2]);
    forget_accesses(k, f);
    for (int n = 0; n < d->n; n++) {
        uint32_t i = d->reduce[n], args = add_index(k, d);
        k->inst[i].op = QN_I_LOAD;
        k->inst[i].n_args = (uint8_t)(k->n_operands - args);
        k->inst[i].args = args;
        k->inst[i].imm = (uint64_t)k->n_params;
        if (!add_view(k, f, d, i, true))
            return false;
        add_access(k, f, i);
    }
    cut_dims(k, f, d);
    return true;
}
