/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_run.c: runs a case in all ways and compares: status, message, and after success the
 * whole memory of all views, where two NaNs are equal. After a fault the values are not specified,
 * but nothing outside the written views' elements may have changed.
 */
#include "differential.h"
#include "runtime/context.h"
#include "tests/ptx/host.h"
#include "tests/tap.h"
#include "tests/dtypes.h"

#include <stdlib.h>

static const char *const way_names[] = {
#define QN_X(name, text) text,
    WAY_LIST(QN_X)
#undef QN_X
};

const char *way_name(int id)
{
    return way_names[id];
}

/* ---------------------------------------------------------------- ways */

/* The machine of the tests for PTX is slow. */
enum { MOST_PTX_POINTS = 65000, MOST_WARPS = 1000, MOST_TREE_POINTS = 5000 };

static bool is_cuda(int id)
{
    return id == WAY_CUDA_EXACT || id == WAY_CUDA_PLAN || id == WAY_CUDA_SCHEDULE;
}

static bool is_ptx(int id)
{
    return id == WAY_PTX_EXACT || id == WAY_PTX_PLAN || id == WAY_PTX_SCHEDULE;
}

static bool is_clamp(int id)
{
    return id == WAY_CLAMP || id == WAY_CLAMP_PLAN || id == WAY_SCHEDULE_CLAMP;
}

/** A pin of a number of argument i. Of one number all pins agree whether it is a constant. */
static qn_fact_pin random_pin(const test_case *t, randoms *r, int i, int salt)
{
    static const int16_t multiples[] = {2, 4, 8, 16, 32, 64, 12, 3, 1};
    const qn_view *v = t->args[i].view;
    qn_fact_pin pin = {.param = i, .of = QN_PIN_SCALAR};
    if (v) {
        pin.of = random_percent(r, 60)   ? QN_PIN_EXTENT
                 : random_percent(r, 70) ? QN_PIN_STRIDE
                                         : QN_PIN_LOWER;
        pin.dim = random_below(r, v->layout.rank);
    }
    bool may_divide = v || t->args[i].dtype == QN_I32 || t->args[i].dtype == QN_I64;
    pin.as = may_divide && random_percent(r, 50)         ? QN_PIN_MULTIPLE
             : (pin.of + pin.dim + pin.param + salt) % 3 ? QN_PIN_DYNAMIC
                                                         : QN_PIN_CONSTANT;
    pin.multiple = pin.as == QN_PIN_MULTIPLE ? multiples[random_below(r, 9)] : 0;
    return pin;
}

static void random_pins(const test_case *t, randoms *r, way *w)
{
    int n = 1 + random_below(r, MOST_PINNED), salt = random_below(r, 3);
    for (int j = 0; j < n; j++) {
        int i = random_below(r, t->n_args);
        if (!t->args[i].view || t->args[i].view->layout.rank > 0)
            w->pin[w->options.n_pins++] = random_pin(t, r, i, salt);
    }
    w->options.pins = w->pin;
}

/** A time limit: far away, or so near that it ends some launches. */
static int64_t random_limit(randoms *r)
{
    return random_percent(r, 30) ? INT64_C(1) << 60 : INT64_C(1) << random_between(r, 10, 18);
}

