/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.c: what is done around a call with options: options of callers of other versions are taken
 * into structs of this one, and flags and time limits that cancel become one word, which all that
 * runs looks at.
 */
#include "runtime/launch.h"

static qn_status take_options(const char *who, const qn_options *o, qn_taken_options *out,
                              qn_error *err)
{
    qn_status status = qn__struct_take(who, "options", o, &out->options, sizeof out->options, err);
    const qn_plan_options *plan = out->options.plan;
    if (status || !plan)
        return status;
    out->options.plan = &out->plan;
    return qn__struct_take(who, "plan options", plan, &out->plan, sizeof out->plan, err);
}

/** Replaces the options by a copy that may be changed. */
static qn_options *own_options(const qn_options **o, qn_limit *x)
{
    if (*o != &x->taken.options)
        x->taken.options = **o;
    *o = &x->taken.options;
    return &x->taken.options;
}

static qn_status begin_deadline(const char *who, qn_context *c, const qn_options **o, qn_limit *x,
                                qn_error *err)
{
    if (!c)
        return QN_OK; /* the call fails */
    if (!qn__deadline_open(&c->timer, &x->deadline, &x->stops))
        return qn__fail(err, QN_ERR_MEMORY,
                        "%s: no thread for a time limit of %lld ns, or for the option cancel_hook",
                        who, (long long)x->stops.timeout_ns);
    qn__context_retain(c);
    x->context = c;
    qn_options *own = own_options(o, x);
    own->cancel = &x->deadline.stop;
    own->timeout_ns = 0;
    own->cancel_hook = NULL;
    return QN_OK;
}

qn_status qn__limit_begin(const char *who, qn_context *c, const qn_options **o, qn_limit *x,
                          qn_error *err)
{
    x->context = NULL;
    x->stops = (qn_stops){0};
    if (!*o)
        return QN_OK;
    if (!qn__are_of_this_version(*o)) {
        qn_status status = take_options(who, *o, &x->taken, err);
        if (status)
            return status;
        *o = &x->taken.options;
    }
    x->stops = (qn_stops){(*o)->cancel, (*o)->timeout_ns, (*o)->cancel_hook, (*o)->cancel_arg};
    if (x->stops.timeout_ns < 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: option timeout_ns: %lld not in [0,%lld]", who,
                        (long long)x->stops.timeout_ns, (long long)INT64_MAX);
    if (qn__is_stopped(x->stops.cancel))
        return qn__fail(err, QN_ERR_CANCELLED, "%s: cancelled before it began", who);
    return qn__are_watched(&x->stops) ? begin_deadline(who, c, o, x, err) : QN_OK;
}

qn_status qn__limit_end(const char *who, qn_limit *x, qn_status status, qn_error *err)
{
    if (!x->context)
        return status;
    qn__deadline_close(&x->context->timer, &x->deadline);
    qn__context_drop(x->context);
    if (status == QN_ERR_CANCELLED && x->deadline.is_over)
        return qn__fail(err, status, "%s: not done after %lld ns, its time limit", who,
                        (long long)x->stops.timeout_ns);
    return status;
}
