/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_block.c: which reduces in index order (or in any) a block of threads shares: all its threads
 * evaluate points of a tile of iterations, so that what they read is coalesced and much of it is
 * under way; one thread for each iteration then adds the points in order. "May it?" (is_applicable)
 * is kept apart from "is it worth it?" (is_worth).
 */
#include "jit/schedule/gpu.h"

#include <math.h>

/* Loads of a thread that are under way together, in bytes and in points; bodies above a size take
 * fewer points. */
enum { BYTES_UNDER_WAY = 64, SMALL_REGION = 16, MEDIUM_REGION = 40, LARGE_REGION = 120 };
/* Points that are worth the barriers: in rows, and where neighbouring threads take neighbouring
 * iterations. */
enum { SHORTEST_ROW = 32, SHORTEST_COLUMN = 64 };
/* For each multiprocessor: blocks that keep it busy, and iterations from which on a thread for each
 * has enough loads under way, in bytes. */
enum { ENOUGH_UNITS = 4, BYTES_OF_MANY = 1 << 12 };
/* Iterations of a tile: at the least, and where their number is not known. */
enum {
    SMALLEST_TILE = 8,
    BLOCKS_OF_CACHE = 4, /* whose rows stay in the caches of a multiprocessor */
    SMALLEST_COLUMNS = 16,
    THREADS_OF_ROW = 64, /* of blocks that keep rows, of which a multiprocessor has some: */
    FEWEST_BLOCKS = 3,   /* while one adds, others load */
    MOST_OF_ROW = 512,   /* threads of a row whose points the lanes of a warp add */
    FEW_ROUNDS = 4,      /* of all blocks: the last one leaves many idle */
    USUAL_TILE = 32,
    LARGEST_TILE = 256,
    LONGEST_CHUNK = 1024
};

/* ---------------------------------------------------------------- may it? */

/** Whether a value outside of reduces is made of indices, scalars, arithmetic and loads that cannot
 * fail of memory that nobody writes: each thread of a block may have it for any iteration.
 * `reduces`: or of the values of reduces, which are in shared memory. */
static bool is_free(const gpu_planner *s, uint32_t i, int depth, bool reduces)
{
    const qn_kernel *k = s->k;
    const qn_inst *x = &k->inst[i];
    bool is_load = x->op == QN_I_LOAD;
    if (x->op == QN_I_DIM || (reduces && x->op == QN_I_REDUCE && !x->parent))
        return true;
    if (depth == 0 || x->parent || (!is_load && !qn__is_pure(x)))
        return false;
    if (is_load) {
        uint32_t site = qn__site_of(k, i);
        if (site >= 64 || qn__is_checked(s->f, k, site) ||
            !s->f->param[x->imm].is_constant_memory || (k->param[x->imm].traits & QN_ATOMIC))
            return false;
    }
    for (int n = 0; n < x->n_args; n++)
        if (!is_free(s, qn__args(k, i)[n], depth - 1, reduces && !is_load))
            return false;
    return true;
}

/** Whether the points of one reduce may be evaluated by any thread. */
static bool may_share(const gpu_planner *s, uint32_t reduce)
{
    const qn_kernel *k = s->k;
    const qn_inst *x = &k->inst[reduce];
    uint32_t begin = x->region[0], end = x->region[2];
    if (x->parent || end - begin > LARGE_REGION)
        return false;
    for (uint32_t i = begin; i < end; i++) {
        const qn_inst *y = &k->inst[i];
        if (y->op == QN_I_REDUCE || y->op == QN_I_STORE || y->op == QN_I_ATOMIC)
            return false;
        if (y->op == QN_I_LOAD &&
            (!s->f->param[y->imm].is_constant_memory || (k->param[y->imm].traits & QN_ATOMIC)))
            return false;
        for (int n = 0; n < y->n_args; n++) {
            uint32_t v = qn__args(k, i)[n];
            if ((v < begin || v >= end) && !is_free(s, v, MOST_INDEX_DEPTH, true))
                return false;
        }
    }
    return true;
}

static bool is_applicable(const gpu_planner *s)
{
    int n_reduces = 0;
    FOR_REDUCES (s->k, i) {
        if (!may_share(s, i))
            return false;
        n_reduces++;
    }
    return n_reduces > 0 && n_reduces <= MOST_BLOCK_REDUCES;
}