static void describe_way(const test_case *t, randoms *r, int id, way *w)
{
    *w = (way){.id = id, .plan = {.bytes = sizeof w->plan}};
    qn_options *o = &w->options;
    o->bytes = sizeof *o;
    o->plan = &w->plan;
    o->engine = id == WAY_INTERPRETER ? QN_ENGINE_INTERP : QN_ENGINE_NATIVE;
    bool has_threads =
        id == WAY_THREADS_EXACT || id == WAY_THREADS_PLAN || id == WAY_SCHEDULE_THREADS;
    o->executor = has_threads ? QN_THREADS : QN_SERIAL;
    bool may_be_either = id == WAY_BUDGET || id == WAY_THREADS_PLAN || id == WAY_CLAMP_PLAN ||
                         id == WAY_PTX_PLAN || id == WAY_CUDA_PLAN || id == WAY_PRINTS ||
                         id > WAY_SCHEDULE_DYNAMIC;
    bool is_dynamic = id == WAY_DYNAMIC_V4 || id == WAY_DYNAMIC_V3 || id == WAY_PLAN_DYNAMIC ||
                      id == WAY_SCHEDULE_DYNAMIC ||
                      (may_be_either && random_percent(r, 40)); /* many plans need known extents */
    bool is_generic = is_dynamic && random_percent(r, 33);
    o->specialize = is_generic   ? QN_SPECIALIZE_GENERIC
                    : is_dynamic ? QN_SPECIALIZE_DYNAMIC
                                 : QN_SPECIALIZE_EXACT;
    if (id == WAY_EXACT_V4 || id == WAY_DYNAMIC_V4)
        o->isa = QN_ISA_V4;
    if (id == WAY_EXACT_V3 || id == WAY_DYNAMIC_V3)
        o->isa = QN_ISA_V3;
    if (is_ptx(id) || id == WAY_TREE_GPU) {
        o->isa = QN_ISA_SM80;
        o->engine = QN_ENGINE_AUTO;
    }
    if (is_cuda(id)) {
        o->executor = QN_CUDA;
        o->engine = QN_ENGINE_AUTO;
    }
    if (is_clamp(id))
        o->checks = QN_CHECKS_CLAMP;
    if (id == WAY_UNCHECKED || id == WAY_SCHEDULE_UNCHECKED)
        o->checks = QN_CHECKS_NONE;
    if (id == WAY_ORC)
        o->loader = QN_LOADER_ORC;
    if (id == WAY_BUDGET) { /* some are interpreted then */
        static const int16_t most[] = {20, 60, 120, 250, 500, 1000};
        w->most_units = most[random_below(r, 6)];
        o->engine = QN_ENGINE_AUTO;
        o->executor = random_percent(r, 30) ? QN_THREADS : QN_SERIAL;
    }
    bool is_changed = id == WAY_SCHEDULE_CHANGED || (id == WAY_TREE && random_percent(r, 30)) ||
                      (id == WAY_PTX_SCHEDULE && random_percent(r, 40));
    w->change = is_changed ? 1 | random_bits(r) : 0;
    if (id == WAY_PREPARED) {
        w->is_prepared = true;
        o->constant_scalars = 1;
    }
    bool is_x86_plan = id == WAY_PLAN_EXACT || id == WAY_PLAN_DYNAMIC || id == WAY_THREADS_PLAN ||
                       id == WAY_UNCHECKED || id == WAY_CLAMP_PLAN;
    if (is_x86_plan || id == WAY_PTX_PLAN || id == WAY_CUDA_PLAN ||
        ((has_schedule(id) || id == WAY_BUDGET) && random_percent(r, 50)))
        random_plan(t, r, &w->plan);
    if (is_ptx(id) && t->iterations > MOST_WARPS) { /* each would be one, for any reduce */
        o->specialize = QN_SPECIALIZE_EXACT;
        o->constant_scalars = 1;
        w->plan.team = w->plan.team == 2 ? 0 : w->plan.team;
    }
    bool is_of_gpu = has_grid(id) || id == WAY_TREE_GPU;
    if ((is_x86_plan || id == WAY_BUDGET || (has_schedule(id) && !is_of_gpu)) &&
        random_percent(r, 35))
        o->isa = QN_ISA_V3;
    o->atomics = !is_cuda(id) && random_percent(r, 30) ? QN_ATOMICS_SHARED : QN_ATOMICS_LAUNCH;
    if (id != WAY_INTERPRETER && t->n_args > 0 && random_percent(r, 40))
        random_pins(t, r, w);
    if (o->executor == QN_THREADS) { /* otherwise so few iterations would run on one */
        w->plan.chunk =
            random_percent(r, 80) ? 1 + random_below(r, random_percent(r, 50) ? 20 : 500) : 0;
        o->max_threads = random_below(r, 5);
    }
    w->has_small_caches = t->is_plain && !is_cuda(id) && random_percent(r, 40);
    if (o->engine == QN_ENGINE_NATIVE && !is_tree(id) && random_percent(r, 15))
        o->timeout_ns = random_limit(r);
}

