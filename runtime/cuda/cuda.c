/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.c: the driver and the GPUs of a context. Both are found when they are first needed, and a
 * failure is not remembered. The primary context of a device is retained once; contexts of the
 * host's are used as they are and stay the host's.
 */
#include "runtime/cuda/cuda.h"

#include "runtime/context.h"
#include "runtime/cuda/stream.h"
#include "runtime/cuda/time.h"

#include <string.h>

/* ---------------------------------------------------------------- the driver */

static qn_status open_driver(const qn_context *c, const char *who, qn_cuda *cuda, qn_error *err)
{
    qn_error inner = {0};
    qn_status status = qn__cuda_open(c->options.cuda_driver, &cuda->api, &inner);
    if (status)
        return qn__fail(err, status, "%s: %s", who, inner.message);
    const qn_cuda_api *api = &cuda->api;
    int result = api->init(0), call = QN_CU_CALL_init;
    if (!result) {
        result = api->driver_version(&cuda->driver);
        call = QN_CU_CALL_driver_version;
    }
    if (!result) {
        result = api->device_count(&cuda->n_devices);
        call = QN_CU_CALL_device_count;
    }
    if (!result && cuda->n_devices <= 0)
        result = QN_CU_NO_DEVICE;
    return result ? qn__cuda_fail(api, who, -1, call, result, err) : QN_OK;
}

static qn_status make_cuda(qn_context *c, const char *who, qn_cuda **out, qn_error *err)
{
    qn_cuda *cuda = qn__zalloc(1, sizeof *cuda);
    if (!cuda)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory", who);
    qn_status status = open_driver(c, who, cuda, err);
    if (status == QN_OK && pthread_mutex_init(&cuda->lock, NULL) != 0)
        status = qn__fail(err, QN_ERR_MEMORY, "%s: no memory for a lock", who);
    if (status) {
        qn__free(cuda);
        return status;
    }
    *out = cuda;
    return QN_OK;
}

static qn_status fail_forked(const char *who, qn_error *err)
{
    return qn__fail(err, QN_ERR_FORKED,
                    "%s: the process was forked after CUDA was used: CUDA belongs to the parent",
                    who);
}

qn_status qn__cuda_of(qn_context *c, const char *who, qn_cuda **out, qn_error *err)
{
    qn_cuda *cuda = atomic_load_explicit(&c->cuda, memory_order_acquire);
    if (!cuda) {
        pthread_mutex_lock(&c->cuda_lock);
        cuda = atomic_load_explicit(&c->cuda, memory_order_acquire);
        qn_status status = cuda ? QN_OK : make_cuda(c, who, &cuda, err);
        if (status == QN_OK)
            atomic_store_explicit(&c->cuda, cuda, memory_order_release);
        pthread_mutex_unlock(&c->cuda_lock);
        if (status)
            return status;
    }
    if (atomic_load_explicit(&cuda->is_forked, memory_order_relaxed))
        return fail_forked(who, err);
    *out = cuda;
    return QN_OK;
}

void qn__cuda_forked(qn_context *c)
{
    pthread_mutex_init(&c->cuda_lock, NULL); /* whoever held it is not here */
    qn_cuda *cuda = atomic_load_explicit(&c->cuda, memory_order_acquire);
    if (!cuda)
        return;
    atomic_store_explicit(&cuda->is_forked, true, memory_order_relaxed);
    pthread_mutex_init(&cuda->lock, NULL);
    for (qn_gpu *g = cuda->gpus; g; g = g->next)
        pthread_mutex_init(&g->lock, NULL);
}

/* ---------------------------------------------------------------- the current context */

bool qn__gpu_is_usable(const qn_gpu *g)
{
    return atomic_load_explicit(&g->lost, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&g->cuda->is_forked, memory_order_relaxed);
}

