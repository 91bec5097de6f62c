/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda_tables.c: index lists and MultiViews as arguments of kernels on a GPU, and in copies:
 * lists that change or go right after a launch, lists in device memory, members with homes of their
 * own. On the stub driver, with work that waits, and on a GPU where there is one. What kernels make
 * of them is tested by the cases list_*.case and multi_*.case.
 */
#include "ir/ir.h"
#include "tests/unit/gpu.h"

enum { N = 300 };

/** y[i] = x[i] */
#define COPY64_TEXT                                                                                \
    "kernel \"copy\" {\n view x: f64[1]; view y: f64[1];\n %1: i64 = extent y, 0; %0: i64 = "      \
    "const 0;\n"                                                                                   \
    " %3: i64 = parallel %0, %1; %5: f64 = load x[%3]; store y[%3], %5;\n}\n"
/** y[i,j] = x[i,j] */
#define COPY2_TEXT                                                                                 \
    "kernel \"copy2\" {\n view x: f64[2]; view y: f64[2];\n %0: i64 = const 0; %1: i64 = extent "  \
    "y, 0;\n"                                                                                      \
    " %2: i64 = extent y, 1; %3: i64 = parallel %0, %1; %4: i64 = parallel %0, %2;\n"              \
    " %5: f64 = load x[%3, %4]; store y[%3, %4], %5;\n}\n"

typedef struct things {
    qn_context *c;
    qn_stream *s, *other;
    qn_kernel *copy, *copy2;
    qn_view x, y, host, list; /* x holds 0, 1, ...; the list is the host's */
} things;

static qn_options on(qn_stream *s)
{
    return (qn_options){.bytes = sizeof(qn_options), .executor = QN_CUDA, .stream = s};
}

static void make_things(things *t, qn_context *c)
{
    qn_error err = {0};
    *t = (things){.c = c, .copy = kernel_of(COPY64_TEXT), .copy2 = kernel_of(COPY2_TEXT)};
    tap_ok(qn_stream_new(c, 0, &t->s, &err) == QN_OK &&
               qn_stream_new(c, 0, &t->other, &err) == QN_OK,
           "streams %s", err.message);
    t->x = vector_in(c, QN_SPACE_CUDA, t->s, "x", QN_F64, N);
    t->y = vector_in(c, QN_SPACE_CUDA, t->s, "y", QN_F64, N);
    t->host = vector_in(c, QN_SPACE_HOST, NULL, "host", QN_F64, N);
    t->list = vector_in(c, QN_SPACE_HOST, NULL, "list", QN_I64, N);
    for (int i = 0; i < N; i++)
        ((double *)t->host.data)[i] = i;
    tap_ok(qn_stream_copy(t->s, &t->x, &t->host, &err) == QN_OK, "filled %s", err.message);
}

static void release_things(things *t)
{
    qn_view_release(&t->x);
    qn_view_release(&t->y);
    qn_view_release(&t->host);
    qn_view_release(&t->list);
    qn_kernel_release(t->copy);
    qn_kernel_release(t->copy2);
    qn_stream_release(t->s);
    qn_stream_release(t->other);
}

static void fill_list(const qn_view *list, int64_t factor, int64_t first)
{
    for (int64_t i = 0; i < N; i++)
        ((int64_t *)list->data)[i] = (i * factor + first) % N;
}

/** x through a list. */
static qn_view through(const qn_view *x, const qn_view *list)
{
    qn_error err = {0};
    qn_view v = *x;
    if (qn_layout_list(&x->layout, 0, list, &v.layout, &err) != QN_OK)
        tap_ok(false, "list: %s", err.message);
    qn_view made = qn_view_copy(&v);
    qn_layout_release(&v.layout);
    return made;
}

/** Waits, then counts the elements of y that are not (i * factor + first) % N. */
static int count_wrong(things *t, int64_t factor, int64_t first)
{
    qn_error err = {0};
    int n = 0;
    if (qn_stream_copy(t->s, &t->host, &t->y, &err) != QN_OK ||
        qn_stream_fence(t->s, &err) != QN_OK) {
        tap_note("%s", err.message);
        return N;
    }
    for (int64_t i = 0; i < N; i++)
        n += ((double *)t->host.data)[i] != (double)((i * factor + first) % N);
    return n;
}

/* ---------------------------------------------------------------- lists */