/* Whether a view says what iterations own in another: a narrow or unsigned dtype may not hold these
 * numbers. */
static bool has_owner(const test_case *t)
{
    bool has = false;
    for (int i = 0; i < t->n_views; i++)
        has = has || t->view[i].is_owner;
    return has;
}

/* Clamped stores may meet in one element, and unchecked accesses must be in bounds. */
static bool is_applicable(const runner *r, const test_case *t, int id, qn_status reference)
{
    if (r->no_x86 && id != WAY_INTERPRETER)
        return false;
    if (r->only_way >= 0 && id != r->only_way)
        return false;
    if (r->has_only_schedules && !has_schedule(id))
        return false;
    if (is_cuda(id))
        return r->gpu.context != NULL;
    if (r->is_cuda_only && id != WAY_INTERPRETER)
        return false;
    if (t->has_varied && (id == WAY_EXACT_V3 || id == WAY_PLAN_EXACT || id == WAY_THREADS_EXACT ||
                          id == WAY_UNCHECKED || id == WAY_ORC))
        return false; /* nothing new: the dynamic ways meet their code again */
    if (is_ptx(id) && t->points > MOST_PTX_POINTS)
        return false;
    bool has_own_plan = id != WAY_INTERPRETER && id <= WAY_DYNAMIC_V3;
    if (t->is_plain && (has_own_plan || id == WAY_THREADS_EXACT || id == WAY_PREPARED) &&
        (t->number + (uint64_t)id) % 2)
        return false; /* of plain kernels more, each in fewer ways */
    if (id == WAY_UNCHECKED || id == WAY_SCHEDULE_UNCHECKED)
        return reference == QN_OK;
    if (is_clamp(id))
        return !t->stores_escape && !has_owner(t) && reference == QN_ERR_BOUNDS;
    if (id == WAY_PRINTS) /* one iteration after the other */
        return t->kernel->has_prints && t->points <= MOST_PTX_POINTS;
    if (is_tree(id))
        return reference == QN_OK && t->points <= MOST_TREE_POINTS;
    return id != WAY_ORC || t->number % 8 == 0;
}

/* ---------------------------------------------------------------- running */

static void take_line(void *arg, const qn_printed *line)
{
    outcome *out = arg;
    out->n_lines++;
    for (const char *at = line->text; *at; at++)
        out->lines = (out->lines ^ (unsigned char)*at) * 0x100000001b3u;
    out->lines = (out->lines ^ '\n') * 0x100000001b3u;
}

static void restore(const test_case *t)
{
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].memory)
            memcpy(t->view[i].memory, t->view[i].initial, t->view[i].bytes);
}

static void keep_expected(const test_case *t)
{
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].memory)
            memcpy(t->view[i].expected, t->view[i].memory, t->view[i].bytes);
}

qn_context *context_of(const runner *r, const way *w)
{
    return w->id == WAY_BUDGET ? r->small : w->has_small_caches ? r->small_caches : r->context;
}

/** Compiles before a launch with a time limit, which would end the compile. */
static void compile_ahead(const runner *r, const test_case *t, const qn_kernel *k, const way *w)
{
    qn_options o = w->options;
    qn_code *f = NULL;
    o.timeout_ns = 0;
    (void)qn_specialize(context_of(r, w), k, t->n_args, t->args, &o, &f, NULL);
    qn_code_release(f);
}

