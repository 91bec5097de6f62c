/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_growth.c: callers that were compiled with other versions of the public structs. A struct of
 * an older caller ends early, and nothing behind it may be read or written; what it lacks is zero.
 * A struct of a newer caller is longer: fine if the fields this library does not know are zero, and
 * QN_ERR_VERSION otherwise.
 */
#include "tests/unit/launch.h"

#include <stddef.h>
#include <string.h>

enum { NEWER = 24, CANARY = 0x5a };

/** y[i] = a x[i] */
static const char text[] =
    "kernel \"scale\" {\n view x: f32[1]; view y: f32[1]; scalar a: f32;\n %0: i64 = const 0;\n"
    " %1: i64 = extent y, 0; %3: i64 = parallel %0, %1; %4: f32 = param a;\n"
    " %5: f32 = load x[%3]; %6: f32 = mul %4, %5; store y[%3], %6;\n}\n";

typedef struct setup {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
    qn_arg args[3];
} setup;

/** A copy of a struct that has `bytes`, the first field says so, in memory of just that size;
 * `tail` is its last byte. */
static void *resized(const void *from, size_t known, size_t bytes, char tail)
{
    char *p = calloc(1, bytes);
    memcpy(p, from, bytes < known ? bytes : known);
    memcpy(p, &bytes, sizeof bytes);
    if (bytes > known)
        p[bytes - 1] = tail;
    return p;
}

/* ---------------------------------------------------------------- options of launches */

/** Runs by all functions that take options; the status of all, or -1 if they differ. */
static int run_all(const setup *s, const qn_options *o, qn_error *err)
{
    qn_code *f = NULL;
    qn_call *call = NULL;
    memset(s->y.data, 0, 64 * sizeof(float));
    qn_status launched = qn_launch(s->c, s->k, 3, s->args, o, err);
    if (launched == QN_OK && ((float *)s->y.data)[63] != 126)
        return -1;
    qn_status prepared = qn_prepare(s->c, s->k, 3, s->args, o, &call, NULL);
    if (prepared == QN_OK && qn_run(call, NULL))
        return -1;
    qn_status specialized = qn_specialize(s->c, s->k, 3, s->args, o, &f, NULL);
    qn_call_release(call);
    qn_code_release(f);
    return launched == prepared && launched == specialized ? (int)launched : -1;
}

static void check_run(const setup *s, const qn_options *o, int status, const char *part,
                      const char *what)
{
    qn_error err = {0};
    int found = run_all(s, o, &err);
    tap_ok(found == status, "%s: %s", what,
           found < 0 ? "differs between functions" : qn_status_name(found));
    if (part)
        tap_contains(err.message, part, "... and says so");
}

static void test_options(const setup *s)
{
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    void *older = resized(&o, sizeof o, offsetof(qn_options, stream), 0);
    void *oldest = resized(&o, sizeof o, sizeof(size_t), 0);
    void *same = resized(&o, sizeof o, sizeof o + NEWER, 0),
         *newer = resized(&o, sizeof o, sizeof o + NEWER, 1);
    check_run(s, older, QN_OK, NULL, "options of an older caller");
    check_run(s, oldest, QN_OK, NULL, "options that are their size alone");
    check_run(s, same, QN_OK, NULL, "options of a newer caller who uses no new field");
    check_run(s, newer, QN_ERR_VERSION, "fields that this version lacks",
              "options of a newer caller with a new field");
    const size_t wrong[] = {0, 4, sizeof o - 4, sizeof o + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const qn_options bad = {.bytes = wrong[i]};
        check_run(s, &bad, QN_ERR_ARGUMENT, "set `bytes`", "a size that no version has");
    }
    qn_counters before = counters_of(s->c);
    qn_launch(s->c, s->k, 3, s->args, older, NULL);
    qn_launch(s->c, s->k, 3, s->args, same, NULL);
    tap_is_int(counters_of(s->c).hits - before.hits, 2,
               "they find what launches of this version left");
    free(older);
    free(oldest);
    free(same);
    free(newer);
}

static void test_plan(const setup *s)
{
    const qn_plan_options p = {.bytes = sizeof p, .width = 3, .apart = 1};
    void *older = resized(&p, sizeof p, offsetof(qn_plan_options, lane_dim), 0);
    void *old = resized(&p, sizeof p, sizeof p - 8, 0);
    void *newer = resized(&p, sizeof p, sizeof p + NEWER, 1),
         *same = resized(&p, sizeof p, sizeof p + NEWER, 0);
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP, .plan = older};
    check_run(s, &o, QN_OK, NULL, "a plan of an older caller without a width");
    o.plan = old;
    check_run(s, &o, QN_ERR_ARGUMENT, "plan.width: 3", "a plan of an older caller with a width");
    o.plan = same;
    check_run(s, &o, QN_ERR_ARGUMENT, "plan.width: 3", "a plan of a newer caller");
    o.plan = newer;
    check_run(s, &o, QN_ERR_VERSION, "plan options of",
              "a plan of a newer caller with a new field");
    void *shorter = resized(&o, sizeof o, offsetof(qn_options, plan), 0);
    check_run(s, shorter, QN_OK, NULL, "options of an older caller that end before the plan");
    const qn_plan_options none = {0};
    o.plan = &none;
    check_run(s, &o, QN_ERR_ARGUMENT, "set `bytes`", "a plan without its size");
    free(older);
    free(old);
    free(newer);
    free(same);
    free(shorter);
}

