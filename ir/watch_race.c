/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_race.c: finds races. Memory is divided into granules, so small that each element, and each
 * part of one, is whole granules. Of each granule the first iteration is known that touched it in
 * each of four ways. Iterations come in order, so another iteration touched the granule in that way
 * exactly if the first one that did is not the one at work. Steps of sequential dimensions see what
 * earlier steps did: what an earlier step touched is forgotten.
 */
#include "ir/watch.h"

struct qn_granule {
    uint64_t number; /* address / bytes of a granule; 0: the slot is free */
    uint64_t step;   /* of the sequential dimensions: of an earlier step is nothing */
    uint64_t iteration[QN_N_TOUCHES]; /* the first that touched it so, UINT64_MAX: none */
    int32_t access[QN_N_TOUCHES];
};

enum { LEAST_SLOTS = 1024, MOST_SHIFT = 4 };

/* ---------------------------------------------------------------- what is watched */

/** Arguments in whose bytes the kernel may store. */
static uint64_t find_watched(const qn_kernel *k, int n, const qn_arg *args)
{
    uint64_t watched = 0;
    int64_t begin[QN_MAX_PARAMS], end[QN_MAX_PARAMS];
    for (int p = 0; p < n; p++)
        if (args[p].view)
            qn__view_bytes(args[p].view, &begin[p], &end[p]);
    for (int p = 0; p < n; p++) {
        for (int w = 0; args[p].view && w < n; w++) {
            if (!args[w].view || !k->param[w].is_written)
                continue;
            uintptr_t at = (uintptr_t)args[p].view->data, at_w = (uintptr_t)args[w].view->data;
            bool meets = at + (uintptr_t)begin[p] < at_w + (uintptr_t)end[w] &&
                         at_w + (uintptr_t)begin[w] < at + (uintptr_t)end[p];
            if (w == p || meets || k->expansion) /* members may be anywhere */
                watched |= UINT64_C(1) << p;
        }
    }
    return watched;
}

/** The largest granule of which all elements, and parts of them, are made. */
static int find_shift(const qn_kernel *k, int n, const qn_arg *args, uint64_t watched)
{
    uint64_t sum = UINT64_C(1) << MOST_SHIFT;
    for (int p = 0; p < n; p++) {
        const qn_view *v = args[p].view;
        if (!(watched >> p & 1))
            continue;
        sum |= (uint64_t)(uintptr_t)v->data | (uint64_t)qn__unit_bytes(v) | (k->expansion != NULL);
        for (int part = 0; part < qn__n_parts(v->dtype, v->record); part++)
            sum |= (uint64_t)qn__part_offset(v->dtype, v->record, part) |
                   (uint64_t)qn_dtype_bytes(qn__part_dtype(v->dtype, v->record, part));
    }
    return __builtin_ctzll(sum);
}

void qn__watch_open(qn_watch *w, int flags, const qn_kernel *k, int n, const qn_arg *args,
                    const qn_domain *domain)
{
    *w = (qn_watch){.flags = flags, .per_step = 1};
    for (int d = 0; d < k->n_dims; d++)
        if (qn__is_parallel(k, d))
            w->per_step *= (uint64_t)domain->end[d] - (uint64_t)domain->begin[d];
    if ((flags & QN_DEBUG_RACES) && w->per_step > 1)
        w->watched = find_watched(k, n, args);
    w->shift = find_shift(k, n, args, w->watched);
}

void qn__watch_close(qn_watch *w)
{
    qn__free(w->granule);
    w->granule = NULL;
}

/* ---------------------------------------------------------------- granules */

/** The slot of a granule, or the free one where it belongs. */
static qn_granule *find_slot(qn_granule *slots, size_t n_slots, uint64_t number)
{
    size_t at = (size_t)((number * 0x9fb21c651e98df25u) >> 20) & (n_slots - 1);
    while (slots[at].number && slots[at].number != number)
        at = (at + 1) & (n_slots - 1);
    return &slots[at];
}

static bool grow(qn_watch *w)
{
    size_t n = w->n_slots ? 2 * w->n_slots : LEAST_SLOTS;
    qn_granule *slots = qn__zalloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->granule[i].number)
            *find_slot(slots, n, w->granule[i].number) = w->granule[i];
    qn__free(w->granule);
    w->granule = slots;
    w->n_slots = n;
    return true;
}

/** What is known of a granule in this step, or NULL without memory. */
static qn_granule *granule_of(qn_watch *w, uint64_t number, uint64_t step)
{
    if (4 * w->n_used >= 3 * w->n_slots && !grow(w))
        return NULL;
    qn_granule *g = find_slot(w->granule, w->n_slots, number);
    if (g->number && g->step == step)
        return g;
    w->n_used += g->number == 0;
    *g = (qn_granule){.number = number, .step = step};
    for (int kind = 0; kind < QN_N_TOUCHES; kind++)
        g->iteration[kind] = UINT64_MAX;
    return g;
}

/** Whether two ways to touch an element are a race: one writes, and not both are atomic. */
static bool is_race(int a, int b)
{
    bool a_is_atomic = a >= QN_TOUCH_ATOMIC_LOAD, b_is_atomic = b >= QN_TOUCH_ATOMIC_LOAD;
    return ((a | b) & 1) != 0 && !(a_is_atomic && b_is_atomic);
}

static bool touch_granule(qn_watch *w, qn_granule *g, const qn_touch *t)
{
    for (int kind = 0; kind < QN_N_TOUCHES; kind++) {
        uint64_t before = g->iteration[kind];
        if (before == UINT64_MAX || before == t->iteration || !is_race(kind, t->kind))
            continue;
        w->has_race = true;
        w->first = (qn_touch){.iteration = before, .kind = kind, .access = g->access[kind]};
        w->second = *t;
        return true;
    }
    if (g->iteration[t->kind] == UINT64_MAX) {
        g->iteration[t->kind] = t->iteration;
        g->access[t->kind] = t->access;
    }
    return false;
}

bool qn__watch_touch(qn_watch *w, int argument, const qn_touch *t)
{
    if (w->has_race || w->failed || !(w->watched >> argument & 1))
        return false;
    uint64_t step = t->iteration / w->per_step, first = (uint64_t)t->at >> w->shift;
    uint64_t last = ((uint64_t)t->at + (uint64_t)t->bytes - 1) >> w->shift;
    for (uint64_t number = first; number <= last; number++) {
        qn_granule *g = granule_of(w, number, step);
        w->failed = !g;
        if (!g || touch_granule(w, g, t))
            return g != NULL;
    }
    return false;
}
