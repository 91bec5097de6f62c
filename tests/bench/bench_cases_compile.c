/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_compile.c: what a compile costs: from a finished kernel to code that is ready, every
 * time for extents that were never met; the code generator is loaded before. "Theirs" is the goal,
 * but for compile/saxpy/emission, where it is LLVM alone: the IR of that very kernel to object
 * bytes by LLVM's C interface, with a target machine that is kept.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "bench_compile.h"
#include "bodies.h"
#include "native.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_COMPILES = 30, MAX_RANK = 3, MAX_ARGS = 17, IR_BYTES = 1 << 18 };

/* ---------------------------------------------------------------- one compile */

/* Something to compile; `make` gives a kernel and arguments for round 0, 1, ... */
typedef struct source source;
struct source {
    const char *name;
    double goal_seconds;
    qn_kernel *(*make)(const source *s, int round, qn_error *err);
    int kernel, rank; /* saxpy and stencils: KERNEL_... */
    int first, step;  /* product: extents */
    void (*print)(char *text, int n);
    int n_ops;        /* for it */
    int n_compiles;   /* 0: N_COMPILES */
    const bench_body_info *body;
    qn_view *view; /* the arguments of this round, [MAX_ARGS] */
    qn_arg *arg;   /* [MAX_ARGS] */
    int *n_args;
};

static qn_status add_view(const source *s, int dtype, int rank, const int64_t *extents,
                          qn_error *err)
{
    qn_layout layout;
    qn_view *v = &s->view[*s->n_args];
    void *data =
        (void *)(((uintptr_t)*s->n_args + 1) << 36); /* nothing runs, but views must not overlap */
    qn_status status = qn_layout_right(rank, extents, &layout, err);
    if (!status)
        status = qn_view_wrap("view", data, dtype, &layout, 0, v, err);
    s->arg[(*s->n_args)++] = qn_arg_view(v);
    return status;
}

static qn_kernel *make_loop(const source *s, int round, qn_error *err)
{
    int64_t extents[MAX_RANK];
    for (int d = 0; d < s->rank; d++)
        extents[d] = (s->rank == 3 ? 8 : 20) + (d == s->rank - 1 ? round : d);
    qn_status status = QN_OK;
    for (int i = 0; i < bench_n_views(s->kernel) && !status; i++)
        status = add_view(s, QN_F32, s->rank, extents, err);
    if (bench_has_scalar(s->kernel))
        s->arg[(*s->n_args)++] = qn_arg_f32(2);
    return status ? NULL : bench_kernel(s->kernel, QN_F32, err);
}

static qn_kernel *make_product(const source *s, int round, qn_error *err)
{
    static const char text[] =
        "kernel \"product\" contract {\n"
        "  view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
        "  %0: i64 = const 0;\n"
        "  %1: i64 = extent c, 0; %2: i64 = extent c, 1; %3: i64 = extent a, 1;\n"
        "  %i: i64 = parallel %0, %1;\n"
        "  %j: i64 = parallel %0, %2;\n"
        "  %k: i64 = reduction %0, %3;\n"
        "  %s: f64 = reduce sum over %k {\n"
        "    %x: f64 = load a[%i, %k]; %y: f64 = load b[%k, %j];\n"
        "    %p: f64 = mul %x, %y;\n"
        "    yield %p;\n"
        "  };\n"
        "  store c[%i, %j], %s;\n"
        "}\n";
    int64_t n = s->first + (int64_t)s->step * round;
    const int64_t extents[2] = {n, n};
    qn_kernel *k = NULL;
    qn_status status = QN_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = add_view(s, QN_F64, 2, extents, err);
    return status || qn_kernel_parse(text, strlen(text), &k, err) ? NULL : k;
}

static qn_kernel *make_body(const source *s, int round, qn_error *err)
{
    int64_t edge = (s->body->rank == 1 ? BODY_1D : s->body->rank == 2 ? BODY_2D : BODY_3D) + round;
    const int64_t extents[MAX_RANK] = {edge, edge, edge};
    qn_status status = QN_OK;
    for (int i = 0; i < s->body->n_out + s->body->n_in && !status; i++)
        status = add_view(s, QN_F64, s->body->rank, extents, err);
    return status ? NULL : bench_body(s->body, err);
}

