/* SPDX-License-Identifier: Apache-2.0 */
/*
 * specialize.c: code for checked arguments. Facts and policy give a key; the cache or the code
 * generator gives the function. Two threads that want the same key build it once. Where code cannot
 * be had, AUTO goes on with the interpreter and the history says why; an engine that was asked for
 * by name fails. A key that takes too long to compile stays in the cache as failed. What was
 * compiled before, by this process or another one, is on disk (runtime/stored.c).
 */
#include "runtime/choice.h"
#include "runtime/stored.h"
#include "runtime/tier.h"
#include "runtime/watch.h"

#include <string.h>

/* ---------------------------------------------------------------- building */

/** Whether a launch of code may have something to report. */
static bool may_fault(const qn_code *f)
{
    const qn_kernel *k = f->kernel;
    for (uint32_t site = 0; f->facts.checks == QN_CHECKS_REPORT && site < k->n_accesses; site++)
        if (!f->facts.proved[site])
            return true;
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_WHILE ||
            (k->inst[i].op == QN_I_ASSERT && f->facts.checks != QN_CHECKS_NONE))
            return true;
    return false;
}

/** Puts generated code where it runs. The lock is held. */
static qn_status install(qn_context *c, qn_code *f, qn_compiled *code, qn_error *err)
{
    f->info = code->info;
    f->is_retry = code->is_retry;
    if (code->info.gpu.n_steps > 0) {
        f->ptx = code->code;
        f->may_fault = may_fault(f);
        memset(&code->code, 0, sizeof code->code);
        return QN_OK;
    }
    if (f->loader == QN_LOADER_ORC) {
        f->entry = code->orc_entry;
        f->orc_handle = code->orc_handle;
        return f->entry ? QN_OK
                        : qn__fail(err, QN_ERR_INTERNAL, "the code generator gave no entry");
    }
    if (code->info.entry >= code->code.n || code->info.align > 4096)
        return qn__fail(err, QN_ERR_INTERNAL,
                        "the code generator gave %zu bytes of code with entry %u, alignment %u",
                        code->code.n, code->info.entry, code->info.align);
    qn_status status = qn__arena_add(&c->arena, code->code.data, code->code.n, &f->blob, err);
    if (status)
        return status;
    const void *entry = (const char *)f->blob.code + code->info.entry;
    memcpy(&f->entry, &entry, sizeof f->entry); /* ISO C has no cast between the two */
    qn__symbols_add(c, f, code);
    return QN_OK;
}

/** Takes over the texts of a compile. */
static void keep_texts(qn_code *f, qn_compiled *code)
{
    f->plan = code->plan;
    f->llvm = code->llvm;
    f->assembly = code->assembly;
    f->schedule = code->schedule;
    f->estimate = code->estimate;
    memset(&code->plan, 0, sizeof code->plan);
    memset(&code->llvm, 0, sizeof code->llvm);
    memset(&code->assembly, 0, sizeof code->assembly);
    memset(&code->schedule, 0, sizeof code->schedule);
    memset(&code->estimate, 0, sizeof code->estimate);
}

/** Counts a version, which was compiled or, if `from` is not NULL, found. The lock is held. */
static void count_version(qn_context *c, bool is_dynamic, const qn_descent *descent,
                          const char *from, double milliseconds)
{
    if (from) {
        c->counters.disk_hits++;
        return;
    }
    c->counters.compiles++;
    c->counters.dynamic_compiles += is_dynamic;
    c->counters.stepped_down += descent->rung != QN_RUNG_PLANNED;
    c->counters.compile_us += (int64_t)(milliseconds * 1e3);
}

