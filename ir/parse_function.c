/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_function.c: functions in the kernel text: their definitions, calls, and libraries, which
 * are texts of functions.
 */
#include "ir/build/builder.h"
#include "ir/function.h"
#include "ir/parse.h"

#include <string.h>

struct qn_library {
    _Atomic int64_t references;
    int32_t n;
    qn_function *function[]; /* [n] */
};

/* ------------------------------------------------------------------------------------- libraries
 */

qn_library *qn_library_retain(const qn_library *l)
{
    qn_library *mine = (qn_library *)(uintptr_t)l; /* immutable but for its count */
    if (mine)
        atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void qn_library_release(qn_library *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < l->n; i++)
        qn_function_release(l->function[i]);
    qn__free(l);
}

int qn_library_n_functions(const qn_library *l)
{
    return l ? l->n : 0;
}

const qn_function *qn_library_function(const qn_library *l, int i)
{
    return l && i >= 0 && i < l->n ? l->function[i] : NULL;
}

/** The function of a list with this name, or NULL. */
static const qn_function *find(qn_function *const *list, int n, const char *name, size_t name_bytes)
{
    for (int i = 0; i < n; i++)
        if (strlen(list[i]->body.name) == name_bytes &&
            memcmp(list[i]->body.name, name, name_bytes) == 0)
            return list[i];
    return NULL;
}

const qn_function *qn_library_find(const qn_library *l, const char *name)
{
    return l && name ? find(l->function, l->n, name, strlen(name)) : NULL;
}

/* ----------------------------------------------------------------------------------- definitions
 */

/** "return" expression ("," expression)* [";"] */
static bool parse_return(parser *p, values *results)
{
    p->statement = p->token;
    results->n = 0;
    return qn__parse_expect_word(p, "return") && qn__parse_expressions(p, results) &&
           (qn__parse_is_symbol(p, '}') || qn__parse_expect_symbol(p, ';'));
}

/** Forgets the parameters and values of the last body. */
static void start_body(parser *p)
{
    qn__parse_end_scope(p, 0);
    p->n_params = p->n_declared = p->n_arrays = 0;
    p->n_heads = 0;
    p->has_begun = p->is_complete = false;
    p->names.n = 0;
}

/** "function" name flag* "{" param* statement* return "}" */
static bool parse_definition(parser *p)
{
    values results;
    qn_function *f = NULL;
    qn_error e = {0};
    qn_token at = p->token;
    start_body(p);
    if (!qn__parse_head(p, qn_function_new) || !qn__parse_parameters(p))
        return false;
    while (!qn__parse_is_word(p, "return"))
        if (!qn__parse_statement(p))
            return false;
    if (!parse_return(p, &results) || !qn__parse_expect_symbol(p, '}'))
        return false;
    qn_status status = qn_function_finish(p->b, results.n, results.v, &f, &e);
    if (status)
        return qn__parse_fail_at(p, at.line, at.column, status, "%s", e.message);
    qn_builder_release(p->b);
    p->b = NULL;
    const char *name = qn_function_name(f);
    if (find(p->function, p->n_functions, name, strlen(name)) ||
        p->n_functions == QN_MAX_FUNCTIONS) {
        bool is_full = p->n_functions == QN_MAX_FUNCTIONS;
        qn__parse_fail_at(
            p, at.line, at.column, is_full ? QN_ERR_LIMIT : QN_ERR_PARSE,
            is_full ? "more than 128 functions" : "function \"%.100s\" is already defined", name);
        qn_function_release(f);
        return false;
    }
    p->function[p->n_functions++] = f;
    return true;
}

bool qn__parse_definitions_of_functions(parser *p)
{
    while (qn__parse_is_word(p, "function"))
        if (!parse_definition(p))
            return false;
    start_body(p);
    return true;
}

/** One function of ir/math, which is put at `out`. Its keyword is what stands before the last "_"
 * of its name. */
static bool parse_math(parser *p, void *out)
{
    if (!parse_definition(p))
        return false;
    qn_function *f = p->function[--p->n_functions];
    f->keyword_bytes = (int)(strrchr(f->body.name, '_') - f->body.name);
    *(qn_function **)out = f;
    return true;
}

qn_status qn__parse_math(const char *text, size_t n, qn_function **out, qn_error *err)
{
    return qn__parse_text(&(reading){.who = "qn_math", .read = parse_math, .is_math = true}, text,
                          n, out, err);
}

