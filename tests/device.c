/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c: opens the GPU of the tests and launches kernels on copies of the host's memory.
 */
#include "tests/device.h"

#include "ir/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUB_PATH QN_BUILD_DIR "/tests/stub/libcuda.so.1"

enum { MOST_MEMORIES = 32 };

/* tests/unit/gpu.c */
const stub_control *stub_open(const char *path);

/* ---------------------------------------------------------------- opening */

/** Opens the driver of a path, NULL: that of this machine. */
static qn_status open_driver(device *d, const char *path, qn_error *err)
{
    const qn_context_options o = {.bytes = sizeof o, .cuda_driver = path};
    int n = 0;
    qn_status status = qn_context_new(&o, &d->context, err);
    if (status == QN_OK)
        status = qn_cuda_device_count(d->context, &n, err);
    if (status == QN_OK)
        status = qn_cuda_device_info(d->context, 0, &d->info, sizeof d->info, err);
    if (status == QN_OK && d->info.isa == 0) {
        snprintf(err->message, sizeof err->message, "%.200s: compute capability %d.%d is too old",
                 d->info.name, d->info.capability / 10, d->info.capability % 10);
        status = QN_ERR_TARGET;
    }
    if (status == QN_OK)
        status = qn_stream_new(d->context, 0, &d->stream, err);
    return status;
}

bool device_open(device *d, bool may_be_stub)
{
    const char *path = getenv("QUERN_CUDA_DRIVER");
    qn_error err = {0};
    *d = (device){.stub = path ? stub_open(path) : NULL};
    if (open_driver(d, NULL, &err) == QN_OK)
        return true;
    device_close(d);
    snprintf(d->no_gpu, sizeof d->no_gpu, "no GPU: %.480s", err.message);
    if (!may_be_stub)
        return false;
    d->stub = stub_open(STUB_PATH);
    if (d->stub && open_driver(d, STUB_PATH, &err) == QN_OK)
        return true;
    device_close(d);
    return false;
}

void device_close(device *d)
{
    qn_stream_release(d->stream);
    qn_context_release(d->context);
    d->stream = NULL;
    d->context = NULL;
}

/* ---------------------------------------------------------------- launching */

/** All bytes of some memory of the host, as a view. */
static qn_status bytes_of(const device_memory *m, qn_view *out, qn_error *err)
{
    const int64_t n = (int64_t)m->bytes;
    qn_layout l;
    qn_status status = qn_layout_right(1, &n, &l, err);
    return status ? status : qn_view_wrap("host", m->at, QN_U8, &l, 0, out, err);
}

/** A block on the device with the bytes of the host's memory. */
static qn_status copy_there(const device *d, const device_memory *m, qn_view *block, qn_error *err)
{
    const int64_t n = (int64_t)m->bytes;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = "block", .space = QN_SPACE_CUDA, .stream = d->stream};
    qn_view_type type;
    qn_view host;
    qn_status status = qn_view_type_init(QN_U8, 1, NULL, QN_FAMILY_ANY, &type, err);
    type.space = QN_SPACE_CUDA;
    if (status == QN_OK)
        status = qn_view_create(d->context, &type, 1, &n, &o, block, err);
    if (status == QN_OK)
        status = bytes_of(m, &host, err);
    return status ? status : qn_stream_copy(d->stream, block, &host, err);
}

static qn_status copy_back(const device *d, const device_memory *m, const qn_view *block,
                           qn_error *err)
{
    qn_view host;
    qn_status status = bytes_of(m, &host, err);
    return status ? status : qn_stream_copy(d->stream, &host, block, err);
}

static bool move_view(const qn_view *v, int n, const device_memory *memory, const qn_view *block,
                      qn_view *out);

