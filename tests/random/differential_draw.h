/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_draw.h: what the files of random schedules share.
 *
 * differential_schedule.c  draws schedules, as texts
 * differential_steps.c     draws steps of the table of transformations
 * differential_recipe.c    draws sequences of steps that end with a rare one
 * differential_grid.c      draws steps that make a grid of a GPU
 * differential_tree.c      interprets a schedule as a tree, whether it has code or not
 */
#ifndef QN_TESTS_DIFFERENTIAL_DRAW_H
#define QN_TESTS_DIFFERENTIAL_DRAW_H

#include "differential.h"
#include "jit/schedule/transform.h"
#include "runtime/launch.h"

/** A launch as the code generator sees it, and a schedule of it. */
typedef struct drawing {
    runner *r;
    randoms *random;
    qn_launch_state launch;
    qn_expanded *expanded; /* of its arguments */
    bool is_open;          /* the launch is */
    qn_kernel *kernel;
    qn_facts facts;
    qn_analysis x;
    qn_schedule *now, *before;
    qn_axis last;    /* made by the last step; 0: the step made none */
    bool is_lowered; /* code is generated for the schedule */
} drawing;

/** Opens a drawing for a kernel with the arguments of a case. False where there is nothing to
 * schedule, or no memory. close_drawing ends it in any case. */
bool open_drawing(drawing *d, runner *r, const test_case *t, const qn_kernel *k, const way *w);
void close_drawing(drawing *d);

/** A step that may fit the schedule. */
qn_step random_step(const drawing *d);

/** A text that steps are written to. */
typedef struct step_text {
    char *text;
    size_t n, bytes;
} step_text;
/** Appends; what does not fit is left out. */
__attribute__((format(printf, 2, 3))) void add_steps(step_text *s, const char *format, ...);
/** The text with a few words or lines changed; malloc'd, NULL without memory. */
char *change_text(const char *text, uint64_t seed);
/** Steps for the kernel as declared that lead to a row of the table which is rarely legal; false:
 * the kernel has nothing for any of them. */
bool draw_recipe(const drawing *d, char *text, size_t bytes);
/** Steps that make the kernel as declared one of a grid. */
void draw_grid(randoms *r, const qn_kernel *k, char *text, size_t bytes);

#endif
