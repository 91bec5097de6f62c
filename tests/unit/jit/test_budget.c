/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_budget.c: the budget of compiles. The table of costs and the steps down, without a code
 * generator; then kernels that took seconds and hundreds of megabytes before there was a budget:
 * which step each takes, that what is left is within the budget, that the history says so, and that
 * the results are those of the interpreter.
 */
#define _GNU_SOURCE
#include "jit/schedule/budget.h"
#include "jit/schedule/planned.h"
#include "runtime/context.h"
#include "tests/sanitizer.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- table */

static void test_table(void)
{
    bool is_positive = true, grows = true;
    for (int work = 0; work < QN_N_WORKS; work++)
        for (int isa = QN_ISA_V3; isa <= QN_ISA_V4; isa++)
            for (int bits = 8; bits <= 64; bits *= 2)
                for (int lanes = 1; lanes <= 64; lanes *= 2) {
                    int64_t units = qn__work_units(work, bits, lanes, qn__target_row(isa));
                    is_positive &= units > 0;
                    grows &= lanes < 4 ||
                             units >= qn__work_units(work, bits, lanes / 2, qn__target_row(isa));
                }
    tap_ok(is_positive, "every operation costs something");
    tap_ok(grows, "more lanes cost no less");
    tap_is_int(qn__work_units(QN_WORK_SIMPLE, 64, 64, qn__target_row(QN_ISA_V3)), 16,
               "64 lanes of 64 bits are 16 registers of 256 bits");
    tap_is_int(qn__work_units(QN_WORK_SIMPLE, 64, 64, qn__target_row(QN_ISA_V4)), 8,
               "... and 8 of 512");
    tap_ok(qn__work_units(QN_WORK_DIVIDE, 64, 64, qn__target_row(QN_ISA_V4)) >= 64 * 8,
           "words of 64 bits are divided lane by lane");
    tap_ok(qn__work_units(QN_WORK_DIVIDE, 8, 64, qn__target_row(QN_ISA_V4)) < 64,
           "... and bytes are not");
    tap_ok(qn__work_units(QN_WORK_MASKED, 8, 32, qn__target_row(QN_ISA_V3)) >= 32 * 8,
           "v3 has no masks for bytes");
    tap_ok(qn__work_units(QN_WORK_MASKED, 8, 32, qn__target_row(QN_ISA_V4)) < 8, "v4 has");
    tap_is_int(qn__work_units(-1, 8, 32, qn__target_row(QN_ISA_V4)) +
                   qn__work_units(QN_N_WORKS, 8, 32, qn__target_row(QN_ISA_V4)),
               0, "what is no work costs nothing");
}

/* ---------------------------------------------------------------- kernels */

enum { RANK = 8, MOST_DIGITS = 9 };

/** What a kernel is made of, n times. */
enum { DIVISIONS, GATHERS, ATOMICS, STRIDES, DIGITS, SELECTS, UPDATE };

typedef struct example {
    const char *what;
    int kind, n, isa, specialize;
    int rung; /* expected; QN_N_RUNGS: the interpreter */
} example;

/** A kernel, its views and their memory. */
typedef struct made {
    qn_kernel *kernel;
    qn_layout layout[2];
    qn_view view[2];
    qn_arg arg[2];
    void *memory[2];
    size_t bytes[2];
} made;

static qn_status make_layouts(const example *x, made *m, int *dtype, qn_error *err)
{
    static const int64_t row[1] = {1000}, plane[2] = {20, 50}, wide[2] = {60, 150},
                         tiled[RANK] = {4, 4, 4, 4, 4, 4, 4, 4};
    static const int64_t tile[RANK] = {2, 2, 2, 2, 2, 2, 2, 2};
    static const int order[RANK] = {0, 1, 2, 3, 4, 5, 6, 7}, n_digits[1] = {MOST_DIGITS};
    qn_digit digit[MOST_DIGITS];
    for (int i = 0; i < MOST_DIGITS; i++)
        digit[i] = (qn_digit){.extent = 2 + i % 2, .stride = INT64_C(1) << (2 * i)};
    const int64_t two[2] = {wide[1] * 3, 3};
    *dtype = x->kind == DIVISIONS || x->kind == UPDATE ? QN_I8
             : x->kind == GATHERS                      ? QN_F32
             : x->kind == ATOMICS                      ? QN_I32
                                                       : QN_U8;
    qn_status status = x->kind == STRIDES   ? qn_layout_strided(2, plane, two, &m->layout[0], err)
                       : x->kind == GATHERS ? qn_layout_right(1, tile, &m->layout[0], err)
                                            : qn_layout_right(1, row, &m->layout[0], err);
    if (status)
        return status;
    switch (x->kind) {
    case GATHERS:
        return qn_layout_tiled(RANK, tiled, tile, order, order, &m->layout[1], err);
    case STRIDES:
        return qn_layout_strided(2, plane, two, &m->layout[1], err);
    case DIGITS:
        return qn_layout_custom(1, NULL, n_digits, digit, &m->layout[1], err);
    default:
        return qn_layout_right(1, row, &m->layout[1], err);
    }
}

