/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_memory.c: loads and stores, their masks, and the checks of indices that were not proved at the call.
 */
#include "jit/llvm_stage.h"
#include "jit/llvm_team.h"
#include "jit/llvm_wide.h"

#include <string.h>

/* ---------------------------------------------------------------- masks */

LLVMValueRef qn__mask_and(lower *g, LLVMValueRef mask, LLVMValueRef more)
{
    return !mask ? more : !more ? mask : LLVMBuildAnd(g->b, mask, more, "");
}

LLVMValueRef qn__any(lower *g, LLVMValueRef mask)
{
    if (!mask)
        return LLVMConstInt(g->i1, 1, false);
    LLVMTypeRef t = LLVMTypeOf(mask);
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return mask;
    LLVMTypeRef bits = LLVMIntTypeInContext(g->context, LLVMGetVectorSize(t));
    LLVMValueRef all = LLVMBuildBitCast(g->b, mask, bits, "");
    return LLVMBuildICmp(g->b, LLVMIntNE, all, LLVMConstInt(bits, 0, false), "");
}

/* ---------------------------------------------------------------- checks */

/** Whether all lanes access one element: indices of projected dimensions do not matter. */
static bool indices_are_uniform(const lower *g, uint32_t i)
{
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    const uint32_t *arg = qn__args(g->k, i);
    for (int r = 0; r < qn__n_indices(g->k, i); r++)
        if (g->a.value[arg[r]].shape != QN_UNIFORM && param->dim[r].n_digits > 0)
            return false;
    return true;
}

static LLVMValueRef in_range(lower *g, LLVMValueRef position, const qn_dim_fact *dim, bool vector)
{
    LLVMValueRef extent = qn__fact(g, &dim->extent);
    return LLVMBuildICmp(g->b, LLVMIntULT, position, vector ? qn__splat(g, extent, 0) : extent, "");
}

/** Clamps to [0, extent); an extent of 0 leaves no lane active. */
static void clamp_position(lower *g, check *c, int r, const qn_dim_fact *dim)
{
    LLVMValueRef extent = qn__fact(g, &dim->extent), one = qn__const_i64(g, 1);
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, extent, qn__const_i64(g, 0), "");
    LLVMValueRef last = LLVMBuildSub(g->b, extent, one, "");
    LLVMTypeRef t = LLVMTypeOf(c->position[r]);
    LLVMValueRef v[2] = {c->position[r], c->is_vector ? qn__splat(g, last, g->depth) : last};
    c->position[r] = qn__call(g, "llvm.umin", &t, 1, v, 2);
    LLVMValueRef ok = c->is_vector ? qn__splat(g, some, g->depth) : some;
    c->ok = c->ok ? LLVMBuildAnd(g->b, c->ok, ok, "") : ok;
}

/** Whether 32 bits are enough to compare an index that differs between lanes. */
static bool is_short_index(const lower *g, uint32_t value, const qn_dim_fact *dim)
{
    bool is_plain = dim->lower.kind == QN_FACT_EXACT && dim->lower.value == 0 && dim->extent.kind == QN_FACT_EXACT;
    return is_plain && dim->extent.value <= INT32_MAX && g->a.value[value].shape == QN_VARYING &&
           g->a.value[value].held <= 32 && !g->p->is_gpu;
}

