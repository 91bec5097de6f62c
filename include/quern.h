/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern.h: the public interface of Quern, a JIT for array kernels.
 *
 * UNITS. Extents, strides, offsets, indices and spans count elements and are int64_t; a name that ends in
 * `_bytes` counts bytes. Rank is 0 to QN_MAX_RANK; rank 0 is a scalar. Index ranges are half open.
 *
 * ERRORS. A function that can fail returns a qn_status and takes a `qn_error *` last, which may be NULL. On failure
 * the error holds the status and one line that starts with the name of the function; on success it is not touched.
 * Outputs are written only on success. The library never aborts, exits, prints or raises a signal. The builder is
 * sticky: a failed call returns the inert value {0}, the first error is kept, and only qn_finish reports it.
 *
 * OWNERSHIP. Handles (qn_context, qn_kernel, qn_function, qn_call) are reference counted or single-owner as each
 * function says; every release function accepts NULL, and handles may be released in any order. A qn_view is a plain
 * struct: a C copy is a borrow; qn_view_copy adds a reference and qn_view_release drops one. `const char *` arguments
 * are copied unless the comment says "borrowed".
 *
 * THREADS. A `const` handle may be used from several threads at once. A builder, a layout and a view struct belong to
 * one thread at a time. A qn_context is safe to use from several threads. Reference counts are atomic. No lock is
 * held while a callback of the host runs.
 */
#ifndef QUERN_H
#define QUERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QN_API __attribute__((visibility("default")))
#else
#define QN_API
#endif

/** Version of this header. The ABI is stable within one major version; the soname carries the major version. */
#define QN_VERSION_MAJOR 0
#define QN_VERSION_MINOR 1
#define QN_VERSION_PATCH 0
#define QN_VERSION_HEX ((QN_VERSION_MAJOR << 16) | (QN_VERSION_MINOR << 8) | QN_VERSION_PATCH)

/** Version of the library in use, as QN_VERSION_HEX. */
QN_API uint32_t qn_version(void);

/* ------------------------------------------------------------------------------------------------ status */

/** All statuses: X(name, number, text). Numbers are stable. */
#define QN_STATUS_LIST(X)                                                                          \
    X(OK, 0, "ok")                                                                                 \
    X(ERR_ARGUMENT, 1, "invalid argument")                                                         \
    X(ERR_RANK, 2, "wrong rank or number of indices")                                              \
    X(ERR_DTYPE, 3, "wrong element type")                                                          \
    X(ERR_EXTENT, 4, "wrong or negative extent")                                                   \
    X(ERR_SPACE, 5, "memory space not accessible here")                                            \
    X(ERR_ALIGNMENT, 6, "misaligned data or stride")                                               \
    X(ERR_OVERLAP, 7, "views overlap")                                                             \
    X(ERR_OVERFLOW, 8, "size or offset does not fit in 64 bits")                                   \
    X(ERR_BOUNDS, 9, "index out of bounds")                                                        \
    X(ERR_LIMIT, 10, "limit reached")                                                              \
    X(ERR_MEMORY, 11, "out of memory")                                                             \
    X(ERR_BUILD, 12, "builder misuse")                                                             \
    X(ERR_TYPE, 13, "operand types do not fit")                                                    \
    X(ERR_VERIFY, 14, "kernel is not well formed")                                                 \
    X(ERR_PARSE, 15, "kernel text is not well formed")                                             \
    X(ERR_UNSUPPORTED, 16, "not supported")                                                        \
    X(ERR_NOT_AVAILABLE, 17, "not available in this build")                                        \
    X(ERR_PROVIDER, 18, "code generator could not be loaded")                                      \
    X(ERR_TARGET, 19, "processor lacks needed features")                                           \
    X(ERR_CODEGEN, 20, "code generation failed")                                                   \
    X(ERR_CODEGEN_FATAL, 21, "code generator is unusable after a fatal error")                     \
    X(ERR_COMPILE_TIMEOUT, 22, "compilation took too long")                                        \
    X(ERR_EXEC_DENIED, 23, "executable memory denied")                                             \
    X(ERR_READ_ONLY, 24, "view is read-only")                                                      \
    X(ERR_NOT_INJECTIVE, 25, "written layout maps two indices to one element")                     \
    X(ERR_NULL_DATA, 26, "view has no data")                                                       \
    X(ERR_COLLISION, 27, "iterations collide")                                                     \
    X(ERR_BUSY, 28, "still in use")                                                                \
    X(ERR_FORKED, 29, "not usable after fork")                                                     \
    X(ERR_VERSION, 30, "version mismatch")                                                         \
    X(ERR_RANGE, 31, "reversed or out-of-range range")                                             \
    X(ERR_NOT_FOUND, 32, "not found")                                                              \
    X(ERR_INTERNAL, 33, "internal error")

/** What a function returns. 0 is success. */
typedef enum qn_status {
#define QN_X(name, number, text) QN_##name = number,
    QN_STATUS_LIST(QN_X)
#undef QN_X
    QN_STATUS_FORCE_INT = 0x7fffffff
} qn_status;

/** Bytes of a message, terminating zero included. Longer messages are cut. */
#define QN_MESSAGE_BYTES 504

/** An error: status and one line. Plain data of the caller; all-zero is "no error". */
typedef struct qn_error {
    int32_t status; /**< a qn_status */
    int32_t line;   /**< line in a kernel text, counted from 1; 0 where there is none */
    char message[QN_MESSAGE_BYTES];
} qn_error;

/** The name of a status, "QN_ERR_BOUNDS"; "QN_ERR_UNKNOWN" for other numbers. Static. */
QN_API const char *qn_status_name(int status);
/** One line saying what a status means. Static. */
QN_API const char *qn_status_text(int status);

/* ------------------------------------------------------------------------------------------------ dtypes */

/** All element types: X(NAME, number, text, bytes, class), class one of B bool, S signed, U unsigned, F float. */
#define QN_DTYPE_LIST(X)                                                                           \
    X(BOOL, 1, "bool", 1, B)                                                                       \
    X(I8, 2, "i8", 1, S)                                                                           \
    X(I16, 3, "i16", 2, S)                                                                         \
    X(I32, 4, "i32", 4, S)                                                                         \
    X(I64, 5, "i64", 8, S)                                                                         \
    X(U8, 6, "u8", 1, U)                                                                           \
    X(U16, 7, "u16", 2, U)                                                                         \
    X(U32, 8, "u32", 4, U)                                                                         \
    X(U64, 9, "u64", 8, U)                                                                         \
    X(F32, 10, "f32", 4, F)                                                                        \
    X(F64, 11, "f64", 8, F)

/** An element type. A bool is one byte; any non-zero byte reads as true, true is stored as 1. */
typedef enum qn_dtype {
    QN_VOID = 0,
#define QN_X(name, number, text, bytes, cls) QN_##name = number,
    QN_DTYPE_LIST(QN_X)
#undef QN_X
    QN_N_DTYPES = 12,
    QN_DTYPE_FORCE_INT = 0x7fffffff
} qn_dtype;

/** Bytes of one element; 0 for QN_VOID and unknown numbers. */
QN_API int64_t qn_dtype_bytes(int dtype);
/** "f32"; "void" for QN_VOID and "?" for unknown numbers. Static. */
QN_API const char *qn_dtype_name(int dtype);
/** The dtype of a name, or QN_VOID. */
QN_API qn_dtype qn_dtype_of_name(const char *name);

