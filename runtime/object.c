/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c: kernels as an object file and a header (quern/object.h). Code is that of a blob, which
 * needs no relocation, so the object is blobs one after the other. What the code relies on is
 * checked by C text in the header, and so an access may stay unchecked in the code only where that
 * text can tell that it is inside.
 */
#include "quern/object.h"
#include "runtime/object.h"

#include <inttypes.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 256, MOST_SYMBOLS = 512, NAME_BYTES = 64 };

/** The entry functions of one name. */
typedef struct entry_name {
    char text[NAME_BYTES];
    uint64_t kernel; /* hash of its text */
    uint32_t isas;   /* bit n: that of x86-64-vn is there */
    char *params, *args;
} entry_name;

struct qn_object {
    qn_text code, functions; /* C text, without the functions that choose */
    uint32_t align;
    entry_name name[MOST_NAMES];
    int n_names;
    qn_object_symbol symbol[MOST_SYMBOLS];
    int n_symbols;
};

/** A kernel on its way into an object. */
typedef struct adding {
    qn_object *object;
    const char *name;
    const char *who;
} adding;

/* ---------------------------------------------------------------- life */

qn_status qn_object_new(qn_object **out, qn_error *err)
{
    if (!out)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_object_new: out is NULL");
    *out = qn__zalloc(1, sizeof **out);
    if (!*out)
        return qn__fail(err, QN_ERR_MEMORY, "qn_object_new: no memory");
    (*out)->align = 64;
    return QN_OK;
}

void qn_object_release(qn_object *o)
{
    if (!o)
        return;
    for (int i = 0; i < o->n_names; i++) {
        qn__free(o->name[i].params);
        qn__free(o->name[i].args);
    }
    qn__text_release(&o->code);
    qn__text_release(&o->functions);
    qn__free(o);
}

/* ---------------------------------------------------------------- names */

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
                      digits[] = "0123456789";
    size_t n = strlen(text);
    char all[sizeof letters + sizeof digits];
    snprintf(all, sizeof all, "%s%s", letters, digits);
    return n > 0 && n < NAME_BYTES && strspn(text, all) == n && !strchr(digits, text[0]);
}

/** The record of a name, or where a new one is to be. */
static int find_name(const qn_object *o, const char *text)
{
    int i = 0;
    while (i < o->n_names && strcmp(o->name[i].text, text) != 0)
        i++;
    return i;
}

static qn_status check_name(const adding *a, const qn_launch_state *l, int32_t isa, qn_error *err)
{
    const qn_object *o = a->object;
    const char *name = a->name ? a->name : l->kernel->name;
    if (!is_name(name) || strncmp(name, "quern", 5) == 0)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": \"%.60s\" cannot be the name of its function: "
                        "expected letters, digits and _, "
                        "at most %d, and nothing that begins with quern",
                        a->who, l->kernel->name, name, NAME_BYTES - 1);
    int i = find_name(o, name);
    if (i == MOST_NAMES || o->n_symbols == MOST_SYMBOLS)
        return qn__fail(err, QN_ERR_LIMIT,
                        "%s: kernel \"%.60s\": more than %d kernels in one object", a->who,
                        l->kernel->name, MOST_NAMES);
    if (i < o->n_names && o->name[i].kernel != l->kernel->hash)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": another kernel has the name %s", a->who,
                        l->kernel->name, name);
    if (i < o->n_names && (o->name[i].isas >> isa & 1))
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": the name %s has code for x86-64-v%d already", a->who,
                        l->kernel->name, name, (int)isa);
    return QN_OK;
}

/* ---------------------------------------------------------------- facts */

/** What plain arrays cannot have. NULL: nothing of it. */
static const char *find_unsupported(const qn_launch_state *l, const qn_facts *f)
{
    if (l->kernel->expansion)
        return "arguments have index lists or members";
    if (l->is_ordered)
        return "arguments overlap";
    for (int p = 0; p < f->n_params; p++) {
        if (!f->param[p].is_view)
            continue;
        if (f->param[p].unit)
            return "the strides of an argument count bytes";
        for (int d = 0; d < l->kernel->param[p].rank; d++)
            if (f->param[p].dim[d].n_digits != 1)
                return f->param[p].dim[d].n_digits ? "an argument has a layout of tiles"
                                                   : "an argument is broadcast";
    }
    return NULL;
}

/** Leaves accesses proved that are inside for all arrays that the entry function lets through. */
static qn_status limit_proofs(const adding *a, const qn_launch_state *l, qn_facts *f, qn_error *err)
{
    qn_ranges r = {0};
    const bool is_needed = qn__ranges_are_needed(f);
    bool has_memory = !is_needed || qn__ranges_init(l->kernel, &r), is_changed = false;
    bool has_ranges = r.can && r.needs && r.dims;
    for (uint32_t site = 0; site < f->n_accesses; site++)
        if ((f->proved[site] == QN_GUARDED && is_needed) ||
            (f->proved[site] && has_ranges && !qn__ranges_can_prove(&r, site))) {
            f->proved[site] = 0;
            is_changed = true;
        }
    qn__ranges_release(&r);
    if (!has_memory)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", a->who,
                        l->kernel->name);
    f->checks =
        is_changed ? l->options.checks : f->checks; /* they were forgotten if all was proved */
    for (int p = 0; p < f->n_params && is_changed; p++)
        if (f->param[p].is_view)
            f->param[p].checks = qn__checks_of(l->args[p].view, f->checks);
    return QN_OK;
}

