/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_wide.c: loads and stores of a thread that computes several iterations at once (plan->width, unroll, jam: the parts
 * of llvm_lower.h, each a scalar). All elements that are needed are collected first. An element that several iterations,
 * or several loads, need is loaded once; elements that follow one another from an aligned address on move together, up to 16
 * bytes with one instruction. So neighbours of a stencil, rows that overlap, and interleaved channels need no care.
 *
 * Obligations. (1) Nothing is loaded or stored but elements of iterations of the domain: where a thread reaches beyond an
 * edge, those parts have a mask, and what only they need is loaded under it. (2) Loads that may fail, and those of atomic
 * views, are not taken. (3) Loads are performed ahead of their place only if the launch writes no element of the view.
 */
#include "jit/llvm_wide.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BASES = 64, MOST_BYTES = 16 };

/** Addresses that differ by constants only: a pointer, and what is known of it: align x anything + rest. */
typedef struct base {
    LLVMValueRef pointer;
    int64_t align, rest;
} base;

/** An element at a constant distance from a base. */
typedef struct element {
    int base, bytes;
    int64_t at;
    LLVMTypeRef type;       /* in memory */
    LLVMValueRef condition; /* NULL: always */
    unsigned edges;         /* of g->edge: if all of these hold, the condition does */
    bool is_constant;       /* memory that the launch does not write */
    LLVMValueRef value;
} element;

/** A part of an instruction that needs an element. */
typedef struct need {
    uint32_t inst;
    int part, order;
    element e;
} need;

typedef struct group {
    base base[MOST_BASES];
    int n_bases;
    need *need;
    int n, capacity;
    element *element; /* different ones, sorted */
    int n_elements;
} group;

/* ---------------------------------------------------------------- what is known of an address */

static int64_t lowest_bit(int64_t n)
{
    return n ? n & -n : MOST_BYTES;
}

/** Whether a value is the index of dimension d, where a thread begins: the first is known, and the step of threads. */
static bool is_begin_of(const lower *g, const term *t, int d, int64_t *first)
{
    return d >= 0 && t->value == g->iv[d] && !t->stride && qn__is_const(g->begin[d], first);
}

/** Fills align and rest of a base. */
static base describe(const lower *g, uint32_t i, const address *x)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    base b = {.pointer = x->pointer, .align = INT64_C(1) << param->align};
    for (int n = 0; n < x->n_terms; n++) {
        const term *t = &x->term[n];
        int64_t bit = lowest_bit(t->scale), first;
        if (is_begin_of(g, t, g->p->lane_dim, &first)) {
            b.rest = qn__wrap_add(b.rest, qn__wrap_mul(t->scale, first - g->p->lead));
            bit = lowest_bit(qn__wrap_mul(t->scale, g->p->width));
        } else if (g->p->is_crossed && is_begin_of(g, t, g->p->jam_dim, &first)) {
            b.rest = qn__wrap_add(b.rest, qn__wrap_mul(t->scale, first - g->p->jam_lead));
            bit = lowest_bit(qn__wrap_mul(t->scale, g->p->jam));
        }
        b.align = bit < b.align ? bit : b.align;
    }
    b.rest &= b.align - 1;
    return b;
}

static int find_base(group *s, const base *b)
{
    for (int n = 0; n < s->n_bases; n++)
        if (s->base[n].pointer == b->pointer)
            return n;
    if (s->n_bases == MOST_BASES)
        return -1;
    s->base[s->n_bases] = *b;
    return s->n_bases++;
}

/* ---------------------------------------------------------------- elements */

