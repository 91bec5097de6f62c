/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c: `for`. A loop whose trips differ between lanes runs under masks until no lane is active
 * (lower/while.c). One whose index is that of accesses which were not proved is emitted twice
 * (lower/version.c): without checks where the whole range is in the views, and with them.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/yields.h"

#include <string.h>

bool qn__open_carried(lower *g, uint32_t i, yields *y)
{
    const qn_inst *x = &g->k->inst[i];
    const int n_bounds = x->op == QN_I_FOR ? 2 : 1;
    if (!qn__yields_new(g, y, x->n_args - n_bounds))
        return false;
    for (uint32_t r = x->region[0] + (x->op == QN_I_FOR); g->k->inst[r].op == QN_I_CARRIED; r++)
        if (g->k->inst[r].imm < (uint64_t)y->n)
            y->receiver[g->k->inst[r].imm] = r;
    qn__collect(g, y, qn__args(g->k, i) + n_bounds);
    return true;
}

void qn__set_yields(lower *g, const yields *y, const uint32_t *receiver)
{
    for (int n = 0; n < y->n; n++)
        FOR_PARTS (g, p)
            if (receiver[n] && *slot_of(y, n, p))
                qn__set(g, receiver[n], p, *slot_of(y, n, p), g->depth);
}

void qn__set_results(lower *g, const yields *y, uint32_t i)
{
    yields results = {.n = y->n};
    qn__find_results(g->k, i, &results);
    qn__set_yields(g, y, results.receiver);
}

/* begin < end ? (end - begin - 1) / step + 1 : 0 */
LLVMValueRef qn__count_trips(lower *g, LLVMValueRef begin, LLVMValueRef end, int64_t step)
{
    const LLVMTypeRef t = LLVMTypeOf(begin);
    LLVMValueRef one = qn__constant_like(t, qn__const_i64(g, 1)),
                 by = qn__constant_like(t, qn__const_i64(g, step)), zero = LLVMConstNull(t);
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSLT, begin, end, ""),
                 n = LLVMBuildSub(g->b, end, begin, "");
    if (step != 1) {
        n = LLVMBuildUDiv(g->b, LLVMBuildSub(g->b, n, one, ""), by, "");
        n = LLVMBuildAdd(g->b, n, one, "");
    }
    return LLVMBuildSelect(g->b, some, n, zero, "");
}

LLVMValueRef qn__index_of_trip(lower *g, LLVMValueRef begin, LLVMValueRef trip, int64_t step)
{
    LLVMValueRef ahead = trip;
    if (step != 1)
        ahead = LLVMBuildMul(g->b, trip, qn__const_i64(g, step), "");
    if (qn__is_vector(begin))
        ahead = qn__splat(g, ahead, g->depth);
    return LLVMBuildAdd(g->b, begin, ahead, "");
}

void qn__set_trip_index(lower *g, uint32_t index, LLVMValueRef *v, bool is_vector)
{
    FOR_PARTS (g, p) {
        if (qn__canonical_part(g, index, p) != p)
            continue;
        LLVMValueRef one = v[p];
        if (qn__wants_vector(g, index) &&
            !is_vector) /* would differ between jammed iterations, of which there is one now */
            one = qn__splat(g, one, g->depth);
        qn__set(g, index, p, one, g->depth);
    }
}

/** The only version of a loop; that of rows in range, which do not end before they begin; that of
 * rows which fail. */
enum { ONLY, WITHIN, BEYOND };

/** A loop with the same trips for the whole block. */
typedef struct counted {
    uint32_t inst;
    LLVMValueRef begin;
    yields now;            /* carried values where the lowering stands */
    LLVMValueRef in_range; /* ahead of its checks: whether they would have held; else NULL */
    int version;
    bool has_lanes; /* its trips may be lanes */
    bool is_from_0; /* so its trips are counted, and not its index */
} counted;

static int n_values(const counted *t)
{
    return t->now.n * MOST_PARTS;
}

