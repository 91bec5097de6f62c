/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuple.c: complex numbers and records, expanded while a kernel is built. The builder holds such a
 * value as a tuple instruction that names its parts, all of them scalars; loads and stores move
 * parts, ops on it are ops on the parts (build/complex.c). Finished kernels have no tuples. Where
 * values pass through regions, a tuple stands for its parts, one after the other.
 */
#include "ir/build/builder.h"

/* ---------------------------------------------------------------- tuples */

static const qn_record *record_of(const qn_builder *b, uint32_t tuple)
{
    const qn_inst *x = &b->inst[tuple];
    return x->type == QN_RECORD ? b->record[x->imm] : NULL;
}

uint32_t qn__append_value(qn_builder *b, const char *who, int dtype, int record,
                          const uint32_t *parts)
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
static const qn_record_entry *find_field(qn_builder *b, const char *who, const qn_record *r,
                                         int field)
{
    if (r && field >= 0 && field < r->n_fields)
        return &r->field[field];
    if (r)
        qn__builder_fail(b, QN_ERR_NOT_FOUND, "%s: the record has %d fields, none has number %d",
                         who, r->n_fields, field);
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
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s has no part %d", who,
                                qn_dtype_name(b->inst[i].type), part);
    return qn__value(b, qn__builder_args(b, i)[part], 0);
}

int qn__copy_parts(const qn_builder *b, uint32_t tuple, uint32_t *out)
{
    int n = b->inst[tuple].n_args;
    for (int p = 0; p < n; p++)
        out[p] = qn__builder_args(b, tuple)[p];
    return n;
}

/** The parts of a value, or the value itself if it has none; their number. */
static int copy_scalars(const qn_builder *b, uint32_t value, uint32_t *out)
{
    out[0] = value;
    return qn__is_tuple(b, value) ? qn__copy_parts(b, value, out) : 1;
}

/* ---------------------------------------------------------------- through regions */

bool qn__flatten(qn_builder *b, const char *who, const char *what, int n, const qn_val *values,
                 qn_flat *out)
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
            qn__builder_fail(b, QN_ERR_LIMIT, "%s: %ss of more than %d parts", who, what,
                             QN_MAX_CARRIED);
            return false;
        }
        for (int p = 0; p < n_parts; p++)
            out->value[out->n++] =
                is_tuple ? qn__value(b, qn__builder_args(b, number[i])[p], 0) : values[i];
        out->shape[out->n_values++] = is_tuple ? (uint16_t)(x->type | x->imm << 8) : 0;
    }
    return true;
}

void qn__unflatten(qn_builder *b, const char *who, int n_values, const uint16_t *shape,
                   const qn_val *flat, qn_val *out)
{
    uint32_t parts[MOST_TUPLE_PARTS];
    for (int i = 0; i < n_values && out; i++) {
        if (shape[i] == 0) {
            out[i] = *flat++;
            continue;
        }
        int dtype = shape[i] & 0xff, record = shape[i] >> 8;
        int n = qn__n_parts(dtype, dtype == QN_RECORD ? b->record[record] : NULL);
        for (int p = 0; p < n; p++)
            parts[p] = qn__number(*flat++);
        out[i] = qn__value(b, qn__append_value(b, who, dtype, record, parts), 0);
    }
}

/* ---------------------------------------------------------------- loads and stores */

qn_val qn__load_element_of(qn_builder *b, const char *who, qn_param p, const uint32_t *index)
{
    const qn_kernel_parameter *view = &b->param[p.id - 1];
    int n = qn__n_parts(view->dtype, view->record), record = 0;
    uint32_t parts[MOST_TUPLE_PARTS];
    for (int i = 0; i < n; i++)
        parts[i] = qn__append_load(b, who, p, i, index);
    if (view->dtype == QN_RECORD && (record = qn__builder_record(b, who, view->record)) < 0)
        return (qn_val){0};
    return qn__value(b, qn__append_value(b, who, view->dtype, record, parts), 0);
}

bool qn__is_element_of(const qn_builder *b, const qn_kernel_parameter *view, uint32_t value)
{
    if (b->inst[value].type != view->dtype)
        return false;
    return view->dtype != QN_RECORD || qn_record_equal(record_of(b, value), view->record);
}

/** The view, indices and field of an access to a field; NULL after an error. */
static const qn_record_entry *use_field(qn_builder *b, const char *who, qn_param p, int field,
                                        int n, const qn_val *index, uint32_t *out)
{
    if (!qn__builder_ready(b, who))
        return NULL;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    return view && qn__use_indices(b, who, view, n, index, out)
               ? find_field(b, who, view->record, field)
               : NULL;
}

