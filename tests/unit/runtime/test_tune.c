/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tune.c: qn_tune. Which candidate is the fastest is for the machine to say, so the tests ask
 * what must hold whichever it is: arrays as before, wrong results refused, the choice of an entry
 * followed and its bits those of the interpreter, entries that are damaged or of others not used.
 */
#define _GNU_SOURCE
#include "quern/cache.h"
#include "quern/embed.h"
#include "runtime/choice.h"
#include "runtime/tune.h"
#include "tests/unit/launch.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };
static char root[] = "/tmp/test_tune.XXXXXX";
static qn_error err;
static const qn_tune_options quick = {.bytes = sizeof quick, .seconds = 0.3, .most_candidates = 24};

/** A context with a folder of the scratch folder, or without one. */
static qn_context *open_context(const char *folder)
{
    char text[256];
    snprintf(text, sizeof text, "%s/%s", root, folder ? folder : "none");
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = folder ? text : "off"};
    return context_with(&o);
}

/** y = a x + y, in place; x and y of N elements. */
typedef struct setup {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
    qn_arg args[3];
} setup;

static void set_up(setup *s, const char *folder)
{
    s->c = open_context(folder);
    s->k = kernel_of(SAXPY_TEXT);
    s->x = vector_of(s->c, "x", QN_F32, N);
    s->y = vector_of(s->c, "y", QN_F32, N);
    fill_f32(&s->x, 1, 1);
    fill_f32(&s->y, 5, 2);
    s->args[0] = qn_arg_view(&s->x);
    s->args[1] = qn_arg_view(&s->y);
    s->args[2] = qn_arg_f32(3);
}

static void tear_down(setup *s)
{
    qn_view_release(&s->x);
    qn_view_release(&s->y);
    qn_kernel_release(s->k);
    qn_context_release(s->c);
}

static bool is_untouched(const setup *s)
{
    for (int i = 0; i < N; i++)
        if (((float *)s->x.data)[i] != 1 + (float)i || ((float *)s->y.data)[i] != 5 + 2 * (float)i)
            return false;
    return true;
}

/** Launches once: whether y is what it should be. */
static bool launches_right(setup *s)
{
    fill_f32(&s->y, 5, 2);
    if (qn_launch(s->c, s->k, 3, s->args, NULL, &err) != QN_OK)
        return false;
    for (int i = 0; i < N; i++)
        if (((float *)s->y.data)[i] != 3 * (1 + (float)i) + 5 + 2 * (float)i)
            return false;
    return true;
}

/* ---------------------------------------------------------------- a run of the tuner */

/** What a progress function was told. */
typedef struct told {
    int n, n_of[QN_N_TUNE_STATES], most;
    bool is_in_order, parses;
    const qn_kernel *k;
} told;

static int32_t listen(void *arg, const qn_tune_candidate *c)
{
    told *t = arg;
    qn_options *o = NULL;
    t->is_in_order = t->is_in_order && c->number == t->n;
    t->parses = t->parses && qn_options_parse(c->choice, t->k, &o, NULL) == QN_OK;
    qn_options_release(o);
    t->n_of[c->state]++;
    return ++t->n >= t->most;
}

static void test_run(void)
{
    setup s;
    char choice[256] = "?";
    qn_tune_result r;
    set_up(&s, "run");
    told t = {.is_in_order = true, .parses = true, .most = 1000, .k = s.k};
    qn_tune_options o = quick;
    o.seconds = 2; /* time for some candidates, also where other programs run or code is slow */
    o.progress = listen;
    o.progress_arg = &t;
    o.choice = choice;
    o.choice_bytes = sizeof choice;
    qn_status status = qn_tune(s.c, s.k, 3, s.args, NULL, &o, &r, sizeof r, &err);
    tap_ok(status == QN_OK, "a kernel is tuned %s", err.message);
    tap_ok(is_untouched(&s), "the arrays are what they were");
    tap_ok(r.n_candidates == t.n && t.n > 5 && t.n <= 24 && t.is_in_order,
           "each candidate is told once, in order: %d", t.n);
    tap_ok(r.n_measured == t.n_of[QN_TUNE_MEASURED] && r.n_refused == t.n_of[QN_TUNE_REFUSED],
           "the counts are those that were told");
    tap_ok(t.n_of[QN_TUNE_MEASURED] > 1 && t.n_of[QN_TUNE_SAME] > 0,
           "some have code of their own, some have not");
    tap_ok(r.n_wrong == 0 && r.compared == QN_TUNE_WITH_INTERPRETER,
           "all were compared with the interpreter, and none is wrong");
    tap_ok(t.parses, "each choice is words of options");
    tap_ok(r.planned_ns > 0 && r.best_ns > 0 && r.gain >= 1, "there are times");
    tap_ok(r.choice_bytes == (int64_t)strlen(choice) && (r.gain > 1) == (choice[0] != 0),
           "the choice is copied: \"%s\"", choice);
    tap_ok(r.is_kept == 1 && history_has(s.c, "tuned, "), "it is kept, and the history says so");
    tap_ok(launches_right(&s) && history_has(s.c, "; tuned: "), "a launch follows it");
    tear_down(&s);
}

