/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_schedule.c: random legal schedules. One begins with the kernel as declared or with
 * what is planned, and is changed by steps of the table of transformations with random operands;
 * steps that the verifier refuses are left out. Kernel and facts are those that the code generator
 * has, so that instructions have its numbers.
 */
#include "differential_draw.h"
#include "jit/schedule/planned.h"
#include "runtime/tier.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { MOST_TRIES = 80, MOST_DRAWN_STEPS = 8 };

/* ---------------------------------------------------------------- what is scheduled */

/** Kernel and facts as the code generator reads them from a request. Where the schedule is
 * interpreted as a tree the dimensions are those of the launch. */
static bool read_request(drawing *d, const qn_kernel *k, const qn_text *key, bool has_launch_dims)
{
    qn_error err = {0};
    if (qn__kernel_parse_canonical(k->canonical, k->canonical_bytes, &d->kernel, &err) ||
        qn__key_decode(key->data, key->n, &d->facts, &err))
        return false;
    qn__drop_assertions(d->kernel, &d->facts);
    qn__select_sides(d->kernel, &d->facts);
    qn__share_loads(d->kernel, &d->facts);
    if (!has_launch_dims)
        qn__collapse(d->kernel, &d->facts);
    return qn__analyse_scalar(d->kernel, &d->facts, &d->x, &err) == QN_OK;
}

static bool open_request(drawing *d, const qn_options *o, bool has_launch_dims)
{
    qn_launch_state *l = &d->launch;
    qn_learned learned;
    qn_facts facts = {0};
    qn_text key = {0};
    if (qn__launch_check(l, o, NULL) || l->n_iterations == 0) /* no code is asked for */
        return false;
    const qn_policy policy = qn__version_policy(l, false, &learned);
    bool is_open = qn__version_key(l, &policy, &facts, &key, NULL) == QN_OK;
    if (is_open) {
        is_open = read_request(d, l->kernel, &key, has_launch_dims);
        qn__facts_release(&facts);
    }
    qn__text_release(&key);
    return is_open;
}

bool open_drawing(drawing *d, runner *r, const test_case *t, const qn_kernel *k, const way *w)
{
    qn_options o = w->options;
    *d = (drawing){.r = r,
                   .launch = {.who = "differential",
                              .context = context_of(r, w),
                              .n = t->n_args,
                              .args = t->args,
                              .takes_any_target = true}};
    o.schedule = NULL;
    if (o.executor == QN_CUDA) { /* what is known of the host's arrays holds for their copies */
        o.executor = QN_SERIAL;
        o.isa = QN_ISA_SM80;
    }
    d->now = calloc(1, sizeof *d->now);
    d->before = calloc(1, sizeof *d->before);
    if (!d->now || !d->before || qn__state_open(&d->launch, k, &o, &d->expanded, NULL))
        return false;
    d->is_open = true;
    return open_request(d, &o, is_tree(w->id));
}

void close_drawing(drawing *d)
{
    qn__analysis_release(&d->x);
    qn__facts_release(&d->facts);
    qn_kernel_release(d->kernel);
    if (d->is_open)
        qn__state_close(&d->launch, d->expanded);
    free(d->now);
    free(d->before);
}

/* ---------------------------------------------------------------- counts */

/** Counts a form without code, by the words of the message that name the form. */
static void count_form(schedule_counts *n, const char *message)
{
    static const char before[] = "no code is generated for ";
    const char *form = strstr(message, before);
    form = form ? form + sizeof before - 1 : message;
    const char *colon = strstr(form, ": "), *end = strstr(form, " yet");
    size_t length = colon ? (size_t)(colon - form) : end ? (size_t)(end - form) : strlen(form);
    int i = 0;
    length = length < sizeof n->form[0].name ? length : sizeof n->form[0].name - 1;
    while (i < n->n_forms && (strncmp(n->form[i].name, form, length) || n->form[i].name[length]))
        i++;
    if (i == MOST_FORMS)
        return;
    if (i == n->n_forms)
        memcpy(n->form[n->n_forms++].name, form, length);
    n->form[i].n++;
}

