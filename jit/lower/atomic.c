/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic.c: atomic operations, relaxed. What the machine cannot do in one instruction is a loop
 * around compare-exchange. A launch that only one thread runs needs neither where nobody else meets
 * its elements: a load, the operation and a store. lower/atomic_lanes.c is about lanes.
 */
#include "jit/lower/atomic.h"
#include "jit/lower/hooks.h"

/* ---------------------------------------------------------------- values */

static LLVMTypeRef bits_like(lower *g, int dtype, LLVMValueRef v)
{
    return qn__as_many(qn__int_type(g, 8 * qn_dtype_bytes(dtype)), v);
}

/** The integer type whose bits an element of this type has. */
static int bits_type(int dtype)
{
    return qn__integer_of(8 * (int)qn_dtype_bytes(dtype), false);
}

LLVMValueRef qn__as_bits(lower *g, int dtype, LLVMValueRef v)
{
    return qn__lower_bitcast(g, bits_type(dtype), dtype, v);
}

LLVMValueRef qn__from_bits(lower *g, int dtype, LLVMValueRef v)
{
    return qn__lower_bitcast(g, dtype, bits_type(dtype), v);
}

/** f16 and bf16 are combined in f32 and rounded once, as everywhere. */
static LLVMValueRef combine_values(lower *g, int combine, int dtype, LLVMValueRef old,
                                   LLVMValueRef v)
{
    if (!qn__is_half(dtype))
        return qn__lower_combine(g, combine, dtype, old, v);
    LLVMValueRef x = qn__lower_cast(g, QN_F32, dtype, old), y = qn__lower_cast(g, QN_F32, dtype, v);
    return qn__lower_cast(g, dtype, QN_F32, qn__lower_combine(g, combine, QN_F32, x, y));
}

LLVMValueRef qn__updated(lower *g, const update *u, LLVMValueRef old, LLVMValueRef v,
                         LLVMValueRef expected)
{
    if (u->combine == QN_UPDATE)
        return qn__expression_of(g, u->of, old);
    if (u->combine == QN_COMBINE_EXCHANGE)
        return v;
    if (u->combine != QN_COMBINE_COMPARE_EXCHANGE)
        return combine_values(g, u->combine, u->dtype, old, v);
    LLVMValueRef is_same = LLVMBuildICmp(g->b, LLVMIntEQ, qn__as_bits(g, u->dtype, old),
                                         qn__as_bits(g, u->dtype, expected), "");
    return LLVMBuildSelect(g->b, is_same, v, old, "");
}

/* ---------------------------------------------------------------- one element */

/** The bits that were there, and whether they were the expected ones. */
static LLVMValueRef exchange_compare(lower *g, LLVMValueRef pointer, LLVMValueRef expected,
                                     LLVMValueRef v)
{
    return LLVMBuildAtomicCmpXchg(g->b, pointer, expected, v, LLVMAtomicOrderingMonotonic,
                                  LLVMAtomicOrderingMonotonic, false);
}

/** What no instruction does, floats, bool and expressions: a loop around compare-exchange with the
 * op table's meaning. An element that stays as it was found is not written. */
static LLVMValueRef update_by_exchange(lower *g, const update *u, LLVMValueRef pointer,
                                       LLVMValueRef v)
{
    LLVMTypeRef t = bits_like(g, u->dtype, v);
    LLVMValueRef first = qn__load_at(g, t, pointer, (unsigned)qn_dtype_bytes(u->dtype));
    qn__make_relaxed(g, first);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), again = qn__new_block(g, "again"),
                      differs = qn__new_block(g, "differs"), done = qn__new_block(g, "done");
    LLVMBuildBr(g->b, again);
    LLVMPositionBuilderAtEnd(g->b, again);
    carry expected = {.of = NULL};
    LLVMValueRef found = first;
    qn__carry(g, &expected, &found, 1);
    const LLVMValueRef old = found;
    LLVMValueRef new = qn__updated(g, u, qn__from_bits(g, u->dtype, old), v, NULL);
    new = qn__as_bits(g, u->dtype, new);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, new, old, ""), done, differs);
    LLVMPositionBuilderAtEnd(g->b, differs);
    LLVMValueRef pair = exchange_compare(g, pointer, old, new);
    found = LLVMBuildExtractValue(g->b, pair, 0, "");
    qn__carry_close(&expected, before, LLVMGetInsertBlock(g->b));
    qn__carry_end(&expected);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, pair, 1, ""), done, again);
    LLVMPositionBuilderAtEnd(g->b, done);
    return qn__from_bits(g, u->dtype, old);
}

