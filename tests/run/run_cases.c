/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_cases.c: runs case files (docs/testing.md) through the public interface: on the interpreter
 * against what the case expects, then on x86 in every configuration, as PTX and on a GPU against
 * the interpreter, byte by byte, errors included.
 *
 *   run_cases [MODE] [file or folder]...      default: tests/cases
 *
 *   --all            on x86 every value in every configuration
 *   --cuda           only on a GPU, which must be there
 *   --write BUNDLE   compiles for AArch64 into a bundle, and runs the interpreter only
 *   --read BUNDLE    without a code generator: the code of that bundle, which must be there for
 * each launch
 */
#include "ir/fpu.h"
#include "ir/ir.h"
#include "quern/cache.h"
#include "tests/run/run_cases.h"
#include "tests/tap.h"

#include <dirent.h>
#include <stdlib.h>

#ifndef QN_SOURCE_DIR
#define QN_SOURCE_DIR "."
#endif

/** A configuration of code generation; each is run serial and with threads, checked and (without
 * errors) unchecked. */
typedef struct configuration {
    const char *name;
    int32_t specialize, isa, loader;
} configuration;

static const configuration CONFIGURATIONS[] = {
    {"exact v3", QN_SPECIALIZE_EXACT, QN_ISA_V3, QN_LOADER_ARENA},
    {"exact v4", QN_SPECIALIZE_EXACT, QN_ISA_V4, QN_LOADER_ARENA},
    {"dynamic v3", QN_SPECIALIZE_DYNAMIC, QN_ISA_V3, QN_LOADER_ARENA},
    {"dynamic v4", QN_SPECIALIZE_DYNAMIC, QN_ISA_V4, QN_LOADER_ARENA},
    {"generic v3", QN_SPECIALIZE_GENERIC, QN_ISA_V3, QN_LOADER_ARENA},
    {"generic v4", QN_SPECIALIZE_GENERIC, QN_ISA_V4, QN_LOADER_ARENA},
    {"exact orc", QN_SPECIALIZE_EXACT, QN_ISA_AUTO, QN_LOADER_ORC},
    {"exact v4-bytes", QN_SPECIALIZE_EXACT, QN_ISA_V4_BYTES, QN_LOADER_ARENA},
};
enum { N_CONFIGURATIONS = sizeof CONFIGURATIONS / sizeof CONFIGURATIONS[0] };

/** With a bundle. It is written for the instruction set, and read on a machine that has it. */
static const configuration OF_BUNDLES[] = {
    {"exact", QN_SPECIALIZE_EXACT, QN_ISA_NEON, QN_LOADER_ARENA},
    {"dynamic", QN_SPECIALIZE_DYNAMIC, QN_ISA_NEON, QN_LOADER_ARENA},
    {"generic", QN_SPECIALIZE_GENERIC, QN_ISA_NEON, QN_LOADER_ARENA},
};
enum { N_OF_BUNDLES = sizeof OF_BUNDLES / sizeof OF_BUNDLES[0] };

typedef struct runner {
    qn_context *context;
    const configuration *how;
    int n_how;
    const char *engine; /* how they are called in the names of points */
    const char *written; /* bundle that is written, else NULL */
    const char *read;    /* that is read, else NULL */
    int n_ran;           /* launches of code that succeeded */
    ptx_cases *ptx;   /* NULL: there is no code generator */
    cuda_cases *cuda; /* NULL: nor a GPU */
    bool is_cuda_only;
    bool is_all; /* every value in every configuration */
    char skip[N_CONFIGURATIONS]
             [QN_MESSAGE_BYTES]; /* why a configuration cannot run here; "": it can */
} runner;

/* ---------------------------------------------------------------- one launch */

