/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h: infix expressions of kernel text (docs/kernel-text.md), private to parse*.c and
 * expression_*.c. An expression is read in three steps, each one loop without recursion:
 *
 *   qn__expression_read    text -> nodes in postfix order, each with the type that its operands
 * give qn__expression_settle  types for the numbers, from the operators and the place that they
 * meet qn__expression_build   nodes -> calls of the builder
 *
 * Nodes, operators that wait for operands, and values are stacks of the parser. An expression uses
 * what is above their tops, so that the range of a sum is read inside the expression of the sum.
 */
#ifndef QN_IR_EXPRESSION_H
#define QN_IR_EXPRESSION_H

#include "ir/parse.h"

/** Operators and brackets that wait at the same time; values that do. */
enum { MOST_PENDING = 200, MOST_WAITING = 600, MOST_NODES = 4 * QN_MAX_OPS };

typedef enum node_kind {
    NODE_NUMBER, /* a literal; its type is that of its place */
    NODE_VALUE,  /* `value`: %name, a scalar parameter, true, false */
    NODE_NAME,   /* variable number `link` of the symbols, read where the expression is built */
    NODE_BOUND,  /* index `link` of the reduction `head` */
    NODE_VIEW,   /* a view as argument of a function */
    NODE_EXTENT, /* dimension `link` of `view` */
    NODE_LOWER,
    NODE_LOAD,   /* [indices] of `view` */
    NODE_LOOKUP, /* [index] of `array` */
    NODE_OP,     /* an op of the table */
    NODE_CAST,
    NODE_BITCAST,
    NODE_MATH, /* a function of quern/math.def, by `word` */
    NODE_CALL, /* a function of the text or library */
    NODE_MARK, /* before an operand that may be left out; `link` is its NODE_CHOOSE, _AND or _OR */
    NODE_CHOOSE, /* c ? a : b */
    NODE_AND,    /* a && b */
    NODE_OR,     /* a || b */
    NODE_BEGIN,  /* opens the reduction `head`; of a loop: with its bounds */
    NODE_END     /* closes it, with the value of one point */
} node_kind;

typedef struct node {
    uint8_t kind, op, n_results;
    bool is_negative; /* a number behind '-' */
    bool has_access;  /* it, or what it is made of, reads a view */
    bool is_lazy;   /* CHOOSE, AND, OR: an `if`, so that what is not needed is not read; MARK: opens
                       it */
    bool is_second; /* MARK: before the second of two */
    int16_t part;   /* LOAD: part of the element, or -1 */
    int32_t n_args;
    int32_t dtype;    /* QN_VOID: that of its place */
    int32_t operands; /* dtype of the operands, of a comparison, or of the first argument of a
                         function */
    int32_t parent, position; /* the node whose operand `position` it is; parent -1: none */
    int32_t link, head;
    qn_token token;
    qn_val value;
    qn_param view;
    qn_array array;
    const qn_record *record;
    const qn_function *function;
    const char *word; /* static */
} node;

/** What waits for its last operand. Levels are those of C, from 1 for "?:" to 10 for "*". */
typedef struct pending {
    uint8_t kind; /* PENDING_... */
    uint8_t level;
    node node; /* what is made of the operands */
    int32_t n_args, mark;
} pending;

/** The head of a reduction: "sum k in 0 .. n of". */
struct reduction {
    const char *text; /* of its first token: what finds it */
    int combine, order, n;
    bool is_loop; /* a `for`, as the range is known in the body only */
    qn_token name[QN_MAX_RANK];
    qn_val value[QN_MAX_RANK];                   /* the indices, once they are known */
    qn_val begin[QN_MAX_RANK], end[QN_MAX_RANK]; /* of one that is no loop */
    qn_val carried;                              /* of a loop: what was combined so far */
    qn_lexer after;                              /* state behind the "of" of one that is no loop */
    qn_token next;
};

/** Nodes [begin, end) of the parser. */
typedef struct expression {
    int32_t begin, end;
} expression;

bool qn__expression_read(parser *p, expression *e);
/** `dtype`: of the place; QN_VOID if that has none, INDEX_TYPE where any integer does. `what` is
 * the place in words: "the condition", "view y". */
bool qn__expression_settle(parser *p, const expression *e, int dtype, const char *what);
/** Puts the value, or all results of a function, behind those of *out; forgets the nodes. */
bool qn__expression_build(parser *p, const expression *e, values *out);

/** Number of a node with n operands, appended; the operands are the last ones that wait. -1 after
 *  an error. */
int32_t qn__node_add(parser *p, const node *x, int n_args);
/** Type, access and results of a node from its operands. */
bool qn__node_type(parser *p, node *x, int n, const int32_t *args);
/** `f32`, `c64`, or "a number" where there is none. */
const char *qn__type_words(int dtype);
/** The reduction whose head begins at the next token, or -1 after an error; behind it, the next
 *  token is the first of its value. The bounds of a loop wait as operands. */
int32_t qn__reduction_head(parser *p);
/** Whether the head of a reduction begins at the token, which the lexer is behind. */
bool qn__parse_is_reduction(const qn_lexer *x, const qn_token *t);

#endif