/* A text of so many operations: a straight body on 16 vectors, or a vector, rows of 100 elements
 * and a vector of indices. */
static qn_kernel *make_text(const source *s, int round, qn_error *err)
{
    const int64_t extents[2] = {1000 + round, REDUCE_POINTS};
    const int n_views = s->print == bench_print_straight ? 16 : 3;
    qn_kernel *k = NULL;
    qn_status status = QN_OK;
    char *text = malloc(LARGE_BYTES);
    if (!text)
        return NULL;
    s->print(text, s->n_ops);
    for (int i = 0; i < n_views && !status; i++)
        status = add_view(s, i == 2 && n_views == 3 ? QN_I64 : QN_F32,
                          i == 1 && n_views == 3 ? 2 : 1, extents, err);
    status = status ? status : qn_kernel_parse(text, strlen(text), &k, err);
    free(text);
    return status ? NULL : k;
}

/* Seconds of one compile; the function if it is wanted. */
static bool compile_once(bench *b, const source *s, int round, double *seconds, qn_code **out)
{
    qn_error error = {0};
    qn_code *f = NULL;
    *s->n_args = 0;
    qn_kernel *k = s->make(s, round, &error);
    qn_status status = QN_OK;
    if (k) {
        qn_options o = bench_options(b);
        o.specialize = QN_SPECIALIZE_EXACT;
        double begin = bench_now();
        status = qn_specialize(b->context, k, *s->n_args, s->arg, &o, &f, &error);
        *seconds = bench_now() - begin;
    }
    qn_kernel_release(k);
    if (!k || status)
        bench_wrong(b, s->name, "%s", error.message);
    if (out && k && !status)
        *out = f;
    else
        qn_code_release(f);
    return k && !status;
}

/* What choosing plans takes of a compile: means in milliseconds. The goal is 0.2 ms, or a
 * twentieth of a compile of more than 4 ms. */
static void print_planning(const source *s, int n, double planning, double whole)
{
    double goal = whole > 4 ? whole / 20 : 0.2;
    printf("# %s: planning %.3f ms of %.2f ms, %.1f %%, goal %.2f ms%s (mean of %d)\n", s->name,
           planning, whole, planning / whole * 100, goal, planning > goal ? ": above" : "", n);
}

/* Median of n compiles, each of other extents. */
static bool compile_median(bench *b, const source *s, int n, double *median)
{
    double seconds[N_COMPILES];
    qn_counters before, after;
    bool is_ok = true;
    qn_context_counters(b->context, &before, sizeof before);
    for (int round = 0; is_ok && round < n; round++)
        is_ok = compile_once(b, s, round, &seconds[round], NULL);
    qn_context_counters(b->context, &after, sizeof after);
    if (is_ok && after.compiles - before.compiles != n)
        bench_wrong(b, s->name, "%lld compiles, expected %d",
                    (long long)(after.compiles - before.compiles), n);
    else if (is_ok)
        print_planning(s, n, (double)(after.planning_us - before.planning_us) * 1e-3 / n,
                       (double)(after.compile_us - before.compile_us) * 1e-3 / n);
    *median = is_ok ? bench_median(seconds, n) : 0;
    return is_ok;
}

/* ---------------------------------------------------------------- LLVM alone */

/* The LLVM that the code generator has loaded, by the names of its C interface. */
typedef struct llvm {
    void *(*context_new)(void);
    void (*context_free)(void *);
    void *(*buffer_of)(const char *, size_t, const char *);
    int (*parse)(void *, void *, void **, char **);
    int (*target_of)(const char *, void **, char **);
    void *(*machine_new)(void *, const char *, const char *, const char *, int, int, int);
    void (*machine_free)(void *);
    int (*emit)(void *, void *, int, char **, void **);
    void (*buffer_free)(void *);
    void (*module_free)(void *);
    void *machine;
} llvm;

