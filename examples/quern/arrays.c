/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c: makes the arguments that the command line names.
 *
 *   array  = FILE.npy | maker ":" dtype "[" extents "]" [":" layout]
 *   maker  = "zeros" | "ones" | "iota" | "random" [":" seed]
 *   layout = "right" | "left" | "stride[" strides "]" | "tile[" extents "]"
 */
#include "npy.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct array_text {
    const char *name, *text; /* for messages */
    const char *maker;
    int64_t seed;
    int dtype, rank;
    int64_t extent[QN_MAX_RANK];
    const char *layout; /* what follows the last ':', or NULL */
} array_text;

static int bad(const array_text *a, const char *what)
{
    return tool_fail(EXIT_USAGE, "%s=%s: %s", a->name, a->text, what);
}

/* Reads "[1,2,3]" at *at; the number of entries, or -1. */
static int read_list(const char **at, int64_t *out)
{
    int n = 0;
    const char *p = *at;
    if (*p++ != '[')
        return -1;
    while (*p != ']') {
        size_t length = strcspn(p, ",]");
        if (n == QN_MAX_RANK || !text_to_int(p, length, &out[n]))
            return -1;
        n++;
        p += length;
        if (*p == ',' && p[1] != ']')
            p++;
        else if (*p != ']')
            return -1;
    }
    *at = p + 1;
    return n;
}

static int read_text(array_text *a)
{
    const char *p = a->text + strlen(a->maker) + 1;
    size_t n = strcspn(p, ":");
    if (strcmp(a->maker, "random") == 0 && text_to_int(p, n, &a->seed)) {
        if (!p[n])
            return bad(a,
                       "after the seed, a dtype and extents are missing, as in random:7:f32[10]");
        p += n + 1;
    }
    char dtype[8] = "";
    n = strcspn(p, "[:");
    if (n < sizeof dtype)
        memcpy(dtype, p, n);
    a->dtype = (int)qn_dtype_of_name(dtype);
    if (a->dtype == QN_VOID)
        return bad(a,
                   "no dtype: expected one of bool, i8, ..., u64, f32, f64, as in zeros:f32[4,5]");
    p += n;
    a->rank = read_list(&p, a->extent);
    if (a->rank < 0)
        return bad(a,
                   "expected up to 16 extents in brackets after the dtype, as in zeros:f32[4,5]");
    if (*p && *p != ':')
        return bad(a, "unexpected characters after the extents");
    a->layout = *p ? p + 1 : NULL;
    for (int d = 0; d < a->rank; d++)
        if (a->extent[d] < 0)
            return bad(a, "an extent is negative");
    return EXIT_OK;
}

static int make_layout(const array_text *a, bool is_left, qn_layout *out)
{
    int64_t list[QN_MAX_RANK];
    qn_error err = {0};
    qn_status status;
    const char *text = a->layout ? a->layout : is_left ? "left" : "right";
    const char *list_at = strchr(text, '[');
    int n = -1;
    if (list_at) {
        n = read_list(&list_at, list);
        if (n != a->rank || *list_at)
            return bad(a, "the list of the layout needs one number for each extent");
    }
    if (strcmp(text, "right") == 0)
        status = qn_layout_right(a->rank, a->extent, out, &err);
    else if (strcmp(text, "left") == 0)
        status = qn_layout_left(a->rank, a->extent, out, &err);
    else if (n >= 0 && strncmp(text, "stride[", 7) == 0)
        status = qn_layout_strided(a->rank, a->extent, list, out, &err);
    else if (n >= 0 && strncmp(text, "tile[", 5) == 0)
        status = qn_layout_tiled(a->rank, a->extent, list, NULL, NULL, out, &err);
    else
        return bad(a, "no such layout: expected right, left, stride[...] or tile[...]");
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s=%s: %s", a->name, a->text, err.message);
    return EXIT_OK;
}

/* Memory that is more than the machine has would be granted and then kill the process. */
static int check_memory(const array_text *a, const qn_layout *l)
{
    int64_t bytes, span = qn_layout_span(l),
                   installed = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (span < 0 || __builtin_mul_overflow(span, qn_dtype_bytes(a->dtype), &bytes))
        return tool_fail(EXIT_ERROR, "%s=%s: the array has more bytes than fit in 64 bits", a->name,
                         a->text);
    if (bytes > installed)
        return tool_fail(EXIT_ERROR,
                         "%s=%s: the array needs %" PRId64 " bytes, this machine has %" PRId64,
                         a->name, a->text, bytes, installed);
    return EXIT_OK;
}

typedef struct filler {
    int dtype;
    int64_t seed;
} filler;

static void fill_one(void *arg, void *element, int64_t n)
{
    (void)n;
    element_set_int(((const filler *)arg)->dtype, element, 1);
}

static void fill_iota(void *arg, void *element, int64_t n)
{
    element_set_int(((const filler *)arg)->dtype, element, n);
}

/* splitmix64 of seed and place: floats in [0, 1), integers 0 to 99, bool 0 or 1. */
static void fill_random(void *arg, void *element, int64_t n)
{
    const filler *f = arg;
    uint64_t z = ((uint64_t)n + 1) * 0x9e3779b97f4a7c15u + (uint64_t)f->seed * 0xd1342543de82ef95u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    if (dtype_is_real(f->dtype))
        element_set_real(f->dtype, element, (double)(z >> 40) * 0x1p-24);
    else
        element_set_int(f->dtype, element, (int64_t)(z >> 40) % (f->dtype == QN_BOOL ? 2 : 100));
}

