/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.c: in how many bits lanes hold the integers of a kernel. A sum of bytes that is computed
 * as i32 needs 16 bits, an index loaded as i32 needs 32 although addresses have 64: with the ranges
 * of all values known, vectors of fewer bits hold the same numbers. Only lanes are narrow: scalars,
 * memory and what reduces and loops carry have their types.
 *
 * Forwards, the fewest bits for the range of each value; backwards, those of its low bits on which
 * its uses depend, and then as many as all its uses want, so that nothing is computed narrow only
 * to be extended. Knows no LLVM.
 */
#include "jit/analysis/analyse.h"

enum {
    LEAST_MULTIPLIED = 16, /* there is no multiplication of bytes, and no shift but by a constant */
    CONVERTED = 32,        /* vectors of floats become integers of 32 bits, also by AVX2 */
    PERMUTED = 32,         /* lanes that lie apart are put into place for less than narrower ones */
};

static bool fits(qn_interval x, int bits, bool is_signed)
{
    if (bits >= 64)
        return true;
    if (is_signed)
        return x.low >= -(INT64_C(1) << (bits - 1)) && x.high < INT64_C(1) << (bits - 1);
    return x.low >= 0 && x.high < INT64_C(1) << bits;
}

/** Fewest bits of 8, 16, 32 and those of the type. */
static int bits_of(qn_interval x, int type)
{
    int bits = 8, most = qn__dtype_width(type);
    while (bits < most && !fits(x, bits, x.low < 0))
        bits *= 2;
    return bits;
}

/* ---------------------------------------------------------------- ranges */

/** Indices of a dimension; what is beyond an end that is not above the begin does not run. */
static qn_interval range_of_dim(const qn_facts *f, int d)
{
    int64_t low = qn__fact_interval(&f->begin[d]).low, end = qn__fact_interval(&f->end[d]).high;
    return (qn_interval){low, end > low ? end - 1 : low, false};
}

/** Of the index of a `for`. */
static qn_interval range_of_index(const qn_kernel *k, const qn_interval *value, uint32_t i)
{
    const uint32_t *arg = qn__args(k, k->inst[i].parent);
    int64_t low = value[arg[0]].low, end = value[arg[1]].high;
    return (qn_interval){low, end > low ? end - 1 : low, false};
}

static qn_interval range_of(const qn_analysis *a, const qn_interval *value, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    const qn_inst *x = &k->inst[i];
    bool is_float = qn__dtype_class(x->type) == QN_CLASS_F;
    if (x->op == QN_I_DIM)
        return range_of_dim(f, (int)x->imm);
    if (a->value[i].is_part)
        return qn__interval_of_type(x->type);
    if (x->op == QN_I_INDEX)
        return range_of_index(k, value, i);
    if (is_float && x->op == QN_I_CONST)
        return qn__float_const(x->type, x->imm);
    if (is_float && (x->op >= QN_I_PURE || x->op == QN_I_CAST))
        return qn__interval_of_pure(k, value, i);
    return qn__facts_range(k, f, value, i);
}

void qn__find_ranges(const qn_analysis *a, qn_interval *range)
{
    for (uint32_t i = 1; i < a->k->n_insts; i++)
        range[i] = range_of(a, range, i);
}

/* ---------------------------------------------------------------- widths */

static bool is_constant(const qn_kernel *k, uint32_t i, int64_t low, int64_t high)
{
    int64_t n = (int64_t)k->inst[i].imm;
    return k->inst[i].op == QN_I_CONST && n >= low && n <= high;
}

static bool is_power(const qn_kernel *k, uint32_t i)
{
    return is_constant(k, i, 1, INT64_MAX) && (k->inst[i].imm & (k->inst[i].imm - 1)) == 0;
}

/** Whether a value in this range may be negative. (What is not known of a u64 has the range of an
 * i64.) */
static bool may_be_negative(qn_interval x, int type)
{
    return x.low < 0 && qn__dtype_class(type) == QN_CLASS_S;
}

