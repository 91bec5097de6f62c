/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda.c: devices, streams, marks, memory of CUDA spaces and launches on them, on the stub
 * driver: what is right, what is refused, and that nothing is used after it was freed, also where
 * work waits.
 */
#define _GNU_SOURCE
#include "tests/unit/gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

enum { N = 300 };

static const stub_control *stub;

static void test_no_driver(void)
{
    const qn_context_options o = {.bytes = sizeof o, .cuda_driver = "/nowhere/libcuda.so.1"};
    qn_context *c = context_with(&o);
    qn_stream *s = NULL;
    qn_error err = {0};
    int n = 7;
    tap_ok(qn_cuda_device_count(c, &n, &err) == QN_ERR_NOT_AVAILABLE && n == 7,
           "no driver: not available");
    tap_contains(err.message, "/nowhere/libcuda.so.1", "... and why");
    tap_ok(strncmp(err.message, "qn_cuda_device_count: ", 22) == 0, "... and who");
    tap_ok(qn_stream_new(c, 0, &s, &err) == QN_ERR_NOT_AVAILABLE && !s, "no driver, no stream");
    const qn_alloc_options device = {.bytes = sizeof device, .label = "x", .space = QN_SPACE_CUDA};
    qn_view_type type;
    qn_view v = {0};
    int64_t extent = 4;
    qn_view_type_init(QN_F32, 1, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = QN_SPACE_CUDA;
    tap_ok(qn_view_create(c, &type, 1, &extent, &device, &v, &err) == QN_ERR_NOT_AVAILABLE,
           "no driver, no view: %s", err.message);
    tap_ok(qn_view_create(NULL, &type, 1, &extent, &device, &v, &err) == QN_ERR_ARGUMENT,
           "no context: %s", err.message);
    qn_context_release(c);
}

static void test_devices(void)
{
    qn_context *c = stub_context();
    qn_cuda_device d;
    qn_error err = {0};
    int n = 0;
    tap_ok(qn_cuda_device_count(c, &n, &err) == QN_OK && n == 2, "two devices");
    tap_ok(qn_cuda_device_info(c, 1, &d, sizeof d, &err) == QN_OK, "described");
    tap_is_str(d.name, "stub 1", "name");
    tap_ok(d.capability == 90 && d.isa == QN_ISA_SM90 && d.driver == 12080 && d.uuid[0] == 2,
           "numbers");
    tap_ok(qn_cuda_device_info(c, 2, &d, sizeof d, &err) == QN_ERR_ARGUMENT, "no third: %s",
           err.message);
    tap_ok(qn_cuda_device_count(NULL, &n, &err) == QN_ERR_ARGUMENT &&
               qn_cuda_device_info(c, 0, NULL, sizeof d, &err) == QN_ERR_ARGUMENT,
           "NULL is refused");
    tap_ok(qn_cuda_trim(c, 0, &err) == QN_OK, "trim");
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of devices");
}

/** The context that is current for the caller. */
static void *current_context(void)
{
    void *now = NULL, *symbol = dlsym(dlopen(STUB_PATH, RTLD_NOW), "cuCtxGetCurrent");
    int (*get)(void **);
    memcpy(&get, &symbol, sizeof get);
    get(&now);
    return now;
}

static void test_streams(void)
{
    qn_context *c = stub_context(), *other = stub_context();
    qn_stream *a = NULL, *b = NULL, *own = NULL, *wrapped = NULL;
    qn_mark *m = NULL, *end = NULL, *plain = NULL;
    qn_error err = {0};
    bool done = false;
    double ms = 0;
    tap_ok(qn_stream_new(c, 0, &a, &err) == QN_OK && qn_stream_new(c, 1, &b, &err) == QN_OK,
           "streams on two devices");
    tap_ok(qn_stream_device(a) == 0 && qn_stream_device(b) == 1 && qn_stream_handle(a),
           "their devices");
    tap_ok(qn_stream_default(c, &own, &err) == QN_OK && qn_stream_device(own) == 0,
           "the default stream");
    tap_ok(qn_stream_wrap(c, qn_stream_handle(a), &wrapped, &err) == QN_OK &&
               qn_stream_device(wrapped) == 0,
           "a stream of the host's");
    tap_ok(qn_stream_mark(a, 1, &m, &err) == QN_OK && qn_stream_after(b, m, &err) == QN_OK,
           "a mark across devices");
    tap_ok(qn_mark_wait(m, &err) == QN_OK && qn_mark_is_done(m, &done, &err) == QN_OK && done,
           "is reached");
    tap_ok(qn_stream_mark(a, 1, &end, &err) == QN_OK &&
               qn_mark_milliseconds(m, end, &ms, &err) == QN_OK && ms == 1.5,
           "milliseconds");
    tap_ok(qn_stream_mark(a, 0, &plain, &err) == QN_OK &&
               qn_mark_milliseconds(m, plain, &ms, &err) == QN_ERR_ARGUMENT,
           "not of a mark that is not timed: %s", err.message);
    tap_ok(qn_stream_fence(a, &err) == QN_OK && qn_stream_is_done(a, &done, &err) == QN_OK && done,
           "fence");
    tap_ok(current_context() == NULL, "no context was left current");
    qn_stream *foreign = NULL;
    tap_ok(qn_stream_new(other, 0, &foreign, &err) == QN_OK &&
               qn_stream_after(foreign, m, &err) == QN_ERR_ARGUMENT,
           "not between contexts: %s", err.message);
    tap_ok(qn_stream_new(c, 9, &foreign, &err) == QN_ERR_ARGUMENT, "no device 9: %s", err.message);
    qn_mark_release(m);
    qn_mark_release(end);
    qn_mark_release(plain);
    qn_stream_release(wrapped);
    qn_stream_release(own);
    qn_context_release(c);
    tap_ok(qn_stream_fence(a, &err) == QN_OK, "a stream outlives its context");
    qn_stream_release(a);
    qn_stream_release(b);
    qn_stream_release(foreign);
    qn_context_release(other);
    qn_mark_release(NULL);
    qn_stream_release(NULL);
    tap_ok(is_clean(stub), "nothing is left of streams");
}

/* ---------------------------------------------------------------- memory */

static void test_memory(void)
{
    qn_context *c = stub_context();
    qn_error err = {0};
    static const int spaces[] = {QN_SPACE_CUDA, QN_SPACE_CUDA_MANAGED, QN_SPACE_CUDA_PINNED};
    for (int i = 0; i < 3; i++) {
        qn_view v = vector_in(c, spaces[i], NULL, "v", QN_F32, N), part = {0};
        bool is_zero = v.data != NULL;
        for (int j = 0; is_zero && j < N; j++)
            is_zero = ((float *)v.data)[j] == 0; /* the stub's device memory is the host's */
        tap_ok(is_zero && v.space == spaces[i], "%s: zeroed", qn_space_name(spaces[i]));
        const qn_slice cut = {.kind = QN_RANGE, .begin = 2, .end = 5};
        tap_ok(qn_subview(&v, 1, &cut, &part, &err) == QN_OK && part.space == spaces[i],
               "a part is in the same space");
        void *at = NULL;
        int64_t first = 0;
        qn_status status = qn_view_at(&v, 1, &first, &at, &err);
        tap_ok(status == (spaces[i] == QN_SPACE_CUDA ? QN_ERR_SPACE : QN_OK),
               "%s: address of an element: %s", qn_space_name(spaces[i]),
               status ? err.message : "ok");
        qn_view wrapped = {0};
        int64_t extent = N, beyond = N + 100000;
        qn_layout l, long_one;
        qn_layout_right(1, &extent, &l, NULL);
        qn_layout_right(1, &beyond, &long_one, NULL);
        tap_ok(qn_cuda_wrap(c, spaces[i], "w", v.data, QN_F32, &l, 0, &wrapped, &err) == QN_OK &&
                   wrapped.space == spaces[i] && wrapped.device == v.device,
               "%s: wrapped", qn_space_name(spaces[i]));
        tap_ok(qn_cuda_wrap(c, spaces[i], "w", v.data, QN_F32, &long_one, 0, &wrapped, &err) ==
                   QN_ERR_BOUNDS,
               "beyond the end: %s", err.message);
        tap_ok(strstr(err.message, "leave their allocation") != NULL, "... it says of what");
        qn_layout one_more;
        int64_t more = N + 1;
        qn_layout_right(1, &more, &one_more, NULL);
        tap_ok(qn_cuda_wrap(c, spaces[i], "w", (char *)v.data + 4, QN_F32, &l, 0, &wrapped, &err) ==
                       QN_ERR_BOUNDS &&
                   qn_cuda_wrap(c, spaces[i], "w", v.data, QN_F32, &one_more, 0, &wrapped, &err) ==
                       QN_ERR_BOUNDS,
               "by one element: %s", err.message);
        float host[N];
        tap_ok(qn_cuda_wrap(c, spaces[i], "w", host, QN_F32, &l, 0, &wrapped, &err) == QN_ERR_SPACE,
               "host memory: %s", err.message);
        int other = spaces[(i + 1) % 3];
        status = qn_cuda_wrap(c, other, "w", v.data, QN_F32, &l, 0, &wrapped, &err);
        tap_ok(status == QN_ERR_SPACE, "%s as %s: %s", qn_space_name(spaces[i]),
               qn_space_name(other), err.message);
        qn_view_release(&part);
        qn_view_release(&v);
    }
    qn_stream *far = NULL;
    qn_view there = {0}, wrapped = {0};
    qn_stream_new(c, 1, &far, NULL);
    there = vector_in(c, QN_SPACE_CUDA, far, "there", QN_F32, N);
    tap_ok(there.device == 1 &&
               qn_cuda_wrap(c, QN_SPACE_CUDA, "w", there.data, QN_F32, &there.layout, 0, &wrapped,
                            &err) == QN_OK &&
               wrapped.device == 1,
           "memory of the second device says so: %d, wrapped %d", there.device, wrapped.device);
    qn_view_release(&there);
    qn_stream_release(far);
    qn_stream *s = NULL;
    qn_stream_new(c, 0, &s, &err);
    stub->defer(1);
    qn_view v = vector_in(c, QN_SPACE_CUDA, s, "v", QN_F32, N);
    tap_ok(((unsigned char *)v.data)[0] == 0xA5, "zeros of a stream come in its order");
    qn_stream_fence(s, &err);
    tap_ok(((unsigned char *)v.data)[0] == 0, "... by the fence");
    qn_stream_release(s);
    qn_view_release(&v);
    stub->defer(0);
    int64_t huge = INT64_C(1) << 40;
    qn_view_type type;
    const qn_alloc_options o = {.bytes = sizeof o, .label = "big", .space = QN_SPACE_CUDA};
    qn_view_type_init(QN_U8, 1, NULL, QN_FAMILY_ANY, &type, NULL);
    type.space = QN_SPACE_CUDA;
    tap_ok(qn_view_create(c, &type, 1, &huge, &o, &v, &err) == QN_ERR_MEMORY, "out of memory: %s",
           err.message);
    tap_contains(err.message, "view \"big\": no memory for 1099511627776 bytes in space cuda",
                 "label and bytes");
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of memory");
}

/* ---------------------------------------------------------------- launches */

static void put(const qn_view *v, float first, float step)
{
    for (int i = 0; i < v->layout.dim[0].extent; i++)
        ((float *)v->data)[i] = first + step * (float)i;
}

static bool is_series(const qn_view *v, float first, float step)
{
    for (int i = 0; i < v->layout.dim[0].extent; i++)
        if (((float *)v->data)[i] != first + step * (float)i) {
            tap_note("element %d is %g", i, (double)((float *)v->data)[i]);
            return false;
        }
    return true;
}

static void test_launch(void)
{
    qn_context *c = stub_context();
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_error err = {0};
    qn_stream *s = NULL;
    qn_stream_new(c, 0, &s, &err);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, N),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
    const qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s};
    put(&x, 1, 1);
    put(&y, 0, 0);
    tap_ok(qn_launch(c, k, 3, args, &o, &err) == QN_OK, "a launch: %s", err.message);
    tap_ok(qn_stream_fence(s, &err) == QN_OK && is_series(&y, 2, 2), "its result");
    tap_ok(qn_launch(c, k, 3, args, &o, &err) == QN_OK && qn_stream_fence(s, &err) == QN_OK &&
               is_series(&y, 4, 4),
           "again");
    tap_is_int(counters_of(c).hits, 1, "the second one was known");
    tap_is_int(stub->calls("cuLinkCreate_v2"), 1, "assembled once");
    tap_is_int(stub->calls("cuMemcpyAsync"), 0, "no fault record for what is proved");
    qn_call *call = NULL;
    tap_ok(qn_prepare(c, k, 3, args, &o, &call, &err) == QN_OK, "prepared: %s", err.message);
    tap_ok(qn_run(call, &err) == QN_OK && qn_stream_fence(s, &err) == QN_OK && is_series(&y, 6, 6),
           "and run");
    union {
        float f;
        uint32_t u;
    } three = {3};
    tap_ok(qn_call_set_scalar(call, 2, three.u, &err) == QN_OK && qn_run(call, &err) == QN_OK &&
               qn_stream_fence(s, &err) == QN_OK && is_series(&y, 9, 9),
           "with another scalar");
    qn_call_release(call);
    qn_code *f = NULL;
    tap_ok(qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
               qn_code_text(f, QN_DUMP_PTX, NULL, 0) > 100,
           "its PTX");
    qn_code_release(f);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_stream_release(s);
    qn_kernel_release(k);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of launches");
}

