/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * embed.h: what bindings for other languages need of Quern beyond quern.h (docs/embedding.md):
 * numbers and structs by name, options as text, views behind pointers, functions that return no
 * struct, places in the source of the host, and the statements of a finished kernel. Units, errors,
 * ownership and threads are those of quern.h.
 */
#ifndef QUERN_EMBED_H
#define QUERN_EMBED_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- numbers and structs by name */

/** The number behind a name of the headers: "QN_F32", "QN_CHECKS_NONE", "QN_READ_ONLY",
 * "QN_MAX_RANK". QN_ERR_NOT_FOUND names the nearest one. */
QN_API qn_status qn_number_by_name(const char *name, int64_t *out, qn_error *err);
/** Name i = 0, 1, ... of all these, and its number in *out, which may be NULL; NULL behind the last
 * one. Static. */
QN_API const char *qn_number_name(int i, int64_t *out);
/** Bytes of a struct, handle or type of the headers by its name, "qn_view"; 0 for unknown names. */
QN_API size_t qn_sizeof(const char *name);
/** Name i = 0, 1, ... of the structs that qn_sizeof knows; NULL behind the last one. Static. */
QN_API const char *qn_struct_name(int i);
/** A member of a struct. */
typedef struct qn_member {
    const char *name; /**< static */
    int64_t offset_bytes; /**< from the begin of the struct */
    int64_t bytes; /**< of all its elements */
    int64_t count; /**< of elements of an array; 1 for all else */
} qn_member;
/** Member i = 0, 1, ... of a struct, in the order of their offsets; QN_ERR_NOT_FOUND for unknown
 * structs and behind the last one. `out_bytes` is sizeof *out. */
QN_API qn_status qn_struct_member(const char *name, int i, qn_member *out, size_t out_bytes,
                                  qn_error *err);

/* ---------------------------------------------------------------- options as text */

/**
 * Options of a launch from words as "engine=native checks=none lane_dim=j width=8 order=j,i
 * dynamic=x.extent.0":
 *   - a field of qn_options that is a number, and a name of its list in lower case
 * ("executor=threads", "isa=v3", "strict=1", "timeout_ns=1000000", "debug=races,nan"), or the
 * number;
 *   - a field of qn_plan_options and a number, where a field that names a dimension takes the
 * number of the dimension from 0, the name that qn_builder_name gave it in `k`, or "none"; "order"
 * takes a list of dimensions, outermost first;
 *   - "constant" or "dynamic" and a list of pins: a scalar by its name or number, or a view with
 *     ".extent", ".stride" or ".lower" and a dimension; "multiple_of" and a list of such pins, each
 * with what divides the number ("multiple_of=x.extent.0:16"). Names need `k`, which may be NULL;
 *   - "schedule=" and the text of a schedule, which goes on to the end of `text`.
 * Words are separated by white space. NULL and "" are the default. *out owns all that it points to
 * until qn_options_release; the caller may set more of its fields. Errors name the word.
 */
QN_API qn_status qn_options_parse(const char *text, const qn_kernel *k, qn_options **out,
                                  qn_error *err);
/** Frees options that qn_options_parse made. NULL is ignored. */
QN_API void qn_options_release(qn_options *o);

/* ---------------------------------------------------------------- views behind pointers */

/** A view in memory of the library, so that its size is of no concern: a copy of *v with a
 * reference of its own, or the default view for NULL. It may be `out` of every function that makes
 * a view. NULL without memory. */
QN_API qn_view *qn_view_box(const qn_view *v);
/** Releases the view and its memory. NULL is ignored. */
QN_API void qn_view_unbox(qn_view *v);
/** Fields of a view; 0, QN_VOID or NULL for NULL. */
QN_API int qn_view_rank(const qn_view *v);
QN_API int qn_view_dtype(const qn_view *v);
QN_API int qn_view_space(const qn_view *v);
QN_API uint32_t qn_view_traits(const qn_view *v);
QN_API void *qn_view_data(const qn_view *v);
QN_API const char *qn_view_label(const qn_view *v);

/* ---------------------------------------------------------------- functions that return no struct
 */

