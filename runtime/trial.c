/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.c: the life of a qn_trial, see trial.h. A launch has two places in it: it chooses its
 * version on the long way, and its time is recorded when it has run. While a trial is new or its
 * version is ordered, the choice in the cache is provisional, so that launches hit; in turns every
 * launch takes the long way. On a GPU times are known later than launches are given, so turns go by
 * what was given.
 */
#include "runtime/trial.h"
#include "runtime/tier.h"

#include <string.h>

/*
 * A special version is due when what it would have saved is what it costs, a compile: the rule of
 * ski rental, by which a trial and what it came too late for cost at most twice what they must.
 * What it saves of the time is taken to be the mean of what the kernel's trials of its kind so far
 * saved, 0 of those in vain. Before the first one anything from nothing to half of the time is as
 * likely for a shape, which counts as one trial that saved a quarter. Most scalars are factors,
 * which a register holds as well as an instruction, and some are divisors, exponents or choices,
 * which save more than half: that counts as an eighth.
 */
static const int prior_parts[QN_TRIAL_KINDS] = {4, 8};
/* Of a compile that was not met, as when all code came from disk: a 5-point stencil (docs/
 * benchmarks.md, compile/stencil5). */
enum { USUAL_COMPILE_NS = 3200000 };
/* Both versions run in turns, and so many pairs of times are compared. If both were alike, each
 * would be the faster one of a pair as often: 7 of 8 pairs then have the probability 9 / 256, which
 * is below 1 / 20. Fewer pairs would not allow for one that something disturbs. */
enum { TURNS = QN_TRIAL_PAIRS, LEAST_WINS = 7 };

/* Launches for which a clock is read take a tenth longer at most, which is the regret that the
 * whole policy may have. So many launches tell how long they and the recording take. */
enum { TIMING_PART = 10, LAUNCHES_THAT_TELL = 16 };

/** What a launch may be tried for. */
typedef struct contest {
    int kind;
    bool may_try;
    uint64_t shape; /* of a shape, else 0 */
    uint64_t name;
    qn_policy special;
    uint32_t constants[2]; /* of scalars: which */
} contest;

/* ---------------------------------------------------------------- names */

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

/** The hash of a shape or of a version with what else makes other versions or other times. */
static uint64_t name_of(const qn_launch_state *l, uint64_t what)
{
    const qn_options *o = &l->options;
    uint64_t h = mix(what, (uint64_t)o->executor << 32 | (uint32_t)o->checks);
    h = mix(h, (uint64_t)o->isa << 32 | (uint32_t)o->max_threads);
    h = mix(h, (uint64_t)o->atomics << 32 | (uint32_t)o->loader);
    h = mix(h, o->plan ? qn__hash(o->plan, sizeof *o->plan, 0) : 0);
    h = mix(h, qn__hash(o->pins, (size_t)o->n_pins * sizeof *o->pins, 0)) & ~UINT64_C(1);
    return h ? h : 2;
}

