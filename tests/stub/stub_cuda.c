/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_cuda.c: the calls of the CUDA driver that Quern uses, without a GPU; see stub_cuda.h. Work goes into the queue of
 * its stream and runs at once, or when somebody waits. Freed memory is filled with a pattern and kept until `reset`, so
 * that its use is seen.
 */
#define _GNU_SOURCE
#include "stub_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef unsigned long long ptr;

enum { N_DEVICES = 2, MOST_CALLS = 128, MOST_BLOCKS = 65536, POISON = 0xDD };
enum { BAD_VALUE = 1, NO_MEMORY = 2, BAD_IMAGE = 200, BAD_CONTEXT = 201, BAD_PTX = 218, BAD_HANDLE = 400, NOT_READY = 600, ILLEGAL = 700 };
enum { BLOCK_DEVICE = 1, BLOCK_MANAGED, BLOCK_PINNED, BLOCK_MAPPED };

typedef struct context {
    int device, retained;
} context;

typedef struct block {
    char *at;
    size_t bytes;
    int kind, device;
    bool is_free;
} block;

typedef struct stream stream;
typedef struct event event;
typedef struct module {
    char *text;
} module;
typedef struct function {
    module *m;
    char name[32];
} function;

enum { OP_COPY, OP_COPY2D, OP_SET, OP_KERNEL, OP_WAIT, OP_FREE, OP_NOTHING };

typedef struct op {
    struct op *next;
    int kind;
    char *dst;
    const char *src;
    char *staged;
    size_t bytes, dst_pitch, src_pitch, dst_height, src_height, height, depth;
    unsigned value;
    int value_bytes;
    stream *wait_for;
    int64_t position;
    const function *f;
    unsigned blocks, threads[3], shared;
    size_t param_bytes;
} op;

struct stream {
    struct stream *next;
    context *c;
    op *first, **last;
    int64_t issued, executed;
    bool is_dead, is_capturing;
    op *captured, **captured_last;
};

struct event {
    context *c;
    stream *s;
    int64_t position;
    bool is_timed, is_recorded;
};

typedef struct graph {
    op *first;
} graph;

typedef struct link_state {
    char *text;
    char *log;
    size_t log_bytes;
} link_state;

static struct {
    pthread_mutex_t lock;
    struct {
        const char *name;
        int64_t n;
    } call[MOST_CALLS];
    int n_calls;
    char fail_name[64];
    int fail_result, fail_nth;
    int lost; /* of all contexts */
    char misuse[256];
    int64_t live[STUB_KINDS];
    bool is_deferred, is_initialised, are_peers;
    stub_runner run;
    context primary[N_DEVICES], other;
    stream legacy, *streams;
    block block[MOST_BLOCKS];
    int n_blocks;
} g = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

static _Thread_local context *stack[64];
static _Thread_local int n_stack;

/** Handles are never freed, so that a test may leave some after a failure. */
typedef struct object {
    struct object *next;
    long long aligned[];
} object;
static object *objects;

static void *new_object(size_t bytes)
{
    object *o = calloc(1, sizeof *o + bytes);
    o->next = objects;
    objects = o;
    return o->aligned;
}

static context *current(void)
{
    return n_stack ? stack[n_stack - 1] : NULL;
}

static void misuse(const char *what, const char *name)
{
    if (!g.misuse[0])
        snprintf(g.misuse, sizeof g.misuse, "%s: %s", name, what);
}

/** Counts a call; its result if it is to fail. */
static int count_call(const char *name)
{
    int i = 0;
    while (i < g.n_calls && strcmp(g.call[i].name, name) != 0)
        i++;
    if (i == g.n_calls && i < MOST_CALLS)
        g.call[g.n_calls++].name = name;
    g.call[i].n++;
    if (g.lost)
        return g.lost;
    if (strcmp(g.fail_name, name) == 0 && --g.fail_nth == 0) {
        int r = g.fail_result;
        bool is_fatal = r == 214 || r == 220 || r == 700 || r == 702 || r == 709 || r == 710 || (r >= 714 && r <= 719);
        g.lost = is_fatal ? r : 0;
        return r;
    }
    return 0;
}

