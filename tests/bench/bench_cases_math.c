/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_math.c: the mathematical functions on arrays in the first cache, against the vector
 * functions of glibc's libmvec and of SLEEF, where these libraries are there. Times are those of an
 * element.
 */
#include "bench.h"
#include "native_math.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4096 };
enum { LIBMVEC, SLEEF, N_LIBRARIES };
enum { UNIFORM, LOGARITHMIC }; /* how arguments are spread over their range */

/* The usual arguments of a function. */
typedef struct range {
    const char *name;
    int spread;
    double low, high;   /* of the first argument */
    double low2, high2; /* of the second one, which is uniform */
} range;

static const range ranges[] = {
    {"exp", UNIFORM, -80, 80, 0, 0},
    {"exp2", UNIFORM, -100, 100, 0, 0},
    {"exp10", UNIFORM, -30, 30, 0, 0},
    {"log", LOGARITHMIC, 1e-30, 1e30, 0, 0},
    {"log2", LOGARITHMIC, 1e-30, 1e30, 0, 0},
    {"log10", LOGARITHMIC, 1e-30, 1e30, 0, 0},
    {"log1p", UNIFORM, -0.99, 10, 0, 0},
    {"asin", UNIFORM, -1, 1, 0, 0},
    {"acos", UNIFORM, -1, 1, 0, 0},
    {"acosh", UNIFORM, 1, 100, 0, 0},
    {"atanh", UNIFORM, -1, 1, 0, 0},
    {"asinh", UNIFORM, -100, 100, 0, 0},
    {"pow", LOGARITHMIC, 1e-3, 1e3, -10, 10},
    {"powi", UNIFORM, -4, 4, -10, 10},
    {"ldexp", UNIFORM, -4, 4, -20, 20},
    {"cbrt", UNIFORM, -1000, 1000, 0, 0},
    {"rsqrt", LOGARITHMIC, 1e-3, 1e3, 0, 0},
    {"hypot", UNIFORM, -100, 100, -100, 100},
    {"erf", UNIFORM, -4, 4, 0, 0},
    {"erfc", UNIFORM, -4, 8, 0, 0},
    {"lgamma", UNIFORM, 0.1, 30, 0, 0},
    {"tgamma", UNIFORM, 0.1, 30, 0, 0},
    {"fmod", UNIFORM, -1000, 1000, -10, 10},
    {"remainder", UNIFORM, -1000, 1000, -10, 10},
};
static const range other_range = {"", UNIFORM, -10, 10, -10, 10};

/* Those whose goal against libmvec is higher, though libmvec allows itself 4 ulp. */
static const char *const main_functions[] = {"exp", "log", "sin", "cos", "tanh", "pow"};

/* Libraries and their instruction set. */
typedef struct peers {
    void *library[N_LIBRARIES]; /* NULL: not there */
    int vector_bytes;           /* 64: AVX-512; 32: AVX2 */
} peers;

typedef struct math_case {
    const char *function;
    int arity, n_results, dtype;
    char name[48];
    int dtype2, dtype_of_result;
    qn_kernel *kernel;
    qn_view view[3]; /* x, z (with two arguments), y */
    qn_arg args[3];
    bench_memory memory; /* x, z, y, the peer's y */
} math_case;

enum { X, Z, Y, THEIRS, N_ARRAYS };

/* ---------------------------------------------------------------- peers */

/* A function correctly rounded has the peers of that which is not. */
static const char *plain_name(const char *function)
{
    return strncmp(function, "cr_", 3) == 0 ? function + 3 : function;
}

static void (*symbol(void *library, const char *name))(void)
{
    void (*function)(void) = NULL;
    *(void **)&function = dlsym(library, name);
    return function;
}

/* _ZGVeN16v_expf, _ZGVdN4vv_pow */
static void (*find_libmvec(const peers *p, const math_case *c))(void)
{
    char name[64];
    bool is_f32 = c->dtype == QN_F32;
    snprintf(name, sizeof name, "_ZGV%cN%d%s_%s%s", p->vector_bytes == 64 ? 'e' : 'd',
             p->vector_bytes / (is_f32 ? 4 : 8), c->arity == 1 ? "v" : "vv", c->function,
             is_f32 ? "f" : "");
    return symbol(p->library[LIBMVEC], name);
}

/* Sleef_expf16_u10avx512f, Sleef_powd4_u10avx2; the most exact of those with an error of about 1
 * ulp stands last. */
static void (*find_sleef(const peers *p, const math_case *c))(void)
{
    static const char *const errors[] = {"u10", "u15", "u05", ""};
    void (*function)(void) = NULL;
    bool is_f32 = c->dtype == QN_F32;
    for (size_t i = 0; i < sizeof errors / sizeof *errors && !function; i++) {
        char name[64];
        snprintf(name, sizeof name, "Sleef_%s%c%d_%s%s", plain_name(c->function),
                 is_f32 ? 'f' : 'd', p->vector_bytes / (is_f32 ? 4 : 8), errors[i],
                 p->vector_bytes == 64 ? "avx512f" : "avx2");
        function = symbol(p->library[SLEEF], name);
    }
    return function;
}

