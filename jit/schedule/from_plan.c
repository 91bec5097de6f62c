/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan.c: a plan as a schedule, made by transformations of the kernel as declared. It shows
 * that a schedule can say what a plan says, until plans are gone. What the tree has no words for
 * yet is left out.
 */
#include "jit/schedule/from_plan.h"
#include "jit/schedule/from_plan_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static qn_status read_step(maker *m, const char *text, qn_step *out)
{
    qn_words w;
    qn__words_begin(&w, text, strlen(text));
    if (qn__words_step(&w, m->s, out))
        return QN_OK;
    return qn__fail(m->err, QN_ERR_INTERNAL, "schedule of a plan: no step \"%s\"", text);
}

/** Applies a step without verifying it. Access records are made when all loops stand. */
static qn_status apply(maker *m, const qn_step *how, qn_error *err)
{
    qn_status status = qn__transforms[how->which].apply(m->x, m->s, how, err);
    if (status == QN_OK && m->s->n_steps < QN_MOST_STEPS)
        m->s->step[m->s->n_steps++] = *how;
    return status;
}

void qn__step(maker *m, const char *format, ...)
{
    char text[1024];
    qn_step how;
    va_list ap;
    va_start(ap, format);
    qn__vformat(text, sizeof text, format, ap);
    va_end(ap);
    if (m->status == QN_OK)
        m->status = read_step(m, text, &how);
    if (m->status == QN_OK)
        m->status = apply(m, &how, m->err);
}

void qn__mark(maker *m, const char *format, ...)
{
    char text[1024];
    qn_step how;
    va_list ap;
    va_start(ap, format);
    qn__vformat(text, sizeof text, format, ap);
    va_end(ap);
    qn_error *err = m->err, refused = {0};
    m->err = &refused;
    qn_status status = m->status == QN_OK ? read_step(m, text, &how) : m->status;
    m->err = err;
    if (status != QN_OK)
        return;
    if (m->is_careful)
        (void)qn__transform(m->x, m->s, &how, &refused);
    else
        (void)apply(m, &how, &refused);
}

/* ---------------------------------------------------------------- tuples */

/** Reduces over one range in one loop, before anything is cut. */
static void join_reduces(maker *m)
{
    uint32_t tuple[QN_MOST_TUPLE + 1];
    int n = 0;
    FOR_TOP_REDUCES (m->x->k, i) {
        tuple[n++] = i;
        if (n > 1 && qn__plan_joins(m->x, m->p, n, tuple)) {
            qn__step(m, "merge %%%u;", i);
        } else {
            tuple[0] = i;
            n = 1;
        }
    }
}

/** Whether a reduce has loops of its own: it is the first of its tuple. */
static bool has_loops(const maker *m, uint32_t reduce)
{
    const qn_reduced *r = qn__reduction_of(m->s, reduce);
    return r && r->inst[0] == reduce;
}

/* ---------------------------------------------------------------- cuts */

void qn__cut(maker *m, int d, int n, const int64_t *extent, int n_inner, const char *tail)
{
    pieces *x = &m->of[d];
    char base[NAME_BYTES], text[256], *end = text;
    int kept = 0, inner = 0;
    snprintf(base, sizeof base, "%s", x->name[0]);
    *end = 0;
    for (int i = 0; i < n; i++) {
        if (extent[i] <= 1)
            continue;
        end += snprintf(end, sizeof text - (size_t)(end - text), " %lld", (long long)extent[i]);
        kept++;
        inner += i >= n - n_inner;
    }
    if (!kept)
        return;
    qn__step(m, "split %s%s tail=%s;", base, text, tail);
    for (int i = 0; i <= kept; i++)
        snprintf(x->name[i], sizeof x->name[i], "%.70s.%d", base, i);
    x->n = kept + 1;
    x->n_inner = inner;
}

/** What follows whole steps of a length of a dimension, by the plan's word. */
static const char *tail_of(const maker *m, int d, int64_t steps, int rest)
{
    bool is_whole = !m->of[d].tile[0] && qn__is_multiple(m->x->f, d, steps) &&
                    (qn__is_exact(m->x->f, d) || (steps & (steps - 1)) == 0);
    if (is_whole)
        return "none";
    if (rest == QN_REMAINDER_NONE || (rest == QN_REMAINDER_OVERLAP && m->of[d].tile[0]))
        return "scalar";
    return qn__tail_names[qn__tail_of_remainder(rest)];
}

