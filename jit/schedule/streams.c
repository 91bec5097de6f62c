/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.c: non-temporal stores. They pay where all that a kernel touches is larger than the
 * last-level cache, so that what it writes would not stay there, and where it reads none of that
 * and fills whole cache lines: then no line is read before it is written.
 *
 * "May this store be one?" (qn__may_fill_lines) is asked of schedules too; "is it worth it?"
 * (qn__plan_streams) is not.
 */
#include "jit/schedule/plan.h"

enum { LEAST_VECTOR_BYTES = 16, LONG_REDUCE = 64, CARRIED_PART = 8 };

/** Rows that are written in one step of the lanes, or in the loops inside theirs, must begin at the
 * same place of a cache line. */
static bool rows_are_congruent(const qn_analysis *a, const qn_plan *p, uint32_t i, int64_t bytes)
{
    bool is_inside = false;
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        int64_t stride;
        if ((is_inside || d == p->jam_dim || d == p->cross_dim) && d != p->lane_dim &&
            (!qn__access_stride(a, i, d, &stride) || stride % (LINE_BYTES / bytes)))
            return false;
        is_inside |= d == p->lane_dim;
    }
    return true;
}

/** Whether the place in a cache line where a row begins can be computed before the row. */
static bool has_early_address(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    const qn_param_fact *param = &f->param[k->inst[i].imm];
    for (int r = 0; r < qn__n_indices(k, i); r++)
        if (param->dim[r].n_digits > 0 && !qn__is_made_of_indices(k, qn__args(k, i)[r]))
            return false;
    return true;
}

bool qn__may_fill_lines(const qn_analysis *a, int lane_dim, int width, uint32_t site)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    uint32_t i = k->access[site].inst;
    const qn_inst *x = &k->inst[i];
    const qn_kernel_parameter *param = &k->param[x->imm];
    int64_t bytes = qn__access_bytes(k, i), stride;
    if (!qn__is_plain_access(k, f, i) || x->op != QN_I_STORE || x->parent ||
        qn__is_checked(f, k, site))
        return false;
    if (param->is_read || param->has_atomics || (param->traits & QN_ATOMIC) || LINE_BYTES % bytes ||
        !qn__is_parallel(k, lane_dim) || width * bytes < LEAST_VECTOR_BYTES)
        return false;
    return has_early_address(k, f, i) && qn__access_stride(a, i, lane_dim, &stride) && stride == 1;
}

bool qn__is_stream(const qn_analysis *a, const qn_plan *p, uint32_t site)
{
    const qn_kernel *k = a->k;
    uint32_t i = k->access[site].inst;
    return qn__may_fill_lines(a, p->lane_dim, p->width, site) &&
           rows_are_congruent(a, p, i, qn__access_bytes(k, i));
}

bool qn__may_have_ends(const qn_analysis *a, uint32_t store)
{
    const qn_kernel *k = a->k;
    const uint64_t own = k->inst[store].imm;
    FOR_ACCESSES (k, n, i) {
        const uint64_t other = k->inst[i].imm;
        if (i != store &&
            (other == own || (i > store && k->param[other].dtype == k->param[own].dtype)))
            return false;
    }
    return qn__is_plain_access(k, a->f, store);
}

bool qn__has_line_ends(const qn_analysis *a, const qn_plan *p, uint32_t site)
{
    const qn_kernel *k = a->k;
    uint32_t i = k->access[site].inst;
    int64_t bytes = qn__access_bytes(k, i);
    bool has_rows_inside = p->transpose && p->n_loops >= 2 &&
                           p->order[p->n_loops - 1] == p->jam_dim &&
                           p->order[p->n_loops - 2] == p->lane_dim;
    if (!a->f->target->permutes_pairs || !has_rows_inside || p->unroll != 1 || bytes < 2 ||
        p->width * bytes != LINE_BYTES)
        return false;
    return qn__may_fill_lines(a, p->lane_dim, p->width, site) && qn__may_have_ends(a, i) &&
           !rows_are_congruent(a, p, i, bytes);
}