/** A refusal and a part of its message. */
static void refuse(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                   const qn_options *o, qn_status status, const char *part)
{
    qn_error err = {0};
    qn_status found = qn_launch(c, k, n, args, o, &err);
    tap_ok(found == status, "%s: %s", qn_status_name((int)status), err.message);
    tap_contains(err.message, part, "message");
}

static void test_refused(void)
{
    qn_context *c = stub_context();
    qn_kernel *k = kernel_of(COPY_TEXT), *shift = kernel_of(SHIFT_TEXT);
    qn_error err = {0};
    qn_stream *s = NULL, *far = NULL;
    qn_stream_new(c, 0, &s, &err);
    qn_stream_new(c, 1, &far, &err);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, N),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, N);
    qn_view host = vector_of(c, "h", QN_F32, N);
    const qn_arg good[] = {qn_arg_view(&x), qn_arg_view(&y)},
                 hosted[] = {qn_arg_view(&host), qn_arg_view(&y)},
                 same[] = {qn_arg_view(&y), qn_arg_view(&y)};
    qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s};
    refuse(c, k, 2, hosted, &o, QN_ERR_SPACE,
           "view \"h\": space host is not accessible to executor cuda");
    refuse(c, k, 2, good, NULL, QN_ERR_SPACE,
           "view \"x\": space cuda is not accessible to executor serial or threads");
    refuse(c, shift, 2, same, &o, QN_ERR_OVERLAP, "a GPU has no iteration order");
    o.stream = far;
    refuse(c, k, 2, good, &o, QN_ERR_SPACE,
           "view \"x\": its memory is on device 0, which device 1 of the stream does not reach");
    o.stream = s;
    o.executor = QN_SERIAL;
    refuse(c, k, 2, good, &o, QN_ERR_ARGUMENT, "option stream is for executor cuda");
    o.executor = QN_CUDA;
    o.engine = QN_ENGINE_INTERP;
    refuse(c, k, 2, good, &o, QN_ERR_ARGUMENT, "not on executor cuda");
    o.engine = QN_ENGINE_AUTO;
    o.isa = QN_ISA_V3;
    refuse(c, k, 2, good, &o, QN_ERR_TARGET, "compute capability 9.0");
    o.isa = 0;
    qn_view lie = host;
    lie.space = QN_SPACE_CUDA;
    lie.owner = NULL;
    const qn_arg lies[] = {qn_arg_view(&lie), qn_arg_view(&y)};
    refuse(c, k, 2, lies, &o, QN_ERR_SPACE, "no CUDA memory, the view is in space cuda");
    qn_context *other = stub_context();
    refuse(other, k, 2, good, &o, QN_ERR_ARGUMENT, "the stream is of another context");
    qn_context_release(other);
    tap_ok(qn_launch(c, k, 2, same, &o, &err) == QN_OK &&
               qn_launch(c, k, 2, good, &o, &err) == QN_OK &&
               qn_launch(c, k, 2, same, &o, &err) == QN_OK,
           "the same view twice is fine where no iteration sees another: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&host);
    qn_stream_release(s);
    qn_stream_release(far);
    qn_kernel_release(k);
    qn_kernel_release(shift);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of refusals");
}

