/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_guard.c: ops and casts on single values, whatever the host has set as its floating-point
 * environment. The functions of eval.c rely on the default one. They stand in another file, so that
 * no compiler moves them across the guard.
 */
#include "ir/fpu.h"
#include "ir/ir.h"

uint64_t qn__eval_op(int op, int type, uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t host = qn__fpu_enter();
    uint64_t value = qn__raw_op(op, type, a, b, c);
    qn__fpu_leave(host);
    return value;
}

uint64_t qn__eval_cast(int to, int from, uint64_t bits)
{
    uint32_t host = qn__fpu_enter();
    uint64_t value = qn__raw_cast(to, from, bits);
    qn__fpu_leave(host);
    return value;
}

uint64_t qn_convert_value(int to, int from, uint64_t bits)
{
    if (!qn__dtype_class(to) || !qn__dtype_class(from))
        return 0;
    return qn__eval_cast(to, from, qn__canonical(from, bits));
}