/** A whole text of functions, which are put at `out` as a library. */
static bool parse_library(parser *p, void *out)
{
    if (!qn__parse_format(p))
        return false;
    if (!qn__parse_is_word(p, "function"))
        return qn__parse_fail_expected(p, "'function'");
    if (!qn__parse_definitions_of_functions(p))
        return false;
    if (p->token.kind != QN_TOKEN_END)
        return qn__parse_fail_expected(p, "'function' or the end of the text");
    qn_library *l = qn__zalloc(1, sizeof *l + (size_t)p->n_functions * sizeof l->function[0]);
    if (!l)
        return qn__parse_fail_memory(p);
    atomic_init(&l->references, 1);
    l->n = p->n_functions;
    memcpy(l->function, p->function, (size_t)l->n * sizeof l->function[0]);
    p->n_functions = 0; /* the library has them */
    *(qn_library **)out = l;
    return true;
}

qn_status qn_library_parse(const char *text, size_t text_bytes, const qn_library *uses,
                           qn_library **out, qn_error *err)
{
    return qn__parse_text(
        &(reading){.who = "qn_library_parse", .read = parse_library, .uses = uses}, text,
        text_bytes, out, err);
}

/* ----------------------------------------------------------------------------------------- calls
 */

void qn__parse_near_functions(const parser *p, const char *prefix, qn_nearest *near)
{
    for (int i = 0; i < p->n_functions; i++)
        qn__nearest_add(near, prefix, qn_function_name(p->function[i]));
    for (int i = 0; p->uses && i < p->uses->n; i++)
        qn__nearest_add(near, prefix, qn_function_name(p->uses->function[i]));
}

const qn_function *qn__parse_find_function(const parser *p, const char *name, size_t n)
{
    const qn_function *f = find(p->function, p->n_functions, name, n);
    return f || !p->uses ? f : find(p->uses->function, p->uses->n, name, n);
}

/** The function of a call, defined before or in the library. */
static const qn_function *parse_function_name(parser *p)
{
    const char *name = NULL;
    size_t n = 0;
    qn_token at = p->token;
    if (!qn__parse_name(p, &name, &n))
        return NULL;
    const qn_function *f = qn__parse_find_function(p, name, n);
    if (!f && p->is_math && n < 64) {
        char full[64] = "";
        memcpy(full, name, n);
        f = qn__math_function(full, NULL);
    }
    qn_nearest near = {.text = name, .n = n};
    if (!f)
        qn__parse_near_functions(p, "", &near);
    if (!f)
        FAIL(p, &at, "no function \"%.*s\" is defined before%s%s%s", qn__parse_shown_bytes(name, n),
             name, near.best ? ": did you mean \"" : "", near.best ? near.best : "",
             near.best ? "\"?" : "");
    return f;
}

/** A value or literal for a scalar parameter; two of them where a complex number is given by its
 * parts. */
static bool parse_argument(parser *p, const qn_kernel_parameter *param, values *given)
{
    qn_val v[2] = {{0}, {0}};
    bool is_complex = qn__has_parts(param->dtype), is_literal = qn__parse_is_literal(p);
    int part = is_complex ? qn__part_dtype(param->dtype, NULL, 0) : param->dtype;
    if (given->n == QN_MAX_CARRIED)
        return FAIL(p, &p->token, "more than %d values", QN_MAX_CARRIED);
    if (!qn__parse_operand(p, part, &v[0]))
        return false;
    if (is_complex && (is_literal || qn_type_of(p->b, v[0]) != (qn_dtype)param->dtype)) {
        if (!qn__parse_expect_symbol(p, ',') || !qn__parse_operand(p, part, &v[1]))
            return false;
        v[0] = qn_complex(p->b, v[0], v[1]);
    }
    given->v[given->n++] = v[0];
    return true;
}

/** The results as the statement defines them: whole, or complex numbers by their parts. */
static bool define_results(parser *p, const definitions *d, const qn_function *f,
                           const qn_val *results)
{
    if (d->n != f->n_flat)
        return d->n == f->n_results
                   ? qn__parse_define_all(p, d, results)
                   : FAIL(p, &p->statement, "function \"%.100s\" has %d results, not %d",
                          f->body.name, f->n_results, d->n);
    for (int i = 0, at = 0; i < f->n_results; i++) {
        int n_parts = f->shape[i] ? 2 : 1;
        for (int part = 0; part < n_parts; part++) {
            qn_val v = n_parts == 1 ? results[i] : qn__value_part(p->b, results[i], part);
            if (!qn__parse_define(p, &d->d[at++], v))
                return false;
        }
    }
    return true;
}

