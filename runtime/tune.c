/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c: qn_tune, see tune.h. Candidates are compiled and run in a context of the tuner's own, so
 * that neither the caller's cache nor its folder gets code that is not kept. A first pass tries one
 * change of the planner's choice after the other, later passes change the best one so far; then the
 * fastest few run in turns once more, and what is faster beyond noise is kept.
 *
 * A candidate runs once from the saved contents of the arrays, and its results are compared, before
 * it is timed.
 */
#include "quern/cuda.h"
#include "runtime/tune.h"

#include "runtime/choice.h"

#include <string.h>

enum {
    SEARCH_PERCENT = 70,   /* of the time is for the search */
    INTERPRETER_PARTS = 4, /* a fourth of the time at most is for the interpreter */
    FIRST_TURNS = 5,
    LAST_TURNS = 31,
    LEAST_TURNS = 5, /* of the last ones that a choice needs */
    FINALISTS = 3,
    MOST_PASSES = 3,
    SLOW_FACTOR = 4,
    SLOW_NS = 50000000,
};
static const double usual_seconds = 10;
/* A choice is kept if the median of its quotients is at least the first number, and three of four
 * are above the second. */
static const double least_gain = 1.03, least_quartile = 1.0;
/** What a pass may build on, and what may be a finalist. */
static const double promising = 1.01;
/** What a change must give to be tried in later passes. */
static const double hopeless = 0.8;

typedef struct tuner {
    const char *who;
    qn_context *c, *inner;
    const qn_kernel *k;
    int n;
    const qn_arg *args;
    qn_options o;      /* of launches in the inner context */
    qn_stream *stream; /* of that context; NULL: launches are the host's */
    qn_tune_options t;
    const qn_tune_hook *hook;
    qn_tune_memory memory;
    qn_tune_result result;
    qn_tune_clock clock;
    int64_t begin_ns, end_ns;
    int64_t most_run_ns; /* of a first run; 0: no limit */
    bool is_ended;       /* the host wants no more candidates */
    uint64_t *seen;      /* hashes of code */
    int n_seen;
    qn_tune_tried *tried; /* the first is the planner's choice */
    int n_tried;
} tuner;

/** Options of one candidate. */
typedef struct candidate_options {
    qn_options options;
    char schedule[QN_TUNE_STEPS_BYTES + 24];
} candidate_options;

static void set_options(const tuner *s, const qn_tune_choice *choice, candidate_options *out)
{
    static const qn_tune_choice none = {.plan = {.bytes = sizeof none.plan}};
    out->options = s->o;
    out->options.plan = &choice->plan;
    if (qn__tune_is_same_choice(choice, &none))
        out->options.plan = NULL;
    if (choice->steps[0]) {
        qn_text text = {.data = NULL};
        qn__tune_schedule(choice, &text);
        qn__text_out(&text, out->schedule, sizeof out->schedule);
        qn__text_release(&text);
        out->options.schedule = out->schedule;
    }
}

static const qn_code *code_of(const qn_call *call)
{
    const int64_t *slots;
    return qn__call_task(call, &slots)->function;
}

static bool is_stopped(const tuner *s)
{
    return qn__is_stopped(qn__cancel_of(&s->o));
}

/* ---------------------------------------------------------------- running */

/** Runs once from the saved contents, and calls the hook. */
static qn_status run_once(const tuner *s, const qn_options *o, int number, qn_error *err)
{
    qn_status status = qn__tune_restore(&s->memory, err);
    if (status == QN_OK)
        status = qn_launch(s->inner, s->k, s->n, s->args, o, err);
    if (status == QN_OK)
        status = qn__tune_fetch(&s->memory, err);
    if (status == QN_OK && s->hook && s->hook->after_run)
        s->hook->after_run(s->hook->arg, number);
    return status;
}

/** Whether a kernel stores each element that it writes once, and reads none of them: what a run
 * that was stopped has stored is right for good. */