static void cut_tiles(maker *m)
{
    const qn_plan *p = m->p;
    for (int n = p->tile_at; n >= 0 && n < p->n_loops; n++) {
        int d = p->order[n];
        if (p->tile[d] <= 0)
            continue;
        qn__step(m, "split d%d %lld tail=scalar;", d, (long long)p->tile[d]);
        snprintf(m->of[d].tile, NAME_BYTES, "d%d.0", d);
        snprintf(m->of[d].name[0], NAME_BYTES, "d%d.1", d);
    }
}

/** Cuts a dimension by all of these extents. */
static void cut_all(maker *m, int d, int n, const int64_t *extent, const char *tail)
{
    pieces *x = &m->of[d];
    char base[NAME_BYTES], text[256] = "";
    snprintf(base, sizeof base, "%s", x->name[0]);
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %lld", (long long)extent[i]);
    qn__step(m, "split %s%s tail=%s;", base, text, tail);
    for (int i = 0; i <= n; i++)
        snprintf(x->name[i], sizeof x->name[i], "%.70s.%d", base, i);
    x->n = n + 1;
    x->n_inner = 1;
}

/** Rows of a transposing kernel, some of which run at a time outside of the steps of the lanes. A
 * chunk of lanes of a thread is outside the rows. */
static void cut_line_ends(maker *m)
{
    const qn_plan *p = m->p;
    int64_t blocks = p->transpose / p->jam, width = p->width;
    const int64_t lanes[] = {p->granule / width, width},
                  rows[] = {p->end_rows / p->transpose, blocks, p->jam};
    bool is_divided = p->split_dim == p->lane_dim;
    cut_all(m, p->lane_dim, 1 + is_divided, lanes + !is_divided,
            tail_of(m, p->lane_dim, width * (is_divided ? lanes[0] : 1), p->remainder));
    if (blocks > 1)
        cut_all(m, p->jam_dim, 3, rows, "scalar");
    else
        cut_all(m, p->jam_dim, 2, (const int64_t[]){rows[0], p->jam}, "scalar");
}

/** Strips of the lanes, then steps in them. */
static void cut_strips(maker *m)
{
    const qn_plan *p = m->p;
    int64_t step_of = (int64_t)p->width * p->unroll;
    const int64_t extent[] = {p->strip / step_of, p->unroll, p->width};
    const int64_t single[] = {extent[0], p->width};
    bool has_several = p->unroll > 1;
    cut_all(m, p->lane_dim, 2 + has_several, has_several ? extent : single,
            tail_of(m, p->lane_dim, p->strip,
                    p->remainder == QN_REMAINDER_NONE ? QN_REMAINDER_SCALAR : p->remainder));
    m->of[p->lane_dim].n_inner = 1 + has_several;
}

static void cut_steps(maker *m)
{
    const qn_plan *p = m->p;
    int lanes = p->lane_dim;
    if (p->end_rows || p->strip) {
        if (p->end_rows)
            cut_line_ends(m);
        else
            cut_strips(m);
        return;
    }
    if (qn__is_parallel(m->x->k, lanes)) {
        int64_t step_of = (int64_t)p->width * p->unroll;
        int64_t several = p->pack_steps ? p->pack_steps : 1;
        qn__cut(m, lanes, 3, (int64_t[]){several, p->unroll, p->width}, 2,
                tail_of(m, lanes, step_of * several,
                        several > 1 && p->remainder == QN_REMAINDER_NONE ? QN_REMAINDER_SCALAR
                                                                         : p->remainder));
    }
    if (qn__is_parallel(m->x->k, p->jam_dim) && p->jam_dim != lanes) {
        int64_t blocks = p->transpose > p->jam ? p->transpose / p->jam : 1;
        qn__cut(m, p->jam_dim, 2, (int64_t[]){blocks, p->jam}, 1,
                tail_of(m, p->jam_dim, blocks * p->jam, p->jam_rest));
    }
    if (p->cross > 1)
        qn__cut(m, p->cross_dim, 1, (int64_t[]){p->cross}, 1,
                tail_of(m, p->cross_dim, p->cross, QN_REMAINDER_OVERLAP));
}

