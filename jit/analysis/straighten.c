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
#include "jit/analysis/writer.h"

/* Loops of more iterations stay as they are: a group has no more places. */
enum { MOST_POINTS = 64 };

/* ---------------------------------------------------------------- copies */

static uint32_t yielded(qn_writer *w, uint32_t i, uint32_t value)
{
    const uint32_t reduce = w->k->inst[i].parent;
    const qn_inst *x = &w->k->inst[reduce], *y = &w->inst[value];
    if (!reduce || x->op != QN_I_REDUCE || x->sub != QN_COMBINE_SUM ||
        qn__dtype_class(x->type) != QN_CLASS_F || !(w->k->flags & QN_CONTRACT) ||
        y->op < QN_I_PURE || qn__pure(y) != QN_OP_mul || qn__contracted_product(w->k, reduce))
        return value;
    const uint64_t sign = UINT64_C(1) << (qn__dtype_width(x->type) - 1);
    const uint32_t *factor = w->operand + y->args;
    return qn__write_op(
        w, QN_OP_fma, x->type, 3,
        (uint32_t[]){factor[0], factor[1], qn__write_number(w, x->type, (int64_t)sign)});
}

/** A copy of instruction i, without its regions, if it has any. */
static void write_plain(qn_writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    uint32_t args[UINT8_MAX], quotient = w->n_dims > w->k->n_dims ? qn__write_quotient(w, i) : 0;
    if (quotient) {
        w->map[i] = quotient;
        return;
    }
    for (int n = 0; n < x->n_args; n++)
        args[n] = w->map[qn__args(w->k, i)[n]];
    if (w->guard && x->op == QN_I_LOAD)
        qn__guard_indices(w, i, args);
    if (x->op == QN_I_YIELD && x->n_args == 1)
        args[0] = yielded(w, i, args[0]);
    bool is_constant_load = x->op == QN_I_LOAD && !(w->written >> x->imm & 1) &&
                            !(w->k->param[x->imm].traits & QN_ATOMIC);
    bool is_value = qn__is_pure(x) || is_constant_load;
    w->map[i] = is_value ? qn__write_value(w, x, args, i) : qn__write(w, x, args, i);
}

/** A copy of instruction i with its regions. */
static void write_regions(qn_writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    uint32_t outer = w->parent, n_visible = w->n_visible;
    write_plain(w, i);
    uint32_t own = w->map[i];
    w->parent = own;
    qn__write_body(w, x->region[0], x->region[1], 0);
    w->inst[own].region[1] = w->n;
    w->n_visible = n_visible;
    qn__write_body(w, x->region[1], x->region[2], 0);
    w->inst[own].region[2] = w->n;
    w->n_visible = n_visible;
    w->parent = outer;
}

/* ---------------------------------------------------------------- reduces */

/** The number of points of a reduce that becomes straight code; 0: it stays. */
static int64_t points_of(qn_writer *w, uint32_t i)
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
static void set_point(qn_writer *w, uint32_t i, int64_t point)
{
    for (int n = w->k->inst[i].n_args; n-- > 0;) {
        int d = qn__dim_of(w->k, i, n);
        int64_t trips = qn__trips(w->f, d);
        w->map[w->k->dim[d]] = qn__write_number(w, QN_I64, w->f->begin[d].value + point % trips);
        point /= trips;
    }
}

/** Partials of the order rule, then their tree: `partial` are those that took a point. */
static uint32_t combined(qn_writer *w, uint32_t i, uint32_t *partial, int64_t n)
{
    const qn_inst *x = &w->k->inst[i];
    for (int64_t half = QN_PARTIALS / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half && l + half < n; l++)
            partial[l] = qn__write_op(w, qn__combine_op(x->sub), x->type, 2,
                                      (uint32_t[]){partial[l], partial[l + half]});
    return partial[0];
}

static void write_reduce(qn_writer *w, uint32_t i, int64_t points)
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
        qn__write_body(w, x->region[0], yield, is_first ? 0 : product);
        uint32_t value = w->map[qn__args(k, yield)[0]];
        if (is_first)
            partial[n++] = value;
        else if (product)
            partial[l] = qn__write_op(w, QN_OP_fma, x->type, 3,
                                      (uint32_t[]){w->map[qn__args(k, product)[0]],
                                                   w->map[qn__args(k, product)[1]], partial[l]});
        else
            partial[l] = qn__write_op(w, qn__combine_op(x->sub), x->type, 2,
                                      (uint32_t[]){partial[l], value});
    }
    w->map[i] = combined(w, i, partial, n);
}

