/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.c: facts as canonical bytes, back, and as text. The bytes are written field by field, little
 * endian, without padding: 32-bit words for counts and choices, 64-bit words for values, and one
 * byte for a small class. The same facts give the same bytes, and what the bytes hold is all that
 * generated code depends on besides the kernel.
 *
 * One list of fields serves bytes, both ways, and the text for people: a codec either appends to
 * what is written or takes from a byte string. Reading trusts nothing: every number is checked,
 * slots must count up in the order of facts.c, and nothing may be left over. The text leaves out
 * numbers that are 0.
 */
#include "jit/jit.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC 0x374b4e51u /* "QNK7" */

enum { MAX_FACT_DIGITS = QN_MAX_PARAMS * QN_MAX_DIGITS };

/** Writes to `out`, as bytes or as text, or reads [at, end) when `out` is NULL. `bad` names the
 * first field that was refused. */
typedef struct codec {
    qn_text *out;
    bool is_text, is_first; /* of the fields of its line */
    const uint8_t *at, *end;
    const char *bad;
    bool lacks_memory; /* for what was read */
    int32_t next_slot, next_digit;
} codec;

static void refuse(codec *c, const char *field)
{
    if (!c->bad)
        c->bad = field;
}

/* ---------------------------------------------------------------- text */

/** Begins a line of the text: with what it is about, and the name or the number n of that. */
static void title(codec *c, const char *what, const char *name, int n)
{
    if (!c->is_text)
        return;
    bool is_begun = c->out->n && c->out->data[c->out->n - 1] != '\n';
    qn__text_add(c->out, "%s%s", is_begun ? "\n" : "", what);
    if (name)
        qn__text_add(c->out, "%s%s:", *name ? " " : "", name);
    else
        qn__text_add(c->out, " %d:", n);
    c->is_first = true;
}

/** A field before its value. */
static void print_name(codec *c, const char *field)
{
    qn__text_add(c->out, "%s %s", c->is_first ? "" : ",", field);
    c->is_first = false;
}

static void print_number(codec *c, const char *field, int64_t n)
{
    if (n)
        print_name(c, field);
    if (n)
        qn__text_add(c->out, " %" PRId64, n);
}

/** Where code reads the data pointer of a view, or a scalar that is not constant. */
static void print_slot(codec *c, const qn_param_fact *param)
{
    if (c->is_text && param->slot >= 0) {
        print_name(c, "slot");
        qn__text_add(c->out, " %" PRId32, param->slot);
    }
}

/** What is known of a number, and where code reads it if it is not exact. */
static void print_fact(codec *c, const qn_fact *fact, const char *field)
{
    print_name(c, field);
    if (fact->kind == QN_FACT_EXACT)
        qn__text_add(c->out, " %" PRId64, fact->value);
    else if (fact->slot >= 0)
        qn__text_add(c->out, " slot %" PRId32, fact->slot);
    else
        qn__text_add(c->out, " computed");
    if (fact->kind == QN_FACT_DYNAMIC && fact->multiple > 1)
        qn__text_add(c->out, " multiple of %" PRId32, fact->multiple);
    if (fact->kind == QN_FACT_DYNAMIC && fact->is_small)
        qn__text_add(c->out, " below 2^31");
    if (fact->kind == QN_FACT_DYNAMIC && fact->least > 0)
        qn__text_add(c->out, " at least %" PRId32, fact->least);
    if (fact->kind == QN_FACT_DYNAMIC && fact->most > 0)
        qn__text_add(c->out, " at most %" PRId32, fact->most);
}

/* ---------------------------------------------------------------- numbers */

static void write_number(codec *c, uint64_t value, int n_bytes)
{
    uint8_t bytes[8];
    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    qn__text_bytes(c->out, bytes, (size_t)n_bytes);
}

static uint64_t read_number(codec *c, int n_bytes, const char *field)
{
    if (c->bad || c->end - c->at < n_bytes) {
        refuse(c, field);
        return 0;
    }
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++)
        value |= (uint64_t)c->at[i] << (8 * i);
    c->at += n_bytes;
    return value;
}