/** Refuses: the context is lost, or belongs to the parent. */
static qn_status fail_unusable(const qn_gpu *g, const char *who, qn_error *err)
{
    if (atomic_load_explicit(&g->cuda->is_forked, memory_order_relaxed))
        return fail_forked(who, err);
    const char *name = NULL;
    int lost = atomic_load_explicit(&g->lost, memory_order_relaxed);
    if (g->cuda->api.error_name(lost, &name) != QN_CU_OK || !name)
        name = "unknown error";
    return qn__fail(err, QN_ERR_CONTEXT_LOST, "%s: device %d: the CUDA context was lost by %s (%d)",
                    who, g->device, name, lost);
}

qn_status qn__gpu_check(qn_gpu *g, const char *who, int call, int result, qn_error *err)
{
    if (result == QN_CU_OK)
        return QN_OK;
    int none = 0;
    if (qn__cuda_is_fatal(result))
        atomic_compare_exchange_strong(&g->lost, &none, result);
    return qn__cuda_fail(&g->cuda->api, who, g->device, call, result, err);
}

qn_status qn__gpu_is_done(qn_gpu *g, const char *who, void *event, void *stream, bool *out,
                          qn_error *err)
{
    bool is_pushed;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    int result = event ? g->cuda->api.event_query(event) : g->cuda->api.stream_query(stream);
    if (result != QN_CU_NOT_READY)
        status = qn__gpu_check(g, who, event ? QN_CU_CALL_event_query : QN_CU_CALL_stream_query,
                               result, err);
    if (status == QN_OK)
        *out = result != QN_CU_NOT_READY;
    qn__gpu_leave(g, is_pushed);
    return status;
}

qn_status qn__gpu_enter(qn_gpu *g, const char *who, bool *is_pushed, qn_error *err)
{
    *is_pushed = false;
    if (!qn__gpu_is_usable(g))
        return fail_unusable(g, who, err);
    void *current = NULL;
    qn_status status = QN_CU(g, who, context_current, (&current), err);
    if (status || current == g->context)
        return status;
    status = QN_CU(g, who, context_push, (g->context), err);
    *is_pushed = status == QN_OK;
    return status;
}

void qn__gpu_leave(qn_gpu *g, bool is_pushed)
{
    void *popped;
    if (is_pushed)
        g->cuda->api.context_pop(&popped);
}

/* ---------------------------------------------------------------- memory of other GPUs */

/** Asks whether g reaches what `other` allocates, and lets it. */
static qn_status connect_peer(qn_gpu *g, qn_gpu *other, const char *who, bool *out, qn_error *err)
{
    int can = 0;
    qn_status status = QN_CU(g, who, peer_can, (&can, g->handle, other->handle), err);
    *out = can != 0;
    if (status || !can)
        return status;
    if (other->pool) {
        const qn_cu_access access = {.location = 1, .device = g->handle, .flags = 3};
        return QN_CU(g, who, pool_access, (other->pool, &access, 1), err);
    }
    int result = g->cuda->api.peer_enable(other->context, 0);
    return result == QN_CU_PEER_IS_ENABLED
               ? QN_OK
               : qn__gpu_check(g, who, QN_CU_CALL_peer_enable, result, err);
}

qn_status qn__gpu_reaches(qn_gpu *g, qn_gpu *other, const char *who, bool *out, qn_error *err)
{
    uint64_t bit = other->device < 64 && other->is_primary ? UINT64_C(1) << other->device : 0;
    qn_status status = QN_OK;
    pthread_mutex_lock(&g->lock);
    *out = (g->peers & bit) != 0;
    if (!(g->peers_asked & bit)) {
        status = connect_peer(g, other, who, out, err);
        g->peers_asked |= status ? 0 : bit;
        g->peers |= status || !*out ? 0 : bit;
    }
    pthread_mutex_unlock(&g->lock);
    return status;
}

/* ---------------------------------------------------------------- GPUs */

