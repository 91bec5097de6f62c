/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_piece.c: loads and stores of the elements of a group: pieces of up to 16 bytes at once,
 * under the conditions of the parts that need them.
 */
#include "jit/lower/wide_group.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- registers and memory */

static LLVMTypeRef bundle_type(const lower *g, bundle b)
{
    const int bytes = b.bytes * b.n;
    if (b.n == 1 || b.bytes >= 4)
        return b.n == 1 ? b.element : LLVMVectorType(b.element, (unsigned)b.n);
    return bytes <= 4 ? qn__int_type(g, bytes * 8) : LLVMVectorType(g->i32, (unsigned)bytes / 4);
}

/** Takes the elements out of a bundle. */
static void unbundle(lower *g, bundle b, LLVMValueRef v, LLVMValueRef *out)
{
    const int each = b.bytes >= 4 ? 1 : 4 / b.bytes; /* elements of a word */
    for (int n = 0; n < b.n; n++) {
        const int shift = n % each * b.bytes * 8;
        LLVMValueRef x = qn__is_vector(v) ? qn__extract(g, v, n / each) : v;
        if (shift)
            x = LLVMBuildLShr(g->b, x, qn__int(LLVMTypeOf(x), shift), "");
        out[n] = each > 1 && b.n > 1 ? LLVMBuildTrunc(g->b, x, b.element, "") : x;
    }
}

LLVMValueRef qn__bundle(lower *g, bundle b, const LLVMValueRef *value)
{
    const int each = b.bytes >= 4 ? 1 : 4 / b.bytes;
    LLVMTypeRef t = bundle_type(g, b);
    const bool has_words = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    LLVMTypeRef word_type = has_words ? LLVMGetElementType(t) : t;
    LLVMValueRef all = LLVMConstNull(t), word = value[0];
    for (int n = 0; n < b.n && b.n > 1; n++) {
        const int shift = n % each * b.bytes * 8;
        LLVMValueRef v = value[n];
        if (each > 1)
            v = LLVMBuildZExt(g->b, v, word_type, "");
        if (shift)
            v = LLVMBuildShl(g->b, v, qn__int(word_type, shift), "");
        word = n % each ? LLVMBuildOr(g->b, word, v, "") : v;
        if (has_words && n % each == each - 1)
            all = qn__insert(g, all, word, n / each);
    }
    return has_words ? all : word;
}

void qn__load_bundle(lower *g, bundle b, LLVMValueRef pointer, LLVMValueRef *out)
{
    const unsigned align = (unsigned)(b.bytes * b.n);
    unbundle(g, b, qn__load_at(g, bundle_type(g, b), pointer, align), out);
}

/** `count` elements from e on. */
static bundle bundle_of(const element *e, int count)
{
    return (bundle){e->type, e->bytes, count};
}

static void take_all(lower *g, element *e, LLVMValueRef v, int count)
{
    LLVMValueRef value[QN_ACCESS_BYTES];
    unbundle(g, bundle_of(e, count), v, value);
    for (int n = 0; n < count; n++)
        e[n].value = value[n];
}

static LLVMValueRef join(lower *g, const element *e, int count)
{
    LLVMValueRef value[QN_ACCESS_BYTES];
    for (int n = 0; n < count; n++)
        value[n] = e[n].value;
    return qn__bundle(g, bundle_of(e, count), value);
}

static LLVMValueRef pointer_of(lower *g, const group *s, const element *e)
{
    LLVMValueRef pointer = s->base[e->base].pointer;
    return e->at ? qn__ahead(g, pointer, e->at) : pointer;
}

/** What the address of `count` elements is known to be a multiple of: of several all of them. */
static int64_t align_of(const group *s, const element *e, int count)
{
    const base *b = &s->base[e->base];
    int64_t bits = b->align | (b->rest + e->at) | e->bytes;
    return count > 1 ? (int64_t)count * e->bytes : bits & -bits;
}

/** All conditions of a piece at once. */
static LLVMValueRef whole_condition(lower *g, const element *e, int count)
{
    LLVMValueRef all = NULL;
    unsigned edges = 0;
    for (int n = 0; n < count; n++) {
        edges |= e[n].edges;
        if (g->grid->skew && e[n].condition) /* each part of a skewed row has its own */
            all = qn__mask_and(g, all, e[n].condition);
    }
    for (int n = 0; n < N_EDGES; n++)
        if (edges >> n & 1)
            all = qn__mask_and(g, all, g->edge[n]);
    return all;
}

/* ---------------------------------------------------------------- loads */

static LLVMValueRef load_from(lower *g, const element *e, int count, LLVMValueRef pointer,
                              int64_t align)
{
    LLVMValueRef v = qn__load_at(g, bundle_type(g, bundle_of(e, count)), pointer, (unsigned)align);
    if (e->is_constant)
        qn__mark_invariant(g, v);
    return v;
}

