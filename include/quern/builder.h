/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/builder.h: builds kernels: parameters, the dimensions of the domain, operations, regions,
 * loads, stores and updates. Included by quern.h.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_BUILDER_H)
#define QUERN_BUILDER_H

/** A kernel under construction. Opaque. */
typedef struct qn_builder qn_builder;
/** A finished kernel: verified, immutable, counted. Opaque. */
typedef struct qn_kernel qn_kernel;

/** A value of a kernel under construction. {0} is the inert value. */
typedef struct qn_val {
    uint32_t id;      /**< number, and index kind in the upper 8 bits */
    uint32_t builder; /**< number of the builder it belongs to */
} qn_val;
/** A view parameter of a kernel under construction. {0} is inert. */
typedef struct qn_param {
    uint32_t id;      /**< 1 + number */
    uint32_t builder; /**< number of the builder it belongs to */
} qn_param;

/** Kernel flags. */
enum {
    QN_CONTRACT = 1 << 0, /**< a*b+c becomes fma, also in a reduce sum; the same on every engine */
    QN_CHECK_DIVISION = 1 << 1, /**< reserved */
    QN_ORDER_STRIPED = 1 << 2,  /**< reductions without an order of their own are striped */
    QN_ORDER_INDEXED = 1 << 3,  /**< ... are indexed */
    QN_ORDER_ORDERED = 1 << 4   /**< ... are in strict order */
};

/** Order rules of reductions of floating-point numbers. */
enum {
    QN_ORDER_DEFAULT =
        0, /**< the kernel's flag; else indexed with a parallel dimension, striped without */
    QN_INDEXED = 1, /**< index order within blocks of 4096, block results by the same rule */
    QN_STRIPED =
        2,         /**< 64 partials in each block of 4096, halved to one; blocks by the same rule */
    QN_ORDERED = 3 /**< strict index order */
};

/** How values are combined in reductions and atomic operations: the rows of quern/reducers.def,
 * which says of each of them whether both may use it, and what dtypes it takes. */
typedef enum qn_combine {
#define QN_REDUCER(NAME, number, ...) QN_COMBINE_##NAME = number,
#include "quern/reducers.def"
#undef QN_REDUCER
    QN_N_COMBINES = 0
#define QN_REDUCER(...) +1
#include "quern/reducers.def"
#undef QN_REDUCER
    ,
    QN_COMBINE_FORCE_INT = 0x7fffffff
} qn_combine;

/** Largest numbers in one kernel; more are builder errors. */
#define QN_MAX_PARAMS 64
#define QN_MAX_OPS 10000
#define QN_MAX_REGIONS 500
#define QN_MAX_NESTING 64
#define QN_MAX_CARRIED 32 /**< carried values of one loop, results of one if */
#define QN_MAX_SHOWN 8    /**< values that an assertion or print shows */
#define QN_MAX_MESSAGES 256      /**< different messages of assertions and prints */
#define QN_MAX_MESSAGE_BYTES 200 /**< of each of them */

/** A new builder for a kernel of this name, or NULL if memory runs out. `flags`: QN_CONTRACT, ...
 */
QN_API qn_builder *qn_builder_new(const char *name, uint32_t flags);
/** Frees a builder. NULL is ignored. A finished kernel is independent of it. */
QN_API void qn_builder_release(qn_builder *b);
/** The first error so far, QN_OK if none; copies it to *err if not NULL. */
QN_API qn_status qn_builder_status(const qn_builder *b, qn_error *err);
/** The dtype of a value, QN_VOID for inert values. */
QN_API qn_dtype qn_type_of(const qn_builder *b, qn_val v);

/** Adds a view parameter. `name` is for people. `traits`: QN_READ_ONLY, QN_ATOMIC, ... Before any
 * domain dimension. */
QN_API qn_param qn_view_param(qn_builder *b, const char *name, int dtype, int rank,
                              uint32_t traits);
/** Adds a parameter for views of records. */
QN_API qn_param qn_record_param(qn_builder *b, const char *name, const qn_record *record, int rank,
                                uint32_t traits);
/** Adds a scalar parameter and returns its value. Parameters of both kinds share one argument list,
 * in call order. */
QN_API qn_val qn_scalar_param(qn_builder *b, const char *name, int dtype);

