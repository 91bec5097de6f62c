/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: loads and stores. lower/check.c says for which lanes they are performed,
 * lower/address.c where.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/wide.h"

#include <string.h>

/* ---------------------------------------------------------------- loads */

LLVMValueRef qn__to_register(lower *g, int dtype, LLVMValueRef v)
{
    return dtype == QN_BOOL ? qn__lower_bitcast(g, QN_BOOL, QN_U8, v) : v;
}

LLVMValueRef qn__to_memory(lower *g, int dtype, LLVMValueRef v)
{
    return dtype == QN_BOOL ? qn__lower_bitcast(g, QN_U8, QN_BOOL, v) : v;
}

LLVMValueRef qn__load_as(lower *g, int dtype, LLVMValueRef pointer, int64_t align)
{
    LLVMValueRef v = qn__load_at(g, qn__memory_type(g, dtype), pointer, (unsigned)align);
    return qn__to_register(g, dtype, v);
}

void qn__store_as(lower *g, int dtype, LLVMValueRef v, LLVMValueRef pointer, int64_t align)
{
    qn__store_at(g, qn__to_memory(g, dtype, v), pointer, (unsigned)align);
}

static bool is_atomic_view(const lower *g, uint32_t i)
{
    return (g->k->param[g->k->inst[i].imm].traits & QN_ATOMIC) != 0;
}

void qn__make_relaxed(const lower *g, LLVMValueRef access)
{
    if (g->block->atomics == QN_ATOMICS_OF_ONE)
        return;
    if (g->f->target->has_relaxed_volatile)
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

unsigned qn__align_of(const lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    const qn_kernel_parameter *param = &g->k->param[x->imm];
    int64_t most = qn__access_bytes(g->k, i), align = qn__dtype_align(param->dtype, param->record);
    int64_t bits = g->f->param[x->imm].unit | qn__access_offset(g->k, i) | align | most;
    return (unsigned)(bits & -bits);
}

/** Whether a block of a GPU moves what access i touches through memory of its own, by words. */
static bool is_moved(const lower *g, uint32_t i)
{
    return g->grid && qn__grid_moved(g->grid, g->k, i);
}

/** Goes to the address of one element, and returns what that is known to be a multiple of. */
static unsigned displace(lower *g, uint32_t i, address *x)
{
    const unsigned known = g->grid ? qn__wide_align(g, i, x) : 1, own = qn__align_of(g, i);
    qn__displace(g, x);
    if (is_moved(g, i)) {
        x->pointer = g->hooks->place_in_block(g, i, x->pointer);
        return own < QN_MOVED_WORD ? own : QN_MOVED_WORD;
    }
    return known > own ? known : own;
}

LLVMValueRef qn__load_at(lower *g, LLVMTypeRef t, LLVMValueRef pointer, unsigned align)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, t, pointer, "");
    LLVMSetAlignment(v, align);
    return v;
}

LLVMValueRef qn__store_at(lower *g, LLVMValueRef v, LLVMValueRef pointer, unsigned align)
{
    LLVMValueRef store = LLVMBuildStore(g->b, v, pointer);
    LLVMSetAlignment(store, align);
    return store;
}

/** The mask of accesses at a vector of pointers: all lanes where there is none. */
static LLVMValueRef mask_at(const lower *g, LLVMValueRef pointer, LLVMValueRef mask)
{
    return mask || !qn__is_vector(pointer) ? mask : LLVMConstAllOnes(qn__as_many(g->i1, pointer));
}

/** Constant memory, from which lanes that are left out load 0. */
static LLVMValueRef zeros(lower *g)
{
    static const char name[] = "qn_zeros";
    LLVMTypeRef type = LLVMArrayType2(g->i64, 2);
    LLVMValueRef found = LLVMGetNamedGlobal(g->module, name);
    if (found)
        return found;
    found = LLVMAddGlobal(g->module, type, name);
    LLVMSetInitializer(found, LLVMConstNull(type));
    LLVMSetLinkage(found, LLVMInternalLinkage);
    LLVMSetGlobalConstant(found, true);
    LLVMSetAlignment(found, LINE_BYTES);
    return found;
}

