/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.c: types and constants, levels, and derived values that are shared at a level. See
 * lower/lower.h for levels.
 */
#include "jit/lower/lower.h"

#include <string.h>

/* ---------------------------------------------------------------- the budget */

/** Walking over the function takes time: that is done once for each quarter of the budget, as far
 * as the estimate is right. */
bool qn__spend(lower *g, uint32_t i)
{
    enum { WALKS = 4 };
    bool is_access = qn__is_access(&g->k->inst[i]), is_assertion = g->k->inst[i].op == QN_I_ASSERT;
    if (g->is_over || g->budget == INT64_MAX)
        return !g->is_over;
    g->spent += qn__cost_of_instruction(&g->a, i, is_access && qn__is_tested(g, i), g->width) *
                (is_access || is_assertion ? g->unroll * g->jam : 1);
    if (g->spent <= g->budget / WALKS)
        return true;
    g->spent = 0;
    g->is_over = qn__llvm_count(g->function, g->f->target, g->is_fast).units > g->budget;
    g->failed |= g->is_over;
    return !g->is_over;
}

/* ---------------------------------------------------------------- types and constants */

LLVMTypeRef qn__scalar_type(const lower *g, int dtype)
{
    switch (dtype) {
    case QN_BOOL:
        return g->i1;
    case QN_F32:
        return g->f32;
    case QN_F64:
        return g->f64;
    default:
        return qn__int_type(g, qn__dtype_width(dtype));
    }
}

LLVMTypeRef qn__memory_type(const lower *g, int dtype)
{
    return dtype == QN_BOOL ? g->i8 : qn__scalar_type(g, dtype);
}

LLVMTypeRef qn__vector_of(const lower *g, LLVMTypeRef t)
{
    return g->width == 1 ? t : LLVMVectorType(t, (unsigned)g->width);
}

LLVMTypeRef qn__as_many(LLVMTypeRef t, LLVMValueRef v)
{
    return qn__is_vector(v) ? LLVMVectorType(t, LLVMGetVectorSize(LLVMTypeOf(v))) : t;
}

LLVMTypeRef qn__lane_type(const lower *g, int dtype)
{
    return qn__vector_of(g, qn__scalar_type(g, dtype));
}

LLVMValueRef qn__const_i64(const lower *g, int64_t n)
{
    return LLVMConstInt(g->i64, (unsigned long long)n, true);
}

LLVMValueRef qn__const_bits(const lower *g, int dtype, uint64_t bits)
{
    if (dtype == QN_F32)
        return LLVMConstBitCast(LLVMConstInt(g->i32, bits & 0xffffffffu, false), g->f32);
    if (dtype == QN_F64)
        return LLVMConstBitCast(LLVMConstInt(g->i64, bits, false), g->f64);
    return LLVMConstInt(qn__scalar_type(g, dtype), bits, true);
}

LLVMValueRef qn__constant_like(LLVMTypeRef t, LLVMValueRef scalar)
{
    LLVMValueRef lane[64];
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return scalar;
    for (unsigned n = 0; n < LLVMGetVectorSize(t); n++)
        lane[n] = scalar;
    return LLVMConstVector(lane, LLVMGetVectorSize(t));
}

LLVMValueRef qn__int(LLVMTypeRef t, int64_t n)
{
    const bool is_vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    LLVMTypeRef one = is_vector ? LLVMGetElementType(t) : t;
    return qn__constant_like(t, LLVMConstInt(one, (unsigned long long)n, true));
}

LLVMValueRef qn__shuffle(const lower *g, LLVMValueRef a, LLVMValueRef b, const int *index, int n)
{
    LLVMValueRef lane[MOST_SHUFFLED];
    for (int l = 0; l < n; l++)
        lane[l] = index[l] < 0 ? LLVMGetPoison(g->i32)
                               : LLVMConstInt(g->i32, (unsigned long long)index[l], false);
    return LLVMBuildShuffleVector(g->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)),
                                  LLVMConstVector(lane, (unsigned)n), "");
}

LLVMValueRef qn__part_of(const lower *g, LLVMValueRef v, int first, int n)
{
    int index[MOST_SHUFFLED], have = (int)LLVMGetVectorSize(LLVMTypeOf(v));
    if (first == 0 && n == have)
        return v;
    for (int l = 0; l < n; l++)
        index[l] = first + l < have ? first + l : -1;
    return qn__shuffle(g, v, NULL, index, n);
}

LLVMValueRef qn__resized(const lower *g, LLVMValueRef v, int n)
{
    return qn__part_of(g, v, 0, n);
}

LLVMValueRef qn__ahead(const lower *g, LLVMValueRef pointer, int64_t bytes)
{
    return qn__gep(g, g->i8, pointer, qn__const_i64(g, bytes));
}