/** Of a version that is there: its facts are in its hash. */
static uint64_t name_of_version(const qn_launch_state *l, const qn_code *f,
                                const uint32_t constants[2])
{
    return name_of(l, mix(f->hash, (uint64_t)constants[1] << 32 | constants[0]));
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

/** A trial in the place of the one that was not met longest; NULL without memory. */
static qn_trial *add(qn_cache *c, qn_known_kernel *known, const contest *x)
{
    qn_trial *of = qn__cache_trials(c, known), *oldest = of;
    for (int i = 1; of && i < QN_TRIALS; i++)
        if (of[i].last_use < oldest->last_use)
            oldest = &of[i];
    if (oldest)
        *oldest = (qn_trial){.name = x->name,
                             .kind = x->kind,
                             .state = QN_TRIAL_NEW,
                             .constants = {x->constants[0], x->constants[1]},
                             .least_ns = {INT64_MAX, INT64_MAX}};
    return oldest;
}

/* ---------------------------------------------------------------- choosing */

/** The special version of a launch as it stands in the cache: -1 in *state if it does not; with a
 * reference. */
static qn_status find_special(qn_launch_state *l, const contest *x, int *state, qn_code **out,
                              qn_error *err)
{
    qn_context *c = l->context;
    qn_facts facts = {0};
    qn_text key = {0};
    qn_status status = qn__version_key(l, &x->special, &facts, &key, err);
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

/** Has the special version built in the background. */
static qn_status order(qn_launch_state *l, const contest *x, qn_error *err)
{
    bool may_have_code_later = l->may_have_code_later;
    qn_code *f = NULL;
    qn_status status = qn__tier_look(l, &x->special, true, &f, err);
    qn_code_release(f);
    l->may_have_code_later = may_have_code_later; /* the usual one serves until then */
    return status;
}

/** The next launch times the usual version. */
static void time_usual(qn_launch_state *l, const qn_trial *t)
{
    l->trial = t->name;
    l->is_provisional = true;
}

/** Both versions are there: whether the special one, which was given less often, runs. Times of
 * launches with other domains are not compared: such a launch is not timed. */
static bool take_turn(qn_launch_state *l, qn_trial *t)
{
    bool is_special = t->n_given[1] < t->n_given[0];
    if (t->n_given[1] >= TURNS) { /* their times are not known yet */
        l->is_provisional = true;
        return false;
    }
    l->is_in_turns = true;
    if (is_special && t->n_iterations != l->n_iterations)
        return false;
    t->n_iterations = l->n_iterations;
    t->n_given[is_special]++;
    l->trial = t->name | is_special;
    return is_special;
}

static void begin_turns(qn_trial *t)
{
    t->state = QN_TRIAL_TURNS;
    t->least_ns[0] = t->least_ns[1] = INT64_MAX;
    t->n_timed[0] = t->n_timed[1] = t->n_given[0] = t->n_given[1] = 0;
}

static void begin_anew(qn_trial *t)
{
    t->state = QN_TRIAL_NEW;
    t->spent_ns = t->recording_ns = 0;
    t->n_timed[0] = 0;
}

/** Goes on with a trial whose special version is in this state, -1: it is not there. Whether that
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
            t->state = QN_TRIAL_USUAL; /* it could not be built */
        break;
    case QN_TRIAL_TURNS:
    case QN_TRIAL_SPECIAL:
        if (is_ready)
            return t->state == QN_TRIAL_SPECIAL || take_turn(l, t);
        begin_anew(t);
        break;
    case QN_TRIAL_VAIN:
        t->state = QN_TRIAL_USUAL;
        if (is_ready && f->is_cached && f->is_on_trial)
            qn__cache_remove(&l->context->cache, f);
        break;
    default:
        break;
    }
    if (t->state == QN_TRIAL_NEW)
        time_usual(l, t);
    l->is_provisional |= t->state == QN_TRIAL_ORDERED;
    return false;
}

/** Where a trial stands; SPECIAL if a shape may have its exact version without being on trial. Adds
 * a trial that is new, if that may be. */
static int look_up(qn_launch_state *l, const contest *x)
{
    qn_context *c = l->context;
    int state = QN_TRIAL_USUAL;
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    qn_trial *t = known ? find(known, x->name) : NULL;
    bool may_exist = known && x->kind == QN_TRIAL_OF_SHAPE && may_have_exact(known, x->shape);
    if (known && !t && x->may_try && !may_exist)
        t = add(&c->cache, known, x);
    if (t)
        t->last_use = ++c->cache.clock;
    if (t || may_exist)
        state = t ? t->state : QN_TRIAL_SPECIAL;
    l->n_changes = c->cache.n_changes;
    if (t && state == QN_TRIAL_NEW && x->may_try)
        time_usual(l, t);
    if (t && state == QN_TRIAL_DUE) {
        l->hot_ns = t->spent_ns;
        l->hot_kind = x->kind;
    }
    qn__unlock(c);
    return state;
}