/** Another value made of v and the element of an access. */
static qn_val next_value(const example *x, qn_builder *b, const qn_param *p, int n,
                         const qn_val *dim, qn_val v, qn_val first)
{
    qn_val at[RANK], any = {0};
    switch (x->kind) {
    case SELECTS:
        return qn_select(b, qn_lt(b, v, qn_const_int(b, QN_U8, n % 200)), qn_add(b, v, first),
                         first);
    case UPDATE:
        return n % 2 ? qn_sub(b, v, first) : qn_div(b, v, first);
    case DIVISIONS:
        return n % 2 ? qn_div(b, v, first) : qn_div(b, first, v);
    case GATHERS:
        for (int d = 0; d < RANK; d++)
            at[d] = qn_rem(b,
                           qn_add(b, qn_mul(b, dim[0], qn_index(b, (n >> d) % 3)),
                                  qn_index(b, (n * 7 >> d) % 4)),
                           qn_index(b, 4));
        return qn_add(b, v, qn_load(b, p[1], RANK, at));
    case ATOMICS:
        at[0] = qn_rem(b, qn_mul(b, dim[0], qn_index(b, n + 3)), qn_index(b, 1000));
        qn_atomic(b, QN_COMBINE_SUM, p[1], 1, at, v, any);
        return v;
    default:
        return n % 3 ? qn_add(b, qn_mul(b, v, first), qn_const_int(b, QN_U8, n))
                     : qn_shr(b, v, qn_and(b, first, qn_const_int(b, QN_U8, 3)));
    }
}

static bool make(const example *x, made *m, qn_error *err)
{
    int dtype;
    *m = (made){0};
    if (make_layouts(x, m, &dtype, err))
        return false;
    qn_builder *b = qn_builder_new("example", 0);
    const qn_param p[2] = {
        qn_view_param(b, "y", dtype, m->layout[0].rank, x->kind == UPDATE ? QN_ATOMIC : 0),
        qn_view_param(b, "x", dtype, m->layout[1].rank, 0)};
    qn_val dim[2] = {{0}};
    for (int d = 0; d < m->layout[0].rank; d++)
        dim[d] = qn_parallel_over(b, p[0], d);
    if (x->kind == DIGITS)
        dim[1] = qn_rem(b, dim[0], qn_extent(b, p[1], 0));
    qn_val first = x->kind == GATHERS || x->kind == ATOMICS
                       ? qn_const_int(b, QN_I32, 1)
                       : qn_load(b, p[1], m->layout[1].rank, x->kind == DIGITS ? dim + 1 : dim);
    first = x->kind == GATHERS ? qn_cast(b, QN_F32, first) : first;
    qn_val v = x->kind == UPDATE ? qn_load(b, p[0], 1, dim) : first;
    for (int n = 0; n < x->n; n++)
        v = next_value(x, b, p, n, dim, v, first);
    qn_store(b, p[0], m->layout[0].rank, dim, v);
    (void)qn_finish(b, &m->kernel, err);
    qn_builder_release(b);
    for (int i = 0; i < 2 && m->kernel; i++) {
        m->bytes[i] = (size_t)(qn_layout_span(&m->layout[i]) * qn_dtype_bytes(dtype));
        m->memory[i] = malloc(m->bytes[i]);
        if (!m->memory[i] ||
            qn_view_wrap("v", m->memory[i], dtype, &m->layout[i], 0, &m->view[i], err))
            return false;
        m->arg[i] = qn_arg_view(&m->view[i]);
    }
    return m->kernel != NULL;
}