/** Arguments in the order of the kernel's parameters, found by name. */
static int bind_arguments(const qn_kernel *k, const case_instance *c, qn_arg *args)
{
    int n = qn_kernel_n_params(k);
    for (int p = 0; p < n; p++) {
        qn_param_info info;
        int found = -1;
        if (p == MAX_BINDINGS || qn_kernel_param(k, p, &info, sizeof info, NULL) != QN_OK)
            return -1;
        for (int i = 0; i < c->n_bindings; i++)
            if (strcmp(c->binding[i].name, info.name) == 0)
                found = i;
        if (found < 0) {
            tap_note("parameter %s has no view or scalar", info.name);
            return -1;
        }
        const case_binding *b = &c->binding[found];
        args[p] = b->is_view ? qn_arg_view(&b->view) : (qn_arg){.dtype = b->dtype, .bits = b->bits};
    }
    return n;
}

static qn_status launch(const runner *r, const qn_kernel *k, const case_instance *c,
                        const qn_options *o, qn_error *err)
{
    qn_arg args[MAX_BINDINGS];
    *err = (qn_error){0};
    int n = bind_arguments(k, c, args);
    if (n < 0)
        return QN_ERR_INTERNAL;
    for (int i = 0; i < c->n_storages; i++)
        memcpy(c->storage[i].bytes, c->storage[i].initial, c->storage[i].n_bytes);
    return qn_launch(r->context, k, n, args, o, err);
}

/* ---------------------------------------------------------------- comparing */

static void print_index(const qn_layout *l, const int64_t *index, char *out, size_t out_bytes)
{
    size_t n = 0;
    out[0] = 0;
    for (int d = 0; d < l->rank && n < out_bytes; d++)
        n += (size_t)snprintf(out + n, out_bytes - n, "%s%" PRId64, d ? "," : "", index[d]);
}

/** Compares a view with its listed values. */
static bool has_listed_values(const case_binding *b)
{
    const qn_layout *l = &b->view.layout;
    int64_t index[QN_MAX_RANK], i = 0;
    for (int d = 0; d < l->rank; d++)
        index[d] = l->dim[d].lower;
    for (bool more = qn_layout_size(l) > 0; more; more = case_next_index(l, index), i++) {
        void *at;
        if (case_address(&b->view, index, &at, NULL) != QN_OK)
            return false;
        uint64_t found = case_element(b->dtype, at);
        if (case_same_element(b->dtype, found, b->expected[i]))
            continue;
        char where[128];
        print_index(l, index, where, sizeof where);
        tap_note("%s[%s] is %#" PRIx64 ", expected %#" PRIx64, b->name, where, found,
                 b->expected[i]);
        return false;
    }
    return true;
}

/** Whether bytes that belong to no element of a view kept their values. */
static bool kept_outside(const case_instance *c)
{
    bool kept = true;
    for (int s = 0; s < c->n_storages; s++) {
        const case_storage *storage = &c->storage[s];
        uint8_t *is_element = calloc(storage->n_bytes, 1);
        for (int i = 0; i < c->n_bindings; i++) {
            const case_binding *b = &c->binding[i];
            const qn_layout *l = &b->view.layout;
            int64_t index[QN_MAX_RANK];
            for (int d = 0; d < l->rank; d++)
                index[d] = l->dim[d].lower;
            if (!b->is_view || b->storage != s || qn_layout_size(l) == 0)
                continue;
            do {
                void *at = NULL;
                if (case_address(&b->view, index, &at, NULL) == QN_OK)
                    memset(is_element + ((uint8_t *)at - storage->bytes), 1,
                           (size_t)qn_dtype_bytes(b->dtype));
            } while (case_next_index(l, index));
        }
        for (size_t i = 0; i < storage->n_bytes; i++)
            kept = kept && (is_element[i] || storage->bytes[i] == storage->initial[i]);
        free(is_element);
    }
    if (!kept)
        tap_note("a byte outside the views changed");
    return kept;
}

