/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern.h: the public interface of Quern, a JIT for array kernels.
 *
 * UNITS. Extents, strides, offsets, indices and spans count elements and are int64_t; a name that
 * ends in
 * `_bytes` counts bytes. Rank is 0 to QN_MAX_RANK; rank 0 is a scalar. Index ranges are half open.
 *
 * DIMENSIONS. Dimensions have the order of the indices, in C, C++, kernel text, Python, Lua and
 * Fortran alike: in x[i, j] the index i belongs to dimension 0 and j to dimension 1 (dimensions 1
 * and 2 in Lua and Fortran, which count from 1). Lists with one entry for each dimension, of
 * extents, strides, indices or slices, have this order. Which dimension is contiguous is said by
 * the layout: the last one in a right layout, as in C, and the first one in a left layout, as in
 * Fortran. A list named `order` of dimensions in memory names the fastest one first; the list of
 * qn_layout_permuted is named `longest_first`. An order of loops names the outermost one first.
 *
 * ERRORS. A function that can fail returns a qn_status and takes a `qn_error *` last, which may be
 * NULL. On failure the error holds the status and one line that starts with the name of the
 * function; on success it is not touched. Outputs are written only on success. The library never
 * aborts, exits, prints or raises a signal. The builder is sticky: a failed call returns the inert
 * value {0}, the first error is kept, and only qn_finish reports it.
 *
 * OWNERSHIP. Handles (qn_context, qn_kernel, qn_code, qn_call) are reference counted or
 * single-owner as each function says; every release function accepts NULL, and handles may be
 * released in any order. A qn_view is a plain struct: a C copy is a borrow; qn_view_copy adds a
 * reference and qn_view_release drops one. `const char *` arguments are copied unless the comment
 * says "borrowed".
 *
 * GROWTH. Structs of options start with `bytes`, the size that the caller was compiled with;
 * structs that a function fills are passed with their size. New fields come last. Fields that an
 * older caller lacks are zero; fields that this library does not know must be zero in the structs
 * of a newer caller, otherwise QN_ERR_VERSION is returned. All other structs keep their size within
 * one major version.
 *
 * THREADS. A `const` handle may be used from several threads at once. A builder, a layout and a
 * view struct belong to one thread at a time. A qn_context is safe to use from several threads.
 * Reference counts are atomic. No lock is held while a callback of the host runs. A thread that
 * calls the library needs 32 KiB of stack.
 */
