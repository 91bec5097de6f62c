/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.c: the table of transformations, and how one is applied: to a copy, which is then
 * verified. So no transformation asks what is legal: verify.c says that of its result. What a
 * transformation cannot be applied to, as a loop is missing or nodes are not nested, is its own
 * error.
 */
#include "jit/schedule/transform.h"

#define LIST(names) names, (int)(sizeof(names) / sizeof(names)[0])
static const char *const tails[] = {"none", "mask", "scalar", "narrower", "overlap"};
static const char *const storages[] = {"registers", "frame", "scratch"};
static const char *const gpu_roles[] = {"grid", "block", "thread"};

#define NONE NULL, 0
const qn_transform_info qn__transforms[] = {
#define QN_TRANSFORM(name, operands, options, option, function, doc)                               \
    {#name, operands, options, option, function, doc},
#include "jit/schedule/transforms.def"
#undef QN_TRANSFORM
};
#undef NONE
const int qn__n_transforms = (int)(sizeof qn__transforms / sizeof qn__transforms[0]);
_Static_assert(sizeof tails / sizeof tails[0] == QN_N_TAILS,
               "options of tails are numbered as these");
_Static_assert(sizeof storages / sizeof storages[0] == QN_N_STORAGES,
               "options of storages are numbered as these");

qn_status qn__transform(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err)
{
    if (how->which >= qn__n_transforms)
        return qn__fail(err, QN_ERR_ARGUMENT, "schedule: no such transformation");
    if (s->n_steps == QN_MOST_STEPS)
        return qn__fail(err, QN_ERR_LIMIT, "schedule: more than %d transformations", QN_MOST_STEPS);
    qn_schedule *copy = qn__alloc(sizeof *copy);
    if (!copy)
        return qn__fail(err, QN_ERR_MEMORY, "schedule: no memory to transform it");
    qn__schedule_copy(s, copy);
    qn_status status = qn__transforms[how->which].apply(x, copy, how, err);
    if (status == QN_OK)
        status = qn__schedule_derive(x, copy, err);
    if (status == QN_OK)
        status = qn__schedule_verify(x, copy, err);
    if (status == QN_OK) {
        copy->step[copy->n_steps++] = *how;
        qn__schedule_copy(copy, s);
    }
    qn__free(copy);
    return status;
}
