/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.h: versions of a kernel for launches that must not wait for their code (option compile), and
 * the steps that they share with those that wait.
 */
#ifndef QN_RUNTIME_TIER_H
#define QN_RUNTIME_TIER_H

#include "runtime/launch.h"

/** Whether a launch waits for its code; `may_interpret`: whether the interpreter may run it. */
bool qn__tier_waits(const qn_launch_state *l, bool may_interpret);
/** Of a launch that does not wait: the best version that is there, or NULL for the interpreter.
 * Orders better ones. Says in the state whether the choice is provisional. Fails where nothing is
 * there and the interpreter may not run it. */
qn_status qn__tier_find(qn_launch_state *l, bool may_interpret, qn_code **out, qn_error *err);

/** Where no code can be made for any kernel: the best version that is there, such as a generic one
 * in a bundle; else NULL. The caller left the choice of versions open, else there is none but the
 * one that could not be made. */
qn_code *qn__tier_find_any(qn_launch_state *l);

/** A version of this policy that is ready, or NULL; with `may_order` it is ordered if it is not
 * known. */
qn_status qn__tier_look(qn_launch_state *l, const qn_policy *policy, bool may_order, qn_code **out,
                        qn_error *err);
/** Whether a launch that the interpreter would run waits after all, as that would take longer than
 * compiling. */
bool qn__tier_is_too_long(const qn_launch_state *l);

/** Whether a version under this policy serves other shapes, too. */
static inline bool qn__is_dynamic_policy(const qn_policy *p)
{
    return p->is_generic || p->all_dynamic || p->dynamic_extents;
}

/* In specialize.c: */

/** Facts and key under a policy. */
qn_status qn__version_key(qn_launch_state *l, const qn_policy *policy, qn_facts *facts,
                          qn_text *key, qn_error *err);
/** What the caller asked for, or the policy of the context would make; `learned` is the
 * memory of what it points to. With `may_learn` the arguments are noted as met. */
qn_policy qn__version_policy(qn_launch_state *l, bool may_learn, qn_learned *learned);
/** Notes why a version is made, and for which arguments, if that is not noted yet. The lock is
 * held. */
void qn__version_order(const qn_launch_state *l, qn_code *f, bool is_dynamic);
/** Why no code can be generated for this launch at all; QN_OK where nothing is in the way. */
qn_status qn__version_check_target(const qn_launch_state *l, qn_error *err);
/** Generates the code of a function that stands in the cache as being built. */
qn_status qn__version_build(qn_launch_state *l, qn_code *f, bool is_dynamic, qn_error *err);
/** Takes the code of a function that stands in the cache as being built from disk; false if it is
 * not there, and then the function is still being built. The lock is not held. */
bool qn__version_load(qn_launch_state *l, qn_code *f, bool is_dynamic);
/** Notes that a kernel is interpreted, and why. */
void qn__version_note_failure(const qn_launch_state *l, const qn_error *error);
/** Gives up a function that stands in the cache as being built. The lock is held. */
void qn__version_drop(qn_code *f);

#endif