/** Bits in which the operands fit together, both signed or both not, from `bits` on. */
static int common_bits(const qn_interval *value, uint32_t a, uint32_t b, int type, int bits,
                       bool *is_signed)
{
    *is_signed = may_be_negative(value[a], type) || may_be_negative(value[b], type);
    while (bits < qn__dtype_width(type) &&
           !(fits(value[a], bits, *is_signed) && fits(value[b], bits, *is_signed)))
        bits *= 2;
    return bits;
}

/** How instruction i, whose result is in `range`, is computed: sets *at, and returns the bits of
 * its result. */
static int width_of(const qn_kernel *k, const qn_interval *value, uint32_t i, qn_value_info *at)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    int least = bits_of(value[i], x->type), natural = qn__dtype_width(x->type);
    if (x->op == QN_I_CAST && qn__is_integer(k->inst[arg[0]].type))
        return least;
    if (x->op == QN_I_CAST && x->type == QN_I64 && /* a negative number as u64 is 0 */
        qn__dtype_class(k->inst[arg[0]].type) == QN_CLASS_F && fits(value[i], CONVERTED, true)) {
        at->at = CONVERTED;
        at->at_signed = true;
        return at->at;
    }
    if (x->op < QN_I_PURE)
        return x->op == QN_I_CONST || x->op == QN_I_DIM || x->op == QN_I_EXTENT ||
                       x->op == QN_I_LOWER
                   ? least
                   : natural;
    int type = k->inst[arg[x->n_args - 1]].type, bits;
    bool is_signed = may_be_negative(value[i], x->type);
    if (!qn__is_integer(type))
        return natural;
    switch (qn__pure(x)) {
    case QN_OP_mul:
        least = least < LEAST_MULTIPLIED && !is_power(k, arg[1]) ? LEAST_MULTIPLIED : least;
        break;
    case QN_OP_add:
    case QN_OP_sub:
    case QN_OP_neg:
    case QN_OP_and:
    case QN_OP_or:
    case QN_OP_xor:
    case QN_OP_not:
    case QN_OP_select:
        break;
    case QN_OP_abs:
        least = common_bits(value, arg[0], arg[0], type, least, &is_signed);
        break;
    case QN_OP_shl:
        if (!is_constant(k, arg[1], 0, least - 1))
            return natural;
        break;
    case QN_OP_shr:
        least = common_bits(value, arg[0], arg[0], type, 8, &is_signed);
        if (!is_constant(k, arg[1], 0, least - 1))
            return natural;
        break;
    case QN_OP_div:
    case QN_OP_rem:
        if (!is_constant(k, arg[1], 1, INT64_MAX))
            return natural;
        least = common_bits(value, arg[0], arg[1], type, LEAST_MULTIPLIED, &is_signed);
        break;
    case QN_OP_min:
    case QN_OP_max:
        least = common_bits(value, arg[0], arg[1], type, 8, &is_signed);
        break;
    case QN_OP_eq:
    case QN_OP_ne:
    case QN_OP_lt:
    case QN_OP_le:
    case QN_OP_gt:
    case QN_OP_ge:
        bits = common_bits(value, arg[0], arg[1], type, 8, &is_signed);
        at->at = (uint8_t)bits;
        at->at_signed = is_signed;
        return natural;
    default:
        return natural;
    }
    at->at = (uint8_t)(least < natural ? least : natural);
    at->at_signed = is_signed;
    return at->at;
}

/* ---------------------------------------------------------------- saturating sums */

/** If instruction i is the smaller or larger of a value and a constant: that value, and what the
 * constant leaves of *limits; else 0. */
static uint32_t clamped_by(const qn_kernel *k, uint32_t i, qn_interval *limits)
{
    const qn_inst *x = &k->inst[i];
    bool is_min = qn__pure(x) == QN_OP_min;
    if (!qn__is_integer(x->type) || (!is_min && qn__pure(x) != QN_OP_max))
        return 0;
    const uint32_t *arg = qn__args(k, i);
    int n = k->inst[arg[0]].op == QN_I_CONST ? 0 : 1;
    if (k->inst[arg[n]].op != QN_I_CONST)
        return 0;
    int64_t bound = (int64_t)k->inst[arg[n]].imm;
    if (bound < 0 && qn__dtype_class(x->type) == QN_CLASS_U) /* beyond those of an i64 */
        return 0;
    if (is_min)
        limits->high = bound < limits->high ? bound : limits->high;
    else
        limits->low = bound > limits->low ? bound : limits->low;
    return arg[!n];
}