static const struct {
    const char *name;
    void (*fill)(void *arg, void *element, int64_t n);
} makers[] = {{"zeros", NULL}, {"ones", fill_one}, {"iota", fill_iota}, {"random", fill_random}};
enum { N_MAKERS = sizeof makers / sizeof makers[0] };

static int make(qn_context *c, array_text *a, bool is_left, void (*fill)(void *, void *, int64_t),
                qn_view *out)
{
    qn_layout l = {0};
    qn_error err = {0};
    int status = read_text(a);
    if (status == EXIT_OK)
        status = make_layout(a, is_left, &l);
    if (status == EXIT_OK)
        status = check_memory(a, &l);
    if (status == EXIT_OK && qn_view_alloc(c, a->name, a->dtype, &l, 0, out, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s=%s: %s", a->name, a->text, err.message);
    qn_layout_release(&l);
    filler f = {a->dtype, a->seed};
    if (status == EXIT_OK && fill)
        elements_walk(out, INT64_MAX, fill, &f);
    return status;
}

int array_make(qn_context *c, const char *name, const char *text, bool is_left, qn_view *out)
{
    for (int i = 0; i < N_MAKERS; i++) {
        size_t n = strlen(makers[i].name);
        if (strncmp(text, makers[i].name, n) != 0 || text[n] != ':')
            continue;
        array_text a = {.name = name, .text = text, .maker = makers[i].name};
        return make(c, &a, is_left, makers[i].fill, out);
    }
    char why[NPY_MESSAGE];
    if (npy_read(c, name, text, out, why))
        return EXIT_OK;
    return tool_fail(EXIT_ERROR, "%s: %s", name, why);
}

static int bad_scalar(const char *name, const char *text, int dtype, const char *what)
{
    return tool_fail(EXIT_ERROR, "%s=%s: %s for a scalar of type %s", name, text, what,
                     qn_dtype_name(dtype));
}

static int make_real(const char *name, const char *text, int dtype, qn_arg *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end)
        return bad_scalar(name, text, dtype, "not a number");
    *out = qn_arg_f64(value);
    out->bits = qn_convert_value(dtype, QN_F64, out->bits);
    out->dtype = dtype;
    return EXIT_OK;
}

static int make_unsigned(const char *name, const char *text, int dtype, qn_arg *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    int64_t bits = qn_dtype_bytes(dtype) * 8;
    if (end == text || *end)
        return bad_scalar(name, text, dtype, "not an integer");
    if (errno || text[0] == '-' || (bits < 64 && value >> bits))
        return bad_scalar(name, text, dtype, "out of range");
    *out = qn_arg_int(dtype, (int64_t)value);
    return EXIT_OK;
}

static int make_signed(const char *name, const char *text, int dtype, qn_arg *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    int64_t highest = INT64_MAX >> (64 - qn_dtype_bytes(dtype) * 8);
    if (end == text || *end)
        return bad_scalar(name, text, dtype, "not an integer");
    if (errno || value > highest || value < -highest - 1)
        return bad_scalar(name, text, dtype, "out of range");
    *out = qn_arg_int(dtype, value);
    return EXIT_OK;
}

int scalar_make(const char *name, const char *text, int dtype, qn_arg *out)
{
    bool is_true = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool is_false = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    switch (dtype_class(dtype)) {
    case 'F':
        return make_real(name, text, dtype, out);
    case 'U':
        return make_unsigned(name, text, dtype, out);
    case 'B':
        if (!is_true && !is_false)
            return bad_scalar(name, text, dtype, "neither true nor false");
        *out = qn_arg_int(QN_BOOL, is_true);
        return EXIT_OK;
    default:
        return make_signed(name, text, dtype, out);
    }
}

static void show_element(void *arg, void *element, int64_t n)
{
    char text[64];
    (void)n;
    element_print(*(const int32_t *)arg, element, text, sizeof text);
    printf(" %s", text);
}

void array_show(const char *name, const qn_view *v, int n_values)
{
    char layout[512];
    int32_t dtype = v->dtype;
    qn_layout_print(&v->layout, layout, sizeof layout);
    printf("%s: %s %s =", name, qn_dtype_name(dtype), layout);
    elements_walk(v, n_values, show_element, &dtype);
    puts(qn_layout_size(&v->layout) > n_values ? " ..." : "");
}

/* Where values of JSON go, and what they are. */
typedef struct shown {
    json *j;
    int32_t dtype;
} shown;

static void show_element_json(void *arg, void *element, int64_t n)
{
    char text[64];
    const shown *s = arg;
    (void)n;
    element_print(s->dtype, element, text, sizeof text);
    bool is_number = s->dtype == QN_BOOL || strpbrk(text, "ni") == NULL; /* nan and inf are none */
    if (is_number)
        json_word(s->j, NULL, text);
    else
        json_text(s->j, NULL, strstr(text, "nan") ? "nan" : text);
}

void array_show_json(json *j, const char *name, const qn_view *v, int n_values)
{
    char layout[512];
    shown s = {j, v->dtype};
    qn_layout_print(&v->layout, layout, sizeof layout);
    json_open(j, NULL, '{');
    json_text(j, "name", name);
    json_text(j, "dtype", qn_dtype_name(v->dtype));
    json_open(j, "extents", '[');
    for (int d = 0; d < v->layout.rank; d++)
        json_int(j, NULL, v->layout.dim[d].extent);
    json_close(j);
    json_text(j, "layout", layout);
    json_open(j, "values", '[');
    elements_walk(v, n_values, show_element_json, &s);
    json_close(j);
    json_word(j, "all", qn_layout_size(&v->layout) > n_values ? "false" : "true");
    json_close(j);
}
