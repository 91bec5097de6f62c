/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.c: the life of a qn_trial, see trial.h. A launch has two places in it: it chooses its
 * version on the long way, and its time is recorded when it has run. While a shape is new or its
 * version is ordered, its choice in the cache is provisional, so that launches hit; in turns every
 * launch takes the long way.
 */
#include "runtime/trial.h"
#include "runtime/tier.h"

#include <string.h>

/*
 * A shape is due when what its exact version would have saved is what that costs, a compile: the
 * rule of ski rental, by which a trial and what it came too late for cost at most twice what they
 * must. What it saves of the time is taken to be the mean of what the kernel's trials so far saved,
 * 0 of those in vain. Before the first one anything from nothing to half of the time is as likely,
 * which counts as one trial that saved a quarter.
 */
enum { PRIOR_PARTS = 4 };
/* Of a compile that was not met, as when all code came from disk: a 5-point stencil (docs/
 * benchmarks.md, compile/stencil5). */
enum { USUAL_COMPILE_NS = 3200000 };
/* Both versions run in turns, and so many pairs of times are compared. If both were alike, each
 * would be the faster one of a pair as often: 7 of 8 pairs then have the probability 9 / 256, which
 * is below 1 / 20. Fewer pairs would not allow for one that something disturbs. */
enum { TURNS = 8, LEAST_WINS = 7 };

/* Launches for which a clock is read take a tenth longer at most, which is the regret that the
 * whole policy may have. So many launches tell how long they and the recording take. */
enum { TIMING_PART = 10, LAUNCHES_THAT_TELL = 16 };

/* ---------------------------------------------------------------- shapes */

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9fb21c651e98df25u;
    return h ^ h >> 32;
}

/** Of all extents, strides and lower bounds, and of scalars that are constants. */
static uint64_t hash_shape(const qn_launch_state *l)
{
    const qn_kernel *k = l->kernel;
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0 && (l->options.constant_scalars || l->options.n_pins ||
                                     k->param[p].pinned.constant[QN_PIN_SCALAR]))
            h = mix(h, l->args[p].bits ^ l->args[p].high);
        for (int d = 0; d < k->param[p].rank; d++) {
            const qn_dim *dim = &l->args[p].view->layout.dim[d];
            h = mix(h, (uint64_t)dim->extent);
            h = mix(h, (uint64_t)dim->stride ^ (uint64_t)dim->lower << 32);
        }
    }
    return h;
}

/** The same with what else makes other versions or other times. */
static uint64_t name_of(const qn_launch_state *l, uint64_t shape)
{
    const qn_options *o = &l->options;
    uint64_t h = mix(shape, (uint64_t)o->executor << 32 | (uint32_t)o->checks);
    h = mix(h, (uint64_t)o->isa << 32 | (uint32_t)o->max_threads);
    h = mix(h, (uint64_t)o->atomics << 32 | (uint32_t)o->loader);
    h = mix(h, o->plan ? qn__hash(o->plan, sizeof *o->plan, 0) : 0);
    h = mix(h, qn__hash(o->pins, (size_t)o->n_pins * sizeof *o->pins, 0)) & ~UINT64_C(1);
    return h ? h : 2;
}

void qn__trial_has_exact(qn_known_kernel *known, const qn_launch_state *l)
{
    uint64_t shape = hash_shape(l);
    known->trials.has_exact[shape >> 6 & 3] |= UINT64_C(1) << (shape & 63);
}

static bool may_have_exact(const qn_known_kernel *known, uint64_t shape)
{
    return known->trials.has_exact[shape >> 6 & 3] >> (shape & 63) & 1;
}

static qn_trial *find(const qn_known_kernel *known, uint64_t name)
{
    for (int i = 0; known->trials.of && i < QN_TRIALS; i++)
        if (known->trials.of[i].name == name)
            return &known->trials.of[i];
    return NULL;
}