static bool open_llvm(llvm *l, int isa)
{
    static const char *const names[] = {"LLVMContextCreate",
                                        "LLVMContextDispose",
                                        "LLVMCreateMemoryBufferWithMemoryRangeCopy",
                                        "LLVMParseIRInContext",
                                        "LLVMGetTargetFromTriple",
                                        "LLVMCreateTargetMachine",
                                        "LLVMDisposeTargetMachine",
                                        "LLVMTargetMachineEmitToMemoryBuffer",
                                        "LLVMDisposeMemoryBuffer",
                                        "LLVMDisposeModule"};
    static const char triple[] = "x86_64-unknown-linux-gnu";
    enum { N = sizeof names / sizeof *names, DEFAULT_LEVEL = 2, PIC = 2, SMALL = 3 };
    void *library = dlopen("libLLVM.so.19.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD), *target;
    void *function[N];
    char *message = NULL;
    for (int i = 0; i < N; i++) {
        function[i] = library ? dlsym(library, names[i]) : NULL;
        if (!function[i])
            return false;
    }
    memcpy(l, function, sizeof function); /* ISO C has no cast between the two */
    if (l->target_of(triple, &target, &message))
        return false;
    l->machine = l->machine_new(target, triple, isa == QN_ISA_V4 ? "x86-64-v4" : "x86-64-v3", "",
                                DEFAULT_LEVEL, PIC, SMALL);
    return l->machine != NULL;
}

/* Seconds from parsed IR to object bytes, 0 if that fails. */
static double emit_once(const llvm *l, const char *ir)
{
    enum { OBJECT = 1 };
    void *context = l->context_new(), *module = NULL, *object = NULL;
    char *message = NULL;
    double seconds = 0;
    if (!l->parse(context, l->buffer_of(ir, strlen(ir), "ir"), &module, &message)) {
        double begin = bench_now();
        int failed = l->emit(l->machine, module, OBJECT, &message, &object);
        seconds = failed ? 0 : bench_now() - begin;
        if (object)
            l->buffer_free(object);
        l->module_free(module);
    }
    l->context_free(context);
    return seconds;
}

/* Compiles in turns with LLVM's emission of their IR. */
static void emission_case(bench *b, const source *s)
{
    static const char name[] = "compile/saxpy/emission";
    llvm l;
    double ours[N_COMPILES], theirs[N_COMPILES];
    if (!bench_wants(b, name))
        return;
    if (!open_llvm(&l, __builtin_cpu_supports("avx512bw") ? QN_ISA_V4 : QN_ISA_V3)) {
        printf("# %s: LLVM is not a library of its own here\n", name);
        return;
    }
    char *ir = malloc(IR_BYTES);
    bool is_ok = ir != NULL;
    for (int round = 0; is_ok && round < N_COMPILES; round++) {
        qn_code *f = NULL;
        is_ok = compile_once(b, s, N_COMPILES + round, &ours[round], &f);
        is_ok = is_ok && qn_code_text(f, QN_DUMP_LLVM, ir, IR_BYTES) < IR_BYTES;
        theirs[round] = is_ok ? emit_once(&l, ir) : 0;
        is_ok = is_ok && theirs[round] > 0;
        qn_code_release(f);
    }
    free(ir);
    l.machine_free(l.machine);
    if (!is_ok) {
        bench_wrong(b, name, "LLVM does not take the text");
        return;
    }
    bench_line line = {.name = name, .group = GROUP_COST, .goal = 0.8, .short_below = 0.8};
    line.ours = bench_median(ours, N_COMPILES);
    line.theirs = bench_median(theirs, N_COMPILES);
    line.ratio = line.theirs / line.ours;
    bench_report(b, &line);
}

/* ---------------------------------------------------------------- cases */

/* The body of RAJAPerf that takes longest. */
static void body_case(bench *b, source s)
{
    static const bench_body_info bodies[] = {BENCH_BODIES(BODY_INFO)};
    static const char name[] = "compile/raja";
    double most = 0;
    const char *slowest = "";
    bool is_ok = true;
    if (!bench_wants(b, name))
        return;
    for (size_t i = 0; is_ok && i < sizeof bodies / sizeof *bodies; i++) {
        double seconds;
        s.name = bodies[i].name;
        s.body = &bodies[i];
        s.make = make_body;
        is_ok = compile_median(b, &s, 5, &seconds);
        slowest = seconds > most ? s.name : slowest;
        most = seconds > most ? seconds : most;
    }
    if (!is_ok)
        return;
    printf("# slowest of %zu: %s\n", sizeof bodies / sizeof *bodies, slowest);
    bench_report_cost(b, name, most, 15e-3);
}

/* A function against a root in its place, and ten calls against one: what one costs above the root
 * is not to come ten times. */
static void function_cases(bench *b, source s)
{
    static const struct {
        const char *name, *ten;
        void (*print)(char *text, int n);
    } functions[] = {{"compile/functions/exp", "compile/functions/exp/ten", bench_print_exps},
                     {"compile/functions/log", "compile/functions/log/ten", bench_print_logs}};
    double root = 0, one, ten;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        bool wants_ten = bench_wants(b, functions[i].ten);
        if (!wants_ten && !bench_wants(b, functions[i].name))
            continue;
        s.name = functions[i].name;
        s.make = make_text;
        s.n_ops = 1;
        s.print = bench_print_roots;
        bool is_ok = root > 0 || compile_median(b, &s, N_COMPILES, &root);
        s.print = functions[i].print;
        is_ok = is_ok && compile_median(b, &s, N_COMPILES, &one);
        s.n_ops = 10;
        is_ok = is_ok && (!wants_ten || compile_median(b, &s, N_COMPILES, &ten));
        if (is_ok && bench_wants(b, s.name))
            bench_report_cost(b, s.name, one, 1.5 * root + 1.5e-3);
        if (is_ok && wants_ten)
            bench_report_cost(b, functions[i].ten, ten, 5 * one);
    }
}