static bool stores_once(const tuner *s)
{
    const qn_kernel *k = s->memory.kernel;
    uint8_t n_stores[QN_MAX_PARAMS] = {0};
    bool is_once = !s->memory.is_in_place && qn__n_sequential(k) == 0;
    for (uint32_t n = 0; n < k->n_accesses && is_once; n++) {
        const qn_inst *x = &k->inst[k->access[n].inst];
        if (x->op != QN_I_LOAD)
            is_once = x->op == QN_I_STORE && x->parent == 0 && n_stores[x->imm]++ == 0;
    }
    return is_once;
}

/** Results differ from run to run where floats are combined by atomics. */
static bool has_atomics(const qn_kernel *k)
{
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (k->inst[k->access[n].inst].op == QN_I_ATOMIC)
            return true;
    return false;
}

static qn_status fail_differs(const tuner *s, const qn_error *why, qn_error *err)
{
    if (has_atomics(s->memory.kernel))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: kernel \"%.60s\": results depend on the order of atomics: %s", s->who,
                        s->k->name, why->message);
    return qn__fail(err, QN_ERR_INTERNAL,
                    "%s: kernel \"%.60s\": the interpreter has other results: %s", s->who,
                    s->k->name, why->message);
}

/** What candidates are compared with: what the planner's choice gives, once that was compared with
 * the interpreter. */
static qn_status set_expected(tuner *s, qn_error *err)
{
    qn_error why = {0};
    qn_options o = s->o;
    int64_t begin = qn__now_ns();
    qn_status status = run_once(s, &s->o, 0, err);
    if (status != QN_OK)
        return status;
    s->most_run_ns = SLOW_FACTOR * (qn__now_ns() - begin) + SLOW_NS;
    qn__tune_expect(&s->memory);
    s->result.compared = QN_TUNE_WITH_PLANNED;
    if (s->memory.stream)
        return QN_OK;
    o.engine = QN_ENGINE_INTERP;
    o.timeout_ns = (int64_t)(s->t.seconds * 1e9) / INTERPRETER_PARTS;
    status = run_once(s, &o, -1, &why);
    s->result.compared = QN_TUNE_WITH_INTERPRETER;
    if (status == QN_OK)
        return qn__tune_is_expected(&s->memory, &why) ? QN_OK : fail_differs(s, &why, err);
    if (status != QN_ERR_CANCELLED || is_stopped(s))
        return qn__fail(err, status, "%s: %s", s->who, why.message);
    s->result.compared = QN_TUNE_WITH_PLANNED;
    if (stores_once(s) && !qn__tune_is_begun(&s->memory, &why))
        return fail_differs(s, &why, err);
    return QN_OK;
}

/* ---------------------------------------------------------------- candidates */

/** Notes the code of a candidate; whether it is that of one before. Nothing was in its pages
 * before, as the inner context drops no code. */
static bool is_seen(tuner *s, const qn_call *call)
{
    const qn_code *f = code_of(call);
    const int64_t divided[] = {f->info.chunk,     f->info.chunks_per_thread,
                               f->info.granule,   f->info.second_granule,
                               f->info.split_dim, f->info.second_dim};
    uint64_t hash = qn__hash(divided, sizeof divided, 0);
    hash = f->ptx.n ? qn__hash(f->ptx.data, f->ptx.n, hash)
                    : qn__hash(f->blob.code, f->blob.bytes, hash);
    for (int i = 0; i < s->n_seen; i++)
        if (s->seen[i] == hash)
            return true;
    s->seen[s->n_seen++] = hash;
    return false;
}

/** Runs a candidate for the first time: its state. */
static int check(const tuner *s, const qn_options *o, int number, qn_error *why)
{
    qn_options limited = *o;
    if (!s->stream) /* code that stops is other code on a GPU */
        limited.timeout_ns = s->most_run_ns;
    qn_status status = run_once(s, &limited, number, why);
    if (status == QN_ERR_CANCELLED)
        return QN_TUNE_SLOW;
    if (status != QN_OK)
        return QN_TUNE_WRONG;
    return qn__tune_is_expected(&s->memory, why) ? QN_TUNE_MEASURED : QN_TUNE_WRONG;
}

