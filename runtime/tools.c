/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c: see tools.h. The functions of a tool and their types are those of Kokkos's
 * Kokkos_Profiling_C_Interface.h, of which a library may have some; numbers of devices are as
 * Kokkos makes them: the kind of the device in the highest 8 bits. A library that the process has
 * already, as where the program uses Kokkos itself, was begun by who loaded it, and is neither
 * begun nor ended here. A child of fork tells nothing.
 */
#define _GNU_SOURCE
#include "runtime/tools.h"
#include "runtime/context.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    INTERFACE_VERSION = 20211015,
    DEVICE_SHIFT = 24,
    DEVICE_SERIAL = 0,
    DEVICE_CUDA = 2,
    DEVICE_THREADS = 6
};

typedef struct tool_space {
    char name[64];
} tool_space;

typedef void (*begin_function)(const char *name, uint32_t device, uint64_t *id);
typedef void (*end_function)(uint64_t id);
typedef void (*data_function)(tool_space space, const char *label, const void *data,
                              uint64_t bytes);

/** NULL: nobody is to be told. */
typedef struct functions {
    void (*init)(int sequence, uint64_t version, uint32_t n_devices, void *devices);
    void (*finalize)(void);
    begin_function begin_for, begin_reduce;
    end_function end_for, end_reduce;
    data_function allocate, deallocate;
    void (*begin_copy)(tool_space to, const char *to_name, const void *to_data, tool_space from,
                       const char *from_name, const void *from_data, uint64_t bytes);
    void (*end_copy)(void);
    int (*push)(const char *name); /* of NVTX */
    int (*pop)(void);
} functions;

/** All of it is of the process. */
static struct {
    pthread_mutex_t lock;
    int n_contexts, pid;
    void *ours;   /* the library that was loaded here, if any */
    bool is_ours; /* begun here, so that it is ended here */
    atomic_bool is_on;
    functions call; /* written while nobody is told */
} tools = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---------------------------------------------------------------- loading */

/** Puts a function of a library where it is called from; ISO C has no cast between the two. */
static void look_up(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
}

static void find_functions(void *library)
{
    look_up(library, "kokkosp_init_library", &tools.call.init);
    look_up(library, "kokkosp_finalize_library", &tools.call.finalize);
    look_up(library, "kokkosp_begin_parallel_for", &tools.call.begin_for);
    look_up(library, "kokkosp_end_parallel_for", &tools.call.end_for);
    look_up(library, "kokkosp_begin_parallel_reduce", &tools.call.begin_reduce);
    look_up(library, "kokkosp_end_parallel_reduce", &tools.call.end_reduce);
    look_up(library, "kokkosp_allocate_data", &tools.call.allocate);
    look_up(library, "kokkosp_deallocate_data", &tools.call.deallocate);
    look_up(library, "kokkosp_begin_deep_copy", &tools.call.begin_copy);
    look_up(library, "kokkosp_end_deep_copy", &tools.call.end_copy);
}

static void note_failure(qn_context *c, const char *what)
{
    qn_text line = {0};
    const char *reason = dlerror();
    qn__text_add(&line, "%s cannot be loaded: %s", what, reason ? reason : "?");
    if (line.data && !line.failed) {
        qn__history_add(&c->history, "(context)", line.data, -1);
        qn__log(c, QN_LOG_WARNING, line.data);
    }
    qn__text_release(&line);
}