static void fill(made *m)
{
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; n < m->bytes[i]; n++)
            ((unsigned char *)m->memory[i])[n] = (unsigned char)(n * 37 % 61);
}

static void release(made *m)
{
    qn_kernel_release(m->kernel);
    for (int i = 0; i < 2; i++) {
        qn_view_release(&m->view[i]);
        qn_layout_release(&m->layout[i]);
        free(m->memory[i]);
    }
}

static const example examples[] = {
    {"100 divisions of i8, v3", DIVISIONS, 100, QN_ISA_V3, QN_SPECIALIZE_EXACT, QN_RUNG_NARROW},
    {"1,000 divisions of i8, v3", DIVISIONS, 1000, QN_ISA_V3, QN_SPECIALIZE_EXACT, QN_RUNG_FAST},
    {"9,900 divisions of i8, v3", DIVISIONS, 9900, QN_ISA_V3, QN_SPECIALIZE_EXACT, QN_N_RUNGS},
    {"100 divisions of i8, v4", DIVISIONS, 100, QN_ISA_V4, QN_SPECIALIZE_EXACT, QN_RUNG_NARROW},
    {"1,000 divisions of i8, v4", DIVISIONS, 1000, QN_ISA_V4, QN_SPECIALIZE_EXACT, QN_RUNG_FAST},
    {"3,000 selects of u8, v3", SELECTS, 3000, QN_ISA_V3, QN_SPECIALIZE_EXACT, QN_RUNG_FAST},
    {"one update of 1,000 divisions and differences of i8, v3", UPDATE, 1000, QN_ISA_V3,
     QN_SPECIALIZE_EXACT, QN_RUNG_FAST},
    {"one update of 3,600 divisions and differences of i8, v3", UPDATE, 3600, QN_ISA_V3,
     QN_SPECIALIZE_EXACT, QN_RUNG_FAST},
    {"1,200 gathers from a tiled view of rank 8, v3", GATHERS, 1200, QN_ISA_V3, QN_SPECIALIZE_EXACT,
     QN_RUNG_FAST},
    {"1,500 atomics, v3", ATOMICS, 1500, QN_ISA_V3, QN_SPECIALIZE_EXACT, QN_RUNG_FAST},
    {"1,500 atomics, dynamic extents, v4", ATOMICS, 1500, QN_ISA_V4, QN_SPECIALIZE_DYNAMIC,
     QN_RUNG_FAST},
    {"12 ops of u8 with dynamic strides, v3", STRIDES, 12, QN_ISA_V3, QN_SPECIALIZE_DYNAMIC,
     QN_RUNG_PLANNED},
    {"12 ops of u8 with dynamic strides, v4", STRIDES, 12, QN_ISA_V4, QN_SPECIALIZE_DYNAMIC,
     QN_RUNG_PLANNED},
    {"12 ops of u8 with exact strides, v3", STRIDES, 12, QN_ISA_V3, QN_SPECIALIZE_EXACT,
     QN_RUNG_PLANNED},
    {"a load of u8 with nine dynamic digits, v3", DIGITS, 1, QN_ISA_V3, QN_SPECIALIZE_DYNAMIC,
     QN_RUNG_PLANNED},
    {"a load of u8 with nine dynamic digits, v4", DIGITS, 1, QN_ISA_V4, QN_SPECIALIZE_DYNAMIC,
     QN_RUNG_NARROW},
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

/* ---------------------------------------------------------------- steps */

/** The facts of an example under its options. */
static bool collect(const example *x, made *m, qn_facts *f, qn_error *err)
{
    qn_arg_value value[2] = {{.layout = &m->layout[0]}, {.layout = &m->layout[1]}};
    qn_policy policy = {.all_dynamic = x->specialize == QN_SPECIALIZE_DYNAMIC};
    qn_options o = {.bytes = sizeof o};
    qn_domain domain;
    uint8_t *proved = calloc((size_t)m->kernel->n_accesses + 1, 1);
    bool is_good =
        proved && !qn__domain(m->kernel, value, false, &domain, err) &&
        qn__prove_bounds(m->kernel, value, &domain, proved) &&
        !qn__facts_collect(
            m->kernel, &(qn_launched){m->arg, &domain, proved, &o, &policy, x->isa, false}, f, err);
    free(proved);
    return is_good;
}

/** Steps down as far as it goes: each step costs no more by the estimate, or is of fewer lanes, and
 * there are few. */
static void test_steps(const example *x)
{
    made m;
    qn_facts f = {0};
    qn_error err = {0};
    qn_planned p;
    qn_descent d = {0};
    if (!make(x, &m, &err) || !collect(x, &m, &f, &err)) {
        tap_ok(false, "%s: %s", x->what, err.message);
        release(&m);
        return;
    }
    qn__planned_make(m.kernel, &f, &p);
    int64_t first = qn__estimate(&p.analysis, &p.plan), last = first;
    int n = 0;
    bool falls = true;
    for (int rung = 0; n < 30 && qn__step_down(&p.analysis, &p.plan, &d, last, true, false); n++) {
        int64_t units = qn__estimate(&p.analysis, &p.plan);
        falls &= d.rung >= rung;
        rung = d.rung;
        last = units;
    }
    tap_ok(falls && n < 30 && d.rung == QN_RUNG_FAST && p.plan.lane_dim == -1,
           "%s: %d steps lead to fast selection of scalar code", x->what, n);
    tap_ok(last <= first && last > 0, "%s: from %" PRId64 " units to %" PRId64, x->what, first,
           last);
    qn__planned_release(&p);
    qn__facts_release(&f);
    release(&m);
}

/** Twice as much costs twice as much. */
static void test_estimate(void)
{
    const example small = {"", DIVISIONS, 200, QN_ISA_V4, 0, 0},
                  large = {"", DIVISIONS, 400, QN_ISA_V4, 0, 0};
    const example *x[2] = {&small, &large};
    int64_t units[2] = {0};
    for (int i = 0; i < 2; i++) {
        made m;
        qn_facts f = {0};
        qn_error err = {0};
        qn_planned p = {0};
        if (make(x[i], &m, &err) && collect(x[i], &m, &f, &err)) {
            qn__planned_make(m.kernel, &f, &p);
            units[i] = qn__estimate(&p.analysis, &p.plan);
        }
        qn__planned_release(&p);
        qn__facts_release(&f);
        release(&m);
    }
    tap_ok(units[0] > 200 * 30, "vectors of divisions are estimated: %" PRId64 " units", units[0]);
    tap_ok(units[1] > units[0] * 19 / 10 && units[1] < units[0] * 21 / 10,
           "twice the divisions are twice the units: %" PRId64, units[1]);
}

/* ---------------------------------------------------------------- compiles */

static int64_t stepped_down(const qn_context *c)
{
    qn_counters n;
    qn_context_counters(c, &n, sizeof n);
    return n.stepped_down;
}

/** The plan's last line: "code UNITS units, RUNG". */
static int rung_of(const qn_code *f, int64_t *units)
{
    static char text[4096];
    (void)qn_code_text(f, QN_DUMP_PLAN, text, sizeof text);
    const char *at = strstr(text, "\ncode ");
    char *end = NULL;
    *units = at ? strtoll(at + strlen("\ncode "), &end, 10) : -1;
    for (int rung = 0; at && rung < QN_N_RUNGS; rung++) {
        size_t n = strlen(qn__rung_name(rung));
        if (!strncmp(end, " units, ", 8) && !strncmp(end + 8, qn__rung_name(rung), n) &&
            end[8 + n] == '\n')
            return rung;
    }
    return -1;
}

static bool has_results_of_interpreter(qn_context *c, const made *given, const qn_options *o)
{
    made m = *given;
    void *expected[2] = {malloc(m.bytes[0]), malloc(m.bytes[1])};
    qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    bool is_same = expected[0] && expected[1];
    fill(&m);
    is_same = is_same && qn_launch(c, m.kernel, 2, m.arg, &interp, NULL) == QN_OK;
    for (int i = 0; i < 2 && is_same; i++)
        memcpy(expected[i], m.memory[i], m.bytes[i]);
    fill(&m);
    is_same = is_same && qn_launch(c, m.kernel, 2, m.arg, o, NULL) == QN_OK;
    for (int i = 0; i < 2; i++) {
        is_same = is_same && !memcmp(expected[i], m.memory[i], m.bytes[i]);
        free(expected[i]);
    }
    return is_same;
}

/** Beyond the budget of the last step. */
static void test_refused(qn_context *c, const example *x)
{
    made m;
    qn_error err = {0};
    qn_code *f = NULL;
    char history[20000] = "";
    qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = x->isa, .specialize = x->specialize};
    bool is_made = make(x, &m, &err);
    tap_ok(is_made && qn_specialize(c, m.kernel, 2, m.arg, &o, &f, &err) == QN_ERR_LIMIT,
           "%s: no code: %s", x->what, err.message);
    o.engine = QN_ENGINE_AUTO;
    tap_ok(is_made && has_results_of_interpreter(c, &m, &o), "%s: runs all the same", x->what);
    (void)qn_context_history(c, history, sizeof history);
    tap_contains(history,
                 "interpreted: QN_ERR_LIMIT: ", "... in the interpreter, as the history says");
    release(&m);
}

