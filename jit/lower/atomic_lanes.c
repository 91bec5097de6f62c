/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_lanes.c: atomics of several lanes. Two lanes may meet in one element, so each has its
 * turn, in order; what differs between lanes goes through memory of the frame, from where an
 * instruction of one lane takes it as an operand. Lanes that are consecutive elements are one
 * vector where nobody else meets these; lanes that all add to one element are combined first.
 */
#include "jit/lower/atomic.h"

/** Lanes of a vector, and of all atomics of a body, that are emitted without a loop. */
enum { MOST_STRAIGHT = 16, MOST_STRAIGHT_LANES = 64 };

/** One atomic of one part. */
typedef struct lanes {
    uint32_t inst;
    int p;
    const check *c;
    address x;
    LLVMValueRef value, expected; /* of all lanes; expected: NULL if nothing is compared */
    LLVMValueRef mask;            /* lanes that are active; NULL: all */
} lanes;

/* ---------------------------------------------------------------- operands */

/** One of a few buffers for vectors, made when first needed. */
enum { BUFFER_OFFSETS, BUFFER_VALUES, BUFFER_EXPECTED, BUFFER_RESULTS };
static LLVMValueRef lane_buffer(lower *g, int which)
{
    if (!g->lane_buffer[which])
        g->lane_buffer[which] =
            qn__new_buffer(g, (uint64_t)(MOST_LANE_BYTES * g->block->width), LINE_BYTES);
    return g->lane_buffer[which];
}

operand qn__keep_lanes(lower *g, LLVMValueRef buffer, LLVMValueRef bits)
{
    operand o = {.buffer = buffer, .type = LLVMGetElementType(LLVMTypeOf(bits))};
    o.align = LLVMGetIntTypeWidth(o.type) / 8;
    qn__store_at(g, bits, o.buffer, 64);
    return o;
}

static LLVMValueRef place_of(lower *g, const operand *o, LLVMValueRef lane)
{
    return qn__gep(g, o->type, o->buffer, lane);
}

static LLVMValueRef lane_of(lower *g, const operand *o, LLVMValueRef lane)
{
    if (o->lanes)
        return LLVMBuildExtractElement(g->b, o->lanes, lane, "");
    return o->buffer ? qn__load_at(g, o->type, place_of(g, o, lane), o->align) : o->scalar;
}

/** An operand of the instruction: as bits in memory if it differs between lanes. */
static operand keep_value(lower *g, int which, uint32_t value, int p, int dtype)
{
    if (g->a.value[value].shape == QN_UNIFORM)
        return (operand){.scalar = qn__as_bits(g, dtype, qn__scalar(g, value, p))};
    return qn__keep_lanes(g, lane_buffer(g, which), qn__as_bits(g, dtype, qn__vector(g, value, p)));
}

/** What the lanes of an atomic bring to their turns. */
static run keep_operands(lower *g, const update *u, const lanes *l)
{
    const uint32_t *arg = qn__args(g->k, l->inst) + qn__n_indices(g->k, l->inst);
    run r = {.u = *u};
    if (!qn__is_update(&g->k->inst[l->inst]))
        r.values = keep_value(g, BUFFER_VALUES, arg[0], l->p, u->dtype);
    else
        r.values.scalar = LLVMConstNull(qn__int_type(g, 8 * qn_dtype_bytes(u->dtype)));
    if (l->expected)
        r.expected = keep_value(g, BUFFER_EXPECTED, arg[1], l->p, u->dtype);
    return r;
}

/* Offsets of lanes that are emitted one by one stay in a register: an element waits longer for an
 * address that was stored as one of a vector. */
void qn__keep_offsets(lower *g, turns *t)
{
    LLVMValueRef offsets = t->x->scaled ? t->x->scaled : t->x->lanes;
    if (t->x->kind == ADDRESS_LANES)
        t->offset = t->is_straight ? (operand){.lanes = offsets}
                                   : qn__keep_lanes(g, lane_buffer(g, BUFFER_OFFSETS), offsets);
}

static LLVMValueRef lane_pointer(lower *g, const turns *t, LLVMValueRef lane)
{
    const address *x = t->x;
    LLVMTypeRef unit = x->scaled ? qn__int_type(g, x->scale * 8) : g->i8;
    if (x->kind == ADDRESS_LANES)
        return qn__gep(g, unit, x->pointer, lane_of(g, &t->offset, lane));
    if (x->kind == ADDRESS_UNIFORM)
        return x->pointer;
    LLVMValueRef base = x->kind == ADDRESS_REVERSED
                            ? qn__ahead(g, x->pointer, (g->width - 1) * -x->lane_bytes)
                            : x->pointer;
    return qn__gep(g, g->i8, base, LLVMBuildMul(g->b, lane, qn__const_i64(g, x->lane_bytes), ""));
}

