/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c: which facts become constants. At first all of them. From its third shape on a kernel
 * gets versions whose varying extents and strides are dynamic; if lower bounds vary, everything is.
 * Of what is dynamic, code relies on what all values that were met have in common: a power of two
 * that divides them, and extents of at least one vector. A value that has less gets a version that
 * relies on less. What varied is noted against the arguments of the version that was ordered last.
 * Scalars that never changed may become constants (trial.c).
 */
#include "runtime/launch.h"

#include <inttypes.h>
#include <string.h>

/*
 * Exact versions are rented, one for each shape, and the dynamic version is bought. How many shapes
 * will come is not known, so that the rule of ski rental holds: buy when the rent paid is the
 * price. The price is 1 to 2.5 exact compiles: 0.6 to 2.6 for a stencil, a product, a map, a
 * transpose and sums of rows of which one or all extents vary, 11 for a product of which all vary
 * (compiles of 1 to 25 ms, EPYC Zen 5). Two exact versions are the middle of it: compiles then take
 * about twice as long as for who knows how many shapes come. A shape that turns out to be hot gets
 * its exact version again (trial.c).
 */
enum { MOST_EXACT = 2 };

/* Exponents. Multiples of less than 4 are of no use to vectors and wide accesses, and are more
 * often met by accident. The longest vectors have 64 lanes, of bytes: more is learned of no number.
 */
enum { LEAST_COMMON = 2, MOST_COMMON = 6 };

/* ---------------------------------------------------------------- what values have in common */

static void fold(uint8_t *exponent, int64_t value, bool is_first)
{
    uint8_t of_value = (uint8_t)__builtin_ctz((unsigned)qn__power_of(value));
    of_value = of_value > MOST_COMMON ? MOST_COMMON : of_value < LEAST_COMMON ? 0 : of_value;
    *exponent = is_first || of_value < *exponent ? of_value : *exponent;
}

static void fold_arguments(qn_known_kernel *known, const qn_arg *args)
{
    const qn_kernel *k = known->kernel;
    bool is_first = !known->has_common;
    known->has_common = true;
    for (int p = 0; p < k->n_params; p++) {
        qn_common *common = &known->common[p];
        if (k->param[p].rank < 0 && qn__is_integer(k->param[p].dtype))
            fold(&common->scalar, (int64_t)qn__canonical(k->param[p].dtype, args[p].bits),
                 is_first);
        for (int d = 0; d < k->param[p].rank; d++) {
            uint16_t bit = (uint16_t)(1U << d);
            bool is_long = args[p].view->layout.dim[d].extent >= QN_LONG_EXTENT;
            fold(&common->extent[d], args[p].view->layout.dim[d].extent, is_first);
            common->is_long = (uint16_t)(!is_long   ? common->is_long & ~bit
                                         : is_first ? common->is_long | bit
                                                    : common->is_long);
            fold(&common->stride[d], args[p].view->layout.dim[d].stride, is_first);
        }
    }
}

/** Appends the first number that is less of a multiple than the dynamic version ordered last relied
 * on. */
static bool print_broken(const qn_known_kernel *known, const qn_arg *args, qn_text *out)
{
    const qn_kernel *k = known->kernel;
    for (int p = 0; known->has_relied && p < k->n_params; p++)
        for (int d = 0; d < k->param[p].rank; d++) {
            const qn_dim *dim = &args[p].view->layout.dim[d];
            uint32_t was_long = known->relied[p].is_long & ~(uint32_t)known->common[p].is_long;
            uint32_t varied[2] = {known->varied[p] >> d & 1,
                                  known->varied[QN_MAX_PARAMS + p] >> d & 1};
            if (varied[0] && (was_long >> d & 1)) {
                qn__text_add(out,
                             "extent %d of view %.60s: %" PRId64 ", all before were at least %d", d,
                             k->param[p].name, dim->extent, QN_LONG_EXTENT);
                return true;
            }
            bool is_extent = varied[0] && known->common[p].extent[d] < known->relied[p].extent[d];
            if (!is_extent &&
                !(varied[1] && known->common[p].stride[d] < known->relied[p].stride[d]))
                continue;
            qn__text_add(
                out, "%s %d of view %.60s: %" PRId64 ", all before were multiples of %d",
                is_extent ? "extent" : "stride", d, k->param[p].name,
                is_extent ? dim->extent : dim->stride,
                1 << (is_extent ? known->relied[p].extent[d] : known->relied[p].stride[d]));
            return true;
        }
    return false;
}

