/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.c: marks, which are events of the driver with a reference to their stream.
 */
#include "runtime/context.h"
#include "runtime/cuda/stream.h"

struct qn_mark {
    qn_stream *stream;
    void *event;
    bool is_timed;
};

qn_status qn_stream_mark(qn_stream *s, int timed, qn_mark **out, qn_error *err)
{
    const char *who = "qn_stream_mark";
    bool is_pushed = false;
    if (!s || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, s ? "out" : "stream");
    if (timed < 0 || timed > 1)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: timed %d: expected 0 or 1", who, timed);
    qn_gpu *g = s->gpu;
    qn_mark *m = qn__zalloc(1, sizeof *m);
    if (!m)
        return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory", who, g->device);
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status == QN_OK)
        status = QN_CU(g, who, event_create, (&m->event, timed ? 0 : QN_CU_EVENT_NO_TIMING), err);
    if (status == QN_OK) {
        status = QN_CU(g, who, event_record, (m->event, s->handle), err);
        if (status)
            g->cuda->api.event_destroy(m->event);
    }
    qn__gpu_leave(g, is_pushed);
    if (status) {
        qn__free(m);
        return status;
    }
    m->stream = qn_stream_retain(s);
    m->is_timed = timed != 0;
    *out = m;
    return QN_OK;
}

qn_status qn_stream_after(qn_stream *s, const qn_mark *m, qn_error *err)
{
    const char *who = "qn_stream_after";
    bool is_pushed = false;
    if (!s || !m)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, s ? "mark" : "stream");
    if (s->gpu->cuda != m->stream->gpu->cuda)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: stream and mark are of different contexts", who);
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(s->gpu, who, stream_wait, (s->handle, m->event, 0), err);
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}

qn_status qn_mark_wait(const qn_mark *m, qn_error *err)
{
    const char *who = "qn_mark_wait";
    bool is_pushed = false;
    if (!m)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: mark is NULL", who);
    qn_gpu *g = m->stream->gpu;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(g, who, event_sync, (m->event), err);
    qn__gpu_leave(g, is_pushed);
    return status;
}

qn_status qn_mark_is_done(const qn_mark *m, bool *out, qn_error *err)
{
    const char *who = "qn_mark_is_done";
    if (!m || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, m ? "out" : "mark");
    return qn__gpu_is_done(m->stream->gpu, who, m->event, NULL, out, err);
}

qn_status qn_mark_milliseconds(const qn_mark *begin, const qn_mark *end, double *out, qn_error *err)
{
    const char *who = "qn_mark_milliseconds";
    bool is_pushed = false;
    float ms = 0;
    if (!begin || !end || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !begin ? "begin"
                        : !end ? "end"
                               : "out");
    if (!begin->is_timed || !end->is_timed)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is not timed", who,
                        begin->is_timed ? "end" : "begin");
    qn_gpu *g = end->stream->gpu;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(g, who, event_elapsed, (&ms, begin->event, end->event), err);
    qn__gpu_leave(g, is_pushed);
    if (status == QN_OK)
        *out = (double)ms;
    return status;
}

void qn_mark_release(qn_mark *m)
{
    if (!m)
        return;
    qn_gpu *g = m->stream->gpu;
    bool is_pushed;
    if (qn__gpu_enter(g, "", &is_pushed, NULL) == QN_OK) {
        g->cuda->api.event_destroy(m->event);
        qn__gpu_leave(g, is_pushed);
    }
    qn_stream_release(m->stream);
    qn__free(m);
}
