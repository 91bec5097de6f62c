/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c: `for` and `while`. A loop whose trips differ between lanes runs under masks until no
 * lane is active. A `for` whose index is that of accesses which were not proved is emitted twice
 * (lower/version.c): without checks where the whole range is in the views, and with them.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/yields.h"

#include <string.h>

/* ---------------------------------------------------------------- loops: carried values */

/** State of a loop of the kernel while it is lowered. */
typedef struct carried {
    yields init, phi, next;
    LLVMBasicBlockRef before;
} carried;

static bool carried_new(lower *g, carried *c, uint32_t i, uint32_t first, int n)
{
    memset(c, 0, sizeof *c);
    if (!qn__yields_new(g, &c->init, n) || !qn__yields_new(g, &c->phi, n) ||
        !qn__yields_new(g, &c->next, n))
        return false;
    for (uint32_t r = first; g->k->inst[r].op == QN_I_CARRIED; r++)
        if (g->k->inst[r].imm < (uint64_t)c->init.n)
            c->init.receiver[g->k->inst[r].imm] = r;
    memcpy(c->phi.receiver, c->init.receiver, sizeof c->phi.receiver);
    memcpy(c->next.receiver, c->init.receiver, sizeof c->next.receiver);
    qn__collect(g, &c->init, qn__args(g->k, i) + (g->k->inst[i].op == QN_I_FOR ? 2 : 1));
    return true;
}

static void carried_free(carried *c)
{
    qn__free(c->init.value);
    qn__free(c->phi.value);
    qn__free(c->next.value);
}

/** Makes the phis of the carried values in the current block, entered from c->before. */
static void carried_phis(lower *g, carried *c)
{
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS (g, p) {
            LLVMValueRef init = *slot_of(&c->init, n, p);
            if (!init)
                continue;
            LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(init), "");
            LLVMAddIncoming(phi, &init, &c->before, 1);
            *slot_of(&c->phi, n, p) = phi;
            qn__set(g, c->phi.receiver[n], p, phi, g->depth);
        }
}

/** Closes the phis with the next values from block `latch`; lanes that are not in `active` keep
 * theirs. */
static void carried_close(lower *g, carried *c, LLVMValueRef *active)
{
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS (g, p) {
            LLVMValueRef phi = *slot_of(&c->phi, n, p), next = *slot_of(&c->next, n, p);
            if (phi && active && active[p])
                *slot_of(&c->next, n, p) = LLVMBuildSelect(g->b, active[p], next, phi, "");
        }
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS(g, p)
            if (*slot_of(&c->phi, n, p))
                LLVMAddIncoming(*slot_of(&c->phi, n, p), slot_of(&c->next, n, p), &latch, 1);
}

/** The results of a loop are the carried values at its head when it ends. */
static void carried_results(lower *g, const carried *c, uint32_t i)
{
    yields y = {.n = c->init.n};
    qn__find_results(g->k, i, &y);
    for (int n = 0; n < y.n; n++)
        FOR_PARTS(g, p)
            if (y.receiver[n] && *slot_of(&c->phi, n, p))
                qn__set(g, y.receiver[n], p, *slot_of(&c->phi, n, p), g->depth);
}

/* ---------------------------------------------------------------- for and while */

/** A loop with its test at the head, under masks or a `while`. Blocks: before -> head -> body ->
 * head, head -> after. */
typedef struct headed {
    carried c;
    LLVMBasicBlockRef head, body, after, latch;
    LLVMValueRef trip; /* i64, 0, 1, ...; NULL: trips are counted down */
    LLVMValueRef at;   /* with those in lanes before it, qn__lanes_while; NULL: there are none */
    countdown left;
    pace pace;
    LLVMValueRef outer[MOST_PARTS];
    bool is_divergent;
} headed;

