/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda_tune.c: qn_tune with launches on a GPU: on the stub driver, and on a GPU where there is
 * one. Which candidate is the fastest is for the machine to say: the tests ask that others are
 * measured, that none is wrong, that arrays are as before, and that a choice is followed.
 */
#define _GNU_SOURCE
#include "quern/embed.h"
#include "quern/tune.h"
#include "runtime/choice.h"
#include "tests/fill.h"
#include "tests/unit/gpu.h"

#include <stdlib.h>

enum { ROWS = 40, COLUMNS = 70, BYTES = ROWS * COLUMNS * 4 };
static const char text[] = "kernel step (u: f32[,], v: f32[,]) contract {\n"
                           "  for all i, j in inner(u, 1) {\n"
                           "    v[i, j] = v[i, j] + (u[i-1, j] + u[i+1, j]) + 2 * u[i, j-1]\n"
                           "  }\n"
                           "}\n";
static char folder[] = "/tmp/test_cuda_tune.XXXXXX";
static qn_error err;

typedef struct setup {
    qn_context *c;
    qn_kernel *k;
    qn_stream *stream;
    qn_view u, v, host;
    qn_arg args[2];
} setup;

static qn_view matrix(const setup *s, int space)
{
    const int64_t extents[2] = {ROWS, COLUMNS};
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = "m", .space = space, .stream = space ? s->stream : NULL};
    qn_view v = {0};
    qn_view_type type;
    qn_view_type_init(QN_F32, 2, NULL, QN_FAMILY_ANY, &type, &err);
    type.space = space;
    if (qn_view_create(s->c, &type, 2, extents, &o, &v, &err) != QN_OK)
        tap_ok(false, "test view: %s", err.message);
    return v;
}

static void send(setup *s, const qn_view *to, float first)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ((float *)s->host.data)[i] = first + (float)(i % 17);
    qn_stream_copy(s->stream, to, &s->host, &err);
    qn_stream_fence(s->stream, &err);
}

static bool set_up(setup *s, const char *driver)
{
    const qn_context_options o = {.bytes = sizeof o, .cuda_driver = driver, .disk_cache = folder};
    *s = (setup){.c = context_with(&o), .k = kernel_of(text)};
    if (qn_stream_new(s->c, 0, &s->stream, &err) != QN_OK)
        return false;
    s->host = matrix(s, QN_SPACE_HOST);
    s->u = matrix(s, QN_SPACE_CUDA);
    s->v = matrix(s, QN_SPACE_CUDA);
    s->args[0] = qn_arg_view(&s->u);
    s->args[1] = qn_arg_view(&s->v);
    send(s, &s->u, 1);
    send(s, &s->v, 3);
    return true;
}

static void tear_down(setup *s)
{
    qn_view_release(&s->u);
    qn_view_release(&s->v);
    qn_view_release(&s->host);
    qn_stream_release(s->stream);
    qn_kernel_release(s->k);
    qn_context_release(s->c);
}

/** What v has on the device, in s->host. */
static const float *fetch(setup *s)
{
    qn_stream_copy(s->stream, &s->host, &s->v, &err);
    qn_stream_fence(s->stream, &err);
    return s->host.data;
}

static bool is_untouched(setup *s)
{
    const float *v = fetch(s);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (v[i] != 3 + (float)(i % 17))
            return false;
    return true;
}

/** Launches once: whether v is what it should be. */
static bool launches_right(setup *s)
{
    const qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s->stream};
    send(s, &s->v, 3);
    if (qn_launch(s->c, s->k, 2, s->args, &o, &err) != QN_OK)
        return false;
    const float *v = fetch(s);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            int at = i * COLUMNS + j;
            bool is_inner = i > 0 && i < ROWS - 1 && j > 0 && j < COLUMNS - 1;
            float up = 1 + (float)((at - COLUMNS + 17 * COLUMNS) % 17),
                  down = 1 + (float)((at + COLUMNS) % 17), left = 1 + (float)((at + 16) % 17);
            float sum = is_inner ? up + down + 2 * left : 0;
            if (v[at] != 3 + (float)(at % 17) + sum)
                return false;
        }
    return true;
}