check qn__make_check(lower *g, uint32_t i, int p)
{
    check c = {0};
    const qn_param_fact *param = &g->f->param[g->k->inst[i].imm];
    const uint32_t *arg = qn__args(g->k, i);
    if (!qn__is_checked(g->f, g->k, g->site[i]) || g->covered[g->site[i]])
        return c;
    c.is_vector = g->width > 1 && !indices_are_uniform(g, i);
    c.is_clamped = param->checks == QN_CHECKS_CLAMP;
    for (int r = 0; r < qn__n_indices(g->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        if (dim->n_digits == 0)
            continue;
        c.is_needed = true;
        if (c.is_vector && !c.is_clamped && is_short_index(g, arg[r], dim)) {
            LLVMValueRef extent = qn__const_splat(g, LLVMConstInt(g->i32, (unsigned long long)dim->extent.value, false));
            LLVMValueRef below = LLVMBuildICmp(g->b, LLVMIntULT, qn__vector_bits(g, arg[r], p, 32), extent, "");
            c.ok = c.ok ? LLVMBuildAnd(g->b, c.ok, below, "") : below;
            continue;
        }
        c.position[r] = qn__relative_index(g, arg[r], p, &dim->lower, c.is_vector);
        if (c.is_clamped) {
            clamp_position(g, &c, r, dim);
            continue;
        }
        LLVMValueRef ok = in_range(g, c.position[r], dim, c.is_vector);
        c.ok = c.ok ? LLVMBuildAnd(g->b, c.ok, ok, "") : ok;
    }
    c.is_needed = c.is_needed && c.ok;
    return c;
}

/** Records lanes that are active and out of range. */
void qn__report(lower *g, uint32_t i, int p, const check *c)
{
    if (!c->is_needed || c->is_clamped)
        return;
    LLVMValueRef bad = LLVMBuildNot(g->b, c->ok, "");
    if (c->is_vector)
        bad = qn__mask_and(g, g->mask[p], bad);
    else if (g->mask[p]) /* the first active lane fails first */
        bad = LLVMBuildAnd(g->b, g->mask[p], qn__splat(g, bad, g->depth), "");
    qn__note_fault(g, i, p, bad, QN_ERR_BOUNDS);
}

/** Whether a value is wrong in lanes that are not active: it counts in a loop that they have left, or comes from a region
 *  that was skipped because no lane was active. */
static bool depends_on_region(const qn_kernel *k, uint32_t value, int depth)
{
    const qn_inst *x = &k->inst[value];
    if (x->op == QN_I_RESULT || x->op == QN_I_CARRIED || x->op == QN_I_INDEX || depth == 0)
        return true;
    for (int n = 0; x->op >= QN_I_CAST && qn__is_pure(x) && n < x->n_args; n++)
        if (depends_on_region(k, qn__args(k, value)[n], depth - 1))
            return true;
    return false;
}

/** Whether a load may be performed in lanes that are not active: it is proved, and its indices are right there too. */
static bool ignores_masks(const lower *g, uint32_t i)
{
    enum { MOST_DEPTH_OF_INDEX = 8 };
    if (g->k->inst[i].op != QN_I_LOAD || !g->f->proved[g->site[i]])
        return false;
    for (int r = 0; r < qn__n_indices(g->k, i); r++)
        if (depends_on_region(g->k, qn__args(g->k, i)[r], MOST_DEPTH_OF_INDEX))
            return false;
    return true;
}

/** Lanes for which a vector access is performed: NULL for all. Proved loads ignore the masks of branches where their
 *  addresses are right for every iteration of the domain. */
LLVMValueRef qn__access_mask(lower *g, uint32_t i, int p, const check *c)
{
    LLVMValueRef mask = ignores_masks(g, i) ? g->tail_mask[p] : g->mask[p];
    if (c->is_needed)
        mask = qn__mask_and(g, mask, c->is_vector ? c->ok : qn__splat(g, c->ok, g->depth));
    return mask;
}

/* ---------------------------------------------------------------- loads */

LLVMValueRef qn__to_register(lower *g, int dtype, LLVMValueRef v)
{
    if (dtype != QN_BOOL)
        return v;
    return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

LLVMValueRef qn__to_memory(lower *g, int dtype, LLVMValueRef v)
{
    if (dtype != QN_BOOL)
        return v;
    LLVMTypeRef t = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind ? qn__vector_of(g, g->i8) : g->i8;
    return LLVMBuildZExt(g->b, v, t, "");
}

static bool is_atomic_view(const lower *g, uint32_t i)
{
    return (g->k->param[g->k->inst[i].imm].traits & QN_ATOMIC) != 0;
}

void qn__make_relaxed(const lower *g, LLVMValueRef access)
{
    if (g->p->is_gpu) /* LLVM 19 selects no atomic loads and stores of PTX; volatile ones are relaxed there */
        LLVMSetVolatile(access, true);
    else
        LLVMSetOrdering(access, LLVMAtomicOrderingMonotonic);
}

void qn__mark_invariant(lower *g, LLVMValueRef load)
{
    static const char name[] = "invariant.load";
    LLVMMetadataRef none = LLVMMDNodeInContext2(g->context, NULL, 0);
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(g->context, name, sizeof name - 1),
                    LLVMMetadataAsValue(g->context, none));
}

/** What the addresses of an access are known to be a multiple of: at most the size of what it moves. */
static unsigned align_of(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    const qn_kernel_parameter *param = &g->k->param[x->imm];
    int64_t most = qn_dtype_bytes(qn__access_dtype(g->k, i)), align = qn__dtype_align(param->dtype, param->record);
    int64_t bits = g->f->param[x->imm].unit | qn__access_offset(g->k, i) | align | most;
    return (unsigned)(bits & -bits);
}

static LLVMValueRef plain_load(lower *g, uint32_t i, LLVMTypeRef t, LLVMValueRef pointer)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, t, pointer, "");
    LLVMSetAlignment(v, align_of(g, i));
    if (is_atomic_view(g, i) && LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        qn__make_relaxed(g, v);
    else if (g->p->is_gpu && g->f->param[g->k->inst[i].imm].is_constant_memory)
        qn__mark_invariant(g, v); /* loads through the read-only cache */
    return v;
}

