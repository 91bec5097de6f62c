/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_memory.c: what a kernel may write while it is tuned, see tune.h. Bytes are compared, and
 * where some differ, the elements that they are of: the bits of a NaN that arithmetic made are not
 * specified.
 */
#include "quern/cuda.h"
#include "runtime/tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_blocks(const void *a, const void *b)
{
    const qn_tune_block *x = a, *y = b;
    return ((uintptr_t)x->at > (uintptr_t)y->at) - ((uintptr_t)x->at < (uintptr_t)y->at);
}

/** Makes blocks that overlap one. */
static void merge_blocks(qn_tune_memory *m)
{
    int n = 0;
    qsort(m->block, (size_t)m->n_blocks, sizeof m->block[0], compare_blocks);
    for (int i = 0; i < m->n_blocks; i++) {
        qn_tune_block *last = n ? &m->block[n - 1] : NULL;
        uintptr_t at = (uintptr_t)m->block[i].at, end = at + m->block[i].n;
        if (last && at < (uintptr_t)last->at + last->n) {
            if (end > (uintptr_t)last->at + last->n)
                last->n = end - (uintptr_t)last->at;
        } else {
            m->block[n++] = m->block[i];
        }
    }
    m->n_blocks = n;
}

static bool meets_block(const qn_tune_memory *m, const qn_view *v, qn_span span)
{
    uintptr_t low = (uintptr_t)v->data + (uintptr_t)span.low,
              high = (uintptr_t)v->data + (uintptr_t)span.high;
    for (int i = 0; i < m->n_blocks; i++)
        if (low < (uintptr_t)m->block[i].at + m->block[i].n && (uintptr_t)m->block[i].at < high)
            return true;
    return false;
}

/* ---------------------------------------------------------------- memory of a GPU */

/** Copies a block to or from memory of the host, as work of the stream. */
static qn_status move(const qn_tune_memory *m, const qn_tune_block *b, char *host, bool is_to_host,
                      qn_error *err)
{
    const int64_t n = (int64_t)b->n;
    qn_layout layout;
    qn_view here, there;
    qn_status status = qn_layout_right(1, &n, &layout, err);
    if (status == QN_OK)
        status = qn_view_wrap("saved", host, QN_U8, &layout, 0, &here, err);
    if (status == QN_OK)
        status = qn_cuda_wrap(m->context, b->space, "written", b->at, QN_U8, &layout, 0, &there,
                              err);
    if (status == QN_OK)
        status = qn_stream_copy(m->stream, is_to_host ? &here : &there,
                                is_to_host ? &there : &here, err);
    return status;
}

qn_status qn__tune_fetch(const qn_tune_memory *m, qn_error *err)
{
    qn_status status = m->stream ? qn_stream_fence(m->stream, err) : QN_OK;
    for (int i = 0; i < m->n_blocks && m->stream && status == QN_OK; i++)
        status = move(m, &m->block[i], m->block[i].now, true, err);
    return status == QN_OK && m->stream ? qn_stream_fence(m->stream, err) : status;
}

/* ---------------------------------------------------------------- saved contents */

static qn_status no_memory(const qn_tune_memory *m, const qn_tune_block *b, const char *who,
                           qn_error *err)
{
    return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory for copies of %zu bytes",
                    who, m->kernel->name, b->n);
}

qn_status qn__tune_save(qn_tune_memory *m, const char *who, const qn_kernel *k, int n,
                        const qn_arg *args, qn_error *err)
{
    *m = (qn_tune_memory){.kernel = k,
                          .args = args,
                          .n_args = n,
                          .context = m->context,
                          .stream = m->stream};
    for (int i = 0; i < n; i++) {
        qn_span span = args[i].view ? qn__view_span(args[i].view) : (qn_span){0, 0};
        if (k->param[i].rank >= 0 && k->param[i].is_written && span.high > span.low)
            m->block[m->n_blocks++] = (qn_tune_block){.at = (char *)args[i].view->data + span.low,
                                                      .n = (size_t)(span.high - span.low),
                                                      .space = args[i].view->space};
    }
    merge_blocks(m);
    for (int i = 0; i < n; i++)
        m->is_in_place |= k->param[i].rank >= 0 && k->param[i].is_read &&
                          meets_block(m, args[i].view, qn__view_span(args[i].view));
    for (int i = 0; i < m->n_blocks; i++) {
        qn_tune_block *b = &m->block[i];
        b->before = qn__alloc(b->n);
        b->expected = qn__alloc(b->n);
        b->now = m->stream ? qn__alloc(b->n) : b->at;
        if (!b->before || !b->expected || !b->now)
            return no_memory(m, b, who, err);
    }
    qn_status status = qn__tune_fetch(m, err);
    for (int i = 0; i < m->n_blocks && status == QN_OK; i++)
        memcpy(m->block[i].before, m->block[i].now, m->block[i].n);
    m->is_saved = status == QN_OK;
    return status;
}

