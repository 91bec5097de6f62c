/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c: a kernel under construction: its life, errors, checks of operands, parameters,
 * constants and dimensions. Ops, memory accesses and regions stand in build/ops.c, build/memory.c
 * and build/regions.c; finishing in finish.c.
 */
#include "ir/build/builder.h"
#include "ir/location.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- life */

static const uint32_t order_flags = QN_ORDER_STRIPED | QN_ORDER_INDEXED | QN_ORDER_ORDERED;

static void check_flags(qn_builder *b, uint32_t flags)
{
    uint32_t order = flags & order_flags;
    if (flags & QN_CHECK_DIVISION)
        qn__builder_fail(b, QN_ERR_UNSUPPORTED,
                         "qn_builder_new: flag QN_CHECK_DIVISION is reserved");
    else if (flags & ~(order_flags | QN_CONTRACT))
        qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_builder_new: flags 0x%x: unknown bits",
                         (unsigned)flags);
    else if (order & (order - 1))
        qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_builder_new: flags 0x%x: more than one order rule",
                         (unsigned)flags);
}

/** Numbers of builders tell their values apart. They are never used again, but after 2^32 builders.
 */
static uint32_t next_number(void)
{
    static _Atomic uint32_t last;
    uint32_t number;
    do {
        number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    } while (number == 0);
    return number;
}

qn_builder *qn__builder_make(const char *who, const char *name, uint32_t flags)
{
    qn_builder *b = qn__zalloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->number = next_number();
    b->name = qn__strdup(name ? name : "");
    b->inst_capacity = 64;
    b->operand_capacity = 128;
    b->inst = qn__zalloc(b->inst_capacity, sizeof *b->inst);
    b->note = qn__zalloc(b->inst_capacity, sizeof *b->note);
    b->operand = qn__zalloc(b->operand_capacity, sizeof *b->operand);
    if (!b->name || !b->inst || !b->note || !b->operand) {
        qn_builder_release(b);
        return NULL;
    }
    b->n_insts = 1; /* number 0 is the inert value */
    b->flags = flags;
    if (!name)
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: name is NULL", who);
    return b;
}

qn_builder *qn_builder_new(const char *name, uint32_t flags)
{
    qn_builder *b = qn__builder_make("qn_builder_new", name, flags);
    if (b && name)
        check_flags(b, flags);
    return b;
}

void qn_builder_release(qn_builder *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->n_params; i++) {
        qn__free(b->param[i].name);
        qn_record_release((qn_record *)(uintptr_t)b->param[i].record);
    }
    for (int i = 0; i < b->n_records; i++)
        qn_record_release((qn_record *)(uintptr_t)b->record[i]);
    for (int i = 0; i < b->n_functions; i++)
        qn_function_release(b->function[i]);
    qn__free(b->function);
    for (int i = 0; i < b->n_arrays; i++)
        qn__elements_release(b->array[i]);
    qn__free(b->array);
    for (int i = 0; i < b->n_messages; i++)
        qn__free(b->message[i]);
    qn__free(b->message);
    qn__free(b->place);
    qn__text_release(&b->pool);
    qn__free(b->name);
    qn__free(b->inst);
    qn__free(b->note);
    qn__free(b->operand);
    qn__free(b);
}

qn_status qn_builder_status(const qn_builder *b, qn_error *err)
{
    if (!b)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_builder_status: builder is NULL");
    if (err && b->error.status)
        *err = b->error;
    return (qn_status)b->error.status;
}

/* ---------------------------------------------------------------- errors and checks */

qn_val qn__builder_fail(qn_builder *b, qn_status status, const char *format, ...)
{
    if (b->error.status)
        return (qn_val){0};
    char message[QN_MESSAGE_BYTES];
    va_list ap;
    va_start(ap, format);
    qn__vformat(message, sizeof message, format, ap);
    va_end(ap);
    qn_text place = {0};
    int line = qn__text_current_location(&place, b);
    const char *at = place.data && !place.failed ? place.data : "";
    const char *rest = strstr(message, ": ");
    if (rest && b->name && *b->name) /* a finished kernel took the name along */
        qn__fail_line(&b->error, status, line, "%.*s: %s \"%.60s\"%s%s", (int)(rest - message),
                      message, b->is_function ? "function" : "kernel", b->name, rest, at);
    else
        qn__fail_line(&b->error, status, line, "%s%s", message, at);
    qn__text_release(&place);
    return (qn_val){0};
}

