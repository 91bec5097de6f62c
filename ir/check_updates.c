/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_updates.c: refuses stores through atomic views that depend on the element they write in a
 * way that is no one atomic update: through control flow (its condition, its bounds, its results),
 * through the index of another load, through another atomic, a call, or by a load before an earlier
 * store to the element. Silently, such a read-modify-write would lose what others do between.
 *
 * The element is the same if the index values are. Values of an earlier trip of a loop are followed
 * only where the index does not change from trip to trip.
 */
#include "ir/build/builder.h"

#include <string.h>

/** The walk from one store to what it depends on. */
typedef struct walk {
    const qn_builder *b;
    uint64_t view;
    int n;
    const uint32_t *index;
    uint32_t round;    /* of this store */
    uint32_t *seen;    /* [n_insts]: the round in which a value was met */
    uint32_t *waiting; /* values that were met and not looked at */
    uint8_t *through;  /* [n_insts]: the op that stands between such a value and the store; 0:
                          arithmetic only */
    uint32_t n_waiting;
} walk;

static void meet(walk *w, uint32_t value, int through)
{
    if (w->seen[value] == w->round)
        return;
    w->seen[value] = w->round;
    w->through[value] = (uint8_t)through;
    w->waiting[w->n_waiting++] = value;
}

static void meet_operands(walk *w, uint32_t i, int first, int n, int through)
{
    for (int a = first; a < first + n; a++)
        meet(w, qn__builder_args(w->b, i)[a], through);
}

/** Whether the value may differ between trips of a loop. False for large expressions too, which are
 * not looked into. */
static bool changes(const qn_builder *b, uint32_t value, uint32_t loop, int *left)
{
    if (value < loop || --*left < 0)
        return false;
    if (!qn__is_pure(&b->inst[value]))
        return true;
    for (int a = 0; a < b->inst[value].n_args; a++)
        if (changes(b, qn__builder_args(b, value)[a], loop, left))
            return true;
    return false;
}

static bool is_same_in_all_trips(const walk *w, uint32_t loop)
{
    int left = 64;
    for (int d = 0; d < w->n; d++)
        if (changes(w->b, w->index[d], loop, &left))
            return false;
    return true;
}

/** What decides whether, and how often, a region of i runs. */
static void meet_control(walk *w, uint32_t i)
{
    const qn_inst *x = &w->b->inst[i];
    if (x->op == QN_I_IF)
        meet_operands(w, i, 0, 1, QN_I_IF);
    else if (x->op == QN_I_FOR)
        meet_operands(w, i, 0, 2, QN_I_FOR);
    else if (x->op == QN_I_WHILE)
        meet_operands(w, x->region[1] - 1, 0, 1, QN_I_WHILE);
}

/** What result or carried value `number` of i is made of. `ends`: what the trips before gave
 * counts. */
static void meet_result(walk *w, uint32_t i, int number, bool ends)
{
    const qn_inst *x = &w->b->inst[i];
    meet_control(w, i);
    if (x->op == QN_I_IF)
        meet_operands(w, x->region[1] - 1, number, 1, x->op);
    else
        meet_operands(w, i, (x->op == QN_I_FOR ? 2 : 1) + number, 1, x->op);
    if (ends)
        meet_operands(w, x->region[2] - 1, number, 1, x->op);
}