/** `most`: trips that are allowed, before the loop. ran: NULL, or trips that ran in lanes. */
static void head_open(lower *g, headed *h, LLVMValueRef most, LLVMValueRef ran)
{
    h->c.before = LLVMGetInsertBlock(g->b);
    h->head = qn__new_block(g, "head");
    h->body = qn__new_block(g, "body");
    h->after = qn__new_block(g, "after");
    LLVMBuildBr(g->b, h->head);
    qn__level_open(g, false, true, false);
    LLVMPositionBuilderAtEnd(g->b, h->head);
    LLVMValueRef zero = qn__const_i64(g, 0);
    h->trip = h->left.is_here ? NULL : LLVMBuildPhi(g->b, g->i64, "");
    if (h->trip)
        LLVMAddIncoming(h->trip, &zero, &h->c.before, 1);
    qn__limit_open(g, &h->left, h->c.before);
    int64_t known;
    qn__pace_open(g, &h->pace, most, qn__is_const(most, &known) ? known : INT64_MAX);
    carried_phis(g, &h->c);
    h->at = ran ? LLVMBuildPhi(g->b, g->i64, "") : NULL;
    if (ran) {
        LLVMAddIncoming(h->at, &ran, &h->c.before, 1);
        qn__set_index(g, g->block->lane_dim, h->at);
    }
    memcpy(h->outer, g->mask, sizeof h->outer);
}

/** Emits the body's region and the jump back; stands at `after` then. */
static void head_close(lower *g, headed *h, uint32_t i, uint32_t begin, uint32_t end)
{
    LLVMValueRef active[MOST_PARTS];
    memcpy(active, g->mask, sizeof active);
    qn__lower_region(g, begin, end);
    qn__collect(g, &h->c.next, qn__args(g->k, end - 1));
    carried_close(g, &h->c, h->is_divergent ? active : NULL);
    LLVMValueRef next = h->trip ? LLVMBuildAdd(g->b, h->trip, qn__const_i64(g, 1), "") : NULL;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    if (h->trip)
        LLVMAddIncoming(h->trip, &next, &latch, 1);
    LLVMValueRef after = h->at ? LLVMBuildAdd(g->b, h->at, qn__const_i64(g, 1), "") : NULL;
    if (h->at)
        LLVMAddIncoming(h->at, &after, &latch, 1);
    qn__limit_close(g, &h->left);
    LLVMBuildBr(g->b, h->head);
    h->latch = latch;
    if (!qn__pace_close(g, &h->pace, h->c.before, h->head, latch) && h->trip) {
        LLVMReplaceAllUsesWith(h->trip, qn__const_i64(g, 0));
        LLVMInstructionEraseFromParent(h->trip);
        LLVMInstructionEraseFromParent(next);
    }
    memcpy(g->mask, h->outer, sizeof h->outer);
    g->active = NULL;
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, h->after);
    carried_results(g, &h->c, i);
}

/** Trips of a `for`: begin < end ? (end - begin - 1) / step + 1 : 0, for scalars or vectors. */
static LLVMValueRef trips_of(lower *g, LLVMValueRef begin, LLVMValueRef end, int64_t step,
                             bool vector)
{
    LLVMValueRef one = qn__const_i64(g, 1), by = qn__const_i64(g, step),
                 zero = LLVMConstNull(LLVMTypeOf(begin));
    if (vector) {
        one = qn__const_splat(g, one);
        by = qn__const_splat(g, by);
    }
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSLT, begin, end, ""),
                 n = LLVMBuildSub(g->b, end, begin, "");
    if (step != 1) {
        n = LLVMBuildUDiv(g->b, LLVMBuildSub(g->b, n, one, ""), by, "");
        n = LLVMBuildAdd(g->b, n, one, "");
    }
    return LLVMBuildSelect(g->b, some, n, zero, "");
}

static LLVMValueRef index_of_trip(lower *g, LLVMValueRef begin, LLVMValueRef trip, int64_t step)
{
    LLVMValueRef ahead = trip;
    if (step != 1)
        ahead = LLVMBuildMul(g->b, trip, qn__const_i64(g, step), "");
    if (qn__is_vector(begin))
        ahead = qn__splat(g, ahead, g->depth);
    return LLVMBuildAdd(g->b, begin, ahead, "");
}

/** Values of the canonical parts, one behind the other, from or to `flat`; their number. */
static int flatten(lower *g, const yields *y, const yields *parts, LLVMValueRef *flat)
{
    int n_flat = 0;
    for (int n = 0; n < y->n; n++)
        FOR_PARTS(g, p)
            if (*slot_of(parts, n, p))
                flat[n_flat++] = *slot_of(y, n, p);
    return n_flat;
}

