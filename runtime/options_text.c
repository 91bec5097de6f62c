/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_text.c: options of a launch from text (quern/embed.h). A word is NAME=VALUE; the names
 * are those of the fields of qn_options and of QN_PLAN_LIST, so a table here says of each field of
 * options where it is and how the names of its values begin in the headers.
 */
#include "quern/embed.h"

#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

/** Options with all that they point to. */
typedef struct parsed {
    qn_options options; /* first: what the caller has */
    char *schedule;     /* that of the options */
    qn_plan_options plan;
    qn_fact_pin pin[QN_MOST_PINS];
} parsed;

/** A field of qn_options: where it is, and what the names of its values begin with (NULL: it has
 * none). */
typedef struct field {
    const char *name, *prefix;
    size_t offset, bytes;
    bool has_bits; /* values are joined by commas */
} field;

#define F(name, prefix, has_bits)                                                                  \
    {#name, prefix, offsetof(qn_options, name), sizeof(((qn_options *)0)->name), has_bits}
static const field fields[] = {
    F(engine, "QN_ENGINE_", false),   F(executor, "QN_", false),
    F(checks, "QN_CHECKS_", false),   F(specialize, "QN_SPECIALIZE_", false),
    F(isa, "QN_ISA_", false),         F(loader, "QN_LOADER_", false),
    F(strict, NULL, false),           F(max_threads, NULL, false),
    F(constant_scalars, NULL, false), F(must_generate, NULL, false),
    F(atomics, "QN_ATOMICS_", false), F(compile, "QN_COMPILE_", false),
    F(timeout_ns, NULL, false),       F(debug, "QN_DEBUG_", true),
    F(print_lines, NULL, false),
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/** What is read: one word at a time. */
typedef struct reader {
    const qn_kernel *k; /* may be NULL */
    parsed *out;
    char *name, *value; /* of the word; in memory that it may change */
    qn_error *err;
} reader;

static qn_status fail(const reader *r, const char *what)
{
    return qn__fail(r->err, QN_ERR_ARGUMENT, "qn_options_parse: %.60s=%.100s: %s", r->name,
                    r->value, what);
}

/** An integer of 64 bits in decimal; false for any other text, and for numbers beyond. */
static bool to_number(const char *text, int64_t *out)
{
    const bool is_negative = *text == '-';
    const char *digit = text + is_negative;
    int64_t value = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        int next = *digit - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(is_negative ? -next : next), &value))
            return false;
    }
    *out = value;
    return digit > text + is_negative && *digit == 0;
}

/** A letter of ASCII in upper case, whatever the locale: toupper makes no I of i everywhere. */
static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/** The number with the name PREFIX and the text in upper case. */
static bool to_named(const char *prefix, const char *text, int64_t *out)
{
    char name[64];
    int n = snprintf(name, sizeof name, "%s", prefix);
    for (; *text && n < (int)sizeof name - 1; text++)
        name[n++] = upper(*text);
    name[n] = 0;
    return qn_number_by_name(name, out, NULL) == QN_OK;
}

/** Cuts the first part of a list at the separator; *rest becomes NULL behind the last one. */
static char *cut(char **rest, char separator)
{
    char *part = *rest, *end = strchr(part, separator);
    if (end)
        *end = 0;
    *rest = end ? end + 1 : NULL;
    return part;
}

/* ---------------------------------------------------------------- fields of qn_options */

static qn_status set_field(const reader *r, const field *f)
{
    int64_t value = 0, one;
    for (char *rest = r->value; rest;) {
        char *part = f->has_bits ? cut(&rest, ',') : rest;
        if (!f->has_bits)
            rest = NULL;
        bool is_executor = strcmp(f->name, "executor") == 0;
        if (!to_number(part, &one) && !(f->prefix && to_named(f->prefix, part, &one)) &&
            !(is_executor && to_named("QN_EXECUTOR_", part, &one)))
            return fail(r, f->prefix ? "neither a number nor a value of this field"
                                     : "expected a number of at most 64 bits");
        value |= one;
    }
    if (f->bytes == sizeof(int32_t) && (value < INT32_MIN || value > INT32_MAX))
        return fail(r, "does not fit in 32 bits");
    int32_t narrow = (int32_t)value;
    memcpy((char *)&r->out->options + f->offset,
           f->bytes == sizeof narrow ? (const void *)&narrow : &value, f->bytes);
    return QN_OK;
}