static void test_host_list(things *t)
{
    qn_error err = {0};
    qn_view v = through(&t->x, &t->list);
    qn_call *call = NULL;
    qn_graph *graph = NULL;
    const qn_arg args[] = {qn_arg_view(&v), qn_arg_view(&t->y)};
    const qn_options o = on(t->s);
    fill_list(&t->list, 7, 3);
    tap_ok(qn_launch(t->c, t->copy, 2, args, &o, &err) == QN_OK, "a list of the host's %s",
           err.message);
    fill_list(&t->list, 0, 0);
    tap_is_int(count_wrong(t, 7, 3), 0, "... as it was at the launch");
    fill_list(&t->list, 11, 5);
    tap_ok(qn_launch(t->c, t->copy, 2, args, &o, &err) == QN_OK, "the launch is known %s",
           err.message);
    tap_is_int(count_wrong(t, 11, 5), 0, "... the list changed");
    tap_ok(qn_prepare(t->c, t->copy, 2, args, &o, &call, &err) == QN_OK, "prepared %s",
           err.message);
    tap_ok(qn_graph_new(t->c, 1, &call, &graph, &err) == QN_ERR_UNSUPPORTED &&
               strstr(err.message, "list \"list\" is in host memory"),
           "no graph of it: %s", err.message);
    qn_view_release(&v);
    for (int64_t i = 0; i < 3; i++) {
        fill_list(&t->list, 7, i);
        tap_ok(qn_run(call, &err) == QN_OK, "run %d %s", (int)i, err.message);
        fill_list(&t->list, 0, 0);
        tap_is_int(count_wrong(t, 7, i), 0, "... with the list as it was");
    }
    tap_ok(qn_run(call, &err) == QN_OK, "run %s", err.message);
    qn_call_release(call);
    tap_is_int(count_wrong(t, 0, 0), 0, "a call that was released");
}

static void test_strided_list(things *t)
{
    qn_error err = {0};
    const int64_t n = N / 3, stride = -3;
    qn_view every = t->list, y = t->y;
    qn_layout_strided(1, &n, &stride, &every.layout, &err);
    every.data = (int64_t *)t->list.data + 3 * (n - 1);
    y.layout.dim[0].extent = n;
    qn_view v = through(&t->x, &every);
    const qn_arg args[] = {qn_arg_view(&v), qn_arg_view(&y)};
    const qn_options o = on(t->other);
    fill_list(&t->list, 1, 0);
    tap_ok(qn_launch(t->c, t->copy, 2, args, &o, &err) == QN_OK &&
               qn_stream_fence(t->other, &err) == QN_OK,
           "a list backwards, on another stream %s", err.message);
    qn_stream_copy(t->s, &t->host, &t->y, &err);
    qn_stream_fence(t->s, &err);
    int n_wrong = 0;
    for (int64_t i = 0; i < n; i++)
        n_wrong += ((double *)t->host.data)[i] != (double)(3 * (n - 1 - i));
    tap_is_int(n_wrong, 0, "... its values");
    qn_view_release(&v);
}

static void test_bad_list(things *t)
{
    qn_error on_gpu = {0}, on_host = {0}, err = {0};
    qn_view x = vector_in(t->c, QN_SPACE_HOST, NULL, "x", QN_F64, N);
    qn_view v = through(&t->x, &t->list), w = through(&x, &t->list);
    const qn_arg args[] = {qn_arg_view(&v), qn_arg_view(&t->y)},
                 same[] = {qn_arg_view(&w), qn_arg_view(&t->host)};
    const qn_options o = on(t->s);
    fill_list(&t->list, 1, 0);
    ((int64_t *)t->list.data)[200] = INT64_MIN;
    ((int64_t *)t->list.data)[100] = N;
    tap_ok(qn_launch(t->c, t->copy, 2, args, &o, &err) == QN_OK, "a bad list %s", err.message);
    fill_list(&t->list, 1, 0);
    tap_is_int(qn_stream_fence(t->s, &on_gpu), QN_ERR_BOUNDS, "... the fence tells");
    ((int64_t *)t->list.data)[100] = N;
    tap_is_int(qn_launch(t->c, t->copy, 2, same, NULL, &on_host), QN_ERR_BOUNDS,
               "... as on the host");
    tap_is_str(on_gpu.message, on_host.message, "... with the same message");
    tap_ok(qn_deep_copy(t->c, &t->host, &v, &err) == QN_ERR_BOUNDS &&
               strstr(err.message, "holds 300 at position 100"),
           "a deep copy tells itself: %s", err.message);
    tap_ok(qn_stream_fence(t->s, &err) == QN_OK, "... and nobody else %s", err.message);
    fill_list(&t->list, 7, 0);
    tap_ok(qn_deep_copy(t->c, &t->host, &v, &err) == QN_OK && ((double *)t->host.data)[2] == 14,
           "a good one %s", err.message);
    ((int64_t *)t->list.data)[5] = 7;
    tap_ok(qn_deep_copy(t->c, &v, &t->host, &err) == QN_ERR_NOT_INJECTIVE,
           "a list written through: %s", err.message);
    qn_view_release(&v);
    qn_view_release(&w);
    qn_view_release(&x);
}