LLVMValueRef qn__load_word(lower *g, uint32_t i)
{
    address x;
    qn__make_address(g, i, 0, NULL, &x);
    qn__displace(g, &x);
    LLVMValueRef v = LLVMBuildLoad2(g->b, g->i32, x.pointer, "");
    LLVMSetAlignment(v, 4);
    qn__mark_invariant(g, v);
    return v;
}

branch qn__begin_branch(lower *g, LLVMValueRef condition)
{
    branch x = {.from = LLVMGetInsertBlock(g->b), .then = qn__new_block(g, "then"), .join = qn__new_block(g, "join")};
    LLVMBuildCondBr(g->b, condition, x.then, x.join);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, x.then);
    return x;
}

/** Closes it; the result is `value` if taken, else zero. value may be NULL. */
LLVMValueRef qn__end_branch(lower *g, const branch *x, LLVMValueRef value)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, x->join);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, x->join);
    if (!value)
        return NULL;
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(value), "");
    LLVMValueRef values[2] = {value, LLVMConstNull(LLVMTypeOf(value))};
    LLVMBasicBlockRef blocks[2] = {from, x->from};
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

void qn__choose_branch(lower *g, const branch *x, LLVMValueRef *values, const LLVMValueRef *others, int n)
{
    LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(g->b), x->from};
    qn__end_branch(g, x, NULL);
    for (int m = 0; m < n; m++) {
        LLVMValueRef both[2] = {values[m], others[m]};
        if (both[0] == both[1])
            continue;
        values[m] = LLVMBuildPhi(g->b, LLVMTypeOf(both[0]), "");
        LLVMAddIncoming(values[m], both, blocks, 2);
    }
}

/** Level to which a load of this view may be hoisted: across loops that run, when nothing writes its elements. */
static int load_level(const lower *g, uint32_t i, int wanted)
{
    int at = g->depth;
    if ((g->written_too >> g->k->inst[i].imm & 1) || is_atomic_view(g, i) || g->f->is_ordered)
        return at;
    while (at > wanted && !g->level[at].is_branch && !g->level[at].is_sequential && !g->level[at].may_be_empty)
        at--;
    return at;
}

/** A value that depends on a dimension lives no longer than its loop, even where the index is a constant there. */
static int dims_level(const lower *g, uint32_t i, int at)
{
    for (int d = 0; d < g->k->n_dims; d++)
        if ((g->a.value[i].deps >> d & 1) && qn__index_level(g, d) > at)
            at = qn__index_level(g, d);
    return at < g->depth ? at : g->depth;
}

