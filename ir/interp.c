/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interp.c: the interpreter, the definition of every instruction and of iteration order. One value
 * slot an instruction; the body runs once per iteration, dimensions as declared, first slowest;
 * nothing is allocated per iteration. Relies on a verified kernel and checked arguments. Values of
 * ops are those of ir/eval.c, orders of reductions those of ir/order.c.
 */
#include "ir/interp.h"
#include "ir/order.h"

#include <string.h>

enum { INSTRUCTIONS_PER_LOOK = 1 << 16 };

static void run_region(qn_interp *s, uint32_t begin, uint32_t end);

/* ---------------------------------------------------------------- faults */

void qn__interp_record(qn_interp *s, qn_status status, int64_t site, int rank, const int64_t *index)
{
    qn_fault *f = s->fault;
    if (s->iteration >= f->iteration || s->left < 0)
        return;
    f->iteration = s->iteration;
    f->point = s->point;
    f->site = site;
    f->status = status;
    memset(f->index, 0, sizeof f->index);
    for (int d = 0; d < rank; d++)
        f->index[d] = index[d];
}

/* ---------------------------------------------------------------- memory */

/** Distance from the lower bound; everything outside the dimension is >= its extent. */
static uint64_t from_lower(const qn_layout *l, int d, int64_t index)
{
    return (uint64_t)index - (uint64_t)l->dim[d].lower;
}

/** Applies the bounds policy to the indices of an access; false: the access is not performed. */
static bool check_indices(qn_interp *s, uint32_t inst, const qn_place *p, int64_t *index)
{
    const qn_layout *l = p->layout;
    for (int d = 0; d < p->rank; d++) {
        uint64_t extent = (uint64_t)l->dim[d].extent;
        if (from_lower(l, d, index[d]) < extent || (l->projected >> d & 1) != 0)
            continue;
        if (p->checks == QN_CHECKS_REPORT)
            qn__interp_record(s, QN_ERR_BOUNDS,
                              s->given ? qn__site_in_function(p->argument)
                                       : qn__site_of(s->k, inst),
                              p->rank, index);
        if (p->checks == QN_CHECKS_REPORT || extent == 0)
            return false;
        index[d] = index[d] < l->dim[d].lower ? l->dim[d].lower
                                              : (int64_t)((uint64_t)l->dim[d].lower + extent - 1);
    }
    return true;
}

/** Address of the element of an access, or NULL if it is not performed. */
static void *locate(qn_interp *s, uint32_t i, const qn_place *p)
{
    const uint32_t *args = qn__args(s->k, i);
    const qn_layout *l = p->layout;
    int64_t index[QN_MAX_RANK];
    for (int d = 0; d < p->rank; d++)
        index[d] = (int64_t)s->value[args[d]];
    if (p->checks != QN_CHECKS_NONE && !check_indices(s, i, p, index))
        return NULL;
    uint64_t offset = 0;
    if (l->digits) {
        offset = (uint64_t)qn__layout_offset_of(l, index) - (uint64_t)l->origin;
    } else {
        for (int d = 0; d < p->rank; d++)
            if ((l->projected >> d & 1) == 0)
                offset += from_lower(l, d, index[d]) * (uint64_t)l->dim[d].stride;
    }
    void *at = p->data + (int64_t)(offset * (uint64_t)p->unit) + qn__access_offset(s->k, i);
    if (s->watch)
        qn__look_at_access(s, i, p, index, at);
    return at;
}