LLVMValueRef qn__load_masked(lower *g, LLVMTypeRef t, LLVMValueRef pointer, unsigned align,
                             LLVMValueRef mask)
{
    mask = mask_at(g, pointer, mask);
    if (!mask)
        return qn__load_at(g, t, pointer, align);
    if (qn__is_vector(pointer) && !LLVMIsConstant(mask) && !g->f->target->has_gathers) {
        /* a load for each lane, each of which would be behind a branch */
        pointer = LLVMBuildSelect(g->b, mask, pointer, qn__splat(g, zeros(g), 0), "");
        mask = mask_at(g, pointer, NULL);
    }
    const char *name = qn__is_vector(pointer) ? "llvm.masked.gather" : "llvm.masked.load";
    LLVMTypeRef types[2] = {t, LLVMTypeOf(pointer)};
    LLVMValueRef args[4] = {pointer, LLVMConstInt(g->i32, align, false), mask, LLVMConstNull(t)};
    return qn__call(g, name, types, 2, args, 4);
}

bool qn__has_known_lanes(LLVMValueRef mask)
{
    for (unsigned l = 0; mask && l < LLVMGetVectorSize(LLVMTypeOf(mask)); l++) {
        LLVMValueRef lane = LLVMIsConstant(mask) ? LLVMGetAggregateElement(mask, l) : NULL;
        if (!lane || !LLVMIsAConstantInt(lane))
            return false;
    }
    return true;
}

/** Stores the lanes that a known mask has, as many neighbours at once as are a power of two. */
static void store_known(lower *g, LLVMValueRef v, LLVMValueRef pointer, unsigned align,
                        LLVMValueRef mask)
{
    const int lanes = (int)LLVMGetVectorSize(LLVMTypeOf(v));
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(v));
    for (int l = 0, run, n; l < lanes; l += run ? n : 1) {
        for (run = 0; l + run < lanes; run++)
            if (LLVMIsNull(LLVMGetAggregateElement(mask, (unsigned)(l + run))))
                break;
        for (n = 1; 2 * n <= run;)
            n *= 2;
        if (run)
            qn__store_at(g, qn__part_of(g, v, l, n),
                         qn__gep(g, element, pointer, qn__const_i64(g, l)), align);
    }
}

void qn__store_masked(lower *g, LLVMValueRef v, LLVMValueRef pointer, unsigned align,
                      LLVMValueRef mask)
{
    mask = mask_at(g, pointer, mask);
    if (!mask) {
        qn__store_at(g, v, pointer, align);
        return;
    }
    /* AVX2 has no registers of masks: a store under one takes AMD's processors 18 operations or
     * more */
    if (!g->f->target->has_masks && !qn__is_vector(pointer) && qn__has_known_lanes(mask)) {
        store_known(g, v, pointer, align, mask);
        return;
    }
    const char *name = qn__is_vector(pointer) ? "llvm.masked.scatter" : "llvm.masked.store";
    LLVMTypeRef types[2] = {LLVMTypeOf(v), LLVMTypeOf(pointer)};
    LLVMValueRef args[4] = {v, pointer, LLVMConstInt(g->i32, align, false), mask};
    qn__call(g, name, types, 2, args, 4);
}