void qn__version_order(const qn_launch_state *l, qn_code *f, bool is_dynamic)
{
    qn_known_kernel *known = qn__cache_learn(&l->context->cache, l->kernel, &l->domain);
    if (f->reason.data || !known)
        return;
    bool is_shape = l->hot_kind == QN_TRIAL_OF_SHAPE;
    if (!l->hot_ns) {
        qn__policy_reason(known, l->args, &f->reason);
    } else if (is_shape) {
        qn__text_add(&f->reason, "the shape came back: %.1f ms in the dynamic version",
                     (double)l->hot_ns * 1e-6);
    } else {
        qn__text_add(&f->reason, "scalars that never changed: ");
        qn__policy_print_scalars(l->kernel, l->constants, &f->reason);
        qn__text_add(&f->reason, ": %.1f ms without constants", (double)l->hot_ns * 1e-6);
        return; /* there is such a version but for them */
    }
    qn__policy_ordered(known, l->args, !is_dynamic);
    if (!is_dynamic)
        qn__trial_has_exact(known, l);
}

/** Adds to the reason of a version what it is, and where it was found if it was not compiled; notes
 * that it is there. The lock is held. */
static void note_version(const qn_launch_state *l, qn_code *f, bool is_dynamic,
                         const qn_descent *descent, const char *from, double milliseconds)
{
    qn_context *c = l->context;
    qn_text *reason = &f->reason;
    qn__version_order(l, f, is_dynamic);
    if (l->is_ordered)
        qn__text_add(reason, "; %s", l->overlap.message);
    qn__policy_print_kind(&f->facts, is_dynamic, reason);
    qn__policy_print_known(l->kernel, &f->facts, "; relies on ", reason);
    if (f->facts.schedule)
        qn__text_add(reason, "; by the schedule that was given");
    if (f->tuned.n)
        qn__text_add(reason, "; tuned: %s", f->tuned.data);
    if (descent->rung != QN_RUNG_PLANNED)
        qn__text_add(reason, "; stepped down to compile less: %s", descent->steps);
    if (from)
        qn__text_add(reason, "; %s", from);
    f->milliseconds = milliseconds;
    qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
    if (known && !is_dynamic && !from)
        known->trials.compile_ns = (int64_t)(milliseconds * 1e6);
    qn__history_add(&c->history, l->kernel->name,
                    reason->data && !reason->failed ? reason->data : "compiled", milliseconds);
    count_version(c, is_dynamic, descent, from, milliseconds);
    qn__watch_version(c, l->kernel, from != NULL, milliseconds);
}

/** The outcome of a build, for everyone who waits for it, or asks again after a compile that took
 * too long. */
static void settle(const qn_launch_state *l, qn_code *f, qn_status status, const qn_error *error)
{
    qn_context *c = f->context;
    f->state = status == QN_OK ? QN_READY : QN_FAILED;
    if (status != QN_OK)
        f->error = *error;
    if (f->is_cached &&
        (status == QN_OK || status == QN_ERR_COMPILE_TIMEOUT || status == QN_ERR_LIMIT))
        qn__cache_weigh(&c->cache, f);
    else if (f->is_cached)
        qn__cache_remove(&c->cache, f);
    if (l)
        qn__cache_look_again(&c->cache, l->kernel);
    pthread_cond_broadcast(&c->compiler.progress);
}

void qn__version_drop(qn_code *f)
{
    qn_error error = {0};
    qn__fail(&error, QN_ERR_CANCELLED, "given up before its code was generated");
    settle(NULL, f, QN_ERR_CANCELLED, &error);
}

/** Whether code cannot be had for any kernel, rather than for this one. */
static bool concerns_all(int status)
{
    static const uint64_t all = UINT64_C(1) << QN_ERR_PROVIDER | UINT64_C(1) << QN_ERR_TARGET |
                                UINT64_C(1) << QN_ERR_EXEC_DENIED | UINT64_C(1) << QN_ERR_FORKED |
                                UINT64_C(1) << QN_ERR_CODEGEN_FATAL | UINT64_C(1) << QN_ERR_MEMORY |
                                UINT64_C(1) << QN_ERR_BUSY | UINT64_C(1) << QN_ERR_VERSION;
    return status >= 0 && status < 64 && (all >> status & 1);
}

