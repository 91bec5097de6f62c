/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/observe.h: what a context tells of what it does. Included by quern.h; docs/observing.md is
 * the guide.
 *
 * Everything here is off by default and then costs nothing: fields of qn_context_options, or
 * environment variables, turn it on when a context is made.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_OBSERVE_H)
#define QUERN_OBSERVE_H

/** Levels of the log: X(NAME, number, text). A context tells what is of its level or below. */
#define QN_LOG_LIST(X)                                                                             \
    X(WARNING, 1, "what makes launches slow, and what could not be used")                          \
    X(INFO, 2, "what is compiled or found on disk, and why")                                       \
    X(DETAIL, 3, "what is dropped from the cache")
/** QN_LOG_WARNING, ... */
enum {
#define QN_X(name, number, text) QN_LOG_##name = number,
    QN_LOG_LIST(QN_X)
#undef QN_X
    QN_LOG_NONE = 0
};

/** Is told a line of the log, without a line break; `line` is borrowed for the call. It is called
 * on the threads that launch or release, and with QN_COMPILE_NOW on a thread of the library, maybe
 * at the same time, and no lock is held. */
typedef void (*qn_log_hook)(void *arg, int32_t level, const char *line);

/* ---------------------------------------------------------------- what kernels did */

/** What one launch of a kernel moves and computes, as its text says. */
typedef struct qn_work {
    int64_t bytes; /**< of the distinct elements of views read, plus those of views written */
    int64_t flops; /**< floating-point operations of the body (an fma is two) at all points; -1 if
                      the body has if, for or while */
} qn_work;
/** Fills *out for arguments of a launch. `out_bytes` is sizeof *out. Views need data. */
QN_API qn_status qn_kernel_work(const qn_kernel *k, int n, const qn_arg *args, qn_work *out,
                                size_t out_bytes, qn_error *err);

/** What the processor can do at most, as measured; 0: not known. */
typedef struct qn_peaks {
    double gigabytes;  /**< a second, of memory */
    double gigaflops;  /**< a second, of f64 */
} qn_peaks;
/** Measures both on an executor, with max_threads threads (0: all), by kernels of this library that
 * run for about 0.3 s in all. Memory: a = b + s*c, 256 MiB. Arithmetic: fma of vectors. */
QN_API qn_status qn_measure_peaks(qn_context *c, int executor, int max_threads, qn_peaks *out,
                                  size_t out_bytes, qn_error *err);

/** Values of the option `summary` of a context. */
enum {
    QN_SUMMARY_OFF = 0,
    QN_SUMMARY_COUNT = 1, /**< launches are timed and counted by kernel, for qn_context_summary and
                             qn_context_kernel */
    QN_SUMMARY_RELEASE =
        2, /**< and the summary is told to the log, at any level, when the context is released */
    QN_SUMMARY_LAST = QN_SUMMARY_RELEASE
};
/** Counters of a kernel: X(name, text). New ones come last. */
#define QN_KERNEL_COUNTER_LIST(X)                                                                  \
    X(launches, "launches, all engines")                                                           \
    X(hits, "launches whose arguments were known")                                                 \
    X(interpreted, "launches run by the interpreter")                                              \
    X(versions, "versions compiled")                                                               \
    X(found, "versions found on disk")                                                             \
    X(compile_ns, "time spent compiling them")                                                     \
    X(run_ns, "time of all launches; of those on a GPU until they were given to it")               \
    X(timed_ns, "time of launches on the host, and of those that are done on a GPU: the next two " \
                "count these")                                                                     \
    X(bytes, "bytes as qn_kernel_work counts them")                                                \
    X(flops, "floating-point operations likewise; -1 if those of a launch are not known")          \
    X(on_gpu, "launches on a GPU")
typedef struct qn_kernel_counters {
#define QN_X(name, text) int64_t name;
    QN_KERNEL_COUNTER_LIST(QN_X)
#undef QN_X
} qn_kernel_counters;
/** Reads the counters of the kernel of this text, by any handle. QN_ERR_NOT_FOUND if it was not
 * launched, or the context does not count. `out_bytes` is sizeof *out. */
QN_API qn_status qn_context_kernel(const qn_context *c, const qn_kernel *k, qn_kernel_counters *out,
                                   size_t out_bytes, qn_error *err);
/** Copies a table of the kernels, the one that took most time first; with `peaks`, which may be
 * NULL, also the share of them. Returns the bytes needed without the zero; 0 if the context does
 * not count. */
QN_API size_t qn_context_summary(const qn_context *c, const qn_peaks *peaks, char *buffer,
                                 size_t buffer_bytes);

/* ---------------------------------------------------------------- where code is */

/** Who is told where code is and what it is called: X(NAME, bit, text). */
#define QN_SYMBOLS_LIST(X)                                                                         \
    X(PERF_MAP, 0, "perf_map") /* a line in /tmp/perf-PID.map */                                   \
    X(JITDUMP, 1, "jitdump")   /* jit-PID.dump in dump_dir, for perf inject --jit */              \
    X(GDB, 2, "gdb")           /* GDB, with lines of texts in dump_dir; no code from disk then */
/** QN_SYMBOLS_PERF_MAP, ...: as bits. */
enum {
#define QN_X(name, bit, text) QN_SYMBOLS_##name = 1 << bit,
    QN_SYMBOLS_LIST(QN_X)
#undef QN_X
    QN_SYMBOLS_NONE = 0
};

#endif
