/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat.c: which groups of stores are flat (flat.h). The expressions of all members are walked side
 * by side.
 */
#include "jit/analysis/flat.h"

#include <string.h>

/** What flat.c finds. */
typedef struct flattener {
    const qn_analysis *a;
    int lane_dim, lanes;
    qn_flat *out;
    int vectors; /* of values of one for each member, which are held outside of the loop */
} flattener;

/** A node that has these instructions, -1: none. */
static int find(const qn_flat *x, const uint32_t *inst)
{
    for (int n = 0; n < x->n; n++)
        if (memcmp(x->node[n].inst, inst, sizeof x->node[n].inst) == 0)
            return n;
    return -1;
}

static int add(qn_flat *x, const qn_flat_node *node)
{
    if (x->n == QN_MOST_FLAT)
        return -1;
    x->node[x->n] = *node;
    return x->n++;
}

#define FOR_MEMBERS(x, p)                                                                          \
    for (int p = 0; p < (x)->group.n; p++)                                                         \
        if (!((x)->members >> p & 1)) {                                                            \
        } else

/* ---------------------------------------------------------------- loads */

/** Shuffles of a register of elements of so many bytes: of those too small for one instruction, two
 * and a blend. */
static double shuffle_of(const flattener *s, int64_t bytes)
{
    return bytes >= s->a->f->target->least_shuffled ? 1 : 3;
}

/** Whether an access always is of an element of its view, and of nothing that others may change. */
static bool is_plain(const qn_analysis *a, uint32_t i)
{
    const qn_kernel_parameter *param = &a->k->param[a->k->inst[i].imm];
    return !qn__is_checked(a->f, a->k, qn__site_of(a->k, i)) && !(param->traits & QN_ATOMIC) &&
           !param->has_atomics;
}

/** Shuffles that bring the members of a group into vectors of the lanes, or back. */
static double shuffles_of_weave(const qn_analysis *a, const qn_group *x, int lanes)
{
    int most = a->f->target->vector_bytes / (int)qn__access_bytes(a->k, x->first);
    int n = lanes < most ? lanes : most;
    qn_weave w;
    if (!qn__weave_of_group(a, x, x->first, n, 0, &w))
        return lanes; /* one by one */
    return w.shuffles * lanes / n;
}

/** Counts the shuffles of a group of loads, once. */
static void count_weave(flattener *s, const qn_group *x)
{
    for (int n = 0; n < s->out->n; n++)
        if (s->out->node[n].kind == QN_FLAT_LOAD && s->out->node[n].group == x->first)
            return;
    s->out->saved += shuffles_of_weave(s->a, x, s->lanes);
}

/** Vectors of so many lanes that the n places of a few lanes lie in, in any order. */
static int vectors_around(int lanes, int n)
{
    return (n + lanes - 1) / lanes + (lanes % n != 0 && n % lanes != 0);
}

/** Loads of one group for each member. */
static int of_loads(flattener *s, qn_flat_node *node)
{
    const qn_analysis *a = s->a;
    const qn_kernel *k = a->k;
    qn_flat *x = s->out;
    uint32_t first = node->inst[x->first];
    int64_t bytes = qn__access_bytes(k, first), apart;
    bool is_in_order = true;
    qn_group own;
    if (!qn__group_of(a, s->lane_dim, first, &own) || own.n != x->group.n)
        return -1;
    node->kind = QN_FLAT_LOAD;
    node->readable = own.known;
    for (int p = 0; p < own.n; p++)
        if (own.inst[p] && is_plain(a, own.inst[p]))
            node->readable |= UINT32_C(1) << p;
    FOR_MEMBERS (x, p) {
        uint32_t i = node->inst[p];
        if (!is_plain(a, i) || k->inst[i].parent != k->inst[x->group.last].parent ||
            k->inst[i].imm != k->inst[first].imm ||
            qn__access_dtype(k, i) != qn__access_dtype(k, first) ||
            !qn__bytes_apart(a, i, first, &apart) || apart % bytes ||
            !qn__may_wait(a, s->lane_dim, i, &x->group))
            return -1;
        int64_t place = own.place + apart / bytes;
        if (place < 0 || place >= own.n || !(node->readable >> place & 1))
            return -1;
        node->place[p] = (uint8_t)place;
        is_in_order &= place - p == node->place[x->first] - x->first;
    }
    x->reads_stored |= qn__is_written_too(a, k->inst[first].imm);
    x->shuffles += is_in_order ? 0 : own.n * vectors_around(s->lanes, own.n) * shuffle_of(s, bytes);
    count_weave(s, &own);
    node->group = own.first;
    return add(x, node);
}

