/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.c: the one function that libquern calls here, and the pipeline behind it: text and key
 * -> kernel and facts -> plan -> module -> object -> blob, or PTX. One compile uses one fresh
 * LLVMContext and leaves nothing behind but the target machines and their passes in *thread_state.
 */
#define _GNU_SOURCE
#include "jit/lower/parts.h"
#include "jit/schedule/estimate.h"
#include "jit/schedule/from_plan.h"
#include "jit/schedule/piece.h"
#include "jit/schedule/shape.h"
#include "jit/schedule/transform.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* One compile in progress. All of it is released by compile(). */
typedef struct compilation {
    qn_request *r;
    qn_kernel *kernel;
    qn_facts facts;
    qn_plan plan;
    bool is_request;        /* the caller gave the schedule */
    qn_schedule *schedule;  /* it, verified */
    qn_scheduled scheduled; /* what the schedule is of */
    qn_block block;         /* of the schedule */
    qn_piece *pieces; /* NULL: the kernel is one function under the plan */
    char symbol[QN_DEBUG_NAME_BYTES];
    qn_debug *debug; /* NULL: no lines for debuggers */
    qn_generator *generator; /* of the thread */
    qn_diagnostics diagnostics;
    qn_emitted emitted;
    LLVMContextRef context;
    LLVMModuleRef module;
    const char *object; /* of the machine */
    size_t object_bytes;
    qn_text code;
} compilation;

enum { TIME_PARSE = 0, TIME_BUILD = 1, TIME_EMIT = 2, TIME_LOAD = 3 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---------------------------------------------------------------- texts */

static void send(const qn_request *r, int what, const void *data, size_t n)
{
    if (r->sink)
        r->sink(r->sink_arg, what, data, n);
}

/* Sends a text and releases it. A text that did not fit into memory is left out: it is for people.
 */
static void send_text(const qn_request *r, int what, qn_text *t)
{
    if (!t->failed && t->data)
        send(r, what, t->data, t->n);
    qn__text_release(t);
}

static void send_key(const compilation *c)
{
    if (c->r->texts & QN_DUMP_KEY) {
        qn_text text = {0};
        qn__key_print(&c->facts, c->kernel, &text);
        send_text(c->r, QN_SINK_KEY, &text);
    }
}

static void send_plan(const compilation *c)
{
    if (c->r->texts & QN_DUMP_PLAN) {
        qn_text text = {0};
        if (c->is_request)
            qn__schedule_print(c->schedule, &text);
        else if (c->pieces)
            qn__piece_print(c->pieces, &text);
        else
            qn__plan_print(&c->plan, c->kernel, &text);
        if (!c->facts.target->is_text)
            qn__text_add(&text, "code %" PRId64 " units, %s\n", c->r->descent.units,
                         qn__rung_name(c->r->descent.rung));
        send_text(c->r, QN_SINK_PLAN, &text);
    }
}

/* Appends lines as comments of a schedule. */
static void add_comment(const char *lines, qn_text *out)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        qn__text_add(out, "# %.*s\n", (int)n, lines);
        lines += n + (lines[n] != 0);
    }
}

/* Appends the schedule of a plan, or, without a plan, that of the kernel as declared. Where a
 * schedule cannot say a plan, the schedule as declared follows the reason. */
static void add_schedule(const qn_kernel *k, const qn_facts *f, const qn_plan *p, qn_text *out)
{
    qn_scheduled x;
    qn_error err = {0};
    qn_schedule *s = qn__zalloc(1, sizeof *s);
    if (s && qn__scheduled_begin(k, f, &x, &err) == QN_OK) {
        bool is_said = p && qn__schedule_of_plan(&x, p, s, &err) == QN_OK;
        if (p && !is_said) {
            add_comment("no schedule says the plan; this is the kernel as declared", out);
            add_comment(err.message, out);
        }
        if (is_said || qn__schedule_begin(&x, s, &err) == QN_OK)
            qn__schedule_print(s, out);
        else
            add_comment(err.message, out);
        qn__scheduled_end(&x);
    }
    qn__free(s);
}