static void test_end(void)
{
    setup s;
    qn_tune_result r;
    set_up(&s, NULL);
    told t = {.most = 2, .k = s.k};
    qn_tune_options o = quick;
    o.progress = listen;
    o.progress_arg = &t;
    tap_ok(qn_tune(s.c, s.k, 3, s.args, NULL, &o, &r, sizeof r, &err) == QN_OK &&
               r.n_candidates == 2,
           "progress ends the search");
    tap_ok(r.is_kept == 0, "without a cache on disk nothing is kept");
    volatile int32_t flag = 1;
    const qn_options cancelled = {.bytes = sizeof cancelled, .cancel = &flag};
    tap_ok(qn_tune(s.c, s.k, 3, s.args, &cancelled, &quick, &r, sizeof r, &err) == QN_ERR_CANCELLED,
           "a flag that is set cancels");
    const qn_options soon = {.bytes = sizeof soon, .timeout_ns = 30000000};
    o = (qn_tune_options){.bytes = sizeof o, .seconds = 30, .most_candidates = 1000};
    double begin = qn__now_ms();
    tap_ok(qn_tune(s.c, s.k, 3, s.args, &soon, &o, &r, sizeof r, &err) == QN_ERR_CANCELLED,
           "so does a time limit: %s", err.message);
    tap_ok(qn__now_ms() - begin < 15000, "... long before the budget is used up");
    tap_ok(is_untouched(&s), "the arrays are what they were");
    o.seconds = 0.01;
    tap_ok(qn_tune(s.c, s.k, 3, s.args, NULL, &o, &r, sizeof r, &err) == QN_OK &&
               r.n_candidates < 200,
           "a short budget ends the search: %d candidates", r.n_candidates);
    tear_down(&s);
}

/* ---------------------------------------------------------------- wrong results */

/** Damages an element after each run of some candidates. */
typedef struct damage {
    float *at;
    int first; /* candidate from which on; -2: all, the interpreter's too */
} damage;

static void damage_run(void *arg, int number)
{
    const damage *d = arg;
    if (number >= d->first)
        *d->at += 1;
}

static void test_wrong(void)
{
    setup s;
    qn_tune_result r;
    set_up(&s, "wrong");
    damage d = {.at = (float *)s.y.data + 77, .first = 1};
    const qn_tune_hook hook = {damage_run, &d};
    told t = {.most = 1000, .k = s.k, .parses = true, .is_in_order = true};
    qn_tune_options o = quick;
    o.progress = listen;
    o.progress_arg = &t;
    tap_ok(qn__tune(s.c, s.k, 3, s.args, NULL, &o, &hook, &r, &err) == QN_OK,
           "candidates with a wrong element %s", err.message);
    tap_ok(t.n_of[QN_TUNE_WRONG] > 0 && t.n_of[QN_TUNE_MEASURED] == 1 &&
               r.n_wrong == t.n_of[QN_TUNE_WRONG],
           "are told as wrong, and not measured: %d", r.n_wrong);
    tap_ok(r.gain == 1 && r.choice_bytes == 0, "none of them is kept");
    tap_ok(is_untouched(&s), "the arrays are what they were");
    d.first = 0;
    tap_ok(qn__tune(s.c, s.k, 3, s.args, NULL, &o, &hook, &r, &err) == QN_ERR_INTERNAL,
           "where the planner's choice is wrong, the call fails");
    tap_contains(err.message, "the interpreter has other results: y: byte 309",
                 "... and says where");
    tap_ok(is_untouched(&s), "the arrays are what they were");
    tear_down(&s);
}

