/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c: how the threads of a GPU walk the domain. Each thread runs scalar code for its own
 * iterations. Data in, data out.
 */
#include "jit/schedule/gpu.h"
#include "jit/schedule/estimate.h"

/* Warps of a block: enough to hide latency with several blocks on one processor, few enough to
 * leave registers. Fewer where a multiprocessor would have less than so many blocks, which would
 * leave some of them idle while others have one more. */
enum { BLOCK_WARPS = 8, FEWEST_BLOCKS = 4 };

double qn__gpu_access_cost(const gpu_planner *s, uint32_t i, int d)
{
    int64_t stride;
    if (!qn__access_stride(&s->a, i, d, &stride))
        return GPU_COST_APART;
    double apart = stride < 0 ? -(double)stride : (double)stride;
    if (stride == 0)
        return GPU_COST_SAME;
    return apart < GPU_COST_APART ? apart : GPU_COST_APART;
}

int64_t qn__gpu_iterations(const gpu_planner *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->k->n_dims; d++)
        if (qn__is_parallel(s->k, d) && !(s->p->rest_dims >> d & 1) &&
            (qn__usual_trips(s->f, d, -1) < 0 ||
             __builtin_mul_overflow(n, qn__usual_trips(s->f, d, -1), &n)))
            return -1;
    return n;
}

int qn__gpu_reduced_dim(const gpu_planner *s, uint32_t reduce)
{
    int n, d = qn__long_dim(s->k, s->f, reduce, &n);
    return n <= 1 ? d : -1;
}

/** Cost of neighbouring threads along d. Stores count twice, accesses inside reduces 16 times. */
static double lane_cost(const gpu_planner *s, int d)
{
    double sum = 0;
    FOR_ACCESSES (s->k, n, i) {
        double times = qn__enclosing_reduce(s->k, i) ? 16 : s->k->inst[i].op == QN_I_LOAD ? 1 : 2;
        sum += times * qn__gpu_access_cost(s, i, d);
    }
    return sum;
}

/** How far accesses move along d, the larger, the further out. */
static double distance(const gpu_planner *s, int d)
{
    double sum = 0;
    FOR_ACCESSES (s->k, n, i)
        sum += qn__distance(&s->a, i, d);
    return sum;
}

/* ---------------------------------------------------------------- order */

/** The dimension of neighbouring threads, or -1. */
int qn__gpu_best_lanes(const gpu_planner *s)
{
    int best = -1, wanted = s->f->plan.lane_dim - 1;
    double least = 0;
    if (wanted >= 0 && wanted < s->k->n_dims && qn__is_parallel(s->k, wanted))
        return wanted;
    for (int d = 0; d < s->k->n_dims; d++) {
        bool is_rest = s->p->rest_dims >> d & 1;
        if (!qn__is_parallel(s->k, d) || is_rest || qn__trips(s->f, d) == 1)
            continue;
        double cost = lane_cost(s, d);
        if (best < 0 || cost <= least) {
            best = d;
            least = cost;
        }
    }
    return best < 0 ? best : qn__gpu_lanes_beside(s, best);
}

static void choose_order(const gpu_planner *s, int lanes)
{
    qn_grid *p = s->p;
    double far[QN_MAX_RANK];
    for (int d = 0; d < s->k->n_dims; d++)
        if (qn__dim_kind(s->k, d) == QN_DIM_SEQUENTIAL)
            p->order[p->n_loops++] = d;
    int first = p->n_loops;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (!qn__is_parallel(s->k, d) || d == lanes)
            continue;
        far[d] = lanes < 0 ? 0 : distance(s, d); /* without lanes: as declared, in one thread */
        int at = p->n_loops++;
        for (; at > first && far[p->order[at - 1]] < far[d]; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = d;
    }
    if (lanes >= 0)
        p->order[p->n_loops++] = lanes;
}

/* ---------------------------------------------------------------- blocks of threads */

static int32_t power_above(int64_t n, int32_t most)
{
    int32_t power = 1;
    while (power < n && power < most)
        power *= 2;
    return power;
}

/** Threads along the innermost loop: as many as there are, in blocks that leave few of them idle.
 */
static int32_t threads_across(int64_t n, int32_t widest, int32_t warp, bool has_more)
{
    if (n < 0)
        return has_more && widest > 2 * warp ? 2 * warp : widest;
    int32_t best = power_above(n, widest);
    for (int32_t threads = best / 2; threads >= warp; threads /= 2) {
        int64_t waste = (n + best - 1) / best * best - n,
                less = (n + threads - 1) / threads * threads - n;
        if ((waste - less) * 8 > n)
            best = threads;
    }
    return best;
}

