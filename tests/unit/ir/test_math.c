/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_math.c: the error of the mathematical functions in units in the last place, against the C
 * library in a wider type: f32 against double, f64 against long double. What is tested, and how,
 * are the rows of math_rows.def.
 *
 *   test_math [function|-] [sample|all] [count]
 *
 * One f32 argument: a sample of all bit patterns, or every one of them. Others: `count` random ones
 * and the special values. Arguments that are known to be hard are in math_hard.def. Special values
 * with their results stand in the case files math_*.case.
 */
#define _GNU_SOURCE
#include "tests/math/math_trial.h"
#include "tests/unit/launch.h"

#include <float.h>
#include <math.h>

enum { N = TRIAL_ELEMENTS };

typedef struct errors {
    int64_t n, n_wrong;        /* values; infinities and NaN that are not what they should be */
    double worst, at_x, at_y; /* ulp */
} errors;

static void end(math_trial *t, const errors *e)
{
    const math_row *f = t->row;
    double most = f->most[t->dtype == QN_F64];
    tap_ok(e->n_wrong == 0 && e->worst <= most,
           "%s of %s: %" PRId64 " values, error at most %.4f ulp, at %a, %a", f->name,
           qn_dtype_name(t->dtype), e->n, e->worst, e->at_x, e->at_y);
    if (e->n_wrong)
        tap_note("%" PRId64 " infinities or NaN are wrong, the last at %a, %a", e->n_wrong, e->at_x,
                 e->at_y);
    qn__trial_end(t);
}

/** Adds the error of a result, which is to be near `exact`. */
static void add_error(errors *e, const math_trial *t, double x, double y, double result,
                      long double exact)
{
    double nearest = t->dtype == QN_F32 ? (double)(float)exact : (double)exact;
    e->n++;
    if (isnan(exact) || isnan(result) || isinf(nearest) || isinf(result)) {
        if (isnan(exact) ? isnan(result) : result == nearest)
            return;
        e->n_wrong++;
        e->at_x = x;
        e->at_y = y;
        return;
    }
    double error = (double)(fabsl(result - exact) / qn__ulp_of(exact, t->row->least, t->dtype));
    if (!(error <= e->worst)) {
        e->worst = error;
        e->at_x = x;
        e->at_y = y;
    }
}

/** Computes n elements, and adds their errors. */
static void compute(const math_trial *t, int n, errors *e)
{
    qn__trial_compute(t);
    for (int i = 0; i < n; i++) {
        double x = qn__trial_get(&t->views[0], i),
               y = t->n_arguments > 1 ? qn__trial_get(&t->views[1], i) : 0, near[MOST_RESULTS];
        long double exact[MOST_RESULTS];
        if (t->dtype == QN_F64)
            t->row->f64(x, y, exact);
        else
            t->row->f32(x, y, near);
        for (int a = 0; a < t->n_results; a++)
            add_error(e, t, x, y, qn__trial_get(&t->views[t->n_arguments + a], i),
                      t->dtype == QN_F64 ? exact[a] : near[a]);
    }
}