static qn_status prepare(void *arg, const qn_launch_state *l, qn_facts *f, qn_error *err)
{
    const adding *a = arg;
    const char *unsupported = find_unsupported(l, f);
    if (f->target->elf_machine != EM_X86_64) /* the header has entries for no others */
        return qn__fail(err, QN_ERR_TARGET,
                        "%s: kernel \"%.60s\": isa %d is %s, an object is for x86-64", a->who,
                        l->kernel->name, (int)f->isa, f->target->name);
    if (unsupported)
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: kernel \"%.60s\": %s", a->who,
                        l->kernel->name, unsupported);
    qn_status status = check_name(a, l, f->isa, err);
    return status == QN_OK ? limit_proofs(a, l, f, err) : status;
}

/* ---------------------------------------------------------------- code */

/** Appends a blob, aligned, and notes its symbol; the bytes between blobs trap. */
static void add_code(qn_object *o, const qn_code *f, const qn_text *code, qn_object_symbol *symbol)
{
    uint32_t align = f->info.align > 64 ? f->info.align : 64;
    while (o->code.n % align && !o->code.failed)
        qn__text_bytes(&o->code, "\xcc", 1);
    symbol->offset = o->code.n + f->info.entry;
    symbol->bytes = code->n - f->info.entry;
    qn__text_bytes(&o->code, code->data, code->n);
    o->align = align > o->align ? align : o->align;
}

/** The comment above a function: what the code is, and its plan. */
static void print_comment(const qn_code *f, const char *name, qn_text *out)
{
    qn__text_add(out, "\n/* %s for %s. */", name, f->facts.target->name);
}

static void keep_name(qn_object *o, int i, const qn_code *f, const char *name, qn_text *params,
                      qn_text *args)
{
    entry_name *e = &o->name[i];
    if (i == o->n_names) {
        *e = (entry_name){.kernel = f->kernel->hash, .params = params->data, .args = args->data};
        snprintf(e->text, sizeof e->text, "%s", name);
        *params = *args = (qn_text){0};
        o->n_names++;
    }
    e->isas |= UINT32_C(1) << f->facts.isa;
}

static qn_status take(void *arg, const qn_code *f, const qn_compiled *code, qn_error *err)
{
    const adding *a = arg;
    qn_object *o = a->object;
    const char *name = a->name ? a->name : f->kernel->name;
    qn_object_symbol symbol = {.offset = 0};
    qn_text params = {0}, args = {0};
    size_t n_code = o->code.n, n_functions = o->functions.n;
    snprintf(symbol.name, sizeof symbol.name, "quern_%s_v%d_code", name, (int)f->facts.isa);
    qn__object_print_params(f->kernel, &params, &args);
    print_comment(f, name, &o->functions);
    add_code(o, f, &code->code, &symbol);
    qn_status status =
        params.failed || args.failed || o->functions.failed || o->code.failed
            ? qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", a->who,
                       f->kernel->name)
            : qn__object_print_entry(a->who, f, name, symbol.name, params.data, &o->functions, err);
    if (status == QN_OK) {
        o->symbol[o->n_symbols++] = symbol;
        keep_name(o, find_name(o, name), f, name, &params, &args);
    } else {
        o->code.n = n_code;
        o->functions.n = n_functions;
        o->code.failed = o->functions.failed = false;
    }
    qn__text_release(&params);
    qn__text_release(&args);
    return status;
}

qn_status qn_object_add(qn_object *o, qn_context *c, const char *name, const qn_kernel *k, int n,
                        const qn_arg *args, const qn_options *options, qn_error *err)
{
    adding a = {.object = o, .name = name, .who = "qn_object_add"};
    if (!o)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_object_add: object is NULL");
    const qn_ahead_use use = {prepare, take, &a};
    return qn__ahead_make(a.who, c, k, n, args, options, &use, err);
}

/* ---------------------------------------------------------------- files */

size_t qn_object_file(const qn_object *o, void *buffer, size_t buffer_bytes)
{
    qn_text file = {0};
    if (!o || (!buffer && buffer_bytes))
        return 0;
    qn__object_elf(&o->code, o->align, o->symbol, o->n_symbols, &file);
    size_t n = file.failed ? 0 : file.n;
    if (n && buffer_bytes)
        memcpy(buffer, file.data, n < buffer_bytes ? n : buffer_bytes);
    qn__text_release(&file);
    return n;
}

size_t qn_object_header(const qn_object *o, char *buffer, size_t buffer_bytes)
{
    qn_text text = {0};
    if (!o || (!buffer && buffer_bytes))
        return 0;
    uint64_t hash = qn__hash(o->functions.data ? o->functions.data : "", o->functions.n, 0);
    qn__text_add(&text,
                 "/* Made by `quern object`. */\n#ifndef QUERN_KERNELS_%016" PRIX64
                 "\n#define QUERN_KERNELS_%016" PRIX64 "\n\n",
                 hash, hash);
    qn__text_bytes(&text, qn__object_prelude, strlen(qn__object_prelude));
    qn__text_add(&text, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    qn__text_bytes(&text, o->functions.data ? o->functions.data : "", o->functions.n);
    for (int i = 0; i < o->n_names; i++)
        qn__object_print_choice(o->name[i].text, o->name[i].isas, o->name[i].params,
                                o->name[i].args, &text);
    qn__text_add(&text, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    size_t n = text.failed ? 0 : qn__text_out(&text, buffer, buffer_bytes);
    qn__text_release(&text);
    return n;
}
