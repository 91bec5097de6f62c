/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ir.h: what the layers above see of ir/: errors, memory, layouts, views, the finished kernel
 * (ir/kernel.h), ranges, the interpreter. ir/ is pure C11: no LLVM, no CUDA, no threads, no I/O, no
 * environment.
 * A kernel is one flat array of instructions in program order. An instruction's number is its
 * value. An instruction with regions (if, for, while, reduce, an update) is followed by their
 * instructions, nested, so a region is a range of numbers:
 *
 *   i            if %c          region[0] = i+1   begin of the first region
 *   i+1 ...      then ... yield region[1]         begin of the second (== region[2] if there is
 * none)
 *   ...          else ... yield region[2]         one past the last region
 *   region[2]    result 0       the results of if, for and while follow as `result` instructions
 *
 * The last instruction of a region that is not empty is its yield.
 * An instruction without regions has region[0] = region[1] = region[2] = its number + 1. To walk a
 * region: for (i = begin; i < end; i = k->inst[i].region[2]). Instruction 0 is never used (number 0
 * is the inert value).
 *
 * The instructions before k->body (constants, parameters, extents, arithmetic on them, and the
 * `dim` instructions) are the prologue: uniform, evaluated once; they give the domain. The rest
 * runs once per iteration.
 */
#ifndef QN_IR_IR_H
#define QN_IR_IR_H

#include "ir/fpu.h"
#include "quern.h"

#include <stdarg.h>
#include <stdatomic.h>

/* ---------------------------------------------------------------- errors and memory (ir/core.c) */

/** Sets *err (if not NULL) and returns `status`. The one place where errors are made: break here.
 */
