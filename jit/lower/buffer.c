/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c: buffers of a schedule that hold copies of elements: where an element lies, and loads
 * that go through a buffer. What a fill leaves there is made in lower/fill.c.
 *
 * A copy in registers is the value of the load, at the level of the fill. Another one lies in the
 * frame, or in memory of the launch.
 */
#include "jit/lower/lower.h"

#include <string.h>

bool qn__buffers_open(lower *g)
{
    int n = g->schedule ? g->schedule->n_buffers : 0;
    g->filled = n ? qn__zalloc((size_t)n, sizeof *g->filled) : NULL;
    for (int b = 0; g->filled && b < n; b++)
        if (g->schedule->buffer[b].content == QN_CONTENT_COPY)
            qn__buffer_layout(g->scalar, g->schedule, b, &g->filled[b].layout);
    return g->filled || n == 0;
}

const qn_record_info *qn__record_of(const lower *g, uint32_t i)
{
    const uint16_t *record = g->value[i].record;
    int n = record[0] == record[1] ? record[0] : record[qn__is_rest(g)];
    return n ? &g->schedule->record[n - 1] : NULL;
}

void qn__go_through(lower *g, qn_node n, bool is_begin)
{
    const qn_schedule *s = g->schedule;
    const qn_node_info *l = qn__node(s, n);
    for (int tail = 0; tail < 2 && l->kind == QN_NODE_DO; tail++)
        for (int r = 0; r < s->n_records; r++) {
            const qn_record_info *x = &s->record[r];
            if (x->at.id != n.id || x->is_tail != tail)
                continue;
            bool is_through = is_begin && x->method == QN_METHOD_THROUGH &&
                              !(g->block->ends >> (x->index - 1) & 1);
            emitted *v = &g->value[x->inst];
            v->through[1] = is_through && g->filled[x->index - 1].has_rest ? x->index : 0;
            v->record[1] = (uint16_t)(r + 1);
            if (!tail) { /* and in the rest, if that has no record */
                v->through[0] = is_through ? x->index : 0;
                v->record[0] = v->record[1];
            }
        }
    for (qn_node c = l->child; c.id; c = qn__node(s, c)->next)
        qn__go_through(g, c, is_begin);
}

bool qn__is_rest(const lower *g)
{
    bool is_masked = false;
    FOR_PARTS (g, p)
        is_masked |= g->tail_mask[p] != NULL;
    return is_masked || g->width != g->block->width || g->unroll != g->block->unroll;
}

int qn__buffer_of(const lower *g, uint32_t i)
{
    const uint8_t *through = g->value[i].through;
    if (through[0] == through[1])
        return through[0] - 1;
    return through[qn__is_rest(g)] - 1;
}

/* ---------------------------------------------------------------- places */

/** A sum of terms: values that are scaled, and a constant. */
typedef struct place_sum {
    struct {
        LLVMValueRef value;
        int level;
        int64_t scale;
    } term[2 * QN_MOST_BUFFER_AXES];
    int n;
    int64_t constant;
} place_sum;

static void add_term(place_sum *x, LLVMValueRef value, int at, int64_t scale)
{
    int64_t known;
    int n = x->n;
    if (qn__is_const(value, &known)) {
        x->constant = qn__wrap_add(x->constant, qn__wrap_mul(known, scale));
        return;
    }
    for (; n > 0 && x->term[n - 1].level > at; n--) /* outermost level first */
        x->term[n] = x->term[n - 1];
    x->term[n].value = value;
    x->term[n].level = at;
    x->term[n].scale = scale;
    x->n++;
}

int64_t qn__buffer_distance(const qn_buffer_layout *l, int d, int64_t ahead)
{
    int64_t bytes = 0;
    for (int n = 0; n < l->n; n++)
        if (l->digit[n].d == d)
            bytes += ahead % l->digit[n].range / l->digit[n].weight * l->digit[n].bytes;
    return bytes;
}

/** Whether the index of dimension d is so many iterations, or a multiple of them, behind the begin
 * of the buffer: it is the index of a whole step of the block. */
static bool is_whole_step(const lower *g, int d, int64_t iterations)
{
    bool is_whole = g->jam_active == (UINT64_C(1) << g->jam_max) - 1;
    if (qn__begins_early(g->scalar, g->schedule, d))
        return false;
    if (d == g->block->lane_dim)
        return iterations == (int64_t)g->block->width * g->block->unroll &&
               (g->block->tail == QN_TAIL_NONE || g->block->tail == QN_TAIL_NARROWER ||
                !qn__is_rest(g));
    return is_whole && iterations == qn__jammed_step(g, d);
}