/** Whether the special version is to run, which stands so in the cache. */
static bool go_on(qn_launch_state *l, const contest *x, int state, qn_code *f)
{
    qn_context *c = l->context;
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    qn_trial *t = known ? find(known, x->name) : NULL;
    bool takes = state == QN_READY;
    if (known && !t && x->may_try && !takes && (t = add(&c->cache, known, x)) != NULL)
        time_usual(l, t);
    else if (t && x->may_try)
        takes = advance(l, t, state, f);
    else if (t)
        takes = takes && t->state == QN_TRIAL_SPECIAL;
    qn__unlock(c);
    return takes;
}

/** *out becomes the special version, with a reference, or stays NULL. */
static qn_status choose(qn_launch_state *l, const contest *x, qn_code **out, qn_error *err)
{
    int where = look_up(l, x), state;
    qn_code *f = NULL;
    if (where == QN_TRIAL_NEW || where == QN_TRIAL_USUAL)
        return QN_OK;
    qn_status status = find_special(l, x, &state, &f, err);
    if (status == QN_OK && where == QN_TRIAL_DUE && state < 0 && x->may_try) {
        status = order(l, x, err);
        if (status == QN_OK)
            status = find_special(l, x, &state, &f, err);
        qn__lock(l->context);
        if (f)
            f->is_on_trial = true;
        qn__unlock(l->context);
    }
    l->hot_ns = 0;
    if (status == QN_OK && go_on(l, x, state, f))
        *out = f;
    else
        qn_code_release(f);
    qn__cache_sweep(l->context);
    return status;
}

/** Whether anything may be tried: launches in iteration order are slow for another reason, and who
 * only asks for code runs nothing. */
static bool may_try(const qn_launch_state *l)
{
    bool is_run = !qn__has_grid(l->options.isa) || l->stream;
    return is_run && !l->is_ordered && !l->takes_any_target &&
           !(l->given && l->is_prepared) &&
           l->options.compile != QN_COMPILE_NEVER && !atomic_load(&l->context->is_released);
}

qn_status qn__trial_choose(qn_launch_state *l, qn_code **out, qn_error *err)
{
    uint64_t shape = hash_shape(l);
    const contest x = {.kind = QN_TRIAL_OF_SHAPE,
                       .may_try = may_try(l),
                       .shape = shape,
                       .name = name_of(l, shape),
                       .special = {.constant_scalars = l->options.constant_scalars != 0}};
    return choose(l, &x, out, err);
}

/** Scalars that may become constants; false: there are none. */
static bool find_constants(const qn_launch_state *l, uint32_t constants[2])
{
    qn_context *c = l->context;
    if (l->options.specialize != QN_SPECIALIZE_AUTO || l->options.constant_scalars)
        return false;
    qn__lock(c);
    const qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    bool has = known && qn__policy_constants(known, &l->options, constants);
    qn__unlock(c);
    return has;
}

qn_status qn__trial_scalars(qn_launch_state *l, const qn_policy *usual, qn_code **f, qn_error *err)
{
    contest x = {.kind = QN_TRIAL_OF_SCALARS, .may_try = may_try(l), .special = *usual};
    bool is_settled = *f && !l->trial && !l->is_in_turns && !l->is_provisional;
    qn_code *special = NULL;
    if (!is_settled || !find_constants(l, x.constants))
        return QN_OK;
    x.name = name_of_version(l, *f, x.constants);
    x.special.constants = x.constants;
    memcpy(l->constants, x.constants, sizeof l->constants); /* for the reason of the version */
    qn_status status = choose(l, &x, &special, err);
    if (!special) {
        memset(l->constants, 0, sizeof l->constants);
        return status;
    }
    if (l->is_prepared)
        l->usual = *f;
    else
        qn_code_release(*f);
    *f = special;
    return status;
}

bool qn__trial_has_constants(const qn_launch_state *l, const qn_code *f, uint32_t constants[2])
{
    qn_context *c = l->context;
    if (!find_constants(l, constants))
        return false;
    uint64_t name = name_of_version(l, f, constants);
    qn__lock(c);
    const qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    const qn_trial *t = known ? find(known, name) : NULL;
    bool has = t && t->state == QN_TRIAL_SPECIAL;
    qn__unlock(c);
    return has;
}

/* ---------------------------------------------------------------- times */

