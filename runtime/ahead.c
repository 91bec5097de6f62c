/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c: code for a bundle, made ahead of time on another machine than that which runs it. Facts
 * and key are those of a launch with the arguments, but for what they say of the machine
 * (qn__facts_make_portable); the code is compiled and written, and never run here, so its
 * instruction set may be one that this machine has not.
 */
#include "quern/cache.h"
#include "runtime/ahead.h"
#include "runtime/stored.h"

#include <string.h>

/* ---------------------------------------------------------------- arguments of generic code */

enum { STAND_IN_BYTES = 64 };

/** Arguments that have the right types and one element each, in memory of their own: generic code
 * relies on nothing else. */
typedef struct stand_ins {
    char *memory; /* STAND_IN_BYTES for each parameter, aligned to as much */
    void *block;
    qn_view view[QN_MAX_PARAMS];
    qn_arg arg[QN_MAX_PARAMS];
} stand_ins;

static bool make_stand_in(stand_ins *s, const qn_kernel_parameter *p, int i, int64_t bytes)
{
    const int64_t ones[QN_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (p->rank < 0) {
        s->arg[i] = (qn_arg){.dtype = p->dtype};
        return true;
    }
    s->view[i] = (qn_view){.data = s->memory + i * bytes, .dtype = p->dtype, .record = p->record};
    s->arg[i] = (qn_arg){.view = &s->view[i]};
    return qn_layout_right(p->rank, ones, &s->view[i].layout, NULL) == QN_OK;
}

static void stand_ins_release(stand_ins *s)
{
    if (s)
        qn__free(s->block);
    qn__free(s);
}

/** NULL without memory. */
static stand_ins *stand_ins_new(const qn_kernel *k)
{
    int64_t bytes = STAND_IN_BYTES;
    for (int i = 0; i < k->n_params; i++)
        while (k->param[i].record && bytes < qn_record_bytes(k->param[i].record))
            bytes *= 2;
    stand_ins *s = qn__zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->block = qn__zalloc((size_t)k->n_params + 1, (size_t)bytes);
    s->memory =
        s->block
            ? (char *)(((uintptr_t)s->block + STAND_IN_BYTES - 1) / STAND_IN_BYTES * STAND_IN_BYTES)
            : NULL;
    bool is_made = s->memory != NULL;
    for (int i = 0; i < k->n_params && is_made; i++)
        is_made = make_stand_in(s, &k->param[i], i, bytes);
    if (is_made)
        return s;
    stand_ins_release(s);
    return NULL;
}

/* ---------------------------------------------------------------- compiling */

static qn_policy policy_of(const qn_options *o)
{
    return (qn_policy){.all_dynamic = o->specialize == QN_SPECIALIZE_DYNAMIC,
                       .is_generic = o->specialize == QN_SPECIALIZE_GENERIC,
                       .constant_scalars = o->constant_scalars != 0};
}

static qn_status check_launch(const qn_launch_state *l, qn_error *err)
{
    if (l->kernel->n_functions)
        return qn__fail(
            err, QN_ERR_LIMIT,
            "%s: kernel \"%.60s\": it is too large without calls to generate code for it", l->who,
            l->kernel->name);
    if (l->domain.is_empty && l->options.specialize != QN_SPECIALIZE_GENERIC)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": the arguments give no iterations, so nothing would "
                        "be proved of others",
                        l->who, l->kernel->name);
    return QN_OK;
}

/** The function to compile, with portable facts. */
static qn_status make_code(qn_launch_state *l, const qn_ahead_use *use, qn_code **out,
                           qn_error *err)
{
    const qn_policy policy = policy_of(&l->options);
    qn_facts facts = {0};
    qn_text key = {0};
    qn_error why = {0};
    qn_status status = qn__version_key(l, &policy, &facts, &key, &why);
    qn__text_release(&key);
    if (status != QN_OK)
        return qn__fail(err, status, "%s: kernel \"%.60s\": %s", l->who, l->kernel->name,
                        why.message);
    qn__facts_make_portable(&facts);
    status = use->prepare(use->arg, l, &facts, err);
    if (status == QN_OK) {
        qn__key_encode(&facts, &key);
        *out =
            key.failed ? NULL : qn__code_new(l->context, l->kernel, &key, &facts, QN_LOADER_ARENA);
        if (!*out)
            status = qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", l->who,
                              l->kernel->name);
    }
    qn__text_release(&key);
    qn__facts_release(&facts);
    return status;
}

