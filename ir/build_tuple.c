/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_tuple.c: complex numbers and records, expanded while a kernel is built. The builder holds such a value as a tuple
 * instruction that names its parts, all of them scalars; ops on it are ops on the parts, and loads and stores move parts.
 * Finished kernels have no tuples. Where values pass through regions, a tuple stands for its parts, one after the other.
 */
#include "ir/builder.h"

#include <string.h>

enum { MOST_PARTS = 2 * QN_MAX_FIELDS };

/* ---------------------------------------------------------------- tuples */

static const qn_record *record_of(const qn_builder *b, uint32_t tuple)
{
    const qn_inst *x = &b->inst[tuple];
    return x->type == QN_RECORD ? b->record[x->imm] : NULL;
}

static bool is_complex(const qn_builder *b, uint32_t i)
{
    return qn__dtype_class(b->inst[i].type) == QN_CLASS_C;
}

/** A value of these parts: a tuple, or the only part itself. `record` is a number, see qn__builder_record. */
static uint32_t append_value(qn_builder *b, const char *who, int dtype, int record, const uint32_t *parts)
{
    int n = qn__n_parts(dtype, dtype == QN_RECORD ? b->record[record] : NULL);
    for (int i = 0; i < n; i++)
        if (parts[i] == 0)
            return 0;
    if (n == 1 && dtype != QN_RECORD)
        return parts[0];
    qn_inst x = {.op = QN_I_TUPLE, .type = (uint8_t)dtype, .imm = (uint64_t)record};
    return qn__append_numbered(b, who, x, (uint32_t)n, parts);
}

int qn__builder_record(qn_builder *b, const char *who, const qn_record *record)
{
    if (!record) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: record is NULL", who);
        return -1;
    }
    for (int i = 0; i < b->n_records; i++)
        if (qn_record_equal(b->record[i], record))
            return i;
    if (b->n_records == QN_MAX_PARAMS) {
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: more than %d record types", who, QN_MAX_PARAMS);
        return -1;
    }
    b->record[b->n_records] = qn_record_retain(record);
    return b->n_records++;
}

/** Field i of a record; an error if there is none. */
static const qn_record_entry *find_field(qn_builder *b, const char *who, const qn_record *r, int field)
{
    if (r && field >= 0 && field < r->n_fields)
        return &r->field[field];
    if (r)
        qn__builder_fail(b, QN_ERR_NOT_FOUND, "%s: the record has %d fields, none has number %d", who, r->n_fields,
                         field);
    else
        qn__builder_fail(b, QN_ERR_TYPE, "%s: no record", who);
    return NULL;
}

qn_val qn__value_part(qn_builder *b, qn_val v, int part)
{
    const char *who = "part";
    uint32_t i;
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "value", v, &i))
        return (qn_val){0};
    if (b->inst[i].op != QN_I_TUPLE || part < 0 || part >= b->inst[i].n_args)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s has no part %d", who, qn_dtype_name(b->inst[i].type), part);
    return (qn_val){qn__builder_args(b, i)[part]};
}

/* ---------------------------------------------------------------- through regions */

bool qn__flatten(qn_builder *b, const char *who, const char *what, int n, const qn_val *values, qn_flat *out)
{
    uint32_t number[QN_MAX_CARRIED];
    out->n = out->n_values = 0;
    if (!qn__use_list(b, who, what, n, values, number))
        return false;
    for (int i = 0; i < n; i++) {
        const qn_inst *x = &b->inst[number[i]];
        bool is_tuple = x->op == QN_I_TUPLE;
        int n_parts = is_tuple ? x->n_args : 1;
        if (out->n + n_parts > QN_MAX_CARRIED) {
            qn__builder_fail(b, QN_ERR_LIMIT, "%s: %ss of more than %d parts", who, what, QN_MAX_CARRIED);
            return false;
        }
        for (int p = 0; p < n_parts; p++)
            out->value[out->n++] = is_tuple ? (qn_val){qn__builder_args(b, number[i])[p]} : values[i];
        out->shape[out->n_values++] = is_tuple ? (uint16_t)(x->type | x->imm << 8) : 0;
    }
    return true;
}

