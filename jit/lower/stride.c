/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stride.c: loads and stores of lanes a constant number of elements apart. Where that is small they
 * lie in |stride| vectors, and a permutation brings the lanes together. Loads of all lanes may read
 * what lies between the first element and the last; stores, and loads of some lanes, have masks,
 * so that no byte between the elements is touched. Else, and where that takes longer
 * (qn__is_one_by_one), each has an access of its own.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/lower.h"

#include "jit/schedule/forms.h"

static bool is_single(const lower *g, uint32_t i)
{
    const qn_record_info *r = qn__record_of(g, i);
    return r && r->is_single;
}

/** Whether each lane has an access of its own. Vectors of fewer lanes than a step's, as a rest has,
 * are taken apart sooner. */
static bool is_one_by_one(const lower *g, uint32_t i, const address *x, int64_t bytes)
{
    int few = is_single(g, i) ? 1 : g->width == g->block->width ? -1 : 0;
    return qn__is_one_by_one(g->f, few, g->k->inst[i].op == QN_I_LOAD, bytes, g->width, x->stride);
}

bool qn__is_strided(const lower *g, uint32_t i, const address *x, LLVMValueRef mask)
{
    if (x->kind != ADDRESS_LANES || x->stride == 0)
        return false;
    if (mask) /* lanes one by one would need a branch each */
        return g->f->target->has_strided_loads && qn__is_small_stride(x->stride) &&
               !is_one_by_one(g, i, x, qn__access_bytes(g->k, i));
    return g->k->inst[i].op != QN_I_LOAD || is_single(g, i) || qn__is_small_stride(x->stride);
}

static LLVMValueRef lane_pointer(lower *g, const address *x, int64_t bytes, int lane)
{
    return qn__ahead(g, x->pointer, qn__wrap_mul(lane, qn__wrap_mul(x->stride, bytes)));
}

/** A gather would take longer, above all out of cache. */
static LLVMValueRef load_one_by_one(lower *g, uint32_t i, const address *x, LLVMTypeRef t)
{
    const int64_t bytes = qn__access_bytes(g->k, i);
    const unsigned align = qn__align_of(g, i);
    LLVMValueRef all = LLVMGetPoison(t);
    for (int l = 0; l < g->width; l++) {
        LLVMValueRef at = lane_pointer(g, x, bytes, l),
                     one = qn__load_at(g, LLVMGetElementType(t), at, align);
        all = qn__insert(g, all, one, l);
    }
    return all;
}

/** Pointer of the vector that begins at an element; element 0 is the lowest one, so many before
 * that of lane 0. */
static LLVMValueRef vector_pointer(lower *g, const address *x, int64_t bytes, int begin, int ahead)
{
    int64_t first = x->stride < 0 ? (g->width - 1) * x->stride : -ahead;
    return qn__ahead(g, x->pointer, (first + begin) * bytes);
}

/**
 * Points of a reduce that are emitted one beside the other, and whose elements are neighbours: the
 * strides of the lanes, each of so many elements, that hold those of all of them.
 */
typedef struct window {
    int place;    /* of this point's element in a stride */
    uint32_t own; /* bit p: some point has the element at place p */
} window;

/** The strides that the point which is emitted shares with others, or its own. */
static window window_of(const lower *g, uint32_t i, const address *x)
{
    window w = {0, 1};
    int64_t step, index, begin, trips;
    if (x->stride < 2 || x->stride > SMALL_STRIDE || !qn__is_plain_access(g->k, g->f, i) ||
        !qn__is_in_range(g->f, g->site[i]))
        return w;
    for (int d = 0; d < g->k->n_dims; d++) {
        trips = qn__trips(g->f, d);
        if (!qn__is_reduction(g->k, d) || trips < 2 || !g->iv[d] ||
            !qn__access_stride(&g->a, i, d, &step) || step != 1 ||
            !qn__is_const(g->iv[d], &index) || !qn__is_const(g->begin[d], &begin))
            continue;
        int64_t point = index - begin + g->ahead[d];
        w = (window){(int)(point % x->stride), 0};
        for (int64_t e = 0; e < x->stride; e++)
            w.own |= (uint32_t)(point - w.place + e < trips) << e;
        break;
    }
    return w;
}