/* One after the other, as the pieces run. */
static void add_pieces(const qn_piece *p, qn_text *out)
{
    for (int n = 0; n < 2 && p->part[0]; n++)
        add_pieces(p->part[n], out);
    if (!p->part[0])
        add_schedule(p->kernel, &p->facts, &p->plan, out);
}

/* A kernel that is planned in pieces: these as comments, then the whole as declared, which can be
 * given as it is. */
static void add_whole(const compilation *c, qn_text *out)
{
    qn_text pieces = {0};
    qn_facts facts;
    add_pieces(c->pieces, &pieces);
    add_comment("the kernel is planned as several functions, one after the other:", out);
    if (pieces.data && !pieces.failed)
        add_comment(pieces.data, out);
    qn__text_release(&pieces);
    if (!qn__facts_copy(&c->facts, &facts))
        return;
    qn__collapse(c->kernel, &facts);
    add_comment("the kernel as declared, in one:", out);
    add_schedule(c->kernel, &facts, NULL, out);
    qn__facts_release(&facts);
}

/* A text that can be given as the option `schedule`. */
static void send_schedule(const compilation *c)
{
    qn_text text = {0};
    if (!(c->r->texts & QN_DUMP_SCHEDULE))
        return;
    if (c->schedule)
        qn__schedule_print(c->schedule, &text);
    else if (c->pieces)
        add_whole(c, &text);
    else
        add_schedule(c->kernel, &c->facts, &c->plan, &text);
    send_text(c->r, QN_SINK_SCHEDULE, &text);
}

/* Appends the estimate of a schedule, or of a plan as one. */
static void add_estimate(const qn_scheduled *x, const qn_schedule *s, qn_text *out)
{
    qn_estimate made;
    qn_error err = {0};
    if (qn__schedule_estimate(x, s, &made, &err) == QN_OK)
        qn__estimate_print(&made, &x->f->machine, out);
    else
        qn__text_add(out, "%s\n", err.message);
}

static void add_estimate_of_plan(const qn_kernel *k, const qn_facts *f, const qn_plan *p,
                                 qn_text *out)
{
    qn_scheduled x;
    qn_error err = {0};
    qn_schedule *s = qn__zalloc(1, sizeof *s);
    if (s && qn__scheduled_begin(k, f, &x, &err) == QN_OK) {
        if (qn__schedule_of_plan(&x, p, s, &err) == QN_OK)
            add_estimate(&x, s, out);
        else
            qn__text_add(out, "%s\n", err.message);
        qn__scheduled_end(&x);
    }
    qn__free(s);
}

/* One after the other, as the pieces run. */
static void add_estimates(const qn_piece *p, qn_text *out)
{
    for (int n = 0; n < 2 && p->part[0]; n++)
        add_estimates(p->part[n], out);
    if (!p->part[0])
        add_estimate_of_plan(p->kernel, &p->facts, &p->plan, out);
}

static void send_estimate(const compilation *c)
{
    qn_text text = {0};
    if (!(c->r->texts & QN_DUMP_ESTIMATE))
        return;
    if (c->schedule)
        add_estimate(&c->scheduled, c->schedule, &text);
    else if (c->pieces)
        add_estimates(c->pieces, &text);
    else
        add_estimate_of_plan(c->kernel, &c->facts, &c->plan, &text);
    send_text(c->r, QN_SINK_ESTIMATE, &text);
}

static bool is_large(const compilation *c)
{
    return !c->facts.target->is_text && qn__is_large(&c->emitted);
}

static qn_status send_llvm_and_asm(const compilation *c)
{
    if (c->r->texts & QN_DUMP_LLVM) {
        char *text = LLVMPrintModuleToString(c->module);
        send(c->r, QN_SINK_LLVM, text, strlen(text));
        LLVMDisposeMessage(text);
    }
    if (c->facts.target->is_text || !(c->r->texts & QN_DUMP_ASM))
        return QN_OK;
    LLVMModuleRef copy = LLVMCloneModule(c->module); /* emission uses a module up */
    LLVMMemoryBufferRef text = NULL;
    qn_status status =
        qn__llvm_assembly(c->generator, copy, is_large(c), &c->diagnostics, &text, &c->r->error);
    if (status == QN_OK) {
        send(c->r, QN_SINK_ASM, LLVMGetBufferStart(text), LLVMGetBufferSize(text));
        LLVMDisposeMemoryBuffer(text);
    }
    LLVMDisposeModule(copy);
    return status;
}

