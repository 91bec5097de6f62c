/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c: launches with arguments bound once. A call holds copies of the views, the kernel, the
 * code, and the argument block, so running it on one thread is: look at the floating-point control
 * bits, clear the fault record, enter. While a better version is on trial (trial.h), a call knows
 * what a launch knows, and chooses its version again.
 */
#include "runtime/cuda/table.h"
#include "runtime/watch.h"

#include <string.h>

/** What a call needs to choose its version again. */
typedef struct again {
    qn_launch_state state; /* as at the last choice; what it points to is the call's or below */
    uint64_t n_changes;    /* of the cache, before the last choice */
    bool is_fresh;         /* no run was made of that choice */
    uint32_t n_runs;
    qn_fact_pin pins[];
} again;

/** Versions that work of a stream may still run, besides the last one. */
enum { MOST_FORMER = 6 };

struct qn_call {
    _Atomic int64_t references; /* the caller's, and those of runs under way in streams */
    bool is_direct; /* code, on the caller, nobody listens, no time limit */
    bool has_tables_on_gpu;
    qn_task task;
    qn_entry entry;
    _Atomic int64_t n_runs; /* direct ones; one writer */
    qn_stops stops; /* of a run; its flag is that of the task */
    int64_t *slots;
    int64_t range[QN_RANGE_WORDS];
    qn_domain domain;
    bool is_ordered, has_constant_scalars;
    again *again;          /* NULL: the version is decided */
    qn_print_call *print;  /* NULL: it prints nothing */
    uint32_t constants[2]; /* scalars that the policy made constants of the version */
    uint32_t changed[2];   /* scalars that were set to other values */
    qn_code *usual;        /* the version without these constants, or NULL */
    qn_code *former[MOST_FORMER];
    int n_former, n_slots; /* n_slots: room */
    qn_context *context;
    qn_kernel *kernel;
    qn_code *function;
    qn_call *next, **link; /* list of the context */
    qn_view
        *held; /* what keeps storage: the caller's views, whose tables became arguments; or NULL */
    qn_arg *args;          /* their views are those below */
    qn_view view[];
};

/* ---------------------------------------------------------------- making */

static qn_call *new_call(const qn_launch_state *l, int32_t n_slots)
{
    qn_call *call = qn__zalloc(1, sizeof *call + (size_t)l->n * sizeof(qn_view));
    if (!call)
        return NULL;
    call->n_slots = n_slots;
    call->args = qn__zalloc((size_t)l->n + 1, sizeof *call->args);
    call->slots = qn__zalloc((size_t)n_slots + 1, sizeof *call->slots);
    if (l->given)
        call->held = qn__zalloc((size_t)qn__n_given(l->kernel) + 1, sizeof *call->held);
    if (!call->args || !call->slots || (l->given && !call->held)) {
        qn__free(call->held);
        qn__free(call->args);
        qn__free(call->slots);
        qn__free(call);
        return NULL;
    }
    return call;
}

static void bind_arguments(qn_call *call, const qn_launch_state *l)
{
    for (int i = 0; i < l->n; i++) {
        call->args[i] = l->args[i];
        if (!l->args[i].view)
            continue;
        bool is_borrowed = call->held && i < qn__n_given(l->kernel); /* of what is held */
        call->view[i] = is_borrowed ? *l->args[i].view : qn_view_copy(l->args[i].view);
        call->view[i].record = call->kernel->param[i].record; /* equal, and the kernel stays */
        call->args[i].view = &call->view[i];
    }
    for (int i = 0; call->held && i < qn__n_given(l->kernel); i++)
        call->held[i] = qn_view_copy(l->given[i].view);
}