/* Every call: the lock, the count, then the body, whose value is returned. */
#define CALL(name, parameters, ...)                                                                                    \
    API int name parameters;                                                                                           \
    API int name parameters                                                                                            \
    {                                                                                                                  \
        static const char self[] = #name;                                                                              \
        (void)self;                                                                                                    \
        pthread_mutex_lock(&g.lock);                                                                                   \
        int result = count_call(self);                                                                                 \
        if (!result)                                                                                                   \
            __VA_ARGS__ pthread_mutex_unlock(&g.lock);                                                                 \
        return result;                                                                                                 \
    }
#define NEED_CONTEXT                                                                                                   \
    if (!current())                                                                                                    \
        result = BAD_CONTEXT;                                                                                          \
    else

/* ---------------------------------------------------------------- memory */

static block *find_block(const void *at)
{
    for (int i = g.n_blocks - 1; i >= 0; i--)
        if ((const char *)at >= g.block[i].at && (const char *)at < g.block[i].at + g.block[i].bytes)
            return &g.block[i];
    return NULL;
}

static int new_block(ptr *out, size_t bytes, int kind)
{
    if (bytes == 0)
        return BAD_VALUE;
    if (bytes > (size_t)1 << 34 || g.n_blocks == MOST_BLOCKS)
        return NO_MEMORY;
    char *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!at)
        return NO_MEMORY;
    memset(at, 0xA5, bytes);
    g.block[g.n_blocks++] = (block){at, bytes, kind, current()->device, false};
    g.live[STUB_BLOCKS]++;
    *out = (ptr)(uintptr_t)at;
    return 0;
}

static int free_block(void *at, const char *who)
{
    block *b = find_block(at);
    if (!b || b->at != at || b->is_free) {
        misuse(b && b->is_free ? "freed twice" : "freed what is no block", who);
        return BAD_VALUE;
    }
    memset(b->at, POISON, b->bytes);
    b->is_free = true;
    g.live[STUB_BLOCKS]--;
    return 0;
}

/** Whether bytes may be touched; those of no block are the host's. */
static void check_bytes(const void *at, size_t bytes, const char *who)
{
    const block *b = bytes ? find_block(at) : NULL;
    if (b && b->is_free)
        misuse("memory used after it was freed", who);
    else if (b && (const char *)at + bytes > b->at + b->bytes)
        misuse("memory used beyond its end", who);
}

/* ---------------------------------------------------------------- work */

static void run_to(stream *s, int64_t position);

static void run_copy(const op *o)
{
    const char *src = o->staged ? o->staged : o->src;
    for (size_t z = 0; z < o->depth; z++)
        for (size_t y = 0; y < o->height; y++) {
            char *to = o->dst + (z * o->dst_height + y) * o->dst_pitch;
            const char *from = src + (z * o->src_height + y) * o->src_pitch;
            check_bytes(to, o->bytes, "copy to");
            if (!o->staged)
                check_bytes(from, o->bytes, "copy from");
            memcpy(to, from, o->bytes);
        }
}

static void run_kernel(const op *o)
{
    static stub_memory memory[MOST_BLOCKS];
    int n = 0;
    for (int i = 0; i < g.n_blocks; i++)
        if (!g.block[i].is_free)
            memory[n++] = (stub_memory){g.block[i].at, g.block[i].bytes};
    stub_kernel k = {.text = o->f->m->text,
                     .entry = o->f->name,
                     .blocks = o->blocks,
                     .threads = {o->threads[0], o->threads[1], o->threads[2]},
                     .shared_bytes = o->shared,
                     .params = o->staged,
                     .param_bytes = o->param_bytes,
                     .memory = memory,
                     .n_memories = n};
    if (!o->f->m->text)
        misuse("kernel of an unloaded module", "launch");
    else if (g.run && !g.run(&k))
        g.lost = ILLEGAL;
}

static void run_op(op *o)
{
    switch (o->kind) {
    case OP_COPY:
        run_copy(o);
        break;
    case OP_SET:
        check_bytes(o->dst, o->bytes * (size_t)o->value_bytes, "set");
        for (size_t i = 0; i < o->bytes; i++)
            memcpy(o->dst + i * (size_t)o->value_bytes, &o->value, (size_t)o->value_bytes);
        break;
    case OP_KERNEL:
        run_kernel(o);
        break;
    case OP_WAIT:
        run_to(o->wait_for, o->position);
        break;
    case OP_FREE:
        free_block(o->dst, "free");
        break;
    }
}