/* ---------------------------------------------------------------- trips */

/** Whether a bound of a loop is known, by the facts or in the code that is straight by now. */
static bool is_known(const qn_writer *w, uint32_t bound, int64_t *n)
{
    return qn__is_written_number(w, w->map[bound], n) || qn__is_number(w->a, bound, n);
}

/** The number of trips of a `for` that becomes straight code; -1: it stays. */
static int64_t trips_of(const qn_writer *w, uint32_t i, int64_t *begin)
{
    const qn_inst *x = &w->k->inst[i];
    int64_t end;
    if (x->op != QN_I_FOR || !w->loops->has_trips || !is_known(w, qn__args(w->k, i)[0], begin) ||
        !is_known(w, qn__args(w->k, i)[1], &end))
        return -1;
    int64_t trips = qn__trips_between(*begin, end, (int64_t)x->imm);
    return trips <= QN_MOST_SHORT ? trips : -1;
}

static void write_trips(qn_writer *w, uint32_t i, int64_t begin, int64_t trips)
{
    enum { INDEX_AND_BOUNDS = 2 };
    const qn_kernel *k = w->k;
    const qn_inst *x = &k->inst[i];
    uint32_t carried[UINT8_MAX], yield = x->region[1] - 1, first = x->region[0];
    int n_carried = x->n_args - INDEX_AND_BOUNDS;
    for (int n = 0; n < n_carried; n++)
        carried[n] = w->map[qn__args(k, i)[INDEX_AND_BOUNDS + n]];
    for (int64_t trip = 0; trip < trips && !w->is_full; trip++) {
        w->map[first] = qn__write_number(w, QN_I64, begin + trip * (int64_t)x->imm);
        for (int n = 0; n < n_carried; n++)
            w->map[first + 1 + (uint32_t)n] = carried[n];
        qn__write_body(w, first + 1 + (uint32_t)n_carried, yield, 0);
        for (int n = 0; n < n_carried; n++)
            carried[n] = w->map[qn__args(k, yield)[n]];
    }
    uint32_t result = x->region[2];
    for (; result < k->n_insts && k->inst[result].op == QN_I_RESULT && qn__args(k, result)[0] == i;
         result++)
        w->map[result] = carried[k->inst[result].imm];
    w->map[i] = 0;
}

/** The trips of the loop that is a dimension now: the last one. */
static void write_loop(qn_writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    int64_t n;
    const uint32_t begin = qn__args(w->k, i)[0], term[2] = {w->map[begin], w->dim[w->n_dims - 1]};
    w->map[x->region[0]] =
        is_known(w, begin, &n) && n == 0 ? term[1] : qn__write_op(w, QN_OP_add, QN_I64, 2, term);
    qn__write_body(w, x->region[0] + 1, x->region[2] - 1, 0);
}

/** Store i of all trips, which the first one does. */
static void write_once(qn_writer *w, uint32_t i)
{
    const uint32_t zero = qn__write_number(w, QN_I64, 0), outer = w->parent,
                   n_visible = w->n_visible;
    const uint32_t first =
        qn__write_op(w, QN_OP_eq, QN_BOOL, 2, (uint32_t[]){w->dim[w->n_dims - 1], zero});
    const qn_inst branch = {.op = QN_I_IF, .n_args = 1}, yield = {.op = QN_I_YIELD};
    const uint32_t own = qn__write(w, &branch, &first, i);
    w->parent = own;
    write_plain(w, i);
    qn__write(w, &yield, NULL, i);
    w->inst[own].region[1] = w->inst[own].region[2] = w->n;
    w->n_visible = n_visible;
    w->parent = outer;
}

/* ---------------------------------------------------------------- the body */

void qn__write_body(qn_writer *w, uint32_t begin, uint32_t end, uint32_t without)
{
    const qn_kernel *k = w->k;
    for (uint32_t i = begin; i < end && !w->is_full; i = k->inst[i].region[2]) {
        const qn_inst *x = &k->inst[i];
        int64_t first = 0, points = x->op == QN_I_REDUCE ? points_of(w, i) : 0;
        int64_t trips = points || i == w->loops->loop ? -1 : trips_of(w, i, &first);
        bool is_done = x->op == QN_I_RESULT && w->map[qn__args(k, i)[0]] == 0;
        if (i == without || is_done) /* results of trips and sides are known */
            continue;
        if (points)
            write_reduce(w, i, points);
        else if (i == w->loops->loop)
            write_loop(w, i);
        else if (w->loops->loop && x->op == QN_I_STORE && !x->parent)
            write_once(w, i);
        else if (trips >= 0)
            write_trips(w, i, first, trips);
        else if (!qn__write_both(w, i) && qn__has_regions(x))
            write_regions(w, i);
        else if (!qn__has_regions(x) && !qn__write_known(w, i))
            write_plain(w, i);
    }
}