/* ---------------------------------------------------------------- cancelling */

static int32_t cancel_flag;
static int64_t n_until_cancelled;

/** Runs nothing; the host changes its mind when so many kernels were launched. */
static bool run_and_cancel(const stub_kernel *k)
{
    (void)k;
    if (--n_until_cancelled == 0)
        __atomic_store_n(&cancel_flag, 1, __ATOMIC_RELAXED);
    return true;
}

static int32_t wants_end(void *arg)
{
    (void)arg;
    return 1;
}

static void test_cancel(void)
{
    qn_context *c = stub_context();
    qn_kernel *k = kernel_of(STEPS_TEXT);
    qn_stream *s = NULL;
    qn_call *call = NULL;
    qn_error err = {0};
    qn_stream_new(c, 0, &s, &err);
    qn_view u = vector_in(c, QN_SPACE_CUDA, s, "u", QN_F64, N);
    const qn_arg args[] = {qn_arg_view(&u), qn_arg_int(QN_I64, 1000)},
                 endless[] = {args[0], qn_arg_int(QN_I64, INT64_C(1) << 40)};
    qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s, .cancel = &cancel_flag};
    stub->run_with(run_and_cancel);
    stub->reset();
    n_until_cancelled = 3;
    qn_status status = qn_launch(c, k, 2, args, &o, &err);
    tap_ok(status == QN_ERR_CANCELLED && stub->calls("cuLaunchKernel") == 3,
           "a flag ends a launch of 1000 steps after the third");
    tap_is_str(err.message,
               "qn_launch: kernel \"steps\": cancelled before index 3 of sequential dimension 0",
               "... and says where");
    cancel_flag = 0;
    tap_is_int(qn_prepare(c, k, 2, args, &o, &call, &err), QN_OK, "a prepared call of it");
    stub->reset();
    n_until_cancelled = 5;
    tap_ok(qn_run(call, &err) == QN_ERR_CANCELLED && stub->calls("cuLaunchKernel") == 5,
           "... ends after the fifth");
    cancel_flag = 0;
    o = (qn_options){.bytes = sizeof o, .executor = QN_CUDA, .stream = s, .timeout_ns = 20000000};
    status = qn_launch(c, k, 2, endless, &o, &err);
    tap_ok(status == QN_ERR_CANCELLED, "a time limit ends a launch of 2^40 steps: %s", err.message);
    o = (qn_options){.bytes = sizeof o, .executor = QN_CUDA, .stream = s, .cancel_hook = wants_end};
    status = qn_launch(c, k, 2, endless, &o, &err);
    tap_ok(status == QN_ERR_CANCELLED, "... as does a function of the host: %s", err.message);
    qn_call_release(call);
    qn_view_release(&u);
    qn_stream_release(s);
    qn_kernel_release(k);
    qn_context_release(c);
    tap_ok(is_clean(stub), "nothing is left of what was cancelled");
}

