/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_math.c: the error of the mathematical functions in units in the last place, against the C library in a wider type:
 * f32 against double, f64 against long double. What is tested, and how, are the rows of math_rows.def.
 *
 *   test_math [function|-] [sample|all] [count]
 *
 * One f32 argument: a sample of all bit patterns, or every one of them. Others: `count` random ones and the special values.
 * Special values with their results stand in the case files math_*.case.
 */
#define _GNU_SOURCE
#include "tests/unit/math_references.h"
#include "tests/unit/launch.h"

#include <float.h>

enum { N = 1 << 16, MOST_RESULTS = 2 };

typedef struct range {
    double low, high, near;
} range;
#define RANGE(low, high, near)                                                                     \
    {                                                                                              \
        low, high, near                                                                            \
    }

#define QN_MATH_ROW(name, arguments, results, range_x, range_y, least, f32, f64, most_f32, most_f64) \
    static void name##_f32(double x, double y, double *r)                                          \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        f32;                                                                                       \
    }                                                                                              \
    static void name##_f64(long double x, long double y, long double *r)                           \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        f64;                                                                                       \
    }
#include "tests/unit/math_rows.def"
#undef QN_MATH_ROW

static const struct function {
    const char *name, *arguments, *results;
    range range[2];
    double least;
    void (*f32)(double x, double y, double *r);
    void (*f64)(long double x, long double y, long double *r);
    double most[2]; /* ulp, of f32 and f64 */
} functions[] = {
#define QN_MATH_ROW(name, arguments, results, range_x, range_y, least, f32, f64, most_f32, most_f64) \
    {#name, arguments, results, {range_x, range_y}, least, name##_f32, name##_f64, {most_f32, most_f64}},
#include "tests/unit/math_rows.def"
#undef QN_MATH_ROW
};

/** What a function of one dtype is tested with. */
typedef struct trial {
    const struct function *f;
    int dtype, n_arguments, n_results;
    qn_context *c;
    qn_kernel *k;
    qn_view views[2 + MOST_RESULTS]; /* arguments, then results, of N elements */
} trial;

typedef struct errors {
    int64_t n, n_wrong;        /* values; infinities and NaN that are not what they should be */
    double worst, at_x, at_y; /* ulp */
} errors;

static int dtype_of(char kind, int dtype)
{
    return kind == 'f' ? dtype : kind == 'b' ? QN_BOOL : QN_I32;
}

/** results[i] = f(arguments[i]) */
static qn_kernel *kernel_of_function(const trial *t)
{
    static const char *const labels[] = {"x", "y", "r", "s"};
    qn_builder *b = qn_builder_new(t->f->name, 0);
    qn_param arguments[2], results[MOST_RESULTS];
    qn_val v[2], r[QN_MAX_CARRIED];
    for (int a = 0; a < t->n_arguments; a++)
        arguments[a] = qn_view_param(b, labels[a], dtype_of(t->f->arguments[a], t->dtype), 1, 0);
    for (int a = 0; a < t->n_results; a++)
        results[a] = qn_view_param(b, labels[2 + a], dtype_of(t->f->results[a], t->dtype), 1, 0);
    qn_val i = qn_parallel_over(b, results[0], 0);
    for (int a = 0; a < t->n_arguments; a++)
        v[a] = qn_load(b, arguments[a], 1, &i);
    qn_math(b, t->f->name, t->n_arguments, v, r);
    for (int a = 0; a < t->n_results; a++)
        qn_store(b, results[a], 1, &i, r[a]);
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s: %s", t->f->name, err.message);
    qn_builder_release(b);
    return k;
}

static trial begin(qn_context *c, const struct function *f, int dtype)
{
    trial t = {.f = f, .dtype = dtype, .c = c};
    t.n_arguments = (int)strlen(f->arguments);
    t.n_results = (int)strlen(f->results);
    t.k = kernel_of_function(&t);
    for (int a = 0; a < t.n_arguments; a++)
        t.views[a] = vector_of(c, "argument", dtype_of(f->arguments[a], dtype), N);
    for (int a = 0; a < t.n_results; a++)
        t.views[t.n_arguments + a] = vector_of(c, "result", dtype_of(f->results[a], dtype), N);
    return t;
}

static void end(trial *t, const errors *e)
{
    const struct function *f = t->f;
    double most = f->most[t->dtype == QN_F64];
    tap_ok(e->n_wrong == 0 && e->worst <= most, "%s of %s: %" PRId64 " values, error at most %.4f ulp, at %a, %a", f->name,
           qn_dtype_name(t->dtype), e->n, e->worst, e->at_x, e->at_y);
    if (e->n_wrong)
        tap_note("%" PRId64 " infinities or NaN are wrong, the last at %a, %a", e->n_wrong, e->at_x, e->at_y);
    for (int a = 0; a < t->n_arguments + t->n_results; a++)
        qn_view_release(&t->views[a]);
    qn_kernel_release(t->k);
}

static double element(const qn_view *v, int i)
{
    switch (v->dtype) {
    case QN_F32: return ((float *)v->data)[i];
    case QN_F64: return ((double *)v->data)[i];
    case QN_I32: return ((int32_t *)v->data)[i];
    default: return ((uint8_t *)v->data)[i];
    }
}

static void set_element(const qn_view *v, int i, double value)
{
    switch (v->dtype) {
    case QN_F32: ((float *)v->data)[i] = (float)value; break;
    case QN_F64: ((double *)v->data)[i] = value; break;
    default: ((int32_t *)v->data)[i] = (int32_t)fmin(fmax(value, INT32_MIN), INT32_MAX); break;
    }
}

static double ulp_of(long double exact, double least, int dtype)
{
    int exponent, digits = dtype == QN_F32 ? 24 : 53, smallest = dtype == QN_F32 ? -149 : -1074;
    frexpl(fmaxl(fabsl(exact), least), &exponent);
    return ldexp(1, exponent - digits < smallest ? smallest : exponent - digits);
}

/** Adds the error of a result, which is to be near `exact`. */
static void add_error(errors *e, const trial *t, double x, double y, double result, long double exact)
{
    double nearest = t->dtype == QN_F32 ? (double)(float)exact : (double)exact;
    e->n++;
    if (isnan(exact) || isinf(nearest) || isinf(result)) {
        if (isnan(exact) ? isnan(result) : result == nearest)
            return;
        e->n_wrong++;
        e->at_x = x;
        e->at_y = y;
        return;
    }
    double error = (double)(fabsl(result - exact) / ulp_of(exact, t->f->least, t->dtype));
    if (!(error <= e->worst)) {
        e->worst = error;
        e->at_x = x;
        e->at_y = y;
    }
}

/** Computes n elements, and adds their errors. */
static void compute(trial *t, int n, errors *e)
{
    qn_arg args[2 + MOST_RESULTS];
    qn_error err = {0};
    for (int a = 0; a < t->n_arguments + t->n_results; a++)
        args[a] = qn_arg_view(&t->views[a]);
    if (qn_launch(t->c, t->k, t->n_arguments + t->n_results, args, NULL, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
    for (int i = 0; i < n; i++) {
        double x = element(&t->views[0], i), y = t->n_arguments > 1 ? element(&t->views[1], i) : 0, near[MOST_RESULTS];
        long double exact[MOST_RESULTS];
        if (t->dtype == QN_F64)
            t->f->f64(x, y, exact);
        else
            t->f->f32(x, y, near);
        for (int a = 0; a < t->n_results; a++)
            add_error(e, t, x, y, element(&t->views[t->n_arguments + a], i), t->dtype == QN_F64 ? exact[a] : near[a]);
    }
}

/** Every step-th bit pattern of f32. */
static void test_patterns(qn_context *c, const struct function *f, uint64_t step)
{
    trial t = begin(c, f, QN_F32);
    errors e = {0};
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        int n = 0;
        for (; n < N && bits <= UINT32_MAX; n++, bits += step) {
            uint32_t number = (uint32_t)bits;
            memcpy((float *)t.views[0].data + n, &number, sizeof number);
        }
        compute(&t, n, &e);
    }
    end(&t, &e);
}

/** A uniform number in [0, 1). */
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/** A magnitude of [least, most], log-uniform. */
static double magnitude(double least, double most, uint64_t *state)
{
    return exp2(log2(least) + uniform(state) * (log2(most) - log2(least)));
}

/** A number of the range: see math_rows.def. */
static double draw(const range *of, int dtype, uint64_t *state)
{
    double bound = dtype == QN_F32 ? FLT_MAX : DBL_MAX, smallest = dtype == QN_F32 ? 0x1p-149 : 0x1p-1074;
    double low = fmax(of->low, -bound), high = fmin(of->high, bound), most = fmax(-low, high), kind = uniform(state);
    double v = 0;
    if (of->near != 0 && kind < 0.3) { /* from far below the step to many steps, and off by a few units to a quarter */
        double times = round(magnitude(0.6, fmin(most / of->near, 0x1p40), state));
        v = times * of->near * (1 + (2 * uniform(state) - 1) * magnitude(0x1p-53, 0.25, state));
    } else if (kind < 0.5) {
        v = 2 * uniform(state) - 1;
    } else if (kind < 0.75) {
        v = magnitude(smallest, most, state);
    } else {
        v = low + uniform(state) * (high / 2 - low / 2) * 2;
    }
    if (kind < 0.75 && uniform(state) < 0.5)
        v = -v;
    return fmin(fmax(v, low), high);
}

static double special(int i)
{
    static const double values[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-1074, 0x1p-149, 1, -1, 0.5, 2, -3, DBL_MAX};
    return values[i % (int)(sizeof values / sizeof values[0])];
}

static void test_random(qn_context *c, const struct function *f, int dtype, int64_t count)
{
    enum { N_SPECIAL = 14 };
    trial t = begin(c, f, dtype);
    uint64_t state = 1;
    errors e = {0};
    for (int64_t done = 0; done < count; done += N) {
        for (int i = 0; i < N; i++)
            for (int a = 0; a < t.n_arguments; a++) {
                bool is_special = done == 0 && i < N_SPECIAL * N_SPECIAL;
                double v = is_special ? special(a ? i / N_SPECIAL : i) : draw(&f->range[a], dtype, &state);
                set_element(&t.views[a], i, v);
            }
        compute(&t, N, &e);
    }
    end(&t, &e);
}

/** A call that there is none of: its number i. */
static void wrong_call(qn_builder *b, int i, qn_val x, qn_val n)
{
    qn_val two[2] = {x, n}, y[2];
    switch (i) {
    case 0: qn_math(b, "expo", 1, &x, y); break;
    case 1: qn_math(b, "exp", 1, &n, y); break;
    case 2: qn_math(b, "exp", 2, two, y); break;
    case 3: qn_math(b, "ldexp", 1, two, y); break;
    case 4: qn_ldexp(b, x, x); break;
    case 5: qn_frexp(b, n, y); break;
    case 6: qn_frexp(b, x, NULL); break;
    case 7: qn_math(b, NULL, 1, &x, y); break;
    }
}

/** Names, dtypes and numbers of arguments that no function has. */
static void test_refused(void)
{
    static const struct {
        qn_status status;
        const char *part;
    } wrong[] = {
        {QN_ERR_NOT_FOUND, "no mathematical function is called \"expo_f32\""},
        {QN_ERR_NOT_FOUND, "no mathematical function is called \"exp_i32\""},
        {QN_ERR_ARGUMENT, "exp takes 1 arguments, not 2"},
        {QN_ERR_ARGUMENT, "ldexp takes 2 arguments, not 1"},
        {QN_ERR_TYPE, "qn_ldexp: kernel \"k\": ldexp of f16: argument 1 is f16, expected i32"},
        {QN_ERR_NOT_FOUND, "no mathematical function is called \"frexp_i32\""},
        {QN_ERR_ARGUMENT, "qn_frexp: kernel \"k\": arguments or results are NULL"},
        {QN_ERR_ARGUMENT, "name is NULL"},
    };
    for (int i = 0; i < (int)(sizeof wrong / sizeof wrong[0]); i++) {
        qn_builder *b = qn_builder_new("k", 0);
        qn_val x = qn_scalar_param(b, "x", QN_F16), n = qn_scalar_param(b, "n", QN_I32);
        qn_error err = {0};
        wrong_call(b, i, x, n);
        tap_ok(qn_builder_status(b, &err) == wrong[i].status && strstr(err.message, wrong[i].part), "refused: %s", err.message);
        qn_builder_release(b);
    }
}

/** Functions with two results, and the text of their calls. */
static void test_results(void)
{
    qn_builder *b = qn_builder_new("k", 0);
    qn_param x = qn_view_param(b, "x", QN_BF16, 1, 0), n = qn_view_param(b, "n", QN_I32, 1, 0);
    qn_val i = qn_parallel_over(b, x, 0), v = qn_load(b, x, 1, &i), parts[2];
    qn_frexp(b, v, parts);
    tap_ok(qn_type_of(b, parts[0]) == QN_BF16 && qn_type_of(b, parts[1]) == QN_I32, "the fraction is bf16, the exponent i32");
    qn_store(b, n, 1, &i, parts[1]);
    qn_store(b, x, 1, &i, qn_ldexp(b, parts[0], parts[1]));
    qn_kernel *k = NULL, *again = NULL;
    qn_error err = {0};
    char text[4096], text_again[4096];
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "a kernel of frexp and ldexp%s", err.message);
    qn_kernel_print(k, text, sizeof text);
    bool is_read = qn_kernel_parse(text, strlen(text), &again, &err) == QN_OK;
    qn_kernel_print(again, text_again, sizeof text_again);
    tap_ok(is_read && strcmp(text, text_again) == 0 && strstr(text, "= frexp %"), "its text and back%s", err.message);
    qn_kernel_release(k);
    qn_kernel_release(again);
    qn_builder_release(b);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    bool is_all = argc > 2 && strcmp(argv[2], "all") == 0;
    int64_t count = argc > 3 ? atoll(argv[3]) : N;
    qn_context *c = context_with(NULL);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct function *f = &functions[i];
        if (only && strcmp(only, f->name) != 0)
            continue;
        if (f->most[0] >= 0 && strcmp(f->arguments, "f") == 0)
            test_patterns(c, f, is_all ? 1 : 20011);
        else if (f->most[0] >= 0)
            test_random(c, f, QN_F32, count);
        if (f->most[1] >= 0)
            test_random(c, f, QN_F64, count);
    }
    test_refused();
    test_results();
    qn_context_release(c);
    return tap_done();
}
