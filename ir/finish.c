/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish.c: qn_finish, the pipeline from a builder to an immutable kernel, and the life of kernels.
 * Folding and numbering were done while building; what remains is to drop dead instructions and to
 * check.
 */
#include "ir/build/builder.h"
#include "ir/function.h"
#include "ir/location.h"

#include <string.h>

/* ---------------------------------------------------------------- facts */

/** Whether two accesses of views that may be bound to the same view have the same index values. */
static bool have_equal_indices(const qn_kernel *k, uint32_t i, uint32_t j)
{
    const qn_kernel_parameter *p = &k->param[k->inst[i].imm], *q = &k->param[k->inst[j].imm];
    if (p->dtype != q->dtype || p->rank != q->rank)
        return true;
    size_t n = (size_t)p->rank * sizeof(uint32_t);
    return n == 0 || memcmp(qn__args(k, i), qn__args(k, j), n) == 0;
}

/** See qn_kernel. Any two views of one type may be bound to the same data, so tuples are compared
 * across views: all accesses are compared with the writes, and it is enough to do so with the first
 * write of each type. */
static bool find_in_place_safe(const qn_kernel *k)
{
    for (uint32_t w = 0; w < k->n_accesses; w++) {
        uint32_t write = k->access[w].inst;
        if (k->inst[write].op == QN_I_LOAD)
            continue;
        bool is_first = true; /* an earlier write of this type was compared with everything, this
                                 one included */
        for (uint32_t e = 0; e < w && is_first; e++) {
            const qn_inst *x = &k->inst[k->access[e].inst];
            const qn_kernel_parameter *p = &k->param[x->imm], *q = &k->param[k->inst[write].imm];
            is_first = x->op == QN_I_LOAD || p->dtype != q->dtype || p->rank != q->rank;
        }
        for (uint32_t a = 0; is_first && a < k->n_accesses; a++)
            if (!have_equal_indices(k, write, k->access[a].inst))
                return false;
    }
    return true;
}

/** The canonical text and its hash. */
static qn_status make_canonical(qn_kernel *k, qn_error *err)
{
    qn_text text = {0};
    qn__print(k, true, &text);
    if (text.failed || !text.data) {
        qn__text_release(&text);
        return qn__fail(err, QN_ERR_MEMORY, "qn_finish: out of memory for the text");
    }
    k->canonical = text.data;
    k->canonical_bytes = text.n;
    k->hash = qn__hash(text.data, text.n, 0);
    return QN_OK;
}

/* ---------------------------------------------------------------- finish */

/** Each step requires that the ones before it succeeded. */
qn_status qn__finish_body(qn_builder *b, qn_kernel *k, qn_error *err)
{
    atomic_init(&k->references, 1);
    k->is_replay = b->is_replay;
    qn_status status = qn__compact(b, k, err); /* ensures: the form of ir.h, nothing dead */
    if (!status)
        status = make_canonical(k, err);
    if (!status)
        status = qn__verify(k, err);
    return status;
}

/** Whether a kernel stores something, itself or in functions. */
static bool has_effects(const qn_kernel *k)
{
    bool is_written = false;
    for (int p = 0; p < k->n_params; p++)
        is_written = is_written || k->param[p].is_written;
    return is_written;
}

/** The pipeline of kernels. What is asked of accesses is asked of the kernel without calls, which
 * shows those of functions; a kernel too large for that is taken to touch what it writes elsewhere,
 * too. */
static qn_status run_pipeline(qn_builder *b, qn_kernel *k, qn_error *err)
{
    qn_error why = {0};
    qn_status update = qn__check_updates(b, &why), status = qn__finish_body(b, k, err);
    if (!status && !update && !b->is_replay &&
        !has_effects(k)) /* what is replayed may have lost its stores to a constant condition */
        return qn__fail(
            err, QN_ERR_BUILD,
            "qn_finish: kernel \"%.100s\" stores nothing: it has no store and no atomic", k->name);
    if (!status && (k->n_functions || k->has_prints))
        status = qn__inline_calls(
            k, err); /* runs this pipeline for the kernel without calls, or without prints */
    else if (!status)
        status = qn__check_collisions(
            k, err); /* ensures: no provable collision of parallel iterations */
    if (!status && update && !k->inlined) { /* without calls there may be updates where there were
                                               calls of what is loaded */
        *err = why;
        return update;
    }
    if (status)
        return status;
    k->is_in_place_safe =
        k->inlined ? k->inlined->is_in_place_safe : k->n_functions == 0 && find_in_place_safe(k);
    return QN_OK;
}

