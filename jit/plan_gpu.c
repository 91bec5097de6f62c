/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_gpu.c: how the threads of a GPU walk the domain. Each thread runs scalar code for its own iterations. Data in,
 * data out; docs/plan.md explains the choices.
 */
#include "jit/plan.h"

#include <string.h>

/* Threads of a block: enough to hide latency with several blocks on one processor, few enough to leave registers. */
enum { BLOCK_THREADS = 256, WARP = 32 };

/* Cost of one element through one access, in sectors of 32 bytes that a warp touches, relative to unit stride. */
#define COST_SAME 0.25
#define COST_APART 8.0

typedef struct planner {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis a;
    qn_plan *p;
} planner;

static bool is_parallel(const planner *s, int d)
{
    return s->k->inst[s->k->dim[d]].sub == QN_DIM_PARALLEL;
}

/** Iterations of a dimension, or -1 if not known. */
static int64_t trips(const qn_facts *f, int d)
{
    if (f->begin[d].kind != QN_FACT_EXACT || f->end[d].kind != QN_FACT_EXACT)
        return -1;
    return f->end[d].value - f->begin[d].value;
}

static double access_cost(const planner *s, uint32_t i, int d)
{
    int64_t stride;
    if (!qn__access_stride(s->k, s->f, &s->a, i, d, &stride))
        return COST_APART;
    double apart = stride < 0 ? -(double)stride : (double)stride;
    if (stride == 0)
        return COST_SAME;
    return apart < COST_APART ? apart : COST_APART;
}

/** Cost of neighbouring threads along d. Stores count twice, accesses inside reduces 16 times. */
static double lane_cost(const planner *s, int d)
{
    double sum = 0;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        uint32_t i = s->k->access[n].inst;
        double times = qn__enclosing_reduce(s->k, i) ? 16 : s->k->inst[i].op == QN_I_LOAD ? 1 : 2;
        sum += times * access_cost(s, i, d);
    }
    return sum;
}

/** How far accesses move along d, the larger, the further out. Of dynamic strides only the order is known. */
static double distance(const planner *s, int d)
{
    double sum = 0;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        uint32_t i = s->k->access[n].inst;
        const qn_param_fact *param = &s->f->param[s->k->inst[i].imm];
        int64_t stride;
        if (qn__access_stride(s->k, s->f, &s->a, i, d, &stride)) {
            sum += stride < 0 ? -(double)stride : (double)stride;
            continue;
        }
        for (int r = 0; r < qn__n_indices(s->k, i); r++)
            if (s->a.value[qn__args(s->k, i)[r]].deps >> d & 1)
                sum += (double)(UINT64_C(1) << (3 * param->dim[r].reach));
    }
    return sum;
}

/* ---------------------------------------------------------------- order */

/** The dimension of neighbouring threads, or -1. */
static int best_lanes(const planner *s)
{
    int best = -1, wanted = s->f->plan.lane_dim - 1;
    double least = 0;
    if (wanted >= 0 && wanted < s->k->n_dims && is_parallel(s, wanted))
        return wanted;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (!is_parallel(s, d) || trips(s->f, d) == 1)
            continue;
        double cost = lane_cost(s, d);
        if (best < 0 || cost <= least) {
            best = d;
            least = cost;
        }
    }
    return best;
}

