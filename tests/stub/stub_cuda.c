/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_cuda.c: a CUDA driver without a GPU; see stub_cuda.h. What it keeps, errors, and what tests
 * may ask. Calls are in stub_calls.c and stub_code.c, the work that they do in stub_work.c.
 */
#define _GNU_SOURCE
#include "stub_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stub_state stub = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

static _Thread_local context *stack[64];
static _Thread_local int n_stack;

void stub_push(context *c)
{
    stack[n_stack++] = c;
}

void stub_pop(void)
{
    n_stack -= n_stack > 0;
}

typedef struct object {
    struct object *next;
    long long aligned[];
} object;
static object *objects;

void *stub_new_object(size_t bytes)
{
    object *o = calloc(1, sizeof *o + bytes);
    o->next = objects;
    objects = o;
    return o->aligned;
}

context *stub_current(void)
{
    return n_stack ? stack[n_stack - 1] : NULL;
}

void stub_misuse(const char *what, const char *name)
{
    if (!stub.misuse[0])
        snprintf(stub.misuse, sizeof stub.misuse, "%s: %s", name, what);
}

int stub_count_call(const char *name)
{
    int i = 0;
    while (i < stub.n_calls && strcmp(stub.call[i].name, name) != 0)
        i++;
    if (i == stub.n_calls && i < MOST_CALLS)
        stub.call[stub.n_calls++].name = name;
    stub.call[i].n++;
    if (stub.lost)
        return stub.lost;
    if (strcmp(stub.fail_name, name) == 0 && --stub.fail_nth == 0) {
        int r = stub.fail_result;
        bool is_fatal = r == 214 || r == 220 || r == 700 || r == 702 || r == 709 || r == 710 ||
                        (r >= 714 && r <= 719);
        stub.lost = is_fatal ? r : 0;
        return r;
    }
    return 0;
}

/* ---------------------------------------------------------------- errors */

#define ERRORS(X)                                                                                  \
    X(0, "CUDA_SUCCESS", "no error")                                                               \
    X(1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                                           \
    X(2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                                              \
    X(3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")                                     \
    X(34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library")                              \
    X(100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")                           \
    X(201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")                                 \
    X(218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed")                               \
    X(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",                                                   \
      "the provided PTX was compiled with an unsupported toolchain.")                              \
    X(400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")                                 \
    X(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered")               \
    X(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed")                              \
    X(719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")                               \
    X(999, "CUDA_ERROR_UNKNOWN", "unknown error")

static const struct {
    int number;
    const char *name, *text;
} errors[] = {
#define X(number, name, text) {number, name, text},
    ERRORS(X)
#undef X
};

static int describe(int result, bool wants_name, const char **out)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].number == result) {
            *out = wants_name ? errors[i].name : errors[i].text;
            return 0;
        }
    return BAD_VALUE;
}
API int cuGetErrorName(int result, const char **out);
API int cuGetErrorName(int result, const char **out)
{
    return describe(result, true, out);
}
API int cuGetErrorString(int result, const char **out);
API int cuGetErrorString(int result, const char **out)
{
    return describe(result, false, out);
}

/* ---------------------------------------------------------------- control */

static void control_fail(const char *name, int result, int nth)
{
    snprintf(stub.fail_name, sizeof stub.fail_name, "%s", name ? name : "");
    stub.fail_result = result;
    stub.fail_nth = nth;
}
static int64_t control_calls(const char *name)
{
    int64_t n = 0;
    for (int i = 0; i < stub.n_calls; i++)
        n += !name || strcmp(stub.call[i].name, name) == 0 ? stub.call[i].n : 0;
    return n;
}
static int64_t control_live(int kind)
{
    return stub.live[kind];
}
static void control_forget(int kind)
{
    stub.live[kind] = 0;
    for (int i = 0; kind == STUB_CONTEXTS && i < N_DEVICES; i++)
        stub.primary[i].retained = 0;
    for (int i = 0; kind == STUB_BLOCKS && i < stub.n_blocks; i++)
        stub.block[i].is_free = true;
}
static const char *control_misuse(void)
{
    return stub.misuse[0] ? stub.misuse : NULL;
}
static void drop_queue(stream *s)
{
    while (s->first) {
        op *o = s->first;
        s->first = o->next;
        stub_free_op(o);
    }
    s->last = &s->first;
    s->executed = s->issued;
}
static void control_reset(void)
{
    int n = 0;
    stub.lost = 0;
    stub.misuse[0] = stub.fail_name[0] = 0;
    for (int i = 0; i < stub.n_calls; i++)
        stub.call[i].n = 0;
    drop_queue(&stub.legacy);
    for (stream **link = &stub.streams; *link;) {
        stream *s = *link;
        drop_queue(s);
        if (s->is_dead) {
            *link = s->next;
            free(s);
        } else {
            link = &s->next;
        }
    }
    for (int i = 0; i < stub.n_blocks; i++) {
        if (stub.block[i].is_free)
            free(stub.block[i].at);
        else
            stub.block[n++] = stub.block[i];
    }
    stub.n_blocks = n;
}
static void control_defer(int on)
{
    stub.is_deferred = on != 0;
    if (!on)
        stub_run_all();
}
static void control_run_with(stub_runner run)
{
    stub.run = run;
}
static void control_peers(int on)
{
    stub.are_peers = on != 0;
}
static void *control_other_context(void)
{
    return &stub.other;
}

API extern const stub_control stub_control_table;
API const stub_control stub_control_table = {
    .fail = control_fail,
    .calls = control_calls,
    .live = control_live,
    .forget = control_forget,
    .misuse = control_misuse,
    .reset = control_reset,
    .defer = control_defer,
    .run_with = control_run_with,
    .peers = control_peers,
    .other_context = control_other_context,
};