/** Ends a build with code, or with the reason why there is none. `from`: where it was found; NULL:
 * it was generated. */
static qn_status end_build(const qn_launch_state *l, qn_code *f, bool is_dynamic, qn_compiled *code,
                           const char *from, qn_error *error)
{
    qn_context *c = l->context;
    qn_status status = (qn_status)error->status;
    double milliseconds = code->milliseconds;
    qn_descent descent = code->descent;
    uint32_t host = qn__fpu_enter();
    qn__lock(c);
    if (status == QN_OK)
        status = install(c, f, code, error);
    if (status == QN_OK) {
        keep_texts(f, code);
        note_version(l, f, is_dynamic, &descent, from, milliseconds);
        c->counters.planning_us += from ? 0 : (int64_t)(code->planning_milliseconds * 1e3);
    } else if (!is_dynamic && concerns_all((int)status)) {
        qn_known_kernel *known = qn__cache_kernel(&c->cache, l->kernel);
        if (known)
            qn__policy_not_begun(known);
    }
    settle(l, f, status, error);
    if (status == QN_OK && f->is_cached)
        c->counters.evictions +=
            qn__cache_evict(&c->cache, c->options.cache_bytes, c->options.code_bytes, f);
    qn__unlock(c);
    qn__fpu_leave(host);
    if (status == QN_OK && !from && !code->is_retry) /* other contexts may have a longer limit */
        qn__stored_keep(c, f, f->ptx.n ? &f->ptx : &code->code, &descent);
    qn__compiled_release(code);
    qn__cache_sweep(c);
    if (status == QN_OK) {
        qn__dump(c, f);
        qn__log_kernel(c, QN_LOG_INFO, l->kernel->name, "%s: %s, %.2f ms",
                       from ? "is found" : "is compiled",
                       f->reason.data && !f->reason.failed ? f->reason.data : "?", milliseconds);
        qn__event(c, from ? QN_EVENT_LOAD : QN_EVENT_COMPILE, l->kernel->name, f->reason.data,
                  milliseconds);
    }
    return status;
}

/** Looks for code on disk; NULL if there is none, else where it was found. */
static const char *find_stored(qn_launch_state *l, const qn_code *f, qn_compiled *code)
{
    double start = qn__now_ms();
    const char *from = qn__stored_find(l->context, f, code);
    if (from)
        code->milliseconds = qn__now_ms() - start;
    return from;
}

/** Whether a compile that failed so is begun again, once, with the cheapest plan; notes that. There
 * is no cheaper one on a GPU, or where the caller or tuning chose. */
static bool begins_again(const qn_launch_state *l, const qn_code *f, const qn_error *error)
{
    qn_context *c = l->context;
    qn_text line = {0};
    if (error->status != QN_ERR_COMPILE_TIMEOUT || qn__has_grid(f->facts.isa) ||
        f->facts.schedule || f->tuned_key.n)
        return false;
    qn__text_add(&line, "compiled again with the cheapest plan: %s", error->message);
    qn__lock(c);
    bool may_retry = qn__compile_may_retry(c);
    c->counters.compile_retries += may_retry;
    if (may_retry && line.data && !line.failed)
        qn__history_add(&c->history, l->kernel->name, line.data, -1);
    qn__unlock(c);
    if (may_retry)
        qn__log_kernel(c, QN_LOG_WARNING, l->kernel->name, "is %s",
                       line.data && !line.failed ? line.data : "compiled again");
    qn__text_release(&line);
    return may_retry;
}

