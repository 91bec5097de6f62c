/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c: whether a register tile works on a copy of what its lanes load (jit/lower/fill.c makes
 * it). Knows no LLVM.
 *
 * "May it be copied?" (qn__may_pack) is kept apart from "is it worth it?" (is_worth).
 */
#include "jit/schedule/plan.h"

/* Cache lines that one step of the lanes meets before a copy pays: so many first-level caches, more
 * where each row has many of them side by side, but half as many where vectors cross lines. */
enum { NARROW_CACHES = 1, CROSSING_CACHES = 2, WIDE_CACHES = 4 };
/* Tiles that use a copy before it pays: of vectors that are loaded as they are; of those that are
 * gathered. */
enum { LEAST_TILES = 8, LEAST_TILES_GATHERED = 2 };
/* Lines of a set of the second-level cache that a load may fill: of more ways, half are for what
 * else comes. */
enum { MOST_WAYS = 8 };
uint32_t qn__single_reduce(const qn_kernel *k, uint32_t i)
{
    uint32_t reduce = k->inst[i].parent;
    if (!reduce || k->inst[reduce].op != QN_I_REDUCE || k->inst[reduce].n_args != 1)
        return 0;
    return qn__is_straight(k, k->inst[reduce].region[0], k->inst[reduce].region[2]) ? reduce : 0;
}

uint32_t qn__reduce_of_plain(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    bool is_plain = k->inst[i].op == QN_I_LOAD && qn__is_plain_access(k, a->f, i) &&
                    !qn__is_checked(a->f, k, qn__site_of(k, i)) && qn__is_known_ahead(k, i);
    return is_plain ? qn__single_reduce(k, i) : 0;
}

/** Whether load i, of one reduce, reads elements that nothing changes atomically. */
static bool is_copyable(const qn_analysis *a, uint32_t i)
{
    const qn_inst *x = &a->k->inst[i];
    return qn__reduce_of_plain(a, i) && x->type != QN_BOOL &&
           !(a->k->param[x->imm].traits & QN_ATOMIC);
}

bool qn__may_pack(const qn_analysis *a, int lane_dim, int j, int c, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    uint32_t deps = a->value[i].deps;
    if (!is_copyable(a, i) || k->param[k->inst[i].imm].is_written)
        return false;
    int d = qn__dim_of(k, qn__single_reduce(k, i), 0);
    bool is_used = (deps >> lane_dim & 1) && (deps >> d & 1) && !(deps >> j & 1) &&
                   (c < 0 || !(deps >> c & 1));
    return is_used && qn__trips(f, lane_dim) > 0 && qn__trips(f, d) > 0 && qn__trips(f, j) > 0 &&
           qn__may_repeat(a);
}

/** Bytes of cache lines that the lanes of one step read in all points. */
static int64_t touched_bytes(const qn_plan *p, int64_t points, int64_t bytes)
{
    return points * ((p->width * p->unroll * bytes + LINE_BYTES - 1) / LINE_BYTES + 1) * LINE_BYTES;
}

/** Whether the points of load i are so far apart that their lines do not fit the sets they share.
 */
static bool has_conflicts(const qn_analysis *a, uint32_t i, int d, int64_t bytes)
{
    int64_t apart;
    if (!qn__access_stride(a, i, d, &apart) || apart == 0)
        return false;
    const qn_cache_level *second = &a->f->machine.cache[QN_CACHE_SECOND];
    int64_t way_bytes = INT64_C(1) << qn__size_class(qn__way_bytes(second)) / 4, way = way_bytes,
            ways = second->ways < MOST_WAYS ? second->ways : MOST_WAYS;
    while ((apart * bytes) % way)
        way /= 2;
    return way >= second->line && qn__trips(a->f, d) > way_bytes / way * ways;
}

/** Whether vectors of load i cross lines at most of the points: each is two accesses then. */
static bool crosses(const qn_analysis *a, uint32_t i, int d)
{
    int64_t apart, bytes = qn_dtype_bytes(a->k->inst[i].type);
    return qn__access_stride(a, i, d, &apart) && apart % (LINE_BYTES / bytes) != 0;
}