static void test_compile(qn_context *c, const example *x)
{
    made m;
    qn_error err = {0};
    qn_code *f = NULL;
    int64_t before = stepped_down(c), units = 0;
    char history[20000] = "";
    qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = x->isa, .specialize = x->specialize};
    if (!make(x, &m, &err) || qn_specialize(c, m.kernel, 2, m.arg, &o, &f, &err)) {
        tap_ok(false, "%s: %s", x->what, err.message);
        release(&m);
        return;
    }
    int rung = rung_of(f, &units);
    size_t n = qn_context_history(c, history, sizeof history), last = n < sizeof history ? n : 0;
    while (last > 1 && history[last - 2] != '\n')
        last--; /* the last line begins there, or one before */
    const char *line = history + (last ? last - 1 : 0);
    tap_ok(rung == x->rung, "%s: %s", x->what, qn__rung_name(rung));
    tap_ok(units > 0 && units <= qn__budget_units(0, rung, qn__target_row(x->isa)),
           "%s: %" PRId64 " units are within the budget", x->what, units);
    bool is_stepped = x->rung != QN_RUNG_PLANNED;
    tap_ok(stepped_down(c) - before == is_stepped && !!strstr(line, "stepped down") == is_stepped,
           "%s: the history says so", x->what);
    tap_ok(has_results_of_interpreter(c, &m, &o), "%s: the results are the interpreter's", x->what);
    qn_code_release(f);
    release(&m);
}

