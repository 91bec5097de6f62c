/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_tree.c: interprets random schedules as trees (tests/unit/tree_run.h). A schedule
 * that verifies must give the elements of the interpreter, whether code is generated for it or not.
 * So the forms that have no code yet are tested, and those of a GPU without one.
 */
#include "differential_draw.h"
#include "tests/unit/tree_run.h"

#include <inttypes.h>
#include <string.h>

/** What a run did that no right schedule of a kernel without faults does, as an error. */
static qn_status judge(const tree_run_report *n, const qn_fault *fault, qn_error *err)
{
    if (fault->status != QN_OK)
        return qn__fail(err, QN_ERR_INTERNAL, "tree_run: a fault, %s",
                        qn_status_name((int)fault->status));
    if (!n->missing && !n->repeated && !n->outside && !n->unfilled)
        return QN_OK;
    return qn__fail(err, QN_ERR_INTERNAL,
                    "tree_run: %" PRId64 " iterations missing, %" PRId64 " repeated, %" PRId64
                    " outside, %" PRId64 " elements not filled",
                    n->missing, n->repeated, n->outside, n->unfilled);
}

qn_status run_tree(runner *r, const test_case *t, const qn_kernel *k, const way *w, qn_error *err)
{
    drawing d;
    qn_fault fault;
    tree_run_report report;
    qn_status status = QN_ERR_MEMORY;
    qn__fault_clear(&fault, &qn__never);
    if (open_drawing(&d, r, t, k, w))
        status = qn__schedule_parse(w->schedule, strlen(w->schedule), d.now, err);
    if (status == QN_OK)
        status = qn__schedule_complete(&d.x, d.now, err);
    if (status == QN_OK)
        status = qn__schedule_verify(&d.x, d.now, err);
    if (status == QN_OK) {
        uint32_t host = qn__fpu_enter();
        status = tree_run(&d.x, d.now, d.launch.n, d.launch.args, &d.launch.domain,
                          d.launch.options.checks, &fault, &report, err);
        qn__fpu_leave(host);
        if (status == QN_OK)
            status = judge(&report, &fault, err);
    }
    close_drawing(&d);
    return status;
}
