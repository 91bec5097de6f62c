/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant.c: a kernel with more of its view parameters declared atomic, for arguments that claim to
 * be atomic only at the launch. The kernel is built again from its own text, so what an atomic
 * parameter means (updates in one step, loads that are not shared) stays in one place, the builder.
 * A kernel keeps its variants and frees them.
 */
#include "ir/ir.h"

#include <string.h>

struct qn_variant {
    qn_variant *next;
    uint64_t atomics; /* bit p: parameter p is declared atomic, and was not */
    qn_kernel *kernel;
};

/** The text of k with the trait added. */
static bool print_atomic(const qn_kernel *k, uint64_t atomics, qn_text *out)
{
    qn_kernel_parameter *param = qn__zalloc((size_t)k->n_params + 1, sizeof *param);
    if (!param)
        return false;
    for (int p = 0; p < k->n_params; p++) {
        param[p] = k->param[p];
        param[p].traits |= atomics >> p & 1 ? (uint32_t)QN_ATOMIC : 0;
    }
    qn_kernel view_of_k = { /* what the printer reads */
        .name = k->name,
        .flags = k->flags,
        .n_params = k->n_params,
        .n_dims = k->n_dims,
        .n_insts = k->n_insts,
        .n_operands = k->n_operands,
        .body = k->body,
        .param = param,
        .inst = k->inst,
        .operand = k->operand,
        .array = k->array,
        .n_arrays = k->n_arrays,
        .message = k->message,
        .n_messages = k->n_messages,
        .function = k->function,
        .n_functions = k->n_functions,
    };
    qn__print(&view_of_k, false, out);
    qn__free(param);
    return !out->failed;
}

/** A message from the function that refuses on: the place before it is one of the text of a
 * variant, which nobody wrote. */
static const char *without_place(const char *message)
{
    const char *from = strstr(message, ": qn_");
    return from ? from + strlen(": ") : message;
}

static qn_status make_variant(const qn_kernel *k, uint64_t atomics, qn_variant **out, qn_error *err)
{
    qn_variant *v = qn__zalloc(1, sizeof *v);
    qn_text text = {0};
    qn_error why = {0};
    qn_status status = QN_ERR_MEMORY;
    if (v && print_atomic(k, atomics, &text))
        status = qn__kernel_parse_canonical(text.data, text.n, &v->kernel, &why);
    qn__text_release(&text);
    if (status) {
        qn__free(v);
        return qn__fail(err, status, "qn_launch: kernel \"%.60s\" with atomic arguments: %.300s",
                        k->name, why.status ? without_place(why.message) : "no memory");
    }
    v->atomics = atomics;
    *out = v;
    return QN_OK;
}

static const qn_variant *find(const qn_variant *list, uint64_t atomics)
{
    while (list && list->atomics != atomics)
        list = list->next;
    return list;
}

qn_status qn__kernel_atomic(const qn_kernel *k, uint64_t atomics, const qn_kernel **out,
                            qn_error *err)
{
    qn_kernel *mine = (qn_kernel *)(uintptr_t)k; /* only its list of variants changes */
    const qn_variant *v =
        find(atomic_load_explicit(&mine->variants, memory_order_acquire), atomics);
    if (!v) {
        qn_variant *made;
        qn_status status = make_variant(k, atomics, &made, err);
        if (status)
            return status;
        made->next = atomic_load_explicit(&mine->variants, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&mine->variants, &made->next, made,
                                                      memory_order_acq_rel, memory_order_relaxed))
            ;
        v = made; /* another thread may have added the same: both stay */
    }
    *out = v->kernel;
    return QN_OK;
}

void qn__variants_free(qn_variant *v)
{
    while (v) {
        qn_variant *next = v->next;
        qn_kernel_release(v->kernel);
        qn__free(v);
        v = next;
    }
}