/** Compiles a candidate and runs it: its state; with MEASURED the call is that of `tried`. */
static int make(tuner *s, qn_tune_tried *tried, int number, qn_error *why)
{
    candidate_options o;
    set_options(s, &tried->choice, &o);
    int state = QN_TUNE_REFUSED;
    if (qn_prepare(s->inner, s->k, s->n, s->args, &o.options, &tried->call, why) == QN_OK)
        state = is_seen(s, tried->call) ? QN_TUNE_SAME : check(s, &o.options, number, why);
    if (state == QN_TUNE_MEASURED)
        return state;
    qn_call_release(tried->call);
    tried->call = NULL;
    return state;
}

static void tell(tuner *s, const qn_tune_tried *tried, int state, const qn_error *why)
{
    qn_text choice = {0};
    bool has_why = state == QN_TUNE_REFUSED || state == QN_TUNE_WRONG;
    s->result.n_measured += state == QN_TUNE_MEASURED;
    s->result.n_refused += state == QN_TUNE_REFUSED;
    s->result.n_wrong += state == QN_TUNE_WRONG;
    int number = s->result.n_candidates++;
    if (!s->t.progress)
        return;
    qn__tune_print(&tried->choice, &choice);
    const qn_tune_candidate c = {.bytes = sizeof c,
                                 .number = number,
                                 .state = state,
                                 .choice = choice.data && !choice.failed ? choice.data : "",
                                 .why = has_why ? why->message : NULL,
                                 .ns = tried->ns,
                                 .planned_ns = tried->planned_ns,
                                 .seconds = (double)(qn__now_ns() - s->begin_ns) * 1e-9};
    s->is_ended |= s->t.progress(s->t.progress_arg, &c) != 0;
    qn__text_release(&choice);
}

static qn_status try_choice(tuner *s, const qn_tune_choice *choice, qn_error *err)
{
    qn_error why = {0};
    int n_turns;
    qn_tune_tried *tried = &s->tried[s->n_tried];
    *tried = (qn_tune_tried){.choice = *choice};
    int state = make(s, tried, s->result.n_candidates, &why);
    if (is_stopped(s))
        return qn__fail(err, QN_ERR_CANCELLED, "%s: cancelled", s->who);
    qn_status status = QN_OK;
    if (state == QN_TUNE_MEASURED) {
        s->n_tried++;
        status = qn__tune_turns(&s->clock, &tried, 1, FIRST_TURNS, &n_turns, err);
    }
    if (status == QN_OK)
        tell(s, tried, state, &why);
    return status;
}

/** The planner's choice, which all else is compared with. */
static qn_status begin_search(tuner *s, qn_error *err)
{
    int n_turns;
    qn_tune_tried *tried = &s->tried[0];
    qn_status status = set_expected(s, err);
    s->clock.memory = &s->memory;
    s->clock.planned = tried->call;
    if (status == QN_OK)
        status = qn__tune_set_clock(&s->clock, err);
    if (status != QN_OK)
        return status;
    s->n_tried = 1;
    is_seen(s, tried->call);
    status = qn__tune_turns(&s->clock, &tried, 1, FIRST_TURNS, &n_turns, err);
    tried->gain = tried->least = 1;
    if (status == QN_OK)
        tell(s, tried, QN_TUNE_MEASURED, NULL);
    return status;
}

static qn_tune_tried *best_of(const tuner *s)
{
    qn_tune_tried *best = &s->tried[0];
    for (int i = 1; i < s->n_tried; i++)
        if (s->tried[i].least > best->least)
            best = &s->tried[i];
    return best;
}

/** Whether another candidate may be tried. */
static bool goes_on(const tuner *s)
{
    return !s->is_ended && s->result.n_candidates < s->t.most_candidates &&
           qn__now_ns() < s->clock.end_ns;
}

/** Passes over all changes, each of the best choice so far. What made the planner's choice far
 * slower is not tried again. */