/** qn_arg_view, qn_arg_int, ... : element i of an array of arguments, whose bytes are n *
 * qn_sizeof("qn_arg"). */
QN_API void qn_args_set_view(qn_arg *args, int i, const qn_view *v);
QN_API void qn_args_set_int(qn_arg *args, int i, int dtype, int64_t value);
QN_API void qn_args_set_f32(qn_arg *args, int i, float value);
QN_API void qn_args_set_f64(qn_arg *args, int i, double value);
QN_API void qn_args_set_c128(qn_arg *args, int i, double re, double im);
QN_API void qn_args_set_c64(qn_arg *args, int i, float re, float im);
/** qn_view_copy and qn_layout_copy. */
QN_API void qn_view_copy_to(const qn_view *v, qn_view *out);
QN_API void qn_layout_copy_to(const qn_layout *l, qn_layout *out);
/** qn_fill of the argument that `value` points to. */
QN_API qn_status qn_fill_arg(qn_context *c, const qn_view *v, const qn_arg *value, qn_error *err);

/**
 * The builder with values as numbers. A value or view parameter of a builder is one number, its
 * `id` in the low half and its `builder` in the high half; 0 is inert. Each function is the one of
 * quern.h without "_n"; results and carried values go to arrays. Together they build whatever
 * quern.h does.
 */
QN_API uint64_t qn_view_param_n(qn_builder *b, const char *name, int dtype, int rank,
                                uint32_t traits);
QN_API uint64_t qn_scalar_param_n(qn_builder *b, const char *name, int dtype);
QN_API int qn_type_of_n(const qn_builder *b, uint64_t x);
QN_API uint64_t qn_const_int_n(qn_builder *b, int dtype, int64_t value);
QN_API uint64_t qn_const_float_n(qn_builder *b, int dtype, double value);
QN_API uint64_t qn_const_complex_n(qn_builder *b, int dtype, double re, double im);
QN_API uint64_t qn_extent_n(qn_builder *b, uint64_t view, int d);
QN_API uint64_t qn_lower_n(qn_builder *b, uint64_t view, int d);
/** qn_parallel, qn_reduction or qn_sequential: `kind` is QN_DIMENSION_PARALLEL, ... */
QN_API uint64_t qn_dimension_n(qn_builder *b, int kind, uint64_t begin, uint64_t end);
QN_API uint64_t qn_load_n(qn_builder *b, uint64_t view, int n, const uint64_t *index);
QN_API void qn_store_n(qn_builder *b, uint64_t view, int n, const uint64_t *index, uint64_t value);
QN_API uint64_t qn_atomic_n(qn_builder *b, int combine, uint64_t view, int n, const uint64_t *index,
                            uint64_t value, uint64_t compare);
/** qn_op, qn_cast, qn_bitcast. */
QN_API uint64_t qn_op_n(qn_builder *b, int op, int n, const uint64_t *args);
QN_API uint64_t qn_cast_n(qn_builder *b, int dtype, uint64_t x);
QN_API uint64_t qn_bitcast_n(qn_builder *b, int dtype, uint64_t x);
/** A complex number of two values, and the real (0) or imaginary (1) part of one. */
QN_API uint64_t qn_complex_n(qn_builder *b, uint64_t re, uint64_t im);
QN_API uint64_t qn_part_n(qn_builder *b, uint64_t z, int part);
/** qn_math and qn_invoke. `views` are numbers of view parameters. */
QN_API void qn_math_n(qn_builder *b, const char *name, int n, const uint64_t *args,
                      uint64_t *results);
QN_API void qn_invoke_n(qn_builder *b, const qn_function *f, int n_values, const uint64_t *values,
                        int n_views, const uint64_t *views, uint64_t *results);