/** The body for all iterations of the parallel dimensions from d on. */
static void write_iterations(qn_writer *w, int d)
{
    const qn_kernel *k = w->k;
    while (d < k->n_dims && !(qn__is_parallel(k, d) && (w->loops->dims >> d & 1)))
        d++;
    if (d == k->n_dims) {
        qn__write_body(w, k->body, k->n_insts, 0);
        return;
    }
    for (int64_t i = w->f->begin[d].value; i < w->f->end[d].value && !w->is_full; i++) {
        w->map[k->dim[d]] = qn__write_number(w, QN_I64, i);
        write_iterations(w, d + 1);
    }
}

/** A new dimension counts the n iterations of a part. */
static void add_dim(qn_writer *w, int64_t n)
{
    const uint32_t range[2] = {qn__write_number(w, QN_I64, 0), qn__write_number(w, QN_I64, n)};
    const qn_inst x = {.op = QN_I_DIM,
                       .type = QN_I64,
                       .sub = QN_DIM_PARALLEL,
                       .n_args = 2,
                       .imm = (uint64_t)w->n_dims};
    w->trips[w->n_dims] = n;
    w->dim[w->n_dims++] = qn__write(w, &x, range, 0);
}

/** Values of the prologue are where they were; behind them stand new dimensions. */
static void begin(qn_writer *w)
{
    const qn_kernel *k = w->k;
    const int64_t *cut = w->loops->cut;
    for (uint32_t i = 0; i < k->body && i < QN_MOST_WRITTEN; i++) {
        w->map[i] = i;
        if (i > 0)
            qn__write(w, &k->inst[i], qn__args(k, i), i);
        else
            w->n = 1;
        if (i > 0 && qn__is_pure(&k->inst[i]))
            w->visible[w->n_visible++] = i;
    }
    w->n_dims = k->n_dims;
    for (int d = 0; d < k->n_dims; d++) {
        bool is_known = qn__is_exact(w->f, d) && (cut[d] || w->f->begin[d].value == 0);
        w->trips[d] = is_known ? qn__trips(w->f, d) / (cut[d] ? cut[d] : 1) : 0;
        if (cut[d])
            add_dim(w, cut[d]);
    }
    if (w->loops->loop)
        add_dim(w, qn__known_trips(w->a, w->loops->loop));
    w->body = w->n;
    for (int d = 0, inside = k->n_dims; d < k->n_dims; d++)
        if (cut[d]) {
            const qn_linear index = {.n = 2,
                                     .term = {k->dim[d], w->dim[inside++]},
                                     .coef = {cut[d], 1},
                                     .constant = w->f->begin[d].value};
            w->map[k->dim[d]] = qn__write_linear(w, &index);
        }
}

/* ---------------------------------------------------------------- kernel and facts */

/** The facts of a new dimension of n iterations. */
static void take_dim(const qn_writer *w, qn_kernel *k, qn_facts *f, int d, int64_t n)
{
    f->begin[d] = (qn_fact){.kind = QN_FACT_EXACT, .value = 0};
    f->end[d] = (qn_fact){.kind = QN_FACT_EXACT, .value = n};
    k->dim[d] = w->dim[d];
    f->part[d] = -1;
}

/** The facts of a dimension that has parts, and of the one inside of them. */
static void take_parts(const qn_writer *w, qn_kernel *k, qn_facts *f, int d, int inside)
{
    const int64_t n = w->loops->cut[d], parts = qn__trips(w->f, d) / n;
    if (f->begin[d].value)
        f->from[d] = f->begin[d].value;
    f->begin[d].value = 0;
    f->end[d].value = parts;
    if (f->part[d] >= 0)
        f->part[d] = n * (f->part[d] ? f->part[d] : 1);
    take_dim(w, k, f, inside, n);
}

