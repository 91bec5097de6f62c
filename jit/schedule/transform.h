/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.h: transformations of schedules. Each is a row of a table and one function, tree to
 * tree. A transformation that is not legal returns an error and leaves the schedule as it was.
 */
#ifndef QN_JIT_TRANSFORM_H
#define QN_JIT_TRANSFORM_H

#include "jit/schedule/tree.h"

typedef qn_status (*qn_transformation)(const qn_analysis *x, qn_schedule *s, const qn_step *how,
                                       qn_error *err);

/** What operands a transformation takes, as a text: `a` an axis, `i` an instruction, `n` a number,
 * `b` a bound; a letter followed by `*` may come several times, or not at all. */
typedef struct qn_transform_info {
    const char *name, *operands;
    const char *const *options; /* names of its option; NULL: it has none */
    int n_options;
    const char *option; /* what the option is called in the text, "tail" */
    qn_transformation apply;
    const char *doc;
} qn_transform_info;
extern const qn_transform_info qn__transforms[];
extern const int qn__n_transforms;
enum { /* QN_DO_split and so on: what qn_step names by `which` */
#define QN_TRANSFORM(name, operands, options, option, function, doc) QN_DO_##name,
#include "jit/schedule/transforms.def"
#undef QN_TRANSFORM
};
#define QN_TRANSFORM(name, operands, options, option, function, doc)                               \
    qn_status function(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err);
#include "jit/schedule/transforms.def"
#undef QN_TRANSFORM
/** The next node after `after` that is a loop over an axis; 0: none. */
qn_node qn__next_loop(const qn_schedule *s, qn_axis a, qn_node after);

/** Applies one step to a copy, verifies the copy, and keeps it, with the step in its history. */
qn_status qn__transform(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err);
/** qn__transform for a text of steps, each ended by `;`: "split d0 8 tail=mask; vectorize d0.1;".
 * Steps before one that is refused stay applied. */
qn_status qn__transform_text(const qn_analysis *x, qn_schedule *s, const char *text, size_t n,
                             qn_error *err);

/** Appends the text of a step, without `;`. */
void qn__step_print(const qn_schedule *s, const qn_step *step, qn_text *out);

#endif
