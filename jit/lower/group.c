/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c: members of records, parts of complex numbers, channels of pixels and every other set of
 * accesses whose lanes lie between one another (analysis/group.h). Loads of a group are made where
 * the first one stands, and the vectors of all members are kept. Stores are made where the last
 * one stands.
 */
#include "jit/analysis/group.h"
#include "jit/lower/weave.h"

/** How many lanes are active in part p, the first ones; *count is NULL: all. False: it may be any.
 */
static bool active_lanes(const lower *g, uint32_t i, int p, LLVMValueRef *count)
{
    LLVMValueRef mask = qn__ignores_masks(g, i) ? g->tail_mask[p] : g->mask[p];
    *count = mask ? g->first_lanes.count : NULL;
    return !mask || mask == g->first_lanes.mask;
}

/** Whether the schedule has an access as one of a group. */
static bool is_asked(const lower *g, uint32_t i)
{
    const qn_record_info *r = qn__record_of(g, i);
    return !r || r->method == QN_METHOD_GROUP;
}

/** Whether no lane of the step is masked. */
static bool is_whole_step(const lower *g)
{
    FOR_PARTS (g, p)
        if (g->mask[p] || g->tail_mask[p])
            return false;
    return true;
}

bool qn__is_flat(const lower *g, uint32_t i)
{
    const qn_record_info *r = qn__record_of(g, i);
    return r && r->is_flat && g->width == g->block->width && is_whole_step(g);
}

/** The places that move with access i, and how. */
static bool weave_of(const lower *g, uint32_t i, qn_group *x, qn_weave *w)
{
    uint32_t places = 0;
    bool ignores_masks = qn__ignores_masks(g, i);
    if (g->width < 2 || g->is_team || !is_asked(g, i) ||
        !qn__group_of(&g->a, g->block->lane_dim, i, x))
        return false;
    for (int p = 0; p < x->n; p++)
        if (x->inst[p] && !qn__is_tested(g, x->inst[p]) && is_asked(g, x->inst[p]) &&
            qn__ignores_masks(g, x->inst[p]) == ignores_masks)
            places |= UINT32_C(1) << p;
    if (!(places >> x->place & 1) || (places & (places - 1)) == 0)
        return false;
    return qn__weave_of_group(&g->a, x, i, g->width, places, w);
}

/* ---------------------------------------------------------------- loads */

/** Where the vector of place 0 is kept: by its address, and by where loads of views that are
 * written stand. */
typedef struct kept {
    LLVMValueRef pointer, which;
    int64_t at;
} kept;

static kept kept_of(lower *g, const qn_group *x, uint32_t i, int p)
{
    address a;
    bool is_written = g->written_too >> g->k->inst[i].imm & 1;
    int64_t bytes = qn__access_bytes(g->k, i);
    int64_t which = (int64_t)(is_written ? x->first : 0) << 32 | (int64_t)x->n << 16 |
                    (int64_t)g->width << 8 | bytes;
    qn__make_address(g, i, p, NULL, &a);
    return (kept){a.pointer, qn__const_i64(g, which), a.constant - x->place * bytes};
}

LLVMValueRef qn__load_grouped(lower *g, uint32_t i, int p, const address *from, LLVMTypeRef t)
{
    qn_group x;
    qn_weave w;
    LLVMValueRef member[QN_MOST_PLACES], count;
    int64_t bytes = qn__access_bytes(g->k, i);
    if (from->kind != ADDRESS_LANES || from->stride < 2 || !active_lanes(g, i, p, &count) ||
        !weave_of(g, i, &x, &w) || from->stride != x.n || (count && !qn__may_count_lanes(&w)))
        return NULL;
    kept at = kept_of(g, &x, i, p);
    const memo_key own = {MEMO_GROUP, at.pointer, at.which, at.at + x.place * bytes};
    LLVMValueRef found = qn__memo_find(g, &own, NULL);
    if (found)
        return found;
    woven memory = {&w, t, qn__ahead(g, from->pointer, -x.place * bytes), count};
    qn__load_woven(g, &memory, member);
    for (int m = 0; m < x.n; m++)
        if (member[m]) {
            const memo_key key = {MEMO_GROUP, at.pointer, at.which, at.at + m * bytes};
            qn__memo_add(g, &key, g->depth, member[m]);
        }
    return member[x.place];
}

/* ---------------------------------------------------------------- stores */

static void store_part(lower *g, const qn_group *x, const qn_weave *w, int p, LLVMValueRef count)
{
    LLVMValueRef member[QN_MOST_PLACES] = {NULL};
    int last = 0; /* the place of the last member */
    address at;
    for (int m = 0; m < x->n; m++) {
        uint32_t i = x->inst[m];
        if (!i)
            continue;
        uint32_t v = qn__args(g->k, i)[g->k->inst[i].n_args - 1];
        member[m] = qn__to_memory(g, qn__access_dtype(g->k, i), qn__vector(g, v, p));
        last = i == x->last ? m : last;
    }
    at = qn__displaced(g, x->last, p, NULL);
    woven memory = {w, LLVMGetElementType(LLVMTypeOf(member[last])),
                    qn__ahead(g, at.pointer, -last * qn__access_bytes(g->k, x->last)), count};
    qn__store_woven(g, &memory, member);
}

bool qn__store_grouped(lower *g, uint32_t i)
{
    qn_group x;
    qn_weave w;
    LLVMValueRef count[MOST_PARTS];
    if (!weave_of(g, i, &x, &w))
        return false;
    for (int m = 0; m < x.n; m++)
        if (x.inst[m] && !(w.places >> m & 1))
            return false; /* one that may be out of range is stored alone, in its turn */
    FOR_PARTS (g, p)
        if (!active_lanes(g, i, p, &count[p]) || (count[p] && !qn__may_count_lanes(&w)))
            return false;
    FOR_PARTS (g, p)
        if (i == x.last)
            store_part(g, &x, &w, p, count[p]);
    return true;
}
