/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.c: a program of a user's: y = a x + y, compiled against the installed headers. Prints the
 * version, one result, and how often code was generated; the exit status says whether the result is
 * right.
 */
#include "quern_version.h"

#include "quern.h"
#include "quern/bytes.h"
#include "quern/dlpack.h"

#include <stdio.h>

static int fail(const qn_error *err)
{
    fprintf(stderr, "%s: %s\n", qn_status_name(err->status), err->message);
    return 1;
}

int main(void)
{
    float x[100], y[100];
    for (int i = 0; i < 100; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    qn_builder *b = qn_builder_new("saxpy", 0);
    qn_param px = qn_view_param(b, "x", QN_F32, 1, QN_READ_ONLY);
    qn_param py = qn_view_param(b, "y", QN_F32, 1, 0);
    qn_val a = qn_scalar_param(b, "a", QN_F32);
    qn_val i = qn_parallel_over(b, py, 0);
    qn_store(b, py, 1, &i,
             qn_add(b, qn_mul(b, a, qn_load(b, px, 1, &i)), qn_load(b, py, 1, &i)));

    qn_error err = {0};
    qn_kernel *k = NULL;
    qn_context *c = NULL;
    qn_view vx, vy;
    int64_t extent = 100;
    if (qn_finish(b, &k, &err) || qn_context_new(NULL, &c, &err) ||
        qn_view_from_bytes("x", x, QN_F32, 1, &extent, NULL, NULL, QN_READ_ONLY, &vx, &err) ||
        qn_view_from_bytes("y", y, QN_F32, 1, &extent, NULL, NULL, 0, &vy, &err))
        return fail(&err);
    qn_arg args[] = {qn_arg_view(&vx), qn_arg_view(&vy), qn_arg_f32(2)};
    if (qn_launch(c, k, 3, args, NULL, &err))
        return fail(&err);
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
    printf("version %s %d, y[10] = %g, compiles %lld\n", QN_VERSION_TEXT,
           qn_version() == QN_VERSION_HEX, (double)y[10], (long long)counters.compiles);
    qn_context_release(c);
    qn_kernel_release(k);
    qn_builder_release(b);
    return y[10] != 21 || qn_version() != QN_VERSION_HEX;
}