/* ---------------------------------------------------------------- each in its turn */

static void take_turn(lower *g, const turns *t, LLVMValueRef lane)
{
    LLVMValueRef first = NULL;
    for (int n = 0; n < t->n; n++) {
        const run *r = &t->of[n];
        const int dtype = r->u.dtype;
        LLVMValueRef v = qn__from_bits(g, dtype, lane_of(g, &r->values, lane)), expected = NULL;
        if (r->u.of)
            qn__expression_take(g, r->u.of, lane);
        if (r->expected.scalar || r->expected.buffer)
            expected = qn__from_bits(g, dtype, lane_of(g, &r->expected, lane));
        first = first ? first : lane_pointer(g, t, lane);
        LLVMValueRef at = r->constant ? qn__ahead(g, first, r->constant) : first,
                     old = qn__update_element(g, &r->u, at, v, expected);
        if (t->results.buffer)
            qn__store_at(g, qn__as_bits(g, dtype, old), place_of(g, &t->results, lane),
                         t->results.align);
    }
}

void qn__take_turns(lower *g, const turns *t)
{
    loop each;
    for (int lane = 0; lane < g->width && t->is_straight; lane++)
        take_turn(g, t, qn__const_i64(g, lane));
    if (t->is_straight)
        return;
    qn__loop_times(g, &each, g->width);
    take_turn(g, t, each.index);
    qn__loop_close(g, &each);
}

static LLVMTypeRef bits_of_lanes(lower *g, const update *u)
{
    return qn__vector_of(g, qn__int_type(g, 8 * qn_dtype_bytes(u->dtype)));
}

/** Turns of one atomic. */
static turns open_turns(lower *g, const lanes *l, const run *r, bool is_straight)
{
    turns t = {.x = &l->x, .of = r, .n = 1, .is_straight = is_straight};
    if (r->u.is_used)
        t.results = qn__keep_lanes(g, lane_buffer(g, BUFFER_RESULTS),
                                   LLVMConstNull(bits_of_lanes(g, &r->u)));
    qn__keep_offsets(g, &t);
    return t;
}

static LLVMValueRef close_turns(lower *g, const turns *t)
{
    const update *u = &t->of->u;
    if (!u->is_used)
        return NULL;
    LLVMValueRef all = qn__load_at(g, bits_of_lanes(g, u), t->results.buffer, 64);
    return qn__from_bits(g, u->dtype, all);
}

/** Whether lanes are emitted one by one: not many in all, of a few instructions. */
static bool is_straight(const lower *g, const update *u)
{
    int n = 0;
    for (uint32_t i = g->k->body; i < g->k->n_insts; i++)
        n += g->k->inst[i].op == QN_I_ATOMIC ? (int)(g->k->inst[i].region[2] - i) : 0;
    return u->is_plain && !g->is_cold && g->width <= MOST_STRAIGHT &&
           n * g->width * g->unroll * g->jam <= MOST_STRAIGHT_LANES;
}

static LLVMValueRef update_all(lower *g, const update *u, const lanes *l)
{
    const run r = keep_operands(g, u, l);
    const turns t = open_turns(g, l, &r, is_straight(g, u));
    qn__take_turns(g, &t);
    return close_turns(g, &t);
}

/** Those lanes whose bit is set, lowest first; the others give zero. */
static LLVMValueRef update_some(lower *g, const update *u, const lanes *l)
{
    const run r = keep_operands(g, u, l);
    const turns t = open_turns(g, l, &r, false);
    LLVMValueRef all = qn__mask_bits(g, l->mask), zero = qn__const_i64(g, 0);
    all = LLVMBuildIntCast2(g->b, all, g->i64, false, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), turn = qn__new_block(g, "turn"),
                      done = qn__new_block(g, "done");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, all, zero, ""), turn, done);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, turn);
    carry lanes_left = {.of = NULL};
    qn__carry(g, &lanes_left, &all, 1);
    take_turn(g, &t, qn__first_set(g, all));
    all = LLVMBuildAnd(g->b, all, LLVMBuildSub(g->b, all, qn__const_i64(g, 1), ""), "");
    qn__carry_close(&lanes_left, before, LLVMGetInsertBlock(g->b));
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, all, zero, ""), turn, done);
    qn__carry_end(&lanes_left);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, done);
    return close_turns(g, &t);
}

/* ---------------------------------------------------------------- all at once */

/** Whether the lanes are consecutive elements that nobody else meets. */
static bool is_one_vector(const lower *g, const update *u, const lanes *l)
{
    bool has_masks = qn_dtype_bytes(u->dtype) >= g->f->target->least_masked;
    return u->is_plain && l->x.kind == ADDRESS_UNIT && (!l->mask || has_masks);
}

