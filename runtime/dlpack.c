/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlpack.c: DLPack tensors as views and views as DLPack tensors. A tensor that is taken over is
 * owned by a buffer whose release calls the tensor's deleter; a tensor that is given out holds a
 * reference to the view until its own deleter is called. Shape and address are checked in
 * foreign.c.
 */
#include "quern/dlpack.h"
#include "runtime/foreign.h"

#include <string.h>

enum { MAJOR = 1, MINOR = 0 }; /* of what we write; any minor is read */

/* ---------------------------------------------------------------- dtypes and devices */

static const struct {
    uint8_t code, bits, dtype;
} dtypes[] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, format, numpy, dlpack,   \
                 doc)                                                                              \
    {dlpack, 8 * (bytes), number},
#include "quern/dtypes.def"
#undef QN_DTYPE
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

/** What a code stands for, for messages. */
static const char *const code_names[] = {
    "signed",     "unsigned",     "float",        "opaque handle", "bfloat",    "complex",
    "bool",       "fp8 e3m4",     "fp8 e4m3",     "fp8 e4m3b11fnuz", "fp8 e4m3fn",
    "fp8 e4m3fnuz", "fp8 e5m2",   "fp8 e5m2fnuz", "fp8 e8m0fnu",   "fp6 e2m3fn", "fp6 e3m2fn",
    "fp4 e2m1fn",
};
enum { N_CODES = sizeof code_names / sizeof code_names[0] };

/** Devices; -1 where Quern has no such space. */
static const struct {
    int32_t type, space;
    const char *name;
} devices[] = {
    {1, QN_SPACE_HOST, "CPU"},
    {2, QN_SPACE_CUDA, "CUDA"},
    {3, QN_SPACE_CUDA_PINNED, "CUDA host"},
    {4, -1, "OpenCL"},
    {7, -1, "Vulkan"},
    {8, -1, "Metal"},
    {9, -1, "VPI"},
    {10, QN_SPACE_ROCM, "ROCm"},
    {11, QN_SPACE_ROCM_PINNED, "ROCm host"},
    {12, -1, "extension"},
    {13, QN_SPACE_CUDA_MANAGED, "CUDA managed"},
    {14, -1, "oneAPI"},
    {15, -1, "WebGPU"},
    {16, -1, "Hexagon"},
    {17, -1, "MAIA"},
    {18, -1, "Trainium"},
};
enum { N_DEVICES = sizeof devices / sizeof devices[0] };

static qn_status find_dtype(const char *who, const char *label, qn_dl_dtype t, int32_t *out,
                            qn_error *err)
{
    const char *code = t.code < N_CODES ? code_names[t.code] : "unknown";
    if (t.lanes != 1)
        return qn__fail(err, QN_ERR_DTYPE,
                        "%s: view \"%s\": %d lanes of dtype code %d (%s): only 1 is supported", who,
                        qn__label(label), (int)t.lanes, (int)t.code, code);
    for (int i = 0; i < N_DTYPES; i++) {
        if (dtypes[i].code != t.code || dtypes[i].bits != t.bits)
            continue;
        *out = dtypes[i].dtype;
        return QN_OK;
    }
    return qn__fail(err, QN_ERR_DTYPE,
                    "%s: view \"%s\": dtype code %d (%s) of %d bits is not supported", who,
                    qn__label(label), (int)t.code, code, (int)t.bits);
}

static qn_status find_space(const char *who, const char *label, int32_t type, int32_t *out,
                            qn_error *err)
{
    int i = 0;
    while (i < N_DEVICES && devices[i].type != type)
        i++;
    if (i == N_DEVICES)
        return qn__fail(err, QN_ERR_SPACE, "%s: view \"%s\": device type %d is unknown", who,
                        qn__label(label), (int)type);
    if (devices[i].space < 0 || !qn_space_is_available(devices[i].space))
        return qn__fail(err, QN_ERR_NOT_AVAILABLE,
                        "%s: view \"%s\": device type %d (%s) is not available in this build", who,
                        qn__label(label), (int)type, devices[i].name);
    *out = devices[i].space;
    return QN_OK;
}

/* ---------------------------------------------------------------- import */