static void choose_order(const planner *s, int lanes)
{
    qn_plan *p = s->p;
    double far[QN_MAX_RANK];
    for (int d = 0; d < s->k->n_dims; d++)
        if (s->k->inst[s->k->dim[d]].sub == QN_DIM_SEQUENTIAL)
            p->order[p->n_loops++] = d;
    int first = p->n_loops;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (!is_parallel(s, d) || d == lanes)
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

/* ---------------------------------------------------------------- teams */

bool qn__may_share_points(const qn_kernel *k, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    bool is_float = qn__dtype_class(x->type) == QN_CLASS_F;
    return x->op == QN_I_REDUCE && (!is_float || x->imm == QN_STRIPED);
}

/** Points of a reduce, -1 if not known. */
static int64_t points_of(const planner *s, uint32_t i)
{
    int64_t n = 1;
    for (int m = 0; m < s->k->inst[i].n_args; m++) {
        int64_t t = trips(s->f, (int)s->k->inst[qn__args(s->k, i)[m]].imm);
        if (t < 0 || __builtin_mul_overflow(n, t, &n))
            return -1;
    }
    return n;
}

/** Whether all reduces that stand in no other may be shared; n of them, `points` those of the longest. */
static bool are_shared(const planner *s, int *n, int64_t *points)
{
    *n = 0;
    *points = 0;
    for (uint32_t i = s->k->body; i < s->k->n_insts; i++) {
        if (s->k->inst[i].op != QN_I_REDUCE || qn__enclosing_reduce(s->k, i))
            continue;
        if (!qn__may_share_points(s->k, i))
            return false;
        int64_t here = points_of(s, i);
        *points = here < 0 ? INT64_MAX : here > *points ? here : *points;
        ++*n;
    }
    return *n > 0;
}

/** The reduce at the top in which an instruction stands, 0 if none. */
static uint32_t outermost_reduce(const qn_kernel *k, uint32_t i)
{
    uint32_t found = 0;
    for (; i; i = k->inst[i].parent)
        if (k->inst[i].op == QN_I_REDUCE)
            found = i;
    return found;
}

/** Cost of what is read in reduces if neighbouring threads take neighbouring points, or neighbouring iterations. */
static void compare_costs(const planner *s, int lanes, double *points, double *iterations)
{
    *points = *iterations = 0;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        uint32_t i = s->k->access[n].inst, r = outermost_reduce(s->k, i);
        if (!r)
            continue;
        uint32_t last = qn__args(s->k, r)[s->k->inst[r].n_args - 1];
        *points += access_cost(s, i, (int)s->k->inst[last].imm);
        *iterations += lanes < 0 ? COST_APART : access_cost(s, i, lanes);
    }
}

/** Whether the points of all reduces can be shared by all blocks: the reduces stand at the top, over the same dimensions,
 *  need nothing of one another, and nothing is written before the last of them. */
static bool is_for_grid(const planner *s, int n_reduces)
{
    const qn_kernel *k = s->k;
    uint32_t first = 0;
    int seen = 0;
    uint8_t *tainted = qn__zalloc(k->n_insts, 1); /* by the value of a reduce */
    bool ok = tainted && n_reduces <= MOST_SHARED_REDUCES;
    for (uint32_t i = k->body; i < k->n_insts && ok && seen < n_reduces; i++) {
        const qn_inst *x = &k->inst[i];
        bool at_top = x->parent == 0;
        for (int n = 0; n < x->n_args; n++)
            tainted[i] |= tainted[qn__args(k, i)[n]];
        if (x->op == QN_I_REDUCE && at_top) {
            first = first ? first : i;
            ok = x->n_args == k->inst[first].n_args &&
                 memcmp(qn__args(k, i), qn__args(k, first), x->n_args * sizeof(uint32_t)) == 0;
        } else if (at_top) {
            ok = qn__is_pure(x) || (x->op == QN_I_LOAD && !k->param[x->imm].is_written && !tainted[i]);
        } else {
            ok = !tainted[i];
        }
        if (x->op == QN_I_REDUCE && at_top) { /* after its region */
            for (uint32_t j = i + 1; j < x->region[2] && ok; j++)
                for (int n = 0; n < k->inst[j].n_args && ok; n++)
                    ok = !tainted[qn__args(k, j)[n]];
            tainted[i] = 1;
            seen++;
            i = x->region[2] - 1;
        }
    }
    qn__free(tainted);
    return ok && seen == n_reduces;
}

