/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h: the parser of kernel text, private to parse*.c. Functions that return bool return false
 * after the first error, which they have reported; p->status then says what it was. Functions whose
 * name says accept consume a token if it is there, those that say expect fail if it is not.
 */
#ifndef QN_IR_PARSE_H
#define QN_IR_PARSE_H

#include "ir/lex.h"

/** A named value. */
typedef struct symbol {
    const char *text; /* in the kernel text */
    size_t n;
    uint64_t hash;
    int32_t next; /* of the same bucket, or -1 */
    int32_t line;
    bool is_variable; /* may be assigned again */
    qn_val value;
} symbol;

typedef struct symbols {
    symbol *entry;
    int32_t *bucket;
    int32_t n, capacity; /* as many buckets as capacity, a power of two */
} symbols;

typedef struct parameter {
    size_t name, name_bytes; /* in parser.names, zero-terminated */
    bool is_view, is_array;
    qn_array array;
    qn_param view;
    qn_val scalar;
} parameter;

/** A block that is open, and the statement it belongs to. */
typedef struct block block;
/* Expressions, see expression.h. */
typedef struct node node;
typedef struct pending pending;
typedef struct reduction reduction;
/** Assignments that were read ahead, see parse_variables.c. */
typedef struct variables variables;

typedef struct parser {
    qn_lexer lexer;
    qn_token token;     /* the next one */
    qn_token statement; /* first token of the statement in work: place of the builder's errors */
    qn_builder *b;
    qn_error *err;
    qn_status status;
    symbols symbols;
    qn_text names, scratch;
    block *
        block; /* [depth], those that are open; one more slot is for the block whose head is read */
    int block_capacity;
    int depth, n_params, n_functions;
    int32_t n_declared,
        n_arrays; /* parameters and constant arrays of this body, which are all in `param` */
    parameter param[QN_MAX_PARAMS + QN_MAX_ARRAYS];
    qn_function *function[QN_MAX_FUNCTIONS]; /* defined in this text, with references */
    const qn_library *uses;                  /* more functions, or NULL */
    const char *who;                         /* the public function */
    node *node;         /* [n_nodes] of expressions in work */
    pending *pending;   /* [n_pending] operators in work, room for MOST_PENDING */
    int32_t
        *waiting; /* [n_waiting] nodes that are operands of no node yet, room for MOST_WAITING */
    qn_val *built;      /* [n_built] values of nodes, room for MOST_WAITING */
    reduction *head;    /* [n_heads] of reductions */
    variables *variables; /* or NULL */
    int32_t n_nodes, node_capacity, n_pending, n_waiting, n_built, n_heads, head_capacity;
    int last_line;      /* of the token before the next one */
    bool is_in_range;   /* of a reduction: it has no reductions */
    bool has_begun;     /* the body: dimensions of reductions are declared */
    bool is_complete;   /* the block of the domain was closed */
    bool is_math;      /* of the library: it calls mathematical functions by their whole names */
    bool is_canonical; /* the text of a kernel made of kernels, see qn__kernel_parse_canonical */
} parser;

typedef struct values {
    int n;
    qn_val v[QN_MAX_CARRIED];
} values;

/** "%name: dtype" before a "=". */
typedef struct definition {
    const char *text;
    uint32_t n;
    int32_t line, column, dtype;
} definition;

typedef struct definitions {
    int n;
    definition d[QN_MAX_CARRIED];
} definitions;

struct block {
    bool (*close)(parser *p, block *b, const values *yield); /* what its kind does behind the "}" */
    qn_token statement;
    definitions d;
    int n;               /* values it yields; of an `if` the results */
    int32_t scope;       /* names known before the statement */
    int32_t head_scope;  /* of a `while`: and its carried values */
    bool is_second;      /* the `else` of an `if`, the `do` of a `while` */
    bool is_explicit;    /* says what it carries */
    bool is_chained;     /* an `else` without braces, before an `if` */
    int n_variables;     /* that are assigned in the block, and known before it */
    int32_t variable[QN_MAX_CARRIED];
    qn_val before[QN_MAX_CARRIED]; /* their values before the block */
};

/* ------------------------------------------------------------------ errors and tokens (parse.c) */

