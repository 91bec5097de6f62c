/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straighten.c: writes a kernel anew with short loops as straight code (straighten.h).
 *
 * 1. Values that are equal are one: pure instructions, and loads of what the kernel does not write.
 * 2. A reduce combines in the order of its rule, and its first value is taken as it is: combining
 *    with the identity keeps it.
 * 3. Nothing that is copied may fail: failures are told with indices that are gone.
 * 4. Which views may be one is a fact of the kernel before: views that overlap are the same
 *    elements accessed with one index tuple, and straight code has many tuples.
 * Kernel and facts in, kernel and facts out; knows no LLVM.
 */
#include "jit/analysis/straighten.h"

#include <string.h>

/* Loops of more iterations, and code of more instructions, stay as they are: a group has no more
 * places, and code takes time to compile. */
enum { MOST_TRIPS = QN_MOST_PLACES, MOST_POINTS = 64, MOST_INSTS = 512 };

typedef struct writer {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_short_loops *loops;
    uint64_t written;  /* bit p: what parameter p names may be written */
    qn_inst *inst;     /* [MOST_INSTS] */
    uint32_t *operand; /* [most_operands] */
    uint32_t *origin;  /* [MOST_INSTS]: the instruction that it is a copy of */
    uint32_t *visible; /* [n_visible]: values that can be used here */
    uint32_t *map;     /* [k->n_insts]: what stands for an instruction now */
    uint32_t n, n_operands, most_operands, n_visible;
    uint32_t parent; /* of what is written */
    bool is_full;
} writer;

/* ---------------------------------------------------------------- instructions */

static uint32_t add(writer *w, const qn_inst *x, const uint32_t *args, uint32_t origin)
{
    if (w->n == MOST_INSTS || w->n_operands + x->n_args > w->most_operands) {
        w->is_full = true;
        return w->n - 1;
    }
    uint32_t i = w->n++;
    w->inst[i] = *x;
    w->inst[i].args = w->n_operands;
    w->inst[i].parent = w->parent;
    w->inst[i].region[0] = w->inst[i].region[1] = w->inst[i].region[2] = i + 1;
    w->origin[i] = origin;
    for (int n = 0; n < x->n_args; n++)
        w->operand[w->n_operands++] = args[n];
    return i;
}

static bool is_equal(const writer *w, uint32_t i, const qn_inst *x, const uint32_t *args)
{
    const qn_inst *y = &w->inst[i];
    return x->op == y->op && x->type == y->type && x->sub == y->sub && x->imm == y->imm &&
           x->n_args == y->n_args &&
           (x->n_args == 0 || memcmp(w->operand + y->args, args, x->n_args * sizeof *args) == 0);
}

/** A value that an earlier instruction may have. */
static uint32_t add_value(writer *w, const qn_inst *x, const uint32_t *args, uint32_t origin)
{
    for (uint32_t n = w->n_visible; n-- > 0;)
        if (is_equal(w, w->visible[n], x, args))
            return w->visible[n];
    uint32_t i = add(w, x, args, origin);
    if (!w->is_full)
        w->visible[w->n_visible++] = i;
    return i;
}

static uint32_t add_index(writer *w, int64_t value)
{
    return add_value(w, &(qn_inst){.op = QN_I_CONST, .type = QN_I64, .imm = (uint64_t)value}, NULL,
                     0);
}

static uint32_t add_op(writer *w, int op, int type, int n, const uint32_t *args)
{
    const qn_inst x = {
        .op = (uint8_t)(QN_I_PURE + op), .type = (uint8_t)type, .n_args = (uint8_t)n};
    return add_value(w, &x, args, 0);
}

static void write_body(writer *w, uint32_t begin, uint32_t end, uint32_t without);

/** A copy of instruction i, without its regions, if it has any. */
static void write_plain(writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    uint32_t args[UINT8_MAX];
    for (int n = 0; n < x->n_args; n++)
        args[n] = w->map[qn__args(w->k, i)[n]];
    bool is_constant_load = x->op == QN_I_LOAD && !(w->written >> x->imm & 1) &&
                            !(w->k->param[x->imm].traits & QN_ATOMIC);
    bool is_value = qn__is_pure(x) || is_constant_load;
    w->map[i] = is_value ? add_value(w, x, args, i) : add(w, x, args, i);
}

