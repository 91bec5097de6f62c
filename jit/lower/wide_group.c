/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_group.c: the elements that the accesses of a group need, each once, sorted, and which of
 * them follow one another from an aligned address on.
 */
#include "jit/lower/wide_group.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- what is known of an address */

/** The largest power of two up to QN_ACCESS_BYTES that divides n. */
static int64_t lowest_bit(int64_t n)
{
    n |= QN_ACCESS_BYTES;
    return n & -n;
}

/** Whether a value is the index of dimension d, where a thread begins: the first is known, and the
 * step of threads. */
static bool is_begin_of(const lower *g, const term *t, int d, int64_t *first)
{
    return d >= 0 && t->value == g->iv[d] && !t->stride && qn__is_const(g->begin[d], first);
}

/** What divides a stride that is no constant. */
static int64_t multiple_of(lower *g, const qn_param_fact *param, int rank, LLVMValueRef stride)
{
    for (int r = 0; stride && r < rank; r++) {
        const qn_fact *fact = &g->f->digit[param->dim[r].first_digit].stride;
        if (param->dim[r].n_digits == 1 && fact->kind == QN_FACT_DYNAMIC &&
            qn__fact(g, fact) == stride)
            return fact->multiple;
    }
    return 1;
}

/** What divides a number: that of a loop is known where the loop begins at a known one. */
static int64_t divisor_of(const lower *g, LLVMValueRef v)
{
    int64_t known;
    if (qn__is_const(v, &known))
        return lowest_bit(known);
    if (LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == LLVMAdd) {
        const int64_t a = divisor_of(g, LLVMGetOperand(v, 0)),
                      b = divisor_of(g, LLVMGetOperand(v, 1));
        return a < b ? a : b;
    }
    for (int at = g->depth; at > 0; at--)
        if (g->level[at].index == v)
            return g->level[at].multiple;
    return 1;
}

/** Fills align and rest of a base. */
static base describe(lower *g, uint32_t i, const address *x)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    base b = {.pointer = x->pointer, .align = INT64_C(1) << param->align};
    for (int n = 0; n < x->n_terms; n++) {
        const term *t = &x->term[n];
        const int64_t scale =
            qn__wrap_mul(t->scale, multiple_of(g, param, qn__n_indices(g->k, i), t->stride));
        int64_t bit = lowest_bit(qn__wrap_mul(scale, divisor_of(g, t->value))), first;
        if (is_begin_of(g, t, g->grid->wide_dim, &first)) {
            b.rest = qn__wrap_add(b.rest,
                                  qn__wrap_mul(t->scale, qn__wrap_sub(first, g->grid->wide_lead)));
            bit = lowest_bit(qn__wrap_mul(t->scale, g->grid->wide));
        } else if ((g->grid->is_crossed || (g->grid->skew && g->jam > 1)) &&
                   is_begin_of(g, t, g->grid->tall_dim, &first)) {
            b.rest = qn__wrap_add(b.rest,
                                  qn__wrap_mul(t->scale, qn__wrap_sub(first, g->grid->tall_lead)));
            bit = lowest_bit(qn__wrap_mul(t->scale, g->grid->tall));
        }
        for (int d = 0; d < g->k->n_dims; d++)
            if (g->multiple[d] && is_begin_of(g, t, d, &first)) {
                b.rest = qn__wrap_add(b.rest, qn__wrap_mul(t->scale, first));
                bit = lowest_bit(qn__wrap_mul(t->scale, g->multiple[d]));
            }
        b.align = bit < b.align ? bit : b.align;
    }
    b.rest &= b.align - 1;
    return b;
}

unsigned qn__wide_align(lower *g, uint32_t i, const address *x)
{
    const base b = describe(g, i, x);
    const int64_t bits = b.align | (b.rest + x->constant) | QN_ACCESS_BYTES;
    return (unsigned)(bits & -bits);
}