/** Finds code on disk, or compiles. Where it was found, or NULL. */
static const char *make_code(qn_launch_state *l, const qn_code *f, qn_compiled *code,
                             qn_error *error)
{
    qn_context *c = l->context;
    const qn_text *key = qn__key_of_code(f);
    uint32_t made = QN_DUMP_LLVM | QN_DUMP_ASM | QN_DUMP_SCHEDULE | QN_DUMP_ESTIMATE;
    uint32_t texts = QN_DUMP_PLAN | (c->options.dump & made);
    const char *from = find_stored(l, f, code);
    if (!from) /* the time is that of the code generator, without loading it */
        (void)qn__compile(c, l->kernel, key, f->loader, texts, l->options.cancel, code, error);
    if (begins_again(l, f, error)) {
        *error = (qn_error){0};
        code->is_retry = true;
        (void)qn__compile(c, l->kernel, key, f->loader, texts, l->options.cancel, code, error);
    }
    return from;
}

qn_status qn__version_build(qn_launch_state *l, qn_code *f, bool is_dynamic, qn_error *err)
{
    qn_context *c = l->context;
    const qn_watch watch = qn__watch_begin(c);
    qn_compiled code = {0};
    qn_error error = {0};
    qn__lock(c);
    qn__version_order(l, f, is_dynamic);
    qn__unlock(c);
    uint32_t host =
        qn__fpu_enter(); /* a new compile thread starts with the environment that it finds here */
    qn__choice_find(c, f);
    const char *from = make_code(l, f, &code, &error);
    if (f->tuned_key.n && error.status != QN_OK && error.status != QN_ERR_CANCELLED) {
        qn__choice_drop(c, f, &error);
        error = (qn_error){0};
        from = make_code(l, f, &code, &error);
    }
    qn__fpu_leave(host);
    qn_status status = end_build(l, f, is_dynamic, &code, from, &error);
    qn__watch_ended(c, &watch, "version", l->kernel->name);
    return status ? qn__fail(err, status, "%s", error.message) : QN_OK;
}

bool qn__version_load(qn_launch_state *l, qn_code *f, bool is_dynamic)
{
    qn_compiled code = {0};
    qn_error error = {0};
    uint32_t host = qn__fpu_enter();
    qn__choice_find(l->context, f);
    const char *from = find_stored(l, f, &code);
    if (!from && f->tuned_key.n) {
        qn__choice_drop(l->context, f, NULL);
        from = find_stored(l, f, &code);
    }
    qn__fpu_leave(host);
    if (from)
        (void)end_build(l, f, is_dynamic, &code, from, &error);
    return from != NULL;
}

/* ---------------------------------------------------------------- finding */

/** Whether an argument is the table of a MultiView's members. */
static bool is_members(const qn_launch_state *l, int i)
{
    const qn_expansion *x = l->kernel->expansion;
    return x && i >= x->given->n_params &&
           qn__layout_table(&l->given[x->param[i]].view->layout, x->dim[i])->is_members;
}

/** Whether a kernel has atomics, or loads and stores of atomic views. */
static bool has_atomics(const qn_kernel *k)
{
    bool has = false;
    for (int p = 0; p < k->n_params; p++)
        has |=
            k->param[p].rank >= 0 && (k->param[p].has_atomics || (k->param[p].traits & QN_ATOMIC));
    return has;
}

/** Who may meet the elements of its atomics: QN_ATOMICS_OF_... */
static int32_t atomics_of(const qn_launch_state *l, int isa)
{
    if (l->options.atomics == QN_ATOMICS_SHARED || qn__has_grid(isa) || !has_atomics(l->kernel))
        return QN_ATOMICS_OF_ALL;
    bool is_divided = l->options.executor == QN_THREADS && !l->is_ordered &&
                      qn__count_threads(l->context, l->options.max_threads) > 1;
    return is_divided ? QN_ATOMICS_OF_THREADS : QN_ATOMICS_OF_ONE;
}

