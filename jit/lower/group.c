/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c: members of records, parts of complex numbers and every other set of accesses whose lanes
 * lie between one another (analysis/group.h). All n places of a step of the lanes are n vectors
 * side by side. Loads take these vectors once, under a mask where nobody loads a place, and each
 * member is picked out of them. Stores of all n places are made together, where the last of them
 * stands.
 */
#include "jit/lower/group.h"
#include "jit/analysis/group.h"

/** Whether an access is made for all lanes, and in range in all of them. */
static bool is_plain(const lower *g, uint32_t i)
{
    return !qn__is_checked(g->f, g->k, g->site[i]) || g->covered[g->site[i]];
}

/** Which places of a group may be moved together with the others; as bits. */
static unsigned places_of(const lower *g, const qn_group *x)
{
    unsigned places = 0;
    for (int n = 0; n < x->n; n++)
        if (x->inst[n] && is_plain(g, x->inst[n]))
            places |= 1u << n;
    return places;
}

static bool group_of(const lower *g, uint32_t i, qn_group *x)
{
    return g->width > 1 && !g->is_team &&
           qn__group_of(g->k, g->f, &g->a, g->p->lane_dim, g->written_too, i, x);
}

/* ---------------------------------------------------------------- loads */

/** Vector v of a group whose element 0 is at `pointer`. */
static LLVMValueRef load_vector(lower *g, const qn_group *x, LLVMValueRef pointer, LLVMTypeRef t,
                                int v, unsigned places)
{
    int64_t bytes = qn__access_bytes(g->k, x->inst[x->place]);
    LLVMTypeRef vector = LLVMVectorType(t, (unsigned)g->width), types[2] = {vector, g->ptr};
    LLVMValueRef at = qn__ahead(g, pointer, v * g->width * bytes), lane[64];
    if (places == (1u << x->n) - 1) {
        LLVMValueRef all = LLVMBuildLoad2(g->b, vector, at, "");
        LLVMSetAlignment(all, (unsigned)bytes);
        return all;
    }
    for (int e = 0; e < g->width; e++)
        lane[e] = LLVMConstInt(g->i1, places >> (v * g->width + e) % x->n & 1, false);
    LLVMValueRef args[4] = {at, LLVMConstInt(g->i32, (unsigned long long)bytes, false),
                            LLVMConstVector(lane, (unsigned)g->width), LLVMConstNull(vector)};
    return qn__call(g, "llvm.masked.load", types, 2, args, 4);
}

/** Vector v of part p of a group, loaded once. */
static LLVMValueRef vector_of(lower *g, const qn_group *x, int p, const address *from,
                              LLVMTypeRef t, int v, unsigned places)
{
    int64_t key = ((int64_t)x->first * MOST_PARTS + p) * QN_MOST_MEMBERS + v;
    LLVMValueRef width = LLVMConstInt(g->i32, (unsigned)g->width, false);
    LLVMValueRef found = qn__memo_find(g, MEMO_GROUP, g->function, width, key, NULL);
    int64_t bytes = qn__access_bytes(g->k, x->inst[x->place]);
    if (found)
        return found;
    found = load_vector(g, x, qn__ahead(g, from->pointer, -x->place * bytes), t, v, places);
    qn__memo_add(g, MEMO_GROUP, g->function, width, key, g->depth, found);
    return found;
}

LLVMValueRef qn__load_grouped(lower *g, uint32_t i, int p, const address *from, LLVMTypeRef t)
{
    qn_group x;
    LLVMValueRef all = NULL;
    if (!group_of(g, i, &x) || from->stride != x.n)
        return NULL;
    unsigned places = places_of(g, &x);
    if (!(places >> x.place & 1) || (places & (places - 1)) == 0)
        return NULL;
    for (int v = 0; v < x.n; v++) {
        int pick[64], n_picked = 0;
        for (int l = 0; l < g->width; l++)
            pick[l] = l;
        for (int e = 0; e < g->width; e++) {
            int at = v * g->width + e - x.place;
            if (at % x.n != 0 || at < 0)
                continue;
            pick[at / x.n] = all ? g->width + e : e;
            n_picked++;
        }
        if (!n_picked)
            continue;
        LLVMValueRef taken = vector_of(g, &x, p, from, t, v, places);
        all = all ? qn__shuffle(g, all, taken, pick, g->width)
                  : qn__shuffle(g, taken, NULL, pick, g->width);
    }
    return all;
}

/* ---------------------------------------------------------------- stores */

/** Vector v of all members, whose vectors are `value`, side by side in memory. */
static LLVMValueRef interleaved(lower *g, const qn_group *x, const LLVMValueRef *value, int v)
{
    LLVMValueRef all = NULL;
    for (int m = 0; m < x->n; m++) {
        int pick[64], n_picked = 0;
        for (int e = 0; e < g->width; e++) {
            int at = v * g->width + e;
            bool is_own = at % x->n == m;
            pick[e] = is_own ? (all ? g->width : 0) + at / x->n : all ? e : 0;
            n_picked += is_own;
        }
        if (n_picked)
            all = qn__shuffle(g, all ? all : value[m], all ? value[m] : NULL, pick, g->width);
    }
    return all;
}

static void store_part(lower *g, const qn_group *x, int p)
{
    LLVMValueRef value[QN_MOST_MEMBERS];
    int64_t bytes = qn__access_bytes(g->k, x->first);
    address at;
    for (int m = 0; m < x->n; m++) {
        uint32_t i = x->inst[m], v = qn__args(g->k, i)[g->k->inst[i].n_args - 1];
        value[m] = qn__to_memory(g, qn__access_dtype(g->k, i), qn__vector(g, v, p));
    }
    qn__make_address(g, x->inst[0], p, NULL, &at);
    qn__displace(g, &at);
    for (int v = 0; v < x->n; v++) {
        LLVMValueRef pointer = qn__ahead(g, at.pointer, v * g->width * bytes);
        LLVMValueRef store = LLVMBuildStore(g->b, interleaved(g, x, value, v), pointer);
        LLVMSetAlignment(store, (unsigned)bytes);
    }
}

bool qn__store_grouped(lower *g, uint32_t i)
{
    qn_group x;
    if (!group_of(g, i, &x) || places_of(g, &x) != (1u << x.n) - 1)
        return false;
    FOR_PARTS(g, p)
        if (g->mask[p])
            return false;
    FOR_PARTS(g, p)
        if (i == x.last)
            store_part(g, &x, p);
    return true;
}