enum { FEW_ITERATIONS = 1 << 14, FEW_POINTS = 64 };

static int choose_team(const planner *s, int lanes)
{
    int n_reduces;
    int64_t points, iterations = 1;
    double by_points, by_iterations;
    if (!are_shared(s, &n_reduces, &points) || points < FEW_POINTS)
        return QN_TEAM_THREAD;
    for (int d = 0; d < s->k->n_dims; d++)
        if (is_parallel(s, d) && iterations < FEW_ITERATIONS)
            iterations = trips(s->f, d) < 0 ? FEW_ITERATIONS : iterations * trips(s->f, d);
    if (lanes < 0)
        return is_for_grid(s, n_reduces) ? QN_TEAM_GRID : QN_TEAM_WARP;
    compare_costs(s, lanes, &by_points, &by_iterations);
    return by_points < by_iterations * (iterations < FEW_ITERATIONS ? 4 : 1) ? QN_TEAM_WARP : QN_TEAM_THREAD;
}

/* ---------------------------------------------------------------- blocks of threads */

static int32_t power_above(int64_t n, int32_t most)
{
    int32_t power = 1;
    while (power < n && power < most)
        power *= 2;
    return power;
}

/** Threads along the innermost loop: as many as there are, in blocks that leave few of them idle. */
static int32_t threads_across(int64_t n, bool has_more)
{
    if (n < 0)
        return has_more ? 2 * WARP : BLOCK_THREADS;
    int32_t best = power_above(n, BLOCK_THREADS);
    for (int32_t threads = best / 2; threads >= WARP; threads /= 2) {
        int64_t waste = (n + best - 1) / best * best - n, less = (n + threads - 1) / threads * threads - n;
        if ((waste - less) * 8 > n)
            best = threads;
    }
    return best;
}

static void choose_threads(const planner *s)
{
    qn_plan *p = s->p;
    bool is_warp = p->team == QN_TEAM_WARP; /* which is the threads along x */
    int32_t left = is_warp ? BLOCK_THREADS / WARP : BLOCK_THREADS;
    int n_axes = is_warp ? 1 : 0;
    for (int n = p->n_loops - 1; n >= 0; n--) {
        int d = p->order[n];
        if (!is_parallel(s, d))
            break;
        int64_t t = trips(s->f, d);
        p->threads[d] = 1;
        if (n_axes < 3 && t != 1 && left > 1) {
            p->threads[d] = n_axes == 0 ? threads_across(t, n > 0 && is_parallel(s, p->order[n - 1]))
                                        : power_above(t < 0 ? left : t, left);
            p->axis[n_axes++] = d;
        }
        left /= p->threads[d];
        p->tile[d] = p->threads[d];
    }
}

/* ---------------------------------------------------------------- staging */

enum { MOST_SHARED_BYTES = 48 << 10, MOST_INDEX_DEPTH = 8, LONG_ENOUGH = QN_STAGE_SIDE / 2 };

/** Whether a value is made of indices, scalars and arithmetic only. */
static bool is_made_of_indices(const qn_kernel *k, uint32_t i, int depth)
{
    const qn_inst *x = &k->inst[i];
    if (x->op == QN_I_DIM)
        return k->inst[i].sub == QN_DIM_PARALLEL;
    if (depth == 0 || !qn__is_pure(x))
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!is_made_of_indices(k, qn__args(k, i)[n], depth - 1))
            return false;
    return true;
}

/** May a load go through shared memory? It is performed for whole tiles ahead of the body, so it must not fail, nor see
 *  what the launch writes. */
static bool may_be_staged(const planner *s, uint32_t site)
{
    const qn_kernel *k = s->k;
    uint32_t i = k->access[site].inst;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_LOAD || x->parent || site >= 64 || (k->param[x->imm].traits & QN_ATOMIC))
        return false;
    if (!s->f->param[x->imm].is_constant_memory || (!s->f->proved[site] && s->f->checks != QN_CHECKS_NONE))
        return false;
    for (int r = 0; r < qn__n_indices(k, i); r++)
        if (!is_made_of_indices(k, qn__args(k, i)[r], MOST_INDEX_DEPTH))
            return false;
    return true;
}