void qn__unflatten(qn_builder *b, const char *who, int n_values, const uint16_t *shape, const qn_val *flat,
                   qn_val *out)
{
    uint32_t parts[MOST_PARTS];
    for (int i = 0; i < n_values && out; i++) {
        if (shape[i] == 0) {
            out[i] = *flat++;
            continue;
        }
        int dtype = shape[i] & 0xff, record = shape[i] >> 8;
        int n = qn__n_parts(dtype, dtype == QN_RECORD ? b->record[record] : NULL);
        for (int p = 0; p < n; p++)
            parts[p] = qn__number(*flat++);
        out[i] = (qn_val){append_value(b, who, dtype, record, parts)};
    }
}

/* ---------------------------------------------------------------- complex numbers */

static uint32_t op1(qn_builder *b, const char *who, int op, uint32_t x)
{
    return x ? qn__append_op(b, who, op, &x) : 0;
}

static uint32_t op2(qn_builder *b, const char *who, int op, uint32_t x, uint32_t y)
{
    const uint32_t args[2] = {x, y};
    return x && y ? qn__append_op(b, who, op, args) : 0;
}

static uint32_t choose(qn_builder *b, const char *who, uint32_t condition, uint32_t x, uint32_t y)
{
    const uint32_t args[3] = {condition, x, y};
    return condition && x && y ? qn__append_op(b, who, QN_OP_select, args) : 0;
}

static uint32_t append_complex(qn_builder *b, const char *who, int dtype, uint32_t re, uint32_t im)
{
    const uint32_t parts[2] = {re, im};
    return append_value(b, who, dtype, 0, parts);
}

/** (a + bi)(c + di) */
static uint32_t append_product(qn_builder *b, const char *who, int dtype, const uint32_t *x, const uint32_t *y)
{
    uint32_t re = op2(b, who, QN_OP_sub, op2(b, who, QN_OP_mul, x[0], y[0]), op2(b, who, QN_OP_mul, x[1], y[1]));
    uint32_t im = op2(b, who, QN_OP_add, op2(b, who, QN_OP_mul, x[0], y[1]), op2(b, who, QN_OP_mul, x[1], y[0]));
    return append_complex(b, who, dtype, re, im);
}

/** The quotient by the larger part of the divisor (Smith, 1962), which neither overflows nor loses small parts early. */
static uint32_t append_quotient(qn_builder *b, const char *who, int dtype, const uint32_t *x, const uint32_t *y)
{
    uint32_t swaps = op2(b, who, QN_OP_lt, op1(b, who, QN_OP_abs, y[0]), op1(b, who, QN_OP_abs, y[1]));
    uint32_t large = choose(b, who, swaps, y[1], y[0]), small = choose(b, who, swaps, y[0], y[1]);
    uint32_t first = choose(b, who, swaps, x[1], x[0]), second = choose(b, who, swaps, x[0], x[1]);
    uint32_t ratio = op2(b, who, QN_OP_div, small, large);
    uint32_t divisor = op2(b, who, QN_OP_add, large, op2(b, who, QN_OP_mul, small, ratio));
    uint32_t re = op2(b, who, QN_OP_add, first, op2(b, who, QN_OP_mul, second, ratio));
    uint32_t im = op2(b, who, QN_OP_sub, second, op2(b, who, QN_OP_mul, first, ratio));
    im = choose(b, who, swaps, op1(b, who, QN_OP_neg, im), im);
    return append_complex(b, who, dtype, op2(b, who, QN_OP_div, re, divisor), op2(b, who, QN_OP_div, im, divisor));
}

/** eq and ne of tuples: of all parts. */
static uint32_t append_comparison(qn_builder *b, const char *who, int op, int n, const uint32_t *x, const uint32_t *y)
{
    uint32_t all = 0;
    for (int p = 0; p < n; p++) {
        uint32_t part = op2(b, who, op, x[p], y[p]);
        all = p ? op2(b, who, op == QN_OP_eq ? QN_OP_and : QN_OP_or, all, part) : part;
    }
    return all;
}

