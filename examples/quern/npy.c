/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c: the .npy format: "\x93NUMPY", two version bytes, the header's length (2 bytes in version
 * 1, else 4), a Python dictionary with 'descr', 'fortran_order' and 'shape', then the elements.
 */
#include "npy.h"

#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_LIMIT = 1 << 20 };

/** The dtypes that have a type string, by the letter of their kind. */
static const struct {
    const char *descr;
    int dtype;
} descr_table[] = {
#define DESCR_(letter, bytes) (bytes) == 1 ? "|" letter "1" : "<" letter #bytes
#define DESCR_B(bytes) DESCR_("b", bytes)
#define DESCR_S(bytes) DESCR_("i", bytes)
#define DESCR_U(bytes) DESCR_("u", bytes)
#define DESCR_F(bytes) DESCR_("f", bytes)
#define DESCR_C(bytes) NULL
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, format, ...)             \
    {format[0] ? DESCR_##cls(bytes) : NULL, number},
#include "quern/dtypes.def"
#undef QN_DTYPE
};
enum { N_DESCR = sizeof descr_table / sizeof descr_table[0] };

typedef struct npy_header {
    int dtype, rank;
    bool is_fortran;
    int64_t extent[QN_MAX_RANK];
} npy_header;

__attribute__((format(printf, 3, 4))) static bool fail(char *why, const char *path,
                                                       const char *format, ...)
{
    int n = snprintf(why, NPY_MESSAGE, "%.200s: ", path);
    va_list ap;
    va_start(ap, format);
    vsnprintf(why + n, NPY_MESSAGE - (size_t)n, format, ap);
    va_end(ap);
    return false;
}

/* ---------------------------------------------------------------- header text */

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(cursor *c, char *out, size_t n)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    size_t used = 0;
    while (c->at < c->end && *c->at != quote) {
        if (used + 1 == n)
            return false;
        out[used++] = *c->at++;
    }
    out[used] = 0;
    return take(c, quote);
}