/** Loads worth staging in tiles of the dimensions x and y, as bits, within the shared memory there is. */
static uint64_t staged_loads(const planner *s, int x, int y)
{
    uint64_t found = 0;
    int64_t stride, bytes = 0;
    for (uint32_t site = 0; site < s->k->n_accesses; site++) {
        uint32_t i = s->k->access[site].inst;
        int64_t size = qn_dtype_bytes(qn__access_dtype(s->k, i));
        bool is_along = qn__is_plain_access(s->k, s->f, i) &&
                        qn__access_stride(s->k, s->f, &s->a, i, y, &stride) && stride == 1;
        if (!is_along || access_cost(s, i, x) < COST_APART / 2 || !may_be_staged(s, site))
            continue;
        bytes += QN_STAGE_SIDE * (QN_STAGE_SIDE * size + 4) + 16;
        if (bytes <= MOST_SHARED_BYTES)
            found |= UINT64_C(1) << site;
    }
    return found;
}

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

static void choose_staging(const planner *s)
{
    qn_plan *p = s->p;
    int x = p->axis[0];
    if (p->team != QN_TEAM_THREAD || x < 0 || (trips(s->f, x) >= 0 && trips(s->f, x) < LONG_ENOUGH))
        return;
    for (int y = 0; y < s->k->n_dims; y++) {
        if (!is_parallel(s, y) || y == x || (trips(s->f, y) >= 0 && trips(s->f, y) < LONG_ENOUGH))
            continue;
        uint64_t found = staged_loads(s, x, y);
        if (count_bits(found) > count_bits(p->staged)) {
            p->staged = found;
            p->stage_dim = y;
        }
    }
    if (!p->staged)
        return;
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        if (!is_parallel(s, d))
            continue;
        p->threads[d] = d == x ? QN_STAGE_THREADS : 1;
        p->tile[d] = d == x || d == p->stage_dim ? QN_STAGE_SIDE : 1;
    }
    p->axis[1] = p->axis[2] = -1;
}

/* ---------------------------------------------------------------- products */

/** Whether a value of a reduce's region is made of its loads, indices, scalars and arithmetic; regions within count not. */
static bool is_product_value(const planner *s, uint32_t reduce, uint32_t i, int depth)
{
    const qn_inst *x = &s->k->inst[i];
    if (x->op == QN_I_DIM)
        return true;
    if (x->op == QN_I_LOAD)
        return x->parent == reduce;
    if (depth == 0 || !qn__is_pure(x))
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!is_product_value(s, reduce, qn__args(s->k, i)[n], depth - 1))
            return false;
    return true;
}

/** The loads of a product over dimensions x, y and k as bits, or 0: each depends on k and on one of x and y. */
static uint64_t product_loads(const planner *s, uint32_t reduce, int x, int y, int k)
{
    uint64_t found = 0;
    uint32_t either = 0;
    int64_t bytes = 0;
    for (uint32_t site = 0; site < s->k->n_accesses; site++) {
        uint32_t i = s->k->access[site].inst, deps = s->a.value[i].deps;
        int param = (int)s->k->inst[i].imm;
        int64_t size = qn_dtype_bytes(qn__access_dtype(s->k, i));
        bool has_x = deps >> x & 1, has_y = deps >> y & 1;
        if (s->k->inst[i].parent != reduce)
            continue;
        if (s->k->inst[i].op != QN_I_LOAD || site >= 64 || has_x == has_y || !(deps >> k & 1) || (size != 4 && size != 8) ||
            !qn__is_plain_access(s->k, s->f, i))
            return 0;
        if (!s->f->param[param].is_constant_memory || (s->k->param[param].traits & QN_ATOMIC) ||
            (!s->f->proved[site] && s->f->checks != QN_CHECKS_NONE))
            return 0;
        for (int r = 0; r < qn__n_indices(s->k, i); r++)
            if (!is_product_value(s, 0, qn__args(s->k, i)[r], MOST_INDEX_DEPTH))
                return 0;
        found |= UINT64_C(1) << site;
        either |= has_x ? 1u : 2u;
        bytes += QN_PRODUCT_CHUNK * (QN_PRODUCT_SIDE * size + 16);
    }
    return either == 3 && count_bits(found) <= 4 && bytes <= MOST_SHARED_BYTES ? found : 0;
}

