/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c: qn_explain. Says in words which version a launch would run, why that version was made,
 * and what a caller could do for a faster one. A question changes nothing: neither the cache nor
 * what the policy has learned.
 */
#include "runtime/tier.h"

#include <inttypes.h>
#include <string.h>

/** What is said, and of what. */
typedef struct answer {
    qn_launch_state *l;
    qn_code *f;      /* with a reference; NULL: the interpreter, or a version that is not there */
    qn_code *usual; /* f, or the version without constants that the policy made; with a reference */
    bool is_missing; /* the version that the launch wants is not there */
    int n_hints;
    qn_text text;
} answer;

static void add_hint(answer *a)
{
    a->n_hints++;
    qn__text_add(&a->text, "faster: ");
}

/* ---------------------------------------------------------------- which version */

/** The version of a policy as it stands in the cache, with a reference, or NULL. */
static qn_status find(qn_launch_state *l, const qn_policy *policy, qn_code **out, qn_error *err)
{
    qn_facts facts = {0};
    qn_text key = {0};
    qn_status status = qn__version_key(l, policy, &facts, &key, err);
    if (status)
        return status;
    qn__lock(l->context);
    *out = qn__cache_function(&l->context->cache, l->kernel, &key, l->options.loader);
    if (*out)
        qn__code_retain(*out);
    qn__unlock(l->context);
    qn__text_release(&key);
    qn__facts_release(&facts);
    return QN_OK;
}

static int state_of(const answer *a, const qn_code *f)
{
    qn__lock(a->l->context);
    int state = f ? f->state : QN_BUILDING;
    qn__unlock(a->l->context);
    return state;
}

/** Takes the version of a policy if it is ready. */
static qn_status take_ready(answer *a, const qn_policy *policy, qn_error *err)
{
    qn_code *f = NULL;
    qn_status status = find(a->l, policy, &f, err);
    if (f && state_of(a, f) == QN_READY)
        a->f = f;
    else
        qn_code_release(f);
    return status;
}

/** Takes the version in which scalars are constants, where that was faster. */
static qn_status take_constants(answer *a, const qn_policy *usual, qn_error *err)
{
    uint32_t constants[2];
    qn_policy policy = *usual;
    a->usual = a->f;
    if (a->f)
        qn__code_retain(a->f);
    if (!a->f || !qn__trial_has_constants(a->l, a->f, constants))
        return QN_OK;
    policy.constants = constants;
    qn_code *f = a->f;
    a->f = NULL;
    qn_status status = take_ready(a, &policy, err);
    if (a->f)
        qn_code_release(f);
    else
        a->f = f;
    return status;
}

/** What stands in for a version that is not there: nothing if the launch waits. */
static qn_status take_stand_in(answer *a, qn_error *err)
{
    const qn_options *o = &a->l->options;
    const qn_policy dynamic = {.all_dynamic = true}, generic = {.is_generic = true};
    if (o->compile == QN_COMPILE_WAIT || o->specialize != QN_SPECIALIZE_AUTO)
        return QN_OK;
    qn_status status = take_ready(a, &dynamic, err);
    return status || a->f ? status : take_ready(a, &generic, err);
}

static void say_missing(answer *a, const qn_code *best, bool is_dynamic)
{
    const char *what = is_dynamic ? "dynamic" : "exact";
    a->is_missing = true;
    if (best)
        qn__text_add(&a->text, "version: %s, is being compiled\n", what);
    else
        qn__text_add(&a->text, "version: %s, is not in memory\n", what);
}

/** Finds what a launch would run, and says what stands in the way of the version that it wants. */
static qn_status find_version(answer *a, qn_error *err)
{
    qn_learned learned;
    qn_policy best = qn__version_policy(a->l, false, &learned);
    const qn_policy exact = {.constant_scalars = best.constant_scalars};
    bool is_dynamic = qn__is_dynamic_policy(&best);
    qn_code *f = NULL;
    qn_status status = QN_OK;
    if (is_dynamic && a->l->options.specialize == QN_SPECIALIZE_AUTO)
        status = take_ready(a, &exact, err);
    if (status || a->f)
        return status ? status : take_constants(a, &exact, err);
    status = find(a->l, &best, &f, err);
    int state = state_of(a, f);
    if (status == QN_OK && f && state == QN_READY) {
        a->f = f;
        return take_constants(a, &best, err);
    }
    if (status == QN_OK && state == QN_FAILED)
        qn__text_add(&a->text, "runs: the interpreter: %s\n", f->error.message);
    if (status == QN_OK && state != QN_FAILED) {
        say_missing(a, f, is_dynamic);
        status = take_stand_in(a, err);
    }
    qn_code_release(f);
    return status;
}

static const char *executor_name(const qn_launch_state *l)
{
    return l->stream                                             ? "cuda"
           : l->options.executor == QN_THREADS && !l->is_ordered ? "threads"
                                                                 : "serial";
}

