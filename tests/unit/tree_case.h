/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_case.h: a kernel with small arrays and its facts, for the tests of schedules, which need no
 * code generator.
 */
#ifndef QN_TESTS_TREE_CASE_H
#define QN_TESTS_TREE_CASE_H

#include "jit/schedule/transform.h"
#include "tests/unit/tree_run.h"

enum { TREE_VIEWS = 6 };

/** What the views of a kernel look like, in the order of its parameters. */
typedef struct tree_view {
    int64_t extent[4];
    bool is_left;
} tree_view;

typedef struct tree_case {
    qn_kernel *kernel;
    int n;
    qn_view view[TREE_VIEWS];
    qn_arg arg[TREE_VIEWS];
    size_t bytes[TREE_VIEWS];
    unsigned char *data[TREE_VIEWS], *initial[TREE_VIEWS], *expected[TREE_VIEWS];
    qn_domain domain;
    qn_facts facts;
    qn_fault fault; /* of the interpreter */
    qn_analysis x;
    qn_schedule *schedule; /* that of the kernel as declared */
} tree_case;

/** Makes everything and runs the interpreter. `isa` is QN_ISA_V4, ... With `is_dynamic` extents and
 * strides are not known. False, after a failed test point, if something cannot be made. */
bool tree_case_open(tree_case *c, const char *text, const tree_view *views, int isa,
                    bool is_dynamic);
void tree_case_close(tree_case *c);
/** Whether a schedule gives all bytes that the interpreter gave, and no iteration is missing; notes
 * what differs. */
bool tree_case_agrees(tree_case *c, const qn_schedule *s);
/** Applies transformations; the message of the one that was refused, or NULL. */
const char *tree_case_apply(tree_case *c, const char *steps);
/** The text of a schedule, to be freed. */
char *tree_case_text(const qn_schedule *s);

/** The nodes of a schedule on one line, without axes, access records and history; to be freed. */
char *tree_case_nodes(const qn_schedule *s);

/** Whether the text of a schedule is read as a schedule that verifies and has this text; notes what
 * is wrong. */
bool tree_case_is_read_again(tree_case *c, const qn_schedule *s);
/** Random numbers of a seed: below n. */
uint32_t tree_random(uint32_t *seed, uint32_t n);

/** Kernels with views that are small enough to be run often. */
typedef struct tree_sample {
    const char *text;
    tree_view view[3];
} tree_sample;
extern const tree_sample tree_samples[];
enum { TREE_SAMPLES = 7 };

extern const char tree_copy[], tree_stencil[], tree_matmul[], tree_sums[], tree_two_sums[],
    tree_rows[], tree_steps[], tree_small_table[];

#endif
