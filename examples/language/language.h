/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language.h: a small array language, the parts that all chapters share. docs/language.md is its
 * tutorial.
 *
 * A line is parsed into nodes (parse.c). An interpreter walks the nodes (walk.c) and makes a value
 * of each (value.c). A value is an array, or the record of an operation on other values. The engine
 * of a chapter (chapters.c) decides when a record becomes an array, and how: by loops in C
 * (loops.c), or by a kernel of Quern (kernel.c).
 *
 * An error ends a statement at once: fail() jumps back to session_run(), which frees the values
 * that no variable has.
 */
#ifndef LANGUAGE_H
#define LANGUAGE_H

#include "quern.h"

#include <setjmp.h>
#include <stdio.h>

/** Limits, so that no input exhausts the stack, the memory or an integer. */
enum {
    MAX_LINE = 4096,    /* bytes of a statement */
    MAX_NAME = 32,      /* of a name, with the zero */
    MAX_NESTING = 100,  /* of parentheses and signs */
    MAX_DEPTH = 1000,   /* of operations and calls inside each other */
    MAX_RANK = 6,       /* of an array */
    MAX_ARGS = 8,       /* of a function */
    MAX_NAMES = 1000,   /* variables and functions */
    MAX_RECORDED = 80,  /* operations and operands of one recorded expression */
    MAX_LEAVES = 60,    /* operands of one kernel */
    MAX_KERNELS = 1000, /* that are kept */
    N_BUCKETS = 256
};
#define MAX_ELEMENTS ((int64_t)1 << 48)     /* of a value that is not stored */
#define MAX_STORED_BYTES ((int64_t)2 << 30) /* of all arrays together */

/* [ops] */
/** The operations on elements: X(NAME, text, number of operands, how strongly an operator binds,
 * class, name in Quern, meaning in C). */
#define OPS(X)                                                                                     \
    X(LESS_EQUAL, "<=", 2, 1, COMPARE, "le", a <= b)                                               \
    X(GREATER_EQUAL, ">=", 2, 1, COMPARE, "ge", a >= b)                                            \
    X(EQUAL, "==", 2, 1, COMPARE, "eq", a == b)                                                    \
    X(NOT_EQUAL, "!=", 2, 1, COMPARE, "ne", a != b)                                                \
    X(LESS, "<", 2, 1, COMPARE, "lt", a < b)                                                       \
    X(GREATER, ">", 2, 1, COMPARE, "gt", a > b)                                                    \
    X(ADD, "+", 2, 2, SAME, "add", a + b)                                                          \
    X(SUBTRACT, "-", 2, 2, SAME, "sub", a - b)                                                     \
    X(MULTIPLY, "*", 2, 3, SAME, "mul", a *b)                                                      \
    X(DIVIDE, "/", 2, 3, SAME, "div", a / b)                                                       \
    X(NEGATE, "negate", 1, 0, SAME, "neg", -a)                                                     \
    X(WHERE, "where", 3, 0, CHOOSE, "select", a != 0 ? b : c)                                      \
    X(ABS, "abs", 1, 0, SAME, "abs", fabs(a))                                                      \
    X(MIN, "min", 2, 0, SAME, "min", a < b || isnan(a) ? a : b)                                    \
    X(MAX, "max", 2, 0, SAME, "max", a > b || isnan(a) ? a : b)                                    \
    X(FLOOR, "floor", 1, 0, SAME, "floor", floor(a))                                               \
    X(SQRT, "sqrt", 1, 0, SAME, "sqrt", sqrt(a))                                                   \
    X(EXP, "exp", 1, 0, MATH, "exp", exp(a))                                                       \
    X(LOG, "log", 1, 0, MATH, "log", log(a))                                                       \
    X(SIN, "sin", 1, 0, MATH, "sin", sin(a))                                                       \
    X(COS, "cos", 1, 0, MATH, "cos", cos(a))                                                       \
    X(TANH, "tanh", 1, 0, MATH, "tanh", tanh(a))                                                   \
    X(POW, "pow", 2, 0, MATH, "pow", pow(a, b))
/* [end] */

/** The reductions: X(NAME, text, value of no terms, combination in Quern, meaning in C). */
#define REDUCTIONS(X)                                                                              \
    X(SUM, "sum", 0, QN_COMBINE_SUM, a + b)                                                        \
    X(PRODUCT, "product", 1, QN_COMBINE_PROD, a *b)                                                \
    X(LEAST, "least", INFINITY, QN_COMBINE_MIN, a < b || isnan(a) ? a : b)                         \
    X(GREATEST, "greatest", -INFINITY, QN_COMBINE_MAX, a > b || isnan(a) ? a : b)

#define X(NAME, ...) OP_##NAME,
typedef enum op_id { OPS(X) N_OPS } op_id;
#undef X
#define X(NAME, ...) REDUCE_##NAME,
typedef enum reduction_id { REDUCTIONS(X) N_REDUCTIONS } reduction_id;
#undef X

/** A place in the source, counted from 1. */
typedef struct place {
    int line, column;
} place;

typedef struct session session;

/* ---------------------------------------------------------------- parse.c */

typedef enum node_kind { NUMBER, NAME, OP, CALL, PICK, LIST } node_kind;

/** A node of an expression. */
typedef struct node {
    node_kind kind;
    int op; /* OP */
    place at;
    double number;
    char name[MAX_NAME]; /* NAME and CALL */
    int n;               /* number of operands */
    struct node *first;  /* of them */
    struct node *next;   /* operand of the node above */
    struct node *older;  /* all nodes of a statement, to be freed */
} node;