static void say_what_runs(answer *a)
{
    const qn_code *f = a->f;
    if (f) {
        qn__text_add(&a->text, "runs: generated code for %s, executor %s%s\n",
                     qn__target_row(f->facts.isa)->name, executor_name(a->l),
                     a->is_missing ? ", until the better version is there" : "");
        qn__text_add(&a->text, "why: %s (%.1f ms)\n", f->reason.data ? f->reason.data : "made",
                     f->milliseconds);
    } else if (a->is_missing && a->l->options.compile == QN_COMPILE_WAIT) {
        qn__text_add(&a->text, "runs: that version, when it has been found on disk or compiled\n");
    } else if (a->is_missing) {
        qn__text_add(&a->text, "runs: the interpreter, %s\n",
                     a->l->options.compile == QN_COMPILE_NOW
                         ? "until code is there"
                         : "as option compile forbids to make code");
    }
}

/* ---------------------------------------------------------------- what would be faster */

/** The number of an argument that a pin is about. */
static int64_t number_of(const qn_arg *arg, int of, int d)
{
    if (of == QN_PIN_SCALAR)
        return (int64_t)qn__canonical(arg->dtype, arg->bits);
    const qn_dim *dim = &arg->view->layout.dim[d];
    return of == QN_PIN_EXTENT ? dim->extent : of == QN_PIN_STRIDE ? dim->stride : dim->lower;
}

/** That a number is no multiple of what is pinned. */
static void hint_multiple(answer *a, int p, const qn_pinned *pinned, int of, int d)
{
    int64_t multiple = INT64_C(1) << pinned->exponent[of][d],
            number = number_of(&a->l->args[p], of, d);
    if (number % multiple == 0)
        return;
    add_hint(a);
    qn__text_add(&a->text,
                 "a multiple of %" PRId64
                 ", as is pinned, for %s %d of argument %.60s, which is %" PRId64 "\n",
                 multiple, qn__pin_names[of], d, a->l->kernel->param[p].name, number);
}

/** Pins, of the kernel and the options, that say of a number what is not so. */
static void hint_pins(answer *a)
{
    const qn_options *o = &a->l->options;
    for (int p = 0; a->f && p < qn__n_given(a->l->kernel); p++) {
        const qn_kernel_parameter *param = &a->l->kernel->param[p];
        qn_pinned pinned = param->pinned;
        for (int i = 0; i < o->n_pins; i++)
            if (o->pins[i].param == p)
                qn__pin_add(&pinned, &o->pins[i]);
        if (param->rank < 0)
            hint_multiple(a, p, &pinned, QN_PIN_SCALAR, 0);
        for (int d = 0; d < param->rank; d++)
            for (int of = 0; of < QN_PIN_SCALAR; of++)
                hint_multiple(a, p, &pinned, of, d);
    }
}

static void hint_order(answer *a)
{
    if (!a->l->is_ordered)
        return;
    add_hint(a);
    qn__text_add(&a->text,
                 "views that share no elements; iterations run in order, as scalar code: %s\n",
                 a->l->overlap.message);
}

/** Numbers of the arguments that are no constants of the code. */
static void hint_dynamic(answer *a)
{
    const qn_kernel *k = a->l->kernel;
    int n = 0;
    for (int p = 0; a->f && p < k->n_params; p++) {
        for (int d = 0; d < k->param[p].rank; d++) {
            const qn_dim_fact *dim = &a->f->facts.param[p].dim[d];
            bool is_stride = dim->n_digits == 1 &&
                             a->f->facts.digit[dim->first_digit].stride.kind == QN_FACT_DYNAMIC;
            bool is_extent = dim->extent.kind == QN_FACT_DYNAMIC;
            if (!is_extent && !is_stride)
                continue;
            if (n++ == 0)
                add_hint(a);
            qn__text_add(&a->text, "%s%s %d of view %.60s", n == 1 ? "constants for " : ", ",
                         is_extent && is_stride ? "extent and stride"
                         : is_extent            ? "extent"
                                                : "stride",
                         d, k->param[p].name);
        }
    }
    if (n)
        qn__text_add(&a->text,
                     ": option specialize QN_SPECIALIZE_EXACT, at a compile for each shape\n");
}

static void hint_checks(answer *a)
{
    const qn_kernel *k = a->l->kernel;
    uint32_t n = 0, first = 0;
    for (uint32_t site = 0; a->f && site < k->n_accesses; site++) {
        if (!qn__is_checked(&a->f->facts, k, site))
            continue;
        first = n++ ? first : site;
    }
    if (n == 0)
        return;
    add_hint(a);
    qn__text_add(&a->text,
                 "no checks: %" PRIu32 " of %" PRIu32
                 " accesses, the first of them to view %.60s, are checked one by "
                 "one: option checks QN_CHECKS_NONE, where you know them to be inside\n",
                 n, k->n_accesses, k->param[k->inst[k->access[first].inst].imm].name);
}