/** A copy of instruction i with its regions. */
static void write_regions(writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    uint32_t outer = w->parent, n_visible = w->n_visible;
    write_plain(w, i);
    uint32_t own = w->map[i];
    w->parent = own;
    write_body(w, x->region[0], x->region[1], 0);
    w->inst[own].region[1] = w->n;
    w->n_visible = n_visible;
    write_body(w, x->region[1], x->region[2], 0);
    w->inst[own].region[2] = w->n;
    w->n_visible = n_visible;
    w->parent = outer;
}

/* ---------------------------------------------------------------- reduces */

/** The number of points of a reduce that becomes straight code; 0: it stays. */
static int64_t points_of(writer *w, uint32_t i)
{
    int64_t points = 1;
    for (int n = 0; n < w->k->inst[i].n_args && points <= MOST_POINTS; n++) {
        int d = qn__dim_of(w->k, i, n);
        if (!(w->loops->dims >> d & 1))
            return 0;
        points *= qn__trips(w->f, d);
    }
    w->is_full |= points > MOST_POINTS;
    return points;
}

/** Sets the index of dimensions of a reduce for one of its points. */
static void set_point(writer *w, uint32_t i, int64_t point)
{
    for (int n = w->k->inst[i].n_args; n-- > 0;) {
        int d = qn__dim_of(w->k, i, n);
        int64_t trips = qn__trips(w->f, d);
        w->map[w->k->dim[d]] = add_index(w, w->f->begin[d].value + point % trips);
        point /= trips;
    }
}

/** Partials of the order rule, then their tree: `partial` are those that took a point. */
static uint32_t combined(writer *w, uint32_t i, uint32_t *partial, int64_t n)
{
    const qn_inst *x = &w->k->inst[i];
    for (int64_t half = QN_PARTIALS / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half && l + half < n; l++)
            partial[l] = add_op(w, qn__combine_op(x->sub), x->type, 2,
                                (uint32_t[]){partial[l], partial[l + half]});
    return partial[0];
}

static void write_reduce(writer *w, uint32_t i, int64_t points)
{
    const qn_kernel *k = w->k;
    const qn_inst *x = &k->inst[i];
    uint32_t yield = x->region[1] - 1, product = qn__contracted_product(k, i);
    uint32_t partial[QN_PARTIALS];
    bool is_striped = qn__order_rule(k, i) == QN_STRIPED;
    int64_t n = 0;
    for (int64_t point = 0; point < points && !w->is_full; point++) {
        int64_t l = is_striped ? point % QN_PARTIALS : 0;
        bool is_first = l == n;
        set_point(w, i, point);
        write_body(w, x->region[0], yield, is_first ? 0 : product);
        uint32_t value = w->map[qn__args(k, yield)[0]];
        if (is_first)
            partial[n++] = value;
        else if (product)
            partial[l] = add_op(w, QN_OP_fma, x->type, 3,
                                (uint32_t[]){w->map[qn__args(k, product)[0]],
                                             w->map[qn__args(k, product)[1]], partial[l]});
        else
            partial[l] =
                add_op(w, qn__combine_op(x->sub), x->type, 2, (uint32_t[]){partial[l], value});
    }
    w->map[i] = combined(w, i, partial, n);
}

/* ---------------------------------------------------------------- trips */

static bool is_number(const writer *w, uint32_t i, int64_t *value)
{
    *value = (int64_t)w->inst[i].imm;
    return w->inst[i].op == QN_I_CONST;
}

/** The number of trips of a `for` that becomes straight code; -1: it stays. */
static int64_t trips_of(const writer *w, uint32_t i, int64_t *begin)
{
    const qn_inst *x = &w->k->inst[i];
    int64_t end, length, step = (int64_t)x->imm;
    if (x->op != QN_I_FOR || !w->loops->has_trips ||
        !is_number(w, w->map[qn__args(w->k, i)[0]], begin) ||
        !is_number(w, w->map[qn__args(w->k, i)[1]], &end) ||
        __builtin_sub_overflow(end, *begin, &length) || step < 1)
        return -1;
    int64_t trips = length > 0 ? (length - 1) / step + 1 : 0;
    return trips <= MOST_TRIPS ? trips : -1;
}

