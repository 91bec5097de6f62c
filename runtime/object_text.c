/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_text.c: the entry function of a kernel as C text. It checks the arrays of the caller
 * against the facts that the code relies on, computes the domain, fills the argument block and the
 * range as qn__facts_fill and qn__range_fill do, and calls the code.
 */
#include "runtime/object.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXACT_LOWER = 1, EXACT_EXTENT = 2, EXACT_STRIDE = 4, ALIGNED = 64 };

int qn__object_number_of_view(const qn_kernel *k, int p)
{
    int n = 0;
    for (int i = 0; i < p; i++)
        n += k->param[i].rank >= 0;
    return n;
}

/* ---------------------------------------------------------------- parameters */

static const char *type_of_scalar(int dtype)
{
    static const char *const names[QN_N_DTYPES] = {
#define C_B(c) "int "
#define C_S(c) #c " "
#define C_U(c) #c " "
#define C_F(c) #c " "
#define C_C(c) "const " #c " *"
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, ...)                     \
    [number] = C_##cls(c),
#include "quern/dtypes.def"
#undef QN_DTYPE
    };
    return names[dtype];
}

void qn__object_print_params(const qn_kernel *k, qn_text *params, qn_text *args)
{
    for (int p = 0; p < k->n_params; p++) {
        bool is_view = k->param[p].rank >= 0;
        qn__text_add(params, "%s",
                     is_view ? "const quern_array *" : type_of_scalar(k->param[p].dtype));
        qn__object_param(k, p, params);
        qn__object_param(k, p, args);
        qn__text_add(params, ", ");
        qn__text_add(args, ", ");
    }
    qn__text_add(params, "quern_fault *fault");
    qn__text_add(args, "fault");
}

/** A name in quotes. */
static void print_string(const char *name, qn_text *out)
{
    qn__text_add(out, "\"");
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        if (*at < ' ' || *at >= 0x7f || *at == '"' || *at == '\\' || *at == '?')
            qn__text_add(out, "\\%03o", (unsigned)*at);
        else
            qn__text_add(out, "%c", *at);
    qn__text_add(out, "\"");
}

/* ---------------------------------------------------------------- facts */

static const qn_fact *stride_of(const qn_facts *f, const qn_dim_fact *dim)
{
    return &f->digit[dim->first_digit].stride;
}

static int exact_bits(const qn_facts *f, const qn_dim_fact *dim)
{
    bool is_single =
        dim->extent.kind == QN_FACT_EXACT && dim->extent.value == 1; /* its stride is never used */
    bool has_stride = stride_of(f, dim)->kind == QN_FACT_EXACT && !is_single;
    return (dim->lower.kind == QN_FACT_EXACT ? EXACT_LOWER : 0) |
           (dim->extent.kind == QN_FACT_EXACT ? EXACT_EXTENT : 0) | (has_stride ? EXACT_STRIDE : 0);
}

static void print_facts_of(const qn_code *c, int p, bool is_stored, qn_text *out)
{
    const qn_kernel_parameter *param = &c->kernel->param[p];
    const qn_dim_fact *dim = c->facts.param[p].dim;
    int64_t bytes = param->record ? qn_record_bytes(param->record) : qn_dtype_bytes(param->dtype);
    int64_t align =
        param->traits & QN_ALIGNED ? ALIGNED : qn__dtype_align(param->dtype, param->record);
    int rank = param->rank;
    qn__text_add(out, "        {");
    print_string(param->name, out);
    qn__text_add(out, ", %" PRId64 ", %" PRId64 ", %d, %d, {", bytes, align, rank, is_stored);
    for (int d = 0; d < rank; d++)
        qn__text_add(out, "%s%d", d ? ", " : "", exact_bits(&c->facts, &dim[d]));
    qn__text_add(out, rank ? "}, {" : "0}, {{0, 0, 0}");
    for (int d = 0; d < rank; d++) {
        const qn_fact *fact[3] = {&dim[d].lower, &dim[d].extent, stride_of(&c->facts, &dim[d])};
        qn__text_add(out, "%s{", d ? ", " : "");
        for (int i = 0; i < 3; i++)
            qn__text_add(out, "%sINT64_C(%" PRId64 ")", i ? ", " : "",
                         fact[i]->kind == QN_FACT_EXACT ? fact[i]->value : 0);
        qn__text_add(out, "}");
    }
    qn__text_add(out, "}},\n");
}

static void print_facts(const qn_code *c, const qn_usage *usage, qn_text *out)
{
    qn__text_add(out, "    static const quern_facts facts[] = {\n");
    for (int p = 0; p < c->kernel->n_params; p++)
        if (c->kernel->param[p].rank >= 0)
            print_facts_of(c, p, usage->has_plain_store[p], out);
    qn__text_add(out, "    };\n");
}

