/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.c: the life of a context, its options, counters, events and history, and what a fork does
 * to it.
 *
 * The only mutable state of the process is what the handlers of fork need, above all the contexts:
 * before a fork every lock is taken, so that the child sees whole structures; in the child the
 * threads are gone, which the pool and the compile threads are told.
 */
#define _GNU_SOURCE
#include "runtime/context.h"


#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_COMPILE_MS = 20000 };
#define DEFAULT_CACHE_BYTES ((int64_t)64 << 20)
#define LARGE_BYTES                                                                                \
    ((int64_t)4 << 20) /* of what is known beside the code: worth giving back to the system */

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    qn_context *first;
    bool is_engine_lost; /* in a child: the fork met the code generator at work */
} process = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, NULL, false};

/* ---------------------------------------------------------------- fork */

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
    for (qn_context *c = process.first; c; c = c->next) {
        pthread_mutex_lock(&c->lock);
        qn__background_hold(c);
        pthread_mutex_lock(&c->pool.lock);
        pthread_mutex_lock(&c->timer.lock);
    }
}

static void after_fork_parent(void)
{
    for (qn_context *c = process.first; c; c = c->next) {
        qn__background_go_on(c);
        pthread_mutex_unlock(&c->timer.lock);
        pthread_mutex_unlock(&c->pool.lock);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_unlock(&process.lock);
}

/** The code generator has locks for the whole process, so what happened in one context concerns
 * all, and those to come. */
static void after_fork_child(void)
{
    for (const qn_context *c = process.first; c; c = c->next)
        process.is_engine_lost |= qn__compiler_is_inside(c);
    for (qn_context *c = process.first; c; c = c->next) {
        qn__pool_forked(&c->pool);
        qn__timer_forked(&c->timer);
        qn__compiler_forked(c);
        qn__background_forked(c);
        if (process.is_engine_lost)
            qn__compiler_lose(c);
        qn__arena_forked(&c->arena);
        qn__cache_forked(&c->cache);
        qn__cuda_forked(c);
        qn__trace_forked(c);
        qn__symbols_forked(c);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_unlock(&process.lock);
}

static void register_handlers(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void list_context(qn_context *c)
{
    pthread_once(&process.once, register_handlers);
    pthread_mutex_lock(&process.lock);
    c->next = process.first;
    c->link = &process.first;
    if (c->next)
        c->next->link = &c->next;
    process.first = c;
    if (process.is_engine_lost)
        qn__compiler_lose(c);
    pthread_mutex_unlock(&process.lock);
}

static void unlist_context(qn_context *c)
{
    pthread_mutex_lock(&process.lock);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    pthread_mutex_unlock(&process.lock);
}

/* ---------------------------------------------------------------- options */

static qn_status check_options(const qn_context_options *o, qn_error *err)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } field[] = {
        {"n_threads", o->n_threads, 0, QN_MAX_THREADS},
        {"default_executor", o->default_executor, 0, QN_THREADS},
        {"default_compile", o->default_compile, 0, QN_COMPILE_NEVER},
        {"cache_bytes", o->cache_bytes, 0, INT64_MAX},
        {"start_provider", o->start_provider, 0, 1},
        {"dump", o->dump, 0,
         QN_DUMP_KERNEL | QN_DUMP_KEY | QN_DUMP_PLAN | QN_DUMP_LLVM | QN_DUMP_ASM | QN_DUMP_PTX |
             QN_DUMP_SCHEDULE | QN_DUMP_ESTIMATE},
        {"compile_ms", o->compile_ms, 0, INT32_MAX},
        {"cuda_device", o->cuda_device, 0, INT32_MAX},
        {"disk_cache_bytes", o->disk_cache_bytes, 0, INT64_MAX},
        {"log_level", o->log_level, 0, QN_LOG_DETAIL},
        {"data_bytes", o->data_bytes, 0, INT64_MAX},
        {"cuda_data_bytes", o->cuda_data_bytes, 0, INT64_MAX},
        {"code_bytes", o->code_bytes, 0, INT64_MAX},
        {"summary", o->summary, 0, QN_SUMMARY_LAST},
        {"symbols", o->symbols, 0, QN_SYMBOLS_PERF_MAP | QN_SYMBOLS_JITDUMP | QN_SYMBOLS_GDB},
        {"untuned", o->untuned, 0, 1},
        {"reserved", o->reserved, 0, 0},
    };
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++)
        if (field[i].value < field[i].low || field[i].value > field[i].high)
            return qn__fail(err, QN_ERR_ARGUMENT, "qn_context_new: %s %lld not in [%lld,%lld]",
                            field[i].name, (long long)field[i].value, (long long)field[i].low,
                            (long long)field[i].high);
    if (o->allocator && (!o->allocator->allocate || !o->allocator->release))
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_context_new: allocator has no function %s",
                        o->allocator->allocate ? "release" : "allocate");
    return QN_OK;
}