/** What a pin is about: the extent, stride or lower bound of a dimension of a view, or a scalar. */
enum { QN_PIN_EXTENT = 0, QN_PIN_STRIDE = 1, QN_PIN_LOWER = 2, QN_PIN_SCALAR = 3 };
/** What becomes of it: a constant of the code, of which each new value is another version; or a
 * number that the code reads, so that one version serves all values. Strides from -4 to 4 and lower
 * bounds of 0 are constants in any case. QN_PIN_MULTIPLE says what divides the number, whether it
 * is dynamic or not: code in which it is dynamic relies on the largest power of two that divides
 * `multiple`, up to 4096. A launch checks that; one for which it does not hold runs a version that
 * does not rely on it. */
enum { QN_PIN_CONSTANT = 1, QN_PIN_DYNAMIC = 2, QN_PIN_MULTIPLE = 3 };
/** A wish of the caller for one number of the arguments. It goes before `specialize` and
 * `constant_scalars`, but for QN_SPECIALIZE_GENERIC. Results do not depend on it. A number that one
 * pin makes constant and another one dynamic is an error; several pins may say what divides it. */
typedef struct qn_fact_pin {
    int32_t param;    /**< number of the parameter */
    int32_t of;       /**< QN_PIN_EXTENT, ...: QN_PIN_SCALAR for a scalar, else one of the others */
    int32_t dim;      /**< dimension of the view; 0 for a scalar */
    int32_t as;       /**< QN_PIN_CONSTANT, ... */
    int64_t multiple; /**< QN_PIN_MULTIPLE: at least 1; else 0 */
} qn_fact_pin;
/** Pins a number of a parameter for all launches of the kernel, as the options of a launch do. The
 * pins become part of the kernel and of its text. An option that contradicts one is an error. Not
 * for parameters of functions. */
QN_API void qn_builder_pin(qn_builder *b, const qn_fact_pin *pin);

/**
 * Typed indices. An index kind is a number from 1 to 255, 0 is none; kinds[0..rank) are those of
 * the view's dimensions. A dimension with a kind takes indices of this kind only, one without takes
 * indices without. qn_lower, qn_extent, qn_parallel_over, qn_reduction_over of a dimension have its
 * kind; integers made of a kind and of values without have it too (ops, casts, indices of loops,
 * results); two kinds in one op are QN_ERR_TYPE. Data loaded has none. Kinds are checked while
 * building and are not part of the kernel. Before any dimension of the domain.
 */
QN_API void qn_param_kinds(qn_builder *b, qn_param p, const uint8_t *kinds);
/** The value x, an integer, with another index kind; kind 0 is none. */
QN_API qn_val qn_with_kind(qn_builder *b, qn_val x, int kind);

/** Constants. A value is converted to the dtype's width; bool takes 0 or 1. */
QN_API qn_val qn_const_int(qn_builder *b, int dtype, int64_t value);
QN_API qn_val qn_const_float(qn_builder *b, int dtype, double value);
/** A constant of any dtype from its bits, low end first; signed integers are sign-extended by the
 * caller or not. */
QN_API qn_val qn_const_bits(qn_builder *b, int dtype, uint64_t bits);
/** i64 constant, the usual index. */
QN_API qn_val qn_index(qn_builder *b, int64_t value);
/** Extent and lower bound of dimension d of a view parameter, i64. */
QN_API qn_val qn_extent(qn_builder *b, qn_param p, int d);
QN_API qn_val qn_lower(qn_builder *b, qn_param p, int d);

/**
 * Adds a dimension to the domain and returns its index, i64, in [begin, end). Bounds may use
 * constants, scalar parameters, extents and lower bounds, and ops on these. begin >= end is empty;
 * with the option strict begin > end is an error. Iteration order: dimensions as declared, first
 * slowest. Dimensions come before loads, stores and regions. Parallel: no iteration may read or
 * write an element (of several parts: a part) that another iteration writes, except through
 * atomics. Reduction: usable only inside a qn_reduce that names it. Sequential: in order, before
 * all parallel dimensions.
 */
QN_API qn_val qn_parallel(qn_builder *b, qn_val begin, qn_val end);
QN_API qn_val qn_reduction(qn_builder *b, qn_val begin, qn_val end);
QN_API qn_val qn_sequential(qn_builder *b, qn_val begin, qn_val end);
/** Shorthand: parallel over all indices of dimension d of a view, lower bound to lower bound +
 * extent. */
QN_API qn_val qn_parallel_over(qn_builder *b, qn_param p, int d);
/** Shorthand: reduction over all indices of dimension d of a view. */
QN_API qn_val qn_reduction_over(qn_builder *b, qn_param p, int d);