/** Puts what was written into the kernel; false without memory. */
static bool take(qn_writer *w, qn_kernel *k, qn_facts *f)
{
    uint32_t n_accesses = 0;
    for (uint32_t i = w->body; i < w->n; i++)
        n_accesses += qn__is_access(&w->inst[i]);
    qn_access *access = qn__zalloc(n_accesses + 1, sizeof *access);
    uint8_t *proved = qn__zalloc(n_accesses + 1, 1);
    if (!access || !proved) {
        qn__free(access);
        qn__free(proved);
        return false;
    }
    n_accesses = 0;
    for (uint32_t i = w->body; i < w->n; i++)
        if (qn__is_access(&w->inst[i])) {
            uint32_t of = qn__site_of(k, w->origin[i]);
            uint8_t was = f->proved[of];
            proved[n_accesses] = was && !w->inst[i].parent ? QN_IN_RANGE : was;
            access[n_accesses] = (qn_access){.inst = i, .site = k->access[of].site};
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
    k->body = w->body;
    k->n_insts = w->n;
    k->n_operands = w->n_operands;
    k->n_accesses = f->n_accesses = n_accesses;
    for (int d = 0; d < k->n_dims; d++)
        if (w->loops->dims >> d & 1) {
            f->begin[d] = (qn_fact){.kind = QN_FACT_EXACT, .value = 0};
            f->end[d] = (qn_fact){.kind = QN_FACT_EXACT, .value = 1};
        }
    for (int d = 0, inside = k->n_dims; d < k->n_dims; d++)
        if (w->loops->cut[d])
            take_parts(w, k, f, d, inside++);
    if (w->loops->loop)
        take_dim(w, k, f, w->n_dims - 1, w->trips[w->n_dims - 1]);
    k->n_dims = f->n_dims = w->n_dims;
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

/** Whether a failure is reported of the straight code as of the loops: of an access, whose site is
 * kept, in an iteration, whose number needs the indices of all parallel dimensions in their order:
 * parts of one are counted by the last one. */
static bool is_reported_alike(const qn_kernel *k, const qn_facts *f, const qn_short_loops *loops)
{
    bool is_alike = true, is_cut = false;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        is_alike &= k->inst[i].op != QN_I_WHILE && qn__effect(&k->inst[i]) != QN_EFFECT_TELL;
    for (int d = 0; d < k->n_dims; d++) {
        is_alike &= qn__is_reduction(k, d) || (!is_cut && !(loops->dims >> d & 1));
        is_cut |= loops->cut[d] != 0;
    }
    return is_alike || !qn__may_fail(k, f);
}

bool qn__straighten(qn_kernel *k, qn_facts *f, const qn_short_loops *loops)
{
    enum { OPERANDS_EACH = 4 };
    qn_analysis a;
    qn_writer w = {
        .k = k, .f = f, .loops = loops, .most_operands = OPERANDS_EACH * QN_MOST_WRITTEN};
    bool is_done = false;
    if (k->n_insts > QN_MOST_WRITTEN || !is_reported_alike(k, f, loops) ||
        !qn__analyse(k, f, -1, 0, &a))
        return false;
    w.a = &a;
    w.written = qn__written_too(&a);
    uint64_t *may_meet = qn__zalloc((size_t)k->n_params + 1, sizeof *may_meet);
    for (int p = 0; p < k->n_params && may_meet; p++)
        may_meet[p] = views_met(&a, p);
    w.range = qn__zalloc(k->n_insts, sizeof *w.range);
    w.inst = qn__zalloc(QN_MOST_WRITTEN, sizeof *w.inst);
    w.operand = qn__zalloc(w.most_operands, sizeof *w.operand);
    w.origin = qn__zalloc(QN_MOST_WRITTEN, sizeof *w.origin);
    w.visible = qn__zalloc(QN_MOST_WRITTEN, sizeof *w.visible);
    w.map = qn__zalloc(k->n_insts, sizeof *w.map);
    if (may_meet && w.range && w.inst && w.operand && w.origin && w.visible && w.map) {
        qn__find_ranges(&a, w.range);
        begin(&w);
        write_iterations(&w, 0);
        is_done = !w.is_full && take(&w, k, f);
    }
    qn__analysis_release(&a);
    qn__free(w.inst);
    qn__free(w.operand);
    qn__free(w.origin);
    qn__free(w.visible);
    qn__free(w.map);
    qn__free(w.range);
    if (is_done) {
        f->is_straight = 1;
        for (int p = 0; p < k->n_params; p++)
            f->param[p].may_meet = may_meet[p];
        qn__share_loads(k, f);
    }
    qn__free(may_meet);
    return is_done;
}