qn_status qn__tune_restore(const qn_tune_memory *m, qn_error *err)
{
    qn_status status = QN_OK;
    for (int i = 0; i < m->n_blocks && m->is_saved && status == QN_OK; i++)
        if (m->stream)
            status = move(m, &m->block[i], m->block[i].before, false, err);
        else
            memcpy(m->block[i].at, m->block[i].before, m->block[i].n);
    return status;
}

void qn__tune_expect(const qn_tune_memory *m)
{
    for (int i = 0; i < m->n_blocks; i++)
        memcpy(m->block[i].expected, m->block[i].now, m->block[i].n);
}

void qn__tune_release(qn_tune_memory *m)
{
    for (int i = 0; i < m->n_blocks; i++) {
        qn__free(m->block[i].before);
        qn__free(m->block[i].expected);
        if (m->stream)
            qn__free(m->block[i].now);
    }
    m->n_blocks = 0;
}

/* ---------------------------------------------------------------- comparing */

/** The argument, and in it the part of an element, that a byte is of. */
typedef struct part_of_byte {
    int argument, dtype;
    size_t at, n; /* bytes of the part, in the block */
} part_of_byte;

/** Finds the part of argument i that byte `at` of a block is of; false if it is of none. */
static bool find_part(const qn_tune_memory *m, const qn_tune_block *b, size_t at, int i,
                      part_of_byte *out)
{
    const qn_view *v = m->args[i].view;
    if (m->kernel->param[i].rank < 0 || !m->kernel->param[i].is_written || v->unit)
        return false;
    qn_span span = qn__view_span(v);
    int64_t bytes = qn__element_bytes(v), offset = (b->at + at) - (char *)v->data;
    if (offset < span.low || offset >= span.high)
        return false;
    int64_t inside = ((offset % bytes) + bytes) % bytes;
    for (int part = 0; part < qn__n_parts(v->dtype, v->record); part++) {
        int dtype = qn__part_dtype(v->dtype, v->record, part);
        int64_t first = qn__part_offset(v->dtype, v->record, part), n = qn_dtype_bytes(dtype);
        if (inside < first || inside >= first + n || inside - first > (int64_t)at)
            continue;
        *out = (part_of_byte){i, dtype, at - (size_t)(inside - first), (size_t)n};
        return out->at + out->n <= b->n;
    }
    return false;
}

static bool is_nan(int dtype, uint64_t bits)
{
    uint64_t magnitude = bits & ((UINT64_C(1) << (qn__dtype_width(dtype) - 1)) - 1);
    return qn__dtype_class(dtype) == QN_CLASS_F && magnitude > qn__float_format(dtype).infinity;
}

static uint64_t bits_at(const char *p, size_t n)
{
    uint64_t bits = 0;
    memcpy(&bits, p, n < sizeof bits ? n : sizeof bits);
    return bits;
}

/** Whether byte `at` of a block differs only because a NaN has other bits; *next: the first byte
 * behind that NaN. *is_of: the argument that the byte is of, or -1. */
static bool is_nan_there(const qn_tune_memory *m, const qn_tune_block *b, size_t at, size_t *next,
                         int *is_of)
{
    part_of_byte p;
    *is_of = -1;
    for (int i = 0; i < m->n_args; i++) {
        if (!find_part(m, b, at, i, &p))
            continue;
        *is_of = i;
        *next = p.at + p.n;
        if (p.n <= sizeof(uint64_t) && is_nan(p.dtype, bits_at(b->now + p.at, p.n)) &&
            is_nan(p.dtype, bits_at(b->expected + p.at, p.n)))
            return true;
    }
    return false;
}

/** Whether a block has what is expected; `only_changed`: where it differs from what was there. */
static bool compare(const qn_tune_memory *m, const qn_tune_block *b, bool only_changed,
                    qn_error *why)
{
    if (memcmp(b->now, b->expected, b->n) == 0)
        return true;
    bool may_be_cut = only_changed; /* the iteration that was stopped may have stored anything */
    for (size_t at = 0, next = 0; at < b->n; at++) {
        int argument;
        if (b->now[at] == b->expected[at] || (only_changed && b->now[at] == b->before[at]))
            continue;
        if (is_nan_there(m, b, at, &next, &argument)) {
            at = next - 1;
            continue;
        }
        if (may_be_cut && argument >= 0) {
            may_be_cut = false;
            at = next - 1;
            continue;
        }
        qn__fail(why, QN_ERR_INTERNAL, "%s: byte %zu of %zu is 0x%02x instead of 0x%02x",
                 argument < 0 ? "?" : m->kernel->param[argument].name, at, b->n,
                 (unsigned)(uint8_t)b->now[at], (unsigned)(uint8_t)b->expected[at]);
        return false;
    }
    return true;
}

bool qn__tune_is_expected(const qn_tune_memory *m, qn_error *why)
{
    for (int i = 0; i < m->n_blocks; i++)
        if (!compare(m, &m->block[i], false, why))
            return false;
    return true;
}

bool qn__tune_is_begun(const qn_tune_memory *m, qn_error *why)
{
    for (int i = 0; i < m->n_blocks; i++)
        if (!compare(m, &m->block[i], true, why))
            return false;
    return true;
}