/** Loads view[index...]; n must be the view's rank; indices are integers, converted to i64. */
QN_API qn_val qn_load(qn_builder *b, qn_param p, int n, const qn_val *index);
/**
 * Stores view[index...] = value. The dtypes must be equal. Through an atomic view, a value that is
 * computed from loads of the element (equal index values) is one atomic update, and these loads
 * mean what the update finds; QN_ERR_UNSUPPORTED from qn_finish if it depends on them through
 * control flow.
 */
QN_API void qn_store(qn_builder *b, qn_param p, int n, const qn_val *index, qn_val value);
/** Loads and stores a field of view[index...], a view of records. */
QN_API qn_val qn_load_field(qn_builder *b, qn_param p, int field, int n, const qn_val *index);
QN_API void qn_store_field(qn_builder *b, qn_param p, int field, int n, const qn_val *index,
                           qn_val value);
/** A field of a record value; the value with another field; a record of one value for each field.
 */
QN_API qn_val qn_field_of(qn_builder *b, qn_val v, int field);
QN_API qn_val qn_with_field(qn_builder *b, qn_val v, int field, qn_val x);
QN_API qn_val qn_record_of(qn_builder *b, const qn_record *r, int n, const qn_val *values);

/**
 * Complex numbers of two f32 (c64) or f64 (c128). qn_add, qn_sub, qn_mul, qn_div, qn_neg, qn_eq,
 * qn_ne and qn_select take them, and sums: of real and of imaginary parts. Products are written
 * out; quotients are scaled, and by 0 are NaN. qn_cast makes them from numbers (imaginary part 0)
 * and from one another.
 */
QN_API qn_val qn_complex(qn_builder *b, qn_val re, qn_val im);
QN_API qn_val qn_const_complex(qn_builder *b, int dtype, double re, double im);
QN_API qn_val qn_real(qn_builder *b, qn_val z);
QN_API qn_val qn_imag(qn_builder *b, qn_val z);
QN_API qn_val qn_conj(qn_builder *b, qn_val z);
/** The angle of z in [-pi, pi], and the number of a length and an angle; exp, log, sqrt, sin, cos,
 * pow and abs take complex numbers by the names that they have for real ones (docs/math.md). */
QN_API qn_val qn_complex_arg(qn_builder *b, qn_val z);
QN_API qn_val qn_complex_polar(qn_builder *b, qn_val length, qn_val angle);
/** sqrt(re^2 + im^2), without overflow on the way. */
QN_API qn_val qn_magnitude(qn_builder *b, qn_val z);
/** Atomically combines view[index...] with value, relaxed; returns the old value. `compare` is for
 * COMPARE_EXCHANGE only (integers and floats compare by bits), {0} otherwise. It is atomic among
 * the iterations of one launch; the option `atomics` of a launch makes it so among launches and
 * threads of the host. */
QN_API qn_val qn_atomic(qn_builder *b, int combine, qn_param p, int n, const qn_val *index,
                        qn_val value, qn_val compare);

/** Ops of the table quern/ops.def: qn_add(b, x, y), qn_sqrt(b, x), qn_select(b, c, x, y), ... */
#define QN_ARGS1(b) qn_builder *b, qn_val x
#define QN_ARGS2(b) qn_builder *b, qn_val x, qn_val y
#define QN_ARGS3(b) qn_builder *b, qn_val x, qn_val y, qn_val z
#define QN_OP(ID, name, rule, arity, classes, ...) QN_API qn_val qn_##name(QN_ARGS##arity(b));
#include "quern/ops.def"
#undef QN_OP
/** The numbers of the table's ops: QN_OP_add, ... */
typedef enum qn_op_number {
    QN_OP_none = 0,
#define QN_OP(ID, name, ...) QN_OP_##name,
#include "quern/ops.def"
#undef QN_OP
    QN_N_TABLE_OPS
} qn_op_number;
/** Any op of the table by number, for interpreters of other languages. */
QN_API qn_val qn_op(qn_builder *b, int op, int n, const qn_val *args);
/** Number of an op of the table by keyword, or 0. */
QN_API int qn_op_of_name(const char *name);
/** Converts between any two dtypes but to bool from float: integers wrap, float to integer
 * truncates and saturates with NaN to 0, to float rounds to nearest even, to bool is "is not zero".
 */
QN_API qn_val qn_cast(qn_builder *b, int dtype, qn_val x);
/** Reinterprets bits; dtypes of equal size. */
QN_API qn_val qn_bitcast(qn_builder *b, int dtype, qn_val x);