/* ---------------------------------------------------------------- expressions */

/** Whether an instruction computes each lane of itself: an op of the table, or a conversion. */
static bool is_elementwise(const qn_inst *x)
{
    return x->op >= QN_I_PURE || x->op == QN_I_CAST || x->op == QN_I_BITCAST;
}

/** Whether two instructions are one op, computed in as many bits. */
static bool is_one_op(const qn_analysis *a, uint32_t i, uint32_t m)
{
    const qn_inst *x = &a->k->inst[i], *y = &a->k->inst[m];
    const qn_value_info *v = &a->value[i], *w = &a->value[m];
    return x->op == y->op && x->type == y->type && x->imm == y->imm && x->n_args == y->n_args &&
           x->n_args <= 3 && v->bits == w->bits && v->at == w->at && v->is_signed == w->is_signed &&
           v->at_signed == w->at_signed && v->is_moved == w->is_moved && !v->sum == !w->sum &&
           (!v->sum || a->k->inst[v->sum].op == a->k->inst[w->sum].op);
}

static int node_of(flattener *s, const uint32_t *inst, int depth);

static int of_ops(flattener *s, qn_flat_node *node, int depth)
{
    const qn_kernel *k = s->a->k;
    uint32_t first = node->inst[s->out->first];
    node->kind = QN_FLAT_OP;
    for (int n = 0; n < k->inst[first].n_args; n++) {
        uint32_t arg[QN_MOST_PLACES] = {0};
        int type = k->inst[qn__lane_args(s->a, first)[n]].type;
        FOR_MEMBERS (s->out, p) {
            arg[p] = qn__lane_args(s->a, node->inst[p])[n];
            if (k->inst[arg[p]].type != type)
                return -1;
        }
        int found = node_of(s, arg, depth + 1);
        if (found < 0)
            return -1;
        node->arg[n] = (uint8_t)found;
    }
    return add(s->out, node);
}

/** The node of one value for each member, made with those of its operands; -1: they are not
 * alike. */
static int node_of(flattener *s, const uint32_t *inst, int depth)
{
    enum { MOST_DEPTH = 40 };
    const qn_analysis *a = s->a;
    const qn_flat *x = s->out;
    qn_flat_node node = {.kind = QN_FLAT_UNIFORM};
    uint32_t first = inst[x->first];
    bool is_one = true, are_uniform = true, are_loads = true, are_ops = true;
    memcpy(node.inst, inst, sizeof node.inst);
    int found = find(x, inst);
    if (found >= 0 || depth > MOST_DEPTH)
        return found;
    FOR_MEMBERS (x, p) {
        is_one &= inst[p] == first;
        are_uniform &= a->value[inst[p]].shape == QN_UNIFORM;
        are_loads &= a->k->inst[inst[p]].op == QN_I_LOAD;
        are_ops &= is_elementwise(&a->k->inst[inst[p]]) && is_one_op(a, first, inst[p]);
    }
    if (are_uniform) {
        s->vectors += is_one ? 1 : x->group.n;
        return add(s->out, &node);
    }
    found = are_loads ? of_loads(s, &node) : -1;
    if (found >= 0)
        return found;
    if (is_one) {
        node.kind = QN_FLAT_SPREAD;
        s->out->shuffles += x->group.n * shuffle_of(s, qn__dtype_width(a->k->inst[first].type) / 8);
        return add(s->out, &node);
    }
    return are_ops ? of_ops(s, &node, depth) : -1;
}