/** A shape in the place of the one that was not met longest; NULL without memory. */
static qn_trial *add(qn_cache *c, qn_known_kernel *known, uint64_t name)
{
    qn_trial *of = qn__cache_trials(c, known), *oldest = of;
    for (int i = 1; of && i < QN_TRIALS; i++)
        if (of[i].last_use < oldest->last_use)
            oldest = &of[i];
    if (oldest)
        *oldest =
            (qn_trial){.name = name, .state = QN_TRIAL_NEW, .least_ns = {INT64_MAX, INT64_MAX}};
    return oldest;
}

/* ---------------------------------------------------------------- choosing */

/** The exact version of a launch as it stands in the cache: -1 in *state if it does not; with a
 * reference. */
static qn_status find_exact(qn_launch_state *l, int *state, qn_code **out, qn_error *err)
{
    const qn_policy exact = {.constant_scalars = l->options.constant_scalars != 0};
    qn_context *c = l->context;
    qn_facts facts = {0};
    qn_text key = {0};
    qn_status status = qn__version_key(l, &exact, &facts, &key, err);
    *state = -1;
    *out = NULL;
    if (status)
        return status;
    qn__lock(c);
    qn_code *f = qn__cache_function(&c->cache, l->kernel, &key, l->options.loader);
    if (f) {
        qn__code_retain(f);
        f->last_use = ++c->cache.clock;
        *state = f->state;
        *out = f;
    }
    qn__unlock(c);
    qn__text_release(&key);
    qn__facts_release(&facts);
    return QN_OK;
}

/** Has the exact version built in the background. */
static qn_status order(qn_launch_state *l, qn_error *err)
{
    const qn_policy exact = {.constant_scalars = l->options.constant_scalars != 0};
    bool may_have_code_later = l->may_have_code_later;
    qn_code *f = NULL;
    qn_status status = qn__tier_look(l, &exact, true, &f, err);
    qn_code_release(f);
    l->may_have_code_later = may_have_code_later; /* the dynamic one serves until then */
    return status;
}

/** The next launch times the dynamic version. */
static void time_dynamic(qn_launch_state *l, const qn_trial *t)
{
    l->trial = t->name;
    l->is_provisional = true;
}

/** Both versions are there: the one that was timed less runs. */
static bool take_turn(qn_launch_state *l, const qn_trial *t)
{
    bool is_exact = t->n_timed[1] < t->n_timed[0];
    l->trial = t->name | is_exact;
    l->is_in_turns = true;
    return is_exact;
}

static void begin_turns(qn_trial *t)
{
    t->state = QN_TRIAL_TURNS;
    t->least_ns[0] = t->least_ns[1] = INT64_MAX;
    t->n_timed[0] = t->n_timed[1] = t->n_wins = 0;
}

static void begin_anew(qn_trial *t)
{
    t->state = QN_TRIAL_NEW;
    t->spent_ns = 0;
    t->n_timed[0] = 0;
}

/** Goes on with a shape whose exact version is in this state, -1: it is not there. Whether that
 * runs. The lock is held. */
static bool advance(qn_launch_state *l, qn_trial *t, int state, qn_code *f)
{
    bool is_ready = state == QN_READY;
    if (is_ready && (t->state == QN_TRIAL_DUE || t->state == QN_TRIAL_ORDERED))
        begin_turns(t);
    switch (t->state) {
    case QN_TRIAL_DUE:
        if (state == QN_BUILDING)
            t->state = QN_TRIAL_ORDERED;
        else
            begin_anew(t);
        break;
    case QN_TRIAL_ORDERED:
        if (state != QN_BUILDING)
            t->state = QN_TRIAL_DYNAMIC; /* it could not be built */
        break;
    case QN_TRIAL_TURNS:
    case QN_TRIAL_EXACT:
        if (is_ready)
            return t->state == QN_TRIAL_EXACT || take_turn(l, t);
        begin_anew(t);
        break;
    case QN_TRIAL_VAIN:
        t->state = QN_TRIAL_DYNAMIC;
        if (is_ready && f->is_cached && f->is_on_trial)
            qn__cache_remove(&l->context->cache, f);
        break;
    default:
        break;
    }
    if (t->state == QN_TRIAL_NEW)
        time_dynamic(l, t);
    l->is_provisional |= t->state == QN_TRIAL_ORDERED;
    return false;
}

