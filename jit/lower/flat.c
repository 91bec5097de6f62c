/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat.c: stores of members that are computed alike (analysis/flat.h). The lanes of a step and the
 * n places of each lane are n vectors, as they lie in memory: element e of them is place e % n of
 * lane e / n. All nodes of the members' expressions are such vectors.
 */
#include "jit/analysis/flat.h"
#include "jit/lower/lower.h"

/** What is emitted: vector `v` of part p. */
typedef struct flat {
    lower *g;
    const qn_flat *x;
    int p, v;
    LLVMValueRef value[QN_MOST_FLAT];
} flat;

/** The instruction that stands for all members of a node. */
static uint32_t first_of(const flat *f, int node)
{
    return f->x->node[node].inst[f->x->first];
}

static int n_places(const flat *f)
{
    return f->x->group.n;
}

/** The number of element l of the present vector among those of all lanes. */
static int element_at(const flat *f, int l)
{
    return f->v * f->g->width + l;
}

/** The place of element l of the present vector; one that is stored, where that one is not. */
static int place_at(const flat *f, int l)
{
    int own = element_at(f, l) % n_places(f);
    return f->x->members >> own & 1 ? own : f->x->first;
}

/* ---------------------------------------------------------------- leaves */

/** The scalar of the member at a place, an integer in so many bits; 0: those of its type. */
static LLVMValueRef scalar_of(const flat *f, const qn_flat_node *node, int member, int bits)
{
    uint32_t i = node->inst[member];
    LLVMValueRef v = qn__scalar(f->g, i, f->p);
    return bits ? qn__in_bits(f->g, v, f->g->a.value[i].is_signed, bits) : v;
}

/** A value of each member that all lanes have: made where the values are. */
static LLVMValueRef uniform(const flat *f, const qn_flat_node *node, int bits)
{
    lower *g = f->g;
    LLVMValueRef scalar[QN_MOST_PLACES] = {NULL}, lane[QN_MOST_LANES], v = NULL;
    int wanted = 0, n = n_places(f), index[QN_MOST_LANES];
    bool are_constant = true, are_one = true;
    for (int p = 0; p < n; p++) {
        uint32_t i = node->inst[p];
        int at = i ? qn__level_of(g, i, f->p) : 0;
        wanted = at > wanted ? at : wanted;
    }
    LLVMValueRef first = qn__scalar(g, node->inst[f->x->first], f->p);
    int64_t which =
        ((int64_t)f->p << 8 | f->v) << 32 | (node - f->x->node) << 16 | bits << 8 | g->width;
    sharing x;
    v = qn__memo_begin(
        g, &x, (memo_key){MEMO_FLAT, first, qn__const_i64(g, f->x->group.last), which}, &wanted);
    if (v)
        return v;
    for (int p = 0; p < n; p++) {
        if (!node->inst[p])
            continue;
        scalar[p] = scalar_of(f, node, p, bits);
        are_constant &= LLVMIsConstant(scalar[p]) != 0;
        are_one &= scalar[p] == scalar[f->x->first];
    }
    LLVMTypeRef element = LLVMTypeOf(scalar[f->x->first]);
    for (int l = 0; l < g->width; l++) {
        index[l] = place_at(f, l);
        lane[l] = scalar[index[l]];
    }
    if (are_constant) {
        v = LLVMConstVector(lane, (unsigned)g->width);
    } else if (are_one) {
        v = qn__splat(g, scalar[f->x->first], wanted);
    } else {
        v = LLVMGetPoison(LLVMVectorType(element, (unsigned)n));
        for (int p = 0; p < n; p++)
            if (scalar[p])
                v = qn__insert(g, v, scalar[p], p);
        v = qn__shuffle(g, v, NULL, index, g->width);
    }
    return qn__memo_end(g, &x, v);
}

/** A value of each lane, for all members. */
static LLVMValueRef spread(const flat *f, const qn_flat_node *node, int bits)
{
    uint32_t i = node->inst[f->x->first];
    int index[QN_MOST_LANES];
    LLVMValueRef v = bits ? qn__vector_bits(f->g, i, f->p, bits) : qn__vector(f->g, i, f->p);
    for (int l = 0; l < f->g->width; l++)
        index[l] = element_at(f, l) / n_places(f);
    return qn__shuffle(f->g, v, NULL, index, f->g->width);
}

/** `width` elements in memory from number `from` of a node's loads on. Those that are no element of
 * the step are masked. */
static LLVMValueRef load_from(const flat *f, const qn_flat_node *node, LLVMValueRef base, int from)
{
    lower *g = f->g;
    uint32_t i = node->inst[f->x->first];
    int n = n_places(f);
    uint64_t is_read = 0;
    LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, g->k->inst[i].type));
    for (int l = 0; l < g->width; l++) {
        int e = from + l;
        bool is_inside = e >= 0 && e < g->width * n && (node->readable >> e % n & 1);
        is_read |= (uint64_t)is_inside << l;
    }
    LLVMValueRef at = qn__ahead(g, base, from * qn__access_bytes(g->k, i));
    return qn__load_masked(g, t, at, qn__align_of(g, i), qn__lanes_of_bits(g, is_read, g->width));
}

