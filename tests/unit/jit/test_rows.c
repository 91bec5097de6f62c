/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rows.c: rows of different lengths: parts of a view on the host, loops and single elements in
 * kernels, against loops in C; bad maps and bad elements are reported.
 */
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"

enum { ROWS = 37 };

typedef struct ragged {
    qn_view map, entries, y;
    int n;
} ragged;

static void make(qn_context *c, int dtype, ragged *r)
{
    int64_t rows = ROWS, borders = ROWS + 1, n = 0;
    qn_error err = {0};
    qn_view_new(c, "map", dtype, 1, &borders, &r->map, &err);
    for (int i = 0; i <= ROWS; i++) {
        char *at = (char *)r->map.data + i * qn_dtype_bytes(dtype);
        qn__store_element(dtype, at, (uint64_t)n);
        n += i < ROWS ? (i * 7) % 5 * (i % 3) : 0; /* empty ones, too */
    }
    r->n = (int)n;
    qn_view_new(c, "entries", QN_F64, 1, &n, &r->entries, &err);
    qn_view_new(c, "y", QN_F64, 1, &rows, &r->y, &err);
    for (int i = 0; i < r->n; i++)
        ((double *)r->entries.data)[i] = 0.5 + i;
}

static void drop(ragged *r)
{
    qn_view_release(&r->map);
    qn_view_release(&r->entries);
    qn_view_release(&r->y);
}

/** y[i] = sum of row i; or its element k, if k >= 0. */
static qn_kernel *row_kernel(int dtype, int64_t k)
{
    qn_builder *b = qn_builder_new("rows", 0);
    qn_param map = qn_view_param(b, "map", dtype, 1, QN_READ_ONLY);
    qn_param entries = qn_view_param(b, "entries", QN_F64, 1, QN_READ_ONLY);
    qn_param y = qn_view_param(b, "y", QN_F64, 1, 0);
    qn_val i = qn_parallel_over(b, y, 0), sum = qn_const_float(b, QN_F64, 0), carried;
    if (k < 0) {
        qn_val e = qn_for_row(b, map, i, 1, &sum, &carried);
        qn_val next = qn_add(b, carried, qn_load(b, entries, 1, &e));
        qn_end_for(b, 1, &next, &sum);
    } else {
        qn_val e = qn_row_at(b, map, i, qn_index(b, k));
        sum = qn_load(b, entries, 1, &e);
    }
    qn_store(b, y, 1, &i, sum);
    qn_kernel *out = NULL;
    qn_error err = {0};
    if (qn_finish(b, &out, &err))
        tap_ok(false, "kernel: %s", err.message);
    qn_builder_release(b);
    return out;
}

static void test_sums(qn_context *c, int dtype)
{
    ragged r;
    make(c, dtype, &r);
    qn_kernel *k = row_kernel(dtype, -1);
    qn_error err = {0};
    const qn_arg args[3] = {qn_arg_view(&r.map), qn_arg_view(&r.entries), qn_arg_view(&r.y)};
    tap_ok(qn_launch(c, k, 3, args, NULL, &err) == QN_OK, "%s: launch %s", qn_dtype_name(dtype),
           err.message);
    bool is_right = true;
    for (int i = 0; i < ROWS; i++) {
        qn_view row;
        double sum = 0;
        is_right = is_right && qn_view_row(&r.map, &r.entries, i, &row, &err) == QN_OK;
        for (int64_t j = 0; j < qn_view_size(&row); j++)
            sum += ((double *)row.data)[j];
        is_right = is_right && ((double *)r.y.data)[i] == sum;
        qn_view_release(&row);
    }
    tap_ok(is_right && qn_view_use_count(&r.entries) == 1, "sums of rows, as on the host");
    qn_kernel_release(k);
    drop(&r);
}

static void test_elements(qn_context *c)
{
    ragged r;
    make(c, QN_I32, &r);
    qn_kernel *k = row_kernel(QN_I32, 0);
    qn_error err = {0};
    int32_t *map = r.map.data;
    const qn_arg args[3] = {qn_arg_view(&r.map), qn_arg_view(&r.entries), qn_arg_view(&r.y)};
    for (int e = QN_ENGINE_AUTO; e <= QN_ENGINE_INTERP; e++) {
        const qn_options o = {.bytes = sizeof o, .engine = e};
        tap_is_int(qn_launch(c, k, 3, args, &o, &err), QN_ERR_BOUNDS, "row 0 is empty");
        tap_contains(err.message,
                     "view \"entries\", argument 1, dimension 0: index -9223372036854775808 not in",
                     "no index");
        tap_contains(err.message, "iteration (0)", "the first one");
        bool is_right = true;
        for (int i = 0; i < ROWS; i++)
            is_right =
                is_right && ((double *)r.y.data)[i] == (map[i] < map[i + 1] ? 0.5 + map[i] : 0);
        tap_ok(is_right, "first elements of the others, 0 for rows without");
    }
    map[5] = INT32_MAX;
    qn_kernel *sums = row_kernel(QN_I32, -1);
    tap_is_int(qn_launch(c, sums, 3, args, NULL, &err), QN_ERR_BOUNDS, "a bad map");
    tap_contains(err.message, "iteration (4)", "the row that ends there");
    qn_kernel_release(sums);
    qn_kernel_release(k);
    drop(&r);
}

static void test_refused(qn_context *c)
{
    ragged r;
    qn_view row, bad;
    make(c, QN_I64, &r);
    REFUSED(QN_ERR_ARGUMENT, row, qn_view_row, NULL, &r.entries, 0, &row);
    REFUSED(QN_ERR_ARGUMENT, row, qn_view_row, &r.map, NULL, 0, &row);
    REFUSED(QN_ERR_BOUNDS, row, qn_view_row, &r.map, &r.entries, -1, &row);
    REFUSED(QN_ERR_BOUNDS, row, qn_view_row, &r.map, &r.entries, ROWS, &row);
    REFUSED(QN_ERR_BOUNDS, row, qn_view_row, &r.map, &r.entries, INT64_MAX, &row);
    REFUSED(QN_ERR_DTYPE, row, qn_view_row, &r.entries, &r.entries, 0, &row);
    ((int64_t *)r.map.data)[3] = r.n + 1;
    REFUSED(QN_ERR_RANGE, row, qn_view_row, &r.map, &r.entries, 2, &row);
    REFUSED(QN_ERR_RANGE, row, qn_view_row, &r.map, &r.entries, 3, &row);
    qn_slice s = {QN_AT, 0, 0, 0};
    qn_error err = {0};
    qn_subview(&r.entries, 1, &s, &bad, &err);
    REFUSED(QN_ERR_RANK, row, qn_view_row, &r.map, &bad, 0, &row);
    qn_view_release(&bad);
    drop(&r);
    qn_builder *b = qn_builder_new("bad", 0);
    qn_param map = qn_view_param(b, "map", QN_F32, 1, 0);
    qn_row_begin(b, map, qn_index(b, 0));
    qn_builder_status(b, &err);
    tap_contains(err.message,
                 "qn_row_begin: kernel \"bad\": view \"map\" of f32 and rank 1 is no map of rows",
                 "no map");
    qn_builder_release(b);
    tap_is_int(qn_for_row(NULL, map, (qn_val){0}, 0, NULL, NULL).id, 0, "no builder");
}

int main(void)
{
    qn_context *c = context_with(NULL);
    test_sums(c, QN_I64);
    test_sums(c, QN_I32);
    test_sums(c, QN_U64);
    test_elements(c);
    test_refused(c);
    qn_context_release(c);
    return tap_done();
}
