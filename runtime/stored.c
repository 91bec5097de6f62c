/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.c: versions of kernels as entries of the cache on disk, see stored.h. An entry is found by
 * all that its code depends on: build id, processor or driver, kernel and key, which are known
 * before a code generator is. What a launch must know of the code is written as 64-bit words in a
 * fixed order, and texts among them; reading checks each against kernel and key.
 *
 * Portable code, made ahead of time (runtime/ahead.c), has another key than what a context compiles
 * for its own machine. A context looks for such code when that for its machine is not there.
 */
#include "runtime/stored.h"

#include <stdio.h>
#include <string.h>

enum { ENVIRONMENT_BYTES = 256 };

/* ---------------------------------------------------------------- what a launch must know */

/** Writes numbers to `out`, or reads them from [at, end) when `out` is NULL. */
typedef struct codec {
    qn_text *out;
    const char *at, *end;
    bool is_bad; /* something read was missing or out of range */
} codec;

/** One number in [low, high]. */
static int64_t code_number(codec *c, int64_t value, int64_t low, int64_t high)
{
    if (c->out) {
        qn__text_bytes(c->out, &value, sizeof value);
        return value;
    }
    int64_t number = low;
    if (c->end - c->at >= (ptrdiff_t)sizeof number) {
        memcpy(&number, c->at, sizeof number);
        c->at += sizeof number;
    } else {
        c->is_bad = true;
    }
    c->is_bad |= number < low || number > high;
    return c->is_bad ? low : number;
}

static void code_int(codec *c, int32_t *value, int32_t low, int32_t high)
{
    *value = (int32_t)code_number(c, *value, low, high);
}

static void code_long(codec *c, int64_t *value)
{
    *value = code_number(c, *value, 0, INT64_MAX);
}

static void code_word(codec *c, uint32_t *value)
{
    *value = (uint32_t)code_number(c, *value, 0, UINT32_MAX);
}

/** A text of less than so many bytes, as its length and itself, with zeros up to a whole word. */
static void code_string(codec *c, char *text, size_t capacity)
{
    static const char zeros[sizeof(int64_t)];
    size_t n = (size_t)code_number(c, c->out ? (int64_t)strlen(text) : 0, 0, (int64_t)capacity - 1);
    size_t n_zeros = (sizeof zeros - n % sizeof zeros) % sizeof zeros;
    if (c->out) {
        qn__text_bytes(c->out, text, n);
        qn__text_bytes(c->out, zeros, n_zeros);
        return;
    }
    if ((size_t)(c->end - c->at) < n + n_zeros) {
        c->is_bad = true;
        return;
    }
    c->is_bad |= memchr(c->at, 0, n) != NULL || memcmp(c->at + n, zeros, n_zeros) != 0;
    memcpy(text, c->at, n);
    text[n] = 0;
    c->at += n + n_zeros;
}

static void code_gpu(codec *c, qn_gpu_info *g, int32_t n_words)
{
    code_int(c, &g->n_steps, 1, QN_GPU_STEPS);
    code_int(c, &g->n_words, n_words, n_words);
    code_int(c, &g->words_in_memory, 0, 1);
    code_long(c, &g->scratch_per_unit);
    for (int i = 0; i < g->n_steps; i++) {
        qn_gpu_step *step = &g->step[i];
        for (int d = 0; d < 3; d++)
            code_int(c, &step->threads[d], 1, 1024);
        code_int(c, &step->shared_bytes, 0, INT32_MAX);
        code_int(c, &step->has_block_for_each, 0, 1);
        code_int(c, &step->most_blocks, 0, INT32_MAX);
        code_long(c, &step->units);
        code_long(c, &step->points);
        for (int d = 0; d < QN_MAX_RANK; d++)
            code_long(c, &step->tile[d]);
    }
}

static void code_info(codec *c, const qn_code *f, int32_t kind, qn_blob_info *i)
{
    const int32_t n_dims = f->kernel->n_dims, n_sequential = qn__n_sequential(f->kernel);
    code_int(c, &i->split_dim, -1, n_dims - 1);
    code_word(c, &i->split_merged);
    code_int(c, &i->n_sequential, n_sequential, n_sequential);
    code_long(c, &i->scratch_bytes);
    code_int(c, &i->n_shared_reduces, 0, QN_MAX_OPS);
    code_long(c, &i->chunk);
    code_int(c, &i->chunks_per_thread, 0, INT32_MAX);
    code_int(c, &i->second_dim, -1, n_dims);
    code_long(c, &i->granule);
    code_long(c, &i->second_granule);
    c->is_bad |= i->second_granule > 0 &&
                 (i->second_dim < 0 || i->second_dim >= n_dims); /* else it means nothing */
    code_word(c, &i->entry);
    code_word(c, &i->align);
    if (kind == QN_ENTRY_PTX)
        code_gpu(c, &i->gpu, f->facts.n_slots + 2 * n_sequential + 2);
}