static void list_call(qn_call *call)
{
    qn_context *c = call->context;
    qn__lock(c);
    call->next = c->calls;
    call->link = &c->calls;
    if (call->next)
        call->next->link = &call->next;
    c->calls = call;
    bool is_news = call->is_ordered &&
                   !qn__history_has(&c->history, call->kernel->name, "prepared in iteration order");
    if (is_news)
        qn__history_add(&c->history, call->kernel->name, "prepared in iteration order", -1);
    qn__unlock(c);
    if (is_news)
        qn__log_kernel(c, QN_LOG_WARNING, call->kernel->name, "is prepared in iteration order");
}

/** Whether a run is nothing but entering the code. */
static bool is_direct(const qn_call *call)
{
    const qn_code *f = call->function;
    return f && !call->again && !call->print && !call->domain.is_empty &&
           call->task.executor != QN_THREADS && !call->has_tables_on_gpu && !call->is_ordered &&
           !f->info.scratch_bytes && !f->info.n_shared_reduces && !qn__is_watched(call->context) &&
           !qn__are_watched(&call->stops);
}

/** Of a call whose version is on trial. NULL without memory, or where nothing may be tried: then
 * the version stays. */
static again *new_again(const qn_call *call, const qn_launch_state *l)
{
    size_t n = (size_t)l->options.n_pins;
    bool may = l->options.compile != QN_COMPILE_NEVER && !l->given && call->function &&
               !l->options.schedule; /* of which there is one version */
    again *a = may ? qn__zalloc(1, sizeof *a + n * sizeof(qn_fact_pin)) : NULL;
    if (!a) {
        if (l->trial)
            qn__trial_record(l->context, l->kernel, l->trial, -1, 1, 0);
        return NULL;
    }
    a->state = *l;
    a->is_fresh = true;
    if (n)
        memcpy(a->pins, l->options.pins, n * sizeof(qn_fact_pin));
    a->state.kernel = call->kernel;
    a->state.args = call->args;
    a->state.usual = NULL;
    a->state.stream = call->task.stream;
    a->state.options.pins = n ? a->pins : NULL;
    a->state.options.plan = l->options.plan ? &a->state.plan : NULL;
    a->state.options.cancel = NULL;
    a->n_changes = l->n_changes;
    return a;
}

/** Fills a call; takes over the function's reference. */
static void fill_call(qn_call *call, const qn_launch_state *l, qn_code *f)
{
    atomic_init(&call->references, 1);
    call->context = l->context;
    qn__context_retain(l->context);
    call->kernel =
        qn_kernel_retain((qn_kernel *)(uintptr_t)l->kernel); /* only its reference count changes */
    call->function = f;
    call->domain = l->domain;
    call->is_ordered = l->is_ordered;
    call->has_constant_scalars = l->options.constant_scalars != 0;
    bind_arguments(call, l);
    call->task = (qn_task){
        .context = l->context,
        .kernel = call->kernel,
        .n = l->n,
        .args = call->args,
        .function = f,
        .domain = &call->domain,
        .n_iterations = l->n_iterations,
        .executor = l->is_ordered ? QN_SERIAL : l->options.executor,
        .max_threads = l->options.max_threads,
        .checks = l->options.checks,
        .debug = qn__debug_of(l),
        .cancel = l->run_stops.cancel ? l->run_stops.cancel : &qn__never,
        .stream = l->stream ? qn_stream_retain(l->stream) : NULL,
        .call = call,
    };
    if (f) {
        call->entry = f->entry;
        qn__facts_fill(&f->facts, call->kernel, call->args, call->slots);
        qn__range_fill(call->kernel, &f->info, &call->domain, call->range);
    }
    call->has_tables_on_gpu = l->stream && call->held;
    call->stops = l->run_stops;
    call->usual = l->usual;
    memcpy(call->constants, l->constants, sizeof call->constants);
    if (l->trial || l->is_in_turns || l->is_provisional)
        call->again = new_again(call, l);
    call->is_direct = is_direct(call);
    list_call(call);
}

