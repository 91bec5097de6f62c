/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c: everything that is checked before a launch, once per new description of arguments:
 * options; number, kind, dtype and rank of arguments; data, alignment and space; traits; that
 * stores cannot collide; the domain; overlap.
 */
#include "runtime/cuda/stream.h"
#include "runtime/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WHO_BYTES = 160, CACHE_LINE = 64 };

/** What stands before a message about argument i. */
static const char *name_argument(const qn_launch_state *l, int i, char *out)
{
    snprintf(out, WHO_BYTES, "%s: kernel \"%.40s\": argument %d (%.40s)", l->who, l->kernel->name,
             i, l->kernel->param[i].name);
    return out;
}

/* ---------------------------------------------------------------- options */

/** Pins are those of the kernel that the caller gave: dimensions of an argument with tables are
 * others here. */
static qn_status check_pins(const qn_launch_state *l, qn_error *err)
{
    const qn_options *o = &l->options;
    if (o->n_pins && !o->pins)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: option pins is NULL, n_pins is %d", l->who,
                        o->n_pins);
    const qn_kernel *given = l->kernel->expansion ? l->kernel->expansion->given : l->kernel;
    char who[WHO_BYTES];
    for (int i = 0; i < o->n_pins; i++) {
        snprintf(who, sizeof who, "%s: option pins[%d]", l->who, i);
        qn_status status = qn__pin_check(who, o->pins, i, given->n_params, given->param, err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status refuse_isa(const qn_launch_state *l, int32_t isa, qn_error *err)
{
    qn_text list = {0};
    const qn_target *row;
    for (int n = 0; (row = qn__target_at(n)) != NULL; n++)
        qn__text_add(&list, ", %" PRId32, row->isa);
    qn__fail(err, QN_ERR_ARGUMENT, "%s: option isa: %" PRId32 " is none of 0%s", l->who, isa,
             list.data && !list.failed ? list.data : "");
    qn__text_release(&list);
    return QN_ERR_ARGUMENT;
}

static qn_status check_options(const qn_launch_state *l, qn_error *err)
{
    const qn_options *o = &l->options;
    const struct {
        const char *name;
        int64_t value, low, high;
    } field[] = {{"engine", o->engine, QN_ENGINE_AUTO, QN_ENGINE_NATIVE},
                 {"executor", o->executor, QN_EXECUTOR_DEFAULT, QN_CUDA},
                 {"checks", o->checks, QN_CHECKS_REPORT, QN_CHECKS_NONE},
                 {"specialize", o->specialize, QN_SPECIALIZE_AUTO, QN_SPECIALIZE_GENERIC},
                 {"loader", o->loader, QN_LOADER_AUTO, QN_LOADER_ORC},
                 {"strict", o->strict, 0, 1},
                 {"max_threads", o->max_threads, 0, INT32_MAX},
                 {"constant_scalars", o->constant_scalars, 0, 1},
                 {"must_generate", o->must_generate, 0, 1},
                 {"atomics", o->atomics, QN_ATOMICS_LAUNCH, QN_ATOMICS_SHARED},
                 {"compile", o->compile, QN_COMPILE_DEFAULT, QN_COMPILE_NEVER},
                 {"debug", o->debug, 0, QN_DEBUG_RACES | QN_DEBUG_NAN},
                 {"n_pins", o->n_pins, 0, QN_MOST_PINS},
                 {"print_lines", o->print_lines, 0, QN_MAX_PRINT_LINES},
#define X(name, text, least, most, names_dim)                                                      \
    {"plan." #name, l->plan.name, least, names_dim ? l->kernel->n_dims : most},
                 QN_PLAN_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++)
        if (field[i].value < field[i].low || field[i].value > field[i].high)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: option %s: %lld not in [%lld,%lld]", l->who,
                            field[i].name, (long long)field[i].value, (long long)field[i].low,
                            (long long)field[i].high);
    if (o->must_generate && o->engine == QN_ENGINE_INTERP)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: option must_generate: the engine is the interpreter", l->who);
    if (o->debug && o->engine != QN_ENGINE_INTERP)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: option debug: %d is for engine %d, the interpreter, not %d", l->who,
                        o->debug, QN_ENGINE_INTERP, o->engine);
    bool is_gpu = qn__ptx_of_isa(o->isa) != 0;
    if (o->isa != QN_ISA_AUTO && qn__target_row(o->isa)->isa != o->isa)
        return refuse_isa(l, o->isa, err);
    if (is_gpu && !l->takes_any_target && o->executor != QN_CUDA)
        return qn__fail(err, QN_ERR_TARGET,
                        "%s: option isa: %d is a GPU's, the executor is the host's", l->who,
                        o->isa);
    if (l->plan.width & (l->plan.width - 1))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: option plan.width: %d is no power of two",
                        l->who, l->plan.width);
    for (int d = 0; d < QN_MAX_RANK; d++)
        if (l->plan.order[d] < 0 || l->plan.order[d] > l->kernel->n_dims)
            return qn__fail(err, QN_ERR_ARGUMENT, "%s: option plan.order[%d]: %d not in [0,%d]",
                            l->who, d, l->plan.order[d], l->kernel->n_dims);
    if (o->schedule && strlen(o->schedule) > QN_MAX_SCHEDULE_BYTES)
        return qn__fail(err, QN_ERR_LIMIT, "%s: option schedule: longer than %d bytes", l->who,
                        QN_MAX_SCHEDULE_BYTES);
    return check_pins(l, err);
}

