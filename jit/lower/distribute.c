/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribute.c: the function of a piece that has two parts (schedule/piece.h): loops over the
 * dimensions of the first part, the last of them in blocks; in a block it calls the function of the
 * first part, which leaves the results of the reduces in the frame, and then that of the rest.
 * Between them it looks whether the launch was cancelled: a part that left early has not written
 * all results. The function of a piece that is cut calls those of its sections, and of sections of
 * these, each with what it is to do of them.
 */
#include "jit/lower/nest.h"
#include "jit/schedule/piece.h"

#include <stdio.h>

typedef struct caller {
    lower *g;
    const qn_piece *p;
    const char *symbol;                       /* of the piece */
    LLVMValueRef slots, range[2];             /* in the frame */
    LLVMValueRef result[QN_MOST_DISTRIBUTED]; /* arrays in the frame */
    LLVMValueRef scratch;                     /* a word; NULL: there is none */
} caller;

static void set_word(lower *g, LLVMValueRef array, int64_t n, LLVMValueRef v)
{
    qn__store_at(g, v, qn__ahead(g, array, n * (int64_t)sizeof(int64_t)), 8);
}

/** The part of dimension d that this call is to do. */
static span range_of(const caller *c, int d)
{
    lower *g = c->g;
    int at = d == c->p->split_dim ? 0 : d == c->p->second_dim ? qn__second_word(0) : -1;
    return at < 0 ? (span){g->begin[d], g->end[d]}
                  : (span){qn__range_word(g, at), qn__range_word(g, at + 1)};
}

static void copy_slots(const caller *c)
{
    lower *g = c->g;
    loop l;
    if (g->f->n_slots == 0)
        return;
    qn__loop_times(g, &l, g->f->n_slots);
    LLVMValueRef from = qn__gep(g, g->i64, g->slots, l.index),
                 to = qn__gep(g, g->i64, c->slots, l.index);
    qn__store_at(g, qn__load_at(g, g->i64, from, 8), to, 8);
    qn__loop_close(g, &l);
}

/** Where part n finds its ranges, for one index of the outer dimensions and a block of the last
 * one. */
static void set_range(const caller *c, int n, const span *block)
{
    lower *g = c->g;
    const qn_piece *part = c->p->part[n];
    int at = 2;
    span s = part->split_dim < 0                               ? *block
             : part->split_dim == c->p->distribution.block_dim ? *block
                                                               : range_of(c, part->split_dim);
    set_word(g, c->range[n], 0, s.low);
    set_word(g, c->range[n], 1, s.high);
    for (int d = 0; d < part->kernel->n_dims; d++)
        if (qn__dim_kind(part->kernel, d) == QN_DIM_SEQUENTIAL) {
            set_word(g, c->range[n], at++, g->iv[d]);
            set_word(g, c->range[n], at++, LLVMBuildAdd(g->b, g->iv[d], qn__const_i64(g, 1), ""));
        }
    if (part->second_dim >= 0) {
        s = range_of(c, part->second_dim);
        set_word(g, c->range[n], at++, s.low);
        set_word(g, c->range[n], at++, s.high);
    }
    if (c->scratch)
        set_word(g, c->range[n], at, c->scratch);
}

/** Sets the data pointers of the results: index 0 of a view would be so far before the array. */
static void set_results(const caller *c, LLVMValueRef low)
{
    lower *g = c->g;
    for (int n = 0; n < c->p->distribution.n; n++) {
        int64_t bytes = qn_dtype_bytes(g->k->inst[c->p->distribution.reduce[n]].type);
        LLVMValueRef before = LLVMBuildMul(g->b, low, qn__const_i64(g, bytes), "");
        LLVMValueRef at = LLVMBuildPtrToInt(g->b, c->result[n], g->i64, "");
        set_word(g, c->slots, g->f->n_slots + n, LLVMBuildSub(g->b, at, before, ""));
    }
}

static void call_part(const caller *c, int n, LLVMValueRef range)
{
    lower *g = c->g;
    LLVMValueRef args[3] = {c->slots, range, g->fault};
    char symbol[QN_PART_SYMBOL_BYTES];
    qn__part_symbol(c->symbol, n, symbol);
    LLVMValueRef function = LLVMGetNamedFunction(g->module, symbol);
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(function), function, args, 3, "");
}

