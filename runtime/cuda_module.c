/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_module.c: PTX to code on a GPU. The driver's linker assembles, since it gives the cubin away;
 * its log is in the message of a failure. No lock is held meanwhile: of two threads that load the
 * same function, one unloads again.
 */
#include "runtime/cuda_module.h"


#include "runtime/context.h"
#include "runtime/cuda_stream.h"
#include "runtime/launch.h"

#include <string.h>

enum { LOG_BYTES = 8192, MOST_STATIC_SHARED = 48 << 10 };

/* ---------------------------------------------------------------- assembling */

/** The log in one line: what follows white space is joined. */
static void flatten(char *log)
{
    size_t n = 0;
    bool is_space = true;
    for (const char *p = log; *p; p++) {
        bool now = *p == '\n' || *p == '\r' || *p == '\t' || *p == ' ';
        if (!now)
            log[n++] = *p;
        else if (!is_space)
            log[n++] = ' ';
        is_space = now;
    }
    log[n] = 0;
}

static qn_status fail_assembly(qn_gpu *g, const char *who, const qn_code *f, int call,
                               int result, char *log, qn_error *err)
{
    qn_error inner = {0};
    qn_status status = qn__gpu_check(g, who, call, result, &inner);
    log[LOG_BYTES - 1] = 0;
    flatten(log);
    return qn__fail(err, status, "%s; kernel \"%.60s\"%s%.200s", inner.message, f->kernel->name,
                    log[0] ? ": " : "", log);
}

/** PTX -> cubin. */
static qn_status assemble(qn_gpu *g, const char *who, const qn_code *f, char *log,
                          qn_text *cubin, qn_error *err)
{
    const qn_cuda_api *api = &g->cuda->api;
    int option[] = {QN_CU_JIT_ERROR_LOG, QN_CU_JIT_ERROR_LOG_BYTES};
    void *value[] = {log, (void *)(uintptr_t)LOG_BYTES};
    void *state = NULL, *image = NULL;
    size_t bytes = 0;
    int call = QN_CU_CALL_link_create, result = api->link_create(2, option, value, &state);
    if (result)
        return fail_assembly(g, who, f, call, result, log, err);
    call = QN_CU_CALL_link_add;
    result = api->link_add(state, QN_CU_JIT_INPUT_PTX, f->ptx.data, f->ptx.n, "quern", 0, NULL, NULL);
    if (!result) {
        call = QN_CU_CALL_link_complete;
        result = api->link_complete(state, &image, &bytes);
    }
    if (!result)
        qn__text_bytes(cubin, image, bytes);
    api->link_destroy(state);
    if (result)
        return fail_assembly(g, who, f, call, result, log, err);
    return cubin->failed ? qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory for code", who,
                                    f->kernel->name)
                         : QN_OK;
}

/** The cubin for a GPU: a copy of the one that is kept, or a new one, which then is kept. */
static qn_status find_cubin(qn_gpu *g, const char *who, qn_code *f, qn_text *out, qn_error *err)
{
    qn_context *c = f->context;
    qn__lock(c);
    if (f->cubin.n > 0 && f->cubin_capability == g->capability)
        qn__text_bytes(out, f->cubin.data, f->cubin.n);
    qn__unlock(c);
    if (out->n > 0)
        return QN_OK;
    char *log = qn__zalloc(1, LOG_BYTES);
    if (!log)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who, f->kernel->name);
    uint32_t host = qn__fpu_enter();
    double start = qn__now_ms();
    qn_status status = assemble(g, who, f, log, out, err);
    double milliseconds = qn__now_ms() - start;
    qn__free(log);
    qn__lock(c);
    c->counters.compile_us += (int64_t)(milliseconds * 1e3);
    qn__unlock(c);
    qn__fpu_leave(host);
    if (status)
        return status;
    qn__lock(c);
    if (f->cubin.n == 0) {
        qn__text_bytes(&f->cubin, out->data, out->n);
        f->cubin_capability = g->capability;
    }
    qn__unlock(c);
    return QN_OK;
}

/* ---------------------------------------------------------------- loading */

static void free_code(qn_gpu_code *code)
{
    bool is_pushed;
    if (code->module && qn__gpu_enter(code->gpu, "", &is_pushed, NULL) == QN_OK) {
        code->gpu->cuda->api.module_unload(code->module);
        qn__gpu_leave(code->gpu, is_pushed);
    }
    qn__free(code);
}

void qn__gpu_code_release(qn_gpu_code *list)
{
    while (list) {
        qn_gpu_code *next = list->next;
        free_code(list);
        list = next;
    }
}

/** Finds the kernels of a module. */
static qn_status find_steps(qn_gpu *g, const char *who, const qn_code *f, qn_gpu_code *code,
                            qn_error *err)
{
    static const char *const name[QN_GPU_STEPS] = {QN_GPU_ENTRY, QN_GPU_ENTRY "_2"};
    const qn_gpu_info *info = &f->info.gpu;
    for (int i = 0; i < info->n_steps; i++) {
        int shared = info->step[i].shared_bytes;
        qn_status status =
            QN_CU(g, who, module_function, (&code->step[i], code->module, name[i]), err);
        if (status == QN_OK && shared > MOST_STATIC_SHARED)
            status = QN_CU(g, who, function_set,
                           (code->step[i], QN_CU_FUNCTION_MAX_SHARED, shared), err);
        if (status)
            return status;
    }
    return QN_OK;
}

static qn_status load(qn_gpu *g, const char *who, qn_code *f, qn_gpu_code **out, qn_error *err)
{
    qn_text cubin = {0};
    qn_gpu_code *code = qn__zalloc(1, sizeof *code);
    if (!code)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who, f->kernel->name);
    code->gpu = g;
    qn_status status = find_cubin(g, who, f, &cubin, err);
    if (status == QN_OK)
        status = QN_CU(g, who, module_load, (&code->module, cubin.data), err);
    if (status == QN_OK)
        status = find_steps(g, who, f, code, err);
    qn__text_release(&cubin);
    if (status)
        free_code(code);
    else
        *out = code;
    return status;
}

static qn_gpu_code *find(const qn_gpu *g, qn_code *f)
{
    qn_gpu_code *code = atomic_load_explicit(&f->on_gpu, memory_order_acquire);
    while (code && code->gpu != g)
        code = code->next;
    return code;
}

qn_status qn__gpu_code_of(qn_gpu *g, const char *who, qn_code *f, const qn_gpu_code **out,
                          qn_error *err)
{
    qn_gpu_code *code = find(g, f), *made = NULL;
    if (!code) {
        qn_status status = load(g, who, f, &made, err);
        if (status)
            return status;
        qn__lock(f->context);
        code = find(g, f);
        if (!code) {
            code = made;
            made = NULL;
            code->next = atomic_load_explicit(&f->on_gpu, memory_order_relaxed);
            atomic_store_explicit(&f->on_gpu, code, memory_order_release);
        }
        qn__unlock(f->context);
        qn__gpu_code_release(made);
    }
    *out = code;
    return QN_OK;
}

qn_status qn__cuda_load(qn_stream *s, const char *who, qn_code *f, qn_error *err)
{
    const qn_gpu_code *code;
    bool is_pushed = false;
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    if (status)
        return status;
    status = qn__gpu_code_of(s->gpu, who, f, &code, err);
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}