bool qn__builder_ready(qn_builder *b, const char *who)
{
    if (!b || b->error.status)
        return false;
    if (b->is_finished) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: the kernel is finished", who);
        return false;
    }
    return true;
}

const char *qn__origin(const qn_builder *b, uint32_t i, char *out)
{
    const qn_inst *x = &b->inst[i];
    const char *name = qn__inst_name(x->op), *given = qn__builder_name_of(b, i);
    if (given) {
        snprintf(out, ORIGIN_BYTES, " (\"%.40s\")", given);
        return out;
    }
    switch (x->op) {
    case QN_I_LOAD:
    case QN_I_EXTENT:
    case QN_I_LOWER:
    case QN_I_ATOMIC:
        snprintf(out, ORIGIN_BYTES, " (%s of %.40s)", name, b->param[x->imm].name);
        break;
    case QN_I_PARAM:
        snprintf(out, ORIGIN_BYTES, " (scalar %.40s)", b->param[x->imm].name);
        break;
    case QN_I_DIM:
        snprintf(out, ORIGIN_BYTES, " (index of dimension %d)", (int)x->imm);
        break;
    default:
        snprintf(out, ORIGIN_BYTES, " (%s)", name);
    }
    return out;
}

/** The open frame whose instruction is i, or NULL. */
static const qn_frame *frame_of(const qn_builder *b, uint32_t i)
{
    for (int d = b->depth - 1; d >= 0; d--)
        if (b->frame[d].inst == i)
            return &b->frame[d];
    return NULL;
}

bool qn__is_open(const qn_builder *b, uint32_t i)
{
    if (b->inst[i].op == QN_I_REDUCE && frame_of(b, i))
        return false; /* its value exists only after it ends */
    if (b->inst[i].op == QN_I_TUPLE) { /* as its parts */
        bool is_open = true;
        for (int p = 0; p < b->inst[i].n_args; p++)
            is_open = is_open && qn__is_open(b, qn__builder_args(b, i)[p]);
        return is_open;
    }
    if (b->inst[i].parent == 0)
        return true;
    const qn_frame *f = frame_of(b, b->inst[i].parent);
    return f && (i >= f->begin || b->inst[i].op == QN_I_CARRIED);
}

bool qn__use(qn_builder *b, const char *who, const char *what, qn_val v, uint32_t *out)
{
    uint32_t i = qn__number(v);
    if (i == 0) {
        qn__builder_fail(b, QN_ERR_BUILD,
                         "%s: %s is not set: expected what a call of this builder returned", who,
                         what);
        return false;
    }
    if (v.builder != b->number) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %s is a value of another builder", who, what);
        return false;
    }
    if (i >= b->n_insts || b->inst[i].type == QN_VOID) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %s is no value of this builder (number %u)", who,
                         what, (unsigned)i);
        return false;
    }
    if (!qn__is_open(b, i)) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: %s is used outside its region (number %u, %s)", who,
                         what, (unsigned)i, qn__inst_name(b->inst[i].op));
        return false;
    }
    const qn_inst *x = &b->inst[i];
    if (x->op == QN_I_DIM && x->sub == QN_DIM_REDUCTION && !(b->reduced >> x->imm & 1)) {
        qn__builder_fail(
            b, QN_ERR_BUILD,
            "%s: %s is the index of reduction dimension %d outside a reduce that names it", who,
            what, (int)x->imm);
        return false;
    }
    *out = i;
    return true;
}

bool qn__use_index(qn_builder *b, const char *who, const char *what, qn_val v, uint32_t *out)
{
    uint32_t i;
    if (!qn__use(b, who, what, v, &i))
        return false;
    int type = b->inst[i].type;
    if (!qn__is_integer(type)) {
        qn__builder_fail(b, QN_ERR_TYPE, "%s: %s%s is %s, not an integer", who, what,
                         qn__origin(b, i, (char[ORIGIN_BYTES]){0}), qn_dtype_name(type));
        return false;
    }
    *out = qn__append_cast(b, who, QN_I64, i);
    return *out != 0;
}

bool qn__use_list(qn_builder *b, const char *who, const char *what, int n, const qn_val *values,
                  uint32_t *out)
{
    if (n < 0 || (n > 0 && !values)) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %d %ss%s", who, n, what, n < 0 ? "" : " at NULL");
        return false;
    }
    if (n > QN_MAX_CARRIED) {
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: %d %ss, limit %d", who, n, what, QN_MAX_CARRIED);
        return false;
    }
    for (int i = 0; i < n; i++) {
        char label[48];
        snprintf(label, sizeof label, "%s %d", what, i);
        if (!qn__use(b, who, label, values[i], &out[i]))
            return false;
    }
    return true;
}