/** Every step-th bit pattern of f32. */
static void test_patterns(qn_context *c, const math_row *f, uint64_t step)
{
    math_trial t = qn__trial_begin(c, f, QN_F32);
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

static double special(int i)
{
    static const double values[] = {0,        -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-1074,
                                    0x1p-149, 1,    -1,       0.5,       2,   -3,        DBL_MAX};
    return values[i % (int)(sizeof values / sizeof values[0])];
}

static void test_random(qn_context *c, const math_row *f, int dtype, int64_t count)
{
    enum { N_SPECIAL = 14 };
    math_trial t = qn__trial_begin(c, f, dtype);
    uint64_t state = 1;
    errors e = {0};
    for (int64_t done = 0; done < count; done += N) {
        for (int i = 0; i < N; i++)
            for (int a = 0; a < t.n_arguments; a++) {
                bool is_special = done == 0 && i < N_SPECIAL * N_SPECIAL;
                double v = is_special ? special(a ? i / N_SPECIAL : i)
                                      : qn__trial_draw(&f->range[a], dtype, &state);
                qn__trial_set(&t.views[a], i, v);
            }
        compute(&t, N, &e);
    }
    end(&t, &e);
}

/** A row of math_hard.def. */
typedef struct hard_row {
    const char *name;
    int dtype;
    double x, y;
    long double exact;
    bool is_rounded; /* the result is `exact`; else it is near */
} hard_row;

static const hard_row hard_rows[] = {
#define QN_MATH_HARD(name, dtype, x, y, exact) {#name, dtype, x, y, exact, false},
#define QN_MATH_ROUNDED(name, x, nearest) {#name, QN_F32, x, 0, nearest, true},
#include "tests/math/math_hard.def"
#undef QN_MATH_HARD
#undef QN_MATH_ROUNDED
};

enum { N_HARD = sizeof hard_rows / sizeof hard_rows[0] };

/** The hard arguments of a function, if it has any. */
static void test_hard(qn_context *c, const math_row *f, int dtype)
{
    const hard_row *rows[N_HARD];
    int n = 0, n_wrong = 0;
    errors e = {0};
    for (int i = 0; i < N_HARD; i++)
        if (strcmp(hard_rows[i].name, f->name) == 0 && hard_rows[i].dtype == dtype)
            rows[n++] = &hard_rows[i];
    if (n == 0)
        return;
    math_trial t = qn__trial_begin(c, f, dtype);
    for (int i = 0; i < n; i++) {
        qn__trial_set(&t.views[0], i, rows[i]->x);
        if (t.n_arguments > 1)
            qn__trial_set(&t.views[1], i, rows[i]->y);
    }
    qn__trial_compute(&t);
    for (int i = 0; i < n; i++) {
        double result = qn__trial_get(&t.views[t.n_arguments], i);
        add_error(&e, &t, rows[i]->x, rows[i]->y, result, rows[i]->exact);
        n_wrong += rows[i]->is_rounded && result != (double)rows[i]->exact;
    }
    tap_ok(n_wrong == 0 && e.n_wrong == 0 && e.worst <= f->most[dtype == QN_F64],
           "%s of %s: %d hard arguments, error at most %.4f ulp, at %a, %a", f->name,
           qn_dtype_name(dtype), n, e.worst, e.at_x, e.at_y);
    qn__trial_end(&t);
}

/** A row that names no function of math_rows.def would be tested nowhere. */
static void test_hard_names(void)
{
    for (int h = 0; h < N_HARD; h++) {
        bool is_found = false;
        for (int i = 0; qn__math_row(i); i++)
            is_found |= strcmp(qn__math_row(i)->name, hard_rows[h].name) == 0 &&
                        qn__math_row(i)->most[hard_rows[h].dtype == QN_F64] >= 0;
        if (!is_found)
            tap_ok(false, "math_hard.def: there is no %s of %s", hard_rows[h].name,
                   qn_dtype_name(hard_rows[h].dtype));
    }
}

/** lgamma of negative f64, which is close to 0 in many places: errors in units in the last place of
 * 32 and more. */
static void test_lgamma_below(qn_context *c, const math_row *f, int64_t count)
{
    math_row below = *f;
    below.range[0] = (math_range){-200, 0, 0.5};
    below.least = 32;
    below.most[1] = 5;
    test_random(c, &below, QN_F64, count);
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
        {QN_ERR_NOT_FOUND, "no mathematical function is called \"expo_f16\""},
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
        tap_ok(qn_builder_status(b, &err) == wrong[i].status && strstr(err.message, wrong[i].part),
               "refused: %s", err.message);
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
    tap_ok(qn_type_of(b, parts[0]) == QN_BF16 && qn_type_of(b, parts[1]) == QN_I32,
           "the fraction is bf16, the exponent i32");
    qn_store(b, n, 1, &i, parts[1]);
    qn_store(b, x, 1, &i, qn_ldexp(b, parts[0], parts[1]));
    qn_kernel *k = NULL, *again = NULL;
    qn_error err = {0};
    char text[4096], text_again[4096];
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "a kernel of frexp and ldexp%s", err.message);
    qn_kernel_print(k, text, sizeof text);
    bool is_read = qn_kernel_parse(text, strlen(text), &again, &err) == QN_OK;
    qn_kernel_print(again, text_again, sizeof text_again);
    tap_ok(is_read && strcmp(text, text_again) == 0 && strstr(text, "= frexp %"),
           "its text and back%s", err.message);
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
    for (int i = 0; qn__math_row(i); i++) {
        const math_row *f = qn__math_row(i);
        if (only && strcmp(only, f->name) != 0)
            continue;
        if (f->most[0] >= 0 && strcmp(f->arguments, "f") == 0)
            test_patterns(c, f, is_all ? 1 : 20011);
        else if (f->most[0] >= 0)
            test_random(c, f, QN_F32, count);
        if (f->most[1] >= 0)
            test_random(c, f, QN_F64, count);
        test_hard(c, f, QN_F32);
        test_hard(c, f, QN_F64);
        if (strcmp(f->name, "lgamma") == 0)
            test_lgamma_below(c, f, count);
    }
    test_hard_names();
    test_refused();
    test_results();
    qn_context_release(c);
    return tap_done();
}
