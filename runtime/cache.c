/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c: the two levels of cache.h as hash tables with chains, and their bound. Hashes find, full
 * comparisons decide. Entries borrow functions, so a function leaves the cache together with its
 * places in all entries.
 */
#include "runtime/cache.h"

#include <string.h>

enum { MOST_ARGS = 16384 };

static uint32_t bucket_of(uint64_t hash, uint32_t n)
{
    return (uint32_t)(hash >> 32) & (n - 1);
}

static uint64_t hash_pointer(const void *p)
{
    return ((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u;
}

static void count_known(qn_cache *c, int64_t bytes)
{
    c->bytes += bytes;
    c->known_bytes += bytes;
}

/* ---------------------------------------------------------------- kernels */

/** Of the record of a kernel, without its entries. */
static int64_t kernel_bytes(const qn_kernel *k)
{
    return (int64_t)(sizeof(qn_known_kernel) +
                     ((size_t)k->n_params + 1) *
                         (sizeof(qn_layout) + 2 * sizeof(qn_common) + 2 * sizeof(uint64_t)));
}

qn_known_kernel *qn__cache_kernel(qn_cache *c, const qn_kernel *k)
{
    qn_known_kernel *known = c->kernels[bucket_of(hash_pointer(k), QN_KERNEL_BUCKETS)];
    while (known && known->kernel != k)
        known = known->next;
    return known;
}

static void free_known(qn_known_kernel *known)
{
    qn__free(known->last);
    qn__free(known->common);
    qn__free(known->value);
    qn__free(known);
}

/** A record without what was met; NULL without memory. */
static qn_known_kernel *new_known(const qn_kernel *k)
{
    size_t n = (size_t)k->n_params + 1;
    qn_known_kernel *known = qn__zalloc(1, sizeof *known);
    if (!known)
        return NULL;
    known->last = qn__zalloc(n, sizeof *known->last);
    known->common = qn__zalloc(2 * n, sizeof *known->common);
    known->value = qn__zalloc(n, sizeof *known->value);
    if (known->last && known->common && known->value) {
        known->relied = known->common + n;
        return known;
    }
    free_known(known);
    return NULL;
}

/** Which scalars descriptions have the values of, and which may not change. */
static void describe_scalars(qn_known_kernel *known, const qn_domain *domain)
{
    const qn_kernel *k = known->kernel;
    memcpy(known->deciding, domain->scalars, sizeof known->deciding);
    for (int p = 0; p < k->n_params; p++) {
        const qn_pinned *pinned = &k->param[p].pinned;
        uint32_t bit = UINT32_C(1) << (p & 31);
        if (pinned->constant[QN_PIN_SCALAR] || pinned->exponent[QN_PIN_SCALAR][0])
            known->deciding[p >> 5] |= bit; /* code depends on these, too */
        else if (k->param[p].rank < 0 && !pinned->dynamic[QN_PIN_SCALAR])
            known->fixed[p >> 5] |= bit;
    }
    memcpy(known->scalars, known->deciding, sizeof known->scalars);
}

qn_known_kernel *qn__cache_learn(qn_cache *c, const qn_kernel *k, const qn_domain *domain)
{
    qn_known_kernel *known = qn__cache_kernel(c, k);
    if (known)
        return known;
    known = new_known(k);
    if (!known)
        return NULL;
    known->kernel = (qn_kernel *)(uintptr_t)k; /* only its reference count changes */
    qn_kernel_retain(known->kernel);
    describe_scalars(known, domain);
    known->last_use = ++c->clock;
    count_known(c, kernel_bytes(k));
    qn_known_kernel **bucket = &c->kernels[bucket_of(hash_pointer(k), QN_KERNEL_BUCKETS)];
    known->next = *bucket;
    *bucket = known;
    return known;
}

/** Of the shapes of a kernel. */
static int64_t trial_bytes(const qn_known_kernel *known)
{
    return known->trials.of ? QN_TRIALS * (int64_t)sizeof *known->trials.of : 0;
}

qn_trial *qn__cache_trials(qn_cache *c, qn_known_kernel *known)
{
    if (known->trials.of)
        return known->trials.of;
    known->trials.of = qn__zalloc(QN_TRIALS, sizeof *known->trials.of);
    count_known(c, trial_bytes(known));
    return known->trials.of;
}

/* ---------------------------------------------------------------- entries */

/** Whether two kernels are one text. */
static bool has_text_of(const qn_kernel *a, const qn_kernel *b)
{
    return a == b || (a->hash == b->hash && a->canonical_bytes == b->canonical_bytes &&
                      memcmp(a->canonical, b->canonical, a->canonical_bytes) == 0);
}

static void forget_provisional(const qn_known_kernel *known)
{
    for (qn_known_args *a = known->args; a; a = a->next_of_kernel)
        for (int i = 0; i < 2; i++)
            if (a->choice[i].is_provisional)
                a->choice[i] = (qn_choice){0};
}

void qn__cache_look_again(qn_cache *c, const qn_kernel *k)
{
    c->n_changes++;
    for (int b = 0; b < QN_KERNEL_BUCKETS; b++)
        for (qn_known_kernel *known = c->kernels[b]; known; known = known->next)
            if (has_text_of(known->kernel, k))
                forget_provisional(known);
}

qn_known_args *qn__cache_args(qn_cache *c, const qn_known_kernel *known, const qn_description *d)
{
    uint64_t hash = d->hash ^ hash_pointer(known);
    qn_known_args *a = c->args[bucket_of(hash, QN_ARG_BUCKETS)];
    for (; a; a = a->next)
        if (a->hash == hash && a->kernel == known && a->n_words == d->n &&
            memcmp(a->word, d->word, d->n * sizeof d->word[0]) == 0)
            return a;
    return NULL;
}

static void unlink_args(qn_cache *c, qn_known_args *a)
{
    qn_known_args **link = &c->args[bucket_of(a->hash, QN_ARG_BUCKETS)];
    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    count_known(c, -a->bytes);
    c->arg_bytes -= a->bytes;
    c->n_args--;
}

void qn__cache_forget_args(qn_cache *c, qn_known_kernel *known)
{
    known->recent = NULL;
    while (known->args) {
        qn_known_args *a = known->args;
        known->args = a->next_of_kernel;
        unlink_args(c, a);
        qn__free(a);
    }
}

static void forget_kernel(qn_cache *c, qn_known_kernel *known)
{
    qn__cache_forget_args(c, known);
    qn_known_kernel **link = &c->kernels[bucket_of(hash_pointer(known->kernel), QN_KERNEL_BUCKETS)];
    while (*link != known)
        link = &(*link)->next;
    *link = known->next;
    count_known(c, -kernel_bytes(known->kernel) - trial_bytes(known));
    qn_kernel_release(known->kernel);
    qn__free(known->trials.of);
    free_known(known);
}

/** The kernel that was not used longest, but not `keep`. */
static qn_known_kernel *oldest_kernel(qn_cache *c, const qn_known_kernel *keep)
{
    qn_known_kernel *oldest = NULL;
    for (int b = 0; b < QN_KERNEL_BUCKETS; b++)
        for (qn_known_kernel *k = c->kernels[b]; k; k = k->next)
            if (k != keep && (!oldest || k->last_use < oldest->last_use))
                oldest = k;
    return oldest;
}

/** Forgets entries, all of a kernel at a time, until no more than so many bytes and entries are
 * left.
 */
static void bound_args(qn_cache *c, int64_t bytes, int64_t n)
{
    while (c->arg_bytes > bytes || c->n_args > n) {
        qn_known_kernel *oldest = NULL;
        for (int b = 0; b < QN_KERNEL_BUCKETS; b++)
            for (qn_known_kernel *k = c->kernels[b]; k; k = k->next)
                if (k->args && (!oldest || k->last_use < oldest->last_use))
                    oldest = k;
        if (!oldest)
            return;
        qn__cache_forget_args(c, oldest);
    }
}

/** Forgets kernels until *bytes, which counts them too, is within the bound. The only one stays. */
static void bound_kernels(qn_cache *c, const int64_t *bytes, int64_t bound)
{
    while (*bytes > bound) {
        qn_known_kernel *known = oldest_kernel(c, NULL);
        if (!known || !oldest_kernel(c, known))
            return;
        forget_kernel(c, known);
    }
}

qn_known_args *qn__cache_add_args(qn_cache *c, qn_known_kernel *known, const qn_description *d,
                                  uint32_t n_pairs)
{
    bound_args(c, INT64_MAX, MOST_ARGS - 1);
    size_t n_params = (size_t)known->kernel->n_params, n_words = d->n;
    size_t bytes = sizeof(qn_known_args) + n_words * sizeof(uint64_t) + n_params * sizeof(qn_span) +
                   n_pairs * sizeof(qn_pair);
    qn_known_args *a = qn__zalloc(1, bytes);
    if (!a)
        return NULL;
    a->word = (uint64_t *)(void *)(a + 1);
    a->span = (qn_span *)(void *)(a->word + n_words);
    a->pair = (qn_pair *)(void *)(a->span + n_params);
    memcpy(a->word, d->word, n_words * sizeof(uint64_t));
    a->n_words = d->n;
    a->n_pairs = n_pairs;
    a->bytes = (int64_t)bytes;
    a->kernel = known;
    a->hash = d->hash ^ hash_pointer(known);
    a->next_of_kernel = known->args;
    known->args = a;
    qn_known_args **bucket = &c->args[bucket_of(a->hash, QN_ARG_BUCKETS)];
    a->next = *bucket;
    *bucket = a;
    count_known(c, a->bytes);
    c->arg_bytes += a->bytes;
    c->n_args++;
    return a;
}

/* ---------------------------------------------------------------- functions */

static uint64_t hash_function(const qn_kernel *k, const qn_text *key, int loader)
{
    return qn__hash(key->data, key->n, k->hash + (uint64_t)loader);
}

qn_code *qn__cache_function(const qn_cache *c, const qn_kernel *k, const qn_text *key,
                                int loader)
{
    uint64_t hash = hash_function(k, key, loader);
    qn_code *f = c->functions[bucket_of(hash, QN_FUNCTION_BUCKETS)];
    for (; f; f = f->next) {
        if (f->hash == hash && f->loader == loader && f->key.n == key->n &&
            memcmp(f->key.data, key->data, key->n) == 0 && has_text_of(f->kernel, k))
            return f;
    }
    return NULL;
}

void qn__cache_add_function(qn_cache *c, qn_code *f)
{
    qn_code **bucket = &c->functions[bucket_of(f->hash, QN_FUNCTION_BUCKETS)];
    qn__code_retain(f);
    f->is_cached = true;
    f->last_use = ++c->clock;
    f->next = *bucket;
    *bucket = f;
}

/** Bytes of code: pages in the arena, PTX, and the cubin made of it. */
static int64_t code_bytes(const qn_code *f)
{
    return (int64_t)(f->blob.bytes + f->ptx.capacity + f->cubin.capacity);
}

void qn__cache_weigh(qn_cache *c, qn_code *f)
{
    const qn_facts *facts = &f->facts;
    if (f->bytes) { /* it has grown */
        c->bytes -= f->bytes;
        c->code_bytes -= f->code_bytes;
    } else {
        c->n_functions += f->state == QN_READY;
    }
    f->code_bytes = code_bytes(f);
    f->bytes = f->code_bytes +
               (int64_t)(sizeof *f + f->key.capacity + f->tuned_key.capacity + f->tuned.capacity +
                         f->reason.capacity + f->plan.capacity + f->llvm.capacity +
                         f->assembly.capacity + f->schedule.capacity + f->estimate.capacity +
                         f->kernel->canonical_bytes +
                         (size_t)facts->n_params * sizeof *facts->param +
                         (size_t)facts->n_digits * sizeof *facts->digit);
    c->bytes += f->bytes;
    c->code_bytes += f->code_bytes;
}

void qn__cache_grown(qn_cache *c, qn_code *f)
{
    if (f->is_cached && f->bytes)
        qn__cache_weigh(c, f);
}

void qn__cache_remove(qn_cache *c, qn_code *f)
{
    for (int b = 0; f->state == QN_READY && b < QN_ARG_BUCKETS; b++)
        for (qn_known_args *a = c->args[b]; a; a = a->next)
            for (int i = 0; i < 2; i++)
                if (a->choice[i].function == f)
                    a->choice[i] = (qn_choice){0};
    qn_code **link = &c->functions[bucket_of(f->hash, QN_FUNCTION_BUCKETS)];
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    if (f->bytes) {
        c->bytes -= f->bytes;
        c->code_bytes -= f->code_bytes;
        c->n_functions -= f->state == QN_READY;
    }
    f->is_cached = false;
    f->next = c->dropped;
    c->dropped = f;
}

static bool is_pinned(const qn_cache *c, const qn_code *f)
{
    for (int i = 0; i < QN_PINS; i++)
        if (atomic_load_explicit(&c->pin[i], memory_order_acquire) == f)
            return true;
    return false;
}

qn_pin *qn__cache_pin(qn_cache *c, qn_code *f)
{
    for (int i = 0; i < QN_PINS; i++) {
        if (atomic_load_explicit(&c->pin[i], memory_order_acquire))
            continue;
        atomic_store_explicit(&c->pin[i], f, memory_order_relaxed);
        return &c->pin[i];
    }
    return NULL;
}

qn_code *qn__cache_take_dropped(qn_cache *c)
{
    qn_code **link = &c->dropped;
    while (*link && is_pinned(c, *link))
        link = &(*link)->next;
    qn_code *f = *link;
    if (f)
        *link = f->next;
    return f;
}

static qn_code *oldest_function(const qn_cache *c, const qn_code *keep)
{
    qn_code *oldest = NULL;
    for (int b = 0; b < QN_FUNCTION_BUCKETS; b++)
        for (qn_code *f = c->functions[b]; f; f = f->next)
            if (f != keep && f->state != QN_BUILDING && (!oldest || f->last_use < oldest->last_use))
                oldest = f;
    return oldest;
}

int qn__cache_evict(qn_cache *c, int64_t bound, int64_t code_bound, const qn_code *keep)
{
    int n = 0;
    /* What is known is soon found out again, code takes longer: it has one half for itself. */
    bound_args(c, bound / 2, MOST_ARGS);
    bound_kernels(c, &c->known_bytes, bound / 2);
    while (c->bytes > bound || c->code_bytes > code_bound) {
        qn_code *f = oldest_function(c, keep);
        if (!f)
            break;
        qn__cache_remove(c, f);
        n++;
    }
    bound_kernels(c, &c->bytes, bound);
    return n;
}

void qn__cache_clear(qn_cache *c)
{
    for (int b = 0; b < QN_KERNEL_BUCKETS; b++)
        while (c->kernels[b])
            forget_kernel(c, c->kernels[b]);
    for (int b = 0; b < QN_FUNCTION_BUCKETS; b++)
        while (c->functions[b])
            qn__cache_remove(c, c->functions[b]);
}

void qn__cache_forked(qn_cache *c)
{
    for (int i = 0; i < QN_PINS; i++)
        qn__cache_unpin(&c->pin[i]); /* of threads that are not here */
    for (int b = 0; b < QN_FUNCTION_BUCKETS; b++) {
        for (qn_code **link = &c->functions[b]; *link;) {
            qn_code *f = *link;
            if (f->state == QN_BUILDING)
                *link = f->next; /* stays behind with the thread that built it */
            else
                link = &f->next;
        }
    }
}
