/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_calls.c: calls of the stub driver: devices, contexts, streams, events, memory, copies.
 */
#define _GNU_SOURCE
#include "stub_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- devices and contexts */

CALL(cuInit, (unsigned flags), {
    (void)flags;
    stub.is_initialised = true;
})
CALL(cuDriverGetVersion, (int *v), { *v = 12080; })
CALL(cuDeviceGetCount, (int *n), { *n = N_DEVICES; })
CALL(cuDeviceGet, (int *handle, int i), {
    result = i >= 0 && i < N_DEVICES ? 0 : 101;
    *handle = i;
})
CALL(cuDeviceGetName, (char *out, int n, int device),
     { snprintf(out, (size_t)n, "stub %d", device); })
CALL(cuDeviceCanAccessPeer, (int *out, int device, int peer),
     { *out = stub.are_peers && device != peer; })
CALL(cuCtxEnablePeerAccess, (void *other, unsigned flags), {
    if (!other || flags || !stub.are_peers)
        stub_misuse("no context", self);
})
CALL(cuDeviceGetUuid_v2, (unsigned char *out, int device), { memset(out, device + 1, 16); })
CALL(cuDeviceTotalMem_v2, (size_t * out, int device), {
    (void)device;
    *out = (size_t)1 << 34;
})
CALL(cuDeviceGetAttribute, (int *out, int attribute, int device), {
    (void)device;
    *out = attribute == 75   ? 9
           : attribute == 76 ? 0
           : attribute == 11 ? INT32_MAX
           : attribute == 16 ? 4
                             : 1;
})
CALL(cuDevicePrimaryCtxRetain, (void **out, int device), {
    stub.primary[device].device = device;
    stub.primary[device].retained++;
    stub.live[STUB_CONTEXTS]++;
    *out = &stub.primary[device];
})
API int cuDevicePrimaryCtxRelease_v2(int device);
API int cuDevicePrimaryCtxRelease_v2(int device)
{
    pthread_mutex_lock(&stub.lock);
    int result = stub_count_call("cuDevicePrimaryCtxRelease_v2"); /* a lost one is given up, too */
    if (--stub.primary[device].retained < 0)
        stub_misuse("released more often than retained", "context");
    stub.live[STUB_CONTEXTS]--;
    pthread_mutex_unlock(&stub.lock);
    return result;
}
CALL(cuCtxGetCurrent, (void **out), { *out = stub_current(); })
CALL(cuCtxPushCurrent_v2, (void *c), { stub_push(c); })
CALL(cuCtxCreate_v2, (void **out, unsigned flags, int device), {
    (void)flags;
    stub.other.device = device;
    stub_push(&stub.other);
    *out = &stub.other;
})
API int cuCtxPopCurrent_v2(void **out);
API int cuCtxPopCurrent_v2(void **out)
{
    stub_count_call("cuCtxPopCurrent_v2");
    *out = stub_current(); /* works in a lost context, too */
    stub_pop();
    return 0;
}
CALL(cuCtxGetDevice, (int *out), { NEED_CONTEXT *out = stub_current()->device; })
CALL(cuCtxSynchronize, (void), {
    NEED_CONTEXT
    {
        stub_run_all();
        result = stub.lost;
    }
})

/* ---------------------------------------------------------------- streams and events */

CALL(cuStreamCreate, (void **out, unsigned flags), {
    (void)flags;
    NEED_CONTEXT
    {
        stream *s = calloc(1, sizeof *s);
        s->c = stub_current();
        s->last = &s->first;
        s->next = stub.streams;
        stub.streams = s;
        stub.live[STUB_STREAMS]++;
        *out = s;
    }
})
CALL(cuStreamDestroy_v2, (void *handle), {
    stream *s = stub_stream_of(handle, self);
    s->is_dead = true; /* its work goes on */
    stub.live[STUB_STREAMS]--;
})
CALL(cuStreamSynchronize, (void *handle), {
    stub_run_to(stub_stream_of(handle, self), INT64_MAX);
    result = stub.lost;
})
CALL(cuStreamQuery, (void *handle), {
    result = stub_stream_of(handle, self)->first ? NOT_READY : 0; })