/* ---------------------------------------------------------------- what is read */

/** What the reduces of a kernel look like. */
typedef struct survey {
    int64_t points;                  /* of the longest, -1: not known */
    double by_points, by_iterations; /* cost of what is read, see qn__gpu_access_cost */
    int64_t bytes, arrays; /* of the loads of a point ahead of time that differ between iterations;
                              the same in shared memory */
    bool is_slow;          /* sums of f64: additions take longer than loads */
    bool may_split;        /* blocks of 4096 points may be apart: known dimensions, not in order */
    bool is_striped;       /* some reduces are in the striped order */
    uint32_t size;         /* instructions of the largest region */
    bool is_read_again;    /* by a later reduce, or by the iterations that share the reduces */
    bool is_whole;         /* each has a load that no two iterations share */
    uint64_t loads;        /* bits: sites of loads that are made ahead of time */
} survey;

/** May a load be made before its point is evaluated? */
static bool is_early(const gpu_planner *s, uint32_t reduce, uint32_t site)
{
    uint32_t i = s->k->access[site].inst;
    return site < 64 && s->k->inst[i].parent == reduce && !qn__is_checked(s->f, s->k, site) &&
           qn__is_known_ahead(s->k, i);
}

/** Bits of the parallel dimensions that have more than one iteration. */
static uint32_t parallel_dims(const gpu_planner *s)
{
    uint32_t bits = 0;
    for (int d = 0; d < s->k->n_dims; d++)
        if (qn__is_parallel(s->k, d) && qn__trips(s->f, d) != 1)
            bits |= 1u << d;
    return bits & ~s->p->rest_dims;
}

/** Whether points of a reduce need the value of an earlier one. */
static bool needs_reduces(const gpu_planner *s, uint32_t reduce)
{
    const qn_inst *x = &s->k->inst[reduce];
    for (uint32_t i = x->region[0]; i < x->region[2]; i++)
        for (int n = 0; n < s->k->inst[i].n_args; n++) {
            uint32_t v = qn__args(s->k, i)[n];
            if (v < reduce && !is_free(s, v, MOST_INDEX_DEPTH, false))
                return true;
        }
    return false;
}

/** Bits of the dimensions of a reduce that have more than one index. */
static uint32_t reduced_dims(const gpu_planner *s, uint32_t reduce)
{
    uint32_t bits = 0;
    for (int m = 0; m < s->k->inst[reduce].n_args; m++) {
        const int d = qn__dim_of(s->k, reduce, m);
        bits |= qn__trips(s->f, d) != 1 ? UINT32_C(1) << d : 0;
    }
    return bits;
}

/** Whether windows of neighbouring iterations overlap in load i: a point of one is another's. */
static bool overlaps(const gpu_planner *s, uint32_t i, uint32_t all, uint32_t reduced)
{
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        const qn_affine *a = &s->a.affine[qn__args(s->k, i)[r]];
        for (int d = 0; d < s->k->n_dims; d++)
            for (int k = 0; k < s->k->n_dims && (all >> d & 1) && a->coef[d]; k++)
                if ((reduced >> k & 1) && a->coef[k] &&
                    fabs((double)a->coef[d]) <
                        fabs((double)a->coef[k]) * (double)qn__trips_or(s->f, k, INT32_MAX))
                    return true;
    }
    return false;
}

