/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.c: what generated code may rely on. Collects the facts of checked arguments under a policy,
 * and fills the argument block of a launch. Everything collected is in the key (key.c), so nothing
 * is assumed that a later launch with the same key does not have.
 *
 * Slots, in this order: for each parameter a view has its data pointer, then for each dimension the
 * lower bound, the extent, and for each digit the extent and the stride, each only if it is
 * dynamic; a scalar has one slot unless it is constant. The extent of the last digit of a dimension
 * is never read and has no slot.
 */
#include "jit/facts/facts.h"

#include <string.h>

/* ---------------------------------------------------------------- one fact */

static qn_fact exact(int64_t value)
{
    return (qn_fact){.kind = QN_FACT_EXACT, .slot = -1, .value = value};
}

/** What is to stay known of a number that is dynamic, as far as it holds for these arguments. */
typedef struct wish {
    int exponent;   /* it is a multiple of 2 to this power */
    bool may_small; /* it is small */
    bool may_exist; /* it is at least 1 */
    bool may_long;  /* it is at least QN_LONG_EXTENT */
    bool may_short; /* it is at most that of its class */
} wish;

static int32_t multiple_of(int64_t value, int exponent)
{
    int32_t power = INT32_C(1) << exponent;
    return qn__power_of(value) >= power ? power : 1;
}

static bool is_small(int64_t value)
{
    return value >= -INT32_MAX && value <= INT32_MAX;
}

/** The class of a short extent; 0: it is none. */
static int32_t short_class(int64_t value)
{
    int32_t most = QN_SHORTEST_CLASS;
    while (most < value && most < QN_SHORT_EXTENT)
        most *= 2;
    return value >= 1 && value <= most ? most : 0;
}

/** A fact that is exact unless `is_dynamic`; then it takes the next slot. What does not hold for
 * this value is no fact, whatever is wished. */
static qn_fact fact_of(qn_facts *f, int64_t value, bool is_dynamic, wish w)
{
    if (!is_dynamic)
        return exact(value);
    return (qn_fact){.kind = QN_FACT_DYNAMIC,
                     .slot = f->n_slots++,
                     .multiple = multiple_of(value, w.exponent),
                     .is_small = w.may_small && is_small(value),
                     .least = w.may_long && value >= QN_LONG_EXTENT ? QN_LONG_EXTENT
                              : w.may_exist && value >= 1           ? 1
                                                                    : 0,
                     .most = w.may_short ? short_class(value) : 0};
}

/* ---------------------------------------------------------------- views */

/** What policy and pins say of one parameter. */
typedef struct choice {
    bool all_dynamic, is_generic;
    bool is_constant;       /* a scalar */
    bool is_described;      /* a scalar whose value decides which version runs */
    uint32_t extents;       /* bit d: the extent of dimension d is dynamic */
    uint32_t strides;       /* the same of its strides */
    uint32_t lowers;        /* of its lower bound, where that is not 0 */
    uint32_t fixed_strides; /* bit d: whatever else is said, they are exact */
    qn_common common;       /* of what is dynamic */
} choice;

