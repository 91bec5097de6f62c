/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c: the address of an access. It is a byte pointer for lane 0 plus what the lanes add. The
 * pointer is built from terms, outermost loop first, so that everything that does not change in a
 * loop is computed outside it and shared between accesses; what no loop changes comes next, as one
 * index register; the constant part is added last and becomes the displacement of the instruction.
 */
#include "jit/analysis/group.h"
#include "jit/lower/lower.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- terms of an address */

/** Whether a value is an index of a loop and a constant, not one of the domain: what is known of
 * that is known of the whole. */
static bool is_ahead_of_trip(const lower *g, LLVMValueRef value, int64_t *by)
{
    if (!g->grid || !LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMAdd ||
        !qn__is_const(LLVMGetOperand(value, 1), by))
        return false;
    for (int at = g->depth; at > 0; at--)
        if (g->level[at].index == LLVMGetOperand(value, 0))
            return true;
    return false;
}

static void add_term(lower *g, address *x, LLVMValueRef value, int at, int64_t scale,
                     LLVMValueRef stride)
{
    int64_t known;
    if (scale == 0)
        return;
    if (!stride && is_ahead_of_trip(g, value, &known)) { /* of trips side by side: one pointer */
        x->constant = qn__wrap_add(x->constant, qn__wrap_mul(known, scale));
        value = LLVMGetOperand(value, 0);
    }
    if (!stride && qn__is_const(value, &known)) {
        x->constant = qn__wrap_add(x->constant, qn__wrap_mul(known, scale));
        return;
    }
    for (int n = 0; n < x->n_terms; n++)
        if (x->term[n].value == value && x->term[n].stride == stride) {
            x->term[n].scale = qn__wrap_add(x->term[n].scale, scale);
            return;
        }
    if (x->n_terms == MOST_TERMS) {
        g->failed = true;
        return;
    }
    x->term[x->n_terms++] = (term){value, stride, scale, at};
}

static bool is_element(int64_t scale)
{
    return scale == 1 || scale == 2 || scale == 4 || scale == 8;
}

static LLVMValueRef in_bytes(lower *g, LLVMValueRef v, int64_t scale)
{
    return scale == 1 ? v : LLVMBuildMul(g->b, v, qn__int(LLVMTypeOf(v), scale), "");
}

/** lanes += vector x scale [x stride]. Where one vector of elements is all, a gather scales it. */
static void add_lanes(lower *g, address *x, LLVMValueRef vector, int64_t scale, LLVMValueRef stride)
{
    LLVMValueRef v = vector;
    if (!x->lanes && !x->scaled && !stride && is_element(scale) && !LLVMIsConstant(vector)) {
        x->scaled = vector;
        x->scale = scale;
        return;
    }
    if (x->scaled) {
        LLVMValueRef first = x->scaled;
        x->scaled = NULL;
        x->lanes = in_bytes(g, first, x->scale);
    }
    v = in_bytes(g, v, scale);
    if (stride)
        v = LLVMBuildMul(g->b, v, qn__splat(g, stride, 0), "");
    x->lanes = x->lanes ? LLVMBuildAdd(g->b, x->lanes, v, "") : v;
}

/** lanes += value x scale in 32 bits, which gathers take twice as fast: where the index is a value
 * of so many, and what lanes in range reach leaves room for other dimensions. False: it may not. */
static bool add_narrow(lower *g, address *x, uint32_t value, int p, const qn_dim_fact *dim,
                       int64_t scale)
{
    enum { MOST = INT32_MAX / QN_MAX_RANK };
    const qn_affine *f = &g->a.affine[value];
    const uint32_t sym = f->sym[0];
    const int64_t extent = dim->extent.value, numbers[] = {f->constant, dim->lower.value, scale};
    bool is = sym && !f->sym[1] && f->sym_coef[0] == 1 && dim->lower.kind == QN_FACT_EXACT &&
              dim->extent.kind == QN_FACT_EXACT && extent < MOST && g->a.value[sym].bits <= 32;
    for (int n = 0; n < 3; n++) /* the lowest number has no magnitude */
        is &= numbers[n] > -MOST && numbers[n] < MOST;
    is = is && (llabs(numbers[0]) + llabs(numbers[1]) + extent) * llabs(scale) < MOST;
    for (int d = 0; d < qn__n_indexed(&g->a); d++)
        is &= !f->coef[d];
    if (!is)
        return false;
    LLVMValueRef v = qn__vector_bits(g, sym, p, 32);
    const bool is_scaled = !x->narrow && is_element(scale); /* by the gather */
    v = is_scaled ? v : in_bytes(g, v, scale);
    x->narrow = x->narrow ? LLVMBuildAdd(g->b, in_bytes(g, x->narrow, x->narrow_bytes), v, "") : v;
    x->narrow_bytes = is_scaled ? scale : 1;
    return true;
}