/** Bytes that access i touches in all, with those of its lines that lie between; 0 if not known. */
static double touched_bytes(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const int64_t line = LINE_BYTES / qn__access_bytes(k, i);
    int64_t least = line, stride; /* elements from one to the next */
    double elements = 1;
    for (int d = 0; d < k->n_dims; d++) {
        if (!(qn__index_deps(a, i) >> d & 1))
            continue;
        elements *= qn__trips(a->f, d) < 0 ? 0 : (double)qn__trips(a->f, d);
        bool is_known = qn__access_stride(a, i, d, &stride) && stride != 0;
        int64_t apart = !is_known ? 1 : stride < 0 ? -stride : stride;
        least = apart < least ? apart : least;
    }
    return elements * (double)(least * qn__access_bytes(k, i));
}

double qn__touched_in_all(const qn_analysis *a)
{
    const qn_kernel *k = a->k;
    double total = 0;
    for (int p = 0; p < k->n_params; p++) {
        double most = 0;
        FOR_ACCESSES (k, n, i) {
            double bytes = (int)k->inst[i].imm == p ? touched_bytes(a, i) : 0;
            most = bytes > most ? bytes : most;
        }
        total += most;
    }
    return total;
}

/** Whether each iteration does so much that its stores do not count. */
static bool has_long_reduce(const qn_kernel *k, const qn_facts *f)
{
    FOR_REDUCES (k, i) {
        int64_t points = qn__points(k, f, i);
        if (points < 0 || points >= LONG_REDUCE)
            return true;
    }
    return false;
}

typedef bool (*may_stream)(const qn_analysis *a, const qn_plan *p, uint32_t site);

/** Stores that may be streams in one of two ways. */
typedef struct streams {
    int n;
    double bytes;         /* that they write */
    int64_t row, element; /* bytes of a row and an element of the last one */
} streams;

static streams find_streams(const qn_analysis *a, const qn_plan *p, may_stream is_stream)
{
    const qn_kernel *k = a->k;
    streams s = {.n = 0};
    FOR_ACCESSES (k, n, i) {
        if (!is_stream(a, p, n))
            continue;
        s.element = qn__access_bytes(k, i);
        s.bytes += touched_bytes(a, i);
        s.row = qn__trips(a->f, p->lane_dim) * s.element;
        s.n++;
    }
    return s;
}

/** Rows at a time: n lines of each wait in a part of the second-level cache, and those that loads
 * along the lanes ask for. */
static void plan_carry(const qn_analysis *a, qn_plan *p, int n)
{
    const qn_kernel *k = a->k;
    int64_t lines = n, stride, all = qn__trips_or(a->f, p->jam_dim, INT64_MAX), step = p->transpose;
    FOR_ACCESSES (k, m, i) {
        lines += k->inst[i].op == QN_I_LOAD && qn__access_stride(a, i, p->lane_dim, &stride) &&
                 stride == 1;
    }
    int64_t rows = a->f->machine.cache[QN_CACHE_SECOND].bytes / CARRIED_PART / LINE_BYTES / lines;
    rows = rows < all ? rows : all;
    p->end_rows = (int32_t)((rows + step - 1) / step * step);
    p->scratch_bytes = (int64_t)n * p->end_rows * LINE_BYTES;
}

void qn__plan_streams(const qn_analysis *a, qn_plan *p)
{
    const qn_facts *f = a->f;
    if (f->plan.streams < 0)
        return;
    streams s = find_streams(a, p, qn__is_stream);
    bool has_line_ends = s.n == 0;
    if (has_line_ends)
        s = find_streams(a, p, qn__has_line_ends);
    bool is_short = s.row >= 0 &&
                    s.row < QN_STREAM_ROW_BYTES; /* an unknown one is long if the launch is large */
    bool is_worth = !is_short && !has_long_reduce(a->k, f) &&
                    (f->is_large || qn__is_worth_streaming(f, qn__touched_in_all(a), s.bytes));
    p->streams = s.n && (is_worth || f->plan.streams > 0);
    if (p->streams && has_line_ends)
        plan_carry(a, p, s.n);
    /* Steps of one cache line: what is left of a row is stored as usual, and should be short. */
    while (p->streams && f->plan.unroll == 0 && p->jam == 1 && p->unroll > 1 &&
           p->unroll * p->width * s.element > LINE_BYTES)
        p->unroll /= 2;
}