static uint8_t max_of(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/** What pins say goes before the policy. Of what they make constant or dynamic nothing is learned.
 */
static void take_pins(choice *c, const qn_pinned *x)
{
    uint32_t extents = (uint32_t)x->constant[QN_PIN_EXTENT] | x->dynamic[QN_PIN_EXTENT],
             strides = (uint32_t)x->constant[QN_PIN_STRIDE] | x->dynamic[QN_PIN_STRIDE];
    c->extents = (c->extents & ~extents) | x->dynamic[QN_PIN_EXTENT];
    c->strides = (c->strides & ~strides) | x->dynamic[QN_PIN_STRIDE];
    c->lowers = (c->lowers & ~(uint32_t)x->constant[QN_PIN_LOWER]) | x->dynamic[QN_PIN_LOWER];
    c->fixed_strides = x->constant[QN_PIN_STRIDE];
    c->is_constant = (c->is_constant || x->constant[QN_PIN_SCALAR]) && !x->dynamic[QN_PIN_SCALAR];
    c->is_described = c->is_described || x->exponent[QN_PIN_SCALAR][0];
    c->common.is_long &= (uint16_t)~extents;
    for (int d = 0; d < QN_MAX_RANK; d++) {
        uint8_t extent = extents >> d & 1 ? 0 : c->common.extent[d],
                stride = strides >> d & 1 ? 0 : c->common.stride[d];
        c->common.extent[d] = max_of(x->exponent[QN_PIN_EXTENT][d], extent);
        c->common.stride[d] = max_of(x->exponent[QN_PIN_STRIDE][d], stride);
        c->common.lower[d] = x->exponent[QN_PIN_LOWER][d];
    }
    uint8_t scalar = x->dynamic[QN_PIN_SCALAR] ? 0 : c->common.scalar;
    c->common.scalar = max_of(x->exponent[QN_PIN_SCALAR][0], scalar);
}

static choice choice_of(const qn_kernel *k, const qn_policy *policy, const qn_options *o,
                        const qn_domain *domain, int p)
{
    qn_pinned pinned = k->param[p].pinned;
    choice c = {.all_dynamic = false};
    if (policy) {
        c.is_generic = policy->is_generic;
        c.is_constant = policy->constant_scalars ||
                        (policy->constants && (policy->constants[p >> 5] >> (p & 31) & 1));
        c.all_dynamic = policy->all_dynamic || policy->is_generic;
        c.extents = policy->dynamic_extents ? policy->dynamic_extents[p] : 0;
        c.strides = policy->dynamic_strides ? policy->dynamic_strides[p]
                    : c.extents             ? UINT32_MAX
                                            : 0;
    }
    if (policy && policy->common && !c.is_generic)
        c.common = policy->common[p];
    c.is_described = (domain->scalars[p >> 5] >> (p & 31) & 1) != 0;
    if (c.all_dynamic)
        c.extents = c.strides = c.lowers = UINT32_MAX;
    for (int i = 0; o && i < o->n_pins; i++)
        if (o->pins[i].param == p)
            qn__pin_add(&pinned, &o->pins[i]);
    if (!c.is_generic)
        take_pins(&c, &pinned);
    return c;
}

/** Is a stride left to the argument block? Strides from -4 to 4 never are: they choose the kind of
 * access (a splat, one vector, a reversed one, a few vectors and a permutation). Those of several
 * digits follow the extents, as nobody notes which of them vary. */
static bool is_stride_dynamic(const choice *c, int d, int n_digits, int64_t stride)
{
    bool is_tiny = stride >= -4 && stride <= 4;
    bool is_given = (c->strides >> d & 1) != 0 || (n_digits > 1 && c->extents != 0);
    return c->is_generic || (!is_tiny && is_given && !(c->fixed_strides >> d & 1));
}

static uint64_t magnitude(int64_t n)
{
    return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

/** Collects dimension d. Multiples of strides are facts for GPUs, where accesses of 16 bytes must
 * be aligned; code for x86 takes any address. So is that there are elements: loads of a thread that
 * nobody needs read one. So is the class of a short extent: threads of a block along it would be
 * idle. */
static void collect_dim(qn_facts *f, qn_dim_fact *out, const qn_view *v, int d, const choice *c)
{
    const qn_dim *dim = &v->layout.dim[d];
    bool is_extent_dynamic = (c->extents >> d & 1) != 0;
    const wish lower = {.exponent = c->common.lower[d], .may_small = !c->is_generic},
               extent = {.exponent = c->common.extent[d],
                         .may_small = !c->is_generic,
                         .may_exist = !c->is_generic && f->target->has_grid,
                         .may_long = (c->common.is_long >> d & 1) != 0,
                         .may_short = !c->is_generic && f->target->has_grid},
               step = {.exponent = f->target->has_grid ? c->common.stride[d] : 0};
    out->lower =
        fact_of(f, dim->lower, c->is_generic || ((c->lowers >> d & 1) && dim->lower != 0), lower);
    out->extent = fact_of(f, dim->extent, is_extent_dynamic, extent);
    out->first_digit = 0;
    out->n_digits = 0;
    if (v->layout.projected >> d & 1)
        return;
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(&v->layout, d, &one, &n);
    out->first_digit = f->n_digits;
    out->n_digits = n;
    for (int i = 0; i < n; i++) {
        bool is_last = i + 1 == n;
        bool is_single =
            is_last ? n == 1 && dim->extent == 1 && !is_extent_dynamic : digit[i].extent == 1;
        int64_t stride = is_single ? 0 : digit[i].stride;
        qn_digit_fact *fact = &f->digit[f->n_digits++];
        fact->extent = exact(is_last ? 0 : digit[i].extent);
        fact->stride =
            fact_of(f, stride, is_stride_dynamic(c, d, n, stride), n == 1 ? step : (wish){0});
    }
}

/** The order of dynamic strides stays a fact: it decides the order of the loops. Where nothing is a
 * fact, that of Right. */
static void collect_reach(const qn_facts *f, qn_param_fact *out, const qn_layout *l,
                          bool is_generic)
{
    for (int d = 0; d < l->rank; d++) {
        qn_dim_fact *dim = &out->dim[d];
        dim->reach = 0;
        if (dim->n_digits != 1 || f->digit[dim->first_digit].stride.kind == QN_FACT_EXACT)
            continue;
        dim->reach = is_generic ? l->rank - d : 1;
        for (int other = 0; other < l->rank && !is_generic; other++)
            dim->reach += magnitude(l->dim[other].stride) < magnitude(l->dim[d].stride);
    }
}

static void collect_view(qn_facts *f, qn_param_fact *out, const qn_view *v, const choice *c)
{
    out->is_view = 1;
    out->checks = qn__checks_of(v, f->checks);
    out->unit = (int32_t)v->unit;
    out->slot = f->n_slots++;
    for (int d = 0; d < v->layout.rank; d++)
        collect_dim(f, &out->dim[d], v, d, c);
    out->has_slots = f->n_slots > out->slot + 1;
    collect_reach(f, out, &v->layout, c->is_generic);
}

static bool is_small_scalar(int dtype, int64_t value)
{
    return is_small(value) && !(dtype == QN_U64 && value < 0);
}

bool qn__scalar_holds(const qn_param_fact *f, int dtype, uint64_t bits)
{
    int64_t value = (int64_t)qn__canonical(dtype, bits);
    return (f->multiple <= 1 || qn__power_of(value) >= f->multiple) &&
           (!f->is_small || is_small_scalar(dtype, value));
}

/** Of a scalar that is no constant something is known only if its value is in the description of
 * arguments: another one must not find this version (runtime/describe.c). */
static void collect_scalar(qn_facts *f, qn_param_fact *out, int dtype, const qn_arg *arg,
                           const choice *c)
{
    bool is_constant = c->is_constant;
    out->is_constant = is_constant;
    out->n_parts = qn__n_parts(dtype, NULL);
    out->slot = is_constant ? -1 : f->n_slots;
    f->n_slots += is_constant ? 0 : out->n_parts;
    for (int part = 0; part < out->n_parts && is_constant; part++)
        out->bits[part] =
            qn__arg_part(qn__part_dtype(dtype, NULL, part), arg->bits, arg->high, part);
    if (is_constant || c->is_generic || !c->is_described || !qn__is_integer(dtype))
        return;
    int64_t value = (int64_t)qn__canonical(dtype, arg->bits);
    out->multiple = multiple_of(value, c->common.scalar);
    out->is_small = is_small_scalar(dtype, value);
}

/* ---------------------------------------------------------------- all of it */

static int32_t count_digits(const qn_kernel *k, const qn_arg *args)
{
    int32_t n = 0;
    for (int p = 0; p < k->n_params; p++)
        for (int d = 0; d < k->param[p].rank; d++)
            n += qn_layout_digits(&args[p].view->layout, d, NULL);
    return n;
}

static bool allocate(qn_facts *f, const qn_kernel *k, const qn_arg *args, const char *schedule)
{
    f->schedule = schedule ? qn__strdup(schedule) : NULL;
    f->schedule_bytes = f->schedule ? strlen(schedule) : 0;
    f->param = qn__zalloc((size_t)k->n_params + 1, sizeof *f->param);
    f->digit = qn__zalloc((size_t)count_digits(k, args) + 1, sizeof *f->digit);
    f->proved = qn__zalloc((size_t)k->n_accesses + 1, 1);
    return f->param && f->digit && f->proved && (f->schedule || !schedule);
}

/** Without an access to check, and without assertions, the policy of checks is no fact: one version
 *  serves all. */
static void forget_checks(const qn_kernel *k, qn_facts *f)
{
    if (qn__has_assertions(k))
        return;
    for (uint32_t site = 0; site < f->n_accesses; site++)
        if (!f->proved[site])
            return;
    f->checks = QN_CHECKS_REPORT;
    for (int p = 0; p < f->n_params; p++)
        f->param[p].checks = QN_CHECKS_REPORT;
}

qn_status qn__facts_collect(const qn_kernel *k, const qn_launched *l, qn_facts *out, qn_error *err)
{
    const qn_options *o = l->options;
    qn_facts f = {.n_params = k->n_params,
                  .n_dims = k->n_dims,
                  .n_accesses = k->n_accesses,
                  .isa = l->isa,
                  .target = qn__target_row(l->isa)};
    f.checks = o ? o->checks : QN_CHECKS_REPORT;
    f.is_ordered = l->is_ordered;
    f.prints_rows = k->prints_rows;
    f.machine = *qn__machine_usual(l->isa);
    if (o && o->plan)
        f.plan = *o->plan;
    if (!allocate(&f, k, l->args, o ? o->schedule : NULL)) {
        qn__facts_release(&f);
        return qn__fail(err, QN_ERR_MEMORY, "qn__facts_collect: kernel \"%s\": no memory", k->name);
    }
    for (uint32_t site = 0; site < k->n_accesses; site++)
        f.proved[site] = l->proved && !(l->policy && l->policy->is_generic) ? l->proved[site] : 0;
    for (int p = 0; p < k->n_params; p++) {
        const choice c = choice_of(k, l->policy, o, l->domain, p);
        if (k->param[p].rank >= 0)
            collect_view(&f, &f.param[p], l->args[p].view, &c);
        else
            collect_scalar(&f, &f.param[p], k->param[p].dtype, &l->args[p], &c);
    }
    if (!qn__facts_domain(k, l->domain, &f)) {
        qn__facts_release(&f);
        return qn__fail(err, QN_ERR_MEMORY, "qn__facts_collect: kernel \"%s\": no memory", k->name);
    }
    forget_checks(k, &f);
    if (f.target->has_grid)
        qn__facts_gpu(k, l->args, &f);
    *out = f;
    return QN_OK;
}

/** Bytes of all elements of a view, but no more than every iteration would move. */
static double view_bytes(const qn_view *v, double iterations)
{
    double n = 1, bytes = (double)qn__element_bytes(v);
    for (int d = 0; d < v->layout.rank; d++)
        n *= v->layout.projected >> d & 1 ? 1 : (double)v->layout.dim[d].extent;
    return (n < iterations ? n : iterations) * bytes;
}

/** Bytes of what lies together along the dimension of unit stride. */
static double row_bytes(const qn_view *v)
{
    for (int d = 0; d < v->layout.rank; d++)
        if (magnitude(v->layout.dim[d].stride) == 1 && !(v->layout.projected >> d & 1))
            return (double)v->layout.dim[d].extent * (double)qn__element_bytes(v);
    return 0;
}

static bool is_dynamic(const qn_facts *f)
{
    for (int d = 0; d < f->n_dims; d++)
        if (!qn__is_exact(f, d))
            return true;
    return false;
}

/** Whether what the arguments have is worth streaming. Not inlined: its caller guards it. */
static __attribute__((noinline)) bool is_worth_it(const qn_kernel *k, const qn_arg *args,
                                                  const qn_domain *domain, const qn_facts *f)
{
    double iterations = 1, all = 0, written = 0;
    bool has_rows = true;
    for (int d = 0; d < k->n_dims; d++)
        iterations *= (double)(domain->end[d] - domain->begin[d]);
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        double bytes = view_bytes(args[p].view, iterations);
        bool is_stream = k->param[p].is_written && !k->param[p].is_read;
        all += bytes;
        written += is_stream ? bytes : 0;
        has_rows =
            has_rows && (!is_stream || row_bytes(args[p].view) >= (double)QN_STREAM_ROW_BYTES);
    }
    return has_rows && qn__is_worth_streaming(f, all, written);
}

void qn__facts_measure(const qn_kernel *k, const qn_arg *args, const qn_domain *domain,
                       const qn_machine *machine, qn_facts *f)
{
    f->machine = *machine;
    qn__machine_classify(&f->machine, f->isa);
    f->is_large = 0;
    if (f->ptx || !is_dynamic(f))
        return;
    uint32_t host = qn__fpu_enter();
    f->is_large = is_worth_it(k, args, domain, f);
    qn__fpu_leave(host);
}

void qn__facts_make_portable(qn_facts *f)
{
    f->is_portable = 1;
    f->machine = *qn__machine_usual(f->isa);
    f->is_large = 0;
}

void qn__facts_release(qn_facts *f)
{
    if (!f)
        return;
    qn__free(f->param);
    qn__free(f->digit);
    qn__free(f->proved);
    qn__free(f->schedule);
    memset(f, 0, sizeof *f);
}

bool qn__facts_copy(const qn_facts *f, qn_facts *to)
{
    *to = *f;
    to->param = qn__copy_array(f->param, (size_t)f->n_params, sizeof *f->param);
    to->digit = qn__copy_array(f->digit, (size_t)f->n_digits, sizeof *f->digit);
    to->proved = qn__copy_array(f->proved, f->n_accesses, sizeof *f->proved);
    to->schedule = f->schedule ? qn__copy_array(f->schedule, f->schedule_bytes + 1, 1) : NULL;
    bool is_done = to->param && to->digit && to->proved && (to->schedule || !f->schedule);
    if (!is_done)
        qn__facts_release(to);
    return is_done;
}

/* ---------------------------------------------------------------- the argument block */

static void fill(const qn_fact *fact, int64_t value, int64_t *slots)
{
    if (fact->kind == QN_FACT_DYNAMIC)
        slots[fact->slot] = value;
}

static void fill_digits(const qn_facts *f, const qn_dim_fact *dim, const qn_layout *l, int d,
                        int64_t *slots)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    for (int i = 0; i < n; i++) {
        fill(&f->digit[dim->first_digit + i].extent, digit[i].extent, slots);
        fill(&f->digit[dim->first_digit + i].stride, digit[i].stride, slots);
    }
}

