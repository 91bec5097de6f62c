/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language.h: a small array language, the parts that all chapters share. docs/language.md is its
 * tutorial.
 *
 * A statement is parsed into nodes (parse.c). An interpreter walks the nodes (walk.c) and makes a
 * value of each (value.c). A value is an array, or the record of an operation on other values. The
 * engine of a chapter decides when a record becomes an array, and how: by C loops (chapter1.c), by
 * a kernel for each operation (chapter2.c), or by a kernel for a whole expression (chapter3.c,
 * chapter4.c, chapter5.c).
 */
#ifndef LANGUAGE_H
#define LANGUAGE_H

#include "quern.h"

#include <stdio.h>

/** Limits, so that no input exhausts the stack, the memory or an integer. */
enum {
    MAX_LINE = 4096,   /* bytes of a statement */
    MAX_NAME = 32,     /* of a name, with the zero */
    MAX_NESTING = 100, /* of parentheses and signs */
    MAX_DEPTH =
        1000,     /* of nodes that are evaluated inside each other, through calls of functions */
    MAX_RANK = 6, /* of an array */
    MAX_ARGS = 8, /* of a function */
    MAX_NAMES = 1000,   /* variables and functions */
    MAX_RECORDED = 80,  /* operations and operands of one recorded expression */
    MAX_KERNELS = 1000, /* that are kept */
    N_BUCKETS = 256,
    N_SPARE = 4 /* blocks of memory that are kept for new arrays */
};
#define MAX_ELEMENTS ((int64_t)1 << 48)     /* of a value that is not stored */
#define MAX_STORED_BYTES ((int64_t)2 << 30) /* of all arrays together */

/* [ops] */
/** The operations on elements: X(NAME, text, number of operands, class, name in Quern, meaning in
 * C). */
#define OPS(X)                                                                                     \
    X(ADD, "+", 2, SAME, "add", a + b)                                                             \
    X(SUBTRACT, "-", 2, SAME, "sub", a - b)                                                        \
    X(MULTIPLY, "*", 2, SAME, "mul", a *b)                                                         \
    X(DIVIDE, "/", 2, SAME, "div", a / b)                                                          \
    X(NEGATE, "negate", 1, SAME, "neg", -a)                                                        \
    X(LESS, "<", 2, COMPARE, "lt", a < b)                                                          \
    X(LESS_EQUAL, "<=", 2, COMPARE, "le", a <= b)                                                  \
    X(GREATER, ">", 2, COMPARE, "gt", a > b)                                                       \
    X(GREATER_EQUAL, ">=", 2, COMPARE, "ge", a >= b)                                               \
    X(EQUAL, "==", 2, COMPARE, "eq", a == b)                                                       \
    X(NOT_EQUAL, "!=", 2, COMPARE, "ne", a != b)                                                   \
    X(WHERE, "where", 3, CHOOSE, "select", a != 0 ? b : c)                                         \
    X(ABS, "abs", 1, SAME, "abs", fabs(a))                                                         \
    X(MIN, "min", 2, SAME, "min", a < b || isnan(a) ? a : b)                                       \
    X(MAX, "max", 2, SAME, "max", a > b || isnan(a) ? a : b)                                       \
    X(FLOOR, "floor", 1, SAME, "floor", floor(a))                                                  \
    X(SQRT, "sqrt", 1, SAME, "sqrt", sqrt(a))                                                      \
    X(EXP, "exp", 1, MATH, "exp", exp(a))                                                          \
    X(LOG, "log", 1, MATH, "log", log(a))                                                          \
    X(SIN, "sin", 1, MATH, "sin", sin(a))                                                          \
    X(COS, "cos", 1, MATH, "cos", cos(a))                                                          \
    X(TANH, "tanh", 1, MATH, "tanh", tanh(a))                                                      \
    X(POW, "pow", 2, MATH, "pow", pow(a, b))
/* [end] */

/** The reductions: X(NAME, text, value that an array begins with, combination in Quern, meaning in
 * C). */
#define REDUCTIONS(X)                                                                              \
    X(SUM, "sum", 0, QN_COMBINE_SUM, a + b)                                                        \
    X(PRODUCT, "product", 1, QN_COMBINE_PROD, a *b)                                                \
    X(LEAST, "least", INFINITY, QN_COMBINE_MIN, a < b || isnan(a) ? a : b)                         \
    X(GREATEST, "greatest", -INFINITY, QN_COMBINE_MAX, a > b || isnan(a) ? a : b)

typedef enum op_id {
#define X(NAME, ...) OP_##NAME,
    OPS(X)
#undef X
        N_OPS
} op_id;