qn_status qn__version_key(qn_launch_state *l, const qn_policy *policy, qn_facts *facts,
                          qn_text *key, qn_error *err)
{
    const qn_kernel *k = l->kernel;
    qn_arg_value value[QN_MAX_PARAMS];
    for (int i = 0; i < l->n; i++)
        value[i] = (qn_arg_value){.layout = l->args[i].view ? &l->args[i].view->layout : NULL,
                                  .bits = l->args[i].bits,
                                  .high = l->args[i].high,
                                  .has_offsets = is_members(l, i)};
    uint8_t *proved = qn__zalloc((size_t)k->n_accesses + 1, 1);
    bool is_proved = proved && qn__prove_bounds(k, value, &l->domain, proved);
    int isa = l->options.isa ? l->options.isa : l->context->isa ? l->context->isa : QN_ISA_V3;
    const qn_launched launched = {.args = l->args,
                                  .domain = &l->domain,
                                  .proved = proved,
                                  .options = &l->options,
                                  .policy = policy,
                                  .isa = isa,
                                  .is_ordered = l->is_ordered};
    qn_status status = is_proved ? qn__facts_collect(k, &launched, facts, err)
                                 : qn__fail(err, QN_ERR_MEMORY, "no memory to prove bounds");
    qn__free(proved);
    if (status)
        return status;
    qn__facts_measure(k, l->args, &l->domain, qn__machine_of(l), facts);
    facts->is_large &= !policy->is_generic;
    facts->atomics = atomics_of(l, isa);
    qn__key_encode(facts, key);
    if (!key->failed)
        return QN_OK;
    qn__text_release(key);
    qn__facts_release(facts);
    return qn__fail(err, QN_ERR_MEMORY, "no memory for a key");
}

/** Waits until a function in the cache is built, or takes over what is only ordered (*is_mine). The
 * lock is held, as is a reference. */
static qn_status wait_until_built(qn_context *c, qn_code *f, const volatile int32_t *cancel,
                                  bool *is_mine, qn_error *err)
{
    while (f->state == QN_BUILDING && !qn__is_stopped(cancel)) {
        *is_mine = qn__background_take(c, f);
        if (*is_mine)
            return QN_OK;
        qn__compile_wait(c, cancel, -1);
    }
    if (f->state == QN_BUILDING)
        return qn__fail(err, QN_ERR_CANCELLED,
                        "cancelled while another launch waits for the same code");
    f->last_use = ++c->cache.clock;
    if (f->state == QN_READY)
        return QN_OK;
    return qn__fail(err, (qn_status)f->error.status, "%s", f->error.message);
}

/** Finds a function by key; on a miss makes one to be built (*is_new), or leaves *out NULL if
 * `may_build` is false. */
static qn_status find_or_add(qn_launch_state *l, qn_text *key, qn_facts *facts, bool may_build,
                             bool *is_new, qn_code **out, qn_error *err)
{
    qn_context *c = l->context;
    qn_status status = QN_OK;
    *is_new = false;
    qn__lock(c);
    qn_code *f;
    while ((f = qn__cache_function(&c->cache, l->kernel, key, l->options.loader)) != NULL) {
        qn__code_retain(f);
        status = wait_until_built(c, f, l->options.cancel, is_new, err);
        if (status != QN_ERR_CANCELLED || qn__is_stopped(l->options.cancel))
            break;
        status = QN_OK; /* who built it was cancelled, and it is not in the cache any more */
        qn__unlock(c);
        qn_code_release(f);
        qn__lock(c);
    }
    if (!f && may_build) {
        f = qn__code_new(c, l->kernel, key, facts, l->options.loader);
        *is_new = f != NULL;
        if (!f)
            status = qn__fail(err, QN_ERR_MEMORY, "no memory for a function");
        else if (!atomic_load(&c->is_released))
            qn__cache_add_function(&c->cache, f);
    }
    qn__unlock(c);
    if (status != QN_OK) {
        qn_code_release(f);
        return status;
    }
    *out = f;
    return QN_OK;
}