/** How the code came about: what its plan gave up, and which LLVM made it. */
static void code_origin(codec *c, qn_descent *d, qn_maker *by)
{
    code_int(c, &d->rung, QN_RUNG_PLANNED, QN_N_RUNGS - 1);
    code_long(c, &d->units);
    code_string(c, d->steps, sizeof d->steps);
    code_string(c, by->path, sizeof by->path);
    code_long(c, &by->bytes);
    code_long(c, &by->modified_ns);
}

static bool read_info(const qn_code *f, const qn_stored *e, qn_blob_info *out, qn_descent *descent,
                      qn_maker *by)
{
    const qn_stored_part *part = &e->part[QN_STORED_INFO], *code = &e->part[QN_STORED_CODE];
    codec c = {.at = part->data, .end = (const char *)part->data + part->n};
    *out = (qn_blob_info){0};
    *descent = (qn_descent){0};
    *by = (qn_maker){0};
    code_info(&c, f, e->kind, out);
    code_origin(&c, descent, by);
    if (c.is_bad || c.at != c.end)
        return false;
    if (e->kind == QN_ENTRY_PTX)
        return code->n > 0 && ((const char *)code->data)[code->n - 1] == 0;
    return out->entry < code->n && out->align > 0 && out->align <= 4096 &&
           (out->align & (out->align - 1)) == 0;
}

/* ---------------------------------------------------------------- identity */

/** What the code of a family of targets is kept as. */
static int32_t kind_of(const qn_code *f)
{
    static const int32_t kinds[QN_N_TARGETS] = {[QN_TARGET_X86] = QN_ENTRY_X86,
                                                [QN_TARGET_NVPTX] = QN_ENTRY_PTX,
                                                [QN_TARGET_AARCH64] = QN_ENTRY_AARCH64};
    return kinds[f->facts.target->family];
}

/** The parts that an entry is found by. `environment` outlives them. */
static qn_stored identity_of(const qn_code *f, int32_t kind, const char *environment)
{
    qn_stored e = {.kind = kind};
    e.part[QN_STORED_ENVIRONMENT] = (qn_stored_part){environment, strlen(environment)};
    e.part[QN_STORED_KERNEL] = (qn_stored_part){f->kernel->canonical, f->kernel->canonical_bytes};
    const qn_text *key = qn__key_of_code(f);
    e.part[QN_STORED_KEY] = (qn_stored_part){key->data, key->n};
    return e;
}

/** LLVM tunes code for the processor that it runs on, unless the code is portable. PTX depends
 * on no machine of ours. */
static void print_environment(const qn_context *c, const qn_code *f, bool is_portable,
                              char out[ENVIRONMENT_BYTES])
{
    const char *processor = is_portable ? "any processor" : c->processor;
    snprintf(out, ENVIRONMENT_BYTES, kind_of(f) == QN_ENTRY_PTX ? "%s" : "%s, %s", QN_BUILD_ID,
             processor);
}

/** The PTX itself is a part of what a cubin depends on: one kernel and key give another text where
 * LLVM is another one. */
static void print_assembler(qn_assembler by, const qn_text *ptx, char out[ENVIRONMENT_BYTES])
{
    uint8_t bytes[QN_DIGEST_BYTES];
    qn_digest d;
    qn__digest_begin(&d);
    qn__digest_add(&d, ptx->data, ptx->n);
    qn__digest_end(&d, bytes);
    int n = snprintf(out, ENVIRONMENT_BYTES, "%s, sm_%d, driver %d, PTX ", QN_BUILD_ID,
                     by.capability, by.driver);
    for (int i = 0; i < QN_DIGEST_BYTES && n >= 0 && n < ENVIRONMENT_BYTES - 2; i++)
        n += snprintf(out + n, (size_t)(ENVIRONMENT_BYTES - n), "%02x", (unsigned)bytes[i]);
}

bool qn__is_storable(const qn_context *c, const qn_code *f)
{
    return f->loader == QN_LOADER_ARENA && c->compiler.most_units == 0;
}

/* ---------------------------------------------------------------- finding */

void qn__stored_trouble(qn_context *c, qn_disk *disk, const qn_code *f, int result,
                        const qn_error *why)
{
    if (result == QN_DISK_ABSENT ||
        (result == QN_DISK_UNUSABLE && atomic_exchange(&disk->is_told, true)))
        return;
    qn_text line = {0};
    qn__text_add(&line, "cache on disk, %s: %s", result == QN_DISK_REFUSED ? "refused" : "not used",
                 why->message);
    qn__lock(c);
    c->counters.disk_refused += result == QN_DISK_REFUSED;
    if (line.data && !line.failed)
        qn__history_add(&c->history, f->kernel->name, line.data, -1);
    qn__unlock(c);
    if (line.data && !line.failed)
        qn__log(c, QN_LOG_WARNING, line.data);
    qn__text_release(&line);
}

