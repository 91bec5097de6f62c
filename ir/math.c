/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math.c: the mathematical functions, which are functions of kernel text (ir/math) as a user could write them. Function
 * NAME of dtype T is called NAME_T there. A function is read when it is first called and stays for the life of the process:
 * this table is the one state that contexts and builders share. It only grows, each entry is set once, and whoever loses a
 * race to set it drops its copy.
 */
#include "ir/builder.h"
#include "ir/function.h"

#include <stdio.h>
#include <string.h>

extern const unsigned char qn__math_text[];
extern const size_t qn__math_bytes;

enum { MOST_FUNCTIONS = 512 };
static qn_function *_Atomic table[MOST_FUNCTIONS]; /* in the order of the text */

static const char begin_of_function[] = "\nfunction \"";
enum { BEGIN_BYTES = sizeof begin_of_function - 1 };

/** The first definition at or behind `at`: where its name is; NULL: there is none. */
static const char *next_definition(const char *at)
{
    const char *end = (const char *)qn__math_text + qn__math_bytes;
    for (; at + BEGIN_BYTES < end; at++)
        if (memcmp(at, begin_of_function, BEGIN_BYTES) == 0)
            return at + BEGIN_BYTES;
    return NULL;
}

/** The definition of a function: *number counts those before it. NULL: there is none. */
static const char *find_definition(const char *name, int *number)
{
    size_t n = strlen(name);
    *number = 0;
    for (const char *at = next_definition((const char *)qn__math_text); at; at = next_definition(at), ++*number)
        if (strncmp(at, name, n) == 0 && at[n] == '"')
            return at;
    return NULL;
}

/** Reads a definition, which ends where the next one begins. */
static qn_status read_function(const char *definition, const char *keyword, qn_function **out, qn_error *err)
{
    const char *begin = definition - BEGIN_BYTES, *next = next_definition(definition);
    const char *end = next ? next - BEGIN_BYTES : (const char *)qn__math_text + qn__math_bytes;
    return qn__parse_math(begin, (size_t)(end - begin), keyword, out, err);
}

const qn_function *qn__math_function(const char *name, qn_error *err)
{
    char keyword[24];
    const char *dtype = strrchr(name, '_');
    int number;
    snprintf(keyword, sizeof keyword, "%.*s", dtype ? (int)(dtype - name) : (int)sizeof keyword - 1, name);
    const char *definition = find_definition(name, &number);
    if (!definition || number >= MOST_FUNCTIONS) {
        qn__fail(err, QN_ERR_NOT_FOUND, "no mathematical function is called \"%.60s\"", name);
        return NULL;
    }
    qn_function *found = atomic_load_explicit(&table[number], memory_order_acquire), *made = NULL;
    if (found || read_function(definition, keyword, &made, err))
        return found;
    if (atomic_compare_exchange_strong_explicit(&table[number], &found, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    qn_function_release(made);
    return found;
}

/** Whether "_DTYPE" and a quote stand here. */
static bool is_suffix(const char *at)
{
    char dtype[8];
    size_t n = strcspn(at, "\"");
    if (*at != '_' || n > sizeof dtype)
        return false;
    memcpy(dtype, at + 1, n - 1);
    dtype[n - 1] = 0;
    return qn_dtype_of_name(dtype) != QN_VOID;
}

bool qn__is_math(const char *name)
{
    size_t n = strlen(name);
    for (const char *at = next_definition((const char *)qn__math_text); n && at; at = next_definition(at))
        if (strncmp(at, name, n) == 0 && is_suffix(at + n))
            return true;
    return false;
}

/* ---------------------------------------------------------------- calls */

/** The arguments in the dtype in which a function computes: halves in f32, but where it has a text for them. False after an error. */
static bool widen(qn_builder *b, const char *name, int n, const qn_val *args, qn_val *out)
{
    char full[64];
    int number;
    snprintf(full, sizeof full, "%.40s_%s", name, qn_dtype_name(qn_type_of(b, args[0])));
    bool is_own = find_definition(full, &number) != NULL;
    for (int i = 0; i < n; i++)
        out[i] = !is_own && qn__is_half(qn_type_of(b, args[i])) ? qn_cast(b, QN_F32, args[i]) : args[i];
    return b->error.status == QN_OK;
}

void qn_math(qn_builder *b, const char *name, int n, const qn_val *args, qn_val *results)
{
    const char *who = "qn_math";
    char full[64];
    qn_val wide[QN_MAX_CARRIED];
    qn_error e = {0};
    if (!qn__builder_ready(b, who))
        return;
    if (!name || n < 1 || n > QN_MAX_CARRIED || !args || !results) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s", who,
                         !name ? "name is NULL" : !args || !results ? "arguments or results are NULL" : "no argument, or too many");
        return;
    }
    for (int i = 0; i < n; i++) {
        uint32_t number;
        if (!qn__use(b, who, "argument", args[i], &number))
            return;
    }
    if (!widen(b, name, n, args, wide))
        return;
    snprintf(full, sizeof full, "%.40s_%s", name, qn_dtype_name(qn_type_of(b, wide[0])));
    const qn_function *f = qn__math_function(full, &e);
    if (!f) {
        qn__builder_fail(b, (qn_status)e.status, "%s: %s", who, e.message);
        return;
    }
    qn__invoke(b, who, f, n, wide, 0, NULL, results);
    int dtype = qn_type_of(b, args[0]);
    for (int i = 0; qn__is_half(dtype) && i < f->n_results; i++)
        if (qn_type_of(b, results[i]) == QN_F32)
            results[i] = qn_cast(b, dtype, results[i]);
}

#define ARRAY1                                                                                     \
    {                                                                                              \
        x                                                                                          \
    }
#define ARRAY2                                                                                     \
    {                                                                                              \
        x, y                                                                                       \
    }
#define ARRAY3                                                                                     \
    {                                                                                              \
        x, y, z                                                                                    \
    }

#define QN_MATH(name, arity, doc)                                                                  \
    qn_val qn_##name(QN_ARGS##arity(b))                                                            \
    {                                                                                              \
        const qn_val args[] = ARRAY##arity;                                                        \
        qn_val result = {0};                                                                       \
        qn_math(b, #name, arity, args, &result);                                                   \
        return result;                                                                             \
    }
#define QN_RANDOM QN_MATH
#include "quern/math.def"
#undef QN_MATH