/** One trip, number or index `at`. */
static void lower_trip(lower *g, counted *t, LLVMValueRef at)
{
    const qn_inst *x = &g->k->inst[t->inst];
    LLVMValueRef index[MOST_PARTS];
    qn__set_yields(g, &t->now, t->now.receiver);
    FOR_PARTS (g, p)
        index[p] = p              ? index[0]
                   : t->is_from_0 ? qn__index_of_trip(g, t->begin, at, (int64_t)x->imm)
                                  : at;
    if (t->has_lanes)
        qn__set_index(g, g->trip_block.lane_dim, at);
    qn__set_trip_index(g, x->region[0], index, false);
    g->in_range = t->in_range ? &t->in_range : NULL;
    qn__lower_region(g, x->region[0], x->region[2]);
    qn__collect(g, &t->now, qn__args(g->k, x->region[2] - 1));
    g->in_range = NULL;
}

/** Trip `at`, as a level of its own: what it computes is not the next one's. */
static void lower_apart(lower *g, counted *t, LLVMValueRef at)
{
    loop once;
    qn__loop_open(g, &once, qn__up_to(g, qn__const_i64(g, 1)), 1, LOOP_IS_SEQUENTIAL);
    lower_trip(g, t, at);
    qn__loop_close(g, &once);
}

/** How trips are emitted: so many at once, and where they begin. */
typedef struct run_of_trips {
    int together;
    bool is_aligned; /* at a multiple of `together` */
    int64_t most;    /* indices at most */
} run_of_trips;

/** Trips [low, high), of which there is a multiple of those at once. */
static void lower_trips(lower *g, counted *t, span of, run_of_trips r)
{
    loop l;
    if (qn__is_known_empty(of))
        return;
    qn__loop_open(g, &l, of, r.together, LOOP_MAY_BE_EMPTY | LOOP_IS_SEQUENTIAL);
    qn__loop_carry(g, &l, t->now.value, n_values(t));
    qn__loop_carry(g, &l, &t->in_range, 1);
    if (!l.is_single)
        qn__loop_most(&l, r.most);
    if (!l.is_single && r.is_aligned)
        g->level[g->depth].multiple = r.together;
    if (r.together == 1)
        lower_trip(g, t, l.index);
    for (int n = 0; n < r.together && r.together > 1; n++)
        lower_apart(g, t, n ? LLVMBuildAdd(g->b, l.index, qn__const_i64(g, n), "") : l.index);
    qn__loop_close(g, &l);
}

/** Trip `at`, what of it counts where `is_one` holds. */
static void lower_trip_if(lower *g, counted *t, LLVMValueRef at, LLVMValueRef is_one)
{
    LLVMValueRef *before = qn__alloc((size_t)n_values(t) * sizeof *before + 1),
                 in_range = t->in_range;
    g->failed |= !before;
    if (!before)
        return;
    memcpy(before, t->now.value, (size_t)n_values(t) * sizeof *before);
    lower_apart(g, t, at);
    for (int m = 0; m < n_values(t); m++)
        if (before[m])
            t->now.value[m] = LLVMBuildSelect(g->b, is_one, t->now.value[m], before[m], "");
    if (in_range)
        t->in_range = LLVMBuildSelect(g->b, is_one, t->in_range, in_range, "");
    qn__free(before);
}

/** Less than `together` trips, without branches between them, so that the loads of all are under
 * way together: beyond `count` the first trip is computed again, and what that yields is dropped.
 */
static void lower_few(lower *g, counted *t, LLVMValueRef low, LLVMValueRef count, int together)
{
    branch then =
        qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, count, qn__const_i64(g, 0), ""));
    qn__branch_keep(g, &then, t->now.value, n_values(t));
    qn__branch_keep(g, &then, &t->in_range, 1);
    lower_apart(g, t, low);
    for (int n = 1; n < together - 1; n++) {
        LLVMValueRef ahead = qn__const_i64(g, n),
                     is_one = LLVMBuildICmp(g->b, LLVMIntULT, ahead, count, "");
        ahead = LLVMBuildSelect(g->b, is_one, ahead, qn__const_i64(g, 0), "");
        lower_trip_if(g, t, LLVMBuildAdd(g->b, low, ahead, ""), is_one);
    }
    qn__end_branch(g, &then, NULL);
}

/** Whether a trip of a thread may be computed again: it loads, from what nobody changes, and
 * nothing that it does can fail. */