/** n_shared: dimensions along which neighbouring iterations share loads. Blocks are then less wide,
 * so that more of these are in a block, whose loads meet in one first-level cache. */
void qn__gpu_choose_threads(const gpu_planner *s, int n_shared)
{
    qn_grid *p = s->p;
    bool is_warp = p->team == QN_TEAM_WARP; /* which is the threads along x */
    int32_t warp = s->f->machine.warp, block = BLOCK_WARPS * warp;
    const int64_t all = qn__gpu_iterations(s), threads = all < 0 ? -1 : all / (p->wide * p->tall),
                  enough = (int64_t)FEWEST_BLOCKS * s->f->machine.multiprocessors;
    while (!is_warp && block > warp && threads >= 0 && threads / block < enough)
        block /= 2;
    int32_t widest = p->is_crossed   ? warp / 4
                     : n_shared == 0 ? block
                     : n_shared == 1 ? (2 * warp < block ? 2 * warp : block)
                                     : warp;
    int32_t left = is_warp ? BLOCK_WARPS : p->is_crossed ? block / 2 : block;
    while (is_warp && left > 1 && left * p->kept_bytes > s->f->machine.block_shared_bytes)
        left /= 2;
    int n_axes = is_warp ? 1 : 0;
    for (int n = p->n_loops - 1; n >= 0; n--) {
        int d = p->order[n];
        if (!qn__is_parallel(s->k, d))
            break;
        if (p->rest_dims >> d & 1)
            continue;
        int64_t t = qn__usual_trips(s->f, d, -1), each = qn__grid_at_once(p, d);
        t = t > 0 ? (t + qn__grid_reach(p, d) + each - 1) / each : t;
        p->threads[d] = 1;
        if (n_axes < 3 && t != 1 && left > 1) {
            p->threads[d] = n_axes == 0
                                ? threads_across(t, widest, warp,
                                                 n > 0 && qn__is_parallel(s->k, p->order[n - 1]))
                                : power_above(t < 0 ? left : t, left);
            p->axis[n_axes++] = d;
        }
        left /= p->threads[d];
        p->block[d] = p->threads[d] * each;
    }
}

qn_grid qn__grid_of_one(void)
{
    qn_grid p = {.straight = QN_GPU_STRAIGHT,
                 .team = QN_TEAM_THREAD,
                 .axis = {-1, -1, -1},
                 .wide_dim = -1,
                 .wide = 1,
                 .tall_dim = -1,
                 .tall = 1};
    return p;
}

/** The grid by rules alone; the analysis, if there is one, is that of these facts. */
static void follow_rules(const gpu_planner *s, bool has_analysis)
{
    qn_grid *p = s->p;
    const bool is_threaded = has_analysis && !s->f->is_ordered;
    *p = qn__grid_of_one();
    const int lanes = is_threaded ? qn__gpu_best_lanes(s) : -1;
    choose_order(s, lanes);
    if (!is_threaded || qn__gpu_choose_rest(s) || qn__gpu_choose_product(s, lanes))
        return;
    p->team = qn__gpu_choose_team(s, lanes);
    if (qn__gpu_choose_block(s, lanes))
        return;
    qn__gpu_choose_kept(s);
    if (qn__gpu_choose_staging(s, lanes))
        return;
    qn__gpu_choose_private(s);
    const int n_shared = qn__gpu_choose_wide(s, lanes);
    qn__gpu_choose_threads(s, n_shared);
    qn__gpu_order_batches(s);
    qn__gpu_choose_warps(s);
    qn__gpu_choose_moved(s, lanes);
}

/** The grid with `width` neighbours in a thread; false if it differs from `best` in more than that.
 */
static bool make_wide(const gpu_planner *s, qn_facts *f, int width, const qn_grid *best,
                      qn_grid *out)
{
    gpu_planner own = *s;
    own.p = out;
    f->plan.width = width;
    follow_rules(&own, true);
    return out->wide == width && !out->is_crossed && out->tall_dim == best->tall_dim;
}

/** Squares of a thread instead of tiles in shared memory, if the estimate is less: of bytes they
 * move 16 at once, and tiles 4. */
static void choose_squares(const gpu_planner *s)
{
    const double less = 0.95;
    gpu_planner own = *s;
    qn_grid squares;
    qn_grid_estimate of_tiles, of_squares;
    own.p = &squares;
    own.is_unstaged = true;
    follow_rules(&own, true);
    if (squares.is_crossed && qn__grid_estimate(&s->a, s->p, &of_tiles) &&
        qn__grid_estimate(&s->a, &squares, &of_squares) &&
        of_squares.cycles < less * of_tiles.cycles)
        *s->p = squares;
}

/** A thread for all iterations that share reduces, where rows are short and the estimate is clearly
 * less. */