/** What the driver says of the device's processors; what it does not is 0, and counts as usual. */
static void read_machine(qn_gpu *g)
{
    int32_t l2 = 0, clock = 0, memory_clock = 0, memory_bits = 0;
    const struct {
        int32_t *to;
        int attribute;
    } list[] = {
        {&g->machine.multiprocessors, QN_CU_ATTRIBUTE_MULTIPROCESSORS},
        {&g->machine.threads, QN_CU_ATTRIBUTE_RESIDENT_THREADS},
        {&g->machine.shared_bytes, QN_CU_ATTRIBUTE_SHARED_BYTES},
        {&g->machine.registers, QN_CU_ATTRIBUTE_REGISTERS},
        {&l2, QN_CU_ATTRIBUTE_L2_BYTES},
        {&clock, QN_CU_ATTRIBUTE_CLOCK},
        {&memory_clock, QN_CU_ATTRIBUTE_MEMORY_CLOCK},
        {&memory_bits, QN_CU_ATTRIBUTE_MEMORY_BITS},
    };
    g->machine = (qn_machine){0};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        int value = 0;
        *list[i].to =
            g->cuda->api.device_attribute(&value, list[i].attribute, g->handle) ? 0 : value;
    }
    double cycles = (double)clock * g->machine.multiprocessors;
    double bytes = 2.0 * memory_clock * memory_bits / 8;
    g->machine.far_bytes = l2;
    g->machine.memory_rate =
        cycles > 0 && bytes < (double)QN_MOST_MEMORY_RATE * cycles ? (int32_t)(bytes / cycles) : 0;
}

/** Properties of the device that we use. */
static qn_status read_properties(qn_gpu *g, const char *who, qn_error *err)
{
    int major = 0, minor = 0, pitch = 0;
    qn_status status =
        QN_CU(g, who, device_attribute, (&major, QN_CU_ATTRIBUTE_MAJOR, g->handle), err);
    if (status == QN_OK)
        status = QN_CU(g, who, device_attribute, (&minor, QN_CU_ATTRIBUTE_MINOR, g->handle), err);
    if (status == QN_OK)
        status =
            QN_CU(g, who, device_attribute, (&pitch, QN_CU_ATTRIBUTE_MAX_PITCH, g->handle), err);
    g->capability = major * 10 + minor;
    g->isa = qn__isa_of_gpu(g->capability);
    g->max_pitch = pitch > 0 ? (size_t)pitch : 0;
    if (status == QN_OK)
        read_machine(g);
    return status;
}

/** A pool of our own, so that what we keep is ours alone; no pool where the device has none. */
static qn_status make_pool(qn_gpu *g, const char *who, qn_error *err)
{
    uint64_t kept = (uint64_t)1 << 30; /* bytes that survive a synchronisation */
    int has_pools = 0;
    qn_cu_pool properties = {.allocation = 1, .location = 1, .device = g->handle};
    qn_status status = QN_CU(g, who, device_attribute,
                             (&has_pools, QN_CU_ATTRIBUTE_MEMORY_POOLS, g->handle), err);
    if (status || !has_pools)
        return status;
    status = QN_CU(g, who, pool_create, (&g->pool, &properties), err);
    if (status == QN_OK)
        status = QN_CU(g, who, pool_set, (g->pool, QN_CU_POOL_RELEASE_THRESHOLD, &kept), err);
    return status;
}

static void free_gpu(qn_gpu *g)
{
    qn__gpu_streams_release(g);
    qn__gpu_pieces_release(g);
    bool is_pushed = false;
    bool is_entered = g->context && qn__gpu_enter(g, "", &is_pushed, NULL) == QN_OK;
    qn__gpu_clock_release(g);
    if (is_entered && g->pool)
        g->cuda->api.pool_destroy(g->pool);
    if (is_entered)
        qn__gpu_leave(g, is_pushed);
    /* Also of a lost context: nothing else gives the device free. */
    if (g->is_primary && g->context && !atomic_load(&g->cuda->is_forked))
        g->cuda->api.primary_release(g->handle);
    pthread_mutex_destroy(&g->lock);
    qn__free(g);
}

