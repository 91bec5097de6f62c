/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: loads from small tables (jit/schedule/table.c) without memory: registers hold the whole
 * view, which is loaded before the loops, or a constant array, and a permutation takes an element
 * for each lane. Any index is harmless here; that of a failing load is reported like others, and
 * gives zero.
 */
#include "jit/lower/hooks.h"
#include "jit/schedule/forms.h"

typedef struct table {
    uint32_t inst;
    int lanes, bits; /* of a register, of an element */
    int64_t extent;
    LLVMTypeRef element, type; /* of a register */
    LLVMValueRef index;        /* <lanes x i(bits)>, from 0 */
    const qn_elements *array;  /* a constant one; NULL: the view of load `inst` */
} table;

/** Register number n of a constant array. */
static LLVMValueRef array_register(lower *g, const table *t, int n)
{
    LLVMValueRef element[64];
    for (int l = 0; l < t->lanes; l++) {
        int64_t at = (int64_t)n * t->lanes + l;
        element[l] =
            at < t->extent ? qn__array_element(g, t->array, at) : LLVMConstNull(t->element);
    }
    return LLVMConstVector(element, (unsigned)t->lanes);
}

/** Register number n of the table, loaded as far out as possible: the view is not written. */
static LLVMValueRef table_register(lower *g, const table *t, int n)
{
    if (t->array)
        return array_register(g, t, n);
    LLVMValueRef base = qn__slot(g, g->f->param[g->k->inst[t->inst].imm].slot, g->ptr),
                 number = LLVMConstInt(g->i32, (unsigned)n, false);
    const bool is_integer = LLVMGetTypeKind(t->element) == LLVMIntegerTypeKind;
    sharing x;
    int at = 0;
    LLVMValueRef found =
        qn__memo_begin(g, &x, (memo_key){MEMO_TABLE, base, number, t->bits * 2 + is_integer}, &at);
    if (found)
        return found;
    const int64_t first = (int64_t)n * t->lanes;
    LLVMValueRef pointer = qn__ahead(g, base, first * t->bits / 8);
    uint64_t inside = 0;
    for (int l = 0; l < t->lanes; l++)
        inside |= (uint64_t)(first + l < t->extent) << l;
    found = qn__load_masked(g, t->type, pointer, (unsigned)t->bits / 8,
                            qn__lanes_of_bits(g, inside, t->lanes));
    return qn__memo_end(g, &x, found);
}

/** Elements of registers first to first + n - 1, by the low bits of the index. */
static LLVMValueRef look_up(lower *g, const table *t, int first, int n)
{
    if (n == 1 || (n == 2 && g->f->target->permutes_pairs)) {
        LLVMValueRef registers[2] = {NULL};
        for (int r = 0; r < n; r++)
            registers[r] = table_register(g, t, first + r);
        return g->hooks->permute(g, registers, n, t->index);
    }
    int half = 1;
    while (2 * half < n)
        half *= 2;
    LLVMValueRef low = look_up(g, t, first, half), high = look_up(g, t, first + half, n - half);
    LLVMTypeRef word = qn__int_type(g, t->bits);
    LLVMValueRef number = LLVMConstInt(word, (unsigned long long)(half * t->lanes), false);
    LLVMValueRef bit =
        LLVMBuildAnd(g->b, t->index, qn__constant_like(LLVMTypeOf(t->index), number), "");
    LLVMValueRef is_high = LLVMBuildICmp(g->b, LLVMIntNE, bit, LLVMConstNull(LLVMTypeOf(bit)), "");
    return LLVMBuildSelect(g->b, is_high, high, low, "");
}

LLVMValueRef qn__load_table(lower *g, uint32_t i, int p, const check *c)
{
    int registers = qn__table_registers(&g->a, i),
        lanes = registers ? qn__table_lanes(g->k, g->f, i) : 0;
    uint32_t arg = qn__args(g->k, i)[0];
    if (g->width == 1 || g->width > lanes || g->a.value[arg].shape != QN_VARYING)
        return NULL;
    const qn_dim_fact *dim = &g->f->param[g->k->inst[i].imm].dim[0];
    table t = {.inst = i,
               .lanes = lanes,
               .extent = dim->extent.value,
               .element = qn__memory_type(g, g->k->inst[i].type)};
    t.bits = 8 * (int)qn__access_bytes(g->k, i);
    t.type = LLVMVectorType(t.element, (unsigned)lanes);
    LLVMTypeRef word = qn__int_type(g, t.bits);
    if (c->is_clamped && c->position[0])
        t.index = t.bits < 64 ? LLVMBuildTrunc(g->b, c->position[0], qn__vector_of(g, word), "")
                              : c->position[0];
    else
        t.index = qn__vector_bits(g, arg, p, t.bits);
    if (dim->lower.value && !(c->is_clamped && c->position[0]))
        t.index = LLVMBuildSub(
            g->b, t.index,
            qn__const_splat(g, LLVMConstInt(word, (unsigned long long)dim->lower.value, false)),
            "");
    t.index = qn__resized(g, t.index, lanes);
    LLVMValueRef v = qn__resized(g, look_up(g, &t, 0, registers), g->width);
    return c->is_needed && c->is_vector
               ? LLVMBuildSelect(g->b, c->ok, v, LLVMConstNull(LLVMTypeOf(v)), "")
               : v;
}

LLVMValueRef qn__permute_array(lower *g, const qn_elements *a, LLVMValueRef index)
{
    int bytes = qn_dtype_bytes(a->dtype) == 8 ? 8 : 4,
        registers = qn__permuted_registers(g->f->target, bytes, a->n);
    table t = {
        .lanes = g->f->target->vector_bytes / bytes, .bits = 8 * bytes, .extent = a->n, .array = a};
    if (registers == 0 || g->width > t.lanes)
        return NULL;
    t.element = qn__array_element_type(g, a);
    t.type = LLVMVectorType(t.element, (unsigned)t.lanes);
    if (bytes == 8)
        index = LLVMBuildZExt(g->b, index, qn__vector_of(g, g->i64), "");
    t.index = qn__resized(g, index, t.lanes);
    return qn__resized(g, look_up(g, &t, 0, registers), g->width);
}