LLVMValueRef qn__lanes(const lower *g, LLVMTypeRef t, int64_t step)
{
    LLVMValueRef lane[64];
    if (g->width == 1)
        return LLVMConstInt(t, 0, false);
    for (int n = 0; n < g->width; n++)
        lane[n] = LLVMConstInt(t, (unsigned long long)n * (unsigned long long)step, true);
    return LLVMConstVector(lane, (unsigned)g->width);
}

LLVMValueRef qn__lanes_of_bits(const lower *g, uint64_t lanes, int n)
{
    LLVMValueRef lane[64];
    for (int l = 0; l < n; l++)
        lane[l] = LLVMConstInt(g->i1, lanes >> l & 1, false);
    return lanes == UINT64_MAX >> (64 - n) ? NULL : LLVMConstVector(lane, (unsigned)n);
}

LLVMValueRef qn__call(lower *g, const char *name, LLVMTypeRef *overloads, int n_overloads,
                      LLVMValueRef *args, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(g->module, id, overloads, (size_t)n_overloads);
    LLVMTypeRef type = LLVMIntrinsicGetType(g->context, id, overloads, (size_t)n_overloads);
    return LLVMBuildCall2(g->b, type, function, args, (unsigned)n, "");
}

LLVMBasicBlockRef qn__new_block(lower *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->context, g->function, name);
}

LLVMValueRef qn__new_buffer(lower *g, uint64_t bytes, unsigned align)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b), entry = LLVMGetEntryBasicBlock(g->function);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    if (first)
        LLVMPositionBuilderBefore(g->b, first);
    else
        LLVMPositionBuilderAtEnd(g->b, entry);
    LLVMValueRef buffer = LLVMBuildAlloca(g->b, LLVMArrayType2(g->i8, bytes), "");
    LLVMSetAlignment(buffer, align);
    LLVMPositionBuilderAtEnd(g->b, here);
    return buffer;
}

/** The one of a and b that `is` compares with the other so. */
static LLVMValueRef extremum(lower *g, const char *name, LLVMIntPredicate is, LLVMValueRef a,
                             LLVMValueRef b)
{
    int64_t n;
    LLVMValueRef v[2] = {a, b};
    LLVMTypeRef t = LLVMTypeOf(a);
    if (qn__is_const(a, &n) && qn__is_const(b, &n))
        return LLVMIsNull(LLVMBuildICmp(g->b, is, a, b, "")) ? b : a;
    return qn__call(g, name, &t, 1, v, 2);
}

LLVMValueRef qn__umin(lower *g, LLVMValueRef a, LLVMValueRef b)
{
    return extremum(g, "llvm.umin", LLVMIntULT, a, b);
}

LLVMValueRef qn__smin(lower *g, LLVMValueRef a, LLVMValueRef b)
{
    return extremum(g, "llvm.smin", LLVMIntSLT, a, b);
}

LLVMValueRef qn__smax(lower *g, LLVMValueRef a, LLVMValueRef b)
{
    return extremum(g, "llvm.smax", LLVMIntSGT, a, b);
}

span qn__intersection(lower *g, span a, span b)
{
    LLVMValueRef low = qn__smax(g, a.low, b.low);
    return (span){low, qn__smax(g, qn__smin(g, a.high, b.high), low)};
}

bool qn__is_const(LLVMValueRef v, int64_t *n)
{
    if (!LLVMIsAConstantInt(v))
        return false;
    *n = LLVMConstIntGetSExtValue(v);
    return true;
}

/* ---------------------------------------------------------------- levels */

void qn__level_open(lower *g, bool is_branch, bool is_sequential, bool may_be_empty)
{
    if (g->depth + 1 >= MOST_LEVELS) {
        g->failed = true;
        return;
    }
    g->level[++g->depth] =
        (level){LLVMGetInsertBlock(g->b), is_branch, is_sequential, may_be_empty, NULL, 1, 0};
}

static void forget_values(lower *g)
{
    for (uint32_t i = 1; i < g->k->n_insts; i++)
        if (g->value[i].is_set && g->value[i].level >= g->depth) {
            g->value[i].is_set = false;
            memset(g->value[i].part, 0, MOST_PARTS * sizeof *g->value[i].part);
        }
}

static unsigned memo_bucket(const memo_key *key)
{
    uint64_t h = (uintptr_t)key->a ^ (uintptr_t)key->b * 31u;
    h ^= (uint64_t)key->n * 0x9e3779b97f4a7c15u;
    return (h >> 4 ^ h >> 20) % MEMO_HEADS;
}

static void memo_link(lower *g, int32_t n)
{
    int32_t *head = &g->memo_head[memo_bucket(&g->memo[n].key)];
    g->memo[n].next = *head;
    *head = n;
}

