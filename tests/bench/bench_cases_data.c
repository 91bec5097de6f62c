/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_data.c: copies, sums, sparse rows, lists, tables and pixels (bench_data_list.c)
 * against plain loops in C (native_data.c), and as NAME/expert against what an expert writes with
 * intrinsics (native_data_expert.c). Results are compared with C's over all arrays, and in cache
 * with the interpreter's, bit for bit.
 */
#include "bench_data.h"
#include "bench.h"
#include "native_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHECKED = 400000 };

typedef struct data_run {
    bench *b;
    const data_case *c;
    int n;
    bench_memory memory;
    int64_t count[MOST_VIEWS]; /* elements */
    qn_view view[MOST_VIEWS];
    qn_arg args[MOST_VIEWS];
    qn_kernel *k;
} data_run;

/* ---------------------------------------------------------------- what arrays hold */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Each view of a case has values of its own. */
static void fill_values(void *data, int dtype, int64_t n, bool is_unit, int view)
{
    uint64_t state = 88172645463325252u + (uint64_t)n + ((uint64_t)view << 32);
    const size_t bytes = (size_t)qn_dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = next_random(&state);
        const double x = (double)(bits >> 40) * 0x1p-24, value = is_unit ? x : 2 * x - 1;
        const float narrow = (float)value;
        const void *from = dtype == QN_F32   ? (const void *)&narrow
                           : dtype == QN_F64 ? (const void *)&value
                                             : &bits;
        memcpy((char *)data + (size_t)i * bytes, from, bytes);
    }
}

static void fill_bins(int32_t *at, int64_t n)
{
    uint64_t state = 42;
    for (int64_t i = 0; i < n; i++)
        at[i] = (int32_t)(next_random(&state) % BINS);
}

static void fill_permutation(int32_t *at, int64_t n)
{
    uint64_t state = 42;
    for (int64_t i = 0; i < n; i++)
        at[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(next_random(&state) % (uint64_t)(i + 1));
        const int32_t kept = at[i];
        at[i] = at[j];
        at[j] = kept;
    }
}

/* The points of a cube and those of their six neighbours that exist, a row each. */
static void fill_grid(int32_t *start, int32_t *column, int32_t edge)
{
    const int32_t step[3] = {edge * edge, edge, 1};
    int32_t n = 0;
    for (int32_t i = 0; i < edge * edge * edge; i++) {
        const int32_t at[3] = {i / step[0], i / step[1] % edge, i % edge};
        start[i] = n;
        for (int d = 0; d < 3; d++)
            if (at[d] > 0)
                column[n++] = i - step[d];
        column[n++] = i;
        for (int d = 2; d >= 0; d--)
            if (at[d] < edge - 1)
                column[n++] = i + step[d];
    }
    start[edge * edge * edge] = n;
}

static void fill_rows(int32_t *start, int32_t *column, int32_t rows)
{
    uint64_t state = 7;
    int32_t n = 0;
    for (int32_t i = 0; i < rows; i++) {
        const int32_t length =
            ROW_LEAST + (int32_t)(next_random(&state) % (ROW_MOST - ROW_LEAST + 1));
        start[i] = n;
        for (int32_t k = 0; k < length; k++)
            column[n++] = (int32_t)(next_random(&state) % (uint64_t)rows);
    }
    start[rows] = n;
}

static void fill(const data_run *r, int i)
{
    const data_view *v = &r->c->view[i];
    if (v->fill == FILL_ZERO)
        memset(r->memory.at[i], 0, (size_t)r->count[i] * (size_t)qn_dtype_bytes(v->dtype));
    else if (v->fill == FILL_ANY || v->fill == FILL_UNIT)
        fill_values(r->memory.at[i], v->dtype, r->count[i], v->fill == FILL_UNIT, i);
    else if (v->fill == FILL_BINS)
        fill_bins(r->memory.at[i], r->count[i]);
    else if (v->fill == FILL_PERMUTATION)
        fill_permutation(r->memory.at[i], r->count[i]);
    else if (v->fill == FILL_GRID_STARTS)
        fill_grid(r->memory.at[i], r->memory.at[i + 1],
                  (int32_t)lround(cbrt((double)(r->count[i] - 1))));
    else if (v->fill == FILL_STARTS)
        fill_rows(r->memory.at[i], r->memory.at[i + 1], (int32_t)(r->count[i] - 1));
}

/* ---------------------------------------------------------------- arrays and kernel */

static qn_status make_memory(data_run *r, qn_error *err)
{
    size_t bytes[MOST_VIEWS];
    for (r->n = 0; r->n < MOST_VIEWS && r->c->view[r->n].rank; r->n++) {
        const data_view *v = &r->c->view[r->n];
        r->count[r->n] = 1;
        for (int d = 0; d < v->rank; d++)
            r->count[r->n] *= v->extent[d];
        bytes[r->n] = (size_t)(r->count[r->n] * qn_dtype_bytes(v->dtype));
    }
    qn_status status = bench_memory_make(&r->memory, r->n, bytes, err);
    for (int i = 0; i < r->n && !status; i++)
        fill(r, i);
    return status;
}