static void survey_reduce(const gpu_planner *s, uint32_t reduce, int lanes, survey *v)
{
    const qn_inst *x = &s->k->inst[reduce];
    int n_long, k = qn__long_dim(s->k, s->f, reduce, &n_long), order = qn__order_rule(s->k, reduce);
    int64_t points = qn__usual_points(s->k, s->f, reduce), bytes = 0;
    const uint32_t reduced = reduced_dims(s, reduce);
    uint32_t all = parallel_dims(s), size = x->region[2] - x->region[0];
    bool is_whole = false;
    FOR_ACCESSES (s->k, site, i) {
        if (i < x->region[0] || i >= x->region[2])
            continue;
        v->by_points += qn__gpu_access_cost(s, i, k);
        v->by_iterations += qn__gpu_access_cost(s, i, lanes);
        is_whole |= (s->a.value[i].deps & all) == all &&
                    (s->a.value[i].deps & reduced) == reduced && !overlaps(s, i, all, reduced);
        if (!is_early(s, reduce, site))
            continue;
        v->loads |= UINT64_C(1) << site;
        bytes += s->a.value[i].deps & all ? qn__access_bytes(s->k, i) : 0;
    }
    uint32_t product = qn__contracted_product(s->k, reduce);
    int64_t arrays = 0;
    for (int n = 0; n < (product ? 2 : 1); n++) {
        uint32_t of = product ? product : x->region[2] - 1;
        arrays += s->a.value[qn__args(s->k, of)[n]].deps & all ? qn_dtype_bytes(x->type) : 0;
    }
    v->points = points < 0 || v->points < 0 ? -1 : points > v->points ? points : v->points;
    v->bytes = bytes > v->bytes ? bytes : v->bytes;
    v->arrays = arrays > v->arrays ? arrays : v->arrays;
    v->size = size > v->size ? size : v->size;
    v->is_whole &= is_whole;
    v->is_slow |= x->type == QN_F64 && !product;
    v->is_striped |= order == QN_STRIPED;
    v->is_read_again |= needs_reduces(s, reduce);
    v->may_split &= !v->is_read_again && points >= 2 * QN_BLOCK_POINTS && order != QN_ORDERED;
}

static survey look(const gpu_planner *s, int lanes)
{
    survey v = {.is_whole = true, .is_read_again = s->p->rest_dims != 0};
    uint32_t reduced = 0; /* by all reduces, if blocks of their points are apart */
    bool is_one = true;
    FOR_REDUCES (s->k, i) {
        is_one = is_one && (!reduced || reduced == reduced_dims(s, i));
        reduced = reduced_dims(s, i);
    }
    v.may_split = is_one && reduced && !v.is_read_again;
    for (uint32_t site = 0; site < s->k->n_accesses && site < 64; site++) {
        uint32_t i = s->k->access[site].inst;
        bool is_rest = s->a.value[i].deps & s->p->rest_dims;
        if (s->k->inst[i].op == QN_I_LOAD && !is_rest && is_free(s, i, MOST_INDEX_DEPTH, false))
            v.loads |= UINT64_C(1) << site;
    }
    FOR_REDUCES (s->k, i)
        survey_reduce(s, i, lanes, &v);
    return v;
}

/** Iterations that share nothing of what they read: else threads of neighbouring iterations read it
 * from the cache. Rows are read along the points; columns only if they are too few to have much
 * under way otherwise. */
static bool is_worth(const gpu_planner *s, const survey *v)
{
    int64_t n = qn__gpu_iterations(s);
    if (!v->is_whole || v->bytes == 0)
        return false;
    if (v->by_points < v->by_iterations)
        return v->points < 0 || v->points >= SHORTEST_ROW;
    return (v->points < 0 || v->points >= SHORTEST_COLUMN) &&
           n < (int64_t)BYTES_OF_MANY * s->f->machine.multiprocessors / v->bytes;
}

/* ---------------------------------------------------------------- the tile */

/** Points that a thread evaluates one beside the other, of a region of so many instructions. */
static int64_t most_each(uint32_t size)
{
    return size <= SMALL_REGION    ? QN_MOST_EACH
           : size <= MEDIUM_REGION ? QN_MOST_EACH / 2
                                   : QN_MOST_EACH / 4;
}

int64_t qn__block_chunk(const qn_kernel *k, const qn_grid *p, uint32_t reduce)
{
    const qn_inst *x = &k->inst[reduce];
    const int64_t tile = p->block[p->axis[0]], threads = p->threads[p->axis[0]],
                  most = most_each(x->region[2] - x->region[0]) * threads / tile;
    return p->n_kept && most < p->chunk ? most : p->chunk;
}

/** Points of a chunk that each thread evaluates: a power of two. */
static int64_t points_each(const gpu_planner *s, const survey *v)
{
    int64_t n = most_each(v->size);
    while (n > 1 && n * v->bytes > BYTES_UNDER_WAY)
        n /= 2;
    while (n > 1 && 2 * QN_BLOCK_THREADS * n * v->arrays > s->f->machine.block_shared_bytes * 3 / 4)
        n /= 2;
    return n;
}