/* ---------------------------------------------------------------- words */

typedef struct known_words {
    const qn_kernel *k;
    const char *before;
    int n;
    qn_text *out;
} known_words;

static void begin_known(known_words *w)
{
    qn__text_add(w->out, "%s", w->n++ ? ", " : w->before);
}

static void print_known(known_words *w, int of, int d, int p, int32_t multiple)
{
    const char *name = w->k->param[p].name;
    if (multiple <= 1)
        return;
    begin_known(w);
    if (of == QN_PIN_SCALAR)
        qn__text_add(w->out, "scalar %.60s a multiple of %" PRId32, name, multiple);
    else
        qn__text_add(w->out, "%s %d of view %.60s a multiple of %" PRId32, qn__pin_names[of], d,
                     name, multiple);
}

void qn__policy_print_kind(const qn_facts *f, bool is_dynamic, qn_text *out)
{
    bool has_dynamic = false;
    for (int p = 0; p < f->n_params; p++)
        has_dynamic |= f->param[p].is_view && f->param[p].has_slots;
    qn__text_add(out, "; %s", is_dynamic    ? "dynamic extents"
                              : has_dynamic ? "exact but for what is pinned"
                                            : "exact");
}

bool qn__policy_print_known(const qn_kernel *k, const qn_facts *f, const char *before, qn_text *out)
{
    known_words w = {.k = k, .before = before, .out = out};
    for (int p = 0; p < k->n_params; p++) {
        const qn_param_fact *param = &f->param[p];
        if (k->param[p].rank < 0)
            print_known(&w, QN_PIN_SCALAR, 0, p, param->multiple);
        if (k->param[p].rank < 0 && param->is_constant) {
            begin_known(&w);
            qn__text_add(out, "scalar %.60s being this one", k->param[p].name);
        }
        for (int d = 0; d < k->param[p].rank; d++) {
            const qn_dim_fact *dim = &param->dim[d];
            print_known(&w, QN_PIN_LOWER, d, p, dim->lower.multiple);
            print_known(&w, QN_PIN_EXTENT, d, p, dim->extent.multiple);
            if (dim->extent.least >= QN_LONG_EXTENT) {
                begin_known(&w);
                qn__text_add(out, "extent %d of view %.60s at least %" PRId32, d, k->param[p].name,
                             dim->extent.least);
            }
            if (dim->n_digits == 1)
                print_known(&w, QN_PIN_STRIDE, d, p, f->digit[dim->first_digit].stride.multiple);
        }
    }
    return w.n > 0;
}

/* ---------------------------------------------------------------- scalars */

void qn__policy_scalars(qn_cache *c, qn_known_kernel *known, const qn_arg *args)
{
    bool has_changed = false;
    for (int p = 0; p < known->kernel->n_params; p++) {
        uint32_t bit = UINT32_C(1) << (p & 31), *fixed = &known->fixed[p >> 5];
        if (!(*fixed & bit))
            continue;
        if (!known->has_values) {
            known->value[p][0] = args[p].bits;
            known->value[p][1] = args[p].high;
        } else if (known->value[p][0] != args[p].bits || known->value[p][1] != args[p].high) {
            *fixed &= ~bit;
            known->scalars[p >> 5] &= ~bit | known->deciding[p >> 5];
            has_changed = true;
        }
    }
    known->has_values = true;
    if (has_changed && known->are_compared)
        qn__cache_forget_args(c, known);
}

void qn__policy_compare_scalars(qn_cache *c, qn_known_kernel *known)
{
    for (int w = 0; w < 2; w++)
        known->scalars[w] = known->deciding[w] | known->fixed[w];
    known->are_compared = true;
    known->has_values = false; /* those of launches that hit were not seen */
    qn__cache_forget_args(c, known);
}

