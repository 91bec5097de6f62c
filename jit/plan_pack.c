/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_pack.c: whether a register tile works on a copy of what its lanes load (jit/llvm_pack.c makes it). Knows no LLVM.
 *
 * "May it be copied?" (qn__may_pack) is kept apart from "is it worth it?" (is_worth).
 */
#include "jit/plan.h"

enum { MOST_COPY_BYTES = 1 << 20 };
/* Cache lines that one step of the lanes meets before a copy pays; more where each row has many of them side by side. */
enum { NARROW_BYTES = 32 << 10, WIDE_BYTES = 192 << 10 };
/* Tiles that use a copy before it pays: of vectors that are loaded as they are; of those that are gathered. */
enum { LEAST_TILES = 8, LEAST_TILES_GATHERED = 2 };
/* The second-level cache: lines so far apart share a set, which holds so many. */
enum { WAY_BYTES = 128 << 10, WAYS = 8 };

uint32_t qn__single_reduce(const qn_kernel *k, uint32_t i)
{
    uint32_t reduce = k->inst[i].parent;
    if (!reduce || k->inst[reduce].op != QN_I_REDUCE || k->inst[reduce].n_args != 1)
        return 0;
    for (uint32_t n = k->inst[reduce].region[0]; n < k->inst[reduce].region[2]; n++)
        if (k->inst[n].region[2] != n + 1)
            return 0;
    return reduce;
}

bool qn__may_pack(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, int lane_dim, int j, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    uint32_t reduce = x->op == QN_I_LOAD ? qn__single_reduce(k, i) : 0, deps = a->value[i].deps;
    if (!reduce || x->type == QN_BOOL || k->param[x->imm].is_written || (k->param[x->imm].traits & QN_ATOMIC))
        return false;
    if (qn__is_checked(f, k, qn__site_of(k, i)) || !qn__is_plain_access(k, f, i) || !qn__is_known_ahead(k, i))
        return false;
    int d = qn__dim_of(k, reduce, 0);
    bool is_used = (deps >> lane_dim & 1) && (deps >> d & 1) && !(deps >> j & 1);
    return is_used && qn__trips(f, lane_dim) > 0 && qn__trips(f, d) > 0 && qn__trips(f, j) > 0 && qn__may_repeat(k);
}

/** Bytes of cache lines that the lanes of one step read in all points. */
static int64_t touched_bytes(const qn_plan *p, int64_t points, int64_t bytes)
{
    return points * ((p->width * p->unroll * bytes + LINE_BYTES - 1) / LINE_BYTES + 1) * LINE_BYTES;
}

/** Whether the points of load i are so far apart that their lines do not fit the sets they share. */
static bool has_conflicts(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, uint32_t i, int d, int64_t bytes)
{
    int64_t apart;
    if (!qn__access_stride(k, f, a, i, d, &apart) || apart == 0)
        return false;
    int64_t way = WAY_BYTES;
    while ((apart * bytes) % way)
        way /= 2;
    return way >= LINE_BYTES && qn__trips(f, d) > WAY_BYTES / way * WAYS;
}

static bool is_worth(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, const qn_plan *p, uint32_t i)
{
    if (f->plan.pack)
        return f->plan.pack > 0;
    int d = qn__dim_of(k, qn__single_reduce(k, i), 0);
    int64_t bytes = qn_dtype_bytes(k->inst[i].type), tiles = (qn__trips(f, p->jam_dim) + p->jam - 1) / p->jam;
    if (qn__access_cost(k, f, a, i, p->lane_dim) >= COST_GATHER)
        return tiles >= LEAST_TILES_GATHERED;
    int64_t touched = touched_bytes(p, qn__trips(f, d), bytes);
    bool is_narrow = p->width * p->unroll * bytes <= 2 * LINE_BYTES;
    bool is_much = touched > (is_narrow ? NARROW_BYTES : WIDE_BYTES) || has_conflicts(k, f, a, i, d, bytes);
    return tiles >= LEAST_TILES && is_much;
}

void qn__plan_pack(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, qn_plan *p)
{
    bool is_known = p->remainder == QN_REMAINDER_NONE || p->remainder == QN_REMAINDER_TILE;
    int at = 0;
    while (at < p->n_loops && p->order[at] != p->lane_dim)
        at++;
    if (!is_known || p->jam <= 1 || at + 2 != p->n_loops || p->order[at + 1] != p->jam_dim || p->width < 2)
        return;
    for (uint32_t n = 0; n < k->n_accesses && !p->pack; n++) {
        uint32_t i = k->access[n].inst;
        if (!qn__may_pack(k, f, a, p->lane_dim, p->jam_dim, i) || !is_worth(k, f, a, p, i))
            continue;
        int64_t step = (int64_t)p->width * p->unroll * qn_dtype_bytes(k->inst[i].type), bytes;
        if (__builtin_mul_overflow(qn__trips(f, qn__dim_of(k, qn__single_reduce(k, i), 0)), step, &bytes) || bytes > MOST_COPY_BYTES)
            continue;
        p->pack = i;
        p->scratch_bytes = bytes;
    }
}