/** Whether code is generated for a schedule that was verified. */
static bool has_code(drawing *d)
{
    qn_error err = {0};
    qn_grid grid;
    qn_block block;
    qn_status status = qn__planned_read(&d->x, d->now, &grid, &block, &err);
    d->r->schedules.n_legal++;
    d->r->schedules.n_without_code += status != QN_OK;
    if (status != QN_OK)
        count_form(&d->r->schedules, err.message);
    return status == QN_OK;
}

/* ---------------------------------------------------------------- steps */

/** Whether the last step changed nothing but the history. */
static bool is_as_before(const drawing *d)
{
    const qn_schedule *a = d->before, *b = d->now;
    return a->n_axes == b->n_axes && a->n_nodes == b->n_nodes && a->n_buffers == b->n_buffers &&
           a->n_records == b->n_records &&
           memcmp(a->cut, b->cut, (size_t)a->n_cuts * sizeof *a->cut) == 0 &&
           memcmp(a->node, b->node, ((size_t)a->n_nodes + 1) * sizeof *a->node) == 0 &&
           memcmp(a->reduction, b->reduction, (size_t)a->n_reductions * sizeof *a->reduction) ==
               0 &&
           memcmp(a->record, b->record, (size_t)a->n_records * sizeof *a->record) == 0;
}

/** Applies a step; false if it is refused or changes nothing, or code is wanted and there is none
 * for the result. */
static bool take_step(drawing *d, const qn_step *step, way *w, bool needs_code)
{
    schedule_counts *n = &d->r->schedules;
    int n_axes = d->now->n_axes;
    qn__schedule_copy(d->now, d->before);
    n->row[step->which].tried++;
    if (qn__transform(&d->x, d->now, step, NULL) != QN_OK)
        return false;
    if (is_as_before(d)) {
        d->now->n_steps--;
        return false;
    }
    n->row[step->which].legal++;
    bool was_lowered = d->is_lowered;
    d->is_lowered = !is_tree(w->id) && has_code(d);
    if (needs_code && was_lowered && !d->is_lowered) {
        qn__schedule_copy(d->before, d->now);
        d->is_lowered = true;
        return false;
    }
    d->last = (qn_axis){d->now->n_axes > n_axes ? (uint16_t)d->now->n_axes : 0};
    w->rows |= UINT64_C(1) << step->which;
    return true;
}

/** Applies the steps of a text that are possible. */
static void take_text(drawing *d, const char *at, way *w)
{
    while (*at) {
        size_t n = strcspn(at, ";") + 1, length = strcspn(at, " ");
        for (int i = 0; i < qn__n_transforms; i++)
            if (strncmp(qn__transforms[i].name, at, length) == 0 && !qn__transforms[i].name[length])
                d->r->schedules.row[i].tried++;
        if (qn__transform_text(&d->x, d->now, at, n, NULL) == QN_OK) {
            int which = d->now->step[d->now->n_steps - 1].which;
            d->r->schedules.row[which].legal++;
            w->rows |= UINT64_C(1) << which;
        }
        at += n + strspn(at + n, " ");
    }
    d->is_lowered = !is_tree(w->id) && has_code(d);
}

/** Makes the kernel as declared one of a grid; whether the result may be kept. */
static bool take_grid(drawing *d, way *w, bool needs_code)
{
    char text[2048];
    draw_grid(d->random, d->kernel, text, sizeof text);
    w->rows = 0;
    take_text(d, text, w);
    return d->is_lowered || !needs_code;
}

static void draw_steps(drawing *d, way *w, bool needs_code)
{
    int left = 1 + random_below(d->random, MOST_DRAWN_STEPS);
    for (int tries = 0; tries < MOST_TRIES && left > 0 && d->now->n_nodes > 0; tries++) {
        qn_step step = random_step(d);
        left -= take_step(d, &step, w, needs_code);
    }
}

