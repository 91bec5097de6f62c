/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_schedule_rest.c: schedules given as text whose steps do not come out even, in pieces, in
 * sections, in blocks of several cuts and for threads: each iteration runs once, nothing beside the
 * view is written, and what has no code is refused.
 */
#include "tests/unit/launch.h"

enum { MOST = 1024, GUARD = 256, SENTINEL = 77 };

/** y = y + y shows whether an iteration runs twice; a copy may. */
#define TWICE                                                                                      \
    "kernel \"twice\" {\n view y: f32[1]; %0: i64 = const 0; %1: i64 = extent y, 0;\n"             \
    " %2: i64 = parallel %0, %1; %3: f32 = load y[%2]; %4: f32 = add %3, %3;\n"                    \
    " store y[%2], %4;\n}\n"
#define TWICE_ROWS                                                                                 \
    "kernel \"rows\" {\n view y: f32[2]; %0: i64 = const 0; %1: i64 = extent y, 0;\n"              \
    " %2: i64 = extent y, 1; %3: i64 = parallel %0, %1; %4: i64 = parallel %0, %2;\n"              \
    " %5: f32 = load y[%3, %4]; %6: f32 = add %5, %5; store y[%3, %4], %6;\n}\n"
#define FILL                                                                                       \
    "kernel \"fill\" {\n view y: f32[1]; %0: i64 = const 0; %1: i64 = extent y, 0;\n"              \
    " %2: i64 = parallel %0, %1; %3: f32 = cast %2; store y[%2], %3;\n}\n"

typedef struct row {
    const char *what, *kernel;
    int64_t rows, columns, pitch; /* rows 0: one dimension */
    const char *schedule;
    qn_options options;
    const char *refused; /* a part of the message, or NULL */
} row;

static const row rows[] = {
    {"sections of whole steps count steps",
     TWICE,
     0,
     96,
     0,
     "axis d0 96; cut d0 by 8 tail none; cut d0.0 at begin+3;"
     "loop d0.0.0 sequential { loop d0.1 vector { do %4 %7; } }"
     "loop d0.0.1 sequential { loop d0.1 vector { do %4 %7; } }",
     {0},
     NULL},
    {"sections of steps, the last of which is masked",
     TWICE,
     0,
     33,
     0,
     "axis d0 33; cut d0 by 8 tail mask; cut d0.0 at end-2;"
     "loop d0.0.0 sequential { loop d0.1 vector { do %4 %7; } }"
     "loop d0.0.1 sequential { loop d0.1 vector { do %4 %7; } }",
     {0},
     NULL},
    {"sections of unrolled steps",
     TWICE,
     0,
     48,
     0,
     "axis d0 48; cut d0 by 8 tail none; cut d0.0 at end-97;"
     "loop d0.0.0 sequential { loop d0.1 unrolled { do %4 %7; } }"
     "loop d0.0.1 sequential { loop d0.1 unrolled { do %4 %7; } }",
     {0},
     NULL},
    {"a section of a piece that has no steps",
     TWICE,
     0,
     64,
     0,
     "axis d0 64; cut d0 by 8 tail none; cut d0.0 by 4 tail none; cut d0.0.1 at begin-2;"
     "loop d0.0.0 sequential {"
     " loop d0.0.1.0 sequential { loop d0.1 vector { do %4 %7; } }"
     " loop d0.0.1.1 sequential { loop d0.1 vector { do %4 %7; } } }",
     {0},
     NULL},
    {"steps with a rest, cut again into an even number",
     TWICE,
     0,
     100,
     0,
     "axis d0 100; cut d0 by 8 tail mask; cut d0.0 by 13 tail none;"
     "loop d0.0.0 sequential { loop d0.0.1 sequential { loop d0.1 vector { do %4 %7; } } }",
     {0},
     NULL},
    {"pieces that are no multiple of the lanes",
     TWICE,
     0,
     96,
     0,
     "axis d0 96; cut d0 by 12 tail none; cut d0.1 by 8 tail mask;"
     "loop d0.0 sequential { loop d0.1.0 sequential { loop d0.1.1 vector { do %4 %7; } } }",
     {0},
     "steps that do not divide the pieces"},
    {"... narrower vectors follow",
     TWICE,
     0,
     96,
     0,
     "axis d0 96; cut d0 by 12 tail none; cut d0.1 by 8 tail narrower;"
     "loop d0.0 sequential { loop d0.1.0 sequential { loop d0.1.1 vector { do %4 %7; } } }",
     {0},
     "steps that do not divide the pieces"},
    {"... of unrolled iterations",
     TWICE,
     0,
     96,
     0,
     "axis d0 96; cut d0 by 12 tail none; cut d0.1 by 8 tail narrower;"
     "loop d0.0 sequential { loop d0.1.0 sequential { loop d0.1.1 unrolled { do %4 %7; } } }",
     {0},
     "steps that do not divide the pieces"},
    {"... in chunks of threads",
     TWICE,
     0,
     960,
     0,
     "axis d0 960; cut d0 by 12 tail none; cut d0.1 by 8 tail scalar;"
     "loop d0.0 threads { loop d0.1.0 sequential { loop d0.1.1 vector { do %4 %7; } } }",
     {.executor = QN_THREADS},
     "steps that do not divide the pieces"},
    {"a block of two cuts that is longer than the dimension",
     TWICE,
     0,
     16,
     0,
     "axis d0 16; cut d0 by 9 tail mask; cut d0.0 by 2 tail none;"
     "loop d0.0.0 sequential { loop d0.0.1 unrolled { loop d0.1 unrolled { do %4 %7; } } }",
     {0},
     NULL},
    {"blocks that overlap",
     FILL,
     0,
     100,
     0,
     "axis d0 100; cut d0 by 16 tail overlap;"
     "loop d0.0 sequential { loop d0.1 vector { do %4 %6; } }",
     {0},
     NULL},
    {"pieces that overlap",
     FILL,
     0,
     100,
     0,
     "axis d0 100; cut d0 by 36 tail overlap; cut d0.1 by 9 tail none;"
     "loop d0.0 sequential { loop d0.1.0 sequential { loop d0.1.1 unrolled { do %4 %6; } } }",
     {0},
     "steps that overlap"},
    {"blocks of blocks that overlap",
     FILL,
     0,
     16,
     0,
     "axis d0 16; cut d0 by 9 tail mask; cut d0.0 by 2 tail overlap;"
     "loop d0.0.0 sequential { loop d0.0.1 unrolled { loop d0.1 unrolled { do %4 %6; } } }",
     {0},
     "steps that overlap"},
    {"sections of rows of an unknown number",
     TWICE_ROWS,
     5,
     37,
     40,
     "axis d0 symbolic; axis d1 symbolic; cut d1 at end-3; cut d1.0 by 8 tail mask;"
     "loop d0 sequential {"
     " loop d1.0.0 sequential { loop d1.0.1 vector { do %6 %9; } }"
     " loop d1.1 sequential { do %6 %9; } }",
     {.specialize = QN_SPECIALIZE_DYNAMIC},
     "different loops over lanes"},
    {"sections of steps of an unknown number",
     TWICE_ROWS,
     5,
     37,
     40,
     "axis d0 symbolic; axis d1 symbolic; cut d1 by 8 tail mask; cut d1.0 at end-2;"
     "loop d0 sequential {"
     " loop d1.0.0 sequential { loop d1.1 vector { do %6 %9; } }"
     " loop d1.0.1 sequential { loop d1.1 vector { do %6 %9; } } }",
     {.specialize = QN_SPECIALIZE_DYNAMIC},
     NULL},
    {"threads over a dimension that runs within another",
     TWICE_ROWS,
     8,
     100,
     100,
     "axis d0 1; axis d1 800; cut d1 by 7 32 tail narrower;"
     "loop d0 threads { loop d1.0 threads { loop d1.1 unrolled { loop d1.2 vector {"
     " do %6 %9; } } } }",
     {.executor = QN_THREADS},
     NULL},
    {"threads over one section beside steps of the other",
     TWICE,
     0,
     960,
     0,
     "axis d0 960; cut d0 at begin+480; cut d0.0 by 8 tail none; cut d0.1 by 8 tail none;"
     "loop d0.0.0 sequential { loop d0.0.1 sequential { do %4 %7; } }"
     "loop d0.1.0 threads { loop d0.1.1 sequential { do %4 %7; } }",
     {.executor = QN_THREADS},
     "threads over steps of a section"},
};