/** PTX runs on a machine of the tests. */
static qn_status run_ptx(const runner *r, const test_case *t, const qn_kernel *k, const way *w,
                         qn_error *err)
{
    ptx_memory memory[MAX_VIEWS];
    int n = 0;
    qn_code *f = NULL;
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].memory)
            memory[n++] = (ptx_memory){t->view[i].memory, t->view[i].bytes};
    qn_context *c = context_of(r, w);
    qn_status status = qn_specialize(c, k, t->n_args, t->args, &w->options, &f, err);
    if (status == QN_OK)
        status = ptx_host_run(c, f, k, t->n_args, t->args, memory, n, (uint32_t)t->number, err);
    qn_code_release(f);
    return status;
}

/** On copies of the memory on the GPU. */
static qn_status run_cuda(const runner *r, const test_case *t, const qn_kernel *k, const way *w,
                          qn_error *err)
{
    device_memory memory[MAX_VIEWS];
    int n = 0;
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].memory)
            memory[n++] = (device_memory){t->view[i].memory, t->view[i].bytes};
    return device_launch(&r->gpu, k, t->n_args, t->args, n, memory, &w->options, err);
}

static outcome run_once(runner *r, const test_case *t, const qn_kernel *k, const way *w)
{
    outcome out = {0};
    qn_call *call = NULL;
    restore(t);
    if (is_tree(w->id)) {
        out.status = run_tree(r, t, k, w, &out.error);
        return out;
    }
    if (w->options.isa >= QN_ISA_SM70) {
        out.status = run_ptx(r, t, k, w, &out.error);
        return out;
    }
    if (w->options.executor == QN_CUDA) {
        out.status = run_cuda(r, t, k, w, &out.error);
        return out;
    }
    if (w->id == WAY_BUDGET)
        r->small->compiler.most_units = w->most_units;
    if (w->options.timeout_ns)
        compile_ahead(r, t, k, w);
    if (!w->is_prepared) {
        qn_options o = w->options;
        out.has_lines = w->id == WAY_PRINTS;
        o.print = out.has_lines ? take_line : NULL;
        o.print_arg = &out;
        out.status = qn_launch(context_of(r, w), k, t->n_args, t->args, &o, &out.error);
        return out;
    }
    out.status =
        qn_prepare(context_of(r, w), k, t->n_args, t->args, &w->options, &call, &out.error);
    if (out.status == QN_OK)
        out.status = qn_run(call, &out.error);
    qn_call_release(call);
    return out;
}

/** The interpreter, with or without what kernels print: what only a print needs may fail, too. */
static outcome run_reference(runner *r, const test_case *t, const qn_kernel *k, int checks,
                             bool prints)
{
    way w = {.id = prints ? WAY_PRINTS : WAY_INTERPRETER,
             .options = {.bytes = sizeof w.options, .engine = QN_ENGINE_INTERP, .checks = checks}};
    outcome out = run_once(r, t, k, &w);
    keep_expected(t);
    return out;
}

/* ---------------------------------------------------------------- comparing */

static bool is_nan(int dtype, const void *p)
{
    uint64_t bits = 0, inf = dtype_infinity(dtype);
    size_t size = (size_t)qn_dtype_bytes(dtype);
    memcpy(&bits, p, size);
    return (bits & UINT64_MAX >> (65 - 8 * size)) > inf;
}

bool is_same_element(int dtype, const unsigned char *a, const unsigned char *b)
{
    size_t size = (size_t)qn_dtype_bytes(dtype);
    return memcmp(a, b, size) == 0 || (is_float(dtype) && is_nan(dtype, a) && is_nan(dtype, b));
}