/** Which array an access is of, for what is reported. */
static void print_sites(const qn_kernel *k, qn_text *out)
{
    qn__text_add(out, "    static const char *const sites[] = {");
    for (uint32_t site = 0; site < k->n_accesses; site++) {
        qn__text_add(out, "%s", site ? ", " : "");
        print_string(k->param[k->inst[k->access[site].inst].imm].name, out);
    }
    qn__text_add(out, k->n_accesses ? "};\n" : "0};\n");
}

/** The messages of the assertions in the code. */
static void print_messages(const qn_kernel *k, qn_text *out)
{
    qn__text_add(out, "    static const quern_message messages[] = {\n");
    for (uint32_t i = 1; i < k->n_insts; i++) {
        if (k->inst[i].op != QN_I_ASSERT)
            continue;
        qn__text_add(out, "        {%" PRId64 ", ", qn__site_of_assert(0, i));
        print_string(k->message[k->inst[i].imm], out);
        qn__text_add(out, "},\n");
    }
    qn__text_add(out, "        {0, (const char *)0}};\n");
}

/* ---------------------------------------------------------------- checks */

static void print_checks(const qn_kernel *k, const qn_usage *usage, qn_text *out)
{
    for (int p = 0; p < k->n_params; p++) {
        if (k->param[p].rank < 0)
            continue;
        qn__text_add(out, "    if ((status = quern_check(");
        qn__object_param(k, p, out);
        qn__text_add(out, ", &facts[%d], fault)) != QUERN_OK)\n        return status;\n",
                     qn__object_number_of_view(k, p));
    }
    for (int b = 0; b < k->n_params; b++)
        for (int a = 0; a < b; a++) {
            bool is_pair = k->param[a].rank >= 0 && k->param[b].rank >= 0;
            bool matters = k->param[a].is_written || k->param[b].is_written ||
                           ((k->param[a].traits | k->param[b].traits) & QN_RESTRICT);
            if (!is_pair || !matters)
                continue;
            qn__text_add(out, "    if ((status = quern_check_pair(");
            qn__object_param(k, a, out);
            qn__text_add(out, ", ");
            qn__object_param(k, b, out);
            qn__text_add(out,
                         ", facts[%d].name, %d, fault)) != QUERN_OK)\n        return status;\n",
                         qn__object_number_of_view(k, b), qn__may_be_same(k, usage, a, b));
        }
}

/** Bits of a part of a scalar, as they stand in the argument block. */
static void print_bits(const qn_kernel *k, int p, int part, qn_text *out)
{
    int dtype = k->param[p].dtype, type = qn__part_dtype(dtype, NULL, 0);
    qn_text name = {0};
    qn__object_param(k, p, &name);
    const char *at = name.data ? name.data : "";
    if (dtype == QN_BOOL)
        qn__text_add(out, "%s != 0", at);
    else if (qn__dtype_class(dtype) == QN_CLASS_C)
        qn__text_add(out, "quern_bits_%s(%s[%d])", qn_dtype_name(type), at, part);
    else if (qn__dtype_class(type) == QN_CLASS_F && !qn__is_half(type))
        qn__text_add(out, "quern_bits_%s(%s)", qn_dtype_name(type), at);
    else
        qn__text_add(out, "(int64_t)%s", at);
    out->failed |= name.failed;
    qn__text_release(&name);
}

/** Scalars that are constants of the code. */
static void print_constants(const qn_code *c, qn_text *out)
{
    for (int p = 0; p < c->kernel->n_params; p++)
        for (int part = 0; c->facts.param[p].is_constant && part < c->facts.param[p].n_parts;
             part++) {
            qn__text_add(out, "    if ((uint64_t)(");
            print_bits(c->kernel, p, part, out);
            qn__text_add(out,
                         ") != UINT64_C(%" PRIu64
                         "))\n        return quern_fail(fault, QUERN_ERR_ARGUMENT, ",
                         c->facts.param[p].bits[part]);
            print_string(c->kernel->param[p].name, out);
            qn__text_add(out, ", -1);\n");
        }
}

/** Returns from the function unless what is known of a dynamic number holds. */
static void print_known(const char *number, int32_t multiple, int32_t is_small, const char *status,
                        const char *name, int d, qn_text *out)
{
    if (multiple > 1)
        qn__text_add(
            out, "    if (%s %% %" PRId32 " != 0)\n        return quern_fail(fault, %s, %s, %d);\n",
            number, multiple, status, name, d);
    if (is_small)
        qn__text_add(out,
                     "    if (%s < -INT32_MAX || %s > INT32_MAX)\n        return quern_fail(fault, "
                     "%s, %s, %d);\n",
                     number, number, status, name, d);
}