/** A load of one element for the whole part. */
static LLVMValueRef load_scalar(lower *g, uint32_t i, int p, const check *c, int *at)
{
    int dtype = g->k->inst[i].type;
    LLVMTypeRef t = qn__memory_type(g, dtype);
    LLVMValueRef condition = NULL;
    if (c->is_needed)
        condition = g->mask[p] ? LLVMBuildAnd(g->b, c->ok, qn__any(g, g->mask[p]), "") : c->ok;
    else if (!ignores_masks(g, i) && g->mask[p])
        condition = qn__any(g, g->mask[p]);
    else if (g->p->is_gpu && g->tail_mask[p]) /* parts are scalars there */
        condition = g->tail_mask[p];
    address x;
    *at = g->depth;
    if (condition) {
        branch then = qn__begin_branch(g, condition);
        qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
        qn__displace(g, &x);
        return qn__end_branch(g, &then, qn__to_register(g, dtype, plain_load(g, i, t, x.pointer)));
    }
    qn__make_address(g, i, p, NULL, &x);
    place here;
    *at = qn__seek(g, load_level(g, i, x.level), &here);
    *at = dims_level(g, i, *at);
    qn__displace(g, &x);
    LLVMValueRef v = qn__to_register(g, dtype, plain_load(g, i, t, x.pointer));
    qn__unseek(g, &here);
    return v;
}

static LLVMValueRef reverse(lower *g, LLVMValueRef v)
{
    LLVMValueRef lane[64];
    for (int n = 0; n < g->width; n++)
        lane[n] = LLVMConstInt(g->i32, (unsigned long long)(g->width - 1 - n), false);
    return LLVMBuildShuffleVector(g->b, v, LLVMConstNull(LLVMTypeOf(v)), LLVMConstVector(lane, (unsigned)g->width), "");
}

static LLVMValueRef all_lanes(const lower *g)
{
    return qn__const_splat(g, LLVMConstInt(g->i1, 1, false));
}

/* ---------------------------------------------------------------- small constant strides */

/* Lanes `stride` elements apart lie in |stride| vectors. Each is accessed under a constant mask, so that no byte between
 * the elements is touched, and a permutation brings the lanes together. */
enum { MOST_STRIDE = 4 };

/** Whether a vector access is better done so than lane by lane. */
static bool is_small_stride(const lower *g, const address *x, int dtype, LLVMValueRef mask)
{
    int64_t n = x->stride < 0 ? -x->stride : x->stride;
    return x->kind == ADDRESS_LANES && !mask && n >= 2 && n <= MOST_STRIDE &&
           (g->f->isa >= QN_ISA_V4 || qn_dtype_bytes(dtype) >= 4);
}

/** Pointer of vector k; the first starts at the lowest element. */
static LLVMValueRef vector_pointer(lower *g, const address *x, int64_t bytes, int k)
{
    int64_t first = x->stride < 0 ? (g->width - 1) * x->stride * bytes : 0;
    LLVMValueRef n = qn__const_i64(g, first + (int64_t)k * g->width * bytes);
    return LLVMBuildGEP2(g->b, g->i8, x->pointer, &n, 1, "");
}

/** Lane whose element is element e of vector k, or -1. */
static int lane_of(const lower *g, const address *x, int k, int e)
{
    int n = (int)(x->stride < 0 ? -x->stride : x->stride), at = k * g->width + e;
    if (at % n)
        return -1;
    return x->stride < 0 ? g->width - 1 - at / n : at / n;
}

static LLVMValueRef elements_of(const lower *g, const address *x, int k)
{
    LLVMValueRef lane[64];
    for (int e = 0; e < g->width; e++)
        lane[e] = LLVMConstInt(g->i1, lane_of(g, x, k, e) >= 0, false);
    return LLVMConstVector(lane, (unsigned)g->width);
}