static qn_status import_tensor(const char *who, const char *label, const qn_dl_tensor *t,
                               uint32_t traits, qn_view *out, qn_error *err)
{
    qn_foreign f = {.who = who,
                    .label = label,
                    .data = t->data,
                    .byte_offset = t->byte_offset,
                    .device = t->device.device_id,
                    .rank = t->ndim,
                    .traits = traits,
                    .extents = t->shape,
                    .strides = t->strides};
    qn_status status = find_dtype(who, label, t->dtype, &f.dtype, err);
    if (!status)
        status = find_space(who, label, t->device.device_type, &f.space, err);
    return status ? status : qn__import(&f, out, err);
}

qn_status qn_view_from_dlpack(const char *label, const qn_dl_tensor *tensor, uint32_t traits,
                              qn_view *out, qn_error *err)
{
    const char *who = "qn_view_from_dlpack";
    if (!tensor || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s is NULL", who, qn__label(label),
                        tensor ? "out" : "tensor");
    return import_tensor(who, label, tensor, traits, out, err);
}

static void delete_managed(void *arg)
{
    qn_dl_managed *m = arg;
    if (m->deleter)
        m->deleter(m);
}

static void delete_versioned(void *arg)
{
    qn_dl_managed_versioned *m = arg;
    if (m->deleter)
        m->deleter(m);
}

/** Makes a view of the tensor and an owner for it that calls release(arg) in the end. */
static qn_status take_tensor(const char *who, const char *label, const qn_dl_tensor *t,
                             uint32_t traits, void (*release)(void *arg), void *arg, qn_view *out,
                             qn_error *err)
{
    qn_view made;
    int64_t low, high;
    qn_status status = import_tensor(who, label, t, traits, &made, err);
    if (status)
        return status;
    qn__view_bytes(&made, &low, &high); /* the storage is what the view reaches */
    uintptr_t first = (uintptr_t)made.data + (uintptr_t)low;
    made.owner =
        qn__buffer_foreign(label ? label : "", (void *)first, (size_t)(high - low), release, arg);
    if (!made.owner)
        return qn__fail(err, QN_ERR_MEMORY, "%s: view \"%s\": no memory for an owner", who,
                        qn__label(label));
    made.label = label ? made.owner->label : NULL;
    *out = made;
    return QN_OK;
}

qn_status qn_view_take_dlpack(const char *label, qn_dl_managed *managed, uint32_t traits,
                              qn_view *out, qn_error *err)
{
    const char *who = "qn_view_take_dlpack";
    if (!managed || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s is NULL", who, qn__label(label),
                        managed ? "out" : "tensor");
    return take_tensor(who, label, &managed->dl_tensor, traits, delete_managed, managed, out, err);
}

qn_status qn_view_take_dlpack_versioned(const char *label, qn_dl_managed_versioned *managed,
                                        uint32_t traits, qn_view *out, qn_error *err)
{
    const char *who = "qn_view_take_dlpack_versioned";
    if (!managed || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s is NULL", who, qn__label(label),
                        managed ? "out" : "tensor");
    if (managed->version.major != MAJOR)
        return qn__fail(err, QN_ERR_VERSION,
                        "%s: view \"%s\": DLPack version %u.%u is not 1.x: call its deleter", who,
                        qn__label(label), (unsigned)managed->version.major,
                        (unsigned)managed->version.minor);
    if (managed->flags & QN_DL_READ_ONLY)
        traits |= QN_READ_ONLY;
    return take_tensor(who, label, &managed->dl_tensor, traits, delete_versioned, managed, out,
                       err);
}

/* ---------------------------------------------------------------- export */

/** What stands behind an exported tensor: one block, freed by the tensor's deleter. */
typedef struct exported {
    union {
        qn_dl_managed legacy;
        qn_dl_managed_versioned versioned;
    } tensor;
    qn_view view; /* a reference to the storage */
    void (*released)(void *context);
    void *context;
    int64_t shape[QN_MAX_RANK], strides[QN_MAX_RANK];
} exported;

static void free_exported(exported *e)
{
    void (*released)(void *context) = e->released;
    void *context = e->context;
    qn_view_release(&e->view);
    qn__free(e);
    if (released)
        released(context);
}

static void delete_exported(qn_dl_managed *self)
{
    if (self)
        free_exported(self->manager_ctx);
}

static void delete_exported_versioned(qn_dl_managed_versioned *self)
{
    if (self)
        free_exported(self->manager_ctx);
}