/** With a budget for next to nothing. */
static void test_interpreted(void)
{
    const example x = {"", DIVISIONS, 100, QN_ISA_V3, QN_SPECIALIZE_EXACT, 0};
    qn_context *c = NULL;
    qn_error err = {0};
    made m;
    char history[2000] = "";
    qn_options o = {.bytes = sizeof o, .isa = x.isa};
    if (qn_context_new(NULL, &c, &err) || !make(&x, &m, &err)) {
        tap_ok(false, "context: %s", err.message);
        return;
    }
    c->compiler.most_units = 10;
    fill(&m);
    tap_ok(qn_launch(c, m.kernel, 2, m.arg, &o, &err) == QN_OK,
           "what is beyond every budget is run %s", err.message);
    (void)qn_context_history(c, history, sizeof history);
    tap_contains(history, "interpreted: QN_ERR_LIMIT",
                 "... by the interpreter, as the history says");
    o.engine = QN_ENGINE_NATIVE;
    tap_is_int(qn_launch(c, m.kernel, 2, m.arg, &o, &err), QN_ERR_LIMIT,
               "code that was asked for by name is refused");
    release(&m);
    qn_context_release(c);
}

static qn_provider_function real_provider;
static atomic_bool may_leave;

/** A code generator whose compiles end only if they are begun again. */
static int slow_provider(qn_request *r)
{
    if (r->kind != QN_REQUEST_COMPILE || r->is_retry)
        return real_provider(r);
    while (!atomic_load(&may_leave))
        continue;
    return QN_ERR_CODEGEN;
}

enum { MOST_WAITS = 60000 }; /* of a millisecond at least */

