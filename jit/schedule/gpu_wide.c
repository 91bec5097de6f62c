/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_wide.c: how many iterations a thread of a GPU computes at once: `width` consecutive ones
 * along axis[0], so that 16 bytes move with one instruction, and `jam` consecutive ones of another
 * dimension, which share what they load, or along which other accesses move 16 bytes.
 * jit/lower/wide.c makes the accesses. Threads begin `lead` iterations before the domain, where
 * most bytes of accesses are aligned, as inner points begin at index 1. Where rows are not a
 * multiple of 16 bytes apart, each row of a thread begins `skew` iterations before the one above.
 *
 * The body has no atomics, and no regions but short branches and loops without memory, which all
 * iterations run together; or reduces, of which a thread computes several rows. An access that may
 * fail is done one element at a time.
 */
#include "jit/schedule/gpu.h"

enum { MOST_WIDTH = 16 };
/** Side of the squares of a thread where accesses run along two dimensions. */
enum { MOST_SIDE = 4 };
/** Elements apart of loads that fill what lies between them, members of a dimension that does, and
 * bytes of both in a thread: more would leave its neighbours far apart. */
enum { MOST_FILLED = 8, MOST_MEMBERS = 16, MOST_FILLED_BYTES = 4 * QN_ACCESS_BYTES };
/** Rows that share loads; more do not gain what their registers cost. */
enum { USUAL_JAM = 4, FEW_ROWS = 2 };

/* ---------------------------------------------------------------- addresses */

/** Whether access i may be part of a wide one: consecutive elements along x, which do not fail. */
static bool may_be_wide(const gpu_planner *s, uint32_t site, int x, gpu_course *c)
{
    uint32_t i = s->k->access[site].inst;
    return qn__gpu_find_course(s, i, x, c) && c->step == qn__gpu_element_bytes(s, i) &&
           !qn__is_checked(s->f, s->k, site) &&
           !(s->k->param[s->k->inst[i].imm].traits & QN_ATOMIC);
}

bool qn__gpu_is_aligned(const gpu_planner *s, uint32_t site, int x, int width, int64_t at)
{
    const int64_t bytes = width * qn__gpu_element_bytes(s, s->k->access[site].inst);
    const uint64_t whole = (uint64_t)(bytes < QN_ACCESS_BYTES ? bytes : QN_ACCESS_BYTES);
    gpu_course c;
    return may_be_wide(s, site, x, &c) && c.align >= whole &&
           ((uint64_t)qn__wrap_add(c.first, qn__wrap_mul(c.step, at)) & (whole - 1)) == 0;
}

/** Bytes of accesses consecutive along x that start where `width` of them are aligned, if threads
 * start `lead` iterations before the domain begins. Stores count more: a load that is not aligned
 * finds most of its elements in other threads' lines. */
static int64_t aligned_bytes(const gpu_planner *s, int x, int width, int lead)
{
    int64_t sum = 0;
    FOR_ACCESSES (s->k, site, i) {
        if (qn__gpu_is_aligned(s, site, x, width, qn__wrap_sub(s->f->begin[x].value, lead)))
            sum += qn__gpu_element_bytes(s, i) * (s->k->inst[i].op == QN_I_LOAD ? 1 : 4);
    }
    return sum;
}

/* ---------------------------------------------------------------- along x */

/** Whether the kernel stores all parts of the elements that store i is to: a wide store of some
 * would be none. */
static bool stores_all_parts(const gpu_planner *s, uint32_t i)
{
    int64_t sum = 0;
    uint32_t seen = 0;
    FOR_ACCESSES (s->k, n, j) {
        const qn_inst *x = &s->k->inst[j];
        if (x->op != QN_I_STORE || x->imm != s->k->inst[i].imm || x->sub >= 32 ||
            (seen >> x->sub & 1))
            continue;
        seen |= 1u << x->sub;
        sum += qn__access_bytes(s->k, j);
    }
    return sum == qn__gpu_element_bytes(s, i);
}

/** Whether iterations of x that follow one another load all elements between those of load i, which
 * are a few apart, as a pixel's channels are. */