/** The parts of a tuple; a copy, since appending moves the operands. */
static int copy_parts(const qn_builder *b, uint32_t tuple, uint32_t *out)
{
    int n = b->inst[tuple].n_args;
    for (int p = 0; p < n; p++)
        out[p] = qn__builder_args(b, tuple)[p];
    return n;
}

static qn_val fail_op(qn_builder *b, const char *who, int dtype)
{
    return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s: type not taken", who, qn_dtype_name(dtype));
}

qn_val qn__tuple_op(qn_builder *b, const char *who, int op, int n, const uint32_t *a)
{
    uint32_t x[MOST_PARTS], y[MOST_PARTS] = {0};
    int first = op == QN_OP_select ? 1 : 0, dtype = b->inst[a[first]].type;
    bool is_same = b->inst[a[first]].op == QN_I_TUPLE;
    for (int i = first + 1; i < n; i++)
        is_same = is_same && b->inst[a[i]].op == QN_I_TUPLE && b->inst[a[i]].type == dtype &&
                  b->inst[a[i]].imm == b->inst[a[first]].imm;
    if (!is_same || (first && b->inst[a[0]].type != QN_BOOL))
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s, %s: types differ", who, qn_dtype_name(b->inst[a[0]].type),
                                qn_dtype_name(b->inst[a[n - 1]].type));
    int n_parts = copy_parts(b, a[first], x), record = (int)b->inst[a[first]].imm;
    if (n > first + 1)
        copy_parts(b, a[first + 1], y);
    if (op == QN_OP_select) {
        for (int p = 0; p < n_parts; p++)
            x[p] = choose(b, who, a[0], x[p], y[p]);
        return (qn_val){append_value(b, who, dtype, record, x)};
    }
    if (!is_complex(b, a[first]))
        return fail_op(b, who, dtype);
    switch (op) {
    case QN_OP_add:
    case QN_OP_sub:
        return (qn_val){append_complex(b, who, dtype, op2(b, who, op, x[0], y[0]), op2(b, who, op, x[1], y[1]))};
    case QN_OP_mul:
        return (qn_val){append_product(b, who, dtype, x, y)};
    case QN_OP_div:
        return (qn_val){append_quotient(b, who, dtype, x, y)};
    case QN_OP_neg:
        return (qn_val){append_complex(b, who, dtype, op1(b, who, op, x[0]), op1(b, who, op, x[1]))};
    case QN_OP_eq:
    case QN_OP_ne:
        return (qn_val){append_comparison(b, who, op, n_parts, x, y)};
    default:
        return fail_op(b, who, dtype);
    }
}

qn_val qn__tuple_cast(qn_builder *b, const char *who, int dtype, uint32_t x)
{
    uint32_t parts[2] = {x, 0};
    int part_dtype = qn__part_dtype(dtype, NULL, 0);
    if (qn__dtype_class(dtype) != QN_CLASS_C || b->inst[x].type == QN_RECORD)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s to %s: take a part", who, qn_dtype_name(b->inst[x].type),
                                qn_dtype_name(dtype));
    if (is_complex(b, x))
        copy_parts(b, x, parts);
    else
        parts[1] = qn__append_const(b, who, part_dtype, 0);
    for (int p = 0; p < 2; p++)
        parts[p] = parts[p] ? qn__append_cast(b, who, part_dtype, parts[p]) : 0;
    return (qn_val){append_value(b, who, dtype, 0, parts)};
}

qn_val qn__complex_const(qn_builder *b, const char *who, int dtype, uint64_t re, uint64_t im)
{
    int part_dtype = qn__part_dtype(dtype, NULL, 0);
    return (qn_val){append_complex(b, who, dtype, qn__append_const(b, who, part_dtype, re),
                                   qn__append_const(b, who, part_dtype, im))};
}

