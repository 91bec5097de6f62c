/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.c: the one function that libquern calls here, and the pipeline behind it: text and key
 * -> kernel and facts -> plan -> module -> object -> blob, or PTX. One compile uses one fresh
 * LLVMContext and leaves nothing behind but the target machines and their passes in *thread_state.
 */
#define _GNU_SOURCE
#include "jit/emit/compilation.h"
#include "jit/schedule/from_plan.h"
#include "jit/schedule/search.h"
#include "jit/schedule/transform.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---------------------------------------------------------------- steps */

static void plan_whole(compilation *c)
{
    qn_straight x;
    if (!c->r->is_retry && !c->r->debug_path) {
        if (qn__plan_kernel(c->kernel, &c->facts, &c->planned, &x)) {
            c->declared = c->kernel;
            c->declared_facts = c->facts;
            qn__planned_release(&c->planned);
            qn__straight_take(&x, &c->kernel, &c->facts, &c->planned);
        }
        return;
    }
    qn__collapse(c->kernel, &c->facts);
    qn__planned_make(c->kernel, &c->facts, &c->planned);
    if (c->r->is_retry) {
        qn__step_to_fast(&c->planned.analysis, &c->planned.plan, &c->r->descent);
        qn__planned_forget(&c->planned);
    }
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
    qn_planned *p = &c->planned;
    const char *steps = steps_of(&c->facts, "planned", &n);
    qn_status status;
    if (steps) {
        qn__planned_make(c->kernel, &c->facts, p);
        status = qn__planned_schedule(p, why);
    } else {
        *p = (qn_planned){.schedule = qn__alloc(sizeof *p->schedule)};
        status = p->schedule ? qn__analyse_scalar(c->kernel, &c->facts, &p->analysis, why)
                             : qn__fail(why, QN_ERR_MEMORY, "no memory");
        steps = steps_of(&c->facts, "declared", &n);
        if (status == QN_OK)
            status = steps ? qn__schedule_begin(&p->analysis, p->schedule, why)
                           : qn__schedule_parse(c->facts.schedule, c->facts.schedule_bytes,
                                                p->schedule, why);
    }
    return status || !steps ? status : qn__transform_text(&p->analysis, p->schedule, steps, n, why);
}

/* The schedule that the caller gave, if it is one of the kernel and the facts. */
static qn_status take_schedule(compilation *c)
{
    qn_error why = {0};
    qn_planned *p = &c->planned;
    qn_status status = read_schedule(c, &why);
    p->is_request = true;
    if (status == QN_OK)
        status = qn__schedule_complete(&p->analysis, p->schedule, &why);
    if (status == QN_OK)
        status = qn__schedule_verify(&p->analysis, p->schedule, &why);
    if (status == QN_OK)
        status = qn__planned_read(&p->analysis, p->schedule, &p->grid, &p->block, &why);
    if (status != QN_OK)
        return qn__fail_line(&c->r->error, status, why.line, "option schedule is refused: %s",
                             why.message);
    return QN_OK;
}

/* 1. Text and key -> kernel, facts. */
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
    qn__send_key(c);
    qn__drop_assertions(c->kernel, &c->facts);
    qn__select_sides(c->kernel, &c->facts);
    qn__share_loads(c->kernel, &c->facts);
    return QN_OK;
}

/* 2. How the domain is walked: as the caller says, or as the planner does. */
static qn_status plan(compilation *c)
{
    qn_status status = QN_OK;
    if (c->facts.schedule) {
        qn__collapse(c->kernel, &c->facts);
        status = take_schedule(c);
    } else {
        c->pieces = c->r->is_retry
                        ? NULL
                        : qn__pieces_of(c->kernel, &c->facts, c->r->debug_path == NULL);
        if (!c->pieces)
            plan_whole(c);
    }
    if (status == QN_OK) {
        qn__send_schedule(c);
        qn__send_estimate(c);
    }
    return status;
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
    return qn__llvm_lower(&to, c->kernel, &c->facts, &c->planned, c->symbol, &c->r->error);
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

/* 3. Kernel, facts, plan -> module. */
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
    qn__send_plan(c);
    if (status == QN_OK && r->descent.rung == QN_RUNG_FAST)
        status = qn__llvm_generator(r->thread_state, &c->facts, true, &c->generator, &r->error);
    if (status != QN_OK)
        return status;
    qn__llvm_finish_functions(c->module, c->generator);
    return qn__llvm_verify(c->module, &r->error);
}