qn_kernel_parameter *qn__view_of(qn_builder *b, const char *who, qn_param p)
{
    if (p.id == 0) {
        qn__builder_fail(b, QN_ERR_BUILD,
                         "%s: no view: expected what qn_view_param or qn_record_param returned",
                         who);
        return NULL;
    }
    if (p.builder != b->number) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: the view parameter is one of another builder", who);
        return NULL;
    }
    if (p.id > (uint32_t)b->n_params || b->param[p.id - 1].rank < 0) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: parameter %u is no view", who, (unsigned)(p.id - 1));
        return NULL;
    }
    return &b->param[p.id - 1];
}

bool qn__known_dtype(qn_builder *b, const char *who, int dtype)
{
    if (qn__dtype_class(dtype))
        return true;
    qn__builder_fail(b, QN_ERR_DTYPE, "%s: %s", who,
                     qn__no_dtype(dtype, (char[NO_DTYPE_BYTES]){0}));
    return false;
}

qn_dtype qn_type_of(const qn_builder *b, qn_val v)
{
    bool is_own = b && v.builder == b->number;
    return is_own && qn__number(v) < b->n_insts ? (qn_dtype)b->inst[qn__number(v)].type : QN_VOID;
}

/* ---------------------------------------------------------------- parameters */

/** Adds a parameter; its handle, or 0. */
static uint32_t add_param(qn_builder *b, const char *who, const char *name, int dtype,
                          const qn_record *record, int rank, uint32_t traits)
{
    if (!name) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: name is NULL", who);
        return 0;
    }
    if (b->n_dims || b->has_body) {
        qn__builder_fail(b, QN_ERR_BUILD, "%s: \"%.100s\": parameters come before %s", who, name,
                         b->n_dims ? "dimensions" : b->body_op);
        return 0;
    }
    if (!record && !qn__known_dtype(b, who, dtype))
        return 0;
    if (traits & QN_ATOMIC && qn__has_parts(dtype)) {
        qn__builder_fail(b, QN_ERR_UNSUPPORTED,
                         "%s: \"%.100s\": elements of %s are not atomic, only their parts can be",
                         who, name, qn_dtype_name(dtype));
        return 0;
    }
    if (b->n_params == QN_MAX_PARAMS) {
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: \"%.100s\": more than %d parameters", who, name,
                         QN_MAX_PARAMS);
        return 0;
    }
    for (int i = 0; i < b->n_params; i++)
        if (strcmp(b->param[i].name, name) == 0) {
            qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: \"%.100s\": parameter %d has this name", who,
                             name, i);
            return 0;
        }
    char *copy = qn__strdup(name);
    if (!copy) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: \"%.100s\": out of memory", who, name);
        return 0;
    }
    b->param[b->n_params] = (qn_kernel_parameter){.name = copy,
                                                  .record = qn_record_retain(record),
                                                  .dtype = dtype,
                                                  .rank = rank,
                                                  .traits = traits};
    return (uint32_t)++b->n_params;
}

static qn_param add_view(qn_builder *b, const char *who, const char *name, int dtype,
                         const qn_record *record, int rank, uint32_t traits)
{
    if (rank < 0 || rank > QN_MAX_RANK)
        qn__builder_fail(b, QN_ERR_RANK, "%s: rank %d is not in 0 to %d", who, rank, QN_MAX_RANK);
    else if (traits & ~QN_PARAM_TRAITS)
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: traits 0x%x: unknown bits", who,
                         (unsigned)traits);
    else
        return qn__param(b, add_param(b, who, name, dtype, record, rank, traits));
    return (qn_param){0};
}

qn_param qn_view_param(qn_builder *b, const char *name, int dtype, int rank, uint32_t traits)
{
    const char *who = "qn_view_param";
    return qn__builder_ready(b, who) ? add_view(b, who, name, dtype, NULL, rank, traits)
                                     : (qn_param){0};
}

qn_param qn_record_param(qn_builder *b, const char *name, const qn_record *record, int rank,
                         uint32_t traits)
{
    const char *who = "qn_record_param";
    if (!qn__builder_ready(b, who) || qn__builder_record(b, who, record) < 0)
        return (qn_param){0};
    return add_view(b, who, name, QN_RECORD, record, rank, traits);
}

