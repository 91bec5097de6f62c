/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range.c: what the host knows about a kernel before it runs: the domain, from the prologue, and
 * the accesses that can never leave their view, from interval analysis of all values. Sound: an
 * interval holds every value that an instruction can take in any iteration. Conditions narrow it
 * for the accesses that they guard.
 */
#include "ir/fpu.h"
#include "ir/range.h"

#include <inttypes.h>
#include <math.h>

__extension__ typedef __int128 wide;

/* ---------------------------------------------------------------- the domain */

/** Value of each instruction of the prologue, and the scalar parameters that it depends on, a bit
 * each. */
typedef struct known {
    uint64_t value, scalars;
} known;

static known eval_prologue(const qn_kernel *k, uint32_t i, const qn_arg_value *args, const known *v)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *a = qn__args(k, i);
    switch (x->op) {
    case QN_I_CONST:
        return (known){x->imm, 0};
    case QN_I_PARAM:
        return (known){qn__arg_part(x->type, args[x->imm].bits, args[x->imm].high, x->sub),
                       UINT64_C(1) << x->imm};
    case QN_I_EXTENT:
        return (known){(uint64_t)args[x->imm].layout->dim[x->sub].extent, 0};
    case QN_I_LOWER:
        return (known){(uint64_t)args[x->imm].layout->dim[x->sub].lower, 0};
    case QN_I_DIM:
        return (known){0, v[a[0]].scalars | v[a[1]].scalars};
    }
    known r = {0, 0};
    for (int j = 0; j < x->n_args; j++)
        r.scalars |= v[a[j]].scalars;
    int type = k->inst[a[x->n_args - 1]].type;
    if (x->op == QN_I_CAST)
        r.value = qn__eval_cast(x->type, type, v[a[0]].value);
    else if (x->op == QN_I_BITCAST)
        r.value = qn__eval_bitcast(x->type, type, v[a[0]].value);
    else if (x->op == QN_I_LOOKUP)
        r.value = qn__lookup(qn__array_of(k, i), (int64_t)v[a[0]].value);
    else
        r.value = qn__eval_op(qn__pure(x), type, v[a[0]].value, x->n_args > 1 ? v[a[1]].value : 0,
                              x->n_args > 2 ? v[a[2]].value : 0);
    return r;
}

/** Numbers of iterations: an empty dimension makes a product 0; else it must fit. */
static qn_status check_products(const qn_kernel *k, qn_domain *out, qn_error *err)
{
    int64_t product[2] = {1, 1}; /* of the non-reduction dimensions, of all */
    bool is_empty[2] = {false, false}, overflows[2] = {false, false};
    for (int d = 0; d < k->n_dims; d++) {
        bool is_reduction = qn__is_reduction(k, d);
        int64_t extent;
        bool too_long = __builtin_sub_overflow(out->end[d], out->begin[d], &extent);
        for (int which = is_reduction ? 1 : 0; which < 2; which++) {
            is_empty[which] |= !too_long && extent == 0;
            overflows[which] |=
                too_long || __builtin_mul_overflow(product[which], extent, &product[which]);
        }
    }
    out->is_empty = is_empty[0];
    if ((overflows[0] && !is_empty[0]) || (overflows[1] && !is_empty[1]))
        return qn__fail(err, QN_ERR_OVERFLOW,
                        "qn_launch: kernel \"%s\": number of iterations does not fit in 64 bits",
                        k->name);
    return QN_OK;
}

/** A range whose begin is above its end is empty, or an error if it is to be reported. */
static qn_status check_range(const qn_kernel *k, int d, bool is_strict, qn_domain *out,
                             qn_error *err)
{
    if (out->begin[d] <= out->end[d])
        return QN_OK;
    if (is_strict)
        return qn__fail(err, QN_ERR_RANGE,
                        "qn_launch: kernel \"%s\": dimension %d: begin %" PRId64
                        " is above end %" PRId64,
                        k->name, d, out->begin[d], out->end[d]);
    out->end[d] = out->begin[d];
    out->reversed |= UINT32_C(1) << d;
    return QN_OK;
}