/* ------------------------------------------------------------------------------------------------ layouts */

#define QN_MAX_RANK 16   /**< largest rank of a layout, view or domain */
#define QN_MAX_DIGITS 64 /**< largest number of digits of a layout, over all dimensions */

/** One dimension of a layout. `stride` is that of its only digit, and 0 in a layout with a digit table. */
typedef struct qn_dim {
    int64_t lower;  /**< smallest index */
    int64_t extent; /**< number of indices, >= 0 */
    int64_t stride; /**< elements */
} qn_dim;

/** A digit: the part of an index with this extent contributes digit x stride to the offset. */
typedef struct qn_digit {
    int64_t extent;
    int64_t stride;
} qn_digit;

/** Shared, counted digit table of a layout with several digits in a dimension. Opaque. */
typedef struct qn_digits qn_digits;

/**
 * A layout: a function from an index tuple to an element offset. The index of a dimension, minus its lower bound, is
 * written in the mixed radix of the dimension's digits, fastest first; the offset is `origin` plus the sum of
 * digit x stride over all digits of all dimensions. All-zero is the layout of a scalar (rank 0).
 * Plain data; only layouts with `digits` own something (qn_layout_release). Entries of `dim` from `rank` on are
 * unspecified: constructors and transforms write the first `rank` only.
 */
typedef struct qn_layout {
    int32_t rank;
    uint32_t projected; /**< bit d: dimension d accepts any index and contributes nothing */
    int64_t origin;     /**< offset of the element at the lower bounds */
    qn_digits *digits;  /**< NULL: one digit per dimension */
    qn_dim dim[QN_MAX_RANK];
} qn_layout;

/** C order: the last dimension has stride 1. Errors: rank, negative extents, product overflow. No allocation. */
QN_API qn_status qn_layout_right(int rank, const int64_t *extents, qn_layout *out, qn_error *err);
/** Fortran order: the first dimension has stride 1. Errors as qn_layout_right. No allocation. */
QN_API qn_status qn_layout_left(int rank, const int64_t *extents, qn_layout *out, qn_error *err);
/** Any strides, also negative and zero. Errors: rank, negative extents, offsets beyond int64. No allocation. */
QN_API qn_status qn_layout_strided(int rank, const int64_t *extents, const int64_t *strides,
                                   qn_layout *out, qn_error *err);
/** Dense strides in the given order of dimensions, fastest first; {rank-1,..,0} is Right. `order` is a permutation. */
QN_API qn_status qn_layout_ordered(int rank, const int64_t *extents, const int *order,
                                   qn_layout *out, qn_error *err);
/**
 * Tiled: dimension d is cut into tiles of tile[d] indices (1 <= tile[d]); the elements of a tile are contiguous.
 * Inside a tile the dimensions run in the order `inner`, the tiles in the order `outer`, each fastest first; NULL is
 * Right order. Extents need not divide: storage covers whole tiles. Allocates a digit table.
 */
QN_API qn_status qn_layout_tiled(int rank, const int64_t *extents, const int64_t *tile,
                                 const int *inner, const int *outer, qn_layout *out, qn_error *err);
/**
 * Right with the stride next to the unit-stride dimension padded to 64 bytes: with A = 64 / element_bytes, if that
 * divides, and the last extent N > A, that stride is N rounded up to a multiple of A. Rank > 1 only; else Right.
 */
QN_API qn_status qn_layout_right_padded(int rank, const int64_t *extents, int64_t element_bytes,
                                        qn_layout *out, qn_error *err);
/** Left padded likewise: N is the first extent, the padded stride that of dimension 1. */
QN_API qn_status qn_layout_left_padded(int rank, const int64_t *extents, int64_t element_bytes,
                                       qn_layout *out, qn_error *err);
/** Dense strides in the given order of dimensions, longest stride first (the reverse of qn_layout_ordered). */
QN_API qn_status qn_layout_permuted(int rank, const int64_t *extents, const int *longest_first,
                                    qn_layout *out, qn_error *err);
/** Right over the dimensions of extent > 0; those of extent 0 are projected: any index, contributing nothing. */
QN_API qn_status qn_layout_projected(int rank, const int64_t *extents, qn_layout *out, qn_error *err);
/**
 * Dense, dimension d with the indices begin[d] <= i < end[d]. `order` as in qn_layout_ordered, NULL is Right.
 * Errors: end < begin (QN_ERR_RANGE), an extent or a product of extents that does not fit.
 */
QN_API qn_status qn_layout_bounds(int rank, const int64_t *begin, const int64_t *end,
                                  const int *order, qn_layout *out, qn_error *err);
/** Left with the indices lower[d] <= i <= upper[d], both included; `lower` NULL is 1. Errors: upper < lower. */
QN_API qn_status qn_layout_fortran(int rank, const int64_t *lower, const int64_t *upper,
                                   qn_layout *out, qn_error *err);
/**
 * Morton order: the bits of the offset are those of the indices in turn, lowest first, dimensions in the order
 * `order` (fastest first, NULL is Right). Extents are padded to powers of two; a dimension whose bits are used up is
 * left out. Errors: more than 63 bits, more than QN_MAX_DIGITS digits. Allocates a digit table.
 */
QN_API qn_status qn_layout_morton(int rank, const int64_t *extents, const int *order,
                                  qn_layout *out, qn_error *err);
/**
 * Any digits: n_digits[d] of them for dimension d, fastest first, those of dimension 0 at the start of `digits`.
 * `extents` may be smaller than the products of the digits' extents (NULL: these products); a dimension without digits
 * has stride 0 and extent 0 or 1. What qn_layout_digits writes gives the layout back. Kept in the shortest form.
 * Errors: digit extents < 0, 0 below the last; extents beyond the digits; offsets beyond int64; QN_ERR_LIMIT.
 */
QN_API qn_status qn_layout_custom(int rank, const int64_t *extents, const int *n_digits,
                                  const qn_digit *digits, qn_layout *out, qn_error *err);
/** The same function with other lower bounds: index i of the result is i - lower + old lower of `l`. `out` may be `l`. */
QN_API qn_status qn_layout_offset(const qn_layout *l, const int64_t *lower, qn_layout *out,
                                  qn_error *err);
/** Dimension p of the result is dimension perm[p] of `l`. */
QN_API qn_status qn_layout_permute(const qn_layout *l, const int *perm, qn_layout *out,
                                   qn_error *err);
/** Inserts a dimension of the given extent and stride 0 before dimension `at` (0 <= at <= rank). */
QN_API qn_status qn_layout_broadcast(const qn_layout *l, int at, int64_t extent, qn_layout *out,
                                     qn_error *err);
/** Reverses dimension d: index i of the result is index first + last - i of `l`. One-digit dimensions only. */
QN_API qn_status qn_layout_reverse(const qn_layout *l, int d, qn_layout *out, qn_error *err);
/** Adds amount[d] to the lower bounds: index i of the result is i - amount of `l`. */
QN_API qn_status qn_layout_shift(const qn_layout *l, const int64_t *amount, qn_layout *out,
                                 qn_error *err);