bool qn__stored_look(qn_context *c, qn_disk *disk, const qn_code *f, const qn_stored *wanted,
                     qn_text *bytes, qn_stored *out)
{
    qn_error why = {0};
    if (!disk->folder)
        return false;
    int result = qn__disk_find(disk, wanted, bytes, out, &why);
    if (result != QN_DISK_FOUND)
        qn__stored_trouble(c, disk, f, result, &why);
    return result == QN_DISK_FOUND;
}

/** Whether the LLVM that made an entry has been replaced. Where its file is not, as on another
 * machine, nothing better is known. */
static bool is_outdated(const qn_maker *by)
{
    qn_maker now;
    qn__maker_look(by->path, &now);
    return now.path[0] && (now.bytes != by->bytes || now.modified_ns != by->modified_ns);
}

/** Takes the code of an entry. */
static bool take_code(qn_context *c, qn_disk *disk, const qn_code *f, const qn_stored *e,
                      qn_compiled *out)
{
    const qn_stored_part *plan = &e->part[QN_STORED_PLAN], *code = &e->part[QN_STORED_CODE];
    qn_error why = {0};
    qn_maker by;
    if (!read_info(f, e, &out->info, &out->descent, &by)) {
        qn__fail(&why, QN_ERR_NOT_AVAILABLE, "entry %s: it does not fit to its kernel",
                 qn__entry_name(e).text);
        qn__stored_trouble(c, disk, f, QN_DISK_REFUSED, &why);
        return false;
    }
    if (!disk->is_bundle && is_outdated(&by))
        return false; /* the new code takes its place */
    qn__text_bytes(&out->plan, plan->data, (size_t)plan->n);
    qn__text_bytes(&out->code, code->data, (size_t)code->n);
    if (!out->plan.failed && !out->code.failed)
        return true;
    qn__compiled_release(out);
    return false;
}

static bool find_in(qn_context *c, qn_disk *disk, const qn_code *f, const qn_stored *wanted,
                    qn_compiled *out)
{
    qn_text bytes = {0};
    qn_stored e;
    bool is_found =
        qn__stored_look(c, disk, f, wanted, &bytes, &e) && take_code(c, disk, f, &e, out);
    qn__text_release(&bytes);
    return is_found;
}

static const char *find_code(qn_context *c, const qn_code *f, const qn_stored *wanted,
                             qn_compiled *out)
{
    return find_in(c, &c->bundle, f, wanted, out) ? "from the bundle"
           : find_in(c, &c->disk, f, wanted, out) ? "from the cache on disk"
                                                  : NULL;
}

/** Portable code under one key: the facts of a function with another instruction set or other
 * atomics. */
static const char *find_portable_as(qn_context *c, const qn_code *f, int32_t isa, int32_t atomics,
                                    qn_compiled *out)
{
    char environment[ENVIRONMENT_BYTES];
    qn_facts facts = f->facts; /* its arrays are borrowed */
    qn_text key = {0};
    const char *from = NULL;
    facts.isa = isa;
    facts.target = qn__target_row(isa);
    qn__facts_make_portable(&facts);
    facts.ptx = qn__ptx_of_isa(isa);
    facts.atomics = atomics;
    qn__key_encode(&facts, &key);
    print_environment(c, f, true, environment);
    qn_stored wanted = identity_of(f, kind_of(f), environment);
    wanted.part[QN_STORED_KEY] = (qn_stored_part){key.data, key.n};
    if (!key.failed)
        from = find_code(c, f, &wanted, out);
    qn__text_release(&key);
    return from;
}

/** Portable code that does what a function must do. Code for a lower instruction set runs as well,
 * as does code whose atomics are safe against more than the launch meets. */
static const char *find_portable(qn_context *c, const qn_code *f, qn_compiled *out)
{
    const char *from = NULL;
    int32_t most =
        f->facts.atomics < QN_ATOMICS_OF_THREADS ? f->facts.atomics : QN_ATOMICS_OF_THREADS;
    for (int32_t isa = f->facts.isa; isa && !from; isa = qn__isa_below(isa))
        for (int32_t atomics = most; atomics >= QN_ATOMICS_OF_ALL && !from; atomics--)
            from = find_portable_as(c, f, isa, atomics, out);
    return from;
}

const char *qn__stored_find(qn_context *c, const qn_code *f, qn_compiled *out)
{
    char environment[ENVIRONMENT_BYTES];
    if (!qn__is_storable(c, f) || (c->options.dump & (QN_DUMP_LLVM | QN_DUMP_ASM)))
        return NULL; /* these texts come from a compile */
    if (!c->bundle.folder && !c->disk.folder)
        return NULL;
    print_environment(c, f, false, environment);
    const qn_stored wanted = identity_of(f, kind_of(f), environment);
    const char *from = find_code(c, f, &wanted, out);
    return from || f->tuned_key.n ? from : find_portable(c, f, out);
}