static LLVMValueRef load_strided(lower *g, const address *x, LLVMTypeRef t, int64_t bytes, unsigned align)
{
    int n = (int)(x->stride < 0 ? -x->stride : x->stride);
    LLVMTypeRef types[2] = {t, g->ptr};
    LLVMValueRef all = NULL;
    for (int k = 0; k < n; k++) {
        LLVMValueRef args[4] = {vector_pointer(g, x, bytes, k), LLVMConstInt(g->i32, align, false),
                                elements_of(g, x, k), LLVMConstNull(t)};
        LLVMValueRef v = qn__call(g, "llvm.masked.load", types, 2, args, 4), pick[64];
        for (int l = 0; l < g->width; l++)
            pick[l] = LLVMConstInt(g->i32, (unsigned long long)l, false);
        for (int e = 0; e < g->width; e++)
            if (lane_of(g, x, k, e) >= 0)
                pick[lane_of(g, x, k, e)] = LLVMConstInt(g->i32, (unsigned long long)(g->width + e), false);
        all = LLVMBuildShuffleVector(g->b, all ? all : v, v, LLVMConstVector(pick, (unsigned)g->width), "");
    }
    return all;
}

static void store_strided(lower *g, const address *x, LLVMValueRef v, int64_t bytes, unsigned align)
{
    int n = (int)(x->stride < 0 ? -x->stride : x->stride);
    LLVMTypeRef types[2] = {LLVMTypeOf(v), g->ptr};
    for (int k = 0; k < n; k++) {
        LLVMValueRef pick[64];
        for (int e = 0; e < g->width; e++) {
            int lane = lane_of(g, x, k, e);
            pick[e] = LLVMConstInt(g->i32, lane < 0 ? 0 : (unsigned long long)lane, false);
        }
        LLVMValueRef spread = LLVMBuildShuffleVector(g->b, v, LLVMConstNull(LLVMTypeOf(v)),
                                                     LLVMConstVector(pick, (unsigned)g->width), "");
        LLVMValueRef args[4] = {spread, vector_pointer(g, x, bytes, k),
                                LLVMConstInt(g->i32, align, false), elements_of(g, x, k)};
        qn__call(g, "llvm.masked.store", types, 2, args, 4);
    }
}

static LLVMValueRef load_vector(lower *g, uint32_t i, int p, const check *c)
{
    int dtype = g->k->inst[i].type;
    unsigned align = align_of(g, i);
    LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, dtype));
    LLVMValueRef mask = qn__access_mask(g, i, p, c), v = qn__load_table(g, i, p, c);
    address x;
    if (v)
        return v;
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    qn__displace(g, &x);
    if (x.kind == ADDRESS_UNIFORM && (!mask || ignores_masks(g, i))) /* stride 0 */
        return qn__splat(g, qn__to_register(g, dtype, plain_load(g, i, qn__memory_type(g, dtype), x.pointer)), g->depth);
    if (is_small_stride(g, &x, dtype, mask)) {
        v = load_strided(g, &x, t, qn_dtype_bytes(dtype), align);
    } else if ((x.kind == ADDRESS_UNIT || x.kind == ADDRESS_REVERSED) && !mask) {
        v = plain_load(g, i, t, x.pointer);
    } else if (x.kind == ADDRESS_UNIT || x.kind == ADDRESS_REVERSED) {
        LLVMTypeRef types[2] = {t, g->ptr};
        LLVMValueRef args[4] = {x.pointer, LLVMConstInt(g->i32, align, false),
                                x.kind == ADDRESS_UNIT ? mask : reverse(g, mask), LLVMConstNull(t)};
        v = qn__call(g, "llvm.masked.load", types, 2, args, 4);
    } else {
        LLVMTypeRef types[2] = {t, qn__vector_of(g, g->ptr)};
        LLVMValueRef args[4] = {qn__lane_pointers(g, &x), LLVMConstInt(g->i32, align, false), mask ? mask : all_lanes(g),
                                LLVMConstNull(t)};
        v = qn__call(g, "llvm.masked.gather", types, 2, args, 4);
    }
    if (x.kind == ADDRESS_REVERSED)
        v = reverse(g, v);
    return qn__to_register(g, dtype, v);
}

/** Lanes active in any of the parts that share part p of a load: its value is loaded once for all of them. */
static LLVMValueRef shared_mask(lower *g, uint32_t i, int p, LLVMValueRef *masks)
{
    LLVMValueRef any = masks[p];
    FOR_PARTS(g, q)
    {
        if (q == p || qn__canonical_part(g, i, q) != p || any == masks[q])
            continue;
        any = any && masks[q] ? LLVMBuildOr(g->b, any, masks[q], "") : NULL;
        if (!any)
            return NULL;
    }
    return any;
}