static LLVMValueRef update_plain(lower *g, const update *u, LLVMValueRef pointer, LLVMValueRef v,
                                 LLVMValueRef expected)
{
    unsigned align = (unsigned)qn_dtype_bytes(u->dtype);
    LLVMValueRef bits = qn__load_at(g, bits_like(g, u->dtype, v), pointer, align);
    LLVMValueRef old = qn__from_bits(g, u->dtype, bits);
    LLVMValueRef new = qn__updated(g, u, old, v, expected);
    qn__store_at(g, qn__as_bits(g, u->dtype, new), pointer, align);
    return old;
}

/** The instruction of a reducer, on integers. */
typedef struct rmw {
    LLVMAtomicRMWBinOp of_signed, of_unsigned;
    bool is_there;
} rmw;
static const rmw rmws[QN_N_COMBINES] = {
#define WORDS(s, u)                                                                                \
    {                                                                                              \
        LLVMAtomicRMWBinOp##s, LLVMAtomicRMWBinOp##u, true                                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        0                                                                                          \
    }
#define QN_REDUCER(NAME, number, text, is_reduction, is_atomic, classes, op, neutral, rmw, ...)    \
    [number] = rmw,
#include "quern/reducers.def"
#undef QN_REDUCER
#undef NONE
#undef WORDS
};

LLVMValueRef qn__update_element(lower *g, const update *u, LLVMValueRef pointer, LLVMValueRef v,
                                LLVMValueRef expected)
{
    int dtype = u->dtype, combine = u->combine;
    bool is_signed = qn__dtype_class(dtype) == QN_CLASS_S,
         is_float = qn__dtype_class(dtype) == QN_CLASS_F;
    if (u->is_plain)
        return update_plain(g, u, pointer, v, expected);
    if (combine == QN_COMBINE_COMPARE_EXCHANGE) {
        LLVMValueRef pair =
            exchange_compare(g, pointer, qn__as_bits(g, dtype, expected), qn__as_bits(g, dtype, v));
        return qn__from_bits(g, dtype, LLVMBuildExtractValue(g->b, pair, 0, ""));
    }
    bool is_native = g->f->target->has_f64_sums && combine == QN_COMBINE_SUM &&
                     dtype == QN_F64; /* that of f32 flushes to zero */
    if (is_native)
        return LLVMBuildAtomicRMW(g->b, LLVMAtomicRMWBinOpFAdd, pointer, v,
                                  LLVMAtomicOrderingMonotonic, false);
    if (combine == QN_UPDATE || ((is_float || dtype == QN_BOOL) && combine != QN_COMBINE_EXCHANGE))
        return update_by_exchange(g, u, pointer, v);
    const rmw *op = &rmws[combine];
    if (!op->is_there)
        return update_by_exchange(g, u, pointer, v);
    LLVMValueRef old =
        LLVMBuildAtomicRMW(g->b, is_signed ? op->of_signed : op->of_unsigned, pointer,
                           qn__as_bits(g, dtype, v), LLVMAtomicOrderingMonotonic, false);
    return qn__from_bits(g, dtype, old);
}

/* ---------------------------------------------------------------- plain or locked */

