/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.c: tables. Small ones are permutations of registers, which hold the whole of a view
 * (jit/schedule/table.c), loaded before the loops, or a constant array. Any index is harmless
 * there; that of a failing load is reported like others, and gives zero. A larger constant array is
 * gathered from constants behind the code, or without AVX-512 loaded for each lane; a scalar is
 * loaded from there. On a GPU an index that all threads share loads from constant memory; one that
 * differs loads from global memory, since constant memory gives the threads of a warp one address
 * after the other. An index that may be outside of an array is clamped first. Elements below 32
 * bits stand in 32, since nothing gathers less.
 */
#include "jit/lower/hooks.h"
#include "jit/schedule/forms.h"

#include <stdio.h>

/** What the elements of a constant array are in memory: of 32 bits at least. */
static LLVMTypeRef element_type(const lower *g, const qn_elements *a)
{
    return qn_dtype_bytes(a->dtype) < 4 ? g->i32 : qn__scalar_type(g, a->dtype);
}

static LLVMValueRef array_element(const lower *g, const qn_elements *a, int64_t i)
{
    return qn_dtype_bytes(a->dtype) < 4 ? LLVMConstInt(g->i32, a->bits[i] & 0xffffffffu, false)
                                        : qn__const_bits(g, a->dtype, a->bits[i]);
}

/* ---------------------------------------------------------------- in registers */

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
            at < t->extent ? array_element(g, t->array, at) : LLVMConstNull(t->element);
    }
    return LLVMConstVector(element, (unsigned)t->lanes);
}

/** Register number n of the table, loaded as far out as possible: the view is not written. */
static LLVMValueRef table_register(lower *g, const table *t, int n)
{
    if (t->array)
        return array_register(g, t, n);
    LLVMValueRef base = qn__slot(g, g->f->param[g->k->inst[t->inst].imm].slot, g->ptr),
                 number = qn__int(g->i32, n);
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
    LLVMValueRef number = qn__int(LLVMTypeOf(t->index), half * t->lanes),
                 bit = LLVMBuildAnd(g->b, t->index, number, "");
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
        t.index = LLVMBuildSub(g->b, t.index, qn__int(LLVMTypeOf(t.index), dim->lower.value), "");
    t.index = qn__resized(g, t.index, lanes);
    LLVMValueRef v = qn__resized(g, look_up(g, &t, 0, registers), g->width);
    return c->is_needed && c->is_vector
               ? LLVMBuildSelect(g->b, c->ok, v, LLVMConstNull(LLVMTypeOf(v)), "")
               : v;
}

/** Elements of constant array a, as in memory, at an index <g->width x i32> that is in it, by
 * permutation; NULL if registers do not hold it. */
static LLVMValueRef permute_array(lower *g, const qn_elements *a, LLVMValueRef index)
{
    int bytes = qn_dtype_bytes(a->dtype) == 8 ? 8 : 4,
        registers = qn__permuted_registers(g->f->target, bytes, a->n);
    table t = {
        .lanes = g->f->target->vector_bytes / bytes, .bits = 8 * bytes, .extent = a->n, .array = a};
    if (registers == 0 || g->width > t.lanes)
        return NULL;
    t.element = element_type(g, a);
    t.type = LLVMVectorType(t.element, (unsigned)t.lanes);
    if (bytes == 8)
        index = LLVMBuildZExt(g->b, index, qn__vector_of(g, g->i64), "");
    t.index = qn__resized(g, index, t.lanes);
    return qn__resized(g, look_up(g, &t, 0, registers), g->width);
}

/* ---------------------------------------------------------------- in memory */

