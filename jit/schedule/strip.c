/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.c: reduces whose points lie far apart in memory while the lanes lie together: sums of
 * columns of a matrix that is stored by rows, a matrix times a vector from the other side. A
 * register tile meets one or two cache lines of each row and then goes on to the next page; nothing
 * is fetched ahead. So the points go outside and a strip of the lanes inside, what is added so far
 * in memory (jit/lower/strip.c). What a sum costs to load and store serves all points that are
 * taken at once. Knows no LLVM.
 *
 * In the striped order partials l and l + 32, which the rule combines first, are made together, for
 * l = 0, 1, ... in turn: a pair is one array of sums when it is done, and each of the rows that are
 * read at once goes on in memory where the one before ended.
 *
 * "May the sums be in memory?" (qn__strip_dim) is kept apart from "is it worth it?" (is_worth).
 */
#include "jit/schedule/plan.h"

enum { MOST_LEVELS = 3, PAIRS = QN_PARTIALS / 2 };

/* A strip of sums fills the first-level cache; in the striped order each of the 33 arrays of sums
 * is so small a part of the second-level cache. Points at once: what is loaded and stored for each
 * vector of sums, each time, serves so many. */
enum { STRIPED_PART = 64, POINTS_TOGETHER = 8, VECTORS = 2 };
enum { STRIPED_TOGETHER = 16, FEW_TOGETHER = STRIPED_TOGETHER / 2 };

/* Shorter rows are no streams. With fewer points, or less data than so much, registers are better.
 */
#define LEAST_ROW_BYTES 512.0
#define LEAST_BYTES 131072.0
enum { LEAST_POINTS = 16 };

/* ---------------------------------------------------------------- memory */

/** Levels of blocks of 4096 above the points. */
static int levels(const qn_kernel *k, const qn_facts *f, uint32_t reduce)
{
    int64_t n = qn__points(k, f, reduce);
    int v = 0;
    for (; (n < 0 || n > QN_BLOCK_POINTS) && v < MOST_LEVELS; v++)
        n = n < 0 ? n : (n + QN_BLOCK_POINTS - 1) / QN_BLOCK_POINTS;
    return v;
}

/** Arrays that a reduce works in, besides that of its result: see jit/lower/strip.c. */
static int work_arrays(const qn_kernel *k, const qn_facts *f, uint32_t reduce, int32_t jam)
{
    int order = qn__order_rule(k, reduce), above = levels(k, f, reduce);
    if (order == QN_STRIPED)
        return above * (QN_PARTIALS + 1) + (jam % 2 ? QN_PARTIALS : PAIRS) + 1;
    return order == QN_INDEXED ? above : 0;
}

int64_t qn__strip_pitch(int type, int64_t strip)
{
    int64_t lines = (strip * qn_dtype_bytes(type) + LINE_BYTES - 1) / LINE_BYTES;
    return (lines | 1) *
           LINE_BYTES; /* arrays that are read side by side are not all in the same sets */
}

int64_t qn__strip_offset(const qn_kernel *k, uint32_t reduce, int64_t strip)
{
    int64_t bytes = 0;
    for (uint32_t i = k->body; i < reduce; i = k->inst[i].region[2])
        if (k->inst[i].op == QN_I_REDUCE)
            bytes += qn__strip_pitch(k->inst[i].type, strip);
    return bytes;
}

int64_t qn__strip_bytes(const qn_kernel *k, const qn_facts *f, int64_t strip, int32_t together)
{
    int64_t most = 0;
    FOR_TOP_REDUCES (k, i) {
        int64_t bytes = work_arrays(k, f, i, together) * qn__strip_pitch(k->inst[i].type, strip);
        most = bytes > most ? bytes : most;
    }
    return qn__strip_offset(k, k->n_insts, strip) + most;
}

/* ---------------------------------------------------------------- where */

/** Whether a reduce has points, and an order rule that lower/strip.c follows: blocks and stripes
 * over one dimension. */
static bool has_order(const qn_kernel *k, const qn_facts *f, uint32_t reduce, int n_long)
{
    int order = qn__order_rule(k, reduce);
    bool is_followed = n_long <= 1 || !order || order == QN_ORDERED ||
                       (order == QN_INDEXED && levels(k, f, reduce) == 0);
    return is_followed && qn__points(k, f, reduce) != 0;
}

