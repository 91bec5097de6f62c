/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h: views, the part of quern.h about typed data with a layout: memory spaces, view types and
 * assignment, allocation, resizing, mirrors and copies. Units, errors, ownership and threads are
 * those of quern.h.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_VIEW_H)
#define QUERN_VIEW_H

/** Memory spaces: X(NAME, number, text, available). Spaces that are not available are listed and
 * refused by name. */
#define QN_SPACE_LIST(X)                                                                           \
    X(HOST, 0, "host", 1)                                                                          \
    X(CUDA, 1, "cuda", 1)                                                                          \
    X(CUDA_MANAGED, 2, "cuda-managed", 1)                                                          \
    X(CUDA_PINNED, 3, "cuda-pinned", 1)                                                            \
    X(HBW, 4, "hbw", 0)                                                                            \
    X(ROCM, 5, "rocm", 0)                                                                          \
    X(ROCM_PINNED, 6, "rocm-pinned", 0)

/** Where memory lives. */
typedef enum qn_space {
#define QN_X(name, number, text, available) QN_SPACE_##name = number,
    QN_SPACE_LIST(QN_X)
#undef QN_X
    QN_N_SPACES = 7,
    QN_SPACE_FORCE_INT = 0x7fffffff
} qn_space;

/** "host"; "?" for unknown numbers. Static. */
QN_API const char *qn_space_name(int space);
/** Whether views can be made and used in this space by this build. */
QN_API bool qn_space_is_available(int space);

/** Traits of a view or kernel parameter, or-ed. Claims are checked at the launch, never trusted.
 * Those of an argument count as if the parameter had been declared so; with QN_ATOMIC the kernel
 * runs as built with the parameter atomic. */
enum {
    QN_READ_ONLY = 1 << 0, /**< stores through it are refused */
    QN_ATOMIC =
        1
        << 1, /**< every access and update through it is atomic (relaxed), see QN_ATOMICS_LAUNCH */
    QN_RESTRICT = 1 << 2, /**< overlaps no other argument; else QN_ERR_OVERLAP */
    QN_RANDOM_ACCESS =
        1 << 3,            /**< read-only data not written during the launch; else QN_ERR_OVERLAP */
    QN_ALIGNED = 1 << 4,   /**< data is aligned to 64 bytes; else QN_ERR_ALIGNMENT */
    QN_STREAMING = 1 << 5, /**< hint: data is not used again soon */
    QN_UNCHECKED =
        1 << 6, /**< of arguments: QN_CHECKS_NONE for this view, whatever the launch says */
    QN_CLAMPED =
        1 << 7 /**< of arguments: QN_CHECKS_CLAMP for this view; QN_UNCHECKED is stronger */
};

/** Counted storage behind views. Opaque. */
typedef struct qn_buffer qn_buffer;
/** Cache, pool of threads, counters and history; several can exist. Opaque. */
typedef struct qn_context qn_context;
/** A stream of work of a GPU; counted (quern/cuda.h). Opaque. */
typedef struct qn_stream qn_stream;

/**
 * A view: typed data with a layout. A documented plain struct; all-zero is the default view (rank
 * 0, no data, empty). `data` is the address of the element at the lower bounds; layout.origin is 0
 * in a view.
 */
typedef struct qn_view {
    void *data;
    qn_buffer *owner;  /**< NULL: unmanaged memory of the caller, which must outlive every use */
    const char
        *label; /**< borrowed: the owner's, or the caller's for unmanaged views; may be NULL */
    int32_t dtype;     /**< a qn_dtype */
    int32_t space;     /**< a qn_space */
    uint32_t traits;   /**< or of QN_READ_ONLY, ... */
    uint32_t unit;     /**< bytes that offsets and strides count, if not elements; 0: elements */
    int32_t device;    /**< number of the GPU with the memory, as the driver or the other library
                          counts; 0 on the host */
    int32_t reserved;  /**< 0 */
    const qn_record
        *record; /**< of dtype QN_RECORD, else NULL; borrowed: the owner's or the caller's */
    qn_layout layout;
} qn_view;

/** An argument of a launch, a view or a scalar; or a value to fill a view with. Of fixed size. */
typedef struct qn_arg {
    const qn_view *view; /**< borrowed for the call; NULL for a scalar */
    int32_t dtype;       /**< of the scalar */
    uint32_t reserved;   /**< 0 */
    uint64_t bits; /**< of the scalar, low end first; of the real part of a c128 */
    uint64_t high; /**< of the imaginary part of a c128, else 0 */
} qn_arg;
/** A view as an argument; the view is borrowed. */
QN_API qn_arg qn_arg_view(const qn_view *v);
/** A scalar of any dtype from an integer: cut to the width, or converted for floats and complex
 * numbers. */