/** Lists in memory that the GPU reaches are read there. */
static void test_device_list(things *t, int space)
{
    qn_error err = {0};
    qn_view list = vector_in(t->c, space, space == QN_SPACE_CUDA ? t->s : NULL, "there", QN_I64, N),
            x = t->host;
    qn_graph *graph = NULL;
    qn_call *call = NULL;
    void *at;
    const int64_t zero = 0;
    fill_list(&t->list, 13, 1);
    tap_ok(qn_deep_copy(t->c, &list, &t->list, &err) == QN_OK, "a list in space %s %s",
           qn_space_name(space), err.message);
    qn_view v = through(&t->x, &list), w = through(&x, &list);
    const qn_arg args[] = {qn_arg_view(&v), qn_arg_view(&t->y)},
                 host[] = {qn_arg_view(&w), qn_arg_view(&t->host)};
    const qn_options o = on(t->s);
    tap_ok(qn_launch(t->c, t->copy, 2, args, &o, &err) == QN_OK, "launched %s", err.message);
    tap_is_int(count_wrong(t, 13, 1), 0, "... its values");
    tap_ok(qn_prepare(t->c, t->copy, 2, args, &o, &call, &err) == QN_OK, "prepared %s",
           err.message);
    tap_ok(qn_graph_new(t->c, 1, &call, &graph, &err) != QN_OK || graph, "a graph, or not: %s",
           err.message);
    if (space == QN_SPACE_CUDA) {
        tap_ok(qn_launch(t->c, t->copy, 2, host, NULL, &err) == QN_ERR_SPACE, "not on the host: %s",
               err.message);
        tap_ok(qn_view_at(&w, 1, &zero, &at, &err) == QN_ERR_SPACE &&
                   strstr(err.message, "list \"there\" is in space cuda"),
               "nor there: %s", err.message);
        tap_ok(qn_deep_copy(t->c, &v, &t->host, &err) == QN_OK, "written through, unchecked %s",
               err.message);
    }
    qn_view_release(&v);
    qn_view_release(&w);
    qn_view_release(&list);
    tap_ok(qn_run(call, &err) == QN_OK, "run after all of it was released %s", err.message);
    qn_call_release(call);
    qn_graph_release(graph);
    count_wrong(t, 0, 0);
    for (int i = 0; i < N; i++)
        ((double *)t->host.data)[i] = i;
    qn_stream_copy(t->s, &t->x, &t->host, &err);
}

/* ---------------------------------------------------------------- MultiViews */

/** A MultiView of n vectors on homes in turn, which it alone keeps. */
static qn_view members(things *t, int n, int64_t extent)
{
    qn_view member[8] = {0}, m = {0};
    qn_error err = {0};
    for (int i = 0; i < n; i++)
        member[i] =
            vector_in(t->c, QN_SPACE_CUDA, i % 2 ? t->other : t->s, "member", QN_F64, extent);
    tap_ok(qn_view_multi("several", n, member, 0, &m, &err) == QN_OK,
           "a MultiView of %d members %s", n, err.message);
    for (int i = 0; i < n; i++)
        qn_view_release(&member[i]);
    return m;
}