static bool take_word(cursor *c, const char *word)
{
    skip_space(c);
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool take_extent(cursor *c, int64_t *out)
{
    skip_space(c);
    const char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    bool is_number = text_to_int(start, (size_t)(c->at - start), out);
    if (is_number && c->at < c->end && *c->at == 'L') /* Python 2 */
        c->at++;
    return is_number;
}

static bool read_descr(cursor *c, const char *path, npy_header *h, char *why)
{
    char descr[64];
    skip_space(c);
    if (c->at < c->end && *c->at == '[')
        return fail(why, path, "records are not supported, only one plain element type");
    if (!take_string(c, descr, sizeof descr))
        return fail(why, path, "damaged header: 'descr' is no string");
    for (int i = 0; i < N_DESCR; i++) {
        const char *known = descr_table[i].descr;
        bool is_byte = known && known[0] == '|'; /* whose order of bytes may be written, too */
        if (known && (descr[0] == known[0] || (is_byte && descr[0] == '<')) &&
            strcmp(descr + 1, known + 1) == 0)
            h->dtype = descr_table[i].dtype;
    }
    if (h->dtype != QN_VOID)
        return true;
    if (descr[0] == '>')
        return fail(why, path, "element type '%s' is big endian, only little endian is supported",
                    descr);
    if (strchr(descr, 'O'))
        return fail(why, path, "element type '%s' is Python objects, which are not supported",
                    descr);
    return fail(why, path, "element type '%s' is not supported", descr);
}

static bool read_shape(cursor *c, const char *path, npy_header *h, char *why)
{
    if (!take(c, '('))
        return fail(why, path, "damaged header: 'shape' is no tuple");
    while (!take(c, ')')) {
        if (h->rank == QN_MAX_RANK)
            return fail(why, path, "rank is above %d", QN_MAX_RANK);
        if (!take_extent(c, &h->extent[h->rank]))
            return fail(why, path, "damaged header: extent %d of 'shape' is no number of 64 bits",
                        h->rank);
        h->rank++;
        if (!take(c, ',') && !(c->at < c->end && *c->at == ')'))
            return fail(why, path, "damaged header: 'shape' does not end");
    }
    return true;
}

static bool read_order(cursor *c, const char *path, npy_header *h, char *why)
{
    h->is_fortran = take_word(c, "True");
    if (h->is_fortran || take_word(c, "False"))
        return true;
    return fail(why, path, "damaged header: 'fortran_order' is neither True nor False");
}

static bool parse_header(const char *text, size_t n, const char *path, npy_header *h, char *why)
{
    cursor c = {text, text + n};
    unsigned seen = 0;
    if (!take(&c, '{'))
        return fail(why, path, "damaged header: no dictionary");
    while (!take(&c, '}')) {
        char key[32];
        if (!take_string(&c, key, sizeof key) || !take(&c, ':'))
            return fail(why, path, "damaged header: no key where one should be");
        unsigned which = strcmp(key, "descr") == 0           ? 1
                         : strcmp(key, "fortran_order") == 0 ? 2
                         : strcmp(key, "shape") == 0         ? 4
                                                             : 0;
        if (which == 0 || (seen & which))
            return fail(why, path, "damaged header: unexpected key '%s'", key);
        seen |= which;
        bool is_good = which == 1   ? read_descr(&c, path, h, why)
                       : which == 2 ? read_order(&c, path, h, why)
                                    : read_shape(&c, path, h, why);
        if (!is_good)
            return false;
        if (!take(&c, ',') && !(c.at < c.end && *c.at == '}'))
            return fail(why, path, "damaged header: the dictionary does not end");
    }
    if (seen != 7)
        return fail(why, path, "damaged header: it lacks %s",
                    !(seen & 1)   ? "'descr'"
                    : !(seen & 2) ? "'fortran_order'"
                                  : "'shape'");
    return true;
}

/* ---------------------------------------------------------------- reading */

/* Reads everything before the elements. */
static bool read_header(FILE *f, const char *path, npy_header *h, char *why)
{
    unsigned char head[8], length[4] = {0};
    if (fread(head, 1, sizeof head, f) != sizeof head || memcmp(head, "\x93NUMPY", 6) != 0)
        return fail(why, path, "not a .npy file (it does not start with \\x93NUMPY)");
    if (head[6] < 1 || head[6] > 3)
        return fail(why, path, "version %d.%d of .npy is not supported, only 1 to 3", head[6],
                    head[7]);
    size_t length_bytes = head[6] == 1 ? 2 : 4;
    if (fread(length, 1, length_bytes, f) != length_bytes)
        return fail(why, path, "truncated: it ends in the header");
    uint32_t n = (uint32_t)length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 |
                 (uint32_t)length[3] << 24;
    if (n > HEADER_LIMIT)
        return fail(why, path, "damaged header: %" PRIu32 " bytes are announced, the limit is %d",
                    n, HEADER_LIMIT);
    char *text = malloc((size_t)n + 1);
    if (!text)
        return fail(why, path, "out of memory");
    bool is_good = fread(text, 1, n, f) == n || fail(why, path, "truncated: it ends in the header");
    is_good = is_good && parse_header(text, n, path, h, why);
    free(text);
    return is_good;
}

/* Compares the shape with what is left of the file before anything is allocated. */
static bool check_size(FILE *f, const char *path, const npy_header *h, int64_t *bytes, char *why)
{
    *bytes = qn_dtype_bytes(h->dtype);
    bool is_empty = false, is_huge = false;
    for (int d = 0; d < h->rank; d++) {
        is_empty = is_empty || h->extent[d] == 0;
        is_huge = __builtin_mul_overflow(*bytes, h->extent[d], bytes) || is_huge;
    }
    if (is_empty)
        *bytes = 0;
    else if (is_huge)
        return fail(why, path, "the shape has more bytes than fit in 64 bits");
    long here = ftell(f);
    if (here < 0 || fseek(f, 0, SEEK_END) != 0)
        return fail(why, path, "not a regular file: %s", strerror(errno));
    long end = ftell(f);
    if (end < 0 || fseek(f, here, SEEK_SET) != 0)
        return fail(why, path, "not a regular file: %s", strerror(errno));
    if (end - here < *bytes)
        return fail(why, path, "truncated: the shape needs %" PRId64 " bytes, the file has %ld",
                    *bytes, end - here);
    return true;
}

static bool read_elements(FILE *f, qn_context *c, const char *label, const char *path,
                          const npy_header *h, qn_view *out, char *why)
{
    int64_t bytes;
    qn_layout layout;
    qn_error err = {0};
    if (!check_size(f, path, h, &bytes, why))
        return false;
    qn_status status = h->is_fortran ? qn_layout_left(h->rank, h->extent, &layout, &err)
                                     : qn_layout_right(h->rank, h->extent, &layout, &err);
    if (status != QN_OK)
        return fail(why, path, "%s", err.message);
    if (qn_view_alloc(c, label, h->dtype, &layout, QN_UNINITIALISED, out, &err) != QN_OK)
        return fail(why, path, "%s", err.message);
    if (bytes > 0 && fread(out->data, 1, (size_t)bytes, f) != (size_t)bytes) {
        qn_view_release(out);
        return fail(why, path, "cannot be read: %s", ferror(f) ? strerror(errno) : "truncated");
    }
    return true;
}

bool npy_read(qn_context *c, const char *label, const char *path, qn_view *out,
              char why[NPY_MESSAGE])
{
    struct stat info;
    FILE *f = fopen(path, "rb");
    if (!f)
        return fail(why, path, "cannot be opened: %s", strerror(errno));
    npy_header h = {0};
    bool is_good = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    if (!is_good)
        fail(why, path, "not a regular file");
    is_good = is_good && read_header(f, path, &h, why);
    is_good = is_good && read_elements(f, c, label, path, &h, out, why);
    fclose(f);
    return is_good;
}

/* ---------------------------------------------------------------- writing */

/* Whether the elements lie densely in Right (or Left) order. */
static bool is_dense(const qn_view *v, bool is_left)
{
    if (v->layout.digits)
        return false;
    int64_t stride = 1;
    int rank = v->layout.rank;
    for (int p = 0; p < rank; p++) {
        const qn_dim *dim = &v->layout.dim[is_left ? p : rank - 1 - p];
        if (dim->extent != 1 && dim->stride != stride)
            return false;
        stride *= dim->extent;
    }
    return true;
}

static const char *descr_of(int dtype)
{
    for (int i = 0; i < N_DESCR; i++)
        if (descr_table[i].dtype == dtype && descr_table[i].descr)
            return descr_table[i].descr;
    return "?";
}

static void write_header(FILE *f, const qn_view *v, bool is_fortran)
{
    char text[1024];
    size_t n =
        (size_t)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                         descr_of(v->dtype), is_fortran ? "True" : "False");
    for (int d = 0; d < v->layout.rank; d++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%" PRId64 "%s", v->layout.dim[d].extent,
                              d + 1 < v->layout.rank ? ", "
                              : v->layout.rank == 1  ? ","
                                                     : "");
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    while ((10 + n + 1) % 64 != 0) /* elements start at a multiple of 64 */
        text[n++] = ' ';
    text[n++] = '\n';
    unsigned char head[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
    fwrite(head, 1, sizeof head, f);
    fwrite(text, 1, n, f);
}

typedef struct sink {
    FILE *f;
    size_t bytes;
} sink;

static void write_element(void *arg, void *element, int64_t n)
{
    (void)n;
    const sink *s = arg;
    fwrite(element, 1, s->bytes, s->f);
}

static void write_elements(FILE *f, const qn_view *v)
{
    sink s = {f, (size_t)qn_dtype_bytes(v->dtype)};
    size_t size = (size_t)qn_layout_size(&v->layout);
    if (size > 0 && (is_dense(v, false) || is_dense(v, true)))
        fwrite(v->data, s.bytes, size, f);
    else
        elements_walk(v, INT64_MAX, write_element, &s);
}

static void write_array(const void *arg, FILE *f)
{
    const qn_view *v = arg;
    write_header(f, v, is_dense(v, true) && !is_dense(v, false));
    write_elements(f, v);
}

bool npy_write(const qn_view *v, const char *path, char why[NPY_MESSAGE])
{
    return file_write(path, write_array, v) ||
           fail(why, path, "cannot be written: %s", strerror(errno));
}