QN_API qn_arg qn_arg_int(int dtype, int64_t value);
/** Scalars of f32 and f64. */
QN_API qn_arg qn_arg_f32(float value);
QN_API qn_arg qn_arg_f64(double value);
/** Scalars of c64 and c128. */
QN_API qn_arg qn_arg_c64(float re, float im);
QN_API qn_arg qn_arg_c128(double re, double im);

/** qn_view_alloc flags. */
enum { QN_UNINITIALISED = 1 << 0 };

/**
 * Allocates storage for the layout's span, aligned to 64 bytes, zeroed unless QN_UNINITIALISED. On
 * success the caller owns one reference in *out; the layout is copied. Errors: dtype, overflow,
 * memory (with label and bytes).
 */
QN_API qn_status qn_view_alloc(qn_context *c, const char *label, int dtype, const qn_layout *l,
                               uint32_t flags, qn_view *out, qn_error *err);
/** qn_view_alloc for records; the storage keeps a reference to their type. */
QN_API qn_status qn_view_alloc_record(qn_context *c, const char *label, const qn_record *record,
                                      const qn_layout *l, uint32_t flags, qn_view *out,
                                      qn_error *err);
/** Right-order shorthand of qn_view_alloc. */
QN_API qn_status qn_view_new(qn_context *c, const char *label, int dtype, int rank,
                             const int64_t *extents, qn_view *out, qn_error *err);
/**
 * Wraps memory of the caller. `data` is the address of offset 0 of the layout, so data + origin
 * becomes view.data. The label is borrowed. `data` may be NULL only if the layout is empty. The
 * caller releases the view if the layout has a digit table; releasing never frees `data`. Errors:
 * null data, dtype, alignment below the element size, overflow.
 */
QN_API qn_status qn_view_wrap(const char *label, void *data, int dtype, const qn_layout *l,
                              uint32_t traits, qn_view *out, qn_error *err);
/** qn_view_wrap for records, whose type is borrowed. */
QN_API qn_status qn_view_wrap_record(const char *label, void *data, const qn_record *record,
                                     const qn_layout *l, uint32_t traits, qn_view *out,
                                     qn_error *err);
/**
 * The view of a field of a view of records, or of the real (0) or imaginary (1) part of complex
 * numbers, with a reference of its own: its elements lie as far apart as before. Strides count
 * elements of the field where that works out, else a smaller unit.
 */
QN_API qn_status qn_view_field(const qn_view *v, int field, qn_view *out, qn_error *err);
/** A view of the same data with one more reference. Never fails. */
QN_API qn_view qn_view_copy(const qn_view *v);
/** Drops the view's reference and makes it the default view. NULL is ignored. */
QN_API void qn_view_release(qn_view *v);
/** A view of a part, see qn_layout_slice; owns a reference of its own. No allocation for one-digit
 * layouts. */
QN_API qn_status qn_subview(const qn_view *v, int n, const qn_slice *slices, qn_view *out,
                            qn_error *err);
/** A view of the same data through a transformed layout (whose origin is relative to `v`), with a
 * reference of its own. Error QN_ERR_BOUNDS if the layout's offsets leave the owner's storage
 * (checked for managed views). */
QN_API qn_status qn_view_with_layout(const qn_view *v, const qn_layout *l, qn_view *out,
                                     qn_error *err);
/**
 * MultiView: n views of one dtype, space and layout as one, with a dimension of extent n at
 * `position` (0 to their rank) that selects the member. The addresses are copied; the result keeps
 * a reference to each managed member, and the label is copied. It has no owner (use count 0), and
 * data is the lowest member. A subview at one position is the member itself, with its owner and
 * label. n = 0 gives the default view. Members that share elements cannot be stored to.
 */
QN_API qn_status qn_view_multi(const char *label, int n, const qn_view *views, int position,
                               qn_view *out, qn_error *err);
/** A MultiView of n addresses of offset 0 of one layout, see qn_view_wrap. */
QN_API qn_status qn_view_multi_wrap(const char *label, int n, void *const *data, int dtype,
                                    const qn_layout *l, int position, uint32_t traits, qn_view *out,
                                    qn_error *err);
/**
 * Row `row` of `entries`, whose rows of different lengths lie one behind the other: the subview of
 * the indices map[row] .. map[row + 1] - 1 of dimension 0 and all of the others. `map` is a host
 * view of integers of rank 1. In kernels: qn_for_row. Errors: QN_ERR_BOUNDS for a row that the map
 * does not have, QN_ERR_RANGE for one that is not in `entries`.
 */