static void test_members(things *t)
{
    enum { MEMBERS = 5, EACH = 40 };
    qn_error err = {0};
    const int64_t extents[] = {MEMBERS, EACH};
    double from[MEMBERS][EACH], to[MEMBERS][EACH];
    qn_view a, b, m = members(t, MEMBERS, EACH), r = members(t, MEMBERS, EACH);
    qn_layout l;
    qn_graph *graph = NULL;
    qn_call *call = NULL;
    for (int i = 0; i < MEMBERS * EACH; i++)
        from[i / EACH][i % EACH] = i;
    qn_layout_right(2, extents, &l, &err);
    qn_view_wrap("from", from, QN_F64, &l, 0, &a, &err);
    qn_view_wrap("to", to, QN_F64, &l, 0, &b, &err);
    tap_ok(qn_deep_copy(t->c, &m, &a, &err) == QN_OK, "into members %s", err.message);
    tap_ok(qn_deep_copy(t->c, &b, &m, &err) == QN_OK, "out of them %s", err.message);
    tap_ok(memcmp(from, to, sizeof from) == 0, "... the same");
    const qn_arg args[] = {qn_arg_view(&m), qn_arg_view(&r)};
    const qn_options o = on(t->s);
    tap_ok(qn_prepare(t->c, t->copy2, 2, args, &o, &call, &err) == QN_OK, "prepared %s",
           err.message);
    tap_ok(qn_graph_new(t->c, 1, &call, &graph, &err) == QN_OK, "a graph %s", err.message);
    tap_ok(qn_launch(t->c, t->copy2, 2, args, &o, &err) == QN_OK &&
               qn_stream_copy(t->s, &b, &r, &err) == QN_OK &&
               qn_stream_fence(t->s, &err) == QN_OK && memcmp(from, to, sizeof from) == 0,
           "members to members %s", err.message);
    const qn_slice cut[2] = {{.kind = QN_RANGE, .begin = 1, .end = MEMBERS, .step = 2}};
    qn_view part = {0}, few = {0};
    tap_ok(qn_subview(&m, 2, cut, &part, &err) == QN_OK &&
               qn_subview(&b, 2, cut, &few, &err) == QN_OK,
           "every other member %s", err.message);
    memset(to, 0, sizeof to);
    tap_ok(qn_deep_copy(t->c, &few, &part, &err) == QN_OK &&
               memcmp(to[1], from[1], sizeof from[1]) == 0 &&
               memcmp(to[3], from[3], sizeof from[3]) == 0 && to[0][1] == 0 && to[2][1] == 0,
           "... of it a copy %s", err.message);
    qn_launch(t->c, t->copy2, 2, args, &o, &err);
    const qn_options there = on(t->other);
    tap_ok(qn_launch(t->c, t->copy2, 2, args, &there, &err) == QN_OK, "on the other stream %s",
           err.message);
    qn_view_release(&part);
    qn_view_release(&few);
    qn_view_release(&m);
    tap_ok(qn_run(call, &err) == QN_OK && qn_graph_run(graph, t->other, &err) == QN_OK,
           "and all was released %s", err.message);
    memset(to, 0, sizeof to);
    tap_ok(qn_deep_copy(t->c, &b, &r, &err) == QN_OK && memcmp(from, to, sizeof from) == 0,
           "the result %s", err.message);
    qn_view_release(&r);
    qn_call_release(call);
    qn_graph_release(graph);
}

/** Members where the GPU is not, and lists with members. */
static void test_refused(things *t)
{
    qn_error err = {0};
    qn_view member[2] = {t->host, t->host}, m = {0}, y = t->y;
    const int64_t extents[] = {2, N / 2}, n = N / 2;
    const qn_options o = on(t->s);
    member[1].data = (double *)t->host.data + n;
    member[0].layout.dim[0].extent = member[1].layout.dim[0].extent = n;
    qn_view_multi("far", 2, member, 0, &m, &err);
    qn_layout_right(2, extents, &y.layout, &err);
    const qn_arg args[] = {qn_arg_view(&m), qn_arg_view(&y)};
    tap_ok(qn_launch(t->c, t->copy2, 2, args, &o, &err) == QN_ERR_SPACE &&
               strstr(err.message, "space host is not accessible"),
           "members of the host: %s", err.message);
    qn_view_release(&m);
    member[0].space = member[1].space = QN_SPACE_CUDA; /* a lie */
    member[0].owner = member[1].owner = NULL;
    member[0].data = t->x.data;
    qn_view_multi("mixed", 2, member, 0, &m, &err);
    const qn_arg mixed[] = {qn_arg_view(&m), qn_arg_view(&y)};
    tap_ok(qn_launch(t->c, t->copy2, 2, mixed, &o, &err) == QN_ERR_SPACE,
           "a member that is no memory of the GPU's: %s", err.message);
    qn_view_release(&m);
    tap_ok(qn_stream_fence(t->s, &err) == QN_OK, "nothing happened %s", err.message);
}