static void describe_byte(const test_view *v, size_t at, const unsigned char *expected, char *what,
                          size_t bytes)
{
    int64_t index[QN_MAX_RANK];
    char place[160];
    const unsigned char *first = v->view.data;
    int64_t distance = v->memory + at - first, unit = unit_bytes(v);
    snprintf(place, sizeof place, "outside the view, %" PRId64 " bytes from its data", distance);
    int64_t offset = distance / unit - (distance % unit < 0);
    if (v->rank == 0 ||
        qn_layout_inverse(&v->layout, offset + v->layout.origin, index, NULL) == QN_OK) {
        size_t n = (size_t)snprintf(place, sizeof place, "[");
        for (int d = 0; d < v->rank; d++)
            n += (size_t)snprintf(place + n, sizeof place - n, "%s%" PRId64, d ? ", " : "",
                                  index[d]);
        snprintf(place + n, sizeof place - n, "] byte %d", (int)(distance - offset * unit));
    }
    snprintf(what, bytes, "%s %s: %s, 0x%02x, expected 0x%02x", v->name, place,
             qn_dtype_name(v->dtype), v->memory[at], expected[at]);
}

/* The elements of a view as others have them, where they may: those of `from` into `to`, both laid
 * out as the memory. */
static void take_elements(const test_view *v, const unsigned char *from, unsigned char *to,
                          bool only_same)
{
    int64_t index[QN_MAX_RANK];
    qn_view plain = v->view; /* elements of atomic views have no addresses */
    plain.traits = 0;
    for (int d = 0; d < v->rank; d++)
        index[d] = v->layout.dim[d].lower;
    if (qn_layout_size(&v->layout) == 0)
        return;
    do {
        void *at;
        if (qn_view_at(&plain, v->rank, index, &at, NULL))
            continue; /* a bad list entry */
        int64_t offset = (unsigned char *)at - v->memory;
        if (!only_same || is_same_value(v, from + offset, to + offset))
            for (int p = 0; p < v->n_parts; p++)
                memcpy(to + offset + v->part[p].offset, from + offset + v->part[p].offset,
                       (size_t)qn_dtype_bytes(v->part[p].dtype));
    } while (next_element(&v->layout, index));
}

/* Whether the memory of a view is `expected` but for its own elements: any, or the same but for
 * NaNs. */
static bool is_memory(const test_view *v, const unsigned char *expected, bool only_same,
                      bool may_differ, char *what, size_t bytes)
{
    if (!v->memory || memcmp(v->memory, expected, v->bytes) == 0)
        return true;
    unsigned char *now = malloc(v->bytes);
    if (!now)
        return false;
    memcpy(now, v->memory, v->bytes);
    if (may_differ)
        take_elements(v, expected, now, only_same);
    size_t at = 0;
    while (at < v->bytes && now[at] == expected[at])
        at++;
    if (at < v->bytes)
        describe_byte(v, at, expected, what, bytes);
    free(now);
    return at == v->bytes;
}

/* Whether the values of all views are those of the reference. */
static bool is_same_memory(const test_case *t, char *what, size_t bytes)
{
    bool is_same = true;
    for (int i = 0; i < t->n_views && is_same; i++)
        is_same = is_memory(&t->view[i], t->view[i].expected, true, true, what, bytes);
    return is_same;
}

/* Whether all changes lie in elements of written views. */
static bool is_inside(const test_case *t, char *what, size_t bytes)
{
    bool is_same = true;
    for (int i = 0; i < t->n_views && is_same; i++)
        is_same = is_memory(&t->view[i], t->view[i].initial, false, t->view[i].role != ROLE_INPUT,
                            what, bytes);
    return is_same;
}

bool is_same_message(const char *a, const char *b)
{
    const char *x = strstr(a, ": "), *y = strstr(b, ": ");
    return strcmp(x ? x : a, y ? y : b) == 0;
}

static bool is_untouched(const test_case *t)
{
    bool is_same = true;
    for (int i = 0; i < t->n_views && is_same; i++)
        is_same = !t->view[i].memory ||
                  memcmp(t->view[i].memory, t->view[i].initial, t->view[i].bytes) == 0;
    return is_same;
}

/** Whether the time limit ended a launch, which wrote nothing outside of the written views. */
static bool is_ended(const test_case *t, const way *w, const outcome *found, char *what,
                     size_t bytes)
{
    return w->options.timeout_ns && found->status == QN_ERR_CANCELLED &&
           strstr(found->error.message, "time limit") && is_inside(t, what, bytes);
}