/** The dimension of the tile: that of the lanes; for rows one that is long enough. */
static int dimension_of(const gpu_planner *s, int lanes, bool is_along_points)
{
    int best = lanes;
    for (int d = 0; is_along_points && d < s->k->n_dims; d++) {
        int64_t here = qn__trips(s->f, d), most = qn__trips(s->f, best);
        bool is_rest = s->p->rest_dims >> d & 1;
        if (qn__is_parallel(s->k, d) && !is_rest && most >= 0 && most < USUAL_TILE &&
            (here < 0 || here > most))
            best = d;
    }
    return best;
}

/** Iterations x points of a tile: `total` evaluations in all. */
static void choose_shape(const gpu_planner *s, const survey *v, int x, int64_t total)
{
    qn_grid *p = s->p;
    int64_t trips = qn__trips(s->f, x), all = qn__gpu_iterations(s),
            least = p->is_along_points ? 32 : 1;
    int64_t tile = p->is_along_points || trips < 0 ? USUAL_TILE : LARGEST_TILE;
    int64_t smallest = p->is_along_points ? SMALLEST_TILE : SMALLEST_COLUMNS;
    int64_t enough = (int64_t)ENOUGH_UNITS * s->f->machine.multiprocessors;
    p->is_split = v->may_split && all >= 0 && (v->is_striped || all / USUAL_TILE < enough);
    tile = !p->is_split && !v->is_striped ? tile
           : v->is_slow && !v->is_striped ? 2 * USUAL_TILE
                                          : USUAL_TILE;
    if (v->is_read_again && p->is_along_points) { /* few rows, which are in cache the next time */
        int64_t most = s->f->machine.shared_bytes / BLOCKS_OF_CACHE;
        tile = v->points > 0 ? USUAL_TILE : smallest;
        while (tile > (p->rest_dims ? 1 : smallest) && v->points > 0 &&
               tile * v->points * v->bytes > most)
            tile /= 2;
    }
    while (tile > smallest && trips >= 0 &&
           (tile / 2 >= trips || (!p->is_split && all / tile < enough)))
        tile /= 2;
    while (tile < LARGEST_TILE &&
           (total / tile > LONGEST_CHUNK ||
            (v->points >= 0 && total / tile >= 2 * v->points && total / tile > least)))
        tile *= 2;
    while (total / tile < least ||
           (!p->is_along_points && tile > LARGEST_TILE)) /* one thread for each iteration */
        tile /= 2;
    p->block[x] = tile;
    p->chunk = (int32_t)(total / tile);
}

bool qn__block_is_by_lanes(const qn_kernel *k, const qn_grid *p, uint32_t reduce)
{
    return p->n_kept && (qn__order_rule(k, reduce) == QN_STRIPED || qn__is_associative(k, reduce));
}

bool qn__block_is_by_partials(const qn_kernel *k, const qn_grid *p, uint32_t reduce)
{
    return !p->n_kept && qn__order_rule(k, reduce) == QN_STRIPED;
}

/** Threads of a block that keeps so many rows. */
static int64_t threads_of_rows(int64_t tile)
{
    const int64_t threads = THREADS_OF_ROW * tile;
    return threads < QN_BLOCK_THREADS / 2 ? QN_BLOCK_THREADS / 2
           : threads > QN_BLOCK_THREADS   ? QN_BLOCK_THREADS
                                          : threads;
}

/** Keeps whole rows in shared memory if a later reduce, or what stands behind the reduces, reads or
 * computes again what one does: then no row is read twice, and barriers stand between reduces only.
 * Of the tiles that leave the most rows on a multiprocessor, the largest: a warp that adds takes a
 * row in each lane, and a multiprocessor has turns for so many such warps only. Where all lanes of
 * a warp add a row, one row. */