/** A call for checked arguments. */
static qn_status make_call(qn_launch_state *l, qn_call **out, qn_error *err)
{
    qn_code *f = NULL;
    qn_status status = l->domain.is_empty ? QN_OK : qn__specialize(l, &f, err);
    if (status == QN_OK && f && l->stream)
        status = qn__cuda_load(l->stream, l->who, f, err);
    if (status) {
        qn_code_release(l->usual);
        qn_code_release(f);
        return status;
    }
    qn_call *call = new_call(l, f ? f->facts.n_slots : 0);
    if (!call) {
        qn_code_release(l->usual);
        qn_code_release(f);
        return qn__fail(err, QN_ERR_MEMORY, "qn_prepare: kernel \"%.60s\": no memory",
                        l->kernel->name);
    }
    fill_call(call, l, f);
    *out = call;
    return QN_OK;
}

static qn_status prepare(qn_launch_state *l, const qn_options *o, qn_call **out, qn_error *err)
{
    qn_status status = qn__launch_check(l, o, err);
    if (status)
        return status;
    qn__context_retain(l->context);
    status = make_call(l, out, err);
    qn__context_drop(l->context);
    return status;
}

/** The flag, time limit and hook that the caller gave. */
static void set_stops(qn_options *o, const qn_stops *stops)
{
    o->cancel = stops->cancel;
    o->timeout_ns = stops->timeout_ns;
    o->cancel_hook = stops->hook;
    o->cancel_arg = stops->hook_arg;
}

void qn__call_print(qn_call *call, qn_print_call *p)
{
    call->print = p;
    call->is_direct = false;
}

bool qn__call_prints(const qn_call *call)
{
    return call->print != NULL;
}

qn_status qn_prepare(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                     const qn_options *o, qn_call **out, qn_error *err)
{
    const char *who = "qn_prepare";
    qn_launch_state l = {.who = who, .context = c, .n = n, .args = args, .is_prepared = true};
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: out is NULL", who);
    qn_limit x;
    qn_expanded *e = NULL;
    qn_status status = qn__limit_begin(who, c, &o, &x, err);
    if (status)
        return status;
    l.run_stops = x.stops;
    if (o && o->print && c && k && k->has_prints) {
        qn_options options = *o;
        set_stops(&options, &x.stops);
        status = qn__prepare_printing(c, k, n, args, &options, out, err);
        return qn__limit_end(who, &x, status, err);
    }
    status = qn__state_open(&l, k, o, &e, err);
    if (status == QN_OK) {
        status = prepare(&l, o, out, err);
        qn__state_close(&l, e);
    }
    return qn__limit_end(who, &x, status, err);
}

/* ---------------------------------------------------------------- versions on trial */

static void end_trial(qn_call *call)
{
    qn__free(call->again);
    call->again = NULL;
    call->is_direct = is_direct(call);
}

/** Keeps the version that ran until the call is released, as work of a stream may run it. False: no
 * more are kept. */
static bool keep_former(qn_call *call)
{
    for (int i = 0; i < call->n_former; i++)
        if (call->former[i] == call->function) {
            qn_code_release(call->function);
            return true;
        }
    if (call->n_former == MOST_FORMER)
        return false;
    call->former[call->n_former++] = call->function;
    return true;
}

/** Runs another version from now on; takes over its reference. False: the version stays. */
static bool switch_to(qn_call *call, qn_code *f)
{
    int64_t *slots = call->slots;
    if (f == call->function) {
        qn_code_release(f);
        return true;
    }
    if (f->facts.n_slots > call->n_slots)
        slots = qn__zalloc((size_t)f->facts.n_slots + 1, sizeof *slots);
    if (!slots || !keep_former(call)) {
        if (slots != call->slots)
            qn__free(slots);
        qn_code_release(f);
        return false;
    }
    if (slots != call->slots) {
        qn__free(call->slots);
        call->slots = slots;
        call->n_slots = f->facts.n_slots;
    }
    call->function = f;
    call->task.function = f;
    call->entry = f->entry;
    qn__facts_fill(&f->facts, call->kernel, call->args, call->slots);
    qn__range_fill(call->kernel, &f->info, &call->domain, call->range);
    return true;
}