/** Adds what part p of access i touches; false if there is no room. */
static bool add_need(lower *g, group *s, uint32_t i, int p, LLVMValueRef condition, unsigned edges)
{
    address x;
    qn__make_address(g, i, p, NULL, &x);
    base b = describe(g, i, &x);
    int dtype = qn__access_dtype(g->k, i), at = find_base(s, &b);
    if (at < 0)
        return false;
    if (s->n == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 64;
        need *grown = qn__realloc(s->need, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        s->need = grown;
        s->capacity = capacity;
    }
    element e = {.base = at, .bytes = (int)qn_dtype_bytes(dtype), .at = x.constant, .type = qn__memory_type(g, dtype),
                 .condition = condition, .edges = condition ? edges : 0,
                 .is_constant = g->f->param[g->k->inst[i].imm].is_constant_memory != 0};
    s->need[s->n] = (need){i, p, s->n, e};
    s->n++;
    return true;
}

static int compare_needs(const void *a, const void *b)
{
    const need *x = a, *y = b;
    if (x->e.base != y->e.base)
        return x->e.base < y->e.base ? -1 : 1;
    if (x->e.at != y->e.at)
        return x->e.at < y->e.at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool is_same(const element *a, const element *b)
{
    return a->base == b->base && a->at == b->at && a->type == b->type;
}

/** Sorts, and makes the list of different elements; need[n].order is the number of its element then. */
static bool sort_elements(lower *g, group *s)
{
    s->element = qn__zalloc((size_t)s->n + 1, sizeof *s->element);
    if (!s->element)
        return false;
    qsort(s->need, (size_t)s->n, sizeof *s->need, compare_needs);
    for (int n = 0; n < s->n; n++) {
        element *last = s->n_elements ? &s->element[s->n_elements - 1] : NULL;
        const element *e = &s->need[n].e;
        if (!last || !is_same(last, e)) {
            s->element[s->n_elements++] = *e;
        } else if (!last->condition || !e->condition) {
            last->condition = NULL;
            last->edges = 0;
        } else if (last->condition != e->condition) {
            last->condition = LLVMBuildOr(g->b, last->condition, e->condition, "");
            last->edges |= e->edges;
        }
        s->need[n].order = s->n_elements - 1;
    }
    return true;
}

/** How many elements from number n on move together. */
static int piece_at(const group *s, int n)
{
    const element *first = &s->element[n];
    const base *b = &s->base[first->base];
    int most = 1;
    for (int count = 2; count * first->bytes <= MOST_BYTES; count *= 2) {
        int64_t bytes = (int64_t)count * first->bytes;
        if (bytes > b->align || ((b->rest + first->at) & (bytes - 1)) || n + count > s->n_elements)
            break;
        const element *last = &s->element[n + count - 1];
        bool follows = true; /* sorted: nothing else can stand between them, unless two types meet */
        for (int e = 1; e < count; e++)
            follows = follows && s->element[n + e].base == first->base && s->element[n + e].type == first->type &&
                      s->element[n + e].at == first->at + (int64_t)e * first->bytes;
        if (follows && last->base == first->base)
            most = count;
    }
    return most;
}

/* ---------------------------------------------------------------- moving one piece */

static LLVMValueRef lane_number(const lower *g, int n)
{
    return LLVMConstInt(g->i32, (unsigned long long)n, false);
}

/** What a piece is in registers: elements of 4 and 8 bytes are those of a vector, smaller ones parts of words. */
static LLVMTypeRef piece_type(const lower *g, const element *e, int count)
{
    int bytes = e->bytes * count;
    if (e->bytes >= 4)
        return LLVMVectorType(e->type, (unsigned)count);
    if (bytes <= 4)
        return LLVMIntTypeInContext(g->context, (unsigned)bytes * 8);
    return LLVMVectorType(g->i32, (unsigned)bytes / 4);
}

static LLVMValueRef take(lower *g, const element *e, LLVMValueRef piece, int n)
{
    if (e->bytes >= 4)
        return LLVMBuildExtractElement(g->b, piece, lane_number(g, n), "");
    int each = 4 / e->bytes, shift = n % each * e->bytes * 8;
    bool has_words = LLVMGetTypeKind(LLVMTypeOf(piece)) == LLVMVectorTypeKind;
    LLVMValueRef word = has_words ? LLVMBuildExtractElement(g->b, piece, lane_number(g, n / each), "") : piece;
    if (shift)
        word = LLVMBuildLShr(g->b, word, LLVMConstInt(LLVMTypeOf(word), (unsigned)shift, false), "");
    return LLVMBuildTrunc(g->b, word, e->type, "");
}

/** `count` elements from e on as a piece. */
static LLVMValueRef join(lower *g, const element *e, int count)
{
    LLVMTypeRef t = piece_type(g, e, count);
    LLVMValueRef piece = LLVMConstNull(t), word = NULL;
    bool has_words = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    LLVMTypeRef word_type = has_words ? g->i32 : t;
    int each = e->bytes >= 4 ? 1 : 4 / e->bytes;
    for (int n = 0; n < count; n++) {
        if (e->bytes >= 4) {
            piece = LLVMBuildInsertElement(g->b, piece, e[n].value, lane_number(g, n), "");
            continue;
        }
        int shift = n % each * e->bytes * 8;
        LLVMValueRef v = LLVMBuildZExt(g->b, e[n].value, word_type, "");
        if (shift)
            v = LLVMBuildShl(g->b, v, LLVMConstInt(word_type, (unsigned)shift, false), "");
        word = n % each ? LLVMBuildOr(g->b, word, v, "") : v;
        if (has_words && n % each == each - 1)
            piece = LLVMBuildInsertElement(g->b, piece, word, lane_number(g, n / each), "");
    }
    return e->bytes < 4 && !has_words ? word : piece;
}

static LLVMValueRef pointer_of(lower *g, const group *s, const element *e)
{
    LLVMValueRef at = qn__const_i64(g, e->at), pointer = s->base[e->base].pointer;
    return e->at ? LLVMBuildGEP2(g->b, g->i8, pointer, &at, 1, "") : pointer;
}

static LLVMValueRef load_from(lower *g, const element *e, LLVMTypeRef t, LLVMValueRef pointer, int64_t align)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, t, pointer, "");
    LLVMSetAlignment(v, (unsigned)align);
    if (e->is_constant)
        qn__mark_invariant(g, v);
    return v;
}

