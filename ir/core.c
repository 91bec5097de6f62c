/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c: what every other file rests on: errors, memory, growing texts, hashing, and the tables of
 * statuses, dtypes and spaces. All names and numbers come from the X lists of quern.h and from
 * quern/dtypes.def. No state, but the counter of builds with QN_FAULTS that makes an allocation
 * fail for tests.
 */
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "IEEE sizes");

const int32_t qn__never = 0;

uint32_t qn_version(void)
{
    return QN_VERSION_HEX;
}

/* ---------------------------------------------------------------- statuses */

const char *qn_status_name(int status)
{
    switch (status) {
#define QN_X(name, number, text)                                                                   \
    case number:                                                                                   \
        return "QN_" #name;
        QN_STATUS_LIST(QN_X)
#undef QN_X
    default:
        return "QN_ERR_UNKNOWN";
    }
}

const char *qn_status_text(int status)
{
    switch (status) {
#define QN_X(name, number, text)                                                                   \
    case number:                                                                                   \
        return text;
        QN_STATUS_LIST(QN_X)
#undef QN_X
    default:
        return "unknown status";
    }
}

/** Fills *err. The message stays one line, whatever names it shows, and may quote the message that
 * stands in *err. */
static void set_error(qn_error *err, qn_status status, int line, const char *format, va_list ap)
{
    char message[QN_MESSAGE_BYTES] = "";
    qn__vformat(message, sizeof message, format, ap);
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    memcpy(err->message, message, sizeof message);
    err->status = (int32_t)status;
    err->line = line;
}

qn_status qn__fail(qn_error *err, qn_status status, const char *format, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, format);
        set_error(err, status, 0, format, ap);
        va_end(ap);
    }
    return status;
}

qn_status qn__fail_as(const char *who, qn_error *err, qn_status status)
{
    const char *rest = status && err ? strchr(err->message, ':') : NULL;
    return rest ? qn__fail(err, status, "%s%s", who, rest) : status;
}

qn_status qn__fail_line(qn_error *err, qn_status status, int line, const char *format, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, format);
        set_error(err, status, line, format, ap);
        va_end(ap);
    }
    return status;
}

/* ---------------------------------------------------------------- memory */

#ifdef QN_FAULTS
/* 0: off; n > 0: the n-th allocation from now fails; -1: all fail. */
static _Atomic int64_t fault_countdown;
static _Atomic bool fault_stays;

void qn__fail_allocation(int64_t n, bool for_ever)
{
    atomic_store(&fault_stays, for_ever);
    atomic_store(&fault_countdown, n);
}

static bool must_fail(void)
{
    int64_t n = atomic_load(&fault_countdown);
    while (n > 0) {
        int64_t next = n > 1 ? n - 1 : atomic_load(&fault_stays) ? -1 : 0;
        if (atomic_compare_exchange_weak(&fault_countdown, &n, next))
            return n == 1;
    }
    return n < 0;
}
#else
void qn__fail_allocation(int64_t n, bool for_ever)
{
    (void)n;
    (void)for_ever;
}

static inline bool must_fail(void)
{
    return false;
}
#endif

void *qn__alloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *qn__zalloc(size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    return must_fail() ? NULL : calloc(count ? count : 1, bytes ? bytes : 1);
}

void *qn__realloc(void *p, size_t bytes)
{
    return must_fail() ? NULL : realloc(p, bytes ? bytes : 1);
}

void qn__free(void *p)
{
    free(p);
}

void *qn__copy_array(const void *from, size_t n, size_t bytes)
{
    void *to = qn__zalloc(n + 1, bytes);
    if (to && n)
        memcpy(to, from, n * bytes);
    return to;
}

char *qn__strdup(const char *s)
{
    if (!s)
        return NULL;
    size_t bytes = strlen(s) + 1;
    char *copy = qn__alloc(bytes);
    if (copy)
        memcpy(copy, s, bytes);
    return copy;
}

/* ---------------------------------------------------------------- growing texts */

/** Makes room for n more bytes and a zero. */
static bool text_reserve(qn_text *t, size_t n)
{
    if (t->failed)
        return false;
    if (n >= SIZE_MAX / 2 - t->n) {
        t->failed = true;
        return false;
    }
    size_t needed = t->n + n + 1;
    if (needed <= t->capacity)
        return true;
    size_t capacity = t->capacity ? t->capacity : 128;
    while (capacity < needed)
        capacity *= 2;
    char *data = qn__realloc(t->data, capacity);
    if (!data) {
        t->failed = true;
        return false;
    }
    t->data = data;
    t->capacity = capacity;
    return true;
}

void qn__text_add(qn_text *t, const char *format, ...)
{
    char small[256];
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = qn__vformat(small, sizeof small, format, ap);
    va_end(ap);
    if (n < 0)
        t->failed = true;
    else if ((size_t)n < sizeof small)
        qn__text_bytes(t, small, (size_t)n);
    else if (text_reserve(t, (size_t)n)) {
        qn__vformat(t->data + t->n, (size_t)n + 1, format, again);
        t->n += (size_t)n;
    }
    va_end(again);
}

void qn__text_bytes(qn_text *t, const void *p, size_t n)
{
    if (!text_reserve(t, n))
        return;
    if (n)
        memcpy(t->data + t->n, p, n);
    t->n += n;
    t->data[t->n] = '\0';
}

void qn__text_release(qn_text *t)
{
    if (!t)
        return;
    qn__free(t->data);
    *t = (qn_text){0};
}

size_t qn__text_out(const qn_text *t, char *buffer, size_t buffer_bytes)
{
    if (buffer && buffer_bytes) {
        size_t n = t->n < buffer_bytes ? t->n : buffer_bytes - 1;
        if (n)
            memcpy(buffer, t->data, n);
        buffer[n] = '\0';
    }
    return t->n;
}