static void free_op(op *o)
{
    free(o->staged);
    free(o);
}

static void run_to(stream *s, int64_t position)
{
    while (s->first && s->executed < position && !g.lost) {
        op *o = s->first;
        s->first = o->next;
        if (!s->first)
            s->last = &s->first;
        s->executed++;
        run_op(o);
        free_op(o);
    }
}

static void run_all(void)
{
    run_to(&g.legacy, INT64_MAX);
    for (stream *s = g.streams; s; s = s->next)
        run_to(s, INT64_MAX);
}

static stream *stream_of(void *handle, const char *who)
{
    stream *s = handle ? handle : &g.legacy;
    if (!g.legacy.last)
        g.legacy.last = &g.legacy.first;
    if (handle && s->is_dead)
        misuse("a stream that was destroyed", who);
    if (handle && s->c != current())
        misuse("a stream of a context that is not current", who);
    return s;
}

static int issue(void *handle, const op *what, const char *who)
{
    stream *s = stream_of(handle, who);
    op *o = malloc(sizeof *o);
    *o = *what;
    o->next = NULL;
    if (s->is_capturing) {
        *s->captured_last = o;
        s->captured_last = &o->next;
        return 0;
    }
    *s->last = o;
    s->last = &o->next;
    s->issued++;
    if (!g.is_deferred)
        run_to(s, INT64_MAX);
    return g.lost;
}

static char *copy_of(const void *p, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    memcpy(copy, p, bytes);
    return copy;
}

/** A copy: memory of the host that is not pinned is read at once, or written after waiting. */
static int issue_copy(op o, void *handle, const char *who)
{
    size_t src_bytes = ((o.depth - 1) * o.src_height + o.height - 1) * o.src_pitch + o.bytes;
    stream *s = stream_of(handle, who);
    if (o.height == 0 || o.depth == 0 || o.bytes == 0)
        return 0;
    if (!find_block(o.src))
        o.staged = copy_of(o.src, src_bytes);
    int result = issue(handle, &o, who);
    if (!find_block(o.dst))
        run_to(s, INT64_MAX);
    return result;
}

/* ---------------------------------------------------------------- devices and contexts */

CALL(cuInit, (unsigned flags), {
    (void)flags;
    g.is_initialised = true;
})
CALL(cuDriverGetVersion, (int *v), { *v = 12080; })
CALL(cuDeviceGetCount, (int *n), { *n = N_DEVICES; })
CALL(cuDeviceGet, (int *handle, int i), {
    result = i >= 0 && i < N_DEVICES ? 0 : 101;
    *handle = i;
})
CALL(cuDeviceGetName, (char *out, int n, int device), { snprintf(out, (size_t)n, "stub %d", device); })
CALL(cuDeviceCanAccessPeer, (int *out, int device, int peer), { *out = g.are_peers && device != peer; })
CALL(cuCtxEnablePeerAccess, (void *other, unsigned flags), {
    if (!other || flags || !g.are_peers)
        misuse("no context", self);
})
CALL(cuDeviceGetUuid_v2, (unsigned char *out, int device), { memset(out, device + 1, 16); })
CALL(cuDeviceTotalMem_v2, (size_t * out, int device), {
    (void)device;
    *out = (size_t)1 << 34;
})
CALL(cuDeviceGetAttribute, (int *out, int attribute, int device), {
    (void)device;
    *out = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 11 ? INT32_MAX : attribute == 16 ? 4 : 1;
})
CALL(cuDevicePrimaryCtxRetain, (void **out, int device), {
    g.primary[device].device = device;
    g.primary[device].retained++;
    g.live[STUB_CONTEXTS]++;
    *out = &g.primary[device];
})
API int cuDevicePrimaryCtxRelease_v2(int device);
API int cuDevicePrimaryCtxRelease_v2(int device)
{
    pthread_mutex_lock(&g.lock);
    int result = count_call("cuDevicePrimaryCtxRelease_v2"); /* a lost one is given up, too */
    if (--g.primary[device].retained < 0)
        misuse("released more often than retained", "context");
    g.live[STUB_CONTEXTS]--;
    pthread_mutex_unlock(&g.lock);
    return result;
}
CALL(cuCtxGetCurrent, (void **out), { *out = current(); })
CALL(cuCtxPushCurrent_v2, (void *c), { stack[n_stack++] = c; })
CALL(cuCtxCreate_v2, (void **out, unsigned flags, int device), {
    (void)flags;
    g.other.device = device;
    *out = stack[n_stack++] = &g.other;
})
API int cuCtxPopCurrent_v2(void **out);
API int cuCtxPopCurrent_v2(void **out)
{
    count_call("cuCtxPopCurrent_v2");
    *out = current(); /* works in a lost context, too */
    n_stack -= n_stack > 0;
    return 0;
}
CALL(cuCtxGetDevice, (int *out), { NEED_CONTEXT *out = current()->device; })
CALL(cuCtxSynchronize, (void), {
    NEED_CONTEXT
    {
        run_all();
        result = g.lost;
    }
})