/* ---------------------------------------------------------------- fields of the plan */

/** The number of a dimension of the domain, from 0, by number or name. */
static bool to_dim(const reader *r, const char *text, int64_t *out)
{
    if (to_number(text, out))
        return *out >= 0 && *out < QN_MAX_RANK;
    for (int d = 0; d < qn_kernel_n_dims(r->k); d++) {
        qn_statement s = {0};
        qn_kernel_statement(r->k, qn_kernel_dim(r->k, d), &s, sizeof s, NULL);
        if (s.name && strcmp(s.name, text) == 0) {
            *out = d;
            return true;
        }
    }
    return false;
}

static qn_status set_order(const reader *r)
{
    int n = 0;
    int64_t d;
    for (char *rest = r->value; rest; n++) {
        if (n == QN_MAX_RANK || !to_dim(r, cut(&rest, ','), &d))
            return fail(r, "expected dimensions of the domain, outermost first");
        r->out->plan.order[n] = (int32_t)d + 1;
    }
    r->out->options.plan = &r->out->plan;
    return QN_OK;
}

static qn_status set_plan(const reader *r, int32_t *at, int64_t least, int64_t most, bool names_dim)
{
    int64_t value;
    if (names_dim && strcmp(r->value, "none") == 0)
        value = -1;
    else if (names_dim && to_dim(r, r->value, &value))
        value++;
    else if (names_dim)
        return fail(r, "no dimension of the domain has this name or number");
    else if (!to_number(r->value, &value))
        return fail(r, "expected a number of at most 64 bits");
    if (value < least || value > most)
        return qn__fail(r->err, QN_ERR_ARGUMENT,
                        "qn_options_parse: %.60s=%.100s: expected %lld to %lld", r->name, r->value,
                        (long long)least, (long long)most);
    *at = (int32_t)value;
    r->out->options.plan = &r->out->plan;
    return QN_OK;
}

/* ---------------------------------------------------------------- pins */

/** One pin: PARAM, or PARAM.extent.2; of a multiple with ":16" behind it. */
static qn_status add_pin(const reader *r, char *text, int as)
{
    static const char *const kinds[] = {"extent", "stride", "lower"};
    qn_fact_pin pin = {.of = QN_PIN_SCALAR, .as = as};
    char *multiple = text, *rest = cut(&multiple, ':');
    if (as == QN_PIN_MULTIPLE ? !multiple || !to_number(multiple, &pin.multiple) || pin.multiple < 1
                              : multiple != NULL)
        return fail(r, as == QN_PIN_MULTIPLE
                           ? "a number from 1 on stands behind the colon of a multiple"
                           : "only multiples have a colon");
    const char *param = cut(&rest, '.');
    int64_t number = qn_kernel_find_param(r->k, param);
    if (number < 0 && !to_number(param, &number))
        return fail(r, "a pin begins with the name or number of a parameter");
    pin.param = (int32_t)number;
    if (rest) {
        const char *of = cut(&rest, '.');
        for (pin.of = 0; pin.of < 3 && strcmp(of, kinds[pin.of]) != 0; pin.of++)
            ;
        if (pin.of == 3 || !rest || !to_number(rest, &number) || number < 0 ||
            number >= QN_MAX_RANK)
            return fail(r, "expected .extent.D, .stride.D or .lower.D behind the view of a pin");
        pin.dim = (int32_t)number;
    }
    if (r->out->options.n_pins == QN_MOST_PINS)
        return fail(r, "more than 256 pins");
    r->out->pin[r->out->options.n_pins++] = pin;
    r->out->options.pins = r->out->pin;
    return QN_OK;
}

