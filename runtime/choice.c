/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.c: entries of what tuning chose, see choice.h. An entry is read as one from a stranger:
 * its key must be that of the launch but for plan options and schedule, so that an entry decides
 * how a kernel is walked and nothing else. A schedule in it is verified by the compile.
 */
#include "runtime/choice.h"
#include "runtime/stored.h"

#include <stdio.h>
#include <string.h>

enum { ENVIRONMENT_BYTES = 256, MOST_TEXT = 1 << 17 };

static qn_stored identity_of(const qn_context *c, const qn_kernel *k, const qn_text *key,
                             char environment[ENVIRONMENT_BYTES])
{
    qn_stored e = {.kind = QN_ENTRY_CHOICE};
    snprintf(environment, ENVIRONMENT_BYTES, "%s, %s", QN_BUILD_ID, c->processor);
    e.part[QN_STORED_ENVIRONMENT] = (qn_stored_part){environment, strlen(environment)};
    e.part[QN_STORED_KERNEL] = (qn_stored_part){k->canonical, k->canonical_bytes};
    e.part[QN_STORED_KEY] = (qn_stored_part){key->data, key->n};
    return e;
}

/** Whether a caller left the plan to the library. */
static bool is_open(const qn_facts *f)
{
    static const int32_t none[sizeof(qn_plan_options) / sizeof(int32_t)];
    return !f->schedule && memcmp(f->plan.order, none, sizeof f->plan.order) == 0
#define X(name, text, least, most, names_dim) &&f->plan.name == 0
                               QN_PLAN_LIST(X)
#undef X
        ;
}

/** Whether a chosen key has the facts of a key, and differs in plan options and schedule only. */
static bool is_choice_for(const qn_text *key, const void *chosen, size_t n)
{
    qn_facts facts = {0};
    qn_text plain = {0};
    qn_error ignored = {0};
    if (qn__key_decode(chosen, n, &facts, &ignored) != QN_OK)
        return false;
    char *schedule = facts.schedule;
    memset(&facts.plan, 0, sizeof facts.plan);
    facts.schedule = NULL;
    qn__key_encode(&facts, &plain);
    facts.schedule = schedule;
    bool is_same = !plain.failed && plain.n == key->n && memcmp(plain.data, key->data, key->n) == 0;
    qn__facts_release(&facts);
    qn__text_release(&plain);
    return is_same;
}

/** Takes the choice of an entry. False: it is none for the function. */
static bool take(qn_code *f, const qn_stored *e)
{
    const qn_stored_part *chosen = &e->part[QN_STORED_CODE], *text = &e->part[QN_STORED_PLAN];
    if (text->n == 0 || text->n > MOST_TEXT || memchr(text->data, 0, (size_t)text->n) ||
        !is_choice_for(&f->key, chosen->data, (size_t)chosen->n))
        return false;
    qn__text_bytes(&f->tuned, text->data, (size_t)text->n);
    if (chosen->n != f->key.n || memcmp(chosen->data, f->key.data, f->key.n) != 0)
        qn__text_bytes(&f->tuned_key, chosen->data, (size_t)chosen->n);
    if (f->tuned.failed || f->tuned_key.failed)
        qn__choice_drop(NULL, f, NULL);
    return true;
}

static bool find_in(qn_context *c, qn_disk *disk, qn_code *f, const qn_stored *wanted)
{
    qn_text bytes = {0};
    qn_stored e;
    bool is_found = qn__stored_look(c, disk, f, wanted, &bytes, &e);
    if (is_found && !take(f, &e)) {
        qn_error why = {0};
        qn__fail(&why, QN_ERR_NOT_AVAILABLE, "entry %s: it is no choice for its kernel and key",
                 qn__entry_name(&e).text);
        qn__stored_trouble(c, disk, f, QN_DISK_REFUSED, &why);
        is_found = false;
    }
    qn__text_release(&bytes);
    return is_found;
}

void qn__choice_find(qn_context *c, qn_code *f)
{
    char environment[ENVIRONMENT_BYTES];
    if (c->options.untuned || !qn__is_storable(c, f) || !is_open(&f->facts) ||
        (!c->disk.folder && !c->bundle.folder))
        return;
    qn__choice_drop(NULL, f, NULL);
    const qn_stored wanted = identity_of(c, f->kernel, &f->key, environment);
    if (!find_in(c, &c->disk, f, &wanted)) /* what was tuned here goes before what was shipped */
        find_in(c, &c->bundle, f, &wanted);
}

void qn__choice_drop(qn_context *c, qn_code *f, const qn_error *why)
{
    qn_text line = {0};
    qn__text_release(&f->tuned_key);
    qn__text_release(&f->tuned);
    if (!c || !why)
        return;
    qn__text_add(&line, "what tuning chose is not used: %s", why->message);
    qn__lock(c);
    if (line.data && !line.failed)
        qn__history_add(&c->history, f->kernel->name, line.data, -1);
    qn__unlock(c);
    qn__text_release(&line);
}

/** Forgets the version of a key, if it is ready. */
static void forget(qn_context *c, const qn_tuned *t)
{
    qn__lock(c);
    qn_code *f = qn__cache_function(&c->cache, t->kernel, t->key, QN_LOADER_ARENA);
    if (f && f->state == QN_READY)
        qn__cache_remove(&c->cache, f);
    qn__unlock(c);
    qn__cache_sweep(c);
}

bool qn__choice_keep(qn_context *c, const qn_tuned *t, qn_error *why)
{
    char environment[ENVIRONMENT_BYTES];
    qn_stored e = identity_of(c, t->kernel, t->key, environment);
    e.part[QN_STORED_NAME] = (qn_stored_part){t->kernel->name, strlen(t->kernel->name)};
    e.part[QN_STORED_PLAN] = (qn_stored_part){t->text, strlen(t->text)};
    e.part[QN_STORED_CODE] = (qn_stored_part){t->chosen->data, t->chosen->n};
    if (!c->disk.folder) {
        qn__fail(why, QN_ERR_NOT_AVAILABLE, "the cache on disk is off");
        return false;
    }
    bool is_kept = qn__stored_write_entry(&c->disk, &e, why);
    qn__lock(c);
    c->counters.disk_writes += is_kept;
    qn__unlock(c);
    if (is_kept)
        forget(c, t);
    return is_kept;
}