/** Reports an error at a place of the text; returns false. */
bool qn__parse_fail_at(parser *p, int line, int column, qn_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
#define FAIL(p, token, ...)                                                                        \
    qn__parse_fail_at(p, (token)->line, (token)->column, QN_ERR_PARSE, __VA_ARGS__)
/** Reports the next token: `expected ':' but found "f32"`. */
bool qn__parse_fail_expected(parser *p, const char *what);
bool qn__parse_fail_memory(parser *p);
/** Bytes of a text to show in a message: not too many, never half a UTF-8 character. */
int qn__parse_shown_bytes(const char *text, size_t n);
/** Reports the builder's error, with its own status and message, at the statement. */
bool qn__parse_check_builder(parser *p);

void qn__parse_advance(parser *p);
bool qn__parse_is_symbol(const parser *p, char c);
bool qn__parse_is_word(const parser *p, const char *word);
bool qn__parse_accept_symbol(parser *p, char c);
bool qn__parse_accept_word(parser *p, const char *word);
bool qn__parse_expect_symbol(parser *p, char c);
bool qn__parse_expect_word(parser *p, const char *word);
/** An operator of several characters, or one. */
bool qn__parse_is_operator(const qn_token *t, const char *text);
bool qn__parse_token_is(const qn_token *t, const char *word);
/** The token behind the next one. */
qn_token qn__parse_peek(const parser *p);
/** The next token as a zero-terminated word; "" if it is none or too long to be a keyword. */
void qn__parse_copy_word(const parser *p, char word[32]);
bool qn__parse_dtype(parser *p, int32_t *dtype);
/** An integer of the text itself: a rank, a dimension, a step. */
bool qn__parse_integer(parser *p, int dtype, int64_t *value);
/** The parameter or constant array of this name, or NULL. */
const parameter *qn__parse_find_parameter(const parser *p, const char *name, size_t n);
/** The name of a declared parameter of the wanted kind. */
bool qn__parse_reference(parser *p, bool is_view, const parameter **out);
/** The name of a declared constant array. */
bool qn__parse_array_name(parser *p, qn_array *out);

/** An identifier or string: its bytes, valid until the next name. */
bool qn__parse_name(parser *p, const char **text, size_t *n);
/** ("kernel" | "function") name flag* "{": makes the builder by `make`. */
/** "format" integer ";", which may stand first; false for a format of another version. */
bool qn__parse_format(parser *p);
bool qn__parse_head(parser *p, qn_builder *make(const char *name, uint32_t flags));
/** Words of a list, each at most once, or-ed together. */
bool qn__parse_words(parser *p, const qn_word *list, uint32_t *bits);
/** The declarations of parameters, each with a ";". */
bool qn__parse_parameters(parser *p);
/** "(" [name ":" type ("," name ":" type)*] ")" */
bool qn__parse_parameter_list(parser *p);
/** What a text is read for. */
typedef struct reading {
    const char *who;               /* the public function */
    bool (*read)(parser *, void *out); /* puts what it makes of the text at `out` */
    const qn_library *uses;        /* more functions, or NULL */
    bool is_math, is_canonical;    /* see parser */
} reading;
qn_status qn__parse_text(const reading *r, const char *text, size_t text_bytes, void *out,
                         qn_error *err);

/* ----------------------------------------------------------------------- values (parse_value.c) */

/** Gives a value its name, from here to the end of the block; checks the builder and the type. */
bool qn__parse_define(parser *p, const definition *d, qn_val value);
bool qn__parse_define_all(parser *p, const definitions *d, const qn_val *v);
/** Ends the scopes of all names after the first n. */
void qn__parse_end_scope(parser *p, int32_t n);
bool qn__parse_value(parser *p, qn_val *value);
/** The dtype of the value that a token names; QN_VOID if it names none. */
int qn__parse_type_of(parser *p, const qn_token *t);
/** value ("," value)*, appended to *v */
bool qn__parse_values(parser *p, values *v);
/** A value by its name, or an expression for a place of this dtype, see qn__parse_expression. */
bool qn__parse_given(parser *p, int dtype, const char *what, qn_val *v);
/** Whether a name without "%" may be given to something new. */
bool qn__parse_is_new(parser *p, const qn_token *name);
/** "%name: dtype" */
bool qn__parse_typed(parser *p, definition *d);
/** [typed ("," typed)* "="] */
bool qn__parse_definitions(parser *p, definitions *d);
/** "[" [expression ("," expression)*] "]" */
bool qn__parse_index(parser *p, values *index);
/** Gives a value a name without "%", from here to the end of the block; a variable may be assigned
 *  again. */
bool qn__parse_introduce(parser *p, const qn_token *name, qn_val value, bool is_variable);
/** Number of the symbol of this name, or -1. */
int32_t qn__parse_find(parser *p, const char *text, size_t n);
/** Canonical bits of a literal of the dtype. */
bool qn__parse_literal(parser *p, int dtype, uint64_t *bits);

/* ------------------------------------------------------------------ expressions (expression_*.c)
 */

enum { INDEX_TYPE = -1 };
/** An expression of the dtype: QN_VOID if its place has none, INDEX_TYPE where any integer does.
 *  `what` names the place in messages. */
bool qn__parse_expression(parser *p, int dtype, const char *what, qn_val *out);
/** expression ("," expression)*, appended to *v; each has a type of its own */
bool qn__parse_expressions(parser *p, values *v);

/* --------------------------------------------------------------- statements (parse_statement.c) */

bool qn__parse_statement(parser *p);
/** A slot for a block that is about to be opened, see qn__parse_open_block; NULL if memory runs
 * out. */
block *qn__parse_new_block(parser *p, const definitions *d,
                           bool (*close)(parser *, block *, const values *));
/** "{": what follows, up to the "}", belongs to the block in the next slot. */
bool qn__parse_open_block(parser *p);

bool qn__parse_combine(parser *p, int *combine);

/* ------------------------------------------------------------------------ blocks (parse_block.c)
 */

bool qn__parse_if(parser *p, const definitions *d);
bool qn__parse_for(parser *p, const definitions *d);
bool qn__parse_while(parser *p, const definitions *d);
bool qn__parse_reduce(parser *p, const definitions *d);
/** [values] ";" behind "yield", which ends the block. */
bool qn__parse_yield(parser *p, values *yield);
/** "}": the innermost block goes on with what its kind has behind it. */
bool qn__parse_close_block(parser *p, const values *yield);

/* ----------------------------------------------- statements with names for people (parse_assign.c)
 */

/** Whether an assignment or declaration of a name begins here, or a store with indices. */
bool qn__parse_is_assignment(const parser *p);
bool qn__parse_assignment(parser *p);
/** "atomic" view index ("+=" | ...) expression */
bool qn__parse_atomic_update(parser *p);
/** Whether a token is "=" or an operator such as "+=". */
bool qn__parse_is_update(const qn_token *t);

/* ------------------------------------------------- variables of blocks (parse_variables.c) */

/** Finds the variables that are assigned in the block at the next token, "{", and in the blocks of
 *  "else" behind it; none for text of finished kernels. */
bool qn__parse_find_variables(parser *p, block *b);
/** The values of the variables of a block now, and others for them. */
void qn__parse_get_variables(const parser *p, const block *b, qn_val *v);
void qn__parse_set_variables(parser *p, const block *b, const qn_val *v);
void qn__parse_free_variables(parser *p);

/* ------------------------------------------------------- domain, loops, reductions
 * (parse_domain.c) */

/** "for" ("all" | "sequential") ... or "for" name "in", "while" condition "max": whether one begins
 * here. */
bool qn__parse_is_domain(const parser *p);
bool qn__parse_domain(parser *p);
bool qn__parse_is_loop(const parser *p);
bool qn__parse_loop(parser *p);
bool qn__parse_is_repeat(const parser *p);
bool qn__parse_repeat(parser *p);
/** Before the first load, region or use of an index: declares the dimensions of all reductions. */
bool qn__parse_begin_body(parser *p);

/* ----------------------------------------------------------------- functions (parse_function.c) */

/** The function of this name that can be called here, or NULL. */
const qn_function *qn__parse_find_function(const parser *p, const char *name, size_t n);
/** Definitions of functions, up to the first other token. */
bool qn__parse_definitions_of_functions(parser *p);
/** Adds the names of the functions that can be called. */
void qn__parse_near_functions(const parser *p, const char *prefix, qn_nearest *near);
/** function "(" [argument ("," argument)*] ")" behind "call" */
bool qn__parse_call(parser *p, const definitions *d);
/** Whether a literal begins here. */
bool qn__parse_is_literal(const parser *p);
/** A value, or a literal of the dtype; QN_VOID: a value. */
bool qn__parse_operand(parser *p, int dtype, qn_val *v);
/** operand ("," operand)* behind the keyword of a mathematical function */
bool qn__parse_math_call(parser *p, const definitions *d, const char *keyword);
/** operand ("," operand)* behind its whole name: complex numbers may be given, and taken, by their
 * parts */
bool qn__parse_named_math(parser *p, const definitions *d, const char *name);

#endif