bool qn__policy_constants(const qn_known_kernel *known, const qn_options *o, uint32_t out[2])
{
    const qn_kernel *k = known->kernel;
    memcpy(out, known->fixed, sizeof known->fixed);
    for (int i = 0; i < o->n_pins; i++) /* what the caller says goes before */
        if (o->pins[i].of == QN_PIN_SCALAR)
            out[o->pins[i].param >> 5] &= ~(UINT32_C(1) << (o->pins[i].param & 31));
    for (int p = 0; p < k->n_params; p++)
        if (k->param[p].rank >= 0)
            out[p >> 5] &= ~(UINT32_C(1) << (p & 31));
    return (out[0] | out[1]) != 0;
}

void qn__policy_print_scalars(const qn_kernel *k, const uint32_t constants[2], qn_text *out)
{
    int n = 0;
    for (int p = 0; p < k->n_params; p++)
        if (constants[p >> 5] >> (p & 31) & 1)
            qn__text_add(out, "%s%.60s", n++ ? ", " : "", k->param[p].name);
}

/* ---------------------------------------------------------------- what varies */

void qn__policy_observe(qn_known_kernel *known, const qn_arg *args)
{
    fold_arguments(known, args);
    if (!known->has_last)
        return;
    const qn_kernel *k = known->kernel;
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        const qn_dim *now = args[p].view->layout.dim, *last = known->last[p].dim;
        for (int d = 0; d < k->param[p].rank; d++) {
            uint32_t bit = UINT32_C(1) << d;
            known->varied[p] |= now[d].extent != last[d].extent ? bit : 0;
            known->varied[QN_MAX_PARAMS + p] |= now[d].stride != last[d].stride ? bit : 0;
            known->has_odd_changes |= now[d].lower != last[d].lower;
        }
    }
}

bool qn__policy_wants_dynamic(const qn_known_kernel *known, qn_policy *out)
{
    bool has_varied = known->has_odd_changes;
    for (int p = 0; p < QN_POLICY_MASKS; p++)
        has_varied |= known->varied[p] != 0;
    if (known->n_exact < MOST_EXACT || !has_varied)
        return false;
    out->all_dynamic = known->has_odd_changes;
    out->dynamic_extents = known->varied;
    out->dynamic_strides = known->varied + QN_MAX_PARAMS;
    out->common = known->common;
    return true;
}

/** Appends the first difference of one kind between the arguments and those of the version that was
 * ordered last. */
static bool print_difference(const qn_known_kernel *known, const qn_arg *args, int kind,
                             qn_text *out)
{
    static const char *const name[] = {"extent", "lower bound", "stride"};
    const qn_kernel *k = known->kernel;
    for (int p = 0; p < k->n_params; p++) {
        for (int d = 0; d < k->param[p].rank; d++) {
            const qn_dim *now = &args[p].view->layout.dim[d], *last = &known->last[p].dim[d];
            int64_t values[3][2] = {{now->extent, last->extent},
                                    {now->lower, last->lower},
                                    {now->stride, last->stride}};
            if (values[kind][0] == values[kind][1])
                continue;
            qn__text_add(out, "%s %d of view %.60s: %" PRId64 ", was %" PRId64, name[kind], d,
                         k->param[p].name, values[kind][0], values[kind][1]);
            return true;
        }
    }
    return false;
}

void qn__policy_reason(const qn_known_kernel *known, const qn_arg *args, qn_text *out)
{
    if (!known->has_last) {
        qn__text_add(out, "first version");
        return;
    }
    if (print_broken(known, args, out))
        return;
    for (int kind = 0; kind < 3; kind++)
        if (print_difference(known, args, kind, out))
            return;
    qn__text_add(out, "other facts or options");
}

void qn__policy_ordered(qn_known_kernel *known, const qn_arg *args, bool is_exact)
{
    const qn_kernel *k = known->kernel;
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        known->last[p] = args[p].view->layout;
        known->last[p].digits = NULL;
    }
    if (!is_exact)
        memcpy(known->relied, known->common, (size_t)k->n_params * sizeof *known->common);
    known->has_relied |= !is_exact;
    known->has_last = true;
    known->n_exact += is_exact;
}

void qn__policy_not_begun(qn_known_kernel *known)
{
    known->n_exact -= known->n_exact > 0;
}