static void code_u64(codec *c, uint64_t *value, const char *field)
{
    if (c->is_text)
        print_name(c, field);
    if (c->is_text)
        qn__text_add(c->out, " 0x%" PRIx64, *value);
    else if (c->out)
        write_number(c, *value, 8);
    else
        *value = read_number(c, 8, field);
}

static void code_i64(codec *c, int64_t *value, const char *field)
{
    uint64_t bits = (uint64_t)*value;
    code_u64(c, &bits, field);
    *value = (int64_t)bits;
}

/** A 32-bit number in [low, high]. What is refused reads as `low`, so that counts stay usable. */
static void code_i32(codec *c, int32_t *value, int32_t low, int32_t high, const char *field)
{
    if (c->is_text)
        print_number(c, field, *value);
    else if (c->out)
        write_number(c, (uint32_t)*value, 4);
    if (c->out)
        return;
    uint32_t bits = (uint32_t)read_number(c, 4, field);
    int64_t number = bits > INT32_MAX ? (int64_t)bits - ((int64_t)1 << 32) : (int64_t)bits;
    if (number < low || number > high) {
        refuse(c, field);
        number = low;
    }
    *value = (int32_t)number;
}

static void code_u8(codec *c, uint8_t *value, uint8_t high, const char *field)
{
    if (c->is_text)
        print_number(c, field, *value);
    else if (c->out)
        write_number(c, *value, 1);
    if (c->out)
        return;
    uint64_t number = read_number(c, 1, field);
    if (number > high)
        refuse(c, field);
    *value = number > high ? 0 : (uint8_t)number;
}

/* ---------------------------------------------------------------- facts */

static void code_multiple(codec *c, int32_t *multiple, int32_t least, const char *field)
{
    code_i32(c, multiple, least, QN_MOST_MULTIPLE, field);
    if (*multiple & (*multiple - 1))
        refuse(c, field);
}

/** A fact: its kind, then the value of an exact one, or what is known of a dynamic one, whose slot
 * follows from the order. */
static void code_fact(codec *c, qn_fact *fact, bool has_slot, const char *field)
{
    uint8_t kind = (uint8_t)fact->kind;
    if (c->is_text) {
        print_fact(c, fact, field);
        return;
    }
    code_u8(c, &kind, QN_FACT_DYNAMIC, field);
    if (kind == QN_FACT_EXACT) {
        code_i64(c, &fact->value, field);
    } else {
        code_multiple(c, &fact->multiple, 1, field);
        code_i32(c, &fact->is_small, 0, 1, field);
        code_i32(c, &fact->least, 0, INT32_MAX, field);
        code_i32(c, &fact->most, 0, QN_SHORT_EXTENT, field);
    }
    if (c->out)
        return;
    fact->kind = kind;
    fact->slot = kind == QN_FACT_DYNAMIC && has_slot ? c->next_slot++ : -1;
}

static void code_plan(codec *c, qn_plan_options *plan)
{
    const size_t before = c->is_text ? c->out->n : 0;
    title(c, "plan", "", 0);
#define X(name, text, least, most, names_dim) code_i32(c, &plan->name, least, most, #name);
    QN_PLAN_LIST(X)
#undef X
    for (int d = 0; d < QN_MAX_RANK; d++)
        code_i32(c, &plan->order[d], 0, QN_MAX_RANK, "order");
    if (c->is_text && c->is_first) /* nothing is fixed */
        c->out->n = before;
    if (plan->width & (plan->width - 1))
        refuse(c, "width");
}

