/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_kokkos.c: kernels against Kokkos on one thread, where QUERN_BENCH_KOKKOS names a
 * library made of kokkos_peer.cpp: equal and opposite layouts, in and out of cache. Theirs is the
 * fastest iteration pattern. Checked before they are timed.
 */
#include "bench.h"
#include "kokkos_peer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 3, MOST_VIEWS = 3 };
enum { IN, OUT, POWER, N_PLACES };

typedef struct kokkos_case {
    bench_body_info body; /* its name is that of the loop */
    int64_t edge[N_PLACES]; /* in and out of cache; a power of two for mixed layouts, or 0 */
} kokkos_case;

static const kokkos_case cases[] = {
    {{"saxpy", "O(i) = O(i) + 1.5 * A(i)", .rank = 1, .n_out = 1, .n_in = 1}, {20000, 17000003, 0}},
    {{"triad", "O(i) = A(i) + 1.5 * B(i)", .rank = 1, .n_out = 1, .n_in = 2}, {20000, 17000003, 0}},
    {{"copy", "O(i, j) = A(i, j)", .rank = 2, .n_out = 1, .n_in = 1}, {203, 4003, 4096}},
    {{"add", "O(i, j) = A(i, j) + B(i, j)", .rank = 2, .n_out = 1, .n_in = 2}, {203, 4003, 4096}},
    {{"stencil5",
      "O(i, j) = A(i, j) + 0.1 * ((A(i - 1, j) + A(i + 1, j)) + (A(i, j - 1) + A(i, j + 1)) - 4.0 "
      "* A(i, j))",
      .rank = 2, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {203, 4003, 4096}},
    {{"stencil7",
      "O(i, j, k) = A(i, j, k) + 0.1 * ((A(i, j - 1, k) + A(i, j + 1, k)) + (A(i, j, k - 1) + A(i, "
      "j, k + 1)) + "
      "(A(i - 1, j, k) + A(i + 1, j, k)) - 6.0 * A(i, j, k))",
      .rank = 3, .n_out = 1, .n_in = 1, .first = 1, .last = 1},
     {35, 253, 256}},
    {{"rows", "stripes(s, j, A, 1, A(i, j)); O(i) = s", .rank = 1, .n_out = 1, .n_in = 1,
      .ranks = "12"},
     {203, 4003, 4096}},
    {{"matvec", "stripes(s, j, A, 1, A(i, j) * B(j)); O(i) = s", .rank = 1, .n_out = 1, .n_in = 2,
      .ranks = "121"},
     {203, 4003, 4096}},
};

typedef struct arrays {
    bench_memory memory;
    double *data[MOST_VIEWS];
    qn_view view[MOST_VIEWS];
    qn_arg args[MOST_VIEWS];
} arrays;

static int rank_of(const kokkos_case *c, int array)
{
    return c->body.ranks ? c->body.ranks[array] - '0' : c->body.rank;
}

static bool make_arrays(arrays *a, const kokkos_case *c, int layout, int64_t edge, qn_error *err)
{
    const int64_t extents[MAX_RANK] = {edge, edge, edge};
    int n = c->body.n_out + c->body.n_in;
    size_t bytes[MOST_VIEWS];
    *a = (arrays){0};
    for (int i = 0; i < n; i++) {
        bytes[i] = sizeof(double);
        for (int d = 0; d < rank_of(c, i); d++)
            bytes[i] *= (size_t)edge;
    }
    if (bench_memory_make(&a->memory, n, bytes, err))
        return false;
    for (int i = 0; i < n; i++) {
        qn_layout l;
        bool is_left = layout == KOKKOS_LEFT || (layout == KOKKOS_MIXED && i == n - 1);
        a->data[i] = a->memory.at[i];
        qn_status status = is_left ? qn_layout_left(rank_of(c, i), extents, &l, err)
                                   : qn_layout_right(rank_of(c, i), extents, &l, err);
        if (status || qn_view_wrap("array", a->data[i], QN_F64, &l, 0, &a->view[i], err))
            return false;
        a->args[i] = qn_arg_view(&a->view[i]);
    }
    return true;
}

typedef struct kokkos_run {
    kokkos_loop loop;
    double *const *data;
    int64_t edge;
} kokkos_run;

static void run_loop(const void *data)
{
    const kokkos_run *r = data;
    r->loop(r->data, r->edge);
}

/* Ours, left in *kept, against one pattern of theirs. */
static bool is_close(const arrays *a, const void *kept, const kokkos_run *r)
{
    bench_memory_fill(&a->memory);
    run_loop(r);
    return bench_memory_is_close(&a->memory, kept, 1e-11);
}

/* Their fastest pattern that gives the right result; NULL if one is wrong. */
static kokkos_loop fastest(const arrays *a, const void *kept, const kokkos_case *c, int layout,
                           int64_t edge, kokkos_loop (*find)(const char *, int, int))
{
    kokkos_loop best = NULL;
    double least = INFINITY;
    for (int pattern = 0; pattern < N_KOKKOS_PATTERNS; pattern++) {
        kokkos_run r = {find(c->body.name, layout, pattern), a->data, edge};
        if (!r.loop)
            continue;
        if (!is_close(a, kept, &r))
            return NULL;
        for (int n = 0; n < 3; n++) {
            double begin = bench_now();
            run_loop(&r);
            double time = bench_now() - begin;
            if (time < least) {
                least = time;
                best = r.loop;
            }
        }
    }
    return best;
}

static void run_case(bench *b, const char *name, const kokkos_case *c, int layout, int64_t edge,
                     kokkos_loop (*find)(const char *, int, int))
{
    arrays a;
    qn_error error = {0};
    qn_call *call = NULL;
    void *kept = NULL;
    qn_kernel *k = bench_body(&c->body, &error);
    qn_options o = bench_options(b);
    bool is_ok =
        make_arrays(&a, c, layout, edge, &error) && k != NULL &&
        qn_prepare(b->context, k, c->body.n_out + c->body.n_in, a.args, &o, &call, &error) == QN_OK;
    if (is_ok) {
        bench_memory_fill(&a.memory);
        is_ok = qn_run(call, &error) == QN_OK && (kept = bench_memory_keep(&a.memory)) != NULL;
    }
    kokkos_loop loop = is_ok ? fastest(&a, kept, c, layout, edge, find) : NULL;
    double goal = layout == KOKKOS_MIXED ? 5 : 1;
    bench_line line = {.name = name, .group = GROUP_KOKKOS, .goal = goal, .short_below = goal};
    if (loop)
        bench_in_turns(b, &line, call, run_loop, &(kokkos_run){loop, a.data, edge});
    else
        bench_wrong(b, name, "not the result of Kokkos: %s", error.message);
    free(kept);
    qn_call_release(call);
    qn_kernel_release(k);
    bench_memory_free(&a.memory);
}

void bench_kokkos_cases(bench *b)
{
    static const char *const layouts[] = {"right", "left", "mixed"}, *const places[] = {"in", "out",
                                                                                        "pow"};
    const char *path = getenv("QUERN_BENCH_KOKKOS");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    kokkos_loop (*find)(const char *, int, int) = NULL;
    const char *(*version)(void) = NULL;
    if (library) {
        *(void **)&find = dlsym(library, "quern_kokkos_loop");
        *(void **)&version = dlsym(library, "quern_kokkos_version");
    }
    if (path && (!find || !version))
        printf("# no Kokkos: %s\n", library ? path : dlerror());
    if (!find || !version || b->assembly_of)
        return;
    printf("# %s\n", version());
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int place = 0; place < N_PLACES; place++)
            for (int layout = 0; layout < N_KOKKOS_LAYOUTS; layout++) {
                char name[64];
                snprintf(name, sizeof name, "kokkos/%s/%s/%s", cases[n].body.name, places[place],
                         layouts[layout]);
                bool is_there = find(cases[n].body.name, layout, 0) &&
                                (place != POWER || layout == KOKKOS_MIXED);
                if (is_there && bench_wants(b, name))
                    run_case(b, name, &cases[n], layout, cases[n].edge[place], find);
            }
}
