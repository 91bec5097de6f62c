/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan_parts.h: private to the files that make a schedule of a plan or of a grid: from_plan.c
 * and from_grid.c have loops, from_plan_access.c accesses.
 */
#ifndef QN_JIT_FROM_PLAN_PARTS_H
#define QN_JIT_FROM_PLAN_PARTS_H

#include "jit/schedule/plan.h"
#include "jit/schedule/transform.h"

enum { NAME_BYTES = QN_AXIS_NAME_BYTES + 16, MOST_PIECES = 5 };

/** The loops of a dimension, by name: the tile, if there is one, then its digits, slowest first. */
typedef struct pieces {
    char tile[NAME_BYTES]; /* "" if there is none */
    char name[MOST_PIECES][NAME_BYTES];
    int n;       /* digits; 1: it is not cut */
    int n_inner; /* of these, the last ones stand inside all other loops */
} pieces;

typedef struct maker {
    const qn_analysis *x;
    const qn_plan *p; /* NULL: a grid is said */
    qn_schedule *s;
    qn_error *err;
    qn_status status;
    pieces of[QN_MAX_RANK];
    char inner[8][NAME_BYTES]; /* loops that are emitted one beside the other, outermost first */
    int n_inner;
    bool is_careful; /* each mark of an access is verified */
} maker;

/** A step that must be possible. The result is verified at the end, as what is between need not be
 * a schedule that may be run. */
void qn__step(maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Every dimension whole. */
void qn__pieces_begin(maker *m);
/** Cuts a dimension by these extents, of which those of one iteration are left out; the last
 * n_inner of them stand inside. */
void qn__cut(maker *m, int d, int n, const int64_t *extent, int n_inner, const char *tail);
/** Moves a loop that is emitted together inside of the reduces: each has an accumulator for every
 * one of its iterations. */
void qn__move_inside(maker *m, const char *name);
/** A mark of an access, which is left out where it cannot be made or, if the maker is careful,
 * where the verifier refuses it. */
void qn__mark(maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Appends " NAME" to a text; nothing if the name is empty. */
void qn__add_name(char *text, size_t bytes, const char *name);
/** Marks accesses as the plan says. */
void qn__mark_accesses(maker *m);

#endif