/* ---------------------------------------------------------------- failures */

/** Launches, prepared calls and a copy with members and a list. */
static qn_status use_all(things *t, const qn_view *m, const qn_view *r, const qn_view *v,
                         qn_error *err)
{
    const qn_arg args[] = {qn_arg_view(m), qn_arg_view(r)},
                 listed[] = {qn_arg_view(v), qn_arg_view(&t->y)};
    qn_options o = on(t->s);
    qn_call *call = NULL, *second = NULL;
    qn_status status = qn_launch(t->c, t->copy2, 2, args, &o, err);
    if (status == QN_OK)
        status = qn_launch(t->c, t->copy, 2, listed, &o, err);
    o.stream = t->other;
    if (status == QN_OK)
        status = qn_prepare(t->c, t->copy, 2, listed, &o, &call, err);
    if (status == QN_OK)
        status = qn_prepare(t->c, t->copy2, 2, args, &o, &second, err);
    for (int i = 0; i < 2 && status == QN_OK; i++)
        status = qn_run(i ? second : call, err);
    if (status == QN_OK)
        status = qn_deep_copy(t->c, &t->host, v, err);
    qn_call_release(call);
    qn_call_release(second);
    return status;
}

/** Calls of the driver, and own allocations, fail at each of their uses. */
static void test_failures(const stub_control *stub)
{
    static const char *const calls[] = {
        "cuMemcpyAsync",     "cuMemAllocFromPoolAsync", "cuEventCreate", "cuEventRecord",
        "cuStreamWaitEvent", "cuLaunchKernel",          "cuMemFreeAsync"};
    enum { N_CALLS = sizeof calls / sizeof calls[0], MOST = 40 };
    int n_failed = 0, n_dirty = 0;
    for (int call = 0; call <= N_CALLS; call++)
        for (int nth = 1; nth <= MOST; nth++) {
            things t;
            qn_error err = {0};
            make_things(&t, stub_context());
            fill_list(&t.list, 1, 0);
            qn_view m = members(&t, 3, 20), r = members(&t, 3, 20), v = through(&t.x, &t.list);
            if (call < N_CALLS)
                stub->fail(calls[call], 1, nth);
            else
                qn__fail_allocation(nth, false);
            n_failed += use_all(&t, &m, &r, &v, &err) != QN_OK;
            stub->fail(NULL, 0, 0);
            qn__fail_allocation(0, false);
            qn_view_release(&m);
            qn_view_release(&r);
            qn_view_release(&v);
            qn_context *c = t.c;
            release_things(&t);
            qn_context_release(c);
            if (call < N_CALLS && strstr(calls[call], "Free"))
                stub->forget(STUB_BLOCKS);
            if (!is_clean(stub) && n_dirty++ == 0)
                tap_note("%s, use %d: %s", call < N_CALLS ? calls[call] : "allocation", nth,
                         err.message);
            stub->reset();
        }
    tap_ok(n_failed > 50 && n_dirty == 0, "%d failures, %d left something", n_failed, n_dirty);
}

static void test_all(qn_context *c)
{
    things t;
    make_things(&t, c);
    test_host_list(&t);
    test_strided_list(&t);
    test_bad_list(&t);
    test_device_list(&t, QN_SPACE_CUDA);
    test_device_list(&t, QN_SPACE_CUDA_PINNED);
    test_device_list(&t, QN_SPACE_CUDA_MANAGED);
    test_members(&t);
    test_refused(&t);
    release_things(&t);
}

int main(void)
{
    char reason[256];
    qn_error err = {0};
    int n = 0;
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    const stub_control *stub = stub_open(STUB_PATH);
    for (int deferred = 0; stub && deferred < 2; deferred++) {
        qn_context *c = stub_context();
        stub->defer(deferred);
        test_all(c);
        qn_context_release(c);
        stub->defer(0);
        tap_ok(is_clean(stub), "nothing is left");
        stub->reset();
    }
    if (stub)
        test_failures(stub);
    qn_context *c = context_with(NULL);
    if (qn_cuda_device_count(c, &n, &err) == QN_OK)
        test_all(c);
    else
        tap_skip(err.message);
    qn_context_release(c);
    return tap_done();
}