/** Counts candidates, and those by steps on the kernel as declared that were measured; ends the
 * search when there are enough of both. */
typedef struct counts {
    int measured, blocks;
} counts;

static int32_t count(void *arg, const qn_tune_candidate *c)
{
    counts *n = arg;
    n->measured += c->state == QN_TUNE_MEASURED;
    n->blocks += c->state == QN_TUNE_MEASURED && strstr(c->choice, "schedule=declared {");
    if (c->why && c->state == QN_TUNE_WRONG)
        tap_note("%s: %s", c->choice, c->why);
    return n->measured >= 12 && n->blocks >= 3;
}

static void test_search(setup *s)
{
    const qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s->stream};
    counts n = {0};
    qn_tune_result r;
    const qn_tune_options t = {.bytes = sizeof t,
                               .seconds = 60,
                               .keeps_nothing = 1,
                               .progress = count,
                               .progress_arg = &n};
    tap_ok(qn_tune(s->c, s->k, 2, s->args, &o, &t, &r, sizeof r, &err) == QN_OK, "a search: %s",
           err.message);
    tap_ok(n.measured >= 3 && r.n_measured == n.measured, "%d candidates are measured", n.measured);
    tap_ok(n.blocks > 0, "... %d of them by blocks of other shapes", n.blocks);
    tap_is_int(r.n_wrong, 0, "none has other results");
    tap_is_int(r.compared, QN_TUNE_WITH_PLANNED, "they are compared with the planner's choice");
    tap_ok(is_untouched(s), "the array is as before");
}

/** Keeps a choice as tuning does: the versions of later launches follow it. */
static void test_followed(setup *s)
{
    const char *const words = "schedule=declared { split d0 5 tail=mask; split d1 32 tail=mask; "
                              "bind d0.0 role=grid; bind d0.1 role=block; bind d1.0 role=grid; "
                              "bind d1.1 role=block; }";
    const qn_options plain = {.bytes = sizeof plain,
                              .executor = QN_CUDA,
                              .stream = s->stream,
                              .specialize = QN_SPECIALIZE_EXACT};
    qn_options own = plain;
    qn_code *code = NULL, *other = NULL;
    own.schedule = words + strlen("schedule=");
    bool is_made = qn_specialize(s->c, s->k, 2, s->args, &plain, &code, &err) == QN_OK &&
                   qn_specialize(s->c, s->k, 2, s->args, &own, &other, &err) == QN_OK;
    tap_ok(is_made, "both versions have code: %s", err.message);
    if (!is_made)
        return;
    const qn_tuned kept = {
        .kernel = code->kernel, .key = &code->key, .chosen = qn__key_of_code(other), .text = words};
    tap_ok(qn__choice_keep(s->c, &kept, &err), "the choice is kept: %s", err.message);
    qn_code_release(code);
    qn_code_release(other);
    code = NULL;
    qn_specialize(s->c, s->k, 2, s->args, &plain, &code, &err);
    char ptx[4096] = "";
    if (code)
        qn_code_text(code, QN_DUMP_PTX, ptx, sizeof ptx);
    tap_contains(ptx, ".reqntid 32, 5, 1", "the code of a later version follows it");
    qn_code_release(code);
    tap_ok(launches_right(s), "... and its results are right: %s", err.message);
}

static void test_on(const char *driver, const char *what)
{
    setup s;
    tap_note("%s", what);
    if (!set_up(&s, driver)) {
        tap_skip(err.message);
        tear_down(&s);
        return;
    }
    tap_ok(launches_right(&s), "a launch: %s", err.message);
    send(&s, &s.v, 3);
    test_search(&s);
    test_followed(&s);
    tear_down(&s);
}

int main(void)
{
    char reason[256], command[128];
    if (!mkdtemp(folder) || !has_x86(reason, sizeof reason)) {
        tap_skip("no scratch folder, or no code");
        return tap_done();
    }
    const stub_control *stub = stub_open(STUB_PATH);
    if (stub) {
        test_on(STUB_PATH, "on the stub driver");
        tap_ok(is_clean(stub), "nothing is left");
    }
    test_on(NULL, "on a GPU");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        tap_note("%s is left", folder);
    return tap_done();
}