/** Bits of NaNs are free, all other bits are not. */
static void test_compare(void)
{
    setup s;
    qn_tune_memory m = {0};
    uint32_t nan[2] = {0x7fc00000, 0xffc00001};
    set_up(&s, NULL);
    float *y = s.y.data;
    tap_ok(qn__tune_save(&m, "test", s.k, 3, s.args, &err) == QN_OK && m.n_blocks == 1 &&
               m.is_in_place,
           "one array is written, in place");
    memcpy(&y[3], &nan[0], 4);
    qn__tune_expect(&m);
    tap_ok(qn__tune_is_expected(&m, &err), "what is expected");
    memcpy(&y[3], &nan[1], 4);
    tap_ok(qn__tune_is_expected(&m, &err), "a NaN with other bits");
    y[3] = 1;
    tap_ok(!qn__tune_is_expected(&m, &err), "a number instead of a NaN");
    qn__tune_restore(&m, &err);
    y[0] = 0;
    qn__tune_expect(&m);
    y[0] = -0.0f;
    tap_ok(!qn__tune_is_expected(&m, &err), "another zero");
    qn__tune_restore(&m, &err);
    tap_ok(is_untouched(&s), "put back");
    y[5] = 99;
    qn__tune_expect(&m);
    qn__tune_restore(&m, &err);
    tap_ok(qn__tune_is_begun(&m, &err), "nothing was stored yet");
    y[5] = 98;
    tap_ok(qn__tune_is_begun(&m, &err), "one element was being made");
    y[6] = 98;
    tap_ok(!qn__tune_is_begun(&m, &err), "something else was stored");
    qn__tune_restore(&m, &err);
    qn__tune_release(&m);
    s.args[0] = qn_arg_view(&s.y);
    tap_ok(qn__tune_save(&m, "test", s.k, 3, s.args, &err) == QN_OK && m.n_blocks == 1,
           "an array that is there twice is saved once");
    qn__tune_release(&m);
    tear_down(&s);
}

/* ---------------------------------------------------------------- choices on disk */

/** The key of code, with options. */
static qn_text key_with(setup *s, const qn_options *o)
{
    qn_text key = {0};
    qn_code *f = NULL;
    if (qn_specialize(s->c, s->k, 3, s->args, o, &f, &err) == QN_OK)
        qn__text_bytes(&key, f->key.data, f->key.n);
    qn_code_release(f);
    return key;
}

/** Writes a choice for the kernel into the folder of the context: the key of these options. */
static bool keep(setup *s, const qn_options *o, const char *words)
{
    static const qn_options x86 = {.bytes = sizeof x86, .engine = QN_ENGINE_NATIVE};
    qn_text key = key_with(s, &x86), chosen = key_with(s, o);
    const qn_tuned t = {.kernel = s->k, .key = &key, .chosen = &chosen, .text = words};
    bool is_kept = key.n && chosen.n && qn__choice_keep(s->c, &t, &err);
    qn__text_release(&key);
    qn__text_release(&chosen);
    return is_kept;
}

static const qn_plan_options narrow = {.bytes = sizeof narrow, .width = 2, .unroll = 1};
static const qn_options narrow_options = {
    .bytes = sizeof narrow_options, .engine = QN_ENGINE_NATIVE, .plan = &narrow};

/** The plan that a launch without options runs under. */
static const char *plan_of(setup *s)
{
    static char text[4096];
    qn_code *f = NULL;
    text[0] = 0;
    if (qn_specialize(s->c, s->k, 3, s->args, NULL, &f, &err) == QN_OK)
        qn_code_text(f, QN_DUMP_PLAN, text, sizeof text);
    qn_code_release(f);
    return text;
}