/** qn_const_array and qn_lookup, and qn_if or qn_if_rare. */
QN_API uint32_t qn_const_array_n(qn_builder *b, int dtype, int64_t n, const void *elements);
QN_API uint64_t qn_lookup_n(qn_builder *b, uint32_t array, uint64_t index);
QN_API void qn_if_n(qn_builder *b, uint64_t condition, int is_rare);
QN_API void qn_else_n(qn_builder *b, int n, const uint64_t *values);
QN_API void qn_end_if_n(qn_builder *b, int n, const uint64_t *values, uint64_t *results);
QN_API uint64_t qn_for_n(qn_builder *b, uint64_t begin, uint64_t end, int64_t step, int n,
                         const uint64_t *init, uint64_t *carried);
QN_API void qn_end_for_n(qn_builder *b, int n, const uint64_t *next, uint64_t *results);
QN_API void qn_while_n(qn_builder *b, uint64_t max_trips, int n, const uint64_t *init,
                       uint64_t *carried);
QN_API void qn_do_n(qn_builder *b, uint64_t condition);
QN_API void qn_end_while_n(qn_builder *b, int n, const uint64_t *next, uint64_t *results);
QN_API void qn_reduce_n(qn_builder *b, int combine, int order, int n, const uint64_t *dims);
QN_API uint64_t qn_end_reduce_n(qn_builder *b, uint64_t value);
QN_API void qn_assert_n(qn_builder *b, uint64_t condition, const char *message, int n,
                        const uint64_t *values);
QN_API void qn_print_n(qn_builder *b, const char *message, int n, const uint64_t *values);
QN_API qn_status qn_function_finish_n(qn_builder *b, int n, const uint64_t *results,
                                      qn_function **out, qn_error *err);
/** Views of records, their fields, and values that are records. */
QN_API uint64_t qn_record_param_n(qn_builder *b, const char *name, const qn_record *record,
                                  int rank, uint32_t traits);
QN_API uint64_t qn_load_field_n(qn_builder *b, uint64_t view, int field, int n,
                                const uint64_t *index);
QN_API void qn_store_field_n(qn_builder *b, uint64_t view, int field, int n, const uint64_t *index,
                             uint64_t value);
QN_API uint64_t qn_field_of_n(qn_builder *b, uint64_t x, int field);
QN_API uint64_t qn_with_field_n(qn_builder *b, uint64_t x, int field, uint64_t value);
QN_API uint64_t qn_record_of_n(qn_builder *b, const qn_record *r, int n, const uint64_t *values);
/** Typed indices: the index kind is in the `id` of a value. */
QN_API void qn_param_kinds_n(qn_builder *b, uint64_t view, const uint8_t *kinds);
QN_API uint64_t qn_with_kind_n(qn_builder *b, uint64_t x, int kind);
/** Rows of different lengths. */
QN_API uint64_t qn_row_begin_n(qn_builder *b, uint64_t map, uint64_t row);
QN_API uint64_t qn_row_end_n(qn_builder *b, uint64_t map, uint64_t row);
QN_API uint64_t qn_row_at_n(qn_builder *b, uint64_t map, uint64_t row, uint64_t k);
QN_API uint64_t qn_for_row_n(qn_builder *b, uint64_t map, uint64_t row, int n, const uint64_t *init,
                             uint64_t *carried);
/** The body of a finished kernel. */
QN_API void qn_apply_n(qn_builder *b, const qn_kernel *k, int n_index, const uint64_t *index,
                       int n_values, const uint64_t *values, int n_views, const uint64_t *views);
/** Kinds of dimensions. */
enum { QN_DIMENSION_PARALLEL = 0, QN_DIMENSION_REDUCTION = 1, QN_DIMENSION_SEQUENTIAL = 2 };

/* ---------------------------------------------------------------- places in the source of the host
 */

/**
 * What is built from now on belongs to this place in the source of the caller's language: errors of
 * the builder, accesses out of bounds, races, and assertions that fail end with "; at
 * FILE:LINE:COLUMN", and qn_error.line is the line. `file` is copied and may be NULL; a line of 0
 * ends the place, a column of 0 is not shown. Equal values that are built at two places belong to
 * the first. Places are not part of a kernel's text.
 */
QN_API void qn_builder_at(qn_builder *b, const char *file, int line, int column);
/** Gives a value a name for messages, for names of dimensions in options, and for
 * qn_kernel_statement; the name is copied. The first name of a value stays. Inert values are
 * ignored. */