/** Trials of a kind that are under way. */
static int count_open(const qn_trials *all, int kind)
{
    int n = 0;
    for (int i = 0; i < QN_TRIALS; i++) {
        const qn_trial *t = &all->of[i];
        n += t->name && t->kind == kind && t->state >= QN_TRIAL_DUE && t->state <= QN_TRIAL_TURNS;
    }
    return n;
}

/** Trials that are under way count as in vain: else all shapes that come back as often would be
 * tried before the first one told anything. */
static int64_t due_ns(const qn_known_kernel *known, int kind)
{
    const qn_trials *t = &known->trials;
    double compile = (double)(t->compile_ns ? t->compile_ns : USUAL_COMPILE_NS);
    int n = 1 + t->n_tried[kind] + count_open(t, kind);
    return (int64_t)(compile * n / (1.0 / (double)prior_parts[kind] + t->saved[kind]));
}

static int count_wins(const qn_trial *t)
{
    int n = 0;
    for (int i = 0; i < TURNS; i++)
        n += t->ns[1][i] < t->ns[0][i];
    return n;
}

/** Tells what both versions took, and which one stays. */
static void print_decision(const qn_known_kernel *known, const qn_trial *t, int n_wins, bool pays,
                           qn_text *out)
{
    double special_us = (double)t->least_ns[1] * 1e-3, usual_us = (double)t->least_ns[0] * 1e-3;
    if (t->kind == QN_TRIAL_OF_SHAPE) {
        qn__text_add(out,
                     "a shape that came back takes %.3f us in its exact version, %.3f us in the "
                     "dynamic one, and was faster in %d of %d turns: %s",
                     special_us, usual_us, n_wins, TURNS,
                     pays ? "the exact one is kept" : "the exact one is dropped");
        return;
    }
    qn__text_add(out, "a launch takes %.3f us with constants for scalars that never changed (",
                 special_us);
    qn__policy_print_scalars(known->kernel, t->constants, out);
    qn__text_add(out, "), %.3f us without, and was faster in %d of %d turns: %s", usual_us, n_wins,
                 TURNS, pays ? "they stay constants" : "they stay arguments");
}

/** Both versions were timed. The lock is held. */
static void decide(qn_context *c, qn_known_kernel *known, qn_trial *t)
{
    int n_wins = count_wins(t);
    bool pays = n_wins >= LEAST_WINS && t->least_ns[1] < t->least_ns[0];
    qn_text line = {0};
    t->state = pays ? QN_TRIAL_SPECIAL : QN_TRIAL_VAIN;
    known->trials.n_tried[t->kind]++;
    known->trials.saved[t->kind] +=
        pays ? 1 - (double)t->least_ns[1] / (double)t->least_ns[0] : 0;
    c->counters.trials++;
    c->counters.trials_kept += pays;
    print_decision(known, t, n_wins, pays, &line);
    if (line.data && !line.failed)
        qn__history_add(&c->history, known->kernel->name, line.data, -1);
    qn__text_release(&line);
}

/** Whether scalars that did not change are known not to have. */
static bool is_sure(const qn_known_kernel *known, const qn_trial *t)
{
    return t->kind != QN_TRIAL_OF_SCALARS || known->are_compared;
}

/** n launches of the usual version took so long each, and recording that takes `recording_ns`.
 * Whether that changes what the next one does. The lock is held. */
static bool add_up(qn_known_kernel *known, qn_trial *t, int64_t ns, int n, int64_t recording_ns)
{
    qn_trials *all = &known->trials;
    t->spent_ns += ns * n;
    t->least_ns[0] = ns < t->least_ns[0] ? ns : t->least_ns[0];
    t->n_timed[0]++;
    if (recording_ns > 0 && (!t->recording_ns || recording_ns < t->recording_ns))
        t->recording_ns = recording_ns;
    if (t->n_timed[0] == LAUNCHES_THAT_TELL && t->least_ns[0] < TIMING_PART * t->recording_ns)
        t->state = QN_TRIAL_USUAL;
    else if (t->spent_ns > all->compile_ns && t->spent_ns > due_ns(known, t->kind) &&
             is_sure(known, t))
        t->state = QN_TRIAL_DUE;
    return t->state != QN_TRIAL_NEW;
}