static qn_status compile(const qn_launch_state *l, const qn_code *f, qn_compiled *code,
                         qn_error *err)
{
    qn_context *c = l->context;
    qn_error why = {0};
    uint32_t host = qn__fpu_enter();
    qn_status status = qn__compile(c, f->kernel, &f->key, QN_LOADER_ARENA, QN_DUMP_PLAN,
                                   l->options.cancel, code, &why);
    qn__fpu_leave(host);
    if (status != QN_OK)
        return qn__fail(err, status, "%s: kernel \"%.60s\": %s", l->who, l->kernel->name,
                        why.message);
    qn__lock(c);
    c->counters.compiles++;
    c->counters.compile_us += (int64_t)(code->milliseconds * 1e3);
    c->counters.planning_us += (int64_t)(code->planning_milliseconds * 1e3);
    qn__history_add(&c->history, l->kernel->name, l->who, code->milliseconds);
    qn__unlock(c);
    return QN_OK;
}

static qn_status make(qn_launch_state *l, const qn_options *o, const qn_ahead_use *use,
                      qn_error *err)
{
    qn_code *f = NULL;
    qn_compiled code = {0};
    qn_status status = qn__launch_check(l, o, err);
    if (status == QN_OK)
        status = check_launch(l, err);
    if (status == QN_OK)
        status = make_code(l, use, &f, err);
    if (status == QN_OK)
        status = compile(l, f, &code, err);
    if (status == QN_OK) {
        f->info = code.info;
        f->plan = code.plan;
        memset(&code.plan, 0, sizeof code.plan);
        status = use->take(use->arg, f, &code, err);
    }
    qn__compiled_release(&code);
    qn_code_release(f);
    return status;
}

/** With arguments, which may be stand-ins. */
static qn_status make_for(qn_launch_state *l, const qn_kernel *k, const qn_options *o,
                          const qn_ahead_use *use, qn_error *err)
{
    qn_expanded *e = NULL;
    qn_options own = *o;
    own.executor = QN_SERIAL;
    own.stream = NULL;
    own.isa = o->isa ? o->isa : QN_ISA_V3;
    qn_status status = qn__state_open(l, k, &own, &e, err);
    if (status != QN_OK)
        return status;
    qn__context_retain(l->context);
    status = make(l, &own, use, err);
    qn__context_drop(l->context);
    qn__state_close(l, e);
    return status;
}

qn_status qn__ahead_make(const char *who, qn_context *c, const qn_kernel *k, int n,
                         const qn_arg *args, const qn_options *o, const qn_ahead_use *use,
                         qn_error *err)
{
    qn_launch_state l = {.who = who,
                         .context = c,
                         .n = n,
                         .args = args,
                         .takes_any_target = true,
                         .is_prepared = true};
    qn_limit x;
    stand_ins *s = NULL;
    const qn_options none = {.bytes = sizeof none};
    qn_options without = none;
    if (!c || !k)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "kernel" : "context");
    qn_status status = qn__limit_begin(who, c, &o, &x, err);
    if (status != QN_OK)
        return status;
    o = o ? o : &none;
    if (!args && o->specialize == QN_SPECIALIZE_GENERIC) {
        s = stand_ins_new(k);
        without = *o;
        without.strict = 0; /* ranges of stand-ins may be reversed */
        o = &without;
        l.n = k->n_params;
        l.args = s ? s->arg : NULL;
        status = s ? QN_OK
                   : qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who, k->name);
    }
    if (status == QN_OK)
        status = make_for(&l, k, o, use, err);
    stand_ins_release(s);
    return qn__limit_end(who, &x, status, err);
}

/* ---------------------------------------------------------------- bundles */

/** Atomics that are good for launches of one thread and of several. */
static qn_status prepare_for_bundle(void *arg, const qn_launch_state *l, qn_facts *facts,
                                    qn_error *err)
{
    (void)arg;
    (void)l;
    (void)err;
    if (facts->atomics == QN_ATOMICS_OF_ONE)
        facts->atomics = QN_ATOMICS_OF_THREADS;
    return QN_OK;
}

static qn_status add_to_bundle(void *arg, const qn_code *f, const qn_compiled *code, qn_error *err)
{
    qn_disk *disk = arg;
    qn_error why = {0};
    if (qn__stored_write(f->context, disk, f, &code->code, &code->descent, &why))
        return QN_OK;
    return qn__fail(err, QN_ERR_NOT_AVAILABLE, "qn_bundle_add: kernel \"%.60s\": %s",
                    f->kernel->name, why.message);
}

qn_status qn_bundle_add(qn_context *c, const char *bundle, const qn_kernel *k, int n,
                        const qn_arg *args, const qn_options *o, qn_error *err)
{
    if (!bundle || !bundle[0])
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_bundle_add: bundle is %s",
                        bundle ? "empty" : "NULL");
    qn_disk disk = {.folder = qn__strdup(bundle), .is_bundle = true, .most_bytes = INT64_MAX};
    if (!disk.folder)
        return qn__fail(err, QN_ERR_MEMORY, "qn_bundle_add: no memory");
    const qn_ahead_use use = {prepare_for_bundle, add_to_bundle, &disk};
    qn_status status = qn__ahead_make("qn_bundle_add", c, k, n, args, o, &use, err);
    qn__free(disk.folder);
    return status;
}