static qn_status make_domain(const qn_kernel *k, const qn_arg_value *args, bool is_strict, known *v,
                             qn_domain *out, qn_error *err)
{
    *out = (qn_domain){.is_empty = false};
    for (uint32_t i = 1; i < k->body; i++)
        v[i] = eval_prologue(k, i, args, v);
    for (int d = 0; d < k->n_dims; d++) {
        const uint32_t *a = qn__args(k, k->dim[d]);
        uint64_t scalars = v[k->dim[d]].scalars;
        out->begin[d] = (int64_t)v[a[0]].value;
        out->end[d] = (int64_t)v[a[1]].value;
        out->scalars[0] |= (uint32_t)scalars;
        out->scalars[1] |= (uint32_t)(scalars >> 32);
        qn_status status = check_range(k, d, is_strict, out, err);
        if (status)
            return status;
    }
    return check_products(k, out, err);
}

enum { SMALL_PROLOGUE = 128 };

qn_status qn__domain(const qn_kernel *k, const qn_arg_value *args, bool is_strict, qn_domain *out,
                     qn_error *err)
{
    known small[SMALL_PROLOGUE];
    known *v = k->body <= SMALL_PROLOGUE ? small : qn__zalloc(k->body, sizeof *v);
    if (!v)
        return qn__fail(err, QN_ERR_MEMORY, "qn_launch: kernel \"%s\": no memory for %u values",
                        k->name, k->body);
    qn_domain domain;
    qn_status status = make_domain(k, args, is_strict, v, &domain, err);
    if (status == QN_OK)
        *out = domain;
    if (v != small)
        qn__free(v);
    return status;
}

/* ---------------------------------------------------------------- intervals */

/*
 * Values are int64 views of the canonical bits. Only a u64 can exceed them: [INT64_MIN, INT64_MAX]
 * is then "anything", and a negative low end of a u64 interval never means anything else.
 */
static const qn_interval ANYTHING = {INT64_MIN, INT64_MAX, false};

static qn_interval full(int type)
{
    int w = qn__dtype_width(type);
    switch (qn__dtype_class(type)) {
    case QN_CLASS_B:
        return (qn_interval){0, 1, false};
    case QN_CLASS_S:
        return (qn_interval){INT64_MIN >> (64 - w), INT64_MAX >> (64 - w), false};
    case QN_CLASS_U:
        return w == 64 ? ANYTHING : (qn_interval){0, INT64_MAX >> (63 - w), false};
    case QN_CLASS_F:
        return qn__floats(type, -INFINITY, INFINITY, true);
    }
    return ANYTHING;
}

static bool is_unknown_u64(int type, qn_interval x)
{
    return type == QN_U64 && x.low < 0;
}

/** [low, high] if no value of it wraps in the type, else everything. */
static qn_interval fit(int type, wide low, wide high)
{
    qn_interval all = full(type);
    if (type == QN_U64 && low < 0)
        return all;
    if (low < all.low || high > all.high)
        return all;
    return (qn_interval){(int64_t)low, (int64_t)high, false};
}

static qn_interval join(qn_interval a, qn_interval b)
{
    return (qn_interval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, false};
}

static bool is_single(qn_interval x)
{
    return x.low == x.high;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** Hull of four corner values of an operation that is monotonic in each operand. */
static qn_interval corners(int type, const wide *v)
{
    wide low = v[0], high = v[0];
    for (int i = 1; i < 4; i++) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
    }
    return fit(type, low, high);
}

static qn_interval of_mul(int type, qn_interval a, qn_interval b)
{
    wide v[4] = {(wide)a.low * b.low, (wide)a.low * b.high, (wide)a.high * b.low,
                 (wide)a.high * b.high};
    return corners(type, v);
}

