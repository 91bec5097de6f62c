/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math.c: the mathematical functions, which are functions of kernel text (ir/math) as a user could
 * write them. Function NAME whose first argument is of dtype T is called NAME_T there. A function
 * is read when it is first called and stays for the life of the process: this table is the one
 * state that contexts and builders share. It only grows, each entry is set once, and whoever loses
 * a race to set it drops its copy.
 */
#include "ir/math.h"
#include "ir/build/builder.h"
#include "ir/function.h"

#include <stdio.h>
#include <string.h>

/* What kernels may name. Other functions of ir/math are called by functions of ir/math alone. */
static const char *const keywords[] = {
#define QN_MATH(name, arguments, results, doc) #name,
#define QN_RANDOM(name, arity, doc) #name,
#define QN_MATH_WORD(name, doc) #name,
#include "quern/math.def"
#undef QN_MATH
};
enum { N_KEYWORDS = sizeof keywords / sizeof keywords[0] };

/** The number of the first definition whose name is not below this one. */
static int lower_bound(const char *name)
{
    int low = 0, high = qn__n_math_definitions;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(qn__math_definitions[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/** Whether the definition of this number, which may be none, has this name. */
static bool is_defined(const char *name, int number)
{
    return number < qn__n_math_definitions && strcmp(qn__math_definitions[number].name, name) == 0;
}

const qn_function *qn__math_function(const char *name, qn_error *err)
{
    int i = lower_bound(name);
    if (!is_defined(name, i)) {
        qn__fail(err, QN_ERR_NOT_FOUND, "no mathematical function is called \"%.60s\"", name);
        return NULL;
    }
    qn_function *_Atomic *slot = &qn__math_table[i];
    qn_function *found = atomic_load_explicit(slot, memory_order_acquire), *made = NULL;
    const qn_math_definition *d = &qn__math_definitions[i];
    if (found ||
        qn__parse_math((const char *)qn__math_text + d->begin, d->end - d->begin, &made, err))
        return found;
    if (atomic_compare_exchange_strong_explicit(slot, &found, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    qn_function_release(made);
    return found;
}

/** Whether the first n bytes of a word are a keyword. */
static bool is_keyword(const char *word, size_t n)
{
    for (int i = 0; i < N_KEYWORDS; i++)
        if (strlen(keywords[i]) == n && memcmp(keywords[i], word, n) == 0)
            return true;
    return false;
}

const char *qn__math_keyword(const char *word)
{
    for (int i = 0; i < N_KEYWORDS; i++)
        if (strcmp(keywords[i], word) == 0)
            return keywords[i];
    return NULL;
}

qn_math_word qn__math_word(const char *word)
{
    const char *end = strrchr(word, '_');
    if (is_keyword(word, strlen(word)))
        return QN_MATH_KEYWORD;
    bool is_name =
        end && is_keyword(word, (size_t)(end - word)) && is_defined(word, lower_bound(word));
    return is_name ? QN_MATH_NAME : QN_MATH_NONE;
}

void qn__near_math(qn_nearest *near)
{
    for (int i = 0; i < N_KEYWORDS; i++)
        qn__nearest_add(near, "", keywords[i]);
}

/** The number of the definition of a keyword for a dtype; qn__n_math_definitions if there is none.
 */
static int find_definition(const char *keyword, int dtype)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", keyword, qn_dtype_name(dtype));
    int i = lower_bound(name);
    return is_defined(name, i) ? i : qn__n_math_definitions;
}

int qn__math_only_dtype(const char *keyword)
{
    int only = QN_VOID;
    for (int dtype = QN_VOID + 1; dtype < QN_N_DTYPES; dtype++)
        if (find_definition(keyword, dtype) < qn__n_math_definitions) {
            if (only != QN_VOID)
                return QN_VOID;
            only = dtype;
        }
    return only;
}

const qn_function *qn__math_of(const char *keyword, int dtype, qn_error *err)
{
    int i = is_keyword(keyword, strlen(keyword)) ? find_definition(keyword, dtype)
                                                 : qn__n_math_definitions;
    if (i == qn__n_math_definitions && qn__is_half(dtype) && is_keyword(keyword, strlen(keyword)))
        i = find_definition(keyword, QN_F32);
    if (i < qn__n_math_definitions)
        return qn__math_function(qn__math_definitions[i].name, err);
    qn__fail(err, QN_ERR_NOT_FOUND, "no mathematical function is called \"%.40s_%s\"", keyword,
             qn_dtype_name(dtype));
    return NULL;
}

/* ---------------------------------------------------------------- calls */

int qn__math_argument(const qn_function *f, int p, int dtype)
{
    int wanted = f->body.param[p].dtype;
    return qn__is_half(dtype) && wanted == QN_F32 ? dtype : wanted;
}

/** The arguments of f in the dtypes in which it computes: halves in f32, but where it has a text
 * for them. False: an error. */
static bool widen(qn_builder *b, const char *who, const char *name, const qn_function *f, int n,
                  const qn_val *args, qn_val *out)
{
    int dtype = (int)qn_type_of(b, args[0]), n_params = f->body.n_params;
    if (n != n_params) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s takes %d arguments, not %d", who, name,
                         n_params, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        int given = (int)qn_type_of(b, args[i]), wanted = qn__math_argument(f, i, dtype);
        if (given != wanted) {
            qn__builder_fail(b, QN_ERR_TYPE, "%s: %s of %s: argument %d is %s, expected %s", who,
                             name, qn_dtype_name(dtype), i, qn_dtype_name(given),
                             qn_dtype_name(wanted));
            return false;
        }
        out[i] = given != f->body.param[i].dtype ? qn_cast(b, QN_F32, args[i]) : args[i];
    }
    return b->error.status == QN_OK;
}

/** qn_math with the name of the public function. */
static void call(qn_builder *b, const char *who, const char *name, int n, const qn_val *args,
                 qn_val *results)
{
    qn_val wide[QN_MAX_CARRIED];
    qn_error e = {0};
    if (results)
        results[0] = (qn_val){0};
    if (!qn__builder_ready(b, who))
        return;
    if (!name || n < 1 || n > QN_MAX_CARRIED || !args || !results) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s", who,
                         !name               ? "name is NULL"
                         : !args || !results ? "arguments or results are NULL"
                                             : "no argument, or too many");
        return;
    }
    for (int i = 0; i < n; i++) {
        uint32_t number;
        if (!qn__use(b, who, "argument", args[i], &number))
            return;
    }
    int dtype = (int)qn_type_of(b, args[0]);
    const qn_function *f = qn__math_of(name, dtype, &e);
    if (!f) {
        qn__builder_fail(b, (qn_status)e.status, "%s: %s", who, e.message);
        return;
    }
    memset(results, 0, (size_t)f->n_results * sizeof *results);
    if (!widen(b, who, name, f, n, args, wide))
        return;
    qn__invoke(b, who, f, n, wide, 0, NULL, results);
    for (int i = 0; qn__is_half(dtype) && i < f->n_results; i++)
        if (qn_type_of(b, results[i]) == QN_F32)
            results[i] = qn_cast(b, dtype, results[i]);
}

qn_val qn__math(qn_builder *b, const char *who, const char *name, int n, const qn_val *args)
{
    qn_val result = {0};
    call(b, who, name, n, args, &result);
    return result;
}

void qn_math(qn_builder *b, const char *name, int n, const qn_val *args, qn_val *results)
{
    call(b, "qn_math", name, n, args, results);
}

#define LIST_1 x
#define LIST_2 x, y
#define LIST_3 x, y, z
#define LIST_T LIST_1
#define LIST_TT LIST_2
#define LIST_TI LIST_2
#define QN_MATH_ARGS_1(b) QN_ARGS1(b)
#define QN_MATH_ARGS_2(b) QN_ARGS2(b)
#define QN_MATH_ARGS_3(b) QN_ARGS3(b)
#define DEFINE_T(name, arguments)                                                                  \
    qn_val qn_##name(QN_MATH_ARGS_##arguments(b))                                                  \
    {                                                                                              \
        const qn_val args[] = {LIST_##arguments};                                                  \
        qn_val result;                                                                             \
        call(b, "qn_" #name, #name, sizeof args / sizeof args[0], args, &result);                  \
        return result;                                                                             \
    }
#define DEFINE_B(name, arguments) DEFINE_T(name, arguments)
#define DEFINE_TT(name, arguments)                                                                 \
    void qn_##name(QN_MATH_ARGS_##arguments(b), qn_val results[2])                                 \
    {                                                                                              \
        const qn_val args[] = {LIST_##arguments};                                                  \
        if (results)                                                                               \
            results[1] = (qn_val){0};                                                              \
        call(b, "qn_" #name, #name, sizeof args / sizeof args[0], args, results);                  \
    }
#define DEFINE_TI(name, arguments) DEFINE_TT(name, arguments)

#define QN_MATH(name, arguments, results, doc) DEFINE_##results(name, arguments)
#define QN_RANDOM(name, arity, doc) DEFINE_T(name, arity)
#include "quern/math.def"
#undef QN_MATH