/* ---------------------------------------------------------------- schedules */

/** That of the kernel as declared, or of what is planned, where a schedule can say that. */
static bool begin(drawing *d, const way *w)
{
    qn_planned planned;
    bool is_begun = false;
    if (w->is_planned) {
        qn__planned_make(d->kernel, &d->facts, &planned);
        is_begun = qn__planned_schedule(&planned, NULL) == QN_OK;
        if (is_begun)
            *d->now = *planned.schedule;
        qn__planned_release(&planned);
    }
    is_begun = is_begun || (qn__schedule_begin(&d->x, d->now, NULL) == QN_OK &&
                            qn__schedule_verify(&d->x, d->now, NULL) == QN_OK);
    d->is_lowered = is_begun && !is_tree(w->id) && has_code(d);
    return is_begun;
}

/** Begins with steps that lead to a rare row, where the kernel has something for one. */
static void take_recipe(drawing *d, way *w, bool needs_code)
{
    char text[1024];
    const way before = *w;
    if (!draw_recipe(d, text, sizeof text))
        return;
    w->is_planned = false;
    w->rows = 0;
    if (begin(d, w))
        take_text(d, text, w);
    if (needs_code && !d->is_lowered) {
        *w = before;
        (void)begin(d, w);
    }
}

/** Steps as text, each ended by ';'. */
static void note_steps(const drawing *d, way *w)
{
    qn_text text = {0};
    for (int n = 0; n < d->now->n_steps; n++) {
        qn__step_print(d->now, &d->now->step[n], &text);
        qn__text_add(&text, "; ");
    }
    snprintf(w->steps, sizeof w->steps, "%s", text.data && !text.failed ? text.data : "");
    qn__text_release(&text);
}

/** Whether the steps of a row change access records and nothing else. */
static bool is_of_records(const char *row)
{
    static const char *const rows[] = {"stream", "prefetch", "group", "table"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i], row) == 0)
            return true;
    return false;
}

/** Leaves out the access records, which the code generator adds. What was asked of one is lost, so
 * that the schedule may not be legal any more: then all stay. */
static void drop_records(drawing *d, way *w)
{
    qn_grid grid;
    qn_block block;
    qn__schedule_copy(d->now, d->before);
    d->before->n_records = 0;
    w->has_records = qn__schedule_complete(&d->x, d->before, NULL) != QN_OK ||
                     qn__schedule_verify(&d->x, d->before, NULL) != QN_OK;
    if (w->has_records)
        return;
    d->is_lowered = qn__planned_read(&d->x, d->before, &grid, &block, NULL) == QN_OK;
    d->now->n_records = 0;
    for (int i = 0; i < qn__n_transforms; i++)
        if (is_of_records(qn__transforms[i].name))
            w->rows &= ~(UINT64_C(1) << i);
}

/** The text becomes that of the way. */
static bool give(drawing *d, way *w)
{
    qn_text text = {0};
    if (!w->has_records)
        drop_records(d, w);
    qn__schedule_print(d->now, &text);
    bool fits = text.data && !text.failed && text.n <= QN_MAX_SCHEDULE_BYTES;
    w->schedule = fits ? malloc(text.n + 1) : NULL;
    if (w->schedule) {
        memcpy(w->schedule, text.data, text.n);
        w->schedule[text.n] = 0;
    }
    qn__text_release(&text);
    char *changed = w->change && w->schedule ? change_text(w->schedule, w->change) : NULL;
    if (changed) {
        free(w->schedule);
        w->schedule = changed;
    }
    w->options.schedule = w->schedule;
    w->is_lowered = d->is_lowered;
    return w->schedule != NULL;
}