/** Adds (affine form) x scale [x stride] for part p. */
static void add_affine(lower *g, address *x, uint32_t value, int p, const qn_dim_fact *dim,
                       int64_t scale, LLVMValueRef stride)
{
    const qn_affine *f = &g->a.affine[value];
    int64_t constant = f->constant;
    for (int d = 0; d < qn__n_indexed(&g->a); d++) {
        if (!f->coef[d])
            continue;
        bool is_lane = d == g->block->lane_dim;
        constant =
            qn__wrap_add(constant, qn__wrap_mul(f->coef[d], qn__part_ahead(g, d, p) + g->ahead[d]));
        add_term(g, x, g->iv[d], g->iv_level[d], qn__wrap_mul(f->coef[d], scale), stride);
        if (is_lane && g->width > 1 && stride)
            add_lanes(g, x, qn__lanes(g, g->i64, qn__wrap_mul(f->coef[d], scale)), 1, stride);
        else if (is_lane && g->width > 1)
            x->lane_bytes = qn__wrap_add(x->lane_bytes, qn__wrap_mul(f->coef[d], scale));
    }
    for (int s = 0; s < 2; s++) {
        uint32_t sym = f->sym[s];
        if (!sym)
            continue;
        int64_t by = qn__wrap_mul(f->sym_coef[s], scale);
        const bool is_vector = g->width > 1 && g->a.value[sym].shape != QN_UNIFORM;
        if (is_vector && x->is_gather && !stride && add_narrow(g, x, value, p, dim, scale))
            continue;
        if (is_vector)
            add_lanes(g, x, qn__vector(g, sym, p), by, stride);
        else
            add_term(g, x, qn__scalar(g, sym, p), qn__level_of(g, sym, p), by, stride);
    }
    if (constant)
        add_term(g, x, qn__const_i64(g, constant), 0, scale, stride);
}

LLVMValueRef qn__relative_index(lower *g, uint32_t value, int p, const qn_fact *lower_bound,
                                bool vector)
{
    LLVMValueRef v = vector ? qn__vector(g, value, p) : qn__scalar(g, value, p);
    if (lower_bound->kind == QN_FACT_EXACT && lower_bound->value == 0)
        return v;
    LLVMValueRef low = qn__fact(g, lower_bound);
    return LLVMBuildSub(g->b, v, vector ? qn__splat(g, low, 0) : low, "");
}

/** The level at which qn__relative_index makes a scalar: that of the value where nothing is
 * subtracted. */
static int relative_level(lower *g, uint32_t value, int p, const qn_fact *lower_bound)
{
    bool is_zero = lower_bound->kind == QN_FACT_EXACT && lower_bound->value == 0;
    return is_zero ? qn__level_of(g, value, p) : g->depth;
}

LLVMValueRef qn__shared(lower *g, int kind, LLVMValueRef a, LLVMValueRef b, int64_t n, int *at)
{
    sharing x;
    LLVMValueRef found = qn__memo_begin(g, &x, (memo_key){kind, a, b, n}, at);
    if (found)
        return found;
    found = kind == MEMO_SCALE       ? LLVMBuildMul(g->b, a, qn__const_i64(g, n), "")
            : kind == MEMO_PRODUCT   ? LLVMBuildMul(g->b, a, b, "")
            : kind == MEMO_SUM       ? LLVMBuildAdd(g->b, a, b, "")
            : kind == MEMO_QUOTIENT  ? LLVMBuildUDiv(g->b, a, b, "")
            : kind == MEMO_REMAINDER ? LLVMBuildURem(g->b, a, b, "")
                                     : qn__gep(g, g->i8, a, b);
    return qn__memo_end(g, &x, found);
}

/** Digits of `rest`, fastest first, at the level `at`. */
static void add_digits(lower *g, address *x, LLVMValueRef rest, int at, const qn_dim_fact *dim,
                       int64_t bytes)
{
    bool vector = qn__is_vector(rest);
    for (int n = 0; n < dim->n_digits; n++) {
        const qn_digit_fact *digit = &g->f->digit[dim->first_digit + n];
        bool exact = digit->stride.kind == QN_FACT_EXACT;
        int64_t scale = exact ? qn__wrap_mul(digit->stride.value, bytes) : bytes;
        LLVMValueRef stride = exact ? NULL : qn__fact(g, &digit->stride), part = rest;
        if (n + 1 < dim->n_digits) {
            LLVMValueRef extent = qn__fact(g, &digit->extent);
            extent = vector ? qn__splat(g, extent, 0) : extent;
            part = qn__shared(g, MEMO_REMAINDER, rest, extent, 0, &at);
            rest = qn__shared(g, MEMO_QUOTIENT, rest, extent, 0, &at);
        }
        if (vector && scale)
            add_lanes(g, x, part, scale, stride);
        else
            add_term(g, x, part, at, scale, stride);
    }
}