static bool is_filled(const gpu_planner *s, uint32_t site, int x, int64_t stride)
{
    const qn_kernel *k = s->k;
    const uint32_t i = k->access[site].inst;
    uint32_t seen = 0;
    if (stride < 2 || stride > MOST_FILLED || qn__is_checked(s->f, k, site))
        return false;
    FOR_ACCESSES (k, other, j) {
        int64_t apart, step;
        if (k->inst[j].op == QN_I_LOAD && k->inst[j].imm == k->inst[i].imm &&
            !qn__is_checked(s->f, k, other) && qn__access_stride(&s->a, j, x, &step) &&
            step == stride && qn__elements_apart(&s->a, j, i, &apart))
            seen |= 1u << ((apart % stride + stride) % stride);
    }
    return seen == (1u << stride) - 1 && s->f->param[k->inst[i].imm].is_constant_memory;
}

/** Whether elements of access i that follow one another are those of neighbours along x, and
 * between them of all iterations of d, which are `trips`. */
static bool is_filled_by(const gpu_planner *s, uint32_t i, int x, int d, int64_t trips)
{
    int64_t along_x, along_d;
    return d >= 0 && qn__access_stride(&s->a, i, x, &along_x) && along_x == trips &&
           qn__access_stride(&s->a, i, d, &along_d) && along_d == 1 &&
           !qn__is_checked(s->f, s->k, qn__site_of(s->k, i)) &&
           !s->k->param[s->k->inst[i].imm].record &&
           !(s->k->param[s->k->inst[i].imm].traits & QN_ATOMIC);
}

/** Whether consecutive iterations in one thread do no access harm: what moves with x is
 * consecutive, or depends on data. d: all iterations of this dimension are in the thread, too; -1:
 * of none. */
static bool suits_all(const gpu_planner *s, int x, int d)
{
    FOR_ACCESSES (s->k, site, i) {
        bool is_load = s->k->inst[i].op == QN_I_LOAD;
        int64_t stride;
        if (s->k->inst[i].parent && s->k->inst[s->k->inst[i].parent].op == QN_I_IF)
            continue; /* done one by one */
        if (qn__gpu_is_privatized(s, i) || (d >= 0 && is_filled_by(s, i, x, d, qn__trips(s->f, d))))
            continue;
        if (!qn__access_stride(&s->a, i, x, &stride)) {
            if (!is_load)
                return false;
        } else if ((stride != 1 && !(is_load && (stride == 0 || is_filled(s, site, x, stride)))) ||
                   (!is_load && !stores_all_parts(s, i))) {
            return false;
        }
    }
    return true;
}

/** A short dimension that fills what lies between the elements of some accesses, as channels are
 * next to one another in a pixel; -1: there is none. */
static int filling_dimension(const gpu_planner *s, int x)
{
    for (int d = 0; d < s->k->n_dims; d++) {
        int64_t trips = qn__trips(s->f, d);
        bool is_one = false;
        if (!qn__is_parallel(s->k, d) || d == x || trips < 2 || trips > MOST_MEMBERS ||
            s->f->begin[d].kind != QN_FACT_EXACT)
            continue;
        for (uint32_t site = 0; site < s->k->n_accesses; site++)
            is_one = is_one || is_filled_by(s, s->k->access[site].inst, x, d, trips);
        if (is_one && suits_all(s, x, d))
            return d;
    }
    return -1;
}

/** Bytes of the smallest element. */
static int64_t least_bytes(const gpu_planner *s)
{
    int64_t least = QN_ACCESS_BYTES;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        const int64_t bytes = qn__gpu_element_bytes(s, s->k->access[n].inst);
        least = bytes < least ? bytes : least;
    }
    return least;
}

int qn__gpu_lanes_beside(const gpu_planner *s, int x)
{
    const int64_t trips = qn__trips(s->f, x);
    if (trips < 2 || trips > MOST_MEMBERS || qn__gpu_kind_of_body(s) != BODY_SIMPLE)
        return x;
    for (int d = 0; d < s->k->n_dims; d++)
        if (d != x && qn__is_parallel(s->k, d) && qn__is_exact(s->f, d) &&
            qn__trips(s->f, d) > trips && !suits_all(s, d, -1) && filling_dimension(s, d) == x)
            return d;
    return x;
}

/** Iterations of which the narrowest accesses are 16 bytes, but the widest loads no more than 32,
 * and no store more than 16: two of them would leave halves of sectors to one another. */
