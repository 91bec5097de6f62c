/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h: the state of a kernel under construction; for the files of ir/build/ and
 * finish.c of ir/ only.
 *
 * Instructions are appended to one array in the final order of ir.h. A value is usable while the
 * region that holds it is open. Every public function first calls qn__builder_ready, which is false
 * once there is an error: errors stick and the first one is kept.
 */
#ifndef QN_IR_BUILDER_H
#define QN_IR_BUILDER_H

#include "ir/ir.h"

/** What the builder knows of an instruction beyond qn_inst. */
typedef struct qn_note {
    uint32_t next;    /* next instruction with the same hash, 0 at the end */
    uint32_t version; /* loads: the memory version they saw */
    bool is_uniform;  /* depends on no index, memory or carried value */
    bool has_atomic_load; /* a load through an atomic view, or arithmetic of one */
    bool is_stored;   /* what a store through an atomic view became */
    bool is_kept;     /* a load that stays though nothing needs its value */
    uint32_t place, name; /* see qn_locations */
} qn_note;

/** An open region of an if, for, while or reduce. */
typedef struct qn_frame {
    uint32_t inst;                /* its instruction */
    uint32_t begin;               /* first instruction of the region that is open */
    uint32_t version;             /* of the memory when the first region began */
    uint32_t dims;                /* reduce: bit d for each dimension it names */
    uint8_t op;                   /* QN_I_IF, ... */
    uint8_t stage;                /* 0: first region, 1: second */
    uint8_t n;                    /* carried values, or values of the first branch */
    bool has_store;               /* a store or atomic stands in it */
    uint8_t type[QN_MAX_CARRIED]; /* of these values */
    uint8_t kind[QN_MAX_CARRIED]; /* their index kinds */
    uint8_t n_values;             /* these values as the caller counts them, see qn_flat */
    uint16_t shape[QN_MAX_CARRIED];
} qn_frame;

enum { QN_N_BUCKETS = 1024 };

struct qn_builder {
    qn_error error;
    uint32_t number; /* of this builder among all of the process, not 0 */
    bool is_finished;
    bool is_function;    /* made by qn_function_new */
    bool is_replay;      /* of a finished kernel (replay.h): under larger limits */
    bool keeps_products; /* finished instructions are built again: no product is contracted anew */
    bool keeps_loads; /* which are appended: a finished kernel performs its loads, in each form */
    char *name;
    uint32_t flags;
    qn_kernel_parameter param[QN_MAX_PARAMS];
    uint8_t kind[QN_MAX_PARAMS][QN_MAX_RANK]; /* index kinds of the dimensions of views */
    uint32_t scalar[QN_MAX_PARAMS]; /* the value of a scalar parameter */
    const qn_record *record[QN_MAX_PARAMS]; /* types of record values, each once, with references */
    int n_records;
    int n_params;
    uint32_t dim[QN_MAX_RANK];
    int n_dims, n_parallel;
    bool has_body;       /* something that must come after all dimensions exists ... */
    const char *body_op; /* ... and this made it */
    qn_inst *inst;
    qn_note *note;
    uint32_t *operand;
    uint32_t n_insts, inst_capacity, n_operands, operand_capacity;
    uint32_t n_regions;
    qn_frame frame[QN_MAX_NESTING];
    int depth;
    uint32_t version, last_version; /* of the memory; all versions so far are <= last_version */
    qn_function **function; /* [QN_MAX_FUNCTIONS] once there is one; with references */
    int n_functions;
    qn_elements **array; /* [QN_MAX_ARRAYS] once there is one; with references */
    int32_t n_arrays;
    char **message; /* [QN_MAX_MESSAGES] once there is one */
    int32_t n_messages;
    qn_location *place;         /* [n_places], and room up to the next power of two */
    uint32_t n_places, current; /* 1 + number of the place of what is built now; 0: none */
    qn_text pool;               /* names of files and values */
    bool has_names;
    uint32_t reduced;               /* bit d: an open reduce names dimension d */
    uint32_t bucket[QN_N_BUCKETS];  /* numbered instructions, by hash */
};