/** Drops the dimensions of extent 1. Projected ones stay. */
QN_API qn_status qn_layout_squeeze(const qn_layout *l, qn_layout *out, qn_error *err);
/** Inserts a dimension of extent 1 before dimension `at` (0 <= at <= rank). */
QN_API qn_status qn_layout_expand(const qn_layout *l, int at, qn_layout *out, qn_error *err);
/** The same elements in C style: dimensions reversed, lower bounds 0. */
QN_API qn_status qn_layout_to_c(const qn_layout *l, qn_layout *out, qn_error *err);
/** The same elements in Fortran style: dimensions reversed, lower bounds lower[p] of dimension p of the result,
 *  1 if `lower` is NULL. */
QN_API qn_status qn_layout_to_fortran(const qn_layout *l, const int64_t *lower, qn_layout *out,
                                      qn_error *err);
/**
 * Cuts dimension d into two: result(.., o, n, ..) = l(.., lower + o * inner + n, ..), n < inner, lower bounds 0.
 * Errors: `inner` < 1 or no divisor of the extent (QN_ERR_EXTENT), digits that it would cut, a projected dimension
 * (QN_ERR_UNSUPPORTED).
 */
QN_API qn_status qn_layout_split(const qn_layout *l, int d, int64_t inner, qn_layout *out,
                                 qn_error *err);
/**
 * Makes dimensions d and d + 1 one, the second fastest: with E the extent of d + 1,
 * result(.., o * E + n, ..) = l(.., lower + o, lower' + n, ..), lower bound 0. One digit if the strides continue one
 * another, else several. QN_ERR_UNSUPPORTED if tiles of d + 1 are cut by its extent, or one of both is projected.
 */
QN_API qn_status qn_layout_merge(const qn_layout *l, int d, qn_layout *out, qn_error *err);
/**
 * The same offsets in index order, last dimension fastest, under other extents, lower bounds 0; projected dimensions
 * of `l` count as extent 1. Never copies: QN_ERR_UNSUPPORTED, with the extent, if the digits do not allow it.
 * QN_ERR_EXTENT if the sizes differ.
 */
QN_API qn_status qn_layout_reshape(const qn_layout *l, int rank, const int64_t *extents,
                                   qn_layout *out, qn_error *err);
/** The same offsets in index order with the fewest dimensions: those of extent 1 and projected ones left out,
 *  neighbours joined where the stride of one continues that of the other. Lower bounds 0. */
QN_API qn_status qn_layout_coalesce(const qn_layout *l, qn_layout *out, qn_error *err);

/** One argument of a subview, per dimension, in the index space of the view. All-zero is "all". */
typedef struct qn_slice {
    int32_t kind;  /**< QN_ALL, QN_AT or QN_RANGE */
    int64_t begin; /**< the index (QN_AT), or the first index of the range */
    int64_t end;   /**< one past the last index of the range */
    int64_t step;  /**< >= 1, 0 means 1; range only */
} qn_slice;
/** Kinds of a slice: the whole dimension, one index, a range. */
enum { QN_ALL = 0, QN_AT = 1, QN_RANGE = 2 };

/**
 * Cuts a layout: QN_AT drops the dimension, QN_ALL keeps it with its lower bound, QN_RANGE keeps ceil((end-begin)/step)
 * indices and resets the lower bound to 0. Errors: number of slices, reversed or out-of-range ranges (QN_ERR_RANGE),
 * a proper range of a dimension with several digits that is not aligned to them (QN_ERR_UNSUPPORTED): whole tiles, and
 * parts of one tile, are. No allocation unless `l` has a digit table.
 */
QN_API qn_status qn_layout_slice(const qn_layout *l, int n, const qn_slice *slices, qn_layout *out,
                                 qn_error *err);
/** QN_RANGE of one dimension, all of the others: index i of dimension d of the result is begin + i * step of `l`. */
QN_API qn_status qn_layout_section(const qn_layout *l, int d, int64_t begin, int64_t end,
                                   int64_t step, qn_layout *out, qn_error *err);
/** A copy that owns its own reference to the digit table. Never fails. */
QN_API qn_layout qn_layout_copy(const qn_layout *l);
/** Drops the digit table, if any, and makes the layout all-zero. NULL is ignored. */
QN_API void qn_layout_release(qn_layout *l);

/** Number of index tuples. Saturates at INT64_MAX for hand-made layouts that overflow. */
QN_API int64_t qn_layout_size(const qn_layout *l);
/** Smallest and largest offset over all index tuples, both included; QN_ERR_OVERFLOW if one does not fit.
 *  For an empty layout *low = 0 and *high = -1. */
QN_API qn_status qn_layout_range(const qn_layout *l, int64_t *low, int64_t *high, qn_error *err);
/** Span: highest - lowest offset + 1; 0 if empty; -1 if it does not fit. */
QN_API int64_t qn_layout_span(const qn_layout *l);
/** Offset of an index tuple of n == rank indices. Errors: rank, QN_ERR_BOUNDS with dimension, index and range. */
QN_API qn_status qn_layout_at(const qn_layout *l, int n, const int64_t *index, int64_t *offset,
                              qn_error *err);
/** Indices of an offset, for layouts that are injective. QN_ERR_NOT_FOUND if no index tuple has it. */
QN_API qn_status qn_layout_inverse(const qn_layout *l, int64_t offset, int64_t *index,
                                   qn_error *err);
/** Whether different index tuples are known to have different offsets. */
QN_API bool qn_layout_is_unique(const qn_layout *l);
/** Whether every offset of the span belongs to an index tuple. Empty layouts are contiguous. */
QN_API bool qn_layout_is_contiguous(const qn_layout *l);
/** Number of digits of dimension d (1 without a table, 0 for a bad d); writes them to `out` if not NULL. */
QN_API int qn_layout_digits(const qn_layout *l, int d, qn_digit *out);
/** Number of digits over all dimensions; 0 for a bad layout. */
QN_API int qn_layout_n_digits(const qn_layout *l);
/** Stride of a dimension with one digit. Errors: a bad d, several digits (QN_ERR_UNSUPPORTED). */
QN_API qn_status qn_layout_stride(const qn_layout *l, int d, int64_t *stride, qn_error *err);
/** Whether every dimension has one digit, so that strides describe the layout. */
QN_API bool qn_layout_is_strided(const qn_layout *l);
/** Another name of qn_layout_is_contiguous. */
QN_API bool qn_layout_is_exhaustive(const qn_layout *l);
/**
 * Whether it is Right for the purpose of assignment: with one p >= e(n-1), s(n-1) = 1 and
 * s(k) = p * e(k+1) * .. * e(n-2) for k <= n-2 (p > e(n-1): padded). Dimensions of extent 1 are skipped. Rank 0 and
 * empty layouts are; several digits or projected dimensions are not. Lower bounds do not matter.
 */
QN_API bool qn_layout_is_right(const qn_layout *l);
/** The mirror image: s(0) = 1, s(k) = p * e(1) * .. * e(k-1) for k >= 1 and one p >= e(0). */
QN_API bool qn_layout_is_left(const qn_layout *l);
/** Span x element_bytes: what the elements occupy. (qn_view_alloc reserves whole tiles where tiles are cut.) Errors:
 *  element_bytes < 0, QN_ERR_OVERFLOW. */
QN_API qn_status qn_layout_required_bytes(const qn_layout *l, int64_t element_bytes, int64_t *bytes,
                                          qn_error *err);
/** Prints as "shape:stride", (2,3):(3,1), digits in nested parentheses. Returns the length needed, as snprintf. */
QN_API size_t qn_layout_print(const qn_layout *l, char *buffer, size_t buffer_bytes);

/* ------------------------------------------------------------------------------------------------ views */