/** Elements from lane to lane. */
static int apart(const address *x)
{
    return (int)(x->stride < 0 ? -x->stride : x->stride);
}

/** lane[e]: the lane whose element is element e of the vector that begins at an element, if some
 * point has that; else -1. */
static void find_lanes(const lower *g, const address *x, uint32_t own, int begin, int *lane)
{
    for (int e = 0; e < g->width; e++) {
        const int at = begin + e, l = at / apart(x);
        lane[e] = !(own >> at % apart(x) & 1) ? -1 : x->stride < 0 ? g->width - 1 - l : l;
    }
}

/** Which elements of a vector are loaded or stored, where those of lane l are in question if the
 * lane has a 1 in `mask`; lane[e]: of element e, -1: of no lane. */
static LLVMValueRef elements_of(lower *g, const int *lane, LLVMValueRef mask)
{
    LLVMValueRef none = LLVMConstNull(qn__vector_of(g, g->i1));
    int pick[64];
    for (int e = 0; e < g->width; e++)
        pick[e] = lane[e] < 0 ? g->width : lane[e];
    return qn__shuffle(g, mask ? mask : LLVMConstAllOnes(LLVMTypeOf(none)), none, pick, g->width);
}

/** The elements of whole strides, and from them those of one. Vectors are whole where the processor
 * fetches nothing ahead for masks: the last one ends where the last element of a point does, so
 * that all bytes are between two elements. */
LLVMValueRef qn__load_strided(lower *g, uint32_t i, const address *x, LLVMTypeRef t,
                              LLVMValueRef mask)
{
    const int64_t bytes = qn__access_bytes(g->k, i);
    const unsigned align = qn__align_of(g, i);
    const int n = apart(x), width = g->width;
    LLVMValueRef all = NULL;
    if (is_one_by_one(g, i, x, bytes))
        return load_one_by_one(g, i, x, t);
    const window w = window_of(g, i, x);
    const bool is_whole = !mask && (w.own == (1u << n) - 1 || !g->f->machine.fetches_masked);
    const int last = 31 - __builtin_clz(w.own), most = (width - 1) * n + last + 1 - width;
    for (int k = 0; k < n; k++) {
        const int begin = is_whole && k * width > most ? most : k * width;
        int pick[64], lane[64], n_picked = 0;
        find_lanes(g, x, w.own, begin, lane);
        for (int l = 0; l < width; l++)
            pick[l] = l;
        for (int e = k * width - begin; e < width; e++) {
            const bool is_picked = (begin + e) % n == w.place;
            n_picked += is_picked;
            if (is_picked)
                pick[lane[e]] = width + e;
        }
        if (!n_picked)
            continue;
        LLVMValueRef own = is_whole ? NULL : elements_of(g, lane, mask),
                     at = vector_pointer(g, x, bytes, begin, w.place),
                     v = qn__load_masked(g, t, at, align, own);
        all = qn__shuffle(g, all ? all : v, v, pick, width);
    }
    return all;
}

/* ---------------------------------------------------------------- stores */

void qn__store_strided(lower *g, uint32_t i, const address *x, LLVMValueRef v, LLVMValueRef mask)
{
    const int64_t bytes = qn__access_bytes(g->k, i);
    const unsigned align = qn__align_of(g, i);
    if (is_one_by_one(g, i, x, bytes)) {
        for (int l = 0; l < g->width; l++) {
            LLVMValueRef one = qn__extract(g, v, l);
            qn__store_at(g, one, lane_pointer(g, x, bytes, l), align);
        }
        return;
    }
    for (int k = 0; k < apart(x); k++) {
        int pick[64], lane[64];
        const int begin = k * g->width;
        find_lanes(g, x, 1, begin, lane);
        for (int e = 0; e < g->width; e++)
            pick[e] = lane[e] < 0 ? 0 : lane[e];
        LLVMValueRef to = qn__shuffle(g, v, NULL, pick, g->width);
        qn__store_masked(g, to, vector_pointer(g, x, bytes, begin, 0), align,
                         elements_of(g, lane, mask));
    }
}

/* ---------------------------------------------------------------- lanes near one another */

/** Lanes at numbers of elements from x->pointer on. */
typedef struct nearby {
    LLVMValueRef at, first, behind; /* of lanes; of the first lane; how far behind it the last is */
} nearby;