static LLVMValueRef plain_load(lower *g, uint32_t i, LLVMTypeRef t, LLVMValueRef pointer,
                               unsigned align)
{
    LLVMValueRef v = qn__load_at(g, t, pointer, align);
    if (is_atomic_view(g, i) && LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        qn__make_relaxed(g, v);
    else if (g->f->target->has_read_only && g->f->param[g->k->inst[i].imm].is_constant_memory &&
             !is_moved(g, i))
        qn__mark_invariant(g, v); /* loads through the read-only cache */
    return v;
}

LLVMValueRef qn__load_word(lower *g, uint32_t i)
{
    address x = qn__displaced(g, i, 0, NULL);
    LLVMValueRef v = qn__load_at(g, g->i32, x.pointer, 4);
    qn__mark_invariant(g, v);
    return v;
}

/** Level to which a load of this view may be hoisted: across loops that run, where nothing writes
 * its elements. */
static int load_level(const lower *g, uint32_t i, int wanted)
{
    int at = g->depth;
    bool is_written = g->written_too >> g->k->inst[i].imm & 1;
    if (g->covered[g->site[i]] || is_moved(g, i)) /* right behind the test only */
        return at;
    if (is_atomic_view(g, i))
        return at;
    while (at > wanted && !g->level[at].is_branch && !g->level[at].is_sequential &&
           !g->level[at].may_be_empty && (!is_written || at > g->points_level))
        at--;
    return at;
}

/** A value that depends on a dimension lives no longer than its loop, even where the index is a
 * constant there. */
static int dims_level(const lower *g, uint32_t i, int at)
{
    for (int d = 0; d < qn__n_indexed(&g->a); d++)
        if ((g->a.value[i].deps >> d & 1) && qn__index_level(g, d) > at)
            at = qn__index_level(g, d);
    return at < g->depth ? at : g->depth;
}

/** The level of a load without masks: vectors leave most registers to what the loops compute. */
static int outer_level(lower *g, uint32_t i, int wanted, bool is_vector)
{
    const int at = load_level(g, i, wanted), most = g->f->target->vectors / 4;
    if (!is_vector || at == g->depth)
        return at;
    return g->level[at].n_loaded++ < most ? at : g->depth;
}

/** A load without masks, as far out as it may stand; *at: the level. */
static LLVMValueRef load_outside(lower *g, uint32_t i, address *x, LLVMTypeRef t, int *at)
{
    bool is_vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    place here;
    *at = dims_level(g, i, qn__seek(g, outer_level(g, i, x->level, is_vector), &here));
    const unsigned align = displace(g, i, x);
    LLVMValueRef v = qn__to_register(g, g->k->inst[i].type, plain_load(g, i, t, x->pointer, align));
    qn__unseek(g, &here);
    return v;
}

/** Whether some lane of part p is active; NULL: that is known. */
static LLVMValueRef any_active(lower *g, int p)
{
    return g->mask[p] && g->mask[p] != g->active ? qn__any(g, g->mask[p]) : NULL;
}

/** A load of one element for the whole part. */
static LLVMValueRef load_scalar(lower *g, uint32_t i, int p, const check *c, int *at)
{
    int dtype = g->k->inst[i].type;
    LLVMTypeRef t = qn__memory_type(g, dtype);
    LLVMValueRef condition = qn__ignores_masks(g, i) ? NULL : any_active(g, p);
    if (c->is_needed)
        condition = qn__mask_and(g, c->ok, condition);
    else if (!condition && g->grid && g->tail_mask[p]) /* parts are scalars there */
        condition = g->tail_mask[p];
    address x;
    *at = g->depth;
    if (condition) {
        branch then = qn__begin_branch(g, condition);
        qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
        const unsigned align = displace(g, i, &x);
        return qn__end_branch(g, &then,
                              qn__to_register(g, dtype, plain_load(g, i, t, x.pointer, align)));
    }
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    return load_outside(g, i, &x, t, at);
}

static LLVMValueRef reverse(lower *g, LLVMValueRef v)
{
    int lane[64];
    for (int n = 0; n < g->width; n++)
        lane[n] = g->width - 1 - n;
    return qn__shuffle(g, v, NULL, lane, g->width);
}

static LLVMValueRef load_vector(lower *g, uint32_t i, int p, const check *c, int *at)
{
    int dtype = g->k->inst[i].type;
    unsigned align = qn__align_of(g, i);
    LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, dtype));
    LLVMValueRef mask = qn__access_mask(g, i, p, c), v = qn__load_table(g, i, p, c);
    address x;
    if (v)
        return qn__to_register(g, dtype, v);
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    if (x.kind == ADDRESS_UNIT && !mask)
        return load_outside(g, i, &x, t, at);
    (void)displace(g, i, &x);
    if (x.kind == ADDRESS_UNIFORM && (!mask || qn__ignores_masks(g, i))) /* stride 0 */
        return qn__splat(
            g,
            qn__to_register(g, dtype,
                            plain_load(g, i, qn__memory_type(g, dtype), x.pointer, align)),
            g->depth);
    LLVMTypeRef element = qn__memory_type(g, dtype);
    if ((v = qn__load_grouped(g, i, p, &x, element)) != NULL) {
    } else if (qn__is_strided(g, i, &x, mask)) {
        v = qn__load_strided(g, i, &x, t, mask);
    } else if (x.kind == ADDRESS_REVERSED && !mask) {
        v = plain_load(g, i, t, x.pointer, align);
    } else if (x.kind == ADDRESS_UNIT || x.kind == ADDRESS_REVERSED) {
        mask = x.kind == ADDRESS_UNIT ? mask : reverse(g, mask);
        v = qn__load_masked(g, t, x.pointer, align, mask);
    } else if (mask || !(v = qn__load_near(g, i, &x, t))) {
        v = qn__load_masked(g, t, qn__lane_pointers(g, &x), align, mask);
    }
    if (x.kind == ADDRESS_REVERSED)
        v = reverse(g, v);
    return qn__to_register(g, dtype, v);
}

