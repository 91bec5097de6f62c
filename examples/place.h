/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h: where an example runs: on the host, or with the argument `cuda` on a GPU. There each
 * array has a copy with the same layout in the memory of the GPU, and work is waited for before its
 * results are looked at. The kernels are the same.
 */
#ifndef QUERN_PLACE_H
#define QUERN_PLACE_H

#include "example.h"
#include "quern/cuda.h"

#include <string.h>

typedef struct place {
    qn_context *context;
    qn_options options; /* for launches */
    qn_stream *stream;  /* NULL: on the host */
} place;

/** The place that the command line names. Ends the program where there is no GPU. */
static inline place place_open(qn_context *c, int argc, char **argv)
{
    place at = {.context = c, .options = {.bytes = sizeof at.options}};
    qn_error err = {0};
    if (argc < 2)
        return at;
    if (argc > 2 || strcmp(argv[1], "cuda") != 0) {
        fprintf(stderr, "usage: %s [cuda]\n", argv[0]);
        exit(2);
    }
    qn_cuda_device info;
    must(qn_cuda_device_info(c, 0, &info, sizeof info, &err), &err);
    must(qn_stream_new(c, 0, &at.stream, &err), &err);
    at.options.executor = QN_CUDA;
    at.options.stream = at.stream;
    printf("On %s:\n", info.name);
    return at;
}

static inline void place_close(place *at)
{
    qn_stream_release(at->stream);
}

/** Waits for the work, which is where a GPU tells of accesses out of bounds. */
static inline qn_status place_wait(const place *at, qn_error *err)
{
    return at->stream ? qn_stream_fence(at->stream, err) : QN_OK;
}

/** The array as kernels there take it: itself, or a copy. To be released. */
static inline qn_view place_copy(const place *at, const qn_view *v)
{
    qn_view there;
    qn_view_type type;
    qn_error err = {0};
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = v->label, .space = QN_SPACE_CUDA, .stream = at->stream};
    if (!at->stream)
        return qn_view_copy(v);
    must(qn_view_type_init(v->dtype, v->layout.rank, NULL, QN_FAMILY_ANY, &type, &err), &err);
    type.space = QN_SPACE_CUDA;
    must(qn_view_create_layout(at->context, &type, &v->layout, &o, &there, &err), &err);
    must(qn_stream_copy(at->stream, &there, v, &err), &err);
    return there;
}

/** Copies such an array back, and waits. */
static inline void place_fetch(const place *at, const qn_view *v, const qn_view *there)
{
    qn_error err = {0};
    if (at->stream)
        must(qn_stream_copy(at->stream, v, there, &err), &err);
    must(place_wait(at, &err), &err);
}

#endif