/** A statement: `let name = e`, `let name(parameters) = e`, or `e`. */
typedef struct statement {
    char name[MAX_NAME]; /* empty for an expression alone */
    place at;            /* of the name */
    int n_parameters;    /* -1: a variable */
    char parameter[MAX_ARGS][MAX_NAME];
    node *body; /* NULL for an empty line */
    node *newest;
} statement;

/** Parses a line into *out, whose nodes statement_free() frees, also after an error. */
void parse(session *s, const char *line, statement *out);
void statement_free(statement *t);

/* ---------------------------------------------------------------- value.c */

/* [value] */
typedef enum value_kind { ARRAY, ELEMENTWISE, REDUCE, INDEX, IOTA } value_kind;

/** An array of f64 (kind ARRAY), or the record of an operation that has not been computed. */
typedef struct value {
    value_kind kind;
    int op;   /* ELEMENTWISE: an op; REDUCE: a reduction */
    int dim;  /* REDUCE: the dimension that goes, or -1: all of them */
    place at; /* the operation in the source */
    int rank;
    int64_t extent[MAX_RANK], stride[MAX_RANK]; /* of strides only ARRAY has any */
    double *data;
    double number;      /* the element of rank 0, which needs no storage */
    struct value *base; /* whose elements these are; NULL: they are its own */
    int n_args, size;   /* operands; operations and operands of the whole record */
    struct value *arg[MAX_RANK + 1];
    char name[MAX_NAME]; /* of the variable, for messages; empty if there is none */
    bool is_shared;      /* it has a name or is the base of another: not of one operation alone */
    bool is_kept;        /* while values are freed */
    struct value *next;  /* all values of a session */
} value;
/* [end] */

/** A value of a shape, without elements. The session frees it. */
value *value_new(session *s, value_kind kind, int op, place at, int n_args, value **args, int rank,
                 const int64_t *extents);
value *value_number(session *s, double number);
/** Gives a value memory for its elements, in C order. */
void value_allocate(session *s, value *v);
/** Frees the elements of a value that is an operand of one operation alone, which has been
 * computed. */
void value_is_used(session *s, value *v);
/** Frees all values that no variable has. */
void free_values(session *s);
int64_t value_size(const value *v);
bool has_shape_of(const value *a, const value *b);
/** The shape of an operation on elements: dimensions are aligned at the last one, and those of
 * extent 1 are repeated. Returns its rank. */
int broadcast(session *s, place at, int n, value **args, int64_t *extents);
/** The strides of an array in such a shape: 0 where it is repeated, and for records. */
void strides_in(const value *v, int rank, int64_t *strides);
void value_print(const value *v);

/* ---------------------------------------------------------------- walk.c, chapters.c */

/* [engine] */
/** What a chapter is. */
typedef struct engine {
    const char *title;
    void (*open)(session *s);              /* may be NULL */
    bool (*waits)(const value *v);         /* whether a record may stay one; NULL: none does */
    void (*compute)(session *s, value *v); /* computes the elements of a record */
    void (*command)(session *s,
                    const char *line); /* runs a line that starts with a colon; may be NULL */
} engine;
/* [end] */

/** A variable, or a function. */
typedef struct definition {
    char name[MAX_NAME];
    value *value;       /* of a variable; else NULL */
    statement function; /* of a function */
} definition;

struct session {
    const engine *engine;
    const char *file; /* for messages */
    int line;
    jmp_buf on_error;
    char error[QN_MESSAGE_BYTES]; /* empty if there is none */
    place error_at;
    statement statement; /* that is run */
    definition definitions[MAX_NAMES];
    int n_definitions, depth;
    value *values;
    int64_t bytes;                  /* of all arrays */
    const volatile int32_t *cancel; /* not 0: stop; NULL: never */
    qn_context *context;            /* from chapter 2 on: kernel.c */
    qn_options *options;
    struct kernel_entry *kernels[N_BUCKETS]; /* lists of kernels by their keys */
    int n_kernels, n_launches;
    unsigned shows; /* or of SHOW_...: what launches print */
};

/** A session of a chapter, or NULL with an error on stderr. */
session *session_new(const engine *e, const char *file, const volatile int32_t *cancel);
void session_free(session *s);
/** Ends the statement with an error. */
_Noreturn void fail(session *s, place at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Makes an array of a value, if it is none. */
void force(session *s, value *v);
/** Runs a line; false with an error. The value of an expression is printed if `prints`. */
bool session_run(session *s, const char *line, bool prints);
/** The same for a statement in a line that is run already: an error ends that. */
void run_statement(session *s, const char *text, bool prints);
/** The variable of this name, or NULL. */
const value *session_variable(session *s, const char *name);

/** Chapter n, counted from 1; NULL if there is none. */
const engine *chapter_of(int n);
/** Seconds of a clock. */
double now_seconds(void);

/* ---------------------------------------------------------------- loops.c, kernel.c, bench.c */

/** Computes an operation on arrays by loops. */
void compute_by_loops(session *s, value *v);

enum { SHOW_KERNEL = 1, SHOW_PLAN = 2, SHOW_WHY = 4 };
/** Opens a context: of code that is kept in the folder `disk_cache`, or NULL, or "off". */
void context_open(session *s, const char *disk_cache);
/** Takes options of launches as text, and waits for code or not. */
void options_set(session *s, const char *text, int compile);
/** Computes a record by one kernel, which is found by the structure of the record, or built and
 * kept. Reductions in the record have the shape of the root, and no reductions in them. */
void compute_by_kernel(session *s, value *root);
void kernels_close(session *s);

/** Measures all chapters up to one and prints a table; returns the exit status. */
int bench(int chapter);
/** The yardsticks of the bench (plain.c): result[i] = sum over j of w[j] (A[i, j] - m[j])^2. */
void plain_loop(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
                double *result);
void plain_sums(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
                double *result);

#endif