qn_val qn_scalar_param(qn_builder *b, const char *name, int dtype)
{
    const char *who = "qn_scalar_param";
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    uint32_t id = add_param(b, who, name, dtype, NULL, -1, 0), parts[2] = {0};
    for (int p = 0; id && p < qn__n_parts(dtype, NULL); p++) {
        qn_inst x = {.op = QN_I_PARAM,
                     .type = (uint8_t)qn__part_dtype(dtype, NULL, p),
                     .sub = (uint8_t)p,
                     .imm = id - 1};
        parts[p] = qn__append_numbered(b, who, x, 0, NULL);
    }
    if (parts[1] == 0)
        return qn__value(b, parts[0], 0);
    return qn_complex(b, qn__value(b, parts[0], 0), qn__value(b, parts[1], 0));
}

void qn_builder_pin(qn_builder *b, const qn_fact_pin *pin)
{
    const char *who = "qn_builder_pin";
    qn_error why = {0};
    if (!qn__builder_ready(b, who))
        return;
    if (!pin || b->is_function)
        qn__builder_fail(b, QN_ERR_ARGUMENT,
                         pin ? "%s: parameters of functions have no pins" : "%s: pin is NULL", who);
    else if (qn__pin_check("pin", pin, 0, b->n_params, b->param, &why) != QN_OK)
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %s", who, why.message);
    else
        qn__pin_add(&b->param[pin->param].pinned, pin);
}

/* ---------------------------------------------------------------- constants */

qn_val qn_const_int(qn_builder *b, int dtype, int64_t value)
{
    const char *who = "qn_const_int";
    if (!qn__builder_ready(b, who) || !qn__known_dtype(b, who, dtype))
        return (qn_val){0};
    if (dtype == QN_BOOL && value != 0 && value != 1)
        return qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: %lld is no bool", who, (long long)value);
    if (qn__dtype_class(dtype) == QN_CLASS_C)
        return qn__complex_const(
            b, who, dtype, qn__eval_cast(qn__part_dtype(dtype, NULL, 0), QN_I64, (uint64_t)value),
            0);
    uint64_t bits = qn__eval_cast(dtype, QN_I64, (uint64_t)value);
    return qn__value(b, qn__append_const(b, who, dtype, bits), 0);
}

qn_val qn_const_float(qn_builder *b, int dtype, double value)
{
    const char *who = "qn_const_float";
    if (!qn__builder_ready(b, who) || !qn__known_dtype(b, who, dtype))
        return (qn_val){0};
    if (qn__dtype_class(dtype) == QN_CLASS_C)
        return qn_const_complex(b, dtype, value, 0);
    if (qn__dtype_class(dtype) != QN_CLASS_F)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: %s is no floating-point type", who,
                                qn_dtype_name(dtype));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return qn__value(b, qn__append_const(b, who, dtype, qn__eval_cast(dtype, QN_F64, bits)), 0);
}

qn_val qn_const_bits(qn_builder *b, int dtype, uint64_t bits)
{
    const char *who = "qn_const_bits";
    if (!qn__builder_ready(b, who) || !qn__known_dtype(b, who, dtype))
        return (qn_val){0};
    if (dtype == QN_C64)
        return qn__complex_const(b, who, dtype, (uint32_t)bits, bits >> 32);
    if (dtype == QN_C128)
        return qn__builder_fail(b, QN_ERR_TYPE, "%s: c128 has more bits", who);
    return qn__value(b, qn__append_const(b, who, dtype, qn__canonical(dtype, bits)), 0);
}

qn_val qn_index(qn_builder *b, int64_t value)
{
    if (!qn__builder_ready(b, "qn_index"))
        return (qn_val){0};
    return qn__value(b, qn__append_const(b, "qn_index", QN_I64, (uint64_t)value), 0);
}

/* ---------------------------------------------------------------- extents */

static qn_val append_extent(qn_builder *b, const char *who, int op, qn_param p, int d)
{
    const qn_kernel_parameter *view = qn__view_of(b, who, p);
    if (!view)
        return (qn_val){0};
    if (d < 0 || d >= view->rank)
        return qn__builder_fail(b, QN_ERR_RANK,
                                "%s: view \"%.100s\" of rank %d has no dimension %d", who,
                                view->name, view->rank, d);
    qn_inst x = {.op = (uint8_t)op, .type = QN_I64, .sub = (uint8_t)d, .imm = p.id - 1};
    return qn__value(b, qn__append_numbered(b, who, x, 0, NULL), b->kind[p.id - 1][d]);
}