/** Chooses the version as a launch does. Where that fails the one that there is stays. */
static void choose_again(qn_call *call)
{
    again *a = call->again;
    qn_launch_state l = a->state;
    qn_error ignored = {0};
    qn_code *f = NULL;
    if (l.options.plan)
        l.options.plan = &l.plan;
    l.trial = 0;
    l.is_in_turns = l.is_provisional = l.may_have_code_later = false;
    memset(l.constants, 0, sizeof l.constants);
    qn__lock(l.context);
    a->n_changes = l.context->cache.n_changes;
    qn__unlock(l.context);
    qn_status status = qn__specialize(&l, &f, &ignored);
    if (status == QN_OK && f && l.stream)
        status = qn__cuda_load(l.stream, l.who, f, &ignored);
    if (status || !f || !switch_to(call, f)) {
        if (l.trial)
            qn__trial_record(l.context, l.kernel, l.trial, -1, 1, 0);
        if (status)
            qn_code_release(f);
        qn_code_release(l.usual);
        end_trial(call);
        return;
    }
    qn_code_release(call->usual);
    call->usual = l.usual;
    memcpy(call->constants, l.constants, sizeof call->constants);
    a->state.trial = l.trial;
    a->state.is_in_turns = l.is_in_turns;
    if (!l.trial && !l.is_in_turns && !l.is_provisional)
        end_trial(call);
}

/** Before a run: chooses again where versions run in turns or have changed. Says what the time of
 * the run is for. */
static void go_on_with_trial(qn_call *call)
{
    again *a = call->again;
    qn__lock(call->context);
    bool has_changed = a->n_changes != call->context->cache.n_changes;
    qn__unlock(call->context);
    if (!a->is_fresh && (a->state.is_in_turns || has_changed))
        choose_again(call);
    a = call->again;
    call->task.trial = 0;
    if (!a)
        return;
    a->is_fresh = false;
    bool is_sampled = call->task.stream && !a->state.is_in_turns;
    if (!is_sampled || a->n_runs++ % QN_GPU_SAMPLE == 0)
        call->task.trial = a->state.trial;
    call->task.n_timed = is_sampled ? QN_GPU_SAMPLE : 1;
}

/** After qn_call_set_scalar: what relied on the value of scalar i that the call had before. False:
 * its version cannot be had. */
static bool leave_constants(qn_call *call, int i)
{
    uint32_t bit = UINT32_C(1) << (i & 31);
    if (call->constants[i >> 5] & bit) {
        qn_code *usual = call->usual;
        call->usual = NULL;
        if (!usual || !switch_to(call, usual))
            return false;
        memset(call->constants, 0, sizeof call->constants);
        call->is_direct = is_direct(call);
    }
    if (call->again && call->task.trial)
        call->again->n_changes--; /* the trial may be about this scalar */
    return true;
}

/** Tells the policy that a scalar is none that never changes, once. */
static void tell_change(qn_call *call, int i)
{
    uint32_t bit = UINT32_C(1) << (i & 31);
    qn_context *c = call->context;
    if (call->changed[i >> 5] & bit)
        return;
    call->changed[i >> 5] |= bit;
    qn__lock(c);
    qn_known_kernel *known = qn__cache_kernel(&c->cache, call->kernel);
    if (known)
        qn__policy_scalars(&c->cache, known, call->args);
    qn__unlock(c);
}

/* ---------------------------------------------------------------- running */

