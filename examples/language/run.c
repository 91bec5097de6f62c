/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c: what all chapters with kernels share: the context, views of the language's arrays, the ops
 * of the language in those of Quern, and launches whose failures become errors in the source of the
 * language.
 */
#include "language.h"
#include "quern/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Keeps an error of the library; false. A message that ends with a place in the source belongs
 * there. */
/* [quern-error] */
static bool fail_with(session *s, place at, const qn_error *err)
{
    char message[QN_MESSAGE_BYTES], *end = NULL;
    memcpy(message, err->message, sizeof message);
    for (char *found = message; (found = strstr(found, "; at ")); found++)
        end = found;
    if (end) {
        const char *numbers = end + strlen("; at ") + strlen(s->file);
        sscanf(numbers, ":%d:%d", &at.line, &at.column);
        *end = 0;
    }
    return fail(s, at, "%s", message);
}
/* [end] */

bool options_set(session *s, const char *text, int compile)
{
    qn_options *options;
    qn_error err = {0};
    if (qn_options_parse(text, NULL, &options, &err) != QN_OK)
        return fail_with(s, (place){s->line, 1}, &err);
    if (options->compile == QN_COMPILE_DEFAULT)
        options->compile = compile;
    options->cancel = s->cancel;
    qn_options_release(s->options);
    s->options = options;
    return true;
}

bool context_open(session *s, const char *disk_cache)
{
    qn_error err = {0};
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = disk_cache};
    if (qn_context_new(&o, &s->context, &err) != QN_OK)
        return fail_with(s, (place){0}, &err);
    return options_set(s, "", QN_COMPILE_WAIT);
}

/* [array-view] */
bool array_view(session *s, const value *array, int rank, const int64_t *extents, qn_view *out)
{
    int64_t strides[MAX_RANK];
    qn_layout layout;
    qn_error err = {0};
    strides_in(array, rank, strides);
    if (qn_layout_strided(rank, extents, strides, &layout, &err) != QN_OK ||
        qn_view_wrap(array->name, array->data, QN_F64, &layout, 0, out, &err) != QN_OK)
        return fail_with(s, array->at, &err);
    return true;
}
/* [end] */

/* ---------------------------------------------------------------- building */

qn_param operand_param(qn_builder *b, const char *kind, int i, int rank)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, i + 1);
    return qn_view_param(b, name, QN_F64, rank, QN_READ_ONLY);
}

/* [build-op] */
qn_val build_op(qn_builder *b, op_id op, int n, qn_val *args)
{
    enum { SAME, COMPARE, CHOOSE, MATH };
    static const struct {
        int class;
        const char *name;
    } ops[] = {
#define X(NAME, text, n, class, quern, ...) {class, quern},
        OPS(X)
#undef X
    };
    qn_val result = {0};
    if (ops[op].class == MATH) {
        qn_math(b, ops[op].name, n, args, &result);
        return result;
    }
    if (ops[op].class == CHOOSE)
        args[0] = qn_ne(b, args[0], qn_const_float(b, QN_F64, 0));
    result = qn_op(b, qn_op_of_name(ops[op].name), n, args);
    return ops[op].class == COMPARE ? qn_cast(b, QN_F64, result) : result;
}
/* [end] */

int combination(int reduction)
{
    static const qn_combine combinations[] = {
#define X(NAME, text, empty, quern, ...) quern,
        REDUCTIONS(X)
#undef X
    };
    return (int)combinations[reduction];
}

qn_kernel *finish(session *s, qn_builder *b, place at)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (!b)
        fail(s, at, "out of memory");
    else if (qn_finish(b, &k, &err) != QN_OK)
        fail_with(s, at, &err);
    qn_builder_release(b);
    return k;
}

/* ---------------------------------------------------------------- kernels by keys */

typedef struct kernel_entry {
    struct kernel_entry *next;
    qn_kernel *kernel;
    int n_key;
    int32_t key[];
} kernel_entry;