bool qn__builder_closed(qn_builder *b, const char *who)
{
    if (!qn__builder_ready(b, who))
        return false;
    if (b->depth)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %d regions are open, the innermost of %s", who,
                         b->depth, qn__inst_name(b->frame[b->depth - 1].op));
    return b->error.status == QN_OK;
}

qn_status qn_finish(qn_builder *b, qn_kernel **out, qn_error *err)
{
    const char *who = "qn_finish";
    if (!b || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, b ? "out" : "builder");
    if (qn__builder_ready(b, who) && b->is_function)
        qn__builder_fail(b, QN_ERR_BUILD, "%s: this is a function: qn_function_finish ends it",
                         who);
    if (!qn__builder_closed(b, who))
        return qn_builder_status(b, err);
    b->is_finished = true;
    qn_kernel *k = qn__zalloc(1, sizeof *k);
    if (!k) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
        return qn_builder_status(b, err);
    }
    if (run_pipeline(b, k, &b->error)) {
        qn__kernel_free(k);
        return qn_builder_status(b, err);
    }
    *out = k;
    return QN_OK;
}

/* ---------------------------------------------------------------- kernels */

uint32_t qn__site_of(const qn_kernel *k, uint32_t i)
{
    uint32_t low = 0, high = k->n_accesses; /* in program order */
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (k->access[middle].inst <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void qn__kernel_free(qn_kernel *k)
{
    if (!k)
        return;
    for (int i = 0; k->param && i < k->n_params; i++) {
        qn__free(k->param[i].name);
        qn_record_release((qn_record *)(uintptr_t)k->param[i].record);
    }
    qn__free(k->name);
    qn__free(k->param);
    qn__free(k->inst);
    qn__free(k->operand);
    qn__free(k->access);
    if (k->expansion)
        qn_kernel_release(k->expansion->given);
    qn__free(k->expansion);
    for (int i = 0; i < k->n_functions; i++)
        qn_function_release(k->function[i]);
    qn__free(k->function);
    for (int i = 0; i < k->n_arrays; i++)
        qn__elements_release(k->array[i]);
    qn__free(k->array);
    for (int i = 0; i < k->n_messages; i++)
        qn__free(k->message[i]);
    qn__free(k->message);
    qn_kernel_release(k->inlined);
    qn__locations_free(k->locations);
    qn_kernel_release(atomic_load_explicit(&k->printing, memory_order_acquire));
    qn__free(k->canonical);
    qn__variants_free(atomic_load_explicit(&k->variants, memory_order_acquire));
    qn__free(k);
}

qn_kernel *qn_kernel_retain(const qn_kernel *k)
{
    /* A kernel is immutable but for its count. */
    qn_kernel *mine = (qn_kernel *)(uintptr_t)k;
    if (mine)
        atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void qn_kernel_release(qn_kernel *k)
{
    if (k && atomic_fetch_sub_explicit(&k->references, 1, memory_order_acq_rel) == 1)
        qn__kernel_free(k);
}

const char *qn_kernel_name(const qn_kernel *k)
{
    return k ? k->name : "";
}

int qn_kernel_n_params(const qn_kernel *k)
{
    return k ? k->n_params : 0;
}

qn_status qn_kernel_param(const qn_kernel *k, int i, qn_param_info *out, size_t out_bytes,
                          qn_error *err)
{
    const char *who = "qn_kernel_param";
    if (!k || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, k ? "out" : "kernel");
    if (i < 0 || i >= k->n_params)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.100s\" has %d parameters, none has number %d", who, k->name,
                        k->n_params, i);
    const qn_kernel_parameter *p = &k->param[i];
    const qn_param_info info = {.name = p->name,
                                .dtype = p->dtype,
                                .rank = p->rank,
                                .traits = p->traits,
                                .is_read = p->is_read,
                                .is_written = p->is_written};
    qn__struct_give(&info, sizeof info, out, out_bytes);
    return QN_OK;
}
