/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_course.c: how the address of an access moves along a dimension: bytes from iteration to
 * iteration, and what the address of the first one is a multiple of.
 */
#include "jit/schedule/gpu.h"

int64_t qn__gpu_element_bytes(const gpu_planner *s, uint32_t i)
{
    const qn_kernel_parameter *p = &s->k->param[s->k->inst[i].imm];
    return p->record ? p->record->bytes : qn_dtype_bytes(p->dtype);
}

uint64_t qn__gpu_lowest_bit(int64_t n)
{
    uint64_t bits = (uint64_t)n | UINT64_C(1) << 62;
    return bits & (0 - bits);
}

static void add_multiple(gpu_course *c, int64_t bytes)
{
    uint64_t bit = qn__gpu_lowest_bit(bytes);
    c->align = bit < c->align ? bit : c->align;
}

/** Along a dimension of a view whose stride is dynamic nothing may move with x; all that is added
 * is a multiple of the stride. */
static bool add_dynamic(const gpu_planner *s, const qn_affine *a, int x, const qn_fact *stride,
                        int64_t bytes, gpu_course *c)
{
    add_multiple(c, qn__wrap_mul(bytes, stride->multiple));
    for (int n = 0; n < 2; n++)
        if (a->sym[n] && (s->a.value[a->sym[n]].deps >> x & 1))
            return false;
    return a->coef[x] == 0;
}

bool qn__gpu_find_course(const gpu_planner *s, uint32_t i, int x, gpu_course *out)
{
    const qn_param_fact *param = &s->f->param[s->k->inst[i].imm];
    int64_t bytes = qn__gpu_element_bytes(s, i);
    gpu_course c = {.align = UINT64_C(1) << param->align};
    if (param->unit)
        return false;
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const qn_affine *a = &s->a.affine[qn__args(s->k, i)[r]];
        if (dim->n_digits == 0)
            continue;
        const qn_fact *stride = &s->f->digit[dim->first_digit].stride;
        if (dim->n_digits == 1 && stride->kind == QN_FACT_DYNAMIC) {
            if (!add_dynamic(s, a, x, stride, bytes, &c))
                return false;
            continue;
        }
        if (dim->n_digits > 1 || dim->lower.kind != QN_FACT_EXACT)
            return false;
        int64_t by = qn__wrap_mul(stride->value, bytes);
        c.first =
            qn__wrap_add(c.first, qn__wrap_mul(by, qn__wrap_sub(a->constant, dim->lower.value)));
        c.step = qn__wrap_add(c.step, qn__wrap_mul(by, a->coef[x]));
        for (int d = 0; d < s->k->n_dims; d++) {
            int64_t step = d == x ? 0 : qn__wrap_mul(by, a->coef[d]);
            bool is_row = s->p->skew && d == s->p->tall_dim; /* that of a thread's first row */
            if (step &&
                (is_row || qn__trips(s->f, d) == 1)) /* merged into another one, for instance */
                c.first = qn__wrap_add(c.first, qn__wrap_mul(step, s->f->begin[d].value));
            if (step && is_row)
                add_multiple(&c, qn__wrap_mul(step, s->p->tall));
            else if (step && qn__trips(s->f, d) != 1)
                add_multiple(&c, step);
        }
        for (int n = 0; n < 2; n++)
            if (a->sym[n] && (s->a.value[a->sym[n]].deps >> x & 1))
                return false;
            else if (a->sym[n])
                add_multiple(&c, qn__wrap_mul(by, a->sym_coef[n]));
    }
    *out = c;
    return true;
}