/** The dtype and device of a view. */
static qn_status describe_elements(const char *who, const qn_view *v, qn_dl_tensor *out,
                                   qn_error *err)
{
    int i = 0, j = 0;
    while (i < N_DTYPES && dtypes[i].dtype != v->dtype)
        i++;
    if (i == N_DTYPES)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": DLPack has no dtype for %s", who,
                        qn__label(v->label), qn_dtype_name(v->dtype));
    while (j < N_DEVICES && devices[j].space != v->space)
        j++;
    if (j == N_DEVICES)
        return qn__fail(err, QN_ERR_SPACE, "%s: view \"%s\": DLPack has no device for space %s",
                        who, qn__label(v->label), qn_space_name(v->space));
    out->dtype = (qn_dl_dtype){dtypes[i].code, dtypes[i].bits, 1};
    out->device = (qn_dl_device){devices[j].type, v->device};
    return QN_OK;
}

/** DLPack counts strides in elements. */
static qn_status divide_strides(const char *who, const qn_view *v, int64_t *strides, qn_error *err)
{
    int64_t element = qn__element_bytes(v);
    for (int d = 0; d < v->layout.rank; d++) {
        if (v->layout.dim[d].extent > 1 && strides[d] % element)
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "%s: view \"%s\": dimension %d: stride of %lld bytes is no multiple of "
                            "the %lld bytes of %s: copy the view",
                            who, qn__label(v->label), d, (long long)strides[d], (long long)element,
                            qn_dtype_name(v->dtype));
        strides[d] /= element;
    }
    return QN_OK;
}

/** Everything but the head of the managed struct; *out is the caller's. */
static qn_status export_view(const char *who, const qn_view *v, void (*released)(void *context),
                             void *context, qn_dl_tensor *tensor, exported **out, qn_error *err)
{
    int64_t strides[QN_MAX_RANK];
    qn_status status = qn__export_strides(v, who, strides, err);
    if (!status)
        status = describe_elements(who, v, tensor, err);
    if (!status)
        status = divide_strides(who, v, strides, err);
    if (status)
        return status;
    exported *e = qn__zalloc(1, sizeof *e);
    if (!e)
        return qn__fail(err, QN_ERR_MEMORY, "%s: view \"%s\": no memory for the tensor", who,
                        qn__label(v->label));
    int rank = v->layout.rank;
    for (int d = 0; d < rank; d++) {
        e->shape[d] = v->layout.dim[d].extent;
        e->strides[d] = strides[d];
    }
    e->view = qn_view_copy(v);
    e->released = released;
    e->context = context;
    tensor->data = qn_layout_size(&v->layout) ? v->data : NULL; /* as DLPack wants it */
    tensor->ndim = rank;
    tensor->shape = rank ? e->shape : NULL;
    tensor->strides = rank ? e->strides : NULL;
    tensor->byte_offset = 0;
    *out = e;
    return QN_OK;
}

qn_status qn_view_to_dlpack(const qn_view *v, void (*released)(void *context), void *context,
                            qn_dl_managed **out, qn_error *err)
{
    const char *who = "qn_view_to_dlpack";
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    if (v->traits & QN_READ_ONLY)
        return qn__fail(err, QN_ERR_READ_ONLY,
                        "%s: view \"%s\": a tensor without a version cannot be read-only", who,
                        qn__label(v->label));
    qn_dl_tensor tensor;
    exported *e;
    qn_status status = export_view(who, v, released, context, &tensor, &e, err);
    if (status)
        return status;
    e->tensor.legacy = (qn_dl_managed){tensor, e, delete_exported};
    *out = &e->tensor.legacy;
    return QN_OK;
}

qn_status qn_view_to_dlpack_versioned(const qn_view *v, void (*released)(void *context),
                                      void *context, qn_dl_managed_versioned **out, qn_error *err)
{
    const char *who = "qn_view_to_dlpack_versioned";
    if (!v || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, v ? "out" : "view");
    qn_dl_tensor tensor;
    exported *e;
    qn_status status = export_view(who, v, released, context, &tensor, &e, err);
    if (status)
        return status;
    e->tensor.versioned = (qn_dl_managed_versioned){
        .version = {MAJOR, MINOR},
        .manager_ctx = e,
        .deleter = delete_exported_versioned,
        .flags = v->traits & QN_READ_ONLY ? (uint64_t)QN_DL_READ_ONLY : 0,
        .dl_tensor = tensor,
    };
    *out = &e->tensor.versioned;
    return QN_OK;
}