/** A schedule is one for the facts of these arguments, and whether it is refused is known when the
 * launch returns. */
static void take_schedule(qn_options *o)
{
    if (o->schedule && o->specialize == QN_SPECIALIZE_AUTO)
        o->specialize = QN_SPECIALIZE_EXACT;
    if (o->schedule && o->compile == QN_COMPILE_NOW)
        o->compile = QN_COMPILE_WAIT;
}

/** What an executor on a GPU needs: the stream, an instruction set that its GPU has, generated
 * code. */
static qn_status take_stream(qn_launch_state *l, qn_error *err)
{
    qn_options *o = &l->options;
    if (o->executor != QN_CUDA)
        return !o->stream ? QN_OK
                          : qn__fail(err, QN_ERR_ARGUMENT,
                                     "%s: option stream is for executor cuda, not %d", l->who,
                                     o->executor);
    if (o->engine != QN_ENGINE_AUTO || o->loader == QN_LOADER_ORC)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: options engine %d, loader %d: not on executor cuda", l->who, o->engine,
                        o->loader);
    qn_status status = qn__stream_of(l->context, l->who, o->stream, &l->stream, err);
    if (status)
        return status;
    const qn_gpu *g = l->stream->gpu;
    if (g->isa == 0 || (o->isa && !qn__isa_runs(g->isa, o->isa)))
        return qn__fail(err, QN_ERR_TARGET,
                        "%s: device %d: compute capability %d.%d runs none of the code for isa %d",
                        l->who, g->device, g->capability / 10, g->capability % 10, o->isa);
    o->isa = o->isa ? o->isa : g->isa;
    return QN_OK;
}

const qn_machine *qn__machine_of(const qn_launch_state *l)
{
    return l->stream ? &l->stream->gpu->machine : &l->context->machine;
}

static qn_status take_options(qn_launch_state *l, const qn_options *o, qn_error *err)
{
    l->options = o ? *o : (qn_options){.bytes = sizeof l->options};
    l->plan = o && o->plan ? *o->plan : (qn_plan_options){.bytes = sizeof l->plan};
    l->options.plan = &l->plan;
    qn_status status = check_options(l, err);
    if (status == QN_OK && l->options.executor == QN_EXECUTOR_DEFAULT)
        l->options.executor = l->context->options.default_executor;
    if (status == QN_OK && l->options.compile == QN_COMPILE_DEFAULT)
        l->options.compile = l->context->options.default_compile;
    take_schedule(&l->options);
    if (status == QN_OK)
        status = take_stream(l, err);
    if (status == QN_OK && l->options.loader == QN_LOADER_AUTO)
        l->options.loader = QN_LOADER_ARENA;
    return status;
}

/* ---------------------------------------------------------------- arguments */

static qn_status check_scalar(const qn_launch_state *l, int i, qn_error *err)
{
    const qn_arg *arg = &l->args[i];
    const char *dtype = qn_dtype_name(l->kernel->param[i].dtype);
    char who[WHO_BYTES];
    if (arg->view)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: is a view, expected a scalar of %s",
                        name_argument(l, i, who), dtype);
    if (arg->dtype != l->kernel->param[i].dtype)
        return qn__fail(err, QN_ERR_DTYPE, "%s: scalar of %s, expected %s",
                        name_argument(l, i, who), qn_dtype_name(arg->dtype), dtype);
    return QN_OK;
}

/** Claims of the view and of the parameter. */
static qn_status check_traits(const qn_launch_state *l, int i, const char *who, qn_error *err)
{
    const qn_kernel_parameter *param = &l->kernel->param[i];
    const qn_view *v = qn__given_view(l, i);
    const char *label = qn__label(v->label);
    uint32_t traits = v->traits | param->traits;
    if (v->traits & QN_READ_ONLY && param->is_written)
        return qn__fail(err, QN_ERR_READ_ONLY,
                        "%s: view \"%.60s\" is read-only and the kernel writes it", who, label);
    bool is_atomic = param->has_atomics || traits & QN_ATOMIC;
    if (is_atomic && qn__has_parts(v->dtype))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: view \"%.60s\" of %s is atomic: only its parts can be", who, label,
                        qn_dtype_name(v->dtype));
    if (is_atomic && qn__view_align(v) < qn_dtype_bytes(v->dtype))
        return qn__fail(
            err, QN_ERR_ALIGNMENT,
            "%s: view \"%.60s\": atomics on elements of %s that are aligned to %lld bytes only",
            who, label, qn_dtype_name(v->dtype), (long long)qn__view_align(v));
    if (traits & QN_ALIGNED && qn__check_aligned(who, v, NULL) != QN_OK)
        return qn__fail(err, QN_ERR_ALIGNMENT,
                        "%s: view \"%.60s\" claims alignment to %d bytes, data is %p", who, label,
                        (int)CACHE_LINE, v->data);
    return QN_OK;
}