/** A copy of the path of a file to load, which means one file whatever the working directory is
 * later; NULL without memory or path. */
static char *settle_path(const char *path)
{
    if (!path || path[0] == '/')
        return qn__strdup(path);
    char *folder = getcwd(NULL, 0);
    qn_text text = {0};
    qn__text_add(&text, "%s/%s", folder ? folder : "(unknown folder)", path);
    free(folder); /* of the C library */
    if (!text.failed)
        return text.data;
    qn__text_release(&text);
    return NULL;
}

/** Fills defaults and takes copies of the strings; false without memory. A driver without a slash
 * is looked for by the system. */
static bool settle_options(qn_context_options *o)
{
    o->default_executor = o->default_executor ? o->default_executor : QN_SERIAL;
    o->default_compile = o->default_compile ? o->default_compile : QN_COMPILE_WAIT;
    o->cache_bytes = o->cache_bytes ? o->cache_bytes : DEFAULT_CACHE_BYTES;
    o->compile_ms = o->compile_ms ? o->compile_ms : DEFAULT_COMPILE_MS;
    o->log_level = o->log_level ? o->log_level : QN_LOG_WARNING;
    o->disk_cache_bytes = o->disk_cache_bytes ? o->disk_cache_bytes : QN_DISK_USUAL_BYTES;
    o->code_bytes = o->code_bytes ? o->code_bytes : INT64_MAX;
    const char *path = o->provider_path, *dir = o->dump_dir, *driver = o->cuda_driver;
    o->provider_path = settle_path(path);
    o->dump_dir = qn__strdup(dir ? dir : ".");
    const char *trace = o->trace;
    o->trace = settle_path(trace);
    o->cuda_driver = driver && strchr(driver, '/') ? settle_path(driver) : qn__strdup(driver);
    return (o->provider_path || !path) && (o->cuda_driver || !driver) && (o->trace || !trace) &&
           o->dump_dir;
}

static void release_options(qn_context_options *o)
{
    qn__free((void *)(uintptr_t)o->provider_path);
    qn__free((void *)(uintptr_t)o->dump_dir);
    qn__free((void *)(uintptr_t)o->trace);
    qn__free((void *)(uintptr_t)o->cuda_driver);
}

/** Without a working directory no path is settled, and code is not looked for elsewhere. */
static void drop_relative(qn_disk *s)
{
    if (!s->folder || s->folder[0] == '/')
        return;
    qn__free(s->folder);
    s->folder = NULL;
}

/** The folders of code on disk; false without memory. The strings of the options are not kept: they
 * are those of the folders. */
static bool open_disk(qn_context *c)
{
    qn_text usual = {0};
    if (!c->options.disk_cache)
        qn__env_cache(&usual);
    const char *folder = c->options.disk_cache ? c->options.disk_cache : usual.data;
    bool has_lines = c->options.symbols & QN_SYMBOLS_GDB; /* code on disk has none */
    bool is_off = !folder || !folder[0] || strcmp(folder, "off") == 0 || has_lines;
    const char *bundle =
        c->options.bundle && c->options.bundle[0] && !has_lines ? c->options.bundle : NULL;
    c->disk = (qn_disk){.folder = is_off ? NULL : settle_path(folder),
                        .most_bytes = c->options.disk_cache_bytes};
    c->bundle = (qn_disk){.folder = settle_path(bundle), .is_bundle = true};
    bool is_complete = !usual.failed && (is_off || c->disk.folder) && (!bundle || c->bundle.folder);
    drop_relative(&c->disk);
    drop_relative(&c->bundle);
    c->options.disk_cache = c->options.bundle = NULL;
    qn__text_release(&usual);
    return is_complete;
}

