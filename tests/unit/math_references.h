/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_references.h: reference functions of math_rows.def that the C library lacks, in double (name) and in long double (namel).
 */
#ifndef QN_TESTS_UNIT_MATH_REFERENCES_H
#define QN_TESTS_UNIT_MATH_REFERENCES_H

#include <math.h>

#endif