/** Looks at what value i is made of; true if it is a load of the element. */
static bool look_at(walk *w, uint32_t i)
{
    const qn_inst *x = &w->b->inst[i];
    int through = w->through[i];
    switch (x->op) {
    case QN_I_LOAD:
        if (qn__is_element(w->b, i, w->view, w->n, w->index))
            return true;
        meet_operands(w, i, 0, x->n_args, through ? through : QN_I_LOAD);
        break;
    case QN_I_ATOMIC:
        meet_operands(w, i, 0, x->n_args, through ? through : QN_I_ATOMIC);
        break;
    case QN_I_RESULT:
        if (w->b->inst[qn__builder_args(w->b, i)[0]].op == QN_I_CALL)
            meet(w, qn__builder_args(w->b, i)[0], through);
        else
            meet_result(w, qn__builder_args(w->b, i)[0], (int)x->imm, true);
        break;
    case QN_I_CALL:
        meet_operands(w, i, 0, x->n_args, QN_I_CALL);
        break;
    case QN_I_CARRIED:
        meet_result(w, x->parent, (int)x->imm, is_same_in_all_trips(w, x->parent));
        break;
    case QN_I_INDEX:
        meet_operands(w, x->parent, 0, 1, QN_I_FOR);
        break;
    case QN_I_REDUCE:
        meet_operands(w, x->region[2] - 1, 0, 1, QN_I_REDUCE);
        break;
    default:
        if (qn__is_pure(x) || x->op == QN_I_TUPLE)
            meet_operands(w, i, 0, x->n_args, through);
    }
    return false;
}

/** What the store or update i writes, and what decides whether it does. */
static void meet_store(walk *w, uint32_t i)
{
    const qn_inst *x = &w->b->inst[i];
    meet_operands(w, i, w->n, x->n_args - w->n, 0);
    for (uint32_t j = i + 1; j < x->region[2]; j++) /* of an update */
        for (int a = 0; a < w->b->inst[j].n_args; a++)
            if (qn__builder_args(w->b, j)[a] < i)
                meet_operands(w, j, a, 1, 0);
    for (uint32_t parent = x->parent; parent; parent = w->b->inst[parent].parent)
        meet_control(w, parent);
}

static qn_status check_store(walk *w, uint32_t store, qn_error *err)
{
    const qn_inst *x = &w->b->inst[store];
    const char *name = w->b->param[x->imm].name;
    w->view = x->imm;
    w->n = w->b->param[x->imm].rank;
    w->index = qn__builder_args(w->b, store);
    w->round++;
    meet_store(w, store);
    while (w->n_waiting > 0) {
        uint32_t i = w->waiting[--w->n_waiting];
        if (!look_at(w, i))
            continue;
        if (w->through[i])
            return qn__fail(err, QN_ERR_UNSUPPORTED,
                            "qn_finish: view \"%.100s\": what is stored depends on the loaded "
                            "element through %s, which "
                            "is no atomic update: use select, or atomic exchange for two steps",
                            name, qn__inst_name(w->through[i]));
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "qn_finish: view \"%.100s\": what is stored depends on the element as it "
                        "was loaded before "
                        "another store to it, which is no atomic update: load it again",
                        name);
    }
    return QN_OK;
}

/** Bit p: an instruction loads through parameter p. */
static uint64_t loaded_views(const qn_builder *b)
{
    uint64_t views = 0;
    for (uint32_t i = 1; i < b->n_insts; i++)
        if (b->inst[i].op == QN_I_LOAD)
            views |= UINT64_C(1) << b->inst[i].imm;
    return views;
}

qn_status qn__check_updates(const qn_builder *b, qn_error *err)
{
    walk w = {.b = b};
    uint64_t loaded = loaded_views(b);
    qn_status status = QN_OK;
    for (uint32_t i = 1; !status && i < b->n_insts; i++) {
        if (!b->note[i].is_stored || !(loaded >> b->inst[i].imm & 1))
            continue;
        if (!w.seen) {
            w.seen = qn__zalloc(b->n_insts, sizeof *w.seen);
            w.waiting = qn__zalloc(b->n_insts, sizeof *w.waiting);
            w.through = qn__zalloc(b->n_insts, 1);
        }
        if (!w.seen || !w.waiting || !w.through)
            status = qn__fail(err, QN_ERR_MEMORY, "qn_finish: out of memory");
        else
            status = check_store(&w, i, err);
    }
    qn__free(w.seen);
    qn__free(w.waiting);
    qn__free(w.through);
    return status;
}
