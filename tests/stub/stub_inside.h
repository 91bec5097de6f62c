/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_inside.h: what the files of the stub driver show one another. Everything happens under one
 * lock.
 */
#ifndef QN_TESTS_STUB_INSIDE_H
#define QN_TESTS_STUB_INSIDE_H

#include "stub_cuda.h"

#include <pthread.h>

#define API __attribute__((visibility("default")))

typedef unsigned long long ptr;

enum { N_DEVICES = 2, MOST_CALLS = 128, MOST_BLOCKS = 65536, POISON = 0xDD };
enum {
    BAD_VALUE = 1,
    NO_MEMORY = 2,
    BAD_IMAGE = 200,
    BAD_CONTEXT = 201,
    BAD_PTX = 218,
    BAD_HANDLE = 400,
    NOT_READY = 600,
    ILLEGAL = 700
};
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

enum { OP_COPY, OP_SET, OP_KERNEL, OP_WAIT, OP_FREE };

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
    char *info; /* of LOG_BYTES of runtime/cuda/module.c */
} link_state;

/** All of the driver. */
typedef struct stub_state {
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
} stub_state;
extern stub_state stub;

/* ---- stub_cuda.c */
/** Memory of a handle. Handles are never freed, so that a test may leave some after a failure. */
void *stub_new_object(size_t bytes);
/** The contexts of this thread. */
context *stub_current(void);
void stub_push(context *c);
void stub_pop(void);
/** Notes the first misuse. */
void stub_misuse(const char *what, const char *name);
/** Counts a call; its result if it is to fail. */
int stub_count_call(const char *name);

/* ---- stub_work.c */
block *stub_find_block(const void *at);
int stub_new_block(ptr *out, size_t bytes, int kind);
int stub_free_block(void *at, const char *who);
/** Runs what stands in a stream, or in all. */
void stub_run_to(stream *s, int64_t position);
void stub_run_all(void);
stream *stub_stream_of(void *handle, const char *who);
/** Puts work into a stream; what o->staged points to goes with it. */
int stub_issue(void *handle, const op *what, const char *who);
/** A copy: memory of the host that is not pinned is read at once, or written after waiting. */
int stub_issue_copy(op o, void *handle, const char *who);
char *stub_copy_of(const void *p, size_t bytes);
void stub_free_op(op *o);

/* Every call: the lock, the count, then the body, whose value is returned. */
#define CALL(name, parameters, ...)                                                                \
    API int name parameters;                                                                       \
    API int name parameters                                                                        \
    {                                                                                              \
        static const char self[] = #name;                                                          \
        (void)self;                                                                                \
        pthread_mutex_lock(&stub.lock);                                                            \
        int result = stub_count_call(self);                                                        \
        if (!result)                                                                               \
            __VA_ARGS__ pthread_mutex_unlock(&stub.lock);                                          \
        return result;                                                                             \
    }
#define NEED_CONTEXT                                                                               \
    if (!stub_current())                                                                           \
        result = BAD_CONTEXT;                                                                      \
    else

#endif