/** Whether limits cut a sum to what so many bits hold. */
static bool are_limits(qn_interval limits, qn_interval sum, int bits, bool is_signed)
{
    int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0,
            high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    return (limits.low == low || (limits.low < low && sum.low >= low)) &&
           (limits.high == high || (limits.high > high && sum.high <= high));
}

/** Whether the sum or difference of two ranges, each within 16 bits, wraps nowhere in a type. */
static bool is_within(int type, bool is_add, qn_interval a, qn_interval b)
{
    const int64_t low = is_add ? a.low + b.low : a.low - b.high,
                  high = is_add ? a.high + b.high : a.high - b.low;
    return fits((qn_interval){low, high, false}, qn__dtype_width(type),
                qn__dtype_class(type) == QN_CLASS_S) &&
           (low >= 0 || qn__dtype_class(type) == QN_CLASS_S);
}

/** Instruction i as a saturating sum or difference in 8 or 16 bits: it clamps one that does not
 * wrap, of operands that fit these bits, to their limits. Whether it is one. */
static bool find_sum(const qn_kernel *k, const qn_interval *range, uint32_t i, qn_value_info *v)
{
    qn_interval limits = {INT64_MIN, INT64_MAX, false};
    uint32_t sum = i;
    for (uint32_t next = clamped_by(k, i, &limits); next; next = clamped_by(k, next, &limits))
        sum = next;
    int op = qn__pure(&k->inst[sum]);
    if (sum == i || (op != QN_OP_add && op != QN_OP_sub) || limits.low > limits.high)
        return false;
    const uint32_t *arg = qn__args(k, sum);
    for (int bits = 8; bits <= 16 && bits < v->bits * 2 && !v->sum; bits *= 2)
        for (int is_signed = 0; is_signed < 2 && !v->sum; is_signed++)
            if (fits(range[arg[0]], bits, is_signed) && fits(range[arg[1]], bits, is_signed) &&
                is_within(k->inst[sum].type, op == QN_OP_add, range[arg[0]], range[arg[1]]) &&
                are_limits(limits, range[sum], bits, is_signed)) {
                v->sum = sum;
                v->bits = v->at = (uint8_t)bits;
                v->at_signed = is_signed;
            }
    return v->sum != 0;
}

/** Marks what only a saturating sum uses. */
static void absorb(qn_analysis *a)
{
    const qn_kernel *k = a->k;
    uint32_t *uses = qn__zalloc(k->n_insts, sizeof *uses);
    for (uint32_t i = 1; uses && i < k->n_insts; i++)
        for (int n = 0; n < k->inst[i].n_args; n++)
            uses[qn__args(k, i)[n]]++;
    for (uint32_t i = 1; uses && i < k->n_insts; i++) {
        qn_interval limits = {INT64_MIN, INT64_MAX, false};
        uint32_t next = a->value[i].sum ? clamped_by(k, i, &limits) : 0;
        while (next && uses[next] == 1) {
            a->value[next].is_absorbed = true;
            a->value[next].bits = a->value[i].bits; /* for who asks for the widest */
            next = next == a->value[i].sum ? 0 : clamped_by(k, next, &limits);
        }
    }
    qn__free(uses);
}

const uint32_t *qn__lane_args(const qn_analysis *a, uint32_t i)
{
    return qn__args(a->k, a->value[i].sum ? a->value[i].sum : i);
}

/* ---------------------------------------------------------------- low bits */

