/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c: the plans of cases as schedules (jit/schedule/from_plan.c): that the schedule of each
 * can be made, verifies, is read again from its text, and, of a processor, has code.
 */
#include "jit/schedule/planned.h"
#include "jit/schedule/shape.h"
#include "tests/run/run_cases.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/** Which plan of a case. */
typedef struct way {
    int isa;
    bool is_dynamic, is_ordered;
} way;

/** Kernel and facts as the code generator has them. */
static qn_status make_facts(const qn_kernel *given, int n, const qn_arg *args,
                            const case_instance *c, way how, qn_kernel **k, qn_facts *f,
                            qn_error *err)
{
    qn_arg_value values[MAX_BINDINGS] = {{0}};
    const qn_options o = {.bytes = sizeof o, .checks = c->checks};
    const qn_policy policy = {.all_dynamic = how.is_dynamic};
    qn_domain domain;
    given = qn__kernel_to_run(given);
    for (int i = 0; i < n; i++)
        values[i] = (qn_arg_value){.layout = args[i].view ? &args[i].view->layout : NULL,
                                   .bits = args[i].bits};
    uint8_t *proved = calloc(given->n_accesses + 1, 1);
    qn_status status = proved ? qn__arg_domain(given, args, false, &domain, err) : QN_ERR_MEMORY;
    if (status == QN_OK && !qn__prove_bounds(given, values, &domain, proved))
        status = QN_ERR_MEMORY;
    if (status == QN_OK)
        status = qn__facts_collect(
            given, &(qn_launched){args, &domain, proved, &o, &policy, how.isa, how.is_ordered}, f,
            err);
    if (status == QN_OK)
        status = qn__kernel_parse_canonical(given->canonical, given->canonical_bytes, k, err);
    free(proved);
    if (status != QN_OK || !*k)
        return status;
    qn__select_sides(*k, f);
    qn__share_loads(*k, f);
    qn__collapse(*k, f);
    return status;
}

/** Whether a text is that of a schedule which verifies and prints as the text. */
static bool is_read_again(const qn_analysis *x, const qn_text *text, qn_error *err)
{
    qn_schedule *again = calloc(1, sizeof *again);
    qn_text other = {0};
    bool is_so = again && !text->failed &&
                 qn__schedule_parse(text->data, text->n, again, err) == QN_OK &&
                 qn__schedule_verify(x, again, err) == QN_OK;
    if (is_so)
        qn__schedule_print(again, &other);
    is_so = is_so && other.n == text->n && memcmp(other.data, text->data, text->n) == 0;
    qn__text_release(&other);
    free(again);
    return is_so;
}

static bool has_schedule(const qn_kernel *given, int n, const qn_arg *args, const case_instance *c,
                         way how)
{
    qn_error err = {0};
    qn_kernel *k = NULL;
    qn_facts f = {0};
    qn_planned p = {0};
    qn_analysis x = {0};
    qn_block block;
    qn_text text = {0};
    qn_status status = make_facts(given, n, args, c, how, &k, &f, &err);
    bool is_right = status == QN_OK && qn__analyse_scalar(k, &f, &x, &err) == QN_OK;
    if (is_right) {
        qn__planned_make(k, &f, &p);
        is_right = qn__planned_schedule(&p, &err) == QN_OK;
        if (is_right)
            qn__schedule_print(p.schedule, &text);
        is_right = is_right && is_read_again(&x, &text, &err) &&
                   (f.target->has_grid || qn__block_of(&x, p.schedule, &block, &err) == QN_OK);
    }
    if (!is_right) {
        qn_text plan = {0};
        if (x.k)
            qn__planned_print(&p, &plan);
        tap_note("isa %d%s%s: %s\n%s\n%s", how.isa, how.is_dynamic ? ", dynamic" : "",
                 how.is_ordered ? ", in order" : "", err.message, plan.data ? plan.data : "",
                 text.data ? text.data : "");
        qn__text_release(&plan);
    }
    qn__text_release(&text);
    qn__planned_release(&p);
    qn__analysis_release(&x);
    qn__facts_release(&f);
    qn_kernel_release(k);
    return is_right;
}

bool case_has_schedules(const qn_kernel *k, int n, const qn_arg *args, const case_instance *c)
{
    static const way ways[] = {
        {QN_ISA_V4, false, false}, {QN_ISA_V3, false, false},  {QN_ISA_SM90, false, false},
        {QN_ISA_V4, true, false},  {QN_ISA_SM70, true, false}, {QN_ISA_V4, false, true},
        {QN_ISA_NEON, false, false},
    };
    bool is_right = true;
    for (int i = 0; i < n; i++)
        if (args[i].view && qn__layout_tables(&args[i].view->layout))
            return true; /* the kernel that runs is another one */
    for (size_t w = 0; w < sizeof ways / sizeof ways[0] && is_right; w++)
        is_right = has_schedule(k, n, args, c, ways[w]);
    return is_right;
}