static unsigned bucket_of(int n_key, const int32_t *key)
{
    uint32_t hash = 2166136261u; /* FNV-1a, by words */
    for (int i = 0; i < n_key; i++)
        hash = (hash ^ (uint32_t)key[i]) * 16777619u;
    return (hash ^ hash >> 16) % N_BUCKETS;
}

const qn_kernel *kernel_find(const session *s, int n_key, const int32_t *key)
{
    for (const kernel_entry *e = s->kernels[bucket_of(n_key, key)]; e; e = e->next)
        if (e->n_key == n_key && memcmp(e->key, key, (size_t)n_key * sizeof *key) == 0)
            return e->kernel;
    return NULL;
}

static void forget_kernels(session *s)
{
    for (int i = 0; i < N_BUCKETS; i++)
        for (kernel_entry *e = s->kernels[i], *next; e; e = next) {
            next = e->next;
            qn_kernel_release(e->kernel);
            free(e);
        }
    memset(s->kernels, 0, sizeof s->kernels);
    s->n_kernels = 0;
}

const qn_kernel *kernel_keep(session *s, int n_key, const int32_t *key, qn_kernel *k)
{
    if (!k)
        return NULL;
    if (s->n_kernels == MAX_KERNELS)
        forget_kernels(s);
    kernel_entry *e = malloc(sizeof *e + (size_t)n_key * sizeof *key);
    if (!e) {
        qn_kernel_release(k);
        fail(s, (place){s->line, 1}, "out of memory");
        return NULL;
    }
    kernel_entry **bucket = &s->kernels[bucket_of(n_key, key)];
    *e = (kernel_entry){.next = *bucket, .kernel = k, .n_key = n_key};
    memcpy(e->key, key, (size_t)n_key * sizeof *key);
    s->n_kernels++;
    *bucket = e;
    return k;
}

void session_close_kernels(session *s)
{
    forget_kernels(s);
    qn_options_release(s->options);
    qn_context_release(s->context);
}

/* ---------------------------------------------------------------- launching */

static void print_text(char *text, size_t bytes)
{
    while (bytes > 0 && text[bytes - 1] == '\n')
        text[--bytes] = 0;
    printf("%s\n", text);
}

static void show_kernel(const qn_kernel *k)
{
    const size_t n = qn_kernel_print(k, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        qn_kernel_print(k, text, n + 1);
        print_text(text, n);
    }
    free(text);
}

static void show_plan(session *s, const qn_kernel *k, int n, const qn_arg *args)
{
    qn_code *code = NULL;
    qn_error err = {0};
    if (qn_specialize(s->context, k, n, args, s->options, &code, &err) != QN_OK) {
        printf("%s\n", err.message);
        return;
    }
    const size_t bytes = qn_code_text(code, QN_DUMP_PLAN, NULL, 0);
    char *text = malloc(bytes + 1);
    if (text && bytes) {
        qn_code_text(code, QN_DUMP_PLAN, text, bytes + 1);
        print_text(text, bytes);
    }
    free(text);
    qn_code_release(code);
}

static void show_why(session *s, const qn_kernel *k, int n, const qn_arg *args)
{
    char text[2000];
    size_t needed;
    qn_error err = {0};
    if (qn_explain(s->context, k, n, args, s->options, text, sizeof text, &needed, &err) == QN_OK)
        print_text(text, strlen(text));
}

bool launch(session *s, const qn_kernel *k, int n, const qn_arg *args, place at)
{
    qn_error err = {0};
    if (s->shows & SHOW_KERNEL)
        show_kernel(k);
    if (s->shows & SHOW_PLAN)
        show_plan(s, k, n, args);
    if (s->shows & SHOW_WHY)
        show_why(s, k, n, args);
    s->n_launches++;
    return qn_launch(s->context, k, n, args, s->options, &err) == QN_OK || fail_with(s, at, &err);
}