/** Memory spaces: X(NAME, number, text, available). Spaces that are not available are listed and refused by name. */
#define QN_SPACE_LIST(X)                                                                           \
    X(HOST, 0, "host", 1)                                                                          \
    X(CUDA, 1, "cuda", 0)                                                                          \
    X(CUDA_MANAGED, 2, "cuda-managed", 0)                                                          \
    X(CUDA_PINNED, 3, "cuda-pinned", 0)                                                            \
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

/** Traits of a view or kernel parameter, or-ed. Claims are checked at the launch, never trusted. */
enum {
    QN_READ_ONLY = 1 << 0,     /**< stores through it are refused */
    QN_ATOMIC = 1 << 1,        /**< every access through it is atomic (relaxed) */
    QN_RESTRICT = 1 << 2,      /**< overlaps no other argument; else QN_ERR_OVERLAP */
    QN_RANDOM_ACCESS = 1 << 3, /**< read-only data not written during the launch; else QN_ERR_OVERLAP */
    QN_ALIGNED = 1 << 4,       /**< data is aligned to 64 bytes; else QN_ERR_ALIGNMENT */
    QN_STREAMING = 1 << 5      /**< hint: data is not used again soon */
};

/** Counted storage behind views. Opaque. */
typedef struct qn_buffer qn_buffer;
/** Cache, pool of threads, counters and history; several can exist. Opaque. */
typedef struct qn_context qn_context;

/**
 * A view: typed data with a layout. A documented plain struct; all-zero is the default view (rank 0, no data, empty).
 * `data` is the address of the element at the lower bounds; layout.origin is 0 in a view.
 */
typedef struct qn_view {
    void *data;
    qn_buffer *owner;  /**< NULL: unmanaged memory of the caller, which must outlive every use */
    const char *label; /**< borrowed: the owner's, or the caller's for unmanaged views; may be NULL */
    int32_t dtype;     /**< a qn_dtype */
    int32_t space;     /**< a qn_space */
    uint32_t traits;   /**< or of QN_READ_ONLY, ... */
    uint32_t reserved; /**< 0 */
    qn_layout layout;
} qn_view;

/** qn_view_alloc flags. */
enum { QN_UNINITIALISED = 1 << 0 };

/**
 * Allocates storage for the layout's span, aligned to 64 bytes, zeroed unless QN_UNINITIALISED. On success the caller
 * owns one reference in *out; the layout is copied. Errors: dtype, overflow, memory (with label and bytes).
 */
QN_API qn_status qn_view_alloc(qn_context *c, const char *label, int dtype, const qn_layout *l,
                               uint32_t flags, qn_view *out, qn_error *err);
/** Right-order shorthand of qn_view_alloc. */
QN_API qn_status qn_view_new(qn_context *c, const char *label, int dtype, int rank,
                             const int64_t *extents, qn_view *out, qn_error *err);
/**
 * Wraps memory of the caller. `data` is the address of offset 0 of the layout, so data + origin becomes view.data.
 * The label is borrowed. `data` may be NULL only if the layout is empty. The caller releases the view if the layout has
 * a digit table; releasing never frees `data`. Errors: null data, dtype, alignment below the element size, overflow.
 */
QN_API qn_status qn_view_wrap(const char *label, void *data, int dtype, const qn_layout *l,
                              uint32_t traits, qn_view *out, qn_error *err);
/** A view of the same data with one more reference. Never fails. */
QN_API qn_view qn_view_copy(const qn_view *v);
/** Drops the view's reference and makes it the default view. NULL is ignored. */
QN_API void qn_view_release(qn_view *v);
/** A view of a part, see qn_layout_slice; owns a reference of its own. No allocation for one-digit layouts. */
QN_API qn_status qn_subview(const qn_view *v, int n, const qn_slice *slices, qn_view *out,
                            qn_error *err);
/** A view of the same data through a transformed layout (whose origin is relative to `v`), with a reference of its own.
 *  Error QN_ERR_BOUNDS if the layout's offsets leave the owner's storage (checked for managed views). */
QN_API qn_status qn_view_with_layout(const qn_view *v, const qn_layout *l, qn_view *out,
                                     qn_error *err);
/** Number of references to the storage; 0 for unmanaged views. */
QN_API int64_t qn_view_use_count(const qn_view *v);
/** Address of an element of a host view; QN_ERR_BOUNDS with label, dimension, indices and extents. */
QN_API qn_status qn_view_at(const qn_view *v, int n, const int64_t *index, void **out, qn_error *err);
/** A view of the same storage whose traits are those of `v` and `traits`. The claim QN_ALIGNED is checked. */
QN_API qn_status qn_view_with_traits(const qn_view *v, uint32_t traits, qn_view *out, qn_error *err);
/** A view of the same data without owner or label, which must not outlive it. Release it only for its digit table. */
QN_API qn_status qn_view_unmanaged(const qn_view *v, qn_view *out, qn_error *err);
/** Drops the reference and points the view at memory of the caller; dtype, traits and layout stay, the label goes.
 *  `data` is the element at the lower bounds. Errors leave the view as it was. */
QN_API qn_status qn_view_assign_data(qn_view *v, void *data, qn_error *err);
/** Whether two views have the same dtype, space, rank, data pointer, extents and digits (strides). Contents, labels,
 *  traits and lower bounds are not compared. */
QN_API bool qn_view_equal(const qn_view *a, const qn_view *b);
/** Whether the view has data; also true for allocated views of size 0. */
QN_API bool qn_view_is_allocated(const qn_view *v);
/** Number of index tuples, and elements from the lowest to the highest address; 0 for views without data.
 *  The span is -1 if it does not fit. */
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

/** Execution spaces: X(NAME, number, text, available). OpenMP code runs as a parallel_for of the host. */
#define QN_EXEC_LIST(X)                                                                            \
    X(SERIAL, 0, "serial", 1)                                                                      \
    X(OPENMP, 1, "openmp", 1)                                                                      \
    X(THREADS, 2, "threads", 1)                                                                    \
    X(CUDA, 3, "cuda", 0)                                                                          \
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
/** QN_OK, QN_ERR_NOT_AVAILABLE for spaces that this build lacks, QN_ERR_ARGUMENT for unknown numbers. */
QN_API qn_status qn_space_check(int space, qn_error *err);
QN_API qn_status qn_exec_check(int exec, qn_error *err);
/** Whether code of an execution space may touch a memory space: the table, whether or not this build has them. */
QN_API bool qn_exec_can_access(int exec, int space);
/** Whether a view in `dst` may refer to memory of `src`; whether the execution space of `dst` may touch `src`; whether
 *  memory can be copied from `src` to `dst`. False for unknown numbers. */
QN_API bool qn_space_is_assignable(int dst, int src);
QN_API bool qn_space_can_access(int dst, int src);
QN_API bool qn_space_can_copy(int dst, int src);

/** Layout families that a view type may ask for. A layout belongs to every family that its digits satisfy. */
enum {
    QN_FAMILY_ANY = 0,    /**< every layout */
    QN_FAMILY_RIGHT = 1,  /**< C order, with one free leading stride */
    QN_FAMILY_LEFT = 2,   /**< Fortran order, with one free leading stride */
    QN_FAMILY_STRIDED = 3 /**< one stride for each dimension */
};