static qn_interval of_div(int type, qn_interval a, qn_interval b)
{
    if (b.low <= 0 && b.high >= 0)
        return full(type);
    wide v[4] = {(wide)a.low / b.low, (wide)a.low / b.high, (wide)a.high / b.low,
                 (wide)a.high / b.high};
    return corners(type, v);
}

/** The sign of the dividend, the magnitude at most its own, and below the divisor's unless that may
 * be 0. */
static qn_interval of_rem(int type, qn_interval a, qn_interval b)
{
    bool is_unknown = is_unknown_u64(type, a);
    if (is_unknown_u64(type, b) || (is_unknown && b.low <= 0))
        return full(type);
    if (is_unknown)
        return (qn_interval){0, b.high - 1, false};
    wide low = a.low < 0 ? a.low : 0, high = a.high > 0 ? a.high : 0;
    if (b.low > 0 || b.high < 0) {
        wide most = b.low > 0 ? (wide)b.high - 1 : -(wide)b.low - 1;
        low = low < -most ? -most : low;
        high = high > most ? most : high;
    }
    return fit(type, low, high);
}

static qn_interval of_abs(int type, qn_interval a)
{
    if (a.low >= 0)
        return a;
    wide most = -(wide)a.low > a.high ? -(wide)a.low : a.high;
    return fit(type, a.high < 0 ? -(wide)a.high : 0, most);
}

/** Bits of a non-negative number bound those of and, or, xor. */
static qn_interval of_bits(int op, int type, qn_interval a, qn_interval b)
{
    if (op == QN_OP_and && a.low >= 0 && b.low >= 0)
        return (qn_interval){0, smaller(a.high, b.high), false};
    if (op == QN_OP_and && (a.low >= 0 || b.low >= 0))
        return (qn_interval){0, a.low >= 0 ? a.high : b.high, false};
    if (a.low < 0 || b.low < 0)
        return full(type);
    uint64_t most = (uint64_t)(a.high | b.high), mask = 0;
    while (mask < most)
        mask = mask << 1 | 1;
    return (qn_interval){0, (int64_t)mask, false};
}

static qn_interval of_shift(int op, int type, qn_interval a, qn_interval b)
{
    int w = qn__dtype_width(type), count = (int)(b.low & (w - 1));
    bool is_unknown = is_unknown_u64(type, a);
    if (op == QN_OP_shl)
        return is_single(b) && !is_unknown
                   ? fit(type, (wide)a.low * ((wide)1 << count), (wide)a.high * ((wide)1 << count))
                   : full(type);
    if (is_single(b) && is_unknown && count > 0)
        return (qn_interval){0, (int64_t)(UINT64_MAX >> count), false};
    if (is_unknown)
        return full(type);
    if (is_single(b))
        return (qn_interval){a.low >> count, a.high >> count, false};
    return (qn_interval){smaller(a.low, 0), larger(a.high, 0), false};
}

static qn_interval of_not(int type, qn_interval a)
{
    if (qn__dtype_class(type) == QN_CLASS_S)
        return (qn_interval){-1 - a.high, -1 - a.low, false};
    if (type == QN_U64)
        return full(type);
    int64_t ones = full(type).high;
    return (qn_interval){ones - a.high, ones - a.low, false};
}

/** Interval of a table op with integer operands of the given type; v: its operands. Ops not named
 * here: everything. */