/** Sets what receives carried values or, with `results`, the results of loop i. */
static void set_flat(lower *g, const carried *c, const yields *results, LLVMValueRef *flat)
{
    int n_flat = 0;
    for (int n = 0; n < c->init.n; n++)
        FOR_PARTS (g, p) {
            if (!*slot_of(&c->init, n, p))
                continue;
            uint32_t receiver = results ? results->receiver[n] : c->init.receiver[n];
            if (receiver)
                qn__set(g, receiver, p, flat[n_flat], g->depth);
            n_flat++;
        }
}

static void set_index(lower *g, uint32_t index, LLVMValueRef *v, bool is_vector)
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
    carried c;
    LLVMValueRef *flat; /* carried values where the lowering stands */
    int n_flat, version;
    bool is_ahead; /* of its checks: the last carried value is whether they would have held */
    bool has_lanes; /* its trips may be lanes */
    bool is_from_0; /* so its trips are counted, and not its index */
} counted;

/** One trip, number or index `at`: from t->flat to t->flat. */
static void lower_trip(lower *g, counted *t, LLVMValueRef at)
{
    const qn_inst *x = &g->k->inst[t->inst];
    const int64_t step = (int64_t)x->imm;
    LLVMValueRef index[MOST_PARTS];
    set_flat(g, &t->c, NULL, t->flat);
    FOR_PARTS(g, p)
        index[p] = p ? index[0] : t->is_from_0 ? index_of_trip(g, t->begin, at, step) : at;
    if (t->has_lanes)
        qn__set_index(g, g->block->lane_dim, at);
    set_index(g, x->region[0], index, false);
    LLVMValueRef in_range = t->is_ahead ? t->flat[t->n_flat - 1] : NULL;
    g->in_range = t->is_ahead ? &in_range : NULL;
    qn__lower_region(g, x->region[0], x->region[2]);
    qn__collect(g, &t->c.next, qn__args(g->k, x->region[2] - 1));
    g->in_range = NULL;
    int n = flatten(g, &t->c.next, &t->c.init, t->flat);
    if (t->is_ahead)
        t->flat[n] = in_range;
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

/** Trips [low, high), of which there is a multiple of those at once. From t->flat to t->flat. */
static void lower_trips(lower *g, counted *t, span of, run_of_trips r)
{
    loop l;
    if (qn__is_known_empty(of))
        return;
    qn__loop_open(g, &l, of, r.together, LOOP_MAY_BE_EMPTY | LOOP_IS_SEQUENTIAL);
    qn__loop_carry(g, &l, t->flat, t->n_flat);
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

/** Less than `together` trips, without branches between them, so that the loads of all are under
 * way together: beyond `count` the first trip is computed again, and what that yields is dropped.
 */
static void lower_few(lower *g, counted *t, LLVMValueRef low, LLVMValueRef count, int together)
{
    LLVMValueRef *before = qn__zalloc((size_t)t->n_flat * 2 + 1, sizeof *before),
                 *last = before + t->n_flat;
    if (!before) {
        g->failed = true;
        return;
    }
    memcpy(before, t->flat, (size_t)t->n_flat * sizeof *before);
    branch then =
        qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, count, qn__const_i64(g, 0), ""));
    lower_apart(g, t, low);
    for (int n = 1; n < together - 1; n++) {
        LLVMValueRef ahead = qn__const_i64(g, n),
                     is_one = LLVMBuildICmp(g->b, LLVMIntULT, ahead, count, "");
        memcpy(last, t->flat, (size_t)t->n_flat * sizeof *last);
        ahead = LLVMBuildSelect(g->b, is_one, ahead, qn__const_i64(g, 0), "");
        lower_apart(g, t, LLVMBuildAdd(g->b, low, ahead, ""));
        for (int m = 0; m < t->n_flat; m++)
            t->flat[m] = LLVMBuildSelect(g->b, is_one, t->flat[m], last[m], "");
    }
    qn__choose_branch(g, &then, t->flat, before, t->n_flat);
    qn__free(before);
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
        const bool is_sure = t->is_ahead || g->covered[g->site[n]] ||
                             !qn__is_checked(g->f, g->k, g->site[n]);
        if (!is_sure || !g->f->param[y->imm].is_constant_memory ||
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
    LLVMValueRef n = LLVMBuildSub(g->b, of.high, of.low, ""),
                 mask = qn__const_i64(g, together - 1);
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

/** Whether the trips of loop i may be lanes. */
static bool has_lanes(const lower *g, uint32_t i)
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
    const qn_block *b = g->block;
    FOR_ACCESSES (g->k, n, i)
        if (i >= x->region[0] && i < x->region[2] && qn__is_checked(g->f, g->k, n) &&
            !g->covered[n])
            return qn__const_i64(g, 0);
    const bool is_whole = b->tail != QN_TAIL_MASK;
    LLVMValueRef whole = n_trips;
    if (b->tail == QN_TAIL_SCALAR)
        whole = LLVMBuildAnd(g->b, n_trips, qn__const_i64(g, -(int64_t)b->width * b->unroll), "");
    qn__lanes_trips(g, t->inst, whole, is_whole, t->flat);
    return whole;
}

/** Tested at the end; the index itself counts where the step is 1. */
static void lower_counted(lower *g, counted *t)
{
    const qn_inst *x = &g->k->inst[t->inst];
    int64_t step = (int64_t)x->imm, from, to;
    LLVMValueRef begin = qn__scalar(g, qn__args(g->k, t->inst)[0], 0),
                 end = qn__scalar(g, qn__args(g->k, t->inst)[1], 0);
    LLVMValueRef low = begin, high;
    int together = t->version == BEYOND ? 1 : trips_together(g, t->inst);
    int64_t most = t->version == WITHIN ? g->covered_trips : INT64_MAX;
    yields results = {.n = t->c.init.n};
    qn__find_results(g->k, t->inst, &results);
    t->begin = begin;
    t->n_flat = flatten(g, &t->c.init, &t->c.init, t->flat);
    if (qn__is_const(begin, &from) && qn__is_const(end, &to)) /* else no span from trip 0 on */
        t->has_lanes = t->has_lanes && (from > to || qn__wrap_sub(to, from) >= 0);
    const int64_t known = qn__is_const(begin, &from) ? -1 : qn__known_trips(&g->a, t->inst);
    t->is_from_0 = step != 1 || t->has_lanes || known >= 0;
    if (t->is_from_0) {
        low = qn__const_i64(g, 0);
        high = known >= 0                          ? qn__const_i64(g, known)
               : t->version == WITHIN && step == 1 ? LLVMBuildSub(g->b, end, begin, "")
                                                   : trips_of(g, begin, end, step, false);
        if (t->has_lanes)
            low = lower_lanes(g, t, high);
        if (t->has_lanes && low == high) {
            set_flat(g, &t->c, &results, t->flat);
            return;
        }
    } else if (t->version == WITHIN) {
        high = end;
    } else {
        high = qn__smax(g, end, begin);
    }
    if (t->is_ahead)
        t->flat[t->n_flat++] = LLVMConstInt(g->i1, 1, false);
    LLVMValueRef n = LLVMBuildSub(g->b, high, low, "");
    int64_t trips;
    const bool is_known = qn__is_const(n, &trips);
    if (together > 1 && is_known && trips > 1 && trips < 2 * together) {
        together = (int)trips;
    } else if (together > 1 && step == 1 && may_repeat(g, t)) {
        if (!is_same_for_neighbours(g, t->inst)) {
            lower_aligned(g, t, (span){low, high}, together, most);
            set_flat(g, &t->c, &results, t->flat);
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
    set_flat(g, &t->c, &results, t->flat);
}

/** Trips that differ: under masks, until no lane is active. */
static void lower_divergent(lower *g, uint32_t i, headed *h)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    LLVMValueRef begin[MOST_PARTS], trips[MOST_PARTS], index[MOST_PARTS];
    bool vector = g->width > 1;
    FOR_PARTS (g, p) {
        begin[p] = vector ? qn__vector(g, arg[0], p) : qn__scalar(g, arg[0], p);
        LLVMValueRef end = vector ? qn__vector(g, arg[1], p) : qn__scalar(g, arg[1], p);
        trips[p] = trips_of(g, begin[p], end, (int64_t)x->imm, vector);
    }
    head_open(g, h, qn__const_i64(g, INT64_MAX), NULL);
    FOR_PARTS (g, p) {
        LLVMValueRef trip = vector ? qn__splat(g, h->trip, g->depth) : h->trip;
        g->mask[p] =
            qn__mask_and(g, h->outer[p], LLVMBuildICmp(g->b, LLVMIntULT, trip, trips[p], ""));
    }
    LLVMBuildCondBr(g->b, qn__any_part(g), h->body, h->after);
    LLVMPositionBuilderAtEnd(g->b, h->body);
    if (h->pace.end)
        qn__pace_test(g, &h->pace, h->trip, h->after);
    bool is_vector = qn__wants_vector(g, x->region[0]);
    FOR_PARTS(g, p)
        index[p] = index_of_trip(g, is_vector ? begin[p] : qn__scalar(g, arg[0], p), h->trip,
                                 (int64_t)x->imm);
    set_index(g, x->region[0], index, is_vector);
    head_close(g, h, i, x->region[0], x->region[2]);
}

/** in_range: NULL, or the loop runs ahead of its checks, and this becomes whether they would have
 * held, as i1. */
static void lower_for(lower *g, uint32_t i, int version, LLVMValueRef *in_range)
{
    const qn_inst *x = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    int n = x->n_args - 2;
    if (!qn__is_uniform(g, arg[0]) || !qn__is_uniform(g, arg[1])) {
        headed h = {.is_divergent = true};
        if (carried_new(g, &h.c, i, x->region[0] + 1, n))
            lower_divergent(g, i, &h);
        carried_free(&h.c);
        return;
    }
    counted t = {.inst = i,
                 .has_lanes = has_lanes(g, i),
                 .version = version,
                 .is_ahead = in_range != NULL,
                 .flat = qn__zalloc((size_t)(n + 1) * MOST_PARTS, sizeof *t.flat)};
    if (!t.flat)
        g->failed = true;
    if (t.flat && carried_new(g, &t.c, i, x->region[0] + 1, n)) {
        lower_counted(g, &t);
        if (in_range)
            *in_range = t.flat[t.n_flat - 1];
    }
    carried_free(&t.c);
    qn__free(t.flat);
}

/** One of two versions of the loop, and its results. */
static void lower_version(lower *g, uint32_t i, int version, LLVMValueRef *in_range, yields *out)
{
    lower_for(g, i, version, in_range);
    for (int n = 0; n < out->n; n++)
        FOR_PARTS(g, p)
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
    if (!condition || !qn__yields_new(g, &within, n)) {
        qn__uncover(g, i);
        lower_for(g, i, ONLY, NULL);
        return;
    }
    if (qn__yields_new(g, &beyond, n)) {
        qn__find_results(g->k, i, &within);
        qn__find_results(g->k, i, &beyond);
        if (qn__runs_ahead(g, i))
            lower_ahead(g, i, condition, &within, &beyond);
        else
            lower_either(g, i, condition, &within, &beyond);
    }
    qn__free(within.value);
    qn__free(beyond.value);
}

/** Ends the loop for good when it has run its most trips, and records that. */
static void check_limit(lower *g, uint32_t i, headed *h)
{
    if (h->left.is_here && !h->left.first)
        return; /* it ends in time */
    LLVMBasicBlockRef limit = qn__new_block(g, "limit"), go_on;
    if (!h->pace.end) {
        go_on = qn__new_block(g, "below");
        if (h->left.is_here)
            qn__limit_test(g, &h->left, go_on, limit);
        else
            LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, h->trip, h->pace.most, ""), go_on,
                            limit);
    } else {
        LLVMBasicBlockRef test = LLVMGetInsertBlock(g->b);
        qn__pace_test(g, &h->pace, h->trip, limit);
        go_on = h->pace.below;
        LLVMPositionBuilderAtEnd(g->b, test);
    }
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, limit);
    FOR_PARTS(g, p)
        qn__note_fault(g, i, p, g->mask[p] ? g->mask[p] : LLVMConstInt(g->i1, 1, false),
                       QN_ERR_LIMIT);
    LLVMBuildBr(g->b, h->after);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, go_on);
}

