/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * tune.h: choosing how a kernel is walked by measuring (docs/tuning.md). The planner's choice is
 * measured against others on the arguments of the caller; the fastest whose results are those of
 * the interpreter is kept in the cache on disk, and code that contexts make of that kernel for such
 * arguments follows it from then on.
 */
#ifndef QUERN_TUNE_H
#define QUERN_TUNE_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What became of a candidate: X(NAME, number, text). */
#define QN_TUNE_STATE_LIST(X)                                                                      \
    X(MEASURED, 0, "measured")                                                                     \
    X(SAME, 1, "same")       /* its code is that of a candidate before */                          \
    X(SLOW, 2, "slow")       /* its first run took so long that it was not measured */             \
    X(REFUSED, 3, "refused") /* no code is made of it */                                           \
    X(WRONG, 4, "wrong")     /* its results are others: a defect of this library */
/** QN_TUNE_MEASURED, ... */
enum {
#define QN_X(name, number, text) QN_TUNE_##name = number,
    QN_TUNE_STATE_LIST(QN_X)
#undef QN_X
    QN_N_TUNE_STATES
};
/** "measured", ...; "?" for other numbers. */
QN_API const char *qn_tune_state_name(int state);

/** A candidate that was tried. What the pointers name is for the call only. */
typedef struct qn_tune_candidate {
    size_t bytes;       /**< what the library filled: sizeof(qn_tune_candidate) of its version */
    int32_t number;     /**< 0: the planner's choice */
    int32_t state;      /**< QN_TUNE_... */
    const char *choice; /**< words for qn_options_parse; "": the planner's choice */
    const char *why;    /**< why it was refused or is wrong; else NULL */
    double ns;          /**< of one run, a median; 0: it was not measured */
    double planned_ns;  /**< of the planner's choice in the same turns; 0 likewise */
    double seconds;     /**< since qn_tune began */
} qn_tune_candidate;

/** Options of qn_tune. All-zero with `bytes` set is the default; NULL too. */
typedef struct qn_tune_options {
    size_t bytes;            /**< sizeof(qn_tune_options) */
    double seconds;          /**< for all of it, about; 0: 10 */
    int32_t most_candidates; /**< 0: QN_TUNE_USUAL_CANDIDATES; at most QN_TUNE_MOST_CANDIDATES */
    int32_t keeps_nothing;   /**< 1: nothing is written on disk */
    /** NULL, or a function that is told of each candidate, on the thread of the call. If it returns
     * a number that is not 0, no other candidate is tried. It must call nothing of Quern. */
    int32_t (*progress)(void *arg, const qn_tune_candidate *c);
    void *progress_arg;  /**< passed to progress */
    char *choice;        /**< NULL, or where words of the best choice are copied to, with a zero */
    size_t choice_bytes; /**< room there */
} qn_tune_options;
enum { QN_TUNE_USUAL_CANDIDATES = 256, QN_TUNE_MOST_CANDIDATES = 1000 };

/** What the results of candidates were compared with. */
enum {
    QN_TUNE_WITH_INTERPRETER = 1, /**< all elements with those of the interpreter */
    /** All elements with those of the planner's choice: the interpreter takes too long, or the
     * launches are those of a GPU. Where each
     * element is stored once, those that it wrote in its time were compared with it. */
    QN_TUNE_WITH_PLANNED = 2
};

/** What qn_tune found. */
typedef struct qn_tune_result {
    double planned_ns;    /**< of one run, a median, of the planner's choice */
    double best_ns;       /**< ... and of the best one, which may be the planner's */
    double gain;          /**< median of the quotients of both in turns; 1: the planner's is kept */
    double seconds;       /**< that it took */
    int64_t choice_bytes; /**< of the words of the best choice, without a zero; 0: the planner's */
    int32_t n_candidates; /**< that were tried, the planner's included */
    int32_t n_measured;   /**< of these */
    int32_t n_refused;    /**< of these */
    int32_t n_wrong;      /**< of these */
    int32_t compared;                       /**< QN_TUNE_WITH_... */
    int32_t is_kept;                        /**< 1: the outcome is in the cache on disk */
} qn_tune_result;

/**
 * Tunes a kernel for arguments and options of a launch, on the host or on a GPU (QN_CUDA), where
 * work of other streams disturbs the times. QN_SPECIALIZE_AUTO is EXACT;
 * options `plan`, `schedule`, `print` and `debug` must be zero. Runs are made on the arguments
 * themselves, so that addresses and contents are the real ones; the bytes from the first element to
 * the last of each array that the kernel writes are put back before qn_tune returns, whatever
 * happens, and nobody else may use them meanwhile. It takes twice their memory.
 *
 * `out` is filled if the call succeeds; `out_bytes` is sizeof *out. `t` may be NULL. Errors: those
 * of qn_launch; QN_ERR_CANCELLED by the flag, the hook or timeout_ns of the options;
 * QN_ERR_UNSUPPORTED for kernels that print, arguments that are members of a MultiView, and
 * results that differ from run to run, as sums of floats by atomics do; QN_ERR_INTERNAL where the
 * planner's choice has other results than the interpreter. That nothing can be written on disk is
 * no error. Thread-safe, as a launch is, but other work on the machine disturbs the times.
 */
QN_API qn_status qn_tune(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                         const qn_options *o, const qn_tune_options *t, qn_tune_result *out,
                         size_t out_bytes, qn_error *err);

#ifdef __cplusplus
}
#endif

#endif