static bool is_agreed(const test_case *t, const outcome *reference, const outcome *found,
                      char *what, size_t bytes)
{
    if (found->status != reference->status) {
        snprintf(what, bytes, "%s (%s), expected %s (%s)", qn_status_name((int)found->status),
                 found->error.message, qn_status_name((int)reference->status),
                 reference->error.message);
        return false;
    }
    if (!is_same_message(found->error.message, reference->error.message)) {
        snprintf(what, bytes, "message \"%s\", expected \"%s\"", found->error.message,
                 reference->error.message);
        return false;
    }
    if (found->has_lines &&
        (found->n_lines != reference->n_lines || found->lines != reference->lines)) {
        snprintf(what, bytes, "prints %d lines, not the same %d", found->n_lines,
                 reference->n_lines);
        return false;
    }
    if (found->status == QN_OK && !is_same_memory(t, what, bytes))
        return false;
    return is_inside(t, what, bytes);
}

/* Whether a schedule gave what it should as a tree, if it is not too large for that. */
static bool is_tree_agreed(runner *r, const test_case *t, const way *w, const outcome *reference,
                           const outcome *found, char *what, size_t bytes)
{
    if (found->status == QN_ERR_LIMIT) {
        r->schedules.n_large_trees++;
        return true;
    }
    if (w->change && (found->status == QN_ERR_ARGUMENT || found->status == QN_ERR_PARSE)) {
        r->schedules.n_changed_refused++;
        return is_untouched(t);
    }
    if (w->change)
        r->schedules.n_changed_run++;
    r->schedules.n_trees++;
    count_rows(r, w);
    return is_agreed(t, reference, found, what, bytes);
}

/* Whether a launch with a schedule did what it should: without code for the schedule it is refused,
 * and nothing is written. */
static bool is_as_scheduled(runner *r, const test_case *t, const qn_kernel *k, const way *w,
                            const outcome *reference, const outcome *found, char *what,
                            size_t bytes)
{
    if (found->status == QN_ERR_LIMIT &&
        strstr(found->error.message, "compiling would take too long")) {
        r->schedules.n_too_large++;
        return true;
    }
    if (is_tree(w->id))
        return is_tree_agreed(r, t, w, reference, found, what, bytes);
    if (w->change && strstr(found->error.message, "option schedule is refused")) {
        r->schedules.n_changed_refused++;
        snprintf(what, bytes, "%s, and something was written", found->error.message);
        return is_untouched(t);
    }
    if (w->change) {
        r->schedules.n_changed_run++;
        return is_agreed(t, reference, found, what, bytes);
    }
    if (!w->is_lowered) {
        r->schedules.n_refused++;
        snprintf(what, bytes, "%s (%s), and no code is generated for the schedule",
                 qn_status_name((int)found->status), found->error.message);
        return found->status == QN_ERR_UNSUPPORTED && is_untouched(t);
    }
    if (!is_agreed(t, reference, found, what, bytes))
        return false;
    r->schedules.n_lowered++;
    count_rows(r, w);
    snprintf(what, bytes, "the code is not that of the schedule");
    return is_of_schedule(r, t, k, w);
}

static bool is_expected(runner *r, const test_case *t, const qn_kernel *k, const way *w,
                        const outcome *reference, const outcome *found, char *what, size_t bytes)
{
    if (is_ended(t, w, found, what, bytes)) {
        r->n_ended++;
        return true;
    }
    return has_schedule(w->id) ? is_as_scheduled(r, t, k, w, reference, found, what, bytes)
                               : is_agreed(t, reference, found, what, bytes);
}