/** What the address of a single element is known to be a multiple of. */
static int64_t align_of(const group *s, const element *e)
{
    const base *b = &s->base[e->base];
    int64_t bits = b->align | (b->rest + e->at) | e->bytes;
    return bits & -bits;
}

static void load_whole(lower *g, const group *s, element *e, int count)
{
    LLVMValueRef v = load_from(g, e, piece_type(g, e, count), pointer_of(g, s, e), (int64_t)count * e->bytes);
    for (int n = 0; n < count; n++)
        e[n].value = take(g, e, v, n);
}

/** All conditions of a piece at once. */
static LLVMValueRef whole_condition(lower *g, const element *e, int count)
{
    LLVMValueRef all = NULL;
    unsigned edges = 0;
    for (int n = 0; n < count; n++)
        edges |= e[n].edges;
    for (int n = 0; n < N_EDGES; n++)
        if (edges >> n & 1)
            all = qn__mask_and(g, all, g->edge[n]);
    return all;
}

/* ---------------------------------------------------------------- loads */

/** The nearest element of the same base that is loaded in any case, or NULL: it stands in for one that is not needed, and
 *  the load needs no branch. */
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

static void load_one(lower *g, const group *s, element *e)
{
    const element *other = e->condition ? stand_in(s, e) : NULL;
    if (!e->condition) {
        e->value = load_from(g, e, e->type, pointer_of(g, s, e), align_of(s, e));
    } else if (other) {
        LLVMValueRef apart = qn__const_i64(g, e->at - other->at), none = qn__const_i64(g, 0);
        LLVMValueRef by = LLVMBuildSelect(g->b, e->condition, apart, none, ""), at = qn__const_i64(g, other->at);
        LLVMValueRef pointer = LLVMBuildGEP2(g->b, g->i8, s->base[e->base].pointer, &by, 1, "");
        int64_t align = align_of(s, e) | align_of(s, other);
        e->value = load_from(g, e, e->type, LLVMBuildGEP2(g->b, g->i8, pointer, &at, 1, ""), align & -align);
    } else {
        branch then = qn__begin_branch(g, e->condition);
        e->value = qn__end_branch(g, &then, load_from(g, e, e->type, pointer_of(g, s, e), align_of(s, e)));
    }
}

static bool has_one_condition(const element *e, int count)
{
    for (int n = 1; n < count; n++)
        if (e[n].condition != e->condition)
            return false;
    return true;
}