static void choose_alone(const gpu_planner *s)
{
    const double clearly_less = 0.85;
    gpu_planner own = *s;
    qn_grid alone;
    qn_grid_estimate best, here;
    own.p = &alone;
    own.is_alone = true;
    follow_rules(&own, true);
    for (int d = 0; d < s->k->n_dims; d++)
        if ((alone.rest_dims >> d & 1) && qn__usual_trips(s->f, d, INT64_MAX) > QN_SHORT_EXTENT)
            return;
    if (alone.rest_dims && alone.axis[0] >= 0 && qn__grid_estimate(&s->a, s->p, &best) &&
        qn__grid_estimate(&s->a, &alone, &here) && here.cycles < clearly_less * best.cycles)
        *s->p = alone;
}

/** Whether a load differs along x and is the same for all iterations of d. */
static bool shares_loads(const gpu_planner *s, int x, int d)
{
    bool is_shared = false;
    FOR_ACCESSES (s->k, n, i) {
        const uint32_t deps = s->a.value[i].deps;
        is_shared |= s->k->inst[i].op == QN_I_LOAD && (deps >> x & 1) && !(deps >> d & 1);
    }
    return is_shared;
}

/** Several iterations of a dimension in a thread where they load the same and the estimate is
 * clearly less. */
static void choose_shared(const gpu_planner *s, qn_facts *f)
{
    enum { MOST_ROWS = 4 };
    const double clearly_less = 0.9;
    const int x = s->p->axis[0];
    qn_grid *best = s->p, next;
    qn_grid_estimate least, here;
    gpu_planner own = *s;
    own.p = &next;
    if (best->tall > 1 || !qn__grid_estimate(&s->a, best, &least))
        return;
    least.cycles *= clearly_less;
    for (int d = 0; d < s->k->n_dims; d++)
        for (int rows = 2;
             rows <= MOST_ROWS && qn__is_parallel(s->k, d) && d != x && shares_loads(s, x, d);
             rows *= 2) {
            f->plan.jam_dim = d + 1;
            f->plan.jam = rows;
            follow_rules(&own, true);
            if (next.team == QN_TEAM_THREAD && next.tall_dim == d && next.tall == rows &&
                qn__grid_estimate(&s->a, &next, &here) && here.cycles < least.cycles) {
                *best = next;
                least = here;
            }
        }
    f->plan.jam_dim = f->plan.jam = 0;
}

/** Fewer neighbours in a thread where all have so many values at once that few threads have
 * registers for them. Several where the rules see none, as their loads are not aligned, and the
 * estimate is clearly less: they share addresses, conditions and what both load. */
static void choose_width(const gpu_planner *s, qn_facts *f)
{
    enum { LEAST_PART = 3, MOST_NEIGHBOURS = 4 }; /* of the threads of a multiprocessor */
    const double clearly_less = 0.9,
                 most = (double)(f->machine.registers * LEAST_PART) / f->machine.threads;
    qn_grid *best = s->p, next;
    qn_grid_estimate least, here;
    while (best->wide > 1 && qn__grid_registers(&s->a, best) > most &&
           make_wide(s, f, best->wide / 2, best, &next))
        *best = next;
    if (best->wide > 1 || !qn__grid_estimate(&s->a, best, &least))
        return;
    for (int width = 2;
         width <= MOST_NEIGHBOURS && make_wide(s, f, width, best, &next) &&
         qn__grid_estimate(&s->a, &next, &here) && here.cycles < clearly_less * least.cycles;
         width *= 2) {
        *best = next;
        least = here;
    }
}

void qn__grid_make(const qn_kernel *k, const qn_facts *f, qn_grid *out)
{
    qn_facts own = *f;
    gpu_planner s = {.k = k, .f = &own, .p = out, .has_assertions = qn__has_assertions(k)};
    const bool has_analysis = qn__analyse(k, &own, -1, 0, &s.a);
    follow_rules(&s, has_analysis);
    if (out->staged)
        choose_squares(&s);
    if (has_analysis && !own.is_ordered && !own.plan.team && qn__n_top_reduces(k) > 0 &&
        (out->team == QN_TEAM_THREAD || out->team == QN_TEAM_WARP))
        choose_alone(&s);
    if (has_analysis && out->team == QN_TEAM_THREAD && out->axis[0] >= 0 && !out->is_crossed &&
        !out->skew && !out->staged && !out->n_moved && !out->rest_dims && !own.plan.width &&
        !own.is_ordered) {
        if (!own.plan.jam && !own.plan.jam_dim)
            choose_shared(&s, &own);
        choose_width(&s, &own);
    }
    qn__analysis_release(&s.a);
}
