/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_plan.c: random plans, and the count of what plans of a run do, so that what is never
 * reached shows.
 */
#include "differential.h"
#include "tests/tap.h"

#include <string.h>

/* ---------------------------------------------------------------- random plans */

/* A dimension of those, counted from 1 as plans do. */
static int32_t one_of(randoms *r, const int *dims, int n)
{
    return 1 + dims[random_below(r, n)];
}

static void random_tile(randoms *r, const int *parallel, int n, int often, qn_plan_options *p)
{
    if (n > 1 && random_percent(r, 2 * often / 3)) {
        p->jam_dim = one_of(r, parallel, n);
        p->jam = 1 + random_below(r, random_percent(r, 50) ? 7 : 16);
    }
    if (n > 2 && random_percent(r, 2 * often / 3)) {
        p->cross_dim = one_of(r, parallel, n);
        p->cross = 1 + random_below(r, random_percent(r, 80) ? 6 : 16);
    }
    if (n > 0 && random_percent(r, often / 2)) {
        p->tile_dim = one_of(r, parallel, n);
        p->tile = random_percent(r, 15) ? -1 : 1 + random_below(r, random_percent(r, 70) ? 9 : 200);
    }
}

static void random_order_of_loops(const test_case *t, randoms *r, int *parallel, int n,
                                  qn_plan_options *p)
{
    int n_loops = 0;
    for (int i = n - 1; i > 0; i--) {
        int at = random_below(r, i + 1), other = parallel[at];
        parallel[at] = parallel[i];
        parallel[i] = other;
    }
    for (int d = 0; d < t->n_dims; d++)
        if (t->dim[d].kind == KIND_SEQUENTIAL)
            p->order[n_loops++] = 1 + d;
    for (int i = 0; i < n; i++)
        p->order[n_loops++] = 1 + parallel[i];
}

void random_plan(const test_case *t, randoms *r, qn_plan_options *p)
{
    int parallel[MAX_DIMS],
        n = 0, often = random_percent(r, 50) ? 60 : 20; /* most fields are given, or few */
    for (int d = 0; d < t->n_dims; d++)
        if (t->dim[d].kind == KIND_PARALLEL)
            parallel[n++] = d;
    if (n > 0 && random_percent(r, often + 30))
        p->lane_dim = random_percent(r, 15) ? -1 : one_of(r, parallel, n);
    if (random_percent(r, often))
        p->width = 1 << random_below(r, 7);
    if (random_percent(r, often))
        p->unroll = 1 + random_below(r, random_percent(r, 70) ? 4 : 8);
    random_tile(r, parallel, n, often, p);
    if (random_percent(r, 45))
        p->streams = random_percent(r, 80) ? 1 : -1;
    if (random_percent(r, 20))
        p->transpose = -1;
    if (random_percent(r, 80))
        p->pack = random_percent(r, 15) ? -1 : 1;
    if (random_percent(r, 10))
        p->prefetch = -1;
    if (random_percent(r, 40))
        p->strip = random_percent(r, 20) ? -1 : 1 + random_below(r, 100);
    if (random_percent(r, 50))
        p->poll = 1 + random_below(r, random_percent(r, 50) ? 100 : 3000);
    if (random_percent(r, 40))
        p->apart = random_percent(r, 50) ? 1 : -1;
    if (random_percent(r, 40))
        p->team = random_percent(r, 60) ? 4 : 1 + random_below(r, 3);
    if (n > 1 && random_percent(r, often))
        random_order_of_loops(t, r, parallel, n, p);
}

/* ---------------------------------------------------------------- what plans do */

void note_text(const char *text)
{
    while (text && *text) {
        int n = (int)strcspn(text, "\n");
        tap_note("  %.*s", n, text);
        text += n + (text[n] == '\n');
    }
}

void note_way(const way *w)
{
    const qn_plan_options *p = &w->plan;
    char text[512];
    size_t n = 0;
#define QN_X(name, what, least, most, names_dim)                                                   \
    n += (size_t)snprintf(text + n, sizeof text - n, " " #name " %d", p->name);
    QN_PLAN_LIST(QN_X)
#undef QN_X
    tap_note("  way: %s, isa %d, specialize %d; plan%s order %d %d %d %d; %d threads, atomics %d",
             way_name(w->id), w->options.isa, w->options.specialize, text, p->order[0], p->order[1],
             p->order[2], p->order[3], w->options.max_threads, w->options.atomics);
    for (int i = 0; i < w->options.n_pins; i++)
        tap_note("  pin: number %d, dimension %d of argument %d: %d, multiple %d", w->pin[i].of,
                 w->pin[i].dim, w->pin[i].param, w->pin[i].as, (int)w->pin[i].multiple);
    note_text(w->schedule);
}

/* What a plan has, as its text shows: a line that begins so and, from there, not so. */
static const struct mark {
    const char *name, *begin, *not_so;
} marks[N_PLAN_MARKS] = {
#define QN_X(name, begin, not_so) {#name, begin, not_so},
    PLAN_MARK_LIST(QN_X)
#undef QN_X
};

const char *plan_mark_name(int i)
{
    return marks[i].name;
}

void count_plan(runner *r, const test_case *t, const qn_kernel *k, const way *w)
{
    enum { MOST_TEXT = 1 << 18 };
    static char text[MOST_TEXT];
    qn_code *f = NULL;
    if (qn_specialize(context_of(r, w), k, t->n_args, t->args, &w->options, &f, NULL))
        return;
    text[0] = '\n';
    size_t n = 1 + qn_code_text(f, QN_DUMP_PLAN, text + 1, sizeof text - 1);
    if (n < sizeof text)
        (void)qn_code_text(f, QN_DUMP_SCHEDULE, text + n, sizeof text - n);
    qn_code_release(f);
    bool is_gpu = strstr(text, "\nteam ") != NULL;
    for (int i = 0; i < N_PLAN_MARKS; i++) {
        const struct mark *m = &marks[i];
        const char *at = strstr(text, m->begin);
        bool is_of_gpu = m->name[0] == 'G';
        r->n_plans[i] +=
            at && is_of_gpu == is_gpu &&
            !(m->not_so[0] && !strncmp(at + strlen(m->begin), m->not_so, strlen(m->not_so)));
    }
}
