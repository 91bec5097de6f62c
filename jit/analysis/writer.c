/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c: instructions that are written, each value once, and quotients of sums by constants
 * (writer.h).
 */
#include "jit/analysis/writer.h"

#include <string.h>

/* ---------------------------------------------------------------- instructions */

uint32_t qn__write(qn_writer *w, const qn_inst *x, const uint32_t *args, uint32_t origin)
{
    if (w->n == QN_MOST_WRITTEN || w->n_operands + x->n_args > w->most_operands) {
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

static bool is_equal(const qn_writer *w, uint32_t i, const qn_inst *x, const uint32_t *args)
{
    const qn_inst *y = &w->inst[i];
    return x->op == y->op && x->type == y->type && x->sub == y->sub && x->imm == y->imm &&
           x->n_args == y->n_args &&
           (x->n_args == 0 || memcmp(w->operand + y->args, args, x->n_args * sizeof *args) == 0);
}

uint32_t qn__write_value(qn_writer *w, const qn_inst *x, const uint32_t *args, uint32_t origin)
{
    for (uint32_t n = w->n_visible; n-- > 0;)
        if (is_equal(w, w->visible[n], x, args))
            return w->visible[n];
    uint32_t i = qn__write(w, x, args, origin);
    if (!w->is_full)
        w->visible[w->n_visible++] = i;
    return i;
}

uint32_t qn__write_number(qn_writer *w, int type, int64_t value)
{
    const qn_inst x = {.op = QN_I_CONST, .type = (uint8_t)type, .imm = (uint64_t)value};
    return qn__write_value(w, &x, NULL, 0);
}

uint32_t qn__write_op(qn_writer *w, int op, int type, int n, const uint32_t *args)
{
    const qn_inst x = {
        .op = (uint8_t)(QN_I_PURE + op), .type = (uint8_t)type, .n_args = (uint8_t)n};
    return qn__write_value(w, &x, args, 0);
}

bool qn__is_written_number(const qn_writer *w, uint32_t i, int64_t *value)
{
    *value = (int64_t)w->inst[i].imm;
    return w->inst[i].op == QN_I_CONST;
}

/* ---------------------------------------------------------------- quotients */

enum { MOST_DEPTH = 8, MOST_INDEX = 1 << 30 };

/** The greatest number that a value may be; -1: it may be negative, or that is not known. */
static int64_t most_of(const qn_writer *w, uint32_t i, int depth)
{
    const qn_inst *x = &w->inst[i];
    int64_t n, most = -1, other;
    qn_quotient q;
    if (qn__is_written_number(w, i, &n))
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
static bool add_linear(const qn_writer *w, uint32_t i, int64_t scale, int depth, qn_linear *out)
{
    const qn_inst *x = &w->inst[i];
    const uint32_t *args = w->operand + x->args;
    int op = x->op >= QN_I_PURE && x->type == QN_I64 && depth > 0 ? qn__pure(x) : -1;
    int64_t n, most = most_of(w, i, MOST_DEPTH);
    if (qn__is_written_number(w, i, &n)) {
        bool is_small = n >= -MOST_INDEX && n <= MOST_INDEX;
        out->constant += is_small ? scale * n : 0;
        return is_small && out->constant >= -MOST_INDEX && out->constant <= MOST_INDEX;
    }
    if (op == QN_OP_add || (op == QN_OP_sub && qn__is_written_number(w, args[1], &n)))
        return add_linear(w, args[0], scale, depth - 1, out) &&
               add_linear(w, args[1], op == QN_OP_add ? scale : -scale, depth - 1, out);
    if (op == QN_OP_mul &&
        (qn__is_written_number(w, args[0], &n) || qn__is_written_number(w, args[1], &n)))
        return n >= 1 && n <= MOST_INDEX / scale &&
               add_linear(w, args[w->inst[args[0]].op == QN_I_CONST], scale * n, depth - 1, out);
    if (most < 0 || most > MOST_INDEX / scale)
        return false;
    int t = 0;
    while (t < out->n && out->term[t] != i)
        t++;
    if (t == QN_MOST_TERMS)
        return false;
    if (t == out->n) {
        out->term[out->n] = i;
        out->coef[out->n++] = 0;
    }
    out->coef[t] += scale;
    return true;
}

uint32_t qn__write_linear(qn_writer *w, const qn_linear *x)
{
    uint32_t sum = 0;
    for (int t = 0; t < x->n; t++) {
        uint32_t term = x->term[t];
        if (x->coef[t] != 1)
            term = qn__write_op(w, QN_OP_mul, QN_I64, 2,
                                (uint32_t[]){term, qn__write_number(w, QN_I64, x->coef[t])});
        sum = sum ? qn__write_op(w, QN_OP_add, QN_I64, 2, (uint32_t[]){sum, term}) : term;
    }
    if (!sum)
        return qn__write_number(w, QN_I64, x->constant);
    if (!x->constant)
        return sum;
    return qn__write_op(w, QN_OP_add, QN_I64, 2,
                        (uint32_t[]){sum, qn__write_number(w, QN_I64, x->constant)});
}

uint32_t qn__write_quotient(qn_writer *w, uint32_t i)
{
    const qn_kernel *k = w->k;
    qn_linear all = {0}, whole = {0}, rest = {0};
    int64_t most;
    qn_quotient q;
    if (!qn__quotient(k->inst, k->operand, i, &q) ||
        !add_linear(w, w->map[q.of], 1, MOST_DEPTH, &all) || all.constant < 0)
        return 0;
    whole.constant = all.constant / q.by;
    most = rest.constant = all.constant % q.by;
    for (int t = 0; t < all.n; t++) {
        bool is_whole = all.coef[t] % q.by == 0;
        qn_linear *to = is_whole ? &whole : &rest;
        to->term[to->n] = all.term[t];
        to->coef[to->n++] = is_whole ? all.coef[t] / q.by : all.coef[t];
        most += is_whole ? 0 : all.coef[t] * most_of(w, all.term[t], MOST_DEPTH);
    }
    if (!whole.n && !whole.constant && most >= q.by)
        return 0;
    uint32_t by = qn__write_number(w, QN_I64, q.by), left = qn__write_linear(w, &rest);
    if (q.is_rest)
        return most < q.by ? left : qn__write_op(w, QN_OP_rem, QN_I64, 2, (uint32_t[]){left, by});
    uint32_t own = qn__write_linear(w, &whole);
    if (most < q.by)
        return own;
    return qn__write_op(
        w, QN_OP_add, QN_I64, 2,
        (uint32_t[]){own, qn__write_op(w, QN_OP_div, QN_I64, 2, (uint32_t[]){left, by})});
}