static void write_trips(writer *w, uint32_t i, int64_t begin, int64_t trips)
{
    enum { INDEX_AND_BOUNDS = 2 };
    const qn_kernel *k = w->k;
    const qn_inst *x = &k->inst[i];
    uint32_t carried[UINT8_MAX], yield = x->region[1] - 1, first = x->region[0];
    int n_carried = x->n_args - INDEX_AND_BOUNDS;
    for (int n = 0; n < n_carried; n++)
        carried[n] = w->map[qn__args(k, i)[INDEX_AND_BOUNDS + n]];
    for (int64_t trip = 0; trip < trips && !w->is_full; trip++) {
        w->map[first] = add_index(w, begin + trip * (int64_t)x->imm);
        for (int n = 0; n < n_carried; n++)
            w->map[first + 1 + (uint32_t)n] = carried[n];
        write_body(w, first + 1 + (uint32_t)n_carried, yield, 0);
        for (int n = 0; n < n_carried; n++)
            carried[n] = w->map[qn__args(k, yield)[n]];
    }
    uint32_t result = x->region[2];
    for (; result < k->n_insts && k->inst[result].op == QN_I_RESULT && qn__args(k, result)[0] == i;
         result++)
        w->map[result] = carried[k->inst[result].imm];
    w->map[i] = 0;
}

/* ---------------------------------------------------------------- the body */

/** Instructions from begin up to end, but for `without`. */
static void write_body(writer *w, uint32_t begin, uint32_t end, uint32_t without)
{
    const qn_kernel *k = w->k;
    for (uint32_t i = begin; i < end && !w->is_full; i = k->inst[i].region[2]) {
        const qn_inst *x = &k->inst[i];
        int64_t first = 0, points = x->op == QN_I_REDUCE ? points_of(w, i) : 0;
        int64_t trips = points ? -1 : trips_of(w, i, &first);
        bool is_done = x->op == QN_I_RESULT && w->map[qn__args(k, i)[0]] == 0;
        if (i == without || is_done) /* results of trips are known */
            continue;
        if (points)
            write_reduce(w, i, points);
        else if (trips >= 0)
            write_trips(w, i, first, trips);
        else if (qn__has_regions(x))
            write_regions(w, i);
        else
            write_plain(w, i);
    }
}

/** The body for all iterations of the parallel dimensions from d on. */
static void write_iterations(writer *w, int d)
{
    const qn_kernel *k = w->k;
    while (d < k->n_dims && !(qn__is_parallel(k, d) && (w->loops->dims >> d & 1)))
        d++;
    if (d == k->n_dims) {
        write_body(w, k->body, k->n_insts, 0);
        return;
    }
    for (int64_t i = w->f->begin[d].value; i < w->f->end[d].value && !w->is_full; i++) {
        w->map[k->dim[d]] = add_index(w, i);
        write_iterations(w, d + 1);
    }
}

/** Values of the prologue are where they were. */
static void begin(writer *w)
{
    for (uint32_t i = 0; i < w->k->body && i < MOST_INSTS; i++) {
        w->map[i] = i;
        if (i > 0)
            add(w, &w->k->inst[i], qn__args(w->k, i), i);
        else
            w->n = 1;
        if (i > 0 && qn__is_pure(&w->k->inst[i]))
            w->visible[w->n_visible++] = i;
    }
}

/* ---------------------------------------------------------------- kernel and facts */

/** Puts what was written into the kernel; false without memory. */
static bool take(writer *w, qn_kernel *k, qn_facts *f)
{
    uint32_t n_accesses = 0;
    for (uint32_t i = k->body; i < w->n; i++)
        n_accesses += qn__is_access(&w->inst[i]);
    qn_access *access = qn__zalloc(n_accesses + 1, sizeof *access);
    uint8_t *proved = qn__zalloc(n_accesses + 1, 1);
    if (!access || !proved) {
        qn__free(access);
        qn__free(proved);
        return false;
    }
    n_accesses = 0;
    for (uint32_t i = k->body; i < w->n; i++)
        if (qn__is_access(&w->inst[i])) {
            proved[n_accesses] = f->proved[qn__site_of(k, w->origin[i])];
            access[n_accesses] = (qn_access){.inst = i, .site = n_accesses};
            n_accesses++;
        }
    qn__free(k->inst);
    qn__free(k->operand);
    qn__free(k->access);
    qn__free(f->proved);
    k->inst = w->inst;
    k->operand = w->operand;
    k->access = access;
    f->proved = proved;
    w->inst = NULL;
    w->operand = NULL;
    k->n_insts = w->n;
    k->n_operands = w->n_operands;
    k->n_accesses = f->n_accesses = n_accesses;
    for (int d = 0; d < k->n_dims; d++)
        if (w->loops->dims >> d & 1) {
            f->begin[d] = (qn_fact){.kind = QN_FACT_EXACT, .value = 0};
            f->end[d] = (qn_fact){.kind = QN_FACT_EXACT, .value = 1};
        }
    return true;
}

