/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse.c: cache tiles. Where a kernel reads a view at several constant distances along a loop (the
 * planes of a stencil), and one iteration of that loop touches more than the second-level cache
 * holds, what is read again comes from further away. Then a dimension further in runs in tiles,
 * outside that loop, so that what a tile touches stays.
 */
#include "jit/schedule/plan.h"

/* Transposing kernels: a multiple of every block. */
enum { TRANSPOSE_TILE = 512 };
/* The part of the second-level cache that a tile fills. Of long rows a tile has more, up to FEW,
 * and not less than LEAST_TILE: each reads the rows beside it, too. Tiles of the lanes are long. */
#define TILE_PART 0.375
enum { FEW = 8, LEAST_TILE = 4, LEAST_LANES = 4096 };
/* Of what comes from memory with tiles, the least part that is read once more without. */
enum { LEAST_PART = 8, MOST_APART = 32, MOST_ACCESSES = 64 };

/** Where the parallel loops begin. */
static int first_place(const qn_kernel *k, const qn_plan *p)
{
    int at = 0;
    while (at < p->n_loops && qn__dim_kind(k, p->order[at]) == QN_DIM_SEQUENTIAL)
        at++;
    return at;
}

/* A tile is a multiple of the steps of its dimension, so that what follows the last whole step is
 * the same in the last tile as in the domain, and nothing in others. */
static void set_tile(const qn_facts *f, qn_plan *p, int d, int64_t tile, int at)
{
    int64_t step = qn__plan_step(p, d);
    tile = (tile + step - 1) / step * step;
    if (tile >= qn__trips_or(f, d, INT64_MAX))
        return;
    p->tile[d] = tile;
    p->tile_at = at;
}

/** Bytes of lines that all iterations of the jammed dimension meet along the lanes in one step. The
 * next step goes on in the last of each two. */
static double swept_bytes(const qn_analysis *a, const qn_plan *p)
{
    int64_t stride;
    double bytes = 0;
    FOR_ACCESSES (a->k, n, i)
        if (qn__access_stride(a, i, p->lane_dim, &stride) && stride == 1)
            bytes += 2 * LINE_BYTES * (double)qn__trips_or(a->f, p->jam_dim, INT64_MAX);
    return bytes;
}

/** Transposing kernels whose stores are not streams, with arrays larger than the caches, or rows so
 * many that their lines are gone when the next step comes: the lanes sweep each tile. */
static void tile_transposed(const qn_analysis *a, qn_plan *p)
{
    const qn_facts *f = a->f;
    double points = 1;
    for (int d = 0; d < a->k->n_dims; d++)
        points *= (double)qn__trips_or(f, d, INT64_MAX);
    bool is_large =
        points * (double)(LINE_BYTES / p->width) > (double)f->machine.cache[QN_CACHE_LAST].bytes;
    if (!p->streams &&
        (is_large || swept_bytes(a, p) > (double)f->machine.cache[QN_CACHE_SECOND].bytes))
        set_tile(f, p, p->jam_dim, TRANSPOSE_TILE, qn__place_of(p, p->lane_dim));
}

/* ---------------------------------------------------------------- what is read again */

/** What one iteration of a loop touches, what of it an earlier iteration has read, and what not. */
typedef struct reuse {
    double bytes, again, first;
} reuse;

/** At how many distances along `dims` the loads that stay as far from that at `first` as they are
 * read the view. */
static int count_apart(const qn_analysis *a, uint32_t first, uint32_t dims)
{
    const qn_kernel *k = a->k;
    int64_t found[MOST_APART], apart;
    int n_found = 0;
    for (uint32_t n = 0; n < k->n_accesses; n++) {
        uint32_t i = k->access[first].inst, m = k->access[n].inst;
        if (k->inst[m].op != QN_I_LOAD || k->inst[m].imm != k->inst[i].imm ||
            !qn__elements_apart(a, m, i, &apart))
            continue;
        if (n < first) /* counted with that one */
            return 0;
        qn__elements_apart_along(a, m, i, dims, &apart);
        int at = 0;
        while (at < n_found && found[at] != apart)
            at++;
        if (at == n_found && n_found < MOST_APART)
            found[n_found++] = apart;
    }
    return n_found;
}