int qn__strip_dim(const qn_analysis *a, int lane_dim)
{
    const qn_kernel *k = a->k;
    int d = -1, n = 0;
    bool has_effect = false;
    if (a->f->is_ordered || !qn__is_parallel(k, lane_dim))
        return -1;
    for (uint32_t i = k->body; i < k->n_insts; i = k->inst[i].region[2]) {
        const qn_inst *x = &k->inst[i];
        has_effect |= !(x->op == QN_I_LOAD || x->op == QN_I_REDUCE || qn__is_pure(x));
        if (x->op != QN_I_REDUCE) {
            for (uint32_t m = i; m < x->region[2]; m++)
                if (k->inst[m].op == QN_I_REDUCE)
                    return -1;
            continue;
        }
        int n_long, last = qn__long_dim(k, a->f, i, &n_long);
        bool is_same = d < 0 || d == last, depends = a->value[i].deps >> lane_dim & 1;
        if (has_effect || !is_same || !depends || !has_order(k, a->f, i, n_long) ||
            qn__has_insts(k, x->region[0], x->region[2],
                          1u << QN_I_REDUCE | 1u << QN_I_WHILE | 1u << QN_I_ASSERT) ||
            ++n > MOST_STRIPPED) /* regions of several points at once, whose failures have order */
            return -1;
        d = last;
    }
    return d;
}

/* ---------------------------------------------------------------- is it worth it? */

/** Bytes between the points of load i, a large number where the stride is not known but that of the
 * lanes is; 0: near. */
static double apart_bytes(const qn_analysis *a, uint32_t i, int d)
{
    const qn_kernel *k = a->k;
    int64_t stride;
    double bytes = (double)qn_dtype_bytes(k->inst[i].type);
    if (qn__access_stride(a, i, d, &stride))
        return (double)(stride < 0 ? -stride : stride) * bytes;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_dim_fact *dim = &a->f->param[k->inst[i].imm].dim[r];
        if ((a->value[qn__args(k, i)[r]].deps >> d & 1) && dim->reach > 1 &&
            a->affine[qn__args(k, i)[r]].sym[0] == 0)
            return QN_FAR_BYTES;
    }
    return 0;
}

/** Bytes that load i reads for all lanes and points, -1 if it is none of rows that lie far apart
 * and are read once. */
static double row_bytes(const qn_analysis *a, const qn_plan *p, uint32_t i, int d)
{
    const qn_kernel *k = a->k;
    uint32_t deps = a->value[i].deps;
    double bytes = (double)qn_dtype_bytes(k->inst[i].type);
    int64_t lanes = qn__trips(a->f, p->lane_dim), points = qn__trips(a->f, d);
    if (qn__access_cost(a, i, p->lane_dim) >= COST_GATHER ||
        apart_bytes(a, i, d) < (double)QN_FAR_BYTES)
        return -1;
    for (int e = 0; e < k->n_dims; e++)
        if (qn__is_parallel(k, e) && qn__trips(a->f, e) != 1 && !(deps >> e & 1))
            return -1;
    if (lanes >= 0 && (double)lanes * bytes < LEAST_ROW_BYTES)
        return -1;
    return lanes < 0 || points < 0 ? LEAST_BYTES : (double)lanes * (double)points * bytes;
}

static bool is_worth(const qn_analysis *a, const qn_plan *p, int d)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    double bytes = 0;
    if (f->plan.strip)
        return f->plan.strip > 0;
    if (f->plan.jam_dim || (qn__trips(f, d) >= 0 && qn__trips(f, d) < LEAST_POINTS))
        return false;
    FOR_ACCESSES (k, n, i) {
        uint32_t both = 1u << p->lane_dim | 1u << d;
        if (!qn__enclosing_reduce(k, i) || (a->value[i].deps & both) != both)
            continue;
        double now = row_bytes(a, p, i, d);
        if (now < 0)
            return false;
        bytes += now;
    }
    for (uint32_t i = k->body; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_FOR && qn__enclosing_reduce(k, i))
            return false;
    return bytes >= LEAST_BYTES;
}

/* ---------------------------------------------------------------- the choice */