static peers open_peers(void)
{
    const char *isa = getenv("QUERN_BENCH_ISA");
    bool is_v3 = (isa && atoi(isa) == QN_ISA_V3) || !__builtin_cpu_supports("avx512bw");
    peers p = {{dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL),
                dlopen("libsleef.so.3", RTLD_NOW | RTLD_LOCAL)},
               is_v3 ? 32 : native_math_most_bytes};
    if (!p.library[LIBMVEC] || !p.library[SLEEF])
        printf("# math: no %s%s%s\n", p.library[LIBMVEC] ? "" : "libmvec.so.1",
               p.library[LIBMVEC] || p.library[SLEEF] ? "" : ", ",
               p.library[SLEEF] ? "" : "libsleef.so.3");
    return p;
}

/* ---------------------------------------------------------------- ours */

/* Whether the function takes a second argument of this dtype; asks a builder for the dtype of the
 * result, too. */
static bool takes(math_case *c, int dtype2)
{
    qn_builder *b = qn_function_new(c->function, 0);
    qn_val arg[2] = {qn_scalar_param(b, "x", c->dtype)}, result[2] = {{0}};
    if (c->arity == 2)
        arg[1] = qn_scalar_param(b, "z", dtype2);
    qn_math(b, c->function, c->arity, arg, result);
    c->dtype2 = dtype2;
    c->dtype_of_result = (int)qn_type_of(b, result[0]);
    bool is_taken = qn_builder_status(b, NULL) == QN_OK;
    qn_builder_release(b);
    return is_taken;
}

/* y[i] = f(x[i]) or f(x[i], z[i]), the first result */
static qn_kernel *build(const math_case *c, qn_error *err)
{
    qn_builder *b = qn_builder_new(c->function, 0);
    qn_kernel *k = NULL;
    qn_param x = qn_view_param(b, "x", c->dtype, 1, QN_READ_ONLY), z = {0};
    if (c->arity == 2)
        z = qn_view_param(b, "z", c->dtype2, 1, QN_READ_ONLY);
    qn_param y = qn_view_param(b, "y", c->dtype_of_result, 1, 0);
    qn_val i = qn_parallel_over(b, x, 0), arg[2] = {qn_load(b, x, 1, &i)}, result[2] = {{0}};
    if (c->arity == 2)
        arg[1] = qn_load(b, z, 1, &i);
    qn_math(b, c->function, c->arity, arg, result);
    qn_store(b, y, 1, &i, result[0]);
    (void)qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

static double uniform(uint64_t *state, double low, double high)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * ((double)(*state >> 11) * 0x1p-53);
}

static void put(void *at, int dtype, int64_t i, double value)
{
    if (dtype == QN_F32)
        ((float *)at)[i] = (float)value;
    else if (dtype == QN_F64)
        ((double *)at)[i] = value;
    else if (dtype == QN_I32)
        ((int32_t *)at)[i] = (int32_t)value;
    else
        ((int64_t *)at)[i] = (int64_t)value;
}

static double get(const void *at, int dtype, int64_t i)
{
    return dtype == QN_F32 ? ((const float *)at)[i] : ((const double *)at)[i];
}

static void fill(math_case *c)
{
    const range *r = &other_range;
    uint64_t state = 1;
    for (size_t n = 0; n < sizeof ranges / sizeof *ranges; n++)
        if (strcmp(ranges[n].name, plain_name(c->function)) == 0)
            r = &ranges[n];
    for (int64_t i = 0; i < N; i++) {
        bool is_uniform = r->spread == UNIFORM;
        double x = is_uniform ? uniform(&state, r->low, r->high)
                              : exp(uniform(&state, log(r->low), log(r->high)));
        put(c->memory.at[X], c->dtype, i, x);
        if (c->arity == 2)
            put(c->memory.at[Z], c->dtype2, i, uniform(&state, r->low2, r->high2));
    }
}

static bool add_view(math_case *c, int array, int dtype, int *n, qn_error *err)
{
    int64_t extent = N;
    qn_layout layout;
    bool is_ok =
        qn_layout_right(1, &extent, &layout, err) == QN_OK &&
        qn_view_wrap("array", c->memory.at[array], dtype, &layout, 0, &c->view[*n], err) == QN_OK;
    c->args[*n] = qn_arg_view(&c->view[*n]);
    ++*n;
    return is_ok;
}

/* A second argument has the dtype of the first one, or is an integer. */
static bool make_case(math_case *c, int *n_args, qn_error *err)
{
    const size_t bytes[N_ARRAYS] = {N * 8, N * 8, N * 8, N * 8};
    if (!takes(c, c->dtype) && !takes(c, QN_I32))
        (void)takes(c, QN_I64);
    c->kernel = build(c, err);
    if (!c->kernel || bench_memory_make(&c->memory, N_ARRAYS, bytes, err))
        return false;
    fill(c);
    return add_view(c, X, c->dtype, n_args, err) &&
           (c->arity == 1 || add_view(c, Z, c->dtype2, n_args, err)) &&
           add_view(c, Y, c->dtype_of_result, n_args, err);
}