QN_API void qn_builder_name(qn_builder *b, qn_val x, const char *name);
QN_API void qn_builder_name_n(qn_builder *b, uint64_t x, const char *name);

/* ---------------------------------------------------------------- statements of a kernel */

/** The format of kernel text that this library writes and, with all below, reads
 * (docs/kernel-text.md). */
#define QN_TEXT_FORMAT 1
/** That of the library in use. */
QN_API int qn_text_format(void);

/** A statement of a kernel or function, as the text shows it. What a statement does not have is 0,
 * -1 or NULL. */
typedef struct qn_statement {
    const char *word; /**< keyword: "add", "load", "for", "parallel", "result", "carried"; static */
    int32_t op;       /**< QN_OP_...: of an op of quern/ops.def, else 0 */
    int32_t dtype;    /**< of its value; QN_VOID if it has none */
    const uint32_t *args; /**< [n_args]: numbers of the statements that are its operands; for views
                             of a call, of "view" */
    int32_t n_args;     /**< their number */
    uint32_t parent;    /**< the statement in one of whose regions it stands; 0 at the top */
    uint32_t region[3]; /**< its regions are the statements [region[0], region[1]) and [region[1],
                           region[2]), its successor is region[2]; all three are its number + 1 if
                           it has none */
    int32_t param; /**< the parameter of param, extent, lower, load, store, atomic, view; else -1 */
    int32_t dim;  /**< extent, lower: dimension of the view; parallel, reduction, sequential: of the
                     domain; else -1 */
    int32_t part; /**< the part of param, load, store */
    int32_t combine;  /**< QN_COMBINE_... of reduce and atomic, QN_N_COMBINES for an update in one
                         step; else -1 */
    int32_t order;    /**< QN_INDEXED, ... of reduce */
    int32_t which;    /**< number of the function of call, of the constant array of lookup, of the
                         value of carried and    result; 1 for a rare `if`; else 0 */
    uint64_t bits;    /**< value of const, low end first; step of for */
    const char *text; /**< message of assert and print, name of the function of call; else NULL */
    const char *name; /**< given by qn_builder_name, or NULL */
    const char *file; /**< the place given by qn_builder_at: NULL and 0 if there was none */
    int32_t line;     /**< of the place, from 1 */
    int32_t column;   /**< of the place, from 1; 0: none */
} qn_statement;
/** Number of statements; they have the numbers 1 to this one. 0 for NULL. */
QN_API int qn_kernel_n_statements(const qn_kernel *k);
/** Describes statement i. Pointers live as long as the kernel. `out_bytes` is sizeof *out. */
QN_API qn_status qn_kernel_statement(const qn_kernel *k, int i, qn_statement *out, size_t out_bytes,
                                     qn_error *err);
/** Number and descriptions of the statements of a function, whose last one is "return". */
QN_API int qn_function_n_statements(const qn_function *f);
QN_API qn_status qn_function_statement(const qn_function *f, int i, qn_statement *out,
                                       size_t out_bytes, qn_error *err);
/** Number of dimensions of the domain, and the statement that is dimension d; 0 if there is none.
 */
QN_API int qn_kernel_n_dims(const qn_kernel *k);
QN_API int qn_kernel_dim(const qn_kernel *k, int d);
/** The flags that it was made with: or of QN_CONTRACT, ... */
QN_API uint32_t qn_kernel_flags(const qn_kernel *k);
/** The number of the first parameter of this name, or -1. */
QN_API int qn_kernel_find_param(const qn_kernel *k, const char *name);
/** Function i that it calls, callees before callers, borrowed; NULL behind the last one. */
QN_API const qn_function *qn_kernel_function(const qn_kernel *k, int i);
/** Constant array i: its elements one by one as bits, low end first, in *bits, borrowed. Returns
 * their number, 0 behind the last array. `dtype` and `bits` may be NULL. */
QN_API int qn_kernel_array(const qn_kernel *k, int i, int *dtype, const uint64_t **bits);

#ifdef __cplusplus
}
#endif
#endif