/** Whether value x is of the dtype of field number `field`. */
static bool is_of_field(qn_builder *b, const char *who, const qn_record_entry *f, int field,
                        uint32_t x)
{
    if (b->inst[x].type == f->dtype)
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: value is %s, field %d is %s", who,
                     qn_dtype_name(b->inst[x].type), field, qn_dtype_name(f->dtype));
    return false;
}

/** Stores a value in the parts of an element from `first` on. */
static void store_parts(qn_builder *b, const char *who, qn_param p, int first,
                        const uint32_t *index, uint32_t value)
{
    uint32_t parts[MOST_TUPLE_PARTS];
    int n = copy_scalars(b, value, parts);
    for (int i = 0; i < n; i++)
        qn__append_store(b, who, p, first + i, index, parts[i]);
    qn__new_version(b);
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
    return qn__value(b, qn__append_value(b, who, f->dtype, 0, parts), 0);
}

void qn_store_field(qn_builder *b, qn_param p, int field, int n, const qn_val *index, qn_val value)
{
    const char *who = "qn_store_field";
    uint32_t args[QN_MAX_RANK], x;
    const qn_record_entry *f = use_field(b, who, p, field, n, index, args);
    if (!f || !qn__can_write(b, who, &b->param[p.id - 1]) || !qn__use(b, who, "value", value, &x))
        return;
    if (is_of_field(b, who, f, field, x))
        store_parts(b, who, p, f->first_part, args, x);
}

void qn__store_element_of(qn_builder *b, const char *who, qn_param p, const uint32_t *index,
                          uint32_t value)
{
    store_parts(b, who, p, 0, index, value);
}

/** A part as the kernel text names it. */
static bool use_part(qn_builder *b, const char *who, qn_param p, int part, int n,
                     const qn_val *index, uint32_t *out)
{
    if (!qn__builder_ready(b, who))
        return false;
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view || !qn__use_indices(b, who, view, n, index, out))
        return false;
    int n_parts = qn__n_parts(view->dtype, view->record);
    if (part < n_parts && qn__has_parts(view->dtype))
        return true;
    qn__builder_fail(b, QN_ERR_TYPE, "%s: view \"%.100s\": an element has no part %d", who,
                     view->name, part);
    return false;
}

qn_val qn__load_part(qn_builder *b, qn_param p, int part, int n, const qn_val *index)
{
    const char *who = "qn_load";
    uint32_t args[QN_MAX_RANK];
    return use_part(b, who, p, part, n, index, args)
               ? qn__value(b, qn__append_load(b, who, p, part, args), 0)
               : (qn_val){0};
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
        qn__builder_fail(b, QN_ERR_TYPE, "%s: view \"%.100s\": value is %s, part %d is %s", who,
                         view->name, qn_dtype_name(b->inst[x].type), part, qn_dtype_name(dtype));
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
    uint32_t parts[MOST_TUPLE_PARTS];
    if (!f)
        return (qn_val){0};
    qn__copy_parts(b, i, parts);
    return qn__value(b, qn__append_value(b, who, f->dtype, 0, parts + f->first_part), 0);
}

/** Puts the parts of value x into those of a record, if it is of the field's dtype. */
static bool put_field(qn_builder *b, const char *who, const qn_record_entry *f, int field, qn_val x,
                      uint32_t *parts)
{
    uint32_t i;
    if (!qn__use(b, who, "field", x, &i) || !is_of_field(b, who, f, field, i))
        return false;
    copy_scalars(b, i, parts + f->first_part);
    return true;
}

qn_val qn_with_field(qn_builder *b, qn_val v, int field, qn_val x)
{
    const char *who = "qn_with_field";
    uint32_t parts[MOST_TUPLE_PARTS], i = use_record(b, who, v);
    const qn_record_entry *f = i ? find_field(b, who, record_of(b, i), field) : NULL;
    if (!f)
        return (qn_val){0};
    qn__copy_parts(b, i, parts);
    int record = (int)b->inst[i].imm;
    return put_field(b, who, f, field, x, parts)
               ? qn__value(b, qn__append_value(b, who, QN_RECORD, record, parts), 0)
               : (qn_val){0};
}

qn_val qn_record_of(qn_builder *b, const qn_record *r, int n, const qn_val *values)
{
    const char *who = "qn_record_of";
    uint32_t parts[MOST_TUPLE_PARTS];
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    int record = qn__builder_record(b, who, r);
    if (record < 0)
        return (qn_val){0};
    if (n != r->n_fields || !values)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %d values%s for %d fields", who, n,
                                values ? "" : " at NULL", r->n_fields);
    for (int i = 0; i < n; i++)
        if (!put_field(b, who, &r->field[i], i, values[i], parts))
            return (qn_val){0};
    return qn__value(b, qn__append_value(b, who, QN_RECORD, record, parts), 0);
}