static qn_status search(tuner *s, const qn_tune_choice *changes, int n_changes, qn_error *err)
{
    qn_tune_choice base = s->tried[0].choice;
    bool is_out[QN_TUNE_MOST_CHANGES] = {false};
    qn_status status = QN_OK;
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        for (int i = 0; i < n_changes && goes_on(s) && status == QN_OK; i++) {
            const qn_tune_choice choice = qn__tune_change(&base, &changes[i]);
            if (is_out[i] || qn__tune_is_same_choice(&choice, &base))
                continue;
            int n_tried = s->n_tried;
            status = try_choice(s, &choice, err);
            is_out[i] = pass == 0 && s->n_tried > n_tried && s->tried[n_tried].gain < hopeless;
        }
        const qn_tune_tried *best = best_of(s);
        if (status != QN_OK || best->least < promising ||
            qn__tune_is_same_choice(&best->choice, &base))
            break;
        base = best->choice;
    }
    return status;
}

/* ---------------------------------------------------------------- the outcome */

/** The fastest candidates of the search, fastest first. */
static int choose_finalists(const tuner *s, qn_tune_tried *out[FINALISTS])
{
    int n = 0;
    for (int i = 1; i < s->n_tried; i++) {
        qn_tune_tried *t = &s->tried[i];
        int at = n;
        if (t->gain < promising)
            continue;
        while (at > 0 && out[at - 1]->least < t->least)
            at--;
        if (at == FINALISTS)
            continue;
        n += n < FINALISTS;
        memmove(out + at + 1, out + at, (size_t)(n - 1 - at) * sizeof(qn_tune_tried *));
        out[at] = t;
    }
    return n;
}

/** Runs the finalists in turns: the one to keep, or the planner's choice. */
static qn_status choose(tuner *s, qn_tune_tried **out, qn_error *err)
{
    qn_tune_tried *finalist[FINALISTS];
    int n_turns = 0, n = choose_finalists(s, finalist);
    s->clock.end_ns = s->end_ns;
    *out = &s->tried[0];
    qn_status status =
        n ? qn__tune_turns(&s->clock, finalist, n, LAST_TURNS, &n_turns, err) : QN_OK;
    for (int i = 0; i < n && n_turns >= LEAST_TURNS && status == QN_OK; i++) {
        const qn_tune_tried *t = finalist[i];
        if (t->gain >= least_gain && t->least > least_quartile && t->gain > (*out)->gain)
            *out = finalist[i];
    }
    return status;
}

/** Writes the outcome into the cache on disk. */
static void keep(tuner *s, const qn_tune_tried *best, const char *words)
{
    const qn_code *planned = code_of(s->tried[0].call);
    qn_error why = {0};
    const qn_tuned t = {.kernel = planned->kernel,
                        .key = &planned->key,
                        .chosen = &code_of(best->call)->key,
                        .text = words[0] ? words : "the planner's choice stays"};
    if (!s->t.keeps_nothing)
        s->result.is_kept = qn__choice_keep(s->c, &t, &why);
}

static void note(const tuner *s, const char *words)
{
    qn_text line = {0};
    qn__text_add(&line, "tuned, %d candidates: %s%s", s->result.n_candidates,
                 words[0] ? words : "the planner's choice stays",
                 s->result.is_kept ? "" : "; not kept");
    qn__lock(s->c);
    if (line.data && !line.failed)
        qn__history_add(&s->c->history, s->k->name, line.data, -1);
    qn__unlock(s->c);
    qn__text_release(&line);
}

static qn_status end_search(tuner *s, qn_error *err)
{
    qn_tune_tried *best;
    qn_text words = {0};
    qn_status status = choose(s, &best, err);
    if (status != QN_OK)
        return status;
    qn__tune_print(&best->choice, &words);
    if (words.failed) {
        qn__text_release(&words);
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory", s->who);
    }
    const char *text = words.data ? words.data : "";
    s->result.gain = best->gain;
    s->result.planned_ns = best->planned_ns;
    s->result.best_ns = best == &s->tried[0] ? best->planned_ns : best->ns;
    s->result.choice_bytes = (int64_t)words.n;
    qn__text_out(&words, s->t.choice, s->t.choice_bytes);
    keep(s, best, text);
    note(s, text);
    qn__text_release(&words);
    return QN_OK;
}

/* ---------------------------------------------------------------- all of it */