/** What stands of a shape: its state, which is EXACT if it may have an exact version without being
 * on trial; adds it if it is new and may be tried. */
static int look_up(qn_launch_state *l, uint64_t shape, uint64_t name, bool may_try)
{
    qn_context *c = l->context;
    int state = QN_TRIAL_DYNAMIC;
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    qn_trial *t = known ? find(known, name) : NULL;
    bool may_exist = known && may_have_exact(known, shape);
    if (known && !t && may_try && !may_exist)
        t = add(&c->cache, known, name);
    if (t)
        t->last_use = ++c->cache.clock;
    if (t || may_exist)
        state = t ? t->state : QN_TRIAL_EXACT;
    l->n_changes = c->cache.n_changes;
    if (t && state == QN_TRIAL_NEW && may_try)
        time_dynamic(l, t);
    if (t && state == QN_TRIAL_DUE)
        l->hot_ns = t->spent_ns;
    qn__unlock(c);
    return state;
}

/** Whether the exact version is to run, which stands so in the cache. */
static bool go_on(qn_launch_state *l, uint64_t name, bool may_try, int state, qn_code *f)
{
    qn_context *c = l->context;
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    qn_trial *t = known ? find(known, name) : NULL;
    bool takes = state == QN_READY;
    if (known && !t && may_try && !takes && (t = add(&c->cache, known, name)) != NULL)
        time_dynamic(l, t);
    else if (t && may_try)
        takes = advance(l, t, state, f);
    else if (t)
        takes = takes && t->state == QN_TRIAL_EXACT;
    qn__unlock(c);
    return takes;
}

qn_status qn__trial_choose(qn_launch_state *l, qn_code **out, qn_error *err)
{
    bool may_try = qn__target_of(l->options.isa) == QN_TARGET_X86 && !l->is_ordered &&
                   !l->is_prepared && l->options.compile != QN_COMPILE_NEVER &&
                   !atomic_load(&l->context->is_released);
    uint64_t shape = hash_shape(l), name = name_of(l, shape);
    int where = look_up(l, shape, name, may_try), state;
    qn_code *f = NULL;
    if (where == QN_TRIAL_NEW || where == QN_TRIAL_DYNAMIC)
        return QN_OK;
    qn_status status = find_exact(l, &state, &f, err);
    if (status == QN_OK && where == QN_TRIAL_DUE && state < 0 && may_try) {
        status = order(l, err);
        if (status == QN_OK)
            status = find_exact(l, &state, &f, err);
        qn__lock(l->context);
        if (f)
            f->is_on_trial = true;
        qn__unlock(l->context);
    }
    if (status == QN_OK && go_on(l, name, may_try, state, f))
        *out = f;
    else
        qn_code_release(f);
    qn__cache_sweep(l->context);
    return status;
}

/* ---------------------------------------------------------------- times */

/** Trials that are under way. */
static int count_open(const qn_trials *t)
{
    int n = 0;
    for (int i = 0; i < QN_TRIALS; i++)
        n += t->of[i].name && t->of[i].state >= QN_TRIAL_DUE && t->of[i].state <= QN_TRIAL_TURNS;
    return n;
}

/** Trials that are under way count as in vain: else all shapes that come back as often would be
 * tried before the first one told anything. */
static int64_t due_ns(const qn_known_kernel *known)
{
    const qn_trials *t = &known->trials;
    double compile = (double)(t->compile_ns ? t->compile_ns : USUAL_COMPILE_NS);
    int n = 1 + t->n_tried + count_open(t);
    return (int64_t)(compile * n / (1.0 / (double)PRIOR_PARTS + t->saved));
}

/** Both versions were timed. The lock is held. */
static void decide(qn_context *c, qn_known_kernel *known, qn_trial *t)
{
    bool pays = t->n_wins >= LEAST_WINS && t->least_ns[1] < t->least_ns[0];
    qn_text line = {0};
    t->state = pays ? QN_TRIAL_EXACT : QN_TRIAL_VAIN;
    known->trials.n_tried++;
    known->trials.saved += pays ? 1 - (double)t->least_ns[1] / (double)t->least_ns[0] : 0;
    c->counters.trials++;
    c->counters.trials_kept += pays;
    qn__text_add(&line,
                 "a shape that came back takes %.3f us in its exact version, %.3f us in the "
                 "dynamic one, and was faster in %d of %d turns: %s",
                 (double)t->least_ns[1] * 1e-3, (double)t->least_ns[0] * 1e-3, t->n_wins, TURNS,
                 pays ? "the exact one is kept" : "the exact one is dropped");
    if (line.data && !line.failed)
        qn__history_add(&c->history, known->kernel->name, line.data, -1);
    qn__text_release(&line);
}