/**
 * Appends PTX without neg.s16 and abs.s16: ptxas (CUDA 13) takes their results for numbers whose
 * sign is extended, which that of -32768 is not, and a comparison or remainder then sees 32768. A
 * negation in 32 bits has the right bits, and so has the larger of x and -x. LLVM makes the
 * instructions from selects and shifts too, so that only its output shows all of them.
 */
static void add_ptx(qn_text *out, const char *text, size_t n)
{
    static const struct {
        const char *name, *as; /* operand, then result and operands of `as` */
    } row[] = {
        {"neg.s16 \t", "mov.b16 %.*s, minus; }"},
        {"abs.s16 \t", "max.s16 %.*s, minus, %.*s; }"},
    };
    const char *at = text, *end;
    for (;; at = end + 1) {
        const char *found = NULL;
        int is = 0;
        for (int i = 0; i < 2; i++) {
            const char *here = strstr(at, row[i].name);
            is = here && (!found || here < found) ? i : is;
            found = here && (!found || here < found) ? here : found;
        }
        const char *result = found ? found + strlen(row[is].name) : NULL,
                   *operand = found ? strstr(result, ", ") : NULL;
        end = found ? strchr(result, ';') : NULL;
        if (!operand || !end || operand > end)
            break; /* no instruction that LLVM prints */
        int n_result = (int)(operand - result), n_operand = (int)(end - operand - 2);
        operand += 2;
        qn__text_bytes(out, at, (size_t)(found - at));
        qn__text_add(out,
                     "{ .reg .b32 wide; .reg .b16 minus; cvt.s32.s16 wide, %.*s; neg.s32 wide, "
                     "wide; cvt.u16.u32 minus, wide; ",
                     n_operand, operand);
        qn__text_add(out, row[is].as, n_result, result, n_operand, operand);
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
    qn_status status = qn__llvm_code(c->generator, c->module, qn__is_large_compile(c),
                                     &c->diagnostics, &text, &n, &r->error);
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

/* 4. Module -> object -> blob. The orc loader takes the object, but the same things are refused in
 * it. */
static qn_status emit_code(compilation *c)
{
    qn_request *r = c->r;
    qn_status status = qn__send_llvm_and_asm(c);
    if (c->facts.target->is_text)
        return status == QN_OK ? emit_ptx(c) : status;
    if (status == QN_OK)
        status = qn__llvm_code(c->generator, c->module, qn__is_large_compile(c), &c->diagnostics,
                               &c->object, &c->object_bytes, &r->error);
    if (status == QN_OK)
        status = qn__elf_to_blob(c->object, c->object_bytes, c->facts.target->elf_machine,
                                 c->symbol, &c->code, &r->info.entry, &r->info.align, &r->error);
    return status;
}

/* 5. To the caller, or into the LLJIT. */
static qn_status deliver_code(compilation *c)
{
    qn_request *r = c->r;
    if (r->loader == QN_LOADER_ORC && !c->facts.target->is_text)
        return qn__orc_load(c->object, c->object_bytes, c->symbol, &r->orc_entry, &r->orc_handle,
                            &r->error);
    qn__send(r, QN_SINK_CODE, c->code.data, c->code.n);
    if (r->debug_path && !c->facts.target->is_text)
        qn__send(r, QN_SINK_OBJECT, c->object, c->object_bytes);
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
    qn__planned_release(&c->planned);
    qn__facts_release(&c->facts);
    qn__facts_release(&c->declared_facts);
    qn_kernel_release(c->kernel);
    qn_kernel_release(c->declared);
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
        [QN_TIME_PARSE] = read_request, [QN_TIME_PLAN] = plan,
        [QN_TIME_BUILD] = build_module, [QN_TIME_EMIT] = emit_code,
        [QN_TIME_LOAD] = deliver_code,
    };
    compilation c = {.r = r};
    qn_status status = check_memory(&r->error);
    if (status != QN_OK)
        return status;
    qn__llvm_start();
    qn__llvm_guard_begin(r);
    for (int i = 0; i < QN_N_TIMES && status == QN_OK; i++) {
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