static qn_status check_options(const tuner *s, const qn_options *o, qn_error *err)
{
    const qn_tune_options *t = &s->t;
    if (o->plan || o->schedule || o->debug || o->print)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: option %s is given", s->who,
                        o->plan       ? "plan"
                        : o->schedule ? "schedule"
                        : o->debug    ? "debug"
                                      : "print");
    if (o->engine == QN_ENGINE_INTERP || o->loader == QN_LOADER_ORC)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: option %s: code of the arena is tuned", s->who,
                        o->loader ? "loader" : "engine");
    if (!(t->seconds >= 0) || t->seconds > 1e6 || t->most_candidates < 0 ||
        t->most_candidates > QN_TUNE_MOST_CANDIDATES || t->keeps_nothing < 0 ||
        t->keeps_nothing > 1)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: seconds %g, most_candidates %d, keeps_nothing %d: expected [0,1e6], "
                        "[0,%d] and 0 or 1",
                        s->who, t->seconds, t->most_candidates, t->keeps_nothing,
                        (int)QN_TUNE_MOST_CANDIDATES);
    if (!t->choice && t->choice_bytes)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: choice is NULL, but has %zu bytes", s->who,
                        t->choice_bytes);
    return QN_OK;
}

/** Whether launches are those of a GPU. */
static bool is_gpu(const tuner *s)
{
    int executor = s->o.executor ? s->o.executor : s->c->options.default_executor;
    return s->o.stream || executor == QN_CUDA;
}

/** The stream of launches on a GPU: the caller's, or that of the context. */
static qn_status open_stream(tuner *s, qn_error *err)
{
    if (!is_gpu(s))
        return QN_OK;
    qn_status status =
        s->o.stream ? qn_stream_wrap(s->inner, qn_stream_handle(s->o.stream), &s->stream, err)
                    : qn_stream_default(s->inner, &s->stream, err);
    s->o.executor = QN_CUDA;
    s->o.engine = QN_ENGINE_AUTO;
    s->o.stream = s->stream;
    s->memory.stream = s->stream;
    s->memory.context = s->inner;
    return status;
}

/** Options of launches in the inner context. */
static void set_inner_options(tuner *s, const qn_options *o)
{
    s->o = *o;
    s->o.engine = QN_ENGINE_NATIVE;
    s->o.loader = QN_LOADER_ARENA;
    s->o.compile = QN_COMPILE_WAIT;
    s->o.specialize = o->specialize ? o->specialize : QN_SPECIALIZE_EXACT;
    s->t.seconds = s->t.seconds > 0 ? s->t.seconds : usual_seconds;
    s->t.most_candidates = s->t.most_candidates ? s->t.most_candidates : QN_TUNE_USUAL_CANDIDATES;
    int64_t ns = (int64_t)(s->t.seconds * 1e9);
    s->begin_ns = qn__now_ns();
    s->end_ns = s->begin_ns + ns;
    s->clock.end_ns = s->begin_ns + ns / 100 * SEARCH_PERCENT;
}

/** Prepares the planner's choice and saves what it writes. */
static qn_status prepare(tuner *s, qn_error *err)
{
    const int64_t *slots;
    size_t n = (size_t)s->t.most_candidates + 2;
    s->seen = qn__zalloc(n, sizeof *s->seen);
    s->tried = qn__zalloc(n, sizeof *s->tried);
    if (!s->seen || !s->tried)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory", s->who);
    s->tried[0].choice.plan.bytes = sizeof s->tried[0].choice.plan;
    qn_status status = qn_prepare(s->inner, s->k, s->n, s->args, &s->o, &s->tried[0].call, err);
    if (status != QN_OK)
        return status;
    const qn_task *task = qn__call_task(s->tried[0].call, &slots);
    if (!task->function)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: kernel \"%.60s\": there are no iterations",
                        s->who, s->k->name);
    for (int i = 0; i < task->n; i++)
        if (task->args[i].view && qn__view_span(task->args[i].view).high == INT64_MAX)
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "%s: kernel \"%.60s\": argument %d (%.60s) has members", s->who,
                            s->k->name, i, task->kernel->param[i].name);
    return qn__tune_save(&s->memory, s->who, task->kernel, task->n, task->args, err);
}