qn_val qn_extent(qn_builder *b, qn_param p, int d)
{
    if (!qn__builder_ready(b, "qn_extent"))
        return (qn_val){0};
    return append_extent(b, "qn_extent", QN_I_EXTENT, p, d);
}

qn_val qn_lower(qn_builder *b, qn_param p, int d)
{
    if (!qn__builder_ready(b, "qn_lower"))
        return (qn_val){0};
    return append_extent(b, "qn_lower", QN_I_LOWER, p, d);
}

/* ---------------------------------------------------------------- dimensions */

static bool is_bound(qn_builder *b, const char *who, const char *what, qn_val v, uint32_t *out)
{
    uint32_t i;
    if (!qn__use(b, who, what, v, &i))
        return false;
    if (b->note[i].is_uniform)
        return qn__use_index(b, who, what, v, out);
    qn__builder_fail(b, QN_ERR_BUILD, "%s: %s depends on an index", who, what);
    return false;
}

static qn_val append_dim(qn_builder *b, const char *who, qn_dim_kind kind, qn_val begin, qn_val end)
{
    if (b->is_function)
        return qn__builder_fail(b, QN_ERR_BUILD,
                                "%s: a function has no dimensions: give it indices", who);
    if (b->has_body)
        return qn__builder_fail(
            b, QN_ERR_BUILD,
            "%s: dimensions come before loads, stores, regions and ops that use an index "
            "(here %s)",
            who, b->body_op);
    if (b->n_dims == QN_MAX_RANK)
        return qn__builder_fail(b, QN_ERR_LIMIT, "%s: more than %d dimensions", who, QN_MAX_RANK);
    if (kind == QN_DIM_SEQUENTIAL && b->n_parallel)
        return qn__builder_fail(b, QN_ERR_BUILD,
                                "%s: sequential dimensions come before parallel ones", who);
    uint32_t args[2];
    int kind_of_index;
    if (!is_bound(b, who, "begin", begin, &args[0]) || !is_bound(b, who, "end", end, &args[1]) ||
        !qn__join_kinds(b, who, 2, (const qn_val[]){begin, end}, &kind_of_index))
        return (qn_val){0};
    qn_inst x = {.op = QN_I_DIM, .type = QN_I64, .sub = (uint8_t)kind, .imm = (uint64_t)b->n_dims};
    uint32_t i = qn__append(b, who, x, 2, args);
    if (i == 0)
        return (qn_val){0};
    b->dim[b->n_dims++] = i;
    b->n_parallel += kind == QN_DIM_PARALLEL;
    return qn__value(b, i, kind_of_index);
}

qn_val qn_parallel(qn_builder *b, qn_val begin, qn_val end)
{
    if (!qn__builder_ready(b, "qn_parallel"))
        return (qn_val){0};
    return append_dim(b, "qn_parallel", QN_DIM_PARALLEL, begin, end);
}

qn_val qn_reduction(qn_builder *b, qn_val begin, qn_val end)
{
    if (!qn__builder_ready(b, "qn_reduction"))
        return (qn_val){0};
    return append_dim(b, "qn_reduction", QN_DIM_REDUCTION, begin, end);
}

qn_val qn_sequential(qn_builder *b, qn_val begin, qn_val end)
{
    if (!qn__builder_ready(b, "qn_sequential"))
        return (qn_val){0};
    return append_dim(b, "qn_sequential", QN_DIM_SEQUENTIAL, begin, end);
}

static qn_val append_dim_over(qn_builder *b, const char *who, qn_dim_kind kind, qn_param p, int d)
{
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    qn_val begin = append_extent(b, who, QN_I_LOWER, p, d);
    qn_val extent = append_extent(b, who, QN_I_EXTENT, p, d);
    uint32_t args[2] = {qn__number(begin), qn__number(extent)};
    uint32_t end = args[0] && args[1] ? qn__append_op(b, who, QN_OP_add, args) : 0;
    return end ? append_dim(b, who, kind, begin, qn__value(b, end, qn__kind(extent))) : (qn_val){0};
}

qn_val qn_parallel_over(qn_builder *b, qn_param p, int d)
{
    return append_dim_over(b, "qn_parallel_over", QN_DIM_PARALLEL, p, d);
}

qn_val qn_reduction_over(qn_builder *b, qn_param p, int d)
{
    return append_dim_over(b, "qn_reduction_over", QN_DIM_REDUCTION, p, d);
}