/** Compares all storage with what the interpreter left. */
static bool equals_reference(const case_instance *c)
{
    for (int s = 0; s < c->n_storages; s++) {
        const case_storage *storage = &c->storage[s];
        size_t bytes = (size_t)qn_dtype_bytes(storage->dtype);
        for (size_t i = 0; i + bytes <= storage->n_bytes; i += bytes) {
            uint64_t found = case_element(storage->dtype, storage->bytes + i);
            uint64_t expected = case_element(storage->dtype, storage->reference + i);
            if (case_same_element(storage->dtype, found, expected))
                continue;
            tap_note("storage %d, byte %zu: %#" PRIx64 ", interpreter %#" PRIx64, s, i, found,
                     expected);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- engines */

/** Runs the interpreter, compares with the expectation, and keeps the result as the reference. */
static bool run_interpreter(const runner *r, const qn_kernel *k, case_instance *c, qn_error *err)
{
    qn_options o = {.bytes = sizeof o,
                    .engine = QN_ENGINE_INTERP,
                    .checks = c->checks,
                    .strict = c->strict,
                    .debug = c->debug};
    case_lines lines = {0};
    if (case_prints(k))
        case_lines_want(c, &lines, &o);
    qn_status status = launch(r, k, c, &o, err);
    bool passed = status == (qn_status)c->status;
    if (!passed)
        tap_note("status %s, expected %s: %s", qn_status_name((int)status),
                 qn_status_name(c->status), err->message);
    passed = case_lines_are_expected(c, &lines) && passed;
    for (int i = 0; i < c->n_parts; i++)
        if (!strstr(err->message, c->part[i])) {
            tap_note("\"%s\" does not contain \"%s\"", err->message, c->part[i]);
            passed = false;
        }
    for (int i = 0; i < c->n_bindings; i++)
        if (c->binding[i].expected && !has_listed_values(&c->binding[i]))
            passed = false;
    for (int i = 0; i < c->n_storages; i++)
        memcpy(c->storage[i].reference, c->storage[i].bytes, c->storage[i].n_bytes);
    return kept_outside(c) && passed;
}

static bool has_atomics(const qn_kernel *k)
{
    bool has = false;
    for (int p = 0; p < k->n_params; p++)
        has = has || k->param[p].has_atomics || (k->param[p].traits & QN_ATOMIC);
    return has;
}

/** Compiles what a launch would run, into the bundle. A launch that is refused before it runs is so
 * here, too, and one without iterations needs no code. */
static bool write_way(const runner *r, const qn_kernel *k, const case_instance *c,
                      const qn_options *o, const qn_error *reference)
{
    qn_arg args[MAX_BINDINGS];
    qn_error err = {0};
    int n = bind_arguments(k, c, args);
    qn_status status =
        n < 0 ? QN_ERR_INTERNAL : qn_bundle_add(r->context, r->written, k, n, args, o, &err);
    if (status == QN_OK || (reference->status && (int32_t)status == reference->status) ||
        strstr(err.message, "the arguments give no iterations"))
        return true;
    tap_note("%s: %s", qn_status_name((int)status), err.message);
    return false;
}

#if defined(__aarch64__)
/** Rounding upwards, subnormals flushed to zero, default NaN: what code must not see, and the host
 * must keep. */
enum { ODD_CONTROL = 1 << 22 | 1 << 24 | 1 << 25 };

static void begin_odd_control(void)
{
    qn__fpu_set_control(ODD_CONTROL);
}

static bool end_odd_control(void)
{
    bool is_kept = qn__fpu_control() == ODD_CONTROL;
    qn__fpu_set_control(0);
    return is_kept;
}
#else
static void begin_odd_control(void)
{
}

static bool end_odd_control(void)
{
    return true;
}
#endif

/** Launches, and compares with the interpreter. With a bundle, no launch may be interpreted, and no
 * code come from elsewhere. */
static bool run_way(runner *r, const qn_kernel *k, case_instance *c, const qn_options *o,
                    bool prints, const qn_error *reference)
{
    qn_error err;
    case_lines lines = {0};
    qn_options with_lines = *o;
    qn_counters before, after;
    if (prints)
        case_lines_want(c, &lines, &with_lines);
    qn_context_counters(r->context, &before, sizeof before);
    if (r->read)
        begin_odd_control();
    qn_status status = launch(r, k, c, &with_lines, &err);
    r->n_ran += status == QN_OK;
    bool is_control_kept = !r->read || end_odd_control();
    qn_context_counters(r->context, &after, sizeof after);
    bool agreed = (int32_t)status == reference->status &&
                  strcmp(err.message, reference->message) == 0 && equals_reference(c);
    agreed = (!prints || case_lines_agree(c, &lines)) && agreed;
    if (agreed && r->read &&
        (after.interpreted > before.interpreted || after.compiles || after.disk_refused)) {
        tap_note("the code is not that of the bundle");
        agreed = false;
    }
    if (!is_control_kept)
        tap_note("the launch changed the control bits of floats");
    agreed = agreed && is_control_kept;
    if (!agreed)
        tap_note("checks %s, %s: %s \"%s\"", o->checks == QN_CHECKS_NONE ? "none" : "on",
                 prints ? "printing" : "not printing", qn_status_name((int)status), err.message);
    return agreed;
}

/** Runs generated code in one configuration, on both executors and with shared atomics, checked and
 * unchecked. */
static bool run_code(runner *r, const qn_kernel *k, case_instance *c, const configuration *how,
                     const qn_error *reference)
{
    bool passed = true, is_clean = c->status == QN_OK && c->checks == QN_CHECKS_REPORT;
    static const struct {
        const char *name;
        int executor, atomics;
    } ways[] = {{"serial", QN_SERIAL, QN_ATOMICS_LAUNCH},
                {"threads", QN_THREADS, QN_ATOMICS_LAUNCH},
                {"serial, shared atomics", QN_SERIAL, QN_ATOMICS_SHARED}};
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++)
        for (int unchecked = 0; unchecked <= is_clean; unchecked++) {
            bool has_code_of_its_own =
                way == 0 || (ways[way].atomics == QN_ATOMICS_SHARED && has_atomics(k));
            if (r->written && !has_code_of_its_own)
                continue;
            const qn_options o = {.bytes = sizeof o,
                                  .engine = QN_ENGINE_NATIVE,
                                  .executor = ways[way].executor,
                                  .atomics = ways[way].atomics,
                                  .checks = unchecked ? QN_CHECKS_NONE : c->checks,
                                  .strict = c->strict,
                                  .specialize = how->specialize,
                                  .isa = how->isa,
                                  .loader = how->loader};
            for (int prints = 0; prints <= (case_prints(k) && !r->written && !r->read); prints++) {
                bool agreed = r->written ? write_way(r, k, c, &o, reference)
                                         : run_way(r, k, c, &o, prints, reference);
                if (!agreed)
                    tap_note("... %s, %s", how->name, ways[way].name);
                passed = passed && agreed;
            }
        }
    return passed;
}

/** Runs the PTX of a case that launches, exact and dynamic in turn; keeps that of the first value.
 */
static bool run_ptx(const runner *r, const qn_kernel *k, const case_instance *c, int v,
                    const qn_error *reference)
{
    qn_arg args[MAX_BINDINGS];
    int n = bind_arguments(k, c, args);
    bool passed = true;
    if (n < 0 || (reference->status && reference->status != QN_ERR_BOUNDS &&
                  reference->status != QN_ERR_LIMIT && reference->status != QN_ERR_ASSERT))
        return true;
    if (v == 0)
        ptx_cases_add(r->ptx, k, n, args, c->checks, c->strict);
    for (int way = 0; way < 2; way++) {
        if (v > 0 && way == v % 2)
            continue;
        for (int prints = 0; prints <= case_prints(k); prints++) {
            qn_error err = {0};
            case_lines lines;
            qn_status status =
                prints ? case_lines_of_ptx(r->ptx, k, n, args, c, way, (uint32_t)v, &lines, &err)
                       : ptx_cases_run(r->ptx, k, n, args, c, way, (uint32_t)v, &err);
            bool agreed = (int32_t)status == reference->status &&
                          strcmp(err.message, reference->message) == 0 && equals_reference(c) &&
                          kept_outside(c);
            agreed = (!prints || case_lines_agree(c, &lines)) && agreed;
            if (!agreed)
                tap_note("ptx, %s, %s: %s \"%s\"", way ? "dynamic" : "exact",
                         prints ? "printing" : "not printing", qn_status_name((int)status),
                         err.message);
            passed = passed && agreed;
        }
    }
    return passed;
}

/** Whether the plans of a case that launches can be said as schedules. */
static bool run_schedules(const qn_kernel *k, const case_instance *c, const qn_error *reference)
{
    qn_arg args[MAX_BINDINGS];
    int n = bind_arguments(k, c, args);
    bool is_launched = reference->status == QN_OK || reference->status == QN_ERR_BOUNDS ||
                       reference->status == QN_ERR_LIMIT || reference->status == QN_ERR_ASSERT;
    return n < 0 || !is_launched || case_has_schedules(k, n, args, c);
}

/** Whether two messages are the same but for addresses. */
static bool is_same_message(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        if (a[0] == '0' && a[1] == 'x' && b[1] == 'x') {
            a += 1 + strspn(a + 2, "0123456789abcdef");
            b += 1 + strspn(b + 2, "0123456789abcdef");
        }
    return *a == *b;
}

/** What became of a case on a GPU. */
typedef struct cuda_outcome {
    int n_runs, n_failed;
    char limit[QN_MESSAGE_BYTES]; /* what a GPU does not do */
} cuda_outcome;

/** Whether an overlap with a list is not there on the GPU, which reads a copy of it. */
static bool has_no_overlap(int n, const qn_arg *args, const qn_error *reference)
{
    uint32_t lists = 0;
    for (int i = 0; i < n; i++)
        lists |= args[i].view ? qn__layout_tables(&args[i].view->layout) : 0;
    return lists && reference->status == QN_ERR_OVERLAP;
}

/** Runs a case on the GPU; the first value exact, dynamic and, where no access fails, unchecked,
 * others in one way. */
static bool run_cuda(const runner *r, const qn_kernel *k, const case_instance *c, int v,
                     const qn_error *reference, cuda_outcome *out)
{
    qn_arg args[MAX_BINDINGS];
    int n = bind_arguments(k, c, args), n_failed = out->n_failed;
    bool is_clean = reference->status == QN_OK && c->checks == QN_CHECKS_REPORT;
    for (int way = 0; n >= 0 && way < 2 + is_clean; way++) {
        qn_error err = {0};
        bool is_limit = false;
        if (v > 0 && way != v % 2)
            continue;
        case_lines lines = {0};
        bool prints = case_prints(k);
        qn_status status =
            cuda_cases_run(r->cuda, k, n, args, c, way, prints ? &lines : NULL, &is_limit, &err);
        if (is_limit || has_no_overlap(n, args, reference)) {
            snprintf(out->limit, sizeof out->limit, "%s",
                     is_limit ? err.message : reference->message);
            return kept_outside(c);
        }
        out->n_runs++;
        bool has_lines = !prints || case_lines_agree(c, &lines);
        if (has_lines && (int32_t)status == reference->status &&
            is_same_message(err.message, reference->message) && equals_reference(c) &&
            kept_outside(c))
            continue;
        out->n_failed++;
        tap_note("cuda, %s: %s \"%s\", interpreter %s \"%s\"",
                 way == 0   ? "exact"
                 : way == 1 ? "dynamic"
                            : "unchecked",
                 qn_status_name((int)status), err.message, qn_status_name(reference->status),
                 reference->message);
        cuda_cases_note(r->cuda, k, n, args, c, way);
        if (status == QN_ERR_CONTEXT_LOST) {
            printf("Bail out! the CUDA context is lost\n");
            exit(1);
        }
    }
    return out->n_failed == n_failed;
}

static void cuda_point(const cuda_outcome *o, const char *path, const char *set)
{
    if (o->n_runs > 0)
        tap_ok(o->n_failed == 0, "%s %s: cuda, %d launches", path, set, o->n_runs);
    if (o->limit[0]) {
        char reason[QN_MESSAGE_BYTES + 200];
        snprintf(reason, sizeof reason, "%s %s: cuda: %s", path, set, o->limit);
        tap_skip(reason);
    }
}

/** Whether value v of case `number` of a file runs in a configuration: in the loader orc the first
 * value, which has the best instruction set of the machine. The compiler takes most of the time.
 * Exact code for v4 and for v4-bytes is therefore of every other value each, and what is not exact
 * is compiled for v3 or v4, case by case in turn. */
static bool runs_value(const runner *r, const configuration *how, int number, int v)
{
    if (how->loader == QN_LOADER_ORC)
        return v == 0;
    if (r->is_all || how->isa == QN_ISA_NEON)
        return true;
    if (how->specialize != QN_SPECIALIZE_EXACT)
        return how->isa == (number % 2 == 0 ? QN_ISA_V3 : QN_ISA_V4);
    return how->isa == QN_ISA_V3 || (how->isa == QN_ISA_V4) == (v % 2 == 0);
}

/** One case, all values of its variable: a point for the interpreter and one for each
 * configuration. */
static void run_set(runner *r, const case_file *f, const case_set *set, const qn_kernel *k)
{
    bool passed[2 + N_CONFIGURATIONS], has_run[N_CONFIGURATIONS] = {0}, is_debugged = false,
         has_schedules = true;
    bool has_cpu_plans = !r->is_cuda_only && !r->written && !r->read;
    cuda_outcome on_gpu = {0};
    memset(passed, 1, sizeof passed);
    for (int v = 0; v < set->n_values; v++) {
        case_instance c;
        qn_error reference;
        case_instance_make(f, set, set->value[v], &c);
        bool agreed = run_interpreter(r, k, &c, &reference);
        passed[0] = passed[0] && agreed;
        is_debugged = c.debug != 0;
        for (int i = 0; i < r->n_how && !is_debugged; i++) {
            const configuration *how = &r->how[i];
            if (r->skip[i][0] || !runs_value(r, how, (int)(set - f->set), v))
                continue;
            has_run[i] = true;
            bool same = run_code(r, k, &c, how, &reference);
            passed[1 + i] = passed[1 + i] && same;
            agreed = agreed && same;
        }
        if (r->ptx && !is_debugged) {
            bool same = run_ptx(r, k, &c, v, &reference);
            passed[1 + N_CONFIGURATIONS] = passed[1 + N_CONFIGURATIONS] && same;
            agreed = agreed && same;
        }
        if (!is_debugged && has_cpu_plans && has_schedules)
            has_schedules = run_schedules(k, &c, &reference);
        if (r->cuda && !is_debugged && cuda_cases_takes(r->cuda, v == 0 && set == f->set))
            agreed = run_cuda(r, k, &c, v, &reference, &on_gpu) && agreed;
        if (!agreed && set->variable[0])
            tap_note("... with %s = %" PRId64, set->variable, set->value[v]);
        case_instance_free(&c);
    }
    const char *path = strrchr(f->path, '/') ? strrchr(f->path, '/') + 1 : f->path;
    tap_ok(passed[0], "%s %s: interp", path, set->name);
    for (int i = 0; i < r->n_how; i++)
        if (has_run[i])
            tap_ok(passed[1 + i], "%s %s: %s %s", path, set->name, r->engine, r->how[i].name);
    if (r->read && !is_debugged && case_prints(k))
        tap_skip("launches that give what they print: their code is not in bundles");
    if (r->read && is_debugged)
        tap_skip("debugging is for the interpreter");
    if (r->ptx && !is_debugged)
        tap_ok(passed[1 + N_CONFIGURATIONS], "%s %s: ptx", path, set->name);
    if (!is_debugged && has_cpu_plans)
        tap_ok(has_schedules, "%s %s: schedules of the plans verify", path, set->name);
    cuda_point(&on_gpu, path, set->name);
}

static void run_file(runner *r, const char *path)
{
    case_file *f = malloc(sizeof *f);
    if (!f)
        return;
    case_file_read(path, f);
    qn_error err = {0};
    qn_kernel *k = NULL;
    if (qn_kernel_parse(f->text, strlen(f->text), &k, &err) != QN_OK)
        tap_ok(false, "%s: kernel text, line %d: %s", path, err.line, err.message);
    for (int i = 0; k && i < f->n_sets; i++)
        run_set(r, f, &f->set[i], k);
    qn_kernel_release(k);
    case_file_free(f);
    free(f);
}

/* ---------------------------------------------------------------- files and folders */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** A file, or the *.case files and the folders of a folder, in order of their names. */
static void run_path(runner *r, const char *path)
{
    enum { MAX_FILES = 1024 };
    char *names[MAX_FILES];
    int n = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        run_file(r, path);
        return;
    }
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        size_t length = strlen(e->d_name), bytes = strlen(path) + length + 2;
        if (n == MAX_FILES || e->d_name[0] == '.')
            continue;
        const char *dot = strchr(e->d_name, '.');
        if (dot && strcmp(dot, ".case") != 0)
            continue;
        names[n] = malloc(bytes);
        if (names[n])
            snprintf(names[n++], bytes, "%s/%s", path, e->d_name);
    }
    closedir(folder);
    qsort(names, (size_t)n, sizeof names[0], by_name);
    tap_ok(n > 0, "%s holds %d case files or folders", path, n);
    for (int i = 0; i < n; i++) {
        run_path(r, names[i]);
        free(names[i]);
    }
}