static void fill_dims(const qn_facts *f, const qn_param_fact *param, const qn_layout *l,
                      int64_t *slots)
{
    for (int d = 0; d < l->rank; d++) {
        const qn_dim_fact *dim = &param->dim[d];
        const qn_digit_fact *first = &f->digit[dim->first_digit];
        fill(&dim->lower, l->dim[d].lower, slots);
        fill(&dim->extent, l->dim[d].extent, slots);
        bool is_exact =
            dim->n_digits == 0 || (dim->n_digits == 1 && first->stride.kind == QN_FACT_EXACT);
        if (!is_exact)
            fill_digits(f, dim, l, d, slots);
    }
}

static void fill_scalar(const qn_param_fact *param, int dtype, const qn_arg *arg, int64_t *slots)
{
    if (param->n_parts == 1) {
        slots[param->slot] = (int64_t)qn__canonical(dtype, arg->bits);
        return;
    }
    int type = qn__part_dtype(dtype, NULL, 0);
    for (int part = 0; part < param->n_parts; part++)
        slots[param->slot + part] = (int64_t)qn__arg_part(type, arg->bits, arg->high, part);
}

void qn__facts_fill(const qn_facts *f, const qn_kernel *k, const qn_arg *args, int64_t *slots)
{
    for (int p = 0; p < f->n_params; p++) {
        const qn_param_fact *param = &f->param[p];
        if (param->is_view)
            slots[param->slot] = (int64_t)(intptr_t)args[p].view->data;
        if (param->has_slots)
            fill_dims(f, param, &args[p].view->layout, slots);
        else if (!param->is_view && !param->is_constant)
            fill_scalar(param, k->param[p].dtype, &args[p], slots);
    }
}