bool is_different(runner *r, test_case *t, const qn_kernel *k, const way *w, char *what,
                  size_t bytes)
{
    way own = *w;
    outcome reference = run_reference(r, t, k, is_clamp(w->id) ? QN_CHECKS_CLAMP : QN_CHECKS_REPORT,
                                      w->id == WAY_PRINTS);
    if (w->options.checks == QN_CHECKS_NONE && reference.status)
        return false;
    if (has_schedule(w->id) && !redraw_schedule(r, t, k, &own))
        return false;
    outcome found = run_once(r, t, k, &own);
    bool is_so = !is_expected(r, t, k, &own, &reference, &found, what, bytes);
    if (has_schedule(w->id))
        release_schedule(&own);
    return is_so;
}

/* ---------------------------------------------------------------- a case */

/* Text, parsed and printed again, must be the same text; the parsed kernel is returned. */
static qn_kernel *round_trip(runner *r, const test_case *t)
{
    qn_error error = {0};
    qn_kernel *parsed = NULL;
    if (qn_kernel_parse(t->text, strlen(t->text), &parsed, &error)) {
        tap_note("case %" PRIu64 ": the text does not parse: %s", t->number, error.message);
        r->n_text_errors++;
        return NULL;
    }
    char *again = kernel_text(parsed);
    if (!again || strcmp(again, t->text)) {
        tap_note("case %" PRIu64 ": printed, parsed and printed again, the text is another",
                 t->number);
        r->n_text_errors++;
    }
    free(again);
    return parsed;
}

static bool run_ways(runner *r, test_case *t, const qn_kernel *parsed, int checks,
                     const outcome *reference, way *first)
{
    bool is_equal = true;
    outcome printed = {0};
    for (int id = 0; id < N_WAYS; id++) {
        randoms choices = {t->number * N_WAYS + (uint64_t)id};
        way w;
        describe_way(t, &choices, id, &w);
        if (is_clamp(id) != (checks == QN_CHECKS_CLAMP) ||
            !is_applicable(r, t, id, is_clamp(id) ? QN_ERR_BOUNDS : reference->status) ||
            (has_schedule(id) && !draw_schedule(r, t, &choices, &w)))
            continue;
        if (id == r->only_way)
            note_way(&w);
        if (id == WAY_PRINTS)
            printed = run_reference(r, t, t->kernel, checks, true);
        outcome found = run_once(r, t, id == WAY_INTERPRETER && parsed ? parsed : t->kernel, &w);
        if (found.status == QN_ERR_TARGET && w.options.isa) {
            release_schedule(&w);
            continue;
        }
        if (is_cuda(id) && device_is_limit(found.status, &found.error)) {
            r->n_limits++;
            continue;
        }
        char what[3 * QN_MESSAGE_BYTES];
        r->n_runs[id]++;
        if (id != WAY_INTERPRETER && !is_cuda(id) && !has_schedule(id))
            count_plan(r, t, t->kernel, &w);
        bool is_good = is_expected(r, t, t->kernel, &w, id == WAY_PRINTS ? &printed : reference,
                                   &found, what, sizeof what);
        if (is_good) {
            release_schedule(&w);
            continue;
        }
        tap_note("case %" PRIu64 ", %s: %s", t->number, way_names[id], what);
        r->n_differences[id]++;
        if (is_equal && first->id < 0) {
            *first = w;
            first->options.plan = &first->plan;
            first->options.pins = first->pin;
        } else {
            release_schedule(&w);
        }
        is_equal = false;
    }
    return is_equal;
}

/* Counts what kernels are made of, so that a generator that has lost something shows. */
static void count_features(runner *r, const char *text)
{
    static const char *const marks[] = {
#define QN_X(name, mark) mark,
        FEATURE_LIST(QN_X)
#undef QN_X
    };
    for (int i = 0; i < N_FEATURES; i++)
        r->n_with[i] += strstr(text, marks[i]) != NULL;
}

