/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c: qn_launch and qn_specialize. Arguments whose exact description is known take the short
 * way: describe, find, compare byte ranges where a pair is written, run. It allocates nothing and
 * reads no clock unless the host listens.
 */
#include "runtime/cuda/stream.h"
#include "runtime/launch.h"
#include "runtime/watch.h"

#include <string.h>

enum { SMALL_SLOTS = 256 };

/** What the cache knows about a launch. */
typedef struct found {
    qn_code *function; /* with a pin or a reference; NULL: the interpreter */
    qn_pin *pin;
    uint64_t trial; /* what the time of the launch is for; 0: it is not taken */
    bool is_ordered;
    int64_t n_iterations;
    int64_t range[QN_RANGE_WORDS];
    qn_domain domain; /* for the interpreter only, but for is_empty */
} found;

enum { LOOK_MISS = 0, LOOK_HIT, LOOK_OVERLAP };

/* ---------------------------------------------------------------- the short way */

static int executor_of(const qn_context *c, const qn_options *o)
{
    return o && o->executor ? o->executor : c->options.default_executor;
}

/** Whether the byte ranges of all pairs that matter are disjoint. */
static bool are_disjoint(const qn_known_args *known, const qn_arg *args)
{
    for (uint32_t i = 0; i < known->n_pairs; i++) {
        int a = known->pair[i].a, b = known->pair[i].b;
        uintptr_t at_a = (uintptr_t)args[a].view->data, at_b = (uintptr_t)args[b].view->data;
        if (at_a + (uintptr_t)known->span[a].low < at_b + (uintptr_t)known->span[b].high &&
            at_b + (uintptr_t)known->span[b].low < at_a + (uintptr_t)known->span[a].high)
            return false;
    }
    return true;
}

/** Iterations of a run that may hold up who wants to release the context. */
enum { MOST_PINNED = 1 << 16 };

/** Whether the code may run with a pin: it is short, runs on this thread alone, needs nothing but
 * its argument block, and nothing of the host is called. */
static bool may_pin(const qn_context *c, const qn_known_args *known, const qn_code *f, int executor)
{
    const qn_blob_info *info = &f->info;
    bool is_alone = executor == QN_SERIAL || known->n_iterations / 2 < info->chunk;
    return f->entry && is_alone && known->n_iterations <= MOST_PINNED && !known->domain.is_empty &&
           f->facts.n_slots <= SMALL_SLOTS && !info->scratch_bytes && !info->n_shared_reduces &&
           !c->is_watched;
}

/** Whether the time of a launch is taken. Events of the driver cost more than a look at a clock, so
 * on a GPU one of QN_GPU_SAMPLE launches is timed for all of them. The lock is held. */
static bool is_timed(qn_choice *choice)
{
    if (!choice->trial || !choice->function->ptx.n)
        return choice->trial != 0;
    return choice->n_hits++ % QN_GPU_SAMPLE == 0;
}

/** Takes what is known of these arguments. The lock is held. */
static void take(qn_context *c, qn_known_args *known, bool is_ordered, found *out)
{
    qn_choice *choice = &known->choice[is_ordered];
    qn_code *f = choice->function;
    known->kernel->last_use = ++c->cache.clock;
    out->function = f;
    out->is_ordered = is_ordered;
    out->n_iterations = known->n_iterations;
    out->domain.is_empty = known->domain.is_empty;
    if (f && f->ptx.n > 0)
        out->domain = known->domain;
    out->pin = choice->may_pin ? qn__cache_pin(&c->cache, f) : NULL;
    out->trial = 0;
    if (f) {
        if (!out->pin) {
            qn__code_retain(f);
            out->trial = is_timed(choice) ? choice->trial : 0;
        }
        f->last_use = c->cache.clock;
        qn__range_fill(known->kernel->kernel, &f->info, &known->domain, out->range);
    } else {
        out->domain = known->domain;
    }
    c->counters.launches++;
    c->counters.hits++;
    c->counters.ordered += is_ordered;
    c->counters.interpreted += !f && !known->domain.is_empty;
}

