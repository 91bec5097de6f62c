/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.c: the table of transformations, and how one is applied: to a copy, which is then
 * verified. So no transformation asks what is legal: verify.c says that of its result. What a
 * transformation cannot be applied to, as a loop is missing or nodes are not nested, is its own
 * error.
 */
#include "jit/schedule/transform_rows.h"

#define LIST(names) names, (int)(sizeof(names) / sizeof(names)[0])
static const char *const tails[] = {"none", "mask", "scalar", "narrower", "overlap"};
static const char *const storages[] = {"registers", "frame", "scratch", "shared"};
static const char *const gpu_roles[] = {"grid", "block", "thread"};
static const char *const guards[] = {"aligned", "inside", "alone", "long"};

const qn_transform_info qn__transforms[] = {
    {"split", "an*", LIST(tails), "tail", qn__apply_split,
     "cuts an axis into digits; each number is the extent of one, slowest first"},
    {"fuse", "aa", NULL, 0, NULL, qn__apply_fuse,
     "makes one loop of two, the second right inside the first"},
    {"reorder", "aaa*", NULL, 0, NULL, qn__apply_reorder,
     "puts loops that stand one right inside the other into this order"},
    {"partition", "ab*", NULL, 0, NULL, qn__apply_partition,
     "cuts a loop into loops over sections, which end at the bounds"},
    {"distribute", "a", NULL, 0, NULL, qn__apply_distribute,
     "gives each node inside a loop a loop of its own"},
    {"place", "ia", NULL, 0, NULL, qn__apply_move_place,
     "moves a reduce out of a loop: its accumulators are for all iterations of that"},
    {"tile", "aann", LIST(tails), "tail", qn__apply_tile,
     "splits two loops, one right inside the other, and walks tile by tile"},
    {"tail", "a", LIST(tails), "tail", qn__apply_set_tail,
     "says what runs where an axis is no multiple of its parts"},
    {"vectorize", "a", NULL, 0, NULL, qn__apply_vectorize, "makes iterations lanes"},
    {"unroll", "a", NULL, 0, NULL, qn__apply_unroll, "emits iterations one beside the other"},
    {"parallelize", "a", NULL, 0, NULL, qn__apply_parallelize,
     "divides iterations among threads of the host"},
    {"bind", "a", LIST(gpu_roles), "role", qn__apply_bind,
     "divides iterations among blocks and threads of a GPU"},
    {"buffer", "ia*", LIST(storages), "storage", qn__apply_buffer,
     "copies what a load reads below a loop; without an axis, below all"},
    {"accumulate", "i", LIST(storages), "storage", qn__apply_accumulate,
     "gives the accumulators of a reduce a buffer"},
    {"stream", "i", NULL, 0, NULL, qn__apply_stream, "makes a store non-temporal"},
    {"prefetch", "ian", NULL, 0, NULL, qn__apply_prefetch,
     "asks for memory a number of iterations of a loop ahead"},
    {"hoist", "ia", NULL, 0, NULL, qn__apply_hoist,
     "tests once an iteration of a loop whether an access is in range"},
    {"group", "in", NULL, 0, NULL, qn__apply_group,
     "moves a strided access together with the others of its group"},
    {"table", "i", NULL, 0, NULL, qn__apply_table,
     "makes a load from a small view a permutation of registers"},
    {"version", "an*", LIST(guards), "guard", qn__apply_version,
     "makes two versions of a loop, of which a guard chooses one"},
};
const int qn__n_transforms = (int)(sizeof qn__transforms / sizeof qn__transforms[0]);
_Static_assert(sizeof tails / sizeof tails[0] == QN_N_TAILS,
               "options of tails are numbered as these");
_Static_assert(sizeof storages / sizeof storages[0] == QN_N_STORAGES,
               "options of storages are numbered as these");
_Static_assert(sizeof guards / sizeof guards[0] == QN_N_GUARDS,
               "options of guards are numbered as these");

qn_status qn__transform(const qn_scheduled *x, qn_schedule *s, const qn_step *how, qn_error *err)
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

qn_status qn__transform_text(const qn_scheduled *x, qn_schedule *s, const char *text, size_t n,
                             qn_error *err)
{
    qn_words w;
    qn_step step;
    qn__words_begin(&w, text, n);
    while (w.word[0] || w.is_bad) {
        if (!qn__words_step(&w, s, &step))
            return qn__fail_line(err, QN_ERR_PARSE, w.line,
                                 "schedule, line %d: no step of a transformation at \"%.60s\"",
                                 w.line, w.is_bad ? "(no word)" : w.word);
        qn_status status = qn__transform(x, s, &step, err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}