static void call_both(const caller *c, span block)
{
    lower *g = c->g;
    bool passes_on =
        c->p->is_free && c->p->distribution.block_dim < 0; /* the rest takes our own ranges */
    set_results(c, block.low);
    set_range(c, 0, &block);
    if (!passes_on)
        set_range(c, 1, &block);
    call_part(c, 0, c->range[0]);
    if (g->f->plan.poll >= 0)
        qn__look(g);
    call_part(c, 1, passes_on ? g->range : c->range[1]);
}

static void emit_loops(const caller *c, int d)
{
    lower *g = c->g;
    const qn_distribution *x = &c->p->distribution;
    while (d < g->k->n_dims && !(x->dims >> d & 1))
        d++;
    if (x->block_dim < 0) {
        call_both(c, qn__up_to(g, qn__const_i64(g, 1)));
        return;
    }
    span s = range_of(c, d);
    loop l;
    if (qn__is_known_empty(s))
        return;
    if (d == x->block_dim) {
        LLVMValueRef n = qn__pieces_open(g, &l, s, qn__block_iterations(g->f));
        call_both(c, (span){l.index, LLVMBuildAdd(g->b, l.index, n, "")});
    } else {
        qn__loop_open(g, &l, s, 1, LOOP_MAY_BE_EMPTY);
        qn__set_index(g, d, l.index);
        emit_loops(c, d + 1);
    }
    qn__loop_close(g, &l);
}

enum { WORD_BYTES = sizeof(int64_t) };

/** What of a section this call is to do. */
static span range_of_section(const caller *c, const qn_section *s)
{
    lower *g = c->g;
    return qn__intersection(g, range_of(c, c->p->sections.dim),
                            (span){qn__const_i64(g, s->begin), qn__const_i64(g, s->end)});
}

static void call_sections(const caller *c);

/** Section n, or its own sections. */
static void call_section(const caller *c, int n)
{
    caller own = {.g = c->g, .p = c->p->part[n], .slots = c->slots, .scratch = c->scratch};
    char symbol[QN_PART_SYMBOL_BYTES];
    own.symbol = symbol;
    qn__part_symbol(c->symbol, n, symbol);
    if (own.p->sections.n)
        call_sections(&own);
    else
        call_part(c, n, c->g->range);
}

/** Where the threads divide the dimension that is cut, a section is given its own part of it. */
static void call_sections(const caller *c)
{
    lower *g = c->g;
    const qn_sections *s = &c->p->sections;
    LLVMValueRef outer = g->range,
                 own = s->dim == c->p->split_dim
                           ? qn__new_buffer(g, (uint64_t)WORD_BYTES * QN_RANGE_WORDS, LINE_BYTES)
                           : NULL;
    for (int n = 0; n < s->n; n++) {
        if (!own) {
            call_section(c, n);
        } else {
            span x = range_of_section(c, &s->of[n]);
            branch b = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntSLT, x.low, x.high, ""));
            set_word(g, own, 0, x.low);
            set_word(g, own, 1, x.high);
            if (c->scratch)
                set_word(g, own, 2, c->scratch);
            g->range = own;
            call_section(c, n);
            g->range = outer;
            qn__end_branch(g, &b, NULL);
        }
        if (g->f->plan.poll >= 0 && n + 1 < s->n)
            qn__look(g);
    }
}

void qn__part_symbol(const char *symbol, int n, char out[QN_PART_SYMBOL_BYTES])
{
    snprintf(out, QN_PART_SYMBOL_BYTES, "%s_%d", symbol, n + 1);
}

void qn__lower_parts(lower *g, const qn_piece *p, const char *symbol, int scratch_word)
{
    caller c = {.g = g, .p = p, .symbol = symbol, .slots = g->slots};
    uint64_t words = WORD_BYTES;
    if (scratch_word >= 0)
        c.scratch = qn__range_word(g, scratch_word);
    if (p->sections.n) {
        call_sections(&c);
        return;
    }
    c.slots = qn__new_buffer(g, words * (uint64_t)p->part[0]->facts.n_slots, LINE_BYTES);
    for (int n = 0; n < 2; n++)
        c.range[n] = qn__new_buffer(g, words * QN_RANGE_WORDS, LINE_BYTES);
    for (int n = 0; n < p->distribution.n; n++)
        c.result[n] = qn__new_buffer(g, words * (uint64_t)qn__block_iterations(g->f), LINE_BYTES);
    copy_slots(&c);
    emit_loops(&c, 0);
}