static void forget_memos(lower *g)
{
    int32_t kept = 0;
    for (int32_t n = 0; n < g->n_memos; n++)
        if (g->memo[n].level < g->depth)
            g->memo[kept++] = g->memo[n];
    if (kept == g->n_memos)
        return;
    g->n_memos = kept;
    memset(g->memo_head, 0xff, sizeof g->memo_head);
    for (int32_t n = 0; n < kept; n++)
        memo_link(g, n);
}

void qn__level_close(lower *g)
{
    forget_values(g);
    forget_memos(g);
    if (g->depth > 0)
        g->depth--;
}

static void stand_at_end_of(lower *g, int at)
{
    if (at >= g->depth)
        return;
    g->before = LLVMGetBasicBlockTerminator(g->level[at + 1].anchor);
    LLVMPositionBuilderBefore(g->b, g->before);
}

int qn__seek(lower *g, int wanted, place *here)
{
    int at = g->depth;
    *here = (place){LLVMGetInsertBlock(g->b), g->before};
    while (at > wanted && !g->level[at].is_branch)
        at--;
    stand_at_end_of(g, at);
    return at;
}

void qn__unseek(lower *g, const place *here)
{
    g->before = here->before;
    if (here->before)
        LLVMPositionBuilderBefore(g->b, here->before);
    else if (!LLVMGetBasicBlockTerminator(here->block)) /* no branch was emitted meanwhile */
        LLVMPositionBuilderAtEnd(g->b, here->block);
}

/* ---------------------------------------------------------------- shared values */

LLVMValueRef qn__memo_find(const lower *g, const memo_key *key, int *at)
{
    for (int32_t m = g->memo_head[memo_bucket(key)]; m >= 0; m = g->memo[m].next) {
        const memo *x = &g->memo[m];
        if (x->key.kind == key->kind && x->key.a == key->a && x->key.b == key->b &&
            x->key.n == key->n) {
            if (at)
                *at = x->level;
            return x->result;
        }
    }
    return NULL;
}

void qn__memo_add(lower *g, const memo_key *key, int at, LLVMValueRef result)
{
    if (g->n_memos == g->memo_capacity) {
        int32_t capacity = g->memo_capacity ? 2 * g->memo_capacity : 256;
        memo *grown = qn__realloc(g->memo, (size_t)capacity * sizeof *grown);
        if (!grown)
            return; /* only sharing is lost */
        g->memo = grown;
        g->memo_capacity = capacity;
    }
    g->memo[g->n_memos] = (memo){*key, at, result, -1};
    memo_link(g, g->n_memos++);
}

LLVMValueRef qn__memo_begin(lower *g, sharing *x, memo_key key, int *at)
{
    LLVMValueRef found = qn__memo_find(g, &key, at);
    x->key = key;
    if (!found)
        x->at = *at = qn__seek(g, *at, &x->here);
    return found;
}

LLVMValueRef qn__memo_end(lower *g, const sharing *x, LLVMValueRef result)
{
    qn__unseek(g, &x->here);
    qn__memo_add(g, &x->key, x->at, result);
    return result;
}

LLVMValueRef qn__splat(lower *g, LLVMValueRef scalar, int wanted)
{
    if (g->width == 1)
        return scalar;
    if (LLVMIsConstant(scalar))
        return qn__constant_like(qn__vector_of(g, LLVMTypeOf(scalar)), scalar);
    sharing x;
    LLVMValueRef found =
        qn__memo_begin(g, &x, (memo_key){MEMO_SPLAT, scalar, NULL, g->width}, &wanted);
    if (found)
        return found;
    LLVMTypeRef t = qn__vector_of(g, LLVMTypeOf(scalar));
    LLVMValueRef zero = LLVMConstNull(t);
    LLVMValueRef one = qn__insert(g, zero, scalar, 0);
    LLVMValueRef all = LLVMConstNull(LLVMVectorType(g->i32, (unsigned)g->width));
    return qn__memo_end(g, &x, LLVMBuildShuffleVector(g->b, one, zero, all, ""));
}

LLVMValueRef qn__slot(lower *g, int slot, LLVMTypeRef t)
{
    sharing x = {
        {MEMO_SLOT, (LLVMValueRef)t, NULL, slot}, {LLVMGetInsertBlock(g->b), g->before}, 0};
    LLVMValueRef found = qn__memo_find(g, &x.key, NULL);
    if (found)
        return found;
    stand_at_end_of(g, 0); /* level 0 dominates everything, branches included */
    LLVMValueRef where = qn__gep(g, g->i64, g->slots, qn__const_i64(g, slot));
    return qn__memo_end(g, &x, qn__load_at(g, t, where, 8));
}

LLVMValueRef qn__fact(lower *g, const qn_fact *fact)
{
    return fact->kind == QN_FACT_EXACT ? qn__const_i64(g, fact->value)
                                       : qn__slot(g, fact->slot, g->i64);
}
