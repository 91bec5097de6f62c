/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c: the life of a qn_code, and its texts. The last reference gives its pages back to
 * the arena; until then it keeps the guts of the context alive.
 */
#include "runtime/cuda/module.h"
#include "runtime/launch.h"

#include <string.h>

qn_code *qn__code_new(qn_context *c, const qn_kernel *k, qn_text *key, qn_facts *facts,
                              int loader)
{
    qn_code *f = qn__zalloc(1, sizeof *f);
    if (!f)
        return NULL;
    atomic_init(&f->references, 1);
    qn__context_retain(c);
    f->context = c;
    f->kernel = qn_kernel_retain((qn_kernel *)(uintptr_t)k); /* only its reference count changes */
    f->loader = loader;
    f->hash = qn__hash(key->data, key->n, k->hash + (uint64_t)loader);
    f->key = *key;
    f->facts = *facts;
    memset(key, 0, sizeof *key);
    memset(facts, 0, sizeof *facts);
    return f;
}

void qn__code_retain(qn_code *f)
{
    atomic_fetch_add_explicit(&f->references, 1, memory_order_relaxed);
}

void qn_code_release(qn_code *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->references, 1, memory_order_acq_rel) != 1)
        return;
    qn_context *c = f->context;
    qn__lock(c);
    qn__symbols_drop(f);
    qn__arena_drop(&c->arena, &f->blob);
    qn__unlock(c);
    if (f->orc_handle) {
        uint32_t host = qn__fpu_enter();
        qn__compile_free(c, f->orc_handle);
        qn__fpu_leave(host);
    }
    qn_kernel_release(f->kernel);
    qn__facts_release(&f->facts);
    qn__text_release(&f->key);
    qn__text_release(&f->tuned_key);
    qn__text_release(&f->tuned);
    qn__text_release(&f->reason);
    qn__text_release(&f->plan);
    qn__text_release(&f->llvm);
    qn__text_release(&f->assembly);
    qn__text_release(&f->schedule);
    qn__text_release(&f->estimate);
    qn__text_release(&f->ptx);
    qn__gpu_code_release(atomic_load(&f->on_gpu));
    qn__text_release(&f->cubin);
    qn__free(f);
    qn__context_drop(c);
}

void qn__code_drop(void *f)
{
    qn_code_release(f);
}

bool qn__cache_sweep(qn_context *c)
{
    for (;;) {
        qn__lock(c);
        qn_code *f = qn__cache_take_dropped(&c->cache);
        bool was_ready = f && f->state == QN_READY; /* one that is being built may change still */
        bool is_clean = !c->cache.dropped;
        qn__unlock(c);
        if (!f)
            return is_clean;
        if (was_ready)
            qn__log_kernel(c, QN_LOG_DETAIL, f->kernel->name, "lost a version");
        if (was_ready)
            qn__event(c, QN_EVENT_EVICT, f->kernel->name, NULL, 0);
        qn_code_release(f);
    }
}

/* ---------------------------------------------------------------- texts */

/** The text of a stage that is made by compiling again the first time; NULL: it is another one. */
static qn_text *demanded(qn_code *f, qn_compiled *made, int stage)
{
    switch (stage) {
    case QN_DUMP_LLVM:
        return made ? &made->llvm : &f->llvm;
    case QN_DUMP_ASM:
        return made ? &made->assembly : &f->assembly;
    case QN_DUMP_SCHEDULE:
        return made ? &made->schedule : &f->schedule;
    case QN_DUMP_ESTIMATE:
        return made ? &made->estimate : &f->estimate;
    default:
        return NULL;
    }
}

static size_t text_on_demand(qn_code *f, int stage, char *buffer, size_t buffer_bytes)
{
    qn_context *c = f->context;
    qn_text *text = demanded(f, NULL, stage);
    qn__lock(c);
    bool is_known = text->data != NULL;
    qn__unlock(c);
    qn_compiled code = {.is_retry = f->is_retry};
    qn_status status = QN_ERR_NOT_FOUND;
    if (!is_known && (f->entry || f->ptx.n > 0)) {
        uint32_t host = qn__fpu_enter();
        status = qn__compile(c, f->kernel, qn__key_of_code(f), QN_LOADER_ARENA, (uint32_t)stage,
                             NULL, &code, NULL);
        qn__fpu_leave(host);
    }
    if (status == QN_OK) {
        qn_text *made = demanded(f, &code, stage);
        qn__lock(c);
        if (!text->data) {
            *text = *made;
            memset(made, 0, sizeof *made);
            qn__cache_grown(&c->cache, f);
        }
        qn__unlock(c);
    }
    qn__compiled_release(&code);
    qn__lock(c);
    size_t n = qn__text_out(text, buffer, buffer_bytes);
    qn__unlock(c);
    return n;
}

size_t qn_code_text(const qn_code *f, int stage, char *buffer, size_t buffer_bytes)
{
    if (!f || (!buffer && buffer_bytes))
        return 0;
    qn_text text = {0};
    switch (stage) {
    case QN_DUMP_KERNEL:
        return qn_kernel_print(f->kernel, buffer, buffer_bytes);
    case QN_DUMP_KEY:
        qn__key_print(&f->facts, f->kernel, &text);
        if (f->tuned.n)
            qn__text_add(&text, "tuned: %s\n", f->tuned.data);
        break;
    case QN_DUMP_PLAN:
        return qn__text_out(&f->plan, buffer, buffer_bytes);
    case QN_DUMP_PTX:
        return qn__text_out(&(qn_text){.data = f->ptx.data, .n = f->ptx.n ? f->ptx.n - 1 : 0},
                            buffer, buffer_bytes);
    case QN_DUMP_LLVM:
    case QN_DUMP_ASM:
    case QN_DUMP_SCHEDULE:
    case QN_DUMP_ESTIMATE:
        return text_on_demand((qn_code *)(uintptr_t)f, stage, buffer,
                              buffer_bytes); /* memoised under the lock */
    default:
        if (buffer_bytes)
            buffer[0] = 0;
        return 0;
    }
    size_t n = qn__text_out(&text, buffer, buffer_bytes);
    qn__text_release(&text);
    return n;
}