/* ---------------------------------------------------------------- steps */

static void plan_whole(compilation *c)
{
    qn__collapse(c->kernel, &c->facts);
    qn__plan_make(c->kernel, &c->facts, &c->plan);
    if (c->r->is_retry)
        qn__step_to_fast(c->kernel, &c->facts, &c->plan, &c->r->descent);
}

/* What stands between the braces of WORD "{ ... }"; NULL: the text is another one. */
static const char *steps_of(const qn_facts *f, const char *word, size_t *n)
{
    static const char blank[] = " \t\n\r";
    const char *at = f->schedule + strspn(f->schedule, blank),
               *end = f->schedule + f->schedule_bytes;
    if (strncmp(at, word, strlen(word)) != 0)
        return NULL;
    at += strlen(word);
    at += strspn(at, blank);
    while (end > at && strchr(blank, end[-1]))
        end--;
    if (end - at < 2 || *at != '{' || end[-1] != '}')
        return NULL;
    *n = (size_t)(end - at) - 2;
    return at + 1;
}

/* Reads a whole schedule, or takes steps on that of the plan or of the kernel as declared. */
static qn_status read_schedule(compilation *c, qn_error *why)
{
    size_t n = 0;
    const char *on_plan = steps_of(&c->facts, "planned", &n),
               *on_kernel = on_plan ? NULL : steps_of(&c->facts, "declared", &n);
    if (!on_plan && !on_kernel)
        return qn__schedule_parse(c->facts.schedule, c->facts.schedule_bytes, c->schedule, why);
    qn_status status;
    if (on_plan) {
        qn__plan_make(c->kernel, &c->facts, &c->plan);
        status = qn__schedule_of_plan(&c->scheduled, &c->plan, c->schedule, why);
    } else {
        status = qn__schedule_begin(&c->scheduled, c->schedule, why);
    }
    return status ? status
                  : qn__transform_text(&c->scheduled, c->schedule, on_plan ? on_plan : on_kernel,
                                       n, why);
}

/* The schedule that the caller gave, if it is one of the kernel and the facts. */
static qn_status take_schedule(compilation *c)
{
    qn_error why = {0};
    c->is_request = true;
    c->schedule = qn__alloc(sizeof *c->schedule);
    if (!c->schedule)
        return qn__fail(&c->r->error, QN_ERR_MEMORY, "qn_llvm_provider: no memory for a schedule");
    qn_status status = qn__scheduled_begin(c->kernel, &c->facts, &c->scheduled, &why);
    if (status == QN_OK)
        status = read_schedule(c, &why);
    if (status == QN_OK)
        status = qn__schedule_complete(&c->scheduled, c->schedule, &why);
    if (status == QN_OK)
        status = qn__schedule_verify(&c->scheduled, c->schedule, &why);
    if (status == QN_OK)
        status = qn__plan_of_schedule(&c->scheduled, c->schedule, &c->plan, &why);
    if (status == QN_OK && !c->facts.target->has_grid)
        status = qn__block_of(&c->scheduled, c->schedule, &c->block, &why);
    if (status != QN_OK)
        return qn__fail_line(&c->r->error, status, why.line, "option schedule is refused: %s",
                             why.message);
    return QN_OK;
}

/* How the domain is walked: as the caller says, or as the planner does. */
static qn_status plan(compilation *c)
{
    qn_status status = QN_OK;
    if (c->facts.schedule) {
        qn__collapse(c->kernel, &c->facts);
        status = take_schedule(c);
    } else {
        c->pieces = c->r->is_retry ? NULL : qn__pieces_of(c->kernel, &c->facts);
        if (!c->pieces)
            plan_whole(c);
    }
    if (status == QN_OK) {
        send_schedule(c);
        send_estimate(c);
    }
    return status;
}