/** What is known of these arguments, by their description, or NULL. */
static qn_known_args *find_described(qn_cache *c, qn_known_kernel *kernel, int n,
                                     const qn_arg *args, const qn_options *o)
{
    qn_description d;
    qn_known_args *known = qn__describe(kernel->kernel, n, args, o, kernel->scalars, &d)
                               ? qn__cache_args(c, kernel, &d)
                               : NULL;
    if (known)
        kernel->recent = known;
    return known;
}

/** The entry for arguments. They are compared with those of the last hit first, which is quicker.
 */
static qn_known_args *find(qn_cache *c, const qn_kernel *k, int n, const qn_arg *args,
                           const qn_options *o)
{
    qn_known_kernel *kernel = qn__cache_kernel(c, k);
    qn_known_args *known = kernel ? kernel->recent : NULL;
    if (known && qn__is_described(k, n, args, o, kernel->scalars, known->word, known->n_words))
        return known;
    return kernel ? find_described(c, kernel, n, args, o) : NULL;
}

/** Looks a launch up. `ordered`: 0 or 1 if the overlap was decided, -1 if byte ranges are to tell.
 */
static int look_up(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                   const qn_options *o, int ordered, found *out)
{
    int result = LOOK_MISS;
    qn__lock(c);
    qn_known_args *known = find(&c->cache, k, n, args, o);
    if (known && ordered < 0 && (known->has_members || !are_disjoint(known, args)))
        result = LOOK_OVERLAP;
    else if (known && known->choice[ordered > 0].is_ready)
        result = LOOK_HIT;
    if (result == LOOK_HIT)
        take(c, known, ordered > 0, out);
    qn__unlock(c);
    return result;
}

/* ---------------------------------------------------------------- running */

static qn_status run_code(const qn_task *t, const int64_t *range, qn_error *err)
{
    int64_t small[SMALL_SLOTS];
    const qn_facts *facts = &t->function->facts;
    int64_t *slots = small;
    if (facts->n_slots > SMALL_SLOTS)
        slots = qn__alloc((size_t)facts->n_slots * sizeof *slots);
    if (!slots)
        return qn__fail(err, QN_ERR_MEMORY, "qn_launch: kernel \"%.60s\": no memory for %d numbers",
                        t->kernel->name, facts->n_slots);
    qn__facts_fill(facts, t->kernel, t->args, slots);
    qn_status status = qn__task_run(t, slots, range, err);
    if (slots != small)
        qn__free(slots);
    return status;
}

/** Runs what was found, unless it is pinned, and gives up its reference. */
static qn_status run_found(const qn_task *t, const found *what, bool is_hit, qn_error *err)
{
    qn_status status = QN_OK;
    const qn_watch watch = qn__watch_launch(t, is_hit);
    bool is_timed_here = t->trial && t->executor != QN_CUDA;
    int64_t begin = is_timed_here ? qn__now_ns() : 0;
    if (!what->domain.is_empty)
        status = what->function ? run_code(t, what->range, err) : qn__task_run(t, NULL, NULL, err);
    if (is_timed_here || (t->trial && status)) /* that of a GPU tells its time itself */
        qn__trial_record(t->context, t->kernel, t->trial, status ? -1 : qn__now_ns() - begin,
                         1, 0);
    qn__watch_end(&watch, t);
    qn_code_release(what->function);
    return status;
}

/** Runs what is pinned. Nothing of the context may be touched after that. */
static qn_status run_pinned(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                            const qn_options *o, const found *what, qn_error *err)
{
    const qn_code *f = what->function;
    int64_t slots[SMALL_SLOTS];
    qn_status status = QN_OK;
    qn_fault fault;
    qn__facts_fill(&f->facts, k, args, slots);
    qn__fault_clear(&fault, qn__cancel_of(o));
    uint32_t host = qn__fpu_enter();
    f->entry(slots, what->range, &fault);
    qn__fpu_leave(host);
    if (fault.status) {
        const qn_task t = {.context = c, .kernel = k, .n = n, .args = args, .function = f};
        status = qn__task_fault(&t, &fault, err);
    }
    qn__cache_unpin(what->pin);
    return status;
}