/** How many low bits of operand n the low `needed` bits of instruction i depend on. */
static int low_bits(const qn_kernel *k, uint32_t i, int n, int needed)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    const int natural = qn__dtype_width(k->inst[arg[n]].type);
    const qn_inst *other = &k->inst[arg[x->n_args == 2 ? !n : n]];
    if (!qn__is_integer(x->type) || !qn__is_integer(k->inst[arg[n]].type))
        return natural;
    if (x->op == QN_I_CAST)
        return needed < natural ? needed : natural;
    switch (qn__pure(x)) {
    case QN_OP_and: /* of a mask */
        for (int bits = 1; other->op == QN_I_CONST && bits < needed; bits *= 2)
            if (other->imm >> (bits - 1) >> 1 == 0)
                return bits;
        return needed;
    case QN_OP_add:
    case QN_OP_sub:
    case QN_OP_neg:
    case QN_OP_mul:
    case QN_OP_or:
    case QN_OP_xor:
    case QN_OP_not:
    case QN_OP_select:
        return needed;
    case QN_OP_shl:
        return n == 0 && is_constant(k, arg[1], 0, needed - 1) ? needed : natural;
    case QN_OP_shr: {
        int64_t by = (int64_t)k->inst[arg[1]].imm;
        return n == 0 && is_constant(k, arg[1], 0, natural - 1) && needed + by < natural
                   ? needed + (int)by
                   : natural;
    }
    default:
        return natural;
    }
}

/** Lanes of operations whose low bits alone are needed, and do not depend on the others, hold no
 * more of them. needed: [k->n_insts] */
static void keep_low_bits(qn_analysis *a, uint8_t *needed)
{
    const qn_kernel *k = a->k;
    for (uint32_t i = k->n_insts; i-- > 1;) {
        const qn_inst *x = &k->inst[i];
        qn_value_info *v = &a->value[i];
        const int natural = x->type == QN_VOID ? 0 : qn__dtype_width(x->type);
        int own = needed[i] && needed[i] < natural ? needed[i] : natural, most = own;
        for (int n = 0; n < x->n_args; n++) {
            const uint32_t arg = qn__args(k, i)[n];
            const int low = low_bits(k, i, n, own);
            const bool is_operand = qn__is_integer(k->inst[arg].type);
            if (is_operand && low > needed[arg])
                needed[arg] = (uint8_t)low;
            most = is_operand && n == 0 && low > most ? low : most;
        }
        int bits = 8, op = qn__pure(x);
        while (bits < most ||
               (op == QN_OP_mul && bits < LEAST_MULTIPLIED && !is_power(k, qn__args(k, i)[1])))
            bits *= 2;
        const bool is_cast = x->op == QN_I_CAST && qn__is_integer(k->inst[qn__args(k, i)[0]].type),
                   is_computed = is_cast || (v->at && x->op >= QN_I_PURE);
        if (!qn__is_integer(x->type) || bits >= v->bits || !is_computed)
            continue;
        v->bits = (uint8_t)bits;
        v->at = v->at ? (uint8_t)bits : 0;
        v->at_signed = v->at_signed && op != QN_OP_shr;
    }
}

/** Bits that instruction i wants of operand n. */
static int wanted_bits(const qn_kernel *k, const qn_value_info *v, uint32_t i, int n)
{
    const qn_inst *x = &k->inst[i];
    uint32_t arg = qn__args(k, i)[n];
    if (x->op == QN_I_CAST && qn__is_integer(x->type))
        return v[i].bits;
    if (x->op == QN_I_CAST)
        return qn__dtype_class(x->type) == QN_CLASS_F && v[arg].bits < 32 ? 32 : v[arg].bits;
    if (qn__is_access(x) && n < qn__n_indices(k, i)) /* the processor extends 32 bits in a gather */
        return v[arg].bits;
    if (v[i].at)
        return v[i].at;
    return qn__dtype_width(k->inst[arg].type);
}

/* ---------------------------------------------------------------- in which bits lanes compute */

/** What a lane of a value takes in 8, 16, 32 and 64 bits: bytes that operations and conversions
 * write; and the most bits of what it is computed from. */
typedef struct effort {
    float in[4];
    int top;
} effort;

static int log_bytes(int bits)
{
    return __builtin_ctz((unsigned)bits) - 3;
}

static float effort_in(const qn_analysis *a, const effort *of, uint32_t i, int bits)
{
    bool is_lanes = a->value[i].deps && qn__is_integer(a->k->inst[i].type);
    return is_lanes ? of[i].in[log_bytes(bits)] : 0;
}