/* ---------------------------------------------------------------- streams and events */

CALL(cuStreamCreate, (void **out, unsigned flags), {
    (void)flags;
    NEED_CONTEXT
    {
        stream *s = calloc(1, sizeof *s);
        s->c = current();
        s->last = &s->first;
        s->next = g.streams;
        g.streams = s;
        g.live[STUB_STREAMS]++;
        *out = s;
    }
})
CALL(cuStreamDestroy_v2, (void *handle), {
    stream *s = stream_of(handle, self);
    s->is_dead = true; /* its work goes on */
    g.live[STUB_STREAMS]--;
})
CALL(cuStreamSynchronize, (void *handle), {
    run_to(stream_of(handle, self), INT64_MAX);
    result = g.lost;
})
CALL(cuStreamQuery, (void *handle), { result = stream_of(handle, self)->first ? NOT_READY : 0; })
CALL(cuStreamWaitEvent, (void *handle, void *e, unsigned flags), {
    (void)flags;
    const event *at = e;
    op o = {.kind = OP_WAIT, .wait_for = at->s, .position = at->position};
    if (at->is_recorded)
        result = issue(handle, &o, self);
})
CALL(cuStreamGetCtx, (void *handle, void **out), {
    stream *s = handle;
    *out = s ? s->c : current();
})
CALL(cuEventCreate, (void **out, unsigned flags), {
    NEED_CONTEXT
    {
        event *e = new_object(sizeof *e);
        e->c = current();
        e->is_timed = !(flags & 2);
        g.live[STUB_EVENTS]++;
        *out = e;
    }
})
CALL(cuEventDestroy_v2, (void *e), {
    (void)e;
    g.live[STUB_EVENTS]--;
})
CALL(cuEventRecord, (void *e, void *handle), {
    event *at = e;
    at->s = stream_of(handle, self);
    at->position = at->s->issued;
    at->is_recorded = true;
})
CALL(cuEventQuery, (void *e), {
    event *at = e;
    if (at->is_recorded && at->s->executed < at->position) {
        result = NOT_READY;
        run_to(at->s, at->s->executed + 1); /* some progress */
    }
})
CALL(cuEventSynchronize, (void *e), {
    event *at = e;
    if (at->is_recorded)
        run_to(at->s, at->position);
    result = g.lost;
})
CALL(cuEventElapsedTime, (float *out, void *a, void *b), {
    const event *first = a;
    const event *second = b;
    result = first->is_timed && second->is_timed ? 0 : BAD_HANDLE;
    *out = 1.5f;
})

/* ---------------------------------------------------------------- allocation */