/** A view type: what a view must be to be assigned. A plain struct; make it with qn_view_type_init. */
typedef struct qn_view_type {
    int32_t dtype;
    int32_t rank;         /**< -1: any rank, and no fixed extents */
    int32_t read_only;    /**< 1: takes read-only views, and is one */
    int32_t family;       /**< QN_FAMILY_... */
    int32_t space;        /**< of the destination */
    int32_t unmanaged;    /**< 1: the destination holds no reference */
    uint32_t traits;      /**< of the destination; QN_READ_ONLY here is `read_only` too */
    uint32_t reserved;    /**< 0 */
    int64_t extent[QN_MAX_RANK]; /**< fixed extents, -1 where any will do */
} qn_view_type;

/** A writable, managed host type. `extents` has rank entries, -1 where any will do; NULL: all of them. */
QN_API qn_status qn_view_type_init(int dtype, int rank, const int64_t *extents, int family,
                                   qn_view_type *out, qn_error *err);
/** Number of dimensions whose extent is not fixed; -1 for types of any rank. */
QN_API int qn_view_type_rank_dynamic(const qn_view_type *type);
/** The fixed extent of dimension d, 0 if it is not fixed. Errors: QN_ERR_RANK if d is not in [0, rank). */
QN_API qn_status qn_view_type_static_extent(const qn_view_type *type, int d, int64_t *out,
                                            qn_error *err);
/**
 * The dense layout of a type: Right, or Left if the type asks for it. n is the number of dimensions, or of those that
 * are not fixed; fixed extents that are given must agree. No layout for types that are only QN_FAMILY_STRIDED.
 */
QN_API qn_status qn_view_type_layout(const qn_view_type *type, int n, const int64_t *extents,
                                     qn_layout *out, qn_error *err);
/** The view of a type without data: extents 0 where not fixed; size and span 0. */
QN_API qn_status qn_view_default(const qn_view_type *type, qn_view *out, qn_error *err);
/** True if and only if qn_view_assign would succeed. The message names dimension, expected and found. */
QN_API bool qn_is_assignable(const qn_view_type *type, const qn_view *v, qn_error *err);
/**
 * Makes *dst a view of `src` that fits the type (NULL: every view fits, and keeps its traits): drops the reference that
 * *dst held and takes one of its own. *dst is a view or all-zero, and may be `src`. Extents and strides are those of
 * `src`. Errors leave *dst as it was: QN_ERR_RANK, _DTYPE, _READ_ONLY, _SPACE, _EXTENT, _ALIGNMENT, and QN_ERR_ARGUMENT
 * for layouts that are not of the family.
 */
QN_API qn_status qn_view_assign(qn_view *dst, const qn_view_type *type, const qn_view *src,
                                qn_error *err);

/* ------------------------------------------------------------------------------------------------ copies */

/** Properties of an allocation. All-zero with `bytes` set is the default; NULL too. */
typedef struct qn_alloc_options {
    size_t bytes;          /**< sizeof(qn_alloc_options) */
    const char *label;     /**< copied; may be NULL */
    int64_t alignment;     /**< bytes of the lowest address: a power of two from 64 to 2 MiB; 0 is 64 */
    int32_t uninitialised; /**< 1: contents are undefined */
    int32_t padding;       /**< 1: pads the stride next to the unit stride to 64 bytes, where extents are longer */
    int32_t space;         /**< a qn_space */
    int32_t executor;      /**< whose threads touch the memory first; 0: the context's, or the caller */
} qn_alloc_options;

/**
 * Allocates a view of a type: n as in qn_view_type_layout, or a layout of the caller's, which must be of the type.
 * Errors: number of extents and fixed extents that differ, read-only types, overflow, space, and memory with space,
 * label and bytes. The context may be NULL where the executor is not QN_THREADS.
 */
QN_API qn_status qn_view_create(qn_context *c, const qn_view_type *type, int n,
                                const int64_t *extents, const qn_alloc_options *o, qn_view *out,
                                qn_error *err);
QN_API qn_status qn_view_create_layout(qn_context *c, const qn_view_type *type, const qn_layout *l,
                                       const qn_alloc_options *o, qn_view *out, qn_error *err);
/**
 * Gives *v new storage of n extents, in the order of its dimensions; label, dtype, traits and, if the rank stays, lower
 * bounds are kept, the common part is copied (dimensions that only one rank has count as one index), the rest is zero.
 * Other owners keep the old storage. Extents that stay the same: nothing happens. `o` may be NULL and has no label or
 * alignment. Errors leave *v as it was.
 */
QN_API qn_status qn_view_resize(qn_context *c, qn_view *v, int n, const int64_t *extents,
                                const qn_alloc_options *o, qn_error *err);
/** The same with any layout. Nothing happens if it is the layout of *v. */
QN_API qn_status qn_view_resize_layout(qn_context *c, qn_view *v, const qn_layout *l,
                                       const qn_alloc_options *o, qn_error *err);
/** Like qn_view_resize, but contents become zero (undefined if uninitialised). Same extents: same storage. */
QN_API qn_status qn_view_realloc(qn_context *c, qn_view *v, int n, const int64_t *extents,
                                 const qn_alloc_options *o, qn_error *err);
/** New storage in `space` with the extents and layout of `v` (Right where that layout is not unique), zeroed; the label
 *  is that of `v` and "_mirror". */
QN_API qn_status qn_create_mirror(qn_context *c, int space, const qn_view *v, qn_view *out,
                                  qn_error *err);
/** `v` itself, with a reference, if code of `space` can access it; else qn_create_mirror. */
QN_API qn_status qn_create_mirror_view(qn_context *c, int space, const qn_view *v, qn_view *out,
                                       qn_error *err);
/** qn_create_mirror_view with the contents of `v`. */
QN_API qn_status qn_create_mirror_copy(qn_context *c, int space, const qn_view *v, qn_view *out,
                                       qn_error *err);

/**
 * Copies all elements, whatever the layouts. Lower bounds may differ. A view onto itself: nothing happens. Errors:
 * QN_ERR_DTYPE, QN_ERR_EXTENT (with both labels and extents), QN_ERR_READ_ONLY, QN_ERR_NOT_INJECTIVE (of dst), and
 * QN_ERR_OVERLAP for different views that share an element. The context may be NULL where plain copies of bytes do.
 */
QN_API qn_status qn_deep_copy(qn_context *c, const qn_view *dst, const qn_view *src, qn_error *err);
/** The same on an executor (QN_SERIAL, QN_THREADS). Host executors have finished on return. */
QN_API qn_status qn_deep_copy_on(qn_context *c, int executor, const qn_view *dst,
                                 const qn_view *src, qn_error *err);
/** The same between dtypes, each element converted as by qn_cast; from float to bool it is "is not zero". */
QN_API qn_status qn_convert_copy(qn_context *c, int executor, const qn_view *dst,
                                 const qn_view *src, qn_error *err);
/** Sets all elements to a value, given by its bits, low end first. The context may be NULL for contiguous views. */
QN_API qn_status qn_fill(qn_context *c, const qn_view *v, uint64_t bits, qn_error *err);
/** The bits of the element of a view of rank 0, low end first. */
QN_API qn_status qn_read_scalar(const qn_view *v, uint64_t *bits, qn_error *err);

/* ------------------------------------------------------------------------------------------------ builder */

/** A kernel under construction. Opaque. */
typedef struct qn_builder qn_builder;
/** A finished kernel: verified, immutable, counted. Opaque. */
typedef struct qn_kernel qn_kernel;