/** Whether one branch decides for all that is emitted of an access: performed, or reported. */
static bool is_one_branch(const lower *g, uint32_t i, int p, const check *c)
{
    bool is_single = g->unroll * g->jam == 1 && (g->width == 1 || g->a.value[i].shape == QN_UNIFORM);
    return c->is_needed && !c->is_vector && !c->is_clamped && is_single && !g->mask[p] && !g->p->is_gpu;
}

/** Opens the branch in which the access is performed; end_checked closes it. */
static branch begin_checked(lower *g, const check *c)
{
    branch x = {.from = LLVMGetInsertBlock(g->b), .then = qn__new_block(g, "then"), .join = qn__new_block(g, "join"),
                .other = qn__new_block(g, "failed")};
    qn__mark_likely(g, LLVMBuildCondBr(g->b, c->ok, x.then, x.other));
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, x.then);
    return x;
}

/** The result is `value` if the access was in range, else zero, and the failure is recorded. value may be NULL. */
static LLVMValueRef end_checked(lower *g, const branch *x, uint32_t i, int p, LLVMValueRef value)
{
    LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(g->b), NULL};
    LLVMBuildBr(g->b, x->join);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, x->from);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, x->other);
    qn__note_fault(g, i, p, LLVMConstInt(g->i1, 1, false), QN_ERR_BOUNDS);
    blocks[1] = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, x->join);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, x->join);
    if (!value)
        return NULL;
    LLVMValueRef values[2] = {value, LLVMConstNull(LLVMTypeOf(value))}, phi = LLVMBuildPhi(g->b, LLVMTypeOf(value), "");
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

/** A load of one element that is performed or reported. */
static void load_checked(lower *g, uint32_t i, int p, const check *c)
{
    int dtype = g->k->inst[i].type;
    address x;
    branch then = begin_checked(g, c);
    qn__make_address(g, i, p, NULL, &x);
    qn__displace(g, &x);
    LLVMValueRef v = qn__to_register(g, dtype, plain_load(g, i, qn__memory_type(g, dtype), x.pointer));
    v = end_checked(g, &then, i, p, v);
    qn__set(g, i, p, v, g->depth);
}

void qn__lower_load_part(lower *g, uint32_t i, int p)
{
    if (qn__is_packed(g, i)) {
        qn__set(g, i, p, qn__load_packed(g, p), g->depth);
        return;
    }
    bool is_vector = g->width > 1 && g->a.value[i].shape != QN_UNIFORM;
    if (qn__is_shared(g, i)) {
        qn__set(g, i, p, qn__staged_value(g, i), g->depth);
        return;
    }
    if (g->held && g->site[i] < 64 && g->held[g->site[i]]) {
        qn__set(g, i, p, g->held[g->site[i]], g->depth);
        return;
    }
    check c = qn__make_check(g, i, p);
    if (is_one_branch(g, i, p, &c)) {
        load_checked(g, i, p, &c);
        return;
    }
    FOR_PARTS(g, q)
        if (qn__canonical_part(g, i, q) == p)
            qn__report(g, i, q, &c);
    int at = g->depth;
    LLVMValueRef mask = g->mask[p], tail_mask = g->tail_mask[p];
    g->mask[p] = shared_mask(g, i, p, g->mask);
    g->tail_mask[p] = shared_mask(g, i, p, g->tail_mask);
    LLVMValueRef v = is_vector ? load_vector(g, i, p, &c) : load_scalar(g, i, p, &c, &at);
    g->mask[p] = mask;
    g->tail_mask[p] = tail_mask;
    if (g->is_team && (is_atomic_view(g, i) || g->k->param[g->k->inst[i].imm].is_written))
        v = qn__team_same(g, v); /* what may change meanwhile must not split the lanes */
    qn__set(g, i, p, v, at);
}