LLVMValueRef qn__update_as_needed(lower *g, uint32_t i, const expression *e, emit_update *emit,
                                  const void *of)
{
    update u = {.inst = i,
                .of = e,
                .dtype = g->k->inst[i].type,
                .combine = g->k->inst[i].sub,
                .is_used = qn__is_used(g->k, i)};
    if (!g->alone) {
        u.is_plain = g->block->atomics == QN_ATOMICS_OF_ONE;
        LLVMValueRef v = emit(g, &u, of);
        return u.is_used ? v : NULL;
    }
    branch x = qn__begin_choice(g, g->alone, "alone", "together");
    u.is_plain = true;
    LLVMValueRef old[2] = {emit(g, &u, of), NULL};
    qn__begin_other(g, &x);
    u.is_plain = false;
    old[1] = emit(g, &u, of);
    qn__end_branch(g, &x, NULL);
    return u.is_used ? qn__join(g, &x, old[0], old[1]) : NULL;
}

/* ---------------------------------------------------------------- one lane */

/** Where one update goes, and its operands. */
typedef struct single {
    LLVMValueRef pointer, value, expected;
} single;

static LLVMValueRef update_at(lower *g, const update *u, const single *s)
{
    bool may_combine = g->hooks->combine && !u->is_used && !u->is_plain;
    if (may_combine && g->hooks->combine(g, u->combine, u->dtype, s->pointer, s->value))
        return NULL;
    qn__expression_take(g, u->of, NULL);
    return qn__update_element(g, u, s->pointer, s->value, s->expected);
}

static LLVMValueRef emit_single(lower *g, const update *u, const void *of)
{
    const single *s = of;
    LLVMValueRef own =
        g->hooks->place_in_block ? g->hooks->place_in_block(g, u->inst, s->pointer) : NULL;
    const single in_block = {own, s->value, s->expected};
    if (!own || !g->collects)
        return update_at(g, u, own ? &in_block : s);
    branch x = qn__begin_choice(g, g->collects, "collect", "update");
    update_at(g, u, &in_block);
    qn__begin_other(g, &x);
    update_at(g, u, s);
    qn__end_branch(g, &x, NULL);
    return NULL;
}

static LLVMValueRef update_single(lower *g, uint32_t i, int p, const check *c, const expression *e)
{
    const qn_inst *inst = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    int n = qn__n_indices(g->k, i);
    single s = {.value = qn__is_update(inst) ? LLVMConstNull(qn__scalar_type(g, inst->type))
                                             : qn__scalar(g, arg[n], p),
                .expected = inst->n_args > n + 1 ? qn__scalar(g, arg[n + 1], p) : NULL};
    bool is_one_branch = !g->mask[p] && qn__is_one_branch(g, i);
    if (!is_one_branch)
        qn__report(g, i, p, c);
    LLVMValueRef condition = c->is_needed ? qn__mask_and(g, g->mask[p], c->ok) : g->mask[p];
    if (g->is_team)
        condition = qn__mask_and(g, condition, g->hooks->team_begin(g));
    branch then = is_one_branch ? qn__begin_checked(g, c) : qn__begin_branch(g, condition);
    address x = qn__displaced(g, i, p, c);
    s.pointer = x.pointer;
    LLVMValueRef old = qn__update_as_needed(g, i, e, emit_single, &s);
    old = old ? old : LLVMConstNull(LLVMTypeOf(s.value));
    if (is_one_branch) {
        qn__end_checked(g, &then, i, p);
        old = qn__join(g, &then, old, LLVMConstNull(LLVMTypeOf(old)));
    } else
        old = qn__end_branch(g, &then, old);
    if (!g->is_team)
        return old;
    g->hooks->team_end(g);
    return g->hooks->team_same(g, old);
}

uint32_t qn__lower_atomic(lower *g, uint32_t i, uint32_t end)
{
    uint32_t last = qn__update_group(g, i, end);
    if (last)
        return last;
    FOR_PARTS (g, p) {
        expression e;
        if (!qn__expression_open(g, &e, i, p))
            return i;
        check c = qn__make_check(g, i, p);
        qn__set(g, i, p,
                g->width == 1 ? update_single(g, i, p, &c, &e) : qn__update_lanes(g, i, p, &c, &e),
                g->depth);
        qn__expression_close(&e);
    }
    return i;
}