/** A function under one policy; see find_or_add. */
static qn_status find_or_build(qn_launch_state *l, const qn_policy *policy, bool may_build,
                               qn_code **out, qn_error *err)
{
    qn_facts facts = {0};
    qn_text key = {0};
    qn_code *f = NULL;
    bool is_new = false;
    qn_status status = qn__version_key(l, policy, &facts, &key, err);
    if (status)
        return status;
    status = find_or_add(l, &key, &facts, may_build, &is_new, &f, err);
    qn__text_release(&key);
    qn__facts_release(&facts);
    if (status == QN_OK && is_new)
        status = qn__version_build(l, f, qn__is_dynamic_policy(policy), err);
    if (status) {
        qn_code_release(f);
        return status;
    }
    *out = f;
    return QN_OK;
}

/** Whether the policy of the context asks for dynamic extents; copies what it learned, as the
 * record may go at any time. */
static void ask_policy(qn_launch_state *l, bool may_learn, qn_policy *policy, qn_learned *learned)
{
    qn_context *c = l->context;
    size_t common_bytes = (size_t)l->n * sizeof *learned->common;
    qn__lock(c);
    qn_known_kernel *known = may_learn ? qn__cache_learn(&c->cache, l->kernel, &l->domain)
                                       : qn__cache_kernel(&c->cache, l->kernel);
    qn_known_kernel copy;
    if (known && !may_learn) {
        copy = *known;
        memcpy(learned->common, known->common, common_bytes);
        copy.common = learned->common;
        known = &copy;
    }
    if (known && may_learn)
        qn__policy_scalars(&c->cache, known, l->args);
    if (known)
        qn__policy_observe(known, l->args);
    if (known && qn__policy_wants_dynamic(known, policy)) {
        memcpy(learned->varied, known->varied, sizeof known->varied);
        if (known != &copy)
            memcpy(learned->common, known->common, common_bytes);
        policy->dynamic_extents = learned->varied;
        policy->dynamic_strides = learned->varied + QN_MAX_PARAMS;
        policy->common = learned->common;
    }
    qn__unlock(c);
}

qn_policy qn__version_policy(qn_launch_state *l, bool may_learn, qn_learned *learned)
{
    qn_policy best = {.constant_scalars = l->options.constant_scalars != 0};
    best.all_dynamic = l->options.specialize == QN_SPECIALIZE_DYNAMIC;
    best.is_generic = l->options.specialize == QN_SPECIALIZE_GENERIC;
    if (l->options.specialize == QN_SPECIALIZE_AUTO)
        ask_policy(l, may_learn, &best, learned);
    return best;
}

static qn_status find_version(qn_launch_state *l, qn_code **out, qn_error *err)
{
    qn_learned learned;
    const qn_policy best = qn__version_policy(l, true, &learned);
    const qn_policy exact = {.constant_scalars = best.constant_scalars};
    qn_status status = QN_OK;
    if (l->options.specialize == QN_SPECIALIZE_AUTO && qn__is_dynamic_policy(&best))
        status = qn__trial_choose(l, out, err);
    const qn_policy *usual = *out ? &exact : &best;
    if (status == QN_OK && !*out)
        status = find_or_build(l, &best, true, out, err);
    return status != QN_OK ? status : qn__trial_scalars(l, usual, out, err);
}

/* ---------------------------------------------------------------- engines */

qn_status qn__version_check_target(const qn_launch_state *l, qn_error *err)
{
    if (l->kernel->n_functions)
        return qn__fail(err, QN_ERR_LIMIT,
                        "with the bodies of its functions in place of their calls the kernel has "
                        "more than %d instructions "
                        "or %d regions",
                        QN_MAX_REPLAY_OPS, QN_MAX_REPLAY_REGIONS);
    if (qn__has_grid(l->options.isa))
        return QN_OK;
    if (l->context->isa == 0)
        return qn__fail(err, QN_ERR_TARGET, "the processor is below %s", qn__isa_needed());
    if (l->options.isa && !qn__isa_runs(l->context->isa, l->options.isa))
        return qn__fail(err, QN_ERR_TARGET, "%s was asked for, the processor is %s",
                        qn__target_row(l->options.isa)->name,
                        qn__target_row(l->context->isa)->name);
    return QN_OK;
}