static void test_kept(void)
{
    setup s;
    char planned[4096], chosen[4096];
    set_up(&s, "kept");
    snprintf(planned, sizeof planned, "%s", plan_of(&s));
    tap_ok(keep(&s, &narrow_options, "width=2 unroll=1"), "a choice is kept %s", err.message);
    snprintf(chosen, sizeof chosen, "%s", plan_of(&s));
    tap_ok(strstr(chosen, "width 2") && strcmp(planned, chosen) != 0,
           "the context itself makes its version anew");
    tear_down(&s);
    for (int i = 0; i < 2; i++) { /* the first compiles nothing either: the code is on disk */
        set_up(&s, "kept");
        tap_ok(launches_right(&s) && strcmp(plan_of(&s), chosen) == 0,
               "another context follows it, with the same bits");
        tap_ok(history_has(s.c, "; tuned: width=2 unroll=1") && counters_of(s.c).compiles == 0,
               "the history says so, and nothing was compiled");
        tear_down(&s);
    }
    set_up(&s, "kept");
    snprintf(s.c->processor, sizeof s.c->processor, "Another 1.2");
    tap_ok(launches_right(&s) && strcmp(plan_of(&s), planned) == 0, "another processor does not");
    tear_down(&s);
    set_up(&s, "kept");
    s.c->options.untuned = 1;
    tap_ok(launches_right(&s) && strcmp(plan_of(&s), planned) == 0, "nor does option untuned");
    tear_down(&s);
    set_up(&s, "kept");
    const qn_plan_options wide = {.bytes = sizeof wide, .width = 4};
    const qn_options o = {.bytes = sizeof o, .plan = &wide};
    tap_ok(qn_launch(s.c, s.k, 3, s.args, &o, &err) == QN_OK && !history_has(s.c, "tuned:"),
           "nor a launch that asks for a plan");
    char text[4096];
    qn_code *f = NULL;
    qn_specialize(s.c, s.k, 3, s.args, NULL, &f, &err);
    qn_code_text(f, QN_DUMP_KEY, text, sizeof text);
    tap_contains(text, "tuned: width=2 unroll=1", "the key as text names the choice");
    qn_code_text(f, QN_DUMP_ASM, text, sizeof text);
    tap_ok(!strstr(text, "%zmm") && !strstr(text, "%ymm"), "assembly is that of the choice");
    qn_code_release(f);
    tap_ok(qn_explain(s.c, s.k, 3, s.args, NULL, text, sizeof text, NULL, &err) == QN_OK &&
               strstr(text, "tuned: width=2"),
           "qn_explain says so");
    tear_down(&s);
}

/** Steps on the planner's schedule are a choice, too; one that cannot be compiled is given up. */
static void test_steps(void)
{
    setup s;
    set_up(&s, "steps");
    const qn_options steps = {.bytes = sizeof steps,
                              .engine = QN_ENGINE_NATIVE,
                              .schedule = "planned { tail d0 tail=scalar; }"};
    tap_ok(keep(&s, &steps, "schedule=planned { tail d0 tail=scalar; }"), "steps are kept %s",
           err.message);
    tap_ok(launches_right(&s) && strstr(plan_of(&s), "tail scalar"), "they are followed");
    const qn_options none = {
        .bytes = sizeof none, .engine = QN_ENGINE_NATIVE, .schedule = "planned { fuse d0 d9; }"};
    tap_ok(qn_launch(s.c, s.k, 3, s.args, &none, &err) == QN_ERR_PARSE, "steps of another kernel");
    tear_down(&s);
}

/** The path of the file of a choice in a folder. */
static const char *path_of_choice(const char *folder)
{
    static char path[600];
    char command[300];
    snprintf(command, sizeof command, "grep -l '%s' %s/%s/*/* 2> /dev/null", "width=2 unroll=1",
             root, folder);
    FILE *list = popen(command, "r");
    path[0] = 0;
    if (list && fgets(path, sizeof path, list))
        path[strcspn(path, "\n")] = 0;
    if (list)
        pclose(list);
    return path;
}

static void test_damaged(void)
{
    setup s;
    char planned[4096];
    set_up(&s, "damaged");
    snprintf(planned, sizeof planned, "%s", plan_of(&s));
    tap_ok(keep(&s, &narrow_options, "width=2 unroll=1"), "a choice is kept %s", err.message);
    tear_down(&s);
    const char *path = path_of_choice("damaged");
    FILE *f = fopen(path, "r+b");
    tap_ok(f && fseek(f, -3, SEEK_END) == 0 && fputc('?', f) == '?' && fclose(f) == 0,
           "a byte of its entry is changed");
    set_up(&s, "damaged");
    tap_ok(launches_right(&s) && strcmp(plan_of(&s), planned) == 0, "it is not used");
    tap_ok(counters_of(s.c).disk_refused == 1 && history_has(s.c, "refused: entry"),
           "it counts as refused");
    tear_down(&s);
    /* An entry that is whole, but is the key of other facts. */
    set_up(&s, "damaged");
    qn_view z = vector_of(s.c, "z", QN_F32, N + 1);
    qn_arg args[3] = {qn_arg_view(&z), qn_arg_view(&z), qn_arg_f32(1)};
    static const qn_options x86 = {.bytes = sizeof x86, .engine = QN_ENGINE_NATIVE};
    qn_text key = key_with(&s, &x86);
    qn_code *other = NULL;
    qn_specialize(s.c, s.k, 3, args, &narrow_options, &other, &err);
    const qn_tuned t = {.kernel = s.k, .key = &key, .chosen = &other->key, .text = "other facts"};
    tap_ok(qn__choice_keep(s.c, &t, &err), "a choice of other facts is written");
    qn__text_release(&key);
    qn_code_release(other);
    qn_view_release(&z);
    tear_down(&s);
    set_up(&s, "damaged");
    tap_ok(launches_right(&s) && strcmp(plan_of(&s), planned) == 0, "it is not used");
    tap_ok(history_has(s.c, "it is no choice for its kernel and key"), "the history says why");
    tear_down(&s);
}

