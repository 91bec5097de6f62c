/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_body.c: the loop bodies of bodies.h on one thread against the same in C, for three
 * layouts: Right, Left, and a mixture (what is written is Right, what is read Left; of vectors
 * every second element). Checked before they are timed: against C to a few roundings (C contracts
 * where its compiler likes), and on small arrays of the same layouts against the interpreter, bit
 * for bit.
 */
#include "bench.h"
#include "bodies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 8, MAX_RANK = 3 };

static const bench_body_info infos[] = {BENCH_BODIES(BODY_INFO)};

/* Arrays of one edge, one after the other. */
typedef struct arrays {
    bench_memory memory;
    qn_view view[BENCH_ARRAYS];
    qn_arg args[BENCH_ARRAYS];
    double
        *data[BENCH_ARRAYS]; /* as the C loops want them: written ones from 0, read ones from 8 */
    int n;
} arrays;

static qn_status layout_of(const bench_body_info *info, int kind, bool is_out, int64_t edge,
                           qn_layout *out, qn_error *err)
{
    const int64_t extents[MAX_RANK] = {edge, edge, edge}, step = BODY_STEP;
    if (kind == BODY_MIXED && info->rank == 1)
        return qn_layout_strided(1, extents, &step, out, err);
    bool is_left = kind == BODY_LEFT || (kind == BODY_MIXED && !is_out);
    return is_left ? qn_layout_left(info->rank, extents, out, err)
                   : qn_layout_right(info->rank, extents, out, err);
}

static bool make_arrays(arrays *a, const bench_body_info *info, int kind, int64_t edge,
                        qn_error *err)
{
    size_t n = (size_t)edge * BODY_STEP, bytes[BENCH_ARRAYS];
    for (int d = 1; d < info->rank; d++)
        n = d == 1 ? (size_t)(edge * edge) : n * (size_t)edge;
    *a = (arrays){.n = info->n_out + info->n_in};
    for (int i = 0; i < a->n; i++)
        bytes[i] = n * sizeof(double);
    if (bench_memory_make(&a->memory, a->n, bytes, err))
        return false;
    for (int i = 0; i < a->n; i++) {
        qn_layout l;
        bool is_out = i < info->n_out;
        if (layout_of(info, kind, is_out, edge, &l, err) ||
            qn_view_wrap("array", a->memory.at[i], QN_F64, &l, is_out ? 0 : QN_READ_ONLY,
                         &a->view[i], err))
            return false;
        a->args[i] = qn_arg_view(&a->view[i]);
        a->data[is_out ? i : HALF + i - info->n_out] = a->memory.at[i];
    }
    return true;
}

/* Small arrays: bits of the interpreter. */
static bool is_exact(bench *b, const char *name, const bench_body_info *info, int kind,
                     const qn_kernel *k)
{
    arrays a;
    qn_error error = {0};
    const int64_t edges[] = {0, 1003, 45, 21};
    qn_options o = bench_options(b);
    bool is_ok = make_arrays(&a, info, kind, edges[info->rank], &error);
    void *kept = NULL;
    if (is_ok) {
        bench_memory_fill(&a.memory);
        is_ok = qn_launch(b->context, k, a.n, a.args, &o, &error) == QN_OK &&
                (kept = bench_memory_keep(&a.memory)) != NULL;
    }
    if (is_ok) {
        bench_memory_fill(&a.memory);
        o = (qn_options){.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
        is_ok = qn_launch(b->context, k, a.n, a.args, &o, &error) == QN_OK &&
                memcmp(a.memory.first, kept, a.memory.bytes) == 0;
    }
    if (!is_ok)
        bench_wrong(b, name, "not the interpreter's result: %s", error.message);
    free(kept);
    bench_memory_free(&a.memory);
    return is_ok;
}

typedef struct native_run {
    body_loop loop;
    double *const *data;
} native_run;

static void run_native(const void *data)
{
    const native_run *r = data;
    r->loop(r->data);
}

static void run_case(bench *b, const char *name, int body, int kind, const qn_kernel *k)
{
    static const int64_t edges[] = {0, BODY_1D, BODY_2D, BODY_3D};
    const bench_body_info *info = &infos[body];
    arrays a;
    qn_error error = {0};
    qn_call *call = NULL;
    void *ours = NULL;
    qn_options o = bench_options(b);
    bool is_ok = make_arrays(&a, info, kind, edges[info->rank], &error) &&
                 bench_prepare(b, k, a.n, a.args, &o, &call, &error) == QN_OK;
    if (is_ok) {
        bench_memory_fill(&a.memory);
        is_ok = qn_run(call, &error) == QN_OK && (ours = bench_memory_keep(&a.memory)) != NULL;
    }
    if (is_ok) {
        bench_memory_fill(&a.memory);
        native_bodies[body][kind](a.data);
        is_ok = bench_memory_is_close(&a.memory, ours, 1e-12);
    }
    free(ours);
    if (is_ok)
        bench_in_turns(
            b, &(bench_line){.name = name, .group = GROUP_BODY, .goal = 0.9, .short_below = 0.9},
            call, run_native, &(native_run){native_bodies[body][kind], a.data});
    else
        bench_wrong(b, name, "not the result of C: %s", error.message);
    qn_call_release(call);
    bench_memory_free(&a.memory);
}

static void print_assembly(bench *b, const char *name, int body, int kind, const qn_kernel *k)
{
    static const int64_t edges[] = {0, BODY_1D, BODY_2D, BODY_3D};
    arrays a;
    qn_error error = {0};
    qn_options o = bench_options(b);
    if (make_arrays(&a, &infos[body], kind, edges[infos[body].rank], &error))
        bench_print_assembly(b, name, k, a.n, a.args, &o);
    bench_memory_free(&a.memory);
}

void bench_body_cases(bench *b)
{
    static const char *const kinds[] = {"right", "left", "mixed"};
    for (int body = 0; body < N_BODIES; body++)
        for (int kind = 0; kind < N_BODY_LAYOUTS; kind++) {
            char name[64];
            qn_error error = {0};
            snprintf(name, sizeof name, "raja/%s/%s", infos[body].name, kinds[kind]);
            if ((infos[body].rank == 1 && kind == BODY_LEFT) || !bench_wants(b, name))
                continue; /* a vector is the same in Right and Left order */
            qn_kernel *k = bench_body(&infos[body], &error);
            if (!k)
                bench_wrong(b, name, "no kernel: %s", error.message);
            else if (b->assembly_of)
                print_assembly(b, name, body, kind, k);
            else if (is_exact(b, name, &infos[body], kind, k))
                run_case(b, name, body, kind, k);
            qn_kernel_release(k);
        }
}