/* 1. Text and key -> kernel, facts, plan. */
static qn_status read_request(compilation *c)
{
    qn_request *r = c->r;
    qn_status status =
        qn__kernel_parse_canonical(r->kernel, r->kernel_bytes, &c->kernel, &r->error);
    if (status == QN_OK)
        status = qn__key_decode(r->key, r->key_bytes, &c->facts, &r->error);
    if (status != QN_OK)
        return status;
    if (c->facts.n_params != c->kernel->n_params || c->facts.n_dims != c->kernel->n_dims ||
        c->facts.n_accesses != c->kernel->n_accesses)
        return qn__fail(
            &r->error, QN_ERR_INTERNAL,
            "qn_llvm_provider: key of %d parameters, %d dimensions, %u accesses for a kernel "
            "of %d, %d, %u",
            c->facts.n_params, c->facts.n_dims, c->facts.n_accesses, c->kernel->n_params,
            c->kernel->n_dims, c->kernel->n_accesses);
    send_key(c);
    qn__drop_assertions(c->kernel, &c->facts);
    qn__share_loads(c->kernel, &c->facts);
    return plan(c);
}

static qn_lowering lowering_of(compilation *c)
{
    qn_request *r = c->r;
    return (qn_lowering){.module = c->module,
                         .hooks = c->generator->hooks,
                         .debug = c->debug,
                         .most = r->most_units,
                         .info = &r->info,
                         .descent = &r->descent,
                         .emitted = &c->emitted};
}

/* One function under the plan. */
static qn_status lower_whole(compilation *c)
{
    const qn_lowering to = lowering_of(c);
    bool has_grid = c->facts.target->has_grid; /* the plan says all of the schedule */
    const qn_lowered x = {.k = c->kernel,
                          .f = &c->facts,
                          .plan = &c->plan,
                          .is_request = c->is_request,
                          .schedule = has_grid ? NULL : c->schedule,
                          .scheduled = &c->scheduled,
                          .block = &c->block};
    return qn__llvm_lower(&to, &x, c->symbol, &c->r->error);
}

/* Several functions, or, if these are too large, one. */
static qn_status lower_pieces(compilation *c)
{
    qn_request *r = c->r;
    const qn_lowering to = lowering_of(c);
    qn_status status = qn__llvm_lower_piece(&to, c->pieces, c->symbol, &r->error);
    if (status != QN_ERR_LIMIT)
        return status;
    memset(&r->error, 0, sizeof r->error);
    memset(&r->info, 0, sizeof r->info);
    memset(&r->descent, 0, sizeof r->descent);
    for (LLVMValueRef f = LLVMGetLastFunction(c->module), before; f;
         f = before) { /* those that call others stand behind them */
        before = LLVMGetPreviousFunction(f);
        if (!LLVMIsDeclaration(f))
            LLVMDeleteFunction(f);
    }
    qn__piece_release(c->pieces);
    c->pieces = NULL;
    plan_whole(c);
    return status;
}

/* 2. Kernel, facts, plan -> module. */
static qn_status build_module(compilation *c)
{
    qn_request *r = c->r;
    qn_status status =
        qn__llvm_generator(r->thread_state, &c->facts, false, &c->generator, &r->error);
    if (status != QN_OK)
        return status;
    if (c->facts.target->is_text)
        snprintf(c->symbol, sizeof c->symbol, QN_GPU_ENTRY);
    else if (r->loader == QN_LOADER_ORC)
        qn__orc_symbol(c->symbol, sizeof c->symbol);
    else
        snprintf(c->symbol, sizeof c->symbol, "%s", r->debug_name ? r->debug_name : "quern_kernel");
    c->context = qn__llvm_context(&c->diagnostics, r->texts & (QN_DUMP_LLVM | QN_DUMP_ASM));
    c->module = qn__llvm_module(c->context, c->generator);
    if (r->debug_path && !c->facts.target->is_text)
        c->debug = qn__debug_begin(c->module, c->kernel, r->debug_path, c->symbol);
    status = c->pieces ? lower_pieces(c) : QN_ERR_LIMIT;
    if (status == QN_ERR_LIMIT)
        status = lower_whole(c);
    qn__debug_end(c->debug);
    send_plan(c);
    if (status == QN_OK && r->descent.rung == QN_RUNG_FAST)
        status = qn__llvm_generator(r->thread_state, &c->facts, true, &c->generator, &r->error);
    if (status != QN_OK)
        return status;
    qn__llvm_finish_functions(c->module, c->generator);
    return qn__llvm_verify(c->module, &r->error);
}