static LLVMValueRef update_vector(lower *g, const update *u, const lanes *l)
{
    qn__expression_take(g, u->of, NULL);
    unsigned align = (unsigned)qn_dtype_bytes(u->dtype);
    LLVMValueRef old = qn__load_masked(g, bits_of_lanes(g, u), l->x.pointer, align, l->mask);
    old = qn__from_bits(g, u->dtype, old);
    LLVMValueRef new = qn__updated(g, u, old, l->value, l->expected);
    qn__store_masked(g, qn__as_bits(g, u->dtype, new), l->x.pointer, align, l->mask);
    return old;
}

/** LLVM's intrinsics that combine the lanes of a vector of integers: unsigned and signed. */
static const char *const folds[QN_N_COMBINES][2] = {
#define WORDS(s, u)                                                                                \
    {                                                                                              \
        "llvm.vector.reduce." #u, "llvm.vector.reduce." #s                                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        NULL                                                                                       \
    }
#define QN_REDUCER(NAME, number, text, is_reduction, is_atomic, classes, op, neutral, rmw, fold,   \
                   ...)                                                                            \
    [number] = fold,
#include "quern/reducers.def"
#undef QN_REDUCER
#undef NONE
#undef WORDS
};

/** Whether all lanes meet in one element in an operation whose order does not matter, and nobody
 * asks what was there. */
static bool is_one_sum(const lower *g, const update *u, const lanes *l)
{
    return l->x.kind == ADDRESS_UNIFORM && !l->mask && !u->is_used && u->combine != QN_UPDATE &&
           folds[u->combine][0] && qn__is_integer(u->dtype) && g->width > 1;
}

static LLVMValueRef update_sum(lower *g, const update *u, const lanes *l)
{
    bool is_signed = qn__dtype_class(u->dtype) == QN_CLASS_S;
    LLVMTypeRef t = LLVMTypeOf(l->value);
    LLVMValueRef vector = l->value,
                 sum = qn__call(g, folds[u->combine][is_signed], &t, 1, &vector, 1);
    qn__update_element(g, u, l->x.pointer, sum, NULL);
    return NULL;
}

/* ---------------------------------------------------------------- lanes of a part */

static LLVMValueRef update_masked(lower *g, const update *u, const lanes *l)
{
    if (is_one_vector(g, u, l))
        return update_vector(g, u, l);
    if (is_one_sum(g, u, l))
        return update_sum(g, u, l);
    return l->mask ? update_some(g, u, l) : update_all(g, u, l);
}

/** Lanes whose indices are tested: if all are in range, there are no masks. */
static LLVMValueRef update_checked(lower *g, const update *u, const lanes *l)
{
    lanes some = *l;
    branch x = qn__begin_choice(g, qn__every(g, l->c->ok), "whole", "part");
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(x.from));
    LLVMValueRef old[2] = {update_masked(g, u, l), NULL};
    qn__begin_other(g, &x);
    qn__note_fault(g, u->inst, l->p, LLVMBuildNot(g->b, l->c->ok, ""), QN_ERR_BOUNDS);
    some.mask = l->c->ok;
    old[1] = update_masked(g, u, &some);
    qn__end_branch(g, &x, NULL);
    return u->is_used ? qn__join(g, &x, old[0], old[1]) : NULL;
}

static LLVMValueRef emit_lanes(lower *g, const update *u, const void *of)
{
    const lanes *l = of;
    bool is_reported = l->c->is_needed && !l->c->is_clamped;
    return is_reported && l->c->is_vector && !g->mask[l->p] ? update_checked(g, u, l)
                                                            : update_masked(g, u, l);
}

LLVMValueRef qn__update_lanes(lower *g, uint32_t i, int p, const check *c, const expression *e)
{
    const qn_inst *inst = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    int n = qn__n_indices(g->k, i);
    lanes l = {.inst = i, .p = p, .c = c};
    l.value = qn__is_update(inst) ? LLVMConstNull(qn__lane_type(g, inst->type))
                                  : qn__vector(g, arg[n], p);
    bool is_whole = c->is_needed && !c->is_clamped && c->is_vector && !g->mask[p];
    if (!is_whole) {
        qn__report(g, i, p, c);
        l.mask = qn__access_mask(g, i, p, c);
    }
    l.expected = inst->n_args > n + 1 ? qn__vector(g, arg[n + 1], p) : NULL;
    l.x = qn__displaced(g, i, p, c);
    LLVMValueRef old = qn__update_as_needed(g, i, e, emit_lanes, &l);
    return old ? old : LLVMConstNull(LLVMTypeOf(l.value));
}