/** A compile that takes too long is begun again with the cheapest plan. */
static void test_retry(void)
{
    const example x = {"", DIVISIONS, 7, QN_ISA_V3, QN_SPECIALIZE_EXACT, 0};
    const qn_context_options limit = {.bytes = sizeof limit, .compile_ms = 100};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = x.isa};
    qn_context *c = NULL;
    qn_error err = {0};
    char history[2000] = "";
    made m;
    if (qn_context_new(&limit, &c, &err) ||
        qn__provider_open(c->options.provider_path, &real_provider, NULL, &err) ||
        !make(&x, &m, &err)) {
        tap_ok(false, "context: %s", err.message);
        return;
    }
    c->compiler.function = slow_provider;
    c->compiler.provider = QN_PROVIDER_READY;
    fill(&m);
    qn_code *f = NULL;
    int64_t units;
    tap_ok(qn_specialize(c, m.kernel, 2, m.arg, &o, &f, &err) == QN_OK,
           "a compile that took too long gives code %s", err.message);
    tap_ok(f && rung_of(f, &units) == QN_RUNG_FAST, "... of the cheapest plan");
    (void)qn_context_history(c, history, sizeof history);
    tap_contains(history, "compiled again with the cheapest plan: qn__compile: kernel",
                 "... as the history says");
    tap_contains(history, "of processor time", "... with the reason");
    tap_ok(f && has_results_of_interpreter(c, &m, &o), "... and the results are the interpreter's");
    qn_code_release(f);
    release(&m);
    /* The thread that was given up has a reference. Were that the last one, the threads would end
     * while the process does, and code generators that end then are not released. */
    const int64_t references = atomic_load(&c->references);
    atomic_store(&may_leave, true);
    for (int i = 0; i < MOST_WAITS && atomic_load(&c->references) == references; i++)
        usleep(1000);
    qn_context_release(c);
}

/** Megabytes of addresses of this process. */
static int64_t addresses_mb(void)
{
    char line[256];
    int64_t kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmSize:", 7))
            kb = strtoll(line + 7, NULL, 10);
    if (file)
        fclose(file);
    return kb >> 10;
}

