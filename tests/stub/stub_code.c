/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_code.c: calls of the stub driver: modules and their links, launches, graphs.
 */
#define _GNU_SOURCE
#include "stub_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- code */

static const char cubin_mark[] = "// cubin\n";

CALL(cuLinkCreate_v2, (unsigned n, int *options, void **values, void **out), {
    NEED_CONTEXT
    {
        link_state *l = stub_new_object(sizeof *l);
        for (unsigned i = 0; i < n; i++) {
            if (options[i] == 5)
                l->log = values[i];
            if (options[i] == 6)
                l->log_bytes = (size_t)(uintptr_t)values[i];
            if (options[i] == 3)
                l->info = values[i];
        }
        stub.live[STUB_LINKS]++;
        *out = l;
    }
})
CALL(cuLinkAddData_v2,
     (void *state, int type, void *data, size_t bytes, const char *name, unsigned n, int *options,
      void **values), {
         link_state *l = state;
         (void)type;
         (void)name;
         (void)n;
         (void)options;
         (void)values;
         if (!memmem(data, bytes, ".version", 8) || ((const char *)data)[bytes - 1] != 0) {
             snprintf(l->log, l->log_bytes,
                      "ptxas application ptx input, line 1; fatal\n  : Missing .version");
             result = BAD_PTX;
         } else {
             const char *least = getenv("QUERN_STUB_SPILLS"),
                        *limit = strstr(data, ".minnctapersm ");
             bool spills = least && limit &&
                           atoi(limit + 14) >= atoi(least); /* for so many blocks and more */
             if (l->info)
                 strcpy(l->info, spills ? "ptxas info : 32 bytes stack frame, 56 bytes spill stores"
                                        : "ptxas info : 0 bytes spill stores");
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
    pthread_mutex_lock(&stub.lock);
    int result = stub_count_call("cuLinkDestroy");
    link_state *l = state;
    free(l->text);
    l->text = NULL;
    stub.live[STUB_LINKS]--;
    pthread_mutex_unlock(&stub.lock);
    return result;
}
CALL(cuModuleLoadData, (void **out, const void *image), {
    NEED_CONTEXT if (strncmp(image, cubin_mark, sizeof cubin_mark - 1) != 0) result = BAD_IMAGE;
    else
    {
        module *m = stub_new_object(sizeof *m);
        m->text = strdup(image);
        stub.live[STUB_MODULES]++;
        *out = m;
    }
})
CALL(cuModuleUnload, (void *handle), {
    module *m = handle;
    free(m->text);
    m->text = NULL; /* the rest stays: kernels under way would see it */
    stub.live[STUB_MODULES]--;
})
CALL(cuModuleGetFunction, (void **out, void *handle, const char *name), {
    module *m = handle;
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!strstr(m->text, entry)) {
        result = 500;
    } else {
        function *f = stub_new_object(sizeof *f);
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
     (void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, void *s, void **params, void **extra),
     {
         function *f = handle;
         (void)extra;
         if (!f->m->text || gx == 0 || gy != 1 || gz != 1) {
             stub_misuse("bad kernel or grid", self);
             result = BAD_VALUE;
         } else {
             op o = {.kind = OP_KERNEL,
                     .f = f,
                     .blocks = gx,
                     .threads = {bx, by, bz},
                     .shared = shared};
             o.param_bytes = find_param_bytes(f);
             o.staged = stub_copy_of(params[0], o.param_bytes);
             result = stub_issue(s, &o, self);
         }
     })

/* ---------------------------------------------------------------- graphs */

CALL(cuStreamBeginCapture_v2, (void *handle, int mode), {
    stream *s = stub_stream_of(handle, self);
    (void)mode;
    s->is_capturing = true;
    s->captured = NULL;
    s->captured_last = &s->captured;
})
API int cuStreamEndCapture(void *handle, void **out);
API int cuStreamEndCapture(void *handle, void **out)
{
    pthread_mutex_lock(&stub.lock);
    int result = stub_count_call("cuStreamEndCapture");
    stream *s = stub_stream_of(handle, "cuStreamEndCapture");
    s->is_capturing = false;
    if (!result) {
        graph *made = stub_new_object(sizeof *made);
        made->first = s->captured;
        stub.live[STUB_GRAPHS]++;
        *out = made;
        s->captured = NULL;
    }
    while (s->captured) {
        op *o = s->captured;
        s->captured = o->next;
        stub_free_op(o);
    }
    pthread_mutex_unlock(&stub.lock);
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
            o->staged = stub_copy_of(from->staged,
                                     from->kind == OP_KERNEL ? from->param_bytes : from->bytes);
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
        stub_free_op(o);
    }
    stub.live[STUB_GRAPHS]--;
}
CALL(cuGraphInstantiateWithFlags, (void **out, void *from, unsigned long long flags), {
    graph *made = stub_new_object(sizeof *made);
    (void)flags;
    made->first = copy_ops(((graph *)from)->first);
    stub.live[STUB_GRAPHS]++;
    *out = made;
})
CALL(cuGraphLaunch, (void *exec, void *handle), {
    op *list = copy_ops(((graph *)exec)->first);
    while (list && !result) {
        op *o = list;
        list = o->next;
        result = stub_issue(handle, o, self);
        free(o); /* what it points to went into the queue */
    }
})
CALL(cuGraphDestroy, (void *made), { free_graph(made); })
CALL(cuGraphExecDestroy, (void *made), { free_graph(made); })