static qn_interval of_op(int op, int type, const qn_interval *v)
{
    qn_interval a = v[0], b = v[1];
    bool is_unknown = is_unknown_u64(type, a) || is_unknown_u64(type, b);
    switch (op) {
    case QN_OP_add:
        return is_unknown ? full(type) : fit(type, (wide)a.low + b.low, (wide)a.high + b.high);
    case QN_OP_sub:
        return is_unknown ? full(type) : fit(type, (wide)a.low - b.high, (wide)a.high - b.low);
    case QN_OP_mul:
        return is_unknown ? full(type) : of_mul(type, a, b);
    case QN_OP_div:
        return is_unknown ? full(type) : of_div(type, a, b);
    case QN_OP_rem:
        return of_rem(type, a, b);
    case QN_OP_neg:
        return is_unknown_u64(type, a) ? full(type) : fit(type, -(wide)a.high, -(wide)a.low);
    case QN_OP_abs:
        return of_abs(type, a);
    case QN_OP_min:
        return is_unknown ? full(type)
                          : (qn_interval){smaller(a.low, b.low), smaller(a.high, b.high), false};
    case QN_OP_max:
        return is_unknown ? full(type)
                          : (qn_interval){larger(a.low, b.low), larger(a.high, b.high), false};
    case QN_OP_and:
    case QN_OP_or:
    case QN_OP_xor:
        return of_bits(op, type, a, b);
    case QN_OP_not:
        return of_not(type, a);
    case QN_OP_shl:
    case QN_OP_shr:
        return of_shift(op, type, a, b);
    case QN_OP_popcount:
    case QN_OP_clz:
    case QN_OP_ctz:
        return fit(type, 0, qn__dtype_width(type));
    case QN_OP_select:
        return join(b, v[2]);
    }
    return full(type);
}

static qn_interval of_cast(int to, int from, qn_interval a)
{
    if (qn__dtype_class(to) == QN_CLASS_F)
        return qn__cast_to_float(to, from, a);
    if (qn__dtype_class(from) == QN_CLASS_F)
        return qn__cast_from_float(to, from, a, full(to));
    if (is_unknown_u64(from, a))
        return full(to);
    if (to == QN_BOOL)
        return (qn_interval){a.low > 0 || a.high < 0, a.low != 0 || a.high != 0, false};
    return fit(to, a.low, a.high);
}

/* ---------------------------------------------------------------- the analysis */

typedef struct prover {
    const qn_kernel *k;
    const qn_arg_value *args;
    const qn_domain *domain;
    qn_interval *value; /* [n_insts] */
    uint32_t dead_end;  /* instructions before it never run: a loop around them is empty */
} prover;

qn_interval qn__interval_of_type(int type)
{
    return full(type);
}

static qn_interval of_floats(const qn_elements *e)
{
    qn_interval x = qn__float_const(e->dtype, e->bits[0]);
    for (int i = 1; i < e->n; i++)
        x = qn__join_floats(e->dtype, x, qn__float_const(e->dtype, e->bits[i]));
    return x;
}

/** Interval of the elements of a constant array. */
static qn_interval of_array(const qn_elements *e)
{
    if (qn__dtype_class(e->dtype) == QN_CLASS_F)
        return of_floats(e);
    qn_interval x = {INT64_MAX, INT64_MIN, false};
    for (int i = 0; i < e->n; i++) {
        int64_t value = (int64_t)e->bits[i];
        if (e->dtype == QN_U64 && value < 0)
            return full(e->dtype);
        x = (qn_interval){smaller(x.low, value), larger(x.high, value), false};
    }
    return x;
}

qn_interval qn__interval_of_operands(const qn_kernel *k, uint32_t i, const qn_interval *operand)
{
    const qn_inst *x = &k->inst[i];
    int type = k->inst[qn__args(k, i)[x->n_args - 1]].type;
    bool is_float = qn__dtype_class(x->type) == QN_CLASS_F || qn__dtype_class(type) == QN_CLASS_F;
    if (x->op == QN_I_LOOKUP)
        return of_array(qn__array_of(k, i));
    if (x->op == QN_I_BITCAST && is_float)
        return full(x->type);
    if (x->op == QN_I_CAST || x->op == QN_I_BITCAST)
        return of_cast(x->type, type, operand[0]);
    if (qn__op_info[qn__pure(x)].rule == QN_RULE_COMPARE)
        return full(QN_BOOL);
    qn_interval v[3] = {ANYTHING, ANYTHING, ANYTHING};
    for (int j = 0; j < x->n_args && j < 3; j++)
        v[j] = operand[j];
    if (is_float)
        return qn__float_op(qn__pure(x), x->type, x->n_args, v);
    if (x->n_args == 1)
        v[1] = v[0];
    return of_op(qn__pure(x), type, v);
}