static bool make(data_run *r)
{
    qn_error error = {0};
    qn_status status = make_memory(r, &error);
    for (int i = 0; i < r->n && !status; i++) {
        const data_view *v = &r->c->view[i];
        qn_layout layout;
        status = v->is_left ? qn_layout_left(v->rank, v->extent, &layout, &error)
                            : qn_layout_right(v->rank, v->extent, &layout, &error);
        if (!status)
            status =
                qn_view_wrap("array", r->memory.at[i], v->dtype, &layout, 0, &r->view[i], &error);
        r->args[i] = qn_arg_view(&r->view[i]);
    }
    if (!status)
        status = qn_kernel_parse(r->c->kernel, strlen(r->c->kernel), &r->k, &error);
    if (status)
        bench_wrong(r->b, r->c->name, "%s", error.message);
    return status == QN_OK;
}

static void release(data_run *r)
{
    for (int i = 0; i < r->n; i++)
        qn_view_release(&r->view[i]);
    qn_kernel_release(r->k);
    bench_memory_free(&r->memory);
}

/* ---------------------------------------------------------------- checks */

static bool is_close(const data_run *r, const void *a, const void *b)
{
    const int dtype = r->c->view[0].dtype;
    for (int64_t i = 0; i < r->count[0]; i++) {
        const double x = dtype == QN_F32 ? (double)((const float *)a)[i] : ((const double *)a)[i];
        const double y = dtype == QN_F32 ? (double)((const float *)b)[i] : ((const double *)b)[i];
        if (!(fabs(x - y) <= (dtype == QN_F32 ? 1e-3 : 1e-11) * (1 + fabs(y))))
            return false;
    }
    return true;
}

static bool is_float(int dtype)
{
    return dtype == QN_F32 || dtype == QN_F64;
}

/* Whether what `loop`, or the interpreter (NULL), writes is what we wrote, *ours. */
static bool agrees(data_run *r, native_data_loop loop, const void *ours)
{
    const size_t bytes = (size_t)(r->count[0] * qn_dtype_bytes(r->c->view[0].dtype));
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    qn_error error = {0};
    fill(r, 0);
    if (loop)
        loop(r->memory.at);
    else if (qn_launch(r->b->context, r->k, r->n, r->args, &o, &error)) {
        bench_wrong(r->b, r->c->name, "%s", error.message);
        return false;
    }
    if (memcmp(ours, r->memory.at[0], bytes) == 0)
        return true;
    if (loop && r->c->is_summed && is_float(r->c->view[0].dtype) &&
        is_close(r, ours, r->memory.at[0]))
        return true;
    bench_wrong(r->b, r->c->name, "not the result of %s", loop ? "C" : "the interpreter");
    return false;
}

static int64_t points(const data_run *r)
{
    int64_t most = 0;
    for (int i = 0; i < r->n; i++)
        most = r->count[i] > most ? r->count[i] : most;
    return most;
}

static bool check(data_run *r, qn_call *call, native_data_loop plain, native_data_loop expert)
{
    const size_t bytes = (size_t)(r->count[0] * qn_dtype_bytes(r->c->view[0].dtype));
    qn_error error = {0};
    void *ours = malloc(bytes);
    fill(r, 0);
    bool is_ok = ours && qn_run(call, &error) == QN_OK;
    if (!is_ok)
        bench_wrong(r->b, r->c->name, "%s", error.message);
    else
        memcpy(ours, r->memory.at[0], bytes);
    is_ok = is_ok && agrees(r, plain, ours) && (!expert || agrees(r, expert, ours)) &&
            (points(r) > MOST_CHECKED || agrees(r, NULL, ours));
    free(ours);
    return is_ok;
}

/* ---------------------------------------------------------------- timing */

typedef struct native_run {
    native_data_loop loop;
    void *const *data;
} native_run;

static void run_native(const void *data)
{
    const native_run *r = data;
    r->loop(r->data);
}

static void time_pairs(const data_run *r, const char *name, qn_call *call, native_data_loop loop,
                       double goal)
{
    bench_in_turns(
        r->b, &(bench_line){.name = name, .group = GROUP_DATA, .goal = goal, .short_below = goal},
        call, run_native, &(native_run){loop, r->memory.at});
}

static native_data_loop find(const native_data *list, const char *name)
{
    while (list->name && strcmp(list->name, name))
        list++;
    return list->loop;
}

static void run_case(bench *b, const data_case *c, const char *expert_name)
{
    data_run r = {.b = b, .c = c};
    qn_error error = {0};
    qn_call *call = NULL;
    qn_options o = bench_options(b);
    o.checks = strstr(c->name, "/unchecked") ? QN_CHECKS_NONE : o.checks;
    o.atomics = strstr(c->name, "/shared") ? QN_ATOMICS_SHARED : o.atomics;
    native_data_loop plain = find(native_data_plain, c->name),
                     expert = find(native_data_expert, c->name);
    if (make(&r)) {
        if (b->assembly_of)
            bench_print_assembly(b, c->name, r.k, r.n, r.args, &o);
        else if (!plain)
            bench_wrong(b, c->name, "no loop in C");
        else if (bench_prepare(b, r.k, r.n, r.args, &o, &call, &error))
            bench_wrong(b, c->name, "%s", error.message);
        else if (check(&r, call, plain, expert)) {
            if (bench_wants(b, c->name))
                time_pairs(&r, c->name, call, plain, 0.9);
            if (expert && bench_wants(b, expert_name))
                time_pairs(&r, expert_name, call, expert, 0.85);
        }
    }
    qn_call_release(call);
    release(&r);
}

void bench_data_cases(bench *b)
{
    for (const data_case *c = data_cases; c->name; c++) {
        char expert[64];
        snprintf(expert, sizeof expert, "%s/expert", c->name);
        if (bench_wants(b, c->name) || (!b->assembly_of && bench_wants(b, expert)))
            run_case(b, c, expert);
    }
}
