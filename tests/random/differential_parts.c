/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_parts.c: views whose elements are complex numbers or records, and views that count
 * other units than their elements: what they look like in memory, and loads and stores of them,
 * whole and by part.
 */
#include "differential.h"

#include <string.h>

/* ---------------------------------------------------------------- elements */

void add_part(test_view *v, int dtype, int64_t offset)
{
    bool is_complex = dtype == QN_C64 || dtype == QN_C128;
    int part = dtype == QN_C64 ? QN_F32 : dtype == QN_C128 ? QN_F64 : dtype;
    for (int p = 0; p <= is_complex; p++) {
        v->part[v->n_parts].dtype = part;
        v->part[v->n_parts++].offset = offset + p * qn_dtype_bytes(part);
    }
}

/* One to five fields, packed in some records, with room behind them in some. */
static void choose_record(randoms *r, test_view *v)
{
    static const uint8_t dtypes[] = {QN_F32, QN_F64, QN_I8,  QN_I16, QN_I32,
                                     QN_U8,  QN_I64, QN_C64, QN_F16, QN_BOOL};
    qn_field field[5] = {{0}};
    int n = 1 + random_below(r, 5);
    uint32_t flags = random_percent(r, 50) ? QN_PACKED : 0;
    bool has_gaps = flags && random_percent(r, 40);
    int64_t end = 0;
    for (int i = 0; i < n; i++) {
        field[i] = (qn_field){.dtype = dtypes[random_below(r, 10)], .offset = QN_NEXT};
        if (has_gaps)
            field[i].offset = end + random_below(r, 4);
        end = field[i].offset + qn_dtype_bytes(field[i].dtype);
    }
    qn_record_new(n, field, has_gaps ? end + random_below(r, 6) : 0, flags, &v->record, NULL);
    for (int i = 0; v->record && i < n; i++) {
        qn_record_field(v->record, i, &field[i], NULL);
        add_part(v, field[i].dtype, field[i].offset);
    }
    v->dtype = QN_RECORD;
}

void choose_elements(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    int kind = v == &t->view[v->shares] ? random_below(r, 100) : 100;
    v->n_parts = 0;
    if (v->role != ROLE_ATOMIC && kind < 10)
        v->dtype = random_percent(r, 50) ? QN_C64 : QN_C128;
    else if (v->role != ROLE_ATOMIC && kind < 20)
        choose_record(r, v);
    else if (v->role != ROLE_ATOMIC && kind < 30)
        v->unit = (uint32_t)(qn_dtype_bytes(v->dtype) + random_between(r, 1, 13));
    if (v->n_parts == 0)
        add_part(v, v->dtype, 0);
}

bool has_plain_elements(const test_view *v)
{
    return v->n_parts == 1 && v->dtype != QN_RECORD && v->unit == 0;
}

int64_t element_bytes(const test_view *v)
{
    return v->dtype == QN_RECORD ? qn_record_bytes(v->record) : qn_dtype_bytes(v->dtype);
}

int64_t unit_bytes(const test_view *v)
{
    return v->unit ? (int64_t)v->unit : element_bytes(v);
}

/** Whether a float is a zero of either sign. */
static bool is_zero(int dtype, const unsigned char *p)
{
    uint64_t bits = 0;
    size_t size = (size_t)qn_dtype_bytes(dtype);
    memcpy(&bits, p, size);
    return is_float(dtype) && (bits & UINT64_MAX >> (65 - 8 * size)) == 0;
}

bool is_same_value(const test_view *v, const unsigned char *a, const unsigned char *b)
{
    bool is_same = true;
    for (int p = 0; p < v->n_parts; p++) {
        const int dtype = v->part[p].dtype;
        const unsigned char *x = a + v->part[p].offset, *y = b + v->part[p].offset;
        bool are_zeros = v->role == ROLE_ATOMIC && is_zero(dtype, x) && is_zero(dtype, y);
        is_same = is_same && (are_zeros || is_same_element(dtype, x, y));
    }
    return is_same;
}

bool next_element(const qn_layout *l, int64_t *index)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        if (++index[d] < l->dim[d].lower + l->dim[d].extent)
            return true;
        index[d] = l->dim[d].lower;
    }
    return false;
}

/* ---------------------------------------------------------------- values */

static bool is_complex_dtype(int dtype)
{
    return dtype == QN_C64 || dtype == QN_C128;
}

static qn_val gen_complex(generator *g, int dtype)
{
    int part = dtype == QN_C64 ? QN_F32 : QN_F64;
    return qn_complex(g->b, gen_value(g, part, 2), gen_value(g, part, 1));
}