qn_interval qn__interval_of_pure(const qn_kernel *k, const qn_interval *value, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    qn_interval operand[3] = {ANYTHING, ANYTHING, ANYTHING};
    bool is_select = x->op >= QN_I_PURE && qn__pure(x) == QN_OP_select && qn__is_integer(x->type);
    for (int j = 0; j < x->n_args && j < 3; j++)
        operand[j] = is_select && j > 0 ? qn__range_of_side(k, value, i, j)
                                        : value[qn__args(k, i)[j]];
    return qn__interval_of_operands(k, i, operand);
}

/** A scalar that decides the domain has the value it has; any other may be exchanged later, so it
 * may have any. */
static qn_interval of_param(const prover *s, const qn_inst *x)
{
    if (!qn__is_integer(x->type) || (s->domain->scalars[x->imm >> 5] >> (x->imm & 31) & 1) == 0)
        return full(x->type);
    int64_t value = (int64_t)qn__canonical(x->type, s->args[x->imm].bits); /* of an integer */
    return value < 0 && x->type == QN_U64 ? ANYTHING : (qn_interval){value, value, false};
}

static bool is_empty_reduce(const prover *s, uint32_t i)
{
    const uint32_t *dims = qn__args(s->k, i);
    for (int j = 0; j < s->k->inst[i].n_args; j++) {
        uint64_t d = s->k->inst[dims[j]].imm;
        if (s->domain->begin[d] >= s->domain->end[d])
            return true;
    }
    return false;
}

/** The index of a `for`; an empty range makes the rest of its region dead. */
static qn_interval of_index(prover *s, uint32_t i)
{
    const qn_inst *loop = &s->k->inst[s->k->inst[i].parent];
    const uint32_t *a = qn__args(s->k, s->k->inst[i].parent);
    int64_t begin = s->value[a[0]].low, end = s->value[a[1]].high;
    if (begin < end)
        return (qn_interval){begin, end - 1, false};
    if (s->dead_end < loop->region[2])
        s->dead_end = loop->region[2];
    return ANYTHING;
}

/** A result of a loop is what it carries. */
static qn_interval of_loop_result(const prover *s, const qn_inst *x, uint32_t loop)
{
    const qn_inst *origin = &s->k->inst[loop];
    for (uint32_t i = origin->region[0]; i < origin->region[2]; i++)
        if (s->k->inst[i].op == QN_I_CARRIED && s->k->inst[i].parent == loop &&
            s->k->inst[i].imm == x->imm)
            return s->value[i];
    return full(x->type);
}

/** A result of an `if` is one of the two values yielded. */
static qn_interval of_result(const prover *s, const qn_inst *x, uint32_t i)
{
    uint32_t from = qn__args(s->k, i)[0];
    const qn_inst *origin = &s->k->inst[from];
    if (origin->op == QN_I_FOR || origin->op == QN_I_WHILE)
        return of_loop_result(s, x, from);
    if (origin->op != QN_I_IF || origin->region[1] == origin->region[2])
        return full(x->type);
    uint32_t first = qn__args(s->k, origin->region[1] - 1)[x->imm];
    uint32_t second = qn__args(s->k, origin->region[2] - 1)[x->imm];
    bool is_float = qn__dtype_class(x->type) == QN_CLASS_F;
    return is_float ? qn__join_floats(x->type, s->value[first], s->value[second])
                    : join(s->value[first], s->value[second]);
}