static void print_known_field(const qn_fact *f, const char *param, const char *field,
                              const char *status, const char *name, int d, qn_text *out)
{
    qn_text number = {0};
    qn__text_add(&number, "%s->dim[%d].%s", param, d, field);
    print_known(number.data ? number.data : "", f->multiple, f->is_small, status, name, d, out);
    if (f->least > 0)
        qn__text_add(out,
                     "    if (%s < %" PRId32 ")\n        return quern_fail(fault, %s, %s, %d);\n",
                     number.data ? number.data : "", f->least, status, name, d);
    out->failed |= number.failed;
    qn__text_release(&number);
}

static void print_known_of(const qn_code *c, int p, qn_text *out)
{
    const qn_param_fact *f = &c->facts.param[p];
    const qn_kernel *k = c->kernel;
    qn_text param = {0}, name = {0};
    qn__object_param(k, p, &param);
    print_string(k->param[p].name, &name);
    const char *at = param.data ? param.data : "", *label = name.data ? name.data : "";
    if (!f->is_view)
        print_known(at, f->multiple, f->is_small, "QUERN_ERR_ARGUMENT", label, -1, out);
    for (int d = 0; d < k->param[p].rank; d++) {
        print_known_field(&f->dim[d].lower, at, "lower", "QUERN_ERR_UNSUPPORTED", label, d, out);
        print_known_field(&f->dim[d].extent, at, "extent", "QUERN_ERR_EXTENT", label, d, out);
        print_known_field(stride_of(&c->facts, &f->dim[d]), at, "stride", "QUERN_ERR_UNSUPPORTED",
                          label, d, out);
    }
    out->failed |= param.failed || name.failed;
    qn__text_release(&param);
    qn__text_release(&name);
}

/** Nothing to do, or too much to count. */
static void print_counts(const qn_kernel *k, qn_text *out)
{
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d))
            qn__text_add(out, "    if (begin%d >= end%d)\n        return QUERN_OK;\n", d, d);
    for (int d = 0; d < k->n_dims; d++)
        qn__text_add(out,
                     "    if (!quern_count(&n_iterations, begin%d, end%d))\n"
                     "        return quern_fail(fault, QUERN_ERR_OVERFLOW, (const char *)0, -1);\n",
                     d, d);
}

/* ---------------------------------------------------------------- the call */

static void print_slot(const qn_fact *fact, const qn_kernel *k, int p, int d, const char *field,
                       qn_text *out)
{
    if (fact->kind != QN_FACT_DYNAMIC)
        return;
    qn__text_add(out, "    slots[%d] = ", fact->slot);
    qn__object_param(k, p, out);
    qn__text_add(out, "->dim[%d].%s;\n", d, field);
}

static void print_slots(const qn_code *c, qn_text *out)
{
    const qn_kernel *k = c->kernel;
    for (int p = 0; p < k->n_params; p++) {
        const qn_param_fact *param = &c->facts.param[p];
        if (param->is_view) {
            qn__text_add(out, "    slots[%d] = (int64_t)(intptr_t)", param->slot);
            qn__object_param(k, p, out);
            qn__text_add(out, "->data;\n");
        }
        for (int part = 0; !param->is_view && !param->is_constant && part < param->n_parts;
             part++) {
            qn__text_add(out, "    slots[%d] = ", param->slot + part);
            print_bits(k, p, part, out);
            qn__text_add(out, ";\n");
        }
        for (int d = 0; d < k->param[p].rank; d++) {
            print_slot(&param->dim[d].lower, k, p, d, "lower", out);
            print_slot(&param->dim[d].extent, k, p, d, "extent", out);
            print_slot(stride_of(&c->facts, &param->dim[d]), k, p, d, "stride", out);
        }
    }
}

static void print_range_words(int at, int d, qn_text *out)
{
    qn__text_add(out, "    range[%d] = begin%d;\n    range[%d] = end%d;\n", at, d, at + 1, d);
}

static void print_range(const qn_kernel *k, const qn_blob_info *info, qn_text *out)
{
    int at = 2;
    qn__text_add(out, "    range[%d] = 1;\n", (int)QN_ALONE_WORD);
    if (info->split_dim >= 0)
        print_range_words(0, info->split_dim, out);
    for (int d = 0; d < k->n_dims; d++)
        if (info->split_merged >> d & 1)
            qn__text_add(out,
                         "    range[1] = range[0] + (range[1] - range[0]) * (end%d - begin%d);\n",
                         d, d);
    for (int d = 0; d < k->n_dims && at < 2 + 2 * info->n_sequential; d++)
        if (qn__dim_kind(k, d) == QN_DIM_SEQUENTIAL) {
            print_range_words(at, d, out);
            at += 2;
        }
    if (info->second_granule)
        print_range_words(at, info->second_dim, out);
}