static bool is_worth(const qn_analysis *a, const qn_plan *p, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    if (f->plan.pack)
        return f->plan.pack > 0;
    int d = qn__dim_of(k, qn__single_reduce(k, i), 0);
    int64_t bytes = qn_dtype_bytes(k->inst[i].type),
            tiles = (qn__trips(f, p->jam_dim) + p->jam - 1) / p->jam;
    if (qn__access_cost(a, i, p->lane_dim) >= COST_GATHER)
        return tiles >= LEAST_TILES_GATHERED;
    bool is_narrow = p->width * p->unroll * bytes <= 2 * LINE_BYTES;
    int caches = is_narrow ? NARROW_CACHES : crosses(a, i, d) ? CROSSING_CACHES : WIDE_CACHES;
    int64_t near = f->machine.cache[QN_CACHE_FIRST].bytes * caches;
    bool is_much = touched_bytes(p, qn__trips(f, d), bytes) > near || has_conflicts(a, i, d, bytes);
    return tiles >= LEAST_TILES && is_much;
}

/** A load that all steps of the lanes copy anew. */
static void choose_load(const qn_analysis *a, qn_plan *p)
{
    const qn_kernel *k = a->k;
    bool is_known = p->remainder == QN_TAIL_NONE || p->remainder == QN_TAIL_NARROWER;
    int at = qn__place_of(p, p->lane_dim);
    if (!is_known || p->jam <= 1 || at + 2 != p->n_loops || p->order[at + 1] != p->jam_dim ||
        p->width < 2)
        return;
    for (uint32_t n = 0; n < k->n_accesses && !p->pack; n++) {
        uint32_t i = k->access[n].inst;
        if (!qn__may_pack(a, p->lane_dim, p->jam_dim, p->cross_dim, i) || !is_worth(a, p, i))
            continue;
        int64_t step = (int64_t)p->width * p->unroll * qn_dtype_bytes(k->inst[i].type), bytes;
        int64_t points = qn__trips(a->f, qn__dim_of(k, qn__single_reduce(k, i), 0));
        if (__builtin_mul_overflow(points, step, &bytes) ||
            bytes > a->f->machine.cache[QN_CACHE_SECOND].bytes)
            continue;
        p->pack = i;
        p->scratch_bytes = bytes;
    }
}

/** What the jammed iterations load side by side, and far apart from point to point: where all of it
 * is more than the second-level cache, each step of the lanes would wait for it anew. Copied for
 * some steps of the jammed dimension it is read once, and lies in the order of use. What the lanes
 * load is copied then for each of these pieces. There are as many steps in a piece as the options
 * say, or as fill half of that cache, with the copy of what the lanes load and what that is made
 * of. */
static void choose_rows(const qn_analysis *a, qn_plan *p)
{
    const qn_kernel *k = a->k;
    const int64_t cache = a->f->machine.cache[QN_CACHE_SECOND].bytes;
    if (!p->pack || p->cross > 1 || a->f->plan.pack < 0)
        return;
    for (uint32_t n = 0; n < k->n_accesses && !p->pack_rows; n++) {
        uint32_t i = k->access[n].inst;
        if (!qn__is_prefetched(a, p->lane_dim, p->jam_dim, i) || !is_copyable(a, i) ||
            qn__is_written_too(a, k->inst[i].imm) || !qn__may_repeat(a))
            continue;
        int64_t points = qn__trips(a->f, qn__dim_of(k, qn__single_reduce(k, i), 0)), step,
                all = (qn__trips(a->f, p->jam_dim) + p->jam - 1) / p->jam;
        if (__builtin_mul_overflow(points, p->jam * qn_dtype_bytes(k->inst[i].type), &step) ||
            all <= cache / step)
            continue;
        int64_t near = (cache / 2 - 2 * p->scratch_bytes) / step,
                most = a->f->plan.pack > 1 ? a->f->plan.pack : near > 1 ? near : 1,
                pieces = (all + most - 1) / most,
                steps = (all + pieces - 1) / pieces; /* all pieces have as many, about */
        p->pack_rows = i;
        p->row_steps = (int32_t)steps;
        p->scratch_bytes += steps * step;
        p->jam_rest = QN_TAIL_NARROWER;
    }
}

void qn__plan_pack(const qn_analysis *a, qn_plan *p)
{
    choose_load(a, p);
    choose_rows(a, p);
}