/**
 * Appends PTX in which no abs.s16 is left: ptxas (CUDA 13) takes its result for a number whose sign
 * is extended, which that of -32768 is not, and a comparison then sees 32768. The larger of x and
 * -x has the right bits. LLVM makes the instruction from selects and shifts too, so that only its
 * output shows all of them.
 */
static void add_ptx(qn_text *out, const char *text, size_t n)
{
    static const char name[] = "abs.s16 \t";
    const char *at = text;
    for (const char *found; (found = strstr(at, name)) != NULL;) {
        const char *result = found + sizeof name - 1, *operand = strstr(result, ", "),
                   *end = strchr(result, ';');
        if (!operand || !end || operand > end)
            break; /* no instruction that LLVM prints */
        int n_result = (int)(operand - result), n_operand = (int)(end - operand - 2);
        operand += 2;
        qn__text_bytes(out, at, (size_t)(found - at));
        qn__text_add(out, "{ .reg .b16 minus; neg.s16 minus, %.*s; max.s16 %.*s, %.*s, minus; }",
                     n_operand, operand, n_result, result, n_operand, operand);
        at = end + 1;
    }
    qn__text_bytes(out, at, n - (size_t)(at - text));
}

/* PTX is a text; what it would call and does not hold is an error. */
static qn_status emit_ptx(compilation *c)
{
    static const char called[] = ".extern .func";
    qn_request *r = c->r;
    const char *text;
    size_t n;
    qn_status status =
        qn__llvm_code(c->generator, c->module, is_large(c), &c->diagnostics, &text, &n, &r->error);
    if (status != QN_OK)
        return status;
    add_ptx(&c->code, text, n);
    qn__text_bytes(&c->code, "", 1);
    if (c->code.failed)
        return qn__fail(&r->error, QN_ERR_MEMORY, "qn_llvm_provider: no memory for the PTX");
    const char *found = strstr(c->code.data, called);
    return found ? qn__fail(&r->error, QN_ERR_INTERNAL, "qn_llvm_provider: the PTX calls %.80s",
                            found)
                 : QN_OK;
}

/* 3. Module -> object -> blob. The orc loader takes the object, but the same things are refused in
 * it. */
static qn_status emit_code(compilation *c)
{
    qn_request *r = c->r;
    qn_status status = send_llvm_and_asm(c);
    if (c->facts.target->is_text)
        return status == QN_OK ? emit_ptx(c) : status;
    if (status == QN_OK)
        status = qn__llvm_code(c->generator, c->module, is_large(c), &c->diagnostics, &c->object,
                               &c->object_bytes, &r->error);
    if (status == QN_OK)
        status = qn__elf_to_blob(c->object, c->object_bytes, c->facts.target->elf_machine,
                                 c->symbol, &c->code, &r->info.entry, &r->info.align, &r->error);
    return status;
}

/* 4. To the caller, or into the LLJIT. */
static qn_status deliver_code(compilation *c)
{
    qn_request *r = c->r;
    if (r->loader == QN_LOADER_ORC && !c->facts.target->is_text)
        return qn__orc_load(c->object, c->object_bytes, c->symbol, &r->orc_entry, &r->orc_handle,
                            &r->error);
    send(r, QN_SINK_CODE, c->code.data, c->code.n);
    if (r->debug_path && !c->facts.target->is_text)
        send(r, QN_SINK_OBJECT, c->object, c->object_bytes);
    return QN_OK;
}

static void release(compilation *c)
{
    qn__text_release(&c->code);
    if (c->module)
        LLVMDisposeModule(c->module);
    if (c->context)
        LLVMContextDispose(c->context);
    qn__piece_release(c->pieces);
    qn__free(c->schedule);
    qn__scheduled_end(&c->scheduled);
    qn__facts_release(&c->facts);
    qn_kernel_release(c->kernel);
}

