/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h: versions that are made because launches may be worth them. There are two kinds of
 * trials: a shape that comes back to a kernel whose versions have become dynamic may get its exact
 * version, and scalars that never changed may become constants. What has taken long enough in its
 * usual version gets the special one in the background; then launches run both in turns and are
 * timed, and the special one stays only if it is faster. What is kept of trials is bounded: where
 * there are more, the one that was not met longest is forgotten. Times are taken only for what is
 * not decided: by the clock of the host, and on a GPU by events of the driver.
 */
#ifndef QN_RUNTIME_TRIAL_H
#define QN_RUNTIME_TRIAL_H

#include "ir/ir.h"

struct qn_context;
struct qn_known_kernel;
struct qn_launch_state;
struct qn_code;
struct qn_policy;

enum { QN_TRIALS = 64 }; /* of a kernel that are known at a time */
enum { QN_TRIAL_PAIRS = 8 }; /* of times that are compared */

/** What the special version is: the exact one of a shape, or one whose scalars are constants. */
enum { QN_TRIAL_OF_SHAPE, QN_TRIAL_OF_SCALARS, QN_TRIAL_KINDS };

/** Where a trial stands. */
enum {
    QN_TRIAL_NEW,     /* runs the usual version, whose time is added up */
    QN_TRIAL_DUE,     /* has taken long enough: the next launch orders the special version */
    QN_TRIAL_ORDERED, /* that is being built */
    QN_TRIAL_TURNS,   /* both are there and run in turns */
    QN_TRIAL_SPECIAL, /* decided: the special version */
    QN_TRIAL_VAIN,    /* decided: the usual one; the special one is to be dropped */
    QN_TRIAL_USUAL    /* decided: the usual one */
};

typedef struct qn_trial {
    uint64_t name; /* a hash of shape or version, and options, even and not 0; 0: free */
    uint64_t last_use;
    int64_t spent_ns;     /* in the usual version */
    int64_t recording_ns; /* the least that it took of a launch beside the time of that */
    int64_t n_iterations; /* of the launch that was given last in turns */
    int64_t least_ns[2];  /* of a launch of the usual version, and of the special one */
    int32_t n_given[2];   /* launches in turns; */
    int32_t n_timed[2];   /* those whose times are known, which on a GPU are fewer */
    float ns[2][QN_TRIAL_PAIRS];
    uint32_t constants[2]; /* of a trial of scalars: which */
    int32_t kind, state;
} qn_trial;

/** What a kernel has learned of its shapes; part of qn_known_kernel. */
typedef struct qn_trials {
    qn_trial *of;          /* [QN_TRIALS]; NULL: none yet */
    uint64_t has_exact[4]; /* a set of hashes of shapes that may have an exact version: bits */
    int64_t compile_ns;    /* of the last exact version that was compiled; 0: none was */
    int n_tried[QN_TRIAL_KINDS];  /* trials that were decided */
    double saved[QN_TRIAL_KINDS]; /* the sum of the parts of the time that they saved */
} qn_trials;

/** Notes that there will be an exact version for the arguments of a launch. The lock is held. */
void qn__trial_has_exact(struct qn_known_kernel *known, const struct qn_launch_state *l);
/** Of a launch whose policy is dynamic: *out becomes its exact version, with a reference, if that
 * is known to be better or is to be timed; else NULL. Says in the state what is to be timed. */
qn_status qn__trial_choose(struct qn_launch_state *l, struct qn_code **out, qn_error *err);
/** Of a launch whose version under policy `usual` is *f: *f becomes the version in which scalars
 * that never changed are constants, if that is known to be better or is to be timed, and the state
 * of the launch says which scalars those are. The other reference is given up, or, for qn_prepare,
 * is in the state. */
qn_status qn__trial_scalars(struct qn_launch_state *l, const struct qn_policy *usual,
                            struct qn_code **f, qn_error *err);
/** Whether the launch of a version runs the one with constant scalars instead, because that was
 * faster: which scalars. */
bool qn__trial_has_constants(const struct qn_launch_state *l, const struct qn_code *f,
                             uint32_t constants[2]);
/** Takes the time of a launch, which stands for n launches: `name` as the state of the launch said
 * it. Less than 0: there is none. before_ns: what the trial took of the caller before that time
 * began. The lock is not held. */
void qn__trial_record(struct qn_context *c, const qn_kernel *k, uint64_t name, int64_t ns, int n,
                      int64_t before_ns);
/** Says where trials of a launch stand, for qn_explain; f: its usual version, or NULL. The lock is
 * not held. */
void qn__trial_print(const struct qn_launch_state *l, const struct qn_code *f, qn_text *out);

#endif