static const check untested;

/** Lanes active in any of the parts that share part p of a load: its value is loaded once for all
 * of them. */
static LLVMValueRef shared_mask(lower *g, uint32_t i, int p, LLVMValueRef *masks)
{
    LLVMValueRef any = masks[p];
    FOR_PARTS (g, q) {
        if (q == p || qn__canonical_part(g, i, q) != p || any == masks[q])
            continue;
        any = any && masks[q] ? LLVMBuildOr(g->b, any, masks[q], "") : NULL;
        if (!any)
            return NULL;
    }
    return any;
}

/** Part p of a load, in the lanes of all parts that share its value. */
static LLVMValueRef load_shared(lower *g, uint32_t i, int p, const check *c, int *at)
{
    const bool is_vector = g->width > 1 && g->a.value[i].shape != QN_UNIFORM;
    LLVMValueRef mask = g->mask[p], tail_mask = g->tail_mask[p];
    g->mask[p] = shared_mask(g, i, p, g->mask);
    g->tail_mask[p] = shared_mask(g, i, p, g->tail_mask);
    LLVMValueRef v = (is_vector ? load_vector : load_scalar)(g, i, p, c, at);
    g->mask[p] = mask;
    g->tail_mask[p] = tail_mask;
    return v;
}

void qn__lower_load_part(lower *g, uint32_t i, int p)
{
    int buffer = qn__buffer_of(g, i);
    if (buffer >= 0 && g->filled[buffer].memory) {
        qn__load_through(g, buffer, i, p);
        return;
    }
    if (buffer >= 0 && g->value[i].is_set && g->value[i].part[qn__canonical_part(g, i, p)])
        return;
    LLVMValueRef held = g->hooks->held ? g->hooks->held(g, i, p) : NULL,
                 recurrent = qn__recurrent(g, i);
    if (held || recurrent) {
        qn__set(g, i, p, held ? held : qn__to_register(g, g->k->inst[i].type, recurrent), g->depth);
        return;
    }
    int at = g->depth;
    LLVMValueRef whole = NULL;
    branch row;
    if (qn__is_row(g, i)) {
        row = qn__begin_row(g, i, p);
        whole = load_shared(g, i, p, &untested, &at);
        qn__begin_other(g, &row);
    }
    check c = qn__make_check(g, i, p);
    FOR_PARTS (g, q)
        if (qn__canonical_part(g, i, q) == p)
            qn__report(g, i, q, &c);
    LLVMValueRef v = load_shared(g, i, p, &c, &at);
    if (whole) {
        qn__end_branch(g, &row, NULL);
        v = qn__join(g, &row, whole, v);
        at = g->depth;
    }
    if (g->is_team && (is_atomic_view(g, i) || g->k->param[g->k->inst[i].imm].is_written))
        v = g->hooks->team_same(g, v); /* what may change meanwhile must not split the lanes */
    qn__set(g, i, p, v, at);
}

