/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.c: launches that do not wait for their code. Versions from best to worst: the one that the
 * policy of the context would make, one with dynamic extents and strides, the generic one, the
 * interpreter. With QN_COMPILE_NOW the best one and the generic one are ordered in the background
 * if they are missing; when a version is ready, launches that run a worse one choose again
 * (qn__cache_look_again).
 */
#include "runtime/tier.h"

/* What the interpreter takes for about so many instructions is less than what compiling takes: 20
 * ns each. */
enum { MOST_INTERPRETED = 1 << 20 };

bool qn__tier_waits(const qn_launch_state *l, bool may_interpret)
{
    const qn_options *o = &l->options;
    bool is_host = !qn__has_grid(o->isa);
    if (o->compile == QN_COMPILE_WAIT)
        return true;
    return o->compile == QN_COMPILE_NOW && (!is_host || !may_interpret || l->is_prepared);
}

bool qn__tier_is_too_long(const qn_launch_state *l)
{
    int64_t most = MOST_INTERPRETED / ((int64_t)l->kernel->n_insts + 1);
    return l->options.compile == QN_COMPILE_NOW && l->n_iterations > most;
}

/** A function that is new in the cache: takes its code from disk, or orders it if `may_order`, or
 * gives it up. Whether it is ready. */
static bool provide(qn_launch_state *l, qn_code *f, bool is_dynamic, bool may_order)
{
    qn_context *c = l->context;
    bool is_loaded = qn__version_load(l, f, is_dynamic);
    qn__lock(c);
    may_order = may_order && c->compiler.error.status == QN_OK;
    bool is_ordered = !is_loaded && may_order && qn__background_order(l, f, is_dynamic);
    if (!is_loaded && !is_ordered)
        qn__version_drop(f);
    l->may_have_code_later |= !is_loaded && may_order && !is_ordered;
    bool is_ready = f->state == QN_READY;
    qn__unlock(c);
    return is_ready;
}

qn_status qn__tier_look(qn_launch_state *l, const qn_policy *policy, bool may_order, qn_code **out,
                        qn_error *err)
{
    qn_context *c = l->context;
    qn_facts facts = {0};
    qn_text key = {0};
    qn_status status = qn__version_key(l, policy, &facts, &key, err);
    if (status)
        return status;
    qn__lock(c);
    qn_code *f = qn__cache_function(&c->cache, l->kernel, &key, l->options.loader), *added = NULL;
    if (f && f->state == QN_READY) {
        qn__code_retain(f);
        f->last_use = ++c->cache.clock;
        *out = f;
    } else if (!f && !atomic_load(&c->is_released)) {
        added = qn__code_new(c, l->kernel, &key, &facts, l->options.loader);
        if (added)
            qn__cache_add_function(&c->cache, added);
    }
    qn__unlock(c);
    if (added && provide(l, added, qn__is_dynamic_policy(policy), may_order))
        *out = added;
    else
        qn_code_release(added);
    qn__cache_sweep(c);
    qn__text_release(&key);
    qn__facts_release(&facts);
    return QN_OK;
}

qn_status qn__tier_find(qn_launch_state *l, bool may_interpret, qn_code **out, qn_error *err)
{
    qn_learned learned;
    const qn_policy best = qn__version_policy(l, true, &learned);
    const qn_policy exact = {.constant_scalars = best.constant_scalars},
                    dynamic = {.all_dynamic = true}, generic = {.is_generic = true};
    bool may_order = l->options.compile == QN_COMPILE_NOW;
    bool is_auto = l->options.specialize == QN_SPECIALIZE_AUTO;
    qn_status status = QN_OK;
    qn__lock(l->context);
    l->is_provisional = false;
    l->n_changes = l->context->cache.n_changes;
    qn__unlock(l->context);
    if (is_auto && qn__is_dynamic_policy(&best)) {
        status = qn__trial_choose(l, out, err);
        if (status == QN_OK && !*out && !l->trial && !l->is_provisional)
            status = qn__tier_look(l, &exact, false, out, err);
    }
    bool is_exact = *out != NULL;
    if (status == QN_OK && !*out)
        status = qn__tier_look(l, &best, may_order, out, err);
    if (status != QN_OK)
        return status;
    if (*out)
        return qn__trial_scalars(l, is_exact ? &exact : &best, out, err);
    l->is_provisional = true;
    l->trial = 0; /* no time of another version */
    l->is_in_turns = false;
    if (is_auto)
        status = qn__tier_look(l, &dynamic, false, out, err);
    if (status == QN_OK && !*out && is_auto)
        status = qn__tier_look(l, &generic, may_order, out, err);
    if (status != QN_OK || *out)
        return status;
    if (may_interpret)
        return QN_OK;
    return qn__fail(err, QN_ERR_NOT_FOUND,
                    "no version of it is there, and option compile forbids to make one");
}

qn_code *qn__tier_find_any(qn_launch_state *l)
{
    qn_learned learned;
    qn_code *f = NULL;
    qn_error ignored = {0};
    if (l->options.specialize != QN_SPECIALIZE_AUTO)
        return NULL;
    const qn_policy best = qn__version_policy(l, false, &learned);
    const qn_policy dynamic = {.all_dynamic = true}, generic = {.is_generic = true};
    const qn_policy exact = {.constant_scalars = best.constant_scalars};
    qn__lock(l->context);
    l->is_provisional = true;
    l->n_changes = l->context->cache.n_changes;
    qn__unlock(l->context);
    if (qn__is_dynamic_policy(&best)) /* else it is what could not be made */
        (void)qn__tier_look(l, &exact, false, &f, &ignored);
    if (!f)
        (void)qn__tier_look(l, &dynamic, false, &f, &ignored);
    if (!f)
        (void)qn__tier_look(l, &generic, false, &f, &ignored);
    l->is_provisional = f != NULL;
    return f;
}