CALL(cuMemAlloc_v2, (ptr * out, size_t bytes), { NEED_CONTEXT result = new_block(out, bytes, BLOCK_DEVICE); })
CALL(cuMemFree_v2, (ptr p), {
    run_all();
    result = free_block((void *)(uintptr_t)p, self);
})
CALL(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), {
    ptr p = 0;
    (void)flags;
    NEED_CONTEXT result = new_block(&p, bytes, BLOCK_PINNED);
    *out = (void *)(uintptr_t)p;
})
CALL(cuMemFreeHost, (void *p), { result = free_block(p, self); })
CALL(cuMemAllocManaged, (ptr * out, size_t bytes, unsigned flags), {
    (void)flags;
    NEED_CONTEXT result = new_block(out, bytes, BLOCK_MANAGED);
})
CALL(cuMemPoolCreate, (void **out, const void *properties), {
    (void)properties;
    *out = new_object(1);
    g.live[STUB_POOLS]++;
})
CALL(cuMemPoolDestroy, (void *pool), {
    (void)pool;
    g.live[STUB_POOLS]--;
})
CALL(cuMemPoolSetAttribute, (void *pool, int attribute, void *value), {
    (void)pool;
    (void)attribute;
    (void)value;
})
CALL(cuMemPoolSetAccess, (void *pool, const void *access, size_t n), {
    if (!pool || !access || n != 1 || !g.are_peers)
        misuse("no access to give", self);
})
CALL(cuMemPoolTrimTo, (void *pool, size_t keep), {
    (void)pool;
    (void)keep;
})
CALL(cuMemAllocFromPoolAsync, (ptr * out, size_t bytes, void *pool, void *handle), {
    (void)pool;
    stream_of(handle, self);
    result = new_block(out, bytes, BLOCK_DEVICE);
})
CALL(cuMemFreeAsync, (ptr p, void *handle), {
    op o = {.kind = OP_FREE, .dst = (char *)(uintptr_t)p};
    result = issue(handle, &o, self);
})
CALL(cuPointerGetAttributes, (unsigned n, int *attributes, void **data, ptr p), {
    const block *b = find_block((void *)(uintptr_t)p);
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
    result = issue_copy(o, handle, self);
})
CALL(cuMemcpyPeerAsync, (ptr dst, void *dst_context, ptr src, void *src_context, size_t bytes, void *handle), {
    op o = {.kind = OP_COPY,
            .dst = (char *)(uintptr_t)dst,
            .src = (char *)(uintptr_t)src,
            .bytes = bytes,
            .height = 1,
            .depth = 1};
    if (!dst_context || !src_context)
        misuse("no context", self);
    result = issue_copy(o, handle, self);
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

enum { TYPE_HOST = 1, TYPE_UNIFIED = 4 };

CALL(cuMemcpy2DAsync_v2, (const copy2d *c, void *handle), {
    op o = {.kind = OP_COPY,
            .dst = c->dst_type == TYPE_HOST ? c->dst_host : (char *)(uintptr_t)c->dst_device,
            .src = c->src_type == TYPE_HOST ? c->src_host : (char *)(uintptr_t)c->src_device,
            .bytes = c->width,
            .dst_pitch = c->dst_pitch,
            .src_pitch = c->src_pitch,
            .height = c->height,
            .depth = 1};
    if (c->dst_pitch < c->width || c->src_pitch < c->width)
        result = BAD_VALUE;
    else
        result = issue_copy(o, handle, self);
})
CALL(cuMemcpy3DAsync_v2, (const copy3d *c, void *handle), {
    op o = {.kind = OP_COPY,
            .dst = c->dst_type == TYPE_HOST ? c->dst_host : (char *)(uintptr_t)c->dst_device,
            .src = c->src_type == TYPE_HOST ? c->src_host : (char *)(uintptr_t)c->src_device,
            .bytes = c->width,
            .dst_pitch = c->dst_pitch,
            .src_pitch = c->src_pitch,
            .dst_height = c->dst_height,
            .src_height = c->src_height,
            .height = c->height,
            .depth = c->depth};
    if (c->dst_pitch < c->width || c->src_pitch < c->width || c->dst_height < c->height || c->src_height < c->height)
        result = BAD_VALUE;
    else
        result = issue_copy(o, handle, self);
})

static int issue_set(ptr p, unsigned value, int bytes, size_t n, void *handle, const char *who)
{
    op o = {.kind = OP_SET, .dst = (char *)(uintptr_t)p, .value = value, .value_bytes = bytes, .bytes = n};
    return issue(handle, &o, who);
}
CALL(cuMemsetD8Async, (ptr p, unsigned char v, size_t n, void *s), { result = issue_set(p, v, 1, n, s, self); })
CALL(cuMemsetD16Async, (ptr p, unsigned short v, size_t n, void *s), { result = issue_set(p, v, 2, n, s, self); })
CALL(cuMemsetD32Async, (ptr p, unsigned v, size_t n, void *s), { result = issue_set(p, v, 4, n, s, self); })

/* ---------------------------------------------------------------- code */

static const char cubin_mark[] = "// cubin\n";

CALL(cuLinkCreate_v2, (unsigned n, int *options, void **values, void **out), {
    NEED_CONTEXT
    {
        link_state *l = new_object(sizeof *l);
        for (unsigned i = 0; i < n; i++) {
            if (options[i] == 5)
                l->log = values[i];
            if (options[i] == 6)
                l->log_bytes = (size_t)(uintptr_t)values[i];
        }
        g.live[STUB_LINKS]++;
        *out = l;
    }
})
CALL(cuLinkAddData_v2,
     (void *state, int type, void *data, size_t bytes, const char *name, unsigned n, int *options, void **values), {
         link_state *l = state;
         (void)type;
         (void)name;
         (void)n;
         (void)options;
         (void)values;
         if (!memmem(data, bytes, ".version", 8) || ((const char *)data)[bytes - 1] != 0) {
             snprintf(l->log, l->log_bytes, "ptxas application ptx input, line 1; fatal\n  : Missing .version");
             result = BAD_PTX;
         } else {
             l->text = malloc(bytes + sizeof cubin_mark);
             strcpy(l->text, cubin_mark);
             strcat(l->text, data);
         }
     })
CALL(cuLinkComplete, (void *state, void **out, size_t *bytes), {
    link_state *l = state;
    *out = l->text;
    *bytes = strlen(l->text) + 1;
})
API int cuLinkDestroy(void *state);
API int cuLinkDestroy(void *state)
{
    pthread_mutex_lock(&g.lock);
    int result = count_call("cuLinkDestroy");
    link_state *l = state;
    free(l->text);
    l->text = NULL;
    g.live[STUB_LINKS]--;
    pthread_mutex_unlock(&g.lock);
    return result;
}
CALL(cuModuleLoadData, (void **out, const void *image), {
    NEED_CONTEXT if (strncmp(image, cubin_mark, sizeof cubin_mark - 1) != 0) result = BAD_IMAGE;
    else
    {
        module *m = new_object(sizeof *m);
        m->text = strdup(image);
        g.live[STUB_MODULES]++;
        *out = m;
    }
})
CALL(cuModuleUnload, (void *handle), {
    module *m = handle;
    free(m->text);
    m->text = NULL; /* the rest stays: kernels under way would see it */
    g.live[STUB_MODULES]--;
})
CALL(cuModuleGetFunction, (void **out, void *handle, const char *name), {
    module *m = handle;
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!strstr(m->text, entry)) {
        result = 500;
    } else {
        function *f = new_object(sizeof *f);
        f->m = m;
        snprintf(f->name, sizeof f->name, "%s", name);
        *out = f;
    }
})
CALL(cuFuncSetAttribute, (void *f, int attribute, int value), {
    (void)f;
    (void)attribute;
    (void)value;
})

/** Bytes of the only parameter, an array or a 64-bit number. */
static size_t find_param_bytes(const function *f)
{
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", f->name);
    const char *at = strstr(f->m->text, entry), *end = at ? strchr(at + strlen(entry), ')') : NULL;
    const char *bracket = at ? strchr(at, '[') : NULL;
    return bracket && bracket < end ? (size_t)strtoull(bracket + 1, NULL, 10) : 8;
}

CALL(cuLaunchKernel,
     (void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
      void *s, void **params, void **extra),
     {
         function *f = handle;
         (void)extra;
         if (!f->m->text || gx == 0 || gy != 1 || gz != 1) {
             misuse("bad kernel or grid", self);
             result = BAD_VALUE;
         } else {
             op o = {.kind = OP_KERNEL, .f = f, .blocks = gx, .threads = {bx, by, bz}, .shared = shared};
             o.param_bytes = find_param_bytes(f);
             o.staged = copy_of(params[0], o.param_bytes);
             result = issue(s, &o, self);
         }
     })

/* ---------------------------------------------------------------- graphs */

CALL(cuStreamBeginCapture_v2, (void *handle, int mode), {
    stream *s = stream_of(handle, self);
    (void)mode;
    s->is_capturing = true;
    s->captured = NULL;
    s->captured_last = &s->captured;
})
API int cuStreamEndCapture(void *handle, void **out);
API int cuStreamEndCapture(void *handle, void **out)
{
    pthread_mutex_lock(&g.lock);
    int result = count_call("cuStreamEndCapture");
    stream *s = stream_of(handle, "cuStreamEndCapture");
    s->is_capturing = false;
    if (!result) {
        graph *made = new_object(sizeof *made);
        made->first = s->captured;
        g.live[STUB_GRAPHS]++;
        *out = made;
        s->captured = NULL;
    }
    while (s->captured) {
        op *o = s->captured;
        s->captured = o->next;
        free_op(o);
    }
    pthread_mutex_unlock(&g.lock);
    return result;
}
CALL(cuStreamIsCapturing, (void *handle, int *out), {
    const stream *s = handle;
    *out = s && s->is_capturing;
})

static op *copy_ops(const op *from)
{
    op *first = NULL, **last = &first;
    for (; from; from = from->next) {
        op *o = malloc(sizeof *o);
        *o = *from;
        o->next = NULL;
        if (from->staged)
            o->staged = copy_of(from->staged, from->kind == OP_KERNEL ? from->param_bytes : from->bytes);
        *last = o;
        last = &o->next;
    }
    return first;
}
static void free_graph(graph *made)
{
    while (made->first) {
        op *o = made->first;
        made->first = o->next;
        free_op(o);
    }
    g.live[STUB_GRAPHS]--;
}
CALL(cuGraphInstantiateWithFlags, (void **out, void *from, unsigned long long flags), {
    graph *made = new_object(sizeof *made);
    (void)flags;
    made->first = copy_ops(((graph *)from)->first);
    g.live[STUB_GRAPHS]++;
    *out = made;
})
CALL(cuGraphLaunch, (void *exec, void *handle), {
    op *list = copy_ops(((graph *)exec)->first);
    while (list && !result) {
        op *o = list;
        list = o->next;
        result = issue(handle, o, self);
        free(o); /* what it points to went into the queue */
    }
})
CALL(cuGraphDestroy, (void *made), { free_graph(made); })
CALL(cuGraphExecDestroy, (void *made), { free_graph(made); })

/* ---------------------------------------------------------------- errors */

#define ERRORS(X)                                                                                                      \
    X(0, "CUDA_SUCCESS", "no error")                                                                                   \
    X(1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                                                               \
    X(2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                                                                  \
    X(3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")                                                         \
    X(34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library")                                                  \
    X(100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")                                               \
    X(201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")                                                     \
    X(218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed")                                                   \
    X(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain.")       \
    X(400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")                                                     \
    X(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered")                                   \
    X(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed")                                                  \
    X(719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")                                                   \
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
    snprintf(g.fail_name, sizeof g.fail_name, "%s", name ? name : "");
    g.fail_result = result;
    g.fail_nth = nth;
}
static int64_t control_calls(const char *name)
{
    int64_t n = 0;
    for (int i = 0; i < g.n_calls; i++)
        n += !name || strcmp(g.call[i].name, name) == 0 ? g.call[i].n : 0;
    return n;
}
static int64_t control_live(int kind)
{
    return g.live[kind];
}
static void control_forget(int kind)
{
    g.live[kind] = 0;
    for (int i = 0; kind == STUB_CONTEXTS && i < N_DEVICES; i++)
        g.primary[i].retained = 0;
    for (int i = 0; kind == STUB_BLOCKS && i < g.n_blocks; i++)
        g.block[i].is_free = true;
}
static const char *control_misuse(void)
{
    return g.misuse[0] ? g.misuse : NULL;
}
static void drop_queue(stream *s)
{
    while (s->first) {
        op *o = s->first;
        s->first = o->next;
        free_op(o);
    }
    s->last = &s->first;
    s->executed = s->issued;
}
static void control_reset(void)
{
    int n = 0;
    g.lost = 0;
    g.misuse[0] = g.fail_name[0] = 0;
    for (int i = 0; i < g.n_calls; i++)
        g.call[i].n = 0;
    drop_queue(&g.legacy);
    for (stream **link = &g.streams; *link;) {
        stream *s = *link;
        drop_queue(s);
        if (s->is_dead) {
            *link = s->next;
            free(s);
        } else {
            link = &s->next;
        }
    }
    for (int i = 0; i < g.n_blocks; i++) {
        if (g.block[i].is_free)
            free(g.block[i].at);
        else
            g.block[n++] = g.block[i];
    }
    g.n_blocks = n;
}
static void control_defer(int on)
{
    g.is_deferred = on != 0;
    if (!on)
        run_all();
}
static void control_run_with(stub_runner run)
{
    g.run = run;
}
static void control_peers(int on)
{
    g.are_peers = on != 0;
}
static void *control_other_context(void)
{
    return &g.other;
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