void bench_compile_cases(bench *b)
{
    static const source cases[] = {
        {.name = "compile/saxpy",
         .goal_seconds = 1.8e-3,
         .make = make_loop,
         .kernel = KERNEL_SAXPY,
         .rank = 1},
        {.name = "compile/stencil5",
         .goal_seconds = 3.2e-3,
         .make = make_loop,
         .kernel = KERNEL_FIVE,
         .rank = 2},
        {.name = "compile/stencil7",
         .goal_seconds = 3.2e-3,
         .make = make_loop,
         .kernel = KERNEL_SEVEN,
         .rank = 3},
        {.name = "compile/product/whole",
         .goal_seconds = 4e-3,
         .make = make_product,
         .first = 192,
         .step = 24},
        {.name = "compile/product/rest",
         .goal_seconds = 6e-3,
         .make = make_product,
         .first = 193,
         .step = 26},
        {.name = "compile/large/300",
         .goal_seconds = 300 * 20e-6,
         .make = make_text,
         .print = bench_print_straight,
         .n_ops = 300},
        {.name = "compile/large/1000",
         .goal_seconds = 1000 * 20e-6,
         .make = make_text,
         .print = bench_print_straight,
         .n_ops = 1000},
        {.name = "compile/large/3000",
         .goal_seconds = 3000 * 20e-6,
         .make = make_text,
         .print = bench_print_straight,
         .n_ops = 3000,
         .n_compiles = 5},
        {.name = "compile/branches/96",
         .goal_seconds = 96 * 400e-6,
         .make = make_text,
         .print = bench_print_branches,
         .n_ops = 96,
         .n_compiles = 9},
        {.name = "compile/gathers/100",
         .goal_seconds = 100 * 0.6e-3,
         .make = make_text,
         .print = bench_print_gathers,
         .n_ops = 100,
         .n_compiles = 5},
        {.name = "compile/reduces/16",
         .goal_seconds = 16 * 0.8e-3,
         .make = make_text,
         .print = bench_print_reduces,
         .n_ops = 16,
         .n_compiles = 9},
        {.name = "compile/reduces/50",
         .goal_seconds = 50 * 0.8e-3,
         .make = make_text,
         .print = bench_print_reduces,
         .n_ops = 50,
         .n_compiles = 9},
    };
    qn_view view[MAX_ARGS];
    qn_arg arg[MAX_ARGS];
    int n_args = 0;
    if (b->assembly_of)
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        source s = cases[i];
        double seconds;
        s.view = view;
        s.arg = arg;
        s.n_args = &n_args;
        if (bench_wants(b, s.name) &&
            compile_median(b, &s, s.n_compiles ? s.n_compiles : N_COMPILES, &seconds))
            bench_report_cost(b, s.name, seconds, s.goal_seconds);
        if (i == 0)
            emission_case(b, &s);
    }
    function_cases(b, (source){.view = view, .arg = arg, .n_args = &n_args});
    body_case(b, (source){.view = view, .arg = arg, .n_args = &n_args});
}