/* ---------------------------------------------------------------- order and roles */

void qn__add_name(char *text, size_t bytes, const char *name)
{
    size_t n = strlen(text);
    if (name[0])
        snprintf(text + n, bytes - n, " %s", name);
}

/** All loops around the body: tiles, the dimensions in their order, and inside of them what is
 * emitted together: jammed iterations, then vectors, then lanes. */
static void order_loops(maker *m)
{
    const qn_plan *p = m->p;
    char text[900] = "";
    int n_loops = 0;
    for (int n = 0; n < p->n_loops; n++) {
        for (int t = n; n == p->tile_at && t < p->n_loops; t++) {
            qn__add_name(text, sizeof text, m->of[p->order[t]].tile);
            n_loops += m->of[p->order[t]].tile[0] != 0;
        }
        const pieces *x = &m->of[p->order[n]];
        int first =
            p->end_rows && p->order[n] == p->jam_dim; /* it stands before the lanes' steps */
        for (int i = first; i < x->n - x->n_inner; i++, n_loops++) {
            bool are_steps =
                p->end_rows && p->order[n] == p->lane_dim && i == x->n - x->n_inner - 1;
            if (are_steps)
                qn__add_name(text, sizeof text, m->of[p->jam_dim].name[0]);
            n_loops += are_steps;
            qn__add_name(text, sizeof text, x->name[i]);
        }
    }
    const int inside[3] = {p->cross > 1 ? p->cross_dim : -1, p->jam_dim, p->lane_dim};
    for (int n = 0; n < 3; n++) {
        if (!qn__is_parallel(m->x->k, inside[n]) || (n == 2 && inside[n] == inside[1]))
            continue;
        const pieces *x = &m->of[inside[n]];
        for (int i = x->n - x->n_inner; i < x->n; i++, n_loops++) {
            qn__add_name(text, sizeof text, x->name[i]);
            memcpy(m->inner[m->n_inner++], x->name[i], NAME_BYTES);
        }
    }
    if (n_loops > 1)
        qn__step(m, "reorder%s;", text);
    bool has_lanes = p->width > 1 && qn__is_parallel(m->x->k, p->lane_dim);
    for (int n = 0; n < m->n_inner; n++)
        qn__step(m, "%s %s;", has_lanes && n == m->n_inner - 1 ? "vectorize" : "unroll",
                 m->inner[n]);
}

/** "r8d2 r8d3": the loops over the points of a reduce that was not cut. */
static void points_of(const maker *m, uint32_t reduce, char *text, size_t bytes)
{
    *text = 0;
    for (int n = 0; n < m->x->k->inst[reduce].n_args; n++) {
        char name[32];
        snprintf(name, sizeof name, "r%ud%d", reduce, qn__dim_of(m->x->k, reduce, n));
        qn__add_name(text, bytes, name);
    }
}

void qn__move_inside(maker *m, const char *name)
{
    const qn_kernel *k = m->x->k;
    char points[400];
    if (qn__n_top_reduces(k) == 0)
        return;
    qn__step(m, "distribute %s;", name);
    FOR_TOP_REDUCES (k, i) {
        if (!has_loops(m, i))
            continue;
        points_of(m, i, points, sizeof points);
        qn__step(m, "place %%%u %s;", i, name);
        qn__step(m, "reorder%s %s;", points, name);
    }
}

/* ---------------------------------------------------------------- points */

/** Points that are emitted one beside the other. */
static void unroll_points(maker *m)
{
    FOR_TOP_REDUCES (m->x->k, i) {
        if (!has_loops(m, i) || m->p->strip || !qn__plan_unrolls_points(m->x, m->p, i))
            continue;
        for (int n = 0; n < m->x->k->inst[i].n_args; n++)
            qn__step(m, "unroll r%ud%d;", i, qn__dim_of(m->x->k, i, n));
    }
}