/** The only reduce of a kernel, at the top, over one dimension in index order (or any) and without regions inside; 0 else. */
static uint32_t only_reduce(const planner *s)
{
    uint32_t found = 0;
    for (uint32_t i = s->k->body; i < s->k->n_insts; i++) {
        const qn_inst *x = &s->k->inst[i];
        bool is_float = qn__dtype_class(x->type) == QN_CLASS_F;
        if (x->parent && x->region[2] != i + 1 && qn__enclosing_reduce(s->k, i))
            return 0;
        if (x->op != QN_I_REDUCE)
            continue;
        if (found || x->parent || x->n_args != 1 || (is_float && x->imm == QN_STRIPED) || qn_dtype_bytes(x->type) < 4)
            return 0;
        found = i;
    }
    return found;
}

/** Register tiles for what is like a matrix product, if it is long enough in all three dimensions. */
static bool choose_product(const planner *s, int x)
{
    qn_plan *p = s->p;
    enum { MOST_POINTS = 4096, BIG = QN_PRODUCT_SIDE / 2 };
    uint32_t reduce = only_reduce(s);
    if (!reduce || x < 0 || trips(s->f, x) < BIG)
        return false;
    int k = (int)s->k->inst[qn__args(s->k, reduce)[0]].imm;
    uint32_t value = qn__args(s->k, qn__last_of_region(s->k, s->k->inst[reduce].region[0], s->k->inst[reduce].region[2]))[0];
    if (trips(s->f, k) < QN_PRODUCT_CHUNK || trips(s->f, k) > MOST_POINTS ||
        !is_product_value(s, reduce, value, MOST_INDEX_DEPTH))
        return false;
    for (int y = 0; y < s->k->n_dims && !p->staged; y++) {
        if (!is_parallel(s, y) || y == x || trips(s->f, y) < BIG)
            continue;
        p->staged = product_loads(s, reduce, x, y, k);
        p->stage_dim = y;
    }
    if (!p->staged)
        return false;
    p->is_product = 1;
    p->axis[0] = x;
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        p->threads[d] = !is_parallel(s, d) ? 0 : d == x ? QN_STAGE_THREADS : 1;
        p->tile[d] = !is_parallel(s, d) ? 0 : d == x || d == p->stage_dim ? QN_PRODUCT_SIDE : 1;
    }
    return true;
}

void qn__plan_gpu(const qn_kernel *k, const qn_facts *f, qn_plan *out)
{
    planner s = {.k = k, .f = f, .p = out};
    out->is_gpu = 1;
    out->axis[0] = out->axis[1] = out->axis[2] = -1;
    bool has_analysis = qn__analyse(k, f, -1, -1, &s.a);
    bool is_threaded = has_analysis && !f->is_ordered;
    int lanes = is_threaded ? best_lanes(&s) : -1;
    choose_order(&s, lanes);
    if (is_threaded && choose_product(&s, lanes)) {
        qn__analysis_release(&s.a);
        return;
    }
    if (is_threaded) {
        out->team = choose_team(&s, lanes);
        choose_threads(&s);
        choose_staging(&s);
    }
    qn__analysis_release(&s.a);
}