/** Masks of lanes that are still in the loop, as phis at its head. */
static void open_alive(lower *g, const headed *h, LLVMValueRef *alive)
{
    LLVMBasicBlockRef before = h->c.before;
    FOR_PARTS (g, p) {
        LLVMValueRef first =
            h->outer[p] ? h->outer[p] : qn__const_splat(g, LLVMConstInt(g->i1, 1, false));
        alive[p] = LLVMBuildPhi(g->b, LLVMTypeOf(first), "");
        LLVMAddIncoming(alive[p], &first, &before, 1);
        g->mask[p] = alive[p];
    }
}

static void close_alive(lower *g, headed *h, LLVMValueRef *alive, LLVMValueRef *still)
{
    FOR_PARTS(g, p)
        if (alive[p])
            LLVMAddIncoming(alive[p], &still[p], &h->latch, 1);
}

uint32_t qn__last_condition(const lower *g, uint32_t begin, uint32_t end)
{
    const qn_kernel *k = g->k;
    const uint32_t result = qn__args(k, end - 1)[0];
    const uint32_t i = k->inst[result].op == QN_I_RESULT ? qn__args(k, result)[0] : 0;
    if (i < begin || result != end - 2 || k->inst[i].op != QN_I_IF ||
        k->inst[i].region[2] != result || g->f->target->branches_diverge)
        return 0;
    const qn_inst *other = &k->inst[qn__args(k, k->inst[i].region[2] - 1)[0]];
    return other->op == QN_I_CONST && !other->imm ? i : 0;
}