/* ---------------------------------------------------------------- other structs of callers */

static void test_other_options(const setup *s)
{
    const qn_context_options c = {.bytes = sizeof c, .n_threads = 2};
    const qn_alloc_options a = {.bytes = sizeof a, .alignment = 128};
    void *of_context[] = {resized(&c, sizeof c, offsetof(qn_context_options, parallel_for), 0),
                          resized(&c, sizeof c, sizeof c + NEWER, 0),
                          resized(&c, sizeof c, sizeof c + NEWER, 1)};
    void *of_alloc[] = {resized(&a, sizeof a, offsetof(qn_alloc_options, uninitialised), 0),
                        resized(&a, sizeof a, sizeof a + NEWER, 0),
                        resized(&a, sizeof a, sizeof a + NEWER, 1)};
    static const char *const what[] = {"an older caller", "a newer caller",
                                       "a newer caller with a new field"};
    const int64_t extents[] = {5};
    qn_view_type type;
    qn_view_type_init(QN_F32, 1, NULL, QN_FAMILY_ANY, &type, NULL);
    for (int i = 0; i < 3; i++) {
        qn_status wanted = i < 2 ? QN_OK : QN_ERR_VERSION;
        qn_context *made = NULL;
        qn_view v = {0};
        tap_ok(qn_context_new(of_context[i], &made, NULL) == wanted, "options of a context of %s",
               what[i]);
        tap_ok(qn_view_create(s->c, &type, 1, extents, of_alloc[i], &v, NULL) == wanted,
               "properties of a view of %s", what[i]);
        tap_ok(wanted || (uintptr_t)v.data % 128 == 0, "... are used");
        qn_view_release(&v);
        qn_context_release(made);
        free(of_context[i]);
        free(of_alloc[i]);
    }
}

/** Whether all of bytes [from, to) are `value`. */
static bool is_all(const void *p, size_t from, size_t to, int value)
{
    for (size_t i = from; i < to; i++)
        if (((const unsigned char *)p)[i] != value)
            return false;
    return true;
}

/** Structs that functions fill. */
static void test_filled(const setup *s)
{
    unsigned char room[sizeof(qn_counters) + NEWER + sizeof(qn_param_info)];
    qn_counters *counters = malloc(sizeof room);
    qn_param_info *info = malloc(sizeof room);
    memset(counters, CANARY, sizeof room);
    memset(info, CANARY, sizeof room);
    qn_context_counters(s->c, counters, offsetof(qn_counters, misses));
    tap_ok(counters->launches > 0 &&
               is_all(counters, offsetof(qn_counters, misses), sizeof room, CANARY),
           "counters of an older caller: nothing is written behind them");
    qn_context_counters(s->c, counters, sizeof *counters + NEWER);
    tap_ok(is_all(counters, sizeof *counters, sizeof *counters + NEWER, 0) &&
               is_all(counters, sizeof *counters + NEWER, sizeof room, CANARY),
           "counters of a newer caller: those that are not known are 0");
    tap_ok(qn_kernel_param(s->k, 1, info, offsetof(qn_param_info, traits), NULL) == QN_OK &&
               info->rank == 1 &&
               is_all(info, offsetof(qn_param_info, traits), sizeof room, CANARY),
           "a parameter for an older caller");
    tap_ok(qn_kernel_param(s->k, 1, info, sizeof *info + NEWER, NULL) == QN_OK &&
               info->is_written == 1 && is_all(info, sizeof *info, sizeof *info + NEWER, 0),
           "a parameter for a newer caller");
    free(counters);
    free(info);
}

/** Arguments have a fixed size; the reserved field of a newer caller is refused, also for known
 * arguments. */
static void test_argument(const setup *s)
{
    qn_error err = {0};
    for (int i = 0; i < 3; i++) {
        qn_arg args[] = {s->args[0], s->args[1], s->args[2]};
        args[i].reserved = 7;
        tap_ok(qn_launch(s->c, s->k, 3, args, NULL, &err) == QN_ERR_VERSION,
               "argument %d uses the reserved field", i);
        tap_contains(err.message, "reserved: 7", "... and the message says so");
    }
}

int main(void)
{
    setup s = {.c = context_with(NULL), .k = kernel_of(text)};
    qn_layout l;
    const int64_t extents[] = {64};
    qn_layout_right(1, extents, &l, NULL);
    qn_view_alloc(s.c, "x", QN_F32, &l, 0, &s.x, NULL);
    qn_view_alloc(s.c, "y", QN_F32, &l, 0, &s.y, NULL);
    for (int i = 0; i < 64; i++)
        ((float *)s.x.data)[i] = (float)i;
    s.args[0] = qn_arg_view(&s.x);
    s.args[1] = qn_arg_view(&s.y);
    s.args[2] = qn_arg_f32(2);
    test_options(&s);
    test_plan(&s);
    test_other_options(&s);
    test_filled(&s);
    test_argument(&s);
    qn_view_release(&s.x);
    qn_view_release(&s.y);
    qn_kernel_release(s.k);
    qn_context_release(s.c);
    return tap_done();
}
