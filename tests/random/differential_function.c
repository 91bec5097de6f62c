/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_function.c: random functions and their calls, mathematical functions, lookups of
 * constant arrays. Arguments of mathematical functions are of a usual size mostly, and their
 * results are bounded mostly, so that what is made of them is a number.
 */
#include "differential.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ARITY = 2, MOST_ARRAY = 300 };

/* ---------------------------------------------------------------- mathematical functions */

/* Arguments and results, a letter each. */
typedef struct math_row {
    const char *name, *arguments, *results;
} math_row;

static const math_row math_rows[] = {
#define QN_MATH(name, arguments, results, doc) {#name, #arguments, #results},
#include "quern/math.def"
#undef QN_MATH
};
enum { N_MATH = sizeof math_rows / sizeof *math_rows };

/* What is rounded correctly takes no f64. */
static const math_row *random_math(randoms *r, int dtype)
{
    for (;;) {
        const math_row *row = &math_rows[random_below(r, N_MATH)];
        if (dtype != QN_F64 || strncmp(row->name, "cr_", 3) != 0)
            return row;
    }
}

static qn_val gen_bounded(generator *g, qn_val v, int dtype, double bound)
{
    return qn_min(g->b, qn_max(g->b, v, qn_const_float(g->b, dtype, -bound)),
                  qn_const_float(g->b, dtype, bound));
}

/* Any value, or one of a usual size, or one that steps with an index. */
static qn_val gen_argument(generator *g, int dtype, int depth)
{
    static const double bounds[] = {1, 4, 20, 100, 1000};
    int kind = random_below(g->r, 100);
    if (kind < 20 && g->n_axes > 0) {
        qn_val at = qn_cast(g->b, dtype, g->axes[random_below(g->r, g->n_axes)].value);
        double step = (double)random_between(g->r, -64, 64) * 0x1p-5;
        return qn_mul(g->b, at, qn_const_float(g->b, dtype, step));
    }
    qn_val v = gen_value(g, dtype, depth - 1);
    return kind < 70 ? gen_bounded(g, v, dtype, bounds[random_below(g->r, 5)]) : v;
}

static qn_val gen_math_of(generator *g, int dtype, qn_val x)
{
    const math_row *row = random_math(g->r, dtype);
    int arity = (int)strlen(row->arguments);
    qn_val args[MOST_ARITY] = {gen_one_nan(g, x, dtype)}, result[QN_MAX_CARRIED];
    if (arity == 2)
        args[1] = row->arguments[1] == 'T' ? gen_one_nan(g, gen_argument(g, dtype, 1), dtype)
                                           : gen_value(g, QN_I32, 1);
    qn_math(g->b, row->name, arity, args, result);
    g->budget -= 4;
    g->t->has_math = true;
    if (row->results[1])
        gen_pool(g, result[1], (int)qn_type_of(g->b, result[1]));
    int found = (int)qn_type_of(g->b, result[0]);
    qn_val v = gen_convert(g, result[0], found, dtype);
    return random_percent(g->r, 60) ? gen_bounded(g, v, dtype, 1000) : v;
}

/* A part of a function of complex numbers with parts of this dtype. */
static qn_val gen_complex_math(generator *g, int dtype, int depth)
{
    static const char *const names[] = {"exp", "log", "sqrt", "sin", "cos", "pow"};
    enum { POW = 5 };
    int which = random_below(g->r, POW + 1), arity = which == POW ? 2 : 1;
    qn_val z[2], w;
    for (int i = 0; i < arity; i++) {
        qn_val x = gen_one_nan(g, gen_argument(g, dtype, depth), dtype);
        z[i] = qn_complex(g->b, x, gen_one_nan(g, gen_argument(g, dtype, 1), dtype));
    }
    qn_math(g->b, names[which], arity, z, &w);
    g->budget -= 8 * arity;
    g->t->has_math = true;
    return gen_bounded(g, random_percent(g->r, 50) ? qn_real(g->b, w) : qn_imag(g->b, w), dtype,
                       1000);
}

static qn_val gen_math(generator *g, int dtype, int depth)
{
    static const uint8_t floats[] = {QN_F32, QN_F32, QN_F32, QN_F64,
                                     QN_F64, QN_F64, QN_F16, QN_BF16};
    int of = is_float(dtype) ? dtype : floats[random_below(g->r, 8)];
    if ((of == QN_F32 || of == QN_F64) && random_percent(g->r, 8))
        return gen_convert(g, gen_complex_math(g, of, depth), of, dtype);
    return gen_convert(g, gen_math_of(g, of, gen_argument(g, of, depth)), of, dtype);
}

/* ---------------------------------------------------------------- lookups */

/* An array of a few elements, or of more than registers hold. */
static void make_array(generator *g, int dtype)
{
    static const int sizes[] = {1,  2,  3,  4,  7,  8,  9,   15,  16,
                                17, 31, 32, 33, 64, 65, 100, 128, MOST_ARRAY};
    uint64_t elements[MOST_ARRAY];
    unsigned char *at = (unsigned char *)elements;
    int n = sizes[random_below(g->r, sizeof sizes / sizeof *sizes)];
    size_t bytes = (size_t)qn_dtype_bytes(dtype);
    for (int i = 0; i < n; i++) {
        uint64_t bits = random_value(g->r, dtype);
        memcpy(at + (size_t)i * bytes, &bits, bytes);
    }
    g->array[g->n_arrays++] = (drawn_array){qn_const_array(g->b, dtype, n, elements), dtype, n};
}