typedef struct found {
    int n_choices, n_refused;
} found;

static void count(void *arg, const qn_cache_entry *e)
{
    found *f = arg;
    f->n_refused += e->refused != NULL;
    f->n_choices += strcmp(e->kind, "choice") == 0 && strcmp(e->kernel, "saxpy") == 0;
}

static void test_moved(void)
{
    setup s;
    char from[200], to[200], bundle[200];
    found f = {0};
    set_up(&s, "moved");
    tap_ok(keep(&s, &narrow_options, "width=2 unroll=1"), "a choice is kept %s", err.message);
    tear_down(&s);
    snprintf(from, sizeof from, "%s/moved", root);
    snprintf(to, sizeof to, "%s/imported", root);
    snprintf(bundle, sizeof bundle, "%s/bundle", root);
    tap_ok(qn_cache_visit(from, count, &f, &err) == QN_OK && f.n_choices == 1 && f.n_refused == 0,
           "a visit finds it");
    tap_ok(qn_cache_export(from, bundle, NULL, &err) == QN_OK &&
               qn_cache_import(to, bundle, NULL, &err) == QN_OK,
           "it is exported and imported %s", err.message);
    set_up(&s, "imported");
    tap_ok(launches_right(&s) && history_has(s.c, "tuned: width=2"), "and followed there");
    tear_down(&s);
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = "off", .bundle = bundle};
    set_up(&s, NULL);
    qn_context_release(s.c);
    s.c = context_with(&o);
    tap_ok(launches_right(&s) && history_has(s.c, "tuned: width=2"), "and from a bundle");
    tear_down(&s);
}

/* ---------------------------------------------------------------- kernels and misuse */

static qn_status tune_text(const char *text, int n, const qn_arg *args, qn_tune_result *r)
{
    qn_context *c = open_context(NULL);
    qn_kernel *k = kernel_of(text);
    const qn_options exact = {.bytes = sizeof exact};
    qn_status status = qn_tune(c, k, n, args, &exact, &quick, r, sizeof *r, &err);
    qn_kernel_release(k);
    qn_context_release(c);
    return status;
}

static const char histogram[] = "kernel count (x: i64[], h: u32[]) {\n"
                                "  for all i in x { atomic h[x[i]] += 1 }\n}\n";
static const char floats[] = "kernel add (x: i64[], h: f32[]) {\n"
                             "  for all i in x { atomic h[x[i]] += 0.1 }\n}\n";