/** 0, or 1 and the length, and then the bytes, of which none is zero. */
static void code_schedule(codec *c, qn_facts *f)
{
    for (const char *at = f->schedule; c->is_text && at; at = *at ? at + 1 : NULL) {
        size_t line = strcspn(at, "\n");
        qn__text_add(c->out, "\nschedule: %.*s", (int)line, at);
        at += line;
    }
    if (c->is_text)
        return;
    int32_t n = f->schedule ? (int32_t)f->schedule_bytes + 1 : 0;
    code_i32(c, &n, 0, QN_MAX_SCHEDULE_BYTES + 1, "length of a schedule");
    if (c->out && n > 1)
        qn__text_bytes(c->out, f->schedule, f->schedule_bytes);
    if (c->out || n == 0 || c->bad)
        return;
    if (c->end - c->at < n - 1 || memchr(c->at, 0, (size_t)n - 1)) {
        refuse(c, "schedule");
        return;
    }
    f->schedule = qn__alloc((size_t)n);
    c->lacks_memory = !f->schedule;
    if (!f->schedule)
        return;
    f->schedule_bytes = (size_t)n - 1;
    memcpy(f->schedule, c->at, f->schedule_bytes);
    f->schedule[f->schedule_bytes] = 0;
    c->at += n - 1;
}

static void code_digits(codec *c, qn_facts *f, qn_dim_fact *dim)
{
    if (!c->is_text) /* which has the digits */
        code_i32(c, &dim->n_digits, 0, QN_MAX_DIGITS, "n_digits");
    code_i32(c, &dim->reach, 0, QN_MAX_RANK, "reach");
    if (!c->out) {
        dim->first_digit = dim->n_digits ? c->next_digit : 0;
        if (dim->n_digits > f->n_digits - c->next_digit) {
            refuse(c, "n_digits");
            dim->n_digits = 0;
        }
        c->next_digit += dim->n_digits;
    }
    for (int i = 0; i < dim->n_digits; i++) {
        qn_digit_fact *digit = &f->digit[dim->first_digit + i];
        bool is_last = i + 1 == dim->n_digits;
        if (!is_last || !c->is_text)
            code_fact(c, &digit->extent, !is_last, "digit extent");
        code_fact(c, &digit->stride, true, "stride");
        if (digit->extent.kind == QN_FACT_EXACT &&
            (is_last ? digit->extent.value != 0 : digit->extent.value < 1))
            refuse(c, "digit extent");
        if (is_last && digit->extent.kind != QN_FACT_EXACT)
            refuse(c, "digit extent");
    }
}

/** Dimensions that say nothing at the end are left out: the rank is the kernel's. */
static int32_t count_dims(const qn_param_fact *param)
{
    int32_t n = QN_MAX_RANK;
    for (; n > 0; n--) {
        const qn_dim_fact *dim = &param->dim[n - 1];
        if (dim->n_digits || dim->reach || dim->lower.kind || dim->lower.value ||
            dim->extent.kind || dim->extent.value)
            break;
    }
    return n;
}

static void code_view(codec *c, qn_facts *f, qn_param_fact *param)
{
    int32_t n_dims = c->out ? count_dims(param) : 0;
    print_slot(c, param);
    code_i32(c, &n_dims, 0, QN_MAX_RANK, "rank");
    code_i32(c, &param->checks, QN_CHECKS_REPORT, QN_CHECKS_NONE, "checks of a view");
    code_i32(c, &param->unit, 0, INT32_MAX, "unit");
    if (!c->out)
        param->slot = c->next_slot++;
    if (f->ptx) {
        code_i32(c, &param->is_constant_memory, 0, 1, "is_constant_memory");
        code_i32(c, &param->align, 0, 4, "align");
    }
    for (int d = 0; d < n_dims; d++) {
        qn_dim_fact *dim = &param->dim[d];
        title(c, "  dimension", NULL, d);
        code_fact(c, &dim->lower, true, "lower");
        code_fact(c, &dim->extent, true, "extent");
        if (dim->extent.value < 0)
            refuse(c, "extent");
        code_digits(c, f, dim);
    }
    if (!c->out)
        param->has_slots = c->next_slot > param->slot + 1;
    if (!c->out && n_dims != count_dims(param))
        refuse(c, "rank");
    for (int d = n_dims; d < QN_MAX_RANK && !c->out; d++)
        param->dim[d].lower.slot = param->dim[d].extent.slot = -1;
}

