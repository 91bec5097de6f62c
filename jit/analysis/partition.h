/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.h: index set splitting. Along a parallel dimension the interior is where remainders,
 * limits and comparisons of indices have one form: `(i + 1) % n` is i + 1, `max(i - 1, 0)` is
 * i - 1, `i == 0` is false. The interior becomes a kernel of its own, and so do the rims.
 */
#ifndef QN_JIT_PARTITION_H
#define QN_JIT_PARTITION_H

#include "jit/analysis/analyse.h"

enum { QN_MOST_SECTIONS = 3 }; /* of one cut: a rim, another one, the interior */

/** Iterations from begin up to end. */
typedef struct qn_section {
    int64_t begin, end;
} qn_section;

/** Sections of a parallel dimension; the longest is the last. */
typedef struct qn_sections {
    int dim, n;
    qn_section of[QN_MOST_SECTIONS];
} qn_sections;

/** The sections of a parallel dimension that has more than one: of that which accesses walk from
 * neighbour to neighbour, or else the last. False: none has, or the iterations may not be run
 * section by section. */
bool qn__sections_of(const qn_kernel *k, const qn_facts *f, qn_sections *out);

/** What a value is for all iterations whose indices the facts allow. */
typedef struct qn_form {
    enum { QN_FORM_OWN, QN_FORM_NUMBER, QN_FORM_FIRST, QN_FORM_SECOND, QN_FORM_THIRD } kind;
    int64_t number; /* NUMBER: the value; FIRST: what the value is less than operand 0 */
} qn_form;
/** The form of pure instruction i, from the ranges of all values (qn__find_ranges). */
qn_form qn__form_of(const qn_kernel *k, const qn_interval *range, uint32_t i);

#endif
