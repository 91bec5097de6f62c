/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.h: what tuning chose (tune.c), in the cache on disk. A choice is found by kernel, key and
 * processor, as code is, and is the key that the code is made of instead: the same facts with plan
 * options or a schedule in them. Contexts look once for each version that they make.
 */
#ifndef QN_RUNTIME_CHOICE_H
#define QN_RUNTIME_CHOICE_H

#include "runtime/context.h"

/** What tuning found for a kernel and a key. All is borrowed. */
typedef struct qn_tuned {
    const qn_kernel *kernel;
    const qn_text *key;    /* of the launch */
    const qn_text *chosen; /* of the code: as `key` if the planner's choice is the best */
    const char *text;      /* for people */
} qn_tuned;

/** Looks for what was chosen for a function that is being built, and sets its tuned_key and tuned.
 * Without a choice they are empty. The lock is not held. */
void qn__choice_find(qn_context *c, qn_code *f);
/** Gives up the choice: its code cannot be had, `why` in words for the history, or NULL. */
void qn__choice_drop(qn_context *c, qn_code *f, const qn_error *why);
/** Writes a choice into the folder of a context, and forgets its version of the key, so that the
 * next launch makes it anew. False: `why` says what failed. */
bool qn__choice_keep(qn_context *c, const qn_tuned *t, qn_error *why);

#endif
