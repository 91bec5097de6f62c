/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h: shapes that come back to a kernel whose versions have become dynamic. A shape that has
 * taken long enough gets its exact version in the background; then launches run both in turns and
 * are timed, and the exact one stays only if it is faster. What is kept of shapes is bounded: where
 * there are more, the one that was not met longest is forgotten. Clocks are read only for shapes
 * that are not decided.
 */
#ifndef QN_RUNTIME_TRIAL_H
#define QN_RUNTIME_TRIAL_H

#include "ir/ir.h"

struct qn_context;
struct qn_known_kernel;
struct qn_launch_state;
struct qn_code;

enum { QN_TRIALS = 64 }; /* shapes of a kernel that are known at a time */

/** Where a shape stands. */
enum {
    QN_TRIAL_NEW,     /* runs the dynamic version, whose time is added up */
    QN_TRIAL_DUE,     /* has taken long enough: the next launch orders the exact version */
    QN_TRIAL_ORDERED, /* that is being built */
    QN_TRIAL_TURNS,   /* both are there and run in turns */
    QN_TRIAL_EXACT,   /* decided: the exact version */
    QN_TRIAL_VAIN,    /* decided: the dynamic one; the exact one is to be dropped */
    QN_TRIAL_DYNAMIC  /* decided: the dynamic one */
};

typedef struct qn_trial {
    uint64_t name; /* a hash of shape and options, even and not 0; 0: free */
    uint64_t last_use;
    int64_t spent_ns;    /* in the dynamic version */
    int64_t least_ns[2]; /* of a launch of the dynamic version, and of the exact one */
    int32_t n_timed[2];
    int32_t n_wins;   /* turns in which the exact version was faster */
    int64_t first_ns; /* of the dynamic version in this turn */
    int32_t state;
} qn_trial;

/** What a kernel has learned of its shapes; part of qn_known_kernel. */
typedef struct qn_trials {
    qn_trial *of;          /* [QN_TRIALS]; NULL: none yet */
    uint64_t has_exact[4]; /* a set of hashes of shapes that may have an exact version: bits */
    int64_t compile_ns;    /* of the last exact version that was compiled; 0: none was */
    int64_t recording_ns;  /* the least that taking the time of a launch took */
    int n_tried;           /* trials that were decided */
    double saved;          /* the sum of the parts of the time that they saved */
} qn_trials;

/** Notes that there will be an exact version for the arguments of a launch. The lock is held. */
void qn__trial_has_exact(struct qn_known_kernel *known, const struct qn_launch_state *l);
/** Of a launch whose policy is dynamic: *out becomes its exact version, with a reference, if that
 * is known to be better or is to be timed; else NULL. Says in the state what is to be timed. */
qn_status qn__trial_choose(struct qn_launch_state *l, struct qn_code **out, qn_error *err);
/** Takes the time of a launch: `name` as the state of the launch said it. The lock is not held. */
void qn__trial_record(struct qn_context *c, const qn_kernel *k, uint64_t name, int64_t ns);
/** Says where the shape of a launch stands, for qn_explain. The lock is not held. */
void qn__trial_print(const struct qn_launch_state *l, qn_text *out);

#endif