static qn_status tune(tuner *s, qn_error *err)
{
    qn_tune_choice *changes = qn__alloc(QN_TUNE_MOST_CHANGES * sizeof *changes);
    qn_status status =
        changes ? prepare(s, err) : qn__fail(err, QN_ERR_MEMORY, "%s: no memory", s->who);
    if (status == QN_OK)
        status = begin_search(s, err);
    if (status == QN_OK) {
        bool has_threads = s->o.executor == QN_THREADS ||
                           (!s->o.executor && s->c->options.default_executor == QN_THREADS);
        int n = qn__tune_changes(s->memory.kernel,
                                 s->stream     ? QN_TUNE_OF_GPU
                                 : has_threads ? QN_TUNE_OF_THREADS
                                               : QN_TUNE_OF_ALL,
                                 changes);
        status = search(s, changes, n, err);
    }
    if (status == QN_OK)
        status = end_search(s, err);
    qn_error lost = {0};
    qn_status restored = qn__tune_restore(&s->memory, &lost);
    if (restored == QN_OK)
        restored = qn__tune_fetch(&s->memory, &lost);
    qn__free(changes);
    return status == QN_OK && restored != QN_OK ? qn__fail(err, restored, "%s", lost.message)
                                                : status;
}

static void release(tuner *s)
{
    qn__tune_release(&s->memory);
    for (int i = 0; s->tried && i <= s->n_tried; i++)
        qn_call_release(s->tried[i].call);
    qn__free(s->tried);
    qn__free(s->seen);
    qn_stream_release(s->stream);
    qn_context_release(s->inner);
}

qn_status qn__tune(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                   const qn_options *o, const qn_tune_options *t, const qn_tune_hook *hook,
                   qn_tune_result *out, qn_error *err)
{
    static const qn_options none = {.bytes = sizeof none};
    tuner s = {.who = "qn_tune", .c = c, .k = k, .n = n, .args = args, .t = *t, .hook = hook};
    qn_status status = check_options(&s, o ? o : &none, err);
    if (status == QN_OK && k->has_prints)
        status = qn__fail(err, QN_ERR_UNSUPPORTED, "%s: kernel \"%.60s\" prints", s.who, k->name);
    if (status == QN_OK)
        status = qn__context_inside(c, &s.inner, err);
    if (status != QN_OK)
        return status;
    uint32_t host = qn__fpu_enter();
    set_inner_options(&s, o ? o : &none);
    status = open_stream(&s, err);
    if (status == QN_OK)
        status = tune(&s, err);
    s.result.seconds = (double)(qn__now_ns() - s.begin_ns) * 1e-9;
    release(&s);
    qn__fpu_leave(host);
    *out = s.result;
    return status;
}

qn_status qn_tune(qn_context *c, const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                  const qn_tune_options *t, qn_tune_result *out, size_t out_bytes, qn_error *err)
{
    const char *who = "qn_tune";
    qn_tune_options options = {.bytes = sizeof options};
    qn_tune_result result = {0};
    qn_limit x;
    if (!c || !k || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !c   ? "context"
                        : !k ? "kernel"
                             : "out");
    qn_status status =
        t ? qn__struct_take(who, "tune options", t, &options, sizeof options, err) : QN_OK;
    if (status == QN_OK)
        status = qn__limit_begin(who, c, &o, &x, err);
    if (status != QN_OK)
        return status;
    qn__context_retain(c);
    status = qn__tune(c, k, n, args, o, &options, NULL, &result, err);
    qn__context_drop(c);
    if (status == QN_OK)
        qn__struct_give(&result, sizeof result, out, out_bytes);
    return qn__limit_end(who, &x, status, err);
}

const char *qn_tune_state_name(int state)
{
    static const char *const name[] = {
#define QN_X(name, number, text) [number] = text,
        QN_TUNE_STATE_LIST(QN_X)
#undef QN_X
    };
    return state >= 0 && state < QN_N_TUNE_STATES ? name[state] : "?";
}