/** The dtype of a literal that is the first argument: that of the result, or of another argument,
 * if the function takes it; or the only one that it takes. */
static int dtype_of_first(parser *p, const definitions *d, const char *keyword)
{
    qn_lexer ahead = p->lexer;
    int dtype = d->n ? d->d[0].dtype : QN_VOID;
    for (qn_token t = p->token; !qn__math_of(keyword, dtype, NULL); t = qn__lex(&ahead)) {
        if (t.kind == QN_TOKEN_END || t.kind == QN_TOKEN_BAD ||
            (t.kind == QN_TOKEN_SYMBOL && *t.text == ';')) /* a bad token is not passed */
            return qn__math_only_dtype(keyword);
        dtype = qn__parse_type_of(p, &t);
    }
    return dtype;
}

/** operand ("," operand)*: literals are of the dtypes of the parameters, which the first argument
 * decides. */
static bool parse_arguments(parser *p, const definitions *d, const char *keyword, values *args,
                            const qn_function **f)
{
    int first = qn__parse_is_literal(p) ? dtype_of_first(p, d, keyword) : QN_VOID;
    if (!qn__parse_operand(p, first, &args->v[args->n++]))
        return false;
    first = (int)qn_type_of(p->b, args->v[0]);
    *f = qn__math_of(keyword, first, NULL);
    while (qn__parse_accept_symbol(p, ',')) {
        if (args->n == QN_MAX_CARRIED)
            return FAIL(p, &p->token, "more than %d values", QN_MAX_CARRIED);
        bool is_known = *f && args->n < (*f)->body.n_params;
        if (!qn__parse_operand(p, is_known ? qn__math_argument(*f, args->n, first) : QN_VOID,
                               &args->v[args->n]))
            return false;
        args->n++;
    }
    return true;
}

bool qn__parse_named_math(parser *p, const definitions *d, const char *name)
{
    values args = {.n = 0};
    qn_error e = {0};
    qn_val results[QN_MAX_CARRIED] = {{0}};
    const qn_function *f = qn__math_function(name, &e);
    if (!f)
        return qn__parse_fail_at(p, p->statement.line, p->statement.column, (qn_status)e.status,
                                 "%s", e.message);
    for (int q = 0; q < f->body.n_params; q++)
        if ((q > 0 && !qn__parse_expect_symbol(p, ',')) ||
            !parse_argument(p, &f->body.param[q], &args))
            return false;
    qn_invoke(p->b, f, args.n, args.v, 0, NULL, results);
    return qn__parse_check_builder(p) && define_results(p, d, f, results);
}

bool qn__parse_math_call(parser *p, const definitions *d, const char *keyword)
{
    values args = {.n = 0};
    const qn_function *f = NULL;
    qn_val results[QN_MAX_CARRIED] = {{0}};
    if (!parse_arguments(p, d, keyword, &args, &f))
        return false;
    qn_math(p->b, keyword, args.n, args.v, results);
    if (!qn__parse_check_builder(p))
        return false;
    return d->n == f->n_results ? qn__parse_define_all(p, d, results)
                                : FAIL(p, &p->statement, "'%s' has %d result%s, not %d", keyword,
                                       f->n_results, f->n_results == 1 ? "" : "s", d->n);
}

bool qn__parse_call(parser *p, const definitions *d)
{
    const qn_function *f = parse_function_name(p);
    values given = {.n = 0};
    qn_param views[QN_MAX_PARAMS];
    qn_val results[QN_MAX_CARRIED] = {{0}};
    int n_views = 0;
    if (!f || !qn__parse_expect_symbol(p, '('))
        return false;
    for (int q = 0; q < f->body.n_params; q++) {
        const parameter *a = NULL;
        if (q > 0 && !qn__parse_expect_symbol(p, ','))
            return false;
        if (f->body.param[q].rank < 0) {
            if (!parse_argument(p, &f->body.param[q], &given))
                return false;
        } else {
            if (!qn__parse_reference(p, true, &a))
                return false;
            views[n_views++] = a->view;
        }
    }
    if (!qn__parse_expect_symbol(p, ')'))
        return false;
    qn_invoke(p->b, f, given.n, given.v, n_views, views, results);
    return qn__parse_check_builder(p) && define_results(p, d, f, results);
}