static void code_param(codec *c, qn_facts *f, qn_param_fact *param)
{
    if (!c->is_text)
        code_i32(c, &param->is_view, 0, 1, "kind of parameter");
    if (param->is_view) {
        code_view(c, f, param);
        return;
    }
    if (!c->is_text) { /* which has bits or a slot */
        code_i32(c, &param->is_constant, 0, 1, "is_constant");
        code_i32(c, &param->n_parts, 1, 2, "n_parts");
    }
    for (int part = 0; part < param->n_parts && param->is_constant; part++)
        code_u64(c, &param->bits[part], "bits");
    code_multiple(c, &param->multiple, 0, "multiple");
    code_i32(c, &param->is_small, 0, 1, "is_small");
    print_slot(c, param);
    if (c->out)
        return;
    param->slot = param->is_constant ? -1 : c->next_slot;
    c->next_slot += param->is_constant ? 0 : param->n_parts;
}

/** The class of a size. */
static int64_t code_size(codec *c, int64_t n, int64_t least, int64_t most, const char *field)
{
    int32_t size_class = c->out ? qn__size_class(n) : 0;
    code_i32(c, &size_class, qn__size_class(least), qn__size_class(most), field);
    if (qn__size_class(qn__size_of_class(size_class)) !=
        size_class) /* two classes below 4 are none */
        refuse(c, field);
    return qn__size_of_class(size_class);
}

/** What plans depend on of what is read of a machine; the rest follows from the instruction set. */
static void code_machine(codec *c, qn_facts *f)
{
    qn_machine *m = &f->machine;
    if (c->is_text)
        return;
    if (!c->out) {
        f->target = qn__target_row(f->isa);
        *m = *qn__machine_usual(f->isa);
    }
    if (f->target->has_grid) {
        int32_t shared = m->shared_bytes >> 10;
        m->multiprocessors = (int32_t)code_size(c, m->multiprocessors, 1, QN_MOST_MULTIPROCESSORS,
                                                "multiprocessors");
        m->threads =
            (int32_t)code_size(c, m->threads, 1, QN_MOST_RESIDENT, "threads of a multiprocessor");
        code_i32(c, &shared, 1, QN_MOST_SHARED_BYTES >> 10, "shared memory");
        m->shared_bytes = shared << 10;
        m->far_bytes = code_size(c, m->far_bytes, QN_LEAST_CACHE_BYTES, QN_MOST_CACHE_BYTES,
                                 "second-level cache");
        m->memory_rate =
            (int32_t)code_size(c, m->memory_rate, 1, QN_MOST_MEMORY_RATE, "rate of memory");
        return;
    }
    code_i32(c, &m->core, QN_CORE_USUAL, QN_N_CORES - 1, "core");
    if (!c->out)
        *m = *qn__machine_of_core(f->isa, m->core);
    for (int n = 0; n < QN_N_CACHES; n++) {
        m->cache[n].bytes =
            code_size(c, m->cache[n].bytes, QN_LEAST_CACHE_BYTES, QN_MOST_CACHE_BYTES, "cache");
        if (n != QN_CACHE_LAST)
            code_i32(c, &m->cache[n].ways, 1, QN_MOST_WAYS, "ways of a cache");
    }
    code_i32(c, &m->cache[0].line, QN_LEAST_LINE_BYTES, QN_MOST_LINE_BYTES, "line of a cache");
    if (m->cache[0].line & (m->cache[0].line - 1))
        refuse(c, "line of a cache");
    m->cache[QN_CACHE_SECOND].line = m->cache[QN_CACHE_LAST].line = m->cache[0].line;
}