/** Rows of load i, those of every 32nd point, that find room in the nearest cache together. */
static int32_t rows_together(const qn_analysis *a, uint32_t i, int d)
{
    int64_t stride;
    if (!qn__access_stride(a, i, d, &stride))
        return FEW_TOGETHER;
    const qn_cache_level *first = &a->f->machine.cache[QN_CACHE_FIRST];
    uint64_t apart = (uint64_t)stride * PAIRS * (uint64_t)qn_dtype_bytes(a->k->inst[i].type) %
                     (uint64_t)qn__way_bytes(first);
    return apart || first->ways > STRIPED_TOGETHER ? STRIPED_TOGETHER
                                                   : first->ways; /* all in the same sets */
}

/** Points of a pair of partials at once: the most where registers hold their factors and the cache
 * their rows, else half as many; all steps about as long. */
static int32_t striped_together(const qn_analysis *a, const qn_plan *p, int d)
{
    const qn_kernel *k = a->k;
    int64_t n = qn__trips(a->f, d);
    int32_t most = a->f->target->vectors > STRIPED_TOGETHER ? STRIPED_TOGETHER : FEW_TOGETHER;
    uint32_t both = 1u << p->lane_dim | 1u << d, last = 0;
    FOR_ACCESSES (k, m, i) {
        uint32_t r = qn__enclosing_reduce(k, i);
        if (!r || (a->value[i].deps & both) != both)
            continue;
        int32_t rows =
            r == last ? FEW_TOGETHER : rows_together(a, i, d); /* FEW_TOGETHER: of two views */
        most = rows < most ? rows : most;
        last = r;
    }
    int64_t longest =
        n < 0 || n > QN_BLOCK_POINTS ? QN_BLOCK_POINTS / PAIRS : (n + PAIRS - 1) / PAIRS;
    int64_t steps = (longest + most - 1) / most;
    for (int32_t m = most; m >= 2; m -= 2)
        if (longest % m == 0 && longest / m <= steps + 1) /* none is shorter than the others */
            return m;
    return (int32_t)((longest + steps - 1) / steps + 1) / 2 * 2;
}

bool qn__plan_strip(const qn_analysis *a, qn_plan *p)
{
    const qn_facts *f = a->f;
    bool may_be = f->plan.width != 1 && qn__may_lanes_be_inner(a->k, f, p->lane_dim);
    int d = may_be ? qn__strip_dim(a, p->lane_dim) : -1;
    if (d < 0 || !is_worth(a, p, d))
        return false;
    p->strip = 1;
    p->jam_dim = d;
    int64_t lanes = qn__trips(f, p->lane_dim);
    bool has_odd_vector = lanes > 0 && lanes % p->width == 0 && lanes / p->width % VECTORS != 0,
         is_striped = qn__plan_stripe_depth(a->k) > 0;
    p->jam = is_striped ? striped_together(a, p, d) : POINTS_TOGETHER;
    p->unroll = is_striped || has_odd_vector ? 1 : VECTORS; /* a rest is another body */
    return true;
}

/** Iterations of a strip: what keeps the sums near, all strips about as long. */
static int64_t length(const qn_kernel *k, const qn_facts *f, const qn_plan *p)
{
    int64_t step = (int64_t)p->width * p->unroll, lanes = qn__trips(f, p->lane_dim), most = 1 << 12;
    FOR_TOP_REDUCES (k, i) {
        bool is_striped = qn__order_rule(k, i) == QN_STRIPED;
        int64_t fits = is_striped ? f->machine.cache[QN_CACHE_SECOND].bytes / STRIPED_PART
                                  : f->machine.cache[QN_CACHE_FIRST].bytes;
        fits /= qn_dtype_bytes(k->inst[i].type);
        most = fits < most ? fits : most;
    }
    if (f->plan.strip > 0)
        most = f->plan.strip;
    else if (lanes > most)
        most = (lanes + (lanes + most - 1) / most - 1) / ((lanes + most - 1) / most);
    else if (lanes > 0)
        most = lanes;
    return (most + step - 1) / step * step;
}

void qn__plan_strip_end(const qn_kernel *k, const qn_facts *f, qn_plan *p)
{
    while (p->jam * p->unroll > MOST_PLANNED)
        p->jam /= 2;
    p->strip = (int32_t)length(k, f, p);
    p->scratch_bytes = qn__strip_bytes(k, f, p->strip, p->jam);
    p->streams = 0;
}