static int natural_width(const gpu_planner *s)
{
    int64_t least = QN_ACCESS_BYTES, most = 1;
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        if (qn__gpu_is_privatized(s, s->k->access[n].inst))
            continue;
        int64_t bytes = (int64_t)qn__gpu_lowest_bit(qn__gpu_element_bytes(s, s->k->access[n].inst));
        bytes = bytes > QN_ACCESS_BYTES ? QN_ACCESS_BYTES
                                        : bytes; /* several of odd sizes make whole pieces */
        least = bytes < least ? bytes : least;
        bytes = s->k->inst[s->k->access[n].inst].op == QN_I_LOAD ? bytes : 2 * bytes;
        most = bytes > most ? bytes : most;
    }
    int64_t narrow = QN_ACCESS_BYTES / least, wide = 2 * QN_ACCESS_BYTES / most;
    return (int)(narrow < wide ? narrow : wide);
}

/** The lead along x that aligns most; *bytes of an iteration are aligned then. */
static int best_lead(const gpu_planner *s, int x, int width, int64_t *bytes)
{
    const bool may_lead = qn__is_exact(s->f, x); /* else the host counts units without one */
    int best = 0;
    *bytes = aligned_bytes(s, x, width, 0);
    for (int lead = 1; lead < width && may_lead; lead++) {
        int64_t aligned = aligned_bytes(s, x, width, lead);
        if (aligned > *bytes) {
            *bytes = aligned;
            best = lead;
        }
    }
    return best;
}

int qn__gpu_lead(const gpu_planner *s, int x, int width)
{
    int64_t bytes;
    return best_lead(s, x, width, &bytes);
}

/* ---------------------------------------------------------------- along another dimension */

/** Whether loads a and b read the same element a few iterations of d apart. */
static bool meets(const gpu_planner *s, uint32_t a, uint32_t b, int d)
{
    const qn_kernel *k = s->k;
    const qn_param_fact *param = &s->f->param[k->inst[a].imm];
    int64_t apart, step;
    if (k->inst[a].op != QN_I_LOAD || k->inst[b].op != QN_I_LOAD ||
        k->inst[a].imm != k->inst[b].imm || k->inst[a].sub != k->inst[b].sub ||
        !param->is_constant_memory || !qn__access_stride(&s->a, a, d, &step) || step == 0 ||
        !qn__elements_apart(&s->a, b, a, &apart))
        return false;
    bool is_met = false; /* not by division, which the least number and -1 have none of */
    for (int n = -USUAL_JAM; n <= USUAL_JAM; n++)
        is_met = is_met || (n != 0 && apart == qn__wrap_mul(step, n));
    return apart != 0 && is_met;
}

/** Loads that iterations of d share with their neighbours. */
static int count_shared(const gpu_planner *s, int d)
{
    int n = 0;
    for (uint32_t a = 0; a < s->k->n_accesses; a++) {
        bool is_shared = false;
        uint32_t i = s->k->access[a].inst;
        for (uint32_t b = 0; b < s->k->n_accesses && !is_shared; b++)
            is_shared = meets(s, i, s->k->access[b].inst, d);
        n += is_shared;
    }
    return n;
}

/** Returns the number of dimensions along which loads are shared. */
static int choose_jam(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    int best = -1, most = 0, n_shared = 0, wanted = s->f->plan.jam_dim - 1;
    for (int n = 0; n < p->n_loops;
         n++) { /* outermost first: what is near is shared by threads of a block */
        int d = p->order[n], shared = 0;
        if (!qn__is_parallel(s->k, d) || d == x || qn__trips(s->f, d) == 1)
            continue;
        shared = count_shared(s, d);
        n_shared += shared > 0;
        if (d == wanted)
            shared = INT32_MAX;
        if (shared > most) {
            best = d;
            most = shared;
        }
    }
    if (best < 0 || s->f->plan.jam == 1)
        return 0;
    int usual = n_shared > 1 && p->wide > 1
                    ? FEW_ROWS
                    : USUAL_JAM; /* the others' comes from the first-level cache */
    const int64_t trips = qn__trips_or(s->f, best, MOST_JAM);
    int limit = s->f->plan.jam > 1 ? s->f->plan.jam : trips < usual ? (int)trips : usual;
    limit = limit > MOST_JAM ? MOST_JAM : limit;
    while (limit * p->wide > QN_MOST_AT_ONCE)
        limit--;
    if (limit < 2)
        return 0;
    p->tall_dim = best;
    p->tall = limit;
    return n_shared > 1 && p->wide == 1 ? 1 : n_shared;
}

/** Rows of a thread that are not whole pieces apart, each begun where it is aligned: so many
 * iterations of x before the row before it. Then 16 bytes move at once although the pitch of the
 * arrays is odd. */
