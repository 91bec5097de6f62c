/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * dlpack.h: arrays in and out through DLPack, the struct that array libraries hand to each other.
 *
 * The structs are declared here in our own words, under our own names and with the same layout, so
 * that a program may include the dlpack.h of its choice as well and cast pointers between the two.
 * Lower bounds have no place in DLPack: they are 0 after an import and dropped by an export. The
 * number of the device is `device` of the view.
 */
#ifndef QUERN_DLPACK_H
#define QUERN_DLPACK_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where a tensor lives: `DLDevice`. */
typedef struct qn_dl_device {
    int32_t device_type; /**< 1 CPU, 2 CUDA, ... */
    int32_t device_id;   /**< its number among those of the type */
} qn_dl_device;

/** An element type: `DLDataType`. */
typedef struct qn_dl_dtype {
    uint8_t code; /**< 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool */
    uint8_t bits; /**< of one element */
    uint16_t lanes; /**< 1: the only value Quern takes */
} qn_dl_dtype;

/** A borrowed tensor: `DLTensor`. */
typedef struct qn_dl_tensor {
    void *data;
    qn_dl_device device;  /**< where data is */
    int32_t ndim;         /**< number of dimensions */
    qn_dl_dtype dtype;
    int64_t *shape;       /**< ndim entries */
    int64_t *strides;     /**< ndim entries, in elements; NULL: row-major */
    uint64_t byte_offset; /**< of the first element, from data */
} qn_dl_tensor;

/** A tensor with an owner, without a version: `DLManagedTensor`. Deprecated there, and still
 * common. */
typedef struct qn_dl_managed {
    qn_dl_tensor dl_tensor; /**< what is managed */
    void *manager_ctx;      /**< of the producer */
    void (*deleter)(struct qn_dl_managed *self); /**< NULL: nothing to do */
} qn_dl_managed;

/** Version of a tensor: `DLPackVersion`. Structs of one major version are the same. */
typedef struct qn_dl_version {
    uint32_t major; /**< structs of another one may differ */
    uint32_t minor; /**< what came later within it */
} qn_dl_version;

/** A tensor with an owner and a version: `DLManagedTensorVersioned`, since DLPack 1.0. */
typedef struct qn_dl_managed_versioned {
    qn_dl_version version; /**< comes first, so that it can be read in structs of any version */
    void *manager_ctx;     /**< of the producer */
    void (*deleter)(struct qn_dl_managed_versioned *self); /**< NULL: nothing to do */
    uint64_t flags;                                        /**< QN_DL_READ_ONLY, ... */
    qn_dl_tensor dl_tensor;                                /**< what is managed */
} qn_dl_managed_versioned;

/** Flags of a versioned tensor. */
enum {
    QN_DL_READ_ONLY = 1 << 0,      /**< becomes the trait QN_READ_ONLY, and comes from it */
    QN_DL_IS_COPIED = 1 << 1,      /**< the producer made a copy; ignored */
    QN_DL_SUBBYTE_PADDED = 1 << 2  /**< elements below a byte are padded; Quern has none */
};

/**
 * Borrows a tensor: *out is an unmanaged view of its data, which must outlive every use; the struct
 * itself may go. The label is borrowed. `traits` (QN_READ_ONLY, ...) are given to the view. Errors:
 * NULL arguments, more than QN_MAX_RANK dimensions, dtypes and devices that Quern does not take,
 * negative extents, offsets that do not fit in 64 bits, null data of a tensor with elements, data
 * not aligned to its element. The larger alignment that DLPack promises is neither needed nor
 * believed.
 */
QN_API qn_status qn_view_from_dlpack(const char *label, const qn_dl_tensor *tensor, uint32_t traits,
                                     qn_view *out, qn_error *err);
/**
 * Takes a tensor over: on success *out holds one reference to a new owner, which calls the tensor's
 * deleter with the last reference, on the thread that drops it; the label is copied. On failure the
 * tensor stays the caller's, and the deleter is not called. Errors as qn_view_from_dlpack, and
 * memory.
 */
QN_API qn_status qn_view_take_dlpack(const char *label, qn_dl_managed *managed, uint32_t traits,
                                     qn_view *out, qn_error *err);
/**
 * The same for a versioned tensor of any version 1.x. QN_DL_READ_ONLY makes the view read-only. A
 * tensor of another major version is QN_ERR_VERSION: all that the caller may do with it is to call
 * its deleter.
 */
QN_API qn_status qn_view_take_dlpack_versioned(const char *label, qn_dl_managed_versioned *managed,
                                               uint32_t traits, qn_view *out, qn_error *err);

/**
 * Gives a view out. *out holds a reference to the view's storage until its deleter is called, which
 * the consumer does once, from any thread. `released`, which may be NULL, is then called with
 * `context`: the sign that unmanaged memory is free again. On failure `released` is not called.
 * Strides are always filled in, byte_offset is 0. Errors: views that no strides describe (several
 * digits in a dimension, projected dimensions), with the dimension; read-only views
 * (QN_ERR_READ_ONLY: the struct has no place to say so); dtypes that DLPack lacks; memory.
 */
QN_API qn_status qn_view_to_dlpack(const qn_view *v, void (*released)(void *context), void *context,
                                   qn_dl_managed **out, qn_error *err);
/** Gives a view out as qn_view_to_dlpack does, but as a versioned tensor, version 1.0. Read-only
 * views get QN_DL_READ_ONLY. */
QN_API qn_status qn_view_to_dlpack_versioned(const qn_view *v, void (*released)(void *context),
                                             void *context, qn_dl_managed_versioned **out,
                                             qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