/** Writes why a kernel is interpreted into the history, once for each kernel. Whether the host
 * should hear of it: only the first time where the reason concerns all kernels. The lock is held.
 */
static bool is_news(qn_context *c, const char *kernel, const char *text, int status)
{
    bool is_known = qn__history_has(&c->history, kernel, text);
    if (!is_known)
        qn__history_add(&c->history, kernel, text, -1);
    if (!concerns_all(status))
        return !is_known;
    uint64_t bit = UINT64_C(1) << status;
    bool is_new = !(c->told & bit);
    c->told |= bit;
    return is_new;
}

void qn__version_note_failure(const qn_launch_state *l, const qn_error *error)
{
    qn_context *c = l->context;
    qn_text reason = {0};
    qn__text_add(&reason, "interpreted: %s: %s", qn_status_name(error->status), error->message);
    const char *text = reason.data && !reason.failed ? reason.data : "interpreted";
    qn__lock(c);
    bool tells = is_news(c, l->kernel->name, text, error->status);
    qn__unlock(c);
    if (tells) {
        qn__log_kernel(c, QN_LOG_WARNING, l->kernel->name, "is %s", text);
        qn__event(c, QN_EVENT_FALLBACK, l->kernel->name, text, 0);
    }
    qn__text_release(&reason);
}

/** The version to run, or NULL for the interpreter; QN_OK also where another one serves than that
 * which could not be compiled. */
static qn_status choose_version(qn_launch_state *l, bool may_fall_back, qn_code **out,
                                qn_error *err)
{
    qn_status status = qn__version_check_target(l, err);
    if (status != QN_OK)
        return status;
    if (qn__tier_waits(l, may_fall_back))
        status = find_version(l, out, err);
    else
        status = qn__tier_find(l, may_fall_back, out, err);
    if (status == QN_OK && !*out && qn__tier_is_too_long(l)) {
        l->is_provisional = l->may_have_code_later = false;
        status = find_version(l, out, err);
    }
    l->may_have_code_later |= status == QN_ERR_MEMORY || status == QN_ERR_BUSY;
    if (status != QN_OK && concerns_all((int)status) && (*out = qn__tier_find_any(l)) != NULL)
        return QN_OK;
    return status;
}

qn_status qn__specialize(qn_launch_state *l, qn_code **out, qn_error *err)
{
    qn_code *f = NULL;
    if (l->options.engine != QN_ENGINE_INTERP) {
        qn_error error = {0};
        bool may_fall_back = l->options.engine == QN_ENGINE_AUTO && !l->options.must_generate &&
                             !qn__has_grid(l->options.isa);
        qn_status status = choose_version(l, may_fall_back, &f, &error);
        may_fall_back = may_fall_back && status != QN_ERR_CANCELLED &&
                        (!l->options.schedule || concerns_all((int)status));
        if (status != QN_OK && !may_fall_back)
            return qn__fail(err, status, "%s: kernel \"%.60s\": %s", l->who, l->kernel->name,
                            error.message);
        if (status != QN_OK)
            qn__version_note_failure(l, &error);
    }
    *out = f;
    return QN_OK;
}

qn_status qn__specialize_nothing(qn_launch_state *l, qn_code **out, qn_error *err)
{
    const qn_policy exact = {.constant_scalars = l->options.constant_scalars != 0};
    qn_facts facts = {0};
    qn_text key = {0};
    qn_error error = {0};
    qn_status status = qn__version_key(l, &exact, &facts, &key, &error);
    qn_code *f =
        status ? NULL : qn__code_new(l->context, l->kernel, &key, &facts, QN_LOADER_ARENA);
    qn__text_release(&key);
    qn__facts_release(&facts);
    if (!f)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", l->who,
                        l->kernel->name);
    f->state = QN_READY;
    *out = f;
    return QN_OK;
}
