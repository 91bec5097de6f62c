/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c: PTX to code on a GPU. The driver's linker assembles, since it gives the cubin away;
 * its log is in the message of a failure. Cubins that could be loaded are kept, on disk too. No
 * lock is held meanwhile: of two threads that load the same function, one unloads again.
 */
#include "runtime/cuda/module.h"


#include "runtime/context.h"
#include "runtime/cuda/stream.h"
#include "runtime/launch.h"
#include "runtime/stored.h"

#include <stdlib.h>
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

/** What the assembler says: of errors, and of what it did. */
typedef struct logs {
    char error[LOG_BYTES], info[LOG_BYTES];
} logs;

/** PTX -> cubin. */
static qn_status assemble(qn_gpu *g, const char *who, const qn_code *f, const qn_text *ptx,
                          logs *said, qn_text *cubin, qn_error *err)
{
    const qn_cuda_api *api = &g->cuda->api;
    char *log = said->error;
    int option[] = {QN_CU_JIT_ERROR_LOG, QN_CU_JIT_ERROR_LOG_BYTES, QN_CU_JIT_INFO_LOG,
                    QN_CU_JIT_INFO_LOG_BYTES, QN_CU_JIT_LOG_VERBOSE};
    void *value[] = {log, (void *)(uintptr_t)LOG_BYTES, said->info, (void *)(uintptr_t)LOG_BYTES,
                     (void *)(uintptr_t)1};
    void *state = NULL, *image = NULL;
    size_t bytes = 0;
    int call = QN_CU_CALL_link_create,
        result = api->link_create(sizeof option / sizeof *option, option, value, &state);
    if (result)
        return fail_assembly(g, who, f, call, result, log, err);
    call = QN_CU_CALL_link_add;
    result = api->link_add(state, QN_CU_JIT_INPUT_PTX, ptx->data, ptx->n, "quern", 0, NULL, NULL);
    if (!result) {
        call = QN_CU_CALL_link_complete;
        result = api->link_complete(state, &image, &bytes);
    }
    if (!result)
        qn__text_bytes(cubin, image, bytes);
    api->link_destroy(state);
    if (result)
        return fail_assembly(g, who, f, call, result, log, err);
    return cubin->failed ? qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory for code",
                                    who, f->kernel->name)
                         : QN_OK;
}

/** Whether a kernel keeps registers in memory, as the assembler says. */
static bool has_spills(logs *said)
{
    static const char word[] = " bytes spill stores";
    said->info[LOG_BYTES - 1] = 0;
    for (const char *at = strstr(said->info, word); at; at = strstr(at + 1, word))
        if (at > said->info + 1 && (at[-1] != '0' || (at[-2] >= '0' && at[-2] <= '9')))
            return true;
    return false;
}

/** PTX whose lines that say how many blocks must fit say three quarters of that, or, with `lifts`,
 * are not there; empty if there are none. */
static void relax_limits(const qn_text *ptx, bool lifts, qn_text *out)
{
    static const char word[] = "\n.minnctapersm ";
    const char *at = ptx->data, *next;
    while ((next = strstr(at, word)) != NULL) {
        long fewer = strtol(next + strlen(word), NULL, 10) * 3 / 4;
        qn__text_bytes(out, at, (size_t)(next - at));
        if (!lifts && fewer > 1)
            qn__text_add(out, "%s%ld", word, fewer);
        const char *end = strchr(next + 1, '\n');
        at = end ? end : next + strlen(next);
    }
    if (out->n > 0)
        qn__text_bytes(out, at, strlen(at) + 1);
}

/** PTX -> cubin. What spills, as so many blocks must fit, is assembled again for fewer blocks, and
 * then without that limit: spills cost more than threads gain. */
static qn_status assemble_best(qn_gpu *g, const char *who, const qn_code *f, logs *said,
                               qn_text *out, qn_error *err)
{
    qn_status status = assemble(g, who, f, &f->ptx, said, out, err);
    for (int lifts = 0; lifts < 2 && !status && has_spills(said); lifts++) {
        qn_text text = {0}, other = {0};
        relax_limits(&f->ptx, lifts, &text);
        if (text.n > 0 && !text.failed && assemble(g, who, f, &text, said, &other, NULL) == QN_OK) {
            qn_text first = *out;
            *out = other;
            other = first;
        }
        qn__text_release(&text);
        qn__text_release(&other);
    }
    return status;
}