static LLVMValueRef load_bundle(lower *g, const group *s, const element *e, int count)
{
    return load_from(g, e, count, pointer_of(g, s, e), align_of(s, e, count));
}

/** The nearest element of the same base that is loaded in any case, or NULL: it stands in for one
 * that is not needed, and the load needs no branch. */
static const element *stand_in(const group *s, const element *e)
{
    const element *best = NULL;
    for (int n = 0; n < s->n_elements; n++) {
        const element *x = &s->element[n];
        if (x->base != e->base || x->condition || x->bytes != e->bytes)
            continue;
        if (!best || llabs(x->at - e->at) < llabs(best->at - e->at))
            best = x;
    }
    return best;
}

/** Loads element e, or where that is not needed the other one. */
static void load_either(lower *g, const group *s, element *e, const element *other)
{
    LLVMValueRef apart = qn__const_i64(g, e->at - other->at), none = qn__const_i64(g, 0);
    LLVMValueRef by = LLVMBuildSelect(g->b, e->condition, apart, none, "");
    LLVMValueRef pointer = qn__gep(g, g->i8, s->base[e->base].pointer, by);
    int64_t align = align_of(s, e, 1) | align_of(s, other, 1);
    e->value = load_from(g, e, 1, qn__ahead(g, pointer, other->at), align & -align);
}

static bool has_one_condition(const element *e, int count)
{
    for (int n = 1; n < count; n++)
        if (e[n].condition != e->condition)
            return false;
    return true;
}

/** A piece that is needed as a whole or not at all. */
static void load_piece(lower *g, const group *s, element *e, int count)
{
    branch then = qn__begin_branch(g, e->condition);
    take_all(g, e, qn__end_branch(g, &then, load_bundle(g, s, e, count)), count);
}

/** A piece of which some elements may not be needed: whole where all are, else one by one. */
static void load_apart(lower *g, const group *s, element *e, int count)
{
    LLVMValueRef whole[QN_ACCESS_BYTES];
    branch x = qn__begin_choice(g, whole_condition(g, e, count), "whole", "apart");
    take_all(g, e, load_bundle(g, s, e, count), count);
    for (int n = 0; n < count; n++)
        whole[n] = e[n].value;
    qn__begin_other(g, &x);
    for (int n = 0; n < count; n++)
        load_piece(g, s, &e[n], 1);
    qn__end_branch(g, &x, NULL);
    for (int n = 0; n < count; n++)
        e[n].value = qn__join(g, &x, whole[n], e[n].value);
}

void qn__wide_load_elements(lower *g, group *s)
{
    for (int n = 0, count; n < s->n_elements; n += count) {
        element *e = &s->element[n];
        count = qn__wide_piece_at(s, n);
        const element *other = count == 1 && e->condition ? stand_in(s, e) : NULL;
        if (other)
            load_either(g, s, e, other);
        else if (has_one_condition(e, count))
            load_piece(g, s, e, count);
        else
            load_apart(g, s, e, count);
    }
}

void qn__wide_set_values(lower *g, const group *s, int point)
{
    for (int n = 0; n < s->n; n++) {
        const need *x = &s->need[n];
        if (x->point == point)
            qn__set(g, x->inst, x->part,
                    qn__to_register(g, g->k->inst[x->inst].type, s->element[x->order].value),
                    g->depth);
    }
}

void qn__wide_load_all(lower *g, group *s)
{
    qn__wide_load_elements(g, s);
    qn__wide_set_values(g, s, 0);
}

/* ---------------------------------------------------------------- stores */

static void store_bundle(lower *g, const group *s, const element *e, int count)
{
    qn__store_at(g, join(g, e, count), pointer_of(g, s, e), (unsigned)align_of(s, e, count));
}

static void store_piece(lower *g, const group *s, const element *e, int count)
{
    branch then = qn__begin_branch(g, e->condition);
    store_bundle(g, s, e, count);
    qn__end_branch(g, &then, NULL);
}

static void store_apart(lower *g, const group *s, const element *e, int count)
{
    branch x = qn__begin_choice(g, whole_condition(g, e, count), "whole", "apart");
    store_bundle(g, s, e, count);
    qn__begin_other(g, &x);
    for (int n = 0; n < count; n++)
        store_piece(g, s, &e[n], 1);
    qn__end_branch(g, &x, NULL);
}

void qn__wide_store_all(lower *g, const group *s)
{
    for (int n = 0, count; n < s->n_elements; n += count) {
        const element *e = &s->element[n];
        count = qn__wide_piece_at(s, n);
        if (has_one_condition(e, count))
            store_piece(g, s, e, count);
        else
            store_apart(g, s, e, count);
    }
}