/** Whether a branch decides for each part of load i: parts that share a value have no masks. */
static bool is_branched(const lower *g, uint32_t i)
{
    bool is = qn__buffer_of(g, i) < 0 && qn__is_one_branch(g, i);
    FOR_PARTS (g, p)
        is = is && (!g->mask[p] || qn__canonical_part(g, i, p) == p);
    return is;
}

enum { MOST_ALIKE = 8 }; /* loads behind one branch: a limit of memory, not of speed */

/** Part p of n loads, with all that are tested alike: performed, or reported and zero. */
static void load_checked(lower *g, const uint32_t *load, int n, int p, const check *c)
{
    LLVMValueRef v[MOST_ALIKE][MOST_PARTS] = {{NULL}};
    branch then = qn__begin_checked(g, c);
    for (int m = 0; m < n; m++)
        FOR_PARTS (g, q) {
            const bool is_vector = g->width > 1 && g->a.value[load[m]].shape != QN_UNIFORM;
            int at;
            if (qn__canonical_part(g, load[m], q) == q && qn__tested_with(g, load[m], q) == p)
                v[m][q] = (is_vector ? load_vector : load_scalar)(g, load[m], q, &untested, &at);
        }
    qn__end_checked(g, &then, load[0], p);
    for (int m = 0; m < n; m++)
        FOR_PARTS (g, q)
            if (v[m][q])
                qn__set(g, load[m], q,
                        qn__join(g, &then, v[m][q], LLVMConstNull(LLVMTypeOf(v[m][q]))), g->depth);
}

static void load_branched(lower *g, uint32_t i, uint32_t end)
{
    uint32_t load[MOST_ALIKE] = {i};
    int n = 1;
    const qn_inst *x = g->k->inst;
    for (uint32_t j = i + 1;
         j < end && n < MOST_ALIKE && (x[j].op == QN_I_LOAD || qn__is_pure(&x[j])); j++)
        if (x[j].op == QN_I_LOAD && is_branched(g, j) && qn__is_tested_alike(g, i, j)) {
            load[n++] = j;
            g->is_ahead[g->site[j]] = true;
        }
    FOR_PARTS (g, p) {
        if (qn__canonical_part(g, i, p) != p || qn__tested_with(g, i, p) != p)
            continue;
        check c = qn__make_check(g, i, p);
        load_checked(g, load, n, p, &c);
    }
}

void qn__lower_load(lower *g, uint32_t i, uint32_t end)
{
    if (qn__is_flat(g, i))
        return;
    if (qn__buffer_of(g, i) < 0 && (qn__lower_transposed_load(g, i) || qn__wide_load(g, i)))
        return;
    const bool branched = is_branched(g, i);
    if (branched && !g->is_ahead[g->site[i]])
        load_branched(g, i, end);
    g->is_ahead[g->site[i]] = false;
    FOR_PARTS (g, p)
        if (!branched && qn__canonical_part(g, i, p) == p)
            qn__lower_load_part(g, i, p);
    qn__prefetch_front(g, i);
}

/* ---------------------------------------------------------------- stores */