/** A value of a kernel under construction. {0} is the inert value. */
typedef struct qn_val {
    uint32_t id;
} qn_val;
/** A view parameter of a kernel under construction. {0} is inert. */
typedef struct qn_param {
    uint32_t id;
} qn_param;

/** Kernel flags. */
enum {
    QN_CONTRACT = 1 << 0,       /**< a*b+c becomes fma, the same on every engine */
    QN_CHECK_DIVISION = 1 << 1, /**< reserved */
    QN_ORDER_STRIPED = 1 << 2,  /**< reductions without an order of their own are striped */
    QN_ORDER_INDEXED = 1 << 3,  /**< ... are indexed */
    QN_ORDER_ORDERED = 1 << 4   /**< ... are in strict order */
};

/** Order rules of reductions of floating-point numbers. */
enum {
    QN_ORDER_DEFAULT = 0, /**< the kernel's flag; else indexed with a parallel dimension, striped without */
    QN_INDEXED = 1,       /**< index order within blocks of 4096, block results by the same rule */
    QN_STRIPED = 2,       /**< 64 partials in each block of 4096, halved to one; blocks by the same rule */
    QN_ORDERED = 3        /**< strict index order */
};

/** Reductions and atomic operations: X(NAME, number, text, is_reduction, is_atomic). */
#define QN_COMBINE_LIST(X)                                                                         \
    X(SUM, 0, "sum", 1, 1)                                                                         \
    X(PROD, 1, "prod", 1, 0)                                                                       \
    X(MIN, 2, "min", 1, 1)                                                                         \
    X(MAX, 3, "max", 1, 1)                                                                         \
    X(AND, 4, "and", 1, 1)                                                                         \
    X(OR, 5, "or", 1, 1)                                                                           \
    X(XOR, 6, "xor", 1, 1)                                                                         \
    X(EXCHANGE, 7, "exchange", 0, 1)                                                               \
    X(COMPARE_EXCHANGE, 8, "compare_exchange", 0, 1)

/** How values are combined. In a reduction AND, OR, XOR take integers and bool, the others numbers; atomics take
 *  numbers, AND, OR, XOR integers. */
typedef enum qn_combine {
#define QN_X(name, number, text, is_reduction, is_atomic) QN_COMBINE_##name = number,
    QN_COMBINE_LIST(QN_X)
#undef QN_X
    QN_N_COMBINES = 9,
    QN_COMBINE_FORCE_INT = 0x7fffffff
} qn_combine;

/** Largest numbers in one kernel; more are builder errors. */
#define QN_MAX_PARAMS 64
#define QN_MAX_OPS 10000
#define QN_MAX_REGIONS 500
#define QN_MAX_NESTING 64
#define QN_MAX_CARRIED 32 /**< carried values of one loop, results of one if */

/** A new builder for a kernel of this name, or NULL if memory runs out. `flags`: QN_CONTRACT, ... */
QN_API qn_builder *qn_builder_new(const char *name, uint32_t flags);
/** Frees a builder. NULL is ignored. A finished kernel is independent of it. */
QN_API void qn_builder_release(qn_builder *b);
/** The first error so far, QN_OK if none; copies it to *err if not NULL. */
QN_API qn_status qn_builder_status(const qn_builder *b, qn_error *err);
/** The dtype of a value, QN_VOID for inert values. */
QN_API qn_dtype qn_type_of(const qn_builder *b, qn_val v);

/** Adds a view parameter. `name` is for people. `traits`: QN_READ_ONLY, QN_ATOMIC, ... Before any domain dimension. */
QN_API qn_param qn_view_param(qn_builder *b, const char *name, int dtype, int rank,
                              uint32_t traits);
/** Adds a scalar parameter and returns its value. Parameters of both kinds share one argument list, in call order. */
QN_API qn_val qn_scalar_param(qn_builder *b, const char *name, int dtype);

/** Constants. A value is converted to the dtype's width; bool takes 0 or 1. */
QN_API qn_val qn_const_int(qn_builder *b, int dtype, int64_t value);
QN_API qn_val qn_const_float(qn_builder *b, int dtype, double value);
/** A constant of any dtype from its bits, low end first; signed integers are sign-extended by the caller or not. */
QN_API qn_val qn_const_bits(qn_builder *b, int dtype, uint64_t bits);
/** i64 constant, the usual index. */
QN_API qn_val qn_index(qn_builder *b, int64_t value);
/** Extent and lower bound of dimension d of a view parameter, i64. */
QN_API qn_val qn_extent(qn_builder *b, qn_param p, int d);
QN_API qn_val qn_lower(qn_builder *b, qn_param p, int d);

/**
 * Adds a dimension to the domain and returns its index, i64, in [begin, end). Bounds may use constants, scalar
 * parameters, extents and lower bounds, and ops on these. begin > end is an error of the launch; begin == end is empty.
 * Iteration order: dimensions as declared, first slowest. Dimensions come before loads, stores and regions.
 * Parallel: no iteration may read or write an element that another iteration writes, except through atomics.
 * Reduction: usable only inside a qn_reduce that names it. Sequential: in order, before all parallel dimensions.
 */
QN_API qn_val qn_parallel(qn_builder *b, qn_val begin, qn_val end);
QN_API qn_val qn_reduction(qn_builder *b, qn_val begin, qn_val end);
QN_API qn_val qn_sequential(qn_builder *b, qn_val begin, qn_val end);
/** Shorthand: parallel over all indices of dimension d of a view, lower bound to lower bound + extent. */
QN_API qn_val qn_parallel_over(qn_builder *b, qn_param p, int d);
/** Shorthand: reduction over all indices of dimension d of a view. */
QN_API qn_val qn_reduction_over(qn_builder *b, qn_param p, int d);

/** Loads view[index...]; n must be the view's rank; indices are integers, converted to i64. */
QN_API qn_val qn_load(qn_builder *b, qn_param p, int n, const qn_val *index);
/** Stores view[index...] = value. The dtypes must be equal. */
QN_API void qn_store(qn_builder *b, qn_param p, int n, const qn_val *index, qn_val value);
/** Atomically combines view[index...] with value, relaxed; returns the old value. `compare` is for COMPARE_EXCHANGE
 *  only (integers and floats compare by bits), {0} otherwise. */
QN_API qn_val qn_atomic(qn_builder *b, int combine, qn_param p, int n, const qn_val *index,
                        qn_val value, qn_val compare);

/** Ops of the table quern/ops.def: qn_add(b, x, y), qn_sqrt(b, x), qn_select(b, c, x, y), ... */
#define QN_ARGS1(b) qn_builder *b, qn_val x
#define QN_ARGS2(b) qn_builder *b, qn_val x, qn_val y
#define QN_ARGS3(b) qn_builder *b, qn_val x, qn_val y, qn_val z
#define QN_OP(ID, name, rule, arity, classes, ...) QN_API qn_val qn_##name(QN_ARGS##arity(b));
#include "quern/ops.def"
#undef QN_OP
/** The numbers of the table's ops: QN_OP_add, ... */
typedef enum qn_op_number {
    QN_OP_none = 0,
#define QN_OP(ID, name, ...) QN_OP_##name,
#include "quern/ops.def"
#undef QN_OP
    QN_N_TABLE_OPS
} qn_op_number;
/** Any op of the table by number, for interpreters of other languages. */
QN_API qn_val qn_op(qn_builder *b, int op, int n, const qn_val *args);
/** Number of an op of the table by keyword, or 0. */
QN_API int qn_op_of_name(const char *name);
/** Converts between any two dtypes but to bool from float: integers wrap, float to integer truncates and saturates
 *  with NaN to 0, to float rounds to nearest even, to bool is "is not zero". */