static bool choose_rows(const gpu_planner *s, const survey *v, int x)
{
    qn_grid *p = s->p;
    const qn_machine *m = &s->f->machine;
    const int64_t all = qn__gpu_iterations(s);
    bool by_lanes = true;
    if (!p->is_along_points || v->points < SHORTEST_ROW || (v->may_split && !v->is_striped))
        return false;
    qn__gpu_choose_kept(s);
    if (!p->n_kept)
        return false;
    FOR_TOP_REDUCES (s->k, i)
        by_lanes &= qn__block_is_by_lanes(s->k, p, i);
    survey loads = *v; /* larger regions have chunks of their own: qn__block_chunk */
    loads.size = 0;
    loads.arrays = 0; /* rows are no buffers */
    int64_t best = 1, most = 0, chunk = SHORTEST_ROW;
    for (int64_t tile = 1;
         tile <= (by_lanes ? 1 : USUAL_TILE) &&
         FEWEST_BLOCKS * (tile * p->kept_bytes + m->system_bytes) <= m->shared_bytes &&
         (tile == 1 || all < 0 || all / tile >= ENOUGH_UNITS * m->multiprocessors);
         tile *= 2) {
        int64_t blocks = m->shared_bytes / (tile * p->kept_bytes + m->system_bytes),
                held = m->threads / threads_of_rows(tile);
        blocks = blocks < held ? blocks : held;
        blocks = blocks < m->adders || by_lanes ? blocks : m->adders;
        best = tile * blocks >= most ? tile : best;
        most = tile * blocks > most ? tile * blocks : most;
    }
    int64_t threads = threads_of_rows(best);
    while (by_lanes && threads < MOST_OF_ROW &&
           (4 * threads * most < 3 * m->threads ||
            (all >= 0 && all / m->multiprocessors < FEW_ROUNDS * most))) {
        threads *= 2;
        most = m->threads / threads < most ? m->threads / threads : most;
    }
    p->threads[x] = (int32_t)threads;
    p->block[x] = best;
    p->has_values = true;
    while (2 * chunk <= v->points && 2 * chunk * best <= threads * points_each(s, &loads))
        chunk *= 2;
    p->chunk = (int32_t)(chunk * best < threads ? threads / best : chunk);
    qn__gpu_place_kept(s);
    return true;
}

/** Whether threads of a block may have the 64 partials of columns in the striped order: of at most
 * 4096 points, or of so many blocks. */
static bool may_be_columns(const gpu_planner *s, const survey *v)
{
    return !s->p->is_along_points && !s->p->rest_dims && !v->is_read_again && v->points > 0 &&
           v->points <= (v->may_split ? QN_BLOCK_POINTS * QN_BLOCK_POINTS : QN_BLOCK_POINTS) &&
           is_worth(s, v);
}

/** Lets blocks of threads share the points of reduces if that is possible and pays; p->team is who
 * runs iterations else. */
bool qn__gpu_choose_block(const gpu_planner *s, int lanes)
{
    qn_grid *p = s->p, before = *p;
    int wanted = s->f->plan.team;
    if (lanes < 0 || s->has_assertions || p->team == QN_TEAM_GRID ||
        (wanted && wanted != QN_TEAM_BLOCK) || !is_applicable(s) ||
        (p->team == QN_TEAM_WARP && !wanted && !qn__gpu_wants_blocks(s)))
        return false;
    survey v = look(s, lanes);
    /* What the lanes of a warp take points of else. */
    const bool is_warp = p->team == QN_TEAM_WARP, has_rows = is_warp || v.is_striped;
    if (!wanted && !p->rest_dims && !has_rows && !is_worth(s, &v))
        return false;
    p->n_kept = p->kept_bytes = 0;
    p->is_along_points = v.by_points < v.by_iterations;
    int x = dimension_of(s, lanes, p->is_along_points);
    p->team = QN_TEAM_BLOCK;
    p->early = v.loads;
    p->has_values = v.is_read_again;
    p->axis[0] = x;
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        if (!qn__is_parallel(s->k, d) || (p->rest_dims >> d & 1))
            continue;
        p->threads[d] = d == x ? QN_BLOCK_THREADS : 1;
        p->block[d] = 1;
    }
    if (choose_rows(s, &v, x))
        return true;
    if (is_warp || (v.is_striped && !may_be_columns(s, &v))) {
        *p = before;
        return false;
    }
    choose_shape(s, &v, x, QN_BLOCK_THREADS * points_each(s, &v));
    return true;
}