/** Finds the configurations that cannot run here: no code generator, or a processor without the
 * instructions. */
static void find_skips(runner *r)
{
    static const char text[] = "kernel \"probe\" { view x: i32[1]; %l: i64 = lower x, 0; "
                               "%e: i64 = extent x, 0; %i: i64 = parallel %l, %e; "
                               "%v: i32 = load x[%i]; %w: i32 = add %v, %v; store x[%i], %w; }";
    int32_t data[4] = {0};
    int64_t extent = 4;
    qn_kernel *k = NULL;
    qn_layout l;
    qn_view x;
    qn_error err = {0};
    if (qn_kernel_parse(text, strlen(text), &k, &err) || qn_layout_right(1, &extent, &l, &err) ||
        qn_view_wrap("x", data, QN_I32, &l, 0, &x, &err)) {
        tap_ok(false, "probe kernel: %s", err.message);
        return;
    }
    for (int i = 0; i < r->n_how; i++) {
        const configuration *how = &r->how[i];
        qn_options o = {.bytes = sizeof o,
                        .engine = QN_ENGINE_NATIVE,
                        .specialize = how->specialize,
                        .isa = how->isa,
                        .loader = how->loader};
        qn_arg arg = qn_arg_view(&x);
        qn_code *f = NULL;
        qn_status status = qn_specialize(r->context, k, 1, &arg, &o, &f, &err);
        if (status == QN_ERR_PROVIDER || status == QN_ERR_TARGET ||
            status == QN_ERR_NOT_AVAILABLE) {
            snprintf(r->skip[i], sizeof r->skip[i], "%s", err.message);
            char reason[QN_MESSAGE_BYTES + 64];
            snprintf(reason, sizeof reason, "x86 %s: %s", how->name, err.message);
            tap_skip(reason);
        }
        qn_code_release(f);
    }
    qn_kernel_release(k);
}

