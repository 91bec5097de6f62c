/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c: the streams of GPUs that calls run in. Each call with an array on a GPU has a stream of
 * Quern of its own, which is kept for later calls when the call is over. Work that the owners of
 * arrays gave to their streams comes first, because the stream of the call waits for theirs. All
 * of this happens under the lock of the interpreter.
 */
#include "binding.h"

enum { MOST_IDLE = 16 };

static struct {
    int n;
    qn_stream *stream[MOST_IDLE]; /* whose work is done */
} idle;

bool py_need_stream(qn_stream **stream, int device)
{
    if (*stream)
        return true;
    for (int i = 0; i < idle.n; i++) {
        if (qn_stream_device(idle.stream[i]) != device)
            continue;
        *stream = idle.stream[i];
        idle.stream[i] = idle.stream[--idle.n];
        return true;
    }
    qn_context *c = py_context();
    qn_error err = {0};
    if (c && qn_stream_new(c, device, stream, &err))
        py_raise(&err);
    return *stream != NULL;
}

void py_end_stream(qn_stream *stream)
{
    if (stream && idle.n < MOST_IDLE)
        idle.stream[idle.n++] = stream;
    else
        qn_stream_release(stream);
}

void py_forget_streams(void)
{
    idle.n = 0;
}

qn_status py_stream_after(qn_stream *stream, uintptr_t theirs, qn_error *err)
{
    qn_context *c = py_context();
    qn_stream *other = NULL;
    qn_mark *mark = NULL;
    if (!c)
        return QN_ERR_NOT_AVAILABLE;
    qn_status status =
        qn_stream_wrap(c, theirs == PY_LEGACY_STREAM ? NULL : (void *)theirs, &other, err);
    if (!status)
        status = qn_stream_mark(other, 0, &mark, err);
    if (!status)
        status = qn_stream_after(stream, mark, err);
    qn_mark_release(mark);
    qn_stream_release(other);
    return status;
}

bool py_follow(qn_stream **stream, int device, uintptr_t theirs)
{
    qn_error err = {0};
    if (!py_need_stream(stream, device))
        return false;
    if (!py_stream_after(*stream, theirs, &err))
        return true;
    if (!PyErr_Occurred())
        py_raise(&err);
    return false;
}

void py_free_after_others(void)
{
    qn_context *c = py_context();
    qn_stream *own = NULL;
    qn_error err = {0};
    if (c && !qn_stream_default(c, &own, &err))
        py_stream_after(own, PY_LEGACY_STREAM, &err);
    qn_stream_release(own);
}