bool draw_schedule(runner *r, const test_case *t, randoms *random, way *w)
{
    drawing d;
    bool is_given = false, is_on_grid = false;
    w->is_planned = random_percent(random, has_grid(w->id) ? 15 : 50);
    w->has_records = random_percent(random, 75);
    bool needs_code = random_percent(random, 85) && !is_tree(w->id);
    if (open_drawing(&d, r, t, t->kernel, w) && begin(&d, w)) {
        d.random = random;
        w->is_planned &= d.is_lowered || !has_grid(w->id);
        if (!has_grid(w->id) && random_percent(random, 70))
            take_recipe(&d, w, needs_code);
        for (int tries = 0; tries < 6 && has_grid(w->id) && !w->is_planned && !is_on_grid; tries++)
            is_on_grid = begin(&d, w) && take_grid(&d, w, needs_code);
        if (!has_grid(w->id) || random_percent(random, 20))
            draw_steps(&d, w, needs_code);
        note_steps(&d, w);
        is_given = give(&d, w);
        r->schedules.n_given += is_given && !is_tree(w->id) && !w->change;
    }
    close_drawing(&d);
    return is_given;
}

bool redraw_schedule(runner *r, const test_case *t, const qn_kernel *k, way *w)
{
    drawing d;
    bool is_given = false;
    w->schedule = NULL;
    if (open_drawing(&d, r, t, k, w) && begin(&d, w)) {
        take_text(&d, w->steps, w);
        is_given = give(&d, w);
    }
    close_drawing(&d);
    return is_given;
}

void release_schedule(way *w)
{
    free(w->schedule);
    w->schedule = NULL;
    w->options.schedule = NULL;
}

/* ---------------------------------------------------------------- summary */

bool is_of_schedule(const runner *r, const test_case *t, const qn_kernel *k, const way *w)
{
    qn_code *f = NULL;
    size_t n = strlen(w->schedule);
    if (w->options.executor == QN_CUDA) /* its arrays were on the device */
        return true;
    char *text = malloc(QN_MAX_SCHEDULE_BYTES + 4096);
    if (!text || qn_specialize(context_of(r, w), k, t->n_args, t->args, &w->options, &f, NULL)) {
        free(text);
        return false;
    }
    (void)qn_code_text(f, QN_DUMP_PLAN, text, QN_MAX_SCHEDULE_BYTES + 4096);
    qn_code_release(f);
    bool is_it =
        w->has_records ? strncmp(text, w->schedule, n) == 0 : strncmp(text, "schedule {", 10) == 0;
    free(text);
    return is_it;
}

void count_rows(runner *r, const way *w)
{
    for (int i = 0; i < qn__n_transforms; i++)
        if (w->rows >> i & 1)
            ++*(is_tree(w->id) ? &r->schedules.row[i].interpreted : &r->schedules.row[i].lowered);
}

bool is_every_row_legal(const runner *r)
{
    for (int i = 0; i < qn__n_transforms; i++)
        if (r->schedules.row[i].legal == 0) {
            tap_note("no step \"%s\" was legal", qn__transforms[i].name);
            return false;
        }
    return true;
}

void summarise_schedules(const schedule_counts *n)
{
    tap_note("schedules: %" PRId64 " legal schedules, %" PRId64
             " of them without code; %" PRId64 " launches with one, %" PRId64 " lowered, %" PRId64
             " refused, %" PRId64 " too large; %" PRId64 " interpreted as trees, %" PRId64
             " too large for that",
             n->n_legal, n->n_without_code, n->n_given, n->n_lowered, n->n_refused, n->n_too_large,
             n->n_trees, n->n_large_trees);
    tap_note("schedules with words changed: %" PRId64 " refused, %" PRId64 " run",
             n->n_changed_refused, n->n_changed_run);
    for (int i = 0; i < qn__n_transforms; i++)
        tap_note("%-11s drawn %6" PRId64 ", legal %5" PRId64
                 "; in launches that ran its code %4" PRId64 ", in trees %4" PRId64,
                 qn__transforms[i].name, n->row[i].tried, n->row[i].legal, n->row[i].lowered,
                 n->row[i].interpreted);
    for (int i = 0; i < n->n_forms; i++)
        tap_note("no code for %s: %" PRId64, n->form[i].name, n->form[i].n);
}