static void print_call(const qn_kernel *k, const qn_blob_info *info, const char *symbol,
                       qn_text *out)
{
    int word = qn__scratch_word(info->n_sequential, info->second_granule);
    const char *sites = k->n_accesses ? "sites" : "(const char *const *)0";
    const char *messages = k->n_messages ? "messages" : "(const quern_message *)0";
    if (info->n_shared_reduces) {
        qn__text_add(out, "    range[%d] = %d;\n", (int)QN_PHASES_WORD,
                     (int)(QN_PHASE_POINTS | QN_PHASE_REST));
        qn__text_add(out,
                     "    return quern_run_with(%d * ((range[1] - range[0]) / %d + 1), &range[%d], "
                     "%s, slots, range, %s, %s, fault);\n",
                     info->n_shared_reduces * (int)sizeof(int64_t), (int)QN_BLOCK_POINTS, word,
                     symbol, sites, messages);
    } else if (info->scratch_bytes) {
        qn__text_add(out,
                     "    return quern_run_with(INT64_C(%" PRId64
                     "), &range[%d], %s, slots, range, %s, %s, fault);\n",
                     info->scratch_bytes, word, symbol, sites, messages);
    } else {
        qn__text_add(out, "    return quern_run(%s, slots, range, %s, %s, fault);\n", symbol, sites,
                     messages);
    }
}

/* ---------------------------------------------------------------- functions */

static void print_head(const qn_code *c, const char *name, const char *symbol, const char *params,
                       bool has_views, qn_text *out)
{
    int n_slots = c->facts.n_slots > 0 ? c->facts.n_slots : 1;
    qn__text_add(out, "\nextern quern_code %s;\n\n", symbol);
    qn__text_add(out, "QUERN_ENTRY int %s_v%d(%s)\n{\n", name, (int)c->facts.isa, params);
    qn__text_add(out, "    int64_t slots[%d], range[%d] = {0}, n_iterations = 1;\n%s", n_slots,
                 (int)QN_RANGE_WORDS, has_views ? "    int status;\n" : "");
    if (!c->kernel->n_dims)
        qn__text_add(out, "    (void)n_iterations;\n");
    if (n_slots > c->facts.n_slots)
        qn__text_add(out, "    slots[0] = 0;\n");
}

qn_status qn__object_print_entry(const char *who, const qn_code *f, const char *name,
                                 const char *symbol, const char *params, qn_text *out,
                                 qn_error *err)
{
    const qn_kernel *k = f->kernel;
    bool has_views = qn__object_number_of_view(k, k->n_params) > 0;
    int bad_dim = 0;
    qn_usage usage;
    qn_ranges r;
    if (!qn__ranges_init(k, &r)) {
        qn__ranges_release(&r);
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who, k->name);
    }
    qn__usage_collect(k, &usage);
    print_head(f, name, symbol, params, has_views, out);
    if (has_views)
        print_facts(f, &usage, out);
    if (k->n_accesses)
        print_sites(k, out);
    if (k->n_messages)
        print_messages(k, out);
    print_checks(k, &usage, out);
    print_constants(f, out);
    for (int p = 0; p < k->n_params; p++)
        print_known_of(f, p, out);
    bool has_domain = qn__ranges_print_domain(&r, &f->facts, out, &bad_dim);
    if (has_domain) {
        print_counts(k, out);
        qn__ranges_print_proof(&r, &f->facts, out);
        print_slots(f, out);
        print_range(k, &f->info, out);
        print_call(k, &f->info, symbol, out);
        qn__text_add(out, "}\n");
    }
    qn__ranges_release(&r);
    if (!has_domain)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: kernel \"%.60s\": the range of dimension %d is not a sum, difference, "
                        "product, minimum or maximum of extents and "
                        "integers, so C text cannot compute it",
                        who, k->name, bad_dim);
    return out->failed
               ? qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who, k->name)
               : QN_OK;
}

void qn__object_print_choice(const char *name, uint32_t isas, const char *params, const char *args,
                             qn_text *out)
{
    qn__text_add(out,
                 "\n/* The best of them that the processor runs. */\nQUERN_ENTRY int %s(%s)\n{\n",
                 name, params);
    for (int isa = QN_ISA_V4_BYTES; isa >= QN_ISA_V3; isa--)
        if (isas >> isa & 1)
            qn__text_add(out, "    if (quern_isa() >= %d)\n        return %s_v%d(%s);\n", isa, name,
                         isa, args);
    qn__text_add(out, "    return quern_fail(fault, QUERN_ERR_TARGET, (const char *)0, -1);\n}\n");
}