static bool find_cubin(qn_context *c, qn_disk *disk, const qn_code *f, const qn_stored *wanted,
                       qn_text *out)
{
    qn_text bytes = {0};
    qn_stored e;
    bool is_found = qn__stored_look(c, disk, f, wanted, &bytes, &e);
    if (is_found)
        qn__text_bytes(out, e.part[QN_STORED_CODE].data, (size_t)e.part[QN_STORED_CODE].n);
    qn__text_release(&bytes);
    return is_found && !out->failed && out->n > 0;
}

bool qn__stored_find_cubin(qn_context *c, const qn_code *f, qn_assembler by, qn_text *out)
{
    char environment[ENVIRONMENT_BYTES];
    if (!qn__is_storable(c, f))
        return false;
    print_assembler(by, &f->ptx, environment);
    const qn_stored wanted = identity_of(f, QN_ENTRY_CUBIN, environment);
    bool is_found =
        find_cubin(c, &c->bundle, f, &wanted, out) || find_cubin(c, &c->disk, f, &wanted, out);
    qn__lock(c);
    c->counters.disk_hits += is_found;
    qn__unlock(c);
    return is_found;
}

/* ---------------------------------------------------------------- keeping */

bool qn__stored_write_entry(qn_disk *disk, const qn_stored *e, qn_error *why)
{
    qn_text bytes = {0};
    const qn_entry_name name = qn__entry_name(e);
    qn__entry_write(e, &bytes);
    bool is_kept = qn__disk_keep(disk, &name, &bytes, why);
    qn__text_release(&bytes);
    return is_kept;
}

/** Counts what was written into the folder of a context, or notes why it was not. */
static void note_kept(qn_context *c, const qn_code *f, bool is_kept, const qn_error *why)
{
    if (!is_kept)
        qn__stored_trouble(c, &c->disk, f, QN_DISK_UNUSABLE, why);
    qn__lock(c);
    c->counters.disk_writes += is_kept;
    qn__unlock(c);
}

bool qn__stored_write(qn_context *c, qn_disk *disk, const qn_code *f, const qn_text *code,
                      const qn_descent *descent, qn_error *why)
{
    char environment[ENVIRONMENT_BYTES];
    print_environment(c, f, f->facts.is_portable != 0, environment);
    qn_stored e = identity_of(f, kind_of(f), environment);
    qn_text info = {0};
    qn_blob_info copy =
        f->info; /* the codec takes pointers for both directions; writing changes nothing */
    qn_descent steps = *descent;
    qn__lock(c);
    qn_maker by = c->compiler.maker;
    qn__unlock(c);
    codec w = {.out = &info};
    code_info(&w, f, e.kind, &copy);
    code_origin(&w, &steps, &by);
    e.part[QN_STORED_NAME] = (qn_stored_part){f->kernel->name, strlen(f->kernel->name)};
    e.part[QN_STORED_INFO] = (qn_stored_part){info.data, info.n};
    e.part[QN_STORED_PLAN] = (qn_stored_part){f->plan.data, f->plan.n};
    e.part[QN_STORED_CODE] = (qn_stored_part){code->data, code->n};
    bool is_kept = !info.failed && qn__stored_write_entry(disk, &e, why);
    if (info.failed)
        qn__fail(why, QN_ERR_MEMORY, "no memory");
    qn__text_release(&info);
    return is_kept;
}

void qn__stored_keep(qn_context *c, const qn_code *f, const qn_text *code,
                     const qn_descent *descent)
{
    qn_error why = {0};
    if (!c->disk.folder || !qn__is_storable(c, f))
        return;
    bool is_kept = qn__stored_write(c, &c->disk, f, code, descent, &why);
    note_kept(c, f, is_kept, &why);
}

void qn__stored_keep_cubin(qn_context *c, const qn_code *f, qn_assembler by, const qn_text *cubin)
{
    char environment[ENVIRONMENT_BYTES];
    if (!c->disk.folder || !qn__is_storable(c, f))
        return;
    print_assembler(by, &f->ptx, environment);
    qn_stored e = identity_of(f, QN_ENTRY_CUBIN, environment);
    e.part[QN_STORED_NAME] = (qn_stored_part){f->kernel->name, strlen(f->kernel->name)};
    e.part[QN_STORED_CODE] = (qn_stored_part){cubin->data, cubin->n};
    qn_error why = {0};
    bool is_kept = qn__stored_write_entry(&c->disk, &e, &why);
    note_kept(c, f, is_kept, &why);
}