/** The ways to run that are not direct. */
static qn_status run_indirect(qn_call *call, qn_error *err)
{
    qn_context *c = call->context;
    int64_t entered = call->again ? qn__now_ns() : 0;
    if (call->again)
        go_on_with_trial(call);
    const qn_watch watch = qn__watch_launch(&call->task, true);
    bool is_timed_here = call->task.trial && !call->task.stream;
    qn_status status = QN_OK;
    qn__lock(c);
    c->counters.launches++;
    c->counters.hits++;
    c->counters.ordered += call->is_ordered;
    c->counters.interpreted += !call->function && !call->domain.is_empty;
    qn__unlock(c);
    if (call->has_tables_on_gpu)
        status = qn__call_renew(call, "qn_run", call->task.stream, err);
    int64_t begin = is_timed_here ? qn__now_ns() : 0;
    if (status == QN_OK && !call->domain.is_empty)
        status = qn__task_run(&call->task, call->slots, call->range, err);
    if (is_timed_here || (call->task.trial && status))
        qn__trial_record(c, call->kernel, call->task.trial, status ? -1 : qn__now_ns() - begin, 1,
                         begin - entered);
    qn__watch_end(&watch, &call->task);
    return status;
}

/** A run of a call that has a time limit. */
static qn_status run_until(qn_call *call, qn_error *err)
{
    const char *who = "qn_run";
    const qn_options limits = {.bytes = sizeof limits,
                               .cancel = call->task.cancel,
                               .timeout_ns = call->stops.timeout_ns,
                               .cancel_hook = call->stops.hook,
                               .cancel_arg = call->stops.hook_arg};
    const qn_options *o = &limits;
    qn_limit x;
    qn_status status = qn__limit_begin(who, call->context, &o, &x, err);
    if (status)
        return status;
    call->task.cancel = o->cancel;
    status = run_indirect(call, err);
    call->task.cancel = limits.cancel;
    return qn__limit_end(who, &x, status, err);
}

qn_status qn_run(qn_call *call, qn_error *err)
{
    if (!call)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_run: call is NULL");
    if (qn__is_stopped(call->task.cancel))
        return qn__fail(err, QN_ERR_CANCELLED,
                        "qn_run: kernel \"%.60s\": cancelled before it began", call->kernel->name);
    if (call->print)
        qn__print_call_begin(call->print);
    if (!call->is_direct) {
        qn_status status =
            qn__are_watched(&call->stops) ? run_until(call, err) : run_indirect(call, err);
        return call->print ? qn__print_call_end(call->context, call->print, status, err) : status;
    }
    int64_t n_runs = atomic_load_explicit(&call->n_runs, memory_order_relaxed);
    atomic_store_explicit(&call->n_runs, n_runs + 1, memory_order_relaxed);
    if (call->task.stream)
        return qn__cuda_run(&call->task, call->slots, err);
    qn_fault fault;
    qn__fault_clear(&fault, call->task.cancel);
    uint32_t host = qn__fpu_enter();
    call->entry(call->slots, call->range, &fault);
    qn__fpu_leave(host);
    return !fault.status ? QN_OK : qn__task_fault(&call->task, &fault, err);
}