static bool may_repeat(const lower *g, const counted *t)
{
    const qn_inst *x = &g->k->inst[t->inst];
    for (uint32_t n = x->region[0]; n < x->region[2]; n++) {
        const qn_inst *y = &g->k->inst[n];
        if (y->op == QN_I_STORE || y->op == QN_I_ATOMIC || y->op == QN_I_ASSERT)
            return false;
        if (y->op != QN_I_LOAD)
            continue;
        if ((!t->in_range && qn__is_tested(g, n)) || !g->f->param[y->imm].is_constant_memory ||
            (g->k->param[y->imm].traits & QN_ATOMIC))
            return false;
    }
    return g->f->target->waits_for_loads;
}

/** How many trips are emitted at once: several of a small body, so that those of the next row are
 * in sight of the processor while sums wait for one another. Threads of a GPU need that where a
 * trip loads or stores: loads of several trips are under way together, and elements side by side
 * move together. */
static int trips_together(const lower *g, uint32_t i)
{
    enum { TOGETHER = 4, SMALL_BODY = 16 };
    const qn_inst *x = &g->k->inst[i];
    const bool is_thread = g->f->target->waits_for_loads;
    bool has_memory = false;
    if (g->width > 1 || x->region[2] - x->region[0] > (is_thread ? 2 : 1) * SMALL_BODY)
        return 1;
    for (uint32_t n = x->region[0]; n < x->region[2]; n++) {
        if (g->k->inst[n].region[2] != n + 1)
            return 1;
        has_memory |= g->k->inst[n].op == QN_I_STORE || g->k->inst[n].op == QN_I_LOAD;
    }
    return !is_thread ? TOGETHER : has_memory ? 2 * TOGETHER : 1;
}

/** Trips of a thread of a GPU from a multiple of `together` on, so that elements side by side move
 * as vectors; those before and behind are few. */
static void lower_aligned(lower *g, counted *t, span of, int together, int64_t most)
{
    LLVMValueRef n = LLVMBuildSub(g->b, of.high, of.low, ""), mask = qn__const_i64(g, together - 1);
    LLVMValueRef first = LLVMBuildAnd(g->b, LLVMBuildNeg(g->b, of.low, ""), mask, "");
    first = qn__umin(g, first, n);
    LLVMValueRef low = LLVMBuildAdd(g->b, of.low, first, ""),
                 rest = LLVMBuildAnd(g->b, LLVMBuildSub(g->b, of.high, low, ""), mask, ""),
                 middle = LLVMBuildSub(g->b, of.high, rest, "");
    int64_t known;
    if (!qn__is_const(first, &known) || known)
        lower_few(g, t, of.low, first, together);
    lower_trips(g, t, (span){low, middle}, (run_of_trips){together, true, most});
    if (!qn__is_const(rest, &known) || known)
        lower_few(g, t, middle, rest, together);
}

/** Whether neighbouring threads of a GPU run the same trips of loop i, and load what is alike or
 * lies side by side, wherever it stands: none walks along a row of its own. */
static bool is_same_for_neighbours(const lower *g, uint32_t i)
{
    const int x = g->grid ? g->grid->axis[0] : -1;
    const uint32_t *bound = qn__args(g->k, i);
    int64_t stride;
    FOR_ACCESSES (g->k, n, j)
        if (x >= 0 && j > i && j < g->k->inst[i].region[2] &&
            qn__access_stride(&g->a, j, x, &stride) && (stride > 1 || stride < -1))
            return false;
    return x >= 0 && g->grid->team == QN_TEAM_THREAD &&
           !((g->a.value[bound[0]].deps | g->a.value[bound[1]].deps) >> x & 1);
}

bool qn__has_trip_lanes(const lower *g, uint32_t i)
{
    for (int n = 0; n < g->block->trips.n && g->width == 1; n++)
        if (g->block->trips.loop[n] == i)
            return true;
    return false;
}

/** Trips as lanes where no access needs a test of its own; where the others begin. */
static LLVMValueRef lower_lanes(lower *g, counted *t, LLVMValueRef n_trips)
{
    const qn_inst *x = &g->k->inst[t->inst];
    const qn_block *b = &g->trip_block;
    FOR_ACCESSES (g->k, n, i)
        if (i >= x->region[0] && i < x->region[2] && qn__is_tested(g, i))
            return qn__const_i64(g, 0);
    LLVMValueRef whole = n_trips;
    if (b->tail == QN_TAIL_SCALAR)
        whole = LLVMBuildAnd(g->b, n_trips, qn__const_i64(g, -(int64_t)b->width * b->unroll), "");
    qn__lanes_trips(g, t->inst, whole, b->tail != QN_TAIL_MASK, &t->now);
    return whole;
}