static void code_counts(codec *c, qn_facts *f)
{
    int32_t n_accesses = (int32_t)f->n_accesses;
    title(c, "target", qn__target_row(f->isa)->name, 0);
    code_i32(c, &f->n_params, 0, QN_MAX_PARAMS, "n_params");
    code_i32(c, &f->n_dims, 0, QN_MAX_RANK, "n_dims");
    code_i32(c, &f->n_slots, 0, INT32_MAX, "n_slots");
    code_i32(c, &f->n_digits, 0, MAX_FACT_DIGITS, "n_digits");
    code_i32(c, &n_accesses, 0, QN_MAX_OPS, "n_accesses");
    code_i32(c, &f->isa, 0, INT32_MAX, "isa");
    if (qn__target_row(f->isa)->isa != f->isa)
        refuse(c, "isa");
    code_i32(c, &f->ptx, 0, 99, "ptx");
    if ((qn__target_row(f->isa)->ptx != 0) != (f->ptx != 0))
        refuse(c, "ptx");
    code_i32(c, &f->checks, QN_CHECKS_REPORT, QN_CHECKS_NONE, "checks");
    code_i32(c, &f->is_ordered, 0, 1, "is_ordered");
    code_i32(c, &f->atomics, QN_ATOMICS_OF_ALL, QN_ATOMICS_OF_ONE, "atomics");
    code_machine(c, f);
    code_i32(c, &f->is_portable, 0, 1, "is_portable");
    code_i32(c, &f->is_large, 0, 1, "is_large");
    code_i32(c, &f->prints_rows, 0, 1, "prints_rows");
    f->n_accesses = (uint32_t)n_accesses;
}

/** Everything after the counts; the arrays are there. k: NULL, or for the names of a text. */
static void code_rest(codec *c, qn_facts *f, const qn_kernel *k)
{
    code_plan(c, &f->plan);
    code_schedule(c, f);
    for (int d = 0; d < f->n_dims; d++) {
        title(c, "domain", NULL, d);
        code_fact(c, &f->begin[d], false, "begin");
        code_fact(c, &f->end[d], false, "end");
    }
    for (int p = 0; p < f->n_params; p++) {
        title(c, f->param[p].is_view ? "view" : "scalar", k ? k->param[p].name : NULL, p);
        code_param(c, f, &f->param[p]);
    }
    for (uint32_t site = 0; site < f->n_accesses; site++) {
        title(c, "access", NULL, (int)site);
        code_u8(c, &f->proved[site], QN_GUARDED, f->proved[site] > 1 ? "guarded" : "proved");
    }
}

void qn__key_encode(const qn_facts *f, qn_text *out)
{
    qn_facts facts = *f; /* the codec takes pointers for both directions; writing changes nothing */
    codec c = {.out = out};
    write_number(&c, MAGIC, 4);
    code_counts(&c, &facts);
    code_rest(&c, &facts, NULL);
}

qn_status qn__key_decode(const void *key, size_t n, qn_facts *out, qn_error *err)
{
    if (!key || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn__key_decode: %s is NULL", key ? "out" : "key");
    codec c = {.at = key, .end = (const uint8_t *)key + n};
    qn_facts f = {0};
    if (read_number(&c, 4, "magic") != MAGIC)
        refuse(&c, "magic");
    code_counts(&c, &f);
    if (!c.bad && (size_t)f.n_digits + f.n_accesses > n)
        refuse(&c, "counts");
    if (!c.bad) {
        f.param = qn__zalloc((size_t)f.n_params + 1, sizeof *f.param);
        f.digit = qn__zalloc((size_t)f.n_digits + 1, sizeof *f.digit);
        f.proved = qn__zalloc((size_t)f.n_accesses + 1, 1);
        c.lacks_memory = !f.param || !f.digit || !f.proved;
        if (!c.lacks_memory)
            code_rest(&c, &f, NULL);
        if (c.lacks_memory) {
            qn__facts_release(&f);
            return qn__fail(err, QN_ERR_MEMORY, "qn__key_decode: no memory for a key of %zu bytes",
                            n);
        }
    }
    if (!c.bad && (c.next_slot != f.n_slots || c.next_digit != f.n_digits || c.at != c.end))
        refuse(&c, c.at != c.end ? "end" : "counts");
    if (c.bad) {
        qn__facts_release(&f);
        return qn__fail(err, QN_ERR_INTERNAL, "qn__key_decode: malformed key of %zu bytes: %s", n,
                        c.bad);
    }
    *out = f;
    return QN_OK;
}

void qn__key_print(const qn_facts *f, const qn_kernel *k, qn_text *out)
{
    qn_facts facts = *f;
    codec c = {.out = out, .is_text = true};
    code_counts(&c, &facts);
    qn__text_add(out, "\n");
    qn__machine_print(&f->machine, out);
    code_rest(&c, &facts, k);
    qn__text_add(out, "\n");
}