QN_API qn_status qn_view_row(const qn_view *map, const qn_view *entries, int64_t row, qn_view *out,
                             qn_error *err);
/** Number of references to the storage; 0 for unmanaged views. */
QN_API int64_t qn_view_use_count(const qn_view *v);
/** Address of an element of a host view; QN_ERR_BOUNDS with label, dimension, indices and extents.
 */
QN_API qn_status qn_view_at(const qn_view *v, int n, const int64_t *index, void **out,
                            qn_error *err);
/** A view of the same storage whose traits are those of `v` and `traits`. The claim QN_ALIGNED is
 * checked. */
QN_API qn_status qn_view_with_traits(const qn_view *v, uint32_t traits, qn_view *out,
                                     qn_error *err);
/** A view of the same data without owner or label, which must not outlive it. Release it only for
 * its digit table. */
QN_API qn_status qn_view_unmanaged(const qn_view *v, qn_view *out, qn_error *err);
/** Drops the reference and points the view at memory of the caller; dtype, traits and layout stay,
 * the label goes. `data` is the element at the lower bounds. Errors leave the view as it was;
 * QN_ERR_UNSUPPORTED for MultiViews and for records whose storage holds their type. */
QN_API qn_status qn_view_assign_data(qn_view *v, void *data, qn_error *err);
/** Whether two views have the same dtype, space, rank, data pointer, extents and digits (strides).
 * Contents, labels, traits and lower bounds are not compared. */
QN_API bool qn_view_equal(const qn_view *a, const qn_view *b);
/** Whether the view has data; also true for allocated views of size 0. */
QN_API bool qn_view_is_allocated(const qn_view *v);
/** Number of index tuples, and elements from the lowest to the highest address; 0 for views without
 * data. The span is -1 if it does not fit. */
QN_API int64_t qn_view_size(const qn_view *v);
QN_API int64_t qn_view_span(const qn_view *v);
/** Extent or lower bound of dimension d. Errors: QN_ERR_RANK if d is not in [0, rank). */
QN_API qn_status qn_view_extent(const qn_view *v, int d, int64_t *out, qn_error *err);
QN_API qn_status qn_view_lower(const qn_view *v, int d, int64_t *out, qn_error *err);
/** Stride of dimension d. Errors also: QN_ERR_UNSUPPORTED if the dimension has several digits. */
QN_API qn_status qn_view_stride(const qn_view *v, int d, int64_t *out, qn_error *err);
/** Writes exactly rank extents or strides. `out` may be NULL for rank 0. */
QN_API qn_status qn_view_extents(const qn_view *v, int64_t *out, qn_error *err);
QN_API qn_status qn_view_strides(const qn_view *v, int64_t *out, qn_error *err);
/** qn_view_at for n >= rank indices, of which those beyond the rank must be 0. */
QN_API qn_status qn_view_access(const qn_view *v, int n, const int64_t *index, void **out,
                                qn_error *err);
/** Bytes from the lowest to the highest element: span x element size. Errors: QN_ERR_OVERFLOW. */
QN_API qn_status qn_view_required_bytes(const qn_view *v, int64_t *out, qn_error *err);

/** Execution spaces: X(NAME, number, text, available). OpenMP code runs as a parallel_for of the
 * host. */
#define QN_EXEC_LIST(X)                                                                            \
    X(SERIAL, 0, "serial", 1)                                                                      \
    X(OPENMP, 1, "openmp", 1)                                                                      \
    X(THREADS, 2, "threads", 1)                                                                    \
    X(CUDA, 3, "cuda", 1)                                                                          \
    X(ROCM, 4, "rocm", 0)

/** Where code runs, as far as access to memory is concerned. */
typedef enum qn_exec {
#define QN_X(name, number, text, available) QN_EXEC_##name = number,
    QN_EXEC_LIST(QN_X)
#undef QN_X
    QN_N_EXECS = 5,
    QN_EXEC_FORCE_INT = 0x7fffffff
} qn_exec;

/** "serial"; "?" for unknown numbers. Static. */
QN_API const char *qn_exec_name(int exec);
/** QN_OK, QN_ERR_NOT_AVAILABLE for spaces that this build lacks, QN_ERR_ARGUMENT for unknown
 * numbers. */
QN_API qn_status qn_space_check(int space, qn_error *err);
QN_API qn_status qn_exec_check(int exec, qn_error *err);
/** Whether code of an execution space may touch a memory space: the table, whether or not this
 * build has them. */