static qn_status add_pins(const reader *r, int as)
{
    for (char *rest = r->value; rest;) {
        qn_status status = add_pin(r, cut(&rest, ','), as);
        if (status)
            return status;
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- words */

static qn_status set_schedule(const reader *r)
{
    r->out->options.schedule = r->out->schedule = qn__strdup(r->value);
    return r->out->schedule ? QN_OK
                            : qn__fail(r->err, QN_ERR_MEMORY, "qn_options_parse: out of memory");
}

static qn_status set(const reader *r)
{
    qn_nearest near = {.text = r->name, .n = strlen(r->name)};
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(fields[i].name, r->name) == 0)
            return set_field(r, &fields[i]);
        qn__nearest_add(&near, "", fields[i].name);
    }
#define X(field, text, least, most, names_dim)                                                     \
    if (strcmp(#field, r->name) == 0)                                                              \
        return set_plan(r, &r->out->plan.field, least, most, names_dim);                           \
    qn__nearest_add(&near, "", #field);
    QN_PLAN_LIST(X)
#undef X
    if (strcmp(r->name, "schedule") == 0)
        return set_schedule(r);
    if (strcmp(r->name, "order") == 0)
        return set_order(r);
    if (strcmp(r->name, "constant") == 0)
        return add_pins(r, QN_PIN_CONSTANT);
    if (strcmp(r->name, "dynamic") == 0)
        return add_pins(r, QN_PIN_DYNAMIC);
    if (strcmp(r->name, "multiple_of") == 0)
        return add_pins(r, QN_PIN_MULTIPLE);
    return qn__fail(r->err, QN_ERR_ARGUMENT,
                    "qn_options_parse: no option has the name \"%.60s\"%s%s%s", r->name,
                    near.best ? ": did you mean " : "", near.best ? near.best : "",
                    near.best ? "?" : "");
}

/** The value of `schedule` is all that is left of the text. */
static qn_status set_all(const qn_kernel *k, char *text, parsed *out, qn_error *err)
{
    static const char spaces[] = " \t\n\r", schedule[] = "schedule=";
    for (char *at = text + strspn(text, spaces); *at;) {
        reader r = {.k = k, .out = out, .name = at, .value = NULL, .err = err};
        bool is_rest = strncmp(at, schedule, sizeof schedule - 1) == 0;
        at += is_rest ? strlen(at) : strcspn(at, spaces);
        if (*at)
            *at++ = 0;
        at += strspn(at, spaces);
        char *equals = strchr(r.name, '=');
        if (!equals || !equals[1])
            return qn__fail(err, QN_ERR_ARGUMENT,
                            "qn_options_parse: \"%.100s\": expected NAME=VALUE", r.name);
        *equals = 0;
        r.value = equals + 1;
        qn_status status = set(&r);
        if (status)
            return status;
    }
    return QN_OK;
}

qn_status qn_options_parse(const char *text, const qn_kernel *k, qn_options **out, qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_options_parse: out is NULL");
    parsed *p = qn__zalloc(1, sizeof *p);
    char *copy = qn__strdup(text ? text : "");
    qn_status status = QN_OK;
    if (!p || !copy) {
        status = qn__fail(err, QN_ERR_MEMORY, "qn_options_parse: out of memory");
    } else {
        p->options.bytes = sizeof p->options;
        p->plan.bytes = sizeof p->plan;
        status = set_all(k, copy, p, err);
    }
    qn__free(copy);
    if (status)
        qn_options_release(p ? &p->options : NULL);
    else
        *out = &p->options;
    return status;
}

void qn_options_release(qn_options *o)
{
    parsed *p = (parsed *)(void *)o; /* whose first member they are */
    if (p)
        qn__free(p->schedule);
    qn__free(p);
}