/** Lanes of other bits: the upper half of what is computed is moved before it is extended. */
static float effort_to(int from, int to)
{
    return from == to ? 0 : from > to ? (float)from / 8 : 1.5F * (float)to / 8;
}

/** Whether lanes along some dimension, or of trips, are elements side by side. */
static bool is_contiguous(const qn_analysis *a, uint32_t i)
{
    int64_t stride;
    bool is = a->trips.n > 0;
    for (int d = 0; d < a->k->n_dims && !is; d++)
        is = qn__access_stride(a, i, d, &stride) && stride == 1;
    return is;
}

/** Whether the extended operands give the extended result, also beyond the bits of the type: casts
 * of numbers that fit, sums that wrap nowhere, and bits that do not depend on others. */
static bool is_extended(const qn_kernel *k, const qn_interval *range, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    const int op = x->op >= QN_I_PURE ? qn__pure(x) : -1;
    if (x->op == QN_I_CAST && qn__is_integer(k->inst[arg[0]].type))
        return fits(range[arg[0]], qn__dtype_width(x->type),
                    qn__dtype_class(x->type) == QN_CLASS_S) &&
               (range[arg[0]].low >= 0 || qn__dtype_class(k->inst[arg[0]].type) == QN_CLASS_S);
    if (op == QN_OP_add || op == QN_OP_sub)
        return qn__dtype_width(x->type) <= 32 &&
               is_within(x->type, op == QN_OP_add, range[arg[0]], range[arg[1]]);
    return op == QN_OP_and || op == QN_OP_or || op == QN_OP_xor;
}

/** What a lane takes that is computed in so many bits, with its operands; less than 0: it may not
 * be. */
static float effort_at(const qn_analysis *a, const qn_interval *range, const effort *of, uint32_t i,
                       int bits)
{
    const qn_inst *x = &a->k->inst[i];
    const qn_value_info *v = &a->value[i];
    const bool is_raised = bits > v->bits, is_wide = bits > qn__dtype_width(x->type);
    float sum = x->op == QN_I_CAST ? 0 : (float)bits / 8;
    if (bits < v->bits || (is_raised && v->sum) || (is_wide && !is_extended(a->k, range, i)))
        return -1;
    for (int n = 0; n < x->n_args; n++)
        sum += effort_in(a, of, qn__lane_args(a, i)[n], bits);
    return sum;
}

/** The bits in which instruction i takes least where lanes of `want` bits are asked for; what it
 * takes then. */
static int bits_for(const qn_analysis *a, const qn_interval *range, const effort *of, uint32_t i,
                    int want, float *least)
{
    const int top = want > of[i].top ? want : of[i].top;
    int best = 0;
    for (int bits = a->value[i].bits; bits <= top || !best; bits *= 2) {
        const float made = effort_at(a, range, of, i, bits), sum = made + effort_to(bits, want);
        if (made < 0 || (best && (bits > want ? sum >= *least : sum > *least)))
            continue;
        best = bits;
        *least = sum;
    }
    return best;
}

static bool is_computed(const qn_kernel *k, uint32_t i)
{
    return qn__is_integer(k->inst[i].type) && qn__is_pure(&k->inst[i]);
}

static void find_efforts(const qn_analysis *a, const qn_interval *range, effort *of)
{
    for (uint32_t i = 1; i < a->k->n_insts; i++) {
        const qn_inst *x = &a->k->inst[i];
        const int own = a->value[i].bits;
        const uint32_t from = x->op == QN_I_CAST ? qn__args(a->k, i)[0] : 0;
        const bool is_load = x->op == QN_I_LOAD,
                   is_apart = is_load && own < PERMUTED && !is_contiguous(a, i);
        of[i].top = own;
        for (int n = 0; n < x->n_args && is_computed(a->k, i); n++) {
            const int top = of[qn__args(a->k, i)[n]].top;
            of[i].top = top > of[i].top && a->value[qn__args(a->k, i)[n]].deps ? top : of[i].top;
        }
        for (int bits = 8; own && bits <= 64; bits *= 2) {
            float *in = &of[i].in[log_bytes(bits)];
            *in = is_apart                ? effort_to(PERMUTED, bits)
                  : is_load && bits > own ? (float)bits / 8
                                          : effort_to(own, bits);
            if (is_computed(a->k, i))
                (void)bits_for(a, range, of, i, bits, in);
            if (from && a->value[from].bits >= bits && bits > own) { /* a mask */
                const float masked = (float)bits / 8 + effort_in(a, of, from, bits);
                *in = masked < *in ? masked : *in;
            }
        }
    }
}