/** A piece that is needed as a whole or not at all. */
static void load_if(lower *g, const group *s, element *e, int count)
{
    LLVMTypeRef t = piece_type(g, e, count);
    branch then = qn__begin_branch(g, e->condition);
    LLVMValueRef v = load_from(g, e, t, pointer_of(g, s, e), (int64_t)count * e->bytes);
    v = qn__end_branch(g, &then, v);
    for (int n = 0; n < count; n++)
        e[n].value = take(g, e, v, n);
}

/** A piece of which some elements may not be needed: whole where all are, else one by one. */
static void load_apart(lower *g, const group *s, element *e, int count)
{
    LLVMValueRef whole[MOST_BYTES];
    LLVMBasicBlockRef yes = qn__new_block(g, "whole"), no = qn__new_block(g, "apart"), after = qn__new_block(g, "loaded");
    LLVMBuildCondBr(g->b, whole_condition(g, e, count), yes, no);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, yes);
    load_whole(g, s, e, count);
    for (int n = 0; n < count; n++)
        whole[n] = e[n].value;
    LLVMBuildBr(g->b, after);
    LLVMPositionBuilderAtEnd(g->b, no);
    for (int n = 0; n < count; n++) {
        branch then = {0};
        if (e[n].condition)
            then = qn__begin_branch(g, e[n].condition);
        e[n].value = load_from(g, &e[n], e->type, pointer_of(g, s, &e[n]), align_of(s, &e[n]));
        if (e[n].condition)
            e[n].value = qn__end_branch(g, &then, e[n].value);
    }
    LLVMBasicBlockRef blocks[2] = {yes, LLVMGetInsertBlock(g->b)};
    LLVMBuildBr(g->b, after);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, after);
    for (int n = 0; n < count; n++) {
        LLVMValueRef values[2] = {whole[n], e[n].value};
        e[n].value = LLVMBuildPhi(g->b, e->type, "");
        LLVMAddIncoming(e[n].value, values, blocks, 2);
    }
}

static void load_all(lower *g, group *s)
{
    for (int n = 0, count; n < s->n_elements; n += count) {
        element *e = &s->element[n];
        count = piece_at(s, n);
        if (count == 1)
            load_one(g, s, e);
        else if (!whole_condition(g, e, count))
            load_whole(g, s, e, count);
        else if (has_one_condition(e, count))
            load_if(g, s, e, count);
        else
            load_apart(g, s, e, count);
    }
    for (int n = 0; n < s->n; n++) {
        const need *x = &s->need[n];
        LLVMValueRef v = s->element[x->order].value;
        qn__set(g, x->inst, x->part, qn__to_register(g, g->k->inst[x->inst].type, v), g->depth);
    }
}

static void release(group *s)
{
    qn__free(s->need);
    qn__free(s->element);
}

/** Whether access i is one of those that may move together. */
static bool is_taken(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    bool is_here = g->p->is_gpu && g->p->lane_dim >= 0;
    return is_here && !x->parent && !qn__is_checked(g->f, g->k, g->site[i]) && !(g->k->param[x->imm].traits & QN_ATOMIC);
}

/** Whether a load differs between the parts; others are left to be hoisted. */
static bool differs(const lower *g, uint32_t i)
{
    return g->a.value[i].shape != QN_UNIFORM || g->a.value[i].depends_jam;
}

/** Sides of a thread: parts that may be outside along the lanes, and along the jammed dimension. */
enum { SIDE_LANES = 1, SIDE_JAM = 2 };

/** First and last index of dimension e, with the parts that are outside the domain on these sides. */
static void whole_range(const lower *g, int e, int sides, int64_t *first, int64_t *last)
{
    bool is_jam = g->p->is_crossed && e == g->p->jam_dim && (sides & SIDE_JAM);
    bool is_lanes = e == g->p->lane_dim && (sides & SIDE_LANES);
    int64_t step = is_jam ? g->p->jam : is_lanes ? g->p->width : 1;
    *first = g->f->begin[e].value - (is_jam ? g->p->jam_lead : is_lanes ? g->p->lead : 0);
    *last = *first + (g->f->end[e].value - *first + step - 1) / step * step - 1;
}