/** Lanes over the points of reduces, and blocks of points for threads. */
static void cut_points(maker *m)
{
    const qn_plan *p = m->p;
    const qn_kernel *k = m->x->k;
    int n_shared = 0;
    FOR_TOP_REDUCES (k, i) {
        int n;
        bool is_shared = n_shared++ < p->n_shared_reduces;
        if (!has_loops(m, i))
            continue;
        int d =
            is_shared ? qn__long_dim(k, m->x->f, i, &n) : qn__dim_of(k, i, k->inst[i].n_args - 1);
        bool has_lanes = d == p->lane_dim && qn__is_reduction(k, d) && p->width > 1;
        int64_t lanes = has_lanes ? (int64_t)p->width * p->unroll : 1;
        int64_t block = is_shared ? QN_BLOCK_POINTS / lanes : 1;
        char text[128] = "";
        int at = 0;
        if (is_shared)
            snprintf(text, sizeof text, " %lld", (long long)block);
        if (has_lanes && p->unroll > 1)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %d", p->unroll);
        if (has_lanes)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %d", p->width);
        if (!text[0])
            continue;
        qn__step(
            m, "split r%ud%d%s tail=%s;", i, d, text,
            tail_of(m, d, lanes * block,
                    p->remainder == QN_REMAINDER_MASK ? QN_REMAINDER_MASK : QN_REMAINDER_SCALAR));
        at = is_shared + 1;
        if (is_shared)
            qn__step(m, "parallelize r%ud%d.0;", i, d);
        if (has_lanes && p->unroll > 1)
            qn__step(m, "unroll r%ud%d.%d;", i, d, at++);
        if (has_lanes)
            qn__step(m, "vectorize r%ud%d.%d;", i, d, at);
    }
}

/** Loops over the points of a reduce for a strip, outermost first: all other dimensions, blocks, in
 * the striped order partials, then some points at once, whose loop is *together, or it is "". */