static qn_status run_hit(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                         const qn_options *o, const found *what, qn_error *err)
{
    if (what->pin)
        return run_pinned(c, k, n, args, o, what, err);
    int executor = executor_of(c, o);
    qn_task t = {
        .context = c,
        .kernel = k,
        .n = n,
        .args = args,
        .function = what->function,
        .domain = &what->domain,
        .n_iterations = what->n_iterations,
        .executor = what->is_ordered ? QN_SERIAL : executor,
        .max_threads = o ? o->max_threads : 0,
        .checks = o ? o->checks : QN_CHECKS_REPORT,
        .cancel = qn__cancel_of(o),
        .trial = what->trial,
        .n_timed = QN_GPU_SAMPLE,
    };
    qn_status status = QN_OK;
    if (executor == QN_CUDA)
        status = qn__stream_of(c, "qn_launch", o->stream, &t.stream, err);
    if (status) {
        qn_code_release(what->function);
        return status;
    }
    if (!what->function) /* a function holds the context */
        qn__context_retain(c);
    qn__event(c, QN_EVENT_HIT, k->name, NULL, 0);
    status = run_found(&t, what, true, err);
    if (!what->function)
        qn__context_drop(c);
    return status;
}

/* ---------------------------------------------------------------- the long way */

/** Fills a new entry: domain, spans and pairs. */
static void fill_entry(const qn_launch_state *l, qn_known_args *known)
{
    known->domain = l->domain;
    known->n_iterations = l->n_iterations;
    uint32_t n = 0;
    for (int b = 0; b < l->n; b++) {
        if (l->kernel->param[b].rank < 0)
            continue;
        known->span[b] = qn__view_span(qn__given_view(l, b));
        for (int a = 0; a < b; a++) {
            if (!qn__overlap_matters(l->kernel, l->args, a, b))
                continue;
            known->pair[n++] = (qn_pair){(uint8_t)a, (uint8_t)b};
            known->has_members = known->has_members ||
                                 qn__layout_members(&qn__given_view(l, a)->layout) >= 0 ||
                                 qn__layout_members(&qn__given_view(l, b)->layout) >= 0;
        }
    }
}

static uint32_t count_pairs(const qn_launch_state *l)
{
    uint32_t n = 0;
    for (int b = 0; b < l->n; b++)
        for (int a = 0; a < b; a++)
            n += qn__overlap_matters(l->kernel, l->args, a, b);
    return n;
}

/** Whether descriptions have the values of the scalars that the policy made constants. */
static bool are_described(const qn_known_kernel *known, const qn_launch_state *l)
{
    return !((l->constants[0] & ~known->scalars[0]) | (l->constants[1] & ~known->scalars[1]));
}

/** Remembers the outcome for arguments of this description. Without memory, or if the description
 * is too long, the next launch takes the long way again. */
static void remember(const qn_launch_state *l, const qn_options *o, qn_code *f)
{
    qn_context *c = l->context;
    qn_description d;
    if (l->stream && l->shares_elements)
        return; /* what other arguments of this description must not run: loads here are not of
                   constant memory */
    if (l->may_have_code_later || l->is_in_turns)
        return;
    uint32_t n_pairs = count_pairs(l);
    qn__lock(c);
    qn_known_kernel *kernel =
        atomic_load(&c->is_released) ? NULL : qn__cache_learn(&c->cache, l->kernel, &l->domain);
    if (kernel)
        qn__policy_scalars(&c->cache, kernel, l->args);
    if (kernel && !are_described(kernel, l)) /* another thread's launch had another value */
        kernel = NULL;
    if (kernel && qn__describe(l->kernel, l->n, l->args, o, kernel->scalars, &d)) {
        qn_known_args *known = qn__cache_args(&c->cache, kernel, &d);
        if (!known && (known = qn__cache_add_args(&c->cache, kernel, &d, n_pairs)) != NULL)
            fill_entry(l, known);
        int executor = l->is_ordered ? QN_SERIAL : executor_of(c, o);
        bool is_outdated = l->is_provisional && l->n_changes != c->cache.n_changes;
        if (known && (!f || f->is_cached) && !is_outdated)
            known->choice[l->is_ordered] =
                (qn_choice){true, f && !l->trial && may_pin(c, known, f, executor),
                            l->is_provisional, f, l->trial, 0};
        kernel->last_use = ++c->cache.clock;
        c->counters.evictions +=
            qn__cache_evict(&c->cache, c->options.cache_bytes, c->options.code_bytes, f);
    }
    qn__unlock(c);
    qn__cache_sweep(c);
}