/** The constants that lookup i looks in. */
static LLVMValueRef global_of(lower *g, uint32_t i)
{
    uint64_t n = g->k->inst[i].imm;
    const qn_elements *a = g->k->array[n];
    bool is_shared = g->a.value[qn__args(g->k, i)[0]].deps == 0;
    unsigned space = g->hooks->constant_space[is_shared];
    char name[32];
    snprintf(name, sizeof name,
             space != g->hooks->constant_space[true] ? "qn_table%d" : "qn_array%d", (int)n);
    LLVMValueRef found = LLVMGetNamedGlobal(g->module, name);
    if (found)
        return found;
    LLVMTypeRef element = element_type(g, a),
                type = LLVMArrayType2(element, (uint64_t)a->n);
    LLVMValueRef *values = qn__alloc((size_t)a->n * sizeof *values);
    found = LLVMAddGlobalInAddressSpace(g->module, type, name, space);
    for (int e = 0; values && e < a->n; e++)
        values[e] = array_element(g, a, e);
    LLVMSetInitializer(found, values ? LLVMConstArray2(element, values, (uint64_t)a->n)
                                     : LLVMConstNull(type));
    g->failed = g->failed || !values;
    qn__free(values);
    LLVMSetLinkage(found, LLVMInternalLinkage);
    LLVMSetGlobalConstant(found, true);
    LLVMSetAlignment(found, LINE_BYTES);
    return found;
}

/** An element as it stands in memory, as a value. */
static LLVMValueRef from_memory(lower *g, const qn_elements *a, LLVMValueRef v)
{
    return qn_dtype_bytes(a->dtype) >= 4
               ? v
               : LLVMBuildTrunc(g->b, v, qn__as_many(qn__scalar_type(g, a->dtype), v), "");
}

/** Loads one by one. Lookups at one index share the lanes that are taken out of the index; gathers
 * that LLVM turns into loads take the lanes out of addresses, which differ. */
static LLVMValueRef load_lanes(lower *g, uint32_t i, LLVMValueRef index)
{
    LLVMTypeRef element = element_type(g, qn__array_of(g->k, i));
    LLVMValueRef all = LLVMConstNull(qn__vector_of(g, element));
    for (int l = 0; l < (int)LLVMGetVectorSize(LLVMTypeOf(all)); l++) {
        LLVMValueRef wide = LLVMBuildSExt(g->b, qn__extract(g, index, l), g->i64, "");
        LLVMValueRef pointer = qn__gep(g, element, global_of(g, i), wide);
        all = qn__insert(g, all, LLVMBuildLoad2(g->b, element, pointer, ""), l);
    }
    return all;
}

static LLVMValueRef gather(lower *g, uint32_t i, LLVMValueRef index)
{
    const qn_elements *a = qn__array_of(g->k, i);
    LLVMTypeRef element = element_type(g, a), t = qn__vector_of(g, element);
    if (!g->f->target->has_gathers)
        return load_lanes(g, i, index);
    LLVMValueRef wide = LLVMBuildSExt(g->b, index, qn__vector_of(g, g->i64), "");
    LLVMValueRef pointers = qn__gep(g, element, global_of(g, i), wide);
    unsigned align = element == g->i32 ? 4 : (unsigned)qn_dtype_bytes(a->dtype);
    return qn__load_masked(g, t, pointers, align, NULL);
}

LLVMValueRef qn__lookup_index(lower *g, uint32_t i, int p)
{
    uint32_t index = qn__args(g->k, i)[0];
    if (g->width == 1 || g->a.value[i].shape != QN_VARYING)
        return qn__scalar(g, index, p);
    return qn__is_lookup_proved(g->k, i) ? qn__vector_bits(g, index, p, 32)
                                         : qn__vector(g, index, p);
}

LLVMValueRef qn__lower_lookup(lower *g, uint32_t i, LLVMValueRef index)
{
    const qn_elements *a = qn__array_of(g->k, i);
    bool is_vector = qn__is_vector(index);
    LLVMTypeRef t = LLVMTypeOf(index);
    if (!qn__is_lookup_proved(g->k, i)) /* the nearest element */
        index = qn__smax(g, qn__smin(g, index, qn__int(t, a->n - 1)), qn__int(t, 0));
    if (is_vector) {
        LLVMTypeRef narrow = LLVMVectorType(g->i32, LLVMGetVectorSize(LLVMTypeOf(index)));
        if (LLVMTypeOf(index) != narrow)
            index = LLVMBuildTrunc(g->b, index, narrow, "");
        LLVMValueRef permuted = permute_array(g, a, index);
        return from_memory(g, a, permuted ? permuted : gather(g, i, index));
    }
    LLVMTypeRef element = element_type(g, a);
    LLVMValueRef pointer = qn__gep(g, element, global_of(g, i), index);
    return from_memory(g, a, LLVMBuildLoad2(g->b, element, pointer, ""));
}