static void release_disk(qn_context *c)
{
    qn__free(c->disk.folder);
    qn__free(c->bundle.folder);
}

/* ---------------------------------------------------------------- life */

static bool init_parts(qn_context *c)
{
    if (pthread_mutex_init(&c->lock, NULL) != 0)
        return false;
    if (!qn__pool_init(&c->pool)) {
        pthread_mutex_destroy(&c->lock);
        return false;
    }
    if (!qn__timer_init(&c->timer)) {
        qn__pool_release(&c->pool);
        pthread_mutex_destroy(&c->lock);
        return false;
    }
    pthread_mutex_init(&c->cuda_lock, NULL); /* cannot fail with the defaults */
    qn__compiler_init(&c->compiler);
    qn__background_init(&c->background);
    c->isa = qn__isa_best();
    c->machine = qn__machine_read(QN_SYSTEM_FOLDER);
    qn__processor_name(c->processor);
    return true;
}

/** Makes a context of options that were checked. `outer` is NULL, or the context for whose own use
 * it is: then nothing is read from the environment. */
static qn_status make(qn_context_options options, const qn_context *outer, qn_context **out,
                      qn_error *err)
{
    qn_context *c = qn__zalloc(1, sizeof *c);
    if (!c)
        return qn__fail(err, QN_ERR_MEMORY, "qn_context_new: no memory");
    atomic_init(&c->references, 1);
    if (outer)
        c->thread_limit = outer->thread_limit;
    else
        qn__env_fill(c, &options);
    c->options = options;
    c->is_watched = options.event_hook || options.summary || options.trace;
    c->memory = qn__memory_new(options.allocator, options.data_bytes, options.cuda_data_bytes);
    c->options.allocator = NULL; /* the struct is the caller's */
    if (!settle_options(&c->options) || !c->memory || !open_disk(c) || !init_parts(c)) {
        release_options(&c->options);
        release_disk(c);
        qn__memory_release(c->memory);
        qn__free(c);
        return qn__fail(err, QN_ERR_MEMORY, "qn_context_new: no memory");
    }
    list_context(c);
    qn__trace_open(c);
    qn__symbols_open(c);
    c->memory->has_tools = qn__tools_open(c);
    c->is_watched |= c->has_tools;
    c->options.kokkos_tools = c->options.nvtx = NULL; /* the caller's, or the environment's */
    if (c->options.start_provider) {
        uint32_t host = qn__fpu_enter();
        qn__compile_start(c);
        qn__fpu_leave(host);
    }
    *out = c;
    if (!outer)
        qn__log_machine(c, &c->machine, c->isa ? c->isa : QN_ISA_V3);
    return QN_OK;
}

qn_status qn_context_new(const qn_context_options *o, qn_context **out, qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_context_new: out is NULL");
    qn_context_options options = {.bytes = sizeof options};
    qn_status status =
        o ? qn__struct_take("qn_context_new", "options", o, &options, sizeof options, err) : QN_OK;
    if (status == QN_OK)
        status = check_options(&options, err);
    return status ? status : make(options, NULL, out, err);
}

qn_status qn__context_inside(const qn_context *outer, qn_context **out, qn_error *err)
{
    const qn_context_options *o = &outer->options;
    const qn_context_options options = {.bytes = sizeof options,
                                        .n_threads = o->n_threads,
                                        .default_executor = o->default_executor,
                                        .parallel_for = o->parallel_for,
                                        .parallel_pool = o->parallel_pool,
                                        .provider_path = o->provider_path,
                                        .compile_ms = o->compile_ms,
                                        .log_level = o->log_level,
                                        .cuda_device = o->cuda_device,
                                        .cuda_driver = o->cuda_driver,
                                        .disk_cache = "off",
                                        .untuned = 1};
    return make(options, outer, out, err);
}

void qn__context_retain(qn_context *c)
{
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
}

