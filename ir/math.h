/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math.h: the texts of the mathematical functions, which ir/math/embed.cmake writes as a C file,
 * and what was made of them.
 */
#ifndef QN_IR_MATH_H
#define QN_IR_MATH_H

#include "ir/ir.h"

/** The definition of one function. */
typedef struct qn_math_definition {
    const char *name;      /* NAME_DTYPE */
    uint32_t begin, end;   /* bytes of the text */
} qn_math_definition;

extern const unsigned char qn__math_text[];
/** Sorted by name. */
extern const qn_math_definition qn__math_definitions[];
extern const int qn__n_math_definitions;
/** The functions that were read, in the order of the definitions. */
extern qn_function *_Atomic qn__math_table[];

#endif