bool qn__is_late(const lower *g, uint32_t i)
{
    const qn_kernel_parameter *param = &g->k->param[g->k->inst[i].imm];
    bool is_checked = qn__is_checked(g->f, g->k, g->site[i]) && !g->covered[g->site[i]];
    return g->loads_on_demand ||
           (g->loads_are_late && !is_checked && !param->is_written && !param->has_atomics && !is_atomic_view(g, i) && !g->f->is_ordered);
}

void qn__lower_load(lower *g, uint32_t i)
{
    if (g->loads_are_late && qn__is_late(g, i))
        return;
    if (qn__lower_transposed_load(g, i) || qn__wide_load(g, i))
        return;
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, i, p) == p)
            qn__lower_load_part(g, i, p);
}

/* ---------------------------------------------------------------- stores */

static void store_scalar(lower *g, uint32_t i, int p, const check *c, uint32_t value)
{
    int dtype = qn__access_dtype(g->k, i);
    branch then = {0};
    LLVMValueRef v = qn__scalar(g, value, p);
    LLVMValueRef condition = g->mask[p] ? qn__any(g, g->mask[p]) : NULL;
    if (c->is_needed)
        condition = qn__mask_and(g, condition, c->ok);
    condition = qn__mask_and(g, condition, qn__team_begin(g));
    if (condition)
        then = qn__begin_branch(g, condition);
    address x;
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    qn__displace(g, &x);
    LLVMValueRef store = LLVMBuildStore(g->b, qn__to_memory(g, dtype, v), x.pointer);
    LLVMSetAlignment(store, align_of(g, i));
    if (is_atomic_view(g, i))
        qn__make_relaxed(g, store);
    if (condition)
        qn__end_branch(g, &then, NULL);
    qn__team_end(g);
}

static void store_vector(lower *g, uint32_t i, int p, const check *c, uint32_t value)
{
    int dtype = qn__access_dtype(g->k, i);
    LLVMValueRef align = LLVMConstInt(g->i32, align_of(g, i), false);
    LLVMValueRef v = qn__to_memory(g, dtype, qn__vector(g, value, p)), mask = qn__access_mask(g, i, p, c);
    address x;
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    qn__displace(g, &x);
    if (x.kind == ADDRESS_REVERSED) {
        v = reverse(g, v);
        mask = mask ? reverse(g, mask) : NULL;
    }
    if (x.kind == ADDRESS_UNIT || x.kind == ADDRESS_REVERSED) {
        if (!mask) {
            LLVMValueRef store = LLVMBuildStore(g->b, v, x.pointer);
            LLVMSetAlignment(store, align_of(g, i));
            qn__mark_stream(g, i, store);
            return;
        }
        LLVMTypeRef types[2] = {LLVMTypeOf(v), g->ptr};
        LLVMValueRef args[4] = {v, x.pointer, align, mask};
        qn__call(g, "llvm.masked.store", types, 2, args, 4);
        return;
    }
    if (is_small_stride(g, &x, dtype, mask) && g->f->isa >= QN_ISA_V4) {
        store_strided(g, &x, v, qn_dtype_bytes(dtype), align_of(g, i));
        return;
    }
    LLVMTypeRef types[2] = {LLVMTypeOf(v), qn__vector_of(g, g->ptr)};
    LLVMValueRef args[4] = {v, qn__lane_pointers(g, &x), align, mask ? mask : all_lanes(g)};
    qn__call(g, "llvm.masked.scatter", types, 2, args, 4);
}

/** Whether all lanes of a part store one value to one address. */
static bool store_is_uniform(const lower *g, uint32_t i, uint32_t value)
{
    return g->width == 1 || (indices_are_uniform(g, i) && g->a.value[value].shape == QN_UNIFORM);
}

void qn__lower_store(lower *g, uint32_t i)
{
    uint32_t value = qn__args(g->k, i)[g->k->inst[i].n_args - 1];
    if (qn__lower_transposed_store(g, i, value) || qn__wide_store(g, i))
        return;
    FOR_PARTS(g, p)
    {
        check c = qn__make_check(g, i, p);
        qn__report(g, i, p, &c);
        if (store_is_uniform(g, i, value) && !(c.is_needed && c.is_vector))
            store_scalar(g, i, p, &c, value);
        else
            store_vector(g, i, p, &c, value);
    }
}