/** false: the lanes of load i have no single number each. */
static bool find_nearby(lower *g, uint32_t i, const address *x, nearby *n)
{
    if (x->kind != ADDRESS_LANES || !x->scaled || x->scale != qn__access_bytes(g->k, i))
        return false;
    n->at = x->scaled;
    n->first = qn__extract(g, n->at, 0);
    n->behind = LLVMBuildSub(g->b, qn__extract(g, n->at, g->width - 1), n->first, "");
    return true;
}

/** Whether no lane is before the first one or behind the last, and all are within a vector. */
static LLVMValueRef are_near(lower *g, const nearby *n)
{
    LLVMValueRef most = qn__int(LLVMTypeOf(n->behind), g->width - 1);
    LLVMValueRef at = LLVMBuildSub(g->b, n->at, qn__splat(g, n->first, g->depth), "");
    LLVMValueRef beyond =
        LLVMBuildICmp(g->b, LLVMIntUGT, at, qn__splat(g, n->behind, g->depth), "");
    return LLVMBuildAnd(g->b, LLVMBuildNot(g->b, qn__any(g, beyond), ""),
                        LLVMBuildICmp(g->b, LLVMIntULE, n->behind, most, ""), "");
}

/** What lies from the first lane to the last, permuted. */
static LLVMValueRef load_permuted(lower *g, uint32_t i, const address *x, LLVMTypeRef t,
                                  const nearby *n)
{
    const unsigned bits = 8u * (unsigned)qn__access_bytes(g->k, i);
    const int lanes = 8 * g->f->target->vector_bytes / (int)bits; /* of a register */
    LLVMTypeRef number = qn__int_type(g, bits), numbers = qn__vector_of(g, number);
    LLVMValueRef first = n->first, low = LLVMBuildIntCast2(g->b, first, number, true, ""),
                 behind = LLVMBuildIntCast2(g->b, n->behind, number, true, ""),
                 at = LLVMBuildIntCast2(g->b, n->at, numbers, true, "");
    at = LLVMBuildSub(g->b, at, qn__splat(g, low, g->depth), "");
    LLVMValueRef mask = LLVMBuildICmp(g->b, LLVMIntULE, qn__lanes(g, number, 1),
                                      qn__splat(g, behind, g->depth), "");
    LLVMValueRef begin = qn__gep(g, number, x->pointer, first);
    LLVMValueRef v = qn__load_masked(g, t, begin, qn__align_of(g, i), mask);
    v = qn__resized(g, LLVMBuildBitCast(g->b, v, numbers, ""), lanes);
    v = g->hooks->permute(g, &v, 1, qn__resized(g, at, lanes));
    return LLVMBuildBitCast(g->b, qn__resized(g, v, g->width), t, "");
}

LLVMValueRef qn__load_near(lower *g, uint32_t i, const address *x, LLVMTypeRef t)
{
    bool is_register = g->width * qn__access_bytes(g->k, i) <= g->f->target->vector_bytes;
    int near = qn__nearness(&g->a, g->block->lane_dim, i);
    nearby n;
    if (near == QN_NEAR_NONE || (near != QN_NEAR_LIMITED && !is_register) ||
        !find_nearby(g, i, x, &n))
        return NULL;
    if (near == QN_NEAR_CERTAIN)
        return load_permuted(g, i, x, t, &n);
    LLVMValueRef most = qn__int(LLVMTypeOf(n.behind), g->width - 1), v,
                 condition = near == QN_NEAR_LIMITED
                                 ? LLVMBuildICmp(g->b, LLVMIntEQ, n.behind, most, "")
                                 : are_near(g, &n);
    branch side = qn__begin_choice(g, condition, "near", "apart");
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(side.from));
    if (near == QN_NEAR_LIMITED) {
        LLVMTypeRef element = LLVMGetElementType(t);
        v = qn__load_at(g, t, qn__gep(g, element, x->pointer, n.first), qn__align_of(g, i));
    } else {
        v = load_permuted(g, i, x, t, &n);
    }
    qn__begin_other(g, &side);
    LLVMValueRef gathered =
        qn__load_masked(g, t, qn__lane_pointers(g, x), qn__align_of(g, i), NULL);
    qn__end_branch(g, &side, NULL);
    return qn__join(g, &side, v, gathered);
}