/** Counts a launch of the long way, and notes once why it runs in order. */
static void count_launch(const qn_launch_state *l, const qn_code *f)
{
    qn_context *c = l->context;
    qn__lock(c);
    c->counters.launches++;
    c->counters.misses++;
    c->counters.interpreted += !f && !l->domain.is_empty;
    c->counters.ordered += l->is_ordered;
    bool is_news =
        l->is_ordered && !qn__history_has(&c->history, l->kernel->name, l->overlap.message);
    if (is_news)
        qn__history_add(&c->history, l->kernel->name, l->overlap.message, -1);
    qn__unlock(c);
    if (is_news)
        qn__log_kernel(c, QN_LOG_WARNING, l->kernel->name, "runs %s", l->overlap.message);
}

/** Runs a launch that was checked, by the code that was found for it, or NULL. */
static qn_status run_checked(qn_launch_state *l, found *what, qn_error *err)
{
    count_launch(l, what->function);
    what->domain = l->domain;
    if (what->function)
        qn__range_fill(l->kernel, &what->function->info, &l->domain, what->range);
    const qn_task t = {
        .context = l->context,
        .kernel = l->kernel,
        .n = l->n,
        .args = l->args,
        .function = what->function,
        .domain = &what->domain,
        .n_iterations = l->n_iterations,
        .executor = l->is_ordered ? QN_SERIAL : l->options.executor,
        .max_threads = l->options.max_threads,
        .checks = l->options.checks,
        .debug = qn__debug_of(l),
        .printed = l->printed,
        .cancel = qn__cancel_of(&l->options),
        .stream = l->stream,
        .trial = what->trial,
        .n_timed = 1,
    };
    return run_found(&t, what, false, err);
}

static qn_status launch_held(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                             const qn_arg *given, const qn_options *o, qn_error *err)
{
    qn_launch_state state = {.who = "qn_launch",
                             .context = c,
                             .kernel = k,
                             .n = n,
                             .args = args,
                             .given = given},
                    *l = &state;
    found what = {0};
    qn_status status = qn__launch_check(l, o, err);
    if (status == QN_OK && !l->domain.is_empty)
        status = qn__specialize(l, &what.function, err);
    if (status)
        return status;
    remember(l, o, what.function);
    what.trial = what.function ? l->trial : 0;
    return run_checked(l, &what, err);
}

static qn_status launch_unknown(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                const qn_arg *given, const qn_options *o, qn_error *err)
{
    qn__context_retain(c);
    qn_status status = launch_held(c, k, n, args, given, o, err);
    qn__context_drop(c);
    return status;
}

/** Known arguments whose byte ranges meet: decides the overlap, then looks again. */
static qn_status launch_overlapping(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                    const qn_arg *given, const qn_options *o, qn_error *err)
{
    qn_launch_state l = {.who = "qn_launch",
                         .context = c,
                         .kernel = k,
                         .n = n,
                         .args = args,
                         .given = given};
    bool is_gpu = o && o->executor == QN_CUDA;
    l.options.executor = is_gpu ? QN_CUDA : QN_SERIAL;
    l.options.strict = o ? o->strict : 0;
    qn_status status = qn__overlap_check(&l, err);
    if (status)
        return status;
    found what;
    if (!is_gpu && look_up(c, k, n, args, o, l.is_ordered, &what) == LOOK_HIT)
        return run_hit(c, k, n, args, o, &what, err);
    return launch_unknown(c, k, n, args, given, o, err);
}

/** A launch whose arguments have tables; they are not in the cache, what they expand to is. */
static qn_status launch_expanded(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                 const qn_options *o, qn_error *err)
{
    qn_expanded *e = NULL;
    found what;
    qn_status status = qn__expand(c, "qn_launch", k, n, args, o, &e, err);
    if (status)
        return status;
    switch (look_up(c, e->kernel, e->n, e->arg, o, -1, &what)) {
    case LOOK_HIT:
        status = run_hit(c, e->kernel, e->n, e->arg, o, &what, err);
        break;
    case LOOK_OVERLAP:
        status = launch_overlapping(c, e->kernel, e->n, e->arg, args, o, err);
        break;
    default:
        status = launch_unknown(c, e->kernel, e->n, e->arg, args, o, err);
    }
    qn__expanded_release("qn_launch", args, e);
    return status;
}