/** PTX -> cubin, and how long that takes. */
static qn_status make_cubin(qn_gpu *g, const char *who, const qn_code *f, qn_text *out,
                            qn_error *err)
{
    qn_context *c = f->context;
    logs *said = qn__zalloc(1, sizeof *said);
    if (!said)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who,
                        f->kernel->name);
    uint32_t host = qn__fpu_enter();
    double start = qn__now_ms();
    qn_status status = assemble_best(g, who, f, said, out, err);
    double milliseconds = qn__now_ms() - start;
    qn__free(said);
    qn__lock(c);
    c->counters.compile_us += (int64_t)(milliseconds * 1e3);
    qn__unlock(c);
    qn__fpu_leave(host);
    return status;
}

/** Where a cubin comes from. */
enum { CUBIN_KEPT, CUBIN_ON_DISK, CUBIN_MADE };

/** The cubin for a GPU: a copy of the one that the function keeps, or one of the cache on disk, or
 * a new one. */
static qn_status find_cubin(qn_gpu *g, const char *who, qn_code *f, qn_assembler by, int *from,
                            qn_text *out, qn_error *err)
{
    qn_context *c = f->context;
    *from = CUBIN_KEPT;
    qn__lock(c);
    if (f->cubin.n > 0 && f->cubin_capability == g->capability)
        qn__text_bytes(out, f->cubin.data, f->cubin.n);
    qn__unlock(c);
    if (out->n > 0)
        return QN_OK;
    *from = CUBIN_ON_DISK;
    if (qn__stored_find_cubin(c, f, by, out))
        return QN_OK;
    *from = CUBIN_MADE;
    qn__text_release(out);
    return make_cubin(g, who, f, out, err);
}

/** Keeps a cubin that could be loaded. */
static void keep_cubin(const qn_gpu *g, qn_code *f, qn_assembler by, int from, const qn_text *cubin)
{
    if (from == CUBIN_KEPT)
        return;
    qn__lock(f->context);
    if (f->cubin.n == 0) {
        qn__text_bytes(&f->cubin, cubin->data, cubin->n);
        f->cubin_capability = g->capability;
        qn__cache_grown(&f->context->cache, f);
    }
    qn__unlock(f->context);
    if (from == CUBIN_MADE)
        qn__stored_keep_cubin(f->context, f, by, cubin);
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

/** Finds or makes the cubin and loads it. One of the cache on disk that the driver does not take is
 * made anew. */
static qn_status load_module(qn_gpu *g, const char *who, qn_code *f, void **module, qn_error *err)
{
    const qn_assembler by = {g->cuda->driver, g->capability};
    qn_text cubin = {0};
    qn_error refused = {0};
    int from;
    qn_status status = find_cubin(g, who, f, by, &from, &cubin, err);
    if (status == QN_OK && from == CUBIN_ON_DISK &&
        QN_CU(g, who, module_load, (module, cubin.data), &refused) != QN_OK) {
        from = CUBIN_MADE;
        *module = NULL;
        qn__text_release(&cubin);
        status = qn__gpu_is_usable(g)
                     ? make_cubin(g, who, f, &cubin, err)
                     : qn__fail(err, (qn_status)refused.status, "%s", refused.message);
    }
    if (status == QN_OK && !*module)
        status = QN_CU(g, who, module_load, (module, cubin.data), err);
    if (status == QN_OK)
        keep_cubin(g, f, by, from, &cubin);
    qn__text_release(&cubin);
    return status;
}

static qn_status load(qn_gpu *g, const char *who, qn_code *f, qn_gpu_code **out, qn_error *err)
{
    qn_gpu_code *code = qn__zalloc(1, sizeof *code);
    if (!code)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who,
                        f->kernel->name);
    code->gpu = g;
    qn_status status = load_module(g, who, f, &code->module, err);
    if (status == QN_OK)
        status = find_steps(g, who, f, code, err);
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