/** Trips [low, high) at once as many as suit the target, then the others. */
static void lower_span(lower *g, counted *t, LLVMValueRef low, LLVMValueRef high)
{
    int together = t->version == BEYOND ? 1 : trips_together(g, t->inst);
    const int64_t most = t->version == WITHIN ? g->covered_trips : INT64_MAX;
    LLVMValueRef n = LLVMBuildSub(g->b, high, low, "");
    int64_t trips;
    if (together > 1 && qn__is_const(n, &trips) && trips > 1 && trips < 2 * together) {
        together = (int)trips;
    } else if (together > 1 && (int64_t)g->k->inst[t->inst].imm == 1 && may_repeat(g, t)) {
        if (!is_same_for_neighbours(g, t->inst)) {
            lower_aligned(g, t, (span){low, high}, together, most);
            return;
        }
        together = 2; /* elements side by side are those of other threads */
    }
    if (together > 1) {
        LLVMValueRef rest = LLVMBuildURem(g->b, n, qn__const_i64(g, together), ""),
                     middle = LLVMBuildSub(g->b, high, rest, "");
        lower_trips(g, t, (span){low, middle}, (run_of_trips){together, false, most});
        low = middle;
    }
    lower_trips(g, t, (span){low, high}, (run_of_trips){1, false, together > 1 ? together : most});
}

/** `count` trips of a loop whose rows move through shared memory, and these before and behind. */
static void lower_piece(lower *g, counted *t, LLVMValueRef from, int64_t count)
{
    enum { TOGETHER = 8 };
    const int64_t whole = count / TOGETHER * TOGETHER;
    LLVMValueRef middle = LLVMBuildAdd(g->b, from, qn__const_i64(g, whole), ""),
                 end = LLVMBuildAdd(g->b, from, qn__const_i64(g, count), "");
    g->hooks->move_rows(g, from, count, false);
    if (whole)
        lower_trips(g, t, (span){from, middle}, (run_of_trips){TOGETHER, false, INT64_MAX});
    if (whole < count)
        lower_trips(g, t, (span){middle, end}, (run_of_trips){1, false, TOGETHER});
    g->hooks->move_rows(g, from, count, true);
}

static void lower_pieces(lower *g, counted *t, LLVMValueRef low)
{
    const int64_t n = qn__known_trips(&g->a, t->inst), whole = n / QN_MOVED_TRIPS * QN_MOVED_TRIPS;
    LLVMValueRef middle = LLVMBuildAdd(g->b, low, qn__const_i64(g, whole), "");
    loop l;
    qn__loop_open(g, &l, (span){low, middle}, QN_MOVED_TRIPS, LOOP_IS_SEQUENTIAL);
    qn__loop_carry(g, &l, t->now.value, n_values(t));
    lower_piece(g, t, l.index, QN_MOVED_TRIPS);
    qn__loop_close(g, &l);
    if (whole < n) {
        qn__loop_open(g, &l, qn__up_to(g, qn__const_i64(g, 1)), 1, LOOP_IS_SEQUENTIAL);
        lower_piece(g, t, middle, n - whole);
        qn__loop_close(g, &l);
    }
}

/** Tested at the end; the index itself counts where the step is 1. */
static void lower_counted(lower *g, counted *t)
{
    const qn_inst *x = &g->k->inst[t->inst];
    int64_t step = (int64_t)x->imm, from, to;
    LLVMValueRef begin = qn__scalar(g, qn__args(g->k, t->inst)[0], 0),
                 end = qn__scalar(g, qn__args(g->k, t->inst)[1], 0), low = begin, high;
    t->begin = begin;
    if (qn__is_const(begin, &from) && qn__is_const(end, &to)) /* else no span from trip 0 on */
        t->has_lanes = t->has_lanes && (from > to || qn__wrap_sub(to, from) >= 0);
    const int64_t known = qn__is_const(begin, &from) ? -1 : qn__known_trips(&g->a, t->inst);
    t->is_from_0 = step != 1 || t->has_lanes || known >= 0;
    if (t->is_from_0) {
        low = qn__const_i64(g, 0);
        high = known >= 0                          ? qn__const_i64(g, known)
               : t->version == WITHIN && step == 1 ? LLVMBuildSub(g->b, end, begin, "")
                                                   : qn__count_trips(g, begin, end, step);
        low = t->has_lanes ? lower_lanes(g, t, high) : low;
    } else {
        high = t->version == WITHIN ? end : qn__smax(g, end, begin);
    }
    if (g->grid && g->grid->moved_loop == t->inst)
        lower_pieces(g, t, low);
    else if (!t->has_lanes || low != high)
        lower_span(g, t, low, high);
    qn__set_results(g, &t->now, t->inst);
}