/** The distance of an index from the begin of the buffer. */
static LLVMValueRef relative_index(lower *g, const filled *b, int d, int64_t ahead, int *at)
{
    sharing x;
    *at = g->iv_level[d] > b->base_level[d] ? g->iv_level[d] : b->base_level[d];
    LLVMValueRef r = qn__memo_begin(g, &x, (memo_key){MEMO_PLACE, g->iv[d], b->base[d], ahead}, at);
    if (r)
        return r;
    r = LLVMBuildSub(g->b, g->iv[d], b->base[d], "");
    r = LLVMBuildAdd(g->b, r, qn__const_i64(g, ahead), "");
    return qn__memo_end(g, &x, r);
}

/** The digits of dimension d at an index, one by one. */
static void add_digits(lower *g, place_sum *x, const filled *b, int d, int64_t ahead)
{
    int first;
    LLVMValueRef r = relative_index(g, b, d, ahead, &first);
    for (int n = 0; n < b->layout.n; n++) {
        const qn_buffer_digit *digit = &b->layout.digit[n];
        LLVMValueRef v = r;
        int at = first;
        if (digit->d != d)
            continue;
        if (digit->range != INT64_MAX)
            v = qn__shared(g, MEMO_REMAINDER, v, qn__const_i64(g, digit->range), 0, &at);
        if (digit->weight != 1)
            v = qn__shared(g, MEMO_QUOTIENT, v, qn__const_i64(g, digit->weight), 0, &at);
        add_term(x, v, at, digit->bytes);
    }
}

/** What the index of dimension d for part p adds. */
static void add_dimension(lower *g, place_sum *x, const filled *b, int d, int p)
{
    const qn_buffer_digit *slowest = NULL;
    int64_t ahead = g->ahead[d] + qn__part_ahead(g, d, p);
    for (int n = 0; n < b->layout.n && !slowest; n++)
        if (b->layout.digit[n].d == d)
            slowest = &b->layout.digit[n];
    if (slowest->weight != 1 && g->iv[d] != b->base[d] && !is_whole_step(g, d, slowest->weight)) {
        add_digits(g, x, b, d, ahead);
        return;
    }
    x->constant += qn__buffer_distance(&b->layout, d, ahead);
    if (g->iv[d] == b->base[d])
        return;
    int64_t scale = slowest->bytes / slowest->weight;
    add_term(x, b->base[d], b->base_level[d], -scale);
    add_term(x, g->iv[d], g->iv_level[d], scale);
}

LLVMValueRef qn__buffer_pointer(lower *g, int buffer, int p)
{
    const filled *b = &g->filled[buffer];
    place_sum x = {.constant = b->layout.offset};
    LLVMValueRef pointer = b->memory;
    uint32_t done = 0;
    int at = 0;
    for (int n = 0; n < b->layout.n; n++) {
        int d = b->layout.digit[n].d;
        if (!(done >> d & 1))
            add_dimension(g, &x, b, d, p);
        done |= UINT32_C(1) << d;
    }
    for (int n = 0; n < x.n; n++) {
        at = x.term[n].level > at ? x.term[n].level : at;
        pointer = qn__element_pointer(g, pointer, x.term[n].value, at, x.term[n].scale);
    }
    return qn__ahead(g, pointer, x.constant);
}

/* ---------------------------------------------------------------- elements */

static bool is_vector(const lower *g, uint32_t i)
{
    return g->width > 1 && g->a.value[i].shape != QN_UNIFORM;
}

/** Alignment of what part of load i is in a buffer, which starts at a cache line. */
static unsigned alignment(const lower *g, uint32_t i)
{
    int64_t bytes = (is_vector(g, i) ? g->width : 1) * qn_dtype_bytes(g->k->inst[i].type);
    return (unsigned)(bytes > LINE_BYTES ? LINE_BYTES : bytes);
}

void qn__store_copy(lower *g, uint32_t i, LLVMValueRef v, LLVMValueRef pointer)
{
    v = qn__to_memory(g, g->k->inst[i].type, v);
    qn__store_at(g, v, pointer, alignment(g, i));
}

void qn__load_through(lower *g, int buffer, uint32_t i, int p)
{
    LLVMTypeRef t = qn__memory_type(g, g->k->inst[i].type);
    t = is_vector(g, i) ? qn__vector_of(g, t) : t;
    LLVMValueRef v = qn__load_at(g, t, qn__buffer_pointer(g, buffer, p), alignment(g, i));
    qn__set(g, i, p, qn__to_register(g, g->k->inst[i].type, v), g->depth);
}