/** The first of the libraries in a list with semicolons, as Kokkos takes it. */
static void *open_first(const char *list, bool *was_there)
{
    qn_text path = {0};
    qn__text_add(&path, "%.*s", (int)strcspn(list, ";"), list);
    void *library = path.failed ? NULL : dlopen(path.data, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    *was_there = library != NULL;
    if (!library && !path.failed)
        library = dlopen(path.data, RTLD_NOW | RTLD_GLOBAL);
    qn__text_release(&path);
    return library;
}

static bool is_named(const char *name)
{
    return name && name[0] && strcmp(name, "off") != 0;
}

/** Loads for the first context. The lock of the tools is held. */
static void load(qn_context *c)
{
    bool was_there = false;
    tools.call = (functions){0};
    tools.is_ours = false;
    void *library =
        is_named(c->options.kokkos_tools) ? open_first(c->options.kokkos_tools, &was_there) : NULL;
    if (library) {
        find_functions(library);
        tools.ours = was_there ? tools.ours : library;
        tools.is_ours = library == tools.ours;
        if (tools.is_ours && tools.call.init)
            tools.call.init(0, INTERFACE_VERSION, 0, NULL);
    } else if (is_named(c->options.kokkos_tools)) {
        note_failure(c, "the tool of Kokkos");
    }
    void *nvtx = is_named(c->options.nvtx) ? dlopen(c->options.nvtx, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (nvtx) {
        look_up(nvtx, "nvtxRangePushA", &tools.call.push);
        look_up(nvtx, "nvtxRangePop", &tools.call.pop);
    } else if (is_named(c->options.nvtx)) {
        note_failure(c, "NVTX");
    }
    tools.pid = (int)getpid();
    atomic_store(&tools.is_on, library || nvtx);
}

bool qn__tools_open(qn_context *c)
{
    if (!is_named(c->options.kokkos_tools) && !is_named(c->options.nvtx))
        return false;
    pthread_mutex_lock(&tools.lock);
    if (tools.n_contexts++ == 0)
        load(c);
    pthread_mutex_unlock(&tools.lock);
    c->has_tools = true;
    return true;
}

void qn__tools_close(qn_context *c)
{
    if (!c->has_tools)
        return;
    c->has_tools = false;
    pthread_mutex_lock(&tools.lock);
    bool is_last = --tools.n_contexts == 0 && tools.pid == (int)getpid();
    if (is_last)
        atomic_store(&tools.is_on, false);
    if (is_last && tools.is_ours && tools.call.finalize)
        tools.call.finalize();
    pthread_mutex_unlock(&tools.lock);
}

/* ---------------------------------------------------------------- telling */

static bool are_on(void)
{
    return atomic_load_explicit(&tools.is_on, memory_order_acquire) && tools.pid == (int)getpid();
}

/** What Kokkos calls a space. */
static tool_space space_of(int space)
{
    tool_space s = {{0}};
    const char *name = space == QN_SPACE_CUDA           ? "Cuda"
                       : space == QN_SPACE_CUDA_MANAGED ? "CudaUVM"
                       : space == QN_SPACE_HOST         ? "Host"
                                                        : qn_space_name(space);
    snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

/** Whether all that a kernel does is a reduction. */
static bool is_reduction(const qn_kernel *k)
{
    bool has_reductions = false;
    for (int d = 0; d < k->n_dims; d++) {
        if (qn__is_parallel(k, d))
            return false;
        has_reductions |= qn__is_reduction(k, d);
    }
    return has_reductions;
}

qn_tool_span qn__tools_begin_launch(const qn_kernel *k, int executor)
{
    qn_tool_span s = {.is_begun = are_on()};
    if (!s.is_begun)
        return s;
    uint32_t kind = executor == QN_CUDA      ? DEVICE_CUDA
                    : executor == QN_THREADS ? DEVICE_THREADS
                                             : DEVICE_SERIAL;
    begin_function begin = is_reduction(k) ? tools.call.begin_reduce : tools.call.begin_for;
    if (begin)
        begin(k->name, kind << DEVICE_SHIFT, &s.id);
    if (tools.call.push)
        tools.call.push(k->name);
    return s;
}

void qn__tools_end_launch(const qn_kernel *k, const qn_tool_span *s)
{
    if (!s->is_begun)
        return;
    end_function end = is_reduction(k) ? tools.call.end_reduce : tools.call.end_for;
    if (tools.call.pop)
        tools.call.pop();
    if (end)
        end(s->id);
}

qn_tool_span qn__tools_begin_copy(const qn_view *dst, const qn_view *src)
{
    qn_tool_span s = {.is_begun = are_on()};
    if (!s.is_begun)
        return s;
    if (tools.call.begin_copy)
        tools.call.begin_copy(space_of(dst->space), qn__label(dst->label), dst->data,
                              space_of(src->space), qn__label(src->label), src->data,
                              (uint64_t)(qn_view_size(dst) * qn__element_bytes(dst)));
    if (tools.call.push)
        tools.call.push("qn_deep_copy");
    return s;
}

void qn__tools_end_copy(const qn_tool_span *s)
{
    if (!s->is_begun)
        return;
    if (tools.call.pop)
        tools.call.pop();
    if (tools.call.end_copy)
        tools.call.end_copy();
}

void qn__tools_allocated(int space, const char *label, const void *data, size_t bytes)
{
    if (are_on() && tools.call.allocate)
        tools.call.allocate(space_of(space), label, data, bytes);
}

void qn__tools_released(int space, const char *label, const void *data, size_t bytes)
{
    if (are_on() && tools.call.deallocate)
        tools.call.deallocate(space_of(space), label, data, bytes);
}