/** Whether instruction i is a quotient or a remainder of a number below twice the divisor, which is
 * known. */
static bool wraps_once(const qn_kernel *k, const qn_interval *value, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    const int op = x->op >= QN_I_PURE ? qn__pure(x) : -1;
    if ((op != QN_OP_div && op != QN_OP_rem) || x->type != QN_I64)
        return false;
    const qn_interval of = value[qn__args(k, i)[0]], by = value[qn__args(k, i)[1]];
    return of.low >= 0 && by.low == by.high && by.low > 0 && by.low <= INT32_MAX &&
           of.high < 2 * by.low;
}

bool qn__narrow(qn_analysis *a)
{
    const qn_kernel *k = a->k;
    qn_interval *range = qn__zalloc(k->n_insts, sizeof *range);
    effort *of = qn__zalloc(k->n_insts, sizeof *of);
    uint8_t *want = qn__zalloc(k->n_insts, 2), *needed = want ? want + k->n_insts : NULL;
    bool has_sums = false;
    if (range)
        qn__find_ranges(a, range);
    const bool is_done = range && of && want;
    for (uint32_t i = 1; is_done && i < k->n_insts; i++) {
        qn_value_info *v = &a->value[i];
        v->at = 0;
        v->sum = 0;
        v->is_absorbed = false;
        v->bits = (uint8_t)(k->inst[i].type == QN_VOID ? 0 : qn__dtype_width(k->inst[i].type));
        if (k->inst[i].type == QN_BOOL || qn__is_integer(k->inst[i].type))
            v->bits = (uint8_t)width_of(k, range, i, v);
        has_sums |= k->inst[i].op >= QN_I_PURE && find_sum(k, range, i, v);
        v->is_signed = may_be_negative(range[i], k->inst[i].type);
        v->wraps_once = wraps_once(k, range, i);
        for (v->least = 8; v->least < 64 && !fits(range[i], v->least, true);)
            v->least = (uint8_t)(v->least * 2);
        want[i] = UINT8_MAX;
    }
    if (is_done)
        keep_low_bits(a, needed);
    if (has_sums)
        absorb(a);
    if (is_done)
        find_efforts(a, range, of);
    for (uint32_t i = k->n_insts; is_done && i-- > 1;) {
        qn_value_info *v = &a->value[i];
        v->wanted = want[i];
        float least;
        if (want[i] != UINT8_MAX && v->bits && is_computed(k, i)) {
            v->bits = (uint8_t)bits_for(a, range, of, i, want[i], &least);
            v->at = v->at ? v->bits : 0;
        }
        for (int n = 0; n < k->inst[i].n_args && !v->is_absorbed; n++) {
            uint32_t arg = qn__lane_args(a, i)[n];
            int by = v->sum ? v->at : wanted_bits(k, a->value, i, n);
            want[arg] = by < want[arg] ? (uint8_t)by : want[arg];
        }
    }
    qn__free(of);
    qn__free(range);
    qn__free(want);
    return is_done;
}

uint32_t qn__paired_product(const qn_analysis *a, uint32_t reduce)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[reduce];
    if (x->op != QN_I_REDUCE || x->sub != QN_COMBINE_SUM ||
        (x->type != QN_I32 && x->type != QN_U32))
        return 0;
    uint32_t product = qn__args(k, x->region[1] - 1)[0];
    const uint32_t *factor = qn__args(k, product);
    if (qn__pure(&k->inst[product]) != QN_OP_mul || k->inst[product].type != x->type)
        return 0;
    return a->value[factor[0]].least <= 16 && a->value[factor[1]].least <= 16 ? product : 0;
}