/** Whether an index stays inside its dimension also in the parts that are outside the domain. */
static bool is_inside(const lower *g, const qn_affine *a, const qn_dim_fact *dim, int sides)
{
    int64_t low = a->constant, high = a->constant;
    if (a->sym[0] || a->sym[1] || a->constant < INT32_MIN || a->constant > INT32_MAX || dim->lower.kind != QN_FACT_EXACT || dim->extent.kind != QN_FACT_EXACT)
        return false;
    for (int e = 0; e < g->k->n_dims; e++) {
        int64_t first, last;
        if (!a->coef[e])
            continue;
        whole_range(g, e, sides, &first, &last);
        if (g->f->begin[e].kind != QN_FACT_EXACT || g->f->end[e].kind != QN_FACT_EXACT || last < first || a->coef[e] < -4 ||
            a->coef[e] > 4 || first < INT32_MIN || last > INT32_MAX)
            return false;
        low += a->coef[e] * (a->coef[e] > 0 ? first : last);
        high += a->coef[e] * (a->coef[e] > 0 ? last : first);
    }
    return low >= dim->lower.value && high < qn__wrap_add(dim->lower.value, dim->extent.value);
}

/** Whether a load may be performed for the parts that are outside on these sides too: elements of the view are there. */
static bool is_whole(const lower *g, uint32_t i, int sides)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    bool is_known = param->is_constant_memory;
    for (int r = 0; r < qn__n_indices(g->k, i) && is_known; r++)
        is_known = param->dim[r].n_digits == 0 || is_inside(g, &g->a.affine[qn__args(g->k, i)[r]], &param->dim[r], sides);
    return is_known;
}

static LLVMValueRef mask_of(lower *g, int p, int sides)
{
    return sides == SIDE_LANES ? g->side[0][p / g->jam_max]
           : sides == SIDE_JAM ? g->side[1][p % g->jam_max]
           : sides             ? g->tail_mask[p]
                               : NULL;
}

static unsigned edges_of(const lower *g, int p, int sides)
{
    unsigned all = g->edges[p];
    return (sides & SIDE_LANES ? all & 3u : 0) | (sides & SIDE_JAM ? all & 12u : 0);
}

/** The parts that need a load's value: of those that share it, all. */
static bool add_load(lower *g, group *s, uint32_t i)
{
    const int both = SIDE_LANES | SIDE_JAM;
    int needed = is_whole(g, i, both) ? 0 : is_whole(g, i, SIDE_LANES) ? SIDE_JAM : is_whole(g, i, SIDE_JAM) ? SIDE_LANES : both;
    FOR_PARTS(g, p)
    {
        if (qn__canonical_part(g, i, p) != p)
            continue;
        FOR_PARTS(g, q)
            if (qn__canonical_part(g, i, q) == p && !add_need(g, s, i, p, mask_of(g, q, needed), edges_of(g, q, needed)))
                return false;
    }
    return true;
}

/** Whether a load is one of these, and its address is known when the body begins: it is made of indices of the domain and of
 *  what the prologue gives. */
static bool is_ready(const lower *g, uint32_t i)
{
    if (g->k->inst[i].op != QN_I_LOAD || !is_taken(g, i) || !differs(g, i))
        return false;
    for (int r = 0; r < qn__n_indices(g->k, i); r++) {
        const qn_affine *a = &g->a.affine[qn__args(g->k, i)[r]];
        if (a->sym[0] >= g->k->body || a->sym[1] >= g->k->body)
            return false;
    }
    return true;
}

void qn__wide_begin(lower *g)
{
    group s = {0};
    bool ok = g->p->is_gpu && g->p->lane_dim >= 0;
    g->stored_end = 0;
    for (uint32_t n = 0; n < g->k->n_accesses && ok; n++) {
        uint32_t i = g->k->access[n].inst;
        if (is_ready(g, i) && g->f->param[g->k->inst[i].imm].is_constant_memory)
            ok = add_load(g, &s, i);
    }
    if (ok && s.n && sort_elements(g, &s)) /* else each is loaded in its place */
        load_all(g, &s);
    release(&s);
}

static bool is_loaded(const lower *g, uint32_t i)
{
    bool is_there = g->value[i].is_set;
    FOR_PARTS(g, p)
        is_there = is_there && g->value[i].part[qn__canonical_part(g, i, p)];
    return is_there;
}