/* Whether the memory that a compile may need can be had: LLVM ends the process where it cannot. */
static qn_status check_memory(qn_error *err)
{
    void *all = mmap(NULL, (size_t)QN_BUDGET_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return qn__fail(err, QN_ERR_MEMORY,
                        "qn_llvm_provider: no room for the %" PRId64 " MB that a compile may need",
                        QN_BUDGET_BYTES >> 20);
    munmap(all, (size_t)QN_BUDGET_BYTES);
    return QN_OK;
}

/* The pipeline. */
static qn_status compile(qn_request *r)
{
    static qn_status (*const step[])(compilation *) = {
        [TIME_PARSE] = read_request,
        [TIME_BUILD] = build_module,
        [TIME_EMIT] = emit_code,
        [TIME_LOAD] = deliver_code,
    };
    compilation c = {.r = r};
    qn_status status = check_memory(&r->error);
    if (status != QN_OK)
        return status;
    qn__llvm_start();
    qn__llvm_guard_begin(r);
    for (int i = 0; i <= TIME_LOAD && status == QN_OK; i++) {
        double start = now_ms();
        status = step[i](&c);
        r->milliseconds[i] = now_ms() - start;
    }
    release(&c);
    qn__llvm_guard_end();
    return status;
}

/* ---------------------------------------------------------------- the boundary */

static qn_status check_compile(qn_request *r)
{
    if (!r->kernel || !r->key || !r->thread_state || !r->fatal ||
        (!r->sink && r->loader != QN_LOADER_ORC))
        return qn__fail(&r->error, QN_ERR_ARGUMENT, "qn_llvm_provider: incomplete request");
    if (r->loader != QN_LOADER_ARENA && r->loader != QN_LOADER_ORC)
        return qn__fail(&r->error, QN_ERR_ARGUMENT, "qn_llvm_provider: unknown loader %d",
                        r->loader);
    return QN_OK;
}

static qn_status check_versions(qn_request *r)
{
    if (!r->build_id || strcmp(r->build_id, QN_BUILD_ID) != 0)
        return qn__fail(&r->error, QN_ERR_VERSION, "qn_llvm_provider: built as %s, called as %s",
                        QN_BUILD_ID, r->build_id ? r->build_id : "(none)");
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    if (major != LLVM_VERSION_MAJOR)
        return qn__fail(&r->error, QN_ERR_PROVIDER,
                        "qn_llvm_provider: needs LLVM %d, found %u.%u.%u", LLVM_VERSION_MAJOR,
                        major, minor, patch);
    return QN_OK;
}

/** The file that LLVM was loaded from: a library of its own, or this one if LLVM is linked in. NULL
 * if the loader does not say. */
static const char *path_of_llvm(void)
{
    void (*function)(unsigned *, unsigned *, unsigned *) = LLVMGetVersion;
    const void *address;
    Dl_info info = {0};
    memcpy(&address, &function, sizeof address); /* ISO C has no cast between the two */
    return dladdr(address, &info) ? info.dli_fname : NULL;
}

static qn_status serve(qn_request *r)
{
    qn_status status = check_versions(r);
    if (status != QN_OK)
        return status;
    switch (r->kind) {
    case QN_REQUEST_START:
        qn__llvm_start();
        qn__exit_begin();
        r->llvm_path = path_of_llvm();
        return QN_OK;
    case QN_REQUEST_COMPILE:
        status = check_compile(r);
        return status == QN_OK ? compile(r) : status;
    case QN_REQUEST_FREE:
        qn__orc_free(r->orc_handle);
        r->orc_handle = NULL;
        return QN_OK;
    case QN_REQUEST_THREAD_END:
        if (r->thread_state)
            qn__llvm_thread_end(r->thread_state);
        return QN_OK;
    default:
        return qn__fail(&r->error, QN_ERR_ARGUMENT, "qn_llvm_provider: unknown request %d",
                        r->kind);
    }
}

QN_API int qn_llvm_provider(qn_request *r);

int qn_llvm_provider(qn_request *r)
{
    if (!r)
        return QN_ERR_ARGUMENT;
    if (r->bytes != sizeof *r) /* its fields are not where we would write them */
        return QN_ERR_VERSION;
    memset(&r->error, 0, sizeof r->error);
    if (!qn__exit_enter())
        return (int)qn__fail(&r->error, QN_ERR_BUSY, "qn_llvm_provider: the process ends");
    qn_status status = serve(r);
    qn__exit_leave();
    return (int)status;
}