static void ptx_point(int outcome, const char *what)
{
    if (outcome < 0)
        tap_skip(what);
    else
        tap_ok(outcome != 0, "%s", what);
}

/** Opens what the cases run on besides the interpreter. False: what was asked for is not there. */
static bool open_engines(runner *r)
{
    char reason[QN_MESSAGE_BYTES] = "";
    if (r->is_cuda_only) {
        for (int i = 0; i < r->n_how; i++)
            snprintf(r->skip[i], sizeof r->skip[i], "only on a GPU");
        r->cuda = cuda_cases_new(false, reason, sizeof reason);
        return tap_ok(r->cuda != NULL, "a GPU %s", reason);
    }
    if (r->written || r->read)
        return true;
    find_skips(r);
    if (r->skip[0][0])
        return true;
    r->ptx = ptx_cases_new();
    r->cuda = cuda_cases_new(true, reason, sizeof reason);
    if (reason[0])
        tap_skip(reason);
    return true;
}

/** Sets what the arguments ask for; the number of the first that is a path, 0 if they make no
 * sense. */
static int read_arguments(runner *r, int argc, char **argv)
{
    const char *mode = argc > 1 && strncmp(argv[1], "--", 2) == 0 ? argv[1] : NULL;
    r->is_all = mode && strcmp(mode, "--all") == 0;
    bool has_bundle = mode && !r->is_all && strcmp(mode, "--cuda") != 0;
    r->how = has_bundle ? OF_BUNDLES : CONFIGURATIONS;
    r->n_how = has_bundle ? N_OF_BUNDLES : N_CONFIGURATIONS;
    r->engine = !has_bundle ? "x86" : strcmp(mode, "--write") == 0 ? "compiled" : "aarch64";
    r->is_cuda_only = mode && !has_bundle && !r->is_all;
    if (has_bundle && argc > 2 && strcmp(mode, "--write") == 0)
        r->written = argv[2];
    else if (has_bundle && argc > 2 && strcmp(mode, "--read") == 0)
        r->read = argv[2];
    else if (has_bundle)
        return 0;
    return 1 + (mode != NULL) + has_bundle;
}