static uint64_t atomic_get(const void *p, int64_t bytes)
{
    switch (bytes) {
    case 1:
        return __atomic_load_n((const uint8_t *)p, __ATOMIC_RELAXED);
    case 2:
        return __atomic_load_n((const uint16_t *)p, __ATOMIC_RELAXED);
    case 4:
        return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
    }
    return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

static void atomic_set(void *p, int64_t bytes, uint64_t bits)
{
    switch (bytes) {
    case 1:
        __atomic_store_n((uint8_t *)p, (uint8_t)bits, __ATOMIC_RELAXED);
        return;
    case 2:
        __atomic_store_n((uint16_t *)p, (uint16_t)bits, __ATOMIC_RELAXED);
        return;
    case 4:
        __atomic_store_n((uint32_t *)p, (uint32_t)bits, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n((uint64_t *)p, bits, __ATOMIC_RELAXED);
}

/** Replaces *expected by `bits`, or reads what is there into *expected. */
static bool atomic_swap(void *p, int64_t bytes, uint64_t *expected, uint64_t bits)
{
#define SWAP(type)                                                                                 \
    type old = (type)*expected;                                                                    \
    bool done = __atomic_compare_exchange_n((type *)p, &old, (type)bits, false, __ATOMIC_RELAXED,  \
                                            __ATOMIC_RELAXED);                                     \
    *expected = old;                                                                               \
    return done
    switch (bytes) {
    case 1: {
        SWAP(uint8_t);
    }
    case 2: {
        SWAP(uint16_t);
    }
    case 4: {
        SWAP(uint32_t);
    }
    }
    SWAP(uint64_t);
#undef SWAP
}

static uint64_t run_load(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const qn_place *p = &s->place[x->imm];
    const void *at = locate(s, i, p);
    if (!at)
        return 0;
    return p->is_atomic ? qn__canonical(x->type, atomic_get(at, qn_dtype_bytes(x->type)))
                        : qn__load_element(x->type, at);
}

static void run_store(qn_interp *s, uint32_t i)
{
    const qn_place *p = &s->place[s->k->inst[i].imm];
    void *at = locate(s, i, p);
    if (!at)
        return;
    uint64_t bits = s->value[qn__args(s->k, i)[p->rank]];
    int dtype = qn__access_dtype(s->k, i);
    if (p->is_atomic)
        atomic_set(at, qn_dtype_bytes(dtype), bits);
    else
        qn__store_element(dtype, at, bits);
}

/** What an update makes of the old value. */
static uint64_t run_update(qn_interp *s, uint32_t i, uint64_t old)
{
    const qn_inst *x = &s->k->inst[i];
    s->value[x->region[0]] = old;
    run_region(s, x->region[0], x->region[1]);
    return s->value[qn__args(s->k, x->region[1] - 1)[0]];
}

static uint64_t run_atomic(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const qn_place *p = &s->place[x->imm];
    void *at = locate(s, i, p);
    if (!at)
        return 0;
    const uint32_t *args = qn__args(s->k, i) + p->rank;
    uint64_t value = qn__is_update(x) ? 0 : s->value[args[0]],
             stored = atomic_get(at, qn_dtype_bytes(x->type));
    for (;;) {
        uint64_t old = qn__canonical(x->type, stored), next = value;
        if (x->sub == QN_COMBINE_COMPARE_EXCHANGE && old != s->value[args[1]])
            return old;
        if (qn__is_update(x))
            next = run_update(s, i, old);
        else if (qn__combines(x->sub))
            next = qn__eval_combine(x->sub, x->type, old, value);
        if (!atomic_swap(at, qn_dtype_bytes(x->type), &stored, next))
            continue;
        if (qn__combines(x->sub) && qn__watch_seeks_nan(s->watch))
            qn__look_for_nan(s, i, x->type, next, 2, (const int[]){x->type, x->type},
                         (const uint64_t[]){old, value});
        return old;
    }
}

/* ---------------------------------------------------------------- launches that end early */

/** Counts one trip of a loop over so many instructions; true if the launch was cancelled, or an
 * access was out of range long ago, for all loops from then on. A launch that prints, or is
 * watched, goes on behind such an access. */
static bool is_cancelled(qn_interp *s, uint32_t n_instructions)
{
    if (s->left < 0)
        return true;
    s->left -= n_instructions;
    if (s->left >= 0)
        return false;
    if (s->fault->status == QN_ERR_BOUNDS && !s->watch && !s->printed &&
        ++s->n_looks_behind > QN_MOST_LOOKS_BEHIND / 8) /* each is of more work than one of code */
        return true;
    if (!qn__is_stopped(s->fault->cancel)) {
        s->left = INSTRUCTIONS_PER_LOOK;
        return false;
    }
    s->fault->status = QN_ERR_CANCELLED;
    return true;
}

/* ---------------------------------------------------------------- reductions */

/** Steps indices lexicographically, last dimension fastest; false after the last. */
static bool next_point(qn_interp *s, const uint32_t *dims, int n)
{
    for (int d = n - 1; d >= 0; d--) {
        uint64_t number = s->k->inst[dims[d]].imm;
        uint64_t *index = &s->value[dims[d]];
        if ((int64_t)++*index < s->domain->end[number])
            return true;
        *index = (uint64_t)s->domain->begin[number];
    }
    return false;
}

static uint64_t run_reduce(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const uint32_t *dims = qn__args(s->k, i);
    uint32_t value = qn__args(s->k, x->region[1] - 1)[0], product = qn__contracted_product(s->k, i);
    const uint32_t *factor = qn__args(s->k, product);
    uint64_t outer = s->point;
    uint32_t dims_outside = s->dims;
    for (int d = 0; d < x->n_args; d++) {
        uint64_t number = s->k->inst[dims[d]].imm;
        if (s->domain->begin[number] >= s->domain->end[number])
            return qn__reduce_empty(x->sub, x->type);
        s->value[dims[d]] = (uint64_t)s->domain->begin[number];
        outer *= (uint64_t)s->domain->end[number] - (uint64_t)s->domain->begin[number];
    }
    qn_ordered_sum r;
    qn__order_start(&r, x->sub, x->type, (int)x->imm);
    uint64_t saved = s->point;
    bool has_nan = false; /* among the values */
    s->point = outer;
    for (int d = 0; d < x->n_args; d++)
        s->dims |= UINT32_C(1) << s->k->inst[dims[d]].imm;
    do {
        run_region(s, x->region[0], x->region[1]);
        has_nan |= qn__is_nan(x->type, s->value[value]);
        if (product)
            qn__order_add_product(&r, s->value[factor[0]], s->value[factor[1]]);
        else
            qn__order_add(&r, s->value[value]);
        s->point++;
    } while (!is_cancelled(s, x->region[1] - x->region[0]) && next_point(s, dims, x->n_args));
    s->point = saved;
    s->dims = dims_outside;
    uint64_t result = qn__order_end(&r);
    if (!has_nan && qn__watch_seeks_nan(s->watch))
        qn__look_for_nan(s, i, x->type, result, 0, NULL, NULL);
    return result;
}

/* ---------------------------------------------------------------- assertions and prints */

static void run_assert(qn_interp *s, uint32_t i)
{
    const uint32_t *args = qn__args(s->k, i);
    int n = s->k->inst[i].n_args - 1;
    int64_t shown[QN_MAX_SHOWN];
    if (s->value[args[0]] || s->checks == QN_CHECKS_NONE)
        return;
    for (int j = 0; j < n; j++)
        shown[j] = (int64_t)s->value[args[1 + j]];
    qn__interp_record(s, QN_ERR_ASSERT,
                      qn__site_of_assert(qn__number_of_function(s->launched, s->k), i), n, shown);
}

static void run_print(qn_interp *s, uint32_t i)
{
    const qn_print_buffer *buffer = s->printed;
    const qn_kernel *k = s->launched;
    int64_t n = buffer ? ++buffer->word[0] : 0;
    if (n == 0 || n > buffer->lines)
        return;
    int64_t *row = buffer->word + n * qn__printed_words(k);
    row[QN_PRINTED_SITE] = qn__site_of_assert(qn__number_of_function(k, s->k), i);
    row[QN_PRINTED_DIMS] = s->dims;
    row += QN_PRINTED_INDICES;
    for (int d = 0; d < k->n_dims; d++)
        *row++ = s->dims >> d & 1 ? (int64_t)s->outermost[k->dim[d]] : 0;
    for (int j = 0; j < s->k->inst[i].n_args; j++)
        *row++ = (int64_t)s->value[qn__args(s->k, i)[j]];
}

/* ---------------------------------------------------------------- control flow */

/** Copies the operands of the yield that ends a region. */
static void take_yield(const qn_interp *s, uint32_t region_end, uint64_t *out)
{
    const qn_inst *x = &s->k->inst[region_end - 1];
    const uint32_t *args = qn__args(s->k, region_end - 1);
    for (int j = 0; j < x->n_args; j++)
        out[j] = s->value[args[j]];
}

/** Gives values to the `carried` or `result` instructions that stand from instruction `at` on. */
static void give(qn_interp *s, uint32_t at, int op, const uint64_t *values)
{
    const qn_kernel *k = s->k;
    for (; at < k->n_insts && k->inst[at].op == op; at++)
        s->value[at] = values[k->inst[at].imm];
}

static void run_if(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    bool first = s->value[qn__args(s->k, i)[0]] != 0;
    uint32_t begin = x->region[first ? 0 : 1], end = x->region[first ? 1 : 2];
    if (begin == end)
        return;
    uint64_t results[QN_MAX_CARRIED];
    run_region(s, begin, end);
    take_yield(s, end, results);
    give(s, x->region[2], QN_I_RESULT, results);
}

static void run_for(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const uint32_t *args = qn__args(s->k, i);
    int64_t index = (int64_t)s->value[args[0]], end = (int64_t)s->value[args[1]];
    uint64_t carried[QN_MAX_CARRIED];
    for (int j = 2; j < x->n_args; j++)
        carried[j - 2] = s->value[args[j]];
    while (index < end) {
        s->value[x->region[0]] = (uint64_t)index;
        give(s, x->region[0] + 1, QN_I_CARRIED, carried);
        run_region(s, x->region[0], x->region[1]);
        take_yield(s, x->region[1], carried);
        if ((uint64_t)end - (uint64_t)index <= x->imm ||
            is_cancelled(s, x->region[1] - x->region[0]))
            break; /* the next index is not below the end, or would wrap */
        index += (int64_t)x->imm;
    }
    give(s, x->region[2], QN_I_RESULT, carried);
}

/** The condition is asked before each trip; a loop whose condition still holds after max_trips
 * trips is at its limit. */
static void run_while(qn_interp *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const uint32_t *args = qn__args(s->k, i);
    int64_t max_trips = (int64_t)s->value[args[0]];
    uint64_t carried[QN_MAX_CARRIED], condition[QN_MAX_CARRIED];
    for (int j = 1; j < x->n_args; j++)
        carried[j - 1] = s->value[args[j]];
    for (int64_t trip = 0;; trip++) {
        give(s, x->region[0], QN_I_CARRIED, carried);
        run_region(s, x->region[0], x->region[1]);
        take_yield(s, x->region[1], condition);
        if (condition[0] == 0)
            break;
        if (trip >= max_trips) {
            qn__interp_record(s, QN_ERR_LIMIT, s->given ? QN_SITE_UNKNOWN : -1 - (int64_t)i, 0,
                              NULL);
            break;
        }
        run_region(s, x->region[1], x->region[2]);
        take_yield(s, x->region[2], carried);
        if (is_cancelled(s, x->region[2] - x->region[0]))
            break;
    }
    give(s, x->region[2], QN_I_RESULT, carried);
}

/** Runs the body of a function in the storage behind that of the caller. */
static void run_call(qn_interp *s, uint32_t i)
{
    const qn_kernel *k = s->k;
    const qn_function *f = qn__callee(k, i);
    const uint32_t *args = qn__args(k, i);
    uint64_t values[QN_MAX_CARRIED];
    qn_interp callee = *s;
    callee.k = &f->body;
    callee.value = s->value + k->n_insts;
    callee.place = s->place + k->n_params;
    callee.given = values;
    callee.watch = f->keyword_bytes ? NULL : s->watch; /* a mathematical function is one op */
    for (int v = 0; v < f->n_values; v++)
        values[v] = s->value[args[v]];
    for (int p = 0, value = 0, view = f->n_values; p < f->body.n_params; p++) {
        const qn_kernel_parameter *param = &f->body.param[p];
        if (param->rank >= 0)
            callee.place[p] = s->place[k->inst[args[view++]].imm];
        callee.place[p].first_value = value;
        value += param->rank < 0 ? qn__n_parts(param->dtype, NULL) : 0;
    }
    run_region(&callee, 1, f->body.n_insts - 1);
    s->left = callee.left;
    const uint32_t *returned = qn__args(&f->body, qn__return_of(f));
    for (int r = 0; r < f->n_flat; r++)
        values[r] = callee.value[returned[r]];
    if (f->keyword_bytes && qn__watch_seeks_nan(s->watch))
        qn__look_at_call(s, i, &f->body, returned, f->n_flat, values);
    give(s, i + 1, QN_I_RESULT, values);
}

/* ---------------------------------------------------------------- instructions */

static uint64_t run_pure(const qn_interp *s, uint32_t i)
{
    const qn_kernel *k = s->k;
    const qn_inst *x = &k->inst[i];
    const uint32_t *args = qn__args(k, i);
    const uint64_t *v = s->value;
    int type = k->inst[args[x->n_args - 1]].type; /* the last operand is always of type T */
    uint64_t b = x->n_args > 1 ? v[args[1]] : 0, c = x->n_args > 2 ? v[args[2]] : 0;
    return qn__raw_op(qn__pure(x), type, v[args[0]], b, c);
}

/** A region's own instructions and what is uniform: set once, or by the instruction they belong to.
 */
static void run_core(qn_interp *s, uint32_t i)
{
    const qn_kernel *k = s->k;
    const qn_inst *x = &k->inst[i];
    const uint32_t *args = qn__args(k, i);
    uint64_t *value = &s->value[i];
    switch (x->op) {
    case QN_I_CONST:
        *value = x->imm;
        break;
    case QN_I_PARAM:
        *value = s->given
                     ? s->given[s->place[x->imm].first_value + x->sub]
                     : qn__arg_part(x->type, s->args[x->imm].bits, s->args[x->imm].high, x->sub);
        break;
    case QN_I_EXTENT:
        *value = (uint64_t)s->place[x->imm].layout->dim[x->sub].extent;
        break;
    case QN_I_LOWER:
        *value = (uint64_t)s->place[x->imm].layout->dim[x->sub].lower;
        break;
    case QN_I_CAST:
        *value = qn__raw_cast(x->type, k->inst[args[0]].type, s->value[args[0]]);
        break;
    case QN_I_BITCAST:
        *value = qn__eval_bitcast(x->type, k->inst[args[0]].type, s->value[args[0]]);
        break;
    case QN_I_LOOKUP:
        *value = qn__lookup(qn__array_of(k, i), (int64_t)s->value[args[0]]);
        break;
    case QN_I_LOAD:
        *value = run_load(s, i);
        break;
    case QN_I_STORE:
        run_store(s, i);
        break;
    case QN_I_ATOMIC:
        *value = run_atomic(s, i);
        break;
    case QN_I_IF:
        run_if(s, i);
        break;
    case QN_I_FOR:
        run_for(s, i);
        break;
    case QN_I_WHILE:
        run_while(s, i);
        break;
    case QN_I_REDUCE:
        *value = run_reduce(s, i);
        break;
    case QN_I_CALL:
        run_call(s, i);
        break;
    case QN_I_ASSERT:
        run_assert(s, i);
        break;
    case QN_I_PRINT:
        run_print(s, i);
        break;
    }
}

static void run_region(qn_interp *s, uint32_t begin, uint32_t end)
{
    const qn_inst *inst = s->k->inst;
    for (uint32_t i = begin; i < end; i = inst[i].region[2]) {
        if (inst[i].op < QN_I_PURE) {
            run_core(s, i);
            continue;
        }
        s->value[i] = run_pure(s, i);
        if (s->watch && qn__is_nan(inst[i].type, s->value[i]))
            qn__look_at_result(s, i);
    }
}

/** Runs the body for every iteration of the parallel and sequential dimensions. */
static void run_domain(qn_interp *s)
{
    const qn_kernel *k = s->k;
    uint32_t dims[QN_MAX_RANK];
    int n = 0;
    for (int d = 0; d < k->n_dims; d++) {
        if (qn__is_reduction(k, d))
            continue;
        s->value[k->dim[d]] = (uint64_t)s->domain->begin[d];
        s->dims |= UINT32_C(1) << d;
        dims[n++] = k->dim[d];
    }
    do {
        run_region(s, k->body, k->n_insts);
        s->iteration++;
    } while (!is_cancelled(s, k->n_insts - k->body) && next_point(s, dims, n));
}

size_t qn__interpret_stack(const qn_kernel *k)
{
    enum {
        REDUCE_BYTES = sizeof(qn_ordered_sum) + 512,
        OTHER_BYTES = 768
    }; /* tests/unit/runtime/test_stack.c */
    size_t most = 0;
    for (uint32_t i = 1; i < k->n_insts; i++) {
        bool is_call = k->inst[i].op == QN_I_CALL;
        size_t bytes = is_call ? OTHER_BYTES + qn__callee(k, i)->stack_bytes : 0;
        if (!is_call && !qn__opens_regions(&k->inst[i]))
            continue;
        for (uint32_t at = is_call ? k->inst[i].parent : i; at; at = k->inst[at].parent)
            bytes += k->inst[at].op == QN_I_REDUCE ? REDUCE_BYTES : OTHER_BYTES;
        most = bytes > most ? bytes : most;
    }
    return most;
}

qn_status qn__interpret(const qn_kernel *k, int n, const qn_arg *args, const qn_domain *domain,
                        int checks, qn_fault *fault, qn_error *err)
{
    return qn__interpret_watched(k, n, args, domain, checks, NULL, NULL, fault, err);
}

void qn__interp_run(qn_interp *s, uint32_t begin, uint32_t end)
{
    run_region(s, begin, end);
}

qn_status qn__interp_open(qn_interp *s, const qn_kernel *k, int n, const qn_arg *args,
                          const qn_domain *domain, int checks, qn_fault *fault, qn_error *err)
{
    uint32_t values, places;
    *s = (qn_interp){.k = k,
                     .launched = k,
                     .checks = checks,
                     .args = args,
                     .domain = domain,
                     .fault = fault,
                     .left = INSTRUCTIONS_PER_LOOK};
    qn__measure_frames(k, &values, &places);
    s->value = qn__zalloc((size_t)k->n_insts + values, sizeof *s->value);
    s->place = qn__zalloc((size_t)n + places + 1, sizeof *s->place);
    if (!s->value || !s->place)
        return qn__fail(err, QN_ERR_MEMORY, "qn_launch: kernel \"%s\": no memory for %u values",
                        k->name, k->n_insts);
    s->outermost = s->value;
    for (int p = 0; p < n; p++) {
        const qn_view *v = args[p].view;
        if (v)
            s->place[p] =
                (qn_place){.data = v->data,
                           .layout = &v->layout,
                           .unit = qn__unit_bytes(v),
                           .rank = v->layout.rank,
                           .checks = qn__checks_of(v, checks),
                           .argument = p,
                           .is_atomic = ((k->param[p].traits | v->traits) & QN_ATOMIC) != 0};
    }
    return QN_OK;
}

void qn__interp_close(qn_interp *s)
{
    qn__free(s->value);
    qn__free(s->place);
}

qn_status qn__interpret_watched(const qn_kernel *k, int n, const qn_arg *args,
                                const qn_domain *domain, int checks, qn_watch *watch,
                                const qn_print_buffer *printed, qn_fault *fault, qn_error *err)
{
    qn_interp s;
    if (domain->is_empty)
        return QN_OK;
    qn_status status = qn__interp_open(&s, k, n, args, domain, checks, fault, err);
    s.watch = watch;
    s.printed = printed;
    if (status == QN_OK) {
        run_region(&s, 1, k->body);
        run_domain(&s);
    }
    if (status == QN_OK && watch && watch->failed)
        status = qn__fail(
            err, QN_ERR_MEMORY,
            "qn_launch: kernel \"%s\": no memory to look for races: %zu granules were touched",
            k->name, watch->n_used);
    qn__interp_close(&s);
    return status;
}