CALL(cuStreamWaitEvent, (void *handle, void *e, unsigned flags), {
    (void)flags;
    const event *at = e;
    op o = {.kind = OP_WAIT, .wait_for = at->s, .position = at->position};
    if (at->is_recorded)
        result = stub_issue(handle, &o, self);
})
CALL(cuStreamGetCtx, (void *handle, void **out), {
    stream *s = handle;
    *out = s ? s->c : stub_current();
})
CALL(cuEventCreate, (void **out, unsigned flags), {
    NEED_CONTEXT
    {
        event *e = stub_new_object(sizeof *e);
        e->c = stub_current();
        e->is_timed = !(flags & 2);
        stub.live[STUB_EVENTS]++;
        *out = e;
    }
})
CALL(cuEventDestroy_v2, (void *e), {
    (void)e;
    stub.live[STUB_EVENTS]--;
})
CALL(cuEventRecord, (void *e, void *handle), {
    event *at = e;
    at->s = stub_stream_of(handle, self);
    at->position = at->s->issued;
    at->is_recorded = true;
})
CALL(cuEventQuery, (void *e), {
    event *at = e;
    if (at->is_recorded && at->s->executed < at->position) {
        result = NOT_READY;
        stub_run_to(at->s, at->s->executed + 1); /* some progress */
    }
})
CALL(cuEventSynchronize, (void *e), {
    event *at = e;
    if (at->is_recorded)
        stub_run_to(at->s, at->position);
    result = stub.lost;
})
CALL(cuEventElapsedTime, (float *out, void *a, void *b), {
    const event *first = a;
    const event *second = b;
    result = first->is_timed && second->is_timed ? 0 : BAD_HANDLE;
    *out = 1.5f;
})

/* ---------------------------------------------------------------- allocation */

CALL(cuMemAlloc_v2, (ptr * out, size_t bytes), {
    NEED_CONTEXT result = stub_new_block(out, bytes, BLOCK_DEVICE); })
CALL(cuMemFree_v2, (ptr p), {
    stub_run_all();
    result = stub_free_block((void *)(uintptr_t)p, self);
})
CALL(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), {
    ptr p = 0;
    (void)flags;
    NEED_CONTEXT result = stub_new_block(&p, bytes, BLOCK_PINNED);
    *out = (void *)(uintptr_t)p;
})
CALL(cuMemFreeHost, (void *p), { result = stub_free_block(p, self); })
CALL(cuMemAllocManaged, (ptr * out, size_t bytes, unsigned flags), {
    (void)flags;
    NEED_CONTEXT result = stub_new_block(out, bytes, BLOCK_MANAGED);
})
CALL(cuMemPoolCreate, (void **out, const void *properties), {
    (void)properties;
    *out = stub_new_object(1);
    stub.live[STUB_POOLS]++;
})
CALL(cuMemPoolDestroy, (void *pool), {
    (void)pool;
    stub.live[STUB_POOLS]--;
})
CALL(cuMemPoolSetAttribute, (void *pool, int attribute, void *value), {
    (void)pool;
    (void)attribute;
    (void)value;
})
CALL(cuMemPoolSetAccess, (void *pool, const void *access, size_t n), {
    if (!pool || !access || n != 1 || !stub.are_peers)
        stub_misuse("no access to give", self);
})
CALL(cuMemPoolTrimTo, (void *pool, size_t keep), {
    (void)pool;
    (void)keep;
})
CALL(cuMemAllocFromPoolAsync, (ptr * out, size_t bytes, void *pool, void *handle), {
    (void)pool;
    stub_stream_of(handle, self);
    result = stub_new_block(out, bytes, BLOCK_DEVICE);
})
CALL(cuMemFreeAsync, (ptr p, void *handle), {
    op o = {.kind = OP_FREE, .dst = (char *)(uintptr_t)p};
    result = stub_issue(handle, &o, self);
})
CALL(cuPointerGetAttributes, (unsigned n, int *attributes, void **data, ptr p), {
    const block *b = stub_find_block((void *)(uintptr_t)p);
    b = b && b->is_free ? NULL : b;
    for (unsigned i = 0; i < n; i++) {
        if (attributes[i] == 2)
            *(unsigned *)data[i] = !b ? 0 : b->kind == BLOCK_PINNED ? 1 : 2;
        else if (attributes[i] == 8)
            *(unsigned *)data[i] = b && b->kind == BLOCK_MANAGED;
        else if (attributes[i] == 9)
            *(int *)data[i] = b ? b->device : -2;
        else if (attributes[i] == 10)
            *(unsigned *)data[i] = b && b->kind != BLOCK_MAPPED;
        else if (attributes[i] == 11)
            *(ptr *)data[i] = b ? (ptr)(uintptr_t)b->at : 0;
        else if (attributes[i] == 12)
            *(size_t *)data[i] = b ? b->bytes : 0;
        else if (attributes[i] == 17)
            *(void **)data[i] = NULL;
    }
})