/** The digits of an index that is a multiple of the width, where the fastest digit is as long as
 * that, and there is one more: the index times a number. False: that is not so. */
static bool add_whole_digits(lower *g, address *x, LLVMValueRef index, int at,
                             const qn_dim_fact *dim, int64_t bytes)
{
    const qn_fact *extent = &g->f->digit[dim->first_digit].extent,
                  *stride = &g->f->digit[dim->first_digit + 1].stride;
    if (dim->n_digits != 2 || extent->kind != QN_FACT_EXACT || extent->value != g->width ||
        stride->kind != QN_FACT_EXACT || qn__wrap_mul(stride->value, bytes) % g->width)
        return false;
    add_term(g, x, index, at, qn__wrap_mul(stride->value, bytes) / g->width, NULL);
    return true;
}

static void add_dimension(lower *g, address *x, uint32_t value, int p, const qn_dim_fact *dim,
                          int64_t bytes)
{
    if (dim->n_digits == 0)
        return;
    if (dim->n_digits > 1 && qn__lanes_share_digits(g, value, dim)) {
        int at = relative_level(g, value, p, &dim->lower);
        LLVMValueRef index = qn__relative_index(g, value, p, &dim->lower, false);
        if (!add_whole_digits(g, x, index, at, dim, bytes))
            add_digits(g, x, index, at, dim, bytes);
        x->lane_bytes = qn__wrap_add(
            x->lane_bytes, qn__wrap_mul(g->f->digit[dim->first_digit].stride.value, bytes));
        return;
    }
    int64_t ahead;
    if (dim->n_digits == 2 && qn__jam_shares_digits(g, value, dim, p, &ahead)) {
        const qn_fact *extent = &g->f->digit[dim->first_digit].extent,
                      *stride = &g->f->digit[dim->first_digit + 1].stride;
        int first = p - p % g->jam_max; /* the first jammed iteration: the fastest digit is 0 */
        LLVMValueRef index = qn__relative_index(g, value, first, &dim->lower, false);
        add_term(g, x, index, relative_level(g, value, first, &dim->lower),
                 qn__wrap_mul(stride->value, bytes) / extent->value, NULL);
        x->constant = qn__wrap_add(
            x->constant,
            qn__wrap_mul(ahead, qn__wrap_mul(g->f->digit[dim->first_digit].stride.value, bytes)));
        return;
    }
    if (dim->n_digits > 1) {
        bool vector = g->width > 1 && g->a.value[value].shape != QN_UNIFORM;
        LLVMValueRef position = qn__relative_index(g, value, p, &dim->lower, vector);
        add_digits(g, x, position, relative_level(g, value, p, &dim->lower), dim, bytes);
        return;
    }
    const qn_digit_fact *digit = &g->f->digit[dim->first_digit];
    bool exact = digit->stride.kind == QN_FACT_EXACT;
    int64_t scale = exact ? qn__wrap_mul(digit->stride.value, bytes) : bytes;
    LLVMValueRef stride = exact ? NULL : qn__fact(g, &digit->stride);
    if (scale == 0)
        return;
    add_affine(g, x, value, p, dim, scale, stride);
    add_term(g, x, qn__fact(g, &dim->lower), 0, qn__wrap_mul(scale, -1), stride);
}

/* ---------------------------------------------------------------- building an address */

LLVMValueRef qn__element_pointer(lower *g, LLVMValueRef base, LLVMValueRef index, int at,
                                 int64_t bytes)
{
    int scaled = at;
    LLVMValueRef offset = qn__shared(g, MEMO_SCALE, index, NULL, bytes, &scaled);
    at = scaled > at ? scaled : at; /* the product may have been there before the base */
    return qn__shared(g, MEMO_ADDRESS, base, offset, 0, &at);
}

static LLVMValueRef term_bytes(lower *g, const term *t, int *at)
{
    LLVMValueRef v = t->value;
    *at = t->level;
    if (t->stride) {
        int stride_level = 0;
        LLVMValueRef bytes =
            t->scale == 1 ? t->stride
                          : qn__shared(g, MEMO_SCALE, t->stride, NULL, t->scale, &stride_level);
        return qn__shared(g, MEMO_PRODUCT, v, bytes, 0, at);
    }
    return t->scale == 1 ? v : qn__shared(g, MEMO_SCALE, v, NULL, t->scale, at);
}

/** Outermost level first. */
static void sort_terms(address *x)
{
    for (int n = 1; n < x->n_terms; n++) {
        term t = x->term[n];
        int m = n;
        for (; m > 0 && x->term[m - 1].level > t.level; m--)
            x->term[m] = x->term[m - 1];
        x->term[m] = t;
    }
}

