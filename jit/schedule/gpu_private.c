/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_private.c: views whose atomic updates a block collects in a copy of its own, in shared
 * memory, and adds to the view at its end (privatization): a histogram whose bins many iterations
 * meet in. Blocks are few then, and each takes many units of work. A view whose extents the launch
 * knows has room of a fixed size, and the code tests whether its elements fit.
 */
#include "jit/schedule/gpu.h"

/** Blocks of a multiprocessor; updates of a block for each element that it adds at its end; shared
 * memory of a block for all copies, of that which blocks get. */
enum { BLOCKS_EACH = 8, LEAST_UPDATES = 4, PART_OF_SHARED = 2 };

/** From the first element of a view to its last one, gaps included: so many elements; -1: the
 * launch knows; 0: no copy is made of this view, or of one with more than `most`. */
static int64_t span_of(const qn_kernel *k, const qn_facts *f, int param, int64_t most)
{
    int64_t span = 1;
    bool is_known = true;
    for (int r = 0; r < k->param[param].rank; r++) {
        const qn_dim_fact *d = &f->param[param].dim[r];
        const qn_fact none = {0}, *stride = d->n_digits ? &f->digit[d->first_digit].stride : &none;
        const bool is_exact = d->extent.kind == QN_FACT_EXACT && stride->kind == QN_FACT_EXACT;
        if (d->n_digits > 1 || (d->extent.kind == QN_FACT_EXACT && d->extent.value < 1) ||
            (stride->kind == QN_FACT_EXACT && stride->value < 0))
            return 0;
        is_known &= is_exact;
        if (is_exact && (d->extent.value > most || stride->value > most ||
                         (span += (d->extent.value - 1) * stride->value) > most))
            return 0;
    }
    return f->param[param].unit ? 0 : is_known ? span : -1;
}

/** Whether an update may be collected: nobody reads what was there. Sums of floats have any order,
 * and one of a block's part is one of them. */
static bool may_be_collected(const gpu_planner *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    const int kind = qn__dtype_class(x->type);
    const int64_t bytes = qn_dtype_bytes(x->type);
    return x->op == QN_I_ATOMIC && !qn__is_update(x) && x->sub < QN_COMBINE_EXCHANGE &&
           (kind == QN_CLASS_S || kind == QN_CLASS_U ||
            (kind == QN_CLASS_F && x->sub == QN_COMBINE_SUM)) &&
           (bytes == 4 || bytes == 8) && !s->k->param[x->imm].record && !qn__is_used(s->k, i);
}

/** The sites of a view, if all its accesses are updates that may be collected, by one reducer. */
static uint64_t sites_of(const gpu_planner *s, int param)
{
    const qn_kernel *k = s->k;
    uint64_t found = 0;
    int combine = -1;
    FOR_ACCESSES (k, n, i) {
        const qn_inst *x = &k->inst[i];
        if ((int)x->imm != param) {
            if (qn__may_meet(&s->a, x->imm, (uint64_t)param))
                return 0;
            continue;
        }
        if (n >= 64 || !may_be_collected(s, i) || (combine >= 0 && combine != x->sub))
            return 0;
        combine = x->sub;
        found |= UINT64_C(1) << n;
    }
    return found;
}

/** Whether neighbouring iterations update different elements of a long dimension, as those of rows
 * do that are added to rows at indices: these are no bins. */
static bool are_rows(const gpu_planner *s, uint64_t sites)
{
    bool are = false;
    FOR_ACCESSES (s->k, n, i) {
        const qn_dim_fact *dim = s->f->param[s->k->inst[i].imm].dim;
        for (int r = 0; n < 64 && (sites >> n & 1) && r < qn__n_indices(s->k, i); r++) {
            const uint32_t index = qn__args(s->k, i)[r];
            const qn_fact *extent = &dim[r].extent;
            const int64_t most = extent->kind == QN_FACT_EXACT ? extent->value : extent->most;
            are |= s->a.value[index].deps && !s->a.affine[index].sym[0] &&
                   (most == 0 || most > QN_SHORT_EXTENT);
        }
    }
    return are;
}

int64_t qn__private_bytes(const qn_kernel *k, const qn_facts *f, const qn_grid *p, int param)
{
    const int64_t n = span_of(k, f, param, f->machine.block_shared_bytes);
    return n < 0 ? p->private_room : (n * qn_dtype_bytes(k->param[param].dtype) + 7) / 8 * 8;
}

bool qn__gpu_is_privatized(const gpu_planner *s, uint32_t i)
{
    uint32_t site = qn__site_of(s->k, i);
    return site < 64 && (s->p->privatized >> site & 1);
}

void qn__gpu_choose_private(const gpu_planner *s)
{
    qn_grid *p = s->p;
    const int64_t iterations = qn__gpu_iterations(s),
                  room = s->f->machine.block_shared_bytes / PART_OF_SHARED;
    int64_t elements = 0, bytes = 0;
    int n_unknown = 0;
    uint64_t all = 0;
    if (p->team != QN_TEAM_THREAD)
        return;
    for (int param = 0; param < s->k->n_params; param++) {
        uint64_t sites = s->k->param[param].rank >= 0 ? sites_of(s, param) : 0;
        int64_t n = sites ? span_of(s->k, s->f, param, s->f->machine.block_shared_bytes) : 0;
        if (n == 0 || (n < 0 && are_rows(s, sites)))
            continue;
        all |= sites;
        n_unknown += n < 0;
        elements += n > 0 ? n : 0;
        bytes += n > 0 ? qn__private_bytes(s->k, s->f, p, param) : 0;
    }
    if (!all || bytes > (n_unknown ? room / 2 : room))
        return;
    int64_t most = (int64_t)BLOCKS_EACH * s->f->machine.multiprocessors;
    int64_t blocks = iterations < 0 || !elements ? most : iterations / (LEAST_UPDATES * elements);
    blocks = blocks > most ? most : blocks;
    if (blocks < s->f->machine.multiprocessors)
        return;
    p->privatized = all;
    p->most_blocks = (int32_t)blocks;
    p->private_room = n_unknown ? (int32_t)((room - bytes) / n_unknown / 8 * 8) : 0;
}