static qn_val part_of_complex(generator *g, qn_val z, int dtype, int *part_dtype)
{
    *part_dtype = dtype == QN_C64 ? QN_F32 : QN_F64;
    if (random_percent(g->r, 20))
        return qn_magnitude(g->b, z);
    return random_percent(g->r, 50) ? qn_real(g->b, z) : qn_imag(g->b, z);
}

/* A value of a field or the dtype of a complex view. */
static qn_val gen_any(generator *g, int dtype)
{
    return is_complex_dtype(dtype) ? gen_complex(g, dtype) : gen_value(g, dtype, 2);
}

qn_val gen_load_part(generator *g, int view, const qn_val *index, int *dtype)
{
    const test_view *v = &g->t->view[view];
    qn_field f = {.dtype = v->dtype};
    qn_val x;
    if (v->dtype == QN_RECORD) {
        int field = random_below(g->r, qn_record_n_fields(v->record));
        qn_record_field(v->record, field, &f, NULL);
        x = random_percent(g->r, 60)
                ? qn_load_field(g->b, g->param[view], field, v->rank, index)
                : qn_field_of(g->b, qn_load(g->b, g->param[view], v->rank, index), field);
    } else {
        x = qn_load(g->b, g->param[view], v->rank, index);
    }
    *dtype = f.dtype;
    return is_complex_dtype(f.dtype) ? part_of_complex(g, x, f.dtype, dtype) : x;
}

/* A whole element that differs from `x`. */
static qn_val gen_other(generator *g, const test_view *v, qn_val x)
{
    if (v->dtype == QN_RECORD) {
        int field = random_below(g->r, qn_record_n_fields(v->record));
        qn_field f;
        qn_record_field(v->record, field, &f, NULL);
        return qn_with_field(g->b, x, field, gen_any(g, f.dtype));
    }
    qn_val y = gen_complex(g, v->dtype);
    switch (random_below(g->r, 5)) {
    case 0:
        return qn_add(g->b, x, y);
    case 1:
        return qn_sub(g->b, y, x);
    case 2:
        return qn_div(g->b, x, y);
    case 3:
        return qn_conj(g->b, x);
    default:
        return qn_mul(g->b, x, y);
    }
}

/* Through an if, a for or a select. */
static qn_val gen_carried(generator *g, const test_view *v, qn_val x)
{
    qn_val other, carried, result = {0};
    int kind = random_below(g->r, 4);
    qn_val condition = gen_value(g, QN_BOOL, 2), end = {0};
    bool was_uniform = g->is_uniform_only;
    if (kind == 1)
        end = qn_and(g->b, gen_value(g, QN_I64, 2), qn_index(g->b, 3));
    g->is_uniform_only = kind < 2; /* in regions nothing is pooled */
    if (kind == 0) {
        qn_if(g->b, condition);
        qn_else(g->b, 1, &x);
        other = gen_other(g, v, x);
        qn_end_if(g->b, 1, &other, &result);
    } else if (kind == 1) {
        (void)qn_for(g->b, qn_index(g->b, 0), end, 1, 1, &x, &carried);
        other = gen_other(g, v, carried);
        qn_end_for(g->b, 1, &other, &result);
    }
    g->is_uniform_only = was_uniform;
    if (kind < 2)
        return result;
    return kind == 2 ? qn_select(g->b, condition, x, gen_other(g, v, x)) : gen_other(g, v, x);
}

void gen_store_part(generator *g, int view, const qn_val *index)
{
    const test_view *v = &g->t->view[view];
    qn_val from[VIEW_RANK] = {{0}};
    bool is_empty =
        false; /* then nothing can be loaded from it in range, and a constant is stored */
    for (int d = 0; d < v->rank; d++)
        is_empty = is_empty || v->extent[d] <= 0;
    if (v->dtype == QN_RECORD && (random_percent(g->r, 50) || is_empty)) {
        int field = random_below(g->r, qn_record_n_fields(v->record));
        qn_field f;
        qn_record_field(v->record, field, &f, NULL);
        qn_store_field(g->b, g->param[view], field, v->rank, index, gen_any(g, f.dtype));
        return;
    }
    if (is_empty) {
        qn_store(g->b, g->param[view], v->rank, index, qn_const_complex(g->b, v->dtype, 1, -1));
        return;
    }
    gen_indices(g, view, false, from);
    qn_val x = qn_load(g->b, g->param[view], v->rank, from);
    qn_store(g->b, g->param[view], v->rank, index, gen_carried(g, v, x));
}