/** In turns. Whether they have ended. The lock is held. */
static bool add_turn(qn_context *c, qn_known_kernel *known, qn_trial *t, int side, int64_t ns)
{
    if (ns < 0) /* another launch takes that turn */
        t->n_given[side] -= t->n_given[side] > 0;
    if (ns < 0 || t->n_timed[side] >= TURNS)
        return false;
    t->least_ns[side] = ns < t->least_ns[side] ? ns : t->least_ns[side];
    t->ns[side][t->n_timed[side]++] = (float)ns;
    if (t->n_timed[0] < TURNS || t->n_timed[1] < TURNS)
        return false;
    decide(c, known, t);
    return true;
}

void qn__trial_record(qn_context *c, const qn_kernel *k, uint64_t name, int64_t ns, int n,
                      int64_t before_ns)
{
    int side = (int)(name & 1);
    bool is_news = false;
    int64_t begin = qn__now_ns();
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, k);
    qn_trial *t = known ? find(known, name & ~UINT64_C(1)) : NULL;
    if (t && t->state == QN_TRIAL_NEW && side == 0 && ns >= 0) {
        bool is_told = t->n_timed[0] >= LAUNCHES_THAT_TELL;
        is_news = add_up(known, t, ns, n, is_told ? 0 : before_ns + qn__now_ns() - begin);
        if (!is_news && t->n_timed[0] >= LAUNCHES_THAT_TELL && !is_sure(known, t))
            qn__policy_compare_scalars(&c->cache, known); /* these launches are long enough */
    } else if (t && t->state == QN_TRIAL_TURNS) {
        is_news = add_turn(c, known, t, side, ns);
    }
    if (is_news)
        qn__cache_look_again(&c->cache, k);
    qn__unlock(c);
}

/* ---------------------------------------------------------------- words */

static void print_trial(const qn_known_kernel *known, const qn_trial *t, const char *usual,
                        const char *special, qn_text *out)
{
    switch (t->state) {
    case QN_TRIAL_NEW:
        qn__text_add(out, "has taken %.3f ms in the %s version; after %.3f ms %s one is tried\n",
                     (double)t->spent_ns * 1e-6, usual, (double)due_ns(known, t->kind) * 1e-6,
                     special);
        break;
    case QN_TRIAL_DUE:
        qn__text_add(out, "%s version is made at the next launch\n", special);
        break;
    case QN_TRIAL_ORDERED:
        qn__text_add(out, "%s version is being built\n", special);
        break;
    case QN_TRIAL_TURNS:
        qn__text_add(out, "%s and the %s version run in turns and are timed\n", special, usual);
        break;
    case QN_TRIAL_SPECIAL:
        qn__text_add(out, "%s version is faster\n", special);
        break;
    case QN_TRIAL_VAIN:
        qn__text_add(out, "%s version was not faster\n", special);
        break;
    default:
        qn__text_add(out,
                     "stays in the %s version: launches are short, or %s version was not faster or "
                     "could not be made\n",
                     usual, special);
    }
}

void qn__trial_print(const qn_launch_state *l, const qn_code *f, qn_text *out)
{
    qn_context *c = l->context;
    uint32_t constants[2];
    bool has_constants = f && find_constants(l, constants);
    uint64_t name = name_of(l, hash_shape(l)),
             of_scalars = has_constants ? name_of_version(l, f, constants) : 0;
    qn__lock(c);
    const qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    const qn_trial *t = known ? find(known, name) : NULL,
                   *scalars = known && has_constants ? find(known, of_scalars) : NULL;
    if (t) {
        qn__text_add(out, "shape: ");
        print_trial(known, t, "dynamic", "its exact", out);
    }
    if (scalars) {
        qn__text_add(out, "scalars that never changed: ");
        qn__policy_print_scalars(l->kernel, constants, out);
        qn__text_add(out, ": ");
        print_trial(known, scalars, "usual", "the constant", out);
    }
    qn__unlock(c);
}