void qn__context_drop(qn_context *c)
{
    if (atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1)
        return;
    unlist_context(c);
    qn__compiler_release(c);
    qn__background_release(&c->background);
    qn__cache_clear(&c->cache); /* functions hold references; what launches learned does not */
    qn__pool_release(&c->pool);
    qn__timer_release(&c->timer);
    qn__arena_release(&c->arena);
    qn__history_release(&c->history);
    qn__profile_release(&c->profile);
    qn__symbols_close(c);
    qn__copy_kernels_release(c);
    qn__expansions_release(c);
    qn__cuda_release(c);
    release_options(&c->options);
    release_disk(c);
    qn__memory_release(c->memory);
    pthread_mutex_destroy(&c->cuda_lock);
    pthread_mutex_destroy(&c->lock);
    bool was_large = c->was_large;
    qn__free(c);
    if (was_large) /* one small block that lives keeps all of the heap below it */
        malloc_trim(0);
}

void qn_context_release(qn_context *c)
{
    if (!c)
        return;
    if (c->options.summary)
        qn__cuda_drain(c); /* what runs on a GPU is a part of the summary */
    qn__summary_tell(c);
    atomic_store_explicit(&c->is_released, true, memory_order_relaxed);
    qn__background_stop(c);
    qn__lock(c);
    c->was_large = c->cache.bytes - c->cache.code_bytes >= LARGE_BYTES;
    qn__cache_clear(&c->cache);
    qn__unlock(c);
    while (!qn__cache_sweep(c))
        sched_yield(); /* a short run of another thread ends soon */
    qn__cuda_drain(c);
    qn__trace_close(c);
    qn__tools_close(c);
    qn__context_drop(c);
}

/* ---------------------------------------------------------------- looking inside */

int64_t qn__now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

double qn__ms_of_ns(int64_t ns)
{
    int64_t ticks = ns / 1000000 * 1024 + ns % 1000000 * 1024 / 1000000;
    return (double)ticks * 0x1p-10;
}

double qn__now_ms(void)
{
    return qn__ms_of_ns(qn__now_ns());
}

void qn__event(const qn_context *c, int kind, const char *kernel, const char *text,
               double milliseconds)
{
    if (!c->options.event_hook || atomic_load_explicit(&c->is_released, memory_order_relaxed))
        return;
    const qn_event e = {.bytes = sizeof e,
                        .kind = kind,
                        .kernel = kernel,
                        .text = text,
                        .milliseconds = milliseconds};
    c->options.event_hook(c->options.event_arg, &e);
}

static qn_context *writable(const qn_context *c)
{
    return (qn_context *)(uintptr_t)c; /* a const handle may be locked */
}

void qn_context_counters(const qn_context *c, qn_counters *out, size_t out_bytes)
{
    if (!c || !out)
        return;
    qn__lock(writable(c));
    qn_counters counters = c->counters;
    counters.live_functions = c->cache.n_functions;
    counters.code_bytes = c->cache.code_bytes;
    counters.cache_bytes = c->cache.bytes;
    counters.arena_bytes = c->arena.bytes;
    const qn_memory *m = c->memory;
    counters.data_bytes = atomic_load(&m->bytes[QN_MEMORY_HOST]);
    counters.data_peak_bytes = atomic_load(&m->peak[QN_MEMORY_HOST]);
    counters.cuda_data_bytes = atomic_load(&m->bytes[QN_MEMORY_CUDA]);
    counters.cuda_data_peak_bytes = atomic_load(&m->peak[QN_MEMORY_CUDA]);
    int64_t n = qn__calls_count(c);
    counters.launches += n;
    counters.hits += n;
    qn__unlock(writable(c));
    qn__struct_give(&counters, sizeof counters, out, out_bytes);
}

size_t qn_context_history(const qn_context *c, char *buffer, size_t buffer_bytes)
{
    if (!c || (!buffer && buffer_bytes))
        return 0;
    qn_text text = {0};
    qn__lock(writable(c));
    qn__history_print(&c->history, &text);
    qn__unlock(writable(c));
    size_t n = qn__text_out(&text, buffer, buffer_bytes);
    qn__text_release(&text);
    return n;
}
