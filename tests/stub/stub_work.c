/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_work.c: memory and streams of the stub driver. Work goes into the queue of its stream and
 * runs at once, or when somebody waits. Freed memory is filled with a pattern and kept until
 * `reset`, so that its use is seen.
 */
#define _GNU_SOURCE
#include "stub_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- memory */

block *stub_find_block(const void *at)
{
    for (int i = stub.n_blocks - 1; i >= 0; i--)
        if ((const char *)at >= stub.block[i].at &&
            (const char *)at < stub.block[i].at + stub.block[i].bytes)
            return &stub.block[i];
    return NULL;
}

int stub_new_block(ptr *out, size_t bytes, int kind)
{
    if (bytes == 0)
        return BAD_VALUE;
    if (bytes > (size_t)1 << 34 || stub.n_blocks == MOST_BLOCKS)
        return NO_MEMORY;
    char *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!at)
        return NO_MEMORY;
    memset(at, 0xA5, bytes);
    stub.block[stub.n_blocks++] = (block){at, bytes, kind, stub_current()->device, false};
    stub.live[STUB_BLOCKS]++;
    *out = (ptr)(uintptr_t)at;
    return 0;
}

int stub_free_block(void *at, const char *who)
{
    block *b = stub_find_block(at);
    if (!b || b->at != at || b->is_free) {
        stub_misuse(b && b->is_free ? "freed twice" : "freed what is no block", who);
        return BAD_VALUE;
    }
    memset(b->at, POISON, b->bytes);
    b->is_free = true;
    stub.live[STUB_BLOCKS]--;
    return 0;
}

/** Whether bytes may be touched; those of no block are the host's. */
static void check_bytes(const void *at, size_t bytes, const char *who)
{
    const block *b = bytes ? stub_find_block(at) : NULL;
    if (b && b->is_free)
        stub_misuse("memory used after it was freed", who);
    else if (b && (const char *)at + bytes > b->at + b->bytes)
        stub_misuse("memory used beyond its end", who);
}

/* ---------------------------------------------------------------- work */

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
    for (int i = 0; i < stub.n_blocks; i++)
        if (!stub.block[i].is_free)
            memory[n++] = (stub_memory){stub.block[i].at, stub.block[i].bytes};
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
        stub_misuse("kernel of an unloaded module", "launch");
    else if (stub.run && !stub.run(&k))
        stub.lost = ILLEGAL;
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
        stub_run_to(o->wait_for, o->position);
        break;
    case OP_FREE:
        stub_free_block(o->dst, "free");
        break;
    }
}

void stub_free_op(op *o)
{
    free(o->staged);
    free(o);
}

void stub_run_to(stream *s, int64_t position)
{
    while (s->first && s->executed < position && !stub.lost) {
        op *o = s->first;
        s->first = o->next;
        if (!s->first)
            s->last = &s->first;
        s->executed++;
        run_op(o);
        stub_free_op(o);
    }
}

void stub_run_all(void)
{
    stub_run_to(&stub.legacy, INT64_MAX);
    for (stream *s = stub.streams; s; s = s->next)
        stub_run_to(s, INT64_MAX);
}

stream *stub_stream_of(void *handle, const char *who)
{
    stream *s = handle ? handle : &stub.legacy;
    if (!stub.legacy.last)
        stub.legacy.last = &stub.legacy.first;
    if (handle && s->is_dead)
        stub_misuse("a stream that was destroyed", who);
    if (handle && s->c != stub_current())
        stub_misuse("a stream of a context that is not current", who);
    return s;
}

int stub_issue(void *handle, const op *what, const char *who)
{
    stream *s = stub_stream_of(handle, who);
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
    if (!stub.is_deferred)
        stub_run_to(s, INT64_MAX);
    return stub.lost;
}

char *stub_copy_of(const void *p, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    memcpy(copy, p, bytes);
    return copy;
}

int stub_issue_copy(op o, void *handle, const char *who)
{
    size_t src_bytes = ((o.depth - 1) * o.src_height + o.height - 1) * o.src_pitch + o.bytes;
    stream *s = stub_stream_of(handle, who);
    if (o.height == 0 || o.depth == 0 || o.bytes == 0)
        return 0;
    if (!stub_find_block(o.src))
        o.staged = stub_copy_of(o.src, src_bytes);
    int result = stub_issue(handle, &o, who);
    if (!stub_find_block(o.dst))
        stub_run_to(s, INT64_MAX);
    return result;
}
