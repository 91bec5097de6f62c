/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts.c: the texts of a compile that its caller asked for: key, plan, schedule, estimate, LLVM IR
 * and assembly.
 */
#include "jit/emit/compilation.h"
#include "jit/schedule/estimate.h"

#include <inttypes.h>
#include <string.h>

void qn__send(const qn_request *r, int what, const void *data, size_t n)
{
    if (r->sink)
        r->sink(r->sink_arg, what, data, n);
}

/* Sends a text and releases it. A text that did not fit into memory is left out: it is for people.
 */
static void send_text(const qn_request *r, int what, qn_text *t)
{
    if (!t->failed && t->data)
        qn__send(r, what, t->data, t->n);
    qn__text_release(t);
}

void qn__send_key(const compilation *c)
{
    if (c->r->texts & QN_DUMP_KEY) {
        qn_text text = {0};
        qn__key_print(&c->facts, c->kernel, &text);
        send_text(c->r, QN_SINK_KEY, &text);
    }
}

void qn__send_plan(const compilation *c)
{
    if (c->r->texts & QN_DUMP_PLAN) {
        qn_text text = {0};
        if (c->planned.is_request)
            qn__schedule_print(c->planned.schedule, &text);
        else if (c->pieces)
            qn__piece_print(c->pieces, &text);
        else if (c->declared)
            qn__text_add(&text, "short loops are straight code\n");
        if (!c->planned.is_request && !c->pieces)
            qn__planned_print(&c->planned, &text);
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

/* Appends the schedule of a kernel as declared. */
static void add_declared(const qn_kernel *k, const qn_facts *f, qn_text *out)
{
    qn_analysis x;
    qn_error err = {0};
    qn_schedule *s = qn__zalloc(1, sizeof *s);
    if (s && qn__analyse_scalar(k, f, &x, &err) == QN_OK) {
        if (qn__schedule_begin(&x, s, &err) == QN_OK)
            qn__schedule_print(s, out);
        else
            add_comment(err.message, out);
        qn__analysis_release(&x);
    }
    qn__free(s);
}

/* Appends the schedule of what is planned. Where a schedule cannot say a plan, the schedule as
 * declared follows the reason. */
static void add_schedule(qn_planned *p, qn_text *out)
{
    qn_error err = {0};
    if (qn__planned_schedule(p, &err) == QN_OK) {
        qn__schedule_print(p->schedule, out);
        return;
    }
    add_comment("no schedule says the plan; this is the kernel as declared", out);
    add_comment(err.message, out);
    add_declared(p->analysis.k, p->analysis.f, out);
}

/* Appends the estimate of a grid. */
static void add_estimate_of_grid(const qn_planned *p, qn_text *out)
{
    qn_grid_estimate made;
    qn_analysis x;
    qn_error err = {0};
    if (qn__analyse_scalar(p->analysis.k, p->analysis.f, &x, &err) != QN_OK) {
        qn__text_add(out, "%s\n", err.message);
        return;
    }
    if (qn__grid_estimate(&x, &p->grid, &made))
        qn__grid_estimate_print(&made, out);
    else
        qn__text_add(out, "there is no estimate for a grid of this form\n");
    qn__analysis_release(&x);
}

/* Appends the estimate of what is planned. */
static void add_estimate(qn_planned *p, qn_text *out)
{
    qn_estimate made;
    qn_error err = {0};
    if (p->analysis.f->target->has_grid)
        add_estimate_of_grid(p, out);
    else if (qn__planned_schedule(p, &err) == QN_OK &&
        qn__schedule_estimate(&p->analysis, p->schedule, &made, &err) == QN_OK)
        qn__estimate_print(&made, &p->analysis.f->machine, out);
    else
        qn__text_add(out, "%s\n", err.message);
}

/* One after the other, as the pieces run. */
static void add_pieces(qn_piece *p, void (*add)(qn_planned *p, qn_text *out), qn_text *out)
{
    for (int n = 0; n < p->n_parts; n++)
        add_pieces(p->part[n], add, out);
    if (p->n_parts == 0)
        add(&p->planned, out);
}

/* A kernel that is planned in pieces, or with straight code for short loops: that as a comment, and
 * then the kernel as declared, which can be given as it is. */
static void add_whole(compilation *c, qn_text *out)
{
    qn_text planned = {0};
    qn_facts facts;
    if (c->pieces)
        add_pieces(c->pieces, add_schedule, &planned);
    else
        add_schedule(&c->planned, &planned);
    add_comment(c->pieces ? "the kernel is planned as several functions, one after the other:"
                          : "the kernel is planned with straight code for short loops:",
                out);
    if (planned.data && !planned.failed)
        add_comment(planned.data, out);
    qn__text_release(&planned);
    const qn_kernel *k = c->declared ? c->declared : c->kernel;
    if (!qn__facts_copy(c->declared ? &c->declared_facts : &c->facts, &facts))
        return;
    qn__collapse(k, &facts);
    add_comment("the kernel as declared, in one:", out);
    add_declared(k, &facts, out);
    qn__facts_release(&facts);
}

/* A text that can be given as the option `schedule`. */
void qn__send_schedule(compilation *c)
{
    qn_text text = {0};
    if (!(c->r->texts & QN_DUMP_SCHEDULE))
        return;
    if (c->pieces || c->declared)
        add_whole(c, &text);
    else
        add_schedule(&c->planned, &text);
    send_text(c->r, QN_SINK_SCHEDULE, &text);
}

void qn__send_estimate(compilation *c)
{
    qn_text text = {0};
    if (!(c->r->texts & QN_DUMP_ESTIMATE))
        return;
    if (c->pieces)
        add_pieces(c->pieces, add_estimate, &text);
    else
        add_estimate(&c->planned, &text);
    send_text(c->r, QN_SINK_ESTIMATE, &text);
}

bool qn__is_large_compile(const compilation *c)
{
    return !c->facts.target->is_text && qn__is_large(&c->emitted);
}

qn_status qn__send_llvm_and_asm(const compilation *c)
{
    if (c->r->texts & QN_DUMP_LLVM) {
        char *text = LLVMPrintModuleToString(c->module);
        qn__send(c->r, QN_SINK_LLVM, text, strlen(text));
        LLVMDisposeMessage(text);
    }
    if (c->facts.target->is_text || !(c->r->texts & QN_DUMP_ASM))
        return QN_OK;
    LLVMModuleRef copy = LLVMCloneModule(c->module); /* emission uses a module up */
    LLVMMemoryBufferRef text = NULL;
    qn_status status = qn__llvm_assembly(c->generator, copy, qn__is_large_compile(c),
                                         &c->diagnostics, &text, &c->r->error);
    if (status == QN_OK) {
        qn__send(c->r, QN_SINK_ASM, LLVMGetBufferStart(text), LLVMGetBufferSize(text));
        LLVMDisposeMemoryBuffer(text);
    }
    LLVMDisposeModule(copy);
    return status;
}