static qn_status launch(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                        const qn_options *o, qn_error *err);

/** Arguments that are not known as they are: a claim or a table may make them those of another
 * kernel. */
static qn_status launch_new(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                            const qn_options *o, qn_error *err)
{
    const qn_kernel *late;
    qn_status status = qn__late_atomics(k, n, args, &late, err);
    if (status)
        return status;
    if (late != k)
        return launch(c, late, n, args, o, err); /* it may be known */
    if (qn__has_tables(k, n, args))
        return launch_expanded(c, k, n, args, o, err);
    return launch_unknown(c, k, n, args, NULL, o, err);
}

static qn_status launch(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                        const qn_options *o, qn_error *err)
{
    found what;
    switch (look_up(c, k, n, args, o, -1, &what)) {
    case LOOK_HIT:
        return run_hit(c, k, n, args, o, &what, err);
    case LOOK_OVERLAP:
        return launch_overlapping(c, k, n, args, NULL, o, err);
    default:
        return launch_new(c, k, n, args, o, err);
    }
}

/* ---------------------------------------------------------------- public */

qn_status qn__launch_once(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                          const qn_options *o, const qn_print_buffer *printed, qn_error *err)
{
    qn_launch_state l = {
        .who = "qn_launch", .context = c, .n = n, .args = args, .printed = printed};
    qn_expanded *e = NULL;
    found what = {0};
    qn_status status = qn__state_open(&l, k, o, &e, err);
    if (status)
        return status;
    qn__context_retain(c);
    status = qn__launch_check(&l, o, err);
    if (status == QN_OK)
        status = run_checked(&l, &what, err);
    qn__state_close(&l, e);
    qn__context_drop(c);
    return status;
}

/** A launch of a caller of another version, one that can be cancelled, or one that is debugged or
 * prints. */
static qn_status launch_limited(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                const qn_options *o, qn_error *err)
{
    const char *who = "qn_launch";
    qn_limit x;
    qn_status status = qn__limit_begin(who, c, &o, &x, err);
    if (status)
        return status;
    if (o && o->print && k->has_prints)
        status = qn__launch_printing(c, k, n, args, o, err);
    else if (o && o->debug)
        status = qn__launch_once(c, k, n, args, o, NULL, err);
    else
        status = launch(c, qn__kernel_to_run(k), n, args, o, err);
    return qn__limit_end(who, &x, status, err);
}

qn_status qn_launch(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                    const qn_options *o, qn_error *err)
{
    if (!c || !k)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_launch: %s is NULL", c ? "kernel" : "context");
    if (!qn__are_of_this_version(o) ||
        (o && (o->cancel || (o->timeout_ns | o->debug) || o->cancel_hook || o->print)))
        return launch_limited(c, k, n, args, o, err);
    return launch(c, qn__kernel_to_run(k), n, args, o, err);
}

static qn_status specialize(qn_launch_state *l, const qn_options *o, qn_code **out,
                            qn_error *err)
{
    qn_code *f = NULL;
    qn_status status = qn__launch_check(l, o, err);
    if (status)
        return status;
    qn__context_retain(l->context);
    status = qn__specialize(l, &f, err);
    qn_code_release(l->usual);
    if (status == QN_OK) {
        if (l->stream)
            status = qn__cuda_load(l->stream, l->who, f, err);
        if (l->stream || !qn__has_grid(l->options.isa))
            remember(l, o, f);
        if (!f)
            status = qn__specialize_nothing(l, &f, err);
    }
    if (status == QN_OK)
        *out = f;
    else
        qn_code_release(f);
    qn__context_drop(l->context);
    return status;
}

qn_status qn_specialize(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                        const qn_options *o, qn_code **out, qn_error *err)
{
    const char *who = "qn_specialize";
    qn_launch_state l = {.who = who,
                         .context = c,
                         .n = n,
                         .args = args,
                         .takes_any_target = true,
                         .is_prepared = true};
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    qn_limit x;
    qn_expanded *e = NULL;
    qn_status status = qn__limit_begin(who, c, &o, &x, err);
    if (status)
        return status;
    status = qn__state_open(&l, k, o, &e, err);
    if (status == QN_OK) {
        status = specialize(&l, o, out, err);
        qn__state_close(&l, e);
    }
    return qn__limit_end(who, &x, status, err);
}
