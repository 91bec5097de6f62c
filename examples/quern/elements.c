/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.c: walking the elements of a view of any layout and converting single elements to and
 * from numbers.
 */
#include "tool.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t offset_of(const qn_layout *l, const int64_t *index)
{
    int64_t offset = 0;
    if (l->digits) {
        if (qn_layout_at(l, l->rank, index, &offset, NULL) != QN_OK)
            return 0;
        return offset;
    }
    for (int d = 0; d < l->rank; d++)
        offset += (index[d] - l->dim[d].lower) * l->dim[d].stride;
    return offset;
}

/* Steps to the next index tuple; false after the last one. */
static bool next_index(const qn_layout *l, int64_t *index)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        if (++index[d] < l->dim[d].lower + l->dim[d].extent)
            return true;
        index[d] = l->dim[d].lower;
    }
    return false;
}

void elements_walk(const qn_view *v, int64_t limit, void (*fn)(void *arg, void *element, int64_t n),
                   void *arg)
{
    int64_t size = qn_layout_size(&v->layout);
    if (size < limit)
        limit = size;
    int64_t index[QN_MAX_RANK];
    for (int d = 0; d < v->layout.rank; d++)
        index[d] = v->layout.dim[d].lower;
    for (int64_t n = 0; n < limit; n++) {
        fn(arg, (char *)v->data + offset_of(&v->layout, index) * qn_dtype_bytes(v->dtype), n);
        if (!next_index(&v->layout, index))
            break;
    }
}

char dtype_class(int dtype)
{
    static const char class[QN_N_DTYPES][2] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, ...) [number] = #cls,
#include "quern/dtypes.def"
#undef QN_DTYPE
    };
    return dtype >= 0 && dtype < QN_N_DTYPES ? class[dtype][0] : '\0';
}

bool dtype_is_real(int dtype)
{
    return dtype_class(dtype) == 'F';
}

void element_set_int(int dtype, void *element, int64_t value)
{
    uint64_t bits = qn_convert_value(dtype, QN_I64, (uint64_t)value);
    memcpy(element, &bits, (size_t)qn_dtype_bytes(dtype)); /* low end first */
}

void element_set_real(int dtype, void *element, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = qn_convert_value(dtype, QN_F64, bits);
    memcpy(element, &bits, (size_t)qn_dtype_bytes(dtype));
}

/* Shortest of the usual precisions that reads back as the same value. */
static void real_print(double value, bool is_single, char *buffer, size_t n)
{
    for (int digits = is_single ? 6 : 15; digits <= 17; digits++) {
        snprintf(buffer, n, "%.*g", digits, value);
        double again = 0;
        if (sscanf(buffer, "%lf", &again) != 1)
            return;
        if (is_single ? (float)again == (float)value : again == value)
            return;
    }
}

void element_print(int dtype, const void *element, char *buffer, size_t n)
{
    int64_t i = 0;
    uint64_t u = 0;
    double d = 0;
    size_t bytes = (size_t)qn_dtype_bytes(dtype);
    memcpy(&u, element, bytes);
    unsigned unused = 64 - 8 * (unsigned)bytes;
    i = (int64_t)(u << unused) >> unused;
    uint64_t wide = qn_convert_value(QN_F64, dtype, u);
    memcpy(&d, &wide, sizeof d);
    switch (dtype_class(dtype)) {
    case 'B':
        snprintf(buffer, n, "%s", u ? "true" : "false");
        break;
    case 'F':
        real_print(d, bytes < 8, buffer, n);
        break;
    case 'U':
        snprintf(buffer, n, "%" PRIu64, u);
        break;
    default:
        snprintf(buffer, n, "%" PRId64, i);
    }
}