int main(int argc, char **argv)
{
    runner r = {0};
    int first = read_arguments(&r, argc, argv);
    qn_context_options o = {.bytes = sizeof o, .n_threads = 4};
    qn_error err = {0};
    if (first == 0)
        return fprintf(stderr, "usage: run_cases [--all | --cuda | --write BUNDLE | --read BUNDLE] "
                               "[FILE or FOLDER]...\n"),
               2;
    if (r.read) {
        o.n_threads = 2; /* emulated ones are slow to wait for each other */
        o.bundle = r.read;
        o.disk_cache = "off";
        o.provider_path = "/nowhere/libquern-llvm.so";
    }
    if (!tap_ok(qn_context_new(&o, &r.context, &err) == QN_OK, "context %s", err.message) ||
        !open_engines(&r)) {
        qn_context_release(r.context);
        return tap_done();
    }
    for (int i = first; i < argc; i++)
        run_path(&r, argv[i]);
    if (argc == first)
        run_path(&r, QN_SOURCE_DIR "/tests/cases");
    if (r.ptx)
        ptx_cases_end(r.ptx, ptx_point);
    if (r.cuda)
        cuda_cases_end(r.cuda);
    qn_counters counters;
    qn_context_counters(r.context, &counters, sizeof counters);
    tap_note("%" PRId64 " launches, %" PRId64 " interpreted, %" PRId64 " compiles, %" PRId64
             " in order, %" PRId64 " versions from disk",
             counters.launches, counters.interpreted, counters.compiles, counters.ordered,
             counters.disk_hits);
    if (r.read)
        tap_ok((counters.disk_hits > 0 || r.n_ran == 0) && counters.compiles == 0,
               "%d launches ran code, all of it of the bundle", r.n_ran);
    qn_context_release(r.context);
    return tap_done();
}
