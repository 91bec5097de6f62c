/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function.h: functions as the rest of ir/ sees them. The body of a function is a kernel without
 * dimensions whose last instruction is a return; its parameters are found as those of a kernel. A
 * kernel that calls functions holds them, callees before callers, and a copy of itself without
 * calls.
 */
#ifndef QN_IR_FUNCTION_H
#define QN_IR_FUNCTION_H

#include "ir/ir.h"

struct qn_function {
    qn_kernel body;      /* first: its count is that of the function */
    int n_values;        /* scalars that a call gives, parts of complex numbers one by one */
    int n_views;
    int n_results;       /* as the caller counts them */
    int n_flat;          /* scalars that it returns */
    uint16_t shape[QN_MAX_CARRIED]; /* of each result: 0, or the dtype of a complex number */
    uint32_t frame_values,
        frame_places;    /* instructions and parameters of a call, and of the largest call in it */
    size_t stack_bytes;  /* of the interpreter, see qn__interpret_stack */
    int depth;           /* calls inside each other, its own included: at most QN_MAX_CALL_DEPTH */
    int height;          /* regions inside each other, those of callees included */
    uint32_t n_inlined;  /* at most so many instructions without calls ... */
    uint32_t n_regions;  /* ... and regions */
    int keyword_bytes; /* of a mathematical function (ir/math.c): its name up to the last "_"; 0: a
                          caller's function */
};

/** The last instruction of a body. */
static inline uint32_t qn__return_of(const qn_function *f) { return f->body.n_insts - 1; }
/** The function that instruction i calls. */
static inline const qn_function *qn__callee(const qn_kernel *k, uint32_t i)
{
    return k->function[k->inst[i].imm];
}
/** Enters a function, and before it those that it calls, in a list of at most QN_MAX_FUNCTIONS.
 * Returns its number, or -1 with an error: the list is full, or it has another function of this
 * name. */
int qn__list_function(qn_function **list, int *n, const qn_function *f, const char *who,
                      qn_error *err);
/** The largest frame of the functions that k calls. */
void qn__measure_frames(const qn_kernel *k, uint32_t *values, uint32_t *places);
/** Marks the view parameters of k that call i reads. */
void qn__mark_views(qn_kernel *k, uint32_t i);
/** Instructions, regions and nesting of a kernel or body whose calls are replaced. */
void qn__measure_calls(const qn_kernel *k, uint32_t *n_inlined, uint32_t *n_regions, int *height);
/** The function NAME_DTYPE of ir/math, whose keyword is NAME; NULL and an error if there is none,
 * or no memory. It is never released (ir/math.c). */
const qn_function *qn__math_function(const char *name, qn_error *err);
/** The function that computes a keyword of quern/math.def where the first argument is of this
 * dtype; NULL and an error if there is none. */
const qn_function *qn__math_of(const char *keyword, int dtype, qn_error *err);
/** The dtype of argument p of that function where the first argument is of this dtype. */
int qn__math_argument(const qn_function *f, int p, int dtype);
/** What a word of a text is: nothing of ir/math, a keyword of quern/math.def, or one with "_" and
 * the dtype of a function. */
typedef enum qn_math_word { QN_MATH_NONE, QN_MATH_KEYWORD, QN_MATH_NAME } qn_math_word;
qn_math_word qn__math_word(const char *word);
/** A keyword of quern/math.def itself, static; NULL for other words. */
const char *qn__math_keyword(const char *word);
/** The dtype of the first argument of a keyword's function, if there is one function only; else
 * QN_VOID. */
int qn__math_only_dtype(const char *keyword);
/** Looks at all keywords for the nearest to a wrong one. */
void qn__near_math(qn_nearest *near);
/** Reads one mathematical function, which may call others (ir/parse_function.c). */
qn_status qn__parse_math(const char *text, size_t n, qn_function **out, qn_error *err);
/** Makes k->inlined of a kernel with calls or prints, if the result is not too large
 * (ir/inline.c). */
qn_status qn__inline_calls(qn_kernel *k, qn_error *err);

#endif