qn_status qn__fail(qn_error *err, qn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Puts `who` in place of the function whose name the message of a failure begins with. */
qn_status qn__fail_as(const char *who, qn_error *err, qn_status status);
/** qn__fail with the line of a kernel text. */
qn_status qn__fail_line(qn_error *err, qn_status status, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Takes a struct of a caller of another version, whose first field is its size, into the one of
 * this version; what the caller lacks is zero (ir/growth.c). `what` names the struct in messages.
 */
qn_status qn__struct_take(const char *who, const char *what, const void *from, void *to,
                          size_t known, qn_error *err);
/** Gives a struct of `known` bytes to a caller whose struct has `bytes`. */
void qn__struct_give(const void *from, size_t known, void *to, size_t bytes);

/** malloc, calloc, realloc and free of the library. In builds with QN_FAULTS the n-th call can be
 * made to fail. */
void *qn__alloc(size_t bytes);
void *qn__zalloc(size_t count, size_t bytes);
void *qn__realloc(void *p, size_t bytes);
void qn__free(void *p);
/** A copy of n elements with room for one more, which is zero; NULL without memory. */
void *qn__copy_array(const void *from, size_t n, size_t bytes);
/** A copy of a string, or NULL. */
char *qn__strdup(const char *s);
/** QN_FAULTS builds: the n-th allocation from now fails (0: none), and with `for_ever` all later
 * ones. */
void qn__fail_allocation(int64_t n, bool for_ever);

/** A growing text or byte buffer. All-zero is empty. After a failed allocation `failed` is set and
 * appends do nothing. */
typedef struct qn_text {
    char *data; /* zero-terminated when not NULL */
    size_t n, capacity;
    bool failed;
} qn_text;
/** As vsnprintf and snprintf, but the bytes depend on nothing that the host has set. */
int qn__vformat(char *out, size_t bytes, const char *format, va_list ap);
int qn__format(char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void qn__text_add(qn_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void qn__text_bytes(qn_text *t, const void *p, size_t n);
void qn__text_release(qn_text *t);
/** Copies like snprintf and returns t->n. */
size_t qn__text_out(const qn_text *t, char *buffer, size_t buffer_bytes);

/** What messages call a view, list or buffer without a label. */
static inline const char *qn__label(const char *label) { return label ? label : "(no label)"; }
/** 64-bit hash of bytes (FNV-1a folded by a final mix); finds, never proves. */
uint64_t qn__hash(const void *p, size_t n, uint64_t seed);

/* ---------------------------------------------------------------- dtypes (ir/core.c) */

enum { QN_CLASS_B = 1, QN_CLASS_S = 2, QN_CLASS_U = 4, QN_CLASS_F = 8, QN_CLASS_C = 16 };
/** Why a number is the dtype of no element, for messages: at most NO_DTYPE_BYTES in `out`, which is
 * returned. */
enum { NO_DTYPE_BYTES = 100 };
const char *qn__no_dtype(int dtype, char *out);
/** Why a number is no combination of a reduction, or of an atomic, in the same way. */
enum { NO_COMBINE_BYTES = 200 };
const char *qn__no_combine(int combine, bool is_reduction, char *out);
/** "sum", ...; NULL for unknown numbers. */
const char *qn__combine_name(int combine);
/** Text of up to 16 numbers, "[3,4]", as messages show extents and indices. */
void qn__print_numbers(char *text, size_t bytes, int n, const int64_t *number);
/** An unknown word and, after qn__nearest_add with all known ones, the nearest of those that are
 * near, or NULL. */
typedef struct qn_nearest {
    const char *text; /* the unknown word */
    size_t n;
    const char *best, *prefix; /* the known one, and what was given with it */
    int distance;
} qn_nearest;
void qn__nearest_add(qn_nearest *s, const char *prefix, const char *candidate);
/** QN_CLASS_..., 0 for unknown dtypes. */
int qn__dtype_class(int dtype);
/** Width in bits as the ops see it: 1 for bool. */
int qn__dtype_width(int dtype);
static inline bool qn__is_integer(int dtype)
{
    return (qn__dtype_class(dtype) & (QN_CLASS_S | QN_CLASS_U)) != 0;
}
/** The numbers that an element of a dtype consists of: itself, or f32 or f64 of a complex one. */
int qn__dtype_part(int dtype);
/** The unsigned integer of so many bytes, or QN_VOID. */
int qn__dtype_of_bits(int64_t bytes);
/** Bit d: dtype d is a float narrower than f32. */
#define QN_NARROW_B(number, bytes) 0u
#define QN_NARROW_S(number, bytes) 0u
#define QN_NARROW_U(number, bytes) 0u
#define QN_NARROW_C(number, bytes) 0u
#define QN_NARROW_F(number, bytes) ((bytes) < 4 ? 1u << (number) : 0u)
enum {
    QN_NARROW_FLOATS = 0u
#define QN_DTYPE(NAME, number, text, bytes, cls, ...) | QN_NARROW_##cls(number, bytes)
#include "quern/dtypes.def"
#undef QN_DTYPE
};
/** f16 and bf16. Finished kernels load, store, select, carry and bitcast them, and cast them from
 * and to f32 only: all else is expanded when it is built (ir/build/half.c). Their canonical form is
 * that of u16. */
static inline bool qn__is_half(int dtype)
{
    return ((unsigned)QN_NARROW_FLOATS >> dtype & 1) != 0;
}
/** Bits of the fraction and of +infinity of a float dtype. */
typedef struct qn_float_format {
    int fraction_bits, bias;
    uint64_t infinity;
} qn_float_format;
qn_float_format qn__float_format(int dtype);
/** Canonical 64-bit form of a value: bool 0 or 1, signed sign-extended, unsigned zero-extended, f32
 * in the low half. */
uint64_t qn__canonical(int dtype, uint64_t bits);
/** Loads an element (canonical form) and stores one; `p` need not be aligned. */
uint64_t qn__load_element(int dtype, const void *p);
void qn__store_element(int dtype, void *p, uint64_t bits);

/* ---------------------------------------------------------------- records and parts (ir/record.c)
 */

/** A part of an element: a scalar and where it stands. */
typedef struct qn_part {
    int32_t dtype, offset; /* bytes */
} qn_part;

typedef struct qn_record_entry {
    char *name; /* or NULL */
    int32_t dtype, offset, first_part;
} qn_record_entry;

struct qn_record {
    _Atomic int64_t references;
    int64_t bytes;
    int32_t align, n_fields, n_parts;
    qn_record_entry field[QN_MAX_FIELDS];
    qn_part part[2 * QN_MAX_FIELDS];
};

/** The parts of elements of a dtype (and record, if it is one); the only part of a scalar is
 * itself. */
int qn__n_parts(int dtype, const qn_record *record);
/** Whether an element is made of parts, maybe of one: complex numbers and records. */
static inline bool qn__has_parts(int dtype)
{
    return dtype == QN_RECORD || qn__dtype_class(dtype) == QN_CLASS_C;
}
int qn__part_dtype(int dtype, const qn_record *record, int part);
int64_t qn__part_offset(int dtype, const qn_record *record, int part);
/** What the address of an element must be a multiple of. */
int64_t qn__dtype_align(int dtype, const qn_record *record);
/** Appends "record 16 align 8 {f32 0, f64 8}". */
void qn__record_print(const qn_record *r, qn_text *out);

/* ---------------------------------------------------------------- layouts (ir/layout/layout.c) */

/**
 * What the positions of a dimension stand for: a list of indices, or the members of a MultiView.
 * Counted and immutable; the list's memory is not. A part of a table refers to the whole one, which
 * alone owns something.
 */
typedef struct qn_table {
    _Atomic int64_t references;
    struct qn_table *whole;                /* NULL: this one; else counted */
    void (*release)(struct qn_table *);    /* drops what the whole table owns; the runtime's */
    bool is_members; /* values are offsets of members, trusted; else indices of a list */
    bool is_disjoint;                      /* members share no byte */
    int32_t space;                         /* of the values */
    const int64_t *value;                  /* of the first position */
    int64_t stride, n;                     /* of the positions */
    int64_t lower, extent;                 /* range of the values: the dimension underneath */
    int64_t low, high;                     /* of members: offsets that belong to each */
    const char *label; /* of list or MultiView, as long as the whole table lives; may be NULL */
    struct qn_holder *holder;              /* of the whole table: what the runtime keeps alive */
} qn_table;
/** What a kernel sees of the values of members: any offset, so that code does not depend on
 * addresses. */
#define QN_MEMBER_EXTENT (INT64_C(1) << 62)

struct qn_digits {
    _Atomic int64_t references;
    uint32_t tables; /* bit d: dimension d has a table, and its digits are those of the values */
    qn_table *table[QN_MAX_RANK];
    struct qn_digits
        *expanded; /* digits of the layout that kernels see, see qn__layout_expand; may be NULL */
    int32_t first[QN_MAX_RANK + 1]; /* digits of dimension d: digit[first[d]] ..
                                       digit[first[d+1]-1], fastest first */
    int32_t n;
    qn_digit digit[QN_MAX_DIGITS]; /* the last digit of a dimension holds what is left; its extent
                                      is exact */
};

/** Digits of dimension d without copying: *n of them. For one-digit dimensions *one is filled and
 * returned. */
const qn_digit *qn__layout_dim_digits(const qn_layout *l, int d, qn_digit *one, int *n);
/** The table of dimension d, or NULL. */
static inline const qn_table *qn__layout_table(const qn_layout *l, int d)
{
    return l->digits && (l->digits->tables >> d & 1) ? l->digits->table[d] : NULL;
}
/** Bit d: dimension d has a table. */
static inline uint32_t qn__layout_tables(const qn_layout *l)
{
    return l->digits ? l->digits->tables : 0;
}
/** The dimension of members of a MultiView, or -1. */
int qn__layout_members(const qn_layout *l);
/** The layout with a table for dimension d; takes over the reference on success. */
qn_status qn__layout_with_table(const qn_layout *l, int d, qn_table *table, qn_layout *out,
                                const char *who, qn_error *err);
/** Replaces positions, which are in range, by values; fails with dimension, position and value if a
 * list is wrong, and with its space if the host does not reach it. */
qn_status qn__layout_look_up(const qn_layout *l, const int64_t *index, int64_t *values,
                             const char *who, qn_error *err);
/**
 * The layout that kernels see: a table's dimension has the range of the values, and for each table
 * in order a dimension of stride 0 follows that has its positions. A borrow. False if there are
 * more than QN_MAX_RANK.
 */
bool qn__layout_expand(const qn_layout *l, qn_layout *out);
/** Whether the host may read the values. */
static inline bool qn__table_is_readable(const qn_table *t)
{
    return qn_exec_can_access(QN_EXEC_SERIAL, t->space);
}
/** QN_ERR_SPACE if it may not. */
qn_status qn__table_check_readable(const qn_table *t, int d, const char *who, qn_error *err);
static inline int64_t qn__table_value(const qn_table *t, int64_t position)
{
    return t->value[position * t->stride];
}
/** Whether iterations may store through it without checks: different values have different offsets,
 * and so have members (what positions of a list share is the caller's promise). */
bool qn__layout_is_storable(const qn_layout *l);
/** Fails if two positions of a list are equal, or one is out of range. Lists that the host does not
 * reach pass. */
qn_status qn__layout_check_lists(const qn_layout *l, const char *who, qn_error *err);
/** The layout of the member at position p (from 0) of dimension d, relative to the same data: a
 * borrow of `l`, whose digits stand in *digits. */
void qn__layout_member(const qn_layout *l, int d, int64_t p, qn_layout *out, qn_digits *digits);
/** A part of a table: positions first, first + step, ..., n of them. NULL without memory. */
qn_table *qn__table_part(qn_table *t, int64_t first, int64_t step, int64_t n);
/** Whether two tables, or NULL, have the same positions of the same memory. */
bool qn__table_equal(const qn_table *a, const qn_table *b);
void qn__table_retain(qn_table *t);
void qn__table_release(qn_table *t);
/** Offset of an index tuple that is known to be in range; wraps. Values in the place of positions.
 */
int64_t qn__layout_offset_of(const qn_layout *l, const int64_t *index);
/** Checks a hand-made layout: rank, extents, digit products, offsets. `who` starts the message. */
qn_status qn__layout_check(const qn_layout *l, const char *who, qn_error *err);
/** qn_layout_slice of a layout that was checked. */
qn_status qn__layout_cut(const qn_layout *l, int n, const qn_slice *slices, qn_layout *out,
                         qn_error *err);
/** Same function? Compares extents, lower bounds and digits (not origin), skipping strides of
 * extent-1 digits. */
bool qn__layout_equal(const qn_layout *a, const qn_layout *b);

/* ---------------------------------------------------------------- views (ir/view.c, storage in
 * runtime/) */

/** Traits that parameters may have, and all. Bounds policies are the caller's, never the kernel's.
 */
#define QN_PARAM_TRAITS                                                                            \
    ((uint32_t)(QN_READ_ONLY | QN_ATOMIC | QN_RESTRICT | QN_RANDOM_ACCESS | QN_ALIGNED |           \
                QN_STREAMING))
#define QN_ALL_TRAITS (QN_PARAM_TRAITS | (uint32_t)(QN_UNCHECKED | QN_CLAMPED))
/** The bounds policy of accesses to an argument in a launch with policy `checks`. */
static inline int qn__checks_of(const qn_view *v, int checks)
{
    return v->traits & QN_UNCHECKED ? QN_CHECKS_NONE
           : v->traits & QN_CLAMPED ? QN_CHECKS_CLAMP
                                    : checks;
}

/** Checks the struct of a view: dtype, space, layout, data, alignment. `who` starts the message. */
qn_status qn__view_check(const qn_view *v, const char *who, qn_error *err);
/** Bytes of an element, and of what offsets and strides count. */
static inline int64_t qn__element_bytes(const qn_view *v)
{
    return v->dtype == QN_RECORD ? qn_record_bytes(v->record) : qn_dtype_bytes(v->dtype);
}
static inline int64_t qn__unit_bytes(const qn_view *v)
{
    return v->unit ? (int64_t)v->unit : qn__element_bytes(v);
}
/** What is known of the addresses of all elements: they are multiples of this, for a view that was
 * checked. */
int64_t qn__view_align(const qn_view *v);
/** qn__layout_is_storable, and elements share no byte. */
bool qn__view_is_storable(const qn_view *v);
/** The byte addresses relative to data: [*begin, *end) of all elements of a checked view; 0, 0 if
 * it is empty. */
void qn__view_bytes(const qn_view *v, int64_t *begin, int64_t *end);
/** Relation of two views' elements. Decided on elements where strides allow, else on byte ranges.
 */
enum { QN_DISJOINT = 0, QN_SAME = 1, QN_OVERLAPPING = 2 };
int qn__view_relation(const qn_view *a, const qn_view *b);

/* ---------------------------------------------------------------- view types (ir/view_type.c) */

/** Checks the struct of a type. */
qn_status qn__view_type_check(const char *who, const qn_view_type *type, qn_error *err);
/** The extents of all dimensions from n given ones, see qn_view_type_layout. The type was checked.
 */
qn_status qn__view_type_extents(const char *who, const char *label, const qn_view_type *type, int n,
                                const int64_t *extents, int64_t *out, int *rank, qn_error *err);
/** qn_is_assignable for the functions that assign. */
qn_status qn__assign_check(const char *who, const qn_view_type *type, const qn_view *v,
                           qn_error *err);
/** The claim QN_ALIGNED. */
qn_status qn__check_aligned(const char *who, const qn_view *v, qn_error *err);
/** Whether extents of a type become a Left layout: asked for, or the default of a space whose code
 * runs on a GPU. */
static inline bool qn__type_is_left(const qn_view_type *type)
{
    bool is_gpu = type->space == QN_SPACE_CUDA || type->space == QN_SPACE_CUDA_MANAGED ||
                  type->space == QN_SPACE_ROCM;
    return type->family == QN_FAMILY_LEFT || (type->family == QN_FAMILY_ANY && is_gpu);
}
/** Bytes of an element of a type. */
static inline int64_t qn__type_bytes(const qn_view_type *type)
{
    return type->dtype == QN_RECORD ? qn_record_bytes(type->record) : qn_dtype_bytes(type->dtype);
}
/** The traits of views of a type. */
static inline uint32_t qn__type_traits(const qn_view_type *type)
{
    return type->traits | (type->read_only ? (uint32_t)QN_READ_ONLY : 0);
}

/* ---------------------------------------------------------------- kernels */

#include "ir/kernel.h"

/* ---------------------------------------------------------------- evaluation (ir/eval.c) */

/** Value of a table op for canonical operands, in canonical form. `type` is that of the operands T
 * (rule SELECT: of the second and third). This is the reference meaning. */
uint64_t qn__eval_op(int op, int type, uint64_t a, uint64_t b, uint64_t c);
/** Value of cast and bitcast. */
uint64_t qn__eval_cast(int to, int from, uint64_t bits);
uint64_t qn__eval_bitcast(int to, int from, uint64_t bits);
/** Both without a guard, for who has entered the default environment (ir/fpu.h); qn__eval_combine
 * has none either. */
uint64_t qn__raw_op(int op, int type, uint64_t a, uint64_t b, uint64_t c);
uint64_t qn__raw_cast(int to, int from, uint64_t bits);
/** One step of a reduction: accumulated op next. */
uint64_t qn__eval_combine(int combine, int type, uint64_t accumulated, uint64_t next);
/** What masked lanes and empty partials hold: -0.0 for sums, 1, +-inf, the type's extremes. */
uint64_t qn__reduce_identity(int combine, int type);
/** The result of a reduction over an empty range: 0, 1, the type's largest/lowest finite value, all
 * ones, 0. */
uint64_t qn__reduce_empty(int combine, int type);

/** Canonical bits of a part of a scalar argument, see qn_arg; `dtype` is that of the part. */
static inline uint64_t qn__arg_part(int dtype, uint64_t bits, uint64_t high, int part)
{
    if (part == 0)
        return qn__canonical(dtype, bits);
    return qn_dtype_bytes(dtype) == 4 ? bits >> 32 : high;
}

/* ---------------------------------------------------------------- pins (ir/pin.c) */

/** By QN_PIN_EXTENT, ...: "extent". */
extern const char *const qn__pin_names[];
/** A larger power of two is worth no more: steps of vectors and blocks of threads are no longer. */
enum { QN_MOST_MULTIPLE = 4096 };
/** The largest power of two up to QN_MOST_MULTIPLE that divides n. */
static inline int32_t qn__power_of(int64_t n)
{
    uint64_t bits = (uint64_t)n | (uint64_t)QN_MOST_MULTIPLE;
    return (int32_t)(bits & (0 - bits));
}
/** Adds a pin that is right, or was checked, to those of its parameter. */
void qn__pin_add(qn_pinned *pinned, const qn_fact_pin *pin);
/** Whether pins[i] is a pin of these parameters and contradicts none before it and none of theirs;
 * `who` begins the message. */
qn_status qn__pin_check(const char *who, const qn_fact_pin *pins, int i, int n_params,
                        const qn_kernel_parameter *params, qn_error *err);

/* ---------------------------------------------------------------- domain and ranges (ir/range.c)
 */

typedef struct qn_interval {
    int64_t low, high; /* both included; as int64 for all integers; u64 above INT64_MAX: full;
                          canonical bits of floats */
    bool may_be_nan;   /* of floats */
} qn_interval;
/** All values of a type. */
qn_interval qn__interval_of_type(int type);
/** That of a constant of a type of floats. */
qn_interval qn__float_const(int type, uint64_t bits);
/** Of a pure instruction, given those of its operands, value[number]. */
qn_interval qn__interval_of_pure(const qn_kernel *k, const qn_interval *value, uint32_t i);

/** Of a pure instruction, given those of its operands, in their order. */
qn_interval qn__interval_of_operands(const qn_kernel *k, uint32_t i, const qn_interval *operand);

/** What the prologue needs of an argument. */
typedef struct qn_arg_value {
    const qn_layout *layout; /* of a view */
    uint64_t bits, high;     /* of a scalar, as in qn_arg */
    bool has_offsets;        /* its elements are offsets of members, see QN_MEMBER_EXTENT */
} qn_arg_value;

/** The domain for given arguments. */
typedef struct qn_domain {
    int64_t begin[QN_MAX_RANK], end[QN_MAX_RANK];
    bool is_empty;       /* a parallel or sequential dimension is empty: nothing runs */
    uint32_t reversed; /* bit d: the kernel's end of dimension d is below its begin; the end here is
                          the begin */
    uint32_t scalars[2]; /* bit p: scalar parameter p takes part in the prologue's dims (64
                            parameters) */
} qn_domain;
/** Evaluates the prologue. Errors: QN_ERR_OVERFLOW (too many iterations for int64), and if it is
 * strict QN_ERR_RANGE for a begin above its end, which else is an empty range. */
qn_status qn__domain(const qn_kernel *k, const qn_arg_value *args, bool is_strict, qn_domain *out,
                     qn_error *err);
/** qn__domain for arguments that were checked (ir/work.c). */
qn_status qn__arg_domain(const qn_kernel *k, const qn_arg *args, bool is_strict, qn_domain *out,
                         qn_error *err);
/** What a launch on checked arguments moves and computes; 0 of both if the domain cannot be had. */
qn_status qn__work_of(const qn_kernel *k, const qn_arg *args, qn_work *out, qn_error *err);
/** What is proved of an access: every index is in range for all iterations; it is so wherever the
 * access is performed, by the conditions around it. */
enum { QN_IN_RANGE = 1, QN_GUARDED = 2 };
/** Interval analysis of all values over the domain; sets proved[site] of each access to what is
 * proved of it, or to 0. `proved` has k->n_accesses entries. Sound; false on lack of memory. */
bool qn__prove_bounds(const qn_kernel *k, const qn_arg_value *args, const qn_domain *domain,
                      uint8_t *proved);

/* ---------------------------------------------------------------- the fault record */

/** First failure of a launch in iteration order. Shared by the interpreter and generated code
 * (fixed layout). */
typedef struct qn_fault {
    uint64_t iteration; /* linear number of the parallel/sequential iteration (dims as declared,
                           first slowest, without reduction dims), UINT64_MAX: none */
    uint64_t point;     /* linear number over the reduction dims inside a reduce, else 0 */
    int64_t site; /* index in k->access; or -1 - number of the `while` instruction for QN_ERR_LIMIT;
                     in a function qn__site_in_function and QN_SITE_UNKNOWN; of an assertion
                     qn__site_of_assert */
    int64_t status; /* QN_ERR_BOUNDS, QN_ERR_LIMIT, QN_ERR_ASSERT; of a watched run also QN_ERR_RACE
                       and QN_ERR_NAN */
    int64_t index[QN_MAX_RANK]; /* of the access; of an assertion the bits of its values */
    const volatile int32_t *
        cancel; /* not 0: the launch is to end. Never NULL on the host; whoever ends for that reason
                   sets status to QN_ERR_CANCELLED, and only that, whatever else is in the record */
} qn_fault;
/** So many looks at the word of cancellation behind an access that was out of range before all that
 * is left, a launch ends; the interpreter, whose looks are of more work, after an eighth. Less runs
 * to its end. */
enum { QN_MOST_LOOKS_BEHIND = 1 << 13 };
/** Whether a flag that stops a launch is set; its owner writes it from another thread, or in a
 * signal handler. */
static inline bool qn__is_stopped(const volatile int32_t *flag)
{
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}
/** The site of an access in a function that the interpreter called: it names the view argument. */
static inline int64_t qn__site_in_function(int argument) { return -1 - (int64_t)argument; }
#define QN_SITE_UNKNOWN INT64_MIN
/** The site of assertion or print i of the kernel (function 0), or of its function number
 * `function`
 * - 1. */
static inline int64_t qn__site_of_assert(int function, uint32_t i)
{
    return -1 - ((int64_t)function << 32 | (int64_t)i);
}
/** That number of a function's body among those that a kernel calls; 0 for the kernel's own
 * instructions (ir/function.c). */
int qn__number_of_function(const qn_kernel *k, const qn_kernel *body);
/** The instruction that such a site names, and in *in the kernel or body that has it (ir/fault.c).
 */
uint32_t qn__inst_of_site(const qn_kernel *k, int64_t site, const qn_kernel **in);
/** What a launch that cannot be cancelled looks at. */
extern const int32_t qn__never;
static inline void qn__fault_clear(qn_fault *f, const volatile int32_t *cancel)
{
    f->iteration = UINT64_MAX;
    f->status = QN_OK;
    f->cancel = cancel;
}
/** Appends the text of a value of a dtype; a float has the fewest digits that give its bits again
 *  (ir/value_text.c). */
void qn__text_value(qn_text *t, int dtype, uint64_t bits);
/** Reads a decimal or hex number, all of n bytes, exactly; false: it is none, or has a sign. */
bool qn__read_number(const char *text, size_t n, double *value);
/** Appends `before` and "iteration (2,7)", the indices of parallel and sequential dimensions;
 * nothing without such. */
void qn__text_iteration(qn_text *t, const qn_kernel *k, uint64_t iteration, const qn_domain *domain,
                        const char *before);
/** Appends '[3,4] of view "x", argument 0': the element that the access of a record meant. */
void qn__text_element(qn_text *t, const qn_kernel *k, const qn_fault *f, const qn_arg *args);
/** The domain of arguments that were checked; an empty one if they are none. */
void qn__domain_of_args(const qn_kernel *k, int n, const qn_arg *args, qn_domain *out);
/** Turns a fault into err: kernel, view label, argument, dimension, indices, extents. Returns the
 * status. */
qn_status qn__fault_report(const qn_kernel *k, const qn_fault *f, int n, const qn_arg *args,
                           qn_error *err);

/* ---------------------------------------------------------------- the interpreter (ir/interp.c) */

/** Where lines are printed, see ir/printed.h. */
typedef struct qn_print_buffer {
    int64_t *word; /* [1 + lines][qn__printed_words()] */
    int64_t lines; /* at most so many are kept */
} qn_print_buffer;

/** About how much stack the interpreter takes for the regions of a kernel, in bytes; four times as
 * much is enough with sanitizers too. */
size_t qn__interpret_stack(const qn_kernel *k);
/** Runs a kernel whose arguments were checked. `checks`: QN_CHECKS_...; faults go to *fault (first
 * in iteration order). Complete and portable: the definition of every instruction. Errors: memory
 * only. */
qn_status qn__interpret(const qn_kernel *k, int n, const qn_arg *args, const qn_domain *domain,
                        int checks, qn_fault *fault, qn_error *err);
/** Runs a kernel as qn__interpret while it looks for what `debug` says, bits QN_DEBUG_..., and
 * keeps what is printed if `printed` (ir/printed.h) is not NULL: returns QN_ERR_RACE or QN_ERR_NAN,
 * with its message, if that is the first failure; QN_ERR_MEMORY also without room to find races
 * (ir/watch.c). */
qn_status qn__interpret_debugged(const qn_kernel *k, int n, const qn_arg *args,
                                 const qn_domain *domain, int checks, int debug,
                                 const qn_print_buffer *printed, qn_fault *fault, qn_error *err);

#endif