/** What a loop ends by, the same for the whole block: goes to its body or behind it. Where a
 * condition of several does not hold, the others are not looked at. */
static void lower_test(lower *g, uint32_t begin, uint32_t end, const headed *h)
{
    const uint32_t i = qn__last_condition(g, begin, end);
    qn__lower_region(g, begin, i ? i : end);
    LLVMValueRef going = qn__scalar(g, qn__args(g->k, i ? i : end - 1)[0], 0);
    LLVMBasicBlockRef next = i ? qn__new_block(g, "and") : h->body;
    LLVMBuildCondBr(g->b, going, next, h->after);
    if (!i)
        return;
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, next);
    lower_test(g, g->k->inst[i].region[0], g->k->inst[i].region[1], h);
    qn__level_close(g);
}

void qn__lower_while(lower *g, uint32_t i)
{
    const qn_inst *x = &g->k->inst[i];
    uint32_t test = qn__args(g->k, x->region[1] - 1)[0];
    headed h = {.is_divergent = !qn__is_uniform(g, test)};
    if (!carried_new(g, &h.c, i, x->region[0], x->n_args - 1)) {
        carried_free(&h.c);
        return;
    }
    LLVMValueRef most = qn__scalar(g, qn__args(g->k, i)[0], 0), ran = NULL;
    if (has_lanes(g, i)) {
        yields *init = &h.c.init;
        LLVMValueRef first[QN_MAX_CARRIED];
        for (int n = 0; n < init->n; n++)
            first[n] = *slot_of(init, n, 0);
        ran = qn__lanes_while(g, i, most, first);
        for (int n = 0; n < init->n; n++)
            *slot_of(init, n, 0) = first[n];
        most = LLVMBuildSub(g->b, most, ran, "");
    }
    qn__limit_prepare(g, i, &h.left);
    head_open(g, &h, most, ran);
    h.pace.is_in_time = h.left.is_in_time;
    LLVMValueRef alive[MOST_PARTS] = {NULL}; /* lanes that left stay out */
    if (h.is_divergent)
        open_alive(g, &h, alive);
    if (h.is_divergent) {
        qn__lower_region(g, x->region[0], x->region[1]);
        FOR_PARTS(g, p)
            g->mask[p] = qn__mask_and(g, alive[p], qn__vector(g, test, p));
        LLVMBuildCondBr(g->b, qn__any_part(g), h.body, h.after);
    } else {
        lower_test(g, x->region[0], x->region[1], &h);
    }
    LLVMPositionBuilderAtEnd(g->b, h.body);
    check_limit(g, i, &h);
    LLVMValueRef still[MOST_PARTS];
    memcpy(still, g->mask, sizeof still);
    head_close(g, &h, i, x->region[1], x->region[2]);
    close_alive(g, &h, alive, still);
    carried_free(&h.c);
}