/** in_range: NULL, or the loop runs ahead of its checks, and this becomes whether they would have
 * held, as i1. */
static void lower_for(lower *g, uint32_t i, int version, LLVMValueRef *in_range)
{
    const uint32_t *arg = qn__args(g->k, i);
    counted t = {.inst = i,
                 .has_lanes = qn__has_trip_lanes(g, i),
                 .version = version,
                 .in_range = in_range ? LLVMConstInt(g->i1, 1, false) : NULL};
    if (!qn__is_uniform(g, arg[0]) || !qn__is_uniform(g, arg[1])) {
        qn__lower_divergent_for(g, i);
        return;
    }
    if (qn__open_carried(g, i, &t.now))
        lower_counted(g, &t);
    if (in_range)
        *in_range = t.in_range;
    qn__free(t.now.value);
}

/** One of two versions of the loop, and its results. */
static void lower_version(lower *g, uint32_t i, int version, LLVMValueRef *in_range, yields *out)
{
    lower_for(g, i, version, in_range);
    for (int n = 0; n < out->n; n++)
        FOR_PARTS (g, p)
            if (out->receiver[n] && qn__canonical_part(g, out->receiver[n], p) == p)
                *slot_of(out, n, p) = g->value[out->receiver[n]].part[p];
}

/** The first version where all accesses at the index are in range, else the second. */
static void lower_either(lower *g, uint32_t i, LLVMValueRef condition, yields *within,
                         yields *beyond)
{
    branch x = qn__begin_choice(g, condition, "within", "beyond");
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(x.from));
    lower_version(g, i, WITHIN, NULL, within);
    qn__uncover(g, i);
    qn__begin_other(g, &x);
    lower_version(g, i, BEYOND, NULL, beyond);
    qn__end_branch(g, &x, NULL);
    qn__join_yields(g, within, beyond, &x);
}

/** The first version where all accesses at the index are in range, ahead of the other checks; the
 * second where that was not so, or where a check would have failed. */
static void lower_ahead(lower *g, uint32_t i, LLVMValueRef condition, yields *within,
                        yields *beyond)
{
    LLVMValueRef in_range = LLVMConstInt(g->i1, 1, false);
    branch x = qn__begin_branch(g, condition);
    qn__mark_likely(g, LLVMGetBasicBlockTerminator(x.from));
    lower_version(g, i, WITHIN, &in_range, within);
    qn__uncover(g, i);
    in_range = qn__end_branch(g, &x, in_range);
    for (int n = 0; n < within->n; n++)
        FOR_PARTS (g, p) {
            LLVMValueRef *v = slot_of(within, n, p);
            *v = *v ? qn__join(g, &x, *v, LLVMConstNull(LLVMTypeOf(*v))) : NULL;
        }
    branch y = qn__begin_branch(g, LLVMBuildNot(g->b, in_range, ""));
    lower_version(g, i, BEYOND, NULL, beyond);
    qn__end_branch(g, &y, NULL);
    qn__join_yields(g, beyond, within, &y);
}

void qn__lower_for(lower *g, uint32_t i)
{
    yields within, beyond;
    int n = g->k->inst[i].n_args - 2;
    if (g->is_team && g->hooks->team_trips(g, i))
        return;
    LLVMValueRef condition = qn__cover(g, i);
    if (!condition) {
        qn__uncover(g, i);
        lower_for(g, i, ONLY, NULL);
        return;
    }
    if (qn__results_new(g, i, n, &within, &beyond)) {
        if (qn__runs_ahead(g, i))
            lower_ahead(g, i, condition, &within, &beyond);
        else
            lower_either(g, i, condition, &within, &beyond);
    }
    qn__free(within.value);
    qn__free(beyond.value);
}