QN_API qn_val qn_cast(qn_builder *b, int dtype, qn_val x);
/** Reinterprets bits; dtypes of equal size. */
QN_API qn_val qn_bitcast(qn_builder *b, int dtype, qn_val x);

/** `if` and `else`. Each branch ends with a call that gives its n values; the results have the types of the first. */
QN_API void qn_if(qn_builder *b, qn_val condition);
/** Ends the first branch and starts the other. */
QN_API void qn_else(qn_builder *b, int n, const qn_val *values);
/** Ends the `if`. Without qn_else the other branch is empty and n must be 0. Results go to results[0..n). */
QN_API void qn_end_if(qn_builder *b, int n, const qn_val *values, qn_val *results);

/** Counted loop: index from begin while index < end, by step > 0 (a constant); n carried values start as init and are
 *  written to carried[0..n). Returns the index, i64. No iteration may wrap: the loop ends before. */
QN_API qn_val qn_for(qn_builder *b, qn_val begin, qn_val end, int64_t step, int n,
                     const qn_val *init, qn_val *carried);
/** Ends the loop: the next carried values; results are the final ones. */
QN_API void qn_end_for(qn_builder *b, int n, const qn_val *next, qn_val *results);

/** Bounded loop: starts the condition. `max_trips` is i64 and uniform; reaching it ends the loop with its current
 *  values and makes the launch return QN_ERR_LIMIT. */
QN_API void qn_while(qn_builder *b, qn_val max_trips, int n, const qn_val *init, qn_val *carried);
/** Ends the condition (a bool) and starts the body. */
QN_API void qn_do(qn_builder *b, qn_val condition);
/** Ends the loop: the next carried values; results are the final ones. */
QN_API void qn_end_while(qn_builder *b, int n, const qn_val *next, qn_val *results);

/** Reduction over the named reduction dimensions, which count lexicographically as declared. Stores and atomics inside
 *  are refused. `order`: QN_ORDER_DEFAULT, ... */
QN_API void qn_reduce(qn_builder *b, int combine, int order, int n, const qn_val *dims);
/** Ends the reduction with the value of one point; returns the result. Empty range: 0, 1, or the type's last value. */
QN_API qn_val qn_end_reduce(qn_builder *b, qn_val value);

/** Finishes: folds, removes dead ops, verifies. On success *out holds a kernel with one reference. The builder stays
 *  valid only for qn_builder_release. */
QN_API qn_status qn_finish(qn_builder *b, qn_kernel **out, qn_error *err);

/* ------------------------------------------------------------------------------------------------ kernels */

/** Reads a kernel from text. err->line is set; the message holds line and column. */
QN_API qn_status qn_kernel_parse(const char *text, size_t text_bytes, qn_kernel **out, qn_error *err);
/** Prints a kernel. Returns the bytes needed without the zero, as snprintf; parse(print(k)) prints the same again. */
QN_API size_t qn_kernel_print(const qn_kernel *k, char *buffer, size_t buffer_bytes);
/** Adds a reference and returns the kernel. */
QN_API qn_kernel *qn_kernel_retain(const qn_kernel *k);
/** Drops a reference. NULL is ignored. */
QN_API void qn_kernel_release(qn_kernel *k);
/** Borrowed for the life of the kernel. */
QN_API const char *qn_kernel_name(const qn_kernel *k);

/** A parameter as seen from outside. */
typedef struct qn_param_info {
    const char *name; /**< borrowed for the life of the kernel */
    int32_t dtype;
    int32_t rank;       /**< -1 for a scalar */
    uint32_t traits;    /**< as declared */
    int32_t is_read;    /**< the kernel loads from it */
    int32_t is_written; /**< the kernel stores to it, atomics included */
} qn_param_info;
/** Number of parameters, views and scalars; 0 for NULL. */
QN_API int qn_kernel_n_params(const qn_kernel *k);
/** Describes parameter i, 0 <= i < qn_kernel_n_params(k). */
QN_API qn_status qn_kernel_param(const qn_kernel *k, int i, qn_param_info *out, qn_error *err);

/* ------------------------------------------------------------------------------------------------ context */

/** Calls fn(arg, i) once for every i in [0, n_chunks), in any order, on any threads, and returns when all are done.
 *  Chunks never wait for one another. `max_threads` is a hint, 0 = free. */
typedef void (*qn_parallel_for)(void *pool, int64_t n_chunks, int max_threads,
                                void (*fn)(void *arg, int64_t chunk), void *arg);

/** What the event hook is told. Borrowed for the call. */
typedef struct qn_event {
    int32_t kind;        /**< QN_EVENT_... */
    const char *kernel;  /**< name */
    const char *text;    /**< reason or specialization; may be NULL */
    double milliseconds; /**< duration, where known */
} qn_event;
/** Kinds of events. */
enum {
    QN_EVENT_COMPILE = 1,  /**< a specialization was compiled */
    QN_EVENT_HIT = 2,      /**< a launch found its code */
    QN_EVENT_LAUNCH = 3,   /**< a launch has ended */
    QN_EVENT_FALLBACK = 4, /**< the interpreter runs instead of code */
    QN_EVENT_EVICT = 5     /**< a specialization was dropped from the cache */
};

/** Options of a context. All-zero with `bytes` set is the default; environment variables fill only zero fields. */
typedef struct qn_context_options {
    size_t bytes;                 /**< sizeof(qn_context_options) */
    int32_t n_threads;            /**< of the own pool; 0: affinity and cgroup, QUERN_NUM_THREADS */
    int32_t default_executor;     /**< QN_SERIAL (1) or QN_THREADS (2); 0 is QN_SERIAL */
    int64_t cache_bytes;          /**< bound of the code cache; 0 is 64 MiB */
    qn_parallel_for parallel_for; /**< replaces the own pool */
    void *parallel_pool;          /**< passed to parallel_for */
    void (*event_hook)(void *arg, const qn_event *e); /**< NULL: no events, no clock reads at launches */
    void *event_arg;
    const char *provider_path; /**< file of the code generator; NULL: beside libquern, QUERN_PROVIDER */
    int32_t start_provider;    /**< 1: load the code generator in the background now */
    uint32_t dump;             /**< or of QN_DUMP_...; QUERN_DUMP */
    const char *dump_dir;      /**< QUERN_DUMP_DIR; default is the working directory */
    int32_t compile_ms;        /**< time limit of one compile; 0 is 20000 */
} qn_context_options;

/** Stages that can be dumped and read: X(NAME, bit, text). */
#define QN_DUMP_LIST(X)                                                                            \
    X(KERNEL, 0, "kernel")                                                                         \
    X(KEY, 1, "key")                                                                               \
    X(PLAN, 2, "plan")                                                                             \
    X(LLVM, 3, "llvm")                                                                             \
    X(ASM, 4, "asm")                                                                               \
    X(PTX, 5, "ptx")
/** QN_DUMP_KERNEL, ...: the stages as bits. */
enum {
#define QN_X(name, bit, text) QN_DUMP_##name = 1 << bit,
    QN_DUMP_LIST(QN_X)
#undef QN_X
    QN_DUMP_NONE = 0
};

