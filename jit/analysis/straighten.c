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
#include "jit/analysis/partition.h"
#include "jit/analysis/straighten.h"

#include <string.h>

/* Loops of more iterations, and code of more instructions, stay as they are: a group has no more
 * places, and code takes time to compile. */
enum { MOST_POINTS = 64, MOST_INSTS = 512 };

typedef struct writer {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_short_loops *loops;
    const qn_analysis *a; /* of the kernel before */
    uint64_t written;  /* bit p: what parameter p names may be written */
    qn_interval *range[2]; /* [k->n_insts]: of all iterations, or of each of two parts */
    qn_inst *inst;     /* [MOST_INSTS] */
    uint32_t *operand; /* [most_operands] */
    uint32_t *origin;  /* [MOST_INSTS]: the instruction that it is a copy of */
    uint32_t *visible; /* [n_visible]: values that can be used here */
    uint32_t *map;     /* [k->n_insts]: what stands for an instruction now */
    uint32_t n, n_operands, most_operands, n_visible;
    uint32_t parent; /* of what is written */
    uint32_t guard;  /* the condition under which the original loads here; 0: always */
    uint32_t body;   /* where it begins in what is written */
    int n_dims;
    int parts;       /* the dimension that has two parts */
    uint32_t dim[QN_MAX_RANK];  /* in what is written */
    int64_t trips[QN_MAX_RANK]; /* of those that begin at 0; 0: not known, or of another one */
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

static uint32_t add_number(writer *w, int type, int64_t value)
{
    const qn_inst x = {.op = QN_I_CONST, .type = (uint8_t)type, .imm = (uint64_t)value};
    return add_value(w, &x, NULL, 0);
}

static uint32_t add_op(writer *w, int op, int type, int n, const uint32_t *args)
{
    const qn_inst x = {
        .op = (uint8_t)(QN_I_PURE + op), .type = (uint8_t)type, .n_args = (uint8_t)n};
    return add_value(w, &x, args, 0);
}

static void write_body(writer *w, uint32_t begin, uint32_t end, uint32_t without);

/* ---------------------------------------------------------------- quotients */

enum { MOST_TERMS = 8, MOST_DEPTH = 8, MOST_INDEX = 1 << 30 };

/** constant + sum of coef[n] x term[n], of which only the constant may be negative. */
typedef struct linear {
    int n;
    uint32_t term[MOST_TERMS];
    int64_t coef[MOST_TERMS], constant;
} linear;

static bool is_number(const writer *w, uint32_t i, int64_t *value)
{
    *value = (int64_t)w->inst[i].imm;
    return w->inst[i].op == QN_I_CONST;
}

/** The greatest number that a value may be; -1: it may be negative, or that is not known. */
static int64_t most_of(const writer *w, uint32_t i, int depth)
{
    const qn_inst *x = &w->inst[i];
    int64_t n, most = -1, other;
    qn_quotient q;
    if (is_number(w, i, &n))
        most = n;
    else if (x->op == QN_I_DIM)
        most = w->trips[x->imm] - 1;
    else if (depth > 0 && qn__quotient(w->inst, w->operand, i, &q)) {
        most = most_of(w, q.of, depth - 1);
        most = most < 0 ? -1 : !q.is_rest ? most / q.by : most < q.by ? most : q.by - 1;
    } else if (depth > 0 && x->op >= QN_I_PURE && x->type == QN_I64 &&
               (qn__pure(x) == QN_OP_add || qn__pure(x) == QN_OP_mul)) {
        most = most_of(w, w->operand[x->args], depth - 1);
        other = most_of(w, w->operand[x->args + 1], depth - 1);
        most = most < 0 || other < 0 ? -1 : qn__pure(x) == QN_OP_add ? most + other : most * other;
    }
    return most > MOST_INDEX ? -1 : most;
}

/** Adds scale x value i to a sum; false: a term may be negative, or there are too many. */
static bool add_linear(const writer *w, uint32_t i, int64_t scale, int depth, linear *out)
{
    const qn_inst *x = &w->inst[i];
    const uint32_t *args = w->operand + x->args;
    int op = x->op >= QN_I_PURE && x->type == QN_I64 && depth > 0 ? qn__pure(x) : -1;
    int64_t n, most = most_of(w, i, MOST_DEPTH);
    if (is_number(w, i, &n)) {
        bool is_small = n >= -MOST_INDEX && n <= MOST_INDEX;
        out->constant += is_small ? scale * n : 0;
        return is_small && out->constant >= -MOST_INDEX && out->constant <= MOST_INDEX;
    }
    if (op == QN_OP_add || (op == QN_OP_sub && is_number(w, args[1], &n)))
        return add_linear(w, args[0], scale, depth - 1, out) &&
               add_linear(w, args[1], op == QN_OP_add ? scale : -scale, depth - 1, out);
    if (op == QN_OP_mul && (is_number(w, args[0], &n) || is_number(w, args[1], &n)))
        return n >= 1 && n <= MOST_INDEX / scale &&
               add_linear(w, args[w->inst[args[0]].op == QN_I_CONST], scale * n, depth - 1, out);
    if (most < 0 || most > MOST_INDEX / scale)
        return false;
    int t = 0;
    while (t < out->n && out->term[t] != i)
        t++;
    if (t == MOST_TERMS)
        return false;
    if (t == out->n) {
        out->term[out->n] = i;
        out->coef[out->n++] = 0;
    }
    out->coef[t] += scale;
    return true;
}

static uint32_t write_linear(writer *w, const linear *x)
{
    uint32_t sum = 0;
    for (int t = 0; t < x->n; t++) {
        uint32_t term = x->term[t];
        if (x->coef[t] != 1)
            term = add_op(w, QN_OP_mul, QN_I64, 2,
                          (uint32_t[]){term, add_number(w, QN_I64, x->coef[t])});
        sum = sum ? add_op(w, QN_OP_add, QN_I64, 2, (uint32_t[]){sum, term}) : term;
    }
    if (!sum)
        return add_number(w, QN_I64, x->constant);
    if (!x->constant)
        return sum;
    return add_op(w, QN_OP_add, QN_I64, 2,
                  (uint32_t[]){sum, add_number(w, QN_I64, x->constant)});
}

/** A quotient or its rest without the terms that the divisor divides; 0: there are none. */
static uint32_t write_quotient(writer *w, uint32_t i)
{
    const qn_kernel *k = w->k;
    linear all = {0}, whole = {0}, rest = {0};
    int64_t most;
    qn_quotient q;
    if (!qn__quotient(k->inst, k->operand, i, &q) ||
        !add_linear(w, w->map[q.of], 1, MOST_DEPTH, &all) || all.constant < 0)
        return 0;
    whole.constant = all.constant / q.by;
    most = rest.constant = all.constant % q.by;
    for (int t = 0; t < all.n; t++) {
        bool is_whole = all.coef[t] % q.by == 0;
        linear *to = is_whole ? &whole : &rest;
        to->term[to->n] = all.term[t];
        to->coef[to->n++] = is_whole ? all.coef[t] / q.by : all.coef[t];
        most += is_whole ? 0 : all.coef[t] * most_of(w, all.term[t], MOST_DEPTH);
    }
    if (!whole.n && !whole.constant && most >= q.by)
        return 0;
    uint32_t by = add_number(w, QN_I64, q.by), left = write_linear(w, &rest);
    if (q.is_rest)
        return most < q.by ? left : add_op(w, QN_OP_rem, QN_I64, 2, (uint32_t[]){left, by});
    uint32_t own = write_linear(w, &whole);
    if (most < q.by)
        return own;
    return add_op(w, QN_OP_add, QN_I64, 2,
                  (uint32_t[]){own, add_op(w, QN_OP_div, QN_I64, 2, (uint32_t[]){left, by})});
}

/* ---------------------------------------------------------------- what ranges tell */

/** What an op on truth values is where one of them is known. */
static qn_form truth_of(const writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    const uint32_t *arg = qn__args(w->k, i);
    const int op = x->op >= QN_I_PURE ? qn__pure(x) : -1;
    int64_t is_true;
    if (op == QN_OP_select && is_number(w, w->map[arg[0]], &is_true))
        return (qn_form){.kind = is_true ? QN_FORM_SECOND : QN_FORM_THIRD};
    if (op == QN_OP_not && x->type == QN_BOOL && is_number(w, w->map[arg[0]], &is_true))
        return (qn_form){QN_FORM_NUMBER, !is_true};
    for (int n = 0; n < 2 && x->type == QN_BOOL && (op == QN_OP_and || op == QN_OP_or); n++)
        if (is_number(w, w->map[arg[n]], &is_true))
            return is_true == (op == QN_OP_or)
                       ? (qn_form){QN_FORM_NUMBER, is_true}
                       : (qn_form){.kind = n ? QN_FORM_FIRST : QN_FORM_SECOND};
    return (qn_form){.kind = QN_FORM_OWN};
}

/** A number that is another one in the second part. */
static uint32_t write_number(writer *w, int type, int64_t first, int64_t second)
{
    if (first == second)
        return add_number(w, type, first);
    const uint32_t part = w->k->dim[w->parts];
    if (type == QN_BOOL)
        return add_op(w, second ? QN_OP_ne : QN_OP_eq, QN_BOOL, 2,
                      (uint32_t[]){part, add_number(w, QN_I64, 0)});
    const linear x = {
        .n = 1, .term = {part}, .coef = {qn__wrap_sub(second, first)}, .constant = first};
    return write_linear(w, &x);
}

/** Of a pure instruction that is a number or one of its operands, but for a number. */
static bool write_known(writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    const uint32_t *arg = qn__args(w->k, i);
    qn_form form = qn__form_of(w->k, w->range[0], i), other = qn__form_of(w->k, w->range[1], i);
    bool is_one = form.number == other.number || x->type == QN_I64 || x->type == QN_BOOL;
    if (form.kind != other.kind || !is_one || form.kind == QN_FORM_OWN)
        form = other = truth_of(w, i);
    if (form.kind == QN_FORM_OWN)
        return false;
    if (form.kind == QN_FORM_NUMBER)
        w->map[i] = write_number(w, x->type, form.number, other.number);
    else
        w->map[i] = w->map[arg[form.kind - QN_FORM_FIRST]];
    if (form.kind == QN_FORM_FIRST && (form.number || other.number))
        w->map[i] =
            add_op(w, QN_OP_sub, x->type, 2,
                   (uint32_t[]){w->map[i], write_number(w, x->type, form.number, other.number)});
    return true;
}

/** The side of an `if` that is taken where its condition is a number; false: it is none. */
static bool write_side(writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    int64_t is_true;
    if (x->op != QN_I_IF || !is_number(w, w->map[qn__args(w->k, i)[0]], &is_true))
        return false;
    uint32_t begin = x->region[is_true ? 0 : 1], end = x->region[is_true ? 1 : 2];
    if (begin < end)
        write_body(w, begin, end - 1, 0);
    for (uint32_t r = x->region[2]; r < w->k->n_insts && w->k->inst[r].op == QN_I_RESULT &&
                                    qn__args(w->k, r)[0] == i;
         r++)
        w->map[r] = w->map[qn__args(w->k, end - 1)[w->k->inst[r].imm]];
    w->map[i] = 0;
    return true;
}

/** The condition of an `if` inside of that of another one. */
static uint32_t guarded(writer *w, uint32_t guard, uint32_t condition)
{
    return guard ? add_op(w, QN_OP_and, QN_BOOL, 2, (uint32_t[]){guard, condition}) : condition;
}

/** Both sides of an `if`, of whose results one is chosen; false: it stays. */
static bool write_both(writer *w, uint32_t i)
{
    const qn_kernel *k = w->k;
    const qn_inst *x = &k->inst[i];
    if (!w->loops->has_sides || !qn__may_compute_both(k, w->f, i))
        return false;
    const uint32_t outer = w->guard, condition = w->map[qn__args(k, i)[0]];
    for (int side = 0; side < 2; side++) {
        uint32_t holds = condition;
        if (side)
            holds = add_op(w, QN_OP_not, QN_BOOL, 1, &condition);
        w->guard = guarded(w, outer, holds);
        write_body(w, x->region[side], x->region[side + 1] - 1, 0);
    }
    w->guard = outer;
    for (uint32_t r = x->region[2];
         r < k->n_insts && k->inst[r].op == QN_I_RESULT && qn__args(k, r)[0] == i; r++) {
        uint32_t value[3] = {condition};
        for (int side = 0; side < 2; side++)
            value[side + 1] = w->map[qn__args(k, x->region[side + 1] - 1)[k->inst[r].imm]];
        w->map[r] = add_op(w, QN_OP_select, k->inst[r].type, 3, value);
    }
    w->map[i] = 0;
    return true;
}

/* ---------------------------------------------------------------- copies */

/** Whether load i is one of several iterations: it moves no more memory where one of them needs
 * none. */
static bool is_for_several(const writer *w, uint32_t i)
{
    for (int d = 0; d < w->k->n_dims; d++)
        if (qn__is_parallel(w->k, d) && qn__trips(w->f, d) != 1 &&
            !(w->a->value[i].deps >> d & 1))
            return true;
    return false;
}

/** The indices of load i, whose place one of the view's elements takes where the load would not be
 * made: in the dimensions that it might leave then, or in the last where the load
 * would move memory in vain. */
static void guard_indices(writer *w, uint32_t i, uint32_t *args)
{
    const qn_inst *x = &w->k->inst[i];
    const int n = qn__n_indices(w->k, i);
    bool has_one = is_for_several(w, i);
    for (int r = 0; r < n; r++) {
        const qn_dim_fact *dim = &w->f->param[x->imm].dim[r];
        bool is_inside = true;
        for (int part = 0; part < 2; part++) {
            const qn_interval at = w->range[part][qn__args(w->k, i)[r]];
            is_inside &=
                at.low >= dim->lower.value && at.high < dim->lower.value + dim->extent.value;
        }
        if (is_inside && (has_one || r + 1 < n))
            continue;
        has_one = true;
        args[r] = add_op(w, QN_OP_select, QN_I64, 3,
                         (uint32_t[]){w->guard, args[r], add_number(w, QN_I64, dim->lower.value)});
    }
}

/** What the points of a reduce yield: a value that was no product, as the result of an `if`, must
 * not become one that the sum contracts. fma(x, y, -0.0) has its bits. */
static uint32_t yielded(writer *w, uint32_t i, uint32_t value)
{
    const uint32_t reduce = w->k->inst[i].parent;
    const qn_inst *x = &w->k->inst[reduce], *y = &w->inst[value];
    if (!reduce || x->op != QN_I_REDUCE || x->sub != QN_COMBINE_SUM ||
        qn__dtype_class(x->type) != QN_CLASS_F || !(w->k->flags & QN_CONTRACT) ||
        y->op < QN_I_PURE || qn__pure(y) != QN_OP_mul || qn__contracted_product(w->k, reduce))
        return value;
    const uint64_t sign = UINT64_C(1) << (qn__dtype_width(x->type) - 1);
    const uint32_t *factor = w->operand + y->args;
    return add_op(w, QN_OP_fma, x->type, 3,
                  (uint32_t[]){factor[0], factor[1], add_number(w, x->type, (int64_t)sign)});
}

/** A copy of instruction i, without its regions, if it has any. */
static void write_plain(writer *w, uint32_t i)
{
    const qn_inst *x = &w->k->inst[i];
    uint32_t args[UINT8_MAX], quotient = w->n_dims > w->k->n_dims ? write_quotient(w, i) : 0;
    if (quotient) {
        w->map[i] = quotient;
        return;
    }
    for (int n = 0; n < x->n_args; n++)
        args[n] = w->map[qn__args(w->k, i)[n]];
    if (w->guard && x->op == QN_I_LOAD)
        guard_indices(w, i, args);
    if (x->op == QN_I_YIELD && x->n_args == 1)
        args[0] = yielded(w, i, args[0]);
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
        w->map[w->k->dim[d]] = add_number(w, QN_I64, w->f->begin[d].value + point % trips);
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

/** Whether a bound of a loop is known, by the facts or in the code that is straight by now. */
static bool is_known(const writer *w, uint32_t bound, int64_t *n)
{
    return is_number(w, w->map[bound], n) || qn__is_number(w->a, bound, n);
}

/** The number of trips of a `for` that becomes straight code; -1: it stays. */
static int64_t trips_of(const writer *w, uint32_t i, int64_t *begin)
{
    const qn_inst *x = &w->k->inst[i];
    int64_t end;
    if (x->op != QN_I_FOR || !w->loops->has_trips ||
        !is_known(w, qn__args(w->k, i)[0], begin) || !is_known(w, qn__args(w->k, i)[1], &end))
        return -1;
    int64_t trips = qn__trips_between(*begin, end, (int64_t)x->imm);
    return trips <= QN_MOST_SHORT ? trips : -1;
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
        w->map[first] = add_number(w, QN_I64, begin + trip * (int64_t)x->imm);
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
        if (i == without || is_done) /* results of trips and sides are known */
            continue;
        if (points)
            write_reduce(w, i, points);
        else if (trips >= 0)
            write_trips(w, i, first, trips);
        else if (!write_side(w, i) && !write_both(w, i) && qn__has_regions(x))
            write_regions(w, i);
        else if (!qn__has_regions(x) && !write_known(w, i))
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
        w->map[k->dim[d]] = add_number(w, QN_I64, i);
        write_iterations(w, d + 1);
    }
}

/** The parts of dimension d, of n iterations each. */
static int64_t parts_of(const writer *w, int d, int64_t n)
{
    return w->loops->again[d] ? 2 : qn__trips(w->f, d) / n;
}

/** A new dimension counts the n iterations of a part. */
static void add_dim(writer *w, int64_t n)
{
    const uint32_t range[2] = {add_number(w, QN_I64, 0), add_number(w, QN_I64, n)};
    const qn_inst x = {.op = QN_I_DIM,
                       .type = QN_I64,
                       .sub = QN_DIM_PARALLEL,
                       .n_args = 2,
                       .imm = (uint64_t)w->n_dims};
    w->trips[w->n_dims] = n;
    w->dim[w->n_dims++] = add(w, &x, range, 0);
}

/** Values of the prologue are where they were; behind them stand new dimensions. */
static void begin(writer *w)
{
    const qn_kernel *k = w->k;
    const int64_t *cut = w->loops->cut;
    for (uint32_t i = 0; i < k->body && i < MOST_INSTS; i++) {
        w->map[i] = i;
        if (i > 0)
            add(w, &k->inst[i], qn__args(k, i), i);
        else
            w->n = 1;
        if (i > 0 && qn__is_pure(&k->inst[i]))
            w->visible[w->n_visible++] = i;
    }
    w->n_dims = k->n_dims;
    for (int d = 0; d < k->n_dims; d++) {
        bool is_known = qn__is_exact(w->f, d) && (cut[d] || w->f->begin[d].value == 0);
        w->trips[d] = !is_known ? 0 : cut[d] ? parts_of(w, d, cut[d]) : qn__trips(w->f, d);
        if (cut[d] > 1)
            add_dim(w, cut[d]);
    }
    w->body = w->n;
    for (int d = 0, inside = k->n_dims; d < k->n_dims; d++)
        if (cut[d]) {
            const int64_t *again = w->loops->again;
            linear index = {.n = 1,
                            .term = {k->dim[d]},
                            .coef = {again[d] ? again[d] : cut[d], 1},
                            .constant = w->f->begin[d].value};
            if (cut[d] > 1)
                index.term[index.n++] = w->dim[inside++];
            w->map[k->dim[d]] = write_linear(w, &index);
        }
}

/* ---------------------------------------------------------------- kernel and facts */

/** The facts of a dimension that has parts, and of the one inside of them, which is number `inside`
 * if there is one; returns the number of the next one. */
static int take_parts(const writer *w, qn_kernel *k, qn_facts *f, int d, int inside)
{
    const int64_t n = w->loops->cut[d], parts = parts_of(w, d, n);
    const bool are_all = !w->loops->again[d];
    if (f->begin[d].value && are_all)
        f->from[d] = f->begin[d].value;
    f->begin[d].value = 0;
    f->end[d].value = parts;
    if (f->part[d] >= 0 && are_all)
        f->part[d] = n * (f->part[d] ? f->part[d] : 1);
    if (n == 1)
        return inside;
    f->begin[inside] = (qn_fact){.kind = QN_FACT_EXACT, .value = 0};
    f->end[inside] = (qn_fact){.kind = QN_FACT_EXACT, .value = n};
    k->dim[inside] = w->dim[inside];
    f->part[inside] = -1;
    return inside + 1;
}

/** Puts what was written into the kernel; false without memory. */
static bool take(writer *w, qn_kernel *k, qn_facts *f)
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
            inside = take_parts(w, k, f, d, inside);
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

/** The ranges of all values: of both parts of a dimension, if that has two. */
static bool find_ranges(writer *w, const qn_analysis *of)
{
    const qn_kernel *k = w->k;
    qn_facts f = *w->f;
    qn_analysis a = *of;
    a.f = &f;
    w->range[0] = qn__zalloc(2 * (size_t)k->n_insts, sizeof *w->range[0]);
    if (!w->range[0])
        return false;
    w->range[1] = w->range[0];
    for (int d = 0; d < k->n_dims; d++)
        if (w->loops->again[d]) {
            w->parts = d;
            w->range[1] = w->range[0] + k->n_insts;
            f.end[d].value = f.begin[d].value + w->loops->cut[d];
        }
    qn__find_ranges(&a, w->range[0]);
    if (w->range[1] != w->range[0]) {
        f.begin[w->parts].value += w->loops->again[w->parts];
        f.end[w->parts].value += w->loops->again[w->parts];
        qn__find_ranges(&a, w->range[1]);
    }
    return true;
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
    writer w = {.k = k, .f = f, .loops = loops, .most_operands = OPERANDS_EACH * MOST_INSTS};
    bool is_done = false;
    if (k->n_insts > MOST_INSTS || !is_reported_alike(k, f, loops) ||
        !qn__analyse(k, f, -1, 0, &a))
        return false;
    w.a = &a;
    w.written = qn__written_too(&a);
    uint64_t *may_meet = qn__zalloc((size_t)k->n_params + 1, sizeof *may_meet);
    for (int p = 0; p < k->n_params && may_meet; p++)
        may_meet[p] = views_met(&a, p);
    bool has_ranges = find_ranges(&w, &a);
    w.inst = qn__zalloc(MOST_INSTS, sizeof *w.inst);
    w.operand = qn__zalloc(w.most_operands, sizeof *w.operand);
    w.origin = qn__zalloc(MOST_INSTS, sizeof *w.origin);
    w.visible = qn__zalloc(MOST_INSTS, sizeof *w.visible);
    w.map = qn__zalloc(k->n_insts, sizeof *w.map);
    if (may_meet && has_ranges && w.inst && w.operand && w.origin && w.visible && w.map) {
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
    qn__free(w.range[0]);
    if (is_done) {
        f->is_straight = 1;
        for (int p = 0; p < k->n_params; p++)
            f->param[p].may_meet = may_meet[p];
        qn__share_loads(k, f);
    }
    qn__free(may_meet);
    return is_done;
}