qn_val qn_const_complex(qn_builder *b, int dtype, double re, double im)
{
    const char *who = "qn_const_complex";
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    if (qn__dtype_class(dtype) != QN_CLASS_C)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s is no complex type", who, qn_dtype_name(dtype));
    int part = qn__part_dtype(dtype, NULL, 0);
    const double value[2] = {re, im};
    uint64_t bits[2];
    memcpy(bits, value, sizeof bits);
    return qn__complex_const(b, who, dtype, qn__eval_cast(part, QN_F64, bits[0]), qn__eval_cast(part, QN_F64, bits[1]));
}

qn_val qn_complex(qn_builder *b, qn_val re, qn_val im)
{
    const char *who = "qn_complex";
    uint32_t parts[2];
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "real part", re, &parts[0]) ||
        !qn__use(b, who, "imaginary part", im, &parts[1]))
        return (qn_val){0};
    int dtype = b->inst[parts[0]].type;
    if (dtype != b->inst[parts[1]].type || (dtype != QN_F32 && dtype != QN_F64))
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s, %s: expected two f32 or two f64", who, qn_dtype_name(dtype),
                                qn_dtype_name(b->inst[parts[1]].type));
    return (qn_val){append_value(b, who, dtype == QN_F32 ? QN_C64 : QN_C128, 0, parts)};
}

/** The parts of a complex operand. */
static bool use_complex(qn_builder *b, const char *who, qn_val z, uint32_t *parts, int *dtype)
{
    uint32_t i;
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "operand", z, &i))
        return false;
    *dtype = b->inst[i].type;
    if (!is_complex(b, i)) {
        fail_op(b, who, *dtype);
        return false;
    }
    copy_parts(b, i, parts);
    return true;
}

qn_val qn_real(qn_builder *b, qn_val z)
{
    uint32_t x[2];
    int dtype;
    return use_complex(b, "qn_real", z, x, &dtype) ? (qn_val){x[0]} : (qn_val){0};
}

qn_val qn_imag(qn_builder *b, qn_val z)
{
    uint32_t x[2];
    int dtype;
    return use_complex(b, "qn_imag", z, x, &dtype) ? (qn_val){x[1]} : (qn_val){0};
}

qn_val qn_conj(qn_builder *b, qn_val z)
{
    const char *who = "qn_conj";
    uint32_t x[2];
    int dtype;
    if (!use_complex(b, who, z, x, &dtype))
        return (qn_val){0};
    return (qn_val){append_complex(b, who, dtype, x[0], op1(b, who, QN_OP_neg, x[1]))};
}

/** With m the larger and n the smaller magnitude of the parts: m sqrt(1 + (n/m)^2), and m where that is 0 or infinite. */
qn_val qn_magnitude(qn_builder *b, qn_val z)
{
    const char *who = "qn_magnitude";
    uint32_t x[2];
    int dtype;
    if (!use_complex(b, who, z, x, &dtype))
        return (qn_val){0};
    int part = qn__part_dtype(dtype, NULL, 0);
    uint32_t one = qn__append_const(b, who, part, qn__eval_cast(part, QN_U8, 1));
    uint32_t re = op1(b, who, QN_OP_abs, x[0]), im = op1(b, who, QN_OP_abs, x[1]);
    uint32_t is_less = op2(b, who, QN_OP_lt, re, im);
    uint32_t large = choose(b, who, is_less, im, re), small = choose(b, who, is_less, re, im);
    uint32_t ratio = op2(b, who, QN_OP_div, small, large);
    uint32_t root = op1(b, who, QN_OP_sqrt, op2(b, who, QN_OP_add, one, op2(b, who, QN_OP_mul, ratio, ratio)));
    uint32_t zero = qn__append_const(b, who, part, 0);
    uint32_t infinity = qn__append_const(b, who, part, qn__float_format(part).infinity);
    uint32_t is_plain = op2(b, who, QN_OP_or, op2(b, who, QN_OP_eq, large, zero), op2(b, who, QN_OP_eq, large, infinity));
    return (qn_val){choose(b, who, is_plain, large, op2(b, who, QN_OP_mul, large, root))};
}