/* All ways for the present arguments of a case. */
static bool run_arguments(runner *r, test_case *t, const qn_kernel *parsed, way *first)
{
    char what[QN_MESSAGE_BYTES];
    outcome reference = run_reference(r, t, t->kernel, QN_CHECKS_REPORT, false);
    bool is_good = is_inside(t, what, sizeof what);
    r->n_references++;
    r->n_by_status[reference.status & 63]++;
    if (!is_good) {
        tap_note("case %" PRIu64 ", interpreter writes outside: %s", t->number, what);
        r->n_escapes++;
    }
    restore(t);
    if (has_lists(t)) {
        r->n_lists++;
        if (!is_meant(r, t, &reference, what, sizeof what)) {
            tap_note("case %" PRIu64 ", interpreter, dense copies: %s", t->number, what);
            r->n_lists_differ++;
            is_good = false;
        }
    }
    is_good = run_ways(r, t, parsed, QN_CHECKS_REPORT, &reference, first) && is_good;
    if (reference.status == QN_ERR_BOUNDS && !t->stores_escape && !t->has_varied) {
        reference = run_reference(r, t, t->kernel, QN_CHECKS_CLAMP, false);
        is_good = run_ways(r, t, parsed, QN_CHECKS_CLAMP, &reference, first) && is_good;
    }
    return is_good;
}

bool run_case(runner *r, test_case *t, way *first)
{
    qn_error error = {0};
    int64_t text_errors = r->n_text_errors;
    first->id = -1;
    r->n_kernels++;
    r->n_points += t->points;
    r->n_updates += t->has_updates;
    r->n_redone += t->is_redone;
    r->n_math += t->has_math;
    r->n_neighbours += t->has_neighbours;
    count_features(r, t->text);
    qn_kernel *parsed = round_trip(r, t);
    bool is_good = r->n_text_errors == text_errors;
    is_good = run_arguments(r, t, parsed, first) && is_good;
    if (is_good && !(t->is_plain && t->number % 2)) {
        t->has_varied = true;
        bool is_varied = vary_arguments(t, &error);
        r->n_unvaried += !is_varied;
        is_good = is_varied && run_arguments(r, t, parsed, first);
        if (!is_good)
            tap_note("case %" PRIu64 ": with its second arguments %s", t->number, error.message);
    }
    qn_kernel_release(parsed);
    return is_good;
}

/* ---------------------------------------------------------------- context */

/* Compiles a small kernel; the reason where that cannot be. */
static void probe_x86(runner *r)
{
    static const char text[] =
        "kernel \"probe\" { view y: i64[0]; %0: i64 = const 0; store y[], %0; }";
    qn_error error = {0};
    qn_kernel *k = NULL;
    qn_code *f = NULL;
    qn_view y = {0};
    const qn_arg arg = qn_arg_view(&y);
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_status status = qn_view_new(r->context, "y", QN_I64, 0, NULL, &y, &error);
    if (status == QN_OK)
        status = qn_kernel_parse(text, sizeof text - 1, &k, &error);
    if (status == QN_OK)
        status = qn_specialize(r->context, k, 1, &arg, &o, &f, &error);
    if (status) {
        snprintf(r->reason, sizeof r->reason, "%s", error.message);
        r->no_x86 = r->reason;
    }
    qn_code_release(f);
    qn_kernel_release(k);
    qn_view_release(&y);
}

bool open_runner(runner *r, qn_error *err)
{
    *r = (runner){0};
    qn_context_options o = {.bytes = sizeof o, .n_threads = 4, .cache_bytes = 4 << 20};
    if (qn_context_new(&o, &r->context, err) || qn_context_new(&o, &r->small, err) ||
        qn_context_new(&o, &r->small_caches, err))
        return false;
    for (int i = 0; i < QN_N_CACHES; i++)
        r->small_caches->machine.cache[i].bytes = QN_LEAST_CACHE_BYTES << i;
    probe_x86(r);
    return true;
}

void close_runner(runner *r)
{
    device_close(&r->gpu);
    qn_context_release(r->context);
    qn_context_release(r->small);
    qn_context_release(r->small_caches);
}