QN_API bool qn_exec_can_access(int exec, int space);
/** Whether a view in `dst` may refer to memory of `src`; whether the execution space of `dst` may
 * touch `src`; whether memory can be copied from `src` to `dst`. False for unknown numbers. */
QN_API bool qn_space_is_assignable(int dst, int src);
QN_API bool qn_space_can_access(int dst, int src);
QN_API bool qn_space_can_copy(int dst, int src);

/** Layout families that a view type may ask for. A layout belongs to every family that its digits
 * satisfy. */
enum {
    QN_FAMILY_ANY = 0,    /**< every layout */
    QN_FAMILY_RIGHT = 1,  /**< C order, with one free leading stride */
    QN_FAMILY_LEFT = 2,   /**< Fortran order, with one free leading stride */
    QN_FAMILY_STRIDED = 3 /**< one stride for each dimension */
};

/** A view type: what a view must be to be assigned. A plain struct; make it with qn_view_type_init.
 */
typedef struct qn_view_type {
    int32_t dtype;
    int32_t rank;         /**< -1: any rank, and no fixed extents */
    int32_t read_only;    /**< 1: takes read-only views, and is one */
    int32_t family;       /**< QN_FAMILY_... */
    int32_t space;        /**< of the destination */
    int32_t unmanaged;    /**< 1: the destination holds no reference */
    uint32_t traits;      /**< of the destination; QN_READ_ONLY here is `read_only` too */
    uint32_t reserved;    /**< 0 */
    const qn_record *record; /**< of dtype QN_RECORD, else NULL; borrowed */
    int64_t extent[QN_MAX_RANK]; /**< fixed extents, -1 where any will do */
} qn_view_type;

/** A writable, managed host type. `extents` has rank entries, -1 where any will do; NULL: all of
 * them. */
QN_API qn_status qn_view_type_init(int dtype, int rank, const int64_t *extents, int family,
                                   qn_view_type *out, qn_error *err);
/** qn_view_type_init for records. */
QN_API qn_status qn_view_type_init_record(const qn_record *record, int rank, const int64_t *extents,
                                          int family, qn_view_type *out, qn_error *err);
/** Number of dimensions whose extent is not fixed; -1 for types of any rank. */
QN_API int qn_view_type_rank_dynamic(const qn_view_type *type);
/** The fixed extent of dimension d, 0 if it is not fixed. Errors: QN_ERR_RANK if d is not in [0,
 * rank). */
QN_API qn_status qn_view_type_static_extent(const qn_view_type *type, int d, int64_t *out,
                                            qn_error *err);
/**
 * The dense layout of a type: Left if the type asks for it, or for any layout in a space of a GPU
 * (QN_SPACE_CUDA, _CUDA_MANAGED, _ROCM); else Right. n is the number of dimensions, or of those
 * that are not fixed; fixed extents that are given must agree. No layout for types that are only
 * QN_FAMILY_STRIDED.
 */
QN_API qn_status qn_view_type_layout(const qn_view_type *type, int n, const int64_t *extents,
                                     qn_layout *out, qn_error *err);
/** The view of a type without data: extents 0 where not fixed; size and span 0. */
QN_API qn_status qn_view_default(const qn_view_type *type, qn_view *out, qn_error *err);
/** True if and only if qn_view_assign would succeed. The message names dimension, expected and
 * found. */
QN_API bool qn_is_assignable(const qn_view_type *type, const qn_view *v, qn_error *err);
/**
 * Makes *dst a view of `src` that fits the type (NULL: every view fits, and keeps its traits):
 * drops the reference that *dst held and takes one of its own. *dst is a view or all-zero, and may
 * be `src`. Extents and strides are those of `src`. Errors leave *dst as it was: QN_ERR_RANK,
 * _DTYPE, _READ_ONLY, _SPACE, _EXTENT, _ALIGNMENT, and QN_ERR_ARGUMENT for layouts that are not of
 * the family.
 */
QN_API qn_status qn_view_assign(qn_view *dst, const qn_view_type *type, const qn_view *src,
                                qn_error *err);

/* ------------------------------------------------------------------------------------------------
 * copies */

/** Properties of an allocation. All-zero with `bytes` set is the default; NULL too. */
typedef struct qn_alloc_options {
    size_t bytes;          /**< sizeof(qn_alloc_options) */
    const char *label;     /**< copied; may be NULL */
    int64_t alignment; /**< bytes of the lowest address: a power of two from 64 to 2 MiB; 0 is 64 */
    int32_t uninitialised; /**< 1: contents are undefined */
    int32_t padding; /**< 1: pads the stride next to the unit stride to 64 bytes, where extents are
                        longer */
    int32_t space;         /**< a qn_space */
    int32_t executor; /**< whose threads touch the memory first; 0: the context's, or the caller */
    qn_stream
        *stream; /**< space cuda: memory and zeros are ready for work given to this stream from now
                    on, for other streams too once it is reached; NULL: ready on return */
} qn_alloc_options;