/* ---------------------------------------------------------------- hash */

uint64_t qn__hash(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *byte = p;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < n; i++)
        h = (h ^ byte[i]) * 0x100000001b3u;
    /* FNV-1a leaves the high bits of short inputs weak; splitmix64's last steps spread them. */
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* ---------------------------------------------------------------- dtypes */

typedef struct dtype_info {
    const char *name;
    uint8_t bytes, class, width, part, fraction_bits;
    int16_t bias;
} dtype_info;

#define WIDTH_B(bytes) 1
#define WIDTH_S(bytes) ((bytes)*8)
#define WIDTH_U(bytes) ((bytes)*8)
#define WIDTH_F(bytes) ((bytes)*8)
#define WIDTH_C(bytes) ((bytes)*8)
static const dtype_info dtype_table[QN_N_DTYPES] = {
    [QN_VOID] = {.name = "void"},
    [QN_RECORD] = {.name = "record", .part = QN_RECORD},
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, ...)                        \
    [number] = {text, bytes, QN_CLASS_##cls, WIDTH_##cls(bytes), QN_##part, fraction, bias},
#include "quern/dtypes.def"
#undef QN_DTYPE
};

#define PARTS_B 1
#define PARTS_S 1
#define PARTS_U 1
#define PARTS_F 1
#define PARTS_C 2
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, ...)                     \
    _Static_assert(sizeof(c) * PARTS_##cls == bytes && number != QN_RECORD &&                      \
                       number < QN_N_DTYPES,                                                       \
                   text ": bytes, C type and number");
#include "quern/dtypes.def"
#undef QN_DTYPE

static inline const dtype_info *dtype_find(int dtype)
{
    return dtype >= 0 && dtype < QN_N_DTYPES ? &dtype_table[dtype] : NULL;
}

int64_t qn_dtype_bytes(int dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->bytes : 0;
}

const char *qn_dtype_name(int dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->name : "?";
}

qn_dtype qn_dtype_of_name(const char *name)
{
    for (int dtype = QN_VOID + 1; name && dtype < QN_N_DTYPES; dtype++)
        if (dtype_table[dtype].bytes && strcmp(name, dtype_table[dtype].name) == 0)
            return (qn_dtype)dtype;
    return QN_VOID;
}

int qn__dtype_class(int dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->class : 0;
}

int qn__dtype_width(int dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->width : 0;
}

int qn__dtype_part(int dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info ? info->part : QN_VOID;
}

int qn__dtype_of_bits(int64_t bytes)
{
    for (int dtype = QN_VOID + 1; dtype < QN_N_DTYPES; dtype++)
        if (dtype_table[dtype].class == QN_CLASS_U && dtype_table[dtype].bytes == bytes)
            return dtype;
    return QN_VOID;
}

qn_float_format qn__float_format(int dtype)
{
    const dtype_info *info = &dtype_table[dtype];
    int fraction_bits = info->fraction_bits, bias = info->bias;
    return (qn_float_format){fraction_bits, bias, (uint64_t)(2 * bias + 1) << fraction_bits};
}

uint64_t qn__canonical(int dtype, uint64_t bits)
{
    switch (dtype) {
#define CANONICAL_B(bytes, c) (bits & 0xff) != 0
#define CANONICAL_S(bytes, c) (uint64_t)(int64_t)(c)bits
#define CANONICAL_U(bytes, c) (c) bits
#define CANONICAL_F(bytes, c) (bits & UINT64_MAX >> (64 - 8 * (bytes)))
#define CANONICAL_C(bytes, c) bits
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, ...)                     \
    case number:                                                                                   \
        return CANONICAL_##cls(bytes, c);
#include "quern/dtypes.def"
#undef QN_DTYPE
    default:
        return bits;
    }
}

uint64_t qn__load_element(int dtype, const void *p)
{
    /* Through a type of the element's size: independent of the machine's byte order. */
    switch (qn_dtype_bytes(dtype)) {
    case 1: {
        uint8_t x;
        memcpy(&x, p, sizeof x);
        return qn__canonical(dtype, x);
    }
    case 2: {
        uint16_t x;
        memcpy(&x, p, sizeof x);
        return qn__canonical(dtype, x);
    }
    case 4: {
        uint32_t x;
        memcpy(&x, p, sizeof x);
        return qn__canonical(dtype, x);
    }
    case 8: {
        uint64_t x;
        memcpy(&x, p, sizeof x);
        return x;
    }
    default:
        return 0;
    }
}

void qn__store_element(int dtype, void *p, uint64_t bits)
{
    bits = qn__canonical(dtype, bits);
    switch (qn_dtype_bytes(dtype)) {
    case 1: {
        uint8_t x = (uint8_t)bits;
        memcpy(p, &x, sizeof x);
        break;
    }
    case 2: {
        uint16_t x = (uint16_t)bits;
        memcpy(p, &x, sizeof x);
        break;
    }
    case 4: {
        uint32_t x = (uint32_t)bits;
        memcpy(p, &x, sizeof x);
        break;
    }
    case 8:
        memcpy(p, &bits, sizeof bits);
        break;
    default:
        break;
    }
}

/* ---------------------------------------------------------------- spaces */

typedef struct space_info {
    const char *name;
    bool is_available;
} space_info;

static const space_info space_table[QN_N_SPACES] = {
#define QN_X(NAME, number, text, available) [number] = {text, available},
    QN_SPACE_LIST(QN_X)
#undef QN_X
};

const char *qn_space_name(int space)
{
    return space >= 0 && space < QN_N_SPACES ? space_table[space].name : "?";
}

bool qn_space_is_available(int space)
{
    return space >= 0 && space < QN_N_SPACES && space_table[space].is_available;
}