/** Views without a dimension in which elements follow one another. */
static void hint_strides(answer *a)
{
    const qn_kernel *k = a->l->kernel;
    for (int p = 0; p < k->n_params; p++) {
        int64_t least = 0;
        const qn_layout *l = k->param[p].rank > 0 ? &a->l->args[p].view->layout : NULL;
        for (int d = 0; l && d < l->rank; d++) {
            int64_t stride = l->dim[d].stride < 0 ? -l->dim[d].stride : l->dim[d].stride;
            bool counts = l->dim[d].extent > 1 && !(l->projected >> d & 1) && stride > 0;
            if (counts && (least == 0 || stride < least))
                least = stride;
        }
        if (least <= 1 || l->digits)
            continue;
        add_hint(a);
        qn__text_add(&a->text,
                     "a dimension of stride 1 in view %.60s, whose elements are %" PRId64
                     " apart at least\n",
                     k->param[p].name, least);
    }
}

static void hint_machine(answer *a)
{
    const qn_launch_state *l = a->l;
    if (a->f && a->f->is_retry) {
        add_hint(a);
        qn__text_add(&a->text, "a longer compile_ms of the context: this is the cheapest plan, as "
                               "a compile took too long\n");
    }
    if (a->f && !l->stream && a->f->facts.isa < l->context->isa) {
        add_hint(a);
        qn__text_add(&a->text, "option isa: the processor has %s\n",
                     qn__target_row(l->context->isa)->name);
    }
    int n_threads = qn__count_threads(l->context, 0);
    bool may_divide = a->f && !l->stream && a->f->info.split_dim >= 0 &&
                      l->options.executor == QN_SERIAL && !l->is_ordered;
    if (may_divide && n_threads > 1 && l->n_iterations / 2 >= a->f->info.chunk) {
        add_hint(a);
        qn__text_add(&a->text, "executor QN_THREADS, with %d threads\n", n_threads);
    }
}

/* ---------------------------------------------------------------- the answer */

static qn_status answer_code(answer *a, qn_error *err)
{
    qn_launch_state *l = a->l;
    qn_error error = {0};
    if (l->options.engine == QN_ENGINE_INTERP) {
        qn__text_add(&a->text, "runs: the interpreter, as option engine says\n");
        add_hint(a);
        qn__text_add(&a->text, "generated code: option engine\n");
        return QN_OK;
    }
    if (qn__version_check_target(l, &error) != QN_OK) {
        qn__text_add(&a->text, "runs: the interpreter: %s\n", error.message);
        return QN_OK;
    }
    qn_status status = find_version(a, err);
    if (status == QN_OK)
        say_what_runs(a);
    if (status == QN_OK && a->f &&
        qn__policy_print_known(l->kernel, &a->f->facts, "relies on: ", &a->text))
        qn__text_add(&a->text, "\n");
    qn__trial_print(l, a->usual, &a->text);
    return status;
}

static qn_status explain(qn_launch_state *l, const qn_options *o, qn_text *out, qn_error *err)
{
    answer a = {.l = l};
    qn_status status = qn__launch_check(l, o, err);
    if (status)
        return status;
    qn__context_retain(l->context);
    qn__text_add(&a.text, "kernel: %.60s, %" PRId64 " iterations\n", l->kernel->name,
                 l->n_iterations);
    if (l->domain.is_empty)
        qn__text_add(&a.text, "runs: nothing, as there are no iterations\n");
    else
        status = answer_code(&a, err);
    if (status == QN_OK && !l->domain.is_empty) {
        hint_order(&a);
        hint_pins(&a);
        hint_dynamic(&a);
        hint_checks(&a);
        hint_strides(&a);
        hint_machine(&a);
        if (a.n_hints == 0 && a.f)
            qn__text_add(&a.text, "faster: nothing that options or layouts could give\n");
    }
    qn_code_release(a.f);
    qn_code_release(a.usual);
    qn__context_drop(l->context);
    if (status == QN_OK && a.text.failed)
        status = qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory for the answer",
                          l->who, l->kernel->name);
    *out = a.text;
    return status;
}

qn_status qn_explain(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                     const qn_options *o, char *buffer, size_t buffer_bytes, size_t *needed,
                     qn_error *err)
{
    const char *who = "qn_explain";
    qn_launch_state l = {.who = who, .context = c, .n = n, .args = args, .takes_any_target = true};
    if (needed)
        *needed = 0;
    if (!buffer && buffer_bytes)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: buffer is NULL, but has %zu bytes", who,
                        buffer_bytes);
    qn_limit x;
    qn_expanded *e = NULL;
    qn_text text = {0};
    qn_status status = qn__limit_begin(who, c, &o, &x, err);
    if (status)
        return status;
    status = qn__state_open(&l, k, o, &e, err);
    if (status == QN_OK) {
        status = explain(&l, o, &text, err);
        qn__state_close(&l, e);
    }
    if (status == QN_OK) {
        size_t bytes = qn__text_out(&text, buffer, buffer_bytes);
        if (needed)
            *needed = bytes;
    }
    qn__text_release(&text);
    return qn__limit_end(who, &x, status, err);
}