/** Makes the record of a GPU; `context` NULL: the primary one of device number `device`. */
static qn_status make_gpu(qn_context *c, qn_cuda *cuda, const char *who, int device, void *context,
                          qn_gpu **out, qn_error *err)
{
    qn_gpu *g = qn__zalloc(1, sizeof *g);
    if (!g)
        return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory", who, device);
    if (pthread_mutex_init(&g->lock, NULL) != 0) {
        qn__free(g);
        return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory for a lock", who, device);
    }
    g->cuda = cuda;
    g->owner = c;
    g->device = device;
    qn_status status = QN_CU(g, who, device_get, (&g->handle, device), err);
    if (status == QN_OK)
        status = read_properties(g, who, err);
    g->is_primary = !context;
    if (status == QN_OK && context)
        g->context = context;
    else if (status == QN_OK)
        status = QN_CU(g, who, primary_retain, (&g->context, g->handle), err);
    bool is_pushed = false;
    if (status == QN_OK)
        status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status == QN_OK)
        status = make_pool(g, who, err);
    if (status == QN_OK)
        status = qn__stream_make(g, who, NULL, false, &g->own, err);
    qn__gpu_leave(g, is_pushed);
    if (status)
        free_gpu(g);
    else
        *out = g;
    return status;
}

/** Finds a GPU by device (its primary context) or by context, or makes its record. */
static qn_status find_gpu(qn_context *c, qn_cuda *cuda, const char *who, int device, void *context,
                          qn_gpu **out, qn_error *err)
{
    qn_status status = QN_OK;
    pthread_mutex_lock(&cuda->lock);
    qn_gpu *g = cuda->gpus;
    while (g && (context ? g->context != context : !g->is_primary || g->device != device))
        g = g->next;
    if (!g) {
        status = make_gpu(c, cuda, who, device, context, &g, err);
        if (status == QN_OK) {
            g->next = cuda->gpus;
            cuda->gpus = g;
        }
    }
    pthread_mutex_unlock(&cuda->lock);
    if (status == QN_OK)
        *out = g;
    return status;
}

static qn_status check_device(const qn_cuda *cuda, const char *who, int device, qn_error *err)
{
    if (device >= 0 && device < cuda->n_devices)
        return QN_OK;
    return qn__fail(err, QN_ERR_ARGUMENT, "%s: there is no device %d, there are %d", who, device,
                    cuda->n_devices);
}

qn_status qn__gpu_of(qn_context *c, const char *who, int device, qn_gpu **out, qn_error *err)
{
    qn_cuda *cuda = NULL;
    device = device < 0 ? c->options.cuda_device : device;
    qn_status status = qn__cuda_of(c, who, &cuda, err);
    if (status == QN_OK)
        status = check_device(cuda, who, device, err);
    return status ? status : find_gpu(c, cuda, who, device, NULL, out, err);
}

/** The device of a CUDA context, by our number. */
static qn_status find_device(qn_cuda *cuda, const char *who, void *context, int *device,
                             qn_error *err)
{
    const qn_cuda_api *api = &cuda->api;
    void *popped;
    int handle = 0, result = api->context_push(context);
    if (result)
        return qn__cuda_fail(api, who, -1, QN_CU_CALL_context_push, result, err);
    result = api->context_device(&handle);
    api->context_pop(&popped);
    if (result)
        return qn__cuda_fail(api, who, -1, QN_CU_CALL_context_device, result, err);
    for (int i = 0; i < cuda->n_devices; i++) {
        int other = -1;
        result = api->device_get(&other, i);
        if (result)
            return qn__cuda_fail(api, who, i, QN_CU_CALL_device_get, result, err);
        if (other == handle) {
            *device = i;
            return QN_OK;
        }
    }
    return qn__fail(err, QN_ERR_CUDA, "%s: the device %d of a CUDA context is none of the driver's",
                    who, handle);
}

qn_status qn__gpu_of_context(qn_context *c, const char *who, void *context, qn_gpu **out,
                             qn_error *err)
{
    qn_cuda *cuda = NULL;
    int device = 0;
    qn_status status = qn__cuda_of(c, who, &cuda, err);
    if (status == QN_OK)
        status = find_device(cuda, who, context, &device, err);
    qn_gpu *primary = NULL;
    if (status == QN_OK) /* first, so that its context is known by its handle */
        status = find_gpu(c, cuda, who, device, NULL, &primary, err);
    return status ? status : find_gpu(c, cuda, who, device, context, out, err);
}