/* ---------------------------------------------------------------- copies */

CALL(cuMemcpyAsync, (ptr dst, ptr src, size_t bytes, void *handle), {
    op o = {.kind = OP_COPY,
            .dst = (char *)(uintptr_t)dst,
            .src = (char *)(uintptr_t)src,
            .bytes = bytes,
            .height = 1,
            .depth = 1};
    result = stub_issue_copy(o, handle, self);
})
CALL(cuMemcpyPeerAsync,
     (ptr dst, void *dst_context, ptr src, void *src_context, size_t bytes, void *handle), {
    op o = {.kind = OP_COPY,
            .dst = (char *)(uintptr_t)dst,
            .src = (char *)(uintptr_t)src,
            .bytes = bytes,
            .height = 1,
            .depth = 1};
    if (!dst_context || !src_context)
        stub_misuse("no context", self);
    result = stub_issue_copy(o, handle, self);
})

/* As in cuda.h. */
typedef struct copy2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    ptr src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    ptr dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width, height;
} copy2d;
typedef struct copy3d {
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    ptr src_device;
    void *src_array, *src_reserved;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    ptr dst_device;
    void *dst_array, *dst_reserved;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
} copy3d;

enum { TYPE_HOST = 1 };

/* A copy but for its height and depth, and where its rows begin. */
#define COPY_OF(c)                                                                                 \
    {                                                                                              \
        .kind = OP_COPY,                                                                           \
        .dst = (c)->dst_type == TYPE_HOST ? (c)->dst_host : (char *)(uintptr_t)(c)->dst_device,    \
        .src = (c)->src_type == TYPE_HOST ? (c)->src_host : (char *)(uintptr_t)(c)->src_device,    \
        .bytes = (c)->width, .dst_pitch = (c)->dst_pitch, .src_pitch = (c)->src_pitch,             \
        .height = (c)->height, .depth = 1                                                          \
    }

CALL(cuMemcpy2DAsync_v2, (const copy2d *c, void *handle), {
    op o = COPY_OF(c);
    result = c->dst_pitch < c->width || c->src_pitch < c->width ? BAD_VALUE
                                                                : stub_issue_copy(o, handle, self);
})
CALL(cuMemcpy3DAsync_v2, (const copy3d *c, void *handle), {
    op o = COPY_OF(c);
    o.dst_height = c->dst_height;
    o.src_height = c->src_height;
    o.depth = c->depth;
    if (c->dst_pitch < c->width || c->src_pitch < c->width || c->dst_height < c->height ||
        c->src_height < c->height)
        result = BAD_VALUE;
    else
        result = stub_issue_copy(o, handle, self);
})

static int issue_set(ptr p, unsigned value, int bytes, size_t n, void *handle, const char *who)
{
    op o = {.kind = OP_SET,
            .dst = (char *)(uintptr_t)p,
            .value = value,
            .value_bytes = bytes,
            .bytes = n};
    return stub_issue(handle, &o, who);
}
CALL(cuMemsetD8Async, (ptr p, unsigned char v, size_t n, void *s),
     { result = issue_set(p, v, 1, n, s, self); })
CALL(cuMemsetD16Async, (ptr p, unsigned short v, size_t n, void *s),
     { result = issue_set(p, v, 2, n, s, self); })
CALL(cuMemsetD32Async, (ptr p, unsigned v, size_t n, void *s),
     { result = issue_set(p, v, 4, n, s, self); })