/** The stores of the group, and what they store. False: some may fail, or only some bytes are
 * stored and the target has no masks for them. */
static bool of_stores(const qn_analysis *a, qn_flat *x, uint32_t *value)
{
    const qn_kernel *k = a->k;
    for (int p = 0; p < x->group.n; p++) {
        uint32_t i = x->group.inst[p];
        if (i && !is_plain(a, i))
            return false;
        x->members |= (uint32_t)(i != 0) << p;
        value[p] = i ? qn__args(k, i)[k->inst[i].n_args - 1] : 0;
    }
    x->first = __builtin_ctz(x->members);
    FOR_MEMBERS (x, p)
        if (k->inst[value[p]].type != k->inst[value[x->first]].type)
            return false;
    bool has_gaps = x->members + 1 != UINT32_C(1) << x->group.n;
    return !has_gaps || qn__access_bytes(k, x->group.last) >= a->f->target->least_masked;
}

bool qn__flat_of(const qn_analysis *of, int lane_dim, int lanes, uint32_t i, qn_flat *out)
{
    qn_analysis a;
    flattener s = {&a, lane_dim, lanes, out, 0};
    uint32_t value[QN_MOST_PLACES] = {0};
    memset(out, 0, sizeof *out);
    if (lanes < 2) /* one is no vector; less: of a schedule that is not verified yet */
        return false;
    if (of->k->inst[i].op != QN_I_STORE || !qn__group_of(of, lane_dim, i, &out->group) ||
        !of_stores(of, out, value) || !qn__analyse_lanes(of, lane_dim, 0, &a))
        return false;
    bool are_alike = node_of(&s, value, 0) == out->n - 1 && out->n > 0;
    qn__analysis_release(&a);
    for (int n = 0; n < out->n; n++)
        if (out->node[n].kind == QN_FLAT_OP)
            out->ops += out->group.n - __builtin_popcount(out->members);
    double again = s.vectors > of->f->target->vectors / 2 ? 0.5 * s.vectors : 0;
    return are_alike && out->shuffles + again + out->ops <
                            out->saved + shuffles_of_weave(of, &out->group, lanes);
}

/* ---------------------------------------------------------------- loads of a group of stores */

bool qn__flat_loads(const qn_analysis *a, const qn_flat *x, uint8_t *is_flat)
{
    enum { OP = 1, STORE = 2, OTHERS = 4 }; /* what an instruction is; others than members use it */
    const qn_kernel *k = a->k;
    uint8_t *what = qn__zalloc(k->n_insts, 1);
    if (!what)
        return false;
    FOR_MEMBERS (x, p) {
        what[x->group.inst[p]] = STORE;
        for (int n = 0; n < x->n; n++)
            what[x->node[n].inst[p]] |= x->node[n].kind == QN_FLAT_OP       ? OP
                                        : x->node[n].kind == QN_FLAT_SPREAD ? OTHERS
                                                                            : 0;
    }
    for (uint32_t i = k->n_insts - 1; i >= k->body; i--) {
        int n_inside = what[i] == OP ? k->inst[i].n_args : 0;
        for (int n = 0; n < k->inst[i].n_args; n++) {
            bool is_stored = what[i] == STORE && n == k->inst[i].n_args - 1;
            what[qn__args(k, i)[n]] |= n < n_inside || is_stored ? 0 : OTHERS;
        }
    }
    FOR_MEMBERS (x, p)
        for (int n = 0; n < x->n; n++)
            if (x->node[n].kind == QN_FLAT_LOAD && !(what[x->node[n].inst[p]] & OTHERS))
                is_flat[x->node[n].inst[p]] = 1;
    qn__free(what);
    return true;
}
