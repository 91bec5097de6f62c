/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h: what the files of the tuner share.
 *
 * tune.c          the search: candidates in order, under a budget of time; what is kept
 * tune_time.c     running candidates: in turns with the planner's choice
 * tune_changes.c  what is tried: fields of the plan and steps on the planner's schedule
 * tune_memory.c   what a kernel writes: saved, compared, put back
 */
#ifndef QN_RUNTIME_TUNE_H
#define QN_RUNTIME_TUNE_H

#include "quern/tune.h"
#include "runtime/launch.h"

/* ---------------------------------------------------------------- tune_memory.c */

/** Bytes that a kernel may write: arrays that overlap are one block. */
typedef struct qn_tune_block {
    char *at; /* on a GPU: what no host reads */
    size_t n;
    int space;               /* of the view */
    char *now;               /* what is compared: `at`, or a copy of it */
    char *before, *expected; /* copies; `expected` is filled by qn__tune_expect */
} qn_tune_block;
typedef struct qn_tune_memory {
    const qn_kernel *kernel; /* borrowed, as are the arguments */
    const qn_arg *args;
    qn_context *context; /* borrowed */
    qn_stream *stream;   /* borrowed; NULL: the memory is the host's */
    int n_args, n_blocks;
    bool is_saved;    /* there are copies of all blocks */
    bool is_in_place; /* the kernel reads elements that it may write */
    qn_tune_block block[QN_MAX_PARAMS];
} qn_tune_memory;

/** Copies what a kernel may write of checked arguments; memory of a GPU by the stream that is set,
 * with the context: other fields are set. qn__tune_release ends it, also if that fails. */
qn_status qn__tune_save(qn_tune_memory *m, const char *who, const qn_kernel *k, int n,
                        const qn_arg *args, qn_error *err);
qn_status qn__tune_restore(const qn_tune_memory *m, qn_error *err);
/** Waits for the stream, if there is one, and makes `now` what is there. */
qn_status qn__tune_fetch(const qn_tune_memory *m, qn_error *err);
/** What was fetched is what is expected. */
void qn__tune_expect(const qn_tune_memory *m);
/** Whether what is there now is that, but for the bits of NaNs, which are free; else `why` says
 * where it differs. */
bool qn__tune_is_expected(const qn_tune_memory *m, qn_error *why);
/** Whether that holds of those elements that differ from what was there before: a run that was
 * stopped wrote them. One element of a block may be another: its iteration was stopped. */
bool qn__tune_is_begun(const qn_tune_memory *m, qn_error *why);
void qn__tune_release(qn_tune_memory *m);

/* ---------------------------------------------------------------- tune_changes.c */

enum { QN_TUNE_STEPS_BYTES = 384, QN_TUNE_MOST_CHANGES = 256 };
/** A candidate: fields of the plan, and steps on the schedule of that plan, or on the kernel as
 * declared, or "". */
typedef struct qn_tune_choice {
    qn_plan_options plan;
    bool is_declared;
    char steps[QN_TUNE_STEPS_BYTES];
} qn_tune_choice;
/** Where a kernel is tuned: on one thread, on several, on a GPU. */
enum { QN_TUNE_OF_ALL = 1, QN_TUNE_OF_THREADS = 2, QN_TUNE_OF_GPU = 4 };
/** What may be changed of any choice for a kernel, of: one of these, in the order in which it is
 * tried. Returns how many there are. */
int qn__tune_changes(const qn_kernel *k, int of, qn_tune_choice out[QN_TUNE_MOST_CHANGES]);
/** `base` with a change: fields that it has go before those of the base, its steps follow. Steps
 * that are too long are cut, and then refused. */
qn_tune_choice qn__tune_change(const qn_tune_choice *base, const qn_tune_choice *change);
/** Appends the text of the schedule of a choice that has steps. */
void qn__tune_schedule(const qn_tune_choice *choice, qn_text *out);
bool qn__tune_is_same_choice(const qn_tune_choice *a, const qn_tune_choice *b);
/** Appends words for qn_options_parse. */
void qn__tune_print(const qn_tune_choice *choice, qn_text *out);

/* ---------------------------------------------------------------- tune.c, tune_time.c */

/** What tests do between a run and its comparison; NULL: nothing. `number` is the candidate's. */
typedef struct qn_tune_hook {
    void (*after_run)(void *arg, int number);
    void *arg;
} qn_tune_hook;
qn_status qn__tune(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                   const qn_options *o, const qn_tune_options *t, const qn_tune_hook *hook,
                   qn_tune_result *out, qn_error *err);

/** A candidate with code. */
typedef struct qn_tune_tried {
    qn_tune_choice choice;
    qn_call *call;
    double gain;  /* median of the quotients: time of the planner's choice by that of this one */
    double least; /* their lower quartile */
    double ns, planned_ns; /* medians */
} qn_tune_tried;

/** Something that is timed. */
typedef struct qn_tune_clock {
    const qn_tune_memory *memory;
    qn_call *planned;
    int64_t n_runs; /* of a sample */
    int64_t end_ns; /* no turn begins after that */
} qn_tune_clock;
/** Finds how many runs a sample must have for the clock. */
qn_status qn__tune_set_clock(qn_tune_clock *c, qn_error *err);
enum { QN_TUNE_MOST_TURNS = 41 };
/** Runs candidates in turns with the planner's choice, most_turns times, or until the end of the
 * clock, and sets their figures; *n_turns says how many were made. Candidates that are far slower
 * are given up after few turns. */
qn_status qn__tune_turns(const qn_tune_clock *c, qn_tune_tried *const *tried, int n, int most_turns,
                         int *n_turns, qn_error *err);

#endif