qn_status qn_call_set_scalar(qn_call *call, int i, uint64_t bits, qn_error *err)
{
    if (!call)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_call_set_scalar: call is NULL");
    const qn_kernel *k = call->kernel;
    if (i < 0 || i >= qn__n_given(k))
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "qn_call_set_scalar: kernel \"%.60s\": argument %d of %d", k->name, i,
                        qn__n_given(k));
    if (k->param[i].rank >= 0)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "qn_call_set_scalar: kernel \"%.60s\": argument %d (%.60s) is a view",
                        k->name, i, k->param[i].name);
    if (call->domain.scalars[i >> 5] >> (i & 31) & 1)
        return qn__fail(
            err, QN_ERR_ARGUMENT,
            "qn_call_set_scalar: kernel \"%.60s\": argument %d (%.60s) decides the domain", k->name,
            i, k->param[i].name);
    bool is_policy = call->constants[i >> 5] >> (i & 31) & 1;
    if (call->has_constant_scalars ||
        (call->function && call->function->facts.param[i].is_constant && !is_policy))
        return qn__fail(
            err, QN_ERR_ARGUMENT,
            "qn_call_set_scalar: kernel \"%.60s\": argument %d (%.60s) is a constant of the code",
            k->name, i, k->param[i].name);
    if (k->param[i].dtype == QN_C128)
        return qn__fail(
            err, QN_ERR_UNSUPPORTED,
            "qn_call_set_scalar: kernel \"%.60s\": argument %d (%.60s): c128 has more bits",
            k->name, i, k->param[i].name);
    if (call->function &&
        !qn__scalar_holds(&call->function->facts.param[i], k->param[i].dtype, bits))
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "qn_call_set_scalar: kernel \"%.60s\": argument %d (%.60s): %lld, but the "
                        "code relies on a multiple of "
                        "%d%s",
                        k->name, i, k->param[i].name,
                        (long long)qn__canonical(k->param[i].dtype, bits),
                        call->function->facts.param[i].multiple,
                        call->function->facts.param[i].is_small ? " below 2^31" : "");
    bool has_changed = call->args[i].bits != bits;
    call->args[i].bits = bits;
    if (has_changed)
        tell_change(call, i);
    if (has_changed && !leave_constants(call, i))
        return qn__fail(err, QN_ERR_MEMORY, "qn_call_set_scalar: kernel \"%.60s\": no memory",
                        k->name);
    bool is_slot = call->function && !call->function->facts.param[i].is_constant;
    int n_parts = is_slot ? qn__n_parts(k->param[i].dtype, NULL) : 0;
    for (int part = 0; part < n_parts; part++)
        call->slots[call->function->facts.param[i].slot + part] = (int64_t)qn__arg_part(
            qn__part_dtype(k->param[i].dtype, NULL, part), bits, 0, part);
    return QN_OK;
}

int64_t qn__calls_count(const qn_context *c)
{
    int64_t n = 0;
    for (const qn_call *call = c->calls; call; call = call->next)
        n += atomic_load_explicit(&call->n_runs, memory_order_relaxed);
    return n;
}

void qn_call_release(qn_call *call)
{
    if (!call)
        return;
    qn_context *c = call->context;
    int64_t n_runs = atomic_load_explicit(&call->n_runs, memory_order_relaxed);
    qn__lock(c);
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    c->counters.launches += n_runs;
    c->counters.hits += n_runs;
    qn__unlock(c);
    qn_stream_release(call->task.stream); /* not later: work of the stream may hold the call */
    qn__call_drop(call);
}

const qn_task *qn__call_task(const qn_call *call, const int64_t **slots)
{
    *slots = call->slots;
    return &call->task;
}

qn_status qn__call_renew(const qn_call *call, const char *who, qn_stream *s, qn_error *err)
{
    if (!call->has_tables_on_gpu)
        return QN_OK;
    return qn__cuda_tables_renew(who, s, call->kernel, call->held, call->args, err);
}

const char *qn__call_copied_list(const qn_call *call)
{
    for (int i = qn__n_given(call->kernel); call->has_tables_on_gpu && i < call->kernel->n_params;
         i++) {
        const qn_view *v = &call->held[call->kernel->expansion->param[i]];
        const qn_table *t = qn__layout_table(&v->layout, call->kernel->expansion->dim[i]);
        if (qn__cuda_is_copied(t))
            return qn__label(t->label);
    }
    return NULL;
}

void qn__call_retain(qn_call *call)
{
    atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
}

void qn__call_drop(void *what)
{
    qn_call *call = what;
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) != 1)
        return;
    qn_context *c = call->context;
    qn_view *held = call->held ? call->held : call->view;
    for (int i = 0; i < call->kernel->n_params; i++)
        if (call->args[i].view)
            qn_view_release(i < qn__n_given(call->kernel) ? &held[i] : &call->view[i]);
    qn__free(call->held);
    for (int i = 0; i < call->n_former; i++)
        qn_code_release(call->former[i]);
    qn_code_release(call->usual);
    qn_code_release(call->function);
    qn__free(call->again);
    qn__print_call_release(c, call->print);
    qn_kernel_release(call->kernel);
    qn__free(call->args);
    qn__free(call->slots);
    qn__free(call);
    qn__context_drop(c);
}