/** pointer + offset, whose level is `at`. */
static void add_offset(lower *g, address *x, LLVMValueRef offset, int at)
{
    x->level = at > x->level ? at : x->level;
    x->pointer = qn__shared(g, MEMO_ADDRESS, x->pointer, offset, 0, &x->level);
}

/** The sum: what the loops add, outermost first, so that the terms of the loops around are shared;
 * then, as one offset, what is constant in the whole function: neighbours with dynamic strides are
 * then a register each, not an address that is made anew for every row. */
static void add_terms(lower *g, address *x)
{
    LLVMValueRef constant = NULL;
    int constant_level = 0; /* deeper where it is first needed in a branch */
    sort_terms(x);
    for (int n = 0; n < x->n_terms; n++) {
        int at;
        LLVMValueRef offset = term_bytes(g, &x->term[n], &at);
        if (x->term[n].level > 0) {
            add_offset(g, x, offset, at);
            continue;
        }
        constant_level = at > constant_level ? at : constant_level;
        constant =
            constant ? qn__shared(g, MEMO_SUM, constant, offset, 0, &constant_level) : offset;
    }
    if (constant)
        add_offset(g, x, constant, constant_level);
}

static void finish_address(lower *g, address *x, const qn_param_fact *param, int64_t bytes)
{
    x->pointer = qn__slot(g, param->slot, g->ptr);
    x->level = 0;
    add_terms(g, x);
    if (x->narrow)
        add_lanes(g, x, LLVMBuildSExt(g->b, x->narrow, qn__as_many(g->i64, x->narrow), ""),
                  x->narrow_bytes, NULL);
    if (x->lanes || x->scaled ||
        (x->lane_bytes && x->lane_bytes != bytes && x->lane_bytes != -bytes)) {
        x->kind = ADDRESS_LANES;
        x->stride = x->lanes || x->scaled || x->lane_bytes % bytes ? 0 : x->lane_bytes / bytes;
        if (x->lane_bytes)
            add_lanes(g, x, qn__lanes(g, g->i64, x->lane_bytes), 1, NULL);
    } else {
        x->kind = x->lane_bytes == 0       ? ADDRESS_UNIFORM
                  : x->lane_bytes == bytes ? ADDRESS_UNIT
                                           : ADDRESS_REVERSED;
        if (x->kind == ADDRESS_REVERSED)
            x->constant = qn__wrap_add(x->constant, -(int64_t)(g->width - 1) * bytes);
    }
}

void qn__displace(lower *g, address *x)
{
    if (x->constant)
        x->pointer = qn__ahead(g, x->pointer, x->constant);
}

address qn__displaced(lower *g, uint32_t i, int p, const check *c)
{
    address x;
    qn__make_address(g, i, p, c && c->is_clamped ? c->position : NULL, &x);
    qn__displace(g, &x);
    return x;
}

void qn__make_address(lower *g, uint32_t i, int p, const LLVMValueRef *clamped, address *x)
{
    const qn_inst *inst = &g->k->inst[i];
    const qn_param_fact *param = &g->f->param[inst->imm];
    const uint32_t *arg = qn__args(g->k, i);
    int64_t unit = qn__unit_of(g->k, g->f, i);
    memset(x, 0, sizeof *x);
    x->is_gather = inst->op == QN_I_LOAD && !qn__nearness(&g->a, g->block->lane_dim, i);
    x->constant = qn__access_offset(g->k, i);
    for (int r = 0; r < qn__n_indices(g->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        if (clamped && clamped[r]) /* relative to the lower bound; one digit is a case of several */
            add_digits(g, x, clamped[r], g->depth, dim, unit);
        else
            add_dimension(g, x, arg[r], p, dim, unit);
    }
    finish_address(g, x, param, qn__access_bytes(g->k, i));
}

LLVMValueRef qn__lane_pointers(lower *g, const address *x)
{
    if (g->width == 1)
        return x->pointer;
    if (x->scaled) {
        LLVMTypeRef element = qn__int_type(g, x->scale * 8);
        return qn__gep(g, element, x->pointer, x->scaled);
    }
    LLVMValueRef offsets = x->lanes;
    int64_t bytes = x->lane_bytes;
    if (x->kind == ADDRESS_UNIFORM)
        offsets = LLVMConstNull(qn__vector_of(g, g->i64));
    else if (x->kind != ADDRESS_LANES)
        offsets = qn__lanes(g, g->i64, bytes);
    LLVMValueRef base = x->pointer;
    if (x->kind == ADDRESS_REVERSED)
        base = qn__ahead(g, base, (int64_t)(g->width - 1) * -bytes);
    return qn__gep(g, g->i8, base, offsets);
}