/** In a child with room for less than a compile may need. */
static void test_no_room(qn_context *c)
{
    const example x = {"", DIVISIONS, 7, QN_ISA_V3, QN_SPECIALIZE_EXACT, 0};
    pid_t child = fork();
    if (child == 0) {
        made m;
        qn_error err = {0};
        char history[20000] = ""; /* that of all examples before */
        qn_options o = {.bytes = sizeof o, .isa = x.isa};
        rlim_t most = (rlim_t)(addresses_mb() + 200) << 20;
        struct rlimit limit = {most, most};
        if (!make(&x, &m, &err))
            _exit(2);
        fill(&m);
        if (setrlimit(RLIMIT_AS, &limit))
            _exit(3);
        if (qn_launch(c, m.kernel, 2, m.arg, &o, &err))
            _exit(4);
        (void)qn_context_history(c, history, sizeof history);
        _exit(strstr(history, "interpreted: QN_ERR_MEMORY") ? 0 : 5);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    tap_is_int(status, 0, "without room for the memory of a compile the interpreter runs");
}

/* ---------------------------------------------------------------- pieces */

enum { PIECE_ROWS = 1, PIECE_COLUMNS = 33, PIECE_LANES = 2 };

/** O[i, j, l] = the sum of ceil(l) over some points, which iterations share, and that of a term of
 * each iteration over others. NULL: it cannot be made. */
static qn_kernel *kernel_of_pieces(int64_t points, int64_t others)
{
    static const char text[] =
        "kernel \"pieces\" { view o: f32[3]; %%z: i64 = const 0; %%m: i64 = extent o, 0;\n"
        "%%n: i64 = extent o, 1; %%w: i64 = extent o, 2;\n"
        "%%p: i64 = const %lld; %%t: i64 = const %lld;\n"
        "%%i: i64 = parallel %%z, %%m; %%j: i64 = parallel %%z, %%n;\n"
        "%%l: i64 = parallel %%z, %%w;\n"
        "%%k: i64 = reduction %%z, %%p; %%q: i64 = reduction %%z, %%t;\n"
        "%%r: f32 = reduce sum striped over %%k {\n"
        "%%a: f32 = cast %%l; %%b: f32 = ceil %%a; yield %%b; };\n"
        "%%x: i64 = mul %%i, %%j; %%y: i64 = mul %%x, %%l;\n"
        "%%s: f32 = reduce sum striped over %%q { %%c: f32 = cast %%y; yield %%c; };\n"
        "%%u: f32 = add %%r, %%s; store o[%%i, %%j, %%l], %%u; }";
    char own[sizeof text + 40];
    qn_kernel *k = NULL;
    qn_error err = {0};
    snprintf(own, sizeof own, text, (long long)points, (long long)others);
    if (qn_kernel_parse(own, strlen(own), &k, &err) != QN_OK)
        tap_note("%s", err.message);
    return k;
}

/** What a launch within `most` units and a time limit gives; *steps: whether the kernel had
 * pieces. */
static qn_status launch_within(const qn_kernel *k, int64_t most, int64_t limit_ns, float *o,
                               bool *steps, qn_error *err)
{
    const int64_t extents[3] = {PIECE_ROWS, PIECE_COLUMNS, PIECE_LANES};
    qn_context *c = NULL;
    qn_layout l;
    qn_view v;
    qn_options options = {.bytes = sizeof options, .specialize = QN_SPECIALIZE_DYNAMIC};
    if (qn_context_new(NULL, &c, err) || qn_layout_right(3, extents, &l, err) ||
        qn_view_wrap("o", o, QN_F32, &l, 0, &v, err))
        return QN_ERR_MEMORY;
    c->compiler.most_units = most;
    const qn_arg args[1] = {qn_arg_view(&v)};
    qn_code *code = NULL;
    char text[1 << 12] = "";
    if (qn_specialize(c, k, 1, args, &options, &code, err) == QN_OK)
        qn_code_text(code, QN_DUMP_SCHEDULE, text, sizeof text);
    qn_code_release(code);
    *steps |= strstr(text, "several functions") != NULL;
    options.timeout_ns = limit_ns; /* of the launch: the code is there */
    qn_status status = qn_launch(c, k, 1, args, &options, err);
    qn_context_release(c);
    return status;
}

static void test_pieces(void)
{
    float o[PIECE_ROWS * PIECE_COLUMNS * PIECE_LANES];
    qn_kernel *k = kernel_of_pieces(7, 1);
    qn_error err = {0};
    bool is_right = k != NULL, has_pieces = false;
    for (int64_t most = 4; most <= 400 && is_right; most += 4) {
        memset(o, 0, sizeof o);
        is_right = launch_within(k, most, 2000000000, o, &has_pieces, &err) == QN_OK;
        for (int n = 0; n < PIECE_ROWS * PIECE_COLUMNS * PIECE_LANES; n++)
            is_right = is_right && o[n] == (n % PIECE_LANES ? 7.0f : 0.0f);
        if (!is_right)
            tap_note("within %d units: %s", (int)most, err.message);
    }
    tap_ok(is_right, "pieces with less code divide what they were given");
    tap_ok(has_pieces, "... there were pieces");
    qn_kernel_release(k);
}

/** Loops of pieces end at the time limit, whatever code there is room for. */
static void test_pieces_end(const char *what, int64_t points, int64_t others)
{
    float o[PIECE_ROWS * PIECE_COLUMNS * PIECE_LANES];
    qn_kernel *k = kernel_of_pieces(points, others);
    qn_error err = {0};
    bool is_ended = k != NULL, has_pieces = false;
    for (int64_t most = 20; most <= 400 && is_ended; most += 20) {
        qn_status status = launch_within(k, most, 2000000, o, &has_pieces, &err);
        is_ended = status == QN_ERR_CANCELLED;
        if (!is_ended)
            tap_note("within %d units: %s", (int)most, status ? err.message : "it was done");
    }
    tap_ok(is_ended && has_pieces, "the time limit ends %s", what);
    qn_kernel_release(k);
}

/** A search that ends by a condition of many, each of which is part of two others. */
static qn_kernel *kernel_of_conditions(qn_error *err)
{
    enum { LEVELS = 24, LINE = 200 };
    char text[LINE * (LEVELS + 4)];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "kernel k (x: i32[], y: i64[]) { for all i in y {"
                                " %%z: i64 = const 0; %%m: i64 = const 99;"
                                " %%r: i64 = while max %%m (%%k: i64 = %%z) {"
                                " %%v: i32 = load x[%%k]; %%a0: bool = ne %%v, 7;");
    for (int l = 0; l < LEVELS; l++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              " %%c%d: bool = ne %%v, %d; %%d%d: bool = and %%a%d, %%c%d;"
                              " %%e%d: bool = ne %%v, %d; %%f%d: bool = and %%a%d, %%e%d;"
                              " %%a%d: bool = and %%d%d, %%f%d;",
                              l, -1 - l, l, l, l, l, -100 - l, l, l, l, l + 1, l, l);
    snprintf(text + n, sizeof text - n,
             " yield %%a%d; } do { %%n: i64 = add %%k, 1; yield %%n; }; y[i] = %%r } }", LEVELS);
    qn_kernel *k = NULL;
    return qn_kernel_parse(text, strlen(text), &k, err) ? NULL : k;
}