static void fill(float *memory)
{
    for (int i = 0; i < MOST + 2 * GUARD; i++)
        memory[i] = SENTINEL;
    for (int i = 0; i < MOST; i++)
        memory[GUARD + i] = 1 + (float)i;
}

static qn_status run(qn_context *c, const row *r, const qn_options *o, float *memory, qn_error *err)
{
    qn_layout l = {.rank = 1, .dim[0] = {.extent = r->columns, .stride = 1}};
    if (r->rows)
        l = (qn_layout){.rank = 2,
                        .dim[0] = {.extent = r->rows, .stride = r->pitch},
                        .dim[1] = {.extent = r->columns, .stride = 1}};
    qn_kernel *k = kernel_of(r->kernel);
    qn_view y = {0};
    fill(memory);
    qn_status status = qn_view_wrap("y", memory + GUARD, QN_F32, &l, 0, &y, err);
    const qn_arg arg = qn_arg_view(&y);
    if (status == QN_OK)
        status = qn_launch(c, k, 1, &arg, o, err);
    qn_kernel_release(k);
    return status;
}

static void test_row(qn_context *c, const row *r, int isa)
{
    static float expected[MOST + 2 * GUARD], found[MOST + 2 * GUARD];
    char text[2048];
    const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    const qn_plan_options small = {.bytes = sizeof small, .chunk = 1};
    qn_options o = r->options;
    qn_error err = {0};
    snprintf(text, sizeof text, "schedule {\n%s\n}\n", r->schedule);
    o.bytes = sizeof o;
    o.engine = QN_ENGINE_NATIVE;
    o.isa = isa;
    o.plan = &small;
    o.schedule = text;
    if (run(c, r, r->refused ? NULL : &interp, expected, &err) != QN_OK || r->refused)
        fill(expected);
    qn_status status = run(c, r, &o, found, &err);
    if (status == QN_ERR_TARGET)
        return;
    bool is_said = r->refused ? status == QN_ERR_UNSUPPORTED && strstr(err.message, r->refused)
                              : status == QN_OK;
    bool is_same = memcmp(expected, found, sizeof found) == 0;
    if (!tap_ok(is_said && is_same, "x86-64-v%d: %s", isa, r->what))
        tap_note("%s: %s", qn_status_name((int)status),
                 is_said ? "other elements were written" : err.message);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 64];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    const qn_context_options four = {.bytes = sizeof four, .n_threads = 4};
    qn_context *c = context_with(&four);
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++)
        for (int isa = QN_ISA_V3; isa <= QN_ISA_V4; isa++)
            test_row(c, &rows[n], isa);
    qn_context_release(c);
    return tap_done();
}
