/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_threads.c: how many iterations are worth a chunk of their own. Waking a helper and waiting for it takes
 * microseconds, so a chunk should hold some times that: counted in work, bytes through accesses and operations, not in
 * iterations, which differ by a factor of 100 between a copy of bytes and a long body.
 */
#include "jit/plan.h"

/* In bytes: about 50 us out of cache, 10 us in cache; an estimate, from x = a + s b of f64 with 32768 iterations. An operation of a vector lane takes as long as
 * 4 bytes; scalar code is four times as slow. */
enum { CHUNK_WORK = 1 << 20, OPERATION_BYTES = 4, SCALAR_FACTOR = 4, LOOP_FACTOR = 8, LEAST_CHUNK = 1024 };

static bool is_access(const qn_inst *x)
{
    return x->op == QN_I_LOAD || x->op == QN_I_STORE || x->op == QN_I_ATOMIC;
}

/** Times an instruction runs for each iteration, about. */
static int64_t times(const qn_kernel *k, uint32_t i)
{
    int64_t n = 1;
    for (i = k->inst[i].parent; i && n < 1 << 12; i = k->inst[i].parent)
        if (k->inst[i].op == QN_I_FOR || k->inst[i].op == QN_I_WHILE)
            n *= LOOP_FACTOR;
    return n;
}

int64_t qn__plan_chunk(const qn_kernel *k, const qn_plan *p)
{
    int64_t work = 1;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (is_access(x))
            work += times(k, i) * qn_dtype_bytes(k->param[x->imm].dtype);
        else if (x->op >= QN_I_PURE && x->type != QN_I64)
            work += times(k, i) * OPERATION_BYTES;
    }
    int64_t n = CHUNK_WORK / (p->lane_dim < 0 ? work * SCALAR_FACTOR : work);
    return n < LEAST_CHUNK ? LEAST_CHUNK : n;
}