/** What conditions share is looked at once: by each way to it, that took minutes. */
static void test_conditions(void)
{
    enum { N = 90, AT = 77 };
    const qn_context_options limit = {.bytes = sizeof limit, .compile_ms = 5000};
    const qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .checks = QN_CHECKS_NONE};
    qn_context *c = NULL;
    qn_error err = {0};
    int32_t x[N] = {0};
    int64_t y[1] = {0}, extent[2] = {N, 1};
    char history[2000] = "", plan[10000] = "";
    qn_view v[2] = {{0}};
    qn_layout l[2] = {{0}};
    qn_code *f = NULL;
    qn_kernel *k = kernel_of_conditions(&err);
    x[AT] = 7;
    bool is_made = k && !qn_context_new(&limit, &c, &err);
    for (int n = 0; n < 2 && is_made; n++)
        is_made = !qn_layout_right(1, &extent[n], &l[n], &err) &&
                  !qn_view_wrap("v", n ? (void *)y : (void *)x, n ? QN_I64 : QN_I32, &l[n], 0,
                                &v[n], &err);
    const qn_arg arg[2] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    bool is_run = is_made && !qn_launch(c, k, 2, arg, &o, &err) &&
                  !qn_specialize(c, k, 2, arg, &o, &f, &err);
    tap_ok(is_run && y[0] == AT, "a search ends where its conditions say %s", err.message);
    if (is_run) {
        (void)qn_code_text(f, QN_DUMP_SCHEDULE, plan, sizeof plan);
        (void)qn_context_history(c, history, sizeof history);
    }
    if (__builtin_cpu_supports("avx512bw")) /* which has the estimate for such lanes */
        tap_contains(plan, "axis t", "... its trips are lanes");
    else
        tap_skip("no AVX-512 here: ... its trips are lanes");
    tap_ok(is_run && !strstr(history, "compiled again"), "... and it is compiled in time");
    qn_code_release(f);
    qn_context_release(c);
    qn_kernel_release(k);
}

int main(void)
{
    qn_context *c = NULL;
    qn_error err = {0};
    test_table();
    test_estimate();
    for (int i = 0; i < N_EXAMPLES; i++)
        test_steps(&examples[i]);
    tap_ok(qn_context_new(NULL, &c, &err) == QN_OK, "context %s", err.message);
    for (int i = 0; i < N_EXAMPLES; i++)
        if (examples[i].isa == QN_ISA_V4 && !__builtin_cpu_supports("avx512bw"))
            tap_skip("no AVX-512");
        else if (examples[i].rung == QN_N_RUNGS)
            test_refused(c, &examples[i]);
        else
            test_compile(c, &examples[i]);
    test_interpreted();
    test_conditions();
    test_pieces();
    test_pieces_end("pieces of long reduces", INT64_C(1) << 40, 1);
    test_pieces_end("pieces of which the rest is long", 7, INT64_C(1) << 40);
    if (IS_SANITIZED)
        tap_skip("sanitizers need more addresses");
    else
        test_no_room(c);
    qn_context_release(c);
    test_retry(); /* last: its thread may still be inside the code generator, which forks do not
                     like */
    return tap_done();
}