static qn_interval interval_of(prover *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    if (x->op >= QN_I_PURE)
        return qn__interval_of_pure(s->k, s->value, i);
    switch (x->op) {
    case QN_I_CONST:
        if (qn__dtype_class(x->type) == QN_CLASS_F)
            return qn__float_const(x->type, x->imm);
        return x->type == QN_U64 && (int64_t)x->imm < 0
                   ? ANYTHING
                   : (qn_interval){(int64_t)x->imm, (int64_t)x->imm, false};
    case QN_I_PARAM:
        return of_param(s, x);
    case QN_I_EXTENT:
    case QN_I_LOWER: {
        const qn_dim *d = &s->args[x->imm].layout->dim[x->sub];
        int64_t value = x->op == QN_I_EXTENT ? d->extent : d->lower;
        return (qn_interval){value, value, false};
    }
    case QN_I_DIM:
        if (s->domain->begin[x->imm] >= s->domain->end[x->imm])
            return ANYTHING; /* used only where nothing runs */
        return (qn_interval){s->domain->begin[x->imm], s->domain->end[x->imm] - 1, false};
    case QN_I_CAST:
    case QN_I_BITCAST:
    case QN_I_LOOKUP:
        return qn__interval_of_pure(s->k, s->value, i);
    case QN_I_LOAD:
        if (s->args[x->imm].has_offsets)
            return (qn_interval){0, QN_MEMBER_EXTENT - 1, false};
        break;
    case QN_I_INDEX:
        return of_index(s, i);
    case QN_I_RESULT:
        return of_result(s, x, i);
    case QN_I_CARRIED: {
        qn_interval carried;
        if (qn__carried_range(s->k, s->value, i, &carried))
            return carried;
        break;
    }
    }
    return x->type == QN_VOID ? ANYTHING : full(x->type);
}

/** QN_IN_RANGE, QN_GUARDED or 0. */
static uint8_t proof_of(const prover *s, uint32_t i)
{
    uint8_t proof = QN_IN_RANGE;
    const uint32_t *a = qn__args(s->k, i);
    const qn_layout *l = s->args[s->k->inst[i].imm].layout;
    for (int d = 0; d < l->rank; d++) {
        qn_interval x = s->value[a[d]];
        wide lower = l->dim[d].lower, end = lower + l->dim[d].extent;
        if (l->projected >> d & 1 || (x.low >= lower && x.high < end))
            continue;
        x = qn__range_at(s->k, s->value, a[d], i);
        if (x.low < lower || x.high >= end)
            return 0;
        proof = QN_GUARDED;
    }
    return proof;
}

/** The host's rounding must not decide, see fpu.h. */
__attribute__((noinline)) static void prove(prover *s, uint8_t *proved)
{
    const qn_kernel *k = s->k;
    for (uint32_t i = 1, site = 0; i < k->n_insts; i++) {
        s->value[i] = interval_of(s, i);
        if (k->inst[i].op == QN_I_REDUCE && is_empty_reduce(s, i) &&
            s->dead_end < k->inst[i].region[2])
            s->dead_end = k->inst[i].region[2];
        if (site < k->n_accesses && k->access[site].inst == i)
            proved[site++] = i < s->dead_end ? QN_IN_RANGE : proof_of(s, i);
    }
}

bool qn__prove_bounds(const qn_kernel *k, const qn_arg_value *args, const qn_domain *domain,
                      uint8_t *proved)
{
    for (uint32_t site = 0; site < k->n_accesses; site++)
        proved[site] = domain->is_empty;
    if (domain->is_empty || k->n_accesses == 0)
        return true;
    prover s = {.k = k, .args = args, .domain = domain, .dead_end = 0};
    s.value = qn__zalloc(k->n_insts, sizeof *s.value);
    if (!s.value)
        return false;
    uint32_t host = qn__fpu_enter();
    prove(&s, proved);
    qn__fpu_leave(host);
    qn__free(s.value);
    return true;
}