/** Makes a context. `o` may be NULL. */
QN_API qn_status qn_context_new(const qn_context_options *o, qn_context **out, qn_error *err);
/** Drops the context; views, functions and calls made from it stay releasable and usable. NULL is ignored. */
QN_API void qn_context_release(qn_context *c);

/** Counters of a context: X(name, text). */
#define QN_COUNTER_LIST(X)                                                                         \
    X(launches, "launches, all engines")                                                           \
    X(hits, "launches whose exact arguments were known")                                           \
    X(misses, "launches that had to look at the arguments")                                        \
    X(compiles, "compilations")                                                                    \
    X(dynamic_compiles, "... of versions with dynamic extents")                                    \
    X(interpreted, "launches run by the interpreter")                                              \
    X(ordered, "launches run in iteration order because views overlap")                            \
    X(faults, "launches that reported bounds or limits")                                           \
    X(evictions, "specializations dropped to stay below the bound")                                \
    X(live_functions, "specializations in the cache")                                              \
    X(code_bytes, "bytes of their code")                                                           \
    X(compile_us, "time spent compiling, microseconds")                                            \
    X(provider_us, "time to load the code generator, microseconds")
/** The counters, by the names of the list; all since the context was made, but live_functions and code_bytes now. */
typedef struct qn_counters {
#define QN_X(name, text) int64_t name;
    QN_COUNTER_LIST(QN_X)
#undef QN_X
} qn_counters;
/** Reads the counters. NULL arguments are ignored. */
QN_API void qn_context_counters(const qn_context *c, qn_counters *out);
/** Copies lines of the history, newest last, one a compile or step down: kernel, reason, milliseconds. Returns the bytes
 *  needed without the zero. */
QN_API size_t qn_context_history(const qn_context *c, char *buffer, size_t buffer_bytes);

/* ------------------------------------------------------------------------------------------------ running */

/** Executors. Host executors have finished when a launch returns. */
enum { QN_EXECUTOR_DEFAULT = 0, QN_SERIAL = 1, QN_THREADS = 2 };
/** Engines. AUTO generates code and falls back to the interpreter where that cannot be. */
enum { QN_ENGINE_AUTO = 0, QN_ENGINE_INTERP = 1, QN_ENGINE_X86 = 2 };
/** Bounds policies: report first failure (default), clamp the index, or none. */
enum { QN_CHECKS_REPORT = 0, QN_CHECKS_CLAMP = 1, QN_CHECKS_NONE = 2 };
/** Which facts become constants. */
enum {
    QN_SPECIALIZE_AUTO = 0,   /**< the context's policy */
    QN_SPECIALIZE_EXACT = 1,  /**< extents, strides and lower bounds */
    QN_SPECIALIZE_DYNAMIC = 2 /**< none of them, but strides from -4 to 4 */
};
/** Instruction sets. AUTO is the best the machine has. */
enum { QN_ISA_AUTO = 0, QN_ISA_V3 = 3, QN_ISA_V4 = 4 };
/** Loaders of code. */
enum { QN_LOADER_AUTO = 0, QN_LOADER_ARENA = 1, QN_LOADER_ORC = 2 };

/** Plan fields a caller may fix. 0 leaves a field to the planner. */
typedef struct qn_plan_options {
    int32_t lane_dim;    /**< 1 + number of the domain dimension that is vectorized; -1: none, scalar code */
    int32_t width;       /**< lanes of one vector, a power of two <= 64 */
    int32_t unroll;      /**< vectors of the lane dimension in one step, 1 to 8 */
    int32_t jam_dim;     /**< 1 + number of a second parallel dimension to jam */
    int32_t jam;         /**< its factor, 1 to 16 */
    int32_t order[QN_MAX_RANK]; /**< 1 + dimension numbers, outermost first; all zero: planner's choice */
} qn_plan_options;

/** Options of a specialization or launch. All-zero with `bytes` set is the default; NULL too. */
typedef struct qn_options {
    size_t bytes;       /**< sizeof(qn_options) */
    int32_t engine;     /**< QN_ENGINE_... */
    int32_t executor;   /**< QN_SERIAL, ... */
    int32_t checks;     /**< QN_CHECKS_... */
    int32_t specialize; /**< QN_SPECIALIZE_... */
    int32_t isa;        /**< QN_ISA_... */
    int32_t loader;     /**< QN_LOADER_... */
    int32_t strict;     /**< 1: overlapping views are QN_ERR_OVERLAP instead of run in order */
    int32_t max_threads; /**< of this launch; 0 = free */
    int32_t constant_scalars; /**< 1: scalar arguments become constants of the code */
    int32_t reserved;
    qn_plan_options plan;
} qn_options;

/** An argument: a view or a scalar, in the order of the kernel's parameters. */
typedef struct qn_arg {
    const qn_view *view; /**< borrowed for the call; NULL for a scalar */
    int32_t dtype;       /**< of the scalar */
    uint32_t reserved;
    uint64_t bits; /**< of the scalar, low end first */
} qn_arg;
/** A view as an argument; the view is borrowed. */
QN_API qn_arg qn_arg_view(const qn_view *v);
/** A scalar of any dtype from an integer: cut to the width, or converted for f32 and f64. */
QN_API qn_arg qn_arg_int(int dtype, int64_t value);
/** Scalars of f32 and f64. */
QN_API qn_arg qn_arg_f32(float value);
QN_API qn_arg qn_arg_f64(double value);

/**
 * Runs a kernel. What is checked, before anything runs: number, kind and dtype of arguments, rank, data, alignment,
 * space, traits, layout (offsets fit, written layouts injective), overlap. Then the kernel runs on the executor; a first
 * access out of bounds is returned as QN_ERR_BOUNDS with kernel, view label, argument, dimension, indices and extents;
 * outputs are then defined but unspecified. Overlapping views that could carry a dependence run in iteration order.
 */
QN_API qn_status qn_launch(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                           const qn_options *o, qn_error *err);

/** Code specialized for the facts of some arguments. Counted. */
typedef struct qn_function qn_function;
/** Specializes without running; *out holds one reference. */
QN_API qn_status qn_specialize(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                               const qn_options *o, qn_function **out, qn_error *err);
/** Drops a reference. NULL is ignored. */
QN_API void qn_function_release(qn_function *f);
/** Text of one stage (QN_DUMP_...): copies up to buffer_bytes and returns the bytes needed without the zero; 0 if the
 *  stage does not exist. LLVM and ASM texts are generated on demand by compiling again. */
QN_API size_t qn_function_text(const qn_function *f, int stage, char *buffer, size_t buffer_bytes);

/** A launch with arguments bound once. Holds references to views, kernel and code. */
typedef struct qn_call qn_call;
/** Does all checks of qn_launch now. The views' storage stays alive; scalars are copied. */
QN_API qn_status qn_prepare(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                            const qn_options *o, qn_call **out, qn_error *err);
/** Runs it. Not from two threads at once with the same call. */
QN_API qn_status qn_run(qn_call *call, qn_error *err);
/** Replaces scalar argument i (dtype as prepared) of a call whose bounds do not depend on it. */
QN_API qn_status qn_call_set_scalar(qn_call *call, int i, uint64_t bits, qn_error *err);
/** Frees the call and drops its references. NULL is ignored. */
QN_API void qn_call_release(qn_call *call);

#ifdef __cplusplus
}
#endif
#endif