/* ---------------------------------------------------------------- lines */

/* Ours against theirs; both allow themselves a few roundings. */
static bool is_close(const math_case *c)
{
    double tolerance = c->dtype == QN_F32 ? 0x1p-20 : 0x1p-48;
    for (int64_t i = 0; i < N; i++) {
        double x = get(c->memory.at[Y], c->dtype, i), y = get(c->memory.at[THEIRS], c->dtype, i);
        if (!(fabs(x - y) <= tolerance * (1 + fabs(y))) && !(x == y) && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

static double goal_of(const math_case *c, int library)
{
    bool is_exact = strncmp(c->function, "cr_", 3) == 0;
    if (library == SLEEF)
        return is_exact ? 0.5 : 1.2;
    for (size_t i = 0; i < sizeof main_functions / sizeof *main_functions; i++)
        if (strcmp(c->function, main_functions[i]) == 0)
            return 0.9;
    return 0.75;
}

static void compare(bench *b, const math_case *c, qn_call *call, int library,
                    void (*function)(void), int vector_bytes)
{
    static const char *const names[N_LIBRARIES] = {"libmvec", "sleef"};
    char name[80];
    double goal = goal_of(c, library);
    snprintf(name, sizeof name, "%s/%s", c->name, names[library]);
    if (!function || !bench_wants(b, name))
        return;
    size_t bytes = N * (size_t)qn_dtype_bytes(c->dtype);
    native_math loop = {
        function, c->arity, vector_bytes, c->memory.at[X], c->memory.at[Z], c->memory.at[THEIRS],
        bytes};
    bench_line line = {.name = name,
                       .group = GROUP_LIBMVEC + library,
                       .goal = goal,
                       .short_below = goal,
                       .n_elements = N};
    native_math_loop(&loop);
    if (is_close(c))
        bench_in_turns(b, &line, call, native_math_loop, &loop);
    else
        bench_wrong(b, name, "not the result of the peer");
}

static void run_call(const void *call)
{
    (void)qn_run((qn_call *)(uintptr_t)call, NULL);
}

/* A function without a peer that can be called so. */
static void time_alone(bench *b, const math_case *c, qn_call *call)
{
    bench_line line = {.name = c->name, .group = GROUP_ALONE, .n_elements = N};
    if (bench_wants(b, c->name))
        bench_in_turns(b, &line, call, run_call, call);
}

static void run_case(bench *b, const peers *p, math_case *c)
{
    qn_error error = {0};
    qn_call *call = NULL;
    qn_options o = bench_options(b);
    int n_args = 0;
    if (!make_case(c, &n_args, &error))
        bench_wrong(b, c->name, "%s", error.message);
    else if (b->assembly_of)
        bench_print_assembly(b, c->name, c->kernel, n_args, c->args, &o);
    else if (bench_prepare(b, c->kernel, n_args, c->args, &o, &call, &error) ||
             qn_run(call, &error))
        bench_wrong(b, c->name, "%s", error.message);
    else {
        bool is_plain = c->n_results == 1 && c->dtype_of_result == c->dtype &&
                        (c->arity == 1 || c->dtype2 == c->dtype);
        void (*libmvec)(void) = is_plain && p->library[LIBMVEC] ? find_libmvec(p, c) : NULL;
        void (*sleef)(void) = is_plain && p->library[SLEEF] ? find_sleef(p, c) : NULL;
        compare(b, c, call, LIBMVEC, libmvec, p->vector_bytes);
        compare(b, c, call, SLEEF, sleef, p->vector_bytes);
        if (!libmvec && !sleef)
            time_alone(b, c, call);
    }
    qn_call_release(call);
    qn_kernel_release(c->kernel);
    bench_memory_free(&c->memory);
}

void bench_math_cases(bench *b)
{
    static const struct {
        const char *name;
        int arity, n_results;
    } functions[] = {
#define QN_MATH(name, arguments, results, doc) {#name, sizeof #arguments - 1, sizeof #results - 1},
#include "quern/math.def"
#undef QN_MATH
    };
    static const char *const ends[] = {"", "/libmvec", "/sleef"};
    peers p = {0};
    for (size_t i = 0; i < 2 * sizeof functions / sizeof *functions; i++) {
        math_case c = {.function = functions[i / 2].name,
                       .arity = functions[i / 2].arity,
                       .n_results = functions[i / 2].n_results,
                       .dtype = i % 2 ? QN_F64 : QN_F32};
        bool wants = false;
        if (c.dtype == QN_F64 &&
            strncmp(c.function, "cr_", 3) == 0) /* correctly rounded: of f32 alone */
            continue;
        snprintf(c.name, sizeof c.name, "math/%s/%s", c.function, qn_dtype_name(c.dtype));
        for (int end = 0; end < 3; end++) {
            char name[80];
            snprintf(name, sizeof name, "%s%s", c.name, ends[end]);
            wants |= bench_wants(b, name);
        }
        if (wants && !p.vector_bytes)
            p = open_peers();
        if (wants)
            run_case(b, &p, &c);
    }
}