/** Bit q: the views of parameters p and q may be one. Straight code accesses elements of one view
 * with several index tuples, so this must be found before. */
static uint64_t views_met(const qn_analysis *a, int p)
{
    const qn_kernel *k = a->k;
    uint64_t met = 0;
    for (int q = 0; q < k->n_params && k->param[p].rank >= 0; q++)
        if (k->param[q].rank >= 0 && qn__may_meet(a, (uint64_t)p, (uint64_t)q))
            met |= UINT64_C(1) << q;
    return met;
}

bool qn__straighten(qn_kernel *k, qn_facts *f, const qn_short_loops *loops)
{
    enum { OPERANDS_EACH = 4 };
    qn_analysis a;
    writer w = {.k = k, .f = f, .loops = loops, .most_operands = OPERANDS_EACH * MOST_INSTS};
    bool is_done = false;
    if (k->n_insts > MOST_INSTS || qn__may_fail(k, f) || !qn__analyse(k, f, -1, 0, &a))
        return false;
    w.written = qn__written_too(&a);
    uint64_t *may_meet = qn__zalloc((size_t)k->n_params + 1, sizeof *may_meet);
    for (int p = 0; p < k->n_params && may_meet; p++)
        may_meet[p] = views_met(&a, p);
    qn__analysis_release(&a);
    w.inst = qn__zalloc(MOST_INSTS, sizeof *w.inst);
    w.operand = qn__zalloc(w.most_operands, sizeof *w.operand);
    w.origin = qn__zalloc(MOST_INSTS, sizeof *w.origin);
    w.visible = qn__zalloc(MOST_INSTS, sizeof *w.visible);
    w.map = qn__zalloc(k->n_insts, sizeof *w.map);
    if (may_meet && w.inst && w.operand && w.origin && w.visible && w.map) {
        begin(&w);
        write_iterations(&w, 0);
        is_done = !w.is_full && take(&w, k, f);
    }
    qn__free(w.inst);
    qn__free(w.operand);
    qn__free(w.origin);
    qn__free(w.visible);
    qn__free(w.map);
    if (is_done) {
        f->is_straight = 1;
        for (int p = 0; p < k->n_params; p++)
            f->param[p].may_meet = may_meet[p];
        qn__share_loads(k, f);
    }
    qn__free(may_meet);
    return is_done;
}

/* ---------------------------------------------------------------- which loops */

static bool is_short(const qn_facts *f, int d)
{
    return qn__trips(f, d) >= 2 && qn__trips(f, d) <= MOST_TRIPS;
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
            uint32_t own = 0;
            for (int n = 0; k->inst[i].op == QN_I_REDUCE && n < k->inst[i].n_args; n++)
                own |= 1u << qn__dim_of(k, i, n);
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

bool qn__has_short_trips(const qn_analysis *a)
{
    const qn_kernel *k = a->k;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_affine *x = a->affine + (k->inst[i].op == QN_I_FOR ? qn__args(k, i)[0] : 0);
        const qn_affine *y = a->affine + (k->inst[i].op == QN_I_FOR ? qn__args(k, i)[1] : 0);
        int64_t length;
        if (k->inst[i].op == QN_I_FOR && k->inst[qn__args(k, i)[0]].op == QN_I_CONST &&
            k->inst[qn__args(k, i)[1]].op == QN_I_CONST &&
            !__builtin_sub_overflow(y->constant, x->constant, &length) &&
            length <= MOST_TRIPS * (int64_t)k->inst[i].imm)
            return true;
    }
    return false;
}