/** The load at i, and those that follow before anything is written. */
static bool add_loads(lower *g, group *s, uint32_t i)
{
    bool ok = add_load(g, s, i);
    for (uint32_t j = i + 1; ok && j < g->k->n_insts; j++) {
        if (g->k->inst[j].op != QN_I_LOAD && !qn__is_pure(&g->k->inst[j]))
            break;
        if (is_ready(g, j) && !is_loaded(g, j))
            ok = add_load(g, s, j);
    }
    return ok;
}

bool qn__wide_load(lower *g, uint32_t i)
{
    if (!is_taken(g, i) || !differs(g, i))
        return false;
    if (is_loaded(g, i))
        return true;
    group s = {0};
    if (add_loads(g, &s, i) && sort_elements(g, &s))
        load_all(g, &s);
    else
        g->failed = true;
    release(&s);
    return true;
}

/* ---------------------------------------------------------------- stores */

static void store_to(lower *g, const group *s, const element *e, LLVMValueRef v, int64_t align)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, v, pointer_of(g, s, e)), (unsigned)align);
}

static void store_one(lower *g, const group *s, const element *e)
{
    branch then = {0};
    if (e->condition)
        then = qn__begin_branch(g, e->condition);
    store_to(g, s, e, e->value, align_of(s, e));
    if (e->condition)
        qn__end_branch(g, &then, NULL);
}

static void store_apart(lower *g, const group *s, const element *e, int count)
{
    LLVMBasicBlockRef yes = qn__new_block(g, "whole"), no = qn__new_block(g, "apart"), after = qn__new_block(g, "stored");
    LLVMBuildCondBr(g->b, whole_condition(g, e, count), yes, no);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, yes);
    store_to(g, s, e, join(g, e, count), (int64_t)count * e->bytes);
    LLVMBuildBr(g->b, after);
    LLVMPositionBuilderAtEnd(g->b, no);
    for (int n = 0; n < count; n++)
        store_one(g, s, &e[n]);
    LLVMBuildBr(g->b, after);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, after);
}

static void store_all(lower *g, const group *s)
{
    for (int n = 0, count; n < s->n_elements; n += count) {
        const element *e = &s->element[n];
        count = piece_at(s, n);
        if (count == 1)
            store_one(g, s, e);
        else if (!whole_condition(g, e, count))
            store_to(g, s, e, join(g, e, count), (int64_t)count * e->bytes);
        else
            store_apart(g, s, e, count);
    }
}

/** The stores from i on that may be done together: to one view, with nothing but arithmetic between them. Ends after the last. */
static uint32_t end_of_stores(const lower *g, uint32_t i)
{
    uint32_t end = i + 1;
    for (uint32_t j = i + 1; j < g->k->n_insts; j++) {
        const qn_inst *x = &g->k->inst[j];
        bool is_store = x->op == QN_I_STORE && x->imm == g->k->inst[i].imm && is_taken(g, j);
        if (!is_store && !qn__is_pure(x))
            break;
        end = is_store ? j + 1 : end;
    }
    return end;
}

/** What part p of a store writes. */
static LLVMValueRef stored_value(lower *g, uint32_t i, int p)
{
    uint32_t value = qn__args(g->k, i)[g->k->inst[i].n_args - 1];
    return qn__to_memory(g, qn__access_dtype(g->k, i), qn__scalar(g, value, p));
}

bool qn__wide_store(lower *g, uint32_t i)
{
    group s = {0};
    bool ok = is_taken(g, i);
    if (!ok || i < g->stored_end)
        return ok;
    g->stored_end = end_of_stores(g, i);
    for (uint32_t j = i; j < g->stored_end; j++)
        FOR_PARTS(g, p)
            if (ok && g->k->inst[j].op == QN_I_STORE)
                ok = add_need(g, &s, j, p, g->mask[p], g->edges[p]);
    if (ok && sort_elements(g, &s)) {
        for (int n = 0; n < s.n; n++) /* of those that write one element, the last */
            s.element[s.need[n].order].value = stored_value(g, s.need[n].inst, s.need[n].part);
        store_all(g, &s);
    } else {
        g->failed = true;
    }
    release(&s);
    return true;
}