/**
 * Allocates a view of a type: n as in qn_view_type_layout, or a layout of the caller's, which must
 * be of the type. Errors: number of extents and fixed extents that differ, read-only types,
 * overflow, space, and memory with space, label and bytes. The context may be NULL where the
 * executor is not QN_THREADS.
 */
QN_API qn_status qn_view_create(qn_context *c, const qn_view_type *type, int n,
                                const int64_t *extents, const qn_alloc_options *o, qn_view *out,
                                qn_error *err);
QN_API qn_status qn_view_create_layout(qn_context *c, const qn_view_type *type, const qn_layout *l,
                                       const qn_alloc_options *o, qn_view *out, qn_error *err);
/**
 * Gives *v new storage of n extents, in the order of its dimensions; label, dtype, traits and, if
 * the rank stays, lower bounds are kept, the common part is copied (dimensions that only one rank
 * has count as one index), the rest is zero. Other owners keep the old storage. Extents that stay
 * the same: nothing happens. `o` may be NULL and has no label or alignment. Errors leave *v as it
 * was.
 */
QN_API qn_status qn_view_resize(qn_context *c, qn_view *v, int n, const int64_t *extents,
                                const qn_alloc_options *o, qn_error *err);
/** qn_view_resize with any layout. Nothing happens if that is the layout of *v. */
QN_API qn_status qn_view_resize_layout(qn_context *c, qn_view *v, const qn_layout *l,
                                       const qn_alloc_options *o, qn_error *err);
/** Like qn_view_resize, but contents become zero (undefined if uninitialised). Same extents: same
 * storage. */
QN_API qn_status qn_view_realloc(qn_context *c, qn_view *v, int n, const int64_t *extents,
                                 const qn_alloc_options *o, qn_error *err);
/** New storage in `space` with the extents and layout of `v` (Right where that layout is not unique
 * or counts other units), zeroed; the label is that of `v` and "_mirror". */
QN_API qn_status qn_create_mirror(qn_context *c, int space, const qn_view *v, qn_view *out,
                                  qn_error *err);
/** `v` itself, with a reference, if code of `space` can access it; else qn_create_mirror. */
QN_API qn_status qn_create_mirror_view(qn_context *c, int space, const qn_view *v, qn_view *out,
                                       qn_error *err);
/** qn_create_mirror_view with the contents of `v`. */
QN_API qn_status qn_create_mirror_copy(qn_context *c, int space, const qn_view *v, qn_view *out,
                                       qn_error *err);

/**
 * Copies all elements, whatever the layouts. Lower bounds may differ. A view onto itself: nothing
 * happens. Errors: QN_ERR_DTYPE, QN_ERR_EXTENT (with both labels and extents), QN_ERR_READ_ONLY,
 * QN_ERR_NOT_INJECTIVE (of dst), and QN_ERR_OVERLAP for different views that share an element. The
 * context may be NULL where plain copies of bytes do.
 */
QN_API qn_status qn_deep_copy(qn_context *c, const qn_view *dst, const qn_view *src, qn_error *err);
/** qn_deep_copy on an executor (QN_SERIAL, QN_THREADS). Host executors have finished on return. */
QN_API qn_status qn_deep_copy_on(qn_context *c, int executor, const qn_view *dst,
                                 const qn_view *src, qn_error *err);
/** qn_deep_copy_on between dtypes: each element is converted as by qn_cast; from float to bool that
 * is "is not zero". */
QN_API qn_status qn_convert_copy(qn_context *c, int executor, const qn_view *dst,
                                 const qn_view *src, qn_error *err);
/** Sets all elements to a scalar (qn_arg_int, qn_arg_f64, ...), whose dtype must be that of the
 * view. The context may be NULL for contiguous views. */
QN_API qn_status qn_fill(qn_context *c, const qn_view *v, qn_arg value, qn_error *err);
/** Sets all elements to the one that `value` points to, of any dtype. The context may be NULL only
 * for views without elements or with one. */
QN_API qn_status qn_fill_value(qn_context *c, const qn_view *v, const void *value, qn_error *err);
/** The bits of the element of a view of rank 0, low end first. */
QN_API qn_status qn_read_scalar(const qn_view *v, uint64_t *bits, qn_error *err);

#endif