static void choose_skew(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    int width = natural_width(s);
    int64_t stride = 0, bytes = 0;
    if (p->wide > 1 || p->tall < 2 || width < 2 || width * p->tall > QN_MOST_AT_ONCE ||
        s->f->plan.width || !suits_all(s, x, -1) || qn__trips(s->f, x) < 4 * MOST_WIDTH ||
        2 * width * p->tall * (int)(s->k->n_insts - s->k->body) > MOST_EMITTED)
        return;
    if (!qn__is_exact(s->f, x) || !qn__is_exact(s->f, p->tall_dim))
        return;
    FOR_ACCESSES (s->k, site, i) {
        if (s->k->inst[i].op == QN_I_STORE && !qn__access_stride(&s->a, i, p->tall_dim, &stride))
            return;
    }
    p->skew = (int32_t)((stride % width + width) % width);
    p->skew -= p->skew > width / 2 ? width : 0;
    int lead = p->skew ? best_lead(s, x, width, &bytes) : 0,
        least = p->skew < 0 ? -p->skew * (p->tall - 1) : 0;
    if (bytes == 0) {
        p->skew = 0;
        return;
    }
    while (lead < least)
        lead += width;
    p->wide = width;
    p->wide_lead = lead;
}

/* ---------------------------------------------------------------- accesses along two dimensions */

/** The dimension along which those accesses are consecutive that are not along x, on every
 * iteration; -1: there is none. */
static int other_dimension(const gpu_planner *s, int x)
{
    uint32_t candidates = 0;
    for (int d = 0; d < s->k->n_dims; d++)
        if (qn__is_parallel(s->k, d) && d != x && qn__is_exact(s->f, d) &&
            qn__trips(s->f, d) >= QN_ACCESS_BYTES)
            candidates |= 1u << d;
    FOR_ACCESSES (s->k, site, i) {
        int64_t stride;
        gpu_course c;
        if (qn__access_stride(&s->a, i, x, &stride) &&
            (stride == 1 || (stride == 0 && s->k->inst[i].op == QN_I_LOAD)))
            continue;
        for (int d = 0; d < s->k->n_dims; d++)
            if ((candidates >> d & 1) && !may_be_wide(s, site, d, &c))
                candidates &= ~(1u << d);
    }
    for (int d = 0; d < s->k->n_dims; d++)
        if (candidates >> d & 1)
            return d;
    return -1;
}

/** The order of the loops with y just outside x, so that a block takes a tile of both. */
static void move_next(qn_grid *p, int y)
{
    int at = 0;
    while (p->order[at] != y)
        at++;
    for (; at < p->n_loops - 2; at++)
        p->order[at] = p->order[at + 1];
    p->order[p->n_loops - 2] = y;
}

/** Whether a thread may take iterations along x and along another dimension: accesses ask for that,
 * and the caller decides nothing else. */
static bool may_be_square(const gpu_planner *s, int x)
{
    return s->f->begin[x].kind == QN_FACT_EXACT && !s->f->plan.jam && !s->f->plan.width &&
           !suits_all(s, x, -1);
}

/** Squares of iterations for each thread, whose accesses are wide along x or along y. */
static bool choose_crossed(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    int64_t aligned; /* where nothing is, squares keep what a warp touches together all the same */
    if (!may_be_square(s, x))
        return false;
    int y = other_dimension(s, x), width = natural_width(s);
    width = width > MOST_SIDE ? MOST_SIDE : width;
    if (y < 0 || width < 2 || width * width * (int)(s->k->n_insts - s->k->body) > MOST_EMITTED)
        return false;
    int lead = best_lead(s, x, width, &aligned), jam_lead = best_lead(s, y, width, &aligned);
    p->wide = width;
    p->wide_lead = lead;
    p->tall_dim = y;
    p->tall = width;
    p->tall_lead = jam_lead;
    p->is_crossed = 1;
    move_next(p, y);
    return true;
}

/** All iterations of a short dimension in each thread, with those of x: what lies between the
 * elements of one is that of the others. */
static bool choose_filled(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    int64_t aligned;
    if (!may_be_square(s, x))
        return false;
    int d = filling_dimension(s, x), width = natural_width(s);
    int64_t trips = d < 0 ? 0 : qn__trips(s->f, d);
    while (width > 1 &&
           (width * trips > QN_MOST_AT_ONCE || width * trips * least_bytes(s) > MOST_FILLED_BYTES ||
            (qn__is_exact(s->f, x) && qn__trips(s->f, x) < width)))
        width /= 2;
    if (d < 0 || width * trips * (int64_t)(s->k->n_insts - s->k->body) > MOST_EMITTED)
        return false;
    p->wide = width;
    p->wide_lead = best_lead(s, x, width, &aligned);
    p->tall_dim = d;
    p->tall = (int32_t)trips;
    move_next(p, d);
    return true;
}