static qn_status check_view(const qn_launch_state *l, const qn_usage *usage, int i, qn_error *err)
{
    const qn_kernel_parameter *param = &qn__given_kernel(l, i)->param[i];
    const qn_view *v = qn__given_view(l, i);
    char who[WHO_BYTES];
    name_argument(l, i, who);
    if (!v && l->args[i].dtype != QN_VOID)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: is a scalar, expected a view of %s and rank %d",
                        who, qn_dtype_name(param->dtype), param->rank);
    qn_status status = qn__view_check(v, who, err);
    if (status)
        return status;
    const char *label = qn__label(v->label);
    if (v->dtype != param->dtype)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%.60s\": dtype %s, expected %s", who, label,
                        qn_dtype_name(v->dtype), qn_dtype_name(param->dtype));
    if (!qn_record_equal(v->record, param->record))
        return qn__fail(err, QN_ERR_DTYPE,
                        "%s: view \"%.60s\": its record type is not the parameter's", who, label);
    if (v->layout.rank != param->rank)
        return qn__fail(err, QN_ERR_RANK, "%s: view \"%.60s\": rank %d, expected %d", who, label,
                        v->layout.rank, param->rank);
    int exec = l->stream ? QN_EXEC_CUDA : QN_EXEC_SERIAL;
    if (!qn_exec_can_access(exec, v->space))
        return qn__fail(
            err, QN_ERR_SPACE, "%s: view \"%.60s\": space %s is not accessible to executor %s", who,
            label, qn_space_name(v->space), exec == QN_EXEC_CUDA ? "cuda" : "serial or threads");
    status = check_traits(l, i, who, err);
    if (status)
        return status;
    if (usage->has_plain_store[i] && !qn__view_is_storable(v)) {
        char layout[200];
        qn_layout_print(&v->layout, layout, sizeof layout);
        return qn__fail(err, QN_ERR_NOT_INJECTIVE,
                        "%s: view \"%.60s\": the kernel stores to it, and its layout %s may map "
                        "two indices to one element",
                        who, label, layout);
    }
    return QN_OK;
}

static qn_status check_arguments(const qn_launch_state *l, qn_error *err)
{
    const qn_kernel *k = l->kernel;
    if (l->n != k->n_params)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": %d arguments for %d parameters", l->who, k->name,
                        l->n, k->n_params);
    if (!l->args && l->n > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: kernel \"%.60s\": args is NULL", l->who,
                        k->name);
    qn_usage usage;
    qn__usage_collect(k, &usage);
    for (int i = 0; i < l->n; i++) {
        char who[WHO_BYTES];
        if (l->args[i].reserved)
            return qn__fail(err, QN_ERR_VERSION, "%s: qn_arg.reserved: %u, expected 0",
                            name_argument(l, i, who), l->args[i].reserved);
        qn_status status =
            k->param[i].rank < 0 ? check_scalar(l, i, err) : check_view(l, &usage, i, err);
        if (status)
            return status;
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- the domain */

static qn_status find_domain(qn_launch_state *l, qn_error *err)
{
    qn_status status = qn__arg_domain(l->kernel, l->args, l->options.strict != 0, &l->domain, err);
    if (status)
        return status;
    l->n_iterations = 1;
    for (int d = 0; d < l->kernel->n_dims; d++)
        if (__builtin_mul_overflow(l->n_iterations, l->domain.end[d] - l->domain.begin[d],
                                   &l->n_iterations))
            l->n_iterations = INT64_MAX;
    return QN_OK;
}

qn_status qn__launch_check(qn_launch_state *l, const qn_options *o, qn_error *err)
{
    if (!l->context || !l->kernel)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", l->who,
                        l->context ? "kernel" : "context");
    qn_status status = take_options(l, o, err);
    if (status == QN_OK)
        status = check_arguments(l, err);
    if (status == QN_OK)
        status = find_domain(l, err);
    if (status == QN_OK)
        status = qn__overlap_check(l, err);
    if (status == QN_OK && l->stream)
        status = qn__cuda_check_views(l->stream, l->who, l->n, l->args, err);
    return status;
}

qn_status qn__late_atomics(const qn_kernel *k, int n, const qn_arg *args, const qn_kernel **out,
                           qn_error *err)
{
    uint64_t atomics = 0;
    *out = k;
    for (int i = 0; k && args && n == k->n_params && i < n; i++)
        if (k->param[i].rank >= 0 && args[i].view &&
            args[i].view->traits & ~k->param[i].traits & QN_ATOMIC)
            atomics |= UINT64_C(1) << i;
    return atomics ? qn__kernel_atomic(k, atomics, out, err) : QN_OK;
}