/* ---------------------------------------------------------------- loads and stores */

qn_val qn__load_element_of(qn_builder *b, const char *who, qn_param p, const uint32_t *index)
{
    const qn_kernel_parameter *view = &b->param[p.id - 1];
    int n = qn__n_parts(view->dtype, view->record), record = 0;
    uint32_t parts[MOST_PARTS];
    for (int i = 0; i < n; i++)
        parts[i] = qn__append_load(b, who, p, i, index);
    if (view->dtype == QN_RECORD && (record = qn__builder_record(b, who, view->record)) < 0)
        return (qn_val){0};
    return (qn_val){append_value(b, who, view->dtype, record, parts)};
}

bool qn__is_element_of(const qn_builder *b, const qn_kernel_parameter *view, uint32_t value)
{
    if (b->inst[value].type != view->dtype)
        return false;
    return view->dtype != QN_RECORD || qn_record_equal(record_of(b, value), view->record);
}

/** The view, indices and field of an access to a field; NULL after an error. */
static const qn_record_entry *use_field(qn_builder *b, const char *who, qn_param p, int field, int n,
                                        const qn_val *index, uint32_t *out)
{
    if (!qn__builder_ready(b, who))
        return NULL;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    return view && qn__use_indices(b, who, view, n, index, out) ? find_field(b, who, view->record, field) : NULL;
}

qn_val qn_load_field(qn_builder *b, qn_param p, int field, int n, const qn_val *index)
{
    const char *who = "qn_load_field";
    uint32_t args[QN_MAX_RANK], parts[2] = {0};
    const qn_record_entry *f = use_field(b, who, p, field, n, index, args);
    if (!f)
        return (qn_val){0};
    for (int i = 0; i < qn__n_parts(f->dtype, NULL); i++)
        parts[i] = qn__append_load(b, who, p, f->first_part + i, args);
    return (qn_val){append_value(b, who, f->dtype, 0, parts)};
}

void qn_store_field(qn_builder *b, qn_param p, int field, int n, const qn_val *index, qn_val value)
{
    const char *who = "qn_store_field";
    uint32_t args[QN_MAX_RANK], x, parts[MOST_PARTS];
    const qn_record_entry *f = use_field(b, who, p, field, n, index, args);
    if (!f || !qn__can_write(b, who, &b->param[p.id - 1]) || !qn__use(b, who, "value", value, &x))
        return;
    if (b->inst[x].type != f->dtype) {
        qn__builder_fail(b, QN_ERR_TYPE, "%s: value is %s, field %d is %s", who, qn_dtype_name(b->inst[x].type), field,
                         qn_dtype_name(f->dtype));
        return;
    }
    parts[0] = x;
    int n_parts = b->inst[x].op == QN_I_TUPLE ? copy_parts(b, x, parts) : 1;
    for (int i = 0; i < n_parts; i++)
        qn__append_store(b, who, p, f->first_part + i, args, parts[i]);
    qn__new_version(b);
}

void qn__store_element_of(qn_builder *b, const char *who, qn_param p, const uint32_t *index, uint32_t value)
{
    uint32_t parts[MOST_PARTS] = {value};
    int n = b->inst[value].op == QN_I_TUPLE ? copy_parts(b, value, parts) : 1;
    for (int i = 0; i < n; i++)
        qn__append_store(b, who, p, i, index, parts[i]);
    qn__new_version(b);
}

/** A part as the kernel text names it. */
static bool use_part(qn_builder *b, const char *who, qn_param p, int part, int n, const qn_val *index, uint32_t *out)
{
    if (!qn__builder_ready(b, who))
        return false;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !qn__use_indices(b, who, view, n, index, out))
        return false;
    int n_parts = qn__n_parts(view->dtype, view->record);
    if (part < n_parts && qn__has_parts(view->dtype))
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: view \"%.100s\": an element has no part %d", who, view->name, part);
    return false;
}