/* ---------------------------------------------------------------- checks (ir/build/builder.c) */

/** Whether the builder can be finished: it is ready and no region is open; else an error. */
bool qn__builder_closed(qn_builder *b, const char *who);
/** qn_invoke with the name of the public function. */
void qn__invoke(qn_builder *b, const char *who, const qn_function *f, int n_values,
                const qn_val *values, int n_views, const qn_param *views, qn_val *results);
/** Records the first error, with the name of the kernel or function behind that of the call.
 * Returns the inert value, for `return qn__builder_fail(...)`. */
qn_val qn__builder_fail(qn_builder *b, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Whether building can go on: there is a builder, no error, and it is not finished. */
bool qn__builder_ready(qn_builder *b, const char *who);
/** A call of a mathematical function with one result (ir/math.c). */
qn_val qn__math(qn_builder *b, const char *who, const char *name, int n, const qn_val *args);
/** A builder whose flags its caller checks; `who` is the public function. NULL without memory. */
qn_builder *qn__builder_make(const char *who, const char *name, uint32_t flags);
/** The number of v in *out if it may be used as operand here; else an error that starts with `who:
 * what`. */
bool qn__use(qn_builder *b, const char *who, const char *what, qn_val v, uint32_t *out);
/** qn__use for an index or bound: an integer, converted to i64 in *out. */
bool qn__use_index(qn_builder *b, const char *who, const char *what, qn_val v, uint32_t *out);
/** n values given by the caller, at most QN_MAX_CARRIED: their numbers in out[0..n). */
bool qn__use_list(qn_builder *b, const char *who, const char *what, int n, const qn_val *values,
                  uint32_t *out);
/** The view parameter of a handle, or NULL after an error. */
qn_kernel_parameter *qn__view_of(qn_builder *b, const char *who, qn_param p);
/** Whether dtype is one of the table; else an error. */
bool qn__known_dtype(qn_builder *b, const char *who, int dtype);
/** What a value is, for messages: " (load of x)" of at most ORIGIN_BYTES in `out`, which is
 * returned. */
enum { ORIGIN_BYTES = 72 };
const char *qn__origin(const qn_builder *b, uint32_t i, char *out);
/** Fails with what the n operands of an op are, 3 at most, and the problem. Returns false. */
bool qn__fail_operands(qn_builder *b, const char *who, int n, const uint32_t *a,
                       const char *problem);

/* ---------------------------------------------------------------- index kinds (ir/build/kinds.c)
 */

/* A handle is the number of an instruction and, in its upper 8 bits, an index kind; and the
 * builder's number. Kinds are checked while building and belong to handles, not instructions, so
 * equal values of different kinds are still one instruction. */
static inline uint32_t qn__number(qn_val v)
{
    return v.id & 0xffffffu;
}
static inline int qn__kind(qn_val v)
{
    return (int)(v.id >> 24);
}
/** The handle of an instruction; only integers keep the kind. Number 0 gives the inert value. */
qn_val qn__value(const qn_builder *b, uint32_t number, int kind);
/** The handle of parameter id - 1; 0 gives the inert one. */
qn_param qn__param(const qn_builder *b, uint32_t id);
/** The kind of what n values make together: the one kind that typed ones have, else 0. Two kinds
 * are an error. */
bool qn__join_kinds(qn_builder *b, const char *who, int n, const qn_val *values, int *out);
/** Whether v has the kind `wanted`, that of `what`; else an error. */
bool qn__has_kind(qn_builder *b, const char *who, const char *what, qn_val v, int wanted);

/* ---------------------------------------------------------------- tuples (ir/build/tuple.c,
 * build/complex.c) */

enum { MOST_TUPLE_PARTS = 2 * QN_MAX_FIELDS };
/** A value of these parts: a tuple, or the only part itself. `record` is a number, see
 * qn__builder_record. */
uint32_t qn__append_value(qn_builder *b, const char *who, int dtype, int record,
                          const uint32_t *parts);
/** The parts of a tuple; a copy, since appending moves the operands. Returns their number. */
int qn__copy_parts(const qn_builder *b, uint32_t tuple, uint32_t *out);

/** Values of a caller as scalars: tuples are given by their parts. */
typedef struct qn_flat {
    int n, n_values;
    qn_val value[QN_MAX_CARRIED];
    uint16_t shape[QN_MAX_CARRIED]; /* of each of the caller's values: 0, or dtype and number of the
                                       record */
} qn_flat;
/** The values as scalars; checks that they can be used. */
bool qn__flatten(qn_builder *b, const char *who, const char *what, int n, const qn_val *values,
                 qn_flat *out);
/** Values of these shapes from scalars. `out` may be NULL. */
void qn__unflatten(qn_builder *b, const char *who, int n_values, const uint16_t *shape,
                   const qn_val *flat, qn_val *out);
/** The number of a record type, entered where it is new; -1 after an error. */
int qn__builder_record(qn_builder *b, const char *who, const qn_record *record);
/** Ops of the table and casts where an operand or the result is a tuple (build/complex.c). */
qn_val qn__tuple_op(qn_builder *b, const char *who, int op, int n, const uint32_t *a);
qn_val qn__tuple_cast(qn_builder *b, const char *who, int dtype, uint32_t x);
/** A complex constant from canonical bits of its parts. */
qn_val qn__complex_const(qn_builder *b, const char *who, int dtype, uint64_t re, uint64_t im);
/** Whole elements. */
qn_val qn__load_element_of(qn_builder *b, const char *who, qn_param p, const uint32_t *index);
void qn__store_element_of(qn_builder *b, const char *who, qn_param p, const uint32_t *index,
                          uint32_t value);
/** A part of a tuple, and of an element; for what is made of finished kernels, which have no
 * tuples. */
qn_val qn__value_part(qn_builder *b, qn_val v, int part);
qn_val qn__load_part(qn_builder *b, qn_param p, int part, int n, const qn_val *index);
void qn__store_part(qn_builder *b, qn_param p, int part, int n, const qn_val *index, qn_val value);
/** Whether a value is of the type of a view's elements. */
bool qn__is_element_of(const qn_builder *b, const qn_kernel_parameter *view, uint32_t value);

/* ---------------------------------------------------------------- memory (ir/build/memory.c) */

/** The indices of an access, as i64 values in out[0..rank). */
bool qn__use_indices(qn_builder *b, const char *who, const qn_kernel_parameter *view, int n,
                     const qn_val *index, uint32_t *out);
/** A written view: not read-only, and not inside a reduce. */
bool qn__can_write(qn_builder *b, const char *who, const qn_kernel_parameter *view);
/** Loads a part of an element; stores one, the new version is the caller's to begin. */
uint32_t qn__append_load(qn_builder *b, const char *who, qn_param p, int part,
                         const uint32_t *index);
void qn__append_store(qn_builder *b, const char *who, qn_param p, int part, const uint32_t *index,
                      uint32_t value);

uint32_t qn__append_atomic(qn_builder *b, const char *who, int combine, qn_param p, int n_args,
                           const uint32_t *args);
/** Whether atomics do a combination. */
/** A store through an atomic view, args: indices, value. One atomic update where it is one
 * (ir/build/update.c). */
void qn__store_atomically(qn_builder *b, const char *who, qn_param p, const uint32_t *args);
/** Whether an instruction is a load, store or atomic of this element of the view that parameter
 * `view` is. */
bool qn__is_element(const qn_builder *b, uint32_t access, uint64_t view, int n,
                    const uint32_t *index);

/* ---------------------------------------------------------------- appending (ir/build/append.c) */

/** Appends an instruction with plain region numbers. Returns its number, 0 after an error. */
uint32_t qn__append(qn_builder *b, const char *who, qn_inst x, uint32_t n_args,
                    const uint32_t *args);
/** Appends a pure op or a load, unless an equal one is usable here: then its number. */
uint32_t qn__append_numbered(qn_builder *b, const char *who, qn_inst x, uint32_t n_args,
                             const uint32_t *args);
/** A constant of canonical bits. */
uint32_t qn__append_const(qn_builder *b, const char *who, int dtype, uint64_t bits);
/** A cast, folded where it can be. */
uint32_t qn__append_cast(qn_builder *b, const char *who, int dtype, uint32_t x);
/** A bitcast between dtypes of one size, folded where it can be. */
uint32_t qn__append_bitcast(qn_builder *b, const char *who, int dtype, uint32_t x);
/** Table ops (but select) and casts of f16 and bf16, in terms of other types (ir/build/half.c). */
uint32_t qn__append_half_op(qn_builder *b, const char *who, int op, int type, const uint32_t *args);
uint32_t qn__append_half_cast(qn_builder *b, const char *who, int dtype, uint32_t x);
/** A table op whose operands were checked: folded, contracted, numbered (ir/build/ops.c). */
uint32_t qn__append_op(qn_builder *b, const char *who, int op, const uint32_t *args);
/** Table ops of operands that may be 0, what an earlier error left: the result is 0 then. */
uint32_t qn__op1(qn_builder *b, const char *who, int op, uint32_t x);
uint32_t qn__op2(qn_builder *b, const char *who, int op, uint32_t x, uint32_t y);
uint32_t qn__choose(qn_builder *b, const char *who, uint32_t condition, uint32_t x, uint32_t y);
/** Whether an instruction may be used here, as far as regions go. */
bool qn__is_open(const qn_builder *b, uint32_t i);
/** Something wrote memory: loads before it are not reused after it. */
void qn__new_version(qn_builder *b);

static inline const uint32_t *qn__builder_args(const qn_builder *b, uint32_t i)
{
    return b->operand + b->inst[i].args;
}
static inline bool qn__is_tuple(const qn_builder *b, uint32_t i)
{
    return b->inst[i].op == QN_I_TUPLE;
}
static inline bool qn__is_constant(const qn_builder *b, uint32_t i)
{
    return b->inst[i].op == QN_I_CONST;
}

/* ---------------------------------------------------------------- constant arrays (ir/array.c) */

qn_elements *qn__elements_retain(qn_elements *e);
void qn__elements_release(qn_elements *e);
/** Enters an array in a list of at most QN_MAX_ARRAYS, unless an equal one is there. Its number, or
 * -1: the list is full. */
int qn__list_array(qn_elements **list, int32_t *n, qn_elements *e);
/** The handle of an array in this builder, 0 after an error. */
uint32_t qn__builder_array(qn_builder *b, const char *who, qn_elements *e);
/** A lookup, folded where it can be. */
uint32_t qn__append_lookup(qn_builder *b, const char *who, uint32_t array, uint32_t index);

/* ---------------------------------------------------------------- finishing */

/** From a builder to the instructions, tables and text of a kernel or of a function's body
 * (ir/finish.c). Frees nothing. */
qn_status qn__finish_body(qn_builder *b, qn_kernel *k, qn_error *err);
/** Refuses stores through atomic views that depend on the element and are no one update
 * (ir/check_updates.c). */
qn_status qn__check_updates(const qn_builder *b, qn_error *err);
/** Copies the live instructions of a builder into a kernel, renumbered (ir/compact.c). */
qn_status qn__compact(qn_builder *b, qn_kernel *k, qn_error *err);
/** Refuses provable violations of the contract of parallel dimensions (ir/collide.c). */
qn_status qn__check_collisions(const qn_kernel *k, qn_error *err);

#endif