/* ---------------------------------------------------------------- lines of work that goes on */

static void count_lines(void *arg, const qn_printed *line)
{
    *(int64_t *)arg += line->message ? 1 : line->n_lost;
}

static void *cancel_soon(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    __atomic_store_n(&cancel_flag, 1, __ATOMIC_RELAXED);
    return NULL;
}

/** A launch that prints is cancelled while its work waits: lines are read when that work is done.
 */
static void test_cancelled_lines(void)
{
    static const char text[] =
        "kernel \"lines\" {\n view x: f32[1]; %b: i64 = const 0; %n: i64 = extent x, 0;\n"
        " %i: i64 = parallel %b, %n; print \"at\" %i; %v: f32 = cast %i; store x[%i], %v;\n}\n";
    qn_context *c = stub_context();
    qn_kernel *k = kernel_of(text);
    qn_stream *s = NULL;
    qn_error err = {0};
    qn_stream_new(c, 0, &s, &err);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, 1 << 24), one = x;
    const qn_arg all[] = {qn_arg_view(&x)}, first[] = {qn_arg_view(&one)};
    int64_t n = 0;
    qn_options o = {.bytes = sizeof o,
                    .executor = QN_CUDA,
                    .stream = s,
                    .print = count_lines,
                    .print_arg = &n,
                    .specialize = QN_SPECIALIZE_DYNAMIC};
    pthread_t thread;
    one.layout.dim[0].extent = 4;
    tap_ok(qn_launch(c, k, 1, first, &o, &err) == QN_OK && n == 4, "4 lines on a GPU: %s",
           err.message);
    stub->defer(1);
    stub->reset();
    n = 0;
    o.cancel = &cancel_flag;
    if (pthread_create(&thread, NULL, cancel_soon, NULL) != 0)
        tap_ok(false, "test thread");
    qn_status status = qn_launch(c, k, 1, all, &o, &err);
    pthread_join(thread, NULL);
    tap_ok(status == QN_ERR_CANCELLED, "a flag ends a launch whose work waits: %s", err.message);
    tap_ok(n > 0 && n == stub->calls("cuLaunchKernel"),
           "the lines of all that was given come: %lld", (long long)n);
    stub->defer(0);
    cancel_flag = 0;
    qn_view_release(&x);
    qn_stream_release(s);
    qn_kernel_release(k);
    qn_context_release(c);
    tap_ok(is_clean(stub), "and nothing is left");
}

int main(void)
{
    char reason[256];
    stub = stub_open(STUB_PATH);
    if (!stub || !has_x86(reason, sizeof reason)) {
        tap_skip(stub ? reason : "no stub driver");
        return tap_done();
    }
    test_no_driver();
    test_devices();
    test_streams();
    test_memory();
    test_launch();
    test_refused();
    test_cancelled_lines();
    test_cancel();
    return tap_done();
}