/** The elements `at` of a node's loads, -1: any. They come out of all vectors that have some. */
static LLVMValueRef load_elements(const flat *f, const qn_flat_node *node, LLVMValueRef base,
                                  int *at)
{
    lower *g = f->g;
    const int w = g->width, last = (n_places(f) - 1) * w;
    int lane[QN_MOST_LANES] = {0}; /* of `v`, where each element is */
    LLVMValueRef v = NULL;
    for (;;) {
        int first = INT32_MAX;
        for (int l = 0; l < w; l++)
            first = at[l] >= 0 && at[l] < first ? at[l] : first;
        if (first == INT32_MAX)
            return qn__shuffle(g, v, NULL, lane, w);
        first = first < last ? first : last;
        for (int l = 0; l < w; l++) {
            if (at[l] < 0 || at[l] >= first + w)
                continue;
            lane[l] = (v ? w : 0) + at[l] - first;
            at[l] = -1;
        }
        LLVMValueRef next = load_from(f, node, base, first);
        v = v ? qn__shuffle(g, v, next, lane, w) : next;
        for (int l = 0; l < w && v != next; l++)
            lane[l] = l;
    }
}

/** Loads of a group: as they lie in memory, or in another order. */
static LLVMValueRef load(const flat *f, const qn_flat_node *node)
{
    lower *g = f->g;
    uint32_t i = node->inst[f->x->first];
    int at[QN_MOST_LANES], ahead = node->place[f->x->first] - f->x->first;
    bool is_in_order = true;
    const address x = qn__displaced(g, i, f->p, NULL);
    LLVMValueRef base =
        qn__ahead(g, x.pointer, -node->place[f->x->first] * qn__access_bytes(g->k, i));
    for (int l = 0; l < g->width; l++) {
        int e = element_at(f, l), own = e % n_places(f);
        at[l] = f->x->members >> own & 1 ? e - own + node->place[own] : -1;
        is_in_order &= at[l] < 0 || at[l] == e + ahead;
    }
    return qn__to_register(g, g->k->inst[i].type,
                           is_in_order ? load_from(f, node, base, element_at(f, 0) + ahead)
                                       : load_elements(f, node, base, at));
}

/* ---------------------------------------------------------------- nodes */

/** A node as an operand: an integer in so many bits; 0: those of its type. */
static LLVMValueRef operand(const flat *f, int number, int bits)
{
    const qn_flat_node *node = &f->x->node[number];
    uint32_t i = first_of(f, number);
    int type = f->g->k->inst[i].type;
    if (node->kind == QN_FLAT_UNIFORM)
        return uniform(f, node, bits);
    if (node->kind == QN_FLAT_SPREAD)
        return spread(f, node, bits);
    if (!qn__is_integer(type))
        return f->value[number];
    return qn__in_bits(f->g, f->value[number], f->g->a.value[i].is_signed,
                       bits ? bits : qn__dtype_width(type));
}

static void emit_node(flat *f, int number)
{
    lower *g = f->g;
    const qn_flat_node *node = &f->x->node[number];
    uint32_t i = first_of(f, number);
    LLVMValueRef v[3] = {NULL, NULL, NULL};
    if (node->kind == QN_FLAT_LOAD)
        f->value[number] = load(f, node);
    if (node->kind != QN_FLAT_OP)
        return;
    for (int n = 0; n < g->k->inst[i].n_args; n++)
        v[n] = operand(f, node->arg[n], qn__lane_operand(g, i, n).bits);
    f->value[number] = qn__build_lanes(g, i, f->p, v);
}

/** Stores a vector, but for places that are not stored. */
static void store(const flat *f, LLVMValueRef v)
{
    lower *g = f->g;
    uint32_t i = f->x->group.inst[f->x->first];
    int64_t bytes = qn__access_bytes(g->k, i);
    uint64_t is_stored = 0;
    const address x = qn__displaced(g, i, f->p, NULL);
    for (int l = 0; l < g->width; l++)
        is_stored |= (uint64_t)(f->x->members >> element_at(f, l) % n_places(f) & 1) << l;
    LLVMValueRef at = qn__ahead(g, x.pointer, (element_at(f, 0) - f->x->first) * bytes);
    v = qn__to_memory(g, qn__access_dtype(g->k, i), v);
    qn__store_masked(g, v, at, qn__align_of(g, i), qn__lanes_of_bits(g, is_stored, g->width));
}

static void store_part(lower *g, const qn_flat *x, int p)
{
    LLVMValueRef stored[QN_MOST_PLACES];
    flat f = {.g = g, .x = x, .p = p};
    for (f.v = 0; f.v < x->group.n; f.v++) {
        for (int n = 0; n < x->n && !g->is_over; n++)
            if (qn__spend(g, first_of(&f, n)))
                emit_node(&f, n);
        if (g->is_over)
            return;
        stored[f.v] = operand(&f, x->n - 1, 0);
        if (!x->reads_stored)
            store(&f, stored[f.v]);
    }
    for (f.v = 0; f.v < x->group.n && x->reads_stored; f.v++)
        store(&f, stored[f.v]);
}

void qn__store_flat(lower *g, uint32_t i)
{
    qn_flat x;
    if (!qn__flat_of(g->scalar, g->block->lane_dim, g->width, i, &x)) {
        g->failed = true; /* a defect: the schedule was verified */
        return;
    }
    FOR_PARTS (g, p)
        if (i == x.group.last)
            store_part(g, &x, p);
}