static void test_kernels(void)
{
    enum { STEPS = 5 };
    qn_context *c = open_context(NULL);
    qn_tune_result r;
    qn_view x = vector_of(c, "x", QN_I64, N), h = vector_of(c, "h", QN_U32, 10);
    qn_view u = vector_of(c, "u", QN_F64, N), f = vector_of(c, "f", QN_F32, 10);
    for (int i = 0; i < N; i++) {
        ((int64_t *)x.data)[i] = i * 7 % 10;
        ((double *)u.data)[i] = i;
    }
    const qn_arg counts[] = {qn_arg_view(&x), qn_arg_view(&h)};
    tap_ok(tune_text(histogram, 2, counts, &r) == QN_OK && r.n_wrong == 0 &&
               ((uint32_t *)h.data)[3] == 0,
           "a kernel with atomics: %s", err.message);
    const qn_arg sums[] = {qn_arg_view(&x), qn_arg_view(&f)};
    qn_status status = tune_text(floats, 2, sums, &r);
    tap_ok((status == QN_OK || status == QN_ERR_UNSUPPORTED) && ((float *)f.data)[3] == 0,
           "a kernel with atomics of floats: %s", err.message);
    const qn_arg steps[] = {qn_arg_view(&u), qn_arg_int(QN_I64, STEPS)};
    tap_ok(tune_text(STEPS_TEXT, 2, steps, &r) == QN_OK && r.n_wrong == 0 &&
               ((double *)u.data)[9] == 9,
           "a kernel with steps, in place: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&h);
    qn_view_release(&u);
    qn_view_release(&f);
    qn_context_release(c);
}

static void test_misuse(void)
{
    setup s;
    qn_tune_result r;
    set_up(&s, NULL);
    tap_ok(qn_tune(NULL, s.k, 3, s.args, NULL, NULL, &r, sizeof r, &err) == QN_ERR_ARGUMENT &&
               qn_tune(s.c, NULL, 3, s.args, NULL, NULL, &r, sizeof r, &err) == QN_ERR_ARGUMENT &&
               qn_tune(s.c, s.k, 3, s.args, NULL, NULL, NULL, 0, &err) == QN_ERR_ARGUMENT,
           "NULL");
    tap_ok(qn_tune(s.c, s.k, 2, s.args, NULL, &quick, &r, sizeof r, &err) == QN_ERR_ARGUMENT,
           "too few arguments: %s", err.message);
    tap_ok(qn_tune(s.c, s.k, 3, s.args, &narrow_options, &quick, &r, sizeof r, &err) ==
               QN_ERR_ARGUMENT,
           "a plan that is given: %s", err.message);
    const qn_tune_options bad = {.bytes = sizeof bad, .seconds = -1};
    tap_ok(qn_tune(s.c, s.k, 3, s.args, NULL, &bad, &r, sizeof r, &err) == QN_ERR_ARGUMENT,
           "a budget below zero: %s", err.message);
    const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    tap_ok(qn_tune(s.c, s.k, 3, s.args, &interp, &quick, &r, sizeof r, &err) == QN_ERR_ARGUMENT,
           "the interpreter: %s", err.message);
    qn_view none = vector_of(s.c, "none", QN_F32, 0);
    const qn_arg empty[] = {qn_arg_view(&none), qn_arg_view(&none), qn_arg_f32(1)};
    tap_ok(qn_tune(s.c, s.k, 3, empty, NULL, &quick, &r, sizeof r, &err) == QN_ERR_ARGUMENT,
           "no iterations: %s", err.message);
    qn_view shorter = vector_of(s.c, "x", QN_F32, N / 2);
    const qn_arg outside[] = {qn_arg_view(&shorter), qn_arg_view(&s.y), qn_arg_f32(1)};
    tap_ok(qn_tune(s.c, s.k, 3, outside, NULL, &quick, &r, sizeof r, &err) == QN_ERR_BOUNDS &&
               is_untouched(&s),
           "accesses outside, and the arrays are what they were: %s", err.message);
    tap_ok(strcmp(qn_tune_state_name(QN_TUNE_WRONG), "wrong") == 0 &&
               strcmp(qn_tune_state_name(99), "?") == 0,
           "names of states");
    qn_view_release(&none);
    qn_view_release(&shorter);
    tear_down(&s);
}

/* ---------------------------------------------------------------- threads and processes */

static void *tune_on_thread(void *arg)
{
    setup s;
    qn_tune_result r;
    set_up(&s, "shared");
    qn_tune_options o = quick;
    o.seconds = 0.1;
    bool *is_good = arg;
    *is_good = qn_tune(s.c, s.k, 3, s.args, NULL, &o, &r, sizeof r, NULL) == QN_OK &&
               is_untouched(&s) && launches_right(&s);
    tear_down(&s);
    return NULL;
}

static void test_together(void)
{
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    bool is_good[THREADS] = {false};
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, tune_on_thread, &is_good[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    tap_ok(is_good[0] && is_good[1] && is_good[2], "threads tune one kernel in one folder at once");
    setup s;
    set_up(&s, "shared");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bool is_right = launches_right(&s) && history_has(s.c, "; tuned: ");
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap_ok(status == 0, "a child follows what they chose");
    tap_ok(launches_right(&s) && history_has(s.c, "; tuned: "), "so does its parent");
    tear_down(&s);
}

int main(void)
{
    char reason[300], command[300];
    if (!mkdtemp(root) || !has_x86(reason, sizeof reason)) {
        tap_skip("no scratch folder, or no code");
        return tap_done();
    }
    test_run();
    test_end();
    test_wrong();
    test_compare();
    test_kept();
    test_steps();
    test_damaged();
    test_moved();
    test_kernels();
    test_misuse();
    test_together();
    snprintf(command, sizeof command, "rm -rf %s", root);
    if (system(command) != 0)
        tap_note("%s is left", root);
    return tap_done();
}