static void store_scalar(lower *g, uint32_t i, int p, const check *c, uint32_t value)
{
    int dtype = qn__access_dtype(g->k, i);
    LLVMValueRef v = qn__scalar(g, value, p), condition = any_active(g, p);
    if (c->is_needed)
        condition = qn__mask_and(g, condition, c->ok);
    if (g->is_team)
        condition = qn__mask_and(g, condition, g->hooks->team_begin(g));
    branch then = qn__begin_branch(g, condition);
    address x;
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    const unsigned align = displace(g, i, &x);
    LLVMValueRef store = qn__store_at(g, g->recurrence.stored = qn__to_memory(g, dtype, v),
                                      x.pointer, align);
    if (is_atomic_view(g, i))
        qn__make_relaxed(g, store);
    qn__end_branch(g, &then, NULL);
    if (g->is_team)
        g->hooks->team_end(g);
}

static void store_vector(lower *g, uint32_t i, int p, const check *c, uint32_t value)
{
    int dtype = qn__access_dtype(g->k, i);
    const unsigned align = qn__align_of(g, i);
    LLVMValueRef v = qn__to_memory(g, dtype, qn__vector(g, value, p)),
                 mask = qn__access_mask(g, i, p, c);
    address x = qn__displaced(g, i, p, c);
    if (x.kind == ADDRESS_REVERSED) {
        v = reverse(g, v);
        mask = mask ? reverse(g, mask) : NULL;
    }
    if (x.kind == ADDRESS_UNIT || x.kind == ADDRESS_REVERSED) {
        if (!mask && x.kind == ADDRESS_UNIT && qn__line_ends_store(g, i, p, v, x.pointer))
            return;
        if (!mask)
            qn__mark_stream(g, i, qn__store_at(g, v, x.pointer, align));
        else
            qn__store_masked(g, v, x.pointer, align, mask);
    } else if (qn__is_strided(g, i, &x, mask)) {
        qn__store_strided(g, i, &x, v, mask);
    } else {
        qn__store_masked(g, v, qn__lane_pointers(g, &x), align, mask);
    }
}

/** Several vectors from part p on, side by side and without masks. */
static void store_packed(lower *g, uint32_t i, int p, uint32_t value, int n)
{
    LLVMValueRef v = qn__pack_vectors(g, i, p, value, n);
    address x = qn__displaced(g, i, p, NULL);
    qn__mark_stream(g, i, qn__store_at(g, v, x.pointer, qn__align_of(g, i)));
}

/** Whether all lanes of a part store one value to one address. */
static bool store_is_uniform(const lower *g, uint32_t i, uint32_t value)
{
    return g->width == 1 ||
           (qn__indices_are_uniform(g, i) && g->a.value[value].shape == QN_UNIFORM);
}

static void store_part(lower *g, uint32_t i, int p, uint32_t value)
{
    check c = qn__make_check(g, i, p);
    const bool is_branched = qn__is_one_branch(g, i);
    branch then = {0};
    if (is_branched) {
        then = qn__begin_checked(g, &c);
        c.is_needed = false;
    }
    qn__report(g, i, p, &c);
    if (store_is_uniform(g, i, value) && !(c.is_needed && c.is_vector))
        store_scalar(g, i, p, &c, value);
    else
        store_vector(g, i, p, &c, value);
    if (is_branched)
        qn__end_checked(g, &then, i, p);
}

void qn__lower_store(lower *g, uint32_t i)
{
    uint32_t value = qn__args(g->k, i)[g->k->inst[i].n_args - 1];
    if (qn__is_flat(g, i)) {
        qn__store_flat(g, i);
        return;
    }
    if (qn__lower_transposed_store(g, i, value) || qn__wide_store(g, i) || qn__store_grouped(g, i))
        return;
    int together = qn__stored_together(g, i, value);
    FOR_PARTS (g, p) {
        if (together > 1) {
            if (p_u % together == 0)
                store_packed(g, i, p, value, together);
            continue;
        }
        store_part(g, i, p, value);
    }
}