static void cut_strip_points(maker *m, uint32_t reduce, char *loops, size_t bytes, char *together)
{
    const qn_kernel *k = m->x->k;
    int d = m->p->jam_dim, jam = m->p->jam, order = qn__order_rule(k, reduce), slots = 1;
    int64_t points = qn__points(k, m->x->f, reduce);
    char name[NAME_BYTES], text[64] = "";
    *loops = *together = 0;
    for (int n = 0; n < k->inst[reduce].n_args; n++)
        if (qn__dim_of(k, reduce, n) != d) {
            snprintf(name, sizeof name, "r%ud%d", reduce, qn__dim_of(k, reduce, n));
            qn__add_name(loops, bytes, name);
        }
    snprintf(name, sizeof name, "r%ud%d", reduce, d);
    if ((order == QN_STRIPED || order == QN_INDEXED) && (points < 0 || points > QN_BLOCK_POINTS)) {
        qn__step(m, "split %s %d tail=scalar;", name, QN_BLOCK_POINTS);
        snprintf(name + strlen(name), sizeof name - strlen(name), ".0");
        qn__add_name(loops, bytes, name);
        name[strlen(name) - 1] = '1';
    }
    if (order == QN_STRIPED)
        slots = jam % 2 ? QN_PARTIALS : QN_PARTIALS / 2;
    if (jam > 1)
        snprintf(text, sizeof text, " %d", jam);
    if (slots > 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d", slots);
    if (text[0])
        qn__step(m, "split %s%s tail=scalar;", name, text);
    size_t n = strlen(name);
    if (slots > 1) {
        snprintf(name + n, sizeof name - n, ".%d", 1 + (jam > 1));
        qn__add_name(loops, bytes, name);
    }
    snprintf(name + n, sizeof name - n, "%s", text[0] ? ".0" : "");
    qn__add_name(loops, bytes, name);
    if (jam > 1) {
        name[n] = 0;
        snprintf(together, NAME_BYTES, "%.70s.1", name);
    }
}

/** Sums of a strip in memory: the points outside, several at once inside. In the striped order the
 * two partials that are combined first are made together. */
static void make_strip(maker *m)
{
    const qn_plan *p = m->p;
    const qn_kernel *k = m->x->k;
    const pieces *lanes = &m->of[p->lane_dim];
    qn__move_inside(m, lanes->name[1]);
    FOR_TOP_REDUCES (k, i) {
        char loops[400], together[NAME_BYTES], inside[400] = "";
        cut_strip_points(m, i, loops, sizeof loops, together);
        for (int n = 2; n < lanes->n; n++)
            qn__add_name(inside, sizeof inside, lanes->name[n]);
        qn__step(m, "reorder%s %s%s%s%s;", loops, lanes->name[1], together[0] ? " " : "", together,
                 inside);
        if (together[0])
            qn__step(m, "unroll %s;", together);
        qn__step(m, "accumulate %%%u storage=scratch;", i);
    }
}

/* ---------------------------------------------------------------- threads, accesses */

static void divide(maker *m, int d, int64_t granule)
{
    pieces *x = &m->of[d];
    const char *outer = x->tile[0] ? x->tile : x->name[0];
    int64_t own = 1, more;
    qn_axis a = qn__axis_find(m->s, outer), root;
    if (m->status != QN_OK)
        return;
    own = qn__axis_weight(m->x, m->s, a, &root);
    more = own > 0 && granule > own && granule % own == 0 ? granule / own : 1;
    if (more > 1) {
        qn__step(m, "split %s %lld tail=scalar;", outer, (long long)more);
        qn__step(m, "parallelize %s.0;", outer);
        if (!x->tile[0])
            snprintf(x->name[0], NAME_BYTES, "%.70s.1", outer);
    } else {
        qn__step(m, "parallelize %s;", outer);
    }
}

/* ---------------------------------------------------------------- all of it */

static void divide_all(maker *m)
{
    const qn_plan *p = m->p;
    if (p->split_dim >= 0 && !p->n_shared_reduces)
        divide(m, p->split_dim, p->granule);
    if (p->second_granule)
        divide(m, p->second_dim, p->second_granule);
}

void qn__pieces_begin(maker *m)
{
    for (int d = 0; d < m->x->k->n_dims; d++) {
        m->of[d].n = 1;
        snprintf(m->of[d].name[0], NAME_BYTES, "d%d", d);
    }
}

/** All but the marks of accesses. */
static void make(maker *m)
{
    const qn_analysis *x = m->x;
    const qn_plan *p = m->p;
    m->status = qn__schedule_declared(x, m->s, m->err);
    m->s->straight = p->straight == qn__plan_straight(x->k, x->f) ? -1 : p->straight;
    qn__pieces_begin(m);
    join_reduces(m);
    cut_tiles(m);
    cut_steps(m);
    order_loops(m);
    for (int n = m->n_inner - 1; n >= 0; n--)
        qn__move_inside(m, m->inner[n]);
    cut_points(m);
    unroll_points(m);
    if (p->strip)
        make_strip(m);
    divide_all(m);
    if (m->status == QN_OK)
        m->status = qn__schedule_derive(x, m->s, m->err);
}

static qn_status make_all(const qn_analysis *x, const qn_plan *p, bool is_careful, qn_schedule *out,
                          qn_error *err)
{
    maker m = {.x = x, .p = p, .s = out, .err = err, .is_careful = is_careful};
    make(&m);
    qn__mark_accesses(&m);
    return m.status;
}

qn_status qn__schedule_draft(const qn_analysis *x, const qn_plan *p, qn_schedule *out,
                             qn_error *err)
{
    return make_all(x, p, false, out, err);
}

qn_status qn__schedule_settle(const qn_analysis *x, const qn_plan *p, qn_schedule *s, qn_error *err)
{
    qn_error refused = {0};
    if (qn__schedule_verify(x, s, &refused) == QN_OK)
        return QN_OK;
    qn_status status = make_all(x, p, true, s, err);
    return status == QN_OK ? qn__schedule_verify(x, s, err) : status;
}

qn_status qn__schedule_plain(const qn_analysis *x, const qn_plan *p, qn_schedule *out,
                             qn_error *err)
{
    maker m = {.x = x, .p = p, .s = out, .err = err};
    m.status = qn__schedule_loops(x, out, err);
    qn__pieces_begin(&m);
    cut_steps(&m);
    order_loops(&m);
    divide_all(&m);
    return m.status;
}

int qn__tail_of_remainder(int remainder)
{
    static const int tail[] = {[QN_REMAINDER_NONE] = QN_TAIL_NONE,
                               [QN_REMAINDER_MASK] = QN_TAIL_MASK,
                               [QN_REMAINDER_SCALAR] = QN_TAIL_SCALAR,
                               [QN_REMAINDER_TILE] = QN_TAIL_NARROWER,
                               [QN_REMAINDER_OVERLAP] = QN_TAIL_OVERLAP};
    return tail[remainder];
}