qn_val qn__load_part(qn_builder *b, qn_param p, int part, int n, const qn_val *index)
{
    const char *who = "qn_load";
    uint32_t args[QN_MAX_RANK];
    return use_part(b, who, p, part, n, index, args) ? (qn_val){qn__append_load(b, who, p, part, args)} : (qn_val){0};
}

void qn__store_part(qn_builder *b, qn_param p, int part, int n, const qn_val *index, qn_val value)
{
    const char *who = "qn_store";
    uint32_t args[QN_MAX_RANK], x;
    if (!use_part(b, who, p, part, n, index, args) || !qn__can_write(b, who, &b->param[p.id - 1]) ||
        !qn__use(b, who, "value", value, &x))
        return;
    const qn_kernel_parameter *view = &b->param[p.id - 1];
    int dtype = qn__part_dtype(view->dtype, view->record, part);
    if (b->inst[x].type != dtype) {
        qn__builder_fail(b, QN_ERR_TYPE, "%s: view \"%.100s\": value is %s, part %d is %s", who, view->name,
                         qn_dtype_name(b->inst[x].type), part, qn_dtype_name(dtype));
        return;
    }
    qn__append_store(b, who, p, part, args, x);
    qn__new_version(b);
}

/* ---------------------------------------------------------------- record values */

/** A usable record value: its number, or 0 after an error. */
static uint32_t use_record(qn_builder *b, const char *who, qn_val v)
{
    uint32_t i;
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "value", v, &i))
        return 0;
    if (b->inst[i].type == QN_RECORD)
        return i;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: %s is no record", who, qn_dtype_name(b->inst[i].type));
    return 0;
}

qn_val qn_field_of(qn_builder *b, qn_val v, int field)
{
    const char *who = "qn_field_of";
    uint32_t i = use_record(b, who, v);
    const qn_record_entry *f = i ? find_field(b, who, record_of(b, i), field) : NULL;
    uint32_t parts[MOST_PARTS];
    if (!f)
        return (qn_val){0};
    copy_parts(b, i, parts);
    return (qn_val){append_value(b, who, f->dtype, 0, parts + f->first_part)};
}

/** Puts the parts of value x into those of a record, if it is of the field's dtype. */
static bool put_field(qn_builder *b, const char *who, const qn_record_entry *f, int field, qn_val x, uint32_t *parts)
{
    uint32_t i;
    if (!qn__use(b, who, "field", x, &i))
        return false;
    if (b->inst[i].type != f->dtype) {
        qn__builder_fail(b, QN_ERR_TYPE, "%s: value is %s, field %d is %s", who, qn_dtype_name(b->inst[i].type), field,
                         qn_dtype_name(f->dtype));
        return false;
    }
    parts[f->first_part] = i;
    if (b->inst[i].op == QN_I_TUPLE)
        copy_parts(b, i, parts + f->first_part);
    return true;
}

qn_val qn_with_field(qn_builder *b, qn_val v, int field, qn_val x)
{
    const char *who = "qn_with_field";
    uint32_t parts[MOST_PARTS], i = use_record(b, who, v);
    const qn_record_entry *f = i ? find_field(b, who, record_of(b, i), field) : NULL;
    if (!f)
        return (qn_val){0};
    copy_parts(b, i, parts);
    int record = (int)b->inst[i].imm;
    return put_field(b, who, f, field, x, parts) ? (qn_val){append_value(b, who, QN_RECORD, record, parts)}
                                                 : (qn_val){0};
}

qn_val qn_record_of(qn_builder *b, const qn_record *r, int n, const qn_val *values)
{
    const char *who = "qn_record_of";
    uint32_t parts[MOST_PARTS];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    int record = qn__builder_record(b, who, r);
    if (record < 0)
        return (qn_val){0};
    if (n != r->n_fields || !values)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %d values%s for %d fields", who, n, values ? "" : " at NULL",
                                r->n_fields);
    for (int i = 0; i < n; i++)
        if (!put_field(b, who, &r->field[i], i, values[i], parts))
            return (qn_val){0};
    return (qn_val){append_value(b, who, QN_RECORD, record, parts)};
}