/* An element of an array, whose index may leave the array or is known not to. */
static qn_val gen_lookup(generator *g, int dtype, qn_val index)
{
    if (g->n_arrays == 0 || (g->n_arrays < MOST_ARRAYS && random_percent(g->r, 60)))
        make_array(g, random_percent(g->r, 70) ? dtype : random_dtype(g->r));
    drawn_array a = g->array[random_below(g->r, g->n_arrays)];
    if (random_percent(g->r, 60))
        index = qn_and(g->b, index, qn_index(g->b, a.n - 1));
    return gen_convert(g, qn_lookup(g->b, a.array, index), a.dtype, dtype);
}

/* ---------------------------------------------------------------- functions */

/* A view that a function may read at any place. */
static int random_readable(const generator *g)
{
    int view = random_below(g->r, g->t->n_views);
    const test_view *v = &g->t->view[view];
    return v->role == ROLE_INPUT && has_plain_elements(v) ? view : -1;
}

/* Scalars, of which no value is known while the function is made, and sometimes a view. */
static void make_params(generator *g, drawn_function *f)
{
    f->n_params = 1 + random_below(g->r, MOST_FUNCTION_PARAMS);
    for (int i = 0; i < f->n_params; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        f->param[i] = random_dtype(g->r);
        gen_pool(g, qn_scalar_param(g->b, name, f->param[i]), f->param[i]);
    }
    g->n_uniform = g->n_pool;
    f->view = random_percent(g->r, 40) ? random_readable(g) : -1;
    if (f->view >= 0) {
        const test_view *v = &g->t->view[f->view];
        g->param[f->view] = qn_view_param(g->b, v->name, v->dtype, v->rank, 0);
    }
}

static bool make_function(generator *kernel, qn_error *err)
{
    static const uint8_t budgets[] = {2, 4, 10, 20, 40};
    drawn_function *f = &kernel->function[kernel->n_functions];
    generator g = {.t = kernel->t, .r = kernel->r, .is_function = true, .repeats = kernel->repeats};
    qn_val results[MOST_FUNCTION_RESULTS];
    char name[16];
    snprintf(name, sizeof name, "f%d", kernel->n_functions);
    g.b = qn_function_new(name, random_percent(g.r, 30) ? QN_CONTRACT : 0);
    memcpy(g.function, kernel->function, sizeof g.function);
    g.n_functions = kernel->n_functions;
    make_params(&g, f);
    g.budget = budgets[random_below(g.r, 5)];
    gen_block(&g, random_below(g.r, 3));
    f->n_results = 1 + random_below(g.r, MOST_FUNCTION_RESULTS);
    for (int i = 0; i < f->n_results; i++) {
        f->result[i] = random_dtype(g.r);
        results[i] = gen_value(&g, f->result[i], 4);
    }
    bool is_made = qn_function_finish(g.b, f->n_results, results, &f->function, err) == QN_OK;
    qn_builder_release(g.b);
    kernel->n_functions += is_made;
    return is_made;
}

bool make_functions(generator *g, qn_error *err)
{
    for (int i = random_percent(g->r, 30) ? 1 + random_below(g->r, MOST_DRAWN_FUNCTIONS) : 0; i > 0;
         i--)
        if (!make_function(g, err))
            return false;
    return true;
}

void release_functions(generator *g)
{
    for (int i = 0; i < g->n_functions; i++)
        qn_function_release(g->function[i].function);
}

/* A call of a function that was made, with `first` as its first argument where that is a value;
 * inert if there is none, or not with its view. */
static qn_val gen_call(generator *g, int dtype, int depth, qn_val first, int first_dtype)
{
    const drawn_function *f =
        g->n_functions > 0 ? &g->function[random_below(g->r, g->n_functions)] : NULL;
    qn_val args[MOST_FUNCTION_PARAMS], results[MOST_FUNCTION_RESULTS];
    if (!f || (f->view >= 0 && !g->param[f->view].id))
        return (qn_val){0};
    for (int i = 0; i < f->n_params; i++)
        args[i] = i == 0 && first.id ? gen_convert(g, first, first_dtype, f->param[0])
                                     : gen_value(g, f->param[i], depth - 1);
    qn_invoke(g->b, f->function, f->n_params, args, f->view >= 0,
              f->view >= 0 ? &g->param[f->view] : NULL, results);
    for (int i = 1; i < f->n_results; i++)
        gen_pool(g, results[i], f->result[i]);
    return gen_convert(g, results[0], f->result[0], dtype);
}

qn_val gen_of_function(generator *g, int dtype, int depth)
{
    int kind = random_below(g->r, 100);
    qn_val v = {0};
    if (kind < 40 && !g->is_uniform_only)
        v = gen_call(g, dtype, depth, v, dtype);
    if (v.id)
        return v;
    return kind < 75 ? gen_math(g, dtype, depth) : gen_lookup(g, dtype, gen_any_index(g));
}

qn_val gen_applied(generator *g, int dtype, qn_val x)
{
    int kind = random_below(g->r, 100);
    qn_val v = kind < 40 ? gen_call(g, dtype, 1, x, dtype) : (qn_val){0};
    if (v.id)
        return v;
    return is_float(dtype) && kind < 80 ? gen_math_of(g, dtype, x)
                                        : gen_lookup(g, dtype, gen_convert(g, x, dtype, QN_I64));
}