/** A launch of the dynamic version took so long, and recording it takes `recording_ns`. Whether
 * that changes what the next one does. The lock is held. */
static bool add_up(qn_known_kernel *known, qn_trial *t, int64_t ns, int64_t recording_ns)
{
    qn_trials *all = &known->trials;
    t->spent_ns += ns;
    t->least_ns[0] = ns < t->least_ns[0] ? ns : t->least_ns[0];
    t->n_timed[0]++;
    if (recording_ns > 0 && (!all->recording_ns || recording_ns < all->recording_ns))
        all->recording_ns = recording_ns;
    if (t->n_timed[0] == LAUNCHES_THAT_TELL && t->least_ns[0] < TIMING_PART * all->recording_ns)
        t->state = QN_TRIAL_DYNAMIC;
    else if (t->spent_ns > all->compile_ns && t->spent_ns > due_ns(known))
        t->state = QN_TRIAL_DUE;
    return t->state != QN_TRIAL_NEW;
}

/** In turns: the dynamic version runs first in each pair. The lock is held. */
static void add_turn(qn_context *c, qn_known_kernel *known, qn_trial *t, int side, int64_t ns)
{
    t->least_ns[side] = ns < t->least_ns[side] ? ns : t->least_ns[side];
    if (++t->n_timed[side] > TURNS)
        return;
    if (side == 0)
        t->first_ns = ns;
    else
        t->n_wins += ns < t->first_ns;
    if (t->n_timed[0] >= TURNS && t->n_timed[1] >= TURNS)
        decide(c, known, t);
}

void qn__trial_record(qn_context *c, const qn_kernel *k, uint64_t name, int64_t ns)
{
    int side = (int)(name & 1);
    int64_t begin = qn__now_ns();
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, k);
    qn_trial *t = known ? find(known, name & ~UINT64_C(1)) : NULL;
    if (t && t->state == QN_TRIAL_NEW && side == 0) {
        bool is_told = t->n_timed[0] >= LAUNCHES_THAT_TELL;
        if (add_up(known, t, ns, is_told ? 0 : qn__now_ns() - begin))
            qn__cache_look_again(&c->cache, k);
    } else if (t && t->state == QN_TRIAL_TURNS) {
        add_turn(c, known, t, side, ns);
    }
    qn__unlock(c);
}

/* ---------------------------------------------------------------- words */

void qn__trial_print(const qn_launch_state *l, qn_text *out)
{
    static const char *const words[] = {
        [QN_TRIAL_DUE] = "its exact version is made at the next launch",
        [QN_TRIAL_ORDERED] = "its exact version is being built",
        [QN_TRIAL_TURNS] = "its exact and its dynamic version run in turns and are timed",
        [QN_TRIAL_EXACT] = "its exact version is faster",
        [QN_TRIAL_VAIN] = "its exact version was not faster",
        [QN_TRIAL_DYNAMIC] =
            "it stays dynamic: its launches are short, or its exact version was not "
            "faster or could not be made",
    };
    qn_context *c = l->context;
    uint64_t name = name_of(l, hash_shape(l));
    qn__lock(c);
    const qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    const qn_trial *t = known ? find(known, name) : NULL;
    if (t && t->state == QN_TRIAL_NEW)
        qn__text_add(out,
                     "shape: has taken %.3f ms in the dynamic version; after %.3f ms its exact "
                     "one is tried\n",
                     (double)t->spent_ns * 1e-6, (double)due_ns(known) * 1e-6);
    else if (t)
        qn__text_add(out, "shape: %s\n", words[t->state]);
    qn__unlock(c);
}