#ifndef QUERN_H
#define QUERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <initializer_list>
namespace quern
{
/** Counts arguments without evaluating them: sizeof(count_of(...)) - 1. Never defined. */
template <class... T> char (&count_of(const T &...))[sizeof...(T) + 1];
} // namespace quern
extern "C" {
#endif

/** Count and array of a list: two arguments of a function. The array lives as long as the call of
 * the function. */
#ifdef __cplusplus
#define QN_LIST(type, ...)                                                                         \
    static_cast<int>(sizeof(quern::count_of(__VA_ARGS__)) - 1),                                    \
        std::initializer_list<type>{__VA_ARGS__}.begin()
#else
#define QN_LIST(type, ...)                                                                         \
    (int)(sizeof((const type[]){{0}, __VA_ARGS__}) / sizeof(type)) - 1,                            \
        (const type[]){{0}, __VA_ARGS__} + 1
#endif
/** Indices of an element: qn_load(b, x, QN_AT(i, j)), qn_store(b, y, QN_AT(i), v), and QN_AT() for
 * rank 0. Any other list of values, too: qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, QN_AT(k)).
 */
#define QN_AT(...) QN_LIST(qn_val, __VA_ARGS__)
/** Arguments of a launch: qn_launch(c, k, QN_ARGS(qn_arg_view(&x), qn_arg_f32(2)), NULL, &err). */
#define QN_ARGS(...) QN_LIST(qn_arg, __VA_ARGS__)
/** Slices, one for each dimension: qn_subview(&v, QN_SLICES(qn_all(), qn_range(2, 8), qn_at(0)),
 * &part, &err). */
#define QN_SLICES(...) QN_LIST(qn_slice, __VA_ARGS__)

#if defined(__GNUC__)
#define QN_API __attribute__((visibility("default")))
#else
#define QN_API
#endif

/** Version of this header. The ABI is stable within one major version; the soname carries the major
 * version. */
#define QN_VERSION_MAJOR 1
#define QN_VERSION_MINOR 0
#define QN_VERSION_PATCH 0
#define QN_VERSION_HEX ((QN_VERSION_MAJOR << 16) | (QN_VERSION_MINOR << 8) | QN_VERSION_PATCH)

/** Version of the library in use, as QN_VERSION_HEX. */
QN_API uint32_t qn_version(void);

/* ------------------------------------------------------------------------------------------------
 * status */

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
    X(ERR_INTERNAL, 33, "internal error")                                                          \
    X(ERR_CUDA, 34, "a call of the CUDA driver failed")                                            \
    X(ERR_CONTEXT_LOST, 35, "the CUDA context is lost")                                            \
    X(ERR_CANCELLED, 36, "cancelled, or out of time")                                              \
    X(ERR_RACE, 37, "iterations race for an element")                                              \
    X(ERR_NAN, 38, "an op made a NaN of numbers")                                                  \
    X(ERR_ASSERT, 39, "an assertion of the kernel failed")

/** What a function returns. 0 is success. */
typedef enum qn_status {
#define QN_X(name, number, text) QN_##name = number,
    QN_STATUS_LIST(QN_X)
#undef QN_X
    QN_STATUS_FORCE_INT = 0x7fffffff
} qn_status;

/** Bytes of a message, terminating zero included. Longer messages are cut. */
#define QN_MESSAGE_BYTES 504

/** An error: status and one line. Plain data of the caller, of fixed size; all-zero is "no error".
 */
typedef struct qn_error {
    int32_t status; /**< a qn_status */
    int32_t line;   /**< line in a kernel text, counted from 1; 0 where there is none */
    char message[QN_MESSAGE_BYTES];
} qn_error;

/** The name of a status, "QN_ERR_BOUNDS"; "QN_ERR_UNKNOWN" for other numbers. Static. */
QN_API const char *qn_status_name(int status);
/** One line saying what a status means. Static. */
QN_API const char *qn_status_text(int status);

/* ------------------------------------------------------------------------------------------------
 * dtypes */

/** An element type: the rows of quern/dtypes.def. A bool is one byte; any non-zero byte reads as
 * true, true is stored as 1. f16 is IEEE binary16, bf16 the upper half of an f32: an op on these
 * computes in f32 and rounds once. c64 and c128 are two f32 or f64. */
typedef enum qn_dtype {
    QN_VOID = 0,
#define QN_DTYPE(NAME, number, ...) QN_##NAME = number,
#include "quern/dtypes.def"
#undef QN_DTYPE
    QN_RECORD = 16, /**< the type is a qn_record */
    QN_N_DTYPES = 2 /* QN_VOID and QN_RECORD */
#define QN_DTYPE(...) +1
#include "quern/dtypes.def"
#undef QN_DTYPE
    ,
    QN_DTYPE_FORCE_INT = 0x7fffffff
} qn_dtype;

/** Bytes of one element; 0 for QN_VOID, QN_RECORD and unknown numbers. */
QN_API int64_t qn_dtype_bytes(int dtype);
/** "f32"; "void" for QN_VOID, "record", and "?" for unknown numbers. Static. */
QN_API const char *qn_dtype_name(int dtype);
/** A value given by its bits, low end first, in another dtype, as qn_cast converts it ("is not
 * zero" from float to bool). 0 for dtypes that are not one number. */
QN_API uint64_t qn_convert_value(int to, int from, uint64_t bits);
/** The dtype of a name, or QN_VOID. */
QN_API qn_dtype qn_dtype_of_name(const char *name);

/* ------------------------------------------------------------------------------------------------
 * layouts and views */

#include "quern/record.h"
#include "quern/layout.h"
#include "quern/view.h"

/* ------------------------------------------------------------------------------------------------
 * building kernels */

#include "quern/builder.h"

/* ------------------------------------------------------------------------------------------------
 * kernels */

/** Reads a kernel from text. err->line is set; the message holds line and column. */
QN_API qn_status qn_kernel_parse(const char *text, size_t text_bytes, qn_kernel **out,
                                 qn_error *err);
/** Prints a kernel. Returns the bytes needed without the zero, as snprintf; parse(print(k)) prints
 * the same again. */
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
/** Describes parameter i, 0 <= i < qn_kernel_n_params(k). `out_bytes` is sizeof *out. */
QN_API qn_status qn_kernel_param(const qn_kernel *k, int i, qn_param_info *out, size_t out_bytes,
                                 qn_error *err);

/* ----------------------------------------------------------------------------------------------
 * functions */

#include "quern/function.h"

/* ------------------------------------------------------------------------------------------------
 * context */

/** Calls fn(arg, i) once for every i in [0, n_chunks), in any order, on any threads, and returns
 * when all are done. Chunks never wait for one another. `max_threads` is a hint, 0 = free. */
typedef void (*qn_parallel_for)(void *pool, int64_t n_chunks, int max_threads,
                                void (*fn)(void *arg, int64_t chunk), void *arg);

#include "quern/observe.h"

/** What the event hook is told. Borrowed for the call. */
typedef struct qn_event {
    size_t bytes;        /**< of the struct as the library fills it */
    int32_t kind;        /**< QN_EVENT_... */
    int32_t reserved;
    const char *kernel;  /**< name */
    const char *text;    /**< reason or specialization; may be NULL */
    double milliseconds; /**< duration, where known */
} qn_event;
/** Kinds of events. */
enum {
    QN_EVENT_COMPILE = 1, /**< a specialization was compiled */
    QN_EVENT_HIT = 2,     /**< a launch found its code */
    QN_EVENT_LAUNCH = 3,  /**< a launch has ended */
    QN_EVENT_FALLBACK =
        4, /**< the interpreter runs instead of code: once per context for what concerns
                all kernels, such as a missing code generator, else once per kernel */
    QN_EVENT_EVICT = 5, /**< a specialization was dropped from the cache */
    QN_EVENT_LOAD = 6   /**< a specialization was found on disk instead of being compiled */
};

/** Functions of the program that give memory of the host for elements of views and for scratch of
 * launches. Both are called on any thread, maybe at the same time, and must not call Quern.
 * `release` may be called after qn_context_release, as long as a view made with the context lives.
 */
typedef struct qn_allocator {
    /** So many bytes, above 0, at a multiple of `alignment`, a power of two from 64 to 2 MiB;
     * contents do not matter. NULL: there are none, and what was asked for fails with
     * QN_ERR_MEMORY. */
    void *(*allocate)(void *arg, size_t n_bytes, size_t alignment);
    /** Takes back what `allocate` gave for these bytes and this alignment. */
    void (*release)(void *arg, void *memory, size_t n_bytes, size_t alignment);
    void *arg; /**< passed to both */
} qn_allocator;

/** Options of a context. All-zero with `bytes` set is the default; environment variables fill only
 * zero fields. */
typedef struct qn_context_options {
    size_t bytes;                 /**< sizeof(qn_context_options) */
    int32_t n_threads;            /**< of the own pool; 0: affinity and cgroup, QUERN_NUM_THREADS */
    int32_t default_executor;     /**< QN_SERIAL (1) or QN_THREADS (2); 0 is QN_SERIAL */
    int64_t cache_bytes; /**< bound of the code cache, all that it knows included; 0 is 64 MiB */
    qn_parallel_for parallel_for; /**< replaces the own pool */
    void *parallel_pool;          /**< passed to parallel_for */
    /** NULL: no events, no clock reads at launches. Called on the threads that launch, and with
     * QN_COMPILE_NOW on a thread of the library, maybe at the same time. It may release the
     * context; qn_context_release waits for a call on that thread. */
    void (*event_hook)(void *arg, const qn_event *e);
    void *event_arg;
    const char
        *provider_path; /**< file of the code generator; NULL: beside libquern, QUERN_PROVIDER */
    int32_t start_provider;    /**< 1: load the code generator in the background now */
    uint32_t dump;             /**< or of QN_DUMP_...; QUERN_DUMP */
    const char *dump_dir;      /**< QUERN_DUMP_DIR; default is the working directory */
    int32_t compile_ms; /**< limit of one compile: processor time, and ten times as long in all; 0
                           is 20000 */
    int32_t cuda_device;       /**< number of the GPU that is meant where no stream is given */
    const char *cuda_driver; /**< file of the CUDA driver; NULL: libcuda.so.1, QUERN_CUDA_DRIVER */
    int32_t default_compile;   /**< QN_COMPILE_...; 0 is QN_COMPILE_WAIT */
    int32_t log_level;         /**< QN_LOG_...; 0: QUERN_VERBOSE, else QN_LOG_WARNING */
    const char *disk_cache; /**< folder of code that is kept on disk, or "off"; NULL: QUERN_CACHE,
                             * else quern in XDG_CACHE_HOME or in ~/.cache (docs/cache.md) */
    int64_t disk_cache_bytes;  /**< bound of all that is in it; 0 is 256 MiB */
    const char *bundle; /**< folder of code that the program ships, read only and looked in first;
                           NULL: none */
    qn_log_hook log;           /**< NULL: with QUERN_VERBOSE=LEVEL standard error, else nobody */
    void *log_arg;             /**< of log */
    const qn_allocator *allocator; /**< of views and launches, copied; NULL: the library's own */
    int64_t data_bytes; /**< bound of what views and scratch take of the host's memory; 0: none */
    int64_t cuda_data_bytes;   /**< bound of what views take in the spaces of GPUs; 0: none */
    int64_t code_bytes;        /**< bound of code alone, as the counter of this name; 0: none */
    int32_t summary; /**< QN_SUMMARY_...; QUERN_SUMMARY=1 is RELEASE, to standard error if there is
                        no log */
    uint32_t symbols;          /**< or of QN_SYMBOLS_...; QUERN_SYMBOLS */
    const char *trace;         /**< file for a trace of what happens when (docs/observing.md); NULL:
                                  QUERN_TRACE, else none */
    const char *kokkos_tools;  /**< library of a tool of Kokkos, or "off"; NULL: KOKKOS_TOOLS_LIBS,
                                  else none */
    const char
        *nvtx;       /**< library of NVTX that gets ranges, or "off"; NULL: QUERN_NVTX, else none */
    int32_t untuned; /**< 1: what qn_tune chose and kept on disk is not used (docs/tuning.md) */
    int32_t reserved;          /**< 0 */
} qn_context_options;

/** Stages that can be dumped and read: X(NAME, bit, text). */
#define QN_DUMP_LIST(X)                                                                            \
    X(KERNEL, 0, "kernel")                                                                         \
    X(KEY, 1, "key")                                                                               \
    X(PLAN, 2, "plan")                                                                             \
    X(LLVM, 3, "llvm")                                                                             \
    X(ASM, 4, "asm")                                                                               \
    X(PTX, 5, "ptx")                                                                               \
    X(SCHEDULE, 6, "schedule")                                                                     \
    X(ESTIMATE, 7, "estimate")
/** QN_DUMP_KERNEL, ...: the stages as bits. */
enum {
#define QN_X(name, bit, text) QN_DUMP_##name = 1 << bit,
    QN_DUMP_LIST(QN_X)
#undef QN_X
    QN_DUMP_NONE = 0
};

/** Makes a context. `o` may be NULL. */
QN_API qn_status qn_context_new(const qn_context_options *o, qn_context **out, qn_error *err);
/** Drops the context; views, functions and calls made from it stay releasable and usable. NULL is
 * ignored. */
QN_API void qn_context_release(qn_context *c);

/** Counters of a context: X(name, text). */
#define QN_COUNTER_LIST(X)                                                                         \
    X(launches, "launches, all engines")                                                           \
    X(hits, "launches whose exact arguments were known")                                           \
    X(misses, "launches that had to look at the arguments")                                        \
    X(compiles, "compilations")                                                                    \
    X(dynamic_compiles, "... of versions with dynamic extents")                                    \
    X(stepped_down, "... of simpler code than was planned, as that would have taken too long")     \
    X(interpreted, "launches run by the interpreter")                                              \
    X(ordered, "launches run in iteration order because views overlap")                            \
    X(faults, "launches that reported bounds or limits")                                           \
    X(evictions, "specializations dropped to stay below the bound")                                \
    X(live_functions, "specializations in the cache")                                              \
    X(code_bytes, "bytes of their code: whole pages, PTX, cubins")                                 \
    X(compile_us, "time spent compiling, microseconds")                                            \
    X(provider_us, "time to load the code generator, microseconds")                                \
    X(disk_hits, "specializations, and cubins, found on disk instead of being made")               \
    X(disk_writes, "... written to disk")                                                          \
    X(disk_refused, "entries on disk that were not to be trusted, and so not used")                \
    X(compile_retries, "compilations begun again with the cheapest plan, as they took too long")   \
    X(cache_bytes, "bytes that count against the bound cache_bytes")                               \
    X(arena_bytes, "bytes mapped for code of processors, used or not")                             \
    X(data_bytes, "bytes of the host's memory that views and running launches have")               \
    X(data_peak_bytes, "the most of it at a time")                                                 \
    X(cuda_data_bytes, "bytes that views have in the spaces of GPUs")                              \
    X(cuda_data_peak_bytes, "the most of it at a time")                                            \
    X(trials, "times that two versions were timed in turns: of a shape, or of scalars")            \
    X(trials_kept, "... and the exact or constant one was faster, and is kept")                    \
    X(planning_us, "of compile_us, what choosing plans took")
/** The counters, by the names of the list; all since the context was made, but live_functions and
 * counts of bytes now. New ones come last. */
typedef struct qn_counters {
#define QN_X(name, text) int64_t name;
    QN_COUNTER_LIST(QN_X)
#undef QN_X
} qn_counters;
/** Reads the counters. `out_bytes` is sizeof *out. NULL arguments are ignored. */
QN_API void qn_context_counters(const qn_context *c, qn_counters *out, size_t out_bytes);
/** Copies lines of the history, newest last, one a compile or step down: kernel, reason,
 * milliseconds. Returns the bytes needed without the zero. */
QN_API size_t qn_context_history(const qn_context *c, char *buffer, size_t buffer_bytes);

/* ------------------------------------------------------------------------------------------------
 * running */

/** Executors. Host executors have finished when a launch returns; QN_CUDA is a stream of a GPU
 * (quern/cuda.h). */
enum { QN_EXECUTOR_DEFAULT = 0, QN_SERIAL = 1, QN_THREADS = 2, QN_CUDA = 3 };
/** Engines. AUTO generates code and falls back to the interpreter where that cannot be. */
enum { QN_ENGINE_AUTO = 0, QN_ENGINE_INTERP = 1, QN_ENGINE_NATIVE = 2 };
/** Bounds policies: report first failure (default), clamp the index to the nearest of its
 * dimension, or none. */
enum { QN_CHECKS_REPORT = 0, QN_CHECKS_CLAMP = 1, QN_CHECKS_NONE = 2 };
/** What atomics of a launch, and atomic views, are atomic against. LAUNCH: the other iterations of
 * the launch, which on one thread takes plain instructions, so no other launch and no thread of the
 * host may touch these elements meanwhile. SHARED: other launches on the host and atomic accesses
 * of its threads, too. On executor QN_CUDA atomics are those of the GPU in both: atomic against all
 * launches on it. */
enum { QN_ATOMICS_LAUNCH = 0, QN_ATOMICS_SHARED = 1 };
/** Which facts become constants. */
enum {
    QN_SPECIALIZE_AUTO = 0,    /**< the context's policy */
    QN_SPECIALIZE_EXACT = 1,   /**< extents, strides and lower bounds */
    QN_SPECIALIZE_DYNAMIC = 2, /**< none of them, but strides from -4 to 4 */
    /** None of them, nor what was proved from them: one version for all extents, strides and lower
     * bounds. Of views whose dimensions have several digits the extents of the digits are
     * constants. */
    QN_SPECIALIZE_GENERIC = 3
};
/** Whether a launch waits for its code. */
enum {
    QN_COMPILE_DEFAULT = 0, /**< as the options of the context say */
    QN_COMPILE_WAIT = 1,    /**< a launch waits for the version of its arguments */
    /** It runs at once in the best version there is: that of its arguments, one with dynamic
     * extents, the generic one, else the interpreter. Better versions are compiled in the
     * background, and launches change over to them. qn_prepare and qn_specialize wait, as does a
     * launch that the interpreter may not run or that would take the interpreter longer than a
     * compile. */
    QN_COMPILE_NOW = 2,
    /** As NOW, but nothing is compiled. QN_ERR_NOT_FOUND where nothing is there and the interpreter
       may not run it. */
    QN_COMPILE_NEVER = 3
};
/** What the interpreter looks for while it runs a kernel, bits of the option `debug`; the engine
 * must be QN_ENGINE_INTERP. */
enum {
    /** Two iterations of parallel dimensions that touch one element, where one writes and not both
     * are atomic: QN_ERR_RACE names both. Steps of sequential dimensions do not race, nor does a
     * launch that runs in iteration order because views overlap. It takes 64 bytes for each granule
     * (mostly an element) of written views that is touched. */
    QN_DEBUG_RACES = 1,
    /** The first op in iteration order that makes a NaN of operands that are none: QN_ERR_NAN names
     * op, operands and iteration. A mathematical function is one op. */
    QN_DEBUG_NAN = 2
};
/** Instruction sets: AUTO is the best the machine has, V3 and V4 are x86-64-v3 and -v4, V4_BYTES is
 * V4 with the AVX-512 instructions for bytes and bits (VBMI, VBMI2, BITALG, VPOPCNTDQ, GFNI) that
 * Ice Lake and Zen 4 have, NEON is Armv8-A (AArch64) with the atomic instructions LSE, the others
 * PTX for NVIDIA GPUs of compute capability 7.0, 7.5, ... and newer. */
enum {
    QN_ISA_AUTO = 0,
    QN_ISA_V3 = 3,
    QN_ISA_V4 = 4,
    QN_ISA_V4_BYTES = 5,
    QN_ISA_NEON = 8,
    QN_ISA_SM70 = 70,
    QN_ISA_SM75 = 75,
    QN_ISA_SM80 = 80,
    QN_ISA_SM86 = 86,
    QN_ISA_SM89 = 89,
    QN_ISA_SM90 = 90
};
/** Loaders of code. */
enum { QN_LOADER_AUTO = 0, QN_LOADER_ARENA = 1, QN_LOADER_ORC = 2 };

/** Plan fields a caller may fix: X(name, text, least, most, names_dim). A field that names a
 * dimension of the domain is 1 + its number. New fields come last. */
#define QN_PLAN_LIST(X)                                                                            \
    X(lane_dim, "the dimension that is vectorized; -1: none, scalar code", -1, QN_MAX_RANK, 1)     \
    X(width, "lanes of one vector, a power of two", 0, 64, 0)                                      \
    X(unroll, "vectors of the lane dimension in one step", 0, 8, 0)                                \
    X(jam_dim, "a second parallel dimension to jam", 0, QN_MAX_RANK, 1)                            \
    X(jam, "its factor", 0, 16, 0)                                                                 \
    X(cross_dim, "a third one to jam, in a register tile whose lanes are a batch", 0, QN_MAX_RANK, \
      1)                                                                                           \
    X(cross, "its factor", 0, 16, 0)                                                               \
    X(streams, "1: non-temporal stores where they can be; -1: none", -1, 1, 0)                     \
    X(transpose, "-1: no dimension is jammed to transpose accesses in registers", -1, 0, 0)        \
    X(pack,                                                                                        \
      "1: a register tile loads from a copy where it can; more: and its rows are copied for so "   \
      "many steps of the jammed dimension, where they are copied; -1: never",                      \
      -1, 65536, 0)                                                                                \
    X(prefetch, "-1: nothing is asked for ahead of time", -1, 0, 0)                                \
    X(team,                                                                                        \
      "on a GPU, who runs an iteration, where the kernel allows it: 1 a thread, 2 a warp, 4 a "    \
      "block",                                                                                     \
      0, 4, 0)                                                                                     \
    X(chunk,                                                                                       \
      "on threads, iterations (those of reductions included) that are worth a chunk of their own", \
      0, INT32_MAX, 0)                                                                             \
    X(strip, "sums of reduces in memory for so many iterations of the lanes; -1: in registers",    \
      -1, 65536, 0)                                                                                \
    X(tile_dim, "a parallel dimension that is walked in cache tiles, outside all other loops", 0,  \
      QN_MAX_RANK, 1)                                                                              \
    X(tile, "about how many of its iterations are one; -1: there are no such tiles", -1,           \
      INT32_MAX, 0)                                                                                \
    X(apart,                                                                                       \
      "lanes 2 to 4 elements apart are loaded and stored 1: one by one, -1: in vectors under "     \
      "masks",                                                                                     \
      -1, 1, 0)                                                                                    \
    X(poll,                                                                                        \
      "instructions of an inner loop after which it looks whether it is cancelled; -1: no loop "   \
      "ever does",                                                                                 \
      -1, INT32_MAX, 0)                                                                            \
    X(distribute,                                                                                  \
      "-1: one function: a reduce that many iterations share is computed in each of them, and no " \
      "dimension is cut into sections",                                                            \
      -1, 0, 0)                                                                                    \
    X(block, "iterations for which such reduces are computed before those that share them", 0,     \
      4096, 0)
/** The plan fields, by the names of the list. All-zero with `bytes` set is the default: 0 leaves a
 * field to the planner. */
typedef struct qn_plan_options {
    size_t bytes;               /**< sizeof(qn_plan_options) */
    int32_t order[QN_MAX_RANK]; /**< 1 + dimension numbers, outermost first; all zero: planner's
                                   choice */
#define QN_X(name, text, least, most, names_dim) int32_t name;
    QN_PLAN_LIST(QN_X)
#undef QN_X
} qn_plan_options;

enum { QN_MOST_PINS = 256 };

/** A line that a kernel printed. What the pointers name is for the call only. */
typedef struct qn_printed {
    const char *text; /**< the line, without an end of line: "message: 1, 2.5; iteration (3,4)" */
    const char
        *message;   /**< of qn_print; NULL in the last line of a launch whose lines were too many */
    int64_t n_lost; /**< of such a last line: how many lines were not kept; else 0 */
    int32_t n_values;     /**< that are printed */
    int32_t n_indices;    /**< of the iteration */
    int32_t n_points;     /**< dimensions of the reduces around it */
    const int32_t *dtype; /**< [n_values] */
    const uint64_t *bits; /**< [n_values]; as in qn_arg, but a complex number is two values */
    const int64_t
        *index; /**< [n_indices]: of the parallel and sequential dimensions, as declared */
    const int64_t
        *point; /**< [n_points]: of the dimensions of the reduces around it, as declared */
} qn_printed;

/** Options of a specialization or launch. All-zero with `bytes` set is the default; NULL too. What
 * the pointers name is borrowed for the call. */
typedef struct qn_options {
    size_t bytes;       /**< sizeof(qn_options) */
    int32_t engine;     /**< QN_ENGINE_... */
    int32_t executor;   /**< QN_SERIAL, ...; 0 is that of the context, which is serial unless it was
                           made with another default_executor: nothing runs on threads unasked */
    int32_t checks;     /**< QN_CHECKS_... */
    int32_t specialize; /**< QN_SPECIALIZE_... */
    int32_t isa;        /**< QN_ISA_... */
    int32_t loader;     /**< QN_LOADER_... */
    int32_t strict;     /**< 1: overlapping views are QN_ERR_OVERLAP instead of run in order; a
                           dimension whose begin is above its end is QN_ERR_RANGE, not empty */
    int32_t max_threads; /**< of this launch; 0 = free */
    int32_t constant_scalars; /**< 1: scalar arguments become constants of the code */
    int32_t must_generate; /**< 1: where code cannot be had, an error instead of the interpreter */
    int32_t atomics;          /**< QN_ATOMICS_... */
    int32_t compile;          /**< QN_COMPILE_... */
    qn_stream
        *stream; /**< executor QN_CUDA: where it runs; NULL: the context's stream; else NULL */
    const qn_plan_options *plan; /**< NULL: the planner decides everything */
    /** NULL, or a word of the caller's: another thread or a signal handler cancels the launch by
     * storing a number that is not 0. A launch on the host then returns QN_ERR_CANCELLED within 50
     * ms, also while code is generated for it; elements that it would have written are written or
     * not. The word is read as a relaxed atomic and never written; it orders nothing else. A launch
     * that finds it set does not start. qn_prepare: it must live as long as the call, and cancels
     * its runs. Work in a stream of a GPU is not cancelled once it is given. */
    const volatile int32_t *cancel;
    int64_t timeout_ns; /**< 0, or cancels the launch after so many nanoseconds, each run of a
                           prepared call too */
    /** NULL, or a function of the caller's that cancels the launch, as `cancel` does, by returning
     * a number that is not 0. It is called with `cancel_arg` every 4 ms or so while a launch on the
     * host, or a compile that it waits for, is under way; a launch that ends sooner does not call
     * it. The caller is a thread of the context, one for all its launches, and never calls after
     * the launch has returned. The function must return soon, as time limits wait for it, must call
     * nothing of Quern, and must not wait for the thread that launches. qn_prepare: it is called
     * for each run, too. */
    int32_t (*cancel_hook)(void *arg);
    void *cancel_arg; /**< of cancel_hook */
    int32_t debug;    /**< or of QN_DEBUG_...: what the interpreter looks for */
    int32_t n_pins;   /**< 0 to QN_MOST_PINS */
    const qn_fact_pin *pins; /**< [n_pins] */
    /** NULL, or a function of the caller's that gets the lines that the kernel prints, in iteration
     * order; inside an iteration, in the order of the points of reduces and of the program. It is
     * called before qn_launch returns, on its thread, also after a failure; a GPU is waited for. A
     * kernel that prints runs one iteration after the other on one thread; other kernels run as
     * ever. A call of qn_prepare gives the lines of each qn_run in the same way. */
    void (*print)(void *arg, const qn_printed *line);
    void *print_arg;     /**< of print */
    int64_t print_lines; /**< the first lines that are kept for `print`; 0: QN_PRINT_LINES */
    /** NULL, or the text of a schedule for the kernel (docs/schedule-text.md): the loops, buffers
     * and accesses that generated code has, instead of those that the planner would choose; or
     * "planned { STEPS }", steps on the schedule of the plan, or "declared { STEPS }", steps on a
     * loop for each dimension of the kernel, as declared. It is a request for the facts of these
     * arguments, so that QN_SPECIALIZE_AUTO is EXACT and QN_COMPILE_NOW is WAIT. The launch fails
     * if the schedule is refused: QN_ERR_PARSE, QN_ERR_ARGUMENT if the schedule is none of this
     * kernel and these facts, QN_ERR_LIMIT if its code would be too large, QN_ERR_UNSUPPORTED.
     * Results never depend on a schedule. The interpreter does not read the text, nor does a launch
     * with `print`. A text is at most QN_MAX_SCHEDULE_BYTES long, without its end. qn_prepare
     * copies the text. */
    const char *schedule;
} qn_options;

/** The longest text of qn_options.schedule. */
enum { QN_MAX_SCHEDULE_BYTES = 65536 };

/** qn_options.print_lines where that is 0, and the most. */
enum { QN_PRINT_LINES = 1000, QN_MAX_PRINT_LINES = 1000000 };

/**
 * Runs a kernel. What is checked, before anything runs: number, kind and dtype of arguments, rank,
 * data, alignment, space, traits, layout (offsets fit, written layouts injective), overlap. Then
 * the kernel runs on the executor; a first access out of bounds is returned as QN_ERR_BOUNDS with
 * kernel, view label, argument, dimension, indices and extents; outputs are then defined but
 * unspecified. Overlapping views that could carry a dependence run in iteration order.
 */
QN_API qn_status qn_launch(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                           const qn_options *o, qn_error *err);

/** A specialization: code for the facts of some arguments. Counted. */
typedef struct qn_code qn_code;
/** Specializes without running; *out holds one reference. */
QN_API qn_status qn_specialize(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                               const qn_options *o, qn_code **out, qn_error *err);
/** Drops a reference. NULL is ignored. */
QN_API void qn_code_release(qn_code *f);
/** Text of one stage (QN_DUMP_...): copies up to buffer_bytes and returns the bytes needed without
 * the zero; 0 if the stage does not exist. LLVM and ASM texts are generated on demand by compiling
 * again. */
QN_API size_t qn_code_text(const qn_code *f, int stage, char *buffer, size_t buffer_bytes);

/** Says in words what qn_launch would do with these arguments: lines "kernel:", "version:" (of the
 * one that is wanted, if that is not in memory), "runs:", "why:" (the reason for which that version
 * was made) and "faster:" (what a caller could change). Copies up to buffer_bytes, with a zero, and
 * sets *needed, which may be NULL, to the bytes of the whole without the zero. Errors are those of
 *  qn_launch before anything runs. Changes nothing: no version is made, nothing is learned.
 * Thread-safe. */
QN_API qn_status qn_explain(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                            const qn_options *o, char *buffer, size_t buffer_bytes, size_t *needed,
                            qn_error *err);

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