/** A MultiView of the same members of a copy of their memory. */
static bool move_members(const qn_view *v, int m, int n, const device_memory *memory,
                         const qn_view *block, qn_view *out)
{
    const qn_dim dim = v->layout.dim[m];
    const size_t extent = (size_t)dim.extent;
    qn_view *here = calloc(2 * extent, sizeof *here), *there = here + extent;
    qn_slice at[QN_MAX_RANK] = {{0}};
    int64_t lower[QN_MAX_RANK];
    bool passed = here != NULL;
    for (size_t p = 0; passed && p < extent; p++) {
        at[m] = (qn_slice){.kind = QN_AT, .begin = dim.lower + (int64_t)p};
        passed = qn_subview(v, v->layout.rank, at, &here[p], NULL) == QN_OK &&
                 move_view(&here[p], n, memory, block, &there[p]);
    }
    passed = passed && qn_view_multi(v->label, (int)dim.extent, there, m, out, NULL) == QN_OK;
    for (int d = 0; d < v->layout.rank; d++)
        lower[d] = v->layout.dim[d].lower;
    if (passed)
        qn_layout_offset(&out->layout, lower, &out->layout, NULL);
    out->traits = v->traits;
    for (size_t p = 0; here && p < extent; p++)
        qn_view_release(&here[p]);
    free(here);
    return passed;
}

/** A view of the copy of the memory of `v`; without elements the view may be anywhere. Views of
   tests have no owners, but MultiViews are to be released. */
static bool move_view(const qn_view *v, int n, const device_memory *memory, const qn_view *block,
                      qn_view *out)
{
    int64_t low, high;
    int m = qn__layout_members(&v->layout);
    if (m >= 0 && v->layout.dim[m].extent > 0)
        return move_members(v, m, n, memory, block, out);
    *out = *v;
    for (int i = 0; i < n; i++) {
        const char *first = memory[i].at, *at = v->data;
        if (!at || at < first || at >= first + memory[i].bytes)
            continue;
        out->data = (char *)block[i].data + (at - first);
        out->space = QN_SPACE_CUDA;
        out->owner = NULL; /* the block lives longer than the launch */
        return true;
    }
    if (n > 0 && qn_layout_range(&v->layout, &low, &high, NULL) == QN_OK && high < low) {
        out->data = block[0].data;
        out->space = QN_SPACE_CUDA;
    }
    return true;
}

qn_status device_launch(const device *d, const qn_kernel *k, int n, const qn_arg *args,
                        int n_memories, const device_memory *memory, const qn_options *o,
                        qn_error *err)
{
    qn_view block[MOST_MEMORIES] = {{0}}, view[QN_MAX_PARAMS] = {{0}};
    qn_arg given[QN_MAX_PARAMS] = {{0}};
    qn_options options = *o;
    qn_error later = {0};
    qn_status status = n_memories <= MOST_MEMORIES && n <= QN_MAX_PARAMS ? QN_OK : QN_ERR_INTERNAL,
              back;
    options.executor = QN_CUDA;
    options.stream = d->stream;
    for (int i = 0; status == QN_OK && i < n_memories; i++)
        status = copy_there(d, &memory[i], &block[i], err);
    for (int i = 0; status == QN_OK && i < n; i++) {
        given[i] = args[i];
        if (!args[i].view)
            continue;
        if (!move_view(args[i].view, n_memories, memory, block, &view[i]))
            status = QN_ERR_INTERNAL;
        given[i].view = &view[i];
    }
    if (status == QN_OK) {
        status = qn_launch(d->context, k, n, given, &options, err);
        back = qn_stream_fence(d->stream, status ? &later : err);
        status = status ? status : back;
        for (int i = 0; i < n_memories; i++) {
            back = copy_back(d, &memory[i], &block[i], status ? &later : err);
            status = status ? status : back;
        }
        back = qn_stream_fence(d->stream, status ? &later : err);
        status = status ? status : back;
    }
    for (int i = 0; i < n_memories && i < MOST_MEMORIES; i++)
        qn_view_release(&block[i]);
    for (int i = 0; i < n && i < QN_MAX_PARAMS; i++)
        if (view[i].data && args[i].view && qn__layout_members(&args[i].view->layout) >= 0)
            qn_view_release(&view[i]);
    return status;
}

bool device_is_limit(qn_status status, const qn_error *err)
{
    return status == QN_ERR_OVERLAP && strstr(err->message, "a GPU has no iteration order");
}