void qn__cuda_release(qn_context *c)
{
    qn_cuda *cuda = atomic_load(&c->cuda);
    if (!cuda)
        return;
    while (cuda->gpus) {
        qn_gpu *g = cuda->gpus;
        cuda->gpus = g->next;
        free_gpu(g);
    }
    pthread_mutex_destroy(&cuda->lock);
    qn__free(cuda);
}

/* ---------------------------------------------------------------- public */

qn_status qn_cuda_device_count(qn_context *c, int *out, qn_error *err)
{
    const char *who = "qn_cuda_device_count";
    qn_cuda *cuda = NULL;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "out" : "context");
    qn_status status = qn__cuda_of(c, who, &cuda, err);
    if (status == QN_OK)
        *out = cuda->n_devices;
    return status;
}

/** Attributes of a device that stand in its description as numbers. */
static int read_attributes(const qn_cuda_api *api, int handle, qn_cuda_device *out)
{
    int major = 0, minor = 0, processors = 0, l2 = 0;
    int result = api->device_attribute(&major, QN_CU_ATTRIBUTE_MAJOR, handle);
    if (!result)
        result = api->device_attribute(&minor, QN_CU_ATTRIBUTE_MINOR, handle);
    if (!result)
        result = api->device_attribute(&processors, QN_CU_ATTRIBUTE_MULTIPROCESSORS, handle);
    if (!result)
        result = api->device_attribute(&l2, QN_CU_ATTRIBUTE_L2_BYTES, handle);
    out->capability = major * 10 + minor;
    out->isa = qn__isa_of_gpu(out->capability);
    out->n_processors = processors;
    out->l2_bytes = l2;
    return result;
}

/** Describes a device; *call is the function that failed. */
static int describe_device(const qn_cuda *cuda, int device, qn_cuda_device *out, int *call)
{
    const qn_cuda_api *api = &cuda->api;
    int handle = 0, result;
    qn_cu_uuid uuid = {{0}};
    size_t bytes = 0;
    out->driver = cuda->driver;
    *call = QN_CU_CALL_device_get;
    if ((result = api->device_get(&handle, device)) != QN_CU_OK)
        return result;
    *call = QN_CU_CALL_device_name;
    if ((result = api->device_name(out->name, (int)sizeof out->name, handle)) != QN_CU_OK)
        return result;
    out->name[sizeof out->name - 1] = 0;
    *call = QN_CU_CALL_device_uuid;
    if ((result = api->device_uuid(&uuid, handle)) != QN_CU_OK)
        return result;
    memcpy(out->uuid, uuid.byte, sizeof out->uuid);
    *call = QN_CU_CALL_device_bytes;
    if ((result = api->device_bytes(&bytes, handle)) != QN_CU_OK)
        return result;
    out->memory_bytes = (int64_t)bytes;
    *call = QN_CU_CALL_device_attribute;
    return read_attributes(api, handle, out);
}

qn_status qn_cuda_device_info(qn_context *c, int device, qn_cuda_device *out, size_t out_bytes,
                              qn_error *err)
{
    const char *who = "qn_cuda_device_info";
    qn_cuda *cuda = NULL;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "out" : "context");
    qn_status status = qn__cuda_of(c, who, &cuda, err);
    if (status == QN_OK)
        status = check_device(cuda, who, device, err);
    if (status)
        return status;
    qn_cuda_device info;
    memset(&info, 0, sizeof info);
    int call = 0, result = describe_device(cuda, device, &info, &call);
    if (result)
        return qn__cuda_fail(&cuda->api, who, device, call, result, err);
    qn__struct_give(&info, sizeof info, out, out_bytes);
    return QN_OK;
}

qn_status qn_cuda_trim(qn_context *c, int device, qn_error *err)
{
    const char *who = "qn_cuda_trim";
    qn_gpu *g = NULL;
    bool is_pushed = false;
    if (!c)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: context is NULL", who);
    qn_status status = qn__gpu_of(c, who, device, &g, err);
    if (status == QN_OK)
        status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    qn__gpu_sweep(g, false);
    qn__gpu_pieces_release(g);
    if (g->pool)
        status = QN_CU(g, who, pool_trim, (g->pool, 0), err);
    qn__gpu_leave(g, is_pushed);
    return status;
}