/* ---------------------------------------------------------------- all of it */

/** Whether elements of 16 bytes are made of parts, which may move together. */
static bool has_parts(const gpu_planner *s)
{
    for (uint32_t n = 0; n < s->k->n_accesses; n++)
        if (qn__gpu_element_bytes(s, s->k->access[n].inst) % QN_ACCESS_BYTES == 0)
            return true;
    return false;
}

int qn__gpu_choose_wide(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    int wanted = s->f->plan.width, n_insts = (int)(s->k->n_insts - s->k->body);
    int kind = x < 0 || p->team != QN_TEAM_THREAD ? BODY_OTHER : qn__gpu_kind_of_body(s);
    if (kind == BODY_OTHER) {
        if (x >= 0 && p->team == QN_TEAM_THREAD && qn__gpu_loads_points(s, x))
            p->wide_dim = x;
        return 0;
    }
    if (kind == BODY_REDUCES && qn__gpu_choose_rows(s, x))
        return p->tall > 1 ? 2 : 0; /* what others share comes from the first-level cache */
    if (kind == BODY_REDUCES) {
        p->wide_dim = qn__gpu_loads_points(s, x) ? x : p->wide_dim;
        return 0;
    }
    if (choose_filled(s, x) || choose_crossed(s, x)) {
        p->wide_dim = x;
        return 0;
    }
    p->wide = s->f->begin[x].kind == QN_FACT_EXACT && suits_all(s, x, -1) ? natural_width(s) : 1;
    if (wanted > 0 && s->f->begin[x].kind == QN_FACT_EXACT)
        p->wide = wanted > MOST_WIDTH ? MOST_WIDTH : wanted;
    const int64_t trips = qn__usual_trips(s->f, x, INT64_MAX);
    while (p->wide > 1 && (trips < p->wide || (trips <= QN_SHORT_EXTENT && !qn__is_exact(s->f, x) &&
                                               !qn__is_multiple(s->f, x, p->wide))))
        p->wide /= 2;
    if (p->wide > 1) {
        int64_t bytes;
        p->wide_lead = best_lead(s, x, p->wide, &bytes);
        if (bytes == 0 && wanted <= 1)
            p->wide = 1;
    }
    int n_shared = choose_jam(s, x);
    choose_skew(s, x);
    while (p->tall > 1 && !p->skew && p->tall * p->wide * n_insts > MOST_EMITTED)
        p->tall /= 2;
    if (p->wide * p->tall * n_insts > MOST_EMITTED) {
        p->wide = p->tall = 1;
        p->wide_lead = 0;
    }
    if (p->tall == 1)
        p->tall_dim = -1;
    if (p->wide > 1 || p->tall > 1 || has_parts(s))
        p->wide_dim = x;
    return p->tall > 1 ? n_shared : 0;
}

void qn__gpu_widen_rest(const gpu_planner *s)
{
    qn_grid *p = s->p;
    enum { FEW_AT_ONCE = 4 }; /* more take registers that other teams need */
    const int x = p->order[p->n_loops - 1];
    const int64_t trips = qn__trips(s->f, x), lanes = p->team == QN_TEAM_THREAD ? 1
                                                      : p->team == QN_TEAM_BLOCK
                                                          ? p->threads[p->axis[0]]
                                                          : s->f->machine.warp;
    int width = natural_width(s), n_insts = (int)(s->k->n_insts - s->k->body);
    if (!(p->rest_dims >> x & 1) || !qn__is_exact(s->f, x) || s->f->plan.width ||
        !suits_all(s, x, -1))
        return;
    for (uint32_t i = s->k->body; i < s->k->n_insts; i = s->k->inst[i].region[2])
        if (s->k->inst[i].op == QN_I_ATOMIC || s->k->inst[i].op == QN_I_FOR ||
            s->k->inst[i].op == QN_I_WHILE)
            return;
    while (width > 1 && (width > FEW_AT_ONCE || trips % width || trips < 2 * width * lanes ||
                         width * n_insts > MOST_EMITTED))
        width /= 2;
    if (width == 1 || !aligned_bytes(s, x, width, 0))
        return;
    p->wide = width;
    p->wide_dim = x;
}