/** Room for one more of `n` elements of this size; false without memory. */
static bool make_room(void **array, int n, int *capacity, size_t bytes)
{
    if (n < *capacity)
        return true;
    int wanted = *capacity ? 2 * *capacity : 64;
    void *grown = qn__realloc(*array, (size_t)wanted * bytes);
    if (!grown)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

/** The number of a base, or -1 without memory. The neighbours of a point of a tiled view have a
 * base each. */
static int find_base(group *s, const base *b)
{
    for (int n = 0; n < s->n_bases; n++)
        if (s->base[n].pointer == b->pointer)
            return n;
    void *array = s->base;
    if (!make_room(&array, s->n_bases, &s->base_capacity, sizeof *s->base))
        return -1;
    s->base = array;
    s->base[s->n_bases] = *b;
    return s->n_bases++;
}

/* ---------------------------------------------------------------- elements */

bool qn__wide_add(lower *g, group *s, uint32_t i, int p, LLVMValueRef condition, unsigned edges)
{
    address x;
    qn__make_address(g, i, p, NULL, &x);
    base b = describe(g, i, &x);
    int dtype = qn__access_dtype(g->k, i), at = find_base(s, &b);
    if (at < 0)
        return false;
    void *array = s->need;
    if (!make_room(&array, s->n, &s->capacity, sizeof *s->need))
        return false;
    s->need = array;
    element e = {.base = at,
                 .bytes = (int)qn_dtype_bytes(dtype),
                 .at = x.constant,
                 .type = qn__memory_type(g, dtype),
                 .condition = condition,
                 .edges = condition ? edges : 0,
                 .is_constant = g->f->param[g->k->inst[i].imm].is_constant_memory != 0};
    s->need[s->n] = (need){i, p, s->n, 0, e};
    s->n++;
    return true;
}

void qn__wide_unite(lower *g, element *e, LLVMValueRef condition, unsigned edges)
{
    if (!e->condition || !condition) {
        e->condition = NULL;
        e->edges = 0;
    } else if (e->condition != condition) {
        e->condition = LLVMBuildOr(g->b, e->condition, condition, "");
        e->edges |= edges;
    }
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

bool qn__wide_sort(lower *g, group *s)
{
    s->element = qn__zalloc((size_t)s->n + 1, sizeof *s->element);
    if (!s->element)
        return false;
    qsort(s->need, (size_t)s->n, sizeof *s->need, compare_needs);
    for (int n = 0; n < s->n; n++) {
        element *last = s->n_elements ? &s->element[s->n_elements - 1] : NULL;
        const element *e = &s->need[n].e;
        if (!last || last->base != e->base || last->at != e->at || last->type != e->type) {
            s->element[s->n_elements++] = *e;
        } else {
            qn__wide_unite(g, last, e->condition, e->edges);
        }
        s->need[n].order = s->n_elements - 1;
    }
    return true;
}

int qn__wide_piece_at(const group *s, int n)
{
    const element *first = &s->element[n];
    const base *b = &s->base[first->base];
    int most = 1;
    for (int count = 2; count * first->bytes <= QN_ACCESS_BYTES; count *= 2) {
        int64_t bytes = (int64_t)count * first->bytes;
        if (bytes > b->align || ((b->rest + first->at) & (bytes - 1)) || n + count > s->n_elements)
            break;
        const element *last = &s->element[n + count - 1];
        bool follows =
            true; /* sorted: nothing else can stand between them, unless two types meet */
        for (int e = 1; e < count; e++)
            follows = follows && s->element[n + e].base == first->base &&
                      s->element[n + e].type == first->type &&
                      s->element[n + e].at == first->at + (int64_t)e * first->bytes;
        if (follows && last->base == first->base)
            most = count;
    }
    return most;
}

void qn__wide_release(group *s)
{
    qn__free(s->base);
    qn__free(s->need);
    qn__free(s->element);
}