/** For one iteration of the loop at place `at`, with all iterations of the loops inside. Streams
 * leave nothing in a cache. */
static reuse reuse_of(const qn_analysis *a, const qn_plan *p, int at)
{
    const qn_kernel *k = a->k;
    reuse all = {0};
    uint32_t outer = 0, here = 1u << p->order[at];
    for (int n = 0; n < at; n++)
        outer |= 1u << p->order[n];
    FOR_ACCESSES (k, site, i) {
        uint32_t deps = qn__index_deps(a, i);
        double bytes = (double)qn__access_bytes(k, i);
        for (int n = at + 1; n < p->n_loops; n++)
            bytes *= deps >> p->order[n] & 1 ? (double)qn__trips(a->f, p->order[n]) : 1;
        bool is_read = k->inst[i].op == QN_I_LOAD;
        int n_all = is_read ? count_apart(a, site, outer | here) : 0;
        int n_first = is_read ? count_apart(a, site, outer) : 1;
        all.bytes += bytes * n_all;
        all.again += n_all > n_first ? bytes * (n_all - n_first) : 0;
        all.first += bytes * n_first;
    }
    return all;
}

/** Whether all loops are known, accesses are few, and none is in a region. */
static bool is_plain_nest(const qn_kernel *k, const qn_facts *f, const qn_plan *p)
{
    for (int n = 0; n < p->n_loops; n++)
        if (qn__trips(f, p->order[n]) < 0)
            return false;
    FOR_ACCESSES (k, n, i)
        if (k->inst[i].parent)
            return false;
    return p->lane_dim >= 0 && k->n_accesses <= MOST_ACCESSES;
}

/** Tiles of the outermost dimension inside the loop at place `at` that has enough iterations for
 * them; whether there is one. */
static bool tile_inside(const qn_kernel *k, const qn_facts *f, qn_plan *p, int at, double bytes)
{
    for (int n = at + 1; n < p->n_loops; n++) {
        int d = p->order[n];
        double fits = (double)qn__trips(f, d) * TILE_PART *
                      (double)f->machine.cache[QN_CACHE_SECOND].bytes / bytes;
        int64_t tile = (int64_t)fits, twice = (int64_t)(2 * fits);
        tile = tile >= FEW ? tile : twice < FEW ? twice : FEW;
        int64_t least = d == p->lane_dim ? LEAST_LANES : LEAST_TILE;
        bool is_near =
            d == p->lane_dim &&
            bytes * 4 < (double)f->machine.cache[QN_CACHE_LAST].bytes; /* in the last-level cache */
        if (!qn__is_parallel(k, d) || tile < least || is_near)
            continue;
        set_tile(f, p, d, tile, at);
        return true;
    }
    return false;
}

void qn__plan_tiles(const qn_analysis *a, qn_plan *p)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    int wanted = f->plan.tile_dim - 1;
    if (f->plan.tile < 0 || f->is_ordered)
        return;
    if (f->plan.tile > 0 && wanted >= 0 && qn__place_of(p, wanted) < p->n_loops &&
        qn__is_parallel(k, wanted)) {
        set_tile(f, p, wanted, f->plan.tile, first_place(k, p));
        return;
    }
    if (p->transpose)
        tile_transposed(a, p);
    else if (p->streams && is_plain_nest(k, f, p))
        for (int at = first_place(k, p); at + 1 < p->n_loops; at++) {
            reuse x = reuse_of(a, p, at);
            if (x.bytes > (double)f->machine.cache[QN_CACHE_SECOND].bytes &&
                x.again * (double)LEAST_PART >= x.first && tile_inside(k, f, p, at, x.bytes))
                return;
        }
}