typedef enum reduction_id {
#define X(NAME, ...) REDUCE_##NAME,
    REDUCTIONS(X)
#undef X
        N_REDUCTIONS
} reduction_id;

/** A place in the source, counted from 1. */
typedef struct place {
    int line, column;
} place;

typedef struct session session;

/* ---------------------------------------------------------------- parse.c */

typedef enum node_kind {
    NODE_NUMBER,
    NODE_NAME,
    NODE_OP,
    NODE_CALL,
    NODE_INDEX,
    NODE_LIST
} node_kind;

/** A node of an expression. */
typedef struct node {
    node_kind kind;
    op_id op; /* NODE_OP */
    place at;
    double number;
    char name[MAX_NAME]; /* NODE_NAME and NODE_CALL */
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

/** Parses a line into *out; false with an error in the session. */
bool parse(session *s, const char *line, statement *out);
/** Frees the nodes. */
void statement_free(statement *t);

/* ---------------------------------------------------------------- value.c */

typedef struct storage storage;

/* [value] */
typedef enum value_kind { ARRAY, ELEMENTWISE, REDUCE, INDEX, IOTA } value_kind;

/** An array of f64 (kind ARRAY), or the record of an operation whose result has not been computed.
 * Counted. */
typedef struct value {
    value_kind kind;
    int op;   /* ELEMENTWISE: an op; REDUCE: a reduction */
    int dim;  /* REDUCE: the dimension that goes, or -1: all of them */
    place at; /* the operation in the source */
    int rank;
    int64_t extent[MAX_RANK], stride[MAX_RANK]; /* of strides only ARRAY has any */
    double *data;
    double number;  /* the element of rank 0, which needs no storage */
    storage *owner; /* of the data of other ranks */
    int n_args;
    struct value *arg[MAX_RANK + 1];
    int size;            /* operations and operands of the record */
    char name[MAX_NAME]; /* of the variable, for messages; empty if there is none */
    int references;
} value;
/* [end] */

/** A value of a shape; NULL with an error. `kind` is not ARRAY: data comes later. The value holds
 * references to the arguments. */
value *value_record(session *s, value_kind kind, int op, place at, int n_args, value **args,
                    int rank, const int64_t *extents);
value *value_number(double number);
/** Gives a value memory for its elements, in C order, and makes it an array when they have been
 * computed. */
bool value_allocate(session *s, value *v);
void value_is_computed(value *v);
/** An array of the same elements with another shape and other strides. */
value *value_view(session *s, value *v, place at, int rank, const int64_t *extents,
                  const int64_t *strides);
value *value_retain(value *v);
/** Frees the memory that is kept for new arrays. */
void storage_free_spare(session *s);
void value_release(value *v);
/** The number of elements. */
int64_t value_size(const value *v);
/** Whether two values have one shape. */
bool has_shape_of(const value *a, const value *b);
/** The shape of an operation on elements: dimensions are aligned at the last one, and those of
 * extent 1 are repeated. */
bool broadcast(session *s, place at, int n, value **args, int *rank, int64_t *extents);
/** The strides of an array in such a shape: 0 where the array is repeated. */
void strides_in(const value *array, int rank, int64_t *strides);
void value_print(const value *v);

/* ---------------------------------------------------------------- walk.c */

/* [engine] */
/** What a chapter is. */
typedef struct engine {
    const char *title;
    bool (*open)(session *s);              /* may be NULL */
    bool (*waits)(const value *v);         /* whether a record may stay one; NULL: none does */
    bool (*compute)(session *s, value *v); /* makes an array of a record */
    bool (*command)(session *s,
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
    char error[QN_MESSAGE_BYTES]; /* the first one of a statement; empty if there is none */
    place error_at;
    definition *definitions;
    int n_definitions, depth;
    int64_t bytes; /* of all arrays, and of memory that waits for the next ones */
    storage *spare[N_SPARE];
    int next_spare;
    const volatile int32_t *cancel; /* not 0: stop; NULL: never */
    qn_context *context;            /* from chapter 2 on: run.c */
    qn_options *options;
    struct kernel_entry *kernels[N_BUCKETS]; /* lists of kernels by their keys */
    int n_kernels;
    int n_launches;
    unsigned shows; /* or of SHOW_...: what launches print */
};

session *session_new(const engine *e, const char *file, const volatile int32_t *cancel);
void session_free(session *s);
/** Keeps the first error of a statement; returns false. */
bool fail(session *s, place at, const char *format, ...) __attribute__((format(printf, 3, 4)));
/** Makes an array of a value, if it is none. */
bool force(session *s, value *v);
/** Runs a statement in line s->line; false with an error. The value of an expression is printed if
 * `prints`. */
bool session_run(session *s, const char *text, bool prints);
/** The variable of this name, or NULL. */
const value *session_variable(session *s, const char *name);
/** Whether somebody wants the work to end: an error then. */
bool is_cancelled(session *s, place at);

/* ---------------------------------------------------------------- run.c: what chapters with
 * kernels share */

enum { SHOW_KERNEL = 1, SHOW_PLAN = 2, SHOW_WHY = 4 };

/** Opens a context: of code that is kept in the folder `disk_cache`, or NULL, or "off". */
bool context_open(session *s, const char *disk_cache);
/** Takes options of launches as text, and waits for code or not. */
bool options_set(session *s, const char *text, int compile);
/** A view of an array as if it had this shape: repeated where its strides become 0. */
bool array_view(session *s, const value *array, int rank, const int64_t *extents, qn_view *out);
/** Launches a kernel. A failure is an error at the place that the message names, or else at `at`.
 */
bool launch(session *s, const qn_kernel *k, int n, const qn_arg *args, place at);
/** Adds parameter `i` of its kind, a view that is read. Names of parameters differ. */
qn_param operand_param(qn_builder *b, const char *kind, int i, int rank);
/** Builds an operation on elements. */
qn_val build_op(qn_builder *b, op_id op, int n, qn_val *args);
/** The combination of a reduction in Quern. */
int combination(int reduction);
/** The kernel of a key, borrowed, or NULL. */
const qn_kernel *kernel_find(const session *s, int n_key, const int32_t *key);
/** Keeps a kernel, or NULL, that the session owns from now on; returns the kernel, borrowed until
 * the next call, or NULL with an error. */
const qn_kernel *kernel_keep(session *s, int n_key, const int32_t *key, qn_kernel *k);
/** Frees context, options and kernels of a session. */
void session_close_kernels(session *s);
/** Finishes a builder and frees it; NULL with an error. */
qn_kernel *finish(session *s, qn_builder *b, place at);

/* ---------------------------------------------------------------- fuse.c: an expression as one
 * kernel */

enum { MAX_LEAVES = 60, MAX_KEY = 13 * MAX_RECORDED };

/* [fusion] */
/** An operand of a fused kernel: a number, or an array as a view in the shape of a domain. */
typedef struct leaf {
    const value *v;
    const value *domain; /* the root, the operand of a reduction, or `v` itself if elements are
                            picked by index */
    qn_param param;      /* of an array */
    qn_val scalar;       /* of a number */
} leaf;

/** The dimensions of reductions. Reductions of operands of one shape share them. */
typedef struct reduced {
    const value *v;            /* the first of these reductions */
    qn_val index[MAX_RANK];    /* by dimension of the operand */
    int extent_leaf[MAX_RANK]; /* a leaf whose dimension extent_dim has this extent; -1: an argument
                                  is the extent */
    int extent_dim[MAX_RANK];
} reduced;

/** An expression on its way to a kernel. */
typedef struct fusion {
    session *s;
    value *root;
    int n_leaves, n_reduced, n_key;
    leaf leaves[MAX_LEAVES];
    reduced reduced[MAX_RECORDED];
    int32_t key[MAX_KEY]; /* all that the kernel depends on: no extent is among it */
    qn_builder *b;
} fusion;
/* [end] */

/** Finds operands, reductions and key of a record. Reductions in it have the shape of the root, and
 * no reductions in them. */
bool fusion_collect(fusion *f, session *s, value *root);
/** Builds the kernel; NULL with an error. */
qn_kernel *fusion_build(fusion *f);
/** Allocates the result and launches the kernel. */
bool fusion_launch(fusion *f, const qn_kernel *k);
/** Makes an array of a record, with reductions in it and kernels that are kept (chapter4.c); what
 * may wait for that. */
bool compute_fused(session *s, value *v);
bool waits_for_fusion(const value *v);

extern const engine chapter1, chapter2, chapter3, chapter4, chapter5;

/** Chapter n, counted from 1; NULL if there is none. */
const engine *chapter_of(int n);
/** Measures all chapters up to one and prints a table (bench.c); returns the exit status. */
int bench(int chapter);
/** The yardsticks of the bench (plain.c): result[i] = sum over j of w[j] (A[i, j] - m[j])^2. */
void plain_loop(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
                double *result);
void plain_sums(int64_t rows, int64_t columns, const double *A, const double *m, const double *w,
                double *result);

#endif
