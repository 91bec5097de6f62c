/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/function.h: functions that kernels call, libraries of functions, and kernels inside
 * kernels. Included by quern.h.
 *
 * A function has scalar and view parameters and one or more results. Its body is made of ops, loads
 * through its view parameters, if, for, while and calls of functions that were finished before; it
 * has no dimensions, stores nothing and cannot call itself. A call is one instruction of a kernel,
 * and a function's body stands once in the kernel that calls it. For code generation calls are
 * replaced by bodies, so they cost what the body costs; where that would make a kernel too large,
 * the interpreter runs the calls.
 */
#ifndef QUERN_H
#include "quern.h" /* which includes this file in its place */
#elif !defined(QUERN_FUNCTION_H)
#define QUERN_FUNCTION_H

/** A function. Counted, immutable, usable from several threads and in any number of builders. */
typedef struct qn_function qn_function;

/** Largest numbers: functions that one kernel calls, directly or not; calls inside each other. */
#define QN_MAX_FUNCTIONS 128
#define QN_MAX_CALL_DEPTH 16

/** A new builder for a function of this name, or NULL if memory runs out. `flags`: QN_CONTRACT or
 * 0; those of a kernel do not reach into the functions that it calls. Parameters are made by
 * qn_scalar_param and qn_view_param. */
QN_API qn_builder *qn_function_new(const char *name, uint32_t flags);
/** Finishes a function that returns n >= 1 values. On success *out holds a function with one
 * reference. The builder stays valid only for qn_builder_release. */
QN_API qn_status qn_function_finish(qn_builder *b, int n, const qn_val *results, qn_function **out,
                                    qn_error *err);
/** Adds a reference and returns the function. */
QN_API qn_function *qn_function_retain(const qn_function *f);
/** Drops a reference. NULL is ignored. */
QN_API void qn_function_release(qn_function *f);
/** Its name; "" for NULL. */
QN_API const char *qn_function_name(const qn_function *f);
/** Numbers of parameters and of results. */
QN_API int qn_function_n_params(const qn_function *f);
QN_API int qn_function_n_results(const qn_function *f);
/** Describes parameter i, 0 <= i < qn_function_n_params(f); `out_bytes` is sizeof *out. */
QN_API qn_status qn_function_param(const qn_function *f, int i, qn_param_info *out,
                                   size_t out_bytes, qn_error *err);
/** The dtype of result i, QN_VOID if there is none. */
QN_API qn_dtype qn_function_result(const qn_function *f, int i);
/** Prints the functions that it calls, then itself, in the form that qn_library_parse reads.
 * Returns as qn_kernel_print. */
QN_API size_t qn_function_print(const qn_function *f, char *buffer, size_t buffer_bytes);

/**
 * Calls a function: `values` for its scalar parameters and `views` for its view parameters, each in
 * the order of the parameters; the results go to results[0..number of results). Dtypes, and the
 * ranks and dtypes of views, must be those of the parameters.
 */
QN_API void qn_invoke(qn_builder *b, const qn_function *f, int n_values, const qn_val *values,
                      int n_views, const qn_param *views, qn_val *results);

/**
 * Builds the body of a finished kernel here, as if it had been written at this place: index[d]
 * takes the place of its dimension d (for a reduction dimension one of this kernel, which its
 * reduces then name), `values` and `views` those of its scalar and view parameters, each in the
 * order of the parameters.
 */
QN_API void qn_apply(qn_builder *b, const qn_kernel *k, int n_index, const qn_val *index,
                     int n_values, const qn_val *values, int n_views, const qn_param *views);

/** A constant array of a builder. {0} is inert. */
typedef struct qn_array {
    uint32_t id;
} qn_array;
#define QN_MAX_ARRAYS 64 /**< constant arrays of a kernel and of the functions that it calls */
#define QN_MAX_ARRAY_ELEMENTS 4096 /**< of one constant array */
/** A constant array of n >= 1 elements of a dtype without parts, as they lie in memory; they are
 * copied. It becomes part of the code: registers where it is small, else constant memory. */
QN_API qn_array qn_const_array(qn_builder *b, int dtype, int64_t n, const void *elements);
/** The element at an index: the first for an index below 0, the last for one beyond the array. */
QN_API qn_val qn_lookup(qn_builder *b, qn_array array, qn_val index);

/** A mathematical function of quern/math.def by name, which its first argument decides, with n
 * arguments; its results go to `results`. What it computes, and how exactly, stands in
 * docs/math.md. Errors: QN_ERR_NOT_FOUND, and QN_ERR_ARGUMENT or QN_ERR_TYPE for arguments that it
 * does not take. */
QN_API void qn_math(qn_builder *b, const char *name, int n, const qn_val *args, qn_val *results);
/** The functions of quern/math.def: qn_exp(b, x), qn_ldexp(b, x, y), ... Two results are given as
 * an array: qn_sincos(b, x, results) with qn_val results[2]. */
#define QN_MATH_ARGS_T(b) QN_ARGS1(b)
#define QN_MATH_ARGS_TT(b) QN_ARGS2(b)
#define QN_MATH_ARGS_TI(b) QN_ARGS2(b)
#define QN_MATH_T(function, ...) QN_API qn_val function(__VA_ARGS__);
#define QN_MATH_B(function, ...) QN_API qn_val function(__VA_ARGS__);
#define QN_MATH_TT(function, ...) QN_API void function(__VA_ARGS__, qn_val results[2]);
#define QN_MATH_TI(function, ...) QN_API void function(__VA_ARGS__, qn_val results[2]);
#define QN_MATH(name, arguments, results, doc)                                                     \
    QN_MATH_##results(qn_##name, QN_MATH_ARGS_##arguments(b))
#define QN_RANDOM(name, arity, doc) QN_API qn_val qn_##name(QN_ARGS##arity(b));
#include "quern/math.def"
#undef QN_MATH
#undef QN_MATH_T
#undef QN_MATH_B
#undef QN_MATH_TT
#undef QN_MATH_TI

/** A set of functions that were read from one text. Counted, immutable, usable from several
 * threads. */
typedef struct qn_library qn_library;
/** Reads functions (docs/kernel-text.md). err->line is set; the message holds line and column. A
 * function may call those before it and those of `uses`, which may be NULL. */
QN_API qn_status qn_library_parse(const char *text, size_t text_bytes, const qn_library *uses,
                                  qn_library **out, qn_error *err);
/** Adds a reference and returns the library. */
QN_API qn_library *qn_library_retain(const qn_library *l);
/** Drops a reference; functions that are in use stay. NULL is ignored. */
QN_API void qn_library_release(qn_library *l);
/** The function of this name, borrowed for the life of the library, or NULL. */
QN_API const qn_function *qn_library_find(const qn_library *l, const char *name);
/** Number of functions, and function i, borrowed; NULL if there is none. */
QN_API int qn_library_n_functions(const qn_library *l);
QN_API const qn_function *qn_library_function(const qn_library *l, int i);
/** qn_kernel_parse of a text that may call the functions of a library besides its own. */
QN_API qn_status qn_kernel_parse_with(const char *text, size_t text_bytes, const qn_library *uses,
                                      qn_kernel **out, qn_error *err);

#endif