/** `if` and `else`. Each branch ends with a call that gives its n values; the results have the
 * types of the first. */
QN_API void qn_if(qn_builder *b, qn_val condition);
/** An `if` whose first branch is rarely taken. The code goes around that branch where no lane of a
 * vector takes it, also where computing both branches would cost less than a wrong guess of the
 * processor. Results do not depend on it. */
QN_API void qn_if_rare(qn_builder *b, qn_val condition);
/** Ends the first branch and starts the other. */
QN_API void qn_else(qn_builder *b, int n, const qn_val *values);
/** Ends the `if`. Without qn_else the other branch is empty and n must be 0. Results go to
 * results[0..n). */
QN_API void qn_end_if(qn_builder *b, int n, const qn_val *values, qn_val *results);

/** Counted loop: index from begin while index < end, by step > 0 (a constant); n carried values
 * start as init and are written to carried[0..n). Returns the index, i64. No iteration may wrap:
 * the loop ends before. */
QN_API qn_val qn_for(qn_builder *b, qn_val begin, qn_val end, int64_t step, int n,
                     const qn_val *init, qn_val *carried);
/** Ends the loop: the next carried values; results are the final ones. */
QN_API void qn_end_for(qn_builder *b, int n, const qn_val *next, qn_val *results);

/**
 * Rows of different lengths, one behind the other (sparse matrices, ragged arrays): row r is the
 * entries with the indices map[r] .. map[r + 1] - 1. `map` is a view of integers of rank 1. First
 * index of a row, one past the last, and index of its element k (from 0): INT64_MIN, which no view
 * has, if the row has no element k, so that the access is reported.
 */
QN_API qn_val qn_row_begin(qn_builder *b, qn_param map, qn_val row);
QN_API qn_val qn_row_end(qn_builder *b, qn_param map, qn_val row);
QN_API qn_val qn_row_at(qn_builder *b, qn_param map, qn_val row, qn_val k);
/** qn_for over the indices of a row; qn_end_for ends it. */
QN_API qn_val qn_for_row(qn_builder *b, qn_param map, qn_val row, int n, const qn_val *init,
                         qn_val *carried);

/** Bounded loop: starts the condition. `max_trips` is i64 and uniform; reaching it ends the loop
 * with its current values and makes the launch return QN_ERR_LIMIT. */
QN_API void qn_while(qn_builder *b, qn_val max_trips, int n, const qn_val *init, qn_val *carried);
/** Ends the condition (a bool) and starts the body. */
QN_API void qn_do(qn_builder *b, qn_val condition);
/** Ends the loop: the next carried values; results are the final ones. */
QN_API void qn_end_while(qn_builder *b, int n, const qn_val *next, qn_val *results);

/** Reduction over the named reduction dimensions, which count lexicographically as declared. Stores
 * and atomics inside are refused. `order`: QN_ORDER_DEFAULT, ... */
QN_API void qn_reduce(qn_builder *b, int combine, int order, int n, const qn_val *dims);
/** Ends the reduction with the value of one point; returns the result. Empty range: 0, 1, or the
 * type's last value. */
QN_API qn_val qn_end_reduce(qn_builder *b, qn_val value);

/**
 * Asserts that a condition, a bool, holds. Where it does not, the launch goes on and returns
 * QN_ERR_ASSERT with message, values and iteration of the first failure in iteration order. The n
 * values are shown behind the message, complex numbers and records by their parts: QN_MAX_SHOWN
 * numbers at most. It may stand wherever a load may, also in a reduce and in a function. A launch
 * with QN_CHECKS_NONE leaves assertions out. The message is copied.
 */
QN_API void qn_assert(qn_builder *b, qn_val condition, const char *message, int n,
                      const qn_val *values);

/**
 * Prints a line: the message, n values as qn_assert shows them, and the iteration. Lines go to the
 * function in the option `print` of a launch, in iteration order on all engines; a launch without
 * one runs the kernel without its prints. It may stand wherever a load may, also in a reduce and in
 * a function. A kernel has to store something all the same. The message is copied.
 */
QN_API void qn_print(qn_builder *b, const char *message, int n, const qn_val *values);

/** Finishes: folds, removes dead ops, verifies. On success *out holds a kernel with one reference.
 * The builder stays valid only for qn_builder_release. */
QN_API qn_status qn_finish(qn_builder *b, qn_kernel **out, qn_error *err);

#endif
